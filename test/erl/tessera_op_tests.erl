%% Ops against plain Erlang on small tensors. That each op is right for
%% every type and shape is tested in C; here it is types, broadcasting, options
%% and errors, eagerly and compiled.
-module(tessera_op_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/3, near/2, near/3]).

%% F on these arguments has the expected result: run at once, compiled, and compiled without any pass.
same(Expected, F, Args) ->
    near(Expected, tessera:to_list(apply(F, Args))),
    near(Expected, tessera:to_list(apply(tessera:jit(F), Args))),
    near(Expected, tessera:to_list(apply(tessera:jit(F, #{fuse => false, simplify => false}), Args))).

t(List) -> tessera:tensor(List).

unary_test_() ->
    Xs = [-1.5, -0.25, 0.0, 0.5, 2.0],
    Inside = [-0.9, 0.0, 0.5],
    Above = [1.0, 1.5, 3.0],
    [{atom_to_list(Name), fun() -> same([F(X) || X <- Points], fun(T) -> tessera:Name(T) end, [t(Points)]) end}
     || {Name, F, Points} <-
            [{exp, fun math:exp/1, Xs}, {expm1, fun(X) -> math:exp(X) - 1 end, Xs}, {log, fun math:log/1, Above},
             {log1p, fun(X) -> math:log(1 + X) end, Inside}, {sigmoid, fun(X) -> 1 / (1 + math:exp(-X)) end, Xs},
             {cos, fun math:cos/1, Xs}, {sin, fun math:sin/1, Xs}, {tan, fun math:tan/1, Inside},
             {cosh, fun math:cosh/1, Xs}, {sinh, fun math:sinh/1, Xs}, {tanh, fun math:tanh/1, Xs},
             {acos, fun math:acos/1, Inside}, {asin, fun math:asin/1, Inside}, {atan, fun math:atan/1, Xs},
             {acosh, fun math:acosh/1, Above}, {asinh, fun math:asinh/1, Xs}, {atanh, fun math:atanh/1, Inside},
             {sqrt, fun math:sqrt/1, Above}, {rsqrt, fun(X) -> 1 / math:sqrt(X) end, Above},
             {cbrt, fun(X) -> math:pow(X, 1 / 3) end, Above}, {erf, fun math:erf/1, Xs}, {erfc, fun math:erfc/1, Xs},
             {abs, fun erlang:abs/1, Xs}, {negate, fun(X) -> -X end, Xs}, {ceil, fun math:ceil/1, Xs},
             {floor, fun math:floor/1, Xs}, {round, fun(X) -> float(round(X)) end, Xs},
             {relu, fun(X) -> max(X, 0.0) end, Xs}]].

erf_inv_test() -> same([-0.5, 0.0, 0.9], fun(X) -> tessera:erf_inv(tessera:erf(X)) end, [t([-0.5, 0.0, 0.9])]).

binary_test_() ->
    As = [7, -7, 12, 0], Bs = [2, 2, 5, 3],
    [{atom_to_list(Name), fun() -> same(lists:zipwith(F, As, Bs), fun tessera:Name/2, [t(As), t(Bs)]) end}
     || {Name, F} <-
            [{add, fun erlang:'+'/2}, {subtract, fun erlang:'-'/2}, {multiply, fun erlang:'*'/2},
             {divide, fun erlang:'/'/2}, {quotient, fun erlang:'div'/2}, {remainder, fun erlang:'rem'/2},
             {pow, fun(A, B) -> round(math:pow(A, B)) end}, {atan2, fun math:atan2/2}, {min, fun erlang:min/2},
             {max, fun erlang:max/2}, {bitwise_and, fun erlang:'band'/2}, {bitwise_or, fun erlang:'bor'/2},
             {bitwise_xor, fun erlang:'bxor'/2}, {left_shift, fun erlang:'bsl'/2}, {right_shift, fun erlang:'bsr'/2},
             {equal, fun(A, B) -> b(A == B) end}, {not_equal, fun(A, B) -> b(A /= B) end},
             {greater, fun(A, B) -> b(A > B) end}, {less, fun(A, B) -> b(A < B) end},
             {greater_equal, fun(A, B) -> b(A >= B) end}, {less_equal, fun(A, B) -> b(A =< B) end},
             {logical_and, fun(A, B) -> b(A /= 0 andalso B /= 0) end},
             {logical_or, fun(A, B) -> b(A /= 0 orelse B /= 0) end},
             {logical_xor, fun(A, B) -> b((A /= 0) /= (B /= 0)) end}]].

b(true) -> 1;
b(false) -> 0.

%% Division by zero, overflow and long shifts are defined and do not trap.
defined_integers_test_() ->
    Min = -(1 bsl 31),
    [?_test(same(Expected, F, [t(A), t(B)]))
     || {Expected, F, A, B} <-
            [{[-1, -1], fun tessera:quotient/2, [7, 0], [0, 0]},
             {[Min], fun tessera:quotient/2, [Min], [-1]},
             {[7, Min], fun tessera:remainder/2, [7, Min], [0, 0]},
             {[0], fun tessera:remainder/2, [Min], [-1]},
             {[0, 0], fun tessera:left_shift/2, [1, 1], [32, -1]},
             {[-1, 0], fun tessera:right_shift/2, [-5, 5], [40, 99]},
             {[Min], fun tessera:add/2, [(1 bsl 31) - 1], [1]}]].

%% Vectors of small integers of 64 bits are divided as floats, others one by one.
wide_quotients_test_() ->
    Near = [Sign * (1 bsl Bits) + D || Bits <- [0, 26, 50, 51, 52, 53, 62], Sign <- [1, -1], D <- [-1, 0, 1]] ++ [7, -1000, (1 bsl 63) - 1],
    Small = [X || X <- Near, abs(X) < 1 bsl 51],
    [{lists:flatten(io_lib:format("~s ~b", [Type, length(Numbers)])), fun() -> check_quotients(Type, Numbers) end}
     || {Type, Numbers} <- [{s64, Near}, {s64, Small}, {u64, [X || X <- Near, X >= 0]}, {u64, [X || X <- Small, X >= 0]}]].

check_quotients(Type, Numbers) ->
    {As, Bs} = lists:unzip([{A, B} || A <- Numbers, B <- Numbers, B =/= 0]),
    Operands = [tessera:tensor(As, Type), tessera:tensor(Bs, Type)],
    same(lists:zipwith(fun erlang:'div'/2, As, Bs), fun tessera:quotient/2, Operands),
    same(lists:zipwith(fun erlang:'rem'/2, As, Bs), fun tessera:remainder/2, Operands).

%% Parts of one shape that use the same values are one kernel.
parts_of_one_kernel_test_() ->
    X = tessera:tensor([[1, 2, 3], [4, 5, 6]], s32),
    Parts = fun(A) -> Y = tessera:multiply(A, A), [tessera:add(Y, 1), tessera:subtract(Y, A), tessera:negate(Y)] end,
    Join = fun(Axis) -> fun(A) -> tessera:concatenate(Parts(A), Axis) end end,
    Halves = fun(A) -> [H, L] = [tessera:slice(A, [I, 0], [1, 3]) || I <- [1, 0]], tessera:concatenate([tessera:add(H, L), tessera:subtract(H, L)], 0) end,
    Rows = [[2, 5, 10], [17, 26, 37], [0, 2, 6], [12, 20, 30], [-1, -4, -9], [-16, -25, -36]],
    [?_test(same(Rows, Join(0), [X])),
     ?_test(same([[2, 5, 10, 0, 2, 6, -1, -4, -9], [17, 26, 37, 12, 20, 30, -16, -25, -36]], Join(1), [X])),
     ?_test(same([[5, 7, 9], [3, 3, 3]], Halves, [X])),
     ?_assertEqual([[5, 7, 9], [3, 3, 3]], tessera:to_list((tessera:jit(Halves, #{donate => [1]}))(tessera:tensor([[1, 2, 3], [4, 5, 6]], s32)))),
     fun() -> tessera_eunit:on_host(fun() -> ?assertMatch({match, [_]}, re:run(tessera:explain(Join(0), [X]), " kernel [0-9a-f]+ ", [global])) end) end].

types_test_() ->
    [?_assertEqual(Expected, tessera:type(F()))
     || {Expected, F} <-
            [{u8, fun() -> tessera:add(tessera:tensor([1], u8), 1) end},
             {s16, fun() -> tessera:add(tessera:tensor([1], u8), -1) end},
             {s64, fun() -> tessera:add(tessera:tensor([1], u32), -1) end},
             {f32, fun() -> tessera:add(t([1]), 1.5) end},
             {f16, fun() -> tessera:add(tessera:tensor([1], f16), 1.5) end},
             {bf16, fun() -> tessera:multiply(2, tessera:tensor([1], bf16)) end},
             {f64, fun() -> tessera:add(tessera:tensor([1], f64), t([1.0])) end},
             {s16, fun() -> tessera:add(tessera:tensor([1], u8), tessera:tensor([1], s8)) end},
             {f32, fun() -> tessera:divide(t([1]), t([2])) end},
             {f16, fun() -> tessera:divide(tessera:tensor([1], f16), 2) end},
             {f32, fun() -> tessera:exp(t([1])) end},
             {s32, fun() -> tessera:add(1, 2) end},
             {f32, fun() -> tessera:add(1, 2.0) end},
             {u8, fun() -> tessera:less(1, 2) end},
             {s32, fun() -> tessera:sum(tessera:tensor([1], s8)) end},
             {u32, fun() -> tessera:sum(tessera:tensor([1], u8)) end},
             {f32, fun() -> tessera:mean(tessera:tensor([1], u8)) end},
             {s32, fun() -> tessera:argmax(t([1.0])) end},
             {s64, fun() -> tessera:argmax(t([1.0]), #{type => s64}) end}]].

%% The promotion in Erlang is the one in C.
merge_test_() ->
    Types = [s8, s16, s32, s64, u8, u16, u32, u64, f16, bf16, f32, f64],
    [?_assertEqual({A, B, tessera_type:merge(A, B)},
                   {A, B, tessera:type(tessera:multiply(tessera:tensor(1, A), tessera:tensor(1, B)))})
     || A <- Types, B <- Types].

broadcasting_test_() ->
    [?_test(same(Expected, fun tessera:add/2, [A, B]))
     || {Expected, A, B} <-
            [{[[11, 22], [13, 24]], t([[1, 2], [3, 4]]), t([10, 20])},
             {[[11, 12], [21, 22]], t([[10], [20]]), t([1, 2])},
             {[[[1, 2]]], t([[[0]]]), t([1, 2])},
             {[[]], tessera:zeros({1, 0}), t([1.0])},
             {[2, 3], 1, t([1, 2])}]].

shape_test_() ->
    X = tessera:iota({2, 3}),
    [?_test(same(Expected, F, [X]))
     || {Expected, F} <-
            [{[[0, 1], [2, 3], [4, 5]], fun(T) -> tessera:reshape(T, {3, 2}) end},
             {[0, 1, 2, 3, 4, 5], fun tessera:flatten/1},
             {[[[0], [1], [2]], [[3], [4], [5]]], fun(T) -> tessera:new_axis(T, 2) end},
             {[[0, 1, 2], [3, 4, 5]], fun(T) -> tessera:squeeze(tessera:new_axis(T, 0)) end},
             {[[0, 3], [1, 4], [2, 5]], fun tessera:transpose/1},
             {[[5, 4, 3], [2, 1, 0]], fun tessera:reverse/1},
             {[[2, 1, 0], [5, 4, 3]], fun(T) -> tessera:reverse(T, [-1]) end},
             {[[1, 2]], fun(T) -> tessera:slice(T, [0, 1], [1, 2]) end},
             {[[0, 2]], fun(T) -> tessera:slice(T, [0, 0], [1, 3], [1, 2]) end},
             {[[1, 2], [4, 5]], fun(T) -> tessera:slice(T, [0, tessera:tensor(7)], [2, 2]) end},
             {5, fun(T) -> tessera:at(T, [-1, -1]) end},
             {[3, 4, 5], fun(T) -> tessera:at(T, [tessera:tensor(1)]) end},
             {[[0, 1, 2], [3, 9, 9]], fun(T) -> tessera:put_slice(T, [1, 1], tessera:tensor([[9, 9]])) end},
             {[[7, 0, 7, 1, 7, 2], [7, 3, 7, 4, 7, 5]], fun(T) -> tessera:pad(T, 7, [{0, 0, 0}, {1, 0, 1}]) end},
             {[[1], [4]], fun(T) -> tessera:pad(T, 0, [{0, 0, 0}, {-1, -1, 0}]) end},
             {[[0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5]], fun(T) -> tessera:concatenate([T, T]) end},
             {[[0, 1, 2, 0], [3, 4, 5, 3]], fun(T) -> tessera:concatenate([T, tessera:slice(T, [0, 0], [2, 1])], 1) end},
             {[[[0, 1, 2], [3, 4, 5]], [[1, 2, 3], [4, 5, 6]]], fun(T) -> tessera:stack([T, tessera:add(T, 1)]) end},
             {[[2, 5], [0, 3]], fun(T) -> tessera:take(tessera:transpose(T), tessera:tensor([9, -4])) end},
             {[[2], [3]], fun(T) -> tessera:take_along_axis(T, tessera:tensor([[2], [0]]), #{axis => -1}) end},
             {[[0, 0, 1], [1, 1, 1]], fun(T) -> tessera:select(tessera:less(T, 2), 0, 1) end},
             {[[1, 1, 2], [3, 3, 3]], fun(T) -> tessera:clip(T, 1, 3) end}]].

split_test() ->
    [A, B] = tessera:split(tessera:iota({2, 3}), [1, 2], 1),
    ?assertEqual({[[0], [3]], [[1, 2], [4, 5]]}, {tessera:to_list(A), tessera:to_list(B)}).

bitcast_test() ->
    same([16#3f800000], fun(T) -> tessera:bitcast(T, s32) end, [t([1.0])]).

creation_test_() ->
    [?_test(near(Expected, tessera:to_list(T)))
     || {Expected, T} <- [{[[1, 0, 0], [0, 1, 0]], tessera:eye({2, 3}, s32)}, {[0.0, 0.5, 1.0], tessera:linspace(0, 1, 3)},
                          {[[1.5]], tessera:full({1, 1}, 1.5)}, {[[0, 0], [1, 1]], tessera:iota({2, 2}, s32, 0)},
                          {[1.0, 1.0], tessera:ones({2})}, {[nan], tessera:full({1}, nan, f16)},
                          {[[2, 2]], tessera:full({1, 2}, tessera:tensor(2), s32)}]].

reduction_test_() ->
    X = t([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]]),
    [?_test(same(Expected, F, [X]))
     || {Expected, F} <-
            [{21.0, fun tessera:sum/1}, {[5.0, 8.0, 8.0], fun(T) -> tessera:sum(T, #{axes => [0]}) end},
             {[[8.0], [13.0]], fun(T) -> tessera:sum(T, #{axes => [-1], keep_axes => true}) end},
             {720.0, fun tessera:product/1}, {6.0, fun tessera:reduce_max/1},
             {[1.0, 3.0], fun(T) -> tessera:reduce_min(T, #{axes => [1]}) end},
             {1, fun tessera:all/1}, {0, fun(T) -> tessera:any(tessera:greater(T, 6)) end},
             {3.5, fun tessera:mean/1}, {[[3.5]], fun(T) -> tessera:mean(T, #{keep_axes => true}) end},
             {35 / 12, fun tessera:variance/1}, {math:sqrt(3.5), fun(T) -> tessera:standard_deviation(T, #{ddof => 1}) end},
             {5, fun tessera:argmax/1}, {[1, 2], fun(T) -> tessera:argmax(T, #{axis => 1}) end},
             {[[0, 1, 0]], fun(T) -> tessera:argmin(T, #{axis => 0, keep_axis => true}) end},
             {[[1.0, 6.0, 8.0], [4.0, 7.0, 13.0]], fun(T) -> tessera:cumulative_sum(T, #{axis => 1}) end},
             {[[4.0, 15.0, 12.0], [4.0, 3.0, 6.0]], fun(T) -> tessera:cumulative_product(T, #{reverse => true}) end},
             {[[1.0, 5.0, 5.0], [4.0, 4.0, 6.0]], fun(T) -> tessera:cumulative_max(T, #{axis => 1}) end},
             {[[1.0, 1.0, 1.0], [4.0, 3.0, 3.0]], fun(T) -> tessera:cumulative_min(T, #{axis => 1}) end},
             {math:log(lists:sum([math:exp(N) || N <- [1, 2, 3, 4, 5, 6]])), fun tessera:logsumexp/1},
             {[0.5, 0.5], fun(_) -> tessera:softmax(tessera:tensor([800.0, 800.0])) end},
             {[-math:log(2), -math:log(2)], fun(_) -> tessera:log_softmax(tessera:tensor([-1.0e30, -1.0e30])) end}]].

%% One option has one meaning, by either name; an axis may be alone or in a list.
axis_or_axes_test_() ->
    X = tessera:iota({2, 3}, f32),
    Reductions = [sum, product, reduce_max, reduce_min, all, any, mean, variance, standard_deviation, logsumexp],
    [?_assertEqual({Name, to_list(tessera:Name(X, #{axes => [1], keep_axes => true}))},
                   {Name, to_list(tessera:Name(X, Options))})
     || Name <- Reductions, Axis <- [axis, axes], Keep <- [keep_axis, keep_axes], Value <- [1, -1, [1], [-1]],
        Options <- [#{Axis => Value, Keep => true}]] ++
    [?_assertEqual({Name, to_list(tessera:Name(X, #{axes => [0]}))}, {Name, to_list(tessera:Name(X, #{Axis => Value}))})
     || Name <- [softmax, log_softmax], Axis <- [axis, axes], Value <- [0, [0], -2]] ++
    [?_assertEqual({Name, to_list(tessera:Name(X, #{axis => 1}))}, {Name, to_list(tessera:Name(X, #{Axis => Value}))})
     || Name <- [argmax, argmin, cumulative_sum, cumulative_product, cumulative_min, cumulative_max],
        Axis <- [axis, axes], Value <- [1, [1], -1]] ++
    [?_assertEqual([[2.0], [5.0]], to_list(tessera:take(X, tessera:tensor([2]), #{Axis => Value})))
     || Axis <- [axis, axes], Value <- [1, [1]]] ++
    [?_assertEqual([[2.0], [3.0]], to_list(tessera:take_along_axis(X, tessera:tensor([[2], [0]]), #{Axis => [1]})))
     || Axis <- [axis, axes]] ++
    [?_assertEqual(5, to_list(tessera:argmax(X, #{Axis => all}))) || Axis <- [axis, axes]] ++
    [?_assertEqual([[5]], to_list(tessera:argmax(X, #{keep_axes => true}))),
     ?_assertEqual(15.0, to_list(tessera:sum(X, #{axis => all}))),
     ?_assertEqual([7.0], to_list(tessera:reduce(tessera:tensor([[3.0], [4.0]]), 0, fun tessera:add/2, #{axis => 0}))),
     %% Where it is no option.
     ?_assertEqual({3}, tessera:shape(tessera:squeeze(tessera:iota({1, 3}), 0))),
     ?_assertEqual({3}, tessera:shape(tessera:squeeze(tessera:iota({1, 3, 1}), all))),
     ?_assertEqual([[3, 4, 5], [0, 1, 2]], to_list(tessera:reverse(tessera:iota({2, 3}), 0))),
     ?_assertEqual([[0, 0], [1, 1]], to_list(tessera:broadcast(tessera:iota({2}), {2, 2}, 0))),
     ?_assertEqual(5.0, to_list(tessera:dot(tessera:iota({3}, f32), 0, tessera:iota({3}, f32), 0))),
     ?_assertEqual([[0, 1], [2, 3]], to_list(tessera:iota({2, 2}, s32, all)))].

to_list(T) -> tessera:to_list(T).

%% Tensors made of values are f32, counters s32.
default_types_test_() ->
    [?_assertEqual({Name, f32}, {Name, tessera:type(T)})
     || {Name, T} <- [{zeros, tessera:zeros({2})}, {ones, tessera:ones({2})}, {eye, tessera:eye(2)},
                      {eye, tessera:eye({2, 3})}, {linspace, tessera:linspace(0, 1, 2)}]] ++
    [?_assertEqual({Name, s32}, {Name, tessera:type(T)})
     || {Name, T} <- [{iota, tessera:iota({2})}, {argmax, tessera:argmax(tessera:tensor([1.0]))},
                      {argmin, tessera:argmin(tessera:tensor([1.0]))}]].

tie_break_test_() ->
    X = t([3, 1, 3]),
    [?_assertEqual(0, tessera:to_number(tessera:argmax(X))),
     ?_assertEqual(2, tessera:to_number(tessera:argmax(X, #{tie_break => high}))),
     ?_assertEqual(1, tessera:to_number(tessera:argmax(t([1.0, nan, 3.0]))))].

fold_test_() ->
    [?_test(same(321, fun(T) -> tessera:reduce(T, 0, fun(X, A) -> tessera:add(tessera:multiply(A, 10), X) end) end,
                 [t([3, 2, 1])])),
     ?_test(same([4, 6], fun(T) -> tessera:reduce(T, 0, fun tessera:add/2, #{axes => [0]}) end, [t([[1, 2], [3, 4]])])),
     ?_test(same([[10.5], [10.5]], fun(T) -> tessera:reduce(T, 0.5, fun tessera:max/2, #{axes => [1], keep_axes => true}) end,
                 [tessera:full({2, 3}, 10.5)])),
     %% with control flow in the function, and folds of folds
     ?_test(same(11, fun(T) -> tessera:reduce(T, 0, fun longer/2) end, [t([3, 1, 4, 7])])),
     ?_test(same([[10], [11]], fun(T) -> tessera:reduce(T, 0, fun longer/2, #{axes => [1], keep_axes => true}) end,
                 [t([[3, 2, 1, 7], [3, 1, 4, 7]])])),
     ?_test(same(5.3125, fun(T) -> tessera:reduce(T, 1, fun halved/2) end, [t([5.0, 20.0, 30.0, 1.5])])),
     ?_test(same([12, 9], fun(T) -> tessera:reduce(T, 0, fun(X, A) -> tessera:sum(tessera:broadcast(tessera:add(X, A), {3})) end,
                                                   #{axes => [0]}) end, [t([[1, 0], [1, 3]])])),
     ?_test(same([5.0, 5.0], fun(T) -> tessera:reduce(T, 5, fun longer/2, #{axes => [0]}) end, [tessera:zeros({0, 2})])),
     ?_test(same([], fun(T) -> tessera:reduce(T, 5, fun longer/2, #{axes => [0]}) end, [tessera:zeros({2, 0})]))].

%% X where it is even, else both.
longer(X, A) -> tessera:'cond'(tessera:equal(tessera:remainder(X, 2), 0), fun() -> X end, fun() -> tessera:add(A, X) end).

halved(X, A) -> tessera:while(tessera:add(X, A), fun(Y) -> tessera:greater(Y, 10) end, fun(Y) -> tessera:multiply(Y, 0.5) end).

%% Products of 64 bits are computed in 32 where no sum of the widened numbers can overflow: at that bound and one past it.
narrow_dot_test_() ->
    [{lists:flatten(io_lib:format("~p, ~p to ~s, ~b terms", [X, Y, To, Terms])),
      fun() ->
              Full = fun(Type, Number) -> tessera:full({1, Terms}, Number, Type) end,
              F = fun(L, R) -> tessera:dot(tessera:as_type(L, To), [1], tessera:as_type(R, To), [1]) end,
              Sum = Terms * element(2, X) * element(2, Y),
              Expected = case To of u64 -> Sum band 16#ffffffffffffffff; s64 -> Sum end,
              [A, B] = [Full(Type, Number) || {Type, Number} <- [X, Y]],
              ?assertEqual([[Expected]], to_list((tessera:jit(F))(A, B)))
      end}
     || {X, Y, Least} <- [{{s8, -128}, {s8, -128}, 131071}, {{s8, -128}, {u8, 255}, 65793}, {{u8, 255}, {u8, 255}, 33025},
                          {{s16, -32768}, {s8, -128}, 511}, {{u16, 65535}, {s8, -128}, 256}, {{u16, 65535}, {u16, 65535}, 1}],
        To <- [s64, u64], Terms <- [Least, Least + 1]].

dot_test_() ->
    A = t([[1.0, 2.0], [3.0, 4.0]]), V = t([1.0, 10.0]),
    [?_test(same(Expected, fun tessera:dot/2, Args))
     || {Expected, Args} <- [{[[7.0, 10.0], [15.0, 22.0]], [A, A]}, {[21.0, 43.0], [A, V]}, {[31.0, 42.0], [V, A]},
                             {101.0, [V, V]}, {[2.0, 20.0], [2, V]}, {[[7, 10], [15, 22]], [t([[1, 2], [3, 4]]), t([[1, 2], [3, 4]])]},
                             {[[0.0], [0.0]], [tessera:zeros({2, 0}), tessera:zeros({0, 1})]}]] ++
    [?_test(same([[10.0, 14.0], [14.0, 20.0]], fun(X) -> tessera:dot(X, [0], X, [0]) end, [A])),
     ?_test(same([5.0, 25.0], fun(X) -> tessera:dot(X, [1], [0], X, [1], [0]) end, [A])),
     ?_test(same([[1.0, 10.0], [10.0, 100.0]], fun tessera:outer/2, [V, V]))].

%% Names of ops, shapes and types, and the arguments that are wrong.
misuse_test_() ->
    X = tessera:iota({2, 3}, f32),
    [?_test(begin
                raises(Code, Words, fun() -> F(X) end),
                raises(Code, Words, fun() -> (tessera:jit(F))(X) end)
            end)
     || {Code, Words, F} <-
            [{invalid_argument, "add(f32[2,3], s32[2])", fun(T) -> tessera:add(T, tessera:iota({2})) end},
             {invalid_argument, "bitwise_and", fun(T) -> tessera:bitwise_and(T, 1) end},
             {invalid_argument, "6", fun(T) -> tessera:reshape(T, {4}) end},
             {invalid_argument, "sum(f32[2,3]): no axis 2", fun(T) -> tessera:sum(T, #{axes => [2]}) end},
             {invalid_argument, "take(f32[2,3], s32[1]): no axis 5", fun(T) -> tessera:take(T, tessera:iota({1}), #{axis => 5}) end},
             {invalid_argument, "concatenate(f32[2,3], f32[2,3]): no axis", fun(T) -> tessera:concatenate([T, T], 9) end},
             {invalid_argument, "stack(f32[2,3], f32[2,3], f32[2,3], f32[2,3], ...): no axis",
              fun(T) -> tessera:stack(lists:duplicate(9, T), 9) end},
             {invalid_argument, "twice", fun(T) -> tessera:sum(T, #{axes => [0, -2]}) end},
             {invalid_argument, "unknown options [axs], expected some of [axes,axis,keep_axes,keep_axis]",
              fun(T) -> tessera:sum(T, #{axs => 0}) end},
             {invalid_argument, "expected some of [axes,axis,keep_axes,keep_axis,tie_break,type]",
              fun(T) -> tessera:argmax(T, #{dim => 0}) end},
             {invalid_argument, "expected some of [axes,axis,reverse]", fun(T) -> tessera:cumulative_sum(T, #{dim => 0}) end},
             {invalid_argument, "axes and axis are the same option", fun(T) -> tessera:sum(T, #{axis => 0, axes => 1}) end},
             {invalid_argument, "keep_axis and keep_axes are the same",
              fun(T) -> tessera:argmax(T, #{keep_axis => true, keep_axes => true}) end},
             {invalid_argument, "argmax(f32[2,3]): expected one axis, got [0,1]", fun(T) -> tessera:argmax(T, #{axes => [0, 1]}) end},
             {invalid_argument, "expected one axis", fun(T) -> tessera:take(T, tessera:iota({1}), #{axes => []}) end},
             {invalid_argument, "slice(f32[2,3]): 2 elements from 2 on are not in axis 1, which has 3",
              fun(T) -> tessera:slice(T, [tessera:tensor(0), 2], [1, 2]) end},
             {invalid_argument, "elements from -1 on", fun(T) -> tessera:slice(T, [-1, tessera:tensor(0)], [1, 2]) end},
             {invalid_argument, "options", fun(T) -> tessera:sum(T, [{axes, [0]}]) end},
             {invalid_argument, "size 2", fun(T) -> tessera:squeeze(T, [0]) end},
             {invalid_argument, "transpose", fun(T) -> tessera:transpose(T, [0]) end},
             {invalid_argument, "slice", fun(T) -> tessera:slice(T, [1, 0], [2, 3]) end},
             {invalid_argument, "slice", fun(T) -> tessera:slice(T, [-1, 0], [1, 3]) end},
             {invalid_argument, "2 starts", fun(T) -> tessera:slice(T, [0], [2, 3]) end},
             {invalid_argument, "stride", fun(T) -> tessera:slice(T, [0, 0], [2, 3], [1, 0]) end},
             {invalid_argument, "at", fun(T) -> tessera:at(T, [0, 0, 0]) end},
             {invalid_argument, "put_slice", fun(T) -> tessera:put_slice(T, [0], T) end},
             {invalid_argument, "pad", fun(T) -> tessera:pad(T, 0, [{0, 0}]) end},
             {invalid_argument, "interior", fun(T) -> tessera:pad(T, 0, [{0, 0, -1}, {0, 0, 0}]) end},
             {invalid_argument, "concatenate", fun(T) -> tessera:concatenate([T, tessera:iota({2, 2})], 0) end},
             {invalid_argument, "concatenate", fun(_) -> tessera:concatenate([]) end},
             {invalid_argument, "dot(f32[2,3], f32[2,3])", fun(T) -> tessera:dot(T, T) end},
             {invalid_argument, "sum(f32[2,3]): no axis", fun(T) -> tessera:sum(T, #{axes => 7}) end},
             {invalid_argument, "take", fun(T) -> tessera:take(T, tessera:tensor([0.5])) end},
             {invalid_argument, "bitcast", fun(T) -> tessera:bitcast(T, s64) end},
             {invalid_argument, "type", fun(T) -> tessera:as_type(T, f31) end},
             {invalid_argument, "type", fun(T) -> tessera:as_type(T, c65) end},
             {unimplemented, "erf is not implemented for complex numbers",
              fun(T) -> tessera:erf(tessera:as_type(T, c64)) end},
             {invalid_argument, "tie_break", fun(T) -> tessera:argmax(T, #{tie_break => first}) end},
             {out_of_range, "9223372036854775808 does not fit in s64",
              fun(_) -> tessera:add(tessera:tensor([1], u8), tessera:select(1, 1 bsl 63, -1)) end},
             {invalid_argument, "broadcast", fun(T) -> tessera:broadcast(T, {3, 2}) end},
             {invalid_argument, "smaller rank", fun(T) -> tessera:broadcast(T, {6}) end}]].

%% ---- many dims

shape(Rank, Two) -> list_to_tuple([case lists:member(D, Two) of true -> 2; false -> 1 end || D <- lists:seq(1, Rank)]).

%% Of 64 dims where few have more than one element, and of 18 that all have.
ranks_test_() ->
    [{timeout, 60, {lists:flatten(io_lib:format("~b dims, ~b of them larger", [Rank, length(Two)])), fun() ->
         Flat = tessera:iota({1 bsl length(Two)}, f32),
         X = tessera:reshape(Flat, shape(Rank, Two)),
         ?assertEqual(Rank, tessera:rank(X)),
         Same = fun(A, B) -> ?assertEqual(tessera:to_binary(A), tessera:to_binary(B)) end,
         Same(tessera:add(tessera:multiply(X, X), 1), tessera:add(tessera:multiply(Flat, Flat), 1)),
         Same(tessera:sum(X), tessera:sum(Flat)),
         Half = tessera:reshape(Flat, {2, 1 bsl (length(Two) - 1)}),
         First = hd(Two) - 1, Axes = lists:seq(0, Rank - 1) -- [First],
         Same(tessera:sum(X, #{axes => Axes}), tessera:sum(Half, #{axes => [1]})),
         Same(tessera:sum(X, #{axes => [First]}), tessera:sum(Half, #{axes => [0]})),
         Same(tessera:transpose(X, Axes ++ [First]), tessera:transpose(Half, [1, 0])),
         Same(tessera:reverse(X, [First]), tessera:reverse(Half, [0])),
         Same(tessera:concatenate([X, X], First), tessera:concatenate([Flat, Flat], 0)),
         Same(tessera:dot(X, Axes, X, Axes), tessera:dot(Half, [1], Half, [1])),
         Same((tessera:jit(fun(A) -> tessera:subtract(A, tessera:sum(A, #{axes => [First], keep_axes => true})) end))(X),
              tessera:subtract(Half, tessera:sum(Half, #{axes => [0], keep_axes => true})))
     end}} || {Rank, Two} <- [{17, [1, 17]}, {17, [9, 10]}, {32, [1, 2, 31]}, {64, [2, 30, 33]},
                                       {18, lists:seq(1, 18)}]].

%% Reversed axes of 18 dims do not collapse.
reversed_axes_test() ->
    Rank = 18,
    X = tessera:reshape(tessera:iota({1 bsl Rank}), shape(Rank, lists:seq(1, Rank))),
    Reversed = fun(I) -> lists:foldl(fun(B, Acc) -> Acc * 2 + ((I bsr B) band 1) end, 0, lists:seq(0, Rank - 1)) end,
    Got = tessera:to_list(tessera:reshape(tessera:transpose(X), {1 bsl Rank})),
    ?assertEqual([Reversed(I) || I <- lists:seq(0, (1 bsl Rank) - 1)], Got).

%% ---- no elements: identities if the op has one, NaN for floats, else errors

nothing_test_() ->
    [{lists:flatten(io_lib:format("~p of ~p", [Name, Type])), fun() ->
        None = tessera:zeros({0}, Type), Rows = tessera:zeros({2, 0}, Type),
        Over = fun(X, Axes) -> apply(tessera, Name, [X | Args] ++ [maps:merge(#{axes => Axes}, Options)]) end,
        [begin
             ?assertEqual(Expected, to_list(Run(fun(X) -> Over(X, [0]) end, None))),
             ?assertEqual([Expected, Expected], to_list(Run(fun(X) -> Over(X, [1]) end, Rows))),
             ?assertEqual([], to_list(Run(fun(X) -> Over(X, [0]) end, Rows)))
         end || Run <- [fun(F, X) -> F(X) end, fun(F, X) -> (tessera:jit(F))(X) end]]
     end}
     || {Name, Args, Options, Types, Expected} <-
            [{sum, [], #{}, [f32], 0.0}, {sum, [], #{}, [s32, u8], 0}, {product, [], #{}, [f32], 1.0}, {product, [], #{}, [s32, u8], 1},
             {all, [], #{}, [f32, s32], 1}, {any, [], #{}, [f32, s32], 0},
             {mean, [], #{}, [f32, s32], nan}, {variance, [], #{}, [f32, s32], nan}, {standard_deviation, [], #{}, [f32], nan},
             {reduce_max, [], #{}, [f16, f32, f64], neg_infinity}, {reduce_max, [], #{}, [s32], -(1 bsl 31)}, {reduce_max, [], #{}, [u8], 0},
             {reduce_min, [], #{}, [f16, f32, f64], infinity}, {reduce_min, [], #{}, [s32], (1 bsl 31) - 1}, {reduce_min, [], #{}, [u8], 255},
             {logsumexp, [], #{}, [f32], neg_infinity}, {median, [], #{}, [f32, s32], nan}] ++
            [{quantile, [0.5], #{method => Method}, [f32], nan} || Method <- [linear, lower, higher, nearest, midpoint]] ++
            [{quantile, [0.5], #{method => Method}, [s32], nan} || Method <- [linear, midpoint]] ++
            [{norm, [], #{order => Order}, [f32, c64, s32], 0.0} || Order <- [0, 0.5, 1, 2, 3, infinity]] ++
            [{norm, [], #{order => Order}, [f32, c64, s32], infinity} || Order <- [-0.5, -1, -2, neg_infinity]],
        Type <- Types] ++
    [{lists:flatten(io_lib:format("~p ~p", [Name, Shape])), fun() ->
        F = fun(X) -> apply(tessera, Name, [X | Args]) end,
        X = tessera:zeros(Shape, s32),
        [tessera_test:raises(invalid_argument, "expected at least one element", G) || G <- [fun() -> F(X) end, fun() -> (tessera:jit(F))(X) end]]
     end}
     || {Name, Shape, Args} <-
            [{argmax, {0}, []}, {argmin, {0}, []}, {argmax, {2, 0}, []}, {argmax, {2, 0}, [#{axis => 1}]}, {argmin, {0, 2}, [#{axis => 0}]},
             {mode, {0}, []}, {mode, {2, 0}, [#{axes => [1]}]}] ++
            [{quantile, {2, 0}, [0.5, #{axes => [1], method => Method}]} || Method <- [lower, higher, nearest]]] ++
    [?_assertEqual([], to_list(tessera:argmax(tessera:zeros({0, 2}), #{axis => 1}))),
     ?_assertEqual([], to_list(tessera:argmin(tessera:zeros({2, 0}), #{axis => 0}))),
     ?_assertEqual([[], []], to_list(tessera:sort(tessera:zeros({2, 0}), #{axis => 1}))),
     ?_assertEqual([[], []], to_list(element(2, tessera:top_k(tessera:zeros({2, 0}), 0)))),
     ?_assertEqual([], to_list(element(1, tessera:top_k(t([1, 2]), 0)))),
     ?_assertEqual([[], []], to_list(tessera:cumulative_sum(tessera:zeros({2, 0}), #{axis => 1}))),
     ?_assertEqual([], to_list(tessera:window_max(t([1.0]), {2}))),
     ?_test(tessera_test:raises(invalid_argument, "axis 0 is empty", fun() -> tessera_random:categorical(tessera_random:key(1), tessera:zeros({0})) end))].

%% As in NumPy: one size may be left to the others.
reshape_infers_test_() ->
    [?_assertEqual({Shape, To, tessera:to_list(tessera:reshape(tessera:iota(Shape), To))},
                   {Shape, To, tessera:to_list(tessera:reshape(tessera:iota(Shape), Given))})
     || {Shape, Given, To} <- [{{6}, {2, -1}, {2, 3}}, {{6}, {-1, 2}, {3, 2}}, {{2, 3}, {-1}, {6}}, {{}, {-1}, {1}}, {{}, {1, -1, 1}, {1, 1, 1}},
                               {{4, 6}, {2, -1, 3}, {2, 4, 3}}, {{0}, {-1, 3}, {0, 3}}, {{2, 0}, {5, -1}, {5, 0}}]] ++
    [?_assertEqual({3, 2}, tessera:shape((tessera:jit(fun(X) -> tessera:reshape(X, {-1, 2}) end))(tessera:iota({6})))),
     ?_assertEqual({1}, tessera:shape(tessera:reshape(7, {-1})))] ++
    [?_test(tessera_test:raises(invalid_argument, Words, fun() -> tessera:reshape(tessera:iota(Shape), Given) end))
     || {Words, Shape, Given} <- [{"no size in place of -1 makes 6 elements of the shape {4,-1}", {6}, {4, -1}},
                                  {"no size in place of -1 makes 1 element of the shape {2,-1}", {}, {2, -1}},
                                  {"no size in place of -1 makes 0 elements of the shape {0,-1}", {0}, {0, -1}},
                                  {"no size in place of -1 makes 6 elements of the shape {0,-1}", {6}, {0, -1}},
                                  {"one size may be -1, got {-1,-1}", {6}, {-1, -1}}, {"expected a shape", {6}, {-1, -2}},
                                  {"expected a shape", {6}, {-1, x}}]].

%% The stack trace has the function that was called, with all its arguments.
called_function_test_() ->
    [?_assertMatch({Name, Args, {tessera, Name, Args}}, {Name, Args, raised(Name, Args)})
     || {Name, Args} <- [{iota, [foo]}, {iota, [{2, 3}, foo]}, {iota, [{2, -3}, f32]}, {iota, [{2, 3}, foo, 0]}, {iota, [{2, 3}, s32, 7]},
                         {iota, [{300}, u8]}, {zeros, [foo]}, {zeros, [{2}, foo]}, {ones, [2, f32]}, {ones, [{2}, foo]}, {full, [{2}, 1, foo]},
                         {full, [foo, 1]}, {eye, [foo]}, {eye, [2, foo]}, {eye, [{2}, f32]}, {eye, [-1]}]].

raised(Name, Args) ->
    try apply(tessera, Name, Args)
    catch error:{_, _}:Trace ->
        [{Module, Function, Called, _} | _] = Trace,
        {Module, Function, Called}
    end.
