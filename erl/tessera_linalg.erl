%% @private Linear algebra: matrices are the last two axes, any axes before them are a batch. Gradients of its ops.
-module(tessera_linalg).
-include("tessera.hrl").
-export([cholesky/1, triangular_solve/3, solve/2, inverse/1, determinant/1, lu/1]).
-export([cholesky_share/2, triangular_shares/4, solve_shares/3, determinant_share/3, lu_share/3]).

-type options() :: map().
-type attrs() :: {boolean(), boolean(), boolean(), boolean()}. % left, lower, transpose, unit

%% ---- the API

-spec cholesky(tessera:tensor()) -> tessera:tensor().
cholesky(A) -> op(cholesky, [matrices(cholesky, [A], A)], []).

-spec triangular_solve(tessera:tensor(), tessera:tensor(), options()) -> tessera:tensor().
triangular_solve(A, B, Options) ->
    Args = [A, B, Options],
    #{lower := Lower, left_side := Left, transpose := Transpose, unit_diagonal := Unit} =
        tessera_ops:options(triangular_solve, Args, Options,
                            #{lower => true, left_side => true, transpose => false, unit_diagonal => false}),
    with_right_side(triangular_solve, Args, Left,
                    fun(Matrix, Right) -> op(triangular_solve, [Matrix, Right], {Left, Lower, Transpose, Unit}) end).

-spec solve(tessera:tensor(), tessera:tensor()) -> tessera:tensor().
solve(A, B) -> with_right_side(solve, [A, B], true, fun(Matrix, Right) -> op(solve, [Matrix, Right], []) end).

-spec inverse(tessera:tensor()) -> tessera:tensor().
inverse(A) ->
    #tessera{shape = Shape, type = Type} = Matrix = matrices(inverse, [A], A),
    tessera_trace:op(inverse, solve, [Matrix, tessera:eye(Shape, tessera_type:to_float(Type))], []).

-spec determinant(tessera:tensor()) -> tessera:tensor().
determinant(A) -> op(determinant, [matrices(determinant, [A], A)], []).

-spec lu(tessera:tensor()) -> {tessera:tensor(), tessera:tensor(), tessera:tensor()}.
lu(A) -> list_to_tuple(tessera_trace:results(lu, [matrices(lu, [A], A)], [])).

op(Name, Operands, Attrs) -> tessera_trace:op(Name, Name, Operands, Attrs).

%% A tensor with square matrices.
matrices(Name, Args, Given) ->
    Tensor = tessera_ops:tensor(Name, Given),
    case lists:reverse(dims(Tensor)) of
        [N, N | _] -> Tensor;
        _ ->
            tessera_error:raise(Name, Args, invalid_argument,
                                "~s: expected square matrices in the last two axes, got shape ~0p",
                                [Name, Tensor#tessera.shape])
    end.

%% Batches are broadcast. A right side of one axis is a vector, and so is the result.
with_right_side(Name, [A, B | _] = Args, Left, Solve) ->
    Matrix = matrices(Name, Args, A),
    #tessera{shape = Shape} = Right = tessera_ops:tensor(Name, B),
    case Shape of
        {} ->
            tessera_error:raise(Name, Args, invalid_argument, "~s: expected a right side of at least one axis, got a number",
                                [Name]);
        {N} ->
            Column = tessera:reshape(Right, case Left of true -> {N, 1}; false -> {1, N} end),
            #tessera{shape = Solved} = X = in_batches(Name, Args, Left, Matrix, Column, Solve),
            {Batch, _} = lists:split(tuple_size(Solved) - 2, tuple_to_list(Solved)),
            tessera:reshape(X, list_to_tuple(Batch ++ [N]));
        _ -> in_batches(Name, Args, Left, Matrix, Right, Solve)
    end.

in_batches(Name, Args, Left, A, B, Solve) ->
    {BatchA, [N, _]} = parts(A),
    {BatchB, [Rows, Cols]} = parts(B),
    {Axis, Size} = case Left of true -> {row, Rows}; false -> {column, Cols} end,
    Size =:= N orelse
        tessera_error:raise(Name, Args, invalid_argument, "~s: the right side has ~bx~b numbers, expected ~b in each ~s",
                            [Name, Rows, Cols, N, case Axis of row -> column; column -> row end]),
    Batch = joined(Name, Args, BatchA, BatchB),
    Solve(repeated(A, Batch ++ [N, N]), repeated(B, Batch ++ [Rows, Cols])).

parts(Tensor) ->
    Dims = dims(Tensor),
    lists:split(length(Dims) - 2, Dims).

joined(Name, Args, A, B) ->
    Rank = max(length(A), length(B)),
    [PaddedA, PaddedB] = [lists:duplicate(Rank - length(Dims), 1) ++ Dims || Dims <- [A, B]],
    lists:zipwith(fun(X, X) -> X;
                     (1, Y) -> Y;
                     (X, 1) -> X;
                     (_, _) ->
                          tessera_error:raise(Name, Args, invalid_argument, "~s: batches ~0p and ~0p do not broadcast",
                                              [Name, list_to_tuple(A), list_to_tuple(B)])
                  end, PaddedA, PaddedB).

repeated(Tensor, Dims) ->
    case list_to_tuple(Dims) of
        Shape when Shape =:= Tensor#tessera.shape -> Tensor;
        Shape -> tessera:broadcast(Tensor, Shape)
    end.

dims(#tessera{shape = Shape}) -> tuple_to_list(Shape).

%% ---- matrices

%% Products of each two matrices of a batch.
product(A, B) ->
    Rank = length(dims(A)),
    Batch = tessera_type:dims(Rank - 2),
    tessera:dot(A, [Rank - 1], Batch, B, [Rank - 2], Batch).

transposed(A) ->
    Rank = length(dims(A)),
    tessera:transpose(A, tessera_type:dims(Rank - 2) ++ [Rank - 1, Rank - 2]).

%% What Keep says of row and column indices, zeros elsewhere.
part(Keep, #tessera{shape = Shape, type = Type} = A) ->
    Rank = tuple_size(Shape),
    [Row, Column] = [tessera:iota(Shape, s64, Axis) || Axis <- [Rank - 2, Rank - 1]],
    tessera:select(tessera:Keep(Row, Column), A, tessera:full({}, 0, Type)).

%% ---- gradients: C is the result's

%% As for a symmetric matrix (I. Murray, "Differentiation of the Cholesky decomposition", 2016): the gradient is symmetric,
%% although one triangle is read.
-spec cholesky_share(tessera:tensor(), tessera:tensor()) -> tessera:tensor().
cholesky_share(L, C) ->
    Product = product(transposed(L), C),
    Half = tessera:multiply(tessera:add(part(greater_equal, Product), part(greater, Product)), 0.5),
    Left = op(triangular_solve, [L, Half], {true, true, true, false}),
    Both = op(triangular_solve, [L, Left], {false, true, false, false}),
    tessera:multiply(tessera:add(Both, transposed(Both)), 0.5).

%% Of op(A) X = B, or X op(A) = B, with result X.
-spec triangular_shares(tessera:tensor(), tessera:tensor(), tessera:tensor(), attrs()) ->
          [fun(() -> tessera:tensor())].
triangular_shares(A, X, C, {Left, Lower, Transpose, Unit}) ->
    Right = fun() -> op(triangular_solve, [A, C], {Left, Lower, not Transpose, Unit}) end,
    [fun() -> tessera:negate(part(triangle(Lower, Unit), outer(Left, Transpose, Right(), X))) end, Right].

triangle(true, false) -> greater_equal;
triangle(true, true) -> greater;
triangle(false, false) -> less_equal;
triangle(false, true) -> less.

%% What op(A)'s element at a row and column multiplies, as A has it.
outer(true, false, G, X) -> product(G, transposed(X));
outer(true, true, G, X) -> product(X, transposed(G));
outer(false, false, G, X) -> product(transposed(X), G);
outer(false, true, G, X) -> product(transposed(G), X).

%% Of A X = B.
-spec solve_shares(tessera:tensor(), tessera:tensor(), tessera:tensor()) -> [fun(() -> tessera:tensor())].
solve_shares(A, X, C) ->
    Right = fun() -> op(solve, [transposed(A), C], []) end,
    [fun() -> tessera:negate(product(Right(), transposed(X))) end, Right].

%% The determinant D times the transposed inverse, also of C.
-spec determinant_share(tessera:tensor(), tessera:tensor(), tessera:tensor()) -> tessera:tensor().
determinant_share(#tessera{shape = Shape, type = Type} = A, D, C) ->
    Scale = tessera:broadcast(tessera:multiply(C, D), Shape, tessera_type:dims(tuple_size(Shape) - 2)),
    tessera:multiply(Scale, op(solve, [transposed(A), tessera:eye(Shape, Type)], [])).

%% Of P, L and U, where L and U have gradients; none is zeros.
-spec lu_share([tessera:tensor()], Gradient, Gradient) -> tessera:tensor() when Gradient :: tessera:tensor() | none.
lu_share([P, L, U], CL, CU) ->
    Lower = [part(greater, product(transposed(L), CL)) || CL =/= none],
    Upper = [part(less_equal, product(CU, transposed(U))) || CU =/= none],
    Middle = lists:foldl(fun tessera:add/2, hd(Lower ++ Upper), tl(Lower ++ Upper)),
    Left = op(triangular_solve, [L, Middle], {true, true, true, true}),
    product(P, op(triangular_solve, [U, Left], {false, false, true, false})).
