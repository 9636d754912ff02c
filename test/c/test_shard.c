/* Partitioned programs have the results of whole ones: random programs on random meshes, with random shardings.
 * TESSERA_RANDOM_SEED and TESSERA_RANDOM_COUNT choose the programs. */
#include "bounds.h"
#include "graph_text.h"
#include "shard/shard.h"
#include "shard/varying.h"
#include "shard_run.h"
#include "testing.h"

enum { DEFAULT_COUNT = 2000 };

static const ts_mesh meshes[] = {
    {.rank = 1, .sizes = {2}},       {.rank = 1, .sizes = {4}}, {.rank = 2, .sizes = {2, 2}},
    {.rank = 3, .sizes = {2, 1, 2}}, {.rank = 1, .sizes = {3}}, {.rank = 1, .sizes = {6}},
};

static ts_status make_graph(uint64_t seed, int steps, int64_t elements, ts_graph **out) {
  ts_random_options size = {.steps = steps, .max_elements = elements};
  return random_sharded_graph(seed, &size, meshes, sizeof meshes / sizeof *meshes, out);
}

/* ---- random programs ---- */

static int64_t seen[TS_OP_COUNT], split, exact;
static int64_t judged;        /* split programs of most of whose elements something is known */
static bound_counts elements; /* of the programs with split reductions */

static void count_ops(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++) seen[graph->ops.data[i].code]++;
}

/* The text parses back to itself, and to a program that verifies. */
static void check_text(uint64_t seed, const ts_graph *graph) {
  char *text = graph_text(graph), *again;
  ts_graph *parsed;
  ts_status status = ts_graph_parse(text, strlen(text), &parsed);
  ck_assert_msg(!status, "seed %llu: %s\n%s", (unsigned long long)seed, ts_status_message(status), text);
  ck_assert_ok(ts_graph_verify(parsed));
  again = graph_text(parsed);
  ck_assert_str_eq(text, again);
  ts_free(text);
  ts_free(again);
  ts_graph_destroy(parsed);
}

/* A random program, whole and partitioned, with both results. */
typedef struct random_case {
  ts_graph *graph, *partitioned;
  ts_shard_report report;
  tensors args, parts;
} random_case;

static void set_plain(uint64_t seed, ts_buffer *b) {
  rng r = {.state = seed};
  for (int64_t k = 0; ts_dtype_is_float(b->dtype) && k < ts_shape_elements(&b->shape); k++)
    ts_scalar_store(b->dtype, ts_scalar_from_f64(b->dtype, (double)rng_between(&r, -2000, 2000) / 1000),
                    (char *)b->data + (size_t)k * ts_dtype_size(b->dtype));
}

static void case_init(uint64_t seed, random_case *out) {
  *out = (random_case){0};
  ck_assert_ok(make_graph(seed, 8, 1024, &out->graph));
  ck_assert_ok(ts_graph_verify(out->graph));
  ts_status status = ts_shard_partition(out->graph, NULL, &out->report, &out->partitioned);
  if (!status) status = ts_graph_verify(out->partitioned);
  if (!status) status = ts_varying_check(out->partitioned);
  ck_assert_msg(!status, "seed %llu: %s", (unsigned long long)seed, ts_status_message(status));
  out->args.count = ts_graph_region(out->graph, TS_ROOT)->params.count;
  ck_assert_ok(ts_random_args(seed, out->graph, ts_pool_default(), &out->args.data));
  for (size_t i = 0; random_has_sums(seed) && i < out->args.count; i++) set_plain(seed + i, out->args.data[i]);
}

static void case_deinit(random_case *c) {
  tensors_release(&c->args);
  tensors_release(&c->parts);
  ts_shard_report_deinit(&c->report);
  ts_graph_destroy(c->graph);
  ts_graph_destroy(c->partitioned);
}

/* To the bit if no float reduction is split, else within its bound. */
static bool parts_hold(const random_case *c, bound_counts *counts, char message[TS_COMPARE_TEXT]) {
  bound *bounds;
  bool holds = true;
  ck_assert_ok(TS_NEW_ARRAY(c->parts.count + 1, &bounds));
  ck_assert_ok(bounds_run(c->graph, &c->args, &c->report, bounds));
  for (size_t i = 0; holds && i < c->parts.count; i++)
    holds = bounds_hold(&bounds[i], c->parts.data[i], counts, message);
  bounds_release(bounds, c->parts.count);
  ts_free(bounds);
  return holds;
}

static void check_annotated(const ts_graph *graph) {
  ts_graph *annotated;
  ck_assert_ok(ts_shard_annotate(graph, &annotated));
  ck_assert_ok(ts_graph_verify(annotated));
  ts_graph_destroy(annotated);
}

static void add_elements(const bound_counts *of) {
  elements.exact += of->exact;
  elements.bounded += of->bounded;
  elements.unknown += of->unknown;
  judged += of->exact + of->bounded > of->unknown;
}

static void check_seed(uint64_t seed) {
  random_case c;
  char message[TS_COMPARE_TEXT];
  bound_counts counts = {0};
  case_init(seed, &c);
  check_annotated(c.graph);
  check_text(seed, c.partitioned);
  count_ops(c.partitioned);
  ts_status status = run_partitions(c.partitioned, &c.args, &c.parts);
  ck_assert_msg(!status, "seed %llu: %s", (unsigned long long)seed, ts_status_message(status));
  bool splits = c.report.split.count > 0;
  ck_assert_msg(parts_hold(&c, &counts, message), "seed %llu: %s", (unsigned long long)seed, message);
  ck_assert(splits || counts.bounded + counts.unknown == 0);
  splits ? split++ : exact++;
  if (splits) add_elements(&counts);
  case_deinit(&c);
}

static void print_seen(uint64_t first, uint64_t count) {
  printf("seeds %llu to %llu: %lld exact, %lld split, %lld judged;", (unsigned long long)first,
         (unsigned long long)(first + count - 1), (long long)exact, (long long)split, (long long)judged);
  for (ts_opcode code = TS_FIRST_COLLECTIVE; code <= TS_LAST_COLLECTIVE; code++)
    if (seen[code] > 0) printf(" %lld %s", (long long)seen[code], ts_op_name(code));
  printf(" %lld while %lld cond; elements of split ones: %lld exact, %lld bounded, %lld unknown\n",
         (long long)seen[TS_OP_WHILE], (long long)seen[TS_OP_COND], (long long)elements.exact,
         (long long)elements.bounded, (long long)elements.unknown);
}

START_TEST(partitions_give_the_whole)
{
  const testing_seeds seeds = testing_random_seeds(DEFAULT_COUNT);
  const uint64_t first = seeds.first, count = seeds.count;
  for (uint64_t seed = first; seed < first + count; seed++) check_seed(seed);
  print_seen(first, count);
  if (count < DEFAULT_COUNT / 2) return;
  ck_assert_int_gt(exact, (int64_t)count / 2);
  ck_assert_int_gt(split, (int64_t)count / 20);
  ck_assert_int_gt(judged, split / 2); /* one program may have more elements than all others */
  ck_assert(seen[TS_OP_ALL_GATHER] > 20 && seen[TS_OP_ALL_TO_ALL] > 5 && seen[TS_OP_ALL_REDUCE_SUM] > 5);
  ck_assert(seen[TS_OP_DYNAMIC_SLICE] > 20 && seen[TS_OP_COLLECTIVE_PERMUTE] > 5);
  ck_assert(seen[TS_OP_WHILE] > 20 && seen[TS_OP_COND] > 20);
}
END_TEST

/* ---- the bounds find faults ---- */

/* The partitioned program with the largest term instead of the terms' sum. */
static ts_graph *without_sums(const ts_graph *partitioned) {
  static const char sum[] = "all_reduce_sum", max[] = "all_reduce_max";
  char *text = graph_text(partitioned);
  ts_graph *wrong;
  for (char *at = text; (at = strstr(at, sum)); at++) memcpy(at, max, sizeof max - 1);
  ck_assert_ok(ts_graph_parse(text, strlen(text), &wrong));
  ts_free(text);
  return wrong;
}

/* Whether wrong sums are found in a program with split reductions; of programs without *out_split stays. */
static bool finds_wrong_sums(uint64_t seed, int64_t *out_split) {
  random_case c;
  char message[TS_COMPARE_TEXT];
  bound_counts counts = {0};
  case_init(seed, &c);
  ts_graph *wrong = without_sums(c.partitioned);
  bool splits = c.report.split.count > 0;
  ck_assert_ok(run_partitions(wrong, &c.args, &c.parts));
  bool found = splits && !parts_hold(&c, &counts, message);
  *out_split += splits && counts.bounded + counts.exact > 0;
  ts_graph_destroy(wrong);
  case_deinit(&c);
  return found;
}

START_TEST(wrong_sums_are_found)
{
  int64_t found = 0, tried = 0;
  for (uint64_t seed = 3; seed < 900; seed += 3) found += finds_wrong_sums(seed, &tried);
  printf("wrong sums: found in %lld of %lld programs\n", (long long)found, (long long)tried);
  ck_assert_int_gt(tried, 5);
  ck_assert_int_gt(found, tried / 3);
}
END_TEST

/* ---- split reductions ---- */

/* All numbers are in [1, 2), so that nothing cancels: an error of one rounding for each of 36 + 24 sums. */
static void check_bound(const char *mesh, const char *cut, const char *type, int64_t ulps) {
  char text[1024], message[TS_COMPARE_TEXT];
  ts_graph *graph, *partitioned;
  ts_shard_report report = {0};
  tensors args = {0}, whole = {0}, parts = {0};
  rng r = {.state = 7};
  snprintf(text, sizeof text,
           "graph @t mesh %s (%%0: %s[24,36] sharded %s, %%1: %s[36,5]) -> (%s[24,5], %s[36], %s[]) {\n"
           "  %%2 = dot_general %%0, %%1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : "
           "%s[24,5]\n  %%3 = reduce_sum %%0 {axes = [0]} : %s[36]\n"
           "  %%4 = reduce_sum %%0 {axes = [0,1]} : %s[]\n  return %%2, %%3, %%4\n}\n",
           mesh, type, cut, type, type, type, type, type, type, type);
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_shard_partition(graph, NULL, &report, &partitioned));
  ck_assert_uint_ge(report.split.count, 2);
  ck_assert_ok(ts_random_args(1, graph, ts_pool_default(), &args.data));
  args.count = 2;
  for (size_t i = 0; i < args.count; i++) {
    ts_buffer *b = args.data[i];
    for (int64_t k = 0; k < ts_shape_elements(&b->shape); k++)
      ts_scalar_store(b->dtype, ts_scalar_from_f64(b->dtype, 1 + (double)rng_below(&r, 1000) / 1000),
                      (char *)b->data + (size_t)k * ts_dtype_size(b->dtype));
  }
  ck_assert_ok(run_whole(graph, &args, &whole));
  ck_assert_ok(run_partitions(partitioned, &args, &parts));
  for (size_t i = 0; i < whole.count; i++)
    ck_assert_msg(ts_compare_buffers(parts.data[i], whole.data[i], ulps, message), "%s %s %s, result %zu: %s", mesh,
                  cut, type, i, message);
  tensors_release(&args);
  tensors_release(&whole);
  tensors_release(&parts);
  ts_shard_report_deinit(&report);
  ts_graph_destroy(graph);
  ts_graph_destroy(partitioned);
}

START_TEST(split_reductions_keep_their_bound)
{
  static const char *const cases[][2] = {{"[2]", "[[0],[]]"},     {"[3]", "[[],[0]]"},    {"[4]", "[[0],[]]"},
                                         {"[6]", "[[],[0]]"},     {"[2,2]", "[[0],[1]]"}, {"[2,2]", "[[],[1,0]]"},
                                         {"[2,1,2]", "[[0],[2]]"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_bound(cases[i][0], cases[i][1], "f32", 60);
    check_bound(cases[i][0], cases[i][1], "f64", 60);
    check_bound(cases[i][0], cases[i][1], "f16", 1); /* f32 until after the collective */
    check_bound(cases[i][0], cases[i][1], "bf16", 1);
  }
}
END_TEST

/* ---- more parts than a permutation lists ---- */

static int32_t count_of(const ts_graph *graph, ts_opcode code) {
  int32_t count = 0;
  for (size_t i = 0; i < graph->ops.count; i++) count += graph->ops.data[i].code == code;
  return count;
}

/* `permutations`: how many ops the partitioned program needs for them. */
static void check_many_parts(const char *text, int32_t permutations) {
  ts_graph *graph, *partitioned;
  tensors args = {0}, parts = {0}, whole = {0};
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_shard_partition(graph, NULL, NULL, &partitioned));
  ck_assert_ok(ts_graph_verify(partitioned));
  ck_assert_int_eq(count_of(partitioned, TS_OP_COLLECTIVE_PERMUTE), permutations);
  args.count = ts_graph_region(graph, TS_ROOT)->params.count;
  ck_assert_ok(ts_random_args(3, graph, ts_pool_default(), &args.data));
  ck_assert_ok(run_whole(graph, &args, &whole));
  ck_assert_ok(run_partitions(partitioned, &args, &parts));
  for (size_t i = 0; i < whole.count; i++)
    ck_assert_msg(ts_compare_buffers(parts.data[i], whole.data[i], 0, message), "%s: %s", text, message);
  tensors_release(&args);
  tensors_release(&whole);
  tensors_release(&parts);
  ts_graph_destroy(graph);
  ts_graph_destroy(partitioned);
}

/* An op lists 64 pairs at most; these need up to 160. */
START_TEST(many_parts)
{
  check_many_parts("graph @t mesh [64] (%0: f32[128,2] sharded [[0],[]]) -> (f32[128,2] sharded [[0],[]]) {\n"
                   "  %1 = reverse %0 {axes = [0]} : f32[128,2]\n  return %1\n}\n",
                   1);
  check_many_parts("graph @t mesh [160] (%0: f32[320,2] sharded [[0],[]]) -> (f32[320,2] sharded [[0],[]]) {\n"
                   "  %1 = reverse %0 {axes = [0]} : f32[320,2]\n  return %1\n}\n",
                   3);
  check_many_parts(
      "graph @t mesh [100] (%0: s32[300,5] sharded [[0],[]]) -> (s32[300,5] sharded [[0],[]]) {\n"
      "  %1 = window_sum %0 {sizes = [3,1], strides = [1,1], low = [1,0], high = [1,0], dilation = [1,1]} : "
      "s32[300,5]\n  return %1\n}\n",
      4);
}
END_TEST

/* ---- faults ---- */

static void try_seed(uint64_t seed) {
  ts_graph *graph = NULL, *partitioned = NULL, *annotated = NULL;
  ts_shard_report report = {0};
  ts_text text = {0};
  ts_status status = make_graph(seed, 4, 64, &graph);
  if (!status) status = ts_shard_annotate(graph, &annotated);
  if (!status) status = ts_shard_partition(graph, NULL, &report, &partitioned);
  if (!status) status = ts_shard_print_report(partitioned, &report, &text);
  ts_status_free(status);
  ts_text_deinit(&text);
  ts_shard_report_deinit(&report);
  ts_graph_destroy(graph);
  ts_graph_destroy(annotated);
  ts_graph_destroy(partitioned);
}

START_TEST(failing_allocations_leak_nothing)
{
  for (uint64_t seed = 3; seed <= 6; seed++) {
    try_seed(seed);
    CK_FAIL_EACH_ALLOCATION(try_seed(seed));
  }
}
END_TEST

static void check_refused(const char *text, const char *message) {
  ts_graph *graph, *partitioned;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ts_status status = ts_shard_partition(graph, NULL, NULL, &partitioned);
  ck_assert_msg(status && strstr(ts_status_message(status), message), "%s", ts_status_message(status));
  ck_assert_ptr_null(partitioned);
  ts_status_free(status);
  ts_graph_destroy(graph);
}

START_TEST(what_cannot_be_partitioned)
{
  check_refused("graph @t(%0: f32[2]) -> (f32[2]) {\n  return %0\n}\n", "the program has no mesh");
  check_refused("graph @t mesh [2] partitioned (%0: f32[2]) -> (f32[2]) {\n  return %0\n}\n",
                "the program is partitioned already");
  check_refused("graph @t mesh [2] (%0: f32[2]) -> (f32[2]) {\n  %1 = all_reduce_sum %0 {axes = [0]} : f32[2]\n"
                "  return %1\n}\n",
                "all_reduce_sum: collectives and callbacks cannot be partitioned");
  check_refused("graph @t mesh [2] (%0: f32[2]) -> (f32[2]) {\n  %1 = callback %0 {index = 0} {\n    types() {\n"
                "      %2 = constant 0 : f32[2]\n      return %2\n    }\n  } : f32[2]\n  return %1\n}\n",
                "callback: collectives and callbacks cannot be partitioned");
}
END_TEST

START_TEST(a_cancelled_partitioning)
{
  static const char text[] =
      "graph @t mesh [2] (%0: f32[2]) -> (f32[2]) {\n  %1 = negate %0 : f32[2]\n  return %1\n}\n";
  const _Atomic bool cancel = true;
  ts_graph *graph, *partitioned;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_error(ts_shard_partition(graph, &cancel, NULL, &partitioned), TS_CANCELLED, "");
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *all = suite_create("shard");
  TCase *cases = tcase_create("shard");
  tcase_set_timeout(cases, 0);
  tcase_add_test(cases, partitions_give_the_whole);
  tcase_add_test(cases, wrong_sums_are_found);
  tcase_add_test(cases, split_reductions_keep_their_bound);
  tcase_add_test(cases, many_parts);
  tcase_add_test(cases, failing_allocations_leak_nothing);
  tcase_add_test(cases, what_cannot_be_partitioned);
  tcase_add_test(cases, a_cancelled_partitioning);
  suite_add_tcase(all, cases);
  return testing_run(all);
}
