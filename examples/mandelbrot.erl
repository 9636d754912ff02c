%% The Mandelbrot set in the terminal: a `while` over whole images.
%%
%%   make example E=mandelbrot
-module(mandelbrot).
-export([main/0]).

-define(WIDTH, 100).
-define(HEIGHT, 40).
-define(LIMIT, 200).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    Draw = tessera:jit(fun counts/2),
    Counts = Draw(axis(-2.2, 0.8, ?WIDTH), axis(-1.2, 1.2, ?HEIGHT)),
    [io:format("~ts~n", [[shade(N) || N <- Row]]) || Row <- tessera:to_list(Counts)],
    ok.

%% How many steps of z := z^2 + c each point takes to leave the circle of radius 2.
counts(X, Y) ->
    Re = tessera:broadcast(tessera:reshape(X, {1, ?WIDTH}), {?HEIGHT, ?WIDTH}),
    Im = tessera:broadcast(tessera:reshape(Y, {?HEIGHT, 1}), {?HEIGHT, ?WIDTH}),
    Zero = tessera:multiply(Re, 0.0),
    Start = {tessera:tensor(0, s32), Zero, Zero, tessera:as_type(Zero, s32)},
    {_, _, _, Counts} = tessera:while(
        Start,
        fun({Step, _, _, _}) -> tessera:less(Step, ?LIMIT) end,
        fun({Step, A, B, N}) ->
                A2 = tessera:multiply(A, A),
                B2 = tessera:multiply(B, B),
                Inside = tessera:less_equal(tessera:add(A2, B2), 4.0),
                NextA = tessera:add(tessera:subtract(A2, B2), Re),
                NextB = tessera:add(tessera:multiply(2.0, tessera:multiply(A, B)), Im),
                {tessera:add(Step, 1),
                 tessera:select(Inside, NextA, A),
                 tessera:select(Inside, NextB, B),
                 tessera:add(N, tessera:as_type(Inside, s32))}
        end),
    Counts.

axis(From, To, N) ->
    Steps = tessera:iota({N}, f32),
    tessera:add(tessera:multiply(Steps, (To - From) / (N - 1)), From).

shade(?LIMIT) -> $#;
shade(N) -> lists:nth(min(N div 2, 7) + 1, " .:-=+*%").
