/* A set of small numbers as bits in the caller's words: the numbers of a range of words, counted from 0. Pure. */
#ifndef TS_BASE_BITS_H
#define TS_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ts_bits {
  const uint64_t *words; /* NULL: the empty set */
  size_t first, count;   /* number i < count is bit `first` + i; others are not in the set */
} ts_bits;

/* The set of the bits of one word. */
#define TS_BITS(word) ((ts_bits){.words = (const uint64_t[]){(word)}, .count = 64})

static inline bool ts_bits_has(ts_bits bits, size_t i) {
  size_t at = bits.first + i;
  return bits.words && i < bits.count && (bits.words[at / 64] >> at % 64 & 1);
}

static inline size_t ts_bits_words(size_t count) { return (count + 63) / 64; }

static inline void ts_bits_set(uint64_t *words, size_t i) { words[i / 64] |= UINT64_C(1) << i % 64; }

#endif
