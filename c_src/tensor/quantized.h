/* Quantised weights: matrices [k, n] of integers of few bits, with a scale for each group of neighbouring k of a
 * column.
 *
 * A word of 32 bits packs the numbers of 32 / bits neighbouring k of one column, 4 or 8 bits each. The lowest bits have
 * the number of the first k. Columns are cut into panels of TS_QUANTIZED_COLS. A tensor of words is
 * [panels, words, TS_QUANTIZED_COLS], a tensor of scales, zeros or minimums is [panels, groups, TS_QUANTIZED_COLS],
 * with ceil(n / TS_QUANTIZED_COLS) panels, ceil(k / (32 / bits)) words and ceil(k / group) groups. A panel is read from
 * its first byte to its last one by a product, and the lanes of a vector are columns, so that a column's sum has the
 * order of tensor/contract_order.h. What is past the last column or the last k has no meaning.
 *
 * The weight of the number q, an unsigned integer, with s, z and m converted to f32, and all ops in f32:
 *   TS_QUANTIZED_SCALE    (q - 2^(bits - 1)) s
 *   TS_QUANTIZED_ZERO     (q - z) s
 *   TS_QUANTIZED_MINIMUM  q s - m
 * It is then rounded to the type of the product. */
#ifndef TS_TENSOR_QUANTIZED_H
#define TS_TENSOR_QUANTIZED_H

#include <stdbool.h>
#include <stdint.h>

enum { TS_QUANTIZED_COLS = 64 };

typedef enum ts_quantized_form {
  TS_QUANTIZED_SCALE,
  TS_QUANTIZED_ZERO,
  TS_QUANTIZED_MINIMUM,
  TS_QUANTIZED_FORMS
} ts_quantized_form;

static inline int64_t ts_quantized_ceil(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static inline int64_t ts_quantized_panels(int64_t n) { return ts_quantized_ceil(n, TS_QUANTIZED_COLS); }
static inline int64_t ts_quantized_words(int64_t k, int bits) { return ts_quantized_ceil(k, 32 / bits); }

/* Groups are whole words of either size. */
static inline bool ts_quantized_has_group(int64_t group) { return group > 0 && group % 8 == 0; }

#endif
