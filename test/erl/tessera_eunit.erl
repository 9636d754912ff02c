%% Runs EUnit's tests with more time than they ask for, as the machine may be busy: EUnit itself can
%% be told so from OTP 26 on. A test without a limit of its own asks for EUnit's five seconds.
%%
%% Log events of a test are printed only when the test fails. For that this module is a handler of logger and a listener
%% of EUnit, and keeps the events in a table until the test's end.
-module(tessera_eunit).
-behaviour(eunit_listener).
-export([run/2, on_host/1]).
-export([log/2]).
-export([start/1, init/1, handle_begin/3, handle_end/3, handle_cancel/3, terminate/2]).

%% The limit of a test: this many times what it asks for, and these seconds in addition.
-define(FACTOR, 10).
-define(MORE_SECONDS, 250).
-define(DEFAULT_SECONDS, 5).

%% True when there were tests and all passed. Title is what the line of counts begins with.
-spec run(string(), [module()]) -> boolean().
run(Title, Modules) ->
    Tests = [{lists:concat(["module ", M]), tests(M)} || M <- Modules],
    keep_log(),
    ok = application:set_env(tessera, trace_seconds, limit(?DEFAULT_SECONDS), [{persistent, true}]),
    lists:all(fun({_, List}) -> List =/= [] end, Tests) andalso counted(Title, eunit:test(Tests, [{report, {?MODULE, self()}}])).

%% By now the listener has ended.
counted(Title, Result) ->
    receive {?MODULE, Passed, Failed} -> io:format("~ts: ~b passed, ~b failed~n", [Title, Passed, Failed]) end,
    Result =:= ok.

tests(Module) ->
    lists:append([test(Module, Name, lists:reverse(atom_to_list(Name))) || {Name, 0} <- Module:module_info(exports)]).

test(Module, Name, "tset_" ++ _) -> [limited(fun Module:Name/0)];
test(Module, Name, "_tset_" ++ _) -> [{generator, fun() -> scaled(Module:Name()) end}];
test(_, _, _) -> [].

limited(Test) -> {timeout, limit(?DEFAULT_SECONDS), inside(Test)}.

limit(Seconds) -> ?MORE_SECONDS + ?FACTOR * Seconds.

%% The forms of tests that we use; any other is an error.
scaled(List) when is_list(List) -> [scaled(Test) || Test <- List];
scaled({timeout, Seconds, Test}) -> {timeout, limit(Seconds), inside(Test)};
scaled({setup, Setup, Tests}) -> {setup, Setup, made(Tests)};
scaled({setup, Setup, Cleanup, Tests}) -> {setup, Setup, Cleanup, made(Tests)};
scaled({foreach, Setup, Cleanup, Tests}) -> {foreach, Setup, Cleanup, [made(Test) || Test <- Tests]};
scaled(Test) when is_function(Test, 0) -> limited(Test);
scaled({Line, Test}) when is_integer(Line), is_function(Test, 0) -> limited({Line, Test});
scaled({[_ | _] = Title, Tests}) -> {Title, scaled(Tests)}.

%% The tests of a fixture; tests of a function get the result of its setup.
made(Tests) when is_function(Tests, 1) -> fun(Made) -> scaled(Tests(Made)) end;
made(Tests) -> scaled(Tests).

%% Tests that have a limit already.
inside({[_ | _] = Title, Test}) -> {Title, inside(Test)};
inside({Line, Test}) when is_integer(Line) -> {lists:concat([name(Test), ", line ", Line]), logged(Test)};
inside(Test) when is_function(Test, 0) -> {name(Test), logged(Test)};
inside(Tests) -> scaled(Tests).

%% EUnit itself would name the function that is put around it.
name(Test) ->
    {module, Module} = erlang:fun_info(Test, module),
    {name, Name} = erlang:fun_info(Test, name),
    lists:concat([Module, ":", Name]).

%% ---- the log

-define(LOG, tessera_eunit_log).

keep_log() ->
    ?LOG = ets:new(?LOG, [named_table, public, ordered_set]),
    ok = logger:add_handler(?MODULE, ?MODULE, #{}),
    ok = logger:remove_handler(default).

logged(Test) ->
    {module, Module} = erlang:fun_info(Test, module),
    Where = case proplists:get_value(device, Module:module_info(attributes)) of
                [host] -> fun() -> on_host(Test) end;
                undefined -> Test
            end,
    fun() ->
            try Where()
            catch Class:Reason:Trace ->
                print_log(),
                erlang:raise(Class, Reason, Trace)
            after ets:delete_all_objects(?LOG)
            end
    end.

%% Calls Test, which is about the host, with the host as the default client, whatever client the suite uses. A module with the
%% attribute -device(host) has only such tests.
-spec on_host(fun(() -> Result)) -> Result.
on_host(Test) ->
    case tessera_nif:default_client() of
        host -> Test();
        Name ->
            ok = default_client(host),
            Setting = application:get_env(tessera, default_client),
            ok = application:unset_env(tessera, default_client),   % for Nx
            try Test()
            after
                ok = default_client(Name),
                [ok = application:set_env(tessera, default_client, Default) || {ok, Default} <- [Setting]]
            end
    end.

%% A function without a device of its own has programs in the cache for the default client of before.
default_client(Name) ->
    ok = tessera_nif:default_client(Name),
    tessera:clear_cache().

%% Called by the process that logs.
-spec log(logger:log_event(), logger:handler_config()) -> term().
log(Event, _Config) ->
    ets:insert(?LOG, {erlang:unique_integer([monotonic]), logger_formatter:format(Event, #{})}).

%% ---- the listener: it counts, and prints the log of a test that ends without an exception

-record(run, {runner :: pid(), module = "" :: string()}).

-spec start(pid()) -> pid().
start(Runner) -> eunit_listener:start(?MODULE, [{runner, Runner}]).

-spec init(list()) -> #run{}.
init(Options) -> #run{runner = proplists:get_value(runner, Options)}.

-spec handle_begin(group | test, list(), #run{}) -> #run{}.
handle_begin(group, Data, Run) ->
    case unicode:characters_to_list(described(Data)) of
        "module " ++ Module -> Run#run{module = Module};
        _ -> Run
    end;
handle_begin(test, _, Run) -> Run.

-spec handle_end(group | test, list(), #run{}) -> #run{}.
handle_end(test, Data, Run) ->
    note_time(os:getenv("TESSERA_TIMES", ""), proplists:get_value(time, Data, 0), described(Data), Run),
    Run;
handle_end(group, _, Run) -> Run.

%% A test timed out, or the setup of a group failed.
-spec handle_cancel(group | test, list(), #run{}) -> #run{}.
handle_cancel(_, _, Run) ->
    print_log(),
    Run.

-spec terminate({ok, list()} | {error, term()}, #run{}) -> term().
terminate({ok, Data}, #run{runner = Runner}) ->
    [Passed, Failed, Cancelled] = [proplists:get_value(Key, Data, 0) || Key <- [pass, fail, cancel]],
    Runner ! {?MODULE, Passed, Failed + Cancelled};
terminate({error, _}, #run{runner = Runner}) ->
    Runner ! {?MODULE, 0, 1}.

described(Data) ->
    case proplists:get_value(desc, Data) of
        undefined -> "";
        Text -> Text
    end.

note_time(File, Milliseconds, Description, #run{module = Module}) when File =/= [], Milliseconds >= 100 ->
    Build = [[" (", Name, ")"] || Name <- [os:getenv("TESSERA_SANITIZER", "")], Name =/= ""],
    Line = io_lib:format("~.3f Erlang: ~ts: ~ts~ts~n", [Milliseconds / 1000, Module, Description, Build]),
    ok = file:write_file(File, unicode:characters_to_binary(Line), [append]);
note_time(_, _, _, _) -> ok.

print_log() ->
    case [Text || {_, Text} <- ets:tab2list(?LOG)] of
        [] -> ok;
        Texts -> io:format("---- logged:~n~ts----~n", [Texts])
    end.
