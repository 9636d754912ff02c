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
-export([function/1, function/2, load/1, load/2, signature/1, shardings/1, shard_jit/3]).
-export([program/1, names/1, arguments/2, result_types/2, inline/3]).
-export_type([program/0, options/0, shard_options/0, leaf/0]).

-type type_and_shape() :: {tessera:type(), tessera:shape()}.
-type options() :: #{names => boolean()}.
-type shard_options() :: #{names => boolean(), client => atom() | pid(), threads => non_neg_integer(), donate => [pos_integer()], fuse => boolean(),
                           simplify => boolean(), check => boolean(), precision => default | high | highest}.
-type leaf() :: tessera_stablehlo_names:leaf().
-opaque program() :: tessera_nif:builder() | {symbolic, binary()}.

%% @doc The function that the module's `@main' is, of a list of arguments, with a list of results. It belongs to this node.
%% A program may have symbols for sizes, as of `jax.export.symbolic_shape'. Then a call with new shapes makes a program, and later calls with
%% equal shapes use it. The text of an error names line and column, or the byte, and the op: `invalid_argument' for a wrong program, `unimplemented' for a part that
%% Tessera cannot do.
-spec function(binary()) -> fun(([tessera:operand()]) -> [tessera:tensor()]).
function(Text) -> function_of(program(Text)).

%% @doc The same with options. With `names => true' the function's argument is a map, or a keyword list, of the arguments by their names in Python, and
%% its result is the container that the Python function returned. Keys are binaries or atoms. A name that leads into a container, as `weights['conv'][0]',
%% is looked up in the maps, tuples and lists of the argument; what the program lacks is ignored. In results numbered parts are tuples, and the
%% others maps with binaries as keys. {@link signature/1} lists the names. A module with an argument that has no name is an error.
%% ```
%% 1> Text = <<"func.func @main(%a: tensor<2xf32> loc(\"weights['w']\"), %b: tensor<2xf32> loc(\"x\")) "
%% 1>          "-> (tensor<2xf32> {jax.result_info = \"result['y']\"}) {\n"
%% 1>          "  %0 = stablehlo.multiply %a, %b : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}">>.
%% 2> F = tessera_stablehlo:function(Text, #{names => true}).
%% 3> #{<<"y">> := Y} = F(#{x => tessera:tensor([1.0, 2.0]), weights => #{w => tessera:tensor([3.0, 4.0])}}), tessera:to_list(Y).
%% [3.0,8.0]
%% '''
-spec function(binary(), options()) -> fun(([tessera:operand()] | term()) -> term()).
function(Text, Options) ->
    case is_named(Options) of
        true -> named(names(Text), function(Text));
        false -> function(Text)
    end.

is_named(#{names := Named} = Options) when is_boolean(Named), map_size(Options) =:= 1 -> Named;
is_named(Options) when Options =:= #{} -> false;
is_named(Options) ->
    tessera_error:raise(stablehlo, [], invalid_argument, "stablehlo: expected the options #{names => true | false}, got ~ts", [tessera_error:show(Options)]).

named(Names, F) -> fun(Given) -> tessera_stablehlo_names:results(Names, F(arguments(Names, Given))) end.

function_of(Program) -> fun(Arguments) -> call(Program, Arguments) end.

%% @doc The same for a file.
-spec load(file:name_all()) -> fun(([tessera:operand()]) -> [tessera:tensor()]).
load(Path) -> load(Path, #{}).

%% @doc The same for a file, with the options of {@link function/2}.
-spec load(file:name_all(), options()) -> fun(([tessera:operand()] | term()) -> term()).
load(Path, Options) ->
    try tessera_io_file:map(tessera_io_file:path(Path)) of
        Text -> function(Text, Options)
    catch throw:{io, Code, Message} ->
            tessera_error:raise(stablehlo, [], #{code => Code, message => Message})
    end.

%% @doc The arguments and results of a module's `@main', in their order: for each its type and shape, its name in Python, and the name as a path. The
%% path of a result begins within the container that was returned. A size that is a symbol is `any'. An argument or
%% result without a name has the name `undefined' and the path `[]', which is also the path of an only result.
%% ```
%% 1> Text = <<"func.func @main(%a: tensor<?x2xf32> loc(\"weights['w'][0]\")) -> (tensor<?x2xf32> {jax.result_info = \"result\"}) {\n"
%% 1>          "  return %a : tensor<?x2xf32>\n}">>.
%% 2> #{inputs := [W], outputs := [_]} = tessera_stablehlo:signature(Text), lists:sort(maps:to_list(W)).
%% [{name,<<"weights['w'][0]">>},{path,[<<"weights">>,<<"w">>,0]},{shape,{any,2}},{type,f32}]
%% '''
-spec signature(binary()) -> #{inputs := [leaf()], outputs := [leaf()]}.
signature(Text) -> tessera_stablehlo_names:signature(tessera_error:check(stablehlo, [], tessera_nif:stablehlo_leaves(Text))).

%% @doc The mesh of a module, and the shardings of the arguments and results of its `@main', as {@link tessera_mesh:shard/3} takes them. A module for one
%% partition has the mesh `#{shape => {1}}'. The sharding of a result that the module leaves to the compiler is `#{}'.
-spec shardings(binary()) -> #{mesh := tessera_mesh:mesh(), arguments := [tessera_mesh:sharding()], results := [tessera_mesh:sharding()]}.
shardings(Text) ->
    #{mesh := Mesh, arguments := Arguments, results := Results} = read_shardings(Text),
    #{mesh => Mesh, arguments => plain(Arguments), results => plain(Results)}.

%% @doc The function of a module for the partitions of a mesh: JAX's exports of `shard_map', and of functions whose arguments have shardings.
%% The function is called as the functions of {@link tessera:shard_jit/3} are. Each partition's argument list has one element, the list of arguments;
%% each partition's result is the list of results. {@link shardings/1} returns the shardings. The mesh must have as many partitions as the
%% module. The options are the options of {@link tessera:shard_map/5}, and `names' of {@link function/2}: then an argument list has one map, and a
%% result is a container.
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
-spec shard_jit(binary(), tessera_mesh:mesh(), shard_options()) -> fun(([[term()]]) -> [term()]).
shard_jit(Text, Mesh, #{names := Named} = Options) ->
    F = shard_jit(Text, Mesh, maps:remove(names, Options)),
    case is_named(#{names => Named}) of
        true -> named_parts(names(Text), F);
        false -> F
    end;
shard_jit(Text, Mesh, Options) ->
    #{partitions := Partitions, mesh := Own, view := View, arguments := Arguments, results := Results} = read_shardings(Text),
    case tessera_mesh:partitions(Mesh) of
        Partitions -> ok;
        Given -> tessera_error:raise(stablehlo, [], invalid_argument, "stablehlo: the module is for ~b partition~s, and the mesh has ~b",
                                     [Partitions, [$s || Partitions =/= 1], Given])
    end,
    sharded(View, of_view(View, Text, Partitions), Own, plain(Arguments), plain(Results), Options).

named_parts(Names, F) ->
    fun(Lists) ->
            Parts = each(fun(List) -> each(fun(Given) -> arguments(Names, Given) end, List) end, Lists),
            [tessera_stablehlo_names:results(Names, Results) || Results <- F(Parts)]
    end.

%% What is no list is refused where the function is called.
each(F, List) ->
    case tessera_type:is_proper(List) of
        true -> [F(Element) || Element <- List];
        false -> List
    end.

%% The function itself is of one partition, or of whole tensors: then the shardings of values inside of it are kept.
of_view(local, Text, _) -> function(Text);
of_view(global, Text, 1) -> function(Text);
of_view(global, Text, Partitions) ->
    case tessera_error:check(stablehlo, [], tessera_nif:read_stablehlo(Text, Partitions)) of
        symbolic -> function(Text);
        Program -> function_of(Program)
    end.

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
      mesh => case {Sizes, Names} of
                  {[], _} -> #{shape => {Partitions}};
                  {_, [<<>> | _]} -> #{shape => list_to_tuple(Sizes)}; % of several meshes, or of parts of axes
                  {_, [Name | Axes]} -> #{shape => list_to_tuple(Sizes), name => Name, axes => Axes}
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

%% @private The names of a module's arguments and results, for other front ends.
-spec names(binary()) -> tessera_stablehlo_names:names().
names(Text) ->
    case tessera_stablehlo_names:names(signature(Text)) of
        {ok, Names} -> Names;
        {nameless, I} ->
            tessera_error:raise(stablehlo, [], invalid_argument, "stablehlo: the module has no name for argument ~b, and can be called with a list only", [I])
    end.

%% @private The arguments in their order.
-spec arguments(tessera_stablehlo_names:names(), term()) -> [term()].
arguments(Names, Given) ->
    case tessera_stablehlo_names:arguments(Names, Given) of
        {ok, Arguments} -> Arguments;
        {missing, Name} ->
            tessera_error:raise(stablehlo, [], invalid_argument, "stablehlo: the argument ~ts is missing: expected a map of arguments by their names, got ~ts",
                                [Name, tessera_error:show(Given)])
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
    tessera_trace:placed(stablehlo, inline(tessera_trace:current(), Program, [tessera_trace:value(stablehlo, Tensor) || Tensor <- Tensors])).

%% The program for the shapes of the arguments.
sized({symbolic, Text}, Tensors) ->
    Types = [{tessera_operand:type_of(Tensor), tessera_operand:shape_of(Tensor)} || Tensor <- Tensors],
    tessera_error:check(stablehlo, Tensors, tessera_nif:read_stablehlo(Text, Types));
sized(Program, _) -> Program.
