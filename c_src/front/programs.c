#include "front/programs.h"

#include "base/lock.h"
#include "base/map.h"
#include "base/slots.h"

#include <string.h>

/* Limits of the shared cache and of each thread's recent programs. */
enum { MAX_PROGRAMS = 2048, RECENT = 64 };

struct ts_eager_program {
  struct ts_eager_program *newer, *older; /* under the lock */
  _Atomic uint32_t refs;
  ts_loaded *executable;
  bool is_like;
  int form;
  uint64_t hash;
  size_t key_size;
  char key[];
};

/* A thread's recent programs, by the key's hash. A thread that shares the slot and finds it locked uses the shared
 * cache. */
typedef struct ts_eager_recent {
  ts_spin lock;
  ts_eager_program *programs[RECENT];
  char apart[TS_SLOT_BYTES];
} ts_eager_recent;

static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static ts_map programs;
static ts_eager_program *newest, *oldest;
static ts_eager_recent recents[TS_SLOTS], knowns[TS_SLOTS];

static void retain(ts_eager_program *p) { atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed); }

static void release(ts_eager_program *p) {
  if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
  ts_loaded_release(p->executable);
  ts_free(p);
}

/* ---- for all */

static void unlink_program(ts_eager_program *p) {
  *(p->newer ? &p->newer->older : &newest) = p->older;
  *(p->older ? &p->older->newer : &oldest) = p->newer;
}

static void push_program(ts_eager_program *p) {
  p->newer = NULL;
  p->older = newest;
  *(newest ? &newest->newer : &oldest) = p;
  newest = p;
}

/* Returns a reference; NULL on a miss. */
static ts_eager_program *get_shared(const void *key, size_t size) {
  pthread_mutex_lock(&lock);
  ts_eager_program *p = ts_map_get(&programs, key, size);
  if (p) {
    retain(p);
    if (p != newest) {
      unlink_program(p);
      push_program(p);
    }
  }
  pthread_mutex_unlock(&lock);
  return p;
}

static void drop_oldest(void) {
  ts_eager_program *p = oldest;
  unlink_program(p);
  ts_map_remove(&programs, p->key, p->key_size);
  release(p);
}

static bool is_like(const ts_loaded *executable) {
  if (executable->param_count == 0 || executable->result_count != 1) return false;
  const ts_type *made = *executable->result_types, *first = *executable->param_types;
  return made->dtype == first->dtype && ts_shape_equal(&made->shape, &first->shape);
}

/* A reference; NULL when there is no memory. */
static ts_eager_program *new_program(const void *key, size_t size, ts_loaded *executable) {
  ts_eager_program *p;
  if (!ts_status_consume_ok(ts_alloc(sizeof *p + size, (void **)&p))) return NULL;
  memcpy(p->key, key, size);
  p->key_size = size;
  p->hash = ts_hash64(key, size);
  p->executable = executable;
  p->is_like = is_like(executable);
  p->form = 0;
  ts_loaded_retain(executable);
  atomic_init(&p->refs, 1);
  return p;
}

/* When there is no memory, the program is not added. */
void ts_eager_program_add(const void *key, size_t size, ts_loaded *executable) {
  ts_eager_program *p = new_program(key, size, executable);
  if (!p) return;
  pthread_mutex_lock(&lock);
  if (ts_map_get(&programs, key, size) || !ts_status_consume_ok(ts_map_put(&programs, key, size, p))) {
    release(p);
  } else {
    push_program(p);
    if (programs.count > MAX_PROGRAMS) drop_oldest();
  }
  pthread_mutex_unlock(&lock);
}

static void forget(ts_eager_recent *recent) {
  ts_eager_program *found[RECENT];
  ts_spin_lock(&recent->lock);
  memcpy(found, recent->programs, sizeof found);
  memset(recent->programs, 0, sizeof found);
  ts_spin_unlock(&recent->lock);
  for (int i = 0; i < RECENT; i++) release(found[i]);
}

void ts_eager_programs_clear(void) {
  pthread_mutex_lock(&lock);
  while (oldest) drop_oldest();
  pthread_mutex_unlock(&lock);
  for (int s = 0; s < TS_SLOTS; s++) forget(&recents[s]);
}

void ts_known_programs_clear(void) {
  for (int s = 0; s < TS_SLOTS; s++) forget(&knowns[s]);
}

/* ---- for a thread */

static bool has_key(const ts_eager_program *p, uint64_t hash, const void *key, size_t size) {
  return p && p->hash == hash && p->key_size == size && memcmp(p->key, key, size) == 0;
}

bool ts_eager_program_find(const void *key, size_t size, ts_eager_use *out) {
  uint64_t hash = ts_hash64(key, size);
  ts_eager_recent *recent = &recents[ts_slot()];
  bool locked = ts_spin_try(&recent->lock);
  ts_eager_program **entry = &recent->programs[hash % RECENT], *before = NULL;
  *out = (ts_eager_use){.recent = locked ? recent : NULL};
  if (locked && has_key(*entry, hash, key, size)) {
    out->program = *entry;
    return true;
  }
  out->program = get_shared(key, size);
  if (locked && out->program) {
    before = *entry;
    *entry = out->program;
  } else if (locked) {
    ts_spin_unlock(&recent->lock);
  }
  release(before);
  return out->program != NULL;
}

/* ---- known ones: in one of two places, since a program that is not found takes a longer way each time */

static ts_eager_program **first_place(ts_eager_recent *recent, uint64_t hash) {
  return &recent->programs[hash % RECENT];
}

static ts_eager_program **second_place(ts_eager_recent *recent, uint64_t hash) {
  return &recent->programs[hash / RECENT % RECENT];
}

bool ts_known_program_find(const void *key, size_t size, ts_eager_use *out) {
  uint64_t hash = ts_hash64(key, size);
  ts_eager_recent *recent = &knowns[ts_slot()];
  if (!ts_spin_try(&recent->lock)) return false;
  ts_eager_program *p = *first_place(recent, hash);
  if (!has_key(p, hash, key, size)) p = *second_place(recent, hash);
  if (has_key(p, hash, key, size)) {
    *out = (ts_eager_use){.program = p, .recent = recent};
    return true;
  }
  ts_spin_unlock(&recent->lock);
  return false;
}

/* The first place for an equal key, for the first program, and for one that finds both places taken. */
static ts_eager_program **place(ts_eager_recent *recent, const ts_eager_program *p) {
  ts_eager_program **first = first_place(recent, p->hash), **second = second_place(recent, p->hash);
  if (has_key(*second, p->hash, p->key, p->key_size)) return second;
  return !*first || *second || has_key(*first, p->hash, p->key, p->key_size) ? first : second;
}

void ts_known_program_add(const void *key, size_t size, ts_loaded *executable, int form) {
  ts_eager_program *p = new_program(key, size, executable);
  ts_eager_recent *recent = &knowns[ts_slot()];
  if (!p) return;
  p->form = form;
  ts_spin_lock(&recent->lock);
  ts_eager_program **entry = place(recent, p), *before = *entry;
  *entry = p;
  ts_spin_unlock(&recent->lock);
  release(before);
}

void ts_eager_program_done(ts_eager_use *use) {
  if (use->recent)
    ts_spin_unlock(&use->recent->lock);
  else
    release(use->program);
}

ts_loaded *ts_eager_program_executable(const ts_eager_use *use) { return use->program->executable; }

int ts_known_program_form(const ts_eager_use *use) { return use->program->form; }

bool ts_eager_program_is_like(const ts_eager_use *use) { return use->program->is_like; }
