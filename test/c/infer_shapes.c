/* Inference of ops on shapes, indices, windows and matrices. */
#include "infer_case.h"

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

void infer_add_shapes(TCase *tests) {
  tcase_add_test(tests, shape_ops);
  tcase_add_test(tests, shape_errors);
  tcase_add_test(tests, indexed_ops);
  tcase_add_test(tests, windows);
  tcase_add_test(tests, convolutions);
  tcase_add_test(tests, linear_algebra);
  tcase_add_test(tests, fourier);
}
