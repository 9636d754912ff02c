%% Numbers at the limits of their types: a number that a type cannot hold widens it or is refused, and never wraps
%% silently. Random calls are compared with integers of any size in Erlang.
-module(tessera_number_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/3, near/2]).

%% Each pair of types makes kernels of its own.
-define(RANDOM, [s8, u8, u32, s64, u64]).
-define(INTEGERS, [s8, s16, s32, s64, u8, u16, u32, u64]).

range(s8) -> {-128, 127};
range(s16) -> {-32768, 32767};
range(s32) -> {-(1 bsl 31), (1 bsl 31) - 1};
range(s64) -> {-(1 bsl 63), (1 bsl 63) - 1};
range(u8) -> {0, 255};
range(u16) -> {0, 65535};
range(u32) -> {0, (1 bsl 32) - 1};
range(u64) -> {0, (1 bsl 64) - 1}.

has(Type, N) ->
    {Least, Largest} = range(Type),
    N >= Least andalso N =< Largest.

both(F, Args) ->
    T = apply(F, Args),
    Traced = apply(tessera:jit(fun() -> apply(F, Args) end), []),
    ?assertEqual({tessera:type(T), tessera:to_list(T)}, {tessera:type(Traced), tessera:to_list(Traced)}),
    {tessera:type(T), tessera:to_list(T)}.

%% The same at once only: a number is part of a traced program, so each makes kernels of its own.
at_once(F, Args) ->
    T = apply(F, Args),
    {tessera:type(T), tessera:to_list(T)}.

%% One in `Rarely` calls is also traced.
now_and_then(Rarely, F, Args) ->
    case rand:uniform(Rarely) of
        1 -> both(F, Args);
        _ -> at_once(F, Args)
    end.

%% ---- where the type is given

%% The least and the largest number, and those next to them, wherever a number and a type are given.
limits_test_() ->
    Ways = [fun(N, T) -> tessera:tensor(N, T) end,
            fun(N, T) -> tessera:at(tessera:tensor([N], T), [0]) end,
            fun(N, T) -> tessera:full({}, N, T) end,
            fun(N, T) -> (tessera:jit(fun() -> tessera:full({}, N, T) end))() end,
            fun(N, T) -> (tessera:compile(fun(X) -> X end, [tessera:template(T, {})]))(number(N)) end,
            fun(N, T) -> element(2, tessera:while({0, tessera:tensor(0, T)}, fun({I, _}) -> tessera:less(I, 1) end,
                                                  fun({I, _}) -> {tessera:add(I, 1), number(N)} end)) end],
    [?_test(begin
                {Least, Largest} = range(Type),
                [?assertEqual({Type, N}, value(Way(N, Type))) || N <- [Least, Largest, 1]],
                [raises(out_of_range, "the number " ++ integer_to_list(N) ++ " does not fit in " ++ atom_to_list(Type),
                        fun() -> Way(N, Type) end)
                 || N <- [Least - 1, Largest + 1], N < 1 bsl 64, N >= -(1 bsl 63)],
                [raises(invalid_argument, "64 bits", fun() -> Way(N, Type) end) || N <- [1 bsl 64, -(1 bsl 63) - 1]],
                [raises(invalid_argument, "integers only; tessera:as_type/2", fun() -> Way(N, Type) end)
                 || N <- [2.5, 1.0, nan, infinity]]
            end)
     || Type <- ?INTEGERS, Way <- Ways].

%% An atom would be part of the program.
number(Atom) when is_atom(Atom) -> 0.5;
number(N) -> N.

value(T) -> {tessera:type(T), tessera:to_number(T)}.

place_test_() ->
    [?_test(raises(Code, Words, F)) || {Code, Words, F} <-
        [{out_of_range, "tensor: at [1,1]: the number 300 does not fit in u8, which has 0 to 255",
          fun() -> tessera:tensor([[1, 2], [3, 300]], u8) end},
         {out_of_range, "at [0]: the number -1", fun() -> tessera:tensor([-1], u64) end},
         {out_of_range, "at [0]: the number 200 does not fit in s8, which has -128 to 127",
          fun() -> tessera:tensor([200], s8) end},
         {invalid_argument, "at [1]: 2.5 is not an integer", fun() -> tessera:tensor([1, 2.5], s32) end}]].

%% Of lists without a type, whichever number comes first.
list_types_test_() ->
    [?_assertEqual({Type, List}, both(fun tessera:tensor/1, [List]))
     || {Type, Numbers} <- [{s32, [-(1 bsl 31), (1 bsl 31) - 1]}, {s64, [1, 1 bsl 31]}, {s64, [-1, 1 bsl 62]},
                            {u64, [1, 1 bsl 63]}, {u64, [(1 bsl 64) - 1, 0]}, {f32, [1.0, 2.0]}],
        List <- [Numbers, lists:reverse(Numbers)]] ++
    [?_test(raises(out_of_range, "9223372036854775808 does not fit in s64", fun() -> tessera:tensor(List) end))
     || List <- [[-1, 1 bsl 63], [1 bsl 63, -1]]].

%% Indices are also numbers.
indices_test_() ->
    [?_test(raises(out_of_range, Words, F)) || {Words, F} <-
        [{"iota: the index 299 does not fit in u8", fun() -> tessera:iota({300}, u8) end},
         {"index 128", fun() -> tessera:iota({2, 129}, s8, 1) end},
         {"index 2147483648 does not fit in s32", fun() -> tessera:iota({(1 bsl 31) + 1}, s32) end},
         {"argmax(f32[300]): the index 299 does not fit in u8",
          fun() -> tessera:argmax(tessera:zeros({300}), #{type => u8}) end},
         {"index 257", fun() -> tessera:argmin(tessera:zeros({2, 258}), #{type => u8, axis => 1}) end}]] ++
    [?_assertEqual(127, tessera:to_number(tessera:at(tessera:iota({2, 128}, s8, 1), [1, 127]))),
     ?_assertEqual(255, tessera:to_number(tessera:at(tessera:iota({256}, u8), [255]))),
     ?_assertEqual(255, tessera:to_number(tessera:argmax(tessera:iota({256}), #{type => u8}))),
     %% 261 is 5 in u8
     ?_assertEqual([5], [I || {I, 1} <- lists:zip(lists:seq(0, 299),
                                                 tessera:to_list(tessera:one_hot(tessera:tensor(5, u8), 300)))]),
     ?_assertEqual([[0, 0, 0]], tessera:to_list(tessera:one_hot(tessera:tensor([-1], s8), 3))),
     %% The gradient of take/2 by small indices of a long axis.
     ?_assertEqual({1.0, 0.0},
                   begin
                       G = tessera:grad(fun(X) -> tessera:sum(tessera:take(X, tessera:tensor([5], u8))) end),
                       D = G(tessera:zeros({300})),
                       {tessera:to_number(tessera:at(D, [5])), tessera:to_number(tessera:at(D, [261]))}
                   end),
     ?_assertEqual([1.0, 1.0],
                   begin
                       Along = fun(X) -> tessera:sum(tessera:take_along_axis(X, tessera:tensor([5, 7], u8))) end,
                       D = (tessera:grad(Along))(tessera:zeros({300})),
                       [N || N <- tessera:to_list(D), N > 0]
                   end)].

%% ---- where it is not: the types of Nx.Type.merge_number/2, from its documentation

merge_number_test_() ->
    [?_assertEqual(Expected, tessera_type:merge_number(Type, N))
     || {Expected, Type, N} <-
            [{u8, u8, 0}, {u8, u8, 255}, {u16, u8, 256}, {s16, u8, -1}, {s16, u8, -32768}, {s32, u8, -32769},
             {s8, s8, 0}, {s8, s8, 127}, {s8, s8, -128}, {s16, s8, 128}, {s16, s8, -129}, {f32, s8, 1.0}, {s64, u64, -1337},
             {f32, f32, 1}, {f32, f32, 1.0}, {f64, f64, 1.0}, {bf16, bf16, 1 bsl 40}, {u32, u8, 65536}, {u64, u8, 1 bsl 32},
             {s64, s32, 1 bsl 31}, {s64, u32, -1}, {s64, s64, 1 bsl 62}, {f32, u8, nan}, {f16, f16, infinity}]].

%% Every op that takes tensors and numbers follows this rule, for both operands, eager and traced.
every_op_widens_test_() ->
    Arithmetic = [add, subtract, multiply, remainder, min, max, quotient, bitwise_and, bitwise_or, bitwise_xor,
                  left_shift, right_shift],
    Compare = [equal, not_equal, greater, less, greater_equal, less_equal, logical_and, logical_or, logical_xor],
    Other = [fun(X, N) -> tessera:stack([X, N]) end, fun(X, N) -> tessera:stack([N, X, 0]) end, fun tessera:outer/2,
             fun(X, N) -> tessera:outer(N, X) end, fun tessera:dot/2,
             fun(X, N) -> tessera:select(tessera:tensor(0), X, N) end, fun(X, N) -> tessera:select(1, N, X) end,
             fun(X, N) -> tessera:pad(tessera:reshape(X, {1}), N, [{1, 0, 0}]) end,
             fun(X, N) -> tessera:clip(X, N, N) end,
             fun(X, N) -> tessera:'cond'(tessera:equal(X, 1), fun() -> X end, fun() -> N end) end,
             fun(X, N) -> tessera:'cond'(tessera:equal(X, 1), fun() -> N end, fun() -> X end) end,
             fun(X, N) -> tessera:reduce(X, N, fun tessera:max/2) end],
    Few = [-1, 256, 5000000000],
    All = [0, 127, 128, -129, 255, 65536, 1 bsl 31, 1 bsl 32, -(1 bsl 31) - 1 | Few],
    Way = fun(Type, N) when Type =:= u8, N =:= -1; Type =:= s32, N =:= 5000000000 -> fun both/2;
             (_, _) -> fun at_once/2
          end,
    [?_test(begin
                [?assertEqual({Name, Type, N, tessera_type:merge_number(Type, N)},
                              {Name, Type, N, element(1, (Way(Type, N))(fun tessera:Name/2, Args))})
                 || Name <- Arithmetic, N <- case Name of add -> All; _ -> Few end, Args <- [[tessera:tensor(1, Type), N], [N, tessera:tensor(1, Type)]]],
                [?assertEqual({Name, Type, N, tessera:to_number(tessera:Name(1, N))},
                              {Name, Type, N, element(2, (Way(Type, N))(fun tessera:Name/2, [tessera:tensor(1, Type), N]))})
                 || Name <- Compare, N <- case Name of less -> All; _ -> Few end],
                [?assertEqual({I, Type, N, tessera_type:merge_number(Type, N)},
                              {I, Type, N, element(1, (Way(Type, N))(F, [tessera:tensor(1, Type), N]))})
                 || {I, F} <- lists:zip(lists:seq(1, length(Other)), Other), N <- Few]
            end)
     || Type <- [s8, u8, u16, s32, u32]].

values_test_() ->
    [?_assertEqual(Expected, both(F, Args))
     || {Expected, F, Args} <-
            [{{s64, [1 + (1 bsl 31)]}, fun tessera:add/2, [tessera:tensor([1]), 1 bsl 31]},
             {{s64, [5000000001]}, fun tessera:add/2, [5000000000, tessera:tensor([1])]},
             {{u16, [301]}, fun tessera:add/2, [tessera:tensor([1], u8), 300]},
             {{s16, [0]}, fun tessera:add/2, [tessera:tensor([1], u8), -1]},
             {{u8, [1, 1]}, fun tessera:less/2, [tessera:tensor([0, 255], u8), 256]},
             {{u8, [1, 1]}, fun tessera:greater/2, [tessera:tensor([0, 255], u8), -1]},
             %% in any order
             {{u16, [300, 300]}, fun tessera:clip/3, [tessera:tensor([1, 255], u8), 300, 400]},
             {{s16, [0, 200]}, fun tessera:clip/3, [tessera:tensor([0, 200], u8), -1, 300]},
             {{s16, [-1, -1]}, fun tessera:clip/3, [tessera:tensor([0, 200], u8), 300, -1]},
             {{u64, (1 bsl 63) + 1}, fun tessera:add/2, [1, 1 bsl 63]},
             {{u64, (1 bsl 63) + 1}, fun tessera:add/2, [1 bsl 63, 1]},
             {{s64, 5000000001}, fun tessera:add/2, [1, 5000000000]},
             {{u64, [1, 1 bsl 63]}, fun tessera:stack/1, [[1, 1 bsl 63]]},
             {{f32, [1.0, nan]}, fun tessera:stack/1, [[1, nan]]},
             {{s16, [200, -1]}, fun tessera:stack/1, [[tessera:tensor(200, u8), -1]]},
             {{u16, [[300], [600]]}, fun tessera:outer/2, [tessera:tensor([1, 2], u8), 300]}]] ++
    [?_test(raises(out_of_range, "does not fit in s64", F))
     || F <- [fun() -> tessera:add(tessera:tensor([1]), 1 bsl 63) end, fun() -> tessera:add(-1, 1 bsl 63) end,
              fun() -> tessera:add(1 bsl 63, -1) end, fun() -> tessera:stack([1 bsl 63, -1]) end,
              fun() -> (tessera:jit(fun(X) -> tessera:add(X, 1 bsl 63) end))(tessera:tensor([1])) end]].

%% A fold would lose something with each element.
fold_types_test() ->
    Halve = fun(X, A) -> tessera:add(A, tessera:multiply(X, 0.5)) end,
    raises(invalid_argument, "reduce: the function gives f32, the accumulator is s32",
           fun() -> tessera:reduce(tessera:tensor([1, 1]), 0, Halve) end),
    near(1.0, tessera:to_number(tessera:reduce(tessera:tensor([1, 1]), 0.0, Halve))),
    raises(invalid_argument, "2.5 is not an integer",
           fun() -> tessera:reduce(tessera:tensor([1]), 0, fun(_, _) -> 2.5 end) end).

negative_power_test_() ->
    [?_test(raises(invalid_argument, "to the power of -1 is no integer; tessera:pow(X, -1.0)", F))
     || F <- [fun() -> tessera:pow(tessera:tensor([2]), -1) end, fun() -> tessera:pow(2, -1) end,
              fun() -> (tessera:jit(fun(X) -> tessera:pow(X, -1) end))(2) end]] ++
    [?_assertEqual([0.5], tessera:to_list(tessera:pow(tessera:tensor([2]), -1.0))),
     ?_assertEqual([0.5], tessera:to_list(tessera:pow(tessera:tensor([2.0]), -1))),
     ?_assertEqual([0, 1, -1, 0], tessera:to_list(tessera:pow(tessera:tensor([2, 1, -1, 0]), tessera:tensor([-1]))))].

%% ---- sums of many

wide_sums_test_() ->
    Half = fun(List) -> tessera:tensor(List, f16) end,
    Big = tessera:full({3}, 2000000000),
    [?_test(begin
                near(Expected, tessera:to_list(apply(F, Args))),
                near(Expected, tessera:to_list(apply(tessera:jit(F), Args)))
            end)
     || {Expected, F, Args} <-
            [{2.0e9, fun tessera:mean/1, [Big]}, {0.0, fun tessera:variance/1, [Big]},
             {2.0e9, fun(X) -> tessera:mean(X, #{axes => [0]}) end, [tessera:tensor([4000000000, 0], u32)]},
             {1.5 * (1 bsl 63), fun tessera:mean/1, [tessera:tensor([1 bsl 63, 1 bsl 64 - 1], u64)]},
             {-1.0 * (1 bsl 63), fun tessera:mean/1, [tessera:full({4}, -(1 bsl 63), s64)]},
             {4.0e18, fun tessera:variance/1, [tessera:tensor([-2000000000, 2000000000])]},
             {2.0e9, fun tessera:standard_deviation/1, [tessera:tensor([-2000000000, 2000000000])]},
             {60000.0, fun tessera:mean/1, [Half([60000, 60000, 60000])]},
             {300.0, fun tessera:standard_deviation/1, [Half([-300, 300])]},
             {200.0, fun tessera:mean/1, [tessera:full({1 bsl 20}, 200, bf16)]},
             {0.0, fun(X) -> tessera:reduce_max(tessera:subtract(1 / 70000, tessera:softmax(X))) end,
              [tessera:zeros({70000}, f16)]},
             {math:log(70000), fun(X) -> tessera:as_type(tessera:logsumexp(X), f32) end, [tessera:zeros({70000}, f32)]},
             {11.15625, fun tessera:logsumexp/1, [tessera:zeros({70000}, f16)]},
             {-11.15625, fun(X) -> tessera:reduce_min(tessera:log_softmax(X)) end, [tessera:zeros({70000}, f16)]},
             {[math:exp(-5) / (1 + math:exp(-5)), 1 / (1 + math:exp(-5))], fun tessera:softmax/1,
              [tessera:tensor([0, 5], u8)]},
             {[0.0, 1.0], fun tessera:softmax/1, [tessera:tensor([-2000000000, 2000000000])]},
             {[-4.0e9, 0.0], fun tessera:log_softmax/1, [tessera:tensor([-2000000000, 2000000000])]},
             {2.0e9, fun tessera:logsumexp/1, [tessera:tensor([-2000000000, 2000000000])]},
             {5 + math:log(1 + math:exp(-5)), fun tessera:logsumexp/1, [tessera:tensor([0, 5], u8)]},
             {[200, 400, 600], fun tessera:cumulative_sum/1, [tessera:full({3}, 200, u8)]},
             {[200, 40000, 8000000], fun tessera:cumulative_product/1, [tessera:full({3}, 200, u8)]},
             {[-100, -200], fun tessera:cumulative_sum/1, [tessera:full({2}, -100, s8)]}]].

%% Their types are division's.
wide_types_test_() ->
    [?_assertEqual(Expected, tessera:type(F(tessera:tensor([1, 2], Type))))
     || {Type, Expected} <- [{u8, f32}, {s64, f32}, {f16, f16}, {bf16, bf16}, {f32, f32}, {f64, f64}],
        F <- [fun tessera:mean/1, fun tessera:variance/1, fun tessera:standard_deviation/1, fun tessera:softmax/1,
              fun tessera:log_softmax/1, fun tessera:logsumexp/1]] ++
    [?_assertEqual([0.5, 0.5], tessera:to_list((tessera:grad(fun tessera:mean/1))(tessera:tensor([1, 2], f16))))].

%% Of fewer elements than ddof takes away.
ddof_test() ->
    ?assertEqual(infinity, tessera:to_number(tessera:variance(tessera:tensor([1, 2, 3]), #{ddof => 5}))),
    ?assertEqual(nan, tessera:to_number(tessera:variance(tessera:tensor([1]), #{ddof => 1}))).

linspace_test_() ->
    [?_assertEqual({Type, Expected}, both(fun tessera:linspace/4, [From, To, Count, Type]))
     || {Expected, From, To, Count, Type} <-
            [{[3.0], 3, 9, 1, f32}, {[0.0, 0.5, 1.0], 0, 1, 3, f16}, {[-1.0, 0.0, 1.0], -1, 1, 3, f64},
             {[1.1805916207174113e21, 1.1805916207174113e21], 1 bsl 70, 1 bsl 70, 2, f64}]] ++
    [%% of more elements than f16 and bf16 count
     ?_assertEqual({0.5, 1.0}, begin
                                   T = tessera:linspace(0, 1, 100001, Type),
                                   {tessera:to_number(tessera:at(T, [50000])), tessera:to_number(tessera:at(T, [-1]))}
                               end) || Type <- [f16, bf16, f32, f64]] ++
    [%% The last is there as it is given.
     ?_assertEqual(0.7, tessera:to_number(tessera:at(tessera:linspace(0.1, 0.7, N, f64), [-1]))) || N <- [2, 4, 7, 50]].

%% ---- random calls

random_test_() ->
    {timeout, 120, fun() ->
        _ = rand:seed(exsss, {1, 2, 3}),
        Count = case os:getenv("TESSERA_SANITIZER") of false -> 2000; _ -> 400 end,
        [random_call() || _ <- lists:seq(1, Count)],
        [random_reduction() || _ <- lists:seq(1, Count div 4)]
    end}.

%% Of one tensor of any integer type: what sums up, and conversions.
random_reduction() ->
    {Type, Numbers} = pick([{T, [wrap(T, near_limit(T)) || _ <- lists:seq(1, rand:uniform(6))]} || T <- ?INTEGERS]),
    T = tessera:tensor(Numbers, Type),
    Sum = case kind(Type) of
              {_, 64} -> s64;
              {s, _} -> s32;
              {u, _} -> u32
          end,
    Running = case Type of u64 -> u64; _ -> Sum end,
    To = pick(?INTEGERS),
    [?assertEqual({Type, Numbers, I, Expected}, {Type, Numbers, I, now_and_then(10, F, [T])})
     || {I, Expected, F} <-
            [{sum, {Sum, wrap(Sum, lists:sum(Numbers))}, fun tessera:sum/1},
             {product, {Sum, wrap(Sum, multiplied(Numbers))}, fun tessera:product/1},
             {max, {Type, lists:max(Numbers)}, fun tessera:reduce_max/1},
             {min, {Type, lists:min(Numbers)}, fun tessera:reduce_min/1},
             {cumulative_sum, {Running, [wrap(Running, N) || N <- running(fun erlang:'+'/2, Numbers)]},
              fun tessera:cumulative_sum/1},
             {cumulative_product, {Running, [wrap(Running, N) || N <- running(fun erlang:'*'/2, Numbers)]},
              fun tessera:cumulative_product/1},
             {dot, {Type, wrap(Type, lists:sum([N * N || N <- Numbers]))}, fun(X) -> tessera:dot(X, X) end},
             {mean, {f32, single(lists:sum(Numbers) / length(Numbers))}, fun tessera:mean/1},
             {{as_type, To}, {To, [wrap(To, N) || N <- Numbers]}, fun(X) -> tessera:as_type(X, To) end},
             {list, {Type, Numbers}, fun(_) -> tessera:tensor(Numbers, Type) end}],
        %% near 2^63 the sum in f64 is not exact
        not (I =:= mean andalso lists:any(fun(N) -> abs(N) > 1 bsl 50 end, Numbers))].

multiplied(Numbers) -> lists:foldl(fun erlang:'*'/2, 1, Numbers).

running(F, [First | Rest]) ->
    {_, Numbers} = lists:foldl(fun(N, {Before, Done}) -> {F(Before, N), [F(Before, N) | Done]} end, {First, [First]}, Rest),
    lists:reverse(Numbers).

single(Float) ->
    <<Rounded:32/float>> = <<Float:32/float>>,
    Rounded.

random_call() ->
    {Name, Arity, Meaning} = pick(ops()),
    Operands = with_tensor([operand() || _ <- lists:seq(1, Arity)]),
    case common(Operands) of
        refused -> raises(out_of_range, "does not fit", fun() -> apply(tessera, Name, terms(Operands)) end);
        Type ->
            Placed = [[wrap(Type, N) || N <- Numbers] || {_, Numbers} <- Operands],
            Expected = [{ResultType, wrap(ResultType, N)}
                        || Args <- zip_all(Placed), {ResultType, N} <- [Meaning(Type, Args)]],
            {Actual, List} = now_and_then(40, fun tessera:Name/Arity, terms(Operands)),
            ?assertEqual({Name, Operands, Expected}, {Name, Operands, [{Actual, N} || N <- List]})
    end.

%% Name, operands, and the meaning of a call for one element: from the operands' type to the result's.
ops() ->
    Same = fun(F) -> fun(Type, Args) -> {Type, apply(F, [Type | Args])} end end,
    Test = fun(F) -> fun(_, Args) -> {u8, case apply(F, Args) of true -> 1; false -> 0 end} end end,
    [{add, 2, Same(fun(_, A, B) -> A + B end)}, {subtract, 2, Same(fun(_, A, B) -> A - B end)},
     {multiply, 2, Same(fun(_, A, B) -> A * B end)},
     {quotient, 2, Same(fun(_, _, 0) -> -1; (_, A, B) -> A div B end)},
     {remainder, 2, Same(fun(_, A, 0) -> A; (_, A, B) -> A rem B end)},
     {min, 2, Same(fun(_, A, B) -> min(A, B) end)}, {max, 2, Same(fun(_, A, B) -> max(A, B) end)},
     {bitwise_and, 2, Same(fun(_, A, B) -> A band B end)}, {bitwise_or, 2, Same(fun(_, A, B) -> A bor B end)},
     {bitwise_xor, 2, Same(fun(_, A, B) -> A bxor B end)},
     {abs, 1, Same(fun(_, A) -> abs(A) end)}, {negate, 1, Same(fun(_, A) -> -A end)},
     {sign, 1, Same(fun(_, 0) -> 0; (_, A) -> A div abs(A) end)},
     {bitwise_not, 1, Same(fun(_, A) -> bnot A end)},
     {left_shift, 2, Same(fun(Type, A, B) -> shifted(Type, A, B) end)},
     {right_shift, 2, Same(fun(Type, A, B) -> shifted_right(Type, A, B) end)},
     {population_count, 1, Same(fun(Type, A) -> length([1 || <<1:1>> <= bits(Type, A)]) end)},
     {count_leading_zeros, 1, Same(fun(Type, A) -> leading_zeros(bits(Type, A)) end)},
     {logical_xor, 2, Test(fun(A, B) -> (A =/= 0) =/= (B =/= 0) end)}, {logical_not, 1, Test(fun(A) -> A =:= 0 end)},
     {not_equal, 2, Test(fun(A, B) -> A =/= B end)}, {greater, 2, Test(fun(A, B) -> A > B end)},
     {less_equal, 2, Test(fun(A, B) -> A =< B end)},
     {clip, 3, Same(fun(_, X, Low, High) -> min(max(X, Low), High) end)},
     {equal, 2, Test(fun(A, B) -> A =:= B end)}, {less, 2, Test(fun(A, B) -> A < B end)},
     {greater_equal, 2, Test(fun(A, B) -> A >= B end)},
     {logical_and, 2, Test(fun(A, B) -> A =/= 0 andalso B =/= 0 end)}].

%% By more bits than the type has, and by negative ones, which are large as unsigned.
shifted(Type, A, B) ->
    case B >= 0 andalso B < element(2, kind(Type)) of
        true -> A bsl B;
        false -> 0
    end.

shifted_right(Type, A, B) ->
    case B >= 0 andalso B < element(2, kind(Type)) of
        true -> A bsr B;
        false when A < 0 -> -1;
        false -> 0
    end.

bits(Type, A) ->
    {_, Bits} = kind(Type),
    <<A:Bits>>.

leading_zeros(<<0:1, Rest/bitstring>>) -> 1 + leading_zeros(Rest);
leading_zeros(_) -> 0.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% {Type, Numbers} of a tensor, {number, [N]}.
operand() ->
    case rand:uniform(3) of
        1 -> {number, [near_limit(pick(?INTEGERS))]};
        _ ->
            Type = pick(?RANDOM),
            {Type, [wrap(Type, near_limit(pick(?INTEGERS))) || _ <- lists:seq(1, 4)]}
    end.

%% Numbers alone have their own rule.
with_tensor(Operands) ->
    case lists:all(fun({Type, _}) -> Type =:= number end, Operands) of
        true -> with_tensor([operand() || _ <- Operands]);
        false -> Operands
    end.

near_limit(Type) ->
    {Least, Largest} = range(Type),
    N = pick([Least, Largest, Least div 2, Largest div 2, 0]) + rand:uniform(7) - 4,
    max(-(1 bsl 63), min((1 bsl 64) - 1, N)).

terms(Operands) ->
    [case Type of
         number -> hd(Numbers);
         _ -> tessera:tensor(Numbers, Type)
     end || {Type, Numbers} <- Operands].

%% The type of tensors together, which widens for the numbers: the smallest and then the largest.
common(Operands) ->
    Numbers = [N || {number, [N]} <- Operands],
    Tensors = lists:foldl(fun(Type, none) -> Type;
                             (Type, Other) -> merge(Type, Other)
                          end, none, [Type || {Type, _} <- Operands, Type =/= number]),
    widest(Tensors, lists:sort(Numbers)).

widest(Type, []) -> Type;
widest(Type, [N | Rest]) ->
    Wider = case Type of
                _ when N >= 0 -> tl_from(Type, [u8, u16, u32, u64], [s8, s16, s32, s64]);
                u8 -> [s16, s32, s64];
                u16 -> [s32, s64];
                u32 -> [s64];
                u64 -> [s64];
                _ -> tl_from(Type, [], [s8, s16, s32, s64])
            end,
    case [T || T <- Wider, has(T, N)] of
        [First | _] -> widest(First, Rest);
        [] -> refused
    end.

tl_from(Type, Unsigned, Signed) ->
    lists:dropwhile(fun(T) -> T =/= Type end, case lists:member(Type, Unsigned) of true -> Unsigned; false -> Signed end).

merge(Type, Type) -> Type;
merge(A, B) ->
    {SignedA, BitsA} = kind(A),
    {SignedB, BitsB} = kind(B),
    case {SignedA, SignedB} of
        {Same, Same} when BitsA >= BitsB -> A;
        {Same, Same} -> B;
        {s, u} -> signed(max(BitsA, min(64, 2 * BitsB)));
        {u, s} -> signed(max(BitsB, min(64, 2 * BitsA)))
    end.

kind(Type) ->
    [Letter | Bits] = atom_to_list(Type),
    {list_to_atom([Letter]), list_to_integer(Bits)}.

signed(Bits) -> list_to_atom("s" ++ integer_to_list(Bits)).

wrap(Type, N) ->
    {Least, Largest} = range(Type),
    Size = Largest - Least + 1,
    Least + ((((N - Least) rem Size) + Size) rem Size).

%% One list for each element; a single number belongs to all elements.
zip_all(Columns) ->
    [[case Column of [One] -> One; _ -> lists:nth(I, Column) end || Column <- Columns]
     || I <- lists:seq(1, lists:max([length(C) || C <- Columns]))].

%% ---- the types, which Erlang has from the core's table (mk/types.awk)

types_test_() -> [{atom_to_list(Type), fun() -> check_type(Type) end} || Type <- tessera_type:all()].

check_type(Type) ->
    {_, Bits} = Nx = tessera_type:kind(Type),
    T = tessera:tensor([1, 0], Type),
    ?assertEqual({Type, {2}}, {tessera:type(T), tessera:shape(T)}),
    ?assertEqual(2 * Bits, bit_size(tessera:to_binary(T))),
    ?assertEqual(2 * tessera_type:bytes(Type), tessera:byte_size(T)),
    ?assertEqual({true, Type}, {tessera_type:is_type(Type), tessera_nx_tensor:core_type(Nx)}),
    Rounds = tessera_type:is_float_type(Type) orelse tessera_type:is_complex_type(Type),
    ?assertEqual(Rounds, tessera_type:fits(Type, 0.5)),
    Rounds orelse ?assertEqual({lists:prefix("s", atom_to_list(Type)), Bits}, integer_form(Type)).

integer_form(Type) ->
    {Least, Largest} = tessera_type:range(Type),
    {Least < 0, length(integer_to_list(Largest - Least, 2))}.

no_types_test_() ->
    [?_assertEqual({false, undefined}, {tessera_type:is_type(Term), tessera_type:kind(Term)})
     || Term <- [f33, undefined, "f32", {f, 32}, 32]].

%% The documented type in the source.
documented_types_test() ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(tessera_type), [abstract_code]),
    [{type, _, union, Types}] = [Type || {attribute, _, type, {type, Type, []}} <- Forms],
    ?assertEqual(lists:sort(tessera_type:all()), lists:sort([Name || {atom, _, Name} <- Types])).
