/* Calls of SLEEF from emitted code: how its vector functions are named, declared and called, and the table of their
 * addresses for the linker. SLEEF is used for rare functions and rare arguments; common ones are emitted inline. Only
 * its deterministic functions are used (finz with FMA, cinz without): the others choose a method by all lanes of a
 * vector, so that a result would depend on its neighbours. */
#include "jit/math/vecmath.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- calls ---- */

static LLVMValueRef declare(ts_vm *m, const char *name, LLVMTypeRef type) {
  LLVMValueRef function = LLVMGetNamedFunction(m->e->module, name);
  if (function) return function;
  function = LLVMAddFunction(m->e->module, name, type);
  char bits[16];
  snprintf(bits, sizeof bits, "%d", m->e->target->lanes * 32);
  const char *attributes[][2] = {{"target-features", m->e->target->features}, {"min-legal-vector-width", bits}};
  for (size_t i = 0; i < 2; i++) {
    const char *key = attributes[i][0], *value = attributes[i][1];
    if (!value[0]) continue;
    LLVMAttributeRef a =
        LLVMCreateStringAttribute(m->e->context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, a);
  }
  static const char *const flags[] = {"nounwind", "willreturn"};
  for (size_t i = 0; i < 2; i++) {
    unsigned kind = LLVMGetEnumAttributeKindForName(flags[i], strlen(flags[i]));
    LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(m->e->context, kind, 0));
  }
  unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
  LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(m->e->context, kind, 0));
  return function;
}

/* A function of vectors of `width` lanes. */
typedef struct library_function {
  LLVMTypeRef type;
  LLVMValueRef value;
  unsigned width;
} library_function;

/* Splits a vector in halves until they have the width of the library's registers. */
static ts_v call_parts(ts_vm *m, const library_function *f, ts_v x, ts_v y, unsigned lanes) {
  if (lanes == f->width) return LLVMBuildCall2(m->b, f->type, f->value, (ts_v[]){x, y}, y ? 2 : 1, "");
  unsigned half = lanes / 2;
  ts_v parts[2];
  for (unsigned i = 0; i < 2; i++) {
    parts[i] = call_parts(m, f, l_lanes(m, x, i * half, half), y ? l_lanes(m, y, i * half, half) : NULL, half);
  }
  return l_join(m, parts[0], parts[1]);
}

ts_v ts_vm_library(ts_vm *m, const char *name, const char *accuracy, ts_v x, ts_v y) {
  unsigned width = (unsigned)m->e->target->lanes / (m->wide ? 2 : 1);
  char symbol[64];
  snprintf(symbol, sizeof symbol, "Sleef_%s_%s%c%u_%s%s", m->fma ? "finz" : "cinz", name, m->wide ? 'd' : 'f', width,
           accuracy, m->e->target->sleef_suffix);
  LLVMTypeRef vector = LLVMVectorType(m->scalar, width);
  LLVMTypeRef type = LLVMFunctionType(vector, (LLVMTypeRef[]){vector, vector}, y ? 2 : 1, false);
  return call_parts(m, &(library_function){type, declare(m, symbol, type), width}, x, y, m->lanes);
}

/* ---- addresses ---- */

/* clang-format off */
/* The functions that emitters call: the same set at every width. */
#define FUNCTIONS(X, kind, w, isa)                                                                              \
  X(sin, kind, w, u10, isa) X(cos, kind, w, u10, isa) X(tan, kind, w, u10, isa) X(asin, kind, w, u10, isa)      \
  X(acos, kind, w, u10, isa) X(atan, kind, w, u10, isa) X(atan2, kind, w, u10, isa) X(asinh, kind, w, u10, isa) \
  X(acosh, kind, w, u10, isa) X(atanh, kind, w, u10, isa) X(expm1, kind, w, u10, isa) X(log, kind, w, u10, isa) \
  X(log1p, kind, w, u10, isa) X(pow, kind, w, u10, isa) X(cbrt, kind, w, u10, isa) X(erf, kind, w, u10, isa)    \
  X(erfc, kind, w, u15, isa)

#if defined(__x86_64__)
#define ALL_FUNCTIONS(X)                                    \
  FUNCTIONS(X, cinz, f4, sse4) FUNCTIONS(X, cinz, d2, sse4) \
  FUNCTIONS(X, finz, f8, avx2) FUNCTIONS(X, finz, d4, avx2) \
  FUNCTIONS(X, finz, f16, avx512f) FUNCTIONS(X, finz, d8, avx512f)
#elif defined(__aarch64__)
#define ALL_FUNCTIONS(X) FUNCTIONS(X, finz, f4, advsimd) FUNCTIONS(X, finz, d2, advsimd)
#else
#error "no vector math library is known for this architecture"
#endif
/* clang-format on */

/* Declared without their vector types: our C is compiled for the baseline ISA,
 * which lacks some of them, and only the addresses are used. */
#define DECLARE(name, kind, w, accuracy, isa) extern void Sleef_##kind##_##name##w##_##accuracy##isa(void);
ALL_FUNCTIONS(DECLARE)

#define ENTRY(name, kind, w, accuracy, isa) \
  {"Sleef_" #kind "_" #name #w "_" #accuracy #isa, Sleef_##kind##_##name##w##_##accuracy##isa},
static const struct {
  const char *name;
  void (*function)(void);
} table[] = {
    ALL_FUNCTIONS(ENTRY)
    /* llvm.fma becomes this call on machines without FMA (remainder of f64); it is exact, so every fma has its bits. */
    {"fma", (void (*)(void))fma},
};

void *ts_emit_library_symbol(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    if (strcmp(table[i].name, name) == 0) return (void *)(uintptr_t)table[i].function;
  }
  return NULL;
}
