#include "base/vec.h"

ts_status ts_vec_reserve(void **data, size_t *capacity, size_t element_size, size_t wanted) {
  if (wanted <= *capacity) return TS_SUCCESS;
  /* Grows by half, so that n pushes copy O(n) elements. */
  size_t grown = *capacity + *capacity / 2 + 4;
  if (grown < wanted) grown = wanted;
  TS_TRY(ts_realloc_array(grown, element_size, data));
  *capacity = grown;
  return TS_SUCCESS;
}

void ts_vec_shrink(void **data, size_t *capacity, size_t element_size, size_t count) {
  if (count < *capacity && ts_status_consume_ok(ts_realloc_array(count, element_size, data))) *capacity = count;
}
