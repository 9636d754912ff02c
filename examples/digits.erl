%% Trains a multilayer perceptron (64-128-128-10, ReLU, softmax cross-entropy,
%% Adam) on real handwritten digits, and draws a few that it has not seen.
%%
%%   make run            SEED=7 for another shuffle and start
-module(digits).
-export([main/0]).
-export([load/0, layer/2, zeros_like/1, step/5, logits/2, jitter/1, shuffle/1, batches/1, batch/1, rate/2, epochs/0, accuracy/3]).   % for cluster_digits

-define(BATCH, 64).
-define(EPOCHS, 60).
-define(RATE, 0.002).

main() ->
    Start = now_ms(),
    {ok, _} = application:ensure_all_started(tessera),
    ok = io:setopts([{encoding, unicode}]),
    _ = rand:seed(exsss, seed()),
    {Train, Test} = load(),
    io:format("~b digits to learn from, ~b to be tested on~n", [length(Train), length(Test)]),
    Params = [layer(64, 128), layer(128, 128), layer(128, 10)],
    Zeros = [{zeros_like(W), zeros_like(B)} || {W, B} <- Params],
    Step = tessera:jit(fun step/5),
    Predict = tessera:jit(fun(P, X) -> tessera:argmax(logits(P, X), #{axis => 1}) end),
    State = {Params, Zeros, Zeros, tessera:tensor(0.0, f32)},
    First = now_ms(),
    {X0, Y0} = batch(lists:sublist(Train, ?BATCH)),
    _ = tessera:to_number(element(2, Step(State, X0, Y0, ?RATE, 0.9))),
    io:format("time to first step: ~b ms, of which compiling and running it ~b ms~n", [now_ms() - Start, now_ms() - First]),
    TestBatch = batch(Test),
    {Trained, _, _, _} = train(1, State, Step, Predict, Train, TestBatch, tessera_progress:new(?EPOCHS, #{label => "epoch"})),
    Accuracy = accuracy(Predict, Trained, TestBatch),
    io:format("test accuracy ~.2f % after ~.1f s~n~n", [Accuracy * 100, (now_ms() - Start) / 1000]),
    draw(Predict, Trained, lists:sublist(Test, 4)),
    case Accuracy >= 0.97 of
        true -> ok;
        false -> error({accuracy_too_low, Accuracy})
    end.

%% ---- the network ----

logits([{W1, B1}, {W2, B2}, {W3, B3}], X) ->
    H1 = tessera:relu(tessera:add(tessera:dot(X, W1), B1)),
    H2 = tessera:relu(tessera:add(tessera:dot(H1, W2), B2)),
    tessera:add(tessera:dot(H2, W3), B3).

loss(Params, X, Y) ->
    Z = logits(Params, X),
    LogP = tessera:subtract(Z, tessera:logsumexp(Z, #{axes => [1], keep_axes => true})),
    tessera:negate(tessera:mean(tessera:sum(tessera:multiply(Y, LogP), #{axes => [1]}))).

%% One step of Adam (Kingma and Ba, 2015).
step({Params, M, V, T}, X, Y, Rate, Beta1) ->
    Beta2 = 0.999,
    {Loss, Grads} = (tessera:value_and_grad(fun(P) -> loss(P, X, Y) end))(Params),
    T1 = tessera:add(T, 1),
    M1 = map2(fun(A, G) -> mix(Beta1, A, G) end, M, Grads),
    V1 = map2(fun(A, G) -> mix(Beta2, A, tessera:multiply(G, G)) end, V, Grads),
    C1 = tessera:subtract(1, tessera:pow(Beta1, T1)),
    C2 = tessera:subtract(1, tessera:pow(Beta2, T1)),
    Move = map2(fun(A, B) ->
                        Scale = tessera:add(tessera:sqrt(tessera:divide(B, C2)), 1.0e-8),
                        tessera:multiply(Rate, tessera:divide(tessera:divide(A, C1), Scale))
                end, M1, V1),
    {{map2(fun tessera:subtract/2, Params, Move), M1, V1, T1}, Loss}.

mix(Beta, Old, New) -> tessera:add(tessera:multiply(Beta, Old), tessera:multiply(tessera:subtract(1, Beta), New)).

map2(F, As, Bs) -> [{F(W, X), F(B, Y)} || {{W, B}, {X, Y}} <- lists:zip(As, Bs)].

%% He's initialisation for ReLU.
layer(In, Out) ->
    Scale = math:sqrt(2 / In),
    W = [[rand:normal() * Scale || _ <- lists:seq(1, Out)] || _ <- lists:seq(1, In)],
    {tessera:tensor(W, f32), tessera:zeros({Out}, f32)}.

zeros_like(T) -> tessera:zeros(tessera:shape(T), tessera:type(T)).

%% ---- training ----

train(Epoch, State, _, _, _, _, Progress) when Epoch > ?EPOCHS ->
    ok = tessera_progress:done(Progress),
    State;
train(Epoch, State0, Step, Predict, Train, TestBatch, Progress) ->
    Start = erlang:monotonic_time(microsecond),
    Batches = batches([jitter(D) || D <- shuffle(Train)]),
    Rate = rate(Epoch, ?EPOCHS),
    {State, Losses} = lists:foldl(
        fun({X, Y}, {S, Ls}) ->
                {S1, L} = Step(S, X, Y, Rate, 0.9),
                {S1, [L | Ls]}
        end, {State0, []}, Batches),
    Loss = lists:sum([tessera:to_number(L) || L <- Losses]) / length(Losses),
    Seconds = (erlang:monotonic_time(microsecond) - Start) / 1.0e6,
    Note = io_lib:format("loss ~.4f  test accuracy ~.2f %  ~b samples/s",
                         [Loss, 100 * accuracy(Predict, element(1, State), TestBatch), round(length(Batches) * ?BATCH / Seconds)]),
    train(Epoch + 1, State, Step, Predict, Train, TestBatch, tessera_progress:step(Progress, Note)).

%% Down to nothing, so that the last epochs settle.
rate(Epoch, Epochs) -> ?RATE * (1 - (Epoch - 1) / Epochs).

epochs() -> ?EPOCHS.

accuracy(Predict, Params, {X, Y}) ->
    Right = tessera:equal(Predict(Params, X), tessera:argmax(Y, #{axis => 1})),
    tessera:to_number(tessera:mean(Right)).

%% ---- data ----

%% Lists of {pixels, label}: four fifths to learn from, one held out.
load() ->
    File = filename:join([filename:dirname(code:which(tessera)), "..", "examples", "data", "digits.csv.gz"]),
    {ok, Zipped} = file:read_file(File),
    Lines = binary:split(zlib:gunzip(Zipped), <<"\n">>, [global, trim_all]),
    Digits = shuffle([digit(Line) || Line <- Lines]),
    lists:split(length(Digits) * 4 div 5, Digits).

digit(Line) ->
    Numbers = [binary_to_integer(string:trim(N)) || N <- binary:split(Line, <<",">>, [global])],
    {Pixels, [Label]} = lists:split(64, Numbers),
    {Pixels, Label}.

%% Moves every other digit by one pixel in some direction, so that the network learns shapes rather than places.
jitter({Pixels, Label}) ->
    Moved = case rand:uniform(8) of
                1 -> lists:sublist(Pixels, 9, 56) ++ lists:duplicate(8, 0);
                2 -> lists:duplicate(8, 0) ++ lists:sublist(Pixels, 56);
                3 -> sideways(Pixels, fun([_ | Row]) -> Row ++ [0] end);
                4 -> sideways(Pixels, fun(Row) -> [0 | lists:droplast(Row)] end);
                _ -> Pixels
            end,
    {Moved, Label}.

sideways([], _) -> [];
sideways(Pixels, Move) ->
    {Row, Rest} = lists:split(8, Pixels),
    Move(Row) ++ sideways(Rest, Move).

shuffle(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

batches(Digits) when length(Digits) < ?BATCH -> [];
batches(Digits) ->
    {Now, Later} = lists:split(?BATCH, Digits),
    [batch(Now) | batches(Later)].

%% {f32[n,64] in 0..1, one-hot f32[n,10]}
batch(Digits) ->
    X = << <<(P / 16):32/float-native>> || {Pixels, _} <- Digits, P <- Pixels >>,
    Y = << <<(if L =:= Label -> 1.0; true -> 0.0 end):32/float-native>> || {_, Label} <- Digits, L <- lists:seq(0, 9) >>,
    N = length(Digits),
    {tessera:from_binary(X, f32, {N, 64}), tessera:from_binary(Y, f32, {N, 10})}.

draw(Predict, Params, Digits) ->
    {X, _} = batch(Digits),
    Labels = tessera:to_list(Predict(Params, X)),
    %% The pictures side by side, with a dark column between two of them.
    Pictures = [tessera:pad(tessera:reshape(tessera:tensor(Pixels, f32), {8, 8}), 0.0, [{0, 0, 0}, {0, 1, 0}]) || {Pixels, _} <- Digits],
    tessera_plot:show(tessera_plot:image(tessera:concatenate(Pictures, 1))),
    [io:format("~-18s", [io_lib:format("~b, is ~b", [Label, True])]) || {Label, {_, True}} <- lists:zip(Labels, Digits)],
    io:nl().

seed() ->
    case os:getenv("SEED") of
        false -> {1, 2, 3};
        Seed -> {list_to_integer(Seed), 2, 3}
    end.

now_ms() -> erlang:monotonic_time(millisecond).
