/* Nx expressions without terms: each value is defined by a *rule* from earlier values. Values that differ only in their
 * operands share a rule, a region that is lowered once; the program is made of copies of it. The meaning of Nx's ops is
 * not known here. An expression owns its arrays and is immutable after reading, so threads may share it. */
#ifndef TS_FRONT_EXPR_H
#define TS_FRONT_EXPR_H

#include "base/text.h"
#include "front/expr_table.h"
#include "ir/graph.h"

#include <stdatomic.h>

/* A node. Leaves (arguments and tensors) have no rule: `first` is the leaf's number, and `count` the parameter of the
 * program, once it is used. A tuple has no type; ELEM is result `count` of the tuple `first`. */
#define TS_EXPR_ELEM (TS_NO_ID - 1)

typedef struct ts_expr_value {
  uint32_t rule;
  uint32_t form;
  uint32_t first, count; /* range in `uses` */
} ts_expr_value;

/* The region that computes a node's results from its operands. */
typedef struct ts_expr_rule {
  const ts_graph *graph;
  ts_region_id region;
} ts_expr_rule;

/* Keeps the graph of rules alive, by a reference count. */
typedef struct ts_expr_owner {
  void *object;
  void (*retain)(void *object);
  void (*release)(void *object);
} ts_expr_owner;

/* A cached rule. */
typedef struct ts_expr_kept {
  _Atomic uint32_t refs;
  ts_expr_owner owner; /* a reference */
  ts_expr_rule rule;
  size_t length;
  char text[]; /* the region as the text of a program */
} ts_expr_kept;

/* The origin of a rule: the cache, a constant, or the caller. A rule from the caller may have a key in `keys`: it
 * enters the cache with this key. */
typedef struct ts_expr_origin {
  ts_expr_kept *kept;    /* a reference, or NULL */
  ts_region_id constant; /* a region of `constants`, or 0 */
  uint32_t key, key_words;
} ts_expr_origin;

static inline bool ts_expr_is_known(const ts_expr_origin *origin) { return origin->kept || origin->constant; }

typedef struct ts_expr {
  TS_VEC(ts_expr_value) values;   /* each after its operands */
  TS_VEC(uint32_t) uses;          /* values */
  TS_VEC(uint32_t) results;       /* values */
  TS_VEC(uint32_t) params;        /* forms */
  TS_VEC(uint32_t) arities;       /* of each rule: how many results */
  TS_VEC(ts_expr_origin) origins; /* the origin of each rule */
  TS_VEC(uint64_t) keys;
  ts_graph *constants;
  TS_VEC(ts_type) forms;
  uint32_t rule_count;
  ts_mesh mesh;                     /* rank 0: the mesh of the rules' programs, or none */
  TS_VEC(ts_root_sharding) cuts[2]; /* by ts_root_side: of the first parameters and results */
} ts_expr;

void ts_expr_deinit(ts_expr *e);

/* ---- programs ---- */

static inline const ts_region *ts_expr_region(const ts_expr_rule *rule) {
  return ts_graph_region(rule->graph, rule->region);
}

/* The index of a form (a type) in the expression; adds it if it is new. `by_form` finds forms by their hashes. */
ts_status ts_expr_add_form(ts_expr *e, ts_expr_table *by_form, const ts_type *form, uint32_t *out);

/* Adds a constant of this form as a rule of the expression's own: a region of `constants`. */
ts_status ts_expr_add_constant(ts_expr *e, const ts_type *form, ts_scalar value, ts_region_id *out);

/* Checks that each rule has the parameters and results of its values; TS_INTERNAL where one does not. */
ts_status ts_expr_check_rules(const ts_expr *e, const ts_expr_rule *rules);

/* The mesh of the program; rank 0 without one. */
const ts_mesh *ts_expr_mesh(const ts_expr *e, const ts_expr_rule *rules);

/* The finished program. Operands must have the types of the rules' parameters. */
ts_status ts_expr_make(const ts_expr *e, const ts_expr_rule *rules, ts_graph **out);

/* Packs expression and rules into bytes: a much shorter key than the text of the program. The rules that `owner` keeps
 * alive enter the cache; NULL: none. */
ts_status ts_expr_pack(const ts_expr *e, const ts_expr_rule *rules, const ts_expr_owner *owner, ts_text *out);
/* Makes the program from bytes of any origin: damaged ones are an error. */
ts_status ts_expr_unpack(const void *bytes, size_t size, ts_graph **out);

#endif
