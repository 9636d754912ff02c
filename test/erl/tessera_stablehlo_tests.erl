%% Programs of StableHLO. test/stablehlo/make.py says how JAX made the files there.
-module(tessera_stablehlo_tests).
-include_lib("eunit/include/eunit.hrl").

data(Name) -> filename:join(["test", "stablehlo", Name]).

%% Each program that JAX exported gives the results that XLA computed.
exports_test_() ->
    Names = [filename:basename(File, ".mlir") || File <- lists:sort(filelib:wildcard(data("*.mlir")))],
    [{Name, {timeout, 60, fun() -> exported(Name) end}} || Name <- Names, length(Names) > 20].

exported(Name) ->
    Arrays = tessera_io:load(data(Name ++ ".npz"), #{map => false}),
    Keys = lists:sort(maps:keys(Arrays)),
    Arguments = [map_get(Key, Arrays) || <<"in", _/binary>> = Key <- Keys],
    Expected = [map_get(Key, Arrays) || <<"out", _/binary>> = Key <- Keys],
    F = tessera_stablehlo:load(data(Name ++ ".mlir")),
    Results = F(Arguments),
    ?assertEqual([tessera:shape(T) || T <- Expected], [tessera:shape(T) || T <- Results]),
    [?assertMatch({I, Difference} when Difference < 2.0e-5, {I, difference(A, B)})
     || {I, A, B} <- lists:zip3(lists:seq(1, length(Results)), Expected, Results), tessera:size(A) > 0].

%% The largest difference, relative to numbers above 1; NaNs are equal.
difference(Expected, Got) ->
    [X, Y] = [tessera:as_type(T, c128) || T <- [Expected, Got]],
    Same = tessera:logical_or(tessera:equal(X, Y), tessera:logical_and(tessera:is_nan(X), tessera:is_nan(Y))),
    Differs = tessera:divide(tessera:abs(tessera:subtract(X, Y)), tessera:add(1.0, tessera:abs(X))),
    tessera:to_number(tessera:reduce_max(tessera:select(Same, 0.0, Differs))).

%% A text and its bytecode, as a portable artifact of any version and as bytecode of StableHLO, are the same program.
bytecode_test_() ->
    [{filename:basename(File), fun() -> bytecode(File) end}
     || File <- lists:sort(filelib:wildcard(data("*.vhlo")) ++ filelib:wildcard(data("*.bc")))].

bytecode(File) ->
    Name = filename:basename(filename:rootname(File)),
    Arrays = tessera_io:load(data(Name ++ ".npz"), #{map => false}),
    Arguments = [map_get(Key, Arrays) || <<"in", _/binary>> = Key <- lists:sort(maps:keys(Arrays))],
    ?assertEqual(program(data(Name ++ ".mlir"), Arguments), program(File, Arguments)).

program(File, Arguments) ->
    F = tessera_stablehlo:load(File),
    tessera:to_text(F, [Arguments]).

%% A text in MLIR's generic form is the same program as the form that JAX writes, with the same names where both have locations.
generic_test_() ->
    [{Name, fun() ->
          Generic = data("generic/" ++ Name ++ ".generic"),
          {Arguments, _} = arrays(data(Arrays)),
          ?assertEqual(program(data(Source), Arguments), program(Generic, Arguments)),
          {ok, [Text, Other]} = read_all([data(Source), Generic]),
          if Name =:= "control" -> ?assertEqual(tessera_stablehlo:signature(Text), tessera_stablehlo:signature(Other)); true -> ok end
      end}
     || {Name, Source, Arrays} <- [{"control", "control.mlir", "control.npz"}, {"cnn_grad", "cnn_grad.mlir", "cnn_grad.npz"}, {"fft", "fft.mlir", "fft.npz"},
                                   {"scatter", "scatter.mlir", "scatter.npz"}, {"sort", "sort.mlir", "sort.npz"},
                                   {"linalg_cholesky", "linalg/cholesky.vhlo", "linalg/cholesky.npz"},
                                   {"symbolic_loops", "symbolic/loops.vhlo", "symbolic/loops1.npz"}]].

read_all(Files) -> {ok, [begin {ok, Text} = file:read_file(File), Text end || File <- Files]}.

%% A module of functions in generic form, with attributes after the regions as before MLIR had properties, or with both forms in one text.
generic_module(Functions) -> iolist_to_binary(["\"builtin.module\"() ({\n", Functions, "}) : () -> ()\n"]).

generic_func(Attributes, Region) -> ["\"func.func\"() <{", Attributes, "}> ({", Region, "}) : () -> ()\n"].

-define(TYPE, "function_type = (tensor<2xf32>) -> tensor<2xf32>").

doubled(Argument) ->
    ["\n^bb0(%x: ", Argument, "):\n  %0 = \"stablehlo.add\"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
     "  \"func.return\"(%0) : (tensor<2xf32>) -> ()\n"].

doubled() -> doubled("tensor<2xf32>").

generic_forms_test_() ->
    Main = ["\"func.func\"() ({", doubled(), "}) {" ?TYPE ", sym_name = \"main\"} : () -> ()\n"],
    Call = ["func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"],
    Private = fun(Visibility) -> generic_func([?TYPE ", sym_name = \"f\", sym_visibility = \"", Visibility, "\""], doubled()) end,
    Declared = generic_func(?TYPE ", sym_name = \"g\", sym_visibility = \"private\"", ""),
    [?_assertEqual([[2.0, 4.0]], [tessera:to_list(T) || T <- (tessera_stablehlo:function(iolist_to_binary(Text)))([tessera:tensor([1.0, 2.0])])])
     || Text <- [generic_module(Main), Main, generic_module([Private("nested"), Call]), ["module {\n", Private("private"), Call, "}"],
                 ["builtin.module @a attributes {b} {\n", Declared, Main, "}"],
                 ["#loc = loc(unknown)\n\"builtin.module\"() <{sym_name = \"m\"}> ({\n^bb0:\n", Main,
                  "}) {mhlo.num_partitions = 1 : i32} : () -> () loc(#loc)\n#loc1 = loc(\"x\")"]] ++
                [[generic_func([?TYPE ", arg_attrs = ", Attributes, ", sym_name = \"g\", sym_visibility = \"private\""], Body), Main]
                 || Attributes <- ["[]", "[{}]", "[{a = 1 : i32}]"], Body <- ["", doubled()]]].

generic_refused_test_() ->
    Named = ", sym_name = \"main\"",
    Main = generic_func(?TYPE ++ Named, doubled()),
    Call = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n",
    [{Words, fun() -> tessera_test:raises(Code, Words, fun() -> tessera_stablehlo:function(iolist_to_binary(Text)) end) end}
     || {Code, Words, Text} <-
            [{invalid_argument, "expected '}', found the end", ["\"builtin.module\"() ({\n", Main]},
             {invalid_argument, "expected ')'", "\"builtin.module\"(%x) ({})"},
             {invalid_argument, "expected ')', found ','", ["\"builtin.module\"() ({", Main, "}, {}) : () -> ()"]},
             {invalid_argument, "expected ':'", ["\"builtin.module\"() ({", Main, "})"]},
             {invalid_argument, "one module", [generic_module(Main), generic_module(Main)]},
             {invalid_argument, "expected a function, found 'builtin.module'", generic_module(generic_module(Main))},
             {invalid_argument, "expected a function, found 'builtin.module'", ["module {", generic_module(Main), "}"]},
             {invalid_argument, "expected a function, found 'module'", ["module {\nmodule {\n", Main, "}\n}"]},
             {unimplemented, "expected a function, found 'ml_program.global'", generic_module("\"ml_program.global\"() : () -> ()")},
             {invalid_argument, "line 3, column 1: expected a function, found the end", generic_module("")},
             {invalid_argument, "no function @main", generic_module(generic_func(?TYPE ", sym_name = \"f\", sym_visibility = \"private\"", doubled()))},
             {invalid_argument, "a function lacks its name", generic_module(generic_func(?TYPE, doubled()))},
             {invalid_argument, "a function lacks its name", generic_module(["\"func.func\"() <{" ?TYPE, Named, "}> : () -> ()"])},
             {invalid_argument, "a function lacks its type", generic_module(generic_func("sym_name = \"main\"", doubled()))},
             {invalid_argument, "a function lacks its type", generic_module(generic_func("function_type = 3, sym_name = \"main\"", doubled()))},
             {invalid_argument, "expected '->'", generic_module(generic_func("function_type = (tensor<2xf32>), sym_name = \"main\"", doubled()))},
             {unimplemented, "expected the type of a tensor", generic_module(generic_func(["function_type = ", lists:duplicate(1000000, $(), Named], doubled()))},
             {invalid_argument, "is no value", generic_module(["\"func.func\"() <{" ?TYPE, Named, "}> ({", doubled(), "}) : () -> tensor<f32>"])},
             {unimplemented, "line 2, column 1: expected a function, found '0'", generic_module(["%0 = ", Main])},
             {invalid_argument, "its type has 2 arguments, and its block has 1",
              generic_module(generic_func(["function_type = (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>", Named], doubled()))},
             {invalid_argument, "argument 0 has another type in its block", generic_module(generic_func(?TYPE ++ Named, doubled("tensor<2xf64>")))},
             {invalid_argument, "arg_attrs is no list of 1 dictionaries", generic_module(generic_func([?TYPE ", arg_attrs = [{}, {}]", Named], doubled()))},
             {invalid_argument, "res_attrs is no list of 1 dictionaries", generic_module(generic_func([?TYPE ", res_attrs = {}", Named], doubled()))},
             {invalid_argument, "arg_attrs is no list of 1 dictionaries", generic_module(generic_func([?TYPE ", arg_attrs = [1]", Named], doubled()))},
             {invalid_argument, "arg_attrs is no list of 1 dictionaries",
              generic_module([generic_func(?TYPE ", arg_attrs = [1], sym_name = \"g\", sym_visibility = \"private\"", ""), Main])},
             {invalid_argument, "res_attrs is no list of 1 dictionaries", generic_module(generic_func([?TYPE ", res_attrs = [@a]", Named], doubled()))},
             {invalid_argument, "its block has no ops",
              generic_module([generic_func(?TYPE ", sym_name = \"g\", sym_visibility = \"private\"", "\n^bb0(%x: tensor<2xf32>):\n"), Main])},
             {invalid_argument, "expected a function, found 'func.func'", ["@", Call]},
             {invalid_argument, "expected a function, found 'func.func'", ["module {\n@\"func.func\"", string:slice(Call, 9), "}"]},
             {invalid_argument, "expected a function, found 'sdy.mesh'", ["module {\n@sdy.mesh @m = <[\"x\"=2]>\n", Main, "}"]},
             {invalid_argument, "expected 2 results, got 1",
              generic_module(generic_func(["function_type = (tensor<2xf32>) -> (tensor<2xf32>, tensor<f32>)", Named], doubled()))},
             {unimplemented, "expected a function with a body", generic_module(generic_func(?TYPE ++ Named, ""))},
             {unimplemented, "regions of several blocks", generic_module(generic_func(?TYPE ++ Named, [doubled(), "^bb1:\n"]))},
             {invalid_argument, "a mesh lacks its name", generic_module(["\"sdy.mesh\"() : () -> ()\n", Main])}]].

%% ---- LAPACK

%% What JAX's exports call of it, beside the results of XLA with LAPACK itself.
lapack_test_() ->
    [{filename:basename(File), {timeout, 60, fun() -> lapack(File) end}} || File <- lists:sort(filelib:wildcard(data("linalg/*.vhlo")))].

lapack(File) ->
    {Arguments, Expected} = arrays(filename:rootname(File) ++ ".npz"),
    Results = (tessera_stablehlo:load(File))(Arguments),
    ?assertEqual([{tessera:type(T), tessera:shape(T)} || T <- Expected], [{tessera:type(T), tessera:shape(T)} || T <- Results]),
    [?assertMatch({I, Difference} when Difference < 2.0e-5, {I, difference(A, B)}) || {I, A, B} <- lists:zip3(lists:seq(1, length(Results)), Expected, Results)].

lapack_call(Name, Config, Types) ->
    iolist_to_binary(["func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {\n  %0:", integer_to_list(length(Types)), " = stablehlo.custom_call @lapack_",
                      Name, "_ffi(%x) {mhlo.backend_config = {", Config, "}} : (tensor<2x2xf32>) -> (", lists:join(", ", Types),
                      ")\n  return %0#0 : tensor<2x2xf32>\n}"]).

lapack_refused_test_() ->
    [{Words, fun() -> tessera_test:raises(Code, Words, fun() -> tessera_stablehlo:function(lapack_call(Name, Config, Types)) end) end}
     || {Code, Words, Name, Config, Types} <-
            [{unimplemented, "the routine lapack_sggev_ffi of LAPACK is not known", "sggev", "", ["tensor<2x2xf32>"]},
             {unimplemented, "uplo is other than one of LU", "spotrf", "uplo = 65 : ui8", ["tensor<2x2xf32>", "tensor<i32>"]},
             {unimplemented, "mode is other than one of ASN", "sgesdd", "",
              ["tensor<2x2xf32>", "tensor<2xf32>", "tensor<2x2xf32>", "tensor<2x2xf32>", "tensor<i32>"]},
             {unimplemented, "mode is other than one of ASN", "sgesvd", "mode = 79 : ui8",
              ["tensor<2x2xf32>", "tensor<2xf32>", "tensor<2x2xf32>", "tensor<2x2xf32>", "tensor<i32>"]},
             {invalid_argument, "expected 4 operands and 5 results", "sgtsv", "", ["tensor<2x2xf32>"]},
             {invalid_argument, "expected 2 operands and 3 results", "sgeqp3", "", ["tensor<2x2xf32>"]},
             {invalid_argument, "expected 1 operands and 3 results", "sgetrf", "", ["tensor<2x2xf32>"]},
             {invalid_argument, "expected 2 operands and 1 results", "strsm", "", ["tensor<2x2xf32>"]},
             {invalid_argument, "its result is s32[2], and the text says s32[3]", "sgetrf", "", ["tensor<2x2xf32>", "tensor<3xi32>", "tensor<i32>"]}]].

%% Lines, right sides and numbers of columns that do not agree.
lapack_operands_test_() ->
    Call = fun(Name, Types, Results) ->
        Arguments = lists:zip(lists:seq(0, length(Types) - 1), Types),
        iolist_to_binary(["func.func @main(", lists:join(", ", [["%a", integer_to_list(I), ": tensor<", T, ">"] || {I, T} <- Arguments]),
                          ") {\n  %0:", integer_to_list(length(Results)), " = stablehlo.custom_call @lapack_", Name, "_ffi(",
                          lists:join(", ", [["%a", integer_to_list(I)] || {I, _} <- Arguments]), ") : (", lists:join(", ", [["tensor<", T, ">"] || T <- Types]),
                          ") -> (", lists:join(", ", [["tensor<", T, ">"] || T <- Results]), ")\n  return\n}"])
    end,
    [{Name ++ " " ++ lists:flatten(lists:join(" ", Types)),
      fun() -> tessera_test:raises(invalid_argument, Words, fun() -> tessera_stablehlo:function(Call(Name, Types, Results)) end) end}
     || {Words, Name, Types, Results} <-
            [{"its lines and its right sides do not agree", "sgtsv", ["3xf32", "3xf32", "2xf32", "3x1xf32"], ["3xf32", "3xf32", "2xf32", "3x1xf32", "i32"]},
             {"its lines and its right sides do not agree", "sgtsv", ["3xf32", "3xf64", "3xf32", "3x1xf32"], ["3xf32", "3xf64", "3xf32", "3x1xf32", "i32"]},
             {"its lines and its right sides do not agree", "sgtsv", ["f32", "f32", "f32", "3xf32"], ["f32", "f32", "f32", "3xf32", "i32"]},
             {"expected floats or complex numbers", "sgtsv", ["3xi32", "3xi32", "3xi32", "3x1xi32"], ["3xi32", "3xi32", "3xi32", "3x1xi32", "i32"]},
             {"an s32 for each column", "sgeqp3", ["3x2xf32", "3xi32"], ["3x2xf32", "3xi32", "2xf32"]},
             {"an s32 for each column", "sgeqp3", ["3x2xf32", "2xi64"], ["3x2xf32", "2xi64", "2xf32"]},
             {"an s32 for each column", "sgeqp3", ["3x2xi32", "2xi32"], ["3x2xi32", "2xi32", "2xi32"]}]].

%% Columns whose number is not 0 come first, in their order; the others by their sizes.
first_columns_test() ->
    F = tessera_stablehlo:function(
          <<"func.func @main(%a: tensor<3x4xf32>, %p: tensor<4xi32>) -> tensor<4xi32> {\n"
            "  %0:3 = stablehlo.custom_call @lapack_sgeqp3_ffi(%a, %p) : (tensor<3x4xf32>, tensor<4xi32>) -> (tensor<3x4xf32>, tensor<4xi32>, tensor<3xf32>)\n"
            "  return %0#1 : tensor<4xi32>\n}">>),
    Matrix = tessera:tensor([[1, 0, 0, 9], [0, 2, 0, 0], [0, 0, 3, 0]], f32),
    Numbers = fun(First) -> [P] = F([Matrix, tessera:tensor(First, s32)]), tessera:to_list(P) end,
    ?assertEqual([4, 3, 2, 1], Numbers([0, 0, 0, 0])),
    ?assertEqual([1, 3, 2, 4], Numbers([5, 0, 0, 0])),
    ?assertEqual([2, 3, 4, 1], Numbers([0, 1, 1, 0])).

%% ---- functions that are made of ops

run(Body, Type, Arguments) ->
    Text = ["func.func @main(", lists:join(", ", ["%x" ++ integer_to_list(I) ++ ": " ++ Type || I <- lists:seq(1, length(Arguments))]), ") -> ", Type,
            " {\n  %0 = ", Body, "\n  return %0 : ", Type, "\n}"],
    [Result] = (tessera_stablehlo:function(iolist_to_binary(Text)))(Arguments),
    Result.

%% lgamma(n + 1) is log(n!), digamma(n + 1) the sum of 1/k, less Euler's constant; both by their reflections below 1/2.
gamma_test() ->
    Near = fun(Expected, Got) -> [?assertMatch({_, D} when D < 1.0e-12, {X, abs(X - Y) / (1 + abs(X))}) || {X, Y} <- lists:zip(Expected, Got)] end,
    Lgamma = fun(Xs) -> tessera:to_list(run("chlo.lgamma %x1 : tensor<" ++ integer_to_list(length(Xs)) ++ "xf64> -> tensor<" ++ integer_to_list(length(Xs)) ++ "xf64>",
                                            "tensor<" ++ integer_to_list(length(Xs)) ++ "xf64>", [tessera:tensor(Xs, f64)])) end,
    Digamma = fun(Xs) -> tessera:to_list(run("chlo.digamma %x1 : tensor<" ++ integer_to_list(length(Xs)) ++ "xf64> -> tensor<" ++ integer_to_list(length(Xs)) ++ "xf64>",
                                             "tensor<" ++ integer_to_list(length(Xs)) ++ "xf64>", [tessera:tensor(Xs, f64)])) end,
    Near([math:log(lists:foldl(fun(I, P) -> I * P end, 1, lists:seq(1, N))) || N <- lists:seq(1, 20)], Lgamma([N + 1.0 || N <- lists:seq(1, 20)])),
    Pi = math:pi(),
    Near([math:log(Pi) / 2, math:log(2 * math:sqrt(Pi)), math:log(4 * math:sqrt(Pi) / 3)], Lgamma([0.5, -0.5, -1.5])),
    ?assertEqual([infinity, infinity, infinity, infinity, nan], Lgamma([0.0, -3.0, infinity, neg_infinity, nan])),
    Euler = 0.57721566490153286061,
    Near([lists:sum([1 / K || K <- lists:seq(1, N)]) - Euler || N <- lists:seq(1, 20)], Digamma([N + 1.0 || N <- lists:seq(1, 20)])),
    Near([-Euler - 2 * math:log(2), 2 - Euler - 2 * math:log(2)], Digamma([0.5, -0.5])),
    ?assertEqual([nan, nan, nan], Digamma([0.0, -2.0, nan])).

%% The next float of each is what its bits say.
next_after_test() ->
    Xs = [1.0, -1.0, 0.0, 0.0, 2.0, -2.0, 3.0, nan, 1.0], Ys = [2.0, 2.0, 1.0, -1.0, 2.0, neg_infinity, 0.0, 1.0, nan],
    Got = run("chlo.next_after %x1, %x2 : tensor<9xf32>, tensor<9xf32> -> tensor<9xf32>", "tensor<9xf32>", [tessera:tensor(Xs), tessera:tensor(Ys)]),
    ?assertEqual([16#3f800001, 16#bf7fffff, 1, 16#80000001, 16#40000000, 16#c0000001, 16#403fffff],
                 lists:sublist(tessera:to_list(tessera:bitcast(Got, u32)), 7)),
    ?assertEqual([nan, nan], lists:nthtail(7, tessera:to_list(Got))).

%% f32 with the bits of f16 has the result of a conversion to f16 and back, except for subnormal numbers of f16.
reduce_precision_test() ->
    Xs = [1.0, 1.0009765, 1.00048828125, 1.00146484375, -3.14159, 65504.0, 65519.9, 65520.0, -1.0e9, 6.1035e-5, 1.0e-6, nan, infinity],
    X = tessera:tensor(Xs),
    Format = fun(F) -> tessera:to_list(run("stablehlo.reduce_precision %x1, format = " ++ F ++ " : tensor<13xf32>", "tensor<13xf32>", [X])) end,
    Half = tessera:to_list(tessera:as_type(tessera:as_type(X, f16), f32)),
    ?assertEqual([if V == 1.0e-6 -> 0.0; V == 6.1035e-5 -> 6.103515625e-5; true -> H end || {V, H} <- lists:zip(Xs, Half)], Format("e5m10")),
    ?assertEqual(tessera:to_list(tessera:as_type(tessera:as_type(X, bf16), f32)), Format("e8m7")),
    ?assertEqual(tessera:to_list(X), Format("e8m23")),
    ?assertEqual([infinity, infinity], lists:nthtail(11, Format("e5m0"))),
    tessera_test:raises(invalid_argument, "a bit or more of the exponent", fun() -> Format("e0m3") end).

%% To i1 a complex number is its real part.
complex_truth_test() ->
    Text = <<"func.func @main(%x: tensor<3xcomplex<f32>>) -> tensor<3xi1> {\n"
             "  %0 = stablehlo.convert %x : (tensor<3xcomplex<f32>>) -> tensor<3xi1>\n  return %0 : tensor<3xi1>\n}">>,
    [Truth] = (tessera_stablehlo:function(Text))([tessera:complex(tessera:tensor([-1.0, 0.0, 1.0]), tessera:tensor([0.0, 1.0, 0.0]))]),
    ?assertEqual([1, 0, 1], tessera:to_list(Truth)).

%% ---- sizes that are symbols

%% One artifact serves each size: arguments of two sizes give what XLA computed.
symbolic_test_() ->
    [{filename:basename(File), {timeout, 60, fun() -> symbolic(tessera_stablehlo:load(File), filename:rootname(File)) end}}
     || File <- lists:sort(filelib:wildcard(data("symbolic/*.vhlo")))].

symbolic(F, Name) ->
    [begin
         {Arguments, Expected} = arrays(File),
         Results = F(Arguments),
         ?assertEqual([tessera:shape(T) || T <- Expected], [tessera:shape(T) || T <- Results]),
         [?assertMatch({I, Difference} when Difference < 2.0e-5, {I, difference(A, B)})
          || {I, A, B} <- lists:zip3(lists:seq(1, length(Results)), Expected, Results), tessera:size(A) > 0]
     end || File <- [Name ++ "0.npz", Name ++ "1.npz"]].

arrays(File) ->
    Arrays = tessera_io:load(File, #{map => false}),
    Keys = lists:sort(maps:keys(Arrays)),
    {[map_get(Key, Arrays) || <<"in", _/binary>> = Key <- Keys], [map_get(Key, Arrays) || <<"out", _/binary>> = Key <- Keys]}.

symbolic_bytecode_test_() ->
    [{filename:basename(File), fun() ->
              {Arguments, _} = arrays(filename:rootname(File) ++ "1.npz"),
              ?assertEqual(program(File, Arguments), program(filename:rootname(File) ++ ".vhlo", Arguments))
      end} || File <- lists:sort(filelib:wildcard(data("symbolic/*.mlir")))].

%% The program for a size is compiled once.
symbolic_cache_test() ->
    F = tessera_stablehlo:load(data("symbolic/sorts.vhlo")),
    Run = fun(Rows) -> F([tessera:iota({Rows, 3}, f32, #{axis => 0})]) end,
    [Run(Rows) || Rows <- [3, 4]],
    Before = tessera_cache:size(),
    [Run(Rows) || Rows <- [3, 4, 3]],
    ?assertEqual(Before, tessera_cache:size()).

%% A function of symbolic sizes is one like others.
symbolic_function_test() ->
    F = tessera_stablehlo:load(data("symbolic/network.vhlo")),
    X = tessera:tensor([[0.1, 0.2, 0.3], [0.4, -0.5, 0.6]]),
    G = tessera:jit(fun(V) -> [tessera:sum(Y) || Y <- F([V])] end),
    ?assertEqual([tessera:to_list(tessera:sum(Y)) || Y <- F([X])], [tessera:to_list(Y) || Y <- G(X)]),
    ?assertEqual({2, 3}, tessera:shape((tessera:grad(fun(V) -> tessera:sum(hd(F([V]))) end))(X))).

symbolic_refused_test() ->
    F = tessera_stablehlo:load(data("symbolic/shapes.vhlo")),
    Zeros = fun(Rows) -> tessera:zeros({Rows, 3}) end,
    tessera_test:raises(invalid_argument, "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension "
                        "size args[1].shape[0] (= 5) and the specification '2*b' (= 4).", fun() -> F([Zeros(2), Zeros(5)]) end),
    tessera_test:raises(invalid_argument, "argument 1 is f32[4], expected f32[-1,3], where -1 is any size",
                        fun() -> F([Zeros(2), tessera:zeros({4})]) end),
    tessera_test:raises(invalid_argument, "takes 2 arguments, got 1", fun() -> F([Zeros(2)]) end).

assertion_text_test() ->
    Text = <<"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  %c = stablehlo.constant dense<3> : tensor<i32>\n"
             "  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n"
             "  %ok = stablehlo.compare GE, %n, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
             "  stablehlo.custom_call @shape_assertion(%ok, %n, %c) {error_message = \"\\22n\\22 is {0},\\09not {1}: {9}\", "
             "has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()\n  return %x : tensor<?xf32>\n}">>,
    F = tessera_stablehlo:function(Text),
    ?assertEqual([[1.0, 2.0, 3.0]], [tessera:to_list(T) || T <- F([tessera:tensor([1.0, 2.0, 3.0])])]),
    tessera_test:raises(invalid_argument, "stablehlo: \"n\" is 2,\tnot 3: {9}", fun() -> F([tessera:tensor([1.0, 2.0])]) end).

%% Transforms of a batch of any size, also without elements.
symbolic_transform_test_() ->
    [{Type, fun() ->
          F = tessera_stablehlo:function(iolist_to_binary(["func.func @main(%x: tensor<?x", From, ">) -> tensor<?x", To, "> {\n  %r = stablehlo.fft %x, type = ", Type,
                                                           ", length = [8] : (tensor<?x", From, ">) -> tensor<?x", To, ">\n  return %r : tensor<?x", To, ">\n}\n"])),
          [?assertEqual([Shape], [tessera:shape(T) || T <- F([tessera:zeros({Batch, Size}, Of)])]) || {Batch, Shape} <- [{0, {0, Result}}, {3, {3, Result}}]]
      end}
     || {Type, From, To, Size, Result, Of} <- [{"FFT", "8xcomplex<f32>", "8xcomplex<f32>", 8, 8, c64}, {"RFFT", "8xf32", "5xcomplex<f32>", 8, 5, f32},
                                               {"IRFFT", "5xcomplex<f32>", "8xf32", 5, 8, c64}]].

%% A size that the arguments do not say.
unknown_shape_test() ->
    Text = <<"func.func @main(%x: tensor<?xf32>, %s: tensor<1xi32>) -> tensor<?xf32> {\n"
             "  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>\n  return %0 : tensor<?xf32>\n}">>,
    F = tessera_stablehlo:function(Text),
    tessera_test:raises(unimplemented, "stablehlo.dynamic_reshape: operand 1 is not known while the program is read",
                        fun() -> F([tessera:tensor([1.0]), tessera:tensor([1], s32)]) end).

%% What Tessera prints it reads again.
printed_test() ->
    F = fun(X, Y) ->
                Z = tessera:tanh(tessera:dot(X, Y)),
                {tessera:softmax(Z), tessera:argmax(Z), tessera:sort(Z, #{axis => 0}), tessera:cumulative_sum(Z),
                 tessera:'cond'(tessera:greater(tessera:sum(Z), 0), fun() -> Z end, fun() -> tessera:negate(Z) end)}
        end,
    Args = [tessera:tensor([[1.0, -2.0], [0.5, 3.0]]), tessera:tensor([[0.1, 0.2], [-0.3, 0.4]])],
    Read = tessera_stablehlo:function(tessera:to_text(F, Args, stablehlo)),
    [?assert(difference(A, B) < 1.0e-6) || {A, B} <- lists:zip(tuple_to_list(apply(tessera:jit(F), Args)), Read(Args))].

%% The programs of the golden files, with all their values as results: printed as StableHLO and read again, they compute the same.
round_trip_test_() ->
    [{filename:basename(File), {timeout, 120, fun() -> round_trip(filename:rootname(File) ++ ".ts") end}}
     || File <- lists:sort(filelib:wildcard("test/golden/ir/*.stablehlo")), string:find(File, "mesh") =:= nomatch].

round_trip(File) ->
    {ok, Golden} = file:read_file(File),
    Text = all_values(Golden),
    Arguments = [argument(Type, shape(Dims)) || [Type, Dims] <- captured(hd(captured(Text, "graph @[^(]*\\((.*?)\\) ->")), "%\\d+: (\\w+)\\[([\\d,]*)\\]")],
    Printed = tessera_error:check(test, [], tessera_nif:graph_stablehlo(tessera_error:check(test, [], tessera_nif:parse(Text)))),
    Expected = tessera:run_text(Text, Arguments),
    Results = (tessera_stablehlo:function(Printed))(Arguments),
    ?assertNotEqual([], Results),
    ?assertEqual([{tessera:type(T), tessera:shape(T)} || T <- Expected], [{tessera:type(T), tessera:shape(T)} || T <- Results]),
    Lines = captured(Text, "\n  (%\\d+ = [^\n]*)") ++ [result || _ <- Results],
    [?assertMatch({_, Difference} when Difference < 1.0e-5, {Line, difference(A, B)})
     || {Line, A, B} <- lists:zip3(lists:sublist(Lines, length(Results)), Expected, Results), tessera:size(A) > 0].

captured(Text, Pattern) ->
    case re:run(Text, Pattern, [global, {capture, all_but_first, binary}]) of
        {match, [[_] | _] = Ones} -> lists:append(Ones);
        {match, Groups} -> Groups;
        nomatch -> []
    end.

%% A program whose results are all values that an op alone makes outside of regions; without any the program as it is.
all_values(Golden) ->
    case captured(Golden, "\n  (%\\d+) = [^\n]* : (\\w+\\[[\\d,]*\\])(?=\n)") of
        [] -> Golden;
        Values -> with_results(Golden, Values)
    end.

with_results(Golden, Values) ->
    Types = lists:join(", ", [Type || [_, Type] <- Values]),
    Returned = re:replace(Golden, "\n  return[^\n]*\n}", ["\n  return ", lists:join(", ", [Value || [Value, _] <- Values]), "\n}"]),
    iolist_to_binary(re:replace(Returned, "(graph @[^(]*\\(.*?\\)) -> \\(.*?\\) \\{", ["\\1 -> (", Types, ") {"])).

shape(Dims) -> list_to_tuple([binary_to_integer(D) || D <- binary:split(Dims, <<",">>, [global]), D =/= <<>>]).

%% Numbers 0.125, 0.25, ... or 0, 1, 0, 1.
argument(Type, Shape) ->
    Size = lists:foldl(fun(D, P) -> D * P end, 1, tuple_to_list(Shape)),
    Numbers = case Type of
                  <<C, _/binary>> when C =:= $f; C =:= $b; C =:= $c -> [I / 8 || I <- lists:seq(1, Size)];
                  _ -> [I rem 2 || I <- lists:seq(1, Size)]
              end,
    Line = case Size of 0 -> tessera:zeros({0}); _ -> tessera:tensor(Numbers) end,
    tessera:as_type(tessera:reshape(Line, Shape), binary_to_atom(Type)).

%% A function like others: called, jitted, in regions, differentiated.
function_test() ->
    F = tessera_stablehlo:load(data("mlp_grad.mlir")),
    Arrays = tessera_io:load(data("mlp_grad.npz"), #{map => false}),
    [W, X, Y] = [map_get(<<"in0", (integer_to_binary(I))/binary>>, Arrays) || I <- [0, 1, 2]],
    [Loss, Gradient] = F([W, X, Y]),
    ?assertEqual(tessera:to_list(Loss), tessera:to_list((tessera:jit(fun(V) -> hd(F([V, X, Y])) end))(W))),
    Own = (tessera:grad(fun(V) -> hd(F([V, X, Y])) end))(W),
    ?assert(difference(Gradient, Own) < 1.0e-6),
    Steps = (tessera:jit(fun(V) -> tessera:while({0, V}, fun({I, _}) -> tessera:less(I, 20) end,
                                                 fun({I, U}) ->
                                                         [_, G] = F([U, X, Y]),
                                                         {tessera:add(I, 1), tessera:subtract(U, tessera:multiply(0.1, G))}
                                                 end)
                         end))(W),
    ?assert(tessera:to_number(hd(F([element(2, Steps), X, Y]))) < tessera:to_number(Loss)).

arguments_test() ->
    F = tessera_stablehlo:function(main("%0 = stablehlo.add %x, %x : tensor<2xf32>", "%0")),
    ?assertEqual([[2.0, 4.0]], [tessera:to_list(T) || T <- F([tessera:tensor([1.0, 2.0])])]),
    tessera_test:raises(invalid_argument, "argument 0 is f32[3], expected f32[2]", fun() -> F([tessera:tensor([1.0, 2.0, 3.0])]) end),
    tessera_test:raises(invalid_argument, "takes 1 arguments, got 2", fun() -> F([1.0, 2.0]) end),
    tessera_test:raises(invalid_argument, "a list of arguments", fun() -> F(1.0) end),
    tessera_test:raises(unavailable, "No such file", fun() -> tessera_stablehlo:load("/nowhere/at/all.mlir") end).

%% Shardings say where the elements of a value are, not what they are.
shardings_test() ->
    F = tessera_stablehlo:function(
          <<"module attributes {mhlo.num_partitions = 1 : i32} {\n  sdy.mesh @m = <[\"x\"=2, \"y\"=4]>\n"
            "  sdy.mesh @empty = <[]> {stablehlo.mesh = {axes = []}}\n"
            "  func.func public @main(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>}) -> tensor<2xf32> {\n"
            "    %0 = sdy.sharding_constraint %x <@m, [{\"x\", ?}]> : tensor<2xf32>\n"
            "    %1 = stablehlo.add %0, %x : tensor<2xf32>\n    return %1 : tensor<2xf32>\n  }\n}\n">>),
    ?assertEqual([[2.0, 4.0]], [tessera:to_list(T) || T <- F([tessera:tensor([1.0, 2.0])])]),
    tessera_test:raises(invalid_argument, "expected the name of an axis", fun() -> tessera_stablehlo:function(<<"sdy.mesh @m = <[">>) end).

%% Results from the specification, computed by hand.
values_test_() ->
    [{Name, ?_assertEqual(Expected, [tessera:to_list(T) || T <- (tessera_stablehlo:function(iolist_to_binary(Text)))(Args)])}
     || {Name, Args, Expected, Text} <- values()].

window(Op, Init, Attributes, Result) ->
    ["func.func @main(%x: tensor<3xf32>) -> tensor<", Result, "xf32> {\n  %c = stablehlo.constant dense<", Init, "> : tensor<f32>\n"
     "  %0 = \"stablehlo.reduce_window\"(%x, %c) <{", Attributes, "}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
     "    %1 = stablehlo.", Op, " %a, %b : tensor<f32>\n    stablehlo.return %1 : tensor<f32>\n"
     "  }) : (tensor<3xf32>, tensor<f32>) -> tensor<", Result, "xf32>\n  return %0 : tensor<", Result, "xf32>\n}\n"].

%% JAX broadcasts the initial value to its own shape. It is the identity there, too: the windows need no padded copy, and nothing is combined with them.
window_identity_test_() ->
    [{Name, fun() -> window_identity(Op, Init, Ops) end}
     || {Name, Op, Init, Ops} <- [{"maximum", "maximum", "0xFF800000", [<<"window_max">>]}, {"sum", "add", "0.0", [<<"window_sum">>]},
                                  {"not the identity", "maximum", "0.0", [<<"max">>, <<"pad">>, <<"window_max">>]}]].

window_identity(Op, Init, Ops) ->
    Plain = iolist_to_binary(window(Op, Init, "window_dimensions = array<i64: 2>, padding = dense<[[1, 0]]> : tensor<1x2xi64>", "3")),
    Read = binary:replace(Plain, <<"  %0 =">>, <<"  %k = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<f32>\n  %0 =">>),
    Program = binary:replace(Read, <<"(%x, %c)">>, <<"(%x, %k)">>),
    Text = tessera:to_text(fun(X) -> (tessera_stablehlo:function(Program))([X]) end, [tessera:template(f32, {3})]),
    {match, Found} = re:run(Text, "%[0-9]+ = ([a-z_]+)", [global, {capture, [1], binary}]),
    ?assertEqual(Ops, lists:usort(lists:append(Found)) -- [<<"broadcast">>, <<"constant">>]).

conv(Groups) ->
    ["func.func @main(%x: tensor<4x1x2xf32>, %w: tensor<2x1x1xf32>) -> tensor<2x2x2xf32> {\n"
     "  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1]} "
     "{batch_group_count = ", Groups, " : i64, feature_group_count = 1 : i64} : (tensor<4x1x2xf32>, tensor<2x1x1xf32>) -> tensor<2x2x2xf32>\n"
     "  return %0 : tensor<2x2x2xf32>\n}\n"].

cast(From, To) ->
    ["func.func @main(%x: tensor<", From, ">) -> tensor<", To, "> {\n  %0 = stablehlo.bitcast_convert %x : (tensor<", From, ">) -> tensor<", To, ">\n",
     "  return %0 : tensor<", To, ">\n}\n"].

%% Reductions by affine functions x*a + b. Their order changes the result.
affine(Op, Attributes, Result) ->
    Types = ["(tensor<", Result, "xf32>, tensor<", Result, "xf32>)"],
    Both = ["tensor<", Result, "xf32>, tensor<", Result, "xf32>"],
    ["func.func @main(%x: tensor<5xf32>, %y: tensor<5xf32>) -> ", Types, " {\n  %c = stablehlo.constant dense<1.0> : tensor<f32>\n"
     "  %d = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "  %0:2 = \"stablehlo.", Op, "\"(%x, %y, %c, %d) <{", Attributes, "}> ({\n"
     "  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %e: tensor<f32>, %f: tensor<f32>):\n"
     "    %one = stablehlo.constant dense<1.0> : tensor<f32>\n    %1 = stablehlo.multiply %a, %e : tensor<f32>\n"
     "    %2 = stablehlo.multiply %b, %e : tensor<f32>\n    %3 = func.call @sum(%2, %f) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
     "    %4 = stablehlo.multiply %1, %one : tensor<f32>\n    stablehlo.return %4, %3 : tensor<f32>, tensor<f32>\n"
     "  }) : (tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>) -> ", Types, "\n  return %0#0, %0#1 : ", Both, "\n}\n"
     "func.func private @sum(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.add %x, %y : tensor<f32>\n  return %0 : tensor<f32>\n}\n"].

%% By the first operand, then by the second, and a number of the scope around it.
sort(Shape, Dimension) ->
    T = ["tensor<", Shape, "xi32>"],
    ["func.func @main(%x: ", T, ", %y: ", T, ", %z: ", T, ") -> (", T, ", ", T, ", ", T, ") {\n  %one = stablehlo.constant dense<1> : tensor<i32>\n"
     "  %0:3 = \"stablehlo.sort\"(%x, %y, %z) <{", Dimension, "is_stable = true}> ({\n  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>, "
     "%e: tensor<i32>, %f: tensor<i32>):\n    %1 = stablehlo.multiply %a, %one : tensor<i32>\n"
     "    %2 = stablehlo.compare LT, %1, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "    %3 = stablehlo.compare EQ, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "    %4 = stablehlo.compare LT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "    %5 = stablehlo.and %3, %4 : tensor<i1>\n    %6 = stablehlo.or %2, %5 : tensor<i1>\n    stablehlo.return %6 : tensor<i1>\n"
     "  }) : (", T, ", ", T, ", ", T, ") -> (", T, ", ", T, ", ", T, ")\n  return %0#0, %0#1, %0#2 : ", T, ", ", T, ", ", T, "\n}\n"].

values() ->
    Affine = [tessera:tensor([2.0, 3.0, 4.0, 5.0, 6.0]), tessera:tensor([1.0, 1.0, 1.0, 1.0, 1.0])],
    X = [tessera:tensor([1.0, 2.0, 3.0])],
    [%% around the operand is the initial value, once for each place
     {"a window's sum from 10", X, [[21.0, 13.0, 15.0]],
      window("add", "10.0", "window_dimensions = array<i64: 2>, padding = dense<[[1, 0]]> : tensor<1x2xi64>", "3")},
     {"a window's product from 2", X, [[4.0, 4.0, 12.0, 12.0]],
      window("multiply", "2.0", "window_dimensions = array<i64: 2>, padding = dense<[[1, 1]]> : tensor<1x2xi64>", "4")},
     {"a scan from 10", X, [[31.0, 23.0, 16.0]],
      window("add", "10.0", "window_dimensions = array<i64: 3>, padding = dense<[[2, 0]]> : tensor<1x2xi64>", "3")},
     {"a dilated operand", X, [[1.0, 2.0, 2.0, 3.0]],
      window("add", "0.0", "window_dimensions = array<i64: 2>, base_dilations = array<i64: 2>", "4")},
     {"a dilated operand with minus infinity between", X, [[1.0, 2.0, 2.0, 3.0]],
      window("maximum", "0xFF800000", "window_dimensions = array<i64: 2>, base_dilations = array<i64: 2>", "4")},
     {"a reduction of two operands", Affine, [720.0, 517.0],
      re:replace(affine("reduce", "dimensions = array<i64: 0>", "QQ"), "QQx", "", [global])},
     {"windows of two operands", Affine, [[24.0, 60.0, 120.0], [17.0, 26.0, 37.0]],
      affine("reduce_window", "window_dimensions = array<i64: 3>", "3")},
     {"dilated windows of two operands", Affine, [[8.0, 24.0], [5.0, 7.0]],
      affine("reduce_window", "window_dimensions = array<i64: 2>, window_dilations = array<i64: 2>, window_strides = array<i64: 2>", "2")},
     {"a scan of two operands", Affine, [[2.0, 6.0, 24.0, 120.0, 720.0], [1.0, 4.0, 17.0, 86.0, 517.0]],
      affine("reduce_window", "window_dimensions = array<i64: 5>, padding = dense<[[4, 0]]> : tensor<1x2xi64>", "5")},
     {"windows that do not fit", Affine, [[], []], affine("reduce_window", "window_dimensions = array<i64: 6>", "0")},
     %% Batches 0 and 1 make feature 0. Batches 2 and 3 make feature 1.
     {"groups of the batch", [tessera:tensor([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]], [[7.0, 8.0]]]), tessera:tensor([[[1.0]], [[10.0]]])],
      [[[[1.0, 2.0], [50.0, 60.0]], [[3.0, 4.0], [70.0, 80.0]]]], conv("2")},
     {"the total order", [tessera:tensor([0.0, 1.0, -1.0])], [[1, 1, 0]],
      "func.func @main(%x: tensor<3xf32>) -> tensor<3xi1> {\n  %c = stablehlo.constant dense<[-0.0, 0xFFC00000, 0xFFC00000]> : tensor<3xf32>\n"
      "  %d = stablehlo.constant dense<[0.0, 1.0, 0xFF800000]> : tensor<3xf32>\n"
      "  %0 = stablehlo.compare LT, %c, %x, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>\n"
      "  %1 = stablehlo.compare EQ, %d, %x, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>\n"
      "  %2 = stablehlo.not %1 : tensor<3xi1>\n  %3 = stablehlo.and %0, %1 : tensor<3xi1>\n  %4 = stablehlo.compare EQ, %c, %x, TOTALORDER : "
      "(tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>\n  %5 = stablehlo.or %3, %4 : tensor<3xi1>\n  return %5 : tensor<3xi1>\n}\n"},
     {"a sort by two keys", [tessera:tensor([3, 1, 2, 1, 3, 1, 2], s32), tessera:tensor([5, 6, 4, 2, 1, 2, 4], s32), tessera:tensor([0, 1, 2, 3, 4, 5, 6], s32)],
      [[1, 1, 1, 2, 2, 3, 3], [2, 2, 6, 4, 4, 1, 5], [3, 5, 1, 2, 6, 4, 0]], sort("7", "")},
     {"a sort of lines and columns", [tessera:tensor([[2, 1], [1, 2], [2, 0]], s32), tessera:tensor([[1, 1], [0, 0], [0, 5]], s32), tessera:iota({3, 2}, s32)],
      [[[1, 0], [2, 1], [2, 2]], [[0, 5], [0, 1], [1, 0]], [[2, 5], [4, 1], [0, 3]]], sort("3x2", "dimension = 0 : i64, ")},
     {"a sort of one element", [tessera:tensor([3], s32), tessera:tensor([5], s32), tessera:tensor([7], s32)], [[3], [5], [7]], sort("1", "")},
     {"a transform of nothing", [tessera:broadcast(1.0, {2, 0})], [[[], []]],
      "func.func @main(%x: tensor<2x0xf32>) -> tensor<2x0xcomplex<f32>> {\n  %0 = stablehlo.convert %x : (tensor<2x0xf32>) -> tensor<2x0xcomplex<f32>>\n"
      "  %1 = stablehlo.fft %0, type = FFT, length = [0] : (tensor<2x0xcomplex<f32>>) -> tensor<2x0xcomplex<f32>>\n"
      "  return %1 : tensor<2x0xcomplex<f32>>\n}\n"},
     {"bits as two halves", [tessera:tensor([16#12345678, -1], s32)], [[[16#5678, 16#1234], [16#ffff, 16#ffff]]], cast("2xi32", "2x2xui16")},
     {"bits of two halves", [tessera:tensor([[16#5678, 16#1234], [16#ffff, 16#ffff]], u16)], [[16#12345678, -1]], cast("2x2xui16", "2xi32")},
     {"bits of a float as bytes", [tessera:tensor([1.0])], [[[0, 0, -128, 63]]], cast("1xf32", "1x4xi8")},
     {"bits of bytes as a float", [tessera:tensor([[0, 0, -128, 63]], s8)], [[1.0]], cast("1x4xi8", "1xf32")}].

%% ---- texts that are refused

main(Body, Result) ->
    iolist_to_binary(["func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  ", Body, "\n  return ", Result, " : tensor<2xf32>\n}\n"]).

%% As many regions as a text may have, one in another. Attributes count from the region that they are in.
branches(Depth, Attribute) ->
    Branch = fun(I, Inner) ->
                     Name = integer_to_list(I),
                     ["  %r", Name, " = \"stablehlo.if\"(%c) ({\n", Inner, "  stablehlo.return %r", integer_to_list(I - 1), " : tensor<f32>\n}, {\n"
                      "  stablehlo.return %x : tensor<f32>\n}) : (tensor<i1>) -> tensor<f32>\n"]
             end,
    Body = lists:foldl(Branch, ["  %r0 = stablehlo.add %x, %x {note = ", Attribute, "} : tensor<f32>\n"], lists:seq(1, Depth)),
    iolist_to_binary(["func.func @main(%x: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {\n", Body, "  return %r", integer_to_list(Depth), " : tensor<f32>\n}\n"]).

nested_test_() ->
    Lists = fun(Count) -> [lists:duplicate(Count, $[), "0", lists:duplicate(Count, $])] end,
    Type = fun(Count) -> [lists:duplicate(Count, "tuple<"), "tensor<f32>", lists:duplicate(Count, ">")] end,
    Function = fun(Text) -> tessera_stablehlo:function(iolist_to_binary(Text)) end,
    Loop = fun(I, Inner) ->
                   Name = integer_to_list(I),
                   ["  %w", Name, " = stablehlo.while(%a", Name, " = %x) : tensor<f32> cond {\n  stablehlo.return %c : tensor<i1>\n} do {\n", Inner,
                    "  stablehlo.return %w", integer_to_list(I - 1), " : tensor<f32>\n}\n"]
           end,
    [{timeout, 120,
      fun() ->
              F = tessera_stablehlo:function(branches(70, Lists(60))),
              Run = fun(Condition) -> [Y] = F([tessera:tensor(3.0, f32), tessera:tensor(Condition, u8)]), tessera:to_number(Y) end,
              ?assertEqual([6.0, 3.0], [Run(1), Run(0)])
      end},
     {timeout, 120, fun() -> ?assert(is_function(tessera_stablehlo:function(branches(1000, Lists(60))))) end},
     {timeout, 120, %% many in an artifact: branches(199, "0") without the note
      fun() ->
              {ok, Bytes} = file:read_file(filename:join(["test", "fuzz", "corpus", "fuzz_bytecode", "nested_branches"])),
              ?assert(is_function(tessera_stablehlo:function(Bytes)))
      end},
     {timeout, 120,
      fun() ->
              Loops = lists:foldl(Loop, "  %w0 = stablehlo.add %x, %x : tensor<f32>\n", lists:seq(1, 1000)),
              ?assert(is_function(Function(["func.func @main(%x: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {\n", Loops, "  return %w1000 : tensor<f32>\n}\n"])))
      end},
     fun() -> tessera_test:raises(invalid_argument, "regions are nested too deep", fun() -> tessera_stablehlo:function(branches(1008, "0")) end) end,
     [fun() -> tessera_test:raises(invalid_argument, "attributes are nested too deep", fun() -> tessera_stablehlo:function(branches(Depth, Lists(70))) end) end
      || Depth <- [0, 6, 70]],
     fun() -> ?assert(is_function(Function(["func.func private @f(%t: ", Type(60), ")\nfunc.func @main(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}"]))) end].

refused_test_() ->
    [{atom_to_list(Code) ++ ": " ++ Words, fun() -> tessera_test:raises(Code, Words, fun() -> tessera_stablehlo:function(iolist_to_binary(Text)) end) end}
     || {Code, Words, Text} <- refused()].

refused() ->
    [{invalid_argument, "expected a function", ""},
     {invalid_argument, "expected '}'", "module @m {"},
     {invalid_argument, "no function @main", "func.func @a() -> tensor<f32> {\n return %x : tensor<f32>\n}\nfunc.func @b() -> tensor<f32> {\n return %x : tensor<f32>\n}"},
     {invalid_argument, "one module", "module { func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> } }\nmodule {}"},
     {unimplemented, "line 2, column 8: stablehlo.nothing: Tessera has no such op", main("%0 = stablehlo.nothing %x : tensor<2xf32>", "%0")},
     {unimplemented, "tosa.add", main("%0 = \"tosa.add\"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>", "%0")},
     {invalid_argument, "defined before, found 'y'", main("%0 = stablehlo.add %x, %y : tensor<2xf32>", "%0")},
     {invalid_argument, "a new name", main("%x = stablehlo.add %x, %x : tensor<2xf32>", "%x")},
     {invalid_argument, "it has 1 operands, expected 2", main("%0 = stablehlo.add %x : tensor<2xf32>", "%0")},
     {invalid_argument, "its result is f32[2], and the text says f32[3]", main("%0 = stablehlo.add %x, %x : tensor<3xf32>", "%0")},
     {invalid_argument, "it has 2 results", main("%0:2 = stablehlo.add %x, %x : tensor<2xf32>", "%0#0")},
     {invalid_argument, "more elements", main("%0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>", "%0")},
     {invalid_argument, "has 1 elements, and its type has 2", main("%0 = stablehlo.constant dense<[1.0]> : tensor<2xf32>", "%0")},
     {invalid_argument, "expected 8 bytes", main("%0 = stablehlo.constant dense<\"0x0000\"> : tensor<2xf32>", "%0")},
     {invalid_argument, "a number of type f32", main("%0 = stablehlo.constant dense<x> : tensor<2xf32>", "%0")},
     {out_of_range, "too large", "func.func @main(%x: tensor<99999999999999999999xf32>) -> tensor<f32> {"},
     {out_of_range, "", "func.func @main(%x: tensor<4294967296x4294967296xf32>) -> tensor<f32> {"},
     {invalid_argument, "the sizes of a constant are not known", main("%0 = stablehlo.constant dense<1.0> : tensor<?xf32>", "%0")},
     {unimplemented, "no tensor has such elements", "func.func @main(%x: tensor<2xf9>) -> tensor<f32> {"},
     {invalid_argument, "call each other", "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>\n return %0 : tensor<f32>\n}"},
     {invalid_argument, "there is no function @f", main("%0 = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>", "%0")},
     {invalid_argument, "nested too deep", ["func.func @main() -> tensor<f32> { %0 = stablehlo.add ", lists:duplicate(1000000, $[)]},
     {invalid_argument, "expected ')'", ["func.func @main(%x: tensor<f32> loc(", lists:duplicate(1000000, $()]},
     {invalid_argument, "nested too deep", ["func.func @main(%x: tensor<f32>) -> tensor<f32> {\n", [["%", integer_to_list(I), " = \"stablehlo.case\"(%x) ({\n"] || I <- lists:seq(1, 1100)]]},
     {invalid_argument, "call each other", ["func.func @main(%x: tensor<f32>) -> tensor<f32> {\n %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>\n return %0 : tensor<f32>\n}\n"
                                            "func.func private @f(%x: tensor<f32>) -> tensor<f32> {\n %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>\n"
                                            " return %0 : tensor<f32>\n}"]},
     {unimplemented, "cannot be read in its pretty form, found 'chlo.scan'",
      main("%0:2 = chlo.scan(%x) inits(%x) dimension=0 {\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n", "%0#0")},
     {unimplemented, "scatter", main("%0 = \"stablehlo.scatter\"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>", "%0")},
     {unimplemented, "the target f+g is not known", main("%0 = stablehlo.custom_call @\"f+g\"(%x) : (tensor<2xf32>) -> tensor<2xf32>", "%0")}] ++
        other_counts() ++ odd_reducers() ++ shared_regions().

%% The pretty form of a reduction has two parameters of each operand.
odd_reducers() ->
    [{invalid_argument, "its reducer does not take two numbers of each operand",
      main(["%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "  %0 = stablehlo.reduce(%x init: %c) across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>\n"
            "   reducer", Reducer, " {\n    stablehlo.return %a : tensor<f32>\n  }"], "%0")}
     || Reducer <- ["(%a: tensor<f32>)", "(%a: tensor<f32>, %b: tensor<f32>, %d: tensor<f32>)", "(%a: tensor<f32>, %b: tensor<f32>) (%d: tensor<f32>)"]].

%% A region of one type that several operands share.
shared_regions() ->
    Sum = "({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %s = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  })",
    [{Code, Words, ["func.func @main(%x: tensor<f32>, %y: tensor<", Type, ">) -> tensor<f32> {\n  %r:2 = \"stablehlo.all_reduce\"(", Operands, ") ", Sum,
                    " {replica_groups = dense<0> : tensor<1x1xi64>} : (", Types, ") -> (", Types, ")\n  return %x : tensor<f32>\n}"]}
     || {Code, Words, Type} <- [{invalid_argument, "parameter 0 of a region is f32[], expected s32[]", "i32"},
                               {unimplemented, "a region of wider numbers", "f16"}],
        {Operands, Types} <- [{"%x, %y", ["tensor<f32>, tensor<", Type, ">"]}, {"%y, %x", ["tensor<", Type, ">, tensor<f32>"]}]].

%% Regions with other parameters than the op gives them, or other results than it takes.
region_test_() ->
    [{Op ++ ": " ++ Words, fun() -> tessera_test:raises(Code, Words, fun() -> tessera_stablehlo:function(region_text(Op, Middle, Region, Types)) end) end}
     || {Op, Middle, Types, Regions} <- region_ops(), {Code, Words, Region} <- Regions].

region_text(Op, Middle, Region, Types) ->
    iolist_to_binary(["func.func @main(%x: tensor<2xf32>, %z: tensor<f32>, %i: tensor<i32>, %b: tensor<i1>, %j: tensor<1xi32>) -> tensor<2xf32> {\n"
                      "  %r = \"stablehlo.", Op, "\"", Middle, Region, " : ", Types, "\n  return %x : tensor<2xf32>\n}\n"]).

%% Regions with these parameters, ops and results.
regions(Regions) -> ["(", lists:join(", ", [["{\n", region(Region), "}"] || Region <- Regions]), ")"].

region({Params, Ops, Results}) ->
    Names = [["%p", integer_to_list(I), ": tensor<", Param, ">"] || {I, Param} <- lists:zip(lists:seq(1, length(Params)), Params)],
    [[["^bb0(", lists:join(", ", Names), "):\n"] || Params =/= []], [[Op, "\n"] || Op <- Ops], "stablehlo.return ", lists:join(", ", [Name || {Name, _} <- Results]),
     " : ", lists:join(", ", [["tensor<", Type, ">"] || {_, Type} <- Results]), "\n"].

region_ops() ->
    Sum = fun(Type) -> {[Type, Type], ["%s = stablehlo.add %p1, %p2 : tensor<" ++ Type ++ ">"], [{"%s", Type}]} end,
    Less = fun(Type) -> {[Type, Type], ["%s = stablehlo.compare LT, %p1, %p2 : (tensor<" ++ Type ++ ">, tensor<" ++ Type ++ ">) -> tensor<i1>"], [{"%s", "i1"}]} end,
    One = {["f32"], [], [{"%p1", "f32"}]}, Three = {["f32", "f32", "f32"], [], [{"%p1", "f32"}]}, Two = {["f32", "f32"], [], [{"%p1", "f32"}, {"%p2", "f32"}]},
    Is = fun(Type) -> "parameter 0 of a region is " ++ Type end,
    Folds = [{invalid_argument, "expected a region that takes two numbers and returns one", regions([Region])} || Region <- [One, Three, Two]] ++
        [{invalid_argument, Is("s32[], expected f32[]"), regions([Sum("i32")])}, {invalid_argument, Is("f32[2], expected f32[]"), regions([Sum("2xf32")])},
         {unimplemented, "a region of wider numbers", regions([Sum("f64")])}, {invalid_argument, "", regions([Less("f32")])}],
    Loop = fun(Condition, Body) -> regions([{[Condition], [], [{"%b", "i1"}]}, {[Body], [], [{"%p1", Body}]}]) end,
    Numbers = "<{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ",
    Windows = "(%x, %z) <{window_dimensions = array<i64: 1>}> ",
    [{"reduce", "(%x, %z) <{dimensions = array<i64: 0>}> ", "(tensor<2xf32>, tensor<f32>) -> tensor<f32>", [{invalid_argument, "expected a region", ""} | Folds]},
     {"all_reduce", "(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ", "(tensor<2xf32>) -> tensor<2xf32>", lists:droplast(Folds)}, %% of one process: nothing is combined
     {"scatter", "(%x, %j, %z) " ++ Numbers, "(tensor<2xf32>, tensor<1xi32>, tensor<f32>) -> tensor<2xf32>", Folds},
     {"reduce_window", Windows, "(tensor<2xf32>, tensor<f32>) -> tensor<2xf32>",
      [{invalid_argument, "its region does not take 2 and give 1 values", regions([One])}, {invalid_argument, Is("s32[], expected f32[]"), regions([Sum("i32")])},
       {invalid_argument, "expected a region", ""}]},
     {"sort", "(%x) <{dimension = 0 : i64}> ", "(tensor<2xf32>) -> tensor<2xf32>",
      [{invalid_argument, "does not take pairs", regions([{["f32"], [], [{"%b", "i1"}]}])}, {invalid_argument, Is("s32[], expected f32[]"), regions([Less("i32")])},
       {invalid_argument, "", regions([{["f32", "f32"], [], [{"%p1", "f32"}]}])}, {invalid_argument, "expected a region", ""}]},
     {"map", "(%x) <{dimensions = array<i64: 0>}> ", "(tensor<2xf32>) -> tensor<2xf32>",
      [{invalid_argument, "takes other than 1 numbers", regions([Three])}, {invalid_argument, Is("s32[], expected f32[]"), regions([{["i32"], [], [{"%p1", "i32"}]}])},
       {invalid_argument, Is("f32[2], expected f32[]"), regions([{["2xf32"], [], [{"%p1", "2xf32"}]}])}]},
     {"select_and_scatter", "(%x, %x, %z) <{window_dimensions = array<i64: 1>}> ", "(tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>",
      [{invalid_argument, Is("s32[], expected f32[]"), regions([Less("i32"), Sum("i32")])},
       {invalid_argument, Is("u8[] of truth values, expected f32[]"), regions([Less("f32"), Sum("i1")])}]},
     {"while", "(%x) ", "(tensor<2xf32>) -> tensor<2xf32>",
      [{invalid_argument, "a region has 2 parameters, expected 1", regions([{["2xf32", "f32"], [], [{"%b", "i1"}]}, {["2xf32"], [], [{"%p1", "2xf32"}]}])},
       {invalid_argument, Is("f32[3], expected f32[2]"), Loop("3xf32", "2xf32")}, {invalid_argument, Is("s32[2], expected f32[2]"), Loop("2xf32", "2xi32")},
       {invalid_argument, "result 0 of the body is s32[]", regions([{["2xf32"], [], [{"%b", "i1"}]}, {["2xf32"], [], [{"%i", "i32"}]}])},
       {invalid_argument, "the condition gives f32[2]", regions([{["2xf32"], [], [{"%p1", "2xf32"}]}, {["2xf32"], [], [{"%p1", "2xf32"}]}])},
       {invalid_argument, "expected two regions", regions([{["2xf32"], [], [{"%b", "i1"}]}])}]},
     {"case", "(%i) ", "(tensor<i32>) -> tensor<2xf32>",
      [{invalid_argument, "region 0 has parameters", regions([{["i32"], [], [{"%x", "2xf32"}]}])}, {invalid_argument, "it has 0 regions", ""},
       {invalid_argument, "its result is s32[], and the text says f32[2]", regions([{[], [], [{"%i", "i32"}]}])}]}].

%% Ops with other numbers of operands and results than they have.
other_counts() ->
    Sum = "({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %s = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  })",
    Nothing = fun(Op, Types) -> main([Op, " : (", Types, ") -> ()"], "%x") end,
    Zero = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n  ",
    [{invalid_argument, "bitcast_convert: it has no result", Nothing("\"stablehlo.bitcast_convert\"(%x)", "tensor<2xf32>")},
     {invalid_argument, "composite: it has no result", Nothing("\"stablehlo.composite\"(%x) {name = \"chlo.erf\"}", "tensor<2xf32>")},
     {invalid_argument, "reduce: it has no result",
      Nothing([Zero, "\"stablehlo.reduce\"(%x, %z) <{dimensions = array<i64: 0>}> ", Sum], "tensor<2xf32>, tensor<f32>")},
     {invalid_argument, "reduce_window: it has no result",
      Nothing([Zero, "\"stablehlo.reduce_window\"(%x, %z) <{window_dimensions = array<i64: 1>}> ", Sum], "tensor<2xf32>, tensor<f32>")},
     {invalid_argument, "bitcast_convert: it has 0 operands, expected 1",
      "func.func @main() -> tensor<f32> {\n  %0 = \"stablehlo.bitcast_convert\"() : () -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"},
     {invalid_argument, "reduce: it has 0 operands and 1 results",
      ["func.func @main() -> tensor<f32> {\n  %0 = \"stablehlo.reduce\"() <{dimensions = array<i64: 0>}> ", Sum, " : () -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"]}].

%% ---- bytecode that is refused

bytes(Name) ->
    {ok, Bytes} = file:read_file(data(Name)),
    Bytes.

refused_bytecode_test_() ->
    <<Magic:4/binary, _Version, Rest/binary>> = bytes("mlp.vhlo"),
    [{Words, fun() -> tessera_test:raises(Code, Words, fun() -> tessera_stablehlo:function(Bytes) end) end}
     || {Code, Words, Bytes} <-
            [{unimplemented, "byte 4: version 7 of the bytecode is not known, expected at most 6", <<Magic/binary, 15, Rest/binary>>},
             {invalid_argument, "byte 4: the file ends", Magic},
             {unimplemented, "line 1, column 1: expected a function", <<"ML", 16#ef, "S", Rest/binary>>},
             {invalid_argument, "has no section 0", <<Magic/binary, 13, 0>>},
             {invalid_argument, "section 99 is not known", <<Magic/binary, 13, 0, 99, 1>>},
             {invalid_argument, "a list of 127 is longer", <<Magic/binary, 13, 0, 0, 255>>}]] ++
        [{"an op of a later version", fun() ->
                 tessera_test:raises(unimplemented, "its properties are not known", fun() ->
                         tessera_stablehlo:function(other_name(<<"constant_v1">>, <<"constant_v9">>, "lstm.vhlo")) end) end},
         {"an op that StableHLO lacks", fun() ->
                 tessera_test:raises(unimplemented, "stablehlo.adx: Tessera has no such op", fun() ->
                         tessera_stablehlo:function(other_name(<<"add_v1">>, <<"adx_v1">>, "lstm.vhlo")) end) end},
         %% the value of mhlo.backend_config is the attribute with a function's type
         {"a type as a dictionary", fun() ->
                 tessera_test:raises(unimplemented, "uplo is other than one of LU", fun() ->
                         tessera_stablehlo:function(other_name(<<7, 75, 197>>, <<7, 75, 175>>, "linalg/cholesky.vhlo")) end) end}].

%% The file with another name or number of equal length, as a later version of the format may have.
other_name(From, To, Name) -> binary:replace(bytes(Name), From, To).

%% A file that is cut anywhere, or has another byte anywhere, is read or refused, and leaves no memory.
broken_bytecode_test_() ->
    {timeout, 60,
     fun() ->
             Bytes = bytes("control.vhlo"),
             tessera_test:leaves_no_blocks(
               fun() ->
                       [?assertError({Code, _} when is_atom(Code), tessera_stablehlo:function(binary:part(Bytes, 0, Size)))
                        || Size <- lists:seq(0, byte_size(Bytes) - 1, 13)],
                       [try tessera_stablehlo:function(<<(binary:part(Bytes, 0, At))/binary, Byte, (binary:part(Bytes, At + 1, byte_size(Bytes) - At - 1))/binary>>)
                        catch error:{Code, _} when is_atom(Code) -> refused
                        end || At <- lists:seq(4, byte_size(Bytes) - 1), Byte <- [0, 1, 255]]
               end)
     end}.

%% Functions that call the next one twice would make 2^n ops.
growth_test_() ->
    {timeout, 120,
     fun() ->
             Calls = [["func.func private @f", integer_to_list(I), "(%x: tensor<f32>) -> tensor<f32> {\n %0 = call @f", integer_to_list(I + 1),
                       "(%x) : (tensor<f32>) -> tensor<f32>\n %1 = call @f", integer_to_list(I + 1),
                       "(%0) : (tensor<f32>) -> tensor<f32>\n return %1 : tensor<f32>\n}\n"] || I <- lists:seq(1, 40)],
             Text = ["func.func @main(%x: tensor<f32>) -> tensor<f32> {\n %0 = call @f1(%x) : (tensor<f32>) -> tensor<f32>\n return %0 : tensor<f32>\n}\n",
                     Calls, "func.func private @f41(%x: tensor<f32>) -> tensor<f32> {\n %0 = stablehlo.tanh %x : tensor<f32>\n return %0 : tensor<f32>\n}\n"],
             tessera_test:raises(resource_exhausted, "a program has at most", fun() -> tessera_stablehlo:function(iolist_to_binary(Text)) end)
     end}.

%% A file that is cut anywhere is refused, and takes no memory.
cut_test() ->
    {ok, Text} = file:read_file(data("control.mlir")),
    Sizes = lists:seq(0, byte_size(Text) - 2000, 61),
    tessera_test:leaves_no_blocks(fun() -> [?assertError({Code, _} when is_atom(Code), tessera_stablehlo:function(binary:part(Text, 0, Size))) || Size <- Sizes] end).
