%% Names of arguments and results of programs of StableHLO. test/stablehlo/names.py says how JAX made the files of test/stablehlo/names.
-module(tessera_stablehlo_names_tests).
-include_lib("eunit/include/eunit.hrl").

data(Name) -> filename:join(["test", "stablehlo", "names", Name]).

read(Name) ->
    {ok, Text} = file:read_file(data(Name)),
    Text.

row(X, Y) -> tessera:tensor([X, Y], f32).

lists(Container) when is_map(Container) -> maps:map(fun(_, Value) -> lists(Value) end, Container);
lists(Container) when is_tuple(Container), element(1, Container) =/= tessera -> list_to_tuple([lists(Value) || Value <- tuple_to_list(Container)]);
lists(Container) when is_list(Container) -> [lists(Value) || Value <- Container];
lists(Tensor) -> tessera:to_list(Tensor).

%% ---- signatures

%% The text, the artifact and what serialize() returns say the same.
signature_test() ->
    Paths = fun(Name) -> #{inputs := Inputs, outputs := Outputs} = tessera_stablehlo:signature(read(Name)),
                         {[Path || #{path := Path} <- Inputs], [Path || #{path := Path} <- Outputs]}
            end,
    Expected = {[[<<"weights">>, <<"it's">>, 0], [<<"weights">>, <<"layer">>, <<"kernel">>], [<<"weights">>, <<"layer">>, <<"bias">>],
                 [<<"weights">>, <<"odd">>, <<"('t', 1)">>], [<<"pair">>, <<"first">>], [<<"pair">>, <<"second">>], [<<"more">>, 0], [<<"more">>, 1, 0],
                 [<<"more">>, 1, 1], [<<"scale">>]],
                [[<<"aux">>, 0], [<<"aux">>, 1, 0], [<<"ke\\y é"/utf8>>], [<<"out">>], [<<"pair">>, <<"first">>], [<<"pair">>, <<"second">>]]},
    [?assertEqual(Expected, Paths("containers" ++ Form)) || Form <- [".mlir", ".vhlo"]],
    [?assertEqual({[[<<"x">>]], [[]]}, Paths("single" ++ Form)) || Form <- [".mlir", ".vhlo", ".exported"]],
    [?assertEqual({[[<<"xs">>, 0], [<<"xs">>, 1]], [[0], [2]]}, Paths("numbered" ++ Form)) || Form <- [".mlir", ".vhlo", ".exported"]].

%% The names are those of the function that @main calls, where sizes are symbols.
symbols_test() ->
    [?assertEqual(#{inputs => [#{name => <<"weights['b']">>, path => [<<"weights">>, <<"b">>], type => f32, shape => {3}},
                               #{name => <<"weights['w']">>, path => [<<"weights">>, <<"w">>], type => f32, shape => {2, 3}},
                               #{name => <<"x">>, path => [<<"x">>], type => f32, shape => {any, 2}}],
                    outputs => [#{name => <<"result">>, path => [], type => f32, shape => {any, 3}}]},
                  tessera_stablehlo:signature(read("network" ++ Form))) || Form <- [".mlir", ".vhlo", ".exported"]].

%% An argument with this location, and a result with this attribute.
module(Location, Attribute) ->
    iolist_to_binary(["func.func @main(%x: tensor<i1>", Location, ") -> (tensor<i1>", Attribute, ") {\n  return %x : tensor<i1>\n}"]).

located(Location) -> #{inputs := [#{name := Name, path := Path}]} = tessera_stablehlo:signature(module([" loc(", Location, ")"], "")), {Name, Path}.

named(Name) -> element(2, located(["\"", Name, "\""])).

returned(Name) -> #{outputs := [#{path := Path}]} = tessera_stablehlo:signature(module("", [" {jax.result_info = \"", Name, "\"}"])), Path.

forms_test() ->
    None = #{name => undefined, path => [], type => u8, shape => {}},
    ?assertEqual(#{inputs => [None], outputs => [None]}, tessera_stablehlo:signature(module("", ""))),
    [?assertEqual({undefined, []}, located(Location)) || Location <- ["unknown", "\"\"", "\"model.py\":3:4", "callsite(\"x\" at \"y\")", ["\"", lists:duplicate(1025, $x), "\""]]],
    [?assertEqual({<<"x">>, [<<"x">>]}, located(Location)) || Location <- ["\"x\"", "\"x\"(\"model.py\":3:4)", "\"x\"(callsite(\"f\"(\"a.py\":1:1) at \"g\"))"]].

%% A location may refer to others, and to itself.
aliases_test() ->
    Name = fun(Aliases) ->
                   Text = iolist_to_binary(["#loc1 = loc(\"x\")\n", module(" loc(#loc2)", ""), "\n", Aliases]),
                   #{inputs := [#{name := Found}]} = tessera_stablehlo:signature(Text),
                   Found
           end,
    ?assertEqual(<<"x">>, Name("#loc2 = loc(#loc1)\n")),
    ?assertEqual(undefined, Name("#loc2 = loc(#loc3)\n#loc3 = loc(#loc2)\n")),
    ?assertEqual(undefined, Name("")).

paths_test() ->
    [?assertEqual(Path, named(Name))
     || {Name, Path} <-
            [{"x", [<<"x">>]}, {"a.b.c", [<<"a">>, <<"b">>, <<"c">>]}, {"a[0][12]", [<<"a">>, 0, 12]}, {"a[-1]", [<<"a">>, <<"-1">>]},
             {"a['b.c[0]']", [<<"a">>, <<"b.c[0]">>]}, {"a['it\\5C's']", [<<"a">>, <<"it's">>]}, {"a['\\5Cn\\5Ct\\5Cr\\5C\\5C']", [<<"a">>, <<"\n\t\r\\">>]},
             {"a['\\5Cxe9\\5Cu20ac\\5CU0001f600']", [<<"a">>, <<"é€😀"/utf8>>]}, {"a[('t', 1)]", [<<"a">>, <<"('t', 1)">>]},
             {"a[(']', [1])].b", [<<"a">>, <<"(']', [1])">>, <<"b">>]}, {"a[<flat index 3>]", [<<"a">>, 3]}, {"a[None]", [<<"a">>, <<"None">>]},
             %% What is no path is one key.
             {"a['b'", [<<"a['b'">>]}, {"a['b", [<<"a['b">>]}, {"a[1", [<<"a[1">>]}, {"a[1]b", [<<"a[1]b">>]}, {"a['\\5Cxzz']", [<<"a['\\xzz']">>]},
             {"a['\\5CUffffffff']", [<<"a['\\Uffffffff']">>]}, {"a['\\FF']", [<<"a['", 255, "']">>]}, {"a[<flat index x>]", [<<"a[<flat index x>]">>]},
             {"a[('b]", [<<"a[('b]">>]}]],
    [?assertEqual(Path, returned(Name))
     || {Name, Path} <- [{"result", []}, {"", []}, {"result[0]", [0]}, {"result.a['b']", [<<"a">>, <<"b">>]}, {"[1][0]", [1, 0]}, {"['a']", [<<"a">>]},
                         {".a", [<<"a">>]}, {"results", [<<"results">>]}]].

%% ---- calls

containers_test() ->
    Weights = #{<<"layer">> => #{kernel => row(1, 2), bias => row(3, 4)}, <<"it's">> => {row(10, 20)}, <<"odd">> => #{<<"('t', 1)">> => row(100, 200)}},
    Given = #{weights => Weights, pair => [{first, row(5, 6)}, {second, row(7, 8)}], more => [row(-1, -2), {row(0, 0), row(-3, -4)}], scale => row(2, 3),
              unused => none},
    Expected = #{<<"out">> => [21.0, 40.0], <<"aux">> => {[6.0, 7.0], {[6.0, 8.0]}}, <<"ke\\y é"/utf8>> => [105.0, 205.0],
                 <<"pair">> => #{<<"first">> => [-1.0, -2.0], <<"second">> => [-3.0, -4.0]}},
    [begin
         F = tessera_stablehlo:load(data("containers" ++ Form), #{names => true}),
         [?assertEqual(Expected, lists(Call(Argument))) || Call <- [F, tessera:jit(F)], Argument <- [Given, maps:to_list(Given)]],
         ?assertEqual(Expected, lists(F(Given#{weights := maps:to_list(Weights)}))),
         ?assertEqual(Expected, lists(F(maps:fold(fun(Key, Value, All) -> All#{atom_to_binary(Key) => Value} end, #{}, Given)))),
         %% By a whole name, before a path.
         ?assertEqual([120.0, 240.0], lists(maps:get(<<"out">>, F(Given#{<<"weights[\"it's\"][0]">> => row(109, 220)}))))
     end || Form <- [".mlir", ".vhlo"]].

single_and_numbered_test() ->
    [begin
         ?assertEqual([2.0, 3.0], lists((tessera_stablehlo:function(read("single" ++ Form), #{names => true}))(#{x => row(1, 2)}))),
         %% None is no leaf: it leaves a number out.
         ?assertEqual(#{0 => [3.0, 4.0], 2 => [1.0, 2.0]},
                      lists((tessera_stablehlo:function(read("numbered" ++ Form), #{names => true}))([{xs, [row(1, 2), row(3, 4)]}])))
     end || Form <- [".mlir", ".vhlo", ".exported"]].

network_test() ->
    Weights = #{<<"w">> => tessera:tensor([[1, 2, 3], [4, 5, 6]], f32), <<"b">> => tessera:tensor([1, 1, 1], f32)},
    [begin
         F = tessera_stablehlo:load(data("network" ++ Form), #{names => true}),
         ?assertEqual([[6.0, 8.0, 10.0]], lists(F(#{weights => Weights, x => tessera:tensor([[1, 1]], f32)}))),
         X = tessera:tensor([[1, 0], [0, 2]], f32),
         ?assertEqual([[2.0, 3.0, 4.0], [9.0, 11.0, 13.0]], lists(F(#{weights => Weights, x => X}))),
         Loss = fun(Ws) -> tessera:sum(F(#{weights => Ws, x => X})) end,
         ?assertEqual(#{<<"b">> => [2.0, 2.0, 2.0], <<"w">> => [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]}, lists((tessera:grad(Loss))(Weights))),
         ?assertEqual([[6.0, 8.0, 10.0]], lists(hd((tessera_stablehlo:load(data("network" ++ Form)))([maps:get(Key, Weights) || Key <- [<<"b">>, <<"w">>]]
                                                                                                    ++ [tessera:tensor([[1, 1]], f32)]))))
     end || Form <- [".mlir", ".vhlo", ".exported"]].

%% Results without names, or with names that make no container, are a list.
results_test() ->
    Results = fun(One, Other) ->
                      Text = iolist_to_binary(["func.func @main(%x: tensor<2xf32> loc(\"x\")) -> (tensor<2xf32>", One, ", tensor<2xf32>", Other,
                                               ") {\n  return %x, %x : tensor<2xf32>, tensor<2xf32>\n}"]),
                      lists((tessera_stablehlo:function(Text, #{names => true}))(#{x => row(1, 2)}))
              end,
    Info = fun(Name) -> [" {jax.result_info = \"", Name, "\"}"] end,
    X = [1.0, 2.0],
    ?assertEqual({X, X}, Results(Info("result[0]"), Info("result[1]"))),
    ?assertEqual(#{1 => X, <<"a">> => X}, Results(Info("result['a']"), Info("result[1]"))),
    [?assertEqual([X, X], Results(One, Other))
     || {One, Other} <- [{"", ""}, {"", Info("result[1]")}, {Info("result"), Info("result[1]")}, {Info("result[1]"), Info("result[1]")}, {Info("result"), Info("result")}]].

mesh_test_() ->
    {setup, fun() -> ok = tessera:open_client(?MODULE, #{device_count => 2}) end,
     fun() ->
             Sharded = "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>",
             Text = iolist_to_binary(["sdy.mesh @mesh = <[\"x\"=2]>\n"
                                      "func.func @main(%a: tensor<4xf32> ", Sharded, "} loc(\"a['b']\")) -> (tensor<4xf32> ", Sharded,
                                      ", jax.result_info = \"result['c']\"}) {\n  %0 = stablehlo.negate %a : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}"]),
             Parts = tessera_mesh:shard(tessera:tensor([1, 2, 3, 4], f32), #{shape => {2}}, #{0 => [0]}, ?MODULE),
             F = tessera_stablehlo:shard_jit(Text, #{shape => {2}}, #{client => ?MODULE, names => true}),
             ?assertEqual([#{<<"c">> => [-1.0, -2.0]}, #{<<"c">> => [-3.0, -4.0]}], lists(F([[#{a => #{b => Part}}] || Part <- Parts]))),
             G = tessera_stablehlo:shard_jit(Text, #{shape => {2}}, #{client => ?MODULE, names => false}),
             ?assertEqual([[[-1.0, -2.0]], [[-3.0, -4.0]]], lists(G([[[Part]] || Part <- Parts]))),
             tessera_test:raises(invalid_argument, "the argument a['b'] is missing", fun() -> F([[#{b => Part}] || Part <- Parts]) end),
             [tessera_test:raises(invalid_argument, fun() -> F(Wrong) end) || Wrong <- [1, [1, 2], [[], []]]]
     end}.

%% ---- faults

faults_test() ->
    F = tessera_stablehlo:load(data("network.vhlo"), #{names => true}),
    X = tessera:tensor([[1, 1]], f32),
    [tessera_test:raises(invalid_argument, Words, fun() -> F(Given) end)
     || {Words, Given} <- [{"the argument weights['b'] is missing", #{x => X}}, {"the argument weights['b'] is missing", [X]}, {"is missing", X}, {"is missing", 1},
                           {"is missing", [x | y]}, {"the argument weights['w'] is missing", #{weights => #{b => tessera:tensor([1, 1, 1], f32)}, x => X}},
                           {"argument 1 is f32[2], expected f32[2,3]", #{weights => #{b => tessera:tensor([1, 1, 1], f32), w => row(1, 2)}, x => X}}]],
    Nameless = module("", ""),
    tessera_test:raises(invalid_argument, "no name for argument 0", fun() -> tessera_stablehlo:function(Nameless, #{names => true}) end),
    ?assert(is_function(tessera_stablehlo:function(Nameless, #{names => false}), 1)),
    ?assert(is_function(tessera_stablehlo:function(Nameless, #{}), 1)),
    [tessera_test:raises(invalid_argument, "expected the options", fun() -> tessera_stablehlo:function(Nameless, Options) end)
     || Options <- [#{name => true}, #{names => 1}, [names], #{names => true, other => 1}]],
    tessera_test:raises(unimplemented, "argument 0 is no tensor", fun() -> tessera_stablehlo:signature(<<"func.func @main(%a: tuple<>) {\n  return\n}">>) end),
    tessera_test:raises(invalid_argument, "expected a binary", fun() -> tessera_stablehlo:signature(1) end).

%% No cut or changed export of JAX is read past its end.
exported_test() ->
    Whole = read("single.exported"),
    Artifact = read("single.vhlo"),
    {At, Size} = binary:match(Whole, Artifact),
    [begin
         <<Cut:Left/binary, _/binary>> = Whole,
         tessera_test:raises(invalid_argument, fun() -> tessera_stablehlo:function(Cut) end)
     end || Left <- lists:seq(8, At + Size - 1, 7)],
    [begin
         <<Before:Place/binary, _, After/binary>> = Whole,
         Changed = <<Before/binary, Byte, After/binary>>,
         try tessera_stablehlo:function(Changed) of
             F -> ?assert(is_function(F, 1))
         catch error:{Code, Message} -> ?assert(is_atom(Code) andalso is_binary(Message))
         end
     end || Place <- lists:seq(0, 200), Byte <- [0, 1, 127, 128, 255]],
    tessera_test:raises(invalid_argument, "expected a text of MLIR, its bytecode, or an export of JAX", fun() -> tessera_stablehlo:function(<<0:100/unit:8>>) end).
