%% @doc Profiles: where the time of a call went. {@link tessera:profile/2} makes one; the functions here print it as a table, as a trace for Chrome
%% and Perfetto, and as a flame graph. docs/profile.md has an example of each.
-module(tessera_profile).
-export([table/1, chrome_trace/1, flame_graph/1]).
-export([run/3]).
-export_type([profile/0, program/0, step/0, event/0, cluster/0, rank/0]).

%% Times in nanoseconds. `outside_ns' is `wall_ns' without runs, tracing and compiling. `speed' is the speed of this machine in a copy and in a
%% product of matrices. `events_left_out' and `uncounted' count the times that had no room.
-type profile() :: #{wall_ns := non_neg_integer(), run_ns := non_neg_integer(), trace_ns := non_neg_integer(), compile_ns := non_neg_integer(),
                     outside_ns := non_neg_integer(), runs := non_neg_integer(), programs := [program()], events := [event()],
                     speed := #{bytes_per_s := float(), flops_per_s := float()} | none,
                     events_left_out := non_neg_integer(), uncounted := non_neg_integer(), clusters := [cluster()]}.
%% A cluster whose ranks have run programs for the process. Of a cluster that was joined only this rank is known. The slowest rank computes for the longest
%% time, and the others wait for it. With one rank there is none.
-type cluster() :: #{cluster := atom() | pid(), ranks := [rank()], slowest := non_neg_integer() | none}.
%% Times of one partition, on average over the rank's partitions. `computing_ns' is `ns' without collectives. `waiting_ns' is the part of `collective_ns'
%% that the rank with the shortest time in the same collective does not have. The programs have the sums of all partitions of the rank. The times of
%% `events' are of this VM's clock. They are wrong by `clock_error_ns' at most. Where that is `unknown', the rank did not say its time, and there are no
%% events.
-type rank() :: #{rank := non_neg_integer(), host := binary(), partitions := pos_integer(), runs := non_neg_integer(), ns := non_neg_integer(),
                  computing_ns := non_neg_integer(), collective_ns := non_neg_integer(), waiting_ns := non_neg_integer(), programs := [program()],
                  events := [event()], events_left_out := non_neg_integer(), clock_error_ns := non_neg_integer() | unknown}.
%% `line' is the line of the user's code that called the program first. `bytes' and `pieces' are the memory of each run. On a rank, a program has
%% `partitions', the number of them that the rank has.
-type program() :: #{number := pos_integer(), runs := non_neg_integer(), ns := non_neg_integer(), longest_ns := non_neg_integer(), bytes := non_neg_integer(),
                     pieces := non_neg_integer(), line := {module(), atom(), arity(), string() | undefined, non_neg_integer()} | unknown, steps := [step()], partitions => pos_integer()}.
%% `ops' are the operations of the step's kernels, and `lines' the lines of the user's code that they come from, where known. `bytes' and `flops' are for one time, or 0 if they are not known. `waiting_ns' is of a collective on a
%% rank, for one partition.
-type step() :: #{depth := non_neg_integer(), launch := integer(), kind := binary(), op := binary(), ops := binary(), type := binary(), bytes := non_neg_integer(),
                  flops := non_neg_integer(), count := non_neg_integer(), ns := non_neg_integer(), longest_ns := non_neg_integer(), threads := non_neg_integer(),
                  lines := [tessera_places:line()], waiting_ns => non_neg_integer()}.
%% Begin and end are nanoseconds after the begin of the profile. `Program' and `Step' are positions in `programs' and `steps' from 1. Step 0 is the
%% whole run. A `wait' is a part of a collective on a rank: until the last partition has come.
-type event() :: {run, Program :: pos_integer(), Step :: non_neg_integer(), Begin :: integer(), End :: integer(), Threads :: pos_integer(), Partition :: non_neg_integer()}
               | {wait, Program :: pos_integer(), Step :: pos_integer(), Begin :: integer(), End :: integer(), Partition :: non_neg_integer()}
               | {trace | compile, Begin :: integer(), End :: integer()}.

-define(SPEED, {?MODULE, speed}).       % a persistent term
-define(EVENT, 32).                     % bytes

%% @private
-spec run(function(), [term()], tessera:profile_options()) -> {term(), profile()}.
run(F, Args, Options) ->
    {Most, Ranks, WithSpeed} = checked(F, Args, Options),
    Modules = tessera_tails:modules(),
    {Profile, Clock} = tessera_error:check(profile, [F, Args], tessera_nif:profile_start(Most)),
    Begun = erlang:monotonic_time(nanosecond),
    Measure = fun() ->
                      try apply(F, Args) of
                          Result -> {Result, tessera_run:clock(), tessera_nif:profile_stop(Profile)}
                      catch Class:Reason:Trace ->
                          _ = tessera_nif:profile_stop(Profile),
                          erlang:raise(Class, Reason, Trace)
                      end
              end,
    {{{Result, Ended, Measured}, Lines, Times, Notes}, Compiled} =
        tessera_places:recording(Modules, fun() -> tessera_run:profiled(Modules, Most, Measure) end),
    With = setelement(1, Measured, tessera_profile_lines:add(element(1, Measured), Profile, Modules)),
    Profiled = profile(With, Ended - Clock, Lines, [{Kind, From - Begun, To - Begun} || {Kind, From, To} <- Times], {Clock, WithSpeed}),
    Find = tessera_profile_lines:finder([Key || {_, _, _, Key} <- Notes], Compiled, Modules),
    collected({Result, Profiled#{clusters => clusters(lists:reverse(Notes), {Clock, Find}, {Most, Ranks})}}).

%% The code of modules that was read for lines is garbage of the caller, which may not collect it for long.
collected(Returned) ->
    true = erlang:garbage_collect(),
    Returned.

checked(F, Args, Options) ->
    Fail = fun(Format, Values) -> tessera_error:raise(profile, [F, Args, Options], invalid_argument, "profile: " ++ Format, Values) end,
    is_function(F) orelse Fail("expected a function, got ~ts", [tessera_error:show(F)]),
    tessera_type:is_proper(Args) andalso is_function(F, length(Args)) orelse
        Fail("expected a list of ~b arguments, got ~ts", [element(2, erlang:fun_info(F, arity)), tessera_error:show(Args)]),
    #{events := Most, speed := Speed, ranks := Ranks} =
        tessera_ops:options(profile, [F, Args, Options], Options, #{events => 100000, speed => true, ranks => own}),
    is_integer(Most) andalso Most >= 0 andalso Most =< 1000000 orelse Fail("events is ~ts, expected a number from 0 to 1000000", [tessera_error:show(Most)]),
    lists:member(Ranks, [own, all]) orelse Fail("ranks is ~ts, expected own or all", [tessera_error:show(Ranks)]),
    {Most, Ranks, Speed}.

profile({Programs, Events, LeftOut, Uncounted}, Wall, Lines, Times, {Clock, WithSpeed}) ->
    All = [program(Program, Lines) || Program <- Programs],
    Ran = lists:sum([Ns || #{ns := Ns} <- All]),
    Sum = fun(Kind) -> lists:sum([To - From || {Own, From, To} <- Times, Own =:= Kind]) end,
    {Traced, Compiled} = {Sum(trace), Sum(compile)},
    #{wall_ns => Wall, run_ns => Ran, trace_ns => Traced, compile_ns => Compiled, outside_ns => max(0, Wall - Ran - Traced - Compiled),
      runs => lists:sum([Runs || #{runs := Runs} <- All]), programs => All, speed => speed(WithSpeed),
      events => lists:reverse(Times) ++ events(Events, Clock), events_left_out => LeftOut, uncounted => Uncounted}.

program({Number, Runs, Ns, Longest, Bytes, Pieces, Rows}, Lines) ->
    #{number => Number, runs => Runs, ns => Ns, longest_ns => Longest, bytes => Bytes, pieces => Pieces, line => maps:get(Number, Lines, unknown),
      steps => summed([step(Row, [Line || {ok, Line} <- [maps:find({steps, Number}, Lines)]]) || Row <- Rows])}.

%% Rows of a rank may have no lines. Those of an operation that ran at once have the line that called it.
step(Row, Called) when tuple_size(Row) =:= 12 -> step(erlang:append_element(Row, []), Called);
step({Depth, Launch, Kind, Op, Ops, Type, Bytes, Flops, Count, Ns, Longest, Threads, Own}, Called) ->
    Lines = case Own of
                [] -> Called;
                _ -> Own
            end,
    #{depth => Depth, launch => Launch, kind => Kind, op => Op, ops => Ops, type => Type, bytes => Bytes, flops => Flops, count => Count, ns => Ns,
      longest_ns => Longest, threads => Threads, lines => Lines}.

%% A loop's time is the time of its steps, which follow it.
summed([#{kind := Kind, depth := Depth, ns := Ns} = Step | Rest]) when Kind =:= <<"while">>; Kind =:= <<"cond">> ->
    {Inner, Others} = lists:splitwith(fun(#{depth := Own}) -> Own > Depth end, Rest),
    Summed = summed(Inner),
    [Step#{ns := Ns + lists:sum([Own || #{depth := D, ns := Own} <- Summed, D =:= Depth + 1])} | Summed ++ summed(Others)];
summed([Step | Rest]) -> [Step | summed(Rest)];
summed([]) -> [].

events(<<Program:32/native, Row:32/native, Begin:64/signed-native, End:64/signed-native, Threads:32/native, Partition:32/native, Rest/binary>>, Clock) ->
    Step = case Row of 16#ffffffff -> 0; _ -> Row + 1 end,
    [{run, Program + 1, Step, Begin - Clock, End - Clock, max(1, Threads), Partition} | events(Rest, Clock)];
events(<<>>, _) -> [].

%% ---- clusters: what ranks have measured

clusters(Notes, How, What) ->
    [cluster(Client, [{{Line, Key}, Run} || {Own, Line, Run, Key} <- Notes, Own =:= Client], How, What) || Client <- lists:usort([element(1, Note) || Note <- Notes])].

cluster(Client, Noted, How, What) ->
    {Notes, Runs} = lists:unzip(Noted),
    Measured = try tessera_platform:measured(Client, Runs, What)
               catch error:{unavailable, _} -> []       % the ranks are gone, and the result is there
               end,
    Ranks = [rank(Rank, Notes, How) || #{programs := [_ | _]} = Rank <- Measured],
    Shortest = shortest([Times || #{times := Times} <- Ranks]),
    Rows = with_waits([maps:remove(times, waiting(Rank, Shortest)) || Rank <- Ranks]),
    #{cluster => Client, ranks => Rows, slowest => slowest(Rows)}.

rank(#{rank := Rank, host := Host, clock := Clock, programs := Given}, Notes, {Begun, Find}) ->
    Programs = [{Partitions, (noted(Program, note(Note, Notes), Find))#{partitions => Partitions}} || {Note, Partitions, Program, _} <- Given],
    Times = [[Ns div Partitions || #{kind := <<"collective">>, ns := Ns} <- Steps] || {Partitions, #{steps := Steps}} <- Programs],
    Ns = lists:sum([Own div Partitions || {Partitions, #{ns := Own}} <- Programs]),
    Collective = min(Ns, lists:sum(lists:append(Times))),
    {Events, LeftOut, Error} = events_of_rank([Kept || {_, _, _, Kept} <- Given], Clock, Begun),
    #{rank => Rank, host => Host, partitions => lists:max([Partitions || {Partitions, _} <- Programs]),
      runs => lists:sum([Runs div Partitions || {Partitions, #{runs := Runs}} <- Programs]), ns => Ns, computing_ns => Ns - Collective,
      collective_ns => Collective, waiting_ns => 0, programs => [Program || {_, Program} <- Programs], times => Times,
      events => Events, events_left_out => LeftOut, clock_error_ns => Error}.

noted(Program, {Line, Key}, Find) -> program(Find(Key, Program), #{element(1, Program) => Line}).

%% Another rank of a joined cluster may have noted runs that this one has not.
note(Note, Notes) when Note =< length(Notes) -> lists:nth(Note, Notes);
note(_, _) -> {unknown, none}.

%% The events of each program were noted as those of the first one of a profile.
events_of_rank(Kept, unknown, _) -> {[], lists:sum([LeftOut + byte_size(Bytes) div ?EVENT || {Bytes, LeftOut} <- Kept]), unknown};
events_of_rank(Kept, {Ahead, Error}, Begun) ->
    Events = [setelement(2, Event, Program) || {Program, {Bytes, _}} <- numbered(Kept), Event <- events(Bytes, Begun + Ahead)],
    {Events, lists:sum([LeftOut || {_, LeftOut} <- Kept]), Error}.

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

%% The shortest time of each collective over the ranks; none where ranks have not run the same programs.
shortest([First | Rest]) ->
    Form = [length(Own) || Own <- First],
    case lists:all(fun(Times) -> [length(Own) || Own <- Times] =:= Form end, Rest) of
        true -> lists:foldl(fun(Times, Least) -> lists:zipwith(fun(A, B) -> lists:zipwith(fun erlang:min/2, A, B) end, Times, Least) end, First, Rest);
        false -> none
    end;
shortest([]) -> none.

%% Also of each collective.
waiting(Rank, none) -> Rank;
waiting(#{times := Times, programs := Programs} = Rank, Shortest) ->
    Waits = lists:zipwith(fun(Own, Least) -> lists:zipwith(fun erlang:'-'/2, Own, Least) end, Times, Shortest),
    Rank#{waiting_ns := lists:sum(lists:append(Waits)),
          programs := [Program#{steps := waiting_steps(Steps, Own)} || {#{steps := Steps} = Program, Own} <- lists:zip(Programs, Waits)]}.

waiting_steps([#{kind := <<"collective">>} = Step | Steps], [Ns | Waits]) -> [Step#{waiting_ns => Ns} | waiting_steps(Steps, Waits)];
waiting_steps([Step | Steps], Waits) -> [Step | waiting_steps(Steps, Waits)];
waiting_steps([], []) -> [].

%% Adds the waits to the events. The N-th time of a collective is the same exchange on all partitions of all ranks, and the partition with the shortest
%% time in it has come last. Without the events of all partitions nothing is known of the collective.
with_waits(Ranks) ->
    Times = maps:groups_from_list(fun({{P, S, _, _}, _}) -> {P, S} end, lists:append([collective_times(Rank) || Rank <- Ranks])),
    Waits = lists:append([waits(Own, partitions_of(P, Ranks)) || {{P, _}, Own} <- maps:to_list(Times)]),
    [Rank#{events := lists:keysort(4, Events ++ [Wait || {Own, Wait} <- Waits, Own =:= Number])} || #{rank := Number, events := Events} = Rank <- Ranks].

collective_times(#{rank := Rank, programs := Programs, events := Events}) ->
    Known = list_to_tuple([list_to_tuple(Steps) || #{steps := Steps} <- Programs]),
    [{{P, S, Rank, Partition}, {Begin, End}}
     || {run, P, S, Begin, End, _, Partition} <- Events, S > 0, maps:get(kind, element(S, element(P, Known))) =:= <<"collective">>].

partitions_of(P, Ranks) -> lists:sum([Partitions || #{programs := Programs} <- Ranks, P =< length(Programs), #{partitions := Partitions} <- [lists:nth(P, Programs)]]).

%% Of one collective: {Rank, Wait}.
waits(Times, Partitions) ->
    Lanes = maps:groups_from_list(fun({Lane, _}) -> Lane end, fun({_, Time}) -> Time end, Times),
    All = [lists:sort(Own) || Own <- maps:values(Lanes)],
    case length(All) =:= Partitions andalso lists:usort([length(Own) || Own <- All]) of
        [_] ->
            Least = lists:foldl(fun(Own, Sum) -> lists:zipwith(fun({Begin, End}, Ns) -> min(End - Begin, Ns) end, Own, Sum) end,
                                [End - Begin || {Begin, End} <- hd(All)], All),
            [{Rank, {wait, P, S, Begin, End - Ns, Partition}}
             || {{P, S, Rank, Partition}, Own} <- maps:to_list(Lanes), {{Begin, End}, Ns} <- lists:zip(lists:sort(Own), Least), End - Ns > Begin];
        _ -> []
    end.

slowest([_, _ | _] = Ranks) ->
    [{_, Rank} | _] = lists:sort([{-Ns, Rank} || #{rank := Rank, computing_ns := Ns} <- Ranks]),
    Rank;
slowest(_) -> none.

%% ---- the machine's speed, measured once: bytes of a copy from memory to memory, and operations of a product

speed(false) -> none;
speed(true) ->
    case persistent_term:get(?SPEED, none) of
        none ->
            Speed = try #{bytes_per_s => bytes_per_s(), flops_per_s => flops_per_s()} catch error:_ -> none end,
            ok = persistent_term:put(?SPEED, Speed),
            Speed;
        Speed -> Speed
    end.

%% Much more than a cache holds.
bytes_per_s() ->
    Size = 64 bsl 20,
    X = tessera:zeros({Size}, u8),
    Copy = tessera:jit(fun(Y) -> tessera:add(Y, 1) end, #{device => {host, 0}}),
    2 * Size / (fastest(fun() -> Copy(X) end, 5) / 1.0e9).

flops_per_s() ->
    Size = 768,
    X = tessera:ones({Size, Size}, f32),
    Product = tessera:jit(fun(Y) -> tessera:dot(Y, Y) end, #{device => {host, 0}}),
    2.0 * Size * Size * Size / (fastest(fun() -> Product(X) end, 5) / 1.0e9).

%% Without the first one, which compiles.
fastest(F, Times) -> lists:min(tl([spent(F) || _ <- lists:seq(0, Times)])).

spent(F) ->
    Begun = erlang:monotonic_time(nanosecond),
    T = F(),
    Ended = erlang:monotonic_time(nanosecond),
    _ = tessera:deallocate(T),
    max(1, Ended - Begun).

%% ---- the table

%% @doc The profile as a table for the terminal: programs by their time, with their steps. The column `of best' compares the bytes of the step with
%% a copy, or its operations with a product of matrices; it shows the greater share.
%%
%% ```
%% 1> F = tessera:jit(fun(X) -> tessera:sum(tessera:exp(X)) end).
%% 2> {_, Profile} = tessera:profile(F, [tessera:iota({100000}, f32)]).
%% 3> {match, _} = re:run(tessera_profile:table(Profile), "^  launch +fusion +.*exp", [multiline]), ok.
%% ok
%% '''
-spec table(profile()) -> binary().
table(#{wall_ns := Wall, run_ns := Ran, trace_ns := Traced, compile_ns := Compiled, outside_ns := Outside, runs := Runs, programs := Programs} = Profile) ->
    Sorted = lists:sort(fun(#{ns := A}, #{ns := B}) -> A >= B end, Programs),
    text([io_lib:format("~ts in all: ~ts in ~b runs of ~b programs, ~ts tracing, ~ts compiling, ~ts outside~n",
                        [time(Wall), time(Ran), Runs, length(Programs), time(Traced), time(Compiled), time(Outside)]),
          speed_line(Profile), left_out(Profile),
          [program_table(Program, Wall, Profile) || Program <- Sorted],
          [cluster_table(Cluster) || Cluster <- maps:get(clusters, Profile, [])]]).

cluster_table(#{cluster := Name, ranks := []}) -> io_lib:format("~ncluster ~0tp: nothing is known of its runs~n", [Name]);
cluster_table(#{cluster := Name, ranks := Ranks, slowest := Slowest}) ->
    [io_lib:format("~ncluster ~0tp: ~b ranks~n  ~6ts ~-20ts ~10ts ~8ts ~9ts ~15ts ~15ts ~15ts~n",
                   [Name, length(Ranks), "rank", "host", "partitions", "runs", "time", "computing", "collectives", "waiting"]),
     [rank_line(Rank) || Rank <- Ranks],
     slowest_lines(Slowest, Ranks)].

%% The slowest rank's steps, or the only rank's.
slowest_lines(none, [Rank]) -> steps_of(Rank);
slowest_lines(Slowest, Ranks) ->
    [#{host := Host, computing_ns := Computing} = Rank] = [Rank || #{rank := Number} = Rank <- Ranks, Number =:= Slowest],
    Waits = [Waiting || #{rank := Number, waiting_ns := Waiting} <- Ranks, Number =/= Slowest],
    [io_lib:format("slowest: rank ~b on ~ts computes for ~ts; the others wait for ~ts on average~n",
                   [Slowest, Host, time(Computing), time(lists:sum(Waits) div length(Waits))]), steps_of(Rank)].

steps_of(#{rank := Number, ns := Each, partitions := Partitions, programs := Programs}) ->
    [["on rank ", integer_to_list(Number), ":", program_table(Program, Partitions * Each, #{speed => none})] || Program <- Programs].

rank_line(#{rank := Rank, host := Host, partitions := Partitions, runs := Runs, ns := Ns, computing_ns := Computing, collective_ns := Collective, waiting_ns := Waiting}) ->
    Part = fun(Own) -> [time(Own), io_lib:format(" ~5ts", [percent(Own, Ns)])] end,
    io_lib:format("  ~6b ~-20ts ~10b ~8b ~9ts ~15ts ~15ts ~15ts~n", [Rank, Host, Partitions, Runs, time(Ns), Part(Computing), Part(Collective), Part(Waiting)]).

speed_line(#{speed := none}) -> [];
speed_line(#{speed := #{bytes_per_s := Bytes, flops_per_s := Flops}}) ->
    io_lib:format("this machine: ~.1f GB/s in a copy, ~.1f Gflop/s in a product~n", [Bytes / 1.0e9, Flops / 1.0e9]).

left_out(#{events_left_out := 0, uncounted := 0}) -> [];
left_out(#{events_left_out := Events, uncounted := Uncounted}) ->
    io_lib:format("not in the trace: ~b times of steps; not counted: ~b~n", [Events, Uncounted]).

program_table(#{number := Number, runs := Runs, ns := Ns, longest_ns := Longest, bytes := Bytes, pieces := Pieces, line := Line, steps := Steps}, Wall, Profile) ->
    [io_lib:format("~nprogram ~b~ts: ~b runs, ~ts (~s of all), longest ~ts; memory of a run: ~ts in ~b pieces~n",
                   [Number, place(Line), Runs, time(Ns), percent(Ns, Wall), time(Longest), amount(Bytes), Pieces]),
     io_lib:format("  ~-32ts ~-20ts ~8ts ~9ts ~5ts ~9ts ~7ts ~9ts ~7ts  ~ts~n", ["step", "type", "count", "time", "", "longest", "threads", "GB/s", "of best", "ops [lines]"]),
     [step_line(Step, Ns, Profile) || Step <- Steps]].

place(unknown) -> "";
place({Module, Name, Arity, undefined, _}) -> io_lib:format(", called by ~ts:~ts/~b", [Module, Name, Arity]);
place({_, Name, Arity, File, Line}) -> io_lib:format(", called at ~ts:~b (~ts/~b)", [filename:basename(File), Line, Name, Arity]).

step_line(#{depth := Depth, kind := Kind, op := Op, ops := Ops, type := Type, count := Count, ns := Ns, longest_ns := Longest, threads := Threads} = Step, All, Profile) ->
    io_lib:format("  ~-32ts ~-20ts ~8b ~9ts ~5ts ~9ts ~7b ~9ts ~7ts  ~ts~n",
                  [[lists:duplicate(2 * Depth, $\s), io_lib:format("~-9ts ", [Kind]), Op], Type, Count, time(Ns), percent(Ns, All), time(Longest), Threads,
                   rate(Step), share(Step, Profile), [Ops, bracketed(Step)]]).

bracketed(#{lines := []}) -> "";
bracketed(#{lines := Lines}) -> [" [", places(Lines), "]"].

%% "file.erl:12, 15, other.erl:3". Of functions without lines their names.
places(Lines) -> lists:join(", ", places(lists:uniq([{file_of(Line), at(Line)} || Line <- Lines]), "")).

places([{File, At} | Rest], File) -> [At | places(Rest, File)];
places([{File, At} | Rest], _) -> [[File, At] | places(Rest, File)];
places([], _) -> [].

file_of({stablehlo, Name, undefined, _}) -> Name;
file_of({stablehlo, _, File, _}) -> [filename:basename(File), ":"];
file_of({Module, Name, Arity, undefined, _}) -> io_lib:format("~ts:~ts/~b", [Module, Name, Arity]);
file_of({_, _, _, File, _}) -> [filename:basename(File), ":"].

at({_, _, undefined, _}) -> "";
at({_, _, _, undefined, _}) -> "";
at(Line) -> integer_to_list(element(tuple_size(Line), Line)).

rate(#{bytes := 0}) -> "";
rate(#{ns := 0}) -> "";
rate(#{bytes := Bytes, count := Count, ns := Ns}) -> io_lib:format("~.1f", [Bytes * Count / Ns]).

%% The share of the step in the best speed of the machine, by bytes or by operations.
share(#{ns := Ns}, #{speed := Speed}) when Ns =:= 0; Speed =:= none -> "";
share(#{bytes := Bytes, flops := Flops, count := Count, ns := Ns}, #{speed := #{bytes_per_s := BytesBest, flops_per_s := FlopsBest}}) ->
    case max(Bytes * Count * 1.0e9 / Ns / BytesBest, Flops * Count * 1.0e9 / Ns / FlopsBest) of
        Share when Share > 0 -> io_lib:format("~b %", [round(100 * Share)]);
        _ -> ""
    end.

percent(_, 0) -> "";
percent(Ns, All) -> io_lib:format("~b %", [round(100 * Ns / All)]).

time(Ns) when Ns < 10000 -> io_lib:format("~b ns", [Ns]);
time(Ns) when Ns < 10000000 -> io_lib:format("~b us", [Ns div 1000]);
time(Ns) when Ns < 10000000000 -> io_lib:format("~b ms", [Ns div 1000000]);
time(Ns) -> io_lib:format("~b s", [Ns div 1000000000]).

amount(Bytes) when Bytes < 10000 -> io_lib:format("~b B", [Bytes]);
amount(Bytes) when Bytes < 10000000 -> io_lib:format("~b KB", [Bytes div 1000]);
amount(Bytes) -> io_lib:format("~b MB", [Bytes div 1000000]).

text(Text) -> unicode:characters_to_binary(Text).

%% ---- Chrome's trace

%% @doc The profile as a trace in JSON, which Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) show. It has one lane for tracing and compiling, and
%% one for runs and their steps; of a mesh, one for each partition. Each rank of a cluster is a process of the trace, with a lane for each of its
%% partitions. There a wait in a collective is a box above the collective.
-spec chrome_trace(profile()) -> binary().
chrome_trace(#{events := Events, programs := Programs} = Profile) ->
    Ranks = [Process || #{cluster := Name, ranks := Ranks} <- maps:get(clusters, Profile, []), #{events := Own, programs := Of} = Rank <- Ranks,
                        Process <- [{["cluster ", show(Name), ", ", rank_name(Rank)], Own, Of}]],
    Rows = [trace_process(Number, Process) || {Number, Process} <- numbered([{"this VM", Events, Programs} | Ranks])],
    iolist_to_binary([tessera_json:encode({object, [{<<"displayTimeUnit">>, <<"ns">>}, {<<"traceEvents">>, lists:append(Rows)}]}), $\n]).

show(Term) -> io_lib:format("~0tp", [Term]).

rank_name(#{rank := Number, host := Host}) -> ["rank ", integer_to_list(Number), " on ", Host].

trace_process(Process, {Name, Events, Programs}) ->
    Known = list_to_tuple([{Program, list_to_tuple(Steps)} || #{steps := Steps} = Program <- Programs]),
    Lanes = lists:usort([lane(Event) || Event <- Events]),
    [meta(<<"process_name">>, Process, 0, {<<"name">>, text(Name)}), meta(<<"process_sort_index">>, Process, 0, {<<"sort_index">>, Process})]
        ++ [meta(<<"thread_name">>, Process, Lane, {<<"name">>, text(lane_name(Lane))}) || Lane <- Lanes] ++ [trace_event(Event, Known, Process) || Event <- Events].

lane({run, _, _, _, _, _, Partition}) -> Partition + 1;
lane({wait, _, _, _, _, Partition}) -> Partition + 1;
lane(_) -> 0.

lane_name(0) -> "tracing and compiling";
lane_name(Lane) -> ["runs, partition ", integer_to_list(Lane - 1)].

meta(What, Process, Lane, Arg) ->
    {object, [{<<"ph">>, <<"M">>}, {<<"pid">>, Process}, {<<"tid">>, Lane}, {<<"name">>, What}, {<<"args">>, {object, [Arg]}}]}.

trace_event({Kind, Begin, End}, _, Process) -> complete(atom_to_list(Kind), "erlang", {Process, 0}, {Begin, End}, []);
trace_event({wait, _, _, Begin, End, _} = Event, _, Process) -> complete("wait", "wait", {Process, lane(Event)}, {Begin, End}, []);
trace_event({run, P, 0, Begin, End, _, _} = Event, Known, Process) ->
    {#{number := Number, line := Line}, _} = element(P, Known),
    complete(["program ", integer_to_list(Number)], "run", {Process, lane(Event)}, {Begin, End}, [{<<"called">>, text(place(Line))}]);
trace_event({run, P, S, Begin, End, Threads, _} = Event, Known, Process) ->
    {_, Steps} = element(P, Known),
    #{kind := Kind, ops := Ops, type := Type, bytes := Bytes, lines := Lines} = Step = element(S, Steps),
    Category = case Kind of <<"collective">> -> "collective"; _ -> "step" end,
    complete(label(Step), Category, {Process, lane(Event)}, {Begin, End},
             [{<<"lines">>, text(places(Lines))} || Lines =/= []] ++ [{<<"ops">>, text(Ops)}, {<<"type">>, text(Type)}, {<<"bytes">>, Bytes}, {<<"threads">>, Threads}]).

%% Chrome's times are microseconds, with fractions.
complete(Name, Category, {Process, Lane}, {Begin, End}, Args) ->
    {object, [{<<"ph">>, <<"X">>}, {<<"pid">>, Process}, {<<"tid">>, Lane}, {<<"cat">>, text(Category)}, {<<"name">>, text(Name)},
              {<<"ts">>, Begin / 1000}, {<<"dur">>, max(0, End - Begin) / 1000}, {<<"args">>, {object, Args}}]}.

label(#{kind := Kind, op := Op, ops := <<>>}) -> [Kind, " ", Op];
label(#{kind := Kind, ops := Ops}) -> [Kind, " ", Ops].

%% ---- the flame graph

-define(WIDTH, 1200).
-define(BOX, 18).
-define(GAP, 6).      % between the boxes of two ranks

%% @doc The profile as a flame graph in SVG. The width of a box is its share of the time. The lowest box is the call. Above it are programs, tracing and
%% compiling, and above a program are its steps. Above all these, each rank of a cluster has boxes of its own, of one partition on average. The
%% width of these is a share of the longest rank's time. A wait is a box above its collective. A browser shows the numbers of a box under the pointer.
-spec flame_graph(profile()) -> binary().
flame_graph(#{wall_ns := Wall} = Profile) ->
    Ranks = [rank_root(Rank) || #{ranks := Ranks} <- maps:get(clusters, Profile, []), Rank <- Ranks],
    Longest = lists:max([1 | [Ns || {_, Ns, _} <- Ranks]]),
    Roots = [{root(Profile), Wall, none} | [{Root, Ns, Longest} || {_, Ns, _} = Root <- Ranks]],
    Heights = [(deepest(Root) + 1) * ?BOX || {Root, _, _} <- Roots],
    Height = lists:sum(Heights) + (length(Roots) - 1) * ?GAP,
    {Boxes, _} = lists:mapfoldl(fun({Root, Own}, Floor) -> {root_boxes(Root, Floor - ?BOX), Floor - Own - ?GAP} end, Height, lists:zip(Roots, Heights)),
    text([io_lib:format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"~b\" height=\"~b\" viewBox=\"0 0 ~b ~b\" font-family=\"monospace\" font-size=\"11\">~n",
                        [?WIDTH, Height, ?WIDTH, Height]),
          Boxes, "</svg>\n"]).

%% The call has the whole width, and so has the rank whose runs took the longest time.
root_boxes({{_, Ns, _} = Root, All, none}, Y) -> root_boxes({Root, All, Ns}, Y);
root_boxes({{_, Ns, _} = Root, All, Longest}, Y) -> box(Root, 0.0, ?WIDTH * Ns / Longest, Y, All).

root(#{wall_ns := Wall, trace_ns := Traced, compile_ns := Compiled, outside_ns := Outside, programs := Programs}) ->
    Parts = [program_box(Program) || Program <- Programs] ++
        [{Name, Ns, []} || {Name, Ns} <- [{<<"tracing">>, Traced}, {<<"compiling">>, Compiled}, {<<"outside">>, Outside}]],
    root(<<"profile">>, Wall, Parts).

rank_root(#{ns := Ns, programs := Programs} = Rank) -> root(text(rank_name(Rank)), Ns, [program_box(Program) || Program <- Programs]).

root(Name, Ns, Parts) -> {Name, max(1, max(Ns, lists:sum([Own || {_, Own, _} <- Parts]))), lists:sort(fun larger/2, Parts)}.

larger({_, A, _}, {_, B, _}) -> A >= B.

program_box(#{number := Number, line := Line, ns := Ns, steps := Steps} = Program) ->
    Partitions = maps:get(partitions, Program, 1),
    {text(["program ", integer_to_list(Number), place(Line)]), Ns div Partitions, lists:sort(fun larger/2, nested(Steps, Partitions))}.

%% Steps with a greater depth belong to the step before them.
nested([#{depth := Depth, ns := Ns} = Step | Rest], Partitions) ->
    {Inner, Others} = lists:splitwith(fun(#{depth := Own}) -> Own > Depth end, Rest),
    Waits = [{<<"wait">>, Wait, []} || #{waiting_ns := Wait} <- [Step], Wait > 0],
    [{text([label(Step), bracketed(Step)]), Ns div Partitions, Waits ++ nested(Inner, Partitions)} | nested(Others, Partitions)];
nested([], _) -> [].

deepest({_, _, []}) -> 0;
deepest({_, _, Inner}) -> 1 + lists:max([deepest(Box) || Box <- Inner]).

%% Boxes that are narrower than a third of a pixel are left out.
box({_, _, _}, _, Width, _, _) when Width < 0.3 -> [];
box({Name, Ns, Inner}, X, Width, Y, Wall) ->
    Shown = string:slice(Name, 0, max(0, trunc(Width / 6.8) - 1)),
    [io_lib:format("<g><title>~ts: ~ts, ~ts of all</title><rect x=\"~.1f\" y=\"~b\" width=\"~.1f\" height=\"~b\" fill=\"~s\" stroke=\"white\"/>"
                   "<text x=\"~.1f\" y=\"~b\">~ts</text></g>~n",
                   [tessera_xml:escape(Name), time(Ns), percent(Ns, max(1, Wall)), X, Y, Width, ?BOX - 1, colour(Name), X + 3, Y + ?BOX - 6, tessera_xml:escape(Shown)]),
     boxes(Inner, X, Width / max(1, Ns), Y - ?BOX, Wall)].

boxes([{_, Ns, _} = Box | Rest], X, Scale, Y, Wall) -> [box(Box, X, Ns * Scale, Y, Wall) | boxes(Rest, X + Ns * Scale, Scale, Y, Wall)];
boxes([], _, _, _, _) -> [].

%% The same for the same name.
colour(Name) ->
    Hash = erlang:phash2(Name, 60),
    io_lib:format("hsl(~b,70%,70%)", [Hash]).
