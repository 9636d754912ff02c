%% Linear algebra: known values, eager and compiled; errors; gradients against differences; many processes, and
%% callers that are killed.
-module(tessera_linalg_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3, near/2, near/3, check_gradient/2, weighed/1]).

t(List) -> tessera:tensor(List).
t(List, Type) -> tessera:tensor(List, Type).

%% Zeros of either sign are equal.
same(Expected, F, Args) ->
    [?assert(Expected == Got orelse {expected, Expected, got, Got})
     || Got <- [lists_of(apply(F, Args)), lists_of(apply(tessera:jit(F), Args))]].

lists_of(Results) when element(1, Results) =/= tessera -> list_to_tuple([tessera:to_list(R) || R <- tuple_to_list(Results)]);
lists_of(Tensor) -> tessera:to_list(Tensor).

%% ---- values

values_test_() ->
    [{Name, ?_test(same(Expected, F, Args))}
     || {Name, Expected, F, Args} <-
            [{"cholesky", [[2.0, 0.0, 0.0], [6.0, 1.0, 0.0], [-8.0, 5.0, 3.0]], fun tessera:cholesky/1,
              [t([[4, 0, 0], [12, 37, 0], [-16, -43, 98]])]},
             {"cholesky of a batch", [[[2.0]], [[3.0]]], fun tessera:cholesky/1, [t([[[4]], [[9]]], f16)]},
             {"one that is not positive definite", [[[nan, 0.0], [nan, nan]], [[1.0, 0.0], [0.0, 1.0]]],
              fun tessera:cholesky/1, [t([[[1, 2], [2, 1]], [[1, 0], [0, 1]]])]},
             {"cholesky of nothing", [], fun tessera:cholesky/1, [tessera:zeros({0, 0})]},
             {"a vector", [1.0, 1.0], fun tessera:triangular_solve/2, [t([[2, 9], [4, 8]]), t([2, 12])]},
             {"upper", [[1.0], [1.0]], solve(#{lower => false}), [t([[2, 4], [9, 8]]), t([[6], [8]])]},
             {"transposed", [-2.0, 1.5], solve(#{transpose => true}), [t([[2, 9], [4, 8]]), t([2, 12])]},
             {"from the right", [-2.0, 1.5], solve(#{left_side => false}), [t([[2, 9], [4, 8]]), t([2, 12])]},
             {"ones on the diagonal", [2.0, 4.0], solve(#{unit_diagonal => true}), [t([[9, 9], [4, 9]]), t([2, 12])]},
             {"zero on the diagonal", [infinity], solve(#{}), [t([[0]]), t([2])]},
             {"types are merged", [1.0, 1.0], solve(#{}), [t([[2, 9], [4, 8]], s8), t([2, 12], f64)]},
             {"solve", [1.0, 2.0], fun tessera:solve/2, [t([[0, 2], [1, 1]]), t([4, 3])]},
             {"a singular matrix", [neg_infinity, infinity], fun tessera:solve/2, [t([[1, 1], [1, 1]]), t([1, 2])]},
             {"inverses", [[[0.0, 1.0], [0.5, 0.0]], [[1.0, 0.0], [0.0, 0.25]]], fun tessera:inverse/1,
              [t([[[0, 2], [1, 0]], [[1, 0], [0, 4]]], s8)]},
             {"determinants", [-2.0, 4.0], fun tessera:determinant/1, [t([[[0, 2], [1, 0]], [[1, 0], [0, 4]]])]},
             {"determinant of nothing", 1.0, fun tessera:determinant/1, [tessera:zeros({0, 0})]},
             {"lu", {[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.25, 1.0]], [[4.0, 4.0], [0.0, 1.0]]}, fun tessera:lu/1,
              [t([[1, 2], [4, 4]])]},
             {"lu of a singular matrix", {[[[1.0]]], [[[1.0]]], [[[0.0]]]}, fun tessera:lu/1, [t([[[0]]], f16)]},
             {"qr", {[[0.6000000238418579, 0.800000011920929], [0.800000011920929, -0.6000000238418579]],
                     [[5.0, 3.0], [0.0, -1.0]]}, fun(T) ->
                                                        {Q, R} = tessera:qr(T),
                                                        {Q, tessera:round(R)}
                                                end, [t([[3, 1], [4, 3]])]},
             {"qr of nothing", {[[], []], []}, fun tessera:qr/1, [tessera:zeros({2, 0})]},
             {"eigh", {[-3.0, 1.0], [[0.0, 1.0], [1.0, 0.0]]}, fun tessera:eigh/1, [t([[1, 0], [0, -3]], bf16)]},
             {"eigh of nothing", {[], []}, fun tessera:eigh/1, [tessera:zeros({0, 0})]},
             {"svd", {[[1.0, 0.0], [0.0, -1.0], [0.0, 0.0]], [2.0, 1.0], [[0.0, 1.0], [1.0, 0.0]]}, fun tessera:svd/1,
              [t([[0, 2], [-1, 0], [0, 0]])]},
             {"svd of infinity", {[[nan]], [nan], [[nan]]}, fun tessera:svd/1, [t([[infinity]])]},
             {"lu of nothing", {[], [], []}, fun tessera:lu/1, [tessera:zeros({0, 0})]},
             {"batches are broadcast", [[[1.0], [2.0]], [[0.5], [1.0]]], solve(#{}),
              [t([[[2, 0], [0, 1]], [[4, 0], [0, 2]]]), t([[2], [2]])]},
             {"a vector for each matrix", [[1.0], [0.5]], solve(#{}), [t([[[2]], [[4]]]), t([2])]}]].

%% ---- elements that are not read

%% NumPy's values of the matrix with its lower triangle.
eigh_of_a_triangle_test_() ->
    [{atom_to_list(Type), ?_test(begin
        {Values, _} = tessera:eigh(t([[2, Other], [1, 3]], Type)),
        near([3.618033988749895, 1.3819660112501052], tessera:to_list(tessera:real(Values)), 1.0e-6)
     end)} || Type <- [f32, f64, c64, c128], Other <- [nan, infinity, neg_infinity, 0]].

%% Results have the same bits whatever the other triangle has, and the imaginary parts of a Hermitian matrix' diagonal.
unread_test_() ->
    [{lists:flatten(io_lib:format("~s ~b ~w", [Type, N, Batch])), fun() ->
        Shape = list_to_tuple(Batch ++ [N, N]),
        Rank = tuple_size(Shape),
        [Row, Column] = [tessera:iota(Shape, s64, Axis) || Axis <- [Rank - 2, Rank - 1]],
        Whole = definite(Shape, Type),
        Special = tessera:select(tessera:equal(tessera:remainder(tessera:add(Row, Column), 2), 0), infinity, nan),
        Strict = tessera:select(tessera:greater(Column, Row), tessera:as_type(Special, Type), Whole),
        Marked = case lists:member(Type, [c64, c128]) of
                     true -> tessera:complex(tessera:real(Strict), tessera:select(tessera:equal(Column, Row), Special, tessera:imag(Strict)));
                     false -> Strict
                 end,
        Upper = fun(A) -> tessera:transpose(A, lists:seq(0, Rank - 3) ++ [Rank - 1, Rank - 2]) end,
        Solve = fun(Options) -> fun(A) -> tessera:triangular_solve(A, tessera:ones(list_to_tuple(Batch ++ [N, 2]), Type), Options) end end,
        [?assertEqual(bits(F(Whole)), bits(F(Given)))
         || {F, Given} <-
                [{fun tessera:eigh/1, Marked}, {fun tessera:cholesky/1, Marked},
                 {fun(A) -> tessera:eigh(A, Whole) end, Marked}, {fun(B) -> tessera:eigh(Whole, B) end, Marked},
                 {Solve(#{}), Strict}, {Solve(#{transpose => true}), Strict}, {Solve(#{unit_diagonal => true}), Marked},
                 {fun(A) -> (Solve(#{lower => false}))(Upper(A)) end, Strict}]]
     end}
     || Type <- [f32, f64, c64, c128], N <- [1, 2, 3, 16, 17, 33, 70], Batch <- [[], [9]], N < 70 orelse Batch =:= []].

%% A factor has the same bits if nothing reads the others, which are then not computed.
one_of_the_factors_test_() ->
    [{lists:flatten(io_lib:format("~s ~w", [Type, Shape])), fun() ->
        Any = tessera:as_type(tessera:sin(tessera:multiply(tessera:iota(Shape, f64), 12.9898)), Type),
        Square = definite({element(1, Shape), element(2, Shape), element(2, Shape)}, Type),
        [begin
            Factors = F(Given),
            [?assertEqual({I, bits(element(I, Factors))}, {I, bits((tessera:jit(fun(X) -> element(I, F(X)) end))(Given))})
             || I <- lists:seq(1, tuple_size(Factors))]
         end
         || {F, Matrix} <- [{fun tessera:eigh/1, Square}, {fun tessera:svd/1, Any}, {fun tessera:qr/1, Any}],
            Given <- [Matrix, tessera:put_slice(Matrix, [0, 0, 0], tessera:broadcast(tessera:tensor(nan, Type), {1, 1, 1}))]]
     end}
     || Type <- [f32, f64, bf16, c64, c128], Shape <- [{2, 1, 1}, {1, 5, 8}, {20, 16, 9}, {1, 17, 40}, {2, 40, 33}, {1, 70, 65}, {1, 130, 130}]].

%% Its lower triangle is one of a positive definite matrix: the diagonal is as large as the sum of a row's other elements may be.
definite(Shape, Type) ->
    Noise = tessera:sin(tessera:multiply(tessera:iota(Shape, f64), 12.9898)),
    Diagonal = tessera:multiply(tessera:broadcast(tessera:eye(element(tuple_size(Shape), Shape), f64), Shape), 2 * element(tuple_size(Shape), Shape)),
    Lower = tessera:select(tessera:greater(Diagonal, 0), Diagonal, Noise),
    case lists:member(Type, [c64, c128]) of
        true -> tessera:as_type(tessera:complex(Lower, tessera:select(tessera:greater(Diagonal, 0), 0, tessera:cos(Noise))), Type);
        false -> tessera:as_type(Lower, Type)
    end.

bits(Results) when element(1, Results) =/= tessera -> [bits(R) || R <- tuple_to_list(Results)];
bits(Tensor) -> tessera:to_binary(Tensor).

solve(Options) -> fun(A, B) -> tessera:triangular_solve(A, B, Options) end.

misuse_test_() ->
    S = tessera:eye(2),
    [?_test(raises(invalid_argument, Words, F))
     || {Words, F} <-
            [{"cholesky(f32[2,3]): expected square matrices in the last two axes, got shape {2,3}",
              fun() -> tessera:cholesky(tessera:zeros({2, 3})) end},
             {"expected square matrices in the last two axes, got shape {3}",
              fun() -> tessera:triangular_solve(tessera:zeros({3}), S) end},
             {"the right side has 3x1 numbers, expected 2 in each column",
              fun() -> tessera:triangular_solve(S, t([1, 2, 3])) end},
             {"the right side has 3x2 numbers, expected 2 in each column",
              fun() -> tessera:triangular_solve(S, tessera:zeros({3, 2})) end},
             {"the right side has 2x3 numbers, expected 2 in each row",
              fun() -> tessera:triangular_solve(S, tessera:zeros({2, 3}), #{left_side => false}) end},
             {"batches {2} and {3} do not broadcast",
              fun() -> tessera:triangular_solve(tessera:zeros({2, 2, 2}), tessera:zeros({3, 2, 1})) end},
             {"expected a right side of at least one axis, got a number", fun() -> tessera:triangular_solve(S, 1) end},
             {"svd(f32[3]): expected matrices in the last two axes, got shape {3}", fun() -> tessera:svd(tessera:zeros({3})) end},
             {"eigh(f32[2,3]): expected square matrices in the last two axes, got shape {2,3}",
              fun() -> tessera:eigh(tessera:zeros({2, 3})) end},
             {"full is 1, expected true or false", fun() -> tessera:qr(S, #{full => 1}) end},
             {"the right side has shape {3}, expected {2}, or with columns", fun() -> tessera:lstsq(S, t([1, 2, 3])) end},
             {"expected an integer, got 0.5", fun() -> tessera:matrix_power(S, 0.5) end},
             {"order is frobenius, expected a number", fun() -> tessera:norm(S, #{order => frobenius}) end},
             {"unknown options [upper]", fun() -> tessera:triangular_solve(S, S, #{upper => true}) end},
             {"lower is 1, expected true or false", fun() -> tessera:triangular_solve(S, S, #{lower => 1}) end}]].

%% The factor times its transpose is the matrix, and solutions reproduce the right side.
products_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Shape])),
      fun() ->
              A = definite(noise(Shape)),
              L = tessera:cholesky(A),
              close(A, product(L, transposed(L))),
              B = noise(Shape),
              close(B, product(L, tessera:triangular_solve(L, B))),
              close(B, product(tessera:triangular_solve(L, B, #{left_side => false, transpose => true}), transposed(L)))
      end} || Shape <- [{1, 1}, {7, 7}, {3, 16, 16}, {2, 3, 5, 5}, {70, 70}, {200, 200}]].

%% The factors times one another are the matrix.
factors_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Shape])),
      fun() ->
              A = noise(Shape),
              {P, L, U} = tessera:lu(A),
              close(A, product(P, product(L, U))),
              [begin
                   {Q, R} = tessera:qr(A, #{full => Full}),
                   close(A, product(Q, R)),
                   {SU, S, Vt} = tessera:svd(A, #{full => Full}),
                   close(A, product(tessera:multiply(SU, as_row(S)), Vt))
               end || Full <- [true, false]],
              Symmetric = tessera:add(A, transposed(A)),
              {Values, Vectors} = tessera:eigh(Symmetric),
              close(Symmetric, product(tessera:multiply(Vectors, as_row(Values)), transposed(Vectors)))
      end} || Shape <- [{1, 1}, {7, 7}, {9, 16, 16}, {2, 3, 5, 5}, {70, 70}, {200, 200}]].

as_row(T) ->
    {Batch, [N]} = lists:split(tessera:rank(T) - 1, tuple_to_list(tessera:shape(T))),
    tessera:reshape(T, list_to_tuple(Batch ++ [1, N])).

%% Functions of singular values, of matrices of any rank.
pseudoinverse_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Shape])),
      fun() ->
              Plain = tessera:add(tessera:iota(Shape, f64), 1),
              A = tessera:sin(tessera:multiply(Plain, Plain)),
              Rank = tuple_size(Shape),
              Low = product(A, tessera:multiply(transposed(A), 2)),
              [begin
                   P = tessera:pinv(M),
                   near(flat(M), flat(product(product(M, P), M)), 1.0e-6),
                   near(flat(P), flat(product(product(P, M), P)), 1.0e-6)
               end || M <- [A, transposed(A), Low]],
              Small = lists:min([element(Rank, Shape), element(Rank - 1, Shape)]),
              ?assertEqual([Small], lists:usort(lists:flatten([tessera:to_list(tessera:matrix_rank(M)) || M <- [A, Low]]))),
              B = noise(Shape),
              close(product(tessera:pinv(A), B), tessera:lstsq(A, B))
      end} || Shape <- [{1, 1}, {4, 2}, {2, 5, 3}]].

%% The inverses of these singular values are beyond the range; the solutions are not.
least_squares_of_subnormal_numbers_test_() ->
    [?_test(begin
         A = t([[3 * Least, 0], [0, 5 * Least], [0, 0]], Type),
         ?assertEqual([2.0, 7.0], tessera:to_list(tessera:lstsq(A, t([6 * Least, 35 * Least, Least], Type)))),
         ?assertEqual(2, tessera:to_list(tessera:matrix_rank(A)))
     end) || {Type, Least} <- [{f32, math:pow(2, -140)}, {f64, math:pow(2, -1064)}]].

%% Elements near the ends of a type's range: their squares, sums or singular values are beyond it, the results are not.
ends_test_() ->
    [{lists:flatten(io_lib:format("~s of ~s, ~p", [Name, Type, By])),
      ?_test([in_range(scaled_by(Power, Result), G(t(scaled_by(By, Numbers), Type))) || G <- [F, tessera:jit(F)]])}
     || {Type, Large, Least} <- [{f32, math:pow(2, 125), math:pow(2, -149)}, {f64, math:pow(2, 1021), math:pow(2, -1074)}],
        By <- [Large, Least],
        {Name, Power, Result, F, Numbers} <-
            [{rank, 1, 2, fun tessera:matrix_rank/1, [[7, 7], [7, -7]]},
             {rank_of_equal_rows, 1, 1, fun tessera:matrix_rank/1, [[7, 7, 7], [7, 7, 7]]},
             {lstsq, 1, [0.5, 0.25], fun(A) -> tessera:lstsq(A, t(scaled_by(By, [1, 3, 1]), Type)) end, [[4, -4], [4, 4], [4, -4]]},
             {lstsq_of_right_side, By, [6, 0], fun(B) -> tessera:lstsq(t([[1, 1], [1, -1]], Type), B) end, [6, 6]},
             {norm, By, [5, 5], norm(#{axes => [1]}), [[3, 4], [-5, 0]]},
             {norm_of_all, By, [[5]], norm(#{keep_axes => true}), [[0, 4], [-3, 0]]},
             {complex_norm, By, 6, fun(A) -> tessera:norm(tessera:complex(A, tessera:reverse(A))) end, [3, -3]},
             {cubes, By, 6, norm(#{order => 3}), [3, -4, 5]},
             {inverse_squares, By, 2.4, norm(#{order => -2}), [-3, 4]},
             {gradient_of_norm, 1, [0.6, -0.8], tessera:grad(norm(#{})), [3, -4]}]
            ++ [{pinv, 1 / By, [[1 / 14, 1 / 14], [1 / 14, -1 / 14]], fun tessera:pinv/1, [[7, 7], [7, -7]]} || By > 1]].

scaled_by(By, Numbers) when is_list(Numbers) -> [scaled_by(By, N) || N <- Numbers];
scaled_by(By, N) -> N * By.

%% To a part in 10^5 of the largest, or the least number.
in_range(Expected, Tensor) ->
    Least = case tessera:type(Tensor) of f32 -> math:pow(2, -149); _ -> math:pow(2, -1074) end,
    Shoulds = lists:flatten([Expected]),
    Near = max(Least, 1.0e-5 * lists:max([abs(Should) || Should <- Shoulds])),
    [?assert(is_number(Is) andalso abs(Is - Should) =< Near, {Should, Is})
     || {Should, Is} <- lists:zip(Shoulds, lists:flatten([tessera:to_list(Tensor)]))].

gradients_of_zeros_test() ->
    [?assertEqual([[0.0, 0.0], [0.0, 0.0]], tessera:to_list((tessera:grad(fun(A) -> tessera:sum(tessera:multiply(F(A), 7)) end))(tessera:zeros({2, 2}, Type))))
     || Type <- [f32, f64], F <- [fun tessera:pinv/1, fun(A) -> tessera:lstsq(A, t([1, 2], Type)) end]].

%% The least integer of a type has no size in it.
norm_of_least_integers_test() ->
    [?assertEqual(Expected, tessera:to_list(tessera:norm(t([-128, 0], s8), #{order => Order})))
     || {Order, Expected} <- [{1, 128.0}, {2, 128.0}, {infinity, 128.0}, {neg_infinity, 0.0}]].

%% In types of 16 and 8 bits singular values are compared in f32, the computing type. The significant ones are far below the type's
%% own epsilon times the largest one, or times the number of rows.
narrow_types_test_() ->
    [{lists:flatten(io_lib:format("~s, ~b", [Type, N])), {timeout, 60, fun() -> narrow(Type, N) end}}
     || {Type, Sizes} <- [{bf16, [4, 36, 128, 1024]}, {f16, [4, 128, 1024]}, {f8, [4, 128]}, {f8_e4m3fn, [4, 128]}, {f32, [128]}],
        N <- Sizes].

narrow(Type, N) ->
    Quarter = fun(Values) -> lists:append(lists:duplicate(N div 4, Values)) end,
    Diagonal = fun(Values) -> tessera:multiply(tessera:eye(N, Type), t(Quarter(Values), Type)) end,
    A = Diagonal([1.0, 0.125, 0.015625, 0.0]),
    Inverse = tessera:pinv(A),
    ?assertEqual(Type, tessera:type(Inverse)),
    ?assertEqual(tessera:to_list(Diagonal([1.0, 8.0, 64.0, 0.0])), tessera:to_list(Inverse)),
    ?assertEqual(3 * N div 4, tessera:to_list(tessera:matrix_rank(A))),
    X = tessera:lstsq(A, tessera:full({N}, 1, Type)),
    ?assertEqual({Type, Quarter([1.0, 8.0, 64.0, 0.0])}, {tessera:type(X), tessera:to_list(X)}),
    ?assertEqual(N, tessera:to_list(tessera:matrix_rank(tessera:eye(N, Type)))),
    ?assertEqual(1, tessera:to_list(tessera:matrix_rank(tessera:full({N, N}, 1, Type)))).

%% Rounded once: the nearest numbers of the type to f32's results.
narrow_rounding_test_() ->
    [{atom_to_list(Type),
      fun() ->
              A = tessera:as_type(noise({5, 3}), Type),
              B = tessera:as_type(noise({5}), Type),
              [WideA, WideB] = [tessera:as_type(T, f32) || T <- [A, B]],
              [?assertEqual(tessera:to_list(tessera:as_type(Wide, Type)), tessera:to_list(Got))
               || {Wide, Got} <- [{tessera:pinv(WideA), tessera:pinv(A)}, {tessera:pinv(WideA), (tessera:jit(fun tessera:pinv/1))(A)},
                                  {tessera:lstsq(WideA, WideB), tessera:lstsq(A, B)}]],
              ?assertEqual(f64, tessera:type(tessera:lstsq(A, tessera:ones({5}, f64)))),
              G = (tessera:grad(fun(T) -> tessera:sum(tessera:pinv(T)) end))(A),
              ?assertEqual({Type, {5, 3}}, {tessera:type(G), tessera:shape(G)})
      end} || Type <- [f16, bf16, f8, f8_e4m3fn]].

%% Every function on floats of 8 bits.
eight_bits_test_() ->
    [{lists:flatten(io_lib:format("~s of ~s", [Name, Type])),
      fun() ->
              [same(Expected, F, [t(A, Type)]) || {A, Expected} <- Cases],
              [?assertEqual(Type, tessera:type(T)) || {A, _} <- Cases, T <- results(F(t(A, Type)))]
      end}
     || Type <- [f8, f8_e4m3fn],
        M <- [[[0, 2], [1, 0]]], S <- [[[4, 0], [0, 1]]],
        {Name, F, Cases} <-
            [{cholesky, fun tessera:cholesky/1, [{S, [[2.0, 0.0], [0.0, 1.0]]}]},
             {inverse, fun tessera:inverse/1, [{M, [[0.0, 1.0], [0.5, 0.0]]}]},
             {determinant, fun tessera:determinant/1, [{M, -2.0}]},
             {solve, fun(T) -> tessera:solve(T, t([4, 3], Type)) end, [{M, [3.0, 2.0]}]},
             {triangular_solve, fun(T) -> tessera:triangular_solve(T, t([4, 3], Type)) end, [{S, [1.0, 3.0]}]},
             {lu, fun tessera:lu/1, [{M, {[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]}}]},
             {qr, fun tessera:qr/1, [{S, {[[1.0, 0.0], [0.0, 1.0]], S}}]},
             {eigh, fun tessera:eigh/1, [{S, {[4.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]}}]},
             {svd, fun tessera:svd/1, [{S, {[[1.0, 0.0], [0.0, 1.0]], [4.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]}}]},
             {pinv, fun tessera:pinv/1, [{M, [[0.0, 1.0], [0.5, 0.0]]}, {[[2, 0], [0, 0]], [[0.5, 0.0], [0.0, 0.0]]}]},
             {lstsq, fun(T) -> tessera:lstsq(T, t([4, 3], Type)) end, [{M, [3.0, 2.0]}]},
             {matrix_power, fun(T) -> tessera:matrix_power(T, 3) end, [{M, [[0.0, 4.0], [2.0, 0.0]]}]},
             {norm, norm(#{order => nuclear}), [{M, 3.0}]}]].

results(Results) when element(1, Results) =/= tessera -> tuple_to_list(Results);
results(Tensor) -> [Tensor].

made_of_others_test_() ->
    A = t([[1, 1], [0, 1]]),
    M = t([[3, -4], [0, 5]]),
    [{Name, ?_test(same(Expected, F, Args))}
     || {Name, Expected, F, Args} <-
            [{"power", [[1, 7], [0, 1]], fun(T) -> tessera:matrix_power(T, 7) end, [A]},
             {"power of 0", [[1, 0], [0, 1]], fun(T) -> tessera:matrix_power(T, 0) end, [M]},
             {"negative power", [[1.0, -3.0], [0.0, 1.0]], fun(T) -> tessera:matrix_power(T, -3) end, [A]},
             {"a vector's least squares", [2.0], fun tessera:lstsq/2, [t([[0], [2]]), t([1, 4])]},
             {"ranks", [0, 1], fun tessera:matrix_rank/1, [t([[[0, 0]], [[0, 3]]])]},
             {"norm", 5.0, fun tessera:norm/1, [t([3, 4])]},
             {"sums of sizes", [7.0, 5.0], norm(#{order => 1, axes => [1]}), [M]},
             {"largest", [[3.0, 5.0]], norm(#{order => infinity, axes => [0], keep_axes => true}), [M]},
             {"smallest", 0.0, norm(#{order => neg_infinity}), [M]},
             {"how many", 3.0, norm(#{order => 0}), [M]},
             {"spectral", [3.0], norm(#{order => spectral}), [t([[[3, 0], [0, -2]]])]},
             {"largest of none", 0.0, norm(#{order => infinity}), [tessera:zeros({0})]},
             {"largest of none in each row", [0.0, 0.0], norm(#{order => infinity, axes => [1]}), [tessera:zeros({2, 0})]},
             {"no column has a largest", [], norm(#{order => infinity, axes => [0]}), [tessera:zeros({2, 0})]},
             {"smallest of none", infinity, norm(#{order => neg_infinity}), [tessera:zeros({0})]},
             {"spectral of none", 0.0, norm(#{order => spectral}), [tessera:zeros({0, 2})]},
             {"spectral of none in a batch", [[[0.0]], [[0.0]]], norm(#{order => spectral, keep_axes => true}), [tessera:zeros({2, 3, 0})]},
             {"nuclear of none", 0.0, norm(#{order => nuclear}), [tessera:zeros({0, 2})]},
             {"spectral of NaN", nan, norm(#{order => spectral}), [t([[nan]])]},
             {"nuclear", [[[5.0]]], norm(#{order => nuclear, keep_axes => true}), [t([[[3, 0], [0, -2]]])]}]].

norm(Options) -> fun(T) -> tessera:norm(T, Options) end.

%% By mpmath. No size leaves the range, also where another one weighs more or all weigh about the same.
norms_of_distant_sizes_test_() ->
    Sizes = [{f32, [1.0e30, 1.0e-20], 1.0e-6}, {f64, [1.0e200, 1.0e-150], 1.0e-12}],
    Norms = [{-1, [1.0e-20, 1.0e-150]}, {-0.5, [9.9999999998e-21, 1.0e-150]}, {-0.01, [1.1665280454697654e-32, 9.6887683769111436e-151]},
             {0.01, [infinity, 1.0321229294561874e200]}, {0.125, [1.0000045137869635e30, 1.0e200]}, {3, [1.0e30, 1.0e200]}],
    [{lists:flatten(io_lib:format("~s, order ~0p", [Type, Order])),
      fun() ->
              Norm = tessera:to_number(tessera:norm(tessera:tensor(Numbers, Type), #{order => Order})),
              Norm =:= Expected orelse ?assert(abs(Norm - Expected) =< Relative * Expected)
      end}
     || {Order, Each} <- Norms, {{Type, Numbers, Relative}, Expected} <- lists:zip(Sizes, Each)].

gradients_of_norms_of_distant_sizes_test_() ->
    [{lists:flatten(io_lib:format("order ~0p at ~0p", [Order, At])),
      ?_test(tessera_test:near(Expected, tessera:to_list((tessera:grad(norm(#{order => Order})))(tessera:tensor(At, f64))), 1.0e-12))}
     || {Order, At, Expected} <- [{-1, [1.0e200, 1.0e-150], [0.0, 1.0]}, {-0.01, [1.0e200, 1.0e-150], [0.0, 0.96857054879024071]},
                                  {-0.5, [1.0e-200, 1.0e-201], [0.013867777204648739, 0.43853762050453006]}]].

%% Also where what is scaled becomes infinite. Infinite elements alone are the norm.
gradients_of_complex_norms_of_distant_sizes_test_() ->
    Of = fun(Order, At, Type) -> (tessera:grad(norm(#{order => Order})))(tessera:tensor(At, Type)) end,
    [{lists:flatten(io_lib:format("~s, order ~0p", [Type, Order])),
      ?_test(begin
                 [{complex, Re0, Im0}, {complex, Re1, Im1}] = tessera:to_list(Of(Order, [{complex, 0.6 * Small, 0.8 * Small}, {complex, Large, -Large}], Type)),
                 tessera_test:near([0.6, -0.8, 0.0, 0.0], [Re0, Im0, Re1, Im1], 1.0e-6)
             end)}
     || {Type, Small, Large} <- [{c64, 1.0e-30, 1.0e30}, {c64, 1.0e-20, 3.0e19}, {c128, 1.0e-200, 1.0e200}], Order <- [-1, -2, -0.5, -3.5]] ++
        [?_assertEqual(Expected, tessera:to_number(tessera:norm(tessera:tensor(At, c64), #{order => -2})))
         || {Expected, At} <- [{infinity, [{complex, infinity, 0}, {complex, 0, neg_infinity}]}, {2.0, [{complex, infinity, 1}, {complex, 0, 2}]}]].

close(Expected, Actual) -> near(flat(Expected), flat(Actual), 1.0e-9).

flat(T) -> tessera:to_list(tessera:flatten(T)).

noise(Shape) -> tessera:sin(tessera:multiply(tessera:iota(Shape, f64), 12.9898)).

definite(M) ->
    Shape = tessera:shape(M),
    N = element(tuple_size(Shape), Shape),
    tessera:add(product(M, transposed(M)), tessera:multiply(tessera:eye(N, f64), 1.0)).

product(A, B) ->
    Rank = tessera:rank(A),
    Batch = lists:seq(0, Rank - 3),
    tessera:dot(A, [Rank - 1], Batch, B, [Rank - 2], Batch).

transposed(A) ->
    Rank = tessera:rank(A),
    tessera:transpose(A, lists:seq(0, Rank - 3) ++ [Rank - 1, Rank - 2]).

%% ---- gradients

%% Against central differences.
gradients_test_() ->
    X = t([[1.3, -0.7, 0.4], [0.9, 1.2, -0.4], [0.3, 0.2, 1.7]], f64),
    B = t([[0.3, -0.7], [1.1, 0.9], [0.2, -0.4]], f64),
    Solves = [{Left, #{lower => Lower, left_side => Left, transpose => Transpose, unit_diagonal => Unit}}
              || Left <- [true, false], Lower <- [true, false], Transpose <- [true, false], Unit <- [true, false]],
    Side = fun(true) -> B; (false) -> tessera:transpose(B) end,
    [{lists:flatten(io_lib:format("~0p", [Name])),
      ?_test(check_gradient(F, At))}
     || {Name, F, At} <-
            [{cholesky, fun(T) -> tessera:cholesky(definite(T)) end, X},
             {"of a batch", fun(T) ->
                                    Two = tessera:stack([definite(T), definite(tessera:sin(T))]),
                                    tessera:cholesky(Two)
                            end, X}] ++
            [{solve, fun(T) -> tessera:solve(T, B) end, X}, {right_side, fun(T) -> tessera:solve(X, T) end, B},
             {inverse, fun tessera:inverse/1, X}, {determinant, fun tessera:determinant/1, X},
             {determinants, fun(T) -> tessera:determinant(tessera:stack([T, tessera:sin(T)])) end, X}] ++
            [{{lu, Which}, fun(T) -> element(Which, tessera:lu(T)) end, X} || Which <- [2, 3]] ++
            [{{qr, Which}, fun(T) -> element(Which, tessera:qr(T)) end, Y} || Which <- [1, 2], Y <- [X, B]] ++
            [{{eigh, Which}, fun(T) -> element(Which, tessera:eigh(tessera:add(T, transposed(T)))) end, X} || Which <- [1, 2]] ++
            [{{svd, Which}, fun(T) -> element(Which, tessera:svd(T)) end, Y}
             || Which <- [1, 2, 3], Y <- [X, B, tessera:transpose(B)]] ++
            [{"all of svd", fun(T) ->
                                    {U, S, Vt} = tessera:svd(tessera:stack([T, tessera:sin(T)])),
                                    tessera:add(tessera:multiply(U, as_row(S)), Vt)
                            end, X},
             {pinv, fun tessera:pinv/1, B}, {lstsq, fun(T) -> tessera:lstsq(T, t([1.0, 2.0, -1.0], f64)) end, B},
             {power, fun(T) -> tessera:matrix_power(T, 3) end, X}, {norm, fun tessera:norm/1, X},
             {nuclear, norm(#{order => nuclear}), B}] ++
            [{"all of lu", fun(T) ->
                                   {P, L, U} = tessera:lu(tessera:stack([T, tessera:sin(T)])),
                                   tessera:add(tessera:multiply(L, U), P)
                           end, X}] ++
            [{{matrix, O}, fun(T) -> tessera:triangular_solve(T, Side(Left), O) end, X} || {Left, O} <- Solves] ++
            [{{right, O}, fun(T) -> tessera:triangular_solve(X, T, O) end, Side(Left)} || {Left, O} <- Solves] ++
            [{"a vector of a batch", fun(T) -> tessera:triangular_solve(tessera:stack([T, tessera:sin(T)]), t([1.0, 2.0, 3.0], f64)) end,
              X}]].

%% Wide matrices, and results of `full' that the matrix determines.
more_gradients_test_() ->
    Wide = t([[1.3, -0.7, 0.4, 0.8], [0.9, 1.2, -0.4, 0.3]], f64),
    Two = fun(F) -> fun(T) -> F(tessera:stack([T, tessera:sin(T)])) end end,
    Qr = fun(Which) -> fun(T) -> element(Which, tessera:qr(T)) end end,
    Full = fun(Which) -> fun(T) -> element(Which, tessera:svd(T, #{full => true})) end end,
    [{lists:flatten(io_lib:format("~0p", [Name])), ?_test(check_gradient(F, X))}
     || {Name, F, X} <-
            [{{qr, Which}, Qr(Which), Wide} || Which <- [1, 2]] ++
            [{"both of qr", Two(fun(T) -> {Q, R} = tessera:qr(T), product(Q, tessera:sin(R)) end), Wide},
             {"qr of one row", Qr(2), t([[0.4, 1.1, -0.6]], f64)},
             {"values of full", Full(2), Wide}, {"values of full", Full(2), transposed(Wide)},
             {"left of full", Full(1), Wide}, {"right of full", Full(3), transposed(Wide)}]].

%% Vectors stay the same when the matrix is multiplied by a number, and their gradients are divided by it: also where the squares of singular
%% values are outside of the type. The gradients of the matrix itself are judged by differences above.
large_and_small_gradients_test_() ->
    Weighed = fun(T) -> tessera:sum(tessera:multiply(tessera:sin(tessera:iota(tessera:shape(T), f32)), tessera:multiply(tessera:real(T), tessera:real(T)))) end,
    Square = tessera:tensor([[1.0, 2.0, -1.0], [3.0, 5.0, 0.5], [-2.0, 0.25, 4.0]]),
    Complex = tessera:complex(Square, tessera:transpose(Square)),
    [{lists:flatten(io_lib:format("~s ~b 2^~b", [Name, Which, Power])),
      ?_test(begin
                 G = tessera:grad(fun(T) -> Weighed(absolute(element(Which, F(T)))) end),
                 By = math:pow(2, Power),
                 near(parts(G(X)), parts(tessera:multiply(G(tessera:multiply(X, By)), By)), 1.0e-4)
             end)}
     || {Name, Results, F, X} <- [{"svd", [1, 3], fun tessera:svd/1, Square}, {"svd of few rows", [1, 3], fun tessera:svd/1, tessera:slice(Square, [0, 0], [2, 3])},
                                  {"svd of few columns", [1, 3], fun tessera:svd/1, tessera:slice(Square, [0, 0], [3, 2])},
                                  {"complex svd", [1, 3], fun tessera:svd/1, Complex}, {"eigh", [2], fun tessera:eigh/1, tessera:add(Square, tessera:transpose(Square))}],
        Which <- Results, Power <- [66, -76, 120]].

absolute(T) -> case tessera:type(T) of c64 -> tessera:abs(T); _ -> T end.

parts(T) -> [tessera:to_list(Part) || Part <- case tessera:type(T) of c64 -> [tessera:real(T), tessera:imag(T)]; _ -> [T] end].

%% Where singular values or eigenvalues are equal, or 0: what does not depend on single vectors has a gradient.
equal_values_test_() ->
    Eye = t([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    I = [[1.0, 0.0], [0.0, 1.0]],
    Sum = fun(F) -> fun(T) -> tessera:sum(F(T)) end end,
    Half = [[0.5, 0.0], [0.0, 0.5]],
    [{lists:flatten(io_lib:format("~s ~s", [Name, Type])),
      ?_test(near(Expected, tessera:to_list((tessera:grad(Sum(F)))(tessera:as_type(X, Type)))))}
     || Type <- [f32, f64],
        {Name, Expected, F, X} <-
            [{"singular values", tessera:to_list(Eye), fun(T) -> element(2, tessera:svd(T)) end, Eye},
             {"singular values of full", tessera:to_list(Eye), fun(T) -> element(2, tessera:svd(T, #{full => true})) end, Eye},
             {"eigenvalues", tessera:to_list(Eye), fun(T) -> element(1, tessera:eigh(T)) end, Eye},
             {"vectors without weight", tessera:to_list(Eye), fun(T) ->
                  {Values, Vectors} = tessera:eigh(T),
                  tessera:add(tessera:sum(Values), tessera:multiply(tessera:sum(Vectors), 0))
              end, Eye},
             {"nuclear", I, norm(#{order => nuclear}), t(I)}, {"spectral", Half, norm(#{order => spectral}), t(I)},
             {"pinv", [[-1.0, -1.0], [-1.0, -1.0]], fun tessera:pinv/1, t(I)},
             {"pinv of 0", [[0.0, 0.0], [0.0, 0.0]], fun tessera:pinv/1, t([[0.0, 0.0], [0.0, 0.0]])},
             {"lstsq", [[-2.0, -3.0], [-2.0, -3.0]], fun(T) -> tessera:lstsq(T, t([2.0, 3.0])) end, t(I)},
             {"nuclear of a singular matrix", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], norm(#{order => nuclear}),
              t([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])}]].

%% Against differences, in directions that keep the rank of A; also gradients of gradients, of batches, and in a cond.
pseudoinverse_gradients_test_() ->
    Square = t([[1.3, -0.7, 0.4], [0.9, 1.2, -0.4], [0.3, 0.2, 1.7]], f64),
    Tall = t([[0.3, -0.7], [1.1, 0.9], [0.2, -0.4]], f64),
    Right = t([[1.0, 0.3], [2.0, -0.2], [-1.0, 0.8]], f64),
    %% Products of matrices of rank 2 have rank 2.
    Low = fun(T) -> product(T, tessera:transpose(tessera:sin(T))) end,
    Two = fun(T) -> tessera:stack([T, tessera:cos(T)]) end,
    Pinv = fun tessera:pinv/1,
    Lstsq = fun(T) -> tessera:lstsq(T, tessera:slice(Right, [0, 0], [hd(tuple_to_list(tessera:shape(T))), 2])) end,
    Vector = fun(T) -> tessera:lstsq(T, tessera:slice(t([1.0, 2.0, -1.0], f64), [0], [element(1, tessera:shape(T))])) end,
    Functions = [{pinv, Pinv}, {lstsq, Lstsq}, {vector, Vector}, {low_pinv, fun(T) -> Pinv(Low(T)) end},
                 {low_lstsq, fun(T) -> Lstsq(Low(T)) end},
                 {in_cond, fun(T) -> tessera:'cond'(tessera:greater(tessera:sum(T), 0), fun() -> Pinv(T) end,
                                                    fun() -> tessera:transpose(T) end) end},
                 {twice, tessera:grad(weighed(Pinv))}, {lstsq_twice, tessera:grad(weighed(Lstsq))}],
    [{lists:flatten(io_lib:format("~p ~0p", [Name, tessera:shape(X)])), ?_test(check_gradient(F, X))}
     || {Name, F} <- Functions, X <- [Square, Tall, tessera:transpose(Tall)],
        not (lists:member(Name, [low_pinv, low_lstsq]) andalso tessera:shape(X) =:= {2, 3})] ++
    [{"of a batch", ?_test(check_gradient(fun(T) -> Pinv(Two(T)) end, Tall))},
     {"of a batch", ?_test(check_gradient(fun(T) -> tessera:lstsq(Two(T), Two(Right)) end, Tall))},
     {"the right side", ?_test(check_gradient(fun(T) -> tessera:lstsq(Low(Tall), T) end, Right))},
     %% At the identity, where the branch of a cond is differentiated in another cond.
     {"the identity in cond", ?_test(check_gradient(fun(T) ->
         tessera:'cond'(tessera:greater(tessera:sum(T), 0), fun() -> Pinv(T) end, fun() -> tessera:transpose(T) end)
     end, t([[1.0, 0.0], [0.0, 1.0]], f64)))},
     {"the identity twice", ?_test(check_gradient(tessera:grad(weighed(Pinv)), t([[1.0, 0.0], [0.0, 1.0]], f64)))},
     {"types are merged", ?_test(begin
         Of = tessera:grad(fun(T) -> tessera:sum(tessera:lstsq(T, t([1.0, 2.0, -1.0], f64))) end),
         G = Of(tessera:as_type(Tall, f32)),
         ?assertEqual(f32, tessera:type(G)),
         near(tessera:to_list(Of(Tall)), tessera:to_list(G), 1.0e-4)
     end)}].

%% The gradient of a determinant is the matrix of cofactors, also where there is no inverse.
cofactors_test_() ->
    G = tessera:grad(fun(T) -> tessera:sum(tessera:determinant(T)) end),
    Regular = [[2.0, 1.0, 0.0], [0.5, 1.5, -1.0], [1.0, 0.0, 3.0]],
    Zeros = lists:duplicate(3, [0.0, 0.0, 0.0]),
    [{lists:flatten(io_lib:format("~0p ~s", [List, Type])), ?_test(near(Expected, tessera:to_list(G(t(List, Type))), Tolerance))}
     || {Type, Tolerance} <- [{f32, 1.0e-5}, {f64, 1.0e-12}],
        {Expected, List} <-
            [{[[1.0]], [[0.0]]}, {[[0.0, -1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]}, {[[4.0, -2.0], [-2.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]},
             {[[-3.0, 6.0, -3.0], [6.0, -12.0, 6.0], [-3.0, 6.0, -3.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]},
             {[[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.0]]},
             {Zeros, [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [-1.0, -2.0, -3.0]]}, {Zeros, Zeros}]] ++
    [?_assertEqual([], tessera:to_list(G(tessera:zeros({0, 0})))),
     %% A regular matrix has the same bits in a batch with a singular one.
     ?_assertEqual(tessera:to_binary(G(t(Regular))), tessera:to_binary(tessera:at(G(t([Zeros, Regular])), [1]))),
     ?_test(near(tessera:to_list(tessera:multiply(tessera:determinant(t(Regular, f64)), transposed(tessera:inverse(t(Regular, f64))))),
                 tessera:to_list(G(t(Regular, f64))), 1.0e-12)),
     %% Functions with inverses of almost singular matrices: their differences have few digits.
     [?_test(begin
                 X = t(List, f64),
                 Second = (tessera:grad(weighed(F)))(X),
                 near(tessera_test:differences(weighed(F), X), flat(Second), 1.0e-3)
             end)
      || List <- [Regular, [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 3.0]], [[0.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 4.0]]],
         F <- [G, fun(T) -> G(tessera:stack([T, t(Regular, f64)])) end]]].

%% The gradient of a function that reads one triangle is symmetric.
symmetric_gradient_test() ->
    A = definite(noise({4, 4})),
    G = (tessera:grad(weighed(fun tessera:cholesky/1)))(A),
    ?assertEqual(tessera:to_list(G), tessera:to_list(tessera:transpose(G))).

%% ---- processes

%% Many callers at once get the bits of one alone.
many_processes_test_() ->
    {timeout, 60, fun() ->
        As = [definite(noise({N, N})) || N <- [5, 40, 130]],
        Expected = [tessera:to_binary(tessera:cholesky(A)) || A <- As],
        Pids = [spawn_monitor(fun() -> exit([tessera:to_binary(tessera:cholesky(A)) || A <- As]) end) || _ <- lists:seq(1, 1000)],
        [receive {'DOWN', Ref, process, Pid, Result} -> ?assertEqual(Expected, Result) end || {Pid, Ref} <- Pids]
    end}.

%% A caller that is killed inside of a long factorization: its run ends, its memory is freed, and other runs continue.
killed_callers_test_() ->
    {timeout, 60, fun() ->
        A = tessera:add(tessera:full({3000, 3000}, 0.5), tessera:multiply(tessera:eye(3000), 3000)),
        Small = definite(noise({5, 5})),
        Expected = tessera:to_binary(tessera:cholesky(Small)),
        Before = maps:get(live, tessera:memory()),
        [begin
             {Pid, Ref} = spawn_monitor(fun() -> tessera:cholesky(A) end),
             timer:sleep(Delay),
             exit(Pid, kill),
             receive {'DOWN', Ref, process, Pid, _} -> ok end,
             ?assertEqual(Expected, tessera:to_binary(tessera:cholesky(Small)))
         end || Delay <- [0, 5, 20, 50]],
        tessera_test:until_freed(fun() -> maps:get(live, tessera:memory()) =< Before + 1000 end)
    end}.
