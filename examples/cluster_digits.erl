%% The example digits on a cluster: the same network and the same training, by four ranks that mpirun starts. Each rank has the parameters and a
%% quarter of every batch. This node deals out the batches and follows the training. The sums over a batch are sums of its four parts. So the last
%% digits of the parameters differ from one device's, and are the same on any cluster of four partitions.
%%
%%   ./setup --mpi && make run-mpi
%%   make run-mpi HOSTS=a:2,b:2 LISTEN=10.0.0.1     on other hosts; LISTEN is this one's address
%%   sbatch examples/cluster.slurm cluster_digits build/examples     in a job of Slurm, when `make run-mpi` has compiled it
-module(cluster_digits).
-export([main/0, main/1, start/1]).

main() -> main(#{}).

%% With options of tessera_cluster:start_link/1.
main(Options) ->
    {ok, _} = application:ensure_all_started(tessera),
    _ = rand:seed(exsss, {1, 2, 3}),
    {Train, Test} = digits:load(),
    Start = [digits:layer(64, 128), digits:layer(128, 128), digits:layer(128, 10)],
    Zeros = [{digits:zeros_like(W), digits:zeros_like(B)} || {W, B} <- Start],
    Cluster = start(maps:merge(#{ranks => 4}, Options)),
    describe(Cluster),
    Ranks = length(maps:get(ranks, tessera_cluster:info(Cluster))),
    Mesh = #{shape => {Ranks}, axes => [<<"batch">>]},
    Cut = #{0 => [<<"batch">>]},   % of a batch; what is trained is whole on each rank
    Step = tessera:shard_jit(fun digits:step/5, Mesh, #{client => Cluster, input_shardings => [#{}, Cut, Cut, #{}, #{}], output_shardings => #{}}),
    Arguments = fun(States, {X, Y}, Rate) ->
                        [[State, XPart, YPart, Rate, 0.9] || {State, XPart, YPart} <- lists:zip3(States, tessera_mesh:shard(X, Mesh, Cut, Cluster),
                                                                                                 tessera_mesh:shard(Y, Mesh, Cut, Cluster))]
                end,
    Predict = tessera:jit(fun(P, X) -> tessera:argmax(digits:logits(P, X), #{axis => 1}) end),
    Measure = fun([{Params, _, _, _} | _]) -> digits:accuracy(Predict, Params, digits:batch(Test)) end,
    State = {Start, Zeros, Zeros, tessera:tensor(0.0, f32)},
    Trained = train(1, fun(States, Batch, Rate) -> Step(Arguments(States, Batch, Rate)) end, lists:duplicate(Ranks, State), Train, Measure,
                    tessera_progress:new(digits:epochs(), #{label => "epoch"})),
    Accuracy = Measure(Trained),
    [io:format("rank ~b got ~.1f MB and sent ~.1f MB~n", [Rank, Got / 1.0e6, Sent / 1.0e6])
     || #{rank := Rank, sent_bytes := Got, received_bytes := Sent} <- maps:get(ranks, tessera_cluster:info(Cluster))],
    ok = tessera_cluster:stop(Cluster),
    io:format("test accuracy ~.2f %~n", [100 * Accuracy]),
    Accuracy >= 0.97 orelse error({accuracy_too_low, Accuracy}),
    ok.

%% A cluster with these options, and with options from the environment: RANKS, THREADS, HOSTS (a list such as a:2,b:2)
%% and LISTEN.
start(Options) ->
    case tessera_cluster:start_link(maps:merge(Options, given())) of
        {ok, Cluster} -> Cluster;
        {error, {_, Why}} ->
            io:format("~ts~n", [Why]),
            halt(1)
    end.

given() ->
    Read = #{"RANKS" => {ranks, fun list_to_integer/1}, "THREADS" => {threads, fun list_to_integer/1}, "HOSTS" => {hosts, fun hosts/1},
             "LISTEN" => {listen, fun(Text) -> {ok, Address} = inet:parse_address(Text), Address end}},
    maps:from_list([{Option, Parse(Text)} || {Name, {Option, Parse}} <- maps:to_list(Read), Text <- [os:getenv(Name, "")], Text =/= ""]).

hosts(Text) -> [host(string:split(Host, ":")) || Host <- string:lexemes(Text, ",")].

host([Name, Slots]) -> {Name, list_to_integer(Slots)};
host([Name]) -> Name.

describe(Cluster) ->
    [io:format("rank ~b: process ~ts on ~ts, ~b of ~b CPUs, ~ts~n", [Rank, Pid, Host, Threads, Cpus, Mpi])
     || #{rank := Rank, os_pid := Pid, host := Host, threads := Threads, cpus := Cpus, mpi := Mpi}
            <- maps:get(ranks, tessera_cluster:info(Cluster))].

%% ---- training: each rank's data are in a list. The next step is on its way while one runs; losses are read at the end of an
%% epoch

train(Epoch, Step, States, Train, Measure, Progress) ->
    case digits:epochs() of
        Epochs when Epoch > Epochs ->
            ok = tessera_progress:done(Progress),
            States;
        Epochs ->
            Begun = erlang:monotonic_time(microsecond),
            {Next, Losses} = lists:foldl(
                fun(Batch, {Now, Ls}) ->
                        {Then, [Loss | _]} = lists:unzip(Step(Now, Batch, digits:rate(Epoch, Epochs))),
                        {Then, [Loss | Ls]}
                end, {States, []}, digits:batches([digits:jitter(D) || D <- digits:shuffle(Train)])),
            Loss = lists:sum([tessera:to_number(L) || L <- Losses]) / length(Losses),
            Each = (erlang:monotonic_time(microsecond) - Begun) / 1000 / length(Losses),
            Note = io_lib:format("loss ~.4f  test accuracy ~.2f %  ~.1f ms a step", [Loss, 100 * Measure(Next), Each]),
            train(Epoch + 1, Step, Next, Train, Measure, tessera_progress:step(Progress, Note))
    end.
