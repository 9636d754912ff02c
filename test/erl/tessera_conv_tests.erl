%% Convolution: against products written out by slices, in every layout and with groups; and its gradients.
-module(tessera_conv_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/2, near/3, check_gradient/2]).

data(Shape, Seed) -> tessera:sin(tessera:multiply(tessera:add(tessera:iota(Shape, f64), Seed), 1.7)).

%% Every place of a two-dimensional kernel is a slice of the padded operand times its weights.
by_slices(X, K, [{SH, SW}, [{L1, H1}, {L2, H2}], {D1, D2}]) ->
    P = tessera:pad(X, 0, [{0, 0, 0}, {L1, H1, 0}, {L2, H2, 0}, {0, 0, 0}]),
    {B, H, W, C} = tessera:shape(P),
    {KH, KW, C, F} = tessera:shape(K),
    OH = (H - (KH - 1) * D1 - 1) div SH + 1,
    OW = (W - (KW - 1) * D2 - 1) div SW + 1,
    Terms = [begin
                 Part = tessera:slice(P, [0, I * D1, J * D2, 0], [B, (OH - 1) * SH + 1, (OW - 1) * SW + 1, C], [1, SH, SW, 1]),
                 tessera:dot(Part, [3], tessera:reshape(tessera:slice(K, [I, J, 0, 0], [1, 1, C, F]), {C, F}), [0])
             end || I <- lists:seq(0, KH - 1), J <- lists:seq(0, KW - 1)],
    lists:foldl(fun tessera:add/2, hd(Terms), tl(Terms)).

values_test_() ->
    X = data({2, 6, 7, 3}, 1),
    K = data({3, 2, 3, 5}, 2),
    [?_test(near(tessera:to_list(by_slices(X, K, [S, P, D])),
                 tessera:to_list(tessera:conv(X, K, #{strides => S, padding => P, kernel_dilation => D}))))
     || S <- [{1, 1}, {2, 3}], P <- [[{0, 0}, {0, 0}], [{1, 2}, {0, 1}], [{-1, 1}, {2, -1}]], D <- [{1, 1}, {2, 3}]].

forms_test_() ->
    X = data({2, 6, 7, 4}, 1),
    K = data({3, 2, 4, 6}, 2),
    Plain = tessera:conv(X, K),
    Part = fun(T, Axis, From, Count) ->
                   Dims = tuple_to_list(tessera:shape(T)),
                   Starts = [case I of Axis -> From; _ -> 0 end || I <- lists:seq(0, 3)],
                   tessera:slice(T, Starts, [case I of Axis -> Count; _ -> D end || {I, D} <- lists:zip(lists:seq(0, 3), Dims)])
           end,
    Half = Part(K, 2, 0, 2),
    Same = fun(A, B) -> ?_assertEqual(tessera:to_list(A), tessera:to_list(B)) end,
    [Same(Plain, (tessera:jit(fun tessera:conv/2))(X, K)),
     Same(Plain, tessera:transpose(tessera:conv(tessera:transpose(X, [0, 3, 1, 2]), tessera:transpose(K, [3, 2, 0, 1]),
                                                #{layout => channels_first}), [0, 2, 3, 1])),
     Same(Plain, tessera:transpose(tessera:conv(tessera:transpose(X, [3, 1, 2, 0]), tessera:transpose(K, [2, 3, 1, 0]),
                                                #{layout => {[3, 0, 1, 2], [1, 0, 3, 2], [2, 0, 3, 1]}}), [2, 3, 1, 0])),
     Same(tessera:concatenate([tessera:conv(Part(X, 3, 0, 2), Part(Half, 3, 0, 3)), tessera:conv(Part(X, 3, 2, 2), Part(Half, 3, 3, 3))], 3),
          tessera:conv(X, Half, #{feature_groups => 2})),
     Same(tessera:concatenate([tessera:conv(Part(X, 0, 0, 1), Part(K, 3, 0, 3)), tessera:conv(Part(X, 0, 1, 1), Part(K, 3, 3, 3))], 3),
          tessera:conv(X, K, #{batch_groups => 2})),
     Same(tessera:conv(tessera:pad(X, 0, [{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 0}]), K), tessera:conv(X, K, #{input_dilation => {2, 3}})),
     ?_assertEqual({2, 3, 4, 6}, tessera:shape(tessera:conv(X, K, #{padding => same, strides => 2}))),
     ?_assertEqual(f32, tessera:type(tessera:conv(tessera:ones({1, 3, 1}, s32), tessera:ones({2, 1, 1}, u8)))),
     ?_assertEqual([[[3.0]]], tessera:to_list(tessera:conv(tessera:full({1, 3, 1}, 1, f16), tessera:full({3, 1, 1}, 1, bf16))))].

misuse_test_() ->
    X = data({2, 6, 4}, 1),
    K = data({3, 4, 6}, 2),
    [?_test(raises(invalid_argument, Words, F))
     || {Words, F} <-
            [{"expected an operand and a kernel of one rank, at least 2", fun() -> tessera:conv(X, tessera:ones({3, 4})) end},
             {"expected strides of 1 positive integers", fun() -> tessera:conv(X, K, #{strides => [1, 2]}) end},
             {"expected padding valid, same or a list of 1 {Low, High}", fun() -> tessera:conv(X, K, #{padding => [1]}) end},
             {"unknown options [stride]", fun() -> tessera:conv(X, K, #{stride => 1}) end},
             {"expected layout channels_last, channels_first or {Input, Kernel, Output} of the axes [0,1,2] each, got nchw",
              fun() -> tessera:conv(X, K, #{layout => nchw}) end},
             {"batch_groups to divide the batch of 2", fun() -> tessera:conv(X, K, #{batch_groups => 3}) end},
             {"the kernel has 4 channels, expected 2, those of a group", fun() -> tessera:conv(X, K, #{feature_groups => 2}) end}]].

%% Against central differences, of the operand and of the kernel.
gradients_test_() ->
    [{Name, {timeout, 60, ?_test(check_gradients(X, K, Options))}}
     || {Name, X, K, Options} <-
            [{"plain", {2, 4, 3}, {2, 3, 2}, #{}},
             {"same", {1, 4, 4, 2}, {3, 3, 2, 2}, #{padding => same}},
             {"strides", {2, 5, 6, 2}, {3, 2, 2, 2}, #{strides => {2, 3}, padding => [{1, 1}, {0, 1}]}},
             {"strides that leave elements out", {1, 7, 2}, {2, 2, 3}, #{strides => 3}},
             {"dilated", {1, 5, 6, 1}, {2, 2, 1, 2}, #{kernel_dilation => {2, 3}, padding => [{2, 1}, {1, 2}]}},
             {"dilated operand", {1, 3, 4, 2}, {2, 3, 2, 2}, #{input_dilation => {2, 3}, strides => {1, 2}, padding => same}},
             {"negative padding", {1, 6, 2}, {2, 2, 2}, #{padding => [{-1, -2}]}},
             {"groups", {2, 5, 4}, {2, 2, 6}, #{feature_groups => 2, padding => same}},
             {"depthwise", {2, 5, 4, 3}, {3, 2, 1, 3}, #{feature_groups => 3, padding => same, strides => {2, 1}}},
             {"depthwise, two features", {1, 5, 3}, {3, 1, 6}, #{feature_groups => 3, padding => same}},
             {"batch groups", {4, 4, 2}, {2, 2, 4}, #{batch_groups => 2}},
             {"channels first", {1, 2, 4, 3}, {3, 2, 2, 2}, #{layout => channels_first}},
             {"no spatial axes", {3, 4}, {4, 2}, #{}},
             {"nothing comes out", {1, 1, 2}, {3, 2, 2}, #{}}]].

check_gradients(XShape, KShape, Options) ->
    [X, K] = [data(XShape, 1), data(KShape, 2)],
    check_gradient(fun(A) -> tessera:conv(A, K, Options) end, X),
    check_gradient(fun(B) -> tessera:conv(X, B, Options) end, K).

%% The products of a depthwise kernel's gradient leave the range of f16, their sum does not. JAX has 0.001 and 0, too.
narrow_depthwise_test_() ->
    Gradient = fun(Value, C, Type) ->
                       {Positions} = tessera:shape(C),
                       X = tessera:full({1, Positions, 2}, Value, Type),
                       Weighed = fun(K) -> tessera:multiply(tessera:as_type(tessera:conv(X, K, #{feature_groups => 2}), f32), tessera:reshape(C, {1, Positions, 1})) end,
                       tessera:to_list(tessera:flatten((tessera:grad(fun(K) -> tessera:sum(Weighed(K)) end))(tessera:zeros({1, 1, 2}, Type))))
               end,
    Sign = tessera:subtract(1.0, tessera:multiply(2.0, tessera:remainder(tessera:iota({100}, f32), 2.0))),
    [?_test(near([1.0, 1.0], [1000 * G || G <- Gradient(1.0e-4, tessera:full({100000}, 1.0e-4), f16)], 1.0e-2)),
     ?_assertEqual([0.0, 0.0], Gradient(1000.0, tessera:multiply(Sign, 100.0), f16))].
