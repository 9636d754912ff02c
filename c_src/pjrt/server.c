/* The process of an isolated plugin: loads it, and calls its functions as the client asks (remote.h). Each thread reads
 * a message and answers it; one reads at a time. A function may take long, and events end on threads of the plugin. The
 * process ends with its socket, also while threads are in the plugin. */
#include "base/thread.h"
#include "pjrt/plugin.h"
#include "pjrt/wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOCKET = 3, THREADS = 20, STACK_BYTES = 256 << 20, MOST_RESULTS = 1 << 20 };

/* The first one is held while a thread waits for a message. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER, sending = PTHREAD_MUTEX_INITIALIZER;
static const pj_plugin *plugin;

/* An executable, and how many results it has. */
typedef struct loaded {
  pj_loaded *object;
  size_t result_count;
} loaded;

/* ---- shared memory: known before the next message is read */

static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;

typedef struct segment {
  struct segment *next;
  uint64_t number;
  size_t size;
  char *data;
} segment;

static segment *segments;

static void add_segment(const pj_wire_message *m) {
  segment *s;
  off_t size = lseek(m->file, 0, SEEK_END);
  if (size <= 0 || !ts_status_consume_ok(TS_NEW(&s))) return;
  void *data = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, m->file, 0);
  if (data == MAP_FAILED) {
    ts_free(s);
    return;
  }
  pthread_mutex_lock(&sharing);
  *s = (segment){segments, m->head.id, (size_t)size, data};
  segments = s;
  pthread_mutex_unlock(&sharing);
}

static segment *remove_segment(uint64_t number) {
  segment **at = &segments, *found;
  pthread_mutex_lock(&sharing);
  while (*at && (*at)->number != number) at = &(*at)->next;
  found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&sharing);
  return found;
}

static void forget_segment(uint64_t number) {
  segment *s = remove_segment(number);
  if (!s) return;
  munmap(s->data, s->size);
  ts_free(s);
}

static char *find_segment(uint64_t number, size_t size) {
  char *found = NULL;
  pthread_mutex_lock(&sharing);
  for (const segment *s = segments; s; s = s->next)
    if (s->number == number && size <= s->size) found = s->data;
  pthread_mutex_unlock(&sharing);
  return found;
}

/* ---- answers */

static void put_status(ts_text *out, ts_status status) {
  pj_put(out, (uint64_t)ts_status_code(status));
  pj_put_bytes(out, ts_status_message(status), strlen(ts_status_message(status)));
}

static void say(pj_wire_kind kind, uint64_t id, const ts_text *fields) {
  if (fields->failed) _exit(1); /* the client would wait for ever */
  pthread_mutex_lock(&sending);
  bool sent = pj_wire_send(SOCKET, &(pj_wire_head){.id = id, .kind = kind, .size = fields->length}, fields->data, -1);
  pthread_mutex_unlock(&sending);
  if (!sent) _exit(0);
}

/* ---- events: the client gets one message for each, at its end */

typedef struct told {
  uint64_t id;
  pj_event *event;
  char *data;  /* The bytes that the plugin reads or writes, unless they are in shared memory. */
  size_t size; /* Of `data`; 0 if the client does not read them. */
  pj_error *error;
  _Atomic int parts;
} told;

static void end_told(told *t, ts_status status) {
  ts_text fields = {0};
  put_status(&fields, status);
  pj_put_bytes(&fields, t->data ? t->data : "", status ? 0 : t->size);
  ts_status_free(status);
  if (t->event) pj_destroy(plugin, PJ_EVENT_DESTROY, t->event);
  say(PJ_WIRE_EVENT, t->id, &fields);
  ts_text_deinit(&fields);
  ts_free(t->data);
  ts_free(t);
}

static void part_of_end(told *t) {
  if (atomic_fetch_sub(&t->parts, 1) == 1) end_told(t, pj_status(plugin, t->error, NULL));
}

static void ready(pj_error *error, void *arg) {
  told *t = arg;
  t->error = error;
  part_of_end(t);
}

static ts_status event_error(told *t, pj_function function) {
  return t->event ? pj_call(plugin, function, &PJ_ARGS(.event = {.event = t->event})) : TS_SUCCESS;
}

/* If the event has ended, tells the client so. Whether it has. */
static bool told_at_once(told *t) {
  pj_args args = PJ_ARGS(.event = {.event = t->event});
  bool ended = !t->event || (ts_status_consume_ok(pj_call(plugin, PJ_EVENT_IS_READY, &args)) && args.event.is_ready);
  if (ended) end_told(t, event_error(t, PJ_EVENT_ERROR));
  return ended;
}

/* Takes `t` over. An event that cannot call back is waited for. */
static void tell_later(told *t) {
  pj_args args = PJ_ARGS(.on_ready = {.event = t->event, .call = ready, .arg = t});
  atomic_store(&t->parts, 2);
  if (ts_status_consume_ok(pj_call(plugin, PJ_EVENT_ON_READY, &args)))
    part_of_end(t);
  else
    end_told(t, event_error(t, PJ_EVENT_AWAIT));
}

/* ---- functions: each takes its fields and appends its answer */

typedef struct asked {
  pj_fields in;
  ts_text out;
  told *event; /* of the call, told after the answer */
  uint64_t id;
} asked;

static ts_status new_told(asked *a) {
  TS_TRY(TS_NEW(&a->event));
  *a->event = (told){.id = a->id};
  return TS_SUCCESS;
}

static ts_status load_plugin(asked *a) {
  size_t size;
  const char *path = pj_take_bytes(&a->in, &size);
  return pj_plugin_open(path, &plugin);
}

static void take_option(pj_fields *in, pj_named *out) {
  size_t size;
  *out = (pj_named){.size = sizeof *out, .value_size = 1};
  out->name = pj_take_bytes(in, &out->name_size);
  out->kind = (int)pj_take(in);
  switch (out->kind) {
  case PJ_STRING: out->string = pj_take_bytes(in, &out->value_size); return;
  case PJ_FLOAT: {
    const char *number = pj_take_bytes(in, &size);
    if (size == sizeof out->number) memcpy(&out->number, number, size);
    return;
  }
  case PJ_BOOL: out->boolean = pj_take(in) != 0; return;
  case PJ_INT64: out->integer = (int64_t)pj_take(in); return;
  }
}

static ts_status create(asked *a) {
  pj_named *options;
  size_t count = pj_take(&a->in);
  TS_TRY(TS_NEW_ARRAY(count + 1, &options));
  for (size_t i = 0; i < count; i++) take_option(&a->in, &options[i]);
  pj_args args = PJ_ARGS(.create = {.options = options, .option_count = count});
  ts_status status = pj_call(plugin, PJ_CLIENT_CREATE, &args);
  ts_free(options);
  if (!status) pj_put_object(&a->out, args.create.client);
  return status;
}

static ts_status get_text(asked *a, pj_function function) {
  pj_args args = PJ_ARGS(.client = {.client = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, function, &args));
  pj_put_bytes(&a->out, args.client.text, args.client.text_size);
  return TS_SUCCESS;
}

static ts_status get_description(asked *a) {
  pj_args args = PJ_ARGS(.device = {.device = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_DEVICE_DESCRIPTION, &args));
  pj_put_object(&a->out, args.device.description);
  return TS_SUCCESS;
}

static ts_status get_devices(asked *a) {
  pj_args args = PJ_ARGS(.devices = {.client = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_CLIENT_DEVICES, &args));
  pj_put_bytes(&a->out, args.devices.devices, args.devices.count * sizeof *args.devices.devices);
  return TS_SUCCESS;
}

static ts_status get_memory(asked *a) {
  pj_args args = PJ_ARGS(.memory = {.device = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_DEVICE_MEMORY, &args));
  pj_put(&a->out, (uint64_t)args.memory.bytes_in_use);
  pj_put(&a->out, (uint64_t)args.memory.limit.number);
  pj_put(&a->out, args.memory.limit.given);
  return TS_SUCCESS;
}

/* ---- executables */

static ts_status get_executable(pj_loaded *object, pj_executable **out) {
  pj_args args = PJ_ARGS(.loaded = {.loaded = object});
  TS_TRY(pj_call(plugin, PJ_LOADED_EXECUTABLE, &args));
  *out = args.loaded.executable;
  return TS_SUCCESS;
}

static ts_status count_results(pj_loaded *object, size_t *out) {
  pj_executable *executable;
  TS_TRY(get_executable(object, &executable));
  pj_args args = PJ_ARGS(.outputs = {.executable = executable});
  ts_status status = pj_call(plugin, PJ_EXECUTABLE_OUTPUTS, &args);
  pj_destroy(plugin, PJ_EXECUTABLE_DESTROY, executable);
  *out = args.outputs.count;
  return !status && *out > MOST_RESULTS ? ts_error(TS_INTERNAL, "the plugin compiled %zu results", *out) : status;
}

static ts_status put_loaded(asked *a, pj_loaded *object) {
  loaded *l = NULL;
  ts_status status = TS_NEW(&l);
  if (!status) {
    l->object = object;
    status = count_results(object, &l->result_count);
  }
  if (status) {
    pj_destroy(plugin, PJ_LOADED_DESTROY, object);
    ts_free(l);
    return status;
  }
  pj_put_object(&a->out, l);
  return TS_SUCCESS;
}

static ts_status compile(asked *a) {
  pj_program program = {.size = sizeof program};
  size_t options_size;
  pj_handle *client = pj_take_object(&a->in);
  program.format = pj_take_bytes(&a->in, &program.format_size);
  program.code = pj_take_bytes(&a->in, &program.code_size);
  const char *options = pj_take_bytes(&a->in, &options_size);
  pj_args args =
      PJ_ARGS(.compile = {.client = client, .program = &program, .options = options, .options_size = options_size});
  TS_TRY(pj_call(plugin, PJ_COMPILE, &args));
  return put_loaded(a, args.compile.loaded);
}

static ts_status load(asked *a) {
  size_t size;
  pj_handle *client = pj_take_object(&a->in);
  const char *bytes = pj_take_bytes(&a->in, &size);
  pj_args args = PJ_ARGS(.load = {.client = client, .bytes = bytes, .byte_count = size});
  TS_TRY(pj_call(plugin, PJ_LOAD, &args));
  return put_loaded(a, args.load.loaded);
}

static ts_status find_executable(asked *a) {
  pj_executable *executable;
  const loaded *l = pj_take_object(&a->in);
  TS_TRY(get_executable(l->object, &executable));
  pj_put_object(&a->out, executable);
  return TS_SUCCESS;
}

static ts_status count_outputs(asked *a) {
  pj_args args = PJ_ARGS(.outputs = {.executable = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_EXECUTABLE_OUTPUTS, &args));
  pj_put(&a->out, args.outputs.count);
  return TS_SUCCESS;
}

static ts_status get_types(asked *a) {
  pj_args args = PJ_ARGS(.types = {.executable = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_EXECUTABLE_TYPES, &args));
  pj_put_bytes(&a->out, args.types.types, args.types.count * sizeof *args.types.types);
  return TS_SUCCESS;
}

static ts_status get_dims(asked *a) {
  size_t count = 0;
  pj_args args = PJ_ARGS(.dims = {.executable = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_EXECUTABLE_DIMS, &args));
  for (size_t i = 0; i < args.dims.count; i++) count += args.dims.ranks[i];
  pj_put_bytes(&a->out, args.dims.ranks, args.dims.count * sizeof *args.dims.ranks);
  pj_put_bytes(&a->out, args.dims.dims, count * sizeof *args.dims.dims);
  return TS_SUCCESS;
}

static ts_status serialize(asked *a) {
  pj_args args = PJ_ARGS(.save = {.executable = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_EXECUTABLE_SERIALIZE, &args));
  pj_put_bytes(&a->out, args.save.bytes, args.save.byte_count);
  if (args.save.destroy) args.save.destroy(args.save.saved);
  return TS_SUCCESS;
}

/* A copy whose items are aligned. */
static ts_status take_items(pj_fields *in, size_t size, size_t *out_count, void **out) {
  size_t bytes;
  const char *items = pj_take_bytes(in, &bytes);
  TS_TRY(ts_alloc(bytes + 1, out));
  memcpy(*out, items, bytes);
  *out_count = bytes / size;
  return TS_SUCCESS;
}

static ts_status execute_with(asked *a, const loaded *l, pj_device *device, pj_args *args) {
  pj_buffer **results;
  pj_event *complete = NULL;
  TS_TRY(new_told(a));
  TS_TRY(TS_NEW_ARRAY(l->result_count + 1, &results));
  args->execute.loaded = l->object;
  args->execute.device_count = 1;
  args->execute.results = &results;
  args->execute.complete = &complete;
  args->execute.device = device;
  ts_status status = pj_call(plugin, PJ_EXECUTE, args);
  if (!status) {
    a->event->event = complete;
    pj_put_bytes(&a->out, results, l->result_count * sizeof *results);
  }
  ts_free(results);
  return status;
}

static ts_status execute(asked *a) {
  pj_execute_options options = {.size = sizeof options};
  pj_args args = PJ_ARGS(.execute = {.options = &options});
  const loaded *l = pj_take_object(&a->in);
  pj_device *device = pj_take_object(&a->in);
  void *kept = NULL, *operands = NULL;
  ts_status status = take_items(&a->in, sizeof(int64_t), &options.kept_count, &kept);
  if (!status) status = take_items(&a->in, sizeof(pj_buffer *), &args.execute.arg_count, &operands);
  options.kept = kept;
  pj_buffer *const *list = operands;
  args.execute.args = &list;
  if (!status) status = execute_with(a, l, device, &args);
  ts_free(kept);
  ts_free(operands);
  return status;
}

/* ---- transfers */

/* The place of elements: shared, or memory of the event's. */
static ts_status find_place(asked *a, uint64_t number, size_t size, char **out) {
  if (number) {
    *out = find_segment(number, size);
    return *out ? TS_SUCCESS : ts_error(TS_RESOURCE_EXHAUSTED, "%zu bytes cannot be shared", size);
  }
  TS_TRY(ts_alloc(size + 1, (void **)&a->event->data));
  *out = a->event->data;
  return TS_SUCCESS;
}

static ts_status take_data(asked *a, char **out) {
  size_t size = 0;
  uint64_t number = pj_take(&a->in);
  const char *bytes = number ? "" : pj_take_bytes(&a->in, &size);
  TS_TRY(find_place(a, number, size, out));
  if (!number) memcpy(*out, bytes, size);
  return TS_SUCCESS;
}

static ts_status from_host(asked *a) {
  char *data = NULL;
  void *dims = NULL;
  TS_TRY(new_told(a));
  pj_args args = PJ_ARGS(.from_host = {.semantics = PJ_UNTIL_TRANSFERRED});
  args.from_host.client = pj_take_object(&a->in);
  args.from_host.device = pj_take_object(&a->in);
  args.from_host.type = (int)pj_take(&a->in);
  TS_TRY(take_items(&a->in, sizeof(int64_t), &args.from_host.rank, &dims));
  ts_status status = take_data(a, &data);
  args.from_host.dims = dims;
  args.from_host.data = data;
  if (!status) status = pj_call(plugin, PJ_FROM_HOST, &args);
  ts_free(dims);
  if (status) return status;
  a->event->event = args.from_host.read;
  pj_put_object(&a->out, args.from_host.buffer);
  return TS_SUCCESS;
}

static ts_status to_host(asked *a) {
  char *place = NULL;
  void *order = NULL;
  pj_layout layout = {.size = sizeof layout, .order = {.size = sizeof layout.order}};
  TS_TRY(new_told(a));
  pj_args args = PJ_ARGS(.to_host = {.buffer = pj_take_object(&a->in), .layout = &layout});
  TS_TRY(take_items(&a->in, sizeof(int64_t), &layout.order.rank, &order));
  size_t size = pj_take(&a->in);
  uint64_t number = pj_take(&a->in);
  ts_status status = find_place(a, number, size, &place);
  layout.order.minor_to_major = order;
  args.to_host.to = place;
  args.to_host.to_size = size;
  if (!status) status = pj_call(plugin, PJ_BUFFER_TO_HOST, &args);
  ts_free(order);
  if (status) return status;
  a->event->event = args.to_host.event;
  a->event->size = number ? 0 : size;
  return TS_SUCCESS;
}

static ts_status to_device(asked *a) {
  pj_buffer *buffer = pj_take_object(&a->in);
  pj_args args = PJ_ARGS(.to_device = {.buffer = buffer, .device = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_BUFFER_TO_DEVICE, &args));
  pj_put_object(&a->out, args.to_device.copy);
  return TS_SUCCESS;
}

static ts_status get_ready(asked *a) {
  TS_TRY(new_told(a));
  pj_args args = PJ_ARGS(.ready = {.buffer = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_BUFFER_READY, &args));
  a->event->event = args.ready.event;
  return TS_SUCCESS;
}

/* ---- messages */

static ts_status call(asked *a, uint32_t function) {
  if (function != PJ_INITIALIZE && !plugin) return ts_error(TS_FAILED_PRECONDITION, "no plugin is loaded");
  switch (function) {
  case PJ_INITIALIZE: return load_plugin(a);
  case PJ_CLIENT_CREATE: return create(a);
  case PJ_CLIENT_DESTROY: return pj_call(plugin, PJ_CLIENT_DESTROY, &PJ_ARGS(.object = pj_take_object(&a->in)));
  case PJ_CLIENT_NAME:
  case PJ_CLIENT_VERSION:
  case PJ_DESCRIPTION_KIND: return get_text(a, (pj_function)function);
  case PJ_DEVICE_DESCRIPTION: return get_description(a);
  case PJ_CLIENT_DEVICES: return get_devices(a);
  case PJ_DEVICE_MEMORY: return get_memory(a);
  case PJ_COMPILE: return compile(a);
  case PJ_LOAD: return load(a);
  case PJ_LOADED_EXECUTABLE: return find_executable(a);
  case PJ_EXECUTABLE_OUTPUTS: return count_outputs(a);
  case PJ_EXECUTABLE_TYPES: return get_types(a);
  case PJ_EXECUTABLE_DIMS: return get_dims(a);
  case PJ_EXECUTABLE_SERIALIZE: return serialize(a);
  case PJ_EXECUTE: return execute(a);
  case PJ_FROM_HOST: return from_host(a);
  case PJ_BUFFER_TO_HOST: return to_host(a);
  case PJ_BUFFER_TO_DEVICE: return to_device(a);
  case PJ_BUFFER_READY: return get_ready(a);
  default: return ts_error(TS_UNIMPLEMENTED, "an isolated plugin has no function %u", function);
  }
}

static void drop_told(told *t) {
  if (!t) return;
  ts_free(t->data);
  ts_free(t);
}

static void answer(const pj_wire_message *m) {
  asked a = {.in = pj_fields_of(m), .id = m->head.id};
  ts_text fields = {0};
  ts_status status = call(&a, m->head.function);
  put_status(&fields, status);
  if (!status) ts_text_append_n(&fields, a.out.data, a.out.length);
  fields.failed = fields.failed || a.out.failed;
  if (status) drop_told(a.event);
  if (status || (a.event && told_at_once(a.event))) a.event = NULL;
  say(PJ_WIRE_ANSWER, a.id, &fields);
  if (a.event) tell_later(a.event);
  ts_text_deinit(&fields);
  ts_text_deinit(&a.out);
  ts_status_free(status);
}

static void cast(const pj_wire_message *m) {
  pj_fields in = pj_fields_of(m);
  void *object = pj_take_object(&in);
  if (!plugin || !object) return;
  if (m->head.function != PJ_LOADED_DESTROY) {
    pj_destroy(plugin, (pj_function)m->head.function, object);
    return;
  }
  loaded *l = object;
  pj_destroy(plugin, PJ_LOADED_DESTROY, l->object);
  ts_free(l);
}

/* Objects are destroyed before the next message is read: a client must be destroyed after all of its objects. */
static bool read_one(pj_wire_message *m) {
  pthread_mutex_lock(&reading);
  bool goes_on = pj_wire_receive(SOCKET, m);
  if (goes_on && m->head.kind == PJ_WIRE_SEGMENT) add_segment(m);
  if (goes_on && m->head.kind == PJ_WIRE_FORGET) forget_segment(m->head.id);
  if (goes_on && m->head.kind == PJ_WIRE_CAST) cast(m);
  pthread_mutex_unlock(&reading);
  return goes_on;
}

static void *serve(void *nothing) {
  pj_wire_message m;
  while (read_one(&m)) {
    if (m.head.kind == PJ_WIRE_CALL) answer(&m);
    pj_wire_free(&m);
  }
  _exit(0);
  return nothing;
}

/* While all other threads are in the plugin. */
static void *watch(void *nothing) {
  struct pollfd file = {.fd = SOCKET, .events = POLLRDHUP};
  while (poll(&file, 1, -1) <= 0) continue;
  _exit(0);
  return nothing;
}

static int serve_all(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!ts_thread_start("watch", watch, 0)) return 1;
  for (int i = 0; i < THREADS; i++)
    if (!ts_thread_start("plugin", serve, STACK_BYTES) && i == 0) return 1;
  while (true) pause();
}

/* The client may ignore how its child processes end, so this process sends the status. */
int main(void) {
  int status = 0;
  pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) return serve_all();
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  (void)pj_wire_send(SOCKET, &(pj_wire_head){.id = (uint64_t)status, .kind = PJ_WIRE_END}, NULL, -1);
  return 0;
}
