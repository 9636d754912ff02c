/* The walk over expressions (front/expr_reader.h) without a VM: the nodes are an array, and a term is an index. */
#include "front/expr_kept.h"
#include "front/expr_reader.h"
#include "testing.h"

#include <string.h>

/* ---- a source of nodes ---- */

enum { MOST_ARGUMENTS = 3, ADD = 100, TANH, LOOP, ALIAS, ELEM, PARAMETER, TENSOR, CONSTANT };

typedef enum argument_kind { NONE, NODE, ATOM, INTEGER, FLOAT, TERM, NODES } argument_kind;

typedef struct argument {
  argument_kind kind;
  int64_t value; /* NODES: a list of this node, twice */
  double number;
} argument;

typedef struct node {
  ts_expr_term op;
  argument arguments[MOST_ARGUMENTS];
  int64_t dim;       /* of a vector; 0: a scalar; -1: a form that the core does not have */
  int id;            /* 0: its own */
  uint32_t results;  /* 0: one */
  uint32_t position; /* of a parameter; the index of an element */
  int bytes;         /* of a tensor: equal ones are equal; 0: not to be compared */
  ts_expr_node_kind kind;
  ts_dtype type;
} node;

typedef struct nodes {
  const node *list;
  size_t count;
  ts_expr_source source;
} nodes;

static const node *node_of(const nodes *x, ts_expr_term term) { return &x->list[term]; }

static bool get_node(void *context, ts_expr_term term, ts_expr_node *out) {
  const nodes *x = context;
  if (term >= x->count) return false;
  *out = (ts_expr_node){x->list[term].kind, term, term, x->list[term].op, term};
  return true;
}

/* Of few nodes several have one hash. */
static bool get_id(void *context, const ts_expr_node *n, ts_expr_term *out, uint32_t *out_hash) {
  const nodes *all = context;
  const node *x = node_of(all, n->term);
  *out = x->id ? (ts_expr_term)x->id : 1000 + n->term;
  *out_hash = (uint32_t)(all->count < 100 ? *out % 7 : *out);
  return x->id >= 0;
}

static bool is_equal(void *context, ts_expr_term a, ts_expr_term b) {
  (void)context;
  return a == b;
}

static uint32_t results_of(void *context, const ts_expr_node *n) {
  const node *x = node_of(context, n->term);
  return x->results ? x->results : 1;
}

static bool get_form_key(void *context, const ts_expr_node *n, ts_expr_form_key *out) {
  const node *x = node_of(context, n->term);
  *out = (ts_expr_form_key){.count = x->dim ? 3 : 2, .words = {0, x->type, (ts_expr_term)x->dim}};
  return true;
}

static bool get_form(void *context, const ts_expr_form_key *key, ts_type *out) {
  (void)context;
  *out = (ts_type){.dtype = (ts_dtype)key->words[1], .shape = {.rank = (int32_t)key->count - 2}};
  if (key->count > 2) out->shape.dims[0] = (int64_t)key->words[2];
  return key->count == 2 || (int64_t)key->words[2] > 0;
}

static ts_status put_argument(const ts_expr_node *n, const argument *a, ts_expr_reader *reader) {
  const ts_expr_term term = (ts_expr_term)a->value;
  const bool is_alone = n->kind != TS_EXPR_NODE_STEP;
  switch (a->kind) {
  case NONE: break;
  case NODE: return is_alone ? ts_expr_put_operand(reader, term) : ts_expr_put_node(reader, term);
  case ATOM: return ts_expr_put_atom(reader, term);
  case INTEGER: return ts_expr_put_integer(reader, a->value, term, 3);
  case FLOAT: return ts_expr_put_float(reader, a->number);
  case TERM: return ts_expr_put_term(reader, term, 3); /* terms of one hash */
  case NODES:
    TS_TRY(ts_expr_put_list(reader));
    for (int i = 0; i < 2; i++) TS_TRY(ts_expr_put_node(reader, term));
    return ts_expr_put_end(reader);
  }
  return TS_SUCCESS;
}

static ts_status put_arguments(void *context, const ts_expr_node *n, ts_expr_reader *reader) {
  const node *x = node_of(context, n->term);
  for (int i = 0; i < MOST_ARGUMENTS; i++) TS_TRY(put_argument(n, &x->arguments[i], reader));
  return TS_SUCCESS;
}

static bool get_index(void *context, const ts_expr_node *n, uint32_t *out) {
  *out = node_of(context, n->term)->position;
  return true;
}

static bool get_number(void *context, const ts_expr_node *n, ts_number *out) {
  const node *x = node_of(context, n->term);
  *out = (ts_number){.kind = TS_NUMBER_FLOAT, .f = x->arguments[0].number};
  return x->op == CONSTANT;
}

/* A leaf is its position, or a tensor's node behind all positions. */
#define TENSORS (UINT64_C(1) << 40)

static bool get_leaf(void *context, const ts_expr_node *n, ts_expr_term *out, uint32_t *out_position) {
  const node *x = node_of(context, n->term);
  *out_position = n->kind == TS_EXPR_NODE_PARAMETER ? x->position : TS_NO_ID;
  *out = n->kind == TS_EXPR_NODE_PARAMETER ? x->position : TENSORS + n->term;
  return true;
}

static bool hash_leaf(void *context, ts_expr_term leaf, uint32_t *out) {
  *out = leaf < TENSORS ? (uint32_t)leaf : 5;
  return leaf < TENSORS || node_of(context, leaf - TENSORS)->bytes > 0;
}

static bool is_same_leaf(void *context, ts_expr_term a, ts_expr_term b) {
  if (a < TENSORS || b < TENSORS) return a == b;
  return node_of(context, a - TENSORS)->bytes == node_of(context, b - TENSORS)->bytes;
}

static bool is_tensor(void *context, ts_expr_term leaf) {
  (void)context;
  return leaf >= TENSORS;
}

static nodes make_nodes(const node *list, size_t count) {
  return (nodes){.list = list,
                 .count = count,
                 .source = {.node = get_node,
                            .id = get_id,
                            .is_equal = is_equal,
                            .results = results_of,
                            .form_key = get_form_key,
                            .form = get_form,
                            .arguments = put_arguments,
                            .index = get_index,
                            .number = get_number,
                            .leaf = get_leaf,
                            .hash_leaf = hash_leaf,
                            .is_same_leaf = is_same_leaf,
                            .is_tensor = is_tensor}};
}

/* ---- reading ---- */

typedef struct reading {
  nodes nodes;
  ts_expr_reader *reader;
  const ts_expr_terms *terms;
  ts_expr e;
  ts_expr_outcome outcome;
} reading;

static ts_status read_with(reading *x, const ts_expr_request *request) {
  x->nodes.source.context = &x->nodes;
  TS_TRY(ts_expr_reader_create(&x->nodes.source, &x->reader));
  return ts_expr_read(x->reader, request, &x->e, &x->terms, &x->outcome);
}

static void drop(reading *x) {
  ts_expr_deinit(&x->e);
  if (x->reader) ts_expr_reader_destroy(x->reader);
}

/* The last node is the only result. */
static ts_status read_last(reading *x, const node *list, size_t count) {
  const ts_expr_term root = count - 1;
  *x = (reading){.nodes = make_nodes(list, count)};
  return read_with(x, &(ts_expr_request){.roots = &root, .root_count = 1, .limit = 100});
}

#define READ(x, ...)                                                 \
  do {                                                               \
    static const node list_[] = {__VA_ARGS__};                       \
    ck_assert_ok(read_last(x, list_, sizeof list_ / sizeof *list_)); \
  } while (0)

#define VECTOR .type = TS_F32, .dim = 3
#define PARAM(p) \
  { .kind = TS_EXPR_NODE_PARAMETER, .op = PARAMETER, VECTOR, .position = p }
#define STEP(o, ...) \
  { .kind = TS_EXPR_NODE_STEP, .op = o, .arguments = {__VA_ARGS__}, VECTOR }
#define TENSOR_OF(b) \
  { .kind = TS_EXPR_NODE_TENSOR, .op = TENSOR, VECTOR, .bytes = b }
#define OPERAND(n) \
  { NODE, n, 0 }

static void check_value(const reading *x, uint32_t value, uint32_t rule, uint32_t first, uint32_t count) {
  const ts_expr_value *v = &x->e.values.data[value];
  ck_assert_uint_eq(v->rule, rule);
  ck_assert_uint_eq(v->first, first);
  ck_assert_uint_eq(v->count, count);
}

/* Each node once, after its operands, however often it is used. */
START_TEST(values_follow_their_operands)
{
  reading x;
  READ(&x, PARAM(1), STEP(TANH, OPERAND(0)), STEP(ADD, OPERAND(1), OPERAND(3)), PARAM(0),
       STEP(ADD, OPERAND(2), OPERAND(1)));
  ck_assert_int_eq(x.outcome, TS_EXPR_READ);
  ck_assert_uint_eq(x.e.values.count, 5);
  check_value(&x, 0, TS_NO_ID, 0, 0); /* the parameter that is used first */
  check_value(&x, 1, 0, 0, 1);
  check_value(&x, 2, TS_NO_ID, 1, 1);
  check_value(&x, 3, 1, 1, 2);
  check_value(&x, 4, 1, 3, 2);
  ck_assert_uint_eq(x.e.uses.data[3], 3);
  ck_assert_uint_eq(x.e.uses.data[4], 1);
  ck_assert_uint_eq(x.terms->sources.data[0], 1);
  ck_assert_uint_eq(x.terms->sources.data[1], 0);
  ck_assert_uint_eq(x.e.rule_count, 2);
  ck_assert_uint_eq(x.terms->nodes.count, 2);
  ck_assert_uint_eq(x.terms->examples.data[1], 3);
  ck_assert_uint_eq(x.e.forms.count, 1);
  drop(&x);
}
END_TEST

/* One rule for equal ops, arguments and forms. */
START_TEST(rules_tell_nodes_apart)
{
  reading x;
  READ(&x, PARAM(0), STEP(TANH, OPERAND(0), {INTEGER, 1, 0}), STEP(TANH, OPERAND(1), {INTEGER, 1, 0}),
       STEP(TANH, OPERAND(2), {INTEGER, 2, 0}), STEP(TANH, OPERAND(3), {FLOAT, 0, 0.0}),
       STEP(TANH, OPERAND(4), {FLOAT, 0, -0.0}), STEP(TANH, OPERAND(5), {ATOM, 1, 0}),
       STEP(TANH, OPERAND(6), {TERM, 1, 0}), STEP(TANH, OPERAND(7), {TERM, 2, 0}), STEP(TANH, OPERAND(8), {TERM, 1, 0}),
       STEP(TANH, {NODES, 9, 0}), STEP(TANH, OPERAND(10), OPERAND(10)),
       {.kind = TS_EXPR_NODE_STEP, .op = TANH, .arguments = {OPERAND(11), {INTEGER, 1, 0}}, .type = TS_F64, .dim = 3},
       STEP(TANH, OPERAND(12), {INTEGER, 1, 0}), STEP(TANH, OPERAND(13), {INTEGER, INT64_C(1) << 62, 0}),
       STEP(TANH, OPERAND(14), {INTEGER, (INT64_C(1) << 62) + 1, 0}));
  static const uint32_t rules[] = {TS_NO_ID, 0, 0, 1, 2, 3, 4, 5, 6, 5, 7, 8, 9, 10, 11, 12};
  ck_assert_int_eq(x.outcome, TS_EXPR_READ);
  for (uint32_t i = 0; i < 16; i++) ck_assert_uint_eq(x.e.values.data[i].rule, rules[i]);
  ck_assert_uint_eq(x.e.forms.count, 2);
  drop(&x);
}
END_TEST

START_TEST(constants_are_rules_of_their_own)
{
  reading x;
  READ(&x, STEP(CONSTANT, {FLOAT, 0, 2.5}), STEP(CONSTANT, {FLOAT, 0, 2.5}), STEP(ADD, OPERAND(0), OPERAND(1)));
  ck_assert_int_eq(x.outcome, TS_EXPR_READ);
  ck_assert_uint_eq(x.e.rule_count, 2);
  ck_assert(x.e.origins.data[0].constant != 0);
  ck_assert_uint_eq(x.terms->nodes.count, 1);
  ck_assert_uint_eq(x.terms->nodes.data[0], 2);
  drop(&x);
}
END_TEST

/* An alias is its operand. Loops are no equals; their results are taken apart. */
START_TEST(aliases_loops_and_elements)
{
  reading x;
#define LOOP_OF(n, r) {.kind = TS_EXPR_NODE_CLOSED, .op = LOOP, .arguments = {OPERAND(n)}, VECTOR, .results = r}
#define ELEM_OF(n, i) \
  { .kind = TS_EXPR_NODE_ELEM, .op = ELEM, .arguments = {OPERAND(n)}, VECTOR, .position = i }
#define ALIAS_OF(n) \
  { .kind = TS_EXPR_NODE_ALIAS, .op = ALIAS, .arguments = {OPERAND(n)}, VECTOR }
  READ(&x, PARAM(0), ALIAS_OF(0), LOOP_OF(1, 2), LOOP_OF(4, 1), ELEM_OF(2, 1), STEP(ADD, OPERAND(3), OPERAND(1)));
  ck_assert_int_eq(x.outcome, TS_EXPR_READ);
  ck_assert_uint_eq(x.e.values.count, 5);
  check_value(&x, 1, 0, 0, 1);
  check_value(&x, 2, TS_EXPR_ELEM, 1, 1);
  check_value(&x, 3, 1, 1, 1);
  check_value(&x, 4, 2, 2, 2);
  ck_assert_uint_eq(x.e.arities.data[0], 2);
  ck_assert_uint_eq(x.e.uses.data[3], 0);
  drop(&x);
}
END_TEST

/* Parameters are found by position, tensors by their bytes and form. */
START_TEST(leaves_share_parameters)
{
  reading x;
  READ(&x, PARAM(0), PARAM(0), PARAM(70000), PARAM(70000), TENSOR_OF(1), TENSOR_OF(1), TENSOR_OF(2), TENSOR_OF(0),
       TENSOR_OF(0), {.kind = TS_EXPR_NODE_TENSOR, .op = TENSOR, .type = TS_S32, .dim = 3, .bytes = 1},
       STEP(ADD, OPERAND(0), OPERAND(1), OPERAND(2)), STEP(ADD, OPERAND(10), OPERAND(3), OPERAND(4)),
       STEP(ADD, OPERAND(11), OPERAND(5), OPERAND(6)), STEP(ADD, OPERAND(12), OPERAND(7), OPERAND(8)),
       STEP(ADD, OPERAND(13), OPERAND(9)));
  ck_assert_int_eq(x.outcome, TS_EXPR_READ);
  static const uint64_t sources[] = {0, 70000, TENSORS + 4, TENSORS + 6, TENSORS + 7, TENSORS + 8, TENSORS + 9};
  ck_assert_uint_eq(x.terms->sources.count, 7);
  for (size_t i = 0; i < 7; i++) ck_assert_uint_eq(x.terms->sources.data[i], sources[i]);
  drop(&x);
}
END_TEST

START_TEST(a_parameter_has_one_form)
{
  static const uint32_t positions[] = {0, 70000};
  node list[] = {PARAM(0),
                 {.kind = TS_EXPR_NODE_PARAMETER, .op = PARAMETER, .type = TS_S32, .dim = 3},
                 STEP(ADD, OPERAND(0), OPERAND(1))};
  list[0].position = list[1].position = positions[_i];
  reading x;
  ck_assert_error(read_last(&x, list, 3), TS_INTERNAL, "parameter 0 is f32[3] and s32[3]");
  drop(&x);
}
END_TEST

/* A node inside of another one with its id is a different one. */
START_TEST(an_open_node_is_no_operand_of_itself)
{
  reading x;
  READ(&x, PARAM(0), {.kind = TS_EXPR_NODE_STEP, .op = TANH, .id = 7, .arguments = {OPERAND(0)}, VECTOR},
       {.kind = TS_EXPR_NODE_STEP, .op = TANH, .id = 7, .arguments = {OPERAND(1)}, VECTOR});
  ck_assert_int_eq(x.outcome, TS_EXPR_READ);
  ck_assert_uint_eq(x.e.values.count, 3);
  drop(&x);
}
END_TEST

/* A node that is not a plain step ends the walk, without an error. */
static const struct {
  node list[3];
  size_t count;
} others[] = {
    {{PARAM(0), STEP(ADD, OPERAND(0), OPERAND(99))}, 2},
    {{PARAM(0), {.kind = TS_EXPR_NODE_STEP, .op = ADD, .id = -1, .arguments = {OPERAND(0)}, VECTOR}}, 2},
    {{PARAM(0), {.kind = TS_EXPR_NODE_STEP, .op = ADD, .arguments = {OPERAND(0)}, .type = TS_F32, .dim = -1}}, 2},
    {{PARAM(0), LOOP_OF(0, 2)}, 2},
    {{PARAM(0), LOOP_OF(0, 2), STEP(TANH, OPERAND(1))}, 3},
    {{PARAM(0), LOOP_OF(0, 2), ELEM_OF(1, 2)}, 3},
    {{PARAM(0), STEP(TANH, OPERAND(0)), ELEM_OF(1, 0)}, 3},
    {{PARAM(0), ELEM_OF(0, 0)}, 2},
    {{PARAM(0), {.kind = TS_EXPR_NODE_ALIAS, .op = ALIAS, .arguments = {OPERAND(0), OPERAND(0)}, VECTOR}}, 2},
};

START_TEST(other_expressions_are_not_read)
{
  reading x;
  ck_assert_ok(read_last(&x, others[_i].list, others[_i].count));
  ck_assert_int_eq(x.outcome, TS_EXPR_OTHER);
  ck_assert_uint_eq(x.e.values.count, 0);
  drop(&x);
}
END_TEST

START_TEST(ops_of_a_scope_are_not_read)
{
  static const node list[] = {PARAM(0), STEP(TANH, OPERAND(0)), STEP(ADD, OPERAND(1), OPERAND(1))};
  const ts_expr_term roots[] = {1, 2}, scoped[] = {ADD};
  reading x = {.nodes = make_nodes(list, 3)};
  ts_expr_request request = {roots, scoped, 1, 1, 100};
  ck_assert_ok(read_with(&x, &request));
  ck_assert_int_eq(x.outcome, TS_EXPR_READ);
  drop(&x);
  x = (reading){.nodes = make_nodes(list, 3)};
  request.root_count = 2;
  ck_assert_ok(read_with(&x, &request));
  ck_assert_int_eq(x.outcome, TS_EXPR_OTHER);
  drop(&x);
}
END_TEST

/* A chain as deep as it is long, and one node more than the limit. */
START_TEST(long_expressions)
{
  enum { LENGTH = 200000 };
  node *list = calloc(LENGTH, sizeof *list);
  ck_assert_ptr_nonnull(list);
  list[0] = (node)PARAM(0);
  for (int i = 1; i < LENGTH; i++) list[i] = (node)STEP(TANH, OPERAND(i - 1));
  const ts_expr_term root = LENGTH - 1;
  for (int less = 0; less < 2; less++) {
    reading x = {.nodes = make_nodes(list, LENGTH)};
    ck_assert_ok(read_with(&x, &(ts_expr_request){&root, NULL, 1, 0, (size_t)(LENGTH - 1 - less)}));
    ck_assert_int_eq(x.outcome, less ? TS_EXPR_LONG : TS_EXPR_READ);
    ck_assert_uint_eq(x.e.rule_count, less ? 0 : 1);
    drop(&x);
  }
  free(list);
}
END_TEST

/* ---- the cache of rules ---- */

static int references;
static void retain(void *object) { references += object == &references; }
static void release(void *object) { references -= object == &references; }

/* The next expression with such a node finds the lowered rule: by the node's form, not by its number. */
START_TEST(rules_are_found_in_the_cache)
{
  const ts_expr_owner owner = {&references, retain, release};
  const ts_expr_rule rule = {NULL, 1};
  reading x;
  READ(&x, PARAM(0), STEP(TANH, OPERAND(0), {INTEGER, 4, 0}));
  const ts_expr_origin *origin = &x.e.origins.data[0];
  ck_assert(!ts_expr_is_known(origin));
  ck_assert_uint_gt(origin->key_words, 0);
  ts_expr_kept_add(x.e.keys.data + origin->key, origin->key_words * sizeof *x.e.keys.data, &owner, &rule, "", 0);
  drop(&x);
  READ(&x, {.kind = TS_EXPR_NODE_PARAMETER, .op = PARAMETER, .type = TS_S8, .position = 1}, PARAM(0),
       STEP(ADD, OPERAND(0), OPERAND(1)), STEP(TANH, OPERAND(2), {INTEGER, 4, 0}),
       STEP(TANH, OPERAND(3), {INTEGER, 5, 0}));
  ck_assert(!ts_expr_is_known(&x.e.origins.data[0]));
  ck_assert_ptr_nonnull(x.e.origins.data[1].kept);
  ck_assert(!ts_expr_is_known(&x.e.origins.data[2]));
  ck_assert_uint_eq(x.terms->nodes.count, 2);
  drop(&x);
  ts_expr_kept_clear();
  ck_assert_int_eq(references, 0);
}
END_TEST

/* ---- memory ---- */

static void read_all(void) {
  static const node list[] = {PARAM(0),
                              TENSOR_OF(1),
                              LOOP_OF(0, 2),
                              ELEM_OF(2, 1),
                              STEP(CONSTANT, {FLOAT, 0, 1.5}),
                              STEP(ADD, OPERAND(3), OPERAND(4)),
                              STEP(TANH, OPERAND(5), {TERM, 9, 0}),
                              STEP(ADD, OPERAND(6), OPERAND(1))};
  reading x;
  ts_status_free(read_last(&x, list, sizeof list / sizeof *list));
  drop(&x);
}

START_TEST(every_allocation_may_fail)
{ CK_FAIL_EACH_ALLOCATION(read_all()); }
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("expr_read");
  TCase *tc = tcase_create("expr_read");
  tcase_add_test(tc, values_follow_their_operands);
  tcase_add_test(tc, rules_tell_nodes_apart);
  tcase_add_test(tc, constants_are_rules_of_their_own);
  tcase_add_test(tc, aliases_loops_and_elements);
  tcase_add_test(tc, leaves_share_parameters);
  tcase_add_loop_test(tc, a_parameter_has_one_form, 0, 2);
  tcase_add_test(tc, an_open_node_is_no_operand_of_itself);
  tcase_add_loop_test(tc, other_expressions_are_not_read, 0, sizeof others / sizeof *others);
  tcase_add_test(tc, ops_of_a_scope_are_not_read);
  tcase_add_test(tc, long_expressions);
  tcase_add_test(tc, rules_are_found_in_the_cache);
  tcase_add_test(tc, every_allocation_may_fail);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
