%% @private Clusters as clients: what modules below this folder call. tessera_cluster and tessera_cluster_join register it before a cluster
%% begins (tessera_clusters).
-module(tessera_cluster_client).
-behaviour(tessera_clusters).
-export([is_name/1, is_live/1, read/2, device/1, deallocate/1, clear/0, check/3, own/2, turn/3, program/4, run/5, put/2]).

is_name(Name) -> tessera_cluster_names:is_name(Name).
is_live(Name) -> tessera_cluster_names:is_live(Name).

read(Ref, Elements) -> tessera_cluster_proxy:read(Ref, Elements).
device(Ref) -> tessera_cluster_proxy:device(Ref).
deallocate(Ref) -> tessera_cluster_proxy:deallocate(Ref).

clear() -> tessera_cluster_programs:clear().

check(Cluster, Partitions, Refuse) -> tessera_cluster_run:check(Cluster, Partitions, Refuse).
own(Client, Partitions) -> tessera_cluster_joined:own(Client, Partitions).
turn(Client, Name, F) -> tessera_cluster_joined:turn(Client, Name, F).
program(Cluster, Part, Options, Types) -> tessera_cluster_run:program(Cluster, Part, Options, Types).
run(Cluster, Program, Lists, Threads, Donated) -> tessera_cluster_run:run(Cluster, Program, Lists, Threads, Donated).

put(Cluster, Parts) ->
    case tessera_cluster_joined:find(Cluster) of
        none -> tessera_cluster:put(Cluster, Parts);
        Joined -> tessera_cluster_joined:put(Joined, Parts)
    end.
