-module('Elixir.Tessera').
-include("tessera_nx_doc.hrl").
?MODULEDOC("Compiles the functions of `Nx.Defn`.\n"
     "\n"
     "    Nx.Defn.global_default_options(compiler: Tessera)\n"
     "\n"
     "The options of the functions here, beside those of `Nx.Defn`:\n"
     "\n"
     "  * `:cache` - `false` traces and compiles at each call\n"
     "  * `:client`, `:device_id` - where results are, see `Tessera.Client`\n"
     "  * `:debug` - logs what was compiled or found, and how long it took\n"
     "  * `:hooks` - map of functions for named `Nx.io_call`s").
-export(['__info__'/1, jit/1, jit/2, jit_apply/2, jit_apply/3, compile/2, compile/3, 'cached?'/2, 'cached?'/3,
         shard_jit/2, shard_jit/3, to_mlir_module/2, to_mlir_module/3]).
-export(['__jit__'/5, '__compile__'/4, '__partitions_options__'/1, '__to_backend__'/1, '__shard_jit__'/6]).

-type options() :: [{atom(), term()}].

-spec '__info__'(atom()) -> term().
'__info__'(Item) -> tessera_nx_struct:info(?MODULE, #{}, Item).

%% ---- shortcuts

?DOC("A function that compiles `fun` at its first call with arguments of these types and shapes.\n"
     "\n"
     "    Tessera.jit(&Nx.add(&1, 1)).(2)").
-spec jit(function()) -> function().
jit(Fun) -> jit(Fun, []).

?DOC("As `jit/1`, with options.").
-spec jit(function(), options()) -> function().
jit(Fun, Options) -> 'Elixir.Nx.Defn':jit(Fun, with_compiler(Options)).

?DOC("Compiles and calls.").
-spec jit_apply(function(), [term()]) -> term().
jit_apply(Fun, Args) -> jit_apply(Fun, Args, []).

?DOC("Compiles and calls, with options.").
-spec jit_apply(function(), [term()], options()) -> term().
jit_apply(Fun, Args, Options) -> 'Elixir.Nx.Defn':jit_apply(Fun, Args, with_compiler(Options)).

?DOC("Compiles at once, for arguments like the templates:\n"
     "\n"
     "    Tessera.compile(&Nx.sin/1, [Nx.template({3}, :f32)])").
-spec compile(function(), [term()]) -> function().
compile(Fun, Templates) -> compile(Fun, Templates, []).

?DOC("As `compile/2`, with options.").
-spec compile(function(), [term()], options()) -> function().
compile(Fun, Templates, Options) -> 'Elixir.Nx.Defn':compile(Fun, Templates, with_compiler(Options)).

?DOC("A function that raises when it is called: there is no device mesh yet.").
-spec shard_jit(function(), map()) -> function().
shard_jit(Fun, Mesh) -> shard_jit(Fun, Mesh, []).

?DOC("A function that raises when it is called: there is no device mesh yet.").
-spec shard_jit(function(), map(), options()) -> function().
shard_jit(Fun, Mesh, Options) -> 'Elixir.Nx.Defn':shard_jit(Fun, Mesh, with_compiler(Options)).

?DOC("Whether a call with arguments like these would find its program.").
-spec 'cached?'(function(), [term()]) -> boolean().
'cached?'(Fun, Args) -> 'cached?'(Fun, Args, []).

?DOC("As `cached?/2`, for a call with these options, of which hooks count.").
-spec 'cached?'(function(), [term()], options()) -> boolean().
'cached?'(Fun, Args, Options) when is_list(Args) ->
    tessera_nx_compiler:is_cached(fun(Asking) -> apply(jit(Fun, Asking), Args) end, Options);
'cached?'(_, Args, _) -> tessera_nx_error:expected("a list of arguments", Args).

%% The function as a module of StableHLO: #{mlir_module, used_inputs, output_container}. With
%% `within_defn_compiler: true` the arguments are a compiler's own, variables and all.
-spec to_mlir_module(function(), [term()]) -> map().
to_mlir_module(Fun, Args) -> to_mlir_module(Fun, Args, []).

-spec to_mlir_module(function(), [term()], options()) -> map().
to_mlir_module(Fun, Args, Options) ->
    case lists:keytake(within_defn_compiler, 1, Options) of
        {value, {_, true}, Rest} -> tessera_nx_compiler:to_mlir(Args, Fun, Rest);
        _ -> tessera_nx_compiler:ask_mlir(fun(Asking) -> compile(Fun, Args, Asking) end,
                                          lists:keydelete(within_defn_compiler, 1, Options))
    end.

with_compiler(Options) when is_list(Options) -> lists:keystore(compiler, 1, Options, {compiler, ?MODULE});
with_compiler(Other) -> tessera_nx_error:expected("options as a keyword list", Other).

%% ---- Nx.Defn.Compiler

-spec '__jit__'(function(), [term()], function(), [list()], options()) -> [term()].
'__jit__'(Key, Vars, Fun, Args, Options) -> tessera_nx_compiler:jit(Key, Vars, Fun, Args, Options).

-spec '__compile__'(function(), [term()], function(), options()) -> function().
'__compile__'(Key, Vars, Fun, Options) -> tessera_nx_compiler:compile(Key, Vars, Fun, Options).

-spec '__partitions_options__'(options()) -> [options()].
'__partitions_options__'(Options) ->
    {Client, _} = 'Elixir.Tessera.Client':place(Options),
    #{device_count := Count} = 'Elixir.Tessera.Client':'fetch!'(Client),
    [lists:keystore(device_id, 1, Options, {device_id, Device}) || Device <- tessera_type:dims(Count)].

-spec '__to_backend__'(options()) -> {module(), options()}.
'__to_backend__'(Options) ->
    {Client, Device} = 'Elixir.Tessera.Client':place(Options),
    {'Elixir.Tessera.Backend', [{client, Client}, {device_id, Device}]}.

-spec '__shard_jit__'(function(), map(), [term()], function(), [list()], options()) -> no_return().
'__shard_jit__'(_Key, _Mesh, Vars, _Fun, _Args, _Options) ->
    lists:any(fun tessera_nx_tensor:is_donatable/1, tessera_nx_tensor:flatten(list_to_tuple(Vars))) andalso
        tessera_nx_error:argument("buffer donation is not currently supported with sharded execution", []),
    tessera_nx_error:argument("Tessera does not have sharding yet", []).
