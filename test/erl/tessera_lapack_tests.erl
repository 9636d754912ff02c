%% Calls of LAPACK as JAX writes them (c_src/stablehlo/make_lapack.c): their results have LAPACK's
%% properties. Matrices are of fixed numbers.
-module(tessera_lapack_tests).
-include_lib("eunit/include/eunit.hrl").

%% ---- programs

type({Type, Shape}) -> ["tensor<", [[integer_to_list(N), $x] || N <- Shape], Type, $>].
types(Types) -> ["(", lists:join(", ", [type(T) || T <- Types]), ")"].

run(Target, Config, Args, Types, Results) ->
    Names = [["%a", integer_to_list(I)] || I <- lists:seq(1, length(Args))],
    Parameters = lists:join(", ", [[N, ": ", type(T)] || {N, T} <- lists:zip(Names, Types)]),
    Rs = [["%r#", integer_to_list(I)] || I <- lists:seq(0, length(Results) - 1)],
    Text = ["func.func @main(", Parameters, ") -> ", types(Results), " {\n  %r:", integer_to_list(length(Results)),
            " = stablehlo.custom_call @", Target, "(", lists:join(", ", Names), ") {mhlo.backend_config = {", Config, "}} : ", types(Types), " -> ",
            types(Results), "\n  return ", lists:join(", ", Rs), " : ", lists:join(", ", [type(T) || T <- Results]), "\n}\n"],
    (tessera_stablehlo:function(iolist_to_binary(Text)))(Args).

%% Numbers without a pattern, and a complex matrix of two such.
matrix(Shape, "complex<" ++ [F, X, Y, $>], Seed) -> tessera:complex(matrix(Shape, [F, X, Y], Seed), matrix(Shape, [F, X, Y], Seed + 1));
matrix(Shape, Type, Seed) ->
    {Key, Size} = {Seed * 7.13, tuple_product(Shape)},
    tessera:reshape(tessera:tensor([math:sin(Key + 1.7 * I * I) || I <- lists:seq(1, Size)], list_to_atom(Type)), Shape).

tuple_product(Shape) -> lists:foldl(fun(A, B) -> A * B end, 1, tuple_to_list(Shape)).

adjoint(A) ->
    Rank = tuple_size(tessera:shape(A)),
    tessera:conjugate(tessera:transpose(A, lists:seq(0, Rank - 3) ++ [Rank - 1, Rank - 2])).

times(A, B) -> tessera:matmul(A, B).
difference(A, B) -> tessera:to_number(tessera:reduce_max(tessera:abs(tessera:subtract(A, B)))).
is_near(A, B) -> is_near(A, B, 2.0e-5).
is_near(A, B, Bound) -> ?assert(difference(A, B) < Bound).

upper(A) -> part(A, fun tessera:less_equal/2).
part(A, Order) ->
    Shape = tessera:shape(A),
    Rank = tuple_size(Shape),
    tessera:select(Order(tessera:iota(Shape, #{axis => Rank - 2, type => s32}), tessera:iota(Shape, #{axis => Rank - 1, type => s32})), A, tessera:multiply(A, 0)).

rows(A, K) -> tessera:slice(A, [0 || _ <- tuple_to_list(tessera:shape(A))], tuple_to_list(setelement(tuple_size(tessera:shape(A)) - 1, tessera:shape(A), K))).
columns(A, K) -> tessera:slice(A, [0 || _ <- tuple_to_list(tessera:shape(A))], tuple_to_list(setelement(tuple_size(tessera:shape(A)), tessera:shape(A), K))).

square(A) -> tessera:multiply(A, A).

letters() -> [{"f32", "s", "or"}, {"complex<f32>", "c", "un"}].
wide_letters() -> [{"f64", "d", "or"}, {"complex<f64>", "z", "un"}].
code(Letter) -> [integer_to_list(Letter), " : ui8"].

%% ---- tests

qr_test_() ->
    [{lists:flatten(io_lib:format("~s ~w", [E, Shape])), fun() -> qr(E, L, O, Shape) end}
     || {E, L, O} <- letters(), Shape <- [{4, 3}, {3, 4}, {2, 3, 3}, {1, 1}]].

qr(E, L, O, Shape) ->
    Sizes = tuple_to_list(Shape),
    {Batch, [M, N]} = lists:split(length(Sizes) - 2, Sizes),
    K = min(M, N),
    A = matrix(Shape, E, 1),
    [Packed, Taus] = run(["lapack_", L, "geqrf_ffi"], "", [A], [{E, Sizes}], [{E, Sizes}, {E, Batch ++ [K]}]),
    R = rows(upper(Packed), K),
    Thin = columns(Packed, K),
    [Q] = run(["lapack_", L, O, "gqr_ffi"], "", [Thin, Taus], [{E, Batch ++ [M, K]}, {E, Batch ++ [K]}], [{E, Batch ++ [M, K]}]),
    is_near(times(Q, R), A),
    is_near(times(adjoint(Q), Q), upper(adjoint(upper(tessera:broadcast(tessera:tensor(1.0),
                                                                         list_to_tuple(Batch ++ [K, K])))))),
    %% the other way to use the reflectors: Q' A is R, and A' Q is R'
    Ormqr = fun(Left, Transpose, C, Cs) ->
                    [X] = run(["lapack_", L, O, "mqr_ffi"], ["left = ", Left, ", transpose = ", Transpose], [Thin, Taus, C],
                              [{E, Batch ++ [M, K]}, {E, Batch ++ [K]}, {E, Cs}], [{E, Cs}]),
                    X
            end,
    QhA = Ormqr("true", "true", A, Sizes),
    is_near(rows(QhA, K), R),
    is_near(Ormqr("true", "false", QhA, Sizes), A),
    AhQ = Ormqr("false", "false", adjoint(A), Batch ++ [N, M]),
    is_near(columns(AhQ, K), adjoint(R)),
    is_near(Ormqr("false", "true", AhQ, Batch ++ [N, M]), adjoint(A)).

%% Columns of subnormal numbers, and of numbers whose squares overflow, have reflectors of all digits.
scaled_qr_test_() ->
    [{lists:flatten(io_lib:format("~s ~w", [E, Scale])), fun() -> scaled_qr(Form, Scale, Least, Bound) end}
     || {Letters, Scales, Least, Bound} <- [{letters(), [1.0e-44, 1.0e-41, 1.0e-38, 1.0e36], 1.0e-44, 1.0e-5},
                                            {wide_letters(), [1.0e-321, 1.0e-316, 1.0e-308, 1.0e300], 1.0e-322, 1.0e-13}],
        {E, _, _} = Form <- Letters, Scale <- Scales].

scaled_qr({E, L, O}, Scale, Least, Bound) ->
    A = tessera:multiply(matrix({4, 3}, E, 1), Scale),
    [Packed, Taus] = run(["lapack_", L, "geqrf_ffi"], "", [A], [{E, [4, 3]}], [{E, [4, 3]}, {E, [3]}]),
    [Q] = run(["lapack_", L, O, "gqr_ffi"], "", [Packed, Taus], [{E, [4, 3]}, {E, [3]}], [{E, [4, 3]}]),
    is_near(times(adjoint(Q), Q), upper(adjoint(upper(tessera:broadcast(tessera:tensor(1.0), {3, 3})))), 2 * Bound),
    Length = fun(X) -> tessera:to_number(tessera:sqrt(tessera:sum(square(tessera:abs(tessera:divide(X, Scale)))))) end,
    ?assert(abs(Length(upper(rows(Packed, 3))) - Length(A)) =< Bound * Length(A) + Least / Scale).

%% A column that is real and 0 below its first number stays as it is: an infinite number has no NaN beside it, and -0 keeps its sign.
kept_qr_test_() ->
    Numbers = [infinity, neg_infinity, 1.0e30, 1.0e-30],
    [{lists:flatten(io_lib:format("~s ~w ~w", [E, Number, Imag])), fun() -> kept_qr(E, L, {complex, Number, Imag}) end}
     || {E, L, _} <- letters() ++ wide_letters(), Number <- Numbers, Imag <- case E of "complex" ++ _ -> [0.0, -0.0]; _ -> [0.0] end].

kept_qr(E, L, {complex, Re, _} = Z) ->
    Types = #{"f32" => f32, "f64" => f64, "complex<f32>" => c64, "complex<f64>" => c128},
    A = tessera:tensor([[case E of "complex" ++ _ -> Z; _ -> Re end], [0.0]], maps:get(E, Types)),
    [Packed, Taus] = run(["lapack_", L, "geqrf_ffi"], "", [A], [{E, [2, 1]}], [{E, [2, 1]}, {E, [1]}]),
    ?assertEqual(tessera:to_binary(A), tessera:to_binary(Packed)),
    ?assertEqual(tessera:to_list(tessera:tensor([0.0], maps:get(E, Types))), tessera:to_list(Taus)).

%% The first column is reflected to minus its length where its first number is positive.
sign_test() ->
    A = tessera:tensor([[3.0, 1.0], [4.0, 2.0]]),
    [Packed, Taus] = run("lapack_sgeqrf_ffi", "", [A], [{"f32", [2, 2]}], [{"f32", [2, 2]}, {"f32", [2]}]),
    [[R, _], [V, _]] = tessera:to_list(Packed),
    [Tau, Last] = tessera:to_list(Taus),
    ?assertEqual([true, true, true, true], [abs(X - Y) < 1.0e-6 || {X, Y} <- [{R, -5.0}, {V, 0.5}, {Tau, 1.6}, {Last, 0.0}]]).

lu_test_() ->
    [{lists:flatten(io_lib:format("~s ~w", [E, Shape])), fun() -> lu(E, L, Shape) end}
     || {E, L, _} <- letters(), Shape <- [{4, 4}, {5, 3}, {2, 4}, {1, 3}]].

lu(E, L, {M, N} = Shape) ->
    K = min(M, N),
    A = matrix(Shape, E, 3),
    [Packed, Pivots, Info] = run(["lapack_", L, "getrf_ffi"], "", [A], [{E, [M, N]}], [{E, [M, N]}, {"i32", [K]}, {"i32", []}]),
    ?assertEqual(0, tessera:to_number(Info)),
    Exchanged = lists:foldl(fun exchange/2, list_to_tuple(tessera:to_list(A)), lists:zip(lists:seq(1, K), tessera:to_list(Pivots))),
    Below = part(columns(Packed, K), fun tessera:greater/2),
    Ones = tessera:subtract(part(tessera:broadcast(1.0, {M, K}), fun tessera:greater_equal/2), part(tessera:broadcast(1.0, {M, K}), fun tessera:greater/2)),
    is_near(times(tessera:add(Below, Ones), rows(upper(Packed), K)), tessera:tensor(tuple_to_list(Exchanged), tessera:type(A))),
    ?assert(tessera:to_number(tessera:reduce_max(tessera:abs(Below))) < 1.000001).

empty_test_() ->
    [?_assertEqual([Empty, [], 0], [tessera:to_list(X) || X <- run("lapack_sgetrf_ffi", "", [tessera:broadcast(1.0, Shape)], [{"f32", tuple_to_list(Shape)}],
                                                                 [{"f32", tuple_to_list(Shape)}, {"i32", [0]}, {"i32", []}])])
     || {Shape, Empty} <- [{{0, 3}, []}, {{2, 0}, [[], []]}]].

exchange({I, J}, Rows) -> setelement(I, setelement(J, Rows, element(I, Rows)), element(J, Rows)).

eigh_test_() ->
    [{lists:flatten([E, " ", Uplo]), fun() -> eigh(E, [L, Name], Uplo) end}
     || {E, L, Name} <- [{"f32", "s", "sy"}, {"complex<f32>", "c", "he"}], Uplo <- "LU"].

eigh(E, Name, Uplo) ->
    A = matrix({2, 4, 4}, E, 5),
    H = tessera:add(A, adjoint(A)),
    Half = case Uplo of $U -> upper(H); $L -> part(H, fun tessera:greater_equal/2) end,
    [V, W, _] = run(["lapack_", Name, "evd_ffi"], ["mode = ", code($V), ", uplo = ", code(Uplo)], [Half], [{E, [2, 4, 4]}],
                    [{E, [2, 4, 4]}, {"f32", [2, 4]}, {"i32", [2]}]),
    is_near(times(H, V), tessera:multiply(V, tessera:reshape(W, {2, 1, 4}))),
    is_near(times(adjoint(V), H), times(times(adjoint(V), H), times(V, adjoint(V)))),
    ?assertEqual(tessera:to_list(W), [lists:sort(Line) || Line <- tessera:to_list(W)]).

svd_test_() ->
    [{lists:flatten(io_lib:format("~s ~w ~w", [E, Shape, Full])), fun() -> svd(E, L, Shape, Full) end}
     || {E, L, _} <- letters(), Shape <- [{4, 3}, {3, 5}], Full <- [true, false]].

svd(E, L, {M, N} = Shape, Full) ->
    K = min(M, N),
    A = matrix(Shape, E, 8),
    {P, Q} = case Full of true -> {M, N}; false -> {K, K} end,
    [_, S, U, V, _] = run(["lapack_", L, "gesdd_ffi"], ["mode = ", code(case Full of true -> $A; false -> $S end)], [A], [{E, [M, N]}],
                          [{E, [M, N]}, {"f32", [K]}, {E, [M, P]}, {E, [Q, N]}, {"i32", []}]),
    is_near(times(tessera:multiply(columns(U, K), S), rows(V, K)), A),
    ?assertEqual(tessera:to_list(S), lists:reverse(lists:sort(tessera:to_list(S)))).

triangular_test_() ->
    [{lists:flatten([E, " ", Side, Uplo, Trans, Diag]), fun() -> triangular(E, L, [Side, Uplo, Trans, Diag]) end}
     || {E, L, _} <- letters(), Side <- "LR", Uplo <- "LU", Trans <- "NTC", Diag <- "NU"].

triangular(E, L, [Side, Uplo, Trans, Diag]) ->
    A = tessera:add(matrix({3, 3}, E, 9), tessera:multiply(2.0, eye())),
    B = matrix({3, 3}, E, 11),
    [X] = run(["lapack_", L, "trsm_ffi"], ["side = ", code(Side), ", uplo = ", code(Uplo), ", trans_x = ", code(Trans), ", diag = ", code(Diag)], [A, B],
              [{E, [3, 3]}, {E, [3, 3]}], [{E, [3, 3]}]),
    Strict = case Uplo of $U -> part(A, fun tessera:less/2); $L -> part(A, fun tessera:greater/2) end,
    Diagonal = case Diag of $U -> eye(); $N -> tessera:multiply(A, eye()) end,
    T = tessera:add(Strict, Diagonal),
    Op = case Trans of $N -> T; $T -> tessera:transpose(T); $C -> adjoint(T) end,
    is_near(case Side of $L -> times(Op, X); $R -> times(X, Op) end, B).

eye() -> tessera:tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).

%% ---- calls of JAX's own: tridiagonal systems with moved pivots, and sparse matrices

tridiagonal(Lower, Diagonal, Upper, B) ->
    Lines = {"f32", [length(Diagonal)]},
    Sides = {"f32", [length(B), length(hd(B))]},
    [X] = run("tridiagonal_solve_perturbed_ffi", "", [tessera:tensor(L, f32) || L <- [Lower, Diagonal, Upper, B]], [Lines, Lines, Lines, Sides], [Sides]),
    tessera:to_list(X).

%% The product of the matrix and X; the first number below the diagonal and the last one above it are not read.
tridiagonal_product(Lower, Diagonal, Upper, X) ->
    Zeros = [0 || _ <- hd(X)],
    [[L * P + D * C + U * N || {P, C, N} <- lists:zip3(Before, Row, After)]
     || {L, D, U, Before, Row, After} <- rows_of(Lower, Diagonal, Upper, [Zeros | X], X, tl(X) ++ [Zeros])].

rows_of([A | As], [B | Bs], [C | Cs], [D | Ds], [E | Es], [F | Fs]) -> [{A, B, C, D, E, F} | rows_of(As, Bs, Cs, Ds, Es, Fs)];
rows_of([], [], [], _, [], []) -> [].

perturbed_test_() ->
    B = fun(N) -> [[math:sin(I), math:cos(3 * I)] || I <- lists:seq(1, N)] end,
    [{lists:flatten(io_lib:format("~w ~w ~w", [Lower, Diagonal, Upper])),
      fun() ->
              X = tridiagonal(Lower, Diagonal, Upper, B(length(Diagonal))),
              Product = tridiagonal_product(Lower, Diagonal, Upper, X),
              Largest = lists:max([abs(E) || E <- lists:append(X)]),
              ?assertEqual([], [{P, Q} || {P, Q} <- lists:zip(lists:append(Product), lists:append(B(length(Diagonal)))), abs(P - Q) > 2.0e-6 * Largest])
      end}
     || {Lower, Diagonal, Upper} <- [{[9], [2], [9]},
                                     {[9, 1, -1, 0.5], [4, 5, 3, 6], [1, -2, 1, 9]},
                                     {[9, 2, -2, 3], [0, 0.1, 0, 1], [1, 1, 5, 9]},     % rows change places
                                     {[9, 1, 1], [1, 2, 1], [1, 1, 9]},                 % singular: rank 2
                                     {[9, 0, 0], [1, 0, 1], [0, 0, 9]},                 % a row of zeros
                                     {[9, 0], [0, 3], [1, 9]}]].                        % a column of zeros

%% Pivots are compared by the sizes of their rows. By the first row, whose pivot is the larger one, X would be 0.6 % off.
scaled_pivots_test() ->
    [[X], [Y]] = tridiagonal([9, 1], [10, 1], [1.0e6, 9], [[1.0e6], [2]]),
    ?assert(abs(X - 1.00001) < 1.0e-6),
    ?assert(abs(Y - 0.99999) < 1.0e-6).

no_pivots_test() ->
    Large = tridiagonal([0, 0, 0], [0, 0, 0], [0, 0, 0], [[1], [1], [-1]]),
    ?assertMatch([[A], [B], [C]] when A > 1.0e30 andalso A =:= B andalso C =:= -A, Large),
    %% right sides so large that a division by the smallest pivot would overflow
    ?assertMatch([[A]] when A > 1.0e37, tridiagonal([9], [0], [9], [[3.0e38]])),
    ?assertMatch([[A]] when A < -1.0e37, tridiagonal([9], [-1.0e-38], [9], [[3.0e38]])).

perturbed_batch_test() ->
    Lines = {"complex<f32>", [2, 4]},
    Sides = {"complex<f32>", [2, 4, 3]},
    [L, D, U] = [matrix({2, 4}, "complex<f32>", S) || S <- [3, 5, 9]],
    B = matrix({2, 4, 3}, "complex<f32>", 12),
    [X] = run("tridiagonal_solve_perturbed_ffi", "", [L, D, U, B], [Lines, Lines, Lines, Sides], [Sides]),
    [Y | _] = lists:reverse(lists:droplast(run("lapack_cgtsv_ffi", "", [L, D, U, B], [Lines, Lines, Lines, Sides],
                                               [Lines, Lines, Lines, Sides, {"i32", [2]}]))),
    ?assert(tessera:to_number(tessera:reduce_max(tessera:abs(Y))) < 100),
    ?assert(difference(X, Y) < 2.0e-4),
    Empty = {"f32", [0]},
    ?assertEqual([], tridiagonal_of_nothing(Empty)).

tridiagonal_of_nothing(Empty) ->
    Nothing = tessera:broadcast(1.0, {0}),
    [X] = run("tridiagonal_solve_perturbed_ffi", "", [Nothing, Nothing, Nothing, tessera:broadcast(1.0, {0, 2})], [Empty, Empty, Empty, {"f32", [0, 2]}],
              [{"f32", [0, 2]}]),
    tessera:to_list(X).

%% Rows from the third to the fifth entry and so on; the last two entries are padding, and the third row has none.
csr_test_() ->
    [{lists:flatten([E, " ", I]),
      fun() ->
              Data = tessera:as_type(tessera:tensor([2, 3, 4, 5, 7, 7]), T),
              [Outer, Inner] = [tessera:tensor(L, N) || L <- [[0, 2, 3, 3, 4], [0, 2, 1, 2, 9, -1]]],
              Dense = tessera:as_type(tessera:tensor([[1, 10], [2, 20], [3, 30]]), T),
              Call = fun(D, S, R) -> run("cpu_csr_sparse_dense_ffi", "", [Data, Outer, Inner, D], [{E, [6]}, {I, [5]}, {I, [6]}, {E, S}], [{E, R}]) end,
              [Matrix] = Call(Dense, [3, 2], [4, 2]),
              ?assertEqual({T, [[11, 110], [8, 80], [0, 0], [15, 150]]}, {tessera:type(Matrix), tessera:to_list(tessera:as_type(Matrix, s32))}),
              [Vector] = Call(tessera:reshape(tessera:slice(Dense, [0, 1], [3, 1]), {3}), [3], [4]),
              ?assertEqual([110, 80, 0, 150], tessera:to_list(tessera:as_type(Vector, s32)))
      end}
     || {E, T} <- [{"f32", f32}, {"f64", f64}, {"i32", s32}, {"i64", s64}, {"complex<f32>", c64}, {"complex<f64>", c128}], {I, N} <- [{"i32", s32}, {"i64", s64}]].

%% Entries of a NaN are padding as well, and without entries or columns there is nothing to add.
csr_edges_test() ->
    Call = fun(Data, Outer, Inner, Dense, Shape) ->
                   Types = [{E, tuple_to_list(tessera:shape(X))} || {E, X} <- [{"f32", Data}, {"i32", Outer}, {"i32", Inner}, {"f32", Dense}]],
                   [X] = run("cpu_csr_sparse_dense_ffi", "", [Data, Outer, Inner, Dense], Types, [{"f32", Shape}]),
                   tessera:to_list(X)
           end,
    Nothing = tessera:broadcast(1.0, {0}),
    ?assertEqual([2.0, 0.0], Call(tessera:tensor([nan, 2.0, nan]), tessera:tensor([1, 2, 2]), tessera:tensor([0, 0, 0]), tessera:tensor([1.0]), [2])),
    ?assertEqual([0.0, 0.0], Call(Nothing, tessera:tensor([0, 0, 0]), tessera:as_type(Nothing, s32), tessera:tensor([1.0]), [2])),
    ?assertEqual([[], []], Call(tessera:tensor([1.0]), tessera:tensor([0, 1, 1]), tessera:tensor([0]), tessera:broadcast(1.0, {1, 0}), [2, 0])),
    ?assertEqual([], Call(tessera:tensor([1.0]), tessera:tensor([0]), tessera:tensor([0]), tessera:tensor([1.0]), [0])).

%% ---- what is refused

refused_calls_test_() ->
    [{Words, fun() -> tessera_test:raises(invalid_argument, Words, fun() -> call_of(Target, Types, Results) end) end}
     || {Words, Target, Types, Results} <-
            [{"expected 4 operands and 1 result", "tridiagonal_solve_perturbed_ffi", [{"f32", [2]}], [{"f32", [2]}]},
             {"its lines and its right sides do not agree", "tridiagonal_solve_perturbed_ffi", [{"f32", [2]}, {"f32", [3]}, {"f32", [2]}, {"f32", [2, 1]}],
              [{"f32", [2, 1]}]},
             {"expected f32, f64, c64 or c128", "tridiagonal_solve_perturbed_ffi", [{"f16", [2]}, {"f16", [2]}, {"f16", [2]}, {"f16", [2, 1]}], [{"f16", [2, 1]}]},
             {"expected 4 operands and 1 result", "cpu_csr_sparse_dense_ffi", [{"f32", [2]}], [{"f32", [2]}]},
             {"do not agree", "cpu_csr_sparse_dense_ffi", [{"f32", [2]}, {"i32", [3]}, {"i32", [3]}, {"f32", [2]}], [{"f32", [2]}]},
             {"do not agree", "cpu_csr_sparse_dense_ffi", [{"f32", [2]}, {"i32", [0]}, {"i32", [2]}, {"f32", [2]}], [{"f32", [0]}]},
             {"do not agree", "cpu_csr_sparse_dense_ffi", [{"f32", [2]}, {"i32", [3]}, {"i32", [2]}, {"f32", []}], [{"f32", [2]}]},
             {"expected indices of s32 or of s64", "cpu_csr_sparse_dense_ffi", [{"f32", [2]}, {"i32", [3]}, {"i64", [2]}, {"f32", [2]}], [{"f32", [2]}]},
             {"expected indices of s32 or of s64", "cpu_csr_sparse_dense_ffi", [{"f32", [2]}, {"f32", [3]}, {"f32", [2]}, {"f32", [2]}], [{"f32", [2]}]},
             {"its entries are f32[2], and its dense operand s32[2]", "cpu_csr_sparse_dense_ffi", [{"f32", [2]}, {"i32", [3]}, {"i32", [2]}, {"i32", [2]}], [{"f32", [2]}]},
             {"its result is f32[2]", "cpu_csr_sparse_dense_ffi", [{"f32", [2]}, {"i32", [3]}, {"i32", [2]}, {"f32", [2]}], [{"f32", [3]}]}]].

call_of(Target, Types, Results) ->
    run(Target, "", [tessera:broadcast(tessera:tensor(1, type_of(E)), list_to_tuple(S)) || {E, S} <- Types], Types, Results).

%% JAX's functions of Python are refused by a name that says so; an order of two values has no effect.
python_test_() ->
    [{Target, fun() -> tessera_test:raises(unimplemented, "a function of Python cannot be called from a program (" ++ Target, fun() -> call_of(Target, [{"f32", [2]}], [{"f32", [2]}]) end) end}
     || Target <- ["xla_python_cpu_callback", "xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback", "xla_buffer_python_cpu_callback"]].

control_dep_test() ->
    F = tessera_stablehlo:function(<<"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                                     "  stablehlo.custom_call @control_dep(%x, %x) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()\n"
                                     "  return %x : tensor<2xf32>\n}\n">>),
    ?assertEqual([[1.0, 2.0]], [tessera:to_list(X) || X <- F([tessera:tensor([1.0, 2.0])])]).

type_of("i32") -> s32;
type_of("i64") -> s64;
type_of(E) -> list_to_atom(E).

refused_test_() ->
    A = matrix({3, 3}, "f32", 1),
    F = {"f32", [3, 3]},
    [?_test(tessera_test:raises(unimplemented, "the routine lapack_sggev_ffi of LAPACK is not known", fun() -> run("lapack_sggev_ffi", "", [A], [F], [F]) end)),
     ?_test(tessera_test:raises(invalid_argument, "expected 1 operands and 2 results", fun() -> run("lapack_sgeqrf_ffi", "", [A], [F], [F]) end)),
     ?_test(tessera_test:raises(unimplemented, "side is other than one of", fun() -> run("lapack_strsm_ffi", "", [A, A], [F, F], [F]) end)),
     ?_test(tessera_test:raises(invalid_argument, "do not agree",
                                fun() -> run("lapack_sorgqr_ffi", "", [A, matrix({4}, "f32", 1)], [F, {"f32", [4]}], [F]) end)),
     ?_test(tessera_test:raises(invalid_argument, "expected the attributes left and transpose",
                                fun() -> run("lapack_sormqr_ffi", "", [A, matrix({3}, "f32", 1), A], [F, {"f32", [3]}, F], [F]) end)),
     ?_test(tessera_test:raises(invalid_argument, "and its matrix do not agree",
                                fun() -> run("lapack_sormqr_ffi", "left = true, transpose = false", [A, matrix({3}, "f32", 1), matrix({2, 3}, "f32", 1)],
                                             [F, {"f32", [3]}, {"f32", [2, 3]}], [F]) end)),
     ?_test(tessera_test:raises(invalid_argument, "custom_call", fun() -> run("lapack_sgetrf_ffi", "", [A], [F], [F, {"i32", [4]}, {"i32", []}]) end))].
