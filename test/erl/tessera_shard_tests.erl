%% tessera:shard_jit: results of partitions, against the same function on whole tensors and against the interpreter of
%% partitions; errors; leaks.
-module(tessera_shard_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

-define(CLIENT, sharded).
-define(MESHES, [{1}, {2}, {4}, {3}, {6}, {2, 2}, {2, 1, 2}]).
-define(TYPES, [s2, s4, s8, s16, s32, s64, u2, u4, u8, u16, u32, u64, f8, f8_e4m3fn, f16, bf16, f32, f64, c64, c128]).
-define(raises(Part, Expr), raises(invalid_argument, Part, fun() -> Expr end)).

raises(Code, Part, F) ->
    try F() of
        Result -> error({no_error, Result})
    catch error:{Code, Text} -> ?assertNotEqual({nomatch, Text}, {string:find(Text, Part), Text})
    end.

shard_jit_test_() ->
    {setup, fun start/0, fun(_) -> ok end,
     [{timeout, 300, Check}
      || Check <- [fun check_flow/0, fun check_types/0, fun check_containers/0, fun check_outputs/0, fun check_hidden/0,
                   fun check_replicas/0, fun check_uneven/0, fun check_empty/0, fun check_control/0, fun check_gradient/0,
                   fun check_constraint/0, fun check_random/0, fun check_options/0, fun check_arguments/0, fun check_shardings/0, fun check_tracing/0,
                   fun() -> tessera_eunit:on_host(fun check_donation/0) end, fun check_cache/0, fun check_stale/0, fun check_devices/0, fun check_concurrency/0,
                   fun check_long_sums/0, fun check_infinite_factors/0, fun check_killed/0, fun check_memory/0, fun check_device_memory/0,
                   fun check_sixty_four/0, fun check_reported/0, fun check_looks/0, fun check_failed_allocations/0]]}.

start() ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera_test:open_mesh(?CLIENT).

%% ---- helpers

sharded(F, Shape, Options) -> tessera:shard_jit(F, #{shape => Shape}, Options#{client => ?CLIENT}).

%% The argument lists of whole tensors.
lists(Shape, Args, Shardings) ->
    Parts = [parts(Shape, Arg, Sharding) || {Arg, Sharding} <- lists:zip(Args, Shardings)],
    [[lists:nth(P, Own) || Own <- Parts] || P <- lists:seq(1, count(Shape))].

parts(Shape, #tessera{} = Tensor, Sharding) -> tessera_mesh:shard(Tensor, #{shape => Shape}, Sharding, ?CLIENT);
parts(Shape, Number, _) -> lists:duplicate(count(Shape), Number).

count(Shape) -> tessera_mesh:partitions(#{shape => Shape}).

%% Runs F, a function that returns a list of tensors, sharded and whole, and compares the bits.
same(F, Shape, Args, Shardings) -> same(F, Shape, Args, Shardings, #{}).

same(F, Shape, Args, Shardings, Options) ->
    Sharded = sharded(F, Shape, (maps:without([interpreted, plugin], Options))#{input_shardings => Shardings}),
    Lists = lists(Shape, Args, Shardings),
    Results = Sharded(Lists),
    compare(Options, Results, tessera_shard:interpret(Sharded, Lists)),
    Cuts = tessera_mesh:results(Sharded, Lists),
    Joined = [tessera_mesh:gather(Parts, #{shape => Shape}, Own) || {Parts, Own} <- lists:zip(transposed(Results), Cuts)],
    compare_whole(Options, apply(tessera:jit(F), Args), Joined),
    [check_replicas(Shape, Parts, Own) || {Parts, Own} <- lists:zip(transposed(Results), Cuts)],
    Cuts.

%% The interpreter has linear algebra of its own, whose results are near the compiled ones.
compare(#{interpreted := near}, Results, Interpreted) ->
    [near(1.0e-9, Own, Others) || {Own, Others} <- lists:zip(Results, Interpreted)];
compare(Options, Results, Interpreted) ->
    [compare_whole(Options, Others, Own) || {Own, Others} <- lists:zip(Results, Interpreted)].

%% A plugin has another order of sums, and its factorizations are other algorithms than the host's. The option `plugin` is
%% how far its results may be from the host's.
compare_whole(Options, Whole, Joined) ->
    case {tessera_test:mesh_plugin(), Options} of
        {[_ | _], #{plugin := Bound}} -> near(Bound, Whole, Joined);
        _ -> ?assertEqual(bits(Whole), bits(Joined))
    end.

near(Bound, Whole, Joined) ->
    [begin
         ?assertEqual({A#tessera.type, A#tessera.shape}, {B#tessera.type, B#tessera.shape}),
         ?assert(tessera:to_number(tessera:reduce_max(tessera:abs(tessera:subtract(A, B)))) < Bound)
     end || {A, B} <- lists:zip(Whole, Joined)].

%% Every part equals the slice of the whole tensor.
check_replicas(Shape, Parts, Sharding) ->
    Whole = tessera_mesh:gather(Parts, #{shape => Shape}, Sharding),
    ?assertEqual(bits(parts(Shape, Whole, Sharding)), bits(Parts)).

bits(#tessera{type = Type, shape = Shape} = T) -> {Type, Shape, tessera:to_binary(T)};
bits(Terms) -> [bits(Term) || Term <- Terms].

transposed([[] | _]) -> [];
transposed(Rows) -> [[hd(Row) || Row <- Rows] | transposed([tl(Row) || Row <- Rows])].

values(Terms) -> [tessera:to_list(T) || T <- Terms].

iota(Shape) -> iota(Shape, f32).
iota(Shape, Type) -> tessera:as_type(tessera:subtract(tessera:remainder(tessera:iota(Shape), 7), 2), Type).

%% ---- results

%% A part with one row of a product has the bits of the whole: the order of a sum does not depend on the other dims, nor, for a
%% contraction without free dims, on the number of products.
check_long_sums() ->
    Rows = tessera:divide(iota({4, 9001}), 7.0),
    Column = tessera:divide(iota({9001}), 3.0),
    same(fun(X, Y) -> [tessera:dot(X, Y), tessera:dot(Y, tessera:transpose(X)), tessera:dot(X, [1], [0], X, [1], [0]),
                       tessera:cumulative_sum(X, #{axis => 1})] end,
         {4}, [Rows, Column], [#{0 => [0]}, #{}], #{plugin => 1.0e-2}).

%% Terms of both signs times an infinity would be NaN together.
check_infinite_factors() ->
    X = tessera:tensor([[-1.0, -1.0, -1.0], [3.0, 3.0, 3.0]]),
    same(fun(T) -> [tessera:sum(tessera:multiply(tessera:sum(T, #{axes => [0]}), infinity))] end, {2}, [X], [#{0 => [0]}]).

check_flow() ->
    Product = fun(X, W) -> [tessera:dot(X, W), tessera:sum(X), tessera:add(tessera:dot(X, W), 1), tessera:transpose(X)] end,
    [begin
         Axes = lists:seq(0, tuple_size(Shape) - 1),
         [same(Product, Shape, [iota({12, 24}), iota({24, 12})], Shardings)
          || Shardings <- [[#{}, #{}], [#{0 => Axes}, #{}], [#{}, #{1 => Axes}], [#{1 => Axes}, #{0 => Axes}],
                           [#{0 => [hd(Axes)], 1 => tl(Axes)}, #{-1 => lists:reverse(Axes)}]]]
     end || Shape <- ?MESHES],
    [#{0 := [0], 1 := [1]}, Scalar, _, _] = same(Product, {2, 2}, [iota({4, 8}), iota({8, 6})], [#{0 => [0]}, #{1 => [1]}]),
    ?assertEqual(#{}, Scalar).

check_types() ->
    [same(fun(X, Y) -> [tessera:add(X, X), tessera:concatenate([Y, Y]), tessera:reshape(X, {2, 4})] end, {2, 2},
          [iota({8}, Type), iota({4, 2}, Type)], [#{0 => [0, 1]}, #{0 => [1]}])
     || Type <- ?TYPES, lists:member(Type, [u2, u4, u8, u16, u32, u64]) =:= false] ++
    [same(fun(X) -> [tessera:add(X, X)] end, {2, 2}, [tessera:as_type(tessera:remainder(tessera:iota({8}), 2), Type)],
          [#{0 => [0, 1]}]) || Type <- [u2, u4, u8, u16, u32, u64]].

check_containers() ->
    F = fun({X, [Y]}, #{z := Z, name := none}) -> #{sum => tessera:add(X, Z), rest => {tessera:multiply(Y, 2), x}} end,
    Sharded = sharded(F, {2}, #{input_shardings => [{#{0 => [0]}, [#{}]}, #{z => #{0 => [0]}, name => any}]}),
    One = fun(X, Z) -> [{tessera:tensor(X), [tessera:tensor([5])]}, #{z => tessera:tensor(Z), name => none}] end,
    [#{sum := S0, rest := {R0, x}}, #{sum := S1, rest := {_, x}}] = Sharded([One([1, 2], [10, 20]), One([3, 4], [30, 40])]),
    ?assertEqual([[11, 22], [33, 44], [10]], values([S0, S1, R0])),
    ?assertEqual(#{sum => #{0 => [0]}, rest => {#{}, x}}, tessera_mesh:results(Sharded, [One([1, 2], [1, 2]), One([1, 2], [1, 2])])),
    All = sharded(fun([A, B]) -> [tessera:add(A, B)] end, {2}, #{input_shardings => [#{0 => [0]}]}),   % one for all leaves
    ?assertEqual([[[5]], [[7]]], [values(R) || R <- All([[[tessera:tensor([2]), tessera:tensor([3])]],
                                                         [[tessera:tensor([3]), tessera:tensor([4])]]])]).

check_outputs() ->
    F = fun(X) -> {tessera:add(X, 1), [tessera:sum(X, #{axes => [0]})]} end,
    X = tessera:iota({4, 4}),
    With = fun(Outputs) ->
                   Sharded = sharded(F, {2, 2}, #{input_shardings => [#{0 => [0]}], output_shardings => Outputs}),
                   Lists = lists({2, 2}, [X], [#{0 => [0]}]),
                   {Cuts, Results} = {tessera_mesh:results(Sharded, Lists), Sharded(Lists)},
                   {As, Bs} = lists:unzip(Results),
                   {C, [D]} = Cuts,
                   ?assertEqual(bits([tessera:add(X, 1), tessera:sum(X, #{axes => [0]})]),
                                bits([tessera_mesh:gather(As, #{shape => {2, 2}}, C),
                                      tessera_mesh:gather([B || [B] <- Bs], #{shape => {2, 2}}, D)])),
                   Cuts
           end,
    ?assertEqual({#{}, [#{}]}, With(#{})),
    ?assertEqual({#{0 => [1, 0]}, [#{0 => [0]}]}, With({#{0 => [1, 0]}, [#{0 => [0]}]})),
    ?assertEqual({#{1 => [1]}, [#{0 => [0, 1]}]}, With({#{1 => [1]}, #{0 => [0, 1]}})),
    ?assertMatch({#{0 := [0]}, [#{0 := [1]}]}, With({undefined, [#{0 => [1]}]})).

check_hidden() ->
    W = tessera:tensor([1.0, 2.0, 3.0, 4.0]),
    F = fun(X) -> [tessera:multiply(X, W), tessera:sum(W)] end,
    same(F, {2, 2}, [iota({4, 4})], [#{0 => [0], 1 => [1]}]),
    same(F, {4}, [iota({4, 4})], [#{1 => [0]}]).

%% Replicas are not made equal: each partition computes with its own argument.
check_replicas() ->
    F = sharded(fun(X) -> tessera:add(X, X) end, {2, 2}, #{input_shardings => [#{0 => [0]}]}),
    ?assertEqual([[2], [4], [6], [8]], values(F([[tessera:tensor([N])] || N <- [1, 2, 3, 4]]))).

%% Dims of results that the axes do not divide.
check_uneven() ->
    X = iota({8, 4}),
    [_] = same(fun(A) -> [tessera:slice(A, [0, 0], [3, 4])] end, {2, 2}, [X], [#{0 => [0, 1]}]),
    [_] = same(fun(A) -> [tessera:slice(A, [1, 0], [6, 4])] end, {2, 2}, [X], [#{0 => [0, 1]}]),
    [_] = same(fun(A) -> [tessera:concatenate([A, tessera:slice(A, [0, 0], [1, 4])])] end, {2, 2}, [X], [#{0 => [0, 1]}]),
    ?assertEqual([#{0 => [0]}], same(fun(A) -> [tessera:slice(A, [0, 0], [6, 4])] end, {2, 2}, [X], [#{}],
                                     #{output_shardings => #{0 => [0, 1]}})),
    ?assertEqual([#{1 => [1]}], same(fun(A) -> [tessera:slice(A, [0, 0], [3, 4])] end, {2, 2}, [X], [#{}],
                                     #{output_shardings => #{0 => [0], 1 => [1]}})).

check_empty() ->
    same(fun(X) -> [tessera:add(X, 1), tessera:sum(X)] end, {2, 2}, [tessera:zeros({0, 4})], [#{0 => [0], 1 => [1]}]),
    same(fun(X) -> [X] end, {2}, [tessera:tensor(1)], [#{}]),
    Nothing = sharded(fun() -> tessera:iota({2}) end, {2}, #{input_shardings => []}),
    ?assertEqual([[0, 1], [0, 1]], values(Nothing([[], []]))),
    None = sharded(fun(_) -> {} end, {2}, #{input_shardings => [#{}]}),
    ?assertEqual([{}, {}], None([[1], [1]])).

check_control() ->
    Loop = fun(X, N) ->
                   {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, N) end,
                                          fun({I, Y}) -> {tessera:add(I, 1), tessera:subtract(tessera:remainder(
                                              tessera:add(Y, tessera:sum(Y, #{axes => [0], keep_axes => true})), 11), 3)} end),
                   [Y, tessera:'cond'(tessera:greater(N, 2), fun() -> tessera:sum(Y) end, fun() -> tessera:reduce_max(Y) end)]
           end,
    [same(Loop, Shape, [iota({12, 12}, s32), N], [Sharding, #{}])
     || Shape <- [{2}, {2, 2}, {3}], N <- [0, 1, 5], Sharding <- [#{}, #{0 => [0]}, #{1 => [0]}]].

check_gradient() ->
    Loss = fun(W, X) -> tessera:sum(tessera:multiply(tessera:dot(X, W), tessera:dot(X, W))) end,
    Step = fun(W, X) -> [tessera:subtract(W, (tessera:grad(Loss))(W, X))] end,
    same(Step, {4}, [iota({6, 4}), iota({8, 6})], [#{}, #{0 => [0]}]),
    same(Step, {2, 2}, [iota({6, 4}), iota({8, 6})], [#{1 => [1]}, #{0 => [0]}]),
    %% Some partitions have singular matrices, where determinant's gradient takes another branch; pinv has a rule of its own.
    Rows = [[1, 2, 0, 1], [0, 3, 1, 0], [2, 0, 1, 1], [1, 2, 0, 1]],
    Regular = [[0, 1, 1, 0] | tl(Rows)],
    Matrices = tessera:tensor([Rows, Regular, [[0 || _ <- Row] || Row <- Rows], lists:reverse(Regular)], f64),
    [same(fun(X) -> [(tessera:grad(fun(Y) -> tessera:sum(tessera:multiply(F(Y), tessera:iota(tessera:shape(F(Y)), f64))) end))(X)] end,
          {2}, [Matrices], [Sharding], #{interpreted => near, plugin => 1.0e-9})
     || F <- [fun tessera:determinant/1, fun tessera:pinv/1], Sharding <- [#{}, #{0 => [0]}]].

%% ---- constraints

%% They change how values are cut, and nothing else.
check_constraint() ->
    Whole = fun(Sharding) -> fun(X, Y) -> [tessera_mesh:sharding_constraint(tessera:add(tessera:transpose(X), Y), Sharding)] end end,
    Plain = fun(X, Y) -> [tessera:add(tessera:transpose(X), Y)] end,
    Args = [iota({8, 4}), iota({4, 8})],
    Cuts = fun(Sharding) ->
                   F = sharded(Whole(Sharding), {2, 2}, #{input_shardings => [#{0 => [0]}, #{}]}),
                   Lists = lists({2, 2}, Args, [#{0 => [0]}, #{}]),
                   Results = F(Lists),
                   ?assertEqual(bits(Results), bits(tessera_shard:interpret(F, Lists))),
                   [Own] = tessera_mesh:results(F, Lists),
                   ?assertEqual(bits(apply(tessera:jit(Plain), Args)),
                                bits([tessera_mesh:gather([R || [R] <- Results], #{shape => {2, 2}}, Own)])),
                   Own
           end,
    [?assertEqual(Expected, Cuts(Sharding))
     || {Sharding, Expected} <- [{#{}, #{}}, {#{0 => [1]}, #{0 => [1]}}, {#{-1 => [<<"axis_1">>, 0]}, #{1 => [1, 0]}},
                                 {#{0 => [0], 1 => [1]}, #{0 => [0], 1 => [1]}}]],
    check_constrained_container(),
    check_constrained_gradient(),
    check_constraint_inside(),
    check_constraint_errors().

check_constrained_container() ->
    F = sharded(fun(X) -> #{x => tessera_mesh:sharding_constraint({X, [tessera:add(X, 1), 2]}, #{})} end, {2},
                #{input_shardings => [#{0 => [0]}]}),
    [#{x := {A, [B, C]}}, _] = F([[tessera:tensor([1])], [tessera:tensor([2])]]),
    ?assertEqual([[1, 2], [2, 3], 2], values([A, B]) ++ [tessera:to_number(C)]).

%% The cotangent of a constrained value is also constrained.
check_constrained_gradient() ->
    Loss = fun(Constrain) -> fun(W, X) -> tessera:sum(tessera:multiply(Constrain(tessera:dot(X, W)), tessera:dot(X, W))) end end,
    Constrain = fun(Y) -> tessera_mesh:sharding_constraint(Y, #{1 => [1]}) end,
    Args = [iota({6, 4}), iota({8, 6})],
    F = sharded(tessera:grad(Loss(Constrain)), {2, 2}, #{input_shardings => [#{}, #{0 => [0]}], output_shardings => #{}}),
    Lists = lists({2, 2}, Args, [#{}, #{0 => [0]}]),
    Expected = bits(apply(tessera:jit(tessera:grad(Loss(fun(Y) -> Y end))), Args)),
    [?assertEqual(Expected, bits(Part)) || Part <- F(Lists)],
    {match, Found} = re:run(tessera:to_text(F, [Lists]), "sharding_constraint", [global]),
    ?assertEqual(2, length(Found)).

%% In loops, branches and functions that are traced into this one.
check_constraint_inside() ->
    Inner = tessera:jit(fun(X) -> tessera:add(X, 1) end),
    Cut = fun(X) -> tessera_mesh:sharding_constraint(X, #{0 => [0]}) end,
    F = sharded(fun(X, N) ->
                        {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, N) end,
                                               fun({I, Y}) -> {tessera:add(I, 1), Cut(tessera:add(Y, I))} end),
                        tessera:'cond'(tessera:greater(N, 2), fun() -> Cut(Inner(Y)) end, fun() -> Y end)
                end, {2}, #{input_shardings => [#{}, #{}], output_shardings => #{}}),
    X = tessera:tensor([1, 2, 3, 4]),
    ?assertEqual([[8, 9, 10, 11], [8, 9, 10, 11]], values(F([[X, 4], [X, 4]]))),
    ?assertEqual([[2, 3, 4, 5], [2, 3, 4, 5]], values(F([[X, 2], [X, 2]]))).

check_constraint_errors() ->
    X = tessera:iota({3, 4}),
    Call = fun(Sharding) -> (sharded(fun(A) -> tessera_mesh:sharding_constraint(A, Sharding) end, {2}, #{input_shardings => [#{}]}))([[X], [X]]) end,
    [?raises(Text, Call(Sharding))
     || {Text, Sharding} <- [{"axis 1 is not valid for mesh with 1 axes", #{0 => [1]}},
                             {"the mesh has no axis rows", #{0 => [rows]}},
                             {"a sharding cuts dim 2 of a tensor of rank 2", #{2 => [0]}},
                             {"expected a sharding such as", rows},
                             {"axis 0 was used twice", #{0 => [0], 1 => [0]}},
                             {"sharding_constraint: dim 0", #{0 => [0]}}]],   % 3 rows
    Outside = fun(F) -> raises(failed_precondition, "expected to be called inside of a function of tessera:shard_jit/3", F) end,
    Outside(fun() -> tessera_mesh:sharding_constraint(X, #{}) end),
    Outside(fun() -> (tessera:jit(fun(A) -> tessera_mesh:sharding_constraint(A, #{}) end))(X) end),
    Local = tessera:shard_map(fun(A) -> tessera_mesh:sharding_constraint(A, #{}) end, #{shape => {2}}, [#{}], #{}, #{client => ?CLIENT}),
    raises(failed_precondition, "in a function of tessera:shard_map/4 tensors are parts", fun() -> Local([[X], [X]]) end).

%% ---- random programs: small integers, so that sums are exact in any order

check_random() ->
    First = rand:uniform(1 bsl 30),
    [try random(Seed) catch Class:Reason:Trace -> erlang:raise(Class, {seed, Seed, Reason}, Trace) end
     || Seed <- lists:seq(First, First + 99)].

random(Seed) ->
    _ = rand:seed(exsss, Seed),
    Shape = pick(?MESHES),
    Type = pick([s32, f32]),
    Args = [iota(pick([{12, 24}, {24, 12}, {12}, {12, 12}, {24, 1, 12}, {}]), Type) || _ <- lists:seq(1, pick([1, 2, 3]))],
    Shardings = [random_sharding(tessera:rank(Arg), lists:seq(0, tuple_size(Shape) - 1), tessera:shape(Arg), Shape) || Arg <- Args],
    F = case length(Args) of
            1 -> fun(A) -> program(Seed, [A]) end;
            2 -> fun(A, B) -> program(Seed, [A, B]) end;
            3 -> fun(A, B, C) -> program(Seed, [A, B, C]) end
        end,
    Outputs = [random_output(R, Shape) || R <- apply(tessera:jit(F), Args)],
    Cuts = same(F, Shape, Args, Shardings, #{output_shardings => Outputs}),
    [?assertEqual({Seed, Given}, {Seed, Own}) || {Given, Own} <- lists:zip(Outputs, Cuts), Given =/= undefined].

%% Two of three results are cut as the caller says.
random_output(Result, Mesh) ->
    case pick([given, given, open]) of
        given -> random_sharding(tessera:rank(Result), tessera_type:dims(tuple_size(Mesh)), tessera:shape(Result), Mesh);
        open -> undefined
    end.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

random_sharding(0, _, _, _) -> #{};
random_sharding(Rank, Axes, Dims, Mesh) ->
    Chosen = [{rand:uniform(Rank) - 1, Axis} || Axis <- Axes, rand:uniform(3) > 1],
    Map = maps:from_list([{Dim, [Axis || {D, Axis} <- Chosen, D =:= Dim]} || {Dim, _} <- Chosen]),
    maps:filter(fun(Dim, Own) ->
                        element(Dim + 1, Dims) rem lists:foldl(fun(A, P) -> P * element(A + 1, Mesh) end, 1, Own) =:= 0
                end, Map).

%% The same ops each time that it is called.
program(Seed, Args) -> steps(rand:seed_s(exsss, Seed), 3 + Seed rem 8, Args).

steps(_, 0, Values) -> lists:sublist(Values, 3);
steps(State, N, Values) ->
    {I, State1} = rand:uniform_s(length(Values), State),
    {J, State2} = rand:uniform_s(length(Values), State1),
    {Op, State3} = rand:uniform_s(14, State2),
    steps(State3, N - 1, [step(Op, lists:nth(I, Values), lists:nth(J, Values)) | Values]).

step(1, A, B) -> binary(fun tessera:add/2, A, B);
step(2, A, B) -> tessera:remainder(binary(fun tessera:multiply/2, A, B), 7);
step(3, A, B) -> binary(fun tessera:max/2, A, B);
step(4, A, _) -> tessera:transpose(A);
step(5, A, _) -> tessera:remainder(reduced(fun tessera:sum/2, A), 9);
step(6, A, _) -> reduced(fun tessera:reduce_max/2, A);
step(7, A, _) -> tessera:flatten(A);
step(8, A, B) ->
    case {tessera:shape(A), tessera:shape(B)} of
        {{_, K}, {K, _}} -> tessera:remainder(tessera:dot(A, B), 5);
        _ -> tessera:negate(A)
    end;
step(9, A, B) ->
    case {tessera:rank(A), tessera:shape(A) =:= tessera:shape(B)} of
        {Rank, true} when Rank > 0 -> tessera:concatenate([A, B], Rank - 1);
        _ -> tessera:subtract(A, 1)
    end;
step(10, A, _) ->
    case tessera:rank(A) of
        0 -> A;
        Rank -> tessera:slice(A, [D div 4 || D <- tuple_to_list(tessera:shape(A))],
                              [D - D div 2 || _ <- [Rank], D <- tuple_to_list(tessera:shape(A))])
    end;
step(11, A, _) -> tessera:select(tessera:greater(A, 1), A, 0);
step(12, A, _) ->
    case tessera:rank(A) of
        0 -> A;
        _ -> tessera:reverse(A, [0])
    end;
step(13, A, _) ->
    {_, Looped} = tessera:while({0, A}, fun({I, _}) -> tessera:less(I, 3) end,
                                fun({I, X}) -> {tessera:add(I, 1), tessera:remainder(tessera:add(X, tessera:sum(X)), 13)} end),
    Looped;
step(14, A, B) -> tessera:'cond'(tessera:greater(tessera:sum(B), 0), fun() -> tessera:add(A, 1) end, fun() -> A end).

%% Of operands that do not fit, the first.
binary(Op, A, B) ->
    try Op(A, B)
    catch error:{invalid_argument, _} -> A
    end.

reduced(Op, A) ->
    case tessera:rank(A) of
        0 -> A;
        Rank -> Op(A, #{axes => [Rank - 1]})
    end.

%% ---- errors

check_options() ->
    F = fun(X, Y) -> tessera:add(X, Y) end,
    Both = [#{}, #{}],
    [?raises(Text, tessera:shard_jit(F, Mesh, Options))
     || {Text, Mesh, Options} <-
            [{"expected a mesh such as", none, #{input_shardings => Both}},
             {"of at least 1", #{shape => {0}}, #{input_shardings => Both}},
             {"input_shardings are required", #{shape => {2}}, #{}},
             {"expected a list with a sharding for each argument", #{shape => {2}}, #{input_shardings => nil}},
             {"expected 2 input sharding configurations, got 1", #{shape => {2}}, #{input_shardings => [#{}]}},
             {"unknown options [device]", #{shape => {2}}, #{input_shardings => Both, device => 1}},
             {"threads is -1", #{shape => {2}}, #{input_shardings => Both, threads => -1}},
             {"donate is [3], expected positions of arguments from 1 to 2", #{shape => {2}}, #{input_shardings => Both, donate => [3]}},
             {"fuse is 1", #{shape => {2}}, #{input_shardings => Both, fuse => 1}},
             {"no client absent is open", #{shape => {2}}, #{input_shardings => Both, client => absent}},
             {"expected a map of options", #{shape => {2}}, []}]],
    ?raises("mesh m {3,4} has 12 partitions, client sharded has 8 devices",
            tessera:shard_jit(F, #{shape => {3, 4}, name => m}, #{input_shardings => Both, client => ?CLIENT})),
    ?raises("expected a function", tessera:shard_jit(f, #{shape => {2}}, #{input_shardings => []})).

check_arguments() ->
    F = sharded(fun(X, {Y, Z}) -> tessera:add(tessera:add(X, Y), Z) end, {2}, #{input_shardings => [#{0 => [0]}, #{}]}),
    T = tessera:tensor([1.0, 2.0]),
    Good = [T, {1, 2.0}],
    ?assertMatch([_, _], F([Good, Good])),
    [?raises(Text, F(Lists))
     || {Text, Lists} <-
            [{"got 1 argument list, expected 2 argument lists, one for each partition", [Good]},
             {"got 3 argument lists", [Good, Good, Good]}, {"got x, expected 2", x}, {"got 0 argument lists", []},
             {"partition 1 has the arguments [f32[2]], expected a list of 2", [Good, [T]]},
             {"partition 0 has the arguments x, expected a list of 2", [x, Good]},
             {"argument 1 of partition 1 is f32[1], in partition 0 it is f32[2]", [Good, [tessera:tensor([1.0]), {1, 2.0}]]},
             {"argument 1 of partition 1 is s32[2], in partition 0 it is f32[2]", [Good, [tessera:tensor([1, 2]), {1, 2.0}]]},
             {"argument 2 of partition 1 is {1,2}, in partition 0", [Good, [T, {1, 2}]]},
             {"argument 2 of partition 1 is [1,2.0], in partition 0 it is {1,2.0}", [Good, [T, [1, 2.0]]]},
             {"argument 2 of partition 1", [Good, [T, {1, 2.0, 3}]]}]],
    [P0, P1] = F([Good, [T, {1, tessera:tensor(2.0)}]]),   % a number is a scalar
    ?assertEqual(tessera:to_list(P0), tessera:to_list(P1)),
    Gone = tessera:tensor([1.0, 2.0]),
    ok = tessera:deallocate(Gone),
    raises(failed_precondition, "deallocated", fun() -> F([Good, [Gone, {1, 2.0}]]) end),
    ?raises("expected a tensor or a number", F([[tessera:template(f32, {2}), {1, 2.0}], Good])),
    Text = sharded(fun(X) -> X end, {2}, #{input_shardings => [#{}]}),
    ?assertEqual([text, text], Text([[text], [text]])),
    ?raises("argument 1 of partition 1 is other, in partition 0 it is text", Text([[text], [other]])).

check_shardings() ->
    X = tessera:iota({2, 2}),
    Call = fun(Shape, Options) -> (sharded(fun(A) -> {A, [A]} end, Shape, Options))([[X], [X]]) end,
    [?raises(Text, Call({2, 1}, #{input_shardings => [Sharding]}))
     || {Text, Sharding} <- [{"argument 1: axis 2 is not valid for mesh with 2 axes", #{0 => [2]}},
                             {"argument 1: axis 0 was used twice in the same sharding", #{0 => [0], 1 => [0]}},
                             {"argument 1: a sharding cuts dim 2 of a tensor of rank 2", #{2 => [0]}},
                             {"argument 1: a sharding cuts dim -3 of", #{-3 => [0]}},
                             {"argument 1: a sharding cuts a dim by 7", #{0 => 7}},
                             {"the sharding of argument 1 is {}, expected one such as #{0 => [0]}, or a container of the form of s32[2,2]", {}}]],
    [?raises(Text, Call({2}, #{input_shardings => [#{}], output_shardings => Outputs}))
     || {Text, Outputs} <- [{"the sharding of the result is [#{}], expected one such as #{0 => [0]}, or a container of the form of "
                             "{s32[2,2],[s32[2,2]]}", [#{}]},
                            {"the sharding of the result is {#{}}", {#{}}},
                            {"the result: axis 1 is not valid", #{0 => [1]}},
                            {"the result: a sharding cuts dim 5", {#{}, [#{5 => [0]}]}}]].

check_tracing() ->
    Inner = sharded(fun(X) -> X end, {2}, #{input_shardings => [#{}]}),
    Outer = tessera:jit(fun(X) -> hd(Inner([[X], [X]])) end),
    raises(failed_precondition, "cannot be called while another function is traced", fun() -> Outer(1) end),
    Nested = tessera:jit(fun(X) -> tessera:add(X, 1) end),
    same(fun(X) -> [Nested(X)] end, {2}, [iota({4})], [#{0 => [0]}]),   % and the other way round it is inlined
    Wrong = sharded(fun(X) -> tessera:dot(X, X) end, {2}, #{input_shardings => [#{0 => [0]}]}),
    ?raises("dot(s32[4,3], s32[4,3])", Wrong([[tessera:iota({2, 3})], [tessera:iota({2, 3})]])),
    Raises = sharded(fun(_) -> error(mine) end, {2}, #{input_shardings => [#{}]}),
    ?assertError(mine, Raises([[1], [1]])),
    ?assertNot(tessera_trace:is_tracing()).

%% ---- donation, caches, devices

check_donation() ->
    F = sharded(fun(X, {Y, Z}) -> {tessera:add(X, 1), tessera:multiply(Y, Z)} end, {2},
                #{input_shardings => [#{0 => [0]}, #{0 => [0]}], donate => [2]}),
    [X0, X1, Y0, Y1, Z0, Z1] = All = [tessera:multiply(tessera:iota({4}), N) || N <- lists:seq(1, 6)],
    Results = F([[X0, {Y0, Z0}], [X1, {Y1, Z1}]]),
    ?assertEqual([[0, 15, 60, 135], [0, 24, 96, 216]], [tessera:to_list(P) || {_, P} <- Results]),
    ?assertEqual([true, true, false, false, false, false], [is_alive(T) || T <- All]),
    raises(failed_precondition, "donated", fun() -> F([[X0, {Y0, Z0}], [X1, {Y1, Z1}]]) end).

is_alive(T) ->
    try tessera:to_list(T) of
        _ -> true
    catch error:{failed_precondition, _} -> false
    end.

check_cache() ->
    Traced = counters:new(1, []),
    F = fun(X) -> counters:add(Traced, 1, 1), tessera:add(X, 1) end,
    Args = [[tessera:iota({4})], [tessera:iota({4})]],
    By = fun(Mesh, Sharding, Outputs) ->
                 (tessera:shard_jit(F, Mesh, #{input_shardings => [Sharding], output_shardings => Outputs, client => ?CLIENT}))(Args),
                 counters:get(Traced, 1)
         end,
    ?assertEqual([1, 1, 2, 3, 4, 1 + 4],
                 [By(#{shape => {2}}, #{0 => [0]}, undefined), By(#{shape => {2}}, #{0 => [0]}, undefined),
                  By(#{shape => {2}}, #{}, undefined), By(#{shape => {2, 1}}, #{0 => [0]}, undefined),
                  By(#{shape => {2}}, #{0 => [0]}, #{}), begin tessera:clear_cache(), By(#{shape => {2}}, #{}, undefined) end]).

%% Of an earlier load of the library: the reference is of no executable of this one.
check_stale() ->
    F = sharded(fun(X) -> tessera:add(X, 41) end, {2}, #{input_shardings => [#{}]}),
    Args = [[1], [1]],
    ?assertEqual([42, 42], [tessera:to_number(R) || R <- F(Args)]),
    ?assertEqual(stale, tessera_nif:run_group(make_ref(), [[1], [1]], 0, 0)),
    tessera:clear_cache(),
    ?assertEqual([42, 42], [tessera:to_number(R) || R <- F(Args)]).

%% Results are on their partition's device, even if they are arguments or constants, and for arguments on any device.
check_devices() ->
    F = sharded(fun(X) -> [X, tessera:iota({2}), tessera:add(X, 1), tessera:sum(X)] end, {4}, #{input_shardings => [#{0 => [0]}]}),
    There = tessera:to_device(tessera:iota({2}), {?CLIENT, 3}),
    [begin
         Results = F(lists:duplicate(4, [X])),
         ?assertEqual([lists:duplicate(4, {?CLIENT, P}) || P <- lists:seq(0, 3)], [[tessera:device(T) || T <- R] || R <- Results])
     end || X <- [tessera:iota({2}), There]].

check_concurrency() ->
    F = sharded(fun(X, N) -> tessera:add(tessera:dot(X, tessera:transpose(X)), N) end, {2, 2},
                #{input_shardings => [#{0 => [0], 1 => [1]}, #{}]}),
    X = iota({64, 64}),
    Expected = tessera:to_binary(tessera:dot(X, tessera:transpose(X))),
    Parts = parts({2, 2}, X, #{0 => [0], 1 => [1]}),
    Work = fun() -> [begin
                         Lists = [[Part, 0] || Part <- Parts],
                         Results = F(Lists),
                         Whole = tessera_mesh:gather(Results, #{shape => {2, 2}}, tessera_mesh:results(F, Lists)),
                         ?assertEqual(Expected, tessera:to_binary(Whole))
                     end || _ <- lists:seq(1, 20)]
           end,
    Monitors = [spawn_monitor(Work) || _ <- lists:seq(1, 8)],
    [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end || {Pid, Monitor} <- Monitors].

%% A caller that is killed during a long run, or a compilation, leaves nothing.
check_killed() ->
    Loop = sharded(fun(X) ->
                           tessera:while(X, fun(_) -> 1 end, fun(Y) -> tessera:add(Y, tessera:sum(Y)) end)
                   end, {2}, #{input_shardings => [#{0 => [0]}]}),
    Args = [[tessera:iota({64}, s32)], [tessera:iota({64}, s32)]],
    [begin
         {Pid, Monitor} = spawn_monitor(fun() -> Loop(Args) end),
         timer:sleep(Wait),
         exit(Pid, kill),
         receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(killed, Reason) end
     end || Wait <- [0, 1, 5, 50, 200, 500]],
    same(fun(X) -> [tessera:sum(X)] end, {2}, [iota({8})], [#{0 => [0]}]).   % and all works on

check_memory() ->
    F = sharded(fun(X) -> {tessera:add(X, 1), tessera:sum(X)} end, {2, 2}, #{input_shardings => [#{0 => [0, 1]}]}),
    Once = fun(N) -> F(lists:duplicate(4, [tessera:full({64}, N, f32)])) end,
    Many = fun(Count) ->
                   {Pid, Monitor} = spawn_monitor(fun() -> [Once(N) || N <- lists:seq(1, Count)], ok end),
                   receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
           end,
    Many(2500),   % headers of freed buffers are kept for the next ones
    Held = fun() -> {maps:get(devices, tessera:memory(?CLIENT)), tessera_test:blocks()} end,
    settled(),
    {Bytes, Blocks} = Held(),
    Many(12500),   % 10^5 results
    tessera_test:until_freed(fun() -> {After, BlocksAfter} = Held(), After =:= Bytes andalso BlocksAfter =< Blocks + 1000 end).

%% No device has all of a cut tensor: four parts, their results and intermediate values fit where four whole tensors do not.
check_device_memory() ->
    Whole = 16 bsl 20,
    Part = Whole div 4,
    ok = tessera:open_client(sharded_memory, #{device_count => 4, memory_limit => 3 * Whole}),
    Options = #{input_shardings => [#{0 => [0]}], client => sharded_memory},
    F = fun(X) -> tessera:tanh(tessera:subtract(X, tessera:mean(X, #{axes => [1], keep_axes => true}))) end,
    Parts = tessera_mesh:shard(tessera:iota({2048, 2048}, f32), #{shape => {4}}, #{0 => [0]}, sharded_memory),
    Results = (tessera:shard_jit(F, #{shape => {4}}, Options))([[P] || P <- Parts]),
    #{devices := Devices, peak := Peak} = tessera:memory(sharded_memory),
    [?assert(Bytes >= 2 * Part andalso Bytes < 2 * Part + Part div 2, {Device, Bytes}) || {Device, Bytes} <- maps:to_list(Devices)],
    ?assert(Peak =< 3 * Whole),
    ?assertEqual(4, length(Results)),
    Gathered = tessera:shard_jit(F, #{shape => {4}}, Options#{output_shardings => #{}}),
    raises(resource_exhausted, "the limit is", fun() -> Gathered([[P] || P <- Parts]) end).

%% A training step on the largest number of partitions: the cost of planning, and the bytes that each partition sends.
check_sixty_four() ->
    ok = tessera:open_client(sixty_four, #{device_count => 64}),
    Loss = fun({{W1, B1}, {W2, B2}}, X, Y) ->
                   Hidden = tessera:tanh(tessera:add(tessera:dot(X, W1), B1)),
                   Error = tessera:subtract(tessera:add(tessera:dot(Hidden, W2), B2), Y),
                   tessera:mean(tessera:multiply(Error, Error))
           end,
    Step = fun({{W1, B1}, {W2, B2}} = Params, X, Y) ->
                   {L, {{GW1, GB1}, {GW2, GB2}}} = (tessera:value_and_grad(fun(P) -> Loss(P, X, Y) end))(Params),
                   Move = fun(P, G) -> tessera:subtract(P, tessera:multiply(0.1, G)) end,
                   [L, Move(W1, GW1), Move(B1, GB1), Move(W2, GW2), Move(B2, GB2)]
           end,
    Numbers = fun(Shape) -> tessera:divide(iota(Shape), 7) end,
    Params = {{Numbers({64, 128}), Numbers({128})}, {Numbers({128, 16}), Numbers({16})}},
    Args = [Params, Numbers({128, 64}), Numbers({128, 16})],
    Expected = apply(tessera:jit(Step), Args),
    [sixty_four(Step, Mesh, Args, Shardings, Expected)
     || {Mesh, Shardings} <- [{{64}, [#{}, #{0 => [0]}, #{0 => [0]}]},
                              {{8, 8}, [{{#{1 => [1]}, #{0 => [1]}}, {#{0 => [1]}, #{}}}, #{0 => [0]}, #{0 => [0]}]}]].

sixty_four(Step, Shape, [Params | _] = Args, [Own | _] = Shardings, Expected) ->
    Mesh = #{shape => Shape},
    Step64 = tessera:shard_jit(Step, Mesh, #{input_shardings => Shardings, client => sixty_four}),
    Cut = fun(Tensor, Sharding) -> tessera_mesh:shard(Tensor, Mesh, Sharding, sixty_four) end,
    {_, Leaves} = tessera_tree:flatten(Params),
    Parts = transposed([Cut(Leaf, Sharding) || {Leaf, Sharding} <- lists:zip(Leaves, leaf_shardings(Own))]),
    Data = transposed([Cut(Arg, Sharding) || {Arg, Sharding} <- lists:zip(tl(Args), tl(Shardings))]),
    Lists = [[{{W1, B1}, {W2, B2}} | Rest] || {[W1, B1, W2, B2], Rest} <- lists:zip(Parts, Data)],
    {Planned, Cuts} = timer:tc(fun() -> tessera_mesh:results(Step64, Lists) end),
    Results = Step64(Lists),
    Joined = [tessera_mesh:gather(Ps, Mesh, Sharding) || {Ps, Sharding} <- lists:zip(transposed(Results), Cuts)],
    [?assert(difference(Got, Wanted) < 1.0e-5) || {Got, Wanted} <- lists:zip(Joined, Expected)],
    {match, [Sent]} = re:run(tessera:explain(Step64, [Lists]), "\n([0-9]+ collectives?, [0-9]+ bytes of each of 64 partitions)\n",
                             [{capture, all_but_first, list}]),
    io:format(user, "a training step on mesh ~0p: planned and compiled in ~b ms; ~s~n", [Shape, Planned div 1000, Sent]).

leaf_shardings({{W1, B1}, {W2, B2}}) -> [W1, B1, W2, B2];
leaf_shardings(Same) -> lists:duplicate(4, Same).

%% The largest difference, as a share of the largest number.
difference(A, B) ->
    Most = fun(T) -> tessera:to_number(tessera:reduce_max(tessera:abs(T))) end,
    Most(tessera:subtract(A, B)) / Most(B).

%% The error names an op without a factor rule, and a dim that an op needs whole.
check_reported() ->
    Lines = fun(F, Sharding) ->
                    Text = tessera:explain(sharded(F, {2}, #{input_shardings => [Sharding]}),
                                           [lists:duplicate(2, [tessera:template(f32, {4, 4})])]),
                    [Line || <<"gathered", _/binary>> = Line <- binary:split(Text, <<"\n">>, [global])]
            end,
    Gathered = [{fun tessera:cumulative_sum/1, "cumulative_sum"}, {fun(X) -> tessera:sort(X, #{axis => 0}) end, "sort"},
                {fun(X) -> tessera:fft(X, #{axis => 0}) end, "fft"}],
    [begin
         [Line] = Lines(F, #{0 => [0]}),
         ?assertMatch({match, _}, re:run(Line, ["^gathered for want of a rule: %[0-9]+ = ", Op, ", dim 0 of operand 0$"])),
         ?assertEqual([], Lines(F, #{1 => [0]}))
     end || {F, Op} <- Gathered].

settled() -> [begin [garbage_collect(Pid) || Pid <- processes()], timer:sleep(20) end || _ <- lists:seq(1, 10)].

check_failed_allocations() ->
    F = sharded(fun(X) -> {tessera:add(X, 1), tessera:sum(X)} end, {2, 2}, #{input_shardings => [#{0 => [0, 1]}]}),
    Args = lists:duplicate(4, [tessera:iota({64}, f32)]),
    _ = F(Args),
    [begin
         _ = tessera_nif:fail_allocation(N),
         Result = try {ok, F(Args)} catch error:{Code, _} -> Code end,
         _ = tessera_nif:fail_allocation(0),
         ?assert(Result =:= resource_exhausted orelse is_tuple(Result))
     end || N <- lists:seq(1, 60)],
    ?assertMatch([{_, _}, _, _, _], F(Args)).

check_looks() ->
    F = sharded(fun(X, W) -> tessera:sum(tessera:dot(X, W)) end, {2, 2}, #{input_shardings => [#{0 => [0], 1 => [1]}, #{0 => [1]}]}),
    Lists = lists:duplicate(4, [tessera:template(f32, {4, 8}), tessera:template(f32, {8, 16})]),
    Text = tessera:to_text(F, [Lists]),
    ?assertMatch({match, _}, re:run(Text, "mesh @mesh \\[\"axis_0\"=2,\"axis_1\"=2\\] \\(%0: f32\\[8,16\\] sharded \\[\\[0\\],\\[1\\]\\], %1: f32\\[16,16\\] sharded "
                                    "\\[\\[1\\],\\[\\]\\]\\)")),
    ?assertMatch({match, _}, re:run(tessera:to_text(F, [Lists], stablehlo), "sdy.mesh")),
    Explained = tessera:explain(F, [Lists]),
    %% a plugin has no steps to list
    [?assertMatch({match, _}, re:run(Explained, Part))
     || tessera_test:mesh_plugin() =:= false,
        Part <- ["mesh mesh \\{2,2\\} of client sharded", "all_reduce_sum over", "1 collective, [0-9]+ bytes of each of 4 partitions",
                 "dot_general: f32\\[8,16\\] sharded \\[\\[0\\]", "collective all_reduce_sum"]],
    Sorted = sharded(fun tessera:sort/1, {2}, #{input_shardings => [#{0 => [0]}]}),
    [?assertMatch({match, _}, re:run(tessera:explain(Sorted, [[[tessera:template(f32, {4})], [tessera:template(f32, {4})]]]),
                                     "1 collective")) || tessera_test:mesh_plugin() =:= false],
    ?raises("expected a function of shard_jit", tessera_mesh:results(fun(X) -> X end, [])).
