%% @private Runs of sharded programs on the ranks of a cluster: the program is sent once, arguments go to the ranks that have their
%% partitions, and results stay there. A call returns when the run is on its way.
-module(tessera_cluster_run).
-include("tessera.hrl").
-export([check/3, program/4, run/5, put/2]).
-export_type([program/0]).

-record(program, {fingerprint :: binary(), source :: binary(), options :: [atom()],
                  results     :: [{tessera:type(), tessera:shape()}]}).   % of a partition
-opaque program() :: #program{}.

%% What one rank gets: values of its own that it uses, those that are donated to it, and new ones.
-record(share, {rank       :: non_neg_integer(),
                queue      :: pid(),
                donated    :: non_neg_integer(),           % positions of operands, as bits
                device = 0 :: non_neg_integer(),           % of the partition
                uses = []  :: [pos_integer()],
                takes = #{} :: #{pos_integer() => reference()},
                new = #{}  :: #{reference() => {pos_integer(), tuple()}}}).

%% Calls Refuse, with the reason, for a number of partitions that the ranks cannot have.
-spec check(tessera_cluster:cluster(), pos_integer(), fun((io:format(), [term()]) -> no_return())) -> ok.
check(Cluster, Partitions, Refuse) ->
    case tessera_cluster_joined:find(Cluster) of
        none -> check_driven(Cluster, Partitions, Refuse);
        Joined -> tessera_cluster_joined:check(Joined, Partitions, Refuse)
    end.

check_driven(Cluster, Partitions, Refuse) ->
    #{links := Links} = tessera_cluster:connections(Cluster),
    #{devices := Devices} = tessera_cluster:options(Cluster),
    case fits(Partitions, tuple_size(Links), Devices) of
        true -> ok;
        false -> Refuse("the mesh has ~b partitions, and the cluster has ~b ranks of ~b devices: each rank has as many partitions, "
                        "at most one for each device", [Partitions, tuple_size(Links), Devices])
    end.

fits(Partitions, Ranks, Devices) -> Partitions > 0 andalso Partitions rem Ranks =:= 0 andalso Partitions div Ranks =< Devices.

%% A partitioned program as it is sent, and the types of a partition's results. Where this node is a rank, the program as it runs here.
-spec program(tessera_cluster:cluster(), tessera_nif:builder(), [atom()], [{tessera:type(), tessera:shape()}]) ->
          program() | tessera_cluster_joined:program() | tessera_nif:error().
program(Cluster, Part, Options, Results) ->
    case tessera_cluster_joined:find(Cluster) of
        none -> sent(Part, Options, Results);
        _ -> tessera_cluster_joined:program(Part, Options)
    end.

sent(Part, Options, Results) ->
    case tessera_nif:describe(Part) of
        {error, _} = Error -> Error;
        {Source, Hash} -> #program{fingerprint = <<Hash/binary, (erlang:md5(term_to_binary(Options)))/binary>>, source = Source,
                                   options = Options, results = Results}
    end.

%% The results of all partitions, in lists as the arguments: proxies, of which an error of the run is an error of their use. Where this
%% node is a rank, arguments and results are those of its own partitions.
-spec run(tessera_cluster:cluster(), program() | tessera_cluster_joined:program(), [[tessera:operand()]], non_neg_integer(), non_neg_integer()) ->
          [[tessera:tensor()]] | {error, map()}.
run(Cluster, Program, Lists, Threads, Donated) ->
    case tessera_cluster_joined:find(Cluster) of
        none -> run_driven(Cluster, Program, {Lists, Donated}, Threads);
        Joined -> tessera_cluster_joined:run(Joined, Program, Lists, {Threads, Donated})
    end.

run_driven(Cluster, Program, {Lists, Donated}, Threads) ->
    Job = tessera_cluster:connections(Cluster),
    case on_ranks(Job, Program) of
        {ok, _, _} = Sent ->
            Results = submit(Job, {Program, Sent}, shared_out(Job, Lists, Donated), Threads),
            ok = tessera_cluster_proxy:keep(Lists),
            relieved(Job, Results);
        {error, _} = Error -> Error
    end.

%% The program on the ranks, which compile it if they do not have it.
on_ranks(#{links := Links, table := Table, compilers := Compilers},
         #program{fingerprint = Fingerprint, source = Source, options = Options}) ->
    tessera_cluster_programs:fetch(Table, Fingerprint,
                                   fun(Id) -> compiled(Links, Compilers, #{makes => {Id, 1}}, {program, Source, Options}) end).

%% One rank of each host compiles, then the others find its code on the disk. A rank that has compiled the program does nothing when
%% it gets the request again.
compiled(Links, Compilers, Head, Request) when length(Compilers) =:= tuple_size(Links) -> tessera_cluster_calls:all(Links, Head, Request);
compiled(Links, Compilers, Head, Request) ->
    case tessera_cluster_calls:some([{Link, Head, Request} || Link <- Compilers]) of
        {ok, _} -> tessera_cluster_calls:all(Links, Head, Request);
        Error -> Error
    end.

%% Rank R has the partitions [R P / R, (R + 1) P / R).
shared_out(#{links := Links, queue := Queue}, Lists, Donated) ->
    Ranks = tuple_size(Links),
    Each = length(Lists) div Ranks,
    [share(#share{rank = Rank, queue = Queue, donated = Donated}, lists:sublist(Lists, Rank * Each + 1, Each))
     || Rank <- lists:seq(0, Ranks - 1)].

%% The operands of a rank's partitions, and the rank's share.
share(Share, Lists) ->
    lists:mapfoldl(fun(List, #share{device = Device} = Before) ->
                           {Operands, After} = operands(List, 0, Before),
                           {Operands, After#share{device = Device + 1}}
                   end, Share, Lists).

operands([Operand | Operands], Position, Share) ->
    {First, Next} = operand(Operand, Share#share.donated bsr Position band 1, Share),
    {Rest, Last} = operands(Operands, Position + 1, Next),
    {[First | Rest], Last};
operands([], _, Share) -> {[], Share}.

%% A value of this rank stays there; other tensors are sent. A tensor that several partitions have is sent once.
operand(#tessera{ref = Ref} = Tensor, Donated, #share{rank = Rank, queue = Queue} = Share) when is_reference(Ref) ->
    case tessera_cluster_proxy:info(Ref) of
        {Rank, Id, {_, _, Queue, _, _}} -> {{id, Id}, used(Id, Ref, Donated, Share)};
        {error, Error} -> tessera_cluster_error:raise(Error);
        _ -> new(Tensor, Share)
    end;
operand(#tessera{} = Tensor, _, Share) -> new(Tensor, Share);
operand(Number, _, Share) -> {Number, Share}.

used(Id, _, 0, #share{uses = Uses} = Share) -> Share#share{uses = [Id | Uses]};
used(Id, Ref, 1, #share{takes = Takes} = Share) -> Share#share{takes = Takes#{Id => Ref}}.

new(#tessera{ref = Ref, type = Type, shape = Shape}, #share{new = New, device = Device} = Share) ->
    case New of
        #{Ref := {Index, _}} -> {{new, Index}, Share};
        #{} ->
            Index = map_size(New) + 1,
            {{new, Index}, Share#share{new = New#{Ref => {Index, {Type, Shape, bytes(Ref), Device}}}}}
    end.

bytes(Ref) ->
    case tessera_remote:read(Ref, -1) of
        {error, Error} -> tessera_cluster_error:raise(Error);
        Bytes -> Bytes
    end.

values(#share{new = New}) -> [Value || {_, Value} <- lists:sort(maps:values(New))].

%% ---- runs

submit(Job, {#program{results = Results} = Program, Sent}, Shares, Threads) ->
    Run = erlang:unique_integer([positive]),
    {Lists, _} = hd(Shares),
    Made = length(Lists) * length(Results),
    First = numbers(Job, Made),
    Proxies = [proxies(Place, First, length(Lists), Results) || Place <- places(Job)],
    ok = take([Share || {_, Share} <- Shares]),
    Requests = [{head(Share, First, Made), {Run, options(Operands, Share, Threads)}} || {Operands, Share} <- Shares],
    case start(Sent, Job, Program, Requests) of
        ok -> lists:append(Proxies);
        {error, _} = Error -> Error
    end.

%% A program that was dropped before its run could be sent is sent again.
start({ok, Id, Sent}, #{queue := Queue} = Job, Program, Requests) ->
    case tessera_cluster_queue:run(Queue, Sent, [{uses(Id, Head), {run, Id, Run, Options}} || {Head, {Run, Options}} <- Requests]) of
        dropped -> start(on_ranks(Job, Program), Job, Program, Requests);
        Result -> Result
    end;
start({error, _} = Error, _, _, _) -> Error.

uses(Id, #{uses := Uses} = Head) -> Head#{uses := [Id | Uses]}.

options(Operands, #share{donated = Donated} = Share, Threads) ->
    #{lists => Operands, values => values(Share), threads => Threads, donated => Donated}.

head(#share{uses = Uses, takes = Takes}, First, Count) -> #{makes => {First, Count}, uses => Uses, takes => maps:keys(Takes)}.

places(#{places := Places}) -> tuple_to_list(Places).

%% The same numbers on all ranks.
numbers(#{table := Table}, Count) -> tessera_cluster_programs:numbers(Table, Count).

%% The proxies of the results, for each partition of a rank.
proxies(Place, First, Partitions, Types) ->
    Numbered = lists:zip(lists:seq(0, length(Types) - 1), Types),
    [[tessera_cluster_proxy:make(Place, First + Partition * length(Types) + I, Type, Shape) || {I, {Type, Shape}} <- Numbered]
     || Partition <- lists:seq(0, Partitions - 1)].

%% Donated values are the run's from now on. If another call has taken one of them, those that were taken here are lost.
take(Shares) ->
    Taken = [{Rank, Id, Queue, tessera_cluster_proxy:take(Ref)}
             || #share{rank = Rank, queue = Queue, takes = Takes} <- Shares, {Id, Ref} <- maps:to_list(Takes)],
    case [Other || {_, _, _, Other} <- Taken, Other =/= ok] of
        [] -> ok;
        _ ->
            _ = [tessera_cluster_queue:free(Queue, [{Rank, Id}]) || {Rank, Id, Queue, ok} <- Taken],
            error({failed_precondition, <<"the tensor was deallocated or donated">>})
    end.

%% The caller holds the results, and perhaps garbage.
relieved(_, {error, _} = Error) -> Error;
relieved(Job, Results) ->
    case lists:any(fun tessera_cluster_proxy:is_full/1, places(Job)) of
        true -> tessera_cluster_proxy:relieve(places(Job));
        false -> ok
    end,
    Results.

%% ---- values

%% Lists of tensors, one for each partition, on the ranks of their partitions.
-spec put(tessera_cluster:cluster(), [[tessera:tensor()]]) -> [[tessera:tensor()]] | {error, map()}.
put(Cluster, Lists) ->
    #{links := Links} = Job = tessera_cluster:connections(Cluster),
    Shares = shared_out(Job, Lists, 0),
    Numbered = [{numbers(Job, maps:size(Share#share.new)), Operands, Share} || {Operands, Share} <- Shares],
    Results = lists:append([placed(Place, First, Operands, Share, Own)
                            || {Place, {First, Operands, Share}, Own} <- lists:zip3(places(Job), Numbered, by_rank(Lists, tuple_size(Links)))]),
    Requests = [{#{makes => {First, maps:size(Share#share.new)}}, {put, values(Share)}} || {First, _, Share} <- Numbered],
    case tessera_cluster_calls:each(Links, Requests) of
        {ok, _} -> relieved(Job, Results);
        {error, _} = Error -> Error
    end.

by_rank(Lists, Ranks) ->
    Each = length(Lists) div Ranks,
    [lists:sublist(Lists, Rank * Each + 1, Each) || Rank <- lists:seq(0, Ranks - 1)].

%% A tensor of which the rank has a proxy stays as it is. One proxy stands for each new value.
placed(Place, First, Operands, #share{new = New}, Lists) ->
    Proxies = maps:from_list([{Index, tessera_cluster_proxy:make(Place, First + Index - 1, Type, Shape)}
                              || {Index, {Type, Shape, _, _}} <- maps:values(New)]),
    [[case Operand of
          {new, Index} -> maps:get(Index, Proxies);
          _ -> Tensor
      end || {Operand, Tensor} <- lists:zip(List, Own)] || {List, Own} <- lists:zip(Operands, Lists)].
