/* A cache of the rules that Erlang has lowered, by op, arguments and forms: the layers of a network share them, and so
 * does the next call with another constant. Thread-safe: the table has a lock; a rule is immutable and
 * reference-counted. */
#ifndef TS_FRONT_EXPR_KEPT_H
#define TS_FRONT_EXPR_KEPT_H

#include "front/expr.h"

/* Returns a reference; NULL on a miss. */
ts_expr_kept *ts_expr_kept_find(const void *key, size_t size);
void ts_expr_kept_release(ts_expr_kept *kept);
/* Adds a region of a finished program, and its text. When there is no memory, the rule is not added. */
void ts_expr_kept_add(const void *key, size_t size, const ts_expr_owner *owner, const ts_expr_rule *rule,
                      const char *text, size_t length);
void ts_expr_kept_clear(void);

#endif
