%% @private tessera_mesh:sharding_constraint/2: how a value inside of a function of shard_jit is cut.
-module(tessera_constraint).
-include("tessera.hrl").
-export([on_mesh/2, constrain/2, cut_like/2]).

%% In the process dictionary while the function of a shard_jit is traced: its program and its mesh.
-define(KEY, '$tessera_global').

%% Traces F on whole tensors, in a program with this mesh.
-spec on_mesh(tessera_sharding:checked(), fun(() -> Result)) -> Result.
on_mesh(Mesh, F) -> tessera_trace:with_entry(?KEY, {tessera_trace:current(), Mesh}, F).

-spec mesh([term()]) -> tessera_sharding:checked().
mesh(Args) ->
    case {get(?KEY), tessera_trace:current()} of
        {{Program, Mesh}, Program} -> Mesh;
        _ -> no_mesh(tessera_varying:is_local(), Args)
    end.

-spec no_mesh(boolean(), [term()]) -> no_return().
no_mesh(true, Args) ->
    tessera_error:raise(sharding_constraint, Args, failed_precondition,
                        "sharding_constraint: in a function of tessera:shard_map/4 tensors are parts, which are not cut "
                        "further; expected a function of tessera:shard_jit/3", []);
no_mesh(false, Args) ->
    tessera_error:raise(sharding_constraint, Args, failed_precondition,
                        "sharding_constraint: expected to be called inside of a function of tessera:shard_jit/3, which has a "
                        "mesh", []).

-spec constrain(Term, tessera_sharding:sharding()) -> Term.
constrain(Term, Sharding) ->
    Args = [Term, Sharding],
    Mesh = mesh(Args),
    {Signature, Leaves} = tessera_tree:flatten(Term),
    Values = [tessera_trace:value(sharding_constraint, Leaf) || Leaf <- Leaves],
    Cut = [cut_like(Value, attrs(Args, Mesh, Sharding, Value)) || Value <- Values],
    tessera_tree:unflatten(Signature, Cut).

attrs(Args, Mesh, Sharding, #tessera{shape = Shape}) ->
    lists:unzip(tessera_sharding:cuts(sharding_constraint, Args, Mesh, Sharding, tuple_size(Shape))).

%% Adds the op with these attributes to the value; the gradient rule cuts the gradient like the value.
-spec cut_like(tessera_type:tensor(), {[non_neg_integer()], [non_neg_integer()]}) -> tessera_type:tensor().
cut_like(Value, Attrs) -> tessera_trace:op(sharding_constraint, [Value], Attrs).
