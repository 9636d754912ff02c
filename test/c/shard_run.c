#include "shard_run.h"

#include "base/alloc.h"
#include "kernel/ref/ref.h"
#include "shard/shard.h"

void random_sharding(rng *r, const ts_mesh *mesh, const ts_shape *shape, ts_sharding *out) {
  ts_dims axes = {0}, dims = {0};
  out->count = 0;
  for (int32_t axis = 0; axis < mesh->rank; axis++) {
    ts_sharding more;
    if (shape->rank == 0 || rng_chance(r, 30)) continue;
    axes.dims[axes.rank++] = axis;
    dims.dims[dims.rank++] = rng_below(r, shape->rank);
    if (ts_status_consume_ok(ts_sharding_make(mesh, &axes, &dims, shape, &more)))
      *out = more;
    else
      axes.rank--, dims.rank--;
  }
}

ts_status random_shardings(rng *r, ts_graph *graph, ts_root_side side, int percent) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  size_t count = side == TS_PARAMS ? root->params.count : root->results.count;
  for (size_t i = 0; i < count; i++) {
    ts_sharding sharding;
    ts_value_id value = side == TS_PARAMS ? root->params.data[i] : root->results.data[i];
    random_sharding(r, &graph->mesh, ts_graph_value(graph, value)->shape, &sharding);
    if (rng_chance(r, percent)) TS_TRY(ts_graph_set_sharding(graph, side, i, &sharding));
  }
  return TS_SUCCESS;
}

bool random_has_sums(uint64_t seed) { return seed % 3 == 0; }

ts_status random_sharded_graph(uint64_t seed, const ts_random_options *size, const ts_mesh *meshes, size_t count,
                               ts_graph **out) {
  static const uint32_t integers = 1u << TS_U8 | 1u << TS_S8 | 1u << TS_S32 | 1u << TS_S64;
  static const uint32_t floats = 1u << TS_F16 | 1u << TS_BF16 | 1u << TS_F32 | 1u << TS_F64;
  rng r = {.state = seed ^ UINT64_C(0x9E3779B97F4A7C15)};
  const ts_mesh *mesh = &meshes[rng_below(&r, (int64_t)count)];
  bool sums = random_has_sums(seed);
  ts_random_options options = *size;
  options.dtypes = seed % 3 == 1 ? integers : 0;
  if (sums) options.steps = 3, options.dtypes = floats, options.sums = 60;
  options.even = rng_chance(&r, 80);
  options.no_library = true; /* of other lines and matrices than the whole */
  TS_TRY(ts_random_graph(seed, &options, out));
  ts_status status = ts_graph_set_mesh(*out, mesh);
  if (!status) status = random_shardings(&r, *out, TS_PARAMS, sums ? 100 : 80);
  if (!status) status = random_shardings(&r, *out, TS_RESULTS, 40);
  return status;
}

void tensors_release(tensors *t) {
  for (size_t i = 0; t->data && i < t->count; i++) ts_buffer_release(t->data[i]);
  ts_free(t->data);
}

ts_status tensors_make(size_t count, tensors *out) {
  out->count = count;
  return TS_NEW_ARRAY(count + 1, &out->data);
}

ts_status tensors_cut(const ts_graph *g, const tensors *args, tensors *out) {
  TS_TRY(tensors_make(args->count * (size_t)ts_mesh_partitions(&g->mesh), out));
  for (size_t i = 0; i < out->count; i++)
    TS_TRY(ts_shard_cut(&g->mesh, ts_graph_sharding(g, TS_PARAMS, i % args->count), args->data[i % args->count],
                        (int32_t)(i / args->count), ts_pool_default(), &out->data[i]));
  return TS_SUCCESS;
}

static ts_status join_all(const ts_graph *g, const tensors *parts, tensors *out) {
  for (size_t i = 0; i < out->count; i++) {
    ts_buffer *all[TS_MAX_PARTITIONS];
    for (int32_t p = 0; p < ts_mesh_partitions(&g->mesh); p++) all[p] = parts->data[(size_t)p * out->count + i];
    TS_TRY(ts_shard_join(&g->mesh, ts_graph_sharding(g, TS_RESULTS, i), all, ts_pool_default(), &out->data[i]));
  }
  return TS_SUCCESS;
}

ts_status run_partitions(const ts_graph *partitioned, const tensors *args, tensors *out) {
  tensors parts = {0}, results = {0};
  size_t count = ts_graph_region(partitioned, TS_ROOT)->results.count;
  ts_status status = tensors_make(count, out);
  if (!status) status = tensors_cut(partitioned, args, &parts);
  if (!status) status = tensors_make(count * (size_t)ts_mesh_partitions(&partitioned->mesh), &results);
  if (!status) status = ts_ref_run_partitions(partitioned, parts.data, args->count, ts_pool_default(), results.data);
  if (!status) status = join_all(partitioned, &results, out);
  tensors_release(&parts);
  tensors_release(&results);
  return status;
}

ts_status run_whole(const ts_graph *graph, const tensors *args, tensors *out) {
  TS_TRY(tensors_make(ts_graph_region(graph, TS_ROOT)->results.count, out));
  return ts_ref_run(graph, args->data, args->count, ts_pool_default(), out->data);
}
