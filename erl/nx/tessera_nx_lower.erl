%% @private Nodes of Nx expressions as ops of a program.
%%
%% Every node is lowered once per scope. A cond or while without callbacks
%% becomes one op with regions; what calls Elixir ends the program and goes to
%% tessera_nx_plan, which makes steps of a run.
-module(tessera_nx_lower).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-include("tessera_nx_lower.hrl").
-export([get/2, get_all/2, scope/5, closed/4, hoist/2, clauses/1, slot/2, begin_program/1, cannot_call/0]).


%% ---- values

%% The value of a node in the current program.
-spec get(map(), #st{}) -> {tessera:tensor(), #st{}}.
get(Node, St) ->
    {Value, St1} = lower(Node, St),
    use(Value, St1).

%% The values of nodes; a tuple's node gives several.
-spec get_all([map()], #st{}) -> {[tessera:tensor()], #st{}}.
get_all(Nodes, St) ->
    {Values, St1} = lists:mapfoldl(fun lower/2, St, Nodes),
    lists:mapfoldl(fun use/2, St1, lists:flatten(Values)).

%% A value for ops of the current program: what is not from there comes in as a parameter.
-spec use(tessera:tensor() | #slot{}, #st{}) -> {tessera:tensor(), #st{}}.
use(#tessera{ref = [Program | _]} = Value, #st{program = Program} = St) -> {Value, St};
use(#tessera{} = Foreign, St) ->
    {Slot, St1} = slot(Foreign, St),
    use(Slot, St1);
use(#slot{name = Name, form = {Type, Shape}}, #st{program = Program, imports = Imports} = St) ->
    case Imports of
        #{{Program, Name} := Value} -> {Value, St};
        _ ->
            Value = check(parameter, tessera_nif:param(Program, Type, Shape)),
            Names = maps:get(Program, Imports, []),
            {Value, St#st{imports = Imports#{{Program, Name} => Value, Program => [Name | Names]}}}
    end.

%% The slot in which a value is kept when its program has run.
-spec slot(tessera:tensor() | #slot{}, #st{}) -> {#slot{}, #st{}}.
slot(#slot{} = Slot, St) -> {Slot, St};
slot(#tessera{ref = [Program | Id], type = Type, shape = Shape} = Value, #st{exports = Exports, next = Next} = St) ->
    case Exports of
        #{{Program, Id} := Slot} -> {Slot, St};
        _ ->
            Slot = #slot{name = Next, form = {Type, Shape}},
            Of = maps:get(Program, Exports, []),
            {Slot, St#st{next = Next + 1, exports = Exports#{{Program, Id} => Slot, Program => [{Next, Value} | Of]}}}
    end.

-spec begin_program(#st{}) -> #st{}.
begin_program(St) -> St#st{program = check(program, tessera_nif:builder_new([]))}.

check(Op, Result) -> tessera_nx_error:check(Op, Result).

%% ---- scopes

%% The values of a scope's results, with parameters and with what is already known in it.
-spec scope([map()], #{non_neg_integer() => term()}, #{term() => term()}, boolean(), #st{}) ->
          {[tessera:tensor()], #st{}}.
scope(Roots, Params, Memo, InRegion, #st{params = P, memo = M, here = H, in_region = R} = St) ->
    Here = tessera_nx_expr:scope(Roots),
    Inner = St#st{params = Params, memo = Memo, here = Here, in_region = InRegion},
    {Values, St1} = get_all(Roots, callbacks_first(Here, Inner)),
    {Values, St1#st{params = P, memo = M, here = H, in_region = R}}.

%% The values of a loop or block in a region that has its operands as parameters. Undefined when there is more
%% inside than the operands: tensors that the function holds, or callbacks.
-spec closed(map(), [tessera:tensor()], tessera_nif:builder(), [atom()]) -> [tessera:tensor()] | undefined.
closed(Node, Params, Program, Handled) ->
    Operands = [Id || ?NODE(Id, _, _) <- tessera_nx_expr:operands(Node)],
    case map_size(tessera_nx_expr:effects(lists:append(tessera_nx_expr:bodies(Node)), Handled)) of
        0 ->
            Memo = maps:from_list(lists:zip(Operands, Params)),
            case get_all([Node], #st{program = Program, memo = Memo, in_region = true, handled = Handled}) of
                {Values, #st{held = Held}} when map_size(Held) =:= 0 -> Values;
                _ -> undefined
            end;
        _ -> undefined
    end.

%% Callbacks run in the order in which they were written: ids are references made in that order.
callbacks_first(_, #st{effects = Effects} = St) when map_size(Effects) =:= 0 -> St;
callbacks_first(Here, #st{effects = Effects} = St) ->
    lists:foldl(fun({_, Node}, S) -> {_, S1} = lower(Node, S), S1 end, St,
                lists:sort(maps:to_list(maps:with(maps:keys(Effects), Here)))).

%% ---- nodes

lower(?NODE(Id, Op, Args) = Node, #st{memo = Memo, effects = Effects} = St) ->
    case Memo of
        #{Id := Value} -> {Value, St};
        _ ->
            {Value, St1} = case Effects of
                               #{Id := _} when St#st.in_region -> cannot_call();
                               #{Id := _} -> tessera_nx_plan:effect(Op, Args, Node, St);
                               _ -> node(Op, Args, Node, St)
                           end,
            {Value, St1#st{memo = (St1#st.memo)#{Id => Value}}}
    end;
lower(Number, St) -> {tessera_nx_ops:constant(St#st.program, {tessera_tree:number_type(Number), {}}, Number), St}.

-spec cannot_call() -> no_return().
cannot_call() -> tessera_nx_error:argument("Tessera cannot call back from the function of a reduction", []).

node(parameter, [Position], _, #st{params = Params} = St) -> {maps:get(Position, Params), St};
node(constant, [Number], Node, St) ->
    {tessera_nx_ops:constant(St#st.program, tessera_nx_tensor:form(Node), Number), St};
node(tensor, [Tensor], _, #st{holds = false} = St) ->
    {check(tensor, tessera_nif:value(St#st.program, tessera_nx_tensor:value(Tensor))), St};
node(tensor, [Tensor], _, St) -> held(Tensor, tessera_nx_tensor:form(Tensor), St);
node(elem, [Tuple, Index], _, St) ->
    {Values, St1} = lower(Tuple, St),
    {lists:nth(Index + 1, lists:flatten([Values])), St1};
node(Op, [Container | _], Node, St) when Op =:= metadata; Op =:= io_call; Op =:= hook ->
    {Values, St1} = lists:mapfoldl(fun lower/2, St, tessera_nx_expr:leaves(Container)),
    {like(Node, Values), St1};
node(token, _, _, St) -> {[], St};
node(attach_token, [Token, Passed], _, St) ->
    {_, St1} = lower(Token, St),
    lower(Passed, St1);
node(optional, [?NODE(_, _, Args), Default, _], Node, St) -> lower_block(none, Args, Default, Node, St);
node(Op, _, _, _) when Op =:= window_reduce ->
    tessera_nx_error:no_op(Op);
node('cond', _, Node, St) -> lower_cond(Node, St);
node(while, [Initial, _, Condition, Body], Node, St) -> lower_while(Initial, Condition, Body, Node, St);
node(block, [Struct, Args, Default, _], Node, St) -> lower_block(Struct, Args, Default, Node, St);
node(reduce, [A, Initial, Options, F], Node, St) ->
    {ValueA, St1} = get(A, St),
    {ValueI, St2} = get(Initial, St1),
    {Type, _} = Form = tessera_nx_tensor:form(Node),
    {Region, St3} = combiner(F, Type, St2),
    {tessera_nx_ops:apply(St3#st.program, reduce, Form, [ValueA, ValueI, Options, Region]), St3};
node(Op, Args, Node, St) ->
    {Values, St1} = lists:mapfoldl(fun argument/2, St, Args),
    {tessera_nx_ops:apply(St1#st.program, Op, tessera_nx_tensor:form(Node), Values), St1}.

%% A tensor that the function holds is a hidden argument, one for all tensors of the same form and bytes: so
%% another value needs no other program.
held(Tensor, Form, #st{held = Held} = St) ->
    Known = maps:get(Form, Held, []),
    Bytes = maps:get(state, maps:get(data, Tensor), none),
    case lists:keyfind(Bytes, 1, Known) of
        {_, Slot} when Bytes =/= none -> {Slot, St};
        _ ->
            Slot = #slot{name = {held, tessera_nx_tensor:value(Tensor)}, form = Form},
            {Slot, St#st{held = Held#{Form => [{Bytes, Slot} | Known]}}}
    end.

argument(?NODE(_, _, _) = Node, St) -> get(Node, St);
argument(List, St) when is_list(List) -> lists:mapfoldl(fun argument/2, St, List);
argument(Other, St) -> {Other, St}.

%% The values of a tuple are a list.
like(#{type := {tuple, _}}, Values) -> lists:flatten(Values);
like(_, [Value]) -> Value.

%% ---- cond

lower_cond(Node, St) ->
    {Predicate, True, False} = clauses(Node),
    {P, St1} = get(Predicate, St),
    St2 = hoist(True ++ False, St1),
    case True of
        [] -> {[], St2};
        _ ->
            {RegionTrue, St3} = branch(True, undefined, St2),
            {RegionFalse, St4} = branch(False, RegionTrue, St3),
            Values = check('cond', tessera_nif:control(St4#st.program, 'cond', RegionTrue, RegionFalse, [P])),
            {like(Node, Values), St4}
    end.

%% The first predicate, what it guards, and the rest, which is another cond where there are more clauses.
-spec clauses(map()) -> {map(), [map()], [map()]}.
clauses(?NODE(_, _, [[{Predicate, Body}], Last])) ->
    {Predicate, tessera_nx_expr:leaves(Body), tessera_nx_expr:leaves(Last)};
clauses(#{data := Data} = Node) ->
    #{args := [[{Predicate, Body} | Clauses], Last]} = Data,
    Rest = Node#{data := Data#{id := make_ref(), args := [Clauses, Last]}},
    {Predicate, tessera_nx_expr:leaves(Body), [Rest]}.

branch(Roots, Like, #st{program = Program, params = Params, memo = Memo} = St) ->
    {Region, []} = check('cond', tessera_nif:region_open(Program, [], Like)),
    {Values, St1} = scope(Roots, Params, Memo, true, St),
    ok = check('cond', tessera_nif:region_finish(Program, Values)),
    {Region, St1}.

%% Computes what these nodes use of the current scope.
-spec hoist([map()], #st{}) -> #st{}.
hoist(Roots, St) ->
    {_, St1} = hoist(Roots, #{}, St),
    St1.

hoist(Nodes, Seen, St) -> lists:foldl(fun hoist_node/2, {Seen, St}, Nodes).

hoist_node(?NODE(Id, Op, _) = Node, {Seen, #st{memo = Memo, here = Here} = St} = Acc) ->
    case Seen of
        #{Id := _} -> Acc;
        _ when is_map_key(Id, Memo) -> Acc;
        _ when is_map_key(Id, Here) ->
            {_, St1} = lower(Node, St),
            {Seen#{Id => true}, St1};
        _ ->
            Inner = case Op of
                        'cond' -> lists:append(tessera_nx_expr:bodies(Node));
                        _ -> []
                    end,
            hoist(tessera_nx_expr:operands(Node) ++ Inner, Seen#{Id => true}, St)
    end;
hoist_node(_, Acc) -> Acc.

%% ---- while

lower_while(Initial, Condition, Body, Node, St) ->
    {Values, #st{program = Program} = St1} = get_all(tessera_nx_expr:leaves(Initial), St),
    Forms = [{Type, Shape} || #tessera{type = Type, shape = Shape} <- Values],
    {Test, TestParams} = check(while, tessera_nif:region_open(Program, Forms, undefined)),
    {[Predicate], St2} = scope([Condition], numbered(TestParams), #{}, true, St1),
    ok = check(while, tessera_nif:region_finish(Program, [truth(Program, Predicate)])),
    {Step, StepParams} = check(while, tessera_nif:region_open(Program, Forms, Test)),
    {Next, St3} = scope(tessera_nx_expr:leaves(Body), numbered(StepParams), #{}, true, St2),
    Conformed = lists:zipwith(fun(Form, V) -> tessera_nx_ops:conform(Program, Form, V) end, Forms, Next),
    ok = check(while, tessera_nif:region_finish(Program, Conformed)),
    {like(Node, check(while, tessera_nif:control(Program, while, Test, Step, Values))), St3}.

numbered(Values) -> maps:from_list(lists:zip(tessera_type:dims(length(Values)), Values)).

truth(_, #tessera{type = u8} = Value) -> Value;
truth(Program, Value) -> tessera_nx_ops:op(Program, not_equal, [Value, 0], []).

%% ---- functions of reductions

%% The core passes what was accumulated first, Nx the element.
combiner(?NODE(_, 'fun', [_, Body, _]), Type, #st{program = Program} = St) ->
    {Region, [Accumulated, Element]} =
        check(reduce, tessera_nif:region_open(Program, [{Type, {}}, {Type, {}}], undefined)),
    {[Value], St1} = scope([Body], #{0 => Element, 1 => Accumulated}, #{}, true, St),
    ok = check(reduce, tessera_nif:region_finish(Program, [tessera_nx_ops:conform(Program, {Type, {}}, Value)])),
    {Region, St1}.

%% ---- blocks

lower_block(Struct, Args, Default, Node, St) ->
    {Values, St1} = get_all([A || A <- Args, tessera_nx_expr:is_node(A)], St),
    case native(Struct, Values) of
        {Op, OpArgs} -> {tessera_nx_ops:apply(St1#st.program, Op, tessera_nx_tensor:form(Node), OpArgs), St1};
        none ->
            {Results, St2} = scope(tessera_nx_expr:leaves(Default), numbered(Values), #{}, St1#st.in_region, St1),
            {like(Node, Results), St2}
    end.

%% Blocks that are an op of the core.
native(#{'__struct__' := 'Elixir.Nx.Block.Take', axis := Axis}, [A, Indices]) -> {take, [A, Indices, Axis]};
native(#{'__struct__' := 'Elixir.Nx.Block.TakeAlongAxis', axis := Axis}, [A, Indices]) -> {take_along_axis, [A, Indices, Axis]};
native(#{'__struct__' := 'Elixir.Nx.Block.CumulativeSum'} = B, [A]) -> cumulative(cumulative_sum, B, A);
native(#{'__struct__' := 'Elixir.Nx.Block.CumulativeProduct'} = B, [A]) -> cumulative(cumulative_product, B, A);
native(#{'__struct__' := 'Elixir.Nx.Block.CumulativeMin'} = B, [A]) -> cumulative(cumulative_min, B, A);
native(#{'__struct__' := 'Elixir.Nx.Block.CumulativeMax'} = B, [A]) -> cumulative(cumulative_max, B, A);
native(_, _) -> none.

cumulative(Op, #{axis := Axis, reverse := Reverse}, A) -> {Op, [A, Axis, Reverse]}.
