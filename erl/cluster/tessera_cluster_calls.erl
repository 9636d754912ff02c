%% @private Sends requests to ranks and waits for their replies, in the calling process. Results are in the order of the ranks. When ranks
%% fail, the result is the error of the first of them; all replies are waited for in any case.
-module(tessera_cluster_calls).
-export([all/2, all/3, each/2, some/1, one/3]).

%% Sends one request to all ranks. It is encoded once.
-spec all(tuple(), term()) -> {ok, [term()]} | {error, map()}.
all(Links, Request) -> all(Links, #{}, Request).

%% The same with a head, which says what values the request makes and uses.
-spec all(tuple(), tessera_cluster_wire:head(), term()) -> {ok, [term()]} | {error, map()}.
all(Links, Head, Request) ->
    Body = term_to_iovec(Request),
    Id = erlang:unique_integer([positive]),
    Requests = [tessera_cluster_link:send_to_all(Link, Id, Head, Body) || Link <- lists:reverse(tuple_to_list(Links))],
    collect(lists:reverse(Requests), [], none).

%% Sends each rank a request of its own.
-spec each(tuple(), [{tessera_cluster_wire:head(), term()}]) -> {ok, [term()]} | {error, map()}.
each(Links, Requests) -> some([{Link, Head, Request} || {Link, {Head, Request}} <- lists:zip(tuple_to_list(Links), Requests)]).

%% Sends requests to some of the ranks, all before the first reply is waited for.
-spec some([{pid(), tessera_cluster_wire:head(), term()}]) -> {ok, [term()]} | {error, map()}.
some(Requests) -> gather([{Link, Head, term_to_iovec(Request)} || {Link, Head, Request} <- Requests]).

%% Sends a request to one rank. It is cancelled when there is no reply within Timeout milliseconds.
-spec one(pid(), term(), timeout()) -> {ok, term()} | {error, map()} | timeout.
one(Link, Request, Timeout) ->
    Sent = tessera_cluster_link:send_request(Link, term_to_iovec(Request)),
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
