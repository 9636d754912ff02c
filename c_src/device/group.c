/* Runs of all partitions of a program, each on a device of its own. */
#include "base/alloc.h"
#include "device/remote.h"

struct ts_device_group {
  const ts_direct *direct;
  void *own;           /* of a direct run */
  ts_pending *pending; /* of a waiting group */
  ts_loaded_measure measure;
  ts_device *devices[TS_MAX_DEVICES];
};

static ts_status check(const ts_loaded *loaded, ts_run_args args, int32_t here) {
  const ts_client *client = loaded->client;
  int32_t devices = atomic_load_explicit(&client->device_count, memory_order_acquire);
  if (!(client->platform->flags & TS_PLATFORM_GROUPS))
    return ts_error(TS_UNIMPLEMENTED, "platform %s of client %s cannot run partitions together", client->platform->name,
                    client->name);
  if (here < 1)
    return ts_error(TS_INVALID_ARGUMENT, "the program has %d partitions, which is less than one for each rank",
                    loaded->partitions);
  if (here > devices)
    return ts_error(TS_INVALID_ARGUMENT, "the program has %d partitions, client %s has %d devices", here, client->name,
                    devices);
  if (args.count % (size_t)here == 0) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "%zu arguments are not as many for each of %d partitions", args.count, here);
}

static ts_status begin_pending(ts_device_group *g, ts_loaded *loaded, ts_run_args args, const ts_group_options *o) {
  if (o->carrier)
    return ts_error(TS_UNIMPLEMENTED, "client %s of platform %s is no part of a cluster", loaded->client->name,
                    loaded->client->platform->name);
  ts_pending_options options = {.devices = g->devices,
                                .partitions = loaded->partitions,
                                .control = o->control,
                                .threads = o->threads,
                                .donated = o->donated,
                                .ready = o->ready,
                                .context = o->context};
  g->measure = ts_loaded_measure_begin(loaded, o->profile);
  ts_status status = ts_pending_create(loaded, args, &options, &g->pending);
  if (status) ts_loaded_measure_end(&g->measure, false);
  return status;
}

static ts_status begin(ts_device_group *g, const ts_loaded *loaded, ts_run_args args, const ts_group_options *options) {
  ts_group_options o = *options;
  o.devices = g->devices;
  o.pool = ts_client_pool(loaded->client);
  int most = atomic_load_explicit(&loaded->client->threads, memory_order_relaxed);
  if (most && (!o.threads || o.threads > most)) o.threads = most;
  if (!loaded->waits) return loaded->direct->begin_group(loaded, args, &o, &g->own);
  return begin_pending(g, (ts_loaded *)(uintptr_t)loaded, args, &o);
}

ts_status ts_device_group_create(const ts_loaded *loaded, ts_run_args args, const ts_group_options *options,
                                 ts_device_group **out) {
  ts_device_group *g;
  *out = NULL;
  int32_t here = ts_device_group_size(loaded, options->carrier);
  TS_TRY(check(loaded, args, here));
  TS_TRY(TS_NEW(&g));
  g->direct = loaded->direct;
  for (int32_t p = 0; p < here; p++) g->devices[p] = loaded->client->devices[p];
  ts_status status = begin(g, loaded, args, options);
  if (status)
    ts_free(g);
  else
    *out = g;
  return status;
}

ts_status ts_device_group_advance(ts_device_group *group, ts_run_state *out_state) {
  if (group->pending) return ts_pending_advance(group->pending, out_state);
  return group->direct->advance_group(group->own, out_state);
}

ts_status ts_device_group_end(ts_device_group *group, ts_buffer **out_results) {
  if (!group) return TS_SUCCESS;
  ts_status status =
      group->pending ? ts_pending_end(group->pending, out_results) : group->direct->end_group(group->own, out_results);
  ts_loaded_measure_end(&group->measure, !status && out_results);
  ts_free(group);
  return status;
}
