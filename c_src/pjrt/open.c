/* Opening: the options, the deadline, and the door. An isolated client may follow another one behind the same door. */
#include "base/system.h"
#include "base/thread.h"
#include "pjrt/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OPEN_MS = 120000, STACK_BYTES = 256 << 20 };

/* As many operations of a client may wait while another process is started, or a program compiled for it. */
enum { MOST_WAITING = 128 };

struct pj_door {
  pthread_mutex_t lock;     /* short */
  pthread_mutex_t opening;  /* while another client is opened, or a program compiled for it */
  _Atomic int waiting;      /* operations that have this lock or wait for it */
  _Atomic int64_t failures; /* tries to start it again that failed */
  pj_client *client;        /* under the lock */
  pj_opening how;
};

/* ---- options */

static ts_status expected(const char *name, const char *what) {
  return ts_error(TS_INVALID_ARGUMENT, "%s: expected %s", name, what);
}

static ts_status read_ms(const ts_setting *s, int64_t *out) {
  if (s->kind != TS_SETTING_INTEGER || s->integer < 0 || s->integer > INT32_MAX)
    return expected(s->name, "milliseconds, or 0 for no deadline");
  *out = s->integer;
  return TS_SUCCESS;
}

static ts_status read_precision(const ts_setting *s, ts_stablehlo_precision *out) {
  static const char *const names[] = {
      [TS_STABLEHLO_HIGHEST] = "highest", [TS_STABLEHLO_HIGH] = "high", [TS_STABLEHLO_DEFAULT] = "default"};
  for (size_t i = 0; s->kind == TS_SETTING_TEXT && i < sizeof names / sizeof *names; i++) {
    if (strcmp(s->text, names[i]) != 0) continue;
    *out = (ts_stablehlo_precision)i;
    return TS_SUCCESS;
  }
  return expected(s->name, "default, high or highest");
}

/* Options that are not the plugin's; *out_own is false for others. */
static ts_status read_own(const ts_setting *s, pj_opening *o, bool *out_own) {
  *out_own = true;
  if (strcmp(s->name, "open_timeout") == 0) return read_ms(s, &o->deadlines.open_ms);
  if (strcmp(s->name, "timeout") == 0) return read_ms(s, &o->deadlines.answer_ms);
  if (strcmp(s->name, "compile_timeout") == 0) return read_ms(s, &o->deadlines.compile_ms);
  if (strcmp(s->name, "precision") == 0) return read_precision(s, &o->precision);
  if (strcmp(s->name, "isolated") == 0) {
    if (s->kind != TS_SETTING_BOOLEAN) return expected(s->name, "true or false");
    o->isolated = s->integer != 0;
    return TS_SUCCESS;
  }
  if (strcmp(s->name, "plugin_path") == 0) {
    if (s->kind != TS_SETTING_TEXT) return expected(s->name, "the path of a file");
    ts_free(o->path);
    return ts_strdup(s->text, &o->path);
  }
  *out_own = false;
  return TS_SUCCESS;
}

static ts_status copy_option(const ts_setting *s, pj_named *out) {
  char *text;
  *out = (pj_named){.size = sizeof *out, .value_size = 1};
  TS_TRY(ts_strdup(s->name, &text));
  out->name = text;
  out->name_size = strlen(text);
  switch (s->kind) {
  case TS_SETTING_TEXT:
    out->kind = PJ_STRING;
    TS_TRY(ts_strdup(s->text, &text));
    out->string = text;
    out->value_size = strlen(text);
    break;
  case TS_SETTING_INTEGER:
    out->kind = PJ_INT64;
    out->integer = s->integer;
    break;
  case TS_SETTING_FLOAT:
    out->kind = PJ_FLOAT;
    out->number = (float)s->number;
    break;
  case TS_SETTING_BOOLEAN:
    out->kind = PJ_BOOL;
    out->boolean = s->integer != 0;
    break;
  }
  return TS_SUCCESS;
}

static void free_option(pj_named *o) {
  ts_free((void *)(uintptr_t)o->name);
  if (o->kind == PJ_STRING) ts_free((void *)(uintptr_t)o->string);
}

static void free_opening(pj_opening *o) {
  for (size_t i = 0; i < o->option_count; i++) free_option(&o->options[i]);
  ts_free(o->options);
  ts_free(o->path);
}

static ts_status find_path(pj_opening *o) {
  const char *named = getenv("TESSERA_PJRT_PLUGIN");
  if (o->path && *o->path) return TS_SUCCESS;
  if (!named || !*named)
    return ts_error(TS_INVALID_ARGUMENT,
                    "a client of the platform pjrt needs the option plugin_path, or the environment variable "
                    "TESSERA_PJRT_PLUGIN, with the file of a plugin (docs/accelerators.md says which there are)");
  ts_free(o->path);
  return ts_strdup(named, &o->path);
}

static ts_status read_options(const ts_open_options *options, pj_opening *o) {
  const ts_settings *settings = &options->settings;
  *o = (pj_opening){
      .device_count = options->device_count, .limit = options->memory_limit, .deadlines = {.open_ms = OPEN_MS}};
  TS_TRY(TS_NEW_ARRAY(settings->count + 1, &o->options));
  for (size_t i = 0; i < settings->count; i++) {
    bool own;
    TS_TRY(read_own(&settings->items[i], o, &own));
    if (!own) TS_TRY(copy_option(&settings->items[i], &o->options[o->option_count++]));
  }
  return find_path(o);
}

static void free_door(pj_door *door) {
  free_opening(&door->how);
  pthread_mutex_destroy(&door->lock);
  pthread_mutex_destroy(&door->opening);
  ts_free(door);
}

static ts_status new_door(const ts_open_options *options, pj_door **out) {
  pj_door *door;
  TS_TRY(TS_NEW(&door));
  pthread_mutex_init(&door->lock, NULL);
  pthread_mutex_init(&door->opening, NULL);
  ts_status status = read_options(options, &door->how);
  if (status)
    free_door(door);
  else
    *out = door;
  return status;
}

/* ---- opening
 * A thread opens the client, and another one waits for it until the deadline. If that has passed, the first thread ends
 * its client, whenever it is done. */

typedef struct open_job {
  pthread_mutex_t lock;
  pthread_cond_t opened;
  bool is_open, is_late; /* is_late: the caller has had its answer */
  ts_status status;
  pj_door *door;
  ts_opened *out;
  ts_done done;
} open_job;

static void free_job(open_job *o) {
  pthread_mutex_destroy(&o->lock);
  pthread_cond_destroy(&o->opened);
  ts_free(o);
}

static void end_opening(open_job *o, ts_status status) {
  pthread_mutex_lock(&o->lock);
  bool late = o->is_late;
  o->is_open = true;
  o->status = status;
  pthread_cond_signal(&o->opened);
  pthread_mutex_unlock(&o->lock);
  if (!late) return;
  ts_status_free(status);
  pj_door_close(o->door);
  free_job(o);
}

static void *open_now(void *context) {
  open_job *o = context;
  end_opening(o, pj_client_create(&o->door->how, &o->door->client));
  return NULL;
}

static void answer(const open_job *o, ts_status status) {
  ts_done done = o->done;
  if (!status) {
    /* A plugin may know more devices than are wanted, or than a client can have. */
    const pj_client *client = o->door->client;
    int32_t count = o->door->how.device_count ? o->door->how.device_count : client->device_count;
    *o->out = (ts_opened){o->door, count < 64 ? count : 64};
  }
  ts_done_call(done, status);
}

static struct timespec after(int64_t ms) {
  int64_t ns = ts_system_ns() + ms * 1000000;
  return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* An isolated plugin has the deadline itself: its process is ended then. */
static bool waits_for(open_job *o) {
  struct timespec until = after(o->door->how.deadlines.open_ms);
  bool forever = o->door->how.isolated || o->door->how.deadlines.open_ms == 0;
  pthread_mutex_lock(&o->lock);
  for (int error = 0; !o->is_open && error != ETIMEDOUT;)
    error = forever ? pthread_cond_wait(&o->opened, &o->lock) : pthread_cond_timedwait(&o->opened, &o->lock, &until);
  bool opened = o->is_open;
  o->is_late = !opened;
  pthread_mutex_unlock(&o->lock);
  return opened;
}

static ts_status too_late(const pj_opening *how) {
  return ts_error(TS_UNAVAILABLE, "the plugin %s did not open within %lld ms (open_timeout)", how->path,
                  (long long)how->deadlines.open_ms);
}

static void *wait_until_open(void *context) {
  open_job *o = context;
  ts_done done = o->done;
  ts_status late = too_late(&o->door->how); /* the other thread may free the job */
  if (!waits_for(o)) {
    ts_done_call(done, late);
    return NULL;
  }
  ts_status_free(late);
  ts_status status = o->status;
  pj_door *door = o->door;
  answer(o, status);
  if (status) free_door(door);
  free_job(o);
  return NULL;
}

static ts_status new_job(const ts_open_options *options, ts_opened *out, ts_done done, open_job **out_job) {
  pthread_condattr_t clock;
  TS_TRY(TS_NEW(out_job));
  **out_job = (open_job){.out = out, .done = done};
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&(*out_job)->lock, NULL);
  pthread_cond_init(&(*out_job)->opened, &clock);
  pthread_condattr_destroy(&clock);
  ts_status status = new_door(options, &(*out_job)->door);
  if (status) free_job(*out_job);
  return status;
}

static ts_status no_thread(void) { return ts_error(TS_RESOURCE_EXHAUSTED, "no thread can be started for plugins"); }

static ts_status begin(const ts_open_options *options, ts_opened *out, ts_done done) {
  open_job *o;
  TS_TRY(pj_work_start());
  TS_TRY(new_job(options, out, done, &o));
  if (!ts_thread_start_with("tessera_opens", wait_until_open, o, 0)) {
    free_door(o->door);
    free_job(o);
    return no_thread();
  }
  if (!ts_thread_start_with("tessera_open", open_now, o, STACK_BYTES)) end_opening(o, no_thread());
  return TS_SUCCESS;
}

void pj_door_open(const ts_open_options *options, ts_opened *out, ts_done done) {
  ts_status status = begin(options, out, done);
  if (status) ts_done_call(done, status);
}

void pj_door_close(void *door) {
  pj_door *d = door;
  if (d->client) pj_client_release(d->client);
  free_door(d);
}

/* ---- behind the door */

pj_client *pj_door_present(pj_door *d) {
  pthread_mutex_lock(&d->lock);
  pj_client *client = d->client;
  pj_client_retain(client);
  pthread_mutex_unlock(&d->lock);
  return client;
}

void pj_door_get_memory(void *door, ts_memory_stats *out) {
  pj_client *c = pj_door_present(door);
  *out = (ts_memory_stats){.live = atomic_load(&c->bytes),
                           .peak = atomic_load(&c->peak),
                           .limit = c->device_limit < c->limit ? c->device_limit : c->limit,
                           .allocations = atomic_load(&c->allocations)};
  pj_client_release(c);
}

static bool is_gone(const pj_client *c) { return pj_plugin_is_gone(c->plugin); }

/* Takes the opening lock. A thread may wait for it as long as a plugin takes to open. Another thread takes its place
 * meanwhile, so that operations of other clients go on. */
static ts_status enter(pj_door *d) {
  if (atomic_fetch_add(&d->waiting, 1) >= MOST_WAITING) {
    atomic_fetch_sub(&d->waiting, 1);
    return ts_error(TS_UNAVAILABLE, "the plugin's process is started again, and %d operations wait for it already",
                    MOST_WAITING);
  }
  pj_work_spare(1);
  pthread_mutex_lock(&d->opening);
  return TS_SUCCESS;
}

static void leave(pj_door *d) {
  pthread_mutex_unlock(&d->opening);
  pj_work_spare(-1);
  atomic_fetch_sub(&d->waiting, 1);
}

/* The opening lock is held. */
static ts_status renew(pj_door *d, pj_client **inout) {
  pj_client *next, *old;
  if (!is_gone(*inout)) return TS_SUCCESS;
  TS_TRY(pj_client_create(&d->how, &next));
  pthread_mutex_lock(&d->lock);
  old = d->client;
  d->client = next;
  pthread_mutex_unlock(&d->lock);
  pj_client_release(old);
  pj_client_release(*inout);
  pj_client_retain(next);
  *inout = next;
  return TS_SUCCESS;
}

/* An operation that has waited for a try that failed fails with it: a try takes up to the time that a plugin has to
 * open. */
static ts_status renew_once(pj_door *d, int64_t failures, pj_client **inout) {
  if (is_gone(*inout) && d->failures != failures)
    return ts_error(TS_UNAVAILABLE, "the plugin's process ended, and did not start again");
  ts_status status = renew(d, inout);
  if (status) d->failures++;
  return status;
}

static ts_status renew_in_turn(pj_door *d, pj_client **inout) {
  const int64_t failures = d->failures;
  TS_TRY(enter(d));
  pj_client_release(*inout);
  *inout = pj_door_present(d); /* another thread may have opened it */
  ts_status status = renew_once(d, failures, inout);
  leave(d);
  return status;
}

ts_status pj_door_client(pj_door *d, pj_client **out) {
  pj_client *client = pj_door_present(d);
  ts_status status = is_gone(client) ? renew_in_turn(d, &client) : TS_SUCCESS;
  if (status)
    pj_client_release(client);
  else
    *out = client;
  return status;
}

/* The opening lock is held. Of several clients that have followed each other only the last one has an executable. */
static ts_status compile_for(pj_client *client, pj_code *code) {
  pj_code *old = code->again;
  if (old && old->client == client) return TS_SUCCESS;
  code->again = NULL;
  if (old) pj_release_program(old);
  return pj_compile_again(client, code, &code->again);
}

ts_status pj_door_code(pj_door *d, pj_code *code, pj_code **out) {
  pj_client *client;
  *out = code;
  if (!is_gone(code->client)) return TS_SUCCESS;
  TS_TRY(pj_door_client(d, &client));
  ts_status status = enter(d);
  if (!status) {
    status = compile_for(client, code);
    if (!status) {
      *out = code->again;
      pj_code_retain(*out);
    }
    leave(d);
  }
  pj_client_release(client);
  return status;
}
