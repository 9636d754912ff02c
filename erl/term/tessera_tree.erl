%% @private Containers: any term of tuples, lists and maps with tensors and
%% numbers as leaves. A signature is the term with its leaves' types: a compiled program depends on this part. Other
%% terms are part of the signature.
-module(tessera_tree).
-include("tessera.hrl").
-include("tessera_number.hrl").
-export([flatten/1, unflatten/2, key/1, structure/1, leaf_type/1, types/1, number_type/1]).
-export_type([signature/0]).

-type signature() :: nonempty_improper_list(tessera_type:type(), tessera_type:shape())
                   | {number, tessera_type:type()}
                   | {tuple | list, [signature()]}
                   | {map, [term()], [signature()]}
                   | {static, term()}.
-type leaf() :: tessera_type:tensor() | number() | {complex, number(), number()}.

%% The signature, and the leaves from left to right.
-spec flatten(term()) -> {signature(), [leaf()]}.
flatten(#tessera{type = Type, shape = Shape} = T) -> {[Type | Shape], [T]};
flatten([#tessera{} | More] = Terms) ->
    case are_tensors(More) of
        true -> {{list, [[Type | Shape] || #tessera{type = Type, shape = Shape} <- Terms]}, Terms};
        false -> flattened(Terms)
    end;
flatten(Term) -> flattened(Term).

flattened(Term) ->
    {Signature, Leaves} = flatten(Term, []),
    {Signature, lists:reverse(Leaves)}.

%% Arguments are tensors in most calls: their list is the list of leaves.
are_tensors([#tessera{} | More]) -> are_tensors(More);
are_tensors(End) -> End =:= [].

flatten(#tessera{type = Type, shape = Shape} = T, Leaves) -> {[Type | Shape], [T | Leaves]};
flatten(N, Leaves) when is_number(N); ?IS_COMPLEX_NUMBER(N) -> {{number, number_type(N)}, [N | Leaves]};
flatten([], Leaves) -> {{list, []}, Leaves};
flatten(List, Leaves) when is_list(List) -> flatten_list(List, List, [], Leaves, Leaves);
flatten(Tuple, Leaves) when is_tuple(Tuple) ->
    {Signatures, Leaves1} = flatten_all(tuple_to_list(Tuple), [], Leaves),
    {{tuple, Signatures}, Leaves1};
flatten(Map, Leaves) when is_map(Map) ->
    {Keys, Values} = lists:unzip(lists:sort(maps:to_list(Map))),
    {Signatures, Leaves1} = flatten_all(Values, [], Leaves),
    {{map, Keys, Signatures}, Leaves1};
flatten(Other, Leaves) -> {{static, Other}, Leaves}.

flatten_all([Term | Terms], Signatures, Leaves) ->
    {Signature, Leaves1} = flatten(Term, Leaves),
    flatten_all(Terms, [Signature | Signatures], Leaves1);
flatten_all([], Signatures, Leaves) -> {lists:reverse(Signatures), Leaves}.

%% An improper list is not a container.
flatten_list([Term | Terms], List, Signatures, Before, Leaves) ->
    {Signature, Leaves1} = flatten(Term, Leaves),
    flatten_list(Terms, List, [Signature | Signatures], Before, Leaves1);
flatten_list([], _List, Signatures, _Before, Leaves) -> {{list, lists:reverse(Signatures)}, Leaves};
flatten_list(_, List, _Signatures, Before, _Leaves) -> {{static, List}, Before}.

%% The container with that signature and these leaves.
-spec unflatten(signature(), [leaf()]) -> term().
unflatten([_ | _], [Leaf]) -> Leaf;
unflatten(Signature, Leaves) ->
    {Term, []} = build(Signature, Leaves),
    Term.

build({list, Signatures}, Leaves) -> build_all(Signatures, [], Leaves);
build({tuple, Signatures}, Leaves) ->
    {Terms, Leaves1} = build_all(Signatures, [], Leaves),
    {list_to_tuple(Terms), Leaves1};
build({map, Keys, Signatures}, Leaves) ->
    {Terms, Leaves1} = build_all(Signatures, [], Leaves),
    {maps:from_list(lists:zip(Keys, Terms)), Leaves1};
build({static, Term}, Leaves) -> {Term, Leaves};
build(_, [Leaf | Leaves]) -> {Leaf, Leaves}.

build_all([Signature | Signatures], Terms, Leaves) ->
    {Term, Leaves1} = build(Signature, Leaves),
    build_all(Signatures, [Term | Terms], Leaves1);
build_all([], Terms, Leaves) -> {lists:reverse(Terms), Leaves}.

%% A digest of a signature as a key in tables. A table would copy the signature and lose the sharing inside a
%% function.
-spec key(signature()) -> term().
key(Signature) ->
    case holds_shared(Signature) of
        true -> tessera_error:check(jit, [], tessera_digest:of_term(Signature));
        false -> Signature
    end.

holds_shared({static, Term}) -> is_function(Term) orelse is_list(Term);
holds_shared({Kind, Signatures}) when Kind =:= list; Kind =:= tuple -> any_holds_shared(Signatures);
holds_shared({map, Keys, Signatures}) -> lists:any(fun is_compound/1, Keys) orelse any_holds_shared(Signatures);
holds_shared(_) -> false.

%% Without a fun, since each call of a program comes here.
any_holds_shared([[_ | _] | Signatures]) -> any_holds_shared(Signatures);
any_holds_shared([Signature | Signatures]) -> holds_shared(Signature) orelse any_holds_shared(Signatures);
any_holds_shared([]) -> false.

is_compound(Key) -> is_function(Key) orelse is_list(Key) orelse is_tuple(Key) orelse is_map(Key).

%% The signature without its leaves' types: equal for terms of the same form.
-spec structure(signature()) -> term().
structure({Kind, Signatures}) when Kind =:= tuple; Kind =:= list -> {Kind, [structure(S) || S <- Signatures]};
structure({map, Keys, Signatures}) -> {map, Keys, [structure(S) || S <- Signatures]};
structure({static, _} = Static) -> Static;
structure(_) -> leaf.

%% Types and shapes of the leaves, in order.
-spec types(signature()) -> [{tessera_type:type(), tessera_type:shape()}].
types({Kind, Signatures}) when Kind =:= tuple; Kind =:= list -> lists:flatmap(fun types/1, Signatures);
types({map, _, Signatures}) -> lists:flatmap(fun types/1, Signatures);
types({static, _}) -> [];
types({number, Type}) -> [{Type, {}}];
types([Type | Shape]) -> [{Type, Shape}].

-spec leaf_type(leaf()) -> {tessera_type:type(), tessera_type:shape()}.
leaf_type(#tessera{type = Type, shape = Shape}) -> {Type, Shape};
leaf_type(N) -> {number_type(N), {}}.

-spec number_type(number() | {complex, number(), number()}) -> tessera_type:type().
number_type({complex, _, _}) -> c64;
number_type(N) when is_float(N) -> f32;
number_type(N) when N >= -16#80000000, N =< 16#7fffffff -> s32;
number_type(N) when N =< 16#7fffffffffffffff -> s64;
number_type(_) -> u64.
