%% Tessera's side of bench/exports.py and of bench/models/run.py, by lines: `arguments FILE', `state FROM COUNT' says which arguments are the last results of the
%% call before, `first FILE' reads, compiles and runs a module, `second' calls it again, `run SECONDS', `save FILE'.
%% Each answer is a line: `ok' and milliseconds, or `failed' and why.
-module(tessera_exports).
-export([main/0]).

main() ->
    ok = io:setopts([{encoding, latin1}]),
    {ok, _} = application:ensure_all_started(tessera),
    loop(#{}).

loop(State) ->
    case io:get_line("") of
        Line when is_list(Line) ->
            [Command | Rest] = string:lexemes(string:trim(Line), " "),
            {Numbers, Next} = answer(Command, Rest, State),
            io:put_chars([lists:join(" ", Numbers), "\n"]),
            loop(Next);
        _ ->
            init:stop()
    end.

answer(Command, Rest, State) ->
    try
        {Numbers, Next} = do(Command, Rest, State),
        {["ok" | [io_lib:format("~.5f", [N]) || N <- Numbers]], Next}
    catch
        _:Why -> {["failed", unicode:characters_to_binary(string:replace(io_lib:format("~tp", [Why]), "\n", " ", all))], State}
    end.

do("arguments", [Path], State) ->
    Arrays = tessera_io:load(Path, #{map => false}),
    {[], State#{arguments => [map_get(Key, Arrays) || Key <- lists:sort(maps:keys(Arrays))]}};
do("state", [From, Count], State) ->
    {[], State#{state => {list_to_integer(From), list_to_integer(Count)}}};
do("first", [Path], #{arguments := Arguments} = State) ->
    {Read, F} = timed(fun() -> tessera_stablehlo:load(Path) end),
    Call = call(F, State),
    {Run, {Results, Next}} = timed(fun() -> Call(Arguments) end),
    {[Read, Run], State#{call => Call, results => Results, arguments := Next}};
do("second", [], #{arguments := Arguments, call := Call} = State) ->
    {Results, Next} = Call(Arguments),
    {[], State#{results => Results, arguments := Next}};
do("run", [Seconds], #{call := Call, arguments := Arguments} = State) ->
    End = erlang:monotonic_time(nanosecond) + round(list_to_float(Seconds) * 1.0e9),
    {Times, Next} = repeat(Call, Arguments, End, []),
    {Times, State#{arguments := Next}};
do("save", [Path], #{results := Results} = State) ->
    Names = [iolist_to_binary(io_lib:format("out~4..0b", [I])) || I <- lists:seq(0, length(Results) - 1)],
    ok = tessera_io:save(Path, maps:from_list(lists:zip(Names, Results))),
    {[], State}.

%% A call gives the results and the arguments of the next one: with a state, the last results are these arguments then, and their memory is given to it.
call(F, #{state := {From, Count}}) ->
    Jit = tessera:jit(fun(Before, State, Rest) -> F(Before ++ State ++ Rest) end, #{donate => [2]}),
    fun(Arguments) ->
            {Before, Rest} = lists:split(From, Arguments),
            {State, After} = lists:split(Count, Rest),
            Results = Jit(Before, State, After),
            {Values, Next} = lists:split(length(Results) - Count, Results),
            {Values, Before ++ Next ++ After}
    end;
call(F, _) -> fun(Arguments) -> {F(Arguments), Arguments} end.

repeat(Call, Arguments, End, Times) ->
    case length(Times) >= 3 andalso (length(Times) >= 2000 orelse erlang:monotonic_time(nanosecond) >= End) of
        true -> {Times, Arguments};
        false ->
            {Time, {_, Next}} = timed(fun() -> Call(Arguments) end),
            repeat(Call, Next, End, [Time | Times])
    end.

timed(Call) ->
    Start = erlang:monotonic_time(nanosecond),
    Result = Call(),
    {(erlang:monotonic_time(nanosecond) - Start) / 1.0e6, Result}.
