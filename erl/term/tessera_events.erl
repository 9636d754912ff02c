%% @doc Events of compilations, runs, transfers, memory and clusters. The page docs/events.md has a table of them.
%%
%% Where Elixir's library `telemetry' is loaded, its handlers get the events. Handlers of {@link attach/3} get them without that library. An
%% event has a name, a map of measurements and a map of metadata. A handler runs in the process that did the work; a handler that raises an
%% error is detached.
-module(tessera_events).
-behaviour(gen_server).
-export([attach/3, detach/1, handlers/0, refresh/0]).
-export([span/4, runs_are_watched/0, is_watched/0, execute/3, started/2, ended/3, failed/3]).
-export([start_link/0, init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([event/0, handler/0, span/0]).

-type event() :: [atom(), ...].
-type handler() :: fun((event(), Measurements :: map(), Metadata :: map()) -> term()).
%% A span that has begun, or none where no handler was there.
-type span() :: none | {atom(), integer(), map()}.

%% Persistent terms. The first is an atom or a number, so that a change of it costs no process a garbage collection.
-define(WATCHED, tessera_events_watched).   % bits: ?OWN and ?RUNS
-define(HANDLERS, tessera_events_handlers). % [{Id, Prefix, Handler}]
-define(OWN, 1).                            % there are handlers of attach/3
-define(RUNS, 2).                           % a handler gets the events of runs
%% Milliseconds until a new handler of telemetry gets the events of runs.
-define(LOOK, 1000).

%% @doc Calls the handler with each event whose name begins with the given one. An earlier handler with the same name is replaced.
%%
%% ```
%% 1> Self = self().
%% 2> tessera_events:attach(mine, [tessera, run, stop], fun(_, #{duration := D}, _) -> Self ! {ran, D > 0} end).
%% ok
%% 3> F = tessera:jit(fun(X) -> tessera:add(X, 1) end), F(1), receive {ran, Took} -> Took end.
%% true
%% 4> tessera_events:detach(mine).
%% ok
%% '''
-spec attach(term(), event(), handler()) -> ok.
attach(Id, [tessera | _] = Prefix, Handler) when is_function(Handler, 3) -> call({attach, Id, Prefix, Handler});
attach(Id, Prefix, Handler) -> error({invalid_argument, <<"attach: expected the name of an event that begins with tessera, and a function of three arguments">>},
                                     [Id, Prefix, Handler]).

%% @doc Ends the calls of a handler of {@link attach/3}. Without one of that name it does nothing.
-spec detach(term()) -> ok.
detach(Id) -> call({detach, Id}).

%% @doc The names of the handlers of {@link attach/3}, with the events that each gets.
-spec handlers() -> [{term(), event()}].
handlers() -> [{Id, Prefix} || {Id, Prefix, _} <- persistent_term:get(?HANDLERS, [])].

%% @doc Looks at once whether a handler of telemetry listens to runs. Otherwise Tessera looks each second, and not at each run.
-spec refresh() -> ok.
refresh() -> call(refresh).

%% ---- for other modules of Tessera

%% @private Whether there may be a handler of events other than those of runs.
-spec is_watched() -> boolean().
is_watched() -> persistent_term:get(?WATCHED, 0) =/= 0 orelse is_loaded().

%% @private Whether a handler gets the events of runs. Runs are short, so this reads one word.
-spec runs_are_watched() -> boolean().
runs_are_watched() -> persistent_term:get(?WATCHED, 0) >= ?RUNS.

%% @private Calls Work between the events of a span, if there may be a handler. Describe gets the result, and returns measurements and metadata for the
%% stop, or why the work failed.
-spec span(atom(), map(), fun(() -> Result), fun((Result) -> {map(), map()} | {failed, term()})) -> Result.
span(Name, Metadata, Work, Describe) ->
    case started(Name, Metadata) of
        none -> Work();
        Span -> within(Span, Work, Describe)
    end.

within(Span, Work, Describe) ->
    try Work() of
        Result ->
            _ = case Describe(Result) of
                    {failed, Reason} -> failed(Span, error, Reason);
                    {Measured, More} -> ended(Span, Measured, More)
                end,
            Result
    catch Class:Reason:Trace ->
        ok = failed(Span, Class, {Reason, Trace}),
        erlang:raise(Class, Reason, Trace)
    end.

%% @private Begins a span that another function ends.
-spec started(atom(), map()) -> span().
started(Name, Metadata) ->
    case is_watched() of
        true -> begun(Name, Metadata);
        false -> none
    end.

begun(Name, Metadata) ->
    Now = erlang:monotonic_time(),
    All = Metadata#{telemetry_span_context => make_ref()},
    ok = execute([tessera, Name, start], #{system_time => erlang:system_time(), monotonic_time => Now}, All),
    {Name, Now, All}.

%% @private
-spec ended(span(), map(), map()) -> ok.
ended(none, _, _) -> ok;
ended({Name, Begun, Metadata}, Measured, More) ->
    Now = erlang:monotonic_time(),
    execute([tessera, Name, stop], Measured#{duration => Now - Begun, monotonic_time => Now}, maps:merge(Metadata, More)).

%% @private The reason may come with its stacktrace.
-spec failed(span(), error | exit | throw, term()) -> ok.
failed(none, _, _) -> ok;
failed({Name, Begun, Metadata}, Class, Failure) ->
    Now = erlang:monotonic_time(),
    {Reason, Trace} = case Failure of
                          {Why, [Frame | _] = Frames} when is_tuple(Frame) -> {Why, Frames};
                          _ -> {Failure, []}
                      end,
    execute([tessera, Name, exception], #{duration => Now - Begun, monotonic_time => Now},
            Metadata#{kind => Class, reason => Reason, stacktrace => Trace}).

%% @private An event that is not a span.
-spec execute(event(), map(), map()) -> ok.
execute(Event, Measurements, Metadata) ->
    _ = is_loaded() andalso telemetry:execute(Event, Measurements, Metadata),
    lists:foreach(fun({Id, Prefix, Handler}) -> lists:prefix(Prefix, Event) andalso tell(Id, Handler, Event, Measurements, Metadata) end,
                  persistent_term:get(?HANDLERS, [])).

is_loaded() -> erlang:function_exported(telemetry, execute, 3).

tell(Id, Handler, Event, Measurements, Metadata) ->
    try Handler(Event, Measurements, Metadata)
    catch Class:Reason:Trace ->
        gen_server:cast(?MODULE, {remove, Id, Handler}),
        logger:error("tessera: the handler ~0tP of ~0tp raised ~p ~0tP and was detached: ~0tP", [Id, 10, Event, Class, Reason, 20, Trace, 30])
    end.

%% ---- the process, which changes the list of handlers

call(Request) ->
    _ = case whereis(?MODULE) of
            undefined -> application:ensure_all_started(tessera);
            _ -> ok
        end,
    gen_server:call(?MODULE, Request, infinity).

%% @private
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @private Handlers outlive a restart of this process.
init([]) ->
    ok = watch(),
    _ = erlang:send_after(?LOOK, self(), look),
    {ok, []}.

%% @private
handle_call({attach, Id, Prefix, Handler}, _, State) ->
    ok = put_handlers(lists:keystore(Id, 1, persistent_term:get(?HANDLERS, []), {Id, Prefix, Handler})),
    {reply, ok, State};
handle_call({detach, Id}, _, State) ->
    ok = put_handlers(lists:keydelete(Id, 1, persistent_term:get(?HANDLERS, []))),
    {reply, ok, State};
handle_call(refresh, _, State) ->
    ok = watch(),
    {reply, ok, State};
handle_call(_, _, State) -> {reply, error, State}.

%% @private
handle_cast({remove, Id, Handler}, State) ->
    ok = put_handlers([Own || {Other, _, F} = Own <- persistent_term:get(?HANDLERS, []), {Other, F} =/= {Id, Handler}]),
    {noreply, State};
handle_cast(_, State) -> {noreply, State}.

%% @private
handle_info(look, State) ->
    ok = watch(),
    _ = erlang:send_after(?LOOK, self(), look),
    {noreply, State};
handle_info(_, State) -> {noreply, State}.

put_handlers(Handlers) ->
    case persistent_term:get(?HANDLERS, []) of
        Handlers -> ok;
        _ -> persistent_term:put(?HANDLERS, Handlers)
    end,
    watch().

watch() ->
    Handlers = persistent_term:get(?HANDLERS, []),
    Runs = lists:any(fun({_, Prefix, _}) -> concerns_runs(Prefix) end, Handlers) orelse telemetry_has_runs(),
    Bits = case Handlers of [] -> 0; _ -> ?OWN end + case Runs of true -> ?RUNS; false -> 0 end,
    case persistent_term:get(?WATCHED, 0) of
        Bits -> ok;
        _ -> persistent_term:put(?WATCHED, Bits)
    end.

concerns_runs([tessera]) -> true;
concerns_runs([tessera, run | _]) -> true;
concerns_runs(_) -> false.

%% A library without the list of its handlers is taken to have one. It has none before it is started.
telemetry_has_runs() ->
    is_loaded() andalso
        case erlang:function_exported(telemetry, list_handlers, 1) of
            false -> true;
            true -> try telemetry:list_handlers([tessera, run]) =/= []
                    catch _:_ -> false
                    end
        end.
