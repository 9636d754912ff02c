%% Ops and types of StableHLO that become several ops of Tessera: random bits, normalised batches, quantised numbers, tuples, tokens, map,
%% matrices by other triangles, complex order, bits of booleans, functions of chlo.
-module(tessera_stablehlo_ops_tests).
-include_lib("eunit/include/eunit.hrl").

%% A function of arguments of these types, which returns %r of the results' types.
program(Types, Results, Body) ->
    Params = [["%x", integer_to_list(I), ": ", T] || {I, T} <- lists:zip(lists:seq(1, length(Types)), Types)],
    Names = case Results of [_] -> ["%r"]; _ -> [["%r#", integer_to_list(I)] || I <- lists:seq(0, length(Results) - 1)] end,
    iolist_to_binary(["func.func @main(", lists:join(", ", Params), ") -> (", lists:join(", ", Results), ") {\n", Body,
                      "\n  return ", lists:join(", ", Names), " : ", lists:join(", ", Results), "\n}\n"]).

run(Types, Results, Body, Arguments) -> (tessera_stablehlo:function(program(Types, Results, Body)))(Arguments).

lists_of(Tensors) -> [tessera:to_list(T) || T <- Tensors].

near(Expected, Got, Tolerance) ->
    [?assertMatch({_, _, D} when D =< Tolerance, {X, Y, abs(X - Y) / (1 + abs(X))}) || {X, Y} <- lists:zip(lists:flatten(Expected), lists:flatten(Got))].

%% ---- random bits

%% State and bits that XLA's CPU computes.
random_test_() ->
    Key = 16#0123456789abcdef, All = 16#ffffffffffffffff,
    [{lists:flatten([Algorithm, " ", Type]), fun() ->
          S = ["tensor<", integer_to_list(length(State)), "xui64>"], T = ["tensor<", Shape, "x", Type, ">"],
          ?assertEqual([Next, Bits], lists_of(run([S], [S, T], ["  %r:2 = \"stablehlo.rng_bit_generator\"(%x1) <{rng_algorithm = #stablehlo<rng_algorithm ", Algorithm,
                                                               ">}> : (", S, ") -> (", S, ", ", T, ")"], [tessera:tensor(State, u64)])))
      end}
     || {Algorithm, Shape, Type, State, Next, Bits} <-
            [{"PHILOX", "5", "ui32", [Key, All], [Key, 1], [1105943027, 812877280, 1535849353, 2724394620, 1879495268]},
             {"DEFAULT", "3", "ui64", [Key, All, 7], [Key, 1, 8], [17293342034621550241, 12861849058137104743, 413423353789156831]},
             {"PHILOX", "4", "ui8", [Key, All], [Key, 0], [243, 224, 137, 124]},
             {"THREE_FRY", "3x3", "ui32", [Key, All], [Key, 5],
              [[188576916, 2862930057, 1973758215], [2901984476, 1798685940, 3554510355], [902882801, 2083461592, 3732519869]]},
             {"THREE_FRY", "2", "ui64", [Key, All], [Key, 1], [12463928418108273812, 7725297290937948297]},
             {"THREE_FRY", "0", "ui32", [Key, All], [Key, All], []}]].

random_refused_test_() ->
    [{Words, fun() -> tessera_test:raises(Code, Words, fun() ->
              run([S], [S, T], ["  %r:2 = stablehlo.rng_bit_generator %x1, algorithm = ", Algorithm, " : (", S, ") -> (", S, ", ", T, ")"], []) end) end}
     || {Code, Words, Algorithm, S, T} <-
            [{invalid_argument, "its state is u64[3], expected u64[2]", "THREE_FRY", "tensor<3xui64>", "tensor<2xui32>"},
             {invalid_argument, "its state is u32[4]", "PHILOX", "tensor<4xui32>", "tensor<2xui32>"},
             {invalid_argument, "expected DEFAULT, PHILOX or THREE_FRY", "MERSENNE", "tensor<2xui64>", "tensor<2xui32>"},
             {unimplemented, "random bits of u8 cannot be read", "PHILOX", "tensor<2xui64>", "tensor<2xi1>"}]].

%% ---- integers

%% An arithmetic shift repeats the highest bit, of unsigned numbers too. A logical shift fills with zeros.
shift_test_() ->
    [{lists:flatten([Name, " ", Type]), fun() ->
          T = ["tensor<6x", Type, ">"],
          ?assertEqual([Expected], lists_of(run([T, T], [T], ["  %r = stablehlo.shift_right_", Name, " %x1, %x2 : ", T],
                                                [tessera:tensor(Xs, Own), tessera:tensor([1, 3, 1, 0, 7, 15], Own)])))
      end}
     || {Name, Type, Own, Xs, Expected} <-
            [{"arithmetic", "ui8", u8, [128, 255, 100, 200, 128, 255], [192, 255, 50, 200, 255, 255]},
             {"arithmetic", "ui4", u4, [8, 15, 5, 9, 8, 7], [12, 15, 2, 9, 15, 0]},
             {"arithmetic", "ui64", u64, [1 bsl 63, (1 bsl 64) - 1, 100, 200, 1 bsl 63, 1 bsl 62], [3 bsl 62, (1 bsl 64) - 1, 50, 200, 16#ff00 bsl 48, 1 bsl 47]},
             {"arithmetic", "i8", s8, [-128, -1, 100, -56, -128, -1], [-64, -1, 50, -56, -1, -1]},
             {"logical", "i8", s8, [-128, -1, 100, -56, -128, -1], [64, 31, 50, -56, 1, 0]},
             {"logical", "ui8", u8, [128, 255, 100, 200, 128, 255], [64, 31, 50, 200, 1, 0]}]].

shift_refused_test_() ->
    [{Name, fun() -> tessera_test:raises(invalid_argument, "expected integers of one type", fun() ->
              run(["tensor<f32>", "tensor<f32>"], ["tensor<f32>"], ["  %r = stablehlo.shift_right_", Name, " %x1, %x2 : tensor<f32>"], []) end) end}
     || Name <- ["arithmetic", "logical"]].

%% ---- windows out of bounds

%% Windows of two elements, one at each index. A window that lies partly outside is dropped as a whole.
outside_test_() ->
    Body = fun(Region) ->
        ["  %r = \"stablehlo.scatter\"(%x1, %x2, %x3) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], ",
         "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    ", Region,
         "\n    stablehlo.return %c : tensor<f32>\n  }) : (tensor<5xf32>, tensor<4x1xi32>, tensor<4x2xf32>) -> tensor<5xf32>"]
    end,
    Types = ["tensor<5xf32>", "tensor<4x1xi32>", "tensor<4x2xf32>"],
    [{Region, fun() ->
          ?assertEqual([Expected], lists_of(run(Types, ["tensor<5xf32>"], Body(Region),
                                                [tessera:tensor([1.0, 1.0, 1.0, 1.0, 1.0]), tessera:tensor([[4], [-1], [3], [2147483647]], s32),
                                                 tessera:tensor([[10.0, 20.0], [30.0, 40.0], [5.0, 6.0], [70.0, 80.0]])])))
      end}
     || {Region, Expected} <- [{"%c = stablehlo.add %a, %b : tensor<f32>", [1.0, 1.0, 1.0, 6.0, 7.0]},
                               {"%c = stablehlo.maximum %a, %b : tensor<f32>", [1.0, 1.0, 1.0, 5.0, 6.0]}]].

long_window_test() ->
    Body = ["  %r = \"stablehlo.scatter\"(%x1, %x2, %x3) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], ",
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n",
            "    stablehlo.return %b : tensor<f32>\n  }) : (tensor<1xf32>, tensor<4x1xi32>, tensor<4x2xf32>) -> tensor<1xf32>"],
    tessera_test:raises(invalid_argument, "a window is longer than dim 0 of the operand",
                        fun() -> run(["tensor<1xf32>", "tensor<4x1xi32>", "tensor<4x2xf32>"], ["tensor<1xf32>"], Body, []) end).

%% An index that s64 does not have is beyond the end.
large_index_test() ->
    Body = ["  %r = \"stablehlo.gather\"(%x1, %x2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, ",
            "slice_sizes = array<i64: 2>}> : (tensor<5xf32>, tensor<3x1xui64>) -> tensor<3x2xf32>"],
    ?assertEqual([[[4.0, 5.0], [4.0, 5.0], [2.0, 3.0]]],
                 lists_of(run(["tensor<5xf32>", "tensor<3x1xui64>"], ["tensor<3x2xf32>"], Body,
                              [tessera:tensor([1.0, 2.0, 3.0, 4.0, 5.0]), tessera:tensor([[(1 bsl 64) - 1], [1 bsl 63], [1]], u64)]))).

%% ---- batches

norm(Name, Types, Results, Arguments) ->
    Names = lists:join(", ", ["%x" ++ integer_to_list(I) || I <- lists:seq(1, length(Types))]),
    Count = case Results of [_] -> ""; _ -> [":", integer_to_list(length(Results))] end,
    run(Types, Results, ["  %r", Count, " = \"stablehlo.batch_norm_", Name, "\"(", Names, ") {epsilon = 0.5 : f64, feature_index = 1 : i64} : (", lists:join(", ", Types),
                         ") -> (", lists:join(", ", Results), ")"], Arguments).

%% Means 2 and 4, variances 1 and 4. The gradient is that of the program of training.
norm_test() ->
    T = "tensor<2x2xf64>", V = "tensor<2xf64>",
    X = tessera:tensor([[1.0, 2.0], [3.0, 6.0]], f64), Scale = tessera:tensor([3.0, 5.0], f64), Offset = tessera:tensor([10.0, 20.0], f64),
    [Y, Mean, Variance] = norm("training", [T, V, V], [T, V, V], [X, Scale, Offset]),
    ?assertEqual([[2.0, 4.0], [1.0, 4.0]], lists_of([Mean, Variance])),
    A = 3 / math:sqrt(1.5), B = 10 / math:sqrt(4.5),
    near([[10 - A, 20 - B], [10 + A, 20 + B]], tessera:to_list(Y), 1.0e-14),
    ?assertEqual(lists_of([Y]), lists_of(norm("inference", [T, V, V, V, V], [T], [X, Scale, Offset, Mean, Variance]))),
    G = tessera:tensor([[1.0, -2.0], [0.5, 3.0]], f64),
    Loss = fun({U, S, O}) -> tessera:sum(tessera:multiply(G, hd(norm("training", [T, V, V], [T, V, V], [U, S, O])))) end,
    {DX, DScale, DOffset} = (tessera:grad(Loss))({X, Scale, Offset}),
    near(lists_of([DX, DScale, DOffset]), lists_of(norm("grad", [T, V, V, V, T], [T, V, V], [X, Scale, Mean, Variance, G])), 1.0e-13),
    tessera_test:raises(invalid_argument, "it has no dim 1", fun() -> norm("inference", [V, V, V, V, V], [V], []) end).

%% ---- quantised numbers

quantized(Storage, Scales) -> ["!quant.uniform<", Storage, ":f32", Scales, ">"].

%% Half to even, from the zero point, and no further than the integers' ends; back by the scale.
quantize_test_() ->
    [{lists:flatten(Storage), fun() ->
          N = integer_to_list(length(Numbers)), Q = ["tensor<", N, "x", quantized(Storage, Scales), ">"], I = ["tensor<", N, "x", Type, ">"], F = ["tensor<", N, "xf32>"],
          Quantize = ["  %q = stablehlo.uniform_quantize %x1 : (", F, ") -> ", Q, "\n"],
          ?assertEqual([Integers], lists_of(run([F], [I], [Quantize, "  %r = stablehlo.bitcast_convert %q : (", Q, ") -> ", I], [tessera:tensor(Numbers, f32)]))),
          ?assertEqual([Back], lists_of(run([F], [F], [Quantize, "  %r = stablehlo.uniform_dequantize %q : (", Q, ") -> ", F], [tessera:tensor(Numbers, f32)])))
      end}
     || {Storage, Scales, Type, Numbers, Integers, Back} <-
            [{"i8", ", 0.5:-20", "i8", [0.25, 0.75, -0.25, 100.0, -100.0], [-20, -18, -20, 127, -128], [0.0, 1.0, 0.0, 73.5, -54.0]},
             {"i8<-127:100>", ", 2.0", "i8", [1.0, 3.0, 500.0, -500.0], [0, 2, 100, -127], [0.0, 4.0, 200.0, -254.0]},
             {"u8", ", 0.25:128", "ui8", [0.0, 1.0, -100.0, 100.0], [128, 132, 0, 255], [0.0, 1.0, -32.0, 31.75]},
             {"i4", ", 1.0", "i4", [7.5, -9.0, 2.5], [7, -8, 2], [7.0, -8.0, 2.0]},
             {"i32", ", 0.5", "i32", [1.0, -3.0], [2, -6], [1.0, -3.0]},
             {"i8", ":0, {0.5:-20, 0.25, 2.0:3}", "i8", [1.0, 1.0, 1.0], [-18, 4, 4], [1.0, 1.0, 2.0]}]].

%% An op on quantised numbers is the op on the numbers, and its result the nearest integers. Of other scales than the results' too.
quantized_ops_test_() ->
    A = ["tensor<2x2x", quantized("i8", ", 0.5:-20"), ">"], B = ["tensor<2x2x", quantized("i8", ", 0.25:5"), ">"], C = ["tensor<2x2x", quantized("i32", ", 0.125"), ">"],
    I = "tensor<2x2xi8>", Wide = "tensor<2x2xi32>",
    X = tessera:tensor([[-20, -18], [-10, 0]], s8), Y = tessera:tensor([[5, 9], [-3, 25]], s8),
    %% the numbers [[0, 1], [5, 10]] and [[0, 1], [-2, 5]]
    Begin = ["  %a = stablehlo.bitcast_convert %x1 : (", I, ") -> ", A, "\n  %b = stablehlo.bitcast_convert %x2 : (", I, ") -> ", B, "\n"],
    Binary = fun(Op, To, Plain) -> [Begin, "  %c = ", Op, " : (", A, ", ", B, ") -> ", To, "\n  %r = stablehlo.bitcast_convert %c : (", To, ") -> ", Plain] end,
    [{Name, ?_assertEqual([Expected], lists_of(run([I, I], [Plain], Body, [X, Y])))}
     || {Name, Expected, Plain, Body} <-
            [{"add", [[-20, -16], [-14, 10]], I, Binary("\"stablehlo.add\"(%a, %b)", A, I)},
             {"multiply", [[5, 9], [-35, 127]], I, Binary("\"stablehlo.multiply\"(%a, %b)", B, I)},
             {"dot", [[-16, 40], [-160, 440]], Wide,
              Binary("stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]", C, Wide)},
             {"transpose", [[-20, -10], [-18, 0]], I,
              [Begin, "  %c = stablehlo.transpose %a, dims = [1, 0] : (", A, ") -> ", A, "\n  %r = stablehlo.bitcast_convert %c : (", A, ") -> ", I]},
             {"other scales", [[5, 9], [25, 45]], I,
              [Begin, "  %c = stablehlo.uniform_quantize %a : (", A, ") -> ", B, "\n  %r = stablehlo.bitcast_convert %c : (", B, ") -> ", I]},
             {"in a loop", [[-20, -17], [-5, 10]], I,
              [Begin, "  %n = stablehlo.constant dense<0> : tensor<i32>\n  %one = stablehlo.constant dense<1> : tensor<i32>\n"
               "  %w:2 = stablehlo.while(%i = %n, %s = %a) : tensor<i32>, ", A, "\n  cond {\n    %t = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
               "    stablehlo.return %t : tensor<i1>\n  } do {\n    %j = stablehlo.add %i, %one : tensor<i32>\n    %d = stablehlo.uniform_dequantize %s : (", A, ") -> tensor<2x2xf32>\n"
               "    %h = stablehlo.constant dense<1.5> : tensor<2x2xf32>\n    %m = stablehlo.multiply %d, %h : tensor<2x2xf32>\n    %u = stablehlo.uniform_quantize %m : (tensor<2x2xf32>) -> ", A,
               "\n    stablehlo.return %j, %u : tensor<i32>, ", A, "\n  }\n  %r = stablehlo.bitcast_convert %w#1 : (", A, ") -> ", I]}]].

%% Scales of each column: numbers that come to another column get its scale.
quantized_columns_test_() ->
    Type = fun(Shape, Axis) -> ["tensor<", Shape, "x", quantized("i8", [":", Axis, ", {0.5:0, 0.125:3}"]), ">"] end,
    A = Type("2x2", "1"), F = "tensor<2x2xf32>",
    [{Name, ?_assertEqual([Expected], lists_of(run([F], [["tensor<", Shape, "xf32>"]],
                                                   ["  %q = stablehlo.uniform_quantize %x1 : (", F, ") -> ", A, "\n  %y = ", Op, "\n  %r = stablehlo.uniform_dequantize %y : (", To,
                                                    ") -> tensor<", Shape, "xf32>"], [tessera:tensor([[1.0, 2.0], [3.0, 4.0]])])))}
     || {Name, Expected, Shape, To, Op} <-
            [{"columns turned", [[2.0, 1.0], [4.0, 3.0]], "2x2", A, ["stablehlo.reverse %q, dims = [1] : ", A]},
             {"rows turned", [[3.0, 4.0], [1.0, 2.0]], "2x2", A, ["stablehlo.reverse %q, dims = [0] : ", A]},
             {"columns become rows", [[1.0, 3.0], [2.0, 4.0]], "2x2", Type("2x2", "0"), ["stablehlo.transpose %q, dims = [1, 0] : (", A, ") -> ", Type("2x2", "0")]},
             {"columns of the transpose", [[1.0, 3.0], [2.0, 4.0]], "2x2", A, ["stablehlo.transpose %q, dims = [1, 0] : (", A, ") -> ", A]},
             {"a dim more", [[[1.0, 2.0]], [[3.0, 4.0]]], "2x1x2", Type("2x1x2", "2"), ["stablehlo.reshape %q : (", A, ") -> ", Type("2x1x2", "2")]},
             {"another dim", [[[1.0, 2.0]], [[3.0, 4.0]]], "2x1x2", Type("2x1x2", "0"), ["stablehlo.reshape %q : (", A, ") -> ", Type("2x1x2", "0")]},
             {"broadcast", [[[1.0, 2.0], [3.0, 4.0]]], "1x2x2", Type("1x2x2", "2"),
              ["stablehlo.broadcast_in_dim %q, dims = [1, 2] : (", A, ") -> ", Type("1x2x2", "2")]},
             {"broadcast, by rows", [[[1.0, 2.0], [3.0, 4.0]]], "1x2x2", Type("1x2x2", "1"),
              ["stablehlo.broadcast_in_dim %q, dims = [1, 2] : (", A, ") -> ", Type("1x2x2", "1")]}]].

quantized_refused_test_() ->
    [{Words, fun() -> tessera_test:raises(Code, Words, fun() ->
              run(["tensor<2xf32>"], ["tensor<2xf32>"], ["  %q = stablehlo.uniform_quantize %x1 : (tensor<2xf32>) -> tensor<2x!quant.uniform<", Type, ">>\n  ", Then], []) end) end}
     || {Code, Words, Type, Then} <-
            [{invalid_argument, "expected a scale", "i8:f32, 0.0", ""},
             {invalid_argument, "expected a scale", "i8:f32, -1.0", ""},
             {invalid_argument, "a zero point is no integer of the type", "i8:f32, 1.0:128", ""},
             {invalid_argument, "it has 3 scales, expected 2", "i8:f32:0, {1.0, 1.0, 1.0}", ""},
             {invalid_argument, "it has no dim 1", "i8:f32:1, {1.0, 1.0}", ""},
             {invalid_argument, "expected a range of integers", "i8<3:2>:f32, 1.0", ""},
             {unimplemented, "integers of at most 32 bits", "i64:f32, 1.0", ""},
             {unimplemented, "scales of blocks", "i8:f32:{0:1}, {1.0}", ""},
             {invalid_argument, "neither its operand nor its result", "i8:f32, 1.0", "%r = stablehlo.uniform_dequantize %x1 : (tensor<2xf32>) -> tensor<2xf32>"},
             {invalid_argument, "its result has no quantised numbers", "i8:f32, 1.0",
              "%r = stablehlo.uniform_quantize %q : (tensor<2x!quant.uniform<i8:f32, 1.0>>) -> tensor<2xf32>"},
             {invalid_argument, "neither its operand nor its result", "i8:f32, 1.0", "%r = stablehlo.uniform_quantize %x1 : (tensor<2xf32>) -> tensor<2xf32>"},
             {unimplemented, "sort: of quantised numbers cannot be read", "i8:f32, 1.0",
              "%r = \"stablehlo.sort\"(%q) ({\n  ^bb0(%a: tensor<!quant.uniform<i8:f32, 1.0>>, %b: tensor<!quant.uniform<i8:f32, 1.0>>):\n"
              "    stablehlo.return %a : tensor<!quant.uniform<i8:f32, 1.0>>\n  }) : (tensor<2x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x!quant.uniform<i8:f32, 1.0>>"}]].

%% ---- sorts

%% Comparators of sorts that Tessera printed before it printed JAX's form.
earlier_sort_test_() ->
    [{Direction, ?_assertEqual([Sorted], lists_of(run(["tensor<4xf32>"], ["tensor<4xf32>"], [
        "  %r = \"stablehlo.sort\"(%x1) <{dimension = 0 : i64, is_stable = true}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n",
        "    %0 = stablehlo.compare ", Direction, ", %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n",
        "    %1 = stablehlo.compare EQ, ", Number, ", ", Number, " : (tensor<f32>, tensor<f32>) -> tensor<i1>\n",
        "    %2 = stablehlo.compare NE, ", Nan, ", ", Nan, " : (tensor<f32>, tensor<f32>) -> tensor<i1>\n",
        "    %3 = stablehlo.and %1, %2 : tensor<i1>\n    %4 = stablehlo.or %0, %3 : tensor<i1>\n    stablehlo.return %4 : tensor<i1>\n",
        "  }) : (tensor<4xf32>) -> tensor<4xf32>"], [tessera:tensor([nan, 1.0, -2.0, infinity])])))}
     || {Direction, Number, Nan, Sorted} <- [{"LT", "%a", "%b", [-2.0, 1.0, infinity, nan]}, {"GT", "%b", "%a", [nan, infinity, 1.0, -2.0]}]].

%% ---- tuples, tokens, map

tuple_test() ->
    F = "tensor<2xf32>", Inner = "tuple<tensor<2xf32>>", T = ["tuple<", Inner, ", tensor<2xf32>, tuple<>>"],
    Body = ["  %e = \"stablehlo.tuple\"() : () -> tuple<>\n  %i = stablehlo.tuple %x1 : ", Inner, "\n  %t = stablehlo.tuple %i, %x2, %e : ", T,
            "\n  %a = stablehlo.get_tuple_element %t[1] : (", T, ") -> ", F, "\n  %b = stablehlo.get_tuple_element %t[0] : (", T, ") -> ", Inner,
            "\n  %c = \"stablehlo.get_tuple_element\"(%b) {index = 0 : i32} : (", Inner, ") -> ", F, "\n  %r = stablehlo.subtract %a, %c : ", F],
    ?assertEqual([[2.0, 3.0]], lists_of(run([F, F], [F], Body, [tessera:tensor([1.0, 2.0]), tessera:tensor([3.0, 5.0])]))),
    Refused = fun(Code, Words, Last) -> tessera_test:raises(Code, Words, fun() -> run([F, F], [F], ["  %t = stablehlo.tuple %x1 : ", Inner, "\n  ", Last], []) end) end,
    Refused(invalid_argument, "no such part", ["%r = stablehlo.get_tuple_element %t[1] : (", Inner, ") -> ", F]),
    Refused(invalid_argument, "no such part", ["%r = stablehlo.get_tuple_element %x1[0] : (", F, ") -> ", F]),
    Refused(invalid_argument, "one of them is a tuple", ["%r = stablehlo.get_tuple_element %t[0] : (", Inner, ") -> ", Inner]),
    Refused(unimplemented, "operand 0 is a tuple", ["%r = stablehlo.add %t, %t : ", F]),
    Refused(invalid_argument, "a tuple of the operands", ["%r = stablehlo.tuple %x1, %x2 : ", Inner]),
    tessera_test:raises(unimplemented, "is no tensor that Tessera has", fun() -> run([Inner], [F], "  %r = stablehlo.get_tuple_element %x1[0] : (tuple<tensor<2xf32>>) -> tensor<2xf32>", []) end),
    tessera_test:raises(invalid_argument, "nested too deep", fun() -> tessera_stablehlo:function(iolist_to_binary(["func.func @main(%x: ", lists:duplicate(1000, "tuple<")])) end).

token_test() ->
    F = "tensor<2xf32>",
    ?assertEqual([[2.0, 4.0]], lists_of(run([F], [F], "  %t = stablehlo.after_all : !stablehlo.token\n  %u = \"stablehlo.after_all\"(%t, %t) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token\n"
                                                      "  %r = stablehlo.add %x1, %x1 : tensor<2xf32>", [tessera:tensor([1.0, 2.0])]))).

%% A program's own tokens are tensors without elements.
token_argument_test() ->
    Token = "!stablehlo.token",
    Order = fun(Result) -> ["  %r = stablehlo.after_all %x1, %x1 : ", Result, "\n"] end,
    [Out] = run([Token], [Token], Order(Token), [tessera:broadcast(tessera:tensor(0, u8), {0})]),
    ?assertEqual({u8, {0}}, {tessera:type(Out), tessera:shape(Out)}),
    tessera_test:raises(invalid_argument, "expected a token as result 0", fun() -> run([Token], ["tensor<f32>"], Order("tensor<f32>"), []) end).

map_test() ->
    T = "tensor<2x2xf32>",
    Map = fun(Region) -> run([T, T], [T], ["  %c = stablehlo.constant dense<10.0> : tensor<f32>\n  %r = \"stablehlo.map\"(%x1, %x2) (", Region,
                                           ") {dimensions = array<i64: 0, 1>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>"],
                             [tessera:tensor([[1.0, 2.0], [3.0, 4.0]]), tessera:tensor([[5.0, 6.0], [7.0, 8.0]])]) end,
    ?assertEqual([[[15.0, 22.0], [31.0, 42.0]]],
                 lists_of(Map("{\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %m = stablehlo.multiply %a, %b : tensor<f32>\n    %s = stablehlo.add %m, %c : tensor<f32>\n"
                              "    stablehlo.return %s : tensor<f32>\n  }"))),
    tessera_test:raises(invalid_argument, "takes other than 2 numbers", fun() -> Map("{\n  ^bb0(%a: tensor<f32>):\n    stablehlo.return %a : tensor<f32>\n  }") end).

%% ---- numbers and matrices

%% JAX broadcasts the initial value of a window, to no dims. As long as its axis, the window is a scan, and not a sum for each element.
scan_test() ->
    T = "tensor<2000xf32>", X = tessera:multiply(tessera:iota({2000}, f32), 0.1),
    [Got] = run([T], [T], ["  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
                           "  %z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<f32>\n"
                           "  %r = \"stablehlo.reduce_window\"(%x1, %z) <{padding = dense<[[1999, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 2000>}> ({\n"
                           "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %s = stablehlo.add %a, %b : tensor<f32>\n"
                           "    stablehlo.return %s : tensor<f32>\n  }) : (", T, ", tensor<f32>) -> ", T], [X]),
    ?assertEqual(tessera:to_binary(tessera:cumulative_sum(X)), tessera:to_binary(Got)).

%% By the real part, then by the imaginary one.
complex_order_test() ->
    C = "tensor<3xcomplex<f32>>",
    X = tessera:complex(tessera:tensor([1.0, 1.0, 2.0]), tessera:tensor([5.0, 1.0, 0.0])), Y = tessera:complex(tessera:tensor([0.0, 1.0, 3.0]), tessera:tensor([9.0, 2.0, 0.0])),
    ?assertEqual([[{complex, 1.0, 5.0}, {complex, 1.0, 2.0}, {complex, 3.0, 0.0}]], lists_of(run([C, C], [C], "  %r = stablehlo.maximum %x1, %x2 : tensor<3xcomplex<f32>>", [X, Y]))),
    ?assertEqual([[{complex, 0.0, 9.0}, {complex, 1.0, 1.0}, {complex, 2.0, 0.0}]], lists_of(run([C, C], [C], "  %r = stablehlo.minimum %x1, %x2 : tensor<3xcomplex<f32>>", [X, Y]))),
    %% tan(atan2(y, x)) is y / x
    [Angle] = run([C, C], [C], "  %r = stablehlo.atan2 %x1, %x2 : tensor<3xcomplex<f32>>", [X, Y]),
    Error = tessera:abs(tessera:subtract(tessera:divide(X, Y), tessera:divide(tessera:sin(Angle), tessera:cos(Angle)))),
    ?assert(tessera:to_number(tessera:reduce_max(Error)) < 1.0e-5),
    R = "tensor<2xf32>",
    ?assertEqual([[3.0, 4.0]], lists_of(run([R], [R], "  %r = stablehlo.real %x1 : tensor<2xf32>", [tessera:tensor([3.0, 4.0])]))),
    ?assertEqual([[0.0, 0.0]], lists_of(run([R], [R], "  %r = stablehlo.imag %x1 : tensor<2xf32>", [tessera:tensor([3.0, 4.0])]))).

boolean_bits_test() ->
    Bits = [1, 0, 1, 0, 0, 0, 0, 1],
    ?assertEqual([133], lists_of(run(["tensor<8xi1>"], ["tensor<ui8>"], "  %r = stablehlo.bitcast_convert %x1 : (tensor<8xi1>) -> tensor<ui8>", [tessera:tensor(Bits, u8)]))),
    ?assertEqual([Bits], lists_of(run(["tensor<ui8>"], ["tensor<8xi1>"], "  %r = stablehlo.bitcast_convert %x1 : (tensor<ui8>) -> tensor<8xi1>", [tessera:tensor(133, u8)]))),
    ?assertEqual([[1, 0]], lists_of(run(["tensor<2xi1>"], ["tensor<2xi1>"], "  %r = stablehlo.bitcast_convert %x1 : (tensor<2xi1>) -> tensor<2xi1>", [tessera:tensor([1, 0], u8)]))).

%% Sums of products of booleans say whether any product is true, as JAX computes them, also where as many are true as u8 has numbers. An
%% operand that is a number is true where it is not 0.
boolean_products_test_() ->
    Ones = fun(Shape, Type) -> tessera:broadcast(tessera:tensor(1, Type), Shape) end,
    Dot = " = stablehlo.dot_general %x1, %x2, contracting_dims = [1] x [0]",
    Conv = " = stablehlo.convolution(%x1, %x2) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}",
    [{Name, fun() ->
          [X, Y, R] = [["tensor<", T, ">"] || T <- Types],
          ?assertEqual([Expected], lists_of(run([X, Y], [R], ["  %r", Op, " : (", X, ", ", Y, ") -> ", R], Args)))
      end}
     || {Name, Expected, Op, Types, Args} <-
            [{"a product", [[1, 0], [0, 1]], Dot, ["2x3xi1", "3x2xi1", "2x2xi1"], [tessera:tensor([[1, 1, 0], [0, 0, 1]], u8), tessera:tensor([[1, 0], [1, 0], [0, 1]], u8)]},
             {"256 terms", [[1]], Dot, ["1x256xi1", "256x1xi1", "1x1xi1"], [Ones({1, 256}, u8), Ones({256, 1}, u8)]},
             {"no terms", [[0]], Dot, ["1x0xi1", "0x1xi1", "1x1xi1"], [Ones({1, 0}, u8), Ones({0, 1}, u8)]},
             {"an older product", 1, " = stablehlo.dot %x1, %x2", ["256xi1", "256xi1", "i1"], [Ones({256}, u8), Ones({256}, u8)]},
             {"of numbers", [[1]], Dot, ["1x2xf32", "2x1xi32", "1x1xi1"], [tessera:tensor([[0.5, 0.0]]), tessera:tensor([[256], [0]], s32)]},
             {"a count", [[256]], Dot, ["1x256xi1", "256x1xi1", "1x1xi32"], [Ones({1, 256}, u8), Ones({256, 1}, u8)]},
             {"a convolution", [[[1, 1, 1]]], Conv, ["1x2x4xi1", "1x2x2xi1", "1x1x3xi1"], [tessera:tensor([[[0, 1, 1, 1], [0, 0, 0, 1]]], u8), Ones({1, 2, 2}, u8)]},
             {"256 channels", [[[1]]], Conv, ["1x256x1xi1", "1x256x1xi1", "1x1x1xi1"], [Ones({1, 256, 1}, u8), Ones({1, 256, 1}, u8)]}]].

%% The gradients of maxima and minima of windows that XLA's CPU computes: of equal elements the first, and what follows a NaN replaces it.
select_and_scatter_test_() ->
    Region = fun(Op, Result) -> ["{\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %c = stablehlo.", Op, "\n    stablehlo.return %c : ", Result, "\n  }"] end,
    Dims = fun(Shape) -> ["tensor<", [[integer_to_list(N), "x"] || N <- tuple_to_list(Shape)], "f32>"] end,
    [{lists:flatten([Direction, io_lib:format(" ~p", [X])]), fun() ->
          [Operand, Source] = Args = [tessera:tensor(X), tessera:tensor(Ct)], [T, S] = [Dims(tessera:shape(A)) || A <- Args],
          Rank = integer_to_list(tuple_size(tessera:shape(Operand))),
          ?assertEqual([Expected],
                       lists_of(run([T, S], [T], ["  %z = stablehlo.constant dense<0.0> : tensor<f32>\n  %r = \"stablehlo.select_and_scatter\"(%x1, %x2, %z) <{padding = dense<", Pad,
                                                  "> : tensor<", Rank, "x2xi64>, window_dimensions = array<i64: ", Size, ">, window_strides = array<i64: ", Stride, ">}> (",
                                                  Region(["compare ", Direction, ", %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>"], "tensor<i1>"), ", ",
                                                  Region("add %a, %b : tensor<f32>", "tensor<f32>"),
                                                  ") : (", T, ", ", S, ", tensor<f32>) -> ", T], [Operand, Source])))
      end}
     || {Expected, Direction, X, Ct, Size, Stride, Pad} <-
            [{[0.0, 1.0], "GE", [2.0, nan], [1.0], "2", "2", "[[0, 0]]"},
             {[0.0, 0.0, 1.0], "GE", [1.0, nan, 2.0], [1.0], "3", "3", "[[0, 0]]"},
             {[1.0, 10.0], "GE", [nan, 2.0], [1.0, 10.0], "2", "2", "[[1, 1]]"},
             {[0.0, 1.0, 0.0, 0.0], "LE", [nan, -2.0, -1.0, -2.0], [1.0], "4", "1", "[[0, 0]]"},
             {[0.0, 0.0, 1.0, 1110.0, 0.0, 0.0], "GE", [3.0, 3.0, nan, 2.0, 2.0, 1.0], [1.0, 10.0, 100.0, 1000.0], "3", "1", "[[0, 0]]"},
             {[[1.0, 0.0, 0.0], [0.0, 0.0, 1010.0], [100.0, 0.0, 0.0]], "GE", [[1.0, 1.0, nan], [1.0, 0.0, 2.0], [2.0, 2.0, 2.0]],
              [[1.0, 10.0], [100.0, 1000.0]], "2, 2", "1, 1", "[[0, 0], [0, 0]]"},
             {[[1.0, 0.0, 10.0], [0.0, 0.0, 1000.0], [100.0, 0.0, 0.0]], "GE", [[1.0, 1.0, 5.0], [1.0, 0.0, 2.0], [2.0, 2.0, 2.0]],
              [[1.0, 10.0], [100.0, 1000.0]], "2, 2", "1, 1", "[[0, 0], [0, 0]]"},
             %% No windows, since the dim is shorter than one.
             {[0.0], "GE", [2.0], [], "2", "2", "[[0, 0]]"},
             {[0.0, 0.0], "LE", [2.0, 1.0], [], "5", "3", "[[1, 1]]"},
             {[[0.0], [0.0]], "GE", [[2.0], [1.0]], [[], []], "1, 3", "1, 2", "[[0, 0], [0, 1]]"}]].

%% f8E4M3FN has no infinity to compare with.
is_finite_test_() ->
    [{Type, ?_assertEqual([Expected],
                          lists_of(run(["tensor<5x" ++ Type ++ ">"], ["tensor<5xi1>"],
                                       ["  %r = stablehlo.is_finite %x1 : (tensor<5x", Type, ">) -> tensor<5xi1>"],
                                       [tessera:tensor([-1.5, 0.0, infinity, nan, neg_infinity], Own)])))}
     || {Type, Own} <- [{"f8E4M3FN", f8_e4m3fn}, {"f8E5M2", f8}, {"f16", f16}, {"bf16", bf16}, {"f32", f32}, {"f64", f64}],
        Expected <- [[1, 1, 0, 0, 0]]].

%% Any op of two numbers in the pretty form, also with a first value and without dims.
applies_test_() ->
    [{lists:flatten([Op, " ", Type]), fun() ->
          ?assertEqual([Expected],
                       lists_of(run(["tensor<2x3x" ++ Type ++ ">"], ["tensor<" ++ To ++ Type ++ ">"],
                                    ["  %c = stablehlo.constant dense<", Init, "> : tensor<", Type, ">\n  %r = stablehlo.reduce(%x1 init: %c) applies stablehlo.", Op,
                                     " across dimensions = [", Dims, "] : (tensor<2x3x", Type, ">, tensor<", Type, ">) -> tensor<", To, Type, ">"], [tessera:tensor(X, Own)])))
      end}
     || {Expected, Op, Type, Own, Dims, To, Init, X} <-
            [{[9, 5, 19], "xor", "i32", s32, "0", "3x", "0", [[12, 6, -7], [5, 3, -22]]}, {25, "xor", "i32", s32, "0, 1", "", "6", [[12, 6, -7], [5, 3, -22]]},
             {[13, 7, -5], "or", "i32", s32, "0", "3x", "0", [[12, 6, -7], [5, 3, -22]]}, {[4, 2, -24], "and", "i32", s32, "0", "3x", "-1", [[12, 6, -7], [5, 3, -22]]},
             {[250, 204], "xor", "ui8", u8, "1", "2x", "0", [[255, 3, 6], [200, 0, 4]]}, {[1, 0, 0], "xor", "i1", u8, "0", "3x", "false", [[1, 1, 0], [0, 1, 0]]},
             {0, "xor", "i1", u8, "0, 1", "", "true", [[1, 1, 0], [0, 1, 0]]}, {[[8, 2, 3], [1, 7, 0]], "xor", "i8", s8, "", "2x3x", "4", [[12, 6, 7], [5, 3, 4]]},
             {[[3, 9, 2], [1, 3, 1]], "maximum", "i8", s8, "", "2x3x", "1", [[3, 9, 2], [-1, 3, 1]]}]].

applies_refused_test() ->
    tessera_test:raises(unimplemented, "stablehlo.none: Tessera has no such op", fun() ->
        run(["tensor<2xf32>"], ["tensor<f32>"], ["  %c = stablehlo.constant dense<0.0> : tensor<f32>\n  %r = stablehlo.reduce(%x1 init: %c) applies stablehlo.none ",
                                                 "across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>"], []) end).

%% Targets that JAX writes for symbolic sizes. The reducer is a function: its names are its own.
dynamic_targets_test() ->
    T = "tensor<?xf32>", I = "tensor<?xi32>",
    ?assertEqual([[5.0, 4.0, 1.0], [1, 2, 0]],
                 lists_of(run([T], [T, I], ["  %n = stablehlo.get_dimension_size %x1, dim = 0 : (", T, ") -> tensor<i32>\n",
                                            "  %r:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x1, %n) {api_version = 2 : i32} : (", T, ", tensor<i32>) -> (", T, ", ", I, ")"],
                              [tessera:tensor([1.0, 5.0, 4.0])]))),
    Main = program([T], [T], ["  %i = stablehlo.constant dense<0x7F800000> : tensor<f32>\n  %1 = stablehlo.constant dense<1> : tensor<1xi32>\n",
                              "  %0 = stablehlo.constant dense<2> : tensor<1xi32>\n  %2 = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi32>\n",
                              "  %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x1, %i, %0, %1, %1, %1, %2) {api_version = 2 : i32, called_computations = [@f]} : (", T,
                              ", tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>) -> ", T]),
    Reducer = "func.func private @f(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.minimum %a, %b : tensor<f32>\n"
              "  %1 = stablehlo.maximum %0, %0 : tensor<f32>\n  return %1 : tensor<f32>\n}\n",
    ?assertEqual([[3.0, 1.0, 1.0, 2.0]], lists_of((tessera_stablehlo:function(iolist_to_binary([Main, Reducer])))([tessera:tensor([3.0, 1.0, 2.0, 4.0])]))).

%% A transform to no numbers, which JAX writes for irfft of length 0.
empty_fft_test() ->
    Z = "tensor<2x1xcomplex<f32>>",
    ?assertEqual([[[], []]], lists_of(run([Z], ["tensor<2x0xf32>"], ["  %r = stablehlo.fft %x1, type = IRFFT, length = [0] : (", Z, ") -> tensor<2x0xf32>"],
                                          [tessera:complex(tessera:tensor([[1.0], [2.0]]), tessera:tensor([[0.0], [0.0]]))]))).

%% U of U* U, and systems of adjoints.
triangles_test() ->
    C = "tensor<2x2xcomplex<f64>>",
    Complex = fun(Re, Im) -> tessera:complex(tessera:tensor(Re, f64), tessera:tensor(Im, f64)) end,
    U = Complex([[2.0, 1.0], [0.0, 3.0]], [[0.0, -1.0], [0.0, 0.0]]),
    Adjoint = tessera:conjugate(tessera:transpose(U)),
    Matrix = tessera:dot(Adjoint, U),
    Near = fun(X, Y) -> ?assert(tessera:to_number(tessera:reduce_max(tessera:abs(tessera:subtract(X, Y)))) < 1.0e-13) end,
    [Factor] = run([C], [C], "  %r = stablehlo.cholesky %x1, lower = false : tensor<2x2xcomplex<f64>>", [Matrix]),
    Near(U, Factor),
    [Solved] = run([C, C], [C], "  %r = \"stablehlo.triangular_solve\"(%x1, %x2) <{left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>}> "
                                ": (tensor<2x2xcomplex<f64>>, tensor<2x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>>", [U, Matrix]),
    Near(U, Solved).

%% ---- chlo

mulhi_test_() ->
    [{Type, fun() ->
          T = ["tensor<", integer_to_list(length(Xs)), "x", Type, ">"],
          [Got] = lists_of(run([T, T], [T], ["  %r = chlo.mulhi %x1, %x2 : ", T, ", ", T, " -> ", T], [tessera:tensor(Xs, D), tessera:tensor(Ys, D)])),
          ?assertEqual([(X * Y) bsr Bits || {X, Y} <- lists:zip(Xs, Ys)], Got)
      end}
     || {Type, D, Bits, Xs, Ys} <-
            [{"i8", s8, 8, [-128, 127, -1, 64], [-128, 127, 1, -3]}, {"ui16", u16, 16, [65535, 4096], [65535, 17]}, {"i32", s32, 32, [-2147483648, 123456789], [2147483647, -987654321]},
             {"i64", s64, 64, [-9223372036854775808, 1234567890123456789, -5, -1], [9223372036854775807, -876543210987654321, 3, -1]},
             {"ui64", u64, 64, [18446744073709551615, 1234567890123456789], [18446744073709551615, 9876543210987654321]}]].

%% exp(-|x|) I1(x), as SciPy computes it.
bessel_test() ->
    T = "tensor<7xf64>",
    [[A, B, C, D, E, F, Last]] = lists_of(run([T], [T], "  %r = chlo.bessel_i1e %x1 : tensor<7xf64> -> tensor<7xf64>", [tessera:tensor([0.5, -3.0, 8.0, 8.5, 100.0, -1.0e-6, infinity], f64)])),
    near([0.15642080318487173, -0.19682671329730084, 0.13414249329269812, 0.13054935509459586, 0.03974415302513025, -4.999995000003124e-07, 0.0], [A, B, C, D, E, F, Last], 1.0e-16).

%% A zero keeps its sign, as XLA's.
bessel_zero_test_() ->
    [{atom_to_list(Own), fun() ->
          [Y] = run(["tensor<2x" ++ Type ++ ">"], ["tensor<2x" ++ Type ++ ">"], ["  %r = chlo.bessel_i1e %x1 : tensor<2x", Type, "> -> tensor<2x", Type, ">"],
                    [X = tessera:tensor([0.0, -0.0], Own)]),
          ?assertEqual(tessera:to_binary(X), tessera:to_binary(Y))
      end} || {Type, Own} <- [{"f16", f16}, {"bf16", bf16}, {"f32", f32}, {"f64", f64}]].

%% By mpmath, to 120 digits; XLA is wrong where the second argument is below -9.
zeta_test_() ->
    [{lists:flatten(io_lib:format("~s ~p ~s", [Name, Arguments, Type])), fun() ->
          T = "tensor<" ++ Type ++ ">",
          [Got] = lists_of(run([T, T], [T], ["  %r = chlo.", Name, " %x1, %x2 : ", T, ", ", T, " -> ", T], [tessera:tensor(A, Own) || A <- Arguments])),
          case is_atom(Expected) of
              true -> ?assertEqual(Expected, Got);
              false -> ?assertMatch({_, D} when D < Error, {Got, abs(Got / Expected - 1)})
          end
      end}
     || {Type, Own, Error} <- [{"f32", f32, 1.0e-7}, {"f64", f64, 3.0e-15}],
        {Name, Arguments, Expected} <-
            [{"zeta", Args, Z} || {Args, Z} <- [{[2.0, 1.0], 1.6449340668482264}, {[3.0, 0.25], 64.66386996876846}, {[1.5, 100.0], 0.20050124998177191},
                                                {[1.0000152587890625, 7.0], 65534.127242408441}, {[13.0, -45.875], 549755813882.54197}, {[2.0, -50.5], 9.8499971860824842},
                                                {[8.0, 3.5], 5.2028165183160983e-5}, {[1.0, 3.0], infinity}, {[0.5, 3.0], nan}, {[2.0, 0.0], infinity}, {[3.0, -1.0], nan},
                                                {[2.5, -0.5], nan}, {[0.0, -1.0], infinity}, {[nan, 1.0], nan}, {[2.0, nan], nan}]] ++
                [{"zeta", [26.5, 1890.0], 1.1132957216216048e-85} || Own =:= f64] ++
                [{"polygamma", Args, P} || {Args, P} <- [{[0.0, 2.5], 0.70315664064524319}, {[1.0, 1.0], 1.6449340668482264}, {[1.0, -50.5], 9.8499971860824842},
                                                         {[2.0, -1.5], -0.2362040516417274}, {[3.0, 0.5], 97.409091034002437}, {[11.0, 7.25], 0.0024413434504218228},
                                                         {[16.0, 1.0], -20922949679481.51}, {[14.0, 1.5], -199179648.14708337},
                                                         {[0.0, -1.0], nan}, {[1.0, -1.0], infinity}, {[2.0, 0.0], nan}, {[0.5, 1.0], nan}, {[-1.0, 1.0], nan}]]].

zeta_refused_test() ->
    tessera_test:raises(invalid_argument, "expected floats of one type and shape", fun() ->
        run(["tensor<i32>", "tensor<i32>"], ["tensor<i32>"], "  %r = chlo.zeta %x1, %x2 : tensor<i32>, tensor<i32> -> tensor<i32>", []) end).

%% Group 0 has rows 0 and 1, group 1 has no row, group 2 has row 2, and row 3 is in no group. Infinity in another group's matrix is not seen.
ragged_dot_test() ->
    Body = "  %r = \"chlo.ragged_dot\"(%x1, %x2, %x3) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
           "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} "
           ": (tensor<4x2xf32>, tensor<3x2x1xf32>, tensor<3xi32>) -> tensor<4x1xf32>",
    Args = [tessera:tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), tessera:tensor([[[1.0], [10.0]], [[infinity], [0.0]], [[2.0], [3.0]]]), tessera:tensor([2, 0, 1], s32)],
    ?assertEqual([[[21.0], [43.0], [28.0], [0.0]]], lists_of(run(["tensor<4x2xf32>", "tensor<3x2x1xf32>", "tensor<3xi32>"], ["tensor<4x1xf32>"], Body, Args))).

simple_test() ->
    One = fun(Op, Type, To, X) -> [Y] = lists_of(run([Type], [To], ["  %r = ", Op, " %x1 : ", Type, " -> ", To], [X])), Y end,
    ?assertEqual([9.0, 4.0], One("chlo.square", "tensor<2xf32>", "tensor<2xf32>", tessera:tensor([-3.0, 2.0]))),
    ?assertEqual([{complex, 1.0, -2.0}], One("chlo.conj", "tensor<1xcomplex<f32>>", "tensor<1xcomplex<f32>>", tessera:complex(tessera:tensor([1.0]), tessera:tensor([2.0])))),
    Ends = tessera:tensor([infinity, neg_infinity, nan, 1.0]),
    ?assertEqual([1, 0, 0, 0], One("chlo.is_pos_inf", "tensor<4xf32>", "tensor<4xi1>", Ends)),
    ?assertEqual([0, 1, 0, 0], One("chlo.is_neg_inf", "tensor<4xf32>", "tensor<4xi1>", Ends)).

%% Ops of older versions.
older_test() ->
    ?assertEqual([[17.0, 39.0]], lists_of(run(["tensor<2x2xf32>", "tensor<2xf32>"], ["tensor<2xf32>"], "  %r = stablehlo.dot %x1, %x2 : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32>",
                                              [tessera:tensor([[1.0, 2.0], [3.0, 4.0]]), tessera:tensor([5.0, 6.0])]))),
    ?assertEqual([[[[1, 2]], [[1, 2]]]], lists_of(run(["tensor<2xi32>"], ["tensor<2x1x2xi32>"], "  %r = stablehlo.broadcast %x1, sizes = [2, 1] : (tensor<2xi32>) -> tensor<2x1x2xi32>",
                                                      [tessera:tensor([1, 2], s32)]))),
    tessera_test:raises(invalid_argument, "its result has other dims", fun() ->
                                run(["tensor<2xi32>"], ["tensor<2x1x2xi32>"], "  %r = stablehlo.broadcast %x1, sizes = [1, 2] : (tensor<2xi32>) -> tensor<2x1x2xi32>", []) end).

%% ---- several processes, which one device runs

%% Function @f of each process of a grid. The arguments of the processes are [1, 2], [3, 4] and so on.
processes(Grid, Body) ->
    Count = length(lists:append(Grid)), T = "tensor<2xf32>", Types = lists:join(", ", lists:duplicate(Count, T)),
    Programs = lists:join(", ", [["[", lists:join(", ", Row), "]"] || Row <- Grid]),
    Names = lists:join(", ", ["%x" ++ integer_to_list(I) || I <- lists:seq(1, Count)]),
    Main = program(lists:duplicate(Count, T), lists:duplicate(Count, T),
                   ["  %r", [[":", integer_to_list(Count)] || Count > 1], " = \"interpreter.run_parallel\"(", Names, ") {programs = [", Programs, "]} : (", Types, ") -> (", Types, ")"]),
    Function = fun(Name, Lines) -> ["func.func private @", Name, "(%x: ", T, ") -> ", T, " {\n", Lines, "\n  return %r : ", T, "\n}\n"] end,
    Functions = case Body of [{_, _} | _] -> [Function(N, L) || {N, L} <- Body]; _ -> Function("f", Body) end,
    lists_of((tessera_stablehlo:function(iolist_to_binary([Main, Functions])))([tessera:tensor([2.0 * I - 1, 2.0 * I]) || I <- lists:seq(1, Count)])).

collective(Name, Groups, Region, More) ->
    ["  %r = \"stablehlo.", Name, "\"(%x) ", Region, " {", case Name of "collective_permute" -> "source_target_pairs"; _ -> "replica_groups" end, " = dense<", Groups, "> : tensor<",
     integer_to_list(length(re:split(Groups, "\\][,\\]]")) - 1), "x2xi64>", More, "} : (tensor<2xf32>) -> tensor<2xf32>"].

sum() -> "({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %s = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  })".

%% Processes 0 and 1 are partitions of replica 0, and 2 and 3 of replica 1.
collectives_test_() ->
    Square = [["@f", "@f"], ["@f", "@f"]], Line = [["@f"], ["@f"], ["@f"]],
    Channel = ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>",
    [{Name, ?_assertEqual(Expected, processes(Grid, Body))}
     || {Name, Expected, Grid, Body} <-
            [{"of replicas", [[6.0, 8.0], [10.0, 12.0], [6.0, 8.0], [10.0, 12.0]], Square, collective("all_reduce", "[[0, 1]]", sum(), "")},
             {"of both", lists:duplicate(4, [16.0, 20.0]), Square, collective("all_reduce", "[[0, 1]]", sum(), Channel)},
             {"of numbers", [[8.0, 10.0], [8.0, 10.0], [8.0, 10.0], [8.0, 10.0]], Square, collective("all_reduce", "[[0, 3], [1, 2]]", sum(), [Channel, ", use_global_device_ids"])},
             {"of partitions", [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0], [5.0, 6.0]], Square, collective("collective_permute", "[[0, 1]]", "", Channel)},
             {"a group of one", [[4.0, 6.0], [4.0, 6.0], [5.0, 6.0]], Line, collective("all_reduce", "[[0, 1], [2, -1]]", sum(), "")},
             {"a ring", [[5.0, 6.0], [1.0, 2.0], [3.0, 4.0]], Line, collective("collective_permute", "[[0, 1], [1, 2], [2, 0]]", "", "")},
             {"exchanged halves", [[1.0, 3.0], [2.0, 4.0]], [["@f"], ["@f"]],
              collective("all_to_all", "[[0, 1]]", "", ", split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64")},
             {"a broadcast", [[0.0, 0.0], [5.0, 6.0], [5.0, 6.0]], Line, collective("collective_broadcast", "[[2, 1]]", "", "")},
             {"to a root", [[4.0, 6.0], [0.0, 0.0], [0.0, 0.0]], Line, collective("collective_reduce", "[[0, 1]]", sum(), "")},
             {"gathered and cut", [[1.0, 3.0], [2.0, 4.0]], [["@f"], ["@f"]],
              ["  %y = \"stablehlo.all_gather\"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<4xf32>\n"
               "  %i = stablehlo.replica_id : tensor<ui32>\n  %t = stablehlo.reshape %y : (tensor<4xf32>) -> tensor<2x2xf32>\n  %z = stablehlo.constant dense<0> : tensor<ui32>\n"
               "  %d = stablehlo.dynamic_slice %t, %z, %i, sizes = [2, 1] : (tensor<2x2xf32>, tensor<ui32>, tensor<ui32>) -> tensor<2x1xf32>\n"
               "  %r = stablehlo.reshape %d : (tensor<2x1xf32>) -> tensor<2xf32>"]},
             {"one alone", [[1.0, 2.0]], [["@f"]], ["  %r = \"stablehlo.all_reduce\"(%x) ", sum(), " {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32>"]},
             {"a channel", [[3.0, 4.0], [3.0, 4.0]], [["@a"], ["@b"]],
              [{"b", "  %t = stablehlo.after_all : !stablehlo.token\n  %u = \"stablehlo.send\"(%x, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>} : "
                     "(tensor<2xf32>, !stablehlo.token) -> !stablehlo.token\n  %r = stablehlo.reshape %x : (tensor<2xf32>) -> tensor<2xf32>"},
               {"a", "  %t = stablehlo.after_all : !stablehlo.token\n  %r, %u = \"stablehlo.recv\"(%t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>} : "
                     "(!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)"}]}]].

processes_refused_test_() ->
    Line = [["@f"], ["@f"], ["@f"]],
    Inner = string:replace(lists:flatten(collective("all_reduce", "[[0, 1]]", sum(), "")), "%r", "%n"),
    Nested = ["  %c = stablehlo.constant dense<true> : tensor<i1>\n  %r = \"stablehlo.if\"(%c) ({\n", Inner,
              "\n    stablehlo.return %n : tensor<2xf32>\n  }, {\n    stablehlo.return %x : tensor<2xf32>\n  }) : (tensor<i1>) -> tensor<2xf32>"],
    [{Words, fun() -> tessera_test:raises(Code, Words, fun() -> processes(Grid, Body) end) end}
     || {Code, Words, Grid, Body} <-
            [{invalid_argument, "it names number 3 of 3", Line, collective("all_reduce", "[[0, 3]]", sum(), "")},
             {invalid_argument, "a group has a member twice", Line, collective("all_reduce", "[[0, 0]]", sum(), "")},
             {invalid_argument, "parameter 0 of a region is f32[2], expected f32[]", Line,
              collective("all_reduce", "[[0, 1]]", string:replace(sum(), "<f32>", "<2xf32>", all), "")},
             {invalid_argument, "no function @g", [["@g"]], collective("all_reduce", "[[0, 0]]", sum(), "")},
             {invalid_argument, "lists of programs are of several lengths", [["@f", "@f"], ["@f"]], collective("all_reduce", "[[0, 1]]", sum(), "")},
             {unimplemented, "at the top of a process's function alone", Line, Nested},
             {invalid_argument, "its processes wait for each other", [["@a"], ["@b"]],
              [{"a", collective("all_reduce", "[[0, 1]]", sum(), "")}, {"b", "  %r = stablehlo.negate %x : tensor<2xf32>"}]}]].

%% What JAX writes for integers: of floats it passes over a NaN, which argmax would find.
argmax_form_of_integers_test() ->
    Text = <<"func.func @main(%x: tensor<3xf32>) -> (tensor<f32>, tensor<i32>) {
  %i = stablehlo.iota dim = 0 : tensor<3xi32>
  %a = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %b = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [0] : (tensor<3xf32>, tensor<3xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
   reducer(%p: tensor<f32>, %q: tensor<f32>) (%s: tensor<i32>, %t: tensor<i32>) {
    %0 = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = stablehlo.compare EQ, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.compare LT, %s, %t : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.and %1, %2 : tensor<i1>
    %4 = stablehlo.or %0, %3 : tensor<i1>
    %5 = stablehlo.select %4, %p, %q : tensor<i1>, tensor<f32>
    %6 = stablehlo.select %4, %s, %t : tensor<i1>, tensor<i32>
    stablehlo.return %5, %6 : tensor<f32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<f32>, tensor<i32>
}">>,
    ?assertEqual([2.0, 2], [tessera:to_number(R) || R <- (tessera_stablehlo:function(Text))([tessera:tensor([1.0, nan, 2.0])])]).
