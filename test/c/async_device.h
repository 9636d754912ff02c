/* An asynchronous platform of the tests. Its memory is its own: each byte is stored under a mask, behind handles that
 * only async_device.c understands. Its threads take operations late and out of order, so operations end on other
 * threads than they began. It compiles by the host's compiler, and computes by the host's runs on copies. It can fail
 * on request. */
#ifndef TS_TEST_ASYNC_DEVICE_H
#define TS_TEST_ASYNC_DEVICE_H

#include "device/platform.h"

extern const ts_platform test_async;
/* The same, but of its clients' operations every tenth is an error, TS_UNAVAILABLE. */
extern const ts_platform test_async_failing;

typedef enum test_async_op {
  TEST_ASYNC_OPEN,
  TEST_ASYNC_COMPILE,
  TEST_ASYNC_SAVE,
  TEST_ASYNC_LOAD,
  TEST_ASYNC_FROM_HOST,
  TEST_ASYNC_TO_HOST,
  TEST_ASYNC_COPY,
  TEST_ASYNC_RUN,
  TEST_ASYNC_OPS
} test_async_op;

/* How many operations of that kind succeed from now on; negative: all. */
void test_async_fail_after(test_async_op op, int64_t successes);
/* Clients, programs and memories that exist, and operations that have not ended. */
int64_t test_async_live(void);

#endif
