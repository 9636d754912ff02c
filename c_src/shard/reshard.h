/* Changes the sharding of a value: the steps, and their cost. Pure, thread-safe. */
#ifndef TS_SHARD_RESHARD_H
#define TS_SHARD_RESHARD_H

#include "ir/graph.h"

typedef enum ts_reshard_kind { TS_RESHARD_SLICE, TS_RESHARD_GATHER, TS_RESHARD_EXCHANGE } ts_reshard_kind;

/* SLICE: each keeps its part of `dim`. GATHER: parts are joined along `dim`. EXCHANGE: from `dim` to `to`. */
typedef struct ts_reshard_step {
  ts_dims axes;
  ts_sharding after;
  ts_reshard_kind kind;
  int32_t dim, to;
} ts_reshard_step;

#define TS_RESHARD_STEPS (4 * TS_MAX_MESH_AXES)

/* Writes the steps and returns how many there are: slices by free axes first, since they cost nothing and make the
 * others cheaper; then exchanges, gathers, and slices by the axes that are free now. */
int32_t ts_reshard_plan(const ts_mesh *mesh, const ts_sharding *from, const ts_sharding *to, int32_t rank,
                        ts_reshard_step out[TS_RESHARD_STEPS]);

/* Bytes that a partition receives on the way. */
int64_t ts_reshard_cost(const ts_mesh *mesh, const ts_sharding *from, const ts_sharding *to, const ts_shape *shape,
                        ts_dtype dtype);

#endif
