#include "kernel_case.h"

#include "jit/session/target.h"
#include "kernel/ref/ref_internal.h"
#include "testing.h"
#include "tool/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- parsing ---- */

static ts_dtype parse_type(const char *name) {
  ts_dtype type = ts_dtype_from_name(name, strlen(name));
  ck_assert_msg(type != TS_DTYPE_NONE, "no type %s", name);
  return type;
}

/* Classes, and after commas the steps of those that are NEAR. */
static void parse_classes(const char *text, ts_kernel_operand *o) {
  const char *steps = strchr(text, ',');
  uint8_t *out = o->stride;
  for (int i = 0; text[i] && text[i] != ','; i++) {
    out[i] = text[i] == '0'   ? TS_STRIDE_ZERO
             : text[i] == '1' ? TS_STRIDE_UNIT
             : text[i] == '-' ? TS_STRIDE_DOWN
             : text[i] == 'g' ? TS_STRIDE_GROUP
             : text[i] == 'G' ? TS_STRIDE_GROUP_DOWN
             : text[i] == 't' ? TS_STRIDE_TURN
             : text[i] == 'n' ? TS_STRIDE_NEAR
                              : TS_STRIDE_ANY;
    if (text[i] != 'n') continue;
    ck_assert_ptr_nonnull(steps);
    o->step[i] = (int8_t)atoi(steps + 1);
    steps = strchr(steps + 1, ',');
  }
}

static void parse_op(ts_kernel_node *n, const char *op, const int *v, int count) {
  size_t length = strlen(op);
  n->b = count > 1 ? v[1] : -1, n->c = count > 2 ? v[2] : -1, n->a = v[0];
  n->kind = TS_NODE_OP;
  bool high = length > 5 && !strcmp(op + length - 5, "_high"), low = length > 4 && !strcmp(op + length - 4, "_low");
  if (high || low) {
    n->kind = TS_NODE_ARG, n->b = high;
    length -= high ? 5 : 4;
  } else if (!strncmp(op, "reduce_", 7)) {
    n->kind = TS_NODE_REDUCE;
  }
  n->op = ts_op_from_name(op, length);
  ck_assert_msg(n->op != TS_OP_COUNT, "no op %s", op);
}

static void parse_node(ts_kernel_case *c, const char *line) {
  char type[16], word[64];
  int id, v[3] = {-1, -1, -1}, at, limit, step, start = 0;
  ck_assert_msg(sscanf(line, "%d %15s %63s%n", &id, type, word, &start) == 3, "bad line %s", line);
  ck_assert_int_eq(id, c->desc.node_count);
  ts_kernel_node *n = &c->nodes[c->desc.node_count++];
  int count = sscanf(line + start, "%d %d %d", &v[0], &v[1], &v[2]);
  *n = (ts_kernel_node){.dtype = parse_type(type), .slot = v[0], .a = -1, .b = -1, .c = -1};
  if (!strcmp(word, "load")) {
    n->kind = TS_NODE_LOAD;
  } else if (!strcmp(word, "scalar")) {
    n->kind = TS_NODE_SCALAR;
  } else if (!strcmp(word, "index")) {
    n->kind = TS_NODE_INDEX;
  } else if (!strcmp(word, "gather")) {
    ck_assert_int_eq(sscanf(line + start, "%d at %d limit %d step %d", &n->slot, &at, &limit, &step), 4);
    n->kind = TS_NODE_GATHER, n->a = at, n->b = limit, n->c = step;
  } else {
    n->slot = 0;
    parse_op(n, word, v, count);
  }
}

static void parse_line(ts_kernel_case *c, const char *line) {
  char type[16], classes[40];
  int node, rest = 0;
  if (sscanf(line, "index %39s", classes) == 1) {
    ts_kernel_operand *o = &c->indices[c->desc.index_count++];
    o->dtype = TS_S64;
    parse_classes(classes, o);
  } else if (sscanf(line, "in %15s %39s", type, classes) == 2) {
    ts_kernel_operand *o = &c->inputs[c->desc.input_count++];
    o->dtype = parse_type(type);
    parse_classes(classes, o);
  } else if (sscanf(line, "out %15s %39s %d%n", type, classes, &node, &rest) == 3) {
    ts_kernel_output *o = &c->outputs[c->desc.output_count++];
    *o = (ts_kernel_output){.operand.dtype = parse_type(type), .node = node, .stream = !strcmp(line + rest, " stream")};
    parse_classes(classes, &o->operand);
  } else if (sscanf(line, "scalar %15s", type) == 1) {
    c->scalars[c->desc.scalar_count++] = parse_type(type);
  } else {
    parse_node(c, line);
  }
}

/* "by 3 4 rows 16": the extents of a row's points, and the least number of rows. */
static void parse_rows(const char *line, ts_kernel_desc *d) {
  const char *by = strstr(line, " by "), *rows = strstr(line, " rows ");
  if (!rows) return;
  d->rows = (uint8_t)atoi(rows + 6);
  for (const char *at = by ? by + 3 : rows; at < rows; at = strchr(at + 1, ' ')) {
    ck_assert_int_lt(d->joined, TS_JOINED_DIMS);
    d->few[d->joined++] = (uint8_t)atoi(at + 1);
  }
}

/* "joined 1 lined 2" of a TILE. */
static void parse_dims(const char *line, ts_kernel_desc *d) {
  const char *joined = strstr(line, " joined "), *lined = strstr(line, " lined ");
  if (joined) d->joined = (uint8_t)atoi(joined + 8);
  if (lined) d->lined = (uint8_t)atoi(lined + 7);
}

void ts_case_parse(const char *text, ts_kernel_case *out) {
  memset(out, 0, sizeof(*out));
  static const char *columns[] = {NULL, " wide", " low", " dense"};
  char kind[16], line[128];
  int rank, members = 0;
  ck_assert_int_ge(sscanf(text, "%15s %d of %d", kind, &rank, &members), 2);
  out->desc.members = members;
  out->desc.rank = rank;
  snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
  for (int i = TS_COLUMNS_WIDE; i <= TS_COLUMNS_DENSE; i++)
    if (strstr(line, columns[i])) out->desc.columns = (uint8_t)i;
  if (strstr(line, " apart")) out->desc.columns = TS_COLUMNS_APART;
  if (strstr(line, " blocks")) out->desc.columns = TS_COLUMNS_BLOCKS;
  out->desc.long_pieces = strstr(line, " long_pieces");
  parse_rows(line, &out->desc);
  parse_dims(line, &out->desc);
  for (ts_kernel_kind i = TS_KERNEL_MAP; i <= TS_KERNEL_JOINED; i++)
    if (!strcmp(kind, ts_kernel_kind_name(i))) out->desc.kind = i;
  for (text = strchr(text, '\n'); text && text[1]; text = strchr(text, '\n')) {
    size_t length = strcspn(++text, "\n");
    ck_assert_uint_lt(length, sizeof(line));
    snprintf(line, sizeof(line), "%.*s", (int)length, text);
    if (length) parse_line(out, line);
  }
  out->desc.inputs = out->inputs, out->desc.outputs = out->outputs, out->desc.indices = out->indices;
  out->desc.scalars = out->scalars, out->desc.nodes = out->nodes;
}

ts_kernel *ts_case_compile(const ts_kernel_case *c) {
  char *text;
  ts_kernel_source source;
  ts_kernel *kernel = NULL;
  ts_status status = ts_kernel_make_source(&c->desc, &text, &source);
  ck_assert_msg(!status, "%s", ts_status_message(status));
  status = ts_jit_get_kernels(&source, 1, &kernel);
  ck_assert_msg(!status, "%s\n%s", ts_status_message(status), text);
  ts_free(text);
  return kernel;
}

/* ---- operands in memory ---- */

typedef struct memory {
  char *mapping, *data; /* data ends where a page begins that may not be touched */
  size_t mapped, bytes;
} memory;

typedef struct arguments {
  int64_t words[TS_CASE_MAX * (TS_KERNEL_MAX_RANK + 2)];
  memory operands[TS_CASE_MAX];
} arguments;

static uint64_t random_bits(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

static ts_scalar random_value(ts_dtype type, const ts_case_run *run, uint64_t *state) {
  static const double specials[] = {0,    -0.0,      1,          -1,        2,   -2,    0.5,
                                    -0.5, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 3.5, 1e-41, -1e30};
  uint64_t r = random_bits(state);
  if (ts_dtype_is_integer(type)) {
    if (run->index_range) return ts_scalar_from_s64(type, (int64_t)(r % (uint64_t)(run->index_range + 4)) - 2);
    if (!run->special) return ts_scalar_from_s64(type, (int64_t)(r % 200) - 100);
    if (r % 4 == 0) return ts_scalar_from_s64(type, (int64_t)(r >> 8) % 9 - 4);
    if (r % 4 == 1) return r & 4 ? ts_dtype_lowest(type) : ts_dtype_highest(type);
    return ts_scalar_from_u64(type, r >> 7);
  }
  if (run->special && r % 3 == 0) return ts_scalar_from_f64(type, specials[(r >> 8) % 14]);
  double unit = (double)(r >> 11) * 0x1p-53, wide = run->special && r % 3 == 1 ? 1000 : 3;
  return ts_scalar_from_f64(type, (unit - 0.5) * wide);
}

static memory allocate(size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
  memory m = {.mapped = whole + page, .bytes = bytes};
  m.mapping = mmap(NULL, m.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert(m.mapping != MAP_FAILED);
  ck_assert_int_eq(mprotect(m.mapping + whole, page, PROT_NONE), 0);
  m.data = m.mapping + whole - bytes;
  return m;
}

static int64_t unit_of(const ts_kernel_desc *d, const ts_kernel_operand *o, int32_t dim) {
  return (int64_t)ts_dtype_size(o->dtype) * ts_kernel_known_stride(d, o->stride[dim]);
}

/* Of a TILE: the dims that go on where the dim after them ends. */
static bool follows(const ts_kernel_desc *d, const ts_kernel_operand *o, int32_t dim) {
  const int32_t row = ts_kernel_row_dim(d), last = d->rank - 1;
  if (d->kind != TS_KERNEL_TILE) return false;
  if (o->stride[last] == TS_STRIDE_ANY && o->stride[row - 1] == TS_STRIDE_UNIT)
    return dim >= ts_kernel_line_dim(d) && dim < row - 1;
  return dim >= row && dim < last;
}

/* Lays an operand out: its unit dim first, then the others from the inside out with a gap between. Some
 * strides are negative. Returns the bytes, `start` is where index 0 lies. */
static size_t lay_out(const ts_kernel_desc *d, const ts_kernel_operand *o, const ts_case_run *run, int64_t *strides,
                      int64_t *start) {
  const int32_t rank = d->rank;
  const int64_t *extents = run->extents;
  const uint64_t seed = run->seed;
  int64_t size = (int64_t)ts_dtype_size(o->dtype), span = size;
  *start = 0;
  for (int32_t i = rank - 1; i >= 0; i--) {
    strides[i] = unit_of(d, o, i);
    if (o->stride[i] == TS_STRIDE_TURN) span *= d->members;
    if (o->stride[i] == TS_STRIDE_NEAR) {
      strides[i] = o->step[i] * size;
      span += (strides[i] < 0 ? -strides[i] : strides[i]) * (extents[i] ? extents[i] - 1 : 0);
    } else if (strides[i]) {
      span *= extents[i] ? extents[i] : 1;
    }
    if (strides[i] < 0 && extents[i]) *start += -strides[i] * (extents[i] - 1);
  }
  for (int32_t i = rank - 1; i >= 0; i--) {
    if (o->stride[i] != TS_STRIDE_ANY || !follows(d, o, i)) continue;
    strides[i] = span;
    span *= extents[i] ? extents[i] : 1;
  }
  for (int32_t i = rank - 1; i >= 0; i--) {
    if (o->stride[i] != TS_STRIDE_ANY || follows(d, o, i)) continue;
    span += size * (int64_t)((seed >> i) % 3);
    strides[i] = span;
    span *= extents[i] ? extents[i] : 1;
    if (i == rank - 1 && (seed & 1) && extents[i]) {
      *start += strides[i] * (extents[i] - 1);
      strides[i] = -strides[i];
    }
  }
  return (size_t)span;
}

static const ts_kernel_operand *operand_of(const ts_kernel_desc *d, int32_t i) {
  if (i < d->input_count) return &d->inputs[i];
  i -= d->input_count;
  return i < d->output_count ? &d->outputs[i].operand : &d->indices[i - d->output_count];
}

static void fill(memory *m, ts_dtype type, const ts_case_run *run, uint64_t *state) {
  size_t size = ts_dtype_size(type);
  for (size_t i = 0; i + size <= m->bytes; i += size)
    ts_scalar_store(type, random_value(type, run, state), m->data + i);
}

static void make_index(const ts_kernel_desc *d, int32_t i, arguments *a, uint64_t *state) {
  int64_t *word = &a->words[ts_kernel_arg_operand(d, i)];
  for (int32_t k = 0; k <= d->rank; k++) word[k] = (int64_t)(random_bits(state) % 7) - 3;
}

/* A table has `index_range` entries, one behind the other. */
static size_t table_entries(const ts_kernel_desc *d, int32_t input, const ts_case_run *run, size_t entry,
                            arguments *a) {
  size_t entries = 1;
  for (int32_t i = 0; i < d->node_count; i++) {
    const ts_kernel_node *n = &d->nodes[i];
    if (n->kind != TS_NODE_GATHER || n->slot != input) continue;
    entries = (size_t)run->index_range;
    a->words[ts_kernel_arg_scalar(d, n->b)] = run->index_range;
    a->words[ts_kernel_arg_scalar(d, n->c)] = (int64_t)entry;
  }
  return entries;
}

/* A stream begins at a cache line. */
static bool streams(const ts_kernel_desc *d, int32_t output) {
  return output >= 0 && output < d->output_count && d->outputs[output].stream;
}

static void make_arguments(const ts_kernel_desc *d, const ts_case_run *run, arguments *a) {
  uint64_t state = run->seed;
  memset(a, 0, sizeof(*a));
  for (int32_t i = 0; i < d->rank; i++) a->words[i] = run->extents[i];
  for (int32_t i = 0; i < d->scalar_count; i++) {
    a->words[ts_kernel_arg_scalar(d, i)] = random_value(d->scalars[i], run, &state).s64;
  }
  for (int32_t i = 0; i < d->input_count + d->output_count; i++) {
    int64_t *word = &a->words[ts_kernel_arg_operand(d, i)], start;
    const ts_kernel_operand *o = operand_of(d, i);
    if (run->in_place && i == d->input_count) {
      memcpy(word, &a->words[ts_kernel_arg_operand(d, 0)], sizeof(*word) * (size_t)(d->rank + 1));
      continue;
    }
    size_t bytes = lay_out(d, o, run, word + 1, &start);
    if (i < d->input_count) bytes *= table_entries(d, i, run, bytes, a);
    if (streams(d, i - d->input_count)) bytes = (bytes + 63) / 64 * 64;
    a->operands[i] = allocate(bytes);
    word[0] = (int64_t)(intptr_t)(a->operands[i].data + start);
    fill(&a->operands[i], o->dtype, run, &state);
  }
  for (int32_t i = 0; i < d->index_count; i++) make_index(d, d->input_count + d->output_count + i, a, &state);
}

static void free_arguments(arguments *a) {
  for (int i = 0; i < TS_CASE_MAX; i++) {
    if (a->operands[i].mapping) munmap(a->operands[i].mapping, a->operands[i].mapped);
  }
}

/* ---- the interpreter ---- */

typedef struct interpreter {
  const ts_kernel_desc *d;
  const arguments *a;
  ts_scalar reduced[TS_CASE_MAX]; /* results of reductions, and their outer index */
  int64_t key[TS_CASE_MAX];
  memory **actual, *copies; /* of outputs: where the kernel stores, and where we do */
} interpreter;

static int64_t stride_of(const interpreter *t, int32_t operand, int32_t dim) {
  const ts_kernel_operand *o = operand_of(t->d, operand);
  bool is_index = operand >= t->d->input_count + t->d->output_count;
  if (o->stride[dim] == TS_STRIDE_ZERO) return 0;
  if (o->stride[dim] == TS_STRIDE_UNIT && is_index) return 1;
  if (unit_of(t->d, o, dim) != 0) return unit_of(t->d, o, dim);
  return t->a->words[ts_kernel_arg_operand(t->d, operand) + 1 + dim];
}

static int64_t place_of(const interpreter *t, int32_t operand, const int64_t *index) {
  int64_t place = t->a->words[ts_kernel_arg_operand(t->d, operand)];
  for (int32_t i = 0; i < t->d->rank; i++) {
    const ts_kernel_operand *o = operand_of(t->d, operand);
    if (o->stride[i] == TS_STRIDE_TURN)
      place += index[i] % t->d->members * (int64_t)ts_dtype_size(o->dtype);
    else
      place += index[i] * stride_of(t, operand, i);
  }
  return place;
}

static ts_scalar eval(interpreter *t, int32_t id, const int64_t *index);

static int32_t reduced_dim(const ts_kernel_desc *d) {
  return d->kind == TS_KERNEL_COL || d->kind == TS_KERNEL_INTERLEAVED ? d->rank - 2 : d->rank - 1;
}

/* The columns that take turns in a row. */
static int64_t columns_of(const ts_kernel_desc *d) {
  return d->kind == TS_KERNEL_ROW && d->members > 0 ? d->members : 1;
}

static bool is_apart(const ts_kernel_desc *d) { return ts_kernel_has_pieces(d); }

/* Element k of the current row. */
static void set_element(const interpreter *t, int64_t *index, int32_t dim, int64_t k) {
  index[dim] = columns_of(t->d) == 1 ? k : k * columns_of(t->d) + index[dim] % columns_of(t->d);
  if (!is_apart(t->d)) return;
  if (t->d->columns == TS_COLUMNS_BLOCKS) k += index[dim - 2] * TS_REDUCE_BLOCK;
  index[dim] = k % t->a->words[dim];
  index[dim - 1] = k / t->a->words[dim];
}

static int64_t row_length(const interpreter *t, const int64_t *index, int32_t dim) {
  const int64_t length = t->a->words[dim] / columns_of(t->d) * (is_apart(t->d) ? t->a->words[dim - 1] : 1);
  if (t->d->columns != TS_COLUMNS_BLOCKS) return length;
  const int64_t rest = length - index[dim - 2] * TS_REDUCE_BLOCK;
  return rest < TS_REDUCE_BLOCK ? rest : TS_REDUCE_BLOCK;
}

static ts_opcode combiner(ts_opcode op) {
  static const ts_opcode ops[] = {TS_OP_ADD, TS_OP_MULTIPLY, TS_OP_MAX, TS_OP_MIN, TS_OP_AND, TS_OP_OR};
  return ops[op - TS_OP_REDUCE_SUM];
}

static ts_scalar identity(ts_opcode op, ts_dtype type) {
  if (op == TS_OP_REDUCE_MAX) return ts_dtype_lowest(type);
  if (op == TS_OP_REDUCE_MIN) return ts_dtype_highest(type);
  return ts_scalar_from_s64(type, op == TS_OP_REDUCE_PRODUCT || op == TS_OP_REDUCE_ALL);
}

/* tensor/reduce_tree.h, to the letter, for one block. */
static ts_scalar reduce(interpreter *t, const ts_kernel_node *n, int64_t *index) {
  int32_t dim = reduced_dim(t->d);
  ts_dtype from = t->d->nodes[n->a].dtype, type = from == TS_F16 || from == TS_BF16 ? TS_F32 : from;
  bool logical = n->op == TS_OP_REDUCE_ALL || n->op == TS_OP_REDUCE_ANY;
  if (logical) type = TS_U8;
  ts_scalar lanes[TS_REDUCE_LANES];
  for (int l = 0; l < TS_REDUCE_LANES; l++) lanes[l] = identity(n->op, type);
  for (int64_t k = 0; k < row_length(t, index, dim); k++) {
    set_element(t, index, dim, k);
    ts_scalar x = eval(t, n->a, index);
    x = logical ? ts_scalar_from_s64(TS_U8, ts_ref_truth(from, x)) : ts_scalar_convert(from, x, type);
    lanes[k % TS_REDUCE_LANES] = ts_ref_binary(combiner(n->op), type, lanes[k % TS_REDUCE_LANES], x);
  }
  for (int h = TS_REDUCE_LANES / 2; h > 0; h /= 2) {
    for (int l = 0; l < h; l++) lanes[l] = ts_ref_binary(combiner(n->op), type, lanes[l], lanes[l + h]);
  }
  return ts_scalar_convert(type, lanes[0], n->dtype);
}

static bool replaces(const ts_kernel_node *n, ts_dtype type, ts_scalar x, ts_scalar best) {
  bool x_nan = ts_ref_predicate(TS_OP_IS_NAN, type, x), best_nan = ts_ref_predicate(TS_OP_IS_NAN, type, best);
  if (best_nan) return n->b && x_nan;
  if (x_nan) return true;
  if (n->b && ts_ref_compare(TS_OP_EQUAL, type, x, best)) return true;
  return ts_ref_compare(n->op == TS_OP_ARGMAX ? TS_OP_GREATER : TS_OP_LESS, type, x, best);
}

static ts_scalar arg_reduce(interpreter *t, const ts_kernel_node *n, int64_t *index) {
  int32_t dim = reduced_dim(t->d);
  ts_dtype type = t->d->nodes[n->a].dtype;
  ts_scalar best = {0};
  int64_t where = 0;
  for (int64_t k = 0; k < t->a->words[dim]; k++) {
    index[dim] = k;
    ts_scalar x = eval(t, n->a, index);
    if (k > 0 && !replaces(n, type, x, best)) continue;
    best = x, where = k;
  }
  return ts_scalar_from_s64(n->dtype, where);
}

static ts_scalar eval_reduction(interpreter *t, int32_t id, const int64_t *index) {
  const ts_kernel_node *n = &t->d->nodes[id];
  int64_t inner[TS_KERNEL_MAX_RANK], key = 0;
  int32_t dim = reduced_dim(t->d);
  for (int32_t i = 0; i < t->d->rank; i++)
    key = i == dim || (is_apart(t->d) && i == dim - 1) ? key : key * t->a->words[i] + index[i];
  key = key * columns_of(t->d) + index[dim] % columns_of(t->d);
  if (t->key[id] != key) {
    memcpy(inner, index, sizeof(inner));
    t->reduced[id] = n->kind == TS_NODE_ARG ? arg_reduce(t, n, inner) : reduce(t, n, inner);
    t->key[id] = key;
  }
  return t->reduced[id];
}

static ts_scalar load(ts_dtype type, int64_t place) { return ts_scalar_load(type, (const void *)(intptr_t)place); }

static ts_scalar eval_gather(interpreter *t, const ts_kernel_node *n, const int64_t *index) {
  int64_t limit = t->a->words[ts_kernel_arg_scalar(t->d, n->b)], step = t->a->words[ts_kernel_arg_scalar(t->d, n->c)];
  ts_dtype type = t->d->nodes[n->a].dtype;
  ts_scalar at = eval(t, n->a, index);
  bool huge = type == TS_U64 && at.u64 >= (uint64_t)limit;
  int64_t i = huge ? limit - 1 : ts_scalar_to_s64(type, at);
  i = i < 0 ? 0 : i >= limit ? limit - 1 : i;
  return load(n->dtype, place_of(t, n->slot, index) + i * step);
}

static ts_scalar eval_op(interpreter *t, const ts_kernel_node *n, const int64_t *index) {
  ts_dtype type = t->d->nodes[n->a].dtype;
  ts_scalar a = eval(t, n->a, index), b = {0}, c = {0};
  if (n->b >= 0) b = eval(t, n->b, index);
  if (n->c >= 0) c = eval(t, n->c, index);
  switch (ts_op_get_class(n->op)) {
  case TS_CLASS_PREDICATE: return ts_scalar_from_s64(TS_U8, ts_ref_predicate(n->op, type, a));
  case TS_CLASS_COMPARE: return ts_scalar_from_s64(TS_U8, ts_ref_compare(n->op, type, a, b));
  case TS_CLASS_CONVERT: return n->op == TS_OP_BITCAST ? a : ts_scalar_convert(type, a, n->dtype);
  case TS_CLASS_SELECT: return ts_ref_truth(TS_U8, a) ? b : c;
  case TS_CLASS_CLAMP: return ts_ref_binary(TS_OP_MIN, type, ts_ref_binary(TS_OP_MAX, type, a, b), c);
  default: return n->b >= 0 ? ts_ref_binary(n->op, type, a, b) : ts_ref_unary(n->op, type, a);
  }
}

static ts_scalar eval(interpreter *t, int32_t id, const int64_t *index) {
  const ts_kernel_node *n = &t->d->nodes[id];
  switch (n->kind) {
  case TS_NODE_LOAD: return load(n->dtype, place_of(t, n->slot, index));
  case TS_NODE_SCALAR: return load(n->dtype, (int64_t)(intptr_t)&t->a->words[ts_kernel_arg_scalar(t->d, n->slot)]);
  case TS_NODE_INDEX:
    return ts_scalar_from_s64(n->dtype, place_of(t, t->d->input_count + t->d->output_count + n->slot, index));
  case TS_NODE_GATHER: return eval_gather(t, n, index);
  case TS_NODE_OP: return eval_op(t, n, index);
  default: return eval_reduction(t, id, index);
  }
}

/* Stores the value of an output's node at one point into the copy. */
static void interpret_point(interpreter *t, int32_t output, const int64_t *index) {
  const ts_kernel_output *o = &t->d->outputs[output];
  int64_t place = place_of(t, t->d->input_count + output, index);
  char *copy = t->copies[output].data + (place - (int64_t)(intptr_t)t->actual[output]->data);
  ts_scalar_store(o->operand.dtype, eval(t, o->node, index), copy);
}

/* The dim along which an output is stored once, or -1. */
static int32_t still_dim(const ts_kernel_desc *d, int32_t output) {
  if (d->kind == TS_KERNEL_COL) return d->rank - 2;
  if (d->kind == TS_KERNEL_INTERLEAVED)
    return d->outputs[output].operand.stride[d->rank - 2] == TS_STRIDE_ZERO ? d->rank - 2 : -1;
  bool once = d->kind == TS_KERNEL_ROW && d->outputs[output].operand.stride[d->rank - 1] == TS_STRIDE_ZERO;
  return once ? d->rank - 1 : -1;
}

static void interpret_output(interpreter *t, int32_t output) {
  int64_t index[TS_KERNEL_MAX_RANK] = {0}, points = 1;
  int32_t still = still_dim(t->d, output);
  for (int32_t i = 0; i < t->d->rank; i++) points *= i == still ? 1 : t->a->words[i];
  for (int i = 0; i < TS_CASE_MAX; i++) t->key[i] = -1;
  for (int64_t p = 0; p < points; p++) {
    interpret_point(t, output, index);
    for (int32_t i = t->d->rank - 1; i >= 0; i--) {
      if (i == still) continue;
      if (++index[i] < t->a->words[i]) break;
      index[i] = 0;
    }
  }
}

void ts_case_check_rejected(const char *text, const char *message) {
  ts_kernel_case c;
  char *made = NULL;
  ts_kernel_source source;
  ts_case_parse(text, &c);
  ck_assert_error(ts_kernel_check(&c.desc), TS_INVALID_ARGUMENT, message);
  ck_assert_error(ts_kernel_make_source(&c.desc, &made, &source), TS_INVALID_ARGUMENT, message);
}

/* ---- running and comparing ---- */

int64_t ts_case_units(const ts_kernel_desc *d, const int64_t *extents) {
  int64_t outer = 1, lanes = ts_target_host()->lanes;
  int32_t rank = d->rank, inner = d->kind == TS_KERNEL_MAP || d->kind == TS_KERNEL_ROW ? 1 : 2;
  if (is_apart(d)) inner = 2;
  if (d->kind == TS_KERNEL_JOINED) inner = 1 + d->joined;
  if (d->kind == TS_KERNEL_TILE) inner = rank - ts_kernel_line_dim(d);
  for (int32_t i = 0; i < rank - inner; i++) outer *= extents[i];
  if (d->kind == TS_KERNEL_TILE) return outer * ((ts_kernel_line_length(d, extents) + lanes - 1) / lanes);
  if (d->kind == TS_KERNEL_COL) return outer * ((extents[rank - 1] + TS_COL_PANEL - 1) / TS_COL_PANEL);
  if (d->kind == TS_KERNEL_INTERLEAVED) return outer * ((extents[rank - 1] + TS_GROUPS_BLOCK - 1) / TS_GROUPS_BLOCK);
  if (d->kind == TS_KERNEL_JOINED)
    return outer * ((extents[ts_kernel_row_dim(d)] + TS_JOINED_BLOCK - 1) / TS_JOINED_BLOCK);
  return d->kind == TS_KERNEL_MAP && rank == 1 ? extents[0] : outer;
}

/* In three parts, so that some begin in the middle. */
static void run_kernel(const ts_kernel_desc *d, const ts_kernel *kernel, const arguments *a) {
  int64_t units = ts_case_units(d, a->words), fixed, each, lanes = ts_target_host()->lanes;
  ts_kernel_scratch(d, &fixed, &each);
  if (d->kind == TS_KERNEL_ROW && d->members > lanes) lanes = d->members;
  int64_t length = a->words[d->rank - 1], vectors = length > 0 ? (length + lanes - 1) / lanes : 1;
  if (is_apart(d)) vectors = (ts_kernel_pieces_length(d, a->words) + lanes - 1) / lanes + 1;
  size_t bytes = (size_t)(fixed + each * lanes * vectors);
  memory scratch = allocate(bytes ? (bytes + 63) / 64 * 64 : 64);
  memset(scratch.data, 0xCD, scratch.bytes);
  int64_t cuts[] = {0, units / 3, units / 3 + units / 2, units};
  for (int i = 1; i < 3 && streams(d, 0); i++) cuts[i] -= cuts[i] % TS_STREAM_STEP;
  for (int i = 0; i < 3; i++) ts_kernel_entry(kernel)(a->words, cuts[i], cuts[i + 1], scratch.data);
  munmap(scratch.mapping, scratch.mapped);
}

static bool same(ts_dtype type, ts_scalar x, ts_scalar y, int64_t tolerance) {
  if (x.bits == y.bits) return true;
  if (!ts_dtype_is_float(type)) return false;
  if (ts_ref_predicate(TS_OP_IS_NAN, type, x) && ts_ref_predicate(TS_OP_IS_NAN, type, y)) return true;
  return tolerance && ts_ulp_distance(type, x, y) <= tolerance;
}

static void compare(const ts_kernel_case *c, int32_t output, const char *actual, const memory *expected,
                    const ts_case_run *run) {
  ts_dtype type = c->outputs[output].operand.dtype;
  size_t size = ts_dtype_size(type);
  for (size_t i = 0; i + size <= expected->bytes; i += size) {
    ts_scalar x = ts_scalar_load(type, actual + i), y = ts_scalar_load(type, expected->data + i);
    if (same(type, x, y, run->tolerance)) continue;
    ts_text text = {0};
    ts_status_free(ts_kernel_print(&c->desc, &text));
    ck_abort_msg("output %d, element %zu of memory: %.17g (%llx), expected %.17g (%llx); extents %lld %lld %lld\n%s",
                 output, i / size, ts_scalar_to_f64(type, x), (unsigned long long)x.bits, ts_scalar_to_f64(type, y),
                 (unsigned long long)y.bits, (long long)run->extents[0], (long long)run->extents[1],
                 (long long)run->extents[2], text.data);
  }
}

void ts_case_check(const ts_kernel_case *c, const ts_kernel *kernel, const ts_case_run *run) {
  const ts_kernel_desc *d = &c->desc;
  static arguments a;
  memory copies[TS_CASE_MAX], *actual[TS_CASE_MAX];
  make_arguments(d, run, &a);
  for (int32_t i = 0; i < d->output_count; i++) {
    actual[i] = &a.operands[run->in_place && i == 0 ? 0 : d->input_count + i];
    copies[i] = allocate(actual[i]->bytes);
    memcpy(copies[i].data, actual[i]->data, actual[i]->bytes);
  }
  interpreter t = {.d = d, .a = &a, .actual = actual, .copies = copies};
  for (int32_t i = 0; i < d->output_count; i++) interpret_output(&t, i);
  run_kernel(d, kernel, &a);
  for (int32_t i = 0; i < d->output_count; i++) {
    compare(c, i, actual[i]->data, &copies[i], run);
    munmap(copies[i].mapping, copies[i].mapped);
  }
  free_arguments(&a);
}

void ts_case_test(const char *text, const ts_case_run *run) {
  ts_kernel_case c;
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  ts_case_check(&c, kernel, run);
  ts_kernel_release(kernel);
}
