/* Programs of loop nests: which loops, reads, writes and scalar ops come of a graph, and what is no loop nest. */
#include "pass/program.h"

#include "testing.h"

typedef struct fixture {
  ts_graph *graph;
  ts_arena arena;
  ts_program program;
} fixture;

/* The graph's parameters come from outside. */
static bool is_param(const void *context, ts_value_id value, uint32_t *out_index) {
  const ts_region *root = ts_graph_region(context, TS_ROOT);
  for (size_t i = 0; i < root->params.count; i++) {
    if (root->params.data[i] != value) continue;
    *out_index = (uint32_t)i;
    return true;
  }
  return false;
}

static ts_op_id find_reduction(const ts_graph *g) {
  for (size_t i = 0; i < g->ops.count; i++)
    if (ts_op_get_class(g->ops.data[i].code) == TS_CLASS_REDUCE) return (ts_op_id)i;
  return TS_NO_ID;
}

static ts_status try_build(fixture *f) {
  const ts_region *region = ts_graph_region(f->graph, TS_ROOT);
  ts_program_root roots[4];
  for (size_t i = 0; i < region->results.count; i++)
    roots[i] = ts_program_root_whole(f->graph, region->results.data[i], (uint32_t)i);
  ts_program_spec spec = {.graph = f->graph,
                          .operand = is_param,
                          .context = f->graph,
                          .roots = roots,
                          .root_count = region->results.count,
                          .reduce = find_reduction(f->graph)};
  return ts_program_build(&spec, &f->arena, &f->program);
}

static void parse(fixture *f, const char *text) {
  ck_assert_ok(ts_graph_parse(text, strlen(text), &f->graph));
  ts_arena_init(&f->arena);
}

static void finish(fixture *f) {
  ts_program_deinit(&f->program);
  ts_arena_deinit(&f->arena);
  ts_graph_destroy(f->graph);
}

static void drop(fixture *f) {
  ts_arena_deinit(&f->arena);
  ts_graph_destroy(f->graph);
}

static void build(fixture *f, const char *text) {
  parse(f, text);
  ck_assert_ok(try_build(f));
}

static void check_at(const ts_affine *at, int64_t offset, int64_t first, int64_t second) {
  ck_assert_int_eq(at->offset, offset);
  ck_assert_int_eq(at->coef[0], first);
  ck_assert_int_eq(at->coef[1], second);
}

static void check_loops(const ts_program *p, int64_t first, int64_t second) {
  ck_assert_int_eq(p->loops.count, second ? 2 : 1);
  ck_assert_int_eq(p->loops.extent[0], first);
  if (second) ck_assert_int_eq(p->loops.extent[1], second);
}

START_TEST(reads_follow_transposes_and_broadcasts)
{
  fixture f;
  build(&f,
        "graph @main(%0: f32[2,3], %1: f32[2]) -> (f32[3,2]) {\n  %2 = transpose %0 {axes = [1,0]} : f32[3,2]\n"
        "  %3 = broadcast %1 {shape = [3,2], axes = [1]} : f32[3,2]\n  %4 = add %2, %3 : f32[3,2]\n  return %4\n}\n");
  check_loops(&f.program, 3, 2);
  ck_assert_int_eq(f.program.kept, 2);
  ck_assert(!f.program.reduces);
  ck_assert_uint_eq(f.program.loads.count, 2);
  check_at(&f.program.loads.data[0].at, 0, 4, 12);
  check_at(&f.program.loads.data[1].at, 0, 0, 4);
  ck_assert_uint_eq(f.program.stores.count, 1);
  check_at(&f.program.stores.data[0].to.at, 0, 8, 4);
  finish(&f);
}
END_TEST

START_TEST(reads_follow_slices_and_reverses)
{
  fixture f;
  build(&f,
        "graph @main(%0: s16[10]) -> (s16[3]) {\n  %1 = slice %0 {start = [1], limit = [9], stride = [3]} : s16[3]\n"
        "  %2 = reverse %1 {axes = [0]} : s16[3]\n  %3 = negate %2 : s16[3]\n  return %3\n}\n");
  check_loops(&f.program, 3, 0);
  check_at(&f.program.loads.data[0].at, 2 * 7, 2 * -3, 0);
  finish(&f);
}
END_TEST

START_TEST(equal_reads_are_one)
{
  fixture f;
  build(&f,
        "graph @main(%0: f32[5]) -> (f32[5], f32[5]) {\n  %1 = multiply %0, %0 : f32[5]\n  %2 = add %1, %0 : f32[5]\n"
        "  return %1, %2\n}\n");
  ck_assert_uint_eq(f.program.loads.count, 1);
  ck_assert_uint_eq(f.program.stores.count, 2);
  ck_assert_uint_eq(f.program.nodes.count, 3); /* the read, the product, the sum */
  finish(&f);
}
END_TEST

/* Element i of the result is element (i / 3, i % 3) of what was transposed: a finer loop makes that affine. */
START_TEST(a_reshape_may_split_a_loop)
{
  fixture f;
  build(&f, "graph @main(%0: f32[3,2]) -> (f32[6]) {\n  %1 = transpose %0 {axes = [1,0]} : f32[2,3]\n"
            "  %2 = reshape %1 {shape = [6]} : f32[6]\n  %3 = exp %2 : f32[6]\n  return %3\n}\n");
  check_loops(&f.program, 2, 3);
  check_at(&f.program.loads.data[0].at, 0, 4, 8);
  check_at(&f.program.stores.data[0].to.at, 0, 12, 4);
  finish(&f);
}
END_TEST

START_TEST(a_reduction_sets_the_loops)
{
  fixture f;
  build(
      &f,
      "graph @main(%0: f32[4,7]) -> (f32[4]) {\n  %1 = abs %0 : f32[4,7]\n  %2 = reduce_sum %1 {axes = [1]} : f32[4]\n"
      "  %3 = sqrt %2 : f32[4]\n  return %3\n}\n");
  const ts_program *p = &f.program;
  check_loops(p, 4, 7);
  ck_assert_int_eq(p->kept, 1);
  ck_assert(p->reduces && ts_program_row_is_one(p));
  size_t reductions = 0;
  for (size_t i = 0; i < p->nodes.count; i++) {
    bool reduces = p->nodes.data[i].kind == TS_PROGRAM_REDUCE;
    reductions += reduces;
    if (reduces) ck_assert(!p->nodes.data[i].varies && p->nodes.data[p->nodes.data[i].a].varies);
  }
  ck_assert_uint_eq(reductions, 1);
  finish(&f);
}
END_TEST

START_TEST(a_dynamic_start_is_a_term)
{
  fixture f;
  build(&f, "graph @main(%0: f64[9], %1: s32[]) -> (f64[4]) {\n  %2 = dynamic_slice %0, %1 {shape = [4]} : f64[4]\n"
            "  %3 = exp %2 : f64[4]\n  return %3\n}\n");
  const ts_access *load = &f.program.loads.data[0];
  ck_assert_int_eq(load->term_count, 1);
  ck_assert_uint_eq(load->terms[0].operand, 1);
  ck_assert_int_eq(load->terms[0].limit, 5);
  ck_assert_int_eq(load->terms[0].stride, 8);
  finish(&f);
}
END_TEST

/* A start is clamped, whatever its type holds. */
START_TEST(starts_are_clamped)
{
  ck_assert_int_eq(ts_dynamic_clamp(TS_S32, (ts_scalar){.s64 = -7}, 5), 0);
  ck_assert_int_eq(ts_dynamic_clamp(TS_S64, (ts_scalar){.s64 = INT64_MAX}, 5), 5);
  ck_assert_int_eq(ts_dynamic_clamp(TS_U64, (ts_scalar){.s64 = -1}, 5), 5);
  ck_assert_int_eq(ts_dynamic_clamp(TS_U8, (ts_scalar){.s64 = 3}, 5), 3);
}
END_TEST

static const char *const no_programs[] = {
    "graph @main(%0: f32[3,3]) -> (f32[3,3]) {\n"
    "  %1 = dot_general %0, %0 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,3]\n"
    "  return %1\n}\n",
    "graph @main(%0: f32[3]) -> (f32[3]) {\n  %1 = cumulative_sum %0 {axis = 0, reverse = false} : f32[3]\n  return "
    "%1\n}\n",
    /* after a reversal the 6 elements are no rows of 4 */
    "graph @main(%0: f32[3,4]) -> (f32[2,6]) {\n  %1 = transpose %0 {axes = [1,0]} : f32[4,3]\n"
    "  %2 = reshape %1 {shape = [2,6]} : f32[2,6]\n  %3 = transpose %2 {axes = [1,0]} : f32[6,2]\n"
    "  %4 = reshape %3 {shape = [4,3]} : f32[4,3]\n  %5 = reshape %4 {shape = [2,6]} : f32[2,6]\n  return %5\n}\n"};

START_TEST(what_is_no_loop_nest_is_declined)
{
  fixture f;
  parse(&f, no_programs[_i]);
  ts_status status = try_build(&f);
  ck_assert_int_eq(ts_status_code(status), TS_UNIMPLEMENTED);
  ts_status_free(status);
  drop(&f);
}
END_TEST

static void build_and_drop(fixture *f) {
  ts_arena_init(&f->arena);
  ts_status status = try_build(f);
  if (!status) ts_program_deinit(&f->program);
  if (status) ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
  ts_status_free(status);
  ts_arena_deinit(&f->arena);
}

START_TEST(every_allocation_may_fail)
{
  fixture f;
  parse(&f, "graph @main(%0: f32[4,7], %1: s32[]) -> (f32[4]) {\n"
            "  %2 = dynamic_slice %0, %1, %1 {shape = [4,5]} : f32[4,5]\n  %3 = reduce_max %2 {axes = [1]} : f32[4]\n"
            "  return %3\n}\n");
  ts_arena_deinit(&f.arena);
  CK_FAIL_EACH_ALLOCATION(build_and_drop(&f));
  ts_graph_destroy(f.graph);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("program");
  TCase *tc = tcase_create("program");
  tcase_add_test(tc, reads_follow_transposes_and_broadcasts);
  tcase_add_test(tc, reads_follow_slices_and_reverses);
  tcase_add_test(tc, equal_reads_are_one);
  tcase_add_test(tc, a_reshape_may_split_a_loop);
  tcase_add_test(tc, a_reduction_sets_the_loops);
  tcase_add_test(tc, a_dynamic_start_is_a_term);
  tcase_add_test(tc, starts_are_clamped);
  tcase_add_loop_test(tc, what_is_no_loop_nest_is_declined, 0, (int)(sizeof no_programs / sizeof *no_programs));
  tcase_add_test(tc, every_allocation_may_fail);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
