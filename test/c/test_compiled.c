/* Random programs, compiled. Fused, unfused, and with more general kernels they have the same bits. All equal the
 * interpreter, except the last digits of transcendental functions; factors of matrices are judged by themselves.
 * Neither donated arguments nor the same program on other arguments at the same time change anything. Signs of complex
 * numbers: random programs have none. TESSERA_RANDOM_SEED and TESSERA_RANDOM_COUNT choose the programs. */
#include "exec/executable.h"
#include "kernel/ref/ref.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"
#include "tool/judge.h"

#include <math.h>

enum { DEFAULT_COUNT = 300, MAX_RESULTS = 16 };

typedef struct program {
  uint64_t seed;
  ts_graph *graph;
  ts_buffer **args;
  size_t params, results;
} program;

static void dump(const program *p) {
  ts_text text = {0};
  if (ts_status_consume_ok(ts_graph_print(p->graph, &text))) fprintf(stderr, "%s", text.data);
  ts_text_deinit(&text);
}

static void run_program(const program *p, const ts_compile_options *options, ts_buffer **args,
                        const ts_run_options *run, ts_buffer **out) {
  ts_executable *exe;
  ts_status status = ts_executable_create(p->graph, options, &exe);
  if (!status) {
    status = ts_executable_run(exe, args, p->params, run, out);
    ts_executable_release(exe);
  }
  if (status) dump(p);
  ck_assert_msg(!status, "seed %llu: %s", (unsigned long long)p->seed, ts_status_message(status));
}

static void compile_and_run(const program *p, const ts_compile_options *options, int threads, ts_buffer **out) {
  ts_run_options run = {.threads = threads};
  run_program(p, options, p->args, &run, out);
}

static void copy_args(const program *p, ts_buffer **args) {
  ck_assert_uint_le(p->params, 64);
  for (size_t i = 0; i < p->params; i++) {
    ck_assert_ok(ts_buffer_create(ts_pool_default(), p->args[i]->dtype, &p->args[i]->shape, &args[i]));
    if (args[i]->bytes > 0) memcpy(args[i]->data, p->args[i]->data, (size_t)args[i]->bytes);
  }
}

/* With copies of the arguments: the arguments in the set are donated, and the others must stay unchanged. */
static void run_donated(const program *p, const ts_compile_options *options, uint64_t donated, ts_buffer **out) {
  ts_run_options run = {.donated = TS_BITS(donated)};
  ts_buffer *args[64];
  char message[TS_COMPARE_TEXT];
  copy_args(p, args);
  run_program(p, options, args, &run, out);
  for (size_t i = 0; i < p->params; i++) {
    if (donated >> i & 1) continue;
    ck_assert_msg(ts_compare_buffers(args[i], p->args[i], 0, message), "seed %llu wrote over argument %zu: %s",
                  (unsigned long long)p->seed, i, message);
    ts_buffer_release(args[i]);
  }
}

/* Programs return real parts of transforms. */
static bool near_transform(const ts_buffer *got, const ts_buffer *expected) {
  const ts_dtype type = got->dtype;
  const double bound = TS_RANDOM_TRANSFORM * (type == TS_F32 ? 0x1p-23 : 0x1p-52);
  if (type != TS_F32 && type != TS_F64) return false;
  for (int64_t i = 0; i < ts_shape_elements(&got->shape); i++) {
    const size_t at = (size_t)i * ts_dtype_size(type);
    const ts_scalar a = ts_scalar_load(type, (const char *)got->data + at);
    const ts_scalar b = ts_scalar_load(type, (const char *)expected->data + at);
    if (ts_ulp_distance(type, a, b) <= TS_RANDOM_ULPS) continue;
    if (!(fabs(ts_scalar_to_f64(type, a) - ts_scalar_to_f64(type, b)) <= bound)) return false;
  }
  return true;
}

/* With the interpreter, whose transforms are sums by their definition. */
static void check_interpreted(const program *p, ts_buffer **got, ts_buffer **expected, int64_t tolerance) {
  bool transformed[MAX_RESULTS];
  char message[TS_COMPARE_TEXT];
  ts_random_transformed(p->graph, transformed);
  for (size_t i = 0; i < p->results; i++) {
    if (ts_compare_buffers(got[i], expected[i], tolerance, message)) continue;
    if (transformed[i] && near_transform(got[i], expected[i])) continue;
    dump(p);
    ck_abort_msg("seed %llu, unfused = interpreter, result %zu: %s", (unsigned long long)p->seed, i, message);
  }
}

static void check_equal(const program *p, const char *path, ts_buffer **got, ts_buffer **expected, int64_t tolerance) {
  char message[TS_COMPARE_TEXT];
  for (size_t i = 0; i < p->results; i++) {
    if (ts_compare_buffers(got[i], expected[i], tolerance, message)) continue;
    dump(p);
    ck_abort_msg("seed %llu, %s, result %zu: %s", (unsigned long long)p->seed, path, i, message);
  }
}

static void free_all(const program *p, ts_buffer **results) {
  for (size_t i = 0; i < p->results; i++) ts_buffer_release(results[i]);
}

/* ---- twice ---- */

typedef struct doubling {
  const ts_graph *from;
  ts_graph *to;
  ts_value_id *maps[2];
} doubling;

static ts_status copy_params(doubling *d) {
  const ts_region *root = ts_graph_region(d->from, TS_ROOT);
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < root->params.count; i++) {
      ts_value_id param = root->params.data[i];
      const ts_value *v = ts_graph_value(d->from, param);
      TS_TRY(ts_graph_add_param(d->to, TS_ROOT, v->dtype, v->shape, &d->maps[k][param]));
    }
  return TS_SUCCESS;
}

/* One after the other, or op by op. */
static ts_status copy_ops(doubling *d, bool interleaved) {
  const ts_region *root = ts_graph_region(d->from, TS_ROOT);
  size_t inner = interleaved ? 2 : 1;
  for (size_t outer = 0; outer < 2 / inner; outer++)
    for (size_t i = 0; i < root->ops.count; i++)
      for (size_t k = 0; k < inner; k++)
        TS_TRY(ts_graph_copy_op(d->from, root->ops.data[i], d->to, TS_ROOT, d->maps[outer + k]));
  return TS_SUCCESS;
}

static ts_status set_results(doubling *d) {
  const ts_region *root = ts_graph_region(d->from, TS_ROOT);
  ts_value_id results[2 * MAX_RESULTS];
  size_t count = root->results.count;
  for (size_t i = 0; i < 2 * count; i++) results[i] = d->maps[i / count][root->results.data[i % count]];
  return ts_graph_set_results(d->to, TS_ROOT, results, 2 * count);
}

static void make_twice(const ts_graph *from, bool interleaved, ts_graph **out) {
  doubling d = {.from = from};
  ck_assert_ok(ts_graph_create(&d.to));
  for (int k = 0; k < 2; k++) ck_assert_ok(TS_NEW_ARRAY(from->values.count, &d.maps[k]));
  ck_assert_ok(copy_params(&d));
  ck_assert_ok(copy_ops(&d, interleaved));
  ck_assert_ok(set_results(&d));
  ts_free(d.maps[0]);
  ts_free(d.maps[1]);
  *out = d.to;
}

/* Parts that are alike share kernels, regions and more, but no values. `expected` is of the program's own arguments. */
static void check_twice(const program *once, const ts_compile_options *plain, ts_buffer **expected) {
  static const ts_compile_options full = {0};
  ts_buffer *args[2 * 64], *got[2 * MAX_RESULTS];
  program other = *once, twice = {.seed = once->seed, .args = args, .params = 2 * once->params};
  ck_assert_ok(ts_random_args(once->seed + 1, once->graph, ts_pool_default(), &other.args));
  for (size_t i = 0; i < once->params; i++) args[i] = once->args[i], args[once->params + i] = other.args[i];
  make_twice(once->graph, once->seed / 3 % 2 == 0, &twice.graph);
  compile_and_run(&twice, &full, 0, got);
  check_equal(once, "first of two = unfused", got, expected, 0);
  ts_buffer *expected_of_other[MAX_RESULTS];
  compile_and_run(&other, plain, 0, expected_of_other);
  check_equal(&other, "second of two = unfused", got + once->results, expected_of_other, 0);
  free_all(once, got);
  free_all(once, got + once->results);
  free_all(once, expected_of_other);
  ts_random_args_free(other.args, other.params);
  ts_graph_destroy(twice.graph);
}

static void check_program(uint64_t seed) {
  static const ts_compile_options plain = {.no_fusion = true, .no_simplify = true}, fused = {.no_simplify = true},
                                  full = {0}, general = {.general_kernels = true};
  ts_random_options options = {.exact_only = seed % 2 == 0};
  program p = {.seed = seed};
  ck_assert_ok(ts_random_graph(seed, &options, &p.graph));
  ck_assert_ok(ts_random_args(seed, p.graph, ts_pool_default(), &p.args));
  p.params = ts_graph_region(p.graph, TS_ROOT)->params.count;
  p.results = ts_graph_region(p.graph, TS_ROOT)->results.count;
  ck_assert_uint_le(p.results, MAX_RESULTS);
  ts_buffer *expected[MAX_RESULTS], *unfused[MAX_RESULTS], *got[MAX_RESULTS];
  ck_assert_ok(ts_judged_run(p.graph, p.args, p.params, expected));
  compile_and_run(&p, &plain, 1, unfused);
  check_interpreted(&p, unfused, expected, options.exact_only ? 0 : TS_RANDOM_ULPS);
  compile_and_run(&p, &fused, 0, got);
  check_equal(&p, "fused = unfused", got, unfused, 0);
  free_all(&p, got);
  compile_and_run(&p, &full, 0, got);
  check_equal(&p, "simplified = unfused", got, unfused, 0);
  free_all(&p, got);
  compile_and_run(&p, &general, 0, got);
  check_equal(&p, "general = unfused", got, unfused, 0);
  free_all(&p, got);
  for (int some = 0; some < 2; some++) {
    run_donated(&p, &full, some ? seed * UINT64_C(0x9E3779B97F4A7C15) : UINT64_MAX, got);
    check_equal(&p, "donated = unfused", got, unfused, 0);
    free_all(&p, got);
  }
  if (seed % 3 == 1) check_twice(&p, &plain, unfused);
  free_all(&p, unfused);
  free_all(&p, expected);
  ts_random_args_free(p.args, p.params);
  ts_graph_destroy(p.graph);
}

START_TEST(compiled_agrees)
{
  const testing_seeds seeds = testing_random_seeds(DEFAULT_COUNT);
  const uint64_t first = seeds.first, count = seeds.count;
  printf("random programs: seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)(first + count - 1));
  for (uint64_t seed = first; seed < first + count; seed++) check_program(seed);
}
END_TEST

/* Every pair of these parts. The complex `sign` rounds both parts from f64, so the formula and the meaning differ by a
 * digit. */
static const double parts[] = {0.0,           -0.0,
                               1.0,           -1.0,
                               3.0,           -4.0,
                               0.1,           1e-30,
                               -1e-44,        5e-324,
                               -5e-324,       2.5e-310,
                               1e-308,        -1e-160,
                               1e160,         3e38,
                               -3.4028235e38, 1e308,
                               -1.5e308,      1.7e308,
                               0.999999,      INFINITY,
                               -INFINITY,     (double)NAN,
                               123456.75,     0x1.fffffffffffffp-1};
enum { PARTS = sizeof parts / sizeof *parts };

static void check_signs(ts_dtype part, const char *complex) {
  const char *real = ts_dtype_name(part);
  char text[400], message[TS_COMPARE_TEXT];
  double re[PARTS * PARTS], im[PARTS * PARTS];
  ts_buffer *expected, *got;
  ts_graph *graph;
  ts_executable *exe;
  for (int i = 0; i < PARTS * PARTS; i++) re[i] = parts[i / PARTS], im[i] = parts[i % PARTS];
  int length = snprintf(text, sizeof text,
                        "graph @main(%%0: %s[%d], %%1: %s[%d]) -> (%s[%d]) {\n"
                        "  %%2 = complex %%0, %%1 : %s[%d]\n  %%3 = sign %%2 : %s[%d]\n  return %%3\n}\n",
                        real, PARTS * PARTS, real, PARTS * PARTS, complex, PARTS * PARTS, complex, PARTS * PARTS,
                        complex, PARTS * PARTS);
  ts_buffer *args[] = {test_vector(part, re, PARTS * PARTS), test_vector(part, im, PARTS * PARTS)};
  ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
  ck_assert_ok(ts_ref_run(graph, args, 2, ts_pool_default(), &expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 2, NULL, &got));
  ck_assert_msg(ts_compare_buffers(got, expected, 2, message), "%s: %s", complex, message);
  ts_buffer_release(got);
  ts_buffer_release(expected);
  for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}

START_TEST(signs_of_complex_numbers)
{
  check_signs(TS_F32, "c64");
  check_signs(TS_F64, "c128");
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("compiled");
  TCase *t = tcase_create("compiled");
  tcase_set_timeout(t, 0);
  tcase_add_test(t, compiled_agrees);
  tcase_add_test(t, signs_of_complex_numbers);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
