/* Affine index expressions over the loops of a kernel, and their composition with a reshape. Pure, thread-safe, no
 * allocation. */
#ifndef TS_PASS_AFFINE_H
#define TS_PASS_AFFINE_H

#include "tensor/shape.h"

#define TS_LOOP_MAX 16

typedef struct ts_loops {
  int32_t count;
  int64_t extent[TS_LOOP_MAX];
} ts_loops;

/* offset + sum of coef[l] * (index of loop l); coefficients beyond the last loop are zero. */
typedef struct ts_affine {
  int64_t offset;
  int64_t coef[TS_LOOP_MAX];
} ts_affine;

/* Loop `loop` has to be split, with an inner loop of extent `inner`; 0: no split helps. */
typedef struct ts_refine {
  int32_t loop;
  int64_t inner;
} ts_refine;

static inline bool ts_affine_equal(const ts_affine *a, const ts_affine *b) {
  if (a->offset != b->offset) return false;
  for (int l = 0; l < TS_LOOP_MAX; l++) {
    if (a->coef[l] != b->coef[l]) return false;
  }
  return true;
}

/* Bytes from one step of a loop to the next one's, up or down. */
static inline int64_t ts_affine_distance(const ts_affine *at, int32_t loop) {
  return at->coef[loop] < 0 ? -at->coef[loop] : at->coef[loop];
}

/* How many elements the loops reach: those along which it does not move count once. */
static inline int64_t ts_affine_elements(const ts_affine *at, const ts_loops *loops) {
  int64_t elements = 1;
  for (int32_t l = 0; l < loops->count; l++) elements *= at->coef[l] != 0 ? loops->extent[l] : 1;
  return elements;
}

/* sum += x * factor */
static inline void ts_affine_add(ts_affine *sum, const ts_affine *x, int64_t factor) {
  sum->offset += x->offset * factor;
  for (int l = 0; l < TS_LOOP_MAX; l++) sum->coef[l] += x->coef[l] * factor;
}

/* The row-major index over `shape` of the element at `map` (one expression per dim). */
ts_affine ts_affine_linear(const ts_shape *shape, const ts_affine *map);

/* Writes x as outer * size + inner with 0 <= inner < size at every point. False when that is not affine; then `refine`
 * says whether splitting a loop would make it so. */
bool ts_affine_split(const ts_loops *loops, const ts_affine *x, int64_t size, ts_affine *outer, ts_affine *inner,
                     ts_refine *refine);

/* The index map of an operand of shape `to` whose reshape to `from` is read at `map`. Neither shape is empty. False as
 * above. */
bool ts_affine_reshape(const ts_loops *loops, const ts_shape *from, const ts_affine *map, const ts_shape *to,
                       ts_affine *out, ts_refine *refine);

#endif
