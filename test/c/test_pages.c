/* Fresh pages: blocks that are made of small pages in haste, and what replaces them. */
#include "exec/pool.h"
#include "tensor/pages.h"
#include "tensor/pool.h"
#include "tensor/renewal.h"
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#define MB ((int64_t)1 << 20)

static void sleep_ms(int ms) {
  struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
  nanosleep(&t, NULL);
}

static ts_pool_stats stats_of(ts_pool *pool) {
  ts_pool_stats stats;
  ts_pool_get_stats(pool, &stats);
  return stats;
}

static char *take(ts_pool *pool, int64_t bytes) {
  void *block;
  ck_assert_ok(ts_pool_alloc(pool, bytes, &block));
  return block;
}

/* ---- blocks from the system */

/* Kilobytes of huge pages at `block`. */
static long huge_kilobytes(const void *block) {
  FILE *maps = fopen("/proc/self/smaps", "re");
  unsigned long first, end, at = (unsigned long)block;
  long kilobytes = -1;
  char line[512];
  bool here = false;
  ck_assert_ptr_nonnull(maps);
  while (kilobytes < 0 && fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx ", &first, &end) == 2) here = at >= first && at < end;
    if (here) sscanf(line, "AnonHugePages: %ld", &kilobytes);
  }
  fclose(maps);
  return kilobytes;
}

static int64_t resident_pages(void *block, int64_t bytes) {
  static unsigned char there[32 << 8];
  int64_t pages = bytes / 4096, count = 0;
  ck_assert_int_eq(mincore(block, (size_t)bytes, there), 0);
  for (int64_t i = 0; i < pages; i++) count += there[i] & 1;
  return count;
}

static void check_zeros(const char *block, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 512) ck_assert_int_eq(block[i], 0);
}

START_TEST(in_haste_pages_are_small)
{
  bool hasty;
  ts_pages_set_haste(TS_HASTE_ALWAYS);
  for (int helped = 0; helped < 2; helped++) {
    ts_pages_set_helpers(helped ? ts_pool_parallel(0) : NULL);
    char *block = ts_pages_alloc((size_t)(16 * MB), NULL, &hasty);
    ck_assert(hasty);
    ck_assert_int_le(huge_kilobytes(block), 8 * MB / 1024); /* the system makes some of small ones whenever it likes */
    ck_assert_int_eq(resident_pages(block, 16 * MB), 16 * MB / 4096);
    check_zeros(block, 16 * MB);
    memset(block, 1, (size_t)(16 * MB));
    ts_pages_free(block, (size_t)(16 * MB));
  }
}
END_TEST

START_TEST(some_sizes_are_never_hasty)
{
  static const size_t sizes[] = {64, 1 << 20, TS_HUGE_PAGE, TS_HASTY_MOST + TS_HUGE_PAGE};
  ts_pages_set_haste(TS_HASTE_ALWAYS);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    bool hasty = true;
    void *block = ts_pages_alloc(sizes[i], NULL, &hasty);
    ck_assert_ptr_nonnull(block);
    ck_assert(!hasty);
    ts_pages_free(block, sizes[i]);
  }
}
END_TEST

START_TEST(never_in_haste)
{
  bool hasty = true;
  ts_pages_set_haste(TS_HASTE_NEVER);
  void *block = ts_pages_alloc((size_t)(16 * MB), NULL, &hasty);
  ck_assert(!hasty);
  ck_assert_int_eq(resident_pages(block, 16 * MB), 0);
  ts_pages_free(block, (size_t)(16 * MB));
}
END_TEST

/* Whatever the host is like, the memory is there and zero. */
START_TEST(by_itself)
{
  bool hasty;
  ts_pages_set_haste(TS_HASTE_AUTO);
  for (int i = 0; i < 8; i++) {
    int64_t bytes = (4 + 2 * i) * MB;
    char *block = ts_pages_alloc((size_t)bytes, NULL, &hasty);
    if (hasty) ck_assert_int_eq(resident_pages(block, bytes), bytes / 4096);
    check_zeros(block, bytes);
    memset(block, 1, (size_t)bytes);
    ts_pages_free(block, (size_t)bytes);
  }
}
END_TEST

/* ---- renewals, with an owner that is none */

typedef struct owner {
  _Atomic int64_t bytes; /* of each block */
  _Atomic int blocks, begun, ended, given_up;
  _Atomic bool hold; /* in begin */
} owner;

static int64_t begin(void *arg) {
  owner *o = arg;
  if (atomic_load(&o->begun) == atomic_load(&o->blocks)) return 0;
  atomic_fetch_add(&o->begun, 1);
  while (atomic_load(&o->hold)) sleep_ms(1);
  return atomic_load(&o->bytes);
}

static void end(void *arg, void *block, int64_t bytes) {
  owner *o = arg;
  if (block) ts_pages_free(block, (size_t)bytes);
  atomic_fetch_add(block ? &o->ended : &o->given_up, 1);
}

static void wait_for(_Atomic int *count, int value) {
  for (int ms = 0; atomic_load(count) < value && ms < 20000; ms += 5) sleep_ms(5);
  ck_assert_int_eq(atomic_load(count), value);
}

START_TEST(renewals_go_on_until_there_are_no_more)
{
  owner a = {.bytes = 4 * MB, .blocks = 3}, b = {.bytes = 2 * MB, .blocks = 1};
  ts_renewal of_a = {.owner = &a, .begin = begin, .end = end}, of_b = {.owner = &b, .begin = begin, .end = end};
  ts_renewal_request(&of_a);
  ts_renewal_request(&of_a);
  ts_renewal_request(&of_b);
  wait_for(&a.ended, 3);
  wait_for(&b.ended, 1);
  ts_renewal_interrupt(&of_a);
  ts_renewal_interrupt(&of_b);
  ck_assert_int_eq(a.begun + b.begun, 4);
  ck_assert_int_eq(a.given_up + b.given_up, 0);
}
END_TEST

START_TEST(renewals_that_wait_are_taken_back)
{
  owner a = {.bytes = 4 * MB, .blocks = 1};
  ts_renewal of_a = {.owner = &a, .begin = begin, .end = end};
  ts_renewal_interrupt(&of_a); /* none there is fine */
  ts_renewal_request(&of_a);
  ts_renewal_interrupt(&of_a);
  sleep_ms(500);
  ck_assert_int_eq(a.begun, 0);
}
END_TEST

static void *let_go_soon(void *arg) {
  sleep_ms(50);
  atomic_store(&((owner *)arg)->hold, false);
  return NULL;
}

START_TEST(renewals_end_when_interrupted)
{
  pthread_t thread;
  owner a = {.bytes = 1024 * MB, .blocks = 5, .hold = true};
  ts_renewal of_a = {.owner = &a, .begin = begin, .end = end};
  ts_renewal_request(&of_a);
  wait_for(&a.begun, 1);
  ck_assert_int_eq(pthread_create(&thread, NULL, let_go_soon, &a), 0);
  ts_renewal_interrupt(&of_a);
  ck_assert_int_eq(a.given_up, 1);
  ck_assert_int_eq(a.begun, 1);
  pthread_join(thread, NULL);
  atomic_store(&a.bytes, 2 * MB); /* and can be asked for again */
  ts_renewal_request(&of_a);
  wait_for(&a.ended, 4);
  ts_renewal_interrupt(&of_a);
}
END_TEST

/* ---- the pool */

static ts_pool *hasty_pool(int64_t limit) {
  ts_pool *pool;
  ts_pages_set_haste(TS_HASTE_ALWAYS);
  ck_assert_ok(ts_pool_create(limit, &pool));
  return pool;
}

/* Until the next block of that size is not `block`; gives it. */
static char *wait_for_another(ts_pool *pool, const char *block, int64_t bytes) {
  for (int ms = 0; ms < 20000; ms += 50) {
    char *next = take(pool, bytes);
    if (next != block) return next;
    ts_pool_free(pool, next, bytes);
    sleep_ms(50);
  }
  ck_abort_msg("the block was not replaced");
}

/* Takes a block that came in place of a hasty one. If that was out just when the new one was ready, the new one lies
 * beside it: then it is tried once more. */
static char *take_renewed(ts_pool *pool, int64_t bytes) {
  for (int tries = 0; tries < 20; tries++) {
    ts_pool_trim(pool, 0);
    char *hasty = take(pool, bytes);
    ts_pool_free(pool, hasty, bytes);
    char *renewed = wait_for_another(pool, hasty, bytes);
    if (stats_of(pool).pooled == 0) return renewed;
    ts_pool_free(pool, renewed, bytes);
  }
  ck_abort_msg("hasty blocks are kept");
}

/* Megabytes. */
static void wait_for_pooled(ts_pool *pool, int64_t wanted) {
  for (int ms = 0; stats_of(pool).pooled != wanted * MB && ms < 20000; ms++) sleep_ms(1);
  ck_assert_int_eq(stats_of(pool).pooled, wanted * MB);
}

START_TEST(free_hasty_blocks_are_replaced)
{
  ts_pool *pool = hasty_pool(1024 * MB);
  char *block = take_renewed(pool, 8 * MB);
  ck_assert_int_eq(stats_of(pool).live, 8 * MB);
  memset(block, 1, (size_t)(8 * MB));
  ts_pool_free(pool, block, 8 * MB);
  sleep_ms(500); /* once is enough */
  ck_assert_ptr_eq(take(pool, 8 * MB), block);
  ts_pool_free(pool, block, 8 * MB);
  ts_pool_destroy(pool);
}
END_TEST

/* A block that every call takes and gives back is hardly ever free. */
START_TEST(hasty_blocks_in_use_get_one_beside_them)
{
  ts_pool *pool = hasty_pool(1024 * MB);
  char *first = take(pool, 8 * MB);
  ts_pool_free(pool, first, 8 * MB);
  ck_assert_ptr_eq(take(pool, 8 * MB), first);
  wait_for_pooled(pool, 8);
  sleep_ms(500); /* and not more than one */
  ck_assert_int_eq(stats_of(pool).pooled, 8 * MB);
  char *second = take(pool, 8 * MB);
  ck_assert_ptr_ne(first, second);
  ts_pool_free(pool, first, 8 * MB);
  char *third = wait_for_another(pool, first, 8 * MB);
  ck_assert_int_eq(stats_of(pool).live, 16 * MB);
  ts_pool_free(pool, second, 8 * MB);
  ts_pool_free(pool, third, 8 * MB);
  ts_pool_destroy(pool);
}
END_TEST

/* Whether none of them is kept. */
static bool parts_are_replaced(ts_pool *pool) {
  ts_pool_trim(pool, 0);
  char *whole = take(pool, 32 * MB);
  ts_pool_free(pool, whole, 32 * MB);
  char *low = take(pool, 12 * MB), *high = take(pool, 20 * MB);
  ck_assert_ptr_eq(low, whole);
  ck_assert_ptr_eq(high, whole + 12 * MB);
  ts_pool_free(pool, low, 12 * MB);
  ts_pool_free(pool, high, 20 * MB);
  char *new_low = wait_for_another(pool, low, 12 * MB), *new_high = wait_for_another(pool, high, 20 * MB);
  ck_assert_int_eq(stats_of(pool).live, 32 * MB);
  bool replaced = stats_of(pool).pooled == 0;
  ts_pool_free(pool, new_low, 12 * MB);
  ts_pool_free(pool, new_high, 20 * MB);
  return replaced;
}

START_TEST(parts_of_hasty_blocks_are_replaced)
{
  ts_pool *pool = hasty_pool(1024 * MB);
  int tries = 0;
  while (!parts_are_replaced(pool)) ck_assert_int_lt(++tries, 20); /* as in take_renewed() */
  ts_pool_destroy(pool);
}
END_TEST

START_TEST(a_sixteenth_of_the_limit_is_not_exceeded)
{
  ts_pool *pool = hasty_pool(120 * MB);
  char *block = take(pool, 8 * MB);
  ts_pool_free(pool, block, 8 * MB);
  for (int i = 0; i < 100; i++) {
    ck_assert_int_eq(stats_of(pool).pooled, 8 * MB);
    sleep_ms(5);
  }
  ck_assert_ptr_eq(take(pool, 8 * MB), block);
  ts_pool_free(pool, block, 8 * MB);
  ts_pool_destroy(pool);
}
END_TEST

/* Until a block of 128 MB is being made in place of another; then `pool` counts both. */
static void start_making(ts_pool *pool) {
  for (int tries = 0; tries < 50; tries++) {
    ts_pool_trim(pool, 0);
    char *block = take(pool, 128 * MB);
    ts_pool_free(pool, block, 128 * MB);
    for (int polls = 0; polls < 2000; polls++) {
      if (stats_of(pool).pooled == 256 * MB) return;
      sleep_ms(1);
    }
  }
  ck_abort_msg("no block is made");
}

START_TEST(the_limit_ends_what_is_being_made)
{
  ts_pool *pool = hasty_pool(4096 * MB);
  start_making(pool);
  char *large = take(pool, 3584 * MB), *rest = take(pool, 448 * MB);
  ts_pool_stats stats = stats_of(pool);
  ck_assert_int_le(stats.live + stats.pooled, stats.limit);
  ts_pool_free(pool, large, 3584 * MB);
  ts_pool_free(pool, rest, 448 * MB);
  start_making(pool);
  ts_pool_set_limit(pool, 140 * MB);
  ck_assert_int_le(stats_of(pool).pooled, 140 * MB);
  ts_pool_destroy(pool);
}
END_TEST

START_TEST(trimming_ends_what_is_being_made)
{
  ts_pool *pool = hasty_pool(4096 * MB);
  start_making(pool);
  ts_pool_trim(pool, 0);
  for (int i = 0; i < 100; i++) {
    ck_assert_int_eq(stats_of(pool).pooled, 0);
    sleep_ms(5);
  }
  start_making(pool);
  ts_pool_destroy(pool);
}
END_TEST

/* Two blocks at a time; what was written to them stays. */
static void *use_blocks(void *arg) {
  ts_pool *pool = arg;
  for (int i = 0; i < 150; i++) {
    int64_t sizes[] = {4 * MB, (4 + 2 * (i % 3)) * MB};
    int64_t *blocks[2];
    for (int k = 0; k < 2; k++) {
      if (ts_pool_alloc(pool, sizes[k], (void **)&blocks[k])) return pool;
      for (int64_t at = 0; at < sizes[k] / 8; at += 256) blocks[k][at] = at + i + k;
    }
    sleep_ms(5);
    for (int k = 0; k < 2; k++) {
      for (int64_t at = 0; at < sizes[k] / 8; at += 256)
        if (blocks[k][at] != at + i + k) return pool;
      ts_pool_free(pool, blocks[k], sizes[k]);
    }
  }
  return NULL;
}

START_TEST(many_callers_while_blocks_are_replaced)
{
  ts_pool *pool = hasty_pool(1024 * MB);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, use_blocks, pool), 0);
  for (int i = 0; i < 4; i++) {
    void *bad;
    pthread_join(threads[i], &bad);
    ck_assert_ptr_null(bad);
  }
  ck_assert_int_eq(stats_of(pool).live, 0);
  ts_pool_destroy(pool);
}
END_TEST

static void try_alloc(ts_pool *pool) {
  void *block;
  ts_status status = ts_pool_alloc(pool, 8 * MB, &block);
  ts_status_free(status);
  ts_pool_free(pool, block, 8 * MB);
}

START_TEST(allocations_fail_without_leaks)
{
  ts_pool *pool = hasty_pool(1024 * MB);
  CK_FAIL_EACH_ALLOCATION(try_alloc(pool));
  ck_assert_int_eq(stats_of(pool).live, 0);
  ts_pool_destroy(pool);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("pages");
  TCase *t = tcase_create("pages");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, ts_pages_keep, NULL); /* under AddressSanitizer, too */
  tcase_add_test(t, in_haste_pages_are_small);
  tcase_add_test(t, some_sizes_are_never_hasty);
  tcase_add_test(t, never_in_haste);
  tcase_add_test(t, by_itself);
  tcase_add_test(t, renewals_go_on_until_there_are_no_more);
  tcase_add_test(t, renewals_that_wait_are_taken_back);
  tcase_add_test(t, renewals_end_when_interrupted);
  tcase_add_test(t, free_hasty_blocks_are_replaced);
  tcase_add_test(t, hasty_blocks_in_use_get_one_beside_them);
  tcase_add_test(t, parts_of_hasty_blocks_are_replaced);
  tcase_add_test(t, a_sixteenth_of_the_limit_is_not_exceeded);
  tcase_add_test(t, the_limit_ends_what_is_being_made);
  tcase_add_test(t, trimming_ends_what_is_being_made);
  tcase_add_test(t, many_callers_while_blocks_are_replaced);
  tcase_add_test(t, allocations_fail_without_leaks);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
