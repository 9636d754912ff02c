%% Clients and devices: where tensors are and programs run, memory of a client's own, configuration.
-module(tessera_client_tests).
-device(host). % clients and memory of the host
-include_lib("eunit/include/eunit.hrl").

-define(IS_STARTED, "lists:keymember(tessera, 1, application:which_applications())").

-define(raises(Code, Part, Call), raises(Code, Part, fun() -> Call end)).

raises(Code, Part, Call) ->
    try Call() of
        Result -> error({no_error, Result})
    catch error:{Code, Message} -> ?assertNotEqual({nomatch, Message}, {string:find(Message, Part), Message})
    end.

open(Name, Options) ->
    ok = tessera:open_client(Name, Options),
    Name.

on(Data, Device) -> tessera:to_device(tessera:tensor(Data), Device).

%% ---- clients

clients_test() ->
    #{host := Hosts} = tessera:clients(),
    ?assert(Hosts >= 1),
    two = open(two, #{device_count => 2}),
    ?assertEqual([{two, 0}, {two, 1}], tessera:devices(two)),
    two = open(two, #{device_count => 1}),   % none is removed
    ?assertMatch(#{two := 2}, tessera:clients()),
    ?assertMatch([{host, 0} | _], tessera:devices()),
    ?assert(lists:member({two, 1}, tessera:devices())).

misuse_test() ->
    ?raises(invalid_argument, "expected 1 to 64 devices, got 65", tessera:open_client(many, #{device_count => 65})),
    ?raises(invalid_argument, "a number of devices", tessera:open_client(many, #{device_count => none})),
    ?raises(invalid_argument, "a limit in bytes", tessera:open_client(many, #{memory_limit => -1})),
    ?raises(invalid_argument, "a number of threads", tessera:open_client(many, #{threads => 1 bsl 40})),
    ?raises(invalid_argument, "unknown option color", tessera:open_client(many, #{color => red})),
    ?raises(invalid_argument, "expected a map of options", tessera:open_client(many, [])),
    ?raises(invalid_argument, "the name of a client", tessera:open_client("many", #{})),
    ?assertNot(is_map_key(many, tessera:clients())),
    T = tessera:tensor([1, 2]),
    [?raises(invalid_argument, Part, tessera:to_device(T, Device))
     || {Part, Device} <- [{"a device as {Client, Number}", host}, {"the name of a client that was opened", {no_client, 0}},
                           {"client host has no device 1000", {host, 1000}}, {"the number of a device", {host, first}}]],
    ?raises(invalid_argument, "", tessera:to_device([1], {host, 0})),
    ?raises(invalid_argument, "", tessera:device(7)),
    ?raises(failed_precondition, "", tessera:device(tessera:template(f32, {2}))),
    ?raises(invalid_argument, "no client no_client is open", tessera:devices(no_client)),
    ?raises(invalid_argument, "the name of a client that was opened", tessera:memory(no_client)),
    ?raises(invalid_argument, "the name of a client that was opened", tessera:set_memory_limit(no_client, 1)),
    ?raises(invalid_argument, "a limit", tessera:set_memory_limit(host, -1)),
    ?raises(invalid_argument, "device is 1, expected {Client, Number}", tessera:jit(fun(X) -> X end, #{device => 1})),
    F = tessera:jit(fun(X) -> tessera:exp(X) end, #{device => {host, 1000}}),
    ?raises(invalid_argument, "client host has no device 1000", F(T)),
    ok = tessera:deallocate(T),
    ?raises(failed_precondition, "deallocated", tessera:device(T)),
    ?raises(failed_precondition, "deallocated", tessera:to_device(T, {host, 0})).

%% ---- the devices of tensors and programs

%% Ops compute where their first tensor is.
ops_test() ->
    three = open(three, #{device_count => 3}),
    A = on([1.0, 2.0], {three, 2}),
    B = on([3.0, 4.0], {three, 1}),
    H = tessera:tensor([5.0, 6.0]),
    ?assertEqual([{host, 0}, {three, 1}, {three, 2}], [tessera:device(T) || T <- [H, B, A]]),
    ?assertEqual([{three, 2}, {three, 1}, {host, 0}, {three, 2}, {three, 2}, {three, 2}],
                 [tessera:device(T) || T <- [tessera:add(A, B), tessera:add(B, A), tessera:add(H, A), tessera:add(1, A),
                                             tessera:reshape(A, {2, 1}), tessera:sum(A)]]),
    ?assertEqual([4.0, 6.0], tessera:to_list(tessera:add(A, B))),
    ?assertEqual({host, 0}, tessera:device(tessera:iota({3}))),
    ?assertEqual([1.0, 2.0], tessera:to_list(tessera:to_device(A, {host, 0}))),
    ?assertEqual(A, tessera:to_device(A, {three, 2})).

%% A function runs on its device, or where its first tensor is; results that are arguments or constants are on that
%% device as well.
jit_test() ->
    four = open(four, #{device_count => 4}),
    Body = fun(X, Y) -> {tessera:add(X, Y), Y, tessera:tensor([7, 8])} end,
    Here = tessera:jit(Body),
    There = tessera:jit(Body, #{device => {four, 3}}),
    Compiled = tessera:compile(Body, [tessera:template(s32, {2}), tessera:template(s32, {2})], #{device => {four, 2}}),
    X = on([1, 2], {four, 1}),
    Y = tessera:tensor([10, 20]),
    Places = fun(Results) -> [tessera:device(T) || T <- tuple_to_list(Results)] end,
    ?assertEqual([{four, 1}, {four, 1}, {four, 1}], Places(Here(X, Y))),
    ?assertEqual([{host, 0}, {host, 0}, {host, 0}], Places(Here(Y, X))),
    ?assertEqual([{four, 3}, {four, 3}, {four, 3}], Places(There(X, Y))),
    ?assertEqual([{four, 2}, {four, 2}, {four, 2}], Places(Compiled(X, Y))),
    [?assertEqual({[11, 22], [10, 20], [7, 8]}, list_to_tuple([tessera:to_list(T) || T <- tuple_to_list(F(X, Y))]))
     || F <- [Here, There, Compiled]],
    Donating = tessera:jit(fun(A, B) -> tessera:add(A, B) end, #{device => {four, 3}, donate => [1]}),
    ?assertEqual([11, 22], tessera:to_list(Donating(X, Y))),
    ?raises(failed_precondition, "donated", tessera:to_list(X)).

%% ---- memory

%% A client's limit and memory are its own.
limit_test() ->
    small_memory = open(small_memory, #{device_count => 2, memory_limit => 1 bsl 20}),
    Bytes = <<0:(600000 * 8)>>,
    T = tessera:to_device(tessera:from_binary(Bytes, u8, {600000}), {small_memory, 0}),
    #{live := Live, limit := Limit, held := Held, devices := Devices} = tessera:memory(small_memory),
    ?assert(Live >= 600000),
    ?assertEqual({1 bsl 20, 600000, #{0 => 600000, 1 => 0}}, {Limit, Held, Devices}),
    ?raises(resource_exhausted, "the limit is 1048576 bytes", tessera:add(T, 1)),
    ?assertEqual({host, 0}, tessera:device(tessera:add(tessera:to_device(T, {host, 0}), 1))),
    View = tessera:to_device(T, {small_memory, 1}),   % the same bytes
    ?assertMatch(#{held := 1200000, devices := #{0 := 600000, 1 := 600000}}, tessera:memory(small_memory)),
    ok = tessera:deallocate(View),
    ok = tessera:set_memory_limit(small_memory, 4 bsl 20),
    Sum = tessera:add(T, 1),
    ?assertEqual({small_memory, 0}, tessera:device(Sum)),
    ok = tessera:deallocate(Sum),
    ok = tessera:deallocate(T),
    ?assertMatch(#{held := 0, live := 0, peak_held := Peak} when Peak >= 1200000, tessera:memory(small_memory)).

%% Garbage is collected when a client's own limit is met.
limit_and_garbage_test() ->
    tight = open(tight, #{memory_limit => 1 bsl 20}),
    T = tessera:to_device(tessera:iota({1000}, f32), {tight, 0}),
    lists:foreach(fun(_) -> tessera:add(T, 1.0) end, lists:seq(1, 3000)),
    ?assertEqual({tight, 0}, tessera:device(tessera:add(T, 1.0))).

%% A client without a limit shares the memory of host, until it gets one.
shared_test() ->
    sharing = open(sharing, #{}),
    #{limit := Limit} = tessera:memory(),
    ?assertMatch(#{limit := Limit}, tessera:memory(sharing)),
    Before = on([1, 2, 3], {sharing, 0}),
    ok = tessera:set_memory_limit(sharing, 1 bsl 20),
    ?assertMatch(#{limit := 1048576}, tessera:memory(sharing)),
    ?assertMatch(#{limit := Limit}, tessera:memory()),
    ?assertEqual([2, 3, 4], tessera:to_list(tessera:add(Before, 1))),
    ?raises(resource_exhausted, "the limit is", tessera:to_device(tessera:iota({1000000}), {sharing, 0})).

%% The tensors of a process that died are no longer held.
dead_process_test() ->
    mourned = open(mourned, #{}),
    {Pid, Monitor} = spawn_monitor(fun() -> exit({held, [on(lists:seq(1, 1000), {mourned, 0}) || _ <- [1, 2, 3]]}) end),
    receive {'DOWN', Monitor, process, Pid, {held, _}} -> ok end,
    tessera_test:until_freed(fun() -> maps:get(held, tessera:memory(mourned)) =:= 0 end).

%% ---- configuration

with_settings(Settings, Call) ->
    Before = [{Key, application:get_env(tessera, Key)} || {Key, _} <- Settings],
    [ok = application:set_env(tessera, Key, Value) || {Key, Value} <- Settings],
    try Call()
    after
        [case Old of
             undefined -> application:unset_env(tessera, Key);
             {ok, Value} -> application:set_env(tessera, Key, Value)
         end || {Key, Old} <- Before]
    end.

configured_test() ->
    Clients = [{configured, [{platform, host}, {device_count, 3}, {memory_limit, 1 bsl 22}, {threads, 1}]},
               {elsewhere, [{platform, cuda}]}, {plain, []}],
    with_settings([{clients, Clients}, {host_devices, 2}],
                  fun() ->
                          ok = tessera_client:configure(),
                          ?assertMatch(#{configured := 3, plain := 2}, tessera:clients()),
                          ?assertNot(is_map_key(elsewhere, tessera:clients())),
                          ?assertMatch(#{limit := 4194304}, tessera:memory(configured))
                  end),
    A = tessera:to_device(tessera:iota({300, 300}, f32), {configured, 1}),
    B = tessera:dot(A, A),   % on one thread
    ?assertEqual({configured, 1}, tessera:device(B)),
    ?assertEqual(tessera:to_binary(tessera:dot(tessera:iota({300, 300}, f32), tessera:iota({300, 300}, f32))),
                 tessera:to_binary(B)),
    [with_settings([{host_devices, Wrong}], fun() -> ?assertError({invalid_argument, _}, tessera_client:host_devices()) end)
     || Wrong <- [0, -1, many, 1.5]].

%% The variable of the environment, in another VM.
environment_test_() ->
    {timeout, 60, fun() ->
        Eval = "{ok, _} = application:ensure_all_started(tessera), io:format(\"~0p~n\", [tessera:devices()]), halt().",
        Run = fun(Count) -> os:cmd("TESSERA_HOST_DEVICES=" ++ Count ++ " erl -noshell " ++ tessera_test:shell_paths()
                                   ++ " -eval " ++ tessera_test:quoted(Eval) ++ " 2>&1") end,
        ?assertEqual("[{host,0},{host,1},{host,2},{host,3}]\n", Run("4")),
        ?assertNotEqual(nomatch, string:find(Run("four"), "expected a number of devices from 1 to 64, got"))
    end}.

%% The first use of the library starts the application and reads all settings. This needs a new VM.
first_use_test_() ->
    [{timeout, 60, fun() -> ?assertEqual(Expected, printed(Variables, Eval)) end}
     || {Expected, Variables, Eval} <-
            [{"[{host,0},{host,1},{host,2}]", "TESSERA_HOST_DEVICES=3", "tessera:devices()"},
             {"2", "", "application:set_env(tessera, host_devices, 2), length(tessera:devices())"},
             {"123456", "", "application:set_env(tessera, memory_limit, 123456), maps:get(limit, tessera:memory())"},
             %% from every way in
             {"true", "", "_ = tessera:add(1, 2), " ++ ?IS_STARTED},
             {"true", "", "_ = (tessera:grad(fun(X) -> X end))(2.0), " ++ ?IS_STARTED},
             {"true", "", "_ = tessera_random:key(1), " ++ ?IS_STARTED},
             {"true", "", "_ = tessera_mesh:shard(tessera:iota({2}), #{shape => {1}}, #{}), " ++ ?IS_STARTED},
             %% many at once
             {"{4,true}", "TESSERA_HOST_DEVICES=4", "Self = self(), "
              "[spawn_link(fun() -> Self ! {devices, length(tessera:devices())} end) || _ <- lists:seq(1, 50)], "
              "[Count] = lists:usort([receive {devices, N} -> N end || _ <- lists:seq(1, 50)]), {Count, " ?IS_STARTED "}"},
             %% a setting that is made later counts where devices are needed
             {"[0,1]", "", "_ = tessera:add(1, 2), application:set_env(tessera, host_devices, 2), "
              "lists:append([tessera:to_list(P) || P <- tessera_mesh:shard(tessera:iota({2}), #{shape => {2}}, #{0 => [0]})])"}]].

%% A wrong setting is named, at each use, and nothing runs without the settings.
wrong_settings_test_() ->
    [{timeout, 60, fun() -> says(Word, printed(Variables, Env ++ "[try tessera:add(1, 2) catch error:{C, W} -> {C, W} end || _ <- [1, 2]]")) end}
     || {Word, Variables, Env} <-
            [{"TESSERA_ISA: expected one of ", "TESSERA_ISA=altivec", ""},
             {"TESSERA_DUMP: expected a list of graph,passes,kernels,llvm,asm,plan, got", "TESSERA_DUMP=graf", ""},
             {"TESSERA_DUMP: expected a list of graph", "TESSERA_DUMP=graph,", ""},
             {"TESSERA_HOST_DEVICES", "TESSERA_HOST_DEVICES=four", ""},
             {"TESSERA_HOST_DEVICES", "TESSERA_HOST_DEVICES=65", ""},
             {"memory_limit", "", "application:set_env(tessera, memory_limit, lots), "},
             {"cache_dir", "", "application:set_env(tessera, cache_dir, 7), "},
             {"max_programs", "", "application:set_env(tessera, max_programs, -1), "},
             {"trace_warnings", "", "application:set_env(tessera, trace_warnings, yes), "}
             | [{Words, "", lists:flatten(io_lib:format("application:set_env(tessera, clients, ~0p), ", [Clients]))}
                || {Words, Clients} <-
                       [{"clients", host}, {"clients", [host]}, {"clients", [{host, 4}]}, {"clients", [{host, [devices]}]},
                        {"clients: host, device_count", [{host, [{device_count, 0}]}]},
                        {"clients: host, device_count", [{host, [{device_count, 65}]}]},
                        {"clients: other, threads", [{other, [{platform, host}, {threads, many}]}]},
                        {"clients: other, memory_limt", [{other, [{memory_limt, 100}]}]}]]]].

%% Options of other platforms are not ours.
other_platform_test_() ->
    Clients = "[{cuda, [{platform, cuda}, {preallocate, false}, {mine, 1}]}, {host, [{platform, host}, {preallocate, false}]}]",
    {timeout, 60, ?_assertEqual("3", printed("", "application:set_env(tessera, clients, " ++ Clients ++ "), tessera:to_number(tessera:add(1, 2))"))}.

says(Words, Text) ->
    ?assertNotEqual({nomatch, Words, Text}, {string:find(Text, Words), Words, Text}),
    ?assertEqual({"[{invalid_argument", Text}, {lists:sublist(Text, 18), Text}),
    ?assertEqual({2, Text}, {length(string:split(Text, "{invalid_argument", all)) - 1, Text}).

%% The result of an expression in another VM, with these environment variables.
printed(Variables, Eval) ->
    Whole = "logger:set_primary_config(level, none), io:format(\"~0tp\", [begin " ++ Eval ++ " end]), halt().",
    os:cmd(Variables ++ " erl -noshell " ++ tessera_test:shell_paths() ++ " -eval " ++ tessera_test:quoted(Whole) ++ " 2>&1").
