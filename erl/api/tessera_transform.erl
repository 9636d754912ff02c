%% @doc A parse transform: with it, functions on tensors are written with Erlang's own operators and branches.
%%
%% ```
%% -module(model).
%% -compile({parse_transform, tessera_transform}).
%% -tessera([huber/2]).
%% -export([huber/2]).
%%
%% huber(X, Delta) ->
%%     A = abs(X),
%%     if
%%         A =< Delta -> X * X / 2;
%%         true -> Delta * (A - Delta / 2)
%%     end.
%% '''
%%
%% Lifted are the functions that the attribute `-tessera([f/1, ...])' names, or all of the module with `-tessera(all)';
%% funs that are written as arguments of {@link tessera:jit/1}, {@link tessera:compile/2}, {@link tessera:grad/1},
%% {@link tessera:value_and_grad/1}, {@link tessera:explain/2}, {@link tessera:to_text/2}, {@link tessera:while/3},
%% {@link tessera:'cond'/3} and {@link tessera:reduce/3}, with the functions of the module that these are given as
%% `fun f/1'; and all funs inside of lifted functions. Functions that they call are lifted only where they are named.
%%
%% A lifted function does the same to plain numbers as before. Where an operand is a tensor, an operator is an op:
%% <ul>
%% <li>`+ - * / div rem', `band bor bxor bnot bsl bsr', `abs', `max', `min', `round', `ceil', `floor', `trunc', `float',
%% and the functions of the module `math';</li>
%% <li>comparisons and `and or xor not andalso orelse' give tensors of 0 and 1. A tensor is equal to tensors and numbers
%% only: `X =:= none' is false;</li>
%% <li>`if', `case' and the clauses of functions and funs choose by {@link tessera:'cond'/3} where a guard, or a number
%% or truth in a pattern, is compared with a tensor. The tensor must have one element. Both ways are traced. Variables that are bound
%% in all clauses may be used afterwards. The last clause must match every value.</li>
%% </ul>
%% Called on tensors without being traced, such a function takes the one way that the value says.
%%
%% Patterns and guards of `receive', of `catch' and of the `else' of `maybe' stay Erlang's. The filter of a
%% comprehension and what is matched by `?=' must be known when the function is traced, else an error says where they are not.
-module(tessera_transform).
-export([parse_transform/2, format_error/1]).

-record(t, {module         :: module() | undefined,
            file = ""      :: string(),
            function       :: {atom(), arity()} | undefined,
            defined = []   :: [{atom(), arity()}],   % functions of the module and those that it imports
            records = []   :: [tuple()],
            lifts = false  :: boolean(),             % whether the current function is lifted
            count = 0      :: non_neg_integer()}).   % of generated variables

%% The context of an expression: the bound variables, those used afterwards, whether its value is used.
-record(c, {bound = [] :: ordsets:ordset(atom()), live = [] :: ordsets:ordset(atom()), used = true :: boolean()}).

-define(TAKE_FUNCTIONS, [jit, compile, grad, value_and_grad, explain, to_text, while, 'cond', reduce]).

%% @doc The forms of a module with the named functions lifted. The compiler calls it for `-compile({parse_transform,
%% tessera_transform})'.
-spec parse_transform([erl_parse:abstract_form() | erl_parse:form_info()], [compile:option()]) ->
          [erl_parse:abstract_form() | erl_parse:form_info()] | {error, list(), list()}.
parse_transform(Forms, _Options) ->
    Defined = [{Name, Arity} || {function, _, Name, Arity, _} <- Forms],
    case wanted(Forms, Defined) of
        {ok, Named} ->
            Imported = lists:append([Functions || {attribute, _, import, {_, Functions}} <- Forms]),
            T = #t{defined = Defined ++ Imported, records = [Form || {attribute, _, record, _} = Form <- Forms]},
            Given = ordsets:intersection(ordsets:from_list(given(Forms)), ordsets:from_list(Defined)),
            Lifted = ordsets:union(Named, Given),
            {Forms1, _} = lists:mapfoldl(fun(Form, T0) -> form(Form, Lifted, T0) end, T, Forms),
            Forms1;
        {error, Errors} -> {error, Errors, []}
    end.

%% @doc The text of an error about an attribute `-tessera', for the compiler.
-spec format_error(term()) -> iolist().
format_error({undefined, {Name, Arity}}) -> io_lib:format("-tessera names ~tw/~b, which is not defined", [Name, Arity]);
format_error({attribute, Value}) ->
    io_lib:format("-tessera(~tp): expected all, or functions such as [f/1, g/2]", [Value]).

%% ---- which functions are lifted

wanted(Forms, Defined) ->
    {_, Found} = lists:foldl(fun(Form, Acc) -> attribute(Form, Defined, Acc) end, {"", []}, Forms),
    case [Error || {_, [_ | _]} = Error <- Found] of
        [] -> {ok, ordsets:from_list(Found)};
        Errors -> {error, Errors}
    end.

attribute({attribute, _, file, {File, _}}, _, {_, Found}) -> {File, Found};
attribute({attribute, _, tessera, all}, Defined, {File, Found}) -> {File, Defined ++ Found};
attribute({attribute, Anno, tessera, Value}, Defined, {File, Found}) ->
    Error = fun(What) -> {File, [{erl_anno:location(Anno), ?MODULE, What}]} end,
    Functions = case Value of
                    {_, _} -> [Value];
                    _ -> Value
                end,
    case is_list(Functions) andalso lists:all(fun is_function_name/1, Functions) of
        true -> {File, [named(F, Defined, Error) || F <- Functions] ++ Found};
        false -> {File, [Error({attribute, Value}) | Found]}
    end;
attribute(_, _, Acc) -> Acc.

is_function_name({Name, Arity}) -> is_atom(Name) andalso is_integer(Arity);
is_function_name(_) -> false.

named(Function, Defined, Error) ->
    case lists:member(Function, Defined) of
        true -> Function;
        false -> Error({undefined, Function})
    end.

%% Functions of the module that are given to one of ours: tessera:jit(fun f/1).
given({call, _, {remote, _, {atom, _, tessera}, {atom, _, Name}}, Args}) ->
    Own = case lists:member(Name, ?TAKE_FUNCTIONS) of
              true -> [{F, Arity} || {'fun', _, {function, F, Arity}} <- Args];
              false -> []
          end,
    Own ++ given(Args);
given(Tuple) when is_tuple(Tuple) -> given(tuple_to_list(Tuple));
given([Head | Tail]) -> given(Head) ++ given(Tail);
given(_) -> [].

form({attribute, _, file, {File, _}} = Form, _, T) -> {Form, T#t{file = File}};
form({attribute, _, module, Module} = Form, _, T) -> {Form, T#t{module = Module}};
form({function, Anno, Name, Arity, Clauses}, Lifted, T) ->
    Own = T#t{function = {Name, Arity}, lifts = lists:member({Name, Arity}, Lifted)},
    {Clauses1, T1} = functions(Anno, Name, Clauses, #c{}, Own),
    {{function, Anno, Name, Arity, Clauses1}, T1};
form(Form, _, T) -> {Form, T}.

%% ---- bodies

exprs(Exprs, C, T) -> exprs(Exprs, [], C, T).

exprs([Last], Done, C, T) ->
    {Last1, T1} = expr(Last, C, T),
    {lists:reverse(Done, [Last1]), T1};
exprs([Expr | Exprs], Done, #c{bound = Bound, live = Live} = C, T) ->
    {Expr1, T1} = expr(Expr, C#c{live = ordsets:union(Live, variables(Exprs)), used = false}, T),
    exprs(Exprs, [Expr1 | Done], C#c{bound = ordsets:union(Bound, binds(Expr))}, T1);
exprs([], Done, _, T) -> {lists:reverse(Done), T}.

%% An expression whose value is used.
value(Expr, C, T) -> expr(Expr, C#c{used = true}, T).

values(Exprs, C, T) -> lists:mapfoldl(fun(Expr, T0) -> value(Expr, C, T0) end, T, Exprs).

expr({call, Anno, {remote, _, {atom, _, tessera}, {atom, _, Name}} = Function, Args}, C, T) ->
    Lifts = lists:member(Name, ?TAKE_FUNCTIONS),
    {Args1, T1} = lists:mapfoldl(fun(Arg, T0) -> argument(Arg, Lifts, C, T0) end, T, Args),
    {{call, Anno, Function, Args1}, T1};
expr({match, Anno, Pattern, Expr}, #c{live = Live} = C, T) ->
    {Expr1, T1} = value(Expr, C#c{live = ordsets:union(Live, variables(Pattern))}, T),
    {{match, Anno, Pattern, Expr1}, T1};
expr({block, Anno, Exprs}, C, T) ->
    {Exprs1, T1} = exprs(Exprs, C, T),
    {{block, Anno, Exprs1}, T1};
expr({'if', Anno, Clauses}, C, T) -> 'if'(Anno, Clauses, C, T);
expr({'case', Anno, Expr, Clauses}, C, T) -> 'case'(Anno, Expr, Clauses, C, T);
expr({'fun', Anno, {clauses, Clauses}}, C, T) ->
    {Clauses1, T1} = functions(Anno, inside(T), Clauses, C, T),
    {{'fun', Anno, {clauses, Clauses1}}, T1};
expr({named_fun, Anno, Name, Clauses}, #c{bound = Bound} = C, T) ->
    {Clauses1, T1} = functions(Anno, inside(T), Clauses, C#c{bound = ordsets:add_element(Name, Bound)}, T),
    {{named_fun, Anno, Name, Clauses1}, T1};
expr({Form, Anno, Item, Qualifiers}, C, T) when Form =:= lc; Form =:= bc; Form =:= mc ->
    {Qualifiers1, C1, T1} = qualifiers(Qualifiers, C#c{live = variables([Item | Qualifiers])}, T),
    {Item1, T2} = value(Item, C1#c{live = []}, T1),
    {{Form, Anno, Item1, Qualifiers1}, T2};
expr({'try', Anno, Exprs, Clauses, Catches, After}, C, T) -> 'try'(Anno, Exprs, Clauses, Catches, After, C, T);
expr({'receive', Anno, Clauses}, C, T) ->
    {Clauses1, T1} = native(Clauses, C, T),
    {{'receive', Anno, Clauses1}, T1};
expr({'receive', Anno, Clauses, Time, After}, C, T) ->
    {Clauses1, T1} = native(Clauses, C, T),
    {Time1, T2} = value(Time, C, T1),
    {After1, T3} = exprs(After, C, T2),
    {{'receive', Anno, Clauses1, Time1, After1}, T3};
expr({'maybe', Anno, Exprs}, C, T) ->
    {Exprs1, T1} = exprs(Exprs, C#c{used = true}, T),
    {{'maybe', Anno, Exprs1}, T1};
expr({'maybe', Anno, Exprs, {'else', ElseAnno, Clauses}}, C, T) ->
    {Exprs1, T1} = exprs(Exprs, C#c{used = true}, T),
    {Clauses1, T2} = native(Clauses, C, T1),
    {{'maybe', Anno, Exprs1, {'else', ElseAnno, Clauses1}}, T2};
expr({maybe_match, Anno, Pattern, Expr}, C, T) ->
    {Expr1, T1} = value(Expr, C, T),
    {{maybe_match, Anno, Pattern, looked_at(Pattern, Expr1, C, T)}, T1};
expr(Expr, C, #t{lifts = true} = T) -> operator(Expr, C, T);
expr(Expr, C, T) -> parts(Expr, C, T).

%% A fun that is written as an argument of one of ours is lifted.
argument({'fun', _, {clauses, _}} = Fun, true, C, T) -> lifting(Fun, C, T);
argument({named_fun, _, _, _} = Fun, true, C, T) -> lifting(Fun, C, T);
argument(Expr, _, C, T) -> value(Expr, C, T).

lifting(Fun, C, #t{lifts = Before} = T) ->
    {Fun1, T1} = value(Fun, C, T#t{lifts = true}),
    {Fun1, T1#t{lifts = Before}}.

%% Any other expression: the expressions that it is made of, whose values it uses.
parts(Tuple, C, T) when is_tuple(Tuple), tuple_size(Tuple) > 2 ->
    [Tag, Anno | Parts] = tuple_to_list(Tuple),
    {Parts1, T1} = lists:mapfoldl(fun(Part, T0) -> part(Part, C, T0) end, T, Parts),
    {list_to_tuple([Tag, Anno | Parts1]), T1};
parts(Other, _, T) -> {Other, T}.

part(Parts, C, T) when is_list(Parts) ->
    case lists:all(fun is_tuple/1, Parts) of
        true -> lists:mapfoldl(fun(Part, T0) -> part(Part, C, T0) end, T, Parts);
        false -> {Parts, T} % the characters of a string
    end;
part(Expr, C, T) when is_tuple(Expr), tuple_size(Expr) > 2 -> value(Expr, C, T);
part(Other, _, T) -> {Other, T}.

%% ---- operators and built-in functions

operator({op, Anno, Op, Left, Right}, C, T) when Op =:= 'andalso'; Op =:= 'orelse' ->
    {Left1, T1} = value(Left, C, T),
    {Right1, T2} = value(Right, C#c{bound = ordsets:union(C#c.bound, binds(Left))}, T1),
    {call(Anno, Op, [Left1, thunk(Anno, [Right1])]), T2};
operator({op, Anno, Op, _, _} = Expr, C, T) ->
    {{op, _, _, Left, Right}, T1} = parts(Expr, C, T),
    case is_lifted(Op, 2) andalso not (is_literal(Left) andalso is_literal(Right)) of
        true -> {call(Anno, Op, [Left, Right]), T1};
        false -> {{op, Anno, Op, Left, Right}, T1}
    end;
operator({op, Anno, Op, _} = Expr, C, T) ->
    {{op, _, _, Operand}, T1} = parts(Expr, C, T),
    case is_literal(Operand) of
        true -> {{op, Anno, Op, Operand}, T1};
        false -> {call(Anno, Op, [Operand]), T1}
    end;
operator({call, Anno, Function, Args}, C, T) ->
    {Args1, T1} = values(Args, C, T),
    case built_in(Function, length(Args), T) of
        {erlang, Name} -> {call(Anno, Name, Args1), T1};
        {math, Name} -> {call(Anno, math, [{atom, Anno, Name}, list(Anno, Args1)]), T1};
        none ->
            {Function1, T2} = part(Function, C, T1),
            {{call, Anno, Function1, Args1}, T2}
    end;
operator({'fun', Anno, {function, {atom, At, erlang}, {atom, _, Name} = F, {integer, _, Arity} = N}} = Fun, _, T) ->
    case is_lifted(Name, Arity) of
        true -> {{'fun', Anno, {function, {atom, At, tessera_operators}, F, N}}, T};
        false -> {Fun, T}
    end;
operator(Expr, C, T) -> parts(Expr, C, T).

is_lifted(Name, Arity) ->
    tessera_names:function(Name, Arity) =/= none orelse Arity =:= 1 andalso lists:member(Name, [float, trunc]).

%% Also the sign before a number.
is_literal({op, _, _, Operand}) -> is_literal(Operand);
is_literal({Type, _, _}) -> lists:member(Type, [integer, float, char]);
is_literal(_) -> false.

built_in({atom, _, Name}, Arity, #t{defined = Defined}) ->
    IsOwn = lists:member({Name, Arity}, Defined),
    case is_lifted(Name, Arity) andalso erl_internal:bif(Name, Arity) andalso not IsOwn of
        true -> {erlang, Name};
        false -> none
    end;
built_in({remote, _, {atom, _, erlang}, {atom, _, Name}}, Arity, _) ->
    case is_lifted(Name, Arity) of
        true -> {erlang, Name};
        false -> none
    end;
built_in({remote, _, {atom, _, math}, {atom, _, Name}}, Arity, _) when Arity > 0 -> {math, Name};
built_in(_, _, _) -> none.

%% ---- comprehensions

qualifiers(Qualifiers, C, T) ->
    {Lists, {C1, T1}} = lists:mapfoldl(fun(One, {C0, T0}) -> qualifier(One, C0, T0) end, {C, T}, Qualifiers),
    {lists:append(Lists), C1, T1}.

qualifier({Generate, Anno, Pattern, Expr}, #c{bound = Bound} = C, T)
  when Generate =:= generate; Generate =:= generate_strict; Generate =:= b_generate; Generate =:= b_generate_strict;
       Generate =:= m_generate; Generate =:= m_generate_strict ->
    {Expr1, T1} = value(Expr, C, T),
    {Pattern1, Tests, T2} = generated(Generate, Pattern, T1),
    Filters = [call(Anno, filter, [Test, site(Anno, {atom, Anno, filter}, T)]) || Test <- Tests],
    {[{Generate, Anno, Pattern1, Expr1} | Filters], {C#c{bound = ordsets:union(Bound, variables(Pattern))}, T2}};
qualifier({zip, Anno, Generators}, C, T) ->
    {Generators1, {C1, T1}} = lists:mapfoldl(fun({Generate, A, Pattern, Expr}, {C0, T0}) ->
                                                     {Expr1, T2} = value(Expr, C, T0),
                                                     Bound = ordsets:union(C0#c.bound, variables(Pattern)),
                                                     {{Generate, A, Pattern, Expr1}, {C0#c{bound = Bound}, T2}}
                                             end, {C, T}, Generators),
    {[{zip, Anno, Generators1}], {C1, T1}};
qualifier(Filter, C, #t{lifts = false} = T) ->
    {Filter1, T1} = value(Filter, C, T),
    {[Filter1], {C, T1}};
qualifier(Filter, C, T) ->
    case is_type_test(Filter) of
        true -> {[Filter], {C, T}};
        false ->
            Anno = element(2, Filter),
            {Filter1, T1} = value(Filter, C, T),
            Test = case is_guard(Filter, T) of
                       true -> call(Anno, guard, [thunk(Anno, [Filter1])]);
                       false -> Filter1
                   end,
            {[call(Anno, filter, [Test, site(Anno, {atom, Anno, filter}, T)])], {C, T1}}
    end.

%% A strict generator has no elements that it leaves out.
generated(generate, Pattern, #t{lifts = true} = T) ->
    {Pattern1, {Tests, _, T1}} = pattern(Pattern, [], {[], [], T}),
    {Pattern1, lists:reverse(Tests), T1};
generated(_, Pattern, T) -> {Pattern, [], T}.

is_guard(Expr, #t{records = Records, defined = Defined}) ->
    erl_lint:is_guard_test(Expr, Records, fun(Function) -> lists:member(Function, Defined) end).

%% ---- branches

'if'(Anno, Clauses, C, T) ->
    case T#t.lifts andalso must_lift(Clauses, C) of
        true -> lifted(Anno, [], {atom, Anno, 'if'}, Clauses, C, T);
        false ->
            {Clauses1, T1} = native(Clauses, C, T),
            {{'if', Anno, Clauses1}, T1}
    end.

'case'(Anno, Expr, Clauses, #c{bound = Bound, live = Live} = C, T) ->
    {Expr1, T1} = value(Expr, C#c{live = ordsets:union(Live, variables(Clauses))}, T),
    Inner = C#c{bound = ordsets:union(Bound, binds(Expr))},
    case T#t.lifts andalso must_lift(Clauses, Inner) of
        true ->
            {Subject, T2} = fresh(Anno, T1),
            {Lifted, T3} = lifted(Anno, [Subject], {tuple, Anno, [{atom, Anno, 'case'}, Subject]}, Clauses, Inner, T2),
            {{block, Anno, [{match, Anno, Subject, Expr1}, Lifted]}, T3};
        false ->
            {Clauses1, T2} = native(Clauses, Inner, T1),
            {{'case', Anno, Expr1, Clauses1}, T2}
    end.

'try'(Anno, Exprs, Clauses, Catches, After, #c{bound = Bound, live = Live} = C, T) ->
    {Exprs1, T1} = exprs(Exprs, C#c{live = ordsets:union(Live, variables(Clauses)), used = true}, T),
    {Clauses1, T2} = tried(Anno, Clauses, C#c{bound = ordsets:union(Bound, binds(Exprs))}, T1),
    {Catches1, T3} = native(Catches, C, T2),
    {After1, T4} = exprs(After, C#c{used = false}, T3),
    {{'try', Anno, Exprs1, Clauses1, Catches1, After1}, T4}.

tried(_, [], _, T) -> {[], T};
tried(Anno, Clauses, C, T) ->
    case T#t.lifts andalso must_lift(Clauses, C) of
        true ->
            {Subject, T1} = fresh(Anno, T),
            What = {tuple, Anno, [{atom, Anno, 'try'}, Subject]},
            {Lifted, T2} = lifted(Anno, [Subject], What, Clauses, C#c{live = []}, T1),
            {[{clause, Anno, [Subject], [], [Lifted]}], T2};
        false -> native(Clauses, C, T)
    end.

%% The clauses of a function or fun.
functions(Anno, Name, [{clause, _, Patterns, _, _} | _] = Clauses, #c{bound = Bound} = C, T) ->
    Inner = C#c{live = [], used = true},
    case T#t.lifts andalso must_lift(Clauses, Inner#c{bound = []}) of
        true ->
            {Args, T1} = lists:mapfoldl(fun(_, T0) -> fresh(Anno, T0) end, T, Patterns),
            {Renamed, T2} = lists:mapfoldl(fun(Clause, T0) -> renamed(Clause, Bound, T0) end, T1, Clauses),
            What = {tuple, Anno, [{atom, Anno, function},
                                  {tuple, Anno, [{atom, Anno, T#t.module}, {atom, Anno, Name}, list(Anno, Args)]}]},
            {Lifted, T3} = lifted(Anno, Args, What, Renamed, Inner, T2),
            {[{clause, Anno, Args, [], [Lifted]}], T3};
        false -> native(Clauses, Inner, T)
    end.

inside(#t{function = {Name, Arity}}) -> list_to_atom(lists:concat(["-", Name, "/", Arity, "-fun-"]));
inside(_) -> '-fun-'.

%% Variables of a head are its own, even if their names are bound outside.
renamed({clause, Anno, Patterns, Guard, Body}, Bound, T) ->
    {Names, T1} = lists:mapfoldl(fun(Name, T0) -> {{Name, fresh_name(Name, T0)}, T0#t{count = T0#t.count + 1}} end, T,
                                 ordsets:intersection(variables(Patterns), Bound)),
    {rename({clause, Anno, Patterns, Guard, Body}, maps:from_list(Names)), T1}.

rename(Term, Names) when map_size(Names) =:= 0 -> Term;
rename({var, Anno, Name}, Names) -> {var, Anno, maps:get(Name, Names, Name)};
rename(Tuple, Names) when is_tuple(Tuple) -> list_to_tuple(rename(tuple_to_list(Tuple), Names));
rename([Head | Tail], Names) -> [rename(Head, Names) | rename(Tail, Names)];
rename(Term, _) -> Term.

%% Clauses whose patterns and guards stay Erlang's.
native(Clauses, C, T) -> lists:mapfoldl(fun(Clause, T0) -> native_clause(Clause, C, T0) end, T, Clauses).

native_clause({clause, Anno, Patterns, Guard, Body}, #c{bound = Bound} = C, T) ->
    {Body1, T1} = exprs(Body, C#c{bound = ordsets:union(Bound, variables(Patterns))}, T),
    {{clause, Anno, Patterns, Guard, Body1}, T1}.

%% Whether a pattern or a guard may be about a tensor.
must_lift(Clauses, C) -> lists:any(fun(Clause) -> looks(Clause, C) end, Clauses).

looks({clause, _, Patterns, Guard, _}, #c{bound = Bound}) ->
    {_, {Tests, _, _}} = patterns(Patterns, Bound, {[], [], #t{}}),
    Tests =/= [] orelse not lists:all(fun(Conjunction) -> lists:all(fun is_type_test/1, Conjunction) end, Guard).

is_type_test({atom, _, _}) -> true;
is_type_test({call, _, {atom, _, Name}, _}) -> erl_internal:type_test(Name, 1) orelse Name =:= is_record;
is_type_test({call, _, {remote, _, {atom, _, erlang}, {atom, _, Name}}, _}) -> erl_internal:type_test(Name, 1);
is_type_test({op, _, Op, Left, Right}) ->
    lists:member(Op, ['and', 'or', 'xor', 'andalso', 'orelse']) andalso is_type_test(Left) andalso is_type_test(Right);
is_type_test({op, _, 'not', Operand}) -> is_type_test(Operand);
is_type_test(_) -> false.

%% Clauses as arguments of tessera_operators:clauses/2, each a fun that gives its condition and its body.
lifted(Anno, Subjects, What, Clauses, #c{bound = Bound, live = Live, used = Used} = C, T) ->
    Exported = ordsets:to_list(ordsets:intersection(ordsets:subtract(bound_in_all(Clauses), Bound), Live)),
    {Funs, {_, T1}} = lists:mapfoldl(fun(Clause, {Seen, T0}) ->
                                             {Fun, T2} = lifted_clause(Clause, Seen, Subjects, Exported, C, T0),
                                             {Fun, {[Clause | Seen], T2}}
                                     end, {[], T}, Clauses),
    result(Anno, call(Anno, clauses, [list(Anno, Funs), site(Anno, What, T)]), Exported, Used, T1).

bound_in_all(Clauses) ->
    [First | Rest] = [ordsets:union(variables(Patterns), binds(Body)) || {clause, _, Patterns, _, Body} <- Clauses],
    lists:foldl(fun ordsets:intersection/2, First, Rest).

%% The result of the clauses: the value, if it is used, and the variables that are used afterwards.
result(_, Call, [], _, T) -> {Call, T};
result(Anno, Call, Exported, false, T) -> {{match, Anno, exported(Anno, Exported), Call}, T};
result(Anno, Call, Exported, true, T) ->
    {Value, T1} = fresh(Anno, T),
    Pattern = {tuple, Anno, [Value, exported(Anno, Exported)]},
    {{block, Anno, [{match, Anno, Pattern, Call}, Value]}, T1}.

exported(Anno, Names) -> {tuple, Anno, [{var, Anno, Name} || Name <- Names]}.

lifted_clause({clause, Anno, Patterns, Guard, Body} = Clause, Before, Subjects, Exported, #c{bound = Bound} = C, T) ->
    {Patterns1, Tests, T1} = case is_the_other(Clause, Before) of
                                 {true, Truth} -> {[{var, Anno, '_'}], [call(Anno, other, [hd(Subjects), Truth])], T};
                                 false ->
                                     {Others, {Reversed, _, Next}} = patterns(Patterns, Bound, {[], [], T}),
                                     {Others, lists:reverse(Reversed), Next}
                             end,
    Inner = C#c{bound = ordsets:union(Bound, variables(Patterns))},
    {Holds, T2} = guard(Anno, Guard, Inner, T1),
    {Body1, T3} = body(Anno, Body, Exported, Inner, T2),
    Chosen = {tuple, Anno, [conjunction(Anno, Tests ++ Holds), thunk(Anno, Body1)]},
    {thunk(Anno, matched(Anno, Patterns1, Subjects, Chosen)), T3}.

%% After a clause with `true', a clause with `false' matches every tensor that is left, and the other way round.
is_the_other({clause, _, [{atom, _, Truth} = Pattern], [], _}, Before) when is_boolean(Truth) ->
    case [Other || {clause, _, [{atom, _, Other}], [], _} <- Before, Other =:= not Truth] of
        [] -> false;
        _ -> {true, Pattern}
    end;
is_the_other(_, _) -> false.

%% A value that is not used need not be of one form in all clauses.
body(_, Body, [], #c{used = true} = C, T) -> exprs(Body, C, T);
body(Anno, Body, Exported, #c{used = false, live = Live} = C, T) ->
    {Body1, T1} = exprs(Body, C#c{live = ordsets:union(Live, Exported)}, T),
    {Body1 ++ [exported(Anno, Exported)], T1};
body(Anno, Body, Exported, #c{live = Live} = C, T) ->
    {Body1, T1} = exprs(Body, C#c{live = ordsets:union(Live, Exported)}, T),
    {Value, T2} = fresh(Anno, T1),
    {Before, [Last]} = lists:split(length(Body1) - 1, Body1),
    {Before ++ [{match, Anno, Value, Last}, {tuple, Anno, [Value, exported(Anno, Exported)]}], T2}.

%% A match that may fail is a `case'; without that possibility it would cause a warning.
matched(Anno, Patterns, Subjects, Chosen) ->
    case lists:all(fun is_variable/1, Patterns) of
        true -> [{match, Anno, Pattern, Subject} || {Pattern, Subject} <- lists:zip(Patterns, Subjects)] ++ [Chosen];
        false ->
            Generated = erl_anno:set_generated(true, Anno),
            [{'case', Generated, {tuple, Generated, Subjects},
              [{clause, Generated, [{tuple, Generated, Patterns}], [], [Chosen]},
               {clause, Generated, [{var, Generated, '_'}], [], [{atom, Generated, false}]}]}]
    end.

is_variable({var, _, _}) -> true;
is_variable(_) -> false.

conjunction(Anno, []) -> {atom, Anno, true};
conjunction(_, [Condition]) -> Condition;
conjunction(Anno, [Condition | Conditions]) ->
    call(Anno, 'andalso', [Condition, thunk(Anno, [conjunction(Anno, Conditions)])]).

%% ---- guards

%% No condition, or one.
guard(_, [], _, T) -> {[], T};
guard(Anno, Alternatives, C, T) ->
    {Tests, T1} = lists:mapfoldl(fun(Conjunction, T0) -> guard_tests(Anno, Conjunction, C, T0) end, T, Alternatives),
    {[disjunction(Anno, Tests)], T1}.

guard_tests(_, [{atom, _, true} = True], _, T) -> {True, T};
guard_tests(Anno, Conjunction, C, T) ->
    {Tests, T1} = values(Conjunction, C, T),
    {call(Anno, guard, [thunk(Anno, [conjunction(Anno, Tests)])]), T1}.

disjunction(_, [Test]) -> Test;
disjunction(Anno, [Test | Tests]) -> call(Anno, 'orelse', [Test, thunk(Anno, [disjunction(Anno, Tests)])]).

%% ---- patterns

%% A pattern whose numbers, truths and bound variables are replaced by new variables, and the tests that these must
%% pass: {Tests, Seen, T}, the last test first.
pattern({var, _, '_'} = Pattern, _, Acc) -> {Pattern, Acc};
pattern({var, Anno, Name} = Pattern, Bound, {Tests, Seen, T} = Acc) ->
    case ordsets:is_element(Name, Bound) orelse lists:member(Name, Seen) of
        true -> tested(Anno, Pattern, Acc);
        false -> {Pattern, {Tests, [Name | Seen], T}}
    end;
pattern({Type, Anno, _} = Pattern, _, Acc) when Type =:= integer; Type =:= float; Type =:= char ->
    tested(Anno, Pattern, Acc);
pattern({atom, Anno, Truth} = Pattern, _, Acc) when is_boolean(Truth) -> tested(Anno, Pattern, Acc);
pattern({op, Anno, _, _} = Pattern, _, Acc) -> tested(Anno, Pattern, Acc);
pattern({op, Anno, Op, _, _} = Pattern, _, Acc) when Op =/= '++' -> tested(Anno, Pattern, Acc);
pattern({match, Anno, Left, Right}, Bound, Acc) ->
    {[Left1, Right1], Acc1} = patterns([Left, Right], Bound, Acc),
    {{match, Anno, Left1, Right1}, Acc1};
pattern({cons, Anno, Head, Tail}, Bound, Acc) ->
    {[Head1, Tail1], Acc1} = patterns([Head, Tail], Bound, Acc),
    {{cons, Anno, Head1, Tail1}, Acc1};
pattern({tuple, Anno, Items}, Bound, Acc) ->
    {Items1, Acc1} = patterns(Items, Bound, Acc),
    {{tuple, Anno, Items1}, Acc1};
pattern({map, Anno, Fields}, Bound, Acc) ->
    {Fields1, Acc1} = lists:mapfoldl(fun(Field, A) -> field(Field, Bound, A) end, Acc, Fields),
    {{map, Anno, Fields1}, Acc1};
pattern({record, Anno, Name, Fields}, Bound, Acc) ->
    {Fields1, Acc1} = lists:mapfoldl(fun(Field, A) -> field(Field, Bound, A) end, Acc, Fields),
    {{record, Anno, Name, Fields1}, Acc1};
pattern(Pattern, _, {Tests, Seen, T}) -> {Pattern, {Tests, variables(Pattern) ++ Seen, T}}.

patterns(Patterns, Bound, Acc) -> lists:mapfoldl(fun(Pattern, A) -> pattern(Pattern, Bound, A) end, Acc, Patterns).

field({Field, Anno, Key, Pattern}, Bound, Acc) ->
    {Pattern1, Acc1} = pattern(Pattern, Bound, Acc),
    {{Field, Anno, Key, Pattern1}, Acc1}.

tested(Anno, Expected, {Tests, Seen, T}) ->
    {Variable, T1} = fresh(Anno, T),
    {Variable, {[call(Anno, match, [Variable, Expected]) | Tests], Seen, T1}}.

%% A value that `?=' matches with a number or a truth has to be known while tracing.
looked_at(_, Expr, _, #t{lifts = false}) -> Expr;
looked_at(Pattern, Expr, #c{bound = Bound}, T) ->
    case pattern(Pattern, Bound, {[], [], T}) of
        {_, {[], _, _}} -> Expr;
        _ ->
            Anno = element(2, Pattern),
            call(Anno, plain, [Expr, site(Anno, {atom, Anno, '?='}, T)])
    end.

%% ---- variables

%% All variables that are named in an expression, a pattern or several.
variables(Term) -> ordsets:from_list(variables(Term, [])).

variables({var, _, '_'}, Acc) -> Acc;
variables({var, _, Name}, Acc) -> [Name | Acc];
variables(Tuple, Acc) when is_tuple(Tuple) -> variables(tuple_to_list(Tuple), Acc);
variables([Head | Tail], Acc) -> variables(Tail, variables(Head, Acc));
variables(_, Acc) -> Acc.

%% The variables that an expression binds for the next ones.
binds({match, _, Pattern, Expr}) -> ordsets:union(variables(Pattern), binds(Expr));
binds({maybe_match, _, Pattern, Expr}) -> ordsets:union(variables(Pattern), binds(Expr));
binds({'if', _, Clauses}) -> bound_in_all(Clauses);
binds({'case', _, Expr, Clauses}) -> ordsets:union(binds(Expr), bound_in_all(Clauses));
binds({'receive', _, Clauses}) -> bound_in_all(Clauses);
binds({'receive', Anno, Clauses, Time, After}) ->
    ordsets:union(binds(Time), bound_in_all([{clause, Anno, [], [], After} | Clauses]));
binds({op, _, Op, Left, _}) when Op =:= 'andalso'; Op =:= 'orelse' -> binds(Left);
binds(Tuple) when is_tuple(Tuple), tuple_size(Tuple) > 0 ->
    case lists:member(element(1, Tuple), ['fun', named_fun, lc, bc, mc, 'try', 'catch', 'maybe']) of
        true -> [];
        false -> binds(tuple_to_list(Tuple))
    end;
binds([Head | Tail]) -> ordsets:union(binds(Head), binds(Tail));
binds(_) -> [].

fresh(Anno, #t{count = Count} = T) -> {{var, Anno, fresh_name('', T)}, T#t{count = Count + 1}}.

%% A name that no source can have.
fresh_name(Like, #t{count = Count}) -> list_to_atom(lists:concat([Like, "@tessera", Count])).

%% ---- code

call(Anno, Name, Args) -> {call, Anno, {remote, Anno, {atom, Anno, tessera_operators}, {atom, Anno, Name}}, Args}.

thunk(Anno, Body) -> {'fun', Anno, {clauses, [{clause, Anno, [], [], Body}]}}.

list(Anno, Items) -> lists:foldr(fun(Item, Tail) -> {cons, Anno, Item, Tail} end, {nil, Anno}, Items).

site(Anno, What, #t{file = File}) ->
    {tuple, Anno, [{string, Anno, File}, {integer, Anno, erl_anno:line(Anno)}, What]}.
