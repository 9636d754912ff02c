/* Inside of vecmath*.c: short building blocks over LLVM-C, and the families of functions that ts_emit_math() chooses
 * from. A ts_vm is a view of one emission at one float type; it owns nothing and lives on the stack. An emission
 * belongs to one thread. */
#ifndef TS_JIT_VECMATH_H
#define TS_JIT_VECMATH_H

#include "jit/emit/emit.h"

#define TS_VM_MAX_LANES 64

typedef struct ts_vm {
  ts_emit *e;
  LLVMBuilderRef b;
  unsigned lanes;
  bool wide;                    /* f64, not f32 */
  bool fma;                     /* the target has FMA; without it l_fma would call libm lane by lane */
  LLVMTypeRef scalar;           /* float or double */
  LLVMTypeRef vec;              /* a vector of `scalar` */
  LLVMTypeRef int_scalar, ints; /* integers of the same width */
} ts_vm;

ts_vm ts_vm_begin(ts_emit *e, bool wide, unsigned lanes);

/* ---- constants ---- */
#define L_LN2 0.69314718055994530942
#define L_LOG2_E 1.4426950408889634074
ts_v l_const(ts_vm *m, double value); /* rounded to the type */
ts_v l_int(ts_vm *m, int64_t value);
ts_v l_splat_const(LLVMValueRef scalar, unsigned lanes);

/* ---- arithmetic, each rounding once ---- */
static inline ts_v l_add(ts_vm *m, ts_v a, ts_v b) { return LLVMBuildFAdd(m->b, a, b, ""); }
static inline ts_v l_sub(ts_vm *m, ts_v a, ts_v b) { return LLVMBuildFSub(m->b, a, b, ""); }
static inline ts_v l_mul(ts_vm *m, ts_v a, ts_v b) { return LLVMBuildFMul(m->b, a, b, ""); }
static inline ts_v l_div(ts_vm *m, ts_v a, ts_v b) { return LLVMBuildFDiv(m->b, a, b, ""); }
static inline ts_v l_neg(ts_vm *m, ts_v a) { return LLVMBuildFNeg(m->b, a, ""); }
ts_v l_intrinsic(ts_vm *m, const char *name, ts_v *args, unsigned count); /* overloaded on the type of args[0] */
ts_v l_fma(ts_vm *m, ts_v a, ts_v b, ts_v c); /* a * b + c; with two roundings where the target lacks FMA */
ts_v l_sqrt(ts_vm *m, ts_v a);
ts_v l_abs(ts_vm *m, ts_v a);
ts_v l_copysign(ts_vm *m, ts_v magnitude, ts_v sign);

/* coefficients[0] + x * (coefficients[1] + x * ...), Horner's way. */
ts_v l_poly(ts_vm *m, ts_v x, const double *coefficients, int count);
#define L_POLY(m, x, array) l_poly(m, x, array, (int)(sizeof(array) / sizeof((array)[0])))
/* The same by even and odd powers side by side, which takes half as long where nothing else is to be done meanwhile. */
ts_v l_poly_in_two(ts_vm *m, ts_v x, ts_v square, const double *coefficients, int count);
#define L_POLY_IN_TWO(m, x, square, array) l_poly_in_two(m, x, square, array, (int)(sizeof(array) / sizeof((array)[0])))

/* ---- bounds and selection ---- */
static inline ts_v l_cmp(ts_vm *m, LLVMRealPredicate p, ts_v a, ts_v b) { return LLVMBuildFCmp(m->b, p, a, b, ""); }
static inline ts_v l_select(ts_vm *m, ts_v c, ts_v a, ts_v b) { return LLVMBuildSelect(m->b, c, a, b, ""); }
/* Bounds that preserve NaN. */
ts_v l_at_most(ts_vm *m, ts_v a, double bound);
ts_v l_at_least(ts_vm *m, ts_v a, double bound);
ts_v l_within(ts_vm *m, ts_v a, double low, double high); /* `high` for NaN */

/* ---- bits ---- */
static inline ts_v l_bits(ts_vm *m, ts_v a) { return LLVMBuildBitCast(m->b, a, m->ints, ""); }
static inline ts_v l_float(ts_vm *m, ts_v a) { return LLVMBuildBitCast(m->b, a, m->vec, ""); }

/* ---- between f32 and f64 lanes ---- */
static inline ts_v l_widen(ts_vm *wide, ts_v a) { return LLVMBuildFPExt(wide->b, a, wide->vec, ""); }
static inline ts_v l_narrow(ts_vm *narrow, ts_v a) { return LLVMBuildFPTrunc(narrow->b, a, narrow->vec, ""); }

/* ---- lanes ---- */
ts_v l_lanes(ts_vm *m, ts_v a, unsigned first, unsigned count); /* `count` lanes of `a` */
ts_v l_join(ts_vm *m, ts_v low, ts_v high);
/* A branch around code that is needed only if `condition` holds in a lane whose result is kept. `before` and `end` are
 * the blocks that lead to `join`; the code between begin and end may add blocks. */
typedef struct l_branch {
  LLVMBasicBlockRef before, end, join;
} l_branch;
l_branch l_branch_begin(ts_vm *m, ts_v condition, bool likely);
void l_branch_end(ts_vm *m, l_branch *branch);
/* After the end: `inside` where the branch was taken, else `outside`. */
ts_v l_branch_merge(ts_vm *m, const l_branch *branch, ts_v outside, ts_v inside);
/* `usual`, but rare(x, y) in the lanes where `condition` holds. A branch skips the rare code when no lane needs it, so
 * the IR builder is in another block afterwards. */
ts_v l_rarely(ts_vm *m, ts_v condition, ts_v usual, ts_v (*rare)(ts_vm *m, ts_v x, ts_v y), ts_v x, ts_v y);

/* ---- instructions that only AVX-512 has (vecmath_avx512.c) ---- */
ts_v ts_vm_avx512_scale(ts_vm *m, ts_v a, ts_v n); /* a * 2^floor(n), rounded once */
ts_v ts_vm_avx512_exponent(ts_vm *m, ts_v a);      /* floor(log2(|a|)), also of subnormals; -inf of 0, inf of inf */
ts_v ts_vm_avx512_mantissa(ts_vm *m, ts_v a);      /* a / 2^k in [3/4, 3/2); 1 of 0 and inf; NaN of a negative */
ts_v ts_vm_avx512_rsqrt(ts_vm *m, ts_v a);         /* within 2^-14 */
/* The larger (smaller) of two vectors whose length is at most a register or a multiple of it; -0 < 0. NaN if either
 * operand is; `a` in lanes outside of the mask, if there is one. */
ts_v ts_vm_avx512_extreme(ts_vm *m, bool largest, ts_v a, ts_v b, ts_v mask);
/* The same, but undefined for NaN. */
ts_v ts_vm_avx512_number(ts_vm *m, bool largest, ts_v a, ts_v b);

/* ---- tables (vecmath_table.c) ---- */
/* table[index % count], lane by lane, of 8 or 16 constants. */
ts_v ts_vm_table(ts_vm *m, ts_v index, const double *table, int count);

/* ---- the library (vecmath_library.c) ----
 * SLEEF's function at the target's width; `name` and `accuracy` as in Sleef_finz_<name>f16_<accuracy>avx512f. */
ts_v ts_vm_library(ts_vm *m, const char *name, const char *accuracy, ts_v x, ts_v y);

/* ---- families ---- */
/* a * 2^n, rounded once, for an integer n of twice the range of a normal exponent. `shifted` is n + ts_vm_magic(). */
ts_v ts_vm_scale(ts_vm *m, ts_v a, ts_v n, ts_v shifted);
/* a 2^n for `a` about 1 where that is a normal number: n, the low bits of `shifted`, is added to the exponent of `a`.
 * NaN may become a number. */
ts_v ts_vm_scale_normal(ts_vm *m, ts_v a, ts_v shifted);
ts_v ts_vm_magic(ts_vm *m); /* 1.5 * 2^23 (2^52): adding it rounds to an integer and leaves that in the low bits */
ts_v ts_vm_exp(ts_vm *m, ts_v x);
/* exp(a) for -750 < a <= 0 in f64 lanes, to 2^-34, and also up to 700; or -87 < a <= 0 in f32 lanes, to 2^-28 before
 * rounding. */
ts_v ts_vm_exp_of_negative(ts_vm *m, ts_v a);
/* (a + a_low) exp(x + x_low), -750 < x <= 700, in f64 lanes with FMA. The low parts are below a last place. */
ts_v ts_vm_times_exp(ts_vm *m, ts_v a, ts_v a_low, ts_v x, ts_v x_low);
ts_v ts_vm_expm1(ts_vm *m, ts_v x);
ts_v ts_vm_sigmoid(ts_vm *m, ts_v x);
ts_v ts_vm_tanh(ts_vm *m, ts_v x);
ts_v ts_vm_sinh(ts_vm *m, ts_v x);
ts_v ts_vm_cosh(ts_vm *m, ts_v x);

/* A positive number is 2^k (1 + f), 3/4 <= 1 + f < 3/2. */
typedef struct ts_vm_parts {
  ts_v f;
  ts_v k;        /* as a float */
  ts_v exponent; /* bits of 2^k, without AVX-512 and for log1p */
} ts_vm_parts;
ts_vm_parts ts_vm_split(ts_vm *m, ts_v x);        /* with integer operations; for positive normal numbers only */
ts_vm_parts ts_vm_split_avx512(ts_vm *m, ts_v x); /* zero gives k = -inf, infinity k = inf, a negative number f = NaN */
/* k ln 2 + log(1 + f), with `p` of log(1 + f) = f - f^2 / 2 + f^3 p. */
ts_v ts_vm_log_by(ts_vm *m, ts_vm_parts x, ts_v p);
ts_v ts_vm_log(ts_vm *m, ts_v x);
ts_v ts_vm_log1p(ts_vm *m, ts_v x);
ts_v ts_vm_log_normal(ts_vm *m, ts_v x); /* the same for positive normal x; f64 with FMA */
ts_v ts_vm_log_short(ts_vm *m, ts_v x);  /* positive normal x, to 2^-30 in f64 lanes, to 2^-26.7 in f32 lanes */
ts_v ts_vm_asinh(ts_vm *m, ts_v x);
ts_v ts_vm_acosh(ts_vm *m, ts_v x);
ts_v ts_vm_atanh(ts_vm *m, ts_v x);
ts_v ts_vm_pow(ts_vm *m, ts_v x, ts_v y);
ts_v ts_vm_rsqrt(ts_vm *m, ts_v x);
ts_v ts_vm_cbrt(ts_vm *m, ts_v x);

ts_v ts_vm_sin(ts_vm *m, ts_v x);
ts_v ts_vm_cos(ts_vm *m, ts_v x);
ts_v ts_vm_tan(ts_vm *m, ts_v x);
ts_v ts_vm_asin(ts_vm *m, ts_v x);
ts_v ts_vm_acos(ts_vm *m, ts_v x);
ts_v ts_vm_atan(ts_vm *m, ts_v x);
ts_v ts_vm_atan2(ts_vm *m, ts_v y, ts_v x);

ts_v ts_vm_erf(ts_vm *m, ts_v x);
ts_v ts_vm_erfc(ts_vm *m, ts_v x);
ts_v ts_vm_erf_inv(ts_vm *m, ts_v x);

#endif
