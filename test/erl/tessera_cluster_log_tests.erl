%% The output of ranks in the log of the driver: events, their order, and the limit.
-module(tessera_cluster_log_tests).
-include_lib("eunit/include/eunit.hrl").
-export([log/2]).

-define(WITHIN, 240000).

%% As a handler of the log.
log(#{level := notice, msg := {Format, Values}}, #{config := #{to := To}}) ->
    To ! {logged, unicode:characters_to_list(io_lib:format(Format, Values))},
    ok;
log(_, _) -> ok.

%% The events of a process that gets lines from F, after its end, and the events before it that Then waits for.
events(F) -> events(F, fun(_) -> [] end).

events(F, Then) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}, level => notice}),
    try
        Self = self(),
        {Launcher, Monitor} = spawn_monitor(fun() ->
                                                    Log = tessera_cluster_log:start(),
                                                    Self ! {self(), Log},
                                                    F(Log)
                                            end),
        Gone = receive {Launcher, Log} -> monitor(process, Log) end,
        First = Then(Launcher),
        receive {'DOWN', Monitor, process, Launcher, Reason} -> ?assertEqual(normal, Reason) end,
        receive {'DOWN', Gone, process, _, Why} -> ?assertEqual(normal, Why), First ++ logged() after ?WITHIN -> error(no_end) end
    after
        ok = logger:remove_handler(?MODULE)
    end.

logged() -> receive {logged, Text} -> [Text | logged()] after 0 -> [] end.

lines(Log, Source, Lines) -> [ok = tessera_cluster_log:line(Log, Source, Line) || Line <- Lines].

%% Lines of one source in a row are one event, with the rank in front; nothing is lost at the end.
together_test() ->
    ?assertEqual(["rank 1: a\nb", "rank 0: c", "mpirun: d", "rank 1: " ++ [16#e9, 16#2713] ++ "\n" ++ [16#ff]],
                 events(fun(Log) ->
                                lines(Log, 1, [<<"a">>, <<"b">>]),
                                lines(Log, 0, [<<"c">>]),
                                lines(Log, "mpirun", [<<"d">>]),
                                lines(Log, 1, [<<16#e9/utf8, 16#2713/utf8>>, <<255>>])
                        end)),
    ?assertEqual([], events(fun(_) -> ok end)).

%% mpirun puts tags into lines.
tags_test() ->
    [?assertEqual(Parts, tessera_cluster_output:parse(launcher, Line))
     || {Line, Parts} <- [{<<"plain">>, [{launcher, <<"plain">>}]}, {<<>>, [{launcher, <<>>}]}, {<<"[1,0]<stdout>:">>, [{0, <<>>}]},
                          {<<"[1,12]<stderr>:oops">>, [{12, <<"oops">>}]}, {<<"[prterun-a-1@1,3]<stdout>: oops">>, [{3, <<"oops">>}]},
                          {<<"[1,1]<stderr>:sh: [1,1]<stderr>:not found[1,1]<stderr>:">>, [{1, <<"sh: not found">>}]},
                          {<<"[1,0]<stdout>:no end[1,1]<stdout>:other">>, [{0, <<"no end">>}, {1, <<"other">>}]},
                          {<<"[a list, 1] [1,2]">>, [{launcher, <<"[a list, 1] [1,2]">>}]}]],
    ?assertEqual([{2, <<"rest">>}], tessera_cluster_output:parse(2, <<"rest">>)).

%% A warning that a race in mpirun causes is not one for the reader; the same call that failed otherwise is.
harmless_test() ->
    Warning = fun(Component, Error) ->
                      <<"[host-a:23349] ", Component/binary, ": Warning: setpgid(23357,23357) failed in parent with errno=", Error/binary>>
              end,
    ?assert(tessera_cluster_output:is_harmless(Warning(<<"plm:rsh">>, <<"Permission denied(13)">>))),
    ?assert(tessera_cluster_output:is_harmless(Warning(<<"plm:ssh">>, <<"Permission denied(13)">>))),
    ?assertNot(tessera_cluster_output:is_harmless(Warning(<<"plm:rsh">>, <<"Operation not permitted(1)">>))),
    ?assertNot(tessera_cluster_output:is_harmless(<<"ssh: connect to host host-b port 22: Permission denied(13)">>)).

%% Of many lines most are left out; the log says how many, and has the first ones.
limit_test() ->
    Count = 30000,
    Began = erlang:monotonic_time(millisecond),
    Events = events(fun(Log) -> lines(Log, 3, [integer_to_binary(I) || I <- lists:seq(1, Count)]) end),
    Seconds = (erlang:monotonic_time(millisecond) - Began) / 1000,
    Kept = lists:append([string:split(Lines, "\n", all) || "rank 3: " ++ Lines <- Events]),
    Left = [list_to_integer(Number) || "tessera_cluster: " ++ Text <- Events, [Number, _] <- [string:split(Text, " lines of ranks (")]],
    ?assertEqual(Count, length(Kept) + lists:sum(Left)),
    ?assert(length(Kept) >= 1000 andalso length(Kept) =< 1000 + 100 * (Seconds + 1)),
    ?assertEqual([integer_to_list(I) || I <- lists:seq(1, 1000)], lists:sublist(Kept, 1000)),
    %% by bytes, too
    Long = binary:copy(<<"x">>, 900),
    Large = events(fun(Log) -> lines(Log, 3, [Long || _ <- lists:seq(1, 3000)]) end),
    ?assert(lists:any(fun(Text) -> lists:prefix("tessera_cluster: ", Text) end, Large)).

%% ---- of clusters

cluster_test_() ->
    [{"output of ranks by " ++ lists:concat([Launcher]), {timeout, 120, fun() -> printed(Launcher) end}} || Launcher <- tessera_cluster_tests:launchers()]
        ++ [{"output of mpirun", {timeout, 120, tessera_test:in_folder(fun of_mpirun/1)}}].

%% All output of a rank is in the log here, with the rank in front.
printed(Launcher) ->
    {ok, _} = application:ensure_all_started(tessera),
    with_log(fun() ->
        {ok, Cluster} = tessera_cluster:start_link(#{ranks => 2, threads => 1, mpirun => Launcher}),
        [ok, ok] = tessera_cluster:map(Cluster, fun(Rank) ->
            io:format("a line of ~b~nand another~n", [Rank]),
            io:format(standard_error, "an error of ~b~n", [Rank]),
            logger:warning("a warning of ~b", [Rank]),
            _ = spawn(fun() -> error({a_crash_of, Rank}) end),
            io:format("~s~n", [lists:duplicate(2500, $x)]),
            ok
        end),
        Long = lists:duplicate(500, $x),
        seen([{lists:concat(["rank ", Rank, ": "]), Text}
              || Rank <- [0, 1], Text <- [lists:concat(["a line of ", Rank]), "and another", lists:concat(["an error of ", Rank]),
                                          lists:concat(["a warning of ", Rank]), lists:concat(["{a_crash_of,", Rank, "}"]), Long]]),
        ok = tessera_cluster:stop(Cluster)
    end).

of_mpirun(Folder) ->
    {ok, _} = application:ensure_all_started(tessera),
    with_log(fun() ->
        Script = tessera_cluster_tests:fake(Folder, "speaks", ["echo a word of mpirun; echo another >&2\n", tessera_cluster_tests:ranks(2, "")]),
        {ok, Cluster} = tessera_cluster:start_link(#{ranks => 2, threads => 1, mpirun => Script, directory => Folder}),
        seen([{"mpirun: ", "a word of mpirun"}, {"mpirun: ", "another"}]),
        ok = tessera_cluster:stop(Cluster)
    end).

with_log(F) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}, level => notice}),
    try F()
    after ok = logger:remove_handler(?MODULE)
    end.

%% Waits until each text was in an event that begins so.
seen([]) -> ok;
seen(Missing) ->
    receive {logged, Event} ->
            seen([Pair || {Begin, Text} = Pair <- Missing, not (lists:prefix(Begin, Event) andalso string:find(Event, Text) =/= nomatch)])
    after ?WITHIN -> error({missing, Missing})
    end.

%% The output of a rank, and a note about omitted lines, are in the log while the rank lives and prints nothing more.
soon_test() ->
    Flood = fun(Log) ->
                    lines(Log, 0, [<<"first">>]),
                    receive more -> lines(Log, 0, [<<"x">> || _ <- lists:seq(1, 20000)]) end,
                    receive stop -> ok end
            end,
    events(Flood, fun(Launcher) ->
                          receive {logged, "rank 0: first"} -> Launcher ! more after ?WITHIN -> error(late) end,
                          receive {logged, "tessera_cluster: " ++ _} -> Launcher ! stop after ?WITHIN -> error(late) end,
                          []
                  end).
