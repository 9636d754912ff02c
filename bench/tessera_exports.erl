%% Tessera's side of bench/exports.py, by lines: `arguments FILE', `first FILE' reads, compiles and runs a module, `run SECONDS', `save FILE'.
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
do("first", [Path], #{arguments := Arguments} = State) ->
    {Read, F} = timed(fun() -> tessera_stablehlo:load(Path) end),
    {Run, Results} = timed(fun() -> F(Arguments) end),
    {[Read, Run], State#{function => F, results => Results}};
do("run", [Seconds], #{function := F, arguments := Arguments} = State) ->
    End = erlang:monotonic_time(nanosecond) + round(list_to_float(Seconds) * 1.0e9),
    {repeat(fun() -> F(Arguments) end, End, []), State};
do("save", [Path], #{results := Results} = State) ->
    Names = [iolist_to_binary(io_lib:format("out~4..0b", [I])) || I <- lists:seq(0, length(Results) - 1)],
    ok = tessera_io:save(Path, maps:from_list(lists:zip(Names, Results))),
    {[], State}.

repeat(Call, End, Times) ->
    case length(Times) >= 3 andalso (length(Times) >= 2000 orelse erlang:monotonic_time(nanosecond) >= End) of
        true -> Times;
        false ->
            {Time, _} = timed(Call),
            repeat(Call, End, [Time | Times])
    end.

timed(Call) ->
    Start = erlang:monotonic_time(nanosecond),
    Result = Call(),
    {(erlang:monotonic_time(nanosecond) - Start) / 1.0e6, Result}.
