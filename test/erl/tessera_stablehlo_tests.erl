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
    tessera_test:raises(invalid_argument, "expected '>'", fun() -> tessera_stablehlo:function(<<"sdy.mesh @m = <[">>) end).

%% ---- texts that are refused

main(Body, Result) ->
    iolist_to_binary(["func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  ", Body, "\n  return ", Result, " : tensor<2xf32>\n}\n"]).

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
     {unimplemented, "sizes that are not known", "func.func @main(%x: tensor<?xf32>) -> tensor<f32> {"},
     {unimplemented, "no tensor has such elements", "func.func @main(%x: tensor<2xf9>) -> tensor<f32> {"},
     {invalid_argument, "call each other", "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>\n return %0 : tensor<f32>\n}"},
     {invalid_argument, "there is no function @f", main("%0 = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>", "%0")},
     {invalid_argument, "nested too deep", ["func.func @main() -> tensor<f32> { %0 = stablehlo.add ", lists:duplicate(1000000, $[)]},
     {invalid_argument, "expected ')'", ["func.func @main(%x: tensor<f32> loc(", lists:duplicate(1000000, $()]},
     {invalid_argument, "nested too deep", ["func.func @main(%x: tensor<f32>) -> tensor<f32> {\n", [["%", integer_to_list(I), " = \"stablehlo.case\"(%x) ({\n"] || I <- lists:seq(1, 300)]]},
     {unimplemented, "scatter", main("%0 = \"stablehlo.scatter\"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>", "%0")},
     {unimplemented, "the target f is not known", main("%0 = stablehlo.custom_call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>", "%0")}].

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
    Before = tessera_nif:live_blocks(),
    Sizes = lists:seq(0, byte_size(Text) - 2000, 61),
    [?assertError({Code, _} when is_atom(Code), tessera_stablehlo:function(binary:part(Text, 0, Size))) || Size <- Sizes],
    true = erlang:garbage_collect(),
    ?assertEqual(Before, tessera_nif:live_blocks()).
