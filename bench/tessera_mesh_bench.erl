%% The cost of a mesh of devices of one VM, and of a cluster of ranks on this host, compared with the same program on one
%% device. Pairs are timed in turn, so that both see the same machine; medians are printed.
%%
%%   make bench ONLY=mesh        the mesh
%%   make bench ONLY=cluster     the cluster, where MPI is built
-module(tessera_mesh_bench).
-export([mesh/0, cluster/0, child/1]).
-import(tessera_timing, [per_call/1, microseconds/1, now_ns/0, median/1, vm/2]).

-define(MESH, #{name => <<"m">>, shape => {4}, axes => [<<"batch">>]}).
-define(CUT, #{0 => [<<"batch">>]}).

-type figures() :: [{string(), float()}].

-spec mesh() -> figures().
mesh() ->
    io:format("~nmesh of 4 devices~n"),
    ok = tessera:open_client(bench_mesh, #{device_count => 4}),
    lists:append([nothing_to_do(), all_reduce(), compute_bound(), first_calls()]).

options() -> #{client => bench_mesh}.
options(Options) -> maps:merge(options(), Options).

show(Name, Value, Unit) ->
    io:format("~-58s ~12.3f ~s~n", [Name, float(Value), Unit]),
    {Name, float(Value)}.

nothing_to_do() ->
    F = tessera:shard_jit(fun(X) -> X end, ?MESH, options(#{input_shardings => [?CUT]})),
    Parts = tessera_mesh:shard(floats({8}), ?MESH, ?CUT, bench_mesh),
    Args = [[Part] || Part <- Parts],
    _ = F(Args),
    [show("sharded call with nothing to do", per_call(fun() -> F(Args) end), "us")].

%% 64 MB on each device. The comparison reads four inputs and writes one output, like the result: the same buffer for each
%% device.
all_reduce() ->
    Sum = tessera:shard_map(fun(X) -> tessera_mesh:all_reduce(X, sum, <<"batch">>) end, ?MESH, [?CUT], #{}, options()),
    Whole = floats({4 * 16 bsl 20}),
    Parts = tessera_mesh:shard(Whole, ?MESH, ?CUT, bench_mesh),
    Args = [[Part] || Part <- Parts],
    Add = tessera:jit(fun(A, B, C, D) -> tessera:add(tessera:add(A, B), tessera:add(C, D)) end),
    Hosts = [tessera:slice(Whole, [I * (16 bsl 20)], [16 bsl 20]) || I <- lists:seq(0, 3)],
    {Reduced, Added} = in_turn(31, fun() -> Sum(Args) end, fun() -> apply(Add, Hosts) end),
    [show("all_reduce of 64 MB", Reduced, "ms"), show("the sum of four such tensors on one device", Added, "ms"),
     show("ratio", Reduced / Added, "")].

%% A training step of a 784-512-512-10 MLP with a batch of 4096, cut by the batch.
compute_bound() ->
    Params = [floats(S) || S <- parameter_shapes()],
    {X, Y} = {floats({4096, 784}), floats({4096, 10})},
    One = tessera:jit(fun step/8),
    Shardings = [#{} || _ <- Params] ++ [?CUT, ?CUT],
    Cut = tessera:shard_jit(fun step/8, ?MESH, options(#{input_shardings => Shardings})),
    Parts = fun(T, Sharding) -> tessera_mesh:shard(T, ?MESH, Sharding, bench_mesh) end,
    Args = transpose([Parts(P, #{}) || P <- Params] ++ [Parts(X, ?CUT), Parts(Y, ?CUT)]),
    {Sharded, Unsharded} = in_turn(9, fun() -> Cut(Args) end, fun() -> apply(One, Params ++ [X, Y]) end),
    Products = tessera:jit(fun products/2),
    W = floats({1024, 1024}),
    Rows = floats({2048, 1024}),
    CutProducts = tessera:shard_jit(fun products/2, ?MESH, options(#{input_shardings => [?CUT, #{}]})),
    ProductArgs = transpose([Parts(Rows, ?CUT), Parts(W, #{})]),
    {ShardedProducts, WholeProducts} = in_turn(9, fun() -> CutProducts(ProductArgs) end, fun() -> Products(Rows, W) end),
    [show("training step of an MLP, sharded", Sharded, "ms"), show("training step of an MLP, one device", Unsharded, "ms"),
     show("ratio", Sharded / Unsharded, ""),
     show("four products with tanh, sharded", ShardedProducts, "ms"), show("four products with tanh, one device", WholeProducts, "ms"),
     show("ratio", ShardedProducts / WholeProducts, "")].

products(X, W) -> lists:foldl(fun(_, A) -> tessera:tanh(tessera:dot(A, W)) end, X, [1, 2, 3, 4]).

step(W1, B1, W2, B2, W3, B3, X, Y) ->
    Loss = fun({A1, C1, A2, C2, A3, C3}) ->
                   H1 = tessera:relu(tessera:add(tessera:dot(X, A1), C1)),
                   H2 = tessera:relu(tessera:add(tessera:dot(H1, A2), C2)),
                   Logits = tessera:add(tessera:dot(H2, A3), C3),
                   tessera:negate(tessera:mean(tessera:sum(tessera:multiply(Y, tessera:log_softmax(Logits, #{axes => [1]})),
                                                           #{axes => [1]})))
           end,
    Params = {W1, B1, W2, B2, W3, B3},
    {Value, Gradients} = (tessera:value_and_grad(Loss))(Params),
    {Value, [tessera:subtract(P, tessera:multiply(0.1, G))
             || {P, G} <- lists:zip(tuple_to_list(Params), tuple_to_list(Gradients))]}.

%% Of programs that no cache knows: each has constants of its own.
first_calls() ->
    X = floats({512, 256}),
    W = floats({256, 256}),
    Parts = transpose([tessera_mesh:shard(X, ?MESH, ?CUT, bench_mesh), tessera_mesh:shard(W, ?MESH, #{}, bench_mesh)]),
    Layers = fun(Seed) -> fun(A, B) -> lists:foldl(fun(I, V) -> layer(V, B, Seed + I / 64) end, A, lists:seq(0, 19)) end end,
    Sharded = fun(Seed) -> tessera:shard_jit(Layers(Seed), ?MESH, options(#{input_shardings => [?CUT, #{}]})) end,
    Times = [{microseconds(fun() -> (Sharded(2.0 * Seed))(Parts) end),
              microseconds(fun() -> (tessera:jit(Layers(2.0 * Seed + 1)))(X, W) end)} || Seed <- lists:seq(1, 41)],
    {Cut, One} = lists:unzip(Times),
    [show("first sharded call of 20 layers", median(Cut) / 1000, "ms"), show("first call of 20 layers", median(One) / 1000, "ms"),
     show("ratio", median(Cut) / median(One), "")].

layer(X, W, C) -> tessera:multiply(tessera:tanh(tessera:add(tessera:dot(X, W), C)), 0.5).

%% ---- a cluster ----

-spec cluster() -> figures().
cluster() ->
    io:format("~ncluster of ranks on this host~n"),
    lists:append([start_time(), calls(), training(), short_steps(2), short_steps(4), reductions()]).

start_time() ->
    Times = [begin
                 Start = now_ns(),
                 {ok, Cluster} = tessera_cluster:start_link(#{ranks => 4}),
                 Time = (now_ns() - Start) / 1.0e9,
                 ok = tessera_cluster:stop(Cluster),
                 Time
             end || _ <- lists:seq(1, 5)],
    [show("start of 4 ranks, best of 5", lists:min(Times), "s"), show("start of 4 ranks, median", median(Times), "s")].

calls() ->
    Times = with_ranks(4, fun(Cluster) -> [microseconds(fun() -> tessera_cluster:noop(Cluster) end) || _ <- lists:seq(1, 500)] end),
    [show("call of 4 ranks with nothing to do, median", median(Times), "us")].

%% A training step of the MLP with a batch of 4096 that is cut over ranks of one thread, with all data on the ranks; and in one
%% process.
training() ->
    Given = {[floats(S) || S <- parameter_shapes()], [floats({4096, 784}), floats({4096, 10})]},
    [One, Two] = [trained_on(Ranks, Given) || Ranks <- [1, 2]],
    Alone = trained_here(Given),
    Bytes = 4 * (1 + lists:sum([elements(S) || S <- parameter_shapes()])),
    Exchange = with_ranks(2, fun(_) -> reduction_time(2, Bytes) end),
    [show("training step, 1 rank of 1 thread", One, "ms"), show("training step, 2 ranks of 1 thread", Two, "ms"),
     show("ratio", One / Two, ""), show("training step, one process of 2 threads", Alone, "ms"),
     show(["all_reduce of its ", integer_to_list(Bytes), " bytes, 2 ranks"], Exchange / 1000, "ms"),
     show("its share of the step of 2 ranks", Exchange / 1000 / Two, "")].

mesh_of(Ranks) -> #{name => <<"m">>, shape => {Ranks}, axes => [<<"batch">>]}.

parameter_shapes() -> [{784, 512}, {512}, {512, 512}, {512}, {512, 10}, {10}].

%% Steps one after the other, each with the parameters of the last; the loss of the last is read.
trained_on(Ranks, {Params, Data}) ->
    Mesh = mesh_of(Ranks),
    with_ranks(Ranks, fun(Cluster) ->
        Rows = [[tessera:slice(T, [Rank * (4096 div Ranks), 0], [4096 div Ranks, element(2, tessera:shape(T))]) || T <- Data]
                || Rank <- lists:seq(0, Ranks - 1)],
        Batches = tessera_cluster:put(Cluster, Rows),
        Step = tessera:shard_jit(fun step/8, Mesh, #{client => bench_ranks, input_shardings => [#{} || _ <- Params] ++ [?CUT, ?CUT]}),
        steps(fun(States) ->
                      Results = Step([State ++ Batch || {State, Batch} <- lists:zip(States, Batches)]),
                      {[New || {_, New} <- Results], element(1, hd(Results))}
              end, tessera_cluster:put(Cluster, lists:duplicate(Ranks, Params)))
    end).

trained_here({Params, Data}) ->
    Step = tessera:jit(fun step/8),
    steps(fun(State) ->
                  {Loss, New} = apply(Step, State ++ Data),
                  {New, Loss}
          end, Params).

%% Milliseconds for a step: the median of rounds of ten.
steps(Step, Start) ->
    Round = fun() ->
                    {_, Loss} = lists:foldl(fun(_, {State, _}) -> Step(State) end, {Start, none}, lists:seq(1, 10)),
                    tessera:to_number(Loss)
            end,
    _ = Round(),
    median([microseconds(Round) || _ <- lists:seq(1, 7)]) / 10000.

%% Steps of some 5 ms on two CPUs, each after the previous one: the cost of a step, compared with a program of ten such
%% steps.
short_steps(Ranks) ->
    %% In a VM that does not busy-wait, since its ranks share the CPUs with it.
    Arguments = ["+sbwt none +sbwtdcpu none +sbwtdio none -pa ebin build/bench -s tessera_mesh_bench child ", integer_to_list(Ranks)],
    [Line | _] = vm(lists:flatten(Arguments), []),
    [Steps, Least] = [list_to_float(Number) || Number <- string:lexemes(Line, " ")],
    [show(["a step of ", integer_to_list(Ranks), " ranks"], Steps, "ms"), show("the same in programs of ten steps", Least, "ms"),
     show("lost", 100 * (1 - Least / Steps), "%")].

-spec child([atom()]) -> no_return().
child([Ranks]) ->
    {ok, _} = application:ensure_all_started(tessera),
    {Steps, Least} = timed_steps(list_to_integer(atom_to_list(Ranks))),
    io:format("~w ~w~n", [Steps / 100, Least / 100]),
    halt().

timed_steps(Ranks) ->
    Mesh = mesh_of(Ranks),
    Options = #{client => bench_ranks, input_shardings => [?CUT]},
    with_ranks(Ranks, fun(Cluster) ->
        Few = tessera:shard_jit(fun(X) -> turns(1, 2000 div Ranks, X) end, Mesh, Options),
        Many = tessera:shard_jit(fun(X) -> turns(10, 2000 div Ranks, X) end, Mesh, Options),
        Start = [[T] || T <- tessera_cluster:put(Cluster, lists:duplicate(Ranks, floats({1 bsl 14})))],
        Single = fun() -> read(lists:foldl(fun(_, Args) -> [[T] || T <- Few(Args)] end, Start, lists:seq(1, 100))) end,
        Joined = fun() -> read(lists:foldl(fun(_, Args) -> [[T] || T <- Many(Args)] end, Start, lists:seq(1, 10))) end,
        in_turn(5, Single, Joined)
    end).

read([[T] | _]) -> tessera:to_number(tessera:reduce_max(T)).

%% Each turn is a loop of a fixed number of rounds.
turns(Count, Rounds, X) -> lists:foldl(fun(_, Y) -> turn(Rounds, Y) end, X, lists:seq(1, Count)).

turn(Rounds, X) ->
    {_, Y} = tessera:while({tessera:tensor(0, s32), X}, fun({I, _}) -> tessera:less(I, Rounds) end,
                           fun({I, V}) -> {tessera:add(I, 1), tessera:tanh(tessera:multiply(V, 1.01))} end),
    Y.

with_ranks(Ranks, F) ->
    {ok, Cluster} = tessera_cluster:start_link(#{ranks => Ranks, threads => 1, devices => 1, name => bench_ranks}),
    try F(Cluster)
    after tessera_cluster:stop(Cluster)
    end.

%% Beside MPI_Allreduce of as many processes, started alike (peer_mpi.c).
reductions() -> [Figure || Ranks <- [2, 4], Bytes <- [4, 1 bsl 20, 4 bsl 20, 64 bsl 20], Figure <- reduction(Ranks, Bytes)].

reduction(Ranks, Bytes) ->
    Ours = with_ranks(Ranks, fun(_) -> reduction_time(Ranks, Bytes) end),
    Theirs = mpi(Ranks, Bytes),
    Name = io_lib:format("all_reduce of ~b bytes, ~b ranks", [Bytes, Ranks]),
    [show(Name, Ours, "us"), show(["MPI_Allreduce, ", Name], Theirs, "us"), show("ratio", Ours / Theirs, "")].

%% Microseconds: what reductions one after the other cost beside one program of a single one.
reduction_time(Ranks, Bytes) ->
    Mesh = mesh_of(Ranks),
    {Few, Many} = {1, if Bytes =< 4096 -> 1001; Bytes =< 4 bsl 20 -> 101; true -> 11 end},
    Run = fun(Count) ->
                  F = tessera:shard_map(fun(X) -> chain(Count, X, Bytes div 4) end, Mesh, [#{}], #{}, #{client => bench_ranks}),
                  Args = lists:duplicate(Ranks, [floats({})]),
                  _ = [tessera:to_number(Y) || Y <- F(Args)],
                  fun() -> [tessera:to_number(Y) || Y <- F(Args)] end   % a run ends early when its results are dropped
          end,
    {More, Less} = in_turn(7, Run(Many), Run(Few)),
    (More - Less) * 1000 / (Many - Few).

%% The tensor is made on the ranks from a scalar, so that no argument of its size travels. Each reduction needs the previous
%% result; the barrier keeps the sums of equal tensors from being rewritten.
chain(Count, X, Length) ->
    Start = tessera_mesh:vary(tessera:broadcast(X, {Length}), <<"batch">>),
    Next = fun(_, A) -> tessera_mesh:all_reduce(tessera_mesh:vary(A, <<"batch">>), max, <<"batch">>) end,
    tessera:reduce_max(lists:foldl(Next, Start, lists:seq(1, Count))).

mpi(Ranks, Bytes) ->
    Memory = case string:find(os:cmd("mpirun --version"), "(Open MPI) 4.") of nomatch -> "sm"; _ -> "vader" end,
    Command = io_lib:format("mpirun -np ~b --allow-run-as-root --bind-to none --oversubscribe --mca pml ob1 "
                            "--mca btl self,~s,tcp build/bench/peer_mpi ~b", [Ranks, Memory, Bytes]),
    [_, Time] = string:lexemes(os:cmd(lists:flatten(Command)), " \n"),
    list_to_float(Time).

%% ---- timing ----

%% Medians in ms of two functions that are called in turn.
in_turn(Rounds, A, B) ->
    _ = {A(), B()},
    {As, Bs} = lists:unzip([{microseconds(A), microseconds(B)} || _ <- lists:seq(1, Rounds)]),
    {median(As) / 1000, median(Bs) / 1000}.

transpose([[] | _]) -> [];
transpose(Lists) -> [[hd(L) || L <- Lists] | transpose([tl(L) || L <- Lists])].

floats(Shape) ->
    tessera:from_binary(binary:copy(<<0.25:32/float-native>>, elements(Shape)), f32, Shape).

elements(Shape) -> lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Shape)).
