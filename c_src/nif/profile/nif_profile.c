#include "nif/profile/nif_profile.h"

#include "base/alloc.h"
#include "base/system.h"
#include "nif/nif_executable.h"
#include "nif/profile/nif_places.h"

#include <pthread.h>
#include <string.h>

/* Most events of one profile: 40 MB. */
enum { MOST_EVENTS = 1000000 };

/* In the list while it is open. */
typedef struct node {
  ts_profile *profile;
  ErlNifPid pid;
  bool is_open;
  struct node *next;
} node;

static ErlNifResourceType *profile_type;
_Atomic int ts_nif_profile_count;

static struct {
  pthread_mutex_t lock;
  node *first; /* the newest: of a process, the innermost */
} profiles = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock. */
static ts_profile *find(const ErlNifPid *pid) {
  for (const node *n = profiles.first; n; n = n->next)
    if (enif_compare_pids(&n->pid, pid) == 0) return n->profile;
  return NULL;
}

ts_profile *ts_nif_profile_find(ErlNifEnv *env) {
  ErlNifPid self;
  if (!enif_self(env, &self)) return NULL;
  pthread_mutex_lock(&profiles.lock);
  ts_profile *found = find(&self);
  pthread_mutex_unlock(&profiles.lock);
  return found;
}

ERL_NIF_TERM ts_nif_profile_mark(ErlNifEnv *env, ERL_NIF_TERM term) {
  ts_profile *profile = ts_nif_profile_find(env);
  uint64_t number = profile ? ts_profile_take_new(profile) : 0;
  return number ? enif_make_tuple3(env, ts_atom.profiled_, enif_make_uint64(env, number), term) : term;
}

static void leave(node *n) {
  pthread_mutex_lock(&profiles.lock);
  if (n->is_open) {
    node **at = &profiles.first;
    while (*at != n) at = &(*at)->next;
    *at = n->next;
    n->is_open = false;
    atomic_fetch_sub(&ts_nif_profile_count, 1);
  }
  pthread_mutex_unlock(&profiles.lock);
}

/* Also when the process was killed. Its runs hold references of their own. */
static void profile_destroy(ErlNifEnv *env, void *object) {
  node *n = object;
  (void)env;
  leave(n);
  ts_profile_release(n->profile);
}

bool ts_nif_profile_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  profile_type = enif_open_resource_type(env, NULL, "tessera_profile", profile_destroy, flags, NULL);
  return profile_type;
}

/* Adds the node. Its profile reports to the open profile of the same process, if there is one. */
static ts_status enter(node *n, size_t most_events) {
  pthread_mutex_lock(&profiles.lock);
  ts_status status = ts_profile_create(most_events, find(&n->pid), &n->profile);
  if (!status) {
    n->next = profiles.first;
    n->is_open = true;
    profiles.first = n;
    atomic_fetch_add(&ts_nif_profile_count, 1);
  }
  pthread_mutex_unlock(&profiles.lock);
  return status;
}

ERL_NIF_TERM ts_nif_profile_start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* profile_start(MostEvents) -> {Profile, Ns}: from now on the runs of the calling process are measured. Ns is the
   * time of the clock that the profile uses. */
  int64_t most;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[0], "a number of events", &most));
  if (most < 0 || most > MOST_EVENTS)
    return ts_nif_error(
        env, ts_error(TS_INVALID_ARGUMENT, "expected at most %d events, got %lld", MOST_EVENTS, (long long)most));
  node *n = enif_alloc_resource(profile_type, sizeof *n);
  if (!n) return ts_nif_error(env, ts_error_no_memory());
  memset(n, 0, sizeof *n);
  ERL_NIF_TERM term = enif_make_resource(env, n);
  enif_release_resource(n);
  (void)enif_self(env, &n->pid);
  TS_NIF_TRY(env, enter(n, (size_t)most));
  return enif_make_tuple2(env, term, enif_make_int64(env, ts_system_ns()));
}

/* ---- the result ---- */

static ERL_NIF_TERM string(ErlNifEnv *env, const char *text) { return ts_nif_binary(env, text, strlen(text)); }

static ERL_NIF_TERM type_of(ErlNifEnv *env, const ts_profile_row *row) {
  const ts_type *type = ts_profile_row_type(row);
  return string(env, type ? TS_SHAPE_STR(type->dtype, &type->shape) : "");
}

/* {Depth, Launch, Kind, Op, Ops, Type, Bytes, Flops, Count, Ns, LongestNs, Threads} */
static ERL_NIF_TERM make_row(ErlNifEnv *env, const ts_profile_row *row) {
  ts_text ops = {0};
  ts_profile_row_ops(row, &ops);
  ERL_NIF_TERM items[] = {enif_make_int(env, row->depth),
                          enif_make_int(env, row->launch),
                          string(env, ts_profile_row_kind(row)),
                          string(env, ts_profile_row_op(row)),
                          string(env, ops.data ? ops.data : ""),
                          type_of(env, row),
                          enif_make_int64(env, ts_profile_row_bytes(row)),
                          enif_make_int64(env, ts_profile_row_flops(row)),
                          enif_make_int64(env, row->count),
                          enif_make_int64(env, row->ns),
                          enif_make_int64(env, row->longest_ns),
                          enif_make_int(env, row->threads)};
  ts_text_deinit(&ops);
  return enif_make_tuple_from_array(env, items, sizeof items / sizeof *items);
}

/* {Number, Runs, Ns, LongestNs, Bytes, Pieces, [Row]} */
static ERL_NIF_TERM make_program(ErlNifEnv *env, const ts_profile_program *p) {
  int64_t bytes, pieces;
  ERL_NIF_TERM rows = enif_make_list(env, 0);
  for (size_t i = p->row_count; i-- > 0;) rows = enif_make_list_cell(env, make_row(env, &p->rows[i]), rows);
  ts_profile_program_memory(p, &bytes, &pieces);
  return enif_make_tuple7(env, enif_make_uint64(env, p->number), enif_make_int64(env, p->runs),
                          enif_make_int64(env, p->ns), enif_make_int64(env, p->longest_ns), enif_make_int64(env, bytes),
                          enif_make_int64(env, pieces), rows);
}

/* Each as {Program, Row, Begin, End, Threads, Partition} of 4, 4, 8, 8, 4 and 4 bytes, in the machine's order. */
static ERL_NIF_TERM make_events(ErlNifEnv *env, const ts_profile *profile) {
  const ts_profile_event *events;
  ERL_NIF_TERM term;
  size_t count = ts_profile_events(profile, &events);
  _Static_assert(sizeof *events == 32, "the parts of an event");
  unsigned char *bytes = enif_make_new_binary(env, count * sizeof *events, &term);
  if (bytes && count) memcpy(bytes, events, count * sizeof *events);
  return term;
}

ERL_NIF_TERM ts_nif_profile_stop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* profile_stop(Profile) -> {[Program], Events :: binary(), EventsLeftOut, Uncounted}: ends the measuring. Only its
   * process may call it, and once. */
  void *object;
  ErlNifPid self;
  const ts_profile_program *programs;
  int64_t left_out, uncounted;
  (void)argc;
  if (!enif_get_resource(env, argv[0], profile_type, &object))
    return ts_nif_error(env, ts_nif_expected(env, "a profile", argv[0]));
  node *n = object;
  if (!enif_self(env, &self) || enif_compare_pids(&self, &n->pid) != 0 || !n->is_open)
    return ts_nif_error(env, ts_error(TS_FAILED_PRECONDITION, "the profile is another process's, or was stopped"));
  leave(n);
  ts_profile_close(n->profile); /* a run that was given up may end later */
  size_t count = ts_profile_programs(n->profile, &programs);
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;) list = enif_make_list_cell(env, make_program(env, &programs[i]), list);
  ts_profile_left_out(n->profile, &left_out, &uncounted);
  return enif_make_tuple4(env, list, make_events(env, n->profile), enif_make_int64(env, left_out),
                          enif_make_int64(env, uncounted));
}

static ERL_NIF_TERM lines_of(ErlNifEnv *env, const ts_profile_program *p, const ts_profile_row *row) {
  ts_line lines[TS_MOST_LINES];
  return ts_nif_lines(env, lines, ts_profile_row_lines(p, row, lines));
}

static ERL_NIF_TERM make_lines(ErlNifEnv *env, const ts_profile_program *p) {
  ERL_NIF_TERM rows = enif_make_list(env, 0);
  for (size_t r = p->row_count; r-- > 0;) rows = enif_make_list_cell(env, lines_of(env, p, &p->rows[r]), rows);
  return rows;
}

ERL_NIF_TERM ts_nif_profile_lines(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* profile_lines(Profile) -> [[[binary()]]]: for each program and each of its rows, as profile_stop gave them, the
   * lines of the user's source that its ops come from */
  void *object;
  const ts_profile_program *programs;
  (void)argc;
  if (!enif_get_resource(env, argv[0], profile_type, &object))
    return ts_nif_error(env, ts_nif_expected(env, "a profile", argv[0]));
  const node *n = object;
  if (!ts_profile_is_closed(n->profile))
    return ts_nif_error(env, ts_error(TS_FAILED_PRECONDITION, "the profile has not ended"));
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = ts_profile_programs(n->profile, &programs); i-- > 0;)
    list = enif_make_list_cell(env, make_lines(env, &programs[i]), list);
  return list;
}

ERL_NIF_TERM ts_nif_profile_rows(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* profile_rows(Executable) -> {Program, [[binary()]]}: a program without its times, and the lines of each row */
  ts_loaded *loaded;
  ts_profile_program program;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_executable_get(env, argv[0], &loaded));
  const ts_executable *exe = ts_host_program(loaded);
  if (!exe) return ts_nif_error(env, ts_error(TS_UNIMPLEMENTED, "a plugin reports no steps"));
  TS_NIF_TRY(env, ts_profile_program_init(exe, &program));
  ERL_NIF_TERM term = enif_make_tuple2(env, make_program(env, &program), make_lines(env, &program));
  ts_profile_program_deinit(&program);
  return term;
}
