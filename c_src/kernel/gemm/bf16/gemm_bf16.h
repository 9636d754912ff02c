/* Packs operands of products whose results are bf16, for AMX (gemm_amx.h) or AVX512_BF16 (gemm_bf16_chain.h). An
 * element of a packed operand is a pair: step 2p of k, and step 2p + 1, or 0 after the last one. AMX wants the first of
 * them in the low half, AVX512_BF16 in the high one. Narrower elements become bf16, and scaled ones are rounded to it.
 * Internal to gemm; pure functions of their arguments. */
#ifndef TS_KERNEL_GEMM_BF16_H
#define TS_KERNEL_GEMM_BF16_H

#include "kernel/gemm/gemm_amx.h"

/* Packs columns of rhs into panels of 32. Returns whether any element is tiny: neither 0 nor at least 2^-56. */
bool ts_gemm_bf16_pack_right(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels);

/* Packs rows of lhs into panels of 32. A panel has the first 16 pairs of each row, row after row, then the next 16
 * pairs, and so on; the last ones may be fewer. Returns whether any element is tiny. */
bool ts_gemm_bf16_pack_left(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels);

/* Exchanges the halves of all pairs: a multiple of 64 bytes. */
void ts_gemm_bf16_swap(char *pairs, int64_t bytes);

/* By AMX. Packs k steps of a few vectors: for each pair of steps, that of each vector. Returns whether any element is
 * tiny. */
bool ts_gemm_bf16_pack_vectors(const gemm_pack *pack, const char *source, int64_t units, int64_t k, uint32_t *out);

/* A matrix of bf16 times vectors that ts_gemm_bf16_pack_vectors has packed: results [0, count) of each vector. */
typedef struct gemm_bf16_vectors {
  const char *x;
  int64_t x_stride; /* bytes between rows of the matrix. ts_gemm_bf16_axpy has a row for each k, ts_gemm_bf16_dot one
                       for each result */
  const uint32_t *v;
  int64_t items, k, count;
  bool has_tiny; /* of v */
  char *out;     /* floats; TS_GEMM_ITEM_BYTES from item to item */
} gemm_bf16_vectors;

/* One vector, and a matrix whose rows are contiguous results. `aside`: room for 2 * count + 64 floats. */
void ts_gemm_bf16_axpy(const gemm_bf16_vectors *p, float *aside);

/* Up to TS_GEMM_BF16_ITEMS vectors, and a matrix whose rows are contiguous along k: by AMX. */
enum { TS_GEMM_BF16_ITEMS = 8 };
void ts_gemm_bf16_dot(const gemm_bf16_vectors *p);

#endif
