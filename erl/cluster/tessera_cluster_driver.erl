%% @private The platform of clusters that this node drives: programs run in the VMs of the ranks, and a tensor is a proxy of a rank's value.
-module(tessera_cluster_driver).
-behaviour(tessera_platform).
-export([is_client/1, is_taken/1, is_tensor/1, clear/0, flags/0, key/1, room/2, own/2, turn/3, home/2, compile/4, profiled/2, kernels/1, explain/1, run/5, measured/3,
         distribute/5, read/2, device/1, deallocate/1]).

%% A process that is no cluster is refused when it is asked for its ranks.
is_client(Client) when is_pid(Client) -> true;
is_client(Client) when is_atom(Client) -> tessera_cluster_names:is_name(Client);
is_client(_) -> false.

is_taken(Name) -> tessera_cluster_names:is_live(Name).
is_tensor(Ref) -> tessera_nif:is_proxy(Ref).
clear() -> tessera_cluster_programs:clear().

flags() -> [].
key(_) -> cluster.
room(Cluster, Partitions) -> tessera_cluster_run:room(Cluster, Partitions).
own(_, Partitions) -> Partitions.
turn(_, _, F) -> F().
home(Cluster, N) -> {Cluster, N}.

compile(_, Part, Options, Types) -> tessera_cluster_run:program(Part, Options, Types).
profiled(_, Program) -> {tessera_cluster_run:key(Program), host}.
kernels(_) -> {0, 0}.
explain(_) -> [].
run(Cluster, Program, Lists, Threads, Donated) -> tessera_cluster_run:run(Cluster, Program, Lists, Threads, Donated).
measured(Cluster, Runs, {Events, _}) -> tessera_cluster_measures:collect(Cluster, Runs, Events).

distribute(Cluster, _, _, _, Pieces) -> tessera_cluster:put(Cluster, Pieces()).
read(Ref, Elements) -> {transfer, fun() -> tessera_cluster_proxy:read(Ref, Elements) end}.
device(Ref) -> tessera_cluster_proxy:device(Ref).
deallocate(Ref) -> tessera_cluster_proxy:deallocate(Ref).
