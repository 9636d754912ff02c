#include "nif/nif_expr_source.h"

#include "base/map.h"

static struct { ERL_NIF_TERM data_, struct_, state_; } atom;

void ts_expr_sources_init(ErlNifEnv *env) {
  atom.data_ = enif_make_atom(env, "data");
  atom.struct_ = enif_make_atom(env, "__struct__");
  atom.state_ = enif_make_atom(env, "state");
}

void ts_expr_sources_deinit(ts_expr_sources *sources) { ts_expr_table_deinit(&sources->by_leaf); }

/* Gets the parts that identify a tensor: its backend's struct and state. */
static bool get_state(ErlNifEnv *env, ERL_NIF_TERM tensor, ERL_NIF_TERM *out_struct, ERL_NIF_TERM *out_state) {
  ERL_NIF_TERM data;
  return enif_get_map_value(env, tensor, atom.data_, &data) &&
         enif_get_map_value(env, data, atom.struct_, out_struct) &&
         enif_get_map_value(env, data, atom.state_, out_state);
}

static uint32_t folded(uint64_t hash) { return (uint32_t)(hash ^ hash >> 32); }

/* False for a tensor that cannot be compared with others. */
static bool hash_leaf(ErlNifEnv *env, ERL_NIF_TERM leaf, uint32_t form, uint32_t *out) {
  ERL_NIF_TERM name, state;
  ErlNifBinary bytes;
  unsigned position;
  if (enif_get_uint(env, leaf, &position)) {
    *out = folded(ts_expr_mix(0, position));
    return true;
  }
  if (!enif_is_map(env, leaf)) {
    *out = (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, leaf, 0);
    return true;
  }
  if (!get_state(env, leaf, &name, &state)) return false;
  *out = folded(enif_inspect_binary(env, state, &bytes) ? ts_hash64(bytes.data, bytes.size)
                                                        : enif_hash(ERL_NIF_INTERNAL_HASH, state, 0));
  *out += form + 1;
  return true;
}

static bool is_same(ErlNifEnv *env, ERL_NIF_TERM a, ERL_NIF_TERM b) {
  ERL_NIF_TERM name_a, name_b, state_a, state_b;
  if (a == b) return true;
  if (!enif_is_map(env, a) || !enif_is_map(env, b)) return enif_is_identical(a, b);
  return get_state(env, a, &name_a, &state_a) && get_state(env, b, &name_b, &state_b) && name_a == name_b &&
         enif_is_identical(state_a, state_b);
}

ts_status ts_expr_check_param(const ts_expr *e, uint32_t param, uint32_t form) {
  const ts_type *a = &e->forms.data[e->params.data[param]], *b = &e->forms.data[form];
  if (e->params.data[param] == form) return TS_SUCCESS;
  return ts_error(TS_INTERNAL, "parameter %u is %s and %s", param, TS_SHAPE_STR(a->dtype, &a->shape),
                  TS_SHAPE_STR(b->dtype, &b->shape));
}

ts_status ts_expr_source_add(ERL_NIF_TERM leaf, uint32_t form, ts_expr *e, ts_expr_terms *terms, uint32_t *out) {
  *out = (uint32_t)e->params.count;
  TS_TRY(TS_VEC_PUSH(&e->params, form));
  return TS_VEC_PUSH(&terms->sources, leaf);
}

ts_status ts_expr_source(ts_expr_sources *x, ERL_NIF_TERM leaf, uint32_t form, ts_expr *e, ts_expr_terms *terms,
                         uint32_t *out) {
  uint32_t hash = 0;
  bool has_like = hash_leaf(x->env, leaf, form, &hash);
  for (size_t at = hash; has_like && (*out = ts_expr_table_next(&x->by_leaf, hash, &at)) != TS_NO_ID;) {
    if (!is_same(x->env, terms->sources.data[*out], leaf)) continue;
    if (!enif_is_map(x->env, leaf)) return ts_expr_check_param(e, *out, form);
    if (e->params.data[*out] == form) return TS_SUCCESS;
  }
  TS_TRY(ts_expr_source_add(leaf, form, e, terms, out));
  return has_like ? ts_expr_table_add(&x->by_leaf, hash, *out) : TS_SUCCESS;
}
