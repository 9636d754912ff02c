%% The lines of nodes of Nx, with a stand-in for the module that makes them. test/nx/profile_test.exs tests it with Nx.
-module(tessera_nx_lines_tests).
-include_lib("eunit/include/eunit.hrl").

-define(MAKER, 'Elixir.Nx.Defn.Expr').

%% After the test there are no other sessions of traces than before. One whose owner was killed ends some time later.
with_maker(Test) ->
    case tessera_nx_lines:is_possible() of
        true ->
            with_loaded(fun() ->
                                Before = sessions(all),
                                Test(),
                                tessera_test:until(fun() -> sessions(all) -- Before =:= [] end)
                        end);
        false -> fun() -> ?assert(list_to_integer(erlang:system_info(otp_release)) < 27) end
    end.

with_loaded(Test) ->
    Forms = [{attribute, 1, module, ?MAKER}, {attribute, 2, export, [{make, 0}]},
             {function, 3, make, 0, [{clause, 3, [], [], [{tuple, 3, [{call, 3, {atom, 3, id}, []}]}]}]},
             {function, 4, id, 0, [{clause, 4, [], [], [{call, 4, {atom, 4, make_ref}, []}]}]}],
    {ok, ?MAKER, Code} = compile:forms(Forms, []),
    {setup,
     fun() -> {module, ?MAKER} = code:load_binary(?MAKER, "expr.beam", Code) end,
     fun(_) ->
             true = code:delete(?MAKER),
             code:purge(?MAKER)
     end,
     Test}.

%% Calls each on a line of its own.
nodes_of() ->
    {A} = ?MAKER:make(),
    {B} = ?MAKER:make(),
    {A, B}.

lines_test_() ->
    with_maker(fun() ->
        {{A, B}, Places} = tessera_nx_lines:watch(none, fun nodes_of/0),
        #{A := {{frame, First}, nx}, B := {{frame, Second}, nx}} = Places,
        ?assertEqual(2, map_size(Places)),
        ?assertMatch({?MODULE, nodes_of, 0, _, _}, First),
        ?assertEqual(element(5, First) + 1, element(5, Second))
    end).

%% A function that has ended with the call is not on the stack.
last_test_() ->
    with_maker(fun() ->
        F = fun() -> ?MAKER:make() end,
        {{Id}, Known} = tessera_nx_lines:watch(F, F),
        #{Id := {{last, Last}, nx}} = Known,
        ?assertMatch({named, ?MODULE, _, _, 0, []}, Last),
        {{Other}, Places} = tessera_nx_lines:watch(none, F),
        ?assertNot(is_map_key(Other, Places))
    end).

raise_test_() ->
    with_maker(fun() ->
        ?assertError(wrong, tessera_nx_lines:watch(none, fun() -> nodes_of(), error(wrong) end)),
        ?assertEqual({monitors, []}, process_info(self(), monitors))
    end).

%% A caller that is killed leaves no trace, and no process that collects.
killed_test_() ->
    with_maker(fun() ->
        Self = self(),
        {Pid, Monitor} = spawn_monitor(fun() ->
                                               tessera_nx_lines:watch(none, fun() ->
                                                                                    _ = nodes_of(),
                                                                                    Self ! begun,
                                                                                    receive never -> ok end
                                                                            end)
                                       end),
        receive begun -> ok end,
        [Collector] = collectors(Pid, Self),
        ?assertEqual(1, length(sessions(Pid))),
        true = exit(Pid, kill),
        receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(killed, Reason) end,
        tessera_test:until(fun() -> not is_process_alive(Collector) end)
    end).

%% The process that collects monitors the one that makes nodes, soon after it has begun.
collectors(Pid, Self) ->
    Others = fun() -> {monitored_by, Monitors} = process_info(Pid, monitored_by), Monitors -- [Self] end,
    tessera_test:until(fun() -> Others() =/= [] end),
    Others().

%% The process waits for its reports now and then, and none is lost.
many_test_() ->
    with_maker(fun() ->
        {Ids, Places} = tessera_nx_lines:watch(none, fun() -> made(20000) end),
        ?assertEqual(lists:sort(Ids), lists:sort(maps:keys(Places)))
    end).

%% At the bound the trace ends: the first nodes have places.
bound_test_() ->
    with_maker(fun() ->
        Most = 5000,
        {{First, Rest}, Places} = tessera_nx_lines:watch(none, fun() ->
                                                                       First = made(Most),
                                                                       tessera_test:until(fun() -> sessions(self()) =:= [] end),
                                                                       {First, made(10)}
                                                               end, Most),
        ?assertEqual(10, length(Rest)),
        ?assertEqual(lists:sort(First), lists:sort(maps:keys(Places)))
    end).

made(Count) ->
    [begin
         {Id} = ?MAKER:make(),
         Id
     end || _ <- lists:seq(1, Count)].

%% Of two processes each has its own nodes.
two_test_() ->
    with_maker(fun() ->
        Self = self(),
        Other = spawn_link(fun() ->
                                   {Ids, Places} = tessera_nx_lines:watch(none, fun() ->
                                                                                        Self ! begun,
                                                                                        receive go -> nodes_of() end
                                                                                end),
                                   Self ! {other, Ids, Places}
                           end),
        receive begun -> ok end,
        {{A, B}, Own} = tessera_nx_lines:watch(none, fun nodes_of/0),
        ?assertEqual(lists:sort([A, B]), lists:sort(maps:keys(Own))),
        Other ! go,
        receive {other, {C, D}, Places} -> ?assertEqual(lists:sort([C, D]), lists:sort(maps:keys(Places))) end
    end).

%% The trace of a tool continues.
traced_test_() ->
    with_maker(fun() ->
        Tracer = spawn_link(fun() -> receive stop -> ok end end),
        1 = erlang:trace(self(), true, [send, {tracer, Tracer}]),
        {{A, _}, Places} = tessera_nx_lines:watch(none, fun nodes_of/0),
        ?assertEqual({tracer, Tracer}, erlang:trace_info(self(), tracer)),
        1 = erlang:trace(self(), false, [send]),
        Tracer ! stop,
        ?assert(is_map_key(A, Places))
    end).

%% The sessions of traces of a process, or of all. OTP 25 has no such module.
sessions(What) ->
    Module = list_to_atom("trace"),
    lists:sort(Module:session_info(What)).
