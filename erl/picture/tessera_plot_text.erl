%% @private
%% A plot as lines of text.
-module(tessera_plot_text).
-export([draw/2]).
-export_type([options/0]).

%% In characters. `colours' sets whether escape sequences colour the text.
-type options() :: #{width => pos_integer(), height => pos_integer(), colours => boolean()}.

-spec draw(tessera_plot_scene:plot(), options()) -> unicode:chardata().
draw(#{title := Title} = Plot, #{width := Width} = Options) ->
    [[[centred(Title, Width), "\n"] || Title =/= ""] | body(Plot, Options)].

centred(Text, Width) -> [lists:duplicate(max(0, (Width - length(Text)) div 2), $\s), Text].

body(#{kind := bar, series := [Points], labels := Labels}, Options) -> bars(lists:zip(Labels, Points), Options);
body(#{kind := histogram, series := [Points], labels := Labels}, Options) ->
    Ranges = [From ++ " to " ++ To || {From, To} <- lists:zip(lists:droplast(Labels), tl(Labels))],
    bars(lists:zip(Ranges, Points), Options);
body(#{kind := image, pixels := Rows}, Options) -> pixels(Rows, Options);
body(#{kind := Kind, series := Series} = Plot, Options) -> dots(Kind, Series, Plot, Options).

%% ---- bars lie, so that their labels have room

bars(Bars, #{width := Width, colours := Colours}) ->
    Texts = [{Label, Y, shown(Y)} || {Label, Point} <- Bars, Y <- [case Point of gap -> gap; {_, N} -> N end]],
    Left = min(Width div 2, lists:max([length(Label) || {Label, _, _} <- Texts])),
    Room = max(1, Width - Left - 2 - lists:max([length(Text) || {_, _, Text} <- Texts])),
    Most = max(1.0e-300, lists:max([abs(Y) || {_, Y, _} <- Texts, Y =/= gap])),
    [[lists:duplicate(Left - length(Cut), $\s), Cut, $\s, paint(block(Y, Most, Room), Colours), $\s, Text, $\n]
     || {Label, Y, Text} <- Texts, Cut <- [lists:sublist(Label, Left)]].

block(gap, _, _) -> "";
block(Y, Most, Room) -> tessera_picture:bar(round(8 * Room * abs(Y) / Most)).

shown(gap) -> "-";
shown(Y) when is_integer(Y) -> integer_to_list(Y);
shown(Y) -> tessera_plot_scene:number(Y, max(abs(Y), 1.0e-3) / 100).

paint(Text, false) -> Text;
paint(Text, true) -> ["\e[34m", Text, "\e[0m"].

%% ---- lines and points: each character has two by four dots

dots(Kind, Series, Plot, #{width := Width, height := Height, colours := Colours}) ->
    {{XLow, XHigh}, {YLow, YHigh}} = tessera_plot_scene:bounds(Plot),
    Ticks = tessera_plot_scene:ticks(YLow, YHigh, 4),
    Left = lists:max([length(Text) || {_, Text} <- Ticks]),
    {Columns, Rows} = {max(8, Width - Left - 2), Height - 2},
    Place = fun({X, Y}) -> {(2 * Columns - 1) * (X - XLow) / (XHigh - XLow), (4 * Rows - 1) * (YHigh - Y) / (YHigh - YLow)} end,
    Cells = lists:foldl(fun({I, Points}, Sum) -> marks(Kind, [case P of gap -> gap; _ -> Place(P) end || P <- Points], I, Sum) end, #{},
                        lists:enumerate(0, Series)),
    Labels = maps:from_list([{trunc(element(2, Place({XLow, N}))) div 4, Text} || {N, Text} <- Ticks]),
    [[[string:pad(maps:get(Row, Labels, ""), Left, leading), case is_map_key(Row, Labels) of true -> " ┤"; false -> " │" end,
       row(Row, Columns, Cells, Colours), "\n"] || Row <- lists:seq(0, Rows - 1)],
     [lists:duplicate(Left + 1, $\s), "└", lists:duplicate(Columns, $─), "\n"],
     [lists:duplicate(Left + 2, $\s), string:trim(x_labels(tessera_plot_scene:ticks(XLow, XHigh, max(1, Columns div 12)), Columns,
                                                           fun(X) -> trunc(element(1, Place({X, YLow}))) div 2 end), trailing), "\n"]].

marks(scatter, Points, I, Cells) -> lists:foldl(fun(P, Sum) -> mark(P, I, Sum) end, Cells, [P || P <- Points, P =/= gap]);
marks(line, [{_, _} = P, {_, _} = Q | Points], I, Cells) -> marks(line, [Q | Points], I, between(P, Q, I, Cells));
marks(line, [gap | Points], I, Cells) -> marks(line, Points, I, Cells);
marks(line, [P | Points], I, Cells) -> marks(line, Points, I, mark(P, I, Cells));
marks(line, [], _, Cells) -> Cells.

between({X0, Y0}, {X1, Y1}, I, Cells) ->
    Steps = max(1, ceil(max(abs(X1 - X0), abs(Y1 - Y0)))),
    lists:foldl(fun(S, Sum) -> mark({X0 + (X1 - X0) * S / Steps, Y0 + (Y1 - Y0) * S / Steps}, I, Sum) end, Cells, lists:seq(0, Steps)).

%% The last series that has a dot in a character colours it.
mark({X, Y}, I, Cells) ->
    {DX, DY} = {round(X), round(Y)},
    Dot = element(1 + (DY rem 4) * 2 + DX rem 2, {16#01, 16#08, 16#02, 16#10, 16#04, 16#20, 16#40, 16#80}),
    maps:update_with({DY div 4, DX div 2}, fun({Dots, _}) -> {Dots bor Dot, I} end, {Dot, I}, Cells).

row(Row, Columns, Cells, Colours) ->
    Texts = [case Cells of
                 #{{Row, Column} := {Dots, I}} when Colours -> io_lib:format("\e[3~bm~ts\e[0m", [element(I rem 6 + 1, {4, 1, 2, 5, 3, 6}), [16#2800 + Dots]]);
                 #{{Row, Column} := {Dots, _}} -> [16#2800 + Dots];
                 #{} -> " "
             end || Column <- lists:seq(0, Columns - 1)],
    case Colours of
        true -> Texts;
        false -> string:trim(lists:append(Texts), trailing)
    end.

%% A label that would touch the label before is left out.
x_labels(Ticks, Columns, Column) ->
    {Line, _} = lists:foldl(fun({X, Text}, {Line, End}) ->
                                    At = max(0, min(Columns - length(Text), Column(X) - length(Text) div 2)),
                                    case At >= End of
                                        true -> {[Line, lists:duplicate(At - End, $\s), Text, $\s], At + length(Text) + 1};
                                        false -> {Line, End}
                                    end
                            end, {[], 0}, Ticks),
    lists:flatten(Line).

%% ---- images

%% A pixel is two characters; with colours and where an image is too large for that, a character is two pixels, one above the other. Larger images are
%% thinned out.
pixels(Rows, #{width := Width, height := Height, colours := Colours}) ->
    {W, H} = {length(hd(Rows)), length(Rows)},
    IsLarge = 2 * W > Width orelse H > Height,
    {MostW, MostH} = case Colours andalso IsLarge of true -> {Width, 2 * Height}; false -> {Width div 2, Height} end,
    Each = max(1, ceil(max(W / MostW, H / MostH))),
    Table = list_to_tuple([list_to_tuple(Row) || Row <- Rows]),
    At = fun(Y, X) when Y < H -> element(X + 1, element(Y + 1, Table)); (_, _) -> {0, 0, 0} end,
    Columns = lists:seq(0, W - 1, Each),
    case Colours of
        true when IsLarge -> [[[pair(At(Y, X), At(Y + Each, X)) || X <- Columns], "\e[0m\n"] || Y <- lists:seq(0, H - 1, 2 * Each)];
        true -> [[[block(At(Y, X)) || X <- Columns], "\e[0m\n"] || Y <- lists:seq(0, H - 1)];
        false -> [[string:trim(lists:append([shade(At(Y, X)) || X <- Columns]), trailing), "\n"] || Y <- lists:seq(0, H - 1, Each)]
    end.

pair({R, G, B}, {R1, G1, B1}) -> io_lib:format("\e[38;2;~b;~b;~b;48;2;~b;~b;~bm▀", [R, G, B, R1, G1, B1]).

block({R, G, B}) -> io_lib:format("\e[48;2;~b;~b;~bm  ", [R, G, B]).

shade({R, G, B}) -> lists:duplicate(2, element(min(5, (2 * R + 5 * G + B) div 8 * 5 div 256 + 1), {$\s, $░, $▒, $▓, $█})).
