%% @private Garbage collection for tensors. The VM's collector does not know the
%% memory behind a handle, so it is called when that memory becomes scarce.
-module(tessera_memory).
-include("tessera.hrl").
-export([made/3, result/3, relieved/1, make_room/0, by_process/0]).

-define(TIMEOUT, 5000).
%% Milliseconds before each try. Others may have freed memory meanwhile; then they are made to. They answer before their destructors run,
%% and a busy machine may run other threads in between.
-define(TRIES, [0, 1, collect, 0, 1, 2, 4] ++ lists:duplicate(20, 5)).

%% The tensor that Make makes, for the API function Name with Args.
-spec made(atom(), [term()], fun(() -> term())) -> tessera_type:tensor().
made(Name, Args, Make) ->
    case Make() of
        #tessera{} = T -> T;
        Other -> result(Other, Make, fun(Cause) -> tessera_error:raise(Name, Args, Cause) end)
    end.

%% The result of a function that makes tensors; `Again' repeats the call.
-spec result(term(), fun(() -> term()), fun((map()) -> no_return())) -> term().
result({pressure, Made}, _Again, _Fail) ->
    relieved(Made);
result(crowded, Again, Fail) ->
    ok = make_room(),
    result(Again(), Again, Fail);
result({waiting, _} = Waiting, Again, Fail) ->
    result(tessera_run:awaited(Waiting), Again, Fail);
result({error, #{code := resource_exhausted}} = First, Call, Fail) ->
    Again = fun() -> settled(Call) end,
    Span = tessera_events:started(memory_pressure, #{caller => self()}),
    collect_self(major),
    Result = case Again() of
                 {error, #{code := resource_exhausted}} -> in_turn(Again);
                 Other -> Other
             end,
    told(First, Result, Span, Fail);
result({error, Cause}, _Again, Fail) ->
    Fail(Cause);
result(Made, _Again, _Fail) ->
    Made.

settled(Call) ->
    case tessera_run:awaited(Call()) of
        crowded ->
            ok = make_room(),
            settled(Call);
        Result -> Result
    end.

%% A try that fails may have overwritten an argument that was donated to it, which the next one does not find. The lack of memory is the cause.
told({error, Short}, {error, Cause}, Span, Fail) ->
    Told = case tessera_error:is_gone(Cause) of true -> Short; false -> Cause end,
    ok = tessera_events:failed(Span, error, Told),
    Fail(Told);
told(_, Result, Span, _Fail) ->
    ok = tessera_events:ended(Span, #{}, #{}),
    case Result of
        {pressure, Made} -> Made;
        _ -> Result
    end.

%% Collects garbage in the caller, since its result came with {pressure, Made}.
-spec relieved(Made) -> Made.
relieved(Made) ->
    ok = make_room(),
    Made.

%% Collects garbage in the caller. A minor collection costs little and is mostly enough: a loop drops its results soon.
-spec make_room() -> ok.
make_room() ->
    _ = collect_self(minor) andalso collect_self(major),
    ok.

%% The result of Again, or its last error: the process that has waited longest tries first.
in_turn(Again) ->
    try tries(Again, erlang:monotonic_time(millisecond), ?TRIES) of
        Result ->
            ok = tessera_turns:leave(not is_short(Result)),
            Result
    catch Class:Reason:Trace ->
        ok = tessera_turns:leave(true),
        erlang:raise(Class, Reason, Trace)
    end.

tries(Again, Since, [collect | Tries]) ->
    collect_others(),
    tries(Again, Since, Tries);
tries(Again, Since, [Wait | Tries]) ->
    timer:sleep(Wait),
    Turn = tessera_turns:enter(Since),
    Result = Again(),
    case Turn =:= turn andalso is_short(Result) andalso {tessera_turns:failed(), Tries} of
        {again, _} -> tries(Again, Since, [max(1, Wait) | Tries]);
        {counts, [_ | _]} -> tries(Again, Since, Tries);
        _ -> Result
    end.

is_short({error, #{code := resource_exhausted}}) -> true;
is_short(_) -> false.

%% Destructors run when the process is scheduled out. Returns whether much is left that a major collection may free.
collect_self(Type) ->
    true = garbage_collect(self(), [{type, Type}]),
    erlang:yield(),
    tessera_nif:collected(Type).

%% Collects garbage in other processes, which may hold tensors that they no
%% longer use. This runs in a process of its own, so that late answers are dropped with it; the caller has its turn meanwhile. It takes time of
%% the whole VM, so telemetry and the log are told of it.
collect_others() ->
    Begun = erlang:monotonic_time(),
    {Pid, Monitor} = spawn_monitor(fun() -> exit({collected, collect_all()}) end),
    Collected = receive
                    {'DOWN', Monitor, process, Pid, {collected, Count}} -> Count;
                    {'DOWN', Monitor, process, Pid, _} -> 0
                end,
    _ = collect_self(major),
    Duration = erlang:monotonic_time() - Begun,
    ok = tessera_events:execute([tessera, garbage_collection], #{duration => Duration, processes => Collected}, #{caller => self()}),
    logger:debug("tessera: at the limit of tensor memory ~b processes collected garbage in ~b ms",
                 [Collected, erlang:convert_time_unit(Duration, native, millisecond)]).

%% How many processes have collected garbage.
collect_all() ->
    Asked = [{Pid, ask(Pid)} || Pid <- processes(), Pid =/= self()],
    Deadline = erlang:monotonic_time(millisecond) + ?TIMEOUT,
    length([Pid || {Pid, Tag} <- Asked, await(Tag, Deadline)]).

ask(Pid) ->
    Tag = make_ref(),
    async = garbage_collect(Pid, [{async, Tag}]),
    Tag.

%% A process that runs native code answers late; it is not awaited beyond the deadline.
await(Tag, Deadline) ->
    receive
        {garbage_collect, Tag, Collected} -> Collected
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> false
    end.

%% ---- the processes that have made the tensors in memory

-spec by_process() -> [map()].
by_process() ->
    case tessera_nif:makers() of
        {error, Cause} -> tessera_error:raise(memory, [processes], Cause);
        Rows -> lists:sort(fun(#{bytes := A}, #{bytes := B}) -> A >= B end, [row(Row) || Row <- Rows])
    end.

row({Pid, Tensors, Bytes, Estimated, Largest, Oldest}) ->
    #{pid => Pid, name => name(Pid), is_alive => is_pid(Pid) andalso is_process_alive(Pid), tensors => Tensors, bytes => Bytes,
      estimated => Estimated, largest => Largest, oldest_ms => Oldest}.

name(Pid) when is_pid(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> undefined
    end;
name(_) -> undefined.
