#include "base/vec.h"

ts_status ts_vec_reserve(void **data, size_t *capacity, size_t element_size, size_t wanted) {
  if (wanted <= *capacity) return TS_SUCCESS;
  /* Half as much again, so that n pushes copy O(n) elements. */
  size_t grown = *capacity + *capacity / 2 + 4;
  if (grown < wanted) grown = wanted;
  TS_TRY(ts_realloc_array(grown, element_size, data));
  *capacity = grown;
  return TS_SUCCESS;
}
