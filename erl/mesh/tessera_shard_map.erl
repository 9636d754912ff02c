%% @private How the function of a tessera:shard_map is traced: as the program of one partition, whose arguments and results have
%% shardings (docs/distribution.md). tessera_shard compiles and calls it.
-module(tessera_shard_map).
-include("tessera.hrl").
-export([trace/5]).

%% Calls the function Call, whose parameters have these cuts, in the program that is traced. ResultCuts tells the cuts of the
%% result's leaves; if Check, a leaf that varies over an axis of its replication is an error.
-spec trace(tessera_sharding:checked(), [tessera_sharding:cuts()],
            fun((tessera_tree:signature()) -> [tessera_sharding:cuts()]), boolean(), fun(() -> term())) -> term().
trace(Mesh, Cuts, ResultCuts, Check, Call) ->
    tessera_collective:on_mesh(Mesh, fun() ->
        set_shardings(parameter, Cuts),
        {Signature, Leaves} = tessera_tree:flatten(Call()),
        Values = [tessera_trace:value(shard_map, Leaf) || Leaf <- Leaves],
        Own = ResultCuts(Signature),
        Check andalso check_results(Values, Own),
        set_shardings(result, Own),
        tessera_tree:unflatten(Signature, Values)
    end).

check_results(Values, Cuts) ->
    [check_result(Position, Varying band bnot tessera_varying:set([Axis || {Axis, _} <- Own]))
     || {Position, Varying, Own} <- lists:zip3(lists:seq(1, length(Values)), tessera_varying:varying(Values), Cuts)].

check_result(_, 0) -> ok;
check_result(Position, Set) ->
    tessera_error:raise(shard_map, [], invalid_argument,
                        "shard_map: result ~b varies over ~ts, over which its sharding says that it is replicated; reduce or gather "
                        "it, or cut one of its dims", [Position, tessera_varying:names(Set)]).

set_shardings(Side, All) ->
    lists:foreach(fun({Index, Cuts}) -> set_sharding(Side, Index, Cuts) end,
                  lists:zip(lists:seq(0, length(All) - 1), All)).

set_sharding(parameter, _, []) -> ok;
set_sharding(Side, Index, Cuts) ->
    {Axes, Dims} = lists:unzip(Cuts),
    tessera_error:check(shard_map, [], tessera_nif:local_sharding(tessera_trace:current(), Side, Index, Axes, Dims)).
