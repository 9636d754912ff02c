%% @private Tensors that are on a rank of a cluster, as the driver has them: records of tensors whose handle is a proxy (nif/nif_proxy.h).
%% A proxy knows its rank, the job, and the number of the value there. The last reference to it frees the value.
-module(tessera_cluster_proxy).
-include("tessera.hrl").
-export([place/4, make/4, is_full/1, relieve/1, in_reply/2, info/1, take/1, keep/1, read/2, device/1, cluster/1, deallocate/1]).
-export_type([about/0, place/0]).

%% Bytes on a rank up to which no caller collects garbage, where the ranks have no limit of their own.
-define(ENOUGH, (1 bsl 26)).

-type place() :: reference().
%% Where a value is: in the job of these processes.
-type about() :: {Cluster :: pid(), Name :: atom(), Queue :: pid(), Link :: pid(), Host :: binary()}.

%% The place of a rank's values; their ends are told to the queue.
-spec place(about(), non_neg_integer(), pid(), map()) -> place().
place(About, Rank, Queue, #{memory_limit := Limit}) ->
    tessera_nif:place(Queue, Rank, About, case Limit of undefined -> ?ENOUGH; _ -> min(?ENOUGH, Limit div 4) end).

-spec make(place(), pos_integer(), tessera:type(), tessera:shape()) -> tessera:tensor().
make(Place, Id, Type, Shape) ->
    case tessera_nif:proxy(Place, Id, tessera_type:elements(Shape) * tessera_type:bytes(Type)) of
        {error, Error} -> tessera_cluster_error:raise(Error);
        Ref -> #tessera{ref = Ref, type = Type, shape = Shape}
    end.

%% The caller may hold proxies that are garbage, of many bytes on their rank.
-spec is_full(place()) -> boolean().
is_full(Place) -> tessera_nif:place_is_full(Place).

%% Collects the caller's garbage. Destructors run when the process is scheduled out.
-spec relieve([place()]) -> ok.
relieve(Places) ->
    true = garbage_collect(),
    erlang:yield(),
    lists:foreach(fun tessera_nif:place_collected/1, Places).

%% A reply in which tensors have the positions of their proxies.
-spec in_reply(term(), tuple()) -> term().
in_reply(Reply, Proxies) ->
    tessera_cluster_terms:replace(fun(Position, Type, Shape) -> #tessera{ref = element(Position, Proxies), type = Type, shape = Shape} end,
                                  Reply).

%% Where the value is; false for what is no proxy.
-spec info(term()) -> {Rank :: non_neg_integer(), Id :: pos_integer(), about()} | false | tessera_nif:error().
info(Ref) -> tessera_nif:proxy_info(Ref).

%% From now on the caller owns the value.
-spec take(reference()) -> ok | deallocated | tessera_nif:error().
take(Ref) -> tessera_nif:proxy_take(Ref).

%% Called after requests that use the values of a term's proxies were sent: until then the caller refers to them, so that its garbage
%% collection does not free the values first.
-spec keep(term()) -> ok.
keep(_) -> ok.

%% The first bytes of the value, once it is made; all if the number of elements is negative. Not for what is no proxy.
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
        false -> {error, lost(Rank, Host, tessera_cluster:why(Cluster, Queue, Error))}
    end.

lost(Rank, Host, #{message := Why}) ->
    tessera_cluster_error:new(unavailable, "the tensor was on rank ~b on ~ts, and is lost with the cluster's ranks: ~ts", [Rank, Host, Why]).

%% The cluster, and the rank.
-spec device(reference()) -> {atom() | pid(), non_neg_integer()} | false | tessera_nif:error().
device(Ref) ->
    case info(Ref) of
        {Rank, _, {Cluster, undefined, _, _, _}} -> {Cluster, Rank};
        {Rank, _, {_, Name, _, _, _}} -> {Name, Rank};
        Other -> Other
    end.

%% The cluster of a proxy.
-spec cluster(term()) -> pid() | none.
cluster(Ref) ->
    case info(Ref) of
        {_, _, {Cluster, _, _, _, _}} -> Cluster;
        {error, Error} -> tessera_cluster_error:raise(Error);
        false -> none
    end.

-spec deallocate(reference()) -> ok | deallocated | tessera_nif:error().
deallocate(Ref) ->
    case {info(Ref), take(Ref)} of
        {{Rank, Id, {_, _, Queue, _, _}}, ok} -> tessera_cluster_queue:free(Queue, [{Rank, Id}]);
        {_, Taken} -> Taken
    end.
