%% The lines that a profile names for programs of StableHLO: locations of MLIR in texts and in bytecode, in each of their forms, also hostile ones.
%% test/stablehlo/lines/lines.py makes the two files beside it of a program of JAX.
-module(tessera_stablehlo_lines_tests).
-include_lib("eunit/include/eunit.hrl").

-define(QUIET, #{speed => false}).

on_host(Test) -> fun() -> tessera_eunit:on_host(Test) end.

numbers() -> tessera:iota({5000}, f32).

%% The lines of the only step with that op, of one call of the module.
lines(Text, Op) -> lines_of(tessera_stablehlo:function(iolist_to_binary(Text)), [numbers()], Op).

lines_of(F, Arguments, Op) ->
    {_, #{programs := [#{steps := Steps}]}} = tessera:profile(fun() -> F(Arguments) end, [], ?QUIET),
    [Lines] = [Lines || #{ops := Ops, launch := -1, lines := Lines} <- Steps, lists:member(Op, string:split(Ops, ", ", all))],
    Lines.

%% One op with that location, and aliases after the function.
module(Location, Aliases) ->
    ["module {\n  func.func public @main(%x: tensor<5000xf32>) -> tensor<5000xf32> {\n"
     "    %0 = stablehlo.exponential %x : tensor<5000xf32>", Location, "\n    return %0 : tensor<5000xf32> loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n",
     Aliases, "#loc = loc(unknown)\n"].

text_test_() ->
    [{Location, on_host(fun() -> ?assertEqual([Line], lines(module([" ", Location], Aliases), <<"exp">>)) end)}
     || {Location, Aliases, Line} <-
            [{"loc(\"a.py\":12:4)", "", {stablehlo, <<>>, "a.py", 12}},
             {"loc(\"a.py\":12:4 to :9)", "", {stablehlo, <<>>, "a.py", 12}},
             {"loc(\"a.py\":12:4 to 13:9)", "", {stablehlo, <<>>, "a.py", 12}},
             {"loc(\"jit(f)/exp\"(\"layer\"(\"a.py\":12:4)))", "", {stablehlo, <<"layer">>, "a.py", 12}},
             {"loc(\"model/Exp\")", "", {stablehlo, <<"model/Exp">>, undefined, 0}},
             {"loc(callsite(\"f\"(\"a.py\":1:2) at \"g\"(\"b.py\":3:4)))", "", {stablehlo, <<"f">>, "a.py", 1}},
             {"loc(callsite(unknown at \"b.py\":3:4))", "", {stablehlo, <<>>, "b.py", 3}},
             {"loc(fused[unknown, \"a.py\":1:2, \"b.py\":3:4])", "", {stablehlo, <<>>, "a.py", 1}},
             {"loc(fused<#any<[1, {b = \"c\"}]>>[\"a.py\":1:2])", "", {stablehlo, <<>>, "a.py", 1}},
             {"loc(fused<\"pass\">[\"a.py\":1:2])", "", {stablehlo, <<>>, "a.py", 1}},
             {"loc(#loc7)", "#loc1 = loc(\"a.py\":12:4)\n#loc4 = loc(\"f\"(#loc1))\n#loc7 = loc(callsite(#loc4 at #loc1))\n", {stablehlo, <<"f">>, "a.py", 12}},
             {"loc(\"C:\\\\a \\22b\\22.py\":7:1)", "", {stablehlo, <<>>, "C:\\a \"b\".py", 7}},
             {"loc(\"\\C3\\A9.py\":7:1)", "", {stablehlo, <<>>, [16#e9 | ".py"], 7}},
             {"loc(\"\\FF\\1B[31m.py\":7:1)", "", {stablehlo, <<>>, [16#ff | "[31m.py"], 7}}]].

%% Without a location an op is on its own line of the text; an unknown location has none, and the step has the line of the call.
without_test_() ->
    [on_host(fun() -> ?assertEqual([{stablehlo, <<>>, "stablehlo", 3}], lines(module("", ""), <<"exp">>)) end),
     on_host(fun() -> ?assertMatch([{?MODULE, _, _, _, _}], lines(module(" loc(unknown)", ""), <<"exp">>)) end),
     on_host(fun() -> ?assertMatch([{?MODULE, _, _, _, _}], lines(module(" loc(#no_such)", ""), <<"exp">>)) end),
     on_host(fun() -> ?assertMatch([{?MODULE, _, _, _, _}], lines(module(" loc(#loc1)", "#loc1 = loc(#loc2)\n#loc2 = loc(callsite(#loc1 at #loc2))\n"), <<"exp">>)) end),
     on_host(fun() -> ?assertMatch([{?MODULE, _, _, _, _}], lines(module([" loc(", lists:duplicate(1000, "callsite("), "unknown", lists:duplicate(1000, " at \"a.py\":1:2)"), ")"], ""), <<"exp">>)) end)].

%% A function that is called, and the regions of a loop: the innermost line. A fusion has the lines of all its ops.
inner_test_() ->
    Text = "func.func private @f(%x: tensor<5000xf32>) -> tensor<5000xf32> {\n"
           "  %0 = stablehlo.tanh %x : tensor<5000xf32> loc(\"f.py\":2:1)\n"
           "  %1 = stablehlo.negate %0 : tensor<5000xf32> loc(unknown)\n"
           "  return %1 : tensor<5000xf32>\n}\n"
           "func.func @main(%x: tensor<5000xf32>) -> tensor<5000xf32> {\n"
           "  %0 = stablehlo.exponential %x : tensor<5000xf32> loc(\"main.py\":8:1)\n"
           "  %1 = func.call @f(%0) : (tensor<5000xf32>) -> tensor<5000xf32> loc(\"main.py\":9:1)\n"
           "  return %1 : tensor<5000xf32>\n}\n",
    on_host(fun() ->
        ?assertEqual([{"main.py", 8}, {"f.py", 2}, {"main.py", 9}], [{File, Line} || {stablehlo, _, File, Line} <- lines(Text, <<"tanh">>)])
    end).

%% A program of JAX: from its text and from its artifact, also if it has run before, in a program of others, and in its gradient.
jax_test_() ->
    Files = [filename:join(["test", "stablehlo", "lines", "lines." ++ Ending]) || Ending <- ["mlir", "vhlo"]],
    [{File, on_host(fun() -> jax(File) end)} || File <- Files].

jax(File) ->
    F = tessera_stablehlo:load(File),
    X = tessera:iota({64, 32}, f32),
    W = tessera:ones({32, 16}, f32),
    Layer = {stablehlo, <<"layer">>, 12},
    Model = {stablehlo, <<"model">>, 17},
    Expected = fun(Lines) -> [{Kind, Name, Line} || {Kind, Name, Path, Line} <- Lines, filename:basename(Path) =:= "lines.py"] end,
    ?assert(lists:member(Layer, Expected(lines_of(F, [X, W], <<"tanh">>)))),
    ?assertEqual([Model], Expected(lines_of(F, [X, W], <<"sort">>))),
    Jit = tessera:jit(fun(A, B) -> [Y] = F([A, B]), tessera:sum(Y) end),
    _ = Jit(X, W),
    {_, #{programs := [#{steps := Steps}]} = Profile} = tessera:profile(Jit, [X, W], ?QUIET),
    ?assert(lists:member(Layer, Expected(lists:append([Lines || #{lines := Lines} <- Steps])))),
    Grad = tessera:grad(fun(B) -> [Y] = F([X, B]), tessera:sum(Y) end),
    {_, #{programs := Programs}} = tessera:profile(Grad, [W], ?QUIET),
    ?assert(lists:member(Layer, Expected(lists:append([Lines || #{steps := Own} <- Programs, #{lines := Lines} <- Own])))),
    [?assertMatch({_, _}, binary:match(Shown, <<"lines.py:11, 12">>))
     || Shown <- [tessera_profile:table(Profile), tessera_profile:chrome_trace(Profile), tessera_profile:flame_graph(Profile)]].
