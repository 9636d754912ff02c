#include "front/expr_kept.h"

#include "base/lock.h"
#include "base/map.h"

#include <string.h>

/* When a limit is exceeded, the cache is cleared: programs in use soon add their rules again. A rule keeps its whole
 * program alive, including ops of other regions, so all of its ops count. */
enum { MOST_KEPT = 4096, MOST_OPS = 1 << 18 };

static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static ts_map rules;
static size_t ops;           /* of the rules' programs */
static const ts_graph *last; /* the program that was counted last: its rules are added one after another */

void ts_expr_kept_release(ts_expr_kept *kept) {
  if (!kept || atomic_fetch_sub_explicit(&kept->refs, 1, memory_order_acq_rel) != 1) return;
  kept->owner.release(kept->owner.object);
  ts_free(kept);
}

ts_expr_kept *ts_expr_kept_find(const void *key, size_t size) {
  pthread_mutex_lock(&lock);
  ts_expr_kept *kept = ts_map_get(&rules, key, size);
  if (kept) atomic_fetch_add_explicit(&kept->refs, 1, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
  return kept;
}

static void clear_locked(void) {
  size_t at = 0, size;
  const void *key;
  void *kept;
  while (ts_map_next(&rules, &at, &key, &size, &kept)) ts_expr_kept_release(kept);
  ts_map_deinit(&rules);
  rules = (ts_map){0};
  ops = 0;
  last = NULL;
}

static void put_locked(const void *key, size_t size, ts_expr_kept *kept) {
  const ts_graph *program = kept->rule.graph;
  if (rules.count >= MOST_KEPT || (program != last && ops > 0 && ops + program->ops.count > MOST_OPS)) clear_locked();
  if (ts_map_get(&rules, key, size) || !ts_status_consume_ok(ts_map_put(&rules, key, size, kept))) {
    ts_expr_kept_release(kept);
    return;
  }
  if (program != last) ops += program->ops.count;
  last = program;
}

void ts_expr_kept_add(const void *key, size_t size, const ts_expr_owner *owner, const ts_expr_rule *rule,
                      const char *text, size_t length) {
  ts_expr_kept *kept;
  if (!ts_status_consume_ok(ts_alloc(sizeof *kept + length, (void **)&kept))) return;
  atomic_init(&kept->refs, 1);
  kept->owner = *owner;
  owner->retain(owner->object);
  kept->rule = *rule;
  kept->length = length;
  memcpy(kept->text, text, length);
  pthread_mutex_lock(&lock);
  put_locked(key, size, kept);
  pthread_mutex_unlock(&lock);
}

void ts_expr_kept_clear(void) {
  pthread_mutex_lock(&lock);
  clear_locked();
  pthread_mutex_unlock(&lock);
}
