/* The kernel that compile threads begin with. What it is made of, LLVM has been through once when somebody waits: the
 * pages of its code and of its heap are there, and so are the tables that it makes when it first needs them. */
#include "jit/jit_internal.h"
#include "jit/kernel.h"

/* Of everything that most kernels have something: rows, reductions, vector math with its constants, a value for each
 * column, comparisons, a number. */
static const ts_kernel_operand inputs[] = {
    {.dtype = TS_F32, .stride = {TS_STRIDE_ANY, TS_STRIDE_UNIT}},
    {.dtype = TS_F32, .stride = {TS_STRIDE_ZERO, TS_STRIDE_UNIT}},
};
static const ts_dtype scalars[] = {TS_F32};
static const ts_kernel_node nodes[] = {
    {.kind = TS_NODE_LOAD, .dtype = TS_F32, .slot = 0, .a = -1, .b = -1, .c = -1},
    {.kind = TS_NODE_LOAD, .dtype = TS_F32, .slot = 1, .a = -1, .b = -1, .c = -1},
    {.kind = TS_NODE_SCALAR, .dtype = TS_F32, .slot = 0, .a = -1, .b = -1, .c = -1},
    {.kind = TS_NODE_REDUCE, .op = TS_OP_REDUCE_MAX, .dtype = TS_F32, .a = 0, .b = -1, .c = -1},
    {.kind = TS_NODE_OP, .op = TS_OP_SUBTRACT, .dtype = TS_F32, .a = 0, .b = 3, .c = -1},
    {.kind = TS_NODE_OP, .op = TS_OP_EXP, .dtype = TS_F32, .a = 4, .b = -1, .c = -1},
    {.kind = TS_NODE_REDUCE, .op = TS_OP_REDUCE_SUM, .dtype = TS_F32, .a = 5, .b = -1, .c = -1},
    {.kind = TS_NODE_OP, .op = TS_OP_DIVIDE, .dtype = TS_F32, .a = 5, .b = 6, .c = -1},
    {.kind = TS_NODE_OP, .op = TS_OP_MULTIPLY, .dtype = TS_F32, .a = 7, .b = 1, .c = -1},
    {.kind = TS_NODE_OP, .op = TS_OP_MAX, .dtype = TS_F32, .a = 8, .b = 2, .c = -1},
};
static const ts_kernel_output outputs[] = {
    {.operand = {.dtype = TS_F32, .stride = {TS_STRIDE_ANY, TS_STRIDE_UNIT}}, .node = 9},
};
static const ts_kernel_desc kernel = {.kind = TS_KERNEL_ROW,
                                      .rank = 2,
                                      .input_count = 2,
                                      .output_count = 1,
                                      .scalar_count = 1,
                                      .node_count = sizeof(nodes) / sizeof(*nodes),
                                      .inputs = inputs,
                                      .outputs = outputs,
                                      .scalars = scalars,
                                      .nodes = nodes};

ts_status ts_compiler_warm_up(ts_compiler *compiler) {
  ts_kernel_source source;
  ts_object object;
  char *text;
  TS_TRY(ts_kernel_make_source(&kernel, &text, &source));
  ts_status status = ts_compiler_run(compiler, &source, "tessera_warm_up", &object);
  ts_free(text);
  if (!status) ts_free(object.data);
  return status;
}
