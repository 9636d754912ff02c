%% The memory that a training step takes, by its plan.
-module(tessera_plan_tests).
-include_lib("eunit/include/eunit.hrl").

%% XLA's memory analysis of the same step (mlp_train_256 in bench/peers.py; jax 0.10.2): arguments, results,
%% temporaries.
-define(XLA_BYTES, 3491880 + 2678884 + 1583104).

a_training_step_is_planned_tightly_test() ->
    {ok, _} = application:ensure_all_started(tessera),
    Template = fun(Shape) -> tessera:template(f32, Shape) end,
    Params = {Template({784, 512}), Template({512}), Template({512, 512}), Template({512}), Template({512, 10}),
              Template({10})},
    #{planned_peak_bytes := Planned, live_peak_bytes := Live} =
        tessera_jit:info(fun step/3, [Template({256, 784}), Template({256, 10}), Params]),
    ?assert(Planned =< 1.1 * Live),
    ?assert(Planned =< ?XLA_BYTES).

%% Loops read unchanged tensors without a copy, and an inner loop reads the outer loop's.
a_captured_tensor_is_not_copied_test() ->
    Times = fun(N, X, F) ->
        {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, N) end, fun({I, Z}) -> {tessera:add(I, 1), F(Z)} end),
        Y
    end,
    F = fun(X, W) -> Times(3, X, fun(Y) -> Times(2, Y, fun(Z) -> tessera:tanh(tessera:dot(Z, W)) end) end) end,
    #{planned_peak_bytes := Planned} =
        tessera_jit:info(F, [tessera:template(f32, {1000}), tessera:template(f32, {1000, 1000})]),
    ?assert(Planned < 4100000),
    W = tessera:divide(tessera:eye(100, f32), 2),
    Expected = lists:foldl(fun(_, Y) -> tessera:tanh(tessera:dot(Y, W)) end, tessera:ones({100}), lists:seq(1, 6)),
    ?assertEqual(tessera:to_list(Expected), tessera:to_list((tessera:jit(F))(tessera:ones({100}), W))).

step(X, Y, Params) ->
    {Loss, Grads} = (tessera:value_and_grad(fun(P) -> loss(X, Y, P) end))(Params),
    {Loss, [tessera:subtract(P, tessera:multiply(0.01, G))
            || {P, G} <- lists:zip(tuple_to_list(Params), tuple_to_list(Grads))]}.

loss(X, Y, {W1, B1, W2, B2, W3, B3}) ->
    H1 = tessera:relu(tessera:add(tessera:dot(X, W1), B1)),
    H2 = tessera:relu(tessera:add(tessera:dot(H1, W2), B2)),
    Z = tessera:add(tessera:dot(H2, W3), B3),
    LogP = tessera:subtract(Z, tessera:logsumexp(Z, #{axes => [1], keep_axes => true})),
    tessera:divide(tessera:negate(tessera:sum(tessera:multiply(Y, LogP))), 256.0).
