#include "jit/session/jit_internal.h"
#include "jit_kernels.h"
#include "testing.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Policies that forbid the loader's first way, made of seccomp filters. They stay until the process ends, so each test
 * needs one of its own. */

enum { CALL = offsetof(struct seccomp_data, nr), PROTECTION = offsetof(struct seccomp_data, args[2]) };

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define SKIP_UNLESS(test, value, count) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, 0, count)
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
/* A call that wants executable memory ends in an error. */
#define REFUSE_EXECUTION(call, error) \
  LOAD(CALL), SKIP_UNLESS(BPF_JEQ, call, 3), LOAD(PROTECTION), SKIP_UNLESS(BPF_JSET, PROT_EXEC, 1), REFUSE(error)

static void obey(struct sock_filter *filter, size_t count) {
  struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
  ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static ts_status load(ts_kernel **out) {
  adder a;
  adder_init(&a, 7);
  return ts_jit_get_kernels(&a.source, 1, out);
}

/* Written pages may not be executed: systemd's MemoryDenyWriteExecute, PR_SET_MDWE. */
START_TEST(written_pages_may_not_execute)
{
  struct sock_filter filter[] = {REFUSE_EXECUTION(SYS_mprotect, EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  ts_kernel *kernel;
  obey(filter, sizeof(filter) / sizeof(filter[0]));
  ck_assert_ok(load(&kernel));
  adder_check(kernel, 7);
  ts_kernel_release(kernel);
}
END_TEST

START_TEST(nothing_may_execute)
{
  struct sock_filter filter[] = {REFUSE_EXECUTION(SYS_mprotect, EACCES), REFUSE_EXECUTION(SYS_mmap, EACCES),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  ts_kernel *kernel;
  obey(filter, sizeof(filter) / sizeof(filter[0]));
  for (int i = 0; i < 2; i++) ck_assert_error(load(&kernel), TS_FAILED_PRECONDITION, "SELinux");
}
END_TEST

START_TEST(no_memory_to_execute)
{
  struct sock_filter filter[] = {REFUSE_EXECUTION(SYS_mprotect, ENOMEM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  ts_kernel *kernel;
  obey(filter, sizeof(filter) / sizeof(filter[0]));
  ck_assert_error(load(&kernel), TS_RESOURCE_EXHAUSTED, "executable");
}
END_TEST

int main(void) {
  setenv("TESSERA_CACHE_DIR", "", 1);
  Suite *suite = suite_create("jit_link");
  TCase *tests = tcase_create("jit_link");
  tcase_add_test(tests, written_pages_may_not_execute);
  tcase_add_test(tests, nothing_may_execute);
  tcase_add_test(tests, no_memory_to_execute);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
