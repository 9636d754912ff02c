/* Products of a matrix and up to TS_GEMM_MAX_ITEMS vectors. They are bound by memory, so x is read unpacked, once for
 * all vectors. Each chain follows the order of k: machine vectors run across results. */
#include "jit/gemm_code.h"

/* ---- spans: `for (i = first; i + step <= end; i += step)`, which carries values ---- */

#define SPAN_VALUES 8
#define MAX_SUMS 8 /* of AXPY */

typedef struct range {
  ts_v first;
  int64_t step;
  ts_v end;
} range;

typedef struct span {
  loop l;
  LLVMBasicBlockRef from, skip;
  ts_v first, step, end; /* end: the limit of the indices where a step may start */
  int count;
  ts_v before[SPAN_VALUES], phi[SPAN_VALUES];
} span;

/* `values` become the phis at the start of a step. */
static void span_begin(gemm_emit *m, span *s, range of, ts_v *values, int count) {
  s->first = of.first;
  s->step = i64_const(m, of.step);
  s->end = add(m, of.end, i64_const(m, 1 - of.step));
  s->count = count;
  s->from = LLVMGetInsertBlock(m->b);
  s->skip = guard_begin(m, LLVMBuildICmp(m->b, LLVMIntSLT, of.first, s->end, ""));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(m->b);
  loop_begin(m, "span", of.first, &s->l);
  for (int i = 0; i < count; i++) {
    s->before[i] = values[i];
    values[i] = s->phi[i] = loop_phi(m, before, values[i]);
  }
}

/* `values` become their values after the last step, or the initial ones when there was no step. Returns the first
 * remaining index. */
static ts_v span_end(gemm_emit *m, span *s, ts_v *values) {
  for (int i = 0; values && i < s->count; i++) loop_next(m, s->phi[i], values[i]);
  loop_end(m, &s->l, s->step, s->end);
  LLVMBasicBlockRef done = LLVMGetInsertBlock(m->b);
  ts_v next = add(m, s->l.index, s->step);
  guard_end(m, s->skip);
  ts_v left = loop_phi(m, s->from, s->first);
  LLVMAddIncoming(left, &next, &done, 1);
  for (int i = 0; values && i < s->count; i++) {
    ts_v after = loop_phi(m, s->from, s->before[i]);
    LLVMAddIncoming(after, &values[i], &done, 1);
    values[i] = after;
  }
  return left;
}

/* ---- loads, shared by AXPY and DOT ---- */

/* Element `item` of the vectors at k + `step`; `factors` is the address of the factors at k. */
static ts_v load_factor(gemm_emit *m, LLVMTypeRef type, ts_v factors, int items, int step, int item) {
  int64_t at = ((int64_t)step * items + item) * m->g->element_size;
  return splat(m, type, load(m, m->element, offset_const(m, factors, at)));
}

/* `type` with `element` as its lane type; `element` itself where `type` is a scalar. */
static LLVMTypeRef like(LLVMTypeRef type, LLVMTypeRef element) {
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMVectorType(element, LLVMGetVectorSize(type)) : element;
}

static ts_v word(gemm_emit *m, LLVMTypeRef type, uint32_t value) {
  return splat(m, type, LLVMConstInt(LLVMInt32TypeInContext(m->e->context), value, false));
}

/* Exponent and mantissa moved into place represent the value times 2^-112, also for subnormals. */
static ts_v widen_f16_emulated(gemm_emit *m, LLVMTypeRef type, ts_v bits) {
  LLVMTypeRef words = like(type, LLVMInt32TypeInContext(m->e->context));
  ts_v x = LLVMBuildZExt(m->b, bits, words, "");
  ts_v magnitude = LLVMBuildShl(m->b, LLVMBuildAnd(m->b, x, word(m, words, 0x7fff), ""), word(m, words, 13), "");
  ts_v sign = LLVMBuildShl(m->b, LLVMBuildAnd(m->b, x, word(m, words, 0x8000), ""), word(m, words, 16), "");
  ts_v scale = LLVMBuildBitCast(m->b, word(m, words, UINT32_C(0x77800000)), type, "");
  ts_v scaled = LLVMBuildFMul(m->b, LLVMBuildBitCast(m->b, magnitude, type, ""), scale, "");
  ts_v is_special = LLVMBuildICmp(m->b, LLVMIntUGE, magnitude, word(m, words, UINT32_C(0x0f800000)), "");
  ts_v special = LLVMBuildSelect(m->b, is_special, word(m, words, UINT32_C(0x7f800000)), word(m, words, 0), "");
  ts_v value = LLVMBuildOr(m->b, LLVMBuildBitCast(m->b, scaled, words, ""), LLVMBuildOr(m->b, special, sign, ""), "");
  return LLVMBuildBitCast(m->b, value, type, "");
}

/* Converts floats, loaded as integers of their width, to `type`, f32 or f64: exact. */
static ts_v widen_float(gemm_emit *m, LLVMTypeRef type, ts_v bits) {
  LLVMTypeRef words = like(type, LLVMInt32TypeInContext(m->e->context));
  LLVMTypeRef floats = like(type, LLVMFloatTypeInContext(m->e->context));
  LLVMTypeRef halves = like(type, LLVMHalfTypeInContext(m->e->context));
  ts_v value;
  if (m->x == TS_F16 && !m->g->fma) /* machines without FMA have no instruction for it either */
    value = widen_f16_emulated(m, floats, bits);
  else if (m->x == TS_F16)
    value = LLVMBuildFPExt(m->b, LLVMBuildBitCast(m->b, bits, halves, ""), floats, "");
  else if (m->x == TS_BF16)
    value = LLVMBuildBitCast(m->b, LLVMBuildShl(m->b, LLVMBuildZExt(m->b, bits, words, ""), word(m, words, 16), ""),
                             floats, "");
  else
    value = LLVMBuildBitCast(m->b, bits, floats, "");
  return m->g->compute == TS_GEMM_F64 ? LLVMBuildFPExt(m->b, value, type, "") : value;
}

/* Converts elements of x, loaded as integers of their width, to `type`: exact. */
static ts_v widen(gemm_emit *m, LLVMTypeRef type, ts_v bits) {
  bool to_float = m->g->compute == TS_GEMM_F32 || m->g->compute == TS_GEMM_F64;
  if (ts_dtype_is_float(m->x)) return widen_float(m, type, bits);
  if (ts_dtype_is_signed(m->x))
    return to_float ? LLVMBuildSIToFP(m->b, bits, type, "") : LLVMBuildSExt(m->b, bits, type, "");
  return to_float ? LLVMBuildUIToFP(m->b, bits, type, "") : LLVMBuildZExt(m->b, bits, type, "");
}

static ts_v load_bits(gemm_emit *m, LLVMTypeRef type, ts_v address) {
  ts_v value = LLVMBuildLoad2(m->b, type, address, "");
  LLVMSetAlignment(value, (unsigned)m->x_size);
  return value;
}

/* Loads one element or a vector of elements of x. */
static ts_v load_x(gemm_emit *m, LLVMTypeRef type, ts_v address) {
  if (m->x == TS_DTYPE_NONE) return load(m, type, address);
  LLVMTypeRef narrow = LLVMIntTypeInContext(m->e->context, (unsigned)(8 * m->x_size));
  return widen(m, type, load_bits(m, like(type, narrow), address));
}

/* Emits one function for each number of items: a power of two, see TS_GEMM_ITEMS. */
static void emit_choices(gemm_emit *m, void (*emit)(gemm_emit *m, int items)) {
  LLVMBasicBlockRef none = new_block(m, "none");
  ts_v choice = LLVMBuildSwitch(m->b, arg(m, TS_GEMM_ITEMS, "items"), none, 4);
  LLVMPositionBuilderAtEnd(m->b, none);
  LLVMBuildUnreachable(m->b);
  for (int items = 1; items <= TS_GEMM_MAX_ITEMS; items *= 2) {
    LLVMBasicBlockRef block = new_block(m, "items");
    LLVMAddCase(choice, i64_const(m, items), block);
    LLVMPositionBuilderAtEnd(m->b, block);
    emit(m, items);
    LLVMBuildRetVoid(m->b);
  }
}

/* ---- rows of x ---- */

/* Rows that are processed together. A register for the address of each would not suffice: every ROW_SET rows have one,
 * and share the distances from it. */
#define ROW_SET 8
#define MAX_ROWS 16
typedef struct matrix_rows {
  ts_v set[MAX_ROWS / ROW_SET]; /* addresses */
  ts_v distance[ROW_SET];       /* in bytes */
} matrix_rows;

static ts_v row_address(gemm_emit *m, const matrix_rows *rows, int row, ts_v bytes) {
  ts_v at = offset(m, rows->set[row / ROW_SET], bytes);
  return row % ROW_SET ? offset(m, at, rows->distance[row % ROW_SET]) : at;
}

static void set_rows(gemm_emit *m, ts_v x, ts_v stride, int count, matrix_rows *out) {
  for (int r = 0; r < ROW_SET; r++) out->distance[r] = mul(m, stride, i64_const(m, r));
  out->set[0] = x;
  for (int s = 1; s * ROW_SET < count; s++)
    out->set[s] = offset(m, out->set[s - 1], mul(m, stride, i64_const(m, ROW_SET)));
}

/* ---- AXPY ---- */

/* A sweep over the results reads this number of rows of x. The CPU's prefetchers can follow as many streams. */
#define AXPY_ROWS ROW_SET

typedef struct axpy {
  int items;
  ts_v v, x, stride, out, begin, end;
} axpy;

/* The results that one step of a sweep adds to: `vectors` with `lanes` results each. It reads `rows` rows of x. */
typedef struct axpy_step {
  int vectors, lanes, rows;
  LLVMTypeRef type;
  ts_v factors;           /* address of the first row's factors */
  ts_v factor[AXPY_ROWS]; /* one item's factors in registers */
  matrix_rows x;
} axpy_step;

/* The products of row `r`, at `bytes`. */
static void axpy_row(gemm_emit *m, const axpy *a, const axpy_step *step, int r, ts_v bytes, ts_v *sum) {
  ts_v x[MAX_SUMS] = {NULL}, at = row_address(m, &step->x, r, bytes);
  for (int n = 0; n < step->vectors; n++)
    x[n] = load_x(m, step->type, offset_const(m, at, (int64_t)n * step->lanes * m->x_size));
  for (int i = 0; i < a->items; i++) {
    ts_v by = a->items == 1 ? step->factor[r] : load_factor(m, step->type, step->factors, a->items, r, i);
    for (int n = 0; n < step->vectors; n++) {
      ts_v *to = &sum[n * a->items + i];
      *to = multiply_add(m, by, x[n], *to);
    }
  }
}

/* One pass over a range, adding rows k .. k + step->rows - 1. */
static void axpy_sweep(gemm_emit *m, const axpy *a, axpy_step *step, range of, ts_v k) {
  const int size = m->g->element_size, sums = step->vectors * a->items;
  ts_v sum[MAX_SUMS] = {NULL}, out[MAX_SUMS] = {NULL};
  step->factors = offset(m, a->v, mul(m, k, i64_const(m, (int64_t)a->items * size)));
  for (int r = 0; r < step->rows && a->items == 1; r++)
    step->factor[r] = load_factor(m, step->type, step->factors, 1, r, 0);
  set_rows(m, offset(m, a->x, mul(m, k, a->stride)), a->stride, AXPY_ROWS, &step->x);
  span s;
  span_begin(m, &s, of, NULL, 0);
  ts_v at = offset(m, a->out, mul(m, s.l.index, i64_const(m, size)));
  ts_v bytes = mul(m, s.l.index, i64_const(m, m->x_size));
  for (int i = 0; i < sums; i++) {
    out[i] = offset_const(m, at, i % a->items * TS_GEMM_ITEM_BYTES + (int64_t)(i / a->items) * step->lanes * size);
    sum[i] = load(m, step->type, out[i]);
  }
  for (int r = 0; r < step->rows; r++) axpy_row(m, a, step, r, bytes, sum);
  for (int i = 0; i < sums; i++) store(m, sum[i], out[i]);
  span_end(m, &s, NULL);
}

/* Sweeps over all results: several vectors at once, which share the factors, then one, then 128-bit pieces of one. */
static void axpy_sweeps(gemm_emit *m, const axpy *a, ts_v k, int rows) {
  const int all = m->g->lanes, piece = 16 / m->g->element_size;
  const int lanes[] = {all, all, piece, 1}, vectors[] = {a->items == 1 ? 1 : MAX_SUMS / a->items, 1, 1, 1};
  ts_v count = LLVMBuildSub(m->b, a->end, a->begin, ""), from = a->begin;
  for (int i = 0; i < 4; i++) {
    const int width = vectors[i] * lanes[i];
    if (i > 0 && width == vectors[i - 1] * lanes[i - 1]) continue;
    axpy_step step = {.vectors = vectors[i], .lanes = lanes[i], .rows = rows, .type = m->element};
    if (lanes[i] > 1) step.type = LLVMVectorType(m->element, (unsigned)lanes[i]);
    ts_v to = add(m, a->begin, LLVMBuildAnd(m->b, count, i64_const(m, -width), ""));
    axpy_sweep(m, a, &step, (range){from, width, to}, k);
    from = to;
  }
}

/* Processes rows of x from `first` on, `rows` at a time while at least that many are left; returns the first remaining
 * row. */
static ts_v axpy_rows(gemm_emit *m, const axpy *a, ts_v first, ts_v k, int rows) {
  span s;
  span_begin(m, &s, (range){first, rows, k}, NULL, 0);
  axpy_sweeps(m, a, s.l.index, rows);
  return span_end(m, &s, NULL);
}

static void emit_axpy(gemm_emit *m, int items) {
  ts_v k = arg(m, TS_GEMM_K, "k");
  axpy a = {.items = items, .begin = LLVMGetParam(m->e->function, 1), .end = LLVMGetParam(m->e->function, 2)};
  a.v = arg_pointer(m, TS_GEMM_LHS, "v");
  a.x = arg_pointer(m, TS_GEMM_RHS, "x");
  a.stride = arg(m, TS_GEMM_RHS_STRIDE, "stride");
  a.out = arg_pointer(m, TS_GEMM_OUT, "out");
  ts_v left = axpy_rows(m, &a, i64_const(m, 0), k, AXPY_ROWS);
  axpy_rows(m, &a, left, k, 1);
}

void ts_gemm_emit_axpy(gemm_emit *m) { emit_choices(m, emit_axpy); }

/* ---- DOT ---- */

/* Interleaves a and b within each 128-bit piece, in units of `unit` elements: the low or the high halves. */
static ts_v unpack(gemm_emit *m, ts_v a, ts_v b, int unit, int high) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  int lanes = m->g->lanes, piece = 16 / m->g->element_size;
  ts_v mask[TS_GEMM_MAX_LANES];
  for (int i = 0; i < lanes; i++) {
    int in = i % piece, from = in / (2 * unit) * unit + in % unit + high * piece / 2 + i / piece * piece;
    mask[i] = LLVMConstInt(i32, (unsigned)(from + (in / unit % 2 ? lanes : 0)), false);
  }
  return LLVMBuildShuffleVector(m->b, a, b, LLVMConstVector(mask, (unsigned)lanes), "");
}

/* `whole` with its elements from `at` on replaced by `part`. */
static ts_v insert_piece(gemm_emit *m, ts_v whole, ts_v part, int at) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  int lanes = m->g->lanes, piece = 16 / m->g->element_size;
  ts_v wide[TS_GEMM_MAX_LANES], mask[TS_GEMM_MAX_LANES];
  for (int i = 0; i < lanes; i++) {
    wide[i] = i < piece ? LLVMConstInt(i32, (unsigned)i, false) : LLVMGetPoison(i32);
    mask[i] = LLVMConstInt(i32, (unsigned)(i >= at && i < at + piece ? lanes + i - at : i), false);
  }
  part =
      LLVMBuildShuffleVector(m->b, part, LLVMGetPoison(LLVMTypeOf(part)), LLVMConstVector(wide, (unsigned)lanes), "");
  if (at == 0) return part;
  return LLVMBuildShuffleVector(m->b, whole, part, LLVMConstVector(mask, (unsigned)lanes), "");
}

/* Loads as many elements of each row as a 128-bit piece holds, joins them and widens them together. */
static ts_v load_narrow_pieces(gemm_emit *m, const matrix_rows *rows, int first, ts_v bytes) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  int lanes = m->g->lanes, piece = 16 / m->g->element_size;
  LLVMTypeRef part = LLVMIntTypeInContext(m->e->context, (unsigned)(8 * piece * m->x_size));
  LLVMTypeRef narrow = LLVMIntTypeInContext(m->e->context, (unsigned)(8 * m->x_size));
  ts_v all = LLVMGetPoison(LLVMVectorType(part, (unsigned)(lanes / piece)));
  for (int at = 0; at < lanes; at += piece) {
    ts_v elements = load_bits(m, part, row_address(m, rows, first + at, bytes));
    all = LLVMBuildInsertElement(m->b, all, elements, LLVMConstInt(i32, (unsigned)(at / piece), false), "");
  }
  return widen(m, m->vector, LLVMBuildBitCast(m->b, all, like(m->vector, narrow), ""));
}

/* Loads one vector from the 128-bit pieces at `bytes` of rows first, first + piece, first + 2 * piece, ... Inserting
 * each piece as it is loaded needs no shuffle port, unlike joining halves. */
static ts_v load_pieces(gemm_emit *m, const matrix_rows *rows, int first, ts_v bytes) {
  int piece = 16 / m->g->element_size;
  LLVMTypeRef type = LLVMVectorType(m->element, (unsigned)piece);
  ts_v all = NULL;
  for (int at = 0; at < m->g->lanes; at += piece)
    all = insert_piece(m, all, load_bits(m, type, row_address(m, rows, first + at, bytes)), at);
  return all;
}

/* Transposes the pieces of as many rows as a piece has elements into vectors along the rows. */
static void transpose_pieces(gemm_emit *m, ts_v *v) {
  if (m->g->element_size == 8) {
    ts_v low = unpack(m, v[0], v[1], 1, 0);
    v[1] = unpack(m, v[0], v[1], 1, 1);
    v[0] = low;
    return;
  }
  ts_v a = unpack(m, v[0], v[1], 1, 0), b = unpack(m, v[0], v[1], 1, 1);
  ts_v c = unpack(m, v[2], v[3], 1, 0), d = unpack(m, v[2], v[3], 1, 1);
  v[0] = unpack(m, a, c, 2, 0);
  v[1] = unpack(m, a, c, 2, 1);
  v[2] = unpack(m, b, d, 2, 0);
  v[3] = unpack(m, b, d, 2, 1);
}

#define DOT_LINE                                                                                                     \
  64 /* bytes of a row, in the compute type, that are processed before the next row: rows a large stride apart share \
        a set of L1 */
#define DOT_AHEAD 192 /* prefetch distance in bytes of a row: hardware follows only a few streams */

typedef struct dot {
  int items, groups; /* of `lanes` rows */
  ts_v k, v, x, stride, chain;
  ts_v end; /* of the chain that is computed */
  matrix_rows rows;
} dot;

static int sum_count(const dot *d) { return d->items * d->groups; }

/* Elements of x that are transposed as the halves of elements of the compute type, and widened after that. */
static bool has_halves(const gemm_emit *m) { return m->x == TS_BF16 && m->g->compute == TS_GEMM_F32; }

/* Elements of x in the place of one of the compute type, where x is transposed as it lies. */
static int per_place(const gemm_emit *m) { return has_halves(m) ? 2 : 1; }

/* Adds the products of step `step` from the factors on, with an element of each row, to the sums of a group. */
static void add_step(gemm_emit *m, const dot *d, ts_v factors, int step, ts_v x, ts_v *sum) {
  for (int i = 0; i < d->items; i++)
    sum[i] = multiply_add(m, load_factor(m, m->vector, factors, d->items, step, i), x, sum[i]);
}

/* The same of place `place` of each row, which has an element, or two in the order of memory. */
static void add_place(gemm_emit *m, const dot *d, ts_v factors, int place, ts_v x, ts_v *sum) {
  if (!has_halves(m)) {
    add_step(m, d, factors, place, x, sum);
    return;
  }
  LLVMTypeRef words = like(m->vector, LLVMInt32TypeInContext(m->e->context));
  ts_v both = LLVMBuildBitCast(m->b, x, words, "");
  ts_v low = LLVMBuildShl(m->b, both, word(m, words, 16), "");
  ts_v high = LLVMBuildAnd(m->b, both, word(m, words, UINT32_C(0xffff0000)), "");
  add_step(m, d, factors, 2 * place, LLVMBuildBitCast(m->b, low, m->vector, ""), sum);
  add_step(m, d, factors, 2 * place + 1, LLVMBuildBitCast(m->b, high, m->vector, ""), sum);
}

/* Processes 128 bits of every row, which are transposed as they lie. */
static void dot_whole_piece(gemm_emit *m, const dot *d, ts_v k, ts_v *sum) {
  const int size = m->g->element_size, piece = 16 / size;
  ts_v bytes = mul(m, k, i64_const(m, m->x_size));
  ts_v factors = offset(m, d->v, mul(m, k, i64_const(m, (int64_t)d->items * size)));
  for (int g = 0; g < d->groups; g++) {
    ts_v part[4] = {0};
    for (int s = 0; s < piece; s++) part[s] = load_pieces(m, &d->rows, g * m->g->lanes + s, bytes);
    transpose_pieces(m, part);
    for (int s = 0; s < piece; s++) add_place(m, d, factors, s, part[s], sum + g * d->items);
  }
}

/* Processes one 128-bit piece of every row, in the compute type: x is transposed in registers, so that each sum follows
 * the order of k. Elements before `first` (NULL: none) have been added already. */
static void dot_piece(gemm_emit *m, const dot *d, ts_v k, ts_v first, ts_v *sum) {
  int size = m->g->element_size, piece = 16 / size;
  ts_v bytes = mul(m, k, i64_const(m, m->x_size));
  ts_v factors = offset(m, d->v, mul(m, k, i64_const(m, (int64_t)d->items * size)));
  for (int g = 0; g < d->groups; g++) {
    ts_v part[4] = {0};
    for (int s = 0; s < piece; s++)
      part[s] = m->x == TS_DTYPE_NONE ? load_pieces(m, &d->rows, g * m->g->lanes + s, bytes)
                                      : load_narrow_pieces(m, &d->rows, g * m->g->lanes + s, bytes);
    transpose_pieces(m, part);
    for (int s = 0; s < piece; s++)
      for (int i = 0; i < d->items; i++) {
        ts_v *to = &sum[g * d->items + i];
        ts_v next = multiply_add(m, load_factor(m, m->vector, factors, d->items, s, i), part[s], *to);
        if (first) {
          ts_v fresh = LLVMBuildICmp(m->b, LLVMIntSGE, add(m, k, i64_const(m, s)), first, "");
          next = LLVMBuildSelect(m->b, fresh, next, *to, "");
        }
        *to = next;
      }
  }
}

/* The 128-bit pieces of a and b, which are numbered together, at places `from`. */
static ts_v pick_pieces(gemm_emit *m, ts_v a, ts_v b, const int *from) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  int lanes = m->g->lanes, piece = 16 / m->g->element_size;
  ts_v mask[TS_GEMM_MAX_LANES];
  for (int i = 0; i < lanes; i++) mask[i] = LLVMConstInt(i32, (unsigned)(from[i / piece] * piece + i % piece), false);
  return LLVMBuildShuffleVector(m->b, a, b, LLVMConstVector(mask, (unsigned)lanes), "");
}

/* Transposes as many vectors as they have pieces: piece i of vector j becomes piece j of vector i. */
static void transpose_whole_pieces(gemm_emit *m, ts_v *v, int stride, int pieces) {
  static const int low[] = {0, 1, 4, 5}, high[] = {2, 3, 6, 7}, even[] = {0, 2, 4, 6}, odd[] = {1, 3, 5, 7};
  if (pieces == 2) {
    ts_v first = pick_pieces(m, v[0], v[stride], even);
    v[stride] = pick_pieces(m, v[0], v[stride], odd);
    v[0] = first;
  } else if (pieces == 4) {
    ts_v a = pick_pieces(m, v[0], v[stride], low), b = pick_pieces(m, v[0], v[stride], high);
    ts_v c = pick_pieces(m, v[2 * stride], v[3 * stride], low), d = pick_pieces(m, v[2 * stride], v[3 * stride], high);
    v[0] = pick_pieces(m, a, c, even);
    v[stride] = pick_pieces(m, a, c, odd);
    v[2 * stride] = pick_pieces(m, b, d, even);
    v[3 * stride] = pick_pieces(m, b, d, odd);
  }
}

/* Processes as many places of each row as a vector has lanes. Each row is loaded once: rows at a distance of a power of
 * two share a set of L1, which has room for fewer of them than are processed together. */
static void dot_square(gemm_emit *m, const dot *d, ts_v k, ts_v *sum) {
  const int size = m->g->element_size, lanes = m->g->lanes, piece = 16 / size;
  ts_v bytes = mul(m, k, i64_const(m, m->x_size));
  ts_v factors = offset(m, d->v, mul(m, k, i64_const(m, (int64_t)d->items * size)));
  for (int g = 0; g < d->groups; g++) {
    ts_v v[TS_GEMM_MAX_LANES];
    for (int r = 0; r < lanes; r++) v[r] = load_bits(m, m->vector, row_address(m, &d->rows, g * lanes + r, bytes));
    for (int t = 0; t < piece; t++) transpose_whole_pieces(m, v + t, piece, lanes / piece);
    for (int p = 0; p < lanes; p += piece) transpose_pieces(m, v + p);
    for (int s = 0; s < lanes; s++) add_place(m, d, factors, s, v[s], sum + g * d->items);
  }
}

/* Where the elements are not widened before, and registers suffice for a square, the sums, and what is transposed. */
static bool has_squares(const gemm_emit *m, const dot *d) {
  enum { TRANSPOSED = 6 };
  return (m->x == TS_DTYPE_NONE || has_halves(m)) && m->g->lanes * m->g->element_size > 16 &&
         m->g->lanes + sum_count(d) + TRANSPOSED < m->e->target->vector_registers;
}

/* Processes whole cache lines of all rows from `first` on; returns the first remaining k. */
static ts_v dot_lines(gemm_emit *m, const dot *d, ts_v first, ts_v *sum) {
  const bool squares = has_squares(m, d);
  const int size = m->g->element_size, places = squares ? m->g->lanes : 16 / size;
  const int step = places * per_place(m), line = DOT_LINE / size * per_place(m);
  span s;
  span_begin(m, &s, (range){first, line, d->end}, sum, sum_count(d));
  ts_v ahead = add(m, mul(m, s.l.index, i64_const(m, m->x_size)), i64_const(m, DOT_AHEAD));
  for (int r = 0; r < d->groups * m->g->lanes; r++) ts_emit_prefetch(m->e, row_address(m, &d->rows, r, ahead), false);
  for (int at = 0; at < line; at += step) {
    ts_v k = add(m, s.l.index, i64_const(m, at));
    if (squares)
      dot_square(m, d, k, sum);
    else if (has_halves(m))
      dot_whole_piece(m, d, k, sum);
    else
      dot_piece(m, d, k, NULL, sum);
  }
  return span_end(m, &s, sum);
}

/* One chain, from `first` to d->end, at least one piece from 0: lines, then pieces, then the last piece again for the
 * tail. */
static void dot_chain(gemm_emit *m, const dot *d, ts_v first, ts_v *sum) {
  int piece = 16 / m->g->element_size, count = sum_count(d);
  for (int i = 0; i < count; i++) sum[i] = LLVMConstNull(m->vector);
  span s;
  span_begin(m, &s, (range){dot_lines(m, d, first, sum), piece, d->end}, sum, count);
  dot_piece(m, d, s.l.index, NULL, sum);
  ts_v left = span_end(m, &s, sum), rest[SPAN_VALUES] = {0};
  for (int i = 0; i < count; i++) rest[i] = sum[i];
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  LLVMBasicBlockRef skip = guard_begin(m, LLVMBuildICmp(m->b, LLVMIntSLT, left, d->end, ""));
  LLVMBasicBlockRef body = LLVMGetInsertBlock(m->b);
  dot_piece(m, d, add(m, d->end, i64_const(m, -piece)), left, rest);
  guard_end(m, skip);
  for (int i = 0; i < count; i++) {
    sum[i] = loop_phi(m, from, sum[i]);
    LLVMAddIncoming(sum[i], &rest[i], &body, 1);
  }
}

/* All of k: chain after chain. */
static void dot_chains(gemm_emit *m, dot *d, ts_v *total) {
  const int count = sum_count(d);
  ts_v phi[SPAN_VALUES], sum[SPAN_VALUES];
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  loop l;
  loop_begin(m, "chain", i64_const(m, 0), &l);
  for (int i = 0; i < count; i++) phi[i] = loop_phi(m, from, LLVMConstNull(m->vector));
  ts_v next = add(m, l.index, d->chain), is_first = LLVMBuildICmp(m->b, LLVMIntEQ, l.index, i64_const(m, 0), "");
  d->end = LLVMBuildSelect(m->b, LLVMBuildICmp(m->b, LLVMIntSLT, next, d->k, ""), next, d->k, "");
  dot_chain(m, d, l.index, sum);
  for (int i = 0; i < count; i++) {
    total[i] = LLVMBuildSelect(m->b, is_first, sum[i], add_elements(m, phi[i], sum[i]), "");
    loop_next(m, phi[i], total[i]);
  }
  loop_end(m, &l, d->chain, d->k);
}

/* Computes results from `first` on, `groups` machine vectors at a time; returns the first remaining one. */
static ts_v dot_groups(gemm_emit *m, dot *d, int groups, ts_v first, ts_v end) {
  int lanes = m->g->lanes, size = m->g->element_size;
  ts_v out = arg_pointer(m, TS_GEMM_OUT, "out"), sum[SPAN_VALUES] = {0};
  d->groups = groups;
  span s;
  span_begin(m, &s, (range){first, (int64_t)groups * lanes, end}, NULL, 0);
  set_rows(m, offset(m, d->x, mul(m, s.l.index, d->stride)), d->stride, groups * lanes, &d->rows);
  dot_chains(m, d, sum);
  out = offset(m, out, mul(m, s.l.index, i64_const(m, size)));
  for (int i = 0; i < sum_count(d); i++) {
    int64_t at = (int64_t)(i / d->items) * lanes * size + (int64_t)(i % d->items) * TS_GEMM_ITEM_BYTES;
    store(m, sum[i], offset_const(m, out, at));
  }
  return span_end(m, &s, NULL);
}

/* Several independent sums, to hide the latency of their additions. */
static int pick_groups(const ts_gemm_geometry *g, int items) {
  int groups = 1;
  while (groups * 2 * g->lanes <= MAX_ROWS && groups * 2 * items <= SPAN_VALUES) groups *= 2;
  return groups;
}

static void emit_dot(gemm_emit *m, int items) {
  ts_v begin = LLVMGetParam(m->e->function, 1), end = LLVMGetParam(m->e->function, 2);
  dot d = {.items = items, .k = arg(m, TS_GEMM_K, "k"), .v = arg_pointer(m, TS_GEMM_LHS, "v")};
  d.x = arg_pointer(m, TS_GEMM_RHS, "x");
  d.stride = arg(m, TS_GEMM_RHS_STRIDE, "stride");
  d.chain = arg(m, TS_GEMM_CHAIN, "chain");
  int groups = pick_groups(m->g, items);
  if (groups > 1) begin = dot_groups(m, &d, groups, begin, end);
  dot_groups(m, &d, 1, begin, end);
}

void ts_gemm_emit_dot(gemm_emit *m) { emit_choices(m, emit_dot); }
