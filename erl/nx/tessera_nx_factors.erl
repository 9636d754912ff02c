%% @private Factorizations by the core, with the results that Nx's own algorithms have.
-module(tessera_nx_factors).
-include("tessera.hrl").
-export([results/4, adjoint/2]).

%% Of a wide matrix Nx factors the adjoint in `svd': so the left singular vectors have the signs that the right ones of other
%% matrices have, here as in the programs of gradients, which go by both. Nx's pinv, least_squares and matrix_rank take the
%% singular values from its reduced decomposition and compare them with a constant. So singular values that are rounding errors
%% of the largest one have to be 0 in it. They are found in the computing type. The full decomposition keeps all.
-spec results(tessera_nif:builder(), atom(), [tessera:tensor()], term()) -> [tessera:tensor()].
results(P, svd, [A], true) -> singular(P, A, true);
results(P, svd, [#tessera{type = Type, shape = Shape} = A], false) ->
    Wide = tessera_linalg:computed_in(tessera_type:to_float(Type)),
    [U, S, Vt] = singular(P, tessera_nx_ops:conform(P, {Wide, Shape}, A), false),
    [U, cleared(P, S, max(side(Shape, 1), side(Shape, 0))), Vt];
results(P, eigh, [#tessera{shape = Shape} = A], Attrs) ->
    [Values, Vectors] = tessera_nx_ops:results(P, eigh, [A], Attrs),
    [cleared(P, Values, side(Shape, 0)), Vectors];
results(P, Op, Operands, Attrs) -> tessera_nx_ops:results(P, Op, Operands, Attrs).

singular(P, #tessera{shape = Shape} = A, Full) ->
    case side(Shape, 1) < side(Shape, 0) of
        true ->
            [V, S, Ut] = tessera_nx_ops:results(P, svd, [adjoint(P, A)], Full),
            [adjoint(P, Ut), S, adjoint(P, V)];
        false -> tessera_nx_ops:results(P, svd, [A], Full)
    end.

side(Shape, FromLast) -> element(tuple_size(Shape) - FromLast, Shape).

%% With 0 for values that are rounding errors of the largest one.
cleared(P, #tessera{type = Type, shape = Shape} = Values, Side) when element(tuple_size(Shape), Shape) > 0 ->
    Last = tuple_size(Shape) - 1,
    Sizes = op(P, abs, [Values], []),
    Largest = op(P, reduce_max, [Sizes], [Last]),
    Least = op(P, multiply, [Largest, Side * tessera_linalg:epsilon(tessera_linalg:computed_in(Sizes#tessera.type))], []),
    IsNoise = op(P, less_equal, [Sizes, op(P, broadcast, [Least], {Shape, tessera_type:dims(Last)})], []),
    op(P, select, [IsNoise, tessera_nx_ops:constant(P, {Type, Shape}, 0.0), Values], []);
cleared(_, Values, _) -> Values.

%% The conjugate transposes of matrices.
-spec adjoint(tessera_nif:builder(), tessera:tensor()) -> tessera:tensor().
adjoint(P, #tessera{type = Type, shape = Shape} = A) ->
    Rank = tuple_size(Shape),
    #tessera{shape = Turned} = Transposed = op(P, transpose, [A], tessera_type:dims(Rank - 2) ++ [Rank - 1, Rank - 2]),
    case tessera_type:is_complex_type(Type) of
        true -> tessera_nx_ops:apply(P, conjugate, {Type, Turned}, [Transposed]);
        false -> Transposed
    end.

op(P, Name, Operands, Attrs) -> tessera_nx_ops:op(P, Name, Operands, Attrs).
