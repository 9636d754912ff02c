%% How the sets of figures beside the workloads are timed.
-module(tessera_timing).
-export([per_call/1, times/2, microseconds/1, now_ns/0, median/1, vm/2]).

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
