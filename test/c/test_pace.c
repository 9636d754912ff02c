/* How programs learn from their runs: decisions by given times, without a clock. */
#include "exec/executable.h"
#include "exec/pace.h"
#include "tensor/pages.h"
#include "tensors.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define US 1000
enum { SETTLED = 300 }; /* runs: the first trials end before */

/* A machine: each way of a program takes a given time, and workers are awake for 20 us after a job. */
typedef struct machine {
  ts_pace *pace;
  int64_t now, awake_until, cost[TS_PACE_WAYS];
  bool is_alone; /* runs give workers nothing */
  int ways[TS_PACE_WAYS], left;
} machine;

static machine machine_of(ts_pace_guess guess, int64_t alone, int64_t waking, int64_t joined) {
  machine m = {.now = 1000 * US, .cost = {alone * US, waking * US, joined * US}};
  ck_assert_ok(ts_pace_create(&guess, &m.pace));
  return m;
}

static void count_from_here(machine *m) {
  memset(m->ways, 0, sizeof m->ways);
  m->left = 0;
}

/* `count` calls, each `gap` us after the end of the one before. */
static void call(machine *m, int count, int64_t gap) {
  for (int i = 0; i < count; i++) {
    m->now += gap * US;
    m->left += !ts_pace_stays(m->pace, NULL);
    ts_pace_way way = ts_pace_choose(m->pace, m->now < m->awake_until, m->now);
    bool shared = way != TS_PACE_ALONE && !m->is_alone;
    ts_pace_run run = {way, shared, m->now, m->now + m->cost[shared ? way : TS_PACE_ALONE]};
    ts_pace_note(m->pace, &run);
    m->ways[way]++;
    m->now = run.ended;
    if (shared) m->awake_until = m->now + 20 * US;
  }
}

static void note_alone(ts_pace *pace, int count, int64_t us) {
  for (int i = 0; i < count; i++)
    ts_pace_note(pace, &(ts_pace_run){.way = TS_PACE_ALONE, .began = 0, .ended = us * US});
}

static const ts_pace_guess long_guess = {.cost_ns = 344 * US, .is_steady = true};
static const ts_pace_guess short_guess = {.cost_ns = 20 * US, .is_short = true, .is_steady = true};

/* ---- the place ---- */

START_TEST(first_runs_go_as_the_estimate_says)
{
  machine longer = machine_of(long_guess, 37, 90, 40), shorter = machine_of(short_guess, 900, 900, 900);
  ck_assert(!ts_pace_stays(longer.pace, NULL));
  ck_assert(ts_pace_stays(shorter.pace, NULL));
  ck_assert_int_eq(ts_pace_cost_ns(longer.pace), 344 * US);
  ck_assert_int_eq(ts_pace_choose(longer.pace, false, longer.now), TS_PACE_WAKING);
  ts_pace_destroy(longer.pace);
  ts_pace_destroy(shorter.pace);
}
END_TEST

START_TEST(work_that_is_short_stays)
{
  machine m = machine_of(long_guess, 37, 90, 40);
  call(&m, 16, 1);
  ck_assert_int_le(m.left, 5);
  count_from_here(&m);
  call(&m, 1000, 1);
  call(&m, 1000, 5000);
  ck_assert_int_eq(m.left, 0);
  ck_assert_int_eq(ts_pace_cost_ns(m.pace), 37 * US);
  ts_pace_destroy(m.pace);
}
END_TEST

START_TEST(work_that_is_long_leaves)
{
  machine m = machine_of(short_guess, 260, 300, 150);
  call(&m, SETTLED, 1);
  ck_assert(!ts_pace_stays(m.pace, NULL));
  ts_pace_destroy(m.pace);
}
END_TEST

START_TEST(only_steady_work_stays_by_its_measured_time)
{
  ts_pace_guess varying = {.cost_ns = 344 * US}, varying_short = {.cost_ns = 20 * US, .is_short = true};
  machine m = machine_of(varying, 30, 60, 40), s = machine_of(varying_short, 30, 60, 40);
  call(&m, SETTLED, 1);
  call(&s, SETTLED, 1);
  ck_assert(!ts_pace_stays(m.pace, NULL));
  ck_assert(ts_pace_stays(s.pace, NULL));
  for (int way = 0; way < TS_PACE_WAYS; way++) s.cost[way] = 250 * US;
  call(&s, SETTLED, 5000);
  ck_assert(!ts_pace_stays(s.pace, NULL));
  ts_pace_destroy(m.pace);
  ts_pace_destroy(s.pace);
}
END_TEST

START_TEST(runs_that_are_often_too_long_leave_for_a_while)
{
  ts_pace *p;
  ck_assert_ok(ts_pace_create(&long_guess, &p));
  note_alone(p, 10, 40);
  for (int i = 0; i < 3; i++) {
    ck_assert(ts_pace_stays(p, NULL));
    note_alone(p, 4, 40);
    note_alone(p, 1, 3000);
  }
  note_alone(p, 1000, 40);
  ck_assert(!ts_pace_stays(p, NULL));
  note_alone(p, 100, 40);
  ck_assert(ts_pace_stays(p, NULL));
  ts_pace_destroy(p);
}
END_TEST

START_TEST(runs_that_are_stopped_leave_for_a_while)
{
  ts_pace *p;
  ck_assert_ok(ts_pace_create(&(ts_pace_guess){.cost_ns = INT64_MAX, .is_steady = true}, &p));
  ck_assert(!ts_pace_stays(p, NULL));
  note_alone(p, 10, 40);
  for (int i = 0; i < 3; i++) {
    ck_assert(ts_pace_stays(p, NULL));
    ts_pace_note_stop(p);
  }
  ck_assert(!ts_pace_stays(p, NULL));
  ck_assert_int_eq(ts_pace_cost_ns(p), 40 * US);
  note_alone(p, 1024, 40);
  ck_assert(ts_pace_stays(p, NULL));
  ts_pace_destroy(p);
}
END_TEST

/* Such a run stays while free blocks of the pool have as many bytes. */
START_TEST(much_memory_has_to_be_free)
{
  enum { BYTES = 3 << 20 };
  ts_pace *large, *estimated;
  ts_pool *pool;
  void *block;
  ts_pace_guess guess = long_guess;
  guess.memory = BYTES;
  ck_assert_ok(ts_pool_create((int64_t)64 << 20, &pool));
  ck_assert_ok(ts_pace_create(&guess, &large));
  guess = short_guess;
  guess.memory = BYTES;
  ck_assert_ok(ts_pace_create(&guess, &estimated));
  note_alone(large, 10, 40);
  note_alone(estimated, 10, 40);
  ck_assert(ts_pace_stays(large, NULL));
  ck_assert(!ts_pace_stays(large, pool));
  ck_assert(ts_pace_stays(estimated, pool));
  ck_assert_ok(ts_pool_alloc(pool, BYTES, &block));
  ck_assert(!ts_pace_stays(large, pool));
  ts_pool_free(pool, block, BYTES);
  ck_assert(ts_pace_stays(large, pool) == !TS_POOL_PASS_THROUGH);
  ts_pool_trim(pool, 0);
  ck_assert(!ts_pace_stays(large, pool));
  ts_pace_destroy(large);
  ts_pace_destroy(estimated);
  ts_pool_destroy(pool);
}
END_TEST

START_TEST(rare_interruptions_change_nothing)
{
  ts_pace *p;
  ck_assert_ok(ts_pace_create(&long_guess, &p));
  note_alone(p, 10, 40);
  for (int i = 0; i < 100; i++) {
    note_alone(p, 50, 40);
    note_alone(p, 1, 8000);
    ck_assert(ts_pace_stays(p, NULL));
    ck_assert_int_le(ts_pace_cost_ns(p), 45 * US);
  }
  ts_pace_destroy(p);
}
END_TEST

/* ---- threads ---- */

START_TEST(threads_that_cost_more_are_left_alone)
{
  machine m = machine_of(long_guess, 40, 100, 45);
  call(&m, SETTLED, 1);
  count_from_here(&m);
  call(&m, 10000, 1);
  call(&m, 10000, 5000);
  ck_assert_int_ge(m.ways[TS_PACE_ALONE], 19900);
  ts_pace_destroy(m.pace);
}
END_TEST

/* Awake workers pay, sleeping ones do not: they are used where calls follow each other, also after a pause. */
START_TEST(workers_are_woken_for_calls_back_to_back)
{
  machine m = machine_of(long_guess, 100, 150, 60);
  for (int round = 0; round < 3; round++) {
    call(&m, SETTLED, 5000);
    count_from_here(&m);
    call(&m, 1000, 5000);
    ck_assert_int_ge(m.ways[TS_PACE_ALONE], 980);
    call(&m, 100, 2);
    count_from_here(&m);
    call(&m, 1000, 2);
    ck_assert_int_ge(m.ways[TS_PACE_JOINED], 980);
  }
  ts_pace_destroy(m.pace);
}
END_TEST

START_TEST(workers_are_woken_where_that_pays_at_once)
{
  machine m = machine_of((ts_pace_guess){.cost_ns = 800 * US, .is_steady = true}, 800, 500, 410);
  call(&m, SETTLED, 5000);
  count_from_here(&m);
  call(&m, 1000, 5000);
  ck_assert_int_ge(m.ways[TS_PACE_WAKING], 980);
  ck_assert_int_eq(m.left, 1000);
  ts_pace_destroy(m.pace);
}
END_TEST

START_TEST(a_change_of_costs_is_learned)
{
  machine m = machine_of(long_guess, 100, 150, 60);
  call(&m, SETTLED, 1);
  m.cost[TS_PACE_JOINED] = 300 * US; /* another program has the other CPUs */
  call(&m, SETTLED, 1);
  count_from_here(&m);
  call(&m, 1000, 1);
  ck_assert_int_ge(m.ways[TS_PACE_ALONE], 950);
  m.cost[TS_PACE_JOINED] = 60 * US;
  call(&m, 20000, 1);
  count_from_here(&m);
  call(&m, 1000, 1);
  ck_assert_int_ge(m.ways[TS_PACE_JOINED], 950);
  ts_pace_destroy(m.pace);
}
END_TEST

START_TEST(long_work_is_not_tried_on_one_thread)
{
  machine m = machine_of((ts_pace_guess){.cost_ns = 9000 * US}, 9000, 5000, 4900);
  call(&m, 10000, 1);
  ck_assert_int_eq(m.ways[TS_PACE_ALONE], 0);
  ts_pace_destroy(m.pace);
}
END_TEST

START_TEST(work_for_one_thread_is_offered_to_no_others)
{
  machine m = machine_of(long_guess, 40, 100, 45);
  m.is_alone = true;
  call(&m, 1000, 1);
  ck_assert_int_eq(m.ways[TS_PACE_ALONE], 996);
  ck_assert_int_eq(ts_pace_measured(m.pace, TS_PACE_WAKING), 0);
  ts_pace_guess guess = long_guess;
  guess.is_alone = true;
  machine told = machine_of(guess, 40, 100, 45);
  call(&told, 1000, 1);
  ck_assert_int_eq(told.ways[TS_PACE_ALONE], 1000);
  ts_pace_destroy(m.pace);
  ts_pace_destroy(told.pace);
}
END_TEST

/* ---- programs ---- */

#define PRODUCT                                                                                                     \
  "graph @main(%0: f32[200,300], %1: f32[300,200]) -> (f32[200,200]) {\n  %2 = dot_general %0, %1 {lhs_contract = " \
  "[1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[200,200]\n  return %2\n}\n"

/* Doubles the values until the first one is large. */
#define NATIVE(next)                                                                                                \
  "graph @main(%0: f32[90]) -> (f32[90]) {\n%1 = while %0 {\ncondition(%2: f32[90]) {\n%3 = constant 1e6 : f32[]\n" \
  "%4 = slice %2 {start = [0], limit = [1], stride = [1]} : f32[1]\n%10 = reshape %4 {shape = []} : f32[]\n"        \
  "%11 = less %10, %3 : u8[]\nreturn %11\n}\nbody(%5: f32[90]) {\n%6 = constant 2.0 : f32[90]\n" next               \
  "return %7\n}\n} : f32[90]\nreturn %1\n}\n"

typedef struct kind {
  const char *name, *text;
  bool learns, may_stay;
} kind;

static const kind kinds[] = {
    {"product", PRODUCT, true, true},
    {"tiny", "graph @main(%0: f32[100]) -> (f32[100]) {\n  %1 = add %0, %0 : f32[100]\n  return %1\n}\n", false, true},
    {"eigenvalues",
     "graph @main(%0: f32[160,160]) -> (f32[160], f32[160,160]) {\n  %1, %2 = eigh %0 : f32[160], f32[160,160]\n"
     "  return %1, %2\n}\n",
     true, false},
    {"few eigenvalues",
     "graph @main(%0: f32[40,40]) -> (f32[40], f32[40,40]) {\n  %1, %2 = eigh %0 : f32[40], f32[40,40]\n"
     "  return %1, %2\n}\n",
     true, true},
    {"sort",
     "graph @main(%0: f32[100000]) -> (f32[100000]) {\n  %1 = sort %0 {axis = 0, descending = false} : f32[100000]\n  "
     "return %1\n}\n",
     true, false},
    {"short sort",
     "graph @main(%0: f64[8193]) -> (f64[8193]) {\n  %1 = sort %0 {axis = 0, descending = false} : f64[8193]\n  "
     "return %1\n}\n",
     true, true},
    {"much memory", "graph @main(%0: f32[400000]) -> (f32[400000]) {\n  %1 = exp %0 : f32[400000]\n  return %1\n}\n",
     true, true},
    {"native loop", NATIVE("%7 = multiply %5, %6 : f32[90]\n"), true, true},
    {"native loop of sorts",
     NATIVE("%9 = multiply %5, %6 : f32[90]\n%7 = sort %9 {axis = 0, descending = false} : f32[90]\n"), true, true},
    {"native loop of eigenvectors",
     NATIVE("%8 = slice %5 {start = [0], limit = [81], stride = [1]} : f32[81]\n%9 = reshape %8 {shape = [9, 9]} : "
            "f32[9,9]\n%12, %13 = eigh %9 : f32[9], f32[9,9]\n%14 = reshape %13 {shape = [81]} : f32[81]\n"
            "%7 = concatenate %14, %12 {axis = 0} : f32[90]\n"),
     false, false},
    {"loop",
     "graph @main(%0: f32[9000]) -> (f32[9000]) {\n  %1 = while %0 {\n    condition(%2: f32[9000]) {\n"
     "      %3 = constant 0.5 : f32[]\n      %4 = slice %2 {start = [0], limit = [1], stride = [1]} : f32[1]\n"
     "      %5 = reshape %4 {shape = []} : f32[]\n      %6 = less %5, %3 : u8[]\n      return %6\n    }\n"
     "    body(%7: f32[9000]) {\n      %8 = exp %7 : f32[9000]\n      return %8\n    }\n  } : f32[9000]\n"
     "  return %1\n}\n",
     false, false},
};

START_TEST(only_programs_whose_runs_are_equal_learn)
{
  const kind *k = &kinds[_i];
  ts_executable *exe = test_compile(k->text);
  ts_pace *pace = ts_executable_pace(exe);
  ck_assert_msg(k->learns == (pace != NULL), "%s", k->name);
  if (pace) {
    note_alone(pace, 10, 40);
    ck_assert_msg(ts_pace_stays(pace, NULL) == (k->may_stay || ts_executable_is_short(exe)), "%s", k->name);
  }
  ts_executable_release(exe);
}
END_TEST

static ts_buffer *matrix(int64_t rows, int64_t columns) {
  int64_t dims[] = {rows, columns};
  ts_shape shape = ts_shape_make(2, dims);
  ts_buffer *b;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), TS_F32, &shape, &b));
  float *x = b->data;
  for (int64_t i = 0; i < rows * columns; i++) x[i] = (float)((i * 7919) % 1009) / 1009.0F - 0.5F;
  return b;
}

/* Runs go all ways, whose results have the same bits, and are measured. */
START_TEST(ways_have_equal_results)
{
  ts_executable *exe = test_compile(PRODUCT);
  ts_pace *pace = ts_executable_pace(exe);
  ts_buffer *args[] = {matrix(200, 300), matrix(300, 200)}, *first, *out;
  ts_run_control control = {0};
  ts_run_options options = {.control = &control};
  ck_assert_ok(ts_executable_run(exe, args, 2, NULL, &first));
  for (int i = 0; i < 40; i++) {
    ck_assert_ok(ts_executable_run(exe, args, 2, i % 3 ? NULL : &options, &out));
    ck_assert_int_eq(memcmp(out->data, first->data, (size_t)first->bytes), 0);
    ts_buffer_release(out);
  }
  int64_t measured = ts_pace_measured(pace, TS_PACE_ALONE) + ts_pace_measured(pace, TS_PACE_WAKING);
  ck_assert_int_gt(measured, 0);
  ts_buffer_release(first);
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
  ts_executable_release(exe);
}
END_TEST

/* A run that fails or is cancelled teaches nothing. */
START_TEST(only_whole_runs_are_measured)
{
  ts_executable *exe = test_compile(PRODUCT);
  ts_buffer *args[] = {matrix(200, 300), matrix(300, 200)}, *out;
  ts_run_control control = {.cancel = true};
  ts_run_options options = {.control = &control};
  ck_assert_error(ts_executable_run(exe, args, 2, &options, &out), TS_CANCELLED, "cancelled");
  for (int way = 0; way < TS_PACE_WAYS; way++)
    ck_assert_int_eq(ts_pace_measured(ts_executable_pace(exe), (ts_pace_way)way), 0);
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
  ts_executable_release(exe);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("pace");
  TCase *t = tcase_create("pace");
  tcase_add_test(t, first_runs_go_as_the_estimate_says);
  tcase_add_test(t, work_that_is_short_stays);
  tcase_add_test(t, work_that_is_long_leaves);
  tcase_add_test(t, only_steady_work_stays_by_its_measured_time);
  tcase_add_test(t, runs_that_are_often_too_long_leave_for_a_while);
  tcase_add_test(t, runs_that_are_stopped_leave_for_a_while);
  tcase_add_test(t, much_memory_has_to_be_free);
  tcase_add_test(t, rare_interruptions_change_nothing);
  tcase_add_test(t, threads_that_cost_more_are_left_alone);
  tcase_add_test(t, workers_are_woken_for_calls_back_to_back);
  tcase_add_test(t, workers_are_woken_where_that_pays_at_once);
  tcase_add_test(t, a_change_of_costs_is_learned);
  tcase_add_test(t, long_work_is_not_tried_on_one_thread);
  tcase_add_test(t, work_for_one_thread_is_offered_to_no_others);
  tcase_add_loop_test(t, only_programs_whose_runs_are_equal_learn, 0, sizeof kinds / sizeof *kinds);
  tcase_add_test(t, ways_have_equal_results);
  tcase_add_test(t, only_whole_runs_are_measured);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
