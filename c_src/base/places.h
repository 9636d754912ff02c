/* Places in the source of a user's program, such as lines of a function, as small numbers. A place is a list of lines:
 * the place of a step for several ops has the lines of all. Equal lists have equal numbers. Reference counted;
 * thread-safe, since programs that are made from one another share a table. */
#ifndef TS_BASE_PLACES_H
#define TS_BASE_PLACES_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef uint32_t ts_place; /* 0: none */
typedef struct ts_places ts_places;

/* A line as the front end describes it, of whatever bytes. */
typedef struct ts_line {
  const void *data;
  size_t size;
} ts_line;

/* Lines of one place; further ones are left out. */
enum { TS_MOST_LINES = 16 };

ts_status ts_places_create(ts_places **out);
ts_places *ts_places_retain(ts_places *places); /* may be NULL; returns it */
void ts_places_release(ts_places *places);      /* may be NULL */

/* The place of one line. */
ts_status ts_places_add(ts_places *places, const void *data, size_t size, ts_place *out);
/* The lines of `a`, then those of `b` that `a` does not have. */
ts_status ts_places_join(ts_places *places, ts_place a, ts_place b, ts_place *out);
/* Writes the lines of a place, which live as long as the table, and returns how many. */
size_t ts_places_lines(ts_places *places, ts_place place, ts_line out[TS_MOST_LINES]);

#endif
