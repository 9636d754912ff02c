/* The text form: scalars, print -> parse -> print, and texts that are wrong. */
#include "graph_text.h"
#include "ir/syntax.h"

#include <locale.h>
#include <math.h>

static void check_round_trip(const char *text, size_t length, const char *expected) {
  ts_graph *graph, *again;
  ck_assert_ok(ts_graph_parse(text, length, &graph));
  ck_assert_ok(ts_graph_verify(graph));
  char *first = graph_text(graph);
  if (expected) ck_assert_str_eq(first, expected);
  ck_assert_ok(ts_graph_parse(first, strlen(first), &again));
  char *second = graph_text(again);
  ck_assert_str_eq(first, second);
  ts_free(first);
  ts_free(second);
  ts_graph_destroy(graph);
  ts_graph_destroy(again);
}

/* The golden file with the ops in canonical form, without its first line, a comment; to be freed by free(). */
static char *read_ops(const char *path) {
  char *text = testing_read(path), *end = strchr(text, '\n');
  ck_assert_ptr_nonnull(end);
  memmove(text, end + 1, strlen(end + 1) + 1);
  return text;
}

#define EVERY_OP "test/golden/ir/every_op.ts"

/* every_op.ts has the ops with a form in StableHLO; the file is also written in StableHLO. */
static const char *const op_files[] = {EVERY_OP, "test/golden/ir/callback.ts", "test/golden/ir/linalg.ts"};

static bool is_written(const char *text, ts_opcode op) {
  char name[64];
  snprintf(name, sizeof name, "= %s ", ts_op_name(op));
  return strstr(text, name);
}

START_TEST(every_op_round_trips)
{
  bool written[TS_OP_COUNT] = {[TS_OP_PARAMETER] = true};
  written[TS_OP_CUSTOM_CALL] = true; /* test/erl/tessera_plugin_tests.erl */
  for (size_t i = 0; i < sizeof op_files / sizeof *op_files; i++) {
    char *text = read_ops(op_files[i]);
    for (int op = 0; op < TS_OP_COUNT; op++) written[op] |= is_written(text, (ts_opcode)op);
    check_round_trip(text, strlen(text), text);
    free(text);
  }
  for (int op = 0; op < TS_OP_COUNT; op++) {
    bool collective = ts_op_get_class((ts_opcode)op) == TS_CLASS_COLLECTIVE; /* collectives.ts */
    ck_assert_msg(collective || written[op], "no %s in the files", ts_op_name((ts_opcode)op));
  }
}
END_TEST

START_TEST(every_cut_is_an_error)
{
  char *text = read_ops(EVERY_OP);
  size_t length = strlen(text);
  for (size_t n = 0; n < length - 2; n += n < 400 ? 1 : 7) {
    ts_graph *graph;
    char *exact = malloc(n + 1); /* so that a sanitizer sees reads past the end */
    memcpy(exact, text, n);
    ts_status status = ts_graph_parse(exact, n, &graph);
    ck_assert_int_eq(ts_status_code(status), TS_INVALID_ARGUMENT);
    ck_assert_int_eq(strncmp(ts_status_message(status), "line ", 5), 0);
    ck_assert_ptr_null(graph);
    ts_status_free(status);
    free(exact);
  }
  free(text);
}
END_TEST

/* One byte changed anywhere: an error, or a graph that is whole. */
START_TEST(changed_bytes)
{
  char *text = read_ops(EVERY_OP);
  size_t length = strlen(text);
  uint64_t seed = 88172645463325252u;
  for (int i = 0; i < 3000; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    char *at = text + seed % length, old = *at;
    *at = "0123456789abc%[]{}(),:=-\"@ \n\x01\xff"[(seed >> 32) % 31];
    ts_graph *graph;
    ts_status status = ts_graph_parse(text, length, &graph);
    if (!status) status = ts_graph_verify(graph);
    ck_assert_msg(ts_status_code(status) != TS_INTERNAL, "%s", ts_status_message(status));
    ts_status_free(status);
    ts_graph_destroy(graph);
    *at = old;
  }
  free(text);
}
END_TEST

/* ---- scalars */

static const char *scalar_text(ts_dtype type, uint64_t bits) {
  static char out[64];
  ts_text text = {0};
  ts_scalar_print(&text, type, (ts_scalar){.bits = bits});
  ck_assert(!text.failed);
  snprintf(out, sizeof out, "%s", text.data);
  ts_text_deinit(&text);
  return out;
}

static void check_scalar(ts_dtype type, uint64_t bits) {
  const char *text = scalar_text(type, bits);
  ts_scalar back;
  ck_assert_msg(ts_scalar_parse(type, text, strlen(text), &back), "%s %s", ts_dtype_name(type), text);
  ck_assert_msg(back.bits == bits, "%s %s", ts_dtype_name(type), text);
}

START_TEST(scalars_of_16_bits)
{
  static const ts_dtype types[] = {TS_F16, TS_BF16, TS_S16, TS_U16};
  for (int t = 0; t < 4; t++) {
    for (uint64_t bits = 0; bits < 0x10000; bits++) check_scalar(types[t], bits);
  }
  for (uint64_t bits = 0; bits < 0x100; bits++) {
    check_scalar(TS_S8, bits);
    check_scalar(TS_U8, bits);
  }
}
END_TEST

START_TEST(scalars_of_many_bits)
{
  static const ts_dtype types[] = {TS_F32, TS_F64, TS_S32, TS_U32, TS_S64, TS_U64};
  uint64_t seed = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < 20000; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    for (int t = 0; t < 6; t++) {
      int bits = ts_dtype_bits(types[t]);
      check_scalar(types[t], seed >> (64 - bits));
      check_scalar(types[t], (UINT64_C(1) << (seed % (unsigned)bits)) - (seed >> 63));
    }
  }
}
END_TEST

START_TEST(scalar_spelling)
{
  ck_assert_str_eq(scalar_text(TS_F32, 0), "0.0");
  ck_assert_str_eq(scalar_text(TS_F32, 0x80000000), "-0.0");
  ck_assert_str_eq(scalar_text(TS_F32, 0x3dcccccd), "0.1");
  ck_assert_str_eq(scalar_text(TS_F32, 0x7f800000), "0x7f800000");
  ck_assert_str_eq(scalar_text(TS_F16, 0x7e01), "0x7e01");
  ck_assert_str_eq(scalar_text(TS_F64, 0x7ff0000000000001), "0x7ff0000000000001");
  ck_assert_str_eq(scalar_text(TS_S64, UINT64_C(1) << 63), "-9223372036854775808");
  ck_assert_str_eq(scalar_text(TS_S8, 0xff), "-1");
  ck_assert_str_eq(scalar_text(TS_U64, UINT64_MAX), "18446744073709551615");
}
END_TEST

START_TEST(scalar_refusals)
{
  static const struct {
    ts_dtype type;
    const char *text;
  } bad[] = {
      {TS_U8, "256"},
      {TS_U8, "-1"},
      {TS_S8, "128"},
      {TS_S8, "-129"},
      {TS_S64, "9223372036854775808"},
      {TS_U64, "18446744073709551616"},
      {TS_S32, "1.0"},
      {TS_S32, ""},
      {TS_S32, "-"},
      {TS_S32, "1x"},
      {TS_S8, "0x100"},
      {TS_F32, "1e39"},
      {TS_F16, "65520"},
      {TS_F64, "1e999"},
      {TS_F32, "inf"},
      {TS_F32, "nan"},
      {TS_F32, "-inf"},
      {TS_F32, " 1"},
      {TS_F32, "1 "},
      {TS_F32, "1,5"},
      {TS_F32, "-"},
      {TS_F32, ""},
      {TS_F32, "-0x1p3"},
      {TS_F32, "0x"},
      {TS_F32, "0x1ffffffff"},
      {TS_F16, "0x10000"},
      {TS_F32, "1e"},
      {TS_C64, "1"},
      {TS_C64, "(1)"},
      {TS_C64, "(1,2"},
      {TS_C64, "(1,2,3)"},
      {TS_C64, "(1,nan)"},
      {TS_C64, "(,)"},
      {TS_C128, "()"},
  };
  ts_scalar out;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_msg(!ts_scalar_parse(bad[i].type, bad[i].text, strlen(bad[i].text), &out), "%s %s",
                  ts_dtype_name(bad[i].type), bad[i].text);
  ck_assert(!ts_scalar_parse(TS_F32, "1\0", 2, &out));
  ck_assert(ts_scalar_parse(TS_U8, "-0", 2, &out) && out.bits == 0);
}
END_TEST

START_TEST(scalars_in_another_locale)
{
  const char *locale = setlocale(LC_ALL, "de_DE.UTF-8");
  if (!locale) return; /* not installed here */
  ck_assert_str_eq(scalar_text(TS_F32, 0x3fc00000), "1.5");
  check_scalar(TS_F64, 0x3fb999999999999a);
  ck_assert_str_eq(setlocale(LC_ALL, NULL), locale);
}
END_TEST

/* ---- wrong texts */

static void check_error(const char *text, const char *message) {
  ts_graph *graph;
  ts_status status = ts_graph_parse(text, strlen(text), &graph);
  ck_assert_msg(status != NULL, "no error: %s", text);
  ck_assert_msg(strstr(ts_status_message(status), message), "no \"%s\" in \"%s\"", message, ts_status_message(status));
  ts_status_free(status);
}

#define WITH(op) "graph @t(%0: f32[2]) -> () {\n  " op "\n  return\n}\n"

START_TEST(errors_have_places)
{
  check_error("", "line 1, column 1: expected 'graph', found the end");
  check_error("\n\n  grph", "line 3, column 3: expected 'graph', found 'grph'");
  check_error("graph main", "line 1, column 7: expected the graph's name, as @main, found 'main'");
  check_error("graph @\"a\\zz\"() -> () { return }", "expected two hexadecimal digits after a backslash");
  check_error("graph @\"a\\00\"() -> () { return }", "expected two hexadecimal digits after a backslash");
  check_error("graph @\"a\\4\"() -> () { return }", "expected two hexadecimal digits after a backslash");
  check_error("graph @\"a", "line 1, column 8: expected the graph's name, found 'a'");
  check_error("graph @t(%0: f32[2], %0: f32[2]) -> () { return }",
              "line 1, column 22: expected a new value name, found '0'");
  check_error("graph @t(%0: q32[2]) -> () { return }", "line 1, column 14: expected a type, found 'q32'");
  check_error("graph @t(%0: f32[2) -> () { return }", "line 1, column 19: expected ']', found ')'");
  check_error("graph @t(%0: f32[x]) -> () { return }", "expected an integer, found 'x'");
  check_error("graph @t(%0: f32[99999999999999999999]) -> () { return }",
              "expected an integer, found '99999999999999999999'");
  check_error("graph @t(%0: f32[-1]) -> () { return }", "line 1, column 10: parameter: ");
  check_error(
      "graph @t(%0: f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]) -> () { return }",
      "expected at most 64 entries");
  check_error("graph @t(%0: f32[4294967296,4294967296]) -> () { return }", "parameter: f32[4294967296,4294967296]");
  check_error("graph @t() -> (f32[]) { return }", "line 1, column 12: 1 result types, expected 0");
  check_error("graph @t(%0: f32[2]) -> (f32[3]) { return %0 }", "the result is said to be f32[3], expected f32[2]");
  check_error("graph @t() -> () { return } x", "line 1, column 29: expected the end, found 'x'");
  check_error("graph @t() -> () { return %1 }", "expected a value that is defined before, found '1'");
  check_error("graph @t() -> () { \x01 }", "expected a value or 'return', found '?'");
  check_error(WITH("%1 = nop %0 : f32[2]"), "line 2, column 8: expected an op, found 'nop'");
  check_error(WITH("%1 = exp %0"), "line 3, column 3: expected ':', found 'return'");
  check_error(WITH("%1 = exp %0, : f32[2]"), "line 2, column 16: expected a value, found ':'");
  check_error(WITH("%1 = exp %1 : f32[2]"), "expected a value that is defined before, found '1'");
  check_error(WITH("%0 = exp %0 : f32[2]"), "expected a new value name, found '0'");
  check_error(WITH("%1 = exp %0 : f64[2]"), "line 2, column 8: the result is said to be f64[2], expected f32[2]");
  check_error(WITH("%1, %2 = exp %0 : f32[2], f32[2]"), "exp has 1 results, expected as many names and types");
  check_error(WITH("%1 = reverse %0 : f32[2]"), "expected '{', found ':'");
  check_error(WITH("%1 = reverse %0 {axis = [0]} : f32[2]"), "expected 'axes', found 'axis'");
  check_error(WITH("%1 = reverse %0 {axes = 0} : f32[2]"), "expected '[', found '0'");
  check_error(WITH("%1 = concatenate %0 {axis = 4294967296} : f32[2]"),
              "expected an integer from -2147483648 to 2147483647");
  check_error(WITH("%1 = argmax %0 {axis = 0, high = 1} : s32[]"), "expected 'false', found '1'");
  check_error(WITH("%1 = fusion {kind = -1} { body() { return } } : s32[]"),
              "expected an integer from 0 to 4294967295");
  check_error(WITH("%1 = call %0 { body(%2: f32[2]) { return %0 } } : f32[2]"), "result 0 belongs to another region");
  check_error(WITH("%1 = constant 0 : c64[]"), "expected a number of type c64");
  check_error(WITH("%1 = constant (0, 1) : f32[]"), "expected a number of type f32");
  check_error(WITH("%1 = constant (0, 1 : c64[]"), "expected ')'");
  check_error(WITH("%1 = literal \"00\" : f32[1152921504606846976]"), "expected 4611686018427387904 bytes");
  check_error(WITH("%1 = literal \"00\" : f32[4611686018427387904]"), "line 2, column 8: f32[4611686018427387904]");
}
END_TEST

START_TEST(long_tokens_are_cut)
{
  char text[2000] = "graph ";
  memset(text + 6, 'x', sizeof text - 7);
  text[sizeof text - 1] = '\0';
  check_error(text, "found 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'");
  char named[700] = "graph @";
  memset(named + 7, 'n', 600);
  strcpy(named + 607, "() -> () {\n  return\n}\n");
  check_round_trip(named, strlen(named), named);
}
END_TEST

/* `levels` calls in one another. */
static char *nested_text(int levels) {
  ts_text text = {0};
  char *string;
  ts_text_append(&text, "graph @t(%0: f32[]) -> (f32[]) { ");
  for (int i = 1; i <= levels; i++) ts_text_format(&text, "%%r%d = call %%%d { body(%%%d: f32[]) { ", i, i - 1, i);
  ts_text_format(&text, "return %%%d } ", levels);
  for (int i = levels; i >= 1; i--) ts_text_format(&text, "} : f32[] return %%r%d } ", i);
  ck_assert_ok(ts_text_finish(&text, &string));
  return string;
}

START_TEST(deep_texts)
{
  char *text = nested_text(TS_MAX_NESTING);
  check_round_trip(text, strlen(text), NULL);
  ts_free(text);
  text = nested_text(TS_MAX_NESTING + 1);
  check_error(text, "expected regions nested at most 1000 deep");
  ts_free(text);
  text = nested_text(100000);
  check_error(text, "expected regions nested at most 1000 deep");
  ts_free(text);
}
END_TEST

START_TEST(long_texts)
{
  ts_text text = {0};
  char *string;
  ts_text_append(&text, "graph @t(%0: f32[2]) -> (f32[200000]) {\n");
  for (int i = 1; i <= 20000; i++) ts_text_format(&text, "  %%%d = exp %%%d : f32[2]\n", i, i - 1);
  ts_text_append(&text, "  %20001 = concatenate ");
  for (int i = 0; i < 100000; i++) ts_text_append(&text, i ? ", %20000" : "%20000");
  ts_text_append(&text, " {axis = 0} : f32[200000]\n  return %20001\n}\n");
  ck_assert_ok(ts_text_finish(&text, &string));
  check_round_trip(string, strlen(string), string);
  ts_free(string);
}
END_TEST

/* ---- memory */

static const char memory_text[] = WITH("%1 = literal \"0001\" : u8[2] %2 = constant 0.1 : f64[] "
                                       "%3, %4 = call %0 { body(%5: f32[2]) { return %5, %5 } } : f32[2], f32[2] "
                                       "%6 = reverse %4 {axes = [0]} : f32[2]");

static void parse_and_print(const char *source) {
  ts_graph *graph;
  ts_text text = {0};
  ts_status status = ts_graph_parse(source, strlen(source), &graph);
  if (!status) status = ts_graph_verify(graph);
  if (!status) status = ts_graph_print(graph, &text);
  if (status) ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
  ts_status_free(status);
  ts_text_deinit(&text);
  ts_graph_destroy(graph);
}

START_TEST(every_allocation_fails)
{
  parse_and_print(memory_text); /* makes the values that are made once, such as the pool */
  CK_FAIL_EACH_ALLOCATION(parse_and_print(memory_text));
}
END_TEST

static void parse_wrong(void) {
  static const char wrong[] = WITH("%1 = literal \"00zz\" : u8[2]");
  ts_graph *graph;
  ts_status_free(ts_graph_parse(wrong, strlen(wrong), &graph));
}

START_TEST(wrong_texts_leak_nothing)
{ CK_FAIL_EACH_ALLOCATION(parse_wrong()); }
END_TEST

int main(void) {
  Suite *suite = suite_create("text");
  TCase *tests = tcase_create("text");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, every_op_round_trips);
  tcase_add_test(tests, every_cut_is_an_error);
  tcase_add_test(tests, changed_bytes);
  tcase_add_test(tests, scalars_of_16_bits);
  tcase_add_test(tests, scalars_of_many_bits);
  tcase_add_test(tests, scalar_spelling);
  tcase_add_test(tests, scalar_refusals);
  tcase_add_test(tests, scalars_in_another_locale);
  tcase_add_test(tests, errors_have_places);
  tcase_add_test(tests, long_tokens_are_cut);
  tcase_add_test(tests, deep_texts);
  tcase_add_test(tests, long_texts);
  tcase_add_test(tests, every_allocation_fails);
  tcase_add_test(tests, wrong_texts_leak_nothing);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
