%% k-means (Lloyd's algorithm) on points around five centres, in one compiled `while`.
%%
%%   make example E=kmeans
-module(kmeans).
-export([main/0]).
-export([problem/0, fit/2]). % of mesh_kmeans, too

-define(POINTS, 20000).
-define(CLUSTERS, 5).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    {True, Points, Guess} = problem(),
    Fit = tessera:jit(fun fit/2),
    {First, _} = timer:tc(fun() -> Fit(Points, Guess) end),
    {Again, {Centres, Steps}} = timer:tc(fun() -> Fit(Points, Guess) end),
    io:format("~b points, ~b clusters: ~b steps in ~.2f ms (first call ~.1f ms)~n",
              [?POINTS, ?CLUSTERS, tessera:to_number(Steps), Again / 1000, First / 1000]),
    [io:format("  found (~6.3f, ~6.3f)   true (~6.3f, ~6.3f)~n", [X, Y, TX, TY])
     || {[X, Y], {TX, TY}} <- lists:zip(tessera:to_list(Centres), True)],
    ok.

%% The true centres, the points around them, and centres to start from.
problem() ->
    _ = rand:seed(exsss, {4, 5, 6}),
    True = [{8 * rand:uniform() - 4, 8 * rand:uniform() - 4} || _ <- lists:seq(1, ?CLUSTERS)],
    Points = tessera:tensor([point(lists:nth(rand:uniform(?CLUSTERS), True)) || _ <- lists:seq(1, ?POINTS)], f32),
    %% one point near each true centre to start from, so that no two clusters start in one place
    {True, Points, tessera:tensor([[X + 0.7, Y - 0.7] || {X, Y} <- True], f32)}.

point({X, Y}) -> [X + 0.4 * rand:normal(), Y + 0.4 * rand:normal()].

%% Until no centre moves by more than 1e-4: {f32[k,2] centres, s32[] steps}.
fit(Points, Guess) ->
    {Centres, _, Steps} = tessera:while(
        {Guess, tessera:tensor(1.0, f32), tessera:tensor(0, s32)},
        fun({_, Moved, _}) -> tessera:greater(Moved, 1.0e-4) end,
        fun({Old, _, Step}) ->
                New = move(Points, Old),
                {New, tessera:reduce_max(tessera:abs(tessera:subtract(New, Old))), tessera:add(Step, 1)}
        end),
    {Centres, Steps}.

%% Every centre moves to the mean of the points that are nearest to it.
move(Points, Centres) ->
    {N, D} = tessera:shape(Points),
    {K, D} = tessera:shape(Centres),
    Difference = tessera:subtract(tessera:reshape(Points, {N, 1, D}), tessera:reshape(Centres, {1, K, D})),
    Distance = tessera:sum(tessera:multiply(Difference, Difference), #{axes => [2]}),
    Nearest = tessera:argmin(Distance, #{axis => 1}),
    Member = tessera:as_type(tessera:equal(tessera:reshape(Nearest, {N, 1}), tessera:iota({1, K}, s32, 1)), f32),
    Sums = tessera:dot(tessera:transpose(Member), Points),
    Counts = tessera:reshape(tessera:max(tessera:sum(Member, #{axes => [0]}), 1.0), {K, 1}),
    tessera:divide(Sums, Counts).
