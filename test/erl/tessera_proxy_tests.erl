%% Tensors that stay on the ranks of a cluster. Ranks are started directly where no program runs on a mesh, else by mpirun.
-module(tessera_proxy_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_cluster_tests, [runs_of/1]).
-import(tessera_test, [in_folder/1, until/1, until_freed/1]).
-export([hold/0, use/1, many/1]).

%% Milliseconds for steps that take far less on an idle machine.
-define(WITHIN, 240000).

proxy_test_() ->
    [{Name, {timeout, 120, fun() -> with(none, Options, Test) end}}
     || {Name, Options, Test} <- [{"put", #{devices => 2}, fun put/2}, {"map", #{}, fun map/2}, {"use", #{}, fun use/2},
                                  {"other processes", #{}, fun other_processes/2}, {"memory", #{}, fun memory/2}, {"a free alone", #{}, fun free_alone/2},
                                  {"pressure", #{memory_limit => 1 bsl 22}, fun pressure/2}, {"lost", #{}, fun lost/2},
                                  {"a reply that is not sent", #{}, fun not_sent/2},
                                  {"save", #{devices => 2}, fun save/2}, {"interrupted saves", #{}, fun interrupted/2}, {"damaged", #{}, fun damaged/2}, {"full disk", #{}, fun full_disk/2}]].

run_test_() ->
    [{Name, {timeout, 120, fun() -> with("mpirun", Options, Test) end}}
     || has_mpirun(),
        {Name, Options, Test} <- [{"runs", #{devices => 2}, fun runs/2}, {"donated", #{}, fun donated/2}, {"pipeline", #{}, fun pipeline/2},
                                  {"errors", #{memory_limit => 1 bsl 24}, fun errors/2}, {"cancelled", #{}, fun cancelled/2},
                                  {"dropped", #{}, fun dropped/2},
                                  {"concurrent", #{ranks => 4}, fun concurrent/2},
                                  {"in a tree", #{ranks => 4, tree => {2, 2}}, fun concurrent/2},
                                  {"programs", #{}, fun programs/2}, {"profiled", #{devices => 2}, fun profiled/2}, {"few programs", #{}, fun few_programs/2}]]
        ++ [{"compiled once", {timeout, 120, in_folder(fun compiled_once/1)}} || has_mpirun()].

has_mpirun() ->
    case {os:find_executable("mpirun"), os:getenv("TESSERA_CI")} of
        {false, Ci} when Ci =:= false; Ci =:= "" ->
            io:format(user, "programs on tensors of ranks are not tested: no mpirun here (./setup --mpi)~n", []),
            false;
        _ -> true
    end.

with(Launcher, Options, Test) ->
    {ok, _} = application:ensure_all_started(tessera),
    {ok, Cluster} = tessera_cluster:start_link(maps:merge(#{ranks => 2, threads => 1, mpirun => Launcher}, Options)),
    try Test(Cluster, Options)
    after is_process_alive(Cluster) andalso tessera_cluster:stop(Cluster)
    end.

live(Cluster) -> [Live || #{memory := #{live := Live}} <- maps:get(ranks, tessera_cluster:info(Cluster))].

%% ---- profiles

%% Two programs, one of them twice with results that are dropped at once: the ranks' counts and sums, by program.
profiled(Cluster, _) ->
    Jit = fun(F, Mesh) -> tessera:shard_jit(F, Mesh, #{client => Cluster, input_shardings => [#{0 => [0]}]}) end,
    Sum = Jit(fun(X) ->
                      erlang:put({?MODULE, sum}, ?LINE + 1),
                      S = tessera:sum(X),
                      tessera:add(X, S)
              end, #{shape => {4}}),
    Twice = Jit(fun(X) -> tessera:multiply(X, 2) end, #{shape => {2}}),
    Lists = fun(Count) -> [[tessera:iota({100}, f32)] || _ <- lists:seq(1, Count)] end,
    _ = Sum(Lists(4)),
    Work = fun() ->
                   _ = Sum(Lists(4)),
                   _ = Twice(Lists(2)),
                   [Own, _, _, _] = Sum(Lists(4)),
                   hd(tessera:to_list(Own))
           end,
    {19800.0, #{clusters := [#{cluster := Cluster, ranks := Ranks, slowest := Slowest}]} = Profile} = tessera:profile(Work, [], #{speed => false}),
    ?assertMatch([#{rank := 0}, #{rank := 1}], Ranks),
    ?assert(lists:member(Slowest, [0, 1])),
    [begin
         #{partitions := 2, runs := 3, ns := Ns, computing_ns := Computing, collective_ns := Collective, waiting_ns := Waiting, programs := Programs} = Rank,
         [#{runs := 4, line := Line, steps := Steps}, #{runs := 1}] = lists:sort(fun(#{runs := A}, #{runs := B}) -> A >= B end, Programs),
         ?assertMatch({?MODULE, _, _, _, _}, Line),
         ?assertMatch([#{count := 4, op := <<"all_reduce_sum">>}], [Step || #{kind := <<"collective">>} = Step <- Steps]),
         %% each step has its lines, although the program was compiled before the profile
         [#{lines := [{?MODULE, _, _, _, At}]}] = [Step || #{kind := <<"collective">>} = Step <- Steps],
         ?assertEqual(get({?MODULE, sum}), At),
         ?assertEqual([], [Step || #{launch := -1, lines := []} = Step <- Steps]),
         ?assertEqual(Ns, Computing + Collective),
         ?assert(Ns > 0 andalso Collective > 0 andalso Waiting =< Collective),
         #{events := Events, events_left_out := 0, clock_error_ns := Error} = Rank,
         Counted = lists:sort([{P, length(Own)} || {P, Own} <- maps:to_list(maps:groups_from_list(fun({run, _, _, _, _, _, P}) -> P end,
                                                                                                 [E || {run, _, 0, _, _, _, _} = E <- Events]))]),
         ?assertEqual(case Rank of #{rank := 0} -> [{0, 3}, {1, 2}]; #{rank := 1} -> [{1, 1}, {2, 2}, {3, 2}] end, Counted),
         %% the ranks have the clock of this VM, and all runs were within the profile
         #{wall_ns := Wall} = Profile,
         [?assert(Begin >= -Error andalso Begin =< End andalso End =< Wall + Error) || {run, _, _, Begin, End, _, _} <- Events]
     end || Rank <- Ranks],
    ?assertMatch({_, _}, binary:match(tessera_profile:table(Profile), <<"slowest: rank ">>)),
    %% the number of events has a bound, and omitted events are counted
    {_, #{clusters := [#{ranks := Few}]}} = tessera:profile(Work, [], #{speed => false, events => 20}),
    [?assert(length([E || {run, _, _, _, _, _, _} = E <- Events]) =< 10 andalso LeftOut > 0) || #{events := Events, events_left_out := LeftOut} <- Few],
    %% without a profile nothing is recorded
    ?assertEqual(19800.0, hd(tessera:to_list(hd(Sum(Lists(4)))))),
    {[], #{clusters := []}} = tessera:profile(fun() -> [] end, []).

%% ---- without programs

put(Cluster, _) ->
    X = tessera:tensor([1.0, 2.0, 3.0]),
    Lists = [[X, #{a => P}, {tessera:tensor(P, u8), 7}] || P <- [0, 1, 2, 3]],
    Placed = tessera_cluster:put(Cluster, Lists),
    [begin
         ?assertMatch([#tessera{type = f32, shape = {3}}, #{a := P}, {#tessera{}, 7}], List),
         [There, _, {Number, _}] = List,
         ?assertEqual({Cluster, P div 2}, tessera:device(There)),
         ?assertEqual([1.0, 2.0, 3.0], tessera:to_list(There)),
         ?assertEqual(P, tessera:to_number(Number))
     end || {P, List} <- lists:zip([0, 1, 2, 3], Placed)],
    %% a rank's partitions share one copy, and existing values stay
    [[A | _], [B | _], [C | _], _] = Placed,
    ?assertEqual(A, B),
    ?assertNotEqual(A, C),
    ?assertEqual([[A], [B], [C], [C]], tessera_cluster:put(Cluster, [[A], [B], [C], [C]])),
    %% a value of another rank is copied
    [[Moved], _] = tessera_cluster:put(Cluster, [[C], [C]]),
    ?assertEqual({{Cluster, 0}, [1.0, 2.0, 3.0]}, {tessera:device(Moved), tessera:to_list(Moved)}),
    ?assertError({invalid_argument, <<"put: got 3 lists", _/binary>>}, tessera_cluster:put(Cluster, [[A], [B], [C]])),
    ?assertError({invalid_argument, <<"put: ", _/binary>>}, tessera_cluster:put(Cluster, A)).

%% Each rank makes its own part, and it stays there; a function on the ranks gets it again.
map(Cluster, _) ->
    Parts = tessera_cluster:map(Cluster, fun(Rank) -> #{rank => Rank, part => [tessera:iota({2, 3}), tessera:tensor(Rank)]} end),
    [?assertMatch(#{rank := Rank, part := [#tessera{shape = {2, 3}}, #tessera{}]}, Part) || {Rank, Part} <- lists:zip([0, 1], Parts)],
    [?assertEqual({{Cluster, Rank}, Rank}, {tessera:device(Number), tessera:to_number(Number)})
     || #{rank := Rank, part := [_, Number]} <- Parts],
    Sums = tessera_cluster:map(Cluster, fun(Rank, #{part := [Matrix, Number]}) -> {Rank, tessera:to_number(tessera:sum(tessera:add(Matrix, Number)))} end,
                               Parts),
    ?assertEqual([{0, 15}, {1, 21}], Sums),
    Other = tessera:tensor([5, 6]),
    ?assertEqual([[5, 6], [5, 6]], tessera_cluster:map(Cluster, fun(_, T) -> tessera:to_list(T) end, [Other, Other])),
    ?assertError({out_of_range, <<"rank 1 on ", _/binary>>},
                 tessera_cluster:map(Cluster, fun(Rank) -> [error({out_of_range, <<"here">>}) || Rank =:= 1], tessera:iota({4}) end)).

%% A reply with four times as many tensors takes about four times as much work, on the rank and here.
many_tensors_test_() -> {timeout, 60, fun many_tensors/0}.

many_tensors() ->
    {ok, _} = application:ensure_all_started(tessera),
    {_, Monitor} = spawn_monitor(fun() ->
        ok = tessera_rank_values:new(),
        _ = replied(100),
        %% garbage collections count as reductions, too, and not each time
        [Few, Many] = [lists:min([replied(Count) || _ <- lists:seq(1, 4)]) || Count <- [4000, 16000]],
        ?assert(Many < 8 * Few)
    end),
    receive {'DOWN', Monitor, process, _, Reason} -> ?assertEqual(normal, Reason) end.

%% The reductions that a rank uses for a reply with `Count` tensors, and a caller to store them.
replied(Count) ->
    Reductions = fun() -> element(2, process_info(self(), reductions)) end,
    Before = Reductions(),
    {Values, {ok, Reply}} = tessera_rank_work:handle({apply, term_to_binary(fun ?MODULE:many/1), term_to_binary([Count]), {}}, #{}, none),
    ?assertEqual(Count, length(Values)),
    ?assertEqual(lists:seq(1, Count), [Ref || #tessera{ref = Ref} <- tessera_cluster_terms:with_proxies(Reply, list_to_tuple(lists:seq(1, Count)))]),
    Reductions() - Before.

many(Count) -> lists:duplicate(Count, tessera:tensor(1)).

%% Wherever a tensor may be used.
use(Cluster, _) ->
    [T, _] = tessera_cluster:map(Cluster, fun(Rank) -> tessera:add(tessera:iota({2, 2}), Rank) end),
    ?assertEqual({s32, {2, 2}, 2, 4, 16}, {tessera:type(T), tessera:shape(T), tessera:rank(T), tessera:size(T), tessera:byte_size(T)}),
    ?assertEqual([[0, 1], [2, 3]], tessera:to_list(T)),
    ?assertEqual("s32[2,2]\n[\n  [0, 1],\n  [2, 3]\n]", lists:flatten(tessera:format(T))),
    ?assertEqual([[0, 2], [4, 6]], tessera:to_list(tessera:add(T, T))),
    ?assertEqual([[1, 2], [3, 4]], tessera:to_list((tessera:jit(fun(X) -> tessera:add(X, 1) end))(T))),
    ?assertEqual([[1, 2], [3, 4]], tessera:to_list((tessera:jit(fun(X) -> tessera:add(X, T) end))(tessera:broadcast(1, {2, 2})))),
    ?assertEqual([[0, 1], [2, 3]], tessera:to_list(tessera:to_device(T, {host, 0}))),
    ?assertEqual({host, 0}, tessera:device(tessera:to_device(T, {host, 0}))),
    ?assertEqual([[0, 2], [1, 3]], tessera:to_list(tessera:transpose(T))),
    %% a tensor of packed elements, and one without any
    [Nibbles, _] = tessera_cluster:map(Cluster, fun(_) -> tessera:tensor([1, 2, 3], u4) end),
    ?assertEqual(<<1:4, 2:4, 3:4>>, tessera:to_binary(Nibbles)),
    [Empty, _] = tessera_cluster:map(Cluster, fun(_) -> tessera:zeros({0, 3}) end),
    ?assertEqual([], tessera:to_list(Empty)),
    %% freed by hand
    ?assertEqual(ok, tessera:deallocate(T)),
    ?assertEqual(already_deallocated, tessera:deallocate(T)),
    ?assertError({failed_precondition, <<"to_list: the tensor was deallocated or donated">>}, tessera:to_list(T)),
    ?assertError({failed_precondition, _}, tessera:add(T, 1)),
    %% a record that says something else
    [_, Other] = tessera_cluster:map(Cluster, fun(_) -> tessera:iota({2}) end),
    ?assertError({invalid_argument, _}, tessera:add(Other#tessera{shape = {3}}, 1)),
    ?assertError({invalid_argument, _}, tessera:add(Other#tessera{type = f64}, 1)).

%% A tensor outlives the process that made it as long as another has it.
other_processes(Cluster, _) ->
    Self = self(),
    [Before, _] = live(Cluster),
    Maker = spawn_link(fun() -> Self ! {self(), hd(tessera_cluster:map(Cluster, fun(_) -> tessera:broadcast(1.5, {1000}) end))} end),
    Keeper = spawn_link(fun() -> keep(receive T -> T end) end),
    receive {Maker, T} -> Keeper ! T end,
    garbage_collect(),
    Keeper ! {read, self()},
    receive {Keeper, Sum} -> ?assertEqual(1500.0, Sum) end,
    Keeper ! stop,
    until_freed(fun() -> hd(live(Cluster)) =< Before end).

keep(T) ->
    receive
        {read, From} ->
            From ! {self(), tessera:to_number(tessera:sum(T))},
            keep(T);
        stop -> tessera:type(T)
    end.

%% The memory of values is freed with their last reference.
memory(Cluster, _) ->
    X = tessera:broadcast(1.0, {256}),
    _ = tessera_cluster:put(Cluster, [[X], [X]]),
    garbage_collect(),
    #{queue := Queue} = tessera_cluster_state:connections(Cluster),
    _ = sys:get_state(Queue),   % it has told the ranks of what was freed
    Before = live(Cluster),
    lists:foreach(fun(_) -> [[_], [_]] = tessera_cluster:put(Cluster, [[X], [X]]) end, lists:seq(1, 5000)),
    until_freed(fun() -> lists:all(fun({Now, Then}) -> Now =< Then end, lists:zip(live(Cluster), Before)) end),
    Kept = [tessera_cluster:put(Cluster, [[X], [X]]) || _ <- lists:seq(1, 100)],
    ?assert(lists:all(fun({Now, Then}) -> Now >= Then + 100 * 1024 end, lists:zip(live(Cluster), Before))),
    ?assertEqual(100, length(Kept)),
    %% of a process that is killed, too
    Self = self(),
    {Holder, Monitor} = spawn_monitor(fun() ->
                                              Self ! {self(), length([tessera_cluster:put(Cluster, [[X], [X]]) || _ <- lists:seq(1, 100)])},
                                              timer:sleep(infinity)
                                      end),
    receive {Holder, 100} -> exit(Holder, kill) end,
    receive {'DOWN', Monitor, process, Holder, killed} -> ok end,
    ?assertEqual(100, length(Kept)),
    until_freed(fun() -> lists:all(fun({Now, Then}) -> Now < Then + 150 * 1024 end, lists:zip(live(Cluster), Before)) end).

%% A delayed free is also sent without other messages. Other requests would take it along, so only bytes are looked at.
free_alone(Cluster, _) ->
    #{links := Links} = tessera_cluster_state:connections(Cluster),
    Sent = fun() -> lists:sum([maps:get(sent_bytes, tessera_cluster_link:statistics(Link)) || Link <- tuple_to_list(Links)]) end,
    X = tessera:tensor(1.0),
    Holder = spawn_link(fun() -> Held = tessera_cluster:put(Cluster, [[X], [X]]), receive stop -> Held end end),
    until(fun() -> lists:all(fun(Live) -> Live > 0 end, live(Cluster)) end),
    Before = Sent(),
    Holder ! stop,
    until(fun() -> Sent() > Before end).

%% A caller dies after a rank has added the tensors of a reply to its values, and before the reply is encoded: the list after them takes the
%% rank some tenths of a second.
not_sent(Cluster, _) ->
    Values = fun(_) -> ets:info(tessera_rank_values, size) end,
    Before = tessera_cluster:map(Cluster, Values),
    Call = fun() -> spawn(fun() -> tessera_cluster:map(Cluster, fun(_) -> [tessera:iota({10}) | lists:seq(1, 3000000)] end) end) end,
    Seen = fun Seen(Caller) ->
                   case {tessera_cluster:map(Cluster, Values) =/= Before, is_process_alive(Caller)} of
                       {true, _} -> Caller;
                       {false, true} -> Seen(Caller);
                       {false, false} -> Seen(Call())   % its values came and went unseen
                   end
           end,
    exit(Seen(Call()), kill),
    until(fun() -> tessera_cluster:map(Cluster, Values) =:= Before end).

%% A caller that drops its tensors without collecting garbage does not fill the ranks.
pressure(Cluster, _) ->
    Loop = fun Loop(0, _) -> ok;
               Loop(N, _) -> Loop(N - 1, tessera_cluster:put(Cluster, [[tessera:broadcast(1.0, {50000})], [tessera:broadcast(2.0, {50000})]]))
           end,
    ?assertEqual(ok, Loop(100, none)).

%% Tensors of ranks that have ended say so, with the rank that was lost; tensors of the new ranks are valid.
lost(Cluster, _) ->
    [A, B] = Tensors = tessera_cluster:map(Cluster, fun(Rank) -> tessera:tensor(Rank) end),
    Reader = spawn_monitor(fun() -> tessera_cluster:map(Cluster, fun(_, _) -> timer:sleep(infinity) end, Tensors) end),
    [_, Pid] = [Pid || #{os_pid := Pid} <- maps:get(ranks, tessera_cluster:info(Cluster))],
    {Process, Monitor} = Reader,
    until(fun() -> {_, Trace} = process_info(Process, current_stacktrace), lists:keymember(tessera_cluster_link, 1, Trace) end),   % for the ranks
    "" = os:cmd("kill -KILL " ++ binary_to_list(Pid)),
    receive {'DOWN', Monitor, process, Process, {{unavailable, Text}, _}} -> ?assertMatch(<<"rank 1 on ", _/binary>>, Text) end,
    [begin
         ?assertError({unavailable, _}, tessera:to_list(T)),
         try tessera:to_list(T) catch error:{unavailable, Why} ->
                 ?assertMatch({match, _}, re:run(Why, ["^to_list: the tensor was on rank ", Rank, " on [^ ]+, and is lost with the cluster's "
                                                       "ranks: rank 1 on [^ ]+: its connection was closed"]))
         end,
         ?assertError({unavailable, _}, tessera:add(T, 1)),
         ?assertError({unavailable, _}, tessera_cluster:put(Cluster, [[T], [T]]))
     end || {T, Rank} <- [{A, "0"}, {B, "1"}]],
    ?assertMatch([#tessera{}, #tessera{}], tessera_cluster:map(Cluster, fun(Rank) -> tessera:tensor(Rank) end)),
    ?assertError({unavailable, _}, tessera:to_list(A)).

%% ---- files

%% Files of interrupted saves are never loaded, and the next save to the same place removes them. Other files stay.
interrupted(Cluster, _) -> (in_folder(fun(Folder) -> interrupted_in(Cluster, Folder) end))().

interrupted_in(Cluster, Folder) ->
    Path = Folder ++ "/model",
    Write = fun(Names, Contents) -> [ok = file:write_file(filename:join(Folder, Name), Contents) || Name <- Names] end,
    Parts = tessera_cluster:put(Cluster, [tessera:tensor(P) || P <- [1, 2]]),
    ok = tessera_cluster:save(Path, Parts),
    {ok, Saved} = file:list_dir(Folder),
    %% a save that ended between its ranks' files and its index, one in a rank's file, and one in the index
    Rank = ["model.01234567.0", "model.01234567.1", "model.89ABCDEF.1.99.tmp"],
    Write(Rank, <<"tessera tensors 1\n", 0:128, 1, 2, 3>>),
    Write(["model.01234567.0.5.tmp"], <<"tessera tens">>),
    Write(["model.89ABCDEF.0.77.tmp", "model.12.tmp"], <<>>),
    Write(["model.77.tmp"], <<"tessera index 1\n", 0>>),
    Write(["model.CDEF0123.0"], <<64:64/little, "{\"__metadata__\":{\"tessera.save\":\"00">>),
    Write(["model.CDEF0123.1.8.tmp"], <<64:64/little, "{\"__meta">>),
    Write(["model.78.tmp"], <<"{\"metadata\":{\"tess">>),
    Mine = ["model.20261126.1", "model.20261126.1.1.tmp", "model.3.tmp"],
    Write(Mine, <<"not Tessera's">>),
    Others = ["model.txt", "model.tmp", "other.01234567.0", "model.01234567.x", "model.01234567.0.bak", "model.0123456.0", "model.a.01234567.0"],
    Write(Others, <<"tessera tensors 1\n", 0:128, 1, 2, 3>>),
    ?assertEqual([1, 2], [tessera:to_number(T) || T <- tessera_cluster:load(Cluster, Path)]),
    ok = tessera_cluster:save(Path, lists:reverse(Parts)),
    {ok, Files} = file:list_dir(Folder),
    ?assertEqual(lists:sort(["model" | Mine ++ Others]), lists:sort(Files -- [File || File <- Files, is_of_save(Folder, File, Others)])),
    ?assertEqual(length(Saved), length(Files -- (Mine ++ Others))),
    ?assertEqual([2, 1], [tessera:to_number(T) || T <- tessera_cluster:load(Cluster, Path)]),
    %% a save that is under way while another ends: it finds out, and the other one is whole
    Save = <<1:128>>,
    [_ | _] = tessera_cluster:map(Cluster, fun tessera_cluster_files:write/2, [{Path, Save, [{<<"t">>, T}]} || T <- Parts]),
    ok = tessera_cluster:save(Path, Parts),
    ?assertError({failed_precondition, <<"rank 0 on ", _/binary>>}, tessera_cluster:map(Cluster, fun tessera_cluster_files:check/2, [{Path, Save}, {Path, Save}])),
    ?assertEqual([1, 2], [tessera:to_number(T) || T <- tessera_cluster:load(Cluster, Path)]).

%% Of a rank, and of the current save.
is_of_save(Folder, File, Others) ->
    {ok, Bytes} = file:read_file(filename:join(Folder, File)),
    not lists:member(File, Others) andalso binary:match(Bytes, <<"{\"__metadata__\":{\"tessera.save\":">>) =/= nomatch.

%% Saved by 2 ranks of 2 devices, loaded on 4 ranks, on one, and in other meshes.
save(Cluster, _) -> (in_folder(fun(Folder) -> save_in(Cluster, Folder ++ "/model") end))().

save_in(Cluster, Path) ->
    Mesh = #{shape => {2, 2}},
    Shardings = {#{0 => [0], 1 => [1]}, #{b => #{0 => [1]}, n => #{}}, #{}},
    Matrix = tessera:reshape(tessera:iota({64}, f32), {8, 8}),
    Bias = tessera:tensor([1, 2, 3, 4], s8),
    Whole = {Matrix, Bias, tessera:tensor([nan, -0.0, infinity], bf16)},
    Parts = parts(Cluster, Mesh, Shardings, Whole),
    ok = tessera_cluster:save(Path, Parts, Mesh, Shardings),
    Contents = contents(Parts),
    ?assertEqual(Contents, contents(tessera_cluster:load(Cluster, Path))),
    Files = element(2, file:list_dir(filename:dirname(Path))),
    ?assertMatch([_, _, _], Files),
    %% Python's safetensors 0.8.0 has read such a save, and put the parts together by the slices in their names
    {ok, {object, [_, {<<"weight_map">>, {object, Where}}]}} = tessera_json:decode(element(2, file:read_file(Path))),
    ?assertEqual([<<"0[0:4,0:4]">>, <<"0[0:4,4:8]">>, <<"0[4:8,0:4]">>, <<"0[4:8,4:8]">>, <<"1.b[0:2]">>, <<"1.b[2:4]">>, <<"2">>],
                 lists:sort([Name || {Name, _} <- Where])),
    [?assertEqual([[36.0, 37.0, 38.0, 39.0], [44.0, 45.0, 46.0, 47.0], [52.0, 53.0, 54.0, 55.0], [60.0, 61.0, 62.0, 63.0]],
                  tessera:to_list(maps:get(Name, tessera_io:load(filename:join(filename:dirname(Path), File), #{format => safetensors, names => [Name]}))))
     || {<<"0[4:8,4:8]">> = Name, File} <- Where],
    ?assertEqual([{<<"0[0:4,0:4]">>, {f32, {4, 4}}}, {<<"0[0:4,4:8]">>, {f32, {4, 4}}}, {<<"1.b[0:2]">>, {s8, {2}}}, {<<"1.b[2:4]">>, {s8, {2}}},
                  {<<"2">>, {bf16, {3}}}],
                 lists:sort(maps:to_list(maps:get(tensors, tessera_io:info(hd(lists:sort(filelib:wildcard(Path ++ ".*.0")))))))),
    %% replicated tensors are saved once
    ?assert(lists:sum([filelib:file_size(filename:join(filename:dirname(Path), File)) || File <- Files, File =/= filename:basename(Path)]) < 1500),
    [with(none, Options, fun(Other, _) ->
         ?assertEqual(Contents, contents(tessera_cluster:load(Other, Path))),
         [begin
              Loaded = tessera_cluster:load(Other, Path, New),
              ?assertEqual(contents(parts(Other, New, Shardings, Whole)), contents(Loaded)),
              ?assertEqual(lists:usort([Rank || {_, Rank} <- [tessera:device(M) || {M, _, _} <- Loaded]]), lists:seq(0, maps:get(ranks, Options) - 1))
          end || New <- [#{shape => {4, 1}}, #{shape => {1, 4}}, #{shape => {2, 2}}]]
     end) || Options <- [#{ranks => 4}, #{ranks => 1, devices => 4}]],
    with(none, #{ranks => 1, devices => 2}, fun(Other, _) ->
        [?assertEqual(contents(parts(Other, New, Shardings, Whole)), contents(tessera_cluster:load(Other, Path, New)))
         || New <- [#{shape => {2, 1}}, #{shape => {1, 2}}, #{shape => {1, 1}}]],
        ?assertError({invalid_argument, <<"load: the mesh has 4 partitions", _/binary>>}, tessera_cluster:load(Other, Path)),
        ?assertError({invalid_argument, <<"load: ", _/binary>>}, tessera_cluster:load(Other, Path, #{shape => {1}}))
    end),
    ?assertError({invalid_argument, <<"load: a mesh of the sizes [4,1]", _/binary>>},
                 begin
                     ok = tessera_cluster:save(Path, [{tessera:zeros({1}), M} || {M, _, _} <- Parts], Mesh, {#{0 => [0]}, #{0 => [0], 1 => [1]}}),
                     tessera_cluster:load(Cluster, Path, #{shape => {4, 1}})
                 end),
    %% the earlier save's files are gone, and without a mesh each partition has its own
    ?assertMatch({ok, [_, _, _]}, file:list_dir(filename:dirname(Path))),
    Own = tessera_cluster:put(Cluster, [#{p => P, t => tessera:tensor(P)} || P <- [0, 1, 2, 3]]),
    ok = tessera_cluster:save(Path, Own),
    ?assertMatch([{0, 0}, {1, 1}, {2, 2}, {3, 3}], [{P, tessera:to_number(T)} || #{p := P, t := T} <- tessera_cluster:load(Cluster, Path)]),
    %% a key without a text
    ok = tessera_cluster:save(Path, [#{self() => T} || #{t := T} <- Own]),
    ?assertMatch([0, 1, 2, 3], [tessera:to_number(hd(maps:values(M))) || M <- tessera_cluster:load(Cluster, Path)]),
    ?assertError({invalid_argument, _}, tessera_cluster:load(Cluster, Path, Mesh)),
    [?assertError({invalid_argument, <<"save: ", _/binary>>}, tessera_cluster:save(Path, Wrong))
     || Wrong <- [[], no_list, [tessera:tensor(1)], tl(Own), [1.0 | tl(Own)]]],
    ?assertError({failed_precondition, <<"rank 0 on ", _/binary>>}, tessera_cluster:save("/proc/no/such", Own)).

%% The parts of a container of three tensors.
parts(Cluster, Mesh, {A, #{b := B}, C}, {Matrix, Bias, Numbers}) ->
    [{M, #{b => Own, n => 7}, N}
     || {M, Own, N} <- lists:zip3(tessera_mesh:shard(Matrix, Mesh, A, Cluster), tessera_mesh:shard(Bias, Mesh, B, Cluster),
                                  tessera_mesh:shard(Numbers, Mesh, C, Cluster))].

contents(Parts) -> [{tessera:shape(M), tessera:to_binary(M), tessera:to_binary(B), N, tessera:to_binary(O)} || {M, #{b := B, n := N}, O} <- Parts].

%% Files that are cut off, changed, missing, mixed, of another version.
damaged(Cluster, _) -> (in_folder(fun(Folder) -> damaged_in(Cluster, Folder ++ "/model") end))().

damaged_in(Cluster, Path) ->
    Parts = tessera_cluster:put(Cluster, [tessera:broadcast(1.5, {100}), tessera:broadcast(2.5, {100})]),
    ok = tessera_cluster:save(Path, Parts),
    [First, Second] = lists:sort(filelib:wildcard(Path ++ ".*")),
    Changed = fun(File, Change) ->
                      {ok, Bytes} = file:read_file(File),
                      ok = file:write_file(File, Change(Bytes)),
                      try tessera_cluster:load(Cluster, Path) of
                          Loaded -> {loaded, Loaded}
                      catch error:Reason -> Reason
                      after ok = file:write_file(File, Bytes)
                      end
              end,
    Cut = fun(Bytes) -> binary:part(Bytes, 0, byte_size(Bytes) - 1) end,
    Flip = fun(Bytes) -> flipped(Bytes, byte_size(Bytes) - 2) end,
    ?assertMatch({data_loss, <<"rank 0 on ", _/binary>>}, Changed(First, Cut)),
    ?assertMatch({data_loss, <<"rank 1 on ", _/binary>>}, Changed(Second, Flip)),
    {data_loss, Text} = Changed(Second, Flip),
    ?assertNotEqual(nomatch, binary:match(Text, <<"is damaged: its bytes from ">>)),
    ?assertMatch({data_loss, _}, Changed(First, fun(Bytes) -> flipped(Bytes, 3) end)),
    ?assertMatch({data_loss, _}, Changed(First, fun(Bytes) -> flipped(Bytes, 20) end)),
    ?assertMatch({data_loss, _}, Changed(First, fun(_) -> <<>> end)),
    ?assertMatch({data_loss, _}, Changed(Path, Cut)),
    ?assertMatch({data_loss, _}, Changed(Path, Flip)),
    ?assertMatch({data_loss, _}, Changed(Path, fun(_) -> <<"something else">> end)),
    ?assertMatch({failed_precondition, <<_/binary>>}, Changed(Path, fun(<<"{\"metadata\":{\"tessera.version\":\"2", Rest/binary>>) -> <<"{\"metadata\":{\"tessera.version\":\"3", Rest/binary>> end)),
    ?assertMatch({failed_precondition, <<_/binary>>}, Changed(Path, fun(_) -> <<"tessera index 2\n">> end)),
    ?assertMatch([_, _], tessera_cluster:load(Cluster, Path)),
    ok = as_version_1(Path),
    ?assertEqual([[1.5], [2.5]], [lists:usort(tessera:to_list(T)) || T <- tessera_cluster:load(Cluster, Path)]),
    ?assertMatch({data_loss, <<"rank 1 on ", _/binary>>}, Changed(Second, Flip)),
    ok = file:delete(Second),
    ?assertError({failed_precondition, <<"rank 1 on ", _/binary>>}, tessera_cluster:load(Cluster, Path)),
    ?assertError({failed_precondition, <<_/binary>>}, tessera_cluster:load(Cluster, Path ++ "_not")).

%% The same save in the format of the version before.
as_version_1(Path) ->
    #{save := Save, parts := Parts} = Index = tessera_cluster_files:read_index(Path),
    Header = <<"tessera tensors 1\n", Save/binary>>,
    Moved = [[begin
                  Name = tessera_cluster_files:name(Path, Save, File),
                  {ok, <<_:Offset/binary, Bytes:Size/binary>>} = file:read_file(Name),
                  ok = file:write_file(Name, [Header, Bytes]),
                  {File, byte_size(Header), Size, Crc}
              end || {File, Offset, Size, Crc} <- Part] || Part <- Parts],
    Term = term_to_binary(Index#{parts := Moved}),
    file:write_file(Path, [<<"tessera index 1\n", (erlang:crc32(Term)):32>>, Term]).

flipped(Binary, At) ->
    <<Head:At/binary, Byte, Tail/binary>> = Binary,
    <<Head/binary, (Byte bxor 1), Tail/binary>>.

%% An earlier save survives a save without room.
full_disk(Cluster, _) -> (in_folder(fun(Folder) -> full_disk_of(Cluster, Folder) end))().

full_disk_of(Cluster, Folder) ->
    case os:cmd("mount -t tmpfs -o size=1m tmpfs " ++ Folder) of
        "" ->
            try full_disk_in(Cluster, Folder ++ "/model")
            after "" = os:cmd("umount " ++ Folder)
            end;
        Why -> io:format(user, "saving on a full disk is not tested, as a file system cannot be mounted here: ~ts", [Why])
    end.

full_disk_in(Cluster, Path) ->
    [Small, Large] = [tessera_cluster:put(Cluster, [tessera:broadcast(1.0, {N}), tessera:broadcast(2.0, {N})]) || N <- [100, 1000000]],
    ok = tessera_cluster:save(Path, Small),
    {ok, Files} = file:list_dir(filename:dirname(Path)),
    try tessera_cluster:save(Path, Large) of
        ok -> error(saved)
    catch error:{resource_exhausted, Text} -> ?assertMatch({match, _}, re:run(Text, "^rank [01] on [^ ]+: .*no space left"))
    end,
    {ok, Left} = file:list_dir(filename:dirname(Path)),
    ?assertEqual(lists:sort(Files), lists:sort(Left)),
    ?assertEqual([100, 100], [tessera:size(T) || T <- tessera_cluster:load(Cluster, Path)]).

%% ---- programs

rows(Cluster, F) -> rows(Cluster, F, #{}).

rows(Cluster, F, Options) ->
    {arity, Arity} = erlang:fun_info(F, arity),
    #{ranks := Ranks} = tessera_cluster_state:options(Cluster),
    tessera:shard_jit(F, #{shape => {Ranks}}, Options#{client => Cluster, input_shardings => lists:duplicate(Arity, #{0 => [0]})}).

%% Results are arguments of the next run, which sends nothing of them.
runs(Cluster, _) ->
    Mesh = #{shape => {4}},
    F = tessera:shard_jit(fun(X, W) -> {tessera:add(X, tessera:sum(X)), tessera:dot(X, W)} end, Mesh,
                          #{client => Cluster, input_shardings => [#{0 => [0]}, #{}]}),
    Here = tessera:jit(fun(X, W) -> {tessera:add(X, tessera:sum(X)), tessera:dot(X, W)} end),
    X = tessera:reshape(tessera:iota({8 * 64}, f32), {8, 64}),
    W = tessera:broadcast(0.5, {64, 64}),
    Xs = tessera_mesh:shard(X, Mesh, #{0 => [0]}, Cluster),
    ?assertEqual([{Cluster, P div 2} || P <- [0, 1, 2, 3]], [tessera:device(Part) || Part <- Xs]),
    Weights = tessera_cluster:put(Cluster, lists:duplicate(4, W)),
    First = F([[Part, Own] || {Part, Own} <- lists:zip(Xs, Weights)]),
    Sent = sent(Cluster),
    Second = F([[Sum, Own] || {{Sum, _}, Own} <- lists:zip(First, Weights)]),
    Whole = fun(Results, I, Sharding) -> tessera:to_binary(tessera_mesh:gather([element(I, Result) || Result <- Results], Mesh, Sharding)) end,
    {Sum1, _} = Here(X, W),
    {Sum2, Dot2} = Here(Sum1, W),
    ?assertEqual(tessera:to_binary(Sum2), Whole(Second, 1, #{0 => [0]})),
    ?assertEqual(tessera:to_binary(Dot2), Whole(Second, 2, #{0 => [0]})),
    ?assertEqual({#{0 => [0]}, #{0 => [0]}}, tessera_mesh:results(F, [[A, B] || {{A, _}, B} <- lists:zip(Second, Weights)])),
    ?assert(lists:max([Now - Then || {Now, Then} <- lists:zip(sent(Cluster), Sent)]) < 4000).

sent(Cluster) -> [Sent || #{sent_bytes := Sent} <- maps:get(ranks, tessera_cluster:info(Cluster))].

%% A donated value belongs to the run, unless another run also uses it; after that it is no tensor.
donated(Cluster, _) ->
    F = rows(Cluster, fun(X) -> tessera:add(X, 1.0) end, #{donate => [1]}),
    Sum = rows(Cluster, fun(X) -> tessera:sum(X) end),
    Big = tessera:broadcast(1.0, {1000000}),
    [[A], [B]] = tessera_cluster:put(Cluster, [[Big], [Big]]),
    Sums = Sum([[A], [B]]),
    [A1, B1] = F([[A], [B]]),
    ?assertError({failed_precondition, <<"to_list: the tensor was deallocated or donated">>}, tessera:to_list(A)),
    ?assertError({failed_precondition, _}, F([[A], [B]])),
    ?assertError({failed_precondition, _}, Sum([[A1], [B]])),
    ?assertEqual([2.0e6, 2.0e6], [tessera:to_number(S) || S <- Sums]),
    ?assertEqual([2.0, 2.0], [tessera:to_number(tessera:reduce_max(T)) || T <- [A1, B1]]),
    garbage_collect(),
    until_freed(fun() -> lists:all(fun(Live) -> Live < 6000000 end, live(Cluster)) end),
    %% many steps in the same memory
    [A2, _] = lists:foldl(fun(_, [P, Q]) -> F([[P], [Q]]) end, [A1, B1], lists:seq(1, 50)),
    ?assertEqual(52.0, tessera:to_number(tessera:reduce_max(A2))),
    ?assert(lists:all(fun(#{memory := #{peak := Peak}}) -> Peak < 40000000 end, maps:get(ranks, tessera_cluster:info(Cluster)))).

%% Runs whose results are dropped at once are cancelled at any moment of theirs, on one rank earlier than on the other: both end, and
%% nothing of them is left.
dropped(Cluster, _) ->
    Sum = fun(_, A) -> tessera_mesh:all_reduce(tessera_mesh:vary(A, 0), max, 0) end,
    F = tessera:shard_map(fun(X) -> lists:foldl(Sum, tessera:broadcast(X, {1000}), lists:seq(1, 300)) end,
                          #{shape => {2}}, [#{}], #{}, #{client => Cluster}),
    Args = [[tessera:tensor(1.0)], [tessera:tensor(1.0)]],
    Read = fun() -> [tessera:to_number(tessera:reduce_max(Y)) || Y <- F(Args)] end,
    ?assertEqual([1.0, 1.0], Read()),
    until_freed(fun() -> lists:all(fun(Live) -> Live < 4000 end, live(Cluster)) end),
    Drop = fun(Pause) ->
                   _ = F(Args),
                   garbage_collect(),
                   timer:sleep(Pause)
           end,
    lists:foreach(Drop, lists:append(lists:duplicate(30, [0, 1, 5]))),
    ?assertEqual([1.0, 1.0], Read()),
    until_freed(fun() -> lists:all(fun(Live) -> Live < 4000 end, live(Cluster)) end).

%% Calls return before their runs are done, and not more than a few runs ahead.
pipeline(Cluster, _) ->
    F = rows(Cluster, fun(X) -> tessera:add(X, tessera:multiply(0.0, slow(X))) end),
    Start = tessera_cluster:put(Cluster, [tessera:tensor([1.0]), tessera:tensor([2.0])]),
    Next = F([[T] || T <- Start]),
    _ = [tessera:to_list(T) || T <- Next],
    Time = fun(Steps) ->
                   From = erlang:monotonic_time(microsecond),
                   Results = lists:foldl(fun(_, Ts) -> F([[T] || T <- Ts]) end, Next, lists:seq(1, Steps)),
                   Called = erlang:monotonic_time(microsecond),
                   Values = [tessera:to_list(T) || T <- Results],
                   ?assertEqual([[1.0], [2.0]], Values),
                   {Called - From, erlang:monotonic_time(microsecond) - From}
           end,
    %% another program may keep the driver from calling, not five times
    Timed = tessera_test:is_timed(),
    ?assert(lists:any(fun(_) -> {Called, Done} = Time(8), not Timed orelse Called < Done div 2 end, lists:seq(1, 5))),
    {Bounded, All} = Time(64),
    ?assert(not Timed orelse Bounded > All div 2),
    %% a process that ends without having used its results
    {Pid, Monitor} = spawn_monitor(fun() -> Time(1) end),
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end.

%% Ten milliseconds or more.
slow(X) ->
    {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 100000) end,
                           fun({I, Y}) -> {tessera:add(I, 1), tessera:sin(tessera:add(Y, 1.0))} end),
    Y.

%% A run that fails fails where its results are used, also by other runs, with the first error. The ranks stay.
errors(Cluster, _) ->
    Pids = [Pid || #{os_pid := Pid} <- maps:get(ranks, tessera_cluster:info(Cluster))],
    Large = rows(Cluster, fun(X) -> tessera:sum(tessera:sort(tessera:broadcast(X, {4000000, 2}))) end),
    Add = rows(Cluster, fun(X) -> tessera:add(X, 1.0) end),
    Bad = Large([[tessera:tensor([1.0])], [tessera:tensor([1.0])]]),
    Worse = Add([[tessera:reshape(T, {1})] || T <- Add([[tessera:tensor([1.0])], [tessera:tensor([1.0])]])]),
    ?assertEqual([[3.0], [3.0]], [tessera:to_list(T) || T <- Worse]),
    Square = tessera:shard_jit(fun(X) -> tessera:add(X, 1.0) end, #{shape => {2}}, #{client => Cluster, input_shardings => [#{}]}),
    Then = Square([[T] || T <- Bad]),
    [?assertError({resource_exhausted, <<"to_list: rank ", _/binary>>}, tessera:to_list(T)) || T <- Bad ++ Then],
    %% a value that only one rank cannot have
    [Good, _] = tessera_cluster:put(Cluster, [tessera:tensor(1.0), tessera:tensor(2.0)]),
    Mixed = Square([[Good], [lists:last(Bad)]]),
    [?assertError({resource_exhausted, _}, tessera:to_list(T)) || T <- Mixed],
    ?assertEqual([2.0, 2.0], [tessera:to_number(T) || T <- Square([[Good], [tessera:tensor(1.0)]])]),
    ?assertEqual(Pids, [Pid || #{os_pid := Pid} <- maps:get(ranks, tessera_cluster:info(Cluster))]).

%% A run is cancelled when no process has its results any more, and so is a run that waits for them; other runs go on.
cancelled(Cluster, _) ->
    Long = rows(Cluster, fun(X) ->
                                 {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 2000000000) end,
                                                        fun({I, Y}) -> {tessera:add(I, 1), tessera:add(Y, tessera:sum(Y))} end),
                                 Y
                         end),
    Add = rows(Cluster, fun(X) -> tessera:add(X, 1.0) end),
    Arguments = [[tessera:tensor([0.0])], [tessera:tensor([0.0])]],
    Self = self(),
    Caller = spawn(fun() ->
                           Second = Long([[T] || T <- Long(Arguments)]),
                           Self ! {self(), begun},
                           [tessera:to_list(T) || T <- Second]
                   end),
    receive {Caller, begun} -> ok end,
    timer:sleep(300),
    %% other processes are not delayed
    ?assertEqual([[1.0], [1.0]], [tessera:to_list(T) || T <- Add(Arguments)]),
    ?assertMatch([_ | _], runs_of(Cluster)),
    exit(Caller, kill),
    until(fun() -> runs_of(Cluster) =:= [] end),
    %% one result that is kept keeps the run
    [Kept, _] = Add([[T] || T <- Add(Arguments)]),
    garbage_collect(),
    ?assertEqual([2.0], tessera:to_list(Kept)),
    ?assertMatch(#{state := up, restarts := 0}, tessera_cluster:info(Cluster)).

%% Several processes, each with its own chain of runs, whose order on the ranks may differ from the order of calls.
concurrent(Cluster, _) ->
    F = rows(Cluster, fun(X) -> tessera:add(X, tessera:sum(X)) end),
    Chain = fun(Base) ->
                    Start = [[tessera:tensor([Base + P])] || P <- [0.0, 1.0, 2.0, 3.0]],
                    [tessera:to_list(T) || [T] <- lists:foldl(fun(_, Lists) -> [[T] || T <- F(Lists)] end, Start, lists:seq(1, 10))]
            end,
    Alone = [Chain(Base) || Base <- [1.0, 2.0, 3.0, 4.0]],
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), Chain(Base)} end) || Base <- [1.0, 2.0, 3.0, 4.0]],
    ?assertEqual(Alone, [receive {Pid, Result} -> Result end || Pid <- Pids]).

%% Ranks keep as many programs as the setting allows, the last used ones, and all ranks the same.
programs(Cluster, _) ->
    with_most_programs(2, fun() ->
        [F, G, H] = Fs = [rows(Cluster, fun(X) -> tessera:add(X, N) end) || N <- [1.0, 2.0, 3.0]],
        Ids = fun() -> lists:usort(tessera_cluster:map(Cluster, fun program_ids/1)) end,
        ?assertEqual({2.0, 3.0}, {plus(F), plus(G)}),
        [[First, Second]] = Ids(),
        ?assertEqual({2.0, 4.0}, {plus(F), plus(H)}),
        ok = until(fun() -> case Ids() of [[First, Third]] -> Third > Second; _ -> false end end),
        ?assertEqual([3.0, 2.0, 4.0], [plus(Each) || Each <- [G, F, H]]),
        %% runs on their way keep a program that is dropped
        Slow = rows(Cluster, fun(X) -> tessera:add(X, slow(X)) end),
        Lists = [[tessera:tensor([1.0])] || _ <- [1, 2]],
        [_, _] = Expected = [tessera:to_list(T) || T <- Slow(Lists)],
        Results = Slow(Lists),
        ok = tessera:clear_cache(),
        ok = until(fun() -> Ids() =:= [[]] end),
        ?assertEqual(Expected, [tessera:to_list(T) || T <- Results]),
        ?assertEqual([2.0, 3.0, 4.0], [plus(Each) || Each <- Fs]),
        ?assertEqual([true, true], [Size > 0 || Size <- tessera_cluster:map(Cluster, fun cached_on_rank/1)]),
        ok = tessera_cluster:clear_cache(Cluster),
        ok = until(fun() -> Ids() =:= [[]] end),
        ?assertEqual([0, 0], tessera_cluster:map(Cluster, fun(_) -> tessera_cache:size() end)),
        ?assertEqual(2.0, plus(F))
    end).

%% Callers that together use more programs than the ranks may keep.
few_programs(Cluster, _) ->
    with_most_programs(1, fun() ->
        Fs = [rows(Cluster, fun(X) -> tessera:add(X, N) end) || N <- [1.0, 2.0, 3.0]],
        Call = fun() -> [[plus(F) || F <- Fs] || _ <- lists:seq(1, 10)] end,
        Self = self(),
        Pids = [spawn_link(fun() -> Self ! {self(), Call()} end) || _ <- lists:seq(1, 4)],
        [?assertEqual([[2.0, 3.0, 4.0]], lists:usort(receive {Pid, Results} -> Results end)) || Pid <- Pids],
        ok = until(fun() -> [1] =:= lists:usort([length(Ids) || Ids <- tessera_cluster:map(Cluster, fun program_ids/1)]) end)
    end).

plus(F) ->
    [[Number], [Number]] = [tessera:to_list(T) || T <- F([[tessera:tensor([1.0])] || _ <- [1, 2]])],
    Number.

program_ids(_) -> lists:sort([Id || {Id, {ready, Program}, _, _} <- ets:tab2list(tessera_rank_values), is_reference(Program)]).

%% A function of `map' that fills the cache of its rank.
cached_on_rank(_) ->
    2 = tessera:to_number((tessera:jit(fun(X) -> tessera:add(X, 1) end))(tessera:tensor(1))),
    tessera_cache:size().

with_most_programs(Most, Test) ->
    Before = application:get_env(tessera, max_programs),
    ok = application:set_env(tessera, max_programs, Most),
    try Test()
    after case Before of
              {ok, Value} -> application:set_env(tessera, max_programs, Value);
              undefined -> application:unset_env(tessera, max_programs)
          end
    end.

%% The driver's table alone: this process is the queue, of two ranks.
program_table_test() ->
    with_most_programs(2, fun() ->
        Table = tessera_cluster_programs:new(self(), 2),
        Send = fun(_) -> {ok, []} end,
        Freed = fun(Id) -> [receive {freed, Rank, Id} -> ok after ?WITHIN -> error({not_freed, Id}) end || Rank <- [0, 1]] end,
        {ok, 1, A} = tessera_cluster_programs:fetch(Table, <<"a">>, Send),
        {ok, 1, A} = tessera_cluster_programs:fetch(Table, <<"a">>, fun(_) -> error(sent_again) end),
        ?assert(tessera_cluster_programs:is_current(A)),
        %% a program that could not be compiled
        {error, #{}} = tessera_cluster_programs:fetch(Table, <<"b">>, fun(2) -> {error, #{}} end),
        Freed(2),
        %% another caller has sent it in the meantime
        {ok, 3, Late} = tessera_cluster_programs:fetch(Table, <<"c">>, fun(3) ->
            {ok, 4, _} = tessera_cluster_programs:fetch(Table, <<"c">>, Send),
            {ok, []}
        end),
        Freed(3),
        ?assertNot(tessera_cluster_programs:is_current(Late)),
        %% a caller that is killed while it sends leaves a program that is dropped like the others
        Self = self(),
        {Killed, Monitor} = spawn_monitor(fun() -> tessera_cluster_programs:fetch(Table, <<"d">>, fun(5) -> Self ! sends, receive never -> ok end end) end),
        receive sends -> exit(Killed, kill) end,
        receive {'DOWN', Monitor, process, Killed, killed} -> ok end,
        {ok, 6, _} = tessera_cluster_programs:fetch(Table, <<"e">>, Send),
        Freed(1),
        Freed(4),
        ?assertNot(tessera_cluster_programs:is_current(A)),
        {ok, 7, _} = tessera_cluster_programs:fetch(Table, <<"f">>, Send),
        Freed(5),
        %% a program that is dropped while it is sent
        {ok, 8, _} = tessera_cluster_programs:fetch(Table, <<"g">>, fun(8) ->
            ok = tessera_cluster_programs:clear(Table),
            [Freed(Id) || Id <- [6, 7, 8]],
            {ok, []}
        end),
        Freed(8),
        true = ets:delete(Table),
        ?assertEqual(none, tessera_cluster_programs:find(Table, <<"a">>)),
        ?assertEqual(ok, tessera_cluster_programs:clear(Table)),
        ?assertMatch({ok, 1, _}, tessera_cluster_programs:fetch(Table, <<"a">>, Send)),
        receive {freed, _, _} = More -> error(More) after 0 -> ok end
    end).

%% One rank of a host compiles a program; the others load its kernels.
compiled_once(Folder) ->
    with("mpirun", #{ranks => 3, env => [{"TESSERA_CACHE_DIR", Folder}]}, fun(Cluster, _) ->
        Stats = fun() -> tessera_cluster:map(Cluster, fun(_) -> maps:with([compiled, loaded], tessera_nif:jit_stats()) end) end,
        F = rows(Cluster, fun(X) -> tessera:sum(tessera:sin(tessera:multiply(tessera:exp(X), tessera:add(X, 1.25)))) end),
        Before = Stats(),
        _ = [tessera:to_number(S) || S <- F([[tessera:iota({1, 7}, f32)] || _ <- [1, 2, 3]])],
        [{First, _} | Others] = [{After - Then, Loaded - Old} || {#{compiled := Then, loaded := Old}, #{compiled := After, loaded := Loaded}}
                                                                 <- lists:zip(Before, Stats())],
        ?assert(First > 0),
        ?assertEqual([{0, First}, {0, First}], Others)
    end).

%% ---- other nodes

%% A node reads the tensors of a cluster that another node has.
nodes_test_() -> {timeout, 120, fun() -> tessera_peers:with(2, fun nodes/1) end}.

nodes([A, B]) ->
    true = tessera_peers:call(A, net_kernel, connect_node, [tessera_peers:node_of(B)]),
    {Holder, T} = tessera_peers:call(A, ?MODULE, hold, []),
    On = fun(Peer, F) -> tessera_peers:call(Peer, ?MODULE, use, [F]) end,
    ?assertEqual([0, 1, 2], On(B, fun() -> tessera:to_list(T) end)),
    ?assertEqual([5, 6, 7], On(B, fun() -> tessera:to_list(tessera:add(T, 5)) end)),
    ?assertMatch(<<"s32[3]", _/binary>>, On(B, fun() -> iolist_to_binary(tessera:format(T)) end)),
    ?assertEqual(ok, On(B, fun() -> tessera:deallocate(T) end)),
    ?assertMatch({failed_precondition, _}, On(B, fun() -> tessera:to_list(T) end)),
    ?assertMatch({failed_precondition, _}, On(A, fun() -> tessera:to_list(T) end)),
    ok = On(A, fun() ->
                       Monitor = monitor(process, Holder),
                       Holder ! stop,
                       receive {'DOWN', Monitor, process, _, _} -> ok end
               end).

%% A process with a cluster, and a tensor on its second rank.
hold() ->
    Self = self(),
    Holder = spawn(fun() ->
                           {ok, _} = application:ensure_all_started(tessera),
                           {ok, Cluster} = tessera_cluster:start_link(#{ranks => 2, threads => 1, mpirun => none}),
                           [_, T] = tessera_cluster:map(Cluster, fun(_) -> tessera:iota({3}) end),
                           Self ! {self(), T},
                           receive stop -> tessera_cluster:stop(Cluster) end,
                           tessera:type(T)
                   end),
    receive {Holder, T} -> {Holder, T} after ?WITHIN div 2 -> exit(no_cluster) end.

use(F) ->
    try F()
    catch error:Reason -> Reason
    end.
