%% @private Eigenvalues and Schur forms of any matrix, by LAPACK (c_src/kernel/lapack.h), and eigenvalues of pairs of symmetric matrices.
-module(tessera_eigen).
-include("tessera.hrl").
-export([eig/1, schur/1, eigh/2]).

-type tensor() :: tessera_type:tensor().

-spec eig(tensor()) -> {tensor(), tensor()}.
eig(A) ->
    #tessera{shape = Shape, type = Type} = Matrix = factored(eig, [A], A),
    {Batch, N} = parts(Shape),
    Line = list_to_tuple(Batch ++ [N]),
    Complex = complex(Type),
    Vectors = {Complex, Shape},
    Values = values(Type, Line),
    Results = call(<<"lapack.geev">>, Matrix, Values ++ [Vectors, Vectors, {s32, list_to_tuple(Batch)}], #{left => 0, right => 1}),
    {Own, [_, Right, Info]} = lists:split(length(Values), Results),
    {or_nan(Info, value(Own)), or_nan(Info, Right)}.

-spec schur(tensor()) -> {tensor(), tensor()}.
schur(A) ->
    #tessera{shape = Shape, type = Type} = Matrix = factored(schur, [A], A),
    {Batch, N} = parts(Shape),
    Number = {s32, list_to_tuple(Batch)},
    [Form, Vectors | Rest] = call(<<"lapack.gees">>, Matrix, [{Type, Shape}, {Type, Shape}] ++ values(Type, list_to_tuple(Batch ++ [N])) ++ [Number, Number],
                                  #{vectors => 1}),
    Info = lists:last(Rest),
    {or_nan(Info, Form), or_nan(Info, Vectors)}.

%% With B = L L', the pair and the matrix inv(L) A inv(L)' have the same values. A vector of the pair is inv(L)' times a vector of the matrix.
-spec eigh(tensor(), tensor()) -> {tensor(), tensor()}.
eigh(A, B) ->
    Args = [A, B],
    [MatrixA, MatrixB] = [tessera_linalg:matrices(eigh, Args, T) || T <- Args],
    Both = tessera_type:merge(type(MatrixA), type(MatrixB)),
    MatrixA#tessera.shape =:= MatrixB#tessera.shape orelse
        tessera_error:raise(eigh, Args, invalid_argument, "eigh: expected matrices of one shape, got shapes ~0p and ~0p",
                            [MatrixA#tessera.shape, MatrixB#tessera.shape]),
    [Own, Other] = [tessera_ops:as_type(T, Both) || T <- [MatrixA, MatrixB]],
    L = tessera_linalg:cholesky(Other),
    Whole = hermitian(Own),
    Half = tessera_linalg:triangular_solve(L, Whole, #{}),
    {Values, Vectors} = tessera_linalg:eigh(tessera_linalg:triangular_solve(L, tessera_linalg:adjoint(Half), #{})),
    {Values, tessera_linalg:triangular_solve(L, Vectors, #{transpose => conjugate})}.

%% ---- matrices

%% In a type that LAPACK has.
factored(Name, Args, Given) ->
    Tensor = tessera_linalg:matrices(Name, Args, Given),
    tessera_ops:as_type(Tensor, tessera_linalg:computed_in(type(Tensor))).

type(#tessera{type = Type}) -> tessera_type:to_float(Type).

parts(Shape) ->
    [N, N | Batch] = lists:reverse(tuple_to_list(Shape)),
    {lists:reverse(Batch), N}.

complex(Type) when Type =:= f32; Type =:= c64 -> c64;
complex(_) -> c128.

%% The hermitian matrix with the same lower triangle, and with the real parts of the diagonal.
hermitian(#tessera{shape = Shape} = A) ->
    Rank = tuple_size(Shape),
    [Row, Column] = [tessera_array:iota(Shape, s64, Axis) || Axis <- [Rank - 2, Rank - 1]],
    Diagonal = tessera_ops:as_type(tessera_complex:real(A), A#tessera.type),
    Upper = tessera_elementwise:select(tessera_elementwise:equal(Row, Column), Diagonal, tessera_linalg:adjoint(A)),
    tessera_elementwise:select(tessera_elementwise:greater(Row, Column), A, Upper).

%% ---- calls

values(Type, Line) when Type =:= f32; Type =:= f64 -> [{Type, Line}, {Type, Line}];
values(Type, Line) -> [{Type, Line}].

value([Re, Im]) -> tessera_complex:complex(Re, Im);
value([Values]) -> Values.

call(Target, Matrix, Types, Attributes) ->
    tessera_plugin:call(Target, [Matrix], [#tessera{type = Type, shape = Shape} || {Type, Shape} <- Types], Attributes).

%% LAPACK found no result where info is not 0.
or_nan(Info, #tessera{shape = Shape, type = Type} = X) ->
    Rank = tuple_size(Info#tessera.shape),
    Failed = tessera_ops:broadcast(tessera_elementwise:not_equal(Info, 0), Shape, tessera_type:dims(Rank)),
    tessera_elementwise:select(Failed, tessera_array:full(Shape, nan, Type), X).
