#include "tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic int64_t live, wrong, calls[PJ_TABLE];
_Atomic int64_t left[PJ_TABLE], left_event[PJ_TABLE];
_Atomic size_t more;
_Atomic int manner;
static bool kept; /* under the lock */
static pthread_cond_t work_signal = PTHREAD_COND_INITIALIZER;
static uint64_t random_state = 88172645463325252u;

/* ---- objects */

static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

void *made(size_t size) {
  void *block = calloc(1, size);
  if (!block) abort();
  atomic_fetch_add(&live, 1);
  return block;
}

void unmade(void *block) {
  free(block);
  atomic_fetch_sub(&live, 1);
}

pj_error *error_of(int number, const char *text) {
  pj_error *e = made(sizeof *e);
  e->code = number;
  snprintf(e->text, sizeof e->text, "%s", text);
  return e;
}

/* ---- what fails */

static const char *name_of(pj_function function) {
  static const char *const names[PJ_TABLE] = {
#define PJ_FUNCTION(place, id, name) [place] = (name),
      PJ_FUNCTIONS(PJ_FUNCTION)
#undef PJ_FUNCTION
  };
  return names[function];
}

static bool is_due(_Atomic int64_t *count) {
  int64_t n = atomic_load(count);
  if (n > 0) atomic_fetch_sub(count, 1);
  return n == 0;
}

pj_error *begin(pj_function function, const pj_args *args, size_t fields) {
  atomic_fetch_add(&calls[function], 1);
  size_t wanted = offsetof(pj_args, room) + fields + (function == PJ_ERROR_CODE ? 0 : atomic_load(&more));
  if (args->size < wanted) return error_of(PJ_INVALID_ARGUMENT, "the block is too small");
  if (args->extensions) return error_of(PJ_INVALID_ARGUMENT, "extensions are not known");
  if (!is_due(&left[function])) return NULL;
  char text[128];
  snprintf(text, sizeof text, "the plugin failed at %s", name_of(function));
  return error_of(PJ_UNAVAILABLE, text);
}

static _Thread_local bool never_ends; /* the next task of this thread */

static void end_process(const pj_handle *client) {
  if (client->leaves && fork() == 0)
    while (true) pause();
  abort();
}

bool fails_now(pj_handle *client) {
  int64_t n = ++client->operations;
  if (n == client->abort_at) end_process(client);
  never_ends = n == client->never_at;
  return client->fail_every && n % client->fail_every == 0;
}

/* ---- events */

pj_event *new_event(void) {
  pj_event *event = made(sizeof *event);
  event->refs = 1;
  return event;
}

/* The lock is held. */
void drop_event(pj_event *event) {
  if (--event->refs > 0) return;
  if (event->callbacks) atomic_fetch_add(&wrong, 1);
  unmade(event);
}

pj_error *error_of_event(const pj_event *event) { return event->code ? error_of(event->code, event->text) : NULL; }

static pthread_cond_t event_signal = PTHREAD_COND_INITIALIZER;

/* Takes a reference over. */
static void end_event(pj_event *event, int number, const char *text) {
  pthread_mutex_lock(&lock);
  event->is_ready = true;
  event->code = number;
  snprintf(event->text, sizeof event->text, "%s", text);
  callback *all = event->callbacks;
  event->callbacks = NULL;
  pthread_cond_broadcast(&event_signal);
  pthread_mutex_unlock(&lock);
  while (all) {
    callback *next = all->next;
    all->call(error_of_event(event), all->arg);
    unmade(all);
    all = next;
  }
  pthread_mutex_lock(&lock);
  drop_event(event);
  pthread_mutex_unlock(&lock);
}

void wait_for_event(pj_event *event) {
  pthread_mutex_lock(&lock);
  while (!event->is_ready) pthread_cond_wait(&event_signal, &lock);
  pthread_mutex_unlock(&lock);
}

/* ---- tasks */

static struct {
  task *first;
  int count, threads;
} queue;

/* The lock is held. */
void drop_client(pj_handle *client) {
  if (--client->users == 0) unmade(client);
}

void drop_buffer(pj_buffer *buffer) {
  if (--buffer->refs > 0) return;
  if (buffer->holders) atomic_fetch_add(&wrong, 1);
  drop_client(buffer->client);
  ts_buffer_release(buffer->data);
  drop_event(buffer->ready);
  unmade(buffer);
}

void drop_code(code *c) {
  if (--c->refs > 0) return;
  drop_client(c->client);
  ts_graph_destroy(c->graph);
  free(c->text);
  free(c->types);
  free(c->dims);
  free(c->ranks);
  unmade(c);
}

static bool is_ready(const task *t) {
  for (size_t i = 0; i < t->operand_count; i++)
    if (!t->operands[i]->ready->is_ready) return false;
  return true;
}

/* The events are last: after them the caller may end the client. */
void do_task(task *t) {
  int fail;
  pj_event *events[MOST_EVENTS];
  memcpy(events, t->events, sizeof events);
  if (!t->fail) t->body(t);
  fail = t->fail;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < t->operand_count; i++) drop_buffer(t->operands[i]);
  for (size_t i = 0; i < t->result_count; i++) drop_buffer(t->results[i]);
  if (t->code) drop_code(t->code);
  unmade(t);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < MOST_EVENTS; i++)
    if (events[i]) end_event(events[i], fail, fail ? "the plugin failed later" : "");
  tell_owners();
}

/* A ready task; NULL if all tasks wait. The lock is held. */
static task *take_task(void) {
  if (kept) return NULL;
  task **at = &queue.first;
  for (uint64_t skip = queue.count ? next_random() % (uint64_t)queue.count : 0; skip > 0; skip--) at = &(*at)->next;
  for (int tries = 0; tries <= queue.count; tries++) {
    if (!*at) at = &queue.first;
    task *t = *at;
    if (t && is_ready(t)) {
      *at = t->next;
      queue.count--;
      return t;
    }
    if (t) at = &t->next;
  }
  return NULL;
}

static void *work(void *nothing) {
  pthread_mutex_lock(&lock);
  while (true) {
    task *t = take_task();
    if (!t) {
      pthread_cond_wait(&work_signal, &lock);
      continue;
    }
    long late = (long)(next_random() % 4 == 0 ? next_random() % 100000 : 0);
    pthread_mutex_unlock(&lock);
    if (late) nanosleep(&(struct timespec){.tv_nsec = late}, NULL);
    do_task(t);
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&work_signal); /* others may have become ready */
  }
  return nothing;
}

void keep_tasks(bool is) {
  pthread_mutex_lock(&lock);
  kept = is;
  pthread_cond_broadcast(&work_signal);
  pthread_mutex_unlock(&lock);
}

void post(task *t) {
  pthread_t thread;
  int how = atomic_load(&manner);
  if (never_ends) {
    never_ends = false; /* only this task: a copy between devices does not ask fails_now() */
    return;
  }
  pthread_mutex_lock(&lock);
  if (how == TEST_MIXED) how = next_random() % 2 ? TEST_INLINE : TEST_LATE;
  if (how == TEST_INLINE && is_ready(t) && !kept) {
    pthread_mutex_unlock(&lock);
    do_task(t);
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&work_signal);
    pthread_mutex_unlock(&lock);
    return;
  }
  t->next = queue.first;
  queue.first = t;
  queue.count++;
  for (; queue.threads < 3; queue.threads++) {
    if (pthread_create(&thread, NULL, work, NULL) != 0) abort();
    pthread_detach(thread);
  }
  pthread_cond_broadcast(&work_signal);
  pthread_mutex_unlock(&lock);
}

pj_event *promise(task *t, int i) {
  pj_event *event = new_event();
  event->refs = 2;
  t->events[i] = event;
  return event;
}

task *new_task(pj_function function, void (*body)(task *)) {
  task *t = made(sizeof *t);
  t->body = body;
  t->fail = is_due(&left_event[function]) ? PJ_UNAVAILABLE : 0;
  return t;
}

/* ---- the end of bytes of others */

static struct {
  pthread_mutex_t lock; /* held within the other one */
  ended *first;
  bool kept;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

void end_bytes(void *context) {
  ended *e = context;
  pthread_mutex_lock(&told.lock);
  e->next = told.first;
  told.first = e;
  pthread_mutex_unlock(&told.lock);
}

static ended *take_ended(void) {
  pthread_mutex_lock(&told.lock);
  ended *all = told.kept ? NULL : told.first;
  if (all) told.first = NULL;
  pthread_mutex_unlock(&told.lock);
  return all;
}

static void do_nothing(task *t) { (void)t; }

void tell_owners(void) {
  for (ended *e = take_ended(), *next; e; e = next) {
    next = e->next;
    if (e->event) {
      task *t = new_task(PJ_BUFFER_DESTROY, do_nothing);
      t->events[0] = e->event;
      post(t);
    }
    if (e->call) e->call(e->data, e->arg);
    unmade(e);
  }
}

void keep_bytes(bool is) {
  pthread_mutex_lock(&told.lock);
  told.kept = is;
  pthread_mutex_unlock(&told.lock);
  tell_owners();
}
