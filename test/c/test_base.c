#include "base/arena.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/parallel.h"
#include "base/shared_object.h"
#include "base/slots.h"
#include "base/system.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/vec.h"
#include "testing.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- status */

START_TEST(status_of_success)
{
  ck_assert_int_eq(ts_status_code(TS_SUCCESS), TS_OK);
  ck_assert_str_eq(ts_status_message(TS_SUCCESS), "");
  ck_assert(ts_status_consume_ok(TS_SUCCESS));
  ck_assert_ptr_null(ts_error_context(TS_SUCCESS, "x"));
  ts_status_free(TS_SUCCESS);
}
END_TEST

START_TEST(status_message_and_context)
{
  ts_status status = ts_error(TS_OUT_OF_RANGE, "index %d of %s", 7, "x");
  ck_assert_int_eq(ts_status_code(status), TS_OUT_OF_RANGE);
  ck_assert_str_eq(ts_status_message(status), "index 7 of x");
  status = ts_error_context(status, "op %s", "slice");
  ck_assert_int_eq(ts_status_code(status), TS_OUT_OF_RANGE);
  ck_assert_str_eq(ts_status_message(status), "op slice: index 7 of x");
  ck_assert(!ts_status_consume_ok(status));
  ck_assert_str_eq(ts_code_name(TS_DATA_LOSS), "data_loss");
  ck_assert_str_eq(ts_code_name(TS_UNAVAILABLE), "unavailable");
}
END_TEST

START_TEST(status_without_memory)
{
  ts_alloc_fail_after(1, false);
  ts_status status = ts_error(TS_INTERNAL, "lost");
  ck_assert_ptr_eq(status, ts_error_no_memory());
  ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
  ck_assert_str_eq(ts_status_message(status), "out of memory");
  ts_status_free(status);

  status = ts_error(TS_INTERNAL, "kept");
  ts_alloc_fail_after(1, false);
  status = ts_error_context(status, "dropped");
  ck_assert_str_eq(ts_status_message(status), "kept");
  ts_status_free(status);
}
END_TEST

static ts_status try_twice(ts_status first, int *reached) {
  ts_status status;
  TS_TRY(first);
  *reached = 1;
  TS_GOTO(done, status, ts_error(TS_INTERNAL, "second"));
  *reached = 2;
done:
  return status;
}

START_TEST(status_macros)
{
  int reached = 0;
  ck_assert_error(try_twice(ts_error(TS_CANCELLED, "first"), &reached), TS_CANCELLED, "first");
  ck_assert_int_eq(reached, 0);
  ck_assert_error(try_twice(TS_SUCCESS, &reached), TS_INTERNAL, "second");
  ck_assert_int_eq(reached, 1);
}
END_TEST

/* ---- alloc */

START_TEST(alloc_zeroes_and_checks_sizes)
{
  char *block;
  ck_assert_ok(ts_alloc(1000, (void **)&block));
  for (int i = 0; i < 1000; i++) ck_assert_int_eq(block[i], 0);
  ts_free(block);

  void *empty;
  ck_assert_ok(ts_alloc(0, &empty));
  ck_assert_ptr_nonnull(empty);
  ck_assert_error(ts_realloc_array(SIZE_MAX, 2, &empty), TS_RESOURCE_EXHAUSTED, "memory");
  ck_assert_ptr_nonnull(empty);
  ts_free(empty);
  ck_assert_error(ts_alloc_array(SIZE_MAX / 2, 3, &empty), TS_RESOURCE_EXHAUSTED, "memory");
  ck_assert_ptr_null(empty);

  int64_t product;
  ck_assert(!ts_mul_i64(INT64_MAX, 2, &product));
  ck_assert(ts_mul_i64(-3, 4, &product) && product == -12);
}
END_TEST

START_TEST(alloc_realloc_and_strdup)
{
  int64_t live = ts_alloc_live();
  int *numbers = NULL;
  ck_assert_ok(ts_realloc_array(4, sizeof(int), (void **)&numbers));
  for (int i = 0; i < 4; i++) numbers[i] = i;
  ck_assert_ok(ts_realloc_array(4000, sizeof(int), (void **)&numbers));
  for (int i = 0; i < 4; i++) ck_assert_int_eq(numbers[i], i);
  char *copy;
  ck_assert_ok(ts_strdup("tessera", &copy));
  ck_assert_str_eq(copy, "tessera");
  ck_assert_int_eq(ts_alloc_live(), live + 2);
  ts_free(copy);
  ts_free(numbers);
  ts_free(NULL);
  ck_assert_int_eq(ts_alloc_live(), live);
}
END_TEST

static bool alloc_works(void) {
  void *block = ts_malloc_raw(8);
  ts_free(block);
  return block;
}

START_TEST(alloc_injected_failure)
{
  ts_alloc_fail_after(3, false);
  ck_assert(alloc_works() && alloc_works());
  ck_assert(!alloc_works());
  ck_assert(alloc_works());
  ck_assert_int_eq(ts_alloc_failures(), 1);

  ts_alloc_fail_after(2, true);
  ck_assert(alloc_works());
  ck_assert(!alloc_works() && !alloc_works() && !alloc_works());
  ck_assert_int_eq(ts_alloc_failures(), 3);
  ts_alloc_fail_after(0, false);
  ck_assert(alloc_works());
  ck_assert_int_eq(ts_alloc_failures(), 0);
}
END_TEST

/* ---- arena */

static ts_status use_arena(void) {
  ts_arena arena;
  ts_status status = TS_SUCCESS;
  ts_arena_init(&arena);
  for (size_t size = 0; size < 40000; size = size * 3 + 1) {
    char *block;
    TS_GOTO(done, status, ts_arena_alloc(&arena, size, (void **)&block));
    ck_assert_uint_eq((uintptr_t)block % 16, 0);
    for (size_t i = 0; i < size; i++) ck_assert_int_eq(block[i], 0);
    memset(block, 0x5A, size); /* a neighbour must not see it as its zeroes */
  }
  char *text;
  TS_GOTO(done, status, ts_arena_strdup(&arena, "a string", &text));
  ck_assert_str_eq(text, "a string");
  ck_assert_uint_ge(arena.used, 40000 / 3);
done:
  ts_arena_deinit(&arena);
  return status;
}

START_TEST(arena_blocks)
{
  ck_assert_ok(use_arena());
  CK_FAIL_EACH_ALLOCATION(ts_status_free(use_arena()));
}
END_TEST

START_TEST(arena_sizes)
{
  ts_arena arena;
  void *block;
  ts_arena_init(&arena);
  ck_assert_error(ts_arena_alloc(&arena, SIZE_MAX, &block), TS_RESOURCE_EXHAUSTED, "memory");
  ck_assert_error(ts_arena_alloc(&arena, SIZE_MAX - 64, &block), TS_RESOURCE_EXHAUSTED, "memory");
  ck_assert_error(ts_arena_alloc_array(&arena, SIZE_MAX / 4, 8, &block), TS_RESOURCE_EXHAUSTED, "memory");
  ck_assert_ok(ts_arena_alloc(&arena, 10 << 20, &block)); /* larger than any chunk */
  ck_assert_ok(ts_arena_copy(&arena, "abc", 3, &block));
  ck_assert_mem_eq(block, "abc", 3);
  ts_arena_deinit(&arena);
  ts_arena_deinit(&arena);
}
END_TEST

/* ---- vector */

static ts_status use_vec(void) {
  TS_VEC(int) v = {0};
  ts_status status = TS_SUCCESS;
  for (int i = 0; i < 1000; i++) TS_GOTO(done, status, TS_VEC_PUSH(&v, i));
  for (int i = 0; i < 1000; i++) ck_assert_int_eq(v.data[i], i);
  TS_GOTO(done, status, TS_VEC_RESERVE(&v, 5000));
  ck_assert_uint_ge(v.capacity, 5000);
  ck_assert_uint_eq(v.count, 1000);
done:
  TS_VEC_FREE(&v);
  ck_assert_ptr_null(v.data);
  return status;
}

START_TEST(vec_push_and_reserve)
{
  ck_assert_ok(use_vec());
  CK_FAIL_EACH_ALLOCATION(ts_status_free(use_vec()));
}
END_TEST

/* ---- text */

static ts_status use_text(char **out) {
  ts_text text = {0};
  for (int i = 0; i < 100; i++) ts_text_format(&text, "%d,", i);
  ts_text_append_n(&text, "ab", 2);
  ts_text_format(&text, "%0200d", 1);
  ts_text_append(&text, ".");
  return ts_text_finish(&text, out);
}

START_TEST(text_append_and_finish)
{
  char *out;
  ck_assert_ok(use_text(&out));
  ck_assert_uint_eq(strlen(out), 10 * 2 + 90 * 3 + 2 + 200 + 1);
  ck_assert_int_eq(strncmp(out, "0,1,2,3,4,5,6,7,8,9,10,11,", 26), 0);
  ck_assert_str_eq(out + strlen(out) - 4, "001.");
  ts_free(out);
  CK_FAIL_EACH_ALLOCATION({
    ts_status_free(use_text(&out));
    ts_free(out);
  });

  ts_text empty = {0};
  ck_assert_ok(ts_text_finish(&empty, &out));
  ck_assert_str_eq(out, "");
  ts_free(out);
}
END_TEST

START_TEST(text_failed_append)
{
  ts_text text = {0};
  ts_text_append(&text, "kept");
  ts_alloc_fail_after(1, false);
  ts_text_format(&text, "%0500d", 1);
  ck_assert(text.failed);
  ck_assert_str_eq(text.data, "kept");
  ts_text_append(&text, "no more");
  ck_assert_str_eq(text.data, "kept");
  char *out;
  ck_assert_error(ts_text_finish(&text, &out), TS_RESOURCE_EXHAUSTED, "memory");
  ck_assert_ptr_null(out);
}
END_TEST

/* ---- map */

static size_t number_key(int i, char *out) { return (size_t)sprintf(out, "key %d", i); }

START_TEST(map_put_get_remove)
{
  static int values[2000];
  ts_map map = {0};
  char key[32];
  ck_assert_ptr_null(ts_map_get(&map, "x", 1));
  ck_assert_ptr_null(ts_map_remove(&map, "x", 1));
  for (int i = 0; i < 2000; i++) {
    size_t size = number_key(i, key);
    ck_assert_ok(ts_map_put(&map, key, size, &values[i]));
  }
  ck_assert_uint_eq(map.count, 2000);
  ck_assert_ok(ts_map_put(&map, "key 7", 5, &values[0]));
  ck_assert_uint_eq(map.count, 2000);
  ck_assert_ptr_eq(ts_map_get(&map, "key 7", 5), &values[0]);
  ck_assert_ok(ts_map_put(&map, "key 7", 5, &values[7]));

  /* Two of three are removed: this moves many of the others. */
  for (int i = 0; i < 2000; i++) {
    size_t size = number_key(i, key);
    if (i % 3) ck_assert_ptr_eq(ts_map_remove(&map, key, size), &values[i]);
  }
  for (int i = 0; i < 2000; i++) {
    size_t size = number_key(i, key);
    ck_assert_ptr_eq(ts_map_get(&map, key, size), i % 3 ? NULL : &values[i]);
  }

  size_t cursor = 0, each_size, seen = 0;
  const void *each;
  void *value;
  while (ts_map_next(&map, &cursor, &each, &each_size, &value)) {
    int i = (int)((int *)value - values);
    ck_assert_uint_eq(each_size, number_key(i, key));
    ck_assert_mem_eq(each, key, each_size);
    seen++;
  }
  ck_assert_uint_eq(seen, 667);
  ck_assert_uint_eq(map.count, 667);
  ts_map_deinit(&map);
}
END_TEST

START_TEST(map_keys_are_bytes)
{
  int a, b, c;
  ts_map map = {0};
  ck_assert_ok(ts_map_put(&map, "a\0b", 3, &a));
  ck_assert_ok(ts_map_put(&map, "a\0c", 3, &b));
  ck_assert_ok(ts_map_put(&map, "", 0, &c));
  ck_assert_ptr_eq(ts_map_get(&map, "a\0b", 3), &a);
  ck_assert_ptr_eq(ts_map_get(&map, "a\0c", 3), &b);
  ck_assert_ptr_eq(ts_map_get(&map, "", 0), &c);
  ck_assert_ptr_null(ts_map_get(&map, "a", 1));
  ts_map_deinit(&map);
}
END_TEST

static ts_status use_map(void) {
  ts_map map = {0};
  ts_status status = TS_SUCCESS;
  int value;
  for (int i = 0; i < 100 && !status; i++) status = ts_map_put(&map, &i, sizeof(i), &value);
  ck_assert(status || map.count == 100);
  ts_map_deinit(&map);
  return status;
}

START_TEST(map_without_memory)
{ CK_FAIL_EACH_ALLOCATION(ts_status_free(use_map())); }
END_TEST

START_TEST(hash_is_stable)
{
  /* Kernel names on disk depend on it: XXH3's published values of no bytes. */
  ck_assert_uint_eq(ts_hash64("", 0), UINT64_C(0x2D06800538D394C2));
  ts_hash128 h = ts_hash("", 0);
  ck_assert_uint_eq(h.lo, UINT64_C(0x6001C324468D497F));
  ck_assert_uint_eq(h.hi, UINT64_C(0x99AA06D3014798D8));
  ck_assert_uint_ne(ts_hash("a", 1).lo, ts_hash("b", 1).lo);
}
END_TEST

/* ---- log, parallel, system */

static char logged[64];
static void log_to_buffer(const char *message) { snprintf(logged, sizeof(logged), "%s", message); }

START_TEST(log_sink_and_dump)
{
  ts_log_set_sink(log_to_buffer);
  ts_log_warning("cache %s is %d", "x", 3);
  ts_log_set_sink(NULL);
  ck_assert_str_eq(logged, "cache x is 3");

  setenv("TESSERA_DUMP", "graph,llvm", 1);
  ck_assert(ts_dump_enabled("graph") && ts_dump_enabled("llvm"));
  ck_assert(!ts_dump_enabled("plan") && !ts_dump_enabled("ll") && !ts_dump_enabled("graph,llvm"));
  unsetenv("TESSERA_DUMP"); /* it is read once */
  ck_assert(ts_dump_enabled("graph"));
}
END_TEST

START_TEST(wrong_dumps_are_refused)
{
  static const char *const wrong[] = {"graf", "graph,",      ",graph", "graph,,plan", "graph plan",
                                      ",",    "graph,passe", "Graph",  "graph,plans"};
  static const char *const right[] = {"",           "graph", "plan", "llvm,asm", "graph,passes,kernels,llvm,asm,plan",
                                      "graph,graph"};
  for (size_t i = 0; i < sizeof right / sizeof *right; i++)
    ck_assert(ts_status_consume_ok(ts_dump_check("X", right[i])));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    ts_status status = ts_dump_check("TESSERA_DUMP", wrong[i]);
    ck_assert_int_eq(ts_status_code(status), TS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ts_status_message(status), "TESSERA_DUMP: expected a list of graph,passes"));
    ck_assert_ptr_nonnull(strstr(ts_status_message(status), wrong[i]));
    ts_status_free(status);
  }
}
END_TEST

static void add_task(void *arg, int64_t task, int worker) { *(int64_t *)arg += task + worker; }

START_TEST(parallel_serial)
{
  int64_t sum = 0;
  ts_parallel_run(&ts_parallel_serial, 10, add_task, &sum);
  ck_assert_int_eq(sum, 45);
  ts_parallel_run(&ts_parallel_serial, 0, add_task, &sum);
  ck_assert_int_eq(sum, 45);
}
END_TEST

/* However many move a thread, it may run where it could before; and where there is another CPU it gets that, though the
 * mover never sleeps. */
typedef struct moved {
  _Atomic pid_t id;
  _Atomic int64_t turns;
  _Atomic bool over;
} moved;

static void *take_turns(void *arg) {
  moved *m = arg;
  atomic_store(&m->id, gettid());
  while (!atomic_load(&m->over)) {
    atomic_fetch_add(&m->turns, 1);
    sched_yield();
  }
  return NULL;
}

static void *move_often(void *arg) {
  moved *m = arg;
  for (int i = 0; i < 500; i++) ts_thread_move_away(atomic_load(&m->id));
  return NULL;
}

START_TEST(moved_threads_keep_their_cpus)
{
  moved m = {0};
  pthread_t thread, movers[4];
  cpu_set_t before, after;
  ck_assert_int_eq(pthread_create(&thread, NULL, take_turns, &m), 0);
  while (atomic_load(&m.id) == 0) sched_yield();
  ck_assert_int_eq(sched_getaffinity(m.id, sizeof before, &before), 0);
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&movers[i], NULL, move_often, &m), 0);
  for (int i = 0; i < 4; i++) pthread_join(movers[i], NULL);
  ck_assert_int_eq(sched_getaffinity(m.id, sizeof after, &after), 0);
  ck_assert(CPU_EQUAL(&before, &after));
  int64_t turns = atomic_load(&m.turns);
  while (atomic_load(&m.turns) == turns) ts_thread_move_away(m.id);
  atomic_store(&m.over, true);
  pthread_join(thread, NULL);
  ts_thread_move_away(0x7fffffff); /* a missing thread */
}
END_TEST

START_TEST(system_answers)
{
  ck_assert_int_ge(ts_system_cpus(), 1);
  ck_assert_int_le(ts_system_cpus(), sysconf(_SC_NPROCESSORS_CONF));
  ck_assert_int_gt(ts_system_memory(), 16 << 20);
  int64_t before = ts_system_coarse_ms();
  ck_assert_int_ge(ts_system_coarse_ms(), before);
}
END_TEST

static void end_with_seven(void) { _exit(7); }

START_TEST(handlers_run_at_exit)
{
  fflush(stdout);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) exit(ts_system_at_exit(end_with_seven) ? EXIT_SUCCESS : EXIT_FAILURE);
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
END_TEST

enum { COUNTERS = TS_SLOTS + 6, TIMES = 1000 }; /* enough threads that some share a slot */

static ts_counter shared_counter;

static void *count_up_and_down(void *unused) {
  for (int i = 0; i < TIMES; i++) {
    ts_counter_add(&shared_counter, 3);
    ts_counter_add(&shared_counter, -2);
  }
  return ts_slot() >= 0 && ts_slot() < ts_slot_count() ? unused : &shared_counter;
}

START_TEST(counters_of_many_threads)
{
  pthread_t threads[COUNTERS];
  for (int i = 0; i < COUNTERS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, count_up_and_down, NULL), 0);
  for (int i = 0; i < COUNTERS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    ck_assert_ptr_null(wrong);
  }
  ck_assert_int_eq(ts_counter_sum(&shared_counter), COUNTERS * TIMES);
  ck_assert_int_eq(ts_slot_count(), TS_SLOTS);
  ck_assert_int_eq(ts_slot(), ts_slot());
}
END_TEST

/* One thread at a time writes the data under a spin lock. */
static struct {
  ts_spin lock;
  int64_t count, twice;
} guarded;

static void *count_guarded(void *unused) {
  for (int i = 0; i < TIMES; i++) {
    ts_spin_lock(&guarded.lock);
    guarded.count++;
    guarded.twice = 2 * guarded.count;
    ts_spin_unlock(&guarded.lock);
  }
  return unused;
}

START_TEST(spin_lock_of_many_threads)
{
  pthread_t threads[8];
  ck_assert(ts_spin_try(&guarded.lock) && !ts_spin_try(&guarded.lock));
  for (int i = 0; i < 8; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, count_guarded, NULL), 0);
  ck_assert_int_eq(guarded.count, 0);
  ts_spin_unlock(&guarded.lock);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  ck_assert_int_eq(guarded.count, 8 * TIMES);
  ck_assert_int_eq(guarded.twice, 16 * TIMES);
}
END_TEST

static sem_t looked;
static int blocked_signals;

static void *look_at_signals(void *unused) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  blocked_signals = sigismember(&blocked, SIGINT) + sigismember(&blocked, SIGCHLD) + sigismember(&blocked, SIGPROF);
  sem_post(&looked);
  for (;;) pause();
  return unused;
}

START_TEST(thread_takes_no_signals)
{
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  ck_assert_int_eq(sem_init(&looked, 0, 0), 0);
  ck_assert(ts_thread_start("a name longer than the system's", look_at_signals, 1 << 20));
  ck_assert_int_eq(sem_wait(&looked), 0);
  ck_assert_int_eq(blocked_signals, 3);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  ck_assert_int_eq(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
  ck_assert(!ts_thread_start("no room", look_at_signals, (size_t)1 << 60));
}
END_TEST

/* Each character at the bounds of its form, and its neighbours. */
START_TEST(utf8_prefixes)
{
  static const char *const good[] = {"a",
                                     "\xc2\x80",
                                     "\xdf\xbf",
                                     "\xe0\xa0\x80",
                                     "\xed\x9f\xbf",
                                     "\xee\x80\x80",
                                     "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf4\x8f\xbf\xbf",
                                     ""};
  static const char *const bad[] = {
      "\x80",         "\xbf",         "\xc0\xaf",         "\xc1\xbf",         "\xc2",         "\xc2\x7f",
      "\xc2\xc0",     "\xe0\x9f\xbf", "\xe0\xa0",         "\xed\xa0\x80",     "\xe1\x80\x7f", "\xf0\x8f\xbf\xbf",
      "\xf0\x90\x80", "\xf4\x90\x80", "\xf1\x80\x80\xff", "\xf5\x80\x80\x80", "\xff"};
  char text[32];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    snprintf(text, sizeof text, "x%sy", good[i]);
    ck_assert_uint_eq(ts_utf8_prefix(text, strlen(text)), strlen(text));
    for (size_t n = 2; n < 1 + strlen(good[i]); n++) ck_assert_uint_eq(ts_utf8_prefix(text, n), 1);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text, "x%sy", bad[i]);
    ck_assert_msg(ts_utf8_prefix(text, strlen(text)) == 1, "bad text %zu", i);
  }
  ck_assert_uint_eq(ts_utf8_prefix(NULL, 0), 0);
}
END_TEST

START_TEST(ends_of_memory_are_checked)
{
  const char some[4] = "";
  ck_assert_ok(ts_system_check_readable(some, sizeof some));
  ck_assert_ok(ts_system_check_readable(NULL, 0));
  ck_assert_error(ts_system_check_readable(NULL, 1), TS_INVALID_ARGUMENT, "there are no 1 bytes of memory at 0x0");
  ck_assert_error(ts_system_check_readable((char *)UINTPTR_MAX - 4, 64), TS_INVALID_ARGUMENT, "there are no 64 bytes");
  ck_assert_error(ts_system_check_readable((void *)-1, 1), TS_INVALID_ARGUMENT, "cannot all be read");
  ck_assert_error(ts_system_check_readable((void *)8, INT64_MAX), TS_INVALID_ARGUMENT, "cannot all be read");
  ck_assert_error(ts_system_check_readable(some, INT64_MAX), TS_INVALID_ARGUMENT, "cannot all be read");
}
END_TEST

/* A page in the middle, in whichever place, that is not there, may not be read, or is past the end of its file. */
START_TEST(each_page_is_checked)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 2100; /* more than are asked for at once */
  char *range = mmap(NULL, count * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(range, MAP_FAILED);
  ck_assert_ok(ts_system_check_readable(range, (int64_t)(count * page)));
  const size_t places[] = {0, 1, 1023, 1024, 1025, 2047, 2048, count - 1};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    size_t before = places[i] * page, after = (count - places[i] - 1) * page;
    for (int way = 0; way < 2; way++) {
      if (way) ck_assert_int_eq(munmap(range + before, page), 0);
      if (!way) ck_assert_int_eq(mprotect(range + before, page, PROT_NONE), 0);
      ck_assert_ok(ts_system_check_readable(range, (int64_t)before));
      ck_assert_ok(ts_system_check_readable(range + before + page, (int64_t)after));
      ck_assert_error(ts_system_check_readable(range, (int64_t)before + 1), TS_INVALID_ARGUMENT, "cannot all be read");
      ck_assert_error(ts_system_check_readable(range + before + page - 1, (int64_t)after + 1), TS_INVALID_ARGUMENT,
                      "cannot");
      ck_assert_error(ts_system_check_readable(range, (int64_t)(count * page)), TS_INVALID_ARGUMENT,
                      "cannot all be read");
    }
    ck_assert_ptr_eq(mmap(range + before, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                     range + before);
  }
  munmap(range, count * page);

  FILE *file = tmpfile();
  ck_assert_int_eq(ftruncate(fileno(file), (off_t)(3 * page)), 0);
  range = mmap(NULL, 3 * page, PROT_READ, MAP_SHARED, fileno(file), 0);
  ck_assert_ok(ts_system_check_readable(range, (int64_t)(3 * page)));
  ck_assert_int_eq(ftruncate(fileno(file), (off_t)(2 * page)), 0);
  ck_assert_ok(ts_system_check_readable(range, (int64_t)(2 * page)));
  ck_assert_error(ts_system_check_readable(range, (int64_t)(2 * page) + 1), TS_INVALID_ARGUMENT, "cannot all be read");
  munmap(range, 3 * page);
  fclose(file);
}
END_TEST

/* ---- shared objects */

/* All that this process has loaded are accepted. */
static int accept_loaded(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  if (info->dlpi_name[0] != '/') return 0; /* only libraries: neither the program nor the kernel's mappings */
  ck_assert_ok(ts_shared_object_check(info->dlpi_name));
  ++*(int *)count;
  return 0;
}

static char *read_file(const char *path, size_t *out_size) {
  struct stat status;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ck_assert_int_eq(fstat(file, &status), 0);
  char *bytes = malloc((size_t)status.st_size);
  ck_assert_int_eq(read(file, bytes, (size_t)status.st_size), status.st_size);
  ck_assert_int_eq(close(file), 0);
  *out_size = (size_t)status.st_size;
  return bytes;
}

static ts_status check_file(int file) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return ts_shared_object_check(path);
}

/* Of a library in a file: each part of it is refused, and nothing that is written over its headers is followed. */
START_TEST(shared_objects)
{
  Dl_info info;
  size_t size;
  int loaded = 0, file = memfd_create("object", MFD_CLOEXEC);
  dl_iterate_phdr(accept_loaded, &loaded);
  ck_assert_int_gt(loaded, 1);
  ck_assert(dladdr((void *)(uintptr_t)pthread_create, &info) != 0);
  char *bytes = read_file(info.dli_fname, &size);
  ck_assert_int_eq(pwrite(file, bytes, size, 0), (ssize_t)size);
  ck_assert_ok(check_file(file));
  for (off_t at = 0; at < 1024; at++) { /* found or not, nothing else happens */
    char other = (char)~bytes[at];
    ck_assert_int_eq(pwrite(file, &other, 1, at), 1);
    ts_status_free(check_file(file));
    ck_assert_int_eq(pwrite(file, &bytes[at], 1, at), 1);
  }
  ck_assert_ok(check_file(file));
  ck_assert_int_eq(ftruncate(file, (off_t)size - 1), 0);
  ck_assert_error(check_file(file), TS_INVALID_ARGUMENT, "truncated");
  for (size_t i = 50; i-- > 0;) {
    ck_assert_int_eq(ftruncate(file, (off_t)(size * i / 50)), 0);
    ck_assert_error(check_file(file), TS_INVALID_ARGUMENT, "/proc/self/fd/");
  }
  CK_FAIL_EACH_ALLOCATION(ts_status_free(ts_shared_object_check(info.dli_fname)));
  free(bytes);
  ck_assert_int_eq(close(file), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("base");
  TCase *tests = tcase_create("base");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, status_of_success);
  tcase_add_test(tests, status_message_and_context);
  tcase_add_test(tests, status_without_memory);
  tcase_add_test(tests, status_macros);
  tcase_add_test(tests, alloc_zeroes_and_checks_sizes);
  tcase_add_test(tests, alloc_realloc_and_strdup);
  tcase_add_test(tests, alloc_injected_failure);
  tcase_add_test(tests, arena_blocks);
  tcase_add_test(tests, arena_sizes);
  tcase_add_test(tests, vec_push_and_reserve);
  tcase_add_test(tests, text_append_and_finish);
  tcase_add_test(tests, text_failed_append);
  tcase_add_test(tests, utf8_prefixes);
  tcase_add_test(tests, map_put_get_remove);
  tcase_add_test(tests, map_keys_are_bytes);
  tcase_add_test(tests, map_without_memory);
  tcase_add_test(tests, hash_is_stable);
  tcase_add_test(tests, log_sink_and_dump);
  tcase_add_test(tests, wrong_dumps_are_refused);
  tcase_add_test(tests, parallel_serial);
  tcase_add_test(tests, counters_of_many_threads);
  tcase_add_test(tests, spin_lock_of_many_threads);
  tcase_add_test(tests, thread_takes_no_signals);
  tcase_add_test(tests, moved_threads_keep_their_cpus);
  tcase_add_test(tests, system_answers);
  tcase_add_test(tests, handlers_run_at_exit);
  tcase_add_test(tests, ends_of_memory_are_checked);
  tcase_add_test(tests, each_page_is_checked);
  tcase_add_test(tests, shared_objects);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
