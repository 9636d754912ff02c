/* A plugin of PJRT for tests: its device is the interpreter, its programs are StableHLO that c_src/stablehlo reads. It
 * answers inline, late and out of order, and fails on request (plugin.h). Clients have the options `devices`, `manner`
 * ("inline", "late", "mixed"), `fail_every` and `cpu`; the manner holds for the whole process. With `hangs` a client is
 * never made, with `waits_for` not while there is a file of that name; at the operation number `abort_at` the process
 * ends, `hang_at` never returns, `never_at` has no end, and from `full_at` on there is no memory. With `leaves` the
 * process starts another one before it ends, and with `never_compiles` its compiler never returns. It works by the tasks of tasks.h. */
#include "plugin.h"

#include "kernel/ref/ref.h"
#include "pjrt/client.h"
#include "stablehlo/read.h"
#include "tasks.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic bool held, stalled, copies, other_layout;
static char last_text[8192]; /* under the lock; the begin of it */

/* ---- events */

static pj_error *event_destroy(pj_args *args) {
  BEGIN(EVENT_DESTROY, object);
  pthread_mutex_lock(&lock);
  drop_event(args->object);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static pj_error *event_is_ready(pj_args *args) {
  BEGIN(EVENT_IS_READY, event);
  pthread_mutex_lock(&lock);
  args->event.is_ready = args->event.event->is_ready;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static pj_error *event_error(pj_args *args) {
  BEGIN(EVENT_ERROR, object);
  if (!args->event.event->is_ready) atomic_fetch_add(&wrong, 1);
  return error_of_event(args->event.event);
}

static pj_error *event_await(pj_args *args) {
  BEGIN(EVENT_AWAIT, object);
  pj_event *event = args->event.event;
  wait_for_event(event);
  return error_of_event(event);
}

static pj_error *event_on_ready(pj_args *args) {
  BEGIN(EVENT_ON_READY, on_ready);
  pj_event *event = args->on_ready.event;
  pthread_mutex_lock(&lock);
  bool now = event->is_ready;
  if (!now) {
    callback *c = made(sizeof *c);
    *c = (callback){event->callbacks, args->on_ready.call, args->on_ready.arg};
    event->callbacks = c;
  }
  pthread_mutex_unlock(&lock);
  if (now) args->on_ready.call(error_of_event(event), args->on_ready.arg);
  return NULL;
}

/* ---- errors, the plugin, clients */

static pj_error *error_destroy(pj_args *args) {
  atomic_fetch_add(&calls[PJ_ERROR_DESTROY], 1);
  unmade(args->object);
  return NULL;
}

static pj_error *error_message(pj_args *args) {
  args->message.text = args->message.error->text;
  args->message.text_size = strlen(args->message.error->text);
  return NULL;
}

static pj_error *error_code(pj_args *args) {
  BEGIN(ERROR_CODE, code);
  args->code.code = ((const pj_error *)args->code.error)->code;
  return NULL;
}

static pj_error *initialize(pj_args *args) {
  BEGIN(INITIALIZE, object);
  return NULL;
}

static bool is_named(const pj_named *option, const char *name) {
  return option->name_size == strlen(name) && memcmp(option->name, name, option->name_size) == 0;
}

/* The field of an option that counts operations; NULL for others. */
static int64_t *count_of(pj_handle *client, const pj_named *option) {
  if (is_named(option, "fail_every")) return &client->fail_every;
  if (is_named(option, "abort_at")) return &client->abort_at;
  if (is_named(option, "hang_at")) return &client->hang_at;
  if (is_named(option, "full_at")) return &client->full_at;
  return is_named(option, "never_at") ? &client->never_at : NULL;
}

static pj_error *set_option(pj_handle *client, const pj_named *option) {
  if (option->size < sizeof *option) return error_of(PJ_INVALID_ARGUMENT, "the option is too small");
  if (is_named(option, "devices") && option->kind == PJ_INT64 && option->integer > 0 && option->integer <= 64) {
    client->device_count = (int)option->integer;
  } else if (count_of(client, option) && option->kind == PJ_INT64) {
    *count_of(client, option) = option->integer;
  } else if (is_named(option, "hangs") && option->kind == PJ_BOOL) {
    while (option->boolean) pause();
  } else if (is_named(option, "waits_for") && option->kind == PJ_STRING) {
    while (access(option->string, F_OK) == 0) usleep(1000);
  } else if (is_named(option, "leaves") && option->kind == PJ_BOOL) {
    client->leaves = option->boolean;
  } else if (is_named(option, "never_compiles") && option->kind == PJ_BOOL) {
    client->never_compiles = option->boolean;
  } else if (is_named(option, "cpu") && option->kind == PJ_BOOL) {
    client->cpu = option->boolean;
  } else if (is_named(option, "manner") && option->kind == PJ_STRING) {
    atomic_store(&manner, option->string[0] == 'i' ? TEST_INLINE : option->string[0] == 'l' ? TEST_LATE : TEST_MIXED);
  } else if (!(is_named(option, "memory_fraction") && option->kind == PJ_FLOAT) &&
             !(is_named(option, "preallocate") && option->kind == PJ_BOOL)) {
    char text[128];
    snprintf(text, sizeof text, "unexpected option %.*s", (int)option->name_size, option->name);
    return error_of(PJ_INVALID_ARGUMENT, text);
  }
  return NULL;
}

static void hold_now(void) {
  while (atomic_load(&held)) sched_yield();
}

static pj_error *client_create(pj_args *args) {
  BEGIN(CLIENT_CREATE, create);
  hold_now();
  pj_handle *client = made(sizeof *client);
  client->users = 1;
  client->device_count = 4;
  for (size_t i = 0; i < args->create.option_count; i++) {
    pj_error *e = set_option(client, &args->create.options[i]);
    if (!e) continue;
    unmade(client);
    return e;
  }
  for (int i = 0; i < 64; i++) {
    client->devices[i] = (pj_device){i, client};
    client->list[i] = &client->devices[i];
  }
  args->create.client = client;
  return NULL;
}

static pj_error *client_destroy(pj_args *args) {
  BEGIN(CLIENT_DESTROY, object);
  pj_handle *client = args->object;
  pthread_mutex_lock(&lock);
  if (client->users > 1) atomic_fetch_add(&wrong, 1);
  drop_client(client);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static pj_error *client_name(pj_args *args) {
  BEGIN(CLIENT_NAME, client);
  args->client.text = args->client.client->cpu ? "cpu-interpreter" : "test-interpreter";
  args->client.text_size = args->client.client->cpu ? 3 : 4; /* not all of it: texts have a length */
  return NULL;
}

static pj_error *client_version(pj_args *args) {
  BEGIN(CLIENT_VERSION, client);
  args->client.text = "1";
  args->client.text_size = 1;
  return NULL;
}

static pj_error *client_devices(pj_args *args) {
  BEGIN(CLIENT_DEVICES, devices);
  args->devices.devices = args->devices.client->list;
  args->devices.count = (size_t)args->devices.client->device_count;
  return NULL;
}

static pj_error *device_description(pj_args *args) {
  BEGIN(DEVICE_DESCRIPTION, device);
  args->device.description = (pj_description *)args->device.device;
  return NULL;
}

static pj_error *description_kind(pj_args *args) {
  BEGIN(DESCRIPTION_KIND, kind);
  args->kind.text = "interpreter";
  args->kind.text_size = strlen(args->kind.text);
  return NULL;
}

static pj_error *device_memory(pj_args *args) {
  BEGIN(DEVICE_MEMORY, memory);
  args->memory.limit.number = INT64_C(1) << 40;
  args->memory.limit.given = true;
  return NULL;
}

/* ---- programs */

static pj_error *of_status(ts_status status) {
  if (!status) return NULL;
  static const int codes[] = {
      [TS_INVALID_ARGUMENT] = PJ_INVALID_ARGUMENT, [TS_UNIMPLEMENTED] = PJ_UNIMPLEMENTED, [TS_INTERNAL] = PJ_INTERNAL};
  int number = codes[ts_status_code(status)];
  pj_error *e = error_of(number ? number : PJ_UNKNOWN, ts_status_message(status));
  ts_status_free(status);
  return e;
}

/* The lock is not held. */
static void describe(code *c) {
  const ts_region *root = ts_graph_region(c->graph, TS_ROOT);
  c->result_count = root->results.count / c->replicas;
  c->types = calloc(c->result_count + 1, sizeof *c->types);
  c->ranks = calloc(c->result_count + 1, sizeof *c->ranks);
  c->dims = calloc(c->result_count * TS_MAX_RANK + 1, sizeof *c->dims);
  if (!c->types || !c->ranks || !c->dims) abort();
  int64_t *at = c->dims;
  for (size_t i = 0; i < c->result_count; i++) {
    const ts_value *value = ts_graph_value(c->graph, root->results.data[i]);
    c->types[i] = pj_type(value->dtype);
    c->ranks[i] = (size_t)value->shape->rank;
    for (int32_t d = 0; d < value->shape->rank; d++) *at++ = value->shape->dims[d];
  }
}

/* The text of the list behind `begin`, with its parentheses. */
static ts_text list_after(const char *text, const char *begin) {
  ts_text list = {0};
  const char *from = strstr(text, begin);
  if (!from) abort();
  from = strchr(from, '(');
  ts_text_append_n(&list, from, (size_t)(strchr(from, ')') + 1 - from));
  return list;
}

/* Appends the types of a list so many times. */
static void append_types(const char *list, size_t times, ts_text *out) {
  const char *separator = "";
  ts_text_append(out, "(");
  for (size_t i = 0; i < times; i++) {
    for (const char *at = strstr(list, "tensor<"); at; at = strstr(at + 1, "tensor<")) {
      ts_text_append(out, separator);
      ts_text_append_n(out, at, (size_t)(strchr(at, '>') + 1 - at));
      separator = ", ";
    }
  }
  ts_text_append(out, ")");
}

static size_t count_types(const char *list) {
  size_t count = 0;
  for (const char *at = strstr(list, "tensor<"); at; at = strstr(at + 1, "tensor<")) count++;
  return count;
}

static void append_numbers(const char *format, size_t count, ts_text *out) {
  for (size_t i = 0; i < count; i++) ts_text_format(out, format, i ? ", " : "", i);
}

/* One function that runs the program's function as processes of a grid: the interpreter of the reader. */
static void append_grid(const char *params, const char *results, size_t replicas, ts_text *out) {
  size_t args = replicas * count_types(params), values = replicas * count_types(results);
  const char *type = params;
  ts_text_append(out, "func.func @main(");
  for (size_t i = 0; i < args; i++) {
    type = i % (args / replicas) ? strstr(type + 1, "tensor<") : strstr(params, "tensor<");
    ts_text_format(out, "%s%%a%zu: %.*s", i ? ", " : "", i, (int)(strchr(type, '>') + 1 - type), type);
  }
  ts_text_append(out, ") -> ");
  append_types(results, replicas, out);
  ts_text_format(out, " {\n  %%r:%zu = \"interpreter.run_parallel\"(", values);
  append_numbers("%s%%a%zu", args, out);
  ts_text_append(out, ") {programs = [");
  for (size_t i = 0; i < replicas; i++) ts_text_append(out, i ? ", [@part]" : "[@part]");
  ts_text_append(out, "]} : ");
  append_types(params, replicas, out);
  ts_text_append(out, " -> ");
  append_types(results, replicas, out);
  ts_text_append(out, "\n  func.return ");
  append_numbers("%s%%r#%zu", values, out);
  ts_text_append(out, " : ");
  append_types(results, replicas, out);
  ts_text_append(out, "\n}\n");
}

static pj_error *read_replicas(const char *text, size_t size, size_t replicas, ts_graph **out) {
  ts_text whole = {0}, body = {0};
  ts_text_append_n(&body, text, size);
  char *name = strstr(body.data, "@main(");
  if (!name) abort();
  static const char part[] = {'@', 'p', 'a', 'r', 't'};
  memcpy(name, part, sizeof part);
  ts_text params = list_after(body.data, "@part("), results = list_after(strstr(body.data, ") -> ("), "-> (");
  append_grid(params.data, results.data, replicas, &whole);
  char *begin = strstr(body.data, "func.func public"), *end = strrchr(body.data, '}');
  ts_text_append_n(&whole, begin, (size_t)(end - begin));
  pj_error *e = of_status(ts_stablehlo_read(whole.data, whole.length, out));
  ts_text_deinit(&whole);
  ts_text_deinit(&body);
  ts_text_deinit(&params);
  ts_text_deinit(&results);
  return e;
}

static pj_error *new_code(pj_handle *client, const char *text, size_t size, size_t replicas, pj_loaded **out) {
  ts_graph *graph;
  pj_error *e =
      replicas > 1 ? read_replicas(text, size, replicas, &graph) : of_status(ts_stablehlo_read(text, size, &graph));
  if (e) return e;
  code *c = made(sizeof *c);
  c->refs = 1;
  c->replicas = replicas;
  c->client = client;
  c->graph = graph;
  c->text = malloc(size + 1);
  if (!c->text) abort();
  memcpy(c->text, text, size);
  c->size = size;
  describe(c);
  pthread_mutex_lock(&lock);
  client->users++;
  pthread_mutex_unlock(&lock);
  *out = made(sizeof **out);
  (*out)->code = c;
  return NULL;
}

/* XLA's CPUs need an option that is off, of these bytes: an entry of options that are like the environment's. */
static bool keeps_no_nan(const pj_args *args) {
  static const char off[] = "\x3a\x21\x0a\x1bxla_cpu_enable_fast_min_max\x12\x02\x10";
  return args->compile.client->cpu && !memmem(args->compile.options, args->compile.options_size, off, sizeof off);
}

/* And they need vectors of at most 128 bits, by another one, for an arctangent. */
static bool spoils_arctangent(const pj_args *args) {
  static const char narrow[] = "\x3a\x22\x0a\x1bxla_cpu_prefer_vector_width\x12\x03\x18\x80\x01";
  const pj_program *p = args->compile.program;
  bool has = memmem(p->code, p->code_size, "atan", 4) || memmem(p->code, p->code_size, "complex<", 8);
  bool is = memmem(args->compile.options, args->compile.options_size, narrow, sizeof narrow - 1);
  return args->compile.client->cpu && has != is;
}

static pj_error *compile(pj_args *args) {
  BEGIN(COMPILE, compile);
  hold_now();
  while (args->compile.client->never_compiles) pause();
  const pj_program *p = args->compile.program;
  if (!args->compile.options_size) abort(); /* as others do */
  if (keeps_no_nan(args)) return error_of(PJ_INVALID_ARGUMENT, "this minimum would drop a NaN");
  if (spoils_arctangent(args)) return error_of(PJ_INVALID_ARGUMENT, "this arctangent would be garbage");
  if (p->format_size != 4 || memcmp(p->format, "mlir", 4) != 0) return error_of(PJ_INVALID_ARGUMENT, "unknown format");
  size_t replicas = (size_t)(unsigned char)args->compile.options[3]; /* as c_src/pjrt writes them */
  if (replicas > (size_t)args->compile.client->device_count || replicas > MOST_EVENTS)
    return error_of(PJ_INVALID_ARGUMENT, "more replicas than devices");
  pthread_mutex_lock(&lock);
  snprintf(last_text, sizeof last_text, "%.*s", (int)p->code_size, p->code);
  pthread_mutex_unlock(&lock);
  return new_code(args->compile.client, p->code, p->code_size, replicas, &args->compile.loaded);
}

static const char saved_magic[3] = {'s', 'a', 'v'}; /* then the number of replicas */

static pj_error *load(pj_args *args) {
  BEGIN(LOAD, load);
  hold_now();
  if (args->load.byte_count < 4 || memcmp(args->load.bytes, saved_magic, 3) != 0)
    return error_of(PJ_INVALID_ARGUMENT, "no saved executable");
  pj_error *e = new_code(args->load.client, args->load.bytes + 4, args->load.byte_count - 4,
                         (size_t)args->load.bytes[3], &args->load.loaded);
  if (!e) args->load.loaded->code->is_loaded = true;
  return e;
}

static pj_error *loaded_destroy(pj_args *args) {
  BEGIN(LOADED_DESTROY, object);
  pj_loaded *loaded = args->object;
  pthread_mutex_lock(&lock);
  drop_code(loaded->code);
  pthread_mutex_unlock(&lock);
  unmade(loaded);
  return NULL;
}

static pj_error *loaded_executable(pj_args *args) {
  BEGIN(LOADED_EXECUTABLE, loaded);
  pj_executable *e = made(sizeof *e);
  e->code = args->loaded.loaded->code;
  pthread_mutex_lock(&lock);
  e->code->refs++;
  pthread_mutex_unlock(&lock);
  args->loaded.executable = e;
  return NULL;
}

static pj_error *executable_destroy(pj_args *args) {
  BEGIN(EXECUTABLE_DESTROY, object);
  pj_executable *e = args->object;
  pthread_mutex_lock(&lock);
  drop_code(e->code);
  pthread_mutex_unlock(&lock);
  unmade(e);
  return NULL;
}

static pj_error *executable_outputs(pj_args *args) {
  BEGIN(EXECUTABLE_OUTPUTS, outputs);
  args->outputs.count = args->outputs.executable->code->result_count;
  return NULL;
}

static pj_error *executable_types(pj_args *args) {
  BEGIN(EXECUTABLE_TYPES, types);
  args->types.types = args->types.executable->code->types;
  args->types.count = args->types.executable->code->result_count;
  return NULL;
}

static pj_error *executable_dims(pj_args *args) {
  BEGIN(EXECUTABLE_DIMS, dims);
  args->dims.dims = args->dims.executable->code->dims;
  args->dims.ranks = args->dims.executable->code->ranks;
  args->dims.count = args->dims.executable->code->result_count;
  return NULL;
}

static void free_saved(pj_saved *saved) { unmade(saved); }

/* As with XLA's CPUs, what is saved of an executable that was loaded is not complete. */
static pj_error *executable_serialize(pj_args *args) {
  BEGIN(EXECUTABLE_SERIALIZE, save);
  hold_now();
  const code *c = args->save.executable->code;
  size_t size = c->is_loaded ? c->size / 2 : c->size;
  char *bytes = made(size + 4);
  memcpy(bytes, saved_magic, 3);
  bytes[3] = (char)c->replicas;
  memcpy(bytes + 4, c->text, size);
  args->save.bytes = bytes;
  args->save.byte_count = size + 4;
  args->save.saved = (pj_saved *)bytes;
  args->save.destroy = free_saved;
  return NULL;
}

/* ---- buffers */

/* With a reference for the caller and one for the task, as one of its results. */
static pj_buffer *new_buffer(pj_device *device, ts_dtype dtype, const ts_shape *shape, task *t) {
  pj_buffer *b = made(sizeof *b);
  b->refs = 2;
  b->client = device->client;
  b->device = device;
  b->dtype = dtype;
  ts_shape_copy(&b->shape, shape);
  t->results[t->result_count++] = b;
  pthread_mutex_lock(&lock);
  device->client->users++;
  pthread_mutex_unlock(&lock);
  return b;
}

/* The event of all results. */
static void set_ready(task *t, pj_event *event) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < t->result_count; i++) {
    t->results[i]->ready = event;
    event->refs++;
  }
  pthread_mutex_unlock(&lock);
}

static void add_operand(task *t, pj_buffer *buffer) {
  pthread_mutex_lock(&lock);
  buffer->refs++;
  pthread_mutex_unlock(&lock);
  t->operands[t->operand_count++] = buffer;
}

static void stall_now(void) {
  while (atomic_load(&stalled)) sched_yield();
}

static pj_error *failed_operation(pj_handle *client) {
  stall_now();
  pthread_mutex_lock(&lock);
  bool fails = fails_now(client), hangs = client->operations == client->hang_at;
  pthread_mutex_unlock(&lock);
  if (hangs)
    while (true) pause();
  return fails ? error_of(PJ_UNAVAILABLE, "the plugin failed, as each so many-th time") : NULL;
}

/* The same for an operation that needs memory. */
static pj_error *failed_allocation(pj_handle *client) {
  pj_error *e = failed_operation(client);
  pthread_mutex_lock(&lock);
  bool full = client->full_at && client->operations >= client->full_at;
  pthread_mutex_unlock(&lock);
  return !e && full ? error_of(PJ_RESOURCE_EXHAUSTED, "the device has no memory left") : e;
}

/* The event ends when no buffer has the bytes. */
static void read_in_place(task *t) {
  pj_buffer *b = t->results[0];
  ended *e = made(sizeof *e);
  e->event = t->read;
  if (ts_buffer_wrap(b->dtype, &b->shape, (void *)(uintptr_t)t->from, end_bytes, e, &b->data)) abort();
}

static void read_data(task *t) {
  pj_buffer *b = t->results[0];
  if (ts_buffer_create(ts_pool_default(), b->dtype, &b->shape, &b->data)) abort();
  memcpy(b->data->data, t->from, (size_t)b->data->bytes);
}

/* The event of a task that fails is not left to its buffer, which has no bytes then. */
static pj_event *promise_bytes(task *t) {
  t->read = promise(t, 0);
  if (!t->fail) t->events[0] = NULL;
  return t->read;
}

static pj_error *from_host(pj_args *args) {
  BEGIN(FROM_HOST, from_host);
  ts_dtype dtype;
  ts_shape shape = ts_shape_make((int32_t)args->from_host.rank, args->from_host.dims);
  if (!pj_dtype(args->from_host.type, &dtype)) return error_of(PJ_INVALID_ARGUMENT, "unknown type");
  bool shared = args->from_host.client->cpu && args->from_host.semantics == PJ_SHARED;
  if (args->from_host.semantics != PJ_UNTIL_TRANSFERRED && (!shared || atomic_load(&copies)))
    return error_of(PJ_UNIMPLEMENTED, "unknown semantics");
  pj_error *e = failed_allocation(args->from_host.client);
  if (e) return e;
  task *t = new_task(PJ_FROM_HOST, shared ? read_in_place : read_data);
  t->from = args->from_host.data;
  args->from_host.buffer = new_buffer(args->from_host.device, dtype, &shape, t);
  args->from_host.read = shared ? promise_bytes(t) : promise(t, 0);
  pj_event *ready = new_event();
  t->events[1] = ready;
  set_ready(t, ready);
  post(t);
  return NULL;
}

static void write_data(task *t) { memcpy(t->to, t->operands[0]->data->data, t->size); }

static bool is_row_major(const pj_layout *layout, const ts_shape *shape) {
  if (!layout) return true;
  bool right = layout->kind == 0 && layout->order.rank == (size_t)shape->rank && !layout->order.tile_count;
  for (int32_t i = 0; right && i < shape->rank; i++) right = layout->order.minor_to_major[i] == shape->rank - 1 - i;
  return right;
}

static pj_error *to_host(pj_args *args) {
  BEGIN(BUFFER_TO_HOST, to_host);
  pj_buffer *b = args->to_host.buffer;
  if (!is_row_major(args->to_host.layout, &b->shape)) return error_of(PJ_UNIMPLEMENTED, "another layout");
  if (args->to_host.to_size < (size_t)ts_shape_bytes(&b->shape, b->dtype))
    return error_of(PJ_INVALID_ARGUMENT, "there is too little room");
  pj_error *e = failed_operation(b->client);
  if (e) return e;
  task *t = new_task(PJ_BUFFER_TO_HOST, write_data);
  add_operand(t, b);
  t->to = args->to_host.to;
  t->size = (size_t)ts_shape_bytes(&b->shape, b->dtype);
  args->to_host.event = promise(t, 0);
  post(t);
  return NULL;
}

static void share_data(task *t) {
  ts_buffer_retain(t->operands[0]->data);
  t->results[0]->data = t->operands[0]->data;
}

static pj_error *to_device(pj_args *args) {
  BEGIN(BUFFER_TO_DEVICE, to_device);
  stall_now();
  pj_buffer *b = args->to_device.buffer;
  if (b->device == args->to_device.device) return error_of(PJ_INVALID_ARGUMENT, "the buffer is there already");
  task *t = new_task(PJ_BUFFER_TO_DEVICE, share_data);
  add_operand(t, b);
  args->to_device.copy = new_buffer(args->to_device.device, b->dtype, &b->shape, t);
  pj_event *ready = new_event();
  t->events[0] = ready;
  set_ready(t, ready);
  post(t);
  return NULL;
}

static pj_error *buffer_destroy(pj_args *args) {
  BEGIN(BUFFER_DESTROY, object);
  pthread_mutex_lock(&lock);
  drop_buffer(args->object);
  pthread_mutex_unlock(&lock);
  tell_owners();
  return NULL;
}

static pj_error *buffer_is_on_cpu(pj_args *args) {
  BEGIN(BUFFER_IS_ON_CPU, flag);
  args->flag.yes = ((pj_buffer *)args->flag.object)->client->cpu;
  return NULL;
}

static pj_error *buffer_size(pj_args *args) {
  BEGIN(BUFFER_SIZE, count);
  const pj_buffer *b = args->count.object;
  args->count.count = ts_shape_bytes(&b->shape, b->dtype);
  return NULL;
}

static pj_error *buffer_layout(pj_args *args) {
  BEGIN(BUFFER_LAYOUT, layout);
  static const int64_t orders[2][4] = {{3, 2, 1, 0}, {0, 1, 2, 3}}; /* row-major, and not */
  int32_t rank = args->layout.buffer->shape.rank;
  pj_layout *l = &args->layout.layout;
  if (rank > 4) return error_of(PJ_UNIMPLEMENTED, "the layout of more than 4 dims");
  l->kind = PJ_ORDER;
  l->order.minor_to_major = atomic_load(&other_layout) ? orders[1] : orders[0] + 4 - rank;
  l->order.rank = (size_t)rank;
  l->order.tile_count = 0;
  return NULL;
}

static pj_error *buffer_hold(pj_args *args) {
  BEGIN(BUFFER_HOLD, object);
  pthread_mutex_lock(&lock);
  ((pj_buffer *)args->object)->holders++;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static pj_error *buffer_let_go(pj_args *args) {
  BEGIN(BUFFER_LET_GO, object);
  pthread_mutex_lock(&lock);
  if (((pj_buffer *)args->object)->holders-- < 1) atomic_fetch_add(&wrong, 1);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static pj_error *buffer_address(pj_args *args) {
  BEGIN(BUFFER_ADDRESS, pointer);
  stall_now();
  const pj_buffer *b = args->pointer.object;
  pthread_mutex_lock(&lock);
  if (b->holders < 1 || !b->ready->is_ready) atomic_fetch_add(&wrong, 1);
  args->pointer.pointer = b->data->data;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void take_view(task *t) {
  pj_buffer *b = t->results[0];
  if (ts_buffer_wrap(b->dtype, &b->shape, t->to, end_bytes, t->view, &b->data)) abort();
}

static pj_error *buffer_view(pj_args *args) {
  BEGIN(BUFFER_VIEW, view);
  stall_now();
  ts_dtype dtype;
  ts_shape shape = ts_shape_make((int32_t)args->view.rank, args->view.dims);
  if (!pj_dtype(args->view.type, &dtype)) return error_of(PJ_INVALID_ARGUMENT, "unknown type");
  ended *e = made(sizeof *e);
  *e = (ended){.call = args->view.release, .data = args->view.data, .arg = args->view.arg};
  task *t = new_task(PJ_BUFFER_VIEW, take_view);
  t->to = args->view.data;
  t->view = e;
  args->view.buffer = new_buffer(args->view.device, dtype, &shape, t);
  pj_event *ready = new_event();
  t->events[0] = ready;
  set_ready(t, ready);
  do_task(t);
  return NULL;
}

static pj_error *buffer_ready(pj_args *args) {
  BEGIN(BUFFER_READY, ready);
  pthread_mutex_lock(&lock);
  args->ready.event = args->ready.buffer->ready;
  args->ready.event->refs++;
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* ---- runs */

static void execute_now(task *t) {
  ts_buffer *operands[64], *results[64] = {0};
  for (size_t i = 0; i < t->operand_count; i++) operands[i] = t->operands[i]->data;
  ts_status status = ts_ref_run(t->code->graph, operands, t->operand_count, ts_pool_default(), results);
  if (status) {
    t->fail = PJ_INTERNAL;
    ts_status_free(status);
    return;
  }
  for (size_t i = 0; i < t->result_count; i++) t->results[i]->data = results[i];
}

/* The device of a replica. */
static pj_device *device_at(const pj_args *args, size_t replica) {
  code *c = args->execute.loaded->code;
  return args->execute.device ? args->execute.device : &c->client->devices[replica];
}

static pj_error *check_argument(const pj_args *args, size_t replica, size_t i) {
  const code *c = args->execute.loaded->code;
  const ts_region *root = ts_graph_region(c->graph, TS_ROOT);
  const pj_buffer *b = args->execute.args[replica][i];
  const ts_value *value = ts_graph_value(c->graph, root->params.data[replica * args->execute.arg_count + i]);
  if (b->dtype != value->dtype || !ts_shape_equal(&b->shape, value->shape))
    return error_of(PJ_INVALID_ARGUMENT, "an argument has another type");
  if (b->device != device_at(args, replica)) return error_of(PJ_INVALID_ARGUMENT, "an argument is on another device");
  return NULL;
}

static pj_error *check_arguments(const pj_args *args) {
  const code *c = args->execute.loaded->code;
  const ts_region *root = ts_graph_region(c->graph, TS_ROOT);
  if (args->execute.device_count != c->replicas || (c->replicas > 1) != !args->execute.device)
    return error_of(PJ_INVALID_ARGUMENT, "the lists are not of all replicas");
  size_t count = args->execute.arg_count * c->replicas;
  if (count != root->params.count || count > 64 || c->result_count * c->replicas > 64)
    return error_of(PJ_INVALID_ARGUMENT, "wrong number of arguments");
  for (size_t i = 0; i < count; i++) {
    pj_error *e = check_argument(args, i / args->execute.arg_count, i % args->execute.arg_count);
    if (e) return e;
  }
  return NULL;
}

static void add_replica(task *t, pj_args *args, size_t replica) {
  const code *c = t->code;
  const ts_region *root = ts_graph_region(c->graph, TS_ROOT);
  for (size_t i = 0; i < args->execute.arg_count; i++) add_operand(t, args->execute.args[replica][i]);
  for (size_t i = 0; i < c->result_count; i++) {
    const ts_value *value = ts_graph_value(c->graph, root->results.data[replica * c->result_count + i]);
    args->execute.results[replica][i] = new_buffer(device_at(args, replica), value->dtype, value->shape, t);
  }
  args->execute.complete[replica] = promise(t, (int)replica);
}

static pj_error *execute(pj_args *args) {
  BEGIN(EXECUTE, execute);
  code *c = args->execute.loaded->code;
  pj_error *e = check_arguments(args);
  if (!e) e = failed_allocation(c->client);
  if (e) return e;
  task *t = new_task(PJ_EXECUTE, execute_now);
  pthread_mutex_lock(&lock);
  c->refs++;
  pthread_mutex_unlock(&lock);
  t->code = c;
  for (size_t i = 0; i < c->replicas; i++) add_replica(t, args, i);
  set_ready(t, t->events[0]);
  post(t);
  return NULL;
}

/* ---- the table */

typedef union entry {
  pj_error *(*call)(pj_args *args);
  void (*plain)(void);
} entry;

/* As pj_api, with the functions. One more function than are known, as newer plugins have. */
static struct {
  size_t size;
  void *extensions;
  pj_version version;
  entry functions[PJ_TABLE + 1];
} table = {.size = sizeof table,
           .version = {.size = 24, .minor = 200},
           .functions = {[PJ_ERROR_DESTROY] = {error_destroy},
                         [PJ_ERROR_MESSAGE] = {error_message},
                         [PJ_ERROR_CODE] = {error_code},
                         [PJ_INITIALIZE] = {initialize},
                         [PJ_EVENT_DESTROY] = {event_destroy},
                         [PJ_EVENT_IS_READY] = {event_is_ready},
                         [PJ_EVENT_ERROR] = {event_error},
                         [PJ_EVENT_AWAIT] = {event_await},
                         [PJ_EVENT_ON_READY] = {event_on_ready},
                         [PJ_CLIENT_CREATE] = {client_create},
                         [PJ_CLIENT_DESTROY] = {client_destroy},
                         [PJ_CLIENT_NAME] = {client_name},
                         [PJ_CLIENT_VERSION] = {client_version},
                         [PJ_CLIENT_DEVICES] = {client_devices},
                         [PJ_COMPILE] = {compile},
                         [PJ_FROM_HOST] = {from_host},
                         [PJ_DESCRIPTION_KIND] = {description_kind},
                         [PJ_DEVICE_DESCRIPTION] = {device_description},
                         [PJ_DEVICE_MEMORY] = {device_memory},
                         [PJ_EXECUTABLE_DESTROY] = {executable_destroy},
                         [PJ_EXECUTABLE_OUTPUTS] = {executable_outputs},
                         [PJ_EXECUTABLE_SERIALIZE] = {executable_serialize},
                         [PJ_LOADED_DESTROY] = {loaded_destroy},
                         [PJ_LOADED_EXECUTABLE] = {loaded_executable},
                         [PJ_EXECUTE] = {execute},
                         [PJ_LOAD] = {load},
                         [PJ_BUFFER_DESTROY] = {buffer_destroy},
                         [PJ_BUFFER_TO_DEVICE] = {to_device},
                         [PJ_BUFFER_TO_HOST] = {to_host},
                         [PJ_BUFFER_READY] = {buffer_ready},
                         [PJ_BUFFER_IS_ON_CPU] = {buffer_is_on_cpu},
                         [PJ_BUFFER_SIZE] = {buffer_size},
                         [PJ_BUFFER_LAYOUT] = {buffer_layout},
                         [PJ_BUFFER_HOLD] = {buffer_hold},
                         [PJ_BUFFER_LET_GO] = {buffer_let_go},
                         [PJ_BUFFER_ADDRESS] = {buffer_address},
                         [PJ_BUFFER_VIEW] = {buffer_view},
                         [PJ_EXECUTABLE_TYPES] = {executable_types},
                         [PJ_EXECUTABLE_DIMS] = {executable_dims}}};

__attribute__((visibility("default"))) const pj_api *GetPjrtApi(void);
const pj_api *GetPjrtApi(void) {
  static _Atomic bool begun;
  if (!atomic_exchange(&begun, true))
    for (int i = 0; i < PJ_TABLE; i++) left[i] = left_event[i] = -1;
  return (const pj_api *)(const void *)&table;
}

static void set_manner(test_manner how) { atomic_store(&manner, (int)how); }
static void fail_after(pj_function function, int64_t n) { atomic_store(&left[function], n); }
static void fail_event_after(pj_function function, int64_t n) { atomic_store(&left_event[function], n); }
static void set_more(size_t bytes) { atomic_store(&more, bytes); }
static int64_t get_live(void) { return atomic_load(&live); }
static int64_t get_wrong(void) { return atomic_load(&wrong); }
static void hold(bool is) { atomic_store(&held, is); }
static const char *get_text(void) { return last_text; }
static void stall(bool is) { atomic_store(&stalled, is); }
static void set_copies(bool is) { atomic_store(&copies, is); }
static void set_other_layout(bool is) { atomic_store(&other_layout, is); }
static int64_t get_calls(pj_function function) { return atomic_load(&calls[function]); }

static const test_direction direction = {
    set_manner, fail_after, fail_event_after, set_more,   get_live,   get_wrong,       get_calls, hold,
    keep_tasks, stall,      get_text,         keep_bytes, set_copies, set_other_layout};
__attribute__((visibility("default"))) const test_direction *GetTestDirection(void);
const test_direction *GetTestDirection(void) { return &direction; }
