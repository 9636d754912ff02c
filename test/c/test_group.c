/* Groups of partitions (group/group.h) have the results of the interpreter, which runs partitions in step: to the bit
 * where bits are defined. TESSERA_RANDOM_SEED and TESSERA_RANDOM_COUNT choose the random programs. */
#include "graph_text.h"
#include "group/group.h"
#include "kernel/ref/ref.h"
#include "shard/shard.h"
#include "shard_run.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include <pthread.h>
#include <unistd.h>

enum { DEFAULT_COUNT = 150 };

/* Runs a group to its end, even after errors. */
static ts_status run_group(const ts_executable *exe, const tensors *args, const ts_group_options *options,
                           tensors *out) {
  ts_group *group;
  ts_run_state state = TS_RUN_PAUSED;
  size_t partitions = (size_t)ts_executable_partitions(exe);
  ts_status status = tensors_make(ts_executable_result_count(exe) * partitions, out);
  if (status) return status;
  TS_TRY(ts_group_create(exe, args->data, args->count / partitions, options, &group));
  while (!status && state == TS_RUN_PAUSED) status = ts_group_advance(group, &state);
  ts_status ended = ts_group_end(group, status ? NULL : out->data);
  return status ? status : ended;
}

static void check_equal(uint64_t seed, const tensors *got, const tensors *expected, int64_t tolerance) {
  char message[TS_COMPARE_TEXT];
  for (size_t i = 0; i < got->count; i++)
    ck_assert_msg(ts_compare_buffers(got->data[i], expected->data[i], tolerance, message), "seed %llu, result %zu: %s",
                  (unsigned long long)seed, i, message);
}

/* ---- random programs ---- */

static void check_threads(uint64_t seed, const ts_executable *exe, const tensors *args, const tensors *expected,
                          int64_t tolerance) {
  static const int threads[] = {1, 0};
  for (size_t i = 0; i < 2; i++) {
    tensors results = {0};
    ts_status status = run_group(exe, args, &(ts_group_options){.threads = threads[i]}, &results);
    ck_assert_msg(!status, "seed %llu: %s", (unsigned long long)seed, ts_status_message(status));
    check_equal(seed, &results, expected, tolerance);
    tensors_release(&results);
  }
}

static const ts_mesh meshes[] = {
    {.rank = 1, .sizes = {2}},       {.rank = 1, .sizes = {4}}, {.rank = 2, .sizes = {2, 2}},
    {.rank = 3, .sizes = {2, 1, 2}}, {.rank = 1, .sizes = {3}}, {.rank = 1, .sizes = {6}},
};

static ts_status make_graph(uint64_t seed, ts_random_options options, ts_graph **out) {
  rng r = {.state = seed};
  options.no_library = true;
  TS_TRY(ts_random_graph(seed, &options, out));
  ts_status status = ts_graph_set_mesh(*out, &meshes[seed / 2 % (sizeof meshes / sizeof *meshes)]);
  if (!status) status = random_shardings(&r, *out, TS_PARAMS, 80);
  if (!status) status = random_shardings(&r, *out, TS_RESULTS, 40);
  return status;
}

static void check_seed(uint64_t seed) {
  ts_graph *graph, *partitioned;
  ts_executable *exe;
  tensors args = {0}, parts = {0}, expected = {0};
  ts_random_options options = {.steps = 8, .max_elements = 1024, .exact_only = seed % 4 != 0, .even = seed % 3 != 0};
  ck_assert_ok(make_graph(seed, options, &graph));
  ck_assert_ok(ts_shard_partition(graph, NULL, NULL, &partitioned));
  args.count = ts_graph_region(graph, TS_ROOT)->params.count;
  ck_assert_ok(ts_random_args(seed, graph, ts_pool_default(), &args.data));
  ck_assert_ok(tensors_cut(partitioned, &args, &parts));
  ck_assert_ok(tensors_make(
      ts_graph_region(graph, TS_ROOT)->results.count * (size_t)ts_mesh_partitions(&partitioned->mesh), &expected));
  ck_assert_ok(ts_ref_run_partitions(partitioned, parts.data, args.count, ts_pool_default(), expected.data));
  ts_status status = ts_executable_create(partitioned, NULL, &exe);
  ck_assert_msg(!status, "seed %llu: %s", (unsigned long long)seed, ts_status_message(status));
  check_threads(seed, exe, &parts, &expected, options.exact_only ? 0 : TS_RANDOM_ULPS);
  ts_executable_release(exe);
  tensors_release(&args);
  tensors_release(&parts);
  tensors_release(&expected);
  ts_graph_destroy(graph);
  ts_graph_destroy(partitioned);
}

START_TEST(random_programs)
{
  const testing_seeds seeds = testing_random_seeds(DEFAULT_COUNT);
  const uint64_t first = seeds.first, count = seeds.count;
  for (uint64_t seed = first; seed < first + count; seed++) check_seed(seed);
}
END_TEST

/* ---- every collective on every type ---- */

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_graph_verify(graph));
  return graph;
}

/* Random arguments of each partition. */
static void make_args(const ts_graph *graph, uint64_t seed, tensors *out) {
  size_t each = ts_graph_region(graph, TS_ROOT)->params.count, partitions = (size_t)ts_mesh_partitions(&graph->mesh);
  ck_assert_ok(tensors_make(each * partitions, out));
  for (size_t p = 0; p < partitions; p++) {
    ts_buffer **args;
    ck_assert_ok(ts_random_args(seed + p, graph, ts_pool_default(), &args));
    memcpy(out->data + p * each, args, each * sizeof *args);
    ts_free(args);
  }
}

static void check_text(const char *text, int64_t tolerance) {
  tensors args = {0}, expected = {0};
  ts_graph *graph = parse(text);
  size_t partitions = (size_t)ts_mesh_partitions(&graph->mesh);
  make_args(graph, 11, &args);
  ck_assert_ok(tensors_make(ts_graph_region(graph, TS_ROOT)->results.count * partitions, &expected));
  ck_assert_ok(ts_ref_run_partitions(graph, args.data, args.count / partitions, ts_pool_default(), expected.data));
  ts_executable *exe = test_compile(text);
  check_threads(0, exe, &args, &expected, tolerance);
  ts_executable_release(exe);
  tensors_release(&args);
  tensors_release(&expected);
  ts_graph_destroy(graph);
}

static void check_op(const char *mesh, const char *op, const char *type, const char *in, const char *out) {
  char text[512];
  snprintf(text, sizeof text, "graph @t mesh %s (%%0: %s%s) -> (%s%s) {\n  %%1 = %s : %s%s\n  return %%1\n}\n", mesh,
           type, in, type, out, op, type, out);
  check_text(text, 0);
}

START_TEST(every_type)
{
  static const char *const types[] = {"s2",  "s4",  "s8", "s16",       "s32", "s64",  "u2",  "u4",  "u8",  "u16",
                                      "u32", "u64", "f8", "f8_e4m3fn", "f16", "bf16", "f32", "f64", "c64", "c128"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    bool complex = types[i][0] == 'c';
    check_op("[3]", "all_reduce_sum %0 {axes = [0]}", types[i], "[5,7]", "[5,7]");
    check_op("[4]", "all_reduce_product %0 {axes = [0]}", types[i], "[37]", "[37]");
    if (!complex) check_op("[5]", "all_reduce_min %0 {axes = [0]}", types[i], "[37]", "[37]");
    if (!complex) check_op("[2]", "all_reduce_max %0 {axes = [0]}", types[i], "[37]", "[37]");
    check_op("[3]", "all_reduce_and %0 {axes = [0]}", types[i], "[37]", "[37]");
    check_op("[2,2]", "all_reduce_or %0 {axes = [0]}", types[i], "[37]", "[37]");
    check_op("[3]", "reduce_scatter %0 {axes = [0], dim = 1}", types[i], "[5,6,2]", "[5,2,2]");
    check_op("[2,3]", "all_gather %0 {axes = [1], dim = 1}", types[i], "[5,2,3]", "[5,6,3]");
  }
}
END_TEST

/* Groups of hundreds of members: those of more than 256 are added in two stages. */
START_TEST(large_meshes)
{
  check_op("[300]", "all_reduce_sum %0 {axes = [0]}", "f16", "[3]", "[3]");
  check_op("[257]", "all_reduce_sum %0 {axes = [0]}", "f32", "[3]", "[3]");
  check_op("[257]", "reduce_scatter %0 {axes = [0], dim = 0}", "f32", "[257]", "[1]");
  static const char *const types[] = {"u4", "s32", "f16", "f32", "c128"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (!testing_takes((int64_t)i, 3)) continue;
    check_op("[256]", "all_reduce_sum %0 {axes = [0]}", types[i], "[37]", "[37]");
    check_op("[2,128]", "all_reduce_sum %0 {axes = [1]}", types[i], "[37]", "[37]");
    check_op("[256]", "reduce_scatter %0 {axes = [0], dim = 0}", types[i], "[512]", "[2]");
    check_op("[256]", "all_gather %0 {axes = [0], dim = 0}", types[i], "[3]", "[768]");
    check_op("[256]", "all_to_all %0 {axes = [0], split = 0, concat = 1}", types[i], "[256,1]", "[1,256]");
    check_op("[256]", "collective_broadcast %0 {axes = [0], root = 255}", types[i], "[3]", "[3]");
    check_op("[256]", "collective_permute %0 {axes = [0], sources = [0,255], targets = [255,254]}", types[i], "[3]",
             "[3]");
  }
}
END_TEST

/* Where the parts of a tensor lie: each dim, split before, behind and at the joined one. */
START_TEST(every_dim)
{
  for (int dim = 0; dim < 3; dim++) {
    char op[96], in[32], out[32];
    int64_t sizes[3] = {6, 12, 18};
    snprintf(in, sizeof in, "[6,12,18]");
    sizes[dim] *= 6;
    snprintf(out, sizeof out, "[%d,%d,%d]", (int)sizes[0], (int)sizes[1], (int)sizes[2]);
    snprintf(op, sizeof op, "all_gather %%0 {axes = [1,0], dim = %d}", dim);
    check_op("[2,3]", op, "f32", in, out);
    sizes[dim] /= 36;
    snprintf(out, sizeof out, "[%d,%d,%d]", (int)sizes[0], (int)sizes[1], (int)sizes[2]);
    snprintf(op, sizeof op, "reduce_scatter %%0 {axes = [0,1], dim = %d}", dim);
    check_op("[2,3]", op, "f32", in, out);
    sizes[dim] *= 6;
    for (int concat = 0; concat < 3; concat++) {
      int64_t moved[3] = {6, 12, 18};
      moved[dim] /= 3;
      moved[concat] *= 3;
      snprintf(out, sizeof out, "[%d,%d,%d]", (int)moved[0], (int)moved[1], (int)moved[2]);
      snprintf(op, sizeof op, "all_to_all %%0 {axes = [1], split = %d, concat = %d}", dim, concat);
      check_op("[2,3]", op, "u16", in, out);
    }
  }
}
END_TEST

START_TEST(copies)
{
  check_op("[4]", "collective_permute %0 {axes = [0], sources = [0,3], targets = [3,1]}", "f32", "[100]", "[100]");
  check_op("[2,3]", "collective_permute %0 {axes = [1], sources = [0,1,2], targets = [1,2,0]}", "s8", "[7]", "[7]");
  check_op("[2,3]", "collective_broadcast %0 {axes = [1], root = 2}", "f64", "[9]", "[9]");
  check_op("[2,1,2]", "collective_broadcast %0 {axes = [1], root = 0}", "f64", "[9]", "[9]");
  check_op("[3]", "barrier %0 {axes = [0]}", "c64", "[9]", "[9]");
  check_op("[3]", "all_reduce_sum %0 {axes = []}", "f32", "[9]", "[9]");
}
END_TEST

/* More than a piece and a segment, with a rest; nothing; one element. */
START_TEST(sizes)
{
  static const char *const lengths[] = {"[]", "[1]", "[0]", "[65536]", "[300007]"};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    check_op("[4]", "all_reduce_sum %0 {axes = [0]}", "f32", lengths[i], lengths[i]);
    check_op("[5]", "all_reduce_sum %0 {axes = [0]}", "f16", lengths[i], lengths[i]);
    check_op("[3]", "all_reduce_max %0 {axes = [0]}", "f64", lengths[i], lengths[i]);
    check_op("[2]", "collective_permute %0 {axes = [0], sources = [0], targets = [1]}", "f32", lengths[i], lengths[i]);
  }
  check_op("[3]", "all_gather %0 {axes = [0], dim = 0}", "f32", "[100001]", "[300003]");
  check_op("[3]", "all_gather %0 {axes = [0], dim = 1}", "f32", "[0,5]", "[0,15]");
  check_op("[4]", "all_to_all %0 {axes = [0], split = 1, concat = 0}", "s32", "[500,400]", "[2000,100]");
  check_op("[4]", "all_to_all %0 {axes = [0], split = 1, concat = 0}", "s32", "[0,400]", "[0,100]");
  check_op("[64]", "all_reduce_sum %0 {axes = [0]}", "f32", "[1000]", "[1000]");
  check_op("[64]", "reduce_scatter %0 {axes = [0], dim = 0}", "bf16", "[1024]", "[16]");
}
END_TEST

/* Temporaries without elements, in programs whose other temporaries take no memory either; no parameters. */
START_TEST(empty_parts)
{
  static const char *const cases[][3] = {
      {"all_reduce_sum %0 {axes = [0]}", "[0]", "[0]"},
      {"all_reduce_max %0 {axes = [0]}", "[3,0]", "[3,0]"},
      {"reduce_scatter %0 {axes = [0], dim = 0}", "[0]", "[0]"},
      {"reduce_scatter %0 {axes = [0], dim = 1}", "[0,8]", "[0,2]"},
      {"all_gather %0 {axes = [0], dim = 0}", "[0]", "[0]"},
      {"all_gather %0 {axes = [0], dim = 1}", "[0,2]", "[0,8]"},
      {"all_to_all %0 {axes = [0], split = 0, concat = 1}", "[8,0]", "[2,0]"},
      {"all_to_all %0 {axes = [0], split = 0, concat = 0}", "[0,3]", "[0,3]"},
      {"collective_permute %0 {axes = [0], sources = [0], targets = [1]}", "[0]", "[0]"},
      {"collective_permute %0 {axes = [0], sources = [], targets = []}", "[2,0]", "[2,0]"},
      {"collective_broadcast %0 {axes = [0], root = 3}", "[0]", "[0]"},
      {"barrier %0 {axes = [0]}", "[0]", "[0]"},
  };
  static const char *const types[] = {"s8", "u4", "f16", "f32"};
  char text[512];
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      const char *type = types[t], *out = cases[i][2];
      snprintf(text, sizeof text,
               "graph @t mesh [4] (%%0: %s%s) -> (%s[]) {\n  %%1 = %s : %s%s\n  %%2 = reduce_sum %%1 {axes = [%s]} : "
               "%s[]\n  return %%2\n}\n",
               type, cases[i][1], type, cases[i][0], type, out, strchr(out, ',') ? "0,1" : "0", type);
      check_text(text, 0);
    }
  }
  check_text("graph @t mesh [4] () -> (s32[]) {\n  %0 = constant 3 : s32[]\n"
             "  %1 = all_reduce_sum %0 {axes = [0]} : s32[]\n  return %1\n}\n",
             0);
}
END_TEST

/* Several operands are one step; its results feed the next. */
START_TEST(several_operands)
{
  check_text("graph @t mesh [2,2] (%0: f32[8], %1: s32[3], %2: f64[]) -> (f32[8], s32[3], f64[], f32[8]) {\n"
             "  %3, %4, %5 = all_reduce_sum %0, %1, %2 {axes = [0,1]} : f32[8], s32[3], f64[]\n"
             "  %6 = multiply %3, %3 : f32[8]\n  %7 = all_reduce_max %6 {axes = [1]} : f32[8]\n"
             "  return %3, %4, %5, %7\n}\n",
             0);
}
END_TEST

/* ---- control flow ---- */

/* Each partition doubles until the maximum over all of them is as large as the limit. */
static const char loop_text[] =
    "graph @t mesh [4] (%0: s32[3], %l: s32[]) -> (s32[3], s32[]) {\n  %1, %2 = while %0, %l {\n"
    "    condition(%3: s32[3], %4: s32[]) {\n      %5 = all_reduce_max %3 {axes = [0]} : s32[3]\n"
    "      %6 = reduce_max %5 {axes = [0]} : s32[]\n      %7 = less %6, %4 : u8[]\n      return %7\n    }\n"
    "    body(%8: s32[3], %9: s32[]) {\n      %10 = add %8, %8 : s32[3]\n"
    "      %11 = collective_permute %10 {axes = [0], sources = [0,1,2,3], targets = [1,2,3,0]} : s32[3]\n"
    "      return %11, %9\n    }\n  } : s32[3], s32[]\n  return %1, %2\n}\n";

/* A collective in one branch only. */
static const char cond_text[] =
    "graph @t mesh [2] (%p: u8[], %0: s32[3]) -> (s32[3]) {\n  %1 = cond %p, %0 {\n"
    "    true(%2: s32[3]) {\n      %3 = all_reduce_sum %2 {axes = [0]} : s32[3]\n      return %3\n    }\n"
    "    false(%4: s32[3]) {\n      %5 = negate %4 : s32[3]\n      return %5\n    }\n"
    "  } : s32[3]\n  return %1\n}\n";

static void fill_loop(tensors *args, const double *limits) {
  ck_assert_ok(tensors_make(8, args));
  for (int p = 0; p < 4; p++) {
    args->data[2 * p] = VECTOR(TS_S32, p, 1, 2);
    args->data[2 * p + 1] = SCALAR(TS_S32, limits[p]);
  }
}

static void fill_cond(tensors *args, double first, double second) {
  ck_assert_ok(tensors_make(4, args));
  args->data[0] = SCALAR(TS_U8, first);
  args->data[2] = SCALAR(TS_U8, second);
  for (int p = 0; p < 2; p++) args->data[2 * p + 1] = VECTOR(TS_S32, p, 2, 3);
}

static void check_against_ref(const char *text, const tensors *args) {
  tensors expected = {0};
  ts_graph *graph = parse(text);
  size_t partitions = (size_t)ts_mesh_partitions(&graph->mesh);
  ck_assert_ok(tensors_make(ts_graph_region(graph, TS_ROOT)->results.count * partitions, &expected));
  ck_assert_ok(ts_ref_run_partitions(graph, args->data, args->count / partitions, ts_pool_default(), expected.data));
  ts_executable *exe = test_compile(text);
  check_threads(0, exe, args, &expected, 0);
  ts_executable_release(exe);
  tensors_release(&expected);
  ts_graph_destroy(graph);
}

START_TEST(loops_and_branches)
{
  tensors args = {0};
  fill_loop(&args, (const double[]){1000, 1000, 1000, 1000});
  check_against_ref(loop_text, &args);
  tensors_release(&args);
  for (int truth = 0; truth < 2; truth++) {
    fill_cond(&args, truth, truth);
    check_against_ref(cond_text, &args);
    tensors_release(&args);
  }
}
END_TEST

static void check_refused(const char *text, tensors *args, ts_code code, const char *message) {
  tensors results = {0};
  ts_executable *exe = test_compile(text);
  ck_assert_error(run_group(exe, args, NULL, &results), code, message);
  ts_executable_release(exe);
  tensors_release(args);
  ts_free(results.data);
}

START_TEST(predicates_that_differ)
{
  tensors args = {0};
  fill_loop(&args, (const double[]){1000, 1000, 10, 1000});
  check_refused(loop_text, &args, TS_FAILED_PRECONDITION,
                "while: the predicate differs between partitions, and its regions have collectives");
  fill_cond(&args, 0, 1);
  check_refused(cond_text, &args, TS_FAILED_PRECONDITION,
                "cond: the predicate differs between partitions, and its regions have collectives");
}
END_TEST

/* ---- faults ---- */

static const char sum_text[] = "graph @t mesh [2,2] partitioned coordinates (%0: f32[4], %1: f32[4], %c: s32[2]) -> "
                               "(f32[4], f32[4], s32[2]) {\n"
                               "  %2 = add %0, %1 : f32[4]\n  %3 = all_reduce_sum %2 {axes = [0,1]} : f32[4]\n"
                               "  %4 = multiply %3, %1 : f32[4]\n  return %3, %4, %c\n}\n";

static void fill_sum(tensors *args) {
  ck_assert_ok(tensors_make(8, args));
  for (int p = 0; p < 8; p++) args->data[p] = VECTOR(TS_F32, p, p + 1, p + 2, 3);
}

START_TEST(wrong_arguments)
{
  tensors args = {0};
  ts_group *group;
  ts_executable *exe = test_compile(sum_text);
  fill_sum(&args);
  ck_assert_error(ts_group_create(exe, args.data, 1, NULL, &group), TS_INVALID_ARGUMENT,
                  "expected 2 arguments of each partition, got 1");
  ts_buffer_release(args.data[5]);
  args.data[5] = VECTOR(TS_F32, 1, 2);
  ck_assert_error(ts_group_create(exe, args.data, 2, NULL, &group), TS_INVALID_ARGUMENT,
                  "partition 2: argument 2 is f32[2], the program was compiled for f32[4]");
  ck_assert_ptr_null(group);
  ts_executable_release(exe);
  tensors_release(&args);
}
END_TEST

START_TEST(callbacks_are_refused)
{
  tensors args = {0};
  ck_assert_ok(tensors_make(2, &args));
  for (int p = 0; p < 2; p++) args.data[p] = VECTOR(TS_F32, p, 1);
  check_refused("graph @t mesh [2] (%0: f32[2]) -> (f32[2]) {\n  %1 = callback %0 {index = 0} {\n    types() {\n"
                "      %2 = constant 0 : f32[2]\n      return %2\n    }\n  } : f32[2]\n"
                "  %3 = all_reduce_sum %1 {axes = [0]} : f32[2]\n  return %3\n}\n",
                &args, TS_FAILED_PRECONDITION, "callback: a program with partitions cannot call back");
}
END_TEST

static void try_group(const ts_executable *exe, const tensors *args) {
  tensors results = {0};
  ts_status_free(run_group(exe, args, NULL, &results));
  tensors_release(&results);
}

START_TEST(failing_allocations_leak_nothing)
{
  tensors args = {0};
  ts_executable *exe = test_compile(sum_text);
  fill_sum(&args);
  try_group(exe, &args);
  CK_FAIL_EACH_ALLOCATION(try_group(exe, &args));
  tensors_release(&args);
  ts_executable_release(exe);
  exe = test_compile(loop_text);
  fill_loop(&args, (const double[]){50, 50, 50, 50});
  try_group(exe, &args);
  CK_FAIL_EACH_ALLOCATION(try_group(exe, &args));
  tensors_release(&args);
  ts_executable_release(exe);
}
END_TEST

/* A loop that ends only when it is cancelled, with a collective in each iteration. */
static const char endless_text[] =
    "graph @t mesh [4] (%0: s32[64]) -> (s32[64]) {\n  %1 = while %0 {\n    condition(%2: s32[64]) {\n"
    "      %3 = constant 1 : u8[]\n      return %3\n    }\n    body(%4: s32[64]) {\n"
    "      %5 = all_reduce_max %4 {axes = [0]} : s32[64]\n      return %5\n    }\n  } : s32[64]\n  return %1\n}\n";

static void *cancel_soon(void *control) {
  usleep(10000);
  atomic_store(&((ts_run_control *)control)->cancel, true);
  return NULL;
}

static void fill_endless(tensors *args) {
  double zeros[64] = {0};
  ck_assert_ok(tensors_make(4, args));
  for (int p = 0; p < 4; p++) args->data[p] = test_tensor(TS_S32, SHAPE(64), zeros, 64);
}

START_TEST(a_cancelled_group)
{
  tensors args = {0}, results = {0};
  ts_executable *exe = test_compile(endless_text);
  fill_endless(&args);
  for (int threads = 0; threads < 2; threads++) {
    ts_run_control control = {0};
    pthread_t thread;
    pthread_create(&thread, NULL, cancel_soon, &control);
    ck_assert_error(run_group(exe, &args, &(ts_group_options){.control = &control, .threads = threads}, &results),
                    TS_CANCELLED, "cancelled");
    pthread_join(thread, NULL);
    ts_free(results.data);
  }
  tensors_release(&args);
  ts_executable_release(exe);
}
END_TEST

/* Asked to pause at all times, a group makes no step; resumed, it continues where it was. */
START_TEST(a_paused_group)
{
  tensors args = {0}, results = {0};
  ts_run_control control = {0};
  ts_run_state state;
  ts_group *group;
  ts_executable *exe = test_compile(sum_text);
  fill_sum(&args);
  ck_assert_ok(tensors_make(12, &results));
  ck_assert_ok(ts_group_create(exe, args.data, 2, &(ts_group_options){.control = &control}, &group));
  atomic_store(&control.pause, true);
  for (int i = 0; i < 3; i++) {
    ck_assert_ok(ts_group_advance(group, &state));
    ck_assert_int_eq(state, TS_RUN_PAUSED);
  }
  atomic_store(&control.pause, false);
  ck_assert_ok(ts_group_advance(group, &state));
  ck_assert_int_eq(state, TS_RUN_DONE);
  ck_assert_ok(ts_group_end(group, results.data));
  ck_assert_float_eq(*(float *)results.data[0]->data, 28); /* 0 + 1 + ... + 7 */
  ck_assert_int_eq(((int32_t *)results.data[11]->data)[0], 1);
  tensors_release(&args);
  tensors_release(&results);
  ts_executable_release(exe);
}
END_TEST

/* An abandoned group frees its memory, begun or not. */
START_TEST(abandoned_groups)
{
  tensors args = {0};
  ts_run_control control = {0};
  ts_run_state state;
  ts_group *group;
  ts_executable *exe = test_compile(endless_text);
  fill_endless(&args);
  int64_t live = ts_alloc_live();
  ck_assert_ok(ts_group_create(exe, args.data, 1, NULL, &group));
  ck_assert_ok(ts_group_end(group, NULL));
  pthread_t thread;
  ck_assert_ok(ts_group_create(exe, args.data, 1, &(ts_group_options){.control = &control}, &group));
  pthread_create(&thread, NULL, cancel_soon, &control);
  ck_assert_error(ts_group_advance(group, &state), TS_CANCELLED, "cancelled");
  pthread_join(thread, NULL);
  ck_assert_ok(ts_group_end(group, NULL));
  ck_assert_ok(ts_group_end(NULL, NULL));
  ck_assert_int_eq(ts_alloc_live(), live);
  tensors_release(&args);
  ts_executable_release(exe);
}
END_TEST

/* ---- donation ---- */

START_TEST(donated_arguments)
{
  tensors args = {0}, results = {0};
  void *memory[4];
  ts_executable *exe = test_compile("graph @t mesh [4] (%0: f32[4], %1: f32[4]) -> (f32[4], f32[4]) {\n"
                                    "  %2 = all_reduce_sum %0 {axes = [0]} : f32[4]\n  %3 = negate %1 : f32[4]\n"
                                    "  return %2, %3\n}\n");
  fill_sum(&args);
  for (int p = 0; p < 4; p++) memory[p] = args.data[2 * p + 1]->data;
  ck_assert_ok(run_group(exe, &args, &(ts_group_options){.donated = TS_BITS(0xAA)}, &results));
  for (int p = 0; p < 4; p++) {
    ck_assert_ptr_eq(results.data[2 * p + 1]->data, memory[p]);
    ck_assert_float_eq(*(float *)results.data[2 * p]->data, 12); /* 0 + 2 + 4 + 6 */
    ck_assert_float_eq(*(float *)results.data[2 * p + 1]->data, (float)(-2 * p - 1));
    args.data[2 * p + 1] = NULL; /* taken */
  }
  tensors_release(&args);
  tensors_release(&results);
  ts_executable_release(exe);
}
END_TEST

/* ---- shared results ---- */

/* Results that are the same in all members have one memory; different results, and results that are written again, do
 * not. */
START_TEST(shared_results)
{
  tensors args = {0}, results = {0};
  ts_executable *exe =
      test_compile("graph @t mesh [2,2] (%0: f32[4], %1: f32[4]) -> (f32[4], f32[8], f32[2], f32[4]) {\n"
                   "  %2 = all_reduce_sum %0 {axes = [0,1]} : f32[4]\n"
                   "  %3 = all_gather %1 {axes = [1], dim = 0} : f32[8]\n"
                   "  %4 = reduce_scatter %1 {axes = [0], dim = 0} : f32[2]\n"
                   "  %5 = multiply %2, %1 : f32[4]\n  return %2, %3, %4, %5\n}\n");
  fill_sum(&args);
  ck_assert_ok(run_group(exe, &args, &(ts_group_options){.donated = TS_BITS(0)}, &results));
  for (int p = 0; p < 4; p++) {
    ts_buffer *const *own = results.data + (size_t)p * 4, *const *first = results.data + (size_t)(p / 2 * 2) * 4;
    ck_assert_ptr_eq(own[0]->data, results.data[0]->data);
    ck_assert_ptr_eq(own[1]->data, first[1]->data);
    ck_assert_int_eq(own[2]->data == results.data[2]->data, p == 0);
    ck_assert_int_eq(own[3]->data == results.data[3]->data, p == 0);
    ck_assert_int_eq(ts_buffer_is_unique(own[0]), false);
    ck_assert_float_eq(*(float *)own[0]->data, 12); /* 0 + 2 + 4 + 6 */
    ck_assert_float_eq(((float *)own[1]->data)[4], (float)(p / 2 * 4 + 3));
    ck_assert_float_eq(*(float *)own[3]->data, (float)(12 * (2 * p + 1)));
  }
  ck_assert_ptr_ne(results.data[1]->data, results.data[9]->data);
  for (size_t i = 0; i < results.count; i++) { /* they are released in any order */
    size_t at = i * 5 % results.count;
    ts_buffer_release(results.data[at]);
    results.data[at] = NULL;
  }
  tensors_release(&args);
  tensors_release(&results);
  ts_executable_release(exe);
}
END_TEST

/* ---- several groups at once ---- */

typedef struct caller {
  const ts_executable *exe;
  const tensors *args, *expected;
  int threads;
} caller;

static void *call_often(void *context) {
  const caller *c = context;
  for (int i = 0; i < 30; i++) {
    if (!testing_takes(i, 3)) continue;
    tensors results = {0};
    ck_assert_ok(run_group(c->exe, c->args, &(ts_group_options){.threads = c->threads}, &results));
    check_equal(0, &results, c->expected, 0);
    tensors_release(&results);
  }
  return NULL;
}

/* 8 devices; long vectors, so that pieces are tasks. */
static const char eight_text[] =
    "graph @t mesh [8] (%0: f32[40000]) -> (f32[40000], f32[5000]) {\n  %1 = tanh %0 : f32[40000]\n"
    "  %2 = floor %1 : f32[40000]\n  %3 = all_reduce_sum %2 {axes = [0]} : f32[40000]\n"
    "  %4 = add %3, %0 : f32[40000]\n  %5 = reduce_scatter %4 {axes = [0], dim = 0} : f32[5000]\n"
    "  return %3, %5\n}\n";

static void check_concurrent(const ts_executable *exe, const tensors *args, const tensors *expected, int threads) {
  caller c = {exe, args, expected, threads};
  pthread_t others[4];
  for (int i = 0; i < 4; i++) pthread_create(&others[i], NULL, call_often, &c);
  for (int i = 0; i < 4; i++) pthread_join(others[i], NULL);
}

START_TEST(concurrent_groups)
{
  tensors args = {0}, expected = {0};
  ts_graph *graph = parse(eight_text);
  make_args(graph, 3, &args);
  ck_assert_ok(tensors_make(16, &expected));
  ck_assert_ok(ts_ref_run_partitions(graph, args.data, 1, ts_pool_default(), expected.data));
  ts_executable *exe = test_compile(eight_text);
  check_concurrent(exe, &args, &expected, 1);
  check_concurrent(exe, &args, &expected, 0);
  ts_executable_release(exe);
  tensors_release(&args);
  tensors_release(&expected);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *all = suite_create("group");
  TCase *cases = tcase_create("group");
  tcase_set_timeout(cases, 0);
  tcase_add_test(cases, random_programs);
  tcase_add_test(cases, every_type);
  tcase_add_test(cases, large_meshes);
  tcase_add_test(cases, every_dim);
  tcase_add_test(cases, copies);
  tcase_add_test(cases, sizes);
  tcase_add_test(cases, empty_parts);
  tcase_add_test(cases, several_operands);
  tcase_add_test(cases, loops_and_branches);
  tcase_add_test(cases, predicates_that_differ);
  tcase_add_test(cases, wrong_arguments);
  tcase_add_test(cases, callbacks_are_refused);
  tcase_add_test(cases, failing_allocations_leak_nothing);
  tcase_add_test(cases, a_paused_group);
  tcase_add_test(cases, abandoned_groups);
  tcase_add_test(cases, donated_arguments);
  suite_add_tcase(all, cases);
  TCase *threads = tcase_create("threads"); /* by itself for the thread sanitizer: CK_RUN_CASE=threads */
  tcase_set_timeout(threads, 0);
  tcase_add_test(threads, concurrent_groups);
  tcase_add_test(threads, a_cancelled_group);
  tcase_add_test(threads, shared_results);
  suite_add_tcase(all, threads);
  return testing_run(all);
}
