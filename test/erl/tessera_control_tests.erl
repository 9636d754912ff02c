%% while and cond, with captured values, in each other, and misused.
-module(tessera_control_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/2, raises/3, near/2]).

n(T) -> tessera:to_number(T).

fibonacci(N) ->
    {_, A, _} = tessera:while({0, 0, 1}, fun({I, _, _}) -> tessera:less(I, N) end,
                              fun({I, A, B}) -> {tessera:add(I, 1), B, tessera:add(A, B)} end),
    A.

eager_while_test() -> ?assertEqual(55, n(fibonacci(10))).

jit_while_test() ->
    F = tessera:jit(fun fibonacci/1),
    ?assertEqual([0, 1, 1, 2, 3, 5, 8], [n(F(N)) || N <- lists:seq(0, 6)]).

%% The body uses a matrix from outside.
captured_while_test() ->
    Power = tessera:jit(fun(M, N) ->
        {_, P} = tessera:while({0, tessera:eye(2, f32)}, fun({I, _}) -> tessera:less(I, N) end,
                               fun({I, P}) -> {tessera:add(I, 1), tessera:dot(P, M)} end),
        P
    end),
    ?assertEqual([[1.0, 5.0], [0.0, 1.0]], tessera:to_list(Power(tessera:tensor([[1.0, 1.0], [0.0, 1.0]]), 5))).

large_while_test() ->
    F = tessera:jit(fun(X) ->
        {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 10) end,
                               fun({I, Y}) -> {tessera:add(I, 1), tessera:add(tessera:multiply(Y, 0.5), 1)} end),
        Y
    end),
    near(lists:duplicate(100000, 2 - 2 / 1024), tessera:to_list(F(tessera:zeros({100000})))).

nested_test() ->
    %% sum of i * j for j < i < 5, adding only where i * j is even
    F = tessera:jit(fun(N) ->
        {_, S} = tessera:while({0, 0}, fun({I, _}) -> tessera:less(I, N) end, fun({I, S0}) ->
            {_, S1} = tessera:while({0, S0}, fun({J, _}) -> tessera:less(J, I) end, fun({J, S}) ->
                P = tessera:multiply(I, J),
                {tessera:add(J, 1), tessera:'cond'(tessera:equal(tessera:remainder(P, 2), 0),
                                                   fun() -> tessera:add(S, P) end, fun() -> S end)}
            end),
            {tessera:add(I, 1), S1}
        end),
        S
    end),
    ?assertEqual(lists:sum([I * J || I <- lists:seq(0, 4), J <- lists:seq(0, I - 1), I * J rem 2 =:= 0]), n(F(5))).

cond_test_() ->
    F = tessera:jit(fun(P, X) -> tessera:'cond'(P, fun() -> {tessera:multiply(X, 2), 1} end, fun() -> {X, 2.5} end) end),
    [?_assertEqual({Expected, Tag}, begin {V, T} = F(P, tessera:tensor([3])), {tessera:to_list(V), n(T)} end)
     || {P, Expected, Tag} <- [{1, [6], 1.0}, {0, [3], 2.5}, {-0.5, [6], 1.0}, {tessera:tensor(0.0), [3], 2.5}, {256, [6], 1.0}]].

cond_broadcasts_test() ->
    F = tessera:jit(fun(P) -> tessera:'cond'(P, fun() -> tessera:iota({2}) end, fun() -> 0.5 end) end),
    ?assertEqual([[0.5, 0.5], [0.0, 1.0]], [tessera:to_list(F(P)) || P <- [0, 1]]).

eager_cond_test() ->
    W = tessera:tensor([1, 2]),
    ?assertEqual([2, 3], tessera:to_list(tessera:'cond'(1, fun() -> tessera:add(W, 1) end, fun() -> W end))).

shared_capture_test() ->
    %% Each branch captures something that the other one does not.
    F = tessera:jit(fun(P, A, B, C) ->
        tessera:'cond'(P, fun() -> tessera:add(A, B) end, fun() -> tessera:subtract(C, A) end)
    end),
    ?assertEqual([3, 9], [n(F(P, 1, 2, 10)) || P <- [1, 0]]).

misuse_test_() ->
    Loop = fun(Init, C, B) -> fun() -> tessera:while(Init, C, B) end end,
    Yes = fun(_) -> 1 end,
    [?_test(raises(invalid_argument, Words, F))
     || {Words, F} <-
            [{"form", Loop({0, 1}, Yes, fun({A, _}) -> A end)},
             {"while", Loop(0, Yes, fun(A) -> tessera:add(A, 0.5) end)},
             {"while", Loop(tessera:iota({2}), fun(A) -> A end, fun(A) -> A end)},
             {"carried", Loop({}, Yes, fun(A) -> A end)},
             {"scalar", fun() -> tessera:'cond'(tessera:tensor([1]), fun() -> 1 end, fun() -> 2 end) end},
             {"forms", fun() -> tessera:'cond'(1, fun() -> 1 end, fun() -> {2} end) end},
             {"s32[2] and s32[3]", fun() -> tessera:'cond'(1, fun() -> tessera:iota({2}) end, fun() -> tessera:iota({3}) end) end},
             {"from outside", fun() ->
                 Y = tessera:tensor([5]),
                 (tessera:jit(fun(X) -> tessera:reduce(X, 0, fun(A, B) -> tessera:add(A, tessera:multiply(B, tessera:at(Y, [0]))) end) end))
                     (tessera:iota({3}))
             end}]].

%% A value of a loop is of no use after it; nor is the region left open by an error.
leak_test() ->
    F = tessera:jit(fun(X) ->
        _ = tessera:while(X, fun(A) -> tessera:less(A, 3) end, fun(A) -> put(leaked, tessera:add(A, 1)) , get(leaked) end),
        tessera:add(get(leaked), 1)
    end),
    raises(invalid_argument, "outside", fun() -> F(0) end),
    erase(leaked).

caught_inside_test() ->
    F = tessera:jit(fun(X) ->
        Y = try tessera:while(X, fun(_) -> throw(no) end, fun(A) -> A end) catch throw:no -> tessera:add(X, 1) end,
        tessera:multiply(Y, 2)
    end),
    ?assertEqual(8, n(F(3))).

%% ---- many clauses, and functions in functions

%% The first clause whose number X is, as nested conds.
clauses(X, I, N) when I =:= N -> tessera:negate(X);
clauses(X, I, N) ->
    tessera:'cond'(tessera:equal(tessera:sum(X), I), fun() -> tessera:add(X, I * 10) end,
                   fun() -> clauses(X, I + 1, N) end).

many_clauses_test_() ->
    [{timeout, 60, {integer_to_list(N) ++ " of " ++ Kind, fun() ->
         F = tessera:jit(fun(X) -> clauses(X, 0, N) end),
         [?assertEqual(Expected(I, N), tessera:to_list(F(Of(I)))) || I <- [0, 3, N div 2, N - 1, N, N + 7]]
     end}} || {Kind, Of, Expected} <-
                 [{"scalars", fun tessera:tensor/1, fun(I, N) when I < N -> 11 * I; (I, _) -> -I end},
                  {"vectors", fun(I) -> tessera:tensor([I, 0]) end,
                   fun(I, N) when I < N -> [11 * I, 10 * I]; (I, _) -> [-I, 0] end}],
              N <- [20, 63, 64, 65, 200, 1000]].

%% They have gradients, a text, and a form in StableHLO.
many_clauses_elsewhere_test_() ->
    F = fun(X) -> clauses(X, 0, 200) end,
    Slope = tessera:grad(fun(X) -> tessera:sum(F(X)) end),
    {timeout, 60, fun() ->
         near([1.0, 1.0], tessera:to_list(Slope(tessera:tensor([70.0, 80.0])))),
         near([-1.0, -1.0], tessera:to_list(Slope(tessera:tensor([0.5, 0.0])))),
         [?assertMatch({_, [_ | _]}, {Form, binary:matches(tessera:to_text(F, [tessera:template(f32, {2})], Form), Word)})
          || {Form, Word} <- [{tessera, <<"cond">>}, {stablehlo, <<"stablehlo.if">>}]],
         [Y] = tessera:run_text(tessera:to_text(F, [tessera:template(s32, {2})]), [tessera:tensor([160, 0])]),
         ?assertEqual([1760, 1600], tessera:to_list(Y)),
         ?assertMatch(<<_/binary>>, unicode:characters_to_binary(tessera:explain(F, [tessera:template(f32, {2})])))
     end}.

nested_loops(X, 0) -> tessera:add(X, 1);
nested_loops(X, Depth) ->
    {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 1) end,
                           fun({I, Y}) -> {tessera:add(I, 1), nested_loops(Y, Depth - 1)} end),
    Y.

nested_loops_test_() ->
    [{timeout, 60, ?_assertEqual([1, 2, 3], tessera:to_list((tessera:jit(fun(X) -> nested_loops(X, Depth) end))(
        tessera:iota({3}))))} || Depth <- [65, 300, 1000]].

too_deep_test_() ->
    [?_test(raises(out_of_range, "nested more than 1000 deep", F))
     || F <- [fun() -> (tessera:jit(fun(X) -> clauses(X, 0, 1001) end))(1) end,
              fun() -> (tessera:jit(fun(X) -> clauses(X, 0, 100000) end))(1) end,
              fun() -> (tessera:jit(fun(X) -> nested_loops(X, 1001) end))(1) end]].
