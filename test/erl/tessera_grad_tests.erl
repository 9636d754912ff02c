%% Gradients against central differences, in f64.
-module(tessera_grad_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/2, near/3]).

-define(STEP, 1.0e-5).

%% F is a function of one tensor; its result is made one number by weights that tell the elements apart.
check(F, List) ->
    X = tessera:tensor(List, f64),
    G = fun(T) -> weigh(F(T)) end,
    Gradient = tessera:flatten((tessera:grad(G))(X)),
    near([difference(tessera:jit(G), X, I) || I <- lists:seq(0, tessera:size(X) - 1)], tessera:to_list(Gradient), 1.0e-6).

weigh(T) ->
    Weights = tessera:add(tessera:iota(tessera:shape(T), f64), 1),
    tessera:sum(tessera:multiply(tessera:sin(Weights), tessera:as_type(T, f64))).

difference(G, X, I) ->
    Shape = tessera:shape(X),
    Nudge = tessera:reshape(tessera:as_type(tessera:equal(tessera:iota({tessera:size(X)}), I), f64), Shape),
    Move = tessera:multiply(Nudge, ?STEP),
    (tessera:to_number(G(tessera:add(X, Move))) - tessera:to_number(G(tessera:subtract(X, Move)))) / (2 * ?STEP).

unary_test_() ->
    Any = [-1.3, -0.4, 0.7, 2.1], Positive = [0.3, 1.7, 2.9], Inside = [-0.7, 0.2, 0.8], Above = [1.2, 2.5],
    [{atom_to_list(Name), fun() -> check(fun(X) -> tessera:Name(X) end, Points) end}
     || {Name, Points} <-
            [{exp, Any}, {expm1, Any}, {log, Positive}, {log1p, Positive}, {sigmoid, Any}, {cos, Any}, {sin, Any},
             {tan, Inside}, {cosh, Any}, {sinh, Any}, {tanh, Any}, {acos, Inside}, {asin, Inside}, {atan, Any},
             {acosh, Above}, {asinh, Any}, {atanh, Inside}, {sqrt, Positive}, {rsqrt, Positive}, {cbrt, Positive},
             {erf, Any}, {erfc, Any}, {erf_inv, Inside}, {abs, Any}, {negate, Any}, {sign, Any}, {ceil, Any},
             {floor, Any}, {round, Any}, {relu, Any}, {softmax, Any}, {log_softmax, Any}, {logsumexp, Any},
             {variance, Any}, {standard_deviation, Any}, {mean, Any}]].

binary_test_() ->
    Points = [0.6, 1.4, 2.3, 0.9],
    Other = tessera:tensor([1.1, 0.4, 1.9, 2.2], f64),
    [{atom_to_list(Name),
      fun() ->
              check(fun(X) -> tessera:Name(X, Other) end, Points),
              check(fun(X) -> tessera:Name(Other, X) end, Points),
              check(fun(X) -> tessera:Name(X, tessera:multiply(X, 1.5)) end, Points),
              %% Broadcast from one element, and along an axis.
              check(fun(X) -> tessera:Name(tessera:slice(X, [1], [1]), Other) end, Points),
              check(fun(X) -> tessera:Name(tessera:reshape(X, {4, 1}), tessera:reshape(Other, {1, 4})) end, Points)
      end}
     || Name <- [add, subtract, multiply, divide, pow, atan2, min, max, remainder]].

matrix_test_() ->
    M = [[0.5, -1.2, 2.0], [1.5, 0.3, -0.8]],
    Other = tessera:tensor([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]], f64),
    Index = tessera:tensor([1, 0, 1]),
    [{Name, fun() -> check(F, M) end}
     || {Name, F} <-
            [{"dot left", fun(X) -> tessera:dot(X, Other) end},
             {"dot right", fun(X) -> tessera:dot(Other, X) end},
             {"dot both", fun(X) -> tessera:dot(X, tessera:transpose(X)) end},
             {"dot first axes", fun(X) -> tessera:dot(X, [0], X, [0]) end},
             {"dot batch", fun(X) -> tessera:dot(tessera:new_axis(X, 2), [2], [1], tessera:new_axis(tessera:sin(X), 0), [0], [2]) end},
             {"dot two axes", fun(X) -> tessera:dot(X, [1, 0], tessera:cos(X), [1, 0]) end},
             {"sum", fun(X) -> tessera:sum(tessera:sin(X), #{axes => [1]}) end},
             {"sum kept", fun(X) -> tessera:multiply(X, tessera:sum(X, #{axes => [0], keep_axes => true})) end},
             {"product", fun(X) -> tessera:product(X, #{axes => [1]}) end},
             {"product with a zero", fun(X) -> tessera:product(tessera:multiply(X, tessera:tensor([1, 0, 1], f64)), #{axes => [1]}) end},
             {"max", fun(X) -> tessera:reduce_max(X, #{axes => [0]}) end},
             {"min", fun(X) -> tessera:reduce_min(X) end},
             {"cumulative_sum", fun(X) -> tessera:cumulative_sum(X, #{axis => 1}) end},
             {"cumulative_sum reverse", fun(X) -> tessera:cumulative_sum(X, #{axis => 0, reverse => true}) end},
             {"cumulative_product", fun(X) -> tessera:cumulative_product(X, #{axis => 1}) end},
             {"reshape", fun(X) -> tessera:reshape(X, {3, 2}) end},
             {"transpose", fun(X) -> tessera:transpose(tessera:new_axis(X, 0), [2, 0, 1]) end},
             {"reverse", fun(X) -> tessera:reverse(X, [1]) end},
             {"broadcast", fun(X) -> tessera:broadcast(X, {4, 2, 3}) end},
             {"broadcast axes", fun(X) -> tessera:broadcast(X, {2, 4, 3}, [0, 2]) end},
             {"slice", fun(X) -> tessera:slice(X, [0, 1], [2, 2]) end},
             {"strided slice", fun(X) -> tessera:slice(X, [1, 0], [1, 3], [1, 2]) end},
             {"empty slice", fun(X) -> tessera:slice(X, [1, 0], [0, 3]) end},
             {"dynamic slice", fun(X) -> tessera:slice(X, [tessera:tensor(1), tessera:tensor(2)], [1, 2]) end},
             {"put_slice", fun(X) -> tessera:put_slice(tessera:sin(X), [0, tessera:tensor(1)], tessera:exp(tessera:slice(X, [0, 0], [1, 2]))) end},
             {"pad", fun(X) -> tessera:pad(X, tessera:sum(X), [{1, -1, 0}, {0, 2, 1}]) end},
             {"pad away", fun(X) -> tessera:pad(X, 0, [{0, 0, 0}, {-1, -1, 0}]) end},
             {"concatenate", fun(X) -> tessera:concatenate([X, tessera:exp(X), X], 1) end},
             {"stack", fun(X) -> tessera:stack([X, tessera:exp(X)], 1) end},
             {"take", fun(X) -> tessera:take(X, Index, #{axis => 1}) end},
             {"take far", fun(X) -> tessera:take(X, tessera:tensor([[9, -9]])) end},
             {"take_along_axis", fun(X) -> tessera:take_along_axis(X, tessera:tensor([[1, 1], [2, 0]]), #{axis => 1}) end},
             {"select", fun(X) -> tessera:select(tessera:greater(X, 0), tessera:exp(X), tessera:multiply(X, 2)) end},
             {"clip", fun(X) -> tessera:clip(X, -1, tessera:multiply(tessera:sum(X), 0.5)) end},
             {"convert", fun(X) -> tessera:as_type(tessera:as_type(X, f64), f64) end},
             {"cond", fun(X) -> tessera:'cond'(tessera:greater(tessera:sum(X), 0), fun() -> tessera:exp(X) end,
                                               fun() -> tessera:sin(X) end) end},
             {"cond of two", fun(X) ->
                 Y = tessera:multiply(X, 3),
                 {A, B} = tessera:'cond'(tessera:less(tessera:sum(X), 0), fun() -> {X, Y} end,
                                         fun() -> {tessera:multiply(X, Y), tessera:sin(Y)} end),
                 tessera:add(A, B)
             end}]].

%% ---- digits

%% First and second derivatives by mpmath, rounded to f64: where differences of near numbers would lose digits, where squares overflow or
%% vanish, and elsewhere.
digits_test_() ->
    [{lists:flatten(io_lib:format("~s ~p", [Name, X])),
      ?_test(begin
                 First = tessera:grad(fun tessera:Name/1),
                 same_digits(D1, First(tessera:tensor(X, f64)), 1.0e-15),
                 same_digits(D2, (tessera:grad(First))(tessera:tensor(X, f64)), 1.0e-14)
             end)}
     || {Name, X, D1, D2} <-
            [{atan, 1.0e140, 1.0e-280, 0.0}, {atan, -3.0, 0.1, 0.06},
             {expm1, -30.0, 9.357622968840175e-14, 9.357622968840175e-14}, {expm1, -700.0, 9.85967654375977e-305, 9.85967654375977e-305},
             {expm1, 1.25, 3.4903429574618414, 3.4903429574618414}, {sigmoid, 30.0, 9.357622968838423e-14, -9.357622968836672e-14},
             {sigmoid, -30.0, 9.357622968838423e-14, 9.357622968836672e-14}, {sigmoid, 700.0, 9.85967654375977e-305, -9.85967654375977e-305},
             {sigmoid, -0.75, 0.21789499376181404, 0.07808428307814441}, {sigmoid, 0.0, 0.25, 0.0},
             {tanh, 30.0, 3.502604305078608e-26, -7.005208610157216e-26}, {tanh, -30.0, 3.502604305078608e-26, 7.005208610157216e-26},
             {tanh, 350.0, 3.943870617503908e-304, -7.887741235007817e-304}, {tanh, -0.3, 0.9151369618266292, 0.5331818782014544},
             {tanh, 0.0, 1.0, 0.0}, {acos, 0.999999, -707.1069579531425, -353553302.1895767},
             {acos, -0.999999, -707.1069579531425, 353553302.1895767}, {acos, 0.3, -1.0482848367219182, -0.3455884077105225},
             {asin, 0.999999, 707.1069579531425, 353553302.1895767}, {asin, -0.999999, 707.1069579531425, -353553302.1895767},
             {asin, 0.3, 1.0482848367219182, 0.3455884077105225}, {atanh, 0.999999, 500000.24998574716, 499999999971.1193},
             {atanh, -0.999999, 500000.24998574716, -499999999971.1193}, {atanh, 0.3, 1.098901098901099, 0.7245501750996256},
             {asinh, 1.0e200, 1.0e-200, -0.0}, {asinh, -1.0e200, 1.0e-200, 0.0},
             {asinh, 1.0e-05, 0.99999999995, -9.9999999985e-06}, {asinh, 1.0, 0.7071067811865476, -0.3535533905932738},
             {asinh, -3.0, 0.31622776601683794, 0.09486832980505137}, {asinh, 1.0e100, 1.0e-100, -1.0e-200}]].

%% The same for atan2, by each operand.
atan2_digits_test_() ->
    [{lists:flatten(io_lib:format("~p ~p", [Y, X])),
      ?_test(begin
                 {OfY, OfX} = (tessera:grad(fun({A, B}) -> tessera:atan2(A, B) end))({tessera:tensor(Y, f64), tessera:tensor(X, f64)}),
                 same_digits(ByY, OfY, 1.0e-15),
                 same_digits(ByX, OfX, 1.0e-15)
             end)}
     || {Y, X, ByY, ByX} <-
            [{1.0e200, 1.0e200, 5.0e-201, -5.0e-201}, {3.0e-200, -4.0e-200, -1.6e199, -1.2e199},
             {2.0, -1.0e200, -1.0e-200, -0.0}, {1.0e-310, 0.0, 0.0, neg_infinity},
             {3.0, 4.0, 0.16, -0.12}]].

same_digits(Expected, Tensor, Tolerance) ->
    case tessera:to_number(Tensor) of
        Number when is_number(Number), is_number(Expected) -> ?assert(abs(Number - Expected) =< Tolerance * abs(Expected));
        Other -> ?assertEqual(Expected, Other)
    end.

%% The formulas of these derivatives have two cases, which meet here.
third_order_digits_test_() ->
    [?_test(same_digits(Expected, (tessera:grad(tessera:grad(tessera:grad(fun tessera:Name/1))))(tessera:tensor(X, f64)), 1.0e-14))
     || {Name, X, Expected} <- [{atan, 0.0, -2.0}, {atan, 1.0, 0.5}, {tanh, 0.0, -2.0}, {sigmoid, 0.0, -0.125}, {asinh, 1.0, 0.17677669529663689}, {asinh, 0.0, -1.0}]].

%% Squares of these numbers are outside of f16.
narrow_digits_test_() ->
    [?_test(near(1.0, 1000 * tessera:to_number((tessera:grad(F))(tessera:tensor(X, f16))) / Expected, 1.0e-2))
     || {Expected, F, X} <- [{1.0, fun tessera:asinh/1, 1000.0}, {0.011111, fun tessera:atan/1, 300.0}, {-1.0, fun(X) -> tessera:atan2(tessera:tensor(1000.0, f16), X) end, 1.0},
                             {0.5, fun(Y) -> tessera:atan2(Y, tessera:tensor(1000.0, f16)) end, 1000.0}]].

%% Every finite number of the narrow types (of 16 bits: every 7th), by formulas in Erlang's f64. No derivative is further from the exact one
%% than by rounding to its type once.
narrow_types_test_() ->
    [{lists:flatten(io_lib:format("~s ~s", [Name, Type])), {timeout, 60, fun() -> rounded_once(tessera:grad(fun(X) -> tessera:sum(F(X)) end), Exact, Numbers, Format) end}}
     || {Type, _, _, _} = Format <- [{f8_e4m3fn, 3, -6, 448.0}, {f8, 2, -14, 57344.0}, {f16, 10, -14, 65504.0}, {bf16, 7, -126, 3.38e38}],
        Numbers <- [numbers_of(Type)],
        {Name, F, Exact} <- narrow_cases(Type)].

narrow_cases(Type) ->
    E = fun(X) -> math:exp(-min(abs(X), 700.0)) end,
    Inside = fun(Derivative) -> fun(X) -> case abs(X) < 1 of true -> Derivative(X); false -> none end end end,
    By1 = tessera:tensor(1, Type),
    [{tanh, fun tessera:tanh/1, fun(X) -> 4 * E(2 * X) / math:pow(1 + E(2 * X), 2) end},
     {sigmoid, fun tessera:sigmoid/1, fun(X) -> E(X) / math:pow(1 + E(X), 2) end},
     {expm1, fun tessera:expm1/1, fun(X) -> math:exp(max(-700.0, min(X, 700.0))) end},
     {acos, fun tessera:acos/1, Inside(fun(X) -> -1 / math:sqrt((1 - X) * (1 + X)) end)},
     {asin, fun tessera:asin/1, Inside(fun(X) -> 1 / math:sqrt((1 - X) * (1 + X)) end)},
     {atanh, fun tessera:atanh/1, Inside(fun(X) -> 1 / ((1 - X) * (1 + X)) end)},
     {asinh, fun tessera:asinh/1, fun(X) -> 1 / math:sqrt(X * X + 1) end},
     {atan, fun tessera:atan/1, fun(X) -> 1 / (X * X + 1) end},
     {log1p, fun tessera:log1p/1, fun(X) when X > -1 -> 1 / (X + 1); (_) -> none end},
     {erf, fun tessera:erf/1, fun(X) -> 2 / math:sqrt(math:pi()) * math:exp(-min(X * X, 700.0)) end},
     {"atan2 by its first operand", fun(Y) -> tessera:atan2(Y, By1) end, fun(Y) -> 1 / (Y * Y + 1) end},
     {"atan2 by its second operand", fun(X) -> tessera:atan2(By1, X) end, fun(X) -> -1 / (X * X + 1) end}].

numbers_of(Type) ->
    Bits = case lists:member(Type, [f16, bf16]) of
               true -> tessera:tensor(lists:seq(0, 65535, 7), u16);
               false -> tessera:tensor(lists:seq(0, 255), u8)
           end,
    [X || X <- tessera:to_list(tessera:bitcast(Bits, Type)), is_number(X)].

%% No number over the largest one is expected, and of numbers below the normal ones of f32 no digits.
rounded_once(Gradient, Exact, Numbers, {Type, Digits, LeastExponent, Largest}) ->
    Wrong = [{X, Expected, Got} || {X, Got} <- lists:zip(Numbers, tessera:to_list(Gradient(tessera:tensor(Numbers, Type)))),
                                   Expected <- [Exact(X)],
                                   Expected =/= none,
                                   not (abs(Expected) > Largest orelse
                                        is_number(Got) andalso abs(Got - Expected) =< max(1.01 * half_unit(Expected, Digits, LeastExponent), math:pow(2, -126)))],
    ?assertEqual([], Wrong).

half_unit(X, Digits, LeastExponent) ->
    Exponent = case X == 0 of
                   true -> LeastExponent;
                   false -> max(LeastExponent, floor(math:log2(abs(X))))
               end,
    math:pow(2, Exponent - Digits - 1).

%% ---- ops of several results

%% The walk from the last op to the first ends at the values of Wrt, even if these are the second result of their op. It does
%% not reach a loop, which has no gradient, and adds nothing to the gradients of a cond's operands.
second_result_test_() ->
    Cond = fun(Y) -> tessera:'cond'(tessera:greater(tessera:sum(Y), 0), fun() -> {tessera:exp(Y), tessera:sin(Y)} end,
                                    fun() -> {Y, tessera:cos(Y)} end) end,
    While = fun(Y) ->
                    {_, Last} = tessera:while({0, Y}, fun({N, _}) -> tessera:less(N, 1) end,
                                              fun({N, V}) -> {tessera:add(N, 1), tessera:sin(V)} end),
                    {Y, Last}
            end,
    [{Name, ?_test(begin
                       {OfY, OfLast} = (tessera:jit(fun(X) -> pulled(Make, X) end))(tessera:tensor([0.5, 2.0], f64)),
                       near([math:sin(0.5) * math:sin(0.5), math:sin(2) * math:sin(2)], tessera:to_list(OfY)),
                       near([2 * math:sin(0.5) * 0.5, 2 * math:sin(2) * 2], tessera:to_list(OfLast))
                   end)} || {Name, Make} <- [{"cond", Cond}, {"while", While}]].

%% The gradient of sum(Last * Last * Y) with respect to Y and to Last, each as if the other were a constant.
pulled(Make, X) ->
    Y = tessera:multiply(X, 1),
    {_, Last} = Make(Y),
    Sum = tessera:sum(tessera:multiply(tessera:multiply(Last, Last), Y)),
    [OfY, OfLast] = tessera_grad:pullback([Y, Last], [Sum], [tessera:full({}, 1, f64)]),
    {OfY, OfLast}.

%% Only the second result of a cond has a cotangent.
second_alone_test() ->
    F = fun(X) ->
                {_, Second} = tessera:'cond'(tessera:greater(tessera:sum(X), 0), fun() -> {tessera:exp(X), tessera:sin(X)} end,
                                             fun() -> {X, tessera:cos(X)} end),
                tessera:sum(Second)
        end,
    near([math:cos(0.5), math:cos(2)], tessera:to_list((tessera:grad(F))(tessera:tensor([0.5, 2.0], f64)))).

%% A constant made in a branch of a cond stays one; also in a cond inside of it, and where both branches read it.
stopped_in_cond_test_() ->
    Stopped = fun(X) -> tessera:multiply(tessera:stop_grad(X), X) end,
    Cond = fun(X, F) -> tessera:'cond'(tessera:greater(X, 0), fun() -> F(X) end, fun() -> tessera:negate(F(X)) end) end,
    Twice = fun(X) -> Cond(X, fun(Y) -> Cond(tessera:multiply(Y, 1), Stopped) end) end,
    [[?_assertEqual(3.0, tessera:to_number((tessera:grad(fun(X) -> Cond(X, Stopped) end))(3.0))),
      ?_assertEqual(3.0, tessera:to_number((tessera:grad(Twice))(3.0))),
      ?_assertEqual(-3.0, tessera:to_number((tessera:grad(fun(X) -> Cond(tessera:negate(X), Stopped) end))(-3.0))),
      %% The gradient of the constant gradient.
      ?_assertEqual(0.0, tessera:to_number((tessera:grad(tessera:grad(Twice)))(3.0)))]].

%% ---- cumulative maxima and minima: the gradient belongs to the first of equal elements, in the direction of the scan

cumulative_choice_test_() ->
    Numbers = [[[0.5, -1.2, 2.0, 1.9], [1.5, 0.3, -0.8, 2.5], [-0.4, 0.7, 2.2, 0.1]], [[3.0, 1.0, 2.0]], [[1.0], [2.0], [3.0]]],
    [{lists:flatten(io_lib:format("~s ~p ~p", [Name, Axis, Reverse])),
      [?_test(begin
                  F = fun(X) -> tessera:Name(X, #{axis => Axis, reverse => Reverse}) end,
                  check(F, List),
                  check(tessera:grad(fun(X) -> weigh(tessera:pow(F(X), 3)) end), List)
              end) || List <- Numbers]}
     || Name <- [cumulative_max, cumulative_min], Axis <- [0, 1], Reverse <- [false, true]].

equal_winners_test_() ->
    Inf = infinity,
    Gradient = fun(Name, List, Reverse, Type) ->
                       G = tessera:grad(fun(X) -> tessera:sum(tessera:Name(X, #{axis => -1, reverse => Reverse})) end),
                       tessera:to_list(G(tessera:tensor(List, Type)))
               end,
    [?_assertEqual(Expected, Gradient(Name, List, Reverse, Type))
     || Type <- [f16, bf16, f32, f64],
        {Expected, Name, List, Reverse} <-
            [{[3.0, 0.0, 0.0], cumulative_max, [2.0, 2.0, 2.0], false}, {[0.0, 0.0, 3.0], cumulative_max, [2.0, 2.0, 2.0], true},
             {[1.0, 3.0, 0.0, 0.0], cumulative_max, [2.0, nan, nan, 3.0], false},
             {[0.0, 2.0, 0.0, 2.0], cumulative_min, [nan, nan, 5.0, 3.0], true},
             {[1.0, 2.0, 0.0], cumulative_max, [-0.0, Inf, Inf], false}, {[3.0, 0.0, 0.0], cumulative_min, [0.0, -0.0, 0.0], false}]] ++
    [?_assertEqual(Empty, Gradient(Name, Empty, Reverse, f32))
     || Name <- [cumulative_max, cumulative_min], Reverse <- [false, true], Empty <- [[], [[], []]]].

%% Near 1 and where the square overflows.
acosh_test_() ->
    G = tessera:grad(fun tessera:acosh/1),
    [?_test(near(1.0, Expected * tessera:to_number(G(tessera:tensor(X, f64)))))
     || {X, Expected} <- [{1 + math:pow(2, -40), math:pow(2, -19.5)}, {1.0e200, 1.0e200}]].

%% ---- products, where an element is 0 or the product underflows

%% Any number of zeros, along every axis and both ways; against differences: these are exact to the tolerance, since each
%% function is linear in each element. Also gradients of gradients.
products_test_() ->
    Numbers = [[[0.5, -1.2, 2.0], [1.5, 0.3, -0.8]], [[0.5, 0.0, 2.0], [1.5, 0.3, 0.0]], [[0.0, 0.0, 2.0], [0.0, 0.3, 0.0]],
               [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[0.0], [3.0], [0.0], [2.0], [0.5], [0.0], [1.5]]],
    Functions = [{lists:flatten(io_lib:format("cumulative_product ~p ~p", [Axis, Reverse])),
                  fun(X) -> tessera:cumulative_product(X, #{axis => Axis, reverse => Reverse}) end}
                 || Axis <- [0, 1], Reverse <- [false, true]] ++
                [{lists:flatten(io_lib:format("product ~p", [Axes])), fun(X) -> tessera:product(X, #{axes => Axes}) end}
                 || Axes <- [all, 0, 1, [1, 0]]],
    [{Name, [fun() -> check(F, List) end,
             fun() -> check(tessera:grad(fun(X) -> weigh(F(X)) end), List) end]}
     || {Name, F} <- Functions, List <- Numbers].

third_order_product_test() ->
    F = fun(X) -> tessera:sum(tessera:cumulative_product(X)) end,
    Sum = fun(G) -> fun(X) -> tessera:sum((tessera:grad(G))(X)) end end,
    check(tessera:grad(Sum(F)), [0.0, 2.0, 0.0, 3.0, 1.0]),
    check(tessera:grad(Sum(fun tessera:product/1)), [0.0, 2.0, 0.0, 3.0]).

%% Lengths around powers of two, of an axis in the middle.
long_products_test_() ->
    [?_test(begin
                X = [[[1.0 + math:sin(N * 7 + K) / 4 || K <- [0, 1]] || N <- lists:seq(1, Length)]],
                check(fun(T) -> tessera:cumulative_product(T, #{axis => 1, reverse => Reverse}) end, X)
            end)
     || Length <- [1, 2, 3, 4, 5, 7, 8, 9, 16, 17], Reverse <- [false, true]].

exact_products_test_() ->
    Cumulative = tessera:grad(fun(X) -> tessera:sum(tessera:cumulative_product(X)) end),
    Product = tessera:grad(fun tessera:product/1),
    [?_test(near(Expected, [N / Unit || N <- tessera:to_list(G(tessera:tensor(List, Type)))], 1.0e-2))
     || {Expected, G, List, Unit, Types} <-
            [{[1.0, 8.0, 0.0], Cumulative, [2.0, 0.0, 3.0], 1, [f16, bf16, f32, f64]},
             {[1.0, 0.0], Cumulative, [0.0, 0.0], 1, [f16, bf16, f32, f64]},
             %% The product is 0 in f32; the product without one element is not.
             {[2.0, 2.0, 0.0], Product, [1.0e-30, 1.0e-30, 2.0], 1.0e-30, [f32, f64]},
             {[1.0], fun(X) -> tessera:slice(Product(X), [2], [1]) end, [1.0e-30, 1.0e-30, 2.0, 1.0e30, 1.0e30], 1, [f32, f64]},
             {[1.0], fun(X) -> tessera:slice(Cumulative(X), [4], [1]) end, [1.0e-30, 1.0e-30, 1.0e30, 1.0e30, 2.0], 1,
              [f32, f64]}],
        Type <- Types] ++
    [?_assertEqual([], tessera:to_list(G(tessera:zeros({0})))) || G <- [Cumulative, Product]] ++
    [?_assertEqual([[], []], tessera:to_list((tessera:grad(fun(X) -> tessera:sum(F(X)) end))(tessera:zeros({2, 0}))))
     || F <- [fun(X) -> tessera:product(X, #{axes => 1}) end, fun(X) -> tessera:cumulative_product(X, #{axis => 1}) end,
              fun(X) -> tessera:cumulative_product(X, #{axis => 0}) end]].

%% The product of the others is outside of f16, but not the gradient.
narrow_product_test() ->
    G = fun(F) -> tessera:grad(fun(X) -> tessera:multiply(tessera:as_type(F(X), f32), 1.0e-4) end) end,
    X = tessera:tensor([1000.0, 1000.0, 1.0e-4], f16),
    near(100.0, tessera:to_number(tessera:at((G(fun tessera:product/1))(X), [2])), 1.0e-3),
    near(100.0, tessera:to_number(tessera:at((G(fun tessera:determinant/1))(tessera:diag(X)), [2, 2])), 1.0e-3).

%% Others than the greatest have none of an infinite gradient, either.
infinite_gradient_test_() ->
    [?_assertEqual(Expected, tessera:to_list((tessera:grad(fun(X) -> tessera:sqrt(F(X)) end))(tessera:tensor(At, f64))))
     || {Expected, F, At} <- [{[infinity, 0.0], fun tessera:reduce_max/1, [0.0, -1.0]}, {[0.0, infinity], fun tessera:reduce_min/1, [1.0, 0.0]}]].

%% More equal elements than f16 counts to.
many_equal_test() ->
    G = tessera:grad(fun tessera:reduce_max/1),
    near(1.0, 70000 * tessera:to_number(tessera:at(G(tessera:zeros({70000}, f16)), [0])), 0.01).

second_order_test() ->
    F = fun(X) -> tessera:sum(tessera:multiply(tessera:sin(X), tessera:exp(X))) end,
    Second = tessera:grad(fun(X) -> tessera:sum((tessera:grad(F))(X)) end),
    near([2 * math:cos(X) * math:exp(X) || X <- [0.3, 1.2]], tessera:to_list(Second(tessera:tensor([0.3, 1.2], f64)))).

%% With an exponent of 0 the derivative by the base is 0, for any base, and its derivative by the exponent 1 / base where that is finite.
pow_mixed_test_() ->
    Base = fun(X, Y) -> (tessera:grad(fun(B) -> tessera:pow(B, Y) end))(X) end,
    Mixed = fun(X, Y) -> (tessera:grad(fun(E) -> Base(X, E) end))(Y) end,
    [?_assertEqual({0.0, Expected}, {tessera:to_number(Base(Of(X), Of(0))), tessera:to_number(Mixed(Of(X), Of(0)))})
     || {X, Expected} <- [{2.0, 0.5}, {0.25, 4.0}, {0.0, 0.0}, {nan, 0.0}, {infinity, 0.0}, {neg_infinity, 0.0}],
        Type <- [f16, f32, f64], Of <- [fun(N) -> tessera:tensor(N, Type) end]] ++
    [?_assertEqual({0.0, 0.0}, {tessera:to_number(F(tessera:tensor(1.0e-310, f64), tessera:tensor(0, f64))), 0.0}) || F <- [Base, Mixed]] ++
    %% by the real part of 1 / (2 + i)
    [?_test(near(0.4, tessera:to_number(tessera:real(
                        (tessera:grad(fun(E) -> tessera:real((tessera:grad(fun(B) -> tessera:real(tessera:pow(B, E)) end))(tessera:tensor({complex, 2, 1}, c128))) end))(
                          tessera:tensor({complex, 0, 0}, c128))))))].

%% A power of an infinite base that is 0 does not change with its exponent.
infinite_base_test() ->
    G = tessera:grad(fun(Y) -> tessera:sum(tessera:pow(tessera:tensor([infinity, infinity], f64), Y)) end),
    ?assertEqual([0.0, infinity], tessera:to_list(G(tessera:tensor([-1.0, 2.0], f64)))).

%% The gradient of the padding's value, beside elements with large and with infinite gradients.
pad_value_test_() ->
    G = fun(F, X, Config) ->
                fun(V) -> tessera:to_number((tessera:grad(fun(P) -> F(tessera:pad(tessera:tensor(X), P, Config)) end))(tessera:tensor(V))) end
        end,
    Weigh = fun(Weights) -> fun(T) -> tessera:sum(tessera:multiply(T, tessera:tensor(Weights))) end end,
    [?_assertEqual(1.0, (G(Weigh([1.0e8, 1.0]), [1.0], [{0, 1, 0}]))(2.0)),
     ?_assertEqual(0.25, (G(fun(T) -> tessera:sum(tessera:sqrt(T)) end, [0.0], [{0, 1, 0}]))(4.0)),
     %% inside, before, and where elements are removed
     ?_assertEqual(7.0, (G(Weigh([1.0, 1.0e8, 2.0, 1.0e8, 4.0]), [1.0, 2.0, 3.0], [{1, -1, 1}]))(2.0)),
     ?_assertEqual(0.0, (G(Weigh([1.0e8, 1.0e8]), [1.0, 2.0, 3.0], [{-1, 0, 0}]))(2.0)),
     ?_assertEqual(7.0, (G(Weigh([3.0, 4.0]), [], [{1, 1, 0}]))(2.0))].

third_order_test() ->
    F = tessera:grad(tessera:grad(tessera:grad(fun(X) -> tessera:pow(X, 4) end))),
    near(48.0, tessera:to_number(F(2.0))).

containers_test() ->
    F = fun(#{w := W, b := [B]}, X) -> tessera:sum(tessera:add(tessera:multiply(W, X), B)) end,
    {Value, #{w := GW, b := [GB]}} =
        (tessera:value_and_grad(F))(#{w => tessera:tensor([1.0, 2.0]), b => [3.0]}, tessera:tensor([5.0, 7.0])),
    ?assertEqual({25.0, [5.0, 7.0], 2.0}, {tessera:to_number(Value), tessera:to_list(GW), tessera:to_number(GB)}).

%% Only the argument counts, not another use of the same value.
partial_test() ->
    F = tessera:jit(fun(X) -> (tessera:grad(fun(Y) -> tessera:multiply(X, Y) end))(X) end),
    near(3.0, tessera:to_number(F(3.0))).

unused_and_integers_test() ->
    {GI, GU, GX} = (tessera:grad(fun({_I, _U, X}) -> tessera:multiply(X, 2) end))({tessera:tensor(1), tessera:tensor([1.0, 2.0]), 4.0}),
    ?assertEqual({0, [0.0, 0.0], 2.0}, {tessera:to_number(GI), tessera:to_list(GU), tessera:to_number(GX)}).

stop_grad_test() ->
    G = tessera:grad(fun(X) -> tessera:multiply(tessera:stop_grad(X), X) end),
    near(3.0, tessera:to_number(G(3.0))).

half_test() ->
    G = tessera:grad(fun(X) -> tessera:sum(tessera:multiply(X, X)) end),
    ?assertEqual([2.0, 4.0], tessera:to_list(G(tessera:tensor([1, 2], bf16)))).

inside_while_test() ->
    %% Newton's method on x^2 = 2, with the derivative taken in the loop.
    F = fun(X) -> tessera:subtract(tessera:multiply(X, X), 2) end,
    Solve = tessera:jit(fun(X0) ->
        {_, X} = tessera:while({0, X0}, fun({I, _}) -> tessera:less(I, 6) end, fun({I, X}) ->
            {Y, D} = (tessera:value_and_grad(F))(X),
            {tessera:add(I, 1), tessera:subtract(X, tessera:divide(Y, D))}
        end),
        X
    end),
    near(math:sqrt(2), tessera:to_number(Solve(tessera:tensor(1.0, f64)))).

refused_test_() ->
    Loop = fun(X) -> {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 2) end,
                                            fun({I, Y}) -> {tessera:add(I, 1), tessera:multiply(Y, 2)} end), Y end,
    [?_test(raises(unimplemented, "the gradient through while is not supported; a loop whose length is known when the function "
                   "is traced can be written with lists:foldl/3", fun() -> (tessera:grad(Loop))(1.0) end)),
     ?_test(raises(unimplemented, "tessera:stop_grad/1", fun() -> (tessera:grad(Loop))(1.0) end)),
     ?_test(raises(unimplemented, "through reduce is not supported; sum/2, product/2, reduce_max/2", fun() -> (tessera:grad(fun(X) -> tessera:reduce(X, 0, fun tessera:add/2) end))(tessera:tensor([1.0])) end)),
     ?_test(raises(unimplemented, "through qr is not supported with full => true where there are more rows than columns", fun() ->
         (tessera:grad(fun(X) -> tessera:sum(element(1, tessera:qr(X, #{full => true}))) end))(tessera:tensor([[1.0], [2.0]]))
     end)),
     ?_test(raises(unimplemented, "through svd is not supported for vectors that only full => true gives", fun() ->
         (tessera:grad(fun(X) -> tessera:sum(element(1, tessera:svd(X, #{full => true}))) end))(tessera:tensor([[1.0], [2.0]]))
     end)),
     ?_test(raises(invalid_argument, "f32[1]", fun() -> (tessera:grad(fun(X) -> X end))(tessera:tensor([1.0])) end)),
     ?_test(raises(invalid_argument, "s32[]", fun() -> (tessera:grad(fun(X) -> X end))(1) end)),
     ?_test(raises(invalid_argument, "ok", fun() -> (tessera:grad(fun(_) -> ok end))(1) end)),
     ?_test(raises(invalid_argument, "no arguments", fun() -> tessera:grad(fun() -> 1.0 end) end)),
     ?_test(raises(invalid_argument, "function", fun() -> tessera:grad(foo) end))].

%% The text of the error.
instead_of_while_test() ->
    Unrolled = fun(X) -> lists:foldl(fun(_, Y) -> tessera:multiply(Y, 2) end, X, lists:seq(1, 2)) end,
    near(4.0, tessera:to_number((tessera:grad(Unrolled))(1.0))).

%% A loop that does not depend on the argument is no obstacle.
constant_loop_test() ->
    G = tessera:grad(fun(X) -> tessera:multiply(X, tessera:while(1.0, fun(A) -> tessera:less(A, 10) end,
                                                                 fun(A) -> tessera:multiply(A, 2) end)) end),
    near(16.0, tessera:to_number(G(1.0))).
