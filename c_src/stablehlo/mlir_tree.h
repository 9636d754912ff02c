/* The contents of a text of MLIR, or of a file of its bytecode, before any op has a meaning: functions, ops in the
 * order of the text, attributes. Pretty forms have become generic ones: operands, named attributes, regions and result
 * types. Internal to stablehlo/. All of it lies in one arena and refers to the text. */
#ifndef TS_STABLEHLO_MLIR_TREE_H
#define TS_STABLEHLO_MLIR_TREE_H

#include "base/arena.h"
#include "base/vec.h"
#include "stablehlo/mlir_lex.h"
#include "tensor/shape.h"

/* Integers that stand for numbers: (integer - zero point) * scale. */
typedef struct mlir_quant {
  ts_dtype expressed; /* the type of the numbers */
  int64_t low, high;  /* of the integers */
  int32_t axis;       /* along which scales and zero points change; -1: there is one of both */
  size_t count;
  const double *scales;
  const int64_t *zero_points;
} mlir_quant;

/* A ranked tensor. Booleans are u8 in Tessera, quantised numbers their integers, a token a u8 without dims. */
typedef struct mlir_type {
  ts_dtype dtype;
  bool is_bool;
  const ts_shape *shape;          /* room for its rank only; NULL: a tuple, or no tensor whose numbers Tessera has */
  const mlir_quant *quant;        /* NULL: the numbers are themselves */
  const struct mlir_types *parts; /* of a tuple; NULL: of another type */
} mlir_type;

/* A dim whose size is not known. */
enum { MLIR_ANY_SIZE = -1 };

/* Whether all sizes are known. */
bool mlir_shape_is_known(const ts_shape *shape);
/* Whether a type allows a shape. */
bool mlir_shape_admits(const ts_shape *type, const ts_shape *shape);
/* ts_shape_check, where sizes may be not known. */
ts_status mlir_shape_check(const ts_shape *shape, ts_dtype type);

typedef struct mlir_types {
  mlir_type *data;
  size_t count;
} mlir_types;

typedef enum mlir_attr_kind {
  MLIR_ATTR_UNIT,
  MLIR_ATTR_NUMBER,   /* the token is the number */
  MLIR_ATTR_WORD,     /* a word, a string or a symbol: the token */
  MLIR_ATTR_LIST,     /* of items */
  MLIR_ATTR_DICT,     /* items with names */
  MLIR_ATTR_DENSE,    /* a constant: `type`, and the token where its contents begin, or `bytes` */
  MLIR_ATTR_TYPE,     /* of bytecode: `type_number` */
  MLIR_ATTR_FUNCTION, /* of text: the type of a function, as two items whose types are tuples: arguments and results */
  MLIR_ATTR_TERMS,    /* the sharding of a value that is not summed yet along some axes */
  MLIR_ATTR_PART,     /* of an axis: the token is the axis's name, the items are the size of the part of the axis before
                         it (1: none), and its own size */
} mlir_attr_kind;

typedef struct mlir_attr {
  mlir_attr_kind kind;
  mlir_token name;      /* of an item of a dictionary, and of an op's attribute; `length` 0: without a name */
  mlir_token token;     /* where the attribute begins */
  mlir_type type;       /* of a dense one */
  const char *end;      /* of the text, for a dense one */
  const uint8_t *bytes; /* of a dense one in bytecode; NULL: it is text */
  size_t byte_count;
  struct mlir_attr *items;
  size_t count;       /* of the items */
  size_t type_number; /* of a type: its place in the file's list */
} mlir_attr;

typedef struct mlir_region {
  mlir_token *params;
  mlir_types param_types;
  mlir_attr *param_attrs;                       /* a dictionary for each, which may be empty */
  const struct mlir_location **param_locations; /* of each, which may be NULL; NULL: no locations are read */
  size_t param_count;
  struct mlir_op *ops; /* the last is a return */
  size_t op_count;
} mlir_region;

typedef struct mlir_op {
  mlir_token name;     /* stablehlo.add */
  mlir_token *results; /* names; each stands for `result_counts` results */
  size_t *result_counts;
  size_t result_name_count;
  mlir_token *operands; /* %3#1 as written */
  size_t operand_count;
  mlir_attr *attrs; /* positional ones have no name */
  size_t attr_count;
  mlir_region *regions;
  size_t region_count;
  mlir_types types;                     /* of the results */
  const char *fault;                    /* why it cannot be made; NULL: nothing is known */
  const struct mlir_location *location; /* location/location.h; NULL: none */
} mlir_op;

typedef struct mlir_func {
  mlir_token name;
  bool is_public;
  bool is_placed;      /* it needs to know its partition, or a function that it calls does; mesh/ */
  bool is_seen;        /* and `is_placed` says so */
  bool has_collective; /* a collective is in it, or in a function that it calls: the module is the program of one
                          process */
  mlir_types results;
  mlir_attr *result_attrs; /* a dictionary for each; NULL: none has any */
  mlir_region body;        /* without ops: it is declared only */
} mlir_func;

typedef struct mlir_mesh {
  mlir_token name;
  mlir_attr axes; /* a dictionary of sizes, and device_ids */
} mlir_mesh;

typedef struct mlir_module {
  mlir_func *funcs;
  size_t count;
  mlir_mesh *meshes;
  size_t mesh_count;
  mlir_attr attrs; /* a dictionary */
} mlir_module;

/* Reads a text into the arena; `with_locations`: with the locations of ops. */
ts_status mlir_parse(ts_arena *arena, const char *text, size_t length, bool with_locations, mlir_module *out);

/* NULL when there is none. */
const mlir_attr *mlir_find_attr(const mlir_attr *attrs, size_t count, const char *name);
static inline const mlir_attr *mlir_op_attr(const mlir_op *op, const char *name) {
  return mlir_find_attr(op->attrs, op->attr_count, name);
}
/* An integer, `true` or `false`. */
ts_status mlir_attr_int(const mlir_attr *attr, int64_t *out);
/* False if it is no number. */
bool mlir_attr_float(const mlir_attr *attr, double *out);
/* Integers of a list or of a dense constant, which may be nested, in order. */
ts_status mlir_attr_ints(const mlir_attr *attr, ts_dims *out);
/* Checks that a dense constant of bytes has as many as its type needs. */
ts_status mlir_check_bytes(const mlir_attr *attr);
/* True when a dense constant has one element, or is written as one element for all. */
bool mlir_dense_is_splat(const mlir_attr *attr);
/* A dense constant's elements, `type.dtype` each, or its one element. `out` has room for them. */
ts_status mlir_dense_read(const mlir_attr *attr, void *out);

#endif
