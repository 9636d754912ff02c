#include "exec/plan.h"

#include "base/vec.h"

#include <stdlib.h>

static int64_t align_up(int64_t n) { return (n + TS_PLAN_ALIGNMENT - 1) & ~(int64_t)(TS_PLAN_ALIGNMENT - 1); }

/* Larger first; among equals the earlier, so that plans do not depend on qsort. */
static int compare_size(const void *a, const void *b) {
  const ts_usage *x = *(ts_usage *const *)a, *y = *(ts_usage *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x < y ? -1 : x > y;
}

static bool overlap(const ts_usage *a, const ts_usage *b) { return a->first <= b->last && b->first <= a->last; }

/* What is placed in a room, or in the block, ordered by offset. */
typedef struct placed {
  TS_VEC(ts_usage *) usages;
} placed;

/* The smallest gap between placed usages that are alive with `u`, or the end. */
static int64_t find_offset(const ts_usage *u, const placed *in) {
  int64_t best = -1, best_size = INT64_MAX, end = 0, size = align_up(u->bytes);
  for (size_t i = 0; i < in->usages.count; i++) {
    const ts_usage *p = in->usages.data[i];
    if (!overlap(u, p)) continue;
    int64_t gap = p->offset - end;
    if (gap >= size && gap < best_size) best = end, best_size = gap;
    int64_t p_end = p->offset + align_up(p->bytes);
    if (p_end > end) end = p_end;
  }
  return best >= 0 ? best : end;
}

static ts_status insert_placed(placed *in, ts_usage *u) {
  TS_TRY(TS_VEC_PUSH(&in->usages, u));
  ts_usage **data = in->usages.data;
  size_t i = in->usages.count - 1;
  for (; i > 0 && data[i - 1]->offset > u->offset; i--) data[i] = data[i - 1];
  data[i] = u;
  return TS_SUCCESS;
}

/* A room while usages are placed. */
typedef struct space {
  ts_room room;
  int32_t id;
  placed placed;
} space;

static int compare_room(const void *a, const void *b) {
  const space *x = a, *y = b;
  if (x->room.bytes != y->room.bytes) return x->room.bytes < y->room.bytes ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* The smallest room that has space, else the block, which is the last. Spaces are ordered by size. */
static ts_status place(ts_usage *u, space *spaces, int32_t room_count) {
  int32_t i = 0;
  for (; i < room_count; i++) {
    const ts_room *room = &spaces[i].room;
    if (u->last >= room->until || u->bytes > room->bytes) continue;
    u->offset = find_offset(u, &spaces[i].placed);
    if (u->offset + u->bytes <= room->bytes) break;
  }
  u->room = i < room_count ? spaces[i].id : -1;
  if (i == room_count) u->offset = find_offset(u, &spaces[i].placed);
  return insert_placed(&spaces[i].placed, u);
}

static ts_status place_all(ts_usage *const *order, int32_t count, space *spaces, int32_t room_count,
                           int64_t *out_total) {
  for (int32_t i = 0; i < count; i++) {
    TS_TRY(place(order[i], spaces, room_count));
    int64_t end = order[i]->offset + align_up(order[i]->bytes);
    if (order[i]->room < 0 && end > *out_total) *out_total = end;
  }
  return TS_SUCCESS;
}

/* Usages that take memory, in the order in which they are placed. */
static ts_status sort_usages(ts_usage *usages, int32_t count, ts_usage ***out, int32_t *out_count) {
  *out_count = 0;
  TS_TRY(TS_NEW_ARRAY((size_t)count, out));
  for (int32_t i = 0; i < count; i++) {
    usages[i].offset = 0;
    usages[i].room = -1;
    if (usages[i].bytes > 0) (*out)[(*out_count)++] = &usages[i];
  }
  qsort(*out, (size_t)*out_count, sizeof **out, compare_size);
  return TS_SUCCESS;
}

ts_status ts_plan_offsets(ts_usage *usages, int32_t count, int64_t *out_total) {
  return ts_plan_rooms(usages, count, NULL, 0, out_total);
}

ts_status ts_plan_rooms(ts_usage *usages, int32_t count, const ts_room *rooms, int32_t room_count, int64_t *out_total) {
  ts_usage **order;
  space *spaces = NULL;
  int32_t n;
  *out_total = 0;
  TS_TRY(sort_usages(usages, count, &order, &n));
  ts_status status = TS_NEW_ARRAY((size_t)room_count + 1, &spaces);
  for (int32_t i = 0; !status && i < room_count; i++) spaces[i] = (space){.room = rooms[i], .id = i};
  if (!status && room_count > 0) qsort(spaces, (size_t)room_count, sizeof *spaces, compare_room);
  if (!status) status = place_all(order, n, spaces, room_count, out_total);
  for (int32_t i = 0; spaces && i <= room_count; i++) TS_VEC_FREE(&spaces[i].placed.usages);
  ts_free(spaces);
  ts_free(order);
  return status;
}

ts_status ts_plan_live_peak(const ts_usage *usages, int32_t count, int64_t *out_peak) {
  int32_t last = -1;
  for (int32_t i = 0; i < count; i++)
    if (usages[i].last > last) last = usages[i].last;
  int64_t *delta = NULL;
  TS_TRY(TS_NEW_ARRAY((size_t)last + 3, &delta));
  for (int32_t i = 0; i < count; i++) {
    delta[usages[i].first < 0 ? 0 : usages[i].first] += usages[i].bytes;
    delta[usages[i].last + 1] -= usages[i].bytes;
  }
  int64_t live = 0;
  *out_peak = 0;
  for (int32_t i = 0; i <= last; i++) {
    live += delta[i];
    if (live > *out_peak) *out_peak = live;
  }
  ts_free(delta);
  return TS_SUCCESS;
}
