%% @private Kinds: tessera_flow's static knowledge about terms.
-module(tessera_kind).
-include("tessera.hrl").
-include("../term/tessera_number.hrl").
-export([of_term/1, join/2, elements/1, traced/1, is_plain/1, is_number_kind/1, ours/2, of_mesh/2, type_test/2]).
-export_type([kind/0]).

%% `number' and `static' are plain terms, `flag' is the tensor that a comparison gives.
-type kind() :: any | static | number | tensor | flag | {term, atom() | number()} | {tuple | list, [kind()]}
              | {list_of, kind()} | {map, #{term() => kind()}} | tuple().

%% Limit for the parts of a term that are inspected.
-define(PARTS, 500).

-define(IS_TENSOR(K), (K =:= tensor orelse K =:= flag)).

%% The kind of an argument.
-spec of_term(term()) -> kind().
of_term(Term) ->
    {Kind, _} = of_term(Term, ?PARTS),
    Kind.

of_term(_, Left) when Left =< 0 -> {any, 0};
of_term(#tessera{ref = Ref}, Left) when Ref =/= undefined -> {tensor, Left - 1};
of_term(Number, Left) when is_number(Number); ?IS_COMPLEX_NUMBER(Number) -> {number, Left - 1};
of_term(Atom, Left) when is_atom(Atom) -> {{term, Atom}, Left - 1};
of_term([_ | _] = List, Left) ->
    case tessera_type:is_proper(List) of
        true -> kinds(list, List, Left - 1);
        false -> {any, Left - 1}
    end;
of_term([], Left) -> {{list, []}, Left - 1};
of_term(Tuple, Left) when is_tuple(Tuple) -> kinds(tuple, tuple_to_list(Tuple), Left - 1);
of_term(Map, Left) when is_map(Map), map_size(Map) < Left ->
    {Keys, Values} = lists:unzip(lists:sort(maps:to_list(Map))),
    case {lists:all(fun is_simple_key/1, Keys), kinds(list, Values, Left - 1)} of
        {true, {{list, Kinds}, Left1}} -> {{map, maps:from_list(lists:zip(Keys, Kinds))}, Left1};
        {_, {_, Left1}} -> {any, Left1}
    end;
of_term(Term, Left) when is_bitstring(Term); is_pid(Term); is_reference(Term); is_port(Term) -> {static, Left - 1};
of_term(_, Left) -> {any, Left - 1}.

is_simple_key(Key) -> is_atom(Key) orelse is_integer(Key) andalso abs(Key) < 1 bsl 32.

kinds(_, Terms, Left) when length(Terms) > Left -> {any, 0};
kinds(Tag, Terms, Left) ->
    {Kinds, Left1} = lists:mapfoldl(fun of_term/2, Left, Terms),
    {{Tag, Kinds}, Left1}.

%% The kind of a term with either of two kinds.
-spec join(kind(), kind()) -> kind().
join(K, K) -> K;
join(A, B) when ?IS_TENSOR(A), ?IS_TENSOR(B) -> tensor;
join({tuple, As}, {tuple, Bs}) when length(As) =:= length(Bs) -> {tuple, lists:zipwith(fun join/2, As, Bs)};
join({list, As}, {list, Bs}) when length(As) =:= length(Bs) -> {list, lists:zipwith(fun join/2, As, Bs)};
join({map, As}, {map, Bs}) when map_size(As) =:= map_size(Bs) ->
    case maps:keys(As) =:= maps:keys(Bs) of
        true -> {map, maps:map(fun(Key, A) -> join(A, map_get(Key, Bs)) end, As)};
        false -> any
    end;
join(A, B) ->
    case {elements(A), elements(B)} of
        {any, _} -> plain(A, B);
        {_, any} -> any;
        {{ok, X}, {ok, Y}} -> {list_of, join(X, Y)};
        {none, {ok, Y}} -> {list_of, Y};
        {{ok, X}, none} -> {list_of, X}
    end.

plain(A, B) ->
    case {is_number_kind(A) andalso is_number_kind(B), is_plain(A) andalso is_plain(B)} of
        {true, _} -> number;
        {false, true} -> static;
        _ -> any
    end.

-spec is_number_kind(kind()) -> boolean().
is_number_kind(number) -> true;
is_number_kind({term, Number}) -> is_number(Number);
is_number_kind(_) -> false.

%% Whether terms of the kind have no tensors.
-spec is_plain(kind()) -> boolean().
is_plain(Kind) -> Kind =:= static orelse Kind =:= number orelse is_tuple(Kind) andalso element(1, Kind) =:= term.

%% The kind of a list's elements: {ok, Kind}, none for an empty list, or any.
-spec elements(kind()) -> {ok, kind()} | none | any.
elements({list, []}) -> none;
elements({list, [First | Rest]}) -> {ok, lists:foldl(fun join/2, First, Rest)};
elements({list_of, Kind}) -> {ok, Kind};
elements(_) -> any.

%% The kind of a container as the API returns it: its numbers are tensors.
-spec traced(kind()) -> kind().
traced({Tag, Kinds}) when Tag =:= tuple; Tag =:= list -> {Tag, [traced(Kind) || Kind <- Kinds]};
traced({list_of, Kind}) -> {list_of, traced(Kind)};
traced({map, Kinds}) -> {map, maps:map(fun(_, Kind) -> traced(Kind) end, Kinds)};
traced(number) -> tensor;
traced({term, Number}) when is_number(Number) -> tensor;
traced(static) -> any;
traced(Kind) -> Kind.

%% ---- functions

%% The kind of the result of an API function.
-spec ours(atom(), [kind()]) -> kind().
ours(Name, _) when Name =:= rank; Name =:= size; Name =:= axis_size; Name =:= byte_size; Name =:= to_number -> number;
ours(Name, _) when Name =:= shape; Name =:= type; Name =:= format; Name =:= to_list; Name =:= to_binary;
                   Name =:= memory; Name =:= version; Name =:= explain; Name =:= to_text; Name =:= template;
                   Name =:= deallocate -> any;
ours(is_tensor, [Kind]) when ?IS_TENSOR(Kind) -> {term, true};
ours(is_tensor, [Kind]) ->
    case is_plain(Kind) of
        true -> {term, false};
        false -> any
    end;
ours(print, [Kind]) -> Kind;
ours(split, _) -> {list_of, tensor};
ours(Name, _) when Name =:= equal; Name =:= not_equal; Name =:= greater; Name =:= less; Name =:= greater_equal;
                   Name =:= less_equal; Name =:= logical_and; Name =:= logical_or; Name =:= logical_xor;
                   Name =:= logical_not; Name =:= is_nan; Name =:= is_infinity; Name =:= all; Name =:= any -> flag;
ours(Name, Kinds) ->
    case erlang:function_exported(tessera, Name, length(Kinds)) of
        true -> tensor;
        false -> any
    end.

%% The same of a function of tessera_mesh. Collectives give the container that they are given.
-spec of_mesh(atom(), [kind()]) -> kind().
of_mesh(axis_size, [_]) -> number;
of_mesh(axis_index, [_]) -> tensor;
of_mesh(Name, [Kind | _]) when Name =:= sharding_constraint; Name =:= all_reduce; Name =:= all_gather; Name =:= reduce_scatter;
                               Name =:= all_to_all; Name =:= permute; Name =:= shift; Name =:= broadcast_from; Name =:= barrier;
                               Name =:= vary -> traced(Kind);
of_mesh(_, _) -> any.

%% The result of a type test; none for a function that is not a type test. A tensor is a tuple, and no other type.
-spec type_test(atom(), kind()) -> boolean() | maybe_so | none.
type_test(Test, Kind) ->
    Tests = [is_tuple, is_list, is_map, is_atom, is_boolean, is_number, is_integer, is_float, is_binary, is_bitstring,
             is_function, is_pid, is_port, is_reference],
    case lists:member(Test, Tests) of
        false -> none;
        true -> has_type(Test, Kind)
    end.

has_type(Test, Kind) when ?IS_TENSOR(Kind) -> Test =:= is_tuple;
has_type(Test, {term, Term}) -> erlang:Test(Term);
has_type(Test, {Tag, _}) when Tag =:= tuple; Tag =:= list; Tag =:= list_of; Tag =:= map ->
    Test =:= maps:get(Tag, #{tuple => is_tuple, list => is_list, list_of => is_list, map => is_map});
has_type(is_number, number) -> true;
has_type(Test, number) when Test =/= is_integer, Test =/= is_float -> false;
has_type(_, _) -> maybe_so.
