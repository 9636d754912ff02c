/* Eager calls without terms: an op on tensors and numbers. The program of a call depends on everything but the values;
 * its key in the cache (programs.h) is made of the same. Thread-safe. */
#ifndef TS_FRONT_CALL_H
#define TS_FRONT_CALL_H

#include "device/device.h"
#include "front/number.h"

typedef struct ts_call {
  ts_opcode code;
  ts_device *device; /* where it runs: ts_call_device() */
  ts_attrs attrs;
  ts_buffer *const *buffers; /* NULL for a number */
  const ts_number *numbers;
  size_t count;
} ts_call;

/* The device of the first tensor, or the default. */
ts_device *ts_call_device(ts_buffer *const *buffers, size_t count);

/* The words of any key of two operands without attributes, so that those of most eager calls need not be counted. */
#define TS_CALL_KEY_FEW (1 + 2 * (1 + TS_MAX_RANK))

typedef struct ts_call_key {
  size_t words;
  uint64_t *data, few[TS_CALL_KEY_FEW];
} ts_call_key;

/* After success the key needs ts_call_key_deinit. */
ts_status ts_call_key_init(const ts_call *call, ts_call_key *out);
static inline void ts_call_key_deinit(ts_call_key *key) {
  if (key->data != key->few) ts_free(key->data);
}

/* The graph of the program of one op, whose parameters are the tensors and, as scalars, the numbers. */
ts_status ts_call_graph(const ts_call *call, ts_graph **out);
/* The program. TS_CANCELLED once `cancel`,
 * which may be NULL, is true. */
ts_status ts_call_compile(const ts_call *call, const _Atomic bool *cancel, ts_loaded **out);
/* A reshape only views its operand: false when the call is not a valid reshape. */
bool ts_call_is_view(const ts_call *call);

#endif
