/* The shared part of the random graph generator; internal to its files. */
#ifndef TS_TEST_RANDOM_INTERNAL_H
#define TS_TEST_RANDOM_INTERNAL_H

#include "random_graph.h"

/* SplitMix64. */
typedef struct rng {
  uint64_t state;
} rng;

uint64_t rng_next(rng *r);
int64_t rng_below(rng *r, int64_t n);                   /* in [0, n), 0 for n <= 1 */
int64_t rng_between(rng *r, int64_t low, int64_t high); /* inclusive */
bool rng_chance(rng *r, int percent);
#define RNG_PICK(r, array) ((array)[rng_below((r), (int64_t)(sizeof(array) / sizeof((array)[0])))])

/* A value that later ops may use. An approximate one came out of a
 * transcendental function; it may be moved and returned, not computed with. */
typedef struct candidate {
  ts_value_id id;
  bool approximate;
} candidate;

/* A region that is being made, with its values. */
typedef struct scope {
  ts_region_id region;
  int depth; /* 0 for the root, which alone can get more parameters */
  bool approximate_allowed;
  TS_VEC(candidate) values;
} scope;

enum { FAMILY_SHAPES = 4 };

/* The kind of most ops of a program, so that ops that are rare in other programs meet here. */
typedef enum flavour { PLAIN, NARROW, SCALARS, EMPTIES, LOOPS, FLAVOURS } flavour;

typedef struct generator {
  ts_graph *graph;
  flavour flavour;
  rng random;
  ts_random_options options;
  ts_shape shapes[FAMILY_SHAPES]; /* most tensors have one of these shapes, so that they can meet */
} generator;

/* ---- random_graph.c ---- */
ts_dtype random_dtype(generator *g);
ts_dtype random_float_dtype(generator *g);
ts_dtype random_integer_dtype(generator *g);
ts_shape random_shape(generator *g);
/* The type of a value, by copy: adding ops moves the graph's arrays. */
ts_type type_of(const generator *g, ts_value_id value);
bool fits(const generator *g, const ts_shape *shape); /* at most max_elements */

/* Adds an op. Its result is not yet a candidate. */
ts_status add_op(generator *g, scope *s, ts_opcode code, const ts_attrs *attrs, const ts_value_id *operands,
                 size_t count, ts_value_id *out);
ts_status add_unary(generator *g, scope *s, ts_opcode code, ts_value_id x, ts_value_id *out);
ts_status add_binary(generator *g, scope *s, ts_opcode code, ts_value_id a, ts_value_id b, ts_value_id *out);
ts_status add_constant(generator *g, scope *s, ts_dtype type, const ts_shape *shape, double value, ts_value_id *out);
ts_status offer(scope *s, ts_value_id value, bool approximate);

/* A random exact candidate, later ones more often; there always is one. */
ts_value_id pick(generator *g, scope *s);
candidate pick_any(generator *g, scope *s);
/* An exact value of that type and shape: an existing or a new one. */
ts_status pick_like(generator *g, scope *s, ts_dtype type, const ts_shape *shape, ts_value_id *out);
/* An exact value of a float type. */
ts_status pick_float(generator *g, scope *s, ts_value_id *out);
/* A transcendental function of an exact float value; the result is not offered. */
ts_status add_function(generator *g, scope *s, ts_value_id x, ts_value_id *out);
/* Adds some ops to a nested region. */
ts_status fill_scope(generator *g, scope *s, int steps);

/* ---- productions: each adds one or more ops and offers results ---- */
typedef ts_status (*production)(generator *g, scope *s);

/* random_elementwise.c */
ts_status make_chain(generator *g, scope *s);
/* Parts joined, moved or computed with as a complex number, and taken apart. */
ts_status make_complex(generator *g, scope *s);
ts_status make_reinterpreted(generator *g, scope *s);
ts_status make_source(generator *g, scope *s);
/* random_move.c */
ts_status make_move(generator *g, scope *s);
ts_status make_linalg(generator *g, scope *s);
ts_status make_indexed(generator *g, scope *s);
ts_status make_window(generator *g, scope *s);
/* A value in another shape of as many elements. */
ts_status add_reshape(generator *g, scope *s, ts_value_id x, ts_value_id *out);
/* random_factors.c: transforms, qr, eigh, svd */
ts_status make_library(generator *g, scope *s);
/* random_reduce.c */
ts_status make_reduce(generator *g, scope *s);
ts_status make_arg_reduce(generator *g, scope *s);
ts_status make_siblings(generator *g, scope *s);
ts_status make_scan(generator *g, scope *s);
ts_status make_sort(generator *g, scope *s);
ts_status make_windows(generator *g, scope *s);
ts_status make_row_program(generator *g, scope *s);
ts_status make_contraction(generator *g, scope *s);

typedef struct dot_plan {
  ts_attrs attrs;
  ts_shape rhs;
  ts_shape result; /* its dims in some order */
  int64_t work;    /* multiplications */
} dot_plan;

/* Random axes of a product with an operand of that shape, and the other operand's shape; false if it would be large. */
bool random_dot_plan(generator *g, const ts_shape *lhs, dot_plan *out);
ts_status make_conv(generator *g, scope *s);
/* random_control.c */
ts_status make_control(generator *g, scope *s);
ts_status make_region_reduce(generator *g, scope *s);

#endif
