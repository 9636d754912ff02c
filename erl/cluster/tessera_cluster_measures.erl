%% @private Measures of runs on ranks, for the profile of the driver's process. A run that is measured makes one more value on each rank: the number of
%% partitions, and the program as tessera_nif:profile_stop/1 has it. The driver keeps a proxy of it until the end of the profile, then asks each rank
%% for the sums of each program.
-module(tessera_cluster_measures).
-include("tessera.hrl").
-export([value/2, collect/2, own/2, add/2]).

%% {Number, Runs, Ns, Longest, Bytes, Pieces, Rows}
-type program() :: tuple().

%% A proxy of the measures, so that the rank frees them when the driver drops it.
-spec value(tessera_cluster_proxy:place(), pos_integer()) -> reference().
value(Place, Id) ->
    #tessera{ref = Ref} = tessera_cluster_proxy:make(Place, Id, u8, {0}),
    Ref.

%% Waits for the runs, in the order of the list: {Id, Measures} of each. Measures of an earlier start of the ranks are lost.
-spec collect(tessera_cluster_state:cluster(), [{pos_integer(), [reference()]}]) -> tessera_platform:measured().
collect(Cluster, Runs) ->
    #{queue := Queue, links := Links} = Job = tessera_cluster_state:connections(Cluster),
    Noted = lists:zip(lists:seq(1, length(Runs)), [{Program, [tessera_cluster_proxy:info(Ref) || Ref <- Refs]} || {Program, Refs} <- Runs]),
    Current = [{Note, Program, Infos} || {Note, {Program, [{_, _, {_, _, Own, _, _}} | _] = Infos}} <- Noted, Own =:= Queue, length(Infos) =:= tuple_size(Links)],
    Ranks = lists:seq(1, tuple_size(Links)),
    Requests = [request([{Note, Program, lists:nth(Rank, Infos)} || {Note, Program, Infos} <- Current]) || Rank <- Ranks],
    Answer = tessera_cluster_calls:each(Job, Requests),
    ok = tessera_cluster_proxy:keep(Runs),
    case Answer of
        {ok, Results} when Current =/= [] ->
            [{_, _, Infos} | _] = Current,
            [#{rank => Rank, host => Host, programs => [{Note, Partitions, Program} || {Note, {Partitions, Program}} <- Programs]}
             || {{Rank, _, {_, _, _, _, Host}}, Programs} <- lists:zip(Infos, Results)];
        _ -> []
    end.

%% The values by program, with the first note of each.
request(Runs) ->
    Groups = lists:foldr(fun({Note, Program, {_, Id, _}}, All) ->
                                 {_, Others} = maps:get(Program, All, {Note, []}),
                                 All#{Program => {Note, [Id | Others]}}
                         end, #{}, Runs),
    {#{uses => [Id || {_, _, {_, Id, _}} <- Runs]}, {measured, lists:sort(maps:values(Groups))}}.

%% Of a rank without a driver: {Partitions, Programs} of its own runs, in the order of the list.
-spec own(non_neg_integer(), [{pos_integer(), [program()]}]) -> tessera_platform:measured().
own(Rank, Runs) ->
    Noted = [{Note, Partitions, Program} || {Note, {Partitions, Programs}} <- lists:zip(lists:seq(1, length(Runs)), Runs), Program <- Programs],
    Sums = lists:foldl(fun({Note, Partitions, Program}, All) ->
                               Number = element(1, Program),
                               case All of
                                   #{Number := {First, Each, Sum}} -> All#{Number := {First, Each, add(Program, {Each, Sum})}};
                                   #{} -> All#{Number => {Note, Partitions, Program}}
                               end
                       end, #{}, Noted),
    {ok, Host} = inet:gethostname(),
    [#{rank => Rank, host => unicode:characters_to_binary(Host), programs => lists:sort(maps:values(Sums))}].

%% The sums of a program's runs.
-spec add(program(), none | {pos_integer(), program()}) -> program().
add(Program, none) -> Program;
add({_, Runs, Ns, Longest, Bytes, Pieces, Rows}, {_, {Number, OtherRuns, OtherNs, OtherLongest, _, _, Others}}) ->
    {Number, Runs + OtherRuns, Ns + OtherNs, max(Longest, OtherLongest), Bytes, Pieces, [add_row(Row, Other) || {Row, Other} <- lists:zip(Rows, Others)]}.

add_row({Depth, Launch, Kind, Op, Ops, Type, Bytes, Flops, Count, Ns, Longest, Threads}, Other) ->
    {Depth, Launch, Kind, Op, Ops, Type, Bytes, Flops, Count + element(9, Other), Ns + element(10, Other), max(Longest, element(11, Other)),
     max(Threads, element(12, Other))}.
