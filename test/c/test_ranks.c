/* Groups of several ranks: as many groups of this process, with a carrier that copies. A mesh of 8 gives the same bits
 * with any number of ranks; failures of one rank reach all; nothing hangs or leaks. */
#include "base/system.h"
#include "comm/mpi.h"
#include "group/group.h"
#include "group/shares.h"
#include "kernel/ref/ref.h"
#include "random_graph.h"
#include "shard_run.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include <pthread.h>
#include <unistd.h>

enum { RANKS = 8, MOST_RANKS = 4096 };

/* ---- the carrier ---- */

/* Parts of all pairs are 2 MB on their way at most, and no smaller than messages that cost little. */
START_TEST(parts_shrink_with_pairs)
{
  ck_assert_int_eq(ts_mpi_part_bytes(1, 1), 1 << 18);
  ck_assert_int_eq(ts_mpi_part_bytes(2, 2), 1 << 18);
  ck_assert_int_eq(ts_mpi_part_bytes(2, 3), 1 << 17);
  ck_assert_int_eq(ts_mpi_part_bytes(8, 8), 1 << 14);
  ck_assert_int_eq(ts_mpi_part_bytes(64, 192), 1 << 13);
  for (int32_t here = 1; here < 64; here++)
    for (int32_t elsewhere = 1; elsewhere + here <= MOST_RANKS; elsewhere++) {
      const int64_t part = ts_mpi_part_bytes(here, elsewhere);
      ck_assert(part == 8192 || part * 2 * here * elsewhere <= 2 << 20);
      ck_assert(part == 1 << 18 || part * 2 * here * elsewhere > 1 << 20);
    }
}
END_TEST

/* An exchange of a run: it is complete when all ranks have posted. */
typedef struct network {
  pthread_mutex_t lock;
  int32_t ranks, lost; /* lost: the rank whose next exchange is dropped; -1 */
  int32_t waiting;     /* exchanges that were posted */
  ts_exchange *posted[MOST_RANKS];
  ts_carrier_header headers[MOST_RANKS];
  ts_carrier carriers[MOST_RANKS];
  int32_t hosts[MOST_RANKS];
  int64_t exchanges, blocks, bytes, bytes_between_hosts;
  bool broken;
} network;

static const ts_carrier_block *find_block(const ts_exchange *x, int32_t to) {
  int32_t low = 0, high = x->send_count;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (x->sends[middle].rank < to)
      low = middle + 1;
    else
      high = middle;
  }
  return low < x->send_count && x->sends[low].rank == to ? &x->sends[low] : NULL;
}

/* Copies the blocks that one rank gets. */
static void deliver(network *n, ts_exchange *const *all, int32_t to) {
  const ts_exchange *x = all[to];
  for (int32_t i = 0; i < x->receive_count; i++) {
    const ts_carrier_block *b = &x->receives[i], *sent = find_block(all[b->rank], to);
    ck_assert(b->bytes > 0 && b->rank != to && (i == 0 || b->rank > b[-1].rank));
    ck_assert_msg(sent && sent->bytes == b->bytes, "rank %d wants %lld bytes of rank %d", to, (long long)b->bytes,
                  b->rank);
    memcpy(x->receive + b->at, all[b->rank]->send + sent->at, (size_t)b->bytes);
    n->bytes += b->bytes;
    if (n->hosts[b->rank] != n->hosts[to]) n->bytes_between_hosts += b->bytes;
  }
  n->blocks += x->receive_count - x->send_count; /* in the end, each block that was sent was wanted */
}

/* Takes all exchanges if they are complete. The lock is held. */
static bool take_complete(network *n, ts_exchange **out) {
  if (n->waiting < n->ranks) return false;
  memcpy(out, n->posted, (size_t)n->ranks * sizeof *out);
  memset(n->posted, 0, (size_t)n->ranks * sizeof *out);
  n->waiting = 0;
  for (int32_t r = 0; r < n->ranks; r++) n->headers[r] = out[r]->header;
  for (int32_t r = 0; r < n->ranks; r++) out[r]->headers = n->headers;
  for (int32_t r = 0; ts_carrier_agrees(n->headers, n->ranks) && r < n->ranks; r++) deliver(n, out, r);
  ck_assert_int_eq(n->blocks, 0);
  n->exchanges++;
  return true;
}

static void post(ts_carrier *self, ts_exchange *x, int64_t help_ns) {
  (void)help_ns;
  network *n = self->context;
  ts_exchange *all[MOST_RANKS];
  pthread_mutex_lock(&n->lock);
  bool broken = n->broken;
  if (!broken) {
    n->waiting++;
    n->posted[self->rank] = x;
  }
  bool complete = !broken && n->lost != self->rank && take_complete(n, all);
  pthread_mutex_unlock(&n->lock);
  if (broken) x->done(x, ts_error(TS_INTERNAL, "the job is broken"));
  for (int32_t r = 0; complete && r < n->ranks; r++) all[r]->done(all[r], TS_SUCCESS);
}

/* Ends exchanges that have passed their deadline. */
static void expire(network *n) {
  ts_exchange *late[MOST_RANKS] = {NULL};
  int64_t now = ts_system_ns();
  pthread_mutex_lock(&n->lock);
  for (int32_t r = 0; r < n->ranks; r++)
    if (n->posted[r] && now >= n->posted[r]->deadline_ns) n->broken = true;
  if (n->broken) {
    memcpy(late, n->posted, sizeof late);
    memset(n->posted, 0, sizeof n->posted);
    n->waiting = 0;
  }
  pthread_mutex_unlock(&n->lock);
  for (int32_t r = 0; r < n->ranks; r++)
    if (late[r]) late[r]->done(late[r], ts_error(TS_INTERNAL, "rank %d did not answer in time", n->lost));
}

/* With so many ranks on each host; 0: hosts are not known. */
static void open_network(network *n, int32_t ranks, int32_t per_host) {
  memset(n, 0, sizeof *n);
  n->ranks = ranks;
  n->lost = -1;
  pthread_mutex_init(&n->lock, NULL);
  for (int32_t r = 0; r < ranks; r++) {
    n->hosts[r] = per_host ? r / per_host * per_host : 0;
    n->carriers[r] =
        (ts_carrier){.rank = r, .ranks = ranks, .hosts = per_host ? n->hosts : NULL, .post = post, .context = n};
  }
}

/* No exchange is left when all groups have ended. */
static void close_network(network *n) {
  for (int32_t r = 0; r < n->ranks; r++) ck_assert_ptr_null(n->posted[r]);
  pthread_mutex_destroy(&n->lock);
}

/* ---- ranks in turn ---- */

typedef struct job {
  network net;
  const ts_executable *exe;
  ts_group *groups[MOST_RANKS];
  ts_status failed[MOST_RANKS];
  ts_run_state states[MOST_RANKS];
  ts_run_control controls[MOST_RANKS];
  tensors results;
  size_t args_each, results_each; /* of a partition */
  int32_t partitions, each;       /* partitions of a rank */
  int64_t timeout_ns, meet_ns;
  const char *refusals[MOST_RANKS], *names[MOST_RANKS];
  uint64_t programs[MOST_RANKS];
} job;

static void open_job_on(job *j, const ts_executable *exe, int32_t ranks, int32_t per_host) {
  memset(j, 0, sizeof *j);
  j->exe = exe;
  j->partitions = ts_executable_partitions(exe);
  open_network(&j->net, ranks, per_host);
  j->each = j->partitions / ranks;
  j->results_each = ts_executable_result_count(exe);
  ck_assert_ok(tensors_make(j->results_each * (size_t)j->partitions, &j->results));
}

static void open_job(job *j, const ts_executable *exe, int32_t ranks) { open_job_on(j, exe, ranks, 0); }

static void create(job *j, const tensors *args, int32_t rank) {
  size_t args_each = args->count / (size_t)j->partitions;
  ts_group_options options = {.control = &j->controls[rank],
                              .carrier = &j->net.carriers[rank],
                              .run = 7,
                              .threads = 1,
                              .timeout_ns = j->timeout_ns,
                              .meet_ns = j->meet_ns,
                              .program = j->programs[rank],
                              .name = j->names[rank]};
  if (j->refusals[rank]) {
    j->failed[rank] = ts_error(TS_RESOURCE_EXHAUSTED, "%s", j->refusals[rank]);
    ck_assert_ok(ts_group_refuse(&j->net.carriers[rank], 7, j->failed[rank]));
    return;
  }
  j->failed[rank] =
      ts_group_create(j->exe, args->data + (size_t)(rank * j->each) * args_each, args_each, &options, &j->groups[rank]);
}

static bool is_over(const job *j, int32_t rank) { return !j->groups[rank]; }

static void step(job *j, int32_t rank) {
  if (is_over(j, rank)) return;
  j->failed[rank] = ts_group_advance(j->groups[rank], &j->states[rank]);
  if (!j->failed[rank] && j->states[rank] != TS_RUN_DONE) return;
  ts_buffer **out = j->results.data + (size_t)(rank * j->each) * j->results_each;
  ts_status ended = ts_group_end(j->groups[rank], j->failed[rank] ? NULL : out);
  if (!j->failed[rank]) j->failed[rank] = ended;
  j->groups[rank] = NULL;
}

/* Steps the ranks in turn until all have ended. */
static void run_job(job *j) {
  for (int rounds = 0;; rounds++) {
    bool over = true;
    for (int32_t r = 0; r < j->net.ranks; r++) {
      step(j, r);
      over &= is_over(j, r);
    }
    if (over) return;
    expire(&j->net);
    if (rounds > 1000) usleep(100); /* for a deadline */
    ck_assert_int_lt(rounds, 100000);
  }
}

static void close_job(job *j) {
  for (int32_t r = 0; r < j->net.ranks; r++) {
    ts_group_end(j->groups[r], NULL);
    ts_status_free(j->failed[r]);
  }
  tensors_release(&j->results);
  close_network(&j->net);
}

/* ---- equal bits ---- */

static void make_args(const ts_graph *graph, tensors *out) {
  size_t each = ts_graph_region(graph, TS_ROOT)->params.count - (graph->mesh.coordinates ? 1 : 0);
  size_t partitions = (size_t)ts_mesh_partitions(&graph->mesh);
  ck_assert_ok(tensors_make(each * partitions, out));
  for (size_t p = 0; p < partitions; p++) {
    ts_buffer **args;
    size_t all = ts_graph_region(graph, TS_ROOT)->params.count;
    ck_assert_ok(ts_random_args(5 + p, graph, ts_pool_default(), &args));
    memcpy(out->data + p * each, args, each * sizeof *args);
    for (size_t i = each; i < all; i++) ts_buffer_release(args[i]);
    ts_free(args);
  }
}

static void check_ranks(const ts_executable *exe, const tensors *args, const tensors *expected,
                        const int32_t ranks_and_per_host[2]) {
  const int32_t ranks = ranks_and_per_host[0];
  char message[TS_COMPARE_TEXT];
  static job j;
  open_job_on(&j, exe, ranks, ranks_and_per_host[1]);
  for (int32_t r = 0; r < ranks; r++) create(&j, args, r);
  run_job(&j);
  for (int32_t r = 0; r < ranks; r++) ck_assert_ok(j.failed[r]);
  for (size_t i = 0; i < expected->count; i++)
    ck_assert_msg(ts_compare_buffers(j.results.data[i], expected->data[i], 0, message), "%d ranks, result %zu: %s",
                  ranks, i, message);
  close_job(&j);
}

static void check_text(const char *text) {
  tensors args = {0}, expected = {0};
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  size_t partitions = (size_t)ts_mesh_partitions(&graph->mesh);
  make_args(graph, &args);
  ck_assert_ok(tensors_make(ts_graph_region(graph, TS_ROOT)->results.count * partitions, &expected));
  ck_assert_ok(ts_ref_run_partitions(graph, args.data, args.count / partitions, ts_pool_default(), expected.data));
  ts_executable *exe = test_compile(text);
  for (int32_t ranks = 1; ranks <= RANKS; ranks++)
    for (int32_t per_host = 0; partitions % (size_t)ranks == 0 && per_host < ranks; per_host += 2)
      check_ranks(exe, &args, &expected, (int32_t[]){ranks, per_host});
  ts_executable_release(exe);
  tensors_release(&args);
  tensors_release(&expected);
  ts_graph_destroy(graph);
}

static void check_op(const char *op, const char *type, const char *in, const char *out) {
  static const char *const meshes[] = {"[8]", "[2,4]", "[4,2]", "[2,1,2,2]", "[5]", "[6]", "[2,3]", "[3,4]", "[20]"};
  for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
    char text[512];
    if (!strchr(meshes[i], ',') && strstr(op, "1]")) continue; /* a mesh of one axis */
    snprintf(text, sizeof text, "graph @t mesh %s (%%0: %s%s) -> (%s%s) {\n  %%1 = %s : %s%s\n  return %%1\n}\n",
             meshes[i], type, in, type, out, op, type, out);
    check_text(text);
  }
}

START_TEST(sums)
{
  check_op("all_reduce_sum %0 {axes = [0]}", "f32", "[37]", "[37]");
  check_op("all_reduce_sum %0 {axes = [0]}", "f32", "[20011]", "[20011]"); /* in two rounds */
  check_op("all_reduce_sum %0 {axes = [0,1]}", "bf16", "[20011]", "[20011]");
  check_op("all_reduce_sum %0 {axes = [0]}", "f16", "[37]", "[37]");
  check_op("all_reduce_sum %0 {axes = [1]}", "f32", "[37]", "[37]");
  check_op("all_reduce_sum %0 {axes = [0,1]}", "c64", "[3001]", "[3001]");
  check_op("all_reduce_product %0 {axes = [0,1]}", "f8_e4m3fn", "[701]", "[701]");
  check_op("all_reduce_sum %0 {axes = [0,1]}", "s4", "[701]", "[701]");
  check_op("all_reduce_max %0 {axes = [0]}", "f64", "[3,7]", "[3,7]");
  check_op("all_reduce_product %0 {axes = [0]}", "s16", "[]", "[]");
  check_op("all_reduce_or %0 {axes = [0]}", "u8", "[9001]", "[9001]");
  check_op("all_reduce_sum %0 {axes = [0]}", "f32", "[0]", "[0]");
}
END_TEST

START_TEST(moves)
{
  check_op("collective_broadcast %0 {axes = [0], root = 1}", "f32", "[100]", "[100]");
  check_op("collective_permute %0 {axes = [0], sources = [1], targets = [0]}", "f32", "[100]", "[100]");
  check_op("collective_broadcast %0 {axes = [1], root = 0}", "u8", "[20003]", "[20003]");
  check_op("barrier %0 {axes = [0]}", "s8", "[100]", "[100]");
  check_text("graph @t mesh [8] (%0: f32[3,4]) -> (f32[3,32]) {\n"
             "  %1 = all_gather %0 {axes = [0], dim = 1} : f32[3,32]\n  return %1\n}\n");
  check_text("graph @t mesh [2,4] (%0: f32[3,4]) -> (f32[12,4]) {\n"
             "  %1 = all_gather %0 {axes = [1], dim = 0} : f32[12,4]\n  return %1\n}\n");
  check_text("graph @t mesh [4,2] (%0: f32[3,32]) -> (f32[3,4]) {\n"
             "  %1 = reduce_scatter %0 {axes = [1,0], dim = 1} : f32[3,4]\n  return %1\n}\n");
  check_text("graph @t mesh [2,3] (%0: bf16[7,12]) -> (bf16[7,4]) {\n"
             "  %1 = reduce_scatter %0 {axes = [1], dim = 1} : bf16[7,4]\n  return %1\n}\n");
  check_text("graph @t mesh [12] (%0: f64[24,3]) -> (f64[2,3]) {\n"
             "  %1 = reduce_scatter %0 {axes = [0], dim = 0} : f64[2,3]\n  return %1\n}\n");
  check_text("graph @t mesh [2,3] (%0: f32[3,4]) -> (f32[9,4]) {\n"
             "  %1 = all_gather %0 {axes = [1], dim = 0} : f32[9,4]\n  return %1\n}\n");
  check_text("graph @t mesh [8] (%0: f16[2000,16]) -> (f16[2000,2]) {\n"
             "  %1 = reduce_scatter %0 {axes = [0], dim = 1} : f16[2000,2]\n  return %1\n}\n");
  check_text("graph @t mesh [8] (%0: s32[16,3,2]) -> (s32[2,3,16]) {\n"
             "  %1 = all_to_all %0 {axes = [0], split = 0, concat = 2} : s32[2,3,16]\n  return %1\n}\n");
  check_text("graph @t mesh [4,2] (%0: s32[6,3,8]) -> (s32[24,3,2]) {\n"
             "  %1 = all_to_all %0 {axes = [0], split = 2, concat = 0} : s32[24,3,2]\n  return %1\n}\n");
}
END_TEST

/* Temporaries without elements, in programs whose other temporaries take no memory either. */
START_TEST(empty_parts)
{
  static const char *const cases[][3] = {
      {"all_reduce_sum %0 {axes = [0]}", "[0]", "[0]"},
      {"reduce_scatter %0 {axes = [0], dim = 1}", "[0,8]", "[0,2]"},
      {"all_gather %0 {axes = [0], dim = 1}", "[0,2]", "[0,8]"},
      {"all_to_all %0 {axes = [0], split = 0, concat = 1}", "[8,0]", "[2,0]"},
      {"collective_permute %0 {axes = [0], sources = [0], targets = [3]}", "[0]", "[0]"},
      {"collective_broadcast %0 {axes = [0], root = 3}", "[0]", "[0]"},
  };
  char text[512];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *out = cases[i][2];
    snprintf(text, sizeof text,
             "graph @t mesh [4] (%%0: f32%s) -> (f32[]) {\n  %%1 = %s : f32%s\n  %%2 = reduce_sum %%1 {axes = [%s]} : "
             "f32[]\n  return %%2\n}\n",
             cases[i][1], cases[i][0], out, strchr(out, ',') ? "0,1" : "0");
    check_text(text);
  }
}
END_TEST

/* Loops, branches, several operands, coordinates, results that feed the next collective. */
static const char program_text[] =
    "graph @t mesh [2,4] partitioned coordinates (%0: s32[5000], %1: f32[], %c: s32[2]) -> (s32[5000], f32[], s32[2]) "
    "{\n"
    "  %2, %3 = all_reduce_sum %0, %1 {axes = [1]} : s32[5000], f32[]\n"
    "  %z = constant 0 : s32[]\n"
    "  %4, %5 = while %z, %2 {\n"
    "    condition(%6: s32[], %7: s32[5000]) {\n      %8 = constant 3 : s32[]\n      %9 = less %6, %8 : u8[]\n"
    "      return %9\n    }\n"
    "    body(%10: s32[], %11: s32[5000]) {\n      %12 = constant 1 : s32[]\n      %13 = add %10, %12 : s32[]\n"
    "      %14 = collective_permute %11 {axes = [0,1], sources = [0,1,2,3,4,5,6,7], targets = [1,2,3,4,5,6,7,0]} : "
    "s32[5000]\n      %15 = all_reduce_max %14 {axes = [0]} : s32[5000]\n      return %13, %15\n    }\n"
    "  } : s32[], s32[5000]\n"
    "  return %5, %3, %c\n}\n";

START_TEST(a_program)
{ check_text(program_text); }
END_TEST

/* ---- faults ---- */

static void fill(tensors *args, double limit) {
  ck_assert_ok(tensors_make(16, args));
  for (int p = 0; p < 8; p++) {
    args->data[2 * p] = VECTOR(TS_S32, p, 1, 2);
    args->data[2 * p + 1] = SCALAR(TS_S32, limit);
  }
}

static const char loop_text[] =
    "graph @t mesh [8] (%0: s32[3], %l: s32[]) -> (s32[3]) {\n  %1, %2 = while %0, %l {\n"
    "    condition(%3: s32[3], %4: s32[]) {\n      %6 = reduce_max %3 {axes = [0]} : s32[]\n"
    "      %7 = less %6, %4 : u8[]\n      return %7\n    }\n"
    "    body(%8: s32[3], %9: s32[]) {\n      %10 = all_reduce_sum %8 {axes = [0]} : s32[3]\n      return %10, %9\n"
    "    }\n  } : s32[3], s32[]\n  return %1\n}\n";

/* All ranks end with that error. */
static void check_failed(job *j, ts_code code, const char *message) {
  for (int32_t r = 0; r < j->net.ranks; r++) {
    ck_assert_msg(ts_status_code(j->failed[r]) == code && strstr(ts_status_message(j->failed[r]), message),
                  "rank %d: %s, expected %s", r, ts_status_message(j->failed[r]), message);
  }
}

/* A job of loop_text, with its program and arguments. */
typedef struct loop_case {
  tensors args;
  ts_executable *exe;
  job job;
} loop_case;

static void open_loop(loop_case *c, double limit, int32_t ranks) {
  memset(c, 0, sizeof *c);
  c->exe = test_compile(loop_text);
  fill(&c->args, limit);
  open_job(&c->job, c->exe, ranks);
}

static void create_all(loop_case *c) {
  for (int32_t r = 0; r < c->job.net.ranks; r++) create(&c->job, &c->args, r);
}

static void close_loop(loop_case *c) {
  close_job(&c->job);
  tensors_release(&c->args);
  ts_executable_release(c->exe);
}

/* Runs the job: all its ranks end with that error. */
static void check_failing(loop_case *c, ts_code code, const char *message) {
  run_job(&c->job);
  check_failed(&c->job, code, message);
}

/* The predicate differs between ranks: rank 3 is at the end while the others are at a collective. */
START_TEST(ranks_at_different_places)
{
  static loop_case c;
  open_loop(&c, 1000, 8);
  ts_buffer_release(c.args.data[15]);
  c.args.data[15] = SCALAR(TS_S32, -1);
  create_all(&c);
  check_failing(&c, TS_FAILED_PRECONDITION, "ranks 0 and 7 are at different places of the program");
  close_loop(&c);
}
END_TEST

/* Of the same types, so that only their numbers tell them apart. The error has their names. */
START_TEST(ranks_with_different_programs)
{
  static loop_case c;
  open_loop(&c, 1000, 4);
  for (int32_t r = 0; r < 4; r++) {
    c.job.programs[r] = r == 2 ? 6 : 5;
    c.job.names[r] = r == 2 ? "the second" : "the first";
  }
  create_all(&c);
  check_failing(&c, TS_FAILED_PRECONDITION,
                "ranks 0 and 2 are at different places of the program: exchange 0 of run 7");
  check_failed(&c.job, TS_FAILED_PRECONDITION, ", the first), and exchange 0 of run 7 (");
  check_failed(&c.job, TS_FAILED_PRECONDITION, ", the second)");
  close_loop(&c);
}
END_TEST

/* The other ranks wait `meet_ns` for it, though they would wait for ever in later exchanges. */
START_TEST(a_rank_that_does_not_come)
{
  static loop_case c;
  open_loop(&c, 1000, 4);
  c.job.meet_ns = 20 * 1000 * 1000;
  c.job.net.lost = 3;
  for (int32_t r = 0; r < 3; r++) create(&c.job, &c.args, r);
  c.job.failed[3] = ts_error(TS_INTERNAL, "rank 3 did not answer in time");
  check_failing(&c, TS_INTERNAL, "rank 3 did not answer in time");
  close_loop(&c);
}
END_TEST

START_TEST(a_rank_with_wrong_arguments)
{
  static loop_case c;
  open_loop(&c, 1000, 4);
  ts_buffer_release(c.args.data[4]);
  c.args.data[4] = VECTOR(TS_S32, 1, 2);
  create_all(&c);
  check_failing(&c, TS_INVALID_ARGUMENT, "partition 2: argument 1 is s32[2]");
  ck_assert(strstr(ts_status_message(c.job.failed[0]), "rank 1: "));
  close_loop(&c);
}
END_TEST

START_TEST(a_cancelled_rank)
{
  for (int after = 0; after < 6; after++) {
    static loop_case c;
    open_loop(&c, 1e9, 4);
    create_all(&c);
    for (int i = 0; i < after; i++)
      for (int32_t r = 0; r < 4; r++) step(&c.job, r);
    atomic_store(&c.job.controls[2].cancel, true);
    check_failing(&c, TS_CANCELLED, "cancelled");
    close_loop(&c);
  }
}
END_TEST

/* A rank whose group is freed in the middle: before, in and after an exchange. */
START_TEST(an_abandoned_rank)
{
  for (int after = 0; after < 6; after++) {
    static loop_case c;
    open_loop(&c, 1e9, 4);
    create_all(&c);
    for (int i = 0; i < after; i++) step(&c.job, i % 2 ? 1 : 3);
    ck_assert_ok(ts_group_end(c.job.groups[1], NULL));
    c.job.groups[1] = NULL;
    run_job(&c.job);
    c.job.failed[1] = ts_error(TS_CANCELLED, "abandoned");
    check_failed(&c.job, TS_CANCELLED, "abandoned");
    close_loop(&c);
  }
}
END_TEST

/* A rank that cannot begin, before the others have begun or after. It may have no arguments. */
START_TEST(a_refusing_rank)
{
  for (int32_t refusing = 0; refusing < 4; refusing += 3) {
    static loop_case c;
    tensors none = {0};
    open_loop(&c, 1000, 4);
    c.job.refusals[refusing] = "argument 1 was not made";
    for (int32_t r = 0; r < 4; r++) create(&c.job, r == refusing ? &none : &c.args, r);
    check_failing(&c, TS_RESOURCE_EXHAUSTED, "argument 1 was not made");
    close_loop(&c);
  }
}
END_TEST

START_TEST(a_lost_message)
{
  static loop_case c;
  open_loop(&c, 1e9, 4);
  c.job.timeout_ns = 20 * 1000 * 1000;
  create_all(&c);
  for (int32_t r = 0; r < 4; r++) step(&c.job, r);
  c.job.net.lost = 3;
  check_failing(&c, TS_INTERNAL, "rank 3 did not answer in time");
  close_loop(&c);
}
END_TEST

static void try_job(const ts_executable *exe, const tensors *args) {
  static job j;
  memset(&j, 0, sizeof j);
  j.exe = exe;
  j.partitions = 8;
  j.each = 4;
  j.results_each = ts_executable_result_count(exe);
  open_network(&j.net, 2, 0);
  ts_status status = tensors_make(j.results_each * 8, &j.results);
  for (int32_t r = 0; !status && r < 2; r++) {
    create(&j, args, r);
    /* A rank that cannot begin posts no exchange: the others' exchanges end at their deadline. */
    if (j.failed[r] && !j.groups[r] && !j.net.posted[r]) j.net.broken = true;
  }
  if (!status) run_job(&j);
  ts_status_free(status);
  close_job(&j);
}

START_TEST(failing_allocations_leak_nothing)
{
  tensors args = {0};
  ts_executable *exe = test_compile(loop_text);
  fill(&args, 300);
  try_job(exe, &args);
  CK_FAIL_EACH_ALLOCATION(try_job(exe, &args));
  tensors_release(&args);
  ts_executable_release(exe);
}
END_TEST

START_TEST(wrong_numbers_of_ranks)
{
  tensors args = {0};
  static network net;
  ts_group *group;
  ts_executable *exe = test_compile(loop_text);
  fill(&args, 10);
  open_network(&net, 3, 0);
  ck_assert_error(ts_group_create(exe, args.data, 2, &(ts_group_options){.carrier = &net.carriers[0]}, &group),
                  TS_INVALID_ARGUMENT, "the program has 8 partitions, which 3 ranks cannot share");
  net.carriers[0].rank = 3;
  ck_assert_error(ts_group_create(exe, args.data, 2, &(ts_group_options){.carrier = &net.carriers[0]}, &group),
                  TS_INVALID_ARGUMENT, "rank 3 of 3, expected one of the ranks");
  close_network(&net);
  tensors_release(&args);
  ts_executable_release(exe);
}
END_TEST

/* ---- the messages of ranks ---- */

/* A collective over one axis with a partition, or several, on each rank; its operand is a vector. */
typedef struct plan {
  ts_collective collective;
  ts_type type;
  const ts_type *types;
  uint16_t members[4 * MOST_RANKS], senders[4 * MOST_RANKS];
  int32_t hosts[MOST_RANKS], ranks;
  const int32_t *known_hosts;
} plan;

static void make_plan(plan *p, ts_opcode code, const int32_t partitions_and_ranks[2], int32_t per_host,
                      int64_t elements) {
  ts_shape shape = {.rank = 1, .dims = {elements}};
  const int32_t partitions = partitions_and_ranks[0];
  ts_type_set(&p->type, TS_F32, &shape);
  p->types = &p->type;
  p->ranks = partitions_and_ranks[1];
  for (int32_t r = 0; r < p->ranks; r++) p->hosts[r] = per_host ? r / per_host : 0;
  p->known_hosts = per_host ? p->hosts : NULL;
  for (int32_t i = 0; i < partitions; i++) p->members[i] = (uint16_t)i;
  p->collective = (ts_collective){.code = code,
                                  .count = 1,
                                  .partitions = partitions,
                                  .size = partitions,
                                  .members = p->members,
                                  .positions = p->members,
                                  .senders = p->senders,
                                  .types = &p->types,
                                  .bytes = 8 * elements};
  for (int32_t i = 0; i < partitions; i++)
    p->senders[i] = code == TS_OP_COLLECTIVE_BROADCAST ? 0
                    : code == TS_OP_COLLECTIVE_PERMUTE ? (uint16_t)((i + 1) % partitions)
                                                       : TS_NO_MEMBER;
}

static ts_carrier carrier_of(const plan *p, int32_t rank) {
  return (ts_carrier){.rank = rank, .ranks = p->ranks, .hosts = p->known_hosts};
}

/* What a rank sends in all rounds: bytes, bytes to other hosts, and ranks that get some. */
typedef struct sent {
  int64_t bytes, between, peers;
  int32_t rounds;
} sent;

/* The bytes sent by one rank equal the bytes that the other gets. */
static sent count_sent(const plan *p, ts_algorithm_id id, int32_t rank) {
  static int64_t send[MOST_RANKS], receive[MOST_RANKS], other_send[MOST_RANKS], other_receive[MOST_RANKS];
  const int32_t next = (rank + 1) % p->ranks;
  ts_carrier here = carrier_of(p, rank), there = carrier_of(p, next);
  ts_shares own, other;
  sent sum = {.rounds = ts_algorithms[id].rounds};
  ck_assert_ok(ts_shares_open(&p->collective, &here, &ts_algorithms[id], &own));
  ck_assert_ok(ts_shares_open(&p->collective, &there, &ts_algorithms[id], &other));
  for (int32_t round = 0; round < sum.rounds; round++) {
    ts_shares_count(&own, round, send, receive);
    ts_shares_count(&other, round, other_send, other_receive);
    ck_assert_int_eq(send[next], other_receive[rank]);
    ck_assert_int_eq(receive[next], other_send[rank]);
    for (int32_t r = 0; r < p->ranks; r++) {
      sum.bytes += send[r];
      sum.between += p->hosts[r] == p->hosts[rank] ? 0 : send[r];
      sum.peers += send[r] > 0;
    }
  }
  ts_shares_close(&own);
  ts_shares_close(&other);
  return sum;
}

/* On as many ranks, with `each` partitions. */
static void check_sent(ts_opcode code, ts_algorithm_id id, const int32_t ranks_and_each[2], int64_t bytes,
                       int64_t expected) {
  static plan p;
  const int32_t ranks = ranks_and_each[0];
  make_plan(&p, code, (int32_t[]){ranks * ranks_and_each[1], ranks}, 0, bytes / 4);
  ck_assert_int_eq(count_sent(&p, id, 0).bytes, expected);
  if (code != TS_OP_COLLECTIVE_BROADCAST) ck_assert_int_eq(count_sent(&p, id, ranks - 1).bytes, expected);
}

/* The formulas of docs/distribution.md, for a partition on each rank and for several. */
START_TEST(bytes_and_steps)
{
  for (int32_t ranks = 8; ranks <= MOST_RANKS; ranks *= 2) {
    int64_t n = 1 << 20, others = ranks - 1;
    const int32_t one[] = {ranks, 1}, three[] = {ranks, 3}, four[] = {ranks, 4};
    check_sent(TS_OP_ALL_REDUCE_SUM, TS_ALGORITHM_SHARES, one, n, 2 * n * others / ranks);
    check_sent(TS_OP_ALL_REDUCE_SUM, TS_ALGORITHM_EVERYWHERE, one, 4096, 4096 * others);
    check_sent(TS_OP_ALL_GATHER, TS_ALGORITHM_MOVE, one, n, n * others);
    check_sent(TS_OP_REDUCE_SCATTER, TS_ALGORITHM_SCATTER, one, n, n * others / ranks);
    check_sent(TS_OP_ALL_TO_ALL, TS_ALGORITHM_MOVE, one, n, n * others / ranks);
    check_sent(TS_OP_COLLECTIVE_BROADCAST, TS_ALGORITHM_MOVE, one, n, n * others);
    check_sent(TS_OP_COLLECTIVE_PERMUTE, TS_ALGORITHM_MOVE, one, n, n);
    check_sent(TS_OP_ALL_REDUCE_SUM, TS_ALGORITHM_SHARES, four, n, 2 * n * others / ranks);
    check_sent(TS_OP_ALL_REDUCE_SUM, TS_ALGORITHM_EVERYWHERE, four, 4096, 4096 * others);
    if (ranks < 512) check_sent(TS_OP_ALL_REDUCE_SUM, TS_ALGORITHM_SHARES, three, n, (3 + 1) * n * others / ranks);
    check_sent(TS_OP_REDUCE_SCATTER, TS_ALGORITHM_SCATTER, four, n, n * others / ranks);
    check_sent(TS_OP_ALL_GATHER, TS_ALGORITHM_MOVE, four, n, 4 * n * others);
    check_sent(TS_OP_COLLECTIVE_BROADCAST, TS_ALGORITHM_MOVE, four, n, n * others);
  }
}
END_TEST

/* With L ranks on each of H hosts: bytes to the own host, to others, and the ranks that get some. */
START_TEST(bytes_between_hosts)
{
  static plan p;
  for (int64_t l = 2; l <= 64; l *= 2)
    for (int64_t h = 2; h <= 64; h *= 2) {
      const int64_t n = 1 << 20;
      const int32_t ranks = (int32_t)(l * h);
      make_plan(&p, TS_OP_ALL_REDUCE_SUM, (int32_t[]){ranks, ranks}, (int32_t)l, n / 4);
      sent by_hosts = count_sent(&p, TS_ALGORITHM_HOSTS, ranks / 2), shares = count_sent(&p, TS_ALGORITHM_SHARES, 0);
      ck_assert_ptr_eq(ts_algorithm_select(&p.collective, ranks, p.hosts), &ts_algorithms[TS_ALGORITHM_HOSTS]);
      ck_assert_int_eq(by_hosts.between, 2 * n / l * (h - 1) / h);
      ck_assert_int_eq(by_hosts.bytes - by_hosts.between, 2 * n * (l - 1) / l);
      ck_assert_int_eq(by_hosts.peers, 2 * (l - 1) + 2 * (h - 1));
      ck_assert_int_eq(shares.between, l * by_hosts.between);
    }
}
END_TEST

/* Hosts whose ranks are no subtrees of the sum: a number of ranks that is no power of two, ranks in turn, one host. */
START_TEST(hosts_that_do_not_fit)
{
  static plan p;
  const struct {
    int32_t ranks, per_host, in_turn;
    bool fits;
  } cases[] = {{12, 4, 0, true}, {12, 3, 0, false}, {8, 1, 0, false}, {8, 8, 0, false},
               {8, 2, 1, false}, {10, 4, 0, true},  {5, 2, 0, true},  {16, 6, 0, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int32_t ranks = cases[i].ranks;
    make_plan(&p, TS_OP_ALL_REDUCE_SUM, (int32_t[]){2 * ranks, ranks}, cases[i].per_host, 1 << 20);
    for (int32_t r = 0; cases[i].in_turn && r < ranks; r++) p.hosts[r] = r % 4;
    const ts_algorithm *chosen = ts_algorithm_select(&p.collective, ranks, p.hosts);
    ck_assert_ptr_eq(chosen, &ts_algorithms[cases[i].fits ? TS_ALGORITHM_HOSTS : TS_ALGORITHM_SHARES]);
  }
}
END_TEST

/* ---- many ranks ---- */

/* Each partition's operand is small whole numbers and its own part, so that the order of the additions matters. */
static void make_many(int32_t partitions, int64_t elements, tensors *out) {
  ts_shape shape = {.rank = 1, .dims = {elements}};
  ck_assert_ok(tensors_make((size_t)partitions, out));
  for (int32_t p = 0; p < partitions; p++) {
    ck_assert_ok(ts_buffer_create(ts_pool_default(), TS_F32, &shape, &out->data[p]));
    float *to = out->data[p]->data;
    for (int64_t i = 0; i < elements; i++) to[i] = (float)((p * 7919 + i * 104729) % 10007) * 1e-3f - 3.0f;
  }
}

/* The sum over all partitions, in pairs. */
static float sum_in_pairs(const tensors *args, int64_t at, int32_t first, int32_t count) {
  int32_t half = 1;
  if (count == 1) return ((const float *)args->data[first]->data)[at];
  while (half * 2 < count) half *= 2;
  return sum_in_pairs(args, at, first, half) + sum_in_pairs(args, at, first + half, count - half);
}

static void run_many(job *j, const char *text, const tensors *args, int32_t ranks, int32_t per_host) {
  ts_executable *exe = test_compile(text);
  open_job_on(j, exe, ranks, per_host);
  for (int32_t r = 0; r < ranks; r++) create(j, args, r);
  run_job(j);
  for (int32_t r = 0; r < ranks; r++) ck_assert_ok(j->failed[r]);
  ts_executable_release(exe);
}

/* 4096 ranks of this process run one program: a sum over all of them by hosts of 64, and sums over 64 of them. Each
 * rank has memory for the ranks that it talks to, not for all. */
START_TEST(light_ranks)
{
  static const char by_hosts[] = "graph @t mesh [4096] (%0: f32[4200]) -> (f32[4200]) {\n"
                                 "  %1 = all_reduce_sum %0 {axes = [0]} : f32[4200]\n  return %1\n}\n";
  static const char rows[] = "graph @t mesh [64,64] (%0: f32[40]) -> (f32[40]) {\n"
                             "  %1 = all_reduce_sum %0 {axes = [1]} : f32[40]\n  return %1\n}\n";
  static job j;
  tensors args = {0};
  make_many(MOST_RANKS, 4200, &args);
  run_many(&j, by_hosts, &args, MOST_RANKS, 64);
  ck_assert_int_eq(j.net.exchanges, 5);
  for (int64_t i = 0; i < 4200; i += 37) {
    float expected = sum_in_pairs(&args, i, 0, MOST_RANKS);
    for (int32_t r = 0; r < MOST_RANKS; r++)
      ck_assert(memcmp((float *)j.results.data[r]->data + i, &expected, sizeof expected) == 0);
  }
  close_job(&j);
  tensors_release(&args);
  make_many(MOST_RANKS, 40, &args);
  run_many(&j, rows, &args, MOST_RANKS, 0);
  for (int32_t r = 0; r < MOST_RANKS; r += 5) {
    float expected = sum_in_pairs(&args, r % 40, r / 64 * 64, 64);
    ck_assert(memcmp((float *)j.results.data[r]->data + r % 40, &expected, sizeof expected) == 0);
  }
  close_job(&j);
  tensors_release(&args);
}
END_TEST

/* The last of 4096 ranks fails: all learn which and why. */
START_TEST(a_failure_of_many)
{
  static const char text[] = "graph @t mesh [4096] (%0: f32[2]) -> (f32[2]) {\n"
                             "  %1 = collective_permute %0 {axes = [0], sources = [4095], targets = [0]} : f32[2]\n"
                             "  return %1\n}\n";
  static job j;
  tensors args = {0};
  ts_executable *exe = test_compile(text);
  make_many(MOST_RANKS, 2, &args);
  open_job(&j, exe, MOST_RANKS);
  j.refusals[MOST_RANKS - 1] = "argument 1 was not made";
  for (int32_t r = 0; r < MOST_RANKS; r++) create(&j, &args, r);
  run_job(&j);
  check_failed(&j, TS_RESOURCE_EXHAUSTED, "argument 1 was not made");
  ck_assert(strstr(ts_status_message(j.failed[0]), "rank 4095: "));
  close_job(&j);
  ts_executable_release(exe);
  tensors_release(&args);
}
END_TEST

/* ---- ranks as threads ---- */

typedef struct rank_thread {
  job *j;
  const tensors *args;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  int32_t rank;
  bool is_ready;
} rank_thread;

static void set_ready(void *context) {
  rank_thread *t = context;
  pthread_mutex_lock(&t->lock);
  t->is_ready = true;
  pthread_cond_signal(&t->wake);
  pthread_mutex_unlock(&t->lock);
}

static void wait_ready(rank_thread *t) {
  pthread_mutex_lock(&t->lock);
  while (!t->is_ready) pthread_cond_wait(&t->wake, &t->lock);
  t->is_ready = false;
  pthread_mutex_unlock(&t->lock);
}

static void *rank_main(void *context) {
  rank_thread *t = context;
  job *j = t->j;
  size_t each = t->args->count / (size_t)j->partitions;
  ts_group_options options = {
      .carrier = &j->net.carriers[t->rank], .run = 9, .threads = 1, .ready = set_ready, .context = t};
  ck_assert_ok(
      ts_group_create(j->exe, t->args->data + (size_t)(t->rank * j->each) * each, each, &options, &j->groups[t->rank]));
  while (!is_over(j, t->rank)) {
    step(j, t->rank);
    if (!is_over(j, t->rank)) wait_ready(t);
  }
  return NULL;
}

START_TEST(ranks_in_threads)
{
  tensors args = {0}, expected = {0};
  ts_graph *graph;
  rank_thread threads[RANKS];
  pthread_t ids[RANKS];
  ck_assert_ok(ts_graph_parse(program_text, strlen(program_text), &graph));
  ts_executable *exe = test_compile(program_text);
  make_args(graph, &args);
  ck_assert_ok(tensors_make(24, &expected));
  ck_assert_ok(ts_ref_run_partitions(graph, args.data, 2, ts_pool_default(), expected.data));
  for (int times = 0; times < 20; times++) {
    static job j;
    char message[TS_COMPARE_TEXT];
    open_job(&j, exe, 8);
    for (int32_t r = 0; r < 8; r++) {
      threads[r] = (rank_thread){.j = &j, .args = &args, .rank = r};
      pthread_mutex_init(&threads[r].lock, NULL);
      pthread_cond_init(&threads[r].wake, NULL);
      pthread_create(&ids[r], NULL, rank_main, &threads[r]);
    }
    for (int32_t r = 0; r < 8; r++) pthread_join(ids[r], NULL);
    for (int32_t r = 0; r < 8; r++) ck_assert_ok(j.failed[r]);
    for (size_t i = 0; i < expected.count; i++)
      ck_assert_msg(ts_compare_buffers(j.results.data[i], expected.data[i], 0, message), "result %zu: %s", i, message);
    close_job(&j);
  }
  ts_executable_release(exe);
  tensors_release(&args);
  tensors_release(&expected);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *all = suite_create("ranks");
  TCase *cases = tcase_create("ranks");
  tcase_set_timeout(cases, 0);
  tcase_add_test(cases, parts_shrink_with_pairs);
  tcase_add_test(cases, sums);
  tcase_add_test(cases, moves);
  tcase_add_test(cases, empty_parts);
  tcase_add_test(cases, a_program);
  tcase_add_test(cases, ranks_at_different_places);
  tcase_add_test(cases, ranks_with_different_programs);
  tcase_add_test(cases, a_rank_that_does_not_come);
  tcase_add_test(cases, a_rank_with_wrong_arguments);
  tcase_add_test(cases, a_cancelled_rank);
  tcase_add_test(cases, an_abandoned_rank);
  tcase_add_test(cases, a_refusing_rank);
  tcase_add_test(cases, a_lost_message);
  tcase_add_test(cases, failing_allocations_leak_nothing);
  tcase_add_test(cases, wrong_numbers_of_ranks);
  tcase_add_test(cases, bytes_and_steps);
  tcase_add_test(cases, bytes_between_hosts);
  tcase_add_test(cases, hosts_that_do_not_fit);
  tcase_add_test(cases, light_ranks);
  tcase_add_test(cases, a_failure_of_many);
  tcase_add_test(cases, ranks_in_threads);
  suite_add_tcase(all, cases);
  return testing_run(all);
}
