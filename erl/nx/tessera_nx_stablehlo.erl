%% @private Modules of StableHLO for the partitions of a mesh: what Tessera.mlir_module_shardings, and Tessera.from_mlir_module with the option
%% :mesh, do.
-module(tessera_nx_stablehlo).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([signature/1, named/2, shardings/1, shard_jit/3]).

-define(OPTIONS, [mesh, client, threads, names]).

%% With types and unknown sizes as Nx has them.
-spec signature(binary()) -> map().
signature(Module) ->
    Signature = tessera_nx_shard:core(fun() -> tessera_stablehlo:signature(Module) end),
    maps:map(fun(_, Leaves) -> [leaf_of(Leaf) || Leaf <- Leaves] end, Signature).

leaf_of(#{name := Name, type := Type, shape := Shape} = Leaf) ->
    Leaf#{name := case Name of undefined -> nil; _ -> Name end, type := tessera_type:kind(Type),
          shape := list_to_tuple([case Size of any -> nil; _ -> Size end || Size <- tuple_to_list(Shape)])}.

%% The results as a container of Nx, which no list is.
-spec named(tessera_stablehlo_names:names(), [term()]) -> term().
named(Names, Results) ->
    case tessera_stablehlo_names:results(Names, Results) of
        List when is_list(List) -> several(List);
        Container -> Container
    end.

%% With the mesh as an Nx.Mesh.
-spec shardings(binary()) -> map().
shardings(Module) ->
    #{mesh := #{shape := Shape} = Mesh, arguments := Inputs, results := Outputs} =
        tessera_nx_shard:core(fun() -> tessera_stablehlo:shardings(Module) end),
    #{mesh => #{'__struct__' => 'Elixir.Nx.Mesh', name => maps:get(name, Mesh, <<"mesh">>), shape => Shape},
      input_shardings => Inputs, output_shardings => Outputs}.

%% A function of one list of argument lists, one of each partition, as those of Tessera.shard_jit.
-spec shard_jit(binary(), map(), [{atom(), term()}]) -> fun(([[term()]]) -> [term()]).
shard_jit(Module, Mesh, Options) ->
    ok = check_options(Options),
    Checked = tessera_nx_shard:mesh(Mesh),
    Client = tessera_nx_shard:client(Options),
    ok = tessera_nx_shard:check_devices(Checked, Client),
    Own = maps:from_list([Given || {threads, _} = Given <- [lists:keyfind(threads, 1, Options)]]),
    Run = tessera_nx_shard:core(fun() -> tessera_stablehlo:shard_jit(Module, tessera_sharding:plain(Checked), Own#{client => Client}) end),
    case proplists:get_value(names, Options, false) of
        false -> fun(Lists) -> call(Run, Client, Lists, fun several/1) end;
        true -> named_call(Run, Client, tessera_nx_shard:core(fun() -> tessera_stablehlo:names(Module) end));
        Other -> tessera_nx_error:expected("true or false as :names", Other)
    end.

named_call(Run, Client, Names) ->
    fun(Lists) ->
            Arguments = fun(Given) -> tessera_nx_shard:core(fun() -> tessera_stablehlo:arguments(Names, Given) end) end,
            call(Run, Client, [lists:flatmap(Arguments, list(List)) || List <- list(Lists)], fun(Results) -> named(Names, Results) end)
    end.

list(List) ->
    case tessera_type:is_proper(List) of
        true -> List;
        false -> tessera_nx_error:expected("a list of argument lists", List)
    end.

check_options(Options) ->
    case [Key || {Key, _} <- Options, not lists:member(Key, ?OPTIONS)] of
        [] -> ok;
        [Key | _] ->
            tessera_nx_error:argument("a module of StableHLO on a mesh has no option ~ts: the module says how its arguments are cut",
                                      [tessera_nx_error:inspect(Key)])
    end.

call(Run, Client, Lists, Together) ->
    tessera_type:is_proper(Lists) andalso lists:all(fun tessera_type:is_proper/1, Lists) orelse
        tessera_nx_error:expected("a list of argument lists", Lists),
    Given = [[[leaf(Leaf) || Argument <- List, Leaf <- tessera_nx_tensor:flatten(Argument)]] || List <- Lists],
    Results = tessera_nx_shard:core(fun() -> Run(Given) end),
    [Together([tensor(Client, Partition, Part) || Part <- Parts]) || {Partition, Parts} <- lists:zip(lists:seq(0, length(Results) - 1), Results)].

%% As a value of the core, where it is.
leaf(#{'__struct__' := ?TENSOR, vectorized_axes := [_ | _] = Axes}) ->
    tessera_nx_error:argument("a module of StableHLO has no vectorized axes, got a tensor with ~ts", [tessera_nx_error:inspect(Axes)]);
leaf(Leaf) -> tessera_nx_tensor:anywhere('Elixir.Nx':to_tensor(Leaf)).

several([One]) -> One;
several(Several) -> list_to_tuple(Several).

tensor(Client, Partition, #tessera{type = Type, shape = Shape} = Part) ->
    Template = 'Elixir.Nx':template(Shape, tessera_type:kind(Type)),
    Template#{data := tessera_nx_shard:data(Part, Client, Partition)}.
