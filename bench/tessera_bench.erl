%% Times the workloads, and the peers beside them.
%%
%%   make bench [ONLY=name,name] [BUDGET=seconds] [JSON=FILE] [PEERS=python] [SITTINGS=n]
%%
%% ONLY takes workloads whose name contains one of these; `latency' is the set
%% of tessera_latency. BUDGET is the time for each workload. PEERS is a Python
%% with jax, torch and numpy: each workload then runs in Tessera and in the
%% peers one after the other, and ratios of the medians are printed. With
%% SITTINGS all that is done several times, and medians of the ratios are given.
-module(tessera_bench).
-export([main/0]).

-define(PEERS, ["jax", "torch", "numpy"]).

-type figures() :: #{min_ms := float(), median_ms := float(), compile_ms := float()}.

main() ->
    %% What is timed includes compiling: nothing may be left from an earlier time.
    Dir = temporary_dir(),
    ok = application:load(tessera),
    ok = application:set_env(tessera, cache_dir, Dir),
    {ok, _} = application:ensure_all_started(tessera),
    try run(options()) after file:del_dir_r(Dir) end.

options() ->
    #{only => string:lexemes(os:getenv("ONLY", ""), ","),
      budget => number(os:getenv("BUDGET", "")),
      json => os:getenv("JSON", ""),
      python => os:getenv("PEERS", ""),
      sittings => trunc(number(os:getenv("SITTINGS", "")))}.

number("") -> 1.0;
number(Text) ->
    case string:to_float(Text) of
        {error, no_float} -> float(list_to_integer(Text));
        {Number, _} -> Number
    end.

temporary_dir() ->
    Base = filename:join(os:getenv("TMPDIR", "/tmp"), "tessera-bench-" ++ os:getpid()),
    ok = file:make_dir(Base),
    ok = file:change_mode(Base, 8#700),
    Base.

run(#{only := Only, python := Python, sittings := Sittings} = Options) ->
    Workloads = [W || {Name, _, _} = W <- tessera_workloads:all(), wanted(Name, Only)],
    Peers = [{Peer, start_peer(Python, Peer, Options)} || Peer <- ?PEERS, Python =/= "", Workloads =/= []],
    Results = [sitting(N, Workloads, Peers, Options) || N <- lists:seq(1, Sittings)],
    _ = [port_close(Port) || {_, Port} <- Peers],
    Peers =/= [] andalso print_ratios(Workloads, Results),
    Latency = case wanted("latency", Only) of
                  true -> tessera_latency:run();
                  false -> []
              end,
    write_json(Options, Workloads, Results, Latency).

wanted(_, []) -> true;
wanted(Name, Only) -> lists:any(fun(Part) -> string:find(Name, Part) =/= nomatch end, Only).

%% ---- timing ----

%% #{{Who, Name} => figures()}
sitting(N, Workloads, Peers, Options) ->
    io:format("sitting ~b~n", [N]),
    maps:from_list(lists:append([workload(W, Peers, Options) || W <- Workloads])).

workload({Name, Inputs, Function}, Peers, #{budget := Budget}) ->
    Ours = print("tessera", Name, {ok, in_process(fun() -> measure(Function, Inputs(), Budget) end)}),
    Theirs = [print(Peer, Name, ask(Port, Name)) || {Peer, Port} <- Peers],
    lists:append([Ours | Theirs]).

%% The inputs go with the process.
in_process(F) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Self ! {self(), F()} end),
    receive
        {Pid, Result} ->
            erlang:demonitor(Monitor, [flush]),
            Result;
        {'DOWN', Monitor, process, Pid, Reason} ->
            exit(Reason)
    end.

-spec measure(function(), [term()], float()) -> figures().
measure(Function, Inputs, Budget) ->
    Jit = tessera:jit(Function),
    Call = fun() -> apply(Jit, Inputs) end,
    First = timed(Call),
    _ = [Call() || _ <- [1, 2]],
    Times = repeat(Call, erlang:monotonic_time(nanosecond) + round(Budget * 1.0e9), []),
    Median = median(Times),
    #{min_ms => lists:min(Times), median_ms => Median, compile_ms => max(First - Median, 0.0)}.

repeat(Call, End, Times) ->
    Enough = length(Times) >= 3 andalso erlang:monotonic_time(nanosecond) >= End,
    case Enough orelse length(Times) >= 2000 of
        true -> Times;
        false -> repeat(Call, End, [timed(Call) | Times])
    end.

timed(Call) ->
    Start = erlang:monotonic_time(nanosecond),
    _ = Call(),
    (erlang:monotonic_time(nanosecond) - Start) / 1.0e6.

median(Values) ->
    Sorted = lists:sort(Values),
    N = length(Sorted),
    (lists:nth((N + 1) div 2, Sorted) + lists:nth(N div 2 + 1, Sorted)) / 2.

%% ---- peers: peers.py --serve takes names and answers with lines ----

start_peer(Python, Peer, #{budget := Budget}) ->
    Script = filename:join("bench", "peers.py"),
    Args = [Script, "--peer", Peer, "--serve", "--budget", io_lib:format("~w", [Budget])],
    Port = open_port({spawn_executable, find(Python)}, [{args, Args}, {line, 4096}, exit_status, binary]),
    ["ready"] = answer(Port),
    Port.

find(Program) ->
    case os:find_executable(Program) of
        false -> error({not_found, Program});
        Path -> Path
    end.

ask(Port, Name) ->
    true = port_command(Port, [Name, $\n]),
    case answer(Port) of
        ["ok", Min, Median, Compile] ->
            {ok, #{min_ms => number(Min), median_ms => number(Median), compile_ms => number(Compile)}};
        ["failed" | Why] ->
            {failed, lists:join(" ", Why)}
    end.

answer(Port) ->
    receive
        {Port, {data, {eol, Line}}} -> string:lexemes(binary_to_list(Line), " ");
        {Port, {exit_status, Status}} -> error({peer_ended, Status})
    end.

%% ---- results ----

print(Who, Name, {ok, #{min_ms := Min, median_ms := Median, compile_ms := Compile} = Figures}) ->
    io:format("~-24s ~-8s min ~10.4f  median ~10.4f  first-call extra ~9.1f ms~n", [Name, Who, Min, Median, Compile]),
    [{{Who, Name}, Figures}];
print(Who, Name, {failed, Why}) ->
    io:format("~-24s ~-8s ~s~n", [Name, Who, Why]),
    [].

%% Over the sittings, the median of the ratios of medians, for those who have a figure.
print_ratios(Workloads, Results) ->
    io:format("~ntimes faster than a peer: ratio of medians, median of ~b sittings; first call: extra, ms~n"
              "~-24s ~8s ~8s ~8s ~8s   ~8s ~8s~n",
              [length(Results), "", "XLA", "torch", "NumPy", "best", "first", "XLA's"]),
    Ratios = [print_ratio(Name, Results) || {Name, _, _} <- Workloads],
    [io:format("geometric mean over ~s: ~.2f~n", [What, geometric_mean(Known)])
     || {What, At} <- [{"XLA", 1}, {"the best of the peers", 4}],
        Known <- [[element(At, R) || R <- Ratios, element(At, R) =/= none]], Known =/= []].

print_ratio(Name, Results) ->
    [Xla, Torch, Numpy] = [ratio([Peer], Name, Results) || Peer <- ?PEERS],
    Best = ratio(?PEERS, Name, Results),
    First = [first_call(Who, Name, Results) || Who <- ["tessera", "jax"]],
    io:format("~-24s ~8s ~8s ~8s ~8s   ~8s ~8s~n", [Name | [cell(R) || R <- [Xla, Torch, Numpy, Best | First]]]),
    {Xla, Torch, Numpy, Best}.

cell(none) -> "-";
cell(Number) -> io_lib:format("~.2f", [Number]).

ratio(Peers, Name, Results) ->
    Ratios = [lists:min(Theirs) / maps:get(median_ms, maps:get({"tessera", Name}, R))
              || R <- Results,
                 Theirs <- [[maps:get(median_ms, maps:get({P, Name}, R)) || P <- Peers, is_map_key({P, Name}, R)]],
                 Theirs =/= []],
    case Ratios of
        [] -> none;
        _ -> median(Ratios)
    end.

%% Only the first sitting's first call compiles.
first_call(Who, Name, [First | _]) ->
    case First of
        #{{Who, Name} := #{compile_ms := Compile}} -> Compile;
        _ -> none
    end.

geometric_mean(Numbers) -> math:exp(lists:sum([math:log(N) || N <- Numbers]) / length(Numbers)).

%% ---- JSON ----

write_json(#{json := ""}, _, _, _) -> ok;
write_json(#{json := File}, Workloads, Results, Latency) ->
    Whos = ["tessera" | [Peer || Peer <- ?PEERS, [true || {Who, _} <- maps:keys(hd(Results)), Who =:= Peer] =/= []]],
    Figures = [{Who, [{Name, over_sittings(Who, Name, Results)}
                      || {Name, _, _} <- Workloads, is_map_key({Who, Name}, hd(Results))]} || Who <- Whos],
    [{_, Ours} | Theirs] = Figures,
    ok = file:write_file(File, json([{peer, "tessera"}, {cpus, erlang:system_info(logical_processors_available)},
                                     {workloads, Ours}, {peers, Theirs}, {latency, Latency}])).

over_sittings(Who, Name, Results) ->
    Figures = [maps:get({Who, Name}, R) || R <- Results, is_map_key({Who, Name}, R)],
    Of = fun(Key) -> [maps:get(Key, F) || F <- Figures] end,
    [{min_ms, lists:min(Of(min_ms))}, {median_ms, median(Of(median_ms))}, {compile_ms, hd(Of(compile_ms))}].

json([]) -> "{}";
json([{_, _} | _] = Pairs) -> ["{", lists:join(", ", [[json(text(Key)), ": ", json(Value)] || {Key, Value} <- Pairs]), "}"];
json(Number) when is_integer(Number) -> integer_to_list(Number);
json(Number) when is_float(Number) -> io_lib:format("~w", [Number]);
json(Text) -> io_lib:format("\"~s\"", [Text]).

text(Key) when is_atom(Key) -> atom_to_list(Key);
text(Key) -> Key.
