#include "jit/gemm_emit.h"

#include "jit/emit.h"

#include <stdio.h>
#include <string.h>

/* ---- what the host wants ---- */

/* Accumulators fill the registers but for a row of rhs, one element of lhs and a spare. */
static void choose_tile(const ts_target *target, ts_gemm_geometry *g) {
  static const int wide[] = {14, 8, 4}, narrow[] = {6, 4, 2}, eight[] = {8, 4, 2};
  g->vectors = 2;
  const int *rows = target->vector_registers < 32 ? narrow : target->isa == TS_ISA_AVX512 ? wide : eight;
  for (int h = 0; h < TS_GEMM_HEIGHTS; h++) g->rows[h] = rows[h];
  /* 64-bit elements have half the lanes: heights must stay what packing by whole vectors allows. */
  g->panel = (g->rows[0] + g->lanes - 1) / g->lanes * g->lanes;
}

void ts_gemm_get_geometry(ts_gemm_compute compute, const ts_target *target, ts_gemm_geometry *out) {
  *out = (ts_gemm_geometry){.compute = compute};
  out->element_size = compute == TS_GEMM_F64 || compute == TS_GEMM_I64 ? 8 : 4;
  out->lanes = target->lanes * 4 / out->element_size;
  out->masked = target->isa == TS_ISA_AVX512;
  out->fma = target->isa != TS_ISA_SSE4;
  choose_tile(target, out);
}

/* ---- small helpers ---- */

typedef struct gemm_emit {
  ts_emit *e;
  LLVMBuilderRef b;
  const ts_gemm_geometry *g;
  LLVMTypeRef i8, i64, element, vector;
  LLVMValueRef args;
} gemm_emit;

static ts_v i64_const(gemm_emit *m, int64_t value) { return LLVMConstInt(m->i64, (uint64_t)value, true); }

static LLVMBasicBlockRef new_block(gemm_emit *m, const char *name) {
  return LLVMAppendBasicBlockInContext(m->e->context, m->e->function, name);
}

static ts_v add(gemm_emit *m, ts_v a, ts_v b) { return LLVMBuildAdd(m->b, a, b, ""); }
static ts_v mul(gemm_emit *m, ts_v a, ts_v b) { return LLVMBuildMul(m->b, a, b, ""); }

static ts_v offset(gemm_emit *m, ts_v address, ts_v bytes) {
  return LLVMBuildGEP2(m->b, m->i8, address, &bytes, 1, "");
}

static ts_v offset_const(gemm_emit *m, ts_v address, int64_t bytes) {
  return bytes ? offset(m, address, i64_const(m, bytes)) : address;
}

static ts_v arg(gemm_emit *m, int index, const char *name) {
  return LLVMBuildLoad2(m->b, m->i64, offset_const(m, m->args, 8 * index), name);
}

static ts_v arg_pointer(gemm_emit *m, int index, const char *name) {
  return LLVMBuildIntToPtr(m->b, arg(m, index, ""), LLVMPointerTypeInContext(m->e->context, 0), name);
}

static ts_v load(gemm_emit *m, LLVMTypeRef type, ts_v address) {
  ts_v value = LLVMBuildLoad2(m->b, type, address, "");
  LLVMSetAlignment(value, (unsigned)m->g->element_size);
  return value;
}

static void store(gemm_emit *m, ts_v value, ts_v address) {
  LLVMSetAlignment(LLVMBuildStore(m->b, value, address), (unsigned)m->g->element_size);
}

/* `scalar` in all lanes of `type`, or itself where that is no vector. */
static ts_v splat(gemm_emit *m, LLVMTypeRef type, ts_v scalar) {
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return scalar;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  ts_v one = LLVMBuildInsertElement(m->b, LLVMGetPoison(type), scalar, LLVMConstNull(i32), "");
  return LLVMBuildShuffleVector(m->b, one, LLVMGetPoison(type),
                                LLVMConstNull(LLVMVectorType(i32, LLVMGetVectorSize(type))), "");
}

static ts_v multiply_add(gemm_emit *m, ts_v a, ts_v b, ts_v sum) {
  if (m->g->compute >= TS_GEMM_I32) return add(m, mul(m, a, b), sum);
  if (!m->g->fma) return LLVMBuildFAdd(m->b, LLVMBuildFMul(m->b, a, b, ""), sum, "");
  ts_v args[] = {a, b, sum};
  return ts_emit_intrinsic(m->e, "llvm.fma", LLVMTypeOf(sum), args, 3);
}

/* ---- loops: `loop_begin(lo)`, body, `loop_end`; runs at least once ---- */

typedef struct loop {
  LLVMBasicBlockRef block, done;
  ts_v index;
} loop;

static void loop_begin(gemm_emit *m, const char *name, ts_v first, loop *l) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  l->block = new_block(m, name);
  l->done = new_block(m, "done");
  LLVMBuildBr(m->b, l->block);
  LLVMPositionBuilderAtEnd(m->b, l->block);
  l->index = LLVMBuildPhi(m->b, m->i64, "index");
  LLVMAddIncoming(l->index, &first, &from, 1);
}

static ts_v loop_phi(gemm_emit *m, LLVMBasicBlockRef from, ts_v first) {
  ts_v phi = LLVMBuildPhi(m->b, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &from, 1);
  return phi;
}

static void loop_next(gemm_emit *m, ts_v phi, ts_v next) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  LLVMAddIncoming(phi, &next, &from, 1);
}

/* Goes on while index + step < end; leaves the builder behind the loop. */
static void loop_end(gemm_emit *m, loop *l, ts_v step, ts_v end) {
  ts_v next = add(m, l->index, step);
  loop_next(m, l->index, next);
  LLVMBuildCondBr(m->b, LLVMBuildICmp(m->b, LLVMIntSLT, next, end, ""), l->block, l->done);
  LLVMPositionBuilderAtEnd(m->b, l->done);
}

/* ---- TILE ---- */

typedef struct tile {
  int rows, vectors;
  ts_v k, lhs, rhs, rhs_stride;
  ts_v out[TS_GEMM_MAX_HEIGHT]; /* its rows */
  ts_v mask[2];
  ts_v sum[TS_GEMM_MAX_HEIGHT][2];
} tile;

static ts_v vector_address(gemm_emit *m, ts_v row, int vector) {
  return offset_const(m, row, (int64_t)vector * m->g->lanes * m->g->element_size);
}

/* The lanes of vector `v` that lie below the number of columns. */
static ts_v column_mask(gemm_emit *m, ts_v cols, int v) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  ts_v lane[TS_GEMM_MAX_LANES];
  for (int i = 0; i < m->g->lanes; i++) lane[i] = LLVMConstInt(i32, (unsigned)(v * m->g->lanes + i), false);
  ts_v limit = splat(m, LLVMVectorType(i32, (unsigned)m->g->lanes), LLVMBuildTrunc(m->b, cols, i32, ""));
  return LLVMBuildICmp(m->b, LLVMIntSLT, LLVMConstVector(lane, (unsigned)m->g->lanes), limit, "");
}

static ts_v masked_intrinsic(gemm_emit *m, const char *name, ts_v *args, unsigned count) {
  LLVMTypeRef types[] = {m->vector, LLVMPointerTypeInContext(m->e->context, 0)};
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  ts_v function = LLVMGetIntrinsicDeclaration(m->e->module, id, types, 2);
  return LLVMBuildCall2(m->b, LLVMIntrinsicGetType(m->e->context, id, types, 2), function, args, count, "");
}

static ts_v load_out(gemm_emit *m, const tile *t, int row, int v, ts_v mask) {
  ts_v address = vector_address(m, t->out[row], v);
  if (!m->g->masked) return load(m, m->vector, address);
  ts_v align = LLVMConstInt(LLVMInt32TypeInContext(m->e->context), (unsigned)m->g->element_size, false);
  ts_v args[] = {address, align, mask, LLVMConstNull(m->vector)};
  return masked_intrinsic(m, "llvm.masked.load", args, 4);
}

static void store_out(gemm_emit *m, const tile *t, int row, int v) {
  ts_v address = vector_address(m, t->out[row], v);
  if (!m->g->masked) {
    store(m, t->sum[row][v], address);
    return;
  }
  ts_v align = LLVMConstInt(LLVMInt32TypeInContext(m->e->context), (unsigned)m->g->element_size, false);
  ts_v args[] = {t->sum[row][v], address, align, t->mask[v]};
  masked_intrinsic(m, "llvm.masked.store", args, 4);
}

/* Chains start from what out holds, or from zero: with masks, by loading no lane at all. */
static void tile_start_masked(gemm_emit *m, tile *t, ts_v go_on) {
  for (int v = 0; v < t->vectors; v++) {
    ts_v mask = LLVMBuildAnd(m->b, t->mask[v], splat(m, LLVMTypeOf(t->mask[v]), go_on), "");
    for (int r = 0; r < t->rows; r++) t->sum[r][v] = load_out(m, t, r, v, mask);
  }
}

static void tile_start(gemm_emit *m, tile *t, ts_v go_on) {
  LLVMBasicBlockRef fresh = LLVMGetInsertBlock(m->b), again = new_block(m, "again"), ready = new_block(m, "ready");
  ts_v held[TS_GEMM_MAX_HEIGHT][2];
  LLVMBuildCondBr(m->b, go_on, again, ready);
  LLVMPositionBuilderAtEnd(m->b, again);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) held[r][v] = load_out(m, t, r, v, NULL);
  LLVMBuildBr(m->b, ready);
  LLVMPositionBuilderAtEnd(m->b, ready);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) {
      t->sum[r][v] = loop_phi(m, fresh, LLVMConstNull(m->vector));
      LLVMAddIncoming(t->sum[r][v], &held[r][v], &again, 1);
    }
}

/* Panels of rhs stream from the second cache, faster than the hardware's prefetch follows. So many multiplications
 * ahead each line is asked for, past the panel's end too: there the next one begins. */
#define TILE_AHEAD 336

static void prefetch_rhs(gemm_emit *m, const tile *t, ts_v ahead) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context), pointer = LLVMTypeOf(ahead);
  ts_v read = LLVMConstInt(i32, 0, false), keep = LLVMConstInt(i32, 3, false), data = LLVMConstInt(i32, 1, false);
  for (int64_t at = 0; at < (int64_t)t->vectors * m->g->lanes * m->g->element_size; at += 64)
    ts_emit_intrinsic(m->e, "llvm.prefetch", pointer, (ts_v[]){offset_const(m, ahead, at), read, keep, data}, 4);
}

static void tile_loop(gemm_emit *m, tile *t) {
  int size = m->g->element_size;
  ts_v ahead = mul(m, t->rhs_stride, i64_const(m, TILE_AHEAD / (t->rows * t->vectors)));
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  ts_v phi[TS_GEMM_MAX_HEIGHT][2];
  loop l;
  loop_begin(m, "k", i64_const(m, 0), &l);
  ts_v lhs = loop_phi(m, from, t->lhs), rhs = loop_phi(m, from, t->rhs);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) phi[r][v] = loop_phi(m, from, t->sum[r][v]);
  prefetch_rhs(m, t, offset(m, rhs, ahead));
  ts_v right[2];
  for (int v = 0; v < t->vectors; v++)
    right[v] = load(m, m->vector, offset_const(m, rhs, (int64_t)v * m->g->lanes * size));
  for (int r = 0; r < t->rows; r++) {
    ts_v left = splat(m, m->vector, load(m, m->element, offset_const(m, lhs, (int64_t)r * size)));
    for (int v = 0; v < t->vectors; v++) {
      t->sum[r][v] = multiply_add(m, left, right[v], phi[r][v]);
      loop_next(m, phi[r][v], t->sum[r][v]);
    }
  }
  loop_next(m, lhs, offset_const(m, lhs, (int64_t)m->g->panel * size));
  loop_next(m, rhs, offset(m, rhs, t->rhs_stride));
  loop_end(m, &l, i64_const(m, 1), t->k);
}

static void emit_tile_variant(gemm_emit *m, tile *t) {
  ts_v cols = arg(m, TS_GEMM_COLS, "cols"), stride = arg(m, TS_GEMM_OUT_STRIDE, "stride");
  ts_v go_on = LLVMBuildICmp(m->b, LLVMIntNE, arg(m, TS_GEMM_CONTINUE, ""), i64_const(m, 0), "continue");
  t->k = arg(m, TS_GEMM_K, "k");
  t->lhs = arg_pointer(m, TS_GEMM_LHS, "lhs");
  t->rhs = arg_pointer(m, TS_GEMM_RHS, "rhs");
  t->rhs_stride = arg(m, TS_GEMM_RHS_STRIDE, "rhs_stride");
  t->out[0] = arg_pointer(m, TS_GEMM_OUT, "out");
  for (int r = 1; r < t->rows; r++) t->out[r] = offset(m, t->out[r - 1], stride);
  if (m->g->masked) {
    for (int v = 0; v < t->vectors; v++) t->mask[v] = column_mask(m, cols, v);
    tile_start_masked(m, t, go_on);
  } else {
    tile_start(m, t, go_on);
  }
  tile_loop(m, t);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) store_out(m, t, r, v);
  LLVMBuildRetVoid(m->b);
}

static void emit_tile(gemm_emit *m) {
  LLVMBasicBlockRef none = new_block(m, "none");
  ts_v choice = LLVMBuildSwitch(m->b, LLVMGetParam(m->e->function, 1), none, TS_GEMM_HEIGHTS * TS_GEMM_WIDTHS);
  LLVMPositionBuilderAtEnd(m->b, none);
  LLVMBuildUnreachable(m->b);
  for (int i = 0; i < TS_GEMM_HEIGHTS * TS_GEMM_WIDTHS; i++) {
    tile t = {.rows = m->g->rows[i / TS_GEMM_WIDTHS], .vectors = i % TS_GEMM_WIDTHS ? 1 : m->g->vectors};
    LLVMBasicBlockRef block = new_block(m, "tile");
    LLVMAddCase(choice, i64_const(m, i), block);
    LLVMPositionBuilderAtEnd(m->b, block);
    emit_tile_variant(m, &t);
  }
}

/* ---- AXPY ---- */

#define AXPY_ROWS 8 /* rows of x for each sweep over out: as many streams as hardware prefetches well */

/* Emits the blocks of `if (condition) {`; `guard_end` closes it. */
static LLVMBasicBlockRef guard_begin(gemm_emit *m, ts_v condition) {
  LLVMBasicBlockRef body = new_block(m, "body"), skip = new_block(m, "skip");
  LLVMBuildCondBr(m->b, condition, body, skip);
  LLVMPositionBuilderAtEnd(m->b, body);
  return skip;
}

static void guard_end(gemm_emit *m, LLVMBasicBlockRef skip) {
  LLVMBuildBr(m->b, skip);
  LLVMPositionBuilderAtEnd(m->b, skip);
}

typedef struct axpy {
  ts_v v, x, stride, out, begin, middle, end; /* whole vectors up to middle */
} axpy;

/* One pass over [first, end) in steps of `type`, adding rows k .. k + rows - 1. */
static void axpy_sweep(gemm_emit *m, const axpy *a, LLVMTypeRef type, int step, ts_v first, ts_v end, ts_v k,
                       int rows) {
  int size = m->g->element_size;
  ts_v factor[AXPY_ROWS], row[AXPY_ROWS];
  for (int r = 0; r < rows; r++) {
    ts_v at = add(m, k, i64_const(m, r));
    factor[r] = splat(m, type, load(m, m->element, offset(m, a->v, mul(m, at, i64_const(m, size)))));
    row[r] = offset(m, a->x, mul(m, at, a->stride));
  }
  LLVMBasicBlockRef skip = guard_begin(m, LLVMBuildICmp(m->b, LLVMIntSLT, first, end, ""));
  loop l;
  loop_begin(m, "j", first, &l);
  ts_v bytes = mul(m, l.index, i64_const(m, size)), address = offset(m, a->out, bytes);
  ts_v sum = load(m, type, address);
  for (int r = 0; r < rows; r++) sum = multiply_add(m, factor[r], load(m, type, offset(m, row[r], bytes)), sum);
  store(m, sum, address);
  loop_end(m, &l, i64_const(m, step), end);
  guard_end(m, skip);
}

static void axpy_rows(gemm_emit *m, const axpy *a, ts_v k, int rows) {
  axpy_sweep(m, a, m->vector, m->g->lanes, a->begin, a->middle, k, rows);
  axpy_sweep(m, a, m->element, 1, a->middle, a->end, k, rows);
}

/* Rows of x from `first` on, `rows` at a time while that many are left; gives the first row that is left. */
static ts_v axpy_blocks(gemm_emit *m, const axpy *a, ts_v first, ts_v k, int rows) {
  ts_v step = i64_const(m, rows), last = add(m, LLVMBuildSub(m->b, k, step, ""), i64_const(m, 1));
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  LLVMBasicBlockRef skip = guard_begin(m, LLVMBuildICmp(m->b, LLVMIntSLT, first, last, ""));
  loop l;
  loop_begin(m, "k", first, &l);
  axpy_rows(m, a, l.index, rows);
  loop_end(m, &l, step, last);
  LLVMBasicBlockRef done = LLVMGetInsertBlock(m->b);
  ts_v next = add(m, l.index, step);
  guard_end(m, skip);
  ts_v left = loop_phi(m, from, first);
  LLVMAddIncoming(left, &next, &done, 1);
  return left;
}

static void emit_axpy(gemm_emit *m) {
  ts_v k = arg(m, TS_GEMM_K, "k"), begin = LLVMGetParam(m->e->function, 1), end = LLVMGetParam(m->e->function, 2);
  axpy a = {.begin = begin, .end = end};
  a.v = arg_pointer(m, TS_GEMM_LHS, "v");
  a.x = arg_pointer(m, TS_GEMM_RHS, "x");
  a.stride = arg(m, TS_GEMM_RHS_STRIDE, "stride");
  a.out = arg_pointer(m, TS_GEMM_OUT, "out");
  ts_v whole = LLVMBuildAnd(m->b, LLVMBuildSub(m->b, end, begin, ""), i64_const(m, -m->g->lanes), "");
  a.middle = add(m, begin, whole);
  ts_v left = axpy_blocks(m, &a, i64_const(m, 0), k, AXPY_ROWS);
  axpy_blocks(m, &a, left, k, 1);
  LLVMBuildRetVoid(m->b);
}

/* ---- DOT ---- */

/* Interleaves a and b inside each 128-bit piece, in units of `unit` elements: the low or the high halves. */
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

/* The elements of a and then those of b. */
static ts_v concat(gemm_emit *m, ts_v a, ts_v b) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  unsigned count = 2 * LLVMGetVectorSize(LLVMTypeOf(a));
  ts_v mask[TS_GEMM_MAX_LANES];
  for (unsigned i = 0; i < count; i++) mask[i] = LLVMConstInt(i32, i, false);
  return LLVMBuildShuffleVector(m->b, a, b, LLVMConstVector(mask, count), "");
}

/* One vector of the 128-bit pieces at `bytes` of rows first, first + piece, first + 2 * piece, ... */
static ts_v load_pieces(gemm_emit *m, const ts_v *rows, int first, ts_v bytes) {
  int piece = 16 / m->g->element_size, count = m->g->lanes / piece;
  ts_v part[TS_GEMM_MAX_LANES] = {0};
  LLVMTypeRef type = LLVMVectorType(m->element, (unsigned)piece);
  for (int p = 0; p < count; p++) part[p] = load(m, type, offset(m, rows[first + p * piece], bytes));
  for (; count > 1; count /= 2)
    for (int p = 0; p < count / 2; p++) part[p] = concat(m, part[2 * p], part[2 * p + 1]);
  return part[0];
}

/* Turns the pieces of as many rows as a piece has elements into vectors along the rows. */
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

typedef struct dot {
  ts_v k, v;
  ts_v rows[TS_GEMM_MAX_LANES]; /* where each of `lanes` rows of x starts */
} dot;

/* One 128-bit piece of every row: x is transposed in registers, so that each chain stays in the
 * order of k. Elements before `first` (NULL: none) have been added before. */
static ts_v dot_piece(gemm_emit *m, const dot *d, ts_v k, ts_v first, ts_v sum) {
  int size = m->g->element_size, piece = 16 / size;
  ts_v bytes = mul(m, k, i64_const(m, size)), factors = offset(m, d->v, bytes), part[4] = {0};
  for (int s = 0; s < piece; s++) part[s] = load_pieces(m, d->rows, s, bytes);
  transpose_pieces(m, part);
  for (int s = 0; s < piece; s++) {
    ts_v factor = splat(m, m->vector, load(m, m->element, offset_const(m, factors, (int64_t)s * size)));
    ts_v next = multiply_add(m, factor, part[s], sum);
    if (first) {
      ts_v fresh = LLVMBuildICmp(m->b, LLVMIntSGE, add(m, k, i64_const(m, s)), first, "");
      next = LLVMBuildSelect(m->b, fresh, next, sum, "");
    }
    sum = next;
  }
  return sum;
}

/* All of k, which is at least a piece: whole pieces, then the last one again for what is left. */
static ts_v dot_chain(gemm_emit *m, const dot *d) {
  int piece = 16 / m->g->element_size;
  ts_v last = add(m, d->k, i64_const(m, 1 - piece)), whole = LLVMBuildAnd(m->b, d->k, i64_const(m, -piece), "whole");
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  loop l;
  loop_begin(m, "k", i64_const(m, 0), &l);
  ts_v sum = loop_phi(m, from, LLVMConstNull(m->vector)), next = dot_piece(m, d, l.index, NULL, sum);
  loop_next(m, sum, next);
  loop_end(m, &l, i64_const(m, piece), last);
  from = LLVMGetInsertBlock(m->b);
  LLVMBasicBlockRef skip = guard_begin(m, LLVMBuildICmp(m->b, LLVMIntSLT, whole, d->k, ""));
  LLVMBasicBlockRef body = LLVMGetInsertBlock(m->b);
  ts_v rest = dot_piece(m, d, add(m, last, i64_const(m, -1)), whole, next);
  guard_end(m, skip);
  ts_v result = loop_phi(m, from, next);
  LLVMAddIncoming(result, &rest, &body, 1);
  return result;
}

static void emit_dot(gemm_emit *m) {
  int lanes = m->g->lanes, size = m->g->element_size;
  ts_v begin = LLVMGetParam(m->e->function, 1), end = LLVMGetParam(m->e->function, 2);
  ts_v x = arg_pointer(m, TS_GEMM_RHS, "x"), out = arg_pointer(m, TS_GEMM_OUT, "out");
  ts_v stride = arg(m, TS_GEMM_RHS_STRIDE, "stride");
  dot d = {.k = arg(m, TS_GEMM_K, "k"), .v = arg_pointer(m, TS_GEMM_LHS, "v")};
  loop l;
  loop_begin(m, "i", begin, &l);
  d.rows[0] = offset(m, x, mul(m, l.index, stride));
  for (int r = 1; r < lanes; r++) d.rows[r] = offset(m, d.rows[r - 1], stride);
  store(m, dot_chain(m, &d), offset(m, out, mul(m, l.index, i64_const(m, size))));
  loop_end(m, &l, i64_const(m, lanes), end);
  LLVMBuildRetVoid(m->b);
}

/* ---- sources ---- */

static LLVMTypeRef compute_type(LLVMContextRef context, ts_gemm_compute compute) {
  switch (compute) {
  case TS_GEMM_F32: return LLVMFloatTypeInContext(context);
  case TS_GEMM_F64: return LLVMDoubleTypeInContext(context);
  case TS_GEMM_I32: return LLVMInt32TypeInContext(context);
  case TS_GEMM_I64: return LLVMInt64TypeInContext(context);
  case TS_GEMM_COMPUTE_COUNT: break;
  }
  return NULL;
}

static ts_v add_function(ts_emit *e, const char *name) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context), pointer = LLVMPointerTypeInContext(e->context, 0);
  LLVMTypeRef params[] = {pointer, i64, i64, pointer};
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 4, false);
  return LLVMAddFunction(e->module, name, type);
}

static ts_status emit_kernel(ts_emit *e, const char *name, const void *description) {
  const ts_gemm_request *request = description;
  gemm_emit m = {.e = e, .b = e->b, .g = &request->geometry};
  m.i8 = LLVMInt8TypeInContext(e->context);
  m.i64 = LLVMInt64TypeInContext(e->context);
  m.element = compute_type(e->context, m.g->compute);
  m.vector = LLVMVectorType(m.element, (unsigned)m.g->lanes);
  e->function = add_function(e, name);
  m.args = LLVMGetParam(e->function, 0);
  LLVMPositionBuilderAtEnd(m.b, new_block(&m, "entry"));
  switch (request->kernel) {
  case TS_GEMM_TILE: emit_tile(&m); break;
  case TS_GEMM_AXPY: emit_axpy(&m); break;
  case TS_GEMM_DOT: emit_dot(&m); break;
  case TS_GEMM_KERNEL_COUNT: return ts_error(TS_INTERNAL, "no such kernel");
  }
  return TS_SUCCESS;
}

static ts_status copy_request(const void *description, void **out) {
  TS_TRY(ts_alloc(sizeof(ts_gemm_request), out));
  memcpy(*out, description, sizeof(ts_gemm_request));
  return TS_SUCCESS;
}

void ts_gemm_make_source(ts_gemm_compute compute, ts_gemm_kernel kernel, const ts_target *target,
                         ts_gemm_request *request, ts_kernel_source *out) {
  static const char *const kernels[] = {"tile", "axpy", "dot"}, *const types[] = {"f32", "f64", "i32", "i64"};
  ts_gemm_get_geometry(compute, target, &request->geometry);
  request->kernel = kernel;
  const ts_gemm_geometry *g = &request->geometry;
  int length = snprintf(request->text, sizeof(request->text), "gemm.%s %s lanes %d rows %d %d %d%s%s", kernels[kernel],
                        types[compute], g->lanes, g->rows[0], g->rows[1], g->rows[2], g->masked ? " masked" : "",
                        g->fma ? " fma" : "");
  *out = (ts_kernel_source){.text = request->text,
                            .length = (size_t)length,
                            .emit = emit_kernel,
                            .description = request,
                            .copy = copy_request};
}
