/* Shared by the C tests. */
#ifndef TS_TEST_TESTING_H
#define TS_TEST_TESTING_H

#include "base/alloc.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check notes the line of each assertion that holds in a file, for the report of a crash. This takes longer than most
 * assertions, and many tensors have an assertion for each element. */
#define _mark_point(file, line) ((void)0)

/* Whether this build checks memory or threads. Expected values take ten times as long there, so tests skip large
 * operands: the code under test is the same. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_IS_SANITIZED true
#else
#define TEST_IS_SANITIZED false
#endif

/* Whether tests of many combinations try all of them (make test-all), or only a part of them. */
static inline bool testing_every_case(void) { return getenv("TESSERA_EVERY_CASE") != NULL; }

/* Whether a case of many is in the half that this run takes: TESSERA_HALF=0 takes those of even numbers, 1 the others,
 * so that two machines share them. Without it, all are taken. TESSERA_WAITS=0, 1 or 2 says which third of a half waits
 * for another run. */
static inline bool testing_in_half(int64_t which) {
  const char *half = getenv("TESSERA_HALF"), *waits = getenv("TESSERA_WAITS");
  if (!half || !*half) return true;
  if ((which & 1) != atoi(half)) return false;
  return !waits || !*waits || which / 2 % 3 != atoi(waits);
}

/* The parts that runs with a sanitizer share. */
enum { TESTING_PARTS = 4 };

/* Whether a case of many is in the part that this run takes, which TESSERA_PART says: 0 to 3. Without it, all are
 * taken. Every fourth case would often be of one kind. */
static inline bool testing_in_part(int64_t which) {
  const char *part = getenv("TESSERA_PART");
  return !part || !*part || (which + which / TESTING_PARTS) % TESTING_PARTS == atoi(part);
}

/* Whether a case of many is in this run's share: the half, or with a sanitizer the part. */
static inline bool testing_in_share(int64_t which) {
  return testing_every_case() || (TEST_IS_SANITIZED ? testing_in_part(which) : testing_in_half(which));
}

/* Whether a case of many is taken: with a sanitizer one of `each`, since a wrong address has no favourite case. */
static inline bool testing_takes(int64_t which, int64_t each) {
  if (testing_every_case() || !TEST_IS_SANITIZED) return testing_in_share(which);
  return which % each == 0 && testing_in_part(which / each);
}

/* Whether test i of a loop of many is in this run's share. Each half has one test of every two, and not always the
 * first of them. Test i is number i / 2 of its half: this number says its third. */
static inline bool testing_in_loop(int i) {
  if (testing_every_case() || TEST_IS_SANITIZED) return testing_in_share(i + i / 2);
  return testing_in_half(i / 2 * 2 + (i + i / 2) % 2);
}

/* Adds the tests 0 to count - 1 of a loop of many tests that are alike: those of this run's share. */
static inline void testing_add_many(TCase *to, const TTest *test, int count) {
  for (int i = 0; i < count; i++)
    if (testing_in_loop(i)) tcase_add_loop_test(to, test, i, i + 1);
}

typedef struct testing_seeds {
  uint64_t first, count;
} testing_seeds;

static inline uint64_t testing_number(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* The seeds of random programs: TESSERA_RANDOM_COUNT or `count` of them from TESSERA_RANDOM_SEED on. TESSERA_HALF=0 and
 * 1 take the first and the second half of them. */
static inline testing_seeds testing_random_seeds(uint64_t count) {
  const char *half = getenv("TESSERA_HALF");
  testing_seeds s = {testing_number("TESSERA_RANDOM_SEED", 1), testing_number("TESSERA_RANDOM_COUNT", count)};
  if (!half || !*half) return s;
  const uint64_t low = s.count / 2;
  return atoi(half) ? (testing_seeds){s.first + low, s.count - low} : (testing_seeds){s.first, low};
}

/* Fails with the error's message. */
#define ck_assert_ok(expression)                                                      \
  do {                                                                                \
    ts_status ck_status_ = (expression);                                              \
    ck_assert_msg(!ck_status_, "%s: %s", #expression, ts_status_message(ck_status_)); \
  } while (0)

/* An error of that code, whose message contains `text`. */
#define ck_assert_error(expression, expected_code, text)                                        \
  do {                                                                                          \
    ts_status ck_status_ = (expression);                                                        \
    ck_assert_msg(ts_status_code(ck_status_) == (expected_code), "%s: %s (%s)", #expression,    \
                  ts_code_name(ts_status_code(ck_status_)), ts_status_message(ck_status_));     \
    ck_assert_msg(strstr(ts_status_message(ck_status_), (text)), "no \"%s\" in \"%s\"", (text), \
                  ts_status_message(ck_status_));                                               \
    ts_status_free(ck_status_);                                                                 \
  } while (0)

/* Runs `statement` with the first, second, ... allocation failing, until no
 * failure was injected, and checks that nothing leaks. The statement must free its results and every status. */
#define CK_FAIL_EACH_ALLOCATION(statement)                                                   \
  do {                                                                                       \
    for (int64_t ck_n_ = 1;; ck_n_++) {                                                      \
      int64_t ck_live_ = ts_alloc_live();                                                    \
      ts_alloc_fail_after(ck_n_, false);                                                     \
      statement;                                                                             \
      int64_t ck_failures_ = ts_alloc_failures();                                            \
      ts_alloc_fail_after(0, false);                                                         \
      ck_assert_msg(ts_alloc_live() == ck_live_, "allocation %d failing leaks", (int)ck_n_); \
      if (!ck_failures_) break;                                                              \
      ck_assert_int_lt(ck_n_, 100000);                                                       \
    }                                                                                        \
  } while (0)

/* The contents of a file below the repository's root, to be freed by free(). */
static inline char *testing_read(const char *path) {
  FILE *file = fopen(path, "rb");
  ck_assert_msg(file != NULL, "no %s: run this from the repository's root", path);
  ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
  long length = ftell(file);
  ck_assert_int_ge(length, 0);
  rewind(file);
  char *text = malloc((size_t)length + 1);
  ck_assert_ptr_nonnull(text);
  ck_assert_uint_eq(fread(text, 1, (size_t)length, file), (size_t)length);
  text[length] = '\0';
  fclose(file);
  return text;
}

/* A suite's main(): runs what `suite()` gives and exits 1 on failure. */
static inline int testing_run(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
