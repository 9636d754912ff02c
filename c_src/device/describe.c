/* Devices in texts, and the bytes that the host can read. */
#include "device/device.h"

#include <stdio.h>

const char *ts_device_format(const ts_device *device, char *out, size_t size) {
  snprintf(out, size, "device %d of client %s", device->id, device->client->name);
  return out;
}

ts_status ts_device_bytes(const ts_buffer *buffer, void **out) {
  *out = buffer->data;
  if (!buffer->elsewhere) return TS_SUCCESS;
  return ts_error(TS_ELSEWHERE, "the host cannot read %s on %s", TS_SHAPE_STR(buffer->dtype, &buffer->shape),
                  TS_DEVICE_STR(buffer->device));
}
