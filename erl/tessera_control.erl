%% @private Ops that take functions: while, cond, reduce. The functions are
%% traced into regions of the program.
-module(tessera_control).
-include("tessera.hrl").
-export([while/3, 'cond'/3, reduce/4]).

expect_function(_, F, Arity) when is_function(F, Arity) -> ok;
expect_function(Name, Other, Arity) ->
    tessera_error:raise(Name, [Other], invalid_argument, "~s: expected a function of arity ~b, got ~ts",
                        [Name, Arity, tessera_error:show(Other)]).

%% ---- while

-spec while(Carried, fun((Carried) -> tessera:operand()), fun((Carried) -> Carried)) -> Carried.
while(Initial, Condition, Body) ->
    [expect_function(while, F, 1) || F <- [Condition, Body]],
    case tessera_trace:is_tracing() of
        true -> trace_while(Initial, Condition, Body);
        false -> (tessera_jit:jit(fun(I) -> trace_while(I, Condition, Body) end, #{}))(Initial)
    end.

trace_while(Initial, Condition, Body) ->
    {Signature, Leaves} = tessera_tree:flatten(Initial),
    Carried = [tessera_trace:value(while, Leaf) || Leaf <- Leaves],
    Types = [tessera_tree:leaf_type(Value) || Value <- Carried],
    Carried =/= [] orelse tessera_error:raise(while, [Initial], invalid_argument, "while: nothing is carried", []),
    {Test, _} = tessera_trace:in_region(
        Types, undefined,
        fun(Params) -> [predicate(Condition(tessera_tree:unflatten(Signature, Params)))] end,
        fun tessera_trace:close_region/2),
    {Step, _} = tessera_trace:in_region(
        Types, Test,
        fun(Params) -> next(Signature, Types, Body(tessera_tree:unflatten(Signature, Params))) end,
        fun tessera_trace:close_region/2),
    Program = tessera_trace:current(),
    Results = tessera_trace:check(while, [Initial], tessera_nif:control(Program, while, Test, Step, Carried)),
    tessera_tree:unflatten(Signature, Results).

predicate(#tessera{type = u8} = Value) -> Value;
predicate(Value) ->
    _ = operand(while, "what the condition gives", Value),
    tessera_trace:op(while, not_equal, [Value, 0], []).

%% What must be one tensor or number.
operand(_, _, #tessera{ref = Ref} = Value) when Ref =/= undefined -> Value;
operand(_, _, Number) when is_number(Number); Number =:= nan; Number =:= infinity; Number =:= neg_infinity -> Number;
operand(Name, What, Other) ->
    tessera_error:raise(Name, [], invalid_argument, "~s: expected a tensor or a number as ~s, got ~ts",
                        [Name, What, tessera_error:show(Other)]).

%% What the body gives must have the form of what it got; numbers take the types that are asked for.
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

-spec 'cond'(tessera:operand(), fun(() -> Result), fun(() -> Result)) -> Result.
'cond'(Predicate, True, False) ->
    [expect_function('cond', F, 0) || F <- [True, False]],
    _ = operand('cond', "predicate", Predicate),
    case tessera_trace:is_tracing() of
        true -> trace_cond(Predicate, True, False);
        false -> (tessera_jit:jit(fun(P) -> trace_cond(P, True, False) end, #{}))(Predicate)
    end.

trace_cond(Predicate, True, False) ->
    Chooser = tessera_trace:value('cond', Predicate),
    {TrueRegion, {TrueSignature, TrueLeaves}} = branch(True, undefined),
    {FalseRegion, {FalseSignature, FalseLeaves}} = branch(False, TrueRegion),
    tessera_tree:structure(TrueSignature) =:= tessera_tree:structure(FalseSignature) orelse
        tessera_error:raise('cond', [Predicate], invalid_argument,
                            "cond: the branches return terms of different forms: ~ts and ~ts",
                            [tessera_error:show(tessera_tree:unflatten(TrueSignature, TrueLeaves)),
                             tessera_error:show(tessera_tree:unflatten(FalseSignature, FalseLeaves))]),
    TrueLeaves =/= [] orelse tessera_error:raise('cond', [Predicate], invalid_argument, "cond: nothing is returned", []),
    Types = lists:zipwith(fun(T, F) -> common_type(Predicate, T, F) end, TrueLeaves, FalseLeaves),
    finish(TrueRegion, TrueLeaves, Types),
    finish(FalseRegion, FalseLeaves, Types),
    Results = tessera_trace:check('cond', [Predicate], tessera_nif:control(tessera_trace:current(), 'cond', TrueRegion,
                                                                           FalseRegion, [Chooser])),
    tessera_tree:unflatten(TrueSignature, Results).

%% Leaves the region open: its results' types depend on the other branch.
branch(F, Like) ->
    tessera_trace:in_region([], Like,
                            fun([]) ->
                                    {Signature, Leaves} = tessera_tree:flatten(F()),
                                    {Signature, [fix_leaf(Leaf) || Leaf <- Leaves]}
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

%% A number gives way to a tensor's type, where that can hold it.
weak_merge(A, _, #tessera{}, Type) when is_integer(A) -> Type;
weak_merge(#tessera{}, Type, B, _) when is_integer(B) -> Type;
weak_merge(A, _, #tessera{}, Type) when is_float(A) -> tessera_type:to_float(Type);
weak_merge(#tessera{}, Type, B, _) when is_float(B) -> tessera_type:to_float(Type);
weak_merge(_, TypeA, _, TypeB) -> tessera_type:merge(TypeA, TypeB).

finish(Region, Leaves, Types) ->
    Program = tessera_trace:current(),
    ok = tessera_trace:check('cond', [], tessera_nif:region_enter(Program, Region)),
    Results = lists:zipwith(fun cast/2, Leaves, Types),
    ok = tessera_trace:check('cond', [], tessera_nif:region_finish(Program, Results)).

cast(#tessera{type = Type, shape = Shape} = Value, {Type, Shape}) -> Value;
cast(#tessera{} = Value, {Type, Shape}) ->
    tessera_ops:broadcast_to('cond', tessera_ops:as_type('cond', Value, Type), Shape);
cast(Number, {Type, Shape}) -> tessera_trace:op('cond', constant, [], {Type, Shape, Number}).

%% ---- reduce

%% F(Element, Accumulator) -> Accumulator, in row-major order over the axes.
-spec reduce(tessera:tensor(), tessera:operand(), fun((tessera:tensor(), tessera:tensor()) -> tessera:operand()),
             [non_neg_integer()]) -> tessera:tensor().
reduce(Tensor, Initial, F, Axes) ->
    expect_function(reduce, F, 2),
    _ = operand(reduce, "initial value", Initial),
    case tessera_trace:is_tracing() of
        true -> trace_reduce(Tensor, Initial, F, Axes);
        false -> (tessera_jit:jit(fun(T, I) -> trace_reduce(T, I, F, Axes) end, #{}))(Tensor, Initial)
    end.

trace_reduce(#tessera{type = Type} = Tensor, Initial, F, Axes) ->
    Common = case Initial of
                 #tessera{type = Other} -> tessera_type:merge(Type, Other);
                 _ when is_integer(Initial) -> Type;
                 _ -> tessera_type:to_float(Type)
             end,
    {Region, _} = tessera_trace:in_region(
        [{Common, {}}, {Common, {}}], undefined,
        fun([Accumulator, Element]) ->
                Next = operand(reduce, "what the function gives", F(Element, Accumulator)),
                [combined(Next, Common)]
        end,
        fun tessera_trace:close_region/2),
    tessera_trace:op(reduce, [tessera_ops:as_type(reduce, Tensor, Common), as_scalar(Initial, Common)], {Axes, Region}).

combined(#tessera{} = Value, Type) -> tessera_ops:as_type(reduce, Value, Type);
combined(Number, Type) -> tessera_trace:op(reduce, constant, [], {Type, {}, Number}).

as_scalar(#tessera{} = Value, Type) -> tessera_ops:as_type(reduce, Value, Type);
as_scalar(Number, Type) -> tessera_trace:op(reduce, constant, [], {Type, {}, Number}).
