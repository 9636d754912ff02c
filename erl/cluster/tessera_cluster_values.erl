%% @private Functions on the ranks, with tensors in their arguments and results.
-module(tessera_cluster_values).
-include("tessera.hrl").
-export([apply_all/3]).

%% F(Rank), or F(Rank, Arg), on each rank.
-spec apply_all(tessera_cluster:connections(), function(), none | [term()]) -> {ok, [term()]} | {error, map()}.
apply_all(#{links := Links, queue := Queue}, F, Args) ->
    Fun = term_to_binary(F),
    Ranks = lists:seq(0, tuple_size(Links) - 1),
    try [request(Fun, arguments(Rank, Args), {Rank, Queue}) || Rank <- Ranks] of
        Requests ->
            Replies = tessera_cluster_calls:each(Links, Requests),
            ok = tessera_cluster_proxy:keep(Args),
            Replies
    catch throw:{error, _} = Error -> Error
    end.

arguments(Rank, none) -> [Rank];
arguments(Rank, Args) -> [Rank, lists:nth(Rank + 1, Args)].

request(Fun, Args, Place) ->
    {Sent, Uses} = tessera_cluster_terms:fold(fun(Tensor, Uses) -> sent(Tensor, Uses, Place) end, [], Args),
    {#{uses => Uses}, {apply, Fun, term_to_binary(Sent)}}.

%% A value of that rank stays there.
sent(#tessera{ref = Ref} = Tensor, Uses, {Rank, Queue}) when is_reference(Ref) ->
    case tessera_cluster_proxy:info(Ref) of
        {Rank, Id, {_, _, Queue, _, _}} -> {tessera_cluster_terms:stand_in({value, Id}, Tensor), [Id | Uses]};
        {error, _} = Error -> throw(Error);
        _ -> {tessera_cluster_terms:stand_in({bytes, bytes(tessera_remote:read(Ref, -1))}, Tensor), Uses}
    end;
sent(Template, Uses, _) -> {Template, Uses}.

bytes({error, _} = Error) -> throw(Error);
bytes(Bytes) -> Bytes.
