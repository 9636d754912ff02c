/* Reads expressions: a walk from the results to the leaves with an explicit stack. Nodes are identified by their ids,
 * rules by op, type, shape, arguments and the forms of the operands. */
#include "nif/nif_expr_reader.h"

#include <string.h>

/* clang-format off */
#define EXPR_ATOMS(X) \
  X(data) X(id) X(op) X(args) X(type) X(shape) X(vectorized_axes) X(parameter) X(tensor) X(metadata) \
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
  ts_expr_sources_init(env);
  ts_expr_rules_init(env);
}

typedef struct ts_expr_reader reader;

ts_status ts_expr_stop(reader *r, ts_expr_outcome why) {
  r->outcome = why;
  return ts_error(TS_UNIMPLEMENTED, "the expression is read in another way");
}

ts_status ts_expr_end_list(ts_expr_reader *r, ERL_NIF_TERM rest) {
  return enif_is_empty_list(r->env, rest) ? TS_SUCCESS : ts_expr_stop(r, TS_EXPR_OTHER);
}

static bool field(const reader *r, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *out) {
  return enif_get_map_value(r->env, map, key, out);
}

static ts_status get_form(reader *r, ERL_NIF_TERM node, uint32_t *out) {
  ERL_NIF_TERM type, shape, axes;
  if (!field(r, node, atom.type_, &type) || !field(r, node, atom.shape_, &shape) ||
      !field(r, node, atom.vectorized_axes_, &axes))
    return ts_expr_stop(r, TS_EXPR_OTHER);
  TS_TRY(ts_expr_form(&r->forms, type, axes, shape, &r->e, out));
  return *out == TS_NO_ID ? ts_expr_stop(r, TS_EXPR_OTHER) : TS_SUCCESS;
}

/* ---- nodes ---- */

/* Numbers parameters in the order of first use. */
static ts_status use_leaf(reader *r, ts_expr_value *v) {
  if (v->first >= r->leaves.count) return ts_error(TS_INTERNAL, "leaf %u of %zu", v->first, r->leaves.count);
  const ts_expr_leaf *leaf = &r->leaves.data[v->first];
  if (leaf->is_new) return ts_expr_source_add(leaf->term, v->form, &r->e, &r->terms, &v->count);
  return ts_expr_source(&r->sources, leaf->term, v->form, &r->e, &r->terms, &v->count);
}

static inline ts_status use(reader *r, uint32_t value) {
  ts_expr_value *v = &r->e.values.data[value];
  return v->rule != TS_NO_ID || v->count != TS_NO_ID ? TS_SUCCESS : use_leaf(r, v);
}

/* Registers a node before it has a value. */
static ts_status begin_known(reader *r, ERL_NIF_TERM id, uint32_t hash, uint32_t *out) {
  if (r->known.count >= r->limit) return ts_expr_stop(r, TS_EXPR_LONG);
  *out = (uint32_t)r->known.count;
  TS_TRY(TS_VEC_PUSH(&r->known, ((ts_expr_known){id, TS_NO_ID})));
  return ts_expr_table_add(&r->by_id, hash, *out);
}

static ts_status add_leaf(reader *r, uint32_t form, ERL_NIF_TERM leaf, bool is_new, uint32_t *out) {
  *out = (uint32_t)r->e.values.count;
  TS_TRY(TS_VEC_PUSH(&r->e.values, ((ts_expr_value){TS_NO_ID, form, (uint32_t)r->leaves.count, TS_NO_ID})));
  return TS_VEC_PUSH(&r->leaves, ((ts_expr_leaf){leaf, is_new}));
}

static bool is_scoped(reader *r, ERL_NIF_TERM op) {
  for (size_t i = 0; i < r->scoped.count; i++)
    if (r->scoped.data[i] == op) return true;
  return false;
}

/* Pushes the nodes in tuples; other containers are not plain steps. */
static ts_status put_container(reader *r, ERL_NIF_TERM term, int depth) {
  const ERL_NIF_TERM *f;
  int count;
  if (enif_is_map(r->env, term)) return ts_expr_put_operand(r, term);
  if (depth > TS_EXPR_DEEPEST || !enif_get_tuple(r->env, term, &count, &f)) return ts_expr_stop(r, TS_EXPR_OTHER);
  for (int i = 0; i < count; i++) TS_TRY(put_container(r, f[i], depth + 1));
  return TS_SUCCESS;
}

/* Pushes the nodes in a list of arguments. */
static ts_status put_nodes(reader *r, ERL_NIF_TERM list) {
  ERL_NIF_TERM head;
  while (enif_get_list_cell(r->env, list, &head, &list))
    if (enif_is_map(r->env, head)) TS_TRY(ts_expr_put_operand(r, head));
  return ts_expr_end_list(r, list);
}

/* while: [Initial | _]; block: [Struct, Args | _]; optional: [Node with its arguments | _]. */
static ts_status put_closed(reader *r, ERL_NIF_TERM op, ERL_NIF_TERM args) {
  ERL_NIF_TERM first, rest, data, nodes;
  TS_TRY(ts_expr_put_words(r, op, r->closed_count++));
  if (!enif_get_list_cell(r->env, args, &first, &rest)) return ts_expr_stop(r, TS_EXPR_OTHER);
  if (op == atom.while_) return put_container(r, first, 0);
  bool found = op == atom.block_ ? enif_get_list_cell(r->env, rest, &nodes, &rest)
                                 : field(r, first, atom.data_, &data) && field(r, data, atom.args_, &nodes);
  return found ? put_nodes(r, nodes) : ts_expr_stop(r, TS_EXPR_OTHER);
}

static ts_status put_elem(reader *r, ts_expr_frame *f, ERL_NIF_TERM args) {
  ERL_NIF_TERM tuple, index;
  if (!enif_get_list_cell(r->env, args, &tuple, &args) || !enif_get_list_cell(r->env, args, &index, &args) ||
      !enif_get_uint(r->env, index, &f->arity))
    return ts_expr_stop(r, TS_EXPR_OTHER);
  return ts_expr_put_operand(r, tuple);
}

static ts_status put_arguments(reader *r, const ts_expr_frame *f, ERL_NIF_TERM op, ERL_NIF_TERM args) {
  ERL_NIF_TERM head;
  TS_TRY(ts_expr_put_words(r, op, f->form));
  while (enif_get_list_cell(r->env, args, &head, &args)) {
    TS_TRY(ts_expr_put_argument(r, head, false, 0));
    if (f->kind == TS_EXPR_FRAME_ALIAS) return TS_SUCCESS;
  }
  return ts_expr_end_list(r, args);
}

/* Collects the words of a node, and the nodes among its arguments. */
static ts_status begin(reader *r, ts_expr_frame *f, ERL_NIF_TERM op, ERL_NIF_TERM args) {
  f->words = (uint32_t)r->words.count, f->statics = (uint32_t)r->statics.count;
  f->operands = (uint32_t)r->operands.count;
  switch (f->kind) {
  case TS_EXPR_FRAME_CLOSED: TS_TRY(put_closed(r, op, args)); break;
  case TS_EXPR_FRAME_ELEM: TS_TRY(put_elem(r, f, args)); break;
  default: TS_TRY(put_arguments(r, f, op, args)); break;
  }
  f->operand_count = (uint32_t)r->operands.count - f->operands;
  f->read_count = 0;
  if (f->kind == TS_EXPR_FRAME_ALIAS && f->operand_count != 1) return ts_expr_stop(r, TS_EXPR_OTHER);
  r->frames.count++;
  return TS_SUCCESS;
}

static ts_expr_frame_kind kind_of(ERL_NIF_TERM op) {
  if (op == atom.metadata_) return TS_EXPR_FRAME_ALIAS;
  if (op == atom.elem_) return TS_EXPR_FRAME_ELEM;
  return op == atom.while_ || op == atom.block_ || op == atom.optional_ ? TS_EXPR_FRAME_CLOSED : TS_EXPR_FRAME_STEP;
}

/* True for {tuple, N}, the type of several results. */
static bool is_tuple(const reader *r, ERL_NIF_TERM node, uint32_t *out) {
  ERL_NIF_TERM type;
  const ERL_NIF_TERM *f;
  int count;
  return field(r, node, atom.type_, &type) && enif_get_tuple(r->env, type, &count, &f) && count == 2 &&
         f[0] == atom.tuple_ && enif_get_uint(r->env, f[1], out) && *out > 1;
}

/* Reads the number of results and, for a single one, its form. */
static ts_status get_result(reader *r, ts_expr_frame *f, ERL_NIF_TERM node) {
  f->arity = 1;
  f->form = TS_NO_ID;
  if (f->kind == TS_EXPR_FRAME_CLOSED && is_tuple(r, node, &f->arity)) return TS_SUCCESS;
  return get_form(r, node, &f->form);
}

/* The parts of a node's term, and its id's hash. */
typedef struct node_parts {
  ERL_NIF_TERM node, op, args, id;
  uint32_t hash;
} node_parts;

/* Starts a new node: *out is its value if it is a leaf, else the node has a frame on the stack. */
static ts_status enter(reader *r, const node_parts *n, uint32_t *out) {
  ERL_NIF_TERM leaf, op = n->op, args = n->args;
  if (is_scoped(r, op)) return ts_expr_stop(r, TS_EXPR_OTHER);
  TS_TRY(TS_VEC_RESERVE(&r->frames, r->frames.count + 1));
  ts_expr_frame *f = &r->frames.data[r->frames.count];
  f->kind = kind_of(op);
  TS_TRY(get_result(r, f, n->node));
  TS_TRY(begin_known(r, n->id, n->hash, &f->known));
  if (op == atom.parameter_ || op == atom.tensor_) {
    if (!enif_get_list_cell(r->env, args, &leaf, &args)) return ts_expr_stop(r, TS_EXPR_OTHER);
    TS_TRY(add_leaf(r, f->form, leaf, false, out));
    r->known.data[f->known].value = *out;
    return TS_SUCCESS;
  }
  f->node = n->node;
  return begin(r, f, op, args);
}

/* A node whose frame is still open is treated as new: a node inside of it is a different one, even if its id is the
 * same. */
static ts_status visit_step(reader *r, ERL_NIF_TERM node, ERL_NIF_TERM data, ERL_NIF_TERM op, ERL_NIF_TERM args,
                            uint32_t *out) {
  ERL_NIF_TERM id;
  uint32_t number;
  if (!field(r, data, atom.id_, &id)) return ts_expr_stop(r, TS_EXPR_OTHER);
  uint32_t hash = (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, id, 0);
  for (size_t at = hash; (number = ts_expr_table_next(&r->by_id, hash, &at)) != TS_NO_ID;) {
    const ts_expr_known *k = &r->known.data[number];
    if ((k->id != id && !enif_is_identical(k->id, id)) || k->value == TS_NO_ID) continue;
    *out = k->value;
    return TS_SUCCESS;
  }
  return enter(r, &(node_parts){node, op, args, id, hash}, out);
}

/* The place for the value of the parameter at a position; NULL when the position is out of range. */
static ts_status at_position(reader *r, ERL_NIF_TERM args, ERL_NIF_TERM *leaf, uint32_t **out) {
  unsigned position;
  *out = NULL;
  if (!enif_get_list_cell(r->env, args, leaf, &args)) return ts_expr_stop(r, TS_EXPR_OTHER);
  if (!enif_get_uint(r->env, *leaf, &position) || position >= TS_EXPR_POSITIONS) return TS_SUCCESS;
  TS_TRY(TS_VEC_RESERVE(&r->by_position, position + 1));
  while (r->by_position.count <= position) r->by_position.data[r->by_position.count++] = TS_NO_ID;
  *out = &r->by_position.data[position];
  return TS_SUCCESS;
}

/* A parameter is identified by its position. */
static ts_status visit_parameter(reader *r, ERL_NIF_TERM node, ERL_NIF_TERM data, ERL_NIF_TERM args, uint32_t *out) {
  ERL_NIF_TERM leaf;
  uint32_t *value, form;
  TS_TRY(at_position(r, args, &leaf, &value));
  if (!value) return visit_step(r, node, data, atom.parameter_, args, out);
  TS_TRY(get_form(r, node, &form));
  if (*value == TS_NO_ID) {
    if (r->e.values.count >= r->limit) return ts_expr_stop(r, TS_EXPR_LONG);
    TS_TRY(add_leaf(r, form, leaf, true, value));
  }
  *out = *value;
  if (r->e.values.data[*out].form == form) return TS_SUCCESS;
  TS_TRY(use(r, *out));
  return ts_expr_check_param(&r->e, r->e.values.data[*out].count, form);
}

/* *out is TS_NO_ID when the node has got a frame. */
static ts_status visit(reader *r, ERL_NIF_TERM node, uint32_t *out) {
  ERL_NIF_TERM data, name, op, args;
  *out = TS_NO_ID;
  if (!field(r, node, atom.data_, &data) || !field(r, data, atom.struct_, &name) || name != atom.expr_ ||
      !field(r, data, atom.op_, &op) || !field(r, data, atom.args_, &args))
    return ts_expr_stop(r, TS_EXPR_OTHER);
  return op == atom.parameter_ ? visit_parameter(r, node, data, args, out) : visit_step(r, node, data, op, args, out);
}

/* Adds the value of the last frame, which will be a copy of its rule on the operands. */
static ts_status add_value(reader *r, const ts_expr_frame *f, uint32_t *out) {
  uint32_t number;
  TS_TRY(ts_expr_find_rule(r, f, &number));
  *out = (uint32_t)r->e.values.count;
  uint32_t first = (uint32_t)r->e.uses.count, count = f->operand_count;
  TS_TRY(TS_VEC_RESERVE(&r->e.uses, first + count));
  for (uint32_t i = 0; i < count; i++) r->e.uses.data[first + i] = r->operands.data[f->operands + i].value;
  r->e.uses.count += count;
  return TS_VEC_PUSH(&r->e.values, ((ts_expr_value){number, f->form, first, count}));
}

static ts_status add_elem(reader *r, const ts_expr_frame *f, uint32_t *out) {
  uint32_t tuple = r->operands.data[f->operands].value;
  const ts_expr_value *v = &r->e.values.data[tuple];
  if (v->rule >= r->rules.count || v->form != TS_NO_ID || f->arity >= r->e.arities.data[v->rule])
    return ts_expr_stop(r, TS_EXPR_OTHER);
  *out = (uint32_t)r->e.values.count;
  return TS_VEC_PUSH(&r->e.values, ((ts_expr_value){TS_EXPR_ELEM, f->form, tuple, f->arity}));
}

/* Closes the last frame, whose operands all have values. */
static ts_status leave(reader *r, uint32_t *out) {
  const ts_expr_frame *f = &r->frames.data[--r->frames.count];
  switch (f->kind) {
  case TS_EXPR_FRAME_ALIAS: *out = r->operands.data[f->operands].value; break;
  case TS_EXPR_FRAME_ELEM: TS_TRY(add_elem(r, f, out)); break;
  default: TS_TRY(add_value(r, f, out)); break;
  }
  r->words.count = f->words;
  r->statics.count = f->statics;
  r->operands.count = f->operands;
  r->known.data[f->known].value = *out;
  return TS_SUCCESS;
}

static ts_status read_root(reader *r, ERL_NIF_TERM root, uint32_t *out) {
  TS_TRY(visit(r, root, out));
  while (r->frames.count) {
    const ts_expr_frame *last = &r->frames.data[r->frames.count - 1];
    if (last->read_count == last->operand_count) {
      TS_TRY(leave(r, out));
      if (!r->frames.count) break;
    } else {
      TS_TRY(visit(r, r->operands.data[last->operands + last->read_count].node, out));
      if (*out == TS_NO_ID) continue;
    }
    ts_expr_frame *f = &r->frames.data[r->frames.count - 1];
    if (f->kind != TS_EXPR_FRAME_ALIAS) TS_TRY(use(r, *out));
    r->operands.data[f->operands + f->read_count++].value = *out;
  }
  return TS_SUCCESS;
}

static ts_status read_roots(reader *r, ERL_NIF_TERM roots) {
  ERL_NIF_TERM head;
  uint32_t value;
  while (enif_get_list_cell(r->env, roots, &head, &roots)) {
    TS_TRY(read_root(r, head, &value));
    if (r->e.values.data[value].form == TS_NO_ID) return ts_expr_stop(r, TS_EXPR_OTHER);
    TS_TRY(TS_VEC_PUSH(&r->e.results, value));
  }
  TS_TRY(ts_expr_end_list(r, roots));
  for (size_t i = 0; i < r->e.results.count; i++) TS_TRY(use(r, r->e.results.data[i]));
  r->e.rule_count = (uint32_t)r->rules.count;
  return TS_SUCCESS;
}

static ts_status get_scoped(reader *r, ERL_NIF_TERM ops) {
  ERL_NIF_TERM head;
  while (enif_get_list_cell(r->env, ops, &head, &ops)) TS_TRY(TS_VEC_PUSH(&r->scoped, head));
  return TS_SUCCESS;
}

ts_status ts_expr_read(ts_expr_reader *r, const ts_expr_request *request, ts_expr *e, const ts_expr_terms **out_terms,
                       ts_expr_outcome *out) {
  r->limit = request->limit;
  ts_status status = get_scoped(r, request->scoped);
  if (!status) status = read_roots(r, request->roots);
  if (!status) {
    *e = r->e;
    r->e = (ts_expr){0};
  }
  *out_terms = &r->terms;
  *out = r->outcome;
  if (r->outcome == TS_EXPR_READ) return status;
  ts_status_free(status);
  return TS_SUCCESS;
}
