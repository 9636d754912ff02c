/* Many long lines along the last axis: squares of elements are read, a vector of each line, and turned in registers, so
 * that a vector has one column of all lines, whose steps are the lanes of one op. The results are turned back. Includer
 * (scan_body.h) may define
 *   SQUARE_NAME(type, bytes)  turns `lanes` vectors of so many elements of 4 or 8 bytes
 * Without it there are no squares. squares_NAME returns how many lines were taken, and of these how many columns are
 * done. */

#define NO_SQUARES(NAME, T, A)                                                                                     \
  INLINE int64_t squares_##NAME(const T *x, const T *y, int64_t line, int64_t step, int64_t rows, int64_t columns, \
                                const A *carry, const A *before, bool first, int64_t *done) {                      \
    (void)x, (void)y, (void)line, (void)step, (void)rows, (void)columns;                                           \
    (void)carry, (void)before, (void)first, (void)done;                                                            \
    return 0;                                                                                                      \
  }

#ifdef TURN_F32
/* Bytes of a line that are processed one after the other, while they are in the first cache. */
#define SQUARE_BYTES 64

#define DEFINE_SQUARES(NAME, T, A, TURN, VECTOR_OP, IDENTITY)                                                          \
  typedef A lanes_##NAME __attribute__((vector_size(VECTOR_BYTES)));                                                   \
  enum { LANES_##NAME = VECTOR_BYTES / sizeof(A), PART_##NAME = SQUARE_BYTES / sizeof(T) };                            \
  typedef T points_##NAME __attribute__((vector_size(VECTOR_BYTES / sizeof(A) * sizeof(T))));                          \
  INLINE void square_##NAME(const T *x, T *y, int64_t line, bool down, A *carry, const A *before, bool has_before,     \
                            bool stores) {                                                                             \
    enum { L = LANES_##NAME };                                                                                         \
    points_##NAME v[L];                                                                                                \
    lanes_##NAME sum, from;                                                                                            \
    memcpy(&sum, carry, sizeof sum);                                                                                   \
    memcpy(&from, before, sizeof from);                                                                                \
    UNROLL for (int i = 0; i < L; i++) memcpy(&v[i], x + i * line, sizeof v[i]);                                       \
    TURN(v);                                                                                                           \
    UNROLL for (int i = 0; i < L; i++) {                                                                               \
      const int c = down ? L - 1 - i : i;                                                                              \
      sum = VECTOR_OP(sum, __builtin_convertvector(v[c], lanes_##NAME));                                               \
      if (stores) v[c] = __builtin_convertvector(has_before ? VECTOR_OP(from, sum) : sum, points_##NAME);              \
    }                                                                                                                  \
    memcpy(carry, &sum, sizeof sum);                                                                                   \
    if (!stores) return;                                                                                               \
    TURN(v);                                                                                                           \
    UNROLL for (int i = 0; i < L; i++) memcpy(y + i * line, &v[i], sizeof v[i]);                                       \
  }                                                                                                                    \
  INLINE void all_squares_##NAME(const T *x, T *y, int64_t line, bool down, int64_t rows, int64_t columns, A *carry,   \
                                 const A *before, bool has_before, bool stores) {                                      \
    enum { L = LANES_##NAME };                                                                                         \
    for (int64_t k = 0; k < columns; k += PART_##NAME)                                                                 \
      for (int64_t r = 0; r < rows; r += L)                                                                            \
        for (int64_t c = k; c < k + PART_##NAME && c < columns; c += L) {                                              \
          const int64_t at = r * line + (down ? -c - (L - 1) : c);                                                     \
          square_##NAME(x + at, stores ? y + at : y, line, down, carry + r, before + r, has_before, stores);           \
        }                                                                                                              \
  }                                                                                                                    \
  static int64_t squares_##NAME(const T *x, T *y, int64_t line, int64_t step, int64_t rows, int64_t columns, A *carry, \
                                const A *before, bool first, int64_t *done) {                                          \
    const int64_t all = columns - columns % LANES_##NAME;                                                              \
    rows -= rows % LANES_##NAME;                                                                                       \
    if (rows == 0 || all == 0 || (step != 1 && step != -1)) return 0;                                                  \
    for (int64_t r = 0; first && r < rows; r++) carry[r] = (A)(IDENTITY);                                              \
    if (!y)                                                                                                            \
      all_squares_##NAME(x, y, line, step < 0, rows, all, carry, carry, false, false);                                 \
    else if (before)                                                                                                   \
      all_squares_##NAME(x, y, line, step < 0, rows, all, carry, before, true, true);                                  \
    else if (step < 0)                                                                                                 \
      all_squares_##NAME(x, y, line, true, rows, all, carry, carry, false, true);                                      \
    else                                                                                                               \
      all_squares_##NAME(x, y, line, false, rows, all, carry, carry, false, true);                                     \
    *done = all;                                                                                                       \
    return rows;                                                                                                       \
  }

/* Of numbers that are carried as they are, or as f64. 0 + x and 1 * x are what a line begins with. */
#define SQUARE_SUM(a, b) ((a) + (b))
#define SQUARE_PRODUCT(a, b) ((a) * (b))
DEFINE_SQUARES(sum_f32, float, double, TURN_F32, SQUARE_SUM, 0)
DEFINE_SQUARES(product_f32, float, double, TURN_F32, SQUARE_PRODUCT, 1)
DEFINE_SQUARES(sum_f64, double, double, TURN_64, SQUARE_SUM, 0)
DEFINE_SQUARES(product_f64, double, double, TURN_64, SQUARE_PRODUCT, 1)
DEFINE_SQUARES(sum_s32, uint32_t, uint32_t, TURN_32, SQUARE_SUM, 0)
DEFINE_SQUARES(sum_u32, uint32_t, uint32_t, TURN_32, SQUARE_SUM, 0)
DEFINE_SQUARES(sum_s64, uint64_t, uint64_t, TURN_64, SQUARE_SUM, 0)
DEFINE_SQUARES(sum_u64, uint64_t, uint64_t, TURN_64, SQUARE_SUM, 0)
DEFINE_SQUARES(min_s32, int32_t, int32_t, TURN_32, MIN_S32, INT32_MAX)
DEFINE_SQUARES(max_s32, int32_t, int32_t, TURN_32, MAX_S32, INT32_MIN)
DEFINE_SQUARES(min_s64, int64_t, int64_t, TURN_64, MIN_S64, INT64_MAX)
DEFINE_SQUARES(max_s64, int64_t, int64_t, TURN_64, MAX_S64, INT64_MIN)
#else
NO_SQUARES(sum_f32, float, double)
NO_SQUARES(product_f32, float, double)
NO_SQUARES(sum_f64, double, double)
NO_SQUARES(product_f64, double, double)
NO_SQUARES(sum_s32, uint32_t, uint32_t)
NO_SQUARES(sum_u32, uint32_t, uint32_t)
NO_SQUARES(sum_s64, uint64_t, uint64_t)
NO_SQUARES(sum_u64, uint64_t, uint64_t)
NO_SQUARES(min_s32, int32_t, int32_t)
NO_SQUARES(max_s32, int32_t, int32_t)
NO_SQUARES(min_s64, int64_t, int64_t)
NO_SQUARES(max_s64, int64_t, int64_t)
#endif

#define NO_SQUARES_OF(NAME, T, U)  \
  NO_SQUARES(sum_##NAME, U, U)     \
  NO_SQUARES(product_##NAME, U, U) \
  NO_SQUARES(min_##NAME, T, T)     \
  NO_SQUARES(max_##NAME, T, T)
NO_SQUARES_OF(s8, int8_t, uint8_t)
NO_SQUARES_OF(s16, int16_t, uint16_t)
NO_SQUARES_OF(u8, uint8_t, uint8_t)
NO_SQUARES_OF(u16, uint16_t, uint16_t)
NO_SQUARES(product_s32, uint32_t, uint32_t)
NO_SQUARES(product_u32, uint32_t, uint32_t)
NO_SQUARES(product_s64, uint64_t, uint64_t)
NO_SQUARES(product_u64, uint64_t, uint64_t)
NO_SQUARES(min_u32, uint32_t, uint32_t)
NO_SQUARES(max_u32, uint32_t, uint32_t)
NO_SQUARES(min_u64, uint64_t, uint64_t)
NO_SQUARES(max_u64, uint64_t, uint64_t)
NO_SQUARES(product_c64, ts_c64, ts_c128)
NO_SQUARES(product_c128, ts_c128, ts_c128)
