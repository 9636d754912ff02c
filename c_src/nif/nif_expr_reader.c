#include "nif/nif_expr_reader.h"

/* Applies DO to each of the reader's arrays. */
/* clang-format off */
#define FOR_ARRAYS(r, DO) \
  DO(&(r)->terms.sources) DO(&(r)->terms.nodes) DO(&(r)->terms.examples) \
  DO(&(r)->scoped) DO(&(r)->known) DO(&(r)->rules) DO(&(r)->rule_words) DO(&(r)->rule_statics) DO(&(r)->leaves) \
  DO(&(r)->by_position) \
  DO(&(r)->frames) DO(&(r)->words) DO(&(r)->statics) DO(&(r)->operands)
/* clang-format on */

ts_status ts_expr_reader_create(ErlNifEnv *env, ts_expr_reader **out) {
  TS_TRY(TS_NEW(out));
  (*out)->env = (*out)->forms.env = (*out)->sources.env = env;
  (*out)->outcome = TS_EXPR_READ;
  return TS_SUCCESS;
}

void ts_expr_reader_destroy(ts_expr_reader *r) {
  ts_expr_deinit(&r->e);
  ts_expr_forms_deinit(&r->forms);
  ts_expr_sources_deinit(&r->sources);
  ts_expr_table_deinit(&r->by_id);
  ts_expr_table_deinit(&r->by_rule);
#define DO(v) TS_VEC_FREE(v);
  FOR_ARRAYS(r, DO)
#undef DO
  ts_free(r);
}
