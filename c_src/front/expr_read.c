/* The walk of expr_reader.h. */
#include "front/expr_reader_internal.h"

#include <string.h>

/* Parameters at positions below this are found by position. */
enum { POSITIONS = 1 << 16 };

typedef struct ts_expr_reader reader;

/* Applies DO to each of the reader's arrays. */
/* clang-format off */
#define FOR_ARRAYS(r, DO) \
  DO(&(r)->terms.sources) DO(&(r)->terms.nodes) DO(&(r)->terms.examples) \
  DO(&(r)->known_forms) DO(&(r)->form_words) DO(&(r)->known) DO(&(r)->rules) DO(&(r)->rule_words) DO(&(r)->rule_statics) \
  DO(&(r)->leaves) DO(&(r)->by_position) DO(&(r)->frames) DO(&(r)->words) DO(&(r)->statics) DO(&(r)->operands)
/* clang-format on */

ts_status ts_expr_reader_create(const ts_expr_source *source, ts_expr_reader **out) {
  TS_TRY(TS_NEW(out));
  (*out)->source = source;
  (*out)->outcome = TS_EXPR_READ;
  return TS_SUCCESS;
}

void ts_expr_reader_destroy(ts_expr_reader *r) {
  ts_expr_table *tables[] = {&r->by_id, &r->by_rule, &r->by_form, &r->by_form_words, &r->by_leaf};
  ts_expr_deinit(&r->e);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) ts_expr_table_deinit(tables[i]);
#define DO(v) TS_VEC_FREE(v);
  FOR_ARRAYS(r, DO)
#undef DO
  ts_free(r);
}

/* ---- nodes ---- */

/* Numbers parameters in the order of first use. */
static inline ts_status use(reader *r, uint32_t value) {
  ts_expr_value *v = &r->e.values.data[value];
  if (v->rule != TS_NO_ID || v->count != TS_NO_ID) return TS_SUCCESS;
  if (v->first >= r->leaves.count) return ts_error(TS_INTERNAL, "leaf %u of %zu", v->first, r->leaves.count);
  return expr_use_leaf(r, &r->leaves.data[v->first], v->form, &v->count);
}

/* Registers a node before it has a value. */
static ts_status begin_known(reader *r, ts_expr_term id, uint32_t hash, uint32_t *out) {
  if (r->known.count >= r->request->limit) return ts_expr_stop(r, TS_EXPR_LONG);
  *out = (uint32_t)r->known.count;
  TS_TRY(TS_VEC_PUSH(&r->known, ((expr_known){id, TS_NO_ID})));
  return ts_expr_table_add(&r->by_id, hash, *out);
}

static ts_status add_leaf(reader *r, uint32_t form, ts_expr_term leaf, bool is_new, uint32_t *out) {
  *out = (uint32_t)r->e.values.count;
  TS_TRY(TS_VEC_PUSH(&r->e.values, ((ts_expr_value){TS_NO_ID, form, (uint32_t)r->leaves.count, TS_NO_ID})));
  return TS_VEC_PUSH(&r->leaves, ((expr_leaf){leaf, is_new}));
}

static bool is_scoped(const reader *r, ts_expr_term op) {
  for (size_t i = 0; i < r->request->scoped_count; i++)
    if (r->request->scoped[i] == op) return true;
  return false;
}

/* Collects the words of a node, and the nodes among its arguments. */
static ts_status begin(reader *r, expr_frame *f) {
  const ts_expr_source *s = r->source;
  f->words = (uint32_t)r->words.count, f->statics = (uint32_t)r->statics.count;
  f->operands = (uint32_t)r->operands.count;
  TS_TRY(expr_put_words(r, f->node.op, f->node.kind == TS_EXPR_NODE_CLOSED ? r->closed_count++ : f->form));
  if (f->node.kind == TS_EXPR_NODE_ELEM && !s->index(s->context, &f->node, &f->arity))
    return ts_expr_stop(r, TS_EXPR_OTHER);
  TS_TRY(s->arguments(s->context, &f->node, r));
  f->operand_count = (uint32_t)r->operands.count - f->operands;
  f->read_count = 0;
  if ((f->node.kind == TS_EXPR_NODE_ALIAS || f->node.kind == TS_EXPR_NODE_ELEM) && f->operand_count != 1)
    return ts_expr_stop(r, TS_EXPR_OTHER);
  r->frames.count++;
  return TS_SUCCESS;
}

/* Reads the number of results and, for a single one, its form. */
static ts_status get_result(reader *r, expr_frame *f, const ts_expr_node *n) {
  f->arity = n->kind == TS_EXPR_NODE_CLOSED ? r->source->results(r->source->context, n) : 1;
  f->form = TS_NO_ID;
  return f->arity > 1 ? TS_SUCCESS : expr_get_form(r, n, &f->form);
}

/* Starts a new node: *out is its value if it is a leaf, else the node has a frame on the stack. */
static ts_status enter(reader *r, const ts_expr_node *n, ts_expr_term id, uint32_t hash, uint32_t *out) {
  const ts_expr_source *s = r->source;
  ts_expr_term leaf;
  uint32_t position;
  if (is_scoped(r, n->op)) return ts_expr_stop(r, TS_EXPR_OTHER);
  TS_TRY(TS_VEC_RESERVE(&r->frames, r->frames.count + 1));
  expr_frame *f = &r->frames.data[r->frames.count];
  TS_TRY(get_result(r, f, n));
  TS_TRY(begin_known(r, id, hash, &f->known));
  if (n->kind == TS_EXPR_NODE_PARAMETER || n->kind == TS_EXPR_NODE_TENSOR) {
    if (!s->leaf(s->context, n, &leaf, &position)) return ts_expr_stop(r, TS_EXPR_OTHER);
    TS_TRY(add_leaf(r, f->form, leaf, false, out));
    r->known.data[f->known].value = *out;
    return TS_SUCCESS;
  }
  f->node = *n;
  return begin(r, f);
}

/* A node whose frame is still open is treated as new: a node inside of it is a different one, even if its id is the
 * same. */
static ts_status visit_step(reader *r, const ts_expr_node *n, uint32_t *out) {
  const ts_expr_source *s = r->source;
  ts_expr_term id;
  uint32_t number, hash;
  if (!s->id(s->context, n, &id, &hash)) return ts_expr_stop(r, TS_EXPR_OTHER);
  for (size_t at = hash; (number = ts_expr_table_next(&r->by_id, hash, &at)) != TS_NO_ID;) {
    const expr_known *k = &r->known.data[number];
    if ((k->id != id && !s->is_equal(s->context, k->id, id)) || k->value == TS_NO_ID) continue;
    *out = k->value;
    return TS_SUCCESS;
  }
  return enter(r, n, id, hash, out);
}

/* The value of the parameter at a position, TS_NO_ID at first; NULL when the position is out of range. */
static ts_status at_position(reader *r, uint32_t position, uint32_t **out) {
  *out = NULL;
  if (position >= POSITIONS) return TS_SUCCESS;
  TS_TRY(TS_VEC_RESERVE(&r->by_position, position + 1));
  while (r->by_position.count <= position) r->by_position.data[r->by_position.count++] = TS_NO_ID;
  *out = &r->by_position.data[position];
  return TS_SUCCESS;
}

/* A parameter is identified by its position. */
static ts_status visit_parameter(reader *r, const ts_expr_node *n, uint32_t *out) {
  ts_expr_term leaf;
  uint32_t *value, form, position;
  if (!r->source->leaf(r->source->context, n, &leaf, &position)) return ts_expr_stop(r, TS_EXPR_OTHER);
  TS_TRY(at_position(r, position, &value));
  if (!value) return visit_step(r, n, out);
  TS_TRY(expr_get_form(r, n, &form));
  if (*value == TS_NO_ID) {
    if (r->e.values.count >= r->request->limit) return ts_expr_stop(r, TS_EXPR_LONG);
    TS_TRY(add_leaf(r, form, leaf, true, value));
  }
  *out = *value;
  if (r->e.values.data[*out].form == form) return TS_SUCCESS;
  TS_TRY(use(r, *out));
  return expr_check_param(&r->e, r->e.values.data[*out].count, form);
}

/* *out is TS_NO_ID when the node has got a frame. */
static ts_status visit(reader *r, ts_expr_term term, uint32_t *out) {
  ts_expr_node n;
  *out = TS_NO_ID;
  if (!r->source->node(r->source->context, term, &n)) return ts_expr_stop(r, TS_EXPR_OTHER);
  return n.kind == TS_EXPR_NODE_PARAMETER ? visit_parameter(r, &n, out) : visit_step(r, &n, out);
}

/* Adds the value of the last frame, which will be a copy of its rule on the operands. */
static ts_status add_value(reader *r, const expr_frame *f, uint32_t *out) {
  uint32_t number;
  TS_TRY(expr_find_rule(r, f, &number));
  *out = (uint32_t)r->e.values.count;
  uint32_t first = (uint32_t)r->e.uses.count, count = f->operand_count;
  TS_TRY(TS_VEC_RESERVE(&r->e.uses, first + count));
  for (uint32_t i = 0; i < count; i++) r->e.uses.data[first + i] = r->operands.data[f->operands + i].value;
  r->e.uses.count += count;
  return TS_VEC_PUSH(&r->e.values, ((ts_expr_value){number, f->form, first, count}));
}

static ts_status add_elem(reader *r, const expr_frame *f, uint32_t *out) {
  uint32_t tuple = r->operands.data[f->operands].value;
  const ts_expr_value *v = &r->e.values.data[tuple];
  if (v->rule >= r->rules.count || v->form != TS_NO_ID || f->arity >= r->e.arities.data[v->rule])
    return ts_expr_stop(r, TS_EXPR_OTHER);
  *out = (uint32_t)r->e.values.count;
  return TS_VEC_PUSH(&r->e.values, ((ts_expr_value){TS_EXPR_ELEM, f->form, tuple, f->arity}));
}

/* Closes the last frame, whose operands all have values. */
static ts_status leave(reader *r, uint32_t *out) {
  const expr_frame *f = &r->frames.data[--r->frames.count];
  switch (f->node.kind) {
  case TS_EXPR_NODE_ALIAS: *out = r->operands.data[f->operands].value; break;
  case TS_EXPR_NODE_ELEM: TS_TRY(add_elem(r, f, out)); break;
  case TS_EXPR_NODE_STEP:
  case TS_EXPR_NODE_CLOSED: TS_TRY(add_value(r, f, out)); break;
  case TS_EXPR_NODE_PARAMETER:
  case TS_EXPR_NODE_TENSOR: return ts_error(TS_INTERNAL, "a leaf has operands");
  }
  r->words.count = f->words;
  r->statics.count = f->statics;
  r->operands.count = f->operands;
  r->known.data[f->known].value = *out;
  return TS_SUCCESS;
}

static ts_status read_root(reader *r, ts_expr_term root, uint32_t *out) {
  TS_TRY(visit(r, root, out));
  while (r->frames.count) {
    const expr_frame *last = &r->frames.data[r->frames.count - 1];
    if (last->read_count == last->operand_count) {
      TS_TRY(leave(r, out));
      if (!r->frames.count) break;
    } else {
      TS_TRY(visit(r, r->operands.data[last->operands + last->read_count].node, out));
      if (*out == TS_NO_ID) continue;
    }
    expr_frame *f = &r->frames.data[r->frames.count - 1];
    if (f->node.kind != TS_EXPR_NODE_ALIAS) TS_TRY(use(r, *out));
    r->operands.data[f->operands + f->read_count++].value = *out;
  }
  return TS_SUCCESS;
}

static ts_status read_roots(reader *r) {
  uint32_t value;
  for (size_t i = 0; i < r->request->root_count; i++) {
    TS_TRY(read_root(r, r->request->roots[i], &value));
    if (r->e.values.data[value].form == TS_NO_ID) return ts_expr_stop(r, TS_EXPR_OTHER);
    TS_TRY(TS_VEC_PUSH(&r->e.results, value));
  }
  for (size_t i = 0; i < r->e.results.count; i++) TS_TRY(use(r, r->e.results.data[i]));
  r->e.rule_count = (uint32_t)r->rules.count;
  return TS_SUCCESS;
}

ts_status ts_expr_read(ts_expr_reader *r, const ts_expr_request *request, ts_expr *e, const ts_expr_terms **out_terms,
                       ts_expr_outcome *out) {
  r->request = request;
  ts_status status = read_roots(r);
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
