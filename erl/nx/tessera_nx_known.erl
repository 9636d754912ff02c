%% @private Nx's loops that factor a matrix, as ops of the core.
%%
%% A block of Nx is an op of the core. A gradient has the block's default in its place, traced again on the block's own
%% operands, and the loops in it factor the matrix step by step. Such a loop is recognised by its structure: Nx's function is
%% traced once for the type and shape, and the digest of its loop is kept. A loop that has the same digest, and whose state
%% begins in the same way, becomes the op. A caller's precision and count of rounds are not compared, as the ops have neither. For
%% `svd' the branch with the loops becomes the op: so a gradient is computed from the block's singular vectors, with the same
%% signs.
%%
%% A gradient of a gradient through `cholesky', `eigh', `lu' or `qr' has loops that this does not replace. There Nx differentiates
%% its own algorithm, since the rule for the first gradient reads the results of the loop. A loop of such a program runs the steps
%% backwards, on the state and its cotangents, and factors nothing.
-module(tessera_nx_known).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([loop/1, choice/1, lower/3]).
-export_type([factors/0]).

%% A factorization and the shape of its matrices.
-type factors() :: {cholesky | qr | lu | eigh, tessera:shape()}.
-type digest() :: <<_:128>> | {matrix, non_neg_integer()} | number.
-type memo() :: #{term() => digest() | true}.

%% The factorization that a loop computes.
-spec loop(map()) -> factors() | none.
loop(?NODE(_, while, [Initial | _]) = Node) ->
    State = tessera_nx_expr:leaves(Initial),
    first(candidates(State), Node, State).

first([], _, _) -> none;
first([{Kind, Type, Shape} | Candidates], Node, State) ->
    case known(Kind, Type, Shape) of
        {Loop, Start} when Start =/= none ->
            case start(Kind, State) =:= Start andalso body(Node) =:= Loop of
                true -> {Kind, Shape};
                false -> first(Candidates, Node, State)
            end;
        _ -> first(Candidates, Node, State)
    end.

form(#{type := Type} = Leaf) -> {Type, tessera_nx_tensor:shape(Leaf)}.

%% By the types and shapes of the state: the factorizations whose loop it may be, with type and shape of the matrices. They
%% are a batch on one axis, which may be of size 1.
candidates([#{type := {Kind, _}} | _] = State) when Kind =:= s; Kind =:= u ->
    of_state([form(Leaf) || Leaf <- State]) ++ wide(State);
candidates(_) -> [].

of_state([_, {T, {K, N, N}}, {T, {K, N, N}}]) -> any_numbers(cholesky, T, [{K, N, N}]);
of_state([_, {{f, 32}, {K, N, N}}, {{Class, _} = T, {K, N, N}}]) when Class =:= s; Class =:= u -> [{cholesky, T, {K, N, N}}];
of_state([_, {T, {K, M, M}}, {T, {K, M, N}}, _]) when M >= N -> any_numbers(qr, T, [{K, M, N}]);
of_state([_, _, _, {T, {K, N, N}}, _, _]) -> any_numbers(lu, T, [{K, N, N}]);
of_state([_, {T, {K, H, H}} = Part, Part, Part, Part, Part, Part, _, _, Part, Part, _]) ->
    any_numbers(eigh, T, [{K, N, N} || N <- [2 * H, 2 * H - 1], N > 1]);
of_state(_) -> [].

%% Nx adds rows of zeros to a matrix that is wider than high.
wide([_, _, R, _]) ->
    case {form(R), rows_added(R)} of
        {{T, {K, N, N}}, High} when High > 0, High < N -> any_numbers(qr, T, [{K, N - High, N}]);
        _ -> []
    end;
wide(_) -> [].

rows_added(?NODE(_, pad, [_, ?NODE(_, constant, [Zero]), [_, {0, High, 0}, {0, 0, 0}]])) when Zero == 0 -> High;
rows_added(?NODE(_, as_type, [A])) -> rows_added(A);
rows_added(_) -> 0.

any_numbers(Kind, {c, _} = Type, Shapes) -> [{Kind, Type, Shape} || Shape <- Shapes];
any_numbers(Kind, Type, Shapes) -> real(Kind, Type, Shapes).

real(Kind, {Class, _} = Type, Shapes) when Class =:= f; Class =:= bf -> [{Kind, Type, Shape} || Shape <- Shapes];
real(_, _, _) -> [].

%% ---- Nx's own loops

%% The digests of Nx's loop for such matrices and of its first state; `none' if this Nx has no such loop, or Nx is
%% missing.
known(Kind, Type, Shape) -> fetch({Kind, Type, Shape}, fun() -> traced(Kind, Type, Shape) end).

fetch(Key, Trace) ->
    tessera_cache:fetch({?MODULE, Key}, fun() -> try Trace() catch _:_ -> none end end).

traced(Kind, Type, Shape) ->
    [{Node, State} | _] = [{Loop, State} || ?NODE(_, while, [Initial | _]) = Loop <- outermost(roots(Kind, Type, Shape)),
                                            State <- [tessera_nx_expr:leaves(Initial)],
                                            lists:member({Kind, Type, Shape}, candidates(State))],
    {body(Node), start(Kind, State)}.

%% What Nx computes for a factorization.
roots(Kind, Type, Shape) ->
    Template = 'Elixir.Nx':template(Shape, Type),
    tessera_nx_tensor:flatten('Elixir.Nx.Defn':debug_expr_apply(fun(A) -> factored(Kind, A) end, [Template])).

factored(cholesky, A) -> 'Elixir.Nx.LinAlg':cholesky(A);
factored(qr, A) -> 'Elixir.Nx.LinAlg':qr(A);
factored(lu, A) -> 'Elixir.Nx.LinAlg':lu(A);
factored(eigh, A) -> 'Elixir.Nx.LinAlg':eigh(A);
factored({svd, Full, Rounds}, A) -> 'Elixir.Nx.LinAlg':svd(A, [{'full_matrices?', Full}, {max_iter, Rounds}]).

%% The loops and choices outside of others, also in blocks.
outermost(Roots) -> outermost(Roots, #{}).

outermost([?NODE(Id, Op, _) = Node | Nodes], Seen) when not is_map_key(Id, Seen) ->
    Seen1 = Seen#{Id => true},
    case Op of
        _ when Op =:= while; Op =:= 'cond' -> [Node | outermost(Nodes, Seen1)];
        _ when Op =:= block; Op =:= optional -> outermost(lists:append(tessera_nx_expr:bodies(Node)) ++ Nodes, Seen1);
        _ -> outermost(tessera_nx_expr:operands(Node) ++ Nodes, Seen1)
    end;
outermost([_ | Nodes], Seen) -> outermost(Nodes, Seen);
outermost([], _) -> [].

%% ---- singular values

%% Nx finds singular vectors in a branch for matrices that are not zero. The matrices, and whether the vectors are all of
%% them.
-spec choice(map()) -> {svd, map(), boolean()} | none.
choice(?NODE(_, 'cond', [[{Predicate, _}], Last]) = Node) ->
    case [form(Leaf) || Leaf <- tessera_nx_expr:leaves(Last)] of
        [{_, {K, M, Left}}, {_, {K, _}}, {_, {K, Right, N}}] -> svd(compared(Predicate), {K, M, N}, {Left, Right}, Node);
        _ -> none
    end;
choice(_) -> none.

%% The matrices that are compared with zero.
compared(?NODE(_, all, [A | _])) -> compared(A);
compared(?NODE(_, equal, [A, _])) -> A;
compared(_) -> none.

svd(#{type := Type} = Matrix, {_, M, N} = Shape, Sides, Node) ->
    Forms = [Full || {Full, Own} <- [{true, {M, N}}, {false, {min(M, N), min(M, N)}}], Own =:= Sides],
    Found = [{svd, unbatched(Matrix), Full} || tessera_nx_tensor:shape(Matrix) =:= Shape, Full <- Forms, Rounds <- rounds(Node),
                                    branches(Matrix, Node) =:= known_branches({svd, Full, Rounds}, Type, Shape)],
    case Found of
        [First | _] -> First;
        [] -> none
    end;
svd(none, _, _, _) -> none.

%% The matrices before Nx made one axis of their batch axes: the block's operand, so that the op is one with the block's.
unbatched(?NODE(_, reshape, [A | _]) = Matrix) ->
    case {lists:reverse(tuple_to_list(tessera_nx_tensor:shape(A))), tessera_nx_tensor:shape(Matrix)} of
        {[N, M | _], {_, M, N}} -> A;
        _ -> Matrix
    end;
unbatched(Matrix) -> Matrix.

%% How many rounds the eigenvectors in the branch may take.
rounds(?NODE(_, 'cond', [_, Last])) ->
    Nodes = maps:values(tessera_nx_expr:scope(tessera_nx_expr:leaves(Last))),
    lists:usort([Rounds || ?NODE(_, block, [#{'__struct__' := 'Elixir.Nx.Block.LinAlg.Eigh', max_iter := Rounds} | _]) <- Nodes]).

%% The digest of the branches of a choice for matrices.
branches(?NODE(Id, _, _), ?NODE(_, 'cond', [[{Predicate, Body}], Last])) ->
    {Digests, _} = parts([Predicate, tessera_nx_expr:leaves(Body), tessera_nx_expr:leaves(Last)], #{Id => {matrix, 1}}),
    erlang:md5(term_to_binary(Digests)).

known_branches(Kind, Type, Shape) ->
    fetch({Kind, Type, Shape},
          fun() ->
                  hd([branches(Matrix, Node) || ?NODE(_, 'cond', [[{Predicate, _}], _]) = Node <- outermost(roots(Kind, Type, Shape)),
                                                Matrix <- [compared(Predicate)], Matrix =/= none])
          end).

%% ---- digests of structure

%% The digest of a loop's condition and body, which use nothing but the state.
body(Node) ->
    {Digest, _} = parts(tessera_nx_expr:bodies(Node), #{}),
    erlang:md5(term_to_binary(Digest)).

%% The digest of the first state, as computed from the matrices.
start(Kind, State) ->
    Matrices = [{Id, {matrix, I}} || I <- matrices(Kind), ?NODE(Id, _, _) <- [lists:nth(I, State)]],
    {Digests, _} = parts(State, maps:from_list(Matrices)),
    erlang:md5(term_to_binary(Digests)).

%% The parts of the state that define the others: the matrix, or its four quarters.
matrices(cholesky) -> [3];
matrices(qr) -> [3];
matrices(lu) -> [4];
matrices(eigh) -> [2, 3, 10, 11].

-spec digest(map(), memo()) -> {digest(), memo()}.
digest(?NODE(_, constant, _), #{bounds := true} = Memo) -> {number, Memo};
digest(?NODE(Id, _, _), Memo) when is_map_key(Id, Memo) -> {maps:get(Id, Memo), Memo};
digest(?NODE(Id, Op, Args) = Node, Memo) ->
    {Parts, Memo1} = parts(essence(Op, Args), Memo),
    Digest = erlang:md5(term_to_binary({Op, form(Node), Parts})),
    {Digest, Memo1#{Id => Digest}}.

%% A node's arguments without those that vary between two traces of one function, or follow from the others. Precision and the
%% count of rounds are numbers in the condition of an inner loop, or floats with which something is compared.
essence(while, [Initial, _, Condition, Body]) -> [Initial, {bounds, Condition}, Body];
essence(less, [A, Bound]) ->
    case is_precision(Bound) of
        true -> [A];
        false -> [A, Bound]
    end;
essence(block, [Struct, Args | _]) -> [Struct, Args];
essence('fun', [_, Body, _]) -> [Body];
essence(_, Args) -> Args.

is_precision(?NODE(_, constant, [Number])) -> is_float(Number);
is_precision(?NODE(_, reshape, [A | _])) -> is_precision(A);
is_precision(_) -> false.

parts(?NODE(_, _, _) = Node, Memo) -> digest(Node, Memo);
parts({bounds, Condition}, Memo) ->
    {Digest, _} = parts(Condition, #{bounds => true}),
    {Digest, Memo};
parts([First | Rest], Memo) ->
    {Digest, Memo1} = parts(First, Memo),
    {Digests, Memo2} = parts(Rest, Memo1),
    {[Digest | Digests], Memo2};
parts(Tuple, Memo) when is_tuple(Tuple) ->
    {Parts, Memo1} = parts(tuple_to_list(Tuple), Memo),
    {list_to_tuple(Parts), Memo1};
parts(Function, Memo) when is_function(Function) -> {function, Memo};
parts(Other, Memo) -> {Other, Memo}.

%% ---- ops of the core

%% The last state of the loop. Of eigh, the norms and the count of rounds stay what they were.
-spec lower(tessera_nif:builder(), factors(), [tessera:tensor()]) -> [tessera:tensor()].
lower(P, {cholesky, {_, N, _} = Shape}, [I, #tessera{type = Type}, A]) ->
    [number(P, I, N), op(P, cholesky, [tessera_nx_ops:conform(P, {Type, Shape}, A)], []), A];
lower(P, {qr, {K, M, N}}, [I, Square, A, Rows]) when M < N ->
    [Q, R] = tessera_nx_ops:results(P, qr, [slice(P, A, [0, 0, 0], [K, M, N])], true),
    Rest = slice(P, Square, [0, M, M], [K, N - M, N - M]),
    [Right, Below] = [tessera_nx_ops:constant(P, {Q#tessera.type, Shape}, 0.0) || Shape <- [{K, M, N - M}, {K, N - M, M}]],
    [number(P, I, N), joined(P, Q, Right, Below, Rest), padded(P, R, [0, N - M, 0]), Rows];
lower(P, {qr, {_, M, N}}, [I, _, A, Rows]) ->
    [Q, R] = tessera_nx_ops:results(P, qr, [A], true),
    [number(P, I, min(M - 1, N)), Q, R, Rows];
lower(P, {lu, {_, N, _}}, [I, Pivot, Order, A | Indices]) ->
    [Permutation, L, U] = tessera_nx_ops:results(P, lu, [A], []),
    Both = op(P, add, [op(P, subtract, [L, eye(P, A)], []), U], []),
    [number(P, I, N), Pivot, op(P, argmax, [real_of(P, Permutation)], {1, false, Order#tessera.type}), Both | Indices];
lower(P, {eigh, {K, N, _}}, [I, Tl, Br, _, _, _, _, Norm, Off, Tr, Bl, Round]) ->
    #tessera{shape = {_, H, _} = Quarter, type = Type} = Tl,
    [Values, Vectors] = tessera_nx_factors:results(P, eigh, [slice(P, joined(P, Tl, Tr, Bl, Br), [0, 0, 0], [K, N, N])], []),
    Rows = padded(P, tessera_nx_factors:adjoint(P, Vectors), [0, 2 * H - N, 2 * H - N]),
    Diagonal = padded(P, tessera_nx_ops:conform(P, {Type, {K, N}}, Values), [0, 2 * H - N]),
    Zeros = tessera_nx_ops:constant(P, {Type, Quarter}, 0.0),
    [number(P, I, K)] ++ [diagonal(P, slice(P, Diagonal, [0, From], [K, H]), Zeros) || From <- [0, H]] ++
        [slice(P, Rows, [0, Row, Column], [K, H, H]) || Row <- [0, H], Column <- [0, H]] ++ [Norm, Off, Zeros, Zeros, Round].

op(P, Name, Operands, Attrs) -> tessera_nx_ops:op(P, Name, Operands, Attrs).

%% Complex numbers without imaginary parts.
real_of(P, #tessera{type = Type} = A) ->
    case tessera_type:is_complex_type(Type) of
        true -> op(P, real, [A], []);
        false -> A
    end.

number(P, #tessera{type = Type}, N) -> tessera_nx_ops:constant(P, {Type, {}}, N).

eye(P, #tessera{type = Type, shape = {_, N, _} = Shape}) ->
    op(P, broadcast, [op(P, eye, [], {Type, {N, N}})], {Shape, [1, 2]}).

joined(P, Tl, Tr, Bl, Br) ->
    op(P, concatenate, [op(P, concatenate, [Tl, Tr], 2), op(P, concatenate, [Bl, Br], 2)], 1).

slice(P, A, Starts, Sizes) ->
    op(P, slice, [A], {Starts, lists:zipwith(fun erlang:'+'/2, Starts, Sizes), [1 || _ <- Sizes]}).

%% Zeros after the elements of each axis.
padded(P, #tessera{type = Type} = A, High) ->
    None = [0 || _ <- High],
    op(P, pad, [A, tessera_nx_ops:constant(P, {Type, {}}, 0.0)], {None, High, None}).

%% Diagonal matrices of vectors.
diagonal(P, Vectors, #tessera{shape = {_, H, _} = Shape} = Zeros) ->
    Where = op(P, broadcast, [op(P, eye, [], {u8, {H, H}})], {Shape, [1, 2]}),
    op(P, select, [Where, op(P, broadcast, [Vectors], {Shape, [0, 2]}), Zeros], []).
