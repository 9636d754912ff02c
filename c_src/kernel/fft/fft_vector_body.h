/* The code of fft_vector.h for one instruction set: VECTOR_BYTES, and ISA for names. */
#include "kernel/fft/fft_vector.h"
#include "kernel/inline.h"

#include <string.h>

typedef float ISA(fft_f32) __attribute__((vector_size(VECTOR_BYTES)));
typedef double ISA(fft_f64) __attribute__((vector_size(VECTOR_BYTES)));

#define T float
#define V ISA(fft_f32)
#define NAME(name) ISA(name##_f32)
#define LANES (VECTOR_BYTES / 4)
#define COLUMNS TS_FFT_F32_COLUMNS
#include "kernel/fft/fft_vector_type.h"

#define T double
#define V ISA(fft_f64)
#define NAME(name) ISA(name##_f64)
#define LANES (VECTOR_BYTES / 8)
#define COLUMNS TS_FFT_F64_COLUMNS
#include "kernel/fft/fft_vector_type.h"

#define ROW(NAME)                                                                                        \
  {                                                                                                      \
    NAME(pass), NAME(transpose_rows), NAME(split), NAME(join), NAME(multiply), NAME(unfold), NAME(fold), \
        NAME(load_lines), NAME(store_lines), NAME(unfold_rows), NAME(fold_rows)                          \
  }
#define F32(name) ISA(name##_f32)
#define F64(name) ISA(name##_f64)
const ts_fft_vector ISA(ts_fft_vector)[2] = {ROW(F32), ROW(F64)};
