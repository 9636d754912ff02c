%% A product of matrices that a rank has no memory for: with the same limit of memory one rank refuses it, and four ranks compute it
%% with a part each. Of a 2 x 2 mesh each rank has half of the rows of A, half of the columns of B, and a quarter of the product.
%%
%%   ./setup --mpi && make example E=cluster_product
-module(cluster_product).
-export([main/0]).

-define(SIZE, 1536).
-define(LIMIT, (24 bsl 20)).   % bytes of tensors of a rank
-define(ROWS, #{0 => [<<"rows">>]}).
-define(COLUMNS, #{1 => [<<"columns">>]}).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    _ = rand:seed(exsss, {1, 2, 3}),
    Key = tessera_random:key(1),
    {A, Next} = tessera_random:normal(Key, 0, 1, {?SIZE, ?SIZE}),
    {B, _} = tessera_random:normal(Next, 0, 1, {?SIZE, ?SIZE}),
    io:format("A, B and A B have ~b bytes, a rank may have ~b~n", [3 * 4 * ?SIZE * ?SIZE, ?LIMIT]),
    {error, Why} = multiplied({1, 1}, A, B),
    io:format("one rank: ~ts~n", [Why]),
    {ok, Product, Peaks} = multiplied({2, 2}, A, B),
    io:format("four ranks: done, with at most ~b bytes on a rank~n", [lists:max(Peaks)]),
    check(A, B, Product).

%% The product by as many ranks as the mesh has partitions, and the most bytes of tensors that each had.
multiplied({Rows, Columns} = Shape, A, B) ->
    Mesh = #{shape => Shape, axes => [<<"rows">>, <<"columns">>]},
    Cluster = cluster_digits:start(#{ranks => Rows * Columns, threads => 1, memory_limit => ?LIMIT}),
    F = tessera:shard_jit(fun tessera:dot/2, Mesh,
                          #{client => Cluster, input_shardings => [?ROWS, ?COLUMNS], output_shardings => maps:merge(?ROWS, ?COLUMNS)}),
    Parts = fun(Matrix, Sharding) -> tessera_mesh:shard(Matrix, Mesh, Sharding, Cluster) end,
    try tessera_mesh:gather(F([[X, Y] || {X, Y} <- lists:zip(Parts(A, ?ROWS), Parts(B, ?COLUMNS))]), Mesh, maps:merge(?ROWS, ?COLUMNS)) of
        Product -> {ok, Product, [Peak || #{memory := #{peak := Peak}} <- maps:get(ranks, tessera_cluster:info(Cluster))]}
    catch error:{resource_exhausted, Why} -> {error, Why}
    after tessera_cluster:stop(Cluster)
    end.

%% (A B) x = A (B x) for a random x (Freivalds, 1977), up to rounding.
check(A, B, Product) ->
    X = tessera:tensor([rand:normal() || _ <- lists:seq(1, ?SIZE)], f32),
    Expected = tessera:dot(A, tessera:dot(B, X)),
    Largest = fun(Y) -> tessera:to_number(tessera:reduce_max(tessera:abs(Y))) end,
    Error = Largest(tessera:subtract(tessera:dot(Product, X), Expected)) / Largest(Expected),
    io:format("the product is right: relative error ~.2e~n", [Error]),
    Error < 1.0e-4 orelse error({wrong, Error}),
    ok.
