%% @private Sends requests to ranks and waits for their replies, in the calling process. Results are in the order of the ranks. When ranks
%% fail, the result is the error of the first of them; all replies are waited for in any case.
-module(tessera_cluster_calls).
-export([all/2, all/3, each/2, pack/2, some/1, one/3]).

%% Sends one request to all ranks. It is encoded once.
-spec all(tessera_cluster_state:connections(), term()) -> {ok, [term()]} | {error, map()}.
all(Connections, Request) -> all(Connections, #{}, Request).

%% The same with a head: the values that the request makes and uses.
-spec all(tessera_cluster_state:connections(), tessera_cluster_wire:head(), term()) -> {ok, [term()]} | {error, map()}.
all(#{links := Links, limit := Limit}, Head, Request) ->
    case packed(0, Head, Request, Limit) of
        {ok, Body} ->
            Id = erlang:unique_integer([positive]),
            Requests = [tessera_cluster_link:send_to_all(Link, Id, Head, Body) || Link <- lists:reverse(tuple_to_list(Links))],
            collect(lists:reverse(Requests), [], none);
        Error -> Error
    end.

%% Sends each rank a request of its own. If one request is too large, no rank gets any.
-spec each(tessera_cluster_state:connections(), [{tessera_cluster_wire:head(), term()}]) -> {ok, [term()]} | {error, map()}.
each(#{links := Links, limit := Limit}, Requests) ->
    case pack(Requests, Limit) of
        {ok, Bodies} -> gather([{Link, Head, Body} || {Link, {Head, Body}} <- lists:zip(tuple_to_list(Links), Bodies)]);
        Error -> Error
    end.

%% Encodes requests, the first for rank 0.
-spec pack([{tessera_cluster_wire:head(), term()}], tessera_cluster_blocks:limit()) ->
          {ok, [{tessera_cluster_wire:head(), tessera_cluster_blocks:body()}]} | {error, map()}.
pack(Requests, Limit) -> pack(0, Requests, Limit, []).

pack(Rank, [{Head, Request} | Requests], Limit, Packed) ->
    case packed(Rank, Head, Request, Limit) of
        {ok, Body} -> pack(Rank + 1, Requests, Limit, [{Head, Body} | Packed]);
        Error -> Error
    end;
pack(_, [], _, Packed) -> {ok, lists:reverse(Packed)}.

packed(Rank, Head, Request, Limit) ->
    case tessera_cluster_blocks:pack(Request, tessera_cluster_wire:extra({request, Head}), Limit) of
        {error, Why} -> {error, tessera_cluster_error:too_large(["what this call sends to rank ", integer_to_list(Rank)], Why)};
        Packed -> Packed
    end.

%% Sends small requests to some of the ranks, all before the first reply is waited for.
-spec some([{pid(), tessera_cluster_wire:head(), term()}]) -> {ok, [term()]} | {error, map()}.
some(Requests) -> gather([{Link, Head, tessera_cluster_blocks:packed(Request)} || {Link, Head, Request} <- Requests]).

%% Sends a small request to one rank. It is cancelled when there is no reply within Timeout milliseconds.
-spec one(pid(), term(), timeout()) -> {ok, term()} | {error, map()} | timeout.
one(Link, Request, Timeout) ->
    Sent = tessera_cluster_link:send_request(Link, tessera_cluster_blocks:packed(Request)),
    case tessera_cluster_link:collect(Sent, Timeout) of
        timeout ->
            ok = tessera_cluster_link:cancel(Link, Sent),
            timeout;
        Reply -> Reply
    end.

gather(Bodies) -> collect([tessera_cluster_link:send_request(Link, Head, Body) || {Link, Head, Body} <- Bodies], [], none).

collect([], Results, none) -> {ok, lists:reverse(Results)};
collect([], _, Error) -> {error, Error};
collect([Request | Rest], Results, Error) ->
    case tessera_cluster_link:collect(Request, infinity) of
        {ok, Result} -> collect(Rest, [Result | Results], Error);
        {error, First} when Error =:= none -> collect(Rest, Results, First);
        {error, _} -> collect(Rest, Results, Error)
    end.
