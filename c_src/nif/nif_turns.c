#include "nif/nif_turns.h"

#include "base/system.h"
#include "nif/nif_util.h"

#include <pthread.h>

/* How long a turn holds without another word of the process that gives them, which may have died. */
#define MOST_MS 1000

_Atomic int64_t ts_nif_turn_until;

static struct {
  pthread_mutex_t lock;
  ErlNifPid pid; /* whose turn it is */
} turn = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_let_in(ErlNifEnv *env) {
  ErlNifPid self;
  if (!enif_self(env, &self)) return true;
  pthread_mutex_lock(&turn.lock);
  bool same = enif_compare_pids(&self, &turn.pid) == 0;
  pthread_mutex_unlock(&turn.lock);
  return same;
}

ts_status ts_nif_turn_check_slow(ErlNifEnv *env, int64_t until) {
  if (ts_system_coarse_ms() >= until || is_let_in(env)) return TS_SUCCESS;
  return ts_error(TS_RESOURCE_EXHAUSTED, "tensor memory is short, and others have waited longer for it");
}

ERL_NIF_TERM ts_nif_let_in(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* let_in(Pid | all) -> ok: for a second, or until the next call, others than this process are refused */
  ErlNifPid pid;
  (void)argc;
  bool is_one = enif_get_local_pid(env, argv[0], &pid);
  if (is_one) {
    pthread_mutex_lock(&turn.lock);
    turn.pid = pid;
    pthread_mutex_unlock(&turn.lock);
  }
  atomic_store_explicit(&ts_nif_turn_until, is_one ? ts_system_coarse_ms() + MOST_MS : 0, memory_order_relaxed);
  return ts_atom.ok_;
}
