%% Trains a small convolutional network on real handwritten digits: two convolutions with pooling, a linear layer, softmax
%% cross-entropy, Adam. An epoch is one compiled loop over shuffled batches; weights and orders come from tessera_random.
%%
%%   make example E=conv_digits
-module(conv_digits).
-export([main/0]).

-define(BATCH, 32).
-define(EPOCHS, 20).
-define(RATE, 0.003).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    Key = tessera_random:key(7),
    {X, Y} = load(),
    Count = tessera:axis_size(X, 0),
    {Order, Key1} = tessera_random:permutation(Key, Count),
    Held = Count div 5,
    {Test, Train} = {part(X, Y, Order, 0, Held), part(X, Y, Order, Held, Count - Held)},
    {Params, Key2} = params(Key1),
    Zeros = zeros_like(Params),
    Epoch = tessera:jit(fun epoch/3),
    Accuracy = tessera:jit(fun accuracy/2),
    {Trained, _, _, _} = train(1, {Params, Zeros, Zeros, tessera:tensor(0.0, f32)}, Key2, Epoch, Accuracy, Train, Test),
    Share = tessera:to_number(Accuracy(Trained, Test)),
    io:format("test accuracy ~.2f %~n", [100 * Share]),
    case Share >= 0.97 of
        true -> ok;
        false -> error({accuracy_too_low, Share})
    end.

part(X, Y, Order, From, Count) ->
    Rows = tessera:slice(Order, [From], [Count]),
    {tessera:take(X, Rows), tessera:take(Y, Rows)}.

train(N, State, _, _, _, _, _) when N > ?EPOCHS -> State;
train(N, State, Key, Epoch, Accuracy, {X, _} = Train, Test) ->
    Start = erlang:monotonic_time(microsecond),
    {Order, Next} = tessera_random:permutation(Key, tessera:axis_size(X, 0)),
    {State1, Loss} = Epoch(State, Train, Order),
    Mean = tessera:to_number(Loss),
    Seconds = (erlang:monotonic_time(microsecond) - Start) / 1.0e6,
    io:format("epoch ~2b/~b  loss ~.4f  test accuracy ~.2f %  ~.2f s~n",
              [N, ?EPOCHS, Mean, 100 * tessera:to_number(Accuracy(element(1, State1), Test)), Seconds]),
    train(N + 1, State1, Next, Epoch, Accuracy, Train, Test).

%% ---- the network

%% Kernels are {height, width, channels, features}.
params(Key) ->
    {Params, Next} = lists:mapfoldl(fun layer/2, Key, [{3, 3, 1, 16}, {3, 3, 16, 32}, {128, 10}]),
    {Params, Next}.

%% He's initialisation for ReLU.
layer(Shape, Key) ->
    Features = element(tuple_size(Shape), Shape),
    Inputs = lists:foldl(fun erlang:'*'/2, 1, lists:droplast(tuple_to_list(Shape))),
    {W, Next} = tessera_random:normal(Key, 0, math:sqrt(2 / Inputs), Shape),
    {{W, tessera:zeros({Features})}, Next}.

logits([{W1, B1}, {W2, B2}, {W3, B3}], X) ->
    H = convolved(W2, B2, convolved(W1, B1, X)),
    tessera:add(tessera:dot(tessera:reshape(H, {tessera:axis_size(X, 0), 128}), W3), B3).

convolved(W, B, X) ->
    Y = tessera:relu(tessera:add(tessera:conv(X, W, #{padding => same}), B)),
    tessera:window_max(Y, {1, 2, 2, 1}, #{strides => [1, 2, 2, 1]}).

loss(Params, X, Y) ->
    LogP = tessera:log_softmax(logits(Params, X), #{axes => [1]}),
    tessera:negate(tessera:mean(tessera:sum(tessera:multiply(tessera:one_hot(Y, 10, f32), LogP), #{axes => [1]}))).

accuracy(Params, {X, Y}) -> tessera:mean(tessera:equal(tessera:argmax(logits(Params, X), #{axis => 1}), Y)).

%% ---- training

%% One pass over the images in an order: {state, mean loss}.
epoch(State, {X, Y}, Order) ->
    Batches = tessera:size(Order) div ?BATCH,
    {State1, Sum, _} = tessera:while(
        {State, 0.0, 0},
        fun({_, _, I}) -> tessera:less(I, Batches) end,
        fun({S, Sum, I}) ->
                Rows = tessera:slice(Order, [tessera:multiply(I, ?BATCH)], [?BATCH]),
                {S1, Loss} = step(S, tessera:take(X, Rows), tessera:take(Y, Rows)),
                {S1, tessera:add(Sum, Loss), tessera:add(I, 1)}
        end),
    {State1, tessera:divide(Sum, Batches)}.

%% One step of Adam (Kingma and Ba, 2015).
step({Params, M, V, T}, X, Y) ->
    {Loss, Grads} = (tessera:value_and_grad(fun(P) -> loss(P, X, Y) end))(Params),
    T1 = tessera:add(T, 1),
    M1 = map2(fun(A, G) -> mix(0.9, A, G) end, M, Grads),
    V1 = map2(fun(A, G) -> mix(0.999, A, tessera:multiply(G, G)) end, V, Grads),
    [C1, C2] = [tessera:subtract(1, tessera:pow(Beta, T1)) || Beta <- [0.9, 0.999]],
    Move = map2(fun(A, B) ->
                        Scale = tessera:add(tessera:sqrt(tessera:divide(B, C2)), 1.0e-8),
                        tessera:multiply(?RATE, tessera:divide(tessera:divide(A, C1), Scale))
                end, M1, V1),
    {{map2(fun tessera:subtract/2, Params, Move), M1, V1, T1}, Loss}.

mix(Beta, Old, New) -> tessera:add(tessera:multiply(Beta, Old), tessera:multiply(1 - Beta, New)).

map2(F, As, Bs) -> [{F(W, X), F(B, Y)} || {{W, B}, {X, Y}} <- lists:zip(As, Bs)].

zeros_like(Params) -> [{tessera:zeros(tessera:shape(W)), tessera:zeros(tessera:shape(B))} || {W, B} <- Params].

%% ---- data

%% Images f32[n,8,8,1] in 0..1, labels s32[n].
load() ->
    File = filename:join([filename:dirname(code:which(tessera)), "..", "examples", "data", "digits.csv.gz"]),
    {ok, Zipped} = file:read_file(File),
    Rows = [[binary_to_integer(string:trim(N)) || N <- binary:split(Line, <<",">>, [global])]
            || Line <- binary:split(zlib:gunzip(Zipped), <<"\n">>, [global, trim_all])],
    All = tessera:tensor(Rows, s32),
    Count = length(Rows),
    Pixels = tessera:as_type(tessera:slice(All, [0, 0], [Count, 64]), f32),
    {tessera:reshape(tessera:divide(Pixels, 16), {Count, 8, 8, 1}),
     tessera:reshape(tessera:slice(All, [0, 64], [Count, 1]), {Count})}.
