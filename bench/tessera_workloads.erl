%% The workloads of peers.py that Tessera's ops allow: same names, same inputs,
%% same functions.
-module(tessera_workloads).
-export([all/0, hash32/2, data/2, index_data/3]).

-define(M, 1048576).

%% {Name, function that makes the inputs, timed function}.
-spec all() -> [{string(), fun(() -> [tessera:tensor()]), function()}].
all() ->
    elementwise() ++ reductions() ++ contractions() ++ windows() ++ movement() ++ order() ++ linear_algebra() ++ transforms() ++
        complex_numbers() ++ others().

%% ---- inputs ----

%% The murmur3 finalizer of i + Seed * 0x9E3779B9, as u32, for i < N.
hash32(N, Seed) ->
    H0 = tessera:add(tessera:iota({N}, u32), Seed * 16#9E3779B9 band 16#FFFFFFFF),
    H1 = tessera:multiply(mix(H0, 16), 16#85EBCA6B),
    H2 = tessera:multiply(mix(H1, 13), 16#C2B2AE35),
    mix(H2, 16).

mix(H, By) -> tessera:bitwise_xor(H, tessera:right_shift(H, By)).

%% Values in [-1, 1): hash32 / 2^31 - 1 in f64, rounded to f32.
data(Shape, Seed) ->
    Make = fun() ->
                   Wide = tessera:as_type(hash32(elements(Shape), Seed), f64),
                   Values = tessera:subtract(tessera:divide(Wide, 2147483648.0), 1.0),
                   tessera:reshape(tessera:as_type(Values, f32), Shape)
           end,
    (tessera:jit(Make))().

%% s64 of two hashes: hash32 * 2^31 xor the next seed's hash32.
wide_data(N, Seed) ->
    Make = fun() ->
                   [High, Low] = [tessera:as_type(hash32(N, S), s64) || S <- [Seed, Seed + 1]],
                   tessera:bitwise_xor(tessera:left_shift(High, 31), Low)
           end,
    (tessera:jit(Make))().

%% Indices in [0, Bound): hash32 * Bound / 2^32.
index_data(N, Bound, Seed) ->
    Make = fun() ->
                   Wide = tessera:multiply(tessera:as_type(hash32(N, Seed), u64), Bound),
                   tessera:as_type(tessera:right_shift(Wide, 32), s32)
           end,
    (tessera:jit(Make))().

elements(Shape) -> lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Shape)).

%% Tensors of the given shapes, seeded 1, 2, ...
inputs(Shapes) ->
    fun() -> [data(Shape, Seed) || {Shape, Seed} <- lists:zip(Shapes, lists:seq(1, length(Shapes)))] end.

one() -> [tessera:tensor(1.0, f32)].

%% ---- elementwise and fusion ----

elementwise() ->
    [{"add_16m", inputs([{16 * ?M}, {16 * ?M}]), fun tessera:add/2},
     {"chain_8m", inputs([{8 * ?M}]), fun chain/1},
     {"black_scholes_4m", inputs([{4 * ?M}, {4 * ?M}, {4 * ?M}]), fun black_scholes/3}].

chain(X) ->
    Wave = tessera:multiply(tessera:tanh(tessera:add(tessera:multiply(X, 2.0), 1.0)), X),
    tessera:sigmoid(tessera:subtract(Wave, tessera:exp(tessera:multiply(tessera:negate(X), X)))).

black_scholes(A, B, C) ->
    S = tessera:add(100.0, tessera:multiply(50.0, A)),
    K = tessera:add(100.0, tessera:multiply(50.0, B)),
    T = tessera:add(1.5, C),
    {R, V} = {0.05, 0.2},
    Spread = tessera:multiply(V, tessera:sqrt(T)),
    Drift = tessera:multiply(R + V * V / 2, T),
    D1 = tessera:divide(tessera:add(tessera:log(tessera:divide(S, K)), Drift), Spread),
    D2 = tessera:subtract(D1, Spread),
    Paid = tessera:multiply(K, tessera:exp(tessera:multiply(-R, T))),
    tessera:subtract(tessera:multiply(S, normal_cdf(D1)), tessera:multiply(Paid, normal_cdf(D2))).

normal_cdf(X) -> tessera:multiply(0.5, tessera:add(1.0, tessera:erf(tessera:divide(X, 1.4142135)))).

%% ---- reductions ----

reductions() ->
    Square = inputs([{4096, 4096}]),
    Rows = inputs([{4096, 1024}]),
    [{"sum_16m", inputs([{16 * ?M}]), fun tessera:sum/1},
     {"sum_rows_4096", Square, fun(X) -> tessera:sum(X, #{axes => [1]}) end},
     {"sum_cols_4096", Square, fun(X) -> tessera:sum(X, #{axes => [0]}) end},
     {"argmax_rows_4096", Square, fun(X) -> tessera:argmax(X, #{axis => 1}) end},
     {"softmax_4096x1024", Rows, fun tessera:softmax/1},
     {"layernorm_4096x1024", inputs([{4096, 1024}, {1024}, {1024}]), fun layernorm/3},
     {"cumsum_4096x1024", Rows, fun(X) -> tessera:cumulative_sum(X, #{axis => 1}) end}].

layernorm(X, Gain, Bias) ->
    Row = #{axes => [1], keep_axes => true},
    D = tessera:subtract(X, tessera:mean(X, Row)),
    V = tessera:mean(tessera:multiply(D, D), Row),
    Scaled = tessera:divide(D, tessera:sqrt(tessera:add(V, 1.0e-5))),
    tessera:add(tessera:multiply(Scaled, Gain), Bias).

%% ---- contraction ----

contractions() ->
    [{"matmul_" ++ integer_to_list(N), inputs([{N, N}, {N, N}]), fun tessera:dot/2} || N <- [64, 256, 1024, 2048]] ++
    [{"matmul_batch_64x128", inputs([{64, 128, 128}, {64, 128, 128}]),
      fun(A, B) -> tessera:dot(A, [2], [0], B, [1], [0]) end},
     {"matvec_4096", inputs([{4096, 4096}, {4096}]), fun tessera:dot/2},
     {"dense_relu_1024", inputs([{1024, 1024}, {1024, 1024}, {1024}]), fun dense/3},
     {"attention_8x512x64", inputs([{8, 512, 64}, {8, 512, 64}, {8, 512, 64}]), fun attention/3}] ++
    [{"dense_relu_" ++ integer_to_list(Rows) ++ "x1024", inputs([{Rows, 1024}, {1024, 1024}, {1024}]), fun dense/3} || Rows <- [1, 8, 32]].

dense(X, W, B) -> tessera:relu(tessera:add(tessera:dot(X, W), B)).

attention(Q, K, V) ->
    Scores = tessera:multiply(tessera:dot(Q, [2], [0], tessera:transpose(K, [0, 2, 1]), [1], [0]), 0.125),
    tessera:dot(tessera:softmax(Scores), [2], [0], V, [1], [0]).

%% ---- convolution, windows ----

windows() ->
    Image = {16, 56, 56, 64},
    Conv = fun(X, W) -> tessera:conv(X, W, #{padding => same}) end,
    Pool = fun(X) -> tessera:window_max(X, {1, 2, 2, 1}, #{strides => {1, 2, 2, 1}}) end,
    Large = inputs([{16, 112, 112, 64}]),
    [{"conv2d_16x56x56x64_3x3", inputs([Image, {3, 3, 64, 64}]), Conv},
     {"conv2d_1x224x224x3_7x7_s2", inputs([{1, 224, 224, 3}, {7, 7, 3, 64}]),
      fun(X, W) -> tessera:conv(X, W, #{padding => same, strides => 2}) end},
     {"depthwise_16x56x56x64_3x3", inputs([Image, {3, 3, 1, 64}]),
      fun(X, W) -> tessera:conv(X, W, #{padding => same, feature_groups => 64}) end},
     {"conv2d_grads_16x56x56x64_3x3", inputs([Image, {3, 3, 64, 64}]),
      fun(X, W) -> squared_grads(fun({A, B}) -> Conv(A, B) end, {X, W}) end},
     {"maxpool_16x112x112x64", Large, Pool},
     {"maxpool_grad_16x112x112x64", Large, fun(X) -> squared_grads(Pool, X) end}].

squared_grads(F, Args) ->
    Loss = fun(A) ->
                   Y = F(A),
                   tessera:sum(tessera:multiply(Y, Y))
           end,
    (tessera:grad(Loss))(Args).

%% ---- data movement ----

movement() ->
    [{"transpose_4096", inputs([{4096, 4096}]), fun tessera:transpose/1},
     {"concat_2x8m", inputs([{2048, 4096}, {2048, 4096}]), fun(A, B) -> tessera:concatenate([A, B], 1) end},
     {"take_1m_of_100kx16", fun() -> [data({100000, 16}, 1), index_data(?M, 100000, 1)] end,
      fun(X, I) -> tessera:take(X, I) end}] ++ scatters().

scatters() ->
    Table = fun() -> [data({100000, 64}, 1), index_data(100000, 100000, 1)] end,
    [{"scatter_add_1m_into_100k", fun() -> [data({100000}, 1), index_data(?M, 100000, 1), data({?M}, 2)] end,
      fun(X, I, U) -> tessera:indexed_add(X, column(I), U) end},
     {"embedding_grad_100kx64", Table,
      fun(X, I) -> squared_grads(fun(Taken) -> tessera:take(Taken, I) end, X) end},
     {"put_100k_rows_of_64", fun() -> Table() ++ [data({100000, 64}, 2)] end,
      fun(X, I, U) -> tessera:indexed_put(X, column(I), U) end}].

column(X) -> tessera:reshape(X, {tessera:size(X), 1}).

%% ---- order ----

order() ->
    Last = #{axis => -1},
    [{"sort_1m", inputs([{?M}]), fun tessera:sort/1},
     {"argsort_1m", inputs([{?M}]), fun tessera:argsort/1},
     {"sort_rows_1000", inputs([{1000, 1000}]), fun(X) -> tessera:sort(X, Last) end},
     {"sort_1m_s64", fun() -> [wide_data(?M, 1)] end, fun tessera:sort/1}] ++
    [{Name ++ "_rows_" ++ integer_to_list(N), inputs([{?M div N, N}]), fun(X) -> F(X, Last) end}
     || N <- [16, 64], {Name, F} <- [{"sort", fun tessera:sort/2}, {"argsort", fun tessera:argsort/2}]] ++
    [{"top_10_of_1m", inputs([{?M}]), fun(X) -> tessera:top_k(X, 10) end},
     {"top_10_of_rows_1000", inputs([{1000, 1000}]), fun(X) -> tessera:top_k(X, 10) end}].

%% ---- linear algebra ----

linear_algebra() ->
    [{"cholesky_512", fun() -> [definite({512, 512})] end, fun tessera:cholesky/1}] ++
    [{lists:flatten(io_lib:format("cholesky_~bx~b", [Count, Rows])), fun() -> [definite({Count, Rows, Rows})] end,
      fun tessera:cholesky/1} || {Count, Rows} <- [{32768, 4}, {8192, 8}, {2048, 16}, {512, 32}]] ++
    [{"triangular_solve_512", fun() -> [definite({512, 512}), data({512, 512}, 2)] end, fun tessera:triangular_solve/2},
     {"triangular_solve_8192x8", fun() -> [definite({8192, 8, 8}), data({8192, 8, 1}, 2)] end, fun tessera:triangular_solve/2},
     {"solve_512", fun() -> [definite({512, 512}), data({512, 8}, 2)] end, fun tessera:solve/2},
     {"qr_512", inputs([{512, 512}]), fun tessera:qr/1},
     {"eigh_512", fun() -> [definite({512, 512})] end, fun tessera:eigh/1},
     {"svd_256", inputs([{256, 256}]), fun tessera:svd/1},
     {"lu_512", inputs([{512, 512}]), fun tessera:lu/1}] ++
    lists:append([small_matrices(Count, Rows) || {Count, Rows} <- [{8192, 8}, {2048, 16}]]).

small_matrices(Count, Rows) ->
    Name = fun(Op) -> lists:flatten(io_lib:format("~s_~bx~b", [Op, Count, Rows])) end,
    Shape = {Count, Rows, Rows},
    [{Name(solve), fun() -> [definite(Shape), data({Count, Rows, 1}, 2)] end, fun tessera:solve/2},
     {Name(qr), inputs([Shape]), fun tessera:qr/1},
     {Name(eigh), fun() -> [definite(Shape)] end, fun tessera:eigh/1},
     {Name(svd), inputs([Shape]), fun tessera:svd/1}].

%% Lengths: a power of 2, of small factors, a prime.
transforms() ->
    [{lists:flatten(io_lib:format("fft_~bx~b", [N, N])), inputs([{N, N}]), fun tessera:fft/1} || N <- [1024, 1000, 1021]] ++
    [{"fft2_1024", inputs([{1024, 1024}]), fun tessera:fft2/1}].

complex_numbers() ->
    [{"complex_matmul_512", complex_inputs([{512, 512}, {512, 512}]), fun tessera:dot/2},
     {"complex_multiply_4m", complex_inputs([{4 * ?M}, {4 * ?M}]), fun tessera:multiply/2},
     {"complex_chain_1m", complex_inputs([{?M}, {?M}]), fun complex_chain/2}].

complex_chain(A, B) ->
    tessera:subtract(tessera:multiply(tessera:exp(tessera:multiply(A, B)), A), tessera:divide(B, tessera:add(A, 2.0))).

%% c64: real parts of seeds 1, 3, ..., imaginary parts of the seeds after them.
complex_inputs(Shapes) ->
    fun() -> [tessera:complex(data(Shape, Seed), data(Shape, Seed + 1))
              || {Shape, Seed} <- lists:zip(Shapes, lists:seq(1, 2 * length(Shapes), 2))] end.

%% Positive definite matrices.
definite(Shape) ->
    Rank = tuple_size(Shape),
    N = element(Rank, Shape),
    Batch = lists:seq(0, Rank - 3),
    Make = fun(X) ->
                   Product = tessera:dot(X, [Rank - 1], Batch, X, [Rank - 1], Batch),
                   tessera:add(Product, tessera:multiply(tessera:eye(N), N))
           end,
    (tessera:jit(Make))(data(Shape, 5)).

%% ---- control flow, random numbers, overhead, training ----

others() ->
    [{"while_100k", fun one/0, fun loop/1},
     {"random_normal_4m", fun() -> [] end, fun() -> normal(4 * ?M, {0, 42}) end},
     {"call_overhead_scalar", fun one/0, fun(X) -> tessera:add(X, 1.0) end},
     {"mlp_train_256", fun mlp_inputs/0, fun mlp_step/3}] ++ networks().

loop(X) ->
    Step = fun({I, Y}) -> {tessera:add(I, 1), tessera:add(tessera:multiply(Y, 0.999), 0.001)} end,
    {_, Last} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 100000) end, Step),
    Last.

%% jax.random.normal(key, {N}): threefry2x32 of a counter, as jax's partitionable form has it, to uniform
%% numbers in (-1, 1), to the inverse of the distribution.
normal(N, Key) ->
    {X0, X1} = threefry(Key, tessera:zeros({N}, u32), tessera:iota({N}, u32)),
    Mantissa = tessera:right_shift(tessera:bitwise_xor(X0, X1), 9),
    Unit = tessera:subtract(tessera:bitcast(tessera:bitwise_or(Mantissa, 16#3F800000), f32), 1.0),
    Low = -0.99999994039535522461,
    U = tessera:max(tessera:add(tessera:multiply(Unit, 2.0), Low), Low),
    tessera:multiply(tessera:erf_inv(U), 1.41421356237309504880).

threefry({K0, K1}, X0, X1) ->
    K2 = K0 bxor K1 bxor 16#1BD11BDA,
    Injected = {tessera:add(X0, K0), tessera:add(X1, K1)},
    Rounds = [{[13, 15, 26, 6], K1, K2 + 1}, {[17, 29, 16, 24], K2, K0 + 2}, {[13, 15, 26, 6], K0, K1 + 3},
              {[17, 29, 16, 24], K1, K2 + 4}, {[13, 15, 26, 6], K2, K0 + 5}],
    lists:foldl(fun threefry_rounds/2, Injected, Rounds).

threefry_rounds({Rotations, K0, K1}, State) ->
    {X0, X1} = lists:foldl(fun threefry_round/2, State, Rotations),
    {tessera:add(X0, K0), tessera:add(X1, K1 band 16#FFFFFFFF)}.

threefry_round(By, {X0, X1}) ->
    Sum = tessera:add(X0, X1),
    Rotated = tessera:bitwise_or(tessera:left_shift(X1, By), tessera:right_shift(X1, 32 - By)),
    {Sum, tessera:bitwise_xor(Sum, Rotated)}.

mlp_inputs() ->
    Params = {scaled({784, 512}, 2, 0.05), scaled({512}, 3, 0.01), scaled({512, 512}, 4, 0.05),
              scaled({512}, 5, 0.01), scaled({512, 10}, 6, 0.05), scaled({10}, 7, 0.01)},
    [data({256, 784}, 1), tessera:one_hot(index_data(256, 10, 8), 10, f32), Params].

mlp_step(X, Y, Params) -> descend(fun(P) -> mlp_loss(X, Y, P) end, Params).

mlp_loss(X, Y, {W1, B1, W2, B2, W3, B3}) ->
    Z = tessera:add(tessera:dot(dense(dense(X, W1, B1), W2, B2), W3), B3),
    LogP = tessera:subtract(Z, tessera:logsumexp(Z, #{axes => [1], keep_axes => true})),
    tessera:divide(tessera:negate(tessera:sum(tessera:multiply(Y, LogP))), 256.0).

%% ---- convolutional networks ----

networks() ->
    [{"lenet_forward_128", fun() -> [X, _, Params] = lenet_inputs(), [X, Params] end, fun lenet/2},
     {"lenet_train_128", fun lenet_inputs/0, fun lenet_step/3},
     {"resnet_block_forward", fun block_inputs/0, fun block/2},
     {"resnet_block_train", fun block_inputs/0, fun block_step/2}].

lenet_inputs() ->
    Params = {scaled({5, 5, 1, 6}, 2, 0.2), scaled({6}, 3, 0.01), scaled({5, 5, 6, 16}, 4, 0.1), scaled({16}, 5, 0.01),
              scaled({784, 120}, 6, 0.05), scaled({120}, 7, 0.01), scaled({120, 84}, 8, 0.1), scaled({84}, 9, 0.01),
              scaled({84, 10}, 10, 0.1), scaled({10}, 11, 0.01)},
    [data({128, 28, 28, 1}, 1), tessera:one_hot(index_data(128, 10, 12), 10, f32), Params].

scaled(Shape, Seed, By) -> tessera:multiply(data(Shape, Seed), By).

lenet(X, {K1, B1, K2, B2, W3, B3, W4, B4, W5, B5}) ->
    Maps = convolved(convolved(X, K1, B1), K2, B2),
    Hidden = dense(dense(tessera:reshape(Maps, {128, 784}), W3, B3), W4, B4),
    tessera:add(tessera:dot(Hidden, W5), B5).

convolved(X, K, B) ->
    Maps = tessera:relu(tessera:add(tessera:conv(X, K, #{padding => same}), B)),
    tessera:window_max(Maps, {1, 2, 2, 1}, #{strides => {1, 2, 2, 1}}).

lenet_step(X, Y, Params) ->
    descend(fun(P) ->
                    Z = lenet(X, P),
                    LogP = tessera:subtract(Z, tessera:logsumexp(Z, #{axes => [1], keep_axes => true})),
                    tessera:divide(tessera:negate(tessera:sum(tessera:multiply(Y, LogP))), 128.0)
            end, Params).

descend(Loss, Params) ->
    {Value, Grads} = (tessera:value_and_grad(Loss))(Params),
    Moved = [tessera:subtract(P, tessera:multiply(0.01, G))
             || {P, G} <- lists:zip(tuple_to_list(Params), tuple_to_list(Grads))],
    {Value, list_to_tuple(Moved)}.

block_inputs() ->
    Params = {scaled({3, 3, 64, 64}, 2, 0.05), data({64}, 3), scaled({64}, 4, 0.1),
              scaled({3, 3, 64, 64}, 5, 0.05), data({64}, 6), scaled({64}, 7, 0.1)},
    [data({8, 56, 56, 64}, 1), Params].

%% With the scale and shift that normalisation by known statistics has.
block(X, Params) -> block(X, Params, fun(Z) -> Z end).

block(X, {K1, G1, B1, K2, G2, B2}, Normalised) ->
    Conv = fun(Z, K, G, B) ->
                   Maps = Normalised(tessera:conv(Z, K, #{padding => same})),
                   tessera:add(tessera:multiply(Maps, G), B)
           end,
    tessera:relu(tessera:add(X, Conv(tessera:relu(Conv(X, K1, G1, B1)), K2, G2, B2))).

%% By the statistics of the batch.
normalised(Z) ->
    All = #{axes => [0, 1, 2], keep_axes => true},
    D = tessera:subtract(Z, tessera:mean(Z, All)),
    tessera:divide(D, tessera:sqrt(tessera:add(tessera:mean(tessera:multiply(D, D), All), 1.0e-5))).

block_step(X, Params) ->
    descend(fun(P) ->
                    Y = block(X, P, fun normalised/1),
                    tessera:mean(tessera:multiply(Y, Y))
            end, Params).
