#include "nif/profile/nif_makers.h"

#include "base/alloc.h"
#include "base/slots.h"
#include "base/vec.h"
#include "nif/nif_util.h"

#include <pthread.h>
#include <stdlib.h>

struct ts_nif_mark {
  ts_nif_mark *next, *previous;
  ErlNifPid maker;
  bool has_maker, is_exact; /* exact: it stands for one tensor */
  int32_t list;
  int64_t bytes, tensors, made_ms;
};

/* Threads with different slots rarely wait for each other. A mark is in the list of the thread that made it. */
enum { LISTS = 16 };

static struct list {
  _Alignas(128) pthread_mutex_t lock;
  ts_nif_mark *first;
} lists[LISTS] = {[0 ... LISTS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

_Thread_local ts_nif_unmarked ts_nif_unmarked_here;

static void enter(ts_nif_mark *mark) {
  mark->list = ts_slot() % LISTS;
  struct list *list = &lists[mark->list];
  pthread_mutex_lock(&list->lock);
  mark->next = list->first;
  if (mark->next) mark->next->previous = mark;
  list->first = mark;
  pthread_mutex_unlock(&list->lock);
}

/* The mark of a large tensor has its bytes alone; those of small tensors before it wait for the next mark. */
static void take(ts_nif_mark *mark, int64_t bytes) {
  ts_nif_unmarked *u = &ts_nif_unmarked_here;
  mark->is_exact = bytes >= TS_NIF_MARKED_BYTES;
  mark->bytes = mark->is_exact ? bytes : u->bytes;
  mark->tensors = mark->is_exact ? 1 : u->tensors;
  u->bytes -= mark->bytes;
  u->tensors -= mark->tensors;
}

ts_nif_mark *ts_nif_mark_new(ErlNifEnv *env, int64_t bytes) {
  ts_nif_mark *mark, none;
  if (!ts_status_consume_ok(TS_NEW(&mark))) {
    take(&none, bytes);
    return NULL;
  }
  take(mark, bytes);
  mark->has_maker = enif_self(env, &mark->maker) != NULL;
  mark->made_ms = enif_monotonic_time(ERL_NIF_MSEC);
  enter(mark);
  return mark;
}

void ts_nif_mark_free(ts_nif_mark *mark) {
  if (!mark) return;
  struct list *list = &lists[mark->list];
  pthread_mutex_lock(&list->lock);
  if (mark->previous)
    mark->previous->next = mark->next;
  else
    list->first = mark->next;
  if (mark->next) mark->next->previous = mark->previous;
  pthread_mutex_unlock(&list->lock);
  ts_free(mark);
}

/* ---- reading ---- */

/* The tensors of one process. */
typedef struct sum {
  ErlNifPid maker;
  bool has_maker;
  int64_t tensors, bytes, estimated, largest, oldest_ms;
} sum;

typedef TS_VEC(sum) sums;

static int compare(const void *a, const void *b) {
  const sum *x = a, *y = b;
  if (x->has_maker != y->has_maker) return x->has_maker - y->has_maker;
  return x->has_maker ? enif_compare_pids(&x->maker, &y->maker) : 0;
}

static sum sum_of(const ts_nif_mark *m) {
  return (sum){.maker = m->maker,
               .has_maker = m->has_maker,
               .tensors = m->tensors,
               .bytes = m->bytes,
               .estimated = m->is_exact ? 0 : m->bytes,
               .largest = m->is_exact ? m->bytes : 0,
               .oldest_ms = m->made_ms};
}

static void add(sum *to, const sum *from) {
  to->tensors += from->tensors;
  to->bytes += from->bytes;
  to->estimated += from->estimated;
  if (from->largest > to->largest) to->largest = from->largest;
  if (from->oldest_ms < to->oldest_ms) to->oldest_ms = from->oldest_ms;
}

/* One for each process, from one for each mark. */
static void merge(sums *s) {
  size_t count = 0;
  if (s->count) qsort(s->data, s->count, sizeof *s->data, compare);
  for (size_t i = 0; i < s->count; i++) {
    if (count > 0 && compare(&s->data[count - 1], &s->data[i]) == 0)
      add(&s->data[count - 1], &s->data[i]);
    else
      s->data[count++] = s->data[i];
  }
  s->count = count;
}

/* Makers of tensors wait meanwhile, so the marks are only copied. Neighbours are often of one process. */
static ts_status collect(struct list *list, sums *out) {
  ts_status status = TS_SUCCESS;
  pthread_mutex_lock(&list->lock);
  for (const ts_nif_mark *m = list->first; m && !status; m = m->next) {
    sum one = sum_of(m);
    if (out->count > 0 && compare(&out->data[out->count - 1], &one) == 0)
      add(&out->data[out->count - 1], &one);
    else
      status = TS_VEC_PUSH(out, one);
  }
  pthread_mutex_unlock(&list->lock);
  return status;
}

static ERL_NIF_TERM make(ErlNifEnv *env, const sum *s) {
  return enif_make_tuple6(env, s->has_maker ? enif_make_pid(env, &s->maker) : ts_atom.undefined_,
                          enif_make_int64(env, s->tensors), enif_make_int64(env, s->bytes),
                          enif_make_int64(env, s->estimated), enif_make_int64(env, s->largest),
                          enif_make_int64(env, enif_monotonic_time(ERL_NIF_MSEC) - s->oldest_ms));
}

ERL_NIF_TERM ts_nif_makers(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* makers() -> [{Pid | undefined, Tensors, Bytes, Estimated, Largest, OldestMs}]: of each process that has made
   * tensors that are in memory. Estimated: the part of Bytes that is of small tensors. OldestMs is an age. */
  sums all = {0};
  ts_status status = TS_SUCCESS;
  (void)argc, (void)argv;
  for (int i = 0; i < LISTS && !status; i++) {
    status = collect(&lists[i], &all);
    merge(&all);
  }
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = 0; i < all.count && !status; i++) list = enif_make_list_cell(env, make(env, &all.data[i]), list);
  TS_VEC_FREE(&all);
  return status ? ts_nif_error(env, status) : list;
}
