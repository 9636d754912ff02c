/* Random programs on meshes are printed as StableHLO, and read back (ir/stablehlo/stablehlo.h, stablehlo/read.h):
 * programs on whole values with their mesh and their shardings, and programs of one partition. TESSERA_RANDOM_SEED and
 * TESSERA_RANDOM_COUNT choose the programs. */
#include "graph_text.h"
#include "ir/stablehlo/stablehlo.h"
#include "kernel/ref/ref.h"
#include "open_order.h"
#include "shard/shard.h"
#include "shard_run.h"
#include "stablehlo/read.h"
#include "testing.h"
#include "tool/compare.h"

enum { DEFAULT_COUNT = 200 };

static const ts_mesh meshes[] = {
    {.rank = 1, .sizes = {2}},
    {.rank = 1, .sizes = {4}, .name = "m", .axis_names = {"x"}},
    {.rank = 2, .sizes = {2, 2}, .axis_names = {"data", "model"}},
    {.rank = 3, .sizes = {2, 1, 2}},
    {.rank = 1, .sizes = {3}},
    {.rank = 2, .sizes = {2, 3}, .name = "grid of 6", .axis_names = {"a b", "1"}},
};

static void check(uint64_t seed, const char *what, ts_status status) {
  ck_assert_msg(!status, "seed %llu, %s: %s", (unsigned long long)seed, what, ts_status_message(status));
}

static ts_graph *make_graph(uint64_t seed) {
  const ts_random_options size = {.steps = 6, .max_elements = 512, .no_factors = true};
  ts_graph *graph;
  check(seed, "making", random_sharded_graph(seed, &size, meshes, sizeof meshes / sizeof *meshes, &graph));
  return graph;
}

static ts_text print(uint64_t seed, const ts_graph *graph, bool replicas) {
  const ts_stablehlo_options options = {.replicas = replicas};
  ts_text module = {0};
  check(seed, "printing", ts_graph_print_stablehlo_with(graph, &options, &module));
  return module;
}

/* ---- programs on whole values ---- */

static void check_shardings(uint64_t seed, const ts_graph *a, const ts_graph *b, ts_root_side side, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const ts_sharding *x = ts_graph_sharding(a, side, i), *y = ts_graph_sharding(b, side, i);
    const bool same = x && y ? ts_sharding_equal(x, y) : (!x || !x->count) && (!y || !y->count);
    ck_assert_msg(same, "seed %llu: the sharding of %s %zu differs\n%s%s", (unsigned long long)seed,
                  side == TS_PARAMS ? "argument" : "result", i, graph_text(a), graph_text(b));
  }
}

static void check_mesh(uint64_t seed, const ts_mesh *a, const ts_mesh *b) {
  char room[2][TS_MESH_NAME];
  ck_assert_msg(a->rank == b->rank && !b->partitioned, "seed %llu: another mesh", (unsigned long long)seed);
  ck_assert_str_eq(ts_mesh_name(a), ts_mesh_name(b));
  for (int32_t i = 0; i < a->rank; i++) {
    ck_assert_int_eq(a->sizes[i], b->sizes[i]);
    ck_assert_str_eq(ts_mesh_axis_name(a, i, room[0]), ts_mesh_axis_name(b, i, room[1]));
  }
}

static int64_t count_constraints(const ts_graph *g) {
  int64_t count = 0;
  for (size_t i = 0; i < g->ops.count; i++) count += g->ops.data[i].code == TS_OP_SHARDING_CONSTRAINT;
  return count;
}

static void check_whole(uint64_t seed, const ts_graph *graph) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  ts_text module = print(seed, graph, false);
  ts_graph *back;
  check(seed, "reading", ts_stablehlo_read_whole(module.data, module.length, ts_mesh_partitions(&graph->mesh), &back));
  check(seed, "verifying", ts_graph_verify(back));
  check_mesh(seed, &graph->mesh, &back->mesh);
  check_shardings(seed, graph, back, TS_PARAMS, root->params.count);
  check_shardings(seed, graph, back, TS_RESULTS, root->results.count);
  ck_assert_int_eq(count_constraints(graph), count_constraints(back));
  ts_text_deinit(&module);
  ts_graph_destroy(back);
}

/* ---- programs of one partition ---- */

/* The read program's arguments: those of the printed one, and its coordinates, if it has any, as the last. */
static tensors with_coordinates(const ts_graph *graph, const tensors *parts, size_t each) {
  const ts_mesh *mesh = &graph->mesh;
  const int32_t partitions = ts_mesh_partitions(mesh);
  const size_t more = each + mesh->coordinates;
  tensors all;
  ck_assert_ok(tensors_make(more * (size_t)partitions, &all));
  for (int32_t p = 0; p < partitions; p++) {
    for (size_t i = 0; i < each; i++) {
      all.data[(size_t)p * more + i] = parts->data[(size_t)p * each + i];
      ts_buffer_retain(all.data[(size_t)p * more + i]);
    }
    if (!mesh->coordinates) continue;
    const ts_shape shape = {.rank = 1, .dims = {mesh->rank}};
    ts_buffer *b;
    int32_t at[TS_MAX_MESH_AXES];
    ck_assert_ok(ts_buffer_create(ts_pool_default(), TS_S32, &shape, &b));
    ts_mesh_coordinates(mesh, p, at);
    memcpy(b->data, at, (size_t)mesh->rank * sizeof *at);
    all.data[(size_t)p * more + each] = b;
  }
  return all;
}

static tensors run(uint64_t seed, const ts_graph *graph, const tensors *parts, size_t each) {
  tensors out;
  const size_t results = ts_graph_region(graph, TS_ROOT)->results.count;
  ck_assert_ok(tensors_make(results * (size_t)ts_mesh_partitions(&graph->mesh), &out));
  check(seed, "running", ts_ref_run_partitions(graph, parts->data, each, ts_pool_default(), out.data));
  return out;
}

/* Collectives tell that a module for partitions is the program of one of them. Those without elements may be left out.
 */
static bool has_collective(const ts_graph *g) {
  for (size_t i = 0; i < g->ops.count; i++) {
    const ts_op *op = &g->ops.data[i];
    const bool is_empty = ts_shape_elements(ts_graph_value(g, op->first_result)->shape) == 0;
    if (ts_op_get_class(op->code) == TS_CLASS_COLLECTIVE && op->code != TS_OP_BARRIER && !is_empty) return true;
  }
  return false;
}

static int64_t seen[TS_OP_COUNT];

/* Of the partitioned program `graph`, with the arguments of all its partitions. */
static void check_parts(uint64_t seed, const ts_graph *graph, const tensors *parts, bool replicas) {
  const int32_t partitions = ts_mesh_partitions(&graph->mesh);
  const ts_stablehlo_grid grid = replicas ? (ts_stablehlo_grid){partitions, 1} : (ts_stablehlo_grid){1, partitions};
  const size_t each = parts->count / (size_t)partitions;
  ts_text module = print(seed, graph, replicas);
  ts_stablehlo_signature signature;
  char message[TS_COMPARE_TEXT];
  ts_graph *back;
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  bool *open;
  ts_status status = ts_stablehlo_read_processes(module.data, module.length, &grid, &back, &signature);
  ck_assert_msg(!status, "seed %llu, reading: %s\n%s", (unsigned long long)seed, ts_status_message(status),
                module.data);
  check(seed, "verifying", ts_graph_verify(back));
  ck_assert_msg(back->mesh.partitioned, "seed %llu: it is not of one partition", (unsigned long long)seed);
  tensors more = with_coordinates(graph, parts, each);
  tensors expected = run(seed, graph, parts, each), results = run(seed, back, &more, each + graph->mesh.coordinates);
  ck_assert_uint_eq(expected.count, results.count);
  ck_assert_ok(open_order_find(graph, &open));
  for (size_t i = 0; i < expected.count; i++)
    ck_assert_msg(open[root->results.data[i % root->results.count]] ||
                      ts_compare_buffers(results.data[i], expected.data[i], 0, message),
                  "seed %llu: %s\n%s%s", (unsigned long long)seed, message, graph_text(graph), graph_text(back));
  for (size_t i = 0; i < back->ops.count; i++) seen[back->ops.data[i].code]++;
  ts_free(open);
  tensors_release(&more);
  tensors_release(&expected);
  tensors_release(&results);
  ts_stablehlo_signature_deinit(&signature);
  ts_text_deinit(&module);
  ts_graph_destroy(back);
}

/* As replicas and as partitions of StableHLO. A module of the second kind tells only by its collectives what it is. */
static void check_both(uint64_t seed, const ts_graph *graph, const tensors *parts) {
  check_parts(seed, graph, parts, true);
  if (has_collective(graph)) check_parts(seed, graph, parts, false);
}

static tensors random_args(uint64_t seed, const ts_graph *graph) {
  tensors args = {.count = ts_graph_region(graph, TS_ROOT)->params.count};
  ck_assert_ok(ts_random_args(seed, graph, ts_pool_default(), &args.data));
  return args;
}

/* The partitions have their parts of the arguments of `whole`, which is not yet partitioned. */
static void check_partitioned(uint64_t seed, const ts_graph *whole, const ts_graph *graph) {
  tensors args = random_args(seed, whole), parts;
  ck_assert_ok(tensors_cut(graph, &args, &parts));
  check_both(seed, graph, &parts);
  tensors_release(&parts);
  tensors_release(&args);
}

/* Each partition has arguments of its own. */
static void check_local(uint64_t seed, const ts_graph *graph) {
  const int32_t partitions = ts_mesh_partitions(&graph->mesh);
  const size_t each = ts_graph_region(graph, TS_ROOT)->params.count - graph->mesh.coordinates;
  tensors parts;
  ck_assert_ok(tensors_make(each * (size_t)partitions, &parts));
  for (int32_t p = 0; p < partitions; p++) {
    tensors args = random_args(seed + (uint64_t)p, graph);
    for (size_t i = 0; i < each; i++) {
      parts.data[(size_t)p * each + i] = args.data[i];
      ts_buffer_retain(args.data[i]);
    }
    tensors_release(&args);
  }
  check_both(seed, graph, &parts);
  tensors_release(&parts);
}

START_TEST(programs_come_back)
{
  const testing_seeds seeds = testing_random_seeds(DEFAULT_COUNT);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++) {
    ts_graph *graph = make_graph(seed), *annotated, *partitioned;
    check_whole(seed, graph);
    ck_assert_ok(ts_shard_annotate(graph, &annotated));
    check_whole(seed, annotated);
    ck_assert_ok(ts_shard_partition(graph, NULL, NULL, &partitioned));
    check_partitioned(seed, graph, partitioned);
    ts_graph_destroy(graph);
    ts_graph_destroy(annotated);
    ts_graph_destroy(partitioned);
  }
  printf("seeds %llu to %llu:", (unsigned long long)seeds.first, (unsigned long long)(seeds.first + seeds.count - 1));
  for (ts_opcode code = TS_FIRST_COLLECTIVE; code <= TS_LAST_COLLECTIVE; code++)
    if (seen[code] > 0) printf(" %lld %s", (long long)seen[code], ts_op_name(code));
  printf("\n");
}
END_TEST

/* One of each, which random programs have not all. */
START_TEST(each_collective_comes_back)
{
  char *text = testing_read("test/golden/ir/mesh_collectives.ts");
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  for (uint64_t seed = 1; seed <= 5; seed++) check_local(seed, graph);
  ts_graph_destroy(graph);
  free(text);
}
END_TEST

/* StableHLO's verifier refuses to gather along a dim without elements. */
START_TEST(nothing_is_gathered_of_nothing)
{
  static const char text[] =
      "graph @t mesh [2] partitioned (%0: f32[0,3], %1: f32[2]) -> (f32[0,3], f32[0,6], f32[4]) {\n"
      "  %2 = all_gather %0 {axes = [0], dim = 0} : f32[0,3]\n"
      "  %3 = all_gather %0 {axes = [0], dim = 1} : f32[0,6]\n"
      "  %4 = all_gather %1 {axes = [0], dim = 0} : f32[4]\n  return %2, %3, %4\n}\n";
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ts_text module = print(0, graph, false);
  const char *first = strstr(module.data, "stablehlo.all_gather");
  const char *second = first ? strstr(first + 1, "stablehlo.all_gather") : NULL;
  ck_assert(second && !strstr(second + 1, "stablehlo.all_gather"));
  ts_text_deinit(&module);
  check_local(0, graph);
  ts_graph_destroy(graph);
}
END_TEST

static Suite *suite(void) {
  Suite *all = suite_create("round_trip_mesh");
  TCase *cases = tcase_create("round_trip_mesh");
  tcase_set_timeout(cases, 0);
  tcase_add_test(cases, each_collective_comes_back);
  tcase_add_test(cases, nothing_is_gathered_of_nothing);
  tcase_add_test(cases, programs_come_back);
  suite_add_tcase(all, cases);
  return all;
}

int main(void) { return testing_run(suite()); }
