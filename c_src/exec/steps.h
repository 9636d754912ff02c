/* The inside of an executable: blocks of steps over storages. Built once
 * (build.c, assign.c), then read-only; runs keep their own pointers (run.c).
 * Everything lives in the executable's arena; kernels and gemms are references. */
#ifndef TS_EXEC_STEPS_H
#define TS_EXEC_STEPS_H

#include "base/parallel.h"
#include "exec/executable.h"
#include "jit/lower.h"
#include "kernel/gemm.h"

typedef uint32_t ts_storage_id;

enum { TS_IDLE_CONTEXTS = 16 };

typedef enum ts_storage_kind {
  TS_STORAGE_TEMP,   /* a range of the run's block */
  TS_STORAGE_ARG,    /* argument `index`; read-only */
  TS_STORAGE_RESULT, /* a buffer that the run makes and returns */
  TS_STORAGE_CONST   /* constant `index` of the executable; read-only */
} ts_storage_kind;

/* A cache line: a program has a few for each op. */
typedef struct ts_storage {
  int64_t bytes;
  int64_t offset[2];    /* TEMP: in the block, by layout */
  int32_t first, last;  /* positions of the first write and the last use */
  ts_storage_id merged; /* itself, or the storage whose memory it shares */
  ts_storage_id host;   /* TEMP in LAYOUT_HOSTED: the RESULT whose memory it is in before that is written, or itself */
  uint32_t index;
  int32_t donor;        /* RESULT: argument whose memory it may take when donated; -1 */
  int32_t loop;         /* position of the while that carries it, -1 when none does */
  uint32_t loop_index;  /* which of the carried values it is, for `carried` and `next` */
  int32_t last_in_loop; /* carried: last use inside the loop's regions */
  uint8_t kind;         /* ts_storage_kind */
  bool carried;         /* holds the loop's value during an iteration */
  bool next;            /* receives the next iteration's value */
  bool given;           /* ARG: it is the donor of a result */
} ts_storage;

/* Where temporaries lie. A result's memory is the run's to use until the result is written, but not
 * when it is a donated argument's: few programs are run so, and the layout for that is made when one is. */
typedef enum ts_layout { TS_LAYOUT_HOSTED, TS_LAYOUT_BLOCK } ts_layout;

typedef enum ts_step_kind {
  TS_STEP_LAUNCH, /* generated kernels */
  TS_STEP_GEMM,
  TS_STEP_SCAN,
  TS_STEP_REFERENCE, /* the interpreter, for what nothing else can do */
  TS_STEP_COPY,
  TS_STEP_WHILE,
  TS_STEP_COND,
  TS_STEP_WHOLE /* control flow as one native function */
} ts_step_kind;

typedef struct ts_step_launch {
  const ts_launch *launch;
  uint32_t kernel; /* in the executable's kernels */
  ts_kernel_fn entry;
  int32_t words; /* where its arguments start in a run's words */
  int64_t tasks, units_per_task;
  int64_t pieces, columns_per_piece; /* of each unit, where units are so long that a task is a piece of some; else 1 */
  int64_t cost_ns;
} ts_step_launch;

/* What a product's step does with each part of the product while it is in cache: one launch, which reads the
 * product in order. The step's operands are those of the product, then those of the launch; its results are the
 * launch's. */
typedef struct ts_step_epilogue {
  ts_op_id op;
  const ts_lowered *lowered;
  ts_step_launch launch;
  ts_storage_id product, scratch; /* scratch: one piece of scratch_bytes for each thread */
  int64_t scratch_bytes;
} ts_step_epilogue;

enum { TS_PRODUCT_OPERANDS = 2 };

typedef struct ts_block {
  TS_VEC(struct ts_step) steps;
} ts_block;

typedef struct ts_step {
  ts_step_kind kind;
  ts_op_id op; /* of the graph, while it is built */
  ts_opcode code;
  const ts_type *type; /* of its first result, for people, with as many dims as it has; NULL: there is none */
  int32_t position;
  uint32_t operand_count, result_count;
  ts_storage_id *operands, *results;
  int64_t cost_ns;
  union {
    struct {
      const ts_lowered *lowered;
      ts_step_launch *launches;
      ts_storage_id *temps;
      ts_storage_id scratch; /* one piece of scratch_bytes for each thread */
      int64_t scratch_bytes;
    } launch;
    struct {
      const ts_gemm *gemm; /* one of the executable's */
      const ts_gemm_shape *shape;
      ts_dtype dtype;
      ts_step_epilogue *epilogue; /* NULL: none */
    } gemm;
    struct {
      ts_dtype dtype;
      const ts_shape *shape;
      int32_t axis;
      bool reverse;
    } scan;
    struct {
      ts_graph *graph;
    } reference;
    struct {
      int64_t bytes;
    } copy;
    struct { /* operands: the initial values; results: the carried storages */
      ts_block condition, body;
      ts_storage_id condition_result;
      ts_storage_id *next; /* what an iteration leaves; equal to results[i] when done in place */
    } loop;
    struct {
      ts_block branches[2];
    } cond; /* operands[0] is the predicate; [0] is the true one */
    struct {
      uint32_t kernel;
      ts_kernel_fn entry;
      int32_t words;
    } whole;
  };
} ts_step;

struct ts_executable {
  _Atomic uint32_t refs;
  ts_arena arena;
  ts_graph *graph; /* after the pipeline; NULL when all is built: nothing points into it */
  size_t param_count, result_count;
  ts_type *param_types, *result_types;
  TS_VEC(ts_storage) storages;
  TS_VEC(ts_buffer *) constants;
  ts_block root;
  ts_storage_id *param_storages;  /* one for each parameter */
  ts_storage_id *result_storages; /* root after merging, one for each result */
  bool *moves;                    /* of each result: whether it is the last that its RESULT storage's buffer serves */
  TS_VEC(int64_t) words;          /* template of all launches' arguments */
  int32_t positions;
  int32_t result_buffers; /* how many RESULT storages there are */
  int64_t block_bytes[2]; /* by layout */
  bool has_donors;        /* some result may take an argument's memory */
  _Atomic bool has_block; /* TS_LAYOUT_BLOCK is there */
  bool is_short;
  bool is_single; /* see ts_run_is_single */
  ts_executable_stats stats;
  TS_VEC(ts_kernel *) kernels; /* one reference each */
  TS_VEC(ts_gemm *) gemms;     /* one for each kind of product */
  /* Contexts of finished runs, for the next ones: a thread looks at one place only, which few others do. */
  struct {
    struct ts_run *_Atomic run;
    char apart[64 - sizeof(void *)];
  } idle[TS_IDLE_CONTEXTS];
};

/* Releases what a step, or all steps of a block, hold. */
void ts_step_deinit(ts_step *step);
void ts_block_deinit(ts_block *block);

/* ---- build.c ---- */
/* Fills an executable whose graph is set: storages, steps, kernels requested and fetched. */
ts_status ts_build(ts_executable *exe, const ts_compile_options *options);
/* Calls `visit` for every step, an outer one before those of its blocks. */
ts_status ts_block_walk(ts_block *block, ts_status (*visit)(void *context, ts_step *step), void *context);
/* The storage that holds a storage's memory. */
static inline ts_storage_id ts_storage_find(const ts_executable *exe, ts_storage_id id) {
  while (exe->storages.data[id].merged != id) id = exe->storages.data[id].merged;
  return id;
}

/* ---- epilogue.c ---- */
/* True when the launch may become the epilogue of a product that is `count` operands of it, as it lies. */
bool ts_epilogue_fits(const ts_step *product, const ts_launch *launch, const uint32_t *operands, size_t count);
/* For run.c: where it is run, and its arguments with their addresses filled in. */
typedef struct ts_epilogue_run {
  const ts_step *step;
  const int64_t *words;
  char *scratch;
} ts_epilogue_run;
ts_gemm_epilogue ts_epilogue_start(ts_epilogue_run *run);

/* ---- tasks.c ---- */
/* Cuts a launch, of the given time for a point, into tasks for threads. */
void ts_tasks_plan(ts_step_launch *launch, int64_t point_cost_ps);
/* `words` are the launch's arguments; each thread has its `scratch_bytes` of `scratch`. What begins after a
 * cancelling is left out. */
void ts_tasks_run(const ts_step_launch *launch, const int64_t *words, char *scratch, int64_t scratch_bytes,
                  const ts_parallel *parallel, const _Atomic bool *cancel);

/* ---- trips.c ---- */
/* Time of a while or cond that is compiled whole; INT64_MAX when nobody can tell. */
int64_t ts_whole_cost_ns(const ts_graph *graph, const ts_op *op);

/* ---- assign.c ---- */
/* Merges storages where an op may work in place, then plans offsets and donors. */
ts_status ts_assign(ts_executable *exe);
/* Plans TS_LAYOUT_BLOCK, if nobody has. From any thread; the rest of the executable does not change. */
ts_status ts_assign_block(ts_executable *exe);

/* ---- run.c ---- */
/* Whether there is nothing to a run but one launch, by one thread, from arguments to one result: most eager ops. */
bool ts_run_is_single(const ts_executable *exe);
void ts_run_contexts_free(ts_executable *exe);

#endif
