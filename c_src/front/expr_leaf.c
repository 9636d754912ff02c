/* The sources of a program's parameters: positions of arguments, and tensors that the function closes over. */
#include "front/expr_reader_internal.h"

ts_status expr_check_param(const ts_expr *e, uint32_t param, uint32_t form) {
  const ts_type *a = &e->forms.data[e->params.data[param]], *b = &e->forms.data[form];
  if (e->params.data[param] == form) return TS_SUCCESS;
  return ts_error(TS_INTERNAL, "parameter %u is %s and %s", param, TS_SHAPE_STR(a->dtype, &a->shape),
                  TS_SHAPE_STR(b->dtype, &b->shape));
}

static ts_status add_source(ts_expr_reader *r, ts_expr_term leaf, uint32_t form, uint32_t *out) {
  *out = (uint32_t)r->e.params.count;
  TS_TRY(TS_VEC_PUSH(&r->e.params, form));
  return TS_VEC_PUSH(&r->terms.sources, leaf);
}

ts_status expr_use_leaf(ts_expr_reader *r, const expr_leaf *leaf, uint32_t form, uint32_t *out) {
  const ts_expr_source *s = r->source;
  uint32_t hash = 0;
  if (leaf->is_new || !s->hash_leaf(s->context, leaf->term, &hash)) return add_source(r, leaf->term, form, out);
  const bool is_tensor = s->is_tensor(s->context, leaf->term);
  if (is_tensor) hash += form + 1;
  for (size_t at = hash; (*out = ts_expr_table_next(&r->by_leaf, hash, &at)) != TS_NO_ID;) {
    if (!s->is_same_leaf(s->context, r->terms.sources.data[*out], leaf->term)) continue;
    if (!is_tensor) return expr_check_param(&r->e, *out, form);
    if (r->e.params.data[*out] == form) return TS_SUCCESS;
  }
  TS_TRY(add_source(r, leaf->term, form, out));
  return ts_expr_table_add(&r->by_leaf, hash, *out);
}
