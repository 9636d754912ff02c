/* Inference of reductions, scans, sorts and contractions. */
#include "infer_case.h"

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

void infer_add_reductions(TCase *tests) {
  tcase_add_test(tests, reductions);
  tcase_add_test(tests, general_reduce);
  tcase_add_test(tests, arg_reductions_and_scans);
  tcase_add_test(tests, sorts);
  tcase_add_test(tests, contraction);
  tcase_add_test(tests, scaled_contraction);
  tcase_add_test(tests, quantized_contraction);
  tcase_add_test(tests, wide_contraction);
}
