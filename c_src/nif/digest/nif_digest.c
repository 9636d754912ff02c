#include "nif/digest/nif_digest_internal.h"

#include <stdatomic.h>

/* Limit for a normal scheduler: such terms take about a millisecond. Longer ones move to a dirty scheduler. */
enum { SHORT = 48 * 1024 };

static ErlNifResourceType *digest_type;
static ERL_NIF_TERM plain, tensors, forms, more;

/* Between rounds. Only one call works on it. */
typedef struct unfinished {
  atomic_flag is_busy;
  ts_digest digest;
} unfinished;

static void digest_deinit(ts_digest *d) {
  TS_VEC_FREE(&d->opens);
  TS_VEC_FREE(&d->names);
  TS_VEC_FREE(&d->holes);
  TS_VEC_FREE(&d->functions);
  TS_VEC_FREE(&d->rounds);
  TS_VEC_FREE(&d->tensor_names);
  ts_map_deinit(&d->tensors);
}

static void unfinished_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  digest_deinit(&((unfinished *)object)->digest);
}

bool ts_nif_digest_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  plain = enif_make_atom(env, "plain");
  tensors = enif_make_atom(env, "tensors");
  forms = enif_make_atom(env, "forms");
  more = enif_make_atom(env, "more");
  digest_type = enif_open_resource_type(env, NULL, "tessera_digest", unfinished_destroy, flags, NULL);
  ts_digest_plain_init();
  ts_digest_map_init(env);
  ts_digest_walk_init(env);
  return digest_type != NULL;
}

/* ---- the end: functions are known, from the last round to the first ---- */

static ts_digest_part part_of(const ts_digest *d, const ts_digest_part *part) {
  return part->open == TS_DIGEST_CLOSED ? *part : d->opens.data[part->open].part;
}

static void complete_function(const ts_digest *d, ts_digest_open *o) {
  o->part = part_of(d, &d->functions.data[o->first]);
  o->part.name = ts_digest_name_of_function(o->part.name);
}

static void complete_term(const ts_digest *d, ts_digest_open *o) {
  ts_hash128 *names = d->names.data + o->first;
  for (size_t i = o->hole; i < o->hole + o->hole_count; i++) {
    const ts_digest_part *part = &d->opens.data[d->holes.data[i].open].part;
    names[d->holes.data[i].at] = part->name;
    o->part.words = ts_digest_add(o->part.words, part->words);
  }
  o->part.name =
      o->kind == TS_DIGEST_PAIRS ? ts_digest_name_of_pairs(names, o->count) : ts_digest_name(names, o->count);
}

static void complete_round(const ts_digest *d, size_t first, size_t end) {
  for (size_t i = first; i < end; i++) {
    ts_digest_open *o = &d->opens.data[i];
    if (o->kind == TS_DIGEST_FUNCTION)
      complete_function(d, o);
    else
      complete_term(d, o);
  }
}

static void complete(const ts_digest *d) {
  size_t end = d->opens.count;
  for (size_t i = d->rounds.count; i-- > 0; end = d->rounds.data[i]) complete_round(d, d->rounds.data[i], end);
  complete_round(d, 0, end);
}

/* ---- rounds ---- */

/* Stores the name of a term that was read: in the first round the caller's term, later the code and environment of the
 * function with that number. */
static ts_status answer(ts_digest *d, size_t number, const ts_digest_part *part) {
  if (d->rounds.count == 0)
    d->root = *part;
  else if (number < d->functions.count)
    d->functions.data[number] = *part;
  else
    return ts_error(TS_INTERNAL, "more answers than functions");
  return TS_SUCCESS;
}

static ts_status read_all(ErlNifEnv *env, ts_digest *d, ts_digest_walk *walk, ERL_NIF_TERM terms, size_t limit,
                          bool *out_long) {
  ERL_NIF_TERM term;
  size_t number = d->answered;
  for (; enif_get_list_cell(env, terms, &term, &terms); number++) {
    ts_digest_part part;
    TS_TRY(ts_digest_walk_term(walk, term, limit, out_long, &part));
    TS_TRY(answer(d, number, &part));
  }
  if (d->rounds.count > 0 && number < d->functions.count) return ts_error(TS_INTERNAL, "fewer answers than functions");
  return TS_SUCCESS;
}

/* Numbers the functions of the round, after the functions of earlier rounds. */
static ts_status end_round(ts_digest *d, size_t met) {
  d->answered = d->functions.count;
  TS_TRY(TS_VEC_RESERVE(&d->functions, d->answered + met));
  d->functions.count += met;
  return TS_SUCCESS;
}

/* The sizes before a round; a round that begins again returns to them. */
typedef struct mark {
  size_t opens, names, holes, tensors;
  uint64_t bytes;
} mark;

static mark mark_of(const ts_digest *d) {
  return (mark){d->opens.count, d->names.count, d->holes.count, d->tensor_names.count, d->bytes};
}

static void go_back(ts_digest *d, const mark *to) {
  d->opens.count = to->opens;
  d->names.count = to->names;
  d->holes.count = to->holes;
  d->bytes = to->bytes;
  while (d->tensor_names.count > to->tensors) {
    const ts_hash128 *name = &d->tensor_names.data[--d->tensor_names.count];
    ts_map_remove(&d->tensors, name, sizeof *name);
  }
}

/* The results of a round for Erlang: terms of this call. */
typedef struct round {
  ERL_NIF_TERM functions, tensors;
  size_t work;
} round;

static ts_status read_round(ErlNifEnv *env, ts_digest *d, ERL_NIF_TERM terms, size_t limit, bool *out_long,
                            round *out) {
  ts_digest_walk *walk;
  TS_TRY(ts_digest_walk_take(env, d, &walk));
  ts_status status = read_all(env, d, walk, terms, limit, out_long);
  *out = (round){ts_digest_walk_functions(walk), ts_digest_walk_tensors(walk), ts_digest_walk_work(walk)};
  if (!status) status = end_round(d, ts_digest_walk_function_count(walk));
  ts_digest_walk_give(walk);
  return status;
}

static ts_status try_round(ErlNifEnv *env, ts_digest *d, ERL_NIF_TERM terms, size_t limit, bool *out_long, round *out) {
  mark before = mark_of(d);
  *out_long = false;
  ts_status status = read_round(env, d, terms, limit, out_long, out);
  if (status) go_back(d, &before);
  return status;
}

/* Charges reductions for the terms that were read. */
static void consume(ErlNifEnv *env, size_t work) {
  if (work > SHORT / 100) enif_consume_timeslice(env, work < SHORT ? (int)(100 * work / SHORT) : 100);
}

static ERL_NIF_TERM finished(ErlNifEnv *env, const ts_digest *d, ERL_NIF_TERM new_tensors) {
  complete(d);
  ts_digest_part part = part_of(d, &d->root);
  ERL_NIF_TERM name = ts_nif_binary(env, (const char *)&part.name, sizeof part.name);
  return enif_make_tuple4(env, name, enif_make_uint64(env, part.words), enif_make_uint64(env, d->bytes), new_tensors);
}

static ERL_NIF_TERM unfinished_term(ErlNifEnv *env, unfinished *u, const round *r) {
  return enif_make_tuple4(env, more, enif_make_resource(env, u), r->functions, r->tensors);
}

static bool is_finished(const ts_digest *d) { return d->answered == d->functions.count; }

/* ---- the first round ---- */

static ts_status get_mode(ErlNifEnv *env, ERL_NIF_TERM term, ts_digest_mode *out) {
  if (term != plain && term != tensors && term != forms) return ts_nif_expected(env, "plain, tensors or forms", term);
  *out = term == plain ? TS_DIGEST_PLAIN : term == tensors ? TS_DIGEST_TENSORS : TS_DIGEST_FORMS;
  return TS_SUCCESS;
}

/* Moves the digest into the resource. */
static ts_status hand_over(ErlNifEnv *env, ts_digest *d, const round *r, ERL_NIF_TERM *out) {
  unfinished *u = enif_alloc_resource(digest_type, sizeof *u);
  if (!u) return ts_error_no_memory();
  atomic_flag_clear(&u->is_busy);
  u->digest = *d;
  *d = (ts_digest){0};
  *out = unfinished_term(env, u, r);
  enif_release_resource(u);
  return TS_SUCCESS;
}

static ts_status begin(ErlNifEnv *env, const ERL_NIF_TERM argv[], size_t limit, bool *out_long, ERL_NIF_TERM *out) {
  ts_digest d = {0};
  round r;
  *out_long = false;
  TS_TRY(get_mode(env, argv[1], &d.mode));
  ts_status status = try_round(env, &d, enif_make_list1(env, argv[0]), limit, out_long, &r);
  if (!status && is_finished(&d))
    *out = finished(env, &d, r.tensors);
  else if (!status)
    status = hand_over(env, &d, &r, out);
  if (!status) consume(env, r.work);
  digest_deinit(&d);
  return status;
}

static ERL_NIF_TERM begin_long(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM term;
  bool is_long;
  (void)argc;
  TS_NIF_TRY(env, begin(env, argv, SIZE_MAX, &is_long, &term));
  return term;
}

ERL_NIF_TERM ts_nif_digest(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* digest(Term, plain | tensors | forms) -> {Digest :: <<_:128>>, Words, Bytes, Tensors} | {more, Unfinished,
   * [Function], Tensors}. Words is the size of a copy of the term. digest_more/2 needs the code and environment of each
   * function. Tensors are the tensors that count by number, in the order of their numbers; each call numbers new
   * ones. */
  ERL_NIF_TERM term;
  bool is_long;
  ts_status status = begin(env, argv, SHORT, &is_long, &term);
  if (!status) return term;
  if (!is_long) return ts_nif_error(env, status);
  ts_status_free(status);
  return enif_schedule_nif(env, "digest", ERL_NIF_DIRTY_JOB_CPU_BOUND, begin_long, argc, argv);
}

/* ---- further rounds ---- */

static ts_status go_on(ErlNifEnv *env, unfinished *u, ERL_NIF_TERM terms, size_t limit, bool *out_long,
                       ERL_NIF_TERM *out) {
  ts_digest *d = &u->digest;
  round r;
  if (is_finished(d)) return ts_error(TS_INTERNAL, "the digest is finished");
  TS_TRY(TS_VEC_PUSH(&d->rounds, d->opens.count));
  ts_status status = try_round(env, d, terms, limit, out_long, &r);
  if (status) {
    d->rounds.count--;
    return status;
  }
  consume(env, r.work);
  *out = is_finished(d) ? finished(env, d, r.tensors) : unfinished_term(env, u, &r);
  return TS_SUCCESS;
}

static ts_status go_on_alone(ErlNifEnv *env, const ERL_NIF_TERM argv[], size_t limit, bool *out_long,
                             ERL_NIF_TERM *out) {
  void *object;
  *out_long = false;
  if (!enif_get_resource(env, argv[0], digest_type, &object))
    return ts_nif_expected(env, "an unfinished digest", argv[0]);
  unfinished *u = object;
  if (atomic_flag_test_and_set(&u->is_busy)) return ts_error(TS_INTERNAL, "two calls work on one digest");
  ts_status status = go_on(env, u, argv[1], limit, out_long, out);
  atomic_flag_clear(&u->is_busy);
  return status;
}

static ERL_NIF_TERM go_on_long(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM term;
  bool is_long;
  (void)argc;
  TS_NIF_TRY(env, go_on_alone(env, argv, SIZE_MAX, &is_long, &term));
  return term;
}

ERL_NIF_TERM ts_nif_digest_more(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* digest_more(Unfinished, [Code]) -> as digest/2: a term for each function that was asked for, equal for equal ones
   */
  ERL_NIF_TERM term;
  bool is_long;
  ts_status status = go_on_alone(env, argv, SHORT, &is_long, &term);
  if (!status) return term;
  if (!is_long) return ts_nif_error(env, status);
  ts_status_free(status);
  return enif_schedule_nif(env, "digest_more", ERL_NIF_DIRTY_JOB_CPU_BOUND, go_on_long, argc, argv);
}

void ts_nif_digest_forget(void) { ts_digest_walk_forget(); }
