/* Reading expressions. A walk from the results to the leaves with a stack of its
 * own; nodes are told apart by their ids, rules by op, type, shape, arguments
 * and what is read. */
#include "nif/nif_expr_form.h"

#include "base/map.h"

#include <string.h>

/* clang-format off */
#define EXPR_ATOMS(X) \
  X(data) X(id) X(op) X(args) X(type) X(shape) X(vectorized_axes) X(parameter) X(tensor) X(metadata) X(state) \
  X(tuple) X(elem) X(while) X(block) X(optional)
/* clang-format on */

static struct {
#define X(name) ERL_NIF_TERM name##_;
  EXPR_ATOMS(X)
#undef X
  ERL_NIF_TERM struct_, expr_;
} atom;

void ts_expr_atoms_init(ErlNifEnv *env) {
#define X(name) atom.name##_ = enif_make_atom(env, #name);
  EXPR_ATOMS(X)
#undef X
  atom.struct_ = enif_make_atom(env, "__struct__");
  atom.expr_ = enif_make_atom(env, "Elixir.Nx.Defn.Expr");
  ts_expr_forms_init(env);
}

void ts_expr_deinit(ts_expr *e) {
  TS_VEC_FREE(&e->values);
  TS_VEC_FREE(&e->uses);
  TS_VEC_FREE(&e->results);
  TS_VEC_FREE(&e->params);
  TS_VEC_FREE(&e->arities);
  TS_VEC_FREE(&e->forms);
}

void ts_expr_terms_deinit(ts_expr_terms *terms) {
  TS_VEC_FREE(&terms->sources);
  TS_VEC_FREE(&terms->nodes);
  TS_VEC_FREE(&terms->examples);
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

/* CLOSED are loops and blocks: what is inside of them uses their operands only, and each has a rule of its own. */
typedef enum frame_kind { FRAME_STEP, FRAME_ALIAS, FRAME_CLOSED, FRAME_ELEM } frame_kind;

/* A node whose operands are being read; its parts of the stacks begin there. */
typedef struct frame {
  ERL_NIF_TERM node, id;
  uint32_t hash, form;
  uint32_t arity; /* how many results; of an element its index */
  frame_kind kind;
  size_t words, statics, terms, operands, operand_count;
} frame;

/* Terms do not move during a call: a node that was met lately is told by its address, without a look inside. */
enum { RECENT_NODES = 256 };

typedef struct recent_node {
  ERL_NIF_TERM node;
  uint32_t value;
} recent_node;

typedef struct reader {
  ErlNifEnv *env;
  size_t limit, closed_count;
  ts_expr *e;
  ts_expr_terms *terms;
  ts_expr_outcome outcome;
  ts_expr_forms forms;
  ts_expr_table by_id, by_rule, by_source;
  recent_node nodes[RECENT_NODES];
  TS_VEC(ERL_NIF_TERM) scoped;
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

/* Of a list that was walked. */
static ts_status end_list(reader *r, ERL_NIF_TERM rest) {
  return enif_is_empty_list(r->env, rest) ? TS_SUCCESS : stop(r, TS_EXPR_OTHER);
}

static recent_node *recent_of(reader *r, ERL_NIF_TERM node) { return &r->nodes[ts_expr_mix(0, node) % RECENT_NODES]; }

static bool field(const reader *r, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *out) {
  return enif_get_map_value(r->env, map, key, out);
}

static ts_status get_form(reader *r, ERL_NIF_TERM node, uint32_t *out) {
  ERL_NIF_TERM type, shape, axes;
  if (!field(r, node, atom.type_, &type) || !field(r, node, atom.shape_, &shape) ||
      !field(r, node, atom.vectorized_axes_, &axes))
    return stop(r, TS_EXPR_OTHER);
  TS_TRY(ts_expr_form(&r->forms, type, axes, shape, r->e, out));
  return *out == TS_NO_ID ? stop(r, TS_EXPR_OTHER) : TS_SUCCESS;
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

/* Nodes are looked for in lists, but not in tuples, nor in maps. */
static ts_status put_argument(reader *r, ERL_NIF_TERM term, bool in_tuple, int depth) {
  ERL_NIF_TERM head;
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
  case ERL_NIF_TERM_TYPE_MAP: /* a node, or else whoever visits it finds out */
    if (in_tuple) return stop(r, TS_EXPR_OTHER);
    TS_TRY(TS_VEC_PUSH(&r->operand_terms, term));
    return put_word(r, WORD_NODE, 0);
  case ERL_NIF_TERM_TYPE_LIST:
    TS_TRY(put_word(r, WORD_LIST, 0));
    while (enif_get_list_cell(r->env, term, &head, &term)) TS_TRY(put_argument(r, head, in_tuple, depth + 1));
    TS_TRY(end_list(r, term));
    return put_word(r, WORD_END, 0);
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
  TS_TRY(TS_VEC_PUSH(&r->e->arities, f->arity));
  TS_TRY(TS_VEC_PUSH(&r->terms->nodes, f->node));
  TS_TRY(TS_VEC_PUSH(&r->terms->examples, (uint32_t)r->e->values.count)); /* which comes next */
  return ts_expr_table_add(&r->by_rule, hash, number);
}

/* The rule of a node, with the forms of what it reads. */
static ts_status find_rule(reader *r, const frame *f, uint32_t *out) {
  for (size_t i = f->operands; i < r->operands.count; i++) {
    uint32_t form = r->e->values.data[r->operands.data[i]].form;
    if (form == TS_NO_ID) return stop(r, TS_EXPR_OTHER);
    TS_TRY(TS_VEC_PUSH(&r->words, form));
  }
  uint32_t hash = (uint32_t)ts_hash64(r->words.data + f->words, (r->words.count - f->words) * sizeof *r->words.data);
  for (size_t at = hash; (*out = ts_expr_table_next(&r->by_rule, hash, &at)) != TS_NO_ID;)
    if (is_rule(r, &r->rules.data[*out], f)) return TS_SUCCESS;
  *out = (uint32_t)r->rules.count;
  return add_rule(r, f, hash, *out);
}

/* ---- leaves ---- */

/* What tells a tensor from others: its backend and what that holds. */
static bool get_state(const reader *r, ERL_NIF_TERM tensor, ERL_NIF_TERM *out_struct, ERL_NIF_TERM *out_state) {
  ERL_NIF_TERM data;
  return field(r, tensor, atom.data_, &data) && field(r, data, atom.struct_, out_struct) &&
         field(r, data, atom.state_, out_state);
}

/* False for a tensor that is like no other. */
static bool hash_source(const reader *r, ERL_NIF_TERM leaf, uint32_t form, uint32_t *out) {
  ERL_NIF_TERM name, state = leaf;
  ErlNifBinary bytes;
  bool is_tensor = enif_is_map(r->env, leaf);
  if (is_tensor && !get_state(r, leaf, &name, &state)) return false;
  uint64_t hash = enif_inspect_binary(r->env, state, &bytes) ? ts_hash64(bytes.data, bytes.size)
                                                             : enif_hash(ERL_NIF_INTERNAL_HASH, state, 0);
  *out = (uint32_t)(hash ^ hash >> 32) + (is_tensor ? form + 1 : 0);
  return true;
}

/* Leaves with one position, and tensors of one form with the same bytes, are one parameter: so another value of a
 * tensor that the function holds needs no other program. */
static bool is_same_source(const reader *r, ERL_NIF_TERM a, ERL_NIF_TERM b) {
  ERL_NIF_TERM name_a, name_b, state_a, state_b;
  if (!enif_is_map(r->env, a) || !enif_is_map(r->env, b)) return enif_is_identical(a, b);
  return get_state(r, a, &name_a, &state_a) && get_state(r, b, &name_b, &state_b) && name_a == name_b &&
         enif_is_identical(state_a, state_b);
}

static ts_status check_source(const reader *r, uint32_t param, uint32_t form) {
  const ts_type *a = &r->e->forms.data[r->e->params.data[param]], *b = &r->e->forms.data[form];
  if (r->e->params.data[param] == form) return TS_SUCCESS;
  return ts_error(TS_INTERNAL, "parameter %u is %s and %s", param, TS_SHAPE_STR(a->dtype, &a->shape),
                  TS_SHAPE_STR(b->dtype, &b->shape));
}

static ts_status find_source(reader *r, uint32_t number, uint32_t form, uint32_t *out) {
  uint32_t hash = 0;
  if (number >= r->leaves.count) return ts_error(TS_INTERNAL, "leaf %u of %zu", number, r->leaves.count);
  ERL_NIF_TERM leaf = r->leaves.data[number];
  bool has_like = hash_source(r, leaf, form, &hash);
  for (size_t at = hash; has_like && (*out = ts_expr_table_next(&r->by_source, hash, &at)) != TS_NO_ID;) {
    if (!is_same_source(r, r->terms->sources.data[*out], leaf)) continue;
    if (!enif_is_map(r->env, leaf)) return check_source(r, *out, form);
    if (r->e->params.data[*out] == form) return TS_SUCCESS;
  }
  *out = (uint32_t)r->e->params.count;
  TS_TRY(TS_VEC_PUSH(&r->e->params, form));
  TS_TRY(TS_VEC_PUSH(&r->terms->sources, leaf));
  return has_like ? ts_expr_table_add(&r->by_source, hash, *out) : TS_SUCCESS;
}

/* Parameters are numbered in the order in which they are used. */
static ts_status use(reader *r, uint32_t value) {
  ts_expr_value *v = &r->e->values.data[value];
  if (v->rule != TS_NO_ID || v->count != TS_NO_ID) return TS_SUCCESS;
  return find_source(r, v->first, v->form, &v->count);
}

/* ---- nodes ---- */

static void meet(reader *r, ERL_NIF_TERM node, uint32_t value) { *recent_of(r, node) = (recent_node){node, value}; }

static ts_status remember(reader *r, ERL_NIF_TERM node, ERL_NIF_TERM id, uint32_t hash, uint32_t value) {
  if (r->known.count >= r->limit) return stop(r, TS_EXPR_LONG);
  meet(r, node, value);
  TS_TRY(TS_VEC_PUSH(&r->known, ((known){id, value})));
  return ts_expr_table_add(&r->by_id, hash, (uint32_t)r->known.count - 1);
}

static ts_status add_leaf(reader *r, uint32_t form, ERL_NIF_TERM args, uint32_t *out) {
  ERL_NIF_TERM leaf, rest;
  if (!enif_get_list_cell(r->env, args, &leaf, &rest)) return stop(r, TS_EXPR_OTHER);
  *out = (uint32_t)r->e->values.count;
  TS_TRY(TS_VEC_PUSH(&r->e->values, ((ts_expr_value){TS_NO_ID, form, (uint32_t)r->leaves.count, TS_NO_ID})));
  return TS_VEC_PUSH(&r->leaves, leaf);
}

static bool is_scoped(const reader *r, ERL_NIF_TERM op) {
  for (size_t i = 0; i < r->scoped.count; i++)
    if (r->scoped.data[i] == op) return true;
  return false;
}

static ts_status put_operand(reader *r, ERL_NIF_TERM node) { return TS_VEC_PUSH(&r->operand_terms, node); }

/* Nodes in tuples; other containers are for others. */
static ts_status put_container(reader *r, ERL_NIF_TERM term, int depth) {
  const ERL_NIF_TERM *f;
  int count;
  if (enif_is_map(r->env, term)) return put_operand(r, term);
  if (depth > DEEPEST || !enif_get_tuple(r->env, term, &count, &f)) return stop(r, TS_EXPR_OTHER);
  for (int i = 0; i < count; i++) TS_TRY(put_container(r, f[i], depth + 1));
  return TS_SUCCESS;
}

/* The nodes in a list of arguments. */
static ts_status put_nodes(reader *r, ERL_NIF_TERM list) {
  ERL_NIF_TERM head;
  while (enif_get_list_cell(r->env, list, &head, &list))
    if (enif_is_map(r->env, head)) TS_TRY(put_operand(r, head));
  return end_list(r, list);
}

/* while: [Initial | _]; block: [Struct, Args | _]; optional: [Node, whose arguments they are | _]. */
static ts_status put_closed(reader *r, ERL_NIF_TERM op, ERL_NIF_TERM args) {
  ERL_NIF_TERM first, rest, data, nodes;
  TS_TRY(put_word(r, op, r->closed_count++));
  if (!enif_get_list_cell(r->env, args, &first, &rest)) return stop(r, TS_EXPR_OTHER);
  if (op == atom.while_) return put_container(r, first, 0);
  bool found = op == atom.block_ ? enif_get_list_cell(r->env, rest, &nodes, &rest)
                                 : field(r, first, atom.data_, &data) && field(r, data, atom.args_, &nodes);
  return found ? put_nodes(r, nodes) : stop(r, TS_EXPR_OTHER);
}

static ts_status put_elem(reader *r, frame *f, ERL_NIF_TERM args) {
  ERL_NIF_TERM tuple, index;
  if (!enif_get_list_cell(r->env, args, &tuple, &args) || !enif_get_list_cell(r->env, args, &index, &args) ||
      !enif_get_uint(r->env, index, &f->arity))
    return stop(r, TS_EXPR_OTHER);
  return put_operand(r, tuple);
}

static ts_status put_arguments(reader *r, const frame *f, ERL_NIF_TERM op, ERL_NIF_TERM args) {
  ERL_NIF_TERM head;
  TS_TRY(put_word(r, op, f->form));
  while (enif_get_list_cell(r->env, args, &head, &args)) {
    TS_TRY(put_argument(r, head, false, 0));
    if (f->kind == FRAME_ALIAS) return TS_SUCCESS;
  }
  return end_list(r, args);
}

/* The words of a node, and the nodes among its arguments. */
static ts_status begin(reader *r, frame *f, ERL_NIF_TERM op, ERL_NIF_TERM args) {
  f->words = r->words.count, f->statics = r->statics.count;
  f->terms = r->operand_terms.count, f->operands = r->operands.count;
  switch (f->kind) {
  case FRAME_CLOSED: TS_TRY(put_closed(r, op, args)); break;
  case FRAME_ELEM: TS_TRY(put_elem(r, f, args)); break;
  default: TS_TRY(put_arguments(r, f, op, args)); break;
  }
  f->operand_count = r->operand_terms.count - f->terms;
  if (f->kind == FRAME_ALIAS && f->operand_count != 1) return stop(r, TS_EXPR_OTHER);
  r->frames.count++;
  return TS_SUCCESS;
}

static frame_kind kind_of(ERL_NIF_TERM op) {
  if (op == atom.metadata_) return FRAME_ALIAS;
  if (op == atom.elem_) return FRAME_ELEM;
  return op == atom.while_ || op == atom.block_ || op == atom.optional_ ? FRAME_CLOSED : FRAME_STEP;
}

/* {tuple, N} is the type of several results. */
static bool is_tuple(const reader *r, ERL_NIF_TERM node, uint32_t *out) {
  ERL_NIF_TERM type;
  const ERL_NIF_TERM *f;
  int count;
  return field(r, node, atom.type_, &type) && enif_get_tuple(r->env, type, &count, &f) && count == 2 &&
         f[0] == atom.tuple_ && enif_get_uint(r->env, f[1], out) && *out > 1;
}

/* How many results, and the form where it is one. */
static ts_status get_result(reader *r, frame *f, ERL_NIF_TERM node) {
  f->arity = 1;
  f->form = TS_NO_ID;
  if (f->kind == FRAME_CLOSED && is_tuple(r, node, &f->arity)) return TS_SUCCESS;
  return get_form(r, node, &f->form);
}

/* A node that was not seen before: *out is its value when it is a leaf, else it has a frame from now on. */
static ts_status enter(reader *r, ERL_NIF_TERM node, ERL_NIF_TERM data, ERL_NIF_TERM id, uint32_t hash, uint32_t *out) {
  ERL_NIF_TERM name, op, args;
  if (!field(r, data, atom.struct_, &name) || name != atom.expr_ || !field(r, data, atom.op_, &op) ||
      !field(r, data, atom.args_, &args) || is_scoped(r, op))
    return stop(r, TS_EXPR_OTHER);
  TS_TRY(TS_VEC_RESERVE(&r->frames, r->frames.count + 1));
  frame *f = &r->frames.data[r->frames.count];
  f->kind = kind_of(op);
  TS_TRY(get_result(r, f, node));
  if (op == atom.parameter_ || op == atom.tensor_) {
    TS_TRY(add_leaf(r, f->form, args, out));
    return remember(r, node, id, hash, *out);
  }
  f->node = node, f->id = id, f->hash = hash;
  return begin(r, f, op, args);
}

static ts_status visit(reader *r, ERL_NIF_TERM node, uint32_t *out) {
  ERL_NIF_TERM data, id;
  uint32_t at_id;
  const recent_node *recent = recent_of(r, node);
  *out = recent->value;
  if (recent->node == node) return TS_SUCCESS;
  *out = TS_NO_ID;
  if (!field(r, node, atom.data_, &data) || !field(r, data, atom.id_, &id)) return stop(r, TS_EXPR_OTHER);
  uint32_t hash = (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, id, 0);
  for (size_t at = hash; (at_id = ts_expr_table_next(&r->by_id, hash, &at)) != TS_NO_ID;) {
    const known *k = &r->known.data[at_id];
    if (!enif_is_identical(k->id, id)) continue;
    *out = k->value;
    meet(r, node, *out);
    return TS_SUCCESS;
  }
  return enter(r, node, data, id, hash, out);
}

/* The value of the last frame, a copy of its rule on the operands. */
static ts_status add_value(reader *r, const frame *f, uint32_t *out) {
  uint32_t number;
  TS_TRY(find_rule(r, f, &number));
  *out = (uint32_t)r->e->values.count;
  uint32_t first = (uint32_t)r->e->uses.count, count = (uint32_t)f->operand_count;
  TS_TRY(TS_VEC_RESERVE(&r->e->uses, r->e->uses.count + count));
  for (uint32_t i = 0; i < count; i++) r->e->uses.data[r->e->uses.count++] = r->operands.data[f->operands + i];
  return TS_VEC_PUSH(&r->e->values, ((ts_expr_value){number, f->form, first, count}));
}

static ts_status add_elem(reader *r, const frame *f, uint32_t *out) {
  uint32_t tuple = r->operands.data[f->operands];
  const ts_expr_value *v = &r->e->values.data[tuple];
  if (v->rule >= r->rules.count || v->form != TS_NO_ID || f->arity >= r->e->arities.data[v->rule])
    return stop(r, TS_EXPR_OTHER);
  *out = (uint32_t)r->e->values.count;
  return TS_VEC_PUSH(&r->e->values, ((ts_expr_value){TS_EXPR_ELEM, f->form, tuple, f->arity}));
}

/* All operands of the last frame are there. */
static ts_status leave(reader *r, uint32_t *out) {
  const frame *f = &r->frames.data[--r->frames.count];
  switch (f->kind) {
  case FRAME_ALIAS: *out = r->operands.data[f->operands]; break;
  case FRAME_ELEM: TS_TRY(add_elem(r, f, out)); break;
  default: TS_TRY(add_value(r, f, out)); break;
  }
  r->words.count = f->words;
  r->statics.count = f->statics;
  r->operand_terms.count = f->terms;
  r->operands.count = f->operands;
  return remember(r, f->node, f->id, f->hash, *out);
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
    if (r->frames.data[r->frames.count - 1].kind != FRAME_ALIAS) TS_TRY(use(r, value));
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
    if (r->e->values.data[value].form == TS_NO_ID) return stop(r, TS_EXPR_OTHER);
    TS_TRY(TS_VEC_PUSH(&r->e->results, value));
  }
  TS_TRY(end_list(r, roots));
  for (size_t i = 0; i < r->e->results.count; i++) TS_TRY(use(r, r->e->results.data[i]));
  r->e->rule_count = (uint32_t)r->rules.count;
  return TS_SUCCESS;
}

static ts_status get_scoped(reader *r, ERL_NIF_TERM ops) {
  ERL_NIF_TERM head;
  while (enif_get_list_cell(r->env, ops, &head, &ops)) TS_TRY(TS_VEC_PUSH(&r->scoped, head));
  return TS_SUCCESS;
}

static void reader_deinit(reader *r) {
  ts_expr_forms_deinit(&r->forms);
  ts_expr_table_deinit(&r->by_id);
  ts_expr_table_deinit(&r->by_rule);
  ts_expr_table_deinit(&r->by_source);
  TS_VEC_FREE(&r->scoped);
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
  reader r = {.env = env, .forms = {.env = env}, .limit = limit, .e = e, .terms = terms};
  ts_status status = get_scoped(&r, scoped);
  if (!status) status = read_roots(&r, roots);
  reader_deinit(&r);
  *out = r.outcome;
  if (r.outcome == TS_EXPR_READ) return status;
  ts_status_free(status);
  return TS_SUCCESS;
}
