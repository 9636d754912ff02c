/* Clients: their devices, memories and topology. The devices of a client are parts of the host: each has an account of
 * its own, and all share the process's threads. */
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options */

static bool is_named(const pj_named *option, const char *name) {
  return option->name_size == strlen(name) && memcmp(option->name, name, option->name_size) == 0;
}

static ts_status whole(const pj_named *option, int64_t least, int64_t most, int64_t *out) {
  if (option->kind != PJ_INT64 || option->integer < least || option->integer > most)
    return ts_error(TS_INVALID_ARGUMENT, "option %.*s: expected an integer from %lld to %lld", (int)option->name_size,
                    option->name, (long long)least, (long long)most);
  *out = option->integer;
  return TS_SUCCESS;
}

static ts_status name_platform(pj_handle *c, const pj_named *option) {
  if (option->kind != PJ_STRING || option->value_size == 0 || option->value_size >= sizeof c->name)
    return ts_error(TS_INVALID_ARGUMENT, "option platform_name: expected a text of 1 to %zu bytes", sizeof c->name - 1);
  memcpy(c->name, option->string, option->value_size);
  c->name[option->value_size] = '\0';
  return TS_SUCCESS;
}

static ts_status set_option(pj_handle *c, const pj_named *option) {
  int64_t number = 0;
  if (option->size < sizeof *option)
    return ts_error(TS_INVALID_ARGUMENT, "an option has %zu bytes, expected %zu", option->size, sizeof *option);
  if (is_named(option, "platform_name")) return name_platform(c, option);
  if (is_named(option, "host_devices")) {
    TS_TRY(whole(option, 1, PLUGIN_MOST_DEVICES, &number));
    c->device_count = (int)number;
  } else if (is_named(option, "threads")) {
    TS_TRY(whole(option, 0, 4096, &number));
    c->threads = (int)number;
  } else if (is_named(option, "memory_limit")) {
    TS_TRY(whole(option, 0, INT64_MAX, &number));
    if (c->pool) return ts_error(TS_INVALID_ARGUMENT, "option memory_limit: it is given twice");
    TS_TRY(ts_pool_create(number, &c->pool));
  } else {
    return ts_error(TS_INVALID_ARGUMENT,
                    "there is no option %.*s: the options are host_devices, memory_limit, "
                    "platform_name and threads",
                    (int)option->name_size, option->name);
  }
  return TS_SUCCESS;
}

/* ---- clients */

static void make_device(pj_handle *c, int id) {
  pj_device *d = &c->devices[id];
  d->client = c;
  d->description.id = id;
  d->space.device = d;
  snprintf(d->description.text, sizeof d->description.text, "TesseraDevice(id=%d)", id);
  snprintf(d->space.text, sizeof d->space.text, "TesseraMemory(id=%d)", id);
  c->list[id] = d;
  c->spaces[id] = &d->space;
  c->descriptions[id] = &d->description;
}

void plugin_client_release(pj_handle *c) {
  if (!c || atomic_fetch_sub(&c->refs, 1) != 1) return;
  pthread_mutex_destroy(&c->lock);
  if (c->pool) ts_pool_destroy(c->pool);
  ts_free(c);
}

ts_pool *plugin_client_pool(const pj_handle *client) { return client->pool ? client->pool : ts_pool_default(); }

/* The number of devices, for programs that cannot give options. */
static ts_status set_from_environment(pj_handle *c) {
  const char *devices = getenv("TESSERA_HOST_DEVICES");
  if (!devices || !*devices) return TS_SUCCESS;
  char *end;
  long number = strtol(devices, &end, 10);
  if (*end || number < 1 || number > PLUGIN_MOST_DEVICES)
    return ts_error(TS_INVALID_ARGUMENT, "TESSERA_HOST_DEVICES is %s: expected a number from 1 to %d", devices,
                    PLUGIN_MOST_DEVICES);
  c->device_count = (int)number;
  return TS_SUCCESS;
}

/* JAX lowers a program by rules for the name of the platform, and only for its CPU these have all of linear algebra. */
static ts_status open_client(const pj_named *options, size_t count, pj_handle **out) {
  pj_handle *c;
  TS_TRY(TS_NEW(&c));
  atomic_store(&c->refs, 1);
  pthread_mutex_init(&c->lock, NULL);
  strcpy(c->name, "cpu");
  c->device_count = 1;
  ts_status status = set_from_environment(c);
  for (size_t i = 0; i < count && !status; i++) status = set_option(c, &options[i]);
  if (status) {
    plugin_client_release(c);
    return status;
  }
  for (int i = 0; i < c->device_count; i++) make_device(c, i);
  c->topology.client = c;
  *out = c;
  return TS_SUCCESS;
}

ts_status plugin_client_create(pj_args *args) {
  return open_client(args->create.options, args->create.option_count, &args->create.client);
}

ts_status plugin_client_destroy(pj_args *args) {
  plugin_client_release(args->object);
  return TS_SUCCESS;
}

ts_status plugin_client_name(pj_args *args) { return plugin_answer_text(args, args->client.client->name); }
ts_status plugin_client_version(pj_args *args) { return plugin_answer_text(args, PLUGIN_VERSION); }
ts_status plugin_process_index(pj_args *args) { return plugin_answer_number(args, 0); }

ts_status plugin_client_devices(pj_args *args) {
  const pj_handle *c = args->devices.client;
  return plugin_answer_list(args, c->list, (size_t)c->device_count);
}

ts_status plugin_client_addressable(pj_args *args) { return plugin_client_devices(args); }

ts_status plugin_client_spaces(pj_args *args) {
  const pj_handle *c = args->list.object;
  return plugin_answer_list(args, c->spaces, (size_t)c->device_count);
}

ts_status plugin_look_up_device(pj_args *args) {
  pj_handle *c = args->look_up.client;
  int id = args->look_up.number;
  if (id < 0 || id >= c->device_count)
    return ts_error(TS_INVALID_ARGUMENT, "there is no device %d: the client has %d", id, c->device_count);
  args->look_up.device = c->list[id];
  return TS_SUCCESS;
}

ts_status plugin_look_up_addressable(pj_args *args) { return plugin_look_up_device(args); }

ts_status plugin_check_grid(const pj_handle *client, int64_t replicas, int64_t partitions) {
  const int most = client->device_count;
  if (replicas >= 1 && partitions >= 1 && replicas <= most && partitions <= most / replicas) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "%lld replicas of %lld partitions: the client has %d devices",
                  (long long)replicas, (long long)partitions, most);
}

ts_status plugin_default_assignment(pj_args *args) {
  int replicas = args->assignment.replicas, partitions = args->assignment.partitions;
  TS_TRY(plugin_check_grid(args->assignment.client, replicas, partitions));
  const int count = replicas * partitions;
  if (args->assignment.room < (size_t)count)
    return ts_error(TS_INVALID_ARGUMENT, "there is room for %zu devices of %d", args->assignment.room, count);
  for (int i = 0; i < count; i++) args->assignment.devices[i] = i;
  return TS_SUCCESS;
}

/* ---- devices */

static const pj_description *description_of(const pj_args *args) { return args->kind.description; }

ts_status plugin_description_id(pj_args *args) { return plugin_answer_number(args, description_of(args)->id); }
ts_status plugin_description_process(pj_args *args) { return plugin_answer_number(args, 0); }
ts_status plugin_description_kind(pj_args *args) { return plugin_answer_text(args, "cpu"); }
ts_status plugin_description_debug(pj_args *args) { return plugin_answer_text(args, description_of(args)->text); }
ts_status plugin_description_text(pj_args *args) { return plugin_answer_text(args, description_of(args)->text); }

ts_status plugin_description_properties(pj_args *args) {
  args->properties.count = 0;
  args->properties.named = NULL;
  return TS_SUCCESS;
}

static pj_device *device_of(const pj_args *args) { return args->device.device; }

ts_status plugin_device_description(pj_args *args) {
  return plugin_answer_pointer(args, &device_of(args)->description);
}
ts_status plugin_device_hardware(pj_args *args) { return plugin_answer_number(args, device_of(args)->description.id); }

/* The list of one is a part of the client's. */
ts_status plugin_device_spaces(pj_args *args) {
  const pj_device *d = device_of(args);
  return plugin_answer_list(args, &d->client->spaces[d->description.id], 1);
}

ts_status plugin_device_space(pj_args *args) { return plugin_answer_pointer(args, &device_of(args)->space); }

ts_status plugin_device_is_addressable(pj_args *args) {
  args->flag.yes = true;
  return TS_SUCCESS;
}

void plugin_account_add(pj_device *device, int64_t bytes) {
  plugin_account *a = &device->account;
  int64_t now = atomic_fetch_add(&a->bytes, bytes) + bytes, peak = atomic_load(&a->peak),
          largest = atomic_load(&a->largest);
  if (bytes <= 0) return;
  while (now > peak && !atomic_compare_exchange_weak(&a->peak, &peak, now)) continue;
  while (bytes > largest && !atomic_compare_exchange_weak(&a->largest, &largest, bytes)) continue;
  atomic_fetch_add(&a->allocations, 1);
}

ts_status plugin_device_memory(pj_args *args) {
  pj_device *d = args->memory.device;
  ts_pool_stats stats;
  ts_pool_get_stats(plugin_client_pool(d->client), &stats);
  args->memory.bytes_in_use = atomic_load(&d->account.bytes);
  args->memory.peak.number = atomic_load(&d->account.peak);
  args->memory.allocations.number = atomic_load(&d->account.allocations);
  args->memory.largest.number = atomic_load(&d->account.largest);
  args->memory.limit.number = stats.limit;
  args->memory.peak.given = args->memory.allocations.given = args->memory.largest.given = true;
  args->memory.limit.given = true;
  for (size_t i = 0; i < 6 && offsetof(pj_args, memory.others[i].given) < args->size; i++)
    args->memory.others[i].given = false;
  return TS_SUCCESS;
}

/* ---- memories: one of each device */

static const pj_space *space_of(const pj_args *args) { return args->text.object; }

ts_status plugin_space_id(pj_args *args) { return plugin_answer_number(args, space_of(args)->device->description.id); }
ts_status plugin_space_kind(pj_args *args) { return plugin_answer_text(args, PLUGIN_MEMORY_KIND); }
ts_status plugin_space_kind_id(pj_args *args) { return plugin_answer_number(args, 0); }
ts_status plugin_space_debug(pj_args *args) { return plugin_answer_text(args, space_of(args)->text); }
ts_status plugin_space_text(pj_args *args) { return plugin_answer_text(args, space_of(args)->text); }

ts_status plugin_space_devices(pj_args *args) {
  const pj_device *d = space_of(args)->device;
  return plugin_answer_list(args, &d->client->list[d->description.id], 1);
}

/* ---- topologies */

ts_status plugin_client_topology(pj_args *args) {
  return plugin_answer_pointer(args, &((pj_handle *)args->pointer.object)->topology);
}

/* Of a client that has no other purpose. */
ts_status plugin_topology_create(pj_args *args) {
  pj_topology *t;
  TS_TRY(TS_NEW(&t));
  ts_status status = open_client(args->topology.options, args->topology.option_count, &t->client);
  if (status)
    ts_free(t);
  else
    args->topology.topology = t;
  return status;
}

ts_status plugin_topology_destroy(pj_args *args) {
  pj_topology *t = args->object;
  if (!t || t == &t->client->topology) return TS_SUCCESS; /* a client's own ends with it */
  plugin_client_release(t->client);
  ts_free(t);
  return TS_SUCCESS;
}

static pj_handle *client_of(const pj_args *args) { return ((const pj_topology *)args->text.object)->client; }

ts_status plugin_topology_name(pj_args *args) { return plugin_answer_text(args, client_of(args)->name); }
ts_status plugin_topology_version(pj_args *args) { return plugin_answer_text(args, PLUGIN_VERSION); }
ts_status plugin_topology_attributes(pj_args *args) { return plugin_answer_list(args, NULL, 0); }

ts_status plugin_topology_descriptions(pj_args *args) {
  const pj_handle *c = client_of(args);
  return plugin_answer_list(args, c->descriptions, (size_t)c->device_count);
}

/* For keys of caches: what decides how a program is compiled. */
ts_status plugin_topology_save(pj_args *args) {
  const pj_handle *c = client_of(args);
  ts_text text = {0};
  char *bytes;
  ts_text_format(&text, "%s %s %d", PLUGIN_VERSION, c->name, c->device_count);
  size_t size = text.length;
  TS_TRY(ts_text_finish(&text, &bytes));
  return plugin_answer_saved(args, bytes, size);
}

/* ---- contexts of runs; a context is empty */

ts_status plugin_context_create(pj_args *args) { return ts_alloc(1, &args->object); }

ts_status plugin_context_destroy(pj_args *args) {
  ts_free(args->object);
  return TS_SUCCESS;
}
