%% Gradients of determinants, of regular and of singular matrices. The judge computes cofactors exactly: each element is an integer times
%% a power of two.
-module(tessera_cofactors_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

-define(ROUNDS, 2).

%% ---- exact numbers: {Re, Im} of integers, times 2 to the power of a common exponent

%% The elements of a matrix of floats or complex numbers, and the exponent.
exact(Matrix) ->
    Parts = [[binary(P) || P <- parts(X)] || Row <- Matrix, X <- Row],
    Exponent = lists:min([0 | [E || Pair <- Parts, {M, E} <- Pair, M =/= 0]]),
    Scaled = [list_to_tuple([M bsl max(0, E - Exponent) || {M, E} <- Pair]) || Pair <- Parts],
    {in_rows(Scaled, length(Matrix)), Exponent}.

parts({complex, Re, Im}) -> [float(Re), float(Im)];
parts(X) -> [float(X), 0.0].

binary(X) ->
    <<Sign:1, Exponent:11, Fraction:52>> = <<X/float>>,
    Size = case Exponent of 0 -> Fraction; _ -> Fraction bor (1 bsl 52) end,
    {case Sign of 0 -> Size; 1 -> -Size end, max(1, Exponent) - 1075}.

in_rows([], _) -> [];
in_rows(List, N) ->
    {Row, Rest} = lists:split(N, List),
    [Row | in_rows(Rest, N)].

%% An integer times 2 to the power of E, rounded twice.
to_float(0, _) -> 0.0;
to_float(N, E) ->
    Excess = max(0, bits(abs(N)) - 60),
    ldexp(float(N bsr Excess), E + Excess).

bits(N) -> bit_size(binary:encode_unsigned(N)).

ldexp(X, E) when E > 900 -> ldexp(X * math:pow(2, 900), E - 900);
ldexp(X, E) when E < -900 -> ldexp(X * math:pow(2, -900), E + 900);
ldexp(X, E) -> X * math:pow(2, E).

mul({A, B}, {C, D}) -> {A * C - B * D, A * D + B * C}.
add({A, B}, {C, D}) -> {A + C, B + D}.
neg({A, B}) -> {-A, -B}.
signed(I, X) -> case I rem 2 of 0 -> X; 1 -> neg(X) end.

%% By the first row.
det([]) -> {1, 0};
det([First | Rest]) ->
    lists:foldl(fun({_, {0, 0}}, Sum) -> Sum;
                   ({J, X}, Sum) -> add(Sum, signed(J, mul(X, det([without(J, Row) || Row <- Rest]))))
                end, {0, 0}, lists:enumerate(0, First)).

without(I, List) ->
    {Before, [_ | After]} = lists:split(I, List),
    Before ++ After.

cofactor(Matrix, I, J) -> signed(I + J, det([without(J, Row) || Row <- without(I, Matrix)])).

indices(Matrix) -> [{I, J} || I <- lists:seq(0, length(Matrix) - 1), J <- lists:seq(0, length(Matrix) - 1)].

%% In row-major order.
cofactors(Matrix) ->
    {Exact, E} = exact(Matrix),
    [{to_float(Re, (length(Matrix) - 1) * E), to_float(Im, (length(Matrix) - 1) * E)}
     || {I, J} <- indices(Matrix), {Re, Im} <- [cofactor(Exact, I, J)]].

%% The gradient of the sum of cofactors times integer weights. A cofactor is linear in each element.
second(Matrix, Weights) ->
    {Exact, E} = exact(Matrix),
    Numbered = lists:zip(indices(Matrix), Weights),
    [begin
         [One, Zero] = [put_element(Exact, K, L, X) || X <- [{1, 0}, {0, 0}]],
         {Re, Im} = lists:foldl(fun({{I, J}, W}, Sum) when I =/= K, J =/= L ->
                                        Change = add(cofactor(One, I, J), neg(cofactor(Zero, I, J))),
                                        add(Sum, mul({W, 0}, Change));
                                   (_, Sum) -> Sum
                                end, {0, 0}, Numbered),
         {to_float(Re, (length(Matrix) - 2) * E), to_float(Im, (length(Matrix) - 2) * E)}
     end || {K, L} <- indices(Matrix)].

put_element(Matrix, I, J, X) ->
    {Above, [Row | Below]} = lists:split(I, Matrix),
    Above ++ [replaced(Row, J, X) | Below].

replaced(List, I, X) ->
    {Before, [_ | After]} = lists:split(I, List),
    Before ++ [X | After].

%% ---- matrices

%% Rounding makes most of these matrices slightly regular.
matrix(Class, N, Type) ->
    M = [[element(Type) || _ <- lists:seq(1, N)] || _ <- lists:seq(1, N)],
    rounded(made(Class, M), Type).

made(random, M) -> M;
made(equal_columns, M) -> [replaced(Row, length(M) - 1, hd(Row)) || Row <- M];
made(equal_rows, M) -> replaced(M, 0, lists:last(M));
made(multiple_row, M) -> replaced(M, 0, [scaled(X, 2.7) || X <- lists:last(M)]);
made(multiple_column, M) -> [replaced(Row, 0, scaled(lists:last(Row), 0.1)) || Row <- M];
%% The rank is N - 2: all cofactors are 0.
made(two_less, M) -> replaced(made(multiple_row, M), 1 rem length(M), [scaled(X, -1.3) || X <- lists:last(M)]);
made(zero_column, M) -> [replaced(Row, length(M) div 2, 0.0) || Row <- M];
made(zero, M) -> [[0.0 || _ <- Row] || Row <- M];
made(rank_one, M) -> [[scaled(X, float(I)) || X <- hd(M)] || {I, _} <- lists:enumerate(M)];
%% The determinant underflows; the elements belong to a regular matrix.
made(tiny, M) -> [[scaled(X, 1.0e-9) || X <- Row] || Row <- M];
made(graded_rows, M) -> graded(M, 4);
made(steep_rows, M) -> graded(M, 12);
%% What rounding leaves of the largest row is larger than the smallest one.
made(steep_equal_columns, M) -> made(equal_columns, graded(M, 12));
made(steep_zero_column, M) -> made(zero_column, graded(M, 12));
made(steep_equal_rows, M) -> made(equal_rows, transposed(graded(M, 12))).

graded(M, By) -> [[scaled(X, math:pow(2, By * (3 - I))) || X <- Row] || {I, Row} <- lists:enumerate(M)].

classes() ->
    [random, equal_columns, equal_rows, multiple_row, multiple_column, two_less, zero_column, zero, rank_one, tiny, graded_rows,
     steep_rows, steep_equal_columns, steep_zero_column, steep_equal_rows].

element(Type) when Type =:= c64; Type =:= c128 -> {complex, element(f64), element(f64)};
element(_) -> rand:uniform() * 4 - 2.

scaled({complex, Re, Im}, By) -> {complex, Re * By, Im * By};
scaled(X, By) -> X * By.

%% The elements as the tensor has them.
rounded(M, Type) -> tessera:to_list(tessera:tensor(M, Type)).

epsilon(f64) -> math:pow(2, -52);
epsilon(c128) -> math:pow(2, -52);
epsilon(f16) -> math:pow(2, -10);
epsilon(bf16) -> math:pow(2, -7);
epsilon(_) -> math:pow(2, -23).

%% The product of the norms of the largest rows, all but Less, or of columns if that is smaller. No minor of that size is larger, and rounding
%% is in proportion to it.
scale(M, Less) -> min(of_rows(M, Less), of_rows(transposed(M), Less)).

of_rows(M, Less) ->
    Norms = lists:sort([math:sqrt(lists:sum([Re * Re + Im * Im || X <- Row, [Re, Im] <- [parts(X)]])) || Row <- M]),
    lists:foldl(fun erlang:'*'/2, 1.0, lists:nthtail(min(Less, length(Norms)), Norms)).

transposed([[] | _]) -> [];
transposed(M) -> [[hd(Row) || Row <- M] | transposed([tl(Row) || Row <- M])].

%% The largest error over the scale, in units of the type.
error_of(Expected, Actual, Scale, Type) ->
    lists:max([0.0 | [distance(E, A) / (epsilon(Type) * max(Scale, 1.0e-300)) || {E, A} <- lists:zip(Expected, lists:flatten(Actual))]]).

distance({Re, Im}, {complex, A, B}) when is_number(A), is_number(B) -> abs(Re - A) + abs(Im - B);
distance({Re, Im}, A) when is_number(A) -> abs(Re - A) + abs(Im);
distance(_, _) -> 1.0e300. % a NaN or an infinity

%% ---- tests

gradient() -> tessera:grad(fun(T) -> real(tessera:sum(tessera:determinant(T))) end).

%% Of a complex determinant: its real part has the derivative of the determinant for its gradient.
real(#tessera{type = Type} = T) when Type =:= c64; Type =:= c128 -> tessera:real(T);
real(T) -> T.

first_test_() ->
    {timeout, 120,
     [{lists:flatten(io_lib:format("~s ~b ~s", [Class, N, Type])),
       ?_test([begin
                   M = matrix_of_seed(Class, N, Type, Round),
                   Actual = tessera:to_list((gradient())(tessera:tensor(M, Type))),
                   ?assertMatch({_, _, Error} when Error < 100, {M, Actual, error_of(cofactors(M), Actual, scale(M, 1), Type)})
               end || Round <- lists:seq(1, ?ROUNDS)])}
      || Type <- [f64, f32, c128, c64], N <- [1, 2, 3, 4, 5], Class <- classes()]}.

%% The same matrices in each run.
matrix_of_seed(Class, N, Type) -> matrix_of_seed(Class, N, Type, 1).

matrix_of_seed(Class, N, Type, Round) ->
    _ = rand:seed(exsss, {3, N, Round}),
    matrix(Class, N, Type).

%% The determinant overflows or underflows, or a row is smaller than what rounding leaves of another.
extreme_test_() ->
    [{atom_to_list(Name),
      ?_test(begin
                 M = matrix_of_seed(random, 4, f64),
                 Given = Change(M),
                 Weights = lists:seq(1, 16),
                 W = tessera:reshape(tessera:tensor(Weights, f64), {4, 4}),
                 X = tessera:tensor(Given, f64),
                 First = tessera:to_list((gradient())(X)),
                 Actual = tessera:to_list((tessera:grad(fun(T) -> tessera:sum(tessera:multiply(W, first(T))) end))(X)),
                 ?assertMatch({_, _, Error} when Error < 100, {Given, First, error_of(cofactors(Given), First, scale(Given, 1), f64)}),
                 ?assertMatch({_, _, Error} when Error < Second, {Given, Actual, error_of(second(Given, Weights), Actual, 64 * scale(Given, 2), f64)})
             end)}
     || {Name, Second, Change} <-
            [{large, 100, fun(M) -> [[X * 1.0e80 || X <- Row] || Row <- M] end},
             {small, 100, fun(M) -> [[X * 1.0e-90 || X <- Row] || Row <- M] end},
             {one_huge_row, 1.0e8, fun([Row | M]) -> [[X * 1.0e60 || X <- Row] | made(zero_column, M)] end},
             {steep, 1.0e8, fun(M) -> lists:reverse(made(zero_column, graded(M, 30))) end},
             {steep_columns, 1.0e8, fun(M) -> transposed(lists:reverse(made(zero_column, graded(M, 30)))) end},
             {steep_shuffled, 1.0e8, fun(M) -> [A, B, C, D] = made(zero_column, graded(M, 30)), [C, A, D, B] end}]].

%% Narrow types are computed in f32, where nothing underflows.
narrow_test_() ->
    [?_test(begin
                M = matrix_of_seed(Class, 4, Type),
                Actual = tessera:to_list((gradient())(tessera:tensor(M, Type))),
                ?assertMatch({_, _, Error} when Error < 4, {M, Actual, error_of(cofactors(M), Actual, scale(M, 1), Type)})
            end) || Type <- [f16, bf16], Class <- [random, equal_columns, multiple_row, two_less, zero]].

%% A matrix has the same gradient in a batch as alone, with any other matrices.
batch_test_() ->
    [?_test(begin
                Ms = [matrix_of_seed(Class, N, Type) || Class <- classes()],
                Alone = [tessera:to_binary((gradient())(tessera:tensor(M, Type))) || M <- Ms],
                Batch = (gradient())(tessera:tensor(Ms, Type)),
                ?assertEqual(Alone, [tessera:to_binary(tessera:at(Batch, [I])) || {I, _} <- lists:enumerate(0, Ms)])
            end) || Type <- [f64, c64], N <- [3, 4, 6]].

second_test_() ->
    {timeout, 120,
     [{lists:flatten(io_lib:format("~s ~b ~s", [Class, N, Type])),
       ?_test(begin
                  M = matrix_of_seed(Class, N, Type),
                  Weights = [rand:uniform(9) - 5 || _ <- lists:seq(1, N * N)],
                  W = tessera:reshape(tessera:tensor(Weights, Type), {N, N}),
                  Second = tessera:grad(fun(T) -> real(tessera:sum(tessera:multiply(W, first(T)))) end),
                  Actual = tessera:to_list(Second(tessera:tensor(M, Type))),
                  Scale = scale(M, 2) * N * 5,
                  Error = error_of(second(M, Weights), Actual, Scale, Type),
                  %% By the inverse of a matrix of f64 up to 11 digits remain; f32 is computed in f64.
                  Least = case Type of f32 -> 10; _ -> 1.0e5 end,
                  ?assertMatch({_, _, E} when E < Least, {M, Actual, Error})
              end)}
      || Type <- [f64, f32, c128], N <- [2, 3, 4, 5], Class <- classes()]}.

%% The gradient as a function that has a gradient.
first(T) -> (gradient())(T).

%% Third derivatives of regular matrices by differences of second ones.
third_test() ->
    M = tessera:tensor([[2.0, 1.0, 0.5, 0.0], [0.5, -1.5, 0.25, 1.0], [1.0, 0.0, 3.0, -0.5], [0.0, 1.0, 0.5, 1.0]], f64),
    Weighed = fun(F) -> fun(T) -> tessera:sum(tessera:multiply(tessera:sin(tessera:iota({4, 4}, f64)), F(T))) end end,
    Second = tessera:grad(Weighed(gradient())),
    [tessera_test:near(tessera_test:differences(Weighed(Second), X), tessera:to_list(tessera:flatten((tessera:grad(Weighed(Second)))(X))))
     || X <- [M, tessera:eye(4, f64)]].
