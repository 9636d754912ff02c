/* What an op does, as bytes: two ops with the same bytes on the same operands have the same results. For look-up
 * and fingerprints within one process; not a format. A key belongs to its maker. */
#ifndef TS_IR_KEY_H
#define TS_IR_KEY_H

#include "ir/graph.h"

typedef TS_VEC(unsigned char) ts_key;

ts_status ts_key_put(ts_key *key, const void *bytes, size_t size);
ts_status ts_key_put_type(ts_key *key, ts_dtype dtype, const ts_shape *shape);
/* The op's code, number of operands and attributes; the operands and regions are the caller's to put.
 * Big literals are the same when they are one buffer, others when their elements are. */
ts_status ts_key_put_op(ts_key *key, const ts_op *op);

#endif
