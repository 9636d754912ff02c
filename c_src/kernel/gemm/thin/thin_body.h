/* The code of thin.h for one instruction set, which defines
 *   VECTOR_BYTES              of a vector: 16, 32 or 64
 *   JOIN(lines, step, at)     a vector of the 16 bytes at `at` of the lines 0, step, 2 * step and so on
 *   LOW32 HIGH32 LOW64 HIGH64 of two vectors: interleaves the lower or upper halves of their pieces, by 32 or 64 bits
 *   FMA32 FMA64               a * b + c of vectors
 *   SPREAD32 SPREAD64         a vector of one number
 *   ISA(name)                 the name of something of this instruction set */
#include "kernel/gemm/gemm_internal.h"
#include "kernel/gemm/gemm_widen.h"
#include "kernel/gemm/thin/thin.h"
#include "kernel/inline.h"
#include "tensor/contract_order.h"

#include <stdbool.h>
#include <string.h>

/* Steps of k that are transposed together. */
enum { STEPS = 16 };
/* Vectors of rows' chains, or groups of rows, that are computed at once: the sums of one wait for each other. THIN_FEW
 * rows of complex numbers share what is loaded of the vector. */
enum { THIN_ROWS = 2, THIN_GROUPS = 3, THIN_FEW = 4 };

/* Squares in the pieces of vectors. */
#define TURN32(v, out)                                                                                    \
  do {                                                                                                    \
    const V a = LOW32(v[0], v[1]), b = HIGH32(v[0], v[1]), c = LOW32(v[2], v[3]), d = HIGH32(v[2], v[3]); \
    out[0] = LOW64(a, c);                                                                                 \
    out[1] = HIGH64(a, c);                                                                                \
    out[2] = LOW64(b, d);                                                                                 \
    out[3] = HIGH64(b, d);                                                                                \
  } while (0)
#define TURN64(v, out)           \
  do {                           \
    out[0] = LOW64(v[0], v[1]);  \
    out[1] = HIGH64(v[0], v[1]); \
  } while (0)

#define T float
#define FMA FMA32
#define SPREAD SPREAD32
#define WIDEN ts_gemm_widen_host()->to_f32
#define TURN TURN32
#define LOW LOW32
#define HIGH HIGH32
#define NAME(name) name##_f32
#include "kernel/gemm/thin/thin_type.h"

#include "kernel/gemm/thin/thin_complex_type.h"

#include "kernel/gemm/thin/thin_type_end.h"

#define T double
#define FMA FMA64
#define SPREAD SPREAD64
#define WIDEN ts_gemm_widen_host()->to_f64
#define TURN TURN64
#define LOW LOW64
#define HIGH HIGH64
#define NAME(name) name##_f64
#include "kernel/gemm/thin/thin_type.h"

#include "kernel/gemm/thin/thin_complex_type.h"

#include "kernel/gemm/thin/thin_type_end.h"

const thin_code ISA(ts_thin) = {run_f32, run_f64, run_complex_f32, run_complex_f64, VECTOR_BYTES};
