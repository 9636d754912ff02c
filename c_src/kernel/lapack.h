/* Routines of LAPACK as targets of custom_call: eigenvalues and Schur forms of any matrix, Hessenberg and tridiagonal
 * forms. The library is opened by the first program that calls one; a machine without it runs everything else. */
#ifndef TS_KERNEL_LAPACK_H
#define TS_KERNEL_LAPACK_H

#include "tessera_plugin.h"

/* A plugin that is never loaded from a file. Its targets have one operand `a`: matrices of f32, f64, c64 or c128 in the
 * last two dims.
 *   lapack.geev(left, right)  (a) -> (values, left vectors, right vectors, info)
 *   lapack.gees(vectors)      (a) -> (form, vectors, values, zeros of s32, info)
 *   lapack.gehrd(low, high)   (a) -> (form and reflectors, scales, info)
 *   lapack.sytrd(upper)       (a) -> (form and reflectors, diagonal, numbers beside it, scales, info)
 * `info` has type s32. It is 0, or a positive number where LAPACK failed. Where a matrix is not finite it is -4, and
 * the other results are NaN. A real matrix has two results in the place of the values: real and imaginary parts. The
 * vectors of geev are complex. If the attribute `left`, `right` or `vectors` is 0, the vectors are 0. */
const tessera_plugin *ts_lapack_plugin(void);

#endif
