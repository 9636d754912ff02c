%% @private Compiled programs by what they were compiled for. Readers go straight
%% to a table. The server lets one of several callers compile while the others
%% wait, and drops the oldest programs when there are too many, or when their
%% keys, which hold what functions close over, take too many bytes.
-module(tessera_cache).
-behaviour(gen_server).
-export([start_link/0, fetch/2, clear/0, size/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(DEFAULT_LIMIT, 4096).
-define(DEFAULT_KEY_BYTES, 256 * 1024 * 1024).

-record(state, {limit          :: pos_integer(),
                limit_bytes    :: pos_integer(),
                bytes = 0      :: non_neg_integer(),                            % of all keys
                order = queue:new() :: queue:queue({term(), non_neg_integer()}),
                claims = #{}   :: #{term() => {reference(), [gen_server:from()]}},
                keys = #{}     :: #{reference() => term()}}).

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% The value of a key; `Make' makes it, once, however many callers ask.
-spec fetch(term(), fun(() -> Value)) -> Value.
fetch(Key, Make) ->
    try ets:lookup_element(?MODULE, Key, 2)
    catch error:badarg -> claim(Key, Make)
    end.

claim(Key, Make) ->
    ensure_started(),
    case gen_server:call(?MODULE, {claim, Key}, infinity) of
        {value, Value} -> Value;
        make ->
            try Make() of
                Value ->
                    ok = gen_server:call(?MODULE, {made, Key, Value}, infinity),
                    Value
            catch Class:Reason:Trace ->
                ok = gen_server:call(?MODULE, {failed, Key}, infinity),
                erlang:raise(Class, Reason, Trace)
            end
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
    ets:info(?MODULE, size).

init([]) ->
    ?MODULE = ets:new(?MODULE, [named_table, protected, {read_concurrency, true}]),
    _ = 'Elixir.Tessera.Defn.LockedCache':new(),
    {ok, #state{limit = application:get_env(tessera, max_programs, ?DEFAULT_LIMIT),
                limit_bytes = application:get_env(tessera, max_key_bytes, ?DEFAULT_KEY_BYTES)}}.

handle_call({claim, Key}, From, State) ->
    case ets:lookup(?MODULE, Key) of
        [{_, Value}] -> {reply, {value, Value}, State};
        [] -> wait_or_make(Key, From, State)
    end;
handle_call({made, Key, Value}, _From, State) ->
    true = ets:insert(?MODULE, {Key, Value}),
    {Waiting, #state{order = Order, bytes = Bytes} = State1} = unclaim(Key, State),
    [gen_server:reply(Waiter, {value, Value}) || Waiter <- Waiting],
    Size = erlang:external_size(Key),
    {reply, ok, bound(State1#state{order = queue:in({Key, Size}, Order), bytes = Bytes + Size})};
handle_call({failed, Key}, _From, State) ->
    {reply, ok, hand_on(Key, State)};
handle_call(clear, _From, State) ->
    true = ets:delete_all_objects(?MODULE),
    {reply, ok, State#state{order = queue:new(), bytes = 0}}.

handle_cast(_, State) -> {noreply, State}.

%% The maker of a program died.
handle_info({'DOWN', Monitor, process, _, _}, #state{keys = Keys} = State) ->
    case Keys of
        #{Monitor := Key} -> {noreply, hand_on(Key, State)};
        _ -> {noreply, State}
    end;
handle_info(_, State) -> {noreply, State}.

wait_or_make(Key, From, #state{claims = Claims} = State) ->
    case Claims of
        #{Key := {Monitor, Waiting}} -> {noreply, State#state{claims = Claims#{Key := {Monitor, Waiting ++ [From]}}}};
        _ -> {reply, make, claim_for(From, [], Key, State)}
    end.

claim_for({Pid, _}, Waiting, Key, #state{claims = Claims, keys = Keys} = State) ->
    Monitor = monitor(process, Pid),
    State#state{claims = Claims#{Key => {Monitor, Waiting}}, keys = Keys#{Monitor => Key}}.

unclaim(Key, #state{claims = Claims, keys = Keys} = State) ->
    case maps:take(Key, Claims) of
        {{Monitor, Waiting}, Rest} ->
            demonitor(Monitor, [flush]),
            {Waiting, State#state{claims = Rest, keys = maps:remove(Monitor, Keys)}};
        error -> {[], State}
    end.

%% The next one who waits tries for himself: his error has his own stack trace.
hand_on(Key, State) ->
    case unclaim(Key, State) of
        {[], State1} -> State1;
        {[Next | Waiting], State1} ->
            gen_server:reply(Next, make),
            claim_for(Next, Waiting, Key, State1)
    end.

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
