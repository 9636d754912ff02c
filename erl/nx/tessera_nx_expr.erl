%% @private Reading expression graphs of Nx: the operands of a node, the nodes
%% of a scope, and the nodes that call functions of Elixir.
%%
%% Bodies of while, functions, blocks and optionals are closed scopes. Branches of cond see
%% the scope around them; what is used in one branch only belongs to it, so that
%% it is computed when that branch is taken.
-module(tessera_nx_expr).
-include("tessera_nx.hrl").
-export([is_node/1, operands/1, bodies/1, scope/1, scoped/0, is_closed/1, effects/2, leaves/1]).
-export_type([node_term/0, ids/0]).

-type node_term() :: map().
-type ids() :: #{term() => term()}.

-spec is_node(term()) -> boolean().
is_node(?NODE(_, _, _)) -> true;
is_node(_) -> false.

%% The nodes in a container.
-spec leaves(term()) -> [node_term()].
leaves(?NODE(_, _, _) = Node) -> [Node];
leaves(Container) -> tessera_nx_tensor:flatten(Container).

%% The operands of a node in its own scope, without the branches of a cond.
-spec operands(node_term()) -> [node_term()].
operands(?NODE(_, 'cond', [[{Predicate, _} | _], _])) -> [Predicate];
operands(?NODE(_, while, [Initial | _])) -> leaves(Initial);
operands(?NODE(_, block, [_, Args | _])) -> [A || A <- Args, is_node(A)];
operands(?NODE(_, 'fun', _)) -> [];
operands(?NODE(_, Op, [Container, {token_hook, Hooked, _} | _])) when Op =:= io_call; Op =:= hook ->
    leaves(Container) ++ leaves(Hooked);
operands(?NODE(_, token, [#{hooks := Hooks}])) -> lists:append([leaves(Hooked) || #{expr := Hooked} <- Hooks]);
operands(?NODE(_, optional, [?NODE(_, _, Args) | _])) -> [A || A <- Args, is_node(A)];
operands(?NODE(_, Op, [Container | _])) when Op =:= metadata; Op =:= io_call; Op =:= runtime_call; Op =:= hook ->
    leaves(Container);
operands(?NODE(_, Op, [Parts | _])) when Op =:= concatenate; Op =:= stack -> Parts;
operands(?NODE(_, slice, [Node, Starts | _])) -> [Node | [S || S <- Starts, is_node(S)]];
operands(?NODE(_, put_slice, [Node, Starts, Part])) -> [Node, Part | [S || S <- Starts, is_node(S)]];
operands(?NODE(_, _, Args)) -> [A || A <- Args, is_node(A)].

%% The roots of the bodies that a node runs, lazily or repeatedly.
-spec bodies(node_term()) -> [[node_term()]].
bodies(?NODE(_, 'cond', [[{_, Body} | Clauses], Last])) ->
    [leaves(Body)] ++ [[Predicate | leaves(B)] || {Predicate, B} <- Clauses] ++ [leaves(Last)];
bodies(?NODE(_, while, [_, _, Condition, Body])) -> [leaves(Condition), leaves(Body)];
bodies(?NODE(_, block, [_, _, Default, _])) -> [leaves(Default)];
bodies(?NODE(_, optional, [_, Default, _])) -> [leaves(Default)];
bodies(?NODE(_, 'fun', [_, Body, _])) -> [leaves(Body)];
bodies(_) -> [].

%% ---- scopes

%% The ids and the nodes of the scope with these results: nodes that are used outside of all conds,
%% and nodes that two conds use. Constants are never listed.
-spec scope([node_term()]) -> ids().
scope(Roots) ->
    {Here, _} = lists:foldl(fun(Node, Seen) -> visit(Node, here, Seen) end, {#{}, #{}}, Roots),
    Here.

visit(?NODE(_, constant, _), _, Seen) -> Seen;
visit(?NODE(Id, _, _) = Node, here, {Here, Inside} = Seen) ->
    case Here of
        #{Id := _} -> Seen;
        _ -> visit_args(Node, here, {Here#{Id => Node}, Inside})
    end;
visit(?NODE(Id, _, _) = Node, Cond, {Here, Inside} = Seen) ->
    case {Here, Inside} of
        {#{Id := _}, _} -> Seen;
        {_, #{Id := Cond}} -> Seen;
        {_, #{Id := _}} -> visit(Node, here, Seen);
        _ -> visit_args(Node, Cond, {Here, Inside#{Id => Cond}})
    end.

visit_args(?NODE(Id, 'cond', _) = Node, Scope, Seen) ->
    Inner = case Scope of
                here -> Id;
                _ -> Scope
            end,
    Seen1 = visit_all(operands(Node), Scope, Seen),
    lists:foldl(fun(Roots, S) -> visit_all(Roots, Inner, S) end, Seen1, bodies(Node));
visit_args(Node, Scope, Seen) -> visit_all(operands(Node), Scope, Seen).

visit_all(Nodes, Scope, Seen) -> lists:foldl(fun(Node, S) -> visit(Node, Scope, S) end, Seen, Nodes).

%% Ops that share the surrounding scope, or call Elixir, or hold functions.
-spec scoped() -> [atom()].
scoped() -> ['cond', 'fun', hook, token, attach_token, io_call, runtime_call, window_reduce].

%% Ops whose bodies use nothing but the op's operands.
-spec is_closed(atom()) -> boolean().
is_closed(Op) -> Op =:= while orelse Op =:= block orelse Op =:= optional.

%% ---- callbacks

%% Whether a node calls a function of Elixir. A named io_call without a handler does
%% not.
-spec is_callback(node_term(), [atom()]) -> boolean().
is_callback(?NODE(_, runtime_call, _), _) -> true;
is_callback(?NODE(_, token, [#{hooks := Hooks}]), Handled) ->
    lists:any(fun(#{name := Name, callback := Default}) -> is_handled({named, Name, Default}, Handled) end, Hooks);
is_callback(?NODE(_, Op, [_, Spec | _]), Handled) when Op =:= io_call; Op =:= hook -> is_handled(Spec, Handled);
is_callback(_, _) -> false.

is_handled({token_hook, _, Spec}, Handled) -> is_handled(Spec, Handled);
is_handled({named, Name, nil}, Handled) -> lists:member(Name, Handled);
is_handled(_, _) -> true.

%% The nodes that call Elixir themselves or in a body.
-spec effects([node_term()], [atom()]) -> ids().
effects(Roots, Handled) ->
    {Seen, _} = effects(Roots, Handled, {#{}, false}),
    maps:filter(fun(_, Kind) -> Kind =:= effect end, Seen).

%% Seen holds for each node whether it has an effect, reaches one, or neither.
effects(Nodes, Handled, Acc) -> lists:foldl(fun(Node, A) -> effect(Node, Handled, A) end, Acc, Nodes).

effect(?NODE(Id, _, _) = Node, Handled, {Seen, Reached}) ->
    case Seen of
        #{Id := Known} -> {Seen, Reached orelse Known =/= none};
        _ ->
            {Seen1, InOperands} = effects(operands(Node), Handled, {Seen, false}),
            {Seen2, InBodies} = effects(lists:append(bodies(Node)), Handled, {Seen1, false}),
            Kind = case InBodies orelse is_callback(Node, Handled) of
                       true -> effect;
                       false when InOperands -> reaches;
                       false -> none
                   end,
            {Seen2#{Id => Kind}, Reached orelse Kind =/= none}
    end.
