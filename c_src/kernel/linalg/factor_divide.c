/* Eigenvalues and eigenvectors of a symmetric tridiagonal matrix by divide and conquer (J. Cuppen, "A divide and
 * conquer method for the symmetric tridiagonal eigenproblem", 1981; M. Gu, S. Eisenstat, "A divide-and-conquer
 * algorithm for the symmetric tridiagonal eigenproblem", 1995).
 *
 * The matrix is cut into parts of up to LEAF rows; QL steps solve these. Two neighbours are then merged: with their
 * eigenvectors Q, the matrix of both is Q (D + rho u u') Q'. The vector u is made of the last row of the lower
 * neighbour's Q and the first row of the other's. Poles that are equal or have no weight are deflated: their vectors
 * stay. The roots of the secular equation are the other eigenvalues, and a product with Q gives their vectors.
 *
 * Small merges are tasks, larger ones are done one after the other by all threads; both are cut alike by any number of
 * threads, so the bits are the same. All numbers but the vectors are f64.
 *
 * Without vectors, only their elements in the first and the last row of their part are computed, as a merge reads no
 * others; of the last merge only the values. */
#include "kernel/linalg/factor_turns.h"

#include <math.h>
#include <string.h>

#define LEAF 32
/* Elements of a line that has the first and the last row only. */
#define EDGES 2
/* Most rows of a merge that is one task. */
#define SMALL 128
/* Roots, or lines, of a task in a larger one. */
#define TASK_ROOTS 16
#define TASK_LINES 32
#define TASK_POLES 64
/* Bytes of workspace for each row of a leaf: its matrix and its rotations; LEAF / 2 rows at least. */
#define LEAF_BYTES 2048
/* f64 numbers and indices for each row. */
#define NUMBERS 12
#define INDICES 5

/* Where the elements of a line are that are not 0. */
typedef enum kind { IN_LOWER, IN_BOTH, IN_UPPER, KINDS } kind;

typedef struct division {
  const factor_division *m;
  const factor *f;
  double *joins;        /* of rows: the element of e before it, where the matrix is cut */
  double *first, *last; /* of each vector, in the first and the last row of its part */
  double *poles, *weights, *u, *new_first, *new_last, *made;
  ts_linalg_point *roots;
  double *values;  /* of deflated lines, and then of all */
  int64_t *order;  /* the lines of each part, in ascending order of their values */
  int64_t *sorted; /* the order of both parts of a merge; then of the merged part */
  int64_t *lines;  /* of each pole; then the deflated lines */
  int64_t *slots;  /* of each pole: the line of the packed ones */
  int64_t *kinds;
  int levels;
  _Atomic bool failed;
} division;

/* Rows low to high - 1 in two parts. All arrays of `s` are used from `low` on, so that merges may run at once. */
typedef struct merge {
  division *s;
  const factor *f; /* whose threads compute this one */
  int64_t low, middle, high;
  int64_t roots;         /* the others of its lines are deflated */
  int64_t counts[KINDS]; /* of roots */
} merge;

int64_t factor_divide_bytes(int64_t n) {
  return n * (LEAF_BYTES + NUMBERS * (int64_t)sizeof(double) + INDICES * (int64_t)sizeof(int64_t));
}

static char *element(const division *s, int64_t line, int64_t i) {
  return factor_at(s->f, factor_line(s->f, &s->m->z, line), i);
}

static int64_t rows_of(const merge *m) { return m->high - m->low; }

/* ---- parts that are solved by QL steps ---- */

static void sort_ascending(const double *d, int64_t *order, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const int64_t line = order[i];
    int64_t at = i;
    for (; at > 0 && d[order[at - 1]] > d[line]; at--) order[at] = order[at - 1];
    order[at] = line;
  }
}

static int64_t edge(const division *s, int level, int64_t i) { return (i * s->m->n) >> level; }

/* Of the identity: all elements of its lines, or those in its first and its last row. */
static void begin_vectors(double *vectors, int64_t rows, int64_t length) {
  memset(vectors, 0, (size_t)(rows * length) * sizeof *vectors);
  if (length == rows)
    for (int64_t i = 0; i < rows; i++) vectors[i * rows + i] = 1;
  else if (length > 0)
    vectors[0] = vectors[rows * length - 1] = 1;
}

static ts_status solve_leaf(void *arg, int64_t task, int worker) {
  division *s = arg;
  const int64_t low = edge(s, s->levels, task), rows = edge(s, s->levels, task + 1) - low;
  const factor wide = {.spec = s->f->spec,
                       .v = ts_linalg_vector_of(TS_F64),
                       .size = sizeof(double),
                       .parallel = &ts_parallel_serial,
                       .cancel = s->f->cancel};
  double *vectors = (double *)(void *)(s->m->room + low * LEAF_BYTES);
  char *parts = (char *)(vectors + rows * rows);
  const int64_t length = !s->m->only_values ? rows : s->levels > 0 ? EDGES : 0;
  const factor_tridiagonal t = {.f = &wide,
                                .n = rows,
                                .d = s->m->d + low,
                                .e = s->m->e + low,
                                .z = {(char *)vectors, rows, length},
                                .parts = parts,
                                .room = parts + rows * rows * (int64_t)sizeof(double)};
  bool converged = true;
  (void)worker;
  begin_vectors(vectors, rows, length);
  TS_TRY(factor_diagonalize(&t, &converged));
  if (!converged) s->failed = true;
  for (int64_t c = 0; c < rows; c++) {
    const double *vector = vectors + c * length;
    for (int64_t i = 0; !s->m->only_values && i < rows; i++) factor_set(s->f, element(s, low + c, low), i, vector[i]);
    s->first[low + c] = length > 0 ? vector[0] : 0;
    s->last[low + c] = length > 0 ? vector[length - 1] : 0;
    s->order[low + c] = low + c;
  }
  sort_ascending(s->m->d, s->order + low, rows);
  return TS_SUCCESS;
}

/* ---- deflation ---- */

/* Two orders, one behind the other, of ascending values become one. */
static void merge_orders(const double *d, const int64_t *order, int64_t middle, int64_t count, int64_t *out) {
  for (int64_t a = 0, b = middle; a < middle || b < count;)
    *out++ = b == count || (a < middle && d[order[a]] <= d[order[b]]) ? order[a++] : order[b++];
}

/* The lines of a merge while they are looked at in ascending order: `kept`, if any, is not yet known to be a root. */
typedef struct deflation {
  const merge *m;
  double rho, least; /* least: smaller numbers count as 0 */
  int64_t kept, roots, deflated;
} deflation;

/* Deflated lines are noted from the end on. */
static void deflate(deflation *x, int64_t line) { x->m->s->lines[x->m->high - ++x->deflated] = line; }

static void keep(deflation *x) {
  const division *s = x->m->s;
  const int64_t at = x->m->low + x->roots++;
  if (x->kept < 0) {
    x->roots--;
    return;
  }
  s->lines[at] = x->kept;
  s->poles[at] = s->m->d[x->kept];
  s->weights[at] = x->rho * s->u[x->kept] * s->u[x->kept];
}

/* Rotates two lines so that the first has no weight. */
static void rotate(deflation *x, int64_t line, double cosine, double sine) {
  const division *s = x->m->s;
  const int64_t kept = x->kept;
  double *d = s->m->d;
  const double a = d[kept], b = d[line], first = s->first[kept], last = s->last[kept];
  d[kept] = a * cosine * cosine + b * sine * sine;
  d[line] = a * sine * sine + b * cosine * cosine;
  s->first[kept] = cosine * first + sine * s->first[line];
  s->first[line] = cosine * s->first[line] - sine * first;
  s->last[kept] = cosine * last + sine * s->last[line];
  s->last[line] = cosine * s->last[line] - sine * last;
  if (s->m->only_values) return;
  double angles[2];
  factor_set(s->f, angles, 0, cosine);
  factor_set(s->f, angles, 1, sine);
  s->f->v->turn(&(ts_linalg_turns){angles, 1}, element(s, kept, x->m->low), (line - kept) * s->m->n, rows_of(x->m));
  if (s->kinds[line] != s->kinds[kept]) s->kinds[line] = s->kinds[kept] = IN_BOTH;
}

static void look_at(deflation *x, int64_t line) {
  const division *s = x->m->s;
  double *u = s->u;
  if (x->rho * fabs(u[line]) <= x->least) {
    deflate(x, line);
    return;
  }
  if (x->kept >= 0) {
    const double length = factor_length(u[x->kept], u[line]), cosine = u[line] / length, sine = -u[x->kept] / length;
    if (fabs((s->m->d[line] - s->m->d[x->kept]) * cosine * sine) <= x->least) {
      u[line] = length;
      u[x->kept] = 0;
      rotate(x, line, cosine, sine);
      deflate(x, x->kept);
      x->kept = line;
      return;
    }
  }
  keep(x);
  x->kept = line;
}

/* u has length 1. The first row of both parts is 0 in the upper one's vectors, and the last row in the other's. */
static double make_u(const merge *m, double join) {
  const division *s = m->s;
  double most = 0;
  for (int64_t i = m->low; i < m->high; i++) {
    const double row = i < m->middle ? s->last[i] : copysign(1, join) * s->first[i];
    s->u[i] = row * 0x1.6a09e667f3bcdp-1; /* the root of 1/2 */
    s->kinds[i] = i < m->middle ? IN_LOWER : IN_UPPER;
    most = fmax(most, fmax(fabs(s->m->d[i]), fabs(s->u[i])));
    *(i < m->middle ? &s->last[i] : &s->first[i]) = 0;
  }
  return most;
}

static void find_roots(merge *m) {
  division *s = m->s;
  const double join = s->joins[m->middle], most = make_u(m, join);
  deflation x = {.m = m, .rho = 2 * fabs(join), .least = 4 * factor_epsilon(s->f) * most, .kept = -1};
  merge_orders(s->m->d, s->order + m->low, m->middle - m->low, rows_of(m), s->sorted + m->low);
  for (int64_t i = m->low; i < m->high; i++) look_at(&x, s->sorted[i]);
  keep(&x);
  m->roots = x.roots;
}

/* The lines of the roots are packed in the order of their kinds. */
static void order_kinds(merge *m) {
  const division *s = m->s;
  int64_t at[KINDS];
  memset(m->counts, 0, sizeof m->counts);
  for (int64_t k = 0; k < m->roots; k++) m->counts[s->kinds[s->lines[m->low + k]]]++;
  at[IN_LOWER] = 0;
  at[IN_BOTH] = m->counts[IN_LOWER];
  at[IN_UPPER] = at[IN_BOTH] + m->counts[IN_BOTH];
  for (int64_t k = 0; k < m->roots; k++) s->slots[m->low + k] = at[s->kinds[s->lines[m->low + k]]]++;
}

/* ---- the vectors ---- */

static factor_secular equation(const merge *m) {
  const division *s = m->s;
  return (factor_secular){.v = s->f->v,
                          .count = m->roots,
                          .epsilon = s->f->size == 4 ? 0x1p-40 : 0x1p-53,
                          .poles = s->poles + m->low,
                          .weights = s->weights + m->low,
                          .roots = s->roots + m->low};
}

static void roots_task(void *arg, int64_t task, int worker) {
  const merge *m = arg;
  const factor_secular q = equation(m);
  const int64_t end = ts_linalg_min(m->roots, (task + 1) * TASK_ROOTS);
  (void)worker;
  for (int64_t j = task * TASK_ROOTS; j < end && !ts_cancelled(m->f->cancel); j++)
    if (!factor_secular_root(&q, j)) m->s->failed = true;
}

/* The factors of a root's vector, with the signs of u. */
static void factors_task(void *arg, int64_t task, int worker) {
  const merge *m = arg;
  const division *s = m->s;
  const factor_secular q = equation(m);
  const int64_t first = task * TASK_POLES, count = ts_linalg_min(TASK_POLES, m->roots - first);
  (void)worker;
  factor_secular_weights(&q, first, count, s->made + m->low);
  for (int64_t i = m->low + first; i < m->low + first + count; i++)
    s->made[i] = copysign(sqrt(fabs(s->made[i])), s->u[s->lines[i]]);
}

static char *packed(const merge *m) { return factor_at(m->f, m->s->m->lines, m->low * m->s->m->n); }
static char *factors_of(const merge *m) { return factor_at(m->f, m->s->m->by, m->low * m->s->m->n); }

/* The negated factors of root j's vector, a column of `by`, and the vector's two rows. */
static void make_vector(const merge *m, int64_t j, double *terms) {
  const division *s = m->s;
  const factor *f = m->f;
  char *by = factors_of(m);
  const ts_linalg_poles q = {s->poles + m->low, s->made + m->low, m->roots};
  const int64_t *lines = s->lines + m->low, *slots = s->slots + m->low;
  double first = 0, last = 0;
  f->v->pole_terms(&q, &s->roots[m->low + j], terms);
  const double length = sqrt(ts_linalg_vector_of(TS_F64)->dot(terms, terms, m->roots));
  for (int64_t k = 0; k < m->roots; k++) {
    const double by_k = terms[k] / length;
    first += by_k * s->first[lines[k]];
    last += by_k * s->last[lines[k]];
    if (!s->m->only_values) factor_set(f, by, slots[k] * m->roots + j, -by_k);
  }
  s->new_first[m->low + j] = first;
  s->new_last[m->low + j] = last;
}

/* The terms of each task are where lines are packed later. */
static void vectors_task(void *arg, int64_t task, int worker) {
  const merge *m = arg;
  const int64_t end = ts_linalg_min(m->roots, (task + 1) * TASK_ROOTS);
  double *terms = (double *)(void *)factor_aligned(packed(m)) + task * m->roots;
  (void)worker;
  for (int64_t j = task * TASK_ROOTS; j < end && !ts_cancelled(m->f->cancel); j++) make_vector(m, j, terms);
}

/* The nonzero elements of the lines of roots: first the lower rows, then the upper ones; then the deflated lines. */
typedef struct packing {
  char *lower, *upper, *deflated;
  int64_t lower_rows, upper_rows;   /* elements of a line */
  int64_t lower_lines, upper_lines; /* how many lines */
  int64_t upper_slot;               /* of the first line that has upper elements */
} packing;

static packing packing_of(const merge *m) {
  packing p = {.lower = packed(m),
               .lower_rows = m->middle - m->low,
               .upper_rows = m->high - m->middle,
               .lower_lines = m->counts[IN_LOWER] + m->counts[IN_BOTH],
               .upper_lines = m->counts[IN_BOTH] + m->counts[IN_UPPER],
               .upper_slot = m->counts[IN_LOWER]};
  p.upper = factor_at(m->f, p.lower, p.lower_lines * p.lower_rows);
  p.deflated = factor_at(m->f, p.upper, p.upper_lines * p.upper_rows);
  return p;
}

static void copy_elements(const merge *m, char *to, const char *from, int64_t count) {
  memcpy(to, from, (size_t)(count * m->f->size));
}

static void pack_root(const merge *m, const packing *p, int64_t k) {
  const division *s = m->s;
  const int64_t line = s->lines[m->low + k], slot = s->slots[m->low + k];
  if (slot < p->lower_lines)
    copy_elements(m, factor_at(m->f, p->lower, slot * p->lower_rows), element(s, line, m->low), p->lower_rows);
  if (slot >= p->upper_slot)
    copy_elements(m, factor_at(m->f, p->upper, (slot - p->upper_slot) * p->upper_rows), element(s, line, m->middle),
                  p->upper_rows);
}

static void pack_task(void *arg, int64_t task, int worker) {
  const merge *m = arg;
  const packing p = packing_of(m);
  const int64_t rows = rows_of(m), end = ts_linalg_min(rows, (task + 1) * TASK_LINES);
  (void)worker;
  for (int64_t k = task * TASK_LINES; k < end; k++)
    if (k < m->roots)
      pack_root(m, &p, k);
    else
      copy_elements(m, factor_at(m->f, p.deflated, (k - m->roots) * rows),
                    element(m->s, m->s->lines[m->low + k], m->low), rows);
}

/* New lines: from `first` on the roots' lines are products. */
static void multiply(const merge *m, const packing *p, int64_t first, int64_t count) {
  const division *s = m->s;
  const factor *f = m->f;
  const char *by = factors_of(m);
  const ts_linalg_sums lower = {p->lower,       factor_at(f, factors_of(m), first),
                                p->lower_rows,  m->roots,
                                p->lower_lines, p->lower_rows,
                                .adds = false},
                       upper = {p->upper,       by + (p->upper_slot * m->roots + first) * f->size,
                                p->upper_rows,  m->roots,
                                p->upper_lines, p->upper_rows,
                                .adds = false};
  for (int64_t k = first; k < first + count; k++)
    memset(element(s, m->low + k, m->low), 0, (size_t)(rows_of(m) * f->size));
  f->v->take_sums(&lower, element(s, m->low + first, m->low), s->m->n, count);
  f->v->take_sums(&upper, element(s, m->low + first, m->middle), s->m->n, count);
}

static void lines_task(void *arg, int64_t task, int worker) {
  const merge *m = arg;
  const packing p = packing_of(m);
  const int64_t rows = rows_of(m), first = task * TASK_LINES, end = ts_linalg_min(rows, first + TASK_LINES);
  const int64_t products = ts_linalg_min(end, m->roots) - first;
  (void)worker;
  if (ts_cancelled(m->f->cancel)) return;
  if (products > 0) multiply(m, &p, first, products);
  for (int64_t k = ts_linalg_max(first, m->roots); k < end; k++)
    copy_elements(m, element(m->s, m->low + k, m->low), factor_at(m->f, p.deflated, (k - m->roots) * rows), rows);
}

/* ---- merges ---- */

/* The values and rows of the new lines, and their order: the roots ascend. */
static void take_values(const merge *m) {
  division *s = m->s;
  const int64_t low = m->low, rows = rows_of(m);
  double *d = s->m->d;
  int64_t *order = s->sorted + low;
  for (int64_t k = 0; k < rows; k++) {
    const int64_t line = s->lines[low + k];
    s->values[low + k] = k < m->roots ? s->roots[low + k].origin + s->roots[low + k].offset : d[line];
    if (k < m->roots) continue;
    s->new_first[low + k] = s->first[line];
    s->new_last[low + k] = s->last[line];
  }
  for (int64_t k = 0; k < rows; k++) {
    d[low + k] = s->values[low + k];
    s->first[low + k] = s->new_first[low + k];
    s->last[low + k] = s->new_last[low + k];
    order[k] = low + k;
  }
  /* deflated lines were noted from the end on */
  for (int64_t k = m->roots, end = rows - 1; k < end; k++, end--) {
    const int64_t line = order[k];
    order[k] = order[end];
    order[end] = line;
  }
  sort_ascending(d, order + m->roots, rows - m->roots);
  merge_orders(d, order, m->roots, rows, s->order + low);
}

static int64_t tasks_of(int64_t count, int64_t each) { return (count + each - 1) / each; }

static ts_status merge_parts(merge *m) {
  const ts_parallel *parallel = m->f->parallel;
  find_roots(m);
  const bool lines = !m->s->m->only_values, edges = lines || rows_of(m) < m->s->m->n;
  order_kinds(m);
  ts_parallel_run(parallel, tasks_of(m->roots, TASK_ROOTS), roots_task, m);
  TS_TRY(ts_check_cancelled(m->f->cancel, "eigh"));
  if (edges) ts_parallel_run(parallel, tasks_of(m->roots, TASK_POLES), factors_task, m);
  if (edges) ts_parallel_run(parallel, tasks_of(m->roots, TASK_ROOTS), vectors_task, m);
  if (lines) ts_parallel_run(parallel, tasks_of(rows_of(m), TASK_LINES), pack_task, m);
  if (lines) ts_parallel_run(parallel, tasks_of(rows_of(m), TASK_LINES), lines_task, m);
  take_values(m);
  return ts_check_cancelled(m->f->cancel, "eigh");
}

typedef struct level {
  division *s;
  int number;
} level;

static ts_status merge_pair(const level *l, int64_t i, const factor *f) {
  merge m = {.s = l->s,
             .f = f,
             .low = edge(l->s, l->number, i),
             .middle = edge(l->s, l->number + 1, 2 * i + 1),
             .high = edge(l->s, l->number, i + 1)};
  return merge_parts(&m);
}

static ts_status merge_task(void *arg, int64_t task, int worker) {
  const level *l = arg;
  const factor alone = factor_alone(l->s->f);
  (void)worker;
  return merge_pair(l, task, &alone);
}

static ts_status merge_level(division *s, int number) {
  level l = {s, number};
  const int64_t count = (int64_t)1 << number;
  if (s->m->n >> number <= SMALL) return ts_linalg_run_tasks(s->f->parallel, count, merge_task, &l);
  for (int64_t i = 0; i < count; i++) TS_TRY(merge_pair(&l, i, s->f));
  return TS_SUCCESS;
}

/* The join of two parts is taken from the diagonal on both sides. */
static void cut(const division *s) {
  double *d = s->m->d, *e = s->m->e;
  for (int64_t i = 1; i < (int64_t)1 << s->levels; i++) {
    const int64_t row = edge(s, s->levels, i);
    s->joins[row] = e[row - 1];
    d[row - 1] -= fabs(e[row - 1]);
    d[row] -= fabs(e[row - 1]);
    e[row - 1] = 0;
  }
}

static division divide(const factor_division *m) {
  const int64_t n = m->n;
  double *at = (double *)(void *)(m->room + n * LEAF_BYTES);
  division s = {.m = m, .f = m->f};
  double **const numbers[] = {&s.joins, &s.first, &s.last,      &s.poles,    &s.weights,
                              &s.u,     &s.made,  &s.new_first, &s.new_last, &s.values};
  int64_t **const indices[] = {&s.order, &s.sorted, &s.lines, &s.slots, &s.kinds};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++, at += n) *numbers[i] = at;
  for (int64_t i = 0; i < n; i++) s.new_first[i] = s.new_last[i] = 0;
  s.roots = (ts_linalg_point *)(void *)at;
  int64_t *next = (int64_t *)(void *)(s.roots + n);
  for (size_t i = 0; i < sizeof indices / sizeof *indices; i++, next += n) *indices[i] = next;
  while (n > (int64_t)LEAF << s.levels) s.levels++;
  return s;
}

ts_status factor_divide(const factor_division *m, bool *out_converged) {
  division s = divide(m);
  if (!m->only_values) factor_fill(m->f, m->z.data, m->n * m->n, 0);
  cut(&s);
  TS_TRY(ts_linalg_run_tasks(m->f->parallel, (int64_t)1 << s.levels, solve_leaf, &s));
  for (int number = s.levels - 1; number >= 0; number--) TS_TRY(merge_level(&s, number));
  *out_converged = !s.failed;
  return TS_SUCCESS;
}
