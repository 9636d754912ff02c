#include "rank_job.h"

#include "base/system.h"
#include "testing.h"

#include <unistd.h>

/* ---- the carrier ---- */

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
  }
  n->blocks += x->receive_count - x->send_count;
}

/* Takes all exchanges if they are complete. The lock is held. */
static bool take_complete(network *n, ts_exchange **out) {
  if (n->waiting < n->ranks) return false;
  memcpy(out, n->posted, (size_t)n->ranks * sizeof *out);
  memset(n->posted, 0, (size_t)n->ranks * sizeof *out);
  n->waiting = 0;
  for (int32_t r = 0; r < n->ranks; r++) n->headers[r] = out[r]->header;
  for (int32_t r = 0; r < n->ranks; r++) out[r]->headers = n->headers;
  bool agree = ts_carrier_agrees(n->headers, n->ranks);
  for (int32_t r = 0; agree && r < n->ranks; r++) deliver(n, out, r);
  ck_assert_int_eq(n->blocks, 0);
  n->exchanges++;
  return true;
}

/* Also that of a rank whose exchange comes after the deadline of another rank's, as on a busy machine. */
static ts_status break_of(const network *n) {
  if (n->lost < 0) return ts_error(TS_INTERNAL, "the job is broken");
  return ts_error(TS_INTERNAL, "rank %d did not answer in time", n->lost);
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
  if (broken) x->done(x, break_of(n));
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
    if (late[r]) late[r]->done(late[r], break_of(n));
}

void open_network(network *n, int32_t ranks, int32_t per_host) {
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

void close_network(network *n) {
  for (int32_t r = 0; r < n->ranks; r++) ck_assert_ptr_null(n->posted[r]);
  pthread_mutex_destroy(&n->lock);
}

/* ---- ranks in turn ---- */

void open_job_on(job *j, const ts_executable *exe, int32_t ranks, int32_t per_host) {
  memset(j, 0, sizeof *j);
  j->exe = exe;
  j->partitions = ts_executable_partitions(exe);
  open_network(&j->net, ranks, per_host);
  j->each = j->partitions / ranks;
  j->results_each = ts_executable_result_count(exe);
  ck_assert_ok(tensors_make(j->results_each * (size_t)j->partitions, &j->results));
}

void open_job(job *j, const ts_executable *exe, int32_t ranks) { open_job_on(j, exe, ranks, 0); }

void create_rank(job *j, const tensors *args, int32_t rank) {
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

bool is_over(const job *j, int32_t rank) { return !j->groups[rank]; }

void step_rank(job *j, int32_t rank) {
  if (is_over(j, rank)) return;
  j->failed[rank] = ts_group_advance(j->groups[rank], &j->states[rank]);
  if (!j->failed[rank] && j->states[rank] != TS_RUN_DONE) return;
  ts_buffer **out = j->results.data + (size_t)(rank * j->each) * j->results_each;
  ts_status ended = ts_group_end(j->groups[rank], j->failed[rank] ? NULL : out);
  if (!j->failed[rank]) j->failed[rank] = ended;
  j->groups[rank] = NULL;
}

void run_job(job *j) {
  for (int rounds = 0;; rounds++) {
    bool over = true;
    for (int32_t r = 0; r < j->net.ranks; r++) {
      step_rank(j, r);
      over &= is_over(j, r);
    }
    if (over) return;
    expire(&j->net);
    if (rounds > 1000) usleep(100); /* for a deadline */
    ck_assert_int_lt(rounds, 100000);
  }
}

void close_job(job *j) {
  for (int32_t r = 0; r < j->net.ranks; r++) {
    ts_group_end(j->groups[r], NULL);
    ts_status_free(j->failed[r]);
  }
  tensors_release(&j->results);
  close_network(&j->net);
}

void check_failed(job *j, ts_code code, const char *message) {
  for (int32_t r = 0; r < j->net.ranks; r++) {
    ck_assert_msg(ts_status_code(j->failed[r]) == code && strstr(ts_status_message(j->failed[r]), message),
                  "rank %d: %s, expected %s", r, ts_status_message(j->failed[r]), message);
  }
}
