/* Groups of several ranks: as many groups of this process, with a carrier that copies. A mesh of 8 gives the same bits
 * with any number of ranks; failures of one rank reach all; nothing hangs or leaks. */
#include "comm/mpi.h"
#include "kernel/ref/ref.h"
#include "random_graph.h"
#include "rank_job.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include <pthread.h>

enum { RANKS = 8 };

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
  for (int32_t r = 0; r < ranks; r++) create_rank(&j, args, r);
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
  for (int32_t r = 0; r < c->job.net.ranks; r++) create_rank(&c->job, &c->args, r);
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
  for (int32_t r = 0; r < 3; r++) create_rank(&c.job, &c.args, r);
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
      for (int32_t r = 0; r < 4; r++) step_rank(&c.job, r);
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
    for (int i = 0; i < after; i++) step_rank(&c.job, i % 2 ? 1 : 3);
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
    for (int32_t r = 0; r < 4; r++) create_rank(&c.job, r == refusing ? &none : &c.args, r);
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
  for (int32_t r = 0; r < 4; r++) step_rank(&c.job, r);
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
    create_rank(&j, args, r);
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
    step_rank(j, t->rank);
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
  tcase_add_test(cases, ranks_in_threads);
  suite_add_tcase(all, cases);
  return testing_run(all);
}
