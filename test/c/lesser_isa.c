#include "lesser_isa.h"

#include "testing.h"

#include <sys/wait.h>
#include <unistd.h>

/* Threads share the same data with any instruction set: ThreadSanitizer sees no more there, and takes minutes. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define HAS_LESSER_ISAS
#endif

#ifdef HAS_LESSER_ISAS
static const char *const names[] = {"sse4", "avx2", "avx512"};
enum { AVX512 = 2 };

START_TEST(lesser_isa)
{
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    setenv("TESSERA_ISA", names[_i], 1);
    execl("/proc/self/exe", names[_i], (char *)NULL);
    _exit(127);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "with TESSERA_ISA=%s: status %d", names[_i], status);
}
END_TEST
#endif

void test_add_lesser_isas(TCase *tests) {
#ifdef HAS_LESSER_ISAS
  if (getenv("TESSERA_EVERY_ISA") && !getenv("TESSERA_ISA"))
    tcase_add_loop_test(tests, lesser_isa, 0, sizeof(names) / sizeof(names[0]));
#else
  (void)tests;
#endif
}

void test_add_avx512(TCase *tests) {
#ifdef HAS_LESSER_ISAS
  if (!getenv("TESSERA_ISA")) tcase_add_loop_test(tests, lesser_isa, AVX512, AVX512 + 1);
#else
  (void)tests;
#endif
}
