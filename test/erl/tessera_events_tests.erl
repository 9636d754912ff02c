%% Events: each row of the table in docs/events.md is seen, with the measurements and metadata that the row says; who listens, and figures for Prometheus.
-module(tessera_events_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-export([work/1, telemetry/0]).

%% ---- the table

-define(SPAN, #{start => [monotonic_time, system_time], stop => [duration, monotonic_time], exception => [duration, monotonic_time]}).

%% {Name, is it a span, measurements, metadata} of each row.
rows() ->
    {ok, Text} = file:read_file(page()),
    {match, Rows} = re:run(Text, "^\\| (span )?`(\\[tessera, [a-z_]+\\])` \\|([^|]*)\\|([^|]*)\\|", [global, multiline, {capture, all_but_first, list}]),
    [{term(Name), Span =/= "", names(Measured), names(Metadata)} || [Span, Name, Measured, Metadata] <- Rows].

page() ->
    Here = filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))),
    [File | _] = [Path || Root <- [filename:join([Here, "..", ".."]), "."], Path <- [filename:join([Root, "docs", "events.md"])], filelib:is_file(Path)],
    File.

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

names(Text) ->
    case re:run(Text, "`([a-z_]+)`", [global, {capture, all_but_first, list}]) of
        {match, Names} -> [list_to_atom(Name) || [Name] <- Names];
        nomatch -> []
    end.

%% Each event that was seen is in the table with these keys; keys of some events of a row may be missing in others.
check({[tessera, Name | Part], Measured, Metadata}, Rows) ->
    {_, IsSpan, RowMeasured, RowMetadata} = lists:keyfind([tessera, Name], 1, Rows),
    ?assertEqual({Name, IsSpan}, {Name, Part =/= []}),
    {Always, More} = case Part of
                         [] -> {[], []};
                         [exception] -> {maps:get(exception, ?SPAN), [telemetry_span_context, kind, reason, stacktrace]};
                         [Which] -> {maps:get(Which, ?SPAN), [telemetry_span_context]}
                     end,
    ?assertEqual({Name, Part, []}, {Name, Part, Always -- maps:keys(Measured)}),
    ?assertEqual({Name, Part, []}, {Name, Part, More -- maps:keys(Metadata)}),
    ?assertEqual({Name, Part, []}, {Name, Part, (maps:keys(Measured) -- Always) -- RowMeasured}),
    ?assertEqual({Name, Part, []}, {Name, Part, (maps:keys(Metadata) -- More) -- RowMetadata}).

all_keys(Event, Seen, At) -> lists:usort(lists:append([maps:keys(element(At, One)) || One <- Seen, element(1, One) =:= Event])).

table_test_() ->
    {timeout, 120, tessera_test:in_folder(fun(Folder) ->
        Seen = in_node(work, [Folder]),
        Rows = rows(),
        ?assert(length(Rows) >= 13),
        _ = [check(Event, Rows) || Event <- Seen],
        _ = [?assertEqual({Name, part, []}, {Name, part, [start, stop, exception] -- [Part || {[_, Own, Part], _, _} <- Seen, [tessera, Own] =:= Name]})
             || {Name, true, _, _} <- Rows],
        _ = [?assertEqual({Name, measured, []}, {Name, measured, Measured -- all_keys(case IsSpan of true -> Name ++ [stop]; false -> Name end, Seen, 2)})
             || {Name, IsSpan, Measured, _} <- Rows],
        _ = [?assertEqual({Name, metadata, []},
                          {Name, metadata, (Metadata -- [done, callback, stale, programs, kernels, save, load])
                                           -- all_keys(case IsSpan of true -> Name ++ [stop]; false -> Name end, Seen, 3)})
             || {Name, IsSpan, _, Metadata} <- Rows],
        %% the events of a span have one context and this order
        Contexts = lists:usort([Context || {[_, _, _], _, #{telemetry_span_context := Context}} <- Seen]),
        _ = [?assertMatch([start, End] when End =/= start, [Part || {[_, _, Part], _, #{telemetry_span_context := Own}} <- Seen, Own =:= Context])
             || Context <- Contexts],
        %% the events of a compilation and of its runs name one program
        [Program | _] = [P || {[_, compile, stop], #{kernels := N}, #{function := F, program := P}} <- Seen, is_list(F), N > 0],
        ?assertMatch([_ | _], [P || {[_, run, stop], _, #{program := P}} <- Seen, P =:= Program]),
        ?assertMatch([_ | _], [ok || {[_, transfer, stop], #{bytes := 4000}, #{from := "{host,0}", to := "{events_client,0}"}} <- Seen]),
        ?assertMatch([_ | _], [ok || {[_, rank_lost], _, #{rank := 1}} <- Seen])
    end)}.

%% In a node of its own, with small caches: the events of all that has events, with terms that can be printed.
in_node(Function, Args) ->
    Eval = io_lib:format("io:format(\"~~0tp.~~n\", [{apply(~p, ~p, ~p)}]), halt(0).", [?MODULE, Function, Args]),
    {{Term}, _} = tessera_test:answer(tessera_test:vm(["-kernel", "logger_level", "none"], Eval, [])),
    Term.

work(Folder) ->
    _ = application:load(tessera),
    ok = application:set_env(tessera, max_programs, 2),
    ok = application:set_env(tessera, cache_dir, filename:join(Folder, "cache")),
    Self = self(),
    ok = tessera_events:attach(all, [tessera], fun(Event, Measured, Metadata) -> Self ! {event, Event, Measured, Metadata} end),
    ok = programs(),
    ok = moves(),
    ok = pressure(),
    ok = of_nx(Folder),
    ok = cluster(Folder),
    ok = tessera_events:detach(all),
    events().

events() ->
    receive {event, Event, Measured, Metadata} -> [{Event, Measured, maps:map(fun(_, Value) -> printed(Value) end, Metadata)} | events()]
    after 0 -> []
    end.

printed(Value) when is_atom(Value); is_integer(Value) -> Value;
printed(Value) -> lists:flatten(io_lib:format("~0tP", [Value, 12])).

programs() ->
    [_ = (tessera:jit(fun(X) -> tessera:add(X, N) end))(tessera:tensor([1.0])) || N <- [1, 2, 3]],
    {Program, _, _} = tessera_trace:trace(fun([X]) -> tessera:negate(X) end, [{f32, {2}}], []),
    {error, _} = tessera_run:compile(Program, [{client, no_such_client}]),
    Executable = tessera_run:compile(Program, []),
    {error, _} = tessera_run:run(Executable, [tessera:tensor([1, 2, 3])], 0, 0),
    ok.

moves() ->
    ok = tessera:open_client(events_client, #{device_count => 1}),
    T = tessera:iota({1000}, f32),
    _ = tessera:to_device(T, {events_client, 0}),
    {error, _} = tessera_remote:to_device(T, {no_such_client, 0}),
    ok.

%% A call that gets memory when another process has collected garbage, and one that gets none.
pressure() ->
    Limit = maps:get(limit, tessera:memory()),
    ok = tessera:set_memory_limit(100 bsl 20),
    Self = self(),
    Holder = spawn(fun() ->
                           _ = tessera:shape(tessera:ones({60 bsl 20}, u8)),
                           Self ! holds,
                           receive stop -> ok end
                   end),
    receive holds -> ok end,
    _ = tessera:shape(tessera:ones({60 bsl 20}, u8)),
    Holder ! stop,
    ok = try tessera:ones({200 bsl 20}, u8) of _ -> made catch error:{resource_exhausted, _} -> ok end,
    tessera:set_memory_limit(Limit).

%% As the Nx compiler tells.
of_nx(Folder) ->
    ok = tessera_nx_compiler:report(miss, key, {1, 2}, {3, 4}, false),
    done = tessera_nx_compiler:ran(key, #{client => host, device_id => 0}, fun() -> done end),
    Path = filename:join(Folder, "function.cache"),
    value = tessera_nx_disk:fetch(Path, #{key => 1}, fun(_, _) -> ok end, fun(Value) -> Value end, fun() -> value end),
    ok.

cluster(Folder) ->
    Known = process_flag(trap_exit, true),
    {error, _} = tessera_cluster:start_link(#{ranks => 1, mpirun => "/none/mpirun", restarts => {0, 1}}),
    {ok, Cluster} = tessera_cluster:start_link(#{ranks => 2, threads => 1, mpirun => none, restarts => {10, 60}}),
    Parts = tessera_cluster:map(Cluster, fun(Rank) -> tessera:add(Rank, 1.5) end),
    Path = filename:join(Folder, "saved"),
    ok = tessera_cluster:save(Path, Parts),
    [A, _] = tessera_cluster:load(Cluster, Path),
    1.5 = tessera:to_number(A),
    ok = try tessera_cluster:load(Cluster, Path ++ ".none") of _ -> loaded catch error:_ -> ok end,
    [_, #{os_pid := Pid}] = maps:get(ranks, tessera_cluster:info(Cluster)),
    _ = os:cmd("kill -KILL " ++ binary_to_list(Pid)),
    ok = tessera_test:until(fun() -> case catch tessera_cluster:info(Cluster) of #{restarts := 1, state := up} -> true; _ -> false end end),
    ok = tessera_cluster:stop(Cluster),
    _ = process_flag(trap_exit, Known),
    ok.

%% ---- who listens

%% Handlers of one event, or of all that begin so; a handler that raises is detached, and the call has its result.
handlers_test() ->
    Self = self(),
    Tell = fun(Event, _, _) -> Self ! {told, Event} end,
    ok = tessera_events:attach({?MODULE, a}, [tessera, run, stop], Tell),
    ?assert(tessera_events:runs_are_watched()),
    ok = tessera_events:attach({?MODULE, b}, [tessera, run], fun(_, _, _) -> error(handler) end),
    F = tessera:jit(fun(X) -> tessera:add(X, 1) end),
    ?assertEqual(2, tessera:to_number(F(1))),
    tessera_test:until(fun() -> not lists:keymember({?MODULE, b}, 1, tessera_events:handlers()) end),
    ?assertEqual([[tessera, run, stop]], told()),
    ok = tessera_events:detach({?MODULE, a}),
    ok = tessera_events:detach({?MODULE, a}),
    _ = F(1),
    ?assertEqual([], told()),
    [?assertError({invalid_argument, _}, tessera_events:attach(x, Name, Handler))
     || {Name, Handler} <- [{[], Tell}, {[other], Tell}, {tessera, Tell}, {[tessera], fun() -> ok end}, {[tessera], 1}]].

told() ->
    receive {told, Event} -> [Event | told()]
    after 0 -> []
    end.

%% A handler of compilations alone makes no run emit events.
only_compilations_test() ->
    ok = tessera_events:attach(?MODULE, [tessera, compile], fun(_, _, _) -> ok end),
    Watched = tessera_events:runs_are_watched() orelse tessera_metrics:text() =:= <<>>,
    ok = tessera_events:detach(?MODULE),
    ?assertEqual(lists:any(fun({_, Prefix}) -> lists:prefix(Prefix, [tessera, run]) end, tessera_events:handlers()), Watched).

%% With a module in the place of the library telemetry, whose handlers come and go.
telemetry_test_() ->
    {timeout, 60, fun() -> ?assertEqual({0, 2, 0}, in_node(telemetry, [])) end}.

telemetry() ->
    F = tessera:jit(fun(X) -> tessera:add(X, 1) end),
    _ = F(1),
    Table = ets:new(tessera_events_tests, [named_table, public]),
    true = ets:insert(Table, {handlers, []}),
    {module, telemetry} = load_telemetry(),
    Counts = [begin
                  true = ets:insert(Table, {handlers, Handlers}),
                  ok = tessera_events:refresh(),
                  true = ets:insert(Table, {calls, 0}),
                  _ = F(1),
                  ets:lookup_element(Table, calls, 2)
              end || Handlers <- [[], [handler], []]],
    list_to_tuple(Counts).

load_telemetry() ->
    Text = "-module(telemetry). -export([execute/3, list_handlers/1]). "
        "execute([tessera, run, _], _, _) -> ets:update_counter(tessera_events_tests, calls, 1), ok; execute(_, _, _) -> ok. "
        "list_handlers([tessera, run]) -> ets:lookup_element(tessera_events_tests, handlers, 2).",
    {ok, telemetry, Beam} = compile:forms(forms(erl_scan:string(Text))),
    code:load_binary(telemetry, "telemetry", Beam).

forms({ok, Tokens, _}) ->
    {Own, Rest} = lists:splitwith(fun({dot, _}) -> false; (_) -> true end, Tokens),
    case Rest of
        [] -> [];
        [Dot | More] ->
            {ok, Form} = erl_parse:parse_form(Own ++ [Dot]),
            [Form | forms({ok, More, 1})]
    end.

%% ---- Prometheus

metrics_test() ->
    ok = tessera_metrics:stop(),
    ?assertEqual(nomatch, re:run(tessera_metrics:text(), "tessera_run_seconds")),
    ok = tessera_metrics:start(),
    try
        F = tessera:jit(fun(X) -> tessera:add(tessera:tan(X), 0.123) end),
        _ = [F(1.0) || _ <- lists:seq(1, 5)],
        Text = tessera_metrics:text(),
        Values = maps:from_list([{Name, Value} || [Name, Value] <- [string:split(Line, " ", trailing) || Line <- lines(Text), hd(Line) =/= $#]]),
        ?assert(list_to_integer(maps:get("tessera_run_seconds_count", Values)) >= 5),
        ?assertEqual(maps:get("tessera_run_seconds_count", Values), maps:get("tessera_run_seconds_bucket{le=\"+Inf\"}", Values)),
        ?assert(list_to_integer(maps:get("tessera_compilations_total", Values)) >= 1),
        ?assert(list_to_integer(maps:get("tessera_memory_limit_bytes", Values)) > 0),
        %% in the format: each figure has its help and its type, is named once, and is a number
        ?assertEqual([], [Line || Line <- lines(Text), match =/= re:run(Line, "^(# (HELP|TYPE) tessera_[a-z_]+ .+|tessera_[a-z_]+({le=\"[^\"]+\"})? [0-9.e+-]+)$", [{capture, none}])]),
        Typed = [Name || "# TYPE " ++ Rest <- lines(Text), [Name | _] <- [string:split(Rest, " ")]],
        ?assertEqual(length(Typed), length(lists:usort(Typed))),
        ?assertEqual([], [Name || Name <- maps:keys(Values), not lists:any(fun(Own) -> lists:prefix(Own, Name) end, Typed)]),
        %% buckets only grow
        Buckets = [list_to_integer(V) || "tessera_run_seconds_bucket" ++ Rest <- lines(Text), [_, V] <- [string:split(Rest, " ")]],
        ?assertEqual(lists:sort(Buckets), Buckets)
    after tessera_metrics:stop()
    end.

lines(Text) -> string:split(string:trim(binary_to_list(Text)), "\n", all).

%% The page lists each figure.
metrics_page_test() ->
    ok = tessera_metrics:start(),
    Text = tessera_metrics:text(),
    ok = tessera_metrics:stop(),
    {ok, Page} = file:read_file(page()),
    ?assertEqual([], [Name || "# TYPE tessera_" ++ Rest <- lines(Text), [Name, Kind] <- [string:split(Rest, " ")], Kind =:= "gauge",
                              nomatch =:= string:find(Page, lists:last(string:split(Name, "memory")))]).

%% ---- who holds memory

row_of(Pid) ->
    case [Row || #{pid := Own} = Row <- tessera:memory(processes), Own =:= Pid] of
        [Row] -> Row;
        [] -> none
    end.

%% Large tensors are counted exactly, until they are freed, by whatever way.
makers_test_() ->
    {timeout, 60, fun() ->
        Self = self(),
        Maker = spawn_link(fun() ->
                                   true = register(tessera_events_maker, self()),
                                   Tensors = [tessera:iota({250000}, f32) || _ <- [1, 2, 3]],
                                   Self ! {made, Tensors},
                                   receive stop -> ok end
                           end),
        Tensors = receive {made, Made} -> Made end,
        #{name := tessera_events_maker, is_alive := true, tensors := 3, bytes := 3000000, estimated := 0, largest := 1000000, oldest_ms := Age} = row_of(Maker),
        ?assert(Age >= 0),
        [First | _] = Tensors,
        ok = tessera:deallocate(First),
        ?assertMatch(#{tensors := 2, bytes := 2000000}, row_of(Maker)),
        %% memory that a run takes over is the caller's
        Donates = tessera:jit(fun(X) -> tessera:add(X, 1) end, #{donate => [1]}),
        Taken = Donates(lists:last(Tensors)),
        ?assertMatch(#{tensors := 1}, row_of(Maker)),
        ?assertMatch(#{bytes := Bytes} when Bytes >= 1000000, row_of(self())),
        ?assertEqual({250000}, tessera:shape(Taken)),
        Maker ! stop,
        tessera_test:until(fun() -> not is_process_alive(Maker) end),
        ?assertMatch(#{is_alive := false, name := undefined, tensors := 1}, row_of(Maker)),
        ?assertEqual(250000, tessera:size(lists:nth(2, Tensors)))
    end}.

%% Of many small ones the sum is about right: 20 MB in tensors of 2,000 bytes.
small_tensors_test_() ->
    {timeout, 60, fun() ->
        Self = self(),
        {Maker, Monitor} = spawn_monitor(fun() ->
                                                 Tensors = [tessera:iota({500}, f32) || _ <- lists:seq(1, 10000)],
                                                 Self ! made,
                                                 receive stop -> exit({held, length(Tensors)}) end
                                         end),
        receive made -> ok end,
        #{bytes := Bytes, estimated := Bytes, tensors := Count} = row_of(Maker),
        ?assert(abs(Bytes - 20000000) =< 64 * 65536),        % a piece for each thread
        ?assert(abs(Count - 10000) =< 64 * 33),
        Maker ! stop,
        receive {'DOWN', Monitor, process, Maker, {held, 10000}} -> ok end,
        tessera_test:until(fun() -> row_of(Maker) =:= none end)
    end}.

%% Those that hold the most come first.
order_test() ->
    Held = [tessera:iota({N, 100000}, f32) || N <- [1, 2, 3]],
    Bytes = [B || #{bytes := B} <- tessera:memory(processes)],
    ?assertEqual(lists:reverse(lists:sort(Bytes)), Bytes),
    ?assertEqual(3, length(Held)).
