%% @private What the process of a cluster (tessera_cluster) tells other processes: its connections to the ranks, its options, and why a job
%% has ended.
-module(tessera_cluster_state).
-export([ask/2, process/1, process_of/1, gone/1, connections/1, options/1, why/3]).
-export_type([cluster/0, connections/0]).

-type cluster() :: pid() | atom().

%% The running job. `links': the connections to all ranks; `compilers': to the ranks that compile for their hosts; `queue': the process that sends
%% runs; `places': the place of each rank's values; `limit': the most bytes of a message; `table': the programs that the ranks have.
-type connections() :: #{links := tuple(), compilers := [pid()], queue := pid(), places := tuple(), limit := pos_integer(), table := ets:table()}.

%% Milliseconds for the answer why a job has ended.
-define(WHY, 10000).

%% The checked options.
-spec options(cluster()) -> map().
options(Cluster) -> ask(Cluster, options).

%% The process of the cluster. Other processes with registered names are none.
-spec process(cluster()) -> pid().
process(Cluster) ->
    case process_of(Cluster) of
        none -> tessera_cluster_error:raise(gone(Cluster));
        Pid -> Pid
    end.

%% The same, but none when the cluster has ended.
-spec process_of(term()) -> pid() | none.
process_of(Cluster) when is_pid(Cluster) -> Cluster;
process_of(Cluster) when is_atom(Cluster) -> tessera_cluster_names:pid(Cluster);
process_of(Cluster) ->
    tessera_cluster_error:raise(tessera_cluster_error:new(invalid_argument, "expected a cluster, which is a process or its name, got ~ts",
                                                          [tessera_error:show(Cluster)])).

-spec ask(cluster(), term()) -> term().
ask(Cluster, Request) ->
    try gen_server:call(process(Cluster), Request, infinity)
    catch exit:_ -> tessera_cluster_error:raise(gone(Cluster))
    end.

%% The error of a cluster that has ended.
-spec gone(cluster()) -> #{code := atom(), message := binary()}.
gone(Cluster) when is_atom(Cluster) ->
    case tessera_cluster_names:is_name(Cluster) of
        true -> tessera_cluster_error:new(unavailable, "the cluster ~0tp has ended; if a supervisor starts it again, that is not done yet", [Cluster]);
        false -> tessera_cluster_error:new(unavailable, "there is no cluster ~0tp", [Cluster])
    end;
gone(_) -> tessera_cluster_error:lost(noproc).

%% Why the job with that queue has ended, as far as it is known; else the other error.
-spec why(pid(), pid(), map()) -> map().
why(Cluster, Queue, Other) ->
    try gen_server:call(Cluster, {why, Queue}, ?WHY) of
        unknown -> Other;
        Error -> Error
    catch exit:_ -> Other
    end.

%% The connections to the ranks; waits while they are started again.
-spec connections(cluster()) -> connections().
connections(Cluster) ->
    case ask(Cluster, connections) of
        {ok, Connections} -> Connections;
        {error, Error} -> tessera_cluster_error:raise(Error)
    end.
