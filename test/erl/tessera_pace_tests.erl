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

%% A loop over small tensors may take long at any call: then it continues on a dirty scheduler, and can be killed.
loops_of_small_tensors_can_take_long_test_() ->
    {timeout, 120, fun() ->
        Count = fun(X, Y) ->
            {_, Z} = tessera:while({0, Y}, fun({I, _}) -> tessera:less(I, X) end, fun({I, Z}) -> {tessera:add(I, 1), tessera:add(tessera:multiply(Z, 0.5), 1.0)} end),
            Z
        end,
        J = tessera:jit(Count),
        Y = tessera:broadcast(0.0, {8}),
        [?assertEqual([1.75, 1.75], lists:sublist(tessera:to_list(J(tessera:tensor(3, s32), Y)), 2)) || _ <- lists:seq(1, 200)],
        ?assertMatch({match, _}, re:run(explained(Count, [tessera:tensor(3, s32), Y]), "measured: .* on one thread.*native ", [dotall])),
        [?assertEqual(lists:duplicate(8, 2.0), tessera:to_list(J(tessera:tensor(20000000, s32), Y))) || _ <- lists:seq(1, 3)],
        Self = self(),
        {Pid, Ref} = spawn_monitor(fun() -> Self ! {self(), runs}, [J(tessera:tensor(2147483647, s32), Y) || _ <- lists:seq(1, 1000000)] end),
        receive {Pid, runs} -> timer:sleep(100) end,   % it runs, by now on a dirty scheduler
        exit(Pid, kill),
        receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(killed, Reason) end,
        ?assertEqual(1.75, hd(tessera:to_list(J(tessera:tensor(3, s32), Y))))
    end}.

%% What the shapes do not bound, and what does not stop at the head of a loop, is not measured.
loops_are_not_measured_test() ->
    F = fun(X) -> tessera:while(X, fun(Y) -> tessera:less(tessera:sum(Y), 1.0e6) end, fun(Y) -> tessera:multiply(Y, 2.0) end) end,
    J = tessera:jit(F),
    X = tessera:broadcast(1.0, {9000}),
    [J(X) || _ <- lists:seq(1, 10)],
    ?assertEqual(nomatch, re:run(explained(F, [X]), "measured:")).
