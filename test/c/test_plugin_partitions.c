/* Programs of several partitions and replicas on our own plugin of PJRT (c_src/plugin). */
#include "ir/graph.h"
#include "plugin_calls.h"
#include "stablehlo/read.h"

#include <stdio.h>
#include <string.h>

enum { AT_EXECUTABLE_OPTIONS = 124, MOST = 8 };

/* A program of one argument and one result on all devices of a client. */
typedef struct several {
  pj_handle *client;
  pj_loaded *loaded;
  int count;
} several;

static ts_status try_open(const char *text, int replicas, int partitions, several *out) {
  const char options[] = {0x1a, 4, 0x20, (char)replicas, 0x28, (char)partitions};
  *out = (several){.client = open_client(replicas * partitions), .count = replicas * partitions};
  return try_compile_with(out->client, text, options, sizeof options, &out->loaded);
}

static void close_several(const several *s) {
  destroy(PJ_LOADED_DESTROY, s->loaded);
  destroy(PJ_CLIENT_DESTROY, s->client);
}

static void check_refused(const char *text, int replicas, int partitions, ts_code code, const char *why) {
  several s;
  ck_assert_error(try_open(text, replicas, partitions, &s), code, why);
  destroy(PJ_CLIENT_DESTROY, s.client);
}

/* Device i's argument and result. */
typedef struct lists {
  pj_buffer *args[MOST], *results[MOST];
  pj_buffer *const *arg_lists[MOST];
  pj_buffer **result_lists[MOST];
} lists;

static pj_args arguments(const several *s, lists *l) {
  for (int i = 0; i < s->count; i++) {
    l->arg_lists[i] = &l->args[i];
    l->result_lists[i] = &l->results[i];
  }
  return PJ_ARGS(.execute = {.loaded = s->loaded,
                             .args = l->arg_lists,
                             .device_count = (size_t)s->count,
                             .arg_count = 1,
                             .results = l->result_lists});
}

/* Argument i is row i of the rows. */
static void place_rows(const several *s, const float *rows, int64_t each, lists *out) {
  for (int i = 0; i < s->count; i++) out->args[i] = place_on(s->client, i, PJ_F32, rows + (int64_t)i * each, each);
}

static void drop(pj_buffer *const *buffers, int count) {
  for (int i = 0; i < count; i++) destroy(PJ_BUFFER_DESTROY, buffers[i]);
}

/* Runs on rows of `each` numbers, and compares with rows of `wide` numbers. */
static void check_rows(const several *s, const float *rows, int64_t each, const float *expected, size_t wide) {
  lists l;
  place_rows(s, rows, each, &l);
  pj_args args = arguments(s, &l);
  ck_assert_ok(call(PJ_EXECUTE, &args));
  for (int i = 0; i < s->count; i++) check_floats(l.results[i], expected + (size_t)i * wide, wide);
  drop(l.args, s->count);
  drop(l.results, s->count);
}

static void check_program(const char *text, int replicas, int partitions, const float *rows, int64_t each,
                          const float *expected, size_t wide) {
  several s;
  ck_assert_ok(try_open(text, replicas, partitions, &s));
  check_rows(&s, rows, each, expected, wide);
  close_several(&s);
}

/* ---- the shardings that the extension tells */

typedef pj_error *(*shardings_fn)(pj_args *args);

static const pj_extension *find_extension(void) {
  const pj_extension *e = GetPjrtApi()->extensions;
  while (e && e->kind != PJ_SHARDINGS) e = e->next;
  ck_assert_ptr_nonnull(e);
  return e;
}

static pj_executable *executable_of(pj_loaded *loaded) {
  pj_args args = PJ_ARGS(.loaded = {.loaded = loaded});
  ck_assert_ok(call(PJ_LOADED_EXECUTABLE, &args));
  return args.loaded.executable;
}

static pj_args shardings_of(shardings_fn ask, pj_executable *executable) {
  pj_args args = PJ_ARGS(.shardings = {.executable = executable});
  ck_assert_ptr_null(ask(&args));
  return args;
}

static void check_sharding(const pj_args *args, size_t i, const char *message, size_t size) {
  ck_assert_uint_gt(args->shardings.count, i);
  ck_assert_uint_eq(args->shardings.sizes[i], size);
  ck_assert_mem_eq(args->shardings.messages[i], message, size);
}

/* ---- on whole values */

/* Rows are cut by x. The sum over them is a sum of parts. */
static const char whole[] =
    "module @jit attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
    "  sdy.mesh @mesh = <[\"x\"=2]>\n"
    "  func.func public @main(%a: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>})\n"
    "      -> (tensor<2xf32>, tensor<4x2xf32>) {\n"
    "    %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "    %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]\n"
    "      : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>\n"
    "    %d = stablehlo.add %a, %a : tensor<4x2xf32>\n"
    "    return %s, %d : tensor<2xf32>, tensor<4x2xf32>\n  }\n}\n";

START_TEST(whole_values_are_cut)
{
  several s;
  ck_assert_ok(try_open(whole, 1, 2, &s));
  pj_executable *e = executable_of(s.loaded);
  const plugin_shardings_extension *x = (const plugin_shardings_extension *)find_extension();
  pj_args args = shardings_of(x->parameters, e);
  ck_assert_uint_eq(args.shardings.count, 1);
  check_sharding(&args, 0, "\x08\x03\x1a\x02\x02\x01\x22\x02\x00\x01", 10);
  args = shardings_of(x->results, e);
  ck_assert_uint_eq(args.shardings.count, 2);
  check_sharding(&args, 0, "\x08\x00", 2);
  check_sharding(&args, 1, "\x08\x03\x1a\x02\x02\x01\x22\x02\x00\x01", 10);
  args = PJ_ARGS(.dims = {.executable = e});
  ck_assert_ok(call(PJ_EXECUTABLE_DIMS, &args));
  ck_assert_int_eq(args.dims.dims[1], 2); /* of a part */
  args = PJ_ARGS(.object = s.loaded);
  ck_assert_ok(call(AT_LOADED_ASSIGNMENT, &args));
  ck_assert_mem_eq(args.save.bytes, "\x08\x01\x10\x02\x1a\x03\x0a\x01\x00\x1a\x03\x0a\x01\x01", 14);
  args.save.destroy(args.save.saved);
  args = PJ_ARGS(.object = e);
  ck_assert_ok(call(AT_EXECUTABLE_OPTIONS, &args));
  ck_assert_mem_eq(args.save.bytes, "\x1a\x04\x20\x01\x28\x02", 6);
  args.save.destroy(args.save.saved);
  pj_args small = {.size = offsetof(pj_args, room)};
  pj_error *error = x->results(&small);
  ck_assert_ptr_nonnull(error);
  ((void (*)(pj_args *))GetPjrtApi()->functions[PJ_ERROR_DESTROY])(&PJ_ARGS(.object = error));
  destroy(PJ_EXECUTABLE_DESTROY, e);
  close_several(&s);
}
END_TEST

START_TEST(shardings_of_nothing)
{
  several s;
  ck_assert_ok(try_open("module {\n  func.func public @main() {\n    return\n  }\n}\n", 1, 2, &s));
  pj_executable *e = executable_of(s.loaded);
  const plugin_shardings_extension *x = (const plugin_shardings_extension *)find_extension();
  pj_args args = shardings_of(x->parameters, e);
  ck_assert_uint_eq(args.shardings.count, 0);
  args = shardings_of(x->results, e);
  ck_assert_uint_eq(args.shardings.count, 1);
  check_sharding(&args, 0, "\x08\x00", 2);
  destroy(PJ_EXECUTABLE_DESTROY, e);
  args = PJ_ARGS(.execute = {.loaded = s.loaded, .device_count = 2});
  ck_assert_ok(call(PJ_EXECUTE, &args));
  close_several(&s);
}
END_TEST

START_TEST(one_partition_has_no_shardings)
{
  static const char text[] = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n}\n";
  pj_handle *client = open_client(1);
  pj_loaded *loaded = compile(client, text);
  pj_executable *e = executable_of(loaded);
  const plugin_shardings_extension *x = (const plugin_shardings_extension *)find_extension();
  pj_args args = shardings_of(x->results, e);
  ck_assert_ptr_null(args.shardings.messages);
  ck_assert_ptr_null(args.shardings.sizes);
  destroy(PJ_EXECUTABLE_DESTROY, e);
  destroy(PJ_LOADED_DESTROY, loaded);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

/* A transposition makes rows of columns; the constraint says that rows are cut again, by both axes of another mesh. */
#define TRANSPOSED(SECOND)                                                                              \
  "module {\n"                                                                                          \
  "  sdy.mesh @one = <[\"a\"=4]>\n"                                                                     \
  "  sdy.mesh @two = <[\"x\"=2, \"y\"=2]" SECOND ">\n"                                                  \
  "  func.func public @main(%a: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@one, [{\"a\"}, {}]>})\n" \
  "      -> tensor<4x4xf32> {\n"                                                                        \
  "    %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"             \
  "    %r = sdy.sharding_constraint %t <@two, [{\"x\", \"y\"}, {}]> : tensor<4x4xf32>\n"                \
  "    return %r : tensor<4x4xf32>\n  }\n}\n"

static const float square[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

START_TEST(meshes_with_common_axes)
{
  several s;
  lists l;
  ck_assert_ok(try_open(TRANSPOSED(""), 1, 4, &s));
  pj_executable *e = executable_of(s.loaded);
  pj_args args = shardings_of(((const plugin_shardings_extension *)find_extension())->results, e);
  check_sharding(&args, 0, "\x08\x03\x1a\x02\x04\x01\x22\x04\x00\x01\x02\x03", 12);
  destroy(PJ_EXECUTABLE_DESTROY, e);
  for (int i = 0; i < 4; i++) {
    pj_args from = from_host(s.client, PJ_F32, &square[4 * (size_t)i], (int64_t[]){1, 4}, 2);
    from.from_host.device = s.client->list[i];
    ck_assert_ok(call(PJ_FROM_HOST, &from));
    destroy(PJ_EVENT_DESTROY, from.from_host.read);
    l.args[i] = from.from_host.buffer;
  }
  args = arguments(&s, &l);
  ck_assert_ok(call(PJ_EXECUTE, &args));
  for (int i = 0; i < 4; i++) {
    const float f = (float)i;
    check_floats(l.results[i], (const float[]){f, f + 4, f + 8, f + 12}, 4);
  }
  drop(l.args, 4);
  drop(l.results, 4);
  close_several(&s);
  /* Devices in the order of columns: the axis x is along neighbours. */
  ck_assert_ok(try_open(TRANSPOSED(", device_ids=[0, 2, 1, 3]"), 1, 4, &s));
  e = executable_of(s.loaded);
  args = shardings_of(((const plugin_shardings_extension *)find_extension())->results, e);
  check_sharding(&args, 0, "\x08\x03\x1a\x02\x04\x01\x22\x04\x00\x02\x01\x03", 12);
  destroy(PJ_EXECUTABLE_DESTROY, e);
  close_several(&s);
  check_refused(TRANSPOSED(", device_ids=[0, 3, 1, 2]"), 1, 4, TS_UNIMPLEMENTED, "devices are in another order");
  check_refused(TRANSPOSED(", device_ids=[0, 3, 1]"), 1, 4, TS_INVALID_ARGUMENT, "a device for each partition");
  check_refused(TRANSPOSED(", device_ids=[0, 9999999999, 1, 1]"), 1, 4, TS_UNIMPLEMENTED, "in another order");
  check_refused(TRANSPOSED(""), 1, 2, TS_INVALID_ARGUMENT, "for 4 partitions, and it is compiled for 2");
}
END_TEST

/* ---- on parts */

#define MANUAL(N, BODY)                                                                         \
  "module {\n"                                                                                  \
  "  sdy.mesh @mesh = <[\"i\"=" N "]>\n"                                                        \
  "  func.func public @main(%arg0: tensor<" N "xf32>) -> tensor<" N "xf32> {\n"                 \
  "    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"i\"}]>]\n"                  \
  "        out_shardings=[<@mesh, [{\"i\"}]>] manual_axes={\"i\"} (%a: tensor<1xf32>) {\n" BODY \
  "      sdy.return %r : tensor<1xf32>\n    } : (tensor<" N "xf32>) -> tensor<" N "xf32>\n"     \
  "    return %0 : tensor<" N "xf32>\n  }\n}\n"
#define REDUCE(GROUPS, TYPE)                                                                             \
  "      %r = \"stablehlo.all_reduce\"(%a) ({\n      ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"          \
  "        %s = stablehlo.subtract %x, %y : tensor<f32>\n        stablehlo.return %s : tensor<f32>\n"    \
  "      }) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,\n" \
  "          replica_groups = dense<" GROUPS "> : tensor<" TYPE "xi64>} : (tensor<1xf32>) -> tensor<1xf32>\n"

/* The argument is replicated: each partition has all of it. */
static void check_manual(const char *text, int partitions, const float *expected) {
  float rows[MOST * MOST];
  for (int i = 0; i < partitions * partitions; i++) rows[i] = (float)(1 << (i % partitions));
  check_program(text, 1, partitions, rows, partitions, expected, 1);
}

START_TEST(groups_along_axes)
{
  check_manual(MANUAL("4", REDUCE("[[0, 1, 2, 3]]", "1x4")), 4, (const float[]){-13, -13, -13, -13});
  /* Along parts of the mesh's only axis: neighbours, and those two apart. */
  check_manual(MANUAL("4", REDUCE("[[0, 1], [2, 3]]", "2x2")), 4, (const float[]){-1, -1, -4, -4});
  check_manual(MANUAL("4", REDUCE("[[0, 2], [1, 3]]", "2x2")), 4, (const float[]){-3, -6, -3, -6});
}
END_TEST

/* A part of the sums is an op of its own; of any other region the parts are exchanged. */
#define SCATTER(REGION, GROUPS, TYPE)                                                                    \
  "      %b = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>\n"            \
  "      %i = stablehlo.iota dim = 0 : tensor<4xf32>\n"                                                  \
  "      %c = stablehlo.multiply %b, %i : tensor<4xf32>\n"                                               \
  "      %g = \"stablehlo.reduce_scatter\"(%c) ({\n      ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"      \
  "        %s = stablehlo." REGION " %x, %y : tensor<f32>\n        stablehlo.return %s : tensor<f32>\n"  \
  "      }) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,\n" \
  "          scatter_dimension = 0 : i64, replica_groups = dense<" GROUPS "> : tensor<" TYPE             \
  "xi64>} : (tensor<4xf32>) -> tensor<1xf32>\n      %r = stablehlo.add %g, %a : tensor<1xf32>\n"

START_TEST(parts_of_reductions)
{
  check_manual(MANUAL("4", SCATTER("add", "[[0, 1, 2, 3]]", "1x4")), 4, (const float[]){1, 17, 34, 53});
  check_manual(MANUAL("4", SCATTER("maximum", "[[0, 1, 2, 3]]", "1x4")), 4, (const float[]){1, 10, 20, 32});
  check_manual(MANUAL("4", SCATTER("subtract", "[[0, 1, 2, 3]]", "1x4")), 4, (const float[]){1, -11, -22, -31});
  check_manual(MANUAL("4", SCATTER("subtract", "[[0, 3, 2, 1]]", "1x4")), 4, (const float[]){1, -37, -22, -5});
}
END_TEST

START_TEST(other_groups)
{
  check_manual(MANUAL("4", REDUCE("[[0, 3], [2, 1]]", "2x2")), 4, (const float[]){-7, 2, 2, -7});
  check_manual(MANUAL("4", REDUCE("[[0, -1, -1], [3, 1, 2]]", "2x3")), 4, (const float[]){1, 2, 2, 2});
  check_manual(MANUAL("4", REDUCE("[[2], [1], [0], [3]]", "4x1")), 4, (const float[]){1, 2, 4, 8});
  check_refused(MANUAL("4", REDUCE("[[0, 3]]", "1x2")), 1, 4, TS_UNIMPLEMENTED, "a process is in none of its groups");
  check_refused(MANUAL("4", REDUCE("[[0, 3], [3, 1]]", "2x2")), 1, 4, TS_INVALID_ARGUMENT, "is in two groups");
}
END_TEST

#define OTHER(OP, ATTRIBUTES, FROM, TO)                                                                            \
  "      %b = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<1xf32>) -> tensor<" FROM ">\n"                   \
  "      %i = stablehlo.iota dim = 0 : tensor<" FROM ">\n"                                                         \
  "      %c = stablehlo.add %b, %i : tensor<" FROM ">\n"                                                           \
  "      %g = \"stablehlo." OP "\"(%c) {" ATTRIBUTES                                                               \
  "          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,\n"                                  \
  "          replica_groups = dense<[[0, 3], [2, 1]]> : tensor<2x2xi64>} : (tensor<" FROM ">) -> tensor<" TO ">\n" \
  "      %r = stablehlo.slice %g [1:2] : (tensor<" TO ">) -> tensor<1xf32>\n"

START_TEST(other_collectives_of_other_groups)
{
  /* The second member's value; what the second member sends here. */
  check_manual(MANUAL("4", OTHER("all_gather", "all_gather_dim = 0 : i64, use_global_device_ids,", "1xf32", "2xf32")),
               4, (const float[]){8, 2, 2, 8});
  check_manual(
      MANUAL("4", OTHER("all_to_all", "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,",
                        "2xf32", "2xf32")),
      4, (const float[]){8, 3, 2, 9});
  check_manual(MANUAL("4", OTHER("collective_broadcast", "", "2xf32", "2xf32")), 4, (const float[]){2, 5, 5, 2});
}
END_TEST

/* 2 and 2 of 8: groups in a function that a loop calls know their partition there. */
START_TEST(other_groups_in_a_loop)
{
  static const char text[] = "module {\n  sdy.mesh @mesh = <[\"i\"=3]>\n"
                             "  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {\n"
                             "    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"i\"}]>]\n"
                             "        out_shardings=[<@mesh, [{\"i\"}]>] manual_axes={\"i\"} (%a: tensor<1xf32>) {\n"
                             "      %z = stablehlo.constant dense<0> : tensor<i32>\n"
                             "      %r:2 = stablehlo.while(%i = %z, %v = %a) : tensor<i32>, tensor<1xf32>\n"
                             "      cond {\n        %n = stablehlo.constant dense<2> : tensor<i32>\n"
                             "        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                             "        stablehlo.return %p : tensor<i1>\n      } do {\n"
                             "        %o = stablehlo.constant dense<1> : tensor<i32>\n"
                             "        %j = stablehlo.add %i, %o : tensor<i32>\n"
                             "        %w = func.call @sum(%v) : (tensor<1xf32>) -> tensor<1xf32>\n"
                             "        stablehlo.return %j, %w : tensor<i32>, tensor<1xf32>\n      }\n"
                             "      sdy.return %r#1 : tensor<1xf32>\n    } : (tensor<3xf32>) -> tensor<3xf32>\n"
                             "    return %0 : tensor<3xf32>\n  }\n"
                             "  func.func private @sum(%a: tensor<1xf32>) -> tensor<1xf32> {\n" REDUCE(
                                 "[[2, 0], [1, -1]]", "2x2") "    return %r : tensor<1xf32>\n  }\n}\n";
  check_manual(text, 3, (const float[]){0, 2, 0}); /* 4 - 1, and 3 - 3 */
}
END_TEST

/* ---- replicas */

START_TEST(replicas_reduce_together)
{
  static const char text[] = "module {\n  func.func public @main(%a: tensor<1xf32>) -> tensor<1xf32> {\n" REDUCE(
      "[[0, 2], [1, 3]]",
      "2x2") "    %i = stablehlo.replica_id : tensor<ui32>\n"
             "    %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>\n"
             "    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<1xf32>\n"
             "    %t = stablehlo.add %r, %b : tensor<1xf32>\n    return %t : tensor<1xf32>\n  }\n}\n";
  check_program(text, 4, 1, (const float[]){1, 2, 4, 8}, 1, (const float[]){-3, -5, -1, -3}, 1);
}
END_TEST

/* ---- replicas of a module with a mesh: partition p of replica r is process 2r + p */

START_TEST(groups_of_replicas_and_partitions)
{
  static const float rows[] = {1, 2, 1, 2, 4, 8, 4, 8};
  check_program(MANUAL("2", REDUCE("[[0, 1], [2, 3]]", "2x2")), 2, 2, rows, 2, (const float[]){-1, -1, -4, -4}, 1);
  check_program(MANUAL("2", REDUCE("[[0, 2], [1, 3]]", "2x2")), 2, 2, rows, 2, (const float[]){-3, -6, -3, -6}, 1);
  check_program(MANUAL("2", REDUCE("[[0, 3], [2, 1]]", "2x2")), 2, 2, rows, 2, (const float[]){-7, 2, 2, -7}, 1);
}
END_TEST

#define PERMUTE                                                                                       \
  "      %r = \"stablehlo.collective_permute\"(%a) {source_target_pairs = dense<[[0, 1], [1, 0]]> : " \
  "tensor<2x2xi64>,\n"                                                                                \
  "          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<1xf32>) -> tensor<1xf32>\n"

START_TEST(permutations_of_partitions_in_replicas)
{
  static const float rows[] = {1, 2, 1, 2, 11, 12, 11, 12, 21, 22, 21, 22};
  check_program(MANUAL("2", PERMUTE), 3, 2, rows, 2, (const float[]){2, 1, 12, 11, 22, 21}, 1);
  check_program(MANUAL("2", PERMUTE), 1, 2, rows, 2, (const float[]){2, 1}, 1);
}
END_TEST

/* Arguments and results are parts of the replica's own partitions. */
START_TEST(whole_values_of_replicas)
{
  static const char text[] =
      "module {\n  sdy.mesh @mesh = <[\"x\"=2]>\n"
      "  func.func public @main(%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>})\n"
      "      -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) {\n"
      "    %0 = stablehlo.reverse %a, dims = [0] : tensor<2xf32>\n    return %0 : tensor<2xf32>\n  }\n}\n";
  check_program(text, 2, 2, (const float[]){1, 2, 4, 8}, 1, (const float[]){2, 1, 8, 4}, 1);
}
END_TEST

/* Adds an id twice: in the function of a loop's body, and behind the call. */
#define ADDED_TWICE(ID)                                                                               \
  "module {\n  sdy.mesh @mesh = <[\"i\"=2]>\n"                                                        \
  "  func.func private @more(%a: tensor<1xf32>) -> tensor<1xf32> {\n" ADD(                            \
      ID) "    return %r : tensor<1xf32>\n  }\n"                                                      \
          "  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n"                       \
          "    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"i\"}]>]\n"                \
          "        out_shardings=[<@mesh, [{\"i\"}]>] manual_axes={\"i\"} (%v: tensor<1xf32>) {\n"    \
          "      %z = stablehlo.constant dense<0> : tensor<i32>\n"                                    \
          "      %w:2 = stablehlo.while(%i = %z, %u = %v) : tensor<i32>, tensor<1xf32>\n"             \
          "      cond {\n        %n = stablehlo.constant dense<1> : tensor<i32>\n"                    \
          "        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"    \
          "        stablehlo.return %p : tensor<i1>\n      } do {\n"                                  \
          "        %o = stablehlo.constant dense<1> : tensor<i32>\n"                                  \
          "        %j = stablehlo.add %i, %o : tensor<i32>\n"                                         \
          "        %a = func.call @more(%u) : (tensor<1xf32>) -> tensor<1xf32>\n" ADD(                \
              ID) "        stablehlo.return %j, %r : tensor<i32>, tensor<1xf32>\n      }\n"           \
                  "      sdy.return %w#1 : tensor<1xf32>\n    } : (tensor<2xf32>) -> tensor<2xf32>\n" \
                  "    return %0 : tensor<2xf32>\n  }\n}\n"
#define ADD(ID)                                                                          \
  "    %d = stablehlo." ID " : tensor<ui32>\n"                                           \
  "    %f = stablehlo.convert %d : (tensor<ui32>) -> tensor<f32>\n"                      \
  "    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<1xf32>\n" \
  "    %r = stablehlo.add %a, %b : tensor<1xf32>\n"

/* A program of one replica need not know its partition for its number. */
START_TEST(numbers_in_a_loop)
{
  static const float rows[] = {10, 20, 10, 20, 30, 40, 30, 40, 50, 60, 50, 60};
  check_program(ADDED_TWICE("replica_id"), 1, 2, rows, 2, (const float[]){10, 20}, 1);
  check_program(ADDED_TWICE("partition_id"), 1, 2, rows, 2, (const float[]){10, 22}, 1);
  check_program(ADDED_TWICE("replica_id"), 3, 2, rows, 2, (const float[]){10, 20, 32, 42, 54, 64}, 1);
  check_program(ADDED_TWICE("partition_id"), 3, 2, rows, 2, (const float[]){10, 22, 30, 42, 50, 62}, 1);
}
END_TEST

/* ---- what has a limit */

static ts_status read_for_grid(const char *text, int64_t replicas, int64_t partitions, ts_graph **out) {
  const ts_stablehlo_grid grid = {replicas, partitions};
  ts_stablehlo_signature signature = {0};
  ts_status status = ts_stablehlo_read_processes(text, strlen(text), &grid, out, &signature);
  if (!status) ts_stablehlo_signature_deinit(&signature);
  return status;
}

START_TEST(numbers_of_processes)
{
  static const int64_t grids[][2] = {{1, 0}, {0, 1}, {-1, -2}, {1, 4097}, {64, 65}, {INT64_MAX, 2}};
  static const char text[] = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n}\n";
  ts_graph *graph;
  for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
    ck_assert_error(read_for_grid(text, grids[i][0], grids[i][1], &graph), TS_INVALID_ARGUMENT,
                    "expected 1 to 4096 processes");
  ck_assert_error(ts_stablehlo_read_whole(text, strlen(text), 1LL << 40, &graph), TS_INVALID_ARGUMENT,
                  "1 replicas of 1099511627776 partitions");
  ck_assert_ok(ts_stablehlo_read_whole(text, strlen(text), 4096, &graph));
  ck_assert_int_eq(ts_mesh_partitions(&graph->mesh), 4096);
  ts_graph_destroy(graph);
}
END_TEST

#define CUT                                                                                                  \
  "func.func @main(%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"h\"}]>}) -> tensor<2xf32> {\n" \
  "  return %a : tensor<2xf32>\n}\n"
#define AXES "\"a\"=2, \"b\"=2, \"c\"=2, \"d\"=2, \"e\"=2, \"f\"=2, \"g\"=2"

/* Replicas are an axis of the program's mesh. */
START_TEST(replicas_of_a_mesh_with_many_axes)
{
  ts_graph *graph;
  ck_assert_ok(read_for_grid("sdy.mesh @mesh = <[" AXES ", \"h\"=2]>\n" CUT, 1, 256, &graph));
  ts_graph_destroy(graph);
  ck_assert_error(read_for_grid("sdy.mesh @mesh = <[" AXES ", \"h\"=2]>\n" CUT, 2, 256, &graph), TS_UNIMPLEMENTED,
                  "a mesh of 8 axes, and 2 replicas: at most 8 axes");
  ck_assert_ok(read_for_grid("sdy.mesh @mesh = <[" AXES ", \"h\"=1]>\n" CUT, 2, 128, &graph));
  ck_assert_int_eq(graph->mesh.rank, 8);
  ck_assert_int_eq(ts_mesh_partitions(&graph->mesh), 256);
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(many_meshes)
{
  char text[8192] = "sdy.mesh @mesh = <[\"h\"=2]>\n" CUT;
  ts_graph *graph;
  for (int i = 1; i < 64; i++) sprintf(text + strlen(text), "sdy.mesh @m%d = <[\"x\"=2, \"y\"=1]>\n", i);
  ck_assert_ok(read_for_grid(text, 1, 2, &graph));
  ts_graph_destroy(graph);
  strcat(text, "sdy.mesh @more = <[\"x\"=2]>\n");
  ck_assert_error(read_for_grid(text, 1, 2, &graph), TS_UNIMPLEMENTED, "the module has 65 meshes, expected at most 64");
}
END_TEST

/* The tables of groups are no larger than the number of processes. */
START_TEST(tables_of_other_groups)
{
  enum { PROCESSES = 256 };
  static const char program[] = MANUAL("256", REDUCE("GROUPS", "1x256"));
  const char *at = strstr(program, "GROUPS");
  char groups[8 * PROCESSES] = "[[255", text[sizeof groups + 2048];
  size_t elements = 0;
  ts_graph *graph;
  for (int i = PROCESSES - 2; i >= 0; i--) sprintf(groups + strlen(groups), ", %d", i);
  strcat(groups, "]]");
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - program), program, groups, at + strlen("GROUPS"));
  ck_assert_ok(read_for_grid(text, 1, PROCESSES, &graph));
  for (size_t i = 0; i < graph->ops.count; i++)
    if (graph->ops.data[i].code == TS_OP_LITERAL)
      elements += (size_t)graph->ops.data[i].attrs->literal.buffer->bytes / sizeof(int32_t);
  ck_assert_uint_gt(elements, PROCESSES);
  ck_assert_uint_le(elements, 8 * PROCESSES);
  ts_graph_destroy(graph);
}
END_TEST

/* ---- arguments */

START_TEST(runs_that_are_refused)
{
  several s;
  lists l;
  ck_assert_ok(try_open(MANUAL("2", REDUCE("[[0, 1]]", "1x2")), 1, 2, &s));
  place_rows(&s, (const float[]){1, 2, 3, 4}, 2, &l);
  pj_args args = arguments(&s, &l);
  args.execute.device = s.client->list[0];
  ck_assert_error(call(PJ_EXECUTE, &args), TS_INVALID_ARGUMENT, "a device is named for an executable of 2 devices");
  args.execute.device = NULL;
  args.execute.device_count = 1;
  ck_assert_error(call(PJ_EXECUTE, &args), TS_INVALID_ARGUMENT, "arguments for 1 devices: the executable has 2");
  args.execute.device_count = 2;
  l.arg_lists[1] = &l.args[0];
  ck_assert_error(call(PJ_EXECUTE, &args), TS_INVALID_ARGUMENT, "argument 0 is on TesseraDevice(id=0)");
  l.arg_lists[1] = &l.args[1];
  destroy(AT_BUFFER_DELETE, l.args[1]);
  ck_assert_error(call(PJ_EXECUTE, &args), TS_INVALID_ARGUMENT, "deleted");
  drop(l.args, 2);
  close_several(&s);
  static const char twice[] = {0x1a, 18, 0x20, 1, 0x28, 2, 0x4a, 12, 8, 1, 0x1a, 3, 0x0a, 1, 1, 0x1a, 3, 0x0a, 1, 1};
  s.client = open_client(2);
  ck_assert_error(try_compile_with(s.client, whole, twice, sizeof twice, &s.loaded), TS_INVALID_ARGUMENT,
                  "device 1 is named for two");
  destroy(PJ_CLIENT_DESTROY, s.client);
}
END_TEST

/* Buffers of both devices have the same elements. Each result is its own. */
START_TEST(donated_arguments_of_partitions)
{
  static const char text[] =
      "module {\n  sdy.mesh @mesh = <[\"x\"=2]>\n"
      "  func.func public @main(%a: tensor<2xf32> {jax.buffer_donor = true}) -> tensor<2xf32> {\n"
      "    %0 = stablehlo.add %a, %a : tensor<2xf32>\n    return %0 : tensor<2xf32>\n  }\n}\n";
  several s;
  lists l;
  ck_assert_ok(try_open(text, 1, 2, &s));
  l.args[0] = place(s.client, PJ_F32, (const float[]){1, 2}, 2);
  pj_args copy = PJ_ARGS(.to_device = {.buffer = l.args[0], .device = s.client->list[1]});
  ck_assert_ok(call(PJ_BUFFER_TO_DEVICE, &copy));
  l.args[1] = copy.to_device.copy;
  pj_args args = arguments(&s, &l);
  pj_event *done[2];
  args.execute.complete = done;
  ck_assert_ok(call(PJ_EXECUTE, &args));
  for (int i = 0; i < 2; i++) {
    pj_args flag = PJ_ARGS(.flag = {.object = l.args[i]});
    check_floats(l.results[i], (const float[]){2, 4}, 2);
    ck_assert_ok(call(AT_BUFFER_IS_DELETED, &flag));
    ck_assert(flag.flag.yes);
    ck_assert_ok(call(PJ_EVENT_AWAIT, &PJ_ARGS(.object = done[i])));
    destroy(PJ_EVENT_DESTROY, done[i]);
  }
  drop(l.args, 2);
  drop(l.results, 2);
  close_several(&s);
}
END_TEST

/* ---- without memory */

/* Compiles and runs, with any error on the way. */
static void try_all(several *s, lists *l) {
  static const char options[] = {0x1a, 4, 0x20, 1, 0x28, 4};
  ts_status status =
      try_compile_with(s->client, MANUAL("4", REDUCE("[[0, 3], [2, 1]]", "2x2")), options, sizeof options, &s->loaded);
  if (!status) {
    pj_args args = arguments(s, l);
    status = call(PJ_EXECUTE, &args);
    if (!status) drop(l->results, s->count);
  }
  ts_status_free(status);
  destroy(PJ_LOADED_DESTROY, s->loaded);
}

START_TEST(each_allocation_may_fail)
{
  several s = {.client = open_client(4), .count = 4};
  lists l;
  place_rows(&s, square, 4, &l);
  try_all(&s, &l); /* caches */
  CK_FAIL_EACH_ALLOCATION(try_all(&s, &l));
  drop(l.args, 4);
  destroy(PJ_CLIENT_DESTROY, s.client);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("plugin_partitions");
  TCase *t = tcase_create("plugin_partitions");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, whole_values_are_cut);
  tcase_add_test(t, shardings_of_nothing);
  tcase_add_test(t, one_partition_has_no_shardings);
  tcase_add_test(t, meshes_with_common_axes);
  tcase_add_test(t, groups_along_axes);
  tcase_add_test(t, parts_of_reductions);
  tcase_add_test(t, other_groups);
  tcase_add_test(t, other_collectives_of_other_groups);
  tcase_add_test(t, other_groups_in_a_loop);
  tcase_add_test(t, replicas_reduce_together);
  tcase_add_test(t, groups_of_replicas_and_partitions);
  tcase_add_test(t, permutations_of_partitions_in_replicas);
  tcase_add_test(t, whole_values_of_replicas);
  tcase_add_test(t, numbers_in_a_loop);
  tcase_add_test(t, numbers_of_processes);
  tcase_add_test(t, replicas_of_a_mesh_with_many_axes);
  tcase_add_test(t, many_meshes);
  tcase_add_test(t, tables_of_other_groups);
  tcase_add_test(t, runs_that_are_refused);
  tcase_add_test(t, donated_arguments_of_partitions);
  tcase_add_test(t, each_allocation_may_fail);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
