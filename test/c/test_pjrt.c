/* The client of plugins (c_src/pjrt), with the plugin of the tests (test/pjrt/plugin.c) and with wrong files.
 * Requirements for any platform are in test_platform, which also runs this one. */
#include "device/device.h"
#include "jit/jit.h"
#include "pjrt/pjrt.h"
#include "pjrt_direct.h"
#include "pjrt_file.h"
#include "tensors.h"
#include "testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static ts_graph *sum; /* not made where allocations fail */

static void set_up(void) {
  static const char text[] = "graph @main(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3]) {\n"
                             "  %2 = add %0, %1 : f32[3]\n  return %2, %0\n}\n";
  ck_assert_ok(ts_graph_parse(text, strlen(text), &sum));
  direct_begin();
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""}); /* all is compiled */
}

static void tear_down(void) { ts_graph_destroy(sum); }

/* ---- opening */

static ts_status open_with(const char *name, const ts_setting *items, size_t count, ts_client **out) {
  ts_client_options options = {
      .platform = &ts_platform_pjrt, .memory_limit = -1, .threads = -1, .settings = {items, count}};
  return ts_client_open(name, &options, out);
}

static ts_status open_file(const char *path) {
  ts_client *client;
  return open_with("file", &(ts_setting){.name = "plugin_path", .text = path}, 1, &client);
}

static ts_status open_wrong(const char *name) {
  char file[64];
  snprintf(file, sizeof file, "pjrt_%s.so", name);
  return open_file(test_pjrt_file(file));
}

START_TEST(files_that_are_no_plugins)
{
  ck_assert_error(open_file("/nowhere/plugin.so"), TS_UNAVAILABLE, "/nowhere/plugin.so: there is no such file");
  ck_assert_error(open_file("/"), TS_INVALID_ARGUMENT, "is a folder, not a file");
  ck_assert_error(open_file(__FILE__), TS_INVALID_ARGUMENT, "not a shared object");
  ck_assert_error(open_wrong("SYMBOL"), TS_INVALID_ARGUMENT, "is no plugin of PJRT: it has no symbol GetPjrtApi");
  ck_assert_error(open_wrong("NOTHING"), TS_UNAVAILABLE, "gives no table of functions");
  ck_assert_error(open_wrong("TINY"), TS_INVALID_ARGUMENT, "has a table of 16 bytes, which has no version");
  ck_assert_error(open_wrong("MAJOR"), TS_UNIMPLEMENTED, "has version 1.120 of PJRT, 0.81 to 0.* are known");
  ck_assert_error(open_wrong("OLD"), TS_UNIMPLEMENTED, "has version 0.80 of PJRT");
  ck_assert_error(open_wrong("SHORT"), TS_INVALID_ARGUMENT, "has a table of 784 bytes, expected at least 792");
  ck_assert_error(open_wrong("NOERRORS"), TS_INVALID_ARGUMENT, "has no functions for errors");
  ck_assert_error(open_wrong("BEGINS"), TS_FAILED_PRECONDITION, "PJRT_Plugin_Initialize: it will not begin");
}
END_TEST

START_TEST(options_of_clients)
{
  ts_client *client;
  int64_t live = direction->live();
  const ts_setting unknown = {.name = "colour", .text = "red"};
  const ts_setting wrong_type = {.name = "devices", .kind = TS_SETTING_FLOAT, .number = 2};
  const ts_setting no_text = {.name = "plugin_path", .kind = TS_SETTING_INTEGER, .integer = 2};
  const ts_setting all[] = {{.name = "devices", .kind = TS_SETTING_INTEGER, .integer = 3},
                            {.name = "memory_fraction", .kind = TS_SETTING_FLOAT, .number = 0.5},
                            {.name = "preallocate", .kind = TS_SETTING_BOOLEAN, .integer = 1},
                            {.name = "manner", .kind = TS_SETTING_TEXT, .text = "inline"}};
  ts_client_options many = {.platform = &ts_platform_pjrt, .device_count = 5, .memory_limit = -1, .threads = -1};
  ck_assert_error(open_with("options", &unknown, 1, &client), TS_INVALID_ARGUMENT,
                  "PJRT_Client_Create: unexpected option colour");
  ck_assert_error(open_with("options", &wrong_type, 1, &client), TS_INVALID_ARGUMENT, "unexpected option devices");
  ck_assert_error(open_with("options", &no_text, 1, &client), TS_INVALID_ARGUMENT, "plugin_path: expected the path");
  ck_assert_error(ts_client_open("options", &many, &client), TS_INVALID_ARGUMENT, "has 4 devices, got 5");
  unsetenv("TESSERA_PJRT_PLUGIN");
  ck_assert_error(open_with("options", NULL, 0, &client), TS_INVALID_ARGUMENT, "needs the option plugin_path");
  test_pjrt_use();
  ck_assert_ok(open_with("options", all, 4, &client));
  ck_assert_int_eq(client->device_count, 3);
  ck_assert_ok(ts_client_close(client));
  while (direction->live() > live) sched_yield();
}
END_TEST

/* ---- the table, called directly */

static ts_status try_compile(void *client, ts_program *out) { return try_compile_graph(client, sum, out); }

static ts_status try_run(void *client, const ts_program *program, void *memory, void **results) {
  void *args[] = {memory, memory};
  return try_run_with(client, program, args, (ts_bits){0}, results);
}

/* All that a client does, which ends at the first error. Leaves nothing. */
static ts_status try_all_with(void *client, ts_program *program, ts_program *loaded, void **memory, void **results) {
  float out[3] = {0};
  end e = {0};
  ts_text saved = {0};
  TS_TRY(try_compile(client, program));
  p->save(program->program, &saved, DONE(&e));
  ts_status status = wait_for(&e);
  if (!status) {
    p->load(client, &(ts_saved_program){saved.data, saved.length}, loaded, DONE(&e));
    status = wait_for(&e);
  }
  ts_text_deinit(&saved);
  if (status) return status;
  TS_TRY(try_place(client, &memory[0]));
  TS_TRY(try_copy(client, memory[0], 1, &memory[1]));
  TS_TRY(try_copy(client, memory[0], 0, &memory[2]));
  TS_TRY(try_run(client, loaded, memory[0], results));
  TS_TRY(try_read(results[0], 12, out));
  if (out[0] != 2 || out[1] != 4 || out[2] != 6) return ts_error(TS_INTERNAL, "wrong sums");
  TS_TRY(try_read(memory[1], 8, out));
  TS_TRY(try_read(memory[2], 12, out));
  return out[0] == 1 && out[2] == 3 ? TS_SUCCESS : ts_error(TS_INTERNAL, "wrong copy");
}

static ts_status try_all(void) {
  ts_program program = {0}, loaded = {0};
  void *client, *memory[3] = {0}, *results[2] = {0};
  TS_TRY(try_open(&client));
  ts_status status = try_all_with(client, &program, &loaded, memory, results);
  for (int i = 0; i < 3; i++)
    if (memory[i]) p->release_memory(memory[i]);
  for (int i = 0; i < 2; i++)
    if (results[i]) p->release_memory(results[i]);
  if (program.program) p->release_program(program.program);
  if (loaded.program) p->release_program(loaded.program);
  p->close(client);
  return status;
}

START_TEST(all_is_released)
{
  direction->set_manner(manners[_i]);
  for (int i = 0; i < 20; i++) {
    ck_assert_ok(try_all());
    wait_until_live(0);
  }
  ck_assert_int_eq(direction->wrong(), 0);
}
END_TEST

/* 10^5 where all cases are asked for. The device's operations end in any order, and some after the buffer's release. */
START_TEST(many_buffers)
{
  const int count = testing_every_case() ? 100000 : 10000;
  ts_memory_stats stats;
  void *client, *memory, *copy;
  direction->set_manner(TEST_MIXED);
  ck_assert_ok(try_open(&client));
  for (int i = 0; i < count; i++) {
    ck_assert_ok(try_place(client, &memory));
    if (i % 16 == 0) {
      ck_assert_ok(try_copy(client, memory, i / 16 % 4, &copy));
      p->release_memory(copy);
    }
    p->release_memory(memory);
  }
  p->get_memory(client, &stats);
  ck_assert_int_ge(stats.allocations, count);
  ck_assert_int_le(stats.live, 12 * 64); /* of the last ones, which threads release */
  p->close(client);
  wait_until_live(0);
  ck_assert_int_eq(direction->wrong(), 0);
}
END_TEST

/* Those whose errors mean nothing to the client. */
static bool destroys(pj_function f) {
  return f == PJ_EVENT_DESTROY || f == PJ_CLIENT_DESTROY || f == PJ_EXECUTABLE_DESTROY || f == PJ_LOADED_DESTROY ||
         f == PJ_BUFFER_DESTROY || f == PJ_BUFFER_IS_ON_CPU || f == PJ_DEVICE_MEMORY || f == PJ_DEVICE_DESCRIPTION ||
         f == PJ_DESCRIPTION_KIND;
}

static const pj_function functions[] = {
#define FUNCTION(place, id, name) PJ_##id,
    PJ_FUNCTIONS(FUNCTION)
#undef FUNCTION
};
static const char *const names[] = {
#define FUNCTION(place, id, name) name,
    PJ_FUNCTIONS(FUNCTION)
#undef FUNCTION
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Functions that a client can replace by another way to wait for an event. */
static bool asks(pj_function f) { return f == PJ_EVENT_IS_READY || f == PJ_EVENT_ON_READY || f == PJ_EVENT_AWAIT; }

START_TEST(events_that_cannot_be_asked)
{
  for (size_t m = 0; m < 3 * 20; m++) {
    direction->set_manner(manners[m % 3]);
    direction->fail_after(PJ_EVENT_IS_READY, (int64_t)m / 3);
    direction->fail_after(PJ_EVENT_ON_READY, (int64_t)m / 6);
    ck_assert_ok(try_all());
    wait_until_live(0);
  }
  ck_assert_int_gt(direction->calls(PJ_EVENT_AWAIT), 0);
  ck_assert_int_eq(direction->wrong(), 0);
}
END_TEST

/* Each function fails at its first call, its second, and so on: the error says which, and nothing is left. */
START_TEST(each_function_may_fail)
{
  pj_function f = functions[_i];
  if (asks(f)) return;
  for (size_t m = 0; m < 3 && !destroys(f) && f != PJ_INITIALIZE; m++) {
    direction->set_manner(manners[m]);
    for (int64_t n = 0;; n++) {
      int64_t before = direction->calls(f);
      direction->fail_after(f, n);
      ts_status status = try_all();
      direction->fail_after(f, -1);
      wait_until_live(0);
      if (!status) {
        ck_assert_int_le(direction->calls(f) - before, n);
        break;
      }
      ck_assert_int_eq(ts_status_code(status), TS_UNAVAILABLE);
      ck_assert_ptr_nonnull(strstr(ts_status_message(status), names[_i]));
      ts_status_free(status);
      ck_assert_int_lt(n, 1000);
    }
  }
  /* Where a buffer has no event, its client may end before it is ready. */
  if (f != PJ_BUFFER_READY) ck_assert_int_eq(direction->wrong(), 0);
}
END_TEST

/* The event of a function ends with an error. */
START_TEST(each_event_may_fail)
{
  static const pj_function with_event[] = {PJ_FROM_HOST, PJ_BUFFER_TO_HOST, PJ_BUFFER_TO_DEVICE, PJ_EXECUTE};
  for (size_t i = 0; i < 4 * 3; i++) {
    int64_t n = 0;
    direction->set_manner(manners[i / 4]);
    for (ts_status status = TS_SUCCESS;; n++) {
      direction->fail_event_after(with_event[i % 4], n);
      status = try_all();
      direction->fail_event_after(with_event[i % 4], -1);
      wait_until_live(0);
      if (!status) break;
      ck_assert_int_eq(ts_status_code(status), TS_UNAVAILABLE);
      ck_assert_ptr_nonnull(strstr(ts_status_message(status), "the plugin failed later"));
      ts_status_free(status);
    }
    ck_assert_int_ge(n, 1);
  }
  ck_assert_int_eq(direction->wrong(), 0);
}
END_TEST

/* An error whose code cannot be read is still one. */
START_TEST(errors_without_a_code)
{
  void *client;
  direction->fail_after(PJ_CLIENT_CREATE, 0);
  direction->fail_after(PJ_ERROR_CODE, 0);
  ck_assert_error(try_open(&client), TS_INTERNAL, "PJRT_Client_Create: the plugin failed at PJRT_Client_Create");
  direction->fail_after(PJ_CLIENT_CREATE, -1);
  direction->fail_after(PJ_ERROR_CODE, -1);
  wait_until_live(0);
}
END_TEST

/* Newer plugins have longer blocks. There is room for that, and beyond it an error. */
START_TEST(blocks_of_newer_plugins)
{
  direction->set_more(64);
  ck_assert_ok(try_all());
  wait_until_live(0);
  direction->set_more(sizeof(pj_args));
  ck_assert_error(try_all(), TS_INVALID_ARGUMENT, "the block is too small");
  direction->set_more(0);
  wait_until_live(0);
}
END_TEST

/* An allocation that fails anywhere is an error of its operation. */
START_TEST(without_memory)
{
  direction->set_manner(TEST_INLINE);
  for (int64_t n = 1; n < 10000; n++) {
    ts_alloc_fail_after(n, false);
    ts_status status = try_all();
    bool failed = ts_alloc_failures() > 0;
    ts_alloc_fail_after(0, false);
    ts_status_free(status);
    wait_until_live(0);
    if (!failed) break;
    ck_assert_int_lt(n, 9999);
  }
}
END_TEST

/* ---- a process that is started again, and does not begin */

/* More operations wait for it than there are threads, and those of another client go on. */
START_TEST(a_restart_that_hangs_holds_no_other_client)
{
  enum { OPERATIONS = 40 };
  static const float numbers[] = {1, 2, 3};
  static end ends[OPERATIONS];
  char file[] = "/tmp/tessera_pjrt_XXXXXX";
  void *again, *other, *memory[OPERATIONS], *mine;
  int opened = mkstemp(file);
  ck_assert_int_ge(opened, 0);
  close(opened);
  unlink(file);
  const ts_setting options[] = {{.name = "isolated", .kind = TS_SETTING_BOOLEAN, .integer = 1},
                                {.name = "abort_at", .kind = TS_SETTING_INTEGER, .integer = 1},
                                {.name = "waits_for", .kind = TS_SETTING_TEXT, .text = file}};
  ck_assert_ok(try_open_with(options, 3, &again));
  ck_assert_ok(try_open(&other));
  ck_assert_error(try_place(again, &mine), TS_UNAVAILABLE, "signal 6");
  opened = open(file, O_CREAT | O_WRONLY, 0600);
  ck_assert_int_ge(opened, 0);
  close(opened);
  ts_placement where = placement(again, 0);
  for (int i = 0; i < OPERATIONS; i++) p->from_host(&where, numbers, &memory[i], DONE(&ends[i]));
  ck_assert_ok(try_place(other, &mine));
  p->release_memory(mine);
  for (int i = 0; i < OPERATIONS; i++) ck_assert_int_eq(atomic_load(&ends[i].times), 0);
  unlink(file);
  for (int i = 0; i < OPERATIONS; i++) ts_status_free(wait_for(&ends[i])); /* that process ends as well */
  p->close(again);
  p->close(other);
  wait_until_live(0);
}
END_TEST

/* ---- refused programs and options */

static ts_status compile_text(void *client, const char *source) {
  ts_program program = {0};
  ts_status status = try_compile_text(client, source, &program);
  if (!status) p->release_program(program.program);
  return status;
}

START_TEST(programs_that_are_refused)
{
  void *client;
  ck_assert_ok(try_open(&client));
  ck_assert_error(compile_text(client, "graph @main mesh [5] (%0: f32[3]) -> (f32[3]) {\n"
                                       "  %1 = all_reduce_sum %0 {axes = [0]} : f32[3]\n  return %1\n}\n"),
                  TS_INVALID_ARGUMENT, "the program has 5 partitions, and the plugin has 4 devices");
  ck_assert_error(compile_text(client, "graph @main mesh [2] (%0: f32[3]) -> (f32[3]) {\n  return %0\n}\n"),
                  TS_UNIMPLEMENTED, "this program is not partitioned");
  /* Real plugins end the process at such a size, and at such a constant. The constant is folded here. */
  ck_assert_error(compile_text(client, "graph @main() -> (f64[36028797018963968]) {\n"
                                       "  %0 = iota {axis = 0} : f64[36028797018963968]\n  return %0\n}\n"),
                  TS_RESOURCE_EXHAUSTED, "288230376151711744 bytes, which no device has");
  ck_assert_ok(compile_text(client, "graph @main() -> (s32[]) {\n  %0 = constant 7 : s32[]\n"
                                    "  %1 = constant 0 : s32[]\n  %2 = quotient %0, %1 : s32[]\n  return %2\n}\n"));
  p->close(client);
  wait_until_live(0);
}
END_TEST

/* Without these options of its compiler, XLA's minimum of a NaN may be the other number, and an arctangent garbage: the
 * plugin of the tests refuses such a program. */
START_TEST(compiler_of_cpus)
{
  void *client;
  ck_assert_ok(try_open_with(&on_a_cpu, 1, &client));
  ck_assert_ok(compile_text(client, "graph @main(%0: f32[3]) -> (f32[3]) {\n  %1 = negate %0 : f32[3]\n"
                                    "  return %1\n}\n"));
  ck_assert_ok(compile_text(client, "graph @main(%0: bf16[3], %1: f64[3]) -> (bf16[3], f64[3]) {\n"
                                    "  %2 = atan %0 : bf16[3]\n  %3 = atan2 %1, %1 : f64[3]\n"
                                    "  return %2, %3\n}\n"));
  ck_assert_ok(compile_text(client, "graph @main(%0: c64[3]) -> (c64[3]) {\n  %1 = log %0 : c64[3]\n"
                                    "  return %1\n}\n"));
  p->close(client);
  wait_until_live(0);
}
END_TEST

/* How often the text that the plugin gets has that precision. */
static int count_precisions(void *client, const char *source, ts_precision precision, const char *printed) {
  ts_graph *graph;
  ts_program program;
  end e = {0};
  int count = 0;
  ck_assert_ok(ts_graph_parse(source, strlen(source), &graph));
  p->compile(client, graph, &(ts_program_options){.precision = precision}, &program, DONE(&e));
  ck_assert_ok(wait_for(&e));
  ts_graph_destroy(graph);
  p->release_program(program.program);
  for (const char *at = direction->text(); (at = strstr(at, printed)); at++) count++;
  return count;
}

/* The client's, or the program's: twice for a product and twice for a convolution, also of partitions. */
START_TEST(precision_of_products)
{
  static const char *const given[] = {NULL, "highest", "high", "default"};
  static const char *const printed[] = {"<precision HIGHEST>", "<precision HIGHEST>", "<precision HIGH>",
                                        "<precision DEFAULT>"};
  static const char source[] =
      "graph @main(%0: f32[1,4,4,1], %1: f32[2,2,1,1], %2: f32[3,3]) -> (f32[1,3,3,1], f32[3,3]) {\n"
      "  %3 = conv %0, %1 {strides = [1, 1], low = [0, 0], high = [0, 0], input_dilation = [1, 1], "
      "kernel_dilation = [1, 1], groups = 1} : f32[1,3,3,1]\n"
      "  %4 = dot_general %2, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,3]\n"
      "  return %3, %4\n}\n";
  static const char parts[] =
      "graph @main mesh [2] partitioned (%0: f32[3,3]) -> (f32[3,3]) {\n"
      "  %1 = dot_general %0, %0 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,3]\n"
      "  %2 = all_reduce_sum %1 {axes = [0]} : f32[3,3]\n  return %2\n}\n";
  for (int i = 0; i < 4; i++) {
    const ts_setting option = {.name = "precision", .text = given[i]};
    void *client;
    ck_assert_ok(try_open_with(&option, i ? 1 : 0, &client));
    ck_assert_int_eq(count_precisions(client, source, TS_PRECISION_OF_CLIENT, printed[i]), 4);
    ck_assert_int_eq(count_precisions(client, parts, TS_PRECISION_OF_CLIENT, printed[i]), 2);
    for (int own = TS_PRECISION_HIGHEST; own <= TS_PRECISION_DEFAULT; own++) {
      ck_assert_int_eq(count_precisions(client, source, (ts_precision)own, printed[own]), 4);
      ck_assert_int_eq(count_precisions(client, parts, (ts_precision)own, printed[own]), 2);
    }
    p->close(client);
    wait_until_live(0);
  }
  ts_client *client;
  ck_assert_error(open_with("wrong", &(ts_setting){.name = "precision", .text = "most"}, 1, &client),
                  TS_INVALID_ARGUMENT, "precision: expected default, high or highest");
}
END_TEST

START_TEST(saved_programs_of_others)
{
  void *client;
  end e = {0};
  ts_text saved = {0};
  ts_program program, loaded;
  ck_assert_ok(try_open(&client));
  ck_assert_ok(try_compile(client, &program));
  p->save(program.program, &saved, DONE(&e));
  ck_assert_ok(wait_for(&e));
  for (size_t i = 0; i < saved.length; i++) {
    saved.data[i] ^= 4;
    p->load(client, &(ts_saved_program){saved.data, saved.length}, &loaded, DONE(&e));
    ck_assert_error(wait_for(&e), TS_INVALID_ARGUMENT, "");
    saved.data[i] ^= 4;
  }
  for (size_t cut = 0; cut < saved.length; cut++) {
    p->load(client, &(ts_saved_program){saved.data, cut}, &loaded, DONE(&e));
    ck_assert_error(wait_for(&e), TS_INVALID_ARGUMENT, "no saved program");
  }
  ts_text_deinit(&saved);
  p->release_program(program.program);
  p->close(client);
  wait_until_live(0);
}
END_TEST

/* What XLA's CPUs compile wrongly: they move too few bytes of narrow integers between devices, and their atan of bf16
 * is garbage. */
START_TEST(narrow_types_between_devices)
{
  static const ts_setting four = {.name = "devices", .kind = TS_SETTING_INTEGER, .integer = 4};
  void *client;
  ck_assert_ok(try_open_with(&four, 1, &client));
  ck_assert_ok(compile_text(client, "graph @main mesh [2,2] partitioned (%0: s2[4], %1: u4[4]) -> (s2[8], u4[4]) {\n"
                                    "  %2 = all_gather %0 {axes = [1], dim = 0} : s2[8]\n"
                                    "  %3 = collective_permute %1 {axes = [0], sources = [0], targets = [1]} : u4[4]\n"
                                    "  return %2, %3\n}\n"));
  ck_assert_ptr_nonnull(strstr(direction->text(), "(tensor<4xi8>) -> (tensor<8xi8>)"));
  ck_assert_ptr_nonnull(strstr(direction->text(), "(tensor<4xui8>) -> (tensor<4xui8>)"));
  p->close(client);
  wait_until_live(0);
}
END_TEST

/* A program that was loaded is saved with the bytes that it was loaded from. */
START_TEST(saved_once_more)
{
  void *client;
  end e = {0};
  ts_text saved[3] = {{0}};
  ts_program programs[3];
  ck_assert_ok(try_open(&client));
  ck_assert_ok(try_compile(client, &programs[0]));
  for (int i = 0; i < 3; i++) {
    p->save(programs[i].program, &saved[i], DONE(&e));
    ck_assert_ok(wait_for(&e));
    ck_assert(saved[i].length == saved[0].length && memcmp(saved[i].data, saved[0].data, saved[0].length) == 0);
    if (i == 2) break;
    p->load(client, &(ts_saved_program){saved[i].data, saved[i].length}, &programs[i + 1], DONE(&e));
    ck_assert_ok(wait_for(&e));
  }
  for (int i = 0; i < 3; i++) {
    ts_text_deinit(&saved[i]);
    p->release_program(programs[i].program);
  }
  p->close(client);
  wait_until_live(0);
}
END_TEST

/* ---- deadlines */

/* A plugin that does not begin is an error, and others are opened meanwhile. */
START_TEST(opening_has_a_deadline)
{
  ts_client *client;
  char hangs[1024];
  snprintf(hangs, sizeof hangs, "%s", test_pjrt_file("pjrt_HANGS.so"));
  const ts_setting patient[] = {{.name = "plugin_path", .text = hangs},
                                {.name = "open_timeout", .kind = TS_SETTING_INTEGER, .integer = 20},
                                {.name = "isolated", .kind = TS_SETTING_BOOLEAN, .integer = 1}};
  const ts_setting negative = {.name = "open_timeout", .kind = TS_SETTING_INTEGER, .integer = -1};
  for (int i = 0; i < 2; i++)
    ck_assert_error(open_with("hangs", patient, 2, &client), TS_UNAVAILABLE, "did not open within 20 ms");
  ck_assert_error(open_with("hangs", patient, 3, &client), TS_UNAVAILABLE,
                  "did not answer by its deadline (open_timeout)");
  ck_assert_ok(try_all());
  ck_assert_error(open_with("hangs", &negative, 1, &client), TS_INVALID_ARGUMENT,
                  "open_timeout: expected milliseconds");
}
END_TEST

/* A client that opens after the deadline is ended. */
START_TEST(opening_too_late)
{
  ts_client *client;
  const ts_setting soon = {.name = "open_timeout", .kind = TS_SETTING_INTEGER, .integer = 10};
  direction->hold(true);
  ck_assert_error(open_with("late", &soon, 1, &client), TS_UNAVAILABLE, "did not open within 10 ms");
  direction->hold(false);
  while (direction->calls(PJ_CLIENT_DESTROY) == 0) sched_yield();
  wait_until_live(0);
}
END_TEST

/* ---- in a process of its own */

typedef struct isolated {
  ts_setting settings[4];
  size_t count;
} isolated;

static isolated isolated_with(const char *name, int64_t number) {
  isolated i = {{{.name = "isolated", .kind = TS_SETTING_BOOLEAN, .integer = 1},
                 {.name = name, .kind = TS_SETTING_INTEGER, .integer = number}},
                name ? 2 : 1};
  return i;
}

static ts_status open_isolated(const isolated *i, void **out) { return try_open_with(i->settings, i->count, out); }

START_TEST(isolated_plugin)
{
  static const char *const manner[] = {"inline", "late", "mixed"};
  isolated i = isolated_with(NULL, 0);
  i.settings[i.count++] = (ts_setting){.name = "manner", .text = manner[_i]};
  for (int n = 0; n < 5; n++) {
    void *client, *memory[3] = {0}, *results[2] = {0};
    ts_program program = {0}, loaded = {0};
    ck_assert_ok(open_isolated(&i, &client));
    ck_assert_ok(try_all_with(client, &program, &loaded, memory, results));
    for (int m = 0; m < 3; m++) p->release_memory(memory[m]);
    for (int m = 0; m < 2; m++) p->release_memory(results[m]);
    p->release_program(program.program);
    p->release_program(loaded.program);
    p->close(client);
  }
  ck_assert_int_eq(direction->live(), 0); /* Of this process. */
}
END_TEST

enum { LARGE = 3 << 18 }; /* Numbers, more than a message takes. */

START_TEST(isolated_shared_memory)
{
  isolated i = isolated_with(NULL, 0);
  void *client, *memory;
  float *numbers, *read;
  ts_shape shape = {1, {LARGE}};
  ck_assert_ok(open_isolated(&i, &client));
  ck_assert_ok(TS_NEW_ARRAY(LARGE, &numbers));
  ck_assert_ok(TS_NEW_ARRAY(LARGE, &read));
  for (int n = 0; n < LARGE; n++) numbers[n] = (float)n;
  for (int n = 0; n < 3; n++) {
    end e = {0};
    ts_placement where = {.client = client, .dtype = TS_F32, .shape = &shape, .bytes = 4 * LARGE};
    p->from_host(&where, numbers, &memory, DONE(&e));
    ck_assert_ok(wait_for(&e));
    ck_assert_ok(try_read(memory, 4 * LARGE, read));
    ck_assert_mem_eq(read, numbers, 4 * LARGE);
    p->release_memory(memory);
  }
  ts_free(numbers);
  ts_free(read);
  p->close(client);
}
END_TEST

/* The process ends at an operation, and the operation has an error. Tensors of the process are lost. The next operation
 * has another process, and the program is compiled again for it. */
static void check_end(const char *option, int64_t timeout, const char *expected) {
  isolated i = isolated_with(option, 2);
  void *client, *lost, *memory, *results[2] = {0};
  float out[3];
  ts_program program;
  i.settings[i.count++] = (ts_setting){.name = "timeout", .kind = TS_SETTING_INTEGER, .integer = timeout};
  ck_assert_ok(open_isolated(&i, &client));
  ck_assert_ok(try_compile(client, &program));
  ck_assert_ok(try_place(client, &lost));
  ck_assert_error(try_run(client, &program, lost, results), TS_UNAVAILABLE, expected);
  ck_assert_error(try_read(lost, 12, out), TS_UNAVAILABLE, expected);
  ck_assert_ok(try_place(client, &memory));
  ck_assert_error(try_run(client, &program, lost, results), TS_UNAVAILABLE, "was in a process of the plugin that");
  ck_assert_error(try_run(client, &program, memory, results), TS_UNAVAILABLE, expected);
  p->release_memory(memory);
  p->release_memory(lost);
  p->release_program(program.program);
  p->close(client);
}

START_TEST(isolated_process_ends)
{
  check_end("abort_at", 0, "the process of the plugin has ended with signal 6 (Aborted)");
  check_end("hang_at", 300, "the process of the plugin did not answer by its deadline (timeout), and was ended");
  check_end("never_at", 300, "the process of the plugin did not answer by its deadline (timeout), and was ended");
}
END_TEST

/* The process is ended, and the next operation has another one. */
START_TEST(isolated_compiler_has_a_deadline)
{
  isolated i = isolated_with("compile_timeout", 200);
  void *client, *memory;
  ts_program program;
  i.settings[i.count++] = (ts_setting){.name = "never_compiles", .kind = TS_SETTING_BOOLEAN, .integer = 1};
  ck_assert_ok(open_isolated(&i, &client));
  for (int n = 0; n < 2; n++) {
    ck_assert_ok(try_place(client, &memory));
    ck_assert_error(try_compile(client, &program), TS_UNAVAILABLE,
                    "the process of the plugin did not answer by its deadline (compile_timeout), and was ended");
    p->release_memory(memory);
  }
  p->close(client);
}
END_TEST

/* A process that the plugin has started has its socket, and does not end with it. */
START_TEST(isolated_process_leaves_another)
{
  isolated i = isolated_with("abort_at", 2);
  void *client, *memory;
  float out[3];
  i.settings[i.count++] = (ts_setting){.name = "leaves", .kind = TS_SETTING_BOOLEAN, .integer = 1};
  ck_assert_ok(open_isolated(&i, &client));
  for (int n = 0; n < 3; n++) {
    ck_assert_ok(try_place(client, &memory));
    ck_assert_error(try_read(memory, 12, out), TS_UNAVAILABLE, "has ended with signal 6 (Aborted)");
    p->release_memory(memory);
  }
  p->close(client);
}
END_TEST

/* A key of the terminal interrupts the processes of a group. */
START_TEST(isolated_process_is_not_interrupted)
{
  isolated i = isolated_with(NULL, 0);
  void *client, *memory;
  float out[3];
  (void)setpgid(0, 0);
  ck_assert_ok(open_isolated(&i, &client));
  ck_assert_ok(try_place(client, &memory));
  signal(SIGINT, SIG_IGN);
  ck_assert_int_eq(kill(0, SIGINT), 0);
  ck_assert_ok(try_read(memory, 12, out));
  ck_assert_float_eq(out[2], 3);
  p->release_memory(memory);
  p->close(client);
}
END_TEST

/* Once more with a process that ends later. */
START_TEST(isolated_program_goes_on)
{
  isolated i = isolated_with("abort_at", 4);
  void *client, *memory, *results[2] = {0};
  float out[3];
  ts_program program, loaded;
  ts_text saved = {0};
  end e = {0};
  ck_assert_ok(open_isolated(&i, &client));
  ck_assert_ok(try_compile(client, &program));
  p->save(program.program, &saved, DONE(&e));
  ck_assert_ok(wait_for(&e));
  p->load(client, &(ts_saved_program){saved.data, saved.length}, &loaded, DONE(&e));
  ck_assert_ok(wait_for(&e));
  ts_text_deinit(&saved);
  for (int n = 0; n < 6; n++) { /* operations 1 to 3, and at the fourth the process ends */
    ck_assert_ok(try_place(client, &memory));
    ck_assert_ok(try_run(client, n % 2 ? &program : &loaded, memory, results));
    ck_assert_ok(try_read(results[0], 12, out));
    ck_assert_float_eq(out[2], 6);
    ck_assert_error(try_read(results[1], 12, out), TS_UNAVAILABLE, "signal 6");
    p->release_memory(memory);
    for (int r = 0; r < 2; r++) p->release_memory(results[r]);
  }
  p->release_program(program.program);
  p->release_program(loaded.program);
  p->close(client);
}
END_TEST

static int count_files(void) {
  int count = 0;
  DIR *files = opendir("/proc/self/fd");
  ck_assert_ptr_nonnull(files);
  while (readdir(files)) count++;
  closedir(files);
  return count;
}

/* Of processes that have ended nothing is open, also while a program and a tensor of the first one are held. */
START_TEST(isolated_processes_are_let_go)
{
  isolated i = isolated_with("abort_at", 2);
  void *client, *memory, *lost, *results[2];
  ts_program program;
  ck_assert_ok(open_isolated(&i, &client));
  ck_assert_ok(try_compile(client, &program));
  ck_assert_ok(try_place(client, &lost));
  int before = count_files();
  ck_assert_error(try_run(client, &program, lost, results), TS_UNAVAILABLE, "signal 6");
  for (int n = 0; n < 10; n++) {
    ck_assert_ok(try_place(client, &memory));
    ck_assert_error(try_run(client, &program, memory, results), TS_UNAVAILABLE, "signal 6");
    p->release_memory(memory);
  }
  while (count_files() > before) sched_yield();
  p->release_memory(lost);
  p->release_program(program.program);
  p->close(client);
}
END_TEST

/* Another process cannot be started, and later it can. */
START_TEST(isolated_process_cannot_follow)
{
  char dir[] = "/tmp/tessera-test-XXXXXX", file[64];
  isolated i = isolated_with("abort_at", 2);
  void *client, *lost, *memory;
  float out[3];
  ck_assert_ptr_nonnull(mkdtemp(dir));
  snprintf(file, sizeof file, "%s/plugin.so", dir);
  ck_assert_int_eq(symlink(test_pjrt_file("pjrt_test.so"), file), 0);
  i.settings[i.count++] = (ts_setting){.name = "plugin_path", .text = file};
  ck_assert_ok(open_isolated(&i, &client));
  ck_assert_ok(try_place(client, &lost));
  ck_assert_error(try_read(lost, 12, out), TS_UNAVAILABLE, "signal 6");
  ck_assert_int_eq(unlink(file), 0);
  for (int n = 0; n < 3; n++) ck_assert_error(try_place(client, &memory), TS_UNAVAILABLE, "there is no such file");
  p->release_memory(lost);
  ck_assert_error(try_place(client, &memory), TS_UNAVAILABLE, "there is no such file");
  ck_assert_int_eq(symlink(test_pjrt_file("pjrt_test.so"), file), 0);
  ck_assert_ok(try_place(client, &memory));
  p->release_memory(memory);
  p->close(client);
  ck_assert_int_eq(unlink(file), 0);
  ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* ---- the disk cache */

/* Opens a client, compiles and runs the program. */
static void compile_once(bool isolated_one) {
  ts_program program;
  void *client, *memory, *results[2];
  float out[3];
  isolated apart = isolated_with(NULL, 0);
  ck_assert_ok(isolated_one ? open_isolated(&apart, &client) : try_open(&client));
  ck_assert_ok(try_compile(client, &program));
  ck_assert_ok(try_place(client, &memory));
  ck_assert_ok(try_run(client, &program, memory, results));
  ck_assert_ok(try_read(results[0], 12, out));
  ck_assert_float_eq(out[2], 6);
  p->release_memory(memory);
  for (int i = 0; i < 2; i++) p->release_memory(results[i]);
  p->release_program(program.program);
  p->close(client);
  wait_until_live(0);
}

/* A second start compiles nothing, in either process. What cannot be loaded is compiled. */
START_TEST(programs_on_disk)
{
  char dir[] = "/tmp/tessera-test-XXXXXX", command[128];
  ck_assert_ptr_nonnull(mkdtemp(dir));
  ts_jit_configure(&(ts_jit_options){.cache_dir = dir});
  compile_once(false);
  ck_assert_int_eq(direction->calls(PJ_COMPILE), 1);
  for (int i = 0; i < 3; i++) compile_once(i == 1);
  ck_assert_int_eq(direction->calls(PJ_COMPILE), 1);
  ck_assert_int_eq(direction->calls(PJ_LOAD), 2);
  direction->fail_after(PJ_LOAD, 0);
  compile_once(false);
  direction->fail_after(PJ_LOAD, -1);
  ck_assert_int_eq(direction->calls(PJ_COMPILE), 2);
  for (int bytes = 0; bytes < 500; bytes += 83) { /* a file that is cut */
    snprintf(command, sizeof command, "find %s -type f -exec truncate -s %d {} +", dir, bytes);
    ck_assert_int_eq(system(command), 0);
    int64_t compiled = direction->calls(PJ_COMPILE);
    for (int i = 0; i < 2; i++) compile_once(false);
    ck_assert_int_eq(direction->calls(PJ_COMPILE), compiled + 1);
  }
  snprintf(command, sizeof command, "rm -r %s", dir);
  ck_assert_int_eq(system(command), 0);
}
END_TEST

/* ---- many at a time */

static void *call_all(void *unused) {
  for (int i = 0; i < 10; i++) ck_assert_ok(try_all());
  return unused;
}

START_TEST(clients_of_many_threads)
{
  pthread_t threads[8];
  direction->set_manner(TEST_MIXED);
  for (int i = 0; i < 8; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, call_all, NULL), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  wait_until_live(0);
  ck_assert_int_eq(direction->wrong(), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pjrt");
  TCase *cases = tcase_create("pjrt");
  tcase_set_timeout(cases, 120);
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_test(cases, files_that_are_no_plugins);
  tcase_add_test(cases, options_of_clients);
  tcase_add_loop_test(cases, all_is_released, 0, 3);
  tcase_add_test(cases, many_buffers);
  tcase_add_test(cases, events_that_cannot_be_asked);
  tcase_add_loop_test(cases, each_function_may_fail, 0, FUNCTIONS);
  tcase_add_test(cases, each_event_may_fail);
  tcase_add_test(cases, errors_without_a_code);
  tcase_add_test(cases, blocks_of_newer_plugins);
  tcase_add_test(cases, without_memory);
  tcase_add_test(cases, a_restart_that_hangs_holds_no_other_client);
  tcase_add_test(cases, programs_that_are_refused);
  tcase_add_test(cases, compiler_of_cpus);
  tcase_add_test(cases, precision_of_products);
  tcase_add_test(cases, narrow_types_between_devices);
  tcase_add_test(cases, saved_programs_of_others);
  tcase_add_test(cases, saved_once_more);
  tcase_add_test(cases, clients_of_many_threads);
  tcase_add_test(cases, opening_has_a_deadline);
  tcase_add_test(cases, opening_too_late);
  tcase_add_loop_test(cases, isolated_plugin, 0, 3);
  tcase_add_test(cases, isolated_shared_memory);
  tcase_add_test(cases, programs_on_disk);
  tcase_add_test(cases, isolated_process_ends);
  tcase_add_test(cases, isolated_compiler_has_a_deadline);
  tcase_add_test(cases, isolated_process_leaves_another);
  tcase_add_test(cases, isolated_process_is_not_interrupted);
  tcase_add_test(cases, isolated_program_goes_on);
  tcase_add_test(cases, isolated_processes_are_let_go);
  tcase_add_test(cases, isolated_process_cannot_follow);
  suite_add_tcase(suite, cases);
  return testing_run(suite);
}
