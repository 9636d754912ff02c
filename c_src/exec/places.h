/* The places of an executable's steps in the user's source, for profiles. They are beside the steps, since no run reads
 * them. */
#ifndef TS_EXEC_PLACES_H
#define TS_EXEC_PLACES_H

#include "base/places.h"
#include "exec/executable.h"

struct ts_step;
struct ts_builder;

/* By the steps' positions. Owned by the executable. */
typedef struct ts_step_places {
  ts_places *table;
  size_t count;
  ts_place of[];
} ts_step_places;

/* ---- building ---- */
/* The steps from position `first` on that have no place yet get this one. */
ts_status ts_builder_place(struct ts_builder *b, int32_t first, ts_place place);
/* The step at that position computes for `place` as well. */
ts_status ts_builder_place_more(struct ts_builder *b, int32_t position, ts_place place);
/* The joined place of an op and of all ops in its regions. */
ts_status ts_builder_place_inside(const struct ts_builder *b, const ts_op *op, ts_place *out);
/* Gives the executable the places. */
ts_status ts_builder_keep_places(struct ts_builder *b);
void ts_step_places_free(ts_step_places *places); /* may be NULL */

/* ---- reading ---- */
/* Writes the lines of a step and returns how many; those of a native loop are the lines of its steps. */
size_t ts_step_lines(const ts_executable *executable, const struct ts_step *step, ts_line out[TS_MOST_LINES]);
bool ts_executable_has_places(const ts_executable *executable);
/* Copies the places of `from`, a second compilation of the same program, to an executable without places. *out_taken is
 * false if the steps of both differ. Thread-safe. */
ts_status ts_executable_take_places(ts_executable *executable, const ts_executable *from, bool *out_taken);

#endif
