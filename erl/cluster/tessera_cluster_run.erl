%% @private Runs of sharded programs on the ranks of a cluster. A program is sent to all ranks once. Arguments are sent to the ranks of their
%% partitions, unless they are on the rank already; results stay there as proxies. A call returns when the run was sent.
-module(tessera_cluster_run).
-include("tessera.hrl").
-export([room/2, room_of/3, program/3, key/1, run/5, put/2]).
-export_type([program/0]).

-record(program, {fingerprint :: binary(), source :: binary(), options :: [atom()],
                  results     :: [{tessera:type(), tessera:shape()}]}).   % of one partition
-opaque program() :: #program{}.

%% The operands of a run on one rank: values of the rank, the donated ones of these, and tensors that are sent with the request.
-record(share, {rank       :: non_neg_integer(),
                queue      :: pid(),
                donated    :: non_neg_integer(),           % bit I: operand I is donated
                device = 0 :: non_neg_integer(),           % of the partition that share/2 visits
                uses = []  :: [pos_integer()],
                takes = #{} :: #{pos_integer() => reference()},
                new = #{}  :: #{reference() => {pos_integer(), tuple()}}}).

%% Whether the ranks can have that many partitions.
-spec room(tessera_cluster_state:cluster(), pos_integer()) -> tessera_platform:room().
room(Cluster, Partitions) ->
    #{links := Links} = tessera_cluster_state:connections(Cluster),
    #{devices := Devices} = tessera_cluster_state:options(Cluster),
    room_of(tuple_size(Links), Devices, Partitions).

%% The same of a number of ranks with as many devices each.
-spec room_of(pos_integer(), pos_integer(), non_neg_integer()) -> tessera_platform:room().
room_of(Ranks, Devices, Partitions) when Partitions > 0, Partitions rem Ranks =:= 0, Partitions div Ranks =< Devices -> ok;
room_of(Ranks, Devices, Partitions) ->
    {refused, "the mesh has ~b partitions, and the cluster has ~b ranks of ~b devices: each rank has as many partitions, at most one for "
              "each device", [Partitions, Ranks, Devices]}.

%% A partitioned program to be run on the cluster, from its builder; Results are the types and shapes of one partition's results.
-spec program(tessera_nif:builder(), [atom() | {precision, atom()}], [{tessera:type(), tessera:shape()}]) -> program() | tessera_nif:error().
program(Part, Options, Results) ->
    case tessera_nif:describe(Part) of
        {error, _} = Error -> Error;
        {Source, Hash} -> #program{fingerprint = <<Hash/binary, (erlang:md5(term_to_binary(Options)))/binary>>, source = Source,
                                   options = Options, results = Results}
    end.

%% By what profiles know it.
-spec key(program()) -> tessera_places:key().
key(#program{fingerprint = Fingerprint}) -> {program, Fingerprint}.

%% Runs a program. Lists has a list of arguments for each partition, and the result a list of results: proxies. An error of the run is raised
%% when a proxy is used. Bit I of Donated means that argument I is donated.
-spec run(tessera_cluster_state:cluster(), program(), [[tessera:operand()]], non_neg_integer(), non_neg_integer()) ->
          [[tessera:tensor()]] | {error, map()}.
run(Cluster, Program, Lists, Threads, Donated) ->
    Job = tessera_cluster_state:connections(Cluster),
    case on_ranks(Job, Program) of
        {ok, Id, _} = Sent ->
            {Results, Measures} = submit(Job, {Program, Sent}, shared_out(Job, Lists, Donated), Threads),
            ok = tessera_cluster_proxy:keep(Lists),
            ok = case Measures of
                     [_ | _] when is_list(Results) -> tessera_run:note(Cluster, {Id, Measures}, key(Program));
                     _ -> ok
                 end,
            relieved(Job, Results);
        {error, _} = Error -> Error
    end.

%% The number of the program's value on the ranks, which compile it first if they do not have it.
on_ranks(#{table := Table} = Job,
         #program{fingerprint = Fingerprint, source = Source, options = Options}) ->
    tessera_cluster_programs:fetch(Table, Fingerprint,
                                   fun(Id) -> compiled(Job, #{makes => {Id, 1}}, {program, Source, Options}) end).

%% First one rank of each host compiles, then the others, which find the code in the host's disk cache. The first ones get the request twice; the second
%% time they have the program.
compiled(#{links := Links, compilers := Compilers} = Job, Head, Request) when length(Compilers) =:= tuple_size(Links) ->
    tessera_cluster_calls:all(Job, Head, Request);
compiled(#{compilers := Compilers} = Job, Head, Request) ->
    case tessera_cluster_calls:some([{Link, Head, Request} || Link <- Compilers]) of
        {ok, _} -> tessera_cluster_calls:all(Job, Head, Request);
        Error -> Error
    end.

%% Rank R has the partitions [R P / R, (R + 1) P / R).
shared_out(#{links := Links, queue := Queue}, Lists, Donated) ->
    Ranks = tuple_size(Links),
    Each = length(Lists) div Ranks,
    [share(#share{rank = Rank, queue = Queue, donated = Donated}, lists:sublist(Lists, Rank * Each + 1, Each))
     || Rank <- lists:seq(0, Ranks - 1)].

%% The encoded operands of a rank's partitions, and the share that lists their values.
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

%% A value of this rank is named by its number; another tensor is sent, once for all partitions that have it.
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

%% The results, and the measures of the ranks: a run of a profiled process makes one more value on each.
submit(Job, {#program{results = Results} = Program, {ok, Id, _} = Sent}, Shares, Threads) ->
    Run = erlang:unique_integer([positive]),
    {Lists, _} = hd(Shares),
    Made = length(Lists) * length(Results),
    Events = tessera_run:events_of_run(length(Shares)),
    More = case Events of none -> 0; _ -> 1 end,
    First = numbers(Job, Made + More),
    Requests = [{head(Share, First, Made + More), {Run, (options(Operands, Share, Threads))#{measures => Events}}} || {Operands, Share} <- Shares],
    case pack(Id, Requests, Job) of
        {ok, Packed} ->
            Proxies = [proxies(Place, First, length(Lists), Results) || Place <- places(Job)],
            Measures = [tessera_cluster_measures:value(Place, First + Made) || More =:= 1, Place <- places(Job)],
            ok = take([Share || {_, Share} <- Shares]),
            {started(start(Sent, {ok, Packed}, {Job, Program, Requests}), lists:append(Proxies), Shares), Measures};
        {error, _} = Error -> {Error, []}
    end.

started(ok, Proxies, _) -> Proxies;
started({error, _} = Error, _, Shares) ->
    free([{Rank, Id, Queue} || {_, #share{rank = Rank, queue = Queue, takes = Takes}} <- Shares, Id <- maps:keys(Takes)]),
    Error.

pack(Id, Requests, #{limit := Limit}) ->
    tessera_cluster_calls:pack([{uses(Id, Head), {run, Id, Run, Options}} || {Head, {Run, Options}} <- Requests], Limit).

%% Between on_ranks/2 and here another call may have dropped the program. Then it is sent again.
start({ok, _, Sent}, {ok, Packed}, {#{queue := Queue} = Job, Program, Requests} = What) ->
    case tessera_cluster_queue:run(Queue, Sent, Packed) of
        dropped -> again(on_ranks(Job, Program), Requests, What);
        Result -> Result
    end;
start(_, {error, _} = Error, _) -> Error.

again({ok, Id, _} = Sent, Requests, {Job, _, _} = What) -> start(Sent, pack(Id, Requests, Job), What);
again({error, _} = Error, _, _) -> Error.

uses(Id, #{uses := Uses} = Head) -> Head#{uses := [Id | Uses]}.

options(Operands, #share{donated = Donated} = Share, Threads) ->
    #{lists => Operands, values => values(Share), threads => Threads, donated => Donated}.

head(#share{uses = Uses, takes = Takes}, First, Count) -> #{makes => {First, Count}, uses => Uses, takes => maps:keys(Takes)}.

places(#{places := Places}) -> tuple_to_list(Places).

%% The first of Count new numbers of values. A run's results have the same numbers on all ranks.
numbers(#{table := Table}, Count) -> tessera_cluster_programs:numbers(Table, Count).

%% The proxies of the results: a list for each partition of a rank.
proxies(Place, First, Partitions, Types) ->
    Numbered = lists:zip(lists:seq(0, length(Types) - 1), Types),
    [[tessera_cluster_proxy:make(Place, First + Partition * length(Types) + I, Type, Shape) || {I, {Type, Shape}} <- Numbered]
     || Partition <- lists:seq(0, Partitions - 1)].

%% Takes the donated values from their proxies; the run frees them. When another call has taken one of them before, the values taken here are
%% freed: their proxies cannot get them back.
take(Shares) ->
    Taken = [{Rank, Id, Queue, tessera_cluster_proxy:take(Ref)}
             || #share{rank = Rank, queue = Queue, takes = Takes} <- Shares, {Id, Ref} <- maps:to_list(Takes)],
    case [Other || {_, _, _, Other} <- Taken, Other =/= ok] of
        [] -> ok;
        _ ->
            free([{Rank, Id, Queue} || {Rank, Id, Queue, ok} <- Taken]),
            tessera_cluster_error:raise(tessera_cluster_error:new(failed_precondition, "the tensor was deallocated or donated", []))
    end.

%% Frees values that were taken from their proxies for a run that does not begin.
free(Values) -> lists:foreach(fun({Rank, Id, Queue}) -> tessera_cluster_queue:free(Queue, [{Rank, Id}]) end, Values).

%% The caller may hold proxies that are garbage. If they keep much memory of a rank in use, its garbage is collected now.
relieved(_, {error, _} = Error) -> Error;
relieved(Job, Results) ->
    case lists:any(fun tessera_cluster_proxy:is_full/1, places(Job)) of
        true -> tessera_cluster_proxy:relieve(places(Job));
        false -> ok
    end,
    Results.

%% ---- values

%% Copies tensors to the ranks: a list for each partition, all of the same length. Returns lists of proxies. An error is a rank's.
-spec put(tessera_cluster_state:cluster(), [[tessera:tensor()]]) -> [[tessera:tensor()]] | {error, map()}.
put(Cluster, Lists) ->
    #{links := Links} = Job = tessera_cluster_state:connections(Cluster),
    Shares = shared_out(Job, Lists, 0),
    Numbered = [{numbers(Job, maps:size(Share#share.new)), Operands, Share} || {Operands, Share} <- Shares],
    %% the proxies are made first: their values are freed with them, even if this call fails
    Results = lists:append([placed(Place, Made, Own)
                            || {Place, Made, Own} <- lists:zip3(places(Job), Numbered, by_rank(Lists, tuple_size(Links)))]),
    Requests = [{#{makes => {First, maps:size(Share#share.new)}}, {put, values(Share)}} || {First, _, Share} <- Numbered],
    case tessera_cluster_calls:each(Job, Requests) of
        {ok, _} -> relieved(Job, Results);
        {error, _} = Error -> Error
    end.

by_rank(Lists, Ranks) ->
    Each = length(Lists) div Ranks,
    [lists:sublist(Lists, Rank * Each + 1, Each) || Rank <- lists:seq(0, Ranks - 1)].

%% A tensor that is on the rank already remains the same proxy. Equal tensors that were sent once are one proxy.
placed(Place, {First, Operands, #share{new = New}}, Lists) ->
    Proxies = maps:from_list([{Index, tessera_cluster_proxy:make(Place, First + Index - 1, Type, Shape)}
                              || {Index, {Type, Shape, _, _}} <- maps:values(New)]),
    [[case Operand of
          {new, Index} -> maps:get(Index, Proxies);
          _ -> Tensor
      end || {Operand, Tensor} <- lists:zip(List, Own)] || {List, Own} <- lists:zip(Operands, Lists)].
