%% @private The behaviour of clusters. Modules of this folder and of later ones reach clusters by these functions. They call the registered module,
%% which is tessera_cluster_client. tessera_cluster registers it before the first cluster of the node begins. A node without a registered module has
%% no clusters, and no tensors of ranks.
-module(tessera_clusters).
-export([register/1, is_cluster/1, is_live/1, read/2, device/1, deallocate/1, clear/0, check/3, own/2, turn/3, program/4, run/5, put/2]).
-export_type([cluster/0, program/0]).

-type cluster() :: pid() | atom().
-type program() :: term().   % of the module that is registered
-type tensors() :: [tessera_type:tensor()].

%% Whether the name is that of a cluster, which may have ended.
-callback is_name(atom()) -> boolean().
%% Whether the cluster with that name runs.
-callback is_live(atom()) -> boolean().
%% The bytes of the first elements of a rank's tensor, or of all if their number is negative.
-callback read(reference(), integer()) -> binary() | tessera_nif:error().
%% The cluster and the rank that have a tensor.
-callback device(reference()) -> {cluster(), non_neg_integer()} | false | tessera_nif:error().
-callback deallocate(reference()) -> ok | deallocated | tessera_nif:error().
%% Drops the compiled programs that ranks keep for this node.
-callback clear() -> ok.
%% Calls the function with a format and its values when the ranks cannot have that many partitions.
-callback check(cluster(), pos_integer(), fun((io:format(), [term()]) -> no_return())) -> ok.
%% How many of the mesh's partitions the caller gives arguments for. The second argument is the number of partitions of the mesh.
-callback own(term(), non_neg_integer()) -> non_neg_integer().
%% Calls the function when the process has the turn. The function prepares one run. Errors have the name.
-callback turn(term(), fun(() -> iodata()), fun(() -> Result)) -> Result.
%% Makes the program that ranks run: from the program of one partition, the options, and the types and shapes of the partition's results.
-callback program(cluster(), tessera_nif:builder(), [atom()], [{tessera_type:type(), tessera_type:shape()}]) -> program() | tessera_nif:error().
%% Runs a program: with a list of arguments for each partition, the number of threads, and the donated arguments as bits.
-callback run(cluster(), program(), [[tessera_type:operand()]], non_neg_integer(), non_neg_integer()) -> [tensors()] | tessera_nif:error().
%% Moves tensors to ranks: one tensor for each partition.
-callback put(cluster(), tensors()) -> tensors().

%% ---- the module

-spec register(module()) -> ok.
register(Module) -> persistent_term:put(?MODULE, Module).

-spec module() -> module() | none.
module() -> persistent_term:get(?MODULE, none).

%% The same for a call that needs a cluster.
-spec module([term()]) -> module().
module(Args) ->
    case module() of
        none -> tessera_error:raise(cluster, Args, unavailable, "the cluster was stopped, or is not one", []);
        Module -> Module
    end.

%% ---- calls

%% Whether a client is a cluster. A cluster is given by its process or by its name.
-spec is_cluster(term()) -> boolean().
is_cluster(Client) when is_pid(Client) -> true;
is_cluster(Client) when is_atom(Client) ->
    case module() of
        none -> false;
        Module -> Module:is_name(Client)
    end;
is_cluster(_) -> false.

-spec is_live(atom()) -> boolean().
is_live(Name) ->
    case module() of
        none -> false;
        Module -> Module:is_live(Name)
    end.

-spec read(reference(), integer()) -> binary() | tessera_nif:error().
read(Ref, Elements) -> (module([Ref])):read(Ref, Elements).

-spec device(reference()) -> {cluster(), non_neg_integer()} | false | tessera_nif:error().
device(Ref) -> (module([Ref])):device(Ref).

-spec deallocate(reference()) -> ok | deallocated | tessera_nif:error().
deallocate(Ref) -> (module([Ref])):deallocate(Ref).

-spec clear() -> ok.
clear() ->
    case module() of
        none -> ok;
        Module -> Module:clear()
    end.

-spec check(cluster(), pos_integer(), fun((io:format(), [term()]) -> no_return())) -> ok.
check(Cluster, Partitions, Refuse) -> (module([Cluster])):check(Cluster, Partitions, Refuse).

%% Of another client all partitions.
-spec own(term(), non_neg_integer()) -> non_neg_integer().
own(Client, Partitions) ->
    case module() of
        none -> Partitions;
        Module -> Module:own(Client, Partitions)
    end.

%% Functions of another client take no turns.
-spec turn(term(), fun(() -> iodata()), fun(() -> Result)) -> Result.
turn(Client, Name, F) ->
    case module() of
        none -> F();
        Module -> Module:turn(Client, Name, F)
    end.

-spec program(cluster(), tessera_nif:builder(), [atom()], [{tessera_type:type(), tessera_type:shape()}]) -> program() | tessera_nif:error().
program(Cluster, Part, Options, Types) -> (module([Cluster])):program(Cluster, Part, Options, Types).

-spec run(cluster(), program(), [[tessera_type:operand()]], non_neg_integer(), non_neg_integer()) -> [tensors()] | tessera_nif:error().
run(Cluster, Program, Lists, Threads, Donated) -> (module([Cluster])):run(Cluster, Program, Lists, Threads, Donated).

-spec put(cluster(), tensors()) -> tensors().
put(Cluster, Parts) -> (module([Cluster])):put(Cluster, Parts).
