/* Traversal of terms, without recursion: a stack of frames for the terms that are being read, and a stack of the names
 * (hashes) of their parts. Terms do not move during a call, so a term that occurs again is found by its address, the
 * word that represents it. */
#include "nif/digest/nif_digest_internal.h"

#include <stdatomic.h>
#include <string.h>

static struct { ERL_NIF_TERM nil, struct_, nx_tensor, type, shape, data, args, id; } atom;

/* The tag of a part that is still a term; no other tag is 0. */
enum { UNREAD = 0 };

enum { RECENT_ATOMS = 256, RECENT_KEYS = 16, RECENT_TUPLES = 64, LIST_PART = 8, PLAIN_TUPLE = 4 };

/* A term whose parts, from `at` to `end` among the names, are being read. */
typedef struct frame {
  ERL_NIF_TERM term;
  ts_digest_kind kind;
  size_t first, at, end;
  size_t hole;
  uint64_t words;
} frame;

/* A slot is empty unless it has the generation of the walk. */
typedef struct seen {
  ERL_NIF_TERM term;
  uint32_t generation, part;
} seen;

/* The keys of a small map, all of them atoms. `data`, `args` and `id` are indices of these keys; `size` when absent. */
typedef struct map_keys {
  bool are_known;
  size_t size, data, args, id;
  ts_hash128 name;
  ERL_NIF_TERM keys[TS_DIGEST_FEW_PAIRS];
} map_keys;

/* A short tuple of atoms and small integers, whose words have the same meaning in every walk. */
typedef struct plain_tuple {
  bool is_known;
  size_t count;
  ERL_NIF_TERM elements[PLAIN_TUPLE];
  ts_hash128 name;
  ERL_NIF_TERM term; /* the last such tuple that any walk read */
} plain_tuple;

struct ts_digest_walk {
  ErlNifEnv *env;
  ts_digest *digest;
  size_t work, limit;
  bool is_long;
  uint32_t generation;
  ERL_NIF_TERM atoms[RECENT_ATOMS];  /* a cache of words that are atoms, or the empty list */
  map_keys keys[RECENT_KEYS];        /* a cache, valid for later walks as atoms are */
  plain_tuple tuples[RECENT_TUPLES]; /* likewise */
  seen *seen;
  size_t seen_capacity;
  TS_VEC(ts_digest_part) parts; /* of the terms in `seen` */
  TS_VEC(frame) frames;
  TS_VEC(ts_hash128) names;
  TS_VEC(ts_digest_hole) holes; /* of the frames */
  TS_VEC(ERL_NIF_TERM) functions;
  TS_VEC(ERL_NIF_TERM) tensors;
};

typedef struct ts_digest_walk walk;

void ts_digest_walk_init(ErlNifEnv *env) {
  atom.nil = enif_make_list(env, 0);
  atom.struct_ = enif_make_atom(env, "__struct__");
  atom.nx_tensor = enif_make_atom(env, "Elixir.Nx.Tensor");
  atom.type = enif_make_atom(env, "type");
  atom.shape = enif_make_atom(env, "shape");
  atom.data = enif_make_atom(env, "data");
  atom.args = enif_make_atom(env, "args");
  atom.id = enif_make_atom(env, "id");
}

/* ---- terms that occur again ---- */

/* Terms that were allocated together have neighbouring slots; the product spreads distant addresses. */
static inline size_t slot_of(const walk *w, ERL_NIF_TERM term) {
  return ((term >> 4) + (term >> 16) * UINT64_C(0x9E3779B97F4A7C15)) & (w->seen_capacity - 1);
}

static inline seen *find(const walk *w, ERL_NIF_TERM term) {
  for (size_t i = slot_of(w, term);; i = (i + 1) & (w->seen_capacity - 1)) {
    seen *s = &w->seen[i];
    if (s->generation != w->generation || s->term == term) return s;
  }
}

static ts_status grow_seen(walk *w) {
  seen *old = w->seen, *grown;
  size_t count = w->seen_capacity, capacity = count ? 4 * count : 256;
  TS_TRY(TS_NEW_ARRAY(capacity, &grown));
  w->seen = grown;
  w->seen_capacity = capacity;
  for (size_t i = 0; i < count; i++)
    if (old[i].generation == w->generation) *find(w, old[i].term) = old[i];
  ts_free(old);
  return TS_SUCCESS;
}

static inline ts_status see(walk *w, ERL_NIF_TERM term, ts_digest_part part) {
  if (w->parts.count * 2 >= w->seen_capacity) TS_TRY(grow_seen(w));
  if (w->parts.count >= UINT32_MAX) return ts_error(TS_RESOURCE_EXHAUSTED, "a term of more than %u parts", UINT32_MAX);
  *find(w, term) = (seen){term, w->generation, (uint32_t)w->parts.count};
  return TS_VEC_PUSH(&w->parts, part);
}

/* ---- terms without parts ---- */

static ts_status count_work(walk *w, size_t work) {
  w->work += work;
  if (w->work <= w->limit) return TS_SUCCESS;
  w->is_long = true;
  return ts_error(TS_UNIMPLEMENTED, "the term is long");
}

static ts_status read_bits(walk *w, ERL_NIF_TERM term, ts_digest_part *out) {
  size_t size;
  TS_TRY(ts_digest_bits(w->env, term, out, &size));
  TS_TRY(count_work(w, 1 + (size >> 8)));
  if (size < TS_DIGEST_LARGE_BINARY) return TS_SUCCESS;
  w->digest->bytes = ts_digest_add(w->digest->bytes, size);
  return see(w, term, *out);
}

static ts_status read_other(walk *w, ERL_NIF_TERM term, ts_digest_part *out) {
  size_t size;
  TS_TRY(ts_digest_other(w->env, term, out, &size));
  return count_work(w, 4 + (size >> 8));
}

static ts_status read_function(walk *w, ERL_NIF_TERM term, ts_digest_part *out) {
  ts_digest *d = w->digest;
  if (d->opens.count >= TS_DIGEST_CLOSED) return ts_error(TS_RESOURCE_EXHAUSTED, "too many functions in a term");
  *out = (ts_digest_part){.open = (uint32_t)d->opens.count};
  size_t number = d->functions.count + w->functions.count;
  TS_TRY(TS_VEC_PUSH(&w->functions, term));
  TS_TRY(TS_VEC_PUSH(&d->opens, ((ts_digest_open){.kind = TS_DIGEST_FUNCTION, .first = number})));
  return see(w, term, *out);
}

/* ---- terms with parts ---- */

static inline frame *last_frame(const walk *w) { return &w->frames.data[w->frames.count - 1]; }

/* Words of atoms differ above their tag of six bits; the word of the empty list differs within the tag. */
static inline size_t slot_of_atom(ERL_NIF_TERM term) { return (term >> 6 ^ term >> 4) & (RECENT_ATOMS - 1); }

static inline bool is_known_atom(const walk *w, ERL_NIF_TERM term) { return w->atoms[slot_of_atom(term)] == term; }

static inline void know_atom(walk *w, ERL_NIF_TERM term) { w->atoms[slot_of_atom(term)] = term; }

/* Also true for the empty list: it is a constant word like an atom. */
static inline bool is_atom(walk *w, ERL_NIF_TERM term) {
  if (is_known_atom(w, term)) return true;
  if (!enif_is_atom(w->env, term) && term != atom.nil) return false;
  know_atom(w, term);
  return true;
}

static inline ts_status put_unread(walk *w, const ERL_NIF_TERM *terms, size_t count) {
  TS_TRY(TS_VEC_RESERVE(&w->names, w->names.count + count));
  ts_hash128 *names = w->names.data + w->names.count;
  for (size_t i = 0; i < count; i++) names[i] = (ts_hash128){terms[i], UNREAD};
  w->names.count += count;
  return TS_SUCCESS;
}

/* `parts` is an estimate. `head` makes the names of different terms with equal parts differ. */
static inline ts_status open_frame(walk *w, ERL_NIF_TERM term, ts_digest_tag tag, uint64_t head, size_t parts,
                                   uint64_t words) {
  frame f = {.term = term, .first = w->names.count, .hole = w->holes.count, .words = words};
  f.kind = tag == TS_TAG_PAIRS ? TS_DIGEST_PAIRS : TS_DIGEST_TERM;
  TS_TRY(count_work(w, 1 + parts / 4));
  TS_TRY(TS_VEC_PUSH(&w->frames, f));
  return TS_VEC_PUSH(&w->names, ts_digest_plain_name(tag, head));
}

/* The last `count` names are the parts of the last frame. */
static inline void set_parts(walk *w, size_t count) {
  frame *f = last_frame(w);
  f->end = w->names.count;
  f->at = f->end - count;
}

static inline ts_status open_parts(walk *w, ERL_NIF_TERM term, ts_digest_tag tag, const ERL_NIF_TERM *parts,
                                   size_t count, uint64_t words) {
  TS_TRY(open_frame(w, term, tag, count, count, words));
  TS_TRY(put_unread(w, parts, count));
  set_parts(w, count);
  return TS_SUCCESS;
}

/* {tessera, Ref, Type, Shape}, in the mode that counts tensors by their number. */
static bool is_tensor(const walk *w, const ERL_NIF_TERM *f, int count) {
  return w->digest->mode == TS_DIGEST_TENSORS && count == 4 && f[0] == ts_atom.tessera_ && enif_is_ref(w->env, f[1]);
}

static ts_status number_of(walk *w, ERL_NIF_TERM tensor, ERL_NIF_TERM ref, size_t *out) {
  ts_digest_part part;
  ts_map *tensors = &w->digest->tensors;
  size_t size;
  TS_TRY(ts_digest_other(w->env, ref, &part, &size));
  *out = (uintptr_t)ts_map_get(tensors, &part.name, sizeof part.name);
  if (*out) return TS_SUCCESS;
  *out = tensors->count + 1;
  TS_TRY(TS_VEC_PUSH(&w->tensors, tensor));
  TS_TRY(TS_VEC_PUSH(&w->digest->tensor_names, part.name));
  return ts_map_put(tensors, &part.name, sizeof part.name, (void *)(uintptr_t)*out);
}

static ts_status open_tensor(walk *w, ERL_NIF_TERM term, const ERL_NIF_TERM *f) {
  size_t number;
  TS_TRY(number_of(w, term, f[1], &number));
  TS_TRY(open_parts(w, term, TS_TAG_TENSOR, f + 2, 2, 5));
  w->names.data[w->names.count - 3].lo = number;
  return TS_SUCCESS;
}

/* Every 64-bit VM stores such an integer in the word itself; a larger one may be behind a pointer. */
static bool is_small(const walk *w, ERL_NIF_TERM term, int64_t *out) {
  ErlNifSInt64 number;
  if (!enif_get_int64(w->env, term, &number)) return false;
  *out = number;
  return number >= -(1 << 27) && number < 1 << 27;
}

static bool name_plain_tuple(const walk *w, const ERL_NIF_TERM *f, size_t count, ts_hash128 *out) {
  ts_hash128 names[PLAIN_TUPLE + 1] = {ts_digest_plain_name(TS_TAG_TUPLE, count)};
  int64_t number;
  for (size_t i = 0; i < count; i++) {
    if (is_known_atom(w, f[i]))
      names[i + 1] = ts_digest_plain_name(TS_TAG_ATOM, f[i]);
    else if (is_small(w, f[i], &number))
      names[i + 1] = ts_digest_plain_name(TS_TAG_INTEGER, (uint64_t)number);
    else
      return false;
  }
  *out = ts_digest_name(names, count + 1);
  return true;
}

static plain_tuple *recent_tuple(walk *w, const ERL_NIF_TERM *f, size_t count) {
  uint64_t mix = count;
  for (size_t i = 0; i < count; i++) mix = (mix + f[i]) * UINT64_C(0x9E3779B97F4A7C15);
  return &w->tuples[mix >> 32 & (RECENT_TUPLES - 1)];
}

static bool is_tuple_of(const plain_tuple *t, const ERL_NIF_TERM *f, size_t count) {
  if (!t->is_known || t->count != count) return false;
  for (size_t i = 0; i < count; i++)
    if (t->elements[i] != f[i]) return false;
  return true;
}

static bool find_plain_tuple(walk *w, const ERL_NIF_TERM *f, size_t count, plain_tuple **out) {
  if (count > PLAIN_TUPLE) return false;
  *out = recent_tuple(w, f, count);
  if (is_tuple_of(*out, f, count)) return true;
  plain_tuple t = {.is_known = true, .count = count};
  if (!name_plain_tuple(w, f, count, &t.name)) return false;
  memcpy(t.elements, f, count * sizeof *f);
  **out = t;
  return true;
}

/* Types and shapes need no frame. Each node of Nx has its own copy of its type, so a tuple is added to `seen` only when
 * it is read a second time. */
static ts_status read_plain_tuple(walk *w, ERL_NIF_TERM term, plain_tuple *t, ts_digest_part *out) {
  bool is_shared = t->term == term;
  t->term = term;
  *out = ts_digest_closed(t->name, t->count + 1);
  return is_shared ? see(w, term, *out) : TS_SUCCESS;
}

/* Sets *out_frame when it opens a frame. */
static ts_status read_tuple(walk *w, ERL_NIF_TERM term, ts_digest_part *out, bool *out_frame) {
  const ERL_NIF_TERM *f;
  int count;
  plain_tuple *plain;
  if (!enif_get_tuple(w->env, term, &count, &f)) return ts_nif_expected(w->env, "a tuple", term);
  *out_frame = !find_plain_tuple(w, f, (size_t)count, &plain);
  if (!*out_frame) return read_plain_tuple(w, term, plain, out);
  if (is_tensor(w, f, count)) return open_tensor(w, term, f);
  return open_parts(w, term, TS_TAG_TUPLE, f, (size_t)count, (uint64_t)count + 1);
}

/* Its parts are the first few elements and the rest of the list. */
static ts_status open_list(walk *w, ERL_NIF_TERM list) {
  ERL_NIF_TERM parts[LIST_PART + 1];
  size_t count = 0;
  ERL_NIF_TERM rest = list;
  while (count < LIST_PART && enif_get_list_cell(w->env, rest, &parts[count], &rest)) count++;
  parts[count] = rest;
  return open_parts(w, list, TS_TAG_LIST, parts, count + 1, 2 * (uint64_t)count);
}

/* A tensor of Nx, in the mode that counts it by type and shape only. */
static bool is_form(const walk *w, ERL_NIF_TERM map, ERL_NIF_TERM *out_type, ERL_NIF_TERM *out_shape) {
  ERL_NIF_TERM name;
  return w->digest->mode == TS_DIGEST_FORMS && enif_get_map_value(w->env, map, atom.struct_, &name) &&
         name == atom.nx_tensor && enif_get_map_value(w->env, map, atom.type, out_type) &&
         enif_get_map_value(w->env, map, atom.shape, out_shape);
}

typedef struct small_map {
  ts_digest_pairs pairs;
  size_t size;
  size_t data, args, id; /* as in map_keys */
  ts_hash128 name;       /* of all keys, if they are atoms */
} small_map;

static bool has_atoms(walk *w, const small_map *m) {
  for (size_t i = 0; i < m->size; i++)
    if (!is_atom(w, m->pairs.keys[i])) return false;
  return true;
}

/* The index of a key, the map's size when it is absent. */
static size_t index_of(const small_map *m, ERL_NIF_TERM key) {
  size_t i = 0;
  while (i < m->size && m->pairs.keys[i] != key) i++;
  return i;
}

static bool know_keys(walk *w, const small_map *m, map_keys *out) {
  if (!has_atoms(w, m)) return false;
  size_t bytes = m->size * sizeof *m->pairs.keys;
  *out = (map_keys){.are_known = true, .size = m->size};
  out->data = index_of(m, atom.data);
  out->args = index_of(m, atom.args);
  out->id = index_of(m, atom.id);
  out->name = ts_digest_of_bytes(TS_TAG_STRUCT, m->pairs.keys, bytes);
  memcpy(out->keys, m->pairs.keys, bytes);
  return true;
}

/* A loop, because a call of memcmp takes longer for a few words. */
static inline bool are_keys_of(const map_keys *keys, const small_map *m) {
  if (!keys->are_known || keys->size != m->size) return false;
  for (size_t i = 0; i < m->size; i++)
    if (keys->keys[i] != m->pairs.keys[i]) return false;
  return true;
}

/* Maps with the same keys have them in the same order. If all keys are atoms, they have one name together. */
static bool get_keys(walk *w, small_map *m) {
  size_t slot = m->size ? (m->pairs.keys[m->size - 1] >> 6) + m->size : 0;
  map_keys *keys = &w->keys[slot % RECENT_KEYS];
  if (!are_keys_of(keys, m) && !know_keys(w, m, keys)) return false;
  m->data = keys->data;
  m->args = keys->args;
  m->id = keys->id;
  m->name = keys->name;
  return true;
}

static bool get_small_map(const walk *w, ERL_NIF_TERM map, size_t size, small_map *out) {
  ErlNifMapIterator at;
  out->size = size;
  if (!enif_map_iterator_create(w->env, map, &at, ERL_NIF_MAP_ITERATOR_FIRST)) return false;
  ts_digest_get_pairs(w->env, &at, size, &out->pairs);
  enif_map_iterator_destroy(w->env, &at);
  return true;
}

/* ---- nodes of Nx ---- */

/* A node is a tensor whose data is an expression with a reference and a list of arguments. All of it is read as one
 * term, since each of its terms would take a frame, an entry in `seen`, and a hash that depends on the next one's.
 */
typedef struct node {
  small_map expression;
  ts_digest_part id;
  size_t count; /* of `arguments`, the rest of the list included */
  bool has_tail;
  ERL_NIF_TERM arguments[LIST_PART + 1];
} node;

static bool get_arguments(const walk *w, ERL_NIF_TERM list, node *n) {
  ERL_NIF_TERM rest = list;
  for (n->count = 0; n->count < LIST_PART && rest != atom.nil; n->count++)
    if (!enif_get_list_cell(w->env, rest, &n->arguments[n->count], &rest)) break;
  n->has_tail = rest != atom.nil;
  if (n->has_tail) n->arguments[n->count++] = rest;
  return list == atom.nil || rest != list;
}

static bool get_id(const walk *w, ERL_NIF_TERM id, ts_digest_part *out) {
  if (!enif_is_ref(w->env, id)) return false;
  ts_digest_reference(id, out);
  return true;
}

static bool get_expression(walk *w, ERL_NIF_TERM data, small_map *out) {
  size_t size;
  return enif_get_map_size(w->env, data, &size) && size <= TS_DIGEST_FEW_PAIRS && get_small_map(w, data, size, out) &&
         get_keys(w, out) && out->args < size && out->id < size;
}

static bool get_node(walk *w, const small_map *tensor, node *out) {
  small_map *e = &out->expression;
  return tensor->data < tensor->size && get_expression(w, tensor->pairs.values[tensor->data], e) &&
         get_arguments(w, e->pairs.values[e->args], out) && get_id(w, e->pairs.values[e->id], &out->id);
}

static ts_status put_values_but(walk *w, const small_map *m, size_t left_out) {
  TS_TRY(put_unread(w, m->pairs.values, left_out));
  return put_unread(w, m->pairs.values + left_out + 1, m->size - left_out - 1);
}

static ts_status put_values_of_expression(walk *w, const small_map *e) {
  ERL_NIF_TERM others[TS_DIGEST_FEW_PAIRS];
  size_t count = 0;
  for (size_t i = 0; i < e->size; i++)
    if (i != e->args && i != e->id) others[count++] = e->pairs.values[i];
  return put_unread(w, others, count);
}

static ts_status open_node(walk *w, ERL_NIF_TERM term, const small_map *tensor, const node *n) {
  const small_map *e = &n->expression;
  size_t parts = tensor->size - 1 + e->size - 2 + n->count;
  uint64_t words = 16 + n->id.words + 2 * (uint64_t)(parts - n->has_tail);
  TS_TRY(open_frame(w, term, TS_TAG_NODE, (uint64_t)n->count << 1 | n->has_tail, parts, words));
  TS_TRY(TS_VEC_PUSH(&w->names, tensor->name));
  TS_TRY(TS_VEC_PUSH(&w->names, e->name));
  TS_TRY(TS_VEC_PUSH(&w->names, n->id.name));
  TS_TRY(put_values_but(w, tensor, tensor->data));
  TS_TRY(put_values_of_expression(w, e));
  TS_TRY(put_unread(w, n->arguments, n->count));
  set_parts(w, parts);
  return TS_SUCCESS;
}

/* ---- maps ---- */

static ts_status open_any_keys(walk *w, ERL_NIF_TERM map, const small_map *m) {
  TS_TRY(open_frame(w, map, TS_TAG_MAP, m->size, 2 * m->size, 5 + 2 * (uint64_t)m->size));
  TS_TRY(put_unread(w, m->pairs.keys, m->size));
  TS_TRY(put_unread(w, m->pairs.values, m->size));
  set_parts(w, 2 * m->size);
  return TS_SUCCESS;
}

static ts_status open_small_map(walk *w, ERL_NIF_TERM map, size_t size) {
  small_map m;
  node n;
  if (!get_small_map(w, map, size, &m)) return ts_error_no_memory();
  if (!get_keys(w, &m)) return open_any_keys(w, map, &m);
  if (get_node(w, &m, &n)) return open_node(w, map, &m, &n);
  TS_TRY(open_parts(w, map, TS_TAG_STRUCT, m.pairs.values, size, 5 + 2 * (uint64_t)size));
  w->names.data[last_frame(w)->first] = m.name;
  return TS_SUCCESS;
}

/* The order of a large map's pairs is not defined. */
static ts_status put_pairs(walk *w, ErlNifMapIterator *at) {
  ERL_NIF_TERM pair[2];
  for (; enif_map_iterator_get_pair(w->env, at, &pair[0], &pair[1]); enif_map_iterator_next(w->env, at))
    TS_TRY(put_unread(w, pair, 2));
  return TS_SUCCESS;
}

static ts_status open_large_map(walk *w, ERL_NIF_TERM map, size_t size) {
  ErlNifMapIterator at;
  TS_TRY(open_frame(w, map, TS_TAG_PAIRS, size, 2 * size, 5 + 3 * (uint64_t)size));
  if (!enif_map_iterator_create(w->env, map, &at, ERL_NIF_MAP_ITERATOR_FIRST)) return ts_error_no_memory();
  ts_status status = put_pairs(w, &at);
  enif_map_iterator_destroy(w->env, &at);
  set_parts(w, 2 * size);
  return status;
}

static ts_status open_map(walk *w, ERL_NIF_TERM map) {
  size_t size;
  ERL_NIF_TERM form[2];
  if (is_form(w, map, &form[0], &form[1])) return open_parts(w, map, TS_TAG_FORM, form, 2, 3);
  if (!enif_get_map_size(w->env, map, &size)) return ts_nif_expected(w->env, "a map", map);
  return size > TS_DIGEST_FEW_PAIRS ? open_large_map(w, map, size) : open_small_map(w, map, size);
}

/* ---- walking ---- */

static void read_atom(walk *w, ERL_NIF_TERM term, ts_digest_part *out) {
  know_atom(w, term);
  *out = ts_digest_closed(ts_digest_plain_name(TS_TAG_ATOM, term), 0);
}

/* Reads a term without parts. */
static ts_status read_plain(walk *w, ErlNifTermType type, ERL_NIF_TERM term, ts_digest_part *out) {
  switch (type) {
  case ERL_NIF_TERM_TYPE_ATOM: read_atom(w, term, out); return TS_SUCCESS;
  case ERL_NIF_TERM_TYPE_REFERENCE: ts_digest_reference(term, out); return TS_SUCCESS;
  case ERL_NIF_TERM_TYPE_INTEGER: return ts_digest_integer(w->env, term, out);
  case ERL_NIF_TERM_TYPE_FLOAT: return ts_digest_float(w->env, term, out);
  case ERL_NIF_TERM_TYPE_BITSTRING: return read_bits(w, term, out);
  case ERL_NIF_TERM_TYPE_FUN: return read_function(w, term, out);
  default: return read_other(w, term, out);
  }
}

/* Reads a term, or opens a frame for it: then *out_frame is set. */
static ts_status read_term(walk *w, ERL_NIF_TERM term, ts_digest_part *out, bool *out_frame) {
  ErlNifTermType type = enif_term_type(w->env, term);
  *out_frame = false;
  if (term == atom.nil) {
    read_atom(w, term, out);
    return TS_SUCCESS;
  }
  if (type == ERL_NIF_TERM_TYPE_TUPLE) return read_tuple(w, term, out, out_frame);
  if (type != ERL_NIF_TERM_TYPE_LIST && type != ERL_NIF_TERM_TYPE_MAP) return read_plain(w, type, term, out);
  *out_frame = true;
  return type == ERL_NIF_TERM_TYPE_LIST ? open_list(w, term) : open_map(w, term);
}

/* Stores a part that was read in its frame. */
static inline ts_status put_part(walk *w, frame *f, ts_digest_part part) {
  size_t at = f->at++;
  f->words = ts_digest_add(f->words, part.words);
  w->names.data[at] = part.name;
  if (part.open == TS_DIGEST_CLOSED) return TS_SUCCESS;
  return TS_VEC_PUSH(&w->holes, ((ts_digest_hole){(uint32_t)(at - f->first), part.open}));
}

/* Names the next parts as long as they are known: atoms, and terms in `seen`. Stops at a term in `seen` that is open
 * (it holds functions without a name), and returns it. */
static inline const seen *pass_known(const walk *w, frame *f) {
  ts_hash128 *restrict name = w->names.data + f->at;
  const ts_hash128 *end = w->names.data + f->end;
  uint64_t words = f->words, tag = ts_digest_tags[TS_TAG_ATOM];
  const seen *open = NULL;
  for (; name < end; name++) {
    if (is_known_atom(w, name->lo)) {
      name->hi = tag;
      continue;
    }
    const seen *s = find(w, name->lo);
    if (s->generation != w->generation) break;
    const ts_digest_part *part = &w->parts.data[s->part];
    if (part->open != TS_DIGEST_CLOSED) {
      open = s;
      break;
    }
    words = ts_digest_add(words, part->words);
    *name = part->name;
  }
  f->at = (size_t)(name - w->names.data);
  f->words = words;
  return open;
}

/* Reads parts until all are read, or one of them has opened a frame. */
static ts_status read_parts(walk *w, bool *out_frame) {
  ts_digest_part part;
  for (*out_frame = false;;) {
    frame *f = last_frame(w);
    const seen *open = pass_known(w, f);
    if (f->at == f->end) return TS_SUCCESS;
    if (open)
      part = w->parts.data[open->part];
    else
      TS_TRY(read_term(w, w->names.data[f->at].lo, &part, out_frame));
    if (*out_frame) return TS_SUCCESS;
    TS_TRY(put_part(w, f, part));
  }
}

/* Stores an open term; it is named when its functions have names. */
static ts_status keep_open(walk *w, const frame *f, ts_digest_part *out) {
  ts_digest *d = w->digest;
  ts_digest_open o = {.kind = f->kind,
                      .first = d->names.count,
                      .count = f->end - f->first,
                      .hole = d->holes.count,
                      .hole_count = w->holes.count - f->hole,
                      .part = ts_digest_closed((ts_hash128){0}, f->words)};
  TS_TRY(TS_VEC_RESERVE(&d->names, o.first + o.count));
  TS_TRY(TS_VEC_RESERVE(&d->holes, o.hole + o.hole_count));
  memcpy(d->names.data + o.first, w->names.data + f->first, o.count * sizeof *d->names.data);
  memcpy(d->holes.data + o.hole, w->holes.data + f->hole, o.hole_count * sizeof *d->holes.data);
  d->names.count += o.count;
  d->holes.count += o.hole_count;
  *out = (ts_digest_part){.open = (uint32_t)d->opens.count};
  return TS_VEC_PUSH(&d->opens, o);
}

/* Names a term whose parts are all read. */
static inline ts_status close_frame(walk *w, ts_digest_part *out) {
  frame f = *last_frame(w);
  const ts_hash128 *names = w->names.data + f.first;
  size_t count = f.end - f.first;
  if (w->holes.count > f.hole)
    TS_TRY(keep_open(w, &f, out));
  else if (f.kind == TS_DIGEST_PAIRS)
    *out = ts_digest_closed(ts_digest_name_of_pairs(names, count), f.words);
  else
    *out = ts_digest_closed(ts_digest_name(names, count), f.words);
  w->frames.count--;
  w->names.count = f.first;
  w->holes.count = f.hole;
  return see(w, f.term, *out);
}

static ts_status walk_frames(walk *w, ts_digest_part *out) {
  for (bool has_frame;;) {
    TS_TRY(read_parts(w, &has_frame));
    if (has_frame) continue;
    TS_TRY(close_frame(w, out));
    if (w->frames.count == 0) return TS_SUCCESS;
    TS_TRY(put_part(w, last_frame(w), *out));
  }
}

ts_status ts_digest_walk_term(walk *w, ERL_NIF_TERM term, size_t limit, bool *out_long, ts_digest_part *out) {
  bool has_frame;
  w->limit = limit;
  ts_status status = read_term(w, term, out, &has_frame);
  if (!status && has_frame) status = walk_frames(w, out);
  *out_long = w->is_long;
  return status;
}

ERL_NIF_TERM ts_digest_walk_functions(const walk *w) {
  return enif_make_list_from_array(w->env, w->functions.data, (unsigned)w->functions.count);
}

ERL_NIF_TERM ts_digest_walk_tensors(const walk *w) {
  return enif_make_list_from_array(w->env, w->tensors.data, (unsigned)w->tensors.count);
}

size_t ts_digest_walk_function_count(const walk *w) { return w->functions.count; }

size_t ts_digest_walk_work(const walk *w) { return w->work; }

/* ---- the memory of walks ---- */

/* The memory of some walks, two of them large, is kept: allocating it costs more than reading a small term. */
enum { KEPT = 8, KEPT_BYTES = 1 << 18, KEPT_LARGE = 2, KEPT_LARGE_BYTES = 16 << 20 };

static _Atomic(walk *) kept[KEPT];

static void walk_destroy(walk *w) {
  if (!w) return;
  ts_free(w->seen);
  TS_VEC_FREE(&w->parts);
  TS_VEC_FREE(&w->frames);
  TS_VEC_FREE(&w->names);
  TS_VEC_FREE(&w->holes);
  TS_VEC_FREE(&w->functions);
  TS_VEC_FREE(&w->tensors);
  ts_free(w);
}

static size_t bytes_of(const walk *w) {
  return w->seen_capacity * sizeof *w->seen + w->parts.capacity * sizeof *w->parts.data +
         w->frames.capacity * sizeof *w->frames.data + w->names.capacity * sizeof *w->names.data +
         w->holes.capacity * sizeof *w->holes.data;
}

static ts_status walk_create(walk **out) {
  TS_TRY(TS_NEW(out));
  ts_status status = grow_seen(*out);
  if (!status) return TS_SUCCESS;
  walk_destroy(*out);
  *out = NULL;
  return status;
}

static void walk_reset(walk *w, ErlNifEnv *env, ts_digest *digest) {
  w->env = env;
  w->digest = digest;
  w->work = 0;
  w->is_long = false;
  w->parts.count = w->frames.count = w->names.count = w->holes.count = 0;
  w->functions.count = w->tensors.count = 0;
  if (++w->generation) return;
  memset(w->seen, 0, w->seen_capacity * sizeof *w->seen);
  w->generation = 1;
}

ts_status ts_digest_walk_take(ErlNifEnv *env, ts_digest *digest, walk **out) {
  *out = NULL;
  for (size_t i = 0; i < KEPT && !*out; i++)
    if (atomic_load_explicit(&kept[i], memory_order_relaxed)) *out = atomic_exchange(&kept[i], NULL);
  if (!*out) TS_TRY(walk_create(out));
  walk_reset(*out, env, digest);
  return TS_SUCCESS;
}

void ts_digest_walk_give(walk *w) {
  size_t bytes = bytes_of(w);
  size_t slots = bytes <= KEPT_BYTES ? KEPT : bytes <= KEPT_LARGE_BYTES ? KEPT_LARGE : 0;
  for (size_t i = slots; i-- > 0 && w;)
    if (!atomic_load_explicit(&kept[i], memory_order_relaxed)) w = atomic_exchange(&kept[i], w);
  walk_destroy(w);
}

void ts_digest_walk_forget(void) {
  for (size_t i = 0; i < KEPT; i++) walk_destroy(atomic_exchange(&kept[i], NULL));
}
