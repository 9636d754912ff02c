%% Functions that NumPy has, too: NumPy's results of random calls (test/names), at once and in a program of jit/1; types and empty
%% tensors; gradients; errors; the table of docs/names.md.
-module(tessera_names_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, check_gradient/2]).

%% ---- NumPy

numpy_test_() ->
    {ok, Cases} = file:consult(os:getenv("TESSERA_NAMES", filename:join([root(), "test", "names", "numpy.term"]))),
    Names = lists:usort([Name || {Name, _, _} <- Cases]),
    {timeout, 300,
     [{atom_to_list(Name), {timeout, 60, fun() -> [check(Case) || {Own, _, _} = Case <- Cases, Own =:= Name] end}} || Name <- Names]}.

root() ->
    Here = filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))),
    hd([Dir || Dir <- [filename:join([Here, "..", ".."]), "."], filelib:is_file(filename:join(Dir, "README.md"))]).

check({Name, Args, Expected} = Case) ->
    Values = value(Args),
    F = fun(Tensors) -> apply(tessera, Name, filled(Values, Tensors)) end,
    Tensors = tensors(Values),
    same(Case, Expected, F(Tensors)),
    depends_on_contents(Name, Args) orelse same(Case, Expected, (tessera:jit(F))(Tensors)).

depends_on_contents(Name, [_]) -> lists:member(Name, [nonzero, argwhere, bincount]);
depends_on_contents(_, _) -> false.

%% The tensors of a term, and the term with others in their places.
value({tensor, Type, Shape, Elements}) -> tessera:reshape(tessera:tensor(Elements, Type), Shape);
value(Tuple) when is_tuple(Tuple) -> list_to_tuple(value(tuple_to_list(Tuple)));
value(List) when is_list(List) -> [value(X) || X <- List];
value(Map) when is_map(Map) -> maps:map(fun(_, X) -> value(X) end, Map);
value(Other) -> Other.

tensors(Term) -> lists:reverse(element(2, replace(Term, none, []))).

filled(Term, Tensors) -> element(1, replace(Term, Tensors, [])).

replace(Term, Tensors, Seen) ->
    case tessera:is_tensor(Term) of
        true when Tensors =:= none -> {Term, [Term | Seen]};
        true -> {lists:nth(length(Seen) + 1, Tensors), [Term | Seen]};
        false when is_list(Term) -> lists:mapfoldl(fun(X, S) -> replace(X, Tensors, S) end, Seen, Term);
        false when is_map(Term) ->
            {Pairs, All} = lists:mapfoldl(fun({K, X}, S) -> {Y, S1} = replace(X, Tensors, S), {{K, Y}, S1} end, Seen, maps:to_list(Term)),
            {maps:from_list(Pairs), All};
        false -> {Term, Seen}
    end.

same(Case, Expected, Results) when is_tuple(Results), element(1, Expected) =/= tensor ->
    same(Case, tuple_to_list(Expected), tuple_to_list(Results));
same(Case, Expected, Results) when is_list(Expected) ->
    ?assertEqual(length(Expected), length(Results)),
    [same(Case, E, R) || {E, R} <- lists:zip(Expected, Results)];
same(Case, {tensor, _, Shape, Elements}, Result) ->
    ?assertEqual({Case, Shape}, {Case, tessera:shape(Result)}),
    Own = case tessera:size(Result) of 0 -> []; _ -> tessera:to_list(tessera:flatten(Result)) end,
    Scale = lists:max([1.0e-300 | [size_of(E) || E <- Elements]]),
    %% functions of integers give f32
    Near = case lists:member(tessera:type(Result), [f32, c64]) of true -> 1.0e-6; false -> 1.0e-12 end,
    [is_near(E, O, Near * Scale) orelse error({differs, Case, tessera:to_list(Result)}) || {E, O} <- lists:zip(Elements, Own)].

size_of(N) when is_number(N) -> abs(N);
size_of({complex, A, B}) when is_number(A), is_number(B) -> abs(A) + abs(B);
size_of(_) -> 0.0.

is_near(X, X, _) -> true;
is_near(A, B, _) when is_integer(A), is_integer(B) -> A =:= B;
is_near({complex, A, B}, {complex, C, D}, Most) -> is_near(A, C, Most) andalso is_near(B, D, Most);
is_near(A, B, Most) when is_number(A), is_number(B) -> abs(A - B) =< Most;
is_near(_, _, _) -> false.

%% ---- types and edges

t(Data) -> tessera:tensor(Data).
t(Data, Type) -> tessera:tensor(Data, Type).

counts(X, Edges, Options) -> element(1, tessera:histogram(X, Edges, Options)).

repeated(Numbers, Times) -> t(lists:append([lists:duplicate(N, Number) || {Number, N} <- lists:zip(Numbers, Times)])).

%% {Line, Elements, Type, F}: where NumPy's result is another one, NumPy lacks the type, or a random call meets no such numbers.
others_test_() ->
    [{lists:flatten(io_lib:format("~b", [Line])),
      fun() ->
              Result = F(),
              ?assertEqual({Expected, Type}, {tessera:to_list(Result), tessera:type(Result)})
      end}
     || {Line, Expected, Type, F} <-
            [{?LINE, [0, 1, 2], s32, fun() -> tessera:arange(3) end},
             {?LINE, [], s32, fun() -> tessera:arange(3, 3) end},
             {?LINE, [3000000000, 3000000001], s64, fun() -> tessera:arange(3000000000, 3000000002) end},
             {?LINE, [(1 bsl 64) - 2, (1 bsl 64) - 1], u64, fun() -> tessera:arange((1 bsl 64) - 2, 1 bsl 64) end},
             {?LINE, [1.0, 1.5], f32, fun() -> tessera:arange(1, 2, 0.5) end},
             {?LINE, [18446744073709551600.0, 18446744073709551607.0], f64, fun() -> tessera:arange((1 bsl 64) - 16, (1 bsl 64) - 4, 7, f64) end},
             {?LINE, [9223372036854775808.0, 9223372036854777856.0], f64, fun() -> tessera:arange(1 bsl 63, (1 bsl 63) + 2049, 2048, f64) end},
             {?LINE, [{complex, 9223372036854775808.0, 0.0}], c128, fun() -> tessera:arange(1 bsl 63, (1 bsl 63) + 1, 1, c128) end},
             {?LINE, [-4.0, 9223372036854775808.0], f32, fun() -> tessera:arange(-4, 1 bsl 63, 1 bsl 63, f32) end},
             {?LINE, [math:pow(2, 70), math:pow(2, 71)], f64, fun() -> tessera:arange(1 bsl 70, 3 bsl 70, 1 bsl 70, f64) end},
             {?LINE, [1, 2], u8, fun() -> tessera:arange(1, 3, 1, u8) end},
             {?LINE, [2.0, 1.0], bf16, fun() -> tessera:arange(2, 0, -1, bf16) end},
             {?LINE, [[0, 0]], u8, fun() -> tessera:zeros_like(t([[1.5, 2.5]]), u8) end},
             {?LINE, [1.0], f16, fun() -> tessera:ones_like(t([7], f16)) end},
             {?LINE, 2.5, f32, fun() -> tessera:full_like(1.5, 2.5) end},
             {?LINE, [[]], s32, fun() -> tessera:tile(tessera:zeros({0}, s32), [1, 3]) end},
             {?LINE, [], s32, fun() -> tessera:repeat(t([1, 2]), 0) end},
             {?LINE, [], s32, fun() -> tessera:roll(tessera:zeros({0}, s32), 3) end},
             {?LINE, [], f32, fun() -> tessera:diag(tessera:zeros({0, 3})) end},
             {?LINE, [], s32, fun() -> tessera:diag(tessera:iota({2, 2}), 5) end},
             {?LINE, [[0, 0], [0, 0]], s32, fun() -> tessera:diag(tessera:zeros({0}, s32), 2) end},
             {?LINE, [3.0, 4.0], f16, fun() -> tessera:log2(t([8, 16], f16)) end},
             {?LINE, [3.0, nan, neg_infinity, infinity], f32, fun() -> tessera:log2(t([8.0, -1.0, 0.0, infinity])) end},
             {?LINE, [3.0, nan, neg_infinity, infinity], f64, fun() -> tessera:log10(t([1000.0, -1.0, 0.0, infinity], f64)) end},
             {?LINE, {complex, 3.0, 0.0}, c64, fun() -> tessera:log2(t({complex, 8, 0})) end},
             {?LINE, [{complex, neg_infinity, 0.0}, {complex, infinity, 0.0}], c128,
              fun() -> tessera:log2(t([0, {complex, infinity, 0}], c128)) end},
             {?LINE, [{complex, neg_infinity, 0.0}, {complex, infinity, 0.0}], c128,
              fun() -> tessera:log10(t([0, {complex, infinity, 0}], c128)) end},
             {?LINE, [5.0, infinity], f32, fun() -> tessera:hypot(t([3.0, neg_infinity]), t([4.0, nan])) end},
             {?LINE, [math:pow(2, 900) * 5], f64, fun() -> tessera:hypot(math:pow(2, 900) * 3, t([math:pow(2, 900) * 4], f64)) end},
             {?LINE, 5.0e30, f64, fun() -> tessera:as_type(tessera:hypot(t(3.0e30, f64), 4.0e30), f64) end},
             {?LINE, 1, u8, fun() -> tessera:all_close(t(1.0e200, f64), 1.0e200) end},
             {?LINE, [1, 1], u8, fun() -> tessera:is_finite(t([1, 2], s8)) end},
             {?LINE, [1, 0], u8, fun() -> tessera:is_close(t([255, 0], u8), t([255, 255], u8)) end},
             {?LINE, [448.0, 0.0], f8_e4m3fn, fun() -> tessera:nan_to_num(t([448.0, nan], f8_e4m3fn)) end},
             {?LINE, [{complex, 0.0, 1.0}], c64, fun() -> tessera:nan_to_num(t([{complex, nan, 1}])) end},
             {?LINE, [1, 2], s32, fun() -> tessera:nan_to_num(t([1, 2])) end},
             {?LINE, [3, 7], s32, fun() -> tessera:einsum("i j -> i", [t([[1, 2], [3, 4]])]) end},
             {?LINE, [[2.0, 4.0]], f16, fun() -> tessera:einsum(<<"ij,->ij">>, [t([[1, 2]], f16), 2]) end},
             {?LINE, [2, 2], s32, fun() -> tessera:einsum("ij,ij->i", [t([[1], [1]]), t([[1, 1], [1, 1]])]) end},
             {?LINE, [[0.0, 0.0]], f32, fun() -> tessera:matmul(tessera:zeros({1, 0}), tessera:zeros({0, 2})) end},
             {?LINE, [[0, 0, 0], [6, 7, 8], [-3, -4, -5]], s32, fun() -> tessera:cross(tessera:iota({3, 3}), t([1, 0, 0]), #{axis => 0}) end},
             {?LINE, [[-4, -3, -2, -1], [8, 6, 4, 2], [-4, -3, -2, -1]], s32,
              fun() -> tessera:cross(tessera:iota({3, 4}), t([1, 2, 3]), #{axis => 0}) end},
             {?LINE, [[[0, -2], [4, 2]], [[0, 4], [-8, -4]], [[0, -2], [4, 2]]], s32,
              fun() -> tessera:cross(tessera:iota({3, 2, 2}), tessera:iota({3, 2}), #{axis => 0}) end},
             {?LINE, [[[-2, -1], [4, 2], [-2, -1]], [[4, 5], [-8, -10], [4, 5]]], s32,
              fun() -> tessera:cross(tessera:iota({2, 3, 2}), t([[1], [2], [3]]), #{axis => -2}) end},
             {?LINE, 5, s32, fun() -> tessera:trace(t([[1, 2], [3, 4]], s32)) end},
             {?LINE, 6, s32, fun() -> tessera:nan_sum(t([1, 2, 3])) end},
             {?LINE, nan, f32, fun() -> tessera:nan_max(t([nan, nan])) end},
             {?LINE, 0.0, f32, fun() -> tessera:nan_sum(t([nan, nan])) end},
             {?LINE, nan, f32, fun() -> tessera:nan_mean(t([nan, nan])) end},
             {?LINE, nan, f32, fun() -> tessera:nan_median(t([nan, nan])) end},
             {?LINE, nan, f64, fun() -> tessera:nan_median(tessera:zeros({0}, f64)) end},
             {?LINE, [nan, nan], f32, fun() -> tessera:nan_quantile(tessera:zeros({2, 0}), 0.25, #{axes => [1]}) end},
             {?LINE, [[nan]], f32, fun() -> tessera:nan_median(tessera:zeros({2, 0}, s32), #{keep_axes => true}) end},
             {?LINE, [], f32, fun() -> tessera:nan_median(tessera:zeros({2, 0}), #{axes => [0]}) end},
             {?LINE, nan, f64, fun() -> tessera:nan_variance(t([1.0, infinity], f64)) end},
             {?LINE, nan, f64, fun() -> tessera:nan_variance(t([1.0, 2.0, neg_infinity, infinity], f64)) end},
             {?LINE, nan, f32, fun() -> tessera:nan_standard_deviation(t([1.0, nan, infinity])) end},
             {?LINE, 0, s32, fun() -> tessera:nan_argmax(t([nan, nan])) end},
             {?LINE, infinity, f32, fun() -> tessera:nan_median(t([1.0, infinity, infinity, nan])) end},
             {?LINE, 2.0, f16, fun() -> tessera:nan_mean(t([1.0, nan, 3.0], f16)) end},
             {?LINE, 0, s32, fun() -> tessera:searchsorted(tessera:zeros({0}), 1.0) end},
             {?LINE, 2, u8, fun() -> tessera:searchsorted(t([1, 2]), 5, #{type => u8}) end},
             {?LINE, 1, s32, fun() -> tessera:searchsorted(t([1.0, nan]), nan) end},
             {?LINE, [], s64, fun() -> tessera:bincount(tessera:zeros({0}, s32)) end},
             {?LINE, [1, 0], s64, fun() -> tessera:bincount(t([-1, 0, 7]), #{length => 2}) end},
             {?LINE, [0, 1], s64, fun() -> tessera:bincount(t([(1 bsl 64) - 1, 1], u64), #{length => 2}) end},
             {?LINE, [0, 0], s64, fun() -> tessera:bincount(t([(1 bsl 63) - 1, -1], s64), #{length => 2}) end},
             {?LINE, [5000.0], f16, fun() -> tessera:bincount(tessera:zeros({5000}, s32), #{weights => tessera:ones({5000}, f16)}) end},
             {?LINE, [4992.0], bf16, fun() -> tessera:bincount(tessera:zeros({5000}, s32), #{weights => tessera:ones({5000}, bf16)}) end},
             {?LINE, [5120.0], f8, fun() -> tessera:bincount(tessera:zeros({5000}, s32), #{weights => tessera:ones({5000}, f8)}) end},
             {?LINE, [5000], u32, fun() -> tessera:bincount(tessera:zeros({5000}, s32), #{weights => tessera:ones({5000}, u8)}) end},
             {?LINE, [3000.0, 2000.0], f16, fun() -> counts(repeated([0.0, 2.0], [3000, 2000]), [0.0, 1.0, 2.0], #{weights => tessera:ones({5000}, f16)}) end},
             {?LINE, [-256], s32, fun() -> counts(t([0, 0]), [0.0, 1.0], #{weights => t([-128, -128], s8)}) end},
             {?LINE, [2, 0], s64, fun() -> counts(t([0.0999999999, 0.05], f64), [0, 0.1, 1.0], #{}) end},
             {?LINE, [1, 0], s64, fun() -> counts(t([0.0999999999], f64), t([0.0, 0.1, 1.0]), #{}) end},
             {?LINE, [2, 0], s64, fun() -> counts(t([16777216, 5], s64), [0.0, 16777217.0, 5.0e7], #{}) end},
             {?LINE, [1, 1], s64, fun() -> counts(t([(1 bsl 53) + 1, 1 bsl 53], s64), [N + (1 bsl 53) || N <- [0, 1, 2]], #{}) end},
             {?LINE, [0, 1], s64, fun() -> counts(t([(1 bsl 64) - 1], u64), [N + (1 bsl 64) || N <- [-3, -2, -1]], #{}) end},
             {?LINE, [1.1920928244535432e-7, 1.9999998807907176], f64,
              fun() -> counts(t([0.3, 0.6]), [0.0, 0.5, 1.0], #{density => true, weights => t([1.0, 16777216.0], f64)}) end},
             {?LINE, [1.0, 1.0], f64, fun() -> counts(t([0.3, 0.6, 0.7]), [0.0, 0.5, 1.0], #{density => true, weights => t([1.0e39, 1.0e39, 1.0], f64)}) end},
             {?LINE, [1.0, 1.0], f16, fun() -> counts(t([0.3, 0.6], f16), t([0.0, 0.5, 1.0], f16), #{density => true, weights => t([6.0e4, 6.0e4], f16)}) end},
             {?LINE, [1, 0], s64, fun() -> element(1, tessera:histogram(t([1.0, nan]), [0.0, 2.0, 3.0])) end},
             {?LINE, [0.5, 1.5], f32, fun() -> element(2, tessera:histogram(t([1.0, 1.0]), 1)) end},
             {?LINE, [[1], [9], [9]], s32, fun() -> tessera:argwhere(t([0, 1]), #{size => 3, fill => 9}) end},
             {?LINE, [], s32, fun() -> tessera:diff(t([5])) end},
             {?LINE, 7.0, f32, fun() -> tessera:interp(1.5, t([1.0]), t([7.0])) end}]].

%% By NumPy.
interp_beside_infinities_test_() ->
    [{lists:flatten(io_lib:format("~0p by ~0p", [Xs, Ys])), ?_assertEqual(Expected, tessera:to_list(tessera:interp(t(X, f64), t(Xs, f64), t(Ys, f64))))}
     || {X, Xs, Ys, Expected} <-
            [{[1, 0, 0.5, 1.5, 2, nan], [0, 1, 2], [0, 5, infinity], [5.0, 0.0, 2.5, infinity, infinity, nan]},
             {[0.5, 0, 1, 1.5], [0, 1, 2], [infinity, infinity, 3], [infinity, infinity, infinity, infinity]},
             {[0, 5, -3, 1, nan], [neg_infinity, 0, 1, infinity], [1, 2, 3, 4], [2.0, 3.0, 2.0, 3.0, nan]},
             {[0.5, 1], [0, 1, 2], [neg_infinity, infinity, 3], [nan, infinity]},
             {[0.5], [0, 1], [nan, 1], [nan]}, {[nan], [0, 1], [2, 2], [nan]},
             {[1.0e308, -1.0e308], [-1.7e308, 1.7e308], [1, 1], [1.0, 1.0]},
             {[1.0e308, -1.0e308], [-1.7e308, 1.7e308], [0, 1], [1.0, 0.0]}]] ++
    [{"width beyond f32", ?_assert(abs(tessera:to_number(tessera:interp(3.0e38, t([-3.0e38, 3.2e38]), t([0.0, 1.0]))) - 0.967741939704976) =< 1.0e-6)}].

%% By NumPy, too.
interp_complex_heights_test_() ->
    [{lists:flatten(io_lib:format("~0p by ~0p, ~0p", [Xs, Ys, Options])),
      fun() ->
              Heights = tessera:complex(t([Re || {Re, _} <- Ys], f64), t([Im || {_, Im} <- Ys], f64)),
              Result = tessera:interp(t(X, f64), t(Xs, f64), Heights, Options),
              ?assertEqual(c128, tessera:type(Result)),
              ?assertEqual(Expected, [{Re, Im} || {complex, Re, Im} <- tessera:to_list(Result)])
      end}
     || {X, Xs, Ys, Options, Expected} <-
            [{[1.5, 0, 3, 1, 2], [1, 2], [{1, 5}, {2, 7}], #{}, [{1.5, 6.0}, {1.0, 5.0}, {2.0, 7.0}, {1.0, 5.0}, {2.0, 7.0}]},
             {[0.5, 0, 1, 1.5], [0, 1, 2], [{1, 2}, {infinity, 3}, {4, neg_infinity}], #{},
              [{infinity, 2.5}, {1.0, 2.0}, {infinity, 3.0}, {infinity, neg_infinity}]},
             {[0.5, nan], [0, 1], [{nan, 1}, {2, 3}], #{}, [{nan, 2.0}, {nan, 0.0}]},
             {[0.5, 1, 1.5], [0, 1, 1, 2], [{1, 2}, {3, -1}, {7, 4}, {1, 0}], #{}, [{2.0, 0.5}, {7.0, 4.0}, {4.0, 2.0}]},
             {[-1, 3], [0, 1], [{1, 1}, {2, 3}], #{left => {complex, 0, 1}, right => 5}, [{0.0, 1.0}, {5.0, 0.0}]}]].

at_test_() ->
    X = tessera:iota({3, 4}),
    I = t(1),
    [?_assertEqual(Expected, tessera:to_list((tessera:jit(fun(A, J) -> tessera:at(A, Index(J)) end))(X, I)))
     || {Expected, Index} <- [{[4, 5, 6, 7], fun(J) -> [J] end},
                              {[5, 6], fun(J) -> [J, {1, 3}] end},
                              {[7, 5], fun(J) -> [J, {all, all, -2}] end},
                              {[1, 5, 9], fun(J) -> ['...', J] end},
                              {[[], [], []], fun(_) -> [all, {3, 1}] end},
                              {[[[0], [1]]], fun(_) -> [{0, 1}, {-9, 2}, new_axis] end}]].

%% ---- gradients

gradient_test_() ->
    X = t([[1.5, -2.0, 0.5], [0.25, 3.0, -1.0], [2.0, 1.0, 4.0]], f64),
    Positive = tessera:abs(X),
    Y = t([0.5, 1.5, -0.5], f64),
    [{atom_to_list(Name), {timeout, 60, fun() -> check_gradient(F, At) end}}
     || {Name, F, At} <- [{log2, fun tessera:log2/1, Positive}, {log10, fun tessera:log10/1, Positive},
                          {hypot, fun(A) -> tessera:hypot(A, 1.5) end, X},
                          {einsum, fun(A) -> tessera:einsum("ij,jk,k->i", [A, A, Y]) end, X},
                          {diagonal, fun(A) -> tessera:einsum("ii->i", [A]) end, X},
                          {kron, fun(A) -> tessera:kron(A, Y) end, X}, {cross, fun(A) -> tessera:cross(A, Y) end, X},
                          {matmul, fun(A) -> tessera:matmul(A, A) end, X}, {trace, fun(A) -> tessera:trace(A, #{offset => 1}) end, X},
                          {slogdet, fun(A) -> element(2, tessera:slogdet(A)) end, X},
                          {average, fun(A) -> tessera:average(Y, #{weights => A}) end, tessera:abs(Y)},
                          {nan_variance, fun(A) -> tessera:nan_variance(A, #{axes => 0}) end, X},
                          {nan_max, fun(A) -> tessera:nan_max(A, #{axes => 0}) end, X},
                          {nan_median, fun(A) -> tessera:nan_median(A, #{axes => 1}) end, X},
                          {cov, fun tessera:cov/1, X}, {corrcoef, fun(A) -> tessera:at(tessera:corrcoef(A), [0, 1]) end, X},
                          {interp, fun(A) -> tessera:interp(A, tessera:arange(-1, 4, 1, f64), t([1.0, 3.0, 2.0, 5.0, 4.0], f64)) end, tessera:add(Y, 0.1)},
                          {tile, fun(A) -> tessera:tile(A, [2, 3]) end, X}, {repeat, fun(A) -> tessera:repeat(A, [1, 0, 2], #{axis => 1}) end, X},
                          {roll, fun(A) -> tessera:roll(A, [1, 2], #{axes => [0, 1]}) end, X}, {diag, fun(A) -> tessera:diag(A, -1) end, Y},
                          {tril, fun(A) -> tessera:tril(A, 1) end, X}, {at, fun(A) -> tessera:at(A, [{all, all, -2}, 1]) end, X}]].

%% The gradient of an element that was left out is 0, and not NaN. The numbers are JAX's.
nan_gradient_test_() ->
    Twice = fun(X) -> tessera:sum(tessera:multiply((tessera:grad(fun tessera:nan_variance/1))(X), t([1.0, 2.0, 3.0], f64))) end,
    [?_test(tessera_test:near(Expected, tessera:to_list((tessera:grad(F))(t(X, f64))), 1.0e-12))
     || {Expected, F, X} <-
            [{[1.0, 0.0, 1.0], fun tessera:nan_sum/1, [1.0, nan, 4.0]}, {[0.5, 0.0, 0.5], fun tessera:nan_mean/1, [1.0, nan, 4.0]},
             {[-1.5, 0.0, 1.5], fun tessera:nan_variance/1, [1.0, nan, 4.0]},
             {[-3.0, 0.0, 3.0], fun(X) -> tessera:nan_variance(X, #{ddof => 1}) end, [1.0, nan, 4.0]},
             {[-0.5, 0.0, 0.5], fun tessera:nan_standard_deviation/1, [1.0, nan, 4.0]},
             {[[-1.5, 0.0, 1.5], [-2.5, 2.5, 0.0], [0.0, 0.0, 0.0]], fun(X) -> tessera:sum(tessera:nan_variance(X, #{axes => 1})) end,
              [[1.0, nan, 4.0], [2.0, 7.0, nan], [3.0, nan, nan]]},
             {[0.0, 0.0], fun tessera:nan_variance/1, [nan, nan]},
             {[-1.5, 0.0, 1.5], fun(X) -> tessera:nan_variance(tessera:complex(X, 1.0)) end, [1.0, nan, 4.0]},
             {[-1.0, 0.0, 1.0], Twice, [1.0, nan, 4.0]}]].

%% What is not taken has the gradient 0, also where it is infinite.
not_taken_gradient_test_() ->
    [Xs, Ys] = [t(L, f64) || L <- [[0.0, 1.0, 2.0], [1.0, 3.0, 2.0]]],
    [?_assertEqual(Expected, tessera:to_list((tessera:grad(F))(At)))
     || {Expected, F, At} <-
            [{[0.0, 0.0, 1.0], fun(Y) -> tessera:interp(t(infinity, f64), Xs, Y) end, Ys},
             {[1.0, 0.0, 0.0], fun(Y) -> tessera:interp(t(neg_infinity, f64), Xs, Y) end, Ys},
             {[0.0, 0.0, 0.0], fun(X) -> tessera:interp(t(infinity, f64), X, Ys) end, Xs},
             {[0.0, 0.0, 0.0], fun(X) -> tessera:interp(t(neg_infinity, f64), X, Ys) end, Xs},
             {[0.0, 0.0], fun(X) -> tessera:hypot(tessera:at(X, [0]), tessera:at(X, [1])) end, t([infinity, 3.0], f64)},
             {0.0, fun(Q) -> tessera:quantile(t([infinity, infinity], f64), Q) end, t(0.25, f64)}]].

%% Equal elements have their shares of a quantile's gradient, as without NaN. The numbers are JAX's.
nan_quantile_gradient_test_() ->
    [?_assertEqual(Expected, tessera:to_list((tessera:grad(F))(t(X, f64))))
     || {Expected, F, X} <-
            [{[0.0, 0.5, 0.5, 0.0], fun tessera:nan_median/1, [1.0, 2.0, 2.0, 3.0]},
             {[0.0, 0.5, 0.0, 0.5, 0.0], fun tessera:nan_median/1, [1.0, 2.0, nan, 2.0, 3.0]},
             {[0.25, 0.75, 0.0, 0.0, 0.0], fun(X) -> tessera:nan_quantile(X, 0.25) end, [2.0, 2.0, 2.0, nan, 2.0]},
             {[0.0, 1.0, 0.0, 0.0], fun tessera:nan_median/1, [1.0, infinity, infinity, nan]}]].

%% A diagonal far outside of the matrix: what would be added to a row's number has 64 bits and more.
far_diagonals_test() ->
    X = tessera:add(tessera:iota({2, 3}), 1),
    [Whole, None] = [tessera:to_list(T) || T <- [X, tessera:zeros_like(X)]],
    [Ones, Zeros] = [tessera:to_list(tessera:as_type(F({2, 3}), u8)) || F <- [fun tessera:ones/1, fun tessera:zeros/1]],
    [begin
         ?assertEqual({Far, Whole, None}, {Far, tessera:to_list(tessera:tril(X, Far)), tessera:to_list(tessera:triu(X, Far))}),
         ?assertEqual({Far, None, Whole}, {Far, tessera:to_list(tessera:tril(X, -Far)), tessera:to_list(tessera:triu(X, -Far))}),
         ?assertEqual({Far, Ones, Zeros}, {Far, tri(Far), tri(-Far)})
     end || Far <- [3, 4, (1 bsl 63) - 2, (1 bsl 63) - 1, 1 bsl 63, 1 bsl 80]].

tri(Offset) -> tessera:to_list(tessera:tri(2, #{columns => 3, offset => Offset, type => u8})).

%% ---- errors

errors_test_() ->
    X = tessera:iota({2, 3}),
    [raised(Line, Words, F)
     || {Line, Words, F} <-
            [{?LINE, "a step other than 0", fun() -> tessera:arange(1, 2, 0) end},
             {?LINE, "got 0, a, 1", fun() -> tessera:arange(a) end},
             {?LINE, "floats make no s32", fun() -> tessera:arange(0.5, 2, 1, s32) end},
             {?LINE, "expected a type", fun() -> tessera:arange(0, 2, 1, int) end},
             {?LINE, "indexing is yx", fun() -> tessera:meshgrid([1, 2], #{indexing => yx}) end},
             {?LINE, "rank 1 at most", fun() -> tessera:meshgrid([X]) end},
             {?LINE, "a count or a list", fun() -> tessera:tile(X, [-1]) end},
             {?LINE, "a list of 3 counts", fun() -> tessera:repeat(X, [1, 2], #{axis => 1}) end},
             {?LINE, "a list of 2", fun() -> tessera:roll(X, [1], #{axes => [0, 1]}) end},
             {?LINE, "expected an integer", fun() -> tessera:roll(X, [1]) end},
             {?LINE, "1 axes are moved to 2", fun() -> tessera:move_axis(X, 0, [0, 1]) end},
             {?LINE, "a vector or a matrix", fun() -> tessera:diag(1) end},
             {?LINE, "the offset of a diagonal", fun() -> tessera:tril(X, a) end},
             {?LINE, "expected a matrix", fun() -> tessera:triu(t([1])) end},
             {?LINE, "3 indices", fun() -> tessera:at(X, [0, 0, 0]) end},
             {?LINE, "no index 2 in axis 0", fun() -> tessera:at(X, [2]) end},
             {?LINE, "got {1,2,0}", fun() -> tessera:at(X, [{1, 2, 0}]) end},
             {?LINE, "more than once", fun() -> tessera:at(X, ['...', '...']) end},
             {?LINE, "axis j has the sizes", fun() -> tessera:einsum("ij,jk", [X, X]) end},
             {?LINE, "1 operands, but 2", fun() -> tessera:einsum("ij,jk", [X]) end},
             {?LINE, "has 2 axes, and 1 are written", fun() -> tessera:einsum("i", [X]) end},
             {?LINE, "axis k is in no operand", fun() -> tessera:einsum("ij->k", [X]) end},
             {?LINE, "stands twice in the result", fun() -> tessera:einsum("ij->ii", [X]) end},
             {?LINE, "the result has no ...", fun() -> tessera:einsum("i...->i", [X]) end},
             {?LINE, "expected letters", fun() -> tessera:einsum("i1", [X]) end},
             {?LINE, "more than one ->", fun() -> tessera:einsum("i->i->i", [X]) end},
             {?LINE, "expected a text", fun() -> tessera:einsum(17, [X]) end},
             {?LINE, "... stands twice", fun() -> tessera:einsum("...i...", [X]) end},
             {?LINE, "a list of operands", fun() -> tessera:einsum("ij", X) end},
             {?LINE, "got a number", fun() -> tessera:matmul(X, 2) end},
             {?LINE, "rows of 3 elements meet columns of 2", fun() -> tessera:matmul(X, X) end},
             {?LINE, "do not match", fun() -> tessera:matmul(tessera:ones({2, 1, 1}), tessera:ones({3, 1, 1})) end},
             {?LINE, "three elements", fun() -> tessera:cross(t([1, 2]), t([1, 2])) end},
             {?LINE, "expected two axes", fun() -> tessera:trace(X, #{axes => [0]}) end},
             {?LINE, "weights of the shape", fun() -> tessera:average(X, #{weights => t([1, 2])}) end},
             {?LINE, "from 0 to 1", fun() -> tessera:nan_quantile(X, 2) end},
             {?LINE, "ddof is a", fun() -> tessera:cov(X, #{ddof => a}) end},
             {?LINE, "order is -1", fun() -> tessera:diff(X, #{order => -1}) end},
             {?LINE, "side is up", fun() -> tessera:searchsorted(t([1]), 1, #{side => up}) end},
             {?LINE, "expected a vector", fun() -> tessera:searchsorted(X, 1) end},
             {?LINE, "two edges", fun() -> tessera:histogram(X, [1.0]) end},
             {?LINE, "a number of bins", fun() -> tessera:histogram(X, 0) end},
             {?LINE, "range is {2,1}", fun() -> tessera:histogram(X, 3, #{range => {2, 1}}) end},
             {?LINE, "weights have the shape", fun() -> tessera:bincount(X, #{weights => t([1])}) end},
             {?LINE, "expected integers", fun() -> tessera:bincount(t([1.0])) end},
             {?LINE, "length is a", fun() -> tessera:bincount(X, #{length => a}) end},
             {?LINE, "as many heights", fun() -> tessera:interp(1, t([1, 2]), t([1])) end},
             {?LINE, "expected real places", fun() -> tessera:interp(t([{complex, 1, 1}]), t([1, 2]), t([1, 2])) end},
             {?LINE, "expected real places", fun() -> tessera:interp({complex, 1, 1}, t([1, 2]), t([1, 2])) end},
             {?LINE, "expected real places", fun() -> tessera:interp(1, t([1, {complex, 2, 1}]), t([1, 2])) end},
             {?LINE, "the heights are real", fun() -> tessera:interp(1, t([1, 2]), t([1, 2]), #{left => {complex, 1, 1}}) end},
             {?LINE, "the option size", fun() -> (tessera:jit(fun tessera:argwhere/1))(X) end},
             {?LINE, "the option length", fun() -> (tessera:jit(fun tessera:bincount/1))(X) end},
             {?LINE, "expected real numbers", fun() -> tessera:hypot(t({complex, 1, 1}), 1) end},
             {?LINE, "rtol is a", fun() -> tessera:is_close(X, X, #{rtol => a}) end}]] ++
    [{"out of range", fun() -> raises(out_of_range, Words, F) end}
     || {Words, F} <- [{"does not fit", fun() -> tessera:arange(0, 300, 1, u8) end}, {"is no float", fun() -> tessera:arange(1 bsl 2000, 3 bsl 2000, 1 bsl 2000, f64) end},
                       {"more bytes", fun() -> tessera:bincount(t([(1 bsl 63) - 1], s64)) end}, {"more bytes", fun() -> tessera:bincount(t([1 bsl 63], u64)) end}]].

raised(Line, Words, F) -> {lists:flatten(io_lib:format("~b", [Line])), fun() -> raises(invalid_argument, Words, F) end}.

%% ---- the table

%% Each function that the page names is there.
table_test() ->
    {ok, Page} = file:read_file(filename:join([root(), "docs", "names.md"])),
    Rows = [string:split(Line, "|", all) || <<"| ", _/binary>> = Line <- binary:split(Page, <<"\n">>, [global])],
    Own = lists:append([element(2, re_all(lists:nth(5, Row))) || [_, _, _, _, _ | _] = Row <- Rows]),
    ?assert(length(Own) > 100),
    Exports = [{atom_to_binary(Module), atom_to_binary(F)} || Module <- [tessera, tessera_random, tessera_io], {F, _} <- Module:module_info(exports)],
    ?assertEqual([], [Name || Name <- Own, not lists:member(qualified(Name), Exports)]).

%% The names of the functions in backquotes, without their arguments.
re_all(Cell) ->
    case re:run(Cell, "`([a-z_0-9:]+)", [global, {capture, all_but_first, binary}]) of
        {match, Names} -> {ok, lists:append(Names)};
        nomatch -> {ok, []}
    end.

qualified(Name) ->
    case binary:split(Name, <<":">>) of
        [Module, F] -> {Module, F};
        [F] -> {<<"tessera">>, F}
    end.
