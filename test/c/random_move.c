#include "random_internal.h"

#include <string.h>

/* ---- one move: its attributes, chosen for an operand's shape ---- */

static void shuffle(generator *g, int64_t *items, int32_t count) {
  for (int32_t i = count - 1; i > 0; i--) {
    int64_t j = rng_below(&g->random, i + 1), item = items[i];
    items[i] = items[j];
    items[j] = item;
  }
}

static void insert_dim(ts_shape *shape, int32_t at, int64_t dim) {
  memmove(shape->dims + at + 1, shape->dims + at, (size_t)(shape->rank - at) * sizeof(int64_t));
  shape->dims[at] = dim;
  shape->rank++;
}

static void remove_dim(ts_shape *shape, int32_t at) {
  memmove(shape->dims + at, shape->dims + at + 1, (size_t)(shape->rank - at - 1) * sizeof(int64_t));
  shape->dims[--shape->rank] = 0;
}

enum { MAX_RANK = 10 };

/* Merges two neighbours, splits one by a divisor, or adds or drops a 1. */
static void reshape_once(generator *g, ts_shape *shape) {
  int32_t at = (int32_t)rng_below(&g->random, shape->rank);
  static const int64_t divisors[] = {2, 3, 4, 8, 13};
  int64_t divisor = RNG_PICK(&g->random, divisors);
  bool room = shape->rank < MAX_RANK;
  if (shape->rank >= 2 && at + 1 < shape->rank && rng_chance(&g->random, 50)) {
    shape->dims[at] *= shape->dims[at + 1];
    remove_dim(shape, at + 1);
  } else if (shape->rank > 0 && shape->dims[at] == 1 && rng_chance(&g->random, 50)) {
    remove_dim(shape, at);
  } else if (room && shape->rank > 0 && shape->dims[at] > 0 && shape->dims[at] % divisor == 0 &&
             rng_chance(&g->random, 80)) {
    shape->dims[at] /= divisor;
    insert_dim(shape, at, divisor);
  } else if (room) {
    insert_dim(shape, (int32_t)rng_below(&g->random, shape->rank + 1), 1);
  }
}

static ts_status reshape(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_attrs attrs = {.shape = type_of(g, x).shape};
  for (int64_t i = rng_between(&g->random, 1, 4); i > 0; i--) reshape_once(g, &attrs.shape);
  return add_op(g, s, TS_OP_RESHAPE, &attrs, &x, 1, out);
}

ts_status add_reshape(generator *g, scope *s, ts_value_id x, ts_value_id *out) { return reshape(g, s, x, out); }

static ts_status transpose(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_attrs attrs = {.axes = {.rank = type_of(g, x).shape.rank}};
  for (int32_t d = 0; d < attrs.axes.rank; d++) attrs.axes.dims[d] = d;
  shuffle(g, attrs.axes.dims, attrs.axes.rank);
  return add_op(g, s, TS_OP_TRANSPOSE, &attrs, &x, 1, out);
}

static ts_status reverse(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_attrs attrs = {0};
  int32_t rank = type_of(g, x).shape.rank;
  for (int32_t d = 0; d < rank; d++) {
    if (rng_chance(&g->random, 60)) attrs.axes.dims[attrs.axes.rank++] = d;
  }
  return add_op(g, s, TS_OP_REVERSE, &attrs, &x, 1, out);
}

/* Adds dims anywhere and stretches ones; now and then the axes are not in order. */
static ts_status broadcast(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_shape from = type_of(g, x).shape, to = from;
  ts_dims axes = {.rank = from.rank};
  static const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 33};
  for (int32_t d = 0; d < from.rank; d++) axes.dims[d] = d;
  for (int32_t d = 0; d < to.rank; d++) {
    if (to.dims[d] == 1 && rng_chance(&g->random, 70)) to.dims[d] = RNG_PICK(&g->random, sizes);
  }
  while (to.rank < MAX_RANK && rng_chance(&g->random, to.rank < 5 ? 60 : 15)) {
    int32_t at = (int32_t)rng_below(&g->random, to.rank + 1);
    insert_dim(&to, at, RNG_PICK(&g->random, sizes));
    for (int32_t d = 0; d < axes.rank; d++) axes.dims[d] += axes.dims[d] >= at;
  }
  if (axes.rank >= 2 && rng_chance(&g->random, 10)) {
    int64_t first = axes.dims[0], second = axes.dims[1], dim = to.dims[first];
    axes.dims[0] = second, axes.dims[1] = first;
    to.dims[first] = to.dims[second], to.dims[second] = dim;
  }
  if (!fits(g, &to)) return reshape(g, s, x, out);
  ts_attrs attrs = {.broadcast = {.shape = to, .axes = axes}};
  return add_op(g, s, TS_OP_BROADCAST, &attrs, &x, 1, out);
}

static ts_status slice(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_shape shape = type_of(g, x).shape;
  ts_attrs attrs = {
      .slice = {.start = {.rank = shape.rank}, .limit = {.rank = shape.rank}, .stride = {.rank = shape.rank}}};
  for (int32_t d = 0; d < shape.rank; d++) {
    bool whole = rng_chance(&g->random, 40);
    int64_t start = whole ? 0 : rng_below(&g->random, shape.dims[d]);
    attrs.slice.start.dims[d] = start;
    attrs.slice.limit.dims[d] = whole ? shape.dims[d] : rng_between(&g->random, start, shape.dims[d]);
    attrs.slice.stride.dims[d] = rng_chance(&g->random, 70) ? 1 : rng_between(&g->random, 2, 5);
  }
  return add_op(g, s, TS_OP_SLICE, &attrs, &x, 1, out);
}

static int64_t padded_dim(int64_t dim, int64_t low, int64_t high, int64_t interior) {
  return dim + low + high + (dim > 0 ? (dim - 1) * interior : 0);
}

static ts_status pad(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_type type = type_of(g, x);
  int32_t rank = type.shape.rank;
  ts_attrs attrs = {.pad = {.low = {.rank = rank}, .high = {.rank = rank}, .interior = {.rank = rank}}};
  ts_shape to = {.rank = rank}, none = {.rank = 0};
  ts_value_id operands[2] = {x};
  for (int32_t d = 0; d < rank; d++) {
    int64_t low = rng_between(&g->random, -2, 3), high = rng_between(&g->random, -2, 3);
    int64_t interior = rng_chance(&g->random, 80) ? 0 : rng_between(&g->random, 1, 3);
    if (padded_dim(type.shape.dims[d], low, high, interior) < 0) low = high = 1;
    attrs.pad.low.dims[d] = low, attrs.pad.high.dims[d] = high, attrs.pad.interior.dims[d] = interior;
    to.dims[d] = padded_dim(type.shape.dims[d], low, high, interior);
  }
  if (!fits(g, &to)) return slice(g, s, x, out);
  TS_TRY(pick_like(g, s, type.dtype, &none, &operands[1]));
  return add_op(g, s, TS_OP_PAD, &attrs, operands, 2, out);
}

static ts_status concatenate(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_type type = type_of(g, x);
  ts_value_id operands[4] = {x};
  size_t count = (size_t)rng_between(&g->random, 1, 4);
  if (type.shape.rank == 0) return broadcast(g, s, x, out);
  ts_attrs attrs = {.axis = (int32_t)rng_below(&g->random, type.shape.rank)};
  ts_shape whole = type.shape, part = type.shape;
  for (size_t i = 1; i < count; i++) {
    if (rng_chance(&g->random, 60)) part.dims[attrs.axis] = rng_between(&g->random, 0, 17);
    whole.dims[attrs.axis] += part.dims[attrs.axis];
    if (!fits(g, &whole)) return transpose(g, s, x, out);
    TS_TRY(pick_like(g, s, type.dtype, &part, &operands[i]));
  }
  return add_op(g, s, TS_OP_CONCATENATE, &attrs, operands, count, out);
}

ts_status make_move(generator *g, scope *s) {
  static ts_status (*const moves[])(generator *, scope *, ts_value_id, ts_value_id *) = {
      reshape, transpose, reverse, broadcast, broadcast, slice, pad, concatenate};
  candidate x = pick_any(g, s);
  for (int64_t length = rng_between(&g->random, 1, 3); length > 0; length--) {
    TS_TRY(RNG_PICK(&g->random, moves)(g, s, x.id, &x.id));
  }
  return offer(s, x.id, x.approximate);
}

/* ---- windows: slices of one tensor at several offsets, which meet ---- */

/* Part of x that begins at `first` along `axis`, with `count` elements or every second of twice as many. */
static ts_status window(generator *g, scope *s, ts_value_id x, int32_t axis, int64_t first, int64_t count,
                        int64_t stride, ts_value_id *out) {
  ts_shape shape = type_of(g, x).shape;
  ts_attrs attrs = {.slice = {.limit = {.rank = shape.rank}}};
  attrs.slice.start.rank = attrs.slice.stride.rank = shape.rank;
  for (int32_t d = 0; d < shape.rank; d++) {
    attrs.slice.start.dims[d] = 0;
    attrs.slice.limit.dims[d] = shape.dims[d];
    attrs.slice.stride.dims[d] = 1;
  }
  attrs.slice.start.dims[axis] = first;
  attrs.slice.limit.dims[axis] = count > 0 ? first + (count - 1) * stride + 1 : first;
  attrs.slice.stride.dims[axis] = stride;
  return add_op(g, s, TS_OP_SLICE, &attrs, &x, 1, out);
}

static ts_status reversed(generator *g, scope *s, ts_value_id x, int32_t axis, ts_value_id *out) {
  ts_attrs attrs = {.axes = {.rank = 1, .dims = {axis}}};
  return add_op(g, s, TS_OP_REVERSE, &attrs, &x, 1, out);
}

ts_status make_window(generator *g, scope *s) {
  static const ts_opcode codes[] = {TS_OP_ADD, TS_OP_SUBTRACT, TS_OP_MULTIPLY, TS_OP_MAX};
  ts_value_id x = pick(g, s), sum, part;
  ts_shape shape = type_of(g, x).shape;
  if (shape.rank == 0) return make_move(g, s);
  int32_t axis = (int32_t)rng_below(&g->random, shape.rank);
  int64_t stride = rng_chance(&g->random, 75) ? 1 : 2, parts = rng_between(&g->random, 2, 4);
  int64_t count = rng_between(&g->random, 0, shape.dims[axis] / stride), slack = shape.dims[axis] - count * stride;
  TS_TRY(window(g, s, x, axis, rng_between(&g->random, 0, slack), count, stride, &sum));
  for (int64_t i = 1; i < parts; i++) {
    TS_TRY(window(g, s, x, axis, rng_between(&g->random, 0, slack), count, stride, &part));
    if (rng_chance(&g->random, 20)) TS_TRY(reversed(g, s, part, axis, &part));
    if (rng_chance(&g->random, 20)) TS_TRY(offer(s, part, false));
    TS_TRY(add_binary(g, s, RNG_PICK(&g->random, codes), sum, part, &sum));
  }
  return offer(s, sum, false);
}

/* ---- indexed ---- */

enum { MAX_STARTS = MAX_RANK };

/* Scalars of some integer type, in range or not. */
static ts_status pick_starts(generator *g, scope *s, int32_t count, ts_value_id *out) {
  ts_shape none = {.rank = 0};
  for (int32_t i = 0; i < count; i++) TS_TRY(pick_like(g, s, random_integer_dtype(g), &none, &out[i]));
  return TS_SUCCESS;
}

static ts_shape random_window(generator *g, const ts_shape *shape) {
  ts_shape window = {.rank = shape->rank};
  for (int32_t d = 0; d < shape->rank; d++) {
    window.dims[d] = rng_chance(&g->random, 30) ? shape->dims[d] : rng_between(&g->random, 0, shape->dims[d]);
  }
  return window;
}

static ts_status dynamic_slice(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_shape shape = type_of(g, x).shape;
  ts_attrs attrs = {.shape = random_window(g, &shape)};
  ts_value_id operands[1 + MAX_STARTS] = {x};
  TS_TRY(pick_starts(g, s, shape.rank, operands + 1));
  return add_op(g, s, TS_OP_DYNAMIC_SLICE, &attrs, operands, 1 + (size_t)shape.rank, out);
}

static ts_status put_slice(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_type type = type_of(g, x);
  ts_shape window = random_window(g, &type.shape);
  ts_value_id operands[2 + MAX_STARTS] = {x};
  TS_TRY(pick_like(g, s, type.dtype, &window, &operands[1]));
  TS_TRY(pick_starts(g, s, type.shape.rank, operands + 2));
  return add_op(g, s, TS_OP_PUT_SLICE, NULL, operands, 2 + (size_t)type.shape.rank, out);
}

static ts_status take(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_shape shape = type_of(g, x).shape, whole = shape;
  ts_attrs attrs = {.axis = (int32_t)rng_below(&g->random, shape.rank)};
  ts_shape indices = {.rank = (int32_t)rng_below(&g->random, 3), .dims = {0}};
  for (int32_t d = 0; d < indices.rank; d++) indices.dims[d] = rng_between(&g->random, 0, 20);
  whole.dims[attrs.axis] = ts_shape_elements(&indices);
  if (shape.dims[attrs.axis] == 0 || !fits(g, &whole) || shape.rank - 1 + indices.rank > MAX_RANK) {
    return dynamic_slice(g, s, x, out);
  }
  ts_value_id operands[2] = {x};
  TS_TRY(pick_like(g, s, random_integer_dtype(g), &indices, &operands[1]));
  return add_op(g, s, TS_OP_TAKE, &attrs, operands, 2, out);
}

static ts_status take_along_axis(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_shape indices = type_of(g, x).shape;
  ts_attrs attrs = {.axis = (int32_t)rng_below(&g->random, indices.rank)};
  bool empty = indices.dims[attrs.axis] == 0;
  if (!empty && rng_chance(&g->random, 60)) indices.dims[attrs.axis] = rng_between(&g->random, 0, 20);
  if (empty || !fits(g, &indices)) return put_slice(g, s, x, out);
  ts_value_id operands[2] = {x};
  TS_TRY(pick_like(g, s, random_integer_dtype(g), &indices, &operands[1]));
  return add_op(g, s, TS_OP_TAKE_ALONG, &attrs, operands, 2, out);
}

/* A tensor with rows of another one added to it, or put in the place of its own. */
static ts_status indexed_update(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_type type = type_of(g, x);
  ts_attrs attrs = {.axes = {.rank = 0}};
  ts_shape indices = {.rank = 2, .dims = {rng_between(&g->random, 0, 20)}},
           updates = {.rank = 1, .dims = {indices.dims[0]}};
  int32_t always = (int32_t)rng_below(&g->random, type.shape.rank);
  for (int32_t d = 0; d < type.shape.rank; d++) {
    if (d == always || rng_chance(&g->random, 30))
      attrs.axes.dims[attrs.axes.rank++] = d;
    else
      updates.dims[updates.rank++] = type.shape.dims[d];
  }
  indices.dims[1] = attrs.axes.rank;
  if (!fits(g, &updates)) return put_slice(g, s, x, out);
  ts_value_id operands[3] = {x};
  TS_TRY(pick_like(g, s, random_integer_dtype(g), &indices, &operands[1]));
  TS_TRY(pick_like(g, s, type.dtype, &updates, &operands[2]));
  ts_opcode code = rng_chance(&g->random, 50) ? TS_OP_INDEXED_ADD : TS_OP_INDEXED_PUT;
  return add_op(g, s, code, &attrs, operands, 3, out);
}

/* ---- linear algebra */

/* A value of the shape; where it is a batch of square matrices, mostly with a large diagonal. */
static ts_status pick_matrices(generator *g, scope *s, ts_dtype type, const ts_shape *shape, ts_value_id *out) {
  ts_value_id eye, large;
  ts_attrs attrs = {.shaped = {.dtype = type, .shape = *shape}};
  TS_TRY(pick_like(g, s, type, shape, out));
  if (rng_chance(&g->random, 20)) return TS_SUCCESS;
  TS_TRY(add_op(g, s, TS_OP_EYE, &attrs, NULL, 0, &eye));
  TS_TRY(add_constant(g, s, type, shape, 40, &large));
  TS_TRY(add_binary(g, s, TS_OP_MULTIPLY, eye, large, &eye));
  return add_binary(g, s, TS_OP_ADD, *out, eye, out);
}

static ts_status make_lu(generator *g, scope *s, ts_value_id a) {
  ts_value_id first;
  TS_TRY(add_op(g, s, TS_OP_LU, NULL, &a, 1, &first));
  for (ts_value_id i = 0; i < 3; i++) TS_TRY(offer(s, first + i, false));
  return TS_SUCCESS;
}

ts_status make_linalg(generator *g, scope *s) {
  if (!g->options.no_library && rng_chance(&g->random, 50)) return make_library(g, s);
  ts_dtype type = random_float_dtype(g);
  ts_shape square = {.rank = 2}, other;
  ts_value_id operands[2], y;
  while (square.rank < 4 && rng_chance(&g->random, 40)) square.rank++;
  for (int32_t d = 0; d < square.rank; d++) square.dims[d] = rng_between(&g->random, rng_chance(&g->random, 90), 12);
  square.dims[square.rank - 1] = square.dims[square.rank - 2];
  if (!fits(g, &square)) return make_move(g, s);
  TS_TRY(pick_matrices(g, s, type, &square, &operands[0]));
  if (rng_chance(&g->random, 40)) {
    TS_TRY(add_unary(g, s, TS_OP_CHOLESKY, operands[0], &y));
    return offer(s, y, false);
  }
  if (!g->options.no_factors && rng_chance(&g->random, 15)) return make_lu(g, s, operands[0]);
  if (!g->options.no_factors && rng_chance(&g->random, 20)) {
    TS_TRY(add_unary(g, s, TS_OP_DETERMINANT, operands[0], &y));
    return offer(s, y, false);
  }
  bool full = !g->options.no_factors && rng_chance(&g->random, 30);
  ts_attrs attrs = {.triangular = {.left = full || rng_chance(&g->random, 50),
                                   .lower = rng_chance(&g->random, 50),
                                   .transpose = rng_chance(&g->random, 50),
                                   .unit = rng_chance(&g->random, 20)}};
  other = square;
  other.dims[other.rank - (attrs.triangular.left ? 1 : 2)] = rng_between(&g->random, 0, 9);
  TS_TRY(pick_like(g, s, type, &other, &operands[1]));
  TS_TRY(full ? add_binary(g, s, TS_OP_SOLVE, operands[0], operands[1], &y)
              : add_op(g, s, TS_OP_TRIANGULAR_SOLVE, &attrs, operands, 2, &y));
  return offer(s, y, false);
}

#ifdef TS_TEST_ROWS
/* An op of three results; some are offered. */
static ts_status make_exchange(generator *g, scope *s) {
  ts_value_id operands[2] = {pick(g, s), TS_NO_ID}, first;
  ts_type type = type_of(g, operands[0]);
  if (!ts_dtype_is_integer(type.dtype)) {
    type.dtype = random_integer_dtype(g);
    TS_TRY(ts_graph_convert(g->graph, s->region, operands[0], type.dtype, &operands[0]));
  }
  TS_TRY(pick_like(g, s, type.dtype, &type.shape, &operands[1]));
  TS_TRY(add_op(g, s, TS_OP_TEST_EXCHANGE, NULL, operands, 2, &first));
  for (ts_value_id i = 0; i < 3; i++)
    if (rng_chance(&g->random, 60)) TS_TRY(offer(s, first + i, false));
  return TS_SUCCESS;
}
#endif

ts_status make_indexed(generator *g, scope *s) {
#ifdef TS_TEST_ROWS
  if (rng_chance(&g->random, 60)) return make_exchange(g, s);
#endif
  static ts_status (*const moves[])(generator *, scope *, ts_value_id,
                                    ts_value_id *) = {dynamic_slice, put_slice, take, take_along_axis, indexed_update};
  candidate x = pick_any(g, s);
  bool scalar = type_of(g, x.id).shape.rank == 0;
  ts_value_id y;
  TS_TRY(scalar ? dynamic_slice(g, s, x.id, &y) : RNG_PICK(&g->random, moves)(g, s, x.id, &y));
  return offer(s, y, x.approximate);
}
