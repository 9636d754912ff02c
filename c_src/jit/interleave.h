/* Groups of elements that shuffles take apart and put together (jit/emit/emit_interleave.h): of 2 to
 * TS_MOST_INTERLEAVED elements, but not of 11 or 13, for which shuffles cost more than single elements. */
#ifndef TS_JIT_INTERLEAVE_H
#define TS_JIT_INTERLEAVE_H

#include <stdint.h>

#define TS_MOST_INTERLEAVED 16

/* The least prime factor of a group's length; 0: there are no such groups. */
static inline int ts_interleave_factor(int64_t length) {
  static const int8_t least[TS_MOST_INTERLEAVED + 1] = {0, 0, 2, 3, 2, 5, 2, 7, 2, 3, 2, 0, 2, 0, 2, 3, 2};
  return length >= 0 && length <= TS_MOST_INTERLEAVED ? least[length] : 0;
}

#endif
