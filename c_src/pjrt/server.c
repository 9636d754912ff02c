/* The process of an isolated plugin: loads it, and calls its functions as the client asks (remote.h). Each thread reads
 * a message and answers it; one reads at a time. A function may take long, and events end on threads of the plugin. The
 * process ends with its socket, also while threads are in the plugin. */
#include "base/thread.h"
#include "pjrt/plugin.h"
#include "pjrt/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOCKET = 3, THREADS = 20, STACK_BYTES = 256 << 20, MOST_RESULTS = 1 << 20, MOST_DEVICES = 64 };

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

/* ---- events: the client gets one message for each call, at the end of its events */

typedef struct told told;

typedef struct part {
  told *of;
  pj_event *event; /* NULL: it has ended */
  pj_error *error; /* by the callback */
  ts_status status;
} part;

struct told {
  uint64_t id;
  char *data;  /* The bytes that the plugin reads or writes, unless they are in shared memory. */
  size_t size; /* Of `data`; 0 if the client does not read them. */
  _Atomic size_t going;
  size_t count; /* Of events: those of a program's partitions, else one. */
  part parts[];
};

/* The first error of the events, which are destroyed. */
static ts_status end_parts(told *t) {
  ts_status first = TS_SUCCESS;
  for (size_t i = 0; i < t->count; i++) {
    part *p = &t->parts[i];
    ts_status status = p->error ? pj_status(plugin, p->error, NULL) : p->status;
    if (p->event) pj_destroy(plugin, PJ_EVENT_DESTROY, p->event);
    if (first)
      ts_status_free(status);
    else
      first = status;
  }
  return first;
}

static void end_told(told *t) {
  ts_text fields = {0};
  ts_status status = end_parts(t);
  put_status(&fields, status);
  pj_put_bytes(&fields, t->data ? t->data : "", status ? 0 : t->size);
  ts_status_free(status);
  say(PJ_WIRE_EVENT, t->id, &fields);
  ts_text_deinit(&fields);
  ts_free(t->data);
  ts_free(t);
}

static void end_part(told *t) {
  if (atomic_fetch_sub(&t->going, 1) == 1) end_told(t);
}

static void ready(pj_error *error, void *arg) {
  part *p = arg;
  p->error = error;
  end_part(p->of);
}

static bool is_ready(pj_event *event) {
  pj_args args = PJ_ARGS(.event = {.event = event});
  return !event || (ts_status_consume_ok(pj_call(plugin, PJ_EVENT_IS_READY, &args)) && args.event.is_ready);
}

static void ask_error(part *p, pj_function function) {
  if (p->event) p->status = pj_call(plugin, function, &PJ_ARGS(.event = {.event = p->event}));
}

/* If the events have ended, tells the client so. Whether they have. */
static bool told_at_once(told *t) {
  for (size_t i = 0; i < t->count; i++)
    if (!is_ready(t->parts[i].event)) return false;
  for (size_t i = 0; i < t->count; i++) ask_error(&t->parts[i], PJ_EVENT_ERROR);
  end_told(t);
  return true;
}

/* An event that cannot call back is waited for. */
static void tell_part(part *p) {
  pj_args args = PJ_ARGS(.on_ready = {.event = p->event, .call = ready, .arg = p});
  if (p->event && ts_status_consume_ok(pj_call(plugin, PJ_EVENT_ON_READY, &args))) return;
  ask_error(p, PJ_EVENT_AWAIT);
  end_part(p->of);
}

/* Takes `t` over. */
static void tell_later(told *t) {
  atomic_store(&t->going, t->count + 1);
  for (size_t i = 0; i < t->count; i++) tell_part(&t->parts[i]);
  end_part(t);
}

/* ---- functions: each takes its fields and appends its answer */

typedef struct asked {
  pj_fields in;
  ts_text out;
  told *event; /* of the call, told after the answer */
  uint64_t id;
} asked;

static ts_status new_told(asked *a, size_t count) {
  size_t bytes = sizeof(told) + count * sizeof(part);
  TS_TRY(ts_alloc(bytes, (void **)&a->event));
  memset(a->event, 0, bytes);
  a->event->id = a->id;
  a->event->count = count;
  for (size_t i = 0; i < count; i++) a->event->parts[i].of = a->event;
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

/* The lists of a program's partitions, in one block. */
typedef struct lists {
  size_t devices, args, results; /* args and results: of each */
  pj_buffer **made;
  pj_buffer *const **arg_lists;
  pj_buffer ***result_lists;
  pj_event **complete;
} lists;

static ts_status new_lists(pj_buffer *const *operands, lists *l) {
  void **block;
  TS_TRY(TS_NEW_ARRAY(l->devices * (l->results + 3) + 1, &block));
  l->arg_lists = (pj_buffer *const **)block;
  l->result_lists = (pj_buffer ***)(block + l->devices);
  l->complete = (pj_event **)(block + 2 * l->devices);
  l->made = (pj_buffer **)(block + 3 * l->devices);
  for (size_t i = 0; i < l->devices; i++) {
    l->arg_lists[i] = operands + i * l->args;
    l->result_lists[i] = l->made + i * l->results;
    l->complete[i] = NULL;
  }
  return TS_SUCCESS;
}

static ts_status execute_lists(asked *a, const loaded *l, const lists *all, pj_args *args) {
  TS_TRY(new_told(a, all->devices));
  args->execute.loaded = l->object;
  args->execute.args = (pj_buffer *const *const *)all->arg_lists;
  args->execute.arg_count = all->args;
  args->execute.device_count = all->devices;
  args->execute.results = all->result_lists;
  args->execute.complete = all->complete;
  TS_TRY(pj_call(plugin, PJ_EXECUTE, args));
  for (size_t i = 0; i < all->devices; i++) a->event->parts[i].event = all->complete[i];
  pj_put_bytes(&a->out, all->made, all->devices * all->results * sizeof *all->made);
  return TS_SUCCESS;
}

static ts_status execute_with(asked *a, const loaded *l, pj_args *args) {
  lists all = {.devices = pj_take(&a->in), .results = l->result_count};
  void *operands = NULL;
  size_t count;
  TS_TRY(take_items(&a->in, sizeof(pj_buffer *), &count, &operands));
  bool fits = all.devices > 0 && all.devices <= MOST_DEVICES && count % all.devices == 0;
  ts_status status = fits ? TS_SUCCESS : ts_error(TS_INTERNAL, "%zu arguments of %zu devices", count, all.devices);
  if (!status) {
    all.args = count / all.devices;
    status = new_lists(operands, &all);
  }
  if (!status) status = execute_lists(a, l, &all, args);
  ts_free((void *)all.arg_lists);
  ts_free(operands);
  return status;
}

static ts_status execute(asked *a) {
  pj_execute_options options = {.size = sizeof options};
  pj_args args = PJ_ARGS(.execute = {.options = &options});
  const loaded *l = pj_take_object(&a->in);
  args.execute.device = pj_take_object(&a->in);
  void *kept = NULL;
  TS_TRY(take_items(&a->in, sizeof(int64_t), &options.kept_count, &kept));
  options.kept = kept;
  ts_status status = execute_with(a, l, &args);
  ts_free(kept);
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
  TS_TRY(new_told(a, 1));
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
  a->event->parts[0].event = args.from_host.read;
  pj_put_object(&a->out, args.from_host.buffer);
  return TS_SUCCESS;
}

static ts_status to_host(asked *a) {
  char *place = NULL;
  void *order = NULL;
  pj_layout layout = {.size = sizeof layout, .order = {.size = sizeof layout.order}};
  TS_TRY(new_told(a, 1));
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
  a->event->parts[0].event = args.to_host.event;
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
  TS_TRY(new_told(a, 1));
  pj_args args = PJ_ARGS(.ready = {.buffer = pj_take_object(&a->in)});
  TS_TRY(pj_call(plugin, PJ_BUFFER_READY, &args));
  a->event->parts[0].event = args.ready.event;
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

static int serve_all(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 1; /* it ended before that */
  if (!ts_thread_start("watch", watch, 0)) return 1;
  for (int i = 0; i < THREADS; i++)
    if (!ts_thread_start("plugin", serve, STACK_BYTES) && i == 0) return 1;
  while (true) pause();
}

/* The client may ignore how its child processes end, so this process sends the status. */
int main(void) {
  int status = 0;
  (void)fcntl(SOCKET, F_SETFD, FD_CLOEXEC); /* what the plugin starts must not hold it */
  pid_t parent = getpid(), child = fork();
  if (child < 0) return 1;
  if (child == 0) return serve_all(parent);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  (void)pj_wire_send(SOCKET, &(pj_wire_head){.id = (uint64_t)status, .kind = PJ_WIRE_END}, NULL, -1);
  (void)shutdown(SOCKET, SHUT_RDWR); /* also if the last message was cut, and another process has the socket */
  return 0;
}
