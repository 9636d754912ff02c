/* Comparing tensors, for tessera-opt and the tests. Pure, thread-safe. */
#ifndef TS_TOOL_COMPARE_H
#define TS_TOOL_COMPARE_H

#include "tensor/buffer.h"

#define TS_COMPARE_TEXT 512

/* Replaces a tolerance: equal bits, even of NaNs. */
enum { TS_COMPARE_BITS = -1 };

/* True when type and shape agree and each pair of elements does: any two NaNs
 * agree, and complex numbers do part by part; with tolerance 0 other elements need equal bits (-0 is not +0), else
 * floats may be `ulp_tolerance` units in the last place apart (-0 and +0 are 0 apart, the largest finite value and
 * infinity 1). Integers always need equal bits. When false, `out_message` has the place and the two elements. */
bool ts_compare_buffers(const ts_buffer *a, const ts_buffer *b, int64_t ulp_tolerance,
                        char out_message[TS_COMPARE_TEXT]);

/* The same, but a part of a complex number may be apart as many units in the last place of the larger part: the smaller
 * one of a product or a quotient may cancel. */
bool ts_compare_numbers(const ts_buffer *a, const ts_buffer *b, int64_t ulp_tolerance,
                        char out_message[TS_COMPARE_TEXT]);

/* How far apart two floats of a type are; INT64_MAX when just one is NaN. */
int64_t ts_ulp_distance(ts_dtype type, ts_scalar a, ts_scalar b);

#endif
