/* The memory planner: from lifetimes to offsets in one block. Pure. */
#ifndef TS_EXEC_PLAN_H
#define TS_EXEC_PLAN_H

#include "base/status.h"

#include <stdint.h>

#define TS_PLAN_ALIGNMENT 64

/* Bytes that are needed at every position from `first` to `last`, both included. */
typedef struct ts_usage {
  int32_t first, last;
  int64_t bytes;
  int64_t offset; /* set by the planner */
  int32_t room;   /* set by the planner: -1 for the block */
} ts_usage;

/* Other memory that may be used at positions before `until`: a result's, which is written late. */
typedef struct ts_room {
  int32_t until;
  int64_t bytes;
} ts_room;

/* Gives every usage an offset so that usages that are alive together do not
 * overlap. `*out_total` is the size of the block. Greedy by size, best fit
 * (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). */
ts_status ts_plan_offsets(ts_usage *usages, int32_t count, int64_t *out_total);
/* The same, but what fits into a room goes there. */
ts_status ts_plan_rooms(ts_usage *usages, int32_t count, const ts_room *rooms, int32_t room_count, int64_t *out_total);

/* The largest sum of bytes alive at one position: no plan can take less. */
ts_status ts_plan_live_peak(const ts_usage *usages, int32_t count, int64_t *out_peak);

#endif
