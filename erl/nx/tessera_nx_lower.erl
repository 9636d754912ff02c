%% @private Nodes of Nx expressions as ops of a program.
%%
%% Every node is lowered once per scope. A cond or while becomes one op with
%% regions. A node that calls Elixir becomes an op callback, in the order of the source; tessera_nx_plan answers them
%% during a run.
-module(tessera_nx_lower).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-include("tessera_nx_lower.hrl").
-export([take/2, scope/4, closed/5]).

%% Every op has a result: that of a callback without a value only marks its end.
-define(DONE, [{u8, {}}]).

%% ---- values

%% The value of a node in the current program.
get(Node, St) ->
    {Value, St1} = lower(Node, St),
    use(Value, St1).

%% The values of nodes; a tuple's node gives several.
get_all(Nodes, St) ->
    {Values, St1} = lists:mapfoldl(fun lower/2, St, Nodes),
    lists:mapfoldl(fun use/2, St1, lists:flatten(Values)).

%% A value for the program's ops. An input becomes a parameter on first use.
use(#tessera{} = Value, St) -> {Value, St};
use(#input{name = Name, form = {Type, Shape}}, #st{program = Program, imports = Imports, inputs = Names} = St) ->
    case Imports of
        #{Name := Value} -> {Value, St};
        _ ->
            Value = check(parameter, tessera_nif:param(Program, Type, Shape)),
            {Value, St#st{imports = Imports#{Name => Value}, inputs = [Name | Names]}}
    end.

%% Makes the inputs parameters in this order.
-spec take([#input{}], #st{}) -> #st{}.
take(Inputs, St) ->
    lists:foldl(fun(Input, S) ->
                        {_, S1} = use(Input, S),
                        S1
                end, St, Inputs).

check(Op, Result) -> tessera_nx_error:check(Op, Result).

%% ---- scopes

%% The values of a scope's results, given its parameters and the values that are known
%% already.
-spec scope([map()], #{non_neg_integer() => term()}, #{term() => term()}, #st{}) -> {[tessera:tensor()], #st{}}.
scope(Roots, Params, Memo, #st{params = P, memo = M, here = H} = St) ->
    Here = tessera_nx_expr:scope(Roots),
    {Values, St1} = get_all(Roots, callbacks_first(Here, St#st{params = Params, memo = Memo, here = Here})),
    {Values, St1#st{params = P, memo = M, here = H}}.

%% Adds a loop or block to a region whose parameters are its operands. Undefined if its body uses more:
%% tensors in the function's environment, or callbacks.
-spec closed(map(), [tessera:tensor()], tessera_nif:builder(), [atom()], atom()) -> [tessera:tensor()] | undefined.
closed(Node, Params, Program, Handled, Client) ->
    Operands = [Id || ?NODE(Id, _, _) <- tessera_nx_expr:operands(Node)],
    case map_size(tessera_nx_expr:effects(lists:append(tessera_nx_expr:bodies(Node)), Handled)) of
        0 ->
            Memo = maps:from_list(lists:zip(Operands, Params)),
            case get_all([Node], #st{program = Program, memo = Memo, handled = Handled, client = Client}) of
                {Values, #st{held = Held}} when map_size(Held) =:= 0 -> Values;
                _ -> undefined
            end;
        _ -> undefined
    end.

%% Lowers callbacks in order of creation, which is the order of their ids, since these are
%% references.
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
                               #{Id := _} when St#st.in_function; Op =:= 'fun' -> cannot_call();
                               #{Id := _} -> effect(Op, Args, Node, St);
                               _ -> node(Op, Args, Node, St)
                           end,
            ok = tessera_places:node(St1#st.program, Id),
            {Value, St1#st{memo = (St1#st.memo)#{Id => Value}}}
    end;
lower(Number, St) -> {tessera_nx_ops:constant(St#st.program, {tessera_tree:number_type(Number), {}}, Number), St}.

-spec cannot_call() -> no_return().
cannot_call() -> tessera_nx_error:argument("Tessera cannot call back from the function of a reduction", []).

node(parameter, [Position], _, #st{params = Params} = St) -> {maps:get(Position, Params), St};
node(constant, [Number], Node, St) ->
    {tessera_nx_ops:constant(St#st.program, tessera_nx_tensor:form(Node), Number), St};
node(tensor, [Tensor], _, #st{holds = false} = St) ->
    {check(tensor, tessera_nif:value(St#st.program, tessera_nx_tensor:readable(tessera_nx_tensor:value(Tensor)))), St};
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
node('cond', [_, Last], Node, St) ->
    case St#st.factors andalso tessera_nx_known:choice(Node) of
        None when is_atom(None) -> lower_cond(Node, St);
        {svd, Matrix, Full} ->
            {A, St1} = get(Matrix, St),
            Results = tessera_nx_factors:results(St1#st.program, svd, [A], Full),
            {like(Node, conform(St1#st.program, tessera_nx_expr:leaves(Last), Results)), St1}
    end;
node(while, [Initial, _, Condition, Body], Node, St) ->
    case St#st.factors andalso tessera_nx_known:loop(Node) of
        None when is_atom(None) -> lower_while(Initial, Condition, Body, Node, St);
        Factors ->
            {Values, St1} = get_all(tessera_nx_expr:leaves(Initial), St),
            {like(Node, tessera_nx_known:lower(St1#st.program, Factors, Values)), St1}
    end;
node(block, [Struct, Args, Default, _], Node, St) -> lower_block(Struct, Args, Default, Node, St);
node(reduce, [A, Initial, Options, F], Node, St) ->
    {ValueA, St1} = get(A, St),
    {ValueI, St2} = get(Initial, St1),
    {Type, _} = Form = tessera_nx_tensor:form(Node),
    {Region, St3} = combiner(F, Type, St2),
    {tessera_nx_ops:apply(St3#st.program, reduce, Form, [ValueA, ValueI, Options, Region]), St3};
node(window_reduce, [A, Initial, Sizes, Options, F], Node, St) ->
    {ValueA, St1} = get(A, St),
    {ValueI, St2} = get(Initial, St1),
    {Type, _} = Form = tessera_nx_tensor:form(Node),
    {Region, St3} = combiner(F, Type, St2),
    {tessera_nx_ops:apply(St3#st.program, window_reduce, Form, [ValueA, ValueI, Sizes, Options, Region]), St3};
node(Op, Args, Node, St) ->
    {Values, St1} = lists:mapfoldl(fun argument/2, St, Args),
    {tessera_nx_ops:apply(St1#st.program, Op, tessera_nx_tensor:form(Node), Values), St1}.

%% A tensor in the function's environment is a hidden argument, one for all tensors of the same form and
%% bytes: so another value needs no other program.
held(Tensor, Form, #st{held = Held} = St) ->
    Known = maps:get(Form, Held, []),
    Bytes = maps:get(state, maps:get(data, Tensor), none),
    case lists:keyfind(Bytes, 1, Known) of
        {_, Input} when Bytes =/= none -> {Input, St};
        _ ->
            Input = #input{name = {held, tessera_nx_tensor:value(Tensor)}, form = Form},
            {Input, St#st{held = Held#{Form => [{Bytes, Input} | Known]}}}
    end.

argument(?NODE(_, _, _) = Node, St) -> get(Node, St);
argument(List, St) when is_list(List) -> lists:mapfoldl(fun argument/2, St, List);
argument(Other, St) -> {Other, St}.

%% The values of a tuple are a list.
like(#{type := {tuple, _}}, Values) -> lists:flatten(Values);
like(_, [Value]) -> Value.

%% ---- callbacks

%% Nodes that call Elixir themselves, or in a region.
effect(Op, [Container, {token_hook, Hooked, Spec} | _], Node, St) when Op =:= io_call; Op =:= hook ->
    {Values, St1} = get_all(tessera_nx_expr:leaves(Container), io_call(Spec, Hooked, St)),
    {like(Node, Values), St1};
effect(token, [#{hooks := Hooks}], _, #st{handled = Handled} = St) ->
    Called = [Hook || #{name := Name, callback := F} = Hook <- Hooks, F =/= nil orelse lists:member(Name, Handled)],
    {[], lists:foldr(fun(#{name := Name, callback := F, expr := Hooked}, S) -> io_call({named, Name, F}, Hooked, S) end,
                     St, Called)};
effect(Op, [Container, Spec, Template | _], Node, St) when Op =:= io_call; Op =:= hook ->
    {Values, St1} = get_all(tessera_nx_expr:leaves(Container), St),
    {_, St2} = callback({io_call, Spec, templates(Template)}, ?DONE, Values, St1),
    {like(Node, Values), St2};
effect(runtime_call, [Container, Fun, Template, Options], Node, St) ->
    {Values, St1} = get_all(tessera_nx_expr:leaves(Container), St),
    Forms = [tessera_nx_tensor:form(T) || T <- tessera_nx_tensor:flatten(Template)],
    {Results, St2} = callback({runtime_call, Fun, Options, templates(Container), templates(Template)}, Forms, Values, St1),
    {like(Node, Results), St2};
effect(runtime_call, [Container, Fun, Template], Node, St) ->
    effect(runtime_call, [Container, fun(T, []) -> Fun(T) end, Template, []], Node, St);
effect(Op, Args, Node, St) -> node(Op, Args, Node, St).

io_call(Spec, Container, St) ->
    {Values, St1} = get_all(tessera_nx_expr:leaves(Container), St),
    {_, St2} = callback({io_call, Spec, templates(Container)}, ?DONE, Values, St1),
    St2.

callback(Call, Forms, Values, #st{program = Program, calls = Calls} = St) ->
    {check(callback, tessera_nif:callback(Program, length(Calls), Forms, Values)), St#st{calls = [Call | Calls]}}.

templates(Container) ->
    Leaves = [tessera_nx_tensor:template(T) || T <- tessera_nx_tensor:flatten(Container)],
    tessera_nx_tensor:rebuild(Container, Leaves).

%% ---- cond

lower_cond(Node, St) ->
    {Predicate, True, False} = clauses(Node),
    {P, St1} = get(Predicate, St),
    St2 = hoist_common(tessera_nx_expr:bodies(Node), hoist(True ++ False, St1)),
    case True of
        [] -> {[], St2};
        _ ->
            {RegionTrue, St3} = branch(True, undefined, St2),
            {RegionFalse, St4} = branch(False, RegionTrue, St3),
            Values = check('cond', tessera_nif:control(St4#st.program, 'cond', RegionTrue, RegionFalse, [P])),
            {like(Node, Values), St4}
    end.

%% The first predicate, the body that it guards, and the other clauses, as another cond if there are
%% several.
clauses(?NODE(_, _, [[{Predicate, Body}], Last])) ->
    {Predicate, tessera_nx_expr:leaves(Body), tessera_nx_expr:leaves(Last)};
clauses(#{data := Data} = Node) ->
    #{args := [[{Predicate, Body} | Clauses], Last]} = Data,
    Rest = Node#{data := Data#{id := make_ref(), args := [Clauses, Last]}},
    {Predicate, tessera_nx_expr:leaves(Body), [Rest]}.

branch(Roots, Like, #st{program = Program, params = Params, memo = Memo} = St) ->
    {Region, []} = check('cond', tessera_nif:region_open(Program, [], Like)),
    {Values, St1} = scope(Roots, Params, Memo, St),
    ok = check('cond', tessera_nif:region_finish(Program, Values)),
    {Region, St1}.

%% Computes the values of the current scope that these nodes use.
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

%% Computes the conds and loops that every branch runs. In each branch they would be lowered again. Gradients make chains of
%% conds: each uses the previous one in all branches, and would double with every cond.
hoist_common(Bodies, #st{effects = Effects} = St) when map_size(Effects) =:= 0 ->
    [First | Others] = [certain(Body, St) || Body <- Bodies],
    Common = lists:foldl(fun(Nodes, Acc) -> maps:with(maps:keys(Nodes), Acc) end, First, Others),
    lists:foldl(fun({_, Node}, S) -> {_, S1} = lower(Node, S), S1 end, St, lists:sort(maps:to_list(Common)));
hoist_common(_, St) -> St.

%% The conds and loops that these nodes run in all branches, without those of the current scope.
certain(Roots, #st{memo = Memo}) ->
    maps:filter(fun(_, ?NODE(_, Op, _)) -> Op =:= 'cond' orelse Op =:= while end, reached(Roots, Memo, #{})).

reached([?NODE(Id, _, _) = Node | Nodes], Memo, Seen) when not is_map_key(Id, Seen), not is_map_key(Id, Memo) ->
    reached(Nodes, Memo, reached(tessera_nx_expr:operands(Node), Memo, Seen#{Id => Node}));
reached([_ | Nodes], Memo, Seen) -> reached(Nodes, Memo, Seen);
reached([], _, Seen) -> Seen.

%% ---- while

lower_while(Initial, Condition, Body, Node, St) ->
    {Values, #st{program = Program} = St1} = get_all(tessera_nx_expr:leaves(Initial), St),
    Forms = [{Type, Shape} || #tessera{type = Type, shape = Shape} <- Values],
    {Test, TestParams} = check(while, tessera_nif:region_open(Program, Forms, undefined)),
    {[Predicate], St2} = scope([Condition], numbered(TestParams), #{}, St1),
    ok = check(while, tessera_nif:region_finish(Program, [truth(Program, Predicate)])),
    {Step, StepParams} = check(while, tessera_nif:region_open(Program, Forms, Test)),
    {Next, St3} = scope(tessera_nx_expr:leaves(Body), numbered(StepParams), #{}, St2),
    Conformed = lists:zipwith(fun(Form, V) -> tessera_nx_ops:conform(Program, Form, V) end, Forms, Next),
    ok = check(while, tessera_nif:region_finish(Program, Conformed)),
    {like(Node, check(while, tessera_nif:control(Program, while, Test, Step, Values))), St3}.

numbered(Values) -> maps:from_list(lists:zip(tessera_type:dims(length(Values)), Values)).

truth(_, #tessera{type = u8} = Value) -> Value;
truth(Program, Value) -> tessera_nx_ops:op(Program, not_equal, [Value, 0], []).

%% ---- functions of reductions

%% The core passes the accumulator first, Nx the element.
combiner(?NODE(_, 'fun', [_, Body, _]), Type, #st{program = Program, in_function = Outside} = St) ->
    {Region, [Accumulated, Element]} =
        check(reduce, tessera_nif:region_open(Program, [{Type, {}}, {Type, {}}], undefined)),
    {[Value], St1} = scope([Body], #{0 => Element, 1 => Accumulated}, #{}, St#st{in_function = true}),
    ok = check(reduce, tessera_nif:region_finish(Program, [tessera_nx_ops:conform(Program, {Type, {}}, Value)])),
    {Region, St1#st{in_function = Outside}}.

%% ---- blocks

lower_block(Struct, Args, Default, Node, St) ->
    Inputs = [A || A <- Args, tessera_nx_expr:is_node(A)],
    {Values, St1} = get_all(Inputs, St),
    case tessera_nx_custom:lower(Struct, Default, Inputs, Values, St1#st.program, St1#st.client) of
        skip -> lower_native(Struct, Values, Default, Node, St1);
        Results -> {like(Node, Results), St1}
    end.

lower_native(#{'__struct__' := 'Elixir.Tessera.MLIRModule', program := Module}, Values, Default, Node, #st{program = Program} = St) ->
    Results = tessera_stablehlo:inline(Program, Module, Values),
    {like(Node, conform(Program, tessera_nx_expr:leaves(Default), Results)), St};
lower_native(Struct, Values, Default, Node, #st{program = Program} = St1) ->
    case native(Struct, Values) of
        {results, Op, Operands, Attrs} ->
            Results = tessera_nx_factors:results(Program, Op, Operands, Attrs),
            {like(Node, conform(Program, tessera_nx_expr:leaves(Default), Results)), St1};
        {Op, OpArgs} -> {tessera_nx_ops:apply(Program, Op, tessera_nx_tensor:form(Node), OpArgs), St1};
        none ->
            {Results, St2} = scope(tessera_nx_expr:leaves(Default), numbered(Values), #{}, St1),
            {like(Node, Results), St2}
    end.

%% Results in the forms of Nx's own.
conform(Program, Leaves, Results) ->
    [tessera_nx_ops:conform(Program, tessera_nx_tensor:form(Leaf), Result) || {Leaf, Result} <- lists:zip(Leaves, Results)].

%% Blocks that are an op of the core, by Nx's arguments or, when it has several results, by the core's.
native(#{'__struct__' := 'Elixir.Nx.Block.Take', axis := Axis}, [A, Indices]) -> {take, [A, Indices, Axis]};
native(#{'__struct__' := 'Elixir.Nx.Block.TakeAlongAxis', axis := Axis}, [A, Indices]) -> {take_along_axis, [A, Indices, Axis]};
native(#{'__struct__' := 'Elixir.Nx.Block.CumulativeSum'} = B, [A]) -> cumulative(cumulative_sum, B, A);
native(#{'__struct__' := 'Elixir.Nx.Block.CumulativeProduct'} = B, [A]) -> cumulative(cumulative_product, B, A);
native(#{'__struct__' := 'Elixir.Nx.Block.CumulativeMin'} = B, [A]) -> cumulative(cumulative_min, B, A);
native(#{'__struct__' := 'Elixir.Nx.Block.CumulativeMax'} = B, [A]) -> cumulative(cumulative_max, B, A);
native(#{'__struct__' := 'Elixir.Nx.Block.TopK', k := K}, [A]) -> {results, top_k, [A], K};
native(#{'__struct__' := 'Elixir.Nx.Block.LinAlg.Cholesky'}, [A]) -> {cholesky, [A]};
native(#{'__struct__' := 'Elixir.Nx.Block.LinAlg.LU'}, [A]) -> {results, lu, [A], []};
native(#{'__struct__' := 'Elixir.Nx.Block.LinAlg.QR', mode := Mode}, [A]) -> {results, qr, [A], Mode =:= complete};
native(#{'__struct__' := 'Elixir.Nx.Block.LinAlg.Eigh'}, [A]) -> {results, eigh, [A], []};
native(#{'__struct__' := 'Elixir.Nx.Block.LinAlg.SVD', 'full_matrices?' := Full}, [A]) -> {results, svd, [A], Full};
native(#{'__struct__' := 'Elixir.Nx.Block.LinAlg.Solve'}, [A, B]) -> {solve, [A, B]};
native(#{'__struct__' := 'Elixir.Nx.Block.LinAlg.Determinant'}, [#tessera{shape = Shape} = A])
  when element(tuple_size(Shape), Shape) > 3 -> % what Nx writes for smaller ones becomes one kernel
    {determinant, [A]};
native(#{'__struct__' := 'Elixir.Nx.Block.FFT2', lengths := Lengths, axes := Axes}, [A]) -> {fft2, [A, Lengths, Axes]};
native(#{'__struct__' := 'Elixir.Nx.Block.IFFT2', lengths := Lengths, axes := Axes}, [A]) -> {ifft2, [A, Lengths, Axes]};
native(#{'__struct__' := 'Elixir.Nx.Block.RFFT', length := Length, axis := Axis}, [A]) -> {rfft, [A, Length, Axis]};
native(#{'__struct__' := 'Elixir.Nx.Block.IRFFT', length := Length, axis := Axis}, [A]) -> {irfft, [A, Length, Axis]};
native(_, _) -> none.

cumulative(Op, #{axis := Axis, reverse := Reverse}, A) -> {Op, [A, Axis, Reverse]}.
