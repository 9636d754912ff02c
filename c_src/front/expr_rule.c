/* The rules of steps. A rule is identified by op, type, shape, arguments and the forms of the operands. */
#include "base/map.h"
#include "front/expr_kept.h"
#include "front/expr_reader_internal.h"

#include <string.h>

/* ---- arguments ---- */

/* The words of a rule: its op and form, then its arguments, then the forms of its operands. An argument begins with its
 * kind. The bits of an integer follow in the same word, atoms and floats in the next one; of other terms there is a
 * hash, and the term itself is among the statics. */
enum { WORD_ATOM, WORD_INTEGER, WORD_FLOAT, WORD_NODE, WORD_LIST, WORD_TUPLE, WORD_END, WORD_OTHER };

enum { WORD_KIND_BITS = 3 };

static ts_status put_word(ts_expr_reader *r, uint64_t word) { return TS_VEC_PUSH(&r->words, word); }

ts_status ts_expr_put_operand(ts_expr_reader *r, ts_expr_term node) {
  return TS_VEC_PUSH(&r->operands, ((expr_operand){node, TS_NO_ID}));
}

ts_status ts_expr_put_node(ts_expr_reader *r, ts_expr_term node) {
  TS_TRY(ts_expr_put_operand(r, node));
  return put_word(r, WORD_NODE);
}

ts_status ts_expr_put_atom(ts_expr_reader *r, ts_expr_term atom) { return expr_put_words(r, WORD_ATOM, atom); }
ts_status ts_expr_put_list(ts_expr_reader *r) { return put_word(r, WORD_LIST); }
ts_status ts_expr_put_tuple(ts_expr_reader *r) { return put_word(r, WORD_TUPLE); }
ts_status ts_expr_put_end(ts_expr_reader *r) { return put_word(r, WORD_END); }

ts_status ts_expr_put_term(ts_expr_reader *r, ts_expr_term term, uint32_t hash) {
  TS_TRY(TS_VEC_PUSH(&r->statics, term));
  return expr_put_words(r, WORD_OTHER, hash);
}

ts_status ts_expr_put_integer(ts_expr_reader *r, int64_t integer, ts_expr_term term, uint32_t hash) {
  const uint64_t word = (uint64_t)integer << WORD_KIND_BITS;
  return (int64_t)word >> WORD_KIND_BITS == integer ? put_word(r, word | WORD_INTEGER)
                                                    : ts_expr_put_term(r, term, hash);
}

/* By its bits: 0.0 and -0.0 are different arguments. */
ts_status ts_expr_put_float(ts_expr_reader *r, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return expr_put_words(r, WORD_FLOAT, bits);
}

/* ---- rules ---- */

static bool is_rule(const ts_expr_reader *r, const expr_rule_words *known_rule, const expr_frame *f) {
  size_t words = r->words.count - f->words, statics = r->statics.count - f->statics;
  if (known_rule->word_count != words || known_rule->static_count != statics ||
      memcmp(r->rule_words.data + known_rule->words, r->words.data + f->words, words * sizeof *r->words.data) != 0)
    return false;
  for (size_t i = 0; i < statics; i++)
    if (!r->source->is_equal(r->source->context, r->rule_statics.data[known_rule->statics + i],
                             r->statics.data[f->statics + i]))
      return false;
  return true;
}

static ts_status put_form(ts_expr_reader *r, uint32_t number) {
  const ts_type *form = &r->e.forms.data[number];
  size_t rank = (size_t)form->shape.rank;
  TS_TRY(TS_VEC_RESERVE(&r->e.keys, r->e.keys.count + 1 + rank));
  r->e.keys.data[r->e.keys.count++] = (uint64_t)form->dtype << 8 | rank;
  for (size_t i = 0; i < rank; i++) r->e.keys.data[r->e.keys.count++] = (uint64_t)form->shape.dims[i];
  return TS_SUCCESS;
}

/* The words of a rule that do not depend on the expression: its op, the number of words of its arguments, those, and
 * the forms. */
static ts_status put_key(ts_expr_reader *r, const expr_frame *f) {
  size_t count = r->words.count - f->words - EXPR_HEAD_WORDS - f->operand_count;
  const uint64_t *words = r->words.data + f->words;
  TS_TRY(TS_VEC_RESERVE(&r->e.keys, r->e.keys.count + 2 + count));
  r->e.keys.data[r->e.keys.count++] = words[0];
  r->e.keys.data[r->e.keys.count++] = count;
  for (size_t i = 0; i < count; i++) r->e.keys.data[r->e.keys.count++] = words[EXPR_HEAD_WORDS + i];
  TS_TRY(put_form(r, f->form));
  for (uint32_t i = 0; i < f->operand_count; i++) TS_TRY(put_form(r, (uint32_t)words[EXPR_HEAD_WORDS + count + i]));
  return TS_SUCCESS;
}

/* True for rules that enter the cache. Loops and blocks are rarely equal, rules without operands are cheap to lower,
 * and statics are terms of this call: these do not. */
static bool is_to_keep(const ts_expr_reader *r, const expr_frame *f) {
  return f->node.kind == TS_EXPR_NODE_STEP && f->operand_count && r->statics.count == f->statics;
}

static ts_status find_kept(ts_expr_reader *r, const expr_frame *f, ts_expr_origin *out) {
  out->key = (uint32_t)r->e.keys.count;
  TS_TRY(put_key(r, f));
  out->key_words = (uint32_t)r->e.keys.count - out->key;
  out->kept = ts_expr_kept_find(r->e.keys.data + out->key, out->key_words * sizeof *r->e.keys.data);
  if (out->kept) r->e.keys.count = out->key;
  return TS_SUCCESS;
}

/* Constants are identified by number and form and become rules of the expression's own. Integers that do not fit are
 * left to the caller. */
static ts_status find_constant(ts_expr_reader *r, const expr_frame *f, const ts_number *number, ts_expr_origin *out) {
  const ts_type *form = &r->e.forms.data[f->form];
  ts_scalar scalar;
  if (!ts_status_consume_ok(ts_number_scalar(number, form->dtype, &scalar))) return TS_SUCCESS;
  return ts_expr_add_constant(&r->e, form, scalar, &out->constant);
}

static ts_status find_origin(ts_expr_reader *r, const expr_frame *f, ts_expr_origin *out) {
  ts_number number;
  *out = (ts_expr_origin){0};
  if (is_to_keep(r, f)) return find_kept(r, f, out);
  if (f->node.kind != TS_EXPR_NODE_STEP || !r->source->number(r->source->context, &f->node, &number)) return TS_SUCCESS;
  return find_constant(r, f, &number, out);
}

/* The caller must lower a rule that is not in the cache. */
static ts_status add_origin(ts_expr_reader *r, const expr_frame *f) {
  ts_expr_origin origin;
  TS_TRY(TS_VEC_RESERVE(&r->e.origins, r->e.origins.count + 1));
  TS_TRY(find_origin(r, f, &origin));
  r->e.origins.data[r->e.origins.count++] = origin;
  if (ts_expr_is_known(&origin)) return TS_SUCCESS;
  TS_TRY(TS_VEC_PUSH(&r->terms.nodes, f->node.term));
  return TS_VEC_PUSH(&r->terms.examples, (uint32_t)r->e.values.count); /* the value that is added next */
}

static ts_status add_rule(ts_expr_reader *r, const expr_frame *f, uint32_t hash, uint32_t number) {
  expr_rule_words new = {(uint32_t)r->rule_words.count, (uint32_t)r->words.count - f->words,
                         (uint32_t)r->rule_statics.count, (uint32_t)r->statics.count - f->statics};
  TS_TRY(TS_VEC_RESERVE(&r->rule_words, r->rule_words.count + new.word_count));
  TS_TRY(TS_VEC_RESERVE(&r->rule_statics, r->rule_statics.count + new.static_count));
  memcpy(r->rule_words.data + new.words, r->words.data + f->words, new.word_count * sizeof *r->words.data);
  if (new.static_count)
    memcpy(r->rule_statics.data + new.statics, r->statics.data + f->statics,
           new.static_count * sizeof *r->statics.data);
  r->rule_words.count += new.word_count;
  r->rule_statics.count += new.static_count;
  TS_TRY(TS_VEC_PUSH(&r->rules, new));
  TS_TRY(TS_VEC_PUSH(&r->e.arities, f->arity));
  TS_TRY(add_origin(r, f));
  return ts_expr_table_add(&r->by_rule, hash, number);
}

/* The forms of a node's operands are the last of its words. */
static ts_status put_forms(ts_expr_reader *r, const expr_frame *f) {
  TS_TRY(TS_VEC_RESERVE(&r->words, r->words.count + f->operand_count));
  for (uint32_t i = 0; i < f->operand_count; i++) {
    uint32_t form = r->e.values.data[r->operands.data[f->operands + i].value].form;
    if (form == TS_NO_ID) return ts_expr_stop(r, TS_EXPR_OTHER);
    r->words.data[r->words.count++] = form;
  }
  return TS_SUCCESS;
}

ts_status expr_find_rule(ts_expr_reader *r, const expr_frame *f, uint32_t *out) {
  TS_TRY(put_forms(r, f));
  uint32_t hash = (uint32_t)ts_hash64(r->words.data + f->words, (r->words.count - f->words) * sizeof *r->words.data);
  for (size_t at = hash; (*out = ts_expr_table_next(&r->by_rule, hash, &at)) != TS_NO_ID;)
    if (is_rule(r, &r->rules.data[*out], f)) return TS_SUCCESS;
  *out = (uint32_t)r->rules.count;
  return add_rule(r, f, hash, *out);
}
