%% @private The platform of the cluster that this node is a rank of. Each rank has some of the partitions. The rank's own devices have them: the devices
%% of its client `host'. So tensors are handles of the library.
-module(tessera_cluster_member).
-behaviour(tessera_platform).
-export([is_client/1, is_taken/1, is_tensor/1, clear/0, flags/0, key/1, room/2, own/2, turn/3, home/2, compile/4, profiled/2, kernels/1, explain/1, run/5, measured/3,
         distribute/5]).

is_client(Client) -> tessera_cluster_joined:find(Client) =/= none.
is_taken(Name) -> tessera_cluster_names:is_live(Name).
is_tensor(_) -> false.
clear() -> ok.

flags() -> [handles].
key(_) -> cluster.
room(Cluster, Partitions) -> tessera_cluster_joined:room(joined(Cluster), Partitions).

own(Cluster, Partitions) ->
    #{ranks := Ranks} = joined(Cluster),
    Partitions div Ranks.

turn(Cluster, Name, F) -> tessera_cluster_joined:turn(joined(Cluster), Name, F).
home(_, N) -> {host, N}.

compile(_, Part, Options, _) -> tessera_cluster_joined:program(Part, Options).
profiled(_, Program) -> {tessera_cluster_joined:executable(Program), host}.
kernels(_) -> {0, 0}.
explain(_) -> [].
run(Cluster, Program, Lists, Threads, Donated) -> tessera_cluster_joined:run(joined(Cluster), Program, Lists, {Threads, Donated}).

%% The rank's own measures, since other ranks may profile nothing; or those of all ranks, which then all call this.
measured(Cluster, Runs, {Events, own}) ->
    #{rank := Rank} = joined(Cluster),
    [tessera_cluster_measures:own(Rank, Runs, Events)];
measured(Cluster, Runs, {Events, all}) ->
    #{rank := Rank, ranks := Ranks} = Joined = joined(Cluster),
    tessera_cluster_spmd:measured(Joined, tessera_cluster_measures:own(Rank, Runs, Events div Ranks)).

distribute(Cluster, _, _, _, Pieces) -> tessera_cluster_joined:put(joined(Cluster), Pieces()).

%% The node may have left between two calls.
joined(Cluster) ->
    case tessera_cluster_joined:find(Cluster) of
        none -> tessera_cluster_error:raise(tessera_cluster_error:new(unavailable, "this rank has left the cluster", []));
        Joined -> Joined
    end.
