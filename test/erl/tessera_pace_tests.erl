%% Programs that learn from their runs where and on how many threads they run: results stay the same meanwhile. test/c/test_pace.c tests the decisions.
-module(tessera_pace_tests).
-include_lib("eunit/include/eunit.hrl").

operands() -> [tessera:from_binary(<< <<(math:sin(I * K)):32/float-little>> || I <- lists:seq(1, 40000) >>, f32, {200, 200}) || K <- [1, 2]].

explained(F, Args) -> unicode:characters_to_list(tessera:explain(F, Args)).

results_stay_the_same_test_() ->
    {timeout, 60, fun() ->
        [A, B] = operands(),
        F = fun(X, Y) -> tessera:add(tessera:dot(X, Y), 1.0) end,
        J = tessera:jit(F),
        First = tessera:to_binary(J(A, B)),
        Callers = [spawn_monitor(fun() -> [First = tessera:to_binary(J(A, B)) || _ <- lists:seq(1, 50)] end) || _ <- lists:seq(1, 4)],
        [receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end || {_, Ref} <- Callers],
        Text = explained(F, [A, B]),
        ?assertMatch({match, _}, re:run(Text, "measured: .* on one thread.*; now runs on (the calling|a dirty CPU) scheduler"))
    end}.

eager_results_stay_the_same_test() ->
    [A, B] = operands(),
    First = tessera:to_binary(tessera:dot(A, B)),
    [?assertEqual(First, tessera:to_binary(tessera:dot(A, B))) || _ <- lists:seq(1, 50)].

%% What the shapes do not bound is not measured.
loops_are_not_measured_test() ->
    F = fun(X) -> tessera:while(X, fun(Y) -> tessera:less(tessera:sum(Y), 1.0e6) end, fun(Y) -> tessera:multiply(Y, 2.0) end) end,
    J = tessera:jit(F),
    X = tessera:broadcast(1.0, {9000}),
    [J(X) || _ <- lists:seq(1, 10)],
    ?assertEqual(nomatch, re:run(explained(F, [X]), "measured:")).
