#include "plugin_calls.h"

typedef union entry {
  void (*plain)(void);
  pj_error *(*call)(pj_args *args);
  void (*silent)(pj_args *args);
} entry;

static entry function(int place) { return (entry){GetPjrtApi()->functions[place]}; }

ts_status call(int place, pj_args *args) {
  static const ts_code codes[] = {[PJ_INVALID_ARGUMENT] = TS_INVALID_ARGUMENT,
                                  [PJ_OUT_OF_RANGE] = TS_OUT_OF_RANGE,
                                  [PJ_FAILED_PRECONDITION] = TS_FAILED_PRECONDITION,
                                  [PJ_UNIMPLEMENTED] = TS_UNIMPLEMENTED,
                                  [PJ_DATA_LOSS] = TS_DATA_LOSS,
                                  [PJ_RESOURCE_EXHAUSTED] = TS_RESOURCE_EXHAUSTED,
                                  [PJ_INTERNAL] = TS_INTERNAL};
  pj_error *error = function(place).call(args);
  if (!error) return TS_SUCCESS;
  pj_args text = PJ_ARGS(.message = {.error = error}), code = PJ_ARGS(.code = {.error = error});
  function(PJ_ERROR_MESSAGE).silent(&text);
  ck_assert_ptr_null(function(PJ_ERROR_CODE).call(&code));
  ck_assert_int_gt(code.code.code, 0);
  ts_status status = ts_error(codes[code.code.code], "%.*s", (int)text.message.text_size, text.message.text);
  function(PJ_ERROR_DESTROY).silent(&PJ_ARGS(.object = error));
  return status;
}

pj_handle *open_client(int devices) {
  const pj_named option = {sizeof option, NULL, "host_devices", 12, PJ_INT64, {.integer = devices}, 1};
  pj_args args = PJ_ARGS(.create = {.options = &option, .option_count = 1});
  ck_assert_ok(call(PJ_CLIENT_CREATE, &args));
  return args.create.client;
}

void destroy(int place, void *object) { ck_assert_ok(call(place, &PJ_ARGS(.object = object))); }

const char least[6] = {0x1a, 4, 0x20, 1, 0x28, 1};

ts_status try_compile_with(pj_handle *client, const char *text, const char *options, size_t size, pj_loaded **out) {
  const pj_program program = {
      .size = sizeof program, .code = text, .code_size = strlen(text), .format = "mlir", .format_size = 4};
  pj_args args = PJ_ARGS(.compile = {.client = client, .program = &program, .options = options, .options_size = size});
  ts_status status = call(PJ_COMPILE, &args);
  *out = status ? NULL : args.compile.loaded;
  return status;
}

pj_loaded *compile(pj_handle *client, const char *text) {
  pj_loaded *loaded;
  ck_assert_ok(try_compile_with(client, text, least, sizeof least, &loaded));
  return loaded;
}

pj_args from_host(pj_handle *client, int type, const void *data, const int64_t *dims, size_t rank) {
  return PJ_ARGS(
          .from_host = {
              .client = client, .data = data, .type = type, .dims = dims, .rank = rank, .device = client->list[0]});
}

pj_buffer *place_on(pj_handle *client, int device, int type, const void *data, int64_t count) {
  pj_args args = from_host(client, type, data, &count, 1);
  args.from_host.device = client->list[device];
  ck_assert_ok(call(PJ_FROM_HOST, &args));
  destroy(PJ_EVENT_DESTROY, args.from_host.read);
  return args.from_host.buffer;
}

pj_buffer *place(pj_handle *client, int type, const void *data, int64_t count) {
  return place_on(client, 0, type, data, count);
}

pj_buffer *share(pj_handle *client, int semantics, const float *data, int64_t count, pj_event **out_event) {
  pj_args args = from_host(client, PJ_F32, data, &count, 1);
  args.from_host.semantics = semantics;
  ck_assert_ok(call(PJ_FROM_HOST, &args));
  *out_event = args.from_host.read;
  return args.from_host.buffer;
}

const void *address_of(pj_buffer *buffer) {
  pj_args args = PJ_ARGS(.pointer = {.object = buffer});
  ck_assert_ok(call(AT_BUFFER_DATA, &args));
  return args.pointer.pointer;
}

void read_back(pj_buffer *buffer, void *to, size_t size) {
  pj_args args = PJ_ARGS(.to_host = {.buffer = buffer, .to = to, .to_size = size});
  ck_assert_ok(call(PJ_BUFFER_TO_HOST, &args));
  destroy(PJ_EVENT_DESTROY, args.to_host.event);
}

void check_floats(pj_buffer *buffer, const float *expected, size_t count) {
  float got[64];
  read_back(buffer, got, sizeof got);
  for (size_t i = 0; i < count; i++) ck_assert_float_eq(got[i], expected[i]);
}

ts_status try_execute(pj_loaded *loaded, pj_buffer *const *buffers, size_t count, pj_buffer **results) {
  pj_execute_options options = {.size = sizeof options};
  pj_event *complete[1] = {NULL};
  pj_buffer *const *const lists[] = {buffers};
  pj_buffer **const outputs[] = {results};
  pj_args args = PJ_ARGS(.execute = {.loaded = loaded,
                                     .options = &options,
                                     .args = lists,
                                     .device_count = 1,
                                     .arg_count = count,
                                     .results = outputs,
                                     .complete = complete});
  ts_status status = call(PJ_EXECUTE, &args);
  if (!status) destroy(PJ_EVENT_DESTROY, complete[0]);
  return status;
}

runnable open_program(const char *text, const float y[3]) {
  pj_handle *client = open_client(1);
  return (runnable){client, compile(client, text), place(client, PJ_F32, (const float[]){1, 2, 3}, 3),
                    place(client, PJ_F32, y, 3)};
}

void close_program(const runnable *program) {
  destroy(PJ_BUFFER_DESTROY, program->x);
  destroy(PJ_BUFFER_DESTROY, program->y);
  destroy(PJ_LOADED_DESTROY, program->loaded);
  destroy(PJ_CLIENT_DESTROY, program->client);
}
