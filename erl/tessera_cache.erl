%% @private Compiled programs by what they were compiled for. Whoever looks, makes
%% and keeps goes straight to tables, so a program that is new costs no other
%% process anything. Of several callers one compiles: who enters the key into the
%% table of claims. The others wait for the server, which is told by who made it
%% that there is a value, or hands the claim on when its holder fails or dies. The
%% oldest programs go when there are too many, or when their keys, which hold what
%% functions close over, take too many bytes.
-module(tessera_cache).
-behaviour(gen_server).
-export([start_link/0, find/1, fetch/2, make/2, clear/0, size/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(CLAIMS, tessera_cache_claims).      % {Key, Pid, whether somebody waits}
-define(ORDER, tessera_cache_order).        % {Number, Key, Bytes}: the oldest first
-define(BOUNDS, {?MODULE, bounds}).         % {Limit, LimitBytes, Bytes}, a persistent term
-define(MANY_CLAIMS, 64).                   % among so many those of the dead are looked for
-define(DEFAULT_LIMIT, 4096).
-define(DEFAULT_KEY_BYTES, 256 * 1024 * 1024).

-record(state, {waiting = #{}  :: #{term() => {reference(), [gen_server:from()]}},   % by key; the monitor of who makes it
                keys = #{}     :: #{reference() => term()}}).

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% What is there. To ask before fetch/2 or make/2 saves a call its closure, which costs more than to be made: the VM
%% counts the closures of a function in one word, to which all schedulers write.
-spec find(term()) -> {ok, term()} | error.
find(Key) ->
    try {ok, ets:lookup_element(?MODULE, Key, 2)}
    catch error:badarg -> error
    end.

%% The same for what is rarely there: an exception costs more than to look twice.
look(Key) ->
    try ets:member(?MODULE, Key) of
        true -> find(Key);
        false -> error
    catch error:badarg -> error
    end.

%% The value of a key; `Make' makes it, once, however many callers ask.
-spec fetch(term(), fun(() -> Value)) -> Value.
fetch(Key, Make) ->
    case look(Key) of
        {ok, Value} -> Value;
        error -> make(Key, Make)
    end.

%% The same when it was not there a moment ago.
-spec make(term(), fun(() -> Value)) -> Value.
make(Key, Make) ->
    try ets:insert_new(?CLAIMS, {Key, self(), false}) of
        true -> make_claimed(Key, Make);
        false -> wait(Key, Make)
    catch error:badarg ->
        ensure_started(),
        wait(Key, Make)
    end.

wait(Key, Make) ->
    case gen_server:call(?MODULE, {wait, Key}, infinity) of
        {value, Value} -> Value;
        make -> make_claimed(Key, Make)
    end.

%% Whoever had the claim before may have made it.
make_claimed(Key, Make) ->
    case look(Key) of
        {ok, Value} ->
            give_up(Key, {made, Key, Value}),
            Value;
        error ->
            try Make() of
                Value ->
                    keep(Key, Value),
                    give_up(Key, {made, Key, Value}),
                    Value
            catch Class:Reason:Trace ->
                give_up(Key, {failed, Key}),
                erlang:raise(Class, Reason, Trace)
            end
    end.

%% Ends a claim. Those who wait hear of it by the server; who marks a claim after this finds that it is gone.
give_up(Key, Message) ->
    try ets:take(?CLAIMS, Key) of
        [{_, _, true}] -> gen_server:cast(?MODULE, Message);
        _ -> ok
    catch error:badarg -> ok        % the server, and all that was there, is gone
    end.

%% First the value, then its place in the order: so clear/0 leaves none that has no place.
keep(Key, Value) ->
    try
        true = ets:insert(?MODULE, {Key, Value}),
        Size = erlang:external_size(Key),
        true = ets:insert(?ORDER, {erlang:unique_integer([monotonic]), Key, Size}),
        {Limit, LimitBytes, Bytes} = persistent_term:get(?BOUNDS),
        ok = counters:add(Bytes, 1, Size),
        _ = bound(Limit, LimitBytes, Bytes),
        _ = ets:info(?CLAIMS, size) < ?MANY_CLAIMS orelse gen_server:cast(?MODULE, forget_dead),
        ok
    catch error:badarg -> ok
    end.

%% The newest program stays, however large its key.
bound(Limit, LimitBytes, Bytes) ->
    Count = ets:info(?ORDER, size),
    (Count > Limit orelse (Count > 1 andalso counters:get(Bytes, 1) > LimitBytes)) andalso
        begin
            drop(ets:first(?ORDER), Bytes),
            bound(Limit, LimitBytes, Bytes)
        end.

drop(Number, Bytes) ->
    case ets:take(?ORDER, Number) of
        [{_, Key, Size}] ->
            counters:sub(Bytes, 1, Size),
            ets:delete(?MODULE, Key);
        [] -> true                  % somebody else did
    end.

%% Functions work without the application having been started by hand.
ensure_started() ->
    case ets:whereis(?MODULE) of
        undefined -> {ok, _} = application:ensure_all_started(tessera), ok;
        _ -> ok
    end.

-spec clear() -> ok.
clear() ->
    ensure_started(),
    gen_server:call(?MODULE, clear, infinity).

-spec size() -> non_neg_integer().
size() ->
    ensure_started(),
    gen_server:call(?MODULE, size, infinity).

init([]) ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ?ORDER = ets:new(?ORDER, [named_table, public, ordered_set]),
    ok = persistent_term:put(?BOUNDS, {application:get_env(tessera, max_programs, ?DEFAULT_LIMIT),
                                       application:get_env(tessera, max_key_bytes, ?DEFAULT_KEY_BYTES),
                                       counters:new(1, [])}),
    _ = 'Elixir.Tessera.Defn.LockedCache':new(),
    ?CLAIMS = ets:new(?CLAIMS, [named_table, public]),      % the last: who has a claim finds the rest
    {ok, #state{}}.

handle_call({wait, Key}, From, State) -> wait_or_make(Key, From, State);
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
handle_cast({failed, Key}, State) ->
    {noreply, hand_on(Key, State)};
handle_cast(forget_dead, State) ->
    _ = [forget(Key, Pid) || {Key, Pid, _} <- ets:tab2list(?CLAIMS), not is_process_alive(Pid)],
    {noreply, State};
handle_cast(_, State) -> {noreply, State}.

%% The maker of a program died.
handle_info({'DOWN', Monitor, process, Pid, _}, #state{keys = Keys} = State) ->
    case Keys of
        #{Monitor := Key} ->
            forget(Key, Pid),
            {noreply, hand_on(Key, State)};
        _ -> {noreply, State}
    end;
handle_info(_, State) -> {noreply, State}.

%% A claim of a process that is dead, if it had it: nobody else ends that.
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

%% The claim may go, and another come, between the two.
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

%% The next one who waits tries for himself: his error has his own stack trace.
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
