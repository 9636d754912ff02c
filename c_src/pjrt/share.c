/* Elements that are read in place: addresses of buffers, buffers on memory of others, and loans of host memory. Only
 * plugins in this process have addresses that mean something here. */
#include "base/system.h"
#include "pjrt/client.h"

/* ---- where elements are */

/* Whether the elements are dense, row-major, and fill the bytes that the memory has. Small types may be packed. */
static ts_status check_layout(const pj_memory *m) {
  const pj_plugin *plugin = m->client->plugin;
  pj_args size = PJ_ARGS(.count = {.object = m->buffer}), layout = PJ_ARGS(.layout = {.buffer = m->buffer});
  TS_TRY(pj_call(plugin, PJ_BUFFER_SIZE, &size));
  layout.layout.layout.size = sizeof layout.layout.layout;
  TS_TRY(pj_call(plugin, PJ_BUFFER_LAYOUT, &layout));
  const pj_layout *l = &layout.layout.layout;
  bool plain = size.count.count == m->bytes && l->kind == PJ_ORDER && l->order.rank == (size_t)m->shape->rank &&
               l->order.tile_count == 0;
  for (int32_t i = 0; plain && i < m->shape->rank; i++) plain = l->order.minor_to_major[i] == m->shape->rank - 1 - i;
  if (plain) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "the device keeps %s in another layout than the host",
                  TS_SHAPE_STR(m->dtype, m->shape));
}

/* A client asks its plugin once. Without an answer the host reads no elements in place. */
static pj_place find_place(const pj_memory *m) {
  pj_client *c = m->client;
  pj_place place = atomic_load(&c->place);
  if (place != PJ_NOT_KNOWN) return place;
  pj_args args = PJ_ARGS(.flag = {.object = m->buffer});
  bool told = ts_status_consume_ok(pj_call(c->plugin, PJ_BUFFER_IS_ON_CPU, &args));
  place = told && args.flag.yes ? PJ_ON_CPU : PJ_ON_DEVICE;
  atomic_store(&c->place, place);
  return place;
}

static ts_status check_process(const pj_client *c) {
  if (!pj_plugin_is_isolated(c->plugin)) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED,
                  "the plugin has a process of its own (isolated), whose addresses others cannot use");
}

/* ---- addresses: an external reference keeps the elements where they are */

static ts_status get_address(pj_memory *m, void **out) {
  const pj_plugin *plugin = m->client->plugin;
  pj_args args = PJ_ARGS(.pointer = {.object = m->buffer});
  TS_TRY(check_layout(m));
  TS_TRY(pj_call(plugin, PJ_BUFFER_HOLD, &PJ_ARGS(.object = m->buffer)));
  ts_status status = pj_call(plugin, PJ_BUFFER_ADDRESS, &args);
  void *none = NULL;
  *out = args.pointer.pointer;
  if (!status && !*out) status = ts_error(TS_UNIMPLEMENTED, "the plugin gives no address of a tensor");
  /* Several threads may ask at the same time. The first one keeps its reference. */
  bool kept = !status && atomic_compare_exchange_strong(&m->address, &none, *out);
  if (!kept) pj_destroy(plugin, PJ_BUFFER_LET_GO, m->buffer);
  return status;
}

ts_status pj_find_address(pj_memory *m, bool for_host, ts_address *out) {
  out->is_on_host = find_place(m) == PJ_ON_CPU;
  out->data = atomic_load(&m->address);
  return out->data || (for_host && !out->is_on_host) ? TS_SUCCESS : get_address(m, &out->data);
}

const void *pj_host_address(pj_memory *m) {
  ts_address found;
  if (!m->buffer || pj_plugin_is_isolated(m->client->plugin)) return NULL;
  return ts_status_consume_ok(pj_find_address(m, true, &found)) && found.is_on_host ? found.data : NULL;
}

const void *pj_known_host_address(const pj_memory *m) {
  return atomic_load(&m->client->place) == PJ_ON_CPU ? atomic_load(&m->address) : NULL;
}

ts_status pj_known_address(const pj_memory *m, bool for_host, ts_address *out, bool *out_known) {
  const pj_place place = atomic_load(&m->client->place);
  *out = (ts_address){atomic_load(&m->address), place == PJ_ON_CPU};
  *out_known = out->data || (for_host && place == PJ_ON_DEVICE);
  return *out_known ? TS_SUCCESS : check_process(m->client);
}

/* ---- views: buffers on memory that the caller owns */

/* The plugin does not use the bytes any more. On any thread. */
static void release_view(void *data, void *arg) {
  ts_owner *owner = arg;
  (void)data;
  owner->release(owner->object);
  ts_free(owner);
}

/* The plugin checks the alignment, and does not read the bytes yet. An address of a device cannot be checked. */
static ts_status check_view(const pj_memory *m, const void *data) {
  return find_place(m) == PJ_ON_CPU ? ts_system_check_readable(data, m->bytes) : TS_SUCCESS;
}

ts_status pj_view_bytes(pj_memory *m, const ts_owner *owner, void *data) {
  pj_client *c = m->client;
  ts_owner *kept; /* the plugin has the reference, until it calls back */
  TS_TRY(check_process(c));
  TS_TRY(TS_NEW(&kept));
  *kept = *owner;
  kept->retain(kept->object);
  pj_args args = PJ_ARGS(.view = {.client = c->handle,
                                  .data = data,
                                  .dims = m->shape->dims,
                                  .rank = (size_t)m->shape->rank,
                                  .type = pj_type(m->dtype),
                                  .device = c->devices[m->device],
                                  .release = release_view,
                                  .arg = kept});
  ts_status status = pj_call(c->plugin, PJ_BUFFER_VIEW, &args);
  if (status) {
    release_view(data, kept);
    return status;
  }
  m->buffer = args.view.buffer;
  return check_view(m, data);
}

/* ---- loans: a buffer reads host memory until its plugin says that it does not any more */

enum { LOAN_BYTES = 1 << 16, MOST_LEFT = 64 };

/* The buffer's end and the plugin's answer come in any order. The second one frees the loan. */
enum { LENT, BUFFER_ENDED, GIVEN_BACK };

struct pj_loan {
  pj_wait wait;
  pj_client *client; /* a reference, so that the client's end comes after the event's */
  ts_owner owner;    /* a reference */
  _Atomic int state;
};

/* Of a plugin that gives nothing back MOST_LEFT loans are left at most. From then on the client copies. */
static bool lends(const pj_client *c, const ts_owner *owner, int64_t bytes) {
  return owner->object && bytes >= LOAN_BYTES && atomic_load(&c->place) == PJ_ON_CPU &&
         !atomic_load(&c->lends_nothing) && atomic_load(&c->left) < MOST_LEFT;
}

void pj_learn_place(const pj_memory *m) {
  if (m->bytes >= LOAN_BYTES && !pj_plugin_is_isolated(m->client->plugin)) (void)find_place(m);
}

static void given_back(pj_wait *wait, ts_status status) {
  pj_loan *l = (pj_loan *)wait;
  pj_client *client = l->client;
  ts_owner owner = l->owner;
  ts_status_free(status); /* also after an error the bytes are not read any more */
  if (atomic_exchange(&l->state, GIVEN_BACK) == BUFFER_ENDED) {
    atomic_fetch_sub(&client->left, 1);
    ts_free(l);
  }
  owner.release(owner.object);
  pj_client_release(client);
}

static void end_of_buffer(pj_memory *m) {
  pj_client *client = m->client;
  atomic_fetch_add(&client->left, 1);
  if (atomic_exchange(&m->loan->state, BUFFER_ENDED) != GIVEN_BACK) return;
  atomic_fetch_sub(&client->left, 1);
  ts_free(m->loan);
}

static ts_status new_loan(pj_client *client, const ts_owner *owner, pj_loan **out) {
  TS_TRY(TS_NEW(out));
  **out = (pj_loan){
      .client = client, .owner = *owner, .wait = {.what = "the end of the transfer to the device", .then = given_back}};
  pj_client_retain(client);
  owner->retain(owner->object);
  return TS_SUCCESS;
}

static void drop_loan(pj_loan *l) {
  l->owner.release(l->owner.object);
  pj_client_release(l->client);
  ts_free(l);
}

/* A plugin that refuses does so each time. */
static ts_status refused(pj_client *client, ts_status status) {
  ts_code code = ts_status_code(status);
  if (code != TS_UNIMPLEMENTED && code != TS_INVALID_ARGUMENT) return status;
  atomic_store(&client->lends_nothing, true);
  ts_status_free(status);
  return TS_SUCCESS;
}

/* Without its buffer the plugin has no use of the bytes, so its event ends soon. */
static void take_back(pj_loan *l, pj_buffer *buffer, pj_event *event) {
  const pj_plugin *plugin = l->client->plugin;
  atomic_store(&l->client->lends_nothing, true);
  pj_destroy(plugin, PJ_BUFFER_DESTROY, buffer);
  if (event) ts_status_free(pj_call(plugin, PJ_EVENT_AWAIT, &PJ_ARGS(.event = {.event = event})));
  pj_destroy(plugin, PJ_EVENT_DESTROY, event);
  drop_loan(l);
}

ts_status pj_lend(pj_memory *m, const ts_owner *owner, const void *data, bool *out) {
  pj_client *client = m->client;
  pj_loan *l;
  *out = false;
  if (!lends(client, owner, m->bytes)) return TS_SUCCESS;
  TS_TRY(new_loan(client, owner, &l));
  pj_args args = pj_from_host_args(m, data, PJ_SHARED);
  ts_status status = pj_call(client->plugin, PJ_FROM_HOST, &args);
  if (status) {
    drop_loan(l);
    return refused(client, status);
  }
  pj_event *event = args.from_host.read;
  if (!event || !ts_status_consume_ok(pj_watch(client->plugin, event, &l->wait))) {
    take_back(l, args.from_host.buffer, event);
    return TS_SUCCESS;
  }
  m->buffer = args.from_host.buffer;
  m->loan = l;
  *out = true;
  return TS_SUCCESS;
}

void pj_memory_let_go(pj_memory *m) {
  if (atomic_load(&m->address)) pj_destroy(m->client->plugin, PJ_BUFFER_LET_GO, m->buffer);
  if (m->loan) end_of_buffer(m);
}
