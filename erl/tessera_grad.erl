%% @private Reverse-mode differentiation of traced programs. The function is
%% traced as it is; then its ops are read back and walked from the last to the
%% first, each adding ops that compute how its operands share in the result. As
%% those are ordinary ops, gradients of gradients need nothing more. The rule of
%% each op is in tessera_grad_rules.
-module(tessera_grad).
-include("tessera.hrl").
-export([grad/1, value_and_grad/1, pullback/3]).

%% What is known so far of the gradient of each value, by the value's number.
-type cotangents() :: #{non_neg_integer() => tessera:tensor()}.

-spec grad(function()) -> function().
grad(F) -> differentiated(F, fun({_, Gradient}) -> Gradient end).

-spec value_and_grad(function()) -> function().
value_and_grad(F) -> differentiated(F, fun(Both) -> Both end).

differentiated(F, Choose) when is_function(F) ->
    case erlang:fun_info(F, arity) of
        {arity, 0} -> tessera_error:raise(grad, [F], invalid_argument, "grad: the function takes no arguments", []);
        {arity, Arity} ->
            Traced = tessera_jit:with_arity(Arity, fun(Args) -> Choose(trace(F, Args)) end),
            tessera_jit:jit(Traced, #{})
    end;
differentiated(F, _) ->
    tessera_error:raise(grad, [F], invalid_argument, "grad: expected a function, got ~ts", [tessera_error:show(F)]).

trace(F, [First | Rest]) ->
    {Signature, Leaves} = tessera_tree:flatten(First),
    %% Values of their own, so that other uses of the same value count as constants.
    Wrt = [own_value(Leaf) || Leaf <- Leaves],
    Result = check_result(F, tessera_trace:call(grad, F, [tessera_tree:unflatten(Signature, Wrt) | Rest])),
    One = tessera:full({}, 1, tessera:type(Result)),
    {Result, tessera_tree:unflatten(Signature, pullback(Wrt, [Result], [One]))}.

own_value(Leaf) ->
    #tessera{shape = Shape} = Value = tessera_trace:value(grad, Leaf),
    tessera_trace:op(grad, reshape, [Value], Shape).

check_result(F, Result) ->
    case Result of
        #tessera{shape = {}, type = Type} ->
            tessera_type:is_float_type(Type) orelse bad_result(F, tessera_type:format(Type, {})),
            tessera_trace:value(grad, Result);
        #tessera{shape = Shape, type = Type} -> bad_result(F, tessera_type:format(Type, Shape));
        Number when is_number(Number) -> tessera_trace:value(grad, float(Number));
        _ -> bad_result(F, tessera_error:show(Result))
    end.

bad_result(F, What) ->
    tessera_error:raise(grad, [F], invalid_argument, "grad: the function returns ~s, expected one float", [What]).

%% From the gradients with respect to Results to those with respect to Wrt, both of the current region.
-spec pullback([tessera:tensor()], [tessera:tensor()], [tessera:tensor()]) -> [tessera:tensor()].
pullback([], _, _) -> [];
pullback(Wrt, Results, Gradients) ->
    Ids = [id(Value) || Value <- Wrt],
    First = lists:min(Ids),
    Last = lists:max([id(Value) || Value <- Results]),
    Ops = tessera_trace:check(grad, [], tessera_nif:ops(tessera_trace:current(), First, Last)),
    %% The ops that made Wrt are not to be walked through.
    Inner = [Op || {_, _, Made, _} = Op <- Ops, not lists:any(fun(V) -> lists:member(id(V), Ids) end, Made)],
    Active = lists:foldl(fun activate/2, maps:from_list([{id(V), true} || V <- Wrt, is_float_value(V)]), Inner),
    Seeds = lists:foldl(fun({Value, G}, Cotangents) -> accumulate(Value, G, Cotangents) end, #{},
                        lists:zip(Results, Gradients)),
    Cotangents = lists:foldr(fun(Op, Known) -> backward(Op, Active, Known) end, Seeds, Inner),
    [maps:get(id(Value), Cotangents, zero(Value)) || Value <- Wrt].

id(#tessera{ref = [_ | Id]}) -> Id.

is_float_value(#tessera{type = Type}) -> tessera_type:is_float_type(Type) orelse tessera_type:is_complex_type(Type).

zero(#tessera{type = Type, shape = Shape}) -> tessera:full(Shape, 0, Type).

%% A float or complex number made of something that depends on what we differentiate by does so itself.
activate({_, Operands, [First | _] = Results, _}, Active) ->
    Depends = lists:any(fun(Operand) -> is_map_key(id(Operand), Active) end, Operands),
    case Depends andalso not tessera_trace:is_stopped(First) of
        true -> lists:foldl(fun(R, A) -> A#{id(R) => true} end, Active, [R || R <- Results, is_float_value(R)]);
        false -> Active
    end.

-spec backward(tuple(), #{non_neg_integer() => true}, cotangents()) -> cotangents().
backward({Name, Operands, Results, Attrs}, Active, Cotangents) ->
    Gradients = [maps:get(id(R), Cotangents, none) || R <- Results, is_map_key(id(R), Active)],
    case lists:any(fun(G) -> G =/= none end, Gradients) of
        false -> Cotangents;
        true ->
            All = [maps:get(id(R), Cotangents, none) || R <- Results],
            Needed = [is_map_key(id(Operand), Active) || Operand <- Operands],
            Shares = tessera_grad_rules:shares(Name, Operands, Results, Attrs, All, Needed),
            lists:foldl(fun add_share/2, Cotangents, lists:zip3(Operands, Needed, Shares))
    end.

%% Shares are functions, so that only those that are needed add ops.
add_share({Operand, true, Share}, Cotangents) when is_function(Share) -> accumulate(Operand, Share(), Cotangents);
add_share(_, Cotangents) -> Cotangents.

accumulate(_, none, Cotangents) -> Cotangents;
accumulate(Value, Gradient, Cotangents) ->
    Id = id(Value),
    case Cotangents of
        #{Id := Other} -> Cotangents#{Id := tessera:add(Other, Gradient)};
        _ -> Cotangents#{Id => Gradient}
    end.
