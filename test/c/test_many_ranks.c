/* Thousands of ranks. Their messages are counted without a run; 4096 ranks of this process run programs. */
#include "group/shares.h"
#include "rank_job.h"
#include "tensors.h"
#include "testing.h"

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

/* The sum over all rounds of one rank's sent bytes, of its bytes to other hosts, and of its receivers. */
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

/* From one number of ranks to the next, powers of two; with a sanitizer few of them, among them the largest. */
static int32_t next_times(int32_t few) { return TEST_IS_SANITIZED && !testing_every_case() ? few : 2; }

/* The formulas of docs/distribution.md, for a partition on each rank and for several. */
START_TEST(bytes_and_steps)
{
  const int32_t more = next_times(8);
  for (int32_t ranks = 8; ranks <= MOST_RANKS; ranks *= more) {
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
  const int64_t more = next_times(32);
  for (int64_t l = 2; l <= 64; l *= more)
    for (int64_t h = 2; h <= 64; h *= more) {
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
  for (int32_t r = 0; r < ranks; r++) create_rank(j, args, r);
  run_job(j);
  for (int32_t r = 0; r < ranks; r++) ck_assert_ok(j->failed[r]);
  ts_executable_release(exe);
}

static uint32_t bits_at(const ts_buffer *b, int64_t i) { return ts_f32_bits(((const float *)b->data)[i]); }

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
    for (int32_t r = 0; r < MOST_RANKS; r++) ck_assert_uint_eq(bits_at(j.results.data[r], i), ts_f32_bits(expected));
  }
  close_job(&j);
  tensors_release(&args);
  make_many(MOST_RANKS, 40, &args);
  run_many(&j, rows, &args, MOST_RANKS, 0);
  for (int32_t r = 0; r < MOST_RANKS; r += 5) {
    float expected = sum_in_pairs(&args, r % 40, r / 64 * 64, 64);
    ck_assert_uint_eq(bits_at(j.results.data[r], r % 40), ts_f32_bits(expected));
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
  for (int32_t r = 0; r < MOST_RANKS; r++) create_rank(&j, &args, r);
  run_job(&j);
  check_failed(&j, TS_RESOURCE_EXHAUSTED, "argument 1 was not made");
  ck_assert(strstr(ts_status_message(j.failed[0]), "rank 4095: "));
  close_job(&j);
  ts_executable_release(exe);
  tensors_release(&args);
}
END_TEST

int main(void) {
  Suite *all = suite_create("many ranks");
  TCase *cases = tcase_create("many ranks");
  tcase_set_timeout(cases, 0);
  tcase_add_test(cases, bytes_and_steps);
  tcase_add_test(cases, bytes_between_hosts);
  tcase_add_test(cases, hosts_that_do_not_fit);
  tcase_add_test(cases, light_ranks);
  tcase_add_test(cases, a_failure_of_many);
  suite_add_tcase(all, cases);
  return testing_run(all);
}
