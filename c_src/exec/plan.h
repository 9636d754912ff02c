/* The memory planner: from live ranges to offsets in one block. A pure function. */
#ifndef TS_EXEC_PLAN_H
#define TS_EXEC_PLAN_H

#include "base/status.h"

#include <stdint.h>

#define TS_PLAN_ALIGNMENT 64
static inline int64_t ts_plan_align(int64_t bytes) {
  return (bytes + TS_PLAN_ALIGNMENT - 1) & ~(int64_t)(TS_PLAN_ALIGNMENT - 1);
}

/* A live range: bytes that are in use at every position from `first` to `last`, both included. */
typedef struct ts_usage {
  int32_t first, last;
  int64_t bytes;
  int64_t offset; /* set by the planner */
  int32_t room;   /* set by the planner; -1: in the block */
} ts_usage;

/* Memory outside the block that is free at positions before `until`: a result's before its first write. */
typedef struct ts_room {
  int32_t until;
  int64_t bytes;
} ts_room;

/* Gives every usage an offset so that usages with overlapping live ranges do not overlap. `*out_total` is the size of
 * the block. Greedy by size, best fit (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
 * 2020). */
ts_status ts_plan_offsets(ts_usage *usages, int32_t count, int64_t *out_total);
/* The same, but usages that fit into a room are placed there. */
ts_status ts_plan_rooms(ts_usage *usages, int32_t count, const ts_room *rooms, int32_t room_count, int64_t *out_total);

/* The same as ts_plan_offsets, in the order of positions: for very many usages that live long, where the greedy way
 * takes quadratic time. ts_plan_rooms chooses it where the usages cover more than TS_PLAN_MOST_SPANS times 32 positions
 * together; then nothing is placed in rooms. */
enum { TS_PLAN_MOST_SPANS = 2 << 20 };
ts_status ts_plan_sweep(ts_usage *usages, int32_t count, int64_t *out_total);

/* The largest sum of bytes that are live at one position: a lower bound for every plan. */
ts_status ts_plan_live_peak(const ts_usage *usages, int32_t count, int64_t *out_peak);

#endif
