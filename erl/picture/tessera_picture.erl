%% @private
%% Options and errors of pictures, bars of blocks, and whether the output is a terminal.
-module(tessera_picture).
-export([options/3, fail/2, columns/0, bar/1]).

%% The given options, and the defaults of all others.
-spec options(atom(), term(), map()) -> map().
options(Name, Options, Defaults) when is_map(Options) ->
    case maps:keys(maps:without(maps:keys(Defaults), Options)) of
        [] -> maps:merge(Defaults, Options);
        Others -> fail("~s: unknown options ~ts, expected some of ~0p", [Name, tessera_error:show(Others), lists:sort(maps:keys(Defaults))])
    end;
options(Name, Options, _) -> fail("~s: expected a map of options, got ~ts", [Name, tessera_error:show(Options)]).

-spec fail(io:format(), [term()]) -> no_return().
fail(Format, Values) -> error({invalid_argument, unicode:characters_to_binary(io_lib:format(Format, Values))}).

%% The columns of the terminal that gets the output. Without a shell (`-noshell') some versions of OTP do not know it: then the file of the output
%% is looked at.
-spec columns() -> {ok, pos_integer()} | none.
columns() ->
    IsHere = node(group_leader()) =:= node(),
    case {io:columns(), file:read_link("/proc/self/fd/1")} of
        {{ok, Columns}, _} -> {ok, Columns};
        {_, {ok, "/dev/" ++ Device}} when Device =/= "null", IsHere -> {ok, 80};
        _ -> none
    end.

%% A bar with a length in eighths of a character.
-spec bar(non_neg_integer()) -> iolist().
bar(Eighths) -> [lists:duplicate(Eighths div 8, $█), element(Eighths rem 8 + 1, {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"})].
