%% The time slices of a process, by the CPU time of its scheduler's thread: a tracer (test/erl/time_slices.c).
-module(tessera_time_slices).
-export([of_call/2, enabled/3, trace/5, begin_slices/1, slices/0]).

%% Runs Call in a process of its own. Returns the number of its time slices, and a tuple {CpuNs, ClockNs, Waits, In, Out} for each slice that takes
%% LeastNs or more nanoseconds on the clock.
of_call(LeastNs, Call) ->
    case erlang:load_nif(os:getenv("TESSERA_TEST_TIME_SLICES"), 0) of
        ok -> ok;
        {error, {reload, _}} -> ok
    end,
    ok = ?MODULE:begin_slices(LeastNs),
    {Pid, Monitor} = spawn_monitor(fun() -> receive go -> Call() end end),
    1 = erlang:trace(Pid, true, [running, {tracer, ?MODULE, []}]),
    Pid ! go,
    receive {'DOWN', Monitor, process, Pid, Reason} -> normal = Reason end,
    ?MODULE:slices().

enabled(_, _, _) -> erlang:nif_error(not_loaded).
trace(_, _, _, _, _) -> erlang:nif_error(not_loaded).
begin_slices(_) -> erlang:nif_error(not_loaded).
slices() -> erlang:nif_error(not_loaded).
