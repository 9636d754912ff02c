/* A program while a function is traced: a graph, and its open region, where ops are added. A value of an outer region
 * may be used in an inner one. It is captured then: it becomes a parameter of each region between, and the op that
 * holds the region gets it as an operand. Hidden arguments are tensors of the function's environment; each becomes a
 * parameter of the program when it is first used. Not thread-safe. A tracer owns its graph. */
#ifndef TS_FRONT_TRACER_H
#define TS_FRONT_TRACER_H

#include "front/promote.h"
#include "shard/varying.h"

typedef struct ts_capture {
  ts_value_id outer, param;
} ts_capture;

/* The tracer's record of a region, besides the graph's own. */
typedef struct ts_tracer_region {
  ts_region_id parent; /* where it was opened; TS_NO_ID for the root and for copies */
  uint32_t depth;      /* of regions around it */
  TS_VEC(ts_capture) captures;
} ts_tracer_region;

typedef struct ts_tracer {
  ts_graph *graph;
  ts_region_id current;
  bool finished;
  TS_VEC(ts_tracer_region) regions; /* by id; may be shorter than the graph's */
  TS_VEC(ts_value_id) hidden;       /* the parameter of each hidden argument, TS_NO_ID while it is unused */
  TS_VEC(uint32_t) used;            /* the hidden arguments in the order of their parameters */
  ts_varying varying;               /* of a local view: the axes of the values that were asked about */
} ts_tracer;

/* An empty program and its hidden arguments; `tracer` is all zeros. Needs ts_tracer_deinit even after a failure. */
ts_status ts_tracer_init(ts_tracer *tracer, size_t hidden_count);
/* A finished program, whose graph the tracer owns from then on. */
void ts_tracer_init_finished(ts_tracer *tracer, ts_graph *graph);
void ts_tracer_deinit(ts_tracer *tracer);

/* An error when the program is finished. The functions below may be called only before. */
ts_status ts_tracer_check(const ts_tracer *tracer);

/* ---- operands ---- */

/* A value of the program, as a value of the current region. An error when its region is not open. */
ts_status ts_tracer_value(ts_tracer *tracer, ts_value_id value, ts_value_id *out);
/* A hidden argument, by its number below hidden_count, as a value of the current region. */
ts_status ts_tracer_hidden(ts_tracer *tracer, size_t index, const ts_buffer *buffer, ts_value_id *out);
/* A tensor as a constant of the program. */
ts_status ts_tracer_constant(ts_tracer *tracer, ts_buffer *buffer, ts_value_id *out);
/* The operand that a value of the current region is. */
ts_operand ts_tracer_operand(const ts_tracer *tracer, ts_value_id value);
/* An operand as a value of the current region; a number becomes a scalar of its own type. */
ts_status ts_tracer_place(ts_tracer *tracer, const ts_operand *operand, ts_value_id *out);

/* ---- ops: added to the current region; `out` gets the first result ---- */

ts_status ts_tracer_param(ts_tracer *tracer, const ts_type *type, ts_value_id *out);
ts_status ts_tracer_op(ts_tracer *tracer, ts_opcode code, ts_operands operands, const ts_attrs *attrs,
                       ts_value_id *out);
/* While (condition, body) or cond (true, false), whose operands are a predicate of any type and nothing else. The
 * captures of both regions are made equal and become operands after `operands`, and results of a while after its own.
 * `own` results are the function's. */
ts_status ts_tracer_control(ts_tracer *tracer, ts_opcode code, const ts_region_id regions[2], ts_operands operands,
                            ts_value_id *out, size_t *own);
/* An op whose results have these types: `attrs`, which gets a region of them, is of a callback or custom_call. */
ts_status ts_tracer_typed(ts_tracer *tracer, ts_opcode code, ts_attrs *attrs, ts_types types, ts_operands operands,
                          ts_value_id *out);
/* Copies a program's ops into the current region, on these arguments: they must have the types of its parameters. The
 * caller frees *out: the program's results. The other program must be finished. */
ts_status ts_tracer_inline_program(ts_tracer *tracer, const ts_graph *program, ts_operands arguments,
                                   ts_value_id **out);
/* Copies a region's ops, on these arguments. The caller frees *out: the region's results, then the copies of the values
 * `sought` (also values in the ops' regions), TS_NO_ID for a value that was not copied. */
ts_status ts_tracer_inline(ts_tracer *tracer, ts_region_id region, ts_operands arguments, ts_values sought,
                           ts_value_id **out);

/* ---- regions ---- */

/* An error unless it is a region inside of the program. */
ts_status ts_tracer_check_region(ts_tracer *tracer, ts_region_id region);
/* Opens a region in the current one and enters it. Its first parameters have these types; after them come the captures
 * of `like`, unless that is TS_NO_ID, in the same order. */
ts_status ts_tracer_open(ts_tracer *tracer, ts_types types, ts_region_id like, ts_region_id *out);
/* Enters a region again that was opened in the current one. */
ts_status ts_tracer_enter(ts_tracer *tracer, ts_region_id region);
/* Leaves the current region for the one around it. */
ts_status ts_tracer_leave(ts_tracer *tracer);
/* Gives the current region its results, and leaves it. */
ts_status ts_tracer_close(ts_tracer *tracer, ts_operands results);
/* ---- the local view: the program of one partition of a mesh (docs/distribution.md, front/tracer_local.c) ---- */

/* Before there are values. */
ts_status ts_tracer_set_local(ts_tracer *tracer, const ts_mesh *mesh);
/* Whether a program that is written for partitions of a mesh may be inlined here. */
ts_status ts_tracer_check_mesh(const ts_tracer *tracer, const ts_graph *program);
/* The coordinates of the partition, s32[axes], as a value of the current region. They are the last parameter when the
 * program is finished. */
ts_status ts_tracer_coordinates(ts_tracer *tracer, ts_value_id *out);
/* The axes over which a value varies, in any region. */
ts_status ts_tracer_varying(ts_tracer *tracer, ts_value_id value, ts_axis_set *out);
/* From now on, results of this value vary over these axes as well. */
ts_status ts_tracer_vary(ts_tracer *tracer, ts_value_id value, ts_axis_set axes);
/* Part of ts_tracer_finish. */
void ts_tracer_move_coordinates(ts_tracer *tracer);

/* Gives the program its results, and ends tracing. */
ts_status ts_tracer_finish(ts_tracer *tracer, ts_operands results);

#endif
