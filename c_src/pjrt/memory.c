#include "pjrt/client.h"

/* Freeing more than this takes longer than a scheduler may be held, and so may a message to a process. */
enum { LARGE_BYTES = 1 << 20 };

ts_status pj_memory_new(pj_client *client, int32_t device, ts_dtype dtype, const ts_shape *shape, pj_memory **out) {
  pj_memory *m;
  TS_TRY(ts_alloc(sizeof *m + ts_shape_size(shape), (void **)&m));
  *m = (pj_memory){.client = client,
                   .bytes = ts_shape_bytes(shape, dtype),
                   .device = device,
                   .dtype = dtype,
                   .shape = (ts_shape *)(m + 1)};
  ts_shape_copy(m->shape, shape);
  ts_status status = pj_client_reserve(client, m->bytes);
  if (status) {
    ts_free(m);
    return status;
  }
  pj_client_retain(client);
  *out = m;
  return TS_SUCCESS;
}

static void destroy(pj_memory *m) {
  pj_client *client = m->client;
  pj_destroy(client->plugin, PJ_BUFFER_DESTROY, m->buffer);
  pj_client_unreserve(client, m->bytes);
  ts_free(m);
  pj_client_release(client);
}

static void destroy_now(pj_job *job) { destroy((pj_memory *)((char *)job - offsetof(pj_memory, ending))); }

void pj_memory_release(void *memory) {
  pj_memory *m = memory;
  if (!m) return;
  if (m->bytes <= LARGE_BYTES && !pj_plugin_is_isolated(m->client->plugin)) {
    destroy(m);
  } else {
    m->ending.body = destroy_now;
    pj_work(&m->ending);
  }
}

/* ---- transfers: a job, which waits for events */

typedef struct transfer {
  pj_wait wait;
  pj_client *client, *held; /* `held`: a reference */
  const ts_placement *placement;
  const void *data;
  pj_memory *source, *made;
  int64_t bytes;
  void *to, *whole; /* `whole`: the place for all elements if only the first are wanted */
  void **out;
  ts_status failed;
  ts_done done;
} transfer;

static void end_transfer(transfer *t, ts_status status) {
  ts_done done = t->done;
  if (t->failed) {
    ts_status_free(status);
    status = t->failed;
  }
  if (status)
    pj_memory_release(t->made);
  else if (t->out)
    *t->out = t->made;
  if (t->held) pj_client_release(t->held);
  ts_free(t->whole);
  ts_free(t);
  ts_done_call(done, status);
}

static void transferred(pj_wait *wait, ts_status status) { end_transfer((transfer *)wait, status); }

static void begin(transfer given, void (*body)(pj_job *)) {
  transfer *t;
  ts_status status = TS_NEW(&t);
  if (status) {
    ts_done_call(given.done, status);
    return;
  }
  *t = given;
  t->wait.job.body = body;
  t->wait.then = transferred;
  pj_work(&t->wait.job);
}

/* Waits until the buffer that was made has its elements. */
static void await_made(transfer *t) {
  pj_args args = PJ_ARGS(.ready = {.buffer = t->made->buffer});
  ts_status status = pj_call(t->client->plugin, PJ_BUFFER_READY, &args);
  if (status) {
    end_transfer(t, status);
    return;
  }
  t->wait.what = "the transfer to the device";
  t->wait.then = transferred;
  pj_await(t->client->plugin, args.ready.event, &t->wait);
}

/* The data has been read. Also after an error of the read, the buffer's own event is the last one. */
static void was_read(pj_wait *wait, ts_status status) {
  transfer *t = (transfer *)wait;
  t->failed = status;
  await_made(t);
}

static ts_status check_placement(const pj_client *c, const ts_placement *p) {
  if (p->device < 0 || p->device >= c->device_count)
    return ts_error(TS_INVALID_ARGUMENT, "the plugin has %d devices, got device %d", c->device_count, p->device);
  if (!pj_type(p->dtype))
    return ts_error(TS_UNIMPLEMENTED, "the type %s is not known to plugins", ts_dtype_name(p->dtype));
  return pj_work_start();
}

static ts_status send_to_device(transfer *t) {
  const ts_placement *p = t->placement;
  TS_TRY(pj_door_client(p->client, &t->held));
  pj_client *c = t->client = t->held;
  TS_TRY(check_placement(c, p));
  TS_TRY(pj_memory_new(c, p->device, p->dtype, p->shape, &t->made));
  pj_args args = PJ_ARGS(.from_host = {.client = c->handle,
                                       .data = t->data,
                                       .type = pj_type(p->dtype),
                                       .dims = p->shape->dims,
                                       .rank = (size_t)p->shape->rank,
                                       .semantics = PJ_UNTIL_TRANSFERRED,
                                       .device = c->devices[p->device]});
  TS_TRY(pj_call(c->plugin, PJ_FROM_HOST, &args));
  t->made->buffer = args.from_host.buffer;
  t->wait.event = args.from_host.read;
  return TS_SUCCESS;
}

static void from_host_now(pj_job *job) {
  transfer *t = (transfer *)job;
  ts_status status = send_to_device(t);
  if (status) {
    end_transfer(t, status);
    return;
  }
  t->wait.what = "the transfer to the device";
  t->wait.then = was_read;
  pj_await(t->client->plugin, t->wait.event, &t->wait);
}

void pj_from_host(const ts_placement *placement, const void *data, void **out_memory, ts_done done) {
  *out_memory = NULL;
  begin((transfer){.placement = placement, .data = data, .out = out_memory, .done = done}, from_host_now);
}

/* ---- to the host */

static void received(pj_wait *wait, ts_status status) {
  transfer *t = (transfer *)wait;
  if (!status && t->whole) memcpy(t->to, t->whole, (size_t)t->bytes);
  end_transfer(t, status);
}

static ts_status receive(transfer *t) {
  const pj_memory *m = t->source;
  int64_t order[TS_MAX_RANK];
  if (t->bytes < m->bytes) TS_TRY(ts_alloc((size_t)m->bytes, &t->whole));
  for (int32_t i = 0; i < m->shape->rank; i++) order[i] = m->shape->rank - 1 - i;
  pj_layout layout = {.size = sizeof layout,
                      .order = {.size = sizeof layout.order, .minor_to_major = order, .rank = (size_t)m->shape->rank}};
  pj_args args = PJ_ARGS(.to_host = {.buffer = m->buffer,
                                     .layout = &layout,
                                     .to = t->whole ? t->whole : t->to,
                                     .to_size = (size_t)m->bytes});
  TS_TRY(pj_call(t->client->plugin, PJ_BUFFER_TO_HOST, &args));
  t->wait.event = args.to_host.event;
  return TS_SUCCESS;
}

static void to_host_now(pj_job *job) {
  transfer *t = (transfer *)job;
  ts_status status = t->bytes == 0 ? TS_SUCCESS : receive(t);
  if (status || t->bytes == 0) {
    end_transfer(t, status);
    return;
  }
  t->wait.what = "the transfer to the host";
  t->wait.then = received;
  pj_await(t->client->plugin, t->wait.event, &t->wait);
}

void pj_to_host(void *memory, int64_t bytes, void *out, ts_done done) {
  pj_memory *m = memory;
  begin((transfer){.client = m->client, .source = m, .bytes = bytes, .to = out, .done = done}, to_host_now);
}

/* ---- copies: plugins refuse to copy to the device where the buffer is, so a program does */

static ts_status copy_to_device(transfer *t) {
  const ts_placement *p = t->placement;
  pj_client *c = t->client;
  TS_TRY(check_placement(c, p));
  TS_TRY(pj_memory_new(c, p->device, p->dtype, t->source->shape, &t->made));
  if (p->device == t->source->device) return pj_reshape_buffer(t->source, t->source->shape, &t->made->buffer);
  pj_args args = PJ_ARGS(.to_device = {.buffer = t->source->buffer, .device = c->devices[p->device]});
  TS_TRY(pj_call(c->plugin, PJ_BUFFER_TO_DEVICE, &args));
  t->made->buffer = args.to_device.copy;
  return TS_SUCCESS;
}

static void copy_now(pj_job *job) {
  transfer *t = (transfer *)job;
  ts_status status = copy_to_device(t);
  if (status)
    end_transfer(t, status);
  else
    await_made(t);
}

void pj_copy(void *memory, const ts_placement *placement, void **out_memory, ts_done done) {
  pj_memory *m = memory;
  *out_memory = NULL;
  begin((transfer){.client = m->client, .placement = placement, .source = m, .out = out_memory, .done = done},
        copy_now);
}
