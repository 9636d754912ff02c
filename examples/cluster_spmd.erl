%% Data-parallel training of the digits without a driver: each process runs this program, reads its own part of the data, and has its
%% partitions of the mesh of four. The parameters are the same on all of them, and have the same bits for 1, 2 or 4 processes.
%%
%%   ./setup --mpi && make && erlc -o build examples/mesh_digits.erl examples/cluster_spmd.erl
%%   mpirun -np 4 --bind-to none erl -noshell -pa ebin build -s cluster_spmd main -s init stop
%%   srun --mpi=pmix -n 4 erl -noshell -pa ebin build -s cluster_spmd main -s init stop     in a job of Slurm
%%   make example E=cluster_spmd                                                            one process, without MPI
-module(cluster_spmd).
-export([main/0]).

-define(EPOCHS, 15).
-define(PARTITIONS, 4).
-define(BATCH, 16).          % rows of a partition in a batch
-define(TRAIN, 352).         % rows of a partition
-define(TEST, 88).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    case tessera_cluster:join(#{devices => ?PARTITIONS}) of
        {ok, Cluster} -> run(Cluster, tessera_cluster:info(Cluster));
        {error, {_, Why}} ->
            io:format("~ts~n", [Why]),
            halt(1)
    end.

run(Cluster, #{rank := Rank, ranks := Ranks}) ->
    Own = own(Rank, length(Ranks)),
    #{host := Host, os_pid := Pid, threads := Threads} = lists:nth(Rank + 1, Ranks),
    io:format("rank ~b of ~b: process ~ts on ~ts, ~b threads, partitions ~0p~n", [Rank, length(Ranks), Pid, Host, Threads, Own]),
    _ = rand:seed(exsss, {1, 2, 3}), % the same parameters on all ranks
    [Start | _] = mesh_digits:parameters(),
    {Train, Test} = lists:unzip([lists:split(?TRAIN, shuffled({0, Partition, 1}, read(Partition))) || Partition <- Own]),
    Trained = train(1, Rank, mesh_digits:step(Cluster), [Start || _ <- Own], lists:zip(Own, Train)),
    Right = accuracy(Cluster, Trained, Test),
    Digest = erlang:phash2([tessera:to_binary(T) || {W, B} <- hd(Trained), T <- [W, B]]),
    Rank =:= 0 andalso io:format("test accuracy ~.2f %, parameters ~b~n", [100 * Right, Digest]),
    ok = tessera_cluster:leave(Cluster),
    Right >= 0.92 orelse error({accuracy_too_low, Right}),
    ok.

%% Rank R of N has the partitions [R P / N, (R + 1) P / N).
own(Rank, Ranks) -> [P || P <- lists:seq(0, ?PARTITIONS - 1), P * Ranks div ?PARTITIONS =:= Rank].

%% ---- training: argument lists and results are for the partitions of this rank

train(Epoch, _, _, Params, _) when Epoch > ?EPOCHS -> Params;
train(Epoch, Rank, Step, Params, Data) ->
    {Next, Losses} = lists:foldl(
        fun(Batches, {Now, Ls}) ->
                {Then, [Loss | _]} = lists:unzip(Step([[P, X, Y, 0.3] || {P, {X, Y}} <- lists:zip(Now, Batches)])),
                {Then, [Loss | Ls]}
        end, {Params, []}, epoch(Epoch, Data)),
    Loss = lists:sum([tessera:to_number(L) || L <- Losses]) / length(Losses),
    Rank =:= 0 andalso io:format("epoch ~2b/~b  loss ~.4f~n", [Epoch, ?EPOCHS, Loss]),
    train(Epoch + 1, Rank, Step, Next, Data).

%% The batches of an epoch: of each the parts of this rank. How a partition's rows are shuffled does not depend on the ranks.
epoch(Epoch, Data) -> transposed([batches(shuffled({Epoch, Partition, 1}, Rows)) || {Partition, Rows} <- Data]).

shuffled(Seed, Rows) ->
    _ = rand:seed(exsss, Seed),
    mesh_digits:shuffle(Rows).

batches([]) -> [];
batches(Rows) ->
    {Now, Later} = lists:split(?BATCH, Rows),
    [mesh_digits:batch(Now) | batches(Later)].

transposed([[] | _]) -> [];
transposed(Lists) -> [[hd(List) || List <- Lists] | transposed([tl(List) || List <- Lists])].

%% Each partition tests its own rows; the mean is over all of them.
accuracy(Cluster, Params, Test) ->
    Cut = #{0 => [<<"batch">>]},
    Mean = tessera:shard_jit(fun([{W1, B1}, {W2, B2}], X, Y) ->
                                     Hidden = tessera:relu(tessera:add(tessera:dot(X, W1), B1)),
                                     Guess = tessera:argmax(tessera:add(tessera:dot(Hidden, W2), B2), #{axis => 1}),
                                     tessera:mean(tessera:equal(Guess, tessera:argmax(Y, #{axis => 1})))
                             end, #{shape => {?PARTITIONS}, axes => [<<"batch">>]}, #{client => Cluster, input_shardings => [#{}, Cut, Cut]}),
    [Right | _] = Mean([[P, X, Y] || {P, {X, Y}} <- lists:zip(Params, [mesh_digits:batch(Rows) || Rows <- Test])]),
    tessera:to_number(Right).

%% ---- data: of the lines of the file every fourth is this partition's

read(Partition) ->
    File = filename:join([filename:dirname(code:which(tessera)), "..", "examples", "data", "digits.csv.gz"]),
    {ok, Zipped} = file:read_file(File),
    Lines = binary:split(zlib:gunzip(Zipped), <<"\n">>, [global, trim_all]),
    Own = [Line || {I, Line} <- lists:zip(lists:seq(0, length(Lines) - 1), Lines), I rem ?PARTITIONS =:= Partition],
    [digit(Line) || Line <- lists:sublist(Own, ?TRAIN + ?TEST)].

digit(Line) ->
    {Pixels, [Label]} = lists:split(64, [binary_to_integer(string:trim(N)) || N <- binary:split(Line, <<",">>, [global])]),
    {Pixels, Label}.
