/* Compiled kernels against an interpreter, bit for bit. */
#include "kernel_case.h"
#include "testing.h"

START_TEST(map_rank_1) {
  const int64_t sizes[] = {0, 1, 3, 15, 16, 17, 31, 64, 1000};
  ts_kernel_case c;
  ts_case_parse("map 1\nin f32 1\nin f32 s\nin f32 0\nout f32 1 5\nscalar f32\n0 f32 load 0\n1 f32 load 1\n2 f32 load 2\n"
                "3 f32 scalar 0\n4 f32 multiply 0 1\n5 f32 add 4 3\n", &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (int i = 0; i < 9; i++) ts_case_check(&c, kernel, &(ts_case_run){.extents = {sizes[i]}, .seed = 5, .special = true});
  ts_kernel_release(kernel);
}
END_TEST

START_TEST(row_softmax) {
  ts_case_test("row 2\nin f32 s1\nout f32 s1 6\n0 f32 load 0\n1 f32 reduce_max 0\n2 f32 subtract 0 1\n3 f32 multiply 2 2\n"
               "4 f32 reduce_sum 3\n5 f32 sqrt 4\n6 f32 divide 3 5\n", &(ts_case_run){.extents = {5, 77}, .seed = 1});
}
END_TEST

int main(void) {
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  Suite *suite = suite_create("kernel");
  TCase *tc = tcase_create("kernel");
  tcase_set_timeout(tc, 120);
  tcase_add_test(tc, map_rank_1);
  tcase_add_test(tc, row_softmax);
  suite_add_tcase(suite, tc);
  return testing_run(suite);
}
