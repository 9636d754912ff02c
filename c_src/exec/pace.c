#include "exec/pace.h"

#include "base/alloc.h"

#include <stdatomic.h>

/* A program stays on its caller's scheduler up to this time on one thread. */
#define STAY_NS 200000
/* A run of a program that stays takes too long from here on. */
#define OVERRUN_NS 500000
/* Longer runs on all threads are not tried on one. */
#define TRY_NS 2000000

/* The time of a turn. */
#define TURN_NS 400000
/* A run that begins so soon after another one follows it; workers spin as long before they sleep. */
#define SOON_NS 20000

enum {
  LEAST_TURN = 4, /* runs */
  MOST_TURN = 32,
  FIRST_TURNS = 4,
  FIRST_INTERVAL = 16, /* turns */
  LAST_INTERVAL = 1024,
  STREAK = 8,     /* runs back to back before workers are woken for the next runs */
  PATIENCE = 256, /* runs back to back until another try to wake workers, after workers came too late */
  QUIET = 4,      /* runs without work for workers; from then on workers are offered nothing */
  HEAT = 16,      /* of an overrun; each other run takes 1 */
  TOO_HOT = 40,
  EXILE = 1024, /* runs on a dirty scheduler after too many overruns */
  APART = 128   /* bytes: processors fetch pairs of cache lines */
};

/* Runs write to it, and the executable's memory is only read. So it has cache lines of its own. */
struct ts_pace {
  char before[APART];
  ts_pace_guess guess;
  _Atomic int64_t ns[TS_PACE_WAYS]; /* 0: not measured */
  _Atomic uint64_t runs, next_trial, interval;
  _Atomic int64_t ended; /* when the last run has */
  _Atomic int32_t streak, quiet, heat, exile;
  uint32_t turn; /* runs */
  char behind[APART];
};

/* All accesses are relaxed: no other memory is published by them. */
#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define STORE(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

ts_status ts_pace_create(const ts_pace_guess *guess, ts_pace **out) {
  TS_TRY(TS_NEW(out));
  ts_pace *p = *out;
  p->guess = *guess;
  for (int i = 0; i < TS_PACE_WAYS; i++) atomic_init(&p->ns[i], 0);
  atomic_init(&p->runs, 0);
  int64_t turn = TURN_NS / (guess->cost_ns > 0 ? guess->cost_ns : 1);
  p->turn = turn < LEAST_TURN ? LEAST_TURN : turn > MOST_TURN ? MOST_TURN : (uint32_t)turn;
  atomic_init(&p->next_trial, p->turn * (FIRST_TURNS + FIRST_INTERVAL));
  atomic_init(&p->ended, INT64_MIN / 2);
  atomic_init(&p->streak, 0);
  atomic_init(&p->interval, FIRST_INTERVAL);
  atomic_init(&p->quiet, guess->is_alone ? QUIET : 0);
  atomic_init(&p->heat, 0);
  atomic_init(&p->exile, 0);
  return TS_SUCCESS;
}

void ts_pace_destroy(ts_pace *p) { ts_free(p); }

/* ---- ways ---- */

/* The least measured time on all threads; 0: none. */
static int64_t together(const ts_pace *p) {
  int64_t waking = LOAD(p->ns[TS_PACE_WAKING]), joined = LOAD(p->ns[TS_PACE_JOINED]);
  return !waking || (joined && joined < waking) ? joined : waking;
}

/* Whether the runs that will follow, with workers awake, make up for waking them now. */
static bool pays_to_wake(ts_pace *p) {
  int64_t alone = LOAD(p->ns[TS_PACE_ALONE]), joined = LOAD(p->ns[TS_PACE_JOINED]);
  if (LOAD(p->streak) < STREAK) return false;
  if (joined && LOAD(p->ns[TS_PACE_WAKING]) - alone > STREAK * (alone - joined)) return false;
  STORE(p->streak, joined ? 0 : -PATIENCE);
  return true;
}

/* One thread where that is about as fast: other callers can use the rest. */
static ts_pace_way usual_way(ts_pace *p, ts_pace_way many) {
  int64_t alone = LOAD(p->ns[TS_PACE_ALONE]), others = LOAD(p->ns[many]);
  if (!alone || !others || alone > others + others / 16) return many;
  return many == TS_PACE_WAKING && pays_to_wake(p) ? many : TS_PACE_ALONE;
}

/* Whether one thread is worth a try: the other way takes not too long, and one thread was not clearly slower. */
static bool may_try_alone(const ts_pace *p) {
  int64_t alone = LOAD(p->ns[TS_PACE_ALONE]), others = together(p);
  return others && others <= TRY_NS && (!alone || alone <= others + others / 2);
}

static ts_pace_way first_way(ts_pace *p, uint64_t run, ts_pace_way many) {
  if (run / p->turn % 2 == 0) return many;
  return may_try_alone(p) ? TS_PACE_ALONE : usual_way(p, many);
}

static void plan_next_trial(ts_pace *p, uint64_t run) {
  uint64_t interval = LOAD(p->interval);
  STORE(p->next_trial, run + 1 + interval * p->turn);
  if (interval < LAST_INTERVAL) STORE(p->interval, interval * 2);
}

static ts_pace_way later_way(ts_pace *p, uint64_t run, ts_pace_way many) {
  uint64_t next = LOAD(p->next_trial);
  ts_pace_way usual = usual_way(p, many);
  if (run < next) return usual;
  if (run + 1 >= next + p->turn) plan_next_trial(p, run);
  if (usual == TS_PACE_ALONE) return many;
  return together(p) <= TRY_NS ? TS_PACE_ALONE : usual;
}

static void count_streak(ts_pace *p, int64_t now) {
  int32_t streak = LOAD(p->streak);
  STORE(p->streak, now - LOAD(p->ended) > SOON_NS ? 0 : streak < STREAK ? streak + 1 : streak);
}

ts_pace_way ts_pace_choose(ts_pace *p, bool awake, int64_t now) {
  ts_pace_way many = awake ? TS_PACE_JOINED : TS_PACE_WAKING;
  if (LOAD(p->quiet) >= QUIET) return TS_PACE_ALONE;
  uint64_t run = LOAD(p->runs);
  STORE(p->runs, run + 1);
  count_streak(p, now);
  return run < p->turn * FIRST_TURNS ? first_way(p, run, many) : later_way(p, run, many);
}

/* ---- times ---- */

/* Small differences are noise: they are not written, so that callers on several cores share the line. */
static void blend(_Atomic int64_t *mean, int64_t ns) {
  int64_t before = LOAD(*mean), after = before;
  if (!before)
    after = ns < 1 ? 1 : ns;
  else if (ns < before - before / 32)
    after = before - (before - ns) / 2;
  else if (ns > before + before / 16)
    after = before + (ns > 2 * before ? before : ns - before) / 16;
  if (after != before) STORE(*mean, after < 1 ? 1 : after);
}

/* Interruptions by other processes are rare, and forgotten. */
static void note_overrun(ts_pace *p, int64_t ns) {
  int32_t heat = LOAD(p->heat), exile = LOAD(p->exile);
  if (exile > 0) {
    STORE(p->exile, exile - 1);
  } else if (ns > OVERRUN_NS && ts_pace_stays(p, NULL)) {
    bool too_hot = heat + HEAT >= TOO_HOT;
    STORE(p->heat, too_hot ? 0 : heat + HEAT);
    if (too_hot) STORE(p->exile, EXILE);
  } else if (heat > 0) {
    STORE(p->heat, heat - 1);
  }
}

void ts_pace_note(ts_pace *p, const ts_pace_run *run) {
  int32_t quiet = LOAD(p->quiet), now = run->shared ? 0 : quiet + 1;
  int64_t ns = run->ended - run->began;
  if (run->way != TS_PACE_ALONE && now != quiet) STORE(p->quiet, now);
  if (quiet < QUIET) STORE(p->ended, run->ended);
  note_overrun(p, ns);
  blend(&p->ns[run->shared ? run->way : TS_PACE_ALONE], ns);
}

void ts_pace_note_stop(ts_pace *p) { note_overrun(p, INT64_MAX); }

/* ---- the place ---- */

static bool has_memory(const ts_pace *p, ts_pool *pool) {
  return !p->guess.memory || !pool || ts_pool_has_free(pool, p->guess.memory);
}

bool ts_pace_stays(const ts_pace *p, ts_pool *pool) {
  int64_t alone = LOAD(p->ns[TS_PACE_ALONE]);
  if (LOAD(p->exile) > 0) return false;
  if (!alone) return p->guess.is_short;
  if (alone > STAY_NS) return false;
  return p->guess.is_short || (p->guess.is_steady && has_memory(p, pool));
}

int64_t ts_pace_measured(const ts_pace *p, ts_pace_way way) { return LOAD(p->ns[way]); }

int64_t ts_pace_cost_ns(const ts_pace *p) {
  int64_t alone = LOAD(p->ns[TS_PACE_ALONE]);
  return alone ? alone : p->guess.cost_ns;
}
