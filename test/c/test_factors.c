/* lu, qr, eigh and svd by the equations that define their results (tool/judge.h): every type of floats, sizes on both
 * sides of a change of algorithm, batches; NaN and infinities; the same bits on any number of threads and with every
 * instruction set; cancelling; allocations that fail. */
#include "exec/executable.h"
#include "kernel/ref/ref.h"
#include "lesser_isa.h"
#include "linalg_check.h"
#include "routine_check.h"
#include "tensors.h"
#include "testing.h"

#include <math.h>

typedef double number;
#include "matrices.h"

static const ts_dtype types[] = {TS_F32, TS_F64, TS_F16, TS_BF16};
enum { TYPES = sizeof types / sizeof *types, MOST_RESULTS = 3 };

static double epsilon(ts_dtype type) {
  return type == TS_F32 ? 0x1p-23 : type == TS_F64 ? 0x1p-52 : type == TS_F16 ? 0x1p-10 : 0x1p-7;
}

/* ---- programs ---- */

typedef struct factors_case {
  ts_opcode op;
  ts_dtype type;
  int batch, rows, cols;
  bool full;
} factors_case;

typedef struct factors {
  factors_case c;
  ts_graph *graph;
  ts_executable *exe;
  ts_buffer *a, *results[MOST_RESULTS];
  size_t count;
} factors;

static void set(ts_buffer *buffer, int64_t element, double value) {
  ts_scalar_store(buffer->dtype, ts_scalar_from_f64(buffer->dtype, value),
                  (char *)buffer->data + (size_t)element * ts_dtype_size(buffer->dtype));
}

static double at(const ts_buffer *buffer, int64_t element) {
  return ts_scalar_to_f64(
      buffer->dtype,
      ts_scalar_load(buffer->dtype, (const char *)buffer->data + (size_t)element * ts_dtype_size(buffer->dtype)));
}

static factors make(const factors_case *c) {
  factors f = {.c = *c, .count = (size_t)ts_op_results(c->op)};
  ts_value_id first, results[MOST_RESULTS];
  uint64_t seed = 17;
  const ts_shape shape = SHAPE(c->batch, c->rows, c->cols);
  f.graph = test_graph();
  ts_value_id a = test_add_param(f.graph, TS_ROOT, c->type, shape);
  first = test_add_op(f.graph, TS_ROOT, c->op, &(ts_attrs){.factors = {.full = c->full}}, &a, 1);
  for (size_t i = 0; i < f.count; i++) results[i] = first + (ts_value_id)i;
  ck_assert_ok(ts_graph_set_results(f.graph, TS_ROOT, results, f.count));
  ck_assert_ok(ts_buffer_create(ts_pool_default(), c->type, &shape, &f.a));
  for (int64_t i = 0; i < ts_shape_elements(&shape); i++) set(f.a, i, noise(&seed));
  ck_assert_ok(ts_executable_create(f.graph, NULL, &f.exe));
  return f;
}

static void drop_results(factors *f) {
  for (size_t i = 0; i < f->count; i++) {
    ts_buffer_release(f->results[i]);
    f->results[i] = NULL;
  }
}

static void drop(factors *f) {
  drop_results(f);
  ts_buffer_release(f->a);
  ts_executable_release(f->exe);
  ts_graph_destroy(f->graph);
}

static void run(factors *f) {
  drop_results(f);
  ck_assert_ok(ts_executable_run(f->exe, &f->a, 1, NULL, f->results));
}

static void judge(const factors *f) {
  if (!is_compared(f->c.rows, f->c.cols)) return;
  check_linalg(f->graph, &f->a, f->results);
}

/* ---- tests ---- */

static const ts_opcode ops[] = {TS_OP_LU, TS_OP_QR, TS_OP_EIGH, TS_OP_SVD};
enum { OPS = sizeof ops / sizeof *ops };

static const int sizes[] = {0, 1, 2, 3, 5, 8, 16, 17, 32, 33, 64, 65, 97};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void check_case(const factors_case *c) {
  factors f = make(c);
  run(&f);
  judge(&f);
  drop(&f);
}

START_TEST(factors_of_every_size)
{
  static const int batches[] = {0, 1, 2, 9, 21};
  for (int i = 0; i < SIZES; i++) /* both sides of each block size */
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
      if (sizes[i] > 33 && batches[b] != 1 && (batches[b] > 2 || ops[_i / TYPES] != TS_OP_LU)) continue;
      check_case(&(factors_case){ops[_i / TYPES], types[_i % TYPES], batches[b], sizes[i], sizes[i], false});
    }
}
END_TEST

START_TEST(factors_of_every_shape)
{
  static const int shapes[][2] = {{0, 3}, {3, 0}, {1, 4},  {4, 1},  {2, 3},   {3, 2},
                                  {7, 5}, {5, 7}, {40, 9}, {9, 40}, {100, 64}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int full = 0; full < 2; full++)
      for (int which = 0; which < 2; which++)
        check_case(
            &(factors_case){which ? TS_OP_SVD : TS_OP_QR, types[_i], 1 + which, shapes[s][0], shapes[s][1], full});
}
END_TEST

/* In lanes, one matrix is unlike the next, and one of them is not finite: each is as if it were alone. */
START_TEST(neighbours_in_lanes)
{
  enum { KINDS = DEGENERATE_KINDS, BATCH = 2 * KINDS + 1 };
  static const int shapes[][2] = {{1, 1}, {2, 2}, {16, 16}, {6, 13}, {16, 3}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int o = 1; o < OPS; o++) {
      const int m = shapes[s][0], n = shapes[s][1], size = m * n;
      if (m != n && ops[o] == TS_OP_EIGH) continue;
      factors f = make(&(factors_case){ops[o], types[_i % 2], BATCH, m, n, _i / 2});
      for (int b = 0; b < KINDS; b++)
        for (int64_t i = 0; i < size; i++) set(f.a, (int64_t)2 * b * size + i, degenerate(b, i / n, i % n, 120));
      set(f.a, (int64_t)3 * size, NAN);
      run(&f);
      judge(&f);
      for (size_t r = 0; r < f.count; r++) {
        const int64_t elements = ts_shape_elements(&f.results[r]->shape) / BATCH;
        for (int64_t e = 0; e < elements; e++) ck_assert(isnan(at(f.results[r], 3 * elements + e)));
      }
      drop(&f);
    }
}
END_TEST

/* Differences of eigenvalues in f32 from the same matrices in f64. They are less than hundreds of rotations with errors
 * of f32 would make. In units of half the last place of the largest value; measured are 0.59 and 1.0, with rotations
 * whose angles are f32 1.7 and 4.5. */
START_TEST(errors_of_rotations_do_not_add_up)
{
  enum { BATCH = 128, N = 16 };
  static const struct {
    ts_opcode op;
    double most;
  } ops_with_values[] = {{TS_OP_EIGH, 0.8}, {TS_OP_SVD, 1.4}};
  const ts_opcode op = ops_with_values[_i].op;
  const int values = op == TS_OP_SVD;
  factors f = make(&(factors_case){op, TS_F32, BATCH, N, N, false}),
          g = make(&(factors_case){op, TS_F64, BATCH, N, N, false});
  for (int64_t i = 0; i < (int64_t)BATCH * N * N; i++) set(g.a, i, at(f.a, i));
  run(&f);
  run(&g);
  double sum = 0;
  for (int64_t i = 0; i < (int64_t)BATCH * N; i++)
    sum += fabs(at(f.results[values], i) - at(g.results[values], i)) / fabs(at(g.results[values], i / N * N));
  ck_assert_double_le(sum / (BATCH * N), ops_with_values[_i].most * 0x1p-24);
  drop(&f);
  drop(&g);
}
END_TEST

START_TEST(degenerate_matrices)
{
  static const int shapes[][2] = {{1, 1}, {2, 2}, {6, 6}, {40, 40}, {9, 4}, {4, 9}, {33, 20}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int o = 0; o < OPS; o++)
      for (int t = 0; t < 2; t++) {
        const int m = shapes[s][0], n = shapes[s][1];
        if (m != n && (ops[o] == TS_OP_LU || ops[o] == TS_OP_EIGH)) continue;
        factors f = make(&(factors_case){ops[o], types[t], 1, m, n, t});
        for (int64_t i = 0; i < (int64_t)m * n; i++) set(f.a, i, degenerate(_i, i / n, i % n, 120));
        run(&f);
        judge(&f);
        drop(&f);
      }
}
END_TEST

/* Matrices whose parts of 16 to 32 rows are merged. Their kinds: known values in ascending order (kinds 0 to 2), pairs
 * that agree to the last bit (Wilkinson's), copies of one matrix joined by almost nothing, few different values, values
 * of very different sizes, unjoined parts. */
enum { MERGED_KINDS = 8 };

static double merged(int kind, int64_t i, int64_t k, int64_t n) {
  const bool beside = i == k + 1 || k == i + 1;
  const int64_t low = i < k ? i : k;
  switch (kind) {
  case 0: return i == k ? 2 : beside ? -1 : 0;                                        /* 2 - 2 cos(pi j / (n + 1)) */
  case 1: return i == k ? 0 : beside ? sqrt((double)((low + 1) * (n - 1 - low))) : 0; /* 1 - n, 3 - n .. n - 1 */
  case 2: return (i == k) - 2.0 / (double)n;                                          /* a reflection: -1, 1, 1 .. */
  case 3: return i == k ? fabs((double)(2 * i + 1 - n) / 2) : beside;
  case 4: return i == k ? fabs((double)(i % 21 - 10)) : !beside ? 0 : low % 21 == 20 ? 1e-7 : 1;
  case 5: return i == k ? (double)(i % 3) : 0.125 * beside * (double)(low % 5 == 0);
  case 6: return beside || i == k ? ldexp(1 + 0.25 * beside, -(int)(low % 40)) : 0;
  default: return i == k ? 1.0 / (double)(1 + i) : beside * (double)(low % 8 != 7);
  }
}

static double known(int kind, int64_t j, int64_t n) {
  switch (kind) {
  case 0: return 2 - 2 * cos(3.141592653589793 * (double)(j + 1) / (double)(n + 1));
  case 1: return (double)(2 * j + 1 - n);
  default: return j == 0 ? -1 : 1;
  }
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void check_known(const factors *f, int kind) {
  const int64_t n = f->c.rows;
  double values[200], most = 0;
  ck_assert_int_le(n, 200);
  for (int64_t j = 0; j < n; j++) {
    values[j] = at(f->results[0], j);
    most = fmax(most, fabs(values[j]));
  }
  qsort(values, (size_t)n, sizeof *values, by_value);
  for (int64_t j = 0; j < n; j++)
    ck_assert_msg(fabs(values[j] - known(kind, j, n)) <= 10 * sqrt((double)n) * epsilon(f->c.type) * most,
                  "value %d of %d by %d, kind %d, is %.17g, not %.17g", (int)j, (int)n, (int)n, kind, values[j],
                  known(kind, j, n));
}

START_TEST(merged_parts)
{
  static const int ns[] = {33, 64, 65, 129};
  for (size_t s = 0; s < sizeof ns / sizeof *ns; s++)
    for (int t = 0; t < 2; t++) {
      const int64_t n = ns[s];
      factors f = make(&(factors_case){TS_OP_EIGH, types[t], 1, ns[s], ns[s], false});
      for (int64_t i = 0; i < n * n; i++) set(f.a, i, merged(_i, i / n, i % n, n));
      run(&f);
      judge(&f);
      if (_i < 3) check_known(&f, _i);
      drop(&f);
    }
}
END_TEST

/* The signs of Nx's reflectors: a column with nothing below its diagonal is not reflected, also where rounding leaves
 * something of that nothing, and so keeps the sign of its diagonal; any other gets a positive one. */
typedef struct signs_case {
  int rows, cols;
  double a[16], q[16], r[16];
} signs_case;

static const signs_case signed_factors[] = {
    {3, 3, {-3, 2, 1, 0, 1, 1, 0, 0, -1}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, {-3, 2, 1, 0, 1, 1, 0, 0, -1}},
    {3,
     3,
     {2, -2, 18, 2, 1, 0, 1, 2, 0},
     {2 / 3.0, 2 / 3.0, 1 / 3.0, 2 / 3.0, -1 / 3.0, -2 / 3.0, 1 / 3.0, -2 / 3.0, 2 / 3.0},
     {3, 0, 12, 0, -3, 12, 0, 0, 6}},
    {4,
     3,
     {1, -1, 4, 1, 4, -2, 1, 4, 2, 1, -1, 0},
     {0.5, -0.5, 0.5, -0.5, 0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5, 0.5, 0.5, -0.5, -0.5, 0.5},
     {2, 3, 2, 0, 5, -2, 0, 0, 4, 0, 0, 0}},
    {4,
     3,
     {3, 2, 1, 0, -1, 1, 0, 0, -1, 0, 0, 0},
     {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1},
     {3, 2, 1, 0, -1, 1, 0, 0, -1, 0, 0, 0}},
    {2, 3, {0, -2, 1, 2, 0, 0}, {0, 1, 1, 0}, {2, 0, 0, 0, -2, 1}},
    {2, 3, {-2, 0, 1, 0, 3, -1}, {1, 0, 0, 1}, {-2, 0, 1, 0, 3, -1}},
    {2, 2, {-1, 1, 1e-6, 1}, {1, 0, 0, 1}, {-1, 1, 0, 1}},
};

static void check_values(const factors *f, int result, const double *expected, double scale) {
  const ts_buffer *buffer = f->results[result];
  for (int64_t i = 0; i < ts_shape_elements(&buffer->shape); i++)
    ck_assert_msg(fabs(at(buffer, i) - scale * expected[i]) <= 4e-6 * scale, "element %d of result %d is %g, not %g",
                  (int)i, result, at(buffer, i), scale * expected[i]);
}

START_TEST(signs_are_those_of_reflectors)
{
  static const double scales[] = {1, 0x1p-60, 0x1p60};
  const signs_case *c = &signed_factors[_i];
  for (int t = 0; t < 2; t++)
    for (int s = 0; s < 3; s++) {
      factors f = make(&(factors_case){TS_OP_QR, types[t], 1, c->rows, c->cols, true});
      for (int64_t i = 0; i < (int64_t)c->rows * c->cols; i++) set(f.a, i, scales[s] * c->a[i]);
      run(&f);
      check_values(&f, 0, c->q, 1);
      check_values(&f, 1, c->r, scales[s]);
      drop(&f);
    }
}
END_TEST

/* A matrix with NaN or infinities ends like any other, and harms no other of its batch. */
START_TEST(special_values)
{
  static const double special[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e-45, 3e38};
  static const int ns[] = {1, 2, 5, 40}, batches[] = {1, 9};
  for (int i = 0; i < 4; i++)
    for (int b = 0; b < 2; b++)
      for (int v = 0; v < 7; v++)
        for (int many = 0; many < 2; many++) {
          if (ns[i] > 33 && batches[b] > 1 && v > 0) continue; /* as small ones */
          factors f = make(&(factors_case){ops[_i], TS_F32, batches[b], ns[i], ns[i], false});
          const int64_t size = (int64_t)ns[i] * ns[i], place = batches[b] / 2 * size;
          for (int64_t e = many ? 0 : size / 2; e < (many ? size : size / 2 + 1); e++) set(f.a, place + e, special[v]);
          run(&f);
          judge(&f);
          for (size_t r = 0; v < 3 && f.c.op != TS_OP_LU && r < f.count; r++) {
            const int64_t elements = ts_shape_elements(&f.results[r]->shape) / batches[b];
            for (int64_t e = 0; e < elements; e++) ck_assert(isnan(at(f.results[r], batches[b] / 2 * elements + e)));
          }
          drop(&f);
        }
}
END_TEST

/* Whatever stands above the diagonal, `eigh` has the same results. */
START_TEST(a_triangle_is_not_read)
{
  static const double special[] = {NAN, INFINITY, -INFINITY, 3e38, 1e-45};
  static const int batches[] = {1, 9};
  for (int i = 0; i < SIZES; i++)
    for (int b = 0; b < 2; b++) {
      if (sizes[i] > 33 && batches[b] > 1) continue;
      const int n = sizes[i];
      factors f = make(&(factors_case){TS_OP_EIGH, types[_i], batches[b], n, n, false});
      ts_buffer *before[MOST_RESULTS];
      run(&f);
      for (size_t r = 0; r < f.count; r++) ts_buffer_retain(before[r] = f.results[r]);
      for (int64_t e = 0; e < (int64_t)batches[b] * n * n; e++)
        if (e % n > e / n % n) set(f.a, e, special[(e + e / n) % 5]);
      run(&f);
      judge(&f);
      for (size_t r = 0; r < f.count; r++) {
        ck_assert(!memcmp(before[r]->data, f.results[r]->data, (size_t)before[r]->bytes));
        ts_buffer_release(before[r]);
      }
      if (n <= 17) {
        drop_results(&f);
        ck_assert_ok(ts_ref_run(f.graph, &f.a, 1, ts_pool_default(), f.results));
        judge(&f);
      }
      drop(&f);
    }
}
END_TEST

static const factors_case shared[] = {{TS_OP_LU, TS_F32, 1, 300, 300, false},   {TS_OP_LU, TS_F16, 30, 7, 7, false},
                                      {TS_OP_QR, TS_F32, 70, 20, 12, true},     {TS_OP_QR, TS_BF16, 3, 60, 90, false},
                                      {TS_OP_EIGH, TS_F64, 3, 90, 90, false},   {TS_OP_EIGH, TS_F16, 90, 6, 6, false},
                                      {TS_OP_SVD, TS_F32, 3, 70, 40, true},     {TS_OP_SVD, TS_F16, 90, 6, 8, false},
                                      {TS_OP_QR, TS_F64, 37, 16, 16, false},    {TS_OP_EIGH, TS_F32, 67, 16, 16, false},
                                      {TS_OP_SVD, TS_F64, 67, 5, 16, true},     {TS_OP_QR, TS_F32, 1, 200, 150, true},
                                      {TS_OP_EIGH, TS_F64, 1, 150, 150, false}, {TS_OP_SVD, TS_F32, 1, 150, 170, false},
                                      {TS_OP_QR, TS_F64, 1, 1500, 45, false},   {TS_OP_SVD, TS_F32, 1, 45, 1501, false},
                                      {TS_OP_EIGH, TS_F32, 1, 530, 530, false}, {TS_OP_SVD, TS_F32, 1, 530, 520, true}};
enum { SHARED = sizeof shared / sizeof *shared, LARGE = 2 }; /* the last ones are too large to be repeated often */

static void check_routine(const factors_case *c, void (*check)(const ts_graph *graph, ts_buffer *const *args)) {
  factors f = make(c);
  check(f.graph, &f.a);
  drop(&f);
}

START_TEST(the_same_bits_on_any_number_of_threads)
{ check_routine(&shared[_i], check_routine_threads); }
END_TEST

START_TEST(a_cancelled_run_ends)
{ check_routine(&shared[_i], check_routine_cancelled); }
END_TEST

START_TEST(every_allocation_failing)
{ check_routine(&shared[_i], check_routine_allocations); }
END_TEST

int main(void) {
  Suite *suite = suite_create("factors");
  TCase *values = tcase_create("values"), *memory = tcase_create("memory");
  tcase_set_timeout(values, 120);
  tcase_set_timeout(memory, 60);
  testing_add_many(values, factors_of_every_size, OPS * TYPES);
  tcase_add_loop_test(values, factors_of_every_shape, 0, TYPES);
  tcase_add_loop_test(values, neighbours_in_lanes, 0, 4);
  tcase_add_loop_test(values, errors_of_rotations_do_not_add_up, 0, 2);
  testing_add_many(values, degenerate_matrices, DEGENERATE_KINDS);
  tcase_add_loop_test(values, merged_parts, 0, MERGED_KINDS);
  tcase_add_loop_test(values, signs_are_those_of_reflectors, 0, sizeof signed_factors / sizeof *signed_factors);
  tcase_add_loop_test(values, special_values, 0, OPS);
  tcase_add_loop_test(values, a_triangle_is_not_read, 0, TYPES);
  tcase_add_loop_test(values, the_same_bits_on_any_number_of_threads, 0, SHARED);
  test_add_lesser_isas(values);
  tcase_add_checked_fixture(memory, test_leaks_begin_after_products, test_leaks_end);
  tcase_add_loop_test(memory, a_cancelled_run_ends, 0, SHARED - LARGE);
  tcase_add_loop_test(memory, every_allocation_failing, 0, SHARED - LARGE);
  suite_add_tcase(suite, values);
  suite_add_tcase(suite, memory);
  return testing_run(suite);
}
