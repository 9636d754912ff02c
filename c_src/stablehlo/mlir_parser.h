/* The state of the parser, and what its files share: attributes (mlir_attr.c), ops and regions (mlir_parse.c),
 * functions and modules (mlir_module.c). */
#ifndef TS_STABLEHLO_MLIR_PARSER_H
#define TS_STABLEHLO_MLIR_PARSER_H

#include "base/map.h"
#include "ir/graph.h"
#include "stablehlo/mlir_tree.h"

typedef struct mlir_parser {
  ts_arena *arena;
  mlir_lexer lexer;
  mlir_token token;  /* the next token */
  int depth;         /* attributes and types around it */
  int regions;       /* regions around it; no attribute has regions */
  ts_map *locations; /* by their names; NULL: locations are skipped */
} mlir_parser;

/* Attributes and types may be nested as deep as MLIR_MAX_DEPTH, in a region too. They are read on the caller's stack: a
 * dirty scheduler's has 320 KB, and a level takes up to 2 KB where the code is built with a sanitizer. Regions are read
 * by ts_deep_call, as many levels of them as a graph may have: what is printed can be read. A level of them needs more
 * of the stack than a level of others that call it. */
enum { MLIR_MAX_DEPTH = 64, MLIR_MAX_REGIONS = TS_MAX_LEVELS, MLIR_REGION_LEVELS = 2 };

static inline void mlir_advance(mlir_parser *p) { p->token = mlir_lexer_next(&p->lexer); }
static inline bool mlir_at(const mlir_parser *p, const char *text) {
  return p->token.kind != MLIR_STRING && p->token.kind != MLIR_SYMBOL && mlir_token_is(p->token, text);
}
static inline bool mlir_accept(mlir_parser *p, const char *text) {
  if (!mlir_at(p, text)) return false;
  mlir_advance(p);
  return true;
}
static inline ts_status mlir_expect(mlir_parser *p, const char *text) {
  return mlir_accept(p, text) ? TS_SUCCESS : mlir_error(TS_INVALID_ARGUMENT, p->token, "expected '%s'", text);
}

/* An error at the next token: "expected a value, found ')'". */
static inline ts_status mlir_unexpected(const mlir_parser *p, const char *what) {
  return mlir_error(TS_INVALID_ARGUMENT, p->token, "expected %s", what);
}

/* A list in the arena that grows. */
#define MLIR_PUSH(p, list, count, capacity, value)                                                           \
  do {                                                                                                       \
    if ((count) == (capacity)) TS_TRY(mlir_grow((p)->arena, (void **)&(list), &(capacity), sizeof *(list))); \
    (list)[(count)++] = (value);                                                                             \
  } while (0)
ts_status mlir_grow(ts_arena *arena, void **list, size_t *capacity, size_t element);

/* The type of a number by its name; false when no tensor has it. */
bool mlir_element_type(mlir_token name, mlir_type *out);
/* A token says that one op comes after another. It is a tensor without elements, as JAX passes tokens to programs. */
mlir_type mlir_token_type(void);
/* tensor<2x3xf32>; the next token is its first. */
ts_status mlir_parse_type(mlir_parser *p, mlir_type *out);
/* A type, or some in parentheses. */
ts_status mlir_parse_types(mlir_parser *p, mlir_types *out);
/* The same of a function's results, with a dictionary for each. */
ts_status mlir_parse_results(mlir_parser *p, mlir_types *out, mlir_attr **out_attrs);
ts_status mlir_parse_attr(mlir_parser *p, mlir_attr *out);
/* name = value, ...: after the opening character, up to the closing one. */
ts_status mlir_parse_dict(mlir_parser *p, const char *close, mlir_attr *out);
/* After '<', up to its '>': what has no meaning here. */
ts_status mlir_skip_angles(mlir_parser *p, mlir_attr *out);

/* ---- mlir_sharding.c. A sharding is a list of dims, each a list of axes; its token is the name of the mesh. */
/* [<@mesh, [{"x"}, {}]>, ...] */
ts_status mlir_parse_shardings(mlir_parser *p, mlir_attr *out);
/* <["x"=4, "y"=2]>: a dictionary of sizes. */
ts_status mlir_parse_mesh(mlir_parser *p, mlir_attr *out);
/* {"x", "y"}: a list of axes. */
ts_status mlir_parse_manual_axes(mlir_parser *p, mlir_attr *out);
/* An attribute of sdy after its '<'; one that is not known is a unit. */
ts_status mlir_parse_sdy(mlir_parser *p, mlir_attr *out);

/* ---- mlir_parse.c */
/* An op in its pretty or its generic form, with its results and its location. */
ts_status mlir_parse_op(mlir_parser *p, mlir_op *out);
/* After '(': parameters with their types, up to ')'. */
ts_status mlir_parse_params(mlir_parser *p, mlir_region *out);
/* {...}, which ends with a return. */
ts_status mlir_parse_region(mlir_parser *p, mlir_region *out);

/* ---- mlir_module.c */
/* The function that an op func.func is; `arguments` and `results` are of its type. */
ts_status mlir_func_of(const mlir_op *op, const mlir_types *arguments, const mlir_types *results, mlir_func *out);
/* The mesh that an op sdy.mesh is. */
ts_status mlir_mesh_of(const mlir_op *op, mlir_mesh *out);

/* loc(...), where there is one. */
ts_status mlir_skip_location(mlir_parser *p);

#endif
