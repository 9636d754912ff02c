/* The bytes that serialize() of JAX's exports returns: a FlatBuffer, with the module's bytecode in one of its fields.
 * The first four bytes are the offset of the root table. The table begins with the distance to its *vtable*, which has
 * the offset of each field. */
#include "stablehlo/interface/interface.h"

/* The place in the vtable of the field with the bytecode. JAX adds fields at the end only. */
enum { MODULE_FIELD = 30 };

typedef struct flat_file {
  const uint8_t *data;
  size_t size;
} flat_file;

/* A little-endian number; 0 outside of the file. */
static uint32_t number_at(const flat_file *f, size_t at, size_t bytes) {
  uint32_t number = 0;
  if (at > f->size || f->size - at < bytes) return 0;
  for (size_t i = 0; i < bytes; i++) number |= (uint32_t)f->data[at + i] << (8 * i);
  return number;
}

/* The offset of the module's field; 0: there is none. */
static size_t find_field(const flat_file *f) {
  const size_t root = number_at(f, 0, 4);
  const int64_t table = (int64_t)root - (int32_t)number_at(f, root, 4);
  if (table < 0 || table == (int64_t)root || number_at(f, (size_t)table, 2) < MODULE_FIELD + 2) return 0;
  const size_t field = number_at(f, (size_t)table + MODULE_FIELD, 2);
  return field ? root + field : 0;
}

/* The offset of a FlatBuffer's root is small, so that its fourth byte is 0. No byte of a text is 0, and the fourth byte
 * of bytecode is 'R'. */
static bool is_flat(const flat_file *f) { return f->size >= 8 && f->data[3] == 0; }

ts_status mlir_open_exported(const char **inout_text, size_t *inout_length) {
  const flat_file f = {(const uint8_t *)*inout_text, *inout_length};
  if (!is_flat(&f)) return TS_SUCCESS;
  const size_t field = find_field(&f), offset = number_at(&f, field, 4);
  const size_t begin = field + offset + 4, length = number_at(&f, field + offset, 4);
  if (field == 0 || begin > f.size || f.size - begin < length || !mlir_is_bytecode(f.data + begin, length))
    return ts_error(TS_INVALID_ARGUMENT, "byte 0: expected a text of MLIR, its bytecode, or an export of JAX with it");
  *inout_text = (const char *)f.data + begin;
  *inout_length = length;
  return TS_SUCCESS;
}
