%% Modules of StableHLO for the partitions of a mesh, as JAX writes shard_map. test/stablehlo/mesh.py makes the files of test/stablehlo/mesh, and
%% random ones for the environment variable STABLEHLO_MESH.
-module(tessera_stablehlo_mesh_tests).
-include_lib("eunit/include/eunit.hrl").

-define(CLIENT, stablehlo_mesh_tests).

folder() -> os:getenv("STABLEHLO_MESH", filename:join(["test", "stablehlo", "mesh"])).

data(Name) -> filename:join(["test", "stablehlo", "mesh", Name]).

with_client(Tests) ->
    {setup, fun() -> ok = tessera:open_client(?CLIENT, #{device_count => 8}) end, Tests}.

read(File) ->
    {ok, Text} = file:read_file(File),
    Text.

%% Each program gives the results that XLA computed, from its text and from its artifact.
exports_test_() ->
    Files = lists:sort(filelib:wildcard(filename:join(folder(), "*.{mlir,vhlo}"))),
    ?assert(length(Files) >= 2),
    with_client([{filename:basename(File), {timeout, 60, fun() -> exported(File) end}} || File <- Files]).

%% The same program in MLIR's generic form.
generic_test_() ->
    with_client({timeout, 60, fun() -> exported(filename:join(["test", "stablehlo", "generic", "mesh_around.generic"]), data("around.npz")) end}).

exported(File) -> exported(File, filename:rootname(File) ++ ".npz").

exported(File, Recorded) ->
    Text = read(File),
    {Arguments, Expected} = arrays(Recorded),
    #{mesh := Mesh, arguments := Cuts, results := ResultCuts} = tessera_stablehlo:shardings(Text),
    F = tessera_stablehlo:shard_jit(Text, Mesh, #{client => ?CLIENT}),
    Lists = parts(Arguments, Mesh, Cuts),
    Results = F(Lists),
    ?assertEqual(length(Expected), length(ResultCuts)),
    [?assertMatch({I, Difference} when Difference < 2.0e-5, {I, difference(Wanted, whole(Results, I, Mesh, Cut, Wanted))})
     || {I, Wanted, Cut} <- lists:zip3(lists:seq(1, length(Expected)), Expected, ResultCuts)].

arrays(File) ->
    Arrays = tessera_io:load(File, #{map => false}),
    Named = fun(Prefix) -> [map_get(Key, Arrays) || Key <- lists:sort(maps:keys(Arrays)), binary:match(Key, Prefix) =:= {0, byte_size(Prefix)}] end,
    {Named(<<"in">>), Named(<<"out">>)}.

parts(Arguments, Mesh, Cuts) ->
    All = [tessera_mesh:shard(Argument, Mesh, Cut, ?CLIENT) || {Argument, Cut} <- lists:zip(Arguments, Cuts)],
    [[[lists:nth(Partition, Parts) || Parts <- All]] || Partition <- lists:seq(1, tessera_mesh:partitions(Mesh))].

whole(Results, I, Mesh, Cut, Wanted) ->
    Whole = tessera_mesh:gather([lists:nth(I, Result) || Result <- Results], Mesh, Cut),
    ?assertEqual(tessera:shape(Wanted), tessera:shape(Whole)),
    Whole.

%% The largest difference, relative to numbers above 1.
difference(Wanted, Got) ->
    [X, Y] = [tessera:as_type(T, c128) || T <- [Wanted, Got]],
    Differs = tessera:divide(tessera:abs(tessera:subtract(X, Y)), tessera:add(1.0, tessera:abs(X))),
    tessera:to_number(tessera:reduce_max(Differs)).

%% An artifact whose sizes are symbols serves other sizes than the recorded one.
symbolic_test_() ->
    with_client(fun() ->
        Text = read(data("symbolic.vhlo")),
        #{mesh := Mesh, arguments := [Cut], results := [Cut]} = tessera_stablehlo:shardings(Text),
        F = tessera_stablehlo:shard_jit(Text, Mesh, #{client => ?CLIENT}),
        [begin
             X = tessera:iota({Rows, 4}, #{type => f32}),
             Results = F(parts([X], Mesh, [Cut])),
             Doubled = tessera:multiply(X, 4.0),
             Part = tessera:quotient(tessera:iota({Rows, 1}, #{axis => 0, type => s32}), Rows div 4),
             ?assertEqual(tessera:to_list(tessera:add(Doubled, Part)), tessera:to_list(tessera_mesh:gather([R || [R] <- Results], Mesh, Cut)))
         end || Rows <- [8, 24, 40]]
    end).

%% What is whole outside of a shard_map sends nothing when it is used in parts.
messages_test_() ->
    with_client(fun() ->
        Text = read(data("ring.vhlo")),
        #{mesh := Mesh, arguments := Cuts} = tessera_stablehlo:shardings(Text),
        F = tessera_stablehlo:shard_jit(Text, Mesh, #{client => ?CLIENT}),
        X = tessera:iota({8, 8}, #{type => f32}),
        Explained = tessera:explain(F, [parts([X, X], Mesh, Cuts)]),
        ?assertEqual(nomatch, binary:match(Explained, <<"all_gather">>)),
        ?assertNotEqual(nomatch, binary:match(Explained, <<"collective_permute">>))
    end).

%% The collectives of a module are differentiated as those of tessera:shard_map/4 are.
gradient_test_() ->
    with_client(fun() ->
        Text = module("tensor<8xf32>", "", sum("%p", "tensor<2xf32>", "[[0, 1, 2, 3]]")),
        F = tessera_stablehlo:function(Text),
        Loss = fun(X) -> [Y] = F([X]), tessera:sum(tessera:multiply(Y, Y)) end,
        Step = tessera:shard_map(tessera:grad(Loss), #{shape => {4}}, [#{0 => [0]}], #{0 => [0]}, #{client => ?CLIENT}),
        X = tessera:iota({8}, #{type => f32}),
        Parts = [[Part] || Part <- tessera_mesh:shard(X, #{shape => {4}}, #{0 => [0]}, ?CLIENT)],
        ?assertEqual([[24.0, 32.0] || _ <- Parts], [tessera:to_list(G) || G <- Step(Parts)])
    end).

%% ---- errors

%% A module over a mesh of four: %p is the part of its argument, and the body makes %r.
module(Type, Attributes, Body) ->
    iolist_to_binary(["module attributes {mhlo.num_partitions = 4 : i32} {\n"
                      "sdy.mesh @mesh = <[\"x\"=4]", Attributes, ">\n"
                      "func.func @main(%a: ", Type, " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> tensor<2xf32> {\n"
                      "  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={\"x\"} "
                      "(%p: tensor<2xf32>) {\n", Body, "    sdy.return %r : tensor<2xf32>\n  } : (", Type, ") -> tensor<2xf32>\n"
                      "  return %0 : tensor<2xf32>\n}\n}\n"]).

sum(Value, Type, Groups) ->
    ["    %r = \"stablehlo.all_reduce\"(", Value, ") <{replica_groups = dense<", Groups, "> : tensor<", sizes(Groups), "xi64>, use_global_device_ids, "
     "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}> ({\n    ^bb0(%c: tensor<f32>, %d: tensor<f32>):\n"
     "      %2 = stablehlo.add %c, %d : tensor<f32>\n      stablehlo.return %2 : tensor<f32>\n    }) : (", Type, ") -> ", Type, "\n"].

%% A collective of partitions.
placed(Name, Groups, Sizes) ->
    ["    %r = \"stablehlo.", Name, "\"(%p) <{", case Name of "collective_permute" -> "source_target_pairs"; _ -> "replica_groups" end, " = dense<", Groups,
     "> : tensor<", Sizes, "xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}> : (tensor<2xf32>) -> tensor<2xf32>\n"].

sizes(Groups) ->
    Rows = length(string:split(Groups, "], [", all)),
    io_lib:format("~bx~b", [Rows, (length([C || C <- Groups, C =:= $,]) + 1) div Rows]).

%% What JAX writes without jax_use_shardy_partitioner.
gspmd(Target) ->
    iolist_to_binary(["module attributes {mhlo.num_partitions = 2 : i32} {\n"
                      "func.func public @main(%a: tensor<4xf32> {mhlo.sharding = \"{devices=[2]<=[2]}\"}) -> tensor<2xf32> {\n"
                      "  %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = \"{devices=[2]<=[2]}\"} : (tensor<4xf32>) -> tensor<4xf32>\n"
                      "  %1 = stablehlo.custom_call @", Target, "(%0) {mhlo.sharding = \"{manual}\"} : (tensor<4xf32>) -> tensor<2xf32>\n"
                      "  return %1 : tensor<2xf32>\n}\n}"]).

%% A module that sums over all devices. The axes Dim cut the operand's dim, and Close ends the list of dims.
cut(Dim) -> cut(Dim, "]").
cut(Dim, Close) ->
    binary:replace(module("tensor<8xf32>", "", sum("%p", "tensor<2xf32>", "[[0, 1, 2, 3]]")), <<"in_shardings=[<@mesh, [{\"x\"}]>]">>,
                   iolist_to_binary(["in_shardings=[<@mesh, [", Dim, Close, ">]"])).

refused_test_() ->
    Sum = sum("%p", "tensor<2xf32>", "[[0, 1, 2, 3]]"),
    with_client([{Words, fun() -> tessera_test:raises(Code, Words, fun() -> tessera_stablehlo:function(Text) end) end}
                 || {Code, Words, Text} <-
                        [{invalid_argument, "the part of operand 0 is f32[3]", module("tensor<12xf32>", "", Sum)},
                         {invalid_argument, "a sharding", module("tensor<6xf32>", "", Sum)},
                         {unimplemented, "devices are in another order", module("tensor<8xf32>", ", device_ids=[1, 0, 2, 3]", Sum)},
                         {unimplemented, "a process is in none of its groups", module("tensor<8xf32>", "", sum("%p", "tensor<2xf32>", "[[0, 1]]"))},
                         {invalid_argument, "number 4 of 4", module("tensor<8xf32>", "", sum("%p", "tensor<2xf32>", "[[0, 1, 2, 4]]"))},
                         {invalid_argument, "a group has a member twice", module("tensor<8xf32>", "", sum("%p", "tensor<2xf32>", "[[0, 1, 2, 1]]"))},
                         {invalid_argument, "number 1 is in two groups", module("tensor<8xf32>", "", sum("%p", "tensor<2xf32>", "[[0, 1], [1, 2]]"))},
                         {invalid_argument, "replica_groups has 5 lists of 1 numbers, and there are 4 to name",
                          module("tensor<8xf32>", "", sum("%p", "tensor<2xf32>", "[[0], [1], [2], [3], [0]]"))},
                         {invalid_argument, "number 1 is the target of two pairs", module("tensor<8xf32>", "", placed("collective_permute", "[[0, 1], [2, 1]]", "2x2"))},
                         {invalid_argument, "number 2 is the source of two pairs", module("tensor<8xf32>", "", placed("collective_permute", "[[2, 0], [2, 1]]", "2x2"))},
                         {invalid_argument, "number -1 of 4", module("tensor<8xf32>", "", placed("collective_permute", "[[0, 1], [-1, 2]]", "2x2"))},
                         {invalid_argument, "the module is for 4 partitions, and its mesh has 3",
                          binary:replace(module("tensor<8xf32>", "", Sum), <<"\"x\"=4">>, <<"\"x\"=3">>)},
                         {invalid_argument, "the mesh has no such axis", cut("{\"y\"}")},
                         {invalid_argument, "the part of operand 0 is f32[4]", cut("{\"x\":(1)2}")},
                         {invalid_argument, "the axis has no such part", cut("{\"x\":(1)3}")},
                         {invalid_argument, "the axis has no such part", cut("{\"x\":(2)4}")},
                         {invalid_argument, "the axis has no such part", cut("{\"x\":(0)2}")},
                         {invalid_argument, "the mesh has no such axis", cut("{\"y\":(1)2}")},
                         {invalid_argument, "expected a number", cut("{\"x\":(a)2}")},
                         {unimplemented, "a value whose terms are not summed (unreduced axes)", cut("{}], unreduced={\"x\"}", "")},
                         {unimplemented, "parts of an axis that do not divide each other",
                          iolist_to_binary(["sdy.mesh @mesh = <[\"x\"=6]>\nfunc.func @main(%a: tensor<6xf32>) -> tensor<6xf32> {\n"
                                            "  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\":(1)2}]>] out_shardings=[<@mesh, [{\"x\":(1)3}]>] "
                                            "manual_axes={\"x\"} (%p: tensor<3xf32>) {\n    %1 = stablehlo.slice %p [0:2] : (tensor<3xf32>) -> tensor<2xf32>\n"
                                            "    sdy.return %1 : tensor<2xf32>\n  } : (tensor<6xf32>) -> tensor<6xf32>\n  return %0 : tensor<6xf32>\n}"])},
                         {invalid_argument, "have several numbers",
                          binary:replace(module("tensor<8xf32>", "", Sum), <<"in_shardings=[<@mesh, [{\"x\"}]>]">>, <<"in_shardings=[]">>)},
                         {invalid_argument, "expected 'in_shardings'",
                          binary:replace(module("tensor<8xf32>", "", Sum), <<"in_shardings">>, <<"shardings">>)},
                         {unimplemented, "a shard_map for GSPMD cannot be read (SPMDFullToShardShape): export it with jax_use_shardy_partitioner",
                          gspmd("SPMDFullToShardShape")},
                         {unimplemented, "a shard_map for GSPMD", gspmd("SPMDShardToFullShape")}]]).

%% A mesh of 4096: what a collective says is read once, not for each partition.
wide(Mesh, Whole, Body) ->
    lists:foldl(fun({Old, New}, Text) -> binary:replace(Text, Old, New) end, module("tensor<" ++ Whole ++ "xf32>", "", Body),
                [{<<"num_partitions = 4">>, <<"num_partitions = 4096">>}, {<<"\"x\"=4">>, Mesh}]).

rows(Rows) -> lists:flatten(["[", lists:join(", ", [["[", lists:join(", ", [integer_to_list(I) || I <- Row]), "]"] || Row <- Rows]), "]"]).

wide_test_() ->
    All = lists:seq(0, 4095),
    Refused = fun(Code, Words, Text) -> tessera_test:raises(Code, Words, fun() -> tessera_stablehlo:function(Text) end) end,
    Line = fun(Body) -> wide(<<"\"x\"=4096">>, "8192", Body) end,
    [{Name, {timeout, 60, Test}}
     || {Name, Test} <-
            [{"all partitions", fun() -> ?assert(is_function(tessera_stablehlo:function(Line(sum("%p", "tensor<2xf32>", rows([All])))))) end},
             {"each alone", fun() -> ?assert(is_function(tessera_stablehlo:function(Line(sum("%p", "tensor<2xf32>", rows([[I] || I <- All])))))) end},
             {"columns",
              fun() ->
                      Columns = rows([lists:seq(I, 4095, 64) || I <- lists:seq(0, 63)]),
                      ?assert(is_function(tessera_stablehlo:function(wide(<<"\"x\"=64, \"y\"=64">>, "128", sum("%p", "tensor<2xf32>", Columns)))))
              end},
             {"in another order", fun() -> ?assert(is_function(tessera_stablehlo:function(Line(sum("%p", "tensor<2xf32>", rows([lists:reverse(All)])))))) end},
             {"a root", fun() -> ?assert(is_function(tessera_stablehlo:function(Line(placed("collective_broadcast", rows([lists:reverse(All)]), "1x4096"))))) end},
             {"too many pairs",
              fun() ->
                      Refused(invalid_argument, "source_target_pairs has 32768 lists of 2 numbers, and there are 4096 to name",
                              Line(placed("collective_permute", "-1", "32768x2")))
              end},
             {"no pairs", fun() -> Refused(invalid_argument, "it names number -1 of 4096", Line(placed("collective_permute", "-1", "4096x2"))) end},
             {"no members", fun() -> Refused(unimplemented, "a process is in none of its groups", Line(placed("collective_broadcast", "-1", "4096x16"))) end},
             {"twice", fun() -> Refused(invalid_argument, "a group has a member twice", Line(placed("collective_broadcast", rows([tl(All) ++ [1]]), "1x4096"))) end}]].

%% A number of partitions that no mesh has is refused, whatever its bits are.
partitions_test_() ->
    One = <<"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}">>,
    [{integer_to_list(Count),
      fun() ->
              tessera_test:raises(invalid_argument, "1 replicas of " ++ integer_to_list(Count) ++ " partitions, expected 1 to 4096 processes",
                                  fun() -> tessera_error:check(stablehlo, [], tessera_nif:read_stablehlo(One, Count)) end)
      end}
     || Count <- [1 bsl 40, (1 bsl 40) + 1, 4097, 0, -1]].

%% A chain of more calls than any program has: the search for functions that read their partition ends.
deep_calls_test() ->
    Function = fun(Name, Body) -> ["func.func ", Name, "(%x: tensor<2xf32>) -> tensor<2xf32> {\n", Body, "  return %0 : tensor<2xf32>\n}\n"] end,
    Call = fun(I) -> io_lib:format("  %0 = call @f~b(%x) : (tensor<2xf32>) -> tensor<2xf32>\n", [I]) end,
    Chain = [Function(io_lib:format("private @f~b", [I]), Call(I + 1)) || I <- lists:seq(1, 2000)],
    [tessera_test:raises(invalid_argument, "more than 1108 deep",
                         fun() -> tessera_stablehlo:function(iolist_to_binary(["sdy.mesh @mesh = <[\"x\"=2]>\n", Function("@main", Call(1)), Chain,
                                                                               Function("private @f2001", Last)])) end)
     || Last <- [Call(1), "  %0 = stablehlo.add %x, %x : tensor<2xf32>\n"]].

mesh_test_() ->
    Text = module("tensor<8xf32>", "", sum("%p", "tensor<2xf32>", "[[0, 1, 2, 3]]")),
    X = fun() -> tessera:iota({8}, #{type => f32}) end,
    with_client(
      [{"another number of partitions",
        fun() ->
                [tessera_test:raises(invalid_argument, "the module is for 4 partitions, and the mesh has " ++ Count,
                                     fun() -> tessera_stablehlo:shard_jit(Text, #{shape => Shape}, #{client => ?CLIENT}) end)
                 || {Count, Shape} <- [{"2", {2}}, {"8", {4, 2}}, {"1", {1}}]]
        end},
       {"options",
        fun() ->
                Mesh = #{shape => {4}},
                tessera_test:raises(invalid_argument, fun() -> tessera_stablehlo:shard_jit(Text, Mesh, []) end),
                tessera_test:raises(invalid_argument, "outputs", fun() -> tessera_stablehlo:shard_jit(Text, Mesh, #{outputs => 1}) end),
                tessera_test:raises(invalid_argument, "expected a mesh", fun() -> tessera_stablehlo:shard_jit(Text, 4, #{}) end)
        end},
       {"a constraint of a module on whole tensors",
        fun() ->
                Of = fun(Rows) ->
                             Type = ["tensor<", Rows, "x8xf32>"],
                             iolist_to_binary(["sdy.mesh @mesh = <[\"x\"=4]>\n"
                                               "func.func @main(%a: ", Type, " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) -> ", Type, " {\n"
                                               "  %0 = stablehlo.add %a, %a : ", Type, "\n"
                                               "  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {\"x\"}]> : ", Type, "\n"
                                               "  %2 = stablehlo.negate %1 : ", Type, "\n  return %2 : ", Type, "\n}"])
                     end,
                Whole = tessera:iota({8, 8}, #{type => f32}),
                Mesh = #{shape => {4}},
                Lists = [[[Part]] || Part <- tessera_mesh:shard(Whole, Mesh, #{0 => [0]}, ?CLIENT)],
                [begin
                     F = tessera_stablehlo:shard_jit(Of(Rows), Mesh, #{client => ?CLIENT}),
                     Parts = [Part || [Part] <- F(Lists)],
                     ?assertEqual(tessera:to_list(tessera:multiply(Whole, -2)), tessera:to_list(tessera_mesh:gather(Parts, Mesh, #{}))),
                     ?assertMatch({Found, _}, {re:run(tessera:explain(F, [Lists]), "sharding_constraint: f32\\[8,8\\] sharded \\[\\[\\],\\[0\\]\\]",
                                                      [{capture, none}]), Rows})
                 end || {Rows, Found} <- [{"8", match}, {"?", nomatch}]]
        end},
       {"another shape of as many partitions", fun() -> ?assertMatch(F when is_function(F, 1), tessera_stablehlo:shard_jit(Text, #{shape => {2, 2}}, #{client => ?CLIENT})) end},
       {"no mesh", fun() -> tessera_test:raises(failed_precondition, "the 4 partitions of a mesh", fun() -> (tessera_stablehlo:function(Text))([X()]) end) end},
       {"whole tensors",
        fun() ->
                F = tessera:shard_jit(tessera_stablehlo:function(Text), #{shape => {4}}, #{input_shardings => [[#{0 => [0]}]], client => ?CLIENT}),
                Lists = [[[Part]] || Part <- tessera_mesh:shard(X(), #{shape => {4}}, #{0 => [0]}, ?CLIENT)],
                tessera_test:raises(failed_precondition, "for whole tensors", fun() -> F(Lists) end)
        end},
       {"another mesh of shard_map",
        fun() ->
                F = tessera:shard_map(tessera_stablehlo:function(Text), #{shape => {2}}, [[#{0 => [0]}]], [#{}], #{client => ?CLIENT, check => false}),
                Lists = [[[Part]] || Part <- tessera_mesh:shard(tessera:iota({4}, #{type => f32}), #{shape => {2}}, #{0 => [0]}, ?CLIENT)],
                tessera_test:raises(invalid_argument, "other than the mesh of 2", fun() -> F(Lists) end)
        end},
       {"a module for one partition",
        fun() ->
                One = <<"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}">>,
                ?assertEqual(#{mesh => #{shape => {1}}, arguments => [#{}], results => [#{}]}, tessera_stablehlo:shardings(One)),
                tessera_test:raises(invalid_argument, "the module is for 1 partition, and the mesh has 2",
                                    fun() -> tessera_stablehlo:shard_jit(One, #{shape => {2}}, #{client => ?CLIENT}) end)
        end}]).
