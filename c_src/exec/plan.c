#include "exec/plan.h"

#include "base/vec.h"

#include <stdlib.h>

/* Larger ones first; equal ones in their original order, so that plans do not depend on qsort. */
static int compare_size(const void *a, const void *b) {
  const ts_usage *x = *(ts_usage *const *)a, *y = *(ts_usage *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x < y ? -1 : x > y;
}

/* A placed usage; lists of them are in order of offset. */
typedef struct extent {
  int32_t first, last;
  int64_t offset, end;
} extent;

typedef TS_VEC(extent) extents;

/* The usages placed in a room or in the block. Most usages are short and overlap few others, so each span of positions
 * has a list of the usages that are live in it. */
typedef struct placed {
  extents all;
  extents *spans; /* NULL: only `all` */
  int32_t span_count;
} placed;

enum { SPAN = 32 /* positions */, WORTH_SPANS = 64 /* usages */ };

static bool overlap(const ts_usage *u, const extent *x) { return u->first <= x->last && x->first <= u->last; }

/* The smallest gap between placed usages that are live at the same time as `u`, or the end of them. */
static int64_t find_offset(const ts_usage *u, const placed *in) {
  const extents *list = &in->all;
  int64_t best = -1, best_size = INT64_MAX, end = 0, size = ts_plan_align(u->bytes);
  if (in->spans && u->first / SPAN == u->last / SPAN) list = &in->spans[u->first / SPAN];
  for (size_t i = 0; i < list->count; i++) {
    const extent *x = &list->data[i];
    if (!overlap(u, x)) continue;
    int64_t gap = x->offset - end;
    if (gap >= size && gap < best_size) best = end, best_size = gap;
    if (x->end > end) end = x->end;
  }
  return best >= 0 ? best : end;
}

static ts_status insert_extent(extents *list, const extent *x) {
  TS_TRY(TS_VEC_PUSH(list, *x));
  size_t i = list->count - 1;
  for (; i > 0 && list->data[i - 1].offset > x->offset; i--) list->data[i] = list->data[i - 1];
  list->data[i] = *x;
  return TS_SUCCESS;
}

static ts_status insert_placed(placed *in, const ts_usage *u) {
  extent x = {u->first, u->last, u->offset, u->offset + ts_plan_align(u->bytes)};
  TS_TRY(insert_extent(&in->all, &x));
  for (int32_t s = x.first / SPAN; in->spans && s <= x.last / SPAN; s++) TS_TRY(insert_extent(&in->spans[s], &x));
  return TS_SUCCESS;
}

/* Makes spans where they are worth it. Programs with negative positions have none. */
static ts_status make_spans(placed *in, const ts_usage *usages, int32_t count) {
  int32_t last = 0;
  for (int32_t i = 0; i < count; i++) {
    if (usages[i].first < 0) return TS_SUCCESS;
    if (usages[i].last > last) last = usages[i].last;
  }
  if (count < WORTH_SPANS) return TS_SUCCESS;
  in->span_count = last / SPAN + 1;
  return TS_NEW_ARRAY((size_t)in->span_count, &in->spans);
}

static void placed_deinit(placed *in) {
  TS_VEC_FREE(&in->all);
  for (int32_t s = 0; in->spans && s < in->span_count; s++) TS_VEC_FREE(&in->spans[s]);
  ts_free(in->spans);
}

/* A room with its placed usages, or the block. */
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

/* The index of the first space of at least `bytes`. */
static int32_t first_of_size(const space *spaces, int32_t room_count, int64_t bytes) {
  int32_t low = 0, high = room_count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (spaces[middle].room.bytes < bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Places a usage in the smallest room with a gap for it, else in the block. `spaces` are the rooms in order of size,
 * then the block. */
static ts_status place(ts_usage *u, space *spaces, int32_t room_count) {
  int32_t i = first_of_size(spaces, room_count, u->bytes);
  for (; i < room_count; i++) {
    const ts_room *room = &spaces[i].room;
    if (u->last >= room->until) continue;
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
    int64_t end = order[i]->offset + ts_plan_align(order[i]->bytes);
    if (order[i]->room < 0 && end > *out_total) *out_total = end;
  }
  return TS_SUCCESS;
}

enum { FEW_SIZES = 32 };

/* How many usages are of each size. */
typedef struct sizes {
  int64_t bytes[FEW_SIZES];
  int32_t counts[FEW_SIZES];
  int32_t count;
} sizes;

/* The index of the size; sizes.count when it is new. */
static int32_t size_of(const sizes *s, int64_t bytes) {
  int32_t i = 0;
  while (i < s->count && s->bytes[i] != bytes) i++;
  return i;
}

/* Finds the distinct sizes, larger ones first. False when there are too many. */
static bool find_sizes(const ts_usage *usages, int32_t count, sizes *out) {
  out->count = 0;
  for (int32_t i = 0; i < count; i++) {
    if (usages[i].bytes <= 0) continue;
    int32_t at = size_of(out, usages[i].bytes);
    if (at == FEW_SIZES) return false;
    if (at == out->count) {
      for (; at > 0 && out->bytes[at - 1] < usages[i].bytes; at--)
        out->bytes[at] = out->bytes[at - 1], out->counts[at] = out->counts[at - 1];
      out->bytes[at] = usages[i].bytes, out->counts[at] = 0;
      out->count++;
    }
    out->counts[at]++;
  }
  return true;
}

/* Counting sort: most programs have few distinct sizes. */
static bool sort_by_count(ts_usage *usages, int32_t count, ts_usage **order) {
  sizes s;
  int32_t next[FEW_SIZES] = {0}, before = 0;
  if (!find_sizes(usages, count, &s)) return false;
  for (int32_t i = 0; i < s.count; before += s.counts[i++]) next[i] = before;
  for (int32_t i = 0; i < count; i++)
    if (usages[i].bytes > 0) order[next[size_of(&s, usages[i].bytes)]++] = &usages[i];
  return true;
}

/* The usages that take memory, in placement order. */
static ts_status sort_usages(ts_usage *usages, int32_t count, ts_usage ***out, int32_t *out_count) {
  *out_count = 0;
  TS_TRY(TS_NEW_ARRAY((size_t)count, out));
  for (int32_t i = 0; i < count; i++) {
    usages[i].offset = 0;
    usages[i].room = -1;
    if (usages[i].bytes > 0) (*out)[(*out_count)++] = &usages[i];
  }
  if (!sort_by_count(usages, count, *out)) qsort(*out, (size_t)*out_count, sizeof **out, compare_size);
  return TS_SUCCESS;
}

ts_status ts_plan_offsets(ts_usage *usages, int32_t count, int64_t *out_total) {
  return ts_plan_rooms(usages, count, NULL, 0, out_total);
}

/* Whether the lists of spans would be too long. */
static bool live_long(const ts_usage *usages, int32_t count) {
  int64_t spans = 0;
  for (int32_t i = 0; i < count; i++) spans += ((int64_t)usages[i].last - usages[i].first) / SPAN + 1;
  return spans > TS_PLAN_MOST_SPANS;
}

ts_status ts_plan_rooms(ts_usage *usages, int32_t count, const ts_room *rooms, int32_t room_count, int64_t *out_total) {
  ts_usage **order;
  space *spaces = NULL;
  int32_t n;
  *out_total = 0;
  if (live_long(usages, count)) return ts_plan_sweep(usages, count, out_total);
  TS_TRY(sort_usages(usages, count, &order, &n));
  ts_status status = TS_NEW_ARRAY((size_t)room_count + 1, &spaces);
  for (int32_t i = 0; !status && i < room_count; i++) spaces[i] = (space){.room = rooms[i], .id = i};
  if (!status && room_count > 0) qsort(spaces, (size_t)room_count, sizeof *spaces, compare_room);
  if (!status) status = make_spans(&spaces[room_count].placed, usages, count);
  if (!status) status = place_all(order, n, spaces, room_count, out_total);
  for (int32_t i = 0; spaces && i <= room_count; i++) placed_deinit(&spaces[i].placed);
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
