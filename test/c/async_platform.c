/* Makes the asynchronous device known to the library that it is linked into. */
#include "async_device.h"
#include "device/device.h"

__attribute__((constructor)) static void add(void) {
  ts_status_free(ts_platform_add(&test_async));
  ts_status_free(ts_platform_add(&test_async_failing));
}
