/* Long lines: least significant digit first, from the lowest to the highest bit that differs between keys. Each pass is
 * stable, so the result is. A line is cut into chunks; each counts its digits. From the counts of all chunks follows
 * the place of each chunk's elements of each digit, so that chunks move them independently. */
#include "kernel/sort/sort_radix.h"

#include "kernel/inline.h"
#include "kernel/sort/sort_parts.h"

#define CHUNK_ELEMENTS 65536 /* at least, when threads share a line */
#define MAX_CHUNKS 32
#define DIGIT_BITS 8
/* Elements between two checks of the cancel flag. */
#define CHECK 65536
/* Elements whose keys are made together. */
#define BLOCK 512

typedef struct record {
  uint64_t key, index;
} record;

typedef struct radix radix;
/* Part of a chunk: two streams of elements, each with its own counts, as a count that is raised twice in a row makes
 * the second wait for the first. */
typedef struct span {
  int64_t first, left;   /* where the first stream is, and how many elements of it */
  int64_t second, right; /* the second's: as many or fewer */
  int64_t *counts;       /* of the first digit, then of the second */
} span;

typedef struct radix_kind {
  int record_size;
  void (*make)(radix *r, int64_t begin, int64_t end);
  void (*count)(const radix *r, const span *s);
  void (*move)(const radix *r, const span *s); /* the counts have become offsets */
  void (*finish)(const radix *r, const span *s);
} radix_kind;

struct radix {
  const ts_sort_job *job;
  const radix_kind *kind;
  const ts_parallel *parallel;
  int64_t line; /* the first element */
  int64_t chunk;
  int chunks;
  /* of a pass */
  void *from, *to;
  int shift, bits;
  int64_t *counts;          /* of each chunk's two streams, one after the other */
  _Atomic uint64_t varying; /* bits that differ from the first key */
  _Atomic bool special, stopped;
};

/* Values: the records are keys. */
#define RECORD U
#define DIRECT true
#define KEY(x) (x)
#define MAKE(key, i) (key)
#define PUT(job, size, at, x, i) (((U *)(job)->out)[at] = CAT(ts_sort_value_, BITS)(&(job)->key, x))
#define KIND values_8
#define BITS 8
#include "kernel/sort/sort_radix_body.h"
#define KIND values_16
#define BITS 16
#include "kernel/sort/sort_radix_body.h"
#define KIND values_32
#define BITS 32
#include "kernel/sort/sort_radix_body.h"
#define KIND values_64
#define BITS 64
#include "kernel/sort/sort_radix_body.h"
#undef RECORD
#undef DIRECT
#undef KEY
#undef MAKE
#undef PUT

/* Indices of keys of 8 bits: there is one pass, so that the records, in their places, are the keys. */
#define RECORD uint8_t
#define DIRECT true
#define KEY(x) (x)
#define MAKE(key, i) (key)
#define PUT(job, size, at, x, i) ts_sort_put_index((job)->out, at, size, (uint64_t)(i))
#define KIND indices_8
#define BITS 8
#include "kernel/sort/sort_radix_body.h"
#undef RECORD
#undef DIRECT
#undef KEY
#undef MAKE
#undef PUT

/* Indices below keys of 16 and 32 bits. */
#define RECORD uint64_t
#define DIRECT false
#define KEY(x) ((x) >> 32)
#define MAKE(key, i) ((uint64_t)(key) << 32 | (uint64_t)(i))
#define PUT(job, size, at, x, i) ts_sort_put_index((job)->out, at, size, (uint32_t)(x))
#define KIND indices_16
#define BITS 16
#include "kernel/sort/sort_radix_body.h"
#define KIND indices_32
#define BITS 32
#include "kernel/sort/sort_radix_body.h"
#undef RECORD
#undef DIRECT
#undef KEY
#undef MAKE
#undef PUT

/* Indices beside keys of 64 bits. */
#define RECORD record
#define DIRECT false
#define KEY(x) ((x).key)
#define MAKE(key, i) ((record){key, (uint64_t)(i)})
#define PUT(job, size, at, x, i) ts_sort_put_index((job)->out, at, size, (x).index)
#define KIND indices_64
#define BITS 64
#include "kernel/sort/sort_radix_body.h"

static const radix_kind *kind_of(int width, int index_size) {
  static const radix_kind *const values[] = {&values_8_kind, &values_16_kind, &values_32_kind, &values_64_kind};
  static const radix_kind *const indices[] = {&indices_8_kind, &indices_16_kind, &indices_32_kind, &indices_64_kind};
  return (index_size ? indices : values)[width];
}

static int64_t chunks_of(int64_t n, bool split) {
  int64_t chunks = split ? (n + CHUNK_ELEMENTS - 1) / CHUNK_ELEMENTS : 1;
  return chunks < MAX_CHUNKS ? chunks : MAX_CHUNKS;
}

static int64_t buffer_bytes(const radix_kind *kind, int64_t n) { return ts_pool_padded(n * kind->record_size); }

ts_sort_radix_bytes ts_sort_radix_workspace(const ts_sort_plan *plan, bool split) {
  const radix_kind *kind = kind_of(plan->width, plan->index_size);
  int64_t chunks = chunks_of(plan->n, split), buffer = buffer_bytes(kind, plan->n);
  ts_sort_radix_bytes bytes = {2 * buffer + ((2 * chunks * (int64_t)sizeof(int64_t)) << DIGIT_BITS), 0};
  if (ts_sort_parts_suit(plan->width, plan->index_size, plan->n)) {
    if (split) bytes.line += (ts_sort_parts_gaps() << plan->width) + ts_sort_parts_workspace(plan->width, plan->n);
    bytes.thread = ts_sort_parts_thread(plan->width, plan->n);
  }
  bytes.line = ts_pool_padded(bytes.line);
  return bytes;
}

/* ---- passes */

typedef void (*phase_fn)(radix *r, const span *s);

static void make_span(radix *r, const span *s) {
  r->kind->make(r, s->first, s->first + s->left);
  r->kind->make(r, s->second, s->second + s->right);
}
static void count_span(radix *r, const span *s) { r->kind->count(r, s); }
static void move_span(radix *r, const span *s) { r->kind->move(r, s); }
static void finish_span(radix *r, const span *s) { r->kind->finish(r, s); }

typedef struct phase {
  radix *r;
  phase_fn fn;
} phase;

static int64_t at_most(int64_t a, int64_t most) { return a < 0 ? 0 : a < most ? a : most; }

static bool go_on(radix *r) {
  if (ts_cancelled(r->job->cancel)) atomic_store_explicit(&r->stopped, true, memory_order_relaxed);
  return !atomic_load_explicit(&r->stopped, memory_order_relaxed);
}

static void phase_task(void *arg, int64_t chunk, int worker) {
  (void)worker;
  const phase *p = arg;
  radix *r = p->r;
  int64_t begin = chunk * r->chunk, n = at_most(r->job->n - begin, r->chunk), half = (n + 1) / 2;
  for (int64_t at = 0; at < half && go_on(r); at += CHECK) {
    span s = {.first = begin + at,
              .left = at_most(half - at, CHECK),
              .second = begin + half + at,
              .right = at_most(n - half - at, CHECK),
              .counts = r->counts + (2 * chunk << r->bits)};
    p->fn(r, &s);
  }
}

/* False: it was cancelled, and nothing that it left may be used. */
static bool run_phase(radix *r, phase_fn fn) {
  phase p = {r, fn};
  ts_parallel_run(r->parallel, r->chunks, phase_task, &p);
  return !atomic_load_explicit(&r->stopped, memory_order_relaxed);
}

/* Turns counts into offsets, ordered by digit, then by stream. */
static void set_offsets(radix *r) {
  int64_t digits = INT64_C(1) << r->bits, at = 0;
  for (int64_t d = 0; d < digits; d++) {
    for (int64_t stream = 0; stream < 2 * r->chunks; stream++) {
      int64_t *count = &r->counts[(stream << r->bits) + d], next = at + *count;
      *count = at;
      at = next;
    }
  }
}

static bool pass(radix *r, phase_fn move) {
  memset(r->counts, 0, (2 * (size_t)r->chunks << r->bits) * sizeof(*r->counts));
  if (!run_phase(r, count_span)) return false;
  set_offsets(r);
  return run_phase(r, move);
}

/* Even when all keys are equal there is one pass, of no bits, which moves the elements to the result. */
static bool all_passes(radix *r, void *buffers[2]) {
  uint64_t varying = atomic_load_explicit(&r->varying, memory_order_relaxed);
  int low = varying ? __builtin_ctzll(varying) : 0, high = varying ? 64 - __builtin_clzll(varying) : 0;
  int passes = high == low ? 1 : (high - low + DIGIT_BITS - 1) / DIGIT_BITS;
  for (int i = 0; i < passes; i++) {
    int left = passes - i;
    r->shift = low;
    r->bits = (high - low + left - 1) / left;
    r->from = buffers[i & 1];
    r->to = buffers[~i & 1];
    if (!pass(r, left > 1 ? move_span : finish_span)) return false;
    low += r->bits;
  }
  return true;
}

/* ---- zeros and NaNs, by the same chunks; their counts overwrite the digits' */

static ts_sort_special *specials_of(const radix *r, const span *s) {
  return (ts_sort_special *)r->counts + (s->counts - r->counts);
}

static void count_specials(radix *r, const span *s) {
  ts_sort_special *counts = specials_of(r, s);
  ts_sort_specials_count(r->job, r->line, s->first, s->first + s->left, counts);
  ts_sort_specials_count(r->job, r->line, s->second, s->second + s->right, counts + 1);
}

static void put_specials(radix *r, const span *s) {
  ts_sort_special *offsets = specials_of(r, s);
  ts_sort_specials_put(r->job, r->line, s->first, s->first + s->left, offsets);
  ts_sort_specials_put(r->job, r->line, s->second, s->second + s->right, offsets + 1);
}

static bool specials(radix *r) {
  int64_t streams = 2 * (int64_t)r->chunks;
  ts_sort_special *parts = (ts_sort_special *)r->counts;
  r->bits = 0;
  memset(parts, 0, (size_t)streams * sizeof(*parts));
  if (!run_phase(r, count_specials)) return false;
  ts_sort_specials_offsets(r->job, parts, streams);
  return run_phase(r, put_specials);
}

static void make_part(void *arg, int64_t begin, int64_t end) {
  radix *r = arg;
  r->kind->make(r, begin, end);
}

/* Keys are read past the end of the first buffer; the second is followed by room for gaps. */
static bool by_parts(radix *r, void *buffers[2], const ts_sort_radix_request *with) {
  const int64_t room = ts_sort_parts_gaps() << r->job->width;
  ts_sort_parts_request request = {.job = r->job,
                                   .line = r->line,
                                   .make = make_part,
                                   .arg = r,
                                   .keys = buffers[0],
                                   .moved = buffers[1],
                                   .split = with->split,
                                   .parallel = r->parallel,
                                   .workspace = (char *)buffers[1] + buffer_bytes(r->kind, r->job->n) + room,
                                   .thread_workspace = with->thread_workspace,
                                   .thread_bytes = with->thread_bytes};
  return ts_sort_parts(&request);
}

static bool by_digits(radix *r, void *buffers[2]) { return run_phase(r, make_span) && all_passes(r, buffers); }

bool ts_sort_radix(const ts_sort_job *job, int64_t line, const ts_sort_radix_request *with) {
  const radix_kind *kind = kind_of(job->width, job->index_size);
  int64_t chunks = chunks_of(job->n, with->split), bytes = buffer_bytes(kind, job->n);
  void *buffers[2] = {with->workspace, with->workspace + bytes};
  radix r = {.job = job,
             .kind = kind,
             .parallel = with->parallel,
             .line = ts_sort_line(job, line),
             .chunk = (job->n + chunks - 1) / chunks,
             .chunks = (int)chunks,
             .to = buffers[0],
             .counts = (int64_t *)(with->workspace + 2 * bytes)};
  const bool parts = ts_sort_parts_suit(job->width, job->index_size, job->n);
  if (!(parts ? by_parts(&r, buffers, with) : by_digits(&r, buffers))) return false;
  return !r.special || job->index_size || specials(&r);
}
