/* Largest error of each vector math function, in ULP, as a markdown table (docs/accuracy.md):
 * f32, f16 and bf16 over all inputs for unary functions, f64 and functions of two arguments over
 * samples. The references are the C library's, in double for f32 and in long double for f64.
 *   accuracy [STRIDE [FUNCTION ...]]     STRIDE 1 takes all 2^32 inputs of f32: minutes a function
 * Then, of complex functions at recorded points (complex_check.h), the same names select rows. */
#include "complex_check.h"
#include "jit/session/target.h"
#include "math_check.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 14, MAX_THREADS = 64, SAMPLE_BLOCKS = 256 };

typedef struct worst {
  double error;
  double x, y;
} worst;

/* One function at one type, shared by the threads, which take blocks of inputs in turn. */
typedef struct sweep {
  const math_function *function;
  const ts_kernel *kernel;
  ts_dtype type;
  uint64_t stride; /* of f32's bit patterns; 0: samples */
  uint64_t blocks;
  atomic_ullong next_block;
  pthread_mutex_t lock;
  worst result;
} sweep;

static void note(worst *w, double error, double x, double y) {
  if (error > w->error) *w = (worst){error, x, y};
}

static void merge(sweep *s, const worst *w) {
  pthread_mutex_lock(&s->lock);
  note(&s->result, w->error, w->x, w->y);
  pthread_mutex_unlock(&s->lock);
}

static void fill_patterns(float *x, uint64_t first, uint64_t stride) {
  for (int i = 0; i < BLOCK; i++) {
    uint32_t bits = (uint32_t)(first + (uint64_t)i * stride); /* past the end: some inputs twice */
    memcpy(&x[i], &bits, sizeof(bits));
  }
}

static void *sweep_narrow(void *data) {
  sweep *s = data;
  float *x = aligned_alloc(64, 3 * BLOCK * sizeof(float)), *y = x + BLOCK, *out = y + BLOCK;
  worst w = {0};
  for (uint64_t block; x && (block = atomic_fetch_add(&s->next_block, 1)) < s->blocks;) {
    uint64_t state = block;
    if (s->stride)
      fill_patterns(x, block * BLOCK * s->stride, s->stride);
    else
      math_draw(s->function->op, TS_F32, &state, x, y, BLOCK);
    math_run(s->kernel, x, y, out, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      double a = (double)x[i], b = s->stride ? 0 : (double)y[i];
      note(&w, math_error_f32(out[i], s->function->narrow(a, b)), a, b);
    }
  }
  free(x);
  merge(s, &w);
  return NULL;
}

static void *sweep_wide(void *data) {
  sweep *s = data;
  double *x = aligned_alloc(64, 3 * BLOCK * sizeof(double)), *y = x + BLOCK, *out = y + BLOCK;
  worst w = {0};
  for (uint64_t block; x && (block = atomic_fetch_add(&s->next_block, 1)) < s->blocks;) {
    uint64_t state = block;
    math_draw(s->function->op, TS_F64, &state, x, y, BLOCK);
    math_run(s->kernel, x, y, out, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      note(&w, math_error_f64(out[i], s->function->wide((long double)x[i], (long double)y[i])), x[i], y[i]);
    }
  }
  free(x);
  merge(s, &w);
  return NULL;
}

/* f16 and bf16 are small enough for one thread: all inputs of a unary function, beside samples of a second one. */
static void *sweep_half(void *data) {
  sweep *s = data;
  static uint16_t x[65536], y[65536], out[65536];
  static float drawn[65536], drawn_y[65536];
  bool f16 = s->type == TS_F16;
  uint64_t state = 1;
  math_draw(s->function->op, TS_F32, &state, drawn, drawn_y, 65536);
  for (int i = 0; i < 65536; i++) {
    x[i] = (uint16_t)i;
    y[i] = f16 ? ts_f32_to_f16(drawn_y[i]) : ts_f32_to_bf16(drawn_y[i]);
  }
  math_run(s->kernel, x, y, out, 65536);
  for (int i = 0; i < 65536; i++) {
    double a = (double)(f16 ? ts_f16_to_f32(x[i]) : ts_bf16_to_f32(x[i]));
    double b = (double)(f16 ? ts_f16_to_f32(y[i]) : ts_bf16_to_f32(y[i]));
    double got = (double)(f16 ? ts_f16_to_f32(out[i]) : ts_bf16_to_f32(out[i])), want = s->function->narrow(a, b);
    note(&s->result, f16 ? math_error(got, want, 11, -14, 15) : math_error(got, want, 8, -126, 127), a, b);
  }
  return NULL;
}

static void run_threads(sweep *s, void *(*body)(void *), long threads) {
  pthread_t ids[MAX_THREADS];
  long started = 0;
  while (started < threads - 1 && pthread_create(&ids[started], NULL, body, s) == 0) started++;
  body(s);
  for (long i = 0; i < started; i++) pthread_join(ids[i], NULL);
}

static worst measure(const math_function *f, ts_dtype type, uint64_t stride, long threads) {
  ts_kernel *kernel = NULL;
  ts_status status = math_kernel(f->op, type, &kernel);
  if (status) {
    fprintf(stderr, "%s: %s\n", ts_op_name(f->op), ts_status_message(status));
    exit(EXIT_FAILURE);
  }
  bool all = type == TS_F32 && ts_op_operands(f->op) == 1;
  sweep s = {.function = f, .kernel = kernel, .type = type, .stride = all ? stride : 0, .blocks = SAMPLE_BLOCKS};
  if (all) s.blocks = (((uint64_t)1 << 32) / stride + BLOCK - 1) / BLOCK;
  pthread_mutex_init(&s.lock, NULL);
  if (type == TS_F32)
    run_threads(&s, sweep_narrow, threads);
  else if (type == TS_F64)
    run_threads(&s, sweep_wide, threads);
  else
    sweep_half(&s);
  pthread_mutex_destroy(&s.lock);
  ts_kernel_release(kernel);
  return s.result;
}

static bool wanted(const char *name, int count, char **names) {
  for (int i = 0; i < count; i++) {
    if (strcmp(names[i], name) == 0) return true;
  }
  return count <= 0;
}

static void print_row(const math_function *f, uint64_t stride, long threads) {
  worst narrow = measure(f, TS_F32, stride, threads), f16 = measure(f, TS_F16, 0, 1);
  worst bf16 = measure(f, TS_BF16, 0, 1), wide = measure(f, TS_F64, 0, threads);
  char at[80];
  if (ts_op_operands(f->op) == 2)
    snprintf(at, sizeof(at), "%.9g, %.9g", narrow.x, narrow.y);
  else
    snprintf(at, sizeof(at), "%.9g", narrow.x);
  printf("| %s | %.3f | %s | %.3f | %.3f | %.3f |\n", ts_op_name(f->op), narrow.error, at, f16.error, bf16.error,
         wide.error);
  fflush(stdout);
}

/* ---- complex functions ---- */

static void check(ts_status status) {
  if (!status) return;
  fprintf(stderr, "accuracy: %s\n", ts_status_message(status));
  exit(EXIT_FAILURE);
}

static void print_complex_row(const complex_table *table, const complex_function *f) {
  complex_worst narrow, wide;
  check(complex_measure(table, f, TS_C64, &narrow));
  check(complex_measure(table, f, TS_C128, &wide));
  printf("| %s | %.3f | (%.9g, %.9g) | %.3f | (%.17g, %.17g) |\n", ts_op_name(f->op), narrow.error, narrow.re,
         narrow.im, wide.error, wide.re, wide.im);
}

static void print_specials(void) {
  int64_t points = 0, wrong = 0;
  for (int i = 0; i < complex_special_function_count; i++)
    for (int wide = 0; wide < 2; wide++) {
      complex_specials s;
      check(complex_check_specials(i, wide ? TS_C128 : TS_C64, &s));
      points += s.points;
      wrong += s.wrong;
    }
  printf("\nSpecial values of %d functions: %lld of %lld as the C library has them.\n", complex_special_function_count,
         (long long)(points - wrong), (long long)points);
}

static void print_complex(int count, char **names) {
  complex_table table;
  check(complex_table_read(&table));
  printf("\n| function | c64 | at | c128 | at |\n|---|---|---|---|---|\n");
  for (int i = 0; i < table.function_count; i++)
    if (wanted(ts_op_name(table.functions[i].op), count, names)) print_complex_row(&table, &table.functions[i]);
  printf("\nAt %lld points of c64 and %lld of c128.\n", (long long)table.both, (long long)table.count);
  complex_table_free(&table);
  if (count <= 0) print_specials();
}

int main(int argc, char **argv) {
  uint64_t stride = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  if (stride == 0) {
    fprintf(stderr, "usage: accuracy [STRIDE [FUNCTION ...]]\n");
    return EXIT_FAILURE;
  }
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  long threads = sysconf(_SC_NPROCESSORS_ONLN);
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  printf("| function | f32 | at | f16 | bf16 | f64 |\n|---|---|---|---|---|---|\n");
  for (int i = 0; i < math_function_count; i++) {
    const math_function *f = &math_functions[i];
    if (wanted(ts_op_name(f->op), argc - 2, argv + 2)) print_row(f, stride, threads);
  }
  print_complex(argc - 2, argv + 2);
  return EXIT_SUCCESS;
}
