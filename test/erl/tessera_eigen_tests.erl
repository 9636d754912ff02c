%% Eigenvalues and Schur forms of any matrix, which LAPACK computes, and eigenvalues of pairs: recorded results of NumPy and SciPy, properties
%% of random matrices, programs of JAX with the results of XLA, targets of plugins that StableHLO names.
-module(tessera_eigen_tests).
-device(host). % custom calls run on the host
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3]).

a() -> tessera:tensor([[4, 1, -2, 2], [1, 2, 0, 1], [-2, 0, 3, -2], [2, 1, -2, -1]], f64).
b() -> tessera:tensor([[1, 2, 0, 1], [-3, 0.5, 2, 0], [0, 1, -1, 4], [2, 0, -2, 3]], f64).
z() -> tessera:complex(b(), a()).

product(A, B) ->
    Rank = tessera:rank(A),
    Batch = lists:seq(0, Rank - 3),
    tessera:dot(A, [Rank - 1], Batch, B, [Rank - 2], Batch).

adjoint(A) ->
    Rank = tessera:rank(A),
    T = tessera:transpose(A, lists:seq(0, Rank - 3) ++ [Rank - 1, Rank - 2]),
    case lists:member(tessera:type(A), [c64, c128]) of true -> tessera:conjugate(T); false -> T end.

%% The largest difference of two tensors.
apart(X, Y) -> tessera:to_number(tessera:reduce_max(tessera:abs(tessera:subtract(X, Y)))).

tolerance(Type) -> case lists:member(Type, [f64, c128]) of true -> 1.0e-12; false -> 2.0e-5 end.

ordered(Values) -> lists:sort([{Re, Im} || {complex, Re, Im} <- tessera:to_list(Values)]).

near(Expected, Got) -> [?assertMatch({_, _, D} when D < 1.0e-12, {X, Y, abs(X - Y)}) || {X, Y} <- lists:zip(Expected, Got)].

flat(Pairs) -> lists:flatmap(fun tuple_to_list/1, Pairs).

lapack_test_() ->
    tessera_test:with_lapack("eigenvalues and Schur forms of any matrix",
                             [{"values", fun values/0}, {"the same bits", fun same_bits/0}, {"special matrices", fun special/0}] ++ properties() ++ exports()).

%% ---- results of NumPy 2.3 and SciPy 1.16

values() ->
    {Values, _} = tessera:eig(b()),
    near([-0.36437111837140246, 0.0, 0.8484236876429286, -2.7404900105866132, 0.8484236876429286, 2.7404900105866132, 2.1675237430855456, 0.0], flat(ordered(Values))),
    {Complex, _} = tessera:eig(z()),
    near([0.48978646820269217, 0.7520293915866515, 0.5113131625875562, 7.304553593435902, 0.5655796835655836, 2.9200376075373318, 1.9333206856441691, -2.976620592559886],
         flat(ordered(Complex))).

pairs_test() ->
    P = tessera:add(tessera:matmul(a(), tessera:transpose(a())), tessera:eye({4, 4}, f64)),
    S = tessera:add(b(), tessera:transpose(b())),
    {Values, Vectors} = tessera:eigh(S, P),
    near([-0.7820286587488322, -0.0076107712633514644, 0.4875328466483915, 1.0163156986452926], lists:sort(tessera:to_list(Values))),
    ?assertEqual(lists:reverse(lists:sort([abs(V) || V <- tessera:to_list(Values)])), [abs(V) || V <- tessera:to_list(Values)]),
    ?assert(apart(product(S, Vectors), tessera:multiply(product(P, Vectors), Values)) < 1.0e-12),
    ?assert(apart(product(adjoint(Vectors), product(P, Vectors)), tessera:eye({4, 4}, f64)) < 1.0e-12),
    H = tessera:add(z(), adjoint(z())), Q = tessera:complex(P, tessera:multiply(0.5, tessera:subtract(b(), tessera:transpose(b())))),
    {Of, With} = tessera:eigh(H, Q),
    near([-0.9008144954139792, -0.007620065991479781, 0.5322859224308473, 1.2084408544232954], lists:sort([Re || {complex, Re, _} <- tessera:to_list(Of)])),
    ?assert(apart(product(H, With), tessera:multiply(product(Q, With), Of)) < 1.0e-12),
    %% other triangles are not read, and types are merged
    {Same, _} = tessera:eigh(tessera:add(S, tessera:multiply(9, tessera:greater(tessera:iota({4, 4}, s64, 1), tessera:iota({4, 4}, s64, 0)))), P),
    near(tessera:to_list(Values), tessera:to_list(Same)),
    ?assertMatch({f64, _}, {tessera:type(element(1, tessera:eigh(tessera:eye({2, 2}, f32), tessera:eye({2, 2}, f64)))), ok}),
    ?assertEqual([nan, nan], tessera:to_list(element(1, tessera:eigh(tessera:eye({2, 2}, f64), tessera:negate(tessera:eye({2, 2}, f64)))))),
    raises(invalid_argument, "matrices of one shape", fun() -> tessera:eigh(a(), tessera:eye({3, 3}, f64)) end).

%% ---- properties

matrices(Shape, Type, Seed) ->
    [Re, Im] = [tessera:sin(tessera:multiply(tessera:add(tessera:iota(Shape, f64), Seed), By)) || By <- [12.9898, 78.233]],
    case lists:member(Type, [c64, c128]) of
        true -> tessera:as_type(tessera:complex(Re, Im), Type);
        false -> tessera:as_type(Re, Type)
    end.

properties() ->
    [{lists:flatten(io_lib:format("~p ~p", [Type, Shape])), fun() -> properties(matrices(Shape, Type, Seed), Shape) end}
     || Type <- [f32, f64, c64, c128], {Shape, Seed} <- [{{1, 1}, 1}, {{5, 5}, 2}, {{3, 4, 4}, 3}, {{2, 1, 7, 7}, 4}, {{40, 40}, 5}]].

properties(A, Shape) ->
    Rank = tuple_size(Shape), N = element(Rank, Shape), Type = tessera:type(A), Tolerance = N * tolerance(Type),
    {Values, Vectors} = tessera:eig(A),
    ?assertEqual({tessera:type(Vectors), list_to_tuple(lists:droplast(tuple_to_list(Shape)))}, {tessera:type(Values), tessera:shape(Values)}),
    Row = tessera:reshape(Values, list_to_tuple(lists:sublist(tuple_to_list(Shape), Rank - 2) ++ [1, N])),
    ?assert(apart(product(tessera:as_type(A, tessera:type(Vectors)), Vectors), tessera:multiply(Vectors, Row)) < Tolerance),
    Lengths = tessera:sum(tessera:multiply(tessera:abs(Vectors), tessera:abs(Vectors)), #{axes => [Rank - 2]}),
    ?assert(apart(Lengths, 1.0) < Tolerance),
    {T, Z} = tessera:schur(A),
    ?assertEqual({Type, Shape, Type, Shape}, {tessera:type(T), tessera:shape(T), tessera:type(Z), tessera:shape(Z)}),
    ?assert(apart(product(product(Z, T), adjoint(Z)), A) < Tolerance),
    ?assert(apart(product(adjoint(Z), Z), tessera:broadcast(tessera:eye({N, N}, Type), Shape)) < Tolerance),
    Below = case Type of f32 -> 1; f64 -> 1; _ -> 0 end,
    [Down, Right] = [tessera:iota(Shape, s64, Axis) || Axis <- [Rank - 2, Rank - 1]],
    ?assertEqual(0.0, tessera:to_number(tessera:reduce_max(tessera:abs(tessera:select(tessera:greater(Down, tessera:add(Right, Below)), T, tessera:multiply(T, 0)))))).

%% Compiled, and of a batch as of its matrices, to the bit.
same_bits() ->
    A = matrices({3, 6, 6}, f32, 9),
    Eager = tessera:eig(A),
    [?assertEqual(tessera:to_binary(E), tessera:to_binary(J)) || {E, J} <- lists:zip(tuple_to_list(Eager), tuple_to_list((tessera:jit(fun tessera:eig/1))(A)))],
    [?assertEqual(tessera:to_list(tessera:at(element(1, Eager), [I])), tessera:to_list(element(1, tessera:eig(tessera:at(A, [I]))))) || I <- [0, 1, 2]].

special() ->
    ?assertEqual([{2, 0}, {2, 0, 0}], [tessera:shape(T) || T <- tuple_to_list(tessera:eig(tessera:zeros({2, 0, 0})))]),
    ?assertEqual([{0, 0}, {0, 0}], [tessera:shape(T) || T <- tuple_to_list(tessera:schur(tessera:zeros({0, 0})))]),
    {Values, _} = tessera:eig(tessera:tensor([[[1, nan], [0, 1]], [[1, infinity], [0, 1]], [[2, 0], [0, 3]]])),
    ?assertEqual([[1, 1], [1, 1], [0, 0]], tessera:to_list(tessera:is_nan(tessera:real(Values)))),
    ?assertEqual(c64, tessera:type(element(1, tessera:eig(tessera:tensor([[1, 2], [3, 4]]))))),
    ?assertEqual(f32, tessera:type(element(1, tessera:schur(tessera:tensor([[1, 2], [3, 4]], f16))))),
    raises(invalid_argument, "eig(f32[2]): expected square matrices", fun() -> tessera:eig(tessera:tensor([1.0, 2.0])) end),
    raises(invalid_argument, "schur(f32[2,3]): expected square matrices", fun() -> tessera:schur(tessera:zeros({2, 3})) end),
    raises(unimplemented, "the gradient through custom_call is not supported", fun() ->
                   (tessera:grad(fun(X) -> tessera:sum(tessera:real(element(1, tessera:eig(X)))) end))(tessera:eye({2, 2}, f32)) end).

%% The targets themselves, with operands and results that they refuse.
targets_test_() ->
    Square = tessera:template(f32, {2, 2}), Line = tessera:template(f32, {2}), Complex = tessera:template(c64, {2, 2}), Info = tessera:template(s32, {}),
    [{Words, fun() -> raises(invalid_argument, Words, fun() -> tessera:custom_call(Target, Operands, Results, Attributes) end) end}
     || {Words, Target, Operands, Results, Attributes} <-
            [{"expected square matrices", <<"lapack.geev">>, [tessera:zeros({2, 3})], [Info], #{}},
             {"expected square matrices", <<"lapack.geev">>, [], [Info], #{}},
             {"expected f32, f64, c64 or c128", <<"lapack.gees">>, [tessera:tensor([[1]], s32)], [Info], #{}},
             {"other types or shapes", <<"lapack.geev">>, [tessera:zeros({2, 2})], [Line, Line, Complex, Square, Info], #{}},
             {"other types or shapes", <<"lapack.geev">>, [tessera:zeros({2, 2})], [Line, Line, Complex, Complex], #{}},
             {"other types or shapes", <<"lapack.sytrd">>, [tessera:zeros({2, 2})], [Square, Line, Line, Line, Info], #{}},
             {"low and high are no rows", <<"lapack.gehrd">>, [tessera:zeros({2, 2})], [Square, tessera:template(f32, {1}), Info], #{low => 0, high => 2}}]].

%% ---- without the library

missing_test() ->
    Code = "try tessera:eig(tessera:tensor([[1.0]])) catch error:{C, M} -> io:format(\"~p ~ts\", [C, M]) end, "
           "io:format(\" ~p\", [tessera:to_list(element(1, tessera:eigh(tessera:tensor([[2.0]]), tessera:tensor([[4.0]]))))]), halt().",
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, ["-noshell", "-pa", filename:dirname(code:which(tessera)), "-eval", Code]}, {env, [{"TESSERA_LAPACK", "/nowhere/at/all.so"}]}, exit_status, binary]),
    Text = collect(Port, <<>>),
    ?assertMatch({match, _}, re:run(Text, "invalid_argument eig.*install the package libopenblas0.*TESSERA_LAPACK \\[0\\.5\\]", [dotall])).

collect(Port, Text) ->
    receive
        {Port, {data, More}} -> collect(Port, <<Text/binary, More/binary>>);
        {Port, {exit_status, 0}} -> Text
    end.

%% ---- programs of JAX

exports() ->
    [{filename:basename(File), fun() -> exported(File) end} || File <- lists:sort(filelib:wildcard("test/stablehlo/eigen/*.vhlo"))].

exported(File) ->
    Arrays = tessera_io:load(filename:rootname(File) ++ ".npz", #{map => false}),
    [Arguments, Expected] = [[map_get(Key, Arrays) || Key <- lists:sort(maps:keys(Arrays)), string:prefix(Key, Words) =/= nomatch] || Words <- ["in", "out"]],
    Results = (tessera_stablehlo:load(File))(Arguments),
    ?assertEqual([{tessera:type(T), tessera:shape(T)} || T <- Expected], [{tessera:type(T), tessera:shape(T)} || T <- Results]),
    [?assertMatch({_, D} when D < 2.0e-5, {I, apart(tessera:as_type(X, c128), tessera:as_type(Y, c128))}) || {I, X, Y} <- lists:zip3(lists:seq(1, length(Results)), Expected, Results)].

%% ---- targets of plugins

plugin_test() ->
    {ok, _} = application:ensure_all_started(tessera),
    tessera:load_plugin(filename:join([filename:dirname(code:which(?MODULE)), "..", "plugin", "example.so"])),
    Program = fun(Target, Config) ->
                      tessera_stablehlo:function(iolist_to_binary(["func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.custom_call @", Target,
                                                                   "(%x) {mhlo.backend_config = ", Config, "} : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"])) end,
    X = [tessera:tensor([1.0, 2.0])],
    ?assertEqual([[2.5, 5.0]], [tessera:to_list(T) || T <- (Program("scale", "{factor = 2.500000e+00 : f32}"))(X)]),
    ?assertEqual([[3.0, 6.0]], [tessera:to_list(T) || T <- (Program("scale", "{factor = 3 : i64}"))(X)]),
    raises(failed_precondition, "no loaded plugin has the target unheard_of", fun() -> (Program("unheard_of", "{}"))(X) end),
    raises(invalid_argument, "scale of plugin example", fun() -> (Program("scale", "{factor = [1, 2]}"))(X) end),
    raises(unimplemented, "numbers, booleans, plain texts and lists of integers", fun() -> Program("scale", "{factor = \"it's\"}") end),
    raises(unimplemented, "the target a-b is not known", fun() -> Program("\"a-b\"", "{}") end).
