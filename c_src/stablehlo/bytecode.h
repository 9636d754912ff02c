/* MLIR's bytecode: the state of its reader, and what its files share. Internal to stablehlo/.
 *
 * A file has sections: strings, dialects with names of ops, attributes and types (each with its bytes, read when it is
 * used), properties of ops, resources, and the ops. bytecode.c finds them. bytecode_attr.c and bytecode_type.c read an
 * attribute or a type into the same nodes as the text's parser makes. Each has tables of the dialects and codes that it
 * knows. A file lacks the names of properties: bytecode_props.c has them. bytecode_op.c reads the ops. Ops of VHLO, the
 * versioned dialect of portable artifacts, become ops of StableHLO (bytecode_vhlo.c).
 *
 * A file is foreign data. No list is longer than the bytes that are left. Attributes and regions are nested to a limit.
 * Each attribute and type is read once. So memory and time are linear in the file's size. An error names a byte. */
#ifndef TS_STABLEHLO_BYTECODE_H
#define TS_STABLEHLO_BYTECODE_H

#include "stablehlo/mlir_parser.h"

/* Bytes that are not read yet. */
typedef struct bytecode_bytes {
  const uint8_t *at, *end;
} bytecode_bytes;

typedef enum bytecode_kind {
  BYTECODE_ELEMENT,  /* A number: `type` has no shape. */
  BYTECODE_TENSOR,   /* A tensor or a token: `type`. */
  BYTECODE_FUNCTION, /* A function: `arguments` and `results`. */
  BYTECODE_NONE,     /* The file says that there is no type. */
  BYTECODE_TUPLE,    /* A tuple: `type` has its parts. */
  BYTECODE_OTHER,    /* A type that Tessera lacks, as a buffer. */
} bytecode_kind;

typedef struct bytecode_type {
  bytecode_kind kind;
  mlir_type type;
  bool is_unsigned;
  int bits; /* width of an integer or a float */
  mlir_types arguments, results;
} bytecode_type;

/* An attribute or a type in the file, and the object made from it. */
typedef struct bytecode_entry {
  bytecode_bytes bytes;
  uint32_t dialect;
  bool is_custom; /* in a code of its dialect; else in text */
  bool is_open;   /* it is being read */
  void *made;     /* mlir_attr or bytecode_type */
} bytecode_entry;

typedef struct bytecode bytecode;

/* How entries of one kind are read. */
typedef struct bytecode_maker {
  const char *what; /* "a type" */
  size_t size;      /* of the object */
  ts_status (*read)(bytecode *b, const bytecode_entry *entry, void *made);
} bytecode_maker;

typedef struct bytecode_op_name {
  mlir_token written; /* vhlo.add_v1 */
  mlir_token name;    /* stablehlo.add */
  bool is_registered;
} bytecode_op_name;

struct bytecode {
  ts_arena *arena;
  const uint8_t *data;
  size_t size;
  uint64_t version;
  mlir_token *strings, *dialects;
  size_t string_count, dialect_count;
  bytecode_op_name *ops;
  size_t op_count;
  bytecode_entry *attrs, *types;
  size_t attr_count, type_count;
  bytecode_bytes *properties, *resources;
  size_t property_count, resource_count;
  bytecode_bytes ir;
  bool with_locations;
  struct mlir_location *locations; /* one for each attribute, empty where it is none; NULL: not wanted */
  int depth;                       /* attributes and types around the current entry */
};

/* True when a file begins as bytecode does. */
bool mlir_is_bytecode(const void *data, size_t size);
/* Reads a file into the arena; strings and constants refer to the file. `with_locations`: with the
 * locations of ops. */
ts_status mlir_read_bytecode(ts_arena *arena, const void *data, size_t size, bool with_locations, mlir_module *out);

/* ---- bytecode.c: the parts of a file */
/* Finds the parts of a file: sets all but `arena`, `data`, `size`, `with_locations` and `locations`. */
ts_status bytecode_open(bytecode *b);
ts_status bytecode_error(const bytecode *b, const uint8_t *at, ts_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5), returns_nonnull));
#ifdef __clang_analyzer__
#define bytecode_error(...) ts_error_assume((bytecode_error)(__VA_ARGS__))
#endif
ts_status bytecode_varint(const bytecode *b, bytecode_bytes *from, uint64_t *out);
ts_status bytecode_signed(const bytecode *b, bytecode_bytes *from, int64_t *out);
/* A number whose lowest bit is a flag. */
ts_status bytecode_flagged(const bytecode *b, bytecode_bytes *from, uint64_t *out, bool *out_flag);
/* The same from a version of the format on. Before it a number alone: the flag stays as it is. */
ts_status bytecode_flagged_since(const bytecode *b, bytecode_bytes *from, uint64_t version, uint64_t *out,
                                 bool *inout_flag);
/* A number below `limit`; `what` it is the number of. */
ts_status bytecode_index(const bytecode *b, bytecode_bytes *from, size_t limit, const char *what, size_t *out);
/* The length of a list, each of whose items has a byte or more. */
ts_status bytecode_count(const bytecode *b, bytecode_bytes *from, size_t *out);
ts_status bytecode_byte(const bytecode *b, bytecode_bytes *from, uint8_t *out);
/* `count` bytes. */
ts_status bytecode_take(const bytecode *b, bytecode_bytes *from, uint64_t count, bytecode_bytes *out);
/* A section: its number and contents. */
ts_status bytecode_section(const bytecode *b, bytecode_bytes *from, uint8_t *out_id, bytecode_bytes *out);
/* A string of the table. */
ts_status bytecode_string(const bytecode *b, bytecode_bytes *from, mlir_token *out);
/* The object of an entry. It is made once. An entry that contains itself is an error. */
ts_status bytecode_make(bytecode *b, bytecode_entry *entry, const bytecode_maker *maker, const void **out);
/* A token at a place in the file. */
mlir_token bytecode_token(const bytecode *b, const uint8_t *at, mlir_token_kind kind, const char *text, size_t length);

/* ---- bytecode_type.c */
ts_status bytecode_get_type(bytecode *b, bytecode_bytes *from, const bytecode_type **out);
ts_status bytecode_type_at(bytecode *b, size_t index, const bytecode_type **out);
/* The type of a value; without a shape if it is no tensor. */
ts_status bytecode_get_tensor(bytecode *b, bytecode_bytes *from, mlir_type *out);

/* ---- bytecode_attr.c */
ts_status bytecode_get_attr(bytecode *b, bytecode_bytes *from, const mlir_attr **out);
ts_status bytecode_attr_at(bytecode *b, size_t index, const mlir_attr **out);
/* A number, a list of attributes, a list of numbers, as an attribute. */
ts_status bytecode_set_number(const bytecode *b, const uint8_t *at, int64_t number, bool is_unsigned, mlir_attr *out);
ts_status bytecode_list(bytecode *b, bytecode_bytes *from, mlir_attr *out);
ts_status bytecode_integers(bytecode *b, bytecode_bytes *from, mlir_attr *out);
/* A parser of the text of an attribute or a type. */
mlir_parser bytecode_text_parser(const bytecode *b, bytecode_bytes text);

/* ---- bytecode_sdy.c: an attribute of sdy after its code; one that is not known stays as it is. */
ts_status bytecode_read_sdy(bytecode *b, bytecode_bytes *from, uint64_t code, mlir_attr *out);

/* ---- bytecode_props.c */
/* The names of an op's properties in the order of a file. "?" is in front of a name that may be absent. An op may have
 * several forms: this is form `i`, or NULL. */
const char *bytecode_property_names(mlir_token op, size_t i);

/* ---- bytecode_vhlo.c */
/* Gives an op the attributes that the text of StableHLO has. */
ts_status bytecode_complete_op(bytecode *b, const bytecode_op_name *name, mlir_op *op);

#endif
