#include "pjrt/plugin.h"

#include "base/alloc.h"
#include "base/shared_object.h"
#include "pjrt/remote.h"

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
  if (plugin->remote) return what ? ts_error_context((ts_status)error, "%s", what) : (ts_status)error;
  pj_args message = PJ_ARGS(.message = {.error = error}), code = PJ_ARGS(.code = {.error = error});
  ((infallible)plugin->api->functions[PJ_ERROR_MESSAGE])(&message);
  pj_error *second = ((fallible)plugin->api->functions[PJ_ERROR_CODE])(&code);
  if (second) destroy_error(plugin, second);
  size_t size = message.message.text ? message.message.text_size : 0;
  ts_status status = ts_error(second ? TS_INTERNAL : code_of(code.code.code), "%s%s%.*s", what ? what : "",
                              what ? ": " : "", (int)(size < 4096 ? size : 4096), size ? message.message.text : "");
  destroy_error(plugin, error);
  return status;
}

ts_status pj_call(const pj_plugin *plugin, pj_function function, pj_args *args) {
  if (plugin->remote) return pj_remote_call(plugin->remote, function, args);
  void (*found)(void) = plugin->api->functions[function];
  if (!found) return ts_error(TS_UNIMPLEMENTED, "the plugin %s has no function %s", plugin->path, name_of(function));
  return pj_status(plugin, ((fallible)found)(args), name_of(function));
}

void pj_destroy(const pj_plugin *plugin, pj_function function, void *object) {
  if (object) ts_status_free(pj_call(plugin, function, &PJ_ARGS(.object = object)));
}

/* ---- loading */

/* A file that is being loaded, which may take for ever: others wait only for the same file. */
typedef struct loading {
  struct loading *next;
  const char *path;
} loading;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loaded = PTHREAD_COND_INITIALIZER;
static pj_plugin *plugins; /* under the lock; they stay, as their threads do */
static loading *in_progress;

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

static void free_plugin(pj_plugin *plugin) {
  ts_free(plugin->path);
  ts_free(plugin);
}

static ts_status new_plugin(const char *path, pj_plugin **out) {
  TS_TRY(TS_NEW(out));
  ts_status status = ts_strdup(path, &(*out)->path);
  if (status) free_plugin(*out);
  return status;
}

static const pj_plugin *find(const char *path) {
  const pj_plugin *plugin = plugins;
  while (plugin && strcmp(plugin->path, path) != 0) plugin = plugin->next;
  return plugin;
}

static bool is_in_progress(const char *path) {
  const loading *l = in_progress;
  while (l && strcmp(l->path, path) != 0) l = l->next;
  return l != NULL;
}

static ts_status load_new(const char *path, pj_plugin **out) {
  TS_TRY(new_plugin(path, out));
  ts_status status = load(*out);
  if (status) free_plugin(*out);
  return status;
}

/* The lock is held, but not while the file is loaded. */
static ts_status load_and_add(const char *path, const pj_plugin **out) {
  pj_plugin *plugin;
  loading this = {in_progress, path}, **at = &in_progress;
  in_progress = &this;
  pthread_mutex_unlock(&lock);
  ts_status status = load_new(path, &plugin);
  pthread_mutex_lock(&lock);
  while (*at != &this) at = &(*at)->next;
  *at = this.next;
  pthread_cond_broadcast(&loaded);
  if (status) return status;
  plugin->next = plugins;
  plugins = plugin;
  *out = plugin;
  return TS_SUCCESS;
}

static ts_status find_file(const char *path, char real[PATH_MAX]) {
  if (realpath(path, real)) return TS_SUCCESS;
  return ts_error(TS_UNAVAILABLE, "the plugin %s: there is no such file", path);
}

ts_status pj_plugin_open(const char *path, const pj_plugin **out) {
  char real[PATH_MAX];
  TS_TRY(find_file(path, real));
  pthread_mutex_lock(&lock);
  while (!find(real) && is_in_progress(real)) pthread_cond_wait(&loaded, &lock);
  *out = find(real);
  ts_status status = *out ? TS_SUCCESS : load_and_add(real, out);
  pthread_mutex_unlock(&lock);
  return status;
}

ts_status pj_plugin_isolate(const char *path, const pj_deadlines *deadlines, const pj_plugin **out) {
  char real[PATH_MAX];
  pj_plugin *plugin;
  TS_TRY(find_file(path, real));
  TS_TRY(new_plugin(real, &plugin));
  ts_status status = pj_remote_start(deadlines, &plugin->remote);
  if (!status) status = pj_remote_open(plugin->remote, real);
  if (status)
    pj_plugin_close(plugin);
  else
    *out = plugin;
  return status;
}

void pj_plugin_close(const pj_plugin *plugin) {
  if (!plugin || plugin->api) return; /* a table is of this process */
  pj_remote_end(plugin->remote);
  free_plugin((pj_plugin *)(uintptr_t)plugin);
}

bool pj_plugin_is_gone(const pj_plugin *plugin) { return plugin->remote && pj_remote_is_dead(plugin->remote); }
