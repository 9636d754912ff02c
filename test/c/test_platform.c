/* The contract of c_src/device/platform.h, on any implementation: each function, each end, and that an operation ends
 * exactly once. A new platform is a row of `platforms`. */
#include "async_device.h"
#include "device/host.h"
#include "operation_end.h"
#include "pjrt/pjrt.h"
#include "pjrt_file.h"
#include "tensors.h"
#include "testing.h"

#include <pthread.h>
#include <sched.h>

typedef struct implementation {
  const ts_platform *platform;
  bool fails; /* test_async_fail_after() makes its operations fail */
} implementation;

/* The platform of plugins runs the plugin of the tests, or the plugin of TESSERA_PJRT_PLUGIN. */
static const implementation platforms[] = {{&ts_platform_host, false}, {&test_async, true}, {&ts_platform_pjrt, false}};
enum { PLATFORMS = sizeof platforms / sizeof *platforms };

typedef struct device {
  const ts_platform *p;
  void *client;
  int32_t count;
} device;

static ts_status try_open(const ts_platform *p, int64_t limit, device *out) {
  end e = {0};
  ts_opened opened = {0};
  ts_open_options options = {.name = "contract", .device_count = 2, .memory_limit = limit};
  p->open(&options, &opened, DONE(&e));
  TS_TRY(wait_for(&e));
  *out = (device){p, opened.client, opened.device_count};
  return TS_SUCCESS;
}

static device open_device(const ts_platform *p) {
  device d;
  ck_assert_ok(try_open(p, -1, &d));
  ck_assert_ptr_nonnull(d.client);
  ck_assert_int_ge(d.count, 2);
  return d;
}

static void close_device(device *d) { d->p->close(d->client); }

/* ---- programs and memory */

static ts_status try_compile(const device *d, const char *text, const ts_program_options *options, ts_program *out) {
  end e = {0};
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  *out = (ts_program){0};
  d->p->compile(d->client, graph, options, out, DONE(&e));
  ts_status status = wait_for(&e);
  ts_graph_destroy(graph);
  return status;
}

static ts_program compile(const device *d, const char *text) {
  ts_program program;
  ck_assert_ok(try_compile(d, text, &(ts_program_options){0}, &program));
  ck_assert_ptr_nonnull(program.program);
  return program;
}

static ts_status try_place(const device *d, int32_t id, const ts_type *type, const void *data, void **out) {
  end e = {0};
  ts_placement placement = {.client = d->client,
                            .device = id,
                            .dtype = type->dtype,
                            .shape = &type->shape,
                            .bytes = ts_shape_bytes(&type->shape, type->dtype)};
  *out = NULL;
  d->p->from_host(&placement, data, out, DONE(&e));
  return wait_for(&e);
}

static void *place(const device *d, int32_t id, const ts_type *type, const void *data) {
  void *memory;
  ck_assert_ok(try_place(d, id, type, data, &memory));
  ck_assert_ptr_nonnull(memory);
  return memory;
}

static void check_memory(const device *d, void *memory, const float *expected, int count) {
  float got[64] = {0};
  end e = {0};
  d->p->to_host(memory, count * 4, got, DONE(&e));
  ck_assert_ok(wait_for(&e));
  if (count > 0) ck_assert_mem_eq(got, expected, (size_t)count * 4);
}

static ts_type vector_of(int64_t elements) {
  ts_type type;
  ts_shape shape = SHAPE(elements);
  ts_type_set(&type, TS_F32, &shape);
  return type;
}

static const char add[] =
    "graph @main(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3]) {\n  %2 = add %0, %1 : f32[3]\n  return %2, %0\n}\n";

static ts_status run(const device *d, ts_run_request *request) {
  end e = {0};
  static const int32_t first;
  request->client = d->client;
  if (!request->devices) {
    request->devices = &first;
    request->device_count = 1;
  }
  d->p->run(request, DONE(&e));
  return wait_for(&e);
}

/* ---- tests, of each implementation */

START_TEST(devices_are_counted_without_a_client)
{
  const ts_platform *p = platforms[_i].platform;
  ts_device_description some[2] = {0};
  int32_t count, again;
  ck_assert_ok(p->enumerate(NULL, 0, &count));
  if (p == &ts_platform_pjrt) { /* a client's plugin knows it */
    ck_assert_int_eq(count, 0);
    return;
  }
  ck_assert_int_ge(count, 1);
  ck_assert_ok(p->enumerate(some, 1, &again));
  ck_assert_int_eq(again, count);
  ck_assert_int_gt(strlen(some[0].kind), 0);
  ck_assert_int_eq(strlen(some[1].kind), 0);
}
END_TEST

START_TEST(clients_are_apart)
{
  const ts_platform *p = platforms[_i].platform;
  int64_t live = test_async_live(), blocks;
  device a = open_device(p), b;
  ck_assert_ok(try_open(p, 1 << 16, &b));
  blocks = ts_alloc_live();
  ts_type large = vector_of(1 << 15), small = vector_of(3);
  float *data;
  void *memory, *none;
  ts_memory_stats stats;
  ck_assert_ok(TS_NEW_ARRAY(1 << 15, &data));
  memory = place(&a, 0, &large, data);
  ck_assert_error(try_place(&b, 0, &large, data, &none), TS_RESOURCE_EXHAUSTED, "limit");
  ck_assert_ptr_null(none);
  p->release_memory(memory);
  memory = place(&b, 1, &small, (const float[]){1, 2, 3});
  if (p->get_memory) {
    p->get_memory(b.client, &stats);
    ck_assert_int_ge(stats.live, 12);
    ck_assert_int_eq(stats.limit, 1 << 16);
  }
  check_memory(&b, memory, (const float[]){1, 2, 3}, 3);
  p->release_memory(memory);
  ts_free(data);
  ck_assert_int_eq(ts_alloc_live(), blocks);
  close_device(&a);
  close_device(&b);
  ck_assert_int_eq(test_async_live(), live);
}
END_TEST

START_TEST(elements_go_there_and_come_back)
{
  device d = open_device(platforms[_i].platform);
  float data[] = {1, -0.0f, 3, 4, 5};
  ts_type type = vector_of(5), empty = vector_of(0);
  void *memory = place(&d, 1, &type, data), *copy = NULL, *nothing = place(&d, 0, &empty, data);
  ts_placement placement = {.client = d.client, .device = 0, .dtype = TS_F32, .shape = &type.shape, .bytes = 20};
  end e = {0};
  data[0] = 9; /* the memory is a copy */
  d.p->copy(memory, &placement, &copy, DONE(&e));
  ck_assert_ok(wait_for(&e));
  ck_assert_ptr_ne(copy, memory);
  check_memory(&d, memory, (const float[]){1, -0.0f, 3, 4, 5}, 5);
  d.p->release_memory(memory);
  check_memory(&d, copy, (const float[]){1, -0.0f, 3}, 3); /* a prefix */
  check_memory(&d, nothing, NULL, 0);
  d.p->release_memory(copy);
  d.p->release_memory(nothing);
  close_device(&d);
}
END_TEST

static void check_types(const ts_program *program) {
  ck_assert_uint_eq(program->param_count, 2);
  ck_assert_uint_eq(program->result_count, 2);
  ck_assert_int_eq(program->partitions, 1);
  ck_assert(!program->calls_back && !program->coordinates);
  ck_assert_int_eq(program->param_types[1]->dtype, TS_F32);
  ck_assert_int_eq(program->result_types[0]->shape.dims[0], 3);
}

START_TEST(programs_run_with_and_without_donation)
{
  device d = open_device(platforms[_i].platform);
  ts_program program = compile(&d, add);
  ts_type type = vector_of(3);
  check_types(&program);
  for (uint64_t donated = 0; donated < 4; donated++) {
    void *args[] = {place(&d, 0, &type, (const float[]){1, 2, 3}), place(&d, 0, &type, (const float[]){4, 5, 6})};
    void *results[2] = {0};
    ck_assert_ok(run(&d, &(ts_run_request){.program = program.program,
                                           .args = args,
                                           .arg_count = 2,
                                           .donated = TS_BITS(donated),
                                           .results = results}));
    for (int i = 0; i < 2; i++)
      if (!(donated >> i & 1)) d.p->release_memory(args[i]);
    check_memory(&d, results[0], (const float[]){5, 7, 9}, 3);
    check_memory(&d, results[1], (const float[]){1, 2, 3}, 3); /* an argument, as a reference of its own */
    d.p->release_memory(results[0]);
    d.p->release_memory(results[1]);
  }
  d.p->release_program(program.program);
  close_device(&d);
}
END_TEST

/* An argument is its bytes: a reshape makes no other memory. */
START_TEST(arguments_may_have_another_shape)
{
  device d = open_device(platforms[_i].platform);
  ts_program program = compile(&d, add);
  ts_type type, flat = vector_of(3);
  ts_shape column = SHAPE(3, 1);
  ts_type_set(&type, TS_F32, &column);
  for (uint64_t donated = 0; donated < 4; donated++) {
    void *args[] = {place(&d, 0, &type, (const float[]){1, 2, 3}), place(&d, 0, &flat, (const float[]){4, 5, 6})};
    void *results[2] = {0};
    ck_assert_ok(run(&d, &(ts_run_request){.program = program.program,
                                           .args = args,
                                           .arg_count = 2,
                                           .donated = TS_BITS(donated),
                                           .results = results}));
    check_memory(&d, results[0], (const float[]){5, 7, 9}, 3);
    for (int i = 0; i < 2; i++) {
      if (!(donated >> i & 1)) d.p->release_memory(args[i]);
      d.p->release_memory(results[i]);
    }
  }
  d.p->release_program(program.program);
  close_device(&d);
}
END_TEST

enum { MANY = 200 };

/* Many operations at a time; each ends once. Arguments and program may be released after the last. */
START_TEST(operations_of_a_program_at_the_same_time)
{
  device d = open_device(platforms[_i].platform);
  ts_program program = compile(&d, add);
  ts_type type = vector_of(3);
  void *args[] = {place(&d, 0, &type, (const float[]){1, 2, 3}), place(&d, 0, &type, (const float[]){4, 5, 6})};
  static const int32_t first;
  static end ends[MANY];
  static void *results[MANY][2];
  static ts_run_request requests[MANY];
  memset(ends, 0, sizeof ends);
  for (int i = 0; i < MANY; i++) {
    requests[i] = (ts_run_request){.program = program.program,
                                   .client = d.client,
                                   .devices = &first,
                                   .device_count = 1,
                                   .args = args,
                                   .arg_count = 2,
                                   .results = results[i]};
    d.p->run(&requests[i], DONE(&ends[i]));
  }
  for (int i = 0; i < MANY; i++) {
    ck_assert_ok(wait_for(&ends[i]));
    check_memory(&d, results[i][0], (const float[]){5, 7, 9}, 3);
    d.p->release_memory(results[i][0]);
    d.p->release_memory(results[i][1]);
  }
  d.p->release_memory(args[0]);
  d.p->release_memory(args[1]);
  d.p->release_program(program.program);
  close_device(&d);
}
END_TEST

static const char endless[] = "graph @main(%0: s32[]) -> (s32[]) {\n  %1 = while %0 {\n    condition(%2: s32[]) {\n"
                              "      %3 = constant 1 : u8[]\n      return %3\n    }\n    body(%4: s32[]) {\n"
                              "      %5 = add %4, %4 : s32[]\n      return %5\n    }\n  } : s32[]\n  return %1\n}\n";

static void *cancel_soon(void *control) {
  for (int i = 0; i < 100; i++) sched_yield();
  atomic_store(&((ts_run_control *)control)->cancel, true);
  return NULL;
}

START_TEST(a_run_is_cancelled)
{
  if (!(platforms[_i].platform->flags & TS_PLATFORM_CANCELS)) return;
  device d = open_device(platforms[_i].platform);
  ts_program program = compile(&d, endless);
  ts_type type;
  ts_type_set(&type, TS_S32, &ts_shape_scalar);
  void *arg = place(&d, 0, &type, &(int32_t){7}), *result = NULL;
  ts_run_control control = {0};
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, &control), 0);
  ck_assert_error(run(&d, &(ts_run_request){.program = program.program,
                                            .args = &arg,
                                            .arg_count = 1,
                                            .donated = TS_BITS(1),
                                            .control = &control,
                                            .results = &result}),
                  TS_CANCELLED, "cancelled");
  pthread_join(thread, NULL);
  ck_assert_ptr_null(result);
  d.p->release_memory(arg); /* it is the caller's, since the run failed */
  d.p->release_program(program.program);
  close_device(&d);
}
END_TEST

START_TEST(a_compilation_is_cancelled)
{
  device d = open_device(platforms[_i].platform);
  ts_program program;
  _Atomic bool cancel = true;
  if (d.p->flags & TS_PLATFORM_CANCELS) {
    ck_assert_error(try_compile(&d, add, &(ts_program_options){.cancel = &cancel}, &program), TS_CANCELLED,
                    "cancelled");
    ck_assert_ptr_null(program.program);
  }
  close_device(&d);
}
END_TEST

/* At once, or not at all. */
START_TEST(a_compilation_that_does_not_block)
{
  device d = open_device(platforms[_i].platform);
  ts_graph *graph;
  end e = {0};
  ts_program program = {0};
  ck_assert_ok(ts_graph_parse(add, strlen(add), &graph));
  d.p->compile(d.client, graph, &(ts_program_options){.nonblocking = true}, &program, DONE(&e));
  ck_assert_int_eq(atomic_load(&e.times), 1);
  ck_assert_ok(wait_for(&e));
  if (program.program) d.p->release_program(program.program);
  ts_graph_destroy(graph);
  close_device(&d);
}
END_TEST

START_TEST(programs_are_saved_and_loaded)
{
  device d = open_device(platforms[_i].platform);
  end e = {0};
  ts_text text = {0};
  if (d.p->flags & TS_PLATFORM_SAVES) {
    ts_program program = compile(&d, add), loaded = {0};
    ts_type type = vector_of(3);
    void *args[] = {place(&d, 1, &type, (const float[]){1, 2, 3}), place(&d, 1, &type, (const float[]){4, 5, 6})};
    void *results[2] = {0};
    d.p->save(program.program, &text, DONE(&e));
    ck_assert_ok(wait_for(&e));
    d.p->release_program(program.program);
    d.p->load(d.client, &(ts_saved_program){text.data, text.length}, &loaded, DONE(&e));
    ck_assert_ok(wait_for(&e));
    check_types(&loaded);
    ck_assert_ok(run(&d, &(ts_run_request){.program = loaded.program,
                                           .args = args,
                                           .arg_count = 2,
                                           .devices = &(int32_t){1},
                                           .device_count = 1,
                                           .donated = TS_BITS(3),
                                           .results = results}));
    check_memory(&d, results[0], (const float[]){5, 7, 9}, 3);
    d.p->release_memory(results[0]);
    d.p->release_memory(results[1]);
    d.p->release_program(loaded.program);
    loaded.program = NULL;
    for (size_t cut = 0; cut < text.length; cut += 7) {
      d.p->load(d.client, &(ts_saved_program){text.data, cut}, &loaded, DONE(&e));
      ck_assert_error(wait_for(&e), TS_INVALID_ARGUMENT, "");
      ck_assert_ptr_null(loaded.program);
    }
  }
  ts_text_deinit(&text);
  close_device(&d);
}
END_TEST

/* ---- callbacks */

static const char asks[] = "graph @main(%0: f32[3]) -> (f32[3]) {\n"
                           "  %1 = callback %0 {index = 3} {\n    types() {\n      %9 = constant 0.0 : f32[3]\n"
                           "      return %9\n    }\n  } : f32[3]\n"
                           "  %2 = callback %1 {index = 4} {\n    types() {\n      %8 = constant 0.0 : f32[3]\n"
                           "      return %8\n    }\n  } : f32[3]\n"
                           "  %3 = add %2, %0 : f32[3]\n  return %3\n}\n";

typedef struct asked {
  int manner; /* 0: answers at once; 1: on another thread; 2: by an error */
  _Atomic int times;
  ts_program_call *call;
  pthread_t thread;
} asked;

static void answer(asked *a) {
  ts_program_call *call = a->call;
  float twice[3];
  for (int i = 0; i < 3; i++) twice[i] = 2 * ((const float *)call->operands[0])[i];
  call->answer(call, TS_SUCCESS, (const void *[]){twice});
}

static void *answer_later(void *arg) {
  sched_yield();
  answer(arg);
  return NULL;
}

static void receive(ts_program_call *call, void *arg) {
  asked *a = arg;
  int times = atomic_fetch_add(&a->times, 1);
  ck_assert_uint_eq(call->index, 3 + (uint32_t)times);
  ck_assert_uint_eq(call->operand_count, 1);
  ck_assert_uint_eq(call->result_count, 1);
  a->call = call;
  if (a->manner == 0) answer(a);
  if (a->manner == 1) {
    ck_assert_int_eq(pthread_create(&a->thread, NULL, answer_later, a), 0);
    pthread_detach(a->thread);
  }
  if (a->manner == 2) call->answer(call, ts_error(TS_INTERNAL, "no answer"), NULL);
}

START_TEST(callbacks_are_answered_at_once_later_or_not)
{
  device d = open_device(platforms[_i].platform);
  if (d.p->flags & TS_PLATFORM_CALLS_BACK) {
    ts_program program = compile(&d, asks);
    ts_type type = vector_of(3);
    ck_assert(program.calls_back);
    for (int manner = 0; manner < 3; manner++) {
      asked a = {.manner = manner};
      void *arg = place(&d, 0, &type, (const float[]){1, 2, 3}), *result = NULL;
      ts_run_request request = {.program = program.program,
                                .args = &arg,
                                .arg_count = 1,
                                .results = &result,
                                .call = receive,
                                .call_arg = &a};
      if (manner == 2) {
        ck_assert_error(run(&d, &request), TS_INTERNAL, "no answer");
        ck_assert_ptr_null(result);
        ck_assert_int_eq(a.times, 1);
      } else {
        ck_assert_ok(run(&d, &request));
        ck_assert_int_eq(a.times, 2);
        check_memory(&d, result, (const float[]){5, 10, 15}, 3);
        d.p->release_memory(result);
      }
      d.p->release_memory(arg);
    }
    d.p->release_program(program.program);
  }
  close_device(&d);
}
END_TEST

/* ---- groups */

static const char sum[] = "graph @main mesh [2] (%0: f32[3]) -> (f32[3]) {\n"
                          "  %1 = all_reduce_sum %0 {axes = [0]} : f32[3]\n  return %1\n}\n";

START_TEST(partitions_run_together)
{
  device d = open_device(platforms[_i].platform);
  if (d.p->flags & TS_PLATFORM_GROUPS) {
    ts_program program = compile(&d, sum);
    ts_type type = vector_of(3);
    ck_assert_int_eq(program.partitions, 2);
    void *args[] = {place(&d, 0, &type, (const float[]){1, 2, 3}), place(&d, 1, &type, (const float[]){10, 20, 30})};
    void *results[2] = {0};
    ck_assert_ok(run(&d, &(ts_run_request){.program = program.program,
                                           .args = args,
                                           .arg_count = 2,
                                           .devices = (const int32_t[]){0, 1},
                                           .device_count = 2,
                                           .donated = TS_BITS(2),
                                           .results = results}));
    d.p->release_memory(args[0]);
    for (int i = 0; i < 2; i++) {
      check_memory(&d, results[i], (const float[]){11, 22, 33}, 3);
      d.p->release_memory(results[i]);
    }
    d.p->release_program(program.program);
  }
  close_device(&d);
}
END_TEST

/* ---- errors */

/* Each function that can fail does, once: it ends once, with the error, and leaves nothing. */
START_TEST(each_operation_may_fail)
{
  const ts_platform *p = platforms[_i].platform;
  device d = open_device(p), none;
  if (!platforms[_i].fails) {
    close_device(&d);
    return;
  }
  ts_program program = compile(&d, add), no_program = {0};
  ts_type type = vector_of(3);
  void *memory = place(&d, 0, &type, (const float[]){1, 2, 3}), *nothing = NULL, *results[2] = {0};
  ts_placement placement = {.client = d.client, .device = 1, .dtype = TS_F32, .shape = &type.shape, .bytes = 12};
  int64_t before = test_async_live();
  ts_text text = {0};
  float out[3];
  end e = {0};
  for (test_async_op op = 0; op < TEST_ASYNC_OPS; op++) test_async_fail_after(op, 0);
  ck_assert_error(try_open(p, -1, &none), TS_UNAVAILABLE, "failed at open");
  ck_assert_error(try_compile(&d, add, &(ts_program_options){0}, &no_program), TS_UNAVAILABLE, "failed at compile");
  p->save(program.program, &text, DONE(&e));
  ck_assert_error(wait_for(&e), TS_UNAVAILABLE, "failed at save");
  p->load(d.client, &(ts_saved_program){"fs", 2}, &no_program, DONE(&e));
  ck_assert_error(wait_for(&e), TS_UNAVAILABLE, "failed at load");
  ck_assert_error(try_place(&d, 0, &type, out, &nothing), TS_UNAVAILABLE, "failed at from_host");
  p->to_host(memory, 12, out, DONE(&e));
  ck_assert_error(wait_for(&e), TS_UNAVAILABLE, "failed at to_host");
  p->copy(memory, &placement, &nothing, DONE(&e));
  ck_assert_error(wait_for(&e), TS_UNAVAILABLE, "failed at copy");
  void *args[] = {memory, memory};
  ck_assert_error(
      run(&d, &(ts_run_request){.program = program.program, .args = args, .arg_count = 2, .results = results}),
      TS_UNAVAILABLE, "failed at run");
  ck_assert(!no_program.program && !nothing && !results[0] && !results[1]);
  ck_assert_int_eq(test_async_live(), before);
  for (test_async_op op = 0; op < TEST_ASYNC_OPS; op++) test_async_fail_after(op, -1);
  check_memory(&d, memory, (const float[]){1, 2, 3}, 3);
  p->release_memory(memory);
  p->release_program(program.program);
  close_device(&d);
}
END_TEST

/* Without memory for anything, each operation still ends once, and leaves nothing. */
START_TEST(operations_without_memory)
{
  const ts_platform *p = platforms[_i].platform;
  device d = open_device(p);
  ts_program program = compile(&d, add);
  ts_type type = vector_of(3);
  void *args[] = {place(&d, 0, &type, (const float[]){1, 2, 3}), place(&d, 0, &type, (const float[]){4, 5, 6})};
  for (int64_t n = 1; n < 200; n++) {
    void *results[2] = {0}, *memory = NULL;
    int64_t before = ts_alloc_live();
    ts_alloc_fail_after(n, true);
    ts_status placed = try_place(&d, 1, &type, (const float[]){1, 2, 3}, &memory);
    ts_status ran =
        run(&d, &(ts_run_request){.program = program.program, .args = args, .arg_count = 2, .results = results});
    bool failed = ts_alloc_failures() > 0;
    ts_alloc_fail_after(0, false);
    ck_assert_int_eq(!placed, memory != NULL);
    ck_assert_int_eq(!ran, results[0] != NULL);
    ck_assert_int_eq(!ran, results[1] != NULL);
    if (memory) p->release_memory(memory);
    for (int i = 0; i < 2; i++)
      if (results[i]) p->release_memory(results[i]);
    ts_status_free(placed);
    ts_status_free(ran);
    ck_assert_int_le(ts_alloc_live(), before + 8); /* threads that have started meanwhile */
    if (!failed) break;
  }
  p->release_memory(args[0]);
  p->release_memory(args[1]);
  p->release_program(program.program);
  close_device(&d);
}
END_TEST

int main(void) {
  test_pjrt_use();
  Suite *suite = suite_create("platform");
  TCase *contract = tcase_create("contract");
  tcase_set_timeout(contract, 600);
  tcase_add_loop_test(contract, devices_are_counted_without_a_client, 0, PLATFORMS);
  tcase_add_loop_test(contract, clients_are_apart, 0, PLATFORMS);
  tcase_add_loop_test(contract, elements_go_there_and_come_back, 0, PLATFORMS);
  tcase_add_loop_test(contract, programs_run_with_and_without_donation, 0, PLATFORMS);
  tcase_add_loop_test(contract, arguments_may_have_another_shape, 0, PLATFORMS);
  tcase_add_loop_test(contract, operations_of_a_program_at_the_same_time, 0, PLATFORMS);
  tcase_add_loop_test(contract, a_run_is_cancelled, 0, PLATFORMS);
  tcase_add_loop_test(contract, a_compilation_is_cancelled, 0, PLATFORMS);
  tcase_add_loop_test(contract, a_compilation_that_does_not_block, 0, PLATFORMS);
  tcase_add_loop_test(contract, programs_are_saved_and_loaded, 0, PLATFORMS);
  tcase_add_loop_test(contract, callbacks_are_answered_at_once_later_or_not, 0, PLATFORMS);
  tcase_add_loop_test(contract, partitions_run_together, 0, PLATFORMS);
  tcase_add_loop_test(contract, each_operation_may_fail, 0, PLATFORMS);
  tcase_add_loop_test(contract, operations_without_memory, 0, PLATFORMS);
  suite_add_tcase(suite, contract);
  return testing_run(suite);
}
