/* A tracer that measures each time slice of a process: the CPU time of the scheduler's thread, the time on the clock,
 * and how often the thread waited for something. Where the clock shows more than the CPU and the thread never waited,
 * the system ran other threads. */
#include <erl_nif.h>

#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

enum { KEPT = 256 };

typedef struct slice {
  int64_t cpu_ns, clock_ns, waits;
  ERL_NIF_TERM in, out;
} slice;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ErlNifEnv *env_of_terms; /* the places of the kept slices */
static slice kept[KEPT];
static int kept_count;
static int64_t count, least_ns; /* slices shorter than this are not kept */

static _Thread_local struct {
  int64_t cpu_ns, clock_ns, waits;
  ErlNifEnv *env;
  ERL_NIF_TERM place;
} begun;

static int64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t count_waits(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

static void begin(ERL_NIF_TERM place) {
  if (!begun.env) begun.env = enif_alloc_env();
  enif_clear_env(begun.env);
  begun.place = enif_make_copy(begun.env, place);
  begun.waits = count_waits();
  begun.clock_ns = now(CLOCK_MONOTONIC);
  begun.cpu_ns = now(CLOCK_THREAD_CPUTIME_ID);
}

static void keep(slice s) {
  s.in = enif_make_copy(env_of_terms, s.in);
  s.out = enif_make_copy(env_of_terms, s.out);
  kept[kept_count++] = s;
}

static void end(ERL_NIF_TERM place) {
  const slice s = {now(CLOCK_THREAD_CPUTIME_ID) - begun.cpu_ns, now(CLOCK_MONOTONIC) - begun.clock_ns,
                   count_waits() - begun.waits, begun.place, place};
  if (!begun.cpu_ns) return; /* it began before it was traced */
  begun.cpu_ns = 0;
  pthread_mutex_lock(&lock);
  count++;
  if (s.clock_ns >= least_ns && kept_count < KEPT) keep(s);
  pthread_mutex_unlock(&lock);
}

static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  (void)argc, (void)argv;
  return enif_make_atom(env, "trace");
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  (void)argc;
  if (enif_is_identical(argv[0], enif_make_atom(env, "in"))) begin(argv[3]);
  if (enif_is_identical(argv[0], enif_make_atom(env, "out"))) end(argv[3]);
  return enif_make_atom(env, "ok");
}

/* begin_slices(LeastNs) -> ok: forgets all slices. No process may be traced now. */
static ERL_NIF_TERM begin_slices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ErlNifSInt64 least;
  (void)argc;
  if (!enif_get_int64(env, argv[0], &least)) return enif_make_badarg(env);
  pthread_mutex_lock(&lock);
  if (env_of_terms) enif_free_env(env_of_terms);
  env_of_terms = enif_alloc_env();
  kept_count = 0;
  count = 0;
  least_ns = least;
  pthread_mutex_unlock(&lock);
  return enif_make_atom(env, "ok");
}

/* slices() -> {Count, [{CpuNs, ClockNs, Waits, In, Out}]}: the number of all slices, and the kept ones. */
static ERL_NIF_TERM slices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  (void)argc, (void)argv;
  ERL_NIF_TERM list = enif_make_list(env, 0);
  pthread_mutex_lock(&lock);
  for (int i = 0; i < kept_count; i++) {
    const slice *s = &kept[i];
    ERL_NIF_TERM row =
        enif_make_tuple5(env, enif_make_int64(env, s->cpu_ns), enif_make_int64(env, s->clock_ns),
                         enif_make_int64(env, s->waits), enif_make_copy(env, s->in), enif_make_copy(env, s->out));
    list = enif_make_list_cell(env, row, list);
  }
  ERL_NIF_TERM result = enif_make_tuple2(env, enif_make_int64(env, count), list);
  pthread_mutex_unlock(&lock);
  return result;
}

static ErlNifFunc functions[] = {
    {"enabled", 3, enabled, 0}, {"trace", 5, trace, 0}, {"begin_slices", 1, begin_slices, 0}, {"slices", 0, slices, 0}};

ERL_NIF_INIT(tessera_time_slices, functions, NULL, NULL, NULL, NULL)
