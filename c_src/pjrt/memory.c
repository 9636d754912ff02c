#include "pjrt/client.h"

/* Freeing more than this takes longer than a scheduler may be held, and so may a message to a process. */
enum { LARGE_BYTES = 1 << 20 };

ts_status pj_memory_new_uncounted(pj_client *client, int32_t device, ts_dtype dtype, const ts_shape *shape,
                                  pj_memory **out) {
  pj_memory *m;
  TS_TRY(ts_alloc(sizeof *m + ts_shape_size(shape), (void **)&m));
  *m = (pj_memory){.refs = 1,
                   .client = client,
                   .bytes = ts_shape_bytes(shape, dtype),
                   .device = device,
                   .dtype = dtype,
                   .shape = (ts_shape *)(m + 1)};
  ts_shape_copy(m->shape, shape);
  pj_client_retain(client);
  *out = m;
  return TS_SUCCESS;
}

ts_status pj_memory_new(pj_client *client, int32_t device, ts_dtype dtype, const ts_shape *shape, pj_memory **out) {
  pj_memory *m;
  TS_TRY(pj_memory_new_uncounted(client, device, dtype, shape, &m));
  ts_status status = pj_client_reserve(client, m->bytes);
  if (status) {
    pj_memory_release(m);
    return status;
  }
  m->counted = m->bytes;
  *out = m;
  return TS_SUCCESS;
}

static void destroy(pj_memory *m) {
  pj_client *client = m->client;
  pj_memory_let_go(m);
  pj_destroy(client->plugin, PJ_BUFFER_DESTROY, m->buffer);
  pj_client_unreserve(client, m->counted);
  ts_free(m);
  pj_client_release(client);
}

static void destroy_now(pj_job *job) { destroy((pj_memory *)((char *)job - offsetof(pj_memory, ending))); }

void pj_memory_release(void *memory) {
  pj_memory *m = memory;
  if (!m || atomic_fetch_sub(&m->refs, 1) != 1) return;
  if (m->bytes <= LARGE_BYTES && !pj_plugin_is_isolated(m->client->plugin)) {
    destroy(m);
  } else {
    m->ending.body = destroy_now;
    pj_work(&m->ending);
  }
}

/* ---- transfers: a job, which waits for events. It has references to all that it uses. With a deadline it does not use
 * memory of the caller's either, but copies of it. */

typedef struct transfer {
  pj_wait wait;
  pj_deadline deadline;
  pj_door *door;     /* of the target device, for an isolated client that has ended */
  pj_client *client; /* a reference */
  int32_t device;
  ts_dtype dtype;
  ts_shape shape;
  const void *data;
  ts_owner owner;           /* of the data; a reference */
  pj_memory *source, *made; /* references */
  int64_t bytes;
  void *to, *own; /* `own`: the elements in the transfer's memory */
  bool for_host;
  ts_address address, *found; /* `found`: the caller's */
  void **out;
  ts_status failed;
} transfer;

static void free_transfer(transfer *t) {
  pj_memory_release(t->made);
  pj_memory_release(t->source);
  pj_client_release(t->client);
  if (t->owner.object) t->owner.release(t->owner.object);
  ts_free(t->own);
  ts_free(t);
}

static void end_transfer(transfer *t, ts_status status) {
  ts_done done = t->deadline.done;
  bool awaited = pj_deadline_end(&t->deadline);
  if (t->failed) {
    ts_status_free(status);
    status = t->failed;
  }
  if (awaited && !status && t->out) {
    *t->out = t->made;
    t->made = NULL;
  }
  if (awaited && !status && t->found) *t->found = t->address;
  if (awaited && !status && t->to && t->own) memcpy(t->to, t->own, (size_t)t->bytes);
  free_transfer(t);
  if (awaited)
    ts_done_call(done, status);
  else
    ts_status_free(status);
}

static void transferred(pj_wait *wait, ts_status status) { end_transfer((transfer *)wait, status); }

static void fill_placement(transfer *t, const ts_placement *p) {
  t->door = p->client;
  t->device = p->device;
  t->dtype = p->dtype;
  ts_shape_copy(&t->shape, p->shape);
  t->owner = p->owner;
  if (t->owner.object) t->owner.retain(t->owner.object);
}

/* The transfer's own copy of the caller's data, where it has no owner. */
static ts_status copy_data(transfer *t, int64_t bytes) {
  if (!t->data || !t->client->deadlines.answer_ms || t->owner.object) return TS_SUCCESS;
  TS_TRY(ts_alloc((size_t)bytes + 1, &t->own));
  memcpy(t->own, t->data, (size_t)bytes);
  t->data = t->own;
  return TS_SUCCESS;
}

/* Takes over the reference to the client, also on failure. */
static void begin(transfer given, const ts_placement *p, const char *what, ts_done done) {
  transfer *t;
  ts_status status = TS_NEW(&t);
  if (status) {
    pj_client_release(given.client);
    ts_done_call(done, status);
    return;
  }
  *t = given;
  if (p) fill_placement(t, p);
  if (t->source) pj_memory_retain(t->source);
  t->wait.what = what;
  t->wait.then = transferred;
  t->deadline.done = done;
  status = copy_data(t, p ? p->bytes : 0);
  if (!status) status = pj_client_begin(t->client, &t->deadline, what, done);
  if (status)
    end_transfer(t, status);
  else
    pj_work(&t->wait.job);
}

static const char to_the_device[] = "the transfer to the device", to_the_host[] = "the transfer to the host";

/* Waits until the buffer that was made has its elements. */
static void await_made(transfer *t) {
  pj_args args = PJ_ARGS(.ready = {.buffer = t->made->buffer});
  ts_status status = pj_call(t->client->plugin, PJ_BUFFER_READY, &args);
  if (status) {
    end_transfer(t, status);
    return;
  }
  t->wait.then = transferred;
  pj_await(t->client->plugin, args.ready.event, &t->wait);
}

/* The data has been read. Also after an error of the read, the buffer's own event is the last one. */
static void was_read(pj_wait *wait, ts_status status) {
  transfer *t = (transfer *)wait;
  t->failed = status;
  await_made(t);
}

ts_status pj_check_placement(const pj_client *c, int32_t device, ts_dtype dtype) {
  if (device < 0 || device >= c->device_count)
    return ts_error(TS_INVALID_ARGUMENT, "the plugin has %d devices, got device %d", c->device_count, device);
  if (pj_type(dtype)) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "the type %s is not known to plugins", ts_dtype_name(dtype));
}

static ts_status check_placement(const transfer *t) {
  TS_TRY(pj_check_placement(t->client, t->device, t->dtype));
  return pj_work_start();
}

/* The client that follows one whose process has ended. */
static ts_status renew_client(transfer *t) {
  pj_client *next;
  if (!pj_plugin_is_gone(t->client->plugin)) return TS_SUCCESS;
  TS_TRY(pj_door_client(t->door, &next));
  pj_client_release(t->client);
  t->client = next;
  return TS_SUCCESS;
}

pj_args pj_from_host_args(const pj_memory *m, const void *data, int semantics) {
  return PJ_ARGS(.from_host = {.client = m->client->handle,
                               .data = data,
                               .type = pj_type(m->dtype),
                               .dims = m->shape->dims,
                               .rank = (size_t)m->shape->rank,
                               .semantics = semantics,
                               .device = m->client->devices[m->device]});
}

static ts_status send_to_device(transfer *t) {
  bool lent;
  TS_TRY(renew_client(t));
  TS_TRY(check_placement(t));
  TS_TRY(pj_memory_new(t->client, t->device, t->dtype, &t->shape, &t->made));
  TS_TRY(pj_lend(t->made, &t->owner, t->data, &lent));
  if (lent) return TS_SUCCESS;
  pj_args args = pj_from_host_args(t->made, t->data, PJ_UNTIL_TRANSFERRED);
  TS_TRY(pj_call(t->client->plugin, PJ_FROM_HOST, &args));
  t->made->buffer = args.from_host.buffer;
  t->wait.event = args.from_host.read;
  if (t->owner.object) pj_learn_place(t->made);
  return TS_SUCCESS;
}

static void from_host_now(pj_job *job) {
  transfer *t = (transfer *)job;
  ts_status status = pj_deadline_check(&t->deadline);
  if (!status) status = send_to_device(t);
  if (status) {
    end_transfer(t, status);
    return;
  }
  t->wait.then = was_read;
  pj_await(t->client->plugin, t->wait.event, &t->wait);
}

void pj_from_host(const ts_placement *placement, const void *data, void **out_memory, ts_done done) {
  *out_memory = NULL;
  begin((transfer){.wait.job.body = from_host_now,
                   .client = pj_door_present(placement->client),
                   .data = data,
                   .out = out_memory},
        placement, to_the_device, done);
}

ts_status pj_memory_from_host(pj_client *client, int32_t device, const ts_type *type, const void *data,
                              pj_memory **out) {
  TS_TRY(pj_memory_new(client, device, type->dtype, &type->shape, out));
  pj_args args = pj_from_host_args(*out, data, PJ_UNTIL_TRANSFERRED);
  ts_status status = pj_call(client->plugin, PJ_FROM_HOST, &args);
  if (!status) {
    pj_event *read = args.from_host.read;
    (*out)->buffer = args.from_host.buffer;
    if (read) status = pj_call(client->plugin, PJ_EVENT_AWAIT, &PJ_ARGS(.event = {.event = read}));
    pj_destroy(client->plugin, PJ_EVENT_DESTROY, read);
  }
  if (status) {
    pj_memory_release(*out);
    *out = NULL;
  }
  return status;
}

/* ---- to the host */

static void received(pj_wait *wait, ts_status status) { end_transfer((transfer *)wait, status); }

static ts_status read_in_place(transfer *t, const void *data) {
  if (pj_has_deadline(&t->deadline)) TS_TRY(ts_alloc((size_t)t->bytes, &t->own));
  memcpy(t->own ? t->own : t->to, data, (size_t)t->bytes);
  return TS_SUCCESS;
}

static ts_status receive(transfer *t) {
  const pj_memory *m = t->source;
  int64_t order[TS_MAX_RANK];
  const void *here = pj_host_address(t->source);
  if (here) return read_in_place(t, here);
  if (t->bytes < m->bytes || pj_has_deadline(&t->deadline)) TS_TRY(ts_alloc((size_t)m->bytes, &t->own));
  for (int32_t i = 0; i < m->shape->rank; i++) order[i] = m->shape->rank - 1 - i;
  pj_layout layout = {.size = sizeof layout,
                      .order = {.size = sizeof layout.order, .minor_to_major = order, .rank = (size_t)m->shape->rank}};
  pj_args args =
      PJ_ARGS(.to_host = {
                  .buffer = m->buffer, .layout = &layout, .to = t->own ? t->own : t->to, .to_size = (size_t)m->bytes});
  TS_TRY(pj_call(t->client->plugin, PJ_BUFFER_TO_HOST, &args));
  t->wait.event = args.to_host.event;
  return TS_SUCCESS;
}

static void to_host_now(pj_job *job) {
  transfer *t = (transfer *)job;
  ts_status status = pj_deadline_check(&t->deadline);
  if (!status && t->bytes > 0) status = receive(t);
  if (status || t->bytes == 0) {
    end_transfer(t, status);
    return;
  }
  t->wait.then = received;
  pj_await(t->client->plugin, t->wait.event, &t->wait);
}

static pj_client *client_of(const pj_memory *m) {
  pj_client_retain(m->client);
  return m->client;
}

/* Copying this takes less than a thread of the client takes to begin. */
enum { SMALL_BYTES = 1 << 16 };

void pj_to_host(void *memory, int64_t bytes, void *out, ts_done done) {
  const void *here = bytes <= SMALL_BYTES ? pj_known_host_address(memory) : NULL;
  if (here) {
    memcpy(out, here, (size_t)bytes);
    ts_done_call(done, TS_SUCCESS);
    return;
  }
  begin(
      (transfer){
          .wait.job.body = to_host_now, .client = client_of(memory), .source = memory, .bytes = bytes, .to = out},
      NULL, to_the_host, done);
}

/* ---- copies: plugins refuse to copy to the device where the buffer is, so a program does */

static ts_status copy_to_device(transfer *t) {
  TS_TRY(check_placement(t));
  TS_TRY(pj_memory_new(t->client, t->device, t->dtype, t->source->shape, &t->made));
  if (t->device == t->source->device)
    return pj_reshape_buffer(t->source, t->source->shape, &t->deadline, &t->made->buffer);
  pj_args args = PJ_ARGS(.to_device = {.buffer = t->source->buffer, .device = t->client->devices[t->device]});
  TS_TRY(pj_call(t->client->plugin, PJ_BUFFER_TO_DEVICE, &args));
  t->made->buffer = args.to_device.copy;
  return TS_SUCCESS;
}

static void copy_now(pj_job *job) {
  transfer *t = (transfer *)job;
  ts_status status = pj_deadline_check(&t->deadline);
  if (!status) status = copy_to_device(t);
  if (status)
    end_transfer(t, status);
  else
    await_made(t);
}

void pj_copy(void *memory, const ts_placement *placement, void **out_memory, ts_done done) {
  *out_memory = NULL;
  begin((transfer){.wait.job.body = copy_now, .client = client_of(memory), .source = memory, .out = out_memory},
        placement, to_the_device, done);
}

/* ---- in place: nothing is transferred, but a plugin may not answer */

static void view_now(pj_job *job) {
  transfer *t = (transfer *)job;
  ts_status status = pj_deadline_check(&t->deadline);
  if (!status) status = pj_check_placement(t->client, t->device, t->dtype);
  if (!status) status = pj_memory_new_uncounted(t->client, t->device, t->dtype, &t->shape, &t->made);
  if (!status) status = pj_view_bytes(t->made, &t->owner, (void *)(uintptr_t)t->data);
  end_transfer(t, status);
}

void pj_view(const ts_placement *placement, void *data, void **out_memory, ts_done done) {
  *out_memory = NULL;
  begin(
      (transfer){
          .wait.job.body = view_now, .client = pj_door_present(placement->client), .data = data, .out = out_memory},
      placement, "the view of memory", done);
}

static void find_address_now(pj_job *job) {
  transfer *t = (transfer *)job;
  ts_status status = pj_deadline_check(&t->deadline);
  if (!status) status = pj_find_address(t->source, t->for_host, &t->address);
  end_transfer(t, status);
}

void pj_address(void *memory, bool for_host, ts_address *out, ts_done done) {
  bool known;
  ts_status status = pj_known_address(memory, for_host, out, &known);
  if (status || known) {
    ts_done_call(done, status);
    return;
  }
  begin((transfer){.wait.job.body = find_address_now,
                   .client = client_of(memory),
                   .source = memory,
                   .for_host = for_host,
                   .found = out},
        NULL, "the search for an address", done);
}
