/* The taps that windows of four-byte elements select, by vectors: a part of kernel/conv/window_body.h, after the
 * functions by elements. The includer defines NAME of a function, and NAME(sum) of elements in vectors of ints. */
INLINE void NAME(select_vector)(const ts_window_taps *taps, int64_t stride, int64_t n, int32_t *best, bool largest) {
  typedef int32_t near_ints IN_MEMORY(int32_t);
  NAME(vector) selected = {0};
  ints at = {0}, all = {0}, tap = {0};
  FOR_TAPS(taps, p) {
    NAME(vector) candidate = (NAME(vector))(stride == 1 ? load_some(p, n) : gather_some(p, stride, n));
    ints keeps = (largest ? selected > candidate : selected < candidate) & all;
    selected = (NAME(vector))pick_s32(keeps, (ints)selected, (ints)candidate);
    at = pick_s32(keeps, at, tap);
    all = ~(ints){0};
    tap += 1;
  }
  *(near_ints *)(void *)best = at;
}

/* `best` has room for whole vectors. Gathers have 32 bits for distances. */
INLINE void NAME(select_vectors)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best,
                                 bool largest) {
  ts_window_taps here = *taps;
  const int64_t lanes = stride < INT32_MAX / FLOATS ? FLOATS : 1;
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t n = lanes < count - i ? lanes : count - i;
    if (i > 0) here.offset += 4 * lanes * stride; /* the stride of one window may be of any size */
    if (n == FLOATS && stride == 1)
      NAME(select_vector)(&here, 1, FLOATS, best + i, largest);
    else if (n == FLOATS)
      NAME(select_vector)(&here, stride, FLOATS, best + i, largest);
    else
      NAME(select_vector)(&here, stride, n, best + i, largest);
  }
}

static void NAME(pick_max)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best) {
  NAME(select_vectors)(taps, stride, count, best, true);
}
static void NAME(pick_min)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best) {
  NAME(select_vectors)(taps, stride, count, best, false);
}

/* `n` neighbours of a window, FLOATS at most, whose elements of the source are at `source`. */
INLINE void NAME(scatter_some)(const ts_window_taps *taps, int64_t out, const char *source, int64_t n, bool largest) {
  NAME(vector) selected = {0};
  ints at = {0}, all = {0}, tap = {0};
  FOR_TAPS(taps, p) {
    NAME(vector) candidate = (NAME(vector))load_some(p, n);
    ints keeps = (largest ? selected > candidate : selected < candidate) & all;
    selected = (NAME(vector))pick_s32(keeps, (ints)selected, (ints)candidate);
    at = pick_s32(keeps, at, tap);
    all = ~(ints){0};
    tap += 1;
  }
  const ints x = load_some(source, n);
  tap = (ints){0};
  FOR_TAPS(taps, p) {
    char *to = (char *)p + out;
    const ints old = load_some(to, n), sum = NAME(sum)(old, x);
    store_some(to, pick_s32(at == tap, sum, old), n);
    tap += 1;
  }
}

INLINE void NAME(scatter)(const ts_window_taps *taps, const ts_window_line *line, bool largest) {
  ts_window_taps here = *taps;
  const int64_t rest = line->columns % FLOATS, whole = line->columns - rest;
  for (int64_t o = 0; o < line->count; o++) {
    const char *source = line->source + o * line->source_step;
    here.offset = taps->offset + o * line->step;
    for (int64_t i = 0; i < whole; i += FLOATS) {
      NAME(scatter_some)(&here, line->out, source + 4 * i, FLOATS, largest);
      here.offset += VECTOR_BYTES;
    }
    if (rest > 0) NAME(scatter_some)(&here, line->out, source + 4 * whole, rest, largest);
  }
}

static void NAME(scatter_max)(const ts_window_taps *taps, const ts_window_line *line) {
  NAME(scatter)(taps, line, true);
}
static void NAME(scatter_min)(const ts_window_taps *taps, const ts_window_line *line) {
  NAME(scatter)(taps, line, false);
}
#undef NAME
