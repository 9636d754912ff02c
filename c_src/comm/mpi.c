#include "comm/mpi.h"

#include "comm/agree.h"
#include "comm/bells.h"
#include "comm/watch.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* Later calls test these requests; the checker does not follow that:
 * NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

enum {
  HEADER_TAG = 0,
  TAGS = 32767,         /* MPI allows at least these */
  PART_HERE = 1 << 30,  /* bytes of a block that are a message, where all ranks are on one host */
  PARTS = 2,            /* messages of a block that are on their way: they arrive at about the same time */
  SPIN_NS = 50000,      /* how long nothing may arrive before the thread sleeps between polls, where ranks have CPUs */
  SLEEP_NS = 50000,     /* between two polls, if some ranks are on other hosts: they have no bell here */
  BLOCKS_NS = 200000,   /* between two polls while blocks are on their way, if all ranks are on this host: a part may
                           arrive without a ring, */
  HEADERS_NS = 1000000, /* and while headers are */
  SPIN_BYTES_NS = 4,    /* for each of this number of bytes on their way the thread spins one nanosecond more */
  LOOKS = 16,           /* at the clock, in the time that a rank may be silent */
  IDLE_MS = 100,        /* between two polls where nothing is on its way, at most */
  FAREWELLS = 2,        /* the second says that the sender has heard the first of all ranks */
};

/* The kinds of messages: a header of an exchange, a question for a sign of life, its answer, or that the sender leaves.
 */
typedef enum message_kind { HEADER, ASK, ANSWER, FAREWELL } message_kind;

/* A header as it is sent, with the tag of the sender's blocks. */
typedef struct message {
  ts_carrier_header header;
  int32_t tag;
  int32_t kind;
} message;

/* The signs of life of another rank, and its farewells: FAREWELLS from it and to it. */
typedef struct life {
  int64_t asked_ns; /* when the first question was sent that has no answer; 0: none */
  int32_t heard, told;
  MPI_Request request; /* of `pulse`, one at a time */
  message pulse;
} life;

/* A header that came before its exchange was posted here. */
typedef struct early {
  struct early *next;
  int32_t from;
  message message;
} early;

/* The unstarted rest of the bytes from or to another rank. */
typedef struct block {
  int32_t peer;
  char *receive;    /* NULL: it is sent */
  const char *send; /* or where it is received NULL */
  int64_t left;
} block;

/* An exchange on its way. */
typedef struct slot {
  struct slot *next;
  ts_exchange *exchange;
  ts_carrier_header *headers; /* of all ranks */
  message out;
  bool has_blocks;       /* all headers are there, and blocks are on their way */
  bool complete;         /* all headers are there */
  int32_t heard;         /* headers of other ranks */
  int32_t *tags;         /* of each rank's blocks; -1: its header is not there */
  MPI_Request *requests; /* of headers to each peer, nth_peer(), then of parts of blocks */
  int32_t *owners;       /* the block of each request, except headers */
  block *blocks;
  int count, block_count;
  int64_t bytes;
} slot;

typedef struct job {
  ts_carrier carrier;
  ts_mpi_core core;
  ts_mpi_options *options; /* the caller's, while it is opened */
  int64_t patience_ns, part_bytes;
  MPI_Comm comm;
  ts_bells bells;
  ts_watch watch;  /* of the driver, while it drives */
  bool *to_ring;   /* each rank: something was sent to it */
  bool *awaited;   /* each rank: room for a look at all of them */
  int32_t *hosts;  /* of each rank: the first rank of its host */
  bool crowded;    /* this host has more ranks than CPUs */
  bool can_change; /* another thread than the job's may call MPI while the job's does not */
  char version[TS_MPI_VERSION_TEXT];
  pthread_mutex_t lock;
  pthread_cond_t wake;       /* the job's thread: the helper has stopped */
  pthread_cond_t changed;    /* its callers: opened, ended or closed */
  pthread_cond_t handed;     /* the helper: the driver has stopped */
  ts_exchange *first, *last; /* posted; linked by `carrier` */
  bool opened, closing, closed;
  bool ended;       /* its thread calls MPI no more, but to finalize it */
  ts_status failed; /* of opening */
  bool leaves;      /* it is closed, and tells the others */
  bool driven;      /* a thread, the driver, calls MPI without the lock */
  bool has_helper;  /* a thread in post() is the driver, or will be next */
  /* The driver's own, or, while there is none, the lock's. */
  const ts_exchange *helped; /* the helper's, until it is done */
  slot *active;
  early *early;
  life *lives;
  int64_t looked_ns; /* at the clock */
  int32_t next_tag;
  _Atomic int64_t sent, received; /* bytes */
  bool broken;
  char why[160];
} job;

/* ---- the end of exchanges */

static void free_slot(slot *s) {
  free(s->headers), free(s->tags), free(s->requests), free(s->owners), free(s->blocks), free(s);
}

static ts_status broken_error(const job *j) { return j->core.error(TS_UNAVAILABLE, "%s", j->why); }

static void end_exchange(job *j, ts_exchange *exchange, ts_status status) {
  if (j->helped == exchange) j->helped = NULL;
  ts_watch_pass(&j->watch);
  exchange->done(exchange, status); /* calls no MPI */
  ts_watch_pass(&j->watch);
}

static void finish(job *j, slot *s, ts_status status) {
  s->exchange->headers = s->headers;
  end_exchange(j, s->exchange, status);
  free_slot(s);
}

/* MPI must not be called after this: the memory of its requests may be freed. */
static void break_job(job *j, const char *what, int32_t rank) {
  if (j->broken) return;
  j->broken = true;
  if (rank < 0)
    snprintf(j->why, sizeof j->why, "MPI: %s", what);
  else
    snprintf(j->why, sizeof j->why, "rank %d %s", rank, what);
}

static bool is_good(job *j, int code) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length;
  if (code == MPI_SUCCESS) return true;
  MPI_Error_string(code, text, &length);
  break_job(j, text, -1);
  return false;
}

static void fail_all(job *j) {
  while (j->active) {
    slot *s = j->active;
    j->active = s->next;
    finish(j, s, broken_error(j));
  }
}

/* ---- messages */

/* Only the driver writes. */
static void count_bytes(_Atomic int64_t *count, int64_t bytes) {
  atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + bytes, memory_order_relaxed);
}

/* Starts the next part of a block with this request. Parts arrive in their order. A send of a small one would end at
 * once, before it has left; a synchronous one ends when it is received. */
static void move_part(job *j, slot *s, int at) {
  block *b = &s->blocks[s->owners[at]];
  int size = (int)(b->left < j->part_bytes ? b->left : j->part_bytes);
  b->left -= size;
  j->to_ring[b->peer] = true;
  if (b->receive) {
    count_bytes(&j->received, size);
    is_good(j, MPI_Irecv(b->receive, size, MPI_BYTE, b->peer, s->tags[b->peer], j->comm, &s->requests[at]));
    b->receive += size;
  } else {
    count_bytes(&j->sent, size);
    const bool in_parts = j->part_bytes < PART_HERE;
    is_good(j, (in_parts ? MPI_Issend : MPI_Isend)(b->send, size, MPI_BYTE, b->peer, s->out.tag, j->comm,
                                                   &s->requests[at]));
    b->send += size;
  }
}

/* A block from or to a rank. */
static void move_block(job *j, slot *s, block moved) {
  s->bytes += moved.left;
  s->blocks[s->block_count] = moved;
  for (int n = 0; n < PARTS && s->blocks[s->block_count].left > 0 && !j->broken; n++) {
    s->owners[s->count] = s->block_count;
    s->requests[s->count] = MPI_REQUEST_NULL;
    move_part(j, s, s->count++);
  }
  s->block_count++;
}

/* Each rank begins with the next one, so that not all send to the same. */
static int32_t nth_peer(const job *j, int32_t n) { return (j->carrier.rank + n) % j->carrier.ranks; }

/* How many blocks are for ranks below this one. */
static int32_t count_below(const job *j, const ts_carrier_block *blocks, int32_t count) {
  int32_t below = 0;
  while (below < count && blocks[below].rank < j->carrier.rank) below++;
  return below;
}

static void move_blocks(job *j, slot *s) {
  const ts_exchange *e = s->exchange;
  const int32_t sends = e->send_count, receives = e->receive_count;
  const int32_t next = count_below(j, e->sends, sends), before = count_below(j, e->receives, receives);
  for (int32_t n = 0; (n < sends || n < receives) && !j->broken; n++) {
    if (n < receives) {
      const ts_carrier_block *b = &e->receives[(before + receives - 1 - n) % receives];
      move_block(j, s, (block){b->rank, e->receive + b->at, NULL, b->bytes});
    }
    if (n < sends) {
      const ts_carrier_block *b = &e->sends[(next + n) % sends];
      move_block(j, s, (block){b->rank, NULL, e->send + b->at, b->bytes});
    }
  }
}

static void send_headers(job *j, slot *s) {
  for (int32_t n = 1; n < j->carrier.ranks && !j->broken; n++) {
    int32_t to = nth_peer(j, n);
    s->requests[s->count] = MPI_REQUEST_NULL;
    if (!is_good(j, MPI_Isend(&s->out, sizeof s->out, MPI_BYTE, to, HEADER_TAG, j->comm, &s->requests[s->count])))
      return;
    s->count++;
    count_bytes(&j->sent, sizeof s->out);
    j->to_ring[to] = true;
  }
}

/* ---- headers that arrive */

static void take_header(slot *s, int32_t from, const message *m) {
  s->headers[from] = m->header;
  s->tags[from] = m->tag;
  s->heard++;
}

static slot *find_slot(const job *j, int32_t from, uint64_t run) {
  for (slot *s = j->active; s; s = s->next)
    if (s->out.header.run == run && s->tags[from] < 0) return s;
  return NULL;
}

static void keep_early(job *j, int32_t from, const message *m) {
  early **end = &j->early, *e = malloc(sizeof *e);
  if (!e) {
    break_job(j, "no memory for a header", -1);
    return;
  }
  *e = (early){.from = from, .message = *m};
  while (*end) end = &(*end)->next;
  *end = e;
}

/* The first early header of each rank. */
static void take_early(job *j, slot *s) {
  for (early **at = &j->early; *at;) {
    early *e = *at;
    if (e->message.header.run == s->out.header.run && s->tags[e->from] < 0) {
      take_header(s, e->from, &e->message);
      *at = e->next;
      free(e);
    } else {
      at = &e->next;
    }
  }
}

/* Returns whether it was sent. While one is on its way to that rank another one is not; look_at() asks again. */
static bool send_pulse(job *j, int32_t to, message_kind kind) {
  life *p = &j->lives[to];
  int sent = 1;
  if (p->request != MPI_REQUEST_NULL && !is_good(j, MPI_Test(&p->request, &sent, MPI_STATUS_IGNORE))) return false;
  if (!sent) return false;
  p->pulse = (message){.kind = kind};
  count_bytes(&j->sent, sizeof p->pulse);
  j->to_ring[to] = true;
  return is_good(j, MPI_Isend(&p->pulse, sizeof p->pulse, MPI_BYTE, to, HEADER_TAG, j->comm, &p->request));
}

static void take_message(job *j, int32_t from, const message *m) {
  slot *s = m->kind == HEADER ? find_slot(j, from, m->header.run) : NULL;
  j->lives[from].asked_ns = 0;
  if (s)
    take_header(s, from, m);
  else if (m->kind == HEADER)
    keep_early(j, from, m);
  else if (m->kind == ASK)
    send_pulse(j, from, ANSWER);
  else if (m->kind == FAREWELL)
    j->lives[from].heard++;
}

static bool receive_headers(job *j) {
  bool any = false;
  for (int found = 1; found && !j->broken;) {
    MPI_Status status;
    message m;
    if (!is_good(j, MPI_Iprobe(MPI_ANY_SOURCE, HEADER_TAG, j->comm, &found, &status)) || !found) break;
    if (!is_good(j, MPI_Recv(&m, sizeof m, MPI_BYTE, status.MPI_SOURCE, HEADER_TAG, j->comm, &status))) break;
    count_bytes(&j->received, sizeof m);
    take_message(j, status.MPI_SOURCE, &m);
    any |= m.kind == HEADER;
  }
  return any;
}

/* ---- exchanges */

static bool is_taken(const job *j, int32_t tag) {
  for (slot *s = j->active; s; s = s->next)
    if (s->out.tag == tag) return true;
  return false;
}

static int32_t new_tag(job *j) {
  for (int32_t tries = 0; tries < TAGS; tries++) {
    j->next_tag = j->next_tag % TAGS + 1;
    if (!is_taken(j, j->next_tag)) return j->next_tag;
  }
  break_job(j, "too many exchanges at a time", -1);
  return 0;
}

static slot *new_slot(const job *j, ts_exchange *exchange) {
  slot *s = calloc(1, sizeof *s);
  size_t ranks = (size_t)j->carrier.ranks, blocks = (size_t)exchange->send_count + (size_t)exchange->receive_count,
         requests = ranks - 1 + blocks * PARTS;
  if (!s) return NULL;
  *s = (slot){.exchange = exchange,
              .headers = malloc(ranks * sizeof *s->headers),
              .out = {.header = exchange->header},
              .tags = malloc(ranks * sizeof *s->tags),
              .requests = malloc(requests * sizeof *s->requests + 1),
              .owners = malloc(requests * sizeof *s->owners + 1),
              .blocks = malloc(blocks * sizeof *s->blocks + 1)};
  if (!s->headers || !s->tags || !s->requests || !s->owners || !s->blocks) {
    free_slot(s);
    return NULL;
  }
  for (size_t r = 0; r < ranks; r++) s->tags[r] = -1;
  s->headers[j->carrier.rank] = exchange->header;
  return s;
}

/* If this allocation fails the job is ended, since other ranks would wait for this one. */
static void begin(job *j, ts_exchange *exchange) {
  slot *s = new_slot(j, exchange);
  if (!s) break_job(j, "no memory for an exchange", -1);
  if (s && !j->broken) s->out.tag = new_tag(j);
  if (!s || j->broken) {
    if (s) free_slot(s);
    end_exchange(j, exchange, broken_error(j));
    return;
  }
  s->next = j->active;
  j->active = s;
  send_headers(j, s);
  take_early(j, s);
}

/* The rank at the other end of a request. */
static int32_t peer_of(const job *j, const slot *s, int request) {
  return request < j->carrier.ranks - 1 ? nth_peer(j, request + 1) : s->blocks[s->owners[request]].peer;
}

static int32_t find_silent(const job *j, const slot *s) {
  for (int32_t n = 1; n < j->carrier.ranks; n++)
    if (s->tags[nth_peer(j, n)] < 0) return nth_peer(j, n);
  for (int i = 0; i < s->count; i++)
    if (s->requests[i] != MPI_REQUEST_NULL) return peer_of(j, s, i);
  return nth_peer(j, 1);
}

/* Notes a request that has ended, and starts the next part of its block. Who sent a part has to hear that it was taken.
 * Headers are answered by nothing. A part that arrived, or was taken, is a sign of life: questions and answers wait
 * behind parts on a slow network. Of a rank that is stopped, the system takes some megabytes. */
static void note_end(job *j, slot *s, int request) {
  if (request < j->carrier.ranks - 1) return;
  int32_t peer = peer_of(j, s, request);
  j->to_ring[peer] = true;
  j->lives[peer].asked_ns = 0;
  if (s->blocks[s->owners[request]].left > 0 && !j->broken) move_part(j, s, request);
}

/* Continues one exchange; returns whether something arrived. */
static bool advance(job *j, slot *s, bool *out_done) {
  int left = 0, some = 0, indices[64];
  bool moved = false;
  *out_done = false;
  if (!s->complete && s->heard == j->carrier.ranks - 1) {
    s->complete = moved = true;
    s->has_blocks = j->core.agrees(s->headers, j->carrier.ranks);
    if (s->has_blocks) move_blocks(j, s);
  }
  for (int at = 0; at < s->count && !j->broken; at += 64) {
    int size = s->count - at < 64 ? s->count - at : 64;
    if (!is_good(j, MPI_Testsome(size, s->requests + at, &some, indices, MPI_STATUSES_IGNORE))) return true;
    if (some > 0) moved = true;
    for (int i = 0; i < some; i++) note_end(j, s, at + indices[i]);
  }
  for (int i = 0; i < s->count; i++) left += s->requests[i] != MPI_REQUEST_NULL;
  *out_done = s->complete && left == 0 && !j->broken;
  return moved;
}

/* ---- signs of life */

/* The ranks that exchanges, or the farewells, wait for. */
static void find_awaited(const job *j) {
  for (int32_t r = 0; r < j->carrier.ranks; r++)
    j->awaited[r] = j->leaves && r != j->carrier.rank && j->lives[r].heard < FAREWELLS;
  for (const slot *s = j->active; s; s = s->next) {
    for (int32_t r = 0; r < j->carrier.ranks; r++) j->awaited[r] |= r != j->carrier.rank && s->tags[r] < 0;
    for (int i = 0; i < s->count; i++)
      if (s->requests[i] != MPI_REQUEST_NULL) j->awaited[peer_of(j, s, i)] = true;
  }
}

static void look_at(job *j, int32_t rank, int64_t now) {
  life *p = &j->lives[rank];
  if (p->asked_ns == 0) p->asked_ns = now;
  if (now - p->asked_ns > j->patience_ns)
    break_job(j, "did not answer before the deadline", rank);
  else
    send_pulse(j, rank, ASK); /* at each look: a rank must not be lost because its answer was not sent */
}

/* A look that is late, because this process was stopped or had no CPU, judges no rank: answers may have come that are
 * not received yet. */
static void look_at_peers(job *j) {
  int64_t now = j->core.now_ns(), passed = now - j->looked_ns;
  if (!j->patience_ns || j->broken || passed < j->patience_ns / LOOKS) return;
  j->looked_ns = now;
  find_awaited(j);
  for (int32_t n = 1; n < j->carrier.ranks && !j->broken; n++) {
    int32_t rank = nth_peer(j, n);
    if (passed > j->patience_ns / 2) j->lives[rank].asked_ns = 0;
    if (j->awaited[rank]) look_at(j, rank, now);
  }
}

/* ---- farewells ----
 * MPI waits for all ranks while it is finalized, without looking for signs of life, and computes meanwhile. So a rank
 * says farewell to the others, and finalizes MPI when it has heard all of theirs. Until then it answers questions, asks
 * those that it waits for, and sleeps. The second farewell leaves no more than an instant in which a rank that stops is
 * not found; close_job() limits how long that takes. */

static int32_t farewells_of_all(const job *j) {
  int32_t least = FAREWELLS;
  for (int32_t r = 0; r < j->carrier.ranks; r++)
    if (r != j->carrier.rank && j->lives[r].heard < least) least = j->lives[r].heard;
  return least;
}

static void say_farewell(job *j) {
  int32_t due = farewells_of_all(j) > 0 ? FAREWELLS : 1;
  for (int32_t n = 1; n < j->carrier.ranks && !j->broken; n++) {
    life *p = &j->lives[nth_peer(j, n)];
    if (p->told < due && send_pulse(j, nth_peer(j, n), FAREWELL)) p->told++;
  }
}

static bool has_said_farewell(const job *j) {
  if (j->broken) return true;
  for (int32_t r = 0; r < j->carrier.ranks; r++)
    if (r != j->carrier.rank && j->lives[r].told < FAREWELLS) return false;
  return farewells_of_all(j) == FAREWELLS;
}

static bool advance_all(job *j) {
  bool moved = receive_headers(j), done;
  int64_t now = j->core.now_ns();
  for (slot **at = &j->active; *at && !j->broken;) {
    slot *s = *at;
    moved |= advance(j, s, &done);
    if (done) {
      *at = s->next;
      finish(j, s, TS_SUCCESS);
    } else {
      if (now > s->exchange->deadline_ns)
        break_job(j,
                  s->complete ? "did not answer before the deadline" : "did not make the same call before the deadline",
                  find_silent(j, s));
      at = &s->next;
    }
  }
  return moved;
}

/* ---- who calls MPI ----
 * One thread at a time, the driver: the job's thread, or one in post(), the helper, because to wake two threads takes
 * longer than a small exchange. The job's thread sleeps while there is a helper, and continues when it stops. */

static int64_t bytes_on_the_way(const job *j) {
  int64_t bytes = 0;
  for (const slot *s = j->active; s; s = s->next) bytes += s->bytes;
  return bytes;
}

static ts_exchange *take_posted(job *j) {
  ts_exchange *first = j->first;
  j->first = j->last = NULL;
  return first;
}

/* The lock is held before and after, not meanwhile. */
static void sleep_at_bell(job *j, uint32_t seen, int64_t ns) {
  pthread_mutex_unlock(&j->lock);
  ts_bells_sleep(&j->bells, seen, ns);
  pthread_mutex_lock(&j->lock);
}

static void ring_others(job *j) {
  for (int32_t r = 0; r < j->carrier.ranks; r++) {
    if (j->to_ring[r]) ts_bells_ring(&j->bells, r);
    j->to_ring[r] = false;
  }
}

static void begin_all(job *j, ts_exchange *posted) {
  while (posted) {
    ts_exchange *next = posted->carrier;
    posted->carrier = NULL;
    begin(j, posted);
    posted = next;
  }
}

/* Starts the posted exchanges and continues all exchanges once; returns whether anything moved. The lock is held before
 * and after, not meanwhile. */
static bool drive_once(job *j) {
  ts_exchange *posted = take_posted(j);
  bool moved = posted != NULL;
  j->driven = true;
  pthread_mutex_unlock(&j->lock);
  ts_watch_pass(&j->watch);
  begin_all(j, posted);
  if (!j->broken) moved |= advance_all(j);
  if (j->leaves && !j->broken) say_farewell(j);
  look_at_peers(j);
  if (j->broken) fail_all(j);
  ring_others(j);
  ts_watch_pass(&j->watch);
  pthread_mutex_lock(&j->lock);
  j->driven = false;
  return moved;
}

/* A rank that polls takes the CPU of the awaited rank, where they share it. */
static int64_t spin_ns(const job *j) { return j->crowded ? 0 : SPIN_NS + bytes_on_the_way(j) / SPIN_BYTES_NS; }

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

static bool all_have_bells(const job *j) {
  return j->bells.ranks_here == j->carrier.ranks && j->bells.own != &j->bells.alone;
}

/* The longest time between two polls for questions: ranks may be asked for a sign of life, and a rank without exchanges
 * must answer. */
static int64_t idle_ns(const job *j) {
  int64_t most = (int64_t)IDLE_MS * 1000000;
  return j->patience_ns ? min_of(j->patience_ns / LOOKS, most) : most;
}

/* The longest sleep at the bell. */
static int64_t nap_ns(const job *j) {
  if (!j->active) return j->leaves && !all_have_bells(j) ? HEADERS_NS : idle_ns(j);
  if (!all_have_bells(j)) return SLEEP_NS;
  return bytes_on_the_way(j) > 0 ? BLOCKS_NS : HEADERS_NS;
}

/* Drives once; if nothing has moved for some time, twice, and sleeps until the bell rings. The lock is held. MPI_Iprobe
 * looks before it takes in arrived messages, so only the second look after ts_bells_listen() finds all of them. The
 * job's thread does not look twice once there is a helper, because it would take the helper's exchange. */
static void drive_or_sleep(job *j, int64_t *moved_at, int64_t most_ns) {
  bool helps = j->helped != NULL, tired = j->core.now_ns() - *moved_at > spin_ns(j);
  uint32_t seen = tired ? ts_bells_listen(&j->bells) : 0;
  bool moved = drive_once(j), is_other = j->has_helper && !helps;
  if (!moved && tired && !is_other) moved = drive_once(j);
  if (moved)
    *moved_at = j->core.now_ns();
  else if (tired && !j->first && !is_other)
    sleep_at_bell(j, seen, min_of(nap_ns(j), most_ns));
  if (tired) ts_bells_stop_listening(&j->bells);
}

/* Waits until there is work for the job's thread, or the time is over; returns whether the time is over. It does not
 * wait at the bell, which would wake it each time that another rank rings for the helper. The lock is held. */
static bool rest(job *j) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  int64_t ns = until.tv_nsec + idle_ns(j);
  until = (struct timespec){.tv_sec = until.tv_sec + (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  return pthread_cond_timedwait(&j->wake, &j->lock, &until) == ETIMEDOUT;
}

/* Whether all exchanges are done and all ranks have left. */
static bool is_over(const job *j) {
  return !j->has_helper && j->leaves && !j->first && !j->active && has_said_farewell(j);
}

/* Until it is closed, nothing is on its way, and all ranks leave. */
static void serve(job *j) {
  int64_t moved_at = 0;
  pthread_mutex_lock(&j->lock);
  while (!is_over(j)) {
    if (!j->has_helper && j->closing && !j->active && !j->first) j->leaves = true;
    if (!j->has_helper && (j->active || j->first || j->leaves))
      drive_or_sleep(j, &moved_at, INT64_MAX);
    else if (rest(j) && !j->has_helper)
      drive_once(j);
    if (j->has_helper) pthread_cond_signal(&j->handed);
  }
  j->ended = true;
  pthread_cond_broadcast(&j->changed);
  pthread_mutex_unlock(&j->lock);
}

/* The lock is held. */
static void wake_thread(job *j) {
  pthread_cond_signal(&j->wake);
  ts_bells_ring_own(&j->bells); /* its last sleep may be long */
}

/* Drives until the posted exchange is done, or the time is over. The lock is held. Where bytes cross a network, the
 * job's thread looks once more whether all have left. */
static void help(job *j, const ts_exchange *posted, int64_t ns) {
  int64_t now = j->core.now_ns(), until = now + ns, moved_at = now;
  j->has_helper = true;
  while (j->driven) pthread_cond_wait(&j->handed, &j->lock);
  j->helped = posted;
  while (j->helped && (now = j->core.now_ns()) < until) drive_or_sleep(j, &moved_at, until - now);
  j->helped = NULL;
  j->has_helper = false;
  if (j->active || j->first || j->closing || !all_have_bells(j)) wake_thread(j);
}

static bool has_more_ranks_than_cpus(const job *j) {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && j->bells.ranks_here > CPU_COUNT(&cpus);
}

/* Memory by rank; it lives as long as the process. */
static bool allocate(job *j) {
  const size_t ranks = (size_t)j->carrier.ranks;
  j->lives = calloc(ranks, sizeof *j->lives);
  j->to_ring = calloc(ranks, sizeof *j->to_ring);
  j->awaited = calloc(ranks, sizeof *j->awaited);
  j->hosts = calloc(ranks, sizeof *j->hosts);
  return j->lives && j->to_ring && j->awaited && j->hosts;
}

/* A host has the number of its first rank. */
static void find_hosts(job *j) {
  int32_t own = j->carrier.rank, first = own;
  MPI_Allreduce(&own, &first, 1, MPI_INT32_T, MPI_MIN, j->bells.host);
  MPI_Allgather(&first, 1, MPI_INT32_T, j->hosts, 1, MPI_INT32_T, j->comm);
  j->carrier.hosts = j->hosts;
}

static ts_status meet(job *j) {
  if (!allocate(j) || !ts_bells_open(&j->bells, j->comm))
    return j->core.error(TS_RESOURCE_EXHAUSTED, "no memory for MPI's carrier");
  find_hosts(j);
  for (int32_t r = 0; r < j->carrier.ranks; r++) j->lives[r].request = MPI_REQUEST_NULL;
  j->crowded = has_more_ranks_than_cpus(j);
  const int32_t here = j->bells.ranks_here, elsewhere = j->carrier.ranks - here;
  if (j->options->part_bytes == 0)
    j->options->part_bytes = elsewhere > 0 ? ts_mpi_part_bytes(here, elsewhere) : PART_HERE;
  TS_TRY(ts_mpi_agree(&j->core, j->comm, j->options));
  j->part_bytes = j->options->part_bytes;
  return TS_SUCCESS;
}

static ts_status initialize(job *j) {
  int provided, ranks, rank, length;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    return j->core.error(TS_FAILED_PRECONDITION, "MPI does not start");
  j->can_change = provided >= MPI_THREAD_SERIALIZED;
  MPI_Comm_dup(MPI_COMM_WORLD, &j->comm);
  MPI_Comm_set_errhandler(j->comm, MPI_ERRORS_RETURN);
  MPI_Comm_size(j->comm, &ranks);
  MPI_Comm_rank(j->comm, &rank);
  MPI_Get_library_version(version, &length);
  snprintf(j->version, sizeof j->version, "%.*s", (int)strcspn(version, ",\n"), version);
  j->carrier.rank = rank, j->carrier.ranks = ranks;
  return meet(j);
}

static void note(job *j, bool *event) {
  pthread_mutex_lock(&j->lock);
  *event = true;
  pthread_cond_broadcast(&j->changed);
  pthread_mutex_unlock(&j->lock);
}

static void *main_of_thread(void *arg) {
  job *j = arg;
  prctl(PR_SET_TIMERSLACK, 1000UL); /* else a short sleep takes twice its time */
  j->failed = initialize(j);
  note(j, &j->opened);
  if (j->failed) return NULL;
  ts_watch_start(&j->watch, j->patience_ns);
  serve(j);
  ts_watch_stop(&j->watch);
  if (!j->broken) {
    ts_bells_close(&j->bells);
    MPI_Finalize();
  }
  note(j, &j->closed);
  return NULL;
}

/* ---- the carrier's functions ---- */

static void post(ts_carrier *self, ts_exchange *exchange, int64_t help_ns) {
  job *j = self->context;
  exchange->carrier = NULL;
  pthread_mutex_lock(&j->lock);
  if (j->ended) {
    pthread_mutex_unlock(&j->lock);
    exchange->done(exchange, j->broken ? broken_error(j) : j->core.error(TS_UNAVAILABLE, "MPI was finalized"));
    return;
  }
  if (j->last)
    j->last->carrier = exchange;
  else
    j->first = exchange;
  j->last = exchange;
  if (help_ns > 0 && j->can_change && !j->has_helper)
    help(j, exchange, help_ns);
  else
    wake_thread(j);
  pthread_mutex_unlock(&j->lock);
}

static job *new_job(const ts_mpi_core *core, ts_mpi_options *options) {
  pthread_condattr_t monotonic;
  job *j = calloc(1, sizeof *j);
  if (!j) return NULL;
  j->core = *core;
  j->options = options;
  j->patience_ns = options->patience_ns;
  j->carrier = (ts_carrier){.post = post, .context = j};
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&j->lock, NULL);
  pthread_cond_init(&j->wake, &monotonic);
  pthread_cond_init(&j->changed, &monotonic);
  pthread_cond_init(&j->handed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return j;
}

static ts_status open_job(const ts_mpi_core *core, ts_mpi_options *options, ts_carrier **out) {
  static job *only;
  pthread_t thread;
  if (only) return core->error(TS_FAILED_PRECONDITION, "MPI was started before in this process");
  job *j = only = new_job(core, options);
  if (!j) return core->error(TS_RESOURCE_EXHAUSTED, "no memory for MPI's carrier");
  if (pthread_create(&thread, NULL, main_of_thread, j)) return core->error(TS_RESOURCE_EXHAUSTED, "no thread for MPI");
  pthread_detach(thread);
  pthread_mutex_lock(&j->lock);
  while (!j->opened) pthread_cond_wait(&j->changed, &j->lock);
  pthread_mutex_unlock(&j->lock);
  *out = &j->carrier;
  return j->failed;
}

static struct timespec seconds_from_now(int64_t ns) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += (time_t)(ns / 1000000000) + 1;
  return until;
}

/* The lock is held. Returns false when the time is over. */
static bool wait_for(job *j, const bool *event, struct timespec until) {
  int result = 0;
  while (!*event && result == 0) result = pthread_cond_timedwait(&j->changed, &j->lock, &until);
  return *event;
}

/* Where all ranks have left, finalizing takes milliseconds, unless one was stopped since. */
static ts_status close_job(ts_carrier *carrier, int64_t timeout_ns) {
  job *j = carrier->context;
  pthread_mutex_lock(&j->lock);
  j->closing = true;
  wake_thread(j);
  const int64_t last_ns = j->patience_ns ? min_of(j->patience_ns, timeout_ns) : timeout_ns;
  bool closed =
      wait_for(j, &j->ended, seconds_from_now(timeout_ns)) && wait_for(j, &j->closed, seconds_from_now(last_ns));
  pthread_mutex_unlock(&j->lock);
  if (!closed) return j->core.error(TS_FAILED_PRECONDITION, "MPI was not finalized in time");
  return j->broken ? broken_error(j) : TS_SUCCESS;
}

static const char *version(ts_carrier *carrier) { return ((job *)carrier->context)->version; }

static ts_mpi_moved moved_by(ts_carrier *carrier) {
  job *j = carrier->context;
  return (ts_mpi_moved){atomic_load_explicit(&j->sent, memory_order_relaxed),
                        atomic_load_explicit(&j->received, memory_order_relaxed)};
}

#pragma GCC visibility push(default)
extern const ts_mpi_library ts_mpi_table;
const ts_mpi_library ts_mpi_table = {TS_MPI_ABI, open_job, close_job, version, moved_by};
#pragma GCC visibility pop
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */
