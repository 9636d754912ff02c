/* Several rows times a panel: weights are unpacked into L1 once for all rows. A part of quantized_body.h. */

/* Steps of k that are unpacked together: they and the rows' elements stay in L1. */
enum { ROW_STEPS = 64 };

/* Some of the rows of x that are side by side (ts_quantized_rows): every step-th of `count` steps, times rows of w,
 * which are COLS apart. */
typedef struct unpacked_rows {
  const float *x, *w;
  int64_t count, step;
} unpacked_rows;

/* Adds products to the sums of `rows` rows, of `all` that are side by side, `at_once` vectors of columns at a time:
 * sums stay in registers. */
INLINE void multiply_rows(int rows, int all, int at_once, const unpacked_rows *u, float *out) {
  enum { MOST = 16 };
  for (int first = 0; first < VECTORS; first += at_once) {
    vf sums[MOST];
    UNROLL for (int r = 0; r < rows; r++) {
      UNROLL for (int c = 0; c < at_once; c++) sums[r * at_once + c] = load_f(out + r * COLS + (first + c) * LANES);
    }
    const float *w = u->w + first * LANES, *x = u->x;
    for (int64_t k = 0; k < u->count; k += u->step, w += u->step * COLS, x += u->step * all) {
      vf v[4];
      UNROLL for (int c = 0; c < at_once; c++) v[c] = load_f(w + c * LANES);
      UNROLL for (int r = 0; r < rows; r++) {
        const vf factor = splat_f(x[r]);
        UNROLL for (int c = 0; c < at_once; c++) sums[r * at_once + c] = FMA(factor, v[c], sums[r * at_once + c]);
      }
    }
    UNROLL for (int r = 0; r < rows; r++) {
      UNROLL for (int c = 0; c < at_once; c++) store_f(out + r * COLS + (first + c) * LANES, sums[r * at_once + c]);
    }
  }
}

/* As many sums as leave registers for weights and a factor. Few rows at once read few factors for a weight. */
enum { SUMS = VECTOR_BYTES == 64 ? 16 : 8, ROWS_AT_ONCE = VECTOR_BYTES == 64 ? 16 : 4 };
#define DEFINE_ROWS(rows)                                                                                    \
  static void multiply_##rows(const unpacked_rows *u, float *out) {                                          \
    enum { PART = rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE, WIDTH = SUMS / PART < 4 ? SUMS / PART : 4 };    \
    for (int r = 0; r < rows; r += PART)                                                                     \
      multiply_rows(PART, rows, WIDTH, &(unpacked_rows){u->x + r, u->w, u->count, u->step}, out + r * COLS); \
  }
DEFINE_ROWS(1)
DEFINE_ROWS(2)
DEFINE_ROWS(4)
DEFINE_ROWS(8)
DEFINE_ROWS(16)

/* One lane of the order: `sums` has COLS for each row. */
static void multiply_lane(const ts_quantized_rows *r, int64_t k, int64_t count, const float *w, float *sums) {
  static void (*const multiply[])(const unpacked_rows *u, float *out) = {multiply_1, multiply_2, multiply_4, multiply_8,
                                                                         multiply_16};
  for (int64_t row = 0; row < r->rows;) {
    const int64_t here = ts_quantized_rows_side_by_side(r->rows - row);
    const unpacked_rows u = {r->x + row * r->weight->k + k * here, w, count, r->order.lanes};
    multiply[__builtin_ctz((unsigned)here)](&u, sums + row * COLS);
    row += here;
  }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void add(const float *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i += LANES) store_f(to + i, load_f(to + i) + load_f(from + i));
}

/* The sums of the chains side by side, which are added up at the end. */
static void run_chains(const ts_quantized_rows *r, int64_t panel, int64_t k, int64_t end, float *sums) {
  _Alignas(64) float unpacked[ROW_STEPS * COLS];
  const int64_t size = r->rows * COLS;
  memset(sums, 0, (size_t)(r->order.lanes * size) * sizeof *sums);
  for (; k < end; k += ROW_STEPS) {
    const int64_t count = least(ROW_STEPS, end - k);
    unpack(r->weight, (ts_quantized_part){panel, 0, COLS, k, count}, unpacked, COLS);
    for (int l = 0; l < r->order.lanes; l++) multiply_lane(r, k + l, count - l, unpacked + l * COLS, sums + l * size);
  }
  for (int l = 1; l < r->order.lanes; l++) add(sums + l * size, size, sums);
}

/* Blocks of chains, added in pairs as the digits of a binary number are carried. `work` has the sums of chains, then of
 * the blocks that wait; at the end it begins with the sum of all. */
static void panel(const ts_quantized_rows *r, int64_t index, float *work) {
  const int64_t size = r->rows * COLS, k = r->weight->k, chain = r->order.terms * r->order.lanes;
  float *sums = work + r->order.lanes * size;
  int64_t waiting = 0;
  memset(sums, 0, (size_t)size * sizeof *sums);
  for (int64_t first = 0, block = 0; first < k; first += TS_CONTRACT_BLOCK, block++) {
    const int64_t end = least(k, first + TS_CONTRACT_BLOCK);
    float *to = sums + waiting++ * size;
    const bool is_done = multiply_block(&(stretch){r, index, first, end, to});
    for (int64_t at = first; at < end && !is_done; at += chain) {
      run_chains(r, index, at, least(end, at + chain), work);
      if (at == first) memcpy(to, work, (size_t)size * sizeof *to);
      if (at > first) add(work, size, to);
    }
    for (int64_t digits = block; digits & 1; digits >>= 1, waiting--)
      add(sums + (waiting - 1) * size, size, sums + (waiting - 2) * size);
  }
  for (; waiting > 1; waiting--) add(sums + (waiting - 1) * size, size, sums + (waiting - 2) * size);
  memcpy(work, sums, (size_t)size * sizeof *sums);
}
