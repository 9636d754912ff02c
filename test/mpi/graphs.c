/* Random sharded programs on the ranks of mpirun give the bits that one process gives: graphs LIBRARY PARTITIONS FIRST
 * COUNT. Every rank makes the same programs and arguments, runs its partitions with the others and all partitions by
 * itself, and compares. A rank that finds a difference aborts, which ends all. */
#include "exec/executable.h"
#include "group/group.h"
#include "kernel/ref/ref.h"
#include "open.h"
#include "shard/shard.h"
#include "shard_run.h"
#include "tool/compare.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static ts_carrier *carrier;
static const ts_mpi_library *library;

static const ts_mesh of_12[] = {{.rank = 1, .sizes = {12}},
                                {.rank = 2, .sizes = {3, 4}},
                                {.rank = 2, .sizes = {6, 2}},
                                {.rank = 3, .sizes = {2, 3, 2}}};
static const ts_mesh of_8[] = {{.rank = 1, .sizes = {8}},
                               {.rank = 2, .sizes = {2, 4}},
                               {.rank = 2, .sizes = {4, 2}},
                               {.rank = 4, .sizes = {2, 1, 2, 2}}};

static const ts_mesh of_72[] = {{.rank = 1, .sizes = {72}},
                                {.rank = 2, .sizes = {8, 9}},
                                {.rank = 2, .sizes = {9, 8}},
                                {.rank = 3, .sizes = {2, 18, 2}}};

static int64_t collectives; /* in all programs */

/* Open MPI calls this while a rank waits in the start or the end (mpi_yield_when_idle in run.sh). The rank sleeps: a
 * rank that yields can keep other processes from running for seconds (docs/cluster.md). A rank that does neither keeps
 * its CPU for a whole slice of time, and 72 ranks took 50 seconds of CPUs. */
__attribute__((visibility("default"))) int sched_yield(void);
int sched_yield(void) { return nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); }

/* Aborts with the seed's number. */
static void check_ok(uint64_t seed, ts_status status) {
  if (!status) return;
  fprintf(stderr, "rank %d: seed %llu: %s\n", carrier->rank, (unsigned long long)seed, ts_status_message(status));
  abort();
}

/* ---- running ---- */

typedef struct waiter {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool is_ready;
} waiter;

static void set_ready(void *context) {
  waiter *w = context;
  pthread_mutex_lock(&w->lock);
  w->is_ready = true;
  pthread_cond_signal(&w->wake);
  pthread_mutex_unlock(&w->lock);
}

static void wait_ready(waiter *w) {
  pthread_mutex_lock(&w->lock);
  while (!w->is_ready) pthread_cond_wait(&w->wake, &w->lock);
  w->is_ready = false;
  pthread_mutex_unlock(&w->lock);
}

/* The arguments and results of the partitions that run here: of one rank, or without a carrier all. */
static ts_status run_group(const ts_executable *exe, ts_buffer **args, size_t each, ts_carrier *across, uint64_t run,
                           ts_buffer **results) {
  waiter w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
  ts_run_state state = TS_RUN_PAUSED;
  ts_group_options options = {.carrier = across, .run = run, .threads = 1, .ready = set_ready, .context = &w};
  ts_group *group;
  TS_TRY(ts_group_create(exe, args, each, &options, &group));
  while (state != TS_RUN_DONE) {
    ts_status status = ts_group_advance(group, &state);
    if (status) {
      ts_status_free(ts_group_end(group, NULL));
      return status;
    }
    if (state == TS_RUN_WAITING) wait_ready(&w);
  }
  return ts_group_end(group, results);
}

/* ---- programs ---- */

typedef struct program {
  uint64_t seed;
  ts_graph *partitioned;
  ts_executable *exe;
  tensors args; /* of all partitions */
  size_t args_each, results_each;
  int32_t partitions;
} program;

static void make(uint64_t seed, const ts_mesh *meshes, program *out) {
  ts_graph *whole;
  tensors args = {0};
  *out = (program){.seed = seed, .partitions = ts_mesh_partitions(meshes)};
  check_ok(seed, random_sharded_graph(seed, &(ts_random_options){.steps = 8, .max_elements = 2048}, meshes, 4, &whole));
  check_ok(seed, ts_shard_partition(whole, NULL, NULL, &out->partitioned));
  args.count = out->args_each = ts_graph_region(whole, TS_ROOT)->params.count;
  check_ok(seed, ts_random_args(seed, whole, ts_pool_default(), &args.data));
  check_ok(seed, tensors_cut(out->partitioned, &args, &out->args));
  check_ok(seed, ts_executable_create(out->partitioned, NULL, &out->exe));
  out->results_each = ts_executable_result_count(out->exe);
  CHECK(ts_executable_partitions(out->exe) == out->partitions);
  tensors_release(&args);
  ts_graph_destroy(whole);
}

static void count_collectives(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++)
    collectives += ts_op_get_class(graph->ops.data[i].code) == TS_CLASS_COLLECTIVE;
}

static void free_program(program *p) {
  tensors_release(&p->args);
  ts_executable_release(p->exe);
  ts_graph_destroy(p->partitioned);
}

/* The partitions of this rank: in one process with all others, and across ranks. */
static void compare(const program *p) {
  tensors here = {0}, across = {0};
  char message[TS_COMPARE_TEXT];
  size_t count = (size_t)(p->partitions / carrier->ranks), first = (size_t)carrier->rank * count;
  check_ok(p->seed, tensors_make((size_t)p->partitions * p->results_each, &here));
  check_ok(p->seed, tensors_make(count * p->results_each, &across));
  check_ok(p->seed, run_group(p->exe, p->args.data, p->args_each, NULL, p->seed, here.data));
  check_ok(p->seed,
           run_group(p->exe, p->args.data + first * p->args_each, p->args_each, carrier, p->seed, across.data));
  for (size_t i = 0; i < across.count; i++)
    if (!ts_compare_buffers(across.data[i], here.data[first * p->results_each + i], 0, message))
      check_ok(p->seed, ts_error(TS_INTERNAL, "result %zu of partition %zu: %s", i % p->results_each,
                                 first + i / p->results_each, message));
  tensors_release(&here);
  tensors_release(&across);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  ts_status status = test_open_carrier(argv[1], 0, 1, &library, &carrier);
  if (status) {
    fprintf(stderr, "%s\n", ts_status_message(status));
    return 1;
  }
  int partitions = atoi(argv[2]);
  const ts_mesh *meshes = partitions == 8 ? of_8 : partitions == 72 ? of_72 : of_12;
  uint64_t first = strtoull(argv[3], NULL, 10), count = strtoull(argv[4], NULL, 10);
  for (uint64_t seed = first; seed < first + count; seed++) {
    program p;
    make(seed, meshes, &p);
    compare(&p);
    count_collectives(p.partitioned);
    free_program(&p);
  }
  CHECK(collectives > 0 || count < 10);
  CHECK(ts_status_consume_ok(library->close(carrier, 20000000000)));
  if (carrier->rank == 0)
    printf("%llu programs on %d ranks: ok, %lld collectives\n", (unsigned long long)count, carrier->ranks,
           (long long)collectives);
  fflush(stdout);
  _exit(0);
}
