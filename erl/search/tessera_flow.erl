%% @private Finds in a function's abstract code where Erlang itself inspects a tensor: comparisons, guards and patterns
%% that have the same outcome for every tensor, since a tensor is a tuple. The code is evaluated over kinds of terms,
%% from the kinds of its arguments. A reported term is a tensor on every path: a term of unknown kind is not reported.
%% Calls are followed within a module; the steps are bounded.
-module(tessera_flow).
-include("tessera.hrl").
-export([holding/1, analyse/3, text/1]).
-export_type([code/0, target/0, finding/0, lines/0, result/0]).

-type code() :: #{functions := #{{atom(), arity()} => {string(), [tuple()]}},   % the file and the clauses of each
                  records := #{atom() => [atom()]}, imports := #{{atom(), arity()} => module()}}.
-type target() :: {function, {atom(), arity()}} | {clauses, string(), [tuple()], #{atom() => tessera_kind:kind()}}.
%% The location, the reason, and the expression with the function of the API to use in its place.
-type finding() :: {{string(), non_neg_integer()} | {compiled, {string(), non_neg_integer()}, string()}, comparison | pattern | truth | guard, string(), atom()}.
%% For lines with arithmetic or an `if': whether a tensor occurs in it, and the expression.
-type lines() :: #{{arithmetic | 'if', string(), non_neg_integer()} => {sure | unsure | no, tuple()}}.
-type result() :: #{findings := [finding()], lines := lines()}.

-define(STEPS, 20000).
-define(DEPTH, 50).

-record(s, {code         :: code(),
            file = ""    :: string(),
            steps        :: non_neg_integer(),
            stack = []   :: [term()],          % the calls that are being evaluated
            memo = #{}   :: #{term() => tessera_kind:kind()},
            reports      :: boolean(),         % whether patterns are reported: not those of `='
            found = #{}  :: #{finding() => true},
            lines = #{}  :: lines()}).

-define(IS_TENSOR(K), (K =:= tensor orelse K =:= flag)).
-define(CALLS, {fun apply_kind/3, fun arity/1}).
-define(IS_COMPREHENSION(Form), (Form =:= lc orelse Form =:= bc orelse Form =:= mc)).

%% ---- a function

%% An environment that gives unknown variables this kind.
-spec holding(tessera_kind:kind()) -> #{atom() => tessera_kind:kind()}.
holding(Kind) -> #{'' => Kind}.

-spec analyse(code(), target(), [tessera_kind:kind()]) -> result().
analyse(Code, Target, Kinds) ->
    S = #s{code = Code, steps = ?STEPS, reports = true},
    {_, #s{found = Found, lines = Lines}} =
        case Target of
            {function, Function} -> local(Function, Kinds, S);
            {clauses, File, Clauses, Env} -> apply_kind({closure, File, Clauses, Env}, Kinds, S)
        end,
    #{findings => lists:sort(maps:keys(Found)), lines => Lines}.

%% Evaluates a function of the module. A recursive call gives `any'.
local(Function, Args, #s{code = #{functions := Functions}, memo = Memo, stack = Stack} = S) ->
    Key = {Function, Args},
    case {Functions, Memo} of
        {_, #{Key := Kind}} -> {Kind, S};
        {#{Function := {File, Clauses}}, _} ->
            case lists:member(Function, Stack) orelse length(Stack) > ?DEPTH of
                true -> {any, S};
                false ->
                    {Kind, S1} = called(Function, File, Clauses, Args, #{}, S),
                    {Kind, S1#s{memo = (S1#s.memo)#{Key => Kind}}}
            end;
        _ -> {any, S}
    end.

called(Entry, File, Clauses, Args, Env, #s{file = Outer, stack = Stack} = S) ->
    {Kind, _, S1} = clauses(Args, Clauses, Env, S#s{file = File, stack = [Entry | Stack]}),
    {Kind, S1#s{file = Outer, stack = Stack}}.

%% Applies a fun of that kind to arguments.
apply_kind({closure, File, Clauses, Env}, Args, #s{stack = Stack} = S) ->
    case length(Stack) > ?DEPTH of
        true -> {any, S};
        false -> called(closure, File, Clauses, Args, Env, S)
    end;
apply_kind({named, Name, File, Clauses, Env} = Fun, Args, #s{stack = Stack} = S) ->
    case lists:member({Name, Clauses}, Stack) of
        true -> {any, S};
        false -> called({Name, Clauses}, File, Clauses, Args, Env#{Name => Fun}, S)
    end;
apply_kind({local, Function}, Args, S) when element(2, Function) =:= length(Args) -> local(Function, Args, S);
apply_kind(Kind, Args, S) -> tessera_flow_calls:apply_kind(Kind, Args, ?CALLS, S).

arity({closure, _, [{clause, _, Patterns, _, _} | _], _}) -> length(Patterns);
arity({named, _, _, [{clause, _, Patterns, _, _} | _], _}) -> length(Patterns);
arity(_) -> none.

%% ---- expressions

exprs([], Env, S) -> {any, Env, S};
exprs([Expr], Env, S) -> expr(Expr, Env, S);
exprs([Expr | Exprs], Env, S) ->
    {_, Env1, S1} = expr(Expr, Env, S),
    exprs(Exprs, Env1, S1).

expr(_, Env, #s{steps = 0} = S) -> {any, Env, S};
expr(Expr, Env, #s{steps = Steps} = S) -> eval(Expr, Env, S#s{steps = Steps - 1}).

%% The kinds of several expressions, in order.
list(Exprs, Env, S) ->
    lists:foldl(fun(Expr, {Kinds, Env0, S0}) ->
                        {Kind, Env1, S1} = expr(Expr, Env0, S0),
                        {Kinds ++ [Kind], Env1, S1}
                end, {[], Env, S}, Exprs).

%% The kind of an expression whose variables are not bound afterwards.
inner(Exprs, Env, S) ->
    {Kind, _, S1} = exprs(Exprs, Env, S),
    {Kind, S1}.

eval({var, _, Name}, Env, S) -> {known(Name, Env), Env, S};
eval({Literal, _, Value}, Env, S) when Literal =:= integer; Literal =:= float; Literal =:= char; Literal =:= atom ->
    {{term, Value}, Env, S};
eval({string, _, _}, Env, S) -> {static, Env, S};
eval({nil, _}, Env, S) -> {{list, []}, Env, S};
eval({cons, _, Head, Tail}, Env, S) ->
    {[H, T], Env1, S1} = list([Head, Tail], Env, S),
    {cons(H, T), Env1, S1};
eval({tuple, _, Items}, Env, S) ->
    {Kinds, Env1, S1} = list(Items, Env, S),
    {{tuple, Kinds}, Env1, S1};
eval({map, _, Fields}, Env, S) -> fields(Fields, {map, #{}}, Env, S);
eval({map, _, Map, Fields}, Env, S) ->
    {Kind, Env1, S1} = expr(Map, Env, S),
    fields(Fields, Kind, Env1, S1);
eval({record, _, Name, Fields}, Env, S) ->
    {Kind, S1} = new_record(Name, S),
    set_fields(Name, Fields, Kind, Env, S1);
eval({record, _, Record, Name, Fields}, Env, S) ->
    {Kind, Env1, S1} = expr(Record, Env, S),
    set_fields(Name, Fields, Kind, Env1, S1);
eval({record_field, _, Record, Name, {atom, _, Field}}, Env, S) ->
    {Kind, Env1, S1} = expr(Record, Env, S),
    {tessera_flow_calls:element_kind(field_index(Name, Field, S1), Kind), Env1, S1};
eval({match, _, Pattern, Expr}, Env, S) ->
    {Kind, Env1, S1} = expr(Expr, Env, S),
    {_, Env2, S2} = match(Pattern, Kind, Env1, S1#s{reports = false}),
    {Kind, Env2, S2#s{reports = true}};
eval({block, _, Exprs}, Env, S) -> exprs(Exprs, Env, S);
eval({'if', _, Clauses} = Expr, Env, S) ->
    S1 = line('if', Expr, guards_certainty(Clauses, Env, S), S),
    clauses([], Clauses, Env, S1);
eval({'case', _, Expr, Clauses}, Env, S) ->
    {Kind, Env1, S1} = expr(Expr, Env, S),
    clauses([Kind], Clauses, Env1, S1);
eval({'fun', _, {clauses, Clauses}}, Env, S) -> {{closure, S#s.file, Clauses, Env}, Env, S};
eval({'fun', _, {function, Name, Arity}}, Env, S) when is_atom(Name) -> {function_kind(Name, Arity, S), Env, S};
eval({'fun', _, {function, {atom, _, Module}, {atom, _, Name}, _}}, Env, S) -> {{remote, Module, Name}, Env, S};
eval({named_fun, _, Name, Clauses}, Env, S) -> {{named, Name, S#s.file, Clauses, Env}, Env, S};
eval({call, Anno, Function, Args}, Env, S) ->
    {Kinds, Env1, S1} = list(Args, Env, S),
    {Kind, S2} = call(Function, Kinds, {call, Anno, Function, Args}, Env1, S1),
    {Kind, Env1, S2};
eval({op, Anno, Op, Left, Right} = Expr, Env, S) ->
    {[L, R], Env1, S1} = list([Left, Right], Env, S),
    {Kind, S2} = operator(Op, [L, R], Anno, Expr, S1),
    {Kind, Env1, S2};
eval({op, Anno, Op, Operand} = Expr, Env, S) ->
    {Kind, Env1, S1} = expr(Operand, Env, S),
    {Result, S2} = operator(Op, [Kind], Anno, Expr, S1),
    {Result, Env1, S2};
eval({Comprehension, _, Item, Qualifiers}, Env, S) when ?IS_COMPREHENSION(Comprehension) ->
    {Env1, S1} = qualifiers(Qualifiers, Env, S),
    {Kind, S2} = inner([Item], Env1, S1),
    {comprehension(Comprehension, Kind), Env, S2};
eval({'catch', _, Expr}, Env, S) ->
    {_, S1} = inner([Expr], Env, S),
    {any, Env, S1};
eval({'try', _, Exprs, Clauses, Catches, After}, Env, S) -> try_expr(Exprs, Clauses, Catches, After, Env, S);
eval({'receive', _, Clauses}, Env, S) -> clauses([any], Clauses, Env, S);
eval({'receive', _, Clauses, _, After}, Env, S) ->
    {_, Env1, S1} = clauses([any], Clauses, Env, S),
    {_, _, S2} = exprs(After, Env, S1),
    {any, Env1, S2};
eval({'maybe', _, Exprs}, Env, S) ->
    {_, S1} = inner(Exprs, Env, S),
    {any, Env, S1};
eval({'maybe', _, Exprs, {'else', _, Clauses}}, Env, S) ->
    {_, S1} = inner(Exprs, Env, S),
    {_, _, S2} = clauses([any], Clauses, Env, S1),
    {any, Env, S2};
eval({maybe_match, Anno, Pattern, Expr}, Env, S) -> eval({match, Anno, Pattern, Expr}, Env, S);
eval(_, Env, S) -> {any, Env, S}.

known(Name, Env) ->
    case Env of
        #{Name := Kind} -> Kind;
        #{'' := Kind} -> Kind;
        _ -> any
    end.

cons(Head, {list, Tail}) -> {list, [Head | Tail]};
cons(Head, {list_of, Kind}) -> {list_of, tessera_kind:join(Head, Kind)};
cons(_, _) -> any.

comprehension(lc, Kind) -> {list_of, Kind};
comprehension(bc, _) -> static;
comprehension(mc, _) -> any.

try_expr(Exprs, Clauses, Catches, After, Env, S) ->
    {Kind, Env1, S1} = exprs(Exprs, Env, S),
    {Value, S2} = case Clauses of
                      [] -> {Kind, S1};
                      _ ->
                          {Other, _, Next} = clauses([Kind], Clauses, Env1, S1),
                          {Other, Next}
                  end,
    {_, _, S3} = clauses([any], Catches, Env, S2),
    {_, S4} = inner(After, Env, S3),
    {case Catches of [] -> Value; _ -> any end, Env, S4}.

qualifiers(Qualifiers, Env, S) -> lists:foldl(fun qualifier/2, {Env, S}, Qualifiers).

qualifier({Generate, _, Pattern, Expr}, {Env, S}) when Generate =:= generate; Generate =:= generate_strict ->
    {Kind, _, S1} = expr(Expr, Env, S),
    Element = case tessera_kind:elements(Kind) of
                  {ok, Known} -> Known;
                  _ -> any
              end,
    {_, Env1, S2} = match(Pattern, Element, maps:without(variables(Pattern), Env), S1),
    {Env1, S2};
qualifier({Generate, _, Pattern, Expr}, {Env, S})
  when Generate =:= b_generate; Generate =:= b_generate_strict;
       Generate =:= m_generate; Generate =:= m_generate_strict ->
    {_, _, S1} = expr(Expr, Env, S),
    {anything(Pattern, Env), S1};
qualifier({zip, _, Generators}, Acc) -> lists:foldl(fun qualifier/2, Acc, Generators);
qualifier(Filter, {Env, S}) ->
    {_, _, S1} = expr(Filter, Env, S),
    {Env, S1}.

%% ---- maps and records

fields([], Kind, Env, S) -> {Kind, Env, S};
fields([{_, _, Key, Value} | Fields], Kind, Env, S) ->
    {[K, V], Env1, S1} = list([Key, Value], Env, S),
    fields(Fields, put_field(K, V, Kind), Env1, S1).

put_field({term, Key}, Value, {map, Fields}) -> {map, Fields#{Key => Value}};
put_field(_, _, _) -> any.

new_record(Name, #s{code = #{records := Records}} = S) ->
    case Records of
        #{Name := Fields} -> {{tuple, [{term, Name} | [any || _ <- Fields]]}, S};
        _ -> {any, S}
    end.

set_fields(_, [], Kind, Env, S) -> {Kind, Env, S};
set_fields(Name, [{record_field, _, Field, Value} | Fields], Kind, Env, S) ->
    {V, Env1, S1} = expr(Value, Env, S),
    set_fields(Name, Fields, set_field(Name, Field, V, Kind, S1), Env1, S1).

set_field(Name, {atom, _, Field}, Value, {tuple, Kinds}, S) ->
    case field_index(Name, Field, S) of
        Index when Index =< length(Kinds) ->
            {Before, [_ | After]} = lists:split(Index - 1, Kinds),
            {tuple, Before ++ [Value | After]};
        _ -> any
    end;
set_field(_, _, _, _, _) -> any.

%% Counted from 2, as in tuples; for an unknown field an atom: atoms are larger than any number.
field_index(Name, Field, #s{code = #{records := Records}}) ->
    case Records of
        #{Name := Fields} -> index(Field, Fields, 2);
        _ -> none
    end.

index(Field, [Field | _], N) -> N;
index(Field, [_ | Fields], N) -> index(Field, Fields, N + 1);
index(_, [], _) -> none.

%% ---- clauses

%% The clauses that may match terms with these kinds: the kind of their results, and the variables that are bound after
%% all of them.
clauses(Subject, Clauses, Env, S) ->
    {Results, S1} = reached(Subject, Clauses, Env, S),
    case Results of
        [] -> {any, Env, S1};
        [First | Others] ->
            {Kind, Env1} = lists:foldl(fun({K, E}, {Ks, Es}) -> {tessera_kind:join(K, Ks), join_envs(E, Es)} end,
                                       First, Others),
            {Kind, Env1, S1}
    end.

join_envs(A, B) ->
    maps:map(fun(Name, Kind) -> tessera_kind:join(Kind, map_get(Name, B)) end, maps:with(maps:keys(B), A)).

reached(_, [], _, S) -> {[], S};
reached(Subject, [{clause, _, Patterns, Guard, Body} | Clauses], Env, S) ->
    case enters(Subject, Patterns, Guard, Env, S) of
        {no, _, S1} -> reached(Subject, Clauses, Env, S1);
        {Enters, Env1, S1} ->
            {Kind, Env2, S2} = exprs(Body, Env1, S1),
            {Others, S3} = case Enters of
                               yes -> {[], S2};
                               maybe_so -> reached(Subject, Clauses, Env, S2)
                           end,
            {[{Kind, Env2} | Others], S3}
    end.

enters(Subject, Patterns, Guard, Env, S) ->
    case match_all(Patterns, Subject, Env, S) of
        {no, _, S1} -> {no, Env, S1};
        {Matches, Env1, S1} ->
            {Holds, S2} = guard(Guard, Env1, S1),
            {both(Matches, Holds), Env1, S2}
    end.

both(no, _) -> no;
both(_, no) -> no;
both(yes, yes) -> yes;
both(_, _) -> maybe_so.

either(yes, _) -> yes;
either(_, yes) -> yes;
either(no, no) -> no;
either(_, _) -> maybe_so.

%% ---- patterns

match_all([Pattern | Patterns], [Kind | Kinds], Env, S) ->
    {Matches, Env1, S1} = match(Pattern, Kind, Env, S),
    {Others, Env2, S2} = match_all(Patterns, Kinds, Env1, S1),
    {both(Matches, Others), Env2, S2};
match_all([], [], Env, S) -> {yes, Env, S};
match_all(Patterns, _, Env, S) -> {maybe_so, lists:foldl(fun anything/2, Env, Patterns), S}.

match({var, _, '_'}, _, Env, S) -> {yes, Env, S};
match({var, _, Name}, Kind, Env, S) ->
    case Env of
        #{Name := _} -> {maybe_so, Env, S};
        _ -> {yes, Env#{Name => Kind}, S}
    end;
match({match, _, Left, Right}, Kind, Env, S) -> match_all([Left, Right], [Kind, Kind], Env, S);
match({Literal, Anno, Value} = Pattern, Kind, Env, S)
  when Literal =:= integer; Literal =:= float; Literal =:= char; Literal =:= atom ->
    literal(Value, Kind, Anno, Pattern, Env, S);
match({op, Anno, '-', {_, _, Value}} = Pattern, Kind, Env, S) when is_number(Value) ->
    literal(-Value, Kind, Anno, Pattern, Env, S);
match({tuple, _, Patterns}, {tuple, Kinds}, Env, S) ->
    case length(Patterns) =:= length(Kinds) of
        true -> match_all(Patterns, Kinds, Env, S);
        false -> {no, Env, S}
    end;
match({tuple, _, Patterns} = Pattern, Kind, Env, S) when ?IS_TENSOR(Kind) ->
    case length(Patterns) =:= record_info(size, tessera) of
        true -> {maybe_so, anything(Pattern, Env), S};
        false -> {no, Env, S}
    end;
match({record, _, Name, _} = Pattern, Kind, Env, S) when ?IS_TENSOR(Kind) ->
    case Name of
        tessera -> {maybe_so, anything(Pattern, Env), S};
        _ -> {no, Env, S}
    end;
match({record, _, Name, Fields}, {tuple, [{term, Name} | _]} = Kind, Env, S) ->
    match_fields([{Pattern, tessera_flow_calls:element_kind(record_index(Name, Field, S), Kind)}
                  || {record_field, _, Field, Pattern} <- Fields], Env, S);
match({cons, _, Head, Tail}, {list, [H | T]}, Env, S) -> match_all([Head, Tail], [H, {list, T}], Env, S);
match({cons, _, Head, Tail}, {list_of, Kind}, Env, S) ->
    {Matches, Env1, S1} = match_all([Head, Tail], [Kind, {list_of, Kind}], Env, S),
    {both(maybe_so, Matches), Env1, S1};
match({nil, _}, {list, []}, Env, S) -> {yes, Env, S};
match({map, _, Fields}, {map, Kinds}, Env, S) ->
    match_fields([{Pattern, map_kind(Key, Kinds)} || {map_field_exact, _, Key, Pattern} <- Fields], Env, S);
match(Pattern, Kind, Env, S) ->
    case is_never(Pattern, Kind) of
        true -> {no, Env, S};
        false -> {maybe_so, anything(Pattern, Env), S}
    end.

match_fields(Pairs, Env, S) ->
    case lists:keymember(missing, 2, Pairs) of
        true -> {no, Env, S};
        false ->
            {Patterns, Kinds} = lists:unzip(Pairs),
            {Matches, Env1, S1} = match_all(Patterns, Kinds, Env, S),
            {both(maybe_so, Matches), Env1, S1}
    end.

map_kind({Literal, _, Key}, Kinds) when Literal =:= atom; Literal =:= integer; Literal =:= string ->
    maps:get(Key, Kinds, missing);
map_kind(_, _) -> any.

record_index(Name, {atom, _, Field}, S) -> field_index(Name, Field, S);
record_index(_, _, _) -> none.

%% A number, or true or false, never equals a tensor.
literal(Value, Kind, Anno, Pattern, Env, S) when ?IS_TENSOR(Kind) ->
    {no, Env, case tessera_flow_calls:is_looked_for(Value, Kind) andalso S#s.reports of
                  true -> report(pattern, Anno, Pattern, equal, S);
                  false -> S
              end};
literal(Value, {term, Term}, _, _, Env, S) ->
    {case Value =:= Term of
         true -> yes;
         false -> no
     end, Env, S};
literal(Value, Kind, _, _, Env, S) ->
    Never = is_never({atom, 0, Value}, Kind) orelse Kind =:= number andalso is_atom(Value),
    {case Never of
         true -> no;
         false -> maybe_so
     end, Env, S}.

%% Patterns of one form that can never match terms of a known other form.
is_never({Form, _, _}, Kind) when ?IS_TENSOR(Kind) -> lists:member(Form, [map, string, bin, atom]);
is_never({nil, _}, Kind) when ?IS_TENSOR(Kind) -> true;
is_never({cons, _, _, _}, Kind) when ?IS_TENSOR(Kind) -> true;
is_never({cons, _, _, _}, {list, []}) -> true;
is_never({nil, _}, {list, [_ | _]}) -> true;
is_never(Pattern, {Tag, _}) when Tag =:= tuple; Tag =:= list; Tag =:= list_of; Tag =:= map; Tag =:= term ->
    Form = element(1, Pattern),
    lists:member(Form, [tuple, record, cons, nil, map, atom, bin]) andalso not lists:member(Form, forms(Tag));
is_never(_, _) -> false.

forms(tuple) -> [tuple, record];
forms(list) -> [cons, nil];
forms(list_of) -> [cons, nil];
forms(map) -> [map];
forms(term) -> [atom].

%% Binds all variables of a pattern to `any'.
anything(Pattern, Env) -> lists:foldl(fun(Name, E) -> maps:merge(#{Name => any}, E) end, Env, variables(Pattern)).

variables({var, _, '_'}) -> [];
variables({var, _, Name}) -> [Name];
variables(Tuple) when is_tuple(Tuple) -> variables(tuple_to_list(Tuple));
variables([Head | Tail]) -> variables(Head) ++ variables(Tail);
variables(_) -> [].

%% ---- guards

guard([], _, S) -> {yes, S};
guard(Alternatives, Env, S) ->
    lists:foldl(fun(_, {yes, S0}) -> {yes, S0};
                   (Tests, {Holds, S0}) ->
                        {Other, S1} = all_tests(Tests, Env, S0),
                        {either(Holds, Other), S1}
                end, {no, S}, Alternatives).

%% Tests after a failing one are not evaluated.
all_tests([], _, S) -> {yes, S};
all_tests([Test | Tests], Env, S) ->
    case test(Test, Env, S) of
        {no, S1} -> {no, S1};
        {Holds, S1} ->
            {Others, S2} = all_tests(Tests, Env, S1),
            {both(Holds, Others), S2}
    end.

test({op, _, 'andalso', Left, Right}, Env, S) -> all_tests([Left, Right], Env, S);
test({op, _, 'and', Left, Right}, Env, S) -> all_tests([Left, Right], Env, S);
test({op, _, Or, Left, Right}, Env, S) when Or =:= 'orelse'; Or =:= 'or' ->
    case test(Left, Env, S) of
        {yes, S1} -> {yes, S1};
        {Holds, S1} ->
            {Other, S2} = test(Right, Env, S1),
            {either(Holds, Other), S2}
    end;
test({op, _, 'not', Operand}, Env, S) ->
    {Holds, S1} = test(Operand, Env, S),
    {negation(Holds), S1};
test(Test, Env, S) ->
    case guard_value(Test, Env, S) of
        {{term, true}, S1} -> {yes, S1};
        {Kind, S1} when ?IS_TENSOR(Kind) -> {maybe_so, report(truth, element(2, Test), Test, 'cond', S1)};
        {{term, _}, S1} -> {no, S1};
        {_, S1} -> {maybe_so, S1}
    end.

negation(yes) -> no;
negation(no) -> yes;
negation(Other) -> Other.

%% Arithmetic on a tensor fails in a guard.
guard_value({op, Anno, Op, Left, Right} = Expr, Env, S) -> guard_op(Op, Anno, Expr, [Left, Right], Env, S);
guard_value({op, Anno, Op, Operand} = Expr, Env, S) -> guard_op(Op, Anno, Expr, [Operand], Env, S);
guard_value({call, Anno, {atom, _, Name}, Args} = Expr, Env, S) -> guard_op(Name, Anno, Expr, Args, Env, S);
guard_value({call, Anno, {remote, _, {atom, _, erlang}, {atom, _, Name}}, Args} = Expr, Env, S) ->
    guard_op(Name, Anno, Expr, Args, Env, S);
guard_value(Expr, Env, S) ->
    {Kind, _, S1} = expr(Expr, Env, S),
    {Kind, S1}.

guard_op(Op, Anno, Expr, Operands, Env, S) ->
    {Kinds, S1} = lists:mapfoldl(fun(Operand, S0) -> guard_value(Operand, Env, S0) end, S, Operands),
    case tessera_flow_calls:operation(Op, length(Kinds)) of
        {arithmetic, Ours} ->
            case lists:any(fun is_tensor/1, Kinds) of
                true -> {any, report(guard, Anno, Expr, Ours, S1)};
                false -> {tessera_flow_calls:arithmetic_kind(Kinds), S1}
            end;
        none -> tessera_flow_calls:erlang_call(Op, Kinds, ?CALLS, S1);
        _ -> operator(Op, Kinds, Anno, Expr, S1)
    end.

is_tensor(Kind) -> ?IS_TENSOR(Kind).

%% Whether a tensor occurs in the guards of an `if'.
guards_certainty(Clauses, Env, S) ->
    Operands = [known(Name, Env) || {clause, _, _, Guard, _} <- Clauses, Name <- variables(Guard)],
    Reported = lists:foldl(fun({clause, _, _, Guard, _}, S0) -> element(2, guard(Guard, Env, S0)) end, S, Clauses),
    case Reported#s.found =:= S#s.found of
        false -> sure;
        true -> certainty(Operands)
    end.

certainty(Kinds) ->
    case {lists:any(fun is_tensor/1, Kinds), lists:member(any, Kinds)} of
        {true, _} -> sure;
        {false, true} -> unsure;
        _ -> no
    end.

%% ---- operators

%% Arithmetic on a tensor raises; a comparison gives true or false.
operator(Op, Kinds, Anno, Expr, S) ->
    case tessera_flow_calls:operation(Op, length(Kinds)) of
        {arithmetic, _} -> {tessera_flow_calls:arithmetic_kind(Kinds), line(arithmetic, Expr, certainty(Kinds), S)};
        {order, Ours} ->
            compared(Op, Kinds, case lists:any(fun is_tensor/1, Kinds) of
                                    true -> report(comparison, Anno, Expr, Ours, S);
                                    false -> S
                                end);
        {equality, Ours} ->
            compared(Op, Kinds, case tessera_flow_calls:is_equality(Kinds) of
                                    true -> report(comparison, Anno, Expr, Ours, S);
                                    false -> S
                                end);
        none -> {any, S}
    end.

compared(Op, [{term, A}, {term, B}], S) -> {{term, erlang:Op(A, B)}, S};
compared(_, _, S) -> {static, S}.

%% ---- calls

call({remote, _, {atom, _, Module}, {atom, _, Name}}, Kinds, Call, _, S) -> reported(Module, Name, Kinds, Call, S);
call({atom, _, Name}, Kinds, Call, _, #s{code = #{functions := Functions, imports := Imports}} = S) ->
    Function = {Name, length(Kinds)},
    case {Functions, Imports} of
        {#{Function := _}, _} -> local(Function, Kinds, S);
        {_, #{Function := Module}} -> reported(Module, Name, Kinds, Call, S);
        _ -> reported(erlang, Name, Kinds, Call, S)
    end;
call(Expr, Kinds, _, Env, S) ->
    {Kind, _, S1} = expr(Expr, Env, S),
    apply_kind(Kind, Kinds, S1).

%% erlang:'>'(X, 0), max(X, 0), lists:max([X, Y])
reported(erlang, Name, Kinds, {call, Anno, _, _} = Call, S) ->
    case {tessera_flow_calls:operation(Name, length(Kinds)), lists:any(fun is_tensor/1, Kinds)} of
        {{_, Ours}, true} when Name =:= max; Name =:= min -> {any, report(comparison, Anno, Call, Ours, S)};
        {{Comparison, _}, _} when Comparison =/= arithmetic -> operator(Name, Kinds, Anno, Call, S);
        _ -> remote(erlang, Name, Kinds, S)
    end;
reported(lists, Name, [List] = Kinds, {call, Anno, _, _} = Call, S) when Name =:= max; Name =:= min ->
    case tessera_kind:elements(List) of
        {ok, Kind} when ?IS_TENSOR(Kind) -> {any, report(comparison, Anno, Call, Name, S)};
        _ -> remote(lists, Name, Kinds, S)
    end;
reported(Module, Name, Kinds, _, S) -> remote(Module, Name, Kinds, S).

function_kind(Name, Arity, #s{code = #{functions := Functions, imports := Imports}}) ->
    case {Functions, Imports} of
        {#{{Name, Arity} := _}, _} -> {local, {Name, Arity}};
        {_, #{{Name, Arity} := Module}} -> {remote, Module, Name};
        _ -> {remote, erlang, Name}
    end.

remote(Module, Name, Kinds, S) -> tessera_flow_calls:remote(Module, Name, Kinds, ?CALLS, S).

%% ---- reports

report(Why, Anno, Expr, Ours, #s{file = File, found = Found} = S) ->
    Finding = {{File, erl_anno:line(Anno)}, Why, text(Expr), Ours},
    S#s{found = Found#{Finding => true}}.

%% An expression on one line.
-spec text(tuple()) -> string().
text(Expr) ->
    try unicode:characters_to_list(re:replace(erl_pp:expr(Expr), "\\s+", " ", [global, unicode]))
    catch error:_ -> "?"
    end.

%% If there are several on one line, the most certain one counts.
line(What, Expr, Certainty, #s{file = File, lines = Lines} = S) ->
    Key = {What, File, erl_anno:line(element(2, Expr))},
    case Lines of
        #{Key := {Before, _}} when Before =:= sure; Before =:= Certainty; Certainty =:= no -> S;
        _ -> S#s{lines = Lines#{Key => {Certainty, Expr}}}
    end.
