#include "nif/nif_expr_reader.h"

#include "nif/nif_expr_kept.h"

#include <string.h>

/* What an expression refers to, but its arrays. */
static void release(ts_expr *e) {
  for (size_t i = 0; i < e->origins.count; i++) ts_expr_kept_release(e->origins.data[i].kept);
  e->origins.count = 0;
  ts_graph_destroy(e->constants);
  e->constants = NULL;
}

void ts_expr_deinit(ts_expr *e) {
  release(e);
  TS_VEC_FREE(&e->values);
  TS_VEC_FREE(&e->uses);
  TS_VEC_FREE(&e->results);
  TS_VEC_FREE(&e->params);
  TS_VEC_FREE(&e->arities);
  TS_VEC_FREE(&e->forms);
  TS_VEC_FREE(&e->keys);
  TS_VEC_FREE(&e->origins);
}

typedef struct ts_expr_reader reader;

static _Atomic(reader *) kept;

/* What a kept one may have. */
enum { KEPT_BYTES = 4 << 20 };

/* All of its arrays by what is done to each. */
/* clang-format off */
#define FOR_ARRAYS(r, DO) \
  DO(&(r)->e.values) DO(&(r)->e.uses) DO(&(r)->e.results) DO(&(r)->e.params) DO(&(r)->e.arities) DO(&(r)->e.forms) \
  DO(&(r)->e.origins) DO(&(r)->e.keys) DO(&(r)->terms.sources) DO(&(r)->terms.nodes) DO(&(r)->terms.examples) \
  DO(&(r)->scoped) DO(&(r)->known) DO(&(r)->rules) DO(&(r)->rule_words) DO(&(r)->rule_statics) DO(&(r)->leaves) \
  DO(&(r)->by_position) \
  DO(&(r)->frames) DO(&(r)->words) DO(&(r)->statics) DO(&(r)->operands)
/* clang-format on */

static void reader_destroy(reader *r) {
  if (!r) return;
  ts_expr_forms_deinit(&r->forms);
  ts_expr_sources_deinit(&r->sources);
  ts_expr_table_deinit(&r->by_id);
  ts_expr_table_deinit(&r->by_rule);
#define DO(v) TS_VEC_FREE(v);
  FOR_ARRAYS(r, DO)
#undef DO
  ts_free(r);
}

static size_t bytes_of(const reader *r) {
  size_t bytes = ts_expr_table_bytes(&r->by_id) + ts_expr_table_bytes(&r->by_rule) + ts_expr_forms_bytes(&r->forms) +
                 ts_expr_table_bytes(&r->sources.by_leaf);
#define DO(v) bytes += (v)->capacity * sizeof *(v)->data;
  FOR_ARRAYS(r, DO)
#undef DO
  return bytes;
}

static void reader_reset(reader *r, ErlNifEnv *env) {
  r->env = env;
  r->closed_count = 0;
  r->outcome = TS_EXPR_READ;
  memset(r->nodes, 0, sizeof r->nodes);
  memset(r->plain_ops, 0, sizeof r->plain_ops);
  memset(r->recent_rules, 0, sizeof r->recent_rules);
  ts_expr_forms_reset(&r->forms, env);
  ts_expr_sources_reset(&r->sources, env);
  ts_expr_table_clear(&r->by_id);
  ts_expr_table_clear(&r->by_rule);
#define DO(v) (v)->count = 0;
  FOR_ARRAYS(r, DO)
#undef DO
}

ts_status ts_expr_reader_take(ErlNifEnv *env, ts_expr_reader **out) {
  *out = atomic_exchange(&kept, NULL);
  if (!*out) TS_TRY(TS_NEW(out));
  reader_reset(*out, env);
  return TS_SUCCESS;
}

void ts_expr_reader_give(ts_expr_reader *r) {
  release(&r->e); /* of one that was not read to its end */
  reader_destroy(bytes_of(r) > KEPT_BYTES ? r : atomic_exchange(&kept, r));
}

void ts_expr_reader_forget(void) { reader_destroy(atomic_exchange(&kept, NULL)); }

/* ---- the expression ---- */

#define COPY(from, to) \
  copy((from)->data, (from)->count, sizeof *(from)->data, (void **)&(to)->data, &(to)->count, &(to)->capacity)

static ts_status copy(const void *from, size_t count, size_t size, void **to, size_t *to_count, size_t *to_capacity) {
  if (count == 0) return TS_SUCCESS;
  TS_TRY(ts_realloc_array(count, size, to));
  memcpy(*to, from, count * size);
  *to_count = *to_capacity = count;
  return TS_SUCCESS;
}

ts_status ts_expr_reader_result(ts_expr_reader *r, ts_expr *to) {
  ts_expr *from = &r->e;
  to->rule_count = from->rule_count;
  TS_TRY(COPY(&from->values, &to->values));
  TS_TRY(COPY(&from->uses, &to->uses));
  TS_TRY(COPY(&from->results, &to->results));
  TS_TRY(COPY(&from->params, &to->params));
  TS_TRY(COPY(&from->arities, &to->arities));
  TS_TRY(COPY(&from->keys, &to->keys));
  TS_TRY(COPY(&from->forms, &to->forms));
  TS_TRY(COPY(&from->origins, &to->origins));
  to->constants = from->constants;
  from->constants = NULL; /* this and the references are the copy's now */
  from->origins.count = 0;
  return TS_SUCCESS;
}
