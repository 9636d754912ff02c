#include "nif/nif_signature.h"

#include "base/map.h"
#include "base/vec.h"

#include <string.h>

static struct { ERL_NIF_TERM struct_, tensor_, type_, shape_, names_, axes_, donatable_; } atom;

void ts_nif_signature_init(ErlNifEnv *env) {
  atom.struct_ = enif_make_atom(env, "__struct__");
  atom.tensor_ = enif_make_atom(env, "Elixir.Nx.Tensor");
  atom.type_ = enif_make_atom(env, "type");
  atom.shape_ = enif_make_atom(env, "shape");
  atom.names_ = enif_make_atom(env, "names");
  atom.axes_ = enif_make_atom(env, "vectorized_axes");
  atom.donatable_ = enif_make_atom(env, "donatable?");
}

/* The words of a signature are unambiguous: each list is preceded by its length, and each term by its kind where
 * several kinds are possible. */
enum { FEW_WORDS = 256, DEEPEST = 64 };

enum { WORD_TENSOR, WORD_TUPLE, WORD_LIST, WORD_MAP, WORD_ATOM, WORD_INTEGER };

typedef struct signature {
  ErlNifEnv *env;
  size_t count, capacity;
  uint64_t *words, few[FEW_WORDS]; /* words: `few`, or an allocated array */
} signature;

/* On any failure there is no signature: the caller has a slower way to make the key. */
static bool grow(signature *s) {
  uint64_t *more;
  if (!ts_status_consume_ok(TS_NEW_ARRAY(2 * s->capacity, &more))) return false;
  memcpy(more, s->words, s->count * sizeof *more);
  if (s->words != s->few) ts_free(s->words);
  s->words = more;
  s->capacity *= 2;
  return true;
}

static inline bool put(signature *s, uint64_t word) {
  if (s->count == s->capacity && !grow(s)) return false;
  s->words[s->count++] = word;
  return true;
}

static bool put_kind(signature *s, unsigned kind, size_t length) { return put(s, (uint64_t)length << 3 | kind); }

/* An atom or an integer: types, shapes, names and map keys consist of these. */
static bool put_plain(signature *s, ERL_NIF_TERM term) {
  ErlNifSInt64 integer;
  if (enif_get_int64(s->env, term, &integer)) return put(s, WORD_INTEGER) && put(s, (uint64_t)integer);
  return enif_is_atom(s->env, term) && put(s, WORD_ATOM) && put(s, term);
}

static bool put_tuple(signature *s, ERL_NIF_TERM term) {
  const ERL_NIF_TERM *f;
  int count;
  if (!enif_get_tuple(s->env, term, &count, &f) || !put_kind(s, WORD_TUPLE, (size_t)count)) return false;
  for (int i = 0; i < count; i++)
    if (!put_plain(s, f[i])) return false;
  return true;
}

/* Writes the length of the list in front of its items. */
static bool put_list(signature *s, ERL_NIF_TERM list, bool (*put_item)(signature *, ERL_NIF_TERM)) {
  ERL_NIF_TERM head;
  size_t at = s->count, length = 0;
  if (!put(s, 0)) return false;
  for (; enif_get_list_cell(s->env, list, &head, &list); length++)
    if (!put_item(s, head)) return false;
  s->words[at] = (uint64_t)length << 3 | WORD_LIST;
  return enif_is_empty_list(s->env, list);
}

static bool field(signature *s, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *out) {
  return enif_get_map_value(s->env, map, key, out);
}

/* Tensors of the released Nx 0.13 have no such mark. */
static bool put_donatable(signature *s, ERL_NIF_TERM tensor) {
  ERL_NIF_TERM donatable;
  return put_plain(s, field(s, tensor, atom.donatable_, &donatable) ? donatable : ts_atom.false_);
}

static bool put_tensor(signature *s, ERL_NIF_TERM tensor) {
  ERL_NIF_TERM type, shape, names, axes;
  return field(s, tensor, atom.type_, &type) && field(s, tensor, atom.shape_, &shape) &&
         field(s, tensor, atom.names_, &names) && field(s, tensor, atom.axes_, &axes) && put_kind(s, WORD_TENSOR, 0) &&
         put_tuple(s, type) && put_tuple(s, shape) && put_list(s, names, put_plain) && put_list(s, axes, put_tuple) &&
         put_donatable(s, tensor);
}

static bool put_container(signature *s, ERL_NIF_TERM term, int depth);

static bool put_tuple_of(signature *s, ERL_NIF_TERM term, int depth) {
  const ERL_NIF_TERM *f;
  int count;
  if (!enif_get_tuple(s->env, term, &count, &f) || !put_kind(s, WORD_TUPLE, (size_t)count)) return false;
  for (int i = 0; i < count; i++)
    if (!put_container(s, f[i], depth + 1)) return false;
  return true;
}

/* Maps with equal keys enumerate them in the same order. */
static bool put_map(signature *s, ERL_NIF_TERM map, int depth) {
  ErlNifMapIterator at;
  ERL_NIF_TERM key, value;
  size_t size;
  if (!enif_get_map_size(s->env, map, &size) || !put_kind(s, WORD_MAP, size) ||
      !enif_map_iterator_create(s->env, map, &at, ERL_NIF_MAP_ITERATOR_FIRST))
    return false;
  bool is_put = true;
  for (; is_put && enif_map_iterator_get_pair(s->env, &at, &key, &value); enif_map_iterator_next(s->env, &at))
    is_put = put_plain(s, key) && put_container(s, value, depth + 1);
  enif_map_iterator_destroy(s->env, &at);
  return is_put;
}

/* Structs have no signature: their other fields are unknown here. */
static bool put_container(signature *s, ERL_NIF_TERM term, int depth) {
  ERL_NIF_TERM name;
  if (depth > DEEPEST) return false;
  if (!enif_is_map(s->env, term)) return put_tuple_of(s, term, depth);
  if (!field(s, term, atom.struct_, &name)) return put_map(s, term, depth);
  return name == atom.tensor_ && put_tensor(s, term);
}

static bool put_all(signature *s, ERL_NIF_TERM list) {
  ERL_NIF_TERM head;
  for (; enif_get_list_cell(s->env, list, &head, &list);)
    if (!put_container(s, head, 0)) return false;
  return enif_is_empty_list(s->env, list);
}

ERL_NIF_TERM ts_nif_signature(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* signature([Container]) -> <<_:128>> | undefined: equal for arguments that give a function the same compiled
   * program, in this VM. Undefined when there is anything besides tensors in tuples and plain maps with atoms and
   * integers as keys. */
  signature s = {.env = env, .capacity = FEW_WORDS};
  (void)argc;
  s.words = s.few;
  ERL_NIF_TERM term = ts_atom.undefined_;
  if (put_all(&s, argv[0])) {
    ts_hash128 hash = ts_hash(s.words, s.count * sizeof *s.words);
    term = ts_nif_binary(env, (const char *)&hash, sizeof hash);
  }
  if (s.words != s.few) ts_free(s.words);
  return term;
}
