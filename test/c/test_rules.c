/* Each op on cut dims gives the bits of the whole: a program of one op, with random shardings of its arguments and
 * result on several meshes. It also lists the ops without a rule. */
#include "bounds.h"
#include "shard/factors.h"
#include "shard/shard.h"
#include "shard_run.h"
#include "testing.h"

#include <time.h>

static const ts_mesh meshes[] = {
    {.rank = 1, .sizes = {2}},       {.rank = 1, .sizes = {4}}, {.rank = 2, .sizes = {2, 2}},
    {.rank = 3, .sizes = {2, 1, 2}}, {.rank = 1, .sizes = {3}}, {.rank = 2, .sizes = {2, 3}},
};
enum { MESHES = sizeof meshes / sizeof *meshes, TRIES = 24 };

/* An op, its parameters and its result; `moves`: a collective that some of the partitioned programs must have. */
typedef struct op_case {
  const char *params, *op, *type;
  ts_opcode moves;
} op_case;

#define NONE TS_OP_COUNT
#define PERMUTE TS_OP_COLLECTIVE_PERMUTE
#define OR TS_OP_ALL_REDUCE_OR
#define SUM TS_OP_ALL_REDUCE_SUM

static const op_case cases[] = {
    /* neighbours */
    {"%0: f32[12,24]", "slice %0 {start = [0,1], limit = [12,13], stride = [1,1]}", "f32[12,12]", PERMUTE},
    {"%0: s32[24,24]", "slice %0 {start = [3,0], limit = [21,24], stride = [3,2]}", "s32[6,12]", PERMUTE},
    {"%0: u8[24]", "slice %0 {start = [12], limit = [18], stride = [1]}", "u8[6]", PERMUTE},
    {"%0: f16[24]", "slice %0 {start = [3], limit = [24], stride = [4]}", "f16[6]", NONE},
    {"%0: f32[12,6], %1: f32[]", "pad %0, %1 {low = [6,0], high = [6,6], interior = [0,0]}", "f32[24,12]", PERMUTE},
    {"%0: s64[12], %1: s64[]", "pad %0, %1 {low = [-2], high = [2], interior = [0]}", "s64[12]", PERMUTE},
    {"%0: s64[12,6], %1: s64[]", "pad %0, %1 {low = [60,0], high = [-12,1], interior = [0,1]}", "s64[60,12]", NONE},
    {"%0: f64[6,2], %1: f64[]", "pad %0, %1 {low = [1,1], high = [5,3], interior = [0,0]}", "f64[12,6]", PERMUTE},
    {"%0: c64[12,6]", "reverse %0 {axes = [0,1]}", "c64[12,6]", PERMUTE},
    {"%0: f32[6,4], %1: f32[6,4], %2: f32[12,4]", "concatenate %0, %1, %2 {axis = 0}", "f32[24,4]", PERMUTE},
    {"%0: u8[4,6], %1: u8[4,18]", "concatenate %0, %1 {axis = 1}", "u8[4,24]", PERMUTE},
    {"%0: f32[12,24]", "window_sum %0 {sizes = [2,3], strides = [1,1], low = [0,1], high = [1,1], dilation = [1,1]}",
     "f32[12,24]", PERMUTE},
    {"%0: f32[24,24]", "window_max %0 {sizes = [3,2], strides = [2,2], low = [1,0], high = [0,0], dilation = [1,1]}",
     "f32[12,12]", PERMUTE},
    {"%0: s32[24]", "window_min %0 {sizes = [3], strides = [1], low = [4], high = [0], dilation = [2]}", "s32[24]",
     PERMUTE},
    {"%0: f16[12]", "window_product %0 {sizes = [4], strides = [1], low = [3], high = [0], dilation = [1]}", "f16[12]",
     PERMUTE},
    {"%0: c64[12]", "window_product %0 {sizes = [2], strides = [1], low = [1], high = [0], dilation = [1]}", "c64[12]",
     NONE},
    {"%0: f64[6]", "window_sum %0 {sizes = [2], strides = [1], low = [-2], high = [9], dilation = [1]}", "f64[12]",
     PERMUTE},
    {"%0: f32[12,6], %1: f32[6,3], %2: f32[]",
     "window_scatter_max %0, %1, %2 {sizes = [2,2], strides = [2,2], low = [0,0], high = [0,0], dilation = [1,1]}",
     "f32[12,6]", NONE},
    {"%0: f32[4,12,6,2], %1: f32[3,2,2,6]",
     "conv %0, %1 {strides = [1,1], low = [1,1], high = [1,0], input_dilation = [1,1], kernel_dilation = [1,1], groups "
     "= 1}",
     "f32[4,12,6,6]", PERMUTE},
    {"%0: f64[2,24,12], %1: f64[3,2,12]",
     "conv %0, %1 {strides = [2], low = [2], high = [1], input_dilation = [1], kernel_dilation = [2], groups = 6}",
     "f64[2,12,12]", PERMUTE},
    {"%0: bf16[2,6,1], %1: bf16[3,1,4]",
     "conv %0, %1 {strides = [1], low = [1], high = [2], input_dilation = [2], kernel_dilation = [1], groups = 1}",
     "bf16[2,12,4]", NONE},
    {"%0: s32[2,6,6], %1: s32[3,6,4]",
     "conv %0, %1 {strides = [1], low = [1], high = [1], input_dilation = [1], kernel_dilation = [1], groups = 1}",
     "s32[2,6,4]", SUM},
    /* indices */
    {"%0: f32[48,6], %1: s32[2,3]", "take %0, %1 {axis = 0}", "f32[2,3,6]", OR},
    {"%0: c64[6,12], %1: u64[6]", "take %0, %1 {axis = 1}", "c64[6,6]", OR},
    {"%0: s8[24], %1: s8[]", "take %0, %1 {axis = 0}", "s8[]", OR},
    {"%0: f32[48,6], %1: s64[4,6]", "take_along_axis %0, %1 {axis = 0}", "f32[4,6]", OR},
    {"%0: f16[12,48], %1: u8[12,6]", "take_along_axis %0, %1 {axis = 1}", "f16[12,6]", OR},
    {"%0: f32[12,12,6], %1: s32[], %2: u64[]", "dynamic_slice %0, %1, %2, %1 {shape = [5,12,3]}", "f32[5,12,3]", OR},
    {"%0: f64[24,4], %1: s64[], %2: u8[]", "dynamic_slice %0, %1, %2 {shape = [5,4]}", "f64[5,4]", OR},
    {"%0: f32[12,12,6], %1: f32[5,12,3], %2: s32[], %3: u64[]", "put_slice %0, %1, %2, %3, %2", "f32[12,12,6]", NONE},
    {"%0: s16[24], %1: s16[12], %2: s8[]", "put_slice %0, %1, %2", "s16[24]", NONE},
    {"%0: f32[12,6], %1: s32[24,1], %2: f32[24,6]", "indexed_put %0, %1, %2 {axes = [0]}", "f32[12,6]", NONE},
    {"%0: f16[12,6,4], %1: s64[6,2], %2: f16[6,6]", "indexed_add %0, %1, %2 {axes = [0,2]}", "f16[12,6,4]", NONE},
    {"%0: s32[12,6], %1: u64[24,1], %2: s32[24,6]", "indexed_add %0, %1, %2 {axes = [0]}", "s32[12,6]", SUM},
    {"%0: s64[6,12], %1: s8[12,2], %2: s64[12]", "indexed_add %0, %1, %2 {axes = [0,1]}", "s64[6,12]", SUM},
    {"%0: f32[12,24]", "argmax %0 {axis = 0, high = false}", "s64[24]", TS_OP_ALL_GATHER},
    {"%0: f32[12,24]", "argmax %0 {axis = 1, high = true}", "u8[12]", TS_OP_ALL_GATHER},
    {"%0: s8[24,4]", "argmin %0 {axis = 0, high = true}", "s32[4]", TS_OP_ALL_GATHER},
    {"%0: f16[1,12,6]", "argmin %0 {axis = -1, high = false}", "s64[]", TS_OP_ALL_GATHER},
    {"%0: u8[24]", "argmax %0 {axis = -1, high = true}", "s32[]", TS_OP_ALL_GATHER},
    /* dims that pass */
    {"%0: f32[12,6], %1: s8[6,24], %2: f32[24]",
     "scaled_dot_general %0, %1, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = [], operand = "
     "1, axes = [1]}",
     "f32[12,24]", SUM},
    {"%0: s4[6,4,12], %1: bf16[6,12,6], %2: bf16[6,1,12]",
     "scaled_dot_general %0, %1, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0], operand "
     "= 0, axes = [0,1,2]}",
     "bf16[6,4,6]", NONE},
    {"%0: f16[12,6], %1: s8[6,24], %2: f16[6]",
     "scaled_dot_general %0, %1, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = [], operand = "
     "1, axes = [0]}",
     "f16[12,24]", NONE},
    {"%0: f32[12,6], %1: s8[6,24], %2: f32[6]",
     "scaled_dot_general %0, %1, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = [], operand = "
     "1, axes = [0]}",
     "f32[12,24]", SUM},
    {"%0: u8[12,6], %1: f32[6,24]",
     "wide_dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []}", "f16[12,24]",
     NONE},
    {"%0: f32[12,6]", "cumulative_sum %0 {axis = 0, reverse = true}", "f32[12,6]", NONE},
    {"%0: f32[12,6]", "sort %0 {axis = 1, descending = false}", "f32[12,6]", NONE},
    {"%0: f32[12,6]", "argsort %0 {axis = 0, descending = true}", "s32[12,6]", NONE},
    {"%0: s32[12,6]", "reduce_sum %0 {axes = [0]}", "s32[6]", SUM},
    {"%0: f32[12,6]", "reduce_max %0 {axes = [0,1]}", "f32[]", TS_OP_ALL_REDUCE_MAX},
    {"%0: f32[12,6], %1: f32[]",
     "reduce %0, %1 {axes = [0]} {\n    combine(%2: f32[], %3: f32[]) {\n      %4 = subtract %2, %3 : f32[]\n      "
     "return %4\n    }\n  }",
     "f32[6]", NONE},
    {"%0: f32[12,6,4]", "rfft %0 {axis = 1, length = 5}", "c64[12,3,4]", NONE},
    {"%0: f64[6,3,3]", "cholesky %0", "f64[6,3,3]", NONE},
    {"%0: f32[6,3,3], %1: f32[6,3,12]", "solve %0, %1", "f32[6,3,12]", NONE},
    {"%0: f32[6,3,3], %1: f32[6,3,12]",
     "triangular_solve %0, %1 {left = true, lower = true, transpose = false, unit = false}", "f32[6,3,12]", NONE},
    {"%0: f32[6,3,3], %1: f32[6,12,3]",
     "triangular_solve %0, %1 {left = false, lower = true, transpose = true, unit = false}", "f32[6,12,3]", NONE},
    {"%0: f64[6,3,3]", "determinant %0", "f64[6]", NONE},
    {"%0: f32[12,3,3]", "lu %0", "f32[12,3,3], f32[12,3,3], f32[12,3,3]", NONE},
    {"%0: f32[12,4,3]", "qr %0 {full = true}", "f32[12,4,4], f32[12,4,3]", NONE},
    {"%0: f32[12,3,3]", "eigh %0", "f32[12,3], f32[12,3,3]", NONE},
    {"%0: f64[6,2,3]", "svd %0 {full = false}", "f64[6,2,2], f64[6,2], f64[6,2,3]", NONE},
    {"%0: f32[12,6]", "top_k %0 {k = 2}", "f32[12,2], s32[12,2]", NONE},
};
enum { CASES = sizeof cases / sizeof *cases };

static void case_text(const op_case *c, char *out, size_t size) {
  int results = 1;
  for (const char *at = c->type; (at = strstr(at, "], ")); at++) results++;
  static const char *const names[] = {"", "%90", "%90, %91", "%90, %91, %92"};
  snprintf(out, size, "graph @t(%s) -> (%s) {\n  %s = %s : %s\n  return %s\n}\n", c->params, c->type, names[results],
           c->op, c->type, names[results]);
}

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_graph_verify(graph));
  return graph;
}

static int64_t count_of(const ts_graph *graph, ts_opcode code) {
  int64_t count = 0;
  for (size_t i = 0; i < graph->ops.count; i++) count += graph->ops.data[i].code == code;
  return count;
}

/* The partitioned program has the bits of the whole one; after split reductions, its results are within the bound. */
static void check_results(const char *what, uint64_t seed, const ts_graph *graph, const ts_graph *partitioned,
                          const ts_shard_report *report) {
  tensors args = {.count = ts_graph_region(graph, TS_ROOT)->params.count}, parts = {0};
  bound bounds[3] = {{NULL}};
  bound_counts counts = {0};
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_random_args(seed, graph, ts_pool_default(), &args.data));
  ck_assert_ok(bounds_run(graph, &args, report, bounds));
  ts_status status = run_partitions(partitioned, &args, &parts);
  ck_assert_msg(!status, "%s, seed %llu: %s", what, (unsigned long long)seed, ts_status_message(status));
  for (size_t i = 0; i < parts.count; i++)
    ck_assert_msg(bounds_hold(&bounds[i], parts.data[i], &counts, message), "%s, seed %llu, result %zu: %s", what,
                  (unsigned long long)seed, i, message);
  tensors_release(&args);
  bounds_release(bounds, 3);
  tensors_release(&parts);
}

/* Returns how many `moves` the partitioned program has. */
static int64_t check_case(const op_case *c, const ts_mesh *mesh, uint64_t seed) {
  char text[1024];
  ts_graph *partitioned;
  ts_shard_report report = {0};
  rng r = {.state = seed * UINT64_C(0x9E3779B97F4A7C15)};
  case_text(c, text, sizeof text);
  ts_graph *graph = parse(text);
  ck_assert_ok(ts_graph_set_mesh(graph, mesh));
  ck_assert_ok(random_shardings(&r, graph, TS_PARAMS, 90));
  ck_assert_ok(random_shardings(&r, graph, TS_RESULTS, 60));
  ck_assert_ok(ts_shard_partition(graph, NULL, &report, &partitioned));
  ck_assert_ok(ts_graph_verify(partitioned));
  ck_assert_msg(report.replicated.count == 0, "%s has no rule", c->op);
  check_results(c->op, seed, graph, partitioned, &report);
  int64_t count = c->moves == NONE ? 0 : count_of(partitioned, c->moves);
  ts_shard_report_deinit(&report);
  ts_graph_destroy(graph);
  ts_graph_destroy(partitioned);
  return count;
}

START_TEST(ops_on_cut_dims)
{
  const op_case *c = &cases[_i];
  int64_t moves = 0;
  for (int m = 0; m < MESHES; m++)
    for (uint64_t seed = 1; seed <= TRIES; seed++) moves += check_case(c, &meshes[m], seed);
  ck_assert_msg(c->moves == NONE || moves > 0, "%s: no %s", c->op, ts_op_name(c->moves));
}
END_TEST

/* ---- the ops with a rule ---- */

static bool may_be_replicated(ts_opcode code) {
  switch ((int)code) {
  case TS_OP_CONSTANT: /* made as parts */
  case TS_OP_IOTA:
  case TS_OP_LITERAL: /* made whole, and cut for nothing */
  case TS_OP_EYE:
  case TS_OP_PARAMETER: /* not an op */
  case TS_OP_WHILE:     /* partitioned with their regions */
  case TS_OP_COND:
  case TS_OP_CALL:
  case TS_OP_FUSION: /* replicated */
  case TS_OP_CUSTOM_CALL: return true;
  default: return false;
  }
}

static bool is_refused(ts_opcode code) { return ts_op_is_ordered(code); }

/* Each op of op.def has a rule, is replicated (and in the report), or is an error because it cannot be partitioned. A
 * new op fails this test until it has a rule or its name here. */
START_TEST(every_op_has_a_rule_or_is_known)
{
  char *text = testing_read("test/golden/ir/every_op.ts");
  bool has[TS_OP_COUNT] = {false};
  ts_graph *graph = parse(text);
  for (size_t i = 0; i < graph->ops.count; i++) {
    ts_factors f;
    if (ts_factors_of(graph, &graph->ops.data[i], &f)) has[graph->ops.data[i].code] = true;
  }
  for (size_t i = 0; i < CASES; i++) { /* the ops that every_op.ts lacks */
    const char *at = cases[i].op;
    ts_opcode code = ts_op_from_name(at, strcspn(at, " "));
    if (code != TS_OP_COUNT) has[code] = true;
  }
  has[TS_OP_SHARDING_CONSTRAINT] = true;
  for (int code = 0; code < TS_OP_COUNT; code++) {
    bool known = may_be_replicated((ts_opcode)code) || is_refused((ts_opcode)code);
    ck_assert_msg(has[code] || known, "%s has no rule", ts_op_name((ts_opcode)code));
    ck_assert_msg(!has[code] || !known, "%s has a rule and is listed", ts_op_name((ts_opcode)code));
  }
  ts_graph_destroy(graph);
  free(text);
}
END_TEST

/* ---- large programs ---- */

static void add_text(ts_text *t, const char *format, int i) {
  for (const char *c = format; *c; c++) {
    if (*c == '#')
      ts_text_format(t, "%d", i);
    else
      ts_text_append_n(t, c, 1);
  }
}

static char *layers_text(int layers) {
  ts_text t = {0};
  char *text;
  ts_text_append(&t, "graph @t mesh [4,2] (%t0: f32[64,128] sharded [[0],[]]");
  for (int i = 0; i < layers; i++)
    add_text(&t,
             i % 2 ? ", %w#: f32[128,128] sharded [[1],[]], %b#: f32[128]"
                   : ", %w#: f32[128,128] sharded [[],[1]], %b#: f32[128]",
             i);
  ts_text_append(&t, ") -> (f32[64,128]) {\n");
  for (int i = 0; i < layers; i++) {
    add_text(&t,
             "  %d# = dot_general %t#, %w# {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} "
             ": f32[64,128]\n  %c# = broadcast %b# {shape = [64,128], axes = [1]} : f32[64,128]\n"
             "  %a# = add %d#, %c# : f32[64,128]\n",
             i);
    ts_text_format(&t, "  %%t%d = tanh %%a%d : f32[64,128]\n", i + 1, i);
  }
  ts_text_format(&t, "  return %%t%d\n}\n", layers);
  ck_assert_ok(ts_text_finish(&t, &text));
  return text;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Of a pair of layers the second product is summed: one all_reduce for two layers, and no weight moves. */
static double partition_layers(int layers) {
  ts_graph *partitioned;
  char *text = layers_text(layers);
  ts_graph *graph = parse(text);
  double begin = seconds();
  ck_assert_ok(ts_shard_partition(graph, NULL, NULL, &partitioned));
  double taken = seconds() - begin;
  ck_assert_int_eq(count_of(partitioned, TS_OP_ALL_REDUCE_SUM), layers / 2);
  ck_assert_int_eq(count_of(partitioned, TS_OP_ALL_GATHER), 0);
  ts_graph_destroy(partitioned);
  ts_graph_destroy(graph);
  ts_free(text);
  return taken;
}

/* The bar is 50 ms; sanitizers and busy machines take longer. Quadratic steps take more than ten times as long. */
START_TEST(a_thousand_layers)
{
  double taken = partition_layers(1000);
  printf("1000 layers on {4,2}: %.0f ms\n", 1e3 * taken);
  ck_assert_double_lt(taken, 3);
}
END_TEST

/* ---- faults ---- */

static void try_case(const op_case *c, const ts_mesh *mesh) {
  char text[1024];
  ts_graph *graph = NULL, *partitioned = NULL;
  ts_shard_report report = {0};
  ts_text printed = {0};
  rng r = {.state = 5};
  case_text(c, text, sizeof text);
  ts_status status = ts_graph_parse(text, strlen(text), &graph);
  if (!status) status = ts_graph_set_mesh(graph, mesh);
  if (!status) status = random_shardings(&r, graph, TS_PARAMS, 100);
  if (!status) status = ts_shard_partition(graph, NULL, &report, &partitioned);
  if (!status) status = ts_shard_print_report(partitioned, &report, &printed);
  ts_status_free(status);
  ts_text_deinit(&printed);
  ts_shard_report_deinit(&report);
  ts_graph_destroy(graph);
  ts_graph_destroy(partitioned);
}

START_TEST(failing_allocations_leak_nothing)
{
  for (size_t i = 0; i < CASES; i += 2) {
    const op_case *c = &cases[i];
    try_case(c, &meshes[0]);
    CK_FAIL_EACH_ALLOCATION(try_case(c, &meshes[0]));
  }
}
END_TEST

/* A changed text is an error, or a program whose partition verifies or is refused. */
static bool try_text(const char *text) {
  ts_graph *graph, *partitioned;
  if (!ts_status_consume_ok(ts_graph_parse(text, strlen(text), &graph))) return false;
  bool ok = ts_status_consume_ok(ts_graph_verify(graph));
  if (ok && ts_status_consume_ok(ts_shard_partition(graph, NULL, NULL, &partitioned))) {
    ts_status status = ts_graph_verify(partitioned);
    ck_assert_msg(!status, "%s\n%s", ts_status_message(status), text);
    ts_graph_destroy(partitioned);
  }
  ts_graph_destroy(graph);
  return ok;
}

START_TEST(damaged_texts)
{
  static const char *const files[] = {"halo", "indices", "terms", "loop_invariant", "branch", "softmax", "fsdp"};
  static const char bytes[] = "0123456789[],={}%@\" -";
  char path[64];
  int64_t accepted = 0;
  snprintf(path, sizeof path, "test/golden/shard/%s.ts", files[_i]);
  char *text = testing_read(path);
  size_t length = strlen(text);
  rng r = {.state = (uint64_t)_i + 1};
  ck_assert(try_text(text));
  for (int n = 0; n < 1500; n++) {
    size_t at = (size_t)rng_below(&r, (int64_t)length);
    char before = text[at];
    text[at] = bytes[rng_below(&r, sizeof bytes - 1)];
    accepted += try_text(text);
    text[at] = before;
  }
  ck_assert_int_gt(accepted, 20);
  free(text);
}
END_TEST

int main(void) {
  Suite *all = suite_create("rules");
  TCase *values = tcase_create("values");
  tcase_set_timeout(values, 120);
  tcase_add_loop_test(values, ops_on_cut_dims, 0, CASES);
  tcase_add_test(values, every_op_has_a_rule_or_is_known);
  tcase_add_test(values, a_thousand_layers);
  tcase_add_test(values, failing_allocations_leak_nothing);
  tcase_add_loop_test(values, damaged_texts, 0, 7);
  suite_add_tcase(all, values);
  return testing_run(all);
}
