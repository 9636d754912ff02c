/* Every second element of a line, as neighbours, by vectors of 16 bytes. Pure functions. */
#ifndef TS_KERNEL_EVERY_SECOND_H
#define TS_KERNEL_EVERY_SECOND_H

#include "kernel/inline.h"

#include <stdint.h>
#include <string.h>

typedef uint16_t every_second_8 __attribute__((vector_size(16), may_alias));
typedef uint32_t every_second_4 __attribute__((vector_size(16), may_alias));
typedef uint64_t every_second_2 __attribute__((vector_size(16), may_alias));

INLINE every_second_4 even_elements(every_second_4 a, every_second_4 b, int size) {
  if (size == 2)
    return (every_second_4)__builtin_shufflevector((every_second_8)a, (every_second_8)b, 0, 2, 4, 6, 8, 10, 12, 14);
  if (size == 8) return (every_second_4)__builtin_shufflevector((every_second_2)a, (every_second_2)b, 0, 2);
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}

/* Copies `n` elements of 2, 4 or 8 bytes: a constant. What is behind the last one is not read. */
INLINE void copy_every_second(const char *from, int64_t n, int size, char *to) {
  const int64_t some = 16 / size;
  int64_t i = 0;
  for (; i + some < n; i += some) {
    every_second_4 a, b;
    memcpy(&a, from + 2 * i * size, sizeof a);
    memcpy(&b, from + 2 * i * size + 16, sizeof b);
    a = even_elements(a, b, size);
    memcpy(to + i * size, &a, sizeof a);
  }
  for (; i < n; i++) memcpy(to + i * size, from + 2 * i * size, (size_t)size);
}

/* The same of elements that are `step` apart. */
INLINE void copy_apart(const char *from, int64_t step, int64_t n, int size, char *to) {
  if (step == 2)
    copy_every_second(from, n, size, to);
  else
    for (int64_t i = 0; i < n; i++) memcpy(to + i * size, from + i * step * size, (size_t)size);
}

#endif
