/* A platform for tests whose buffers the host cannot read: each byte of a tensor is stored under a mask, in memory that
 * only this file knows, and `data` is NULL. It computes with exec/ on copies. It can fail on request. */
#ifndef TS_TEST_MASKED_CLIENT_H
#define TS_TEST_MASKED_CLIENT_H

#include "device/device.h"

extern const ts_platform test_masked;        /* with resumable runs */
extern const ts_platform test_masked_simple; /* without */

/* How many transfers succeed from now on; negative: all. */
void test_masked_fail_after(int64_t transfers);
int64_t test_masked_live(void); /* buffers on its devices */

#endif
