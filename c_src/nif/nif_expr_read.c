/* Reading expressions. A walk from the results to the leaves with a stack of its
 * own; nodes are told apart by their ids, rules by op, type, shape, arguments
 * and what is read. */
#include "nif/nif_expr_internal.h"

#include "base/map.h"

#include <string.h>

#define EXPR_ATOMS(X) X(data) X(id) X(op) X(args) X(type) X(shape) X(vectorized_axes) X(parameter) X(tensor) X(metadata)

static struct {
#define X(name) ERL_NIF_TERM name##_;
  EXPR_ATOMS(X)
#undef X
  ERL_NIF_TERM struct_, expr_;
} atom;

/* {f, 32} and so on: the kind of each type, and its bits. */
static struct {
  ERL_NIF_TERM kind;
  int bits;
} types[TS_DTYPE_COUNT];

void ts_expr_atoms_init(ErlNifEnv *env) {
#define X(name) atom.name##_ = enif_make_atom(env, #name);
  EXPR_ATOMS(X)
#undef X
  atom.struct_ = enif_make_atom(env, "__struct__");
  atom.expr_ = enif_make_atom(env, "Elixir.Nx.Defn.Expr");
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    const char *name = ts_dtype_name((ts_dtype)t);
    types[t].kind = enif_make_atom_len(env, name, strcspn(name, "0123456789"));
    types[t].bits = ts_dtype_supported((ts_dtype)t) ? ts_dtype_bits((ts_dtype)t) : 0;
  }
}

void ts_expr_deinit(ts_expr *e) {
  TS_VEC_FREE(&e->values);
  TS_VEC_FREE(&e->uses);
  TS_VEC_FREE(&e->results);
  TS_VEC_FREE(&e->sources);
  TS_VEC_FREE(&e->forms);
}

void ts_expr_terms_deinit(ts_expr_terms *terms) {
  TS_VEC_FREE(&terms->sources);
  TS_VEC_FREE(&terms->nodes);
  TS_VEC_FREE(&terms->examples);
}

/* ---- numbers by hash ---- */

/* Linear probing; whoever looks compares what the number stands for. */
typedef struct table {
  struct {
    uint32_t hash, number; /* TS_NO_ID: empty */
  } * slots;
  size_t capacity, count;
} table;

static void table_insert(table *x, uint32_t hash, uint32_t number) {
  size_t i = hash & (x->capacity - 1);
  while (x->slots[i].number != TS_NO_ID) i = (i + 1) & (x->capacity - 1);
  x->slots[i].hash = hash, x->slots[i].number = number;
}

static ts_status table_grow(table *x) {
  table grown = {.capacity = x->capacity ? x->capacity * 4 : 64, .count = x->count};
  TS_TRY(TS_NEW_ARRAY(grown.capacity, &grown.slots));
  memset(grown.slots, 0xff, grown.capacity * sizeof *grown.slots);
  for (size_t i = 0; i < x->capacity; i++)
    if (x->slots[i].number != TS_NO_ID) table_insert(&grown, x->slots[i].hash, x->slots[i].number);
  ts_free(x->slots);
  *x = grown;
  return TS_SUCCESS;
}

static ts_status table_add(table *x, uint32_t hash, uint32_t number) {
  if ((x->count + 1) * 2 > x->capacity) TS_TRY(table_grow(x));
  table_insert(x, hash, number);
  x->count++;
  return TS_SUCCESS;
}

/* The next number with that hash, TS_NO_ID when there is none. Begins with *at = hash. */
static uint32_t table_next(const table *x, uint32_t hash, size_t *at) {
  if (!x->capacity) return TS_NO_ID;
  for (;; ++*at) {
    size_t i = *at & (x->capacity - 1);
    if (x->slots[i].number == TS_NO_ID) return TS_NO_ID;
    if (x->slots[i].hash != hash) continue;
    ++*at;
    return x->slots[i].number;
  }
}

/* ---- the reader ---- */

typedef struct known {
  ERL_NIF_TERM id;
  uint32_t value;
} known;

/* Parts of `words` and `statics`. */
typedef struct rule {
  size_t words, word_count, statics, static_count;
} rule;

/* A node whose operands are being read; its parts of the stacks begin there. */
typedef struct frame {
  ERL_NIF_TERM node, id;
  uint32_t hash, form;
  bool is_alias;
  size_t words, statics, terms, operands, operand_count;
} frame;

typedef struct reader {
  ErlNifEnv *env;
  ERL_NIF_TERM scoped;
  size_t limit;
  ts_expr *e;
  ts_expr_terms *terms;
  ts_expr_outcome outcome;
  table by_id, by_rule, by_form;
  TS_VEC(known) known;
  TS_VEC(rule) rules;
  TS_VEC(uint64_t) rule_words;
  TS_VEC(ERL_NIF_TERM) rule_statics;
  TS_VEC(ERL_NIF_TERM) leaves;
  TS_VEC(frame) frames;
  TS_VEC(uint64_t) words; /* stacks */
  TS_VEC(ERL_NIF_TERM) statics;
  TS_VEC(ERL_NIF_TERM) operand_terms;
  TS_VEC(uint32_t) operands;
} reader;

/* Ends the walk. */
static ts_status stop(reader *r, ts_expr_outcome why) {
  r->outcome = why;
  return ts_error(TS_UNIMPLEMENTED, "the expression is read in another way");
}

static bool field(const reader *r, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *out) {
  return enif_get_map_value(r->env, map, key, out);
}

/* ---- types and shapes ---- */

static bool get_type(const reader *r, ERL_NIF_TERM term, ts_dtype *out) {
  const ERL_NIF_TERM *f;
  int count, bits;
  if (!enif_get_tuple(r->env, term, &count, &f) || count != 2 || !enif_get_int(r->env, f[1], &bits)) return false;
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    if (types[t].bits != bits || types[t].kind != f[0]) continue;
    *out = (ts_dtype)t;
    return true;
  }
  return false;
}

static bool add_dim(const reader *r, ERL_NIF_TERM term, ts_shape *out) {
  ErlNifSInt64 dim;
  if (out->rank == TS_MAX_RANK || !enif_get_int64(r->env, term, &dim) || dim < 0) return false;
  out->dims[out->rank++] = dim;
  return true;
}

/* Vectorized axes are leading dimensions. */
static bool get_shape(const reader *r, ERL_NIF_TERM axes, ERL_NIF_TERM shape, ts_shape *out) {
  ERL_NIF_TERM head;
  const ERL_NIF_TERM *f;
  int count;
  *out = (ts_shape){0};
  while (enif_get_list_cell(r->env, axes, &head, &axes))
    if (!enif_get_tuple(r->env, head, &count, &f) || count != 2 || !add_dim(r, f[1], out)) return false;
  if (!enif_get_tuple(r->env, shape, &count, &f)) return false;
  for (int i = 0; i < count; i++)
    if (!add_dim(r, f[i], out)) return false;
  return true;
}

static uint32_t hash_form(const ts_type *form) {
  uint64_t h = (uint64_t)form->dtype * 31 + (uint64_t)form->shape.rank;
  for (int32_t i = 0; i < form->shape.rank; i++)
    h = (h ^ (uint64_t)form->shape.dims[i]) * UINT64_C(0x9E3779B97F4A7C15), h ^= h >> 29;
  return (uint32_t)(h ^ h >> 32);
}

static ts_status get_form(reader *r, ERL_NIF_TERM node, uint32_t *out) {
  ERL_NIF_TERM type, shape, axes;
  ts_type form;
  if (!field(r, node, atom.type_, &type) || !field(r, node, atom.shape_, &shape) ||
      !field(r, node, atom.vectorized_axes_, &axes) || !get_type(r, type, &form.dtype) ||
      !get_shape(r, axes, shape, &form.shape))
    return stop(r, TS_EXPR_OTHER);
  uint32_t hash = hash_form(&form);
  for (size_t at = hash; (*out = table_next(&r->by_form, hash, &at)) != TS_NO_ID;) {
    const ts_type *other = &r->e->forms.data[*out];
    if (other->dtype == form.dtype && ts_shape_equal(&other->shape, &form.shape)) return TS_SUCCESS;
  }
  *out = (uint32_t)r->e->forms.count;
  TS_TRY(TS_VEC_PUSH(&r->e->forms, form));
  return table_add(&r->by_form, hash, *out);
}

/* ---- arguments ---- */

/* What the words of a rule say; OTHER is followed by a hash, and the term is among its statics. */
enum { WORD_ATOM, WORD_INTEGER, WORD_FLOAT, WORD_NODE, WORD_LIST, WORD_TUPLE, WORD_END, WORD_OTHER };

enum { DEEPEST = 8 };

static ts_status put_word(reader *r, uint64_t kind, uint64_t word) {
  TS_TRY(TS_VEC_RESERVE(&r->words, r->words.count + 2));
  r->words.data[r->words.count++] = kind;
  r->words.data[r->words.count++] = word;
  return TS_SUCCESS;
}

static ts_status put_other(reader *r, ERL_NIF_TERM term) {
  TS_TRY(TS_VEC_PUSH(&r->statics, term));
  return put_word(r, WORD_OTHER, enif_hash(ERL_NIF_INTERNAL_HASH, term, 0));
}

static bool get_id(const reader *r, ERL_NIF_TERM node, ERL_NIF_TERM *out_data, ERL_NIF_TERM *out_id) {
  return field(r, node, atom.data_, out_data) && field(r, *out_data, atom.id_, out_id);
}

/* Nodes are looked for in lists, but not in tuples, nor in maps. */
static ts_status put_argument(reader *r, ERL_NIF_TERM term, bool in_tuple, int depth) {
  ERL_NIF_TERM data, id, head;
  const ERL_NIF_TERM *f;
  ErlNifSInt64 integer;
  double number;
  uint64_t bits;
  int count;
  if (depth > DEEPEST) return stop(r, TS_EXPR_OTHER);
  switch (enif_term_type(r->env, term)) {
  case ERL_NIF_TERM_TYPE_ATOM: return put_word(r, WORD_ATOM, term);
  case ERL_NIF_TERM_TYPE_INTEGER:
    return enif_get_int64(r->env, term, &integer) ? put_word(r, WORD_INTEGER, (uint64_t)integer) : put_other(r, term);
  case ERL_NIF_TERM_TYPE_FLOAT: /* by its bits: 0.0 and -0.0 were equal once */
    if (!enif_get_double(r->env, term, &number)) return stop(r, TS_EXPR_OTHER);
    memcpy(&bits, &number, sizeof bits);
    return put_word(r, WORD_FLOAT, bits);
  case ERL_NIF_TERM_TYPE_MAP:
    if (in_tuple || !get_id(r, term, &data, &id)) return stop(r, TS_EXPR_OTHER);
    TS_TRY(TS_VEC_PUSH(&r->operand_terms, term));
    return put_word(r, WORD_NODE, 0);
  case ERL_NIF_TERM_TYPE_LIST:
    TS_TRY(put_word(r, WORD_LIST, 0));
    while (enif_get_list_cell(r->env, term, &head, &term)) TS_TRY(put_argument(r, head, in_tuple, depth + 1));
    return enif_is_empty_list(r->env, term) ? put_word(r, WORD_END, 0) : stop(r, TS_EXPR_OTHER);
  case ERL_NIF_TERM_TYPE_TUPLE:
    if (!enif_get_tuple(r->env, term, &count, &f)) return stop(r, TS_EXPR_OTHER);
    TS_TRY(put_word(r, WORD_TUPLE, 0));
    for (int i = 0; i < count; i++) TS_TRY(put_argument(r, f[i], true, depth + 1));
    return put_word(r, WORD_END, 0);
  default: return put_other(r, term);
  }
}

/* ---- rules ---- */

static bool is_rule(const reader *r, const rule *known_rule, const frame *f) {
  size_t words = r->words.count - f->words, statics = r->statics.count - f->statics;
  if (known_rule->word_count != words || known_rule->static_count != statics ||
      memcmp(r->rule_words.data + known_rule->words, r->words.data + f->words, words * sizeof *r->words.data) != 0)
    return false;
  for (size_t i = 0; i < statics; i++)
    if (!enif_is_identical(r->rule_statics.data[known_rule->statics + i], r->statics.data[f->statics + i]))
      return false;
  return true;
}

static ts_status add_rule(reader *r, const frame *f, uint32_t hash, uint32_t number) {
  rule new = {r->rule_words.count, r->words.count - f->words, r->rule_statics.count, r->statics.count - f->statics};
  TS_TRY(TS_VEC_RESERVE(&r->rule_words, new.words + new.word_count));
  TS_TRY(TS_VEC_RESERVE(&r->rule_statics, new.statics + new.static_count));
  memcpy(r->rule_words.data + new.words, r->words.data + f->words, new.word_count * sizeof *r->words.data);
  if (new.static_count)
    memcpy(r->rule_statics.data + new.statics, r->statics.data + f->statics,
           new.static_count * sizeof *r->statics.data);
  r->rule_words.count += new.word_count;
  r->rule_statics.count += new.static_count;
  TS_TRY(TS_VEC_PUSH(&r->rules, new));
  TS_TRY(TS_VEC_PUSH(&r->terms->nodes, f->node));
  TS_TRY(TS_VEC_PUSH(&r->terms->examples, (uint32_t)r->e->values.count)); /* which comes next */
  return table_add(&r->by_rule, hash, number);
}

/* The rule of a node, with the forms of what it reads. */
static ts_status find_rule(reader *r, const frame *f, uint32_t *out) {
  for (size_t i = f->operands; i < r->operands.count; i++)
    TS_TRY(TS_VEC_PUSH(&r->words, r->e->values.data[r->operands.data[i]].form));
  uint32_t hash = (uint32_t)ts_hash64(r->words.data + f->words, (r->words.count - f->words) * sizeof *r->words.data);
  for (size_t at = hash; (*out = table_next(&r->by_rule, hash, &at)) != TS_NO_ID;)
    if (is_rule(r, &r->rules.data[*out], f)) return TS_SUCCESS;
  *out = (uint32_t)r->rules.count;
  return add_rule(r, f, hash, *out);
}

/* ---- nodes ---- */

static ts_status remember(reader *r, ERL_NIF_TERM id, uint32_t hash, uint32_t value) {
  if (r->known.count >= r->limit) return stop(r, TS_EXPR_LONG);
  TS_TRY(TS_VEC_PUSH(&r->known, ((known){id, value})));
  return table_add(&r->by_id, hash, (uint32_t)r->known.count - 1);
}

/* Sources are numbered in the order in which they are used. */
static ts_status use(reader *r, uint32_t value) {
  ts_expr_value *v = &r->e->values.data[value];
  if (v->rule != TS_NO_ID || v->count != TS_NO_ID) return TS_SUCCESS;
  v->count = (uint32_t)r->e->sources.count;
  TS_TRY(TS_VEC_PUSH(&r->e->sources, value));
  return TS_VEC_PUSH(&r->terms->sources, r->leaves.data[v->first]);
}

static ts_status add_leaf(reader *r, const frame *f, ERL_NIF_TERM args, uint32_t *out) {
  ERL_NIF_TERM leaf, rest;
  if (!enif_get_list_cell(r->env, args, &leaf, &rest)) return stop(r, TS_EXPR_OTHER);
  *out = (uint32_t)r->e->values.count;
  TS_TRY(TS_VEC_PUSH(&r->e->values, ((ts_expr_value){TS_NO_ID, f->form, (uint32_t)r->leaves.count, TS_NO_ID})));
  TS_TRY(TS_VEC_PUSH(&r->leaves, leaf));
  return remember(r, f->id, f->hash, *out);
}

static bool is_scoped(const reader *r, ERL_NIF_TERM op) {
  ERL_NIF_TERM head, tail = r->scoped;
  while (enif_get_list_cell(r->env, tail, &head, &tail))
    if (head == op) return true;
  return false;
}

static ts_status begin(reader *r, frame *f, ERL_NIF_TERM op, ERL_NIF_TERM args) {
  ERL_NIF_TERM head;
  f->is_alias = op == atom.metadata_;
  TS_TRY(put_word(r, op, f->form));
  while (enif_get_list_cell(r->env, args, &head, &args)) {
    TS_TRY(put_argument(r, head, false, 0));
    if (f->is_alias) break;
  }
  f->operand_count = r->operand_terms.count - f->terms;
  if (f->is_alias && f->operand_count != 1) return stop(r, TS_EXPR_OTHER);
  return TS_VEC_PUSH(&r->frames, *f);
}

/* A node that was not seen before: *out is its value when it is a leaf, else it has a frame from now on. */
static ts_status enter(reader *r, ERL_NIF_TERM node, ERL_NIF_TERM data, ERL_NIF_TERM id, uint32_t hash, uint32_t *out) {
  ERL_NIF_TERM name, op, args;
  frame f = {.node = node,
             .id = id,
             .hash = hash,
             .words = r->words.count,
             .statics = r->statics.count,
             .terms = r->operand_terms.count,
             .operands = r->operands.count};
  if (!field(r, data, atom.struct_, &name) || name != atom.expr_ || !field(r, data, atom.op_, &op) ||
      !field(r, data, atom.args_, &args) || is_scoped(r, op))
    return stop(r, TS_EXPR_OTHER);
  TS_TRY(get_form(r, node, &f.form));
  if (op == atom.parameter_ || op == atom.tensor_) return add_leaf(r, &f, args, out);
  return begin(r, &f, op, args);
}

static ts_status visit(reader *r, ERL_NIF_TERM node, uint32_t *out) {
  ERL_NIF_TERM data, id;
  uint32_t at_id;
  *out = TS_NO_ID;
  if (!get_id(r, node, &data, &id)) return stop(r, TS_EXPR_OTHER);
  uint32_t hash = (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, id, 0);
  for (size_t at = hash; (at_id = table_next(&r->by_id, hash, &at)) != TS_NO_ID;) {
    const known *k = &r->known.data[at_id];
    if (!enif_is_identical(k->id, id)) continue;
    *out = k->value;
    return TS_SUCCESS;
  }
  return enter(r, node, data, id, hash, out);
}

/* All operands of the last frame are there. */
static ts_status leave(reader *r, uint32_t *out) {
  const frame f = r->frames.data[--r->frames.count];
  uint32_t used = TS_NO_ID;
  if (f.is_alias) {
    *out = r->operands.data[f.operands];
  } else {
    TS_TRY(find_rule(r, &f, &used));
    *out = (uint32_t)r->e->values.count;
    uint32_t first = (uint32_t)r->e->uses.count, count = (uint32_t)f.operand_count;
    TS_TRY(TS_VEC_RESERVE(&r->e->uses, r->e->uses.count + count));
    for (uint32_t i = 0; i < count; i++) r->e->uses.data[r->e->uses.count++] = r->operands.data[f.operands + i];
    TS_TRY(TS_VEC_PUSH(&r->e->values, ((ts_expr_value){used, f.form, first, count})));
  }
  r->words.count = f.words;
  r->statics.count = f.statics;
  r->operand_terms.count = f.terms;
  r->operands.count = f.operands;
  return remember(r, f.id, f.hash, *out);
}

static ts_status read_root(reader *r, ERL_NIF_TERM root, uint32_t *out) {
  uint32_t value;
  TS_TRY(visit(r, root, &value));
  while (r->frames.count) {
    const frame *f = &r->frames.data[r->frames.count - 1];
    size_t next = r->operands.count - f->operands;
    if (next == f->operand_count) {
      TS_TRY(leave(r, &value));
      if (!r->frames.count) break;
    } else {
      TS_TRY(visit(r, r->operand_terms.data[f->terms + next], &value));
      if (value == TS_NO_ID) continue;
    }
    if (!r->frames.data[r->frames.count - 1].is_alias) TS_TRY(use(r, value));
    TS_TRY(TS_VEC_PUSH(&r->operands, value));
  }
  *out = value;
  return TS_SUCCESS;
}

static ts_status read_roots(reader *r, ERL_NIF_TERM roots) {
  ERL_NIF_TERM head;
  uint32_t value;
  while (enif_get_list_cell(r->env, roots, &head, &roots)) {
    TS_TRY(read_root(r, head, &value));
    TS_TRY(TS_VEC_PUSH(&r->e->results, value));
  }
  for (size_t i = 0; i < r->e->results.count; i++) TS_TRY(use(r, r->e->results.data[i]));
  r->e->rule_count = (uint32_t)r->rules.count;
  return TS_SUCCESS;
}

static void reader_deinit(reader *r) {
  ts_free(r->by_id.slots);
  ts_free(r->by_rule.slots);
  ts_free(r->by_form.slots);
  TS_VEC_FREE(&r->known);
  TS_VEC_FREE(&r->rules);
  TS_VEC_FREE(&r->rule_words);
  TS_VEC_FREE(&r->rule_statics);
  TS_VEC_FREE(&r->leaves);
  TS_VEC_FREE(&r->frames);
  TS_VEC_FREE(&r->words);
  TS_VEC_FREE(&r->statics);
  TS_VEC_FREE(&r->operand_terms);
  TS_VEC_FREE(&r->operands);
}

ts_status ts_expr_read(ErlNifEnv *env, ERL_NIF_TERM roots, ERL_NIF_TERM scoped, size_t limit, ts_expr *e,
                       ts_expr_terms *terms, ts_expr_outcome *out) {
  reader r = {.env = env, .scoped = scoped, .limit = limit, .e = e, .terms = terms};
  ts_status status = read_roots(&r, roots);
  reader_deinit(&r);
  *out = r.outcome;
  if (r.outcome == TS_EXPR_READ) return status;
  ts_status_free(status);
  return TS_SUCCESS;
}
