/* The pairs of small maps. Calls of the VM's iterator would take most of the time for a node of Nx. An iterator holds
 * pointers to the map's arrays of keys and values, which erl_nif.h does not document. So they are read directly only if
 * they have the expected contents: this is checked at start for each size, and again for each map. */
#include "nif/digest/nif_digest_internal.h"

static bool has_arrays;

static void copy_pairs(ErlNifEnv *env, ErlNifMapIterator *at, ERL_NIF_TERM *keys, ERL_NIF_TERM *values) {
  for (; enif_map_iterator_get_pair(env, at, keys, values); enif_map_iterator_next(env, at)) keys++, values++;
}

void ts_digest_get_pairs(ErlNifEnv *env, ErlNifMapIterator *at, size_t size, ts_digest_pairs *out) {
  ERL_NIF_TERM key, value;
  out->keys = at->u.flat.ks;
  out->values = at->u.flat.vs;
  if (has_arrays && enif_map_iterator_get_pair(env, at, &key, &value) && key == *out->keys && value == *out->values)
    return;
  out->keys = out->copies;
  out->values = out->copies + size;
  copy_pairs(env, at, out->copies, out->copies + size);
}

/* ---- whether there are arrays ---- */

static bool is_as_asked(ErlNifEnv *env, ERL_NIF_TERM map, size_t size) {
  ErlNifMapIterator at;
  ERL_NIF_TERM key, value;
  bool is = true;
  if (!enif_map_iterator_create(env, map, &at, ERL_NIF_MAP_ITERATOR_FIRST)) return false;
  const ERL_NIF_TERM *keys = at.u.flat.ks, *values = at.u.flat.vs;
  for (size_t i = 0; is && i < size; i++, enif_map_iterator_next(env, &at))
    is = enif_map_iterator_get_pair(env, &at, &key, &value) && key == keys[i] && value == values[i];
  enif_map_iterator_destroy(env, &at);
  return is;
}

void ts_digest_map_init(ErlNifEnv *env) {
  ERL_NIF_TERM keys[TS_DIGEST_FEW_PAIRS], values[TS_DIGEST_FEW_PAIRS], map;
  has_arrays = true;
  for (size_t size = 1; has_arrays && size <= TS_DIGEST_FEW_PAIRS; size++) {
    keys[size - 1] = enif_make_int(env, (int)(size * 37 % 101));
    values[size - 1] = enif_make_int(env, (int)size);
    has_arrays = enif_make_map_from_arrays(env, keys, values, size, &map) && is_as_asked(env, map, size);
  }
}
