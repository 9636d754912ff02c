/* For every machine: vectors of 16 bytes by the compiler's own means. */
#define VECTOR_BYTES 16
#define NS_32 0.65f
#define NS_64 2.0f
#define NS_PAIR 5.0f
#define ISA(name) name##_base
#define SELECT(m, a, b) (((a) & (m)) | ((b) & ~(m)))
#define MIN32(a, b) SELECT((lanes32)((a) < (b)), a, b)
#define MAX32(a, b) SELECT((lanes32)((a) < (b)), b, a)
#define MIN64(a, b) SELECT((lanes64)((a) < (b)), a, b)
#define MAX64(a, b) SELECT((lanes64)((a) < (b)), b, a)
#define EXCHANGE_PAIR(a, b)                                                         \
  do {                                                                              \
    lanes64 ak = (a)->key, bk = (b)->key, ai = (a)->index, bi = (b)->index;         \
    lanes64 more = (lanes64)(ak > bk) | ((lanes64)(ak == bk) & (lanes64)(ai > bi)); \
    (a)->key = SELECT(more, bk, ak), (b)->key = SELECT(more, ak, bk);               \
    (a)->index = SELECT(more, bi, ai), (b)->index = SELECT(more, ai, bi);           \
  } while (0)
#include "kernel/sort/sort_lanes_body.h"
