%% @private Measures of runs on ranks, for the profile of the driver's process. A run that is measured makes one more value on each rank: the number of
%% partitions, and what tessera_nif:profile_stop/1 has returned. The driver keeps a proxy of it until the end of the profile, then asks each rank
%% for the sums of each program, and for the times of its steps one by one, the *events*.
%%
%% Events have the time of the rank's clock. The driver asks a rank for the time several times, and uses the answer that has come fastest. The rank
%% has read its clock between question and answer. The middle between them is wrong by half of this time at most. Ranks without a driver exchange messages
%% (tessera_cluster_spmd). No rank gets all messages of an exchange before every rank has begun it, which bounds how far apart two clocks are.
-module(tessera_cluster_measures).
-include("tessera.hrl").
-export([value/2, collect/3, own/3, merged/2, apart/2]).
-export_type([times/0]).

%% How often a rank is asked for the time, and the milliseconds for one answer.
-define(QUESTIONS, 8).
-define(ANSWER, 5000).
-define(EVENT, 32).   % bytes

%% {Number, Runs, Ns, Longest, Bytes, Pieces, Rows}
-type program() :: tuple().
%% As tessera_nif:profile_stop/1 returns them.
-type measures() :: {[program()], Events :: binary(), LeftOut :: non_neg_integer(), Uncounted :: non_neg_integer()}.
%% By the clock of a rank, when it has begun an exchange, and when it had all messages.
-type times() :: [{Begun :: integer(), Ended :: integer()}].

%% A proxy of the measures, so that the rank frees them when the driver drops it.
-spec value(tessera_cluster_proxy:place(), pos_integer()) -> reference().
value(Place, Id) ->
    #tessera{ref = Ref} = tessera_cluster_proxy:make(Place, Id, u8, {0}),
    Ref.

%% Waits for the runs, in the order of the list: {Id, Measures} of each. Measures of an earlier start of the ranks are lost.
-spec collect(tessera_cluster_state:cluster(), [{pos_integer(), [reference()]}], non_neg_integer()) -> tessera_platform:measured().
collect(Cluster, Runs, Events) ->
    #{queue := Queue, links := Links} = Job = tessera_cluster_state:connections(Cluster),
    Noted = lists:zip(lists:seq(1, length(Runs)), [{Program, [tessera_cluster_proxy:info(Ref) || Ref <- Refs]} || {Program, Refs} <- Runs]),
    Current = [{Note, Program, Infos} || {Note, {Program, [{_, _, {_, _, Own, _, _}} | _] = Infos}} <- Noted, Own =:= Queue, length(Infos) =:= tuple_size(Links)],
    Ranks = lists:seq(1, tuple_size(Links)),
    Each = Events div tuple_size(Links),
    Requests = [request([{Note, Program, lists:nth(Rank, Infos)} || {Note, Program, Infos} <- Current], Each) || Rank <- Ranks],
    Answer = tessera_cluster_calls:each(Job, Requests),
    ok = tessera_cluster_proxy:keep(Runs),
    case Answer of
        {ok, Results} when Current =/= [] ->
            [{_, _, Infos} | _] = Current,
            [#{rank => Rank, host => Host, clock => asked(Link),
               programs => [{Note, Partitions, Program, Kept} || {Note, {Partitions, Program, Kept}} <- Programs]}
             || {{Rank, _, {_, _, _, Link, Host}}, Programs} <- lists:zip(Infos, Results)];
        _ -> []
    end.

%% The values by program, with the first note of each.
request([], _) -> {#{}, noop};
request(Runs, Events) ->
    Groups = lists:foldr(fun({Note, Program, {_, Id, _}}, All) ->
                                 {_, Others} = maps:get(Program, All, {Note, []}),
                                 All#{Program => {Note, [Id | Others]}}
                         end, #{}, Runs),
    {#{uses => [Id || {_, _, {_, Id, _}} <- Runs]}, {measured, lists:sort(maps:values(Groups)), Events}}.

%% Of a rank without a driver: of its own runs, in the order of the list.
-spec own(non_neg_integer(), [{pos_integer(), measures()}], non_neg_integer()) -> map().
own(Rank, Runs, Events) ->
    Noted = lists:zip(lists:seq(1, length(Runs)), Runs),
    Groups = lists:foldr(fun({Note, {_, {[Program | _], _, _, _}} = Run}, All) ->
                                 {_, Others} = maps:get(element(1, Program), All, {Note, []}),
                                 All#{element(1, Program) => {Note, [Run | Others]}};
                            (_, All) -> All
                         end, #{}, [{Note, Run} || {Note, Run} <- Noted]),
    {ok, Host} = inet:gethostname(),
    Programs = [{Note, Partitions, Program, Kept}
                || {Note, Of} <- lists:sort(maps:values(Groups)), {Partitions, Program, Kept} <- [merged(Of, Events div map_size(Groups))]],
    #{rank => Rank, host => unicode:characters_to_binary(Host), clock => {0, 0}, programs => Programs}.

%% The sums of a program's runs, with so many of their events; none without a run.
-spec merged([{pos_integer(), measures()}], non_neg_integer()) -> {pos_integer(), program(), {binary(), non_neg_integer()}} | none.
merged(Runs, Most) ->
    Whole = [{Partitions, Program, Events, LeftOut} || {Partitions, {[Program], Events, LeftOut, _}} <- Runs],
    case Whole of
        [] -> none;
        [{Partitions, First, _, _} | Others] ->
            Sum = lists:foldl(fun({_, Program, _, _}, Own) -> add(Program, Own) end, First, Others),
            All = iolist_to_binary([Events || {_, _, Events, _} <- Whole]),
            Kept = binary:part(All, 0, min(byte_size(All), Most * ?EVENT)),
            {Partitions, Sum, {Kept, lists:sum([LeftOut || {_, _, _, LeftOut} <- Whole]) + (byte_size(All) - byte_size(Kept)) div ?EVENT}}
    end.

add({_, Runs, Ns, Longest, Bytes, Pieces, Rows}, {Number, OtherRuns, OtherNs, OtherLongest, _, _, Others}) ->
    {Number, Runs + OtherRuns, Ns + OtherNs, max(Longest, OtherLongest), Bytes, Pieces, [add_row(Row, Other) || {Row, Other} <- lists:zip(Rows, Others)]}.

add_row({Depth, Launch, Kind, Op, Ops, Type, Bytes, Flops, Count, Ns, Longest, Threads}, Other) ->
    {Depth, Launch, Kind, Op, Ops, Type, Bytes, Flops, Count + element(9, Other), Ns + element(10, Other), max(Longest, element(11, Other)),
     max(Threads, element(12, Other))}.

%% ---- clocks

asked(Link) ->
    Answers = [between(fun() -> tessera_cluster_calls:one(Link, clock, ?ANSWER) end) || _ <- lists:seq(1, ?QUESTIONS)],
    case [{Took, Middle, Ns} || {Took, Middle, {ok, Ns}} <- Answers] of
        [] -> unknown;
        Known -> best(Known)
    end.

between(F) ->
    Begun = tessera_run:clock(),
    Answer = F(),
    Ended = tessera_run:clock(),
    {Ended - Begun, (Begun + Ended) div 2, Answer}.

best(Answers) ->
    {Took, Middle, Ns} = lists:min(Answers),
    {Ns - Middle, (Took + 1) div 2}.

%% How far the other rank's clock is ahead of this one's, by the same exchanges. The other one ends an exchange after this one has begun it, and the
%% other way round.
-spec apart(times(), times()) -> {integer(), non_neg_integer()}.
apart(Own, Other) ->
    Pairs = lists:zip(Own, Other),
    Most = lists:min([Ended - Begun || {{Begun, _}, {_, Ended}} <- Pairs]),
    Least = lists:max([Begun - Ended || {{_, Ended}, {Begun, _}} <- Pairs]),
    {(Most + Least) div 2, max(0, Most - Least + 1) div 2}.
