%% @private Functions on the ranks, with tensors in their arguments and results.
-module(tessera_cluster_values).
-include("tessera.hrl").
-export([apply_all/3]).

%% F(Rank), or F(Rank, Arg), on each rank.
-spec apply_all(tessera_cluster_state:connections(), function(), none | [term()]) -> {ok, [term()]} | {error, map()}.
apply_all(#{links := Links, queue := Queue} = Connections, F, Args) ->
    Ranks = lists:seq(0, tuple_size(Links) - 1),
    try
        Fun = encoded("the function", F),
        [request(Fun, Given, {Rank, Queue}) || {Rank, Given} <- arguments(Ranks, Args)]
    of
        Requests ->
            Replies = tessera_cluster_calls:each(Connections, Requests),
            ok = tessera_cluster_proxy:keep(Args),
            Replies
    catch throw:{error, _} = Error -> Error
    end.

arguments(Ranks, none) -> [{Rank, [Rank]} || Rank <- Ranks];
arguments(Ranks, Args) -> [{Rank, [Rank, Arg]} || {Rank, Arg} <- lists:zip(Ranks, Args)].

%% Function and arguments are encoded apart from the request, as ranks may make their atoms.
request(Fun, Args, {Rank, _} = Place) ->
    {Sent, Uses} = tessera_cluster_terms:fold(fun(Tensor, Uses) -> sent(Tensor, Uses, Place) end, [], Args),
    {Small, Blocks} = tessera_cluster_blocks:extract(Sent),
    {#{uses => Uses}, {apply, Fun, encoded(["the argument of rank ", integer_to_list(Rank)], Small), list_to_tuple(Blocks)}}.

encoded(What, Term) ->
    case tessera_cluster_blocks:to_binary(Term) of
        {error, Why} -> throw({error, tessera_cluster_error:too_large(What, Why)});
        Encoded -> Encoded
    end.

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
