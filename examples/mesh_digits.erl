%% Data-parallel training of the digits on a mesh of four devices: each has a quarter of every batch and all of the parameters.
%% The gradients and the loss are summed over the devices by one collective a step.
%%
%%   make example E=mesh_digits
-module(mesh_digits).
-export([main/0]).
-export([load/0, step/1, parameters/0, batches/1, batch/1, shuffle/1, arguments/4, accuracy/2]).   % for cluster_resume and cluster_spmd

-define(BATCH, 64).
-define(EPOCHS, 20).
-define(MESH, #{name => <<"data">>, shape => {4}, axes => [<<"batch">>]}).
-define(CUT, #{0 => [<<"batch">>]}).   % of a batch; parameters are whole on each device

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera:open_client(host, #{device_count => 4}),
    _ = rand:seed(exsss, {1, 2, 3}),
    {Train, Test} = load(),
    io:format("how a batch is cut:~n~s", [tessera_mesh:draw({?BATCH, 64}, ?MESH, ?CUT)]),
    Step = step(host),
    Start = parameters(),
    [First | _] = batches(Train),
    [Collectives | _] = [Line || Line <- string:split(tessera:explain(Step, [arguments(host, Start, First, 0.1)]), "\n", all),
                                 string:find(Line, "collective") =/= nomatch],
    io:format("~s~n", [Collectives]),
    Trained = train(1, Start, Step, Train),
    Accuracy = accuracy(hd(Trained), batch(Test)),
    io:format("test accuracy ~.2f %~n", [100 * Accuracy]),
    Accuracy >= 0.95 orelse error({accuracy_too_low, Accuracy}),
    ok.

%% A step of training on the devices of a client, or on the ranks of a cluster.
step(Client) ->
    tessera:shard_jit(fun step/4, ?MESH, #{client => Client, input_shardings => [#{}, ?CUT, ?CUT, #{}], output_shardings => #{}}).

%% The same for each device.
parameters() -> lists:duplicate(4, [layer(64, 128), layer(128, 10)]).

%% ---- the network: f32[n,64] -> f32[n,10]

logits([{W1, B1}, {W2, B2}], X) ->
    tessera:add(tessera:dot(tessera:relu(tessera:add(tessera:dot(X, W1), B1)), W2), B2).

loss(Params, X, Y) -> tessera:negate(tessera:mean(tessera:sum(tessera:multiply(Y, tessera:log_softmax(logits(Params, X),
                                                                                                     #{axes => [1]})), #{axes => [1]}))).

%% Written as for one device: the batch is all of the batch.
step(Params, X, Y, Rate) ->
    {Loss, Gradients} = (tessera:value_and_grad(fun(P) -> loss(P, X, Y) end))(Params),
    Move = fun(P, G) -> tessera:subtract(P, tessera:multiply(Rate, G)) end,
    {[{Move(W, GW), Move(B, GB)} || {{W, B}, {GW, GB}} <- lists:zip(Params, Gradients)], Loss}.

layer(In, Out) ->
    Scale = math:sqrt(2 / In),
    {tessera:tensor([[rand:normal() * Scale || _ <- lists:seq(1, Out)] || _ <- lists:seq(1, In)], f32), tessera:zeros({Out})}.

%% ---- training: each device's data are in a list

train(Epoch, Params, _, _) when Epoch > ?EPOCHS -> Params;
train(Epoch, Params, Step, Train) ->
    {Next, Losses} = lists:foldl(
        fun(Batch, {Now, Ls}) ->
                {Then, [Loss | _]} = lists:unzip(Step(arguments(host, Now, Batch, 0.3))),
                {Then, [tessera:to_number(Loss) | Ls]}
        end, {Params, []}, batches(shuffle(Train))),
    Epoch rem 5 =:= 0 andalso io:format("epoch ~2b  loss ~.4f~n", [Epoch, lists:sum(Losses) / length(Losses)]),
    train(Epoch + 1, Next, Step, Train).

arguments(Client, Params, {X, Y}, Rate) ->
    [[P, XPart, YPart, Rate] || {P, XPart, YPart} <- lists:zip3(Params, tessera_mesh:shard(X, ?MESH, ?CUT, Client),
                                                                tessera_mesh:shard(Y, ?MESH, ?CUT, Client))].

accuracy(Params, {X, Y}) ->
    Right = tessera:equal(tessera:argmax(logits(Params, X), #{axis => 1}), tessera:argmax(Y, #{axis => 1})),
    tessera:to_number(tessera:mean(Right)).

%% ---- data, as in digits.erl

load() ->
    File = filename:join([filename:dirname(code:which(tessera)), "..", "examples", "data", "digits.csv.gz"]),
    {ok, Zipped} = file:read_file(File),
    Digits = shuffle([digit(Line) || Line <- binary:split(zlib:gunzip(Zipped), <<"\n">>, [global, trim_all])]),
    lists:split(length(Digits) * 4 div 5, Digits).

digit(Line) ->
    {Pixels, [Label]} = lists:split(64, [binary_to_integer(string:trim(N)) || N <- binary:split(Line, <<",">>, [global])]),
    {Pixels, Label}.

shuffle(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

batches(Digits) when length(Digits) < ?BATCH -> [];
batches(Digits) ->
    {Now, Later} = lists:split(?BATCH, Digits),
    [batch(Now) | batches(Later)].

batch(Digits) ->
    {Pixels, Labels} = lists:unzip(Digits),
    {tessera:divide(tessera:tensor(Pixels, f32), 16), tessera:as_type(tessera:one_hot(tessera:tensor(Labels), 10), f32)}.
