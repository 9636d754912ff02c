/* Over which mesh axes the values of a partitioned program vary: partitions that differ only in other coordinates have
 * the same value (docs/distribution.md). Works on a graph that grows, and on one with open regions. Not thread-safe. */
#ifndef TS_SHARD_VARYING_H
#define TS_SHARD_VARYING_H

#include "ir/graph.h"

/* Axis i is bit i. */
typedef uint8_t ts_axis_set;

typedef struct ts_varying_value {
  ts_axis_set axes;
  bool coordinates; /* it is the vector of a partition's coordinates */
} ts_varying_value;

typedef struct ts_varying {
  TS_VEC(ts_varying_value) values; /* the known values, by id */
  ts_value_id coordinates;         /* the root's parameter; TS_NO_ID without one */
  /* The value of an outer region that a region's parameter brings in, or TS_NO_ID. NULL: regions capture nothing. */
  ts_value_id (*captured)(const void *context, ts_value_id param);
  const void *context;
} ts_varying;
void ts_varying_deinit(ts_varying *v);

/* Finds the sets of the values that were added since the last call. Parameters of regions that no op holds yet vary
 * like the values that they capture, or not at all. */
ts_status ts_varying_extend(ts_varying *v, const ts_graph *graph);
/* Adds axes to the set of a known value; values that were made of it keep their sets. */
void ts_varying_add(ts_varying *v, ts_value_id value, ts_axis_set axes);
ts_axis_set ts_varying_of(const ts_varying *v, ts_value_id value);

/* Checks a finished partitioned program: results do not vary over axes that do not cut them, and no collective is under
 * a predicate that varies. */
ts_status ts_varying_check(const ts_graph *graph);

#endif
