/* Operations of the client of plugins (c_src/pjrt) whose deadline passes: the caller has an error, the memory of the
 * operation stays until the plugin has ended it, and then nothing is left. */
#include "jit/jit.h"
#include "pjrt/deadline.h"
#include "pjrt_direct.h"
#include "testing.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

static ts_program program;
static void *client;

static const char late[] = "did not end within 20 ms (timeout)";

static void set_up(void) {
  const ts_setting soon = {.name = "timeout", .kind = TS_SETTING_INTEGER, .integer = 20};
  direct_begin();
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""}); /* all is compiled */
  direction->set_manner(TEST_MIXED);
  ck_assert_ok(try_open_with(&soon, 1, &client));
  ck_assert_ok(try_compile_text(client,
                                "graph @main(%0: f32[3]) -> (f32[3]) {\n  %1 = add %0, %0 : f32[3]\n"
                                "  return %1\n}\n",
                                &program));
}

static void tear_down(void) {
  p->release_program(program.program);
  p->close(client);
  wait_until_live(0);
  ck_assert_int_eq(direction->wrong(), 0);
}

/* On a busy machine an operation of the plugin may be late by itself. */
static bool is_late(ts_status status, const char *expected) {
  if (!status) return false;
  ck_assert_ptr_nonnull(strstr(ts_status_message(status), expected));
  ts_status_free(status);
  return true;
}

static bool again(ts_status status) { return is_late(status, late); }

static void *place(void) {
  void *memory = NULL;
  while (again(try_place(client, &memory))) {}
  return memory;
}

static ts_status try_run(void *memory, void **results) {
  return try_run_with(client, &program, &memory, (ts_bits){0}, results);
}

static void check_works(void) {
  float out[3];
  void *memory = place(), *result = NULL;
  while (again(try_run(memory, &result))) {}
  while (again(try_read(result, 12, out))) {}
  ck_assert_float_eq(out[2], 6);
  p->release_memory(memory);
  p->release_memory(result);
}

static int64_t live_bytes(void) {
  ts_memory_stats stats;
  p->get_memory(client, &stats);
  return stats.live;
}

/* The plugin's events do not end, or its functions do not return. */
static void stop(int how, bool is) { (how ? direction->stall : direction->keep)(is); }

/* The caller's memory may be used again after the error: these bytes are not written later. */
START_TEST(each_operation_has_a_deadline)
{
  float out[3] = {7, 7, 7};
  void *memory = place(), *made = NULL, *result = NULL;
  stop(_i, true);
  ck_assert_error(try_place(client, &made), TS_UNAVAILABLE, "the transfer to the device did not end within 20 ms");
  ck_assert_error(try_copy(client, memory, 1, &made), TS_UNAVAILABLE, late);
  ck_assert_error(try_copy(client, memory, 0, &made), TS_UNAVAILABLE, late);
  ck_assert_error(try_run(memory, &result), TS_UNAVAILABLE, "the run did not end within 20 ms");
  ck_assert_error(try_read(memory, 12, out), TS_UNAVAILABLE, "the transfer to the host did not end within 20 ms");
  ck_assert_ptr_null(made);
  ck_assert_ptr_null(result);
  p->release_memory(memory);
  ck_assert_int_gt(live_bytes(), 0); /* of the operations that go on */
  stop(_i, false);
  while (live_bytes() > 0) sched_yield();
  for (int i = 0; i < 3; i++) ck_assert_float_eq(out[i], 7);
  check_works();
}
END_TEST

static _Atomic int users;

static void add_user(void *object) {
  (void)object;
  atomic_fetch_add(&users, 1);
}

static void drop_user(void *object) {
  (void)object;
  atomic_fetch_sub(&users, 1);
}

static ts_status try_view(float *data, void **out) {
  end e = {0};
  ts_placement where = placement(client, 0);
  where.owner = (ts_owner){data, add_user, drop_user};
  p->view(&where, data, out, DONE(&e));
  return wait_for(&e);
}

/* Nothing is transferred. But the plugin may not return, and uses the owner's memory until it does. */
START_TEST(views_and_addresses_have_a_deadline)
{
  float data[3] = {1, 2, 3};
  ts_address at;
  void *memory = place(), *view;
  direction->stall(true);
  ck_assert_error(try_view(data, &view), TS_UNAVAILABLE, "the view of memory did not end within 20 ms");
  ck_assert_ptr_null(view);
  ck_assert_int_gt(atomic_load(&users), 0);
  ck_assert_error(try_address(memory, false, &at), TS_UNAVAILABLE, "an address did not end within 20 ms");
  direction->stall(false);
  p->release_memory(memory);
  while (atomic_load(&users) > 0 || live_bytes() > 0) sched_yield();
  ck_assert_ptr_null(at.data);
  check_works();
}
END_TEST

/* A client may be closed, and its program released, while its operations go on. */
START_TEST(a_late_operation_outlives_its_client)
{
  void *memory = place(), *result;
  stop(_i, true);
  ck_assert_error(try_run(memory, &result), TS_UNAVAILABLE, late);
  p->release_memory(memory);
  p->release_program(program.program);
  p->close(client);
  stop(_i, false);
  wait_until_live(0);
  set_up();
}
END_TEST

static bool is_refused(ts_status status, const char *expected) {
  bool refused = strstr(ts_status_message(status), "does not answer: 16 operations have not ended by their deadlines");
  ck_assert(refused || strstr(ts_status_message(status), expected));
  ts_status_free(status);
  return refused;
}

/* Each late operation holds memory and maybe a thread. So there are not more than some, and threads for others. An
 * operation that got no thread before its deadline ends when it gets one. */
START_TEST(a_client_has_few_late_operations)
{
  int tries = 0;
  void *memory = place(), *result;
  stop(_i, true);
  while (!is_refused(try_run(memory, &result), late)) ck_assert_int_lt(tries++, 1000);
  ck_assert_int_ge(tries, PJ_MOST_LATE);
  ts_program other = {0}; /* compiling needs a thread */
  ck_assert_ok(try_compile_text(client, "graph @main(%0: f32[3]) -> (f32[3]) {\n  return %0\n}\n", &other));
  p->release_program(other.program);
  stop(_i, false);
  p->release_memory(memory);
  while (live_bytes() > 0) sched_yield();
  check_works();
}
END_TEST

START_TEST(without_memory)
{
  void *memory = place(), *result;
  for (int64_t n = 1; n < 1000; n++) {
    float out[3];
    result = NULL;
    ts_alloc_fail_after(n, false);
    ts_status status = try_run(memory, &result);
    if (!status) status = try_read(result, 8, out);
    bool failed = ts_alloc_failures() > 0;
    ts_alloc_fail_after(0, false);
    ts_status_free(status);
    if (result) p->release_memory(result);
    if (!failed) break;
  }
  p->release_memory(memory);
  check_works();
}
END_TEST

/* ---- compiling */

static const char late_compile[] = "did not end within 20 ms (compile_timeout)";

static void *open_compiler(void) {
  const ts_setting soon = {.name = "compile_timeout", .kind = TS_SETTING_INTEGER, .integer = 20};
  void *compiler;
  ck_assert_ok(try_open_with(&soon, 1, &compiler));
  return compiler;
}

static ts_status try_double(void *compiler, ts_program *out) {
  static const char text[] = "graph @main(%0: f32[3]) -> (f32[3]) {\n  %1 = add %0, %0 : f32[3]\n  return %1\n}\n";
  ts_graph *graph;
  TS_TRY(ts_graph_parse(text, sizeof text - 1, &graph));
  ts_status status = try_compile_graph(compiler, graph, out);
  ts_graph_destroy(graph);
  return status;
}

/* The compiler of the tests takes less, but the machine may be busy. */
static void compile_in_time(void *compiler, ts_program *out) {
  while (is_late(try_double(compiler, out), late_compile)) {}
}

static ts_status try_save(const ts_program *made, ts_text *out) {
  end e = {0};
  p->save(made->program, out, DONE(&e));
  return wait_for(&e);
}

/* The caller's bytes are not valid after the error. */
static ts_status try_load(void *compiler, const ts_text *saved, ts_program *out) {
  end e = {0};
  char *bytes = malloc(saved->length);
  if (!bytes) abort();
  memcpy(bytes, saved->data, saved->length);
  p->load(compiler, &(ts_saved_program){bytes, saved->length}, out, DONE(&e));
  ts_status status = wait_for(&e);
  free(bytes);
  return status;
}

/* What is made too late is dropped, and the caller's graph and bytes are not read after the error. */
START_TEST(compiling_has_a_deadline)
{
  void *compiler = open_compiler();
  ts_program made = {0}, none = {0};
  ts_text saved = {0}, unsaved = {0};
  compile_in_time(compiler, &made);
  while (is_late(try_save(&made, &saved), late_compile)) {}
  direction->hold(true);
  ck_assert_error(try_double(compiler, &none), TS_UNAVAILABLE, "the compilation did not end within 20 ms (compile_");
  ck_assert_error(try_load(compiler, &saved, &none), TS_UNAVAILABLE, "loading the program did not end within 20 ms");
  ck_assert_error(try_save(&made, &unsaved), TS_UNAVAILABLE, "saving the program did not end within 20 ms");
  ck_assert_ptr_null(none.program);
  ck_assert_uint_eq(unsaved.length, 0);
  p->release_program(made.program); /* it is still being saved */
  direction->hold(false);
  compile_in_time(compiler, &made);
  p->release_program(made.program);
  ts_text_deinit(&saved);
  ts_text_deinit(&unsaved);
  p->close(compiler);
}
END_TEST

static ts_status try_place_as(void *compiler, const ts_shape *shape, void **out) {
  end e = {0};
  ts_placement where = placement(compiler, 0);
  where.shape = shape;
  p->from_host(&where, (const float[]){1, 2, 3}, out, DONE(&e));
  return wait_for(&e);
}

/* A copy to the same device and a run with an argument of another shape call the compiler for a reshape. A second
 * operation waits for the first one's call. */
START_TEST(reshapes_have_the_deadline_of_compiling)
{
  static const char late_reshape[] = "the compilation of a reshape did not end within 20 ms (compile_timeout)";
  static const ts_shape line = {.rank = 2, .dims = {1, 3}};
  void *compiler = open_compiler(), *memory = NULL, *other = NULL, *made = NULL, *result = NULL;
  ts_program doubled = {0};
  float out[3];
  compile_in_time(compiler, &doubled);
  ck_assert_ok(try_place(compiler, &memory));
  ck_assert_ok(try_place_as(compiler, &line, &other));
  direction->hold(true);
  ck_assert_error(try_copy(compiler, memory, 0, &made), TS_UNAVAILABLE, late_reshape);
  ck_assert_error(try_run_with(compiler, &doubled, &other, (ts_bits){0}, &result), TS_UNAVAILABLE, late_reshape);
  ck_assert_error(try_copy(compiler, memory, 0, &made), TS_UNAVAILABLE, late_reshape);
  ck_assert_ptr_null(made);
  ck_assert_ptr_null(result);
  direction->hold(false);
  while (is_late(try_run_with(compiler, &doubled, &other, (ts_bits){0}, &result), late_reshape)) {}
  while (is_late(try_copy(compiler, result, 0, &made), late_reshape)) {}
  ck_assert_ok(try_read(made, 12, out));
  ck_assert_float_eq(out[2], 6);
  p->release_memory(memory);
  p->release_memory(other);
  p->release_memory(made);
  p->release_memory(result);
  p->release_program(doubled.program);
  p->close(compiler);
}
END_TEST

/* The deadline of the compiler is that of its call only: a run after it may take longer. */
START_TEST(what_follows_a_reshape_has_no_deadline_of_compiling)
{
  void *compiler = open_compiler(), *memory = NULL, *made = NULL;
  end e = {0};
  ts_placement where = placement(compiler, 0);
  ck_assert_ok(try_place(compiler, &memory));
  while (is_late(try_copy(compiler, memory, 0, &made), "(compile_timeout)")) {}
  p->release_memory(made);
  direction->stall(true);
  p->copy(memory, &where, &made, DONE(&e));
  nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
  ck_assert_int_eq(atomic_load(&e.times), 0);
  direction->stall(false);
  ck_assert_ok(wait_for(&e));
  p->release_memory(made);
  p->release_memory(memory);
  p->close(compiler);
}
END_TEST

START_TEST(a_late_compilation_outlives_its_client)
{
  void *compiler = open_compiler();
  ts_program none = {0};
  direction->hold(true);
  ck_assert_error(try_double(compiler, &none), TS_UNAVAILABLE, late_compile);
  p->close(compiler);
  direction->hold(false);
}
END_TEST

/* As for runs: then it refuses more, and another client works. */
START_TEST(a_client_has_few_late_compilations)
{
  void *compiler = open_compiler();
  ts_program none = {0}, made = {0};
  direction->hold(true);
  int tries = 0;
  while (!is_refused(try_double(compiler, &none), late_compile)) ck_assert_int_lt(tries++, 1000);
  ck_assert_int_ge(tries, PJ_MOST_LATE);
  void *memory = place(), *result = NULL;
  while (again(try_run(memory, &result))) {}
  p->release_memory(result);
  p->release_memory(memory);
  direction->hold(false);
  while (is_late(try_double(compiler, &made), "not end")) {} /* until the late ones have ended */
  p->release_program(made.program);
  p->close(compiler);
}
END_TEST

START_TEST(compiling_without_memory)
{
  void *compiler = open_compiler();
  ts_program made = {0};
  ts_text saved = {0};
  compile_in_time(compiler, &made);
  while (is_late(try_save(&made, &saved), late_compile)) {}
  p->release_program(made.program);
  for (int64_t n = 1; n < 2000; n++) {
    ts_program loaded = {0};
    made = (ts_program){0};
    ts_alloc_fail_after(n, false);
    ts_status status = try_double(compiler, &made);
    if (!status) status = try_load(compiler, &saved, &loaded);
    bool failed = ts_alloc_failures() > 0;
    ts_alloc_fail_after(0, false);
    ts_status_free(status);
    if (made.program) p->release_program(made.program);
    if (loaded.program) p->release_program(loaded.program);
    if (!failed) break;
  }
  ts_text_deinit(&saved);
  p->close(compiler);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pjrt_late");
  TCase *cases = tcase_create("pjrt_late");
  tcase_set_timeout(cases, 120);
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_loop_test(cases, each_operation_has_a_deadline, 0, 2);
  tcase_add_test(cases, views_and_addresses_have_a_deadline);
  tcase_add_loop_test(cases, a_late_operation_outlives_its_client, 0, 2);
  tcase_add_loop_test(cases, a_client_has_few_late_operations, 0, 2);
  tcase_add_test(cases, without_memory);
  tcase_add_test(cases, compiling_has_a_deadline);
  tcase_add_test(cases, reshapes_have_the_deadline_of_compiling);
  tcase_add_test(cases, what_follows_a_reshape_has_no_deadline_of_compiling);
  tcase_add_test(cases, a_late_compilation_outlives_its_client);
  tcase_add_test(cases, a_client_has_few_late_compilations);
  tcase_add_test(cases, compiling_without_memory);
  suite_add_tcase(suite, cases);
  return testing_run(suite);
}
