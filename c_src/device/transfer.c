/* Bytes of buffers: where they are, and how they get to another device. */
#include "device/remote.h"

#include "base/alloc.h"

#include <string.h>

/* ---- buffers around a platform's memory */

typedef struct remote {
  ts_device *device;
  void *memory;      /* NULL: a run has taken it */
  _Atomic bool lost; /* a run that did not end well has written to it, or may */
} remote;

static void release_remote(void *context) {
  remote *r = context;
  ts_client *client = r->device->client;
  if (r->memory) client->platform->release_memory(r->memory);
  ts_client_unuse(client);
  ts_free(r);
}

static remote *remote_of(const ts_buffer *buffer) { return ts_buffer_root(buffer)->context; }

void *ts_remote_memory(const ts_buffer *buffer) { return remote_of(buffer)->memory; }

ts_status ts_remote_check(const ts_buffer *buffer) {
  if (remote_of(buffer)->memory && !atomic_load(&remote_of(buffer)->lost)) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "%s on %s was donated to a run whose results were lost",
                  TS_SHAPE_STR(buffer->dtype, &buffer->shape), TS_DEVICE_STR(buffer->device));
}

void ts_remote_taken(ts_buffer *buffer) { remote_of(buffer)->memory = NULL; }

void ts_remote_lost(ts_buffer *buffer) { atomic_store(&remote_of(buffer)->lost, true); }

ts_status ts_remote_wrap(ts_device *device, const ts_type *type, void *memory, ts_buffer **out) {
  remote *r;
  *out = NULL;
  ts_status status = TS_NEW(&r);
  if (!status) {
    *r = (remote){.device = device, .memory = memory};
    status = ts_buffer_wrap_elsewhere(device, type->dtype, &type->shape, release_remote, r, out);
    if (status) ts_free(r);
  }
  if (!status) return TS_SUCCESS;
  device->client->platform->release_memory(memory);
  ts_client_unuse(device->client);
  return status;
}

/* ---- operations */

static void retain_owner(void *buffer) { ts_buffer_retain(buffer); }
static void release_owner(void *buffer) { ts_buffer_release(buffer); }

static ts_owner owner_of(ts_buffer *host) { return (ts_owner){host, retain_owner, release_owner}; }

/* The owner to give for host memory: none if the bytes may change, as they may once their address was given away. */
static ts_owner lender_of(ts_buffer *host) {
  bool fixed = atomic_load_explicit(&ts_buffer_root(host)->is_fixed, memory_order_relaxed);
  return fixed ? owner_of(host) : (ts_owner){NULL, NULL, NULL};
}

/* A transfer, in one or two steps: from the source's device to host memory, and from there to the target's. */
typedef struct transfer {
  ts_buffer *source; /* retained */
  ts_buffer *stage;  /* in host memory, if there are two steps */
  ts_device *target;
  ts_placement placement;
  void *memory; /* the new memory there */
  ts_address address;
  size_t in_front; /* bytes in front of the elements that must be readable */
  ts_buffer **out;
  ts_done done;
} transfer;

static ts_status transfer_create(ts_device *target, ts_buffer *source, ts_buffer **out, ts_done done, transfer **made) {
  *out = NULL;
  if (source->elsewhere) TS_TRY(ts_remote_check(source));
  TS_TRY(TS_NEW(made));
  ts_buffer_retain(source);
  **made = (transfer){.source = source, .target = target, .out = out, .done = done};
  return TS_SUCCESS;
}

static void transfer_end(transfer *t, ts_status status) {
  ts_done done = t->done;
  ts_buffer_release(t->source);
  ts_buffer_release(t->stage);
  ts_free(t);
  ts_done_call(done, status);
}

/* The target's platform has made the memory. The use of its client is the buffer's. */
static void placed(ts_status status, void *arg) {
  transfer *t = arg;
  ts_type type;
  if (status) {
    ts_client_unuse(t->target->client);
  } else {
    ts_type_set(&type, t->source->dtype, &t->source->shape);
    status = ts_remote_wrap(t->target, &type, t->memory, t->out);
  }
  transfer_end(t, status);
}

/* Begins the last step, or ends the transfer. */
static bool begin_placing(transfer *t) {
  ts_status status = ts_client_use(t->target->client);
  if (status) {
    transfer_end(t, status);
    return false;
  }
  t->placement = (ts_placement){.client = t->target->client->own,
                                .device = t->target->id,
                                .dtype = t->source->dtype,
                                .shape = &t->source->shape,
                                .bytes = t->source->bytes};
  return true;
}

/* From `host`; the transfer keeps it. */
static void send(transfer *t, ts_buffer *host) {
  if (!begin_placing(t)) return;
  t->placement.owner = lender_of(host);
  t->target->client->platform->from_host(&t->placement, host->data, &t->memory, (ts_done){placed, t});
}

void ts_device_place_start(ts_device *device, ts_buffer *host, ts_buffer **out, ts_done done) {
  transfer *t;
  *out = host;
  if (!ts_device_waits(device)) {
    host->device = device;
    ts_done_call(done, TS_SUCCESS);
    return;
  }
  ts_status status = transfer_create(device, host, out, done, &t);
  ts_buffer_release(host);
  if (status)
    ts_done_call(done, status);
  else
    send(t, host);
}

/* ---- reading */

static void read_done(ts_status status, void *arg) { transfer_end(arg, status); }

void ts_device_read_start(ts_buffer *buffer, int64_t bytes, void *out, ts_done done) {
  transfer *t;
  ts_buffer *nothing;
  if (!buffer->elsewhere) {
    memcpy(out, buffer->data, (size_t)bytes);
    ts_done_call(done, TS_SUCCESS);
    return;
  }
  ts_status status = transfer_create(NULL, buffer, &nothing, done, &t);
  if (status)
    ts_done_call(done, status);
  else
    buffer->device->client->platform->to_host(ts_remote_memory(buffer), bytes, out, (ts_done){read_done, t});
}

static void fetched(ts_status status, void *arg) {
  transfer *t = arg;
  if (!status) {
    *t->out = t->stage;
    t->stage = NULL;
  }
  transfer_end(t, status);
}

/* Reads the source into memory of the device's pool; NULL: none. */
static void fetch_into(ts_pool *pool, ts_device *device, transfer *t, void (*then)(ts_status, void *)) {
  ts_buffer *source = t->source;
  ts_status status = ts_buffer_create(pool, source->dtype, &source->shape, &t->stage);
  if (status) {
    transfer_end(t, status);
    return;
  }
  t->stage->device = device;
  ts_device_read_start(source, source->bytes, t->stage->data, (ts_done){then, t});
}

/* ---- without a copy */

/* Less is sooner copied. */
enum { SHARED_BYTES = 1 << 16 };

static bool has_addresses(const ts_device *device) { return device->client->platform->flags & TS_PLATFORM_ADDRESSES; }

static ts_status check_addresses(const ts_device *device) {
  const ts_client *client = device->client;
  if (has_addresses(device)) return TS_SUCCESS;
  return ts_error(TS_ELSEWHERE, "the platform %s of client %s has no addresses of tensors", client->platform->name,
                  client->name);
}

/* Where a page begins, nothing may be in front of it. */
static bool is_usable(const transfer *t) {
  uintptr_t data = (uintptr_t)t->address.data;
  return t->address.is_on_host && data % 4096 >= t->in_front && data % ts_dtype_size(t->source->dtype) == 0;
}

/* A buffer on the memory of the platform, which it keeps. */
static ts_status share(transfer *t) {
  ts_buffer *source = t->source;
  TS_TRY(ts_buffer_wrap(source->dtype, &source->shape, t->address.data, release_owner, source, &t->stage));
  ts_buffer_retain(source);
  return TS_SUCCESS;
}

static void found_address(ts_status status, void *arg) {
  transfer *t = arg;
  if (ts_status_consume_ok(status) && is_usable(t))
    fetched(share(t), t);
  else
    fetch_into(ts_pool_default(), NULL, t, fetched);
}

static void fetch(transfer *t, size_t in_front) {
  const ts_device *device = t->source->device;
  t->in_front = in_front;
  if (has_addresses(device) && t->source->bytes >= SHARED_BYTES)
    device->client->platform->address(ts_remote_memory(t->source), true, &t->address, (ts_done){found_address, t});
  else
    fetch_into(ts_pool_default(), NULL, t, fetched);
}

void ts_device_fetch_start(ts_buffer *buffer, size_t in_front, ts_buffer **out, ts_done done) {
  transfer *t;
  ts_status status = TS_SUCCESS;
  *out = buffer;
  if (!buffer->elsewhere) {
    ts_buffer_retain(buffer);
    ts_done_call(done, TS_SUCCESS);
    return;
  }
  status = transfer_create(NULL, buffer, out, done, &t);
  if (status)
    ts_done_call(done, status);
  else
    fetch(t, in_front);
}

/* ---- addresses */

void ts_device_address_start(ts_buffer *buffer, ts_address *out, ts_done done) {
  transfer *t;
  ts_buffer *nothing;
  *out = (ts_address){NULL, false};
  ts_status status = check_addresses(buffer->device);
  if (!status) status = transfer_create(NULL, buffer, &nothing, done, &t);
  if (status)
    ts_done_call(done, status);
  else
    buffer->device->client->platform->address(ts_remote_memory(buffer), false, out, (ts_done){read_done, t});
}

void ts_device_wrap_start(ts_device *device, ts_buffer *host, ts_buffer **out, ts_done done) {
  transfer *t;
  *out = NULL;
  ts_status status = check_addresses(device);
  if (!status) status = transfer_create(device, host, out, done, &t);
  ts_buffer_release(host); /* the transfer has a reference */
  if (status) {
    ts_done_call(done, status);
    return;
  }
  if (!begin_placing(t)) return;
  t->placement.owner = owner_of(host);
  device->client->platform->view(&t->placement, host->data, &t->memory, (ts_done){placed, t});
}

/* ---- copies */

static void staged(ts_status status, void *arg) {
  transfer *t = arg;
  if (status)
    transfer_end(t, status);
  else
    send(t, t->stage);
}

/* To a device of the same client, without the host. */
static void copy_there(transfer *t) {
  if (begin_placing(t))
    t->target->client->platform->copy(ts_remote_memory(t->source), &t->placement, &t->memory, (ts_done){placed, t});
}

void ts_device_copy_start(ts_device *device, ts_buffer *buffer, ts_buffer **out, ts_done done) {
  transfer *t;
  ts_status status = transfer_create(device, buffer, out, done, &t);
  if (status)
    ts_done_call(done, status);
  else if (!ts_device_waits(device))
    fetch_into(ts_client_pool(device->client), device, t, fetched);
  else if (!buffer->elsewhere)
    send(t, buffer);
  else if (buffer->device->client == device->client)
    copy_there(t);
  else
    fetch_into(ts_pool_default(), NULL, t, staged);
}

ts_status ts_device_view(ts_device *device, ts_buffer *buffer, ts_buffer **out) {
  *out = NULL;
  if (buffer->device == device) {
    ts_buffer_retain(buffer);
    *out = buffer;
    return TS_SUCCESS;
  }
  if (ts_device_waits(device) || !buffer->device || buffer->device->client != device->client) return TS_SUCCESS;
  TS_TRY(ts_buffer_alias(buffer, buffer->dtype, &buffer->shape, out));
  (*out)->device = device;
  return TS_SUCCESS;
}

/* ---- for callers that wait */

ts_status ts_device_stage(ts_device *device, ts_dtype dtype, const ts_shape *shape, ts_buffer **out) {
  bool host = !ts_device_waits(device);
  TS_TRY(ts_buffer_create(host ? ts_client_pool(device->client) : ts_pool_default(), dtype, shape, out));
  if (host) (*out)->device = device;
  return TS_SUCCESS;
}

ts_status ts_device_read(ts_buffer *buffer, int64_t bytes, void *out) {
  ts_wait wait;
  ts_device_read_start(buffer, bytes, out, ts_wait_begin(&wait));
  return ts_wait_end(&wait);
}

ts_status ts_device_fetch(ts_buffer *buffer, ts_buffer **out) {
  ts_wait wait;
  ts_device_fetch_start(buffer, 0, out, ts_wait_begin(&wait));
  return ts_wait_end(&wait);
}

ts_status ts_device_place(ts_device *device, ts_buffer *host, ts_buffer **out) {
  ts_wait wait;
  *out = host;
  if (!ts_device_waits(device)) {
    host->device = device;
    return TS_SUCCESS;
  }
  ts_device_place_start(device, host, out, ts_wait_begin(&wait));
  return ts_wait_end(&wait);
}

ts_status ts_device_copy(ts_device *device, ts_buffer *buffer, ts_buffer **out) {
  ts_wait wait;
  ts_device_copy_start(device, buffer, out, ts_wait_begin(&wait));
  return ts_wait_end(&wait);
}

ts_status ts_device_move(ts_device *device, ts_buffer *buffer, ts_buffer **out) {
  TS_TRY(ts_device_view(device, buffer, out));
  return *out ? TS_SUCCESS : ts_device_copy(device, buffer, out);
}
