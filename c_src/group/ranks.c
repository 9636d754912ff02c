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
  bool over;         /* all ranks know that the run has ended, or nothing can tell them */
  ts_pool *pool;
  ts_shares shares; /* of the present collective */
  int32_t round;    /* the present one */
  char *partial;    /* partial sums, from round to round */
  char *block;      /* of all blocks: first those to send, then those to receive */
  int64_t block_bytes;
  ts_carrier_block *blocks; /* the exchange's two lists */
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
  r->arrived = status ? status : ts_carrier_check(exchange->headers, r->carrier->ranks);
  int owner = atomic_exchange(&r->owner, ARRIVED);
  if (owner == ABANDONED)
    settle(r);
  else if (owner == WAITED_FOR && ready)
    ready(context); /* the group may be advanced, and `r` freed, from now on */
}

/* ---- creation ---- */

static ts_status check_carrier(const ts_carrier *carrier, int32_t partitions) {
  if (carrier->rank < 0 || carrier->rank >= carrier->ranks)
    return ts_error(TS_INVALID_ARGUMENT, "rank %d of %d, expected one of the ranks", carrier->rank, carrier->ranks);
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

ts_status ts_ranks_create(const ts_group_options *options, const ts_executable *exe, ts_ranks **out) {
  ts_ranks *r;
  *out = NULL;
  TS_TRY(check_carrier(options->carrier, exe ? ts_executable_partitions(exe) : 0));
  TS_TRY(TS_NEW(&r));
  r->exchange = (ts_exchange){
      .header = {.run = options->run, .path = exe ? program_hash(exe) : 0}, .done = exchange_done, .context = r};
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

/* Frees the blocks of an exchange: the next one has none. */
static void release_blocks(ts_ranks *r) {
  if (r->block) ts_pool_free(r->pool, r->block, r->block_bytes);
  ts_free(r->blocks);
  r->block = NULL;
  r->blocks = NULL;
  r->exchange.sends = r->exchange.receives = NULL;
  r->exchange.send_count = r->exchange.receive_count = 0;
}

/* Ends a collective. */
static void release(ts_ranks *r) {
  release_blocks(r);
  if (r->partial) ts_pool_free(r->pool, r->partial, r->shares.partial_bytes);
  r->partial = NULL;
  ts_shares_close(&r->shares);
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
  release(r);
  r->exchange.header.code = (uint32_t)code;
  snprintf(r->exchange.header.text, sizeof r->exchange.header.text, "%s", text);
}

void ts_ranks_post_failure(ts_ranks *r, ts_status status) {
  r->failure = status;
  set_failure(r, ts_status_code(status), ts_status_message(status));
  post_as(r, TS_PHASE_FAILURE, POSTED);
}

/* ---- the rounds of a collective ---- */

/* Memory by rank, while an exchange is made or used. */
typedef struct by_rank {
  int64_t *send, *receive;
  char **blocks;
} by_rank;

static ts_status make_by_rank(int32_t ranks, by_rank *out) {
  char *all;
  size_t count = (size_t)ranks;
  TS_TRY(ts_alloc_array(count, 2 * sizeof *out->send + sizeof *out->blocks, (void **)&all));
  *out = (by_rank){(int64_t *)all, (int64_t *)all + count, (char **)((int64_t *)all + 2 * count)};
  return TS_SUCCESS;
}

/* Lists the blocks that have bytes, one behind the other; returns the bytes of all. Blocks are aligned as elements and
 * vectors need. */
static int64_t lay_out(const int64_t *bytes, int32_t ranks, ts_carrier_block *out, int32_t *out_count) {
  int64_t sum = 0;
  *out_count = 0;
  for (int32_t i = 0; i < ranks; i++) {
    int64_t align = bytes[i] < 64 ? 16 : 64;
    if (bytes[i] == 0) continue;
    sum = (sum + align - 1) / align * align;
    out[(*out_count)++] = (ts_carrier_block){i, sum, bytes[i]};
    sum += bytes[i];
  }
  return (sum + 63) / 64 * 64;
}

static int32_t count_blocks(const by_rank *b, int32_t ranks) {
  int32_t count = 0;
  for (int32_t i = 0; i < ranks; i++) count += (b->send[i] > 0) + (b->receive[i] > 0);
  return count;
}

static ts_status allocate_blocks(ts_ranks *r, const by_rank *b) {
  ts_exchange *x = &r->exchange;
  int32_t ranks = r->carrier->ranks;
  void *block;
  TS_TRY(TS_NEW_ARRAY((size_t)count_blocks(b, ranks), &r->blocks));
  x->sends = r->blocks;
  int64_t sent = lay_out(b->send, ranks, r->blocks, &x->send_count);
  x->receives = r->blocks + x->send_count;
  int64_t received = lay_out(b->receive, ranks, r->blocks + x->send_count, &x->receive_count);
  r->block_bytes = sent + received > 0 ? sent + received : 64;
  TS_TRY(ts_pool_alloc(r->pool, r->block_bytes, &block));
  r->block = block;
  x->send = r->block;
  x->receive = r->block + sent;
  return TS_SUCCESS;
}

static ts_status make_exchange(ts_ranks *r, const ts_collective_memory *memory, by_rank *b) {
  ts_shares_count(&r->shares, r->round, b->send, b->receive);
  TS_TRY(allocate_blocks(r, b));
  for (int32_t i = 0; i < r->exchange.send_count; i++)
    b->blocks[r->exchange.sends[i].rank] = r->block + r->exchange.sends[i].at;
  ts_shares_pack(&r->shares, &(ts_shares_round){r->round, memory, r->partial, NULL}, b->blocks);
  return TS_SUCCESS;
}

static ts_status post_round(ts_ranks *r, const ts_collective_memory *memory) {
  by_rank b;
  TS_TRY(make_by_rank(r->carrier->ranks, &b));
  ts_status status = make_exchange(r, memory, &b);
  ts_free(b.send);
  if (status) return status;
  post_as(r, TS_PHASE_ROUND, POSTED);
  return TS_SUCCESS;
}

ts_status ts_ranks_begin(ts_ranks *r, const ts_collective *collective, const ts_collective_memory *memory) {
  void *partial;
  r->round = 0;
  TS_TRY(ts_shares_open(collective, r->carrier, NULL, &r->shares));
  if (r->shares.partial_bytes > 0) {
    TS_TRY(ts_pool_alloc(r->pool, r->shares.partial_bytes, &partial));
    r->partial = partial;
  }
  return post_round(r, memory);
}

static ts_status use_blocks(ts_ranks *r, const ts_collective_memory *memory, const _Atomic bool *cancel) {
  by_rank b;
  TS_TRY(make_by_rank(r->carrier->ranks, &b));
  for (int32_t i = 0; i < r->exchange.receive_count; i++)
    b.blocks[r->exchange.receives[i].rank] = r->exchange.receive + r->exchange.receives[i].at;
  ts_status status =
      ts_shares_finish(&r->shares, &(ts_shares_round){r->round, memory, r->partial, cancel}, (const char **)b.blocks);
  ts_free(b.send);
  return status;
}

ts_status ts_ranks_continue(ts_ranks *r, const ts_collective_memory *memory, const _Atomic bool *cancel,
                            bool *out_done) {
  TS_TRY(use_blocks(r, memory, cancel));
  release_blocks(r);
  *out_done = ++r->round == r->shares.algorithm->rounds;
  if (!*out_done) return post_round(r, memory);
  release(r);
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
  r->over = status || r->phase == TS_PHASE_END || r->phase == TS_PHASE_FAILURE;
  r->phase = TS_PHASE_NONE;
  r->exchange.header.sequence++;
  return status;
}

ts_status ts_ranks_take(ts_ranks *r) {
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
  release(r);
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
