%% @private The values of a rank: tensors and compiled programs, by numbers. Some are still being made. The rank's main process keeps the use count of
%% each value, in the order of the driver's requests: 1 for the driver, and 1 for each request that uses it. Any process may read values, and set
%% expected ones.
-module(tessera_rank_values).
-include("tessera.hrl").
-export([new/0, expect/3, retain/1, release/1, add/1, drop_added/1, set/2, fail/2, is_pending/1, await/1, count/1]).
-export_type([id/0]).

-define(VALUES, tessera_rank_values).    % {Id, pending | {ready, Value} | {failed, Error}, Count, Maker}: the request or process, or none
-define(WAITING, tessera_rank_waiting).  % {Id, Process}: processes in await/1
%% Numbers above this are given by the rank, others by the driver.
-define(OWN, (1 bsl 62)).

-type id() :: pos_integer().
-type value() :: tessera:tensor() | tessera_nif:executable() | {Partitions :: pos_integer(), Measures :: tuple()}.
-type cause() :: {Code :: atom(), Text :: binary()}.

%% Makes the tables. They belong to the caller, the rank's main process.
-spec new() -> ok.
new() ->
    ?VALUES = ets:new(?VALUES, [named_table, public, {read_concurrency, true}]),
    ?WAITING = ets:new(?WAITING, [named_table, public, bag]),
    ok.

%% ---- by the main process

%% Notes the values that a request will make, with the driver's use. Existing values remain: a request for a program may come twice.
-spec expect(id(), non_neg_integer(), Request :: pos_integer()) -> ok.
expect(First, Count, Request) ->
    _ = ets:insert_new(?VALUES, [{Id, pending, 1, Request} || Id <- lists:seq(First, First + Count - 1)]),
    ok.

%% Adds a use to each. A missing value becomes a failed one.
-spec retain([id()]) -> ok.
retain(Ids) ->
    _ = [ets:update_counter(?VALUES, Id, {3, 1}, {Id, {failed, {internal, <<"the value is not here">>}}, 0, none}) || Id <- Ids],
    ok.

%% Ends a use of each, which frees a value without another one. Returns the request that was to make it for each value that was freed.
-spec release([id()]) -> [Request :: pos_integer()].
release(Ids) -> [Maker || Id <- Ids, Maker <- drop(Id), is_integer(Maker)].

drop(Id) ->
    try ets:update_counter(?VALUES, Id, {3, -1}) of
        0 ->
            true = ets:delete(?WAITING, Id),
            [Maker || {_, _, _, Maker} <- ets:take(?VALUES, Id)];
        _ -> []
    catch error:badarg -> []
    end.

%% Frees the values that a process has added, when it was ended before it told the driver of them.
-spec drop_added(pid()) -> ok.
drop_added(Process) ->
    true = ets:match_delete(?VALUES, {'_', '_', '_', Process}),
    ok.

%% ---- by any process

%% Adds a tensor that the calling process has made for the driver, under a number that the rank gives.
-spec add(tessera:tensor()) -> id().
add(Tensor) ->
    Id = ?OWN + erlang:unique_integer([positive]),
    true = ets:insert(?VALUES, {Id, {ready, Tensor}, 1, self()}),
    Id.

%% Sets a value that was expected; has no effect if it was freed meanwhile.
-spec set(id(), value()) -> ok.
set(Id, Value) -> become(Id, {ready, Value}).

%% Sets the pending ones to failed, with this cause.
-spec fail([id()], cause()) -> ok.
fail(Ids, Cause) -> lists:foreach(fun(Id) -> become(Id, {failed, Cause}) end, [Id || Id <- Ids, is_pending(Id)]).

-spec is_pending(id()) -> boolean().
is_pending(Id) -> lists:member(pending, [Value || {_, Value, _, _} <- ets:lookup(?VALUES, Id)]).

become(Id, Value) ->
    _ = ets:update_element(?VALUES, Id, {2, Value}),
    _ = [Process ! {?MODULE, Id} || {_, Process} <- ets:take(?WAITING, Id)],
    ok.

%% Waits until the value is made. Raises the cause of a failed value, and `cancelled' when the caller gets the message `cancel'.
-spec await(id()) -> value().
await(Id) ->
    case ets:lookup(?VALUES, Id) of
        [{_, {ready, Value}, _, _}] -> Value;
        [{_, {failed, Cause}, _, _}] -> error(Cause);
        [{_, pending, _, _}] ->
            true = ets:insert(?WAITING, {Id, self()}),
            _ = [wait(Id) || is_pending(Id)],
            true = ets:delete_object(?WAITING, {Id, self()}),
            await(Id);
        [] -> error({internal, <<"the value is not here">>})
    end.

wait(Id) ->
    receive
        {?MODULE, Id} -> ok;
        cancel -> error({cancelled, <<"the run was cancelled">>})
    end.

%% The use count of an existing value.
-spec count(id()) -> non_neg_integer().
count(Id) -> ets:lookup_element(?VALUES, Id, 3).
