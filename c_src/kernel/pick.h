/* Which of many unsigned numbers are in a range: candidates of top_k, rows of a scatter that a thread owns. The vectors
 * that hold none cost a comparison. The same for every instruction set, in order. Pure functions; thread-safe. */
#ifndef TS_KERNEL_PICK_H
#define TS_KERNEL_PICK_H

#include <stdint.h>

/* Elements written past the last picked number. */
#define TS_PICK_SLACK 16

/* The numbers from `first` to `first` + `span`, and their indices in x. Returns their count; `values` and `indices`
 * have room for n + TS_PICK_SLACK. */
typedef int64_t (*ts_pick32_fn)(const uint32_t *x, int64_t n, uint32_t first, uint32_t span, uint32_t *values,
                                uint32_t *indices);
typedef int64_t (*ts_pick64_fn)(const uint64_t *x, int64_t n, uint64_t first, uint64_t span, uint64_t *values,
                                uint32_t *indices);

typedef struct ts_pick {
  ts_pick32_fn pick32;
  ts_pick64_fn pick64;
  /* A number that at least k of x, and not many more, do not exceed: exact enough to begin with. It is found from the
   * least numbers of groups. k <= n. */
  uint32_t (*bound32)(const uint32_t *x, int64_t n, int64_t k);
  uint64_t (*bound64)(const uint64_t *x, int64_t n, int64_t k);
} ts_pick;

/* The functions for the instruction set of the host. */
const ts_pick *ts_pick_host(void);

extern const ts_pick ts_pick_base;
#if defined(__x86_64__)
extern const ts_pick ts_pick_avx2, ts_pick_avx512;
#endif

#endif
