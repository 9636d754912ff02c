#include "nif/expr/nif_expr_terms.h"

#include "base/map.h"
#include "front/expr_reader.h"

#include <string.h>

_Static_assert(sizeof(ERL_NIF_TERM) <= sizeof(ts_expr_term), "a term is a word");

/* clang-format off */
#define EXPR_ATOMS(X) \
  X(data) X(id) X(op) X(args) X(type) X(shape) X(vectorized_axes) X(parameter) X(tensor) X(metadata) \
  X(tuple) X(elem) X(while) X(block) X(optional) X(constant) X(state)
/* clang-format on */

static struct {
#define X(name) ERL_NIF_TERM name##_;
  EXPR_ATOMS(X)
#undef X
  ERL_NIF_TERM struct_, expr_;
} atom;

/* {f, 32} and so on: kind and bits of each type. */
static struct {
  ERL_NIF_TERM kind;
  int bits;
} types[TS_DTYPE_COUNT];

void ts_nif_expr_terms_init(ErlNifEnv *env) {
#define X(name) atom.name##_ = enif_make_atom(env, #name);
  EXPR_ATOMS(X)
#undef X
  atom.struct_ = enif_make_atom(env, "__struct__");
  atom.expr_ = enif_make_atom(env, "Elixir.Nx.Defn.Expr");
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    const char *name = ts_dtype_name((ts_dtype)t);
    /* {f, 8} is e5m2, so e4m3fn has its whole name. */
    size_t length = t == TS_F8E4M3FN ? strlen(name) : strcspn(name, "0123456789");
    types[t].kind = enif_make_atom_len(env, name, length);
    types[t].bits = ts_dtype_supported((ts_dtype)t) ? ts_dtype_bits((ts_dtype)t) : 0;
  }
}

static bool field(ErlNifEnv *env, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *out) {
  return enif_get_map_value(env, map, key, out);
}

/* ---- nodes ---- */

static ts_expr_node_kind kind_of(ERL_NIF_TERM op) {
  if (op == atom.parameter_) return TS_EXPR_NODE_PARAMETER;
  if (op == atom.tensor_) return TS_EXPR_NODE_TENSOR;
  if (op == atom.metadata_) return TS_EXPR_NODE_ALIAS;
  if (op == atom.elem_) return TS_EXPR_NODE_ELEM;
  return op == atom.while_ || op == atom.block_ || op == atom.optional_ ? TS_EXPR_NODE_CLOSED : TS_EXPR_NODE_STEP;
}

static bool get_node(void *env, ts_expr_term term, ts_expr_node *out) {
  ERL_NIF_TERM data, name, op, args;
  if (!field(env, term, atom.data_, &data) || !field(env, data, atom.struct_, &name) || name != atom.expr_ ||
      !field(env, data, atom.op_, &op) || !field(env, data, atom.args_, &args))
    return false;
  *out = (ts_expr_node){kind_of(op), term, data, op, args};
  return true;
}

static bool get_id(void *env, const ts_expr_node *n, ts_expr_term *out, uint32_t *out_hash) {
  ERL_NIF_TERM id;
  if (!field(env, n->data, atom.id_, &id)) return false;
  *out = id;
  *out_hash = (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, id, 0);
  return true;
}

static bool is_equal(void *env, ts_expr_term a, ts_expr_term b) {
  (void)env;
  return enif_is_identical(a, b);
}

/* {tuple, N} is the type of several results. */
static uint32_t results_of(void *env, const ts_expr_node *n) {
  ERL_NIF_TERM type;
  const ERL_NIF_TERM *f;
  int count;
  unsigned results;
  const bool is_tuple = field(env, n->term, atom.type_, &type) && enif_get_tuple(env, type, &count, &f) && count == 2 &&
                        f[0] == atom.tuple_ && enif_get_uint(env, f[1], &results);
  return is_tuple && results > 1 ? results : 1;
}

/* ---- forms: kind and bits of the type, and the dims, with vectorized axes first ---- */

static bool put_dim(ts_expr_form_key *key, ERL_NIF_TERM dim) {
  if (key->count == TS_EXPR_TYPE_WORDS + TS_MAX_RANK) return false;
  key->words[key->count++] = dim;
  return true;
}

static bool get_form_key(void *env, const ts_expr_node *n, ts_expr_form_key *out) {
  ERL_NIF_TERM type, shape, axes, head;
  const ERL_NIF_TERM *f;
  int count;
  if (!field(env, n->term, atom.type_, &type) || !field(env, n->term, atom.shape_, &shape) ||
      !field(env, n->term, atom.vectorized_axes_, &axes))
    return false;
  if (!enif_get_tuple(env, type, &count, &f) || count != 2) return false;
  out->words[0] = f[0], out->words[1] = f[1];
  out->count = TS_EXPR_TYPE_WORDS;
  while (enif_get_list_cell(env, axes, &head, &axes))
    if (!enif_get_tuple(env, head, &count, &f) || count != 2 || !put_dim(out, f[1])) return false;
  if (!enif_is_empty_list(env, axes) || !enif_get_tuple(env, shape, &count, &f)) return false;
  for (int i = 0; i < count; i++)
    if (!put_dim(out, f[i])) return false;
  return true;
}

static bool get_type(ErlNifEnv *env, const ts_expr_form_key *key, ts_dtype *out) {
  int bits;
  if (!enif_get_int(env, key->words[1], &bits)) return false;
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    if (types[t].bits != bits || types[t].kind != key->words[0]) continue;
    *out = (ts_dtype)t;
    return true;
  }
  return false;
}

static bool get_form(void *env, const ts_expr_form_key *key, ts_type *out) {
  ErlNifSInt64 dim;
  out->shape = (ts_shape){0};
  if (!get_type(env, key, &out->dtype)) return false;
  for (size_t i = TS_EXPR_TYPE_WORDS; i < key->count; i++) {
    if (!enif_get_int64(env, key->words[i], &dim) || dim < 0) return false;
    out->shape.dims[out->shape.rank++] = dim;
  }
  return true;
}

/* ---- arguments ---- */

/* Limit for the nesting of arguments. */
enum { DEEPEST = 8 };

typedef struct arguments {
  ErlNifEnv *env;
  ts_expr_reader *reader;
} arguments;

static ts_status stop(const arguments *a) { return ts_expr_stop(a->reader, TS_EXPR_OTHER); }

/* The end of a list that was walked: an improper one is not a plain step. */
static ts_status end_list(const arguments *a, ERL_NIF_TERM rest) {
  return enif_is_empty_list(a->env, rest) ? TS_SUCCESS : stop(a);
}

static uint32_t hash_of(ERL_NIF_TERM term) { return (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, term, 0); }

static ts_status put_integer(const arguments *a, ERL_NIF_TERM term) {
  ErlNifSInt64 integer;
  if (!enif_get_int64(a->env, term, &integer)) return ts_expr_put_term(a->reader, term, hash_of(term));
  const bool is_small = integer < INT64_C(1) << 59 && integer >= -(INT64_C(1) << 59);
  return ts_expr_put_integer(a->reader, integer, term, is_small ? 0 : hash_of(term));
}

static ts_status put_float(const arguments *a, ERL_NIF_TERM term) {
  double number;
  return enif_get_double(a->env, term, &number) ? ts_expr_put_float(a->reader, number) : stop(a);
}

/* Nodes are searched for in lists, but not in tuples or maps. */
static ts_status put_argument(const arguments *a, ERL_NIF_TERM term, bool in_tuple, int depth) {
  ERL_NIF_TERM head;
  const ERL_NIF_TERM *f;
  int count;
  if (depth > DEEPEST) return stop(a);
  switch (enif_term_type(a->env, term)) {
  case ERL_NIF_TERM_TYPE_ATOM: return ts_expr_put_atom(a->reader, term);
  case ERL_NIF_TERM_TYPE_INTEGER: return put_integer(a, term);
  case ERL_NIF_TERM_TYPE_FLOAT: return put_float(a, term);
  case ERL_NIF_TERM_TYPE_MAP: /* a node; its visit reports other maps */
    return in_tuple ? stop(a) : ts_expr_put_node(a->reader, term);
  case ERL_NIF_TERM_TYPE_LIST:
    TS_TRY(ts_expr_put_list(a->reader));
    while (enif_get_list_cell(a->env, term, &head, &term)) TS_TRY(put_argument(a, head, in_tuple, depth + 1));
    TS_TRY(end_list(a, term));
    return ts_expr_put_end(a->reader);
  case ERL_NIF_TERM_TYPE_TUPLE:
    if (!enif_get_tuple(a->env, term, &count, &f)) return stop(a);
    TS_TRY(ts_expr_put_tuple(a->reader));
    for (int i = 0; i < count; i++) TS_TRY(put_argument(a, f[i], true, depth + 1));
    return ts_expr_put_end(a->reader);
  default: return ts_expr_put_term(a->reader, term, hash_of(term));
  }
}

static ts_status put_arguments(const arguments *a, ERL_NIF_TERM args) {
  ERL_NIF_TERM head;
  while (enif_get_list_cell(a->env, args, &head, &args)) TS_TRY(put_argument(a, head, false, 0));
  return end_list(a, args);
}

/* Puts the nodes in tuples; other containers are not plain steps. */
static ts_status put_container(const arguments *a, ERL_NIF_TERM term, int depth) {
  const ERL_NIF_TERM *f;
  int count;
  if (enif_is_map(a->env, term)) return ts_expr_put_operand(a->reader, term);
  if (depth > DEEPEST || !enif_get_tuple(a->env, term, &count, &f)) return stop(a);
  for (int i = 0; i < count; i++) TS_TRY(put_container(a, f[i], depth + 1));
  return TS_SUCCESS;
}

/* Puts the nodes in a list of arguments. */
static ts_status put_nodes(const arguments *a, ERL_NIF_TERM list) {
  ERL_NIF_TERM head;
  while (enif_get_list_cell(a->env, list, &head, &list))
    if (enif_is_map(a->env, head)) TS_TRY(ts_expr_put_operand(a->reader, head));
  return end_list(a, list);
}

/* while: [Initial | _]; block: [Struct, Args | _]; optional: [Node with its arguments | _]. */
static ts_status put_closed(const arguments *a, ERL_NIF_TERM op, ERL_NIF_TERM args) {
  ERL_NIF_TERM first, rest, data, nodes;
  if (!enif_get_list_cell(a->env, args, &first, &rest)) return stop(a);
  if (op == atom.while_) return put_container(a, first, 0);
  bool found = op == atom.block_ ? enif_get_list_cell(a->env, rest, &nodes, &rest)
                                 : field(a->env, first, atom.data_, &data) && field(a->env, data, atom.args_, &nodes);
  return found ? put_nodes(a, nodes) : stop(a);
}

/* Of an alias and an element the first argument. */
static ts_status put_first(const arguments *a, ERL_NIF_TERM args) {
  ERL_NIF_TERM first;
  if (!enif_get_list_cell(a->env, args, &first, &args) || !enif_is_map(a->env, first)) return stop(a);
  return ts_expr_put_operand(a->reader, first);
}

static ts_status arguments_of(void *env, const ts_expr_node *n, ts_expr_reader *reader) {
  const arguments a = {env, reader};
  switch (n->kind) {
  case TS_EXPR_NODE_STEP: return put_arguments(&a, n->arguments);
  case TS_EXPR_NODE_CLOSED: return put_closed(&a, n->op, n->arguments);
  case TS_EXPR_NODE_ALIAS:
  case TS_EXPR_NODE_ELEM: return put_first(&a, n->arguments);
  case TS_EXPR_NODE_PARAMETER:
  case TS_EXPR_NODE_TENSOR: break;
  }
  return TS_SUCCESS;
}

static bool get_index(void *env, const ts_expr_node *n, uint32_t *out) {
  ERL_NIF_TERM first, index, args = n->arguments;
  unsigned number;
  if (!enif_get_list_cell(env, args, &first, &args) || !enif_get_list_cell(env, args, &index, &args) ||
      !enif_get_uint(env, index, &number))
    return false;
  *out = number;
  return true;
}

static bool get_number(void *env, const ts_expr_node *n, ts_number *out) {
  ERL_NIF_TERM number, args = n->arguments;
  return n->op == atom.constant_ && enif_get_list_cell(env, args, &number, &args) && enif_is_empty_list(env, args) &&
         ts_nif_get_number(env, number, out);
}

/* ---- parameters and tensors ---- */

static bool get_leaf(void *env, const ts_expr_node *n, ts_expr_term *out, uint32_t *out_position) {
  ERL_NIF_TERM leaf, args = n->arguments;
  unsigned position;
  if (!enif_get_list_cell(env, args, &leaf, &args)) return false;
  *out = leaf;
  *out_position = enif_get_uint(env, leaf, &position) ? position : TS_NO_ID;
  return true;
}

/* The parts that identify a tensor: its backend's struct and state. */
static bool get_state(ErlNifEnv *env, ERL_NIF_TERM tensor, ERL_NIF_TERM *out_struct, ERL_NIF_TERM *out_state) {
  ERL_NIF_TERM data;
  return field(env, tensor, atom.data_, &data) && field(env, data, atom.struct_, out_struct) &&
         field(env, data, atom.state_, out_state);
}

static uint32_t folded(uint64_t hash) { return (uint32_t)(hash ^ hash >> 32); }

static bool hash_leaf(void *env, ts_expr_term leaf, uint32_t *out) {
  ERL_NIF_TERM name, state;
  ErlNifBinary bytes;
  unsigned position;
  if (enif_get_uint(env, leaf, &position))
    *out = folded((uint64_t)position * UINT64_C(0x9E3779B97F4A7C15));
  else if (!enif_is_map(env, leaf))
    *out = hash_of(leaf);
  else if (!get_state(env, leaf, &name, &state))
    return false;
  else
    *out = enif_inspect_binary(env, state, &bytes) ? folded(ts_hash64(bytes.data, bytes.size)) : hash_of(state);
  return true;
}

static bool is_same_leaf(void *env, ts_expr_term a, ts_expr_term b) {
  ERL_NIF_TERM name_a, name_b, state_a, state_b;
  if (a == b) return true;
  if (!enif_is_map(env, a) || !enif_is_map(env, b)) return enif_is_identical(a, b);
  return get_state(env, a, &name_a, &state_a) && get_state(env, b, &name_b, &state_b) && name_a == name_b &&
         enif_is_identical(state_a, state_b);
}

static bool is_tensor(void *env, ts_expr_term leaf) { return enif_is_map(env, leaf); }

ts_expr_source ts_nif_expr_source(ErlNifEnv *env) {
  return (ts_expr_source){.context = env,
                          .node = get_node,
                          .id = get_id,
                          .is_equal = is_equal,
                          .results = results_of,
                          .form_key = get_form_key,
                          .form = get_form,
                          .arguments = arguments_of,
                          .index = get_index,
                          .number = get_number,
                          .leaf = get_leaf,
                          .hash_leaf = hash_leaf,
                          .is_same_leaf = is_same_leaf,
                          .is_tensor = is_tensor};
}
