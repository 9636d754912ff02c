/* Names, and the digests of terms without parts. */
#include "nif/digest/nif_digest_internal.h"

#include <string.h>

static ts_hash_key key;
static uint32_t salts[2];
uint64_t ts_digest_tags[TS_TAGS];

/* ---- names ---- */

/* Once for the process: digests stay the same when the library is loaded again. */
void ts_digest_plain_init(void) {
  if (ts_digest_tags[0]) return;
  ts_hash_key_init(&key);
  for (unsigned i = 0; i < TS_TAGS; i++) ts_digest_tags[i] = ts_hash_keyed(&key, &i, sizeof i).hi | 1;
  memcpy(salts, key.bytes, sizeof salts);
}

ts_hash128 ts_digest_of_bytes(ts_digest_tag tag, const void *data, size_t size) {
  ts_hash128 name = ts_hash_keyed(&key, data, size);
  name.hi ^= ts_digest_tags[tag];
  return name;
}

ts_hash128 ts_digest_name(const ts_hash128 *names, size_t count) {
  return ts_hash_keyed(&key, names, count * sizeof *names);
}

ts_hash128 ts_digest_name_of_pairs(const ts_hash128 *names, size_t count) {
  ts_hash128 all[2] = {names[0]};
  for (size_t i = 1; i < count; i += 2) {
    ts_hash128 pair = ts_digest_name(names + i, 2);
    all[1].hi += pair.hi + __builtin_add_overflow(all[1].lo, pair.lo, &all[1].lo);
  }
  return ts_digest_name(all, 2);
}

ts_hash128 ts_digest_name_of_function(ts_hash128 code) {
  ts_hash128 names[2] = {ts_digest_plain_name(TS_TAG_FUNCTION, 0), code};
  return ts_digest_name(names, 2);
}

/* ---- numbers and bytes ---- */

ts_status ts_digest_other(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_part *out, size_t *out_size) {
  ErlNifBinary bytes;
  if (!enif_term_to_binary(env, term, &bytes)) return ts_error_no_memory();
  *out_size = bytes.size;
  *out = ts_digest_closed(ts_digest_of_bytes(TS_TAG_OTHER, bytes.data, bytes.size), bytes.size / 8 + 2);
  enif_release_binary(&bytes);
  return TS_SUCCESS;
}

ts_status ts_digest_integer(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_part *out) {
  ErlNifSInt64 integer;
  ErlNifUInt64 natural;
  size_t size;
  if (enif_get_int64(env, term, &integer))
    *out = ts_digest_closed(ts_digest_plain_name(TS_TAG_INTEGER, (uint64_t)integer), 0);
  else if (enif_get_uint64(env, term, &natural))
    *out = ts_digest_closed(ts_digest_plain_name(TS_TAG_UNSIGNED, natural), 2);
  else
    return ts_digest_other(env, term, out, &size);
  return TS_SUCCESS;
}

ts_status ts_digest_float(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_part *out) {
  double number;
  uint64_t bits;
  if (!enif_get_double(env, term, &number)) return ts_nif_expected(env, "a float", term);
  memcpy(&bits, &number, sizeof bits);
  *out = ts_digest_closed(ts_digest_plain_name(TS_TAG_FLOAT, bits), 2);
  return TS_SUCCESS;
}

ts_status ts_digest_bits(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_part *out, size_t *out_size) {
  ErlNifBinary bytes;
  if (!enif_inspect_binary(env, term, &bytes)) return ts_digest_other(env, term, out, out_size);
  *out_size = bytes.size;
  *out = ts_digest_closed(ts_digest_of_bytes(TS_TAG_BINARY, bytes.data, bytes.size),
                          bytes.size < TS_DIGEST_LARGE_BINARY ? bytes.size / 8 + 3 : 8);
  return TS_SUCCESS;
}

/* The VM offers the external form of a reference, which takes longer to make than the rest of a node of Nx takes to
 * read, and hashes of 32 bits. Two hashes with different salts have the collision rate of one of 64 bits. */
void ts_digest_reference(ERL_NIF_TERM ref, ts_digest_part *out) {
  uint32_t low = (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, ref, salts[0]);
  uint32_t high = (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, ref, salts[1]);
  *out = ts_digest_closed(ts_digest_plain_name(TS_TAG_REFERENCE, (uint64_t)high << 32 | low), 4);
}
