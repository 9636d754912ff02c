/* A launch while it is made from a loop nest (lower_launch.c). Internal to jit/lower. */
#ifndef TS_JIT_LOWER_MAKER_H
#define TS_JIT_LOWER_MAKER_H

#include "jit/lower/lower_internal.h"

#define TS_TILE_ROWS 8 /* tiles have at least so many */

/* The loops while they are collapsed, and every index map over them: loads, stores, indices. */
typedef struct ts_collapsed {
  ts_loops loops;
  int32_t kept;    /* loops from this one on are reduced */
  bool has_blocks; /* the last kept loop counts blocks of a row in pieces: it stays a loop of its own */
  ts_affine at[TS_NEST_MAX_OPERANDS];
  bool turns[TS_NEST_MAX_OPERANDS]; /* has an element for each of the columns that take turns in a row */
  int32_t count;
} ts_collapsed;

/* The used items, renumbered in the order of first use. -1: unused. */
typedef struct ts_used {
  int32_t node[2 * TS_NEST_MAX_NODES], load[TS_NEST_MAX_OPERANDS], index[TS_NEST_MAX_OPERANDS];
  int32_t scalar[4 * TS_NEST_MAX_NODES];
  int32_t nodes, loads, indices, scalars;
} ts_used;

typedef struct ts_maker {
  ts_lowering *lowering;
  const ts_nest *nest;
  ts_used used;
  ts_collapsed collapsed;
  ts_kernel_kind kind;
  ts_columns columns;
  int32_t members;
  int32_t joined, rows, lined; /* JOINED, TILE */
  ts_launch launch;
} ts_maker;

/* The access of a load that is used. */
const ts_access *ts_maker_load(const ts_maker *m, int32_t used_slot);
/* Bytes of an element of an operand; 1 for an index. */
int64_t ts_maker_operand_size(const ts_maker *m, int32_t i);
/* The points of all loops. */
int64_t ts_maker_points(const ts_collapsed *n);
/* True with more points than a small launch has. */
bool ts_maker_is_large(const ts_collapsed *n);
bool ts_maker_has_gather(const ts_nest *p);

/* The kept loop along which an operand's elements lie closest, if they are closer than those of a row; -1: there is
 * none (lower_near.c). */
int32_t ts_maker_near_columns(const ts_collapsed *n, int32_t operand);
/* True where rows whose elements few columns separate are searched by an argmax or argmin one by one. */
bool ts_maker_finds_in_near(const ts_maker *m, int32_t operand);
/* True where vectors of a ROW or COL, the loops of which are in their order, take an operand's elements apart. */
bool ts_maker_is_near(const ts_maker *m, int32_t operand);
bool ts_maker_has_near(const ts_maker *m);

/* The loops between the two places move by one. */
void ts_maker_move_loop(ts_collapsed *n, int32_t from, int32_t to);
/* The loop along which the largest transposed input is contiguous; -1 without one (lower_tile.c). */
int32_t ts_maker_find_transposed(const ts_maker *m);
/* True where there is one, perhaps since a loop runs backwards now: that of an input which is reversed as well. */
bool ts_maker_transposes(ts_maker *m);
/* Makes a TILE of rows that several loops of the results are, or of lines that several loops of an input are, if the
 * launch is large and has short ones (lower_tile.c). */
bool ts_maker_takes_tiles(ts_maker *m);
/* Lets tiles follow each other as they lie in the largest transposed input (lower_tile.c). */
void ts_maker_order_tiles(ts_maker *m);

/* True when the launch copies elements, and computes nothing. */
bool ts_maker_only_moves(const ts_maker *m);
/* Makes a JOINED, if the launch is large and has short rows, or elements few steps apart. `transposes`: tiles could be
 * transposed instead (lower_joined.c). */
bool ts_maker_joins(ts_maker *m, bool transposes);
ts_kernel_operand ts_maker_describe_joined(const ts_maker *m, int32_t i, ts_dtype dtype);

#endif
