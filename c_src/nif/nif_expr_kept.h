/* Rules that Erlang has lowered, kept for all: layers of a network have the rules of another one's, and so has the next
 * call with another constant. Known by op, arguments and forms. Thread-safe: a lock, and each rule has a count of who
 * uses it and never changes. */
#ifndef TS_NIF_EXPR_KEPT_H
#define TS_NIF_EXPR_KEPT_H

#include "nif/nif_expr_internal.h"
#include "nif/nif_graph.h"

/* With a reference; NULL when it is not there. */
ts_expr_kept *ts_expr_kept_find(const void *key, size_t size);
void ts_expr_kept_release(ts_expr_kept *kept);
/* A region of a finished program, and its text. One for which there is no memory is not kept. */
void ts_expr_kept_add(const void *key, size_t size, ts_nif_builder *program, const ts_expr_rule *rule, const char *text,
                      size_t length);
void ts_expr_kept_clear(void);

#endif
