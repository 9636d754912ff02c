%% @private The tree of sockets between a cluster's driver and its ranks. Up to `Direct' ranks are all connected to the driver. With more
%% ranks, each `Radix' consecutive ranks have their first as a leader, and the others are connected to it; with too many leaders each `Radix'
%% leaders have a leader, and so on, until at most `Direct' are left: these are connected to the driver. Pure functions.
-module(tessera_cluster_tree).
-export([new/2, parent/2, children/2, towards/3, depth/1]).
-export_type([tree/0]).

%% The number of ranks, the radix, and how many levels of leaders there are.
-opaque tree() :: {pos_integer(), pos_integer(), non_neg_integer()}.
-type rank() :: non_neg_integer().

-spec new(pos_integer(), {pos_integer(), pos_integer()}) -> tree().
new(Ranks, {Direct, Radix}) -> {Ranks, Radix, levels(Ranks, Direct, Radix)}.

levels(Count, Direct, _) when Count =< Direct -> 0;
levels(Count, Direct, Radix) -> 1 + levels((Count + Radix - 1) div Radix, Direct, Radix).

%% Sockets between the driver and the rank that is the farthest.
-spec depth(tree()) -> pos_integer().
depth({_, _, Levels}) -> Levels + 1.

%% The leader of a rank, or the driver.
-spec parent(rank(), tree()) -> driver | rank().
parent(Rank, {_, Radix, Levels}) ->
    case level(Rank, Radix, Levels) of
        Levels -> driver;
        Level -> Rank - Rank rem power(Radix, Level + 1)
    end.

%% The ranks that are connected to a rank, in order.
-spec children(rank(), tree()) -> [rank()].
children(Rank, {Ranks, Radix, Levels}) ->
    lists:append([[Child || I <- lists:seq(1, Radix - 1), Child <- [Rank + I * power(Radix, Level)], Child < Ranks]
                  || Level <- lists:seq(0, level(Rank, Radix, Levels) - 1)]).

%% The child of rank From that is rank To or leads to it; none when To is not below From.
-spec towards(rank(), rank(), tree()) -> rank() | none.
towards(From, To, Tree) ->
    case parent(To, Tree) of
        From -> To;
        driver -> none;
        Parent -> towards(From, Parent, Tree)
    end.

%% Of how many levels the rank is a leader.
level(_, _, 0) -> 0;
level(Rank, Radix, Levels) when Rank rem Radix =:= 0 -> 1 + level(Rank div Radix, Radix, Levels - 1);
level(_, _, _) -> 0.

power(_, 0) -> 1;
power(Base, Exponent) -> Base * power(Base, Exponent - 1).
