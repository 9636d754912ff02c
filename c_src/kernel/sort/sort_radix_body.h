/* The loops of sort_radix.c for one kind of record: included once for each, with
 *   KIND     its name
 *   BITS     of an element
 *   RECORD   the type of a moved element
 *   KEY      (record): its key
 *   DIRECT   whether it is the key
 *   MAKE     (key, i): the record of element i
 *   PUT      (job, size, at, record, i): writes the result of the record at i, an index of `size` bytes if it is one */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define FN(name) CAT(CAT(KIND, _), name)
#define U CAT(CAT(uint, BITS), _t)

/* Makes the records of a part of the line, and notes which bits vary. */
static void FN(make)(radix *r, int64_t begin, int64_t end) {
  const ts_sort_job *job = r->job;
  const U *in = (const U *)job->in + r->line;
  ts_sort_keys_fn make = ts_sort_lanes_host()->keys[job->width];
  uint64_t varying = 0, first = CAT(ts_sort_key_, BITS)(&job->key, in[0]);
  bool special = false;
  RECORD *to = r->to;
  if (DIRECT && job->inner == 1) {
    special = make(&job->key, in + begin, end - begin, to + begin, first, &varying);
    begin = end;
  }
  U x[BLOCK], keys[BLOCK];
  for (int64_t at = begin; at < end; at += BLOCK) {
    int64_t count = end - at < BLOCK ? end - at : BLOCK;
    const U *from = in + at;
    if (job->inner != 1) {
      for (int64_t i = 0; i < count; i++) x[i] = in[(at + i) * job->inner];
      from = x;
    }
    special |= make(&job->key, from, count, keys, first, &varying);
    for (int64_t i = 0; i < count; i++) to[at + i] = MAKE(keys[i], at + i);
  }
  atomic_fetch_or_explicit(&r->varying, varying, memory_order_relaxed);
  if (special) atomic_store_explicit(&r->special, true, memory_order_relaxed);
}

#define DIGIT(x) ((uint64_t)KEY(x) >> shift & mask)

static void FN(count)(const radix *r, const span *s) {
  const RECORD *x = (const RECORD *)r->from + s->first, *y = (const RECORD *)r->from + s->second;
  const int shift = r->shift;
  const uint64_t mask = (UINT64_C(1) << r->bits) - 1;
  int64_t *left = s->counts, *right = left + (mask + 1), i = 0;
  for (; i < s->right; i++) left[DIGIT(x[i])]++, right[DIGIT(y[i])]++;
  for (; i < s->left; i++) left[DIGIT(x[i])]++;
}

static void FN(move)(const radix *r, const span *s) {
  const RECORD *x = (const RECORD *)r->from + s->first, *y = (const RECORD *)r->from + s->second;
  RECORD *to = r->to;
  const int shift = r->shift;
  const uint64_t mask = (UINT64_C(1) << r->bits) - 1;
  int64_t *left = s->counts, *right = left + (mask + 1), i = 0;
  for (; i < s->right; i++) {
    to[left[DIGIT(x[i])]++] = x[i];
    to[right[DIGIT(y[i])]++] = y[i];
  }
  for (; i < s->left; i++) to[left[DIGIT(x[i])]++] = x[i];
}

/* The last pass, into the result. */
INLINE void FN(finish_as)(const radix *r, const span *s, int size, int64_t inner) {
  const ts_sort_job job = *r->job;
  const RECORD *x = (const RECORD *)r->from + s->first, *y = (const RECORD *)r->from + s->second;
  const int shift = r->shift;
  const uint64_t mask = (UINT64_C(1) << r->bits) - 1;
  int64_t *left = s->counts, *right = left + (mask + 1), i = 0;
  (void)size;
  for (; i < s->right; i++) {
    PUT(&job, size, r->line + left[DIGIT(x[i])]++ * inner, x[i], s->first + i);
    PUT(&job, size, r->line + right[DIGIT(y[i])]++ * inner, y[i], s->second + i);
  }
  for (; i < s->left; i++) PUT(&job, size, r->line + left[DIGIT(x[i])]++ * inner, x[i], s->first + i);
}

static void FN(finish)(const radix *r, const span *s) {
  const ts_sort_job *job = r->job;
  if (job->index_size == (int)sizeof(int32_t) && job->inner == 1)
    FN(finish_as)(r, s, (int)sizeof(int32_t), 1);
  else
    FN(finish_as)(r, s, job->index_size, job->inner);
}

static const radix_kind FN(kind) = {sizeof(RECORD), FN(make), FN(count), FN(move), FN(finish)};

#undef CAT_
#undef CAT
#undef FN
#undef U
#undef DIGIT
#undef KIND
#undef BITS
