#include "group/ranks.h"

#include "base/alloc.h"
#include "base/system.h"
#include "exec/steps.h"

#include <stdio.h>
#include <string.h>

/* How long a thread that posts an exchange works for the carrier. It keeps a dirty scheduler meanwhile, less long than
 * a slice of a run does. */
enum { HELP_NS = 5000000 };

/* The owner of the exchange. IDLE: it is not posted. */
enum { IDLE, POSTED, WAITED_FOR, ARRIVED, ABANDONED };

struct ts_ranks {
  ts_exchange exchange;
  _Atomic int owner;
  ts_status arrived; /* of the exchange, until it is taken */
  ts_carrier *carrier;
  void (*ready)(void *context);
  void *context;
  int64_t timeout_ns, meet_ns;
  ts_phase phase;
  ts_status failure; /* of this rank, while the others are told */
  bool over;         /* all ranks know that the run has ended, or cannot be told */
  ts_pool *pool;
  char *block; /* sent, then received */
  int64_t block_bytes;
  int64_t *send_at, *send_bytes, *receive_at, *receive_bytes; /* by rank, behind `headers` */
  ts_carrier_header headers[];
};

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 32;
}

/* ---- the carrier's thread ---- */

static void settle(ts_ranks *r);

static void exchange_done(ts_exchange *exchange, ts_status status) {
  ts_ranks *r = exchange->context;
  void (*ready)(void *) = r->ready;
  void *context = r->context;
  r->arrived = status;
  int owner = atomic_exchange(&r->owner, ARRIVED);
  if (owner == ABANDONED)
    settle(r);
  else if (owner == WAITED_FOR && ready)
    ready(context); /* the group may be advanced, and `r` freed, from now on */
}

/* ---- creation ---- */

static ts_status check_carrier(const ts_carrier *carrier, int32_t partitions) {
  if (carrier->ranks < 1 || carrier->ranks > TS_MAX_RANKS || carrier->rank < 0 || carrier->rank >= carrier->ranks)
    return ts_error(TS_INVALID_ARGUMENT, "rank %d of %d, expected one of at most %d", carrier->rank, carrier->ranks,
                    TS_MAX_RANKS);
  if (partitions % carrier->ranks == 0) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the program has %d partitions, which %d ranks cannot share", partitions,
                  carrier->ranks);
}

static uint64_t program_hash(const ts_executable *exe) {
  uint64_t hash = mix(exe->param_count, exe->result_count);
  for (size_t i = 0; i < exe->result_count; i++)
    hash = mix(hash, (uint64_t)ts_shape_elements(&exe->result_types[i]->shape) * 64 + exe->result_types[i]->dtype);
  for (int32_t i = 0; i < exe->mesh.rank; i++) hash = mix(hash, (uint64_t)exe->mesh.sizes[i]);
  return hash;
}

/* With its arrays. */
static ts_status allocate(size_t ranks, ts_ranks **out) {
  ts_ranks *r;
  TS_TRY(ts_alloc(sizeof *r + ranks * (sizeof *r->headers + 4 * sizeof(int64_t)), (void **)&r));
  r->send_at = (int64_t *)(r->headers + ranks);
  r->send_bytes = r->send_at + ranks;
  r->receive_at = r->send_bytes + ranks;
  r->receive_bytes = r->receive_at + ranks;
  *out = r;
  return TS_SUCCESS;
}

ts_status ts_ranks_create(const ts_group_options *options, const ts_executable *exe, ts_ranks **out) {
  ts_ranks *r;
  *out = NULL;
  TS_TRY(check_carrier(options->carrier, exe ? ts_executable_partitions(exe) : 0));
  TS_TRY(allocate((size_t)options->carrier->ranks, &r));
  r->exchange = (ts_exchange){.header = {.run = options->run, .path = exe ? program_hash(exe) : 0},
                              .headers = r->headers,
                              .send_at = r->send_at,
                              .send_bytes = r->send_bytes,
                              .receive_at = r->receive_at,
                              .receive_bytes = r->receive_bytes,
                              .done = exchange_done,
                              .context = r};
  r->carrier = options->carrier;
  r->ready = options->ready;
  r->context = options->context;
  r->timeout_ns = options->timeout_ns;
  r->meet_ns = options->meet_ns;
  if (options->program) ts_ranks_note(r, options->program);
  if (options->name) snprintf(r->exchange.header.text, sizeof r->exchange.header.text, "%s", options->name);
  r->pool = options->pool ? options->pool : ts_pool_default();
  atomic_fetch_add(&r->carrier->groups, 1);
  *out = r;
  return TS_SUCCESS;
}

/* ---- posting ---- */

void ts_ranks_release(ts_ranks *r) {
  if (r->block) ts_pool_free(r->pool, r->block, r->block_bytes);
  r->block = NULL;
  memset(r->send_bytes, 0, (size_t)r->carrier->ranks * sizeof *r->send_bytes);
  memset(r->receive_bytes, 0, (size_t)r->carrier->ranks * sizeof *r->receive_bytes);
}

static void post_as(ts_ranks *r, ts_phase phase, int owner) {
  ts_carrier *carrier = r->carrier;
  int64_t now = ts_system_ns(), most = r->exchange.header.sequence == 0 && r->meet_ns ? r->meet_ns : r->timeout_ns;
  r->phase = phase;
  r->exchange.deadline_ns = most > 0 && most < INT64_MAX - now ? now + most : INT64_MAX;
  atomic_store(&r->owner, owner);
  /* A thread that another group could use returns at once. */
  bool helps = owner == POSTED && atomic_load(&carrier->groups) == 1;
  carrier->post(carrier, &r->exchange, helps ? HELP_NS : 0);
}

void ts_ranks_note(ts_ranks *r, uint64_t what) { r->exchange.header.path = mix(r->exchange.header.path, what); }

void ts_ranks_post_end(ts_ranks *r) {
  ts_ranks_note(r, TS_PHASE_END);
  post_as(r, TS_PHASE_END, POSTED);
}

static void set_failure(ts_ranks *r, ts_code code, const char *text) {
  ts_ranks_release(r);
  r->exchange.header.code = (uint32_t)code;
  snprintf(r->exchange.header.text, sizeof r->exchange.header.text, "%s", text);
}

void ts_ranks_post_failure(ts_ranks *r, ts_status status) {
  r->failure = status;
  set_failure(r, ts_status_code(status), ts_status_message(status));
  post_as(r, TS_PHASE_FAILURE, POSTED);
}

ts_shares ts_ranks_shares(const ts_ranks *r, const ts_collective *collective) {
  return (ts_shares){collective, r->carrier->rank, r->carrier->ranks};
}

/* Puts the blocks of all ranks behind each other; returns their bytes. */
static int64_t lay_out(const int64_t *bytes, int64_t *at, int32_t ranks) {
  int64_t sum = 0;
  for (int32_t i = 0; i < ranks; i++) {
    at[i] = sum;
    sum += (bytes[i] + 63) / 64 * 64;
  }
  return sum;
}

ts_status ts_ranks_post(ts_ranks *r, ts_phase phase, const ts_shares *shares, const ts_collective_memory *memory) {
  int32_t round = phase == TS_PHASE_SUMS ? 1 : 0;
  char *blocks[TS_MAX_RANKS];
  void *block = NULL;
  ts_shares_count(shares, round, r->send_bytes, r->receive_bytes);
  int64_t sent = lay_out(r->send_bytes, r->send_at, shares->ranks),
          received = lay_out(r->receive_bytes, r->receive_at, shares->ranks);
  r->block_bytes = sent + received > 0 ? sent + received : 64;
  TS_TRY(ts_pool_alloc(r->pool, r->block_bytes, &block));
  r->block = block;
  r->exchange.send = r->block;
  r->exchange.receive = r->block + sent;
  for (int32_t i = 0; i < shares->ranks; i++) blocks[i] = r->block + r->send_at[i];
  ts_shares_pack(shares, round, memory, blocks);
  post_as(r, phase, POSTED);
  return TS_SUCCESS;
}

/* ---- results of exchanges ---- */

ts_phase ts_ranks_phase(const ts_ranks *r) { return r->phase; }

bool ts_ranks_over(const ts_ranks *r) { return r->over; }

bool ts_ranks_arrived(ts_ranks *r) {
  int owner = POSTED;
  return !atomic_compare_exchange_strong(&r->owner, &owner, WAITED_FOR) && owner == ARRIVED;
}

/* The end of an exchange that has arrived. After an error there is no other one. */
static ts_status take(ts_ranks *r) {
  ts_status status = r->arrived;
  r->arrived = TS_SUCCESS;
  atomic_store(&r->owner, IDLE);
  if (!status) status = ts_carrier_check(r->headers, r->carrier->ranks);
  r->over = status || r->phase == TS_PHASE_END || r->phase == TS_PHASE_FAILURE;
  r->phase = TS_PHASE_NONE;
  r->exchange.header.sequence++;
  return status;
}

ts_status ts_ranks_take(ts_ranks *r, const char **blocks) {
  for (int32_t i = 0; i < r->carrier->ranks; i++) blocks[i] = r->exchange.receive + r->receive_at[i];
  ts_status status = take(r);
  if (!status || !r->failure) return status;
  ts_status_free(status); /* the error that the others get from this rank */
  status = r->failure;
  r->failure = TS_SUCCESS;
  return status;
}

/* ---- the end ---- */

static void destroy(ts_ranks *r) {
  ts_status_free(r->failure);
  ts_ranks_release(r);
  atomic_fetch_sub(&r->carrier->groups, 1);
  ts_free(r);
}

/* Ends an exchange whose group was abandoned: tells the other ranks that the run failed, and frees `r` when they have
 * been told. Only the thread that owns `r` calls it. */
static void settle(ts_ranks *r) {
  if (r->phase != TS_PHASE_NONE) ts_status_free(take(r));
  if (r->over) {
    destroy(r);
    return;
  }
  if (r->exchange.header.code == TS_OK) set_failure(r, TS_CANCELLED, "the run was abandoned");
  post_as(r, TS_PHASE_FAILURE, ABANDONED);
}

void ts_ranks_end(ts_ranks *r, ts_status status) {
  if (!r) return;
  if (r->phase != TS_PHASE_NONE && atomic_exchange(&r->owner, ABANDONED) != ARRIVED) return; /* exchange_done settles */
  if (status && !r->over && r->phase == TS_PHASE_NONE)
    set_failure(r, ts_status_code(status), ts_status_message(status));
  settle(r);
}
