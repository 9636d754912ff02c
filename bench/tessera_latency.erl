%% What users wait for besides throughput: start, first calls, new shapes, small
%% calls, many callers. Measurements that depend on earlier ones run in a VM of their own, with an empty disk cache or
%% with a cache that the same VM has filled.
%%
%%   make bench ONLY=latency
-module(tessera_latency).
-export([run/0, child/1]).
-import(tessera_timing, [per_call/1, times/2, microseconds/1, now_ns/0, median/1, vm/2]).

-define(REPEATS, 5).

-spec run() -> [{string(), float()}].
run() ->
    io:format("~nlatency~n"),
    lists:append([start(), [F || N <- [10, 100, 1000], F <- layers(N)], fusions(), new_batch(), small_calls(), callers()]).

show(Name, Value, Unit) ->
    io:format("~-52s ~10.3f ~s~n", [Name, float(Value), Unit]),
    {Name, float(Value)}.

%% ---- in VMs of their own ----

start() ->
    Bare = median([vm("-s erlang halt", "", fun elapsed/2) || _ <- lists:seq(1, ?REPEATS)]),
    [show("erl to first jitted result beyond erl, " ++ What ++ " disk cache, s", (Time - Bare) / 1000, "s")
     || {What, Time} <- both_caches(" tessera_latency child first", fun elapsed/2)].

layers(N) ->
    Command = " tessera_latency child layers " ++ integer_to_list(N),
    [show(io_lib:format("first call of ~b layers, ~s disk cache", [N, What]), Time, "ms")
     || {What, Time} <- both_caches(Command, fun printed/2)].

fusions() ->
    [show("200 random fusions, " ++ What ++ " disk cache", Time, "ms")
     || {What, Time} <- both_caches(" tessera_latency child fusions", fun printed/2)].

%% Medians with a cache emptied before each VM, then with one left by the VM before.
both_caches(Command, Read) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), "tessera-latency-" ++ os:getpid()),
    Once = fun(Empty) ->
                   Empty andalso file:del_dir_r(Dir),
                   _ = file:make_dir(Dir),
                   ok = file:change_mode(Dir, 8#700),
                   vm("-pa ebin build/bench -s" ++ Command, Dir, Read)
           end,
    Cold = [Once(true) || _ <- lists:seq(1, ?REPEATS)],
    Warm = [Once(false) || _ <- lists:seq(1, ?REPEATS)],
    _ = file:del_dir_r(Dir),
    [{"empty", median(Cold)}, {"warm", median(Warm)}].

vm(Arguments, CacheDir, Read) ->
    Start = now_ns(),
    Lines = vm(Arguments, [{"TESSERA_CACHE_DIR", CacheDir} || CacheDir =/= ""]),
    Read(Lines, (now_ns() - Start) / 1.0e6).

elapsed(_Lines, Time) -> Time.
printed([Line | _], _Time) -> list_to_float(Line).

%% What such a VM does, by the words after `-s tessera_latency child'.
child(What) ->
    {ok, _} = application:ensure_all_started(tessera),
    do(What),
    halt().

do([first]) ->
    F = tessera:jit(fun(X) -> tessera:add(tessera:tanh(X), 1.0) end),
    _ = tessera:to_list(F(floats({8})));
do([layers, Count]) ->
    N = list_to_integer(atom_to_list(Count)),
    F = tessera:jit(fun(X, W) -> lists:foldl(fun(I, A) -> layer(A, W, I) end, X, lists:seq(0, N - 1)) end),
    first_call(F, [floats({32, 32}), floats({32, 32})]);
do([fusions]) ->
    %% Of different shapes, so that no two become one.
    Inputs = [floats({I + 16}) || I <- lists:seq(1, 200)],
    F = tessera:jit(fun(Xs) -> [random_fusion(X, I) || {I, X} <- lists:zip(lists:seq(1, 200), Xs)] end),
    first_call(F, [Inputs]),
    #{jit := #{compiled := Compiled, loaded := Loaded}} = tessera:memory(),
    true = Compiled + Loaded >= 190. % the same one may come twice

layer(X, W, I) -> tessera:multiply(tessera:tanh(tessera:add(tessera:dot(X, W), float(I))), 0.5).

first_call(F, Arguments) ->
    Start = now_ns(),
    _ = apply(F, Arguments),
    io:format("~w~n", [(now_ns() - Start) / 1.0e6]).

%% Memory that no kernel has filled: the first call is the first that compiles.
floats(Shape) ->
    N = lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Shape)),
    tessera:from_binary(binary:copy(<<1.0:32/float-native>>, N), f32, Shape).

%% Four to ten random ops.
random_fusion(X, Seed) ->
    {Length, State} = rand:uniform_s(7, rand:seed_s(exsss, Seed)),
    {_, Result} = lists:foldl(fun(_, {S, V}) -> random_op(S, V, X) end, {State, X}, lists:seq(1, Length + 3)),
    Result.

random_op(State, V, X) ->
    Ops = {fun tessera:add/2, fun tessera:multiply/2, fun tessera:subtract/2, fun tessera:max/2, fun tessera:min/2,
           fun(A, _) -> tessera:tanh(A) end, fun(A, _) -> tessera:exp(A) end, fun(A, _) -> tessera:sqrt(A) end,
           fun(A, _) -> tessera:abs(A) end, fun(A, _) -> tessera:negate(A) end,
           fun(A, B) -> tessera:divide(A, tessera:add(tessera:abs(B), 1.0)) end},
    {Which, Next} = rand:uniform_s(tuple_size(Ops), State),
    {Next, (element(Which, Ops))(V, X)}.

%% ---- in this VM ----

new_batch() ->
    F = tessera:jit(fun(X, W) -> tessera:softmax(tessera:tanh(tessera:dot(X, W))) end),
    W = floats({64, 64}),
    _ = F(floats({1000, 64}), W),
    Times = [{microseconds(fun() -> F(X, W) end), microseconds(fun() -> F(X, W) end)}
             || B <- lists:seq(1, 40), X <- [floats({B, 64})]],
    {New, Again} = lists:unzip(Times),
    [show("new batch size, more than a warm call", (median(New) - median(Again)) / 1000, "ms"),
     show("new batch size, the slowest of 40", (lists:max(New) - median(Again)) / 1000, "ms")].

small_calls() ->
    A = floats({1000}),
    Scalar = tessera:jit(fun(X) -> tessera:add(X, 1.0) end),
    One = floats({}),
    Shapes = [floats({S}) || S <- lists:seq(1001, 1040)],
    [show("eager add of 1000 f32", per_call(fun() -> tessera:add(A, A) end), "us"),
     show("scalar jit call", per_call(fun() -> Scalar(One) end), "us"),
     show("eager add on a new shape", median([microseconds(fun() -> tessera:add(X, 1.0) end) || X <- Shapes]), "us")].

callers() ->
    F = tessera:jit(fun(X, W) -> tessera:softmax(tessera:tanh(tessera:dot(X, W))) end),
    {X, W} = {floats({64, 64}), floats({64, 64})},
    _ = F(X, W),
    [show(io_lib:format("~b callers of a small program", [K]), calls_per_second(fun() -> F(X, W) end, K), "calls/s")
     || K <- [1, 2, 4, 8]].

calls_per_second(Call, Processes) ->
    N = 20000 div Processes,
    best([begin
              Start = now_ns(),
              Monitors = [element(2, spawn_monitor(fun() -> times(N, Call) end)) || _ <- lists:seq(1, Processes)],
              [receive {'DOWN', M, process, _, normal} -> ok end || M <- Monitors],
              N * Processes * 1.0e9 / (now_ns() - Start)
          end || _ <- [1, 2, 3]]).

best(Values) -> lists:max(Values).
