%% Functions that several modules of tests use.
-module(tessera_test).
-include_lib("eunit/include/eunit.hrl").
-export([raises/2, raises/3, near/2, near/3, weighed/1, check_gradient/2, differences/2, resident/0, temporary/1, in_folder/1, is_timed/0, until/1, until_freed/1, blocks/0, leaves_no_blocks/1, in_each/2, quoted/1, paths/0,
         shell_paths/0, shared/1, vm/3, answer/1, client/1, some_fail/3, closes/2, kills/2, with_lapack/2, open_mesh/1, mesh_plugin/0]).

%% Of many cases those that this run takes (test/c/testing.h): the half that TESSERA_HALF says, without the third that
%% TESSERA_WAITS says. With a sanitizer the quarter that TESSERA_PART says. Without these variables all cases.
shared(Cases) ->
    case os:getenv("TESSERA_SANITIZER") of
        false -> without_third(part(Cases, os:getenv("TESSERA_HALF", ""), 2));
        _ -> part(Cases, os:getenv("TESSERA_PART", ""), 4)
    end.

part(Cases, "", _) -> Cases;
part(Cases, Part, Parts) -> [Case || {I, Case} <- lists:enumerate(Cases), (I + I div Parts) rem Parts =:= list_to_integer(Part)].

without_third(Half) ->
    case {os:getenv("TESSERA_HALF", ""), os:getenv("TESSERA_WAITS", "")} of
        {[_ | _], [_ | _] = Waits} -> [Case || {I, Case} <- lists:enumerate(Half), I rem 3 =/= list_to_integer(Waits)];
        _ -> Half
    end.

%% Milliseconds for what takes seconds on an idle machine.
-define(MOST, 240000).

%% F raises an error of that code, with an error info that contains these words.
raises(Code, F) -> raises(Code, "", F).

raises(Code, Words, F) ->
    try F() of
        Value -> ?assertEqual({error_of, Code, Words}, {value, Value})
    catch
        error:{Actual, Message} = Reason:Trace ->
            ?assertEqual({Code, Message}, {Actual, Message}),
            ?assertNotEqual({nomatch, Message}, {string:find(Message, Words), Message}),
            [{tessera, _, _, Location} | _] = Trace,
            #{module := Module} = proplists:get_value(error_info, Location),
            #{general := Text} = Module:format_error(Reason, Trace),
            ?assertEqual(Message, unicode:characters_to_binary(Text)),
            %% As the shell prints it.
            ?assert(is_binary(unicode:characters_to_binary(erl_error:format_exception(error, Reason, Trace))))
    end.

%% Opens a client of 8 devices for programs over a mesh: of the host, or of the plugin that TESSERA_MESH_PLUGIN names.
%% TESSERA_MESH_OPTION is the plugin's option for their number.
open_mesh(Client) ->
    Option = list_to_atom(os:getenv("TESSERA_MESH_OPTION", "cpu_device_count")),
    tessera:open_client(Client, case mesh_plugin() of
                                    false -> #{device_count => 8};
                                    Path -> #{device_count => 8, platform => pjrt, plugin_path => Path, plugin_options => #{Option => 8}}
                                end).

mesh_plugin() -> os:getenv("TESSERA_MESH_PLUGIN").

%% Nested lists of numbers that agree to a part in a hundred thousand.
near(Expected, Actual) -> near(Expected, Actual, 1.0e-5).

near(Expected, Actual, Tolerance) ->
    case is_near(Expected, Actual, Tolerance) of
        true -> ok;
        false -> ?assertEqual(Expected, Actual)
    end.

is_near([], [], _) -> true;
is_near([A | As], [B | Bs], Tolerance) -> is_near(A, B, Tolerance) andalso is_near(As, Bs, Tolerance);
is_near(A, B, Tolerance) when is_number(A), is_number(B) -> abs(A - B) =< Tolerance * max(1, abs(A));
is_near(A, A, _) -> true;
is_near(_, _, _) -> false.

%% F with one number for its result. Each element weighs another number.
weighed(F) ->
    fun(X) ->
            Y = F(X),
            Weights = tessera:add(tessera:iota(tessera:shape(Y), f64), 1),
            tessera:sum(tessera:multiply(Weights, tessera:multiply(Y, Y)))
    end.

%% The gradient of weighed(F) at a tensor of f64 agrees with central differences.
check_gradient(F, X) ->
    Gradient = (tessera:jit(tessera:grad(weighed(F))))(X),
    ?assertEqual(tessera:shape(X), tessera:shape(Gradient)),
    near(differences(weighed(F), X), tessera:to_list(tessera:flatten(Gradient))).

%% Of a function of a tensor of f64 with one number for its result.
differences(F, X) ->
    Jitted = tessera:jit(F),
    Flat = tessera:flatten(X),
    Step = 1.0e-5,
    At = fun(I, By) ->
                 Moved = tessera:indexed_add(Flat, tessera:tensor([[I]]), tessera:tensor([By], f64)),
                 tessera:to_number(Jitted(tessera:reshape(Moved, tessera:shape(X))))
         end,
    [(At(I, Step) - At(I, -Step)) / (2 * Step) || I <- tessera_type:dims(tessera:size(X))].

%% Bytes of memory that the process has in RAM.
resident() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4096.

%% A client without configuration, with two devices.
client(Name) ->
    #{'__struct__' => 'Elixir.Tessera.Client', ref => Name, name => Name, platform => host, device_count => 2, default_device_id => 0,
      automatic_transfers => nil}.

%% An empty folder for a test.
temporary(Name) ->
    Dir = filename:join(["build", "tmp", Name ++ integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()]),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    filename:absname(Dir).

%% Whether times on the clock are judged, which says something on an idle machine only: `make test-all' asks for it.
is_timed() -> os:getenv("TESSERA_TIMED", "") =/= "".

%% Tests that need LAPACK: none where it is missing, and then the log says so. With TESSERA_CI set they are there, and fail.
with_lapack(What, Tests) ->
    {ok, _} = application:ensure_all_started(tessera),
    Missing = fun() ->
                      try tessera:eig(tessera:tensor([[1.0]])) of _ -> false
                      catch error:{invalid_argument, Message} -> string:find(Message, "LAPACK cannot be opened") =/= nomatch
                      end
              end,
    case os:getenv("TESSERA_CI", "") =:= "" andalso tessera_eunit:on_host(Missing) of
        true -> io:format(user, "~ts are not tested: no LAPACK here (install the package libopenblas0)~n", [What]), [];
        false -> Tests
    end.

%% A test in a folder of its own, outside of the checkout, which only the user may read.
in_folder(Test) ->
    fun() ->
            Folder = string:trim(os:cmd("mktemp -d")),
            try Test(Folder)
            after ok = file:del_dir_r(Folder)
            end
    end.

%% Waits until Is() is true. Some minutes are more than enough, also on a busy machine.
until(Is) -> until(Is, erlang:monotonic_time(millisecond) + ?MOST).

until(Is, Until) ->
    case Is() of
        true -> ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Until),
            timer:sleep(10),
            until(Is, Until)
    end.

%% Waits until Is() is true for the rest of memory. A tensor is freed when each process that had it has collected garbage. A process that waits,
%% like the processes of `peer' and `io', may not collect any by itself.
until_freed(Is) ->
    until(fun() ->
                  lists:foreach(fun erlang:garbage_collect/1, processes()),
                  Is()
          end).

%% Allocated blocks of metadata when no kernel is compiled in the background. A kernel that an earlier test asked for takes
%% blocks when it is compiled, on a busy machine minutes later.
blocks() ->
    until(fun() -> maps:get(background, tessera_nif:jit_stats()) =:= 0 end),
    tessera_nif:live_blocks().

%% Fails when each of ten calls of Fun leaves blocks behind: a leak does that. A single call may, since the first one fills caches, and so may some in
%% turn where what earlier tests began ends late, as on a busy machine. The failure shows how many blocks each call left.
leaves_no_blocks(Fun) -> ?assertEqual([], in_each(fun(_) -> left_blocks(Fun) end, lists:seq(1, 10))).

left_blocks(Fun) ->
    true = erlang:garbage_collect(),
    Before = blocks(),
    _ = Fun(),
    true = erlang:garbage_collect(),
    [More || More <- [blocks() - Before], More > 0].

%% What Judge finds for each of the cases; [] if it finds nothing for one of them, and then it is not called for the rest.
in_each(Judge, Cases) -> in_each(Judge, Cases, []).

in_each(_, [], Found) -> lists:reverse(Found);
in_each(Judge, [Case | Cases], Found) ->
    case Judge(Case) of
        [] -> [];
        Some -> in_each(Judge, Cases, [Some | Found])
    end.

%% As one word for a shell.
quoted(Text) -> "'" ++ lists:append([case C of $' -> "'\\''"; _ -> [C] end || C <- Text]) ++ "'".

%% The options of erl with the paths of Tessera and the tests.
paths() -> lists:append([["-pa", filename:absname(filename:dirname(code:which(Module)))] || Module <- [tessera, ?MODULE]]).

%% The same for a shell.
shell_paths() -> lists:append(lists:join(" ", [quoted(Word) || Word <- paths()])).

%% The port of another VM that evaluates Eval, with these flags of erl and options of the port.
vm(Flags, Eval, Options) ->
    open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
              [{args, ["-noinput" | Flags] ++ paths() ++ ["-eval", lists:flatten(Eval)]}, exit_status, binary, stderr_to_stdout | Options]).

%% The term that another VM printed on a line of its own, and all that it printed; it must end with status 0.
answer(Port) -> answer(Port, []).

answer(Port, Acc) ->
    receive
        {Port, {data, Data}} -> answer(Port, [Data | Acc]);
        {Port, {exit_status, Status}} ->
            Text = iolist_to_binary(lists:reverse(Acc)),
            ?assertEqual({0, Text}, {Status, Text}),
            %% Warnings may stand around it.
            [Line] = [L || <<"{", _/binary>> = L <- binary:split(Text, <<"\n">>, [global])],
            {ok, Tokens, _} = erl_scan:string(binary_to_list(Line)),
            {ok, Term} = erl_parse:parse_term(Tokens),
            {Term, Text}
    after ?MOST ->
        {os_pid, Pid} = erlang:port_info(Port, os_pid),
        os:cmd("kill -9 " ++ integer_to_list(Pid)),
        error({late, iolist_to_binary(lists:reverse(Acc))})
    end.

%% Kills so many processes, one after another. The I-th process calls Work(I), and may have run a little longer than the one before it.
kills(Count, Work) ->
    [begin
         {Pid, Monitor} = spawn_monitor(fun() -> Work(I) end),
         [erlang:yield() || _ <- lists:seq(1, I rem 51)],
         exit(Pid, kill),
         receive {'DOWN', Monitor, process, Pid, _} -> ok end
     end || I <- lists:seq(1, Count)].

%% Operations of the client fail now and then. More than ten of the runs fail, with these words, and more than ten are right.
some_fail(Client, Runs, Words) ->
    F = tessera:jit(fun(X) -> tessera:add(X, 1) end, #{device => {Client, 0}}),
    Results = [try tessera:to_list(F(tessera:tensor([I])))
               catch error:{unavailable, Text} -> {failed, Text}
               end || I <- lists:seq(1, Runs)],
    {Failed, Right} = lists:partition(fun is_tuple/1, Results),
    ?assert(length(Failed) > 10),
    ?assert(length(Right) > 10),
    [?assertEqual([I + 1], Result) || {I, Result} <- lists:zip(lists:seq(1, Runs), Results), not is_tuple(Result)],
    [?assertNotEqual(nomatch, string:find(Text, Words)) || {failed, Text} <- Failed].

%% Open opens the client Name. Once the client is closed it refuses work and further opens, and a tensor on it can still be read; when
%% that tensor is gone, Open opens the client again.
closes(Name, Open) ->
    ok = Open(),
    Closed = ["client ", atom_to_list(Name), " is closed"],
    A = tessera:to_device(tessera:tensor([1, 2]), {Name, 0}),
    ok = tessera_nif:client_close(Name),
    raises(failed_precondition, Closed, fun() -> tessera:add(A, A) end),
    raises(failed_precondition, Closed, fun() -> tessera:to_device(tessera:tensor([1]), {Name, 0}) end),
    ?assertEqual([1, 2], tessera:to_list(A)),
    raises(failed_precondition, "is being closed", Open),
    ok = tessera:deallocate(A),
    until(fun() ->
                  try Open() =:= ok
                  catch error:{failed_precondition, _} -> garbage_collect(), tessera:clear_cache(), false
                  end
          end),
    ok = tessera_nif:client_close(Name).
