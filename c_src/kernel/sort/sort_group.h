/* One kind of sort of a group of lines: included once for each, with
 *   NAME     of the kind
 *   BITS     of an element
 *   LANE     bits of a lane
 *   INDEX    how far a lane's key is above its index; 0 when there is none, 64 when the index has a lane of its own */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define FN(name) CAT(CAT(NAME, _), name)
#define LANES CAT(LANES, LANE)
#define V CAT(lanes, LANE)
#if INDEX == 64
#define N pair
#define NETWORK network_pair
#define KEY(n) (n).key
#define TO_LANE(n) (n)
#else
#define N V
#define NETWORK CAT(network_, LANE)
#define KEY(n) (n)
#define TO_LANE(n) CAT(TO_LANE, LANE)(n)
#endif
#define L CAT(CAT(uint, LANE), _t)
#define U CAT(CAT(uint, BITS), _t)
#define TILE(bits) CAT(CAT(CAT(tile, bits), _of_), LANE)
#define T TILE(BITS)
#define OF(name) CAT(CAT(name, _), T)

/* The lanes of element i of each line. Notes the lanes with NaN or -0. */
INLINE N FN(key)(const ts_sort_key *s, V x, int64_t i, V *special) {
  V zero = (V)((x & (L)s->zero_mask) == (L)s->zero), nan = (V)((x & (L)s->magnitude) > (L)s->limit);
  if (!INDEX) *special |= zero | nan;
  x &= ~zero;
  x ^= (-(x >> (BITS - 1)) & (L)s->negative) ^ (L)s->flip;
  x = (x & ~nan) | (nan & (L)s->nan);
#if INDEX == 64
  return (pair){x, (V){0} + (L)i};
#else
  return INDEX ? x << INDEX | (L)i : x;
#endif
}

/* Lanes past the last line repeat it. */
static inline void FN(load_rows)(const ts_sort_job *job, const U *in, int count, N *v, V *special) {
  int64_t n = job->n;
  const U *from[LANES];
  for (int r = 0; r < LANES; r++) from[r] = in + (r < count ? r : count - 1) * n;
  for (int64_t at = 0; at < n; at += LANES) {
    if (at > n - LANES) at = n - LANES; /* some columns again */
    T t[LANES];
    _Pragma("GCC unroll 16") for (int r = 0; r < LANES; r++) memcpy(&t[r], from[r] + at, sizeof(T));
    OF(transpose)(t);
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) v[at + i] =
        TO_LANE(FN(key)(&job->key, __builtin_convertvector(t[i], V), at + i, special));
  }
}

static inline void FN(load_columns)(const ts_sort_job *job, const U *in, N *v, V *special) {
  for (int64_t i = 0; i < job->n; i++) {
    T x;
    memcpy(&x, in + i * job->inner, sizeof x);
    v[i] = TO_LANE(FN(key)(&job->key, __builtin_convertvector(x, V), i, special));
  }
}

static void FN(load_lines)(const ts_sort_job *job, int64_t first, int count, N *v, V *special) {
  for (int64_t i = 0; i < job->n; i++) KEY(v[i]) = (V){0};
  for (int lane = 0; lane < count; lane++) {
    const U *in = (const U *)job->in + ts_sort_line(job, first + lane);
    for (int64_t i = 0; i < job->n; i++) KEY(v[i])[lane] = in[i * job->inner];
  }
  for (int64_t i = 0; i < job->n; i++) v[i] = TO_LANE(FN(key)(&job->key, KEY(v[i]), i, special));
}

#if INDEX

/* Indices of 32 bits are stored by vectors, others one by one. */
#define R TILE(32)
#define OF_INDEX(name) CAT(CAT(name, _), R)
INLINE R FN(result)(const ts_sort_job *job, N x) {
  (void)job;
#if INDEX == 64
  return __builtin_convertvector(x.index, R);
#else
  return __builtin_convertvector(x & (((L)1 << INDEX) - 1), R);
#endif
}
static inline void FN(put)(const ts_sort_job *job, int64_t at, R x, int lane) {
  ts_sort_put_index(job->out, at, job->index_size, x[lane]);
}
#define OUT uint32_t
#define WHOLE (job->index_size == 4)

#else

#define R T
#define OF_INDEX OF
INLINE R FN(result)(const ts_sort_job *job, N x) {
  x ^= (L)job->key.flip;
  x ^= -(x >> (BITS - 1)) & (L)job->key.negative;
  return __builtin_convertvector(x, R);
}
static inline void FN(put)(const ts_sort_job *job, int64_t at, R x, int lane) { ((U *)job->out)[at] = x[lane]; }
#define OUT U
#define WHOLE true

#endif

static inline void FN(store_rows)(const ts_sort_job *job, const N *v, int count, OUT *out) {
  int64_t n = job->n;
  for (int64_t at = 0; at < n; at += LANES) {
    if (at > n - LANES) at = n - LANES;
    R t[LANES];
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) t[i] = FN(result)(job, TO_LANE(v[at + i]));
    OF_INDEX(transpose)(t);
    if (count == LANES)
      OF_INDEX(store)(out + at, n, t);
    else
      for (int r = 0; r < count; r++) memcpy(out + at + r * n, &t[r], sizeof(R));
  }
}

static inline void FN(store_columns)(const ts_sort_job *job, const N *v, OUT *out) {
  for (int64_t i = 0; i < job->n; i++) {
    R x = FN(result)(job, TO_LANE(v[i]));
    memcpy(out + i * job->inner, &x, sizeof x);
  }
}

static void FN(store_lines)(const ts_sort_job *job, int64_t first, int count, const N *v) {
  int64_t line[LANES] = {0};
  for (int lane = 0; lane < count; lane++) line[lane] = ts_sort_line(job, first + lane);
  for (int64_t i = 0; i < job->n; i++) {
    R x = FN(result)(job, TO_LANE(v[i]));
    for (int lane = 0; lane < count; lane++) FN(put)(job, line[lane] + i * job->inner, x, lane);
  }
}

static bool FN(group)(const ts_sort_job *job, int64_t first, int count, void *workspace) {
  N *v = workspace;
  V special = {0};
  int64_t at = ts_sort_line(job, first);
  bool rows = job->inner == 1 && job->n >= LANES;
  bool columns = count == LANES && first % job->inner + LANES <= job->inner;
  if (rows)
    FN(load_rows)(job, (const U *)job->in + at, count, v, &special);
  else if (columns)
    FN(load_columns)(job, (const U *)job->in + at, v, &special);
  else
    FN(load_lines)(job, first, count, v, &special);
  NETWORK(v, job->n);
  if (rows && WHOLE)
    FN(store_rows)(job, v, count, (OUT *)job->out + at);
  else if (columns && WHOLE)
    FN(store_columns)(job, v, (OUT *)job->out + at);
  else
    FN(store_lines)(job, first, count, v);
  L any = 0;
  for (int lane = 0; lane < LANES; lane++) any |= special[lane];
  return any != 0;
}

#if !INDEX

/* Keys of n neighbours, in the order of the elements; ORs their differences from `first` into `varying`. */
static bool FN(keys)(const ts_sort_key *key, const void *from, int64_t n, void *to, uint64_t first, uint64_t *varying) {
  const ts_sort_key k = *key;
  const U *in = from;
  U *out = to;
  V differ = {0}, special = {0};
  for (int64_t i = 0; i < n; i += LANES) {
    if (n < LANES) break;
    if (i > n - LANES) i = n - LANES;
    T x;
    memcpy(&x, in + i, sizeof x);
    V keys = FN(key)(&k, __builtin_convertvector(x, V), 0, &special);
    differ |= keys ^ (L)first;
    x = __builtin_convertvector(keys, T);
    memcpy(out + i, &x, sizeof x);
  }
  L bits = 0, any = 0;
  for (int lane = 0; lane < LANES; lane++) bits |= differ[lane], any |= special[lane];
  for (int64_t i = 0; i < n && n < LANES; i++) {
    any |= (L)CAT(ts_sort_is_special_, BITS)(&k, in[i]);
    out[i] = CAT(ts_sort_key_, BITS)(&k, in[i]);
    bits |= (L)(out[i] ^ first);
  }
  *varying |= bits;
  return any != 0;
}

#endif

#if !INDEX && BITS == LANE

/* The keys of a tile, infinite past the ends of the buckets. */
INLINE void FN(load_tile)(const U *const *from, int64_t at, V lengths, V *v) {
  T t[LANES];
  _Pragma("GCC unroll 16") for (int r = 0; r < LANES; r++) memcpy(&t[r], from[r] + at, sizeof(T));
  OF(transpose)(t);
  _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) v[at + i] =
      TO_LANE(t[i] | (V)((V){0} + (L)(at + i) >= lengths));
}

static inline void FN(store_some)(U *out, int64_t inner, int64_t left, T x) {
#ifdef HAS_SPLIT
  if (inner == 1) {
    CAT(STORE, LANE)(out, left >= LANES ? (1U << LANES) - 1 : (1U << left) - 1, x);
    return;
  }
#endif
  if (inner == 1 && left >= LANES)
    memcpy(out, &x, sizeof x);
  else
    for (int i = 0; i < LANES && i < left; i++) out[i * inner] = x[i];
}

static void FN(store_tile)(const ts_sort_job *job, int64_t line, const ts_sort_bucket *b, int count, int64_t at,
                           const V *v) {
  T t[LANES];
  _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) t[i] = FN(result)(job, TO_LANE(v[at + i]));
  OF(transpose)(t);
  for (int r = 0; r < count && b[r].length > at; r++)
    FN(store_some)((U *)job->out + line + (b[r].first + at) * job->inner, job->inner, b[r].length - at, t[r]);
}

static void FN(buckets)(const ts_sort_job *job, const void *keys, int64_t line, const ts_sort_bucket *b, int count,
                        void *workspace) {
  V *v = workspace, lengths = {0};
  const U *from[LANES];
  for (int r = 0; r < LANES; r++) {
    from[r] = (const U *)keys + b[r < count ? r : 0].first;
    lengths[r] = (L)(r < count ? b[r].length : 0);
  }
  for (int64_t at = 0; at < b->length; at += LANES) FN(load_tile)(from, at, lengths, v);
  NETWORK(v, b->length);
  for (int64_t at = 0; at < b->length; at += LANES) FN(store_tile)(job, line, b, count, at, v);
}

#endif

#undef CAT_
#undef CAT
#undef FN
#undef LANES
#undef V
#undef N
#undef NETWORK
#undef KEY
#undef TO_LANE
#undef L
#undef U
#undef TILE
#undef T
#undef OF
#undef R
#undef OF_INDEX
#undef OUT
#undef WHOLE
#undef NAME
#undef BITS
#undef LANE
#undef INDEX
