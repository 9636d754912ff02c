/* Locations as places of the graph's ops. */
#include "stablehlo/location/location.h"

#include "base/text.h"

/* Locations that are looked at for one op, and the bytes of a name. Locations may refer to themselves. */
enum { MOST_VISITED = 64, MOST_BYTES = 4096 };

/* The first line inside, which is the innermost call, with its function; else the innermost name. */
static mlir_location find_line(const mlir_location *from) {
  const mlir_location *left[MOST_VISITED] = {from};
  mlir_location found = {0};
  size_t count = 1;
  for (int visited = 0; count && visited < MOST_VISITED; visited++) {
    const mlir_location *at = left[--count];
    if (at->name.length) found.name = at->name;
    if (at->file.length) {
      found.file = at->file;
      found.line = at->line;
      return found;
    }
    if (at->others && count < MOST_VISITED) left[count++] = at->others;
    if (at->inner && count < MOST_VISITED) left[count++] = at->inner;
  }
  return found;
}

/* A byte 0, the line and the size of the file's name as 4 bytes each, the names of file and function. */
static ts_status add(ts_places *places, const mlir_location *found, ts_place *out) {
  ts_text text = {0}, file = {0};
  const size_t name = found->name.length < MOST_BYTES ? found->name.length : MOST_BYTES;
  make_append_plain(found->file, 0, found->file.length < MOST_BYTES ? found->file.length : MOST_BYTES, &file);
  const uint32_t numbers[2] = {found->line < UINT32_MAX ? (uint32_t)found->line : UINT32_MAX, (uint32_t)file.length};
  ts_text_append_n(&text, "", 1);
  ts_text_append_n(&text, (const char *)numbers, sizeof numbers);
  ts_text_append_n(&text, file.data, file.length);
  make_append_plain(found->name, 0, name, &text);
  ts_status status = file.failed || text.failed ? ts_error_no_memory() : TS_SUCCESS;
  if (!status) status = ts_places_add(places, text.data, text.length, out);
  ts_text_deinit(&file);
  ts_text_deinit(&text);
  return status;
}

/* What was found for a location, for the next op that has it. In the arena. */
typedef struct located {
  mlir_location found;
  ts_place place; /* 0: it has no place yet */
} located;

static ts_status look_at(make_state *r, const mlir_location *location, located **out) {
  *out = ts_map_get(&r->located, &location, sizeof location);
  if (*out) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(&r->arena, 1, out));
  (*out)->found = find_line(location);
  return ts_map_put(&r->located, &location, sizeof location, *out);
}

ts_status make_set_place(make_state *r, const mlir_op *op) {
  located own = {0}, *at = &own;
  if (!r->graph->places) return TS_SUCCESS;
  if (op->location) {
    TS_TRY(look_at(r, op->location, &at));
  } else if (op->name.line) {
    own.found.file = (mlir_token){.kind = MLIR_WORD, .text = "stablehlo", .length = 9};
    own.found.line = op->name.line;
  }
  if (!at->found.file.length && (!at->found.name.length || r->has_line)) return TS_SUCCESS;
  r->has_line = at->found.file.length;
  if (!at->place) TS_TRY(add(r->graph->places, &at->found, &at->place));
  r->graph->place = at->place;
  return TS_SUCCESS;
}
