%% Properties, on random terms and shapes.
-module(tessera_props_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

-define(RUNS(N, Property), {timeout, 120, ?_assert(proper:quickcheck(Property, [quiet, {numtests, N}, {to_file, user}]))}).

properties_test_() ->
    [?RUNS(500, container_round_trip()), ?RUNS(200, list_round_trip()), ?RUNS(200, broadcasting()),
     ?RUNS(100, shape_ops_are_permutations()), ?RUNS(100, eager_is_compiled())].

leaf() -> oneof([integer(-1000, 1000), float(-10.0, 10.0), oneof([ok, none, a, b, c]), binary(3), return_tensor()]).

return_tensor() -> ?LET(N, integer(0, 3), return(tessera:template(f32, {N}))).

container(0) -> leaf();
container(Size) ->
    Smaller = ?LAZY(container(Size div 3)),
    oneof([leaf(), list(Smaller),
           ?LET(L, list(Smaller), return(list_to_tuple(L))), ?LET(L, list({oneof([ok, none, a, b, c]), Smaller}), return(maps:from_list(L)))]).

%% A container can be taken apart and put together again, with any other leaves.
container_round_trip() ->
    ?FORALL(Term, ?SIZED(Size, container(min(Size, 12))),
            begin
                {Signature, Leaves} = tessera_tree:flatten(Term),
                Again = tessera_tree:unflatten(Signature, Leaves),
                Again =:= Term andalso length(tessera_tree:types(Signature)) =:= length(Leaves)
                    andalso tessera_tree:flatten(Again) =:= {Signature, Leaves}
            end).

shape() -> ?LET(Rank, integer(0, 4), ?LET(Dims, vector(Rank, integer(0, 4)), return(list_to_tuple(Dims)))).

type() -> oneof([s8, s16, s32, s64, u8, u16, u32, u64, f16, bf16, f32, f64]).

list_round_trip() ->
    ?FORALL({Shape, Type}, {shape(), type()},
            begin
                T = tessera:as_type(tessera:iota(Shape), Type),
                List = tessera:to_list(T),
                Copy = tessera:from_binary(tessera:to_binary(T), Type, Shape),
                tessera:to_list(Copy) =:= List andalso same_list(T, List)
            end).

%% A list of no elements has lost the sizes inside.
same_list(#tessera{shape = Shape, type = Type}, List) ->
    tessera_type:elements(Shape) =:= 0 orelse
        begin
            Again = tessera:tensor(List, Type),
            {tessera:shape(Again), tessera:to_list(Again)} =:= {Shape, List}
        end.

%% Erlang and C compute the same shape, or both refuse.
broadcasting() ->
    ?FORALL({A, B}, {shape(), shape()},
            begin
                Sum = try tessera:shape(tessera:add(tessera:iota(A), tessera:iota(B)))
                      catch error:{invalid_argument, _} -> error
                      end,
                tessera_type:broadcast(A, B) =:= Sum
            end).

shape_ops_are_permutations() ->
    ?FORALL({Shape, Axes}, ?LET(Shape, shape(), {Shape, shuffled(lists:seq(0, tuple_size(Shape) - 1))}),
            begin
                T = tessera:iota(Shape),
                Same = lists:sort(sorted_elements(T)),
                lists:all(fun(X) -> lists:sort(sorted_elements(X)) =:= Same end,
                          [tessera:transpose(T, Axes), tessera:reverse(T, Axes), tessera:flatten(T)])
            end).

sorted_elements(T) -> tessera:to_list(tessera:flatten(T)).

shuffled(List) -> ?LET(Keys, vector(length(List), integer()), [X || {_, X} <- lists:sort(lists:zip(Keys, List))]).

%% A chain of ops has the same bits one at a time, compiled, and compiled without fusion.
eager_is_compiled() ->
    Ops = [fun tessera:tanh/1, fun tessera:exp/1, fun(X) -> tessera:multiply(X, 0.5) end, fun tessera:sin/1,
           fun(X) -> tessera:subtract(X, tessera:sum(X, #{axes => [0], keep_axes => true})) end, fun tessera:transpose/1,
           fun(X) -> tessera:cumulative_sum(X, #{axis => 1}) end, fun(X) -> tessera:max(X, tessera:reverse(X)) end,
           fun(X) -> tessera:concatenate([X, tessera:negate(X)], 1) end, fun tessera:softmax/1],
    ?FORALL({Rows, Columns, Chain}, {integer(1, 5), integer(1, 5), ?SUCHTHAT(L, list(integer(1, length(Ops))), length(L) < 8)},
            begin
                F = fun(X) -> lists:foldl(fun(I, T) -> (lists:nth(I, Ops))(T) end, X, Chain) end,
                X = tessera:sin(tessera:iota({Rows, Columns}, f32)),
                Bits = tessera:to_binary(F(X)),
                Bits =:= tessera:to_binary((tessera:jit(F))(X)) andalso
                    Bits =:= tessera:to_binary((tessera:jit(F, #{fuse => false}))(X))
            end).
