%% Times drawn workloads, the peers beside them, and compares the results.
%%
%%   make bench-random SEED=N COUNT=M PEERS=python [ONLY=family,family] [AT=index] [ELEMENTS=most] [BUDGET=seconds]
%%
%% Workload I of a seed is the same on every machine (tessera_random_workloads). XLA runs the StableHLO of the same program, torch
%% and NumPy a counterpart where the family has one (random_peers.py). Each result is compared with each peer's; a disagreement is printed at
%% once and again at the end. BUDGET is the time of a workload in each party, in two turns; 0 only compares. AT takes one workload.
-module(tessera_random_bench).
-export([main/0]).

-define(PEERS, ["jax", "torch", "numpy"]).

-type row() :: #{index := non_neg_integer(), name := string(), family := atom(), ours := float(), best := float() | none, best_peer := string(),
                 xla := float() | none, roof := float(), wrong := [{string(), string()}]}.

main() ->
    Dir = filename:join(scratch(), "tessera-random-" ++ os:getpid()),
    ok = file:make_dir(Dir),
    ok = file:change_mode(Dir, 8#700),
    {ok, _} = application:ensure_all_started(tessera),
    try run(Dir, options()) after file:del_dir_r(Dir) end.

%% The files of inputs and results are written and read once, so memory is best for them.
scratch() ->
    case filelib:is_dir("/dev/shm") of
        true -> "/dev/shm";
        false -> os:getenv("TMPDIR", "/tmp")
    end.

options() ->
    #{seed => number("SEED", 1), count => number("COUNT", 20), elements => number("ELEMENTS", 1 bsl 22), budget => number("BUDGET", 0.1),
      at => number("AT", none), python => os:getenv("PEERS", ""), only => string:lexemes(os:getenv("ONLY", ""), ",")}.

number(Name, Default) ->
    case os:getenv(Name, "") of
        "" -> Default;
        Text ->
            case string:to_float(Text) of
                {error, no_float} -> list_to_integer(Text);
                {Number, _} -> Number
            end
    end.

run(Dir, #{seed := Seed, python := Python, elements := Elements} = Options) ->
    Indices = [I || I <- indices(Options), wanted(tessera_random_workloads:draw(Seed, I, Elements), Options)],
    Peers = [{Peer, start_peer(Python, Peer)} || Peer <- ?PEERS, Python =/= ""],
    Rows = [workload(I, Dir, Peers, Options) || I <- Indices],
    _ = [port_close(Port) || {_, Port} <- Peers],
    summary(Rows, Options).

indices(#{at := none, count := Count}) -> lists:seq(0, Count - 1);
indices(#{at := At}) -> [At].

wanted(_, #{only := []}) -> true;
wanted(#{family := Family}, #{only := Only}) -> lists:member(atom_to_list(Family), Only).

%% ---- a workload ----

workload(Index, Dir, Peers, #{seed := Seed, elements := Elements} = Options) ->
    #{name := Name, family := Family} = Work = tessera_random_workloads:draw(Seed, Index, Elements),
    Row = try
              row(Work, Index, Dir, Peers, Options)
          catch
              error:Reason:Where ->
                  io:format("~b ~s: Tessera fails: ~0tP~n  ~tp~n", [Index, Name, Reason, 20, lists:sublist(Where, 2)]),
                  #{index => Index, name => Name, family => Family, ours => 0.0, best => none, best_peer => "-", xla => none, roof => 0.0,
                    wrong => [{"tessera", lists:flatten(io_lib:format("~0tP", [Reason, 30]))}]}
          end,
    true = erlang:garbage_collect(),
    Row.

row(#{inputs := Specs, function := Function, name := Name, family := Family, flops := Flops} = Work, Index, Dir, Peers,
    #{seed := Seed, budget := Budget}) ->
    Inputs = [tessera_random_workloads:data(Spec, Seed * 1000 + Index, At) || {At, Spec} <- lists:enumerate(Specs)],
    Jit = tessera:jit(Function),
    Result = apply(Jit, Inputs),
    Line = describe(Work, Inputs, Result, Dir, Budget / 2),
    Turns = [turn(fun() -> apply(Jit, Inputs) end, Line, Peers, Budget / 2) || _ <- lists:seq(1, turns(Budget))],
    {Ours, Answers} = best_of(Turns),
    Times = [{Time, Peer} || {Peer, {ok, Time, _, _}} <- Answers],
    Wrong = [{Peer, Text} || {Peer, {ok, _, Error, Text}} <- Answers, Error > 1] ++ eager(Function, Inputs, Result, Budget),
    {Best, BestPeer} = case Times of [] -> {none, "-"}; _ -> lists:min(Times) end,
    Bytes = lists:sum([tessera:byte_size(T) || T <- [Result | Inputs]]),
    Row = #{index => Index, name => Name, family => Family, ours => Ours, best => Best, best_peer => BestPeer,
            xla => case Answers of [{_, {ok, Xla, _, _}} | _] -> Xla; _ -> none end, roof => roof(Bytes, Flops, Budget), wrong => Wrong},
    print_row(Row, Answers, Budget),
    Row.

%% Where only results count, the program op by op as well, which must give the same bits.
eager(Function, Inputs, Result, Budget) when Budget == 0 ->
    case tessera:to_binary(apply(Function, Inputs)) =:= tessera:to_binary(Result) of
        true -> [];
        false -> [{"itself", "eager results have other bits"}]
    end;
eager(_, _, _, _) -> [].

turns(Budget) when Budget > 0 -> 2;
turns(_) -> 1.

%% Each party in turn; the least of the turns counts.
turn(Call, Line, Peers, Budget) ->
    settle(Budget),
    Ours = least(Call, Budget),
    {Ours, [begin settle(Budget), {Peer, ask(Port, Line)} end || {Peer, Port} <- Peers]}.

best_of([Turn]) -> Turn;
best_of([{A, Left}, {B, Right}]) ->
    {min(A, B), [{Peer, better(X, Y)} || {{Peer, X}, {Peer, Y}} <- lists:zip(Left, Right)]}.

better({ok, A, Error, Text}, {ok, B, _, _}) -> {ok, min(A, B), Error, Text};
better(Failed, _) -> Failed.

%% The least time of a call in ms.
least(_, Budget) when Budget == 0 -> 0.0;
least(Call, Budget) ->
    _ = Call(),
    least(Call, erlang:monotonic_time(nanosecond) + round(Budget * 1.0e9), 2, infinity).

least(Call, End, Times, Least) ->
    case Times =< 0 andalso erlang:monotonic_time(nanosecond) >= End of
        true -> Least / 1000;
        false -> least(Call, End, Times - 1, min(Least, tessera_timing:microseconds(Call)))
    end.

%% What the machine reaches at this moment, in ms: to read and write as many bytes, or to do as many operations in a product of f32.
roof(_, _, Budget) when Budget == 0 -> 0.0;
roof(Bytes, Flops, _) ->
    N = max(1, min(Bytes div 8, 1 bsl 24)),
    X = tessera:iota({N}, f32),
    Copy = tessera:jit(fun(Y) -> tessera:add(Y, 1.0) end),
    Moved = least(fun() -> Copy(X) end, 0.005) * Bytes / (8 * N),
    A = tessera:broadcast(tessera:tensor(0.5, f32), {256, 256}),
    Product = tessera:jit(fun tessera:dot/2),
    max(Moved, least(fun() -> Product(A, A) end, 0.003) * Flops / (2.0 * 256 * 256 * 256)).

%% ---- the peers ----

start_peer(Python, Peer) ->
    Program = case os:find_executable(Python) of false -> error({not_found, Python}); Path -> Path end,
    Port = open_port({spawn_executable, Program}, [{args, ["bench/random_peers.py", Peer]}, {line, 65536}, exit_status, binary]),
    <<"ready">> = answer(Port),
    Port.

answer(Port) ->
    receive
        {Port, {data, {eol, Line}}} -> Line;
        {Port, {exit_status, Status}} -> error({peer_ended, Status})
    end.

ask(Port, Line) ->
    true = port_command(Port, Line),
    case binary:split(answer(Port), <<" ">>, [global]) of
        [<<"ok">>, Low, _Median, Error | Text] ->
            {ok, float_of(Low), error_of(Error), binary_to_list(iolist_to_binary(lists:join(" ", Text)))};
        [<<"failed">> | Text] -> {failed, binary_to_list(iolist_to_binary(lists:join(" ", Text)))}
    end.

float_of(Text) -> element(1, string:to_float(binary_to_list(Text))).

error_of(<<"inf">>) -> 1.0e300;
error_of(<<"nan">>) -> 1.0e300;
error_of(Text) ->
    case string:to_float(binary_to_list(Text)) of
        {error, no_float} ->
            case re:run(Text, "^([0-9]+)e(.*)$", [{capture, all_but_first, list}]) of
                {match, [Digits, Exponent]} -> list_to_float(Digits ++ ".0e" ++ Exponent);
                nomatch -> float(binary_to_integer(Text))
            end;
        {Number, _} -> Number
    end.

%% The line that a peer reads; the files that it names.
describe(#{function := Function, text := Text, rule := {Rule, Units}} = Work, Inputs, Result, Dir, Budget) ->
    Module = filename:join(Dir, "module.mlir"),
    ByText = maps:is_key(xla, Work) orelse not write_module(Module, Function, Inputs),
    Files = [stored(X, filename:join(Dir, "input" ++ integer_to_list(I))) || {I, X} <- lists:enumerate(Inputs)],
    Pairs = [{<<"inputs">>, Files}, {<<"result">>, stored(Result, filename:join(Dir, "result"))}, {<<"module">>, list_to_binary(Module)},
             {<<"by_text">>, ByText}, {<<"text">>, list_to_binary(Text)}, {<<"rule">>, atom_to_binary(Rule)}, {<<"units">>, float(Units)},
             {<<"budget">>, float(Budget)}],
    [tessera_json:encode({object, Pairs}), $\n].

write_module(Module, Function, Inputs) ->
    try tessera:to_text(Function, Inputs, stablehlo) of
        Text -> ok =:= file:write_file(Module, Text)
    catch
        error:{_, _} -> false
    end.

stored(X, File) ->
    ok = file:write_file(File, tessera:to_binary(X)),
    {object, [{<<"file">>, list_to_binary(File)}, {<<"type">>, atom_to_binary(tessera:type(X))}, {<<"shape">>, tuple_to_list(tessera:shape(X))}]}.

%% For 0.2 s at most.
settle(Budget) when Budget == 0 -> ok;
settle(_) -> tessera_timing:settle(6, 30).

%% ---- results ----

-spec ratio(row()) -> float() | none.
ratio(#{best := none}) -> none;
ratio(#{best := Best, ours := Ours}) when Ours > 0 -> Best / Ours;
ratio(_) -> none.

print_row(#{index := Index, name := Name, family := Family, ours := Ours, wrong := Wrong} = Row, Answers, Budget) ->
    Budget == 0 orelse
        io:format("~4b ~-15s ~10.4f ms, over the best ~5s  [~s] ~s~n",
                  [Index, Family, Ours, cell(ratio(Row)), lists:join(" ", [shown(Peer, A) || {Peer, A} <- Answers]), Name]),
    [io:format("~4b ~s DISAGREES with ~s: ~s~n", [Index, Name, Peer, Text]) || {Peer, Text} <- Wrong],
    [io:format("~4b ~s: XLA ~s~n", [Index, Name, Text]) || {"jax", {failed, Text}} <- Answers].

shown(Peer, {ok, Time, _, _}) -> io_lib:format("~s ~.4f", [Peer, Time]);
shown(Peer, {failed, Text}) -> io_lib:format("~s - ~s", [Peer, lists:sublist(Text, 30)]).

cell(none) -> "-";
cell(Number) -> io_lib:format("~.2f", [Number]).

summary(Rows, #{seed := Seed}) ->
    Wrong = [Row || #{wrong := [_ | _]} = Row <- Rows],
    io:format("~nseed ~b: ~b workloads, ~b disagree~n", [Seed, length(Rows), length(Wrong)]),
    [io:format("  ~b ~s~n~s", [Index, Name, [io_lib:format("      ~s: ~s~n", [Peer, Text]) || {Peer, Text} <- Texts]])
     || #{index := Index, name := Name, wrong := Texts} <- Wrong],
    Ratios = lists:sort([R || Row <- Rows, R <- [ratio(Row)], R =/= none]),
    Ratios =/= [] andalso speeds(Rows, Ratios).

speeds(Rows, Ratios) ->
    Share = fun(Bound) -> round(100 * length([R || R <- Ratios, R < Bound]) / length(Ratios)) end,
    io:format("times faster than the best peer, of minima: geometric mean ~.2f, 10th percentile ~.2f; below 0.95: ~b %, below 0.5: ~b %~n",
              [tessera_timing:geometric_mean(Ratios), lists:nth(length(Ratios) div 10 + 1, Ratios), Share(0.95), Share(0.5)]),
    Xla = [X / O || #{xla := X, ours := O} <- Rows, X =/= none, O > 0],
    Xla =/= [] andalso io:format("over XLA: geometric mean ~.2f~n", [tessera_timing:geometric_mean(Xla)]),
    Families = lists:usort([F || #{family := F} <- Rows]),
    [io:format("  ~-16s ~3b, geometric mean ~.2f, least ~.2f~n", [Family, length(Known), tessera_timing:geometric_mean(Known), lists:min(Known)])
     || Family <- Families, Known <- [[R || #{family := F} = Row <- Rows, F =:= Family, R <- [ratio(Row)], R =/= none]], Known =/= []],
    io:format("the worst:~n"),
    Worst = lists:sublist(lists:sort([{ratio(Row), Row} || Row <- Rows, ratio(Row) =/= none]), 20),
    [io:format("  ~5.2f  ~10.4f ms, roofline ~10.4f, ~s ~10.4f  ~b ~s~n", [R, Ours, Roof, Peer, Best, Index, Name])
     || {R, #{ours := Ours, roof := Roof, best_peer := Peer, best := Best, index := Index, name := Name}} <- Worst].
