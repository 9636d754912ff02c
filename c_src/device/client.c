/* The clients of the process. Clients and devices are only added, under the lock, and are complete before they are
 * counted, so readers need no lock. */
#include "device/device.h"

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

ts_device *ts_device_default(void) { return &host_device; }

ts_client *ts_client_find(const char *name) {
  int32_t count = atomic_load_explicit(&client_count, memory_order_acquire);
  for (int32_t i = 0; i < count; i++)
    if (strcmp(clients[i]->name, name) == 0) return clients[i];
  return NULL;
}

ts_status ts_client_device(ts_client *client, int64_t id, ts_device **out) {
  int32_t count = atomic_load_explicit(&client->device_count, memory_order_acquire);
  *out = NULL;
  if (id < 0 || id >= count)
    return ts_error(TS_INVALID_ARGUMENT, "client %s has no device %lld, it has %d from 0 on", client->name,
                    (long long)id, count);
  *out = client->devices[id];
  return TS_SUCCESS;
}

const char *ts_device_format(const ts_device *device, char *out, size_t size) {
  snprintf(out, size, "device %d of client %s", device->id, device->client->name);
  return out;
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
  if (client->platform != platform)
    return ts_error(TS_INVALID_ARGUMENT, "client %s is open on platform %s, not %s", client->name,
                    client->platform->name, platform->name);
  TS_TRY(add_devices(client, options->device_count ? options->device_count : 1));
  if (options->memory_limit >= 0) TS_TRY(set_limit(client, options->memory_limit));
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

static ts_status add_client(const char *name, const ts_client_options *options, ts_client **out) {
  ts_client *client;
  int32_t count = atomic_load(&client_count);
  if (count == TS_MAX_CLIENTS)
    return ts_error(TS_RESOURCE_EXHAUSTED, "client %s: there are %d clients, which is the limit", name, count);
  TS_TRY(TS_NEW(&client));
  snprintf(client->name, sizeof client->name, "%s", name);
  client->platform = options->platform ? options->platform : &ts_platform_host;
  client->index = count;
  client->group = client->platform == &ts_platform_host ? 0 : count;
  ts_status status = configure(client, options);
  if (status) {
    discard(client);
    return status;
  }
  clients[count] = client;
  atomic_store_explicit(&client_count, count + 1, memory_order_release);
  *out = client;
  return TS_SUCCESS;
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

ts_status ts_client_open(const char *name, const ts_client_options *options, ts_client **out) {
  *out = NULL;
  TS_TRY(check_options(name, options));
  pthread_mutex_lock(&lock);
  ts_client *client = ts_client_find(name);
  ts_status status = client ? configure(client, options) : add_client(name, options, &client);
  pthread_mutex_unlock(&lock);
  if (!status) *out = client;
  return status;
}

ts_status ts_client_set_limit(ts_client *client, int64_t bytes) {
  pthread_mutex_lock(&lock);
  ts_status status = set_limit(client, bytes);
  pthread_mutex_unlock(&lock);
  return status;
}

void ts_client_get_memory(ts_client *client, ts_pool_stats *out) {
  if (client->platform->get_memory)
    client->platform->get_memory(client, out);
  else
    ts_pool_get_stats(ts_client_pool(client), out);
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
  int64_t n = ts_counter_add(&device->untold, bytes);
  if (n > -TELL_BYTES && n < TELL_BYTES) return;
  ts_client *client = device->client;
  (void)ts_counter_add(&device->untold, -n);
  atomic_fetch_add_explicit(&all_told, n, memory_order_relaxed);
  int64_t here = atomic_fetch_add_explicit(&device->told, n, memory_order_relaxed) + n;
  int64_t held = atomic_fetch_add_explicit(&client->told, n, memory_order_relaxed) + n;
  if (n <= 0) return;
  raise_to(&device->peak, here);
  raise_to(&client->peak, held);
}

int64_t ts_device_held(ts_device *device) {
  return atomic_load_explicit(&device->told, memory_order_relaxed) + ts_counter_sum(&device->untold);
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
