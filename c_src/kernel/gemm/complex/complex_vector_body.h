/* The code of complex_vector.h for one instruction set, which defines for floats of 32 and 64 bits, here without it
 *   VECTOR_BYTES    of a vector: 16, 32 or 64
 *   VECTOR          its type
 *   FMA             a * b + c of vectors
 *   MADD            a * b + c of numbers, rounded as a lane of a vector is
 *   EVEN ODD        the real or the imaginary part of each number, twice
 *   SWAP            the parts of each number exchanged
 *   SPREAD(a)       a number in all places
 *   PAIR(at)        the two parts at `at` in all places
 *   NEGATE_EVEN     the signs of the real parts turned
 *   LOAD_SOME(at, count)  the first `count` parts, the others 0: all if it is larger, none if it is negative
 *   turn            as many vectors as they have numbers: number i of vector j becomes number j of vector i
 *   ISA(name)       the name of something of this instruction set */
#include <string.h>

/* Sums in registers together, and the most items whose sums they are: half of the registers. */
#define COMPLEX_SUMS (VECTOR_BYTES == 64 ? 16 : COMPLEX_VECTORS)
#define COMPLEX_GROUP (VECTOR_BYTES == 64 ? 4 : 2)
enum { COMPLEX_SIDE = 4 }; /* chains whose places are in registers together */

/* What the code of a piece is for; constants. */
typedef struct complex_kind {
  int width, chains, items;
  bool some, x_is_left;
  bool plain; /* factors are read where they lie */
} complex_kind;

#define T float
#define VECTOR VECTOR32
#define FMA FMA32
#define MADD MADD32
#define EVEN EVEN32
#define ODD ODD32
#define SWAP SWAP32
#define PAIR PAIR32
#define SPREAD SPREAD32
#define NEGATE_EVEN NEGATE_EVEN32
#define LOAD_SOME LOAD_SOME32
#define NAME(name) name##_f32
#include "kernel/gemm/complex/complex_vector_type.h"

#define T double
#define VECTOR VECTOR64
#define FMA FMA64
#define MADD MADD64
#define EVEN EVEN64
#define ODD ODD64
#define SWAP SWAP64
#define PAIR PAIR64
#define SPREAD SPREAD64
#define NEGATE_EVEN NEGATE_EVEN64
#define LOAD_SOME LOAD_SOME64
#define NAME(name) name##_f64
#include "kernel/gemm/complex/complex_vector_type.h"

const complex_vector_code ISA(ts_complex_vector) = {run_f32, run_f64, pack_rows_f32, pack_rows_f64, VECTOR_BYTES};
