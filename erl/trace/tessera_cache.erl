%% @private The cache of compiled programs. Lookups, makers and inserts use its tables directly, so a new program costs
%% no other process any time. Of several callers with one key, the one whose key enters the table of claims makes the
%% program. The others wait for the server: it tells them when the value is in the cache, or passes the claim to the next
%% waiter when the holder fails or dies. The oldest programs are evicted when there are too many, or when the users' data
%% that they hold (tensors, callbacks, containers) takes too many bytes.
%%
%% Tables and messages copy terms and lose the sharing inside, so keys contain digests of users' functions and terms, and
%% a value that would be too large is not cached (tessera_digest).
-module(tessera_cache).
-behaviour(gen_server).
-export([start_link/0, find/1, fetch/2, fetch/3, make/2, make/3, run_current/2, clear/0, size/0, max_programs/0]).
-export_type([weigh/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(CLAIMS, tessera_cache_claims).      % {Key, Pid, whether a caller waits}
-define(ORDER, tessera_cache_order).        % {Number, Key, Bytes}: the oldest first
-define(BOUNDS, {?MODULE, bounds}).         % {Limit, LimitBytes, Bytes}, a persistent term
-define(MANY_CLAIMS, 64).                   % from this many claims on, those of dead processes are removed
-define(DEFAULT_LIMIT, 4096).
-define(DEFAULT_KEY_BYTES, 256 * 1024 * 1024).

%% How often a process that waits for a program looks whether it waits for itself, and how often in a row it must find so.
-define(POLL_MS, 300).
-define(POLLS, 4).

-record(state, {waiting = #{}  :: #{term() => {reference(), [gen_server:from()]}},   % by key; the maker's monitor
                keys = #{}     :: #{reference() => term()}}).

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Looks up a value. A call of find/1 before fetch/2 or make/2 saves the closure of these. A closure is expensive: the
%% VM counts the closures of a function in one word, and all schedulers write to it.
-spec find(term()) -> {ok, term()} | error.
find(Key) ->
    try {ok, ets:lookup_element(?MODULE, Key, 2)}
    catch error:badarg -> error
    end.

%% A lookup for keys that usually miss: an exception costs more than a second
%% lookup.
look(Key) ->
    try ets:member(?MODULE, Key) of
        true -> find(Key);
        false -> error
    catch error:badarg -> error
    end.

%% The bytes of a value without its key; `infinity' when it cannot be cached.
-type weigh(Value) :: fun((Value) -> non_neg_integer() | infinity).

%% The value of a key. On a miss `Make' makes it, once for any number of callers, unless it
%% cannot be cached.
-spec fetch(term(), fun(() -> Value)) -> Value.
fetch(Key, Make) -> fetch(Key, Make, fun weightless/1).

-spec fetch(term(), fun(() -> Value), weigh(Value)) -> Value.
fetch(Key, Make, Weigh) ->
    case look(Key) of
        {ok, Value} -> Value;
        error -> make(Key, Make, Weigh)
    end.

weightless(_) -> 0.

%% The same after a recent miss.
-spec make(term(), fun(() -> Value)) -> Value.
make(Key, Make) -> make(Key, Make, fun weightless/1).

-spec make(term(), fun(() -> Value), weigh(Value)) -> Value.
make(Key, Make, Weigh) ->
    try ets:insert_new(?CLAIMS, {Key, self(), false}) of
        true -> make_claimed(Key, Make, Weigh);
        false -> wait(Key, Make, Weigh)
    catch error:badarg ->
        ensure_started(),
        wait(Key, Make, Weigh)
    end.

%% Without a server, while the application stops, the value is not cached.
wait(Key, Make, Weigh) ->
    case await(Key) of
        {value, Value} -> Value;
        make -> make_claimed(Key, Make, Weigh);
        no_server -> Make()
    end.

await(Key) ->
    try gen_server:send_request(?MODULE, {wait, Key}) of
        Request -> await(Key, Request, [])
    catch _:_ -> no_server
    end.

await(Key, Request, Seen) ->
    case gen_server:wait_response(Request, ?POLL_MS) of
        {reply, Reply} -> Reply;
        {error, _} -> no_server;
        timeout ->
            case circle(Key) of
                [] -> await(Key, Request, []);
                Circle when length(Seen) < ?POLLS -> await(Key, Request, [Circle | [Same || Same <- Seen, Same =:= Circle]]);
                Circle -> waits_for_itself(Key, Request, [Maker || {Maker, _} <- Circle])
            end
    end.

%% The makers of a circle of processes that wait for one another. They are taken to do so if they still do after a second.
circle(Key) ->
    try ets:lookup_element(?CLAIMS, Key, 2) of
        Maker when Maker =/= self() -> tessera_waits:circle(Maker, fun waits/0);
        _ -> []
    catch error:badarg -> []
    end.

waits() ->
    case call(waits) of
        no_server -> #{};
        Waits -> Waits
    end.

%% The answer may have come since the circle was found; a later one is dropped.
waits_for_itself(Key, Request, Makers) ->
    case gen_server:receive_response(Request, 0) of
        {reply, Reply} -> Reply;
        {error, _} -> no_server;
        timeout -> refuse(Key, Makers)
    end.

-spec refuse(term(), [pid()]) -> no_return().
refuse(Key, [Maker | Makers]) ->
    _ = call({leave, Key}),
    case ets:lookup(?CLAIMS, Key) of
        [{_, Pid, _}] when Pid =:= self() -> give_up(Key, {not_kept, Key});
        _ -> ok
    end,
    tessera_error:raise(jit, [], failed_precondition,
                        "jit: the function is traced by ~p, which waits for ~tsthis process, which calls the function: each would wait for "
                        "the other for ever. Call it when it has been traced",
                        [Maker, [io_lib:format("a process that calls a function that is traced by ~p, which waits for ", [Other]) || Other <- Makers]]).

%% The previous holder of the claim may have made the value.
make_claimed(Key, Make, Weigh) ->
    case look(Key) of
        {ok, Value} ->
            give_up(Key, {made, Key, Value}),
            Value;
        error ->
            try
                Value = Make(),
                Message = keep_weighed(Key, Value, Weigh(Value)),
                give_up(Key, Message),
                Value
            catch Class:Reason:Trace ->
                give_up(Key, {not_kept, Key}),
                erlang:raise(Class, Reason, Trace)
            end
    end.

%% Returns the message for the waiters.
keep_weighed(Key, _, infinity) -> {not_kept, Key};
keep_weighed(Key, Value, Bytes) ->
    keep(Key, Value, Bytes),
    {made, Key, Value}.

%% Ends a claim. Waiters get the message from the server; a caller that marks the claim as awaited after this
%% finds it gone.
give_up(Key, Message) ->
    try ets:take(?CLAIMS, Key) of
        [{_, _, true}] -> gen_server:cast(?MODULE, Message);
        _ -> ok
    catch error:badarg -> ok        % the server is gone, and the cache with it
    end.

%% Runs the program that `Find' gives, from the cache or newly made. A stale one has an executable of another node, or of an
%% earlier load of the library, which was purged and loaded again; then the cache is cleared.
-spec run_current(fun((Program) -> Result | stale), fun(() -> Program)) -> Result.
run_current(Run, Find) ->
    case Run(Find()) of
        stale ->
            ok = clear(),
            run_current(Run, Find);
        Result -> Result
    end.

%% Inserts the value before its entry in the order, so that clear/0 leaves no value
%% without an entry.
keep(Key, Value, ValueBytes) ->
    try
        true = ets:insert(?MODULE, {Key, Value}),
        Size = erlang:external_size(Key) + ValueBytes,
        true = ets:insert(?ORDER, {erlang:unique_integer([monotonic]), Key, Size}),
        {Limit, LimitBytes, Bytes} = persistent_term:get(?BOUNDS),
        ok = counters:add(Bytes, 1, Size),
        _ = bound(Limit, LimitBytes, Bytes),
        _ = ets:info(?CLAIMS, size) < ?MANY_CLAIMS orelse gen_server:cast(?MODULE, forget_dead),
        ok
    catch error:badarg -> ok
    end.

%% The newest program stays, however large it is.
bound(Limit, LimitBytes, Bytes) ->
    Count = ets:info(?ORDER, size),
    (Count > Limit orelse (Count > 1 andalso counters:get(Bytes, 1) > LimitBytes)) andalso
        begin
            drop(ets:first(?ORDER), Bytes),
            ok = tessera_nif:known_clear(),
            bound(Limit, LimitBytes, Bytes)
        end.

drop(Number, Bytes) ->
    case ets:take(?ORDER, Number) of
        [{_, Key, Size}] ->
            counters:sub(Bytes, 1, Size),
            ets:delete(?MODULE, Key),
            tessera_events:is_watched() andalso
                tessera_events:execute([tessera, eviction], #{count => 1, bytes => Size}, #{cache => programs});
        [] -> true                  % another caller did
    end.

%% The API works without starting the application first, and also while the node stops, when it cannot be started.
ensure_started() ->
    case ets:whereis(?MODULE) of
        undefined -> start();
        _ -> ok
    end.

start() ->
    try application:ensure_all_started(tessera) of
        {ok, _} -> ok;
        {error, Reason} ->
            tessera_error:raise(jit, [], unavailable, "jit: the application tessera does not start: ~0tP", [Reason, 20])
    catch exit:_ -> ok
    end.

%% no_server when the server has ended, which it may at any time.
call(Request) ->
    try gen_server:call(?MODULE, Request, infinity)
    catch exit:{_, {gen_server, call, _}} -> no_server
    end.

%% Without a server the cache is empty.
-spec clear() -> ok.
clear() ->
    _ = call(clear),
    tessera_nif:known_clear().

-spec size() -> non_neg_integer().
size() ->
    case call(size) of
        no_server -> 0;
        Size -> Size
    end.

%% The setting that bounds this cache and the programs of a cluster's ranks.
-spec max_programs() -> pos_integer().
max_programs() -> application:get_env(tessera, max_programs, ?DEFAULT_LIMIT).

init([]) ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ?ORDER = ets:new(?ORDER, [named_table, public, ordered_set]),
    ok = persistent_term:put(?BOUNDS, {max_programs(),
                                       application:get_env(tessera, max_key_bytes, ?DEFAULT_KEY_BYTES),
                                       counters:new(1, [])}),
    ?CLAIMS = ets:new(?CLAIMS, [named_table, public]),      % the last table: the holder of a claim finds the others
    {ok, #state{}}.

handle_call({wait, Key}, From, State) -> wait_or_make(Key, From, State);
handle_call({leave, Key}, {Pid, _}, #state{waiting = Waiting} = State) ->
    {reply, ok, case Waiting of
                    #{Key := {Monitor, Callers}} ->
                        Others = [From || {Other, _} = From <- Callers, Other =/= Pid],
                        State#state{waiting = Waiting#{Key := {Monitor, Others}}};
                    _ -> State
                end};
handle_call(waits, _From, #state{waiting = Waiting} = State) ->
    {reply, maps:from_list([{Pid, Maker} || {Key, {_, Callers}} <- maps:to_list(Waiting), [{_, Maker, _}] <- [ets:lookup(?CLAIMS, Key)], {Pid, _} <- Callers]), State};
handle_call(size, _From, State) ->
    {reply, ets:info(?MODULE, size), State};
handle_call(clear, _From, State) ->
    {_, _, Bytes} = persistent_term:get(?BOUNDS),
    clear_order(ets:first(?ORDER), Bytes),
    true = ets:delete_all_objects(?MODULE),
    {reply, ok, State}.

clear_order('$end_of_table', _) -> ok;
clear_order(Number, Bytes) ->
    drop(Number, Bytes),
    clear_order(ets:first(?ORDER), Bytes).

handle_cast({made, Key, Value}, State) ->
    {Waiting, State1} = unwatch(Key, State),
    [gen_server:reply(Waiter, {value, Value}) || Waiter <- Waiting],
    {noreply, State1};
handle_cast({not_kept, Key}, State) ->
    {noreply, hand_on(Key, State)};
handle_cast(forget_dead, State) ->
    _ = [forget(Key, Pid) || {Key, Pid, _} <- ets:tab2list(?CLAIMS), not is_process_alive(Pid)],
    {noreply, State};
handle_cast(_, State) -> {noreply, State}.

%% The process that makes a program died.
handle_info({'DOWN', Monitor, process, Pid, _}, #state{keys = Keys} = State) ->
    case Keys of
        #{Monitor := Key} ->
            forget(Key, Pid),
            {noreply, hand_on(Key, State)};
        _ -> {noreply, State}
    end;
handle_info(_, State) -> {noreply, State}.

%% Removes the claim of a dead process, if it held it: no other process does.
forget(Key, Pid) ->
    case ets:lookup(?CLAIMS, Key) of
        [{_, Pid, _}] -> ets:delete(?CLAIMS, Key);
        _ -> true
    end.

wait_or_make(Key, From, #state{waiting = Waiting} = State) ->
    case {look(Key), Waiting} of
        {{ok, Value}, _} -> {reply, {value, Value}, State};
        {error, #{Key := {Monitor, Others}}} ->
            {noreply, State#state{waiting = Waiting#{Key := {Monitor, Others ++ [From]}}}};
        {error, _} -> wait_or_claim(Key, From, State)
    end.

%% The claim may be removed and made anew between the two lookups.
wait_or_claim(Key, {Pid, _} = From, #state{waiting = Waiting, keys = Keys} = State) ->
    case ets:update_element(?CLAIMS, Key, {3, true}) andalso ets:lookup(?CLAIMS, Key) of
        [{_, Maker, true}] ->
            Monitor = monitor(process, Maker),
            {noreply, State#state{waiting = Waiting#{Key => {Monitor, [From]}}, keys = Keys#{Monitor => Key}}};
        _ ->
            case ets:insert_new(?CLAIMS, {Key, Pid, false}) of
                true -> {reply, make, State};
                false -> wait_or_make(Key, From, State)
            end
    end.

unwatch(Key, #state{waiting = Waiting, keys = Keys} = State) ->
    case maps:take(Key, Waiting) of
        {{Monitor, Callers}, Rest} ->
            demonitor(Monitor, [flush]),
            {Callers, State#state{waiting = Rest, keys = maps:remove(Monitor, Keys)}};
        error -> {[], State}
    end.

%% The next waiter makes the value itself, so that an error has its own stack
%% trace.
hand_on(Key, State) ->
    {Waiting, State1} = unwatch(Key, State),
    lists:foldl(fun(From, S) -> wait_again(Key, From, S) end, State1, Waiting).

wait_again(Key, From, State) ->
    case wait_or_make(Key, From, State) of
        {reply, Reply, State1} ->
            gen_server:reply(From, Reply),
            State1;
        {noreply, State1} -> State1
    end.
