%% @private Tensors in terms of any form: in lists, tuples and values of maps, including structs. While a term is sent, a
%% stand-in replaces each tensor.
-module(tessera_cluster_terms).
-include("tessera.hrl").
-export([replace/2, with_proxies/2, fold/3, parts/3, stand_in/2]).
-export_type([stand_in/0]).

-define(STAND_IN, '$tessera_on_rank').

-opaque stand_in() :: {?STAND_IN, term(), tessera:type(), tessera:shape()}.

%% The stand-in of a tensor; replace/2 passes What to its function.
-spec stand_in(term(), tessera:tensor()) -> stand_in().
stand_in(What, #tessera{type = Type, shape = Shape}) -> {?STAND_IN, What, Type, Shape}.

%% The term with each stand-in replaced by F's result for it.
-spec replace(fun((What :: term(), tessera:type(), tessera:shape()) -> term()), term()) -> term().
replace(F, Term) ->
    {Replaced, none} = fold(fun({?STAND_IN, What, Type, Shape}, none) -> {F(What, Type, Shape), none};
                               (Tensor, none) -> {Tensor, none}
                            end, none, Term),
    Replaced.

%% A reply with tensors in the places of its stand-ins. A stand-in has the position of its handle, counted from 1.
-spec with_proxies(term(), tuple()) -> term().
with_proxies(Reply, Proxies) ->
    replace(fun(Position, Type, Shape) -> #tessera{ref = element(Position, Proxies), type = Type, shape = Shape} end, Reply).

%% The term with each tensor and stand-in replaced, and an accumulator, from left to right.
-spec fold(fun((tessera:tensor() | stand_in(), Acc) -> {term(), Acc}), Acc, term()) -> {term(), Acc}.
fold(F, Acc, {?STAND_IN, _, _, _} = StandIn) -> F(StandIn, Acc);
fold(F, Acc, #tessera{} = Tensor) -> F(Tensor, Acc);
fold(F, Acc, Term) -> parts(fun(Part, Next) -> fold(F, Next, Part) end, Acc, Term).

%% The term with each of its parts replaced by F's result; the parts of a list are its head and its tail.
-spec parts(fun((term(), Acc) -> {term(), Acc}), Acc, term()) -> {term(), Acc}.
parts(F, Acc, [Head | Tail]) ->
    {NewHead, Next} = F(Head, Acc),
    {NewTail, Last} = F(Tail, Next),
    {[NewHead | NewTail], Last};
parts(F, Acc, Tuple) when is_tuple(Tuple) ->
    {Items, Last} = lists:mapfoldl(F, Acc, tuple_to_list(Tuple)),
    {list_to_tuple(Items), Last};
parts(F, Acc, Map) when is_map(Map) ->
    {Keys, Values} = lists:unzip(maps:to_list(Map)),
    {Items, Last} = lists:mapfoldl(F, Acc, Values),
    {maps:from_list(lists:zip(Keys, Items)), Last};
parts(_, Acc, Other) -> {Other, Acc}.
