/* Routines of LAPACK as targets of custom_call: eigenvalues and Schur forms of any matrix, Hessenberg and tridiagonal
 * forms. The library is opened by the first program that calls one; a machine without it runs everything else. */
#ifndef TS_KERNEL_LAPACK_H
#define TS_KERNEL_LAPACK_H

#include "tessera_plugin.h"

/* A plugin that is never loaded. Its targets take matrices of f32, f64, c64 or c128 in the last two dims, and give
 * `info`, s32, as their last result: 0, a positive number where LAPACK failed, or -4 for a matrix that is not finite,
 * whose results are NaN.
 *   lapack.geev(left, right)  (a) -> (values, left vectors, right vectors); of a real matrix the values are two
 * results, real and imaginary parts, and the vectors complex. Vectors not asked for are 0. lapack.gees(vectors) (a) ->
 * (form, vectors, values as above, s32: 0) lapack.gehrd(low, high)   (a) -> (form and reflectors, their scales)
 *   lapack.sytrd(upper)       (a) -> (form and reflectors, diagonal, the numbers beside it, scales) */
const tessera_plugin *ts_lapack_plugin(void);

#endif
