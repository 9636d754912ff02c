/* Products with quantised weights: compiled against interpreted, for each size of numbers, form and type, few rows and
 * many, sums of one chain and of several blocks; a plain model; special scales; threads, cancelling, allocations that
 * fail; the code of each class of machines. */
#include "exec/executable.h"
#include "jit/session/target.h"
#include "kernel/gemm/quantized.h"
#include "kernel/ref/ref.h"
#include "lesser_isa.h"
#include "routine_check.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include <math.h>
#include <string.h>

static const ts_dtype floats[] = {TS_F32, TS_BF16, TS_F16};
enum { FLOATS = 3, KINDS = 2 * TS_QUANTIZED_FORMS * FLOATS * FLOATS };

typedef struct quantized_case {
  int64_t m, k, n;
  int bits, group;
  ts_quantized_form form;
  ts_dtype type, scales;
} quantized_case;

static uint64_t next(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 32;
}

static ts_buffer *numbers(ts_dtype type, ts_shape shape, uint64_t seed, double scale) {
  ts_buffer *x;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shape, &x));
  for (int64_t i = 0; i < ts_shape_elements(&shape); i++) {
    const uint64_t bits = next(&seed);
    const ts_scalar value = type == TS_U32 ? ts_scalar_from_u64(type, bits)
                                           : ts_scalar_from_f64(type, ((double)bits / 2147483648.0 - 1) * scale);
    ts_scalar_store(type, value, (char *)x->data + i * (int64_t)ts_dtype_size(type));
  }
  return x;
}

static ts_shape panels(const quantized_case *c, int64_t rows) {
  return SHAPE(ts_quantized_panels(c->n), rows, TS_QUANTIZED_COLS);
}

static int make_args(const quantized_case *c, ts_buffer *out[4]) {
  const int64_t groups = ts_quantized_ceil(c->k, c->group);
  out[0] = numbers(c->type, SHAPE(c->m, c->k), 1, 2);
  out[1] = numbers(TS_U32, panels(c, ts_quantized_words(c->k, c->bits)), 2, 0);
  out[2] = numbers(c->scales, panels(c, groups), 3, 0.25);
  if (c->form == TS_QUANTIZED_SCALE) return 3;
  out[3] = numbers(c->scales, panels(c, groups), 4, c->form == TS_QUANTIZED_ZERO ? 16 : 2);
  return 4;
}

static void drop(ts_buffer **args, int count) {
  for (int i = 0; i < count; i++) ts_buffer_release(args[i]);
}

static ts_graph *make_graph(const quantized_case *c, ts_buffer *const *args, int count) {
  ts_graph *graph = test_graph();
  ts_value_id x[4];
  for (int i = 0; i < count; i++) {
    ts_shape shape = {.rank = args[i]->shape.rank};
    for (int32_t d = 0; d < shape.rank; d++) shape.dims[d] = args[i]->shape.dims[d];
    x[i] = test_add_param(graph, TS_ROOT, args[i]->dtype, shape);
  }
  const ts_attrs attrs = {
      .quantized_dot = {.bits = c->bits, .group = c->group, .form = (int32_t)c->form, .cols = (int32_t)c->n}};
  ts_value_id out = test_add_op(graph, TS_ROOT, TS_OP_QUANTIZED_DOT, &attrs, x, (size_t)count);
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, &out, 1));
  return graph;
}

static ts_buffer *compiled(const ts_graph *graph, ts_buffer *const *args, int count) {
  ts_executable *exe;
  ts_buffer *out;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, (size_t)count, NULL, &out));
  ts_executable_release(exe);
  return out;
}

static ts_buffer *interpreted(const ts_graph *graph, ts_buffer *const *args, int count) {
  ts_buffer *out;
  ck_assert_ok(ts_ref_run(graph, args, (size_t)count, ts_pool_default(), &out));
  return out;
}

static void check_with(const quantized_case *c, ts_buffer *const *args, int count) {
  ts_graph *graph = make_graph(c, args, count);
  test_equal(compiled(graph, args, count), interpreted(graph, args, count));
  ts_graph_destroy(graph);
}

static void check(const quantized_case *c) {
  ts_buffer *args[4];
  const int count = make_args(c, args);
  check_with(c, args, count);
  drop(args, count);
}

static quantized_case kind_of(int i) {
  quantized_case c = {.bits = i % 2 ? 8 : 4, .group = 32};
  c.form = (ts_quantized_form)(i / 2 % TS_QUANTIZED_FORMS);
  c.type = floats[i / 2 / TS_QUANTIZED_FORMS % FLOATS];
  c.scales = floats[i / 2 / TS_QUANTIZED_FORMS / FLOATS];
  return c;
}

START_TEST(every_kind)
{
  static const int64_t sizes[][3] = {{1, 256, 64}, {1, 300, 130}, {3, 77, 65},   {7, 160, 1},
                                     {2, 70, 64},  {12, 130, 66}, {16, 300, 64}, {40, 200, 70}};
  quantized_case c = kind_of(_i);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    c.m = sizes[s][0];
    c.k = sizes[s][1];
    c.n = sizes[s][2];
    check(&c);
  }
}
END_TEST

START_TEST(groups_and_sizes)
{
  static const int groups[] = {8, 24, 64, 256, 1024};
  static const int64_t ks[] = {0, 1, 7, 8, 9, 31, 33, 127, 128, 129, 257, 1000};
  for (size_t k = 0; k < sizeof ks / sizeof *ks; k++) {
    quantized_case c = {.m = _i < 3 ? 1 : 18, .k = ks[k], .n = 66, .group = groups[_i % 5], .type = floats[_i % 3]};
    c.bits = _i % 2 ? 8 : 4;
    c.form = (ts_quantized_form)(_i % 3);
    c.scales = floats[k % 3];
    check(&c);
  }
}
END_TEST

START_TEST(empty)
{
  static const int64_t sizes[][3] = {{0, 64, 64}, {1, 64, 0}, {1, 0, 64}, {33, 0, 70}, {0, 0, 0}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    quantized_case c = kind_of(_i);
    c.m = sizes[s][0];
    c.k = sizes[s][1];
    c.n = sizes[s][2];
    check(&c);
  }
}
END_TEST

/* More than a block of tensor/contract_order.h: blocks are added in pairs. */
START_TEST(long_sums)
{
  static const int64_t ks[] = {8192, 8200, 3 * 8192 + 40, 6 * 8192 - 8};
  quantized_case c = {.m = _i / 4 ? 20 : 1, .k = ks[_i % 4], .n = 5, .bits = 4, .group = 64};
  c.type = _i % 2 ? TS_BF16 : TS_F32;
  c.scales = TS_F32;
  c.form = TS_QUANTIZED_MINIMUM;
  check(&c);
}
END_TEST

/* A row of a product of many rows has the bits of a product of one. */
START_TEST(rows_are_alike)
{
  quantized_case c = kind_of(_i), one;
  ts_buffer *args[4];
  c.m = 67;
  c.k = 520;
  c.n = 100;
  const int count = make_args(&c, args);
  ts_graph *graph = make_graph(&c, args, count);
  ts_buffer *all = compiled(graph, args, count), *whole = args[0];
  one = c;
  one.m = 1;
  ts_buffer *row;
  const ts_shape shape = SHAPE(1, c.k);
  ck_assert_ok(ts_buffer_create(ts_pool_default(), c.type, &shape, &row));
  args[0] = row;
  ts_graph *single = make_graph(&one, args, count);
  const int64_t bytes = c.n * (int64_t)ts_dtype_size(c.type);
  for (int64_t r = 0; r < c.m; r += 11) {
    memcpy(row->data, (char *)whole->data + r * row->bytes, (size_t)row->bytes);
    ts_buffer *out = compiled(single, args, count);
    ck_assert_mem_eq(out->data, (char *)all->data + r * bytes, (size_t)bytes);
    ts_buffer_release(out);
  }
  args[0] = whole;
  ts_buffer_release(row);
  ts_buffer_release(all);
  drop(args, count);
  ts_graph_destroy(single);
  ts_graph_destroy(graph);
}
END_TEST

/* Few numbers, whose sums no order changes. */
START_TEST(plain_model)
{
  quantized_case c = {.m = _i ? 20 : 2, .k = 48, .n = 70, .bits = 4, .group = 16, .type = TS_F32, .scales = TS_F32};
  ts_buffer *args[4];
  c.form = TS_QUANTIZED_MINIMUM;
  const int count = make_args(&c, args);
  float *x = args[0]->data, *s = args[2]->data, *m = args[3]->data;
  const uint32_t *words = args[1]->data;
  for (int64_t i = 0; i < c.m * c.k; i++) x[i] = (float)(i % 7 - 3);
  for (int64_t i = 0; i < 2 * 3 * 64; i++) s[i] = (float)(1 << i % 3);
  for (int64_t i = 0; i < 2 * 3 * 64; i++) m[i] = (float)(i % 5);
  ts_graph *graph = make_graph(&c, args, count);
  ts_buffer *out = compiled(graph, args, count);
  for (int64_t i = 0; i < c.m; i++)
    for (int64_t j = 0; j < c.n; j++) {
      float sum = 0;
      for (int64_t k = 0; k < c.k; k++) {
        const int64_t panel = j / 64, group = (panel * 3 + k / 16) * 64 + j % 64;
        const uint32_t q = words[(panel * 6 + k / 8) * 64 + j % 64] >> (k % 8 * 4) & 15;
        sum += x[i * c.k + k] * ((float)q * s[group] - m[group]);
      }
      ck_assert_float_eq(((float *)out->data)[i * c.n + j], sum);
    }
  ts_buffer_release(out);
  drop(args, count);
  ts_graph_destroy(graph);
}
END_TEST

/* Infinite and NaN scales, and those whose weights overflow or are subnormal. */
START_TEST(special_scales)
{
  static const float special[] = {INFINITY, -INFINITY, NAN, 3e38f, 1e-44f, 1e-39f, -0.0f, 1.17e-38f};
  quantized_case c = kind_of(_i);
  ts_buffer *args[4];
  c.m = _i % 5 == 0 ? 40 : _i % 5 == 1 ? 6 : 1;
  c.k = 96;
  c.n = 66;
  const int count = make_args(&c, args);
  for (int o = 2; o < count; o++)
    for (int64_t i = o; i < ts_shape_elements(&args[o]->shape); i += 5)
      ts_scalar_store(c.scales, ts_scalar_from_f64(c.scales, (double)special[i % 8]),
                      (char *)args[o]->data + i * (int64_t)ts_dtype_size(c.scales));
  check_with(&c, args, count);
  drop(args, count);
}
END_TEST

START_TEST(threads)
{
  quantized_case c = kind_of(3 * _i + 1);
  ts_buffer *args[4];
  c.m = 1 + _i % 3;
  c.k = 4104;
  c.n = 1000;
  const int count = make_args(&c, args);
  ts_graph *graph = make_graph(&c, args, count);
  check_routine_threads(graph, args);
  check_routine_cancelled(graph, args);
  ts_graph_destroy(graph);
  drop(args, count);
}
END_TEST

START_TEST(allocations)
{
  quantized_case c = {.m = _i ? 20 : 1, .k = 64, .n = 64, .bits = 8, .group = 32, .type = TS_BF16, .scales = TS_F32};
  ts_buffer *args[4];
  const int count = make_args(&c, args);
  ts_graph *graph = make_graph(&c, args, count);
  check_routine_allocations(graph, args);
  ts_graph_destroy(graph);
  drop(args, count);
}
END_TEST

/* The parts that products by tiles ask for, with each class of machines that this one belongs to. */
enum { CLASSES = 4 };
static const ts_quantized_code *class_of(int i) {
#if defined(__x86_64__)
  const ts_isa isa = ts_target_host()->isa;
  if (i == 1) return isa == TS_ISA_AVX2 || isa == TS_ISA_AVX512 ? &ts_quantized_avx2 : NULL;
  if (i == 2) return isa == TS_ISA_AVX512 ? &ts_quantized_avx512 : NULL;
  if (i == 3) return isa == TS_ISA_AVX512 && __builtin_cpu_supports("avx512bf16") ? &ts_quantized_bf16 : NULL;
#endif
  return i == 0 ? &ts_quantized_base : NULL;
}

static ts_quantized weight_of(const quantized_case *c, ts_buffer *const *args, int count) {
  return (ts_quantized){.words = args[1]->data,
                        .scales = args[2]->data,
                        .others = count == 4 ? args[3]->data : NULL,
                        .scale_type = c->scales,
                        .type = c->type,
                        .bits = c->bits,
                        .form = c->form,
                        .group = c->group,
                        .k = c->k,
                        .cols = c->n};
}

static void check_part(const ts_quantized_code *code, const ts_quantized *w, ts_quantized_part part) {
  static float want[256 * 64], got[256 * 64];
  ts_quantized_base.unpack(w, (ts_quantized_part){part.panel, 0, 64, 0, 136}, want, 64);
  code->unpack(w, part, got, part.width);
  for (int64_t k = 0; k < part.count; k++)
    for (int64_t c = 0; c < part.width; c++)
      ck_assert_float_eq(got[k * part.width + c], want[(part.k + k) * 64 + part.col + c]);
}

START_TEST(parts)
{
  const ts_quantized_code *code = class_of(_i % CLASSES);
  quantized_case c = kind_of(_i / CLASSES * 5);
  ts_buffer *args[4] = {NULL};
  c.k = 140;
  c.n = 128;
  c.m = 1;
  const int count = make_args(&c, args);
  const ts_quantized w = weight_of(&c, args, count);
  for (int64_t k = 0; code && k < 40; k += 3)
    for (int64_t col = 0; col < 64; col += 16)
      check_part(code, &w, (ts_quantized_part){k % 2, col, col % 32 ? 16 : 32, k, 90 - k});
  drop(args, count);
}
END_TEST

/* A panel's sums by the code of two classes of machines, if this one belongs to both: one row, and several. */
static void check_panels(const ts_quantized *w, const float *x, ts_contract_order order, int first, int second) {
  static const int64_t counts[] = {1, 2, 5, 16};
  static float want[16 * 64 * 8], got[16 * 64 * 8];
  for (int i = 0; i < 8 && class_of(first) && class_of(second); i++) {
    const ts_quantized_rows rows = {w, x, counts[i / 2], order, i % 2 && counts[i / 2] == 1};
    ck_assert_int_le(ts_quantized_work(rows.rows, w->k), (int64_t)(sizeof want / sizeof *want));
    class_of(first)->panel(&rows, 0, want);
    class_of(second)->panel(&rows, 0, got);
    ck_assert_mem_eq(got, want, (size_t)(rows.rows * 64) * sizeof *got);
  }
}

/* Other tests compare the code of this machine's own class with the interpreter. Two lanes are the order of machines
 * with AMX. */
START_TEST(panels_of_classes)
{
  static float x[16 * 300];
  quantized_case c = kind_of(_i);
  ts_buffer *args[4] = {NULL};
  uint64_t seed = 9;
  c.k = 300;
  c.n = 64;
  const int count = make_args(&c, args);
  const ts_quantized w = weight_of(&c, args, count);
  for (int i = 0; i < 16 * 300; i++) x[i] = (float)((int)(next(&seed) % 255) - 127) / 16;
  check_panels(&w, x, ts_contract_order_of(c.type, false), 1, 2);
  check_panels(&w, x, ts_contract_order_of(c.type, false), 2, 3);
  check_panels(&w, x, ts_contract_order_of(c.type, true), 2, 3);
  drop(args, count);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("quantized");
  TCase *t = tcase_create("quantized");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, test_leaks_begin_after_products, test_leaks_end);
  testing_add_many(t, every_kind, KINDS);
  tcase_add_loop_test(t, groups_and_sizes, 0, 6);
  tcase_add_loop_test(t, empty, 0, 4);
  tcase_add_loop_test(t, long_sums, 0, 8);
  testing_add_many(t, rows_are_alike, KINDS);
  tcase_add_loop_test(t, plain_model, 0, 2);
  testing_add_many(t, special_scales, KINDS);
  tcase_add_loop_test(t, threads, 0, 6);
  tcase_add_loop_test(t, allocations, 0, 2);
  tcase_add_loop_test(t, parts, 0, 6 * CLASSES);
  testing_add_many(t, panels_of_classes, KINDS);
  suite_add_tcase(s, t);
  TCase *lesser = tcase_create("lesser");
  tcase_set_timeout(lesser, 600);
  test_add_lesser_isas(lesser);
  suite_add_tcase(s, lesser);
  return s;
}

int main(void) { return testing_run(suite()); }
