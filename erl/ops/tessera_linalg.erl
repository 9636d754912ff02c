%% @private Linear algebra: matrices are the last two axes, any axes before them are a batch. Gradients of its ops: for
%% complex matrices they are written for the gradients of real parts plus i times the gradients of imaginary parts, the
%% conjugates of Tessera's gradients (docs/complex.md).
-module(tessera_linalg).
-include("tessera.hrl").
-export([cholesky/1, triangular_solve/3, solve/2, inverse/1, determinant/1, lu/1, qr/2, eigh/1, svd/2]).
-export([pinv/1, lstsq/2, matrix_power/2, matrix_rank/1, norm/2, computed_in/1, epsilon/1, matrices/3, adjoint/1]).
-export([cholesky_share/2, triangular_shares/4, solve_shares/3, determinant_share/3, cofactors_share/2, lu_share/3, qr_share/4,
         eigh_share/3, svd_share/2, has_svd_share/2, pinv_share/3, lstsq_shares/3]).

-define(IS_COMPLEX(Type), (Type =:= c64 orelse Type =:= c128)).

%% Up to this condition number second derivatives of determinants by the inverse have at least 11 digits.
-define(WELL_CONDITIONED, 65536.0).

-type attrs() :: {boolean(), boolean(), boolean(), boolean()}. % left, lower, transpose, unit

%% ---- the API

-spec cholesky(tessera_type:tensor()) -> tessera_type:tensor().
cholesky(A) -> op(cholesky, [matrices(cholesky, [A], A)], []).

-spec triangular_solve(tessera_type:tensor(), tessera_type:tensor(), tessera_options:triangular_solve_options()) -> tessera_type:tensor().
triangular_solve(A, B, Options) ->
    Args = [A, B, Options],
    Plain = case Options of
                #{transpose := conjugate} -> Options#{transpose := true};
                _ -> Options
            end,
    #{lower := Lower, left_side := Left, transpose := Transpose, unit_diagonal := Unit} =
        tessera_ops:options(triangular_solve, Args, Plain,
                            #{lower => true, left_side => true, transpose => false, unit_diagonal => false}),
    Conjugate = Plain =/= Options,
    with_right_side(triangular_solve, Args, Left,
                    fun(Matrix, Right) ->
                            A1 = case Conjugate of true -> conjugated(Matrix); false -> Matrix end,
                            op(triangular_solve, [A1, Right], {Left, Lower, Transpose, Unit})
                    end).

-spec solve(tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor().
solve(A, B) -> with_right_side(solve, [A, B], true, fun(Matrix, Right) -> op(solve, [Matrix, Right], []) end).

-spec inverse(tessera_type:tensor()) -> tessera_type:tensor().
inverse(A) ->
    #tessera{shape = Shape, type = Type} = Matrix = matrices(inverse, [A], A),
    tessera_trace:op(inverse, solve, [Matrix, tessera_array:eye(Shape, tessera_type:to_float(Type))], []).

-spec determinant(tessera_type:tensor()) -> tessera_type:tensor().
determinant(A) -> op(determinant, [matrices(determinant, [A], A)], []).

-spec lu(tessera_type:tensor()) -> {tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor()}.
lu(A) -> list_to_tuple(tessera_trace:results(lu, [matrices(lu, [A], A)], [])).

-spec qr(tessera_type:tensor(), tessera_options:factor_options()) -> {tessera_type:tensor(), tessera_type:tensor()}.
qr(A, Options) -> list_to_tuple(tessera_trace:results(qr, [any_matrices(qr, [A, Options], A)], full(qr, A, Options))).

-spec eigh(tessera_type:tensor()) -> {tessera_type:tensor(), tessera_type:tensor()}.
eigh(A) -> list_to_tuple(tessera_trace:results(eigh, [matrices(eigh, [A], A)], [])).

-spec svd(tessera_type:tensor(), tessera_options:factor_options()) -> {tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor()}.
svd(A, Options) ->
    list_to_tuple(tessera_trace:results(svd, [any_matrices(svd, [A, Options], A)], full(svd, A, Options))).

full(Name, A, Options) ->
    #{full := Full} = tessera_ops:options(Name, [A, Options], Options, #{full => false}),
    Full.

%% ---- by singular values

-spec pinv(tessera_type:tensor()) -> tessera_type:tensor().
pinv(A) ->
    {Type, {Matrix, Power}, {U, _, Inverses, V}} = inverted(pinv, [A], A),
    tessera_ops:as_type(times(pinv(Matrix, U, Inverses, V), tessera_elementwise:negate(Power)), Type).

pinv(A, U, Inverses, V) -> tessera_trace:made_by(pinv, product(tessera_elementwise:multiply(V, Inverses), adjoint(U)), [A, U, Inverses, V]).

-spec lstsq(tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor().
lstsq(A, B) ->
    Args = [A, B],
    {Factored, {Matrix, Power}, {#tessera{shape = Shape} = U, Divisors, Inverses, V}} = inverted(lstsq, Args, A),
    {Batch, [M, _]} = parts(U),
    #tessera{type = Type} = Right = tessera_trace:op(lstsq, add, [tessera_operand:tensor(lstsq, B), tessera_array:full({}, 0, Factored)], []),
    Vector = Batch ++ [M],
    Solve = fun(Columns) ->
                    [Left, Other, Wide] = [tessera_ops:as_type(T, computed_in(Type)) || T <- [U, V, Columns]],
                    {Given, Own} = scaled(Wide),
                    By = tessera_ops:as_type(column(Divisors), tessera_type:part(computed_in(Type))),
                    X = product(Other, tessera_elementwise:divide(product(adjoint(Left), Given), By)),
                    Scaled = tessera_trace:made_by(lstsq, X, [Matrix, Given, U, Inverses, V]),
                    tessera_ops:as_type(times(Scaled, tessera_elementwise:subtract(Own, Power)), Type)
            end,
    case dims(Right) of
        Vector ->
            X = Solve(column(Right)),
            tessera_ops:reshape(X, list_to_tuple(lists:droplast(dims(X))));
        Dims when length(Dims) =:= tuple_size(Shape) ->
            case lists:droplast(Dims) of
                Vector -> Solve(Right);
                _ -> unfit(Args, Right, Batch, M)
            end;
        _ -> unfit(Args, Right, Batch, M)
    end.

-spec unfit([term()], tessera_type:tensor(), [integer()], integer()) -> no_return().
unfit(Args, #tessera{shape = Shape}, Batch, M) ->
    tessera_error:raise(lstsq, Args, invalid_argument, "lstsq: the right side has shape ~0p, expected ~0p, or with columns",
                        [Shape, list_to_tuple(Batch ++ [M])]).

%% The type of the result, A as it is factored with its power, and of that U, the singular values, their inverses as a row, and V.
%% Singular values below the tolerance are infinite here. A solution is divided by them, as the inverse of a subnormal number is
%% infinite.
inverted(Name, Args, A) ->
    {Type, Matrix, {U, S, Vt}} = decomposed(Name, Args, A),
    Counts = tessera_elementwise:greater(S, least(U, S, Vt)),
    Divisors = tessera_elementwise:select(Counts, S, tessera_array:full({}, infinity, S#tessera.type)),
    {Type, Matrix, {U, Divisors, row(tessera_elementwise:divide(1, Divisors)), adjoint(Vt)}}.

%% The type of A as a float, and scaled(A) and its factors in the computing type: rounding in a narrower type would exceed the
%% significant singular values.
decomposed(Name, Args, A) ->
    #tessera{type = Given} = Whole = any_matrices(Name, Args, A),
    Type = tessera_type:to_float(Given),
    {Matrix, Power} = scaled(tessera_ops:as_type(Whole, computed_in(Type))),
    {Type, {Matrix, Power}, list_to_tuple(tessera_trace:results(Name, svd, [Matrix], false))}.

%% The type of factors for matrices of a float type.
-spec computed_in(tessera_type:type()) -> tessera_type:type().
computed_in(Type) ->
    case tessera_type:is_float_type(Type) andalso tessera_type:bits(Type) < 32 of
        true -> f32;
        false -> Type
    end.

%% The largest singular value that counts as 0.
least(_, #tessera{shape = Shape} = S, _) when element(tuple_size(Shape), Shape) =:= 0 -> S;
least(U, #tessera{type = Type, shape = Shape} = S, Vt) ->
    {_, [M, _]} = parts(U),
    {_, [_, N]} = parts(Vt),
    tessera_elementwise:multiply(tessera_ops:reduce_max(S, #{axes => [tuple_size(Shape) - 1], keep_axes => true}), max(M, N) * epsilon(Type)).

%% The distance of 1 to the next number of a type of factors.
-spec epsilon(f32 | f64) -> float().
epsilon(f64) -> math:pow(2, -52);
epsilon(f32) -> math:pow(2, -23).

%% A vector of each matrix as a row, or a column.
row(T) -> tessera_ops:reshape(T, list_to_tuple(lists:droplast(dims(T)) ++ [1, lists:last(dims(T))])).
column(T) -> tessera_ops:reshape(T, list_to_tuple(dims(T) ++ [1])).

-spec matrix_rank(tessera_type:tensor()) -> tessera_type:tensor().
matrix_rank(A) ->
    {_, _, {U, S, Vt}} = decomposed(matrix_rank, [A], A),
    Type = tessera_type:index_type(lists:last(dims(S)) + 1),
    tessera_ops:sum(tessera_ops:as_type(tessera_elementwise:greater(S, least(U, S, Vt)), Type), #{axes => [length(dims(S)) - 1]}).

%% ---- numbers near the ends of a type's range

%% X divided by a power of two for each matrix, and the exponents of these powers. The exponents have the axes of X, with size 1 for the axes of the
%% matrices. The largest element of the quotient is about 1, so squares and products of few elements neither overflow nor vanish. X is f32, f64, c64
%% or c128. The quotient is exact, except for elements that are far smaller than the largest one. So a result has the same bits as without the
%% division.
-spec scaled(tessera_type:tensor()) -> {tessera_type:tensor(), tessera_type:tensor()}.
scaled(#tessera{shape = Shape} = X) -> scaled(abs, X, matrix_axes(Shape)).

%% For the function of this name.
scaled(Name, X, Axes) -> scaled_by(largest(tessera_trace:stop_grad(tessera_trace:op(Name, abs, [X], [])), #{axes => Axes, keep_axes => true}), X).

%% The same where Size becomes about 1.
scaled_by(Size, #tessera{type = Type} = X) ->
    {Integer, Digits, Bias} = layout(tessera_type:part(Type)),
    Field = tessera_elementwise:right_shift(tessera_elementwise:bitcast(Size, Integer), Digits),
    %% zeros stay as they are: gradients times the largest power would overflow
    Power = tessera_elementwise:select(tessera_elementwise:equal(Size, 0), 0, tessera_elementwise:subtract(tessera_elementwise:clip(Field, 1, 2 * Bias - 1), Bias)),
    {grown(X, power_of_two(tessera_elementwise:negate(Power), Type)), tessera_ops:as_type(Power, s32)}.

%% X times a power of two; its exponent may be the sum of two exponents of scaled/1. Two products: neither overflows unless the result does.
times(#tessera{type = Type} = X, Power) ->
    Half = tessera_elementwise:right_shift(Power, 1),
    grown(grown(X, power_of_two(Half, Type)), power_of_two(tessera_elementwise:subtract(Power, Half), Type)).

%% The parts of a complex number are multiplied one by one. A complex product would multiply an infinite part by the imaginary part of By, 0: that is
%% NaN.
grown(#tessera{type = Type} = X, By) when ?IS_COMPLEX(Type) -> tessera_complex:complex(tessera_elementwise:multiply(tessera_complex:real(X), By), tessera_elementwise:multiply(tessera_complex:imag(X), By));
grown(X, By) -> tessera_elementwise:multiply(X, By).

power_of_two(Power, Type) ->
    Part = tessera_type:part(Type),
    {Integer, Digits, Bias} = layout(Part),
    tessera_elementwise:bitcast(tessera_elementwise:left_shift(tessera_elementwise:add(tessera_ops:as_type(Power, Integer), Bias), Digits), Part).

%% Of a float type: the integer type of the same size, the number of digits below the exponent, and the bias of the exponent.
layout(f32) -> {s32, 23, 127};
layout(f64) -> {s64, 52, 1023}.

%% ---- powers and norms

-spec matrix_power(tessera_type:tensor(), integer()) -> tessera_type:tensor().
matrix_power(A, N) when is_integer(N), N < 0 ->
    _ = matrices(matrix_power, [A, N], A),
    matrix_power(inverse(A), -N);
matrix_power(A, N) when is_integer(N) ->
    #tessera{shape = Shape, type = Type} = Matrix = matrices(matrix_power, [A, N], A),
    case N of
        0 -> tessera_array:eye(Shape, Type);
        _ -> power(Matrix, N)
    end;
matrix_power(A, N) ->
    tessera_error:raise(matrix_power, [A, N], invalid_argument, "matrix_power: expected an integer, got ~ts",
                        [tessera_error:show(N)]).

power(A, 1) -> A;
power(A, N) when N rem 2 =:= 0 -> power(product(A, A), N div 2);
power(A, N) -> product(A, power(product(A, A), N div 2)).

-spec norm(tessera_type:tensor(), tessera_options:norm_options()) -> tessera_type:tensor().
norm(Given, Options) ->
    Args = [Given, Options],
    Tensor = tessera_operand:tensor(norm, Given),
    #{order := Order, axes := Axes, keep_axes := Keep} =
        tessera_ops:options(norm, Args, Options, #{order => 2, axes => all, keep_axes => false}),
    Over = #{keep_axes => Keep, axes => tessera_type:axes(norm, Args, Axes, length(dims(Tensor)))},
    %% a float first: the least integer of a type has no size in it
    X = tessera_ops:as_type(Tensor, tessera_type:to_float(Tensor#tessera.type)),
    Sizes = fun() -> tessera_trace:op(norm, abs, [X], []) end,
    case Order of
        _ when (Order =:= spectral orelse Order =:= nuclear), Axes =:= all -> matrix_norm(Args, Tensor, Order, Keep);
        infinity -> largest(Sizes(), Over);
        neg_infinity -> tessera_ops:reduce_min(Sizes(), Over);
        1 -> tessera_ops:sum(Sizes(), Over);
        _ when is_number(Order), Order == 0 ->
            tessera_ops:sum(tessera_ops:as_type(tessera_elementwise:not_equal(X, 0), tessera_type:part(X#tessera.type)), Over);
        _ when is_number(Order) -> power_norm(Order, X, Over);
        _ ->
            tessera_error:raise(norm, Args, invalid_argument,
                                "norm: order is ~ts, expected a number, infinity, neg_infinity, or, without axes, spectral or nuclear",
                                [tessera_error:show(Order)])
    end.

%% The root of a sum of powers, computed in f32 at least.
power_norm(Order, #tessera{type = Type} = Given, Over) ->
    X = tessera_ops:as_type(Given, computed_in(Type)),
    Part = tessera_type:part(Type),
    Norm = case Order == 2 of
               true -> root_of_squares(X, Over);
               false when abs(Order) < 0.125; abs(Order) < 0.5, Part =/= f64 -> plain_norm(Order, Given, Over);
               false -> scaled_norm(Order, X, Over)
           end,
    tessera_ops:as_type(Norm, Part).

%% Scaling takes a pass over X, so it is done only where squares may be near an end of the range.
root_of_squares(#tessera{type = Type} = X, Over) ->
    Part = tessera_type:part(Type),
    Sum = sum_of_squares(X, Over),
    Least = case Part of f64 -> math:pow(2, -960); f32 -> math:pow(2, -100) end,
    Is = tessera_elementwise:logical_and(tessera_elementwise:greater_equal(Sum, Least), tessera_elementwise:less_equal(Sum, largest_number(Sum))),
    tessera_control:'cond'(tessera_ops:all(Is), fun() -> tessera_elementwise:sqrt(Sum) end, fun() -> scaled_norm(2, X, Over) end).

sum_of_squares(X, Over) ->
    Sizes = tessera_trace:op(norm, abs, [X], []),
    tessera_ops:sum(tessera_elementwise:multiply(Sizes, Sizes), Over).

%% The size that weighs most becomes about 1. What leaves the range weighs less than 2^-63 in f32, and 2^-127 in f64: power_norm/3 takes smaller
%% orders elsewhere.
scaled_norm(Order, X, Over) ->
    Size = heaviest(Order, tessera_trace:stop_grad(tessera_trace:op(norm, abs, [X], [])), Over#{keep_axes := true}),
    {Scaled, Power} = scaled_by(Size, X),
    without_axes(times(root_of_sum(Order, without_infinities(Order, Scaled, Size), Over#{keep_axes := true}), Power), Over).

%% For negative orders infinite elements weigh nothing beside a finite one. The derivative of a complex abs has no value there, so the
%% largest number replaces them.
without_infinities(Order, #tessera{type = Type} = X, Size) when Order < 0, ?IS_COMPLEX(Type) ->
    Is = tessera_elementwise:logical_and(tessera_elementwise:is_infinity(tessera_trace:stop_grad(tessera_trace:op(norm, abs, [X], []))),
                                         tessera_elementwise:less_equal(Size, largest_number(Size))),
    tessera_elementwise:select(Is, tessera_array:full({}, largest_number(Size), Type), X);
without_infinities(_, X, _) -> X.

root_of_sum(Order, X, Over) when Order == 2 -> tessera_elementwise:sqrt(sum_of_squares(X, Over));
root_of_sum(Order, X, Over) ->
    Sizes = tessera_trace:op(norm, abs, [X], []),
    Unit = one_of_size(Order, Sizes, Over),
    tessera_elementwise:multiply(tessera_ops:pow(tessera_ops:sum(tessera_ops:pow(tessera_elementwise:divide(Sizes, Unit), Order), Over), 1 / Order), Unit).

%% Of an order near 0 sizes at both ends of the range weigh about the same, so none may leave it. Their powers are near 1.
plain_norm(Order, #tessera{type = Type} = Given, Over) ->
    X = tessera_ops:as_type(Given, case tessera_type:is_complex_type(Type) of true -> c128; false -> f64 end),
    Sizes = tessera_trace:op(norm, abs, [X], []),
    tessera_ops:pow(tessera_ops:sum(tessera_ops:pow(Sizes, Order), Over), 1 / Order).

without_axes(X, #{keep_axes := true}) -> X;
without_axes(X, #{axes := Axes}) -> tessera_ops:squeeze(X, Axes).

matrix_norm(Args, X, Order, Keep) ->
    {_, S, _} = list_to_tuple(tessera_trace:results(norm, svd, [any_matrices(norm, Args, X)], false)),
    Last = length(dims(S)) - 1,
    Over = #{axes => [Last], keep_axes => Keep},
    Norm = case Order of
               spectral -> largest(S, Over);
               nuclear -> tessera_ops:sum(S, Over)
           end,
    case Keep of
        true -> column(Norm);
        false -> Norm
    end.

%% Powers of sizes divided by this size do not overflow. 1 where this size is 0 or not finite.
one_of_size(Order, Sizes, Over) ->
    Size = heaviest(Order, tessera_trace:stop_grad(Sizes), Over),
    tessera_elementwise:select(is_normal(Size), Size, 1.0).

%% The largest size, or for negative orders the smallest one.
heaviest(Order, Sizes, Over) when Order > 0 -> largest(Sizes, Over);
heaviest(_, Sizes, Over) -> smallest(Sizes, Over).

smallest(#tessera{shape = Shape} = Sizes, #{axes := Axes} = Over) ->
    case lists:any(fun(Axis) -> element(Axis + 1, Shape) =:= 0 end, Axes) of
        true -> tessera_ops:sum(Sizes, Over);
        false -> tessera_ops:reduce_min(Sizes, Over)
    end.

%% Of sizes: 0 where there is none.
largest(#tessera{shape = Shape} = Sizes, #{axes := Axes} = Over) ->
    case lists:any(fun(Axis) -> element(Axis + 1, Shape) =:= 0 end, Axes) of
        true -> tessera_ops:sum(Sizes, Over);
        false -> tessera_ops:reduce_max(Sizes, Over)
    end.

op(Name, Operands, Attrs) -> tessera_trace:op(Name, Name, Operands, Attrs).

%% A tensor with square matrices.
-spec matrices(atom(), [term()], tessera_type:operand()) -> tessera_type:tensor().
matrices(Name, Args, Given) ->
    Tensor = tessera_operand:tensor(Name, Given),
    case lists:reverse(dims(Tensor)) of
        [N, N | _] -> Tensor;
        _ ->
            tessera_error:raise(Name, Args, invalid_argument,
                                "~s: expected square matrices in the last two axes, got shape ~0p",
                                [Name, Tensor#tessera.shape])
    end.

any_matrices(Name, Args, Given) ->
    Tensor = tessera_operand:tensor(Name, Given),
    case dims(Tensor) of
        [_, _ | _] -> Tensor;
        _ ->
            tessera_error:raise(Name, Args, invalid_argument, "~s: expected matrices in the last two axes, got shape ~0p",
                                [Name, Tensor#tessera.shape])
    end.

%% Batches are broadcast. A right side of one axis is a vector, and so is the result.
with_right_side(Name, [A, B | _] = Args, Left, Solve) ->
    Matrix = matrices(Name, Args, A),
    #tessera{shape = Shape} = Right = tessera_operand:tensor(Name, B),
    case Shape of
        {} ->
            tessera_error:raise(Name, Args, invalid_argument, "~s: expected a right side of at least one axis, got a number",
                                [Name]);
        {N} ->
            Column = tessera_ops:reshape(Right, case Left of true -> {N, 1}; false -> {1, N} end),
            #tessera{shape = Solved} = X = in_batches(Name, Args, Left, Matrix, Column, Solve),
            {Batch, _} = lists:split(tuple_size(Solved) - 2, tuple_to_list(Solved)),
            tessera_ops:reshape(X, list_to_tuple(Batch ++ [N]));
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
        Shape -> tessera_ops:broadcast_to(Tensor, Shape)
    end.

dims(#tessera{shape = Shape}) -> tuple_to_list(Shape).

%% ---- matrices

%% Products of each two matrices of a batch.
product(A, B) ->
    Rank = length(dims(A)),
    Batch = tessera_type:dims(Rank - 2),
    tessera_ops:dot(A, [Rank - 1], Batch, B, [Rank - 2], Batch).

transposed(A) ->
    Rank = length(dims(A)),
    tessera_ops:transpose(A, tessera_type:dims(Rank - 2) ++ [Rank - 1, Rank - 2]).

%% The conjugate transposes; the transposes of real matrices.
-spec adjoint(tessera_type:tensor()) -> tessera_type:tensor().
adjoint(A) -> conjugated(transposed(A)).

conjugated(#tessera{type = Type} = A) when ?IS_COMPLEX(Type) -> tessera_complex:conjugate(A);
conjugated(A) -> A.

%% The elements where Keep is true for the row and column index; zeros at all others.
part(Keep, A) -> part(Keep, A, 0).

part(Keep, #tessera{shape = Shape, type = Type} = A, Else) ->
    Rank = tuple_size(Shape),
    [Row, Column] = [tessera_array:iota(Shape, s64, Axis) || Axis <- [Rank - 2, Rank - 1]],
    tessera_elementwise:select(tessera_elementwise:Keep(Row, Column), A, tessera_array:full({}, Else, Type)).

%% ---- gradients: C is the result's

%% As for a symmetric matrix (I. Murray, "Differentiation of the Cholesky decomposition", 2016): the gradient is symmetric,
%% although one triangle is read.
-spec cholesky_share(tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor().
cholesky_share(L, C) ->
    Product = product(adjoint(L), conjugated(C)),
    Half = tessera_elementwise:multiply(tessera_elementwise:add(part(greater_equal, Product), part(greater, Product)), 0.5),
    Left = op(triangular_solve, [conjugated(L), Half], {true, true, true, false}),
    conjugated(hermitian(op(triangular_solve, [L, Left], {false, true, false, false}))).

hermitian(A) -> tessera_elementwise:multiply(tessera_elementwise:add(A, adjoint(A)), 0.5).

%% The gradients of A and B for op(A) X = B, or X op(A) = B, with result X.
-spec triangular_shares(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor(), attrs()) ->
          [fun(() -> tessera_type:tensor())].
triangular_shares(A, X, C, {Left, Lower, Transpose, Unit}) ->
    Right = fun() -> op(triangular_solve, [A, C], {Left, Lower, not Transpose, Unit}) end,
    [fun() -> tessera_elementwise:negate(part(triangle(Lower, Unit), outer(Left, Transpose, Right(), X))) end, Right].

triangle(true, false) -> greater_equal;
triangle(true, true) -> greater;
triangle(false, false) -> less_equal;
triangle(false, true) -> less.

%% The outer product of G and X, transposed where op(A) is.
outer(true, false, G, X) -> product(G, transposed(X));
outer(true, true, G, X) -> product(X, transposed(G));
outer(false, false, G, X) -> product(transposed(X), G);
outer(false, true, G, X) -> product(transposed(G), X).

%% The gradients of A and B for A X = B.
-spec solve_shares(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor()) -> [fun(() -> tessera_type:tensor())].
solve_shares(A, X, C) ->
    Right = fun() -> op(solve, [transposed(A), C], []) end,
    [fun() -> tessera_elementwise:negate(product(Right(), transposed(X))) end, Right].

%% The cofactors times C, also of complex matrices.
-spec determinant_share(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor().
determinant_share(#tessera{shape = Shape, type = Type} = A0, D0, C) ->
    A = tessera_ops:as_type(A0, computed_in(Type)),
    Cofactors = case element(tuple_size(Shape), Shape) of
                    N when N < 4 -> minors(N, A);
                    _ when A#tessera.type =:= Type -> cofactors(A, D0);
                    _ -> cofactors(A, op(determinant, [A], []))
                end,
    tessera_ops:as_type(tessera_elementwise:multiply(tessera_ops:as_type(of_each(C, Shape), Cofactors#tessera.type), Cofactors), Type).

%% A number for each matrix, repeated for its elements.
of_each(Numbers, Shape) -> tessera_ops:broadcast(Numbers, Shape, tessera_type:dims(tuple_size(Shape) - 2)).

%% The cofactors of small matrices, each by the elements that it is made of.
minors(0, A) -> A;
minors(1, #tessera{shape = Shape, type = Type}) -> tessera_array:full(Shape, 1, Type);
minors(2, A) ->
    Other = around(A, 1, 1),
    tessera_elementwise:subtract(part(equal, Other), part(not_equal, Other));
minors(3, A) ->
    tessera_elementwise:subtract(tessera_elementwise:multiply(around(A, 1, 1), around(A, 2, 2)), tessera_elementwise:multiply(around(A, 1, 2), around(A, 2, 1))).

%% Moves the elements up by Rows and left by Columns, around the edges.
around(A, Rows, Columns) ->
    Rank = length(dims(A)),
    shifted(shifted(A, Rank - 2, Rows), Rank - 1, Columns).

shifted(#tessera{shape = Shape} = A, Axis, By) ->
    [Before, After] = tessera_ops:split(A, [By, element(Axis + 1, Shape) - By], Axis),
    tessera_ops:concatenate([After, Before], Axis).

%% The determinant D times the transposed inverse. Both must come from the same LU factors. Rounding then acts as a small change of A, and
%% a small change of A changes cofactors little, also beside a singular matrix. (solve of A's transpose would use other factors.) Singular
%% values serve where this does not work; they take much longer.
cofactors(#tessera{shape = Shape, type = Type} = A, D) ->
    Regular = tessera_elementwise:multiply(of_each(D, Shape), transposed(op(solve, [A, tessera_array:eye(Shape, Type)], []))),
    tessera_trace:made_by(cofactors, where(has_cofactors(Regular, D), Regular, fun() -> singular_cofactors(A) end), [A]).

%% Whether the product with the inverse gives the cofactors: not where the determinant is 0 or has lost digits, nor where a number overflows.
has_cofactors(#tessera{shape = Shape} = Regular, D) ->
    tessera_elementwise:logical_and(is_normal(D), tessera_ops:all(tessera_elementwise:less_equal(tessera_elementwise:abs(Regular), largest_number(Regular)), #{axes => matrix_axes(Shape)})).

%% Numbers that have all their digits.
is_normal(#tessera{type = Type} = X) ->
    Least = case tessera_type:part(Type) of f64 -> math:pow(2, -1022); f32 -> math:pow(2, -126) end,
    Size = tessera_elementwise:abs(X),
    tessera_elementwise:logical_and(tessera_elementwise:greater_equal(Size, Least), tessera_elementwise:less_equal(Size, largest_number(X))).

largest_number(#tessera{type = Type}) ->
    case tessera_type:part(Type) of
        f64 -> (2 - epsilon(f64)) * math:pow(2, 1023);
        f32 -> (2 - epsilon(f32)) * math:pow(2, 127)
    end.

matrix_axes(Shape) -> [tuple_size(Shape) - 2, tuple_size(Shape) - 1].

%% For each matrix of a batch Regular if Is holds, else what Else() gives. Else takes long: it runs only if a matrix needs it.
where(Is, #tessera{shape = Shape} = Regular, Else) ->
    tessera_control:'cond'(tessera_ops:all(Is), fun() -> Regular end, fun() -> tessera_elementwise:select(of_each(Is, Shape), Regular, Else()) end).

%% The cofactors of a product are the product of the factors' cofactors. Cofactors of S are the products of all elements but
%% one.
singular_cofactors(#tessera{type = Type} = A) ->
    {Even, _, Others} = balanced(tessera_ops:as_type(A, tessera_type:merge(Type, f64))),
    {U, S, Vt, Turns} = factors(Even),
    Middle = diagonal(tessera_ops:as_type(over_own(S, 1), U#tessera.type)),
    tessera_ops:as_type(grown_by(between(U, Middle, Vt, tessera_elementwise:multiply(Turns, leading(S, 1))), Others), Type).

%% A matrix with rows and columns of about one size: rounding of the largest row would hide a small one from its singular values. It is A over Sizes,
%% and the cofactors of A are its own times Others: the product of the sizes of all other rows and columns.
balanced(#tessera{shape = Shape} = A) ->
    [RowAxis, ColumnAxis] = matrix_axes(Shape),
    Rows = largest_along(A, ColumnAxis),
    Columns = largest_along(tessera_elementwise:divide(A, Rows), RowAxis),
    {tessera_elementwise:divide(tessera_elementwise:divide(A, Rows), Columns), tessera_elementwise:multiply(Rows, Columns),
     tessera_elementwise:multiply(column(product_of_others(tessera_ops:squeeze(Rows, ColumnAxis))), row(product_of_others(tessera_ops:squeeze(Columns, RowAxis))))}.

%% The largest size along an axis, or 1 for lines of zeros and for lines that are not finite.
largest_along(A, Axis) ->
    Largest = tessera_ops:reduce_max(tessera_elementwise:abs(tessera_trace:stop_grad(A)), #{axes => [Axis], keep_axes => true}),
    tessera_elementwise:select(is_normal(Largest), Largest, 1.0).

product_of_others(#tessera{shape = Shape} = X) -> tessera_ops:product(part(not_equal, repeated_rows(X), 1), #{axes => [tuple_size(Shape)]}).

%% A product where 0 stays 0.
grown_by(A, By) -> tessera_elementwise:select(tessera_elementwise:equal(A, 0), tessera_array:full({}, 0, A#tessera.type), tessera_elementwise:multiply(A, By)).

%% The singular values, and the cofactors of U and of V' without their determinants. The last result is the product of the first
%% two.
factors(A) ->
    [U, S, Vt] = tessera_trace:results(svd, [A], false),
    {conjugated(U), S, conjugated(Vt), tessera_elementwise:multiply(op(determinant, [U], []), op(determinant, [Vt], []))}.

between(#tessera{shape = Shape} = U, Middle, Vt, Scale) -> tessera_elementwise:multiply(of_each(Scale, Shape), product(U, product(Middle, Vt))).

%% The product of all elements of S except the last ones, the smallest.
leading(#tessera{shape = Shape} = S, Count) ->
    Last = tuple_size(Shape) - 1,
    [Largest, _] = tessera_ops:split(S, [element(Last + 1, Shape) - Count, Count], Last),
    tessera_ops:product(Largest, #{axes => [Last]}).

%% Quotients of two elements of S: the one with number Which from the end over each one. A product of elements times such a quotient is the
%% product with the first element in the other's place. An element over itself is 1, also if it is 0. Quotients by later elements are not
%% used.
over_own(#tessera{shape = Shape} = S, Which) ->
    Last = tuple_size(Shape) - 1,
    N = element(Last + 1, Shape),
    [_, Own, _] = tessera_ops:split(S, [N - Which, 1, Which - 1], Last),
    Quotients = over(tessera_ops:broadcast_to(Own, Shape), S),
    tessera_elementwise:select(tessera_elementwise:equal(tessera_array:iota(Shape, s64, Last), N - Which), 1.0, Quotients).

%% The gradient of A; C is the gradient of its cofactors.
-spec cofactors_share(tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor().
cofactors_share(#tessera{shape = Shape, type = Type} = A0, C0) ->
    [A, C] = [tessera_ops:as_type(T, tessera_type:merge(Type, f64)) || T <- [A0, C0]],
    Identity = tessera_array:eye(Shape, A#tessera.type),
    Constant = tessera_trace:stop_grad(A),
    Condition = tessera_elementwise:multiply(frobenius(Constant), frobenius(op(solve, [Constant, Identity], []))),
    Is = tessera_elementwise:logical_and(tessera_elementwise:less_equal(Condition, ?WELL_CONDITIONED), is_normal(op(determinant, [Constant], []))),
    Regular = regular_share(tessera_elementwise:select(of_each(Is, Shape), A, Identity), C),
    tessera_ops:as_type(where(Is, Regular, fun() -> singular_share(A, C) end), Type).

%% Of each matrix the square root of the sum of the squares of its elements.
frobenius(#tessera{shape = Shape} = A) -> norm(A, #{axes => matrix_axes(Shape)}).

%% From the determinant and the inverse. The terms cancel: A must be well conditioned.
regular_share(#tessera{shape = Shape, type = Type} = A, C) ->
    B = transposed(op(solve, [A, tessera_array:eye(Shape, Type)], [])),
    Along = tessera_ops:sum(tessera_elementwise:multiply(B, C), #{axes => matrix_axes(Shape)}),
    Terms = tessera_elementwise:subtract(tessera_elementwise:multiply(of_each(Along, Shape), B), product(B, product(transposed(C), B))),
    tessera_elementwise:multiply(of_each(op(determinant, [A], []), Shape), Terms).

%% From singular values. In their bases A is the diagonal matrix S. Let P(i, j) be the product of all elements of S but those with numbers i and
%% j. The cofactor (i, i) changes with the element (j, j) by P(i, j). The cofactor (i, j) changes with the element (j, i) by -P(i, j).
%% No other cofactor changes.
singular_share(#tessera{shape = Shape, type = Type} = A, C) ->
    {Even, Sizes, Others} = balanced(A),
    {U, S, Vt, Turns} = factors(Even),
    Inside = product(product(transposed(U), grown_by(C, Others)), transposed(Vt)),
    Pairs = product(column(over_own(S, 2)), row(over_own(S, 1))),
    Above = part(less, Pairs),
    Products = tessera_ops:as_type(tessera_elementwise:add(Above, transposed(Above)), Type),
    OfDiagonal = product(Products, column(diagonal_of(Inside))),
    Middle = tessera_elementwise:subtract(part(equal, tessera_ops:broadcast_to(OfDiagonal, Shape)), tessera_elementwise:multiply(Products, transposed(Inside))),
    tessera_elementwise:divide(between(U, Middle, Vt, tessera_elementwise:multiply(Turns, leading(S, 2))), Sizes).

diagonal_of(#tessera{shape = Shape} = A) -> tessera_ops:sum(part(equal, A), #{axes => [tuple_size(Shape) - 1]}).

%% The gradient of A for P, L and U. L and U have gradients, where `none' stands for zeros.
-spec lu_share([tessera_type:tensor()], Gradient, Gradient) -> tessera_type:tensor() when Gradient :: tessera_type:tensor() | none.
lu_share([P, L, U], CL, CU) ->
    Lower = [part(greater, product(transposed(L), CL)) || CL =/= none],
    Upper = [part(less_equal, product(CU, transposed(U))) || CU =/= none],
    Middle = lists:foldl(fun tessera_elementwise:add/2, hd(Lower ++ Upper), tl(Lower ++ Upper)),
    Left = op(triangular_solve, [L, Middle], {true, true, true, true}),
    product(P, op(triangular_solve, [U, Left], {false, false, true, false})).

%% The gradient of A for Q and R, by A = Q R (H.-J. Liao and others, "Differentiable programming tensor networks", 2019). Of complex
%% matrices for functions that do not depend on the phases of Q's columns. Where A has more columns than rows, Q and R's first columns
%% are the factors of A's first columns, and R's others are Q' times A's others.
-spec qr_share(tessera_type:tensor(), [tessera_type:tensor()], Gradient, Gradient) -> tessera_type:tensor() when Gradient :: tessera_type:tensor() | none.
qr_share(A, [Q, R], CQ0, CR0) ->
    [CQ, CR] = [conjugated(or_zeros(C, Like)) || {C, Like} <- [{CQ0, Q}, {CR0, R}]],
    case parts(R) of
        {_, [K, K]} -> conjugated(square_qr_share(Q, R, CQ, CR));
        {_, [K, N]} ->
            [{R1, _}, {CR1, CR2}, {_, A2}] = [{columns(T, 0, K), columns(T, K, N - K)} || T <- [R, CR, A]],
            First = square_qr_share(Q, R1, tessera_elementwise:add(CQ, product(A2, adjoint(CR2))), CR1),
            conjugated(tessera_ops:concatenate([First, product(Q, CR2)], length(dims(A)) - 1))
    end.

square_qr_share(Q, R, CQ, CR) ->
    M = tessera_elementwise:subtract(product(R, adjoint(CR)), product(adjoint(CQ), Q)),
    Symmetric = tessera_elementwise:add(part(greater_equal, M), adjoint(part(greater, M))),
    Right = tessera_elementwise:add(CQ, product(Q, Symmetric)),
    op(triangular_solve, [conjugated(R), Right], {false, false, true, false}).

columns(T, From, Count) ->
    {Batch, [M, _]} = parts(T),
    tessera_ops:slice(T, [0 || _ <- Batch] ++ [0, From], Batch ++ [M, Count]).

rows(T, Count) ->
    {Batch, [_, N]} = parts(T),
    tessera_ops:slice(T, [0 || _ <- Batch] ++ [0, 0], Batch ++ [Count, N]).

or_zeros(none, #tessera{shape = Shape, type = Type}) -> tessera_array:full(Shape, 0, Type);
or_zeros(C, _) -> C.

%% The gradient of A for its eigenvalues and vectors. It is symmetric, although one triangle is read. Of complex matrices for
%% functions that do not depend on the phases of vectors, here and below.
-spec eigh_share([tessera_type:tensor()], Gradient, Gradient) -> tessera_type:tensor() when Gradient :: tessera_type:tensor() | none.
eigh_share([Values, Vectors], CValues, CVectors) ->
    OfValues = [diagonal(conjugated(CValues)) || CValues =/= none],
    OfVectors = [over_differences(product(adjoint(Vectors), conjugated(CVectors)), Values) || CVectors =/= none],
    conjugated(hermitian(product(Vectors, product(sum(OfValues ++ OfVectors), adjoint(Vectors))))).

sum([First | Rest]) -> lists:foldl(fun tessera_elementwise:add/2, First, Rest).

%% Each element at row i and column j divided by X[j] - X[i], with zeros on the diagonal.
over_differences(T, X) -> over(part(not_equal, T), tessera_elementwise:subtract(row(X), column(X))).

%% Quotients, with 0 for 0 / 0: what does not depend on vectors has a gradient where these are not determined.
over(T, By) ->
    [Top, Bottom] = [tessera_ops:broadcast_to(Each, tessera_array:shape(T)) || Each <- [T, By]],
    Nothing = tessera_elementwise:logical_and(tessera_elementwise:equal(Top, 0), tessera_elementwise:equal(Bottom, 0)),
    tessera_elementwise:divide(Top, tessera_elementwise:select(Nothing, tessera_array:full({}, 1, By#tessera.type), Bottom)).

diagonal(X) -> part(equal, repeated_rows(X)).

%% Square matrices whose rows all equal the vector.
repeated_rows(#tessera{shape = Shape} = X) ->
    N = element(tuple_size(Shape), Shape),
    tessera_ops:broadcast_to(row(X), list_to_tuple(tuple_to_list(Shape) ++ [N])).

%% Whether gradients belong only to as many vectors as there are singular values: the matrix does not determine others.
-spec has_svd_share([tessera_type:tensor()], [tessera_type:tensor() | none]) -> boolean().
has_svd_share([U, S, Vt], [CU, _, CVt]) ->
    K = lists:last(dims(S)),
    {_, [_, CountU]} = parts(U),
    {_, [CountV, _]} = parts(Vt),
    (CU =:= none orelse CountU =:= K) andalso (CVt =:= none orelse CountV =:= K).

%% The gradient of A for U, S and V' (J. Townsend, "Differentiating the singular value decomposition", 2016).
-spec svd_share([tessera_type:tensor()], [tessera_type:tensor() | none]) -> tessera_type:tensor().
svd_share([U0, S, Vt0], [CU, CS, CVt]) ->
    K = lists:last(dims(S)),
    {U, Vt} = {columns(U0, 0, K), rows(Vt0, K)},
    OfValues = [diagonal(CS) || CS =/= none],
    Shares = [of_left(U, S, conjugated(CU)) || CU =/= none] ++ [of_right(Vt, S, conjugated(CVt)) || CVt =/= none],
    Middle = tessera_ops:as_type(sum(OfValues ++ [Inner || {Inner, _} <- Shares]), U#tessera.type),
    Inside = product(U, product(Middle, Vt)),
    conjugated(sum([Inside | [Out(U, Vt) || {_, Outside} <- Shares, Out <- Outside]])).

%% The factor between U and V', and the other summand of the gradient.
of_left(U, S, C) ->
    {Turning, Turned} = turned(product(adjoint(U), C), S),
    Inner = with_phases(tessera_elementwise:multiply(Turned, share_of_sum(row(S), column(S))), S, Turning),
    {Inner, [fun(_, Vt) -> product(over(outside(U, C), row(S)), Vt) end || not is_square(U)]}.

of_right(Vt, S, C) ->
    {_, Turned} = turned(product(Vt, adjoint(C)), S),
    {tessera_elementwise:multiply(Turned, share_of_sum(column(S), row(S))),
     [fun(U, _) -> product(U, adjoint(over(outside(adjoint(Vt), adjoint(C)), row(S)))) end || not is_square(Vt)]}.

%% The rotation of the vectors, over the differences of the singular values. The gradient has the differences of their squares: the
%% other factor of these is in share_of_sum/2, as squares may leave the range of the type.
turned(Product, S) ->
    Turning = tessera_elementwise:subtract(Product, adjoint(Product)),
    {Turning, over_differences(Turning, S)}.

%% S / (S + Other), by halves: the sum may overflow.
share_of_sum(S, Other) ->
    [Half, Rest] = [tessera_elementwise:multiply(T, 0.5) || T <- [S, Other]],
    #tessera{shape = Shape} = Sum = tessera_elementwise:add(Half, Rest),
    over(tessera_ops:broadcast_to(Half, Shape), Sum).

%% The part of C that is orthogonal to U's columns.
outside(U, C) -> tessera_elementwise:subtract(C, product(U, product(adjoint(U), C))).

is_square(T) ->
    {_, [M, N]} = parts(T),
    M =:= N.

%% For real matrices the diagonal of the rotation of the vectors is 0.
with_phases(Middle, S, #tessera{type = Type} = Turning) when ?IS_COMPLEX(Type) ->
    tessera_elementwise:add(Middle, part(equal, over(tessera_elementwise:multiply(Turning, 0.5), row(S))));
with_phases(Middle, _, _) -> Middle.

%% The gradient of A for its pseudoinverse P (G. Golub and V. Pereyra, "The differentiation of pseudo-inverses", 1973). It is finite where
%% singular values are equal, and holds for changes of A that keep its rank.
-spec pinv_share(tessera_type:tensor(), tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:tensor().
pinv_share(#tessera{type = Type} = A, P, C0) ->
    C = conjugated(C0),
    [Pt, Ct] = [adjoint(P), adjoint(C)],
    Rows = product(product(Ct, P), Pt),
    Columns = product(Pt, product(P, Ct)),
    Gradient = sum([tessera_elementwise:negate(product(Pt, product(C, Pt))),
                    tessera_elementwise:subtract(Rows, product(A, product(P, Rows))),
                    tessera_elementwise:subtract(Columns, product(product(Columns, P), A))]),
    tessera_ops:as_type(conjugated(Gradient), Type).

%% The gradients of A and B for X = P B, where P is A's pseudoinverse.
-spec lstsq_shares([tessera_type:tensor()], tessera_type:tensor(), tessera_type:tensor()) -> [fun(() -> tessera_type:tensor())].
lstsq_shares([#tessera{type = TypeA} = A0, B, U, Inverses, V], #tessera{type = Type} = X, C0) ->
    [A, P] = [tessera_ops:as_type(T, Type) || T <- [A0, pinv(A0, U, Inverses, V)]],
    C = conjugated(C0),
    Y = product(adjoint(P), C),
    [fun() ->
             Residue = tessera_elementwise:subtract(B, product(A, X)),
             Left = tessera_elementwise:subtract(C, product(adjoint(A), Y)),
             Gradient = sum([tessera_elementwise:negate(product(Y, adjoint(X))), product(Residue, adjoint(product(P, Y))),
                             product(product(adjoint(P), X), adjoint(Left))]),
             tessera_ops:as_type(conjugated(Gradient), TypeA)
     end,
     fun() -> conjugated(Y) end].
