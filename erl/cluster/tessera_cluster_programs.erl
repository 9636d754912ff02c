%% @private The compiled programs of a job's ranks, as the driver knows them: a table of the job. On the ranks a program is a value
%% (tessera_rank_values) with the same number everywhere, so a program that is dropped here lives on there until the runs that use it
%% have ended. The table keeps as many as `max_programs' says, and drops the least recently used.
%%
%% A row is {{sent, Fingerprint}, Id, Used} when all ranks have the program, and {{pending, Id}, Id, Used} before. The row of a caller
%% that was killed in between stays pending and is dropped as the others are.
-module(tessera_cluster_programs).
-export([new/2, find/2, fetch/3, is_current/1, numbers/2, clear/0, clear/1]).
-export_type([sent/0]).

-opaque sent() :: {ets:table(), Fingerprint :: binary(), Id :: pos_integer()}.

-spec new(Queue :: pid(), Ranks :: pos_integer()) -> ets:table().
new(Queue, Ranks) ->
    Table = ets:new(?MODULE, [public, {read_concurrency, true}]),
    true = ets:insert(Table, [{job, Queue, Ranks}, {numbers, 0}]),
    Table.

%% So many numbers of values that no rank has; returns the first. Without a table the job has ended, as the next request will tell.
-spec numbers(ets:table(), non_neg_integer()) -> pos_integer().
numbers(Table, Count) ->
    try ets:update_counter(Table, numbers, Count) - Count + 1
    catch error:badarg -> 1
    end.

%% The program that all ranks have, and the number of its value.
-spec find(ets:table(), binary()) -> {ok, pos_integer(), sent()} | none.
find(Table, Fingerprint) ->
    Key = {sent, Fingerprint},
    try ets:update_element(Table, Key, {3, now_used()}) andalso ets:lookup_element(Table, Key, 2) of
        false -> none;
        Id -> {ok, Id, {Table, Fingerprint, Id}}
    catch error:badarg -> none
    end.

%% The same; Send(Id) sends a program that the ranks do not have. Of two callers that send one program the second drops its own.
-spec fetch(ets:table(), binary(), fun((pos_integer()) -> {ok, term()} | {error, map()})) -> {ok, pos_integer(), sent()} | {error, map()}.
fetch(Table, Fingerprint, Send) ->
    case find(Table, Fingerprint) of
        {ok, _, _} = Found -> Found;
        none ->
            Id = numbers(Table, 1),
            _ = insert(Table, {{pending, Id}, Id, now_used()}),
            case Send(Id) of
                {ok, _} ->
                    ok = sent(Table, Fingerprint, Id),
                    {ok, Id, {Table, Fingerprint, Id}};
                {error, _} = Error ->
                    ok = not_sent(Table, Id),
                    Error
            end
    end.

%% A pending row that is gone was dropped, perhaps before the program arrived at a rank. Then this frees it again.
sent(Table, Fingerprint, Id) ->
    try ets:take(Table, {pending, Id}) =/= [] andalso ets:insert_new(Table, {{sent, Fingerprint}, Id, now_used()}) of
        true -> bound(Table, max(1, tessera_cache:max_programs()));
        false -> free(Table, [Id])
    catch error:badarg -> ok
    end.

%% A rank that compiled the program has it.
not_sent(Table, Id) ->
    try ets:delete(Table, {pending, Id}) of
        true -> free(Table, [Id])
    catch error:badarg -> ok
    end.

%% Whether the ranks still have it. When the queue asks and sends a run at once, the program is freed after the run has arrived.
-spec is_current(sent()) -> boolean().
is_current({Table, Fingerprint, Id}) ->
    try ets:lookup_element(Table, {sent, Fingerprint}, 2) =:= Id
    catch error:badarg -> false
    end.

now_used() -> erlang:unique_integer([monotonic]).

insert(Table, Row) ->
    try ets:insert(Table, Row)
    catch error:badarg -> false
    end.

%% ---- dropping

%% Two rows are no programs.
bound(Table, Most) ->
    case ets:info(Table, size) of
        Size when is_integer(Size), Size - 2 > Most ->
            drop(Table, [Key || {_, Key} <- lists:sublist(lists:sort(by_use(Table)), Size - 2 - Most)]);
        _ -> ok
    end.

by_use(Table) ->
    try ets:select(Table, [{{{'$1', '$2'}, '_', '$3'}, [], [{{'$3', {{'$1', '$2'}}}}]}])
    catch error:badarg -> []
    end.

%% Of several callers that drop one program, the one that takes its row frees it.
drop(Table, Keys) ->
    try [Id || Key <- Keys, {_, Id, _} <- ets:take(Table, Key)] of
        Ids -> free(Table, Ids)
    catch error:badarg -> ok
    end.

free(Table, Ids) ->
    try ets:lookup(Table, job) of
        [{job, Queue, Ranks}] -> tessera_cluster_queue:free(Queue, [{Rank, Id} || Id <- Ids, Rank <- lists:seq(0, Ranks - 1)])
    catch error:badarg -> ok
    end.

%% Drops all programs of the job.
-spec clear(ets:table()) -> ok.
clear(Table) -> drop(Table, [Key || {_, Key} <- by_use(Table)]).

%% Drops those of all clusters that this node drives.
-spec clear() -> ok.
clear() -> lists:foreach(fun clear/1, [Table || Table <- ets:all(), ets:info(Table, name) =:= ?MODULE]).
