/* The inside of an executable: blocks of steps over pieces of memory. It is built once (build.c, assign.c), then
 * read-only; runs keep their own pointers (run.c). A program lives as long as a cache or a term refers to it, and the
 * next one is compiled into other memory, whose cache lines and pages are cold. So an executable keeps only the data
 * that a run reads, and each item once: equal ops share a ts_work or ts_routine_plan, equal types share an object. Data
 * that only the planner reads is in the builder (builder.h). Data of fixed size lives in the executable's arena;
 * kernels are references. */
#ifndef TS_EXEC_STEPS_H
#define TS_EXEC_STEPS_H

#include "base/alloc.h"
#include "base/parallel.h"
#include "exec/executable.h"
#include "exec/pace.h"
#include "exec/places.h"
#include "jit/lower/lower.h"
#include "kernel/routine.h"

/* The number of a piece of memory; a run has a pointer for each. Arguments come first, then constants, results that the
 * run makes, views, and temporaries (ts_memory_kind). */
typedef uint32_t ts_memory_id;

typedef enum ts_memory_kind {
  TS_MEMORY_ARG,    /* read-only */
  TS_MEMORY_CONST,  /* owned by the executable; read-only */
  TS_MEMORY_RESULT, /* a buffer that the run creates and returns */
  TS_MEMORY_VIEW,   /* a part of an argument or a constant; read-only */
  TS_MEMORY_TEMP    /* a range of the run's block, or of a result before the result's first write */
} ts_memory_kind;

/* The two plans of temporaries. HOSTED places some in the memory of results that are not yet written. BLOCK does not
 * use that memory: it is for runs whose results take a donated argument's memory. Such runs are rare, so BLOCK is
 * planned at the first of them. */
typedef enum ts_temps_plan { TS_TEMPS_HOSTED, TS_TEMPS_BLOCK } ts_temps_plan;

/* A temporary in TS_TEMPS_HOSTED. */
typedef struct ts_temp {
  int64_t offset;
  ts_memory_id host; /* the result in whose memory it is; TS_NO_ID: in the block */
} ts_temp;

/* A VIEW. */
typedef struct ts_view {
  int64_t offset;
  ts_memory_id of; /* the argument or constant */
} ts_view;

/* The live range of a temporary; TS_TEMPS_BLOCK is planned from these. */
typedef struct ts_lifetime {
  int64_t bytes;
  int32_t first, last; /* positions of the first write and the last use */
} ts_lifetime;

typedef enum ts_step_kind {
  TS_STEP_LAUNCH,  /* generated kernels */
  TS_STEP_ROUTINE, /* kernel/routine.h */
  TS_STEP_COPY,
  TS_STEP_WHILE,
  TS_STEP_COND,
  TS_STEP_CALLBACK,
  TS_STEP_COLLECTIVE, /* what partitions do together: step_collective.h */
  TS_STEP_WHOLE       /* control flow as one native function */
} ts_step_kind;

/* A launch's own kernel while a kernel of another program stands in for it. */
typedef struct ts_own_kernel {
  ts_hash128 hash; /* as ts_kernel_hash */
  ts_launch launch;
  int64_t tasks;
} ts_own_kernel;

typedef struct ts_step_launch {
  const ts_launch *launch;
  const ts_own_kernel *own; /* what explain shows in place of a stand-in; NULL without one */
  uint32_t kernel;          /* index in the executable's kernels; TS_NO_ID: it is a part of a native loop */
  int32_t words; /* where its arguments start in a run's words; launches of equal steps share them and differ in
                    addresses only */
  ts_kernel_fn entry;
  int64_t tasks, units_per_task;
  int64_t pieces, columns_per_piece; /* of each unit, when a task is a part of a long unit; else 1 */
  int64_t cost_ns;                   /* with its own kernel */
} ts_step_launch;

/* How many tasks the launch takes with its own kernel. */
static inline int64_t ts_step_own_tasks(const ts_step_launch *l) { return l->own ? l->own->tasks : l->tasks; }

/* The launches that compute an op, without the memory that they work on: equal ops share one. */
typedef struct ts_work {
  ts_lowered lowered;
  ts_step_launch *launches;
  int64_t cost_ns;
  int64_t scratch_bytes; /* workspace of each thread */
} ts_work;

typedef struct ts_block {
  TS_VEC(struct ts_step) steps;
  struct ts_block
      *next; /* next in the list of blocks to release, which replaces recursion: nesting may be deeper than the stack */
} ts_block;

/* A while step: its operands are the initial values, its results the loop variables. */
typedef struct ts_step_loop {
  ts_block condition, body;
  ts_memory_id condition_result;
  ts_memory_id *next; /* of an iteration's next values; equal to results[i] when updated in place */
  int64_t *bytes;     /* sizes of the loop variables */
} ts_step_loop;

/* A routine that a native loop calls. */
typedef struct ts_native_call {
  const struct ts_step *step;
  const uint32_t *slots; /* of each of the step's ids; TS_NO_ID: no memory */
  uint32_t count;
} ts_native_call;

/* A while that is one native function (jit/flow/flow.h). Its step keeps its blocks, which explain shows. */
typedef struct ts_native {
  ts_kernel_fn entry;
  uint32_t kernel;
  int32_t words; /* where its arguments start in a run's words */
  uint32_t slot_count;
  const ts_memory_id *slots; /* the memory of each slot */
  const ts_native_call *calls;
} ts_native;

/* Each op of a control flow op that is one native function, once, for profiles. */
enum { TS_MOST_OP_NAMES = 16 };
typedef struct ts_op_names {
  int count; /* TS_MOST_OP_NAMES + 1: there are more */
  ts_opcode seen[TS_MOST_OP_NAMES + 1];
} ts_op_names;

static inline void ts_op_names_add(ts_op_names *names, ts_opcode op) {
  for (int i = 0; i < names->count; i++)
    if (names->seen[i] == op) return;
  if (names->count <= TS_MOST_OP_NAMES) names->seen[names->count++] = op;
}

/* A callback; the caller of the run answers it. */
typedef struct ts_step_call {
  uint32_t index;
  const ts_type **types; /* types of operands, then of results */
} ts_step_call;

/* One cache line. */
typedef struct ts_step {
  uint8_t kind;  /* ts_step_kind */
  bool agrees;   /* WHILE, COND: it has collectives inside, so the partitions' predicates must be equal */
  uint16_t code; /* ts_opcode */
  int32_t position;
  uint32_t operand_count, result_count;
  ts_memory_id *ids;   /* of operands, then of results, then extra ones, which depend on the kind */
  const ts_type *type; /* of its first result, for explain and messages; NULL without one */
  int64_t cost_ns;
  union {
    ts_native *native;        /* WHILE: the function; NULL: it runs step by step */
    const ts_op_names *names; /* WHOLE */
  };
  union {
    const ts_work *work; /* LAUNCH; extra: the work's temporaries, the workspace */
    /* ROUTINE. The epilogue is one launch that reads the routine's result part by part, while each part is in cache.
     * The step's operands are the routine's, then the launch's; its results are the launch's. Extra: the workspace;
     * with an epilogue also the memory of the routine's result and the launch's workspace. */
    struct {
      const ts_routine_plan *plan;
      const ts_work *epilogue; /* NULL: none */
    } routine;
    int64_t copy_bytes;
    ts_step_loop *loop;       /* WHILE */
    const ts_step_call *call; /* CALLBACK */
    const struct ts_collective *collective;
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
static inline bool ts_step_has_epilogue(const ts_step *step) {
  return step->kind == TS_STEP_ROUTINE && step->routine.epilogue;
}
static inline bool ts_step_is_native(const ts_step *step) { return step->kind == TS_STEP_WHILE && step->native; }
/* ROUTINE: the first of the extra ids. */
static inline ts_memory_id ts_step_workspace(const ts_step *step) { return ts_step_besides(step)[0]; }
/* ROUTINE with an epilogue: the memory of the routine's own result, then the launch's workspace. */
static inline ts_memory_id *ts_step_inner(const ts_step *step) { return ts_step_besides(step) + 1; }

struct ts_executable {
  _Atomic uint32_t refs;
  ts_arena arena;
  size_t param_count, result_count;
  const ts_type **param_types, **result_types;
  uint32_t made_count, view_count, temp_count; /* numbers of RESULTs, of VIEWs and of TEMPs */
  ts_temp *temps;
  ts_view *views;
  ts_lifetime *lifetimes; /* live ranges of temporaries; NULL when no result has a donor */
  int64_t *block_offsets; /* offsets of temporaries in TS_TEMPS_BLOCK, once planned */
  int32_t *donors;        /* of each RESULT: the argument whose memory it may take when donated; -1 */
  TS_VEC(ts_buffer *) constants;
  ts_block root;
  ts_memory_id *results;  /* memory of each result */
  bool *moves;            /* of each result: whether it is the last one in its RESULT, which takes the buffer */
  TS_VEC(int64_t) words;  /* template of the argument words of all launches */
  int64_t block_bytes[2]; /* size of the block of temporaries in each of the two plans */
  bool has_donors;        /* some result may take an argument's memory */
  _Atomic bool has_block; /* TS_TEMPS_BLOCK is planned */
  bool is_short;
  bool calls_back;         /* some step is a CALLBACK */
  ts_mesh mesh;            /* the program's; partitions of one run the executable together */
  ts_opcode collective;    /* of the first COLLECTIVE; 0: there is none, and any partition runs by itself */
  ts_buffer **coordinates; /* of each partition, if mesh.coordinates makes the last parameter the coordinates */
  uint32_t levels;         /* depth of nested blocks */
  bool is_single;          /* ts_single_fits */
  bool has_natives;        /* among the steps of `root` */
  ts_pace *pace;           /* NULL: nothing is learned of its runs */
  _Atomic uint64_t number; /* for profiles, once one has seen it */
  _Atomic(ts_step_places *) places; /* of its steps; NULL: not recorded */
  ts_executable_stats stats;
  TS_VEC(ts_kernel *) kernels;     /* one reference each */
  TS_VEC(ts_routine_plan *) plans; /* in the arena, deinitialized with the executable */
};

/* ---- memory ---- */
static inline ts_memory_id ts_first_made(const ts_executable *exe) {
  return (ts_memory_id)(exe->param_count + exe->constants.count);
}
static inline ts_memory_id ts_first_view(const ts_executable *exe) { return ts_first_made(exe) + exe->made_count; }
static inline ts_memory_id ts_first_temp(const ts_executable *exe) { return ts_first_view(exe) + exe->view_count; }
static inline size_t ts_memory_count(const ts_executable *exe) { return (size_t)ts_first_temp(exe) + exe->temp_count; }

/* The kind of the memory, and its index among that kind. */
static inline ts_memory_kind ts_memory_kind_of(const ts_executable *exe, ts_memory_id id, uint32_t *out_index) {
  ts_memory_id first_const = (ts_memory_id)exe->param_count, made = ts_first_made(exe), temp = ts_first_temp(exe);
  ts_memory_id view = ts_first_view(exe);
  *out_index = id - (id >= temp ? temp : id >= view ? view : id >= made ? made : id >= first_const ? first_const : 0);
  return id >= temp          ? TS_MEMORY_TEMP
         : id >= view        ? TS_MEMORY_VIEW
         : id >= made        ? TS_MEMORY_RESULT
         : id >= first_const ? TS_MEMORY_CONST
                             : TS_MEMORY_ARG;
}

/* The routine, or the kind of step, as explain and profiles print it. */
const char *ts_step_name(const ts_step *step);
/* Releases the contents of a step, or of all steps of a block. */
void ts_step_deinit(ts_step *step);
void ts_block_deinit(ts_block *block);

/* ---- build.c ---- */
/* Fills an executable from a graph after the pipeline: steps, memory, kernels requested and fetched. */
ts_status ts_build(ts_executable *exe, const ts_graph *graph, const ts_compile_options *options);

/* ---- epilogue.c ---- */
/* True when the launch may become the epilogue of a routine of whose result `count` operands are exact views. */
bool ts_epilogue_fits(const ts_epilogue_space *space, const ts_launch *launch, const uint32_t *operands, size_t count);
/* For run.c: the step, and the launch's arguments with addresses. */
typedef struct ts_epilogue_run {
  const ts_step *step;
  const int64_t *words;
  char *scratch;
} ts_epilogue_run;
ts_epilogue ts_epilogue_start(ts_epilogue_run *run);

/* ---- tasks.c ---- */
/* Cuts a launch into tasks for threads; `point_cost_ps` is the estimated time of one point. */
void ts_tasks_plan(ts_step_launch *launch, int64_t point_cost_ps);
/* `words` are the launch's arguments; each thread uses its own `scratch_bytes` of `scratch`. Tasks that would begin
 * after a cancellation are skipped. */
void ts_tasks_run(const ts_step_launch *launch, const int64_t *words, char *scratch, int64_t scratch_bytes,
                  const ts_parallel *parallel, const _Atomic bool *cancel);

/* ---- trips.c ---- */
/* Estimated time of a while or cond that is compiled whole; INT64_MAX when its trip count is unknown. */
int64_t ts_whole_cost_ns(const ts_graph *graph, const ts_op *op);

/* ---- assign.c ---- */
/* Plans TS_TEMPS_BLOCK on its first use. Thread-safe; the rest of the executable does not change. */
ts_status ts_assign_block(ts_executable *exe);

/* ---- run.c ---- */
ts_status ts_executable_check_args(const ts_executable *exe, ts_buffer *const *args, size_t arg_count);
/* The memory that a launch's pointers refer to. */
typedef struct ts_launch_memory {
  const ts_memory_id *operands, *results, *temps;
} ts_launch_memory;
/* Writes addresses, from the base of each memory, into a launch's words. */
void ts_fill_addresses(void *const *base, const ts_launch_memory *of, const ts_launch *launch, int64_t *words);
/* The same into the launch's part of a run's `words`; returns that part. */
int64_t *ts_run_fill_words(void *const *base, int64_t *words, const ts_launch_memory *of, const ts_step_launch *l);

/* ---- single.c ---- */
/* True when the program is one launch on one thread, from arguments to one result, as most eager ops are. */
bool ts_single_fits(const ts_executable *exe);
/* `options` may be NULL. */
ts_status ts_single_run(const ts_executable *exe, ts_buffer *const *args, const ts_run_options *options,
                        ts_buffer **out);

/* At most INT64_MAX. */
static inline int64_t ts_capped_sum(int64_t a, int64_t b) {
  int64_t sum;
  return ts_add_i64(a, b, &sum) ? sum : INT64_MAX;
}

/* INT64_MAX: unknown. */
static inline int64_t ts_cost_add(int64_t a, int64_t b) { return ts_capped_sum(a, b); }

/* A program with tensors of more bytes than INT64_MAX compiles, and only its run has too little memory. */
static inline int64_t ts_sum_bytes(int64_t a, int64_t b) { return ts_capped_sum(a, b); }

#endif
