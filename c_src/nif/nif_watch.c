#include "nif/nif_watch.h"

#include <string.h>

static ErlNifResourceType *watch_type;

static void down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor) {
  (void)env, (void)pid, (void)monitor;
  atomic_store(&((ts_nif_watch *)object)->cancel, true);
}

bool ts_nif_watch_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  ErlNifResourceTypeInit init = {.down = down};
  watch_type = enif_open_resource_type_x(env, "tessera_watch", &init, flags, NULL);
  return watch_type != NULL;
}

ts_status ts_nif_watch_begin(ErlNifEnv *env, ts_nif_watch **out) {
  ErlNifPid self;
  ts_nif_watch *watch = enif_alloc_resource(watch_type, sizeof *watch);
  if (!watch) return ts_error_no_memory();
  memset(watch, 0, sizeof *watch);
  watch->watching = enif_self(env, &self) && enif_monitor_process(env, watch, &self, &watch->monitor) == 0;
  *out = watch;
  return TS_SUCCESS;
}

void ts_nif_watch_end(ErlNifEnv *env, ts_nif_watch *watch) {
  if (watch->watching) enif_demonitor_process(env, watch, &watch->monitor);
  enif_release_resource(watch);
}
