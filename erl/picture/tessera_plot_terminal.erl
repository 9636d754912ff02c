%% @private
%% Pictures in terminals: which kind the terminal shows, and pixels in its escape sequences.
-module(tessera_plot_terminal).
-export([kind/0, kind/3, encode/2]).

-type kind() :: kitty | sixel | text | {text, Columns :: pos_integer()}.

-spec kind() -> kind().
kind() -> kind(os:getenv("TESSERA_PICTURES", ""), os:getenv("TERM", ""), tessera_picture:columns()).

%% A file gets text without colours.
-spec kind(string(), string(), {ok, pos_integer()} | none) -> kind().
kind("kitty", _, _) -> kitty;
kind("sixel", _, _) -> sixel;
kind("text", _, {ok, Columns}) -> {text, Columns};
kind(_, _, none) -> text;
kind(_, "xterm-kitty", _) -> kitty;
kind(_, "mlterm" ++ _, _) -> sixel;
kind(_, "foot" ++ _, _) -> sixel;
kind(_, Term, {ok, Columns}) ->
    case string:find(Term, "sixel") of
        nomatch -> {text, Columns};
        _ -> sixel
    end.

-spec encode(kitty | sixel, tessera_plot_raster:raster()) -> iolist().
encode(kitty, Raster) -> kitty(binary_to_list(base64:encode(tessera_plot_png:encode(Raster))), "a=T,f=100,");
encode(sixel, {Width, Height, Pixels}) ->
    ["\eP0;1q", io_lib:format("\"1;1;~b;~b", [Width, Height]), palette(),
     [[bands(Pixels, Width, Height, Y), "-"] || Y <- lists:seq(0, Height - 1, 6)], "\e\\\n"].

%% PNG in pieces of 4096 characters, all but the last with m=1.
kitty(Text, Keys) when length(Text) =< 4096 -> ["\e_G", Keys, "m=0;", Text, "\e\\\n"];
kitty(Text, Keys) ->
    {Now, Later} = lists:split(4096, Text),
    ["\e_G", Keys, "m=1;", Now, "\e\\" | kitty(Later, "")].

%% Six steps of each colour.
palette() -> [io_lib:format("#~b;2;~b;~b;~b", [36 * R + 6 * G + B, 20 * R, 20 * G, 20 * B]) || R <- lists:seq(0, 5), G <- lists:seq(0, 5), B <- lists:seq(0, 5)].

%% Six lines at once, one colour after another.
bands(Pixels, Width, Height, Y) ->
    Colours = [{X, I, colour(binary:part(Pixels, 3 * ((Y + I) * Width + X), 3))} || I <- lists:seq(0, min(5, Height - 1 - Y)), X <- lists:seq(0, Width - 1)],
    Bits = lists:foldl(fun({X, I, C}, Sum) -> maps:update_with({C, X}, fun(B) -> B bor (1 bsl I) end, 1 bsl I, Sum) end, #{}, Colours),
    lists:join("$", [["#", integer_to_list(C), runs([maps:get({C, X}, Bits, 0) || X <- lists:seq(0, Width - 1)])]
                     || C <- lists:usort([C || {C, _} <- maps:keys(Bits)])]).

colour(<<R, G, B>>) -> 36 * ((R * 5 + 127) div 255) + 6 * ((G * 5 + 127) div 255) + (B * 5 + 127) div 255.

runs([]) -> [];
runs([Bits | _] = List) ->
    {Same, Rest} = lists:splitwith(fun(Other) -> Other =:= Bits end, List),
    [io_lib:format("!~b~c", [length(Same), 63 + Bits]) | runs(Rest)].
