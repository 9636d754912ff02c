%% Training that survives its ranks: the parameters are saved after each epoch, and when a rank is lost all ranks are started again and
%% training continues from the last checkpoint. Each epoch has its own seed, so the result has the same bits as without the loss.
%%
%%   ./setup --mpi && make example E=cluster_resume
%%   KILL=3 make example E=cluster_resume           ends rank 2 in the middle of epoch 3
%%   CHECKPOINT=FOLDER make example E=cluster_resume   keeps checkpoints there, and begins with the last one
-module(cluster_resume).
-export([main/0]).

-define(EPOCHS, 6).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    _ = rand:seed(exsss, {1, 2, 3}),
    {Train, Test} = mesh_digits:load(),
    {Folder, Keep} = folder(os:getenv("CHECKPOINT")),
    Cluster = cluster_digits:start(#{ranks => 4}),
    State = {Cluster, mesh_digits:step(Cluster), filename:join(Folder, "digits"), Train},
    {Epoch, Params} = last(State),
    Trained = train(Epoch + 1, Params, State, os:getenv("KILL", "")),
    Accuracy = mesh_digits:accuracy(hd(Trained), mesh_digits:batch(Test)),
    Digest = erlang:phash2([tessera:to_binary(T) || {W, B} <- hd(Trained), T <- [W, B]]),
    ok = tessera_cluster:stop(Cluster),
    _ = [ok = file:del_dir_r(Folder) || not Keep],
    io:format("test accuracy ~.2f %, parameters ~b~n", [100 * Accuracy, Digest]),
    Accuracy >= 0.85 orelse error({accuracy_too_low, Accuracy}),
    ok.

folder(false) -> {string:trim(os:cmd("mktemp -d")), false};
folder(Folder) ->
    ok = filelib:ensure_dir(filename:join(Folder, "digits")),
    {Folder, true}.

train(Epoch, Params, _, _) when Epoch > ?EPOCHS -> Params;
train(Epoch, Params, {_, _, Path, _} = State, Kill) ->
    try
        {Next, Loss} = epoch(Epoch, Params, State, Kill =:= integer_to_list(Epoch)),
        ok = tessera_cluster:save(Path, [{Epoch, P} || P <- Next]),
        {Next, Loss}
    of
        {Then, Mean} ->
            io:format("epoch ~b  loss ~.4f, saved~n", [Epoch, Mean]),
            train(Epoch + 1, Then, State, Kill)
    catch error:{unavailable, Why} ->
            io:format("~ts~n", [Why]),
            {Saved, Old} = last(State),
            io:format("the ranks are there again; going on after epoch ~b~n", [Saved]),
            train(Saved + 1, Old, State, "")
    end.

%% The contents of the last checkpoint; waits for the ranks.
last({Cluster, _, Path, _}) ->
    case filelib:is_regular(Path) of
        true ->
            Parts = tessera_cluster:load(Cluster, Path),
            {number(element(1, hd(Parts))), [P || {_, P} <- Parts]};
        false ->
            _ = rand:seed(exsss, {1, 2, 3}),
            {0, mesh_digits:parameters()}
    end.

number(Number) when is_number(Number) -> Number;
number(Tensor) -> round(tessera:to_number(Tensor)).

epoch(Epoch, Params, {Cluster, Step, _, Train}, Kill) ->
    _ = rand:seed(exsss, {Epoch, 2, 3}),
    Batches = mesh_digits:batches(mesh_digits:shuffle(Train)),
    {First, Second} = lists:split(length(Batches) div 2, Batches),
    {Half, Losses} = steps(First, Cluster, Step, {Params, []}),
    _ = [kill(Cluster, 2) || Kill],
    {Next, All} = steps(Second, Cluster, Step, {Half, Losses}),
    {Next, lists:sum([tessera:to_number(Loss) || Loss <- All]) / length(All)}.

steps(Batches, Cluster, Step, State) ->
    lists:foldl(fun(Batch, {Now, Losses}) ->
                        {Next, [Loss | _]} = lists:unzip(Step(mesh_digits:arguments(Cluster, Now, Batch, 0.3))),
                        {Next, [Loss | Losses]}
                end, State, Batches).

kill(Cluster, Rank) ->
    [Pid] = [Pid || #{rank := R, os_pid := Pid} <- maps:get(ranks, tessera_cluster:info(Cluster)), R =:= Rank],
    io:format("ending rank ~b~n", [Rank]),
    os:cmd("kill -KILL " ++ binary_to_list(Pid)).
