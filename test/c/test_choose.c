/* The kernels of a program depend on the program alone, whatever other programs were compiled before. */
#include "exec/executable.h"
#include "tensors.h"
#include "testing.h"

#include <sys/wait.h>
#include <unistd.h>

/* Each %1$d is the size of a batch. Types and ops are rare, so that no kernel of these programs is built in. */
static const char *const programs[] = {
    /* both steps of a long sum take one kernel; a short sum has one of its own */
    "graph @main(%%0: u16[%1$d]) -> (u16[]) {\n  %%1 = reduce_sum %%0 {axes = [0]} : u16[]\n  return %%1\n}\n",
    /* the columns of a batch; a batch of one is summed as a row */
    "graph @main(%%0: f64[9,%1$d]) -> (f64[%1$d]) {\n  %%1 = sin %%0 : f64[9,%1$d]\n"
    "  %%2 = reduce_sum %%1 {axes = [0]} : f64[%1$d]\n  return %%2\n}\n",
    /* a layer with its softmax as an epilogue, which sums over rows */
    "graph @main(%%0: f64[%1$d,20], %%1: f64[20,13], %%2: f64[13]) -> (f64[%1$d,13]) {\n"
    "  %%3 = dot_general %%0, %%1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : "
    "f64[%1$d,13]\n"
    "  %%4 = broadcast %%2 {shape = [%1$d,13], axes = [1]} : f64[%1$d,13]\n  %%5 = add %%3, %%4 : f64[%1$d,13]\n"
    "  %%6 = reduce_max %%5 {axes = [1]} : f64[%1$d]\n"
    "  %%7 = broadcast %%6 {shape = [%1$d,13], axes = [0]} : f64[%1$d,13]\n"
    "  %%8 = subtract %%5, %%7 : f64[%1$d,13]\n  %%9 = exp %%8 : f64[%1$d,13]\n  return %%9\n}\n",
    /* a product of one column, whose rows have one element */
    "graph @main(%%0: f64[30,20], %%1: f64[20,%1$d]) -> (f64[30]) {\n"
    "  %%2 = dot_general %%0, %%1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : "
    "f64[30,%1$d]\n"
    "  %%3 = cos %%2 : f64[30,%1$d]\n  %%4 = reduce_sum %%3 {axes = [1]} : f64[30]\n  return %%4\n}\n",
    /* several launches of one family */
    "graph @main(%%0: s16[%1$d,7], %%1: s16[7,%1$d,3]) -> (s16[%1$d], s16[7,%1$d], s16[7]) {\n"
    "  %%2 = reduce_product %%0 {axes = [1]} : s16[%1$d]\n  %%3 = reduce_product %%1 {axes = [2]} : s16[7,%1$d]\n"
    "  %%4 = reduce_product %%3 {axes = [1]} : s16[7]\n  return %%2, %%3, %%4\n}\n",
};
enum { PROGRAMS = sizeof(programs) / sizeof(*programs) };

/* What explain says of the program, without the lines that say what its compilation took. */
static void explain(const char *format, int n, char *out, size_t size) {
  char text[2048];
  ts_text all = {0};
  snprintf(text, sizeof text, format, n);
  ts_executable *exe = test_compile(text);
  ts_executable_stats stats;
  ts_executable_get_stats(exe, &stats);
  ck_assert_ok(ts_executable_explain(exe, &all));
  const char *from = strstr(all.data, "memory: "), *compiled = strstr(all.data, "compiled in ");
  ck_assert(from && compiled);
  int length = snprintf(out, size, "%d steps, %d kernels, %d epilogues, cost %d ns\n%.*s%s", (int)stats.steps,
                        (int)stats.kernels, (int)stats.epilogues, (int)stats.cost_ns, (int)(compiled - from), from,
                        strchr(compiled, '\n'));
  ck_assert_int_lt(length, (int)size);
  ts_text_deinit(&all);
  ts_executable_release(exe);
}

/* The same in a process that has compiled nothing else. */
static void explain_first(const char *format, int n, char *out, size_t size) {
  int ends[2], status;
  size_t length = 0;
  ck_assert_int_eq(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    explain(format, n, out, size);
    _exit(write(ends[1], out, strlen(out)) == (ssize_t)strlen(out) ? 0 : 1);
  }
  close(ends[1]);
  for (ssize_t n_read; (n_read = read(ends[0], out + length, size - 1 - length)) > 0;) length += (size_t)n_read;
  out[length] = '\0';
  close(ends[0]);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}

/* Of a program for a batch of n, after programs for batches of `others`. */
static void check_after(int program, int n, const int *others) {
  char first[4096], then[4096];
  explain_first(programs[program], n, first, sizeof first);
  for (; *others; others++) explain(programs[program], *others, then, sizeof then);
  explain(programs[program], n, then, sizeof then);
  ck_assert_str_eq(first, then);
}

START_TEST(after_smaller_ones)
{ check_after(_i, 2000003, (const int[]){3, 1, 0}); }
END_TEST

START_TEST(after_larger_ones)
{ check_after(_i, 1, (const int[]){8, 5, 0}); }
END_TEST

START_TEST(after_one_of_one)
{ check_after(_i, 6, (const int[]){1, 2, 0}); }
END_TEST

START_TEST(after_itself)
{ check_after(_i, 5, (const int[]){5, 8, 0}); }
END_TEST

int main(void) {
  setenv("TESSERA_CACHE_DIR", "", 1);
  Suite *suite = suite_create("choose");
  TCase *tests = tcase_create("choose");
  tcase_add_loop_test(tests, after_smaller_ones, 0, 2);
  tcase_add_loop_test(tests, after_larger_ones, 0, PROGRAMS);
  tcase_add_loop_test(tests, after_one_of_one, 0, PROGRAMS);
  tcase_add_loop_test(tests, after_itself, 0, PROGRAMS);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
