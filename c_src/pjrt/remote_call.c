/* The functions of a plugin's table as messages to its process: server.c answers them. */
#include "pjrt/remote.h"
#include "pjrt/types.h"

#include <string.h>

static pj_asking begin(pj_remote *r, int function) {
  return (pj_asking){.remote = r, .function = function, .message.file = -1};
}

/* Replaces a block of ours by the next bytes of the answer. */
static ts_status take_copy(pj_fields *answer, void **kept, size_t *out_size) {
  const char *bytes = pj_take_bytes(answer, out_size);
  ts_free(*kept);
  *kept = NULL;
  TS_TRY(ts_alloc(*out_size + 1, kept));
  memcpy(*kept, bytes, *out_size);
  return TS_SUCCESS;
}

/* The call of an object that gives an object. */
static ts_status ask_for_object(pj_remote *r, int function, const void *of, void **out) {
  pj_asking a = begin(r, function);
  pj_put_object(&a.fields, of);
  ts_status status = pj_ask(&a);
  if (!status) *out = pj_take_object(&a.answer);
  return pj_asking_end(&a, status);
}

/* The call of an object that gives bytes: a copy of them replaces the block `kept`. */
static ts_status ask_for_bytes(pj_remote *r, int function, const void *of, void **kept, size_t *out_size) {
  pj_asking a = begin(r, function);
  pj_put_object(&a.fields, of);
  ts_status status = pj_ask(&a);
  if (!status) status = take_copy(&a.answer, kept, out_size);
  return pj_asking_end(&a, status);
}

static ts_status destroy(pj_remote *r, int function, void *object) {
  if (!pj_remote_is_dead(r)) pj_remote_cast(r, function, object);
  return TS_SUCCESS;
}

/* ---- the client */

ts_status pj_remote_open(pj_remote *r, const char *path) {
  pj_asking a = begin(r, PJ_INITIALIZE);
  pj_put_bytes(&a.fields, path, strlen(path) + 1);
  return pj_asking_end(&a, pj_ask(&a));
}

static void put_option(ts_text *out, const pj_named *option) {
  pj_put_bytes(out, option->name, option->name_size);
  pj_put(out, (uint64_t)option->kind);
  switch (option->kind) {
  case PJ_STRING: pj_put_bytes(out, option->string, option->value_size); return;
  case PJ_FLOAT: pj_put_bytes(out, &option->number, sizeof option->number); return;
  case PJ_BOOL: pj_put(out, option->boolean); return;
  case PJ_INT64: pj_put(out, (uint64_t)option->integer); return;
  }
}

static ts_status create(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_CLIENT_CREATE);
  pj_put(&a.fields, args->create.option_count);
  for (size_t i = 0; i < args->create.option_count; i++) put_option(&a.fields, &args->create.options[i]);
  ts_status status = pj_ask(&a);
  if (!status) args->create.client = pj_take_object(&a.answer);
  return pj_asking_end(&a, status);
}

static ts_status destroy_client(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_CLIENT_DESTROY);
  pj_put_object(&a.fields, args->object);
  return pj_asking_end(&a, pj_ask(&a));
}

/* A text that stays as long as the process is known. */
static ts_status get_text(pj_remote *r, int function, pj_args *args, char **kept) {
  TS_TRY(ask_for_bytes(r, function, args->client.client, (void **)kept, &args->client.text_size));
  args->client.text = *kept;
  return TS_SUCCESS;
}

static ts_status get_description(pj_remote *r, pj_args *args) {
  void *description = NULL;
  TS_TRY(ask_for_object(r, PJ_DEVICE_DESCRIPTION, args->device.device, &description));
  args->device.description = description;
  return TS_SUCCESS;
}

static ts_status get_devices(pj_remote *r, pj_args *args) {
  size_t size;
  TS_TRY(ask_for_bytes(r, PJ_CLIENT_DEVICES, args->devices.client, (void **)&r->devices, &size));
  args->devices.devices = r->devices;
  args->devices.count = size / sizeof *r->devices;
  return TS_SUCCESS;
}

static ts_status get_memory(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_DEVICE_MEMORY);
  pj_put_object(&a.fields, args->memory.device);
  ts_status status = pj_ask(&a);
  if (!status) {
    args->memory.bytes_in_use = (int64_t)pj_take(&a.answer);
    args->memory.limit.number = (int64_t)pj_take(&a.answer);
    args->memory.limit.given = pj_take(&a.answer) != 0;
  }
  return pj_asking_end(&a, status);
}

/* ---- executables */

static ts_status compile(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_COMPILE);
  const pj_program *p = args->compile.program;
  pj_put_object(&a.fields, args->compile.client);
  pj_put_bytes(&a.fields, p->format, p->format_size);
  pj_put_bytes(&a.fields, p->code, p->code_size);
  pj_put_bytes(&a.fields, args->compile.options, args->compile.options_size);
  ts_status status = pj_ask(&a);
  if (!status) args->compile.loaded = pj_take_object(&a.answer);
  return pj_asking_end(&a, status);
}

static ts_status load(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_LOAD);
  pj_put_object(&a.fields, args->load.client);
  pj_put_bytes(&a.fields, args->load.bytes, args->load.byte_count);
  ts_status status = pj_ask(&a);
  if (!status) args->load.loaded = pj_take_object(&a.answer);
  return pj_asking_end(&a, status);
}

static void free_executable(pj_executable *e) {
  ts_free(e->types);
  ts_free(e->ranks);
  ts_free(e->dims);
  ts_free(e);
}

static ts_status get_executable(pj_remote *r, pj_args *args) {
  pj_executable *e;
  TS_TRY(TS_NEW(&e));
  *e = (pj_executable){0};
  ts_status status = ask_for_object(r, PJ_LOADED_EXECUTABLE, args->loaded.loaded, &e->object);
  if (status)
    ts_free(e);
  else
    args->loaded.executable = e;
  return status;
}

static ts_status count_outputs(pj_remote *r, pj_args *args) {
  void *count = NULL;
  TS_TRY(ask_for_object(r, PJ_EXECUTABLE_OUTPUTS, args->outputs.executable->object, &count));
  args->outputs.count = (size_t)(uintptr_t)count;
  return TS_SUCCESS;
}

static ts_status get_types(pj_remote *r, pj_args *args) {
  size_t size;
  pj_executable *e = args->types.executable;
  TS_TRY(ask_for_bytes(r, PJ_EXECUTABLE_TYPES, e->object, (void **)&e->types, &size));
  args->types.types = e->types;
  args->types.count = size / sizeof *e->types;
  return TS_SUCCESS;
}

static ts_status take_dims(pj_executable *e, pj_fields *answer, pj_args *args) {
  size_t ranks_size, dims_size;
  TS_TRY(take_copy(answer, (void **)&e->ranks, &ranks_size));
  TS_TRY(take_copy(answer, (void **)&e->dims, &dims_size));
  args->dims.count = ranks_size / sizeof *e->ranks;
  args->dims.ranks = e->ranks;
  args->dims.dims = e->dims;
  return TS_SUCCESS;
}

static ts_status get_dims(pj_remote *r, pj_args *args) {
  pj_executable *e = args->dims.executable;
  pj_asking a = begin(r, PJ_EXECUTABLE_DIMS);
  pj_put_object(&a.fields, e->object);
  ts_status status = pj_ask(&a);
  if (!status) status = take_dims(e, &a.answer, args);
  return pj_asking_end(&a, status);
}

static void free_saved(pj_saved *saved) { ts_free(saved); }

static ts_status serialize(pj_remote *r, pj_args *args) {
  void *saved = NULL;
  ts_status status =
      ask_for_bytes(r, PJ_EXECUTABLE_SERIALIZE, args->save.executable->object, &saved, &args->save.byte_count);
  if (status) {
    ts_free(saved);
    return status;
  }
  args->save.bytes = saved;
  args->save.saved = saved;
  args->save.destroy = free_saved;
  return TS_SUCCESS;
}

static void put_arguments(ts_text *out, const pj_args *args) {
  size_t devices = args->execute.device_count, bytes = args->execute.arg_count * sizeof(pj_buffer *);
  pj_put(out, devices);
  pj_put(out, devices * bytes);
  for (size_t i = 0; i < devices; i++) ts_text_append_n(out, (const char *)args->execute.args[i], bytes);
}

static void take_results(pj_fields *answer, const pj_args *args) {
  size_t size, devices = args->execute.device_count;
  const char *results = pj_take_bytes(answer, &size);
  for (size_t i = 0; i < devices; i++) memcpy(args->execute.results[i], results + i * (size / devices), size / devices);
}

/* The process reports the end of all partitions as one event. */
static ts_status execute(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_EXECUTE);
  TS_TRY(pj_asking_event(&a));
  pj_put_object(&a.fields, args->execute.loaded);
  pj_put_object(&a.fields, args->execute.device);
  pj_put_bytes(&a.fields, args->execute.options->kept, args->execute.options->kept_count * sizeof(int64_t));
  put_arguments(&a.fields, args);
  ts_status status = pj_ask(&a);
  if (!status) {
    take_results(&a.answer, args);
    args->execute.complete[0] = a.event;
  }
  return pj_asking_end(&a, status);
}

/* ---- transfers */

static size_t size_of(const pj_args *args) {
  ts_dtype dtype;
  size_t size = pj_dtype(args->from_host.type, &dtype) ? ts_dtype_size(dtype) : 0;
  for (size_t i = 0; i < args->from_host.rank; i++) size *= (size_t)args->from_host.dims[i];
  return size;
}

/* Puts the data into the message, or into shared memory whose number is in the message. */
static ts_status put_data(pj_asking *a, const void *data, size_t size) {
  if (size <= PJ_WIRE_INLINE) {
    pj_put(&a->fields, 0);
    pj_put_bytes(&a->fields, data, size);
    return TS_SUCCESS;
  }
  TS_TRY(pj_segment_take(a->remote, size, &a->event->segment));
  memcpy(a->event->segment->data, data, size);
  pj_put(&a->fields, a->event->segment->number);
  return TS_SUCCESS;
}

static ts_status from_host(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_FROM_HOST);
  TS_TRY(pj_asking_event(&a));
  pj_put_object(&a.fields, args->from_host.client);
  pj_put_object(&a.fields, args->from_host.device);
  pj_put(&a.fields, (uint64_t)args->from_host.type);
  pj_put_bytes(&a.fields, args->from_host.dims, args->from_host.rank * sizeof *args->from_host.dims);
  ts_status status = put_data(&a, args->from_host.data, size_of(args));
  if (!status) status = pj_ask(&a);
  if (!status) {
    args->from_host.buffer = pj_take_object(&a.answer);
    args->from_host.read = a.event;
  }
  return pj_asking_end(&a, status);
}

static ts_status to_host(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_BUFFER_TO_HOST);
  size_t size = args->to_host.to_size;
  const pj_layout *layout = args->to_host.layout;
  ts_status status = TS_SUCCESS;
  TS_TRY(pj_asking_event(&a));
  a.event->to = args->to_host.to;
  a.event->size = size;
  if (size > PJ_WIRE_INLINE) status = pj_segment_take(r, size, &a.event->segment);
  pj_put_object(&a.fields, args->to_host.buffer);
  pj_put_bytes(&a.fields, layout->order.minor_to_major, layout->order.rank * sizeof(int64_t));
  pj_put(&a.fields, size);
  pj_put(&a.fields, a.event->segment ? a.event->segment->number : 0);
  if (!status) status = pj_ask(&a);
  if (!status) args->to_host.event = a.event;
  return pj_asking_end(&a, status);
}

static ts_status to_device(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_BUFFER_TO_DEVICE);
  pj_put_object(&a.fields, args->to_device.buffer);
  pj_put_object(&a.fields, args->to_device.device);
  ts_status status = pj_ask(&a);
  if (!status) args->to_device.copy = pj_take_object(&a.answer);
  return pj_asking_end(&a, status);
}

static ts_status get_ready(pj_remote *r, pj_args *args) {
  pj_asking a = begin(r, PJ_BUFFER_READY);
  TS_TRY(pj_asking_event(&a));
  pj_put_object(&a.fields, args->ready.buffer);
  ts_status status = pj_ask(&a);
  if (!status) args->ready.event = a.event;
  return pj_asking_end(&a, status);
}

/* ---- the table */

static ts_status destroy_executable(pj_remote *r, pj_executable *e) {
  ts_status status = destroy(r, PJ_EXECUTABLE_DESTROY, e->object);
  free_executable(e);
  return status;
}

ts_status pj_remote_call(pj_remote *r, int function, pj_args *args) {
  switch (function) {
  case PJ_EVENT_DESTROY: pj_event_destroy(r, args->object); return TS_SUCCESS;
  case PJ_EVENT_IS_READY: args->event.is_ready = pj_event_is_ready(r, args->event.event); return TS_SUCCESS;
  case PJ_EVENT_ERROR:
  case PJ_EVENT_AWAIT: return pj_event_await(r, args->event.event);
  case PJ_EVENT_ON_READY: pj_event_on_ready(r, args); return TS_SUCCESS;
  case PJ_CLIENT_CREATE: return create(r, args);
  case PJ_CLIENT_DESTROY: return destroy_client(r, args);
  case PJ_CLIENT_NAME: return get_text(r, function, args, &r->name);
  case PJ_CLIENT_VERSION: return get_text(r, function, args, &r->version);
  case PJ_CLIENT_DEVICES: return get_devices(r, args);
  case PJ_DEVICE_DESCRIPTION: return get_description(r, args);
  case PJ_DESCRIPTION_KIND: return get_text(r, function, args, &r->kind); /* as a name */
  case PJ_COMPILE: return compile(r, args);
  case PJ_FROM_HOST: return from_host(r, args);
  case PJ_DEVICE_MEMORY: return get_memory(r, args);
  case PJ_EXECUTABLE_DESTROY: return destroy_executable(r, args->object);
  case PJ_EXECUTABLE_OUTPUTS: return count_outputs(r, args);
  case PJ_EXECUTABLE_SERIALIZE: return serialize(r, args);
  case PJ_LOADED_DESTROY:
  case PJ_BUFFER_DESTROY: return destroy(r, function, args->object);
  case PJ_LOADED_EXECUTABLE: return get_executable(r, args);
  case PJ_EXECUTE: return execute(r, args);
  case PJ_LOAD: return load(r, args);
  case PJ_BUFFER_TO_DEVICE: return to_device(r, args);
  case PJ_BUFFER_TO_HOST: return to_host(r, args);
  case PJ_BUFFER_READY: return get_ready(r, args);
  case PJ_EXECUTABLE_TYPES: return get_types(r, args);
  case PJ_EXECUTABLE_DIMS: return get_dims(r, args);
  default: return ts_error(TS_UNIMPLEMENTED, "an isolated plugin has no function %d", function);
  }
}
