#include "infer_case.h"

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

void check_ok(const char *line) {
  note(line, seen_ok);
  ts_status status = parse_line(line);
  ck_assert_msg(!status, "%s: %s", line, ts_status_message(status));
}

void check_code(const char *line, ts_code code, const char *message) {
  note(line, seen_error);
  ts_status status = parse_line(line);
  ck_assert_msg(ts_status_code(status) == code, "%s: %s", line, ts_status_message(status));
  ck_assert_msg(strstr(ts_status_message(status), message), "%s: no \"%s\" in: %s", line, message,
                ts_status_message(status));
  ts_status_free(status);
}

void check_error(const char *line, const char *message) { check_code(line, TS_INVALID_ARGUMENT, message); }

void check_all_ok(const char *const *lines, int count) {
  for (int i = 0; i < count; i++) check_ok(lines[i]);
}

void check_all_errors(const error_case *cases, int count) {
  for (int i = 0; i < count; i++) check_error(cases[i].line, cases[i].message);
}

void check_every_op_was_tried(void) {
  for (int op = 0; op < TS_OP_COUNT; op++) {
    const char *name = ts_op_name((ts_opcode)op);
    ck_assert_msg(seen_ok[op] || op == TS_OP_PARAMETER, "%s: no good case", name);
    ck_assert_msg(seen_error[op], "%s: no error case", name);
  }
}
