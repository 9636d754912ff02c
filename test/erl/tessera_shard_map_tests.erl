%% The local view: tessera:shard_map, collectives by the names of axes, and gradients by the sets of axes over which values vary.
%% Programs run compiled, as a group, and by the interpreter of partitions; wholes are made by the same functions on whole tensors.
-module(tessera_shard_map_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

-define(CLIENT, tessera_shard_map_tests).

mesh(Shape, Axes) ->
    ok = tessera_test:open_mesh(?CLIENT),
    #{shape => Shape, axes => Axes}.

%% A function of whole tensors: arguments are cut, and results are joined.
mapped(F, Mesh, In, Out) -> mapped(F, Mesh, In, Out, #{}).

mapped(F, Mesh, In, Out, Options) ->
    Map = tessera:shard_map(F, Mesh, In, Out, Options#{client => ?CLIENT}),
    fun(Args) ->
            Lists = cut(Args, Mesh, In),
            Results = Map(Lists),
            [near(A, B) || {A, B} <- lists:zip(interpreted(Map, Lists), Results)],
            joined(Results, Mesh, Out)
    end.

cut(Args, Mesh, In) -> transposed([parts(Arg, Mesh, Sharding) || {Arg, Sharding} <- lists:zip(Args, In)]).

transposed([[] | _]) -> [];
transposed(Lists) -> [[hd(List) || List <- Lists] | transposed([tl(List) || List <- Lists])].

%% Of a container, too: one sharding, or a container of them.
parts(#tessera{} = Tensor, Mesh, Sharding) -> tessera_mesh:shard(Tensor, Mesh, Sharding, ?CLIENT);
parts(Map, Mesh, Sharding) when is_map(Map) ->
    Lists = [parts(Value, Mesh, case Sharding of #{Key := Own} -> Own; _ -> Sharding end)
             || {Key, Value} <- lists:sort(maps:to_list(Map))],
    [maps:from_list(lists:zip(lists:sort(maps:keys(Map)), List)) || List <- transposed(Lists)].

joined([#tessera{} | _] = Parts, Mesh, Sharding) -> tessera_mesh:gather(Parts, Mesh, Sharding);
joined([Tuple | _] = Parts, Mesh, Shardings) when is_tuple(Tuple) ->
    Spec = case is_tuple(Shardings) of true -> tuple_to_list(Shardings); false -> [Shardings || _ <- tuple_to_list(Tuple)] end,
    list_to_tuple([joined(Own, Mesh, S) || {Own, S} <- lists:zip(transposed([tuple_to_list(P) || P <- Parts]), Spec)]);
joined([Map | _] = Parts, Mesh, Sharding) when is_map(Map) ->
    maps:map(fun(Key, _) ->
                     joined([map_get(Key, P) || P <- Parts], Mesh, case Sharding of #{Key := Own} -> Own; _ -> Sharding end)
             end, Map).

interpreted(Map, Lists) -> tessera_shard:interpret(Map, Lists).

text(F, Mesh, In, Out, Args) ->
    Map = tessera:shard_map(F, Mesh, In, Out, #{client => ?CLIENT}),
    tessera_nif:graph_text(element(1, tessera_nif:combine(tessera_shard:whole(Map, [cut(Args, Mesh, In)])))).

%% Names of the collectives of a program, in order.
collectives(Text) ->
    {match, Found} = re:run(<<Text/binary, "= end_collective ">>, "= ((?:all_|reduce_scatter|collective_|barrier|end_)[a-z_]*) ",
                            [global, {capture, all_but_first, list}]),
    lists:droplast(lists:append(Found)).

%% Functions such as tanh are not the same in the interpreter.
near(A, B) -> close(A, B, 1.0e-6).

close(A, B) -> close(A, B, 1.0e-5).

close(#tessera{} = A, #tessera{} = B, Bound) ->
    ?assertEqual({A#tessera.type, A#tessera.shape}, {B#tessera.type, B#tessera.shape}),
    Scale = tessera:to_number(tessera:add(1, tessera:reduce_max(tessera:abs(B)))),
    Error = tessera:to_number(tessera:reduce_max(tessera:abs(tessera:subtract(A, B)))),
    ?assert(Error =< Bound * Scale, {tessera:to_list(A), tessera:to_list(B)});
close(A, B, Bound) when is_map(A) -> [close(V, map_get(K, B), Bound) || {K, V} <- maps:to_list(A)], ok;
close(A, B, Bound) when is_tuple(A) -> [close(X, Y, Bound) || {X, Y} <- lists:zip(tuple_to_list(A), tuple_to_list(B))], ok.

random(Shape, Seed) -> element(1, tessera_random:normal(tessera_random:key(Seed), 0, 1, Shape)).

%% ---- collectives

contraction_test() ->
    Mesh = mesh({2, 2}, [a, b]),
    F = mapped(fun(X, W) -> tessera_mesh:all_reduce(tessera:dot(X, W), sum, b) end, Mesh,
               [#{0 => [a], 1 => [b]}, #{0 => [b]}], #{0 => [a]}),
    {X, W} = {tessera:iota({4, 4}, f32), tessera:iota({4, 3}, f32)},
    ?assertEqual(tessera:to_list(tessera:dot(X, W)), tessera:to_list(F([X, W]))).

gradients_are_one_message_test() ->
    Mesh = mesh({4}, [batch]),
    {X, P} = {random({8, 3}, 1), #{w => random({3, 2}, 2), b => random({2}, 3)}},
    Local = fun(#{w := W, b := B}, X1) -> tessera:mean(tessera:tanh(tessera:add(tessera:dot(X1, W), B))) end,
    Step = fun(P1, X1) ->
                   (tessera:value_and_grad(fun(P2) -> tessera_mesh:all_reduce(Local(P2, X1), mean, batch) end))(P1)
           end,
    ?assertEqual(["all_reduce_sum"], collectives(text(Step, Mesh, [#{}, #{0 => [batch]}], #{}, [P, X]))),
    close((mapped(Step, Mesh, [#{}, #{0 => [batch]}], #{}))([P, X]), (tessera:value_and_grad(fun(P2) -> Local(P2, X) end))(P)).

%% Each collective against its meaning on whole tensors.
meaning_test_() ->
    Mesh = mesh({2, 3}, [a, b]),
    X = random({12, 6}, 5),
    Rows = fun(From, Count) -> tessera:slice(X, [From, 0], [Count, 6]) end,
    Both = #{0 => [a, b]},
    Whole = fun(Parts) -> tessera:to_list(tessera:concatenate(Parts, 0)) end,
    Cases =
        [{all_gather, fun(P) -> tessera_mesh:all_gather(P, 0, [a, b]) end, #{}, X},
         {all_gather_of_one, fun(P) -> tessera_mesh:all_gather(P, 0, b) end, #{0 => [a]}, X},
         {reduce_scatter, fun(P) -> tessera_mesh:reduce_scatter(tessera:concatenate([P, P], 0), 0, a) end, Both,
          tessera:concatenate([S || _ <- "12", B <- [0, 1, 2],
                                    S <- [tessera:add(Rows(2 * B, 2), Rows(6 + 2 * B, 2))]], 0)},
         {shift, fun(P) -> tessera_mesh:shift(P, 1, b) end, Both,
          tessera:concatenate([Rows(2 * I, 2) || I <- [2, 0, 1, 5, 3, 4]], 0)},
         {permute, fun(P) -> tessera_mesh:permute(P, [{5, 0}, {0, 1}], [a, b]) end, Both,
          tessera:concatenate([Rows(10, 2), Rows(0, 2), tessera:zeros({8, 6})], 0)},
         {broadcast_from, fun(P) -> tessera_mesh:broadcast_from(P, 2, b) end, #{0 => [a]},
          tessera:concatenate([Rows(4, 2), Rows(10, 2)], 0)},
         {all_to_all, fun(P) -> tessera_mesh:all_to_all(P, 1, 0, b) end, #{0 => [a], 1 => [b]}, X},
         {axis_index, fun(_) ->
                              Index = tessera:add(tessera:multiply(tessera_mesh:axis_index(a), 10), tessera_mesh:axis_index([b, a])),
                              tessera:multiply(tessera:ones({2, 6}), Index)
                      end, Both,
          tessera:concatenate([tessera:full({2, 6}, 10 * A + 2 * B + A, f32) || A <- [0, 1], B <- [0, 1, 2]], 0)},
         {max, fun(P) -> tessera_mesh:all_reduce(P, max, a) end, #{0 => [b]}, tessera:max(Rows(0, 6), Rows(6, 6))},
         {mean, fun(P) -> tessera_mesh:all_reduce(P, mean, [a]) end, #{0 => [b]},
          tessera:divide(tessera:add(Rows(0, 6), Rows(6, 6)), 2)},
         {barrier, fun(P) -> tessera_mesh:barrier(P, b) end, Both, X}],
    [{atom_to_list(Name), fun() -> ?assertEqual(Whole([Expected]), Whole([(mapped(F, Mesh, [Both], Out))([X])])) end}
     || {Name, F, Out, Expected} <- Cases].

sizes_are_integers_test() ->
    Mesh = mesh({2, 3}, [a, b]),
    F = fun(X) -> tessera:multiply(X, tessera_mesh:axis_size(b) * 10 + tessera_mesh:axis_size([a, b])) end,
    ?assertEqual([36, 36], tessera:to_list((mapped(F, Mesh, [#{}], #{}))([tessera:tensor([1, 1])]))).

%% Numbers and tensors of any container are one message.
containers_test() ->
    Mesh = mesh({2}, [a]),
    F = fun(P) -> tessera_mesh:all_reduce(#{x => P, n => 1, l => {P, [2.5]}}, sum, a) end,
    Map = tessera:shard_map(F, Mesh, [#{0 => [a]}], #{}, #{client => ?CLIENT}),
    [#{x := X, n := N, l := {_, [L]}} | _] = Map([[tessera:tensor([1, 2])], [tessera:tensor([3, 4])]]),
    ?assertEqual({[4, 6], 2, 5.0}, {tessera:to_list(X), tessera:to_number(N), tessera:to_number(L)}),
    ?assertEqual(["all_reduce_sum"], collectives(text(F, Mesh, [#{0 => [a]}], #{}, [tessera:iota({2})]))).

%% Tensors that the function holds are arguments of all partitions; the coordinates come after them.
environment_test() ->
    Mesh = mesh({2}, [a]),
    Held = tessera:tensor([10.0, 20.0]),
    F = fun(X) -> tessera:add(tessera:multiply(X, tessera_mesh:axis_index(a)), Held) end,
    Parts = [[tessera:tensor([1.0, 2.0])], [tessera:tensor([3.0, 4.0])]],
    Map = tessera:shard_map(F, Mesh, [#{0 => [a]}], #{0 => [a]}, #{client => ?CLIENT}),
    ?assertEqual([[10.0, 20.0], [13.0, 24.0]], [tessera:to_list(R) || R <- Map(Parts)]),
    ?assertEqual([{?CLIENT, 0}, {?CLIENT, 1}], [tessera:device(R) || R <- Map(Parts)]).

%% One partition needs no collectives; the set of axes over which values vary is the same.
one_partition_test() ->
    Mesh = #{shape => {1, 1}, axes => [a, b]},
    F = fun(X, W) ->
                Loss = fun(W1) -> tessera_mesh:all_reduce(tessera:sum(tessera:multiply(X, W1)), sum, [a, b]) end,
                {tessera:add(tessera_mesh:shift(X, 1, a), tessera_mesh:axis_index(b)), (tessera:grad(Loss))(W)}
        end,
    Map = tessera:shard_map(F, Mesh, [#{0 => [a, b]}, #{}], {#{0 => [a, b]}, #{}}),
    [{Y, G}] = Map([[tessera:tensor([1.0, 2.0]), 3.0]]),
    ?assertEqual({[1.0, 2.0], 3.0}, {tessera:to_list(Y), tessera:to_number(G)}),
    Ahead = fun(X) -> tessera_mesh:permute(X, [{I, I + 1} || I <- lists:seq(0, tessera_mesh:axis_size(a) - 2)], a) end,
    [begin
         [Z] = (tessera:shard_map(Ahead, Mesh, [#{0 => [a]}], #{0 => [a]}, Options))([[tessera:tensor([1.0, 2.0])]]),
         ?assertEqual([0.0, 0.0], tessera:to_list(Z))
     end || Options <- [#{}, #{simplify => false, fuse => false}]],
    refused(invalid_argument, "varies over a", fun() -> (tessera:shard_map(fun(X) -> X end, Mesh, [#{0 => [a]}], #{}))([[tessera:iota({2})]]) end).

%% A combiner is called for each element.
combiners_have_no_collectives_test() ->
    Mesh = mesh({2}, [a]),
    F = fun(X) -> tessera:reduce(X, 0.0, fun(A, B) -> tessera:add(B, tessera_mesh:all_reduce(A, sum, a)) end) end,
    refused(invalid_argument, "the combiner calls back or has a collective", F, Mesh, [#{0 => [a]}], #{}, [tessera:iota({4}, f32)]).

donated_arguments_are_gone_test() ->
    Mesh = mesh({2}, [a]),
    Map = tessera:shard_map(fun(X) -> tessera_mesh:all_reduce(X, sum, a) end, Mesh, [#{0 => [a]}], #{}, #{client => ?CLIENT, donate => [1]}),
    Lists = cut([tessera:iota({4}, f32)], Mesh, [#{0 => [a]}]),
    ?assertEqual([[2.0, 4.0], [2.0, 4.0]], [tessera:to_list(R) || R <- Map(Lists)]),
    [?assertError({failed_precondition, _}, tessera:to_list(X)) || [X] <- Lists].

%% ---- gradients

%% Megatron's MLP on a mesh of batch and model: one sum over the model forward, one backward for the layer's input, and the
%% gradients' sum over the batch.
tensor_parallel_test() ->
    Mesh = mesh({2, 4}, [batch, model]),
    P = #{w0 => random({6, 6}, 1), w1 => random({6, 8}, 2), b1 => random({8}, 3), w2 => random({8, 5}, 4), b2 => random({5}, 5)},
    In = #{w0 => #{}, w1 => #{1 => [model]}, b1 => #{0 => [model]}, w2 => #{0 => [model]}, b2 => #{}},
    Net = fun(Sum) ->
                  fun(#{w0 := W0, w1 := W1, b1 := B1, w2 := W2, b2 := B2}, X) ->
                          X1 = tessera:tanh(tessera:dot(X, W0)),
                          H = tessera:tanh(tessera:add(tessera:dot(X1, W1), B1)),
                          tessera:sum(tessera:sin(tessera:add(Sum(tessera:dot(H, W2)), B2)))
                  end
          end,
    Local = Net(fun(T) -> tessera_mesh:all_reduce(T, sum, model) end),
    Step = fun(P1, X) ->
                   (tessera:value_and_grad(fun(P2) -> tessera_mesh:all_reduce(Local(P2, X), sum, batch) end))(P1)
           end,
    Out = {#{}, In},
    X = random({4, 6}, 6),
    Whole = (tessera:value_and_grad(fun(P2) -> (Net(fun(T) -> T end))(P2, X) end))(P),
    close((mapped(Step, Mesh, [In, #{0 => [batch]}], Out))([P, X]), Whole),
    %% forward, w0 over the model; loss and gradients over the batch
    Text = text(Step, Mesh, [In, #{0 => [batch]}], Out, [P, X]),
    ?assert(length(collectives(Text)) =< 4, Text).

%% Weights that are kept in parts are gathered for their use, and their gradients scattered.
gathered_weights_test() ->
    Mesh = mesh({4}, [data]),
    Loss = fun(Gather) ->
                   fun(W, X) -> tessera:sum(tessera:tanh(tessera:dot(X, Gather(W)))) end
           end,
    Sharded = Loss(fun(W) -> tessera_mesh:all_gather(W, 0, data) end),
    Step = fun(W, X) -> (tessera:grad(fun(W1) -> tessera_mesh:all_reduce(Sharded(W1, X), sum, data) end))(W) end,
    {W, X} = {random({8, 3}, 1), random({4, 8}, 2)},
    In = [#{0 => [data]}, #{0 => [data]}],
    close((mapped(Step, Mesh, In, #{0 => [data]}))([W, X]), (tessera:grad(fun(W1) -> (Loss(fun(T) -> T end))(W1, X) end))(W)),
    ?assertEqual(["all_gather", "reduce_scatter"], collectives(text(Step, Mesh, In, #{0 => [data]}, [W, X]))).

%% Cotangents of a cond's complex results are marked and summed like real ones.
complex_cond_test() ->
    Mesh = mesh({2}, [a]),
    Loss = fun(W, X, Cond, Sum) ->
                   {R, Z} = Cond(tessera:greater(tessera:sum(W), 0),
                                 fun() -> C = tessera:complex(tessera:multiply(W, X), W), {tessera:sin(X), tessera:multiply(C, C)} end,
                                 fun() -> {X, tessera:complex(W, X)} end),
                   Sum(tessera:add(tessera:sum(R), tessera:sum(tessera:imag(Z))))
           end,
    Step = fun(W, X) ->
                   (tessera:grad(fun(W1) -> Loss(W1, X, fun tessera:'cond'/3, fun(T) -> tessera_mesh:all_reduce(T, sum, a) end) end))(W)
           end,
    %% The same without a cond.
    Whole = fun(Taken) -> tessera:grad(fun(W, X) -> Loss(W, X, fun(_, A, B) -> (element(Taken, {A, B}))() end, fun(T) -> T end) end) end,
    [begin
         X = random({4, 3}, 2),
         close((mapped(Step, Mesh, [#{}, #{0 => [a]}], #{}))([W, X]), (Whole(Taken))(W, X))
     end || {Taken, W} <- [{1, tessera:tensor([0.5, -0.25, 1.0])}, {2, tessera:tensor([0.5, -0.25, -1.0])}]].

%% Without the sets of axes the gradient of a sum over partitions would be off by the number of partitions.
sum_of_losses_test() ->
    Mesh = mesh({4}, [a]),
    F = fun(W) -> (tessera:grad(fun(W1) -> tessera_mesh:all_reduce(tessera:multiply(W1, W1), sum, a) end))(W) end,
    ?assertEqual([24.0, 24.0, 24.0, 24.0],
                 [tessera:to_number(R) || R <- (tessera:shard_map(F, Mesh, [#{}], #{}, #{client => ?CLIENT}))([[3.0] || _ <- "1234"])]).

%% A loss that varies counts as the sum over all partitions; each partition has its own gradient of a varied weight.
local_losses_test() ->
    Mesh = mesh({2}, [a]),
    Loss = fun(X) -> fun(W) -> tessera:sum(tessera:multiply(W, X)) end end,
    Run = fun(F, Out) ->
                  Map = tessera:shard_map(F, Mesh, [#{}, #{0 => [a]}], Out, #{client => ?CLIENT}),
                  [tessera:to_number(R) || R <- Map([[1.0, tessera:tensor([1.0, 2.0])], [1.0, tessera:tensor([10.0, 20.0])]])]
          end,
    ?assertEqual([33.0, 33.0], Run(fun(W, X) -> (tessera:grad(Loss(X)))(W) end, #{})),
    Own = fun(W, X) -> tessera:reshape((tessera:grad(Loss(X)))(tessera_mesh:vary(W, a)), {1}) end,
    Map = tessera:shard_map(Own, Mesh, [#{}, #{0 => [a]}], #{0 => [a]}, #{client => ?CLIENT}),
    ?assertEqual([[3.0], [30.0]],
                 [tessera:to_list(R) || R <- Map([[1.0, tessera:tensor([1.0, 2.0])], [1.0, tessera:tensor([10.0, 20.0])]])]).

%% Softmax over a sharded axis: the largest element is a constant.
sharded_softmax_test() ->
    Mesh = mesh({4}, [a]),
    Softmax = fun(X) ->
                      Top = tessera_mesh:all_reduce(tessera:reduce_max(tessera:stop_grad(X), #{axes => [1], keep_axes => true}), max, a),
                      E = tessera:exp(tessera:subtract(X, Top)),
                      tessera:divide(E, tessera_mesh:all_reduce(tessera:sum(E, #{axes => [1], keep_axes => true}), sum, a))
              end,
    Loss = fun(S, X, T) -> tessera:sum(tessera:multiply(S(X), T)) end,
    {X, T} = {random({3, 8}, 1), random({3, 8}, 2)},
    Cut = #{1 => [a]},
    Step = fun(X1, T1) -> (tessera:grad(fun(X2) -> tessera_mesh:all_reduce(Loss(Softmax, X2, T1), sum, a) end))(X1) end,
    close((mapped(Step, Mesh, [Cut, Cut], Cut))([X, T]),
          (tessera:grad(fun(X2) -> Loss(fun(Y) -> tessera:softmax(Y, #{axes => [1]}) end, X2, T) end))(X)),
    Max = fun(X1) -> (tessera:grad(fun(X2) -> tessera_mesh:all_reduce(tessera:sum(X2), max, a) end))(X1) end,
    refused(unimplemented, "through all_reduce max", Max, Mesh, [Cut], Cut, [X]).

second_derivatives_test() ->
    Mesh = mesh({2}, [a]),
    F = fun(X, W) -> tessera:sum(tessera:sin(tessera:multiply(X, tessera:multiply(W, W)))) end,
    Twice = fun(Loss) ->
                    fun(X, W) ->
                            G = fun(W1) -> tessera:sum(tessera:multiply((tessera:grad(fun(W2) -> Loss(X, W2) end))(W1), W1)) end,
                            (tessera:grad(G))(W)
                    end
            end,
    {X, W} = {random({6, 3}, 1), random({3}, 2)},
    Local = fun(X1, W1) -> tessera_mesh:all_reduce(F(X1, W1), sum, a) end,
    close((mapped(Twice(Local), Mesh, [#{0 => [a]}, #{}], #{}))([X, W]), (Twice(F))(X, W), 1.0e-4).

%% Training in a loop: the loop variables are replicated before and after each iteration.
training_loop_test() ->
    Mesh = mesh({4}, [a]),
    Train = fun(Sum) ->
                    fun(W, X) ->
                            Loss = fun(W1) -> Sum(tessera:sum(tessera:sin(tessera:dot(X, W1)))) end,
                            {_, Last} = tessera:while({0, W}, fun({I, _}) -> tessera:less(I, 5) end,
                                                      fun({I, W1}) ->
                                                              G = (tessera:grad(Loss))(W1),
                                                              {tessera:add(I, 1), tessera:subtract(W1, tessera:multiply(G, 0.01))}
                                                      end),
                            Last
                    end
            end,
    {W, X} = {random({3}, 1), random({8, 3}, 2)},
    Sum = fun(L) -> tessera_mesh:all_reduce(L, sum, a) end,
    close((mapped(Train(Sum), Mesh, [#{}, #{0 => [a]}], #{}))([W, X]), (Train(fun(L) -> L end))(W, X)).

%% A loop variable that comes to vary does so from the beginning: its gradient in the body is not summed.
growing_loop_test() ->
    Mesh = mesh({2}, [a]),
    F = fun(W, X) ->
                {_, Last} = tessera:while({0, W}, fun({I, _}) -> tessera:less(I, 2) end,
                                          fun({I, W1}) ->
                                                  G = (tessera:grad(fun(W2) -> tessera:sum(tessera:multiply(tessera:multiply(W2, W2), X)) end))(W1),
                                                  {tessera:add(I, 1), tessera:add(tessera:add(W1, G), tessera:multiply(tessera:sum(X), 0))}
                                          end),
                tessera:reshape(Last, {1})
        end,
    Map = tessera:shard_map(F, Mesh, [#{}, #{0 => [a]}], #{0 => [a]}, #{client => ?CLIENT}),
    Args = [[1.0, tessera:tensor([1.0])], [1.0, tessera:tensor([2.0])]],
    %% W + 2 W X, twice
    ?assertEqual([[9.0], [25.0]], [tessera:to_list(R) || R <- Map(Args)]),
    refused(invalid_argument, "varies over a", F, Mesh, [#{}, #{0 => [a]}], #{}, [tessera:tensor(1.0), tessera:tensor([1.0, 2.0])]).

%% Through branches, whose predicates are replicated or vary.
branches_test_() ->
    Mesh = mesh({2}, [a]),
    F = fun(Sum, Replicated) ->
                fun(W, X) ->
                        L = fun(W1) ->
                                    P = case Replicated of
                                            true -> tessera:greater(tessera:sum(W1), 0);
                                            false -> tessera:greater(tessera:slice(X, [0], [1]), 0)
                                        end,
                                    Y = tessera:'cond'(tessera:reshape(P, {}), fun() -> tessera:multiply(X, tessera:sin(W1)) end,
                                                       fun() -> tessera:multiply(W1, W1) end),
                                    Sum(tessera:sum(tessera:tanh(Y)))
                            end,
                        (tessera:grad(L))(W)
                end
        end,
    Sum = fun(L) -> tessera_mesh:all_reduce(L, sum, a) end,
    Each = fun(W, X, Own) -> %% the sum over the parts
                   [A, B] = [(F(fun(L) -> L end, Own))(W, tessera:slice(X, [I], [1])) || I <- [0, 1]],
                   tessera:add(A, B)
           end,
    [fun() -> close((mapped(F(Sum, Own), Mesh, [#{}, #{0 => [a]}], #{}))([W, X]), Each(W, X, Own)) end
     || Own <- [true, false], W <- [tessera:tensor([0.5]), tessera:tensor([-0.5])], X <- [tessera:tensor([0.3, -0.7])]].

%% ---- random programs

%% Of values f64[6,6] of one partition. Gradients are compared with differences of the program itself.
random_programs_test_() ->
    [{lists:flatten(io_lib:format("seed ~b", [Seed])), {timeout, 60, fun() -> random_program(Seed) end}} || Seed <- lists:seq(1, 60)].

random_program(Seed) ->
    rand:seed(exsss, {Seed, 7, 11}),
    {Shape, Axes} = pick([{{2}, [a]}, {{3}, [a]}, {{2, 2}, [a, b]}, {{2, 3}, [a, b]}, {{2, 1, 2}, [a, b, c]}, {{6}, [a]}]),
    Mesh = mesh(Shape, Axes),
    In = [random_sharding(Axes) || _ <- "123"],
    Steps = [random_step(Shape, Axes, I) || I <- lists:seq(3, 3 + rand:uniform(7))],
    Values = [whole(Mesh, Sharding, I + 10 * Seed) || {Sharding, I} <- lists:zip(In, [1, 2, 3])],
    Loss = fun(Inputs) ->
                   Made = lists:foldl(fun(Step, Known) -> Known ++ [Step(Known)] end, Inputs, Steps),
                   Last = lists:foldl(fun tessera:add/2, hd(Made), tl(Made)),
                   tessera:divide(tessera_mesh:all_reduce(tessera:sum(tessera:tanh(Last)), sum, Axes), 100)
           end,
    Value = mapped(fun(A, B, C) -> Loss([A, B, C]) end, Mesh, In, #{}),
    Gradient = mapped(fun(A, B, C) -> (tessera:grad(fun({A1, B1, C1}) -> Loss([A1, B1, C1]) end))({A, B, C}) end, Mesh, In,
                      list_to_tuple(In)),
    Direction = [whole(Mesh, Sharding, I + 100000) || {Sharding, I} <- lists:zip(In, [1, 2, 3])],
    At = fun(Step) -> tessera:to_number(Value([tessera:add(V, tessera:multiply(D, Step)) || {V, D} <- lists:zip(Values, Direction)])) end,
    Expected = (At(1.0e-5) - At(-1.0e-5)) / 2.0e-5,
    Products = [tessera:to_number(tessera:sum(tessera:multiply(G, D)))
                || {G, D} <- lists:zip(tuple_to_list(Gradient(Values)), Direction)],
    Given = lists:sum(Products),
    Scale = 1 + lists:sum([abs(P) || P <- Products]),
    ?assert(abs(Given - Expected) =< 2.0e-6 * Scale, {Seed, Given, Expected}).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

random_sharding(Axes) ->
    lists:foldl(fun(Axis, Sharding) ->
                        case rand:uniform(3) of
                            1 -> Sharding;
                            Dim -> maps:update_with(Dim - 2, fun(Own) -> Own ++ [Axis] end, [Axis], Sharding)
                        end
                end, #{}, Axes).

%% A tensor with parts f64[6,6].
whole(#{shape := Shape, axes := Axes}, Sharding, Seed) ->
    Sizes = maps:from_list(lists:zip(Axes, tuple_to_list(Shape))),
    [Rows, Columns] = [lists:foldl(fun(Axis, N) -> N * map_get(Axis, Sizes) end, 6, maps:get(Dim, Sharding, [])) || Dim <- [0, 1]],
    tessera:as_type(random({Rows, Columns}, Seed), f64).

random_axes(Axes) ->
    case [Axis || Axis <- Axes, rand:uniform(2) =:= 1] of
        [] -> [pick(Axes)];
        Some -> case rand:uniform(2) of 1 -> Some; 2 -> lists:reverse(Some) end
    end.

random_step(Shape, Axes, Known) ->
    [A, B] = [rand:uniform(Known) || _ <- "12"],
    Own = random_axes(Axes),
    Sizes = maps:from_list(lists:zip(Axes, tuple_to_list(Shape))),
    Size = lists:foldl(fun(Axis, N) -> N * map_get(Axis, Sizes) end, 1, Own),
    Dim = rand:uniform(2) - 1,
    Root = rand:uniform(Size) - 1,
    By = rand:uniform(5) - 3,
    Moved = [{From, To} || {From, To} <- lists:zip(lists:seq(0, Size - 1), shuffled(lists:seq(0, Size - 1))), rand:uniform(4) > 1],
    X = fun(Values, I) -> lists:nth(I, Values) end,
    Small = fun(Value) -> tessera:tanh(Value) end,
    pick([fun(V) -> tessera:sin(X(V, A)) end,
          fun(V) -> tessera:add(X(V, A), X(V, B)) end,
          fun(V) -> tessera:multiply(Small(X(V, A)), Small(X(V, B))) end,
          fun(V) -> Small(tessera:dot(X(V, A), X(V, B))) end,
          fun(V) -> Small(tessera:broadcast(tessera:sum(X(V, A), #{axes => [Dim]}), {6, 6})) end,
          fun(V) -> Small(tessera_mesh:all_reduce(X(V, A), sum, Own)) end,
          fun(V) -> tessera_mesh:all_reduce(X(V, A), mean, Own) end,
          fun(V) -> first(tessera:multiply(tessera_mesh:all_gather(X(V, A), Dim, Own), tessera:reshape(ramp(6 * 6 * Size), gathered(Dim, Size))), Dim, Root) end,
          fun(V) -> tessera_mesh:reduce_scatter(tessera:concatenate([tessera:multiply(X(V, A), I) || I <- lists:seq(1, Size)], Dim), Dim, Own) end,
          fun(V) -> case 6 rem Size of
                        0 -> tessera:reshape(tessera_mesh:all_to_all(X(V, A), Dim, 1 - Dim, Own), {6, 6});
                        _ -> X(V, B)
                    end end,
          fun(V) -> tessera_mesh:permute(X(V, A), Moved, Own) end,
          fun(V) -> tessera_mesh:shift(X(V, A), By, Own) end,
          fun(V) -> tessera_mesh:broadcast_from(X(V, A), Root, Own) end,
          fun(V) -> tessera_mesh:barrier(tessera_mesh:vary(X(V, A), Own), Own) end,
          fun(V) -> tessera:multiply(X(V, A), tessera:as_type(tessera:add(tessera_mesh:axis_index(Own), 1), f64)) end,
          fun(V) -> tessera:'cond'(tessera:greater(tessera:sum(X(V, A)), 0), fun() -> Small(X(V, B)) end,
                                   fun() -> tessera:multiply(X(V, A), 0.5) end) end]).

shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

ramp(Count) -> tessera:add(tessera:divide(tessera:iota({Count}, f64), Count), 0.5).

gathered(0, Size) -> {6 * Size, 6};
gathered(1, Size) -> {6, 6 * Size}.

first(X, 0, Root) -> tessera:slice(X, [6 * Root, 0], [6, 6]);
first(X, 1, Root) -> tessera:slice(X, [0, 6 * Root], [6, 6]).

%% ---- errors

refused(Code, Part, F, Mesh, In, Out, Args) ->
    Map = tessera:shard_map(F, Mesh, In, Out, #{client => ?CLIENT}),
    Lists = cut(Args, Mesh, In),
    refused(Code, Part, fun() -> Map(Lists) end).

refused(Code, Part, Call) ->
    try Call() of
        Value -> error({no_error, Value})
    catch error:{Own, Message} when is_binary(Message) ->
            ?assertEqual(Code, Own, Message),
            ?assertNotEqual({nomatch, Message}, {string:find(Message, Part), Message})
    end.

errors_test_() ->
    Mesh = mesh({2, 2}, [a, b]),
    X = tessera:iota({4, 3}, f32),
    Cut = #{0 => [a]},
    Local = fun(Part, F) -> fun() -> refused(invalid_argument, Part, F, Mesh, [Cut], Cut, [X]) end end,
    Varying = fun(P) -> tessera:greater(tessera:reshape(tessera:slice(P, [0, 0], [1, 1]), {}), 0) end,
    [Local("has no axis", fun(P) -> tessera_mesh:all_reduce(P, sum, c) end),
     Local("axis 2 is not valid", fun(P) -> tessera_mesh:all_reduce(P, sum, 2) end),
     Local("occurs twice", fun(P) -> tessera_mesh:all_reduce(P, sum, [a, 0]) end),
     Local("at least one mesh axis", fun(P) -> tessera_mesh:all_reduce(P, sum, []) end),
     Local("expected sum, mean", fun(P) -> tessera_mesh:all_reduce(P, minus, a) end),
     Local("expected a multiple of 2", fun(P) -> tessera_mesh:reduce_scatter(P, 1, a) end),
     Local("axis 2", fun(P) -> tessera_mesh:all_gather(P, 2, a) end),
     Local("no partition of an axis of size 2", fun(P) -> tessera_mesh:permute(P, [{0, 2}], a) end),
     Local("two pairs go to", fun(P) -> tessera_mesh:permute(P, [{0, 1}, {1, 1}], a) end),
     Local("the root is 2", fun(P) -> tessera_mesh:broadcast_from(P, 2, a) end),
     Local("got foo", fun(_) -> tessera_mesh:all_reduce(foo, sum, a) end),
     Local("cond: the predicate varies over a", fun(P) ->
         tessera:'cond'(Varying(P), fun() -> tessera_mesh:all_reduce(P, sum, a) end, fun() -> P end) end),
     Local("cond: the predicate varies over a", fun(P) -> %% whose gradient is a sum over partitions
         tessera:'cond'(Varying(P), fun() -> tessera:multiply(P, (tessera:grad(fun(W) -> tessera:sum(tessera:multiply(P, W)) end))(1.0)) end,
                        fun() -> P end) end),
     Local("while: the predicate varies over a", fun(P) ->
         tessera:while(P, Varying, fun(Q) -> tessera:subtract(tessera_mesh:all_reduce(Q, mean, b), 1) end) end),
     fun() -> refused(invalid_argument, "result 2 varies over a, over which its sharding says", fun(P) -> {P, P} end, Mesh, [Cut],
                      {Cut, #{}}, [X]) end,
     fun() -> refused(invalid_argument, "varies over a", fun(P) -> tessera:add(P, tessera_mesh:axis_index(a)) end, Mesh, [#{}], #{}, [X]) end,
     fun() -> refused(failed_precondition, "all_reduce: expected to be called inside", fun() -> tessera_mesh:all_reduce(1.0, sum, a) end) end,
     fun() -> refused(failed_precondition, "axis_size: expected to be called inside", fun() -> tessera_mesh:axis_size(a) end) end,
     fun() -> refused(failed_precondition, "axis_index", tessera:jit(fun() -> tessera_mesh:axis_index(a) end)) end,
     fun() ->
             Inner = tessera:shard_map(fun(P) -> P end, Mesh, [#{}], #{}, #{client => ?CLIENT}),
             refused(failed_precondition, "while another function is traced", fun() -> (tessera:jit(fun(P) -> hd(Inner([[P], [P], [P], [P]])) end))(X) end)
     end].

unchecked_results_test() ->
    Mesh = mesh({2}, [a]),
    Map = tessera:shard_map(fun(X) -> X end, Mesh, [#{0 => [a]}], #{}, #{client => ?CLIENT, check => false}),
    ?assertEqual([[1], [2]], [tessera:to_list(R) || R <- Map([[tessera:tensor([1])], [tessera:tensor([2])]])]).

wrong_calls_test_() ->
    Mesh = mesh({2}, [a]),
    Id = fun(X) -> X end,
    Map = fun() -> tessera:shard_map(Id, Mesh, [#{0 => [a]}], #{0 => [a]}, #{client => ?CLIENT}) end,
    [V, W] = [tessera:tensor([1.0, 2.0]), tessera:tensor([1.0])],
    [fun() -> refused(invalid_argument, Part, Call) end
     || {Part, Call} <-
            [{"expected a function", fun() -> tessera:shard_map(foo, Mesh, [], #{}) end},
             {"expected a mesh", fun() -> tessera:shard_map(Id, foo, [#{}], #{}) end},
             {"expected 1 input sharding", fun() -> tessera:shard_map(Id, Mesh, [], #{}, #{client => ?CLIENT}) end},
             {"unknown options", fun() -> tessera:shard_map(Id, Mesh, [#{}], #{}, #{foo => 1}) end},
             {"threads is", fun() -> tessera:shard_map(Id, Mesh, [#{}], #{}, #{threads => -1}) end},
             {"donate is", fun() -> tessera:shard_map(Id, Mesh, [#{}], #{}, #{donate => [0]}) end},
             {"check is", fun() -> tessera:shard_map(Id, Mesh, [#{}], #{}, #{check => 1}) end},
             {"client", fun() -> tessera:shard_map(Id, Mesh, [#{}], #{}, #{client => tessera_shard_map_none}) end},
             {"2 argument lists", fun() -> (Map())([[V]]) end},
             {"2 argument lists", fun() -> (Map())(foo) end},
             {"partition 1", fun() -> (Map())([[V], [V, V]]) end},
             {"argument 1 of partition 1", fun() -> (Map())([[V], [W]]) end},
             {"partition 1", fun() -> (Map())([[V], foo]) end},
             {"dim 3", fun() -> (tessera:shard_map(Id, Mesh, [#{3 => [a]}], #{}, #{client => ?CLIENT}))([[V], [V]]) end},
             {"no axis", fun() -> (tessera:shard_map(Id, Mesh, [#{0 => [c]}], #{}, #{client => ?CLIENT}))([[V], [V]]) end},
             {"the sharding of argument 1", fun() -> (tessera:shard_map(Id, Mesh, [foo], #{}, #{client => ?CLIENT}))([[V], [V]]) end},
             {"the sharding of the result", fun() -> (tessera:shard_map(Id, Mesh, [#{}], {#{}, #{}}, #{client => ?CLIENT}))([[V], [V]]) end}]].

%% Old names, in the module tessera, of functions of tessera_mesh: deprecated, and they make the same programs.
old_names_test_() ->
    Taking = [{all_reduce, [sum, a]}, {all_gather, [0, a]}, {reduce_scatter, [0, a]}, {all_to_all, [0, 0, a]}, {permute, [[{0, 1}], a]},
              {shift, [1, a]}, {broadcast_from, [0, a]}, {barrier, [a]}, {vary, [a]}],
    Calls = [{Name, fun(Module, X) -> apply(Module, Name, [X | Args]) end, length(Args) + 1} || {Name, Args} <- Taking] ++
        [{Name, fun(Module, _) -> apply(Module, Name, [a]) end, 1} || Name <- [axis_index, axis_size]],
    Deprecated = lists:append([List || {deprecated, List} <- tessera:module_info(attributes)]),
    [?_assertEqual(lists:sort([{sharding_constraint, 2} | [{Name, Arity} || {Name, _, Arity} <- Calls]]),
                   lists:sort([{Name, Arity} || {Name, Arity, _} <- Deprecated])),
     [?_assertEqual(lists:flatten(io_lib:format("use tessera_mesh:~s/~b", [Name, Arity])), Advice) || {Name, Arity, Advice} <- Deprecated],
     [{atom_to_list(Name), fun() -> ?assertEqual(program(tessera_mesh, Call), program(tessera, Call)) end} || {Name, Call, _} <- Calls]].

program(Module, Call) ->
    Map = tessera:shard_map(fun(X) -> tessera:add(X, tessera:sum(Call(Module, X))) end, mesh({2}, [a]), [#{0 => [a]}], #{0 => [a]},
                            #{client => ?CLIENT}),
    X = tessera:template(f32, {4}),
    tessera:to_text(Map, [[[X], [X]]]).

%% Each argument of each function replaced by invalid terms: an error that names the function.
misuse_test_() ->
    Mesh = mesh({2}, [a]),
    Bad = [foo, <<1>>, <<1:3>>, "text", [1 | 2], self(), make_ref(), fun() -> 1 end, #{foo => bar}, {}, 1 bsl 80, -1, 1.5, [], [foo | bar],
           {tessera, make_ref(), f32, {}}, {tessera, undefined, f32, {2}}, {tessera, [make_ref() | 0], f32, {}}],
    X = fun(P) -> P end,
    Calls = [{all_reduce, [X, sum, a]}, {all_gather, [X, 0, a]}, {reduce_scatter, [X, 0, a]}, {all_to_all, [X, 0, 0, a]},
             {permute, [X, [{0, 1}], a]}, {shift, [X, 1, a]}, {broadcast_from, [X, 0, a]}, {barrier, [X, a]}, {vary, [X, a]},
             {axis_index, [a]}, {axis_size, [a]}],
    [{atom_to_list(Name), fun() -> [misuse(Mesh, Name, Args, N, Term) || N <- lists:seq(1, length(Args)), Term <- Bad] end}
     || {Name, Args} <- Calls].

misuse(Mesh, Name, Args, N, Term) ->
    put(?MODULE, Term), % a function's environment may have tensors only
    F = fun(P) ->
                Given = [case I of
                             N -> get(?MODULE);
                             _ when is_function(A) -> P;
                             _ -> A
                         end || {I, A} <- lists:zip(lists:seq(1, length(Args)), Args)],
                _ = (try apply(tessera_mesh, Name, Given)
                     catch error:{Code, Message}:Trace when is_atom(Code), is_binary(Message) ->
                             {tessera, Name, _, _} = hd([Call || {tessera, Function, _, _} = Call <- Trace, Function =:= Name])
                     end),
                P
        end,
    Map = tessera:shard_map(F, Mesh, [#{0 => [a]}], #{0 => [a]}, #{client => ?CLIENT}),
    [_, _] = Map([[tessera:tensor([1.0, 2.0])], [tessera:tensor([3.0, 4.0])]]),
    ok.

%% ---- text, and callers that die

%% The traced program, and its collectives.
looking_test() ->
    Mesh = mesh({2}, [a]),
    Map = tessera:shard_map(fun(X) -> {tessera_mesh:all_reduce(X, sum, a), tessera_mesh:all_reduce(tessera:sum(X), sum, a)} end, Mesh,
                            [#{0 => [a]}], #{}, #{client => ?CLIENT}),
    Args = [cut([tessera:iota({4}, f32)], Mesh, [#{0 => [a]}])],
    ?assertEqual(["all_reduce_sum", "all_reduce_sum"], collectives(tessera:to_text(Map, Args))),
    ?assertMatch({_, _}, binary:match(tessera:to_text(Map, Args, stablehlo), <<"stablehlo.all_reduce">>)),
    ?assertMatch({_, _}, binary:match(tessera:explain(Map, Args), <<"1 collective, 12 bytes of each of 2 partitions">>)),
    ?assertEqual({#{}, #{}}, tessera_mesh:results(Map, hd(Args))).

text_round_trip_test() ->
    Mesh = mesh({2, 2}, [a, b]),
    F = fun(X, W) ->
                Y = tessera_mesh:all_reduce(tessera:dot(tessera_mesh:all_gather(X, 1, b), tessera_mesh:all_gather(W, 0, b)), sum, a),
                {tessera:add(Y, tessera_mesh:axis_index(b)), tessera_mesh:all_to_all(X, 0, 1, a), tessera_mesh:permute(W, [{0, 1}], [a, b])}
        end,
    Text = text(F, Mesh, [#{0 => [a], 1 => [b]}, #{0 => [b]}], {#{0 => [b]}, #{0 => [a, b]}, #{0 => [a, b]}},
                [tessera:iota({4, 16}, f32), tessera:iota({16, 3}, f32)]),
    ?assertEqual(Text, tessera_nif:graph_text(tessera_nif:parse(Text))).

killed_caller_test_() ->
    {timeout, 60, fun() ->
        Mesh = mesh({4}, [a]),
        Endless = tessera:shard_map(fun(X) ->
                                            tessera:while(X, fun(_) -> tessera:equal(1, 1) end,
                                                          fun(Y) -> tessera_mesh:all_reduce(tessera:tanh(Y), mean, a) end)
                                    end, Mesh, [#{0 => [a]}], #{}, #{client => ?CLIENT, check => false}),
        Lists = cut([random({1024}, 1)], Mesh, [#{0 => [a]}]),
        Before = maps:get(live, tessera:memory()),
        [begin
             {Pid, Monitor} = spawn_monitor(fun() -> Endless(Lists) end),
             timer:sleep(Wait),
             exit(Pid, kill),
             receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(killed, Reason) end
         end || Wait <- [0, 1, 5, 20, 100]],
        tessera_test:until_freed(fun() -> maps:get(live, tessera:memory()) =< Before end)
    end}.
