/* Profiles of runs: what is counted follows from the program, of one run and of several at once; what has no room is
 * counted as left out; each allocation may fail. */
#include "exec/profile.h"

#include "base/system.h"
#include "tensors.h"
#include "testing.h"

#include <pthread.h>

/* Counts to 5 in a loop of steps, whose tensor is too large for one function, and adds. */
static const char loop[] =
    "graph @main(%0: f32[5000], %1: f32[2,2]) -> (f32[5000], f32[2,2]) {\n"
    "  %2 = while %0 {\n"
    "    condition(%3: f32[5000]) {\n"
    "      %4 = reduce_max %3 {axes = [0]} : f32[]\n      %5 = constant 5.0 : f32[]\n"
    "      %6 = less %4, %5 : u8[]\n      return %6\n    }\n"
    "    body(%7: f32[5000]) {\n"
    "      %8 = constant 1.0 : f32[5000]\n      %9 = add %7, %8 : f32[5000]\n"
    "      return %9\n    }\n"
    "  } : f32[5000]\n"
    "  %10 = dot_general %1, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : "
    "f32[2,2]\n"
    "  return %2, %10\n}\n";

static ts_executable *exe;
static ts_buffer *args[2];

static ts_status run_with(ts_profile *profile) {
  ts_buffer *results[2];
  ts_status status = ts_executable_run(exe, args, 2, &(ts_run_options){.profile = profile}, results);
  for (int i = 0; i < 2 && !status; i++) ts_buffer_release(results[i]);
  return status;
}

static void begin(void) {
  exe = test_compile(loop);
  ts_shape shape = SHAPE(5000);
  ck_assert_ok(ts_buffer_create(ts_pool_default(), TS_F32, &shape, &args[0]));
  memset(args[0]->data, 0, (size_t)args[0]->bytes);
  args[1] = TENSOR(TS_F32, SHAPE(2, 2), 1, 2, 3, 4);
  ck_assert_ok(run_with(NULL)); /* threads and memory that stay */
  test_leaks_begin_after_products();
}

static void end(void) {
  test_leaks_end();
  for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
  ts_executable_release(exe);
}

static ts_profile *profile_of(size_t most_events, ts_profile *outer) {
  ts_profile *profile;
  ck_assert_ok(ts_profile_create(most_events, outer, &profile));
  return profile;
}

static const ts_profile_program *only_program(const ts_profile *profile) {
  const ts_profile_program *programs;
  ck_assert_uint_eq(ts_profile_programs(profile, &programs), 1);
  return programs;
}

/* Of the steps in blocks of that depth, how often the one was run that was run most. */
static int64_t most_runs(const ts_profile_program *program, int32_t depth) {
  int64_t most = 0;
  for (size_t i = 0; i < program->row_count; i++)
    if (program->rows[i].depth == depth && program->rows[i].count > most) most = program->rows[i].count;
  return most;
}

static int64_t sum_of_rows(const ts_profile_program *program) {
  int64_t sum = 0;
  for (size_t i = 0; i < program->row_count; i++)
    if (program->rows[i].launch < 0) sum += program->rows[i].ns;
  return sum;
}

START_TEST(counts_follow_from_the_program)
{
  const ts_profile_event *events;
  int64_t left_out, uncounted, count = 0;
  ts_profile *profile = profile_of(1000, NULL);
  for (int i = 0; i < 3; i++) ck_assert_ok(run_with(profile));
  const ts_profile_program *program = only_program(profile);
  ck_assert_ptr_eq(program->exe, exe);
  ck_assert_int_eq(program->runs, 3);
  ck_assert_int_eq(most_runs(program, 0), 3);
  ck_assert_int_eq(most_runs(program, 1), 3 * 6); /* the condition, once more than the body */
  ck_assert_int_le(sum_of_rows(program), program->ns);
  for (size_t i = 0; i < program->row_count; i++) count += program->rows[i].count;
  ck_assert_uint_eq(ts_profile_events(profile, &events), (size_t)count + 3);
  ts_profile_left_out(profile, &left_out, &uncounted);
  ck_assert_int_eq(left_out + uncounted, 0);
  ts_profile_release(profile);
}
END_TEST

START_TEST(rows_have_their_work)
{
  ts_profile *profile = profile_of(0, NULL);
  ck_assert_ok(run_with(profile));
  const ts_profile_program *program = only_program(profile);
  int products = 0;
  for (size_t i = 0; i < program->row_count; i++) {
    if (!ts_profile_row_flops(&program->rows[i])) continue;
    products++;
    ck_assert_int_eq(ts_profile_row_flops(&program->rows[i]), 2 * 2 * 2 * 2);
    ck_assert_int_eq(ts_profile_row_bytes(&program->rows[i]), 3 * 16);
    ck_assert_str_eq(ts_profile_row_op(&program->rows[i]), "dot_general");
  }
  ck_assert_int_eq(products, 1);
  ts_profile_release(profile);
}
END_TEST

START_TEST(what_has_no_room_is_left_out)
{
  const ts_profile_event *events;
  int64_t left_out, uncounted;
  ts_profile *profile = profile_of(5, NULL);
  for (int i = 0; i < 10; i++) ck_assert_ok(run_with(profile));
  ck_assert_uint_eq(ts_profile_events(profile, &events), 5);
  ts_profile_left_out(profile, &left_out, &uncounted);
  ck_assert_int_gt(left_out, 0);
  ck_assert_int_eq(uncounted, 0);
  ck_assert_int_eq(only_program(profile)->runs, 10);
  ts_profile_release(profile);
}
END_TEST

START_TEST(an_outer_profile_gets_what_an_inner_one_gets)
{
  ts_profile *outer = profile_of(100, NULL), *inner = profile_of(100, outer);
  ck_assert_ok(run_with(outer));
  ck_assert_ok(run_with(inner));
  ck_assert_int_eq(only_program(outer)->runs, 2);
  ck_assert_int_eq(only_program(inner)->runs, 1);
  ck_assert_uint_eq(only_program(outer)->number, only_program(inner)->number);
  ck_assert_uint_eq(ts_profile_take_new(inner), only_program(inner)->number);
  ck_assert_uint_eq(ts_profile_take_new(outer), 0); /* the same program */
  ts_profile_release(outer);
  ck_assert_ok(run_with(inner)); /* which keeps it */
  ts_profile_release(inner);
}
END_TEST

/* Its arrays stay as they are while runs still end. */
START_TEST(a_closed_profile_gets_nothing)
{
  const ts_profile_program *programs;
  const ts_profile_event *events;
  int64_t left_out, uncounted;
  _Atomic uint64_t number = 0;
  ts_profile *outer = profile_of(1000, NULL), *inner = profile_of(1, outer);
  ck_assert_ok(run_with(inner));
  ts_profile_left_out(inner, &left_out, &uncounted);
  int64_t left_out_before = left_out;
  ck_assert(!ts_profile_is_closed(inner));
  ts_profile_close(inner);
  ck_assert(ts_profile_is_closed(inner) && !ts_profile_is_closed(outer));
  ck_assert_ok(run_with(inner));
  ts_profile_add_run(inner, ts_profile_number(&number), "gpu", ts_system_ns());
  ck_assert_int_eq(only_program(inner)->runs, 1);
  ck_assert_uint_eq(ts_profile_events(inner, &events), 1);
  ts_profile_left_out(inner, &left_out, &uncounted);
  ck_assert_int_eq(left_out, left_out_before);
  ck_assert_int_eq(uncounted, 0);
  ck_assert_uint_eq(ts_profile_programs(outer, &programs), 2);
  ck_assert_int_eq(programs[0].runs, 2);
  ts_profile_release(inner);
  ts_profile_release(outer);
}
END_TEST

/* A program of a device is one row, in the inner profile and in the outer one. */
START_TEST(runs_of_devices_have_one_row)
{
  static const char name[] = "gpu";
  _Atomic uint64_t first = 0, second = 0;
  const ts_profile_event *events;
  const ts_profile_program *programs;
  int64_t bytes, pieces;
  ts_profile *outer = profile_of(100, NULL), *inner = profile_of(100, outer);
  ck_assert_ok(run_with(inner));
  for (int i = 0; i < 3; i++) ts_profile_add_run(inner, ts_profile_number(i < 2 ? &first : &second), name, 0);
  ck_assert_uint_ne(first, second);
  ck_assert_uint_eq(ts_profile_number(&first), first);
  for (int i = 0; i < 2; i++) {
    ck_assert_uint_eq(ts_profile_programs(i ? inner : outer, &programs), 3);
    ck_assert_ptr_eq(programs[0].exe, exe);
    const ts_profile_program *device = &programs[1];
    ck_assert_uint_eq(device->number, first);
    ck_assert_int_eq(device->runs, 2);
    ck_assert_uint_eq(device->row_count, 1);
    ck_assert_int_eq(device->rows[0].count, 2);
    ck_assert_int_eq(device->rows[0].ns, device->ns);
    ck_assert_str_eq(ts_profile_row_kind(&device->rows[0]), "device");
    ck_assert_str_eq(ts_profile_row_op(&device->rows[0]), name);
    ck_assert_ptr_null(ts_profile_row_type(&device->rows[0]));
    ck_assert_int_eq(ts_profile_row_bytes(&device->rows[0]) + ts_profile_row_flops(&device->rows[0]), 0);
    ts_profile_program_memory(device, &bytes, &pieces);
    ck_assert_int_eq(bytes + pieces, 0);
    size_t count = ts_profile_events(i ? inner : outer, &events);
    ck_assert_uint_eq(events[count - 1].row, UINT32_MAX);
    ck_assert_uint_eq(events[count - 1].program, 2);
  }
  ck_assert_uint_eq(ts_profile_take_new(inner), second);
  ts_profile_release(outer);
  ts_profile_release(inner);
}
END_TEST

static void *run_often(void *profile) {
  for (int i = 0; i < 200; i++) ck_assert_ok(run_with(profile));
  return NULL;
}

START_TEST(threads_share_a_profile)
{
  pthread_t threads[4];
  ts_profile *profile = profile_of(100, NULL);
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, run_often, profile), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  ck_assert_int_eq(only_program(profile)->runs, 800);
  ck_assert_int_eq(most_runs(only_program(profile), 1), 800 * 6);
  ts_profile_release(profile);
}
END_TEST

/* A run without memory for its times is a run. */
static void create_and_run(void) {
  ts_profile *profile;
  ts_status status = ts_profile_create(10, NULL, &profile);
  if (!status) status = run_with(profile);
  if (!status) {
    const ts_profile_program *programs;
    ck_assert_uint_le(ts_profile_programs(profile, &programs), 1);
  }
  ts_profile_release(profile);
  ts_status_free(status);
}

START_TEST(each_allocation_may_fail)
{ CK_FAIL_EACH_ALLOCATION(create_and_run()); }
END_TEST

int main(void) {
  Suite *suite = suite_create("profile");
  TCase *all = tcase_create("profile");
  tcase_add_checked_fixture(all, begin, end);
  tcase_add_test(all, counts_follow_from_the_program);
  tcase_add_test(all, rows_have_their_work);
  tcase_add_test(all, what_has_no_room_is_left_out);
  tcase_add_test(all, an_outer_profile_gets_what_an_inner_one_gets);
  tcase_add_test(all, a_closed_profile_gets_nothing);
  tcase_add_test(all, runs_of_devices_have_one_row);
  tcase_add_test(all, threads_share_a_profile);
  tcase_add_test(all, each_allocation_may_fail);
  suite_add_tcase(suite, all);
  return testing_run(suite);
}
