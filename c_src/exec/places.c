#include "exec/places.h"

#include "base/deep.h"
#include "exec/builder.h"

#include <string.h>

/* ---- building ---- */

static ts_status make_room(ts_builder *b, int32_t count) {
  TS_TRY(TS_VEC_RESERVE(&b->places, (size_t)count));
  while (b->places.count < (size_t)count) b->places.data[b->places.count++] = 0;
  return TS_SUCCESS;
}

ts_status ts_builder_place(ts_builder *b, int32_t first, ts_place place) {
  if (!place) return TS_SUCCESS;
  TS_TRY(make_room(b, b->position));
  for (int32_t i = first; i < b->position; i++)
    if (!b->places.data[i]) b->places.data[i] = place;
  return TS_SUCCESS;
}

ts_status ts_builder_place_more(ts_builder *b, int32_t position, ts_place place) {
  if (!place) return TS_SUCCESS;
  TS_TRY(make_room(b, b->position));
  return ts_places_join(b->graph->places, b->places.data[position], place, &b->places.data[position]);
}

/* Recursion is bounded by TS_MAX_LEVELS. */
static ts_status join_op(const ts_graph *graph, const ts_op *op, ts_place *out) {
  ts_region_id held[2];
  size_t count = ts_op_regions(op, held);
  TS_TRY(ts_places_join(graph->places, *out, op->place, out));
  for (size_t k = 0; k < count; k++) {
    const ts_region *region = ts_graph_region(graph, held[k]);
    for (size_t i = 0; i < region->ops.count; i++) TS_TRY(join_op(graph, ts_graph_op(graph, region->ops.data[i]), out));
  }
  return TS_SUCCESS;
}

ts_status ts_builder_place_inside(const ts_builder *b, const ts_op *op, ts_place *out) {
  *out = 0;
  return b->graph->places ? join_op(b->graph, op, out) : TS_SUCCESS;
}

static ts_status make_places(ts_places *table, const ts_place *of, size_t count, ts_step_places **out) {
  TS_TRY(ts_alloc(sizeof(**out) + count * sizeof(*of), (void **)out));
  **out = (ts_step_places){.table = ts_places_retain(table), .count = count};
  if (count) memcpy((*out)->of, of, count * sizeof(*of));
  return TS_SUCCESS;
}

ts_status ts_builder_keep_places(ts_builder *b) {
  ts_step_places *places;
  if (!b->graph->places) return TS_SUCCESS;
  TS_TRY(make_places(b->graph->places, b->places.data, b->places.count, &places));
  atomic_store(&b->exe->places, places);
  return TS_SUCCESS;
}

void ts_step_places_free(ts_step_places *places) {
  if (!places) return;
  ts_places_release(places->table);
  ts_free(places);
}

/* ---- reading ---- */

typedef struct found {
  const ts_step_places *places;
  ts_place place;
} found;

static ts_status join_step(found *f, const ts_step *step);

static ts_status join_block(found *f, const ts_block *block) {
  for (size_t i = 0; i < block->steps.count; i++) TS_TRY(join_step(f, &block->steps.data[i]));
  return TS_SUCCESS;
}

/* With the steps inside of it: those of a native loop have few levels. */
static ts_status join_step(found *f, const ts_step *step) {
  size_t at = (size_t)step->position;
  if (at < f->places->count) TS_TRY(ts_places_join(f->places->table, f->place, f->places->of[at], &f->place));
  if (step->kind == TS_STEP_WHILE) {
    TS_TRY(join_block(f, &step->loop->condition));
    TS_TRY(join_block(f, &step->loop->body));
  }
  for (int k = 0; k < 2 && step->kind == TS_STEP_COND; k++) TS_TRY(join_block(f, &step->branches[k]));
  return TS_SUCCESS;
}

size_t ts_step_lines(const ts_executable *exe, const ts_step *step, ts_line out[TS_MOST_LINES]) {
  found f = {.places = atomic_load(&exe->places)};
  if (!f.places) return 0;
  if (!ts_step_is_native(step))
    f.place = (size_t)step->position < f.places->count ? f.places->of[step->position] : 0;
  else if (!ts_status_consume_ok(join_step(&f, step)))
    return 0;
  return ts_places_lines(f.places->table, f.place, out);
}

bool ts_executable_has_places(const ts_executable *exe) { return atomic_load(&exe->places) != NULL; }

/* ---- the same program, compiled again ---- */

static bool same_blocks(const ts_block *a, const ts_block *b);

static bool same_steps(const ts_step *a, const ts_step *b) {
  if (a->kind != b->kind || a->code != b->code || a->position != b->position ||
      ts_step_is_native(a) != ts_step_is_native(b) || ts_step_has_epilogue(a) != ts_step_has_epilogue(b))
    return false;
  if (a->kind == TS_STEP_WHILE)
    return same_blocks(&a->loop->condition, &b->loop->condition) && same_blocks(&a->loop->body, &b->loop->body);
  return a->kind != TS_STEP_COND ||
         (same_blocks(&a->branches[0], &b->branches[0]) && same_blocks(&a->branches[1], &b->branches[1]));
}

static bool same_blocks(const ts_block *a, const ts_block *b) {
  if (a->steps.count != b->steps.count) return false;
  for (size_t i = 0; i < a->steps.count; i++)
    if (!same_steps(&a->steps.data[i], &b->steps.data[i])) return false;
  return true;
}

typedef struct comparison {
  const ts_executable *a, *b;
  bool same;
} comparison;

static ts_status compare(void *context) {
  comparison *c = context;
  c->same = same_blocks(&c->a->root, &c->b->root);
  return TS_SUCCESS;
}

ts_status ts_executable_take_places(ts_executable *exe, const ts_executable *from, bool *out_taken) {
  comparison c = {exe, from, false};
  ts_step_places *places, *none = NULL;
  const ts_step_places *given = atomic_load(&from->places);
  *out_taken = false;
  if (!given || exe->levels != from->levels) return TS_SUCCESS;
  TS_TRY(ts_deep_call(exe->levels, compare, &c));
  if (!c.same) return TS_SUCCESS;
  TS_TRY(make_places(given->table, given->of, given->count, &places));
  if (!atomic_compare_exchange_strong(&exe->places, &none, places)) ts_step_places_free(places);
  *out_taken = true;
  return TS_SUCCESS;
}
