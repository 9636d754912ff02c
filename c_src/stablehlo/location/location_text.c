/* Locations in the text of MLIR. */
#include "stablehlo/location/location.h"

/* Locations that are written inside of one another; JAX refers to others by their names. */
enum { MOST_LEVELS = 16 };

static ts_status read_one(mlir_parser *p, int depth, const mlir_location **out);

/* A location that has a name in the text: #loc3. */
static ts_status find_named(const mlir_parser *p, mlir_token name, mlir_location **out) {
  *out = ts_map_get(p->locations, name.text, name.length);
  if (*out) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(p->arena, 1, out));
  return ts_map_put(p->locations, name.text, name.length, *out);
}

/* "model.py":12:4, a range of it, or "name"(location). */
static ts_status read_string(mlir_parser *p, int depth, mlir_location *made) {
  const mlir_token text = p->token;
  int64_t line;
  mlir_advance(p);
  if (!mlir_accept(p, ":")) {
    made->name = text;
    return mlir_accept(p, "(") ? read_one(p, depth, &made->inner) : TS_SUCCESS;
  }
  const mlir_attr number = {.kind = MLIR_ATTR_NUMBER, .token = p->token};
  if (p->token.kind != MLIR_NUMBER || !ts_status_consume_ok(mlir_attr_int(&number, &line)) || line < 0)
    return TS_SUCCESS;
  made->file = text;
  made->line = (uint64_t)line;
  return TS_SUCCESS;
}

/* callsite(called at caller) */
static ts_status read_call(mlir_parser *p, int depth, mlir_location *made) {
  if (!mlir_accept(p, "(")) return TS_SUCCESS;
  TS_TRY(read_one(p, depth, &made->inner));
  return mlir_accept(p, "at") ? read_one(p, depth, &made->others) : TS_SUCCESS;
}

/* fused<metadata>[location, location, ...] */
static ts_status read_several(mlir_parser *p, int depth, mlir_location *made) {
  if (mlir_accept(p, "<") && !ts_status_consume_ok(mlir_skip_angles(p, &(mlir_attr){0}))) return TS_SUCCESS;
  if (!mlir_accept(p, "[")) return TS_SUCCESS;
  TS_TRY(read_one(p, depth, &made->inner));
  while (mlir_accept(p, ",")) {
    mlir_location *next;
    TS_TRY(TS_ARENA_ARRAY(p->arena, 1, &next));
    made->others = next;
    made = next;
    TS_TRY(read_one(p, depth, &made->inner));
  }
  return TS_SUCCESS;
}

static ts_status read_one(mlir_parser *p, int depth, const mlir_location **out) {
  mlir_location *made;
  *out = NULL;
  if (depth == MOST_LEVELS) return TS_SUCCESS;
  if (p->token.kind == MLIR_HASH) {
    TS_TRY(find_named(p, p->token, &made));
    mlir_advance(p);
  } else {
    TS_TRY(TS_ARENA_ARRAY(p->arena, 1, &made));
    if (p->token.kind == MLIR_STRING)
      TS_TRY(read_string(p, depth + 1, made));
    else if (mlir_accept(p, "callsite"))
      TS_TRY(read_call(p, depth + 1, made));
    else if (mlir_accept(p, "fused"))
      TS_TRY(read_several(p, depth + 1, made));
    else if (!mlir_accept(p, "unknown"))
      mlir_accept(p, "?");
  }
  mlir_accept(p, ")");
  *out = made;
  return TS_SUCCESS;
}

ts_status mlir_read_location(const mlir_parser *p, const mlir_location **out) {
  mlir_parser ahead = *p;
  *out = NULL;
  if (!p->locations || !mlir_accept(&ahead, "loc") || !mlir_accept(&ahead, "(")) return TS_SUCCESS;
  return read_one(&ahead, 0, out);
}

ts_status mlir_define_location(const mlir_parser *p, mlir_token name) {
  mlir_location *named;
  const mlir_location *location;
  TS_TRY(mlir_read_location(p, &location));
  if (!location) return TS_SUCCESS;
  TS_TRY(find_named(p, name, &named));
  named->inner = location;
  return TS_SUCCESS;
}
