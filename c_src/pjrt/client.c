#include "pjrt/client.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- opening */

typedef struct open_job {
  pj_job job;
  int32_t device_count;
  int64_t limit;
  ts_settings settings;
  ts_opened *out;
  ts_done done;
} open_job;

static const char plugin_path[] = "plugin_path";

static ts_status find_path(const ts_settings *settings, const char **out) {
  *out = getenv("TESSERA_PJRT_PLUGIN");
  for (size_t i = 0; i < settings->count; i++) {
    const ts_setting *s = &settings->items[i];
    if (strcmp(s->name, plugin_path) != 0) continue;
    if (s->kind != TS_SETTING_TEXT) return ts_error(TS_INVALID_ARGUMENT, "plugin_path: expected the path of a file");
    *out = s->text;
  }
  if (*out && **out) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "a client of the platform pjrt needs the option plugin_path, or the environment "
                                       "variable TESSERA_PJRT_PLUGIN, with the file of a plugin (docs/accelerators.md "
                                       "says which there are)");
}

static pj_named named(const ts_setting *s) {
  pj_named n = {.size = sizeof n, .name = s->name, .name_size = strlen(s->name), .value_size = 1};
  switch (s->kind) {
  case TS_SETTING_TEXT:
    n.kind = PJ_STRING;
    n.string = s->text;
    n.value_size = strlen(s->text);
    break;
  case TS_SETTING_INTEGER:
    n.kind = PJ_INT64;
    n.integer = s->integer;
    break;
  case TS_SETTING_FLOAT:
    n.kind = PJ_FLOAT;
    n.number = (float)s->number;
    break;
  case TS_SETTING_BOOLEAN:
    n.kind = PJ_BOOL;
    n.boolean = s->integer != 0;
    break;
  }
  return n;
}

static ts_status create(pj_client *c, const ts_settings *settings) {
  pj_named *options;
  size_t count = 0;
  TS_TRY(TS_NEW_ARRAY(settings->count + 1, &options));
  for (size_t i = 0; i < settings->count; i++)
    if (strcmp(settings->items[i].name, plugin_path) != 0) options[count++] = named(&settings->items[i]);
  pj_args args = PJ_ARGS(.create = {.options = options, .option_count = count});
  ts_status status = pj_call(c->plugin, PJ_CLIENT_CREATE, &args);
  if (!status) c->handle = args.create.client;
  ts_free(options);
  return status;
}

static ts_status find_devices(pj_client *c) {
  pj_args args = PJ_ARGS(.devices = {.client = c->handle});
  TS_TRY(pj_call(c->plugin, PJ_CLIENT_DEVICES, &args));
  if (args.devices.count == 0 || args.devices.count > INT32_MAX)
    return ts_error(TS_UNAVAILABLE, "the plugin %s has no device", c->plugin->path);
  c->devices = args.devices.devices;
  c->device_count = (int32_t)args.devices.count;
  return TS_SUCCESS;
}

static ts_status identify(pj_client *c) {
  ts_text text = {0};
  pj_args name = PJ_ARGS(.client = {.client = c->handle}), version = PJ_ARGS(.client = {.client = c->handle});
  TS_TRY(pj_call(c->plugin, PJ_CLIENT_NAME, &name));
  TS_TRY(pj_call(c->plugin, PJ_CLIENT_VERSION, &version));
  ts_text_append_n(&text, name.client.text, name.client.text_size);
  ts_text_append(&text, " ");
  ts_text_append_n(&text, version.client.text, version.client.text_size);
  ts_status status = ts_text_finish(&text, &c->identity);
  ts_text_deinit(&text);
  return status;
}

static ts_status fill(pj_client *c, const open_job *o) {
  const char *path;
  TS_TRY(find_path(&o->settings, &path));
  TS_TRY(pj_plugin_open(path, &c->plugin));
  TS_TRY(create(c, &o->settings));
  TS_TRY(find_devices(c));
  if (c->device_count < o->device_count)
    return ts_error(TS_INVALID_ARGUMENT, "the plugin %s has %d devices, got %d as their number", c->plugin->path,
                    c->device_count, o->device_count);
  return identify(c);
}

static void end_client(pj_client *c) {
  if (c->handle) {
    pj_reshapes_destroy(c);
    pj_destroy(c->plugin, PJ_CLIENT_DESTROY, c->handle);
  }
  pthread_mutex_destroy(&c->lock);
  ts_free(c->identity);
  ts_free(c);
}

static ts_status open_client(const open_job *o, pj_client **out) {
  pj_client *c;
  TS_TRY(TS_NEW(&c));
  pthread_mutex_init(&c->lock, NULL);
  atomic_store(&c->refs, 1);
  c->limit = o->limit < 0 ? INT64_MAX : o->limit;
  ts_status status = fill(c, o);
  if (status)
    end_client(c);
  else
    *out = c;
  return status;
}

static void open_now(pj_job *job) {
  open_job *o = (open_job *)job;
  ts_done done = o->done;
  pj_client *client = NULL;
  ts_status status = open_client(o, &client);
  if (!status) {
    /* A plugin may know more devices than are wanted, or than a client can have. */
    int32_t count = o->device_count ? o->device_count : client->device_count;
    *o->out = (ts_opened){client, count < 64 ? count : 64};
  }
  ts_free(o);
  ts_done_call(done, status);
}

void pj_client_open(const ts_open_options *options, ts_opened *out, ts_done done) {
  open_job *o = NULL;
  ts_status status = pj_work_start();
  if (!status) status = TS_NEW(&o);
  if (status) {
    ts_done_call(done, status);
    return;
  }
  *o = (open_job){.job.body = open_now,
                  .device_count = options->device_count,
                  .limit = options->memory_limit,
                  .settings = options->settings,
                  .out = out,
                  .done = done};
  pj_work(&o->job);
}

/* ---- the end */

static void end_now(pj_job *job) { end_client((pj_client *)((char *)job - offsetof(pj_client, ending))); }

void pj_client_release(pj_client *client) {
  if (atomic_fetch_sub(&client->refs, 1) != 1) return;
  client->ending.body = end_now;
  pj_work(&client->ending);
}

void pj_client_close(void *client) { pj_client_release(client); }

/* ---- accounts */

ts_status pj_client_reserve(pj_client *c, int64_t bytes) {
  int64_t now = atomic_fetch_add(&c->bytes, bytes) + bytes, peak = atomic_load(&c->peak);
  if (now > c->limit) {
    pj_client_unreserve(c, bytes);
    return ts_error(TS_RESOURCE_EXHAUSTED, "there is no memory for %lld bytes on the device: the limit is %lld bytes",
                    (long long)bytes, (long long)c->limit);
  }
  while (now > peak && !atomic_compare_exchange_weak(&c->peak, &peak, now)) continue;
  atomic_fetch_add(&c->allocations, 1);
  return TS_SUCCESS;
}

void pj_client_unreserve(pj_client *c, int64_t bytes) { atomic_fetch_sub(&c->bytes, bytes); }

/* Plugins need not know their memory: then the limit is ours. */
static int64_t device_limit(const pj_client *c) {
  pj_args args = PJ_ARGS(.memory = {.device = c->devices[0]});
  if (!ts_status_consume_ok(pj_call(c->plugin, PJ_DEVICE_MEMORY, &args)) || !args.memory.limit.given) return INT64_MAX;
  return args.memory.limit.number;
}

void pj_client_get_memory(void *client, ts_memory_stats *out) {
  pj_client *c = client;
  int64_t limit = device_limit(c);
  *out = (ts_memory_stats){.live = atomic_load(&c->bytes),
                           .peak = atomic_load(&c->peak),
                           .limit = limit < c->limit ? limit : c->limit,
                           .allocations = atomic_load(&c->allocations)};
}
