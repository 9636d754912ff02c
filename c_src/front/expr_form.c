/* Types and shapes of nodes by number. Equal words are found as the same form without being decoded. */
#include "front/expr_reader_internal.h"

static uint32_t hash_key(const ts_expr_form_key *key) {
  uint64_t h = 0;
  for (size_t i = 0; i < key->count; i++) h = ts_expr_mix(h, key->words[i]);
  return (uint32_t)(h ^ h >> 32);
}

static bool is_key(const ts_expr_reader *r, const expr_known_form *form, const ts_expr_form_key *key) {
  return form->count == key->count &&
         memcmp(r->form_words.data + form->words, key->words, key->count * sizeof *key->words) == 0;
}

/* Adds words as a key of a form; other keys may belong to it as well. */
static ts_status add_key(ts_expr_reader *r, const ts_expr_form_key *key, uint32_t hash, uint32_t form) {
  expr_known_form known = {r->form_words.count, key->count, form};
  TS_TRY(TS_VEC_RESERVE(&r->form_words, r->form_words.count + key->count));
  memcpy(r->form_words.data + known.words, key->words, key->count * sizeof *key->words);
  r->form_words.count += key->count;
  TS_TRY(TS_VEC_PUSH(&r->known_forms, known));
  return ts_expr_table_add(&r->by_form_words, hash, (uint32_t)r->known_forms.count - 1);
}

ts_status expr_get_form(ts_expr_reader *r, const ts_expr_node *node, uint32_t *out) {
  const ts_expr_source *s = r->source;
  ts_expr_form_key key;
  ts_type form;
  uint32_t number;
  if (!s->form_key(s->context, node, &key)) return ts_expr_stop(r, TS_EXPR_OTHER);
  uint32_t hash = hash_key(&key);
  for (size_t at = hash; (number = ts_expr_table_next(&r->by_form_words, hash, &at)) != TS_NO_ID;) {
    *out = r->known_forms.data[number].form;
    if (is_key(r, &r->known_forms.data[number], &key)) return TS_SUCCESS;
  }
  if (!s->form(s->context, &key, &form)) return ts_expr_stop(r, TS_EXPR_OTHER);
  TS_TRY(ts_expr_add_form(&r->e, &r->by_form, &form, out));
  return add_key(r, &key, hash, *out);
}

ts_status ts_expr_stop(ts_expr_reader *r, ts_expr_outcome why) {
  r->outcome = why;
  return ts_error(TS_UNIMPLEMENTED, "the expression is read in another way");
}
