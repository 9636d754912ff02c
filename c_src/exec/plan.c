#include "exec/plan.h"

#include "base/alloc.h"

#include <stdlib.h>

static int64_t align_up(int64_t n) { return (n + TS_PLAN_ALIGNMENT - 1) & ~(int64_t)(TS_PLAN_ALIGNMENT - 1); }

/* Larger first; among equals the earlier, so that plans do not depend on qsort. */
static int compare_size(const void *a, const void *b) {
  const ts_usage *x = *(ts_usage *const *)a, *y = *(ts_usage *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x < y ? -1 : x > y;
}

static bool overlap(const ts_usage *a, const ts_usage *b) { return a->first <= b->last && b->first <= a->last; }

/* The smallest gap between placed usages of its room that are alive with `u`, or the end.
 * `placed` is ordered by offset. */
static int64_t find_offset(const ts_usage *u, ts_usage *const *placed, int32_t placed_count) {
  int64_t best = -1, best_size = INT64_MAX, end = 0;
  for (int32_t i = 0; i < placed_count; i++) {
    const ts_usage *p = placed[i];
    if (p->room != u->room || !overlap(u, p)) continue;
    int64_t gap = p->offset - end;
    if (gap >= align_up(u->bytes) && gap < best_size) best = end, best_size = gap;
    int64_t p_end = p->offset + align_up(p->bytes);
    if (p_end > end) end = p_end;
  }
  return best >= 0 ? best : end;
}

static void insert_placed(ts_usage **placed, int32_t *count, ts_usage *u) {
  int32_t i = (*count)++;
  for (; i > 0 && placed[i - 1]->offset > u->offset; i--) placed[i] = placed[i - 1];
  placed[i] = u;
}

/* Chooses the smallest room that has space, else the block. */
static void choose_place(ts_usage *u, ts_usage *const *placed, int32_t placed_count, const ts_room *rooms,
                         int32_t room_count) {
  int32_t best = -1;
  for (int32_t i = 0; i < room_count; i++) {
    if (u->last >= rooms[i].until || u->bytes > rooms[i].bytes) continue;
    if (best >= 0 && rooms[i].bytes >= rooms[best].bytes) continue;
    u->room = i;
    if (find_offset(u, placed, placed_count) + u->bytes <= rooms[i].bytes) best = i;
  }
  u->room = best;
  u->offset = find_offset(u, placed, placed_count);
}

ts_status ts_plan_offsets(ts_usage *usages, int32_t count, int64_t *out_total) {
  return ts_plan_rooms(usages, count, NULL, 0, out_total);
}

ts_status ts_plan_rooms(ts_usage *usages, int32_t count, const ts_room *rooms, int32_t room_count, int64_t *out_total) {
  *out_total = 0;
  ts_usage **work = NULL;
  TS_TRY(ts_alloc_array((size_t)count * 2, sizeof *work, (void **)&work));
  ts_usage **order = work, **placed = work + count;
  int32_t n = 0, placed_count = 0;
  for (int32_t i = 0; i < count; i++) {
    usages[i].offset = 0;
    usages[i].room = -1;
    if (usages[i].bytes > 0) order[n++] = &usages[i];
  }
  qsort(order, (size_t)n, sizeof *order, compare_size);
  for (int32_t i = 0; i < n; i++) {
    choose_place(order[i], placed, placed_count, rooms, room_count);
    insert_placed(placed, &placed_count, order[i]);
    int64_t end = order[i]->offset + align_up(order[i]->bytes);
    if (order[i]->room < 0 && end > *out_total) *out_total = end;
  }
  ts_free(work);
  return TS_SUCCESS;
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
