%% @doc Figures of Tessera for monitoring, in the text format of Prometheus. docs/events.md has the list and an example of an endpoint.
-module(tessera_metrics).
-export([start/0, stop/0, text/0]).

-define(ID, tessera_metrics).
-define(COUNTS, {?MODULE, counts}).     % a persistent term: the counters
%% Upper bounds of the histogram of runs, in microseconds; the last one has no bound.
-define(BOUNDS, [10, 100, 1000, 10000, 100000, 1000000, 10000000]).
%% The histogram's counters come before the others.
-define(COUNTERS, [runs_sum_ns, run_failures, compilations, compile_failures, compile_ns, transfers, transfer_bytes, transfer_failures, transfer_ns, disk_hits,
                   disk_misses, evicted_programs, evicted_kernels, pressures, pressure_failures, pressure_ns, ranks_lost, restarts, cluster_starts,
                   cluster_failures, checkpoints, checkpoint_failures, checkpoint_ns]).

%% @doc Begins to count events, from zero. Each run of a program then costs a few tenths of a microsecond more. Without effect where counting has begun.
%% The setting `{metrics, true}' of the application does it when the application starts.
-spec start() -> ok.
start() ->
    case counts() of
        none ->
            ok = persistent_term:put(?COUNTS, counters:new(length(?BOUNDS) + 1 + length(?COUNTERS), [write_concurrency])),
            tessera_events:attach(?ID, [tessera], fun count/3);
        _ -> ok
    end.

%% @doc Ends the counting, and forgets the counts.
-spec stop() -> ok.
stop() ->
    ok = tessera_events:detach(?ID),
    _ = persistent_term:erase(?COUNTS),
    ok.

counts() -> persistent_term:get(?COUNTS, none).

%% @doc All figures as text. Those of memory, kernels and cached programs are always there; counts of events are those since {@link start/0}, and are
%% left out before it.
%%
%% ```
%% 1> {match, _} = re:run(tessera_metrics:text(), "^tessera_memory_live_bytes [0-9]+$", [multiline]), ok.
%% ok
%% '''
-spec text() -> binary().
text() ->
    Memory = tessera:memory(),
    iolist_to_binary([gauges(Memory), jit(maps:get(jit, Memory)), events(counts())]).

gauges(#{live := Live, peak := Peak, pooled := Pooled, limit := Limit, held := Held, allocations := Allocations, programs := Programs}) ->
    [metric(gauge, "memory_live_bytes", "Tensor memory in use.", Live),
     metric(gauge, "memory_peak_bytes", "The most tensor memory that was in use.", Peak),
     metric(gauge, "memory_pooled_bytes", "Freed tensor memory that is kept for reuse.", Pooled),
     metric(gauge, "memory_limit_bytes", "The limit of tensor memory, in use and pooled.", Limit),
     metric(gauge, "memory_held_bytes", "Bytes of the tensors that processes hold.", Held),
     metric(counter, "allocations_total", "Allocations of tensor memory.", Allocations),
     metric(gauge, "programs", "Compiled programs in the cache.", Programs)].

jit(#{compiled := Compiled, loaded := Loaded, reused := Reused, evicted := Evicted, kernels := Kernels, code_bytes := Bytes, compile_ns := Time}) ->
    [metric(gauge, "kernels", "Kernels in memory.", Kernels),
     metric(gauge, "kernel_code_bytes", "Machine code of the kernels in memory.", Bytes),
     metric(counter, "kernels_compiled_total", "Kernels compiled.", Compiled),
     metric(counter, "kernels_loaded_total", "Kernels read from the disk cache.", Loaded),
     metric(counter, "kernels_reused_total", "Kernels found in memory.", Reused),
     metric(counter, "kernels_dropped_total", "Kernels that memory had no room for.", Evicted),
     metric(counter, "kernel_compile_seconds_total", "Time of compilations of kernels, of all threads together.", seconds(Time))].

events(none) -> [];
events(Counts) ->
    Get = fun(Name) -> counters:get(Counts, index(Name)) end,
    [runs(Counts, seconds(Get(runs_sum_ns))) |
     [metric(counter, [Name, "_total"], Help, case lists:suffix("_seconds", Name) of true -> seconds(Get(Key)); false -> Get(Key) end)
      || {Name, Key, Help} <- [{"run_failures", run_failures, "Runs of programs that ended with an error."},
                               {"compilations", compilations, "Programs compiled."},
                               {"compilation_failures", compile_failures, "Compilations that ended with an error."},
                               {"compilation_seconds", compile_ns, "Time of the callers that compiled programs."},
                               {"transfers", transfers, "Tensors moved between devices, nodes and ranks."},
                               {"transfer_bytes", transfer_bytes, "Bytes moved between devices, nodes and ranks."},
                               {"transfer_failures", transfer_failures, "Transfers that ended with an error."},
                               {"transfer_seconds", transfer_ns, "Time of the callers that moved tensors."},
                               {"disk_cache_hits", disk_hits, "Kernels and programs read from disk."},
                               {"disk_cache_misses", disk_misses, "Kernels and programs that were not on disk."},
                               {"evicted_programs", evicted_programs, "Programs that the cache had no room for."},
                               {"evicted_kernels", evicted_kernels, "Kernels that memory had no room for."},
                               {"memory_pressure", pressures, "Calls that waited at the limit of tensor memory."},
                               {"memory_pressure_failures", pressure_failures, "Calls that got no tensor memory."},
                               {"memory_pressure_seconds", pressure_ns, "Time of the calls that waited at the limit of tensor memory."},
                               {"cluster_starts", cluster_starts, "Starts of clusters whose ranks were all ready."},
                               {"cluster_start_failures", cluster_failures, "Starts of clusters that failed."},
                               {"cluster_restarts", restarts, "Restarts of clusters."},
                               {"ranks_lost", ranks_lost, "Ranks lost."},
                               {"checkpoints", checkpoints, "Saves and loads of clusters."},
                               {"checkpoint_failures", checkpoint_failures, "Saves and loads of clusters that ended with an error."},
                               {"checkpoint_seconds", checkpoint_ns, "Time of saves and loads of clusters."}]]].

runs(Counts, Sum) ->
    {Lines, Total} = lists:mapfoldl(fun({I, Bound}, Before) ->
                                            All = Before + counters:get(Counts, I),
                                            {["tessera_run_seconds_bucket{le=\"", Bound, "\"} ", number(All), "\n"], All}
                                    end, 0, lists:enumerate([number(Us / 1000000) || Us <- ?BOUNDS] ++ ["+Inf"])),
    [header(histogram, "run_seconds", "Time of runs of programs."), Lines,
     "tessera_run_seconds_sum ", number(Sum), "\ntessera_run_seconds_count ", number(Total), "\n"].

metric(Kind, Name, Help, Value) -> [header(Kind, Name, Help), "tessera_", Name, " ", number(Value), "\n"].

header(Kind, Name, Help) -> ["# HELP tessera_", Name, " ", Help, "\n# TYPE tessera_", Name, " ", atom_to_list(Kind), "\n"].

number(Integer) when is_integer(Integer) -> integer_to_list(Integer);
number(Float) -> float_to_list(Float, [{decimals, 9}, compact]).

seconds(Nanoseconds) -> Nanoseconds / 1.0e9.

%% ---- counting

count([_, run, stop], Measured, _) -> count_run(Measured);
count([_, run, exception], Measured, _) ->
    ok = count_run(Measured),
    add(run_failures, 1);
count([_, compile, End], Measured, _) when End =/= start -> ended(End, {compilations, compile_failures, compile_ns}, Measured);
count([_, transfer, End], Measured, _) when End =/= start ->
    ok = add(transfer_bytes, maps:get(bytes, Measured, 0)),
    ended(End, {transfers, transfer_failures, transfer_ns}, Measured);
count([_, memory_pressure, End], Measured, _) when End =/= start -> ended(End, {pressures, pressure_failures, pressure_ns}, Measured);
count([_, checkpoint, End], Measured, _) when End =/= start -> ended(End, {checkpoints, checkpoint_failures, checkpoint_ns}, Measured);
count([_, cluster_start, stop], _, _) -> add(cluster_starts, 1);
count([_, cluster_start, exception], _, _) -> add(cluster_failures, 1);
count([_, cluster_restart], _, _) -> add(restarts, 1);
count([_, rank_lost], #{count := Count}, _) -> add(ranks_lost, Count);
count([_, disk_cache], #{hits := Hits, misses := Misses}, _) ->
    ok = add(disk_hits, Hits),
    add(disk_misses, Misses);
count([_, eviction], #{count := Count}, #{cache := programs}) -> add(evicted_programs, Count);
count([_, eviction], #{count := Count}, #{cache := kernels}) -> add(evicted_kernels, Count);
count(_, _, _) -> ok.

ended(End, {All, Failed, Time}, #{duration := Duration}) ->
    ok = add(Time, nanoseconds(Duration)),
    ok = add(All, 1),
    case End of
        exception -> add(Failed, 1);
        stop -> ok
    end.

count_run(#{duration := Duration}) ->
    Time = nanoseconds(Duration),
    ok = add_at(bucket(Time div 1000, ?BOUNDS, 1), 1),
    add(runs_sum_ns, Time).

bucket(Us, [Bound | Bounds], I) when Us > Bound -> bucket(Us, Bounds, I + 1);
bucket(_, _, I) -> I.

nanoseconds(Duration) -> erlang:convert_time_unit(Duration, native, nanosecond).

index(Name) -> length(?BOUNDS) + 1 + position(Name, ?COUNTERS, 1).

position(Name, [Name | _], I) -> I;
position(Name, [_ | Names], I) -> position(Name, Names, I + 1).

add(Name, Count) -> add_at(index(Name), Count).

%% The counting may have ended meanwhile.
add_at(Index, Count) ->
    case counts() of
        none -> ok;
        Counts -> counters:add(Counts, Index, Count)
    end.
