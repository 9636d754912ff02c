/* Types of elements in PJRT's numbers (abi.h), for the client and for our own plugin. Pure. */
#ifndef TS_PJRT_TYPES_H
#define TS_PJRT_TYPES_H

#include "tensor/dtype.h"

/* PJRT's number of a type; 0 without one. */
int pj_type(ts_dtype dtype);
/* The type of a number; false without one. PJ_PRED has none: booleans are u8. */
bool pj_dtype(int type, ts_dtype *out);

#endif
