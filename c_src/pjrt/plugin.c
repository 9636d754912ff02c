#include "pjrt/plugin.h"

#include "base/alloc.h"
#include "base/shared_object.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls */

static const char *name_of(pj_function function) {
  switch (function) {
#define PJ_FUNCTION(place, id, name) \
  case PJ_##id: return name;
    PJ_FUNCTIONS(PJ_FUNCTION)
#undef PJ_FUNCTION
  case PJ_TABLE: break;
  }
  return "?";
}

typedef pj_error *(*fallible)(pj_args *args);
typedef void (*infallible)(pj_args *args);

static ts_code code_of(int code) {
  static const ts_code codes[] = {[PJ_CANCELLED] = TS_CANCELLED,
                                  [PJ_INVALID_ARGUMENT] = TS_INVALID_ARGUMENT,
                                  [PJ_DEADLINE_EXCEEDED] = TS_UNAVAILABLE,
                                  [PJ_NOT_FOUND] = TS_INVALID_ARGUMENT,
                                  [PJ_ALREADY_EXISTS] = TS_FAILED_PRECONDITION,
                                  [PJ_PERMISSION_DENIED] = TS_FAILED_PRECONDITION,
                                  [PJ_RESOURCE_EXHAUSTED] = TS_RESOURCE_EXHAUSTED,
                                  [PJ_FAILED_PRECONDITION] = TS_FAILED_PRECONDITION,
                                  [PJ_ABORTED] = TS_UNAVAILABLE,
                                  [PJ_OUT_OF_RANGE] = TS_OUT_OF_RANGE,
                                  [PJ_UNIMPLEMENTED] = TS_UNIMPLEMENTED,
                                  [PJ_UNAVAILABLE] = TS_UNAVAILABLE,
                                  [PJ_DATA_LOSS] = TS_DATA_LOSS};
  size_t count = sizeof codes / sizeof *codes;
  return code > 0 && (size_t)code < count && codes[code] ? codes[code] : TS_INTERNAL;
}

static void destroy_error(const pj_plugin *plugin, pj_error *error) {
  pj_args args = PJ_ARGS(.object = error);
  ((infallible)plugin->api->functions[PJ_ERROR_DESTROY])(&args);
}

ts_status pj_status(const pj_plugin *plugin, pj_error *error, const char *what) {
  if (!error) return TS_SUCCESS;
  pj_args message = PJ_ARGS(.message = {.error = error}), code = PJ_ARGS(.code = {.error = error});
  ((infallible)plugin->api->functions[PJ_ERROR_MESSAGE])(&message);
  pj_error *second = ((fallible)plugin->api->functions[PJ_ERROR_CODE])(&code);
  if (second) destroy_error(plugin, second);
  size_t size = message.message.text ? message.message.text_size : 0;
  ts_status status = ts_error(second ? TS_INTERNAL : code_of(code.code.code), "%s: %.*s", what,
                              (int)(size < 4096 ? size : 4096), size ? message.message.text : "");
  destroy_error(plugin, error);
  return status;
}

ts_status pj_call(const pj_plugin *plugin, pj_function function, pj_args *args) {
  void (*found)(void) = plugin->api->functions[function];
  if (!found) return ts_error(TS_UNIMPLEMENTED, "the plugin %s has no function %s", plugin->path, name_of(function));
  return pj_status(plugin, ((fallible)found)(args), name_of(function));
}

void pj_destroy(const pj_plugin *plugin, pj_function function, void *object) {
  if (object) ts_status_free(pj_call(plugin, function, &PJ_ARGS(.object = object)));
}

/* ---- loading */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pj_plugin *plugins; /* under the lock; they stay, as their threads do */

static ts_status check_table(const char *path, const pj_api *api) {
  if (!api) return ts_error(TS_UNAVAILABLE, "the plugin %s gives no table of functions", path);
  if (api->size < offsetof(pj_api, functions))
    return ts_error(TS_INVALID_ARGUMENT, "the plugin %s has a table of %zu bytes, which has no version", path,
                    api->size);
  if (api->version.major != PJ_MAJOR || api->version.minor < PJ_LEAST_MINOR)
    return ts_error(TS_UNIMPLEMENTED, "the plugin %s has version %d.%d of PJRT, %d.%d to %d.* are known", path,
                    api->version.major, api->version.minor, PJ_MAJOR, PJ_LEAST_MINOR, PJ_MAJOR);
  size_t wanted = offsetof(pj_api, functions) + PJ_TABLE * sizeof *api->functions;
  if (api->size < wanted)
    return ts_error(TS_INVALID_ARGUMENT, "the plugin %s has a table of %zu bytes, expected at least %zu", path,
                    api->size, wanted);
  if (!api->functions[PJ_ERROR_DESTROY] || !api->functions[PJ_ERROR_MESSAGE] || !api->functions[PJ_ERROR_CODE])
    return ts_error(TS_INVALID_ARGUMENT, "the plugin %s has no functions for errors", path);
  return TS_SUCCESS;
}

static ts_status get_table(const char *path, void *library, const pj_api **out) {
  union {
    void *data;
    pj_get_api call;
  } symbol = {.data = dlsym(library, "GetPjrtApi")};
  if (!symbol.data) return ts_error(TS_INVALID_ARGUMENT, "%s is no plugin of PJRT: it has no symbol GetPjrtApi", path);
  *out = symbol.call();
  return check_table(path, *out);
}

/* A library that is no plugin stays loaded: what its constructors began cannot be ended. */
static ts_status load(pj_plugin *plugin) {
  void *library;
  TS_TRY(ts_shared_object_open(plugin->path, &library));
  TS_TRY(get_table(plugin->path, library, &plugin->api));
  return ts_error_context(pj_call(plugin, PJ_INITIALIZE, &PJ_ARGS(.object = NULL)), "the plugin %s", plugin->path);
}

static ts_status new_plugin(const char *path, const pj_plugin **out) {
  pj_plugin *plugin;
  TS_TRY(TS_NEW(&plugin));
  ts_status status = ts_strdup(path, &plugin->path);
  if (!status) status = load(plugin);
  if (status) {
    ts_free(plugin->path);
    ts_free(plugin);
    return status;
  }
  plugin->next = plugins;
  plugins = plugin;
  *out = plugin;
  return TS_SUCCESS;
}

static const pj_plugin *find(const char *path) {
  const pj_plugin *plugin = plugins;
  while (plugin && strcmp(plugin->path, path) != 0) plugin = plugin->next;
  return plugin;
}

ts_status pj_plugin_open(const char *path, const pj_plugin **out) {
  char real[PATH_MAX];
  if (!realpath(path, real)) return ts_error(TS_UNAVAILABLE, "the plugin %s: there is no such file", path);
  pthread_mutex_lock(&lock);
  *out = find(real);
  ts_status status = *out ? TS_SUCCESS : new_plugin(real, out);
  pthread_mutex_unlock(&lock);
  return status;
}
