/* Plain numbers of front ends: they have no type of their own, and take part in an op with the type of the other
 * operands. Thread-safe. */
#ifndef TS_FRONT_NUMBER_H
#define TS_FRONT_NUMBER_H

#include "base/status.h"
#include "tensor/dtype.h"

typedef enum ts_number_kind { TS_NUMBER_SIGNED, TS_NUMBER_UNSIGNED, TS_NUMBER_FLOAT, TS_NUMBER_COMPLEX } ts_number_kind;

/* UNSIGNED: integers above INT64_MAX. */
typedef struct ts_number {
  ts_number_kind kind;
  union {
    int64_t s;
    uint64_t u;
    double f;
    double parts[2]; /* real, imaginary */
  };
} ts_number;

/* The type of a number on its own: s32, f32 and c64; the smaller of s64 and u64 that fits where s32 is too small. */
ts_dtype ts_number_dtype(const ts_number *number);
/* True when an element of that type can represent the number; float types may round it, and complex numbers need a
 * complex type. */
bool ts_number_fits(const ts_number *number, ts_dtype dtype);
/* A class such that numbers of one class fit in the same types. */
uint32_t ts_number_class(const ts_number *number);
/* Numbers are weakly typed: the type of an op on a tensor of `dtype` and the number, as in Nx.Type.merge_number/2. An
 * integer type is widened until the number fits. If 64 bits are too few, the result cannot represent it. */
ts_dtype ts_number_merge(ts_dtype dtype, const ts_number *number);
/* An error when the number does not fit. */
ts_status ts_number_scalar(const ts_number *number, ts_dtype dtype, ts_scalar *out);

#endif
