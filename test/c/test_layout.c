/* Which kernels can stand in for which, and launches in another layout. */
#include "jit/lower/layout.h"
#include "testing.h"

static void parse(const char *text, ts_kernel_layout *out) { ck_assert(ts_layout_parse(text, out)); }

START_TEST(texts_say_how_operands_lie)
{
  ts_kernel_layout layout;
  parse("row 3\nin f32 s01\nin bf16 000\nout f32 ss1 4 stream\nout u8 ss0 5\nindex 0s1\nscalar f32\n0 f32 load 0\n",
        &layout);
  ck_assert_int_eq(layout.kind, TS_KERNEL_ROW);
  ck_assert_int_eq(layout.rank, 3);
  ck_assert_int_eq(layout.operand_count, 5);
  ck_assert_int_eq(layout.stride[0][0], TS_STRIDE_ANY);
  ck_assert_int_eq(layout.stride[0][1], TS_STRIDE_ZERO);
  ck_assert_int_eq(layout.stride[2][2], TS_STRIDE_UNIT);
  ck_assert_int_eq(layout.stride[4][2], TS_STRIDE_UNIT);
  ck_assert_uint_eq(layout.streams, 1);
  ck_assert(!ts_layout_parse("gemm f32 tile", &layout));
  ck_assert(!ts_layout_parse("map 9\nin f32 s", &layout));
  ck_assert(!ts_layout_parse("map 2\nin f32 s", &layout));
}
END_TEST

/* negate of f32: one input, one output, classes as in the text. */
typedef struct sample {
  ts_kernel_operand input;
  ts_kernel_output output;
  ts_kernel_node nodes[2];
  int64_t args[16];
  ts_launch_pointer pointers[2];
  ts_launch launch;
} sample;

static void make(sample *s, const char *text, const int64_t *extents, const int64_t *in, const int64_t *out) {
  ts_kernel_layout layout;
  parse(text, &layout);
  *s = (sample){.input = {.dtype = TS_F32}, .output = {.operand = {.dtype = TS_F32}, .node = 1}};
  s->nodes[0] = (ts_kernel_node){.kind = TS_NODE_LOAD, .dtype = TS_F32, .a = -1, .b = -1, .c = -1};
  s->nodes[1] = (ts_kernel_node){.kind = TS_NODE_OP, .op = TS_OP_NEGATE, .dtype = TS_F32, .slot = -1, .b = -1, .c = -1};
  memcpy(s->input.stride, layout.stride[0], sizeof(s->input.stride));
  memcpy(s->output.operand.stride, layout.stride[1], sizeof(s->input.stride));
  s->launch.desc = (ts_kernel_desc){.kind = layout.kind,
                                    .rank = layout.rank,
                                    .input_count = 1,
                                    .output_count = 1,
                                    .node_count = 2,
                                    .inputs = &s->input,
                                    .outputs = &s->output,
                                    .nodes = s->nodes};
  s->launch.args = s->args;
  s->launch.points = 1;
  for (int32_t d = 0; d < layout.rank; d++) {
    s->args[d] = extents[d];
    s->launch.points *= extents[d];
    s->args[ts_kernel_arg_operand(&s->launch.desc, 0) + 1 + d] = in[d];
    s->args[ts_kernel_arg_operand(&s->launch.desc, 1) + 1 + d] = out[d];
  }
  for (int i = 0; i < 2; i++) s->pointers[i].word = ts_kernel_arg_operand(&s->launch.desc, i);
  s->launch.pointers = s->pointers;
  s->launch.pointer_count = 2;
}

static bool fits(const sample *s, const char *text) {
  ts_kernel_layout layout;
  int32_t dims[TS_KERNEL_MAX_RANK], cost;
  parse(text, &layout);
  return ts_layout_match(&s->launch, &layout, dims, &cost);
}

START_TEST(more_general_layouts_fit)
{
  sample s;
  make(&s, "map 2\nin f32 01\nout f32 s1 1\n", (int64_t[]){5, 7}, (int64_t[]){0, 4}, (int64_t[]){28, 4});
  ck_assert(fits(&s, "map 2\nin f32 s1\nout f32 s1 1\n"));
  ck_assert(fits(&s, "map 3\nin f32 s01\nout f32 ss1 1\n"));
  ck_assert(fits(&s, "map 3\nin f32 0s1\nout f32 ss1 1\n"));
  ck_assert(!fits(&s, "map 1\nin f32 1\nout f32 1 1\n"));
  ck_assert(!fits(&s, "map 2\nin f32 ss\nout f32 s1 1\n")); /* slow */
  ck_assert(!fits(&s, "map 2\nin f32 01\nout f32 01 1\n"));
  ck_assert(!fits(&s, "map 2\nin f32 01\nout f32 s1 1 stream\n"));
  ck_assert(!fits(&s, "row 2\nin f32 01\nout f32 s1 1\n"));
  make(&s, "map 1\nin f32 1\nout f32 1 1\n", (int64_t[]){1 << 20}, (int64_t[]){4}, (int64_t[]){4});
  ck_assert(!fits(&s, "map 2\nin f32 01\nout f32 s1 1\n")); /* on one thread */
}
END_TEST

START_TEST(a_launch_moves)
{
  sample s;
  ts_kernel_layout layout;
  ts_launch moved;
  ts_arena arena;
  int32_t dims[TS_KERNEL_MAX_RANK], cost;
  make(&s, "map 2\nin f32 01\nout f32 s1 1\n", (int64_t[]){5, 7}, (int64_t[]){0, 4}, (int64_t[]){28, 4});
  parse("map 3\nin f32 s01\nout f32 ss1 1\n", &layout);
  ck_assert(ts_layout_match(&s.launch, &layout, dims, &cost));
  ts_arena_init(&arena);
  ck_assert_ok(ts_layout_apply(&s.launch, &layout, dims, &arena, &moved));
  ck_assert_ok(ts_kernel_check(&moved.desc));
  const int64_t expected[] = {1, 5, 7, 0, 0, 0, 4, 0, 0, 28, 4};
  ck_assert_int_eq(ts_kernel_arg_count(&moved.desc), 11);
  for (int i = 0; i < 11; i++) ck_assert_int_eq(moved.args[i], expected[i]);
  ck_assert_int_eq(moved.pointers[0].word, 3);
  ck_assert_int_eq(moved.pointers[1].word, 7);
  ck_assert_int_eq(moved.units, 5);
  ck_assert_int_eq(moved.points, 35);
  ts_arena_deinit(&arena);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("layout");
  TCase *t = tcase_create("layout");
  tcase_add_test(t, texts_say_how_operands_lie);
  tcase_add_test(t, more_general_layouts_fit);
  tcase_add_test(t, a_launch_moves);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
