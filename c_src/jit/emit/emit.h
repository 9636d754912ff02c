/* The inside of jit/: one emission in progress, on one compile thread. A module
 * is owned by its emission, values and types by the module.
 *
 * Register form of an element type T is a vector of target->lanes elements:
 *   integers  iN, floats f32 and f64 themselves,
 *   f16, bf16 a float vector whose values are already rounded to the type,
 *   small types (ts_dtype_is_small) the bytes of their elements in memory,
 *   c64 i64, c128 twice as many lanes of i64,
 *   u8 from comparisons is i8 0/1 like any other u8.
 * Memory form is the type's own bits (f16, bf16: i16). */
#ifndef TS_JIT_EMIT_H
#define TS_JIT_EMIT_H

#include "base/status.h"
#include "ir/op.h"
#include "jit/session/target.h"
#include "tensor/dtype.h"

#include <llvm-c/Core.h>

typedef LLVMValueRef ts_v;

/* Limit for the constants that one emission keeps in registers. */
#define TS_EMIT_MAX_HELD 16

/* A launch that is emitted in place, into the function under construction, instead of a function of its own
 * (jit/flow): its extents and strides are constants of the code. */
typedef struct ts_site {
  const int64_t *args;   /* the launch's words */
  const ts_v *addresses; /* of each word: an operand's address, or where the code loads a scalar; NULL: see `args` */
  int64_t units;         /* at least 1 */
  ts_v scratch;
} ts_site;

typedef struct ts_emit {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  const ts_target *target;
  int lanes;
  LLVMValueRef function;       /* the one being emitted */
  const ts_site *site;         /* NULL: the kernel is a function of its own */
  struct ts_emit_cells *cells; /* NULL: there are none (emit_cell.h) */
  LLVMValueRef part;           /* the lanes whose results are kept, as a part of a vector (below); NULL: all */
  bool holds; /* keep constants in registers: where few functions of vector math are computed (loop_row.c) */
  int held_count;
  struct {
    ts_v constant, value;
  } held[TS_EMIT_MAX_HELD];
} ts_emit;

/* ---- types and constants (emit.c) ---- */
LLVMTypeRef ts_emit_element_type(ts_emit *e, ts_dtype type); /* register form, one lane */
LLVMTypeRef ts_emit_memory_type(ts_emit *e, ts_dtype type);  /* memory form, one element */
LLVMTypeRef ts_emit_vector_type(ts_emit *e, ts_dtype type);  /* register form */
ts_v ts_emit_splat(ts_emit *e, ts_v scalar);
ts_v ts_emit_const_float(ts_emit *e, ts_dtype type, double value); /* splat, register form */
ts_v ts_emit_const_int(ts_emit *e, ts_dtype type, int64_t value);  /* splat, register form, integer types */
ts_v ts_emit_const_bits(ts_emit *e, ts_dtype type, uint64_t bits); /* splat of a value given by its memory bits */
/* A constant vector. It is defined in the entry block if the emission keeps constants and has registers left. */
ts_v ts_emit_hold(ts_emit *e, ts_v constant);
/* Calls an intrinsic overloaded on the type of `args[0]`, or on `overload` if that is not NULL. */
ts_v ts_emit_intrinsic(ts_emit *e, const char *name, LLVMTypeRef overload, ts_v *args, unsigned count);
/* The same with all overloaded types, in the order of the intrinsic's mangled name. */
ts_v ts_emit_intrinsic_of(ts_emit *e, const char *name, LLVMTypeRef *overloads, unsigned overload_count, ts_v *args,
                          unsigned count);
/* Prefetches the cache line at `address` into L1. */
void ts_emit_prefetch(ts_emit *e, ts_v address, bool to_write);
/* The same for reading, to the second cache. */
void ts_emit_prefetch_second(ts_emit *e, ts_v address);
/* Allocates a stack slot in the entry block, aligned to 64 bytes. The IR builder must be at the end of its block. */
ts_v ts_emit_alloca(ts_emit *e, LLVMTypeRef type);
ts_v ts_emit_lane_numbers(ts_emit *e); /* i64 vector 0, 1, 2, ... */

/* ---- parts of a vector ----
 * A part is its lower lanes, in one of two forms: how many (i64, 0..lanes), or, for accesses that have masks, the mask
 * of them (i1 vector). A constant number from 1 to lanes - 1 costs whole loads and stores of powers of two: a later
 * load of the same part gets its bytes from the store. */
ts_v ts_emit_lane_mask(ts_emit *e, ts_v part); /* the mask of either */
/* True when masked access costs nothing extra (emit_memory.c). `strided`: also for strided and gathered access. */
bool ts_emit_has_masks(const ts_emit *e, ts_dtype type, bool strided);
/* True when loads and stores of parts take the mask of any lanes. */
bool ts_emit_moves_under_masks(const ts_emit *e, ts_dtype type);

/* ---- loads and stores of whole vectors, memory form <-> register form (emit_memory.c) ----
 * Those with a `part` may add blocks: ask the builder for its block afterwards. */
ts_v ts_emit_load(ts_emit *e, ts_dtype type, ts_v address); /* contiguous, all lanes */
void ts_emit_store(ts_emit *e, ts_dtype type, ts_v value, ts_v address);
/* The same in memory form, a vector of the elements as they are, and what conversions do between both forms. */
ts_v ts_emit_load_memory(ts_emit *e, ts_dtype type, ts_v address);
void ts_emit_store_memory(ts_emit *e, ts_dtype type, ts_v memory, ts_v address);
ts_v ts_emit_to_register(ts_emit *e, ts_dtype type, ts_v memory);
ts_v ts_emit_to_memory(ts_emit *e, ts_dtype type, ts_v value);
/* A store that bypasses the caches; `address` is a multiple of 64 bytes, or of the vector's size if that is smaller. */
void ts_emit_store_stream(ts_emit *e, ts_dtype type, ts_v value, ts_v address);
/* Accesses only the lanes of the part; other lanes load as zero. */
ts_v ts_emit_load_tail(ts_emit *e, ts_dtype type, ts_v address, ts_v part);
void ts_emit_store_tail(ts_emit *e, ts_dtype type, ts_v value, ts_v address, ts_v part);
ts_v ts_emit_load_splat(ts_emit *e, ts_dtype type, ts_v address); /* loads one element into all lanes */
/* Lane i at address + i * stride bytes; `part` NULL: all lanes. */
ts_v ts_emit_load_strided(ts_emit *e, ts_dtype type, ts_v address, ts_v stride, ts_v part);
void ts_emit_store_strided(ts_emit *e, ts_dtype type, ts_v value, ts_v address, ts_v stride, ts_v part);
/* Lane i at address + i * step elements, all lanes: 2 to TS_NEAR_STEP elements up or down (emit_step.c). */
ts_v ts_emit_load_steps(ts_emit *e, ts_dtype type, ts_v address, int step);
ts_v ts_emit_reverse(ts_emit *e, ts_v vector); /* the lanes in reverse order */
/* Lane i is i elements before `address`. */
ts_v ts_emit_load_down(ts_emit *e, ts_dtype type, ts_v address, ts_v part);
/* Lane i at base + offsets[i] bytes (offsets: vector of i64). */
ts_v ts_emit_gather(ts_emit *e, ts_dtype type, ts_v base, ts_v offsets, ts_v part);

/* ---- elements of 16 bytes (emit_wide.c) ----
 * In memory form; of loads and stores lane i is at addresses[i]. */
ts_v ts_emit_load_wide(ts_emit *e, ts_dtype type, const ts_v *addresses);
void ts_emit_store_wide(ts_emit *e, ts_dtype type, ts_v memory, const ts_v *addresses);
ts_v ts_emit_wide_reverse(ts_emit *e, ts_v memory);
ts_v ts_emit_wide_mask(ts_emit *e, ts_v mask); /* of elements -> of their halves */

/* ---- f16 and bf16 (emit_half.c) ---- */
/* Float vector -> i16 vector of the type's bits, round to nearest even, NaN stays a quiet NaN. */
ts_v ts_emit_half_bits(ts_emit *e, ts_dtype type, ts_v value);
/* The reverse; exact. */
ts_v ts_emit_half_value(ts_emit *e, ts_dtype type, ts_v bits);

/* ---- small types (emit_small.c): vectors of i8 ---- */
/* Float vector -> vector of the type's bytes, round to nearest even, NaN stays NaN. For f8 and f8_e4m3fn. */
ts_v ts_emit_f8_bits(ts_emit *e, ts_dtype type, ts_v value);
/* The reverse; exact. */
ts_v ts_emit_f8_value(ts_emit *e, ts_dtype type, ts_v bits);
/* Reduces bytes modulo 2^bits of an integer type of fewer than 8 bits. */
ts_v ts_emit_wrap(ts_emit *e, ts_dtype type, ts_v bytes);

/* ---- elementwise ops on register-form vectors (emit_op.c) ---- */
/* Any elementwise op except convert and bitcast; `type` is the operands' type (for select and clamp: of the values).
 * The result is in the register form of its type. */
ts_status ts_emit_op(ts_emit *e, ts_opcode op, ts_dtype type, const ts_v *operands, ts_v *out);
ts_v ts_emit_convert(ts_emit *e, ts_dtype from, ts_dtype to, ts_v value);
ts_v ts_emit_bitcast(ts_emit *e, ts_dtype from, ts_dtype to, ts_v value);
/* Rounds a float vector to f16 or bf16 precision; the result is a float vector. */
ts_v ts_emit_round_half(ts_emit *e, ts_dtype type, ts_v value);

/* ---- vector math (vecmath*.c) ---- */
/* The UNARY_FLOAT ops, pow and atan2 on f32 or f64 vectors of any lane count that the target supports. At most 2 ULP;
 * see the table in docs/accuracy.md. `y` is for pow and atan2 only. May add blocks, so the caller must ask the IR
 * builder for its block afterwards. */
ts_status ts_emit_math(ts_emit *e, ts_opcode op, ts_dtype type, ts_v x, ts_v y, ts_v *out);

/* The address of a library function that emitted code may call; NULL without a function of that name
 * (vecmath_library.c). */
void *ts_emit_library_symbol(const char *name);

#endif
