%% The lines of the user's code that a profile names for each step: of ops, fused ops, loops, gradients, calls at the end of functions, and programs that were
%% compiled before the profile.
-module(tessera_places_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-export([exp_of/1, negative/1, by_variable/1, lazily/1, tried/1, applied/1, refused/1, kept/1]).

-define(QUIET, #{speed => false}).

%% While a function is traced it notes where its calls are.
here(Name, Line) -> put({?MODULE, Name}, Line).
there(Name) -> get({?MODULE, Name}).

on_host(Test) -> fun() -> tessera_eunit:on_host(Test) end.

steps(F, Args) ->
    {_, #{programs := [#{steps := Steps}]}} = tessera:profile(F, Args, ?QUIET),
    Steps.

numbers_of(#{lines := Lines}) ->
    [begin
         ?assertEqual({?MODULE, "tessera_places_tests.erl"}, {Module, filename:basename(File)}),
         Line
     end || {Module, _, _, File, Line} <- Lines].

%% The lines of the only step with that op, and of the only step whose kernels have it.
lines_of_op(Op, Steps) ->
    [Step] = [S || #{op := Own, launch := -1} = S <- Steps, Own =:= Op],
    numbers_of(Step).

lines_with(Op, Steps) ->
    [Step] = [S || #{ops := Ops, launch := -1} = S <- Steps, lists:member(Op, string:split(Ops, ", ", all))],
    numbers_of(Step).

numbers() -> tessera:iota({5000}, f32).

%% ---- ops

sums(X) ->
    Y = tessera:cumulative_sum(X), here(sum, ?LINE),
    Z = tessera:sort(Y), here(sort, ?LINE),
    here(product, ?LINE + 1),
    tessera:cumulative_product(Z).

ops_test_() ->
    on_host(fun() ->
        Steps = steps(tessera:jit(fun sums/1), [numbers()]),
        ?assertEqual([there(sum)], lines_of_op(<<"cumulative_sum">>, Steps)),
        ?assertEqual([there(sort)], lines_of_op(<<"sort">>, Steps)),
        ?assertEqual([there(product)], lines_of_op(<<"cumulative_product">>, Steps))
    end).

%% A fusion has the lines of all its ops, in their order, and each once.
fused_test_() ->
    on_host(fun() ->
        F = tessera:jit(fun(X) ->
                                Y = tessera:exp(X), here(first, ?LINE),
                                Z = tessera:add(tessera:multiply(Y, 2), 1), here(second, ?LINE),
                                here(third, ?LINE + 1),
                                tessera:tanh(Z)
                        end),
        Lines = lines_with(<<"tanh">>, steps(F, [numbers()])),
        ?assertEqual([there(first), there(second), there(third)], Lines)
    end).

%% An op that is made of several has one line.
composed_test_() ->
    on_host(fun() ->
        F = tessera:jit(fun(X) ->
                                Y = tessera:softmax(X), here(softmax, ?LINE),
                                tessera:multiply(Y, Y)
                        end),
        Steps = steps(F, [tessera:reshape(numbers(), {50, 100})]),
        ?assertMatch([_ | _], Steps),
        ?assertEqual([there(softmax), there(softmax) + 1], lists:usort(lists:append([numbers_of(Step) || Step <- Steps])))
    end).

%% ---- loops

loop_test_() ->
    on_host(fun() ->
        F = tessera:jit(fun(X) ->
                                Condition = fun({I, _}) -> tessera:less(I, 4) end,
                                Body = fun({I, Y}) ->
                                               Z = tessera:cumulative_sum(Y), here(body, ?LINE),
                                               {tessera:add(I, 1), Z}
                                       end,
                                {_, Y} = tessera:while({0, X}, Condition, Body), here(loop, ?LINE),
                                tessera:sort(Y)
                        end),
        Steps = steps(F, [numbers()]),
        ?assertEqual([there(body)], lines_of_op(<<"cumulative_sum">>, Steps)),
        ?assertEqual([there(loop)], lines_of_op(<<"while">>, Steps)),
        ?assertEqual([there(body) - 2], lines_with(<<"less">>, Steps))
    end).

%% A loop that is one native function has the lines of its ops after its own: of numbers, and of small tensors.
native_loop_test_() ->
    on_host(fun() ->
        F = tessera:jit(fun(X) ->
                                {_, Y} = tessera:while({0, X}, fun({I, _}) -> tessera:less(I, 4) end,
                                                       fun({I, Y}) ->
                                                               Next = tessera:add(I, 1), here(add, ?LINE),
                                                               Sum = tessera:multiply(Y, 2), here(multiply, ?LINE),
                                                               {Next, Sum}
                                                       end),
                                Y
                        end),
        [begin
             [#{op := <<"while">>} = Step] = steps(F, [X]),
             ?assertEqual([there(add) - 2, there(add), there(multiply)], lists:usort(numbers_of(Step)))
         end || X <- [2.0, tessera:iota({4}, f32)]]
    end).

branches_test_() ->
    on_host(fun() ->
        F = tessera:jit(fun(P, X) ->
                                tessera:'cond'(P,
                                               fun() -> Y = tessera:sort(X), here(yes, ?LINE), Y end,
                                               fun() -> Y = tessera:cumulative_sum(X), here(no, ?LINE), Y end)
                        end),
        Steps = steps(F, [1, numbers()]),
        ?assertEqual([there(yes)], lines_of_op(<<"sort">>, Steps)),
        ?assertEqual([there(no)], lines_of_op(<<"cumulative_sum">>, Steps))
    end).

%% ---- gradients

%% The steps of the backward pass have the lines of the ops that they are the gradients of.
gradient_test_() ->
    on_host(fun() ->
        Loss = fun(X, W) ->
                       Y = tessera:dot(X, W), here(dot, ?LINE),
                       Z = tessera:cumulative_sum(Y), here(scan, ?LINE),
                       Sum = tessera:sum(tessera:multiply(Z, Z)), here(sum, ?LINE),
                       Sum
               end,
        M = tessera:divide(tessera:iota({300, 300}, f32), 1.0e5),
        Steps = steps(tessera:jit(tessera:grad(Loss)), [M, M]),
        [Forward, Backward] = [numbers_of(S) || #{op := Op, launch := -1} = S <- Steps, Op =:= <<"cumulative_sum">>],
        ?assertEqual({[there(scan)], [there(scan)]}, {Forward, Backward}),
        Lines = lists:usort(lists:append([numbers_of(S) || S <- Steps])),
        ?assertEqual([], Lines -- [there(dot), there(scan), there(sum)]),
        ?assert(length([S || #{ops := Ops} = S <- Steps, string:find(Ops, "dot_general") =/= nomatch, lists:member(there(dot), numbers_of(S))]) >= 2)
    end).

%% ---- functions that end with a call

exp_of(X) -> tessera:exp(X).

%% Both ends are the same op.
negative(X) ->
    case tessera:shape(X) of
        {N} when N > 10 -> tessera:negate(X);
        _ -> tessera:negate(X)
    end.

tail_call_test_() ->
    on_host(fun() ->
        %% the fun, then a function that it ends with
        Line = ?LINE + 1,
        ?assertEqual([Line], lines_with(<<"tanh">>, steps(tessera:jit(fun(X) -> tessera:tanh(X) end), [numbers()]))),
        Exp = exp_line(),
        ?assertEqual([Exp], lines_with(<<"exp">>, steps(tessera:jit(fun(X) -> exp_of(X) end), [numbers()]))),
        ?assertEqual([Exp], lines_with(<<"exp">>, steps(tessera:jit(fun ?MODULE:exp_of/1), [numbers()]))),
        %% the fun is still on the stack, and calls nothing else on the line
        F = tessera:jit(fun(X) ->
                                Y = exp_of(X),
                                Z = tessera:cumulative_sum(Y), here(scan, ?LINE),
                                Z
                        end),
        ?assertEqual([Exp], lines_with(<<"exp">>, steps(F, [numbers()]))),
        %% which end it was is not known: the function's own line
        ?assertEqual([negative_line()], lines_with(<<"negate">>, steps(tessera:jit(fun negative/1), [numbers()])))
    end).

%% An end that the code does not tell, or a call of a function that is not known: it may have been that one.
uncertain_ends_test_() ->
    on_host(fun() ->
        [?assertEqual({Name, [line_of_function(Name)]}, {Name, lines_with(<<"negate">>, steps(tessera:jit(F), [numbers()]))})
         || {Name, F} <- [{by_variable, fun ?MODULE:by_variable/1}, {lazily, fun ?MODULE:lazily/1}, {tried, fun ?MODULE:tried/1}, {applied, fun ?MODULE:applied/1}]],
        %% an end without a call is not one of the candidates
        ?assertEqual([line_of_function(refused) + 2], lines_with(<<"negate">>, steps(tessera:jit(fun ?MODULE:refused/1), [numbers()]))),
        ?assertEqual([line_of_function(kept) + 2], lines_with(<<"negate">>, steps(tessera:jit(fun ?MODULE:kept/1), [numbers()])))
    end).

-define(IS_LONG(X), element(1, tessera:shape(X)) > 10).

by_variable(X) ->
    F = fun tessera:negate/1,
    case ?IS_LONG(X) of
        true -> F(X);
        false -> tessera:negate(X)
    end.

lazily(X) ->
    case tessera:shape(X) of
        {1} -> tessera:negate(X);
        _ -> ?IS_LONG(X) andalso tessera:negate(X)
    end.

tried(X) ->
    case tessera:shape(X) of
        {1} -> tessera:negate(X);
        _ ->
            try tessera:shape(X) of
                {_} -> tessera:negate(X)
            catch error:_ -> X
            end
    end.

applied(X) ->
    case tessera:shape(X) of
        {1} -> tessera:negate(X);
        _ -> apply(list_to_existing_atom("tessera"), negate, [X])
    end.

refused(X) ->
    case tessera:shape(X) of
        {_} -> tessera:negate(X);
        _ -> error(of_another_shape)
    end.

kept(X) ->
    case tessera:shape(X) of
        {_} -> tessera:negate(X);
        {_, _} -> {X, 1};
        _ -> [tessera:negate(Y) || Y <- [X]]
    end.

exp_line() -> line_of_function(exp_of).
negative_line() -> line_of_function(negative).

line_of_function(Name) ->
    {ok, {_, [{debug_info, {debug_info_v1, Backend, Info}}]}} = beam_lib:chunks(code:which(?MODULE), [debug_info]),
    {ok, Forms} = Backend:debug_info(erlang_v1, ?MODULE, Info, []),
    [Line] = [erl_anno:line(At) || {function, At, Own, 1, _} <- Forms, Own =:= Name],
    Line.

%% ---- programs that were compiled before

compiled_before_test_() ->
    on_host(fun() ->
        Compile = [fun tessera:jit/1, fun(F) -> tessera:compile(F, [tessera:template(f32, {5000})]) end],
        [begin
             put(traced, 0),
             F = Make(fun(X) ->
                              _ = put(traced, get(traced) + 1),
                              Y = tessera:sort(X), here(sort, ?LINE),
                              tessera:add(Y, N)
                      end),
             F(numbers()),
             ?assertEqual(1, get(traced)),
             Lines = lines_of_op(<<"sort">>, steps(F, [numbers()])),
             ?assertEqual([there(sort)], Lines),
             ?assertEqual(2, get(traced)),
             %% the lines are known now
             ?assertEqual(Lines, lines_of_op(<<"sort">>, steps(F, [numbers()]))),
             ?assertEqual(2, get(traced))
         end || {N, Make} <- lists:zip([1, 2], Compile)]
    end).

%% The same of a mesh.
mesh_compiled_before_test_() ->
    on_host(fun() ->
        ok = tessera:open_client(?MODULE, #{device_count => 2}),
        Options = #{client => ?MODULE},
        Inner = fun(X) ->
                        Y = tessera:sort(X), here(sort, ?LINE),
                        Z = tessera:sum(Y), here(sum, ?LINE),
                        Z
                end,
        Parts = [[tessera:iota({5000}, f32)] || _ <- [0, 1]],
        Makes = [{<<"sum">>, tessera:shard_jit(Inner, #{shape => {2}}, Options#{input_shardings => [#{0 => [0]}]})},
                 {<<"all_reduce_sum">>, tessera:shard_map(fun(X) -> tessera:all_reduce(Inner(X), sum, 0) end, #{shape => {2}}, [#{0 => [0]}], #{}, Options)}],
        [begin
             _ = F(Parts),
             Steps = steps(F, [Parts]),
             ?assertMatch({Op, [_ | _]}, {Op, [There || #{lines := Lines} <- Steps, {_, _, _, _, There} <- Lines, There =:= there(sum)]}),
             ?assertEqual([], [Step || #{launch := -1, lines := []} = Step <- Steps])
         end || {Op, F} <- Makes]
    end).

%% A profile keeps no arguments to compile a program of a mesh again.
mesh_arguments_test_() ->
    on_host(fun() ->
        ok = tessera:open_client(places_arguments, #{device_count => 2}),
        F = tessera:shard_jit(fun tessera:sum/1, #{shape => {2}}, #{client => places_arguments, input_shardings => [#{0 => [0]}]}),
        Live = fun() -> maps:get(live, tessera:memory()) end,
        Call = fun() -> [tessera:to_number(Sum) || Sum <- F([[tessera:iota({1 bsl 20}, f32)] || _ <- [0, 1]])] end,
        Expected = Call(),
        {Result, _} = tessera:profile(fun() ->
                                              true = erlang:garbage_collect(),
                                              Before = Live(),
                                              Result = Call(),
                                              tessera_test:until_freed(fun() -> Live() < Before + (1 bsl 20) end),
                                              Result
                                      end, [], ?QUIET),
        ?assertEqual(Expected, Result)
    end).

%% The steps of ranks have the lines of this node's programs. The code of a module is read once for all programs of all ranks.
ranks_test_() ->
    on_host(fun() ->
        Modules = tessera_tails:modules(),
        {Keys, _} = tessera_places:recording(Modules, fun() -> [executable(F) || F <- [fun ?MODULE:exp_of/1, fun ?MODULE:negative/1]] end),
        [First, Second] = Programs = [element(1, tessera_nif:profile_rows(Key)) || Key <- Keys],
        Source = {tessera_source, written, 1},
        1 = erlang:trace_pattern(Source, true, [call_count]),
        Find = tessera_profile_lines:finder(Keys ++ [undefined] ++ Keys, #{}, Modules),
        Found = [lines_of_rows(Find(Key, Program)) || _ <- [0, 1], {Key, Program} <- lists:zip(Keys, Programs)],
        {call_count, Reads} = erlang:trace_info(Source, call_count),
        1 = erlang:trace_pattern(Source, false, [call_count]),
        ?assertEqual([[exp_line()], [negative_line()], [exp_line()], [negative_line()]], Found),
        ?assertEqual(1, Reads),
        %% a program that this node has not compiled, and one whose steps are others on the rank
        ?assertEqual(First, Find(undefined, First)),
        ?assertEqual(Second, Find(hd(Keys), Second))
    end).

executable(F) ->
    {Traced, _, _} = tessera_trace:trace(fun(Params) -> tessera_trace:call(jit, F, Params) end, [{f32, {5000}}], []),
    tessera_run:compile(Traced, []).

lines_of_rows(Program) ->
    lists:usort([Line || Row <- element(7, Program), {?MODULE, _, _, _, Line} <- element(tuple_size(Row), Row)]).

%% Another trace makes other ops, or raises: nothing is known of the lines.
changed_since_test_() ->
    on_host(fun() ->
        [begin
             put(change, false),
             F = tessera:jit(fun(X) ->
                                     case get(change) of
                                         false -> tessera:sort(tessera:add(X, length(atom_to_list(Change))));
                                         sort -> tessera:cumulative_sum(X);
                                         raise -> error(changed)
                                     end
                             end),
             Result = F(numbers()),
             put(change, Change),
             {Again, #{programs := [#{steps := Steps}]}} = tessera:profile(F, [numbers()], ?QUIET),
             ?assertEqual(tessera:to_list(Result), tessera:to_list(Again)),
             ?assertEqual([], lists:append([Lines || #{lines := Lines} <- Steps]))
         end || Change <- [sort, raise]]
    end).

%% Functions with the same code share one program, and so its lines.
shared_program_test_() ->
    on_host(fun() ->
        F = fun(X) ->
                    Y = tessera:cumulative_sum(X), here(scan, ?LINE),
                    Y
            end,
        First = lines_of_op(<<"cumulative_sum">>, steps(tessera:jit(F), [numbers()])),
        ?assertEqual([there(scan)], First),
        ?assertEqual(First, lines_of_op(<<"cumulative_sum">>, steps(tessera:jit(F), [numbers()])))
    end).

%% ---- eager operations

eager_test_() ->
    on_host(fun() ->
        Numbers = numbers(),
        Steps = steps(fun() ->
                              X = tessera:sort(Numbers), here(sort, ?LINE),
                              X
                      end, []),
        ?assertEqual([there(sort)], lines_of_op(<<"sort">>, Steps))
    end).

%% ---- tables and traces

shown_test_() ->
    on_host(fun() ->
        F = tessera:jit(fun(X) ->
                                Y = tessera:sort(X), here(sort, ?LINE),
                                Y
                        end),
        {_, Profile} = tessera:profile(F, [numbers()], ?QUIET),
        Text = iolist_to_binary(io_lib:format("tessera_places_tests.erl:~b", [there(sort)])),
        ?assertMatch({match, _}, re:run(tessera_profile:table(Profile), ["^  sort .* sort \\[", Text, "\\]$"], [multiline])),
        ?assertNotEqual(nomatch, string:find(tessera_profile:chrome_trace(Profile), ["\"lines\":\"", Text, "\""])),
        ?assertNotEqual(nomatch, string:find(tessera_profile:flame_graph(Profile), ["sort sort [", Text, "]: "]))
    end).

%% A profile restores the depth of stacktraces, also if its function raises an error.
depth_test_() ->
    on_host(fun() ->
        Depth = depth(),
        _ = tessera:profile(fun() -> ?assert(depth() > 8) end, [], ?QUIET),
        ?assertEqual(Depth, depth()),
        ?assertError(wrong, tessera:profile(fun() -> error(wrong) end, [], ?QUIET)),
        ?assertEqual(Depth, depth()),
        ?assertNot(tessera_places:is_recording())
    end).

%% A function that erases the process dictionary, or raises after that. The lines that were noted before are lost, the measured steps are not.
erased_test_() ->
    on_host(fun() ->
        F = tessera:jit(fun(X) -> tessera:sort(X) end),
        Numbers = numbers(),
        Twice = fun() ->
                        Y = F(Numbers),
                        _ = erlang:erase(),
                        F(Y)
                end,
        ended(spawn_monitor(fun() ->
            receive stop -> ok end,
            {Sorted, #{runs := 2}} = tessera:profile(Twice, [], ?QUIET),
            ?assertEqual(tessera:to_binary(Numbers), tessera:to_binary(Sorted)),
            ?assertError(wrong, tessera:profile(fun() -> erlang:erase(), error(wrong) end, [], ?QUIET)),
            %% the outer profile continues
            Nested = fun() ->
                             {_, #{runs := 2}} = tessera:profile(Twice, [], ?QUIET),
                             Y = tessera:cumulative_sum(Numbers), here(scan, ?LINE),
                             Y
                     end,
            {_, #{runs := 3, programs := Programs}} = tessera:profile(Nested, [], ?QUIET),
            ?assertEqual([there(scan)], lines_of_op(<<"cumulative_sum">>, lists:append([Steps || #{steps := Steps} <- Programs]))),
            ?assertNot(tessera_places:is_recording()),
            ?assertNot(tessera_run:is_profiled()),
            %% a run of other VMs that has begun before
            ?assertEqual(ok, tessera_run:note(?MODULE, run, none))
        end))
    end).

%% Also when the process of a profile is killed.
depth_after_kill_test_() ->
    on_host(fun() ->
        Depth = depth(),
        Profile = profile_begins(),
        ?assert(depth() > 8),
        killed(Profile),
        ?assertEqual(Depth, depth())
    end).

%% Of two profiles that overlap the last one ends it, whichever began first, and however it ends.
depth_of_two_test_() ->
    on_host(fun() ->
        Depth = depth(),
        [begin
             Profiles = [profile_begins(), profile_begins()],
             [First, Second] = Order(Profiles),
             End(First),
             ?assert(depth() > 8),
             End(Second),
             ?assertEqual(Depth, depth())
         end || Order <- [fun(Both) -> Both end, fun lists:reverse/1], End <- [fun killed/1, fun ended/1]]
    end).

depth_of_others_test_() ->
    on_host(fun() ->
        Depth = depth(),
        try
            _ = tessera:profile(fun() -> erlang:system_flag(backtrace_depth, 20) end, [], ?QUIET),
            ?assertEqual(20, depth()),
            _ = tessera:profile(fun() -> ?assert(depth() > 20) end, [], ?QUIET),
            ?assertEqual(20, depth())
        after erlang:system_flag(backtrace_depth, Depth)
        end
    end).

depth_without_server_test_() ->
    on_host(fun() ->
        Depth = depth(),
        Profile = profile_begins(),
        %% as when the process has been killed and started again
        {Another, Monitor} = spawn_monitor(fun() -> tessera_stack:init([]) end),
        receive {'DOWN', Monitor, process, Another, normal} -> ok end,
        ?assertEqual(Depth, depth()),
        ended(Profile),
        _ = tessera:profile(fun() -> ?assert(depth() > 8) end, [], ?QUIET),
        %% it ends inside of a profile
        _ = tessera:profile(fun() ->
                                    ok = supervisor:terminate_child(tessera_sup, tessera_stack),
                                    ?assertEqual(Depth, depth())
                            end, [], ?QUIET),
        {ok, _} = supervisor:restart_child(tessera_sup, tessera_stack),
        ?assertEqual(Depth, depth())
    end).

%% What is kept lives as long as its reference, and has no more than 1 MB.
kept_test() ->
    Kept = tessera_places:keep({a, fun() -> 1 end}),
    ?assertMatch([{a, F}] when is_function(F, 0), tessera_places:kept(Kept)),
    ?assertEqual(none, tessera_places:keep(binary:copy(<<0>>, 1048577))),
    [?assertEqual([], tessera_places:kept(R)) || R <- [none, make_ref()]].

%% A process inside of a profile.
profile_begins() ->
    Parent = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
                                           tessera:profile(fun() -> Parent ! {inside, self()}, receive stop -> ok end end, [], ?QUIET)
                                   end),
    receive {inside, Pid} -> {Pid, Monitor} end.

ended({Pid, Monitor}) ->
    Pid ! stop,
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end.

killed({Pid, Monitor}) ->
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, killed} -> no_user(Pid) end.

%% Waits until the process that keeps the depth knows.
no_user(Pid) ->
    case lists:member(Pid, maps:values(sys:get_state(tessera_stack))) of
        true -> timer:sleep(1), no_user(Pid);
        false -> ok
    end.

depth() ->
    Depth = erlang:system_flag(backtrace_depth, 8),
    _ = erlang:system_flag(backtrace_depth, Depth),
    Depth.
