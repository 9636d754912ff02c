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

%% Each line of three of these elements.
lines(Elements) -> [[A, B, C] || A <- Elements, B <- Elements, C <- Elements].

%% f8_e4m3fn has no infinity.
special(f8_e4m3fn) -> [nan, 1.0, 2.0, -448.0, 448.0];
special(_) -> [nan, 1.0, 2.0, neg_infinity, infinity].

%% The elements of two tensors by turns along the last axis.
interleaved(A, B) ->
    {Rows, N} = tessera:shape(A),
    tessera:reshape(tessera:stack([A, B], 2), {Rows, 2 * N}).

%% A window selects the same element with dilation as without: every second element of a dilated window is a window of every second
%% element. Elements may equal the padding's value, or be NaN.
chosen_test_() ->
    [{lists:concat([Name, " ", Type]),
      ?_test(begin
                 X = tessera:tensor(lines(special(Type)), Type),
                 {Rows, 3} = tessera:shape(X),
                 C = tessera:as_type(tessera:broadcast(t([1, 2, 3, 4]), {Rows, 4}), Type),
                 Gradient = fun(Options, Weights) ->
                                    (tessera:grad(fun(T) -> tessera:sum(tessera:multiply(tessera:Name(T, {1, 2}, Options), Weights)) end))
                            end,
                 Plain = (Gradient(#{padding => [{0, 0}, {1, 1}]}, C))(X),
                 Wide = (Gradient(#{padding => [{0, 0}, {2, 2}], dilation => {1, 2}}, interleaved(C, tessera:zeros_like(C))))(
                          interleaved(X, tessera:zeros_like(X))),
                 ?assertEqual(tessera:to_list(interleaved(Plain, tessera:zeros_like(Plain))), tessera:to_list(Wide)),
                 %% each of the four windows has an element, so no weight is lost
                 ?assertEqual(lists:duplicate(Rows, 10.0), tessera:to_list(tessera:sum(Wide, #{axes => 1})))
             end)}
     || Name <- [window_max, window_min], Type <- [f64, f32, f16, f8_e4m3fn]] ++
    [?_assertEqual([0.0, 1.0, 1.0], tessera:to_list((tessera:grad(fun(T) -> tessera:sum(tessera:window_max(T, 2)) end))(t([1.0, 1.0, 1.0]))))] ++
    [?_assertEqual([0.0, 2.0, 1.0], tessera:to_list((tessera:grad(fun(T) -> tessera:sum(tessera:window_max(T, 2, #{dilation => 2, padding => [{1, 1}]})) end))(
                                                       tessera:tensor([1, 2, 3], f8_e4m3fn))))].

%% A scatter is linear in its source: the gradient of an element of the source is what the op makes of that element alone.
scatter_source_test_() ->
    [{lists:concat([Name, " ", Type]),
      ?_test(begin
                 X = tessera:tensor(lines(special(Type)), Type),
                 {Rows, 3} = tessera:shape(X),
                 C = tessera:as_type(tessera:broadcast(t([1, 2, 3]), {Rows, 3}), Type),
                 F = fun(Source) ->
                             Moved = tessera:Name(X, Source, 0, {1, 2}, #{padding => [{0, 0}, Padding]}),
                             tessera:sum(tessera:multiply(Moved, C), #{axes => 1})
                     end,
                 Windows = 2 + element(1, Padding) + element(2, Padding),
                 Zeros = tessera:zeros({Rows, Windows}, Type),
                 Alone = [F(tessera:put_slice(Zeros, [0, I], tessera:ones({Rows, 1}, Type))) || I <- lists:seq(0, Windows - 1)],
                 ?assertEqual(tessera:to_list(tessera:stack(Alone, 1)),
                              tessera:to_list((tessera:grad(fun(Source) -> tessera:sum(F(Source)) end))(Zeros)))
             end)}
     || Name <- [window_scatter_max, window_scatter_min], Type <- [f64, f16, f8_e4m3fn], Padding <- [{0, 0}, {1, 0}, {0, 1}, {2, 2}]].

%% An element that more windows select than bf16 counts to.
many_windows_test_() ->
    [?_assertEqual([300.0], tessera:to_list((tessera:grad(fun(T) -> tessera:sum(tessera:Name(T, 300, #{dilation => 2, padding => [{598, 598}], strides => 2})) end))(
                                               tessera:tensor([1.0], bf16))))
     || Name <- [window_max, window_min, window_product]].
