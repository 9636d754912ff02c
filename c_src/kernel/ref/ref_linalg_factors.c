/* qr, eigh and svd, computed in long double and rounded once at the end. */
#include "kernel/ref/ref_linalg_numbers.h"

#include <float.h>

#define REF_EPSILON LDBL_EPSILON

#define NUMBER ref_long
#define REAL ref_long
#define NAME(x) x##_long
#include "kernel/ref/ref_linalg_elements.h"
#include "kernel/ref/ref_linalg_factors.h"
#undef NUMBER
#undef NAME

#define NUMBER ref_complex
#define NAME(x) x##_complex
#include "kernel/ref/ref_linalg_elements.h"
#include "kernel/ref/ref_linalg_factors.h"
#undef NUMBER
#undef REAL
#undef NAME

ts_status ts_ref_factors(const ts_ref_call *call) {
  return ts_dtype_is_complex(call->operands[0]->dtype) ? factors_complex(call) : factors_long(call);
}
