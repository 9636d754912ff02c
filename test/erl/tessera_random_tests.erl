%% Random numbers: against samples that Nx.Random gave (test/nx/record_random.exs), and their moments, ranges, gradients and
%% errors. Nothing here is left to chance: the keys are given.
-module(tessera_random_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/3, check_gradient/2]).
-define(R, tessera_random).

key() -> ?R:key(1701).

%% ---- Nx's samples

%% Computed with other logarithms and another inverse error function.
-define(ROUNDED, [normal, gumbel, multivariate_normal]).

nx_test_() ->
    {ok, Samples} = file:consult(filename:join([filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))), "..", "nx", "fixtures", "random.samples"])),
    ?assert(length(Samples) > 300),
    Names = lists:usort([element(1, Sample) || Sample <- Samples]),
    ?assertEqual([choice, fold_in, gumbel, key, multivariate_normal, normal, randint, shuffle, split, uniform], Names),
    [{timeout, 120, {atom_to_list(Name), fun() -> [replay(S) || S <- Samples, element(1, S) =:= Name] end}} || Name <- Names].

replay({Name, Seed, Args, Options, Sample, Next}) ->
    Key = ?R:key(Seed),
    {Made, After} = made(Name, Key, [read(Arg) || Arg <- Args], maps:map(fun(_, V) -> read(V) end, Options)),
    ?assertEqual({Name, Seed, read_bits(Next)}, {Name, Seed, tessera:to_binary(After)}),
    {tensor, Type, Shape, Bits} = Sample,
    ?assertEqual({Name, Args, Shape}, {Name, Args, tessera:shape(Made)}),
    case lists:member(Name, ?ROUNDED) of
        true -> near(tessera:to_list(read(Sample)), tessera:to_list(tessera:as_type(Made, Type)), tolerance(Type));
        false -> ?assertEqual({Name, Seed, Args, Options, Bits},
                              {Name, Seed, Args, Options, tessera:to_binary(tessera:as_type(Made, Type))})
    end.

made(key, Key, [], _) -> {Key, Key};
made(split, Key, [Count], _) -> {tessera:stack(?R:split(Key, Count)), Key};
made(fold_in, Key, [Data], _) -> {?R:fold_in(Key, Data), Key};
made(Name, Key, Args, Options) -> apply(?R, Name, [Key | Args] ++ [Options]).

read({tensor, Type, Shape, Bits}) -> tessera:from_binary(Bits, Type, Shape);
read(Other) -> Other.

read_bits({tensor, _, _, Bits}) -> Bits.

tolerance(f16) -> 2.0e-3;
tolerance(_) -> 1.0e-5.

%% ---- the same numbers in a jitted function

jit_test_() ->
    T = tessera:iota({5, 2}),
    [{lists:flatten(io_lib:format("~0p", [Call])),
      fun() -> ?assertEqual(bits(apply(?R, Name, [key() | Args])),
                            bits((tessera:jit(fun(K) -> apply(?R, Name, [K | Args]) end))(key()))) end}
     || {Name, Args} = Call <-
            [{split, [3]}, {fold_in, [7]}, {bits, [#{shape => {3}, type => u64}]}, {uniform, [{4}]}, {normal, [1, 0.1, {4}]},
             {truncated_normal, [-1, infinity, {4}]}, {gumbel, [{3}]}, {gamma, [0.3, 2, {40}]}, {beta, [2, 3, {40}]},
             {poisson, [30, {40}]}, {poisson, [3, {40}]}, {binomial, [100, 0.3, {40}]}, {binomial, [5, 0.3, {40}]},
             {student_t, [3, {4}]}, {dirichlet, [[1.0, 2.0], {3}]}, {bernoulli, [0.3, {9}]}, {randint, [0, 10, {9}]},
             {permutation, [10]}, {shuffle, [T, #{axis => 1}]}, {choice, [T, #{samples => 4}]},
             {choice, [5, #{samples => 4, probabilities => [1, 2, 3, 4, 5]}]},
             {choice, [5, #{samples => 4, probabilities => [1, 2, 3, 4, 5], replace => false}]},
             {categorical, [tessera:tensor([[0.1, 0.2], [3.0, 1.0]]), {3}]}, {uniform_split, [{3}]}, {normal_split, [0, 1, {3}]},
             {gumbel_split, [{3}]}, {randint_split, [0, 3, {3}]},
             {multivariate_normal_split, [tessera:zeros({2}), tessera:eye(2), {3}]}]].

bits(List) when is_list(List) -> [bits(Item) || Item <- List];
bits({A, B}) -> {bits(A), bits(B)};
bits(Tensor) -> {tessera:type(Tensor), tessera:shape(Tensor), tessera:to_binary(Tensor)}.

%% Inside of a loop with a key that it carries.
loop_test() ->
    Walk = tessera:jit(fun(Key) ->
        tessera:while({Key, 0, 0.0}, fun({_, I, _}) -> tessera:less(I, 5) end,
                      fun({K, I, Sum}) -> {X, Next} = ?R:normal(K), {Next, tessera:add(I, 1), tessera:add(Sum, X)} end)
    end),
    {_, 5, Sum} = lists:foldl(fun(_, {K, I, S}) -> {X, Next} = ?R:normal(K), {Next, I + 1, S + tessera:to_number(X)} end,
                              {key(), 0, 0.0}, lists:seq(1, 5)),
    {_, _, Made} = Walk(key()),
    near(Sum, tessera:to_number(Made), 1.0e-5).

split_functions_test() ->
    [Next, Own] = ?R:split(key()),
    Pairs = [{?R:uniform(key(), {3}), ?R:uniform_split(Own, {3})}, {?R:uniform(key(), 1, 2, {3}), ?R:uniform_split(Own, 1, 2, {3})},
             {?R:normal(key(), {3}), ?R:normal_split(Own, {3})}, {?R:normal(key(), 1, 2, {3}), ?R:normal_split(Own, 1, 2, {3})},
             {?R:gumbel(key(), {3}), ?R:gumbel_split(Own, {3})}, {?R:randint(key(), 1, 9, {3}), ?R:randint_split(Own, 1, 9, {3})},
             {?R:multivariate_normal(key(), [1.0, 2.0], tessera:eye(2), {3}),
              ?R:multivariate_normal_split(Own, [1.0, 2.0], tessera:eye(2), {3})}],
    [?assertEqual({bits(Whole), bits(Next)}, {bits(Split), bits(After)}) || {{Split, After}, Whole} <- Pairs].

%% ---- moments: of N numbers, within five standard errors of the known ones

-define(N, 40000).

moments_test_() ->
    [{timeout, 60, {lists:flatten(io_lib:format("~0p ~s", [[Name | Args], Type])), fun() -> moments(Name, Args, Type, Mean, Variance) end}}
     || {Name, Args, Mean, Variance} <-
            [{uniform, [-1, 3], 1, 16 / 12}, {normal, [2, 3], 2, 9}, {truncated_normal, [-1, 1], 0, 0.2911},
             {truncated_normal, [2, infinity], 2.3732, 0.1142}, {log_normal, [0, 0.5], 1.1331, 0.3647},
             {exponential, [2], 2, 4}, {laplace, [1, 2], 1, 8}, {logistic, [1, 2], 1, 4 * 3.28987}, {gumbel, [], 0.577216, 1.644934},
             {pareto, [5], 1.25, 5 / 48}, {weibull, [2, 3], 2.65868, 1.93142}, {rayleigh, [2], 2.50663, 1.71681},
             {gamma, [0.3, 2], 0.6, 1.2}, {gamma, [1, 1], 1, 1}, {gamma, [50, 0.1], 5, 0.5}, {beta, [0.5, 0.5], 0.5, 0.125},
             {beta, [4, 2], 2 / 3, 8 / 252}, {chi_square, [3], 3, 6}, {student_t, [9], 0, 9 / 7}],
        Type <- [f32, f64] ++ [T || T <- [f16, bf16], not lists:member(Name, [uniform, normal, gumbel])]] ++
    [{timeout, 60, {lists:flatten(io_lib:format("~0p", [[Name | Args]])), fun() -> moments(Name, Args, s32, Mean, Variance) end}}
     || {Name, Args, Mean, Variance} <-
            [{poisson, [0.1], 0.1, 0.1}, {poisson, [9.9], 9.9, 9.9}, {poisson, [10], 10, 10}, {poisson, [3000], 3000, 3000},
             {binomial, [20, 0.2], 4, 3.2}, {binomial, [20, 0.9], 18, 1.8}, {binomial, [1000, 0.4], 400, 240},
             {binomial, [100000, 0.9], 90000, 9000}, {geometric, [0.25], 4, 12}, {bernoulli, [0.2], 0.2, 0.16},
             {randint, [-3, 8], 2, 10}]].

moments(Name, Args, Type, Mean, Variance) ->
    {X, Next} = apply(?R, Name, [key() | Args] ++ [#{shape => {?N}, type => Type}]),
    ?assertEqual({Type, {?N}}, {tessera:type(X), tessera:shape(X)}),
    ?assertNotEqual(bits(key()), bits(Next)),
    Wide = tessera:as_type(X, f64),
    Error = 5 * math:sqrt(Variance / ?N),
    [Found, Spread] = [tessera:to_number(T) || T <- [tessera:mean(Wide), tessera:variance(Wide)]],
    ?assert(abs(Found - Mean) < Error orelse {mean, Found, Mean}),
    ?assert(abs(Spread - Variance) < 0.12 * Variance orelse {variance, Spread, Variance}).

%% The shape of a distribution, which moments do not show: Pearson's statistic of counts, against its 99.99 % quantile.
counts_test_() ->
    [{timeout, 60, {atom_to_list(Name), fun() -> fits(Name, Args, P, Limit) end}}
     || {Name, Args, P, Limit} <-
            [{poisson, [4], fun(K) -> math:exp(-4) * math:pow(4, K) / factorial(K) end, 15},
             {poisson, [12], fun(K) -> math:exp(-12) * math:pow(12, K) / factorial(K) end, 30},
             {binomial, [12, 0.3], fun(K) -> ways(12, K) * math:pow(0.3, K) * math:pow(0.7, 12 - K) end, 13},
             {binomial, [40, 0.6], fun(K) -> ways(40, K) * math:pow(0.6, K) * math:pow(0.4, 40 - K) end, 41},
             {geometric, [0.3], fun(0) -> 0.0; (K) -> 0.3 * math:pow(0.7, K - 1) end, 40},
             {randint, [0, 7], fun(_) -> 1 / 7 end, 7}]].

fits(Name, Args, P, Limit) ->
    {X, _} = apply(?R, Name, [key() | Args] ++ [{?N}]),
    Counts = lists:foldl(fun(K, Map) -> maps:update_with(K, fun(C) -> C + 1 end, 1, Map) end, #{}, tessera:to_list(X)),
    fits([{?N * P(K), maps:get(K, Counts, 0)} || K <- lists:seq(0, Limit - 1), ?N * P(K) > 10]).

fits(Cells) ->
    Statistic = lists:sum([(Seen - Expected) * (Seen - Expected) / Expected || {Expected, Seen} <- Cells]),
    Freedom = length(Cells) - 1,
    ?assert(Freedom >= 6),
    %% Wilson and Hilferty's approximation
    Bound = Freedom * math:pow(1 - 2 / (9 * Freedom) + 3.72 * math:sqrt(2 / (9 * Freedom)), 3),
    ?assert(Statistic < Bound orelse {Statistic, Bound, Cells}).

%% Of very many trials, or at a very large rate, the distribution is a normal one; its probabilities are differences of large terms.
large_counts_test_() ->
    [{timeout, 60, {lists:flatten(io_lib:format("~0p", [[Name | Args]])), fun() ->
        {X, _} = apply(?R, Name, [key() | Args] ++ [#{shape => {?N}, type => f64}]),
        Standard = [(K - Mean) / math:sqrt(Variance) || K <- tessera:to_list(X)],
        ?assert(lists:max(Standard) < 5.5 andalso lists:min(Standard) > -5.5), %% one in 650 such samples has a number beyond
        Cells = lists:foldl(fun(Z, Map) -> maps:update_with(trunc(10 * math:erfc(-Z / math:sqrt(2))), fun(C) -> C + 1 end, 1, Map) end,
                            #{}, Standard),
        fits([{?N / 20, maps:get(I, Cells, 0)} || I <- lists:seq(0, 19)])
     end}}
     || {Name, Args, Mean, Variance} <-
            [{binomial, [N, P], N * P, N * P * (1 - P)} || N <- [1.0e15, 1.0e16, 1.0e18, 1.0e21], P <- [0.3, 0.5, 0.9]] ++
            [{binomial, [1.0e18, 1.0e-12], 1.0e6, 1.0e6}, {binomial, [1.0e300, 1.0e-290], 1.0e10, 1.0e10}] ++
            [{poisson, [Rate], Rate, Rate} || Rate <- [1.0e15, 1.0e16, 1.0e18, 1.0e21]]].

factorial(K) -> lists:foldl(fun erlang:'*'/2, 1, lists:seq(1, K)).

ways(N, K) -> factorial(N) / (factorial(K) * factorial(N - K)).

%% Half of the numbers are on each side of the median.
cauchy_test() ->
    {X, _} = ?R:cauchy(key(), 3, 2, {?N}),
    Within = fun(Low, High) -> share(tessera:logical_and(tessera:greater(X, Low), tessera:less(X, High))) end,
    near(0.5, Within(1, 5), 0.02),
    near(0.5, Within(neg_infinity, 3), 0.02).

share(Truths) -> tessera:to_number(tessera:mean(tessera:as_type(Truths, f64))).

multivariate_test() ->
    Covariance = tessera:tensor([[2.0, 0.6], [0.6, 1.0]]),
    {X, _} = ?R:multivariate_normal(key(), tessera:tensor([1.0, -1.0]), Covariance, {?N}),
    Mean = tessera:mean(X, #{axes => [0]}),
    Centred = tessera:subtract(X, Mean),
    near([1.0, -1.0], tessera:to_list(Mean), 0.05),
    near(tessera:to_list(Covariance), tessera:to_list(tessera:divide(tessera:dot(tessera:transpose(Centred), Centred), ?N)), 0.05).

dirichlet_test() ->
    {X, _} = ?R:dirichlet(key(), [0.01, 2.0, 4.0], {1000}),
    near(lists:duplicate(1000, 1.0), tessera:to_list(tessera:sum(X, #{axes => [1]})), 1.0e-5),
    near([0.01 / 6.01, 2 / 6.01, 4 / 6.01], tessera:to_list(tessera:mean(X, #{axes => [0]})), 0.03).

categorical_test() ->
    Logits = tessera:log(tessera:tensor([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]])),
    {X, _} = ?R:categorical(key(), Logits, {?N}),
    ?assertEqual({s32, {?N, 3}}, {tessera:type(X), tessera:shape(X)}),
    near([0.9, 0.5, 0.0], tessera:to_list(tessera:mean(X, #{axes => [0]})), 0.02),
    {Y, _} = ?R:categorical(key(), Logits, #{axis => 0}),
    ?assertEqual({2}, tessera:shape(Y)).

%% ---- ranges, choices and orders

ranges_test_() ->
    [?_test(begin
                {X, _} = ?R:randint(key(), Min, Max, #{shape => {5000}, type => Type}),
                Seen = lists:usort(tessera:to_list(X)),
                ?assert(hd(Seen) >= Min andalso lists:last(Seen) < Max),
                Max - Min > 256 orelse ?assertEqual(lists:seq(Min, Max - 1), Seen)
            end)
     || {Type, Min, Max} <- [{u8, 0, 256}, {s8, -128, 128}, {u8, 7, 8}, {s32, -(1 bsl 31), 1 bsl 31}, {u64, 0, 1 bsl 64},
                             {s64, -(1 bsl 63), 1 bsl 63}, {u64, 1 bsl 63, (1 bsl 63) + 2}, {s16, -3, 3}]] ++
    [?_test(begin %% all 64 bits are used
                {X, _} = ?R:randint(key(), 0, 1 bsl 64, #{shape => {500}, type => u64}),
                Seen = tessera:to_list(X),
                ?assert(lists:max(Seen) > 63 bsl 58 andalso lists:min(Seen) < 1 bsl 58)
            end),
     ?_test(begin %% bounds of tensors; Min where that is no range
                Min = tessera:tensor([0, 5, -7, 3], s64),
                Max = tessera:tensor([1, 5, -5, 1], s64),
                {X, _} = ?R:randint(key(), Min, Max, {100, 4}),
                Columns = [lists:usort(Column) || Column <- tessera:to_list(tessera:transpose(X))],
                ?assertEqual([[0], [5], [-7, -6], [3]], Columns)
            end),
     ?_test(begin %% a whole range of 64 bits
                {X, _} = ?R:randint(key(), tessera:tensor(-(1 bsl 63), s64), 1 bsl 63, {500}),
                Seen = tessera:to_list(X),
                ?assertEqual(500, length(lists:usort(Seen))),
                ?assert(lists:max(Seen) > 31 bsl 58 andalso lists:min(Seen) < -(31 bsl 58))
            end),
     ?_test(begin
                {X, _} = ?R:uniform(key(), 2, 3, #{shape => {10000}, type => bf16}),
                {X1, _} = ?R:normal(key(), #{shape => {10000}, type => bf16}),
                [Low, High] = [tessera:to_number(F(X)) || F <- [fun tessera:reduce_min/1, fun tessera:reduce_max/1]],
                ?assert(Low >= 2 andalso High =< 3),
                ?assertEqual(0, tessera:to_number(tessera:any(tessera:is_infinity(X1))))
            end),
     ?_test(begin
                {X, _} = ?R:truncated_normal(key(), tessera:tensor([-0.5, 6.0, neg_infinity]), tessera:tensor([0.5, 6.5, -6.0]), {2000, 3}),
                ?assertEqual([1, 1, 1], [tessera:to_number(T) || T <- [
                    tessera:all(tessera:less_equal(tessera:abs(tessera:slice(X, [0, 0], [2000, 1])), 0.5)),
                    tessera:all(tessera:greater_equal(tessera:slice(X, [0, 1], [2000, 1]), 6)),
                    tessera:all(tessera:less_equal(tessera:slice(X, [0, 2], [2000, 1]), -6))]])
            end)].

%% Bounds of tensors give the numbers that the same bounds give as plain numbers, where their difference is too large for
%% their type, and where the number of the upper bound is. Bounds that the sample's type does not hold are its nearest numbers.
tensor_bounds_test_() ->
    Given = fun({Number, Of}) -> tessera:tensor(Number, Of); (Number) -> Number end,
    Draw = fun(Min, Max, Type) -> {X, _} = ?R:randint(key(), Min, Max, #{shape => {2000}, type => Type}), tessera:to_list(X) end,
    [{lists:flatten(io_lib:format("~w to ~w as ~s", [Min, Max, Type])),
      ?_assertEqual(Draw(From, To, Type), Draw(Given(Min), Given(Max), Type))}
     || {Min, Max, Type, From, To} <-
            [{{-128, s8}, {127, s8}, s8, -128, 127}, {{-128, s8}, {127, s8}, s32, -128, 127}, {{-100, s8}, {100, s8}, s64, -100, 100},
             {{-2, s2}, {1, s2}, s2, -2, 1}, {{-8, s4}, {7, s4}, s4, -8, 7}, {{0, u2}, {3, u2}, u2, 0, 3}, {{-8, s4}, {7, s4}, s16, -8, 7},
             {{-(1 bsl 31), s32}, {(1 bsl 31) - 1, s32}, s64, -(1 bsl 31), (1 bsl 31) - 1},
             {{-(1 bsl 63), s64}, {(1 bsl 63) - 1, s64}, s64, -(1 bsl 63), (1 bsl 63) - 1},
             {{0, u64}, {(1 bsl 64) - 1, u64}, u64, 0, (1 bsl 64) - 1}, {{-5, s8}, {(1 bsl 63) + 7, u64}, s64, -5, 1 bsl 63},
             {{0, u8}, 256, u8, 0, 256}, {{-8, s4}, 8, s4, -8, 8}, {{0, s64}, 1 bsl 63, s64, 0, 1 bsl 63},
             {{7, u64}, 1 bsl 64, u64, 7, 1 bsl 64}, {-128, {127, s8}, s8, -128, 127}, {0, {200, u8}, s16, 0, 200},
             {{0, s32}, {1000, s32}, s8, 0, 128}, {{-1000, s32}, {1000, s32}, s8, -128, 128}, {{-5, s64}, {3, u64}, u8, 0, 3},
             {{-5, s8}, {0, u8}, s8, -5, 0}, {{200, s16}, {300, s16}, s8, 127, 128}, {{-300, s16}, {-200, s16}, s8, -128, -127},
             {{3, u64}, {0, u64}, s8, 3, 4}, {{3, s64}, {-(1 bsl 63), s64}, s64, 3, 4}, {{-2, s8}, {-2, s8}, s8, -2, -1}]].

%% Ends of ranges: where a sum rounds to the upper one or beyond, and where the difference of both is infinite.
uniform_ends_test_() ->
    [{lists:flatten(io_lib:format("~p ~p ~p", [Type, Min, Max])), fun() ->
        {X, _} = ?R:uniform(key(), Min, Max, #{shape => {20000}, type => Type}),
        Wide = tessera:as_type(X, f64),
        [Low, High] = [tessera:to_number(F(Wide)) || F <- [fun tessera:reduce_min/1, fun tessera:reduce_max/1]],
        [From, To] = [tessera:to_number(tessera:as_type(tessera:full({}, End, Type), f64)) || End <- [Min, Max]],
        ?assert(is_float(Low) andalso is_float(High) andalso Low >= From andalso High < To orelse {Low, High}),
        Place = tessera:divide(tessera:subtract(tessera:multiply(Wide, 0.5), From / 2), To / 2 - From / 2),
        Steps = length(lists:usort(tessera:to_list(X))), %% the last of them has the share of the upper end, too
        near(0.5, tessera:to_number(tessera:mean(Place)), 0.01 + 1 / Steps)
     end}
     || {Type, Min, Max} <-
            [{f32, 1000000, 1000001}, {f32, -3.0e38, 3.0e38}, {f32, -1000001, -1000000}, {f32, 1, 1.0000003}, {f32, -3.0e38, -1.0},
             {f64, 1.0e15, 1.0e15 + 1}, {f64, -1.7e308, 1.7e308}, {f16, 1000, 1003}, {f16, -60000, 60000}, {bf16, 100, 103},
             {bf16, -3.0e38, 3.0e38}, {f32, -1.0e-44, 0}, {f64, -1.0e-322, 0}, {f32, 0, 1}] ++
            [{Type, Min, Max} || Type <- [f8, f8_e4m3fn], {Min, Max} <- [{0, 1}, {-2, 2}, {-1, 0}, {-400, 400}]]] ++
    [?_assertEqual([1.0, 2.0], tessera:to_list(element(1, ?R:uniform(key(), tessera:tensor([1.0, 2.0]), tessera:tensor([1.0, 1.0]))))),
     ?_assertEqual([nan, nan, nan], tessera:to_list(element(1, ?R:uniform(key(), tessera:tensor([0.0, neg_infinity, 0.0]),
                                                                           tessera:tensor([infinity, 0.0, nan])))))].

%% Every distribution of floats gives each float type, with as many different numbers as the type lets it have.
types_test_() ->
    [{lists:flatten(io_lib:format("~p ~p", [Name, Type])), fun() ->
        {X, _} = apply(?R, Name, [key() | Args] ++ [#{shape => {4000}, type => Type}]),
        ?assertEqual({Type, {4000}}, {tessera:type(X), tessera:shape(X)}),
        Seen = length(lists:usort(tessera:to_list(X))),
        ?assert(Seen > case Type of f8 -> 15; f8_e4m3fn -> 15; bf16 -> 100; _ -> 500 end orelse Seen)
     end}
     || {Name, Args} <- [{normal, [0, 3]}, {truncated_normal, [-2, 2]}, {log_normal, [0, 1]}, {exponential, [2]}, {laplace, [0, 2]},
                         {logistic, [0, 2]}, {cauchy, [0, 1]}, {gumbel, []}, {pareto, [1]}, {weibull, [1, 2]}, {rayleigh, [2]},
                         {gamma, [1, 2]}, {beta, [0.5, 0.5]}, {chi_square, [2]}, {student_t, [3]}],
        Type <- [f8, f8_e4m3fn, bf16, f16, f32, f64]] ++
    [?_test(begin %% few random bits have no say in a choice
                {X, _} = ?R:categorical(key(), tessera:zeros({4}, Type), {?N}),
                [near(0.25, share(tessera:equal(X, I)), 0.015) || I <- lists:seq(0, 3)],
                {Y, _} = ?R:bernoulli(key(), tessera:full({}, 0.01, Type), {?N}),
                near(0.01, share(Y), 0.002),
                {Z, _} = ?R:choice(key(), 2, #{samples => ?N, probabilities => tessera:tensor([1, 3], Type)}),
                near(0.75, share(Z), 0.02)
            end) || Type <- [f8, f8_e4m3fn, bf16, f16, f32]] ++
    [?_test(begin %% all of many elements; 50 samples for each miss it with a probability of 2.0e-22
                {X, _} = ?R:choice(key(), 3000, #{samples => 150000, probabilities => tessera:ones({3000}, Type)}),
                ?assertEqual(lists:seq(0, 2999), lists:usort(tessera:to_list(X))),
                Weights = tessera:concatenate([tessera:full({2000}, 1, Type), tessera:full({2000}, 3, Type)]),
                {Y, _} = ?R:choice(key(), 4000, #{samples => 100, probabilities => Weights, replace => false}),
                near(0.75, share(tessera:greater_equal(Y, 2000)), 0.15)
            end) || Type <- [f8, f8_e4m3fn, bf16, f16, f32, f64, s8, u64]] ++
    [?_assertEqual(f8, tessera:type(element(1, ?R:poisson(key(), 3, #{type => f8})))),
     ?_test(begin
                {X, _} = ?R:student_t(key(), infinity, {?N}),
                near(1.0, tessera:to_number(tessera:variance(X)), 0.05)
            end)].

%% A gamma number of a large exponent may be each number of the type within two deviations from the mean.
dense_gamma_test_() ->
    [{lists:flatten(io_lib:format("~p", [Exponent])), fun() ->
        {X, _} = ?R:gamma(key(), Exponent, 1, {?N}),
        Near = [trunc(Y) || Y <- tessera:to_list(X), abs(Y - Exponent) < 2 * math:sqrt(Exponent)],
        near(0.9545, length(Near) / ?N, 0.01),
        [First | _] = Seen = lists:usort(Near),
        ?assertEqual(lists:seq(First, lists:last(Seen), Step), Seen)
     end} || {Exponent, Step} <- [{1.0e11, 8192}, {1.0e12, 65536}, {1.0e13, 1048576}]].

%% Small gamma numbers have all digits of the type: of numbers below 2^-10 few are multiples of 2^-26.
small_gamma_test() ->
    {X, _} = ?R:gamma(key(), 1, 1, {?N}),
    Small = [Y || Y <- tessera:to_list(X), Y < 0.0009765625],
    Coarse = [Y || Y <- Small, Y * 67108864 == trunc(Y * 67108864)],
    ?assertMatch({All, Few} when All > 0 andalso 10 * Few < All, {length(Small), length(Coarse)}).

%% Shares of gamma numbers of a large exponent have the deviation of their distribution, and as many different numbers as it has.
dense_shares_test_() ->
    [{Name, fun() ->
        Shares = tessera:to_list(X),
        ?assert(length(lists:usort(Shares)) > 200),
        Variance = lists:sum([(Share - 0.5) * (Share - 0.5) || Share <- Shares]) / ?N,
        near(1.0, Variance * 8.0e10, 0.04)
     end} || {Name, X} <- [{"beta", element(1, ?R:beta(key(), 1.0e10, 1.0e10, {?N}))},
                           {"dirichlet", tessera:at(element(1, ?R:dirichlet(key(), [1.0e10, 1.0e10], {?N})), [all, 0])}]].

orders_test_() ->
    [?_test(begin {X, _} = ?R:permutation(key(), N), ?assertEqual(lists:seq(0, N - 1), lists:sort(tessera:to_list(X))) end)
     || N <- [0, 1, 2, 3, 1000, 5000]] ++
    [?_test(begin %% each of six orders as often as another
                {Rows, _} = ?R:shuffle(key(), tessera:broadcast(tessera:tensor([0, 1, 2]), {6000, 3}), #{axis => 1, independent => true}),
                Seen = lists:foldl(fun(Row, M) -> maps:update_with(Row, fun(C) -> C + 1 end, 1, M) end, #{}, tessera:to_list(Rows)),
                ?assertEqual(6, map_size(Seen)),
                [?assert(abs(Count - 1000) < 150) || Count <- maps:values(Seen)]
            end),
     ?_test(begin
                {X, _} = ?R:choice(key(), tessera:tensor([10, 20, 30, 40]),
                                   #{samples => ?N, probabilities => tessera:tensor([0.0, 1.0, 3.0, 0.0])}),
                ?assertEqual([20, 30], lists:usort(tessera:to_list(X))),
                near(0.75, share(tessera:equal(X, 30)), 0.02)
            end),
     ?_test(begin
                {X, _} = ?R:choice(key(), 1000, #{samples => 1000, replace => false}),
                ?assertEqual(lists:seq(0, 999), lists:sort(tessera:to_list(X)))
            end),
     ?_test(begin %% by bisection, for sizes around powers of two
                [begin
                     P = tessera:one_hot(tessera:tensor(I), N, f32),
                     {X, _} = ?R:choice(key(), N, #{samples => 20, probabilities => P}),
                     ?assertEqual([I], lists:usort(tessera:to_list(X)))
                 end || N <- [1, 2, 3, 4, 5, 7, 8, 9], I <- lists:seq(0, N - 1)]
            end),
     ?_assertEqual({0}, tessera:shape(element(1, ?R:choice(key(), 5, #{samples => 0})))),
     ?_assertEqual({0, 3}, tessera:shape(element(1, ?R:shuffle(key(), tessera:zeros({0, 3}))))),
     ?_assertEqual({2, 0}, tessera:shape(element(1, ?R:shuffle(key(), tessera:zeros({2, 0})))))].

%% ---- shapes and types

forms_test_() ->
    Vector = tessera:tensor([1.0, 2.0, 3.0], f64),
    [?_assertEqual({Type, Shape}, (fun({X, _}) -> {tessera:type(X), tessera:shape(X)} end)(F()))
     || {Type, Shape, F} <-
            [{f32, {}, fun() -> ?R:uniform(key()) end}, {f32, {7}, fun() -> ?R:uniform(key(), 7) end},
             {f64, {3}, fun() -> ?R:normal(key(), Vector, 1) end}, {f64, {2, 3}, fun() -> ?R:normal(key(), Vector, 1, {2, 3}) end},
             {f64, {2, 3}, fun() -> ?R:normal(key(), tessera:zeros({2, 1}), Vector) end},
             {f16, {3}, fun() -> ?R:exponential(key(), Vector, #{type => f16}) end},
             {f32, {}, fun() -> ?R:uniform(key(), tessera:tensor(0), tessera:tensor(3)) end},
             {f32, {0, 4}, fun() -> ?R:normal(key(), {0, 4}) end}, {f32, {0}, fun() -> ?R:gamma(key(), 2, 1, {0}) end},
             {s32, {0}, fun() -> ?R:poisson(key(), 2, {0}) end}, {u8, {3}, fun() -> ?R:bernoulli(key(), tessera:tensor([0.1, 0.2, 0.3])) end},
             {f16, {3}, fun() -> ?R:gamma(key(), tessera:tensor([0.1, 0.2, 0.3], f16), 2) end},
             {s64, {3}, fun() -> ?R:poisson(key(), Vector, #{type => s64}) end}, {f32, {3}, fun() -> ?R:poisson(key(), Vector, #{type => f32}) end},
             {s64, {}, fun() -> ?R:randint(key(), 0, 1 bsl 40) end}, {u8, {2}, fun() -> ?R:bits(key(), #{type => u8, shape => 2}) end}]].

%% Parameters out of a distribution's range.
invalid_values_test() ->
    P = tessera:tensor([-1.0, nan, 0.0, infinity], f64),
    List = fun({X, _}) -> tessera:to_list(X) end,
    ?assertEqual([nan, nan, 0.0, infinity], List(?R:poisson(key(), P, #{type => f64}))),
    ?assertEqual([-1, -1, 0], List(?R:poisson(key(), tessera:tensor([-1.0, nan, 0.0])))),
    ?assertMatch([nan, nan, nan, infinity], List(?R:gamma(key(), P, 1))),
    ?assertEqual([-1, -1, 0, 10], List(?R:binomial(key(), 10, tessera:tensor([-1.0, nan, 0.0, 1.0])))),
    ?assertMatch([nan, nan, nan, 1.0], List(?R:geometric(key(), tessera:tensor([-1.0, nan, 0.0, 1.0]), #{type => f32}))).

%% ---- gradients, for fixed bits

gradient_test_() ->
    Points = tessera:tensor([0.7, 1.5, 2.5], f64),
    [{atom_to_list(Name), fun() -> check_gradient(fun(X) -> element(1, F(X)) end, Points) end}
     || {Name, F} <-
            [{uniform, fun(X) -> ?R:uniform(key(), tessera:negate(X), tessera:multiply(X, X)) end},
             {normal, fun(X) -> ?R:normal(key(), X, tessera:exp(X)) end},
             {log_normal, fun(X) -> ?R:log_normal(key(), X, 0.5) end}, {exponential, fun(X) -> ?R:exponential(key(), X) end},
             {laplace, fun(X) -> ?R:laplace(key(), X, X) end}, {logistic, fun(X) -> ?R:logistic(key(), X, X) end},
             {cauchy, fun(X) -> ?R:cauchy(key(), X, X) end}, {pareto, fun(X) -> ?R:pareto(key(), tessera:add(X, 2)) end},
             {weibull, fun(X) -> ?R:weibull(key(), X, X) end}, {rayleigh, fun(X) -> ?R:rayleigh(key(), X) end},
             {truncated_normal, fun(X) -> ?R:truncated_normal(key(), tessera:negate(X), X) end},
             {gamma_scale, fun(X) -> ?R:gamma(key(), 2.5, X) end},
             {multivariate_normal,
              fun(X) -> ?R:multivariate_normal(key(), X, tessera:multiply(tessera:eye(3, f64), tessera:new_axis(X, 1)), {2}) end}]].

no_gradient_test() ->
    Sum = fun(F) -> fun(X) -> {Y, _} = F(X), tessera:sum(tessera:as_type(Y, f32)) end end,
    [?assertEqual([0.0, 0.0], tessera:to_list((tessera:jit(tessera:grad(Sum(F))))(tessera:tensor([0.5, 0.9]))))
     || F <- [fun(X) -> ?R:gamma(key(), X, 1) end, fun(X) -> ?R:poisson(key(), X) end, fun(X) -> ?R:beta(key(), X, 2) end,
              fun(X) -> ?R:binomial(key(), 20, X) end, fun(X) -> ?R:bernoulli(key(), X) end]].

%% ---- errors

errors_test_() ->
    T = tessera:tensor([1, 2, 3]),
    [?_test(raises(Code, Words, F))
     || {Code, Words, F} <-
            [{invalid_argument, "expected a key, u32[2]", fun() -> ?R:uniform(42) end},
             {invalid_argument, "normal(s32[2]): expected a key", fun() -> ?R:normal(tessera:tensor([1, 2])) end},
             {invalid_argument, "expected a number of keys", fun() -> ?R:split(key(), 0) end},
             {invalid_argument, "key: expected an integer of 64 bits", fun() -> ?R:key(1 bsl 64) end},
             {invalid_argument, "key: expected an integer", fun() -> ?R:key(1.5) end},
             {invalid_argument, "fold_in", fun() -> ?R:fold_in(key(), 1.5) end},
             {invalid_argument, "expected a float type, got s32", fun() -> ?R:uniform(key(), #{type => s32}) end},
             {invalid_argument, "expected an integer type, got f32", fun() -> ?R:randint(key(), 0, 3, #{type => f32}) end},
             {invalid_argument, "expected a signed integer type of 8 bits or more, or a float type, got u8", fun() -> ?R:poisson(key(), 1, #{type => u8}) end},
             {invalid_argument, "expected an unsigned integer type", fun() -> ?R:bits(key(), #{type => s32}) end},
             {invalid_argument, "unknown options", fun() -> ?R:uniform(key(), #{size => 3}) end},
             {invalid_argument, "do not broadcast", fun() -> ?R:normal(key(), T, 1, {2}) end},
             {invalid_argument, "do not broadcast", fun() -> ?R:normal(key(), T, tessera:tensor([1, 2])) end},
             {invalid_argument, "standard deviation is -1", fun() -> ?R:normal(key(), 0, -1) end},
             {invalid_argument, "probability is 1.5", fun() -> ?R:bernoulli(key(), 1.5) end},
             {invalid_argument, "exponent is 0", fun() -> ?R:gamma(key(), 0, 1) end},
             {invalid_argument, "rate is nan", fun() -> ?R:poisson(key(), nan) end},
             {invalid_argument, "no integer is from 3 up to", fun() -> ?R:randint(key(), 3, 3) end},
             {out_of_range, "do not fit in u8", fun() -> ?R:randint(key(), 0, 300, #{type => u8}) end},
             {out_of_range, "the integer 255 does not fit in s8", fun() -> ?R:randint(key(), tessera:tensor(0), 256, #{type => s8}) end},
             {out_of_range, "the integer -1 does not fit in u8", fun() -> ?R:randint(key(), -1, T, #{type => u8}) end},
             {invalid_argument, "expected integers of at most 64 bits", fun() -> ?R:randint(key(), 1 bsl 64, T) end},
             {invalid_argument, "randint", fun() -> ?R:randint(key(), 0.5, 3) end},
             {invalid_argument, "cannot choose 4 of 3 elements without replacement",
              fun() -> ?R:choice(key(), T, #{samples => 4, replace => false}) end},
             {invalid_argument, "cannot choose 1 of 0 elements", fun() -> ?R:choice(key(), 0) end},
             {invalid_argument, "expected a float type, got c64", fun() -> ?R:choice(key(), 1, #{probabilities => tessera:ones({1}, c64)}) end},
             {invalid_argument, "expected 3 probabilities, got shape {2}", fun() -> ?R:choice(key(), T, #{probabilities => [1, 2]}) end},
             {invalid_argument, "rank 1 or more", fun() -> ?R:shuffle(key(), 5.0) end},
             {invalid_argument, "expected a mean of shape {N}",
              fun() -> ?R:multivariate_normal(key(), T, tessera:eye(2)) end},
             {failed_precondition, "constant of the traced function", fun() -> (tessera:jit(fun() -> ?R:key() end))() end}]].

entropy_test() -> ?assertNotEqual(bits(?R:key()), bits(?R:key())).
