/* Sorts and argsorts of single short lines by ranks: each key is compared with all others. A network sorts as many
 * lines as a vector has lanes, and takes as long for one. */
#ifndef TS_KERNEL_SORT_SHORT_H
#define TS_KERNEL_SORT_SHORT_H

#include "kernel/sort/sort_internal.h"

/* The longest line. */
#define TS_SORT_SHORT 128

/* Sorts a line whose elements are neighbours, of two bytes or more: still smaller ones are sorted by their bits. */
void ts_sort_short(const ts_sort_job *job, int64_t line);
/* Estimated time of a line. */
double ts_sort_short_ns(int width, int64_t n);

#endif
