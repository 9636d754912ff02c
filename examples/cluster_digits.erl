%% The example mesh_digits on a cluster: data-parallel training of the digits on four ranks, which mpirun starts and which have a
%% quarter of every batch each, and the parameters. This node deals out the batches and follows the training.
%%
%%   ./setup --mpi && make run-mpi
%%   make run-mpi HOSTS=a:2,b:2 LISTEN=10.0.0.1     on other hosts; LISTEN is this one's address
-module(cluster_digits).
-export([main/0, start/1]).

-define(EPOCHS, 20).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    _ = rand:seed(exsss, {1, 2, 3}),
    {Train, Test} = mesh_digits:load(),
    Cluster = start(#{ranks => 4}),
    describe(Cluster),
    Trained = train(1, Cluster, mesh_digits:step(Cluster), mesh_digits:parameters(), {Train, mesh_digits:batch(Test)}),
    Accuracy = mesh_digits:accuracy(Trained, mesh_digits:batch(Test)),
    [io:format("rank ~b got ~.1f MB and sent ~.1f MB~n", [Rank, Got / 1.0e6, Sent / 1.0e6])
     || #{rank := Rank, sent_bytes := Got, received_bytes := Sent} <- maps:get(ranks, tessera_cluster:info(Cluster))],
    ok = tessera_cluster:stop(Cluster),
    io:format("test accuracy ~.2f %~n", [100 * Accuracy]),
    Accuracy >= 0.92 orelse error({accuracy_too_low, Accuracy}),
    ok.

%% A cluster with these options, and those of the environment: RANKS, THREADS, HOSTS (a list such as a:2,b:2) and LISTEN.
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

%% ---- training: a list of what each rank has. The next step is on its way while one runs; losses are read at the end of an epoch

train(Epoch, _, _, [Params | _], _) when Epoch > ?EPOCHS ->
    io:nl(),
    Params;
train(Epoch, Cluster, Step, Params, {Train, Test} = Data) ->
    Start = erlang:monotonic_time(microsecond),
    {Next, Losses} = lists:foldl(
        fun(Batch, {Now, Ls}) ->
                {Then, [Loss | _]} = lists:unzip(Step(mesh_digits:arguments(Cluster, Now, Batch, 0.3))),
                {Then, [Loss | Ls]}
        end, {Params, []}, mesh_digits:batches(mesh_digits:shuffle(Train))),
    Loss = lists:sum([tessera:to_number(L) || L <- Losses]) / length(Losses),
    Each = (erlang:monotonic_time(microsecond) - Start) / 1000 / length(Losses),
    digits:progress("epoch ~2b/~b  loss ~.4f  test accuracy ~.2f %  ~.1f ms a step",
              [Epoch, ?EPOCHS, Loss, 100 * mesh_digits:accuracy(hd(Next), Test), Each]),
    train(Epoch + 1, Cluster, Step, Next, Data).
