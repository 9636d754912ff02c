%% How the sets of figures beside the workloads are timed.
-module(tessera_timing).
-export([per_call/1, times/2, microseconds/1, now_ns/0, median/1, geometric_mean/1, settle/2, vm/2]).

%% Microseconds of a call, in a process of its own, so that the caller's terms are not collected again and again; the median of rounds.
-spec per_call(fun(() -> term())) -> float().
per_call(Call) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(
        fun() ->
                times(1000, Call),
                Self ! {self(), median([microseconds(fun() -> times(1000, Call) end) / 1000 || _ <- lists:seq(1, 50)])}
        end),
    receive
        {Pid, Time} -> erlang:demonitor(Monitor, [flush]), Time;
        {'DOWN', Monitor, process, Pid, Reason} -> exit(Reason)
    end.

-spec times(non_neg_integer(), fun(() -> term())) -> ok.
times(0, _) -> ok;
times(N, Call) ->
    _ = Call(),
    times(N - 1, Call).

-spec microseconds(fun(() -> term())) -> float().
microseconds(F) ->
    Start = now_ns(),
    _ = F(),
    (now_ns() - Start) / 1000.

-spec now_ns() -> integer().
now_ns() -> erlang:monotonic_time(nanosecond).

-spec median([Number]) -> Number.
median(Values) -> lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

-spec geometric_mean([float()]) -> float().
geometric_mean(Numbers) -> math:exp(lists:sum([math:log(N) || N <- Numbers]) / length(Numbers)).

%% Waits until the CPUs are idle, at most `Times' times that many milliseconds. NumPy's threads look for more work for 0.11 s after a product,
%% and would take half a core from the next workload.
-spec settle(non_neg_integer(), pos_integer()) -> ok.
settle(0, _) -> ok;
settle(Times, Milliseconds) ->
    Before = busy_ticks(),
    timer:sleep(Milliseconds),
    case busy_ticks() - Before =< 1 of
        true -> ok;
        false -> settle(Times - 1, Milliseconds)
    end.

%% Hundredths of a second, of all CPUs and programs; the fourth and the fifth number are idle.
busy_ticks() ->
    {ok, File} = file:open("/proc/stat", [read]),
    {ok, "cpu" ++ Line} = file:read_line(File),
    ok = file:close(File),
    [User, Nice, System, _, _ | Interrupts] = [list_to_integer(T) || T <- string:lexemes(Line, " \n")],
    User + Nice + System + lists:sum(lists:sublist(Interrupts, 3)).

%% The lines that another VM prints, the last one first.
-spec vm(string(), [{string(), string()}]) -> [string()].
vm(Arguments, Environment) ->
    collect(open_port({spawn, "erl -noshell " ++ Arguments}, [{line, 4096}, exit_status, {env, Environment}]), []).

collect(Port, Lines) ->
    receive
        {Port, {data, {_, Line}}} -> collect(Port, [Line | Lines]);
        {Port, {exit_status, 0}} -> Lines;
        {Port, {exit_status, Status}} -> error({vm_ended, Status, lists:reverse(Lines)})
    end.
