/* The code of vector_dot.h for one instruction set, which defines
 *   VECTOR_BYTES   of a vector: 16, 32 or 64
 *   FMA32 FMA64    a * b + c of vectors
 *   MADD32 MADD64  a * b + c of numbers, rounded as a lane of a vector is
 *   ISA(name)      the name of something of this instruction set */
#include "kernel/inline.h"
#include "kernel/vector_dot.h"
#include "tensor/dot_order.h"

#include <string.h>

#define VECTORS (TS_DOT_LANE_BYTES / VECTOR_BYTES)
/* Unrolls, so that arrays indexed by a vector's number stay in registers. */
#define EACH_VECTOR(v, count) _Pragma("GCC unroll 16") for (int v = 0; v < (count); v++)

#define T float
#define FMA FMA32
#define MADD MADD32
#define NAME(name) name##_f32
#include "kernel/vector_dot_type.h"

#define T double
#define FMA FMA64
#define MADD MADD64
#define NAME(name) name##_f64
#include "kernel/vector_dot_type.h"

const ts_vector_dot_code ISA(ts_vector_dot) = {block_f32, block_f64};
