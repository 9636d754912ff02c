%% @private Runs of programs in this process. While a plugin computes, or other ranks do, the process waits for a message and the
%% run holds no scheduler.
-module(tessera_run).
-export([run/4, group/4, op/2, compile/2, compile/3, awaited/1, timed/2, profiled/3, is_profiled/0, clock/0, events_of_run/1, note/3]).
-export_type([note/0]).

%% In the process dictionary while the process is profiled: a #profiled{}.
-define(PROFILED, '$tessera_profiled').
-define(MOST_TIMES, 10000).
%% Times of steps that a rank keeps: of each of the first runs.
-define(MOST_EVENTS_OF_RUN, 1024).
-define(RUNS_WITH_EVENTS, 1000).

-spec run(reference(), [tessera_type:operand()], non_neg_integer(), non_neg_integer()) -> term().
run(Executable, Args, Threads, Donated) ->
    case tessera_events:runs_are_watched() of
        false -> run_here(Executable, Args, Threads, Donated);
        true -> watched(Executable, 1, fun() -> run_here(Executable, Args, Threads, Donated) end)
    end.

run_here(Executable, Args, Threads, Donated) ->
    case tessera_nif:run(Executable, Args, Threads, Donated) of
        crowded ->
            ok = tessera_memory:make_room(),
            run_here(Executable, Args, Threads, Donated);
        Result -> awaited(Result)
    end.

-spec group(reference(), [[tessera_type:operand()]], non_neg_integer(), non_neg_integer()) -> term().
group(Executable, Lists, Threads, Donated) ->
    case tessera_events:runs_are_watched() of
        false -> awaited(tessera_nif:run_group(Executable, Lists, Threads, Donated));
        true -> watched(Executable, length(Lists), fun() -> awaited(tessera_nif:run_group(Executable, Lists, Threads, Donated)) end)
    end.

%% Events of a run. One that calls back ends for them at its first callback.
watched(Executable, Partitions, Run) ->
    tessera_events:span(run, #{program => Executable, partitions => Partitions, caller => self()}, Run, fun ended/1).

ended({error, Cause}) -> {failed, Cause};
ended({callback, _, _, _}) -> {#{}, #{outcome => callback}};
ended(stale) -> {#{}, #{outcome => stale}};
ended(_) -> {#{}, #{outcome => done}}.

-spec compile(tessera_nif:builder(), [atom() | {client | precision, atom()}]) -> tessera_nif:executable() | tessera_nif:error().
compile(Builder, Options) -> compile(Builder, Options, undefined).

%% The same with the function that the events name.
-spec compile(tessera_nif:builder(), [atom() | {client | precision, atom()}], function() | undefined) -> tessera_nif:executable() | tessera_nif:error().
compile(Builder, Options, Function) ->
    Compile = fun() -> timed(compile, fun() -> awaited(tessera_nif:compile(Builder, Options)) end) end,
    case tessera_events:is_watched() of
        false -> Compile();
        true ->
            Before = tessera_nif:jit_stats(),
            Metadata = #{function => Function, client => proplists:get_value(client, Options, host), caller => self()},
            Result = tessera_events:span(compile, Metadata, Compile, fun(Made) -> compiled(Made, Before) end),
            ok = tell_caches(Before, tessera_nif:jit_stats()),
            Result
    end.

compiled({error, Cause}, _) -> {failed, Cause};
compiled(Executable, Before) ->
    {Kernels, _} = tessera_nif:executable_kernels(Executable),
    After = tessera_nif:jit_stats(),
    {#{kernels => Kernels, kernels_compiled => more(compiled, Before, After), kernels_loaded => more(loaded, Before, After),
       kernels_reused => more(reused, Before, After)}, #{program => Executable}}.

%% The counts are of the whole VM: they include kernels that other processes compile meanwhile.
tell_caches(Before, After) ->
    {Hits, Misses, Evicted} = {more(loaded, Before, After), more(compiled, Before, After), more(evicted, Before, After)},
    _ = Hits + Misses > 0 andalso tessera_events:execute([tessera, disk_cache], #{hits => Hits, misses => Misses}, #{cache => kernels}),
    _ = Evicted > 0 andalso tessera_events:execute([tessera, eviction], #{count => Evicted}, #{cache => kernels}),
    ok.

more(Key, Before, After) -> map_get(Key, After) - map_get(Key, Before).

%% The result of an eager op on these operands, from the return value of tessera_nif:op/4. A device runs it as a
%% program.
-spec op(term(), [tessera_type:operand()]) -> term().
op({pressure, {Step, _} = Unfinished}, Operands) when Step =:= waiting; Step =:= program -> op(Unfinished, Operands); % the run tells again
op({waiting, _} = Waiting, Operands) -> op(awaited(Waiting), Operands);
op({profiled, Program, Result}, Operands) ->
    ok = locate(Program, [Program, {steps, Program}]),
    op(Result, Operands);
op({program, Executable}, Operands) ->
    case run(Executable, Operands, 0, 0) of
        [Result] -> Result;
        {pressure, [Result]} -> {pressure, Result};
        Results -> Results
    end;
op(Result, _) -> Result.

%% The result of a function of tessera_nif that returned this: while it is {waiting, _}, a device works, or other ranks.
-spec awaited(term()) -> term().
awaited({waiting, Run}) ->
    receive
        {ready, Run} -> awaited(tessera_nif:run_resume(Run))
    end;
awaited({profiled, Program, Result}) ->
    ok = locate(Program, [Program]),
    awaited(Result);
awaited(Result) -> Result.

%% ---- profiles

%% The clock of this VM's events, in nanoseconds, which is the system's. erlang:monotonic_time() is corrected by the VM, and for a time may run 1 % slower or
%% faster: times of both clocks cannot be compared.
-spec clock() -> integer().
clock() ->
    {Profile, Ns} = tessera_nif:profile_start(0),
    _ = tessera_nif:profile_stop(Profile),
    Ns.

-type line() :: tessera_stack:line().
%% By the program's number the line that called it; of an operation that ran at once the same line is of its steps.
-type lines() :: #{pos_integer() | {steps, pos_integer()} => line()}.
%% A run that another VM measures: the client, the line of the user's code, the platform's own term for the run, and the key of its program in
%% tessera_places.
-type note() :: {Client :: atom() | pid(), line() | unknown, Run :: term(), Key :: term()}.

%% What the profile of a process has seen: of lists the last one is first. `modules' are not taken for a caller, and `events' are how many times of
%% steps the profile keeps.
-record(profiled, {modules :: #{module() => true}, events :: non_neg_integer(), lines = #{} :: lines(),
                   times = [] :: [{trace | compile, integer(), integer()}], notes = [] :: [note()]}).

%% Calls F while the process is profiled: its result, the lines that called programs, the times of tracing and compiling, the last one first, and the
%% runs that were noted, the last one first. Modules of the list are not taken for a caller.
-spec profiled([module()], non_neg_integer(), fun(() -> Result)) ->
          {Result, lines(), [{trace | compile, integer(), integer()}], [note()]}.
profiled(Modules, Events, F) ->
    Outer = put(?PROFILED, #profiled{modules = maps:from_keys(Modules, true), events = Events}),
    try F() of
        Result ->
            Own = seen(),
            ok = merge(Outer, Own),
            {Result, Own#profiled.lines, Own#profiled.times, Own#profiled.notes}
    catch Class:Reason:Trace ->
        ok = merge(Outer, seen()),
        erlang:raise(Class, Reason, Trace)
    end.

%% What the profile has seen: nothing, if its function has erased the process dictionary.
seen() ->
    case get(?PROFILED) of
        undefined -> #profiled{modules = #{}, events = 0};
        #profiled{} = Profiled -> Profiled
    end.

%% The outer profile gets everything that the inner profile has.
merge(undefined, _) ->
    _ = erase(?PROFILED),
    ok;
merge(#profiled{lines = Lines, times = Times, notes = Notes} = Outer, #profiled{lines = More, times = Later, notes = Others}) ->
    _ = put(?PROFILED, Outer#profiled{lines = maps:merge(More, Lines), times = lists:sublist(Later ++ Times, ?MOST_TIMES),
                                      notes = lists:sublist(Others ++ Notes, ?MOST_TIMES)}),
    ok.

%% Whether the process is profiled, and has room for another run that is measured by other VMs.
-spec is_profiled() -> boolean().
is_profiled() ->
    case get(?PROFILED) of
        undefined -> false;
        #profiled{notes = Notes} -> length(Notes) < ?MOST_TIMES
    end.

%% How many times of steps each of so many ranks keeps of the next run; none without a profile, or without room for another run.
-spec events_of_run(pos_integer()) -> non_neg_integer() | none.
events_of_run(Ranks) ->
    case get(?PROFILED) of
        undefined -> none;
        #profiled{notes = Notes, events = Events} ->
            case length(Notes) of
                Many when Many >= ?MOST_TIMES -> none;
                Many when Many >= ?RUNS_WITH_EVENTS -> 0;
                _ -> min(?MOST_EVENTS_OF_RUN, Events div Ranks)
            end
    end.

%% Notes a run of the profiled process that other VMs measure.
-spec note(atom() | pid(), term(), term()) -> ok.
note(Client, Run, Key) ->
    case get(?PROFILED) of
        undefined -> ok;
        #profiled{modules = Modules, notes = Notes} = Profiled ->
            _ = put(?PROFILED, Profiled#profiled{notes = [{Client, line(Modules), Run, Key} | Notes]}),
            ok
    end.

%% The first run of a program under the profile: the line of the user's code that called it, for all of the keys.
locate(Program, Keys) ->
    case get(?PROFILED) of
        #profiled{modules = Modules, lines = Lines} = Profiled when not is_map_key(Program, Lines) ->
            _ = case line(Modules) of
                    unknown -> ok;
                    Line -> put(?PROFILED, Profiled#profiled{lines = maps:merge(Lines, maps:from_keys(Keys, Line))})
                end,
            ok;
        _ -> ok
    end.

%% The line of the user's code that is nearest on the stack.
line(Modules) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    line(Stack, fun(Module) -> is_map_key(Module, Modules) end).

line(Stack, IsHidden) ->
    case tessera_stack:nearest(Stack, IsHidden) of
        {frame, Line} -> Line;
        {traced, Callers} -> line(Callers, IsHidden);
        none -> unknown
    end.

%% The result of F, which traces or compiles.
-spec timed(trace | compile, fun(() -> Result)) -> Result.
timed(Kind, F) ->
    case get(?PROFILED) of
        undefined -> F();
        _ ->
            Begun = erlang:monotonic_time(nanosecond),
            Result = F(),
            _ = case get(?PROFILED) of
                    #profiled{times = Times} = Profiled when length(Times) < ?MOST_TIMES ->
                        put(?PROFILED, Profiled#profiled{times = [{Kind, Begun, erlang:monotonic_time(nanosecond)} | Times]});
                    _ -> ok
                end,
            Result
    end.
