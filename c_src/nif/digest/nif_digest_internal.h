/* The interface between nif_digest_walk.c, which walks terms, and nif_digest.c, which completes the names of terms that
 * hold functions. */
#ifndef TS_NIF_DIGEST_INTERNAL_H
#define TS_NIF_DIGEST_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "nif/digest/nif_digest.h"

enum { TS_DIGEST_CLOSED = UINT32_MAX, TS_DIGEST_LARGE_BINARY = 65 };

/* The digest and size of a term. */
typedef struct ts_digest_part {
  ts_hash128 name;
  uint64_t words; /* size of a copy that shares large binaries only */
  uint32_t open;  /* CLOSED, or the number of the open term or function that must be named first */
} ts_digest_part;

/* A name that an open term lacks: names[at] is the name of the open term or function number `open`. */
typedef struct ts_digest_hole {
  uint32_t at;
  uint32_t open;
} ts_digest_hole;

/* An open term: a function, or a term that holds one. The digest of a function is the digest of its code and
 * environment: only Erlang can read these. */
typedef enum ts_digest_kind { TS_DIGEST_TERM, TS_DIGEST_PAIRS, TS_DIGEST_FUNCTION } ts_digest_kind;

typedef struct ts_digest_open {
  ts_digest_kind kind;
  size_t first, count; /* among `names`; of a function its number */
  size_t hole, hole_count;
  ts_digest_part part; /* until it is closed: the words without the holes' words */
} ts_digest_open;

typedef enum ts_digest_mode {
  TS_DIGEST_PLAIN,
  TS_DIGEST_TENSORS, /* the core's tensors count by type, shape and identity */
  TS_DIGEST_FORMS    /* Nx's tensors count by type and shape */
} ts_digest_mode;

/* The state of a digest. Terms are read in rounds: each round reads code and environment of the functions that the
 * round before it found. Terms may move between two rounds, so nothing here points to them. */
typedef struct ts_digest {
  ts_digest_mode mode;
  TS_VEC(ts_digest_open) opens; /* each after its dependencies in its round */
  TS_VEC(ts_hash128) names;
  TS_VEC(ts_digest_hole) holes;
  TS_VEC(ts_digest_part) functions; /* by number: the answer of Erlang, read in the next round */
  TS_VEC(size_t) rounds;            /* the first of `opens` of each round from the second on */
  size_t answered;                  /* of the functions */
  ts_digest_part root;
  uint64_t bytes; /* of large binaries */
  ts_map tensors; /* by name: their numbers from 1 */
  TS_VEC(ts_hash128) tensor_names;
} ts_digest;

/* ---- the walk */

typedef struct ts_digest_walk ts_digest_walk;

ts_status ts_digest_walk_take(ErlNifEnv *env, ts_digest *digest, ts_digest_walk **out);
void ts_digest_walk_give(ts_digest_walk *walk);
/* Frees the walks that are kept for later calls. */
void ts_digest_walk_forget(void);
/* Reads a term. Fails with *out_long set when the work is more than `limit`: a unit for each term, several for a large
 * one. */
ts_status ts_digest_walk_term(ts_digest_walk *walk, ERL_NIF_TERM term, size_t limit, bool *out_long,
                              ts_digest_part *out);
/* The results of this walk: functions by number, from `answered` on, and new tensors. */
ERL_NIF_TERM ts_digest_walk_functions(const ts_digest_walk *walk);
size_t ts_digest_walk_function_count(const ts_digest_walk *walk);
ERL_NIF_TERM ts_digest_walk_tensors(const ts_digest_walk *walk);
size_t ts_digest_walk_work(const ts_digest_walk *walk);

void ts_digest_walk_init(ErlNifEnv *env);

/* ---- names */

/* Which kind of term a name is of. */
typedef enum ts_digest_tag {
  TS_TAG_ATOM,
  TS_TAG_NIL,
  TS_TAG_INTEGER,
  TS_TAG_UNSIGNED,
  TS_TAG_FLOAT,
  TS_TAG_REFERENCE,
  TS_TAG_BINARY,
  TS_TAG_OTHER,
  TS_TAG_TUPLE,
  TS_TAG_LIST,
  TS_TAG_MAP,
  TS_TAG_STRUCT,
  TS_TAG_NODE,
  TS_TAG_PAIRS,
  TS_TAG_TENSOR,
  TS_TAG_FORM,
  TS_TAG_FUNCTION,
  TS_TAGS
} ts_digest_tag;

void ts_digest_plain_init(void);

extern uint64_t ts_digest_tags[TS_TAGS];

/* The value itself, and a tag that no hash has. */
static inline ts_hash128 ts_digest_plain_name(ts_digest_tag tag, uint64_t value) {
  return (ts_hash128){value, ts_digest_tags[tag]};
}

ts_hash128 ts_digest_of_bytes(ts_digest_tag tag, const void *data, size_t size);
/* The name of a term from its head and the names of its parts. */
ts_hash128 ts_digest_name(const ts_hash128 *names, size_t count);
/* The same for pairs of names, whose order does not matter. */
ts_hash128 ts_digest_name_of_pairs(const ts_hash128 *names, size_t count);
ts_hash128 ts_digest_name_of_function(ts_hash128 code);

/* ---- terms without parts */

ts_status ts_digest_integer(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_part *out);
ts_status ts_digest_float(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_part *out);
void ts_digest_reference(ERL_NIF_TERM ref, ts_digest_part *out);
ts_status ts_digest_bits(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_part *out, size_t *out_size);
/* By the external term format, for terms that no other function reads. */
ts_status ts_digest_other(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_part *out, size_t *out_size);

/* ---- maps */

enum { TS_DIGEST_FEW_PAIRS = 32 };

typedef struct ts_digest_pairs {
  const ERL_NIF_TERM *keys, *values;
  ERL_NIF_TERM copies[2 * TS_DIGEST_FEW_PAIRS];
} ts_digest_pairs;

void ts_digest_map_init(ErlNifEnv *env);
/* The pairs of a small map, from an iterator at its first pair. */
void ts_digest_get_pairs(ErlNifEnv *env, ErlNifMapIterator *at, size_t size, ts_digest_pairs *out);

static inline ts_digest_part ts_digest_closed(ts_hash128 name, uint64_t words) {
  return (ts_digest_part){name, words, TS_DIGEST_CLOSED};
}

static inline uint64_t ts_digest_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#endif
