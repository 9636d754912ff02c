%% k-means (Lloyd's algorithm) on points whose rows are cut over four devices: each finds the nearest centres of its own points,
%% and the sums over the points of a cluster are all that they exchange. The function is the one of the example kmeans.
%%
%%   make example E=mesh_kmeans
-module(mesh_kmeans).
-export([main/0]).

-define(MESH, #{name => <<"rows">>, shape => {4}}).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera:open_client(host, #{device_count => 4}),
    {True, Points, Guess} = kmeans:problem(),
    Fit = tessera:shard_jit(fun kmeans:fit/2, ?MESH, #{input_shardings => [#{0 => [0]}, #{}], output_shardings => #{}}),
    Args = [[Part, Guess] || Part <- tessera_mesh:shard(Points, ?MESH, #{0 => [0]})],
    [{Centres, Steps} | _] = Fit(Args),
    {Whole, _} = kmeans:fit(Points, Guess),
    [Head | _] = string:split(tessera:explain(Fit, [Args]), "\n\n"),
    io:format("~s~n~b points, ~b clusters: ~b steps~n",
              [Head, element(1, tessera:shape(Points)), length(True), tessera:to_number(Steps)]),
    [io:format("  found (~6.3f, ~6.3f)   true (~6.3f, ~6.3f)~n", [X, Y, TX, TY])
     || {[X, Y], {TX, TY}} <- lists:zip(tessera:to_list(Centres), True)],
    Difference = tessera:to_number(tessera:reduce_max(tessera:abs(tessera:subtract(Centres, Whole)))),
    io:format("largest difference to one device: ~.2e~n", [Difference]),
    Difference < 1.0e-2 orelse error({different, Difference}),
    ok.
