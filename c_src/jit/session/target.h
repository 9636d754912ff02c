/* All differences between machines. Detected once for the process from the CPU that runs it; constant afterwards,
 * thread-safe. */
#ifndef TS_JIT_TARGET_H
#define TS_JIT_TARGET_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ts_arch { TS_ARCH_X86_64, TS_ARCH_AARCH64 } ts_arch;
typedef enum ts_isa { TS_ISA_SSE4, TS_ISA_AVX2, TS_ISA_AVX512, TS_ISA_NEON } ts_isa;

typedef struct ts_target {
  ts_arch arch;
  ts_isa isa;
  int lanes; /* elements per vector, for every type: vector bits / 32 */
  int vector_registers;
  bool masked_small; /* 8- and 16-bit elements have masked moves */
  bool masked;       /* 32- and 64-bit elements have masked moves */
  int64_t page_size;
  int64_t l1_bytes, l2_bytes, l3_bytes;
  bool fma; /* one rounding for a product and a sum */
  bool amx; /* products of 8 bits by AMX, and of bf16, which change the order of their sums (tensor/contract_order.h) */
  const char *cpu;      /* LLVM's CPU name */
  const char *features; /* LLVM's feature string */
  const char *triple;
  const char *sleef_suffix; /* suffix of its vector functions: "avx512f", "avx2", "sse4", "advsimd" */
} ts_target;

/* A pointer to name_avx512, name_avx2 or name_base: code or data that is compiled for each instruction set. Other
 * architectures have the last one only. */
#if defined(__x86_64__)
#define TS_TARGET_PICK(name)                               \
  (ts_target_host()->isa == TS_ISA_AVX512 ? &name##_avx512 \
   : ts_target_host()->isa == TS_ISA_AVX2 ? &name##_avx2   \
                                          : &name##_base)
#else
#define TS_TARGET_PICK(name) (&name##_base)
#endif

/* TESSERA_ISA=sse4|avx2|avx512 lowers the choice, for tests. The class of AMX has the kernels of AVX-512; it is taken
 * if the system lets the process use AMX. */
const ts_target *ts_target_host(void);

/* Fails when TESSERA_ISA is neither empty nor the name of an instruction set of this architecture. */
ts_status ts_target_check(void);

/* The instruction sets of an architecture are classes, numbered from 0; all machines of one class run the same code,
 * with the same bits. A job takes the least class of its ranks. The name is as in TESSERA_ISA. */
int ts_target_level(void); /* the level of ts_target_host(); does not fix the target yet */
const char *ts_target_level_name(int level);
/* Lowers ts_target_host() to a level. Must come before its first use: false when the process has another level already.
 */
bool ts_target_limit(int level);

/* Every class of machine of this architecture for which code is compiled; sizes of pages and caches are 0. */
const ts_target *ts_target_all(size_t *out_count);

#endif
