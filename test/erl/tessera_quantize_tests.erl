%% Quantised weights: how far they are from the matrix, products against products with the matrix, containers, files, gradients, errors,
%% StableHLO.
-module(tessera_quantize_tests).
-include_lib("eunit/include/eunit.hrl").

-define(FORMS, [scale, zero, minimum]).

matrix(K, N) ->
    {W, _} = tessera_random:normal(tessera_random:key(K * 1000 + N), #{shape => {K, N}}),
    W.

rows(Shape, Type) ->
    {X, _} = tessera_random:normal(tessera_random:key(7), #{shape => Shape}),
    tessera:as_type(X, Type).

weights(K, N) ->
    [tessera:quantize(matrix(K, N), #{bits => Bits, group => Group, form => Form, scales => Scales})
     || Form <- ?FORMS, {Bits, Group, Scales} <- [{4, 32, f32}, {8, 16, f16}, {4, 8, bf16}]].

%% A number is at most half a scale away. A zero or minimum of few digits moves the ends of a group.
error_is_half_a_scale_test_() ->
    [{lists:flatten(io_lib:format("~p", [Options])),
      fun() ->
              W = matrix(100, 70),
              Q = #{scales := S} = tessera:quantize(W, Options),
              Far = tessera:abs(tessera:subtract(W, tessera:dequantize(Q))),
              Most = tessera:to_number(tessera:reduce_max(tessera:abs(S))),
              ?assert(tessera:to_number(tessera:reduce_max(Far)) =< Most * 0.5001)
      end} || Options <- [#{}, #{bits => 8, form => minimum}, #{bits => 4, form => minimum}, #{bits => 8, form => zero},
                          #{bits => 8, group => 256, scales => f16}]].

%% Of 4 bits with a scale alone, numbers beyond 7 become 7.
four_bits_test() ->
    W = matrix(128, 65),
    Q = tessera:quantize(W, #{bits => 4}),
    Error = tessera:to_number(tessera:sqrt(tessera:mean(tessera:pow(tessera:subtract(W, tessera:dequantize(Q)), 2)))),
    ?assert(Error < 0.12).

%% The numbers of ggml's blocks of the same weights: d is the largest weight divided by -8 or by 127.
known_numbers_test() ->
    Column = [float(I - 11) || I <- lists:seq(0, 31)],
    #{words := Words, scales := Scales} = tessera:quantize(tessera:reshape(tessera:tensor(Column), {32, 1}), #{bits => 4}),
    Scale = tessera:to_number(tessera:slice(Scales, [0, 0, 0], [1, 1, 1])),
    ?assertEqual(20 / -8, Scale),
    Numbers = [N || Word <- lists:flatten(tessera:to_list(tessera:slice(Words, [0, 0, 0], [1, 4, 1]))), N <- lists:reverse([N || <<N:4>> <= <<Word:32>>])],
    ?assertEqual([min(15, max(0, round_even(X / Scale + 8))) || X <- Column], Numbers).

%% The error of a weight within the range of its form is at most half a scale, and the rounding of a narrow type.
weights_of_the_whole_range_test_() ->
    [{lists:flatten(io_lib:format("~0p of ~0p", [Options, Column])),
      fun() ->
              #{scales := Scales} = Q = of_column(Column, Options),
              Scale = tessera:to_number(tessera:slice(Scales, [0, 0, 0], [1, 1, 1])),
              [?assert(is_number(Y) andalso abs(Y - X) =< 0.501 * Scale + 0.005 * abs(X)) || {X, Y} <- lists:zip(Column, numbers(Q))]
      end}
     || {Options, Ends} <-
            [{#{bits => 4, form => minimum, scales => f16}, [{0.0, 1.0e5}, {0.0, 9.8e5}, {-65504.0, 9.1e5}, {-6.0e4, 0.0}]},
             {#{bits => 8, form => minimum, scales => f16}, [{0.0, 1.0e6}, {0.0, 1.67e7}, {-65504.0, 1.66e7}]},
             {#{bits => 4, form => zero, scales => f16}, [{0.0, 9.0e5}, {-9.8e5, 0.0}, {-1.0e5, 8.5e5}, {-4.9e5, 4.9e5}]},
             {#{bits => 8, form => zero, scales => f16}, [{0.0, 1.67e7}, {-1.67e7, 0.0}, {-8.0e6, 8.0e6}]} |
             [{#{bits => Bits, form => minimum, scales => Scales}, [{0.0, 3.0e38}, {0.0, 3.19e38}, {-3.19e38, 0.0}, {-1.0e38, 2.0e38}, {-1.5e38, 1.5e38}]}
              || Bits <- [4, 8], Scales <- [f32, bf16]]] ++
            [{#{bits => Bits, form => zero, scales => Scales}, [{0.0, 3.0e38}, {0.0, 3.19e38}, {-3.19e38, 0.0}, {-1.0e38, 3.0e38}, {-3.0e38, 3.0e38}]}
             || Bits <- [4, 8], Scales <- [f32, bf16]],
        {Low, High} <- Ends,
        Column <- [[Low, High, High / 2, Low / 2, 0.0, High / 3, Low / 3, High / 4]]].

%% A weight beyond the range of its form is the last one of it: of f16 scales are at most 65504, and minimums, too; f32 holds 3.2e38.
weights_beyond_the_range_test_() ->
    [{lists:flatten(io_lib:format("~0p of ~0p", [Options, Ends])),
      fun() ->
              Q = of_column([element(1, Ends), element(2, Ends), 0.0, 1.0, 2.0, 3.0, 1.0, 0.0], Options),
              [A, B | Others] = numbers(Q),
              [?assert(is_number(Y) andalso abs(Y - X) =< Part * max(abs(Low), abs(High))) || {X, Y} <- [{Low, A}, {High, B} | [{0.0, Y} || Y <- Others]]]
      end}
     || {Options, Part, All} <-
            [{#{bits => 8, scales => f16}, 0.01, [{both, -127 * 65504.0, 127 * 65504.0}]},
             {#{bits => 4, scales => f16}, 0.13, [{both, -8 * 65504.0, 8 * 65504.0}]},
             {#{bits => 8}, 0.01, [{both, -3.2e38, 3.2e38}]}, {#{bits => 4, scales => bf16}, 0.13, [{both, -3.2e38, 3.2e38}]},
             {#{bits => 8, form => zero, scales => f16}, 0.01,
              [{both, -127.5 * 65504, 127.5 * 65504}, {up, 0.0, 255 * 65504.0}, {down, -255 * 65504.0, 0.0}, {{1.0e6, up}, -1.0e6, 255 * 65504.0 - 1.0e6},
               {{1.0e6, down}, -255 * 65504.0 + 1.0e6, 1.0e6}]},
             {#{bits => 8, form => minimum, scales => f16}, 0.01,
              [{both, -65504.0, 254 * 65504.0}, {up, 0.0, 255 * 65504.0}, {down, -65504.0, 0.0}]},
             {#{bits => 8, form => zero}, 0.01, [{both, -3.2e38, 3.2e38}, {up, 0.0, 3.2e38}, {down, -3.2e38, 0.0}]},
             {#{bits => 4, form => zero, scales => bf16}, 0.14, [{both, -3.2e38, 3.2e38}, {up, 0.0, 3.2e38}, {down, -3.2e38, 0.0}]},
             {#{bits => 8, form => minimum}, 0.01,
              [{both, -1.6e38, 1.6e38}, {up, 0.0, 3.2e38}, {down, -3.2e38, 0.0}, {{1.0e38, up}, -1.0e38, 2.2e38}, {{1.0e38, down}, -2.2e38, 1.0e38}]},
             {#{bits => 4, form => minimum, scales => bf16}, 0.08, [{both, -1.6e38, 1.6e38}, {up, 0.0, 3.2e38}, {down, -3.2e38, 0.0}]}],
        {Sides, Low, High} <- All,
        Ends <- case Sides of
                    both -> [{-3.4e38, 3.4e38}, {neg_infinity, infinity}];
                    up -> [{0.0, 3.4e38}, {0.0, infinity}];
                    down -> [{-3.4e38, 0.0}, {neg_infinity, 0.0}];
                    {Other, up} -> [{-Other, 3.4e38}, {-Other, infinity}];
                    {Other, down} -> [{-3.4e38, Other}, {neg_infinity, Other}]
                end].

group_with_a_nan_test_() ->
    [?_assertEqual(lists:duplicate(8, nan), numbers(of_column([1.0, nan, 2.0, -1.0, 0.0, infinity, 1.0, 3.0], #{bits => Bits, form => Form, scales => Scales})))
     || Bits <- [4, 8], Form <- ?FORMS, Scales <- [f32, bf16, f16]].

of_column(Column, Options) ->
    tessera:quantize(tessera:reshape(tessera:tensor(Column, f32), {8, 1}), Options#{group => 8}).

numbers(Q) -> lists:flatten(tessera:to_list(tessera:dequantize(Q, f32))).

round_even(X) ->
    case floor(X) of
        N when X - N =:= 0.5, N rem 2 =:= 0 -> N;
        N when X - N =:= 0.5 -> N + 1;
        _ -> round(X)
    end.

%% Bytes and scales of columns, multiplied by ops: compiled, no matrix of floats is made, and the bits are those of the product with it.
bytes_and_scales_test_() ->
    [{lists:flatten(io_lib:format("~p rows, ~p times ~p", [Rows, Type, Bytes])),
      fun() ->
              X = rows({Rows, 700}, Type),
              Numbers = tessera:as_type(tessera:floor(tessera:multiply(tessera:abs(matrix(700, 130)), 30.0)), Bytes),
              Scales = tessera:as_type(tessera:reshape(matrix(1, 130), {130}), Type),
              Turned = tessera:transpose(Numbers),
              Weights = fun(Q) -> tessera:multiply(tessera:as_type(Q, Type), Scales) end,
              Product = fun(Row, Q) -> tessera:dot(Row, Weights(Q)) end,
              OfTurned = fun(Row, Q) -> tessera:dot(Row, Weights(tessera:transpose(Q))) end,
              Softmax = fun(Row, Q) -> tessera:softmax(tessera:dot(Row, Weights(Q))) end,
              Y = tessera:dot(X, Weights(Numbers)),
              ?assertEqual(tessera:to_binary(Y), tessera:to_binary((tessera:jit(Product))(X, Numbers))),
              ?assertEqual(tessera:to_binary(Y), tessera:to_binary((tessera:jit(OfTurned))(X, Turned))),
              ?assertEqual(tessera:to_binary(tessera:softmax(Y)), tessera:to_binary((tessera:jit(Softmax))(X, Numbers)))
      end} || Rows <- [1, 3], Type <- [f32, bf16, f16], Bytes <- [s8, u8]].

axis_test() ->
    W = matrix(40, 70),
    Options = #{bits => 4, group => 8},
    ?assertEqual(contents(tessera:quantize(W, Options)),
                 contents(tessera:quantize(tessera:transpose(W), Options#{axis => 1}))).

contents(Q) -> maps:map(fun(quantized, Text) -> Text;
                           (_, Tensor) -> tessera:to_binary(Tensor)
                        end, Q).

%% The same bits as the product with the matrix, for a vector, few rows, many rows and rows of rows.
product_test_() ->
    [{lists:flatten(io_lib:format("~p ~p", [Shape, Type])),
      fun() ->
              [?assertEqual(tessera:to_binary(tessera:dot(X, tessera:dequantize(Q, Type))), tessera:to_binary(tessera:dot(X, Q)))
               || X <- [rows(Shape, Type)], Q <- weights(200, 70)]
      end} || Shape <- [{200}, {1, 200}, {5, 200}, {2, 3, 200}, {40, 200}], Type <- [f32, bf16, f16]].

other_types_test() ->
    [Q | _] = weights(16, 5),
    W = tessera:dequantize(Q, f64),
    X = tessera:iota({3, 16}, s32),
    ?assertEqual(tessera:to_list(tessera:dot(tessera:as_type(X, f64), W)), tessera:to_list(tessera:dot(tessera:as_type(X, f64), Q))),
    ?assertEqual(f32, tessera:type(tessera:dot(X, Q))).

empty_test() ->
    Q = tessera:quantize(tessera:zeros({0, 3})),
    ?assertEqual([0.0, 0.0, 0.0], tessera:to_list(tessera:dot(tessera:zeros({0}), Q))),
    ?assertEqual({2, 0}, tessera:shape(tessera:dot(tessera:ones({2, 8}), tessera:quantize(tessera:zeros({8, 0}))))),
    ?assertEqual([[0.0], [0.0]], tessera:to_list(tessera:dequantize(tessera:quantize(tessera:zeros({2, 1}))))).

%% An argument, a result, and what a function captures.
container_test() ->
    X = rows({2, 64}, f32),
    W = matrix(64, 66),
    Quantize = tessera:jit(fun(M) -> tessera:quantize(M, #{bits => 4, form => minimum}) end),
    Q = Quantize(W),
    ?assertEqual(contents(tessera:quantize(W, #{bits => 4, form => minimum})), contents(Q)),
    Expected = tessera:to_binary(tessera:tanh(tessera:dot(X, Q))),
    Both = tessera:jit(fun(A, #{layer := Weight}) -> tessera:tanh(tessera:dot(A, Weight)) end),
    ?assertEqual(Expected, tessera:to_binary(Both(X, #{layer => Q}))),
    Captured = tessera:jit(fun(A) -> tessera:tanh(tessera:dot(A, Q)) end, #{threads => 1}),
    ?assertEqual(Expected, tessera:to_binary(Captured(X))).

file_test_() ->
    tessera_test:in_folder(fun(Folder) ->
                                   Path = filename:join(Folder, "weights.safetensors"),
                                   [Q | _] = weights(40, 5),
                                   ok = tessera_io:save(Path, #{layer => Q}),
                                   #{layer := Loaded} = tessera_io:load(Path),
                                   ?assertEqual(contents(Q), contents(Loaded))
                           end).

%% Of the rows, the scales, and the zeros or minimums.
gradient_test_() ->
    [{atom_to_list(Form),
      fun() ->
              Q = tessera:quantize(matrix(24, 3), #{bits => 4, group => 8, form => Form}),
              Floats = maps:with([scales, zeros, minimums], Q),
              C = tessera:tensor([[1.0, -2.0, 0.5], [0.25, 1.5, -1.0]]),
              F = fun({X, G}) -> tessera:sum(tessera:multiply(C, tessera:dot(X, maps:merge(Q, G)))) end,
              Plain = fun({X, G}) -> tessera:sum(tessera:multiply(C, tessera:dot(X, tessera:dequantize(maps:merge(Q, G))))) end,
              X = rows({2, 24}, f32),
              [close(A, B) || {A, B} <- lists:zip(gradients(F, X, Floats), gradients(Plain, X, Floats))]
      end} || Form <- ?FORMS].

%% The gradient of the matrix leaves the range of f16, that of the scales and minimums does not.
narrow_gradient_test_() ->
    [{atom_to_list(Form),
      fun() ->
              Q = tessera:quantize(matrix(24, 3), #{bits => 4, group => 8, form => Form}),
              F = fun({X, G}) -> tessera:sum(tessera:as_type(tessera:dot(X, maps:merge(Q, G)), f32)) end,
              Floats = maps:with([scales, zeros, minimums], Q),
              X = tessera:full({100, 24}, 1000, f16),
              [_ | Narrow] = gradients(F, X, Floats),
              [_ | Wide] = gradients(F, tessera:as_type(X, f32), Floats),
              [close(A, B) || {A, B} <- lists:zip(Wide, Narrow)]
      end} || Form <- ?FORMS].

gradients(F, X, Floats) ->
    {OfX, OfFloats} = (tessera:grad(F))({X, Floats}),
    [OfX | maps:values(OfFloats)].

close(A, B) -> ?assert(tessera:to_number(tessera:all_close(A, B, #{rtol => 1.0e-4, atol => 1.0e-4})) =:= 1).

%% The program of plain ops that StableHLO has gives the same numbers.
stablehlo_test_() ->
    [fun() ->
             [Q | _] = [tessera:quantize(matrix(24, 70), #{bits => Bits, group => 16, form => Form})],
             X = rows({2, 3, 24}, f32),
             F = fun(A, B) -> tessera:dot(A, B) end,
             Text = tessera:to_text(F, [X, Q], stablehlo),
             Parts = [Part || {_, Part} <- lists:sort(maps:to_list(maps:remove(quantized, Q)))],
             [Read] = (tessera_stablehlo:function(iolist_to_binary(Text)))([X | Parts]),
             close(F(X, Q), Read)
     end || Form <- ?FORMS, Bits <- [4, 8]].

errors_test_() ->
    W = matrix(16, 4),
    Q = tessera:quantize(W),
    [{binary_to_list(Expected), fun() -> tessera_test:raises(invalid_argument, binary_to_list(Expected), F) end}
     || {Expected, F} <-
            [{<<"bits is 5, expected 4 or 8">>, fun() -> tessera:quantize(W, #{bits => 5}) end},
             {<<"group is 12, expected a multiple of 8">>, fun() -> tessera:quantize(W, #{group => 12}) end},
             {<<"group is 0, expected a multiple of 8">>, fun() -> tessera:quantize(W, #{group => 0}) end},
             {<<"form is both, expected scale, zero or minimum">>, fun() -> tessera:quantize(W, #{form => both}) end},
             {<<"scales is f64, expected f32, bf16 or f16">>, fun() -> tessera:quantize(W, #{scales => f64}) end},
             {<<"expected a matrix of floats, got">>, fun() -> tessera:quantize(tessera:ones({4})) end},
             {<<"expected a matrix of floats, got">>, fun() -> tessera:quantize(tessera:ones({4, 4}, s8)) end},
             {<<"unknown options [block]">>, fun() -> tessera:quantize(W, #{block => 4}) end},
             {<<"expected a quantised weight of tessera:quantize, got">>, fun() -> tessera:dequantize(W) end},
             {<<"expected a quantised weight of tessera:quantize, got">>,
              fun() -> tessera:dequantize(Q#{words => tessera:ones({3})}) end},
             {<<"expected a quantised weight of tessera:quantize, got">>, fun() -> tessera:dequantize(Q#{quantized => <<"u4">>}) end},
             {<<"the type is s8, expected a float">>, fun() -> tessera:dequantize(Q, s8) end},
             {<<"the last axis of">>, fun() -> tessera:dot(tessera:ones({2, 15}), Q) end},
             {<<"the last axis of 3.0 has to be the first one of the quantised weight {16,4}">>, fun() -> tessera:dot(3.0, Q) end},
             {<<"expected a quantised weight of tessera:quantize, got">>, fun() -> tessera:dot(W, #{quantized => 3}) end}]].
