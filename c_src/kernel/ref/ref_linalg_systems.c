/* cholesky, triangular_solve, solve, determinant and lu. Half types are computed in f32 and rounded once, f32 and f64
 * in themselves: of real matrices the order of sums and so each bit is the op's meaning. Of complex ones it is not. */
#include "kernel/ref/ref_linalg_numbers.h"

#define NUMBER float
#define REAL float
#define NAME(x) x##_float
#include "kernel/ref/ref_linalg_elements.h"
#include "kernel/ref/ref_linalg_systems.h"
#undef NUMBER
#undef REAL
#undef NAME

#define NUMBER double
#define REAL double
#define NAME(x) x##_double
#include "kernel/ref/ref_linalg_elements.h"
#include "kernel/ref/ref_linalg_systems.h"
#undef NUMBER
#undef REAL
#undef NAME

#define NUMBER ref_complex
#define REAL ref_long
#define NAME(x) x##_complex
#include "kernel/ref/ref_linalg_elements.h"
#include "kernel/ref/ref_linalg_systems.h"
#undef NUMBER
#undef REAL
#undef NAME

ts_status ts_ref_systems(const ts_ref_call *call) {
  const ts_dtype type = call->operands[0]->dtype;
  if (ts_dtype_is_complex(type)) return systems_complex(call);
  return type == TS_F64 ? systems_double(call) : systems_float(call);
}
