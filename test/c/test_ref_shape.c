/* Sources, shape ops and indexed ops of the reference interpreter. */
#include "tensors.h"
#include "testing.h"

#include <math.h>

/* f32[2,3] of 1 .. 6. */
static ts_buffer *matrix(void) { return TENSOR(TS_F32, SHAPE(2, 3), 1, 2, 3, 4, 5, 6); }

static ts_buffer *run_source(ts_opcode code, const ts_attrs *attrs) { return test_run_op(code, attrs, NULL, 0); }

START_TEST(iota)
{
  ts_attrs attrs = {.iota = {.dtype = TS_S32, .shape = SHAPE(2, 3), .axis = -1}};
  test_equal(run_source(TS_OP_IOTA, &attrs), TENSOR(TS_S32, SHAPE(2, 3), 0, 1, 2, 3, 4, 5));
  attrs.iota.axis = 0;
  test_equal(run_source(TS_OP_IOTA, &attrs), TENSOR(TS_S32, SHAPE(2, 3), 0, 0, 0, 1, 1, 1));
  attrs.iota.axis = 1, attrs.iota.dtype = TS_BF16;
  test_equal(run_source(TS_OP_IOTA, &attrs), TENSOR(TS_BF16, SHAPE(2, 3), 0, 1, 2, 0, 1, 2));
  attrs = (ts_attrs){.iota = {.dtype = TS_F32, .shape = SHAPE(), .axis = -1}};
  test_equal(run_source(TS_OP_IOTA, &attrs), SCALAR(TS_F32, 0));
  attrs = (ts_attrs){.iota = {.dtype = TS_F32, .shape = SHAPE(3, 0), .axis = 0}};
  test_equal(run_source(TS_OP_IOTA, &attrs), TENSOR(TS_F32, SHAPE(3, 0)));
}
END_TEST

START_TEST(eye)
{
  ts_attrs attrs = {.shaped = {.dtype = TS_U8, .shape = SHAPE(2, 2, 3)}};
  test_equal(run_source(TS_OP_EYE, &attrs), TENSOR(TS_U8, SHAPE(2, 2, 3), 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0));
}
END_TEST

START_TEST(constants)
{
  ts_attrs attrs = {.constant = {.dtype = TS_F16, .shape = SHAPE(2), .value = ts_scalar_from_f64(TS_F16, -0.0)}};
  test_equal(run_source(TS_OP_CONSTANT, &attrs), VECTOR(TS_F16, -0.0, -0.0));
  ts_buffer *data = matrix();
  attrs = (ts_attrs){.literal = {.buffer = data}};
  test_equal(run_source(TS_OP_LITERAL, &attrs), matrix());
  ts_buffer_release(data);
}
END_TEST

START_TEST(reshape)
{
  ts_attrs attrs = {.shape = SHAPE(3, 1, 2)};
  test_equal(RUN(TS_OP_RESHAPE, &attrs, matrix()), TENSOR(TS_F32, SHAPE(3, 1, 2), 1, 2, 3, 4, 5, 6));
  attrs.shape = SHAPE();
  test_equal(RUN(TS_OP_RESHAPE, &attrs, TENSOR(TS_S8, SHAPE(1, 1), 7)), SCALAR(TS_S8, 7));
  attrs.shape = SHAPE(0, 7);
  test_equal(RUN(TS_OP_RESHAPE, &attrs, TENSOR(TS_S8, SHAPE(3, 0))), TENSOR(TS_S8, SHAPE(0, 7)));
}
END_TEST

START_TEST(broadcast)
{
  ts_attrs attrs = {.broadcast = {.shape = SHAPE(2, 3), .axes = SHAPE(1)}};
  test_equal(RUN(TS_OP_BROADCAST, &attrs, VECTOR(TS_S16, 1, 2, 3)), TENSOR(TS_S16, SHAPE(2, 3), 1, 2, 3, 1, 2, 3));
  attrs.broadcast.axes = SHAPE(0);
  test_equal(RUN(TS_OP_BROADCAST, &attrs, VECTOR(TS_S16, 1, 2)), TENSOR(TS_S16, SHAPE(2, 3), 1, 1, 1, 2, 2, 2));
  attrs.broadcast.axes = SHAPE(0, 1); /* size 1 stretches */
  test_equal(RUN(TS_OP_BROADCAST, &attrs, TENSOR(TS_S16, SHAPE(2, 1), 1, 2)),
             TENSOR(TS_S16, SHAPE(2, 3), 1, 1, 1, 2, 2, 2));
  attrs = (ts_attrs){.broadcast = {.shape = SHAPE(3), .axes = SHAPE()}};
  test_equal(RUN(TS_OP_BROADCAST, &attrs, SCALAR(TS_F64, 5)), VECTOR(TS_F64, 5, 5, 5));
  attrs = (ts_attrs){.broadcast = {.shape = SHAPE(0, 2), .axes = SHAPE(1)}};
  test_equal(RUN(TS_OP_BROADCAST, &attrs, VECTOR(TS_F64, 5, 6)), TENSOR(TS_F64, SHAPE(0, 2)));
}
END_TEST

START_TEST(transpose)
{
  ts_attrs attrs = {.axes = SHAPE(1, 0)};
  test_equal(RUN(TS_OP_TRANSPOSE, &attrs, matrix()), TENSOR(TS_F32, SHAPE(3, 2), 1, 4, 2, 5, 3, 6));
  attrs.axes = SHAPE(2, 0, 1); /* result[i, j, k] = operand[j, k, i] */
  test_equal(RUN(TS_OP_TRANSPOSE, &attrs, TENSOR(TS_U8, SHAPE(2, 1, 3), 1, 2, 3, 4, 5, 6)),
             TENSOR(TS_U8, SHAPE(3, 2, 1), 1, 4, 2, 5, 3, 6));
  attrs.axes = SHAPE();
  test_equal(RUN(TS_OP_TRANSPOSE, &attrs, SCALAR(TS_U8, 3)), SCALAR(TS_U8, 3));
}
END_TEST

START_TEST(reverse)
{
  ts_attrs attrs = {.axes = SHAPE(1)};
  test_equal(RUN(TS_OP_REVERSE, &attrs, matrix()), TENSOR(TS_F32, SHAPE(2, 3), 3, 2, 1, 6, 5, 4));
  attrs.axes = SHAPE(0, 1);
  test_equal(RUN(TS_OP_REVERSE, &attrs, matrix()), TENSOR(TS_F32, SHAPE(2, 3), 6, 5, 4, 3, 2, 1));
  test_equal(RUN(TS_OP_REVERSE, &attrs, TENSOR(TS_F32, SHAPE(0, 2))), TENSOR(TS_F32, SHAPE(0, 2)));
}
END_TEST

START_TEST(slice)
{
  ts_attrs attrs = {.slice = {.start = SHAPE(0, 1), .limit = SHAPE(2, 3), .stride = SHAPE(1, 1)}};
  test_equal(RUN(TS_OP_SLICE, &attrs, matrix()), TENSOR(TS_F32, SHAPE(2, 2), 2, 3, 5, 6));
  attrs = (ts_attrs){.slice = {.start = SHAPE(1), .limit = SHAPE(7), .stride = SHAPE(3)}};
  test_equal(RUN(TS_OP_SLICE, &attrs, VECTOR(TS_S32, 0, 1, 2, 3, 4, 5, 6)), VECTOR(TS_S32, 1, 4));
  attrs = (ts_attrs){.slice = {.start = SHAPE(2), .limit = SHAPE(2), .stride = SHAPE(1)}};
  test_equal(RUN(TS_OP_SLICE, &attrs, VECTOR(TS_S32, 0, 1)), TENSOR(TS_S32, SHAPE(0)));
}
END_TEST

static ts_buffer *run_pad(int64_t low, int64_t high, int64_t interior) {
  ts_attrs attrs = {.pad = {.low = SHAPE(low), .high = SHAPE(high), .interior = SHAPE(interior)}};
  return RUN(TS_OP_PAD, &attrs, VECTOR(TS_S8, 1, 2, 3), SCALAR(TS_S8, 9));
}

START_TEST(pad)
{
  test_equal(run_pad(1, 2, 0), VECTOR(TS_S8, 9, 1, 2, 3, 9, 9));
  test_equal(run_pad(0, 0, 2), VECTOR(TS_S8, 1, 9, 9, 2, 9, 9, 3));
  test_equal(run_pad(-1, 0, 0), VECTOR(TS_S8, 2, 3));
  test_equal(run_pad(0, -2, 0), VECTOR(TS_S8, 1));
  test_equal(run_pad(-1, -1, 1), VECTOR(TS_S8, 9, 2, 9));
  test_equal(run_pad(-2, 1, 1), VECTOR(TS_S8, 2, 9, 3, 9));
  test_equal(run_pad(-3, 0, 0), TENSOR(TS_S8, SHAPE(0)));
  test_equal(run_pad(-4, 2, 0), VECTOR(TS_S8, 9));
  ts_attrs attrs = {.pad = {.low = SHAPE(1), .high = SHAPE(1), .interior = SHAPE(3)}};
  test_equal(RUN(TS_OP_PAD, &attrs, TENSOR(TS_F32, SHAPE(0)), SCALAR(TS_F32, 7)), VECTOR(TS_F32, 7, 7));
  attrs = (ts_attrs){.pad = {.low = SHAPE(1, -1), .high = SHAPE(0, 0), .interior = SHAPE(0, 0)}};
  test_equal(RUN(TS_OP_PAD, &attrs, matrix(), SCALAR(TS_F32, 0)), TENSOR(TS_F32, SHAPE(3, 2), 0, 0, 2, 3, 5, 6));
}
END_TEST

START_TEST(concatenate)
{
  ts_attrs attrs = {.axis = 1};
  test_equal(RUN(TS_OP_CONCATENATE, &attrs, matrix(), TENSOR(TS_F32, SHAPE(2, 0)), TENSOR(TS_F32, SHAPE(2, 1), 7, 8)),
             TENSOR(TS_F32, SHAPE(2, 4), 1, 2, 3, 7, 4, 5, 6, 8));
  attrs.axis = 0;
  test_equal(RUN(TS_OP_CONCATENATE, &attrs, VECTOR(TS_U64, 1), VECTOR(TS_U64, 2, 3)), VECTOR(TS_U64, 1, 2, 3));
  test_equal(RUN(TS_OP_CONCATENATE, &attrs, matrix()), matrix());
}
END_TEST

static ts_buffer *dynamic_slice(double row, double column) {
  ts_attrs attrs = {.shape = SHAPE(1, 2)};
  return RUN(TS_OP_DYNAMIC_SLICE, &attrs, matrix(), SCALAR(TS_S32, row), SCALAR(TS_S64, column));
}

START_TEST(dynamic_slices_clamp)
{
  test_equal(dynamic_slice(1, 0), TENSOR(TS_F32, SHAPE(1, 2), 4, 5));
  test_equal(dynamic_slice(0, 1), TENSOR(TS_F32, SHAPE(1, 2), 2, 3));
  test_equal(dynamic_slice(7, 2), TENSOR(TS_F32, SHAPE(1, 2), 5, 6));
  test_equal(dynamic_slice(-7, -1), TENSOR(TS_F32, SHAPE(1, 2), 1, 2));
  ts_attrs attrs = {.shape = SHAPE(1)};
  test_equal(RUN(TS_OP_DYNAMIC_SLICE, &attrs, VECTOR(TS_S8, 1, 2, 3), INTEGERS(TS_U64, SHAPE(), -1)),
             VECTOR(TS_S8, 3)); /* 2^64 - 1 is large, not negative */
  attrs.shape = SHAPE();
  test_equal(RUN(TS_OP_DYNAMIC_SLICE, &attrs, SCALAR(TS_S8, 4)), SCALAR(TS_S8, 4));
  attrs.shape = SHAPE(0);
  test_equal(RUN(TS_OP_DYNAMIC_SLICE, &attrs, TENSOR(TS_S8, SHAPE(0)), SCALAR(TS_S32, 5)), TENSOR(TS_S8, SHAPE(0)));
}
END_TEST

static ts_buffer *put_slice(double row, double column) {
  return RUN(TS_OP_PUT_SLICE, NULL, matrix(), TENSOR(TS_F32, SHAPE(1, 2), 8, 9), SCALAR(TS_S32, row),
             SCALAR(TS_U8, column));
}

START_TEST(put_slices_clamp)
{
  test_equal(put_slice(0, 1), TENSOR(TS_F32, SHAPE(2, 3), 1, 8, 9, 4, 5, 6));
  test_equal(put_slice(5, 200), TENSOR(TS_F32, SHAPE(2, 3), 1, 2, 3, 4, 8, 9));
  test_equal(put_slice(-5, 0), TENSOR(TS_F32, SHAPE(2, 3), 8, 9, 3, 4, 5, 6));
}
END_TEST

START_TEST(take)
{
  ts_attrs attrs = {.axis = 1};
  test_equal(RUN(TS_OP_TAKE, &attrs, matrix(), VECTOR(TS_S8, 2, 0, -1, 7)),
             TENSOR(TS_F32, SHAPE(2, 4), 3, 1, 1, 3, 6, 4, 4, 6));
  attrs.axis = 0;
  test_equal(RUN(TS_OP_TAKE, &attrs, matrix(), SCALAR(TS_U16, 1)), VECTOR(TS_F32, 4, 5, 6));
  test_equal(RUN(TS_OP_TAKE, &attrs, VECTOR(TS_S16, 5, 6), TENSOR(TS_S32, SHAPE(2, 2), 0, 1, 1, 0)),
             TENSOR(TS_S16, SHAPE(2, 2), 5, 6, 6, 5));
  attrs.axis = 1;
  test_equal(RUN(TS_OP_TAKE, &attrs, TENSOR(TS_S16, SHAPE(1, 2, 2), 1, 2, 3, 4), TENSOR(TS_S32, SHAPE(1, 2), 1, 0)),
             TENSOR(TS_S16, SHAPE(1, 1, 2, 2), 3, 4, 1, 2));
  test_equal(RUN(TS_OP_TAKE, &attrs, matrix(), TENSOR(TS_S32, SHAPE(0))), TENSOR(TS_F32, SHAPE(2, 0)));
}
END_TEST

START_TEST(take_along_axis)
{
  ts_attrs attrs = {.axis = 1};
  test_equal(RUN(TS_OP_TAKE_ALONG, &attrs, matrix(), TENSOR(TS_S32, SHAPE(2, 2), 2, 0, -3, 9)),
             TENSOR(TS_F32, SHAPE(2, 2), 3, 1, 4, 6));
  attrs.axis = 0;
  test_equal(RUN(TS_OP_TAKE_ALONG, &attrs, matrix(), TENSOR(TS_U64, SHAPE(1, 3), 1, 0, 1)),
             TENSOR(TS_F32, SHAPE(1, 3), 4, 2, 6));
}
END_TEST

static Suite *suite(void) {
  Suite *all = suite_create("ref_shape");
  TCase *cases = tcase_create("shape");
  tcase_add_checked_fixture(cases, test_leaks_begin, test_leaks_end);
  tcase_add_test(cases, iota);
  tcase_add_test(cases, eye);
  tcase_add_test(cases, constants);
  tcase_add_test(cases, reshape);
  tcase_add_test(cases, broadcast);
  tcase_add_test(cases, transpose);
  tcase_add_test(cases, reverse);
  tcase_add_test(cases, slice);
  tcase_add_test(cases, pad);
  tcase_add_test(cases, concatenate);
  tcase_add_test(cases, dynamic_slices_clamp);
  tcase_add_test(cases, put_slices_clamp);
  tcase_add_test(cases, take);
  tcase_add_test(cases, take_along_axis);
  suite_add_tcase(all, cases);
  return all;
}

int main(void) { return testing_run(suite()); }
