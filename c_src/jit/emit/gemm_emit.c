#include "jit/emit/gemm_emit.h"

#include "jit/gemm_code.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- geometry: tile sizes for a target ---- */

/* Accumulators use all registers except for a row of rhs, one element of lhs and a spare one. */
static void choose_tile(const ts_target *target, ts_gemm_geometry *g) {
  static const int wide[] = {14, 8, 4}, narrow[] = {6, 4, 2}, eight[] = {8, 4, 2};
  g->vectors = 2;
  const int *rows = target->vector_registers < 32 ? narrow : target->isa == TS_ISA_AVX512 ? wide : eight;
  for (int h = 0; h < TS_GEMM_HEIGHTS; h++) g->rows[h] = rows[h];
  /* 64-bit elements have half the lanes: tile heights must suit packing by whole vectors. */
  g->panel = (g->rows[0] + g->lanes - 1) / g->lanes * g->lanes;
}

/* With 14 rows LLVM keeps some accumulators in memory. A product that is not fused takes a register. */
static void choose_small(const ts_target *target, ts_gemm_geometry *g) {
  g->small = target->isa == TS_ISA_AVX512 ? 12 : target->vector_registers >= 32 ? 8 : target->fma ? 6 : 5;
}

void ts_gemm_get_geometry(ts_gemm_compute compute, const ts_target *target, ts_gemm_geometry *out) {
  *out = (ts_gemm_geometry){.compute = compute};
  out->element_size = compute == TS_GEMM_F64 || compute == TS_GEMM_I64 ? 8 : 4;
  out->lanes = target->lanes * 4 / out->element_size;
  out->masked = target->isa == TS_ISA_AVX512;
  out->fma = target->fma;
  choose_tile(target, out);
  choose_small(target, out);
}

/* ---- TILE and SMALL ---- */

/* Rows of lhs that are not packed are addressed by a pointer for each group of them, and by distances that all groups
 * share: registers for a pointer to each row would not suffice. */
#define GROUP_ROWS 4
#define MAX_GROUPS (TS_GEMM_MAX_HEIGHT / GROUP_ROWS)

typedef struct tile {
  int rows, vectors;
  ts_gemm_kernel kernel;
  bool masked;
  int lanes; /* of a vector: the machine's, or fewer */
  LLVMTypeRef type;
  ts_v second;                             /* SMALL: bytes from the first vector of a row to the second */
  ts_v row[GROUP_ROWS], group[MAX_GROUPS]; /* SMALL, STRIDED: bytes from the row or group 0 */
  ts_v lhs_step;                           /* SMALL: bytes */
  ts_v later, later_step;                  /* TILE */
  ts_v k, lhs, rhs, rhs_stride;
  ts_v out[TS_GEMM_MAX_HEIGHT]; /* its rows */
  ts_v mask[2], is_full;        /* is_full: no lane is masked; NULL in SMALL */
  ts_v sum[TS_GEMM_MAX_HEIGHT][2];
} tile;

/* The distances of rows of lhs. */
static void set_rows(gemm_emit *m, tile *t, ts_v stride) {
  for (int r = 0; r < GROUP_ROWS; r++) t->row[r] = mul(m, stride, i64_const(m, r));
  for (int g = 0; g < MAX_GROUPS; g++) t->group[g] = mul(m, stride, i64_const(m, (int64_t)g * GROUP_ROWS));
}

static ts_v vector_address(gemm_emit *m, const tile *t, ts_v row, int vector) {
  if (vector > 0 && t->second) return offset(m, row, t->second);
  return offset_const(m, row, (int64_t)vector * t->lanes * m->g->element_size);
}

/* The lanes of vector `v` that lie below the number of columns. */
static ts_v column_mask(gemm_emit *m, const tile *t, ts_v cols, int v) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  ts_v lane[TS_GEMM_MAX_LANES];
  for (int i = 0; i < t->lanes; i++) lane[i] = LLVMConstInt(i32, (unsigned)(v * t->lanes + i), false);
  ts_v limit = splat(m, LLVMVectorType(i32, (unsigned)t->lanes), LLVMBuildTrunc(m->b, cols, i32, ""));
  return LLVMBuildICmp(m->b, LLVMIntSLT, LLVMConstVector(lane, (unsigned)t->lanes), limit, "");
}

static ts_v masked_intrinsic(gemm_emit *m, const tile *t, const char *name, ts_v *args, unsigned count) {
  LLVMTypeRef types[] = {t->type, LLVMPointerTypeInContext(m->e->context, 0)};
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  ts_v function = LLVMGetIntrinsicDeclaration(m->e->module, id, types, 2);
  return LLVMBuildCall2(m->b, LLVMIntrinsicGetType(m->e->context, id, types, 2), function, args, count, "");
}

static ts_v masked_load(gemm_emit *m, const tile *t, ts_v address, ts_v mask) {
  ts_v align = LLVMConstInt(LLVMInt32TypeInContext(m->e->context), (unsigned)m->g->element_size, false);
  ts_v args[] = {address, align, mask, LLVMConstNull(t->type)};
  return masked_intrinsic(m, t, "llvm.masked.load", args, 4);
}

static ts_v load_out(gemm_emit *m, const tile *t, int row, int v, ts_v mask) {
  ts_v address = vector_address(m, t, t->out[row], v);
  return t->masked ? masked_load(m, t, address, mask) : load(m, t->type, address);
}

static void store_masked(gemm_emit *m, const tile *t, int row, int v) {
  ts_v address = vector_address(m, t, t->out[row], v);
  ts_v align = LLVMConstInt(LLVMInt32TypeInContext(m->e->context), (unsigned)m->g->element_size, false);
  ts_v args[] = {t->sum[row][v], address, align, t->mask[v]};
  masked_intrinsic(m, t, "llvm.masked.store", args, 4);
}

static void store_tile(gemm_emit *m, const tile *t, bool masked) {
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) {
      if (masked)
        store_masked(m, t, r, v);
      else
        store(m, t->sum[r][v], vector_address(m, t, t->out[r], v));
    }
}

/* Stores under masks take longer, so tiles with all columns have others. */
static void store_out(gemm_emit *m, const tile *t) {
  if (!t->masked || !t->is_full) {
    store_tile(m, t, t->masked);
    return;
  }
  LLVMBasicBlockRef full = new_block(m, "full"), part = new_block(m, "part"), stored = new_block(m, "stored");
  LLVMBuildCondBr(m->b, t->is_full, full, part);
  LLVMPositionBuilderAtEnd(m->b, full);
  store_tile(m, t, false);
  LLVMBuildBr(m->b, stored);
  LLVMPositionBuilderAtEnd(m->b, part);
  store_tile(m, t, true);
  LLVMBuildBr(m->b, stored);
  LLVMPositionBuilderAtEnd(m->b, stored);
}

static void tile_start_empty(tile *t) {
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) t->sum[r][v] = LLVMConstNull(t->type);
}

/* The accumulators start from out's elements, or from zero. Sums of chains start from zero, so this is a jump: loads
 * under an empty mask took 2 % of large products. */
static void tile_start(gemm_emit *m, tile *t, ts_v go_on) {
  LLVMBasicBlockRef fresh = LLVMGetInsertBlock(m->b), again = new_block(m, "again"), ready = new_block(m, "ready");
  ts_v held[TS_GEMM_MAX_HEIGHT][2];
  LLVMBuildCondBr(m->b, go_on, again, ready);
  LLVMPositionBuilderAtEnd(m->b, again);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) held[r][v] = load_out(m, t, r, v, t->mask[v]);
  LLVMBuildBr(m->b, ready);
  LLVMPositionBuilderAtEnd(m->b, ready);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) {
      t->sum[r][v] = loop_phi(m, fresh, LLVMConstNull(m->vector));
      LLVMAddIncoming(t->sum[r][v], &held[r][v], &again, 1);
    }
}

/* Panels of rhs stream from L2, faster than the hardware prefetcher follows. Each line is prefetched TILE_AHEAD
 * multiplications ahead, also past the panel's end, where the next panel begins. */
#define TILE_AHEAD 336

static void prefetch_rhs(gemm_emit *m, const tile *t, ts_v ahead) {
  for (int64_t at = 0; at < (int64_t)t->vectors * m->g->lanes * m->g->element_size; at += 64)
    ts_emit_prefetch(m->e, offset_const(m, ahead, at), false);
}

/* Prefetches the tile that is computed next: its lines cost 5 to 12 % if they are not in L1 by then. STRIDED takes the
 * one to the right, for which an address of each row is not computed. */
static void prefetch_out(gemm_emit *m, const tile *t) {
  const int64_t width = (int64_t)t->vectors * m->g->lanes * m->g->element_size;
  const bool right = t->kernel == TS_GEMM_STRIDED;
  ts_v ahead = arg(m, TS_GEMM_OUT_AHEAD, "out_ahead");
  for (int r = 0; r < t->rows; r++) {
    ts_v next = right ? offset_const(m, t->out[r], width) : offset(m, t->out[r], ahead);
    for (int64_t at = 0; at < width; at += 64) ts_emit_prefetch(m->e, offset_const(m, next, at), true);
  }
}

/* The bytes from a row of rhs to the row that is prefetched. */
static ts_v tile_ahead(gemm_emit *m, const tile *t) {
  return mul(m, t->rhs_stride, i64_const(m, TILE_AHEAD / (t->rows * t->vectors)));
}

static ts_v least(gemm_emit *m, ts_v a, ts_v b) {
  return LLVMBuildSelect(m->b, LLVMBuildICmp(m->b, LLVMIntSLT, a, b, ""), a, b, "");
}

static ts_v subtract(gemm_emit *m, ts_v a, ts_v b) { return LLVMBuildSub(m->b, a, b, ""); }
static ts_v bit(gemm_emit *m, bool value) { return LLVMConstInt(LLVMInt1TypeInContext(m->e->context), value, false); }

/* Adds the accumulators to out's elements if `adds`, else replaces these by them. */
static void end_chain(gemm_emit *m, tile *t, ts_v adds) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b), more = new_block(m, "more"), ready = new_block(m, "ready");
  ts_v total[TS_GEMM_MAX_HEIGHT][2];
  LLVMBuildCondBr(m->b, adds, more, ready);
  LLVMPositionBuilderAtEnd(m->b, more);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) {
      ts_v held = load_out(m, t, r, v, t->mask[v]);
      total[r][v] = add_elements(m, held, t->sum[r][v]);
    }
  LLVMBuildBr(m->b, ready);
  LLVMPositionBuilderAtEnd(m->b, ready);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) {
      t->sum[r][v] = loop_phi(m, from, t->sum[r][v]);
      LLVMAddIncoming(t->sum[r][v], &total[r][v], &more, 1);
    }
  store_out(m, t);
}

/* The addresses of the elements of lhs at a step of k, of row 0 at `lhs`. */
static void find_left(gemm_emit *m, const tile *t, ts_v lhs, ts_v *out) {
  for (int r = 0; r < t->rows; r++) {
    if (t->kernel == TS_GEMM_TILE)
      out[r] = offset_const(m, lhs, (int64_t)r * m->g->element_size);
    else if (r % GROUP_ROWS == 0)
      out[r] = r ? offset(m, lhs, t->group[r / GROUP_ROWS]) : lhs;
    else
      out[r] = offset(m, out[r / GROUP_ROWS * GROUP_ROWS], t->row[r % GROUP_ROWS]);
  }
}

/* One chain of `steps`; advances t->lhs and t->rhs past it. */
static void tile_chain(gemm_emit *m, tile *t, ts_v ahead, ts_v steps) {
  int size = m->g->element_size;
  const bool small = t->kernel == TS_GEMM_SMALL;
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  ts_v phi[TS_GEMM_MAX_HEIGHT][2];
  loop l;
  loop_begin(m, "k", i64_const(m, 0), &l);
  ts_v lhs = loop_phi(m, from, t->lhs), rhs = loop_phi(m, from, t->rhs);
  ts_v later = small ? NULL : loop_phi(m, from, t->later);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) phi[r][v] = loop_phi(m, from, t->sum[r][v]);
  if (!small) ts_emit_prefetch_second(m->e, later);
  if (t->lanes == m->g->lanes) prefetch_rhs(m, t, offset(m, rhs, ahead));
  ts_v right[2], lefts[TS_GEMM_MAX_HEIGHT];
  for (int v = 0; v < t->vectors; v++) {
    ts_v at = vector_address(m, t, rhs, v);
    right[v] = small && t->masked ? masked_load(m, t, at, t->mask[v]) : load(m, t->type, at);
  }
  find_left(m, t, lhs, lefts);
  for (int r = 0; r < t->rows; r++) {
    ts_v left = splat(m, t->type, load(m, m->element, lefts[r]));
    for (int v = 0; v < t->vectors; v++) {
      t->sum[r][v] = multiply_add(m, left, right[v], phi[r][v]);
      loop_next(m, phi[r][v], t->sum[r][v]);
    }
  }
  t->lhs = small ? offset(m, lhs, t->lhs_step) : offset_const(m, lhs, (int64_t)m->g->panel * size);
  t->rhs = offset(m, rhs, t->rhs_stride);
  loop_next(m, lhs, t->lhs);
  loop_next(m, rhs, t->rhs);
  if (!small) loop_next(m, later, t->later = offset(m, later, t->later_step));
  loop_end(m, &l, i64_const(m, 1), steps);
}

static void tile_loop(gemm_emit *m, tile *t) {
  ts_v ahead = tile_ahead(m, t), length = arg(m, TS_GEMM_CHAIN, "chain");
  ts_v go_on = LLVMBuildICmp(m->b, LLVMIntNE, arg(m, TS_GEMM_CONTINUE, ""), i64_const(m, 0), "continue");
  ts_v adds = LLVMBuildICmp(m->b, LLVMIntNE, arg(m, TS_GEMM_ADDS, ""), i64_const(m, 0), "adds");
  ts_v sums[TS_GEMM_MAX_HEIGHT][2];
  if (t->kernel == TS_GEMM_SMALL)
    tile_start_empty(t);
  else
    tile_start(m, t, go_on);
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  loop l;
  loop_begin(m, "chain", i64_const(m, 0), &l);
  ts_v lhs = loop_phi(m, from, t->lhs), rhs = loop_phi(m, from, t->rhs);
  ts_v later = t->later ? loop_phi(m, from, t->later) : NULL;
  adds = loop_phi(m, from, adds);
  t->lhs = lhs, t->rhs = rhs, t->later = later;
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) t->sum[r][v] = sums[r][v] = loop_phi(m, from, t->sum[r][v]);
  tile_chain(m, t, ahead, least(m, length, subtract(m, t->k, l.index)));
  end_chain(m, t, adds);
  loop_next(m, lhs, t->lhs);
  loop_next(m, rhs, t->rhs);
  if (later) loop_next(m, later, t->later);
  loop_next(m, adds, bit(m, true));
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) loop_next(m, sums[r][v], LLVMConstNull(t->type));
  loop_end(m, &l, length, t->k);
}

/* SMALL: tiles at equal distances. */
static void tiles_loop(gemm_emit *m, tile *t, ts_v stride) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  loop l;
  loop_begin(m, "tiles", i64_const(m, 0), &l);
  ts_v lhs = loop_phi(m, from, t->lhs), rhs = loop_phi(m, from, t->rhs), out = loop_phi(m, from, t->out[0]);
  t->lhs = lhs, t->rhs = rhs, t->out[0] = out;
  for (int r = 1; r < t->rows; r++) t->out[r] = offset(m, t->out[r - 1], stride);
  tile_loop(m, t);
  loop_next(m, lhs, offset(m, lhs, arg(m, TS_GEMM_NEXT_LHS, "next_lhs")));
  loop_next(m, rhs, offset(m, rhs, arg(m, TS_GEMM_NEXT_RHS, "next_rhs")));
  loop_next(m, out, offset(m, out, arg(m, TS_GEMM_NEXT_OUT, "next_out")));
  loop_end(m, &l, i64_const(m, 1), arg(m, TS_GEMM_TILES, "tiles"));
}

/* ---- STRIDED ---- */

typedef struct strided_lhs {
  int groups;
  ts_v ahead; /* bytes */
  ts_v lhs[MAX_GROUPS], rhs;
} strided_lhs;

/* One k: a row of rhs by an element of each row of lhs. */
static void strided_step(gemm_emit *m, tile *t, const strided_lhs *s, ts_v rhs, ts_v *lhs) {
  ts_v right[2] = {NULL};
  prefetch_rhs(m, t, offset(m, rhs, s->ahead));
  for (int v = 0; v < t->vectors; v++) right[v] = load(m, m->vector, vector_address(m, t, rhs, v));
  for (int r = 0; r < t->rows; r++) {
    ts_v from = r % GROUP_ROWS ? offset(m, lhs[r / GROUP_ROWS], t->row[r % GROUP_ROWS]) : lhs[r / GROUP_ROWS];
    ts_v left = splat(m, m->vector, load(m, m->element, from));
    for (int v = 0; v < t->vectors; v++) t->sum[r][v] = multiply_add(m, left, right[v], t->sum[r][v]);
  }
}

/* The piece of `steps` whose rows begin at s->lhs; advances s->rhs past it. */
static void strided_piece(gemm_emit *m, tile *t, strided_lhs *s, ts_v steps) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  ts_v phi[TS_GEMM_MAX_HEIGHT][2] = {{NULL}}, lhs[MAX_GROUPS] = {NULL};
  loop l;
  loop_begin(m, "k", i64_const(m, 0), &l);
  ts_v rhs = loop_phi(m, from, s->rhs);
  for (int g = 0; g < s->groups; g++) lhs[g] = loop_phi(m, from, s->lhs[g]);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) t->sum[r][v] = phi[r][v] = loop_phi(m, from, t->sum[r][v]);
  strided_step(m, t, s, rhs, lhs);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) loop_next(m, phi[r][v], t->sum[r][v]);
  for (int g = 0; g < s->groups; g++) loop_next(m, lhs[g], offset_const(m, lhs[g], m->g->element_size));
  s->rhs = offset(m, rhs, t->rhs_stride);
  loop_next(m, rhs, s->rhs);
  loop_end(m, &l, i64_const(m, 1), steps);
}

/* Ends the chain where `is_end`; the sums then start again from 0. */
static void strided_flush(gemm_emit *m, tile *t, ts_v is_end, ts_v *has_out) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  ts_v kept[TS_GEMM_MAX_HEIGHT][2], zero = LLVMConstNull(m->vector), before = *has_out, yes = bit(m, true);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) kept[r][v] = t->sum[r][v];
  LLVMBasicBlockRef skip = guard_begin(m, is_end);
  end_chain(m, t, before);
  LLVMBasicBlockRef ended = LLVMGetInsertBlock(m->b);
  guard_end(m, skip);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) {
      t->sum[r][v] = loop_phi(m, from, kept[r][v]);
      LLVMAddIncoming(t->sum[r][v], &zero, &ended, 1);
    }
  *has_out = loop_phi(m, from, before);
  LLVMAddIncoming(*has_out, &yes, &ended, 1);
}

/* A piece, as values. */
enum { PIECE_LHS, PIECE_RHS, PIECE_STEPS, PIECE_ENDS, PIECE_WORDS };

static ts_v piece_word(gemm_emit *m, ts_v piece, size_t at) {
  return LLVMBuildLoad2(m->b, m->i64, offset_const(m, piece, (int64_t)at), "");
}

static void load_piece(gemm_emit *m, const tile *t, ts_v piece, ts_v *out) {
  out[PIECE_LHS] = offset(m, t->lhs, piece_word(m, piece, offsetof(ts_gemm_piece, lhs)));
  out[PIECE_RHS] = offset(m, t->rhs, mul(m, t->rhs_stride, piece_word(m, piece, offsetof(ts_gemm_piece, rhs))));
  out[PIECE_RHS] = offset(m, out[PIECE_RHS], piece_word(m, piece, offsetof(ts_gemm_piece, rhs_bytes)));
  out[PIECE_STEPS] = piece_word(m, piece, offsetof(ts_gemm_piece, steps));
  out[PIECE_ENDS] = piece_word(m, piece, offsetof(ts_gemm_piece, ends));
}

/* In low tiles the next piece is loaded before the steps of one: the end of a loop is predicted wrongly, and then
 * nothing waits. High ones have no registers for it. */
static void strided_loop(gemm_emit *m, tile *t) {
  strided_lhs s = {.groups = (t->rows + GROUP_ROWS - 1) / GROUP_ROWS, .ahead = tile_ahead(m, t)};
  ts_v piece = arg_pointer(m, TS_GEMM_PIECES, "pieces"), count = arg(m, TS_GEMM_PIECE_COUNT, "count");
  ts_v sums[TS_GEMM_MAX_HEIGHT][2], now[PIECE_WORDS] = {NULL}, next[PIECE_WORDS] = {NULL}, no = bit(m, false);
  const int early = s.groups == 1 ? PIECE_WORDS : 0;
  set_rows(m, t, arg(m, TS_GEMM_LHS_STRIDE, "lhs_stride"));
  if (early) load_piece(m, t, piece, now);
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  loop l;
  loop_begin(m, "piece", i64_const(m, 0), &l);
  ts_v at = loop_phi(m, from, piece), has_out = loop_phi(m, from, no), out = has_out;
  for (int i = 0; i < early; i++) now[i] = loop_phi(m, from, now[i]);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) t->sum[r][v] = sums[r][v] = loop_phi(m, from, LLVMConstNull(m->vector));
  ts_v after = offset_const(m, at, sizeof(ts_gemm_piece));
  load_piece(m, t, early ? after : at, early ? next : now);
  for (int g = 0; g < s.groups; g++) s.lhs[g] = offset(m, now[PIECE_LHS], t->group[g]);
  s.rhs = now[PIECE_RHS];
  strided_piece(m, t, &s, now[PIECE_STEPS]);
  strided_flush(m, t, LLVMBuildICmp(m->b, LLVMIntNE, now[PIECE_ENDS], i64_const(m, 0), ""), &out);
  loop_next(m, at, after);
  loop_next(m, has_out, out);
  for (int i = 0; i < early; i++) loop_next(m, now[i], next[i]);
  for (int r = 0; r < t->rows; r++)
    for (int v = 0; v < t->vectors; v++) loop_next(m, sums[r][v], t->sum[r][v]);
  loop_end(m, &l, i64_const(m, 1), count);
}

/* ---- all tiles ---- */

static void emit_tile_variant(gemm_emit *m, tile *t) {
  ts_v cols = arg(m, TS_GEMM_COLS, "cols"), stride = arg(m, TS_GEMM_OUT_STRIDE, "stride");
  t->k = arg(m, TS_GEMM_K, "k");
  t->lhs = arg_pointer(m, TS_GEMM_LHS, "lhs");
  t->rhs = arg_pointer(m, TS_GEMM_RHS, "rhs");
  t->rhs_stride = arg(m, TS_GEMM_RHS_STRIDE, "rhs_stride");
  t->out[0] = arg_pointer(m, TS_GEMM_OUT, "out");
  for (int v = 0; v < t->vectors && t->masked; v++) t->mask[v] = column_mask(m, t, cols, v);
  if (t->kernel == TS_GEMM_SMALL) {
    if (t->vectors > 1) t->second = mul(m, subtract(m, cols, i64_const(m, t->lanes)), i64_const(m, m->g->element_size));
    tiles_loop(m, t, stride);
  } else {
    for (int r = 1; r < t->rows; r++) t->out[r] = offset(m, t->out[r - 1], stride);
    t->is_full = LLVMBuildICmp(m->b, LLVMIntSGE, cols, i64_const(m, (int64_t)t->vectors * t->lanes), "is_full");
    prefetch_out(m, t);
    if (t->kernel == TS_GEMM_TILE) {
      t->later = arg_pointer(m, TS_GEMM_LATER, "later");
      t->later_step = arg(m, TS_GEMM_LATER_STEP, "later_step");
    }
    (t->kernel == TS_GEMM_STRIDED ? strided_loop : tile_loop)(m, t);
  }
  LLVMBuildRetVoid(m->b);
}

static tile tile_of(gemm_emit *m, ts_gemm_kernel kernel, int variant) {
  return (tile){.rows = m->g->rows[variant / TS_GEMM_WIDTHS],
                .vectors = variant % TS_GEMM_WIDTHS ? 1 : m->g->vectors,
                .kernel = kernel,
                .masked = m->g->masked,
                .lanes = m->g->lanes,
                .type = m->vector};
}

/* As ts_gemm_small_width numbers the widths. */
static tile small_tile_of(gemm_emit *m, int variant) {
  const bool masked = m->g->masked;
  const int widths = ts_gemm_small_widths(m->g), width = variant % widths, half = masked ? width - 1 : width / 2;
  tile t = {.rows = variant / widths + 1,
            .vectors = width == 0 || (!masked && width % 2 == 0 && width < widths - 1) ? 2 : 1,
            .kernel = TS_GEMM_SMALL,
            .lanes = width == 0 ? m->g->lanes : m->g->lanes >> half,
            .type = m->element};
  t.masked = masked && t.vectors == 1 && t.lanes > 1;
  if (t.lanes > 1) t.type = LLVMVectorType(m->element, (unsigned)t.lanes);
  t.lhs_step = arg(m, TS_GEMM_LHS_STEP, "lhs_step");
  set_rows(m, &t, arg(m, TS_GEMM_LHS_STRIDE, "lhs_stride"));
  return t;
}

static void emit_tile(gemm_emit *m, ts_gemm_kernel kernel) {
  const bool small = kernel == TS_GEMM_SMALL;
  const int count = small ? m->g->small * ts_gemm_small_widths(m->g) : TS_GEMM_HEIGHTS * TS_GEMM_WIDTHS;
  LLVMBasicBlockRef none = new_block(m, "none");
  ts_v choice = LLVMBuildSwitch(m->b, LLVMGetParam(m->e->function, 1), none, (unsigned)count);
  LLVMPositionBuilderAtEnd(m->b, none);
  LLVMBuildUnreachable(m->b);
  for (int i = 0; i < count; i++) {
    LLVMBasicBlockRef block = new_block(m, "tile");
    LLVMAddCase(choice, i64_const(m, i), block);
    LLVMPositionBuilderAtEnd(m->b, block);
    tile t = small ? small_tile_of(m, i) : tile_of(m, kernel, i);
    emit_tile_variant(m, &t);
  }
}

/* ---- sources ---- */

static LLVMTypeRef compute_type(LLVMContextRef context, ts_gemm_compute compute) {
  switch (compute) {
  case TS_GEMM_F32: return LLVMFloatTypeInContext(context);
  case TS_GEMM_F64: return LLVMDoubleTypeInContext(context);
  case TS_GEMM_I32:
  case TS_GEMM_PAIRS: return LLVMInt32TypeInContext(context);
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

static const ts_dtype narrow_types[TS_GEMM_NARROW_TYPES] = {TS_S8, TS_S16, TS_U8, TS_U16, TS_F16, TS_BF16};

static bool is_narrow(ts_dtype type) {
  for (int i = 0; i < TS_GEMM_NARROW_TYPES; i++)
    if (narrow_types[i] == type) return true;
  return false;
}

/* True for the types of x that AXPY and DOT convert to the compute type. */
static bool is_widened(ts_dtype x, ts_gemm_compute compute) {
  return is_narrow(x) || (compute == TS_GEMM_F64 && (x == TS_F32 || x == TS_S32 || x == TS_U32));
}

static ts_status emit_kernel(ts_emit *e, const char *name, const void *description) {
  const ts_gemm_request *request = description;
  gemm_emit m = {.e = e, .b = e->b, .g = &request->geometry, .x = request->x};
  m.x_size = m.x == TS_DTYPE_NONE ? m.g->element_size : (int)ts_dtype_size(m.x);
  m.i8 = LLVMInt8TypeInContext(e->context);
  if (request->x != TS_DTYPE_NONE && !is_widened(request->x, m.g->compute))
    return ts_error(TS_UNIMPLEMENTED, "no matrix product of type %s", ts_dtype_name(request->x));
  m.i64 = LLVMInt64TypeInContext(e->context);
  m.element = compute_type(e->context, m.g->compute);
  m.vector = LLVMVectorType(m.element, (unsigned)m.g->lanes);
  e->function = add_function(e, name);
  m.args = LLVMGetParam(e->function, 0);
  LLVMPositionBuilderAtEnd(m.b, new_block(&m, "entry"));
  switch (request->kernel) {
  case TS_GEMM_TILE:
  case TS_GEMM_STRIDED:
  case TS_GEMM_SMALL: emit_tile(&m, request->kernel); break;
  case TS_GEMM_AXPY: ts_gemm_emit_axpy(&m); break;
  case TS_GEMM_DOT: ts_gemm_emit_dot(&m); break;
  case TS_GEMM_KERNEL_COUNT: return ts_error(TS_INTERNAL, "no such kernel");
  }
  return TS_SUCCESS;
}

static ts_status copy_request(const void *description, void **out) {
  TS_TRY(ts_alloc(sizeof(ts_gemm_request), out));
  memcpy(*out, description, sizeof(ts_gemm_request));
  return TS_SUCCESS;
}

void ts_gemm_make_source(ts_gemm_compute compute, ts_gemm_kernel kernel, ts_dtype x, const ts_target *target,
                         ts_gemm_request *request, ts_kernel_source *out) {
  static const char *const kernels[] = {"tile next", "taps", "wide", "axpy", "dot"}, *const types[] = {"f32", "f64",
                                                                                                       "i32", "i64",
                                                                                                       "pairs"};
  ts_gemm_get_geometry(compute, target, &request->geometry);
  request->kernel = kernel;
  request->x = x;
  const ts_gemm_geometry *g = &request->geometry;
  int length = snprintf(request->text, sizeof(request->text), "gemm.%s %s chains lanes %d rows %d %d %d%s%s%s%s",
                        kernels[kernel], types[compute], g->lanes, g->rows[0], g->rows[1], g->rows[2],
                        g->masked ? " masked" : "", g->fma ? " fma" : "", x == TS_DTYPE_NONE ? "" : " x ",
                        x == TS_DTYPE_NONE ? "" : ts_dtype_name(x));
  *out = (ts_kernel_source){.text = request->text,
                            .length = (size_t)length,
                            .emit = emit_kernel,
                            .description = request,
                            .copy = copy_request};
}

bool ts_gemm_has_type(ts_dtype type) {
  switch (type) {
  case TS_S32:
  case TS_U32:
  case TS_F32:
  case TS_S64:
  case TS_U64:
  case TS_F64: return true;
  default: return is_narrow(type);
  }
}

bool ts_gemm_is_native(ts_dtype dtype, ts_gemm_compute *out) {
  bool wide = ts_dtype_size(dtype) == 8;
  if (ts_dtype_is_float(dtype))
    *out = wide ? TS_GEMM_F64 : TS_GEMM_F32;
  else
    *out = wide ? TS_GEMM_I64 : TS_GEMM_I32;
  return ts_dtype_size(dtype) >= 4;
}

void ts_gemm_make_builtin(int index, const ts_target *target, ts_gemm_request *request, ts_kernel_source *out) {
  const int native = TS_GEMM_ELEMENT_COUNT * TS_GEMM_KERNEL_COUNT;
  ts_gemm_compute compute = (ts_gemm_compute)(index / TS_GEMM_KERNEL_COUNT);
  ts_gemm_kernel kernel = (ts_gemm_kernel)(index % TS_GEMM_KERNEL_COUNT);
  ts_dtype x = TS_DTYPE_NONE;
  if (index == TS_GEMM_BUILTINS - 1) {
    compute = TS_GEMM_PAIRS;
    kernel = TS_GEMM_TILE;
  } else if (index >= native) {
    x = narrow_types[(index - native) / 2];
    kernel = (index - native) % 2 ? TS_GEMM_DOT : TS_GEMM_AXPY;
    ts_gemm_is_native(x, &compute);
  }
  ts_gemm_make_source(compute, kernel, x, target, request, out);
}
