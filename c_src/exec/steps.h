/* The inside of an executable: blocks of steps over pieces of memory. Built once (build.c, assign.c), then read-only;
 * runs keep their own pointers (run.c). A program is kept for as long as somebody may call it, and the next one is
 * compiled into other memory, whose lines and pages are cold. So it keeps what a run reads, and that once: equal ops
 * share how they are done (ts_work, ts_product), equal types are one, and what only the plan needs goes with the
 * builder (builder.h). What does not grow on its own lives in the executable's arena; kernels and gemms are references.
 */
#ifndef TS_EXEC_STEPS_H
#define TS_EXEC_STEPS_H

#include "base/parallel.h"
#include "exec/executable.h"
#include "jit/lower.h"
#include "kernel/gemm.h"

/* A piece of memory, for which a run has a pointer. They are numbered: arguments, constants, results that the run
 * makes, temporaries (ts_memory_kind). */
typedef uint32_t ts_memory_id;

typedef enum ts_memory_kind {
  TS_MEMORY_ARG,    /* read-only */
  TS_MEMORY_CONST,  /* of the executable; read-only */
  TS_MEMORY_RESULT, /* a buffer that the run makes and returns */
  TS_MEMORY_TEMP    /* a range of the run's block, or of a result before that is written */
} ts_memory_kind;

enum { TS_IDLE_CONTEXTS = 16 };

/* Where temporaries lie. A result's memory is the run's to use until the result is written, but not
 * when it is a donated argument's: few programs are run so, and the layout for that is made when one is. */
typedef enum ts_layout { TS_LAYOUT_HOSTED, TS_LAYOUT_BLOCK } ts_layout;

/* TS_LAYOUT_HOSTED. */
typedef struct ts_temp {
  int64_t offset;
  ts_memory_id host; /* the result in whose memory it is; TS_NO_ID: it is in the block */
} ts_temp;

/* What TS_LAYOUT_BLOCK is made from. */
typedef struct ts_lifetime {
  int64_t bytes;
  int32_t first, last; /* positions of the first write and the last use */
} ts_lifetime;

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
  int32_t words;   /* where its arguments start in a run's words: equal steps have the same but for addresses */
  ts_kernel_fn entry;
  int64_t tasks, units_per_task;
  int64_t pieces, columns_per_piece; /* of each unit, where units are so long that a task is a piece of some; else 1 */
  int64_t cost_ns;
} ts_step_launch;

/* Launches in a row that do an op, whatever they are done to: equal ops share one. */
typedef struct ts_work {
  ts_lowered lowered;
  ts_step_launch *launches;
  int64_t cost_ns;
  int64_t scratch_bytes; /* for each thread */
} ts_work;

/* Products of one kind, that is of equal attributes and types, share one. */
typedef struct ts_product {
  ts_gemm_shape shape;
  ts_gemm *gemm; /* one of the executable's */
  int64_t cost_ns;
  ts_dtype dtype;
} ts_product;

enum { TS_PRODUCT_OPERANDS = 2 };

typedef struct ts_block {
  TS_VEC(struct ts_step) steps;
} ts_block;

/* What is run again and again: the operands are the initial values, the results the carried ones. */
typedef struct ts_step_loop {
  ts_block condition, body;
  ts_memory_id condition_result;
  ts_memory_id *next; /* what an iteration leaves; equal to results[i] when done in place */
  int64_t *bytes;     /* of the carried values */
} ts_step_loop;

/* A cache line. */
typedef struct ts_step {
  uint8_t kind;  /* ts_step_kind */
  uint8_t dtype; /* SCAN: of the operand */
  uint16_t code; /* ts_opcode */
  int32_t position;
  uint32_t operand_count, result_count;
  ts_memory_id *ids;   /* of operands, then of results, then of what it needs besides: see the kinds */
  const ts_type *type; /* of its first result, for people; NULL: there is none */
  int64_t cost_ns;
  union {
    const ts_work *work; /* LAUNCH; besides: the temporaries of the work, the scratch */
    /* GEMM. What is done with each part of the product while it is in cache is the epilogue: one launch, which reads
     * the product in order. The step's operands are those of the product, then those of the launch; its results are the
     * launch's. Besides: the product's memory, the launch's scratch. */
    struct {
      const ts_product *product;
      const ts_work *epilogue; /* NULL: none, and nothing besides */
    } gemm;
    struct {
      const ts_shape *shape;
      int32_t axis;
      bool reverse;
    } scan;
    ts_graph *reference;
    int64_t copy_bytes;
    ts_step_loop *loop; /* WHILE */
    ts_block *branches; /* COND: two, the true one first; operand 0 is the predicate */
    struct {
      ts_kernel_fn entry;
      uint32_t kernel;
      int32_t words;
    } whole;
  };
} ts_step;

_Static_assert(sizeof(ts_step) <= 64, "a program has one or two for each op");

static inline ts_memory_id *ts_step_results(const ts_step *step) { return step->ids + step->operand_count; }
static inline ts_memory_id *ts_step_besides(const ts_step *step) { return ts_step_results(step) + step->result_count; }

struct ts_executable {
  _Atomic uint32_t refs;
  ts_arena arena;
  size_t param_count, result_count;
  const ts_type **param_types, **result_types;
  uint32_t made_count, temp_count; /* RESULTs, and TEMPs */
  ts_temp *temps;
  ts_lifetime *lifetimes; /* of temporaries; NULL when there are no donors */
  int64_t *block_offsets; /* of temporaries, once there is TS_LAYOUT_BLOCK */
  int32_t *donors;        /* of each RESULT: the argument whose memory it may take when donated; -1 */
  TS_VEC(ts_buffer *) constants;
  ts_block root;
  ts_memory_id *results;  /* one for each result */
  bool *moves;            /* of each result: whether it is the last that its RESULT memory's buffer serves */
  TS_VEC(int64_t) words;  /* template of all launches' arguments */
  int64_t block_bytes[2]; /* by layout */
  bool has_donors;        /* some result may take an argument's memory */
  _Atomic bool has_block; /* TS_LAYOUT_BLOCK is there */
  bool is_short;
  bool is_single; /* see ts_single_fits */
  ts_executable_stats stats;
  TS_VEC(ts_kernel *) kernels; /* one reference each */
  TS_VEC(ts_gemm *) gemms;     /* one for each kind of product */
  /* Contexts of finished runs, for the next ones: a thread looks at one place only, which few others do. */
  struct {
    struct ts_run *_Atomic run;
    char apart[64 - sizeof(void *)];
  } idle[TS_IDLE_CONTEXTS];
};

/* ---- memory ---- */
static inline ts_memory_id ts_first_made(const ts_executable *exe) {
  return (ts_memory_id)(exe->param_count + exe->constants.count);
}
static inline ts_memory_id ts_first_temp(const ts_executable *exe) { return ts_first_made(exe) + exe->made_count; }
static inline size_t ts_memory_count(const ts_executable *exe) { return (size_t)ts_first_temp(exe) + exe->temp_count; }

/* What it is, and which of its kind. */
static inline ts_memory_kind ts_memory_kind_of(const ts_executable *exe, ts_memory_id id, uint32_t *out_index) {
  ts_memory_id first_const = (ts_memory_id)exe->param_count, made = ts_first_made(exe), temp = ts_first_temp(exe);
  *out_index = id - (id >= temp ? temp : id >= made ? made : id >= first_const ? first_const : 0);
  return id >= temp          ? TS_MEMORY_TEMP
         : id >= made        ? TS_MEMORY_RESULT
         : id >= first_const ? TS_MEMORY_CONST
                             : TS_MEMORY_ARG;
}

/* Releases what a step, or all steps of a block, hold. */
void ts_step_deinit(ts_step *step);
void ts_block_deinit(ts_block *block);

/* ---- build.c ---- */
/* Fills an executable from a graph after the pipeline: steps, memory, kernels requested and fetched. */
ts_status ts_build(ts_executable *exe, const ts_graph *graph, const ts_compile_options *options);

/* ---- epilogue.c ---- */
/* True when the launch may become the epilogue of a product that is `count` operands of it, as it lies. */
bool ts_epilogue_fits(const ts_product *product, const ts_launch *launch, const uint32_t *operands, size_t count);
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
/* Plans TS_LAYOUT_BLOCK, if nobody has. From any thread; the rest of the executable does not change. */
ts_status ts_assign_block(ts_executable *exe);

/* ---- run.c ---- */
/* The memory that a launch's pointers speak of. */
typedef struct ts_places {
  const ts_memory_id *operands, *results, *temps;
} ts_places;
/* Puts addresses into a copy of the executable's words, from the base of each memory. Gives the launch's words. */
int64_t *ts_run_fill_words(void *const *base, int64_t *words, const ts_places *of, const ts_step_launch *l);
void ts_run_contexts_free(ts_executable *exe);

/* ---- single.c ---- */
/* Whether a program is one launch by one thread, from arguments to one result, as most eager ops are. */
bool ts_single_fits(const ts_executable *exe);
ts_status ts_single_run(const ts_executable *exe, ts_buffer *const *args, ts_pool *pool, ts_buffer **out);

#endif
