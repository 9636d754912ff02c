/* Shapes and attributes, kept once each: values and ops of a graph point to them, so that a value is small, and two
 * shapes at one address are equal. A graph that is made from another one also points to what that one keeps.
 * References are counted by any thread; adding is for the owner of the graph. Internal to ir/. */
#ifndef TS_IR_INTERN_H
#define TS_IR_INTERN_H

#include "base/arena.h"
#include "tensor/shape.h"

#include <stdatomic.h>

typedef struct ts_intern {
  _Atomic uint32_t refs;
  struct ts_intern *base; /* a reference, or NULL; only read */
  ts_arena arena;
  struct ts_interned *slots; /* open addressing */
  size_t count, capacity;
  struct ts_foreign *foreign; /* what was asked for last by its place elsewhere; NULL at first */
} ts_intern;

/* With one reference. Takes one of `base`, which may be NULL. */
ts_status ts_intern_create(ts_intern *base, ts_intern **out);
void ts_intern_release(ts_intern *intern); /* NULL is fine */

/* True when what `other` keeps lives as long as `intern` does. */
static inline bool ts_intern_holds(const ts_intern *intern, const ts_intern *other) {
  while (intern && intern != other) intern = intern->base;
  return intern != NULL;
}

/* The one of equal shapes, and of equal bytes. They live as long as `intern` does. */
ts_status ts_intern_shape(ts_intern *intern, const ts_shape *shape, const ts_shape **out);
ts_status ts_intern_bytes(ts_intern *intern, const void *bytes, size_t size, const void **out);

/* The same for what another intern keeps, which is mostly asked for again and again. */
ts_status ts_intern_shape_of(ts_intern *intern, const ts_shape *other, const ts_shape **out);
ts_status ts_intern_bytes_of(ts_intern *intern, const void *other, size_t size, const void **out);

#endif
