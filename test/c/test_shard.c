/* Partitioned programs give what the whole ones give: random programs on random meshes, with random shardings.
 * TESSERA_RANDOM_SEED and TESSERA_RANDOM_COUNT choose which. */
#include "compare.h"
#include "graph_text.h"
#include "kernel/ref.h"
#include "random_internal.h"
#include "shard/shard.h"
#include "testing.h"

enum { DEFAULT_COUNT = 600 };

static const ts_mesh meshes[] = {
    {.rank = 1, .sizes = {2}},       {.rank = 1, .sizes = {4}}, {.rank = 2, .sizes = {2, 2}},
    {.rank = 3, .sizes = {2, 1, 2}}, {.rank = 1, .sizes = {3}}, {.rank = 1, .sizes = {6}},
};

static uint64_t from_environment(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Each axis cuts a dim that it divides, or none. */
static void random_sharding(rng *r, const ts_mesh *mesh, const ts_shape *shape, ts_sharding *out) {
  ts_dims axes = {0}, dims = {0};
  out->count = 0;
  for (int32_t axis = 0; axis < mesh->rank; axis++) {
    ts_sharding more;
    if (shape->rank == 0 || rng_chance(r, 30)) continue;
    axes.dims[axes.rank++] = axis;
    dims.dims[dims.rank++] = rng_below(r, shape->rank);
    if (ts_status_consume_ok(ts_sharding_make(mesh, &axes, &dims, shape, &more)))
      *out = more;
    else
      axes.rank--, dims.rank--;
  }
}

static ts_status add_shardings(rng *r, ts_graph *graph, ts_root_side side, int percent) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  size_t count = side == TS_PARAMS ? root->params.count : root->results.count;
  for (size_t i = 0; i < count; i++) {
    ts_sharding sharding;
    ts_value_id value = side == TS_PARAMS ? root->params.data[i] : root->results.data[i];
    random_sharding(r, &graph->mesh, ts_graph_value(graph, value)->shape, &sharding);
    if (rng_chance(r, percent)) TS_TRY(ts_graph_set_sharding(graph, side, i, &sharding));
  }
  return TS_SUCCESS;
}

/* Half of the programs have integers only: nothing in them depends on the order of a reduction. */
static ts_status make_graph(uint64_t seed, int steps, int64_t elements, ts_graph **out) {
  static const uint32_t integers = 1u << TS_U8 | 1u << TS_S8 | 1u << TS_S32 | 1u << TS_S64;
  ts_random_options options = {.steps = steps, .max_elements = elements, .dtypes = seed % 2 ? integers : 0};
  rng r = {.state = seed ^ UINT64_C(0x9E3779B97F4A7C15)};
  TS_TRY(ts_random_graph(seed, &options, out));
  ts_status status = ts_graph_set_mesh(*out, &meshes[seed / 2 % (sizeof meshes / sizeof *meshes)]);
  if (!status) status = add_shardings(&r, *out, TS_PARAMS, 80);
  if (!status) status = add_shardings(&r, *out, TS_RESULTS, 40);
  return status;
}

/* ---- running all partitions ---- */

typedef struct tensors {
  ts_buffer **data;
  size_t count;
} tensors;

static void release(tensors *t) {
  for (size_t i = 0; t->data && i < t->count; i++) ts_buffer_release(t->data[i]);
  ts_free(t->data);
}

static ts_status make(size_t count, tensors *out) {
  out->count = count;
  return TS_NEW_ARRAY(count + 1, &out->data);
}

static ts_status cut_all(const ts_graph *g, const tensors *args, tensors *out) {
  TS_TRY(make(args->count * (size_t)ts_mesh_partitions(&g->mesh), out));
  for (size_t i = 0; i < out->count; i++)
    TS_TRY(ts_shard_cut(&g->mesh, ts_graph_sharding(g, TS_PARAMS, i % args->count), args->data[i % args->count],
                        (int32_t)(i / args->count), ts_pool_default(), &out->data[i]));
  return TS_SUCCESS;
}

static ts_status join_all(const ts_graph *g, const tensors *parts, tensors *out) {
  for (size_t i = 0; i < out->count; i++) {
    ts_buffer *all[TS_MAX_PARTITIONS];
    for (int32_t p = 0; p < ts_mesh_partitions(&g->mesh); p++) all[p] = parts->data[(size_t)p * out->count + i];
    TS_TRY(ts_shard_join(&g->mesh, ts_graph_sharding(g, TS_RESULTS, i), all, ts_pool_default(), &out->data[i]));
  }
  return TS_SUCCESS;
}

static ts_status run_partitions(const ts_graph *partitioned, const tensors *args, tensors *out) {
  tensors parts = {0}, results = {0};
  size_t count = ts_graph_region(partitioned, TS_ROOT)->results.count;
  ts_status status = make(count, out);
  if (!status) status = cut_all(partitioned, args, &parts);
  if (!status) status = make(count * (size_t)ts_mesh_partitions(&partitioned->mesh), &results);
  if (!status) status = ts_ref_run_partitions(partitioned, parts.data, args->count, ts_pool_default(), results.data);
  if (!status) status = join_all(partitioned, &results, out);
  release(&parts);
  release(&results);
  return status;
}

static ts_status run_whole(const ts_graph *graph, const tensors *args, tensors *out) {
  TS_TRY(make(ts_graph_region(graph, TS_ROOT)->results.count, out));
  return ts_ref_run(graph, args->data, args->count, ts_pool_default(), out->data);
}

/* ---- random programs ---- */

static int64_t seen[TS_OP_COUNT], split, exact;

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

static void check_seed(uint64_t seed) {
  ts_graph *graph, *partitioned, *annotated;
  ts_shard_report report = {0};
  tensors args = {0}, whole = {0}, parts = {0};
  char message[TS_COMPARE_TEXT];
  unsigned long long number = seed;
  ck_assert_ok(make_graph(seed, 8, 1024, &graph));
  ck_assert_ok(ts_graph_verify(graph));
  ts_status status = ts_shard_partition(graph, NULL, &report, &partitioned);
  ck_assert_msg(!status, "seed %llu: %s", number, ts_status_message(status));
  status = ts_graph_verify(partitioned);
  ck_assert_msg(!status, "seed %llu: %s", number, ts_status_message(status));
  ck_assert_ok(ts_shard_annotate(graph, &annotated));
  ck_assert_ok(ts_graph_verify(annotated));
  check_text(seed, partitioned);
  count_ops(partitioned);
  args.count = ts_graph_region(graph, TS_ROOT)->params.count;
  ck_assert_ok(ts_random_args(seed, graph, ts_pool_default(), &args.data));
  ck_assert_ok(run_whole(graph, &args, &whole));
  status = run_partitions(partitioned, &args, &parts);
  ck_assert_msg(!status, "seed %llu: %s", number, ts_status_message(status));
  for (size_t i = 0; i < whole.count && !report.splits_float_reductions; i++)
    ck_assert_msg(ts_compare_buffers(parts.data[i], whole.data[i], 0, message), "seed %llu, result %zu: %s", number, i,
                  message);
  report.splits_float_reductions ? split++ : exact++;
  release(&args);
  release(&whole);
  release(&parts);
  ts_shard_report_deinit(&report);
  ts_graph_destroy(graph);
  ts_graph_destroy(partitioned);
  ts_graph_destroy(annotated);
}

START_TEST(partitions_give_the_whole)
{
  uint64_t first = from_environment("TESSERA_RANDOM_SEED", 1);
  uint64_t count = from_environment("TESSERA_RANDOM_COUNT", DEFAULT_COUNT);
  for (uint64_t seed = first; seed < first + count; seed++) check_seed(seed);
  if (count < DEFAULT_COUNT) return;
  ck_assert_int_gt(exact, (int64_t)count * 3 / 4);
  ck_assert_int_gt(split, 5);
  ck_assert(seen[TS_OP_ALL_GATHER] > 20 && seen[TS_OP_ALL_TO_ALL] > 5 && seen[TS_OP_ALL_REDUCE_SUM] > 5);
  ck_assert(seen[TS_OP_DYNAMIC_SLICE] > 20);
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
  ck_assert(report.splits_float_reductions);
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
  release(&args);
  release(&whole);
  release(&parts);
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
  tcase_add_test(cases, split_reductions_keep_their_bound);
  tcase_add_test(cases, failing_allocations_leak_nothing);
  tcase_add_test(cases, what_cannot_be_partitioned);
  tcase_add_test(cases, a_cancelled_partitioning);
  suite_add_tcase(all, cases);
  return testing_run(all);
}
