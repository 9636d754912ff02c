/* Inference of every op: its results, and its errors on wrong operands and attributes. Cases are lines of the text
 * form, because there the parser checks the inferred type against the written one. */
#include "ir/graph.h"
#include "testing.h"

#define ONES_16 "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"

static const char prologue[] =
    "graph @t mesh [2,3] (%f: f32[2,3], %g: f32[2,3], %w: f32[3,2], %i: s32[2,3], %j: s32[2,3], %u: u8[2,3], %s: "
    "f32[], %n: s32[],"
    " %p: u8[], %v: f32[3], %x: s64[4], %x2: s16[5,2], %e: f32[0,3], %d: f64[2,3], %b: f32[5,2,3], %c: f32[5,3,4], "
    " %k: f32[3,4], %h: c64[2,3], %y: f32[2,3,4], %y3: f32[2,1,6],"
    " %m: f32[" ONES_16 "," ONES_16 "," ONES_16 "," ONES_16
    "], %q: u64[], %ff: f32[2,4], %i1: s32[2], %z: f32[3,5], %z1: f32[5], %z3: f32[5,3], %q3: f32[5,3,3], %b3: "
    "f32[5,3,2], %c3: f32[5,2,3], %qw: u32[1,1,64], %qs: f16[1,1,64], %qt: f32[1,1,64]) -> () {\n"
    /* regions outside of an op have no owner, so each case writes its own */
    "  ";

static bool seen_ok[TS_OP_COUNT], seen_error[TS_OP_COUNT];

static void note(const char *line, bool *seen) {
  const char *name = strchr(line, '=') + 2;
  ts_opcode code = ts_op_from_name(name, strcspn(name, " "));
  ck_assert_msg(code != TS_OP_COUNT, "no op in: %s", line);
  seen[code] = true;
}

static ts_status parse_line(const char *line) {
  char text[2048];
  ts_graph *graph;
  snprintf(text, sizeof text, "%s%s\n  return\n}\n", prologue, line);
  ts_status status = ts_graph_parse(text, strlen(text), &graph);
  if (!status) status = ts_graph_verify(graph);
  ts_graph_destroy(graph);
  return status;
}

static void check_ok(const char *line) {
  note(line, seen_ok);
  ts_status status = parse_line(line);
  ck_assert_msg(!status, "%s: %s", line, ts_status_message(status));
}

static void check_code(const char *line, ts_code code, const char *message) {
  note(line, seen_error);
  ts_status status = parse_line(line);
  ck_assert_msg(ts_status_code(status) == code, "%s: %s", line, ts_status_message(status));
  ck_assert_msg(strstr(ts_status_message(status), message), "%s: no \"%s\" in: %s", line, message,
                ts_status_message(status));
  ts_status_free(status);
}

static void check_error(const char *line, const char *message) { check_code(line, TS_INVALID_ARGUMENT, message); }

typedef struct error_case {
  const char *line, *message;
} error_case;

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void check_all_ok(const char *const *lines, int count) {
  for (int i = 0; i < count; i++) check_ok(lines[i]);
}

static void check_all_errors(const error_case *cases, int count) {
  for (int i = 0; i < count; i++) check_error(cases[i].line, cases[i].message);
}

/* ---- elementwise */

typedef struct elementwise_rule {
  ts_op_class op_class;
  int operands;
  const char *operand, *other_shape, *result;
  const char *wrong, *wrong_type, *expected; /* NULL: every type will do */
} elementwise_rule;

static const elementwise_rule elementwise_rules[] = {
    {TS_CLASS_UNARY_FLOAT, 1, "%f", NULL, "f32[2,3]", "%i", "s32[2,3]", "expected a floating-point type"},
    {TS_CLASS_UNARY, 1, "%u", NULL, "u8[2,3]", NULL, NULL, NULL},
    {TS_CLASS_UNARY_INTEGER, 1, "%i", NULL, "s32[2,3]", "%d", "f64[2,3]", "expected an integer type"},
    {TS_CLASS_PREDICATE, 1, "%d", NULL, "u8[2,3]", NULL, NULL, NULL},
    {TS_CLASS_BINARY, 2, "%f", "%w", "f32[2,3]", NULL, NULL, NULL},
    {TS_CLASS_BINARY_FLOAT, 2, "%f", "%w", "f32[2,3]", "%i", "s32[2,3]", "expected a floating-point type"},
    {TS_CLASS_BINARY_INTEGER, 2, "%i", "%i1", "s32[2,3]", "%f", "f32[2,3]", "expected an integer type"},
    {TS_CLASS_COMPARE, 2, "%f", "%w", "u8[2,3]", NULL, NULL, NULL},
};

static void check_elementwise(const elementwise_rule *rule, const char *name) {
  char line[200], message[200];
  const char *x = rule->operand;
  bool binary = rule->operands == 2;
  snprintf(line, sizeof line, binary ? "%%r = %s %s, %s : %s" : "%%r = %s %s%.0s : %s", name, x, x, rule->result);
  check_ok(line);
  snprintf(line, sizeof line, binary ? "%%r = %s %s : %s" : "%%r = %s %s, %%s : %s", name, x, rule->result);
  snprintf(message, sizeof message, "%d operands, expected %d", binary ? 1 : 2, rule->operands);
  check_error(line, message);
  if (rule->wrong) {
    snprintf(line, sizeof line, binary ? "%%r = %s %s, %s : %s" : "%%r = %s %s%.0s : %s", name, rule->wrong,
             rule->wrong, rule->wrong_type);
    snprintf(message, sizeof message, binary ? "%s(%s, %s): %s" : "%s(%s%.0s): %s", name, rule->wrong_type,
             rule->wrong_type, rule->expected);
    check_error(line, message);
  }
  if (!binary) return;
  snprintf(line, sizeof line, "%%r = %s %s, %%d : f32[2,3]", name, x);
  check_error(line, "f64[2,3]): the operands' types differ, expected equal types");
  snprintf(line, sizeof line, "%%r = %s %s, %s : f32[2,3]", name, x, rule->other_shape);
  check_error(line, "the operands' shapes differ, expected equal shapes");
}

START_TEST(elementwise_by_class)
{
  int checked = 0;
  for (int op = 0; op < TS_OP_COUNT; op++) {
    for (int i = 0; i < COUNT(elementwise_rules); i++) {
      if (ts_op_get_class((ts_opcode)op) != elementwise_rules[i].op_class) continue;
      check_elementwise(&elementwise_rules[i], ts_op_name((ts_opcode)op));
      checked++;
    }
  }
  ck_assert_int_gt(checked, 50);
}
END_TEST

START_TEST(elementwise_others)
{
  static const char *const good[] = {
      "%r = complex %f, %g : c64[2,3]", "%r = complex %d, %d : c128[2,3]",   "%r = real %h : f32[2,3]",
      "%r = imag %h : f32[2,3]",        "%r = convert %f : s8[2,3]",         "%r = convert %u : bf16[2,3]",
      "%r = bitcast %f : s32[2,3]",     "%r = select %u, %f, %g : f32[2,3]", "%r = clamp %f, %g, %f : f32[2,3]",
      "%r = clamp %n, %n, %n : s32[]",
  };
  static const error_case bad[] = {
      {"%r = real %f : f32[2,3]", "real(f32[2,3]): expected a complex type"},
      {"%r = imag %i : f32[2,3]", "imag(s32[2,3]): expected a complex type"},
      {"%r = complex %i, %j : c64[2,3]", "complex(s32[2,3], s32[2,3]): expected parts of type f32 or f64"},
      {"%r = complex %f, %d : c64[2,3]", "complex(f32[2,3], f64[2,3]): the operands' types differ"},
      {"%r = complex %f, %w : c64[2,3]", "complex(f32[2,3], f32[3,2]): the operands' shapes differ"},
      {"%r = bitcast %f : f64[2,3]", "bitcast(f32[2,3]): f64 has 64 bits, expected a type of 32"},
      {"%r = convert %f : s8[3,2]", "said to be s8[3,2], expected s8[2,3]"},
      {"%r = select %i, %f, %g : f32[2,3]", "select(s32[2,3], f32[2,3], f32[2,3]): expected a predicate of type u8"},
      {"%r = select %u, %f, %d : f32[2,3]", "select(u8[2,3], f32[2,3], f64[2,3]): the choices' types differ"},
      {"%r = select %u, %w, %w : f32[3,2]", "select(u8[2,3], f32[3,2], f32[3,2]): the operands' shapes differ"},
      {"%r = select %p, %f, %f : f32[3,2]", "select(u8[], f32[2,3], f32[2,3]): the operands' shapes differ"},
      {"%r = clamp %f, %s, %s : f32[2,3]", "clamp(f32[2,3], f32[], f32[]): the operands' shapes differ"},
      {"%r = clamp %f, %d, %d : f32[2,3]", "clamp(f32[2,3], f64[2,3], f64[2,3]): the operands' types differ"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
  check_code("%r = erf %h : c64[2,3]", TS_UNIMPLEMENTED, "erf is not implemented for complex numbers");
}
END_TEST

/* ---- sources */

START_TEST(sources)
{
  static const char *const good[] = {
      "%r = constant 1.0 : f32[4,0]",  "%r = literal \"0001\" : u8[2]", "%r = iota {axis = 1} : bf16[2,3]",
      "%r = iota {axis = -1} : f64[]", "%r = eye : u8[4,2,3]",
  };
  static const error_case bad[] = {
      {"%r = parameter : f32[]", "parameter(): a region declares its parameters"},
      {"%r = constant %f : f32[]", "expected a number"},
      {"%r = constant 300 : u8[]", "expected a number of type u8"},
      {"%r = literal \"000\" : u8[2]", "expected 2 bytes, two digits each, for u8[2]"},
      {"%r = literal \"00zz\" : u8[2]", "expected hexadecimal digits"},
      {"%r = iota {axis = 2} : f32[2,3]", "iota(): axis 2 is out of range, expected one of [-1, 2) for rank 2"},
      {"%r = iota {axis = -2} : f32[2,3]", "axis -2 is out of range"},
      {"%r = eye : f32[3]", "eye(): the result has rank 1, expected at least 2"},
      {"%r = eye : f32[3,-1]", "f32[3,-1]"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

/* ---- shape */

START_TEST(shape_ops)
{
  static const char *const good[] = {
      "%r = reshape %f {shape = [6,1]} : f32[6,1]",
      "%r = reshape %e {shape = [7,0,9]} : f32[7,0,9]",
      "%r = reshape %s {shape = [1,1]} : f32[1,1]",
      "%r = broadcast %v {shape = [3,2], axes = [0]} : f32[3,2]",
      "%r = broadcast %s {shape = [0,2], axes = []} : f32[0,2]",
      "%r = transpose %b {axes = [2,0,1]} : f32[3,5,2]",
      "%r = transpose %s {axes = []} : f32[]",
      "%r = reverse %f {axes = []} : f32[2,3]",
      "%r = slice %f {start = [0,0], limit = [2,3], stride = [9,2]} : f32[1,2]",
      "%r = slice %f {start = [2,1], limit = [2,1], stride = [1,1]} : f32[0,0]",
      "%r = slice %f {start = [0,0], limit = [2,3], stride = [9223372036854775807,1]} : f32[1,3]",
      "%r = pad %f, %s {low = [1,0], high = [2,-1], interior = [0,3]} : f32[5,8]",
      "%r = pad %e, %s {low = [1,0], high = [0,0], interior = [5,0]} : f32[1,3]",
      "%r = pad %f, %s {low = [-2,0], high = [0,0], interior = [0,0]} : f32[0,3]",
      "%r = concatenate %f, %e, %f {axis = 0} : f32[4,3]",
      "%r = concatenate %f {axis = 1} : f32[2,3]",
  };
  check_all_ok(good, COUNT(good));
}
END_TEST

START_TEST(shape_errors)
{
  static const error_case bad[] = {
      {"%r = reshape %f {shape = [5]} : f32[5]", "reshape(f32[2,3]): the result f32[5] has 5 elements, expected 6"},
      {"%r = reshape %f {shape = [-2,-3]} : f32[6]", "reshape: "},
      {"%r = broadcast %f {shape = [2,3], axes = [0]} : f32[2,3]", "axes has 1 entries, expected 2"},
      {"%r = broadcast %f {shape = [2,3], axes = [0,2]} : f32[2,3]",
       "axes has axis 2, expected one of [0, 2) for rank 2"},
      {"%r = broadcast %f {shape = [2,3], axes = [1,1]} : f32[2,3]", "axes has axis 1 twice"},
      {"%r = broadcast %f {shape = [2,4], axes = [0,1]} : f32[2,4]",
       "broadcast(f32[2,3]): dimension 1 has size 3, expected 1 or 4 for axis 1 of the result f32[2,4]"},
      {"%r = transpose %f {axes = [0]} : f32[2]", "transpose(f32[2,3]): axes has 1 entries, expected 2"},
      {"%r = transpose %f {axes = [0,0]} : f32[2,2]", "axes has axis 0 twice, expected distinct axes"},
      {"%r = transpose %f {axes = [0,-1]} : f32[2,2]", "axes has axis -1, expected one of [0, 2)"},
      {"%r = reverse %f {axes = [2]} : f32[2,3]", "reverse(f32[2,3]): axes has axis 2"},
      {"%r = slice %f {start = [0], limit = [2,3], stride = [1,1]} : f32[2,3]", "start has 1 entries, expected 2"},
      {"%r = slice %f {start = [0,0], limit = [2], stride = [1,1]} : f32[2,3]", "limit has 1 entries, expected 2"},
      {"%r = slice %f {start = [0,0], limit = [2,3], stride = []} : f32[2,3]", "stride has 0 entries, expected 2"},
      {"%r = slice %f {start = [0,0], limit = [2,4], stride = [1,1]} : f32[2,4]",
       "slice(f32[2,3]): dimension 1 is sliced from 0 to 4, expected 0 <= start <= limit <= 3"},
      {"%r = slice %f {start = [-1,0], limit = [2,3], stride = [1,1]} : f32[3,3]",
       "dimension 0 is sliced from -1 to 2"},
      {"%r = slice %f {start = [2,0], limit = [1,3], stride = [1,1]} : f32[3,3]", "dimension 0 is sliced from 2 to 1"},
      {"%r = slice %f {start = [0,0], limit = [2,3], stride = [1,0]} : f32[2,3]", "dimension 1 has stride 0"},
      {"%r = pad %f, %n {low = [0,0], high = [0,0], interior = [0,0]} : f32[2,3]",
       "pad(f32[2,3], s32[]): the operands' types"},
      {"%r = pad %f, %v {low = [0,0], high = [0,0], interior = [0,0]} : f32[2,3]", "expected a scalar padding value"},
      {"%r = pad %f, %s {low = [0], high = [0,0], interior = [0,0]} : f32[2,3]", "low has 1 entries, expected 2"},
      {"%r = pad %f, %s {low = [0,0], high = [0], interior = [0,0]} : f32[2,3]", "high has 1 entries, expected 2"},
      {"%r = pad %f, %s {low = [0,0], high = [0,0], interior = [0]} : f32[2,3]", "interior has 1 entries, expected 2"},
      {"%r = pad %f, %s {low = [0,0], high = [0,0], interior = [0,-1]} : f32[2,3]",
       "interior padding -1, expected at least 0"},
      {"%r = pad %f, %s {low = [-2,0], high = [-1,0], interior = [0,0]} : f32[2,3]", "dimension 0 gets size -1"},
      {"%r = pad %f, %s {low = [9223372036854775807,0], high = [0,0], interior = [0,0]} : f32[2,3]",
       "does not fit in 64 bits"},
      {"%r = pad %f, %s {low = [0,0], high = [0,0], interior = [0,9223372036854775807]} : f32[2,3]",
       "does not fit in 64 bits"},
      {"%r = concatenate {axis = 0} : f32[2,3]", "concatenate(): no operands, expected at least one"},
      {"%r = concatenate %f, %d {axis = 0} : f32[4,3]", "the operands' types differ"},
      {"%r = concatenate %f, %g {axis = 2} : f32[4,3]", "axis 2 is out of range, expected one of [0, 2) for rank 2"},
      {"%r = concatenate %f, %w {axis = 1} : f32[2,5]",
       "operand 1 is f32[3,2], expected the dimensions of the first but for axis 1"},
      {"%r = concatenate %s {axis = 0} : f32[]", "axis 0 is out of range"},
  };
  check_all_errors(bad, COUNT(bad));
}
END_TEST

START_TEST(indexed_ops)
{
  static const char *const good[] = {
      "%r = dynamic_slice %f, %n, %q {shape = [2,0]} : f32[2,0]",
      "%r = dynamic_slice %s {shape = []} : f32[]",
      "%r = put_slice %f, %e, %n, %n : f32[2,3]",
      "%r = put_slice %s, %s : f32[]",
      "%r = take %b, %x2 {axis = 1} : f32[5,5,2,3]",
      "%r = take %f, %n {axis = 0} : f32[3]",
      "%r = take_along_axis %f, %i {axis = 1} : f32[2,3]",
      "%r = indexed_add %w, %x2, %z1 {axes = [0,1]} : f32[3,2]",
      "%r = indexed_put %b, %x2, %z3 {axes = [0,1]} : f32[5,2,3]",
  };
  static const error_case bad[] = {
      {"%r = dynamic_slice %f, %n {shape = [1,1]} : f32[1,1]",
       "2 operands, expected 3: one start per dimension of the first"},
      {"%r = dynamic_slice %f, %n, %s {shape = [1,1]} : f32[1,1]", "start 1 is f32[], expected a scalar integer"},
      {"%r = dynamic_slice %f, %n, %x {shape = [1,1]} : f32[1,1]", "start 1 is s64[4], expected a scalar integer"},
      {"%r = dynamic_slice %f, %n, %n {shape = [1,4]} : f32[1,4]",
       "the window has size 4 in dimension 1, expected one of [0, 3]"},
      {"%r = dynamic_slice %f, %n, %n {shape = [1]} : f32[1]", "the window has 1 entries, expected 2"},
      {"%r = put_slice %f : f32[2,3]", "expected an operand, an update and starts"},
      {"%r = put_slice %f, %d, %n, %n : f32[2,3]", "the update's type is f64, expected f32"},
      {"%r = put_slice %f, %w, %n, %n : f32[2,3]",
       "put_slice(f32[2,3], f32[3,2], s32[], s32[]): the window has size 3"},
      {"%r = put_slice %f, %g, %n : f32[2,3]", "3 operands, expected 4"},
      {"%r = take %f, %v {axis = 0} : f32[3,3]", "take(f32[2,3], f32[3]): expected indices of an integer type"},
      {"%r = take %f, %x {axis = 2} : f32[3,3]", "axis 2 is out of range"},
      {"%r = take %e, %x {axis = 0} : f32[4,3]", "axis 0 is empty, expected at least one element to take"},
      {"%r = take %m, %x2 {axis = 0} : f32[5,2]", "the result has rank 65, expected at most 64"},
      {"%r = take_along_axis %f, %x {axis = 1} : f32[2,3]",
       "expected indices with the operand's dimensions but for axis 1"},
      {"%r = take_along_axis %w, %i {axis = 1} : f32[2,3]",
       "expected indices with the operand's dimensions but for axis 1"},
      {"%r = take_along_axis %f, %g {axis = 1} : f32[2,3]", "expected indices of an integer type"},
      {"%r = take_along_axis %f, %i {axis = -1} : f32[2,3]", "axis -1 is out of range, expected one of [0, 2)"},
      {"%r = indexed_add %w, %x2, %z1 {axes = [0,2]} : f32[3,2]", "expected one of [0, 2)"},
      {"%r = indexed_add %w, %x2, %z1 {axes = []} : f32[3,2]", "no axes, expected at least one"},
      {"%r = indexed_put %w, %x2, %z1 {axes = [1,0]} : f32[3,2]", "expected axes in increasing order"},
      {"%r = indexed_put %w, %z, %z1 {axes = [0,1]} : f32[3,2]", "expected indices of an integer type"},
      {"%r = indexed_put %w, %x, %z1 {axes = [0]} : f32[3,2]",
       "expected indices of shape [n,1], a column for each axis"},
      {"%r = indexed_put %w, %x2, %z1 {axes = [0]} : f32[3,2]",
       "expected indices of shape [n,1], a column for each axis"},
      {"%r = indexed_add %w, %x2, %x2 {axes = [0,1]} : f32[3,2]", "expected updates of the target's type"},
      {"%r = indexed_add %w, %x2, %v {axes = [0,1]} : f32[3,2]", "expected updates of shape f32[5]"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

#define WINDOW(sizes, strides, low, high, dilation) \
  "{sizes = [" sizes "], strides = [" strides "], low = [" low "], high = [" high "], dilation = [" dilation "]}"

START_TEST(windows)
{
  static const char *const good[] = {
      "%r = window_sum %f " WINDOW("2,2", "1,1", "0,0", "0,0", "1,1") " : f32[1,2]",
      "%r = window_max %f " WINDOW("2,2", "2,2", "1,1", "1,1", "1,1") " : f32[2,2]",
      "%r = window_min %f " WINDOW("9,1", "1,1", "0,0", "0,0", "1,1") " : f32[0,3]",
      "%r = window_product %f " WINDOW("1,2", "1,1", "-2,0", "0,0", "1,2") " : f32[0,1]",
      "%r = window_sum %s " WINDOW("", "", "", "", "") " : f32[]",
      "%r = window_scatter_max %f, %g, %s " WINDOW("1,3", "1,1", "0,1", "0,1", "1,1") " : f32[2,3]",
      "%r = window_scatter_min %e, %e, %s " WINDOW("1,3", "1,1", "0,1", "0,1", "1,1") " : f32[0,3]",
  };
  static const error_case bad[] = {
      {"%r = window_sum %f " WINDOW("2", "1,1", "0,0", "0,0", "1,1") " : f32[1,2]", "sizes has 1 entries, expected 2"},
      {"%r = window_sum %f " WINDOW("2,2", "1,1", "0,0", "0", "1,1") " : f32[1,2]", "high has 1 entries, expected 2"},
      {"%r = window_sum %f " WINDOW("2,0", "1,1", "0,0", "0,0", "1,1") " : f32[1,2]",
       "dimension 1 has window 0, stride 1, dilation 1, expected at least 1"},
      {"%r = window_product %f " WINDOW("2,2", "-1,1", "0,0", "0,0", "1,1") " : f32[1,2]", "stride -1"},
      {"%r = window_max %f " WINDOW("2,2", "1,1", "0,0", "0,0", "0,1") " : f32[1,2]", "dilation 0"},
      {"%r = window_min %f " WINDOW("1,1", "1,1", "0,-2", "0,-2", "1,1") " : f32[2,0]",
       "dimension 1 is padded to size -1, expected at least 0"},
      {"%r = window_sum %f " WINDOW("9223372036854775807,1", "1,1", "0,0", "0,0", "2,1") " : f32[0,3]",
       "the window or the padded size of dimension 0 does not fit in 64 bits"},
      {"%r = window_sum %f " WINDOW("1,1", "1,1", "0,0", "9223372036854775807,0", "1,1") " : f32[0,3]",
       "does not fit in 64 bits"},
      {"%r = window_sum %f " WINDOW("1,1", "1,1", "-9223372036854775808,0", "9223372036854775805,0",
                                    "1,1") " : f32[0,3]",
       "does not fit in 64 bits"},
      {"%r = window_scatter_max %f, %w, %s " WINDOW("1,3", "1,1", "0,1", "0,1", "1,1") " : f32[2,3]",
       "expected a source of shape f32[2,3], one element for each window"},
      {"%r = window_scatter_min %f, %g, %v " WINDOW("1,3", "1,1", "0,1", "0,1", "1,1") " : f32[2,3]",
       "expected a scalar initial value"},
      {"%r = window_scatter_min %f, %g, %s " WINDOW("1,2", "1,1", "0,1", "0,1", "1,2") " : f32[2,3]",
       "dimension 1 has dilation 2, expected 1"},
      {"%r = window_scatter_min %f, %f, %d " WINDOW("1,3", "1,1", "0,1", "0,1", "1,1") " : f32[2,3]",
       "the operands' types differ"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

#define CONV(strides, low, high, input, kernel, groups)                                    \
  "{strides = [" strides "], low = [" low "], high = [" high "], input_dilation = [" input \
  "], kernel_dilation = [" kernel "], groups = " groups "}"

START_TEST(convolutions)
{
  static const char *const good[] = {
      "%r = conv %f, %k " CONV("", "", "", "", "", "1") " : f32[2,4]",
      "%r = conv %b, %y " CONV("1", "0", "0", "1", "1", "1") " : f32[5,1,4]",
      "%r = conv %b, %y " CONV("2", "2", "1", "3", "2", "1") " : f32[5,3,4]",
      "%r = conv %b, %y3 " CONV("1", "0", "0", "1", "1", "3") " : f32[5,1,6]",
  };
  static const error_case bad[] = {
      {"%r = conv %v, %v " CONV("", "", "", "", "", "1") " : f32[3]",
       "expected an operand and a kernel of equal ranks"},
      {"%r = conv %f, %y " CONV("", "", "", "", "", "1") " : f32[3]",
       "expected an operand and a kernel of equal ranks"},
      {"%r = conv %b, %y " CONV("1,1", "0", "0", "1", "1", "1") " : f32[5,1,4]",
       "strides has 2 entries, expected 1, one per spatial dimension"},
      {"%r = conv %b, %y " CONV("1", "0", "0", "1", "", "1") " : f32[5,1,4]", "kernel_dilation has 0 entries"},
      {"%r = conv %b, %y " CONV("1", "0", "0", "1", "1", "2") " : f32[5,1,4]",
       "2 groups of 3 channels and 4 features, expected a divisor of both"},
      {"%r = conv %b, %y " CONV("1", "0", "0", "1", "1", "0") " : f32[5,1,4]", "0 groups"},
      {"%r = conv %b, %y3 " CONV("1", "0", "0", "1", "1", "1") " : f32[5,1,6]",
       "the kernel has 1 channels, expected 3, those of a group"},
      {"%r = conv %b, %y " CONV("1", "0", "0", "0", "1", "1") " : f32[5,1,4]", "input dilation 0, expected at least 1"},
      {"%r = conv %b, %y " CONV("1", "0", "0", "9223372036854775807", "1", "1") " : f32[5,1,4]",
       "does not fit in 64 bits"},
      {"%r = conv %b, %y " CONV("0", "0", "0", "1", "1", "1") " : f32[5,1,4]", "stride 0"},
      {"%r = conv %d, %f " CONV("", "", "", "", "", "1") " : f32[2,4]", "the operands' types differ"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

START_TEST(linear_algebra)
{
  static const char *const good[] = {
      "%r = cholesky %q3 : f32[5,3,3]",
      "%r = triangular_solve %q3, %b3 {left = true, lower = true, transpose = false, unit = false} : f32[5,3,2]",
      "%r = triangular_solve %q3, %c3 {left = false, lower = false, transpose = true, unit = true} : f32[5,2,3]",
      "%r = solve %q3, %b3 : f32[5,3,2]",
      "%r = determinant %q3 : f32[5]",
      "%r, %r2, %r3 = lu %q3 : f32[5,3,3], f32[5,3,3], f32[5,3,3]",
      "%r, %r2 = qr %b3 {full = false} : f32[5,3,2], f32[5,2,2]",
      "%r, %r2 = qr %b3 {full = true} : f32[5,3,3], f32[5,3,2]",
      "%r, %r2 = eigh %q3 : f32[5,3], f32[5,3,3]",
      "%r, %r2, %r3 = svd %b3 {full = false} : f32[5,3,2], f32[5,2], f32[5,2,2]",
      "%r, %r2, %r3 = svd %b3 {full = true} : f32[5,3,3], f32[5,2], f32[5,2,2]",
  };
  static const error_case bad[] = {
      {"%r = solve %q3, %c3 : f32[5,2,3]", "2 rows of the right side, expected 3"},
      {"%r = solve %q3, %w : f32[3,2]", "expected equal dimensions before the last two"},
      {"%r = determinant %f : f32[]", "determinant(f32[2,3]): matrices of 2 by 3, expected square ones"},
      {"%r, %r2 = eigh %f : f32[2], f32[2,3]", "eigh(f32[2,3]): matrices of 2 by 3, expected square ones"},
      {"%r, %r2, %r3 = lu %f : f32[2,3], f32[2,3], f32[2,3]", "matrices of 2 by 3, expected square ones"},
      {"%r, %r2 = qr %v {full = true} : f32[3], f32[3]", "operand 1 has rank 1, expected at least 2"},
      {"%r, %r2, %r3 = svd %i {full = true} : f32[2,2], f32[2], f32[3,3]", "expected floats"},
      {"%r = cholesky %f : f32[2,3]", "cholesky(f32[2,3]): matrices of 2 by 3, expected square ones"},
      {"%r = cholesky %v : f32[3]", "operand 1 has rank 1, expected at least 2"},
      {"%r = cholesky %i : s32[2,3]", "expected floats"},
      {"%r = triangular_solve %q3, %c3 {left = true, lower = true, transpose = false, unit = false} : f32[5,2,3]",
       "2 rows of the right side, expected 3"},
      {"%r = triangular_solve %q3, %b3 {left = false, lower = true, transpose = false, unit = false} : f32[5,3,2]",
       "2 columns of the right side, expected 3"},
      {"%r = triangular_solve %q3, %w {left = true, lower = true, transpose = false, unit = false} : f32[3,2]",
       "expected equal dimensions before the last two"},
      {"%r = triangular_solve %b3, %b3 {left = true, lower = true, transpose = false, unit = false} : f32[5,3,2]",
       "matrices of 3 by 2, expected square ones"},
      {"%r = triangular_solve %f, %d {left = true, lower = true, transpose = false, unit = false} : f64[2,3]",
       "expected"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

START_TEST(fourier)
{
  static const char *const good[] = {
      "%r = fft %f {axis = 1, length = 8} : c64[2,8]",
      "%r = ifft %d {axis = 0, length = 1} : c128[1,3]",
      "%r = rfft %f {axis = 1, length = 5} : c64[2,3]",
      "%r = irfft %h {axis = 1, length = 7} : f32[2,7]",
  };
  static const error_case bad[] = {
      {"%r = fft %f {axis = 2, length = 8} : c64[2,8]", "axis"},
      {"%r = fft %i {axis = 1, length = 3} : c64[2,3]", "expected f32, f64 or complex numbers"},
      {"%r = ifft %f {axis = 1, length = 0} : c64[2,0]", "length 0, expected at least 1"},
      {"%r = rfft %h {axis = 1, length = 3} : c64[2,2]", "expected f32 or f64"},
      {"%r = irfft %f {axis = 1, length = 3} : f32[2,3]", "expected complex numbers"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

/* ---- reductions, scans, contraction */

START_TEST(reductions)
{
  static const char *const names[] = {"sum", "product", "max", "min", "all", "any"};
  char line[200];
  for (int i = 0; i < COUNT(names); i++) {
    const char *type = i < 4 ? "f32" : "u8";
    snprintf(line, sizeof line, "%%r = reduce_%s %%b {axes = [2,0]} : %s[2]", names[i], type);
    check_ok(line);
    snprintf(line, sizeof line, "%%r = reduce_%s %%e {axes = [0]} : %s[3]", names[i], type);
    check_ok(line);
    snprintf(line, sizeof line, "%%r = reduce_%s %%s {axes = []} : %s[]", names[i], type);
    check_ok(line);
    snprintf(line, sizeof line, "%%r = reduce_%s %%b {axes = [3]} : %s[2]", names[i], type);
    check_error(line, "(f32[5,2,3]): axes has axis 3, expected one of [0, 3) for rank 3");
    snprintf(line, sizeof line, "%%r = reduce_%s %%b {axes = [0,0]} : %s[2]", names[i], type);
    check_error(line, "axes has axis 0 twice, expected distinct axes");
  }
}
END_TEST

START_TEST(general_reduce)
{
  static const error_case bad[] = {
      {"%r = reduce %f, %n {axes = [0]} { combine(%1: f32[], %2: f32[]) { return %1 } } : f32[3]",
       "the operands' types differ"},
      {"%r = reduce %f, %v {axes = [0]} { combine(%1: f32[], %2: f32[]) { return %1 } } : f32[3]",
       "expected a scalar initial value"},
      {"%r = reduce %f, %s {axes = [0]} { combine(%1: f32[]) { return %1 } } : f32[3]",
       "the combiner has 1 parameters, expected 2"},
      {"%r = reduce %f, %s {axes = [0]} { combine(%1: f32[], %2: f64[]) { return %1 } } : f32[3]",
       "reduce(f32[2,3], f32[]): parameter 1 of the combiner is f64[], expected f32[]"},
      {"%r = reduce %f, %s {axes = [0]} { combine(%1: f32[], %2: f32[]) { return %1, %2 } } : f32[3]",
       "the combiner has 2 results, expected 1"},
      {"%r = reduce %f, %s {axes = [0]} { combine(%1: f32[], %2: f32[]) { %3 = is_nan %1 : u8[] return %3 } } : f32[3]",
       "result 0 of the combiner is u8[], expected f32[]"},
      {"%r = reduce %f, %s {axes = [2]} { combine(%1: f32[], %2: f32[]) { return %1 } } : f32[3]", "axes has axis 2"},
  };
  check_ok("%r = reduce %f, %s {axes = [0]} { combine(%1: f32[], %2: f32[]) { %3 = pow %1, %2 : f32[] return %3 } } : "
           "f32[3]");
  check_all_errors(bad, COUNT(bad));
}
END_TEST

START_TEST(arg_reductions_and_scans)
{
  static const char *const args[] = {"argmax", "argmin"};
  static const char *const scans[] = {"sum", "product", "min", "max"};
  char line[200];
  for (int i = 0; i < COUNT(args); i++) {
    snprintf(line, sizeof line, "%%r = %s %%b {axis = 1, high = true} : u8[5,3]", args[i]);
    check_ok(line);
    snprintf(line, sizeof line, "%%r = %s %%b {axis = -1, high = false} : s64[]", args[i]);
    check_ok(line);
    snprintf(line, sizeof line, "%%r = %s %%b {axis = 3, high = false} : s64[]", args[i]);
    check_error(line, "axis 3 is out of range, expected one of [-1, 3) for rank 3");
    snprintf(line, sizeof line, "%%r = %s %%b {axis = 0, high = false} : f32[2,3]", args[i]);
    check_error(line, "the result's type is f32, expected an integer type");
  }
  for (int i = 0; i < COUNT(scans); i++) {
    snprintf(line, sizeof line, "%%r = cumulative_%s %%b {axis = 2, reverse = false} : f32[5,2,3]", scans[i]);
    check_ok(line);
    snprintf(line, sizeof line, "%%r = cumulative_%s %%b {axis = -1, reverse = false} : f32[5,2,3]", scans[i]);
    check_error(line, "axis -1 is out of range, expected one of [0, 3) for rank 3");
    snprintf(line, sizeof line, "%%r = cumulative_%s %%s {axis = 0, reverse = false} : f32[]", scans[i]);
    check_error(line, "axis 0 is out of range, expected one of [0, 0) for rank 0");
  }
}
END_TEST

START_TEST(sorts)
{
  check_ok("%r = sort %b {axis = 2, descending = true} : f32[5,2,3]");
  check_error("%r = sort %b {axis = 3, descending = true} : f32[5,2,3]",
              "axis 3 is out of range, expected one of [0, 3) for rank 3");
  check_error("%r = sort %s {axis = 0, descending = false} : f32[]",
              "axis 0 is out of range, expected one of [0, 0) for rank 0");
  check_ok("%r = argsort %b {axis = 0, descending = false} : u8[5,2,3]");
  check_error("%r = argsort %b {axis = -1, descending = false} : s32[5,2,3]",
              "axis -1 is out of range, expected one of [0, 3) for rank 3");
  check_error("%r = argsort %b {axis = 0, descending = false} : f32[5,2,3]",
              "the result's type is f32, expected an integer type");
  check_ok("%r, %r2 = top_k %b {k = 3} : f32[5,2,3], s32[5,2,3]");
  check_ok("%r, %r2 = top_k %b {k = 0} : f32[5,2,0], s32[5,2,0]");
  check_error("%r, %r2 = top_k %b {k = 4} : f32[5,2,4], s32[5,2,4]", "k is 4, expected one of [0, 3]");
  check_error("%r, %r2 = top_k %b {k = -1} : f32[5,2,3], s32[5,2,3]", "k is -1, expected one of [0, 3]");
  check_error("%r, %r2 = top_k %s {k = 0} : f32[], s32[]",
              "axis -1 is out of range, expected one of [0, 0) for rank 0");
}
END_TEST

#define DOT(operands, lc, lb, rc, rb, type)                                                                          \
  "%r = dot_general " operands " {lhs_contract = " lc ", lhs_batch = " lb ", rhs_contract = " rc ", rhs_batch = " rb \
  "} : " type

#define WIDE_DOT(operands, lc, rc, type)                                                          \
  "%r = wide_dot_general " operands " {lhs_contract = " lc ", lhs_batch = [], rhs_contract = " rc \
  ", rhs_batch = []} : " type

#define SCALED_DOT(operands, lc, rc, operand, axes, type)                                           \
  "%r = scaled_dot_general " operands " {lhs_contract = " lc ", lhs_batch = [], rhs_contract = " rc \
  ", rhs_batch = [], operand = " operand ", axes = " axes "} : " type

START_TEST(scaled_contraction)
{
  static const char *const good[] = {SCALED_DOT("%u, %f, %v", "[1]", "[1]", "0", "[1]", "f32[2,2]"),
                                     SCALED_DOT("%f, %u, %s", "[0]", "[0]", "1", "[]", "f32[3,3]")};
  static const error_case bad[] = {
      {SCALED_DOT("%u, %f, %i", "[1]", "[1]", "2", "[0,1]", "s32[2,2]"), "operand 2 is scaled, expected 0 or 1"},
      {SCALED_DOT("%u, %f, %v", "[1]", "[1]", "0", "[]", "f32[2,2]"),
       "0 axes, expected 1: one for each of the scale's dimensions"},
      {SCALED_DOT("%u, %f, %v", "[1]", "[1]", "0", "[0]", "f32[2,2]"),
       "dimension 0 of the scale has size 3, expected 1 or 2"},
      {SCALED_DOT("%u, %f, %v", "[1]", "[1]", "0", "[2]", "f32[2,2]"),
       "axes has axis 2, expected one of [0, 2) for rank 2"},
      {SCALED_DOT("%f, %f, %u", "[1]", "[1]", "0", "[0,1]", "u8[2,2]"),
       "the result is u8, expected a float of 16 bits or a real type of 32 or 64 bits"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

#define QUANTIZED_DOT(operands, bits, group, form, cols, type) \
  "%r = quantized_dot " operands " {bits = " bits ", group = " group ", form = " form ", cols = " cols "} : " type

START_TEST(quantized_contraction)
{
  static const char *const good[] = {QUANTIZED_DOT("%f, %qw, %qs", "4", "32", "0", "5", "f32[2,5]"),
                                     QUANTIZED_DOT("%b, %qw, %qt, %qt", "8", "8", "1", "64", "f32[5,2,64]"),
                                     QUANTIZED_DOT("%v, %qw, %qs, %qs", "8", "8", "2", "1", "f32[1]")};
  static const error_case bad[] = {
      {QUANTIZED_DOT("%f, %qw, %qs", "5", "32", "0", "5", "f32[2,5]"), "5 bits, expected 4 or 8"},
      {QUANTIZED_DOT("%f, %qw, %qs", "4", "12", "0", "5", "f32[2,5]"),
       "groups of 12, expected a positive multiple of 8"},
      {QUANTIZED_DOT("%f, %qw, %qs", "4", "0", "0", "5", "f32[2,5]"), "groups of 0, expected a positive multiple of 8"},
      {QUANTIZED_DOT("%f, %qw, %qs", "4", "32", "0", "-1", "f32[2,5]"), "-1 columns"},
      {QUANTIZED_DOT("%f, %qw, %qs", "4", "32", "3", "5", "f32[2,5]"), "form 3, expected 0 to 2"},
      {QUANTIZED_DOT("%f, %qw, %qs", "4", "32", "1", "5", "f32[2,5]"), "3 operands, expected 4 of form 1"},
      {QUANTIZED_DOT("%f, %qw, %qs, %qs", "4", "32", "0", "5", "f32[2,5]"), "4 operands, expected 3 of form 0"},
      {QUANTIZED_DOT("%i, %qw, %qs", "4", "32", "0", "5", "s32[2,5]"), "x is s32, expected f32, f16 or bf16"},
      {QUANTIZED_DOT("%s, %qw, %qs", "4", "32", "0", "5", "f32[5]"), "x is a scalar"},
      {QUANTIZED_DOT("%f, %qs, %qs", "4", "32", "0", "5", "f32[2,5]"), "the words are f16, expected u32"},
      {QUANTIZED_DOT("%f, %qw, %qw", "4", "32", "0", "5", "f32[2,5]"), "the scales are u32, expected f32, f16 or bf16"},
      {QUANTIZED_DOT("%f, %qw, %qs, %qt", "4", "32", "1", "5", "f32[2,5]"),
       "the scales are f16, and the zeros or minimums f32"},
      {QUANTIZED_DOT("%f, %qw, %qs", "4", "32", "0", "65", "f32[2,65]"),
       "the words have another shape than [2, 1, 64]"},
      {QUANTIZED_DOT("%f, %qw, %v", "4", "32", "0", "5", "f32[2,5]"), "the scales have another shape than [1, 1, 64]"},
      {QUANTIZED_DOT("%f, %qw, %qt, %v", "4", "32", "2", "5", "f32[2,5]"),
       "the zeros or minimums have another shape than [1, 1, 64]"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

START_TEST(wide_contraction)
{
  static const char *const good[] = {WIDE_DOT("%f, %d", "[1]", "[1]", "f64[2,2]"),
                                     WIDE_DOT("%u, %i", "[0]", "[0]", "s32[3,3]"),
                                     WIDE_DOT("%f, %f", "[0]", "[0]", "f32[3,3]")};
  static const error_case bad[] = {
      {WIDE_DOT("%u, %u", "[1]", "[1]", "s16[2,2]"),
       "the result is s16, expected a float of 16 bits or a real type of 32 or 64 bits"},
      {WIDE_DOT("%f, %f", "[1]", "[1]", "c64[2,2]"),
       "the result is c64, expected a float of 16 bits or a real type of 32 or 64 bits"},
      {WIDE_DOT("%u, %w", "[1]", "[1]", "f32[2,3]"),
       "contracted axes 1 and 1 have sizes 3 and 2, expected equal sizes"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

START_TEST(contraction)
{
  static const char *const good[] = {
      DOT("%f, %w", "[1]", "[]", "[0]", "[]", "f32[2,2]"),     DOT("%b, %c", "[2]", "[0]", "[1]", "[0]", "f32[5,2,4]"),
      DOT("%b, %c", "[2,0]", "[]", "[1,0]", "[]", "f32[2,4]"), DOT("%i, %j", "[]", "[1]", "[]", "[1]", "s32[3,2,2]"),
      DOT("%b, %z", "[2]", "[0]", "[0]", "[1]", "f32[5,2]"),   DOT("%e, %v", "[1]", "[]", "[0]", "[]", "f32[0]"),
      DOT("%e, %e", "[0]", "[]", "[0]", "[]", "f32[3,3]"),     DOT("%s, %s", "[]", "[]", "[]", "[]", "f32[]"),
  };
  static const error_case bad[] = {
      {DOT("%f, %d", "[1]", "[]", "[1]", "[]", "f32[2,2]"),
       "dot_general(f32[2,3], f64[2,3]): the operands' types differ"},
      {DOT("%f, %g", "[1]", "[]", "[0]", "[]", "f32[2,2]"),
       "contracted axes 1 and 0 have sizes 3 and 2, expected equal sizes"},
      {DOT("%b, %c", "[]", "[1]", "[]", "[1]", "f32[2,2]"),
       "batch axes 1 and 1 have sizes 2 and 3, expected equal sizes"},
      {DOT("%f, %w", "[1]", "[]", "[]", "[]", "f32[2,2]"), "1 left and 0 right contracted axes, expected as many"},
      {DOT("%f, %g", "[]", "[]", "[]", "[0]", "f32[2,2]"), "0 left and 1 right batch axes, expected as many"},
      {DOT("%f, %w", "[2]", "[]", "[0]", "[]", "f32[2,2]"), "the left side has axis 2, expected one of [0, 2)"},
      {DOT("%f, %w", "[1]", "[]", "[-1]", "[]", "f32[2,2]"), "the right side has axis -1, expected one of [0, 2)"},
      {DOT("%f, %g", "[1]", "[1]", "[1]", "[1]", "f32[2,2]"),
       "the left side has an axis that is contracted and batched"},
      {DOT("%m, %v", "[]", "[]", "[]", "[]", "f32[3]"), "the result's rank exceeds 64"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

/* ---- control */

#define IS_TRUE "condition(%1: f32[], %2: s32[]) { %3 = constant 1 : u8[] return %3 }"
#define SAME "body(%4: f32[], %5: s32[]) { return %4, %5 }"

START_TEST(loops)
{
  static const error_case bad[] = {
      {"%r, %t = while { " IS_TRUE SAME " } : f32[], s32[]", "while(): no operands, expected at least one"},
      {"%r, %t = while %s { " IS_TRUE SAME " } : f32[], s32[]", "the condition has 2 parameters, expected 1"},
      {"%r, %t = while %s, %q { " IS_TRUE SAME " } : f32[], s32[]",
       "while(f32[], u64[]): parameter 1 of the condition is s32[], expected u64[]"},
      {"%r, %t = while %s, %n { " IS_TRUE "body(%4: f32[], %5: s32[]) { return %4 } } : f32[], s32[]",
       "the body has 1 results, expected 2"},
      {"%r, %t = while %s, %n { " IS_TRUE "body(%4: f32[]) { return %4, %4 } } : f32[], s32[]",
       "the body has 1 parameters, expected 2"},
      {"%r, %t = while %s, %n { " IS_TRUE "body(%4: f32[], %5: s32[]) { return %4, %4 } } : f32[], s32[]",
       "result 1 of the body is f32[], expected s32[]"},
      {"%r, %t = while %s, %n { condition(%1: f32[], %2: s32[]) { return %1 } " SAME " } : f32[], s32[]",
       "the condition gives f32[], expected u8[]"},
      {"%r, %t = while %s, %n { condition(%1: f32[], %2: s32[]) { return } " SAME " } : f32[], s32[]",
       "the condition has 0 results"},
      {"%r = while %s, %n { " IS_TRUE SAME " } : f32[]", "while has 2 results, expected as many names and types"},
      {"%r, %t = while %s, %n { " IS_TRUE " } : f32[], s32[]", "expected 'body', found '}'"},
  };
  check_ok("%r, %t = while %s, %n { " IS_TRUE SAME " } : f32[], s32[]");
  check_all_errors(bad, COUNT(bad));
}
END_TEST

START_TEST(branches_and_calls)
{
  static const char *const good[] = {
      "%r = cond %p, %s { true(%1: f32[]) { return %1 } false(%2: f32[]) { return %2 } } : f32[]",
      "%r = cond %p { true() { %1 = eye : s8[2,2] return %1 } false() { %2 = eye : s8[2,2] return %2 } } : s8[2,2]",
      "%r, %t = call %s { body(%1: f32[]) { return %1, %1 } } : f32[], f32[]",
      "%r = call { body() { %1 = eye : s8[2,2] return %1 } } : s8[2,2]",
      "%r, %t = callback %s {index = 3} { types() { %1 = eye : s8[2,2] %2 = eye : u8[1,1] return %1, %2 } } : s8[2,2], "
      "u8[1,1]",
      "%r, %t = custom_call %s \"t(a = 1)\" { types() { %1 = eye : s8[2,2] %2 = eye : u8[1,1] return %1, %2 } } : "
      "s8[2,2], u8[1,1]",
      "%r = callback {index = 0} { types() { %1 = eye : s8[2,2] return %1 } } : s8[2,2]",
      "%r = fusion %s, %n {kind = 4294967295} { body(%1: f32[], %2: s32[]) { return %2 } } : s32[]",
  };
  static const error_case bad[] = {
      {"%r = cond { true() { return } false() { return } } : f32[]", "cond(): no operands, expected at least one"},
      {"%r = cond %n { true() { return } false() { return } } : f32[]", "cond(s32[]): expected a predicate u8[]"},
      {"%r = cond %u { true() { return } false() { return } } : f32[]", "cond(u8[2,3]): expected a predicate u8[]"},
      {"%r = cond %p { true() { return } false() { return } } : f32[]",
       "the region has no results, expected at least one"},
      {"%r = cond %p, %s { true(%1: f32[]) { return %1 } false() { return } } : f32[]",
       "the false branch has 0 parameters, expected 1"},
      {"%r = cond %p, %s { true(%1: s32[]) { return %1 } false(%2: f32[]) { return %2 } } : f32[]",
       "parameter 0 of the true branch is s32[], expected f32[]"},
      {"%r = cond %p, %s { true(%1: f32[]) { return %1 } false(%2: f32[]) { return %2, %2 } } : f32[]",
       "the false branch has 2 results, expected 1"},
      {"%r = cond %p, %s { true(%1: f32[]) { return %1 } false(%2: f32[]) { %3 = is_nan %2 : u8[] return %3 } } : "
       "f32[]",
       "result 0 of the false branch is u8[], expected f32[]"},
      {"%r = call %s { body() { return } } : f32[]", "call(f32[]): the body has 0 parameters, expected 1"},
      {"%r = call { body() { return } } : f32[]", "the region has no results, expected at least one"},
      {"%r = callback %s {index = 0} { types(%1: f32[]) { return %1 } } : f32[]",
       "callback(f32[]): the region of types has 1 parameters, expected none"},
      {"%r = callback %s {index = 0} { types() { return } } : f32[]",
       "the region has no results, expected at least one"},
      {"%r = custom_call %s \"t\" { types(%1: f32[]) { return %1 } } : f32[]",
       "custom_call(f32[]): the region of types has 1 parameters, expected none"},
      {"%r = custom_call %s \"\" { types() { %1 = constant 0.0 : f32[] return %1 } } : f32[]",
       "custom_call(f32[]): expected the text of a call as u8[n]"},
      {"%r = fusion %s {kind = 0} { body(%1: f64[]) { return %1 } } : f64[]",
       "fusion(f32[]): parameter 0 of the body is f64[], expected f32[]"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

START_TEST(collectives)
{
  static const char *const good[] = {
      "%r = sharding_constraint %f {axes = [1,0], dims = [1,0]} : f32[2,3]",
      "%r, %t = all_reduce_sum %f, %i {axes = [0,1]} : f32[2,3], s32[2,3]",
      "%r = all_reduce_product %f {axes = []} : f32[2,3]",
      "%r = all_reduce_min %f {axes = [0]} : f32[2,3]",
      "%r = all_reduce_max %f {axes = [1]} : f32[2,3]",
      "%r = all_reduce_and %f {axes = [1]} : f32[2,3]",
      "%r = all_reduce_or %f {axes = [1]} : f32[2,3]",
      "%r, %t = all_gather %f, %w {axes = [1,0], dim = 0} : f32[12,3], f32[18,2]",
      "%r = reduce_scatter %f {axes = [1], dim = 1} : f32[2,1]",
      "%r = all_to_all %f {axes = [0], split = 0, concat = 1} : f32[1,6]",
      "%r = collective_permute %f {axes = [0,1], sources = [0,5], targets = [5,0]} : f32[2,3]",
      "%r = collective_broadcast %f {axes = [1], root = 2} : f32[2,3]",
      "%r, %t = barrier %f, %s {axes = [0]} : f32[2,3], f32[]",
  };
  static const error_case bad[] = {
      {"%r = sharding_constraint %f {axes = [0], dims = [1]} : f32[2,3]",
       "dim 1 of size 3 is cut into 2 parts, expected a divisor"},
      {"%r = sharding_constraint %f {axes = [0,0], dims = [0,1]} : f32[2,3]", "has axis 0 twice"},
      {"%r = sharding_constraint %f {axes = [0], dims = [2]} : f32[2,3]", "cuts dim 2, expected one of [0, 2)"},
      {"%r = sharding_constraint %f {axes = [0], dims = []} : f32[2,3]", "1 axes and 0 dims, expected as many"},
      {"%r = all_reduce_sum {axes = [0]} : f32[2,3]", "no operands, expected at least one"},
      {"%r = all_reduce_sum %f {axes = [2]} : f32[2,3]", "axes has axis 2, expected one of [0, 2)"},
      {"%r = all_reduce_product %f {axes = [-1]} : f32[2,3]", "axes has axis -1"},
      {"%r = all_reduce_min %f {axes = [0,0]} : f32[2,3]", "axes has axis 0 twice"},
      {"%r = all_reduce_max %f {axes = [7]} : f32[2,3]", "axes has axis 7"},
      {"%r = all_reduce_and %f {axes = [7]} : f32[2,3]", "axes has axis 7"},
      {"%r = all_reduce_or %f {axes = [7]} : f32[2,3]", "axes has axis 7"},
      {"%r = all_gather %f {axes = [0], dim = 2} : f32[2,3]", "dim is 2, expected one of [0, 2) for rank 2"},
      {"%r = all_gather %s {axes = [0], dim = 0} : f32[]", "dim is 0, expected one of [0, 0) for rank 0"},
      {"%r = reduce_scatter %f {axes = [0], dim = 1} : f32[2,3]", "dim 1 has size 3, expected a multiple of 2"},
      {"%r = all_to_all %f {axes = [0], split = 1, concat = 0} : f32[2,3]",
       "dim 1 has size 3, expected a multiple of 2"},
      {"%r = all_to_all %f {axes = [0], split = 0, concat = 3} : f32[2,3]", "concat is 3"},
      {"%r = collective_permute %f {axes = [0], sources = [0], targets = [2]} : f32[2,3]",
       "targets has member 2, expected one of [0, 2)"},
      {"%r = collective_permute %f {axes = [0], sources = [0,0], targets = [0,1]} : f32[2,3]",
       "sources has member 0 twice"},
      {"%r = collective_permute %f {axes = [0], sources = [0,1], targets = [0]} : f32[2,3]",
       "2 sources and 1 targets, expected as many"},
      {"%r = collective_broadcast %f {axes = [0], root = 2} : f32[2,3]", "root is 2, expected one of [0, 2)"},
      {"%r = barrier %f {axes = [3]} : f32[2,3]", "axes has axis 3"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

/* Runs in one process with all others: see main(). */
START_TEST(every_op_was_tried)
{
  for (int op = 0; op < TS_OP_COUNT; op++) {
    const char *name = ts_op_name((ts_opcode)op);
    ck_assert_msg(seen_ok[op] || op == TS_OP_PARAMETER, "%s: no good case", name);
    ck_assert_msg(seen_error[op], "%s: no error case", name);
  }
}
END_TEST

START_TEST(long_operand_lists_are_cut)
{
  check_error("%r = concatenate %f, %f, %f, %f, %f, %f, %f, %s {axis = 0} : f32[1]",
              "f32[2,3], ... 8 in all): operand 7 is f32[]");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("infer");
  TCase *tests = tcase_create("infer");
  tcase_add_test(tests, elementwise_by_class);
  tcase_add_test(tests, elementwise_others);
  tcase_add_test(tests, sources);
  tcase_add_test(tests, shape_ops);
  tcase_add_test(tests, shape_errors);
  tcase_add_test(tests, indexed_ops);
  tcase_add_test(tests, windows);
  tcase_add_test(tests, convolutions);
  tcase_add_test(tests, linear_algebra);
  tcase_add_test(tests, fourier);
  tcase_add_test(tests, reductions);
  tcase_add_test(tests, general_reduce);
  tcase_add_test(tests, arg_reductions_and_scans);
  tcase_add_test(tests, sorts);
  tcase_add_test(tests, contraction);
  tcase_add_test(tests, scaled_contraction);
  tcase_add_test(tests, quantized_contraction);
  tcase_add_test(tests, wide_contraction);
  tcase_add_test(tests, loops);
  tcase_add_test(tests, branches_and_calls);
  tcase_add_test(tests, collectives);
  tcase_add_test(tests, long_operand_lists_are_cut);
  tcase_add_test(tests, every_op_was_tried);
  suite_add_tcase(suite, tests);
  setenv("CK_FORK", "no", 1); /* so that every_op_was_tried sees the other tests */
  return testing_run(suite);
}
