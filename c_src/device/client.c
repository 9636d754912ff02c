/* The clients of the process. Clients and devices are only added, under the lock, and are complete before they are
 * counted, so readers need no lock. */
#include "device/remote.h"

#include "base/alloc.h"
#include "base/lock.h"

#include <stdio.h>
#include <string.h>

static ts_device host_device;
static ts_client host = {.name = "host", .platform = &ts_platform_host, .device_count = 1, .devices = {&host_device}};
static ts_device host_device = {.client = &host};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ts_client *clients[TS_MAX_CLIENTS] = {&host};
static _Atomic int32_t client_count = 1;

ts_client *ts_client_host(void) { return &host; }

static ts_client *_Atomic default_client = &host;

ts_device *ts_device_default(void) { return atomic_load_explicit(&default_client, memory_order_acquire)->devices[0]; }

void ts_client_set_default(ts_client *client) { atomic_store(&default_client, client); }

ts_client *ts_client_find(const char *name) {
  int32_t count = atomic_load_explicit(&client_count, memory_order_acquire);
  for (int32_t i = 0; i < count; i++)
    if (strcmp(clients[i]->name, name) == 0) return clients[i];
  return NULL;
}

ts_status ts_client_device(ts_client *client, int64_t id, ts_device **out) {
  int32_t count = atomic_load_explicit(&client->device_count, memory_order_acquire);
  *out = NULL;
  if (atomic_load_explicit(&client->is_closed, memory_order_relaxed))
    return ts_error(TS_FAILED_PRECONDITION, "client %s is closed", client->name);
  if (id < 0 || id >= count)
    return ts_error(TS_INVALID_ARGUMENT, "client %s has no device %lld, it has %d from 0 on", client->name,
                    (long long)id, count);
  *out = client->devices[id];
  return TS_SUCCESS;
}

/* ---- opening; the lock is held */

static ts_status add_device(ts_client *client) {
  ts_device *device;
  int32_t count = atomic_load(&client->device_count);
  TS_TRY(TS_NEW(&device));
  device->client = client;
  device->id = count;
  client->devices[count] = device;
  atomic_store_explicit(&client->device_count, count + 1, memory_order_release);
  return TS_SUCCESS;
}

static ts_status add_devices(ts_client *client, int32_t count) {
  while (atomic_load(&client->device_count) < count) TS_TRY(add_device(client));
  return TS_SUCCESS;
}

static ts_status set_limit(ts_client *client, int64_t bytes) {
  ts_pool *pool = atomic_load(&client->pool);
  if (client == &host) pool = ts_pool_default();
  if (!pool) {
    TS_TRY(ts_pool_create(bytes, &pool));
    atomic_store_explicit(&client->pool, pool, memory_order_release);
  }
  ts_pool_set_limit(pool, bytes);
  return TS_SUCCESS;
}

static ts_status configure(ts_client *client, const ts_client_options *options) {
  const ts_platform *platform = options->platform ? options->platform : &ts_platform_host;
  int32_t count = options->device_count ? options->device_count : 1;
  if (client->platform != platform)
    return ts_error(TS_INVALID_ARGUMENT, "client %s is open on platform %s, not %s", client->name,
                    client->platform->name, platform->name);
  if (platform->direct) {
    TS_TRY(add_devices(client, count));
    if (options->memory_limit >= 0) TS_TRY(set_limit(client, options->memory_limit));
  } else if (count > client->device_count) {
    return ts_error(TS_INVALID_ARGUMENT, "client %s of platform %s has %d devices, got %d", client->name,
                    platform->name, client->device_count, count);
  }
  if (options->threads >= 0) atomic_store(&client->threads, options->threads);
  return TS_SUCCESS;
}

/* A client that could not be configured is not added. Its devices are freed with it, since no other thread knows
 * them. */
static void discard(ts_client *client) {
  for (int32_t i = 0; i < client->device_count; i++) ts_free(client->devices[i]);
  ts_pool_destroy(client->pool);
  ts_free(client);
}

static ts_status new_client(const char *name, const ts_client_options *options, ts_client **out) {
  ts_client *client;
  TS_TRY(TS_NEW(&client));
  snprintf(client->name, sizeof client->name, "%s", name);
  client->platform = options->platform ? options->platform : &ts_platform_host;
  client->index = -1;
  *out = client;
  return TS_SUCCESS;
}

/* Makes it known. A client that was closed is known already. */
static ts_status add_client(ts_client *client) {
  int32_t count = atomic_load(&client_count);
  if (client->index >= 0) return TS_SUCCESS;
  if (count == TS_MAX_CLIENTS)
    return ts_error(TS_RESOURCE_EXHAUSTED, "client %s: there are %d clients, which is the limit", client->name, count);
  client->index = count;
  client->group = client->platform == &ts_platform_host ? 0 : count;
  clients[count] = client;
  atomic_store_explicit(&client_count, count + 1, memory_order_release);
  return TS_SUCCESS;
}

static ts_status open_host(const char *name, const ts_client_options *options, ts_client **out) {
  ts_client *client;
  TS_TRY(new_client(name, options, &client));
  ts_status status = configure(client, options);
  if (!status) status = add_client(client);
  if (status)
    discard(client);
  else
    *out = client;
  return status;
}

static ts_status check_options(const char *name, const ts_client_options *options) {
  if (strlen(name) >= TS_CLIENT_NAME_BYTES)
    return ts_error(TS_INVALID_ARGUMENT, "the name of a client has %zu bytes, at most %d are allowed", strlen(name),
                    TS_CLIENT_NAME_BYTES - 1);
  if (options->device_count < 0 || options->device_count > TS_MAX_DEVICES)
    return ts_error(TS_INVALID_ARGUMENT, "client %s: expected 1 to %d devices, got %d", name, TS_MAX_DEVICES,
                    options->device_count);
  return TS_SUCCESS;
}

/* ---- opening clients of other platforms: one call of the platform for all that want the client meanwhile */

typedef struct waiter {
  struct waiter *next;
  ts_client_options options;
  ts_client **out;
  ts_status status;
  ts_done done;
} waiter;

typedef struct opening {
  struct opening *next;
  ts_client *client; /* a new client, or a closed one */
  ts_open_options options;
  ts_setting *settings; /* of the options, with their texts */
  ts_opened opened;
  waiter *waiters;
} opening;

static opening *openings; /* under the lock */

static opening *find_opening(const char *name) {
  opening *o = openings;
  while (o && strcmp(o->client->name, name) != 0) o = o->next;
  return o;
}

/* The lock is held. */
static ts_status publish(opening *o) {
  ts_client *client = o->client;
  int32_t count = o->opened.device_count;
  if (count < 1 || count > TS_MAX_DEVICES)
    return ts_error(TS_INTERNAL, "platform %s opened client %s with %d devices", client->platform->name, client->name,
                    count);
  TS_TRY(add_devices(client, count));
  TS_TRY(add_client(client));
  client->own = o->opened.client;
  atomic_store(&client->device_count, count);
  atomic_store(&client->uses, 1);
  atomic_store(&client->is_gone, false);
  atomic_store(&client->is_closed, false);
  return TS_SUCCESS;
}

/* A status for each of several. */
static ts_status same_error(ts_status status) {
  return status ? ts_error(ts_status_code(status), "%s", ts_status_message(status)) : TS_SUCCESS;
}

static void finish_waiters(waiter *w) {
  while (w) {
    waiter each = *w;
    ts_free(w);
    ts_done_call(each.done, each.status);
    w = each.next;
  }
}

static void unlink_opening(opening *o) {
  opening **at = &openings;
  while (*at != o) at = &(*at)->next;
  *at = o->next;
}

static void opened(ts_status status, void *arg) {
  opening *o = arg;
  pthread_mutex_lock(&lock);
  if (!status) {
    status = publish(o);
    if (status) o->client->platform->close(o->opened.client);
  }
  for (waiter *w = o->waiters; w; w = w->next) {
    w->status = status ? same_error(status) : configure(o->client, &w->options);
    if (!w->status) *w->out = o->client;
  }
  unlink_opening(o);
  pthread_mutex_unlock(&lock);
  waiter *waiters = o->waiters;
  if (status && o->client->index < 0) discard(o->client);
  ts_status_free(status);
  ts_free(o->settings);
  ts_free(o);
  finish_waiters(waiters);
}

static size_t text_size(const char *text) { return text ? strlen(text) + 1 : 0; }

static const char *copy_text(char **at, const char *text) {
  char *copy = *at;
  if (!text) return NULL;
  memcpy(copy, text, text_size(text));
  *at += text_size(text);
  return copy;
}

/* In one block. */
static ts_status copy_settings(const ts_settings *from, ts_setting **out) {
  size_t bytes = from->count * sizeof **out;
  for (size_t i = 0; i < from->count; i++) bytes += text_size(from->items[i].name) + text_size(from->items[i].text);
  TS_TRY(ts_alloc(bytes, (void **)out));
  char *at = (char *)(*out + from->count);
  for (size_t i = 0; i < from->count; i++) {
    (*out)[i] = from->items[i];
    (*out)[i].name = copy_text(&at, from->items[i].name);
    (*out)[i].text = copy_text(&at, from->items[i].text);
  }
  return TS_SUCCESS;
}

/* The lock is held. `closed`: the client of that name that was closed, or NULL. */
static ts_status new_opening(const char *name, const ts_client_options *options, ts_client *closed, opening **out) {
  opening *o;
  ts_setting *settings = NULL;
  TS_TRY(TS_NEW(&o));
  ts_status status = copy_settings(&options->settings, &settings);
  if (!status && !closed) status = new_client(name, options, &closed);
  if (status) {
    ts_free(settings);
    ts_free(o);
    return status;
  }
  *o = (opening){.next = openings, .client = closed, .settings = settings};
  o->options = (ts_open_options){.name = closed->name,
                                 .device_count = options->device_count,
                                 .memory_limit = options->memory_limit,
                                 .settings = {settings, options->settings.count}};
  openings = o;
  *out = o;
  return TS_SUCCESS;
}

/* The lock is held. *out_open is set if this call must open it; NULL: another call opens it. */
static ts_status join_opening(const char *name, waiter *w, ts_client *closed, opening **out_open) {
  opening *o = find_opening(name);
  *out_open = NULL;
  if (!o) {
    TS_TRY(new_opening(name, &w->options, closed, &o));
    *out_open = o;
  }
  w->next = o->waiters;
  o->waiters = w;
  return TS_SUCCESS;
}

static ts_status check_reopening(const ts_client *client, const ts_client_options *options) {
  if (!atomic_load(&client->is_gone))
    return ts_error(TS_FAILED_PRECONDITION, "client %s is being closed: there are tensors, programs or binaries of it",
                    client->name);
  if (client->platform == options->platform) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "client %s was of platform %s, not %s", client->name, client->platform->name,
                  options->platform->name);
}

/* The lock is held. Takes the waiter over on success. */
static ts_status open_remote(const char *name, waiter *w, ts_client *known, opening **out_open) {
  *out_open = NULL;
  if (known) TS_TRY(check_reopening(known, &w->options));
  return join_opening(name, w, known, out_open);
}

static void start_remote(const char *name, const ts_client_options *options, ts_client **out, ts_done done) {
  waiter *w;
  opening *o = NULL;
  ts_status status = TS_NEW(&w);
  if (status) {
    ts_done_call(done, status);
    return;
  }
  *w = (waiter){.options = *options, .out = out, .done = done};
  pthread_mutex_lock(&lock);
  ts_client *known = ts_client_find(name);
  bool is_open = known && !atomic_load(&known->is_closed);
  status = is_open ? configure(known, options) : open_remote(name, w, known, &o);
  pthread_mutex_unlock(&lock);
  if (status || is_open) {
    if (!status) *out = known;
    ts_free(w);
    ts_done_call(done, status);
  } else if (o) {
    o->client->platform->open(&o->options, &o->opened, (ts_done){opened, o});
  }
}

void ts_client_open_start(const char *name, const ts_client_options *options, ts_client **out, ts_done done) {
  *out = NULL;
  ts_status status = check_options(name, options);
  if (!status && options->platform && !options->platform->direct) {
    start_remote(name, options, out, done);
    return;
  }
  if (!status) {
    pthread_mutex_lock(&lock);
    ts_client *client = ts_client_find(name);
    status = client ? configure(client, options) : open_host(name, options, &client);
    pthread_mutex_unlock(&lock);
    if (!status) *out = client;
  }
  ts_done_call(done, status);
}

ts_status ts_client_open(const char *name, const ts_client_options *options, ts_client **out) {
  ts_wait wait;
  ts_client_open_start(name, options, out, ts_wait_begin(&wait));
  return ts_wait_end(&wait);
}

/* ---- uses and closing */

static bool is_host(const ts_client *client) { return client->platform->direct; }

ts_status ts_client_use(ts_client *client) {
  if (is_host(client)) return TS_SUCCESS;
  int64_t uses = atomic_load(&client->uses);
  while (uses > 0 && !atomic_load(&client->is_closed))
    if (atomic_compare_exchange_weak(&client->uses, &uses, uses + 1)) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "client %s is closed", client->name);
}

void ts_client_use_more(ts_client *client) {
  if (!is_host(client)) atomic_fetch_add(&client->uses, 1);
}

void ts_client_unuse(ts_client *client) {
  if (is_host(client) || atomic_fetch_sub(&client->uses, 1) != 1) return;
  client->platform->close(client->own);
  client->own = NULL;
  atomic_store(&client->is_gone, true);
}

ts_status ts_client_close(ts_client *client) {
  ts_client *was_default = client;
  if (is_host(client))
    return ts_error(TS_FAILED_PRECONDITION, "client %s is of the host, which cannot be closed", client->name);
  if (atomic_exchange(&client->is_closed, true)) return TS_SUCCESS;
  (void)atomic_compare_exchange_strong(&default_client, &was_default, &host);
  ts_client_unuse(client);
  return TS_SUCCESS;
}

/* ---- platforms */

static const ts_platform *platforms[TS_MAX_PLATFORMS] = {&ts_platform_host};
static _Atomic int platform_count = 1;

const ts_platform *ts_platform_find(const char *name) {
  int count = atomic_load_explicit(&platform_count, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (strcmp(platforms[i]->name, name) == 0) return platforms[i];
  return NULL;
}

int ts_platforms(const ts_platform **out, int room) {
  int count = atomic_load_explicit(&platform_count, memory_order_acquire);
  for (int i = 0; i < count && i < room; i++) out[i] = platforms[i];
  return count;
}

static ts_status add_platform(const ts_platform *platform) {
  int count = atomic_load(&platform_count);
  if (ts_platform_find(platform->name))
    return ts_error(TS_INVALID_ARGUMENT, "there is a platform %s already", platform->name);
  if (count == TS_MAX_PLATFORMS)
    return ts_error(TS_RESOURCE_EXHAUSTED, "platform %s: there are %d platforms, which is the limit", platform->name,
                    count);
  platforms[count] = platform;
  atomic_store_explicit(&platform_count, count + 1, memory_order_release);
  return TS_SUCCESS;
}

ts_status ts_platform_add(const ts_platform *platform) {
  pthread_mutex_lock(&lock);
  ts_status status = add_platform(platform);
  pthread_mutex_unlock(&lock);
  return status;
}

/* ---- memory */

ts_status ts_client_set_limit(ts_client *client, int64_t bytes) {
  if (!is_host(client))
    return ts_error(TS_UNIMPLEMENTED, "the limit of client %s is set when it is opened", client->name);
  pthread_mutex_lock(&lock);
  ts_status status = set_limit(client, bytes);
  pthread_mutex_unlock(&lock);
  return status;
}

static void get_pool(ts_pool *pool, ts_memory_stats *out) {
  ts_pool_stats s;
  ts_pool_get_stats(pool, &s);
  *out = (ts_memory_stats){
      .live = s.live, .peak = s.peak, .pooled = s.pooled, .limit = s.limit, .allocations = s.allocations};
}

void ts_client_get_memory(ts_client *client, ts_memory_stats *out) {
  *out = (ts_memory_stats){0};
  if (is_host(client)) {
    get_pool(ts_client_pool(client), out);
  } else if (ts_status_consume_ok(ts_client_use(client))) {
    if (client->platform->get_memory) client->platform->get_memory(client->own, out);
    ts_client_unuse(client);
  }
}

void ts_clients_trim(void) {
  int32_t count = atomic_load_explicit(&client_count, memory_order_acquire);
  ts_pool_trim(ts_pool_default(), 0);
  for (int32_t i = 1; i < count; i++) {
    ts_pool *own = atomic_load_explicit(&clients[i]->pool, memory_order_acquire);
    if (own) ts_pool_trim(own, 0);
  }
}

/* ---- accounts
 * Every thread counts on its own and reports to the device and its client when its balance is this large. So a reported
 * sum may be off by this much for each thread, and so may a peak that lies between two calls. */

#define TELL_BYTES ((int64_t)256 << 10)

static _Atomic int64_t all_told;

static void raise_to(_Atomic int64_t *peak, int64_t value) {
  int64_t old = atomic_load_explicit(peak, memory_order_relaxed);
  while (old < value &&
         !atomic_compare_exchange_weak_explicit(peak, &old, value, memory_order_relaxed, memory_order_relaxed))
    ;
}

void ts_device_hold(ts_device *device, int64_t bytes) {
  int64_t n = ts_counter_add(&device->unreported, bytes);
  if (n > -TELL_BYTES && n < TELL_BYTES) return;
  ts_client *client = device->client;
  (void)ts_counter_add(&device->unreported, -n);
  atomic_fetch_add_explicit(&all_told, n, memory_order_relaxed);
  int64_t here = atomic_fetch_add_explicit(&device->reported, n, memory_order_relaxed) + n;
  int64_t held = atomic_fetch_add_explicit(&client->reported, n, memory_order_relaxed) + n;
  if (n <= 0) return;
  raise_to(&device->peak, here);
  raise_to(&client->peak, held);
}

int64_t ts_device_held(ts_device *device) {
  return atomic_load_explicit(&device->reported, memory_order_relaxed) + ts_counter_sum(&device->unreported);
}

int64_t ts_client_held(ts_client *client) {
  int64_t total = 0;
  int32_t count = atomic_load_explicit(&client->device_count, memory_order_acquire);
  for (int32_t i = 0; i < count; i++) total += ts_device_held(client->devices[i]);
  return total;
}

int64_t ts_devices_held(void) {
  int64_t total = 0;
  int32_t count = atomic_load_explicit(&client_count, memory_order_acquire);
  for (int32_t i = 0; i < count; i++) total += ts_client_held(clients[i]);
  return total;
}

int64_t ts_devices_told(void) { return atomic_load_explicit(&all_told, memory_order_relaxed); }

void ts_client_note_peak(ts_client *client, int64_t held) { raise_to(&client->peak, held); }

void ts_device_get_held(ts_client *client, int32_t id, int64_t *out_held, int64_t *out_peak) {
  ts_device *device = client->devices[id];
  *out_held = ts_device_held(device);
  raise_to(&device->peak, *out_held);
  *out_peak = atomic_load_explicit(&device->peak, memory_order_relaxed);
}

void ts_client_reset_peak(ts_client *client) {
  int32_t count = atomic_load_explicit(&client->device_count, memory_order_acquire);
  for (int32_t i = 0; i < count; i++) atomic_store(&client->devices[i]->peak, ts_device_held(client->devices[i]));
  atomic_store(&client->peak, ts_client_held(client));
}

void ts_loaded_retain(ts_loaded *loaded) { atomic_fetch_add_explicit(&loaded->refs, 1, memory_order_relaxed); }

void ts_loaded_release(ts_loaded *loaded) {
  if (!loaded || atomic_fetch_sub_explicit(&loaded->refs, 1, memory_order_acq_rel) != 1) return;
  loaded->client->platform->release_program(loaded->own);
  ts_client_unuse(loaded->client);
  ts_free(loaded);
}
