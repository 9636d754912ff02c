%% Times the workloads, and the peers beside them.
%%
%%   make bench [ONLY=name,name] [BUDGET=seconds] [JSON=FILE] [PEERS=python]
%%
%% ONLY takes workloads whose name contains one of these words; `latency' is the set of tessera_latency, `mesh' and
%% `cluster' the sets of tessera_mesh_bench. BUDGET is the time for each workload. PEERS is a Python with jax, torch and
%% numpy: each workload then runs in Tessera and in the peers one after the other, and ratios of the medians are printed.
%% Of several such runs, summary.py makes one table from their JSON.
-module(tessera_bench).
-export([main/0]).

-define(PEERS, ["jax", "torch", "numpy"]).

-type figures() :: #{min_ms := float(), median_ms := float(), compile_ms := float()}.

main() ->
    %% The timed part includes compiling: no kernel may be left from an earlier time.
    Dir = temporary_dir(),
    ok = application:load(tessera),
    ok = application:set_env(tessera, cache_dir, Dir),
    {ok, _} = application:ensure_all_started(tessera),
    try run(options()) after file:del_dir_r(Dir) end.

options() ->
    #{only => string:lexemes(os:getenv("ONLY", ""), ","),
      budget => number(os:getenv("BUDGET", "")),
      json => os:getenv("JSON", ""),
      python => os:getenv("PEERS", "")}.

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

run(#{only := Only, python := Python} = Options) ->
    Workloads = [W || {Name, _, _} = W <- tessera_workloads:all(), wanted(Name, Only)],
    Peers = [{Peer, start_peer(Python, Peer, Options)} || Peer <- ?PEERS, Python =/= "", Workloads =/= []],
    Results = maps:from_list(lists:append([workload(W, Peers, Options) || W <- Workloads])),
    _ = [port_close(Port) || {_, Port} <- Peers],
    Peers =/= [] andalso print_ratios(Workloads, Results),
    Latency = lists:append([Run() || {Name, Run} <- sets(), wanted(Name, Only)]),
    write_json(Options, Workloads, Results, Latency).

%% Sets of figures by a module of their own. A cluster needs MPI, without which there is none.
sets() -> [{"latency", fun tessera_latency:run/0}, {"mesh", fun tessera_mesh_bench:mesh/0}]
              ++ [{"cluster", fun tessera_mesh_bench:cluster/0} || filelib:is_regular("priv/tessera_mpi.so")].

wanted(_, []) -> true;
wanted(Name, Only) -> lists:any(fun(Part) -> string:find(Name, Part) =/= nomatch end, Only).

%% ---- timing ----

%% [{{Who, Name}, figures()}]
workload({Name, Inputs, Function}, Peers, #{budget := Budget}) ->
    settle(),
    Ours = print("tessera", Name, {ok, in_process(fun() -> measure(Function, Inputs(), Budget) end)}),
    Theirs = [begin settle(), print(Peer, Name, ask(Port, Name)) end || {Peer, Port} <- Peers],
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

%% For a second at most.
settle() -> tessera_timing:settle(20, 50).

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

print_ratios(Workloads, Results) ->
    io:format("~ntimes faster than a peer: ratio of medians; first call: extra, ms~n~-24s ~8s ~8s ~8s ~8s   ~8s ~8s~n",
              ["", "XLA", "torch", "NumPy", "best", "first", "XLA's"]),
    Ratios = [print_ratio(Name, Results) || {Name, _, _} <- Workloads],
    [io:format("geometric mean over ~s: ~.2f~n", [What, tessera_timing:geometric_mean(Known)])
     || {What, At} <- [{"XLA", 1}, {"the best of the peers", 4}],
        Known <- [[element(At, R) || R <- Ratios, element(At, R) =/= none]], Known =/= []].

print_ratio(Name, Results) ->
    [Xla, Torch, Numpy] = [ratio([Peer], Name, Results) || Peer <- ?PEERS],
    Best = ratio(?PEERS, Name, Results),
    First = [figure(compile_ms, Who, Name, Results) || Who <- ["tessera", "jax"]],
    io:format("~-24s ~8s ~8s ~8s ~8s   ~8s ~8s~n", [Name | [cell(R) || R <- [Xla, Torch, Numpy, Best | First]]]),
    {Xla, Torch, Numpy, Best}.

cell(none) -> "-";
cell(Number) -> io_lib:format("~.2f", [Number]).

figure(Key, Who, Name, Results) ->
    case Results of
        #{{Who, Name} := #{Key := Value}} -> Value;
        _ -> none
    end.

%% The ratio to the fastest of these peers.
ratio(Peers, Name, Results) ->
    case [Time || Peer <- Peers, Time <- [figure(median_ms, Peer, Name, Results)], Time =/= none] of
        [] -> none;
        Times -> lists:min(Times) / figure(median_ms, "tessera", Name, Results)
    end.

%% ---- JSON ----

write_json(#{json := ""}, _, _, _) -> ok;
write_json(#{json := File}, Workloads, Results, Latency) ->
    Figures = fun(Who) -> [{Name, maps:to_list(F)} || {Name, _, _} <- Workloads, {ok, F} <- [maps:find({Who, Name}, Results)]] end,
    Theirs = [{Peer, Figures(Peer)} || Peer <- ?PEERS, Figures(Peer) =/= []],
    ok = file:write_file(File, json([{peer, "tessera"}, {cpus, erlang:system_info(logical_processors_available)},
                                     {workloads, Figures("tessera")}, {peers, Theirs}, {latency, Latency}])).

json([]) -> "{}";
json([{_, _} | _] = Pairs) -> ["{", lists:join(", ", [[json(text(Key)), ": ", json(Value)] || {Key, Value} <- Pairs]), "}"];
json(Number) when is_integer(Number) -> integer_to_list(Number);
json(Number) when is_float(Number) -> io_lib:format("~w", [Number]);
json(Text) -> io_lib:format("\"~s\"", [Text]).

text(Key) when is_atom(Key) -> atom_to_list(Key);
text(Key) -> Key.
