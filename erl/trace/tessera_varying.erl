%% @private Over which axes of the mesh a traced value varies, in the program of one partition (docs/distribution.md). A set of axes is
%% an integer, with bit I for axis I. tessera_collective has the ops between partitions.
-module(tessera_varying).
-include("tessera.hrl").
-export([on_mesh/3, mesh/0, is_local/0, set/1, axes_of/1, names/1, varying/1, marked/2]).
-export_type([set/0]).

-type set() :: non_neg_integer().

%% In the process dictionary while the function of a shard_map is traced: its program, its mesh, and the names of the mesh's axes.
-define(KEY, '$tessera_local').

%% Calls F with a mesh whose axes have these names. F is traced.
-spec on_mesh(term(), [binary()], fun(() -> Result)) -> Result.
on_mesh(Mesh, Names, F) -> tessera_trace:with_entry(?KEY, {tessera_trace:current(), Mesh, Names}, F).

-spec entry() -> {Mesh :: term(), Names :: [binary()]} | undefined.
entry() ->
    case get(?KEY) of
        {Program, Mesh, Names} ->
            case tessera_trace:current() of
                Program -> {Mesh, Names};
                _ -> undefined
            end;
        undefined -> undefined
    end.

%% The mesh of the traced program, as on_mesh/3 got it.
-spec mesh() -> {ok, term()} | undefined.
mesh() ->
    case entry() of
        {Mesh, _} -> {ok, Mesh};
        undefined -> undefined
    end.

-spec is_local() -> boolean().
is_local() -> entry() =/= undefined.

-spec set([non_neg_integer()]) -> set().
set(Axes) -> lists:foldl(fun(Axis, Set) -> Set bor (1 bsl Axis) end, 0, Axes).

-spec axes_of(set()) -> [non_neg_integer()].
axes_of(Set) -> [Axis || Axis <- lists:seq(0, 7), Set band (1 bsl Axis) =/= 0].

%% The names of the axes of a set, for errors.
-spec names(set()) -> iolist().
names(Set) ->
    {_, Names} = entry(),
    lists:join(", ", [lists:nth(Axis + 1, Names) || Axis <- axes_of(Set)]).

%% The sets of traced values, of any region.
-spec varying([tessera_type:tensor()]) -> [set()].
varying([]) -> [];
varying(Values) -> tessera_error:check(varying, [], tessera_nif:varying(tessera_trace:current(), Values)).

%% From now on, all ops that read the value see it vary over these axes as well.
-spec marked(tessera_type:tensor(), set()) -> tessera_type:tensor().
marked(Value, 0) -> Value;
marked(Value, Set) ->
    ok = tessera_error:check(vary, [], tessera_nif:vary(tessera_trace:current(), Value, Set)),
    Value.
