#include "jit/session/target.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

/* The instruction set classes. LLVM's CPU names are the portable levels, so that all machines of one class run the same
 * code. All AVX2 machines but the first have PREFETCHW, to which it is a no-op. */
#if defined(__x86_64__)
#define AVX512_CLASS                                                                               \
  .arch = TS_ARCH_X86_64, .isa = TS_ISA_AVX512, .triple = "x86_64-unknown-linux-gnu", .lanes = 16, \
  .vector_registers = 32, .fma = true, .masked = true, .masked_small = true, .cpu = "x86-64-v4",   \
  .features = "+prfchw", .sleef_suffix = "avx512f"

static const ts_target classes[] = {
    {.arch = TS_ARCH_X86_64,
     .isa = TS_ISA_SSE4,
     .triple = "x86_64-unknown-linux-gnu",
     .lanes = 4,
     .vector_registers = 16,
     .cpu = "x86-64-v2",
     .features = "",
     .sleef_suffix = "sse4"},
    {.arch = TS_ARCH_X86_64,
     .isa = TS_ISA_AVX2,
     .triple = "x86_64-unknown-linux-gnu",
     .lanes = 8,
     .vector_registers = 16,
     .fma = true,
     .masked = true,
     .cpu = "x86-64-v3",
     .features = "+prfchw",
     .sleef_suffix = "avx2"},
    {AVX512_CLASS},
    {AVX512_CLASS, .amx = true},
};
static const char *const isa_names[] = {"sse4", "avx2", "avx512", "amx"};

/* Linux gives a process the registers of AMX when it asks for them, unless a thread's stack of signals is too small to
 * save them. Threads that begin later have them, too. TS_AMX_MODEL: tests compute tiles by C functions. */
static bool may_use_amx(void) {
#if defined(TS_AMX_MODEL)
  return true;
#else
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
  unsigned a, b, c, d;
  const unsigned all = 1U << 22 | 1U << 24 | 1U << 25; /* AMX-BF16, AMX-TILE, AMX-INT8 */
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & all) != all) return false;
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#endif
}

static size_t best_class(void) {
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2");
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512cd");
  return avx2 ? (avx512 ? (may_use_amx() ? 3 : 2) : 1) : 0;
}
#elif defined(__aarch64__)
static const ts_target classes[] = {
    {.arch = TS_ARCH_AARCH64,
     .isa = TS_ISA_NEON,
     .triple = "aarch64-unknown-linux-gnu",
     .lanes = 4,
     .vector_registers = 32,
     .fma = true,
     .cpu = "generic",
     .features = "",
     .sleef_suffix = "advsimd"},
};
static const char *const isa_names[] = {"neon"};

static size_t best_class(void) { return 0; }
#else
#error "no code generation for this architecture"
#endif

const ts_target *ts_target_all(size_t *out_count) {
  *out_count = sizeof(classes) / sizeof(*classes);
  while (classes[*out_count - 1].amx) --*out_count; /* it shares the code of the class before */
  return classes;
}

static ts_target host;
static _Atomic int limit = INT_MAX;

/* TESSERA_ISA can only lower the class: a higher one would end in SIGILL. */
static size_t wanted_class(size_t best) {
  const char *name = getenv("TESSERA_ISA");
  for (size_t i = 0; name && i < best; i++) {
    if (strcmp(name, isa_names[i]) == 0) return i;
  }
  return best;
}

ts_status ts_target_check(void) {
  const char *name = getenv("TESSERA_ISA");
  size_t count = sizeof isa_names / sizeof *isa_names, length = 0;
  char names[64];
  if (!name || !*name) return TS_SUCCESS;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(name, isa_names[i]) == 0) return TS_SUCCESS;
    length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", isa_names[i]);
  }
  return ts_error(TS_INVALID_ARGUMENT, "TESSERA_ISA: expected one of %s, got \"%s\"", names, name);
}

static int64_t system_value(int name, int64_t otherwise) {
  long value = sysconf(name);
  return value > 0 ? value : otherwise;
}

int ts_target_level(void) {
  int level = (int)wanted_class(best_class()), most = atomic_load(&limit);
  return level < most ? level : most;
}

const char *ts_target_level_name(int level) { return isa_names[level]; }

static void detect(void) {
  host = classes[ts_target_level()];
  host.page_size = system_value(_SC_PAGESIZE, 4096);
  host.l1_bytes = system_value(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  host.l2_bytes = system_value(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  host.l3_bytes = system_value(_SC_LEVEL3_CACHE_SIZE, 8 << 20);
}

const ts_target *ts_target_host(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, detect);
  return &host;
}

bool ts_target_limit(int level) {
  atomic_store(&limit, level);
  bool is_taken = ts_target_host()->isa == classes[level].isa && host.amx == classes[level].amx;
  if (!is_taken) atomic_store(&limit, INT_MAX);
  return is_taken;
}
