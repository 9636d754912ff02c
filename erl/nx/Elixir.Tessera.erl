%% Compiles Nx functions: `Nx.Defn.jit(&f/1, compiler: Tessera)', or the
%% functions of this module, which are named as EXLA's. Results are tensors of
%% Tessera.Backend. docs/elixir.md says how to set it up and what options there
%% are.
-module('Elixir.Tessera').
-export(['__info__'/1, jit/1, jit/2, jit_apply/2, jit_apply/3, compile/2, compile/3, 'cached?'/2, 'cached?'/3,
         shard_jit/2, shard_jit/3, to_mlir_module/2, to_mlir_module/3]).
-export(['__jit__'/5, '__compile__'/4, '__partitions_options__'/1, '__to_backend__'/1, '__shard_jit__'/6]).

-type options() :: [{atom(), term()}].

-spec '__info__'(atom()) -> term().
'__info__'(Item) -> tessera_nx_struct:info(?MODULE, #{}, Item).

%% ---- shortcuts

-spec jit(function()) -> function().
jit(Fun) -> jit(Fun, []).

-spec jit(function(), options()) -> function().
jit(Fun, Options) -> 'Elixir.Nx.Defn':jit(Fun, with_compiler(Options)).

-spec jit_apply(function(), [term()]) -> term().
jit_apply(Fun, Args) -> jit_apply(Fun, Args, []).

-spec jit_apply(function(), [term()], options()) -> term().
jit_apply(Fun, Args, Options) -> 'Elixir.Nx.Defn':jit_apply(Fun, Args, with_compiler(Options)).

-spec compile(function(), [term()]) -> function().
compile(Fun, Templates) -> compile(Fun, Templates, []).

-spec compile(function(), [term()], options()) -> function().
compile(Fun, Templates, Options) -> 'Elixir.Nx.Defn':compile(Fun, Templates, with_compiler(Options)).

-spec shard_jit(function(), map()) -> no_return().
shard_jit(Fun, Mesh) -> shard_jit(Fun, Mesh, []).

-spec shard_jit(function(), map(), options()) -> no_return().
shard_jit(_Fun, _Mesh, _Options) -> no_sharding().

%% Whether the function was compiled for arguments like these, with these options (hooks count).
-spec 'cached?'(function(), [term()]) -> boolean().
'cached?'(Fun, Args) -> 'cached?'(Fun, Args, []).

-spec 'cached?'(function(), [term()], options()) -> boolean().
'cached?'(Fun, Args, Options) ->
    tessera_nx_compiler:is_cached(fun(Asking) -> apply(jit(Fun, Asking), Args) end, Options).

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

with_compiler(Options) -> lists:keystore(compiler, 1, Options, {compiler, ?MODULE}).

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
'__shard_jit__'(_Key, _Mesh, _Vars, _Fun, _Args, _Options) -> no_sharding().

-spec no_sharding() -> no_return().
no_sharding() -> tessera_nx_error:argument("Tessera does not have sharding yet", []).
