%% @private Programs of plain expressions: without cond, callbacks, functions of
%% reductions, loops that hold a tensor, and Nx's loops that tessera_nx_known takes for
%% factorizations. The others, sharded programs and StableHLO are lowered node by node by
%% tessera_nx_plan. The core reads the nodes and finds their node rules: nodes that differ in their operands
%% only share one. Each rule is lowered once, to a region of a program that is never
%% run, and the core builds the program from copies. A loop or block has a rule of
%% its own.
-module(tessera_nx_plain).
-include("tessera_nx.hrl").
-export([read/3, describe/1, program/1]).
-export_type([expression/0, source/0]).

%% An expression and its rules: regions of a program.
-record(expression, {read      :: reference(),
                     rules     :: tessera_nif:builder() | undefined,      % of those that are not cached
                     regions   :: [non_neg_integer()],
                     described :: description()}).
-opaque expression() :: #expression{}.

-type description() :: {binary(), <<_:128>>}.

%% The position of an argument's leaf, or a tensor in the function's
%% environment.
-type source() :: non_neg_integer() | map().

%% The expression, and the sources of its program's parameters; tensors of the same form and bytes share one.
%% Undefined if the expression is not plain (see above). Handled are the names of hooks; Client is the client's name, `undefined' for the default one.
-spec read([map()], [atom()], atom()) -> {expression(), [source()]} | undefined.
read(Roots, Handled, Client) ->
    case check(tessera_nif:expression_read(Roots, tessera_nx_expr:scoped())) of
        undefined -> undefined;
        {Read, Sources, {_, _} = Described} ->
            {#expression{read = Read, rules = undefined, regions = [], described = Described}, Sources};
        {Read, Sources, Steps} ->
            Rules = check(tessera_nif:builder_new([])),
            case rules(Rules, Steps, {Handled, Client}) of
                undefined -> undefined;
                Regions ->
                    _ = check(tessera_nif:finish(Rules, [])),
                    Described = check(tessera_nif:expression_pack(Read, Rules, Regions)),
                    {#expression{read = Read, rules = Rules, regions = Regions, described = Described}, Sources}
            end
    end.

%% The packed program, which any node can unpack, and its hash.
-spec describe(expression()) -> description().
describe(#expression{described = Described}) -> Described.

%% The finished program.
-spec program(expression()) -> tessera_nif:builder().
program(#expression{read = Read, rules = Rules, regions = Regions}) ->
    check(tessera_nif:expression_program(Read, Rules, Regions)).

check(Result) -> tessera_nx_error:check(compile, Result).

%% ---- rules

%% Lowers each rule to a region; undefined if one of them cannot be lowered.
rules(Rules, [Step | Steps], Where) ->
    case rule(Rules, Step, Where) of
        undefined -> undefined;
        Region ->
            case rules(Rules, Steps, Where) of
                undefined -> undefined;
                Regions -> [Region | Regions]
            end
    end;
rules(_, [], _) -> [].

rule(Rules, {?NODE(_, Op, Args) = Node, Forms}, Where) ->
    {Region, Params} = check(tessera_nif:region_open(Rules, Forms, undefined)),
    case results(Rules, tessera_nx_expr:is_closed(Op), Op, Args, Node, Params, Where) of
        undefined -> undefined;
        Results ->
            ok = check(tessera_nif:region_finish(Rules, Results)),
            Region
    end.

results(Rules, true, Op, _, Node, Params, {Handled, Client}) ->
    case Op =:= while andalso tessera_nx_known:loop(Node) of
        {_, _} -> undefined;        % how its state begins matters, and a rule is one for all loops that differ in that only
        _ -> tessera_nx_lower:closed(Node, Params, Rules, Handled, Client)
    end;
results(Rules, false, Op, Args, Node, Params, _) ->
    {Values, []} = lists:mapfoldl(fun value/2, Params, Args),
    [lower(Rules, Op, tessera_nx_tensor:form(Node), Values)].

lower(Rules, constant, Form, [Number]) -> tessera_nx_ops:constant(Rules, Form, Number);
lower(Rules, Op, Form, Args) -> tessera_nx_ops:apply(Rules, Op, Form, Args).

%% The arguments of a node with parameters in place of nodes.
value(?NODE(_, _, _), [Param | Params]) -> {Param, Params};
value(List, Params) when is_list(List) -> lists:mapfoldl(fun value/2, Params, List);
value(Other, Params) -> {Other, Params}.
