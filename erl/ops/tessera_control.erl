%% @private Ops that take functions: while, cond, reduce. The functions are
%% traced into regions of the program.
-module(tessera_control).
-include("tessera.hrl").
-include("../term/tessera_number.hrl").
-export([while/3, 'cond'/3, choose/3, reduce/5]).

expect_function(_, F, Arity) when is_function(F, Arity) -> ok;
expect_function(Name, Other, Arity) ->
    tessera_error:raise(Name, [Other], invalid_argument, "~s: expected a function of arity ~b, got ~ts",
                        [Name, Arity, tessera_error:show(Other)]).

%% ---- while

-spec while(Carried, fun((Carried) -> tessera_type:operand()), fun((Carried) -> Carried)) -> Carried.
while(Initial, Condition, Body) ->
    [expect_function(while, F, 1) || F <- [Condition, Body]],
    tessera_jit:in_program(fun(I) -> trace_while(I, Condition, Body) end, Initial).

trace_while(Initial, Condition, Body) ->
    {Signature, Leaves} = tessera_tree:flatten(Initial),
    Carried = [tessera_trace:value(while, Leaf) || Leaf <- Leaves],
    Carried =/= [] orelse tessera_error:raise(while, [Initial], invalid_argument, "while: nothing is carried", []),
    {Test, Step} = trace_loop(Signature, Carried, varying(Carried), Condition, Body),
    Program = tessera_trace:current(),
    Results = tessera_error:check(while, [Initial], tessera_nif:control(Program, while, Test, Step, Carried)),
    tessera_tree:unflatten(Signature, tessera_trace:placed(while, Results)).

%% The regions of the condition and of the body. On a mesh (docs/distribution.md) a loop variable has one set of axes over which it
%% varies. When the body gives a larger set, both functions are traced again.
trace_loop(Signature, Carried, Sets, Condition, Body) ->
    Types = [tessera_tree:leaf_type(Value) || Value <- Carried],
    {Test, [Predicate]} = tessera_trace:in_region(
        Types, undefined,
        fun(Params) -> [predicate(on_carried(Condition, Signature, marked(Params, Sets)))] end,
        fun tessera_trace:close_region/2),
    {Step, Next} = tessera_trace:in_region(
        Types, Test,
        fun(Params) -> next(Signature, Types, on_carried(Body, Signature, marked(Params, Sets))) end,
        fun tessera_trace:close_region/2),
    case grown(Sets, varying([Predicate]), varying(Next)) of
        Sets ->
            check_predicate(while, Predicate, [Test, Step]),
            {Test, Step};
        Larger -> trace_loop(Signature, Carried, Larger, Condition, Body)
    end.

%% ---- on a mesh; without one there are no sets

varying(Values) ->
    case tessera_varying:is_local() of
        true -> tessera_varying:varying(Values);
        false -> []
    end.

marked(Params, []) -> Params;
marked(Params, Sets) -> lists:zipwith(fun tessera_varying:marked/2, Params, Sets).

grown([], _, _) -> [];
grown(Sets, [Predicate], Next) -> lists:zipwith(fun(Set, Given) -> Set bor Given bor Predicate end, Sets, Next).

%% A partition that does not reach a collective would make the others wait for ever.
check_predicate(Name, Predicate, Regions) ->
    Together = tessera_varying:is_local() andalso
        lists:any(fun(Region) -> tessera_error:check(Name, [], tessera_nif:has_collective(tessera_trace:current(), Region)) end,
                  Regions),
    case Together andalso varying([Predicate]) of
        [Set] when Set =/= 0 ->
            tessera_error:raise(Name, [], invalid_argument,
                                "~s: the predicate varies over ~ts, and there is a collective under it, to which only some "
                                "partitions would come; reduce the predicate first", [Name, tessera_varying:names(Set)]);
        _ -> ok
    end.

on_carried(F, Signature, Params) -> tessera_trace:call(while, F, [tessera_tree:unflatten(Signature, Params)]).

predicate(#tessera{type = u8} = Value) -> Value;
predicate(Value) ->
    _ = operand(while, "what the condition gives", Value),
    tessera_trace:op(while, not_equal, [Value, 0], []).

%% The condition or element, which must be one tensor or number.
operand(Name, What, #tessera{ref = Ref, type = Type, shape = Shape} = Value) when Ref =/= undefined ->
    tessera_type:is_type(Type) andalso tessera_type:is_shape(Shape) orelse no_operand(Name, What, Value),
    Value;
operand(_, _, Number) when ?IS_REAL_NUMBER(Number); ?IS_COMPLEX_NUMBER(Number) -> Number;
operand(Name, What, Other) -> no_operand(Name, What, Other).

no_operand(Name, What, Other) ->
    Hint = case is_boolean(Other) of
               true -> "; compare tensors by tessera:less/2 and its kin (docs/tracing.md)";
               false -> ""
           end,
    tessera_error:raise(Name, [], invalid_argument, "~s: expected a tensor or a number as ~s, got ~ts~s",
                        [Name, What, tessera_error:show(Other), Hint]).

%% The results of the body must have the form of its arguments; numbers take the required types.
next(Signature, Types, Next) ->
    {NextSignature, Leaves} = tessera_tree:flatten(Next),
    tessera_tree:structure(Signature) =:= tessera_tree:structure(NextSignature) orelse
        tessera_error:raise(while, [], invalid_argument,
                            "while: the body returns a term of another form than it was given: ~ts",
                            [tessera_error:show(Next)]),
    lists:zipwith(fun fill_number/2, Leaves, Types).

fill_number(#tessera{} = Value, _) -> Value;
fill_number(Number, {Type, Shape}) -> tessera_trace:op(while, constant, [], {Type, Shape, Number}).

%% ---- cond

-spec 'cond'(tessera_type:operand(), fun(() -> Result), fun(() -> Result)) -> Result.
'cond'(Predicate, True, False) ->
    [expect_function('cond', F, 0) || F <- [True, False]],
    _ = operand('cond', "predicate", Predicate),
    tessera_jit:in_program(fun(P) -> trace_cond(P, True, False) end, Predicate).

trace_cond(Predicate, True, False) -> trace_cond(Predicate, True, False, fun(A, B) -> {A, B} end).

%% The same for a branch of a lifted function: where only one branch gives truths they become numbers, and terms without
%% tensors are allowed if both branches give the same.
-spec choose(tessera_type:tensor(), fun(() -> Result), fun(() -> Result)) -> Result.
choose(Predicate, True, False) -> element(1, trace_cond(Predicate, True, False, fun with_leaves/2)).

with_leaves(True, False) ->
    {A, B} = alike(True, False),
    case tessera_tree:flatten(A) of
        {_, []} -> {{A, 0}, {B, 0}};
        _ -> {{A}, {B}}
    end.

alike(A, B) when is_boolean(A), is_boolean(B), A =/= B -> {truth(A), truth(B)};
alike(A, B) when is_boolean(A), is_number(B) orelse is_record(B, tessera) -> {truth(A), B};
alike(A, B) when is_boolean(B), is_number(A) orelse is_record(A, tessera) -> {A, truth(B)};
alike(#tessera{} = A, B) -> {A, B};
alike(A, #tessera{} = B) -> {A, B};
alike([A | As], [B | Bs]) ->
    {A1, B1} = alike(A, B),
    {As1, Bs1} = alike(As, Bs),
    {[A1 | As1], [B1 | Bs1]};
alike(A, B) when is_tuple(A), is_tuple(B), tuple_size(A) =:= tuple_size(B) ->
    {As, Bs} = alike(tuple_to_list(A), tuple_to_list(B)),
    {list_to_tuple(As), list_to_tuple(Bs)};
alike(A, B) when is_map(A), is_map(B) ->
    Pairs = maps:map(fun(Key, Value) -> alike(Value, map_get(Key, B)) end, maps:with(maps:keys(B), A)),
    {maps:merge(A, maps:map(fun(_, {X, _}) -> X end, Pairs)), maps:merge(B, maps:map(fun(_, {_, Y}) -> Y end, Pairs))};
alike(A, B) -> {A, B}.

truth(true) -> 1;
truth(false) -> 0.

%% Form converts the branches' results to one form, if possible.
trace_cond(Predicate, True, False, Form) ->
    Chooser = tessera_trace:value('cond', Predicate),
    {TrueRegion, TrueTerm} = branch(True, undefined),
    {FalseRegion, FalseTerm} = branch(False, TrueRegion),
    {A, B} = Form(TrueTerm, FalseTerm),
    {TrueSignature, TrueLeaves} = tessera_tree:flatten(A),
    {FalseSignature, FalseLeaves} = tessera_tree:flatten(B),
    tessera_tree:structure(TrueSignature) =:= tessera_tree:structure(FalseSignature) orelse
        tessera_error:raise('cond', [Predicate], invalid_argument,
                            "cond: the branches return terms of different forms: ~ts and ~ts",
                            [tessera_error:show(TrueTerm), tessera_error:show(FalseTerm)]),
    TrueLeaves =/= [] orelse
        tessera_error:raise('cond', [Predicate], invalid_argument, "cond: nothing is returned", []),
    Types = lists:zipwith(fun(T, F) -> common_type(Predicate, T, F) end, TrueLeaves, FalseLeaves),
    finish(TrueRegion, TrueLeaves, Types),
    finish(FalseRegion, FalseLeaves, Types),
    check_predicate('cond', Chooser, [TrueRegion, FalseRegion]),
    Results = tessera_error:check('cond', [Predicate], tessera_nif:control(tessera_trace:current(), 'cond', TrueRegion,
                                                                           FalseRegion, [Chooser])),
    tessera_tree:unflatten(TrueSignature, tessera_trace:placed('cond', Results)).

%% Leaves the region open: its results' types depend on the other branch.
branch(F, Like) ->
    tessera_trace:in_region([], Like,
                            fun([]) ->
                                    {Signature, Leaves} = tessera_tree:flatten(tessera_trace:call('cond', F, [])),
                                    tessera_tree:unflatten(Signature, [fix_leaf(Leaf) || Leaf <- Leaves])
                            end,
                            fun(Program, _) -> tessera_nif:region_leave(Program) end).

fix_leaf(#tessera{} = Leaf) -> tessera_trace:value('cond', Leaf);
fix_leaf(Number) -> Number.

common_type(Predicate, A, B) ->
    {TypeA, ShapeA} = tessera_tree:leaf_type(A),
    {TypeB, ShapeB} = tessera_tree:leaf_type(B),
    case tessera_type:broadcast(ShapeA, ShapeB) of
        error ->
            tessera_error:raise('cond', [Predicate], invalid_argument, "cond: the branches return ~s and ~s",
                                [tessera_type:format(TypeA, ShapeA), tessera_type:format(TypeB, ShapeB)]);
        Shape -> {weak_merge(A, TypeA, B, TypeB), Shape}
    end.

%% A number takes the type of a tensor: this type is widened if it cannot represent the number.
weak_merge(A, _, #tessera{}, Type) when is_number(A); ?IS_COMPLEX_NUMBER(A) -> tessera_type:merge_number(Type, A);
weak_merge(#tessera{}, Type, B, _) when is_number(B); ?IS_COMPLEX_NUMBER(B) -> tessera_type:merge_number(Type, B);
weak_merge(_, TypeA, _, TypeB) -> tessera_type:merge(TypeA, TypeB).

finish(Region, Leaves, Types) ->
    Program = tessera_trace:current(),
    ok = tessera_error:check('cond', [], tessera_nif:region_enter(Program, Region)),
    Results = lists:zipwith(fun cast/2, Leaves, Types),
    ok = tessera_error:check('cond', [], tessera_nif:region_finish(Program, Results)).

cast(#tessera{type = Type, shape = Shape} = Value, {Type, Shape}) -> Value;
cast(#tessera{} = Value, {Type, Shape}) ->
    tessera_ops:broadcast_to('cond', tessera_ops:as_type('cond', Value, Type), Shape);
cast(Number, {Type, Shape}) -> tessera_trace:op('cond', constant, [], {Type, Shape, Number}).

%% ---- reduce

%% F(Element, Accumulator) -> Accumulator, in row-major order over the axes.
-spec reduce(atom(), tessera_type:tensor(), tessera_type:operand(), fun((tessera_type:tensor(), tessera_type:tensor()) -> tessera_type:operand()),
             [non_neg_integer()]) -> tessera_type:tensor().
reduce(Name, Tensor, Initial, F, Axes) ->
    expect_function(Name, F, 2),
    _ = operand(Name, "initial value", Initial),
    case tessera_trace:is_tracing() of
        true -> trace_reduce(Name, Tensor, Initial, F, Axes);
        false ->
            First = first_value(Name, Initial, accumulator_type(Tensor, Initial)),
            (tessera_jit:jit(fun(T, I) -> trace_reduce(Name, T, I, F, Axes) end, #{}))(Tensor, First)
    end.

accumulator_type(#tessera{type = Type}, #tessera{type = Other}) -> tessera_type:merge(Type, Other);
accumulator_type(#tessera{type = Type}, Number) -> tessera_type:merge_number(Type, Number).

%% A number that is an argument would have a type of its own.
first_value(_, #tessera{} = Tensor, _) -> Tensor;
first_value(Name, Number, Type) ->
    tessera_memory:made(Name, [Number], fun() -> tessera_nif:from_list(Number, Type) end).

trace_reduce(Name, Tensor, Initial, F, Axes) ->
    Common = accumulator_type(Tensor, Initial),
    {Region, _} = tessera_trace:in_region(
        [{Common, {}}, {Common, {}}], undefined,
        fun([Accumulator, Element]) ->
                Next = tessera_trace:call(Name, F, [Element, Accumulator]),
                [combined(Name, operand(Name, "what the function gives", Next), Common)]
        end,
        fun tessera_trace:close_region/2),
    tessera_trace:op(Name, reduce, [tessera_ops:as_type(Name, Tensor, Common), as_scalar(Name, Initial, Common)],
                     {Axes, Region}).

%% A result of another type than the accumulator's would lose precision with each element.
combined(Name, #tessera{type = Own} = Value, Type) ->
    tessera_type:merge(Own, Type) =:= Type orelse
        tessera_error:raise(Name, [], invalid_argument,
                            "~s: the function gives ~s, the accumulator is ~s: expected an initial value of ~s",
                            [Name, Own, Type, tessera_type:merge(Own, Type)]),
    tessera_ops:as_type(Name, Value, Type);
combined(Name, Number, Type) -> tessera_trace:op(Name, constant, [], {Type, {}, Number}).

as_scalar(Name, #tessera{} = Value, Type) -> tessera_ops:as_type(Name, Value, Type);
as_scalar(Name, Number, Type) -> tessera_trace:op(Name, constant, [], {Type, {}, Number}).
