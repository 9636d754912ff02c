%% @private Ops on each element, each one op of the core. The API in tessera.erl documents them.
-module(tessera_elementwise).
-compile({no_auto_import, [abs/1, ceil/1, floor/1, max/2, min/2, round/1]}).
-export([exp/1, expm1/1, log/1, log1p/1, sigmoid/1, cos/1, sin/1, tan/1, cosh/1, sinh/1, tanh/1, acos/1, asin/1, atan/1, acosh/1,
         asinh/1, atanh/1, sqrt/1, rsqrt/1, cbrt/1, erf/1, erfc/1, erf_inv/1, abs/1, negate/1, sign/1, ceil/1,
         floor/1, round/1, bitwise_not/1, count_leading_zeros/1, population_count/1, is_nan/1, is_infinity/1, add/2,
         subtract/2, multiply/2, divide/2, quotient/2, remainder/2, min/2, max/2, bitwise_and/2, bitwise_or/2,
         bitwise_xor/2, left_shift/2, right_shift/2, equal/2, not_equal/2, greater/2, less/2, greater_equal/2,
         less_equal/2, logical_and/2, logical_or/2, logical_xor/2, logical_not/1, relu/1, select/3, clip/3, bitcast/2]).

-spec exp(tessera_type:operand()) -> tessera_type:tensor().
exp(X) -> tessera_trace:op(exp, [X], []).

-spec expm1(tessera_type:operand()) -> tessera_type:tensor().
expm1(X) -> tessera_trace:op(expm1, [X], []).

-spec log(tessera_type:operand()) -> tessera_type:tensor().
log(X) -> tessera_trace:op(log, [X], []).

-spec log1p(tessera_type:operand()) -> tessera_type:tensor().
log1p(X) -> tessera_trace:op(log1p, [X], []).

-spec sigmoid(tessera_type:operand()) -> tessera_type:tensor().
sigmoid(X) -> tessera_trace:op(sigmoid, [X], []).

-spec cos(tessera_type:operand()) -> tessera_type:tensor().
cos(X) -> tessera_trace:op(cos, [X], []).

-spec sin(tessera_type:operand()) -> tessera_type:tensor().
sin(X) -> tessera_trace:op(sin, [X], []).

-spec tan(tessera_type:operand()) -> tessera_type:tensor().
tan(X) -> tessera_trace:op(tan, [X], []).

-spec cosh(tessera_type:operand()) -> tessera_type:tensor().
cosh(X) -> tessera_trace:op(cosh, [X], []).

-spec sinh(tessera_type:operand()) -> tessera_type:tensor().
sinh(X) -> tessera_trace:op(sinh, [X], []).

-spec tanh(tessera_type:operand()) -> tessera_type:tensor().
tanh(X) -> tessera_trace:op(tanh, [X], []).

-spec acos(tessera_type:operand()) -> tessera_type:tensor().
acos(X) -> tessera_trace:op(acos, [X], []).

-spec asin(tessera_type:operand()) -> tessera_type:tensor().
asin(X) -> tessera_trace:op(asin, [X], []).

-spec atan(tessera_type:operand()) -> tessera_type:tensor().
atan(X) -> tessera_trace:op(atan, [X], []).

-spec acosh(tessera_type:operand()) -> tessera_type:tensor().
acosh(X) -> tessera_trace:op(acosh, [X], []).

-spec asinh(tessera_type:operand()) -> tessera_type:tensor().
asinh(X) -> tessera_trace:op(asinh, [X], []).

-spec atanh(tessera_type:operand()) -> tessera_type:tensor().
atanh(X) -> tessera_trace:op(atanh, [X], []).

-spec sqrt(tessera_type:operand()) -> tessera_type:tensor().
sqrt(X) -> tessera_trace:op(sqrt, [X], []).

-spec rsqrt(tessera_type:operand()) -> tessera_type:tensor().
rsqrt(X) -> tessera_trace:op(rsqrt, [X], []).

-spec cbrt(tessera_type:operand()) -> tessera_type:tensor().
cbrt(X) -> tessera_trace:op(cbrt, [X], []).

-spec erf(tessera_type:operand()) -> tessera_type:tensor().
erf(X) -> tessera_trace:op(erf, [X], []).

-spec erfc(tessera_type:operand()) -> tessera_type:tensor().
erfc(X) -> tessera_trace:op(erfc, [X], []).

-spec erf_inv(tessera_type:operand()) -> tessera_type:tensor().
erf_inv(X) -> tessera_trace:op(erf_inv, [X], []).

-spec abs(tessera_type:operand()) -> tessera_type:tensor().
abs(X) -> tessera_trace:op(abs, [X], []).

-spec negate(tessera_type:operand()) -> tessera_type:tensor().
negate(X) -> tessera_trace:op(negate, [X], []).

-spec sign(tessera_type:operand()) -> tessera_type:tensor().
sign(X) -> tessera_trace:op(sign, [X], []).

-spec ceil(tessera_type:operand()) -> tessera_type:tensor().
ceil(X) -> tessera_trace:op(ceil, [X], []).

-spec floor(tessera_type:operand()) -> tessera_type:tensor().
floor(X) -> tessera_trace:op(floor, [X], []).

-spec round(tessera_type:operand()) -> tessera_type:tensor().
round(X) -> tessera_trace:op(round, [X], []).

-spec bitwise_not(tessera_type:operand()) -> tessera_type:tensor().
bitwise_not(X) -> tessera_trace:op(bitwise_not, [X], []).

-spec count_leading_zeros(tessera_type:operand()) -> tessera_type:tensor().
count_leading_zeros(X) -> tessera_trace:op(count_leading_zeros, [X], []).

-spec population_count(tessera_type:operand()) -> tessera_type:tensor().
population_count(X) -> tessera_trace:op(population_count, [X], []).

-spec is_nan(tessera_type:operand()) -> tessera_type:tensor().
is_nan(X) -> tessera_trace:op(is_nan, [X], []).

-spec is_infinity(tessera_type:operand()) -> tessera_type:tensor().
is_infinity(X) -> tessera_trace:op(is_infinity, [X], []).

-spec add(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
add(A, B) -> tessera_trace:op(add, [A, B], []).

-spec subtract(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
subtract(A, B) -> tessera_trace:op(subtract, [A, B], []).

-spec multiply(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
multiply(A, B) -> tessera_trace:op(multiply, [A, B], []).

-spec divide(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
divide(A, B) -> tessera_trace:op(divide, [A, B], []).

-spec quotient(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
quotient(A, B) -> tessera_trace:op(quotient, [A, B], []).

-spec remainder(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
remainder(A, B) -> tessera_trace:op(remainder, [A, B], []).

-spec min(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
min(A, B) -> tessera_trace:op(min, [A, B], []).

-spec max(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
max(A, B) -> tessera_trace:op(max, [A, B], []).

-spec bitwise_and(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
bitwise_and(A, B) -> tessera_trace:op(bitwise_and, [A, B], []).

-spec bitwise_or(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
bitwise_or(A, B) -> tessera_trace:op(bitwise_or, [A, B], []).

-spec bitwise_xor(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
bitwise_xor(A, B) -> tessera_trace:op(bitwise_xor, [A, B], []).

-spec left_shift(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
left_shift(A, B) -> tessera_trace:op(left_shift, [A, B], []).

-spec right_shift(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
right_shift(A, B) -> tessera_trace:op(right_shift, [A, B], []).

-spec equal(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
equal(A, B) -> tessera_trace:op(equal, [A, B], []).

-spec not_equal(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
not_equal(A, B) -> tessera_trace:op(not_equal, [A, B], []).

-spec greater(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
greater(A, B) -> tessera_trace:op(greater, [A, B], []).

-spec less(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
less(A, B) -> tessera_trace:op(less, [A, B], []).

-spec greater_equal(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
greater_equal(A, B) -> tessera_trace:op(greater_equal, [A, B], []).

-spec less_equal(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
less_equal(A, B) -> tessera_trace:op(less_equal, [A, B], []).

-spec logical_and(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
logical_and(A, B) -> tessera_trace:op(logical_and, [A, B], []).

-spec logical_or(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
logical_or(A, B) -> tessera_trace:op(logical_or, [A, B], []).

-spec logical_xor(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
logical_xor(A, B) -> tessera_trace:op(logical_xor, [A, B], []).

-spec logical_not(tessera_type:operand()) -> tessera_type:tensor().
logical_not(X) -> tessera_trace:op(logical_not, equal, [X, 0], []).

-spec relu(tessera_type:operand()) -> tessera_type:tensor().
relu(X) -> tessera_trace:ruled(relu, tessera_trace:op(relu, max, [X, 0], []), [X]).

-spec select(tessera_type:operand(), tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
select(Predicate, A, B) -> tessera_trace:op(select, [Predicate, A, B], []).

-spec clip(tessera_type:operand(), tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
clip(X, Low, High) -> tessera_trace:op(clip, clamp, [X, Low, High], []).

-spec bitcast(tessera_type:tensor(), tessera_type:type()) -> tessera_type:tensor().
bitcast(X, Type) -> tessera_trace:op(bitcast, [X], Type).
