%% @private What a traced expression runs as: one program, or, where it calls
%% Elixir, steps between which the caller's own process does the calling. So no
%% thread ever waits for a callback, and a callback may itself use Tessera.
%%
%% Values that live from one step to a later one have slots.
-module(tessera_nx_plan).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-include("tessera_nx_lower.hrl").
-export([build/4, text/3, stablehlo/3, effect/4, run/4, codes/1, pack/1, unpack/1]).
-export_type([plan/0]).

%% Where a value comes from: the leaf of an argument, a tensor that the function holds, or an earlier step.
-type source() :: {arg, non_neg_integer()} | {held, tessera:tensor()} | non_neg_integer().

-record(single, {code :: tessera_program:code(), args :: [source()]}).
-record(steps, {steps :: [term()], results :: [source()], args :: [source()]}).
-opaque plan() :: #single{} | #steps{}.

%% ---- building

%% Roots are the results; Leaves are the arguments'. Handled are the names of hooks.
%% Also gives which leaves are used, each where its value stands among the inputs of the plan.
-spec build([map()], [map()], [atom()], boolean()) -> {plan(), [non_neg_integer() | held]}.
build(Roots, Leaves, Handled, IsCached) ->
    case tessera_nx_plain:read(Roots, Handled) of
        undefined ->
            build_scoped(Roots, [tessera_nx_tensor:form(Leaf) || Leaf <- Leaves], Handled, IsCached);
        {Expression, Sources} ->
            Used = [source(Source) || Source <- Sources],
            Code = tessera_program:new(tessera_nx_plain:describe(Expression),
                                       fun() -> tessera_nx_plain:program(Expression) end, [], IsCached),
            {#single{code = check(Code), args = Used}, used(Used)}
    end.

source(Position) when is_integer(Position) -> {arg, Position};
source(Tensor) -> {held, tessera_nx_tensor:value(Tensor)}.

build_scoped(Roots, Args, Handled, IsCached) ->
    {Values, St1} = lower(Roots, Args, #st{handled = Handled, is_cached = IsCached}),
    case St1#st.steps of
        [] ->
            Used = imports(St1#st.program, St1),
            {#single{code = compile(St1#st.program, Values, St1), args = Used}, used(Used)};
        _ ->
            {Slots, St2} = slots(Values, St1),
            Steps = link(lists:reverse(end_program(St2)), St2),
            Used = lists:usort([Arg || {_, {arg, _} = Arg} <- maps:keys(St2#st.imports)]),
            {#steps{steps = Steps, results = Slots, args = Used}, used(Used)}
    end.

used(Sources) -> [case Source of
                      {arg, I} -> I;
                      _ -> held
                  end || Source <- Sources].

lower(Roots, Args, #st{handled = Handled} = Options) ->
    Effects = tessera_nx_expr:effects(Roots, Handled),
    Params = maps:from_list([{I, #slot{name = {arg, I}, form = Form}}
                             || {I, Form} <- lists:zip(tessera_type:dims(length(Args)), Args)]),
    St = tessera_nx_lower:begin_program(Options#st{effects = Effects}),
    tessera_nx_lower:scope(Roots, Params, #{}, false, St).

%% The same as one module of StableHLO, and which arguments it takes. Tensors that the function holds are literals.
-spec stablehlo([map()], [tessera_nx_ops:form()], [atom()]) -> {binary(), [non_neg_integer()]}.
stablehlo(Roots, Args, Handled) ->
    {Program, Used} = one_program(Roots, Args, Handled),
    {check(tessera_nif:graph_stablehlo(Program)), Used}.

%% The same as Tessera's own text.
-spec text([map()], [tessera_nx_ops:form()], [atom()]) -> {binary(), [non_neg_integer()]}.
text(Roots, Args, Handled) ->
    {Program, Used} = one_program(Roots, Args, Handled),
    {check(tessera_nif:graph_text(Program)), Used}.

one_program(Roots, Args, Handled) ->
    {Values, #st{program = Program, steps = Steps} = St} = lower(Roots, Args, #st{handled = Handled, holds = false}),
    Steps =:= [] orelse
        tessera_nx_error:argument("a function that calls Elixir (io_call, hook, runtime_call) has no StableHLO", []),
    _ = check(tessera_nif:finish(Program, Values)),
    {Program, [I || {arg, I} <- imports(Program, St)]}.

compile(Program, Values, #st{is_cached = IsCached}) ->
    _ = check(tessera_nif:finish(Program, Values)),
    check(tessera_program:new(Program, [], IsCached)).

check(Result) -> tessera_nx_error:check(compile, Result).

imports(Program, #st{imports = Imports}) -> lists:reverse(maps:get(Program, Imports, [])).

slots(Values, St) ->
    {Slots, St1} = lists:mapfoldl(fun tessera_nx_lower:slot/2, St, Values),
    {[Name || #slot{name = Name} <- Slots], St1}.

end_program(#st{steps = Steps, program = Program}) -> [{program, Program} | Steps].

%% Programs get their results when it is known what of them is used later.
link(Steps, St) -> lists:append([link_step(Step, St) || Step <- Steps]).

link_step({program, Program}, #st{exports = Exports} = St) ->
    case lists:reverse(maps:get(Program, Exports, [])) of
        [] -> [];
        Exported ->
            {Names, Values} = lists:unzip(Exported),
            [{run, compile(Program, Values, St), imports(Program, St), Names}]
    end;
link_step({'cond', Predicate, True, False, Out}, St) ->
    [{'cond', Predicate, link_part(True, St), link_part(False, St), Out}];
link_step({while, In, Params, Test, Body, Out}, St) ->
    [{while, In, Params, link_part(Test, St), link_part(Body, St), Out}];
link_step(Step, _) -> [Step].

link_part({Steps, Results}, St) -> {link(Steps, St), Results}.

%% ---- nodes that call Elixir

%% Ends the program and adds a step, after which another begins.
-spec effect(atom(), [term()], map(), #st{}) -> {term(), #st{}}.
effect(hook, [Container, {token_hook, Hooked, Spec} | _], Node, St) ->
    {Values, St1} = tessera_nx_lower:get_all(tessera_nx_expr:leaves(Container), call(Spec, Hooked, St)),
    {result(Node, Values), St1};
effect(token, [#{hooks := Hooks}], _, #st{handled = Handled} = St) ->
    Called = [Hook || #{name := Name, callback := F} = Hook <- Hooks, F =/= nil orelse lists:member(Name, Handled)],
    {[], lists:foldr(fun(#{name := Name, callback := F, expr := Hooked}, S) -> call({named, Name, F}, Hooked, S) end,
                     St, Called)};
effect(Op, [Container, Spec, Template | _], Node, St) when Op =:= io_call; Op =:= hook ->
    {Values, St1} = tessera_nx_lower:get_all(tessera_nx_expr:leaves(Container), St),
    {Slots, St2} = lists:mapfoldl(fun tessera_nx_lower:slot/2, St1, Values),
    {result(Node, Slots), step({io_call, Spec, templates(Template), names(Slots)}, St2)};
effect(runtime_call, [Container, Fun, Template, Options], Node, St) ->
    {Values, St1} = tessera_nx_lower:get_all(tessera_nx_expr:leaves(Container), St),
    {In, St2} = slots(Values, St1),
    {Out, St3} = new_slots([tessera_nx_tensor:form(T) || T <- tessera_nx_tensor:flatten(Template)], St2),
    Step = {runtime_call, Fun, Options, templates(Container), In, templates(Template), names(Out)},
    {result(Node, Out), step(Step, St3)};
effect(runtime_call, [Container, Fun, Template], Node, St) ->
    effect(runtime_call, [Container, fun(T, []) -> Fun(T) end, Template, []], Node, St);
effect('cond', _, Node, St) ->
    {Predicate, True, False} = tessera_nx_lower:clauses(Node),
    {P, St1} = tessera_nx_lower:get(Predicate, St),
    {PSlot, St2} = tessera_nx_lower:slot(P, tessera_nx_lower:hoist(True ++ False, St1)),
    St3 = mark(False, step_end(St2)),
    {PartTrue, _, St4} = part(True, St3#st.params, St3#st.memo, St3),
    {PartFalse, Forms, St5} = part(False, St3#st.params, St3#st.memo, St4),
    {Out, St6} = new_slots(Forms, St5),
    Step = {'cond', PSlot#slot.name, PartTrue, PartFalse, names(Out)},
    {result(Node, Out), add_step(Step, St6)};
effect(while, [Initial, _, Condition, Body], Node, St) ->
    {Values, St1} = tessera_nx_lower:get_all(tessera_nx_expr:leaves(Initial), St),
    {In, St2} = slots(Values, St1),
    Forms = [form(Value) || Value <- Values],
    {Params, St3} = new_slots(Forms, step_end(St2)),
    Numbered = maps:from_list(lists:zip(tessera_type:dims(length(Params)), Params)),
    {Test, _, St4} = part([Condition], Numbered, #{}, St3),
    {Next, _, St5} = part(tessera_nx_expr:leaves(Body), Numbered, #{}, St4),
    {Out, St6} = new_slots(Forms, St5),
    {result(Node, Out), add_step({while, In, names(Params), Test, Next, names(Out)}, St6)};
effect(optional, [?NODE(_, _, Args), Default, Callback], Node, St) ->
    effect(block, [none, Args, Default, Callback], Node, St);
effect(block, [_, Args, Default, _], Node, St) ->
    {Values, St1} = tessera_nx_lower:get_all([A || A <- Args, tessera_nx_expr:is_node(A)], St),
    {In, St2} = lists:mapfoldl(fun tessera_nx_lower:slot/2, St1, Values),
    Params = maps:from_list(lists:zip(tessera_type:dims(length(In)), In)),
    {Results, St3} = tessera_nx_lower:scope(tessera_nx_expr:leaves(Default), Params, #{}, false, St2),
    {result(Node, Results), St3};
effect(_, _, _, _) -> tessera_nx_lower:cannot_call().

%% The step that calls a function of Elixir with what is in a container.
call(Spec, Container, St) ->
    {Values, St1} = tessera_nx_lower:get_all(tessera_nx_expr:leaves(Container), St),
    {In, St2} = slots(Values, St1),
    step({io_call, Spec, templates(Container), In}, St2).

%% A cond that was made of the further clauses of another one calls Elixir if a branch of it does.
mark([Node], #st{effects = Effects, handled = Handled} = St) ->
    St#st{effects = maps:merge(tessera_nx_expr:effects([Node], Handled), Effects)};
mark(_, St) -> St.

%% Steps of a branch or body, and the forms of their results.
part(Roots, Params, Memo, #st{steps = Steps} = St) ->
    Inner = tessera_nx_lower:begin_program(St#st{steps = []}),
    {Values, St1} = tessera_nx_lower:scope(Roots, Params, Memo, false, Inner),
    {Names, St2} = slots(Values, St1),
    Part = {lists:reverse(end_program(St2)), Names},
    {Part, [form(Value) || Value <- Values], tessera_nx_lower:begin_program(St2#st{steps = Steps})}.

step(Step, St) -> add_step(Step, step_end(St)).

step_end(St) -> tessera_nx_lower:begin_program(St#st{steps = end_program(St)}).

add_step(Step, #st{steps = Steps} = St) -> St#st{steps = [Step | Steps]}.

new_slots(Forms, St) ->
    lists:mapfoldl(fun(Form, #st{next = Next} = S) -> {#slot{name = Next, form = Form}, S#st{next = Next + 1}} end,
                   St, Forms).

names(Slots) -> [Name || #slot{name = Name} <- Slots].

form(#tessera{type = Type, shape = Shape}) -> {Type, Shape}.

result(#{type := {tuple, _}}, Values) -> Values;
result(_, [Value]) -> Value.

templates(Container) ->
    Leaves = [tessera_nx_tensor:template(T) || T <- tessera_nx_tensor:flatten(Container)],
    tessera_nx_tensor:rebuild(Container, Leaves).

%% ---- running

%% Arg gives the tensor of an argument's leaf, Hooks the functions for named io_calls. Donated: a set of
%% positions among the arguments that the plan uses.
-spec run(plan(), fun((non_neg_integer()) -> tessera:tensor()), non_neg_integer(), #{atom() => function()}) ->
          [tessera:tensor()].
run(#single{code = Code, args = Args}, Arg, Donated, _) -> execute(Code, [given(A, Arg) || A <- Args], Donated);
run(#steps{steps = Steps, results = Results, args = Args}, Arg, Donated, Hooks) ->
    Given = [Arg(I) || {arg, I} <- Args],
    Last = steps(Steps, maps:from_list(lists:zip(Args, Given)), Hooks),
    Values = [own(Name, value(Name, Last)) || Name <- Results],
    deallocate(Given, Donated),
    Values.

given({arg, I}, Arg) -> Arg(I);
given({held, Tensor}, _) -> tessera_nx_tensor:local(Tensor).

%% A result has a handle of its own, also where it is the memory of an argument or of a tensor that the
%% function holds.
own({_, _}, #tessera{shape = Shape} = Value) -> tessera_nx_ops:op(undefined, reshape, [Value], Shape);
own(_, Value) -> Value.

%% Arguments that were given away are gone also when no step could use their memory.
deallocate(_, 0) -> ok;
deallocate([#tessera{ref = Ref} | Given], Donated) ->
    _ = Donated band 1 =:= 0 orelse tessera_nif:deallocate(Ref),
    deallocate(Given, Donated bsr 1).

execute(Code, Args, Donated) ->
    case tessera_program:run(Code, Args, Donated) of
        Results when is_list(Results) -> Results;
        Other -> tessera_memory:result(Other, fun() -> tessera_program:run(Code, Args, Donated) end, fun run_failed/1)
    end.

-spec run_failed(map()) -> no_return().
run_failed(Cause) -> tessera_nx_error:from_core(run, Cause).

steps(Steps, Env, Hooks) -> lists:foldl(fun(Step, E) -> step(Step, E, Hooks) end, Env, Steps).

step({run, Code, In, Out}, Env, _) -> put_all(Out, execute(Code, pick(In, Env), 0), Env);
step({io_call, Spec, Template, In}, Env, Hooks) ->
    F = handler(Spec, Hooks),
    _ = F(container(Template, pick(In, Env))),
    Env;
step({runtime_call, Fun, Options, InTemplate, In, OutTemplate, Out}, Env, _) ->
    Result = Fun(container(InTemplate, pick(In, Env)), Options),
    tessera_nx_tensor:compatible(Result, OutTemplate) orelse
        tessera_nx_error:runtime("expected the runtime_call function to match the given output template ~ts, got: ~ts",
                                 [tessera_nx_error:inspect(OutTemplate), tessera_nx_error:inspect(Result)]),
    put_all(Out, [result_value(Leaf) || Leaf <- tessera_nx_tensor:flatten(Result)], Env);
step({'cond', Predicate, True, False, Out}, Env, Hooks) ->
    {Steps, Results} = case truth(value(Predicate, Env)) of
                           true -> True;
                           false -> False
                       end,
    put_all(Out, pick(Results, steps(Steps, Env, Hooks)), Env);
step({while, In, Params, Test, Body, Out}, Env, Hooks) ->
    put_all(Out, loop(pick(In, Env), Params, Test, Body, Env, Hooks), Env).

loop(Values, Params, {TestSteps, [Predicate]} = Test, {Steps, Results} = Body, Outer, Hooks) ->
    Env = steps(TestSteps, put_all(Params, Values, Outer), Hooks),
    case truth(value(Predicate, Env)) of
        true -> loop(pick(Results, steps(Steps, Env, Hooks)), Params, Test, Body, Outer, Hooks);
        false -> Values
    end.

truth(#tessera{ref = Ref}) ->
    case tessera_nif:to_list(Ref) of
        nan -> true;
        Number -> Number =/= 0 andalso Number /= 0
    end.

pick(Names, Env) -> [value(Name, Env) || Name <- Names].

value({held, Tensor}, _) -> tessera_nx_tensor:local(Tensor);
value(Name, Env) -> maps:get(Name, Env).

put_all(Names, Values, Env) -> maps:merge(Env, maps:from_list(lists:zip(Names, Values))).

handler({fn, F}, _) -> F;
handler({named, Name, Default}, Hooks) ->
    case Hooks of
        #{Name := F} -> F;
        _ -> Default
    end.

%% Callbacks get tensors in the VM's own memory.
container(Template, Values) ->
    Leaves = [T#{data := #{'__struct__' => ?BINARY, state => to_binary(Value)}}
              || {T, Value} <- lists:zip(tessera_nx_tensor:flatten(Template), Values)],
    tessera_nx_tensor:rebuild(Template, Leaves).

to_binary(#tessera{ref = Ref}) ->
    case tessera_nif:to_binary(Ref, -1) of
        Binary when is_binary(Binary) -> Binary;
        {error, Cause} -> run_failed(Cause)
    end.

result_value(Number) when is_number(Number) -> tessera:tensor(Number);
result_value(Tensor) -> tessera_nx_tensor:value(Tensor).

%% ---- the compiled parts

-spec codes(plan()) -> [tessera_program:code()].
codes(#single{code = Code}) -> [Code];
codes(#steps{steps = Steps}) -> step_codes(Steps).

step_codes(Steps) -> lists:append([step_code(Step) || Step <- Steps]).

step_code({run, Code, _, _}) -> [Code];
step_code({'cond', _, {True, _}, {False, _}, _}) -> step_codes(True) ++ step_codes(False);
step_code({while, _, _, {Test, _}, {Body, _}, _}) -> step_codes(Test) ++ step_codes(Body);
step_code(_) -> [].

%% The plan as a term for another time and place, with the bytes of the tensors that the function holds.
-spec pack(plan()) -> term().
pack(Plan) -> convert(fun pack_part/1, Plan).

pack_part({held, #tessera{type = Type, shape = Shape} = Value}) -> {held, {Type, Shape, to_binary(Value)}};
pack_part(Code) -> tessera_program:portable(Code).

-spec unpack(term()) -> plan().
unpack(Plan) -> convert(fun unpack_part/1, Plan).

unpack_part({held, {Type, Shape, Binary}}) -> {held, check(tessera_nif:from_binary(Binary, Type, Shape, true))};
unpack_part(Code) -> check(tessera_program:ready(Code)).

convert(F, #single{code = Code, args = Args} = Plan) -> Plan#single{code = F(Code), args = sources(F, Args)};
convert(F, #steps{steps = Steps, results = Results} = Plan) ->
    Plan#steps{steps = convert_steps(F, Steps), results = sources(F, Results)}.

convert_steps(F, Steps) -> [convert_step(F, Step) || Step <- Steps].

convert_step(F, {run, Code, In, Out}) -> {run, F(Code), sources(F, In), Out};
convert_step(F, {io_call, Spec, Template, In}) -> {io_call, Spec, Template, sources(F, In)};
convert_step(F, {runtime_call, Fun, Options, InTemplate, In, OutTemplate, Out}) ->
    {runtime_call, Fun, Options, InTemplate, sources(F, In), OutTemplate, Out};
convert_step(F, {'cond', Predicate, True, False, Out}) ->
    [From] = sources(F, [Predicate]),
    {'cond', From, convert_part(F, True), convert_part(F, False), Out};
convert_step(F, {while, In, Params, Test, Body, Out}) ->
    {while, sources(F, In), Params, convert_part(F, Test), convert_part(F, Body), Out}.

convert_part(F, {Steps, Results}) -> {convert_steps(F, Steps), sources(F, Results)}.

sources(F, Sources) -> [case Source of
                            {held, _} -> F(Source);
                            _ -> Source
                        end || Source <- Sources].
