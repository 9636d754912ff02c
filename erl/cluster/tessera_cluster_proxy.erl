%% @private Proxies: tensors of the driver whose memory is a value of a rank. The handle in such a #tessera{} is a resource (nif/nif_proxy.h) that
%% knows the job, the rank and the value's number. The value is freed when the VM collects the last reference to the resource.
-module(tessera_cluster_proxy).
-include("tessera.hrl").
-export([place/4, make/4, is_full/1, relieve/1, info/1, take/1, keep/1, read/2, device/1, cluster/1, deallocate/1]).
-export_type([about/0, place/0]).

%% If the ranks have no memory limit: callers collect their garbage from this number of bytes of proxies on a rank on.
-define(ENOUGH, (1 bsl 26)).

-type place() :: reference().
%% A place's facts about the job of its values.
-type about() :: {Cluster :: pid(), Name :: atom(), Queue :: pid(), Link :: pid(), Host :: binary()}.

%% Makes the place of a rank's values. When a proxy of it is collected, the queue gets a message.
-spec place(about(), non_neg_integer(), pid(), map()) -> place().
place(About, Rank, Queue, #{memory_limit := Limit}) ->
    tessera_nif:place(Queue, Rank, About, case Limit of undefined -> ?ENOUGH; _ -> min(?ENOUGH, Limit div 4) end).

%% A proxy for value Id; a request that was or will be sent makes the value.
-spec make(place(), pos_integer(), tessera:type(), tessera:shape()) -> tessera:tensor().
make(Place, Id, Type, Shape) ->
    case tessera_nif:proxy(Place, Id, tessera_type:elements(Shape) * tessera_type:bytes(Type)) of
        {error, Error} -> tessera_cluster_error:raise(Error);
        Ref -> #tessera{ref = Ref, type = Type, shape = Shape}
    end.

%% Whether the proxies of this place keep so much memory that callers should collect their garbage.
-spec is_full(place()) -> boolean().
is_full(Place) -> tessera_nif:place_is_full(Place).

%% Collects the caller's garbage, and yields: destructors of resources run when the process is scheduled out.
-spec relieve([place()]) -> ok.
relieve(Places) ->
    true = garbage_collect(),
    erlang:yield(),
    lists:foreach(fun tessera_nif:place_collected/1, Places).

%% The value of a proxy: its rank, its number and its job. False for another term; an error for a proxy whose value was taken.
-spec info(term()) -> {Rank :: non_neg_integer(), Id :: pos_integer(), about()} | false | tessera_nif:error().
info(Ref) -> tessera_nif:proxy_info(Ref).

%% Takes the value from the proxy: the caller has to free it. `deallocated' when it was taken before.
-spec take(reference()) -> ok | deallocated | tessera_nif:error().
take(Ref) -> tessera_nif:proxy_take(Ref).

%% Does nothing. A caller that sends requests with the numbers of proxies calls this with the proxies afterwards: so they are not garbage, and
%% their values not freed, before the requests were sent.
-spec keep(term()) -> ok.
keep(_) -> ok.

%% The bytes of the value's first elements, or of all if their number is negative. Waits until the value is made. The handle must be a proxy.
-spec read(reference(), integer()) -> binary() | tessera_nif:error().
read(Ref, Elements) ->
    case info(Ref) of
        {error, _} = Error -> Error;
        {_, Id, {_, _, _, Link, _}} = Info ->
            Answer = tessera_cluster_calls:some([{Link, #{uses => [Id]}, {read, Id, Elements}}]),
            ok = ?MODULE:keep(Ref),
            answered(Answer, Info)
    end.

answered({ok, [Bytes]}, _) when is_binary(Bytes) -> Bytes;
answered({error, Error}, {Rank, _, {Cluster, _, Queue, Link, Host}}) ->
    case is_process_alive(Link) of
        true -> {error, Error};
        false -> {error, lost(Rank, Host, tessera_cluster_state:why(Cluster, Queue, Error))}
    end.

lost(Rank, Host, #{message := Why}) ->
    tessera_cluster_error:new(unavailable, "the tensor was on rank ~b on ~ts, and is lost with the cluster's ranks: ~ts", [Rank, Host, Why]).

%% The cluster's name, or its process if it has no name, and the rank; false for a handle that is no proxy.
-spec device(reference()) -> {atom() | pid(), non_neg_integer()} | false | tessera_nif:error().
device(Ref) ->
    case info(Ref) of
        {Rank, _, {Cluster, undefined, _, _, _}} -> {Cluster, Rank};
        {Rank, _, {_, Name, _, _, _}} -> {Name, Rank};
        Other -> Other
    end.

%% The cluster's process; none for a handle that is no proxy.
-spec cluster(term()) -> pid() | none.
cluster(Ref) ->
    case info(Ref) of
        {_, _, {Cluster, _, _, _, _}} -> Cluster;
        {error, Error} -> tessera_cluster_error:raise(Error);
        false -> none
    end.

%% Frees the value now, instead of when the proxy is collected.
-spec deallocate(reference()) -> ok | deallocated | tessera_nif:error().
deallocate(Ref) ->
    case {info(Ref), take(Ref)} of
        {{Rank, Id, {_, _, Queue, _, _}}, ok} -> tessera_cluster_queue:free(Queue, [{Rank, Id}]);
        {_, Taken} -> Taken
    end.
