%% sort, argsort, top_k and functions of them: against lists, eager and compiled; and their gradients.
-module(tessera_order_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/2, check_gradient/2]).

t(List) -> tessera:tensor(List).
t(List, Type) -> tessera:tensor(List, Type).

list({A, B}) -> {list(A), list(B)};
list(T) -> tessera:to_list(T).

same(Expected, F, Args) ->
    ?assertEqual(Expected, list(apply(F, Args))),
    ?assertEqual(Expected, list(apply(tessera:jit(F), Args))).

values_test_() ->
    X = t([[3, 1, 2], [4, 6, 5]]),
    [?_test(same(Expected, F, [X]))
     || {Expected, F} <-
            [{[[3, 1, 2], [4, 6, 5]], fun tessera:sort/1},
             {[[1, 2, 3], [4, 5, 6]], fun(T) -> tessera:sort(T, #{axis => -1}) end},
             {[[4, 6, 5], [3, 1, 2]], fun(T) -> tessera:sort(T, #{descending => true}) end},
             {[[1, 2, 0], [0, 2, 1]], fun(T) -> tessera:argsort(T, #{axes => [1]}) end},
             {[[0, 2, 1], [1, 2, 0]], fun(T) -> tessera:argsort(T, #{axis => 1, descending => true}) end},
             {[[0, 0, 0], [1, 1, 1]], fun tessera:argsort/1},
             {{[[3, 2], [6, 5]], [[0, 2], [1, 2]]}, fun(T) -> tessera:top_k(T, 2) end},
             {{[[4, 6, 5]], [[1, 1, 1]]}, fun(T) -> tessera:top_k(T, 1, #{axis => 0}) end},
             {{[[], []], [[], []]}, fun(T) -> tessera:top_k(T, 0) end},
             {3.5, fun tessera:median/1},
             {[2.0, 5.0], fun(T) -> tessera:median(T, #{axes => 1}) end},
             {[[3.5, 3.5, 3.5]], fun(T) -> tessera:median(T, #{axis => 0, keep_axes => true}) end},
             {[[3.5]], fun(T) -> tessera:median(T, #{keep_axes => true}) end},
             {[[1.5, 4.5], [2.0, 5.0]], fun(T) -> tessera:quantile(T, [0.25, 0.5], #{axes => [1]}) end},
             {[[[1.5], [4.5]]], fun(T) -> tessera:quantile(T, [0.25], #{axes => [1], keep_axes => true}) end},
             {[2.25, 3.5], fun(T) -> tessera:quantile(T, t([0.25, 0.5])) end},
             {[1.0, 6.0], fun(T) -> tessera:quantile(T, t([-1.0, 9.0])) end},
             {3.5, fun(T) -> tessera:quantile(T, t(0.5)) end},
             {[], fun(T) -> tessera:quantile(T, []) end},
             {[2, 5], fun(T) -> tessera:quantile(T, 0.3, #{axes => [1], method => higher}) end},
             {[1, 4], fun(T) -> tessera:quantile(T, 0.3, #{axes => [1], method => lower}) end},
             {[1.5, 4.5], fun(T) -> tessera:quantile(T, 0.3, #{axes => [1], method => midpoint}) end},
             {[1, 1, 3, 3, 6], fun(T) -> tessera:quantile(T, [0, 0.1, 0.3, 0.5, 1], #{method => nearest}) end},
             {1, fun tessera:mode/1},
             {[3, 4], fun(T) -> tessera:mode(tessera:concatenate([T, tessera:slice(T, [0, 0], [2, 1])], 1), #{axes => 1}) end},
             {[[3], [4]],
              fun(T) -> tessera:mode(tessera:concatenate([T, tessera:slice(T, [0, 0], [2, 1])], 1), #{axes => 1, keep_axes => true}) end},
             {[[1, 2, 3], [4, 5, 6]], fun(T) -> tessera:reshape(tessera:unique(T, #{size => 6}), {2, 3}) end},
             {[1, 2], fun(T) -> tessera:unique(T, #{size => 2}) end},
             {[1, 2, 3, 4, 5, 6, 6, 6], fun(T) -> tessera:unique(T, #{size => 8}) end},
             {[1, 3, 0], fun(_) -> tessera:unique(t([3, 1, 3]), #{size => 3, fill => 0}) end},
             {[7, 7], fun(_) -> tessera:unique(t([], u8), #{size => 2, fill => 7}) end}]].

%% Ops that are equal but for the results that are read, in one program: a large share of long rows, where values alone are found in another way.
equal_ops_test_() ->
    X = tessera:sin(tessera:multiply(tessera:iota({2, 50000}, f32), 12.9898)),
    Y = tessera:cos(tessera:multiply(tessera:iota({2, 50000}, f32), 78.233)),
    Top = fun(T) -> tessera:top_k(T, 9000) end,
    [?_test(begin
        Parts = case Order of
                    values_first -> fun(A, B) -> [element(1, Top(A)), Top(B), element(2, Top(tessera:negate(A)))] end;
                    both_first -> fun(A, B) -> [Top(B), element(1, Top(A)), element(2, Top(tessera:negate(A)))] end
                end,
        Compiled = tessera:jit(fun(A, B) -> list_to_tuple(Parts(A, B)) end),
        ?assertEqual([bits(P) || P <- Parts(X, Y)], [bits(P) || P <- tuple_to_list(Compiled(X, Y))])
     end) || Order <- [values_first, both_first]].

bits({A, B}) -> [tessera:to_binary(A), tessera:to_binary(B)];
bits(T) -> [tessera:to_binary(T)].

floats_test_() ->
    X = t([2.0, nan, infinity, -0.0, neg_infinity, 0.0, nan, 2.0]),
    Infinities = t([neg_infinity, 1.0]),
    [?_test(same(Expected, F, [X]))
     || {Expected, F} <-
            [{[neg_infinity, -0.0, 0.0, 2.0, 2.0, infinity, nan, nan], fun tessera:sort/1},
             {[nan, nan, infinity, 2.0, 2.0, -0.0, 0.0, neg_infinity], fun(T) -> tessera:sort(T, #{descending => true}) end},
             {[4, 3, 5, 0, 7, 2, 1, 6], fun tessera:argsort/1},
             {[1, 6, 2, 0, 7, 3, 5, 4], fun(T) -> tessera:argsort(T, #{descending => true, type => u8}) end},
             {{[nan, nan, infinity], [1, 6, 2]}, fun(T) -> tessera:top_k(T, 3) end},
             {nan, fun tessera:median/1},
             {[nan, nan], fun(T) -> tessera:quantile(T, [0, 1]) end},
             {-0.0, fun(T) -> tessera:mode(T) end},
             {nan, fun(_) -> tessera:mode(t([1.0, nan, nan])) end},
             {[neg_infinity, -0.0, 2.0, infinity, nan], fun(T) -> tessera:unique(T, #{size => 5}) end},
             {neg_infinity, fun(_) -> tessera:median(Infinities) end},
             {infinity, fun(_) -> tessera:median(t([infinity, infinity])) end},
             {nan, fun(_) -> tessera:median(tessera:zeros({0})) end},
             {[nan, nan], fun(_) -> tessera:median(tessera:zeros({2, 0}, s32), #{axes => 1}) end}]] ++
    [?_assertEqual([neg_infinity, -0.0, 2.0, infinity, nan], list(tessera:unique(X))),
     ?_assertEqual([], list(tessera:unique(tessera:zeros({2, 0})))),
     ?_assertEqual([1, 2, 3], list(tessera:unique(t([[3, 1], [3, 2]]))))].

types_test_() ->
    X = t([3, 1, 2], u8),
    [?_assertEqual(Type, tessera:type(F()))
     || {Type, F} <- [{u8, fun() -> tessera:sort(X) end}, {s32, fun() -> tessera:argsort(X) end},
                      {u16, fun() -> tessera:argsort(X, #{type => u16}) end}, {f32, fun() -> tessera:median(X) end},
                      {bf16, fun() -> tessera:median(t([1, 2], bf16)) end}, {f64, fun() -> tessera:median(t([1, 2], f64)) end},
                      {u8, fun() -> tessera:quantile(X, 0.5, #{method => nearest}) end}, {u8, fun() -> tessera:mode(X) end},
                      {u8, fun() -> tessera:unique(X) end}, {s32, fun() -> element(2, tessera:top_k(X, 1)) end}]].

%% Long lines with many equal elements: the order of lists:sort/1, which is stable for pairs.
long_test_() ->
    [{atom_to_list(Type), ?_test(begin
         Numbers = [(I * 7919) rem 101 || I <- lists:seq(1, 3000)],
         X = t(Numbers, Type),
         Pairs = lists:zip([case tessera_type:is_float_type(Type) of true -> float(N); false -> N end || N <- Numbers],
                           lists:seq(0, 2999)),
         {Values, Order} = lists:unzip(lists:sort(Pairs)),
         same(Values, fun tessera:sort/1, [X]),
         same(Order, fun tessera:argsort/1, [X]),
         {Down, OrderDown} = lists:unzip(lists:sort(fun({A, I}, {B, J}) -> {-A, I} =< {-B, J} end, Pairs)),
         same({lists:sublist(Down, 300), lists:sublist(OrderDown, 300)}, fun(T) -> tessera:top_k(T, 300) end, [X])
     end)} || Type <- [s8, s16, s32, s64, u8, u16, u32, u64, f16, bf16, f32, f64]].

misuse_test_() ->
    X = tessera:iota({2, 3}),
    [?_test(raises(Code, Words, F))
     || {Code, Words, F} <-
            [{invalid_argument, "sort(s32[2,3]): no axis 2", fun() -> tessera:sort(X, #{axis => 2}) end},
             {invalid_argument, "sort(s32[]): no axis 0", fun() -> tessera:sort(t(1)) end},
             {invalid_argument, "expected true or false", fun() -> tessera:sort(X, #{descending => desc}) end},
             {invalid_argument, "unknown options [direction]", fun() -> tessera:argsort(X, #{direction => desc}) end},
             {out_of_range, "argsort(f32[300]): the index 299 does not fit in u8",
              fun() -> tessera:argsort(tessera:zeros({300}), #{type => u8}) end},
             {invalid_argument, "argsort(s32[2,3]): the result's type is f32, expected an integer type",
              fun() -> tessera:argsort(X, #{type => f32}) end},
             {invalid_argument, "expected at most 3 elements, the size of axis 1, got 4", fun() -> tessera:top_k(X, 4) end},
             {invalid_argument, "the size of axis 1, got -1", fun() -> tessera:top_k(X, -1) end},
             {invalid_argument, "): expected a number from 0 to 1", fun() -> tessera:quantile(X, 1.5) end},
             {invalid_argument, "): expected a number from 0 to 1", fun() -> tessera:quantile(X, [0.5, nan]) end},
             {invalid_argument, "): expected a number from 0 to 1", fun() -> tessera:quantile(X, t([1])) end},
             {invalid_argument, "method is median, expected linear", fun() -> tessera:quantile(X, 0.5, #{method => median}) end},
             {invalid_argument, "expected at least one element, as method lower gives one of them and s32 has no NaN",
              fun() -> tessera:quantile(tessera:zeros({0}, s32), 0.5, #{method => lower}) end},
             {invalid_argument, "mode(f32[0]): expected at least one element", fun() -> tessera:mode(tessera:zeros({0})) end},
             {invalid_argument, "not known while a function is traced", fun() -> (tessera:jit(fun tessera:unique/1))(X) end},
             {invalid_argument, "size is -1", fun() -> tessera:unique(X, #{size => -1}) end},
             {invalid_argument, "there is no largest element",
              fun() -> tessera:unique(tessera:zeros({0}), #{size => 1}) end}]].

%% Against central differences.
gradients_test_() ->
    X = t([[0.3, -0.7, 1.1], [0.9, 0.2, -0.4]], f64),
    [{Name, ?_test(check_gradient(F, X))}
     || {Name, F} <-
            [{"sort", fun(T) -> tessera:sort(T, #{axis => 1}) end},
             {"sort down the columns", fun(T) -> tessera:sort(T, #{axis => 0, descending => true}) end},
             {"sort of sorts", fun(T) -> tessera:sort(tessera:sort(tessera:sin(T)), #{axis => 1}) end},
             {"top_k", fun(T) -> element(1, tessera:top_k(T, 2)) end},
             {"top_k of columns", fun(T) -> element(1, tessera:top_k(T, 1, #{axis => 0})) end},
             {"argsort", fun(T) -> tessera:take_along_axis(T, tessera:argsort(T, #{axis => 1}), #{axis => 1}) end},
             {"median", fun tessera:median/1},
             {"quantile", fun(T) -> tessera:quantile(T, [0.1, 0.7], #{axes => 1}) end},
             {"mode", fun(T) -> tessera:mode(T, #{axes => 0}) end}]] ++
    %% Equal elements share by their order.
    [?_assertEqual([3.0, 1.0, 2.0],
                   list((tessera:grad(fun(T) -> tessera:sum(tessera:multiply(tessera:sort(T), t([1.0, 2.0, 3.0]))) end))
                            (t([5.0, 4.0, 4.0]))))].

%% ---- more than 2^31 elements, which take 9 GB and a minute: only where TESSERA_LARGE is set

large_sort_test_() ->
    [{timeout, 600, fun large_sort/0} || os:getenv("TESSERA_LARGE") =/= false].

%% Each value 2^23 times, and the first five of the row once more.
large_sort() ->
    Row = tessera:multiply(tessera:iota({256}, u8), tessera:tensor(167, u8)),
    Rows = fun(R) -> tessera:flatten(tessera:broadcast(R, {1 bsl 23, 256})) end,
    X = (tessera:jit(fun(R) -> tessera:concatenate([Rows(R), tessera:slice(R, [0], [5])]) end))(Row),
    ?assertEqual({(1 bsl 31) + 5}, tessera:shape(X)),
    More = [(I * 167) rem 256 || I <- lists:seq(0, 4)],
    Sorted = tessera:to_binary(tessera:sort(X)),
    Expect = fun(Value, At) ->
        Count = (1 bsl 23) + length([V || V <- More, V =:= Value]),
        ?assertEqual({Value, true}, {Value, binary:part(Sorted, At, Count) =:= binary:copy(<<Value>>, Count)}),
        At + Count
    end,
    ?assertEqual(byte_size(Sorted), lists:foldl(Expect, 0, lists:seq(0, 255))).
