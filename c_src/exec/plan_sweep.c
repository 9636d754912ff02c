/* Offsets for programs in which many usages live long, as in the gradient of a long chain: memory is taken and given
 * back in the order of positions. So each usage is placed once among the holes of its moment, not among all usages that
 * it meets, whose number is quadratic there. */
#include "base/alloc.h"
#include "base/vec.h"
#include "exec/plan.h"

#include <stdlib.h>

/* Free memory below the end of the block, in order of offset; neighbours are joined. */
typedef struct hole {
  int64_t offset, end;
} hole;

typedef struct sweep {
  TS_VEC(hole) holes;
  int64_t end;   /* of the memory that is taken now */
  int64_t total; /* the largest end so far */
} sweep;

static int compare_first(const void *a, const void *b) {
  const ts_usage *x = *(ts_usage *const *)a, *y = *(ts_usage *const *)b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x < y ? -1 : x > y;
}

static int compare_last(const void *a, const void *b) {
  const ts_usage *x = *(ts_usage *const *)a, *y = *(ts_usage *const *)b;
  if (x->last != y->last) return x->last < y->last ? -1 : 1;
  return x < y ? -1 : x > y;
}

static void remove_hole(sweep *s, size_t at) {
  for (size_t i = at; i + 1 < s->holes.count; i++) s->holes.data[i] = s->holes.data[i + 1];
  s->holes.count--;
}

/* The smallest hole that fits, or the end. */
static void take(sweep *s, ts_usage *u) {
  const int64_t size = ts_plan_align(u->bytes);
  size_t best = s->holes.count;
  for (size_t i = 0; i < s->holes.count; i++) {
    const int64_t room = s->holes.data[i].end - s->holes.data[i].offset;
    if (room < size) continue;
    if (best == s->holes.count || room < s->holes.data[best].end - s->holes.data[best].offset) best = i;
  }
  if (best == s->holes.count) {
    u->offset = s->end;
    s->end += size;
    if (s->end > s->total) s->total = s->end;
    return;
  }
  hole *h = &s->holes.data[best];
  u->offset = h->offset;
  h->offset += size;
  if (h->offset == h->end) remove_hole(s, best);
}

/* The index of the first hole after an offset. */
static size_t hole_after(const sweep *s, int64_t offset) {
  size_t low = 0, high = s->holes.count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (s->holes.data[middle].offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* No hole is at the end: it is moved back instead. */
static ts_status give_back(sweep *s, const ts_usage *u) {
  hole h = {u->offset, u->offset + ts_plan_align(u->bytes)};
  size_t at = hole_after(s, h.offset);
  if (at < s->holes.count && s->holes.data[at].offset == h.end) {
    h.end = s->holes.data[at].end;
    remove_hole(s, at);
  }
  if (at > 0 && s->holes.data[at - 1].end == h.offset) {
    h.offset = s->holes.data[--at].offset;
    remove_hole(s, at);
  }
  if (h.end == s->end) {
    s->end = h.offset;
    return TS_SUCCESS;
  }
  TS_TRY(TS_VEC_PUSH(&s->holes, h));
  for (size_t i = s->holes.count - 1; i > at; i--) s->holes.data[i] = s->holes.data[i - 1];
  s->holes.data[at] = h;
  return TS_SUCCESS;
}

static ts_status place_in_order(sweep *s, ts_usage *const *begins, const ts_usage *const *ends, int32_t count) {
  for (int32_t i = 0, ended = 0; i < count; i++) {
    for (; ended < count && ends[ended]->last < begins[i]->first; ended++) TS_TRY(give_back(s, ends[ended]));
    take(s, begins[i]);
  }
  return TS_SUCCESS;
}

ts_status ts_plan_sweep(ts_usage *usages, int32_t count, int64_t *out_total) {
  ts_usage **begins, **ends = NULL;
  sweep s = {.end = 0};
  int32_t n = 0;
  TS_TRY(TS_NEW_ARRAY((size_t)count, &begins));
  ts_status status = TS_NEW_ARRAY((size_t)count, &ends);
  for (int32_t i = 0; !status && i < count; i++) {
    usages[i].offset = 0;
    usages[i].room = -1;
    if (usages[i].bytes > 0) begins[n] = ends[n] = &usages[i], n++;
  }
  if (!status) {
    qsort(begins, (size_t)n, sizeof *begins, compare_first);
    qsort(ends, (size_t)n, sizeof *ends, compare_last);
    status = place_in_order(&s, begins, (const ts_usage *const *)ends, n);
  }
  *out_total = s.total;
  TS_VEC_FREE(&s.holes);
  ts_free(begins);
  ts_free(ends);
  return status;
}
