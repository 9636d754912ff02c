/* Transposes squares of vectors in registers: by pairs of elements, by pairs of these, and by blocks of 16 bytes.
 * Included between kernel/isa_avx2.h or kernel/isa_avx512.h and kernel/isa_end.h. */

INLINE void turn_4x4_32(__m128 *v) {
  const __m128 a = _mm_unpacklo_ps(v[0], v[1]), b = _mm_unpackhi_ps(v[0], v[1]);
  const __m128 c = _mm_unpacklo_ps(v[2], v[3]), d = _mm_unpackhi_ps(v[2], v[3]);
  v[0] = _mm_movelh_ps(a, c), v[1] = _mm_movehl_ps(c, a);
  v[2] = _mm_movelh_ps(b, d), v[3] = _mm_movehl_ps(d, b);
}

/* Of four vectors: each block of 16 bytes of v[c] becomes the elements of column c of that block. */
INLINE void turn_blocks_32(__m256 *v) {
  const __m256d a = (__m256d)_mm256_unpacklo_ps(v[0], v[1]), b = (__m256d)_mm256_unpackhi_ps(v[0], v[1]);
  const __m256d c = (__m256d)_mm256_unpacklo_ps(v[2], v[3]), d = (__m256d)_mm256_unpackhi_ps(v[2], v[3]);
  v[0] = (__m256)_mm256_unpacklo_pd(a, c), v[1] = (__m256)_mm256_unpackhi_pd(a, c);
  v[2] = (__m256)_mm256_unpacklo_pd(b, d), v[3] = (__m256)_mm256_unpackhi_pd(b, d);
}

INLINE void turn_8x8_32(__m256 *v) {
  turn_blocks_32(v);
  turn_blocks_32(v + 4);
  UNROLL for (int i = 0; i < 4; i++) {
    const __m256 a = v[i], b = v[i + 4];
    v[i] = _mm256_permute2f128_ps(a, b, 0x20), v[i + 4] = _mm256_permute2f128_ps(a, b, 0x31);
  }
}

INLINE void turn_4x4_64(__m256d *v) {
  const __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
  const __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
  v[0] = _mm256_permute2f128_pd(a, c, 0x20), v[1] = _mm256_permute2f128_pd(b, d, 0x20);
  v[2] = _mm256_permute2f128_pd(a, c, 0x31), v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

#if VECTOR_BYTES == 64
/* Transposes four by four blocks of 16 bytes, of vectors that are `by` apart. */
INLINE void turn_quarters(__m512 *v, int by) {
  const __m512 a = _mm512_shuffle_f32x4(v[0], v[by], 0x88), b = _mm512_shuffle_f32x4(v[0], v[by], 0xdd);
  const __m512 c = _mm512_shuffle_f32x4(v[2 * by], v[3 * by], 0x88);
  const __m512 d = _mm512_shuffle_f32x4(v[2 * by], v[3 * by], 0xdd);
  v[0] = _mm512_shuffle_f32x4(a, c, 0x88), v[by] = _mm512_shuffle_f32x4(b, d, 0x88);
  v[2 * by] = _mm512_shuffle_f32x4(a, c, 0xdd), v[3 * by] = _mm512_shuffle_f32x4(b, d, 0xdd);
}

INLINE void turn_16x16_32(__m512 *v) {
  UNROLL for (int i = 0; i < 16; i += 4) {
    const __m512d a = (__m512d)_mm512_unpacklo_ps(v[i], v[i + 1]), b = (__m512d)_mm512_unpackhi_ps(v[i], v[i + 1]);
    const __m512d c = (__m512d)_mm512_unpacklo_ps(v[i + 2], v[i + 3]);
    const __m512d d = (__m512d)_mm512_unpackhi_ps(v[i + 2], v[i + 3]);
    v[i] = (__m512)_mm512_unpacklo_pd(a, c), v[i + 1] = (__m512)_mm512_unpackhi_pd(a, c);
    v[i + 2] = (__m512)_mm512_unpacklo_pd(b, d), v[i + 3] = (__m512)_mm512_unpackhi_pd(b, d);
  }
  UNROLL for (int i = 0; i < 4; i++) turn_quarters(v + i, 4);
}

INLINE void turn_8x8_64(__m512d *v) {
  UNROLL for (int i = 0; i < 8; i += 2) {
    const __m512d a = v[i], b = v[i + 1];
    v[i] = _mm512_unpacklo_pd(a, b), v[i + 1] = _mm512_unpackhi_pd(a, b);
  }
  turn_quarters((__m512 *)(void *)v, 2);
  turn_quarters((__m512 *)(void *)(v + 1), 2);
}
#endif
