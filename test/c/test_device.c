/* Clients and devices: several clients of the host with memory of their own, and a platform whose buffers the host
 * cannot read. Programs have the same bits on it. */
#include "async_device.h"
#include "device/device.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include <pthread.h>

enum { DEFAULT_COUNT = 120 };

static ts_client *open_client(const char *name, const ts_platform *platform, int32_t devices, int64_t limit) {
  ts_client *client;
  ts_client_options options = {.platform = platform, .device_count = devices, .memory_limit = limit};
  ck_assert_ok(ts_client_open(name, &options, &client));
  return client;
}

static ts_device *device_of(ts_client *client, int64_t id) {
  ts_device *device;
  ck_assert_ok(ts_client_device(client, id, &device));
  return device;
}

static ts_device *async_device(void) { return device_of(open_client("async", &test_async, 2, -1), 1); }
static ts_device *other_device(void) { return device_of(open_client("other", &test_async, 1, -1), 0); }

static ts_loaded *load(ts_client *client, const char *text) {
  ts_graph *graph;
  ts_loaded *loaded;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_loaded_create(client, graph, NULL, &loaded));
  ts_graph_destroy(graph);
  return loaded;
}

/* Takes the buffer. */
static ts_buffer *put(ts_device *device, ts_buffer *buffer) {
  ts_buffer *copy;
  ck_assert_ok(ts_device_copy(device, buffer, &copy));
  ts_buffer_release(buffer);
  ck_assert_ptr_eq(copy->device, device);
  return copy;
}

/* Takes the buffer. */
static ts_buffer *get(ts_buffer *buffer) {
  ts_buffer *host;
  ck_assert_ok(ts_device_fetch(buffer, &host));
  ts_buffer_release(buffer);
  return host;
}

static ts_status run(const ts_loaded *loaded, ts_device *device, ts_buffer **args, size_t count, ts_buffer **out) {
  return ts_loaded_run(loaded, (ts_run_args){args, count}, &(ts_run_options){.device = device}, out);
}

/* ---- clients */

START_TEST(the_hosts_client_is_always_there)
{
  ts_client *host = ts_client_host();
  ck_assert_ptr_eq(ts_client_find("host"), host);
  ck_assert_ptr_eq(device_of(host, 0), ts_device_default());
  ck_assert_ptr_eq(ts_client_pool(host), ts_pool_default());
  ck_assert_ptr_null(ts_client_find("nothing"));
}
END_TEST

START_TEST(clients_are_opened_once_and_grow)
{
  ts_client *two = open_client("grows", NULL, 2, -1);
  ck_assert_ptr_eq(open_client("grows", NULL, 0, -1), two);
  ck_assert_int_eq(two->device_count, 2);
  ts_device *second = device_of(two, 1), *none;
  ck_assert_ptr_eq(open_client("grows", NULL, 5, -1), two);
  ck_assert_ptr_eq(device_of(two, 1), second);
  ck_assert_int_eq(device_of(two, 4)->id, 4);
  ck_assert_error(ts_client_device(two, 5, &none), TS_INVALID_ARGUMENT, "client grows has no device 5, it has 5");
  ck_assert_error(ts_client_device(two, -1, &none), TS_INVALID_ARGUMENT, "no device -1");
}
END_TEST

START_TEST(wrong_clients_are_refused)
{
  ts_client *client;
  char longest[TS_CLIENT_NAME_BYTES + 1];
  memset(longest, 'n', sizeof longest);
  longest[TS_CLIENT_NAME_BYTES] = '\0';
  ts_client_options many = {.device_count = TS_MAX_DEVICES + 1}, few = {.device_count = -1}, other = {0};
  ck_assert_error(ts_client_open("wrong", &many, &client), TS_INVALID_ARGUMENT, "expected 1 to 64 devices, got 65");
  ck_assert_error(ts_client_open("wrong", &few, &client), TS_INVALID_ARGUMENT, "got -1");
  ck_assert_error(ts_client_open(longest, &other, &client), TS_INVALID_ARGUMENT, "the name of a client");
  (void)async_device();
  ck_assert_error(ts_client_open("async", &other, &client), TS_INVALID_ARGUMENT, "is open on platform async, not host");
  ck_assert_ptr_null(ts_client_find("wrong"));
}
END_TEST

static void open_with_failures(void) {
  static int opened;
  char name[32];
  ts_client *client;
  snprintf(name, sizeof name, "fails %d", opened);
  ts_client_options options = {.device_count = 3, .memory_limit = 1000};
  ts_status status = ts_client_open(name, &options, &client);
  if (!status) opened++;
  ts_status_free(status);
}

/* Open clients stay, so the blocks of a successful one are not counted. */
START_TEST(a_client_that_cannot_be_opened_leaves_nothing)
{
  for (int64_t n = 1; n < 8; n++) {
    int64_t before = ts_alloc_live();
    bool was_there = ts_client_find("fails 0");
    ts_alloc_fail_after(n, true);
    open_with_failures();
    ts_alloc_fail_after(0, false);
    if (was_there || ts_client_find("fails 0")) break;
    ck_assert_int_eq(ts_alloc_live(), before);
  }
  ck_assert_ptr_nonnull(ts_client_find("fails 0"));
}
END_TEST

/* ---- memory */

START_TEST(a_client_with_a_limit_has_memory_of_its_own)
{
  ts_memory_stats mine, host;
  ts_client *client = open_client("limited", NULL, 2, 1 << 20), *sharing = open_client("sharing", NULL, 1, -1);
  ts_buffer *fits, *no;
  ts_shape half = SHAPE(1 << 19), whole = SHAPE(1 << 20);
  ck_assert_ptr_ne(ts_client_pool(client), ts_pool_default());
  ck_assert_ptr_eq(ts_client_pool(sharing), ts_pool_default());
  ck_assert_ok(ts_device_stage(device_of(client, 0), TS_U8, &half, &fits));
  ck_assert_error(ts_device_stage(device_of(client, 1), TS_U8, &whole, &no), TS_RESOURCE_EXHAUSTED, "the limit is");
  ck_assert_ok(ts_device_stage(device_of(sharing, 0), TS_U8, &whole, &no));
  ts_buffer_release(no);
  ts_client_get_memory(client, &mine);
  ts_client_get_memory(sharing, &host);
  ck_assert_int_ge(mine.live, 1 << 19);
  ck_assert_int_eq(mine.limit, 1 << 20);
  ck_assert_int_gt(host.limit, 1 << 20);
  ck_assert_ok(ts_client_set_limit(client, 4 << 20));
  ck_assert_ok(ts_device_stage(device_of(client, 1), TS_U8, &whole, &no));
  ts_buffer_release(no);
  ts_buffer_release(fits);
  ts_client_get_memory(client, &mine);
  ck_assert_int_eq(mine.live, 0);
}
END_TEST

static const char add[] =
    "graph @main(%0: f32[1000], %1: f32[1000]) -> (f32[1000]) {\n  %2 = add %0, %1 : f32[1000]\n  return %2\n}\n";

/* Results and workspace of a run are in the memory of its device's client. */
START_TEST(a_run_uses_the_memory_of_its_client)
{
  ts_client *client = open_client("runs", NULL, 2, 6000);
  ts_loaded *loaded = load(ts_client_host(), add);
  ts_buffer *arg, *out[3];
  ts_shape shape = SHAPE(1000);
  ts_memory_stats stats;
  ck_assert_ok(ts_device_stage(ts_device_default(), TS_F32, &shape, &arg));
  memset(arg->data, 0, 4000);
  ts_buffer *args[] = {arg, arg};
  ck_assert_ok(run(loaded, device_of(client, 1), args, 2, &out[0]));
  ck_assert_ptr_eq(out[0]->device, device_of(client, 1));
  ts_client_get_memory(client, &stats);
  ck_assert_int_ge(stats.live, 4000);
  ck_assert_error(run(loaded, device_of(client, 0), args, 2, &out[1]), TS_RESOURCE_EXHAUSTED,
                  "the limit is 6000 bytes");
  ck_assert_ok(run(loaded, NULL, args, 2, &out[1])); /* where its arguments are */
  ck_assert_ptr_eq(out[1]->device, ts_device_default());
  ts_buffer *there[] = {out[1], out[0]};
  ck_assert_ok(run(loaded, NULL, there, 2, &out[2]));
  ck_assert_ptr_eq(out[2]->device, ts_device_default());
  for (int i = 0; i < 3; i++) ts_buffer_release(out[i]);
  ts_buffer_release(arg);
  ts_loaded_release(loaded);
}
END_TEST

/* An argument that is a result is on the device of the run, and a donated argument of another device is not
 * reused. */
START_TEST(results_that_are_arguments_change_their_device)
{
  static const char text[] = "graph @main(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3]) {\n"
                             "  %2 = add %0, %1 : f32[3]\n  return %0, %2\n}\n";
  ts_client *host = open_client("host", NULL, 3, -1);
  ts_device *target = device_of(host, 2);
  ts_loaded *loaded = load(host, text);
  for (uint64_t donated = 0; donated < 4; donated++) {
    ts_buffer *args[] = {put(device_of(host, 0), VECTOR(TS_F32, 1, 2, 3)),
                         put(device_of(host, 1), VECTOR(TS_F32, 4, 5, 6))};
    ts_buffer *out[2];
    ck_assert_ok(ts_loaded_run(loaded, (ts_run_args){args, 2},
                               &(ts_run_options){.device = target, .donated = TS_BITS(donated)}, out));
    for (int i = 0; i < 2; i++) {
      ck_assert_ptr_eq(out[i]->device, target);
      if (!(donated >> i & 1)) ts_buffer_release(args[i]);
    }
    test_equal(out[0], VECTOR(TS_F32, 1, 2, 3));
    test_equal(out[1], VECTOR(TS_F32, 5, 7, 9));
  }
  ts_loaded_release(loaded);
}
END_TEST

START_TEST(accounts_count_each_device)
{
  ts_client *client = open_client("accounts", NULL, 2, -1);
  int64_t all = ts_devices_held();
  ts_device_hold(device_of(client, 0), 1 << 20);
  ts_device_hold(device_of(client, 1), 7);
  ck_assert_int_eq(ts_device_held(device_of(client, 0)), 1 << 20);
  ck_assert_int_eq(ts_device_held(device_of(client, 1)), 7);
  ck_assert_int_eq(ts_devices_held() - all, (1 << 20) + 7);
  ck_assert_int_eq(atomic_load(&client->peak), 1 << 20);
  ts_device_hold(device_of(client, 0), -(1 << 20));
  ts_device_hold(device_of(client, 1), -7);
  ck_assert_int_eq(ts_devices_held(), all);
  ts_client_reset_peak(client);
  ck_assert_int_eq(atomic_load(&client->peak), 0);
}
END_TEST

/* ---- buffers */

START_TEST(views_and_copies)
{
  ts_client *host = open_client("host", NULL, 3, -1), *own = open_client("limited", NULL, 2, 1 << 20);
  ts_buffer *a = put(device_of(host, 0), VECTOR(TS_S32, 1, 2, 3)), *there, *view, *copy, *far;
  ck_assert_ok(ts_device_move(device_of(host, 0), a, &there));
  ck_assert_ok(ts_device_move(device_of(host, 1), a, &view));
  ck_assert_ok(ts_device_move(device_of(own, 1), a, &copy));
  ck_assert_ok(ts_device_move(async_device(), a, &far));
  ck_assert_ptr_eq(there, a);
  ck_assert_ptr_eq(view->data, a->data);
  ck_assert_ptr_ne(copy->data, a->data);
  ck_assert_ptr_null(far->data);
  ck_assert_ptr_eq(view->device, device_of(host, 1));
  ck_assert_ptr_eq(copy->device, device_of(own, 1));
  ck_assert_ptr_eq(far->device, async_device());
  ts_buffer_release(there);
  ts_buffer_release(a);
  test_equal(view, VECTOR(TS_S32, 1, 2, 3));
  test_equal(copy, VECTOR(TS_S32, 1, 2, 3));
  test_equal(get(far), VECTOR(TS_S32, 1, 2, 3));
}
END_TEST

START_TEST(bytes_that_the_host_cannot_read)
{
  void *bytes;
  int32_t first;
  ts_shape square = SHAPE(2, 2);
  ts_buffer *far = put(async_device(), VECTOR(TS_S32, 7, 8, 9, 10)), *alias, *copy;
  ck_assert_error(ts_device_bytes(far, &bytes), TS_ELSEWHERE,
                  "the host cannot read s32[4] on device 1 of client async");
  ck_assert_ok(ts_device_read(far, sizeof first, &first));
  ck_assert_int_eq(first, 7);
  ck_assert_ok(ts_buffer_alias(far, TS_S32, &square, &alias));
  ts_buffer_release(far);
  ck_assert_error(ts_device_bytes(alias, &bytes), TS_ELSEWHERE, "s32[2,2] on device 1 of client async");
  ck_assert_ok(ts_device_copy(other_device(), alias, &copy));
  test_equal(get(alias), TENSOR(TS_S32, SHAPE(2, 2), 7, 8, 9, 10));
  test_equal(get(copy), TENSOR(TS_S32, SHAPE(2, 2), 7, 8, 9, 10));
}
END_TEST

START_TEST(runs_that_mix_devices)
{
  ts_device *far = async_device();
  ts_loaded *here = load(ts_client_host(), add), *there = load(far->client, add);
  ts_shape shape = SHAPE(1000);
  ts_buffer *host, *out;
  ck_assert_ok(ts_device_stage(ts_device_default(), TS_F32, &shape, &host));
  memset(host->data, 0, 4000);
  ts_buffer_retain(host);
  ts_buffer *there_too = put(far, host);
  ts_buffer *args[] = {host, there_too};
  ck_assert_error(run(here, NULL, args, 2, &out), TS_ELSEWHERE,
                  "argument 2: the host cannot read f32[1000] on device 1 of client async");
  ck_assert_error(run(here, far, args, 2, &out), TS_INVALID_ARGUMENT,
                  "a program compiled for client host cannot run on device 1 of client async");
  ck_assert_ok(run(there, NULL, args, 2, &out));
  ck_assert_ptr_eq(out->device, far);
  ts_buffer_release(out);
  ts_buffer *both[] = {host, host};
  ck_assert_ok(run(there, NULL, both, 2, &out));
  ck_assert_ptr_eq(out->device, far->client->devices[0]);
  ts_buffer_release(out);
  ts_buffer_release(there_too);
  ts_buffer_release(host);
  ts_loaded_release(here);
  ts_loaded_release(there);
}
END_TEST

/* ---- programs on a device that the host cannot read */

static void free_buffers(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_release(buffers[i]);
  ts_free(buffers);
}

typedef struct program {
  uint64_t seed;
  ts_graph *graph;
  ts_buffer **args;
  size_t arg_count, result_count;
} program;

static program make_program(uint64_t seed) {
  ts_random_options options = {.max_elements = 2000, .no_library = true};
  program p = {.seed = seed};
  ck_assert_ok(ts_random_graph(seed, &options, &p.graph));
  ck_assert_ok(ts_random_args(seed, p.graph, ts_pool_default(), &p.args));
  p.arg_count = ts_graph_region(p.graph, TS_ROOT)->params.count;
  p.result_count = ts_graph_region(p.graph, TS_ROOT)->results.count;
  return p;
}

static ts_buffer **on_device(const program *p, ts_device *device) {
  ts_buffer **args;
  ck_assert_ok(TS_NEW_ARRAY(p->arg_count, &args));
  for (size_t i = 0; i < p->arg_count; i++) ck_assert_ok(ts_device_copy(device, p->args[i], &args[i]));
  return args;
}

/* At once, or as a resumable run that takes a third of the arguments. */
static ts_buffer **run_on(const program *p, ts_device *device, bool resumable) {
  ts_loaded *loaded;
  ts_buffer **results, **args = on_device(p, device);
  ck_assert_ok(ts_loaded_create(device->client, p->graph, NULL, &loaded));
  ck_assert_ok(TS_NEW_ARRAY(p->result_count, &results));
  ts_run_options options = {.device = device, .donated = TS_BITS(resumable ? UINT64_C(0x9249249249249249) : 0)};
  ts_run_args given = {args, p->arg_count};
  if (resumable) {
    ts_device_run *r;
    ts_run_state state;
    ck_assert_ok(ts_device_run_create(loaded, given, &options, &r));
    ck_assert_ok(ts_device_run_advance(r, &state));
    ck_assert_int_eq(state, TS_RUN_DONE);
    ck_assert_ok(ts_device_run_end(r, results));
  } else {
    ck_assert_ok(ts_loaded_run(loaded, given, &options, results));
  }
  for (size_t i = 0; i < p->arg_count; i++)
    if (!ts_bits_has(options.donated, i)) ts_buffer_release(args[i]);
  ts_free(args);
  ts_loaded_release(loaded);
  return results;
}

static void check_results(const program *p, ts_device *device, ts_buffer **expected, ts_buffer **results) {
  char message[TS_COMPARE_TEXT];
  for (size_t i = 0; i < p->result_count; i++) {
    ck_assert_ptr_eq(results[i]->device, device);
    results[i] = get(results[i]);
    if (!ts_compare_buffers(results[i], expected[i], 0, message))
      ck_abort_msg("seed %llu, result %zu on %s: %s", (unsigned long long)p->seed, i, TS_DEVICE_STR(device), message);
  }
  free_buffers(results, p->result_count);
}

static void check_program(uint64_t seed) {
  program p = make_program(seed);
  ts_device *devices[] = {async_device(), other_device(), device_of(open_client("limited", NULL, 2, 1 << 30), 1)};
  ts_buffer **expected = run_on(&p, ts_device_default(), false);
  for (int i = 0; i < 3; i++)
    for (int resumable = 0; resumable < 2; resumable++)
      check_results(&p, devices[i], expected, run_on(&p, devices[i], resumable));
  free_buffers(expected, p.result_count);
  ts_random_args_free(p.args, p.arg_count);
  ts_graph_destroy(p.graph);
}

START_TEST(random_programs_give_the_same_bits_on_every_platform)
{
  const testing_seeds seeds = testing_random_seeds(DEFAULT_COUNT);
  (void)async_device();
  (void)other_device();
  int64_t before = test_async_live();
  for (uint64_t i = 0; i < seeds.count; i++) check_program(seeds.first + i);
  ck_assert_int_eq(test_async_live(), before);
}
END_TEST

static const char callback[] = "graph @main(%0: f32[3]) -> (f32[3]) {\n"
                               "  %1 = callback %0 {index = 3} {\n    types() {\n      %9 = constant 0.0 : f32[3]\n    "
                               "  return %9\n    }\n  } : f32[3]\n"
                               "  %2 = add %1, %0 : f32[3]\n  return %2\n}\n";

START_TEST(callbacks_with_answers_of_any_device)
{
  ts_device *device = async_device();
  ts_loaded *loaded = load(device->client, callback);
  ts_buffer *arg = put(device, VECTOR(TS_F32, 1, 2, 3)), *out;
  ts_buffer *answers[] = {put(device, VECTOR(TS_F32, 10, 20, 30)),
                          put(ts_device_default(), VECTOR(TS_F32, 10, 20, 30))};
  ck_assert(loaded->calls_back);
  for (int i = 0; i < 2; i++) {
    ts_device_run *r;
    ts_run_state state;
    ts_run_call call;
    ck_assert_ok(ts_device_run_create(loaded, (ts_run_args){&arg, 1}, &(ts_run_options){0}, &r));
    ck_assert_ok(ts_device_run_advance(r, &state));
    ck_assert_int_eq(state, TS_RUN_CALLBACK);
    ts_device_run_get_call(r, &call);
    ck_assert_uint_eq(call.index, 3);
    for (int e = 0; e < 3; e++) ck_assert_float_eq(((const float *)ts_device_run_operand(r, 0))[e], (float)(e + 1));
    ck_assert_ok(ts_device_run_answer(r, &answers[i], 1));
    ck_assert_ok(ts_device_run_advance(r, &state));
    ck_assert_int_eq(state, TS_RUN_DONE);
    ck_assert_ok(ts_device_run_end(r, &out));
    test_equal(get(out), VECTOR(TS_F32, 11, 22, 33));
    ts_buffer_release(answers[i]);
  }
  ts_buffer_release(arg);
  ts_loaded_release(loaded);
}
END_TEST

/* An operation that fails, in turn: nothing is left and the arguments stay the caller's. */
START_TEST(each_operation_of_a_run_may_fail)
{
  static const char text[] = "graph @main(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3]) {\n"
                             "  %2 = add %0, %1 : f32[3]\n  %3 = negate %2 : f32[3]\n  return %2, %3\n}\n";
  static const struct {
    test_async_op op;
    const char *message;
  } ops[] = {{TEST_ASYNC_RUN, "failed at run"},
             {TEST_ASYNC_COPY, "failed at copy"},
             {TEST_ASYNC_FROM_HOST, "failed at from_host"},
             {TEST_ASYNC_TO_HOST, "failed at to_host"}};
  ts_device *here = async_device(), *beside = here->client->devices[0];
  ts_loaded *loaded = load(here->client, text);
  for (int o = 0; o < 4; o++) {
    ts_device *second = o == 1 ? beside : o == 2 ? ts_device_default() : o == 3 ? other_device() : here;
    ts_buffer *args[] = {put(here, VECTOR(TS_F32, 1, 2, 3)), put(second, VECTOR(TS_F32, 4, 5, 6))}, *out[2];
    ts_run_args given = {args, 2};
    int64_t before = test_async_live();
    test_async_fail_after(ops[o].op, 0);
    ck_assert_error(ts_loaded_run(loaded, given, &(ts_run_options){.donated = TS_BITS(3)}, out), TS_UNAVAILABLE,
                    ops[o].message);
    test_async_fail_after(ops[o].op, -1);
    ck_assert_int_eq(test_async_live(), before);
    ck_assert_ok(ts_loaded_run(loaded, given, &(ts_run_options){.donated = TS_BITS(3)}, out));
    test_equal(get(out[0]), VECTOR(TS_F32, 5, 7, 9));
    test_equal(get(out[1]), VECTOR(TS_F32, -5, -7, -9));
  }
  ts_loaded_release(loaded);
}
END_TEST

START_TEST(a_run_that_is_given_up)
{
  ts_device *devices[] = {async_device(), other_device(), ts_device_default()};
  int64_t before = test_async_live();
  for (int d = 0; d < 3; d++) {
    ts_loaded *loaded = load(devices[d]->client, add);
    ts_shape shape = SHAPE(1000);
    ts_buffer *arg, *host;
    ts_device_run *r;
    ts_run_state state;
    ck_assert_ok(ts_buffer_create(ts_pool_default(), TS_F32, &shape, &host));
    memset(host->data, 0, 4000);
    arg = put(devices[d], host);
    ts_buffer *args[] = {arg, arg};
    ck_assert_ok(ts_device_run_create(loaded, (ts_run_args){args, 2}, &(ts_run_options){0}, &r));
    ck_assert_ok(ts_device_run_advance(r, &state));
    ck_assert_ok(ts_device_run_end(r, NULL));
    ts_buffer_release(arg);
    ts_loaded_release(loaded);
  }
  ck_assert_int_eq(test_async_live(), before);
}
END_TEST

/* A callback that is not answered: the device ends the run by itself, and nothing is left. */
START_TEST(a_run_that_is_given_up_in_a_callback)
{
  ts_device *device = async_device();
  ts_loaded *loaded = load(device->client, callback);
  ts_buffer *arg = put(device, VECTOR(TS_F32, 1, 2, 3));
  int64_t before = test_async_live();
  for (int answered = 0; answered < 2; answered++) {
    ts_buffer *answer = put(device, VECTOR(TS_F32, 1, 2, 3));
    ts_device_run *r;
    ts_run_state state;
    ck_assert_ok(ts_device_run_create(loaded, (ts_run_args){&arg, 1}, &(ts_run_options){0}, &r));
    ck_assert_ok(ts_device_run_advance(r, &state));
    ck_assert_int_eq(state, TS_RUN_CALLBACK);
    if (answered) ck_assert_ok(ts_device_run_answer(r, &answer, 1));
    ck_assert_ok(ts_device_run_end(r, NULL));
    ts_buffer_release(answer);
  }
  while (test_async_live() != before) sched_yield();
  ts_buffer_release(arg);
  ts_loaded_release(loaded);
}
END_TEST

/* Such a run has a donated argument in its middle. */
START_TEST(a_donated_argument_of_a_run_that_is_given_up)
{
  ts_device *device = async_device();
  ts_loaded *loaded = load(device->client, callback);
  ts_buffer *arg = put(device, VECTOR(TS_F32, 1, 2, 3)), *copy;
  ts_device_run *r;
  ts_run_state state;
  int64_t before = test_async_live();
  ts_run_options options = {.donated = TS_BITS(1)}; /* outlives the run, which reads its bits */
  ck_assert_ok(ts_device_run_create(loaded, (ts_run_args){&arg, 1}, &options, &r));
  ck_assert_ok(ts_device_run_advance(r, &state));
  ck_assert_int_eq(state, TS_RUN_CALLBACK);
  ck_assert_ok(ts_device_run_end(r, NULL));
  ck_assert_error(ts_device_copy(ts_device_default(), arg, &copy), TS_FAILED_PRECONDITION, "was donated to a run");
  while (test_async_live() != before) sched_yield();
  ts_buffer_release(arg);
  ts_loaded_release(loaded);
}
END_TEST

/* ---- closing */

START_TEST(a_client_is_closed_with_its_last_use)
{
  ts_client *client, *again;
  ts_client_options options = {.platform = &test_async, .device_count = 2, .memory_limit = -1};
  int64_t before = test_async_live();
  ck_assert_ok(ts_client_open("closes", &options, &client));
  ts_device *device = device_of(client, 1), *none;
  ts_loaded *loaded = load(client, add), *no_program;
  ts_buffer *arg = put(device, VECTOR(TS_F32, 1, 2, 3)), *no, *host = VECTOR(TS_F32, 1);
  ts_client_set_default(client);
  ck_assert_ptr_eq(ts_device_default(), device_of(client, 0));
  ck_assert_ok(ts_client_close(client));
  ck_assert_ok(ts_client_close(client));
  ck_assert_ptr_eq(ts_device_default()->client, ts_client_host());
  ck_assert_error(ts_client_device(client, 0, &none), TS_FAILED_PRECONDITION, "client closes is closed");
  ck_assert_error(ts_device_copy(device, host, &no), TS_FAILED_PRECONDITION, "client closes is closed");
  ck_assert_error(ts_device_copy(device, arg, &no), TS_FAILED_PRECONDITION, "client closes is closed");
  ck_assert_error(run(loaded, device, (ts_buffer *[]){arg, arg}, 2, &no), TS_FAILED_PRECONDITION, "closes is closed");
  ck_assert_error(ts_client_open("closes", &options, &again), TS_FAILED_PRECONDITION, "is being closed");
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(add, strlen(add), &graph));
  ck_assert_error(ts_loaded_create(client, graph, NULL, &no_program), TS_FAILED_PRECONDITION, "closes is closed");
  ts_graph_destroy(graph);
  test_equal(get(arg), VECTOR(TS_F32, 1, 2, 3)); /* its contents can be read */
  ts_loaded_release(loaded);
  ck_assert_int_eq(test_async_live(), before);
  ck_assert_ok(ts_client_open("closes", &options, &again));
  ck_assert_ptr_eq(again, client);
  test_equal(get(put(device_of(again, 1), VECTOR(TS_F32, 4))), VECTOR(TS_F32, 4));
  ck_assert_ok(ts_client_close(again));
  ck_assert_int_eq(test_async_live(), before);
  ck_assert_error(ts_client_close(ts_client_host()), TS_FAILED_PRECONDITION, "cannot be closed");
  ts_buffer_release(host);
}
END_TEST

START_TEST(a_client_that_the_platform_does_not_open)
{
  ts_client *client = NULL;
  ts_client_options options = {.platform = &test_async, .device_count = 2, .memory_limit = -1};
  int64_t before = ts_alloc_live(), there = test_async_live();
  test_async_fail_after(TEST_ASYNC_OPEN, 0);
  ck_assert_error(ts_client_open("refused", &options, &client), TS_UNAVAILABLE, "failed at open");
  test_async_fail_after(TEST_ASYNC_OPEN, -1);
  ck_assert_ptr_null(client);
  ck_assert_ptr_null(ts_client_find("refused"));
  ck_assert_int_eq(test_async_live(), there);
  ck_assert_int_eq(ts_alloc_live(), before);
}
END_TEST

START_TEST(platforms_are_found_by_name)
{
  ck_assert_ptr_eq(ts_platform_find("host"), &ts_platform_host);
  ck_assert_ptr_null(ts_platform_find("async"));
  ck_assert_ok(ts_platform_add(&test_async));
  ck_assert_ptr_eq(ts_platform_find("async"), &test_async);
  ck_assert_error(ts_platform_add(&test_async), TS_INVALID_ARGUMENT, "there is a platform async already");
}
END_TEST

/* ---- threads */

static void *open_async(void *context) {
  ts_client *client;
  ts_client_options options = {.platform = &test_async, .device_count = 2, .memory_limit = -1};
  for (int i = 0; i < 50; i++) {
    ts_status status = ts_client_open("opened by all", &options, &client);
    bool closing = ts_status_code(status) == TS_FAILED_PRECONDITION;
    if (status && !closing) return context;
    ts_status_free(status);
    if (!closing) ts_status_free(ts_client_close(client));
  }
  return NULL;
}

START_TEST(threads_open_and_close_a_client)
{
  pthread_t threads[4];
  void *failed;
  int64_t before = test_async_live();
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, open_async, threads), 0);
  for (int i = 0; i < 4; i++) {
    ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
    ck_assert_ptr_null(failed);
  }
  ck_assert_int_eq(test_async_live(), before);
}
END_TEST

static void *open_and_hold(void *context) {
  ts_client *client;
  ts_client_options options = {.device_count = 8, .memory_limit = -1};
  for (int i = 0; i < 200; i++) {
    if (!ts_status_consume_ok(ts_client_open("threads", &options, &client))) return context;
    ts_device_hold(client->devices[i % 8], 1000);
    ts_device_hold(client->devices[i % 8], -1000);
  }
  return NULL;
}

START_TEST(threads_open_one_client)
{
  pthread_t threads[4];
  void *failed;
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, open_and_hold, threads), 0);
  for (int i = 0; i < 4; i++) {
    ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
    ck_assert_ptr_null(failed);
  }
  ts_client *client = ts_client_find("threads");
  ck_assert_int_eq(client->device_count, 8);
  for (int i = 0; i < 8; i++) ck_assert_int_eq(ts_device_held(client->devices[i]), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("device");
  TCase *clients = tcase_create("clients"), *programs = tcase_create("programs");
  tcase_add_test(clients, the_hosts_client_is_always_there);
  tcase_add_test(clients, clients_are_opened_once_and_grow);
  tcase_add_test(clients, wrong_clients_are_refused);
  tcase_add_test(clients, a_client_that_cannot_be_opened_leaves_nothing);
  tcase_add_test(clients, a_client_with_a_limit_has_memory_of_its_own);
  tcase_add_test(clients, a_run_uses_the_memory_of_its_client);
  tcase_add_test(clients, results_that_are_arguments_change_their_device);
  tcase_add_test(clients, accounts_count_each_device);
  tcase_add_test(clients, views_and_copies);
  tcase_add_test(clients, bytes_that_the_host_cannot_read);
  tcase_add_test(clients, runs_that_mix_devices);
  tcase_add_test(clients, threads_open_one_client);
  tcase_set_timeout(programs, 600);
  tcase_add_test(programs, random_programs_give_the_same_bits_on_every_platform);
  tcase_add_test(programs, callbacks_with_answers_of_any_device);
  tcase_add_test(programs, each_operation_of_a_run_may_fail);
  tcase_add_test(programs, a_run_that_is_given_up);
  tcase_add_test(programs, a_run_that_is_given_up_in_a_callback);
  tcase_add_test(programs, a_donated_argument_of_a_run_that_is_given_up);
  tcase_add_test(clients, a_client_is_closed_with_its_last_use);
  tcase_add_test(clients, a_client_that_the_platform_does_not_open);
  tcase_add_test(clients, platforms_are_found_by_name);
  tcase_add_test(clients, threads_open_and_close_a_client);
  suite_add_tcase(suite, clients);
  suite_add_tcase(suite, programs);
  return testing_run(suite);
}
