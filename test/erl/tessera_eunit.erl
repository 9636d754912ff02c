%% Runs EUnit's tests with more time than they ask for, as the machine may be busy with other things: EUnit itself can
%% be told so from OTP 26 on. What has no limit of its own has five seconds of EUnit's, times the factor.
-module(tessera_eunit).
-export([run/1]).

-define(FACTOR, 10).
-define(DEFAULT_SECONDS, 5).

%% True when there were tests and all passed.
-spec run([module()]) -> boolean().
run(Modules) ->
    Tests = [{lists:concat(["module ", M]), tests(M)} || M <- Modules],
    lists:all(fun({_, List}) -> List =/= [] end, Tests) andalso eunit:test(Tests) =:= ok.

tests(Module) ->
    lists:append([test(Module, Name, lists:reverse(atom_to_list(Name))) || {Name, 0} <- Module:module_info(exports)]).

test(Module, Name, "tset_" ++ _) -> [limited({Module, Name})];
test(Module, Name, "_tset_" ++ _) -> [{generator, fun() -> scaled(Module:Name()) end}];
test(_, _, _) -> [].

limited(Test) -> {timeout, ?FACTOR * ?DEFAULT_SECONDS, Test}.

%% The forms of tests that we use; any other is an error.
scaled(List) when is_list(List) -> [scaled(Test) || Test <- List];
scaled({timeout, Seconds, Test}) -> {timeout, ?FACTOR * Seconds, inside(Test)};
scaled({setup, Setup, Tests}) -> {setup, Setup, made(Tests)};
scaled({setup, Setup, Cleanup, Tests}) -> {setup, Setup, Cleanup, made(Tests)};
scaled({foreach, Setup, Cleanup, Tests}) -> {foreach, Setup, Cleanup, [made(Test) || Test <- Tests]};
scaled(Test) when is_function(Test, 0) -> limited(Test);
scaled({Line, Test}) when is_integer(Line), is_function(Test, 0) -> limited({Line, Test});
scaled({[_ | _] = Title, Tests}) -> {Title, scaled(Tests)}.

%% Of what was set up, or not.
made(Tests) when is_function(Tests, 1) -> fun(Made) -> scaled(Tests(Made)) end;
made(Tests) -> scaled(Tests).

%% Of what has a limit already.
inside({[_ | _] = Title, Test}) -> {Title, inside(Test)};
inside({Line, Test}) when is_integer(Line) -> {Line, Test};
inside(Test) when is_function(Test, 0) -> Test;
inside(Tests) -> scaled(Tests).
