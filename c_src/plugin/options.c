/* Compile options, and assignments of devices, as protocol buffers: the few fields that have a meaning here. */
#include "plugin/plugin.h"

#include <string.h>

typedef struct reader {
  const uint8_t *at, *end;
} reader;

/* The value of a number, or the bytes of a text or message. */
typedef struct field {
  uint64_t number, value;
  reader bytes;
} field;

static ts_status wrong(void) { return ts_error(TS_INVALID_ARGUMENT, "the compile options are no protocol buffer"); }

static ts_status read_number(reader *r, uint64_t *out) {
  *out = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (r->at == r->end) return wrong();
    uint8_t byte = *r->at++;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return TS_SUCCESS;
  }
  return wrong();
}

static ts_status skip(reader *r, uint64_t size) {
  if (size > (uint64_t)(r->end - r->at)) return wrong();
  r->at += size;
  return TS_SUCCESS;
}

static ts_status read_field(reader *r, field *out) {
  uint64_t tag;
  TS_TRY(read_number(r, &tag));
  *out = (field){.number = tag >> 3};
  switch (tag & 7) {
  case 0: return read_number(r, &out->value);
  case 1: return skip(r, 8);
  case 2:
    TS_TRY(read_number(r, &out->value));
    out->bytes.at = r->at;
    TS_TRY(skip(r, out->value));
    out->bytes.end = r->at;
    return TS_SUCCESS;
  case 5: return skip(r, 4);
  default: return wrong();
  }
}

static ts_status add_device(plugin_options *out, uint64_t id) {
  if (id >= PLUGIN_MOST_DEVICES || out->device_count == PLUGIN_MOST_DEVICES)
    return ts_error(TS_INVALID_ARGUMENT, "the compile options name device %llu, and there are at most %d",
                    (unsigned long long)id, PLUGIN_MOST_DEVICES);
  out->devices[out->device_count++] = (int)id;
  return TS_SUCCESS;
}

/* ComputationDevice: the devices of a partition's replicas. */
static ts_status read_devices(reader r, plugin_options *out) {
  field f;
  while (r.at < r.end) {
    TS_TRY(read_field(&r, &f));
    if (f.number != 1) continue;
    if (!f.bytes.at) {
      TS_TRY(add_device(out, f.value));
      continue;
    }
    while (f.bytes.at < f.bytes.end) { /* packed */
      uint64_t id;
      TS_TRY(read_number(&f.bytes, &id));
      TS_TRY(add_device(out, id));
    }
  }
  return TS_SUCCESS;
}

static ts_status read_assignment(reader r, plugin_options *out) {
  field f;
  while (r.at < r.end) {
    TS_TRY(read_field(&r, &f));
    if (f.number == 3) TS_TRY(read_devices(f.bytes, out));
  }
  return TS_SUCCESS;
}

/* ExecutableBuildOptionsProto */
static ts_status read_build(reader r, plugin_options *out) {
  field f;
  while (r.at < r.end) {
    TS_TRY(read_field(&r, &f));
    if (f.number == 4) out->replicas = f.value < 1 << 20 ? (int64_t)f.value : 1 << 20;
    if (f.number == 5) out->partitions = f.value < 1 << 20 ? (int64_t)f.value : 1 << 20;
    if (f.number == 9) TS_TRY(read_assignment(f.bytes, out));
  }
  return TS_SUCCESS;
}

/* Checks an entry of the map of options that a program sets for its own compilation. Names of XLA's options are
 * ignored; any other name is refused, as in XLA. */
static ts_status check_override(reader r) {
  enum { MOST_SHOWN = 100 };
  static const char own[] = "xla_";
  reader name = {0};
  field f;
  while (r.at < r.end) {
    TS_TRY(read_field(&r, &f));
    if (f.number == 1) name = f.bytes;
  }
  const size_t length = name.at ? (size_t)(name.end - name.at) : 0, start = sizeof own - 1;
  if (length > start && memcmp(name.at, own, start) == 0) return TS_SUCCESS;
  bool is_plain = length <= MOST_SHOWN;
  for (size_t i = 0; i < length && is_plain; i++) is_plain = name.at[i] >= ' ' && name.at[i] < 0x7f;
  return ts_error(TS_INVALID_ARGUMENT, "No such compile option: '%.*s'", is_plain ? (int)length : 0,
                  is_plain && length ? (const char *)name.at : "");
}

ts_status plugin_options_read(const char *bytes, size_t size, plugin_options *out) {
  reader r = {(const uint8_t *)bytes, (const uint8_t *)bytes + size};
  field f;
  *out = (plugin_options){.replicas = 1, .partitions = 1};
  while (size && r.at < r.end) {
    TS_TRY(read_field(&r, &f));
    if (f.number == 2) out->tuples = f.value != 0;
    if (f.number == 3) TS_TRY(read_build(f.bytes, out));
    if (f.number == 4) out->portable = f.value != 0;
    if (f.number == 7) TS_TRY(check_override(f.bytes));
  }
  if (out->replicas < 1) out->replicas = 1;
  if (out->partitions < 1) out->partitions = 1;
  return TS_SUCCESS;
}

/* ---- writing */

void plugin_write_number(ts_text *out, uint64_t number) {
  for (; number >= 0x80; number >>= 7) ts_text_append_n(out, (char[]){(char)(number | 0x80)}, 1);
  ts_text_append_n(out, (char[]){(char)number}, 1);
}

ts_status plugin_assignment_write(const plugin_code *code, ts_text *out) {
  ts_text_append_n(out, "\x08", 1);
  plugin_write_number(out, (uint64_t)code->replicas);
  ts_text_append_n(out, "\x10", 1);
  plugin_write_number(out, (uint64_t)code->partitions);
  for (int p = 0; p < code->partitions; p++) { /* ids are less than 64: a byte each */
    const char start[] = {0x1a, (char)(2 + code->replicas), 0x0a, (char)code->replicas};
    ts_text_append_n(out, start, sizeof start);
    for (int r = 0; r < code->replicas; r++)
      ts_text_append_n(out, (char[]){(char)code->devices[r * code->partitions + p]}, 1);
  }
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}
