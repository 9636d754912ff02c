%% @private The driver's table of the programs that a job's ranks have compiled. On the ranks a program is a value (tessera_rank_values), with
%% the same number on all. A program that is dropped here remains there until the runs that use it have ended. The table has at most
%% `max_programs' programs, and drops the least recently used.
%%
%% A row is {{sent, Fingerprint}, Id, Used} when all ranks have the program, and {{pending, Id}, Id, Used} before. If a caller is killed
%% in between, its row remains pending until it is dropped as others are.
-module(tessera_cluster_programs).
-export([new/2, find/2, fetch/3, is_current/1, numbers/2, clear/0, clear/1]).
-export_type([sent/0]).

-opaque sent() :: {ets:table(), Fingerprint :: binary(), Id :: pos_integer()}.

%% The table of a job. It belongs to the caller and ends with it.
-spec new(Queue :: pid(), Ranks :: pos_integer()) -> ets:table().
new(Queue, Ranks) ->
    Table = ets:new(?MODULE, [public, {read_concurrency, true}]),
    true = ets:insert(Table, [{job, Queue, Ranks}, {numbers, 0}]),
    Table.

%% Reserves Count consecutive numbers for values of the ranks; returns the first. When the job has ended there is no table. Then the number does
%% not matter, because the request that uses it fails.
-spec numbers(ets:table(), non_neg_integer()) -> pos_integer().
numbers(Table, Count) ->
    try ets:update_counter(Table, numbers, Count) - Count + 1
    catch error:badarg -> 1
    end.

%% The number of a program's value, if all ranks have the program.
-spec find(ets:table(), binary()) -> {ok, pos_integer(), sent()} | none.
find(Table, Fingerprint) ->
    Key = {sent, Fingerprint},
    try ets:update_element(Table, Key, {3, now_used()}) andalso ets:lookup_element(Table, Key, 2) of
        false -> none;
        Id -> {ok, Id, {Table, Fingerprint, Id}}
    catch error:badarg -> none
    end.

%% The same, but if the ranks do not have the program, Send(Id) sends it as value Id. When two callers send a program at the same time, the second
%% value is freed, and is_current/1 is false for it. An error is Send's.
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

%% The pending row may have been dropped meanwhile, and the program freed before it arrived at a rank. So it is freed again.
sent(Table, Fingerprint, Id) ->
    try ets:take(Table, {pending, Id}) =/= [] andalso ets:insert_new(Table, {{sent, Fingerprint}, Id, now_used()}) of
        true -> bound(Table, max(1, tessera_cache:max_programs()));
        false -> free(Table, [Id])
    catch error:badarg -> ok
    end.

%% One rank has failed; other ranks may have compiled the program: it is freed there.
not_sent(Table, Id) ->
    try ets:delete(Table, {pending, Id}) of
        true -> free(Table, [Id])
    catch error:badarg -> ok
    end.

%% Whether the ranks still have the program. The queue asks and then sends the run; the frees of a drop pass through the queue, so they arrive after
%% the run.
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

%% The two rows that new/2 inserts are no programs.
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

%% When several callers drop a program, only the one that takes its row frees it.
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

%% Drops the programs of all clusters that this node drives.
-spec clear() -> ok.
clear() -> lists:foreach(fun clear/1, [Table || Table <- ets:all(), ets:info(Table, name) =:= ?MODULE]).
