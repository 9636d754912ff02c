/* The arithmetic of collectives: vectors of all members of a group are combined in pairs, then the pairs' results, and
 * so on; one without a partner waits. Floats of less than 32 bits are combined in f32 and rounded once. */
#include "group/collective.h"
#include "ir/combiner.h"
#include "kernel/ref/ref_internal.h"

#include <math.h>

/* Of the caller's stack, which may be a scheduler's. */
enum { SCRATCH_BYTES = 32 << 10 };

/* Combines two vectors, or four: (0, 1) and (2, 3), then both. Four at once read memory as fast as it is: all of them,
 * and the result, are in flight together. */
typedef struct combiner {
  void (*two)(void *out, const char *const *in, int64_t n);
  void (*four)(void *out, const char *const *in, int64_t n);
} combiner;

#define LOOP(name, type, expression)                                                                \
  static inline type name##_of(type a, type b) { return (type)(expression); }                       \
  static void name##_two(void *out, const char *const *in, int64_t n) {                             \
    type *o = out;                                                                                  \
    const type *l = (const type *)in[0], *r = (const type *)in[1];                                  \
    for (int64_t i = 0; i < n; i++) o[i] = name##_of(l[i], r[i]);                                   \
  }                                                                                                 \
  static void name##_four(void *out, const char *const *in, int64_t n) {                            \
    type *o = out;                                                                                  \
    const type *a = (const type *)in[0], *b = (const type *)in[1];                                  \
    const type *c = (const type *)in[2], *d = (const type *)in[3];                                  \
    for (int64_t i = 0; i < n; i++) o[i] = name##_of(name##_of(a[i], b[i]), name##_of(c[i], d[i])); \
  }                                                                                                 \
  static const combiner name = {name##_two, name##_four};

/* -0 is less than +0; NaN wins. */
#define FLOAT_LESSER(a, b) \
  ((a) != (a) || (b) != (b) ? NAN : (a) == (b) ? (signbit(a) ? (a) : (b)) : (a) < (b) ? (a) : (b))
#define FLOAT_GREATER(a, b) \
  ((a) != (a) || (b) != (b) ? NAN : (a) == (b) ? (signbit(a) ? (b) : (a)) : (a) > (b) ? (a) : (b))

LOOP(add_f32, float, a + b)
LOOP(multiply_f32, float, a *b)
LOOP(min_f32, float, FLOAT_LESSER(a, b))
LOOP(max_f32, float, FLOAT_GREATER(a, b))
LOOP(add_f64, double, a + b)
LOOP(multiply_f64, double, a *b)
LOOP(min_f64, double, FLOAT_LESSER(a, b))
LOOP(max_f64, double, FLOAT_GREATER(a, b))

/* Sums and products wrap, so that signed integers take the loops of unsigned ones. */
#define INTEGER_LOOPS(bits)                             \
  LOOP(add_##bits, uint##bits##_t, (uint64_t)a + b)     \
  LOOP(multiply_##bits, uint##bits##_t, (uint64_t)a *b) \
  LOOP(min_u##bits, uint##bits##_t, a < b ? a : b)      \
  LOOP(max_u##bits, uint##bits##_t, a > b ? a : b)      \
  LOOP(min_s##bits, int##bits##_t, a < b ? a : b)       \
  LOOP(max_s##bits, int##bits##_t, a > b ? a : b)

INTEGER_LOOPS(8)
INTEGER_LOOPS(16)
INTEGER_LOOPS(32)
INTEGER_LOOPS(64)
LOOP(either, uint8_t, a | b)
LOOP(both, uint8_t, a &b)

enum { SUM, PRODUCT, MIN, MAX, OPERATIONS };

static const combiner *const f32_loops[OPERATIONS] = {&add_f32, &multiply_f32, &min_f32, &max_f32};
static const combiner *const f64_loops[OPERATIONS] = {&add_f64, &multiply_f64, &min_f64, &max_f64};
static const combiner *const integer_loops[2][4][OPERATIONS] = {{{&add_8, &multiply_8, &min_u8, &max_u8},
                                                                 {&add_16, &multiply_16, &min_u16, &max_u16},
                                                                 {&add_32, &multiply_32, &min_u32, &max_u32},
                                                                 {&add_64, &multiply_64, &min_u64, &max_u64}},
                                                                {{&add_8, &multiply_8, &min_s8, &max_s8},
                                                                 {&add_16, &multiply_16, &min_s16, &max_s16},
                                                                 {&add_32, &multiply_32, &min_s32, &max_s32},
                                                                 {&add_64, &multiply_64, &min_s64, &max_s64}}};

static const ts_opcode codes[OPERATIONS] = {TS_OP_ADD, TS_OP_MULTIPLY, TS_OP_MIN, TS_OP_MAX};

/* OPERATIONS for an op that has no loops here. */
static int operation(ts_opcode by) {
  int i = 0;
  while (i < OPERATIONS && codes[i] != by) i++;
  return i;
}

/* ---- other types: element by element, as the interpreter ---- */

static ts_scalar get(ts_dtype type, const char *data, int64_t i) {
  return ts_scalar_load(type, data + (size_t)i * ts_dtype_size(type));
}

static void combine_scalars(const ts_reduction *r, char *out, const char *a, const char *b, int64_t n) {
  ts_opcode code = ts_collective_combines(r->code);
  for (int64_t i = 0; i < n; i++) {
    ts_scalar value = ts_ref_binary(code, r->type, get(r->type, a, i), get(r->type, b, i));
    ts_scalar_store(r->type, value, out + (size_t)i * ts_dtype_size(r->type));
  }
}

/* ---- the combiner of a type ---- */

typedef struct plan {
  const ts_reduction *of;
  const combiner *loops; /* NULL: by scalars */
  int64_t per_element;   /* of the loops */
  bool widens;           /* to f32 first */
  size_t size;           /* of an element while it is combined */
} plan;

static const combiner *integer_loop(ts_dtype type, int op) {
  int log = __builtin_ctz((unsigned)ts_dtype_size(type));
  return integer_loops[ts_dtype_is_signed(type)][log][op];
}

static plan make_plan(const ts_reduction *r) {
  ts_dtype type = r->type, part = ts_dtype_part(type);
  size_t size = ts_dtype_size(type);
  ts_opcode by = ts_collective_combines(r->code);
  int op = operation(by);
  if (by == TS_OP_AND || by == TS_OP_OR) return (plan){r, by == TS_OP_OR ? &either : &both, (int64_t)size, false, size};
  if (op == OPERATIONS) return (plan){r, NULL, 1, false, size};
  if (ts_dtype_is_float(type) && ts_dtype_accumulator(type) != type)
    return (plan){r, f32_loops[op], 1, true, sizeof(float)};
  if (ts_dtype_is_complex(type) && op != SUM) return (plan){r, NULL, 1, false, size};
  if (part == TS_F32) return (plan){r, f32_loops[op], ts_dtype_is_complex(type) ? 2 : 1, false, size};
  if (part == TS_F64) return (plan){r, f64_loops[op], ts_dtype_is_complex(type) ? 2 : 1, false, size};
  if (ts_dtype_bits(type) < 8) return (plan){r, NULL, 1, false, size};
  return (plan){r, integer_loop(type, op), 1, false, size};
}

static int32_t slots_of(const ts_reduction *r, const plan *p) {
  int32_t count = r->count < TS_REDUCTION_TERMS ? r->count : TS_REDUCTION_TERMS;
  return p->widens ? count : (count + 1) / 2;
}

static int64_t slot_bytes(const ts_reduction *r, const plan *p) { return SCRATCH_BYTES / slots_of(r, p) / 64 * 64; }

int64_t ts_reduction_segment(const ts_reduction *r) {
  plan p = make_plan(r);
  return slot_bytes(r, &p) / (int64_t)p.size;
}

static void widen(ts_dtype type, const char *in, float *out, int64_t n) {
  switch (type) {
  case TS_BF16:
    for (int64_t i = 0; i < n; i++) out[i] = ts_bf16_to_f32(((const uint16_t *)in)[i]);
    break;
  case TS_F16:
    for (int64_t i = 0; i < n; i++) out[i] = ts_f16_to_f32(((const uint16_t *)in)[i]);
    break;
  default:
    for (int64_t i = 0; i < n; i++) out[i] = ts_scalar_convert(type, get(type, in, i), TS_F32).f32;
  }
}

static void narrow(ts_dtype type, const float *in, char *out, int64_t n) {
  switch (type) {
  case TS_BF16:
    for (int64_t i = 0; i < n; i++) ((uint16_t *)out)[i] = ts_f32_to_bf16(in[i]);
    break;
  case TS_F16:
    for (int64_t i = 0; i < n; i++) ((uint16_t *)out)[i] = ts_f32_to_f16(in[i]);
    break;
  default:
    for (int64_t i = 0; i < n; i++) {
      ts_scalar wide = {.f32 = in[i]};
      ts_scalar_store(type, ts_scalar_convert(TS_F32, wide, type), out + (size_t)i * ts_dtype_size(type));
    }
  }
}

/* Combines `count` vectors, 2 to 4, as the tree does; `scratch` may be the first of them. */
static void combine_group(const plan *p, const char *const *in, int32_t count, char *scratch, char *out, int64_t n) {
  if (!p->loops)
    combine_scalars(p->of, out, in[0], in[1], n);
  else if (count == 4)
    p->loops->four(out, in, n * p->per_element);
  else if (count == 2)
    p->loops->two(out, in, n * p->per_element);
  else {
    p->loops->two(scratch, in, n * p->per_element);
    p->loops->two(out, (const char *const[]){scratch, in[2]}, n * p->per_element);
  }
}

/* Combines two levels of the tree at a time (one level without loops), in place: slot i is written after the slots of
 * group i were read. The last group writes to `out`. */
static void combine(const plan *p, const char **at, char *scratch, char *out, int64_t n) {
  int64_t slot = slot_bytes(p->of, p);
  int32_t width = p->loops ? 4 : 2;
  for (int32_t count = p->of->count, groups; count > 1; count = groups) {
    groups = (count + width - 1) / width;
    for (int32_t i = 0; i < groups; i++) {
      const char **in = at + width * i;
      int32_t members = count - width * i < width ? count - width * i : width;
      char *own = scratch + i * slot, *to = groups == 1 ? out : own;
      if (members > 1) combine_group(p, in, members, own, to, n);
      at[i] = members > 1 ? to : in[0];
    }
  }
}

void ts_reduction_run(const ts_reduction *r, const char *const *in, char *out, int64_t elements) {
  _Alignas(64) char scratch[SCRATCH_BYTES];
  const char *at[TS_REDUCTION_TERMS];
  plan p = make_plan(r);
  int64_t slot = slot_bytes(r, &p);
  bool widens = p.widens && !r->from_partial, narrows = p.widens && !r->to_partial;
  for (int32_t m = 0; m < r->count; m++) {
    at[m] = widens ? scratch + m * slot : in[m];
    if (widens) widen(r->type, in[m], (float *)(scratch + m * slot), elements);
  }
  char *to = narrows ? scratch : out;
  combine(&p, at, scratch, to, elements);
  if (r->count == 1 && at[0] != to) memcpy(to, at[0], (size_t)elements * p.size);
  if (narrows) narrow(r->type, (const float *)scratch, out, elements);
}

int64_t ts_reduction_partial_size(ts_opcode code, ts_dtype type) {
  return (int64_t)make_plan(&(ts_reduction){.code = code, .type = type}).size;
}
