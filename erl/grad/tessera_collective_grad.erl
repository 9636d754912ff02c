%% @private How the operand of a collective shares in the gradient of its result (docs/distribution.md).
-module(tessera_collective_grad).
-include("tessera.hrl").
-export([is_collective/1, share/5]).

-spec is_collective(atom()) -> boolean().
is_collective(all_reduce_sum) -> true;
is_collective(all_reduce_product) -> true;
is_collective(all_reduce_min) -> true;
is_collective(all_reduce_max) -> true;
is_collective(all_reduce_and) -> true;
is_collective(all_reduce_or) -> true;
is_collective(all_gather) -> true;
is_collective(reduce_scatter) -> true;
is_collective(all_to_all) -> true;
is_collective(collective_permute) -> true;
is_collective(collective_broadcast) -> true;
is_collective(barrier) -> true;
is_collective(_) -> false.

%% From the gradient of the result (partial over a set of axes) to the operand's gradient and its set. Varies is the
%% operand's set.
-spec share(atom(), tessera_type:tensor(), term(), tessera_varying:set(), {tessera_varying:set(), tessera_type:tensor()}) ->
          {tessera_varying:set(), tessera_type:tensor()}.
share(all_reduce_sum, _, Axes, Varies, Gradient) ->
    {Partial, Sum} = summed(Gradient, Axes),
    {Varies bor tessera_varying:set(Axes) bor Partial, Sum};
share(all_gather, _, {Axes, Dim}, Varies, {Partial, Gradient}) ->
    Set = tessera_varying:set(Axes),
    case Partial band Set of
        Set -> {Varies bor Partial, tessera_trace:op(grad, reduce_scatter, [Gradient], {Axes, Dim})};
        _ ->
            {Left, Sum} = summed({Partial, Gradient}, Axes),
            {Varies bor Set bor Left, tessera_collective:own_part(Sum, Dim, Axes)}
    end;
share(reduce_scatter, _, {Axes, Dim}, Varies, {Partial, Gradient}) ->
    {Varies bor tessera_varying:set(Axes) bor Partial, tessera_trace:op(grad, all_gather, [Gradient], {Axes, Dim})};
share(all_to_all, _, {Axes, Split, Concat}, Varies, {Partial, Gradient}) ->
    {Varies bor tessera_varying:set(Axes) bor Partial, tessera_trace:op(grad, all_to_all, [Gradient], {Axes, Concat, Split})};
share(collective_permute, _, {Axes, From, To}, Varies, {Partial, Gradient}) ->
    {Varies bor tessera_varying:set(Axes) bor Partial,
     tessera_trace:op(grad, collective_permute, [Gradient], {Axes, To, From})};
share(collective_broadcast, _, {Axes, Root}, Varies, Gradient) ->
    {Partial, Sum} = summed(Gradient, Axes),
    {Varies bor tessera_varying:set(Axes) bor Partial, tessera_collective:on_member(Sum, Root, Axes)};
share(barrier, _, _, Varies, {Partial, Gradient}) -> {Varies bor Partial, Gradient};
share(Name, Operand, _, _, _) ->
    tessera_error:raise(grad, [Operand], unimplemented,
                        "grad: the gradient through ~s is not supported; tessera:stop_grad/1 of its operand makes it a constant",
                        [user_name(Name)]).

user_name(all_reduce_product) -> "all_reduce product";
user_name(all_reduce_min) -> "all_reduce min";
user_name(all_reduce_max) -> "all_reduce max";
user_name(Name) -> atom_to_list(Name).

%% Sums the gradient over these axes, as far as it is partial over them.
summed({Partial, Gradient}, Axes) ->
    Set = tessera_varying:set(Axes),
    {Partial band bnot Set, hd(tessera_collective:sum_over([Gradient], Partial band Set))}.
