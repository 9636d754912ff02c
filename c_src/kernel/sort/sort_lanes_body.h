/* Sorting by lanes for one instruction set, which defines
 *   VECTOR_BYTES                 of a vector: 16, 32 or 64
 *   MIN32 MAX32 MIN64 MAX64      of unsigned lanes
 *   TO_LANE64(key)               if MIN64 and MAX64 compare others than the keys
 *   EXCHANGE_PAIR(a, b)          of pairs, by key, then by index
 *   NS_32 NS_64 NS_PAIR          time of a comparator, for estimates
 *   ISA(name)                    the name of something of this instruction set
 * and, if it has a way to move chosen lanes together, HAS_SPLIT, NS_PARTS32 and NS_PARTS64, and what sort_split.h needs
 * for both kinds of lanes */
#include "kernel/inline.h"
#include "kernel/sort/sort_lanes.h"

#include <string.h>

/* How a key is compared in a lane; the same maps it back. */
#define TO_LANE32(key) (key)
#ifndef TO_LANE64
#define TO_LANE64(key) (key)
#endif

#define LANES32 (VECTOR_BYTES / 4)
#define LANES64 (VECTOR_BYTES / 8)

typedef uint32_t lanes32 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t lanes64 __attribute__((vector_size(VECTOR_BYTES)));
typedef struct pair {
  lanes64 key, index;
} pair;

/* ---- networks */

INLINE void exchange32(lanes32 *a, lanes32 *b) {
  lanes32 low = MIN32(*a, *b);
  *b = MAX32(*a, *b);
  *a = low;
}
INLINE void exchange64(lanes64 *a, lanes64 *b) {
  lanes64 low = MIN64(*a, *b);
  *b = MAX64(*a, *b);
  *a = low;
}
INLINE void exchange_pair(pair *a, pair *b) { EXCHANGE_PAIR(a, b); }

#define V lanes32
#define EXCHANGE exchange32
#define ABSENT (~(lanes32){0})
#define NET(name) name##_32
#include "kernel/sort/sort_network.h"

#define V lanes64
#define EXCHANGE exchange64
#define ABSENT TO_LANE64(~(lanes64){0})
#define NET(name) name##_64
#include "kernel/sort/sort_network.h"

#define V pair
#define EXCHANGE exchange_pair
/* Also as a signed number its index is past all others. */
#define ABSENT ((pair){~(lanes64){0}, ~(lanes64){0} >> 1})
#define NET(name) name##_pair
#include "kernel/sort/sort_network.h"

/* ---- moving between lines and lanes */

#define TILE(bits) tile##bits##_of_32 /* elements of 8 to 32 bits in lanes of 32 */
#define LANES LANES32
#define BITS 8
#include "kernel/sort/sort_tile.h"
#define BITS 16
#include "kernel/sort/sort_tile.h"
#define BITS 32
#include "kernel/sort/sort_tile.h"
#undef TILE
#undef LANES
#define TILE(bits) tile##bits##_of_64
#define LANES LANES64
#define BITS 32
#include "kernel/sort/sort_tile.h"
#define BITS 64
#include "kernel/sort/sort_tile.h"
#undef TILE
#undef LANES

/* ---- the eight kinds of sorts: of values and of indices, by element size */

#define NAME values_8
#define BITS 8
#define LANE 32
#define INDEX 0
#include "kernel/sort/sort_group.h"
#define NAME values_16
#define BITS 16
#define LANE 32
#define INDEX 0
#include "kernel/sort/sort_group.h"
#define NAME values_32
#define BITS 32
#define LANE 32
#define INDEX 0
#include "kernel/sort/sort_group.h"
#define NAME values_64
#define BITS 64
#define LANE 64
#define INDEX 0
#include "kernel/sort/sort_group.h"
#define NAME indices_8
#define BITS 8
#define LANE 32
#define INDEX 16
#include "kernel/sort/sort_group.h"
#define NAME indices_16
#define BITS 16
#define LANE 32
#define INDEX 16
#include "kernel/sort/sort_group.h"
#define NAME indices_32
#define BITS 32
#define LANE 64
#define INDEX 32
#include "kernel/sort/sort_group.h"
#define NAME indices_64
#define BITS 64
#define LANE 64
#define INDEX 64
#include "kernel/sort/sort_group.h"

/* ---- ranks */

#define BITS 32
#include "kernel/sort/sort_ranks.h"
#define BITS 64
#include "kernel/sort/sort_ranks.h"

/* ---- zeros and NaNs */

#define BITS 8
#define LANE 0
#include "kernel/sort/sort_special_body.h"
#define BITS 16
#define LANE 0
#include "kernel/sort/sort_special_body.h"
#define BITS 32
#ifdef HAS_SPLIT
#define LANE 32
#else
#define LANE 0
#endif
#include "kernel/sort/sort_special_body.h"
#define BITS 64
#ifdef HAS_SPLIT
#define LANE 64
#else
#define LANE 0
#endif
#include "kernel/sort/sort_special_body.h"

/* ---- splitting keys by pivots */

#ifdef HAS_SPLIT
#define LANE 32
#define LESS LESS32
#define COMPRESS COMPRESS32
#define APART APART32
#define LOAD LOAD32
#define STORE STORE32
#define SORT_TILE SORT_TILE32
#include "kernel/sort/sort_split.h"
#define LANE 64
#define LESS LESS64
#define COMPRESS COMPRESS64
#define APART APART64
#define LOAD LOAD64
#define STORE STORE64
#define SORT_TILE SORT_TILE64
#include "kernel/sort/sort_split.h"
#define SPLITS                                                                       \
  {                                                                                  \
    {0}, {0}, {split_32, pivots_32, NS_PARTS32}, { split_64, pivots_64, NS_PARTS64 } \
  }
#else
#define SPLITS           \
  {                      \
    {0}, {0}, {0}, { 0 } \
  }
#endif

/* Vectors of a group. They need not fit into the second cache: only the first steps of the last merges span them all.
 */
#define LIMIT(width) ((4 << 20) / (VECTOR_BYTES / (width)) / (width) > 65536 ? 65536 : (4 << 20) / VECTOR_BYTES)
#define ROW(name, width, ns) \
  { name##_group, VECTOR_BYTES / (width), width, LIMIT(width), ns }
const ts_sort_lanes ISA(ts_sort_lanes) = {
    .values = {ROW(values_8, 4, NS_32), ROW(values_16, 4, NS_32), ROW(values_32, 4, NS_32), ROW(values_64, 8, NS_64)},
    .indices = {ROW(indices_8, 4, NS_32),
                ROW(indices_16, 4, NS_32),
                ROW(indices_32, 8, NS_64),
                {indices_64_group, LANES64, 16, LIMIT(16) / 2, NS_PAIR}},
    .buckets = {NULL, NULL, values_32_buckets, values_64_buckets},
    .keys = {values_8_keys, values_16_keys, values_32_keys, values_64_keys},
    .splits = SPLITS,
    .ranks = {ranks32, ranks64},
    .specials = {find_8, find_16, find_32, find_64},
    .vector = VECTOR_BYTES};
