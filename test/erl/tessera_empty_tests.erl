%% Operands without elements: each op that takes them gives the same eagerly and compiled, or the same error, and does
%% not end the VM. Sizes of 0 stand where kernels divide by a number of rows, columns, steps or windows.
-module(tessera_empty_tests).
-include_lib("eunit/include/eunit.hrl").

-define(TYPES, [f32, f64, bf16, s32, s8, c64]).

%% ---- helpers

leaves(T) when is_tuple(T) -> [leaves(X) || X <- tuple_to_list(T)];
leaves(T) -> {tessera:type(T), tessera:shape(T), tessera:to_binary(T)}.

outcome(F, Args) ->
    try leaves(apply(F, Args))
    catch error:{Code, Text} when is_atom(Code), is_binary(Text) -> {error, Code}
    end.

%% What differs, or is no value and no error of ours.
differences(Cases) ->
    [Case || {_, F, Operands} = Case <- Cases,
             Args <- [[tessera:zeros(Shape, Type) || {Type, Shape} <- Operands]],
             outcome(F, Args) =/= outcome(tessera:jit(F), Args)].

same(Cases) -> {timeout, 120, ?_assertEqual([], differences(Cases))}.

of_one(Names, Shapes) ->
    [{Name, fun tessera:Name/1, [{Type, Shape}]} || Name <- Names, Shape <- Shapes, Type <- ?TYPES].

of_two(Name, F, Pairs) -> of_two(Name, F, Pairs, ?TYPES).

of_two(Name, F, Pairs, Types) -> [{Name, F, [{Type, A}, {Type, B}]} || {A, B} <- Pairs, Type <- Types].

%% ---- ops of one operand

-define(SHAPES, [{0}, {0, 3}, {3, 0}, {0, 0}, {2, 0, 3}, {0, 4, 4}, {4, 0, 0}, {3, 4, 0}, {0, 1}, {1, 0}]).

elements_test_() -> same(of_one([exp, tanh, sigmoid, negate, transpose, flatten, reverse, softmax, logsumexp], ?SHAPES)).

reductions_test_() -> same(of_one([sum, product, mean, variance, reduce_max, reduce_min, argmax, argmin, all, any], ?SHAPES)).

order_test_() -> same(of_one([sort, argsort, cumulative_sum, cumulative_max, median], ?SHAPES)).

matrices_test_() ->
    Names = [cholesky, qr, lu, svd, eigh, inverse, determinant, fft, rfft, tril, triu],
    same([Case || {_, _, [{Type, _}]} = Case <- of_one(Names, ?SHAPES), Type =/= bf16]).

axes_test_() ->
    Shapes = [{0, 3, 2}, {3, 0, 2}, {3, 2, 0}],
    same([{sum, fun(X) -> tessera:sum(X, #{axes => Axes}) end, [{Type, Shape}]}
          || Type <- ?TYPES, Shape <- Shapes, Axes <- [[0], [1], [2], [0, 2], [0, 1]]] ++
         [{cumulative_sum, fun(X) -> tessera:cumulative_sum(X, #{axis => Axis}) end, [{Type, Shape}]}
          || Type <- ?TYPES, Shape <- Shapes, Axis <- [0, 1, 2]]).

windows_test_() ->
    Shapes = [{0, 5}, {5, 0}, {5, 1}, {0, 0}],
    same([{F, fun(X) -> tessera:F(X, {1, 2}, #{padding => Padding}) end, [{Type, Shape}]}
          || F <- [window_max, window_sum], Padding <- [valid, same], Type <- ?TYPES, Shape <- Shapes]).

%% ---- products

products() -> [{{5, 4}, {4, 0}}, {{0, 4}, {4, 5}}, {{5, 0}, {0, 4}}, {{0, 0}, {0, 0}}, {{1, 4}, {4, 0}}, {{4}, {4, 0}}, {{0, 4}, {4}}, {{0}, {0}},
               {{0}, {0, 5}}, {{300, 0}, {0, 300}}, {{300, 300}, {300, 0}}, {{40, 40}, {40, 0}}, {{2, 0, 4}, {4, 3}}].

products_test_() ->
    Turned = fun(A, B) -> tessera:dot(tessera:transpose(A), tessera:transpose(B)) end,
    Matrices = [{{K, M}, {N, K}} || {{M, K}, {K, N}} <- products()],
    [same(of_two(dot, fun tessera:dot/2, products(), [f16, c128 | ?TYPES])), same(of_two(turned, Turned, Matrices))].

batches_test_() ->
    F = fun(A, B) -> tessera:dot(A, [2], [0], B, [1], [0]) end,
    same(of_two(batches, F, [{{0, 5, 3}, {0, 3, 4}}, {{2, 5, 0}, {2, 0, 4}}, {{2, 5, 3}, {2, 3, 0}}, {{0, 5, 0}, {0, 0, 0}}])).

%% Beside ops that are fused with a product.
epilogues_test_() ->
    Relu = fun(A, B) -> tessera:max(tessera:add(tessera:dot(A, B), 1), 0) end,
    Sum = fun(A, B) -> tessera:sum(tessera:multiply(tessera:dot(A, B), 2)) end,
    Gradient = fun(A, B) -> (tessera:grad(fun(X) -> tessera:sum(tessera:dot(X, B)) end))(A) end,
    Pairs = [{{5, 4}, {4, 0}}, {{0, 4}, {4, 5}}, {{5, 0}, {0, 4}}],
    [same(of_two(relu, Relu, Pairs, [f32, bf16, s8])), same(of_two(sum, Sum, Pairs)), same(of_two(gradient, Gradient, Pairs, [f32, f64]))].

%% A sum of nothing is 0, whatever the types.
values_test() ->
    [?assertEqual({Type, [[0, 0], [0, 0]]}, {Type, integers(tessera:dot(tessera:zeros({2, 0}, Type), tessera:zeros({0, 2}, Type)))})
     || Type <- [f32, f64, bf16, f16, s32, s8]].

integers(T) -> [[trunc(X) || X <- Row] || Row <- tessera:to_list(T)].

convolutions_test_() ->
    Sizes = [{{0, 5, 5, 3}, {2, 2, 3, 4}}, {{2, 5, 5, 0}, {2, 2, 0, 4}}, {{2, 5, 5, 3}, {2, 2, 3, 0}}, {{2, 1, 1, 3}, {2, 2, 3, 4}}, {{2, 0, 0, 3}, {2, 2, 3, 4}}],
    [same(of_two(conv, fun(X, K) -> tessera:conv(X, K, #{padding => Padding}) end, Sizes, [f32, bf16, s32])) || Padding <- [valid, same]].

solves_test_() ->
    Pairs = [{{0, 0}, {0, 3}}, {{3, 3}, {3, 0}}, {{0, 3, 3}, {0, 3, 2}}, {{2, 0, 0}, {2, 0, 0}}],
    [same(of_two(Name, fun tessera:Name/2, Pairs, [f32, f64, c64])) || Name <- [triangular_solve, solve]].

%% ---- copies

copies_test_() ->
    Join = fun(A, B) -> tessera:concatenate([A, B]) end,
    Pad = fun(X) -> tessera:pad(X, 1, [{1, 1, 1}, {0, 2, 0}]) end,
    Take = fun(X, I) -> tessera:take(X, I, #{axis => 0}) end,
    Add = fun(X, I, U) -> tessera:indexed_add(X, I, U) end,
    same(of_two(join, Join, [{{0, 3}, {0, 3}}, {{3, 0}, {3, 0}}, {{0, 3}, {2, 3}}]) ++
         [{pad, Pad, [{Type, Shape}]} || Type <- ?TYPES, Shape <- [{0, 3}, {3, 0}, {0, 0}]] ++
         [{take, Take, [{Type, A}, {s32, I}]} || Type <- ?TYPES, {A, I} <- [{{5, 0}, {3}}, {{5, 3}, {0}}, {{0, 3}, {0}}, {{5, 2}, {0, 2}}]] ++
         [{indexed_add, Add, [{Type, A}, {s32, I}, {Type, U}]}
          || Type <- ?TYPES, {A, I, U} <- [{{5}, {0, 1}, {0}}, {{5, 0}, {2, 1}, {2, 0}}, {{0, 3}, {0, 1}, {0, 3}}, {{0, 3}, {0, 2}, {0}}]] ++
         [{top_k, fun(X) -> tessera:top_k(X, K) end, [{Type, Shape}]} || Type <- [f32, s8], {Shape, K} <- [{{0, 3}, 2}, {{3, 0}, 0}, {{3, 4}, 0}]]).
