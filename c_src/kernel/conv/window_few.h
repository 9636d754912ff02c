/* A store of up to seven elements of four bytes by pieces: a store with a mask takes 20 cycles on some machines, and a
 * load near it waits. The includer has AVX2. */
INLINE void store_few(char *to, __m256i x, int64_t n) {
  __m128i some = _mm256_castsi256_si128(x);
  if (n & 4) {
    _mm_storeu_si128((__m128i *)(void *)to, some);
    some = _mm256_extracti128_si256(x, 1);
    to += 16;
  }
  if (n & 2) {
    _mm_storel_epi64((__m128i *)(void *)to, some);
    some = _mm_unpackhi_epi64(some, some);
    to += 8;
  }
  if (n & 1) _mm_storeu_si32(to, some);
}
