%% Plugins and their calls: the example of docs/plugins.md, and plugins that are refused (test/plugin). make builds them.
-module(tessera_plugin_tests).
-device(host). % plugins compute in the runs of the host
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [raises/3]).

file(Name) -> filename:join([filename:dirname(code:which(?MODULE)), "..", "plugin", Name ++ ".so"]).

loaded(Test) -> {setup, fun() -> {ok, _} = application:ensure_all_started(tessera), tessera:load_plugin(file("example")) end, Test}.

f32(Shape) -> tessera:template(f32, Shape).

scale(X, Factor) -> tessera:custom_call(scale, [X], X, #{factor => Factor}).

%% ---- loading

load_test_() ->
    Targets = [<<"scale">>, <<"extremes">>, <<"attributes">>, <<"fail">>, <<"silent">>, <<"wait">>, <<"greedy">>, <<"type">>,
               <<"latin">>, <<"wordy">>, <<"endless">>, <<"wait_parts">>, <<"waiting">>],
    loaded([?_assertEqual(Targets, tessera:load_plugin(file("example"))),
            ?_assertEqual(Targets, tessera:load_plugin(unicode:characters_to_binary(file("example")))),
            ?_test(raises(invalid_argument, "none.so", fun() -> tessera:load_plugin("/none/none.so") end)),
            ?_test(raises(invalid_argument, "expected a file's name", fun() -> tessera:load_plugin({1}) end)),
            ?_test(raises(invalid_argument, "cannot be loaded", fun() -> tessera:load_plugin(?FILE) end))] ++
           [?_test(begin
                       raises(Code, Words, fun() -> tessera:load_plugin(file(Name)) end),
                       raises(Code, Name ++ ".so", fun() -> tessera:load_plugin(file(Name)) end)
                   end)
            || {Name, Code, Words} <-
                   [{"SYMBOL", invalid_argument, "has no function tessera_plugin_get"},
                    {"NOTHING", invalid_argument, "gives no plugin"},
                    {"VERSION", invalid_argument, "of version 3 of tessera_plugin.h, expected version 1 to 2"},
                    {"UNNAMED", invalid_argument, "the plugin has no name"},
                    {"LIES", invalid_argument, "it says a version that is not its own"},
                    {"TWICE", invalid_argument, "plugin wrong has target twice twice"},
                    {"TAKEN", failed_precondition, "target scale, which is of plugin example already"},
                    {"NORUN", invalid_argument, "target no_run of plugin wrong cannot run"},
                    {"TARGET", invalid_argument, "target 1 of plugin wrong has a name that is not a letter"},
                    {"MINUS", invalid_argument, "plugin wrong claims -1 targets, expected 1 to 10000"},
                    {"NONE", invalid_argument, "plugin wrong has no targets"},
                    {"BEYOND", invalid_argument, "plugin wrong claims 1 targets at an address that cannot be read"},
                    {"NOWHERE", invalid_argument, "tessera_plugin_get gives an address that cannot be read"},
                    {"LATIN", invalid_argument, "target 1 of plugin wrong has a name that is not a letter"},
                    {"LONG", invalid_argument, "target 1 of plugin wrong has a name of more than 255 characters"},
                    {"STRAY", invalid_argument, "target 1 of plugin wrong has a name at an address that cannot be read"},
                    {"VARIABLE", invalid_argument, "has no function tessera_plugin_get"}]] ++
           %% a refused plugin leaves none of its targets
           [?_test(raises(failed_precondition, "no loaded plugin has the target fresh",
                          fun() -> tessera:custom_call(fresh, [], f32({})) end))]).

%% Files that dlopen would open and that would end the VM: parts of files, and other kinds of files.
no_file_test_() ->
    {setup, fun() ->
        Folder = filename:join(filename:dirname(file("example")), "no_file"),
        ok = filelib:ensure_dir(filename:join(Folder, "x")),
        _ = [ok = file:delete(F) || F <- filelib:wildcard(filename:join(Folder, "*"))],
        Folder
     end,
     fun(Folder) ->
        {ok, Whole} = file:read_file(file("example")),
        Size = byte_size(Whole),
        Path = filename:join(Folder, "part.so"),
        Refused = fun(Bytes, Words) ->
            ok = file:write_file(Path, Bytes),
            raises(invalid_argument, "part.so", fun() -> tessera:load_plugin(Path) end),
            raises(invalid_argument, Words, fun() -> tessera:load_plugin(Path) end)
        end,
        Changed = fun(At, New) ->
            <<Before:At/binary, _:(byte_size(New))/binary, After/binary>> = Whole,
            <<Before/binary, New/binary, After/binary>>
        end,
        [?_test([Refused(binary:part(Whole, 0, N), "truncated") || N <- [64, 65, 1000 | lists:seq(2048, Size - 1, 509)] ++ [Size - 1]]),
         ?_test(Refused(<<>>, "empty")),
         ?_test(Refused(binary:part(Whole, 0, 63), "too short")),
         ?_test(Refused([binary:part(Whole, 0, 4096), <<0:(8 * (Size - 4096))>>], "")),
         ?_test(Refused(binary:copy(<<"#!/bin/sh\n">>, 100), "not a shared object")),
         ?_test(Refused(Changed(4, <<1>>), "for another machine")), %% 32 bits
         ?_test(Refused(Changed(18, <<8, 0>>), "for another machine")), %% MIPS
         ?_test(Refused(Changed(16, <<1, 0>>), "not a shared object")), %% an object of a compiler
         ?_test(Refused(Changed(56, <<255, 255>>), "segments")),
         ?_test(Refused(Changed(32, <<-1:64>>), "truncated")),
         ?_test(raises(invalid_argument, "is a folder", fun() -> tessera:load_plugin(Folder) end)),
         ?_test(raises(invalid_argument, "is a device", fun() -> tessera:load_plugin("/dev/zero") end)),
         ?_test(begin
                    Pipe = filename:join(Folder, "pipe.so"),
                    [] = os:cmd("mkfifo '" ++ Pipe ++ "'"),
                    raises(invalid_argument, "is a pipe", fun() -> tessera:load_plugin(Pipe) end)
                end),
         %% a name that is not UTF-8 is shown in UTF-8
         ?_test(raises(invalid_argument, "caf\\xE9.so cannot be opened", fun() -> tessera:load_plugin(<<"/none/caf", 16#E9, ".so">>) end))]
     end}.

%% ---- on a mesh: of the whole in each partition, since no rule says how to cut a call, or of the part that shard_map has

mesh_test_() ->
    loaded([?_test(begin
                       ok = tessera:open_client(plugin_mesh, #{device_count => 2}),
                       Scale = fun(X) -> scale(X, 2.5) end,
                       [Mesh, Cut, Lists] = [#{shape => {2}}, #{0 => [0]}, [[tessera:tensor([1.0])], [tessera:tensor([2.0])]]],
                       Global = tessera:shard_jit(Scale, Mesh, #{input_shardings => [Cut], output_shardings => Cut, client => plugin_mesh}),
                       Local = tessera:shard_map(Scale, Mesh, [Cut], Cut, #{client => plugin_mesh}),
                       [?assertEqual([[2.5], [5.0]], [tessera:to_list(P) || P <- F(Lists)]) || F <- [Global, Local]],
                       [?assertMatch({match, _}, re:run(tessera:explain(Global, [Lists]), Part))
                        || Part <- ["1 collective,", "replicated for want of a rule: %[0-9]+ = custom_call"]],
                       ?assertMatch({match, _}, re:run(tessera:explain(Local, [Lists]), "0 collectives,"))
                   end)]).

%% ---- calls

call_test_() ->
    loaded([?_assertEqual([2.0, 4.0, 6.0], tessera:to_list(scale(tessera:tensor([1.0, 2.0, 3.0]), 2))),
            ?_assertEqual([0.5, 1.0], tessera:to_list(scale(tessera:tensor([1.0, 2.0], f64), 0.5))),
            ?_assertEqual([[]], tessera:to_list(scale(tessera:zeros({1, 0}), 0.5))),
            ?_assertEqual([1.5], tessera:to_list(tessera:custom_call("scale", [tessera:tensor([1.0])], f32({1}), #{<<"factor">> => 1.5}))),
            ?_test(begin %% among fused ops, twice, in a loop; and many parts on all threads
                       F = tessera:jit(fun(X) ->
                           Y = tessera:add(scale(tessera:multiply(X, 3), 2), 1),
                           {Y, scale(Y, 10), tessera:while(X, fun(Z) -> tessera:less(tessera:reduce_max(Z), 100) end, fun(Z) -> scale(Z, 2) end)}
                       end),
                       {A, B, C} = F(tessera:tensor([1.0, 2.0])),
                       ?assertEqual({[7.0, 13.0], [70.0, 130.0], [64.0, 128.0]},
                                    {tessera:to_list(A), tessera:to_list(B), tessera:to_list(C)}),
                       Large = tessera:iota({1000, 1001}, f32),
                       ?assertEqual(tessera:to_binary(tessera:multiply(Large, 3)), tessera:to_binary(scale(Large, 3)))
                   end),
            ?_test(begin %% operands that are not aligned: a part of an argument, and the memory of a binary
                       S = tessera:template(s32, {}),
                       Numbers = fun(X) -> [tessera:to_number(N) || N <- tessera:custom_call(extremes, [X], [S, S])] end,
                       Part = tessera:jit(fun(X) -> list_to_tuple(tessera:custom_call(extremes, [tessera:slice(X, [3], [5])], [S, S])) end),
                       {Least, Greatest} = Part(tessera:iota({10}, s32)),
                       ?assertEqual({3, 7}, {tessera:to_number(Least), tessera:to_number(Greatest)}),
                       Bytes = << <<N:32/little>> || N <- lists:seq(0, 2000)>>,
                       [?assertEqual([First, 2000], Numbers(tessera:from_binary(binary:part(Bytes, {byte_size(Bytes), -4 * (2001 - First)}), s32, {2001 - First})))
                        || First <- lists:seq(0, 16)]
                   end),
            ?_test(begin %% several results, and a workspace
                       S = tessera:template(s32, {}),
                       [Least, Greatest] = tessera:custom_call(extremes, [tessera:tensor([3, -7, 12, 5])], [S, S]),
                       ?assertEqual({-7, 12}, {tessera:to_number(Least), tessera:to_number(Greatest)})
                   end),
            ?_test(begin %% attributes as the plugin reads them, by name in order
                       Given = #{a => 42, b => -1.5, c => true, d => false, e => <<"ab">>, f => [1, -2, 3], g => [], h => infinity,
                                 i => mode, j => -(1 bsl 63), k => 1.0e-300},
                       Read = tessera:custom_call(attributes, [], tessera:template(f64, {11, 4}), Given),
                       ?assertEqual([[1.0, 42.0, 0.0, 0.0], [2.0, -1.5, 0.0, 0.0], [3.0, 1.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0],
                                     [4.0, 0.0, 2.0, 195.0], [5.0, 0.0, 3.0, 2.0], [5.0, 0.0, 0.0, 0.0],
                                     [2.0, infinity, 0.0, 0.0], [4.0, 0.0, 4.0, 421.0], [1.0, -9.223372036854775808e18, 0.0, 0.0],
                                     [2.0, 1.0e-300, 0.0, 0.0]], tessera:to_list(Read))
                   end)]).

%% Each type has a number of its own; a plugin of version 1 gets 0 for types that its header does not name.
types_test_() ->
    Numbers = #{s8 => 1, s16 => 2, s32 => 3, s64 => 4, u8 => 5, u16 => 6, u32 => 7, u64 => 8, f16 => 9, bf16 => 10, f32 => 11, f64 => 12,
                c64 => 13, c128 => 14, s2 => 15, s4 => 16, u2 => 17, u4 => 18, f8 => 19, f8_e4m3fn => 20},
    [loaded([?_assertEqual(lists:sort(tessera_type:all()), lists:sort(maps:keys(Numbers))),
            ?_assertEqual([<<"type_of_version1">>], tessera:load_plugin(file("version1"))) |
            [?_test(begin
                        X = tessera:tensor([1, 1], Type),
                        [Got, Bytes, _] = tessera:to_list(tessera:custom_call(type, [X], tessera:template(s32, {3}))),
                        ?assertEqual({Number, tessera_type:bytes(Type)}, {Got, Bytes}),
                        ?assertEqual(case Number > 14 of true -> 0; false -> Number end,
                                     tessera:to_number(tessera:custom_call(type_of_version1, [X], tessera:template(s32, {}))))
                    end) || {Type, Number} <- maps:to_list(Numbers)]])] ++
    %% integers of fewer than 8 bits are extended
    [loaded(?_assertEqual([1, Byte], tl(tessera:to_list(tessera:custom_call(type, [tessera:tensor([Value], Type)], tessera:template(s32, {3}))))))
     || {Type, Value, Byte} <- [{s2, -2, 254}, {s4, -8, 248}, {u2, 3, 3}, {u4, 15, 15}]].

%% A program's text has the call, and gives the same program.
text_test_() ->
    loaded(fun() ->
        X = tessera:tensor([1.0, 2.0]),
        Text = tessera:to_text(fun(A) -> scale(A, 2.5) end, [X]),
        ?assertNotEqual(nomatch, string:find(Text, "custom_call %0 \"scale(factor = 2.5)\"")),
        ?assertEqual([[2.5, 5.0]], [tessera:to_list(T) || T <- tessera:run_text(Text, [X])])
    end).

bad_text_test_() ->
    loaded([?_test(raises(invalid_argument, Words, fun() -> tessera:run_text(text(Call), [tessera:tensor([1.0])]) end))
            || {Call, Words} <- [{"", "expected the text of a call"}, {"scale(", "expected a name at character 7"},
                                 {"scale(factor)", "expected '='"}, {"scale(factor = )", "expected a value"},
                                 {"scale(factor = 'x", "a text's end"}, {"scale(factor = [1, )", "expected an integer"},
                                 {"scale(factor = 99999999999999999999)", "an integer of 64 bits"},
                                 {"scale(factor = 1) more", "expected the end"}, {"1scale", "expected a name"}]]).

text(Call) ->
    iolist_to_binary(["graph @main(%0: f32[1]) -> (f32[1]) {\n  %1 = custom_call %0 \"", Call,
     "\" {\n    types() {\n      %2 = constant 0.0 : f32[1]\n      return %2\n    }\n  } : f32[1]\n  return %1\n}\n"]).

%% ---- faults

errors_test_() ->
    X = fun() -> tessera:tensor([1, 2]) end,
    S = tessera:template(s32, {}),
    loaded([?_test(raises(Code, Words, F))
            || {Code, Words, F} <-
                   [{failed_precondition, "no loaded plugin has the target missing", fun() -> tessera:custom_call(missing, [], f32({})) end},
                    {invalid_argument, "scale of plugin example: expected f32 or f64, got type 3 of rank 1", fun() -> scale(X(), 2) end},
                    {invalid_argument, "the result has another form", fun() -> tessera:custom_call(scale, [tessera:tensor([1.0])], f32({2}), #{factor => 2}) end},
                    {invalid_argument, "expected one operand and one result", fun() -> tessera:custom_call(scale, [], f32({2}), #{factor => 2}) end},
                    {invalid_argument, "expected a number as attribute factor",
                     fun() -> tessera:custom_call(scale, [tessera:tensor([1.0])], f32({1}), #{factor => <<"2">>}) end},
                    {failed_precondition, "fail of plugin example: the moon is full", fun() -> tessera:custom_call(fail, [X()], S) end},
                    {failed_precondition, "silent of plugin example: it failed without a reason", fun() -> tessera:custom_call(silent, [X()], S) end},
                    {failed_precondition, "latin of plugin example: caf\\xE9 é \\xF0\\x9F", fun() -> tessera:custom_call(latin, [X()], S) end},
                    {failed_precondition, "wordy of plugin example: xéé", fun() -> tessera:custom_call(wordy, [X()], S) end},
                    {out_of_range, "asks for -1 bytes of workspace", fun() -> tessera:custom_call(greedy, [X()], S) end},
                    {out_of_range, "asks for 9223372036854775807 bytes", fun() -> tessera:custom_call(endless, [X()], S) end},
                    {invalid_argument, "an attribute that is an integer of 64 bits", fun() -> tessera:custom_call(scale, [X()], S, #{factor => [1 | 2]}) end},
                    {invalid_argument, "a list of templates", fun() -> tessera:custom_call(scale, [X()], [S | S]) end},
                    {invalid_argument, "an attribute's text in UTF-8", fun() -> tessera:custom_call(scale, [X()], S, #{factor => <<255>>}) end},
                    {invalid_argument, "attribute factor is given twice",
                     fun() -> tessera:custom_call(scale, [tessera:tensor([1.0])], f32({1}), #{factor => 1, <<"factor">> => 2}) end},
                    {resource_exhausted, "", fun() -> tessera:custom_call(extremes, [X()], [S, S], #{extra => 1 bsl 50}) end},
                    {invalid_argument, "a list of operands", fun() -> tessera:custom_call(scale, X(), S) end},
                    {invalid_argument, "expected a tensor or a number", fun() -> tessera:custom_call(scale, [x], S) end},
                    {invalid_argument, "as results", fun() -> tessera:custom_call(scale, [X()], []) end},
                    {invalid_argument, "a target's name of letters", fun() -> tessera:custom_call("a b", [X()], S) end},
                    {invalid_argument, "an attribute's name", fun() -> tessera:custom_call(scale, [X()], S, #{"a=" => 1}) end},
                    {invalid_argument, "without quotation marks", fun() -> tessera:custom_call(scale, [X()], S, #{a => <<"it's">>}) end},
                    {invalid_argument, "an attribute that is an integer of 64 bits", fun() -> tessera:custom_call(scale, [X()], S, #{a => 1 bsl 64}) end},
                    {unimplemented, "the gradient through custom_call is not supported",
                     fun() -> (tessera:grad(fun(Y) -> tessera:sum(scale(Y, 2)) end))(tessera:tensor([1.0])) end}]]).

%% A caller that dies ends the run of a call that asks whether it was cancelled.
cancel_test_() ->
    loaded({timeout, 60, fun() ->
        Live = maps:get(live, tessera:memory()),
        {Pid, Monitor} = spawn_monitor(fun() -> tessera:custom_call(wait, [tessera:tensor([1.0])], f32({})) end),
        receive {'DOWN', Monitor, process, Pid, _} = Down -> ?assertEqual(still_running, Down) after 200 -> ok end,
        exit(Pid, kill),
        receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(killed, Reason) end,
        tessera_test:until_freed(fun() -> maps:get(live, tessera:memory()) =< Live end)
    end}).

%% Calls that wait hold no scheduler and no worker: there are more of them at once than dirty schedulers, other programs run
%% meanwhile, also on all threads, and so do short calls. Calls without a thread also end with their callers.
busy_test_() ->
    loaded({timeout, 120, fun() ->
        Live = maps:get(live, tessera:memory()),
        Waiting = fun() -> tessera:to_number(tessera:custom_call(waiting, [], tessera:template(s32, {}))) end,
        Call = fun(Target) ->
            spawn_monitor(fun() -> (tessera:jit(fun(X) -> tessera:custom_call(Target, [tessera:add(X, 1)], f32({})) end))(tessera:tensor([1.0])) end)
        end,
        Parts = Call(wait_parts),
        Pids = [Call(wait) || _ <- lists:seq(1, 70)],
        %% all but one of the 64 threads for calls; and the parts: the first is on its call's thread
        tessera_test:until(fun() -> Waiting() >= 64 end),
        Large = tessera:reverse(tessera:iota({3000000})),
        ?assertEqual(0, tessera:to_number(tessera:at(tessera:sort(Large), [0]))),
        ?assertEqual([2.0, 4.0], tessera:to_list(scale(tessera:tensor([1.0, 2.0]), 2))),
        [exit(Pid, kill) || {Pid, _} <- [Parts | Pids]],
        [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(killed, Reason) end || {Pid, Monitor} <- [Parts | Pids]],
        tessera_test:until(fun() -> Waiting() =:= 0 end),
        tessera_test:until_freed(fun() -> maps:get(live, tessera:memory()) =< Live end)
    end}).

%% Long calls in loops, after each other, on a mesh, with errors, with donated arguments.
long_calls_test_() ->
    Kind = fun(X) -> tessera:custom_call(type, [X], tessera:template(s32, {3})) end,
    loaded([?_test(begin
                       F = tessera:jit(fun(X) ->
                           {_, Sum} = tessera:while({0, tessera:zeros({3}, s32)}, fun({I, _}) -> tessera:less(I, 20) end,
                                                    fun({I, S}) -> {tessera:add(I, 1), tessera:add(S, tessera:add(Kind(X), Kind(I)))} end),
                           {Sum, Kind(Sum)}
                       end),
                       {Sum, Type} = F(tessera:tensor([1.0], f64)),
                       ?assertEqual({[20 * (12 + 3), 20 * (8 + 4), lists:sum(lists:seq(0, 19))], [3, 4, 300 rem 256]},
                                    {tessera:to_list(Sum), tessera:to_list(Type)})
                   end),
            ?_test(begin
                       ok = tessera:open_client(plugin_long, #{device_count => 4}),
                       Options = #{client => plugin_long},
                       Local = tessera:shard_map(fun(X) -> tessera:reshape(tessera:sum(Kind(tessera:add(X, 1))), {1}) end, #{shape => {4}}, [#{0 => [0]}], #{0 => [0]}, Options),
                       Lists = [[tessera:tensor([I], u8)] || I <- [1, 2, 3, 4]],
                       ?assertEqual([[5 + 1 + I + 1] || I <- [1, 2, 3, 4]], [tessera:to_list(P) || P <- Local(Lists)]),
                       Failing = tessera:shard_map(fun(X) -> tessera:custom_call(fail, [Kind(X)], f32({1})) end, #{shape => {4}},
                                                   [#{0 => [0]}], #{0 => [0]}, Options),
                       raises(failed_precondition, "partition 0: custom_call: fail of plugin example: the moon is full", fun() -> Failing(Lists) end)
                   end),
            ?_test(begin
                       D = tessera:jit(fun(X) -> tessera:add(tessera:sum(Kind(X)), X) end, #{donate => [1]}),
                       ?assertEqual([5 + 1 + 9 + 9], tessera:to_list(D(tessera:tensor([9], u8))) )
                   end)]).

%% A run that fails after it has written to the memory of a donated argument keeps the argument. One that gives the memory to no result, leaves it.
failed_donation_test_() ->
    Fails = fun(X) -> tessera:custom_call(fail, [X], f32({})) end,
    Donating = #{donate => [1]},
    Overwrites = tessera:jit(fun(X) -> Y = tessera:add(X, 100), {Y, Fails(Y)} end, Donating),
    Reads = tessera:jit(fun(X) -> {tessera:sum(X), Fails(tessera:sum(X))} end, Donating),
    loaded([?_test(begin
                       X = tessera:tensor([8, 7, 6], f32),
                       raises(failed_precondition, "the moon is full", fun() -> Reads(X) end),
                       ?assertEqual([8.0, 7.0, 6.0], tessera:to_list(X)),
                       raises(failed_precondition, "the moon is full", fun() -> Overwrites(X) end),
                       raises(failed_precondition, "deallocated or donated", fun() -> tessera:to_list(X) end),
                       raises(failed_precondition, "deallocated or donated", fun() -> Overwrites(X) end)
                   end),
            ?_test(begin
                       ok = tessera:open_client(plugin_donated, #{device_count => 2}),
                       F = tessera:shard_map(fun(X) -> Y = tessera:add(X, 100), {Y, tessera:custom_call(fail, [Y], f32({3}))} end, #{shape => {2}},
                                             [#{0 => [0]}], {#{0 => [0]}, #{0 => [0]}}, #{client => plugin_donated, donate => [1]}),
                       Parts = [tessera:to_device(tessera:tensor([I, 1, 2], f32), {plugin_donated, I}) || I <- [0, 1]],
                       raises(failed_precondition, "the moon is full", fun() -> F([[Part] || Part <- Parts]) end),
                       [try tessera:to_list(Part) of List -> ?assertEqual([I + 0.0, 1.0, 2.0], List) % it had not begun there
                        catch error:{failed_precondition, Text} -> ?assertNotEqual(nomatch, string:find(Text, "deallocated or donated"))
                        end || {I, Part} <- lists:enumerate(0, Parts)]
                   end)]).

%% Many callers at once, while the plugin is loaded again.
concurrent_test_() ->
    loaded({timeout, 60, fun() ->
        Work = fun(N) -> fun() ->
                   [begin
                        [_ | _] = tessera:load_plugin(file("example")),
                        [R] = tessera:to_list(scale(tessera:tensor([1.0 * N]), I)),
                        R = 1.0 * N * I
                    end || I <- lists:seq(1, 20)], exit(done) end end,
        Monitors = [element(2, spawn_monitor(Work(N))) || N <- lists:seq(1, 20)],
        [receive {'DOWN', M, process, _, Reason} -> ?assertEqual(done, Reason) end || M <- Monitors]
    end}).
