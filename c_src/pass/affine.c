#include "pass/affine.h"

#include <stdlib.h>

ts_affine ts_affine_linear(const ts_shape *shape, const ts_affine *map) {
  ts_affine sum = {0};
  int64_t strides[TS_MAX_RANK];
  ts_shape_strides(shape, strides);
  for (int32_t d = 0; d < shape->rank; d++) ts_affine_add(&sum, &map[d], strides[d]);
  return sum;
}

/* A loop with a negative coefficient is reversed, so that all terms count upwards from `base`. */
static int64_t upward_base(const ts_loops *loops, const ts_affine *x) {
  int64_t base = x->offset;
  for (int32_t l = 0; l < loops->count; l++) {
    if (x->coef[l] < 0) base += x->coef[l] * (loops->extent[l] - 1);
  }
  return base;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* Adds step * (index of loop l), with the index reversed when `down`. */
static void add_term(ts_affine *to, const ts_loops *loops, int32_t l, int64_t step, bool down) {
  to->coef[l] = down ? -step : step;
  if (down) to->offset += step * (loops->extent[l] - 1);
}

bool ts_affine_split(const ts_loops *loops, const ts_affine *x, int64_t size, ts_affine *outer, ts_affine *inner,
                     ts_refine *refine) {
  int64_t base = upward_base(loops, x);
  *outer = (ts_affine){.offset = floor_div(base, size)};
  *inner = (ts_affine){.offset = base - outer->offset * size};
  int64_t highest = inner->offset;
  for (int32_t l = 0; l < loops->count; l++) {
    int64_t step = llabs(x->coef[l]), extent = loops->extent[l];
    if (step == 0) continue;
    if (step % size == 0) {
      add_term(outer, loops, l, step / size, x->coef[l] < 0);
      continue;
    }
    if (step * (extent - 1) >= size) {
      int64_t turns = size / step;
      if (step * turns == size && turns > 1 && extent % turns == 0) *refine = (ts_refine){l, turns};
      return false;
    }
    add_term(inner, loops, l, step, x->coef[l] < 0);
    highest += step * (extent - 1);
  }
  return highest < size;
}

/* Splits the linear index over `rank` dims into one expression for each dim. */
static bool peel(const ts_loops *loops, ts_affine linear, const int64_t *dims, int32_t rank, ts_affine *out,
                 ts_refine *refine) {
  for (int32_t d = rank - 1; d > 0; d--) {
    ts_affine outer;
    if (dims[d] == 1) continue;
    if (!ts_affine_split(loops, &linear, dims[d], &outer, &out[d], refine)) return false;
    linear = outer;
  }
  out[0] = linear;
  return true;
}

/* Extends a group of dims that ends at `last` downwards: to at least one dim of more than one element, then while its
 * size is below the other's. */
static void grow(const ts_shape *shape, int32_t *first, int64_t *size) {
  while (*first > 0 && *size <= 1) *size *= shape->dims[--*first];
}

bool ts_affine_reshape(const ts_loops *loops, const ts_shape *from, const ts_affine *map, const ts_shape *to,
                       ts_affine *out, ts_refine *refine) {
  int32_t i = from->rank, j = to->rank;
  for (int32_t d = 0; d < to->rank; d++) out[d] = (ts_affine){0};
  while (i > 0 && j > 0) {
    int32_t i_end = i, j_end = j;
    int64_t a = 1, b = 1;
    grow(from, &i, &a);
    grow(to, &j, &b);
    while (a != b) {
      if (a < b && i > 0)
        a *= from->dims[--i];
      else if (b < a && j > 0)
        b *= to->dims[--j];
      else
        return false;
    }
    ts_affine linear = {0};
    int64_t stride = 1;
    for (int32_t d = i_end - 1; d >= i; stride *= from->dims[d--]) ts_affine_add(&linear, &map[d], stride);
    if (!peel(loops, linear, to->dims + j, j_end - j, out + j, refine)) return false;
  }
  return true;
}
