/* Our own plugin of PJRT (c_src/plugin), called by its table as JAX does, and by our own client (c_src/pjrt) as a
 * shared object. */
#include "operation_end.h"
#include "pjrt/pjrt.h"
#include "pjrt_file.h"
#include "plugin_calls.h"
#include "tensors.h"
#include "testing.h"

#include <pthread.h>
#include <stdlib.h>

enum { HEAD = offsetof(pj_args, room) };

static bool is_deleted(pj_buffer *buffer) {
  pj_args args = PJ_ARGS(.flag = {.object = buffer});
  ck_assert_ok(call(AT_BUFFER_IS_DELETED, &args));
  return args.flag.yes;
}

static const char sum[] =
    "module @jit_f {\n"
    "  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {\n"
    "    %0 = stablehlo.add %arg0, %arg1 : tensor<3xf32>\n    return %0 : tensor<3xf32>\n  }\n}\n";
static const char donating[] =
    "func.func public @main(%arg0: tensor<3xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<3xf32>)"
    " -> tensor<3xf32> {\n  %0 = stablehlo.multiply %arg0, %arg1 : tensor<3xf32>\n  return %0 : tensor<3xf32>\n}\n";
static const char less[] = "func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<3xi1>, tensor<2x0xi8>) {\n"
                           "  %0 = stablehlo.compare LT, %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>\n"
                           "  %1 = stablehlo.constant dense<1> : tensor<2x0xi8>\n"
                           "  return %0, %1 : tensor<3xi1>, tensor<2x0xi8>\n}\n";

/* ---- the table */

START_TEST(all_functions_refuse_small_blocks)
{
  const pj_api *api = GetPjrtApi();
  ck_assert_int_eq(api->version.major, 0);
  ck_assert_int_ge(api->version.minor, PJ_LEAST_MINOR);
  int count = (int)((api->size - offsetof(pj_api, functions)) / sizeof *api->functions);
  ck_assert_int_ge(count, PJ_TABLE);
  for (int i = PJ_INITIALIZE; i < count; i++) {
    pj_args args = {.size = i == PJ_INITIALIZE ? 8 : HEAD};
    ts_status status = call(i, i % 2 ? &args : NULL);
    if (i % 2 == 0 && ts_status_code(status) == TS_INVALID_ARGUMENT)
      ck_assert_error(status, TS_INVALID_ARGUMENT, "there is no block");
    else if (ts_status_code(status) == TS_UNIMPLEMENTED)
      ck_assert_error(status, TS_UNIMPLEMENTED, "has no function PJRT_");
    else
      ck_assert_error(status, TS_INVALID_ARGUMENT, "PJRT_");
  }
}
END_TEST

/* C++ programs give blocks that end with their last field. */
START_TEST(blocks_without_padding)
{
  pj_handle *client = open_client(1);
  pj_args args = {.size = offsetof(pj_args, flag.yes) + 1};
  args.flag.object = client->list[0];
  ck_assert_ok(call(AT_DEVICE_IS_ADDRESSABLE, &args));
  ck_assert(args.flag.yes);
  pj_args memory = {.size = offsetof(pj_args, memory.others[2])};
  memset(&memory.memory, 0xff, sizeof memory.memory);
  memory.memory.device = client->list[0];
  ck_assert_ok(call(PJ_DEVICE_MEMORY, &memory));
  ck_assert_int_eq(memory.memory.bytes_in_use, 0);
  ck_assert(!memory.memory.others[1].given);
  ck_assert(((uint8_t *)&memory.memory.others[2])[0] == 0xff);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

static ts_status try_option(pj_named option) {
  pj_args args = PJ_ARGS(.create = {.options = &option, .option_count = 1});
  if (!option.size) option.size = sizeof option;
  option.name_size = strlen(option.name);
  ts_status status = call(PJ_CLIENT_CREATE, &args);
  if (!status) destroy(PJ_CLIENT_DESTROY, args.create.client);
  return status;
}

START_TEST(options_of_clients)
{
  ck_assert_error(try_option((pj_named){.name = "colour"}), TS_INVALID_ARGUMENT, "there is no option colour");
  ck_assert_error(try_option((pj_named){.name = "host_devices", .kind = PJ_STRING}), TS_INVALID_ARGUMENT,
                  "option host_devices: expected an integer from 1 to 64");
  ck_assert_error(try_option((pj_named){.name = "host_devices", .kind = PJ_INT64, .integer = 65}), TS_INVALID_ARGUMENT,
                  "from 1 to 64");
  ck_assert_error(try_option((pj_named){.name = "threads", .size = 48}), TS_INVALID_ARGUMENT, "has 48 bytes");
  ck_assert_error(try_option((pj_named){.name = "platform_name", .kind = PJ_STRING, .string = ""}), TS_INVALID_ARGUMENT,
                  "platform_name");
  ck_assert_ok(try_option((pj_named){.name = "platform_name", .kind = PJ_STRING, .string = "x", .value_size = 1}));
  ck_assert_ok(try_option((pj_named){.name = "memory_limit", .kind = PJ_INT64, .integer = 1 << 20}));
  setenv("TESSERA_HOST_DEVICES", "many", 1);
  ck_assert_error(try_option((pj_named){.name = "threads", .kind = PJ_INT64}), TS_INVALID_ARGUMENT,
                  "TESSERA_HOST_DEVICES is many");
  unsetenv("TESSERA_HOST_DEVICES");
}
END_TEST

START_TEST(devices_and_topologies)
{
  pj_handle *client = open_client(3);
  pj_args args = PJ_ARGS(.devices = {.client = client});
  ck_assert_ok(call(AT_CLIENT_DEVICES, &args));
  ck_assert_uint_eq(args.devices.count, 3);
  pj_device *last = args.devices.devices[2];
  args = PJ_ARGS(.look_up = {.client = client, .number = 2});
  ck_assert_ok(call(AT_LOOK_UP_DEVICE, &args));
  ck_assert_ptr_eq(args.look_up.device, last);
  args.look_up.number = 3;
  ck_assert_error(call(AT_LOOK_UP_DEVICE, &args), TS_INVALID_ARGUMENT, "there is no device 3: the client has 3");
  int devices[4];
  args = PJ_ARGS(.assignment = {.client = client, .replicas = 3, .partitions = 1, .room = 4, .devices = devices});
  ck_assert_ok(call(AT_DEFAULT_ASSIGNMENT, &args));
  ck_assert_int_eq(devices[2], 2);
  args.assignment.partitions = 2;
  ck_assert_error(call(AT_DEFAULT_ASSIGNMENT, &args), TS_INVALID_ARGUMENT, "3 replicas of 2 partitions");
  args = PJ_ARGS(.pointer = {.object = client});
  ck_assert_ok(call(AT_CLIENT_TOPOLOGY, &args));
  pj_topology *topology = args.pointer.pointer;
  args = PJ_ARGS(.list = {.object = topology});
  ck_assert_ok(call(AT_TOPOLOGY_DESCRIPTIONS, &args));
  ck_assert_uint_eq(args.list.count, 3);
  args = PJ_ARGS(.object = topology);
  ck_assert_ok(call(AT_TOPOLOGY_SAVE, &args));
  ck_assert_uint_gt(args.save.byte_count, 0);
  args.save.destroy(args.save.saved);
  destroy(AT_TOPOLOGY_DESTROY, topology); /* the client's own: it stays */
  ck_assert_ok(call(AT_LOOK_UP_DEVICE, &PJ_ARGS(.look_up = {.client = client})));
  args = PJ_ARGS(.topology = {.name = "any", .name_size = 3});
  ck_assert_ok(call(AT_TOPOLOGY_CREATE, &args));
  destroy(AT_TOPOLOGY_DESTROY, args.topology.topology);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

/* ---- buffers */

START_TEST(elements_with_strides)
{
  pj_handle *client = open_client(1);
  const float data[] = {1, 2, 3, 4, 5, 6};
  /* Column-major; then backwards, from the last element. */
  pj_args args = from_host(client, PJ_F32, data, (int64_t[]){2, 3}, 2);
  args.from_host.strides = (int64_t[]){4, 8};
  args.from_host.stride_count = 2;
  ck_assert_ok(call(PJ_FROM_HOST, &args));
  pj_buffer *b = args.from_host.buffer;
  destroy(PJ_EVENT_DESTROY, args.from_host.read);
  check_floats(b, (const float[]){1, 3, 5, 2, 4, 6}, 6);
  float columns[6];
  pj_layout layout = {.order = {.minor_to_major = (int64_t[]){0, 1}, .rank = 2}};
  args = PJ_ARGS(.to_host = {.buffer = b, .layout = &layout, .to = columns, .to_size = sizeof columns});
  ck_assert_ok(call(PJ_BUFFER_TO_HOST, &args));
  destroy(PJ_EVENT_DESTROY, args.to_host.event);
  for (int i = 0; i < 6; i++) ck_assert_float_eq(columns[i], data[i]);
  layout.order.minor_to_major = (int64_t[]){0, 0};
  ck_assert_error(call(PJ_BUFFER_TO_HOST, &args), TS_INVALID_ARGUMENT, "no order of 2 dims");
  layout.order.tile_count = 1;
  ck_assert_error(call(PJ_BUFFER_TO_HOST, &args), TS_UNIMPLEMENTED, "a layout with tiles");
  destroy(PJ_BUFFER_DESTROY, b);
  args = from_host(client, PJ_F32, data + 5, (int64_t[]){6}, 1);
  args.from_host.strides = (int64_t[]){-4};
  args.from_host.stride_count = 1;
  ck_assert_ok(call(PJ_FROM_HOST, &args));
  check_floats(args.from_host.buffer, (const float[]){6, 5, 4, 3, 2, 1}, 6);
  destroy(PJ_EVENT_DESTROY, args.from_host.read);
  destroy(PJ_BUFFER_DESTROY, args.from_host.buffer);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

/* Dense rows with gaps between them. The stride of a dim of one index has no meaning. */
START_TEST(rows_with_gaps)
{
  pj_handle *client = open_client(1);
  const float data[] = {1, 2, 3, 4, 0, 0, 5, 6, 7, 8};
  float got[9] = {0};
  pj_args args = from_host(client, PJ_F32, data, (int64_t[]){2, 2, 1, 2}, 4);
  args.from_host.strides = (int64_t[]){24, 8, -3, 4};
  args.from_host.stride_count = 4;
  ck_assert_ok(call(PJ_FROM_HOST, &args));
  pj_buffer *b = args.from_host.buffer;
  destroy(PJ_EVENT_DESTROY, args.from_host.read);
  check_floats(b, (const float[]){1, 2, 3, 4, 5, 6, 7, 8}, 8);
  pj_layout layout = {.kind = PJ_STRIDES, .strides = {.bytes = (int64_t[]){20, 8, 0, 4}, .rank = 4}};
  args = PJ_ARGS(.to_host = {.buffer = b, .layout = &layout, .to = got, .to_size = sizeof got});
  ck_assert_ok(call(PJ_BUFFER_TO_HOST, &args));
  destroy(PJ_EVENT_DESTROY, args.to_host.event);
  ck_assert_mem_eq(got, ((const float[]){1, 2, 3, 4, 0, 5, 6, 7, 8}), sizeof got);
  destroy(PJ_BUFFER_DESTROY, b);
  args = from_host(client, PJ_F32, NULL, (int64_t[]){2, 0}, 2);
  args.from_host.strides = (int64_t[]){4, 8};
  args.from_host.stride_count = 2;
  ck_assert_ok(call(PJ_FROM_HOST, &args));
  destroy(PJ_EVENT_DESTROY, args.from_host.read);
  destroy(PJ_BUFFER_DESTROY, args.from_host.buffer);
  args = from_host(client, PJ_F32, data + 7, NULL, 0);
  ck_assert_ok(call(PJ_FROM_HOST, &args));
  destroy(PJ_EVENT_DESTROY, args.from_host.read);
  check_floats(args.from_host.buffer, (const float[]){6}, 1);
  destroy(PJ_BUFFER_DESTROY, args.from_host.buffer);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

START_TEST(transfers_that_are_refused)
{
  pj_handle *client = open_client(1);
  const float data[4] = {0};
  pj_args args = from_host(client, PJ_F32, data, (int64_t[]){-1}, 1);
  ck_assert_error(call(PJ_FROM_HOST, &args), TS_INVALID_ARGUMENT, "PJRT_Client_BufferFromHostBuffer");
  args = from_host(client, PJ_F32, data, (int64_t[]){INT64_MAX, 4}, 2);
  ck_assert_error(call(PJ_FROM_HOST, &args), TS_OUT_OF_RANGE, "");
  args = from_host(client, 23, data, (int64_t[]){1}, 1);
  ck_assert_error(call(PJ_FROM_HOST, &args), TS_UNIMPLEMENTED, "no elements of PJRT's type 23");
  args = from_host(client, PJ_F32, data, (int64_t[]){1}, 65);
  ck_assert_error(call(PJ_FROM_HOST, &args), TS_UNIMPLEMENTED, "at most 64 dims, got 65");
  args = from_host(client, PJ_F32, data, (int64_t[]){2}, 1);
  args.from_host.stride_count = 2;
  ck_assert_error(call(PJ_FROM_HOST, &args), TS_INVALID_ARGUMENT, "2 strides of 1 dims");
  args = from_host(client, PJ_F32, data, (int64_t[]){2}, 1);
  args.from_host.device = NULL;
  ck_assert_error(call(PJ_FROM_HOST, &args), TS_INVALID_ARGUMENT, "neither a device nor a memory");
  pj_buffer *b = place(client, PJ_F32, data, 4);
  char small[15];
  args = PJ_ARGS(.to_host = {.buffer = b, .to = small, .to_size = sizeof small});
  ck_assert_error(call(PJ_BUFFER_TO_HOST, &args), TS_INVALID_ARGUMENT, "room for 15 bytes of 16");
  args = PJ_ARGS(.to_host = {.buffer = b});
  ck_assert_ok(call(PJ_BUFFER_TO_HOST, &args));
  ck_assert_uint_eq(args.to_host.to_size, 16);
  args = PJ_ARGS(.raw = {.buffer = b, .to = small, .offset = 8, .bytes = INT64_MAX});
  ck_assert_error(call(AT_BUFFER_RAW, &args), TS_OUT_OF_RANGE, "from byte 8 of 16");
  destroy(AT_BUFFER_DELETE, b);
  ck_assert(is_deleted(b));
  ck_assert_error(call(PJ_BUFFER_TO_HOST, &PJ_ARGS(.to_host = {.buffer = b, .to = small})), TS_INVALID_ARGUMENT,
                  "deleted or donated");
  ck_assert_error(call(PJ_BUFFER_READY, &PJ_ARGS(.ready = {.buffer = b})), TS_INVALID_ARGUMENT, "deleted");
  destroy(PJ_BUFFER_DESTROY, b);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

/* Nibbles come with any upper bits. */
START_TEST(small_types_fill_a_byte)
{
  pj_handle *client = open_client(1);
  const uint8_t data[] = {0x0f, 0x07, 0xf8, 0x18};
  uint8_t got[4];
  for (int is_signed = 0; is_signed < 2; is_signed++) {
    pj_buffer *b = place(client, is_signed ? PJ_S4 : PJ_U4, data, 4);
    read_back(b, got, sizeof got);
    ck_assert_mem_eq(got, is_signed ? "\xff\x07\xf8\xf8" : "\x0f\x07\x08\x08", 4);
    destroy(PJ_BUFFER_DESTROY, b);
  }
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

static void note(pj_error *error, void *arg) {
  ck_assert_ptr_null(error);
  ++*(int *)arg;
}

static bool is_ready(pj_event *event) {
  pj_args args = PJ_ARGS(.event = {.event = event});
  ck_assert_ok(call(PJ_EVENT_IS_READY, &args));
  return args.event.is_ready;
}

/* The buffer uses the program's bytes. Their event ends when the last buffer that uses them has ended. */
START_TEST(bytes_that_are_shared)
{
  enum { COUNT = 1 << 15 };
  pj_handle *client = open_client(2);
  float *data = calloc(COUNT, sizeof *data);
  int called = 0;
  pj_event *event;
  pj_buffer *b = share(client, PJ_SHARED, data, COUNT, &event);
  ck_assert_ptr_eq(address_of(b), data);
  pj_args args = PJ_ARGS(.to_device = {.buffer = b, .device = client->list[1]});
  ck_assert_ok(call(PJ_BUFFER_TO_DEVICE, &args));
  pj_buffer *copy = args.to_device.copy;
  ck_assert_ok(call(PJ_EVENT_ON_READY, &PJ_ARGS(.on_ready = {.event = event, .call = note, .arg = &called})));
  destroy(PJ_BUFFER_DESTROY, b);
  ck_assert(!is_ready(event));
  ck_assert_error(call(PJ_EVENT_ERROR, &PJ_ARGS(.object = event)), TS_FAILED_PRECONDITION, "not ready");
  ck_assert_int_eq(called, 0);
  destroy(PJ_BUFFER_DESTROY, copy);
  ck_assert(is_ready(event));
  ck_assert_int_eq(called, 1);
  ck_assert_ok(call(PJ_EVENT_ON_READY, &PJ_ARGS(.on_ready = {.event = event, .call = note, .arg = &called})));
  ck_assert_int_eq(called, 2);
  destroy(PJ_EVENT_AWAIT, event);
  destroy(PJ_EVENT_DESTROY, event);
  free(data);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

static void *await(void *event) {
  destroy(PJ_EVENT_AWAIT, event);
  return NULL;
}

/* A callback whose event was destroyed is called, and another thread's wait ends. */
START_TEST(events_that_are_destroyed_early)
{
  enum { COUNT = 1 << 15 };
  pj_handle *client = open_client(1);
  float *data = calloc(COUNT, sizeof *data);
  int called = 0;
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    pj_event *event;
    pj_buffer *b = share(client, PJ_SHARED_MUTABLE, data, COUNT, &event);
    ck_assert_ok(call(PJ_EVENT_ON_READY, &PJ_ARGS(.on_ready = {.event = event, .call = note, .arg = &called})));
    if (i) ck_assert_int_eq(pthread_create(&thread, NULL, await, event), 0);
    if (!i) destroy(PJ_EVENT_DESTROY, event);
    destroy(PJ_BUFFER_DESTROY, b);
    if (i) pthread_join(thread, NULL);
    if (i) destroy(PJ_EVENT_DESTROY, event);
  }
  ck_assert_int_eq(called, 2);
  free(data);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

/* ---- programs */

START_TEST(a_program_runs)
{
  const runnable p = open_program(sum, (const float[]){4, 5, 6});
  pj_buffer *result;
  ck_assert_ok(try_execute(p.loaded, (pj_buffer *[]){p.x, p.y}, 2, &result));
  check_floats(result, (const float[]){5, 7, 9}, 3);
  destroy(PJ_BUFFER_DESTROY, result);
  ck_assert_ok(try_execute(p.loaded, (pj_buffer *[]){p.x, p.x}, 2, &result));
  check_floats(result, (const float[]){2, 4, 6}, 3);
  destroy(PJ_BUFFER_DESTROY, result);
  pj_args memory = PJ_ARGS(.memory = {.device = p.client->list[0]});
  ck_assert_ok(call(PJ_DEVICE_MEMORY, &memory));
  ck_assert_int_eq(memory.memory.bytes_in_use, 24);
  ck_assert_int_ge(memory.memory.peak.number, 36);
  destroy(AT_LOADED_DELETE, p.loaded);
  ck_assert_error(try_execute(p.loaded, NULL, 0, &result), TS_FAILED_PRECONDITION, "was deleted");
  close_program(&p);
}
END_TEST

START_TEST(booleans_are_booleans)
{
  const runnable p = open_program(less, (const float[]){2, 2, 4});
  pj_buffer *results[2];
  uint8_t got[3];
  ck_assert_ok(try_execute(p.loaded, (pj_buffer *[]){p.x, p.y}, 2, results));
  pj_args args = PJ_ARGS(.number = {.object = results[0]});
  ck_assert_ok(call(AT_BUFFER_TYPE, &args));
  ck_assert_int_eq(args.number.number, PJ_PRED);
  read_back(results[0], got, sizeof got);
  ck_assert_mem_eq(got, "\1\0\1", 3);
  args = PJ_ARGS(.loaded = {.loaded = p.loaded});
  ck_assert_ok(call(PJ_LOADED_EXECUTABLE, &args));
  pj_executable *e = args.loaded.executable;
  args = PJ_ARGS(.types = {.executable = e});
  ck_assert_ok(call(PJ_EXECUTABLE_TYPES, &args));
  ck_assert_uint_eq(args.types.count, 2);
  ck_assert_int_eq(args.types.types[0], PJ_PRED);
  ck_assert_int_eq(args.types.types[1], PJ_S8);
  args = PJ_ARGS(.dims = {.executable = e});
  ck_assert_ok(call(PJ_EXECUTABLE_DIMS, &args));
  ck_assert_uint_eq(args.dims.ranks[1], 2);
  ck_assert_int_eq(args.dims.dims[1], 2);
  ck_assert_int_eq(args.dims.dims[2], 0);
  args = PJ_ARGS(.properties = {.object = e});
  ck_assert_ok(call(AT_EXECUTABLE_COST, &args));
  ck_assert_uint_gt(args.properties.count, 0);
  destroy(PJ_EXECUTABLE_DESTROY, e);
  destroy(PJ_BUFFER_DESTROY, results[0]);
  destroy(PJ_BUFFER_DESTROY, results[1]);
  close_program(&p);
}
END_TEST

/* Else a program that gives an argument back would give bytes of its caller's, which may change. */
START_TEST(results_have_elements_of_their_own)
{
  enum { COUNT = 1 << 15 };
  static const char text[] = "func.func @main(%a: tensor<32768xf32>) -> (tensor<32768xf32>, tensor<128x256xf32>) {\n"
                             "  %0 = stablehlo.reshape %a : (tensor<32768xf32>) -> tensor<128x256xf32>\n"
                             "  return %a, %0 : tensor<32768xf32>, tensor<128x256xf32>\n}\n";
  pj_handle *client = open_client(1);
  pj_loaded *loaded = compile(client, text);
  float *data = calloc(COUNT, sizeof *data);
  pj_event *event;
  pj_buffer *b = share(client, PJ_SHARED, data, COUNT, &event), *results[2];
  ck_assert_ok(try_execute(loaded, &b, 1, results));
  for (int i = 0; i < 2; i++) ck_assert_ptr_ne(address_of(results[i]), data);
  destroy(PJ_BUFFER_DESTROY, b);
  ck_assert(is_ready(event));
  destroy(PJ_EVENT_DESTROY, event);
  for (int i = 0; i < 2; i++) destroy(PJ_BUFFER_DESTROY, results[i]);
  free(data);
  destroy(PJ_LOADED_DESTROY, loaded);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

START_TEST(donated_arguments)
{
  const runnable p = open_program(donating, (const float[]){4, 5, 6});
  pj_buffer *const x = p.x, *const y = p.y, *result;
  ck_assert_error(try_execute(p.loaded, (pj_buffer *[]){x, x}, 2, &result), TS_INVALID_ARGUMENT,
                  "argument 0 is donated, and argument 1 is the same buffer");
  ck_assert(!is_deleted(x));
  destroy(AT_BUFFER_HOLD, x); /* a caller that reads in place keeps the elements */
  const float *held = address_of(x);
  ck_assert_ok(try_execute(p.loaded, (pj_buffer *[]){x, y}, 2, &result));
  ck_assert(is_deleted(x));
  ck_assert(!is_deleted(y));
  check_floats(result, (const float[]){4, 10, 18}, 3);
  ck_assert_float_eq(held[1], 2);
  destroy(AT_BUFFER_LET_GO, x);
  ck_assert_error(call(AT_BUFFER_LET_GO, &PJ_ARGS(.object = x)), TS_FAILED_PRECONDITION, "no external reference");
  ck_assert_error(call(AT_BUFFER_HOLD, &PJ_ARGS(.object = x)), TS_INVALID_ARGUMENT, "deleted");
  pj_buffer *again;
  ck_assert_error(try_execute(p.loaded, (pj_buffer *[]){y, x}, 2, &again), TS_INVALID_ARGUMENT, "deleted or donated");
  ck_assert(!is_deleted(y)); /* it came back */
  check_floats(y, (const float[]){4, 5, 6}, 3);
  destroy(PJ_BUFFER_DESTROY, result);
  close_program(&p);
}
END_TEST

/* It is refused if one of them is donated, and the buffer keeps its elements. */
START_TEST(one_buffer_for_two_arguments)
{
  static const char *const marks[] = {"", " {jax.buffer_donor = true}"};
  pj_handle *client = open_client(1);
  for (int donated = 0; donated < 4; donated++) {
    char text[300];
    snprintf(text, sizeof text,
             "func.func @main(%%a: tensor<3xf32>%s, %%b: tensor<3xf32>%s) -> tensor<3xf32> {\n"
             "  %%0 = stablehlo.add %%a, %%b : tensor<3xf32>\n  return %%0 : tensor<3xf32>\n}\n",
             marks[donated & 1], marks[donated >> 1]);
    pj_loaded *loaded = compile(client, text);
    pj_buffer *x = place(client, PJ_F32, (const float[]){1, 2, 3}, 3), *result;
    ts_status status = try_execute(loaded, (pj_buffer *[]){x, x}, 2, &result);
    if (donated) {
      ck_assert_error(status, TS_INVALID_ARGUMENT,
                      donated == 2 ? "argument 1 is donated, and argument 0 is the same buffer"
                                   : "argument 0 is donated, and argument 1 is the same buffer");
      check_floats(x, (const float[]){1, 2, 3}, 3);
    } else {
      ck_assert_ok(status);
      check_floats(result, (const float[]){2, 4, 6}, 3);
      destroy(PJ_BUFFER_DESTROY, result);
    }
    destroy(PJ_BUFFER_DESTROY, x);
    destroy(PJ_LOADED_DESTROY, loaded);
  }
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

START_TEST(arguments_that_are_refused)
{
  pj_handle *client = open_client(2);
  pj_loaded *loaded = compile(client, sum);
  const float data[] = {1, 2, 3};
  pj_buffer *x = place(client, PJ_F32, data, 3), *small = place(client, PJ_F32, data, 2),
            *integers = place(client, PJ_S32, data, 3), *far = place_on(client, 1, PJ_F32, data, 3), *result;
  ck_assert_error(try_execute(loaded, &x, 1, &result), TS_INVALID_ARGUMENT, "1 arguments: the program takes 2");
  ck_assert_error(try_execute(loaded, (pj_buffer *[]){x, small}, 2, &result), TS_INVALID_ARGUMENT,
                  "the program takes f32[3]");
  ck_assert_error(try_execute(loaded, (pj_buffer *[]){integers, x}, 2, &result), TS_INVALID_ARGUMENT,
                  "argument 0 is of PJRT's type 4");
  ck_assert_error(try_execute(loaded, (pj_buffer *[]){x, far}, 2, &result), TS_INVALID_ARGUMENT,
                  "argument 1 is on TesseraDevice(id=1)");
  ck_assert_error(try_execute(loaded, (pj_buffer *[]){x, NULL}, 2, &result), TS_INVALID_ARGUMENT, "there is no buffer");
  destroy(PJ_BUFFER_DESTROY, x);
  destroy(PJ_BUFFER_DESTROY, small);
  destroy(PJ_BUFFER_DESTROY, integers);
  destroy(PJ_BUFFER_DESTROY, far);
  destroy(PJ_LOADED_DESTROY, loaded);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

/* Two replicas, on devices that the options name. */
START_TEST(replicas_run_on_their_devices)
{
  static const char options[] = {0x1a, 14, 0x20, 2, 0x28, 1, 0x4a, 8, 8, 2, 0x1a, 4, 0x0a, 2, 1, 0};
  pj_handle *client = open_client(2);
  pj_loaded *loaded;
  ck_assert_ok(try_compile_with(client, sum, options, sizeof options, &loaded));
  pj_args args = PJ_ARGS(.list = {.object = loaded});
  ck_assert_ok(call(AT_LOADED_DEVICES, &args));
  ck_assert_uint_eq(args.list.count, 2);
  ck_assert_ptr_eq(((pj_device *const *)args.list.items)[0], client->list[1]);
  args = PJ_ARGS(.object = loaded);
  ck_assert_ok(call(AT_LOADED_ASSIGNMENT, &args));
  ck_assert_mem_eq(args.save.bytes, "\x08\x02\x10\x01\x1a\x04\x0a\x02\x01\x00", 10);
  args.save.destroy(args.save.saved);
  pj_buffer *x = place_on(client, 1, PJ_F32, (const float[]){1, 2, 3}, 3),
            *y = place(client, PJ_F32, (const float[]){4, 5, 6}, 3), *results[2];
  args = PJ_ARGS(.execute = {.loaded = loaded,
                             .args = (pj_buffer *const *[]){(pj_buffer *[]){x, x}, (pj_buffer *[]){y, y}},
                             .device_count = 2,
                             .arg_count = 2,
                             .results = (pj_buffer * *[]){&results[0], &results[1]}});
  ck_assert_ok(call(PJ_EXECUTE, &args));
  check_floats(results[0], (const float[]){2, 4, 6}, 3);
  check_floats(results[1], (const float[]){8, 10, 12}, 3);
  for (int i = 0; i < 2; i++) destroy(PJ_BUFFER_DESTROY, results[i]);
  args.execute.args = (pj_buffer *const *[]){(pj_buffer *[]){x, x}, (pj_buffer *[]){x, y}};
  ck_assert_error(call(PJ_EXECUTE, &args), TS_INVALID_ARGUMENT, "argument 0 is on TesseraDevice(id=1)");
  args.execute.device_count = 1;
  ck_assert_error(call(PJ_EXECUTE, &args), TS_INVALID_ARGUMENT, "arguments for 1 devices: the executable has 2");
  destroy(PJ_BUFFER_DESTROY, x);
  destroy(PJ_BUFFER_DESTROY, y);
  destroy(PJ_LOADED_DESTROY, loaded);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

START_TEST(programs_that_are_refused)
{
  pj_handle *client = open_client(1);
  pj_loaded *loaded;
  static const char partitions[] = {0x1a, 4, 0x20, 1, 0x28, 2}, replicas[] = {0x1a, 2, 0x20, 2},
                    device[] = {0x1a, 6, 0x4a, 4, 0x1a, 2, 8, 3}, cut[] = {0x1a, 4, 0x20},
                    endless[] = {0x1a, (char)0xff};
  const pj_program hlo = {.size = sizeof hlo, .code = "x", .code_size = 1, .format = "hlo", .format_size = 3};
  ck_assert_error(try_compile_with(client, sum, partitions, sizeof partitions, &loaded), TS_INVALID_ARGUMENT,
                  "1 replicas of 2 partitions: the client has 1 devices");
  ck_assert_error(try_compile_with(client, sum, replicas, sizeof replicas, &loaded), TS_INVALID_ARGUMENT,
                  "2 replicas of 1 partitions: the client has 1");
  ck_assert_error(try_compile_with(client, sum, device, sizeof device, &loaded), TS_INVALID_ARGUMENT,
                  "there is no device 3");
  ck_assert_error(try_compile_with(client, sum, cut, sizeof cut, &loaded), TS_INVALID_ARGUMENT, "no protocol buffer");
  ck_assert_error(try_compile_with(client, sum, endless, sizeof endless, &loaded), TS_INVALID_ARGUMENT,
                  "no protocol buffer");
  ck_assert_error(try_compile_with(client, "", least, sizeof least, &loaded), TS_INVALID_ARGUMENT,
                  "PJRT_Client_Compile");
  ck_assert_error(try_compile_with(client, "ML\xefR", least, sizeof least, &loaded), TS_INVALID_ARGUMENT, "byte 4");
  ck_assert_error(call(PJ_COMPILE, &PJ_ARGS(.compile = {.client = client, .program = &hlo})), TS_UNIMPLEMENTED,
                  "the format \"hlo\"");
  for (size_t size = 1; size < sizeof sum - 1; size += 7) { /* cut anywhere, it is an error, and never a program */
    char *text = strndup(sum, size);
    ts_status status = try_compile_with(client, text, least, sizeof least, &loaded);
    ck_assert_int_ne(ts_status_code(status), TS_OK);
    ts_status_free(status);
    free(text);
  }
  ck_assert_ok(try_compile_with(client, sum, NULL, 0, &loaded)); /* without options they are the least */
  destroy(PJ_LOADED_DESTROY, loaded);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

/* Options that a program names for one compilation: {name: value}. */
START_TEST(options_of_one_compilation)
{
  static const char known[] = "\x3a\x0b\x0a\x05xla_a\x12\x02\x10\x01",
                    other[] = "\x3a\x09\x0a\x03"
                              "foo\x12\x02\x18\x03",
                    prefix[] = "\x3a\x06\x0a\x04xla_", control[] = "\x3a\x03\x0a\x01\x07", nameless[] = "\x3a\x00",
                    cut[] = "\x3a\x04\x0a\x05xl", empty[] = "\x3a\x02\x0a\x00";
  pj_handle *client = open_client(1);
  pj_loaded *loaded;
  ck_assert_ok(try_compile_with(client, sum, known, sizeof known - 1, &loaded));
  destroy(PJ_LOADED_DESTROY, loaded);
  const struct {
    const char *options, *words;
    size_t size;
  } rows[] = {{other, "No such compile option: 'foo'", sizeof other - 1},
              {prefix, "No such compile option: 'xla_'", sizeof prefix - 1},
              {control, "No such compile option: ''", sizeof control - 1},
              {nameless, "No such compile option: ''", sizeof nameless - 1},
              {empty, "No such compile option: ''", sizeof empty - 1},
              {cut, "no protocol buffer", sizeof cut - 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    ck_assert_error(try_compile_with(client, sum, rows[i].options, rows[i].size, &loaded), TS_INVALID_ARGUMENT,
                    rows[i].words);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

static ts_status try_load(pj_handle *client, const char *bytes, size_t size, pj_loaded **out) {
  pj_args args = PJ_ARGS(.load = {.client = client, .bytes = bytes, .byte_count = size});
  ts_status status = call(PJ_LOAD, &args);
  *out = status ? NULL : args.load.loaded;
  return status;
}

START_TEST(executables_are_saved_and_loaded)
{
  pj_handle *client = open_client(1);
  pj_loaded *loaded = compile(client, sum), *again;
  pj_args args = PJ_ARGS(.loaded = {.loaded = loaded});
  ck_assert_ok(call(PJ_LOADED_EXECUTABLE, &args));
  pj_executable *e = args.loaded.executable;
  pj_args saved = PJ_ARGS(.save = {.executable = e});
  ck_assert_ok(call(PJ_EXECUTABLE_SERIALIZE, &saved));
  size_t size = saved.save.byte_count;
  char *bytes = malloc(size);
  memcpy(bytes, saved.save.bytes, size);
  saved.save.destroy(saved.save.saved);
  for (size_t cut = 0; cut < size; cut++) {
    char *less_of_it = malloc(cut + 1);
    memcpy(less_of_it, bytes, cut);
    ts_status status = try_load(client, less_of_it, cut, &again);
    ck_assert(ts_status_code(status) == TS_INVALID_ARGUMENT || ts_status_code(status) == TS_DATA_LOSS);
    ts_status_free(status);
    free(less_of_it);
  }
  for (size_t at = 0; at < size; at += 5) {
    bytes[at] ^= 0x10;
    ts_status status = try_load(client, bytes, size, &again);
    ck_assert(ts_status_code(status) == TS_INVALID_ARGUMENT || ts_status_code(status) == TS_DATA_LOSS);
    ts_status_free(status);
    bytes[at] ^= 0x10;
  }
  ck_assert_ok(try_load(client, bytes, size, &again));
  pj_buffer *x = place(client, PJ_F32, (const float[]){1, 2, 3}, 3), *result;
  ck_assert_ok(try_execute(again, (pj_buffer *[]){x, x}, 2, &result));
  check_floats(result, (const float[]){2, 4, 6}, 3);
  pj_args first = PJ_ARGS(.text = {.object = loaded}), second = PJ_ARGS(.text = {.object = again});
  ck_assert_ok(call(AT_LOADED_FINGERPRINT, &first));
  ck_assert_ok(call(AT_LOADED_FINGERPRINT, &second));
  ck_assert_str_eq(first.text.text, second.text.text);
  pj_program program = {.size = sizeof program};
  ck_assert_ok(call(AT_EXECUTABLE_OPTIMIZED, &PJ_ARGS(.optimized = {.executable = e, .program = &program})));
  ck_assert_uint_eq(program.code_size, sizeof sum - 1);
  char *text = malloc(program.code_size);
  program.code = text;
  ck_assert_ok(call(AT_EXECUTABLE_OPTIMIZED, &PJ_ARGS(.optimized = {.executable = e, .program = &program})));
  ck_assert_mem_eq(text, sum, sizeof sum - 1);
  program.code_size--;
  ck_assert_error(call(AT_EXECUTABLE_OPTIMIZED, &PJ_ARGS(.optimized = {.executable = e, .program = &program})),
                  TS_INVALID_ARGUMENT, "room");
  free(text);
  free(bytes);
  destroy(PJ_BUFFER_DESTROY, x);
  destroy(PJ_BUFFER_DESTROY, result);
  destroy(PJ_EXECUTABLE_DESTROY, e);
  destroy(PJ_LOADED_DESTROY, loaded);
  destroy(PJ_LOADED_DESTROY, again);
  destroy(PJ_CLIENT_DESTROY, client);
}
END_TEST

/* ---- all of it without memory */

static pj_buffer *try_place(pj_handle *client) {
  pj_args args = from_host(client, PJ_F32, (const float[]){1, 2, 3}, (int64_t[]){3}, 1);
  if (!ts_status_consume_ok(call(PJ_FROM_HOST, &args))) return NULL;
  destroy(PJ_EVENT_DESTROY, args.from_host.read);
  return args.from_host.buffer;
}

/* What JAX does for a call, with any error on the way. */
static void try_all(void) {
  pj_args args = PJ_ARGS(.object = NULL);
  pj_loaded *loaded = NULL;
  pj_buffer *result;
  if (!ts_status_consume_ok(call(PJ_CLIENT_CREATE, &args))) return;
  pj_handle *client = args.create.client;
  pj_buffer *x = try_place(client), *y = try_place(client);
  ts_status_free(try_compile_with(client, donating, least, sizeof least, &loaded));
  if (loaded && x && y && ts_status_consume_ok(try_execute(loaded, (pj_buffer *[]){x, y}, 2, &result)))
    destroy(PJ_BUFFER_DESTROY, result);
  destroy(PJ_BUFFER_DESTROY, x);
  destroy(PJ_BUFFER_DESTROY, y);
  destroy(PJ_LOADED_DESTROY, loaded);
  destroy(PJ_CLIENT_DESTROY, client);
}

START_TEST(each_allocation_may_fail)
{
  try_all(); /* caches */
  CK_FAIL_EACH_ALLOCATION(try_all());
}
END_TEST

/* ---- many threads */

static void *execute_often(void *arg) {
  const runnable *p = arg;
  for (int i = 0; i < 50; i++) {
    pj_buffer *x = place(p->client, PJ_F32, (const float[]){1, 2, 3}, 3), *result;
    ck_assert_ok(try_execute(p->loaded, (pj_buffer *[]){x, p->y}, 2, &result));
    check_floats(result, (const float[]){4, 10, 18}, 3);
    destroy(PJ_BUFFER_DESTROY, result);
    destroy(PJ_BUFFER_DESTROY, x);
  }
  return NULL;
}

START_TEST(threads_share_a_client)
{
  runnable p = open_program(donating, (const float[]){4, 5, 6});
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, execute_often, &p), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  close_program(&p);
}
END_TEST

/* ---- by our own client, from the file that users load */

START_TEST(the_shared_object_serves_our_client)
{
  const ts_platform *p = &ts_platform_pjrt;
  static const char text[] = "graph @main(%0: f32[3], %1: f32[3]) -> (f32[3]) {\n  %2 = add %0, %1 : f32[3]\n"
                             "  return %2\n}\n";
  end e = {0};
  ts_opened opened = {0};
  ts_graph *graph;
  ts_program program = {0};
  setenv("TESSERA_PJRT_PLUGIN", test_pjrt_file("pjrt_tessera.so"), 1);
  p->open(&(ts_open_options){.name = "tessera", .memory_limit = -1}, &opened, DONE(&e));
  ck_assert_ok(wait_for(&e));
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  p->compile(opened.client, graph, &(ts_program_options){0}, &program, DONE(&e));
  ck_assert_ok(wait_for(&e));
  ck_assert_uint_eq(program.result_count, 1);
  p->release_program(program.program);
  p->close(opened.client);
  ts_graph_destroy(graph);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("plugin");
  TCase *t = tcase_create("plugin");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, all_functions_refuse_small_blocks);
  tcase_add_test(t, blocks_without_padding);
  tcase_add_test(t, options_of_clients);
  tcase_add_test(t, devices_and_topologies);
  tcase_add_test(t, elements_with_strides);
  tcase_add_test(t, rows_with_gaps);
  tcase_add_test(t, transfers_that_are_refused);
  tcase_add_test(t, small_types_fill_a_byte);
  tcase_add_test(t, bytes_that_are_shared);
  tcase_add_test(t, events_that_are_destroyed_early);
  tcase_add_test(t, a_program_runs);
  tcase_add_test(t, booleans_are_booleans);
  tcase_add_test(t, results_have_elements_of_their_own);
  tcase_add_test(t, donated_arguments);
  tcase_add_test(t, one_buffer_for_two_arguments);
  tcase_add_test(t, arguments_that_are_refused);
  tcase_add_test(t, replicas_run_on_their_devices);
  tcase_add_test(t, programs_that_are_refused);
  tcase_add_test(t, options_of_one_compilation);
  tcase_add_test(t, executables_are_saved_and_loaded);
  tcase_add_test(t, each_allocation_may_fail);
  tcase_add_test(t, threads_share_a_client);
  tcase_add_test(t, the_shared_object_serves_our_client);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
