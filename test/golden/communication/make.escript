#!/usr/bin/env escript
%%! -pa ebin
%% Writes the programs of this folder: ten programs on a mesh as tessera:shard_jit traces them, and as functions of parts
%% that tessera:shard_map traces, each with what it has to send, which the golden test checks besides the .out files.
%% docs/distribution.md has the table.
%% usage (in the root of the repository): test/golden/communication/make.escript
-mode(compile).

main(_) ->
    ok = tessera:open_client(mesh, #{device_count => 8}),
    [program(Program) || Program <- programs()].

program({Name, Mesh, Templates, In, Out, Global, Local}) ->
    Args = [lists:duplicate(tessera_mesh:partitions(Mesh), Templates)],
    Whole = tessera:shard_jit(Global, Mesh, #{input_shardings => In, output_shardings => Out, client => mesh}),
    write(Name, Name, "report", tessera_nif:graph_text(tessera_shard:whole(Whole, Args))),
    Map = tessera:shard_map(Local, Mesh, In, Out, #{client => mesh}),
    write(Name, Name ++ "_local", "combine", tessera_nif:graph_text(tessera_shard:whole(Map, Args))).

write(Name, File, Passes, Text) ->
    {Count, Bytes} = maps:get(Name, sends()),
    Sends = io_lib:format("// sends: ~b collective~s, ~b bytes~n", [Count, case Count of 1 -> ""; _ -> "s" end, Bytes]),
    ok = file:write_file("test/golden/communication/" ++ File ++ ".ts", ["// passes: ", Passes, $\n, Sends, Text]).

%% The collectives, and the bytes of one partition that they take.
sends() ->
    #{"mlp_step" => {1, 4 * (669706 + 1)},       % all gradients and the loss
      "megatron" => {1, 4 * 64 * 512},           % the result; no weight
      "embedding" => {1, 4 * 64 * 32 * 256},     % the rows that were found; not the table
      "attention" => {1, 4 * 8 * 64 * 256},      % the result
      "softmax" => {2, 2 * 4 * 64},              % largest elements, then sums
      "layer_norm" => {2, 2 * 4 * 64},           % means, then variances
      "k_means" => {1, 4 * 8 * (16 + 1)},        % sums and counts
      "sum_loss" => {1, 4},
      "transpose" => {1, 4 * 64 * 256},          % the part
      "batched_matmul" => {0, 0}}.

f32(Shape) -> tessera:template(f32, Shape).

%% {Name, Mesh, types of one partition's arguments, shardings, the whole function, the function of parts}
programs() ->
    Data = #{shape => {4}, axes => [data]},
    Model = #{shape => {4}, axes => [model]},
    Both = #{shape => {2, 4}, axes => [data, model]},
    Rows = #{0 => [data]},
    [{"mlp_step", Data, [mlp(), f32({1024, 784}), f32({1024, 10})], [#{}, Rows, Rows], #{},
      fun(P, X, Y) -> step(P, fun(P1) -> loss(P1, X, Y) end) end,
      fun(P, X, Y) -> step(P, fun(P1) -> tessera_mesh:all_reduce(loss(P1, X, Y), mean, data) end) end},
     {"megatron", Both, [f32({64, 512}), f32({512, 512}), f32({512, 512})],
      [Rows, #{1 => [model]}, #{0 => [model]}], Rows,
      fun(X, A, B) -> tessera:dot(tessera:relu(tessera:dot(X, A)), B) end,
      fun(X, A, B) -> tessera_mesh:all_reduce(tessera:dot(tessera:relu(tessera:dot(X, A)), B), sum, model) end},
     {"embedding", Model, [f32({8000, 256}), tessera:template(s32, {64, 32})], [#{0 => [model]}, #{}], #{},
      fun(Table, Words) -> tessera:take(Table, Words) end, fun own_rows/2},
     {"attention", Model, [f32({8, 64, 256}), f32({256, 2, 32}), f32({256, 2, 32}), f32({256, 2, 32}), f32({2, 32, 256})],
      [#{}, #{1 => [model]}, #{1 => [model]}, #{1 => [model]}, #{0 => [model]}], #{}, fun attention/5,
      fun(X, Q, K, V, O) -> tessera_mesh:all_reduce(attention(X, Q, K, V, O), sum, model) end},
     {"softmax", Model, [f32({64, 1000})], [#{1 => [model]}], #{1 => [model]},
      fun(X) -> tessera:softmax(X) end,
      fun(X) ->
              E = tessera:exp(tessera:subtract(X, tessera_mesh:all_reduce(reduced(reduce_max, X), max, model))),
              tessera:divide(E, tessera_mesh:all_reduce(reduced(sum, E), sum, model))
      end},
     {"layer_norm", Model, [f32({64, 256}), f32({256}), f32({256})], [#{1 => [model]}, #{0 => [model]}, #{0 => [model]}],
      #{1 => [model]},
      fun(X, G, B) -> layer_norm(X, G, B, fun(T) -> reduced(mean, T) end) end,
      fun(X, G, B) -> layer_norm(X, G, B, fun(T) -> tessera_mesh:all_reduce(reduced(mean, T), mean, model) end) end},
     {"k_means", Data, [f32({1024, 16}), f32({8, 16})], [Rows, #{}], #{}, fun(X, C) -> k_means(X, C, fun(T) -> T end) end,
      fun(X, C) -> k_means(X, C, fun(T) -> tessera_mesh:all_reduce(T, sum, data) end) end},
     {"sum_loss", Both, [f32({64, 64}), f32({64, 64})], [#{0 => [data], 1 => [model]}, #{0 => [data], 1 => [model]}], #{},
      fun squares/2, fun(X, Y) -> tessera_mesh:all_reduce(squares(X, Y), sum, [data, model]) end},
     {"transpose", Data, [f32({64, 256})], [Rows], Rows, fun tessera:transpose/1,
      fun(X) -> tessera:transpose(tessera_mesh:all_to_all(X, 1, 0, data)) end},
     {"batched_matmul", Data, [f32({8, 64, 32}), f32({8, 32, 64})], [Rows, Rows], Rows, fun products/2, fun products/2}].

%% ---- a step of a network of 784-512-512-10

mlp() ->
    maps:from_list([{{w, I}, f32({N, M})} || {I, N, M} <- layers()] ++ [{{b, I}, f32({M})} || {I, _, M} <- layers()]).

layers() -> [{1, 784, 512}, {2, 512, 512}, {3, 512, 10}].

loss(P, X, Y) ->
    Layer = fun(I, T) -> tessera:add(tessera:dot(T, map_get({w, I}, P)), map_get({b, I}, P)) end,
    Logits = Layer(3, tessera:relu(Layer(2, tessera:relu(Layer(1, X))))),
    tessera:negate(tessera:mean(tessera:multiply(tessera:log_softmax(Logits), Y))).

step(P, Loss) ->
    {L, G} = (tessera:value_and_grad(Loss))(P),
    {L, maps:map(fun(Key, W) -> tessera:subtract(W, tessera:multiply(map_get(Key, G), 0.01)) end, P)}.

%% ---- the others

reduced(How, X) -> tessera:How(X, #{axes => [-1], keep_axes => true}).

%% Of a table in parts: zeros for rows of other parts.
own_rows(Table, Words) ->
    Rows = element(1, tessera:shape(Table)),
    Own = tessera:subtract(Words, tessera:multiply(tessera_mesh:axis_index(model), Rows)),
    Here = tessera:logical_and(tessera:greater_equal(Own, 0), tessera:less(Own, Rows)),
    Taken = tessera:take(Table, tessera:min(tessera:max(Own, 0), Rows - 1)),
    tessera_mesh:all_reduce(tessera:select(tessera:new_axis(Here, -1), Taken, 0), sum, model).

%% x [batch, time, model], projections [model, heads, size] and [heads, size, model].
attention(X, Q, K, V, O) ->
    [Qs, Ks, Vs] = [tessera:dot(X, [2], W, [0]) || W <- [Q, K, V]],                  % [batch, time, heads, size]
    Scores = tessera:dot(Qs, [3], [0, 2], Ks, [3], [0, 2]),                          % [batch, heads, time, time]
    Weights = tessera:softmax(tessera:divide(Scores, math:sqrt(element(3, tessera:shape(Q))))),
    Mixed = tessera:dot(Weights, [3], [0, 1], Vs, [1], [0, 2]),                      % [batch, heads, time, size]
    tessera:dot(Mixed, [1, 3], O, [0, 1]).

layer_norm(X, G, B, Mean) ->
    Centred = tessera:subtract(X, Mean(X)),
    Variance = Mean(tessera:multiply(Centred, Centred)),
    tessera:add(tessera:multiply(tessera:multiply(Centred, tessera:rsqrt(tessera:add(Variance, 1.0e-5))), G), B).

%% New centres: sums and counts of each cluster are one message.
k_means(X, Centres, Sum) ->
    Count = element(1, tessera:shape(Centres)),
    Far = tessera:subtract(tessera:sum(tessera:multiply(Centres, Centres), #{axes => [1]}),
                           tessera:multiply(tessera:dot(X, [1], Centres, [1]), 2)),
    Member = tessera:one_hot(tessera:argmin(Far, #{axis => 1}), Count, f32),
    {Sums, Counts} = Sum({tessera:dot(Member, [0], X, [0]), tessera:sum(Member, #{axes => [0]})}),
    tessera:divide(Sums, tessera:new_axis(tessera:max(Counts, 1), 1)).

squares(X, Y) ->
    D = tessera:subtract(X, Y),
    tessera:sum(tessera:multiply(D, D)).

products(A, B) -> tessera:dot(A, [2], [0], B, [1], [0]).
