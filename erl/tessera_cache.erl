%% @private Compiled programs by what they were compiled for. Readers go straight
%% to a table. Of several callers one compiles: who enters the key into a second
%% table, that of claims. The others wait for the server, which hands a claim on
%% when its holder fails or dies. The server drops the oldest programs when there
%% are too many, or when their keys, which hold what functions close over, take
%% too many bytes. A caller that nobody waits for does not wait either.
-module(tessera_cache).
-behaviour(gen_server).
-export([start_link/0, find/1, fetch/2, clear/0, size/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(CLAIMS, tessera_cache_claims).      % {Key, Pid}
-define(MANY_CLAIMS, 64).                   % among so many those of the dead are looked for
-define(DEFAULT_LIMIT, 4096).
-define(DEFAULT_KEY_BYTES, 256 * 1024 * 1024).

-record(state, {limit          :: pos_integer(),
                limit_bytes    :: pos_integer(),
                bytes = 0      :: non_neg_integer(),                            % of all keys
                order = queue:new() :: queue:queue({term(), non_neg_integer()}),
                waiting = #{}  :: #{term() => {reference(), [gen_server:from()]}},   % by key; the monitor of who makes it
                keys = #{}     :: #{reference() => term()}}).

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% What is there. To ask before fetch/2 saves a call its closure, which costs more than to be made: the VM counts the
%% closures of a function in one word, to which all schedulers write.
-spec find(term()) -> {ok, term()} | error.
find(Key) ->
    try {ok, ets:lookup_element(?MODULE, Key, 2)}
    catch error:badarg -> error
    end.

%% The value of a key; `Make' makes it, once, however many callers ask.
-spec fetch(term(), fun(() -> Value)) -> Value.
fetch(Key, Make) ->
    try ets:lookup_element(?MODULE, Key, 2)
    catch error:badarg -> claim(Key, Make)
    end.

claim(Key, Make) ->
    try ets:insert_new(?CLAIMS, {Key, self()}) of
        true -> make(Key, Make);
        false -> wait(Key, Make)
    catch error:badarg ->
        ensure_started(),
        wait(Key, Make)
    end.

wait(Key, Make) ->
    case gen_server:call(?MODULE, {wait, Key}, infinity) of
        {value, Value} -> Value;
        make -> make(Key, Make)
    end.

%% Casts and calls of a process arrive in their order: its next look-up finds the value.
make(Key, Make) ->
    try Make() of
        Value ->
            ok = gen_server:cast(?MODULE, {made, Key, Value}),
            Value
    catch Class:Reason:Trace ->
        ok = gen_server:cast(?MODULE, {failed, Key, self()}),
        erlang:raise(Class, Reason, Trace)
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
    ?MODULE = ets:new(?MODULE, [named_table, protected, {read_concurrency, true}]),
    ?CLAIMS = ets:new(?CLAIMS, [named_table, public, {write_concurrency, true}]),
    _ = 'Elixir.Tessera.Defn.LockedCache':new(),
    {ok, #state{limit = application:get_env(tessera, max_programs, ?DEFAULT_LIMIT),
                limit_bytes = application:get_env(tessera, max_key_bytes, ?DEFAULT_KEY_BYTES)}}.

handle_call({wait, Key}, From, State) ->
    case ets:lookup(?MODULE, Key) of
        [{_, Value}] -> {reply, {value, Value}, State};
        [] -> wait_or_make(Key, From, State)
    end;
handle_call(size, _From, State) ->
    {reply, ets:info(?MODULE, size), State};
handle_call(clear, _From, State) ->
    true = ets:delete_all_objects(?MODULE),
    {reply, ok, State#state{order = queue:new(), bytes = 0}}.

handle_cast({made, Key, Value}, State) ->
    IsNew = not ets:member(?MODULE, Key),
    true = ets:insert(?MODULE, {Key, Value}),
    true = ets:delete(?CLAIMS, Key),
    {Waiting, #state{order = Order, bytes = Bytes} = State1} = unwatch(Key, State),
    [gen_server:reply(Waiter, {value, Value}) || Waiter <- Waiting],
    _ = forget_dead(),
    case IsNew of
        true ->
            Size = erlang:external_size(Key),
            {noreply, bound(State1#state{order = queue:in({Key, Size}, Order), bytes = Bytes + Size})};
        false -> {noreply, State1}
    end;
handle_cast({failed, Key, Pid}, State) ->
    {noreply, hand_on(Key, Pid, State)};
handle_cast(_, State) -> {noreply, State}.

%% The maker of a program died.
handle_info({'DOWN', Monitor, process, Pid, _}, #state{keys = Keys} = State) ->
    case Keys of
        #{Monitor := Key} -> {noreply, hand_on(Key, Pid, State)};
        _ -> {noreply, State}
    end;
handle_info(_, State) -> {noreply, State}.

wait_or_make(Key, {Pid, _} = From, #state{waiting = Waiting, keys = Keys} = State) ->
    case {Waiting, ets:lookup(?CLAIMS, Key)} of
        {#{Key := {Monitor, Others}}, _} ->
            {noreply, State#state{waiting = Waiting#{Key := {Monitor, Others ++ [From]}}}};
        {_, [{_, Maker}]} ->
            Monitor = monitor(process, Maker),
            {noreply, State#state{waiting = Waiting#{Key => {Monitor, [From]}}, keys = Keys#{Monitor => Key}}};
        {_, []} ->
            %% Meanwhile somebody else may have entered it.
            case ets:insert_new(?CLAIMS, {Key, Pid}) of
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

%% The next one who waits tries for himself: his error has his own stack trace. Pid has the claim no more, if it had.
hand_on(Key, Pid, State) ->
    {Waiting, State1} = unwatch(Key, State),
    true = ets:delete_object(?CLAIMS, {Key, Pid}),
    case Waiting of
        [] -> State1;
        [{Next, _} = From | Others] ->
            case ets:insert_new(?CLAIMS, {Key, Next}) of
                true ->
                    gen_server:reply(From, make),
                    lists:foldl(fun(Other, S) -> wait_again(Key, Other, S) end, State1, Others);
                false -> lists:foldl(fun(Other, S) -> wait_again(Key, Other, S) end, State1, Waiting)
            end
    end.

wait_again(Key, From, State) ->
    case wait_or_make(Key, From, State) of
        {reply, Reply, State1} ->
            gen_server:reply(From, Reply),
            State1;
        {noreply, State1} -> State1
    end.

%% Claims of processes that were killed, of programs that nobody has asked for since.
forget_dead() ->
    ets:info(?CLAIMS, size) < ?MANY_CLAIMS orelse
        [ets:delete_object(?CLAIMS, Claim) || {_, Pid} = Claim <- ets:tab2list(?CLAIMS), not is_process_alive(Pid)].

%% The newest program stays, however large its key.
bound(#state{order = Order, limit = Limit, bytes = Bytes, limit_bytes = LimitBytes} = State) ->
    Count = queue:len(Order),
    case Count > Limit orelse (Bytes > LimitBytes andalso Count > 1) of
        true ->
            {{value, {Oldest, Size}}, Rest} = queue:out(Order),
            true = ets:delete(?MODULE, Oldest),
            bound(State#state{order = Rest, bytes = Bytes - Size});
        false -> State
    end.
