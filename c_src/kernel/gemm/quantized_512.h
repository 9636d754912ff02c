/* The operations of quantized_body.h on vectors of 64 bytes. */
#define HALVES(at) ((vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(at))))
#define WORDS(at) ((vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(at))))
#define EVERY(x) (_mm512_movepi32_mask((__m512i)(x)) == 0xFFFF)
