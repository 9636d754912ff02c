/* Sorting networks over vectors: included once for each kind of lane, with
 *   V            the type of a vector of lanes
 *   EXCHANGE     (V *a, V *b): a becomes the smaller, b the larger, lane by lane
 *   ABSENT       a V that is larger than any
 *   NET(name)    the name of a function of this kind
 * A block of 16 is sorted by Green's network of 60 comparators (Knuth, volume 3, 5.3.4); larger ones by bitonic merges
 * whose first step compares mirrored elements, so that every comparator puts the smaller element first. Comparators
 * with elements past the end (taken for infinite) then do nothing. Three steps of a merge are done on eight vectors in
 * registers. */

#define X(i, j) EXCHANGE(&r##i, &r##j)
#define LOAD4(v, q, first) \
  V r0 = (v)[first], r1 = (v)[(first) + (q)], r2 = (v)[(first) + 2 * (q)], r3 = (v)[(first) + 3 * (q)]
#define STORE4(v, q, first) \
  (v)[first] = r0, (v)[(first) + (q)] = r1, (v)[(first) + 2 * (q)] = r2, (v)[(first) + 3 * (q)] = r3
#define MORE4(v, q, first) \
  V r4 = (v)[first], r5 = (v)[(first) + (q)], r6 = (v)[(first) + 2 * (q)], r7 = (v)[(first) + 3 * (q)]
#define STORE_MORE4(v, q, first) \
  (v)[first] = r4, (v)[(first) + (q)] = r5, (v)[(first) + 2 * (q)] = r6, (v)[(first) + 3 * (q)] = r7
#define LAST8(v) \
  V r8 = (v)[8], r9 = (v)[9], r10 = (v)[10], r11 = (v)[11], r12 = (v)[12], r13 = (v)[13], r14 = (v)[14], r15 = (v)[15]
#define STORE_LAST8(v) \
  (v)[8] = r8, (v)[9] = r9, (v)[10] = r10, (v)[11] = r11, (v)[12] = r12, (v)[13] = r13, (v)[14] = r14, (v)[15] = r15

static inline void NET(sort4)(V *v) {
  LOAD4(v, 1, 0);
  X(0, 2), X(1, 3), X(0, 1), X(2, 3), X(1, 2);
  STORE4(v, 1, 0);
}

static inline void NET(sort8)(V *v) {
  LOAD4(v, 1, 0);
  MORE4(v, 1, 4);
  X(0, 2), X(1, 3), X(4, 6), X(5, 7), X(0, 4), X(1, 5), X(2, 6), X(3, 7), X(0, 1), X(2, 3), X(4, 5), X(6, 7);
  X(2, 4), X(3, 5), X(1, 4), X(3, 6), X(1, 2), X(3, 4), X(5, 6);
  STORE4(v, 1, 0);
  STORE_MORE4(v, 1, 4);
}

static void NET(sort16)(V *v) {
  LOAD4(v, 1, 0);
  MORE4(v, 1, 4);
  LAST8(v);
  X(0, 1), X(2, 3), X(4, 5), X(6, 7), X(8, 9), X(10, 11), X(12, 13), X(14, 15);
  X(0, 2), X(4, 6), X(8, 10), X(12, 14), X(1, 3), X(5, 7), X(9, 11), X(13, 15);
  X(0, 4), X(8, 12), X(1, 5), X(9, 13), X(2, 6), X(10, 14), X(3, 7), X(11, 15);
  X(0, 8), X(1, 9), X(2, 10), X(3, 11), X(4, 12), X(5, 13), X(6, 14), X(7, 15);
  X(5, 10), X(6, 9), X(3, 12), X(13, 14), X(4, 8), X(7, 11), X(1, 2);
  X(1, 4), X(7, 13), X(2, 8), X(11, 14);
  X(2, 4), X(5, 6), X(9, 10), X(11, 13), X(3, 8), X(7, 12);
  X(6, 8), X(10, 12), X(3, 5), X(7, 9);
  X(3, 4), X(5, 6), X(7, 8), X(9, 10), X(11, 12);
  X(6, 7), X(8, 9);
  STORE4(v, 1, 0);
  STORE_MORE4(v, 1, 4);
  STORE_LAST8(v);
}

/* Steps of distances 2q and q, on blocks of 4q. */
static inline void NET(clean4)(V *v, int64_t q) {
  for (int64_t i = 0; i < q; i++) {
    LOAD4(v, q, i);
    X(0, 2), X(1, 3), X(0, 1), X(2, 3);
    STORE4(v, q, i);
  }
}

#define CLEAN8 \
  X(0, 4), X(1, 5), X(2, 6), X(3, 7), X(0, 2), X(1, 3), X(4, 6), X(5, 7), X(0, 1), X(2, 3), X(4, 5), X(6, 7)

/* Steps of distances 4q, 2q and q. */
static inline void NET(clean8)(V *v, int64_t q) {
  for (int64_t i = 0; i < q; i++) {
    LOAD4(v, q, i);
    MORE4(v, q, i + 4 * q);
    CLEAN8;
    STORE4(v, q, i);
    STORE_MORE4(v, q, i + 4 * q);
  }
}

static void NET(clean16)(V *v) {
  LOAD4(v, 1, 0);
  MORE4(v, 1, 4);
  LAST8(v);
  X(0, 8), X(1, 9), X(2, 10), X(3, 11), X(4, 12), X(5, 13), X(6, 14), X(7, 15);
  CLEAN8;
  X(8, 12), X(9, 13), X(10, 14), X(11, 15), X(8, 10), X(9, 11), X(12, 14), X(13, 15);
  X(8, 9), X(10, 11), X(12, 13), X(14, 15);
  STORE4(v, 1, 0);
  STORE_MORE4(v, 1, 4);
  STORE_LAST8(v);
}

/* clean8 of a block that ends after `have` vectors: the absent ones are infinite and stay in place. */
static void NET(clean8_part)(V *v, int64_t q, int64_t have) {
  for (int64_t distance = 4 * q; distance >= q; distance /= 2)
    for (int64_t i = 0; i < have - distance; i++)
      if (!(i & distance)) EXCHANGE(&v[i], &v[i + distance]);
}

/* Sorts a bitonic block; both the block and, past 16, `have` are multiples of 4. */
static void NET(clean)(V *v, int64_t size, int64_t have) {
  while (have <= size / 2) size /= 2;
  if (size <= 4)
    NET(clean4)(v, 1);
  else if (size == 8)
    NET(clean8)(v, 1);
  else if (size == 16)
    NET(clean16)(v);
  else {
    int64_t q = size == 32 ? 8 : size / 8;
    if (size == 32)
      NET(clean4)(v, q);
    else if (have == size)
      NET(clean8)(v, q);
    else
      NET(clean8_part)(v, q, have);
    for (int64_t at = 0; at < have; at += q) NET(clean)(v + at, q, have - at < q ? have - at : q);
  }
}

/* The first three steps of merging two sorted blocks of 4q: mirrored, then distances 2q and q. */
static inline void NET(flip8)(V *v, int64_t q) {
  for (int64_t i = 0; i < q; i++) {
    LOAD4(v, q, i);
    MORE4(v, q, 5 * q - 1 - i);
    X(0, 7), X(1, 6), X(2, 5), X(3, 4), X(0, 2), X(1, 3), X(4, 6), X(5, 7), X(0, 1), X(2, 3), X(4, 5), X(6, 7);
    STORE4(v, q, i);
    STORE_MORE4(v, q, 5 * q - 1 - i);
  }
}

static void NET(flip8_part)(V *v, int64_t q, int64_t have) {
  for (int64_t i = 4 * q; i < have; i++) EXCHANGE(&v[8 * q - 1 - i], &v[i]);
  for (int64_t distance = 2 * q; distance >= q; distance /= 2)
    for (int64_t i = 0; i < have - distance; i++)
      if (!(i & distance)) EXCHANGE(&v[i], &v[i + distance]);
}

static void NET(merge)(V *v, int64_t size, int64_t have) {
  int64_t q = size / 8;
  if (have == size)
    NET(flip8)(v, q);
  else
    NET(flip8_part)(v, q, have);
  for (int64_t at = 0; at < have; at += q) NET(clean)(v + at, q, have - at < q ? have - at : q);
}

static void NET(sort_blocks)(V *v, int64_t size, int64_t have) {
  while (have <= size / 2) size /= 2;
  if (size <= 16) {
    NET(sort16)(v);
    return;
  }
  NET(sort_blocks)(v, size / 2, size / 2);
  NET(sort_blocks)(v + size / 2, size / 2, have - size / 2);
  NET(merge)(v, size, have);
}

/* n vectors, and after them the padding of ts_sort_lanes_padded(), which is written here. */
static void NET(network)(V *v, int64_t n) {
  int64_t padded = ts_sort_lanes_padded(n), size = 16;
  for (int64_t i = n; i < padded; i++) v[i] = ABSENT;
  if (padded == 2)
    EXCHANGE(&v[0], &v[1]);
  else if (padded == 4)
    NET(sort4)(v);
  else if (padded == 8)
    NET(sort8)(v);
  else {
    while (size < padded) size *= 2;
    NET(sort_blocks)(v, size, padded);
  }
}

#undef X
#undef LOAD4
#undef STORE4
#undef MORE4
#undef STORE_MORE4
#undef LAST8
#undef STORE_LAST8
#undef CLEAN8
#undef V
#undef EXCHANGE
#undef ABSENT
#undef NET
