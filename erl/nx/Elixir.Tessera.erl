-module('Elixir.Tessera').
-include("tessera_nx_doc.hrl").
?MODULEDOC("Compiles the functions of `Nx.Defn`.\n"
     "\n"
     "    Nx.Defn.global_default_options(compiler: Tessera)\n"
     "\n"
     "Options of the functions here, in addition to those of `Nx.Defn`:\n"
     "\n"
     "  * `:cache` - `false` traces and compiles at each call; a path keeps the program in this file\n"
     "  * `:client`, `:device_id` - where results are allocated, see `Tessera.Client`\n"
     "  * `:debug` - logs what was compiled or found in the cache, with times\n"
     "  * `:execution_telemetry` - `true` emits an event for each run\n"
     "  * `:hooks` - a map of functions for named `Nx.io_call`s\n"
     "  * `:precision`, `:lazy_transfers` - checked, without effect on a CPU").
-export(['__info__'/1, jit/1, jit/2, jit_apply/2, jit_apply/3, compile/2, compile/3, 'cached?'/2, 'cached?'/3,
         shard_jit/2, shard_jit/3, to_mlir_module/2, to_mlir_module/3]).
-export(['__jit__'/5, '__compile__'/4, '__partitions_options__'/1, '__to_backend__'/1, '__shard_jit__'/6]).

-type options() :: [{atom(), term()}].

?INTERNAL.
-spec '__info__'(atom()) -> term().
'__info__'(Item) -> tessera_nx_struct:info(?MODULE, #{}, Item).

%% ---- shortcuts

?DOC("A function that compiles `fun` at its first call with arguments of these types and shapes.\n"
     "\n"
     "    Tessera.jit(&Nx.add(&1, 1)).(2)").
-spec jit(function()) -> function().
jit(Fun) -> jit(Fun, []).

?DOC("A function that compiles `fun` at its first call with arguments of these types and shapes.\n"
     "\n"
     "    Tessera.jit(&Nx.add(&1, 1), cache: false).(2)\n"
     "\n"
     "The module's documentation lists the options.").
-spec jit(function(), options()) -> function().
jit(Fun, Options) -> 'Elixir.Nx.Defn':jit(Fun, with_compiler(Options)).

?DOC("Compiles `fun` for these arguments and calls it with them.\n"
     "\n"
     "    Tessera.jit_apply(&Nx.add/2, [1, 2])").
-spec jit_apply(function(), [term()]) -> term().
jit_apply(Fun, Args) -> jit_apply(Fun, Args, []).

?DOC("Compiles `fun` for these arguments and calls it with them.\n"
     "\n"
     "    Tessera.jit_apply(&Nx.add/2, [1, 2], cache: false)\n"
     "\n"
     "The module's documentation lists the options.").
-spec jit_apply(function(), [term()], options()) -> term().
jit_apply(Fun, Args, Options) -> 'Elixir.Nx.Defn':jit_apply(Fun, Args, with_compiler(Options)).

?DOC("Compiles `fun` now, for arguments of the templates' types and shapes. The compiled function accepts no others.\n"
     "\n"
     "    Tessera.compile(&Nx.sin/1, [Nx.template({3}, :f32)])").
-spec compile(function(), [term()]) -> function().
compile(Fun, Templates) -> compile(Fun, Templates, []).

?DOC("Compiles `fun` now, for arguments of the templates' types and shapes. The compiled function accepts no others.\n"
     "\n"
     "    Tessera.compile(&Nx.sin/1, [Nx.template({3}, :f32)], execution_telemetry: true)\n"
     "\n"
     "The module's documentation lists the options.").
-spec compile(function(), [term()], options()) -> function().
compile(Fun, Templates, Options) -> 'Elixir.Nx.Defn':compile(Fun, Templates, with_compiler(Options)).

?DOC("A function over a mesh of devices without arguments that are cut: `shard_jit/3` with no options.").
-spec shard_jit(function(), map()) -> function().
shard_jit(Fun, Mesh) -> shard_jit(Fun, Mesh, []).

?DOC("A function that runs compiled on all devices of a mesh, an `Nx.Mesh`. `fun` is written for whole tensors. The returned function\n"
     "takes one list of argument lists, one for each partition of the mesh in row-major order, with that partition's parts; it returns\n"
     "the list of the partitions' results. Partition `i` runs on device `i` of the client, and its results are there. The client may be\n"
     "a cluster (`Tessera.Cluster`).\n"
     "\n"
     "    mesh = %Nx.Mesh{name: \"mesh\", shape: {2}}\n"
     "    fun = Tessera.shard_jit(&Nx.add(&1, &1), mesh, input_shardings: [%{0 => [0]}])\n"
     "    fun.([[Nx.tensor([1, 2])], [Nx.tensor([3, 4])]])\n"
     "\n"
     "Options, in addition to the module's:\n"
     "\n"
     "  * `:input_shardings` - a list with one sharding for each argument: a map from dims (numbers, negative ones, names, names of\n"
     "    vectorized axes) to lists of mesh axes (numbers); a dim that is not in the map is not cut. A container has one sharding\n"
     "    for all its tensors, a list with one for each, or a container of its form\n"
     "  * `:output_shardings` - the same for the result; otherwise it follows from the program\n"
     "\n"
     "Donated arguments, containers and vectorized tensors work as in `jit/2`; functions that call Elixir (`io_call`, hooks,\n"
     "`runtime_call`) are refused. `Tessera.Mesh` cuts tensors into parts and joins them.").
-spec shard_jit(function(), map(), options()) -> function().
shard_jit(Fun, #{'__struct__' := 'Elixir.Nx.Mesh'} = Mesh, Options) -> 'Elixir.Nx.Defn':shard_jit(Fun, Mesh, with_compiler(Options));
shard_jit(_, Other, _) -> tessera_nx_error:expected("an Nx.Mesh", Other).

?DOC("Whether a compiled program is in the cache for `fun` and arguments of these types and shapes.\n"
     "\n"
     "    Tessera.cached?(&Nx.add/2, [1, 2])").
-spec 'cached?'(function(), [term()]) -> boolean().
'cached?'(Fun, Args) -> 'cached?'(Fun, Args, []).

?DOC("Whether a compiled program is in the cache for `fun`, arguments of these types and shapes, and these options.\n"
     "\n"
     "A program depends on the names of its `:hooks` and on its `:client`; other options do not matter here.").
-spec 'cached?'(function(), [term()], options()) -> boolean().
'cached?'(Fun, Args, Options) when is_list(Args) ->
    tessera_nx_compiler:is_cached(fun(Asking) -> apply(jit(Fun, Asking), Args) end, Options);
'cached?'(_, Args, _) -> tessera_nx_error:expected("a list of arguments", Args).

?DOC("The function as a StableHLO module, for other compilers: `%{mlir_module: text, used_inputs: inputs,\n"
     "output_container: templates}`. The arguments of `@main` are the leaves of the function's arguments that it uses, in their order:\n"
     "`used_inputs` is the list of their positions, from 0.\n"
     "\n"
     "    Tessera.to_mlir_module(&Nx.add/2, [Nx.template({2}, :f32), 1.0])").
-spec to_mlir_module(function(), [term()]) -> map().
to_mlir_module(Fun, Args) -> to_mlir_module(Fun, Args, []).

?DOC("The function as a StableHLO module, for other compilers: `%{mlir_module: text, used_inputs: inputs,\n"
     "output_container: templates}`. The arguments of `@main` are the leaves of the function's arguments that it uses, in their order:\n"
     "`used_inputs` is the list of their positions, from 0.\n"
     "\n"
     "`within_defn_compiler: true` says that the arguments are a `defn` compiler's own: the variables, and the function of\n"
     "them. With `:mesh` and `:input_shardings`, as in `shard_jit/3`, the arguments are a list of argument lists, and the module has\n"
     "the mesh and the shardings as attributes of the dialect `sdy`. The module's documentation lists the other options.").
-spec to_mlir_module(function(), [term()], options()) -> map().
to_mlir_module(Fun, Args, Options) ->
    case lists:keytake(within_defn_compiler, 1, Options) of
        {value, {_, true}, Rest} -> tessera_nx_compiler:to_mlir(Args, Fun, Rest);
        _ -> tessera_nx_compiler:ask_mlir(asked(Fun, Args, lists:keyfind(mesh, 1, Options)),
                                          lists:keydelete(within_defn_compiler, 1, Options))
    end.

%% With a mesh the arguments are lists, one for each partition.
asked(Fun, Args, {_, Mesh}) when Mesh =/= nil -> fun(Asking) -> (shard_jit(Fun, Mesh, Asking))(Args) end;
asked(Fun, Args, _) -> fun(Asking) -> compile(Fun, Args, Asking) end.

with_compiler(Options) when is_list(Options) -> lists:keystore(compiler, 1, Options, {compiler, ?MODULE});
with_compiler(Other) -> tessera_nx_error:expected("options as a keyword list", Other).

%% ---- Nx.Defn.Compiler

?INTERNAL.
-spec '__jit__'(term(), [term()], function(), [list()], options()) -> [term()].
'__jit__'(Key, Vars, Fun, Args, Options) -> tessera_nx_compiler:jit(Key, Vars, Fun, Args, Options).

?INTERNAL.
-spec '__compile__'(term(), [term()], function(), options()) -> function().
'__compile__'(Key, Vars, Fun, Options) -> tessera_nx_compiler:compile(Key, Vars, Fun, Options).

?INTERNAL.
-spec '__partitions_options__'(options()) -> [options()].
'__partitions_options__'(Options) ->
    {Client, _} = 'Elixir.Tessera.Client':place(Options),
    #{device_count := Count} = 'Elixir.Tessera.Client':'fetch!'(Client),
    [lists:keystore(device_id, 1, Options, {device_id, Device}) || Device <- tessera_type:dims(Count)].

?INTERNAL.
-spec '__to_backend__'(options()) -> {module(), options()}.
'__to_backend__'(Options) ->
    {Client, Device} = 'Elixir.Tessera.Client':place(Options),
    {'Elixir.Tessera.Backend', [{client, Client}, {device_id, Device}]}.

?INTERNAL.
-spec '__shard_jit__'(term(), map(), [term()], function(), [list()], options()) -> [term()].
'__shard_jit__'(Key, Mesh, Vars, Fun, Args, Options) -> tessera_nx_compiler:shard_jit(Key, Mesh, Vars, Fun, Args, Options).
