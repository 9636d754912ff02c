/* What is known of a program while its steps are made: of each value the storage that it is in, of each storage when it
 * is used. Storages that turn out to share memory are merged, and what is left becomes the memory of the executable
 * (assign.c). All of it goes when the executable is built. One thread's; internal to exec/. */
#ifndef TS_EXEC_BUILDER_H
#define TS_EXEC_BUILDER_H

#include "exec/choose.h"
#include "exec/steps.h"

typedef uint32_t ts_storage_id;

typedef struct ts_storage {
  int64_t bytes;
  int32_t first, last;  /* positions of the first write and the last use */
  ts_storage_id merged; /* itself, or the storage whose memory it shares */
  uint32_t index;       /* ARG, CONST and RESULT: which; TEMP: too, when memory is numbered, */
  ts_memory_id memory;  /* and what it is of all */
  int32_t donor;        /* RESULT: argument whose memory it may take when donated; -1 */
  int32_t loop;         /* position of the while that carries it, -1 when none does */
  uint32_t loop_index;  /* which of the carried values it is, for `carried` and `next` */
  int32_t last_in_loop; /* carried: last use inside the loop's regions */
  uint8_t kind;         /* ts_memory_kind */
  bool carried;         /* holds the loop's value during an iteration */
  bool next;            /* receives the next iteration's value */
  bool given;           /* ARG: it is the donor of a result */
} ts_storage;

/* A kind of product, and what the executable keeps of it. */
typedef struct ts_product_kind {
  const ts_attrs *attrs;
  const ts_shape *lhs, *rhs;
  ts_dtype dtype;
  uint32_t kernel;
  ts_product *product; /* NULL: its operands are no matrices */
} ts_product_kind;

enum { TS_TYPES_SEEN = 16 };

typedef struct ts_builder {
  ts_executable *exe;
  const ts_graph *graph;
  const ts_compile_options *options;
  ts_storage_id *map; /* one for each value */
  TS_VEC(ts_storage) storages;
  int32_t position; /* of the next step */
  size_t wholes;    /* steps that are compiled whole */
  ts_chooser chooser;
  TS_VEC(ts_product_kind) kinds;
  TS_VEC(uint32_t) readers; /* operands of the op at hand */
  struct {                  /* types that the executable keeps, by what they are made of */
    const ts_shape *shape;
    const ts_type *type;
  } types[TS_TYPES_SEEN];
} ts_builder;

static inline int64_t ts_cost_add(int64_t a, int64_t b) { return a == INT64_MAX || b == INT64_MAX ? INT64_MAX : a + b; }

/* ---- storages ---- */
ts_status ts_builder_add_storage(ts_builder *b, ts_memory_kind kind, uint32_t index, int64_t bytes, ts_storage_id *out);
static inline ts_storage *ts_builder_storage(const ts_builder *b, ts_storage_id id) { return &b->storages.data[id]; }
/* The storage that holds a storage's memory. */
static inline ts_storage_id ts_builder_find(const ts_builder *b, ts_storage_id id) {
  while (b->storages.data[id].merged != id) id = b->storages.data[id].merged;
  return id;
}
static inline void ts_builder_use(ts_builder *b, ts_storage_id id, int32_t position) {
  ts_storage *s = &b->storages.data[id];
  if (position < s->first) s->first = position;
  if (position > s->last) s->last = position;
}
int64_t ts_builder_bytes(const ts_builder *b, ts_value_id value);

/* ---- types ---- */
/* A value's type, kept once for many values. */
ts_status ts_builder_keep_type(ts_builder *b, ts_value_id value, const ts_type **out);
/* Says what the step is for. */
ts_status ts_builder_name(ts_builder *b, ts_step *step, const ts_op *op);

/* ---- steps: build.c ---- */
/* A step for an op, with its operands' storages read and fresh ones for its results, and room for `more` besides. */
ts_status ts_builder_start(ts_builder *b, ts_step_kind kind, const ts_op *op, uint32_t more, ts_step *out);
/* The two parts of that, at a position: of what op's operands are in, and where its results go. */
void ts_builder_read(ts_builder *b, const ts_op *op, int32_t position, ts_storage_id *out);
ts_status ts_builder_write(ts_builder *b, const ts_op *op, int32_t position, ts_storage_id *out);
/* Scratch memory for every thread; TS_NO_ID when the work takes none. */
ts_status ts_builder_scratch(ts_builder *b, int32_t position, const ts_work *work, ts_storage_id *out);
ts_status ts_builder_copy(ts_builder *b, ts_block *block, ts_storage_id from, ts_storage_id to, const ts_op *op);
ts_status ts_builder_region(ts_builder *b, ts_region_id id, ts_block *block);

/* ---- products: build_product.c ---- */
/* What is known of a product's kind, or is found out now. Valid until the next one is asked for. */
ts_status ts_builder_product(ts_builder *b, const ts_op *op, const ts_product_kind **out);
ts_status ts_builder_gemm(ts_builder *b, ts_block *block, const ts_op *op, const ts_product *product);
/* Makes the launch of op `id` the epilogue of a product that it reads, where it can be. */
ts_status ts_builder_try_epilogue(ts_builder *b, ts_block *block, ts_op_id id, bool *out_done);

/* ---- control: build_control.c ---- */
ts_status ts_builder_control(ts_builder *b, ts_block *block, ts_op_id id);
/* As one native function. */
ts_status ts_builder_whole(ts_builder *b, ts_block *block, ts_op_id id);

/* ---- assign.c ---- */
/* Merges storages where an op may work in place, numbers and places the executable's memory, and puts its numbers into
 * the steps. */
ts_status ts_assign(ts_builder *b);

/* Calls `visit` for every step, an outer one before those of its blocks. */
ts_status ts_block_walk(ts_block *block, ts_status (*visit)(void *context, ts_step *step), void *context);

#endif
