#include "ops.h"

#include <stdio.h>

typedef enum types {
  FLOATS = 1,
  INTEGERS = 2,
  REALS = 3,
  COMPLEX = 4,
  ALL = 7,
  SAME_SIZE = 8,
  WIDE_FLOATS = 16,
  WEIGHED = 32
} types;

/* A program of one op: %9 = OP rest : result. In its text a `T` stands for each type of `types` in turn, a `U` for each
 * of `others`, if any, `P` for the type of T's parts, and `C` for complex numbers of T. */
typedef struct recipe {
  ts_opcode code;
  types types, others;
  const char *params, *result, *rest;
} recipe;

#define COMBINE(op) " {axes = [0]} {\n combine(%10: T[], %11: T[]) {\n %12 = " op " %10, %11 : T[]\n return %12\n }\n}"
#define TWICE "(%10: T[3]) {\n %11 = add %10, %10 : T[3]\n return %11\n }\n"

static const recipe recipes[] = {
    {TS_OP_CONSTANT, REALS, 0, "", "T[3]", " 1"},
    {TS_OP_CONSTANT, COMPLEX, 0, "", "T[3]", " (1.5, -2)"},
    {TS_OP_LITERAL, ALL, 0, "", "", ""}, /* the text depends on the type: write_literal */
    {TS_OP_IOTA, ALL, 0, "", "T[3,4]", " {axis = 1}"},
    {TS_OP_IOTA, ALL, 0, "", "T[3,4]", " {axis = -1}"},
    {TS_OP_EYE, ALL, 0, "", "T[2,3,4]", ""},
    {TS_OP_CONVERT, ALL, ALL, "%0: T[40]", "U[40]", " %0"},
    {TS_OP_BITCAST, REALS, SAME_SIZE, "%0: T[40]", "U[40]", " %0"},
    {TS_OP_SELECT, ALL, 0, "%0: u8[40], %1: T[40], %2: T[40]", "T[40]", " %0, %1, %2"},
    {TS_OP_CLAMP, ALL, 0, "%0: T[40], %1: T[40], %2: T[40]", "T[40]", " %0, %1, %2"},
    {TS_OP_RESHAPE, ALL, 0, "%0: T[4,6]", "T[3,1,8]", " %0 {shape = [3,1,8]}"},
    {TS_OP_BROADCAST, ALL, 0, "%0: T[2,1]", "T[2,5,3]", " %0 {shape = [2,5,3], axes = [0,2]}"},
    {TS_OP_TRANSPOSE, ALL, 0, "%0: T[2,3,4]", "T[4,2,3]", " %0 {axes = [2,0,1]}"},
    {TS_OP_REVERSE, ALL, 0, "%0: T[2,3,4]", "T[2,3,4]", " %0 {axes = [0,2]}"},
    {TS_OP_SLICE, ALL, 0, "%0: T[5,9]", "T[2,3]", " %0 {start = [1,2], limit = [3,8], stride = [1,2]}"},
    {TS_OP_DYNAMIC_SLICE, ALL, 0, "%0: T[5,9], %1: s32[], %2: s32[]", "T[2,3]", " %0, %1, %2 {shape = [2,3]}"},
    {TS_OP_DYNAMIC_SLICE, INTEGERS, 0, "%0: f32[5,9], %1: T[], %2: T[]", "f32[2,3]", " %0, %1, %2 {shape = [2,3]}"},
    {TS_OP_PUT_SLICE, ALL, 0, "%0: T[5,9], %1: T[2,3], %2: s32[], %3: s32[]", "T[5,9]", " %0, %1, %2, %3"},
    {TS_OP_PUT_SLICE, INTEGERS, 0, "%0: f32[5,9], %1: f32[2,3], %2: T[], %3: T[]", "f32[5,9]", " %0, %1, %2, %3"},
    {TS_OP_PAD, ALL, 0, "%0: T[2,3], %1: T[]", "T[1,7]", " %0, %1 {low = [-1,2], high = [0,0], interior = [0,1]}"},
    {TS_OP_CONCATENATE, ALL, 0, "%0: T[2,3], %1: T[2,1], %2: T[2,4]", "T[2,8]", " %0, %1, %2 {axis = 1}"},
    {TS_OP_TAKE, ALL, 0, "%0: T[4,5], %1: s64[3]", "T[4,3]", " %0, %1 {axis = 1}"},
    {TS_OP_TAKE, INTEGERS, 0, "%0: f32[4,5], %1: T[3]", "f32[3,5]", " %0, %1 {axis = 0}"},
    {TS_OP_TAKE_ALONG, ALL, 0, "%0: T[4,5], %1: s64[4,3]", "T[4,3]", " %0, %1 {axis = 1}"},
    {TS_OP_TAKE_ALONG, INTEGERS, 0, "%0: f32[4,5], %1: T[3,5]", "f32[3,5]", " %0, %1 {axis = 0}"},
    {TS_OP_INDEXED_ADD, INTEGERS, 0, "%0: T[5,4], %1: s64[3,1], %2: T[3,4]", "T[5,4]", " %0, %1, %2 {axes = [0]}"},
    {TS_OP_INDEXED_PUT, ALL, 0, "%0: T[5,4], %1: s64[3,1], %2: T[3,5]", "T[5,4]", " %0, %1, %2 {axes = [1]}"},
    {TS_OP_REDUCE, REALS, 0, "%0: T[5,3], %1: T[]", "T[3]", " %0, %1" COMBINE("max")},
    {TS_OP_REDUCE, INTEGERS, 0, "%0: T[5,3], %1: T[]", "T[3]", " %0, %1" COMBINE("add")},
    {TS_OP_REDUCE, INTEGERS, 0, "%0: T[5,3], %1: T[]", "T[3]", " %0, %1" COMBINE("bitwise_and")},
    {TS_OP_REDUCE, INTEGERS, 0, "%0: T[5,3], %1: T[]", "T[3]", " %0, %1" COMBINE("bitwise_or")},
    {TS_OP_REDUCE, INTEGERS, 0, "%0: T[5,3], %1: T[]", "T[3]", " %0, %1" COMBINE("bitwise_xor")},
    {TS_OP_ARGMAX, ALL, 0, "%0: T[4,9]", "s64[4]", " %0 {axis = 1, high = false}"},
    {TS_OP_ARGMAX, INTEGERS, 0, "%0: f32[4,9]", "T[9]", " %0 {axis = 0, high = true}"},
    {TS_OP_ARGMIN, ALL, 0, "%0: T[4,9]", "s32[]", " %0 {axis = -1, high = true}"},
    {TS_OP_ARGMIN, INTEGERS, 0, "%0: f32[4,9]", "T[4]", " %0 {axis = 1, high = false}"},
    {TS_OP_SORT, ALL, 0, "%0: T[4,9]", "T[4,9]", " %0 {axis = 1, descending = false}"},
    {TS_OP_SORT, ALL, 0, "%0: T[9,4]", "T[9,4]", " %0 {axis = 0, descending = true}"},
    {TS_OP_ARGSORT, ALL, 0, "%0: T[4,9]", "s32[4,9]", " %0 {axis = 1, descending = true}"},
    {TS_OP_ARGSORT, INTEGERS, 0, "%0: f32[9,4]", "T[9,4]", " %0 {axis = 0, descending = false}"},
    {TS_OP_TOP_K, ALL, 0, "%0: T[4,9]", "T[4,3], s32[4,3]", " %0 {k = 3}"},
    {TS_OP_DOT, ALL, 0, "%0: T[2,3,5], %1: T[2,5,4]", "T[2,3,4]",
     " %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]}"},
    {TS_OP_DOT, ALL, 0, "%0: T[3,5], %1: T[4,5,3]", "T[4]",
     " %0, %1 {lhs_contract = [0,1], lhs_batch = [], rhs_contract = [2,1], rhs_batch = []}"},
    {TS_OP_WIDE_DOT, INTEGERS, 0, "%0: s8[3,5], %1: T[4,5]", "s64[3,4]",
     " %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], rhs_batch = []}"},
    {TS_OP_SCALED_DOT, WIDE_FLOATS, 0, "%0: s8[3,5], %1: T[4,5], %2: T[3]", "T[3,4]",
     " %0, %1, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], rhs_batch = [], operand = 0, axes = [0]}"},
    {TS_OP_QUANTIZED_DOT, WEIGHED, 0, "%0: T[3,20], %1: u32[1,3,64], %2: f16[1,2,64]", "T[3,5]",
     " %0, %1, %2 {bits = 4, group = 16, form = 0, cols = 5}"},
    {TS_OP_QUANTIZED_DOT, WEIGHED, 0, "%0: T[3,20], %1: u32[2,5,64], %2: f32[2,2,64], %3: f32[2,2,64]", "T[3,70]",
     " %0, %1, %2, %3 {bits = 8, group = 16, form = 2, cols = 70}"},
    {TS_OP_CONV, FLOATS | COMPLEX, 0, "%0: T[2,5,6,4], %1: T[2,3,2,6]", "T[2,3,5,6]",
     " %0, %1 {strides = [2,1], low = [1,0], high = [0,1], input_dilation = [1,1], kernel_dilation = [1,1], groups = "
     "2}"},
    {TS_OP_REAL, COMPLEX, 0, "%0: T[40]", "P[40]", " %0"},
    {TS_OP_IMAG, COMPLEX, 0, "%0: T[40]", "P[40]", " %0"},
    {TS_OP_COMPLEX, WIDE_FLOATS, 0, "%0: T[40], %1: T[40]", "C[40]", " %0, %1"},
    {TS_OP_CHOLESKY, FLOATS | COMPLEX, 0, "%0: T[2,4,4]", "T[2,4,4]", " %0"},
    {TS_OP_TRIANGULAR_SOLVE, FLOATS | COMPLEX, 0, "%0: T[2,4,4], %1: T[2,4,3]", "T[2,4,3]",
     " %0, %1 {left = true, lower = true, transpose = false, unit = false}"},
    {TS_OP_TRIANGULAR_SOLVE, FLOATS | COMPLEX, 0, "%0: T[4,4], %1: T[3,4]", "T[3,4]",
     " %0, %1 {left = false, lower = false, transpose = true, unit = true}"},
    {TS_OP_FFT, COMPLEX, 0, "%0: T[3,12]", "T[3,10]", " %0 {axis = 1, length = 10}"},
    {TS_OP_FFT, WIDE_FLOATS, 0, "%0: T[5,3]", "C[8,3]", " %0 {axis = 0, length = 8}"},
    {TS_OP_IFFT, COMPLEX, 0, "%0: T[3,12]", "T[3,12]", " %0 {axis = 1, length = 12}"},
    {TS_OP_RFFT, WIDE_FLOATS, 0, "%0: T[3,12]", "C[3,7]", " %0 {axis = 1, length = 12}"},
    {TS_OP_IRFFT, COMPLEX, 0, "%0: T[3,7]", "P[3,12]", " %0 {axis = 1, length = 12}"},
    {TS_OP_WHILE, ALL, 0, "%0: s32[], %1: T[3]", "s32[], T[3]",
     " %0, %1 {\n condition(%10: s32[], %11: T[3]) {\n %12 = constant 2 : s32[]\n %13 = less %10, %12 : u8[]\n"
     " return %13\n }\n body(%14: s32[], %15: T[3]) {\n %16 = constant 2 : s32[]\n %17 = reverse %15 {axes = [0]} : "
     "T[3]\n"
     " return %16, %17\n }\n}"},
    {TS_OP_COND, ALL, 0, "%0: u8[], %1: T[3]", "T[3]",
     " %0, %1 {\n true" TWICE " false(%12: T[3]) {\n return %12\n }\n}"},
    {TS_OP_CALL, ALL, 0, "%0: T[3]", "T[3]", " %0 {\n body" TWICE "}"},
    {TS_OP_FUSION, ALL, 0, "%0: T[3]", "T[3]", " %0 {kind = 1} {\n body" TWICE "}"},
};

/* Ops whose class defines their operands. False for ops with recipes of their own. */
static bool recipe_of_class(ts_opcode code, recipe *out) {
  const char *one = "%0: T[40]", *two = "%0: T[40], %1: T[40]", *line = "%0: T[3,5]";
  switch (ts_op_get_class(code)) {
  case TS_CLASS_UNARY_FLOAT: *out = (recipe){code, FLOATS | COMPLEX, 0, one, "T[40]", " %0"}; return true;
  case TS_CLASS_UNARY: *out = (recipe){code, ALL, 0, one, code == TS_OP_ABS ? "P[40]" : "T[40]", " %0"}; return true;
  case TS_CLASS_UNARY_INTEGER: *out = (recipe){code, INTEGERS, 0, one, "T[40]", " %0"}; return true;
  case TS_CLASS_PREDICATE: *out = (recipe){code, ALL, 0, one, "u8[40]", " %0"}; return true;
  case TS_CLASS_BINARY: *out = (recipe){code, ALL, 0, two, "T[40]", " %0, %1"}; return true;
  case TS_CLASS_BINARY_FLOAT: *out = (recipe){code, FLOATS | COMPLEX, 0, two, "T[40]", " %0, %1"}; return true;
  case TS_CLASS_BINARY_INTEGER: *out = (recipe){code, INTEGERS, 0, two, "T[40]", " %0, %1"}; return true;
  case TS_CLASS_COMPARE: *out = (recipe){code, ALL, 0, two, "u8[40]", " %0, %1"}; return true;
  case TS_CLASS_SCAN: *out = (recipe){code, ALL, 0, line, "T[3,5]", " %0 {axis = 1, reverse = true}"}; return true;
  case TS_CLASS_WINDOW:
    if (code == TS_OP_WINDOW_SCATTER_MAX || code == TS_OP_WINDOW_SCATTER_MIN)
      *out = (recipe){
          code,     ALL,
          0,        "%0: T[3,6], %1: T[3,3], %2: T[]",
          "T[3,6]", " %0, %1, %2 {sizes = [1,2], strides = [1,2], low = [0,0], high = [0,0], dilation = [1,1]}"};
    else
      *out =
          (recipe){code, ALL,      0,
                   line, "T[2,3]", " %0 {sizes = [2,2], strides = [1,2], low = [0,1], high = [0,0], dilation = [1,1]}"};
    return true;
  case TS_CLASS_REDUCE:
    if (code == TS_OP_REDUCE) return false;
    bool truth = code == TS_OP_REDUCE_ALL || code == TS_OP_REDUCE_ANY;
    *out = (recipe){code, ALL, 0, line, truth ? "u8[5]" : "T[5]", " %0 {axes = [0]}"};
    return true;
  default: return false;
  }
}

static bool takes(types set, ts_dtype type, ts_dtype other) {
  if (!ts_dtype_supported(type)) return false;
  if (set == SAME_SIZE) return !ts_dtype_is_complex(type) && ts_dtype_bits(type) == ts_dtype_bits(other);
  if (set & WEIGHED) return type == TS_F32 || type == TS_F16 || type == TS_BF16;
  if (set & WIDE_FLOATS && (type == TS_F32 || type == TS_F64)) return true;
  if (ts_dtype_is_complex(type)) return set & COMPLEX;
  return set & (ts_dtype_is_float(type) ? FLOATS : INTEGERS);
}

/* Capital letters occur for types alone. */
static void substitute(ts_text *out, const char *text, ts_dtype type, ts_dtype other) {
  for (; *text; text++) {
    switch (*text) {
    case 'T': ts_text_append(out, ts_dtype_name(type)); break;
    case 'U': ts_text_append(out, ts_dtype_name(other)); break;
    case 'P': ts_text_append(out, ts_dtype_name(ts_dtype_part(type))); break;
    case 'C': ts_text_append(out, ts_dtype_name(ts_dtype_to_complex(type))); break;
    default: ts_text_append_n(out, text, 1);
    }
  }
}

/* Two elements: all bits 0, and the bits of 1 in the first byte. */
static void write_literal(ts_text *out, ts_dtype type) {
  ts_text_format(out, "graph @main() -> (%s[2]) {\n%%9 = literal \"", ts_dtype_name(type));
  for (size_t i = 0; i < 2 * ts_dtype_size(type); i++) ts_text_append(out, i == ts_dtype_size(type) ? "01" : "00");
  ts_text_format(out, "\" : %s[2]\nreturn %%9\n}\n", ts_dtype_name(type));
}

static void write_recipe(ts_text *out, const recipe *r, ts_dtype type, ts_dtype other) {
  bool two = r->code == TS_OP_WHILE || r->code == TS_OP_TOP_K;
  ts_text_append(out, "graph @main(");
  substitute(out, r->params, type, other);
  ts_text_append(out, ") -> (");
  substitute(out, r->result, type, other);
  ts_text_format(out, ") {\n%%9%s = %s", two ? ", %8" : "", ts_op_name(r->code));
  substitute(out, r->rest, type, other);
  ts_text_append(out, " : ");
  substitute(out, r->result, type, other);
  ts_text_format(out, "\nreturn %%9%s\n}\n", two ? ", %8" : "");
}

typedef struct visitor {
  ts_status (*visit)(void *context, const char *name, ts_graph *graph);
  void *context;
  int number;
} visitor;

static ts_status visit_one(visitor *v, const recipe *r, ts_dtype type, ts_dtype other) {
  char name[128];
  ts_text text = {0};
  ts_graph *graph = NULL;
  snprintf(name, sizeof name, "op-%s-%s-%03d", ts_op_name(r->code), ts_dtype_name(type), v->number++);
  if (r->code == TS_OP_LITERAL)
    write_literal(&text, type);
  else
    write_recipe(&text, r, type, other);
  ts_status status = text.failed ? ts_error_no_memory() : ts_graph_parse(text.data, text.length, &graph);
  if (!status) status = v->visit(v->context, name, graph); /* takes the graph */
  ts_text_deinit(&text);
  return ts_error_context(status, "%s", name);
}

static ts_status visit_types(visitor *v, const recipe *r) {
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    ts_dtype type = (ts_dtype)t;
    if (!takes(r->types, type, type) || (ts_dtype_is_complex(type) && !ts_op_takes_complex(r->code))) continue;
    if (!r->others) TS_TRY(visit_one(v, r, type, type));
    for (int u = 0; u < TS_DTYPE_COUNT && r->others; u++)
      if (takes(r->others, (ts_dtype)u, type)) TS_TRY(visit_one(v, r, type, (ts_dtype)u));
  }
  return TS_SUCCESS;
}

/* Ops without a program of one op: StableHLO has no form of some (test/golden/ir/fails_unsupported.ts), collectives
 * need a mesh, and a custom call its plugin. Every program has parameters. */
static bool has_no_program(ts_opcode code) {
  switch (code) {
  case TS_OP_PARAMETER:
  case TS_OP_CALLBACK:
  case TS_OP_CUSTOM_CALL:
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU:
  case TS_OP_QR:
  case TS_OP_EIGH:
  case TS_OP_SVD: return true;
  default: return ts_op_get_class(code) == TS_CLASS_COLLECTIVE;
  }
}

static ts_status visit_op(visitor *v, ts_opcode code) {
  recipe by_class;
  bool found = recipe_of_class(code, &by_class);
  if (found) TS_TRY(visit_types(v, &by_class));
  for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
    if (recipes[i].code != code) continue;
    found = true;
    TS_TRY(visit_types(v, &recipes[i]));
  }
  return found ? TS_SUCCESS : ts_error(TS_UNIMPLEMENTED, "no program has op %s", ts_op_name(code));
}

ts_status xla_visit_ops(ts_status (*visit)(void *context, const char *name, ts_graph *graph), void *context) {
  visitor v = {visit, context, 0};
  for (int code = 0; code < TS_OP_COUNT; code++)
    if (!has_no_program((ts_opcode)code)) TS_TRY(visit_op(&v, (ts_opcode)code));
  return TS_SUCCESS;
}
