#include "pjrt/client.h"

#include <stdio.h>
#include <sys/stat.h>

/* ---- opening */

static ts_status create(pj_client *c, const pj_opening *o) {
  pj_args args = PJ_ARGS(.create = {.options = o->options, .option_count = o->option_count});
  TS_TRY(pj_call(c->plugin, PJ_CLIENT_CREATE, &args));
  c->handle = args.create.client;
  return TS_SUCCESS;
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

/* Plugins need not know their memory: then the limit is ours. */
static void find_limit(pj_client *c) {
  pj_args args = PJ_ARGS(.memory = {.device = c->devices[0]});
  bool known = ts_status_consume_ok(pj_call(c->plugin, PJ_DEVICE_MEMORY, &args)) && args.memory.limit.given;
  c->device_limit = known ? args.memory.limit.number : INT64_MAX;
}

/* Not all plugins say what kind their devices are. */
static void append_kind(const pj_client *c, ts_text *out) {
  pj_args device = PJ_ARGS(.device = {.device = c->devices[0]}), kind = PJ_ARGS(.kind = {.text = NULL});
  if (!ts_status_consume_ok(pj_call(c->plugin, PJ_DEVICE_DESCRIPTION, &device))) return;
  kind.kind.description = device.device.description;
  if (ts_status_consume_ok(pj_call(c->plugin, PJ_DESCRIPTION_KIND, &kind)))
    ts_text_append_n(out, kind.kind.text, kind.kind.text_size);
}

static ts_status describe(pj_client *c) {
  ts_text text = {0};
  struct stat file;
  if (stat(c->plugin->path, &file) != 0)
    return ts_error(TS_UNAVAILABLE, "the plugin %s: there is no such file", c->plugin->path);
  ts_text_format(&text, "%s\n%s %lld %lld.%09ld\n", c->identity, c->plugin->path, (long long)file.st_size,
                 (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  append_kind(c, &text);
  ts_status status = ts_text_finish(&text, &c->kind);
  ts_text_deinit(&text);
  return status;
}

static ts_status fill(pj_client *c, const pj_opening *o) {
  if (o->isolated)
    TS_TRY(pj_plugin_isolate(o->path, &o->deadlines, &c->plugin));
  else
    TS_TRY(pj_plugin_open(o->path, &c->plugin));
  TS_TRY(create(c, o));
  TS_TRY(find_devices(c));
  if (c->device_count < o->device_count)
    return ts_error(TS_INVALID_ARGUMENT, "the plugin %s has %d devices, got %d as their number", c->plugin->path,
                    c->device_count, o->device_count);
  find_limit(c);
  TS_TRY(identify(c));
  return describe(c);
}

static void end_client(pj_client *c) {
  if (c->handle) {
    pj_reshapes_destroy(c);
    pj_destroy(c->plugin, PJ_CLIENT_DESTROY, c->handle);
  }
  pj_plugin_close(c->plugin);
  pthread_mutex_destroy(&c->lock);
  ts_free(c->identity);
  ts_free(c->kind);
  ts_free(c);
}

ts_status pj_client_create(const pj_opening *opening, pj_client **out) {
  pj_client *c;
  TS_TRY(TS_NEW(&c));
  pthread_mutex_init(&c->lock, NULL);
  atomic_store(&c->refs, 1);
  c->limit = opening->limit < 0 ? INT64_MAX : opening->limit;
  c->precision = opening->precision;
  if (!opening->isolated) c->deadlines = opening->deadlines; /* an isolated process is ended instead */
  ts_status status = fill(c, opening);
  if (status)
    end_client(c);
  else
    *out = c;
  return status;
}

/* ---- the end */

static void end_now(pj_job *job) { end_client((pj_client *)((char *)job - offsetof(pj_client, ending))); }

void pj_client_release(pj_client *client) {
  if (atomic_fetch_sub(&client->refs, 1) != 1) return;
  client->ending.body = end_now;
  pj_work(&client->ending);
}

/* ---- deadlines */

ts_status pj_client_begin(pj_client *c, pj_deadline *deadline, const char *what, ts_done done) {
  return pj_deadline_begin(
      deadline, &(pj_limit){.ms = c->deadlines.answer_ms, .option = "timeout", .what = what, .late = &c->late}, done);
}

pj_limit pj_client_compile_limit(pj_client *c, const char *what) {
  return (pj_limit){.ms = c->deadlines.compile_ms, .option = "compile_timeout", .what = what, .late = &c->late};
}

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
