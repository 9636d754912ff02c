%% @private
%% A plot as shapes: where axes, lines, bars, points, pixels and texts are in a picture of some width and height. Coordinates are in
%% pixels from the left upper corner.
-module(tessera_plot_scene).
-export([new/3, range/1, ticks/3, number/2, bounds/1]).
-export_type([plot/0, shape/0]).

%% `series' has the points of each line, in the order of drawing; `gap' is a place without a point.
-type plot() :: #{kind := line | bar | scatter | histogram | image, title := string(), series := [[{number(), number()} | gap]], labels := [string()],
                  pixels := [[{byte(), byte(), byte()}]]}.

%% Series are counted from 0; `grid' are the lines of the axes.
-type shape() :: {polyline, [{float(), float()}], non_neg_integer() | grid}
               | {box, {float(), float()}, {float(), float()}, non_neg_integer()}
               | {dot, {float(), float()}, non_neg_integer()}
               | {pixels, {float(), float()}, {float(), float()}, [[{byte(), byte(), byte()}]]}
               | {label, {float(), float()}, left | middle | right, string()}.

-define(LEFT, 64).
-define(RIGHT, 16).
-define(TOP, 28).
-define(BOTTOM, 32).

-spec new(plot(), pos_integer(), pos_integer()) -> [shape()].
new(#{kind := image, pixels := Rows, title := Title}, Width, Height) ->
    %% As large as fits, with square pixels.
    Scale = min((Width - 16) / length(hd(Rows)), (Height - ?TOP - 8) / length(Rows)),
    {W, H} = {Scale * length(hd(Rows)), Scale * length(Rows)},
    {X, Y} = {(Width - W) / 2, ?TOP + (Height - ?TOP - 8 - H) / 2},
    [{pixels, {X, Y}, {X + W, Y + H}, Rows} | title(Title, Width)];
new(#{kind := Kind, series := Series, title := Title, labels := Labels} = Plot, Width, Height) ->
    {{XLow, XHigh}, {YLow, YHigh}} = bounds(Plot),
    Place = fun({X, Y}) ->
                    {?LEFT + (Width - ?LEFT - ?RIGHT) * (X - XLow) / (XHigh - XLow),
                     Height - ?BOTTOM - (Height - ?TOP - ?BOTTOM) * (Y - YLow) / (YHigh - YLow)}
            end,
    axes(Kind, {XLow, XHigh}, {YLow, YHigh}, Labels, Place) ++
        lists:append([shapes(Kind, [case P of gap -> gap; _ -> P end || P <- Points], I, Place) || {I, Points} <- lists:enumerate(0, Series)]) ++
        title(Title, Width).

title("", _) -> [];
title(Title, Width) -> [{label, {Width / 2, 16.0}, middle, Title}].

%% @doc The ranges of both axes. Bars begin at 0.
bounds(#{kind := Kind, series := Series}) ->
    Points = [P || One <- Series, P <- One, P =/= gap],
    Ys = [Y || {_, Y} <- Points],
    case Kind of
        bar -> {{-0.5, lists:max([X || {X, _} <- Points]) + 0.5}, range([0 | Ys])};
        histogram ->
            Xs = [X || {X, _} <- Points],
            Half = half(Xs),
            {{hd(Xs) - Half, lists:last(Xs) + Half}, range([0 | Ys])};
        _ -> {range([X || {X, _} <- Points]), range(Ys)}
    end.

half([X, Next | _]) -> (Next - X) / 2;
half([X]) -> max(abs(X), 1.0) / 2.

%% @doc The least and the largest number, as floats that differ.
range([]) -> {0.0, 1.0};
range(Numbers) ->
    case {float(lists:min(Numbers)), float(lists:max(Numbers))} of
        {Low, High} when High - Low > abs(High) * 1.0e-12 -> {Low, High};
        {Low, _} when abs(Low) > 1.0e300 -> {Low / 2, Low * 1.5};
        {Low, _} -> {Low - max(abs(Low), 1.0) / 2, Low + max(abs(Low), 1.0) / 2}
    end.

shapes(line, Points, I, Place) -> [{polyline, [Place(P) || P <- Part], I} || Part <- parts(Points)];
shapes(scatter, Points, I, Place) -> [{dot, Place(P), I} || P <- Points, P =/= gap];
shapes(Kind, Points, I, Place) ->
    Half = case Kind of bar -> 0.4; histogram -> 0.48 * 2 * half([X || {X, _} <- Points]) end,
    [box(Place({X - Half, Y}), Place({X + Half, 0.0}), I) || {X, Y} <- Points].

box({X0, Y0}, {X1, Y1}, I) -> {box, {X0, min(Y0, Y1)}, {X1, max(Y0, Y1)}, I}.

%% A line ends where a point is missing.
parts(Points) ->
    case lists:splitwith(fun(P) -> P =/= gap end, lists:dropwhile(fun(P) -> P =:= gap end, Points)) of
        {[], _} -> [];
        {Part, Rest} -> [Part | parts(Rest)]
    end.

axes(Kind, {XLow, XHigh}, {YLow, YHigh}, Labels, Place) ->
    {Left, Bottom} = Place({XLow, YLow}),
    {Right, _} = Place({XHigh, YLow}),
    {_, Top} = Place({XLow, YHigh}),
    [{polyline, [{Left, Top}, {Left, Bottom}, {Right, Bottom}], grid}] ++
        lists:append([begin
                          {_, Y} = Place({XLow, N}),
                          [{polyline, [{Left - 4, Y}, {Left, Y}], grid}, {label, {Left - 8, Y + 4}, right, Text}]
                      end || {N, Text} <- ticks(YLow, YHigh, 5)]) ++
        lists:append([begin
                          {X, _} = Place({N, YLow}),
                          [{polyline, [{X, Bottom}, {X, Bottom + 4}], grid}, {label, {X, Bottom + 18}, middle, Text}]
                      end || {N, Text} <- x_ticks(Kind, XLow, XHigh, Labels)]).

%% Of many bars some have their label.
x_ticks(bar, _, _, Labels) ->
    Each = (length(Labels) + 11) div 12,
    [Tick || {I, _} = Tick <- lists:enumerate(0, Labels), I rem Each =:= 0];
x_ticks(_, Low, High, _) -> ticks(Low, High, 6).

%% @doc Some round numbers in a range, each with its text.
-spec ticks(float(), float(), pos_integer()) -> [{float(), string()}].
ticks(Low, High, Count) ->
    Rough = (High - Low) / Count,
    Power = math:pow(10, math:floor(math:log10(Rough))),
    Step = Power * hd([F || F <- [1, 2, 5, 10], F * Power >= Rough * 0.999]),
    First = ceil(Low / Step - 1.0e-9),
    Last = floor(High / Step + 1.0e-9),
    [{I * Step, number(I * Step, Step)} || I <- lists:seq(First, Last)].

%% @doc A number with as many digits as numbers of that distance need.
-spec number(number(), float()) -> string().
number(N, Step) when abs(N) >= 1.0e6; Step < 1.0e-4 -> short(io_lib:format("~.2e", [float(N)]));
number(N, Step) -> float_to_list(float(N) + 0.0, [{decimals, max(0, ceil(-math:log10(Step) - 1.0e-9))}]).

%% 1.00e+6 is 1e6.
short(Text) ->
    [Digits, Exponent] = string:split(lists:flatten(Text), "e"),
    string:trim(string:trim(Digits, trailing, "0"), trailing, ".") ++ "e" ++ integer_to_list(list_to_integer(Exponent)).
