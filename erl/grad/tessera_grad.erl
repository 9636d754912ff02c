%% @private Reverse-mode differentiation of traced programs. The function is
%% traced as it is; then its ops are read back and walked from the last to the
%% first, each adding ops that compute the gradients of its operands. Those are
%% ordinary ops, so gradients can be differentiated again. The rule of
%% each op is in tessera_grad_rules.
-module(tessera_grad).
-include("tessera.hrl").
-export([grad/1, value_and_grad/1, pullback/3]).

%% The summands found so far of the gradient of each value, by the value's number. Each has the set of mesh axes over
%% which it must still be summed (docs/distribution.md). Without a mesh there is one, with the empty set.
-type summand() :: {tessera_varying:set(), tessera_type:tensor()}.
-type cotangents() :: #{non_neg_integer() => [summand()]}.
%% The sets of axes over which values vary; of a program without a mesh there are none.
-type sets() :: #{non_neg_integer() => tessera_varying:set()}.

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
    %% New values, so that other uses of the same value count as constants.
    Wrt = [own_value(Leaf) || Leaf <- Leaves],
    Result = check_result(F, tessera_trace:call(grad, F, [tessera_tree:unflatten(Signature, Wrt) | Rest])),
    One = tessera_array:full({}, 1, tessera_array:type(Result)),
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

%% From the gradients with respect to Results to the gradients with respect to Wrt, both of the current region. Gradients
%% that come with sets vary over those: they are summed over the axes over which their results do not.
-spec pullback([tessera_type:tensor()], [tessera_type:tensor()], [tessera_type:tensor() | summand()]) -> [tessera_type:tensor()].
pullback([], _, _) -> [];
pullback(Wrt, Results, Gradients) ->
    Ids = [id(Value) || Value <- Wrt],
    First = lists:min(Ids),
    Last = lists:max([id(Value) || Value <- Results]),
    Ops = [tessera_trace:op_for_gradients(Op)
           || Op <- tessera_error:check(grad, [], tessera_nif:ops(tessera_trace:current(), First, Last))],
    %% The ops that made Wrt are not to be walked through.
    Inner = [Op || {_, _, Made, _} = Op <- Ops, not lists:any(fun(V) -> lists:member(id(V), Ids) end, Made)],
    Active = lists:foldl(fun activate/2, maps:from_list([{id(V), true} || V <- Wrt, has_gradient(V)]), Inner),
    Sets = sets(Wrt ++ Results, Inner),
    Seeds = lists:foldl(fun({Value, G}, Cotangents) -> seed(Value, G, Sets, Cotangents) end, #{}, lists:zip(Results, Gradients)),
    Cotangents = lists:foldr(fun(Op, Known) -> as_of(Op, fun() -> backward(Op, Active, Sets, Known) end) end, Seeds, Inner),
    summed([{Value, maps:get(id(Value), Cotangents, [])} || Value <- Wrt]).

%% The ops that F adds have the line of the op.
as_of({_, _, [Value | _], _}, F) -> tessera_places:as_of(tessera_trace:current(), Value, F);
as_of(_, F) -> F().

-spec sets([tessera_type:tensor()], [tuple()]) -> sets().
sets(Values, Ops) ->
    case tessera_varying:is_local() of
        false -> #{};
        true ->
            All = Values ++ lists:append([Operands ++ Results || {_, Operands, Results, _} <- Ops]),
            maps:from_list(lists:zip([id(Value) || Value <- All], tessera_varying:varying(All)))
    end.

-spec set_of(tessera_type:tensor(), sets()) -> tessera_varying:set().
set_of(Value, Sets) -> maps:get(id(Value), Sets, 0).

seed(Value, {Set, Gradient}, Sets, Cotangents) ->
    accumulate(Value, Gradient, Set band bnot set_of(Value, Sets), Cotangents);
seed(Value, Gradient, _, Cotangents) -> accumulate(Value, Gradient, 0, Cotangents).

id(#tessera{ref = [_ | Id]}) -> Id.

has_gradient(#tessera{type = Type}) -> tessera_type:is_inexact_type(Type).

zero(#tessera{type = Type, shape = Shape}) -> tessera_array:full(Shape, 0, Type).

%% A float or complex result depends on Wrt if one of its operands does.
activate({_, Operands, [First | _] = Results, _}, Active) ->
    Depends = lists:any(fun(Operand) -> is_map_key(id(Operand), Active) end, Operands),
    case Depends andalso not tessera_trace:is_stopped(First) of
        true -> lists:foldl(fun(R, A) -> A#{id(R) => true} end, Active, [R || R <- Results, has_gradient(R)]);
        false -> Active
    end.

-spec backward(tuple(), #{non_neg_integer() => true}, sets(), cotangents()) -> cotangents().
backward({Name, Operands, Results, Attrs} = Op, Active, Sets, Cotangents) ->
    Known = [case is_map_key(id(R), Active) of
                 true -> maps:get(id(R), Cotangents, []);
                 false -> []
             end || R <- Results],
    case lists:all(fun(Summands) -> Summands =:= [] end, Known) of
        true -> Cotangents;
        false ->
            Needed = [is_map_key(id(Operand), Active) || Operand <- Operands],
            case tessera_collective_grad:is_collective(Name) of
                true -> through_collective(Op, Known, Needed, Sets, Cotangents);
                false ->
                    {Partial, All} = joined(Name, Known, [Operand || {Operand, true} <- lists:zip(Operands, Needed)], Results),
                    Shares = tessera_grad_rules:shares(Name, Operands, Results, Attrs, All, Needed),
                    Set = lists:foldl(fun(R, Union) -> Union bor set_of(R, Sets) end, Partial, Results),
                    add_shares(lists:zip3(Operands, Needed, Shares), Set, Sets, Cotangents)
            end
    end.

%% Each operand has a result of its own.
through_collective({Name, Operands, _, Attrs}, Known, Needed, Sets, Cotangents) ->
    lists:foldl(
        fun({Operand, [_ | _] = Summands, true}, Sum) ->
                {Set, Share} = tessera_collective_grad:share(Name, Operand, Attrs, set_of(Operand, Sets), common(Summands)),
                accumulate(Operand, Share, Set band bnot set_of(Operand, Sets), Sum);
           (_, Sum) -> Sum
        end, Cotangents, lists:zip3(Operands, Known, Needed)).

%% One cotangent for each result, or `none', and the common set of axes over which they are partial.
joined(_, [[{0, Gradient}]], _, _) -> {0, [Gradient]};
joined(Name, Known, Operands, Results) ->
    Sets = [Set || Summands <- Known, {Set, _} <- Summands],
    Partial = case Name =:= 'cond' orelse elements(Operands) > 2 * elements(Results) of
                  true -> 0;
                  false -> lists:foldl(fun erlang:'band'/2, hd(Sets), Sets)
              end,
    {Partial, [joined_summands(Summands, Partial) || Summands <- Known]}.

joined_summands([], _) -> none;
joined_summands(Summands, Partial) ->
    [First | Rest] = [hd(tessera_collective:sum_over([Gradient], Set band bnot Partial)) || {Set, Gradient} <- Summands],
    lists:foldl(fun(Next, Sum) -> tessera_elementwise:add(Sum, Next) end, First, Rest).

%% The summands of one value as one.
common([Summand]) -> Summand;
common(Summands) ->
    Partial = lists:foldl(fun({Set, _}, Sets) -> Set band Sets end, element(1, hd(Summands)), Summands),
    {Partial, joined_summands(Summands, Partial)}.

elements(Values) -> lists:sum([tessera_type:elements(Shape) || #tessera{shape = Shape} <- Values]).

%% Shares are functions, so that only the shares that are used add ops.
add_shares(Shares, Set, Sets, Cotangents) ->
    lists:foldl(fun({Operand, true, Share}, Sum) when is_function(Share) ->
                        accumulate(Operand, Share(), Set band bnot set_of(Operand, Sets), Sum);
                   (_, Sum) -> Sum
                end, Cotangents, Shares).

accumulate(_, none, _, Cotangents) -> Cotangents;
accumulate(Value, Gradient, Set, Cotangents) ->
    Id = id(Value),
    Summands = maps:get(Id, Cotangents, []),
    Cotangents#{Id => case lists:keyfind(Set, 1, Summands) of
                          {Set, Other} -> lists:keyreplace(Set, 1, Summands, {Set, tessera_elementwise:add(Other, Gradient)});
                          false -> [{Set, Gradient} | Summands]
                      end}.

%% The gradients of all values. Sums over the same axes are one message.
summed(Pairs) ->
    Sets = lists:usort([Set || {_, Summands} <- Pairs, {Set, _} <- Summands, Set =/= 0]),
    Done = lists:foldl(fun sum_over/2, Pairs, Sets),
    [case Summands of
         [] -> zero(Value);
         _ -> joined_summands(Summands, 0)
     end || {Value, Summands} <- Done].

sum_over(Set, Pairs) ->
    Sums = tessera_collective:sum_over([Gradient || {_, Summands} <- Pairs, {Own, Gradient} <- Summands, Own =:= Set], Set),
    {Done, []} = lists:mapfoldl(
        fun({Value, Summands}, Left) ->
                case lists:keymember(Set, 1, Summands) of
                    true -> {{Value, lists:keyreplace(Set, 1, Summands, {0, hd(Left)})}, tl(Left)};
                    false -> {{Value, Summands}, Left}
                end
        end, Sums, Pairs),
    Done.
