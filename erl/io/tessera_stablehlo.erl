%% @doc Programs of other compilers' front ends: a module of StableHLO as text or as bytecode, such as `jax.export' writes, becomes a function. It is
%% called, jitted, differentiated and cut over a mesh like any other.
%% ```
%% 1> Text = <<"func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {\n"
%% 1>          "  %0 = stablehlo.multiply %x, %y : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}">>.
%% 2> F = tessera_stablehlo:function(Text).
%% 3> [Z] = F([tessera:tensor([1.0, 2.0]), tessera:tensor([3.0, 4.0])]), tessera:to_list(Z).
%% [3.0,8.0]
%% 4> G = tessera:grad(fun(X) -> [Y] = F([X, X]), tessera:sum(Y) end), tessera:to_list(G(tessera:tensor([1.0, 2.0]))).
%% [2.0,4.0]
%% '''
%% The page docs/stablehlo.md lists the ops.
-module(tessera_stablehlo).
-include("tessera.hrl").
-export([function/1, load/1, shardings/1, shard_jit/3]).
-export([program/1, result_types/2, inline/3]).
-export_type([program/0]).

-type type_and_shape() :: {tessera:type(), tessera:shape()}.
-opaque program() :: tessera_nif:builder() | {symbolic, binary()}.

%% @doc The function that the module's `@main' is, of a list of arguments, with a list of results. It belongs to this node.
%% A program may have symbols for sizes, as of `jax.export.symbolic_shape'. Then a call with new shapes makes a program, and later calls with
%% equal shapes use it. The text of an error names line and column, or the byte, and the op: `invalid_argument' for a wrong program, `unimplemented' for a part that
%% Tessera cannot do.
-spec function(binary()) -> fun(([tessera:operand()]) -> [tessera:tensor()]).
function(Text) ->
    Program = program(Text),
    fun(Arguments) -> call(Program, Arguments) end.

%% @doc The same for a file.
-spec load(file:name_all()) -> fun(([tessera:operand()]) -> [tessera:tensor()]).
load(Path) ->
    try tessera_io_file:map(tessera_io_file:path(Path)) of
        Text -> function(Text)
    catch throw:{io, Code, Message} ->
            tessera_error:raise(stablehlo, [], #{code => Code, message => Message})
    end.

%% @doc The mesh of a module, and the shardings of the arguments and results of its `@main', as {@link tessera_mesh:shard/3} takes them. A module for one
%% partition has the mesh `#{shape => {1}}'. The sharding of a result that the module leaves to the compiler is `#{}'.
-spec shardings(binary()) -> #{mesh := tessera_mesh:mesh(), arguments := [tessera_mesh:sharding()], results := [tessera_mesh:sharding()]}.
shardings(Text) ->
    #{mesh := Mesh, arguments := Arguments, results := Results} = read_shardings(Text),
    #{mesh => Mesh, arguments => plain(Arguments), results => plain(Results)}.

%% @doc The function of a module for the partitions of a mesh: JAX's exports of `shard_map', and of functions whose arguments have shardings.
%% The function is called as the functions of {@link tessera:shard_jit/3} are. Each partition's argument list has one element, the list of arguments;
%% each partition's result is the list of results. {@link shardings/1} returns the shardings. The mesh must have as many partitions as the
%% module. The options are the options of {@link tessera:shard_map/5}.
%% ```
%% 1> tessera:open_client(two_parts, #{device_count => 2}).
%% ok
%% 2> Text = <<"sdy.mesh @mesh = <[\"x\"=2]>\n"
%% 2>          "func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> tensor<2xf32> {\n"
%% 2>          "  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={\"x\"} (%b: tensor<2xf32>) {\n"
%% 2>          "    %1 = \"stablehlo.all_reduce\"(%b) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids,\n"
%% 2>          "      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}> ({\n"
%% 2>          "    ^bb0(%c: tensor<f32>, %d: tensor<f32>):\n      %2 = stablehlo.add %c, %d : tensor<f32>\n      stablehlo.return %2 : tensor<f32>\n"
%% 2>          "    }) : (tensor<2xf32>) -> tensor<2xf32>\n    sdy.return %1 : tensor<2xf32>\n"
%% 2>          "  } : (tensor<4xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}">>.
%% 3> #{mesh := Mesh, arguments := [Cut]} = tessera_stablehlo:shardings(Text).
%% 4> F = tessera_stablehlo:shard_jit(Text, Mesh, #{client => two_parts}).
%% 5> [[One], [Other]] = F([[[Part]] || Part <- tessera_mesh:shard(tessera:tensor([1.0, 2.0, 3.0, 4.0]), Mesh, Cut, two_parts)]).
%% 6> [tessera:to_list(One), tessera:to_list(Other)].
%% [[4.0,6.0],[4.0,6.0]]
%% '''
-spec shard_jit(binary(), tessera_mesh:mesh(), tessera:shard_map_options()) -> fun(([[term()]]) -> [term()]).
shard_jit(Text, Mesh, Options) ->
    #{partitions := Partitions, mesh := Own, view := View, arguments := Arguments, results := Results} = read_shardings(Text),
    case tessera_mesh:partitions(Mesh) of
        Partitions -> ok;
        Given -> tessera_error:raise(stablehlo, [], invalid_argument, "stablehlo: the module is for ~b partition~s, and the mesh has ~b",
                                     [Partitions, [$s || Partitions =/= 1], Given])
    end,
    sharded(View, function(Text), Own, plain(Arguments), plain(Results), Options).

%% The function itself is of one partition, or of whole tensors.
sharded(local, F, Mesh, Arguments, Results, Options) ->
    tessera_shard:map(F, Mesh, [Arguments], Results, with(#{check => false}, Options));
sharded(global, F, Mesh, Arguments, Results, Options) ->
    tessera_shard:jit(F, Mesh, with(#{input_shardings => [Arguments], output_shardings => Results}, Options)).

%% What is no map is refused by name later.
with(Own, Options) ->
    try maps:merge(Options, Own)
    catch error:{badmap, _} -> Options
    end.

read_shardings(Text) ->
    {Partitions, Sizes, Names, View, Arguments, Results} = tessera_error:check(stablehlo, [], tessera_nif:stablehlo_shardings(Text)),
    #{partitions => Partitions, view => View, arguments => Arguments, results => Results,
      mesh => case Sizes of
                  [] -> #{shape => {Partitions}};
                  _ -> #{shape => list_to_tuple(Sizes), name => hd(Names), axes => tl(Names)}
              end}.

%% What is not given is whole.
plain(All) -> [case Cuts of undefined -> #{}; _ -> tessera_sharding:sharding(Cuts) end || Cuts <- All].

%% @private The program of a module, for other front ends.
-spec program(binary()) -> program().
program(Text) ->
    case tessera_error:check(stablehlo, [], tessera_nif:read_stablehlo(Text)) of
        symbolic -> {symbolic, Text};
        Program -> Program
    end.

%% @private The types of the results for arguments of the given types.
-spec result_types(program(), [type_and_shape()]) -> [type_and_shape()].
result_types(Program, Types) ->
    {_, {list, Results}, _} = tessera_trace:trace(fun(Values) -> inlined(Program, Values) end, Types, []),
    [{Type, Shape} || [Type | Shape] <- Results].

%% @private Puts the program into the one that is built. Its arguments are the given values.
-spec inline(tessera_nif:builder(), program(), [tessera:tensor()]) -> [tessera:tensor()].
inline(Builder, Program, Values) ->
    tessera_error:check(stablehlo, Values, tessera_nif:inline_program(Builder, sized(Program, Values), Values)).

call(Program, Arguments) ->
    tessera_type:is_proper(Arguments) orelse
        tessera_error:raise(stablehlo, [], invalid_argument, "stablehlo: expected a list of arguments, got ~ts", [tessera_error:show(Arguments)]),
    Tensors = [tessera_operand:tensor(stablehlo, Argument) || Argument <- Arguments],
    tessera_jit:in_program(fun(Values) -> inlined(Program, Values) end, Tensors).

inlined(Program, Tensors) ->
    inline(tessera_trace:current(), Program, [tessera_trace:value(stablehlo, Tensor) || Tensor <- Tensors]).

%% The program for the shapes of the arguments.
sized({symbolic, Text}, Tensors) ->
    Types = [{tessera_operand:type_of(Tensor), tessera_operand:shape_of(Tensor)} || Tensor <- Tensors],
    tessera_error:check(stablehlo, Tensors, tessera_nif:read_stablehlo(Text, Types));
sized(Program, _) -> Program.
