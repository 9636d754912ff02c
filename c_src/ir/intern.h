/* Interned shapes and attributes: values and ops of a graph point to them, so that a value is small, and equal shapes
 * have equal addresses. A graph that is made from another one also uses that one's table. Any thread may count
 * references; only the graph's owner adds. Internal to ir/. */
#ifndef TS_IR_INTERN_H
#define TS_IR_INTERN_H

#include "base/arena.h"
#include "ir/graph.h"

#include <stdatomic.h>

typedef struct ts_intern {
  _Atomic uint32_t refs;
  struct ts_intern *base; /* the table of the other graph: a reference, or NULL; read-only */
  ts_arena arena;
  struct ts_interned *slots; /* open addressing */
  size_t count, capacity;
  struct ts_foreign *foreign; /* memo of the last lookups by address; NULL at first */
} ts_intern;

/* Created with one reference. Retains `base`, which may be NULL. */
ts_status ts_intern_create(ts_intern *base, ts_intern **out);
void ts_intern_release(ts_intern *intern); /* NULL is allowed */

/* True when the contents of `other` live as long as `intern` does. */
static inline bool ts_intern_holds(const ts_intern *intern, const ts_intern *other) {
  while (intern && intern != other) intern = intern->base;
  return intern != NULL;
}

/* The interned shape or attributes equal to the given ones; attributes are made canonical. They live as long as
 * `intern` does. */
ts_status ts_intern_shape(ts_intern *intern, const ts_shape *shape, const ts_shape **out);
ts_status ts_intern_attrs(ts_intern *intern, ts_opcode code, const ts_attrs *attrs, const ts_attrs **out);

/* The same for objects of another intern table, where lookups by the same address often repeat. */
ts_status ts_intern_shape_of(ts_intern *intern, const ts_shape *other, const ts_shape **out);
ts_status ts_intern_attrs_of(ts_intern *intern, ts_opcode code, const ts_attrs *other, const ts_attrs **out);

#endif
