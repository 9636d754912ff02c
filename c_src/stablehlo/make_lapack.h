/* Pieces of the files that make routines of LAPACK. Internal to stablehlo/. */
#ifndef TS_STABLEHLO_MAKE_LAPACK_H
#define TS_STABLEHLO_MAKE_LAPACK_H

#include "stablehlo/make.h"

enum { MAKE_MOST_STATES = 6 };

/* A loop of a number of steps: state 0 counts them, from 0 on. */
typedef struct make_steps {
  const make_call *m;
  ts_value_id state[MAKE_MOST_STATES];
  size_t count;
  int64_t number;
  ts_status (*step)(const make_call *m, ts_value_id *state); /* in a region: the next states */
} make_steps;
/* Sets the states before the first step; afterwards they are those after the last one. */
ts_status make_run_steps(make_steps *steps);

/* Inserts a dim of one element. */
ts_status make_with_dim(const make_call *m, ts_value_id x, int32_t axis, ts_value_id *out);
/* A number in each element of a shape. */
ts_status make_fill(const make_call *m, ts_dtype type, const ts_shape *shape, double number, ts_value_id *out);
/* The first zero of each line of the last dim, from 1 on; 0 without one. */
ts_status make_first_zero(const make_call *m, ts_value_id lines, ts_value_id *out);

/* make_tridiagonal.c */
ts_status make_gtsv(const make_call *m);

#endif
