/* Inference of loops, branches, calls and collectives. */
#include "infer_case.h"

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

void infer_add_control(TCase *tests) {
  tcase_add_test(tests, loops);
  tcase_add_test(tests, branches_and_calls);
  tcase_add_test(tests, collectives);
}
