/* The words of a launch: addresses of its memory. */
#include "exec/steps.h"

#include <string.h>

static void *role_base(void *const *base, const ts_launch_memory *of, const ts_launch_pointer *p) {
  switch (p->role) {
  case TS_ROLE_OPERAND: return base[of->operands[p->index]];
  case TS_ROLE_RESULT: return base[of->results[p->index]];
  default: return base[of->temps[p->index]];
  }
}

static int64_t dynamic_offset(void *const *base, const ts_launch_memory *of, const ts_launch_pointer *p) {
  int64_t offset = 0;
  for (int32_t i = 0; i < p->term_count; i++) {
    const ts_dynamic_term *t = &p->terms[i];
    const void *address = base[of->operands[t->operand]];
    int64_t index;
    if (t->dtype == TS_U64) { /* may exceed int64 */
      uint64_t u;
      memcpy(&u, address, sizeof u);
      index = u > (uint64_t)t->limit ? t->limit : (int64_t)u;
    } else {
      index = ts_scalar_to_s64(t->dtype, ts_scalar_load(t->dtype, address));
    }
    index = index < 0 ? 0 : index > t->limit ? t->limit : index;
    offset += index * t->stride;
  }
  return offset;
}

void ts_fill_addresses(void *const *base, const ts_launch_memory *of, const ts_launch *launch, int64_t *words) {
  for (int32_t i = 0; i < launch->pointer_count; i++) {
    const ts_launch_pointer *p = &launch->pointers[i];
    int64_t address = (int64_t)(intptr_t)role_base(base, of, p) + p->offset;
    words[p->word] = p->term_count ? address + dynamic_offset(base, of, p) : address;
  }
}

int64_t *ts_run_fill_words(void *const *base, int64_t *words, const ts_launch_memory *of, const ts_step_launch *l) {
  words += l->words;
  ts_fill_addresses(base, of, l->launch, words);
  return words;
}
