/* Products of any layout, by many threads, compared with the plain sum in the order of tensor/contract_order.h.
 * Included by the tests of products. */
#include "jit/session/target.h"
#include "kernel/gemm/gemm.h"
#include "tensor/contract_order.h"
#include "testing.h"

#include <math.h>
#include <pthread.h>

/* ---- a pool of threads made for each run ---- */

#define WIDTH 3

typedef struct crew {
  _Atomic int64_t next;
  int64_t tasks;
  ts_task_fn fn;
  void *arg;
} crew;

typedef struct member {
  crew *crew;
  int worker;
} member;

static void *member_main(void *arg) {
  member *m = arg;
  int64_t task;
  while ((task = atomic_fetch_add(&m->crew->next, 1)) < m->crew->tasks) m->crew->fn(m->crew->arg, task, m->worker);
  return NULL;
}

static void run_threads(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  (void)self;
  crew c = {.tasks = tasks, .fn = fn, .arg = arg};
  pthread_t threads[WIDTH];
  member members[WIDTH];
  for (int i = 0; i < WIDTH; i++) {
    members[i] = (member){&c, i};
    ck_assert_int_eq(pthread_create(&threads[i], NULL, member_main, &members[i]), 0);
  }
  for (int i = 0; i < WIDTH; i++) pthread_join(threads[i], NULL);
}

static const ts_parallel threaded = {.context = NULL, .width = WIDTH, .run = run_threads};

/* ---- operands ---- */

static uint64_t random_state = 1;

static uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static double random_number(void) { return (double)(int64_t)random_bits() * 0x1p-63; }

static ts_scalar random_scalar(ts_dtype type) {
  if (ts_dtype_is_complex(type)) return ts_scalar_complex(type, random_number(), random_number());
  if (!ts_dtype_is_float(type)) return ts_scalar_from_u64(type, random_bits());
  double value = random_number();
  return ts_scalar_from_f64(type, random_bits() % 16 ? value : value * 0x1p-15);
}

typedef enum layout { NORMAL, TRANSPOSED, PADDED, STRIDED, REVERSED, ROW_REPEATED, COL_REPEATED, LAYOUT_COUNT } layout;

/* [batch, rows, cols] of random elements laid out as `how` says. */
typedef struct operand {
  char *memory, *origin;
  int64_t batch, row, col;
} operand;

static operand make_operand(ts_dtype type, layout how, int64_t batch, int64_t rows, int64_t cols) {
  operand o = {.row = cols, .col = 1};
  int64_t count = rows * cols, first = 0;
  switch (how) {
  case NORMAL: break;
  case TRANSPOSED: o.row = 1, o.col = rows; break;
  case PADDED: o.row = cols + 3, count = rows * (cols + 3); break;
  case STRIDED: o.row = 2 * cols * 3, o.col = 3, count = 6 * rows * cols; break;
  case REVERSED: o.row = -cols, o.col = -1, first = count - 1; break;
  case ROW_REPEATED: o.row = 0, count = cols; break;
  case COL_REPEATED: o.row = 1, o.col = 0, count = rows; break;
  case LAYOUT_COUNT: break;
  }
  o.batch = count;
  if (count < 0) count = 0;
  int64_t size = (int64_t)ts_dtype_size(type), total = batch * count;
  /* Exactly as large as the elements: a sanitizer sees any read behind them. */
  o.memory = malloc((size_t)(total * size) + 1);
  for (int64_t i = 0; i < total; i++) ts_scalar_store(type, random_scalar(type), o.memory + i * size);
  o.origin = o.memory + (count ? first : 0) * size;
  return o;
}

/* ---- the plain sum ---- */

static float step_f32(float a, float b, float sum) {
  if (ts_target_host()->fma) return fmaf(a, b, sum);
  volatile float product = a * b;
  return product + sum;
}

static double step_f64(double a, double b, double sum) {
  if (ts_target_host()->fma) return fma(a, b, sum);
  volatile double product = a * b;
  return product + sum;
}

/* An element, read once for all the sums that it is a term of. */
typedef struct factor {
  double re, im;
  uint64_t bits;
} factor;

/* The order of tensor/contract_order.h over terms that a function adds: in f64, or in f32. */
typedef struct terms {
  const factor *lhs, *rhs;
  bool f32, complex, imaginary;
  int64_t chain, block; /* terms of all chains side by side, and of a block */
  int lanes;            /* chains side by side */
} terms;

static double rounded(const terms *t, double x) { return t->f32 ? (double)(float)x : x; }

static double step(const terms *t, double a, double b, double sum) {
  return t->f32 ? (double)step_f32((float)a, (float)b, (float)sum) : step_f64(a, b, sum);
}

/* Each part of a complex sum: re takes a's re with b's re, then a's im with -b's im; im takes b's im, then its re. */
static double add_term(const terms *t, int64_t k, double sum) {
  const factor *a = t->lhs + k, *b = t->rhs + k;
  if (!t->complex) return step(t, a->re, b->re, sum);
  return t->imaginary ? step(t, a->im, b->re, step(t, a->re, b->im, sum))
                      : step(t, a->im, -b->im, step(t, a->re, b->re, sum));
}

static double chain_of(const terms *t, int64_t first, int64_t end) {
  double sum[TS_CONTRACT_MAX_LANES] = {0};
  for (int64_t k = first; k < end; k++) sum[(k - first) % t->lanes] = add_term(t, k, sum[(k - first) % t->lanes]);
  return t->lanes == 1 ? sum[0] : rounded(t, sum[0] + sum[1]);
}

static double block_of(const terms *t, int64_t first, int64_t end) {
  double sum = 0;
  for (int64_t k = first; k < end; k += t->chain) {
    const double chain = chain_of(t, k, k + t->chain < end ? k + t->chain : end);
    sum = k == first ? chain : rounded(t, sum + chain);
  }
  return sum;
}

/* The first part is as many blocks as a power of two. */
static double sum_of(const terms *t, int64_t first, int64_t end) {
  int64_t half = t->block;
  if (end - first <= t->block) return block_of(t, first, end);
  while (first + 2 * half < end) half *= 2;
  return rounded(t, sum_of(t, first, first + half) + sum_of(t, first + half, end));
}

static ts_scalar expected(ts_dtype type, const factor *lhs, const factor *rhs, int64_t count) {
  const bool is_complex = ts_dtype_is_complex(type);
  const int64_t parts = is_complex ? 2 : 1;
  const bool f32 = type != TS_F64 && type != TS_C128;
  const ts_contract_order order = ts_contract_order_of(type, ts_target_host()->amx);
  terms t = {lhs,        rhs, f32, is_complex, false, order.lanes * order.terms / parts, TS_CONTRACT_BLOCK / parts,
             order.lanes};
  const double re = ts_dtype_is_float(type) || is_complex ? sum_of(&t, 0, count) : 0;
  t.imaginary = true;
  if (is_complex) return ts_scalar_complex(type, re, sum_of(&t, 0, count));
  if (ts_dtype_is_float(type)) return ts_scalar_from_f64(type, re);
  uint64_t integer = 0;
  for (int64_t k = 0; k < count; k++) integer += lhs[k].bits * rhs[k].bits;
  return ts_scalar_from_u64(type, integer);
}

/* ---- one product ---- */

#define OUT_PAD 2
#define OUT_FILL 0x5A

typedef struct product {
  ts_gemm_shape shape;
  operand lhs, rhs;
  int64_t out_bytes;
  char *out;
} product;

static product make_product(ts_dtype type, int64_t batch, int64_t m, int64_t n, int64_t k, layout lhs, layout rhs) {
  product p = {.lhs = make_operand(type, lhs, batch, m, k), .rhs = make_operand(type, rhs, batch, k, n)};
  p.shape = (ts_gemm_shape){batch,     m,           n,         k,         p.lhs.batch,       p.lhs.row,
                            p.lhs.col, p.rhs.batch, p.rhs.row, p.rhs.col, m * (n + OUT_PAD), n + OUT_PAD};
  p.out_bytes = batch * m * (n + OUT_PAD) * (int64_t)ts_dtype_size(type);
  p.out = malloc((size_t)p.out_bytes + 1);
  memset(p.out, OUT_FILL, (size_t)p.out_bytes + 1);
  return p;
}

static void free_product(product *p) {
  free(p->lhs.memory);
  free(p->rhs.memory);
  free(p->out);
}

static ts_status run_product(const ts_gemm *gemm, product *p, const ts_parallel *parallel) {
  return ts_gemm_run(
      gemm, &p->shape,
      &(ts_gemm_call){
          .lhs = p->lhs.origin, .rhs = p->rhs.origin, .out = p->out, .parallel = parallel, .pool = ts_pool_default()});
}

/* The rows of lhs or the columns of rhs, each read when the first sum needs it. */
typedef struct lines {
  ts_dtype type;
  const char *origin;
  int64_t length, stride, each, batch, count; /* strides: of an element, of a line, of a batch of `each` lines */
  factor **read;
} lines;

static lines make_lines(ts_dtype type, const operand *o, const ts_gemm_shape *s, bool is_rhs) {
  lines l = {type,
             o->origin,
             s->k,
             is_rhs ? s->rhs_row : s->lhs_col,
             is_rhs ? s->rhs_col : s->lhs_row,
             is_rhs ? s->rhs_batch : s->lhs_batch,
             is_rhs ? s->n : s->m,
             NULL};
  l.read = calloc((size_t)(s->batch * l.count) + 1, sizeof *l.read);
  return l;
}

static void free_lines(lines *l, int64_t batches) {
  for (int64_t i = 0; i < batches * l->count; i++) free(l->read[i]);
  free(l->read);
}

static factor factor_of(ts_dtype type, const char *at) {
  const ts_scalar x = ts_scalar_load(type, at);
  factor f = {.bits = ts_dtype_is_complex(type) ? 0 : x.bits};
  if (ts_dtype_is_float(type) || ts_dtype_is_complex(type)) f.re = ts_scalar_to_f64(type, x);
  if (ts_dtype_is_complex(type)) f.im = ts_scalar_imag(type, x);
  return f;
}

static const factor *line_at(lines *l, int64_t batch, int64_t i) {
  factor **read = &l->read[batch * l->count + i];
  const int64_t size = (int64_t)ts_dtype_size(l->type);
  if (*read) return *read;
  *read = malloc((size_t)(l->length + 1) * sizeof **read);
  for (int64_t k = 0; k < l->length; k++)
    (*read)[k] = factor_of(l->type, l->origin + (batch * l->batch + i * l->each + k * l->stride) * size);
  return *read;
}

static bool is_same(double a, double b) { return isnan(a) ? isnan(b) : memcmp(&a, &b, sizeof a) == 0; }

/* The sign and payload of NaN are not defined. */
static bool are_same_but_nan(ts_dtype type, ts_scalar a, ts_scalar b) {
  const bool is_complex = ts_dtype_is_complex(type);
  if (!ts_dtype_is_float(type) && !is_complex) return false;
  return is_same(ts_scalar_to_f64(type, a), ts_scalar_to_f64(type, b)) &&
         (!is_complex || is_same(ts_scalar_imag(type, a), ts_scalar_imag(type, b)));
}

/* Only every `stride`-th element of out is compared with the sums of `shape`. */
static void check_elements(ts_dtype type, const product *p, const ts_gemm_shape *s, int64_t stride) {
  const int64_t size = (int64_t)ts_dtype_size(type);
  lines rows = make_lines(type, &p->lhs, s, false), columns = make_lines(type, &p->rhs, s, true);
  if (TEST_IS_SANITIZED) stride *= 17;
  for (int64_t at = 0; at < s->batch * s->m * s->out_row; at += stride) {
    const int64_t j = at % s->out_row, i = at / s->out_row % s->m, b = at / s->out_batch;
    char want[16];
    memset(want, OUT_FILL, sizeof want); /* between the rows nothing is written */
    if (j < s->n) ts_scalar_store(type, expected(type, line_at(&rows, b, i), line_at(&columns, b, j), s->k), want);
    if (memcmp(p->out + at * size, want, (size_t)size) == 0) continue;
    const ts_scalar got = ts_scalar_load(type, p->out + at * size), sum = ts_scalar_load(type, want);
    if (are_same_but_nan(type, got, sum)) continue;
    ck_abort_msg("%s %d x %d x %d x %d strides %d,%d %d,%d at %d,%d,%d: %llx, expected %llx", ts_dtype_name(type),
                 (int)s->batch, (int)s->m, (int)s->n, (int)s->k, (int)s->lhs_row, (int)s->lhs_col, (int)s->rhs_row,
                 (int)s->rhs_col, (int)b, (int)i, (int)j, (unsigned long long)got.bits, (unsigned long long)sum.bits);
  }
  free_lines(&rows, s->batch);
  free_lines(&columns, s->batch);
}

static void check_product(ts_dtype type, const product *p, int64_t stride) {
  check_elements(type, p, &p->shape, stride);
}

__attribute__((unused)) static void check(const ts_gemm *gemm, ts_dtype type, int64_t batch, int64_t m, int64_t n,
                                          int64_t k, layout lhs, layout rhs, const ts_parallel *parallel,
                                          int64_t stride) {
  product p = make_product(type, batch, m, n, k, lhs, rhs);
  ck_assert_ok(run_product(gemm, &p, parallel));
  check_product(type, &p, stride);
  free_product(&p);
}
