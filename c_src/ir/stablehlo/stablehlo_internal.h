/* The shared part of the StableHLO printer. Internal to ir/. A printer belongs to one thread; values are small and
 * passed by value. */
#ifndef TS_IR_STABLEHLO_INTERNAL_H
#define TS_IR_STABLEHLO_INTERNAL_H

#include "ir/stablehlo/stablehlo.h"

/* An element type: a ts_dtype, or i1, which is u8 in Tessera. */
typedef uint32_t hlo_element;
#define HLO_I1 ((hlo_element)TS_DTYPE_COUNT)

typedef struct hlo_name {
  uint32_t number;
  int32_t result; /* %number#result; -1 where the op has one result */
  uint32_t truth; /* 1 + the number of the i1 that a u8 was converted from; 0: none */
  uint32_t made;  /* how, where there are barriers: stablehlo_barrier.c */
} hlo_name;

typedef struct hlo_value {
  hlo_name name;
  hlo_element element;
  ts_shape shape;
} hlo_value;

typedef struct hlo hlo;
struct hlo {
  const ts_graph *graph;
  ts_text *out;
  hlo_name *names; /* by the graph's value id */
  uint32_t next;
  int depth;
  bool replicas; /* partitions are printed as replicas */
  ts_stablehlo_precision precision;
  ts_stablehlo_barriers barriers;
  bool rounds_products; /* as ts_stablehlo_options says */
  /* Prints a region of the graph as a region of an op. `condition`: its one result becomes i1. */
  ts_status (*print_region)(hlo *h, ts_region_id id, bool first, bool last, bool condition);
};

/* The lowering of one op of the graph; control ops name their results themselves. */
typedef struct hlo_call {
  hlo *h;
  const ts_op *op;
  hlo_element element; /* of result 0 */
  const ts_shape *shape;
} hlo_call;

/* ---- stablehlo_write.c: text ---- */
bool hlo_has_type(ts_dtype type);
hlo_value hlo_get(const hlo *h, ts_value_id id);
hlo_value hlo_operand(const hlo_call *call, uint32_t i);

/* Prints an op with one result. */
hlo_value hlo_op(hlo *h, const char *name, hlo_element element, const ts_shape *shape, const hlo_value *operands,
                 size_t count);
typedef struct hlo_type {
  hlo_element element;
  const ts_shape *shape;
} hlo_type;
typedef struct hlo_values {
  const hlo_value *data;
  size_t count;
} hlo_values;
/* The same with properties: "dimension = 0 : i64". */
hlo_value hlo_op_with(hlo *h, const char *name, hlo_type type, hlo_values operands, const char *properties, ...)
    __attribute__((format(printf, 5, 6)));

/* Prints an op with regions: begin, regions, end. */
hlo_name hlo_begin(hlo *h, const char *name, size_t results, const hlo_value *operands, size_t count);
void hlo_region_begin(hlo *h, bool first, const hlo_value *params, size_t count);
void hlo_region_end(hlo *h, bool last, const hlo_value *results, size_t count);
void hlo_end(hlo *h, const hlo_value *operands, size_t count, const hlo_value *results, size_t result_count);
/* Gives the results the names that hlo_begin made for them. */
static inline void hlo_name_results(hlo_name begun, hlo_value *results, size_t count) {
  for (size_t i = 0; i < count; i++)
    results[i].name = (hlo_name){.number = begun.number, .result = count == 1 ? -1 : (int32_t)i};
}
/* A region's parameter or an op's result; the name is new. */
hlo_value hlo_new_value(hlo *h, hlo_element element, const ts_shape *shape);

void hlo_print_indent(hlo *h);
void hlo_print_use(hlo *h, const hlo_value *value);
void hlo_print_type(hlo *h, hlo_element element, const ts_shape *shape);
void hlo_print_types(hlo *h, const hlo_value *values, size_t count);

/* Writes "1, 2" into `out` and returns it: dims' text inside brackets. */
#define HLO_DIMS_TEXT 512
const char *hlo_dims_format(const ts_dims *dims, const char *before, const char *after, char *out);
#define HLO_LIST(dims) hlo_dims_format((dims), "[", "]", (char[HLO_DIMS_TEXT]){0})
#define HLO_ARRAY(dims) \
  hlo_dims_format((dims), (dims)->rank ? "array<i64: " : "array<i64", ">", (char[HLO_DIMS_TEXT]){0})

/* ---- stablehlo_pieces.c ---- */
/* The error for an op that StableHLO cannot express. */
ts_status hlo_no_form(const hlo_call *call);
hlo_value hlo_unary(hlo *h, const char *name, hlo_value x);
hlo_value hlo_binary(hlo *h, const char *name, hlo_value a, hlo_value b);
hlo_value hlo_convert(hlo *h, hlo_value x, hlo_element element);
hlo_value hlo_constant(hlo *h, ts_dtype dtype, const ts_shape *shape, ts_scalar value);
hlo_value hlo_literal(const hlo_call *call);
hlo_value hlo_integer(hlo *h, ts_dtype dtype, const ts_shape *shape, int64_t value);
/* `direction`: EQ NE GT LT GE LE; gives i1. */
hlo_value hlo_compare(hlo *h, const char *direction, hlo_value a, hlo_value b);
/* The same by a kind of comparison that the operands' type does not say: TOTALORDER. */
hlo_value hlo_compare_as(hlo *h, const char *kind, const char *direction, hlo_value a, hlo_value b);
hlo_value hlo_bool(hlo *h, bool value); /* a scalar */
/* x != 0, as i1: of a u8 that is a converted i1 that one */
hlo_value hlo_truth(hlo *h, hlo_value x);
hlo_value hlo_reshape(hlo *h, hlo_value x, const ts_shape *shape);
hlo_value hlo_iota(hlo *h, ts_dtype dtype, const ts_shape *shape, int32_t axis); /* axis -1: the row-major index */
/* Converts an index to s64: StableHLO wants one type for all starts, and a narrow type could not represent the bound
 * for clamping. u64 values out of range are beyond any dim either way. */
hlo_value hlo_signed_index(hlo *h, hlo_value index);

/* ---- stablehlo_elementwise.c ---- */
/* Each writes an op of its classes; `out` has an entry for each result of it. */
ts_status hlo_elementwise(const hlo_call *call, hlo_value *out);
/* ---- stablehlo_barrier.c ---- */
/* What a name says of the first result of an op that has been printed. */
uint32_t hlo_made(const hlo *h, const ts_op *op);
/* Puts barriers in front of operands of an op on two tensors, which a compiler would unite with the ops that made them.
 */
void hlo_add_barriers(hlo *h, ts_opcode code, hlo_value *a, hlo_value *b);
/* ---- stablehlo_shape.c ---- */
ts_status hlo_source(const hlo_call *call, hlo_value *out);
ts_status hlo_shape_op(const hlo_call *call, hlo_value *out);
ts_status hlo_indexed(const hlo_call *call, hlo_value *out);
/* ---- stablehlo_scatter.c ---- */
ts_status hlo_scatter(const hlo_call *call, hlo_value *out);
/* ---- stablehlo_sort.c ---- */
ts_status hlo_sort(const hlo_call *call, hlo_value *out);
/* ---- stablehlo_reduce.c ---- */
ts_status hlo_reduce(const hlo_call *call, hlo_value *out);
ts_status hlo_arg_reduce(const hlo_call *call, hlo_value *out);
ts_status hlo_scan(const hlo_call *call, hlo_value *out);
ts_status hlo_window(const hlo_call *call, hlo_value *out);
ts_status hlo_conv(const hlo_call *call, hlo_value *out);
/* The type of a product's or a convolution's result, which is then converted to the op's type. */
hlo_element hlo_product_type(const hlo_call *call);
/* The name in StableHLO of the precision of products of such operands. */
const char *hlo_precision(const hlo *h, hlo_element operands);
ts_status hlo_dot(const hlo_call *call, hlo_value *out);
/* ---- stablehlo_quantized.c ---- */
ts_status hlo_quantized_dot(const hlo_call *call, hlo_value *out);
#ifdef TS_TEST_ROWS
ts_status hlo_test(const hlo_call *call, hlo_value *out); /* test/rows/test_ir.c */
#endif
/* ---- stablehlo_linalg.c ---- */
ts_status hlo_linalg(const hlo_call *call, hlo_value *out);
/* ---- stablehlo_mesh.c ---- */
ts_status hlo_collective(hlo *h, const ts_op *op); /* names the results itself */
void hlo_print_module_begin(hlo *h);               /* with sdy.mesh where there is a mesh */
void hlo_print_sharding(hlo *h, ts_root_side side, size_t index, int32_t rank);
/* ---- stablehlo_fft.c ---- */
ts_status hlo_fft(const hlo_call *call, hlo_value *out);

#endif
