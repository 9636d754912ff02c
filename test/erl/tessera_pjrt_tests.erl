%% Clients of plugins, by the plugin of the tests (test/pjrt/plugin.c), whose file TESSERA_TEST_PJRT names.
-module(tessera_pjrt_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/3]).

all_test_() ->
    {setup, fun() ->
                    {ok, _} = application:ensure_all_started(tessera),
                    [ok = open(Name, Manner, #{}) || {Name, Manner} <- manners()]
            end,
     [fun opens/0, fun says_what_is_wrong/0, fun asks_for_precision/0, fun isolates/0, fun goes_on/0, {timeout, 60, fun isolated_callers_are_killed/0}, fun is_configured/0, fun is_found/0, fun is_missing/0, fun is_the_default/0, fun is_a_client_of_nx/0, fun has_pointers/0, fun has_few_pointers/0, fun has_pointers_of_nx/0, {timeout, 60, fun shares_memory/0}, {timeout, 60, fun holds_no_scheduler/0}, fun moves/0, fun refuses/0, fun donates/0, fun callers_of_callbacks_die/0, fun shards/0, fun shards_go_on/0, fun shards_are_killed/0, fun is_full/0, {timeout, 60, fun stops/0}, fun closes/0,
      {timeout, 60, fun fails/0}, {timeout, 60, fun processes_are_killed/0}, fun has_a_limit/0 |
      [{timeout, 60, fun() -> Computes(Name) end} || {Name, _} <- manners(), Computes <- [fun computes/1, fun differentiates/1, fun loops/1, fun types/1, fun factors/1, fun calls_back/1, fun is_profiled/1]]]}.

manners() -> [{plugin_inline, inline}, {plugin_late, late}, {plugin_mixed, mixed}].

path() -> os:getenv("TESSERA_TEST_PJRT").

open(Name, Manner, Options) ->
    tessera:open_client(Name, #{platform => pjrt, plugin_path => path(), plugin_options => Options#{manner => Manner}}).

%% The tensor of a list on a device of the client.
on(Client, List) -> tessera:to_device(tessera:tensor(List), {Client, 0}).

at(Client) -> #{device => {Client, 0}}.

opens() ->
    ok = open(plugin_three, mixed, #{devices => 3}),
    ?assertEqual([{plugin_three, I} || I <- [0, 1, 2]], tessera:devices(plugin_three)),
    ?assert(lists:member({plugin_three, <<"pjrt">>, 3}, tessera_nif:clients())),
    ?assertEqual([], tessera_nif:platform_devices(pjrt)),
    ok = tessera:open_client(plugin_shares, #{platform => pjrt, plugin_path => list_to_binary(path()), memory_fraction => 1,
                                              preallocate => false, device_count => 2, precision => high}),
    ?assertEqual(2, length(tessera:devices(plugin_shares))).

says_what_is_wrong() ->
    Open = fun(Options) -> fun() -> tessera:open_client(plugin_wrong, Options#{platform => pjrt}) end end,
    raises(unavailable, "the plugin /nowhere.so: there is no such file", Open(#{plugin_path => "/nowhere.so"})),
    raises(invalid_argument, "not a shared object", Open(#{plugin_path => code:which(?MODULE)})),
    raises(invalid_argument, "unexpected option colour", Open(#{plugin_path => path(), plugin_options => [{colour, red}]})),
    raises(invalid_argument, "expected a number, a boolean or a text", Open(#{plugin_path => path(), plugin_options => #{devices => {1}}})),
    raises(invalid_argument, "precision: expected default, high or highest", Open(#{plugin_path => path(), precision => most})),
    raises(invalid_argument, "plugin_options: expected a map or a list", Open(#{plugin_path => path(), plugin_options => 1})),
    raises(invalid_argument, "has 4 devices, got 9", Open(#{plugin_path => path(), device_count => 9})),
    raises(invalid_argument, "unknown option plugin_file of a client", Open(#{plugin_file => path()})),
    raises(invalid_argument, "the option plugin_path is of clients of plugins", fun() -> tessera:open_client(plugin_wrong, #{plugin_path => path()}) end).

%% A client of the settings is opened by its first use.
is_configured() ->
    Before = application:get_env(tessera, clients, []),
    Client = {plugin_set, [{platform, pjrt}, {plugin_path, path()}, {plugin_options, [{devices, 2}]}, {memory_limit, nil}]},
    application:set_env(tessera, clients, [Client | Before]),
    try
        ok = tessera_client:ensure(plugin_set, 1),
        ?assertEqual([5], tessera:to_list(tessera:to_device(tessera:tensor([5]), {plugin_set, 1}))),
        ?assertEqual(2, length(tessera:devices(plugin_set)))
    after application:set_env(tessera, clients, Before)
    end.

%% Each program of the plugin is one row, with the time of its runs. A run that fails is not counted.
is_profiled(Client) ->
    F = tessera:jit(fun(X) -> tessera:sum(tessera:multiply(X, X)) end, at(Client)),
    X = on(Client, [1, 2, 3]),
    {Sum, #{runs := 3, run_ns := Ns, programs := Programs} = Profile} =
        tessera:profile(fun() -> F(X), tessera:negate(X), F(X) end, [], #{speed => false}),
    ?assertEqual(14, tessera:to_number(Sum)),
    Name = atom_to_binary(Client),
    [#{runs := 2, line := {?MODULE, _, _, _, _}, steps := [#{kind := <<"device">>, op := Name, count := 2, ns := Twice}]},
     #{runs := 1, steps := [#{kind := <<"device">>, ns := Once}]}] = Programs,
    ?assertEqual({true, Ns}, {Twice > 0, Twice + Once}),
    {_, _} = binary:match(tessera_profile:table(Profile), <<"device    ", Name/binary>>),
    ?assertEqual(6, length([Event || {run, _, _, _, _, _, _} = Event <- maps:get(events, Profile)])),
    {match, _} = re:run(tessera_profile:chrome_trace(Profile), <<"device ", Name/binary>>),
    {match, _} = re:run(tessera_profile:flame_graph(Profile), <<"device ", Name/binary>>).

%% What a call asks of the compiler: of the host nothing.
asks_for_precision() ->
    ok = tessera:open_client(plugin_precise, #{platform => pjrt, plugin_path => path(), device_count => 2}),
    Dot = fun(X) -> tessera:dot(X, X) end,
    Matrix = fun(Device) -> tessera:to_device(tessera:tensor([[1.0, 2.0], [3.0, 4.0]]), Device) end,
    Asked = fun(Client, Options) ->
                    F = tessera:jit(Dot, Options#{device => {Client, 0}}),
                    asked({tessera_run, compile, 3}, 2, fun() -> [[7.0, 10.0], [15.0, 22.0]] = tessera:to_list(F(Matrix({Client, 0}))) end)
            end,
    ?assertEqual([], Asked(plugin_precise, #{})),
    [?assertEqual([{precision, Precision}], Asked(plugin_precise, #{precision => Precision})) || Precision <- [default, high, highest]],
    ?assertEqual([], Asked(host, #{precision => default})),
    Sharded = tessera:shard_jit(Dot, #{shape => {2}, axes => [x]}, #{client => plugin_precise, input_shardings => [#{}], precision => high}),
    Lists = [[Matrix({plugin_precise, I})] || I <- [0, 1]],
    ?assertEqual([{precision, high}], asked({tessera_platform, compile, 4}, 3, fun() -> [_, _] = Sharded(Lists) end)),
    raises(invalid_argument, "jit: precision is most, expected default, high or highest", fun() -> tessera:jit(Dot, #{precision => most}) end),
    raises(invalid_argument, "shard_jit: precision is 1, expected default",
           fun() -> tessera:shard_jit(Dot, #{shape => {2}, axes => [x]}, #{client => plugin_precise, input_shardings => [#{}], precision => 1}) end).

%% The precision among the options that a function which compiles gets, its N-th argument. Calls of the process that
%% receives the trace are not in it.
asked(Function, N, Call) ->
    1 = erlang:trace_pattern(Function, [{'_', [], []}], [{meta, self()}]),
    {_, Monitor} = spawn_monitor(Call),
    try receive {'DOWN', Monitor, process, _, Reason} -> ?assertEqual(normal, Reason) end
    after 1 = erlang:trace_pattern(Function, false, [meta])
    end,
    Delivered = erlang:trace_delivered(all),
    receive {trace_delivered, all, Delivered} -> ok end,
    [Args] = calls(),
    [Option || {precision, _} = Option <- lists:nth(N, Args)].

%% The arguments of the traced calls.
calls() ->
    receive {trace_ts, _, call, {_, _, Args}, _} -> [Args | calls()]
    after 0 -> []
    end.

isolated(Name, Options) ->
    ok = tessera:open_client(Name, #{platform => pjrt, plugin_path => path(), isolated => true, plugin_options => Options}).

%% A plugin in a process of its own does the same.
isolates() ->
    ok = isolated(plugin_isolated, #{manner => mixed}),
    [Computes(plugin_isolated) || Computes <- [fun computes/1, fun differentiates/1, fun loops/1, fun types/1]],
    Large = tessera:iota({1000000}, #{type => f32}),
    ?assertEqual(tessera:to_binary(Large), tessera:to_binary(tessera:negate(tessera:negate(tessera:to_device(Large, {plugin_isolated, 0}))))),
    tessera_test:closes(plugin_isolated_shut, fun() -> isolated(plugin_isolated_shut, #{}) end).

%% If the plugin ends its process, that is an error, and the next operation has another process.
goes_on() ->
    ok = isolated(plugin_ends, #{abort_at => 3}),
    F = tessera:jit(fun(X) -> tessera:multiply(X, 3) end, at(plugin_ends)),
    Lost = F(on(plugin_ends, [1, 2])),
    raises(unavailable, "signal 6", fun() -> tessera:to_list(Lost) end),
    raises(unavailable, "signal 6", fun() -> tessera:to_list(Lost) end),
    [begin
         X = F(on(plugin_ends, [1, I])),
         raises(unavailable, "signal 6", fun() -> tessera:to_list(X) end)
     end || I <- lists:seq(1, 5)],
    raises(unavailable, "was in a process of the plugin that has ended", fun() -> F(Lost) end),
    ok = tessera:open_client(plugin_hangs, #{platform => pjrt, plugin_path => path(), isolated => true, timeout => 2000, plugin_options => #{never_at => 2}}),
    raises(unavailable, "did not answer by its deadline", fun() -> tessera:to_list(on(plugin_hangs, [1])) end),
    raises(unavailable, "open_timeout", fun() -> tessera:open_client(plugin_never, #{platform => pjrt, plugin_path => path(), open_timeout => 20,
                                                                                    plugin_options => #{hangs => true}}) end),
    [raises(invalid_argument, atom_to_list(Option) ++ ": expected milliseconds",
            fun() -> tessera:open_client(plugin_never, #{platform => pjrt, plugin_path => path(), Option => -1}) end)
     || Option <- [timeout, compile_timeout]],
    is_late(),
    never_compiles().

%% A compiler that never returns is an error, and transfers go on. No more is compiled by this client after 16 such programs.
never_compiles() ->
    ok = tessera:open_client(plugin_never_compiles, #{platform => pjrt, plugin_path => path(), compile_timeout => 200, plugin_options => #{never_compiles => true}}),
    Numbers = [1, 2, 3, 4, 5, 6, 7],     % no other test has these programs, so that none is in the disk cache
    First = rand:uniform(1000000000),    % nor an earlier run of this one
    X = on(plugin_never_compiles, Numbers),
    raises(unavailable, "the compilation did not end within 200 ms (compile_timeout)", fun() -> tessera:right_shift(X, X) end),
    raises(unavailable, "(compile_timeout)", fun() -> (tessera:jit(fun(A) -> tessera:multiply(A, 41503) end, at(plugin_never_compiles)))(X) end),
    Long = fun(A) -> lists:foldl(fun(N, B) -> tessera:bitwise_xor(tessera:multiply(B, 3), N) end, A, lists:seq(First, First + 299)) end,
    raises(unavailable, "(compile_timeout)", fun() -> (tessera:jit(Long, at(plugin_never_compiles)))(X) end),
    ok = tessera:open_client(plugin_compiles, #{platform => pjrt, plugin_path => path(), compile_timeout => 60000}),
    Y = (tessera:jit(Long, at(plugin_compiles)))(on(plugin_compiles, Numbers)),
    ?assertEqual(tessera:to_list((tessera:jit(Long))(tessera:tensor(Numbers))), tessera:to_list(Y)),
    ?assertEqual(Numbers, tessera:to_list(X)).

%% In the VM's process an operation that does not end is an error, and keeps its memory. Other operations go on.
is_late() ->
    ok = tessera:open_client(plugin_is_late, #{platform => pjrt, plugin_path => path(), timeout => 2000, plugin_options => #{never_at => 2}}),
    F = tessera:jit(fun(X) -> tessera:multiply(X, 3) end, at(plugin_is_late)),
    X = on(plugin_is_late, [1, 2]),
    raises(unavailable, "the run did not end within 2000 ms (timeout)", fun() -> F(X) end),
    ?assertEqual([3, 6], tessera:to_list(F(X))),
    ?assertEqual([1, 2], tessera:to_list(X)),
    ?assert(maps:get(live, tessera_nif:memory(plugin_is_late)) >= 16).

%% Nothing is left of processes that are killed while the plugin's process works or ends.
isolated_callers_are_killed() ->
    ok = isolated(plugin_works, #{abort_at => 500, manner => late}),
    F = tessera:jit(fun(X) -> tessera:sum(tessera:multiply(X, X)) end, at(plugin_works)),
    Work = fun Work() -> _ = (catch tessera:to_list(tessera:add(F(on(plugin_works, lists:seq(1, 100))), 1))), Work() end,
    Workers = [spawn_monitor(Work) || _ <- lists:seq(1, 1000)],
    [begin
         exit(Pid, kill),
         receive {'DOWN', Monitor, process, Pid, _} -> ok end
     end || {Pid, Monitor} <- Workers],
    tessera_test:until_freed(fun() -> maps:get(live, tessera_nif:memory(plugin_works)) =:= 0 end).

%% With the environment's variable set to a text, the result of Call.
with_env(Variables, Call) ->
    Before = [{Variable, os:getenv(Variable)} || {Variable, _} <- Variables],
    _ = [os:putenv(Variable, Text) || {Variable, Text} <- Variables],
    try Call()
    after [case Text of false -> os:unsetenv(Variable); _ -> os:putenv(Variable, Text) end || {Variable, Text} <- Before]
    end.

%% A plugin in the usual place of a Python environment, in its last version, or where the environment says.
is_found() ->
    Folder = filename:absname(tessera_test:temporary("plugins")),
    [begin
         File = filename:join([Folder, "lib/python3.99/site-packages", Plugin]),
         ok = filelib:ensure_dir(File),
         ok = file:make_symlink(path(), File)
     end || Plugin <- ["jax_plugins/xla_cuda12/xla_cuda_plugin.so", "jax_plugins/xla_cuda13/xla_cuda_plugin.so", "libtpu/libtpu.so"]],
    Path = fun(Platform) -> tessera_plugins:find(Platform) end,
    with_env([{"VIRTUAL_ENV", Folder}, {"TESSERA_ROCM_PLUGIN", "/some/rocm.so"}],
             fun() ->
                     ?assertEqual(filename:join(Folder, "lib/python3.99/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so"), Path(cuda)),
                     ?assertEqual(filename:join(Folder, "lib/python3.99/site-packages/libtpu/libtpu.so"), Path(tpu)),
                     ?assertEqual("/some/rocm.so", Path(rocm)),
                     with_env([{"TPU_LIBRARY_PATH", "/some/tpu.so"}], fun() -> ?assertEqual("/some/tpu.so", Path(tpu)) end),
                     tessera_plugins:devices(cuda) > 0 orelse
                         raises(unavailable, "xla_cuda13/xla_cuda_plugin.so, and no NVIDIA GPU with its driver: /dev/nvidia",
                                fun() -> tessera:open_client(gpu_missing, #{platform => cuda}) end)
             end).

%% If a plugin is not installed, the error says how to install it.
is_missing() ->
    [raises(unavailable, Part, fun() -> tessera:open_client(gpu_missing, #{platform => Platform}) end)
     || {Platform, Part} <- [{rocm, "pip install"}, {tpu, "pip install libtpu"}], not is_map_key(Platform, tessera:platforms()), tessera_plugins:find(Platform) =:= none],
    raises(invalid_argument, "pjrt_plugin needs the option plugin_path", fun() -> tessera:open_client(gpu_missing, #{platform => pjrt_plugin}) end).

%% A function without a device is compiled for the default client. Where that changes, its program is another one.
is_the_default() ->
    Before = tessera_nif:default_client(),
    Explained = fun() -> tessera:explain(fun(X) -> tessera:subtract(tessera:sin(X), 41.5) end, [tessera:template(f32, {3})]) end,
    ok = tessera_nif:default_client(plugin_inline),
    try
        ?assertMatch({_, _}, binary:match(Explained(), <<"The plugin runs the program as a whole">>)),
        ?assertMatch({_, _}, binary:match(tessera_eunit:on_host(Explained), <<"kernel">>)),
        ?assertMatch({_, _}, binary:match(Explained(), <<"The plugin runs">>))
    after
        ok = tessera_nif:default_client(Before),
        ok = tessera:clear_cache()
    end.

%% Clients of the configuration as EXLA has them.
is_a_client_of_nx() ->
    Before = application:get_env(tessera, clients, []),
    Clients = [{nx_gpu, [{platform, cuda}, {plugin_path, path()}, {memory_fraction, 0.5}, {default_device_id, 2}]},
               {nx_tpu, [{platform, tpu}]},
               {nx_other, [{platform, pjrt_plugin}, {plugin_path, path()}, {device_type, "interpreter"}, {automatic_transfers, true}]}],
    application:set_env(tessera, clients, Clients ++ Before),
    try
        ?assertMatch(#{platform := cuda, device_count := 4, default_device_id := 2, automatic_transfers := false}, tessera_nx_client:'fetch!'(nx_gpu)),
        ?assertMatch(#{platform := pjrt_plugin, default_device_id := 0, automatic_transfers := true}, tessera_nx_client:'fetch!'(nx_other)),
        ?assertEqual({nx_gpu, 2}, tessera_nx_client:place([{client, nx_gpu}])),
        ?assertEqual({nx_gpu, 3}, tessera_nx_client:place([{client, nx_gpu}, {device_id, 3}])),
        ?assertMatch(#{allocated := 0}, tessera_nx_client:get_memory_statistics(tessera_nx_client:'fetch!'(nx_gpu))),
        [begin
             application:set_env(tessera, preferred_clients, Preferred),
             ?assertEqual(Expected, tessera_nx_client:default_name())
         end || {Preferred, Expected} <- [{[nx_gpu, nx_other], nx_gpu}, {[nx_other, nx_gpu], nx_other}] ++
                    [{[nx_tpu, nx_gpu], nx_gpu} || not is_map_key(tpu, tessera:platforms())],
                application:get_env(tessera, default_client) =:= undefined]
    after
        application:unset_env(tessera, preferred_clients),
        application:set_env(tessera, clients, Before)
    end.

computes(Client) ->
    A = on(Client, [1.0, 2.0, 3.0]),
    ?assertEqual({Client, 0}, tessera:device(A)),
    Sum = tessera:add(A, 1),
    ?assertEqual({Client, 0}, tessera:device(Sum)),
    ?assertEqual([2.0, 3.0, 4.0], tessera:to_list(Sum)),
    F = tessera:jit(fun(X) -> {tessera:sum(X), [tessera:multiply(X, X), #{half => tessera:divide(X, 2)}]} end, at(Client)),
    {Total, [Squares, #{half := Half}]} = F(Sum),
    ?assertEqual({9.0, [4.0, 9.0, 16.0], [1.0, 1.5, 2.0]}, {tessera:to_number(Total), tessera:to_list(Squares), tessera:to_list(Half)}),
    ?assertEqual({Client, 0}, tessera:device(Half)),
    ?assertEqual([[1.0, 2.0, 3.0]], tessera:to_list(tessera:negate(tessera:negate(tessera:reshape(A, {1, 3}))))),
    ?assertEqual([], tessera:to_list(tessera:add(on(Client, []), 1))),
    ?assertEqual([[2.0]], tessera:to_list(tessera:dot(on(Client, [[1.0, 1.0]]), on(Client, [[1.0], [1.0]])))).

differentiates(Client) ->
    Grad = tessera:grad(fun(X) -> tessera:sum(tessera:multiply(X, tessera:multiply(X, X))) end),
    ?assertEqual([3.0, 12.0, 27.0], tessera:to_list(Grad(on(Client, [1.0, 2.0, 3.0])))),
    Jit = tessera:jit(Grad, at(Client)),
    ?assertEqual([3.0, 12.0, 27.0], tessera:to_list(Jit(on(Client, [1.0, 2.0, 3.0])))).

loops(Client) ->
    F = tessera:jit(fun(X) -> tessera:while(X, fun(Y) -> tessera:less(tessera:sum(Y), 100) end, fun(Y) -> tessera:multiply(Y, 2) end) end, at(Client)),
    ?assertEqual([32, 64, 96], tessera:to_list(F(on(Client, [1, 2, 3])))),
    G = tessera:jit(fun(X) -> tessera:'cond'(tessera:greater(tessera:sum(X), 3), fun() -> X end, fun() -> tessera:negate(X) end) end, at(Client)),
    ?assertEqual([[2, 3], [-1, -2]], [tessera:to_list(G(on(Client, List))) || List <- [[2, 3], [1, 2]]]).

%% Tensors of each type are copied to the device and back, and an op moves their elements there.
types(Client) ->
    [begin
         Here = tessera:as_type(tessera:tensor([[0, 1, 1], [1, 0, 1]]), Type),
         There = tessera:to_device(Here, {Client, 0}),
         ?assertEqual({Type, tessera:to_binary(Here)}, {Type, tessera:to_binary(There)}),
         ?assertEqual({Type, tessera:to_binary(tessera:transpose(Here))}, {Type, tessera:to_binary(tessera:transpose(There))})
     end || Type <- [s2, s4, s8, s16, s32, s64, u2, u4, u8, u16, u32, u64, f8, f8_e4m3fn, f16, bf16, f32, f64, c64, c128]].

moves() ->
    A = on(plugin_mixed, [1, 2, 3]),
    There = [tessera:to_device(A, Device) || Device <- [{plugin_mixed, 1}, {host, 0}, {plugin_late, 2}, {plugin_mixed, 0}]],
    ?assertEqual(lists:duplicate(4, [1, 2, 3]), [tessera:to_list(T) || T <- There]),
    Host = tessera:jit(fun(X, Y) -> tessera:add(X, Y) end, #{device => {host, 0}}),
    ?assertEqual([2, 4, 6], tessera:to_list(Host(A, hd(There)))),
    Second = tessera:jit(fun(X, Y) -> tessera:add(X, Y) end, #{device => {plugin_mixed, 1}}),
    Sum = Second(A, lists:nth(2, There)),
    ?assertEqual({{plugin_mixed, 1}, [2, 4, 6]}, {tessera:device(Sum), tessera:to_list(Sum)}).

%% A program that the interface cannot compile is an error that names the op.
refuses() ->
    Text = <<"graph @main(%0: f32[3]) -> (f32[3]) {\n  %1 = custom_call %0 \"some(a = 1)\" {\n    types() {\n"
             "      %9 = constant 0.0 : f32[3]\n      return %9\n    }\n  } : f32[3]\n  return %1\n}\n">>,
    ?assertMatch({error, #{code := unimplemented, message := <<"custom_call has no form in StableHLO">>}},
                 tessera_run:compile(tessera_nif:parse(Text), [{client, plugin_mixed}])).

%% StableHLO has no factorizations: they are loops there.
factors(Client) ->
    List = [[4.0, 1.0, 2.0], [1.0, -3.0, 0.5], [2.0, 0.5, 3.0]],
    A = on(Client, List),
    Host = tessera:tensor(List),
    Near = fun(X, Y) -> ?assert(tessera:to_number(tessera:all_close(tessera:to_device(X, {host, 0}), Y, #{atol => 1.0e-5})) =:= 1) end,
    Product = fun(Factors) -> lists:foldl(fun(F, P) -> tessera:matmul(P, F) end, hd(Factors), tl(Factors)) end,
    {P, L, U} = tessera:lu(A),
    Near(Product([P, L, U]), Host),
    {Q, R} = tessera:qr(A),
    Near(Product([Q, R]), Host),
    {Values, Vectors} = tessera:eigh(A),
    {HostValues, HostVectors} = tessera:eigh(Host),
    Near(Values, HostValues),
    Near(Vectors, HostVectors),
    {Left, Singular, Right} = tessera:svd(A),
    Near(Singular, tessera:abs(HostValues)),
    Near(Product([tessera:multiply(Left, Singular), Right]), Host),
    Near(tessera:solve(A, on(Client, [1.0, 2.0, 3.0])), tessera:solve(Host, tessera:tensor([1.0, 2.0, 3.0]))),
    Near(tessera:determinant(A), tessera:determinant(Host)),
    Inside = tessera:jit(fun(X) -> tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 2) end,
                                                 fun({I, Y}) -> {tessera:add(I, 1), tessera:solve(A, Y)} end) end, at(Client)),
    {_, Solved} = Inside(A),
    Near(Solved, tessera:inverse(Host)).

donates() ->
    F = tessera:jit(fun(X) -> tessera:add(X, 1) end, (at(plugin_mixed))#{donate => [1]}),
    A = on(plugin_mixed, [1, 2]),
    ?assertEqual([2, 3], tessera:to_list(F(A))),
    raises(failed_precondition, "", fun() -> tessera:add(A, 1) end),
    Twice = tessera:jit(fun(X, Y) -> {tessera:add(X, Y), tessera:multiply(X, Y)} end, (at(plugin_mixed))#{donate => [1, 2]}),
    B = on(plugin_mixed, [3, 4]),
    raises(failed_precondition, "argument 2: the tensor was deallocated or donated", fun() -> Twice(B, B) end),
    ?assertEqual([3, 4], tessera:to_list(B)).

%% A device without memory is an error of the operation, and tensors stay.
is_full() ->
    [begin
         ok = tessera:open_client(Name, #{platform => pjrt, plugin_path => path(), isolated => Isolated, plugin_options => #{full_at => 2}}),
         X = on(Name, [1, 2]),
         raises(resource_exhausted, "the device has no memory left", fun() -> tessera:add(X, 1) end),
         raises(resource_exhausted, "the device has no memory left", fun() -> on(Name, [1]) end),
         ?assertEqual([1, 2], tessera:to_list(X))
     end || {Name, Isolated} <- [{plugin_full, false}, {plugin_full_apart, true}]].

%% The VM ends in order while runs of a plugin go, in its process and in another one.
stops() ->
    Program = "application:ensure_all_started(tessera), "
        "[ok = tessera:open_client(N, #{platform => pjrt, plugin_path => os:getenv(\"TESSERA_TEST_PJRT\"), isolated => I, plugin_options => #{manner => late}})"
        " || {N, I} <- [{a, false}, {b, true}]], "
        "Main = self(), Work = fun W(N) -> X = tessera:to_device(tessera:iota({1000}), {N, 0}), "
        "[tessera:add(X, I) || I <- lists:seq(1, 50)], Main ! going, W(N) end, "
        "[spawn(fun() -> Work(N) end) || N <- [a, b], _ <- lists:seq(1, 10)], "
        "[receive going -> ok end || _ <- lists:seq(1, 20)], ok = application:stop(tessera), io:format(\"stopped~n\"), halt(0).",
    Output = os:cmd(lists:flatten(["erl -noshell -noinput ", tessera_test:shell_paths(), " -eval '", Program, "'; echo status $?"])),
    %% the log may say that the application ended, before or after that line
    ?assertMatch({match, _}, re:run(Output, "^stopped\n.*^status 0\n\\z", [dotall, multiline])).

%% A program that calls back in a loop and between two ops.
calling(Client) ->
    Types = fun(Id) -> [" {\n types() {\n ", Id, " = constant 0.0 : f32[3]\n return ", Id, "\n }\n } : f32[3]\n"] end,
    Text = ["graph @main(%0: f32[3]) -> (f32[3]) {\n"
            "  %1 = add %0, %0 : f32[3]\n  %2 = callback %1 {index = 0}", Types("%20"),
            "  %3 = while %2 {\n    condition(%4: f32[3]) {\n      %5 = reduce_max %4 {axes = [0]} : f32[]\n"
            "      %6 = constant 100.0 : f32[]\n      %7 = less %5, %6 : u8[]\n      return %7\n    }\n"
            "    body(%8: f32[3]) {\n      %9 = callback %8 {index = 1}", Types("%21"), "      return %9\n    }\n  } : f32[3]\n"
            "  %10 = negate %3 : f32[3]\n  return %10\n}\n"],
    tessera_run:compile(tessera_nif:parse(iolist_to_binary(Text)), [{client, Client}]).

%% Answers each call by a tensor of the device with three times the operand. Returns the result and all operands.
answered(Run, Client) -> answered(Run, Client, []).

answered({callback, Run, Index, [Bytes]}, Client, Calls) ->
    Operand = tessera:to_device(tessera:from_binary(Bytes, f32, {3}), {Client, 0}),
    answered(tessera_remote:answer(Run, [tessera:multiply(Operand, 3.0)]), Client, [{Index, tessera:to_list(Operand)} | Calls]);
answered([Result], _, Calls) -> {tessera:to_list(Result), lists:reverse(Calls)}.

calls_back(Client) ->
    Run = fun(At) -> answered(tessera_run:run(calling(At), [on(At, [1.0, 2.0, -5.0])], 0, 0), At) end,
    {[-54.0, -108.0, 270.0], [{0, [2.0, 4.0, -10.0]}, {1, [6.0, 12.0, -30.0]} | _]} = Expected = Run(host),
    ?assertEqual(Expected, Run(Client)),
    ?assertMatch({_, _}, binary:match(tessera_nif:explain(calling(Client)), <<"split at its callbacks into">>)).

%% If the process of a run ends instead of giving an answer, or is killed, nothing is left, also of an isolated plugin.
callers_of_callbacks_die() ->
    ok = isolated(plugin_calls, #{manner => mixed}),
    ?assertEqual(calls_back(plugin_calls), ok),
    [begin
         Program = calling(Client),
         Before = maps:get(live, tessera_nif:memory(Client)),
         Ask = fun() -> tessera_run:run(Program, [on(Client, [1.0, 2.0, 3.0])], 0, 0) end,
         {callback, Run, 0, _} = Ask(),
         ok = tessera_nif:run_abandon(Run),
         {error, #{code := invalid_argument}} = tessera_remote:answer(element(2, Ask()), [tessera:tensor([1.0])]),
         [begin
              {Pid, Monitor} = spawn_monitor(fun() -> _ = Ask(), End() end),
              receive {'DOWN', Monitor, process, Pid, _} -> ok end
          end || End <- [fun() -> ok end, fun() -> exit(kill) end], _ <- lists:seq(1, 20)],
         [true = erlang:garbage_collect() || _ <- [1]],
         tessera_test:until_freed(fun() -> maps:get(live, tessera_nif:memory(Client)) =< Before end)
     end || Client <- [plugin_calls, plugin_mixed]].

%% The parts of a tensor, on the devices of the client.
parts(Client, Tensor, Mesh, Sharding) -> tessera_mesh:shard(Tensor, Mesh, Sharding, Client).

%% The partitions of a program on the devices of a client: as the host's, and the whole function's.
shards() ->
    Mesh = #{shape => {2, 2}, axes => [a, b]},
    A = tessera:reshape(tessera:iota({24}, #{type => f32}), {4, 6}),
    B = tessera:reshape(tessera:iota({12}, #{type => f32}), {6, 2}),
    Product = fun(X, Y) -> tessera:sum(tessera:matmul(X, Y), #{axes => [0]}) end,
    Cut = [#{0 => [a], 1 => [b]}, #{0 => [b]}],
    Run = fun(Client) ->
                  Sharded = tessera:shard_jit(Product, Mesh, #{input_shardings => Cut, client => Client}),
                  Lists = [[X, Y] || {X, Y} <- lists:zip(parts(Client, A, Mesh, hd(Cut)), parts(Client, B, Mesh, lists:last(Cut)))],
                  Results = Sharded(Lists),
                  ?assertEqual([{Client, I} || I <- [0, 1, 2, 3]], [tessera:device(R) || R <- Results]),
                  tessera:to_list(tessera_mesh:gather(Results, Mesh, tessera_mesh:results(Sharded, Lists)))
          end,
    Whole = tessera:to_list(Product(A, B)),
    [?assertEqual(Whole, Run(Client)) || Client <- [host_of_four(), plugin_inline, plugin_late, plugin_mixed, plugin_isolated]],
    maps(Mesh).

%% A program of partitions is compiled again for the process that follows, with the coordinates of its partitions.
shards_go_on() ->
    ok = isolated(plugin_shards_end, #{abort_at => 24}),
    Mesh = #{shape => {2, 2}, axes => [a, b]},
    Map = tessera:shard_map(fun(P) -> tessera:add(P, tessera:add(tessera_mesh:axis_index(a), tessera:multiply(tessera_mesh:axis_index(b), 10))) end,
                            Mesh, [#{0 => [a, b]}], #{0 => [a, b]}, #{client => plugin_shards_end, check => false}),
    Run = fun() ->
                  Parts = parts(plugin_shards_end, tessera:tensor([100, 200, 300, 400]), Mesh, #{0 => [a, b]}),
                  [tessera:to_list(R) || R <- Map([[P] || P <- Parts])]
          end,
    Tries = [try Run() catch error:{Code, _} -> Code end || _ <- lists:seq(1, 12)],
    ?assertEqual([unavailable, [[100], [210], [301], [411]]], lists:usort(Tries)).

host_of_four() ->
    ok = tessera:open_client(plugin_host, #{device_count => 4}),
    plugin_host.

%% Each collective, and the coordinates of a partition.
maps(Mesh) ->
    X = tessera:reshape(tessera:iota({16}, #{type => f32}), {4, 4}),
    Both = #{0 => [a], 1 => [b]},
    Functions = [fun(P) -> tessera_mesh:all_reduce(P, sum, a) end, fun(P) -> tessera_mesh:all_reduce(P, max, [a, b]) end,
                 fun(P) -> tessera_mesh:all_gather(P, 0, b) end, fun(P) -> tessera_mesh:reduce_scatter(P, 1, b) end,
                 fun(P) -> tessera_mesh:permute(P, [{0, 1}, {1, 0}], a) end, fun(P) -> tessera_mesh:permute(P, [], a) end,
                 fun(P) -> tessera_mesh:broadcast_from(P, 1, b) end, fun(P) -> tessera_mesh:all_to_all(P, 0, 1, b) end,
                 fun(P) -> tessera:add(P, tessera:multiply(tessera_mesh:axis_index(a), tessera:add(tessera_mesh:axis_index(b), 10))) end],
    [begin
         Run = fun(Client) ->
                       Map = tessera:shard_map(F, Mesh, [Both], Both, #{client => Client, check => false}),
                       [tessera:to_list(R) || R <- Map([[P] || P <- parts(Client, X, Mesh, Both)])]
               end,
         [?assertEqual(Run(plugin_host), Run(Client)) || Client <- [plugin_mixed, plugin_isolated]]
     end || F <- Functions].

%% Nothing is left of callers that are killed while the partitions of their program run.
shards_are_killed() ->
    Mesh = #{shape => {4}},
    Sum = tessera:shard_jit(fun(X) -> tessera:sum(tessera:exp(X)) end, Mesh, #{input_shardings => [#{0 => [0]}], client => plugin_late}),
    Lists = [[P] || P <- parts(plugin_late, tessera:iota({4000}, #{type => f32}), Mesh, #{0 => [0]})],
    [First | _] = Results = Sum(Lists),
    ?assertEqual(lists:duplicate(4, tessera:to_list(First)), [tessera:to_list(R) || R <- Results]),
    Held = fun() -> maps:get(live, tessera_nif:memory(plugin_late)) end,
    Before = Held(),
    tessera_test:kills(50, fun Work(I) -> _ = Sum(Lists), Work(I) end),
    tessera_test:until_freed(fun() -> Held() =< Before end),
    ?assertEqual(16, lists:sum([byte_size(tessera:to_binary(R)) || R <- Sum(Lists)])).

closes() -> tessera_test:closes(plugin_shut, fun() -> open(plugin_shut, mixed, #{devices => 1}) end).

%% Every fifth operation of a client is an error; all others are right.
fails() ->
    ok = open(plugin_failing, mixed, #{fail_every => 5}),
    tessera_test:some_fail(plugin_failing, 100, "the plugin failed").

%% What processes leave behind that are killed at any moment: nothing.
processes_are_killed() ->
    F = tessera:jit(fun(X) -> tessera:sum(tessera:multiply(X, X)) end, at(plugin_late)),
    X = on(plugin_late, lists:seq(1, 1000)),
    _ = F(X),
    Held = fun() -> maps:get(live, tessera_nif:memory(plugin_late)) end,
    tessera_test:until_freed(fun() -> Held() =:= 4000 end),
    tessera_test:kills(1000, fun Work(I) -> _ = tessera:to_list(tessera:add(F(X), on(plugin_late, [1]))), Work(I) end),
    tessera_test:until_freed(fun() -> Held() =:= 4000 end),
    ?assertEqual(4000, byte_size(tessera:to_binary(X))).

%% A client whose device is a CPU: its elements are read where they are, and it reads those of the host.
cpu(Name, Manner) ->
    ok = open(Name, Manner, #{cpu => true}),
    on(Name, lists:seq(1, 20000)).

large() -> tessera:iota({100000}, #{type => s32}).

address(#tessera{ref = Ref}) -> tessera_run:awaited(tessera_nif:address(Ref)).

made({pressure, Made}) -> Made;
made(Made) -> Made.

view({Address, _, _}, Shape, Device) -> made(tessera_run:awaited(tessera_nif:from_address(Address, s32, Shape, Device))).

%% An address, a tensor on it, and what is computed from that; also between the host and the plugin, both ways.
has_pointers() ->
    _ = cpu(plugin_cpu, mixed),
    X = tessera:negate(tessera:to_device(large(), {plugin_cpu, 0})),
    {Address, 400000, host} = At = address(X),
    ?assertEqual(At, address(X)),
    Views = [view(At, {250, 400}, Device) || Device <- [{plugin_cpu, 0}, {plugin_cpu, 1}, {host, 0}]],
    ?assertEqual([{plugin_cpu, 0}, {plugin_cpu, 1}, {host, 0}], [tessera:device(V) || V <- Views]),
    Sum = -lists:sum(lists:seq(0, 99999)) band 16#ffffffff,
    <<Wrapped:32/signed>> = <<Sum:32>>,
    [?assertEqual({tessera:to_binary(X), Wrapped}, {tessera:to_binary(V), tessera:to_number(tessera:sum(V))}) || V <- Views],
    Host = large(),
    ?assertEqual(tessera:to_binary(Host), tessera:to_binary(view(address(Host), {100000}, {plugin_cpu, 0}))),
    {error, #{code := invalid_argument}} = view({4096, 0, host}, {100000}, {plugin_cpu, 0}),
    {error, #{code := invalid_argument}} = view({0, 0, host}, {100000}, {plugin_cpu, 0}),
    {error, #{code := invalid_argument}} = view({Address + 1, 0, host}, {10}, {plugin_cpu, 0}),
    ?assertEqual(400000, byte_size(tessera:to_binary(X))). % it was needed until here

%% A device that is no CPU has addresses of its own. A process of its own has none.
has_few_pointers() ->
    {_, 12, device} = address(on(plugin_mixed, [1, 2, 3])),
    ok = isolated(plugin_alone, #{cpu => true}),
    X = on(plugin_alone, [1, 2, 3]),
    ?assertMatch({error, #{code := unimplemented, message := <<"the plugin has a process of its own", _/binary>>}}, address(X)),
    ?assertMatch({error, #{code := unimplemented}}, view(address(large()), {3}, {plugin_alone, 0})).

has_pointers_of_nx() ->
    #tessera{ref = Ref} = X = cpu(plugin_nx_cpu, inline),
    Buffer = #{ref => Ref, client_name => plugin_nx_cpu, device_id => 0, typespec => #{type => {s, 32}, shape => {20000}}},
    {Address, 80000, host} = address(X),
    ?assertMatch(#{kind := local, address := Address, data_size := 80000}, tessera_nx_pointer:local(Buffer)),
    #{kind := ipc, handle := Name, data_size := 80000} = tessera_nx_pointer:shared(Buffer, 8#400),
    ?assertMatch(#{handle := Name}, tessera_nx_pointer:shared(Buffer, 8#400)),
    [?assertEqual(tessera:to_binary(X), tessera:to_binary(made(tessera_run:awaited(tessera_nif:from_shared(Name, s32, {20000}, Device)))))
     || Device <- [{host, 0}, {plugin_nx_cpu, 0}]],
    #tessera{ref = Other} = Y = on(plugin_mixed, [1, 2]),
    There = Buffer#{ref := Other, client_name := plugin_mixed},
    ?assertError(#{message := <<"Nx.to_pointer/2 is not supported for the ", _/binary>>}, tessera_nx_pointer:shared(There, 8#400)),
    ?assertMatch(#{kind := local, data_size := 8}, tessera_nx_pointer:local(There)),
    ?assertEqual([1, 2], tessera:to_list(Y)).

%% Whether a binary may be a view of memory at this address. From OTP 26 on a match may read bytes in front of a binary (nif_binary.c): elements at the
%% beginning of a page are copied.
is_viewed(Address) -> list_to_integer(erlang:system_info(otp_release)) < 26 orelse Address rem 4096 >= 8.

%% Binaries and tensors of the host on a plugin's memory, and the other way. Each keeps the memory that it reads, also when its maker has died, and
%% nothing is left.
shares_memory() ->
    _ = cpu(plugin_cpu_late, late),
    F = tessera:jit(fun(A) -> tessera:multiply(A, A) end, at(plugin_cpu_late)),
    Held = fun() -> maps:get(live, tessera_nif:memory(plugin_cpu_late)) end,
    Run = fun() -> tessera:to_binary(F(large())) end,
    {Address, Expected} = (fun() -> Y = F(large()), {At, 400000, host} = address(Y), {At, tessera:to_binary(Y)} end)(),
    Kept = case is_viewed(Address) of true -> 400000; false -> 0 end,
    tessera_test:until_freed(fun() -> Held() =:= Kept end), % of the binary
    ?assertEqual(Expected, tessera:to_binary(tessera:multiply(large(), large()))),
    Before = maps:get(live, tessera_nif:memory()),
    tessera_test:kills(200, fun Work(I) -> <<_:399996/binary, _:32>> = Run(), Work(I) end),
    ?assertEqual(Expected, Run()),
    tessera_test:until_freed(fun() -> Held() =< 400000 andalso maps:get(live, tessera_nif:memory()) =< Before end).

%% No call of a client takes a scheduler for long: to open, compile, run, transfer, read, free and close. Time on the clock would judge the load of
%% the machine, so CPU time is judged. The longest slice here has 0.5 ms, and several times that on a busy or slow machine. A copy of the tensor
%% has 8 ms and more. Each of three runs has to show a slice of 4 ms. Slices of dirty
%% schedulers, which may copy, end in the finalizer of the VM.
holds_no_scheduler() ->
    Large = tessera:iota({8000000}, #{type => f32}),
    Many = fun(X) -> lists:foldl(fun(_, Y) -> tessera:sin(tessera:add(X, Y)) end, X, lists:seq(1, 100)) end,
    Steps = fun(Name, Options) ->
                    F = tessera:jit(fun(X) -> tessera:multiply(X, 2.0) end, at(Name)),
                    [fun() -> ok = open(Name, mixed, Options) end,
                     fun() -> put(x, tessera:to_device(Large, {Name, 0})) end,
                     fun() -> put(y, F(get(x))) end,
                     fun() -> put(y, F(get(x))) end,
                     fun() -> tessera:to_list((tessera:jit(Many, at(Name)))(on(Name, [0.5]))) end,
                     fun() -> put(b, tessera:to_binary(get(y))) end,
                     fun() -> tessera:to_list(tessera:add(on(Name, [1, 2]), 1)) end,
                     fun() -> erase() end,
                     fun() -> erlang:garbage_collect() end,
                     fun() -> tessera_nif:client_close(Name) end]
            end,
    Long = fun(Name, Options) ->
                   All = Steps(Name, Options),
                   {Count, Slices} = tessera_time_slices:of_call(100000, fun() -> [begin Step(), erlang:yield() end || Step <- All] end),
                   ?assert(Count >= length(All)),
                   [Slice || {Cpu, _, _, _, Out} = Slice <- Slices, Cpu > 4000000, Out =/= {erts_internal, dirty_nif_finalizer, 1}, os:getenv("TESSERA_SANITIZER") =:= false]
           end,
    [?assertEqual([], tessera_test:in_each(fun(Name) -> Long(Name, Options) end, Names))
     || {Names, Options} <- [{[plugin_quick, plugin_quick_2, plugin_quick_3], #{}},
                             {[plugin_quick_cpu, plugin_quick_cpu_2, plugin_quick_cpu_3], #{cpu => true}}]].

has_a_limit() ->
    ok = tessera:open_client(plugin_small, #{platform => pjrt, plugin_path => path(), memory_limit => 10000}),
    raises(resource_exhausted, "limit is 10000 bytes", fun() -> tessera:to_device(tessera:zeros({10000}), {plugin_small, 0}) end),
    ?assertEqual([0.0], tessera:to_list(tessera:to_device(tessera:zeros({1}), {plugin_small, 0}))),
    tessera_test:until_freed(fun() -> #{limit := Limit, live := Live} = tessera_nif:memory(plugin_small), {Limit, Live} =:= {10000, 0} end).
