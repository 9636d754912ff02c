%% @private What calls and operators give for kinds of terms: the part of tessera_flow and tessera_flow_beam that does not depend on
%% the form of the code. Calls is {Apply, Arity}: Apply evaluates the call of a fun of that kind, and Arity says how many
%% arguments the fun has, or none where the kind is no fun's. S is their state.
-module(tessera_flow_calls).
-export([apply_kind/4, remote/5, erlang_call/4, element_kind/2, operation/2, is_equality/1, is_looked_for/2, arithmetic_kind/1]).

-type kind() :: tessera_kind:kind().
-type calls(S) :: {fun((kind(), [kind()], S) -> {kind(), S}), fun((kind()) -> arity() | none)}.

-define(IS_TENSOR(K), (K =:= tensor orelse K =:= flag)).

%% ---- calls

%% Applies a fun of a kind that both forms of code have.
-spec apply_kind(kind(), [kind()], calls(S), S) -> {kind(), S}.
apply_kind({remote, Module, Name}, Args, Calls, S) -> remote(Module, Name, Args, Calls, S);
apply_kind({grad, F}, [First | _] = Args, {Apply, _}, S) ->
    {_, S1} = Apply(F, Args, S),
    {tessera_kind:traced(First), S1};
apply_kind({value_and_grad, F}, [First | _] = Args, {Apply, _}, S) ->
    {_, S1} = Apply(F, Args, S),
    {{tuple, [tensor, tessera_kind:traced(First)]}, S1};
apply_kind(_, _, _, S) -> {any, S}.

%% Functions that take functions, and functions with known results.
-spec remote(module(), atom(), [kind()], calls(S), S) -> {kind(), S}.
remote(tessera, Name, [F | _], _, S) when Name =:= jit; Name =:= compile -> {F, S};
remote(tessera, Name, [F], _, S) when Name =:= grad; Name =:= value_and_grad -> {{Name, F}, S};
remote(tessera, while, [Initial, Condition, Body], Calls, S) ->
    Carried = tessera_kind:traced(Initial),
    {_, S1} = applied(Calls, Condition, [Carried], S),
    {_, S2} = applied(Calls, Body, [Carried], S1),
    {Carried, S2};
remote(tessera, 'cond', [_, True, False], Calls, S) ->
    {A, S1} = applied(Calls, True, [], S),
    {B, S2} = applied(Calls, False, [], S1),
    {tessera_kind:join(tessera_kind:traced(A), tessera_kind:traced(B)), S2};
remote(tessera, reduce, [_, _, F | _], Calls, S) ->
    {_, S1} = applied(Calls, F, [tensor, tensor], S),
    {tensor, S1};
remote(tessera, Name, Kinds, _, S) -> {tessera_kind:ours(Name, Kinds), S};
remote(tessera_mesh, Name, Kinds, _, S) -> {tessera_kind:of_mesh(Name, Kinds), S};
remote(lists, Name, [F, List], Calls, S) when Name =:= map; Name =:= foreach; Name =:= filter; Name =:= flatmap ->
    {Kind, S1} = on_elements(F, [], List, Calls, S),
    {mapped(Name, Kind, List), S1};
remote(lists, Name, [F, Initial, List], Calls, S) when Name =:= foldl; Name =:= foldr -> fold(F, Initial, List, Calls, S);
remote(lists, reverse, [List], _, S) -> {same_elements(List), S};
remote(lists, seq, Kinds, _, S) when length(Kinds) > 1 -> {{list_of, number}, S};
remote(lists, Name, [A, B], _, S) when Name =:= zip -> {zipped(A, B), S};
remote(erlang, Name, Kinds, Calls, S) -> erlang_call(Name, Kinds, Calls, S);
remote(_, _, Kinds, Calls, S) -> {any, call_all(Kinds, Calls, S)}.

on_elements(F, Others, List, Calls, S) ->
    case tessera_kind:elements(List) of
        {ok, Kind} -> applied(Calls, F, [Kind | Others], S);
        none -> {any, S};
        any -> {any, call_with_any(F, Calls, S)}
    end.

mapped(map, _, {list, []}) -> {list, []};
mapped(map, Kind, _) -> {list_of, Kind};
mapped(filter, _, List) -> same_elements(List);
mapped(_, _, _) -> any.

same_elements(List) ->
    case tessera_kind:elements(List) of
        {ok, Kind} -> {list_of, Kind};
        _ -> any
    end.

%% The accumulator keeps its kind, or becomes `any'.
fold(F, Initial, List, Calls, S) ->
    {First, S1} = on_elements(F, [Initial], List, Calls, S),
    case tessera_kind:join(Initial, First) of
        Initial -> {Initial, S1};
        Joined ->
            {Next, S2} = on_elements(F, [Joined], List, Calls, S1),
            {case tessera_kind:join(Joined, Next) of
                 Joined -> Joined;
                 _ -> any
             end, S2}
    end.

zipped(A, B) ->
    case {tessera_kind:elements(A), tessera_kind:elements(B)} of
        {{ok, X}, {ok, Y}} -> {list_of, {tuple, [X, Y]}};
        _ -> any
    end.

-spec element_kind(term(), kind()) -> kind().
element_kind(Index, {tuple, Kinds}) when is_integer(Index), Index >= 1, Index =< length(Kinds) ->
    lists:nth(Index, Kinds);
element_kind(_, _) -> any.

-spec erlang_call(atom(), [kind()], calls(S), S) -> {kind(), S}.
erlang_call(element, [{term, Index}, Kind], _, S) -> {element_kind(Index, Kind), S};
erlang_call(setelement, [{term, Index}, {tuple, Kinds}, Kind], _, S) when is_integer(Index), Index >= 1, Index =< length(Kinds) ->
    {Before, [_ | After]} = lists:split(Index - 1, Kinds),
    {{tuple, Before ++ [Kind | After]}, S};
erlang_call(hd, [{list, [Kind | _]}], _, S) -> {Kind, S};
erlang_call(hd, [{list_of, Kind}], _, S) -> {Kind, S};
erlang_call(tl, [{list, [_ | Kinds]}], _, S) -> {{list, Kinds}, S};
erlang_call(tl, [{list_of, _} = List], _, S) -> {List, S};
erlang_call(Name, _, _, S) when Name =:= length; Name =:= tuple_size; Name =:= map_size; Name =:= byte_size -> {number, S};
erlang_call(is_record, [Kind, {term, Name} | _], _, S) when ?IS_TENSOR(Kind) -> {{term, Name =:= tessera}, S};
erlang_call(Name, [Kind], Calls, S) ->
    case {tessera_kind:type_test(Name, Kind), operation(Name, 1)} of
        {Known, _} when is_boolean(Known) -> {{term, Known}, S};
        {maybe_so, _} -> {static, S};
        {none, {arithmetic, _}} -> {arithmetic_kind([Kind]), S};
        _ -> {any, call_all([Kind], Calls, S)}
    end;
erlang_call(_, Kinds, Calls, S) -> {any, call_all(Kinds, Calls, S)}.

applied({Apply, _}, Kind, Args, S) -> Apply(Kind, Args, S).

%% An unknown function may call the funs that it gets, with any arguments.
call_all(Kinds, Calls, S) -> lists:foldl(fun(Kind, S0) -> call_with_any(Kind, Calls, S0) end, S, Kinds).

call_with_any(Kind, {_, ArityOf} = Calls, S) ->
    case ArityOf(Kind) of
        none -> S;
        Arity -> element(2, applied(Calls, Kind, lists:duplicate(Arity, any), S))
    end.

%% ---- operators

%% The kind of an operator, and the function of the API that does the same to
%% tensors.
-spec operation(atom(), arity()) -> {order | equality | arithmetic, atom()} | none.
operation(Op, 2) when Op =:= '>'; Op =:= '<'; Op =:= '>='; Op =:= '=<' -> {order, tessera_names:function(Op, 2)};
operation(Op, 2) when Op =:= '=='; Op =:= '/='; Op =:= '=:='; Op =:= '=/=' ->
    {equality, tessera_names:function(Op, 2)};
operation(Op, Arity) ->
    case lists:member(Op, ['!', '++', '--', 'andalso', 'orelse']) of
        true -> none;
        false ->
            case tessera_names:function(Op, Arity) of
                none -> none;
                Ours -> {arithmetic, Ours}
            end
    end.

%% Comparing a tensor with other terms is a usual test for an optional tensor: `X =:= none'.
-spec is_equality([kind()]) -> boolean().
is_equality([A, B]) -> is_equal_to(A, B) orelse is_equal_to(B, A).

is_equal_to(A, B) when ?IS_TENSOR(A) -> ?IS_TENSOR(B) orelse B =:= number orelse is_literal(B, A);
is_equal_to(_, _) -> false.

is_literal({term, Value}, Kind) -> is_looked_for(Value, Kind);
is_literal(_, _) -> false.

%% Values that a tensor may contain.
-spec is_looked_for(term(), kind()) -> boolean().
is_looked_for(Value, _) when is_number(Value); Value =:= nan; Value =:= infinity; Value =:= neg_infinity -> true;
is_looked_for(Value, flag) -> is_boolean(Value);
is_looked_for(_, _) -> false.

-spec arithmetic_kind([kind()]) -> kind().
arithmetic_kind(Kinds) ->
    case lists:all(fun tessera_kind:is_number_kind/1, Kinds) of
        true -> number;
        false -> any
    end.
