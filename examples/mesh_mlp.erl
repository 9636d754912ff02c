%% A tensor-parallel multilayer perceptron on a mesh of four devices, as in Megatron-LM (Shoeybi et al., 2019). The first weight
%% is cut by columns and the second by rows, so that a forward pass needs one all_reduce and no device has a whole weight.
%%
%%   make example E=mesh_mlp
-module(mesh_mlp).
-export([main/0]).

-define(MESH, #{name => <<"model">>, shape => {4}, axes => [<<"hidden">>]}).
-define(COLUMNS, #{1 => [<<"hidden">>]}).
-define(ROWS, #{0 => [<<"hidden">>]}).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera:open_client(host, #{device_count => 4}),
    _ = rand:seed(exsss, {1, 2, 3}),
    [X, W1, W2] = [random(Shape) || Shape <- [{32, 64}, {64, 512}, {512, 64}]],
    io:format("the first weight:~n~s", [tessera_mesh:draw(W1, ?MESH, ?COLUMNS)]),
    io:format("the second weight:~n~s", [tessera_mesh:draw(W2, ?MESH, ?ROWS)]),
    Forward = tessera:shard_jit(fun forward/3, ?MESH, #{input_shardings => [#{}, ?COLUMNS, ?ROWS], output_shardings => #{}}),
    Args = [[X, A, B] || {A, B} <- lists:zip(tessera_mesh:shard(W1, ?MESH, ?COLUMNS), tessera_mesh:shard(W2, ?MESH, ?ROWS))],
    [Head | _] = string:split(tessera:explain(Forward, [Args]), "\n\n"),
    io:format("~s~n", [Head]),
    [Y | _] = Forward(Args),
    Difference = tessera:reduce_max(tessera:abs(tessera:subtract(Y, forward(X, W1, W2)))),
    io:format("largest difference to one device: ~.2e~n", [tessera:to_number(Difference)]),
    tessera:to_number(Difference) < 1.0e-3 orelse error(different),
    ok.

forward(X, W1, W2) -> tessera:dot(tessera:relu(tessera:dot(X, W1)), W2).

random({Rows, Columns}) -> tessera:tensor([[rand:normal() / 8 || _ <- lists:seq(1, Columns)] || _ <- lists:seq(1, Rows)], f32).
