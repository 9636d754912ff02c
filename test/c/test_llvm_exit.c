#include "jit/session/llvm_exit.h"

#include "jit_kernels.h"
#include "testing.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each in a process of its own, as LLVM starts once. Gives how the process ended. */
static int in_process(void (*body)(int64_t), int64_t argument) {
  fflush(stdout);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    const ts_jit_options no_disk = {.cache_dir = ""};
    ts_jit_configure(&no_disk);
    body(argument);
    exit(EXIT_SUCCESS);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return status;
}

static void compile(int64_t constant) {
  adder a;
  ts_kernel *kernel;
  adder_init(&a, (int32_t)constant);
  if (ts_jit_get_kernels(&a.source, 1, &kernel)) _exit(2);
  ts_kernel_release(kernel);
}

static void compile_and_count(int64_t constant) {
  if (ts_llvm_kept_objects() != 0) _exit(3);
  compile(constant);
  if (ts_llvm_kept_objects() == 0) _exit(4);
}

/* What LLVM makes in its first compile came to us. */
START_TEST(objects_are_kept)
{ ck_assert_int_eq(in_process(compile_and_count, 3), 0); }
END_TEST

static void *compile_beside(void *unused) {
  (void)unused;
  compile(1);
  return NULL;
}

static void compile_for(int64_t microseconds) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, compile_beside, NULL) != 0) _exit(5);
  usleep((useconds_t)microseconds);
}

/* Wherever LLVM is at the time. */
START_TEST(a_process_may_end_at_any_time)
{
  for (int64_t us = 0; us < 12000; us += 200) ck_assert_int_eq(in_process(compile_for, us), 0);
}
END_TEST

static void leave_behind(int64_t microseconds) {
  adder a;
  compile(1);
  for (int32_t i = 0; i < 8; i++) {
    adder_init(&a, 100 + i);
    ts_jit_prefetch(&a.source, 1);
  }
  usleep((useconds_t)microseconds);
}

START_TEST(a_process_may_end_during_a_background_compile)
{
  for (int64_t us = 0; us < 6000; us += 500) ck_assert_int_eq(in_process(leave_behind, us), 0);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("llvm_exit");
  TCase *tc = tcase_create("llvm_exit");
  tcase_set_timeout(tc, 120);
  tcase_add_test(tc, objects_are_kept);
  tcase_add_test(tc, a_process_may_end_at_any_time);
  tcase_add_test(tc, a_process_may_end_during_a_background_compile);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
