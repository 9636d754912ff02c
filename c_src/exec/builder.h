/* State of buffer assignment while a program's steps are made: which storage holds each value, and the live range of
 * each storage. Storages that share memory are merged, and the remaining ones become the memory of the executable
 * (assign.c). The builder is freed when the executable is complete. Used by one thread; internal to exec/. */
#ifndef TS_EXEC_BUILDER_H
#define TS_EXEC_BUILDER_H

#include "exec/choose.h"
#include "exec/steps.h"

typedef uint32_t ts_storage_id;

typedef struct ts_storage {
  int64_t bytes;
  int32_t first, last;   /* positions of the first write and the last use */
  ts_storage_id merged;  /* itself, or the storage into whose memory it was merged */
  uint32_t index;        /* ARG, CONST and RESULT: index among their kind; TEMP: also, once numbered */
  ts_memory_id memory;   /* its number among all memory of the executable */
  int32_t donor;         /* RESULT: argument whose memory it may take when donated; -1 */
  int32_t loop;          /* position of the while whose loop variable it holds; -1: none */
  uint32_t loop_index;   /* index of that loop variable, for `carried` and `next` */
  int32_t last_in_loop;  /* carried: last use inside the loop's regions */
  int32_t first_in_loop; /* next: first write inside them */
  uint8_t kind;          /* ts_memory_kind */
  bool carried;          /* holds the loop's value during an iteration */
  bool next;             /* receives the next iteration's value */
  bool given;            /* ARG: some result has it as its donor */
  ts_storage_id viewed;  /* VIEW: the ARG or CONST that it is a part of */
  int64_t offset;        /* VIEW: where it begins */
  bool strided;          /* VIEW: has the strides of a slice, for routines that read slices where they lie */
} ts_storage;

/* True for memory that no step writes: arguments, constants, and parts of them. */
static inline bool ts_storage_is_given(const ts_storage *s) {
  return s->kind == TS_MEMORY_ARG || s->kind == TS_MEMORY_CONST || s->kind == TS_MEMORY_VIEW;
}

/* The plan of a routine. Equal ops share it. */
typedef struct ts_planned {
  ts_op_id op;           /* the first op with this plan */
  ts_op_id first, move;  /* if it is the second product of a chain (stripes/stripes.h): other ops of the chain */
  uint64_t unread;       /* of the op's results, as in ts_routine_request */
  uint32_t kernel;       /* index of the kernel that the plan requested; TS_NO_ID: none */
  ts_routine_plan *plan; /* its state is NULL where the routine declined */
} ts_planned;

/* A step of a native loop that needs no call: a product, a scan or a scatter. */
typedef struct ts_native_part {
  int32_t position; /* of its step */
  int64_t bytes;    /* of its result */
  const struct ts_flow_dot *dot;
  const struct ts_flow_scan *scan;
  const struct ts_flow_scatter *scatter;
} ts_native_part;

enum { TS_TYPES_SEEN = 16 };

typedef struct ts_builder {
  ts_executable *exe;
  const ts_graph *graph;
  const ts_compile_options *options;
  ts_storage_id *map; /* storage of each value */
  bool *taken;        /* by value, as build.c's find_taken says; NULL until it is asked for */
  bool *dense;        /* the same for find_dense */
  uint32_t *uses;     /* of each value; NULL until they are asked for */
  TS_VEC(ts_storage) storages;
  int32_t position;                    /* of the next step */
  size_t wholes;                       /* steps that are compiled whole */
  size_t natives;                      /* native loops */
  bool in_native;                      /* the steps that are made are in one */
  ts_arena flows;                      /* the descriptions of native loops */
  TS_VEC(struct ts_native_part) parts; /* of native loops */
  size_t collectives;
  ts_chooser chooser;
  TS_VEC(ts_planned) planned;
  TS_VEC(ts_place) places;  /* of steps, by position; those at the end may be missing */
  bool in_fusion;           /* ops of a fusion are being built; their steps have the fusion's place */
  TS_VEC(uint32_t) readers; /* the current op's operands that are results of one routine */
  struct {                  /* types that the executable keeps, by shape */
    const ts_shape *shape;
    const ts_type *type;
  } types[TS_TYPES_SEEN];
} ts_builder;

/* ---- storages ---- */
ts_status ts_builder_add_storage(ts_builder *b, ts_memory_kind kind, uint32_t index, int64_t bytes, ts_storage_id *out);
static inline ts_storage *ts_builder_storage(const ts_builder *b, ts_storage_id id) { return &b->storages.data[id]; }
/* The final storage into which a storage was merged. */
static inline ts_storage_id ts_builder_find(const ts_builder *b, ts_storage_id id) {
  while (b->storages.data[id].merged != id) id = b->storages.data[id].merged;
  return id;
}
static inline void ts_builder_use(ts_builder *b, ts_storage_id id, int32_t position) {
  ts_storage *s = &b->storages.data[id];
  if (position < s->first) s->first = position;
  if (position > s->last) s->last = position;
  if (s->kind != TS_MEMORY_VIEW) return;
  s = &b->storages.data[s->viewed];
  if (position > s->last) s->last = position;
}
int64_t ts_builder_bytes(const ts_builder *b, ts_value_id value);

/* ---- types ---- */
/* A pointer to the value's type in the executable's arena, where equal types are kept once. */
ts_status ts_builder_keep_type(ts_builder *b, ts_value_id value, const ts_type **out);
/* Records the op and the type of its first result, for explain and messages. */
ts_status ts_builder_name(ts_builder *b, ts_step *step, const ts_op *op);

/* ---- steps: build.c ---- */
/* Starts a step for an op: its operands' storages are read, its results get new storages, and `more` ids follow
 * them. */
ts_status ts_builder_start(ts_builder *b, ts_step_kind kind, const ts_op *op, uint32_t more, ts_step *out);
/* The two halves of ts_builder_start at a given position: the storages of the op's operands, and new ones for its
 * results. */
void ts_builder_read(ts_builder *b, const ts_op *op, int32_t position, ts_storage_id *out);
ts_status ts_builder_write(ts_builder *b, const ts_op *op, int32_t position, ts_storage_id *out);
/* A storage for a step's workspace: `shared` bytes, and `each` for every thread; TS_NO_ID when both are 0. */
ts_status ts_builder_scratch(ts_builder *b, int32_t position, int64_t shared, int64_t each, ts_storage_id *out);
ts_status ts_builder_copy(ts_builder *b, ts_block *block, ts_storage_id from, ts_storage_id to, const ts_op *op);
ts_status ts_builder_region(ts_builder *b, ts_region_id id, ts_block *block);

/* ---- routines: build_routine.c ---- */
/* How many of the latest plans are compared with a new op. */
enum { TS_PLANS_SEEN = 16 };
/* True when the ops have equal attributes and operands of equal types, and the same operands are one value. Results
 * that nothing reads are not compared. (The interpreter's plan is a program of the op, and x * x has another form than
 * x * y.) May be false for equal ops where comparing is too expensive. */
bool ts_builder_are_alike(const ts_graph *graph, const ts_op *a, const ts_op *b);
/* Requests the kernel of the plan. */
ts_status ts_builder_ask_for_kernel(ts_builder *b, ts_planned *planned);
/* Adds a step that computes the op by the routine. *out_done is false when the routine declines the op. */
ts_status ts_builder_routine(ts_builder *b, ts_block *block, ts_op_id id, const ts_routine *routine, bool *out_done);
/* Gives each plan the kernel that it requested. */
void ts_builder_adopt(ts_builder *b);
/* Makes the launch of op `id` the epilogue of a routine whose result it reads, if that is possible and worth it. */
ts_status ts_builder_try_epilogue(ts_builder *b, ts_block *block, ts_op_id id, bool *out_done);

/* ---- chains: stripes/build.c ---- */
/* Adds a step that computes the chain by stripes, up to the op *out_last, which is TS_NO_ID when there are none. */
struct ts_chain;
ts_status ts_builder_stripes(ts_builder *b, ts_block *block, const struct ts_chain *chain, ts_op_id *out_last);

/* ---- order.c ---- */
/* The region's ops, in the order of their steps. NULL: the region's own order. The caller frees it. */
ts_status ts_builder_order(const ts_graph *graph, ts_region_id region, ts_op_id **out);

/* ---- control: build_control.c ---- */
ts_status ts_builder_control(ts_builder *b, ts_block *block, ts_op_id id);
/* Adds a step that stops the run until its caller answers. */
ts_status ts_builder_callback(ts_builder *b, ts_block *block, const ts_op *op);
/* Adds a step that runs the control flow op as one native function. */
ts_status ts_builder_whole(ts_builder *b, ts_block *block, ts_op_id id);

/* ---- native loops: native.c ---- */
/* True when the while becomes one native function: its tensors are small. */
bool ts_native_fits(const ts_graph *graph, ts_op_id id);
/* Notes what the step at `position` computes, if the function can have it in place: native_part.c. */
ts_status ts_builder_note_part(ts_builder *b, const ts_op *op, int32_t position);
/* Once memory is assigned: requests the functions. */
ts_status ts_builder_request_natives(ts_builder *b);

/* ---- meshes: build_mesh.c ---- */
/* Keeps the mesh, and the coordinates of its partitions. */
ts_status ts_builder_mesh(ts_builder *b);
/* Adds a step that stops the run until the other partitions reach it. */
ts_status ts_builder_collective(ts_builder *b, ts_block *block, const ts_op *op);
/* Once memory is assigned: finds the results of collectives that all members may have in one memory. */
ts_status ts_builder_share(ts_builder *b);

/* ---- assign.c ---- */
/* Assigns memory: coalesces storages where an op may work in place, numbers them, places temporaries, and writes the
 * numbers into the steps. */
ts_status ts_assign(ts_builder *b);

/* Calls `visit` for every step, an outer step before the steps of its blocks. */
ts_status ts_block_walk(ts_block *block, ts_status (*visit)(void *context, ts_step *step), void *context);

#endif
