%% @private Loops by which Nx factors a matrix, as ops of the core.
%%
%% A block of Nx is an op of the core. A gradient has the block's default in its place, traced again on the block's own
%% operands, and the loops in it factor the matrix step by step. Such a loop is recognised by its structure: Nx's function is
%% traced once for the type and shape, and the digest of its loop is kept. A loop that has the same digest, and whose state
%% begins in the same way, becomes the op. Complex matrices in `eigh' and wide ones in `qr' keep their loops.
-module(tessera_nx_known).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([loop/1, lower/3]).
-export_type([factors/0]).

%% A factorization and the shape of its matrices.
-type factors() :: {cholesky | qr | lu | eigh, tessera:shape()}.
-type digest() :: <<_:128>> | {matrix, non_neg_integer()}.
-type memo() :: #{term() => digest()}.

%% The factorization that a loop computes.
-spec loop(map()) -> factors() | none.
loop(?NODE(_, while, [Initial | _]) = Node) ->
    State = tessera_nx_expr:leaves(Initial),
    first(candidates([form(Leaf) || Leaf <- State]), Node, State).

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
candidates([{{Kind, _}, _} | _] = State) when Kind =:= s; Kind =:= u -> of_state(State);
candidates(_) -> [].

of_state([_, {T, {K, N, N}}, {T, {K, N, N}}]) -> any_numbers(cholesky, T, [{K, N, N}]);
of_state([_, {T, {K, M, M}}, {T, {K, M, N}}, _]) when M >= N -> any_numbers(qr, T, [{K, M, N}]);
of_state([_, _, _, {T, {K, N, N}}, _, _]) -> any_numbers(lu, T, [{K, N, N}]);
of_state([_, {T, {K, H, H}} = Part, Part, Part, Part, Part, Part, _, _, Part, Part, _]) ->
    real(eigh, T, [{K, N, N} || N <- [2 * H, 2 * H - 1], N > 1]);
of_state(_) -> [].

any_numbers(Kind, {c, _} = Type, Shapes) -> [{Kind, Type, Shape} || Shape <- Shapes];
any_numbers(Kind, Type, Shapes) -> real(Kind, Type, Shapes).

real(Kind, {Class, _} = Type, Shapes) when Class =:= f; Class =:= bf -> [{Kind, Type, Shape} || Shape <- Shapes];
real(_, _, _) -> [].

%% ---- Nx's own loops

%% The digests of Nx's loop for such matrices and of its first state; `none' if this Nx has no such loop, or is not there.
known(Kind, Type, Shape) ->
    tessera_cache:fetch({?MODULE, Kind, Type, Shape},
                        fun() ->
                                try traced(Kind, Type, Shape)
                                catch _:_ -> none
                                end
                        end).

traced(Kind, Type, Shape) ->
    Template = 'Elixir.Nx':template(Shape, Type),
    Roots = tessera_nx_tensor:flatten('Elixir.Nx.Defn':debug_expr_apply(fun(A) -> factored(Kind, A) end, [Template])),
    ?NODE(_, while, [Initial | _]) = Node = outermost(Roots, #{}),
    {body(Node), start(Kind, tessera_nx_expr:leaves(Initial))}.

factored(cholesky, A) -> 'Elixir.Nx.LinAlg':cholesky(A);
factored(qr, A) -> 'Elixir.Nx.LinAlg':qr(A);
factored(lu, A) -> 'Elixir.Nx.LinAlg':lu(A);
factored(eigh, A) -> 'Elixir.Nx.LinAlg':eigh(A).

%% The first loop outside of others, also in a block.
outermost([?NODE(_, while, _) = Node | _], _) -> Node;
outermost([?NODE(Id, Op, _) = Node | Nodes], Seen) when not is_map_key(Id, Seen) ->
    Inner = case Op of
                _ when Op =:= block; Op =:= optional -> lists:append(tessera_nx_expr:bodies(Node));
                _ -> tessera_nx_expr:operands(Node)
            end,
    outermost(Inner ++ Nodes, Seen#{Id => true});
outermost([_ | Nodes], Seen) -> outermost(Nodes, Seen).

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

%% The parts of the state from which the others follow: the matrix, or its four quarters.
matrices(cholesky) -> [3];
matrices(qr) -> [3];
matrices(lu) -> [4];
matrices(eigh) -> [2, 3, 10, 11].

-spec digest(map(), memo()) -> {digest(), memo()}.
digest(?NODE(Id, _, _), Memo) when is_map_key(Id, Memo) -> {maps:get(Id, Memo), Memo};
digest(?NODE(Id, Op, Args) = Node, Memo) ->
    {Parts, Memo1} = parts(essence(Op, Args), Memo),
    Digest = erlang:md5(term_to_binary({Op, form(Node), Parts})),
    {Digest, Memo1#{Id => Digest}}.

%% A node's arguments without those that vary between two traces of one function, or follow from the others.
essence(while, [Initial, _, Condition, Body]) -> [Initial, Condition, Body];
essence(block, [Struct, Args | _]) -> [Struct, Args];
essence('fun', [_, Body, _]) -> [Body];
essence(_, Args) -> Args.

parts(?NODE(_, _, _) = Node, Memo) -> digest(Node, Memo);
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
lower(P, {cholesky, {_, N, _}}, [I, _, A]) -> [number(P, I, N), op(P, cholesky, [A], []), A];
lower(P, {qr, {_, M, N}}, [I, _, A, Rows]) ->
    [Q, R] = tessera_nx_ops:results(P, qr, [A], true),
    [number(P, I, min(M - 1, N)), Q, R, Rows];
lower(P, {lu, {_, N, _}}, [I, Pivot, Order, A | Indices]) ->
    [Permutation, L, U] = tessera_nx_ops:results(P, lu, [A], []),
    Both = op(P, add, [op(P, subtract, [L, eye(P, A)], []), U], []),
    [number(P, I, N), Pivot, op(P, argmax, [real_of(P, Permutation)], {1, false, Order#tessera.type}), Both | Indices];
lower(P, {eigh, {K, N, _}}, [I, Tl, Br, _, _, _, _, Norm, Off, Tr, Bl, Round]) ->
    #tessera{shape = {_, H, _} = Quarter, type = Type} = Tl,
    [Values, Vectors] = tessera_nx_ops:results(P, eigh, [slice(P, joined(P, Tl, Tr, Bl, Br), [0, 0, 0], [K, N, N])], []),
    Rows = padded(P, op(P, transpose, [Vectors], [0, 2, 1]), [0, 2 * H - N, 2 * H - N]),
    Diagonal = padded(P, Values, [0, 2 * H - N]),
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
