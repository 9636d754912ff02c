/* A growable array as three fields; declare one with TS_VEC(type).
 *   TS_VEC(int) v = {0};  TS_TRY(TS_VEC_PUSH(&v, 7));  v.data[0];  TS_VEC_FREE(&v);
 * Not thread-safe. The vector owns `data`. */
#ifndef TS_BASE_VEC_H
#define TS_BASE_VEC_H

#include "base/alloc.h"

#define TS_VEC(type) \
  struct {           \
    type *data;      \
    size_t count;    \
    size_t capacity; \
  }

/* Reserves room for `capacity` elements in total. */
ts_status ts_vec_reserve(void **data, size_t *capacity, size_t element_size, size_t wanted);

#define TS_VEC_RESERVE(v, wanted)                                                                  \
  __extension__({                                                                                  \
    size_t ts_vec_wanted_ = (wanted);                                                              \
    ts_vec_wanted_ <= (v)->capacity                                                                \
        ? TS_SUCCESS                                                                               \
        : ts_vec_reserve((void **)&(v)->data, &(v)->capacity, sizeof(*(v)->data), ts_vec_wanted_); \
  })

/* Evaluates to a status; `value` is evaluated once, after room was made. */
#define TS_VEC_PUSH(v, value)                                                                               \
  __extension__({                                                                                           \
    ts_status ts_vec_status_ = (v)->count < (v)->capacity ? TS_SUCCESS : TS_VEC_RESERVE(v, (v)->count + 1); \
    if (!ts_vec_status_) (v)->data[(v)->count++] = (value);                                                 \
    ts_vec_status_;                                                                                         \
  })

/* Shrinks the memory to the elements in use, if possible. */
void ts_vec_shrink(void **data, size_t *capacity, size_t element_size, size_t count);
#define TS_VEC_SHRINK(v) ts_vec_shrink((void **)&(v)->data, &(v)->capacity, sizeof(*(v)->data), (v)->count)

#define TS_VEC_FREE(v)                                   \
  do {                                                   \
    ts_free((v)->data);                                  \
    (v)->data = NULL, (v)->count = 0, (v)->capacity = 0; \
  } while (0)

#endif
