/* The attributes' canonical form. Internal to ir/. Pure, thread-safe. */
#ifndef TS_IR_ATTRS_H
#define TS_IR_ATTRS_H

#include "ir/graph.h"

/* Fills the zeroed `out` with what `in` says: no garbage in padding or past a
 * rank, sets of axes sorted. `in` must have passed inference. */
void ts_attrs_canonicalize(ts_opcode code, const ts_attrs *in, ts_attrs *out);

/* Writes the regions that attributes name, returns how many. */
size_t ts_attrs_regions(ts_opcode code, const ts_attrs *attrs, ts_region_id out[2]);

#endif
