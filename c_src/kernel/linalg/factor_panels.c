/* Reflectors of many lines, by panels: the product of a panel's reflectors is I - V T V' (R. Schreiber, C. Van Loan,
 * "A storage-efficient WY representation for products of Householder transformations", 1989), so lines get all of them
 * by two products. All numbers of threads have the same panels, chunks and tasks, so the bits are the same. */
#include "kernel/linalg/factor_internal.h"

#include <string.h>

#define PANEL FACTOR_PANEL
/* Lines of a task. */
#define TASK_LINES 32
/* Elements of V whose products are summed before they are added to the sums of other chunks. */
#define CHUNK 512
/* The distance of reflectors in a chunk: no power of two, so that all fit in the first cache. */
#define PITCH (CHUNK + 16)
/* With this number of elements in all lines several threads take part; with this number of multiplications where lines
 * get the reflectors one by one. */
#define SHARED_ELEMENTS 4096
#define SHARED_PRODUCTS 262144
/* A matrix with fewer elements stays in the first cache. */
#define CACHED_ELEMENTS 4096
/* Fewer lines, or fewer elements of a line, get the reflectors one by one. */
#define MOST_PLAIN 160

typedef struct panel {
  const factor_reflections *r;
  int64_t first, count; /* of its reflectors */
  int64_t at;           /* the first element that changes in lines */
  int64_t from;         /* the first line that changes */
  char *t;              /* -T, or its transpose: PANEL lines of as many elements */
  char *v;              /* chunks of PANEL lines, with zeros where a reflector has not begun */
} panel;

int64_t factor_panels_elements(int64_t length) {
  return PANEL * PANEL + (length + CHUNK - 1) / CHUNK * PANEL * PITCH + 64;
}

static const char *reflector(const factor_reflections *r, int64_t j, int64_t from) {
  return factor_at(r->f, factor_line(r->f, r->a, j), from);
}

static char *chunk_line(const panel *p, int64_t chunk, int64_t k) {
  return factor_at(p->r->f, p->v, (chunk * PANEL + k) * PITCH);
}

static int64_t chunk_length(const panel *p, int64_t chunk) {
  return ts_linalg_min(CHUNK, p->r->to->length - p->at - chunk * CHUNK);
}

static int64_t chunks_of(const panel *p) { return (p->r->to->length - p->at + CHUNK - 1) / CHUNK; }

/* ---- T and V of a panel */

/* Column i of T (line i of `t`): -tau T (V' v) above its diagonal, with the earlier reflectors in V, and tau on it. */
static void make_column(const panel *p, double (*t)[PANEL], int64_t i) {
  const factor *f = p->r->f;
  const int64_t at = p->at + i;
  const ts_linalg_reflector v = {reflector(p->r, p->first + i, at), p->r->to->length - at, p->r->tau[p->first + i]};
  f->v->products(&v, reflector(p->r, p->first, at), p->r->a->length, i, p->t); /* not made yet */
  for (int64_t k = 0; k < i; k++) {
    const double by = factor_get(f, p->t, k);
    for (int64_t row = 0; row < PANEL; row++) t[i][row] += t[k][row] * by;
  }
  t[i][i] = v.tau;
}

/* Element k, j of the kept T is -T[j][k] if the last reflector is applied first, else -T[k][j]. */
static void make_t(const panel *p) {
  double t[PANEL][PANEL];
  memset(t, 0, sizeof t);
  for (int64_t i = 0; i < p->count; i++) make_column(p, t, i);
  for (int64_t k = 0; k < p->count; k++)
    for (int64_t j = 0; j < p->count; j++)
      factor_set(p->r->f, p->t, k * PANEL + j, p->r->backwards ? -t[k][j] : -t[j][k]);
}

static void pack(const panel *p, int64_t chunk) {
  const factor *f = p->r->f;
  const int64_t length = chunk_length(p, chunk);
  for (int64_t k = 0; k < p->count; k++) {
    const int64_t zeros = chunk == 0 ? k : 0;
    char *to = chunk_line(p, chunk, k);
    memset(to, 0, (size_t)(zeros * f->size));
    memcpy(factor_at(f, to, zeros), reflector(p->r, p->first + k, p->at + chunk * CHUNK + zeros),
           (size_t)((length - zeros) * f->size));
  }
}

static void prepare_task(void *arg, int64_t task, int worker) {
  const panel *p = arg;
  (void)worker;
  if (task == 0)
    make_t(p);
  else
    pack(p, task - 1);
}

/* ---- lines */

/* The products of all reflectors with up to TS_LINALG_TOGETHER lines, TASK_LINES apart. */
static void take_products(const panel *p, const char *lines, int64_t count, char *out) {
  const factor *f = p->r->f;
  double part[TS_LINALG_TOGETHER];
  for (int64_t chunk = 0; chunk < chunks_of(p); chunk++)
    for (int64_t k = 0; k < p->count; k++) {
      const ts_linalg_reflector v = {chunk_line(p, chunk, k), chunk_length(p, chunk), -1};
      char *sums = factor_at(f, out, k * TASK_LINES);
      f->v->products(&v, factor_at(f, (char *)(uintptr_t)lines, p->at + chunk * CHUNK), p->r->to->length, count,
                     chunk ? (char *)part : sums);
      if (chunk) f->v->add_scaled(sums, 1, part, count);
    }
}

static void reflect_lines(const panel *p, int64_t first, int64_t count) {
  const factor *f = p->r->f;
  double products[PANEL * TASK_LINES], by[PANEL * TASK_LINES];
  char *lines = factor_line(f, p->r->to, first);
  const int64_t step = p->r->to->length;
  for (int64_t c = 0; c < count; c += TS_LINALG_TOGETHER)
    take_products(p, factor_at(f, lines, c * step), ts_linalg_min(TS_LINALG_TOGETHER, count - c),
                  factor_at(f, (char *)products, c));
  memset(by, 0, sizeof by);
  f->v->take_sums(&(ts_linalg_sums){products, p->t, TASK_LINES, PANEL, p->count, count, .adds = false}, by, TASK_LINES,
                  p->count);
  for (int64_t chunk = 0; chunk < chunks_of(p); chunk++)
    f->v->take_sums(&(ts_linalg_sums){chunk_line(p, chunk, 0), by, PITCH, TASK_LINES, p->count, chunk_length(p, chunk),
                                      .adds = false},
                    factor_at(f, lines, p->at + chunk * CHUNK), step, count);
}

static void lines_task(void *arg, int64_t task, int worker) {
  const panel *p = arg;
  const int64_t first = p->from + task * TASK_LINES;
  (void)worker;
  if (!ts_cancelled(p->r->f->cancel)) reflect_lines(p, first, ts_linalg_min(TASK_LINES, p->r->to->count - first));
}

static void run_panel(const factor_reflections *r, int64_t first, int64_t end) {
  const factor *f = r->f;
  const int64_t at = first + r->offset, from = r->fills ? ts_linalg_max(r->from, at) : r->from;
  panel p = {.r = r, .first = first, .count = end - first, .at = at, .from = from, .t = factor_aligned(r->room)};
  p.v = factor_aligned(factor_at(f, p.t, PANEL * PANEL));
  const int64_t lines = r->to->count - from, elements = lines * (r->to->length - at);
  const ts_parallel *parallel = elements < SHARED_ELEMENTS ? &ts_parallel_serial : f->parallel;
  if (lines <= 0) return;
  ts_parallel_run(parallel, 1 + chunks_of(&p), prepare_task, &p);
  ts_parallel_run(parallel, (lines + TASK_LINES - 1) / TASK_LINES, lines_task, &p);
}

/* ---- few lines, and complex ones */

/* Of lines `line` to `end` - 1. */
static void reflect_some(const factor_reflections *r, int64_t line, int64_t end) {
  for (int64_t i = r->first; i < r->end && !ts_cancelled(r->f->cancel); i++) {
    const int64_t j = r->backwards ? r->first + r->end - 1 - i : i, at = j + r->offset,
                  from = r->fills ? ts_linalg_max(line, at) : line;
    const ts_linalg_reflector v = {reflector(r, j, at), r->to->length - at, r->tau[j]};
    if (from < end)
      factor_reflect_lines(r->f, &v, factor_at(r->f, factor_line(r->f, r->to, from), at), r->to->length, end - from);
  }
}

static void reflect_task(void *arg, int64_t task, int worker) {
  const factor_reflections *r = arg;
  const int64_t line = r->from + task * TS_LINALG_TOGETHER;
  (void)worker;
  reflect_some(r, line, ts_linalg_min(r->to->count, line + TS_LINALG_TOGETHER));
}

/* Where there is much to do, some lines get all reflectors while they are in a cache. */
static void reflect_few(const factor_reflections *r) {
  const int64_t lines = r->to->count - r->from, planes = factor_planes(r->f);
  if (lines * r->to->length * (r->end - r->first) * planes * planes < SHARED_PRODUCTS)
    reflect_some(r, r->from, r->to->count);
  else
    ts_parallel_run(r->f->parallel, (lines + TS_LINALG_TOGETHER - 1) / TS_LINALG_TOGETHER, reflect_task,
                    (void *)(uintptr_t)r);
}

ts_status factor_reflect(const factor_reflections *r) {
  const int64_t steps = r->end - r->first;
  const bool few = r->to->count - r->from < MOST_PLAIN || r->to->length < MOST_PLAIN;
  for (int64_t done = 0; done < steps; done += PANEL) {
    const int64_t some = ts_linalg_min(PANEL, steps - done);
    const int64_t first = r->backwards ? r->end - done - some : r->first + done, end = first + some;
    TS_TRY(ts_check_cancelled(r->f->cancel, ts_op_name(r->f->spec->op)));
    factor_reflections some_of = *r;
    some_of.first = first;
    some_of.end = end;
    if (r->f->plane || few)
      reflect_few(&some_of);
    else
      run_panel(r, first, end);
  }
  return ts_check_cancelled(r->f->cancel, ts_op_name(r->f->spec->op));
}

/* ---- columns and products */

/* The reflectors of some of a panel's lines, which get each at once; the other ones get all of them after that. */
static ts_status make_some(const factor *f, const factor_lines *a, const factor_steps *s, int64_t first, int64_t own) {
  const int64_t end = ts_linalg_min(s->count, own);
  for (int64_t j = first; j < end; j++) {
    char *x = factor_at(f, factor_line(f, a, j), j);
    TS_TRY(ts_check_cancelled(f->cancel, ts_op_name(f->spec->op)));
    s->make(f, x, a->length - j, j, s);
    const ts_linalg_reflector v = {x, a->length - j, s->tau[j]};
    factor_reflect_lines(f, &v, factor_at(f, x, a->length), a->length, own - j - 1);
  }
  return factor_reflect(&(factor_reflections){f, a, a, s->tau, s->room, 0, first, end, own, false, false});
}

/* Lines behind a panel get all its reflectors after it. */
ts_status factor_columns(const factor *f, const factor_lines *a, const factor_steps *s) {
  const int64_t some = a->count * a->length < CACHED_ELEMENTS ? FACTOR_PANEL : TS_LINALG_TOGETHER;
  for (int64_t first = 0; first < s->count; first += FACTOR_PANEL) {
    const int64_t end = ts_linalg_min(s->count, first + FACTOR_PANEL);
    const factor_lines own = {a->data, ts_linalg_min(a->count, first + FACTOR_PANEL), a->length};
    for (int64_t j = first; j < end; j += some) TS_TRY(make_some(f, &own, s, j, ts_linalg_min(own.count, j + some)));
    TS_TRY(factor_reflect(&(factor_reflections){f, a, a, s->tau, s->room, 0, first, end, own.count, false, false}));
  }
  return TS_SUCCESS;
}

void factor_reflect_plainly(const factor *f, char *x, int64_t length, int64_t j, const factor_steps *s) {
  factor_set_value(f, s->diagonal, j, factor_reflector(f, x, length, &s->tau[j]));
}

ts_status factor_product(const factor_reflections *r) {
  const factor_lines *q = r->to;
  factor_reflections all = *r;
  all.backwards = all.fills = true;
  factor_clear(r->f, q->data, q->count * q->length);
  for (int64_t c = 0; c < q->count; c++) factor_set(r->f, factor_line(r->f, q, c), c, 1);
  return factor_reflect(&all);
}
