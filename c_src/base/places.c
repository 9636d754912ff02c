#include "base/places.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* A place: the numbers of its lines. */
typedef struct list {
  uint32_t count;
  uint32_t lines[TS_MOST_LINES];
} list;

struct ts_places {
  _Atomic uint32_t refs;
  pthread_mutex_t lock;
  ts_arena arena;
  TS_VEC(ts_line) lines;
  TS_VEC(const list *) lists;
  ts_map line_numbers, list_numbers; /* from bytes, and from numbers of lines, to a number + 1 */
};

ts_status ts_places_create(ts_places **out) {
  TS_TRY(TS_NEW(out));
  atomic_init(&(*out)->refs, 1);
  pthread_mutex_init(&(*out)->lock, NULL);
  ts_arena_init(&(*out)->arena);
  return TS_SUCCESS;
}

ts_places *ts_places_retain(ts_places *p) {
  if (p) atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
  return p;
}

void ts_places_release(ts_places *p) {
  if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
  TS_VEC_FREE(&p->lines);
  TS_VEC_FREE(&p->lists);
  ts_map_deinit(&p->line_numbers);
  ts_map_deinit(&p->list_numbers);
  ts_arena_deinit(&p->arena);
  pthread_mutex_destroy(&p->lock);
  ts_free(p);
}

/* ---- under the lock ---- */

static ts_status number_of_line(ts_places *p, const void *data, size_t size, uint32_t *out) {
  void *copy;
  uintptr_t known = (uintptr_t)ts_map_get(&p->line_numbers, data, size);
  *out = (uint32_t)(known ? known - 1 : p->lines.count);
  if (known) return TS_SUCCESS;
  TS_TRY(ts_arena_copy(&p->arena, data, size, &copy));
  TS_TRY(TS_VEC_RESERVE(&p->lines, p->lines.count + 1));
  TS_TRY(ts_map_put(&p->line_numbers, data, size, (void *)((uintptr_t)*out + 1)));
  p->lines.data[p->lines.count++] = (ts_line){copy, size};
  return TS_SUCCESS;
}

static ts_status number_of_list(ts_places *p, const list *l, ts_place *out) {
  void *copy;
  size_t size = l->count * sizeof *l->lines;
  *out = (ts_place)(uintptr_t)ts_map_get(&p->list_numbers, l->lines, size);
  if (*out) return TS_SUCCESS;
  TS_TRY(ts_arena_copy(&p->arena, l, sizeof *l, &copy));
  TS_TRY(TS_VEC_RESERVE(&p->lists, p->lists.count + 1));
  TS_TRY(ts_map_put(&p->list_numbers, l->lines, size, (void *)((uintptr_t)p->lists.count + 1)));
  p->lists.data[p->lists.count++] = copy;
  *out = (ts_place)p->lists.count;
  return TS_SUCCESS;
}

static void add_line(list *l, uint32_t line) {
  for (uint32_t i = 0; i < l->count; i++)
    if (l->lines[i] == line) return;
  if (l->count < TS_MOST_LINES) l->lines[l->count++] = line;
}

static const list *list_of(const ts_places *p, ts_place place) {
  static const list none = {0};
  return place && place <= p->lists.count ? p->lists.data[place - 1] : &none;
}

static ts_status add(ts_places *p, const void *data, size_t size, ts_place *out) {
  list one = {.count = 1};
  TS_TRY(number_of_line(p, data, size, &one.lines[0]));
  return number_of_list(p, &one, out);
}

static ts_status join(ts_places *p, ts_place a, ts_place b, ts_place *out) {
  list both = *list_of(p, a);
  const list *more = list_of(p, b);
  for (uint32_t i = 0; i < more->count; i++) add_line(&both, more->lines[i]);
  return number_of_list(p, &both, out);
}

/* ---- with the lock ---- */

ts_status ts_places_add(ts_places *p, const void *data, size_t size, ts_place *out) {
  pthread_mutex_lock(&p->lock);
  ts_status status = add(p, data, size, out);
  pthread_mutex_unlock(&p->lock);
  return status;
}

ts_status ts_places_join(ts_places *p, ts_place a, ts_place b, ts_place *out) {
  *out = a ? a : b;
  if (!a || !b || a == b) return TS_SUCCESS;
  pthread_mutex_lock(&p->lock);
  ts_status status = join(p, a, b, out);
  pthread_mutex_unlock(&p->lock);
  return status;
}

size_t ts_places_lines(ts_places *p, ts_place place, ts_line out[TS_MOST_LINES]) {
  pthread_mutex_lock(&p->lock);
  const list *l = list_of(p, place);
  for (uint32_t i = 0; i < l->count; i++) out[i] = p->lines.data[l->lines[i]];
  pthread_mutex_unlock(&p->lock);
  return l->count;
}
