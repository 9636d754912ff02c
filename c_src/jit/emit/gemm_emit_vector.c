/* Products of a matrix and up to TS_GEMM_MAX_ITEMS vectors. They are bound by memory, so x is read unpacked, once for
 * all vectors. Each chain follows the order of k: machine vectors run across results. */
#include "jit/gemm_code.h"

/* ---- spans: `for (i = first; i + step <= end; i += step)`, which carries values ---- */

#define SPAN_VALUES 8

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
  for (int i = 0; i < s->count; i++) loop_next(m, s->phi[i], values[i]);
  loop_end(m, &s->l, s->step, s->end);
  LLVMBasicBlockRef done = LLVMGetInsertBlock(m->b);
  ts_v next = add(m, s->l.index, s->step);
  guard_end(m, s->skip);
  ts_v left = loop_phi(m, s->from, s->first);
  LLVMAddIncoming(left, &next, &done, 1);
  for (int i = 0; i < s->count; i++) {
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

/* ---- AXPY ---- */

#define AXPY_ROWS 8 /* rows of x for each sweep over out: as many streams as hardware prefetchers follow well */

typedef struct axpy {
  int items;
  ts_v v, x, stride, out, begin, middle, end; /* whole machine vectors up to `middle` */
} axpy;

/* One pass over a range in steps of `type`, adding rows k .. k + rows - 1. */
static void axpy_sweep(gemm_emit *m, const axpy *a, LLVMTypeRef type, range of, ts_v k, int rows) {
  int size = m->g->element_size;
  ts_v factors = offset(m, a->v, mul(m, k, i64_const(m, (int64_t)a->items * size)));
  ts_v factor[AXPY_ROWS], row[AXPY_ROWS], sum[TS_GEMM_MAX_ITEMS];
  for (int r = 0; r < rows; r++) {
    row[r] = offset(m, a->x, mul(m, add(m, k, i64_const(m, r)), a->stride));
    if (a->items == 1) factor[r] = load_factor(m, type, factors, 1, r, 0); /* kept in registers */
  }
  span s;
  span_begin(m, &s, of, NULL, 0);
  ts_v out = offset(m, a->out, mul(m, s.l.index, i64_const(m, size)));
  ts_v bytes = mul(m, s.l.index, i64_const(m, m->x_size));
  for (int i = 0; i < a->items; i++) sum[i] = load(m, type, offset_const(m, out, (int64_t)i * TS_GEMM_ITEM_BYTES));
  for (int r = 0; r < rows; r++) {
    ts_v x = load_x(m, type, offset(m, row[r], bytes));
    for (int i = 0; i < a->items; i++) {
      ts_v by = a->items == 1 ? factor[r] : load_factor(m, type, factors, a->items, r, i);
      sum[i] = multiply_add(m, by, x, sum[i]);
    }
  }
  for (int i = 0; i < a->items; i++) store(m, sum[i], offset_const(m, out, (int64_t)i * TS_GEMM_ITEM_BYTES));
  span_end(m, &s, NULL);
}

/* Processes rows of x from `first` on, `rows` at a time while at least that many are left; returns the first remaining
 * row. */
static ts_v axpy_rows(gemm_emit *m, const axpy *a, ts_v first, ts_v k, int rows) {
  span s;
  span_begin(m, &s, (range){first, rows, k}, NULL, 0);
  axpy_sweep(m, a, m->vector, (range){a->begin, m->g->lanes, a->middle}, s.l.index, rows);
  axpy_sweep(m, a, m->element, (range){a->middle, 1, a->end}, s.l.index, rows);
  return span_end(m, &s, NULL);
}

static void emit_axpy(gemm_emit *m, int items) {
  ts_v k = arg(m, TS_GEMM_K, "k"), begin = LLVMGetParam(m->e->function, 1), end = LLVMGetParam(m->e->function, 2);
  axpy a = {.items = items, .begin = begin, .end = end};
  a.v = arg_pointer(m, TS_GEMM_LHS, "v");
  a.x = arg_pointer(m, TS_GEMM_RHS, "x");
  a.stride = arg(m, TS_GEMM_RHS_STRIDE, "stride");
  a.out = arg_pointer(m, TS_GEMM_OUT, "out");
  ts_v whole = LLVMBuildAnd(m->b, LLVMBuildSub(m->b, end, begin, ""), i64_const(m, -m->g->lanes), "");
  a.middle = add(m, begin, whole);
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
static ts_v load_narrow_pieces(gemm_emit *m, const ts_v *rows, int first, ts_v bytes) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  int lanes = m->g->lanes, piece = 16 / m->g->element_size;
  LLVMTypeRef part = LLVMIntTypeInContext(m->e->context, (unsigned)(8 * piece * m->x_size));
  LLVMTypeRef narrow = LLVMIntTypeInContext(m->e->context, (unsigned)(8 * m->x_size));
  ts_v all = LLVMGetPoison(LLVMVectorType(part, (unsigned)(lanes / piece)));
  for (int at = 0; at < lanes; at += piece) {
    ts_v elements = load_bits(m, part, offset(m, rows[first + at], bytes));
    all = LLVMBuildInsertElement(m->b, all, elements, LLVMConstInt(i32, (unsigned)(at / piece), false), "");
  }
  return widen(m, m->vector, LLVMBuildBitCast(m->b, all, like(m->vector, narrow), ""));
}

/* Loads one vector from the 128-bit pieces at `bytes` of rows first, first + piece, first + 2 * piece, ... Inserting
 * each piece as it is loaded needs no shuffle port, unlike joining halves. */
static ts_v load_pieces(gemm_emit *m, const ts_v *rows, int first, ts_v bytes) {
  int piece = 16 / m->g->element_size;
  LLVMTypeRef type = LLVMVectorType(m->element, (unsigned)piece);
  ts_v all = NULL;
  if (m->x != TS_DTYPE_NONE) return load_narrow_pieces(m, rows, first, bytes);
  for (int at = 0; at < m->g->lanes; at += piece)
    all = insert_piece(m, all, load(m, type, offset(m, rows[first + at], bytes)), at);
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

#define DOT_ROWS TS_GEMM_MAX_LANES /* rows of x that are processed together: their addresses fill the registers */
#define DOT_LINE                                                                                                     \
  64 /* bytes of a row, in the compute type, that are processed before the next row: rows a large stride apart share \
        a set of L1 */
#define DOT_AHEAD 192 /* prefetch distance in bytes of a row: hardware follows only a few streams */

typedef struct dot {
  int items, groups; /* of `lanes` rows */
  ts_v k, v, x, stride, chain;
  ts_v end;            /* of the chain that is computed */
  ts_v rows[DOT_ROWS]; /* where each row of x starts */
} dot;

static int sum_count(const dot *d) { return d->items * d->groups; }

/* Processes one 128-bit piece of every row: x is transposed in registers, so that each sum follows the order of k.
 * Elements before `first` (NULL: none) have been added already. */
static void dot_piece(gemm_emit *m, const dot *d, ts_v k, ts_v first, ts_v *sum) {
  int size = m->g->element_size, piece = 16 / size;
  ts_v bytes = mul(m, k, i64_const(m, m->x_size));
  ts_v factors = offset(m, d->v, mul(m, k, i64_const(m, (int64_t)d->items * size)));
  for (int g = 0; g < d->groups; g++) {
    ts_v part[4] = {0};
    for (int s = 0; s < piece; s++) part[s] = load_pieces(m, d->rows + g * m->g->lanes, s, bytes);
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

/* Processes whole cache lines of all rows from `first` on; returns the first remaining k. */
static ts_v dot_lines(gemm_emit *m, const dot *d, ts_v first, ts_v *sum) {
  int size = m->g->element_size, piece = 16 / size, line = DOT_LINE / size;
  span s;
  span_begin(m, &s, (range){first, line, d->end}, sum, sum_count(d));
  ts_v ahead = add(m, mul(m, s.l.index, i64_const(m, m->x_size)), i64_const(m, DOT_AHEAD));
  for (int r = 0; r < d->groups * m->g->lanes; r++) ts_emit_prefetch(m->e, offset(m, d->rows[r], ahead), false);
  for (int at = 0; at < line; at += piece) dot_piece(m, d, add(m, s.l.index, i64_const(m, at)), NULL, sum);
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
  d->rows[0] = offset(m, d->x, mul(m, s.l.index, d->stride));
  for (int r = 1; r < groups * lanes; r++) d->rows[r] = offset(m, d->rows[r - 1], d->stride);
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
  while (groups * 2 * g->lanes <= DOT_ROWS && groups * 2 * items <= SPAN_VALUES) groups *= 2;
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
