%% Windows against the same by lists, at once and compiled; and their gradients.
-module(tessera_windows_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/2, check_gradient/2]).

t(List) -> tessera:tensor(List).

same(Expected, F, Args) ->
    ?assertEqual(Expected, tessera:to_list(apply(F, Args))),
    ?assertEqual(Expected, tessera:to_list(apply(tessera:jit(F), Args))).

values_test_() ->
    X = t([[1, 5, 2, 0], [3, 4, 7, 6], [9, 8, -1, -2]]),
    [?_test(same(Expected, F, [X]))
     || {Expected, F} <-
            [{[[13, 18, 15], [24, 18, 10]], fun(T) -> tessera:window_sum(T, {2, 2}) end},
             {[[13, 15]], fun(T) -> tessera:window_sum(T, 2, #{strides => 2}) end},
             {[[5, 7]], fun(T) -> tessera:window_max(T, [2, 2], #{strides => {2, 2}}) end},
             {[[1, 0], [8, -2]], fun(T) -> tessera:window_min(T, 2, #{strides => 2, padding => same}) end},
             {[[1], [3], [9]],
              fun(T) -> tessera:window_product(T, {1, 3}, #{strides => {1, 3}, padding => [{0, 0}, {2, -1}]}) end},
             {[[3, 5], [10, 10], [8, 6]], fun(T) -> tessera:window_sum(T, {1, 2}, #{dilation => {1, 2}}) end},
             {[[3.25, 3.75]], fun(T) -> tessera:window_mean(T, 2, #{strides => 2}) end},
             {[[6, 7, 2, 0], [7, 11, 13, 6], [17, 7, -3, -2]],
              fun(T) -> tessera:window_sum(T, {1, 2}, #{padding => [{0, 0}, {0, 1}]}) end},
             {[[], [], []], fun(T) -> tessera:window_sum(T, {1, 5}) end},
             {[[15, 52, 20], [34, 47, 76], [98, 79, -12]],
              fun(T) -> tessera:window_reduce(T, 0, {1, 2}, fun(E, Acc) -> tessera:add(tessera:multiply(Acc, 10), E) end) end},
             {[[7], [9]],
              fun(T) -> tessera:window_reduce(T, 7, {2, 1}, fun(E, Acc) -> tessera:max(E, Acc) end,
                                              #{strides => {2, 4}, padding => [{0, 1}, {0, 0}]}) end},
             {[[7, 17, 7, 7], [7, 7, 27, 7], [7, 7, 7, 7]],
              fun(T) -> tessera:window_scatter_max(T, t([[10, 20]]), 7, 2, #{strides => 2}) end},
             {[[0, 20, 30, 50, 0], [0, 0, 0, 0, 40]],
              fun(_) -> tessera:window_scatter_max(t([[1, 5, 5, 6, 2], [1, 2, 3, 4, 5]]), t([[20, 30, 40, 10], [0, 0, 0, 40]]), 0, {1, 2}) end},
             {[[20, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
              fun(T) -> tessera:window_scatter_min(tessera:abs(T), t([[10, 20]]), 0, {3, 2}, 
                                                              #{strides => {1, 2}, padding => [{0, 0}, {3, -3}]}) end}]].

types_test_() ->
    [?_assertEqual(Type, tessera:type(tessera:Name(tessera:full({3}, 200, u8), {2})))
     || {Name, Type} <- [{window_sum, u32}, {window_product, u32}, {window_max, u8}, {window_mean, f32}]].

misuse_test_() ->
    X = tessera:iota({2, 3}),
    [?_test(raises(invalid_argument, Words, F))
     || {Words, F} <-
            [{"): expected window of 2 positive integers, one for each axis, got {2}", fun() -> tessera:window_sum(X, {2}) end},
             {"got {2,0}", fun() -> tessera:window_sum(X, {2, 0}) end},
             {"expected strides of 2 positive integers", fun() -> tessera:window_max(X, 2, #{strides => -1}) end},
             {"expected padding valid, same or a list of 2 {Low, High}, got full",
              fun() -> tessera:window_max(X, 2, #{padding => full}) end},
             {"unknown options [stride]", fun() -> tessera:window_mean(X, 2, #{stride => 1}) end},
             {"expected a source of shape s32[1,2]",
              fun() -> tessera:window_scatter_max(X, t([[1]]), 0, 2, #{}) end},
             {"window_sum(s32[2,3]): dimension 0 is padded to size -1",
              fun() -> tessera:window_sum(X, 1, #{padding => [{-3, 0}, {0, 0}]}) end}]].

%% Against central differences.
gradients_test_() ->
    X = tessera:tensor([[0.3, -0.7, 1.1, 0.5], [0.9, 0.2, -0.4, 0.8], [-0.1, 0.6, 0.4, -0.6]], f64),
    [{Name, ?_test(check_gradient(F, X))}
     || {Name, F} <-
            [{"sum", fun(T) -> tessera:window_sum(T, 2) end},
             {"sum with strides", fun(T) -> tessera:window_sum(T, {2, 3}, #{strides => {1, 2}, padding => [{1, 0}, {1, 2}]}) end},
             {"sum dilated", fun(T) -> tessera:window_sum(T, {2, 2}, #{dilation => {2, 3}, padding => [{1, 1}, {2, 1}]}) end},
             {"sum of less", fun(T) -> tessera:window_sum(T, {2, 1}, #{strides => 2, padding => [{-1, 0}, {-1, -1}]}) end},
             {"sum of none", fun(T) -> tessera:window_sum(T, {1, 9}) end},
             {"mean", fun(T) -> tessera:window_mean(T, 2, #{padding => same}) end},
             {"max", fun(T) -> tessera:window_max(T, 2, #{strides => 2, padding => same}) end},
             {"max that overlap", fun(T) -> tessera:window_max(T, {3, 2}, #{padding => same}) end},
             {"min", fun(T) -> tessera:window_min(T, {2, 2}) end},
             {"max dilated", fun(T) -> tessera:window_max(T, {2, 2}, #{dilation => {1, 2}, strides => {2, 1}, padding => [{1, 0}, {1, 2}]}) end},
             {"max of less", fun(T) -> tessera:window_max(T, {2, 2}, #{dilation => 2, padding => [{0, 1}, {-1, 1}]}) end},
             {"min dilated", fun(T) -> tessera:window_min(T, {2, 1}, #{dilation => {2, 3}}) end},
             {"max of none", fun(T) -> tessera:window_max(T, {2, 3}, #{dilation => 3}) end},
             {"product", fun(T) -> tessera:window_product(T, {2, 2}) end},
             {"product with zeros", fun(T) -> tessera:window_product(tessera:multiply(T, tessera:greater(T, 0.3)), {2, 2}) end},
             {"product dilated", fun(T) ->
                 tessera:window_product(T, {2, 3}, #{strides => {2, 1}, padding => [{1, 0}, {-1, 2}], dilation => {1, 2}})
             end},
             {"product of none", fun(T) -> tessera:window_product(T, {4, 1}) end},
             {"product twice", tessera:grad(fun(T) -> tessera:sum(tessera:window_product(T, {2, 2}, #{padding => same})) end)},
             {"reduce", fun(T) -> tessera:window_max(tessera:window_sum(T, {1, 2}), {2, 2}) end},
             {"scatter", fun(T) ->
                 Source = tessera:slice(T, [0, 0], [2, 2]),
                 tessera:window_scatter_max(tessera:stop_grad(T), Source, tessera:sum(T), {2, 2}, #{strides => {1, 2}})
             end},
             {"scatter min", fun(T) ->
                 tessera:window_scatter_min(tessera:stop_grad(T), T, 0, {2, 2}, #{padding => [{0, 1}, {1, 0}]})
             end}]].

%% The last of equal elements, and a NaN, as without dilation.
chosen_test_() ->
    Gradient = fun(Name, List, Options) ->
                       G = tessera:grad(fun(T) -> tessera:sum(tessera:Name(T, {2}, Options)) end),
                       tessera:to_list(G(t(List)))
               end,
    [?_assertEqual(Expected, Gradient(Name, List, Options))
     || {Expected, Name, List} <- [{[0.0, 0.0, 1.0], window_max, [1.0, 1.0, 1.0]}, {[1.0, 0.0, 0.0], window_max, [nan, 2.0, 3.0]},
                                   {[0.0, 0.0, 1.0], window_min, [1.0, 1.0, 1.0]}, {[0.0, 0.0, 1.0], window_min, [1.0, 2.0, nan]}],
        Options <- [#{dilation => 2}]] ++
    [?_assertEqual([0.0, 1.0, 1.0], Gradient(window_max, [1.0, 1.0, 1.0], #{}))].
