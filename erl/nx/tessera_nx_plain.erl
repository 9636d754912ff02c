%% @private Programs of plain expressions: of one scope, and without callbacks.
%% The core reads the nodes and tells which steps differ in more than the values
%% that they read; those are lowered, each once, as regions of a program that is
%% never run, and the core puts the whole together from copies.
-module(tessera_nx_plain).
-include("tessera_nx.hrl").
-export([program/1]).
-export_type([source/0]).

%% The position of an argument's leaf, or a tensor that the function holds.
-type source() :: non_neg_integer() | map().

%% The finished program, and what its parameters are. Undefined, when there is more than one scope.
-spec program([map()]) -> {tessera_nif:builder(), [source()]} | undefined.
program(Roots) ->
    case check(tessera_nif:expression_read(Roots, tessera_nx_expr:scoped())) of
        undefined -> undefined;
        {Expression, Sources, Steps} ->
            Rules = check(tessera_nif:builder_new([])),
            Regions = [rule(Rules, Step) || Step <- Steps],
            _ = check(tessera_nif:finish(Rules, [])),
            {Params, Numbers} = number(Sources),
            {check(tessera_nif:expression_program(Expression, Rules, Regions, Numbers)), Params}
    end.

check({error, Cause}) -> tessera_nx_error:from_core(compile, Cause);
check(Result) -> Result.

%% ---- rules

rule(Rules, {?NODE(_, Op, Args) = Node, Forms}) ->
    {Region, Params} = check(tessera_nif:region_open(Rules, Forms, undefined)),
    {Values, []} = lists:mapfoldl(fun value/2, Params, Args),
    ok = check(tessera_nif:region_finish(Rules, [lower(Rules, Op, tessera_nx_tensor:form(Node), Values)])),
    Region.

lower(Rules, constant, Form, [Number]) -> tessera_nx_ops:constant(Rules, Form, Number);
lower(Rules, Op, Form, Args) -> tessera_nx_ops:apply(Rules, Op, Form, Args).

%% The arguments of a node with parameters in the place of nodes.
value(?NODE(_, _, _), [Param | Params]) -> {Param, Params};
value(List, Params) when is_list(List) -> lists:mapfoldl(fun value/2, Params, List);
value(Other, Params) -> {Other, Params}.

%% ---- sources

%% Tensors of the same form and bytes are one parameter: so another value needs no other program.
number(Sources) ->
    {Numbers, {_, _, Params}} = lists:mapfoldl(fun number/2, {0, #{}, []}, Sources),
    {lists:reverse(Params), Numbers}.

number(Source, {Next, Known, Params}) ->
    Key = key(Source),
    case Known of
        #{Key := Number} -> {Number, {Next, Known, Params}};
        _ when Key =:= none -> {Next, {Next + 1, Known, [Source | Params]}};
        _ -> {Next, {Next + 1, Known#{Key => Next}, [Source | Params]}}
    end.

key(#{data := #{state := Bytes}} = Tensor) -> {tessera_nx_tensor:form(Tensor), Bytes};
key(Tensor) when is_map(Tensor) -> none;
key(Position) -> Position.
