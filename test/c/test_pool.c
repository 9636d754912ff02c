/* The thread pool: every task once, with any callers. */
#include "exec/pool.h"
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { TASKS = 1000 };

typedef struct record {
  _Atomic int runs[TASKS];
  _Atomic int worker_busy[64];
  _Atomic int clashes;
  const ts_parallel *nested;
  _Atomic int64_t nested_runs;
} record;

static void count_nested(void *arg, int64_t task, int worker) {
  (void)task, (void)worker;
  atomic_fetch_add(&((record *)arg)->nested_runs, 1);
}

static void note(void *arg, int64_t task, int worker) {
  record *r = arg;
  if (atomic_fetch_add(&r->worker_busy[worker], 1) != 0) atomic_fetch_add(&r->clashes, 1);
  atomic_fetch_add(&r->runs[task], 1);
  if (r->nested && task % 100 == 0) ts_parallel_run(r->nested, 10, count_nested, r);
  atomic_fetch_sub(&r->worker_busy[worker], 1);
}

static void check_record(const record *r) {
  for (int i = 0; i < TASKS; i++) ck_assert_int_eq(atomic_load(&r->runs[i]), 1);
  ck_assert_int_eq(atomic_load(&r->clashes), 0);
}

START_TEST(every_task_runs_once)
{
  for (int threads = 0; threads <= 3; threads++) {
    record r = {0};
    ts_parallel_run(ts_pool_parallel(threads), TASKS, note, &r);
    check_record(&r);
  }
}
END_TEST

START_TEST(no_tasks_and_one_task)
{
  record r = {0};
  ts_parallel_run(ts_pool_parallel(0), 0, note, &r);
  ck_assert_int_eq(atomic_load(&r.runs[0]), 0);
  ts_parallel_run(ts_pool_parallel(0), 1, note, &r);
  ck_assert_int_eq(atomic_load(&r.runs[0]), 1);
}
END_TEST

START_TEST(tasks_may_run_tasks)
{
  record r = {.nested = ts_pool_parallel(0)};
  ts_parallel_run(ts_pool_parallel(0), TASKS, note, &r);
  check_record(&r);
  ck_assert_int_eq(atomic_load(&r.nested_runs), 100);
}
END_TEST

START_TEST(width_is_what_was_asked_for)
{
  ck_assert_int_ge(ts_cpu_count(), 1);
  ck_assert_int_eq(ts_pool_parallel(0)->width, ts_cpu_count());
  ck_assert_int_eq(ts_pool_parallel(1)->width, 1);
  ck_assert_int_eq(ts_pool_parallel(100000)->width, ts_cpu_count());
}
END_TEST

static void *call(void *arg) {
  (void)arg;
  for (int i = 0; i < 20; i++) {
    record *r = calloc(1, sizeof *r);
    ts_parallel_run(ts_pool_parallel(0), TASKS, note, r);
    bool good = atomic_load(&r->clashes) == 0;
    for (int k = 0; k < TASKS; k++) good &= atomic_load(&r->runs[k]) == 1;
    free(r);
    if (!good) return (void *)1;
  }
  return NULL;
}

START_TEST(many_callers_at_once)
{
  pthread_t threads[16];
  for (int i = 0; i < 16; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, call, NULL), 0);
  for (int i = 0; i < 16; i++) {
    void *bad;
    pthread_join(threads[i], &bad);
    ck_assert_ptr_null(bad);
  }
}
END_TEST

/* A helper has a long task when the caller has nothing left to do: the caller sleeps. */
typedef struct uneven {
  _Atomic bool helper_came;
  _Atomic int32_t long_tasks;
} uneven;

static void uneven_task(void *arg, int64_t task, int worker) {
  uneven *u = arg;
  (void)task;
  if (worker != 0) {
    atomic_store(&u->helper_came, true);
    usleep(100000);
    atomic_fetch_add(&u->long_tasks, 1);
  }
  for (int i = 0; worker == 0 && i < 60000 && !atomic_load(&u->helper_came); i++) usleep(1000);
}

static int64_t own_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

START_TEST(a_waiting_caller_sleeps)
{
  if (ts_cpu_count() < 2) {
    puts("a_waiting_caller_sleeps: left out, since there is one CPU and no helper");
    return;
  }
  for (int i = 0; i < 3; i++) {
    uneven u = {0};
    int64_t before = own_ns();
    ts_parallel_run(ts_pool_parallel(2), 2, uneven_task, &u);
    if (!atomic_load(&u.helper_came)) continue; /* the machine gave it no CPU for seconds */
    ck_assert_int_ge(atomic_load(&u.long_tasks), 1);
    ck_assert_int_lt(own_ns() - before, 50000000);
  }
}
END_TEST

/* Tasks of plugins that keep all their workers busy keep no others busy: two tasks that wait for each other need a
 * second thread. */
typedef struct meeting {
  _Atomic int came, open;
} meeting;

static void stay(void *arg, int64_t task, int worker) {
  meeting *m = arg;
  (void)task, (void)worker;
  atomic_fetch_add(&m->came, 1);
  while (!atomic_load(&m->open)) usleep(1000);
}

static void meet(void *arg, int64_t task, int worker) {
  meeting *m = arg;
  (void)task, (void)worker;
  atomic_fetch_add(&m->came, 1);
  while (atomic_load(&m->came) < 2) usleep(1000);
}

static void *stay_with_all(void *arg) {
  ts_parallel_run(ts_pool_away(0), 1000, stay, arg);
  return NULL;
}

START_TEST(plugins_have_workers_of_their_own)
{
  meeting stays = {0}, meets = {0};
  pthread_t thread;
  if (ts_cpu_count() == 1) return;
  ck_assert_int_eq(pthread_create(&thread, NULL, stay_with_all, &stays), 0);
  while (atomic_load(&stays.came) < ts_cpu_count()) usleep(1000);
  ts_parallel_run(ts_pool_parallel(0), 2, meet, &meets);
  ck_assert_int_eq(atomic_load(&meets.came), 2);
  atomic_store(&stays.open, 1);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_int_eq(atomic_load(&stays.came), 1000);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("pool");
  TCase *t = tcase_create("pool");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, every_task_runs_once);
  tcase_add_test(t, no_tasks_and_one_task);
  tcase_add_test(t, tasks_may_run_tasks);
  tcase_add_test(t, width_is_what_was_asked_for);
  tcase_add_test(t, many_callers_at_once);
  tcase_add_test(t, a_waiting_caller_sleeps);
  tcase_add_test(t, plugins_have_workers_of_their_own);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
