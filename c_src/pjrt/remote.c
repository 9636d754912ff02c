#include "pjrt/remote.h"

#include "base/system.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- shared memory */

enum { SEGMENT_LEAST = 1 << 20, IDLE_MOST = 256 << 20 };

/* Messages that can no more be sent or received: the reader notices the end, and so does a thread that waits until the
 * process reads. */
static void hang_up_locked(pj_remote *r) {
  if (r->socket >= 0) (void)shutdown(r->socket, SHUT_RDWR);
}

static void hang_up(pj_remote *r) {
  pthread_mutex_lock(&r->lock);
  hang_up_locked(r);
  pthread_mutex_unlock(&r->lock);
}

/* Never on the reader's thread: the process may wait for the reader before it reads more. After a message that
 * was sent in part, no other message can be sent. */
static void tell(pj_remote *r, const pj_wire_head *head, const char *fields, int file) {
  pthread_mutex_lock(&r->sending);
  if (r->socket >= 0 && !pj_wire_send(r->socket, head, fields, file)) hang_up(r);
  pthread_mutex_unlock(&r->sending);
}

static ts_status new_segment(pj_remote *r, size_t size, pj_segment **out) {
  int file = memfd_create("tessera_plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void *data = MAP_FAILED;
  if (file >= 0 && ftruncate(file, (off_t)size) == 0)
    data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ts_status status =
      data == MAP_FAILED ? ts_error(TS_RESOURCE_EXHAUSTED, "no %zu bytes of shared memory", size) : TS_NEW(out);
  if (status) {
    if (data != MAP_FAILED) munmap(data, size);
    if (file >= 0) close(file);
    return status;
  }
  /* A process that shortens the file would end this one. */
  (void)fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  pthread_mutex_lock(&r->lock);
  **out = (pj_segment){.number = ++r->last_segment, .size = size, .data = data};
  pthread_mutex_unlock(&r->lock);
  tell(r, &(pj_wire_head){.id = (*out)->number, .kind = PJ_WIRE_SEGMENT}, NULL, file);
  close(file);
  return TS_SUCCESS;
}

/* The smallest that is large enough. The lock is held. */
static pj_segment *find_segment(pj_remote *r, size_t size) {
  pj_segment **best = NULL;
  for (pj_segment **at = &r->segments; *at; at = &(*at)->next)
    if ((*at)->size >= size && (!best || (*at)->size < (*best)->size)) best = at;
  pj_segment *found = best ? *best : NULL;
  if (!found || found->size / 4 > size + SEGMENT_LEAST) return NULL;
  *best = found->next;
  r->idle_bytes -= found->size;
  return found;
}

ts_status pj_segment_take(pj_remote *r, size_t size, pj_segment **out) {
  size_t rounded = SEGMENT_LEAST;
  while (rounded < size) rounded *= 2;
  pthread_mutex_lock(&r->lock);
  *out = find_segment(r, size);
  pthread_mutex_unlock(&r->lock);
  return *out ? TS_SUCCESS : new_segment(r, rounded, out);
}

static void free_segment(pj_segment *s) {
  munmap(s->data, s->size);
  ts_free(s);
}

static void keep_segment(pj_remote *r, pj_segment *s) {
  if (!s) return;
  pthread_mutex_lock(&r->lock);
  s->next = r->segments;
  r->segments = s;
  r->idle_bytes += s->size;
  pthread_mutex_unlock(&r->lock);
}

/* One that is too much; NULL: there is none. */
static pj_segment *take_surplus(pj_remote *r) {
  pthread_mutex_lock(&r->lock);
  pj_segment *s = r->idle_bytes > IDLE_MOST || r->is_dead ? r->segments : NULL;
  if (s) {
    r->segments = s->next;
    r->idle_bytes -= s->size;
  }
  pthread_mutex_unlock(&r->lock);
  return s;
}

static void free_surplus(pj_remote *r) {
  for (pj_segment *s = take_surplus(r); s; s = take_surplus(r)) {
    tell(r, &(pj_wire_head){.id = s->number, .kind = PJ_WIRE_FORGET}, NULL, -1);
    free_segment(s);
  }
}

void pj_segment_give(pj_remote *r, pj_segment *s) {
  keep_segment(r, s);
  free_surplus(r);
}

/* ---- events */

static void free_event(pj_event *e) {
  ts_status_free(e->status);
  ts_free(e);
}

static pj_error *error_of(const pj_event *e) {
  return e->status ? (pj_error *)ts_error(ts_status_code(e->status), "%s", ts_status_message(e->status)) : NULL;
}

/* Of an event that is in no list any more; takes the status over. The surplus of segments is freed with an event. */
static void end_event(pj_remote *r, pj_event *e, ts_status status, const char *bytes, size_t size) {
  if (!status && e->to)
    memcpy(e->to, e->segment ? e->segment->data : bytes, e->segment || size >= e->size ? e->size : size);
  keep_segment(r, e->segment);
  e->segment = NULL;
  pthread_mutex_lock(&r->lock);
  e->status = status;
  e->is_ready = true;
  void (*call)(pj_error *, void *) = e->call;
  void *arg = e->arg;
  bool dropped = e->is_destroyed;
  pj_error *error = call ? error_of(e) : NULL;
  pthread_cond_broadcast(&r->ended);
  pthread_mutex_unlock(&r->lock);
  if (dropped) free_event(e);
  if (call) call(error, arg);
}

/* The lock is held. */
static pj_event *take_event(pj_remote *r, uint64_t id) {
  for (pj_event **at = &r->events; *at; at = &(*at)->next)
    if ((*at)->id == id) {
      pj_event *found = *at;
      *at = found->next;
      return found;
    }
  return NULL;
}

void pj_event_destroy(pj_remote *r, pj_event *e) {
  pthread_mutex_lock(&r->lock);
  bool ready = e->is_ready;
  e->is_destroyed = true;
  pthread_mutex_unlock(&r->lock);
  if (ready) free_event(e);
  free_surplus(r);
}

bool pj_event_is_ready(pj_remote *r, pj_event *e) {
  pthread_mutex_lock(&r->lock);
  bool ready = e->is_ready;
  pthread_mutex_unlock(&r->lock);
  return ready;
}

ts_status pj_event_await(pj_remote *r, pj_event *e) {
  pthread_mutex_lock(&r->lock);
  while (!e->is_ready) pthread_cond_wait(&r->ended, &r->lock);
  ts_status status = (ts_status)error_of(e);
  pthread_mutex_unlock(&r->lock);
  return status;
}

void pj_event_on_ready(pj_remote *r, pj_args *args) {
  pj_event *e = args->on_ready.event;
  pthread_mutex_lock(&r->lock);
  bool now = e->is_ready;
  if (!now) {
    e->call = args->on_ready.call;
    e->arg = args->on_ready.arg;
  }
  pj_error *error = now ? error_of(e) : NULL;
  pthread_mutex_unlock(&r->lock);
  if (now) args->on_ready.call(error, args->on_ready.arg);
}

/* ---- the end of the process */

static ts_status died(pj_remote *r) {
  return ts_error(TS_UNAVAILABLE, "the process of the plugin %s", r->reason[0] ? r->reason : "has ended");
}

/* Kills it unless it has ended, and what it has started. The lock is held. */
static void kill_now(pj_remote *r) {
  if (r->pid) kill(-r->pid, SIGKILL);
}

static void describe_end(pj_remote *r, int status) {
  if (r->reason[0]) return; /* what it was ended for */
  if (WIFSIGNALED(status))
    snprintf(r->reason, sizeof r->reason, "has ended with signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  else if (WIFEXITED(status))
    snprintf(r->reason, sizeof r->reason, "has ended with status %d", WEXITSTATUS(status));
}

/* Ends all that waits. */
static void end_all(pj_remote *r) {
  pthread_mutex_lock(&r->lock);
  r->is_dead = true;
  for (pj_waiting *w = r->waiting; w; w = w->next) {
    w->is_done = true;
    pthread_cond_signal(&w->signal);
  }
  r->waiting = NULL;
  pj_event *events = r->events;
  r->events = NULL;
  pthread_mutex_unlock(&r->lock);
  while (events) {
    pj_event *next = events->next;
    end_event(r, events, died(r), NULL, 0);
    events = next;
  }
}

/* The process has ended or is ended now. A process that waits in a driver ends when the driver lets it, and nothing
 * else waits for that. */
static void reap(pj_remote *r) {
  pthread_mutex_lock(&r->lock);
  kill_now(r);
  pid_t pid = r->pid;
  r->pid = 0;
  hang_up_locked(r);
  pthread_mutex_unlock(&r->lock);
  end_all(r);
  (void)waitpid(pid, NULL, 0);
}

static void close_files(pj_remote *r) {
  if (r->socket >= 0) close(r->socket);
  if (r->bell >= 0) close(r->bell);
  r->socket = r->bell = -1;
}

/* What a process that has ended leaves: its tensors and programs may be held for long. */
static void let_go(pj_remote *r) {
  free_surplus(r);
  pthread_mutex_lock(&r->sending);
  pthread_mutex_lock(&r->lock);
  close_files(r);
  pthread_mutex_unlock(&r->lock);
  pthread_mutex_unlock(&r->sending);
}

static void release(pj_remote *r) {
  if (atomic_fetch_sub(&r->refs, 1) != 1) return;
  close_files(r);
  while (r->segments) {
    pj_segment *next = r->segments->next;
    free_segment(r->segments);
    r->segments = next;
  }
  pthread_mutex_destroy(&r->lock);
  pthread_mutex_destroy(&r->sending);
  pthread_cond_destroy(&r->ended);
  ts_free(r->name);
  ts_free(r->version);
  ts_free(r->kind);
  ts_free(r->devices);
  ts_free(r);
}

/* ---- the reader */

static void take_answer(pj_remote *r, pj_wire_message *m) {
  pthread_mutex_lock(&r->lock);
  for (pj_waiting **at = &r->waiting; *at; at = &(*at)->next) {
    pj_waiting *w = *at;
    if (w->id != m->head.id) continue;
    *at = w->next;
    w->answer = *m;
    w->is_done = true;
    *m = (pj_wire_message){.file = -1};
    pthread_cond_signal(&w->signal);
    break;
  }
  pthread_mutex_unlock(&r->lock);
}

static ts_status take_status(pj_fields *f) {
  size_t size;
  ts_code code = (ts_code)pj_take(f);
  const char *text = pj_take_bytes(f, &size);
  if (f->is_cut) return ts_error(TS_INTERNAL, "the process of the plugin answers wrongly");
  return code == TS_OK ? TS_SUCCESS : ts_error(code, "%.*s", (int)size, text);
}

static void take_end(pj_remote *r, const pj_wire_message *m) {
  size_t size;
  pj_fields f = pj_fields_of(m);
  pthread_mutex_lock(&r->lock);
  pj_event *e = take_event(r, m->head.id);
  pthread_mutex_unlock(&r->lock);
  if (!e) return;
  ts_status status = take_status(&f);
  const char *bytes = pj_take_bytes(&f, &size);
  if (!status && f.is_cut) status = ts_error(TS_INTERNAL, "the process of the plugin answers wrongly");
  end_event(r, e, status, bytes, size);
}

enum { PASSED = -2 };

/* The first deadline, and the option that sets it. The lock is held. */
static int64_t first_deadline(const pj_remote *r, const char **out_option) {
  int64_t first = INT64_MAX;
  *out_option = "timeout"; /* of events */
  for (const pj_event *e = r->events; e; e = e->next) first = e->deadline_ns < first ? e->deadline_ns : first;
  for (const pj_waiting *w = r->waiting; w; w = w->next) {
    if (w->deadline_ns >= first) continue;
    first = w->deadline_ns;
    *out_option = w->option;
  }
  return first;
}

/* Milliseconds until the next deadline; -1: there is none. */
static int next_deadline(pj_remote *r) {
  const char *option;
  pthread_mutex_lock(&r->lock);
  int64_t now = ts_system_ns(), next = first_deadline(r, &option);
  if (next <= now && !r->reason[0])
    snprintf(r->reason, sizeof r->reason, "did not answer by its deadline (%s), and was ended", option);
  r->wakes_ns = next;
  pthread_mutex_unlock(&r->lock);
  if (next == INT64_MAX) return -1;
  if (next <= now) return PASSED;
  int64_t left = (next - now) / 1000000 + 1;
  return left < 1000000 ? (int)left : 1000000;
}

static bool read_one(pj_remote *r) {
  pj_wire_message m;
  if (!pj_wire_receive(r->socket, &m)) return false;
  if (m.head.kind == PJ_WIRE_ANSWER) take_answer(r, &m);
  if (m.head.kind == PJ_WIRE_EVENT) take_end(r, &m);
  bool goes_on = m.head.kind != PJ_WIRE_END; /* processes that the plugin has started may hold the socket open */
  if (!goes_on) describe_end(r, (int)m.head.id);
  pj_wire_free(&m);
  return goes_on;
}

static void *read_all(void *context) {
  pj_remote *r = context;
  for (bool goes_on = true; goes_on;) {
    uint64_t rung;
    struct pollfd files[] = {{.fd = r->socket, .events = POLLIN}, {.fd = r->bell, .events = POLLIN}};
    int ms = next_deadline(r);
    if (ms == PASSED || (poll(files, 2, ms) < 0 && errno != EINTR)) break;
    if (files[1].revents && read(r->bell, &rung, sizeof rung) < 0) break;
    if (files[0].revents) goes_on = read_one(r);
  }
  (void)next_deadline(r); /* the deadline may have passed within a message */
  reap(r);
  let_go(r);
  release(r);
  return NULL;
}

ts_status pj_remote_watch(pj_remote *r) {
  atomic_store(&r->refs, 2);
  if (ts_thread_start_with("tessera_plugin", read_all, r, 0)) return TS_SUCCESS;
  atomic_store(&r->refs, 1);
  kill_now(r);
  waitpid(r->pid, NULL, 0);
  r->pid = 0;
  return ts_error(TS_RESOURCE_EXHAUSTED, "no thread can be started for the process of a plugin");
}

bool pj_remote_is_dead(pj_remote *r) {
  pthread_mutex_lock(&r->lock);
  bool dead = r->is_dead;
  pthread_mutex_unlock(&r->lock);
  return dead;
}

void pj_remote_end(pj_remote *r) {
  if (!r) return;
  pthread_mutex_lock(&r->lock);
  kill_now(r);
  hang_up_locked(r);
  pthread_mutex_unlock(&r->lock);
  release(r);
}

/* ---- calls */

/* How long a process may take to end its client before it is killed. */
#define CLOSE_NS INT64_C(10000000000)

static int64_t after(int64_t ns) { return ns == INT64_MAX ? INT64_MAX : ts_system_ns() + ns; }

static int64_t deadline(const pj_remote *r, int function, const char **out_option) {
  *out_option = "timeout";
  switch (function) {
  case PJ_COMPILE:
  case PJ_LOAD:
  case PJ_EXECUTABLE_SERIALIZE: *out_option = "compile_timeout"; return after(r->compile_ns);
  case PJ_INITIALIZE:
  case PJ_CLIENT_CREATE:
  case PJ_CLIENT_NAME:
  case PJ_CLIENT_VERSION:
  case PJ_DEVICE_DESCRIPTION:
  case PJ_DESCRIPTION_KIND:
  case PJ_CLIENT_DEVICES: *out_option = "open_timeout"; return r->open_by_ns;
  case PJ_CLIENT_DESTROY: return after(r->answer_ns < CLOSE_NS ? r->answer_ns : CLOSE_NS);
  default: return after(r->answer_ns);
  }
}

ts_status pj_asking_event(pj_asking *a) {
  const char *option;
  TS_TRY(TS_NEW(&a->event));
  a->event->deadline_ns = deadline(a->remote, a->function, &option);
  return TS_SUCCESS;
}

/* Makes the call known; false if the process has ended. */
static bool enter(pj_asking *a, pj_waiting *w) {
  pj_remote *r = a->remote;
  pthread_mutex_lock(&r->lock);
  bool alive = !r->is_dead;
  w->id = ++r->last_id;
  if (alive) {
    w->next = r->waiting;
    r->waiting = w;
    if (a->event) {
      a->event->id = w->id;
      a->event->next = r->events;
      r->events = a->event;
    }
  }
  if (alive && w->deadline_ns < r->wakes_ns && r->bell >= 0) (void)!write(r->bell, &(uint64_t){1}, sizeof(uint64_t));
  pthread_mutex_unlock(&r->lock);
  return alive;
}

/* The event of a call that failed has no end, unless the process ended it. */
static void drop_event(pj_asking *a) {
  pj_remote *r = a->remote;
  pj_event *e = a->event;
  if (!e) return;
  pthread_mutex_lock(&r->lock);
  bool pending = e->id && take_event(r, e->id) == e;
  pthread_mutex_unlock(&r->lock);
  a->event = NULL;
  if (pending || !e->id) {
    pj_segment_give(r, e->segment);
    free_event(e);
  } else {
    pj_event_destroy(r, e);
  }
}

ts_status pj_ask(pj_asking *a) {
  pj_remote *r = a->remote;
  pj_waiting w = {.answer.file = -1};
  w.deadline_ns = deadline(r, a->function, &w.option);
  if (a->fields.failed) return ts_error_no_memory();
  pthread_cond_init(&w.signal, NULL);
  if (enter(a, &w)) {
    tell(r,
         &(pj_wire_head){.id = w.id, .kind = PJ_WIRE_CALL, .function = (uint32_t)a->function, .size = a->fields.length},
         a->fields.data, -1);
    pthread_mutex_lock(&r->lock);
    while (!w.is_done) pthread_cond_wait(&w.signal, &r->lock);
    pthread_mutex_unlock(&r->lock);
  }
  pthread_cond_destroy(&w.signal);
  a->message = w.answer;
  if (!a->message.fields) return died(r);
  a->answer = pj_fields_of(&a->message);
  return take_status(&a->answer);
}

ts_status pj_asking_end(pj_asking *a, ts_status status) {
  if (!status && a->answer.is_cut) status = ts_error(TS_INTERNAL, "the process of the plugin answers wrongly");
  if (status) drop_event(a);
  ts_text_deinit(&a->fields);
  pj_wire_free(&a->message);
  return status;
}

void pj_remote_cast(pj_remote *r, int function, void *object) {
  uint64_t number = (uint64_t)(uintptr_t)object;
  tell(r, &(pj_wire_head){.kind = PJ_WIRE_CAST, .function = (uint32_t)function, .size = sizeof number},
       (const char *)&number, -1);
}
