%% @private
%% Shapes as pixels: a width, a height, and three bytes for each pixel. Letters are of 3 by 5 dots, each of 2 by 2 pixels.
-module(tessera_plot_raster).
-export([draw/3, colour/1]).
-export_type([raster/0]).

-type raster() :: {Width :: pos_integer(), Height :: pos_integer(), Pixels :: binary()}.
%% One word for each pixel, written in place.
-record(canvas, {width :: pos_integer(), height :: pos_integer(), cells :: atomics:atomics_ref()}).

-define(DOT, 2).

-spec draw([tessera_plot_scene:shape()], pos_integer(), pos_integer()) -> raster().
draw(Shapes, Width, Height) ->
    Canvas = #canvas{width = Width, height = Height, cells = atomics:new(Width * Height, [{signed, false}])},
    lists:foreach(fun(Shape) -> shape(Shape, Canvas) end, Shapes),
    %% A cell has the colour's complement, so that what nothing was drawn on is white.
    {Width, Height, << <<(16#ffffff - atomics:get(Canvas#canvas.cells, I)):24>> || I <- lists:seq(1, Width * Height) >>}.

-spec colour(non_neg_integer() | grid) -> {byte(), byte(), byte()}.
colour(grid) -> {102, 102, 102};
colour(Series) -> element(Series rem 6 + 1, {{31, 101, 163}, {209, 91, 33}, {45, 133, 71}, {128, 76, 156}, {166, 124, 0}, {0, 138, 138}}).

shape({polyline, Points, Series}, Canvas) -> polyline(Points, colour(Series), case Series of grid -> 1; _ -> 2 end, Canvas);
shape({box, {X0, Y0}, {X1, Y1}, Series}, Canvas) -> box(round(X0), round(Y0), round(X1) - 1, round(Y1) - 1, colour(Series), Canvas);
shape({dot, {X, Y}, Series}, Canvas) ->
    [put(round(X) + I, round(Y) + J, colour(Series), Canvas) || I <- lists:seq(-3, 3), J <- lists:seq(-3, 3), I * I + J * J =< 10],
    ok;
shape({label, {X, Y}, Anchor, Text}, Canvas) ->
    Width = length(Text) * 4 * ?DOT - ?DOT,
    Left = round(X) - case Anchor of left -> 0; middle -> Width div 2; right -> Width end,
    letters(string:uppercase(Text), Left, round(Y) - 5 * ?DOT + 1, Canvas);
shape({pixels, {X0, Y0}, {X1, Y1}, Rows}, Canvas) ->
    {W, H} = {length(hd(Rows)), length(Rows)},
    Table = list_to_tuple([list_to_tuple(Row) || Row <- Rows]),
    [put(X, Y, element(nearest(X, X0, X1, W), element(nearest(Y, Y0, Y1, H), Table)), Canvas)
     || Y <- lists:seq(round(Y0), round(Y1) - 1), X <- lists:seq(round(X0), round(X1) - 1)],
    ok.

nearest(At, From, To, Count) -> max(1, min(Count, trunc((At + 0.5 - From) * Count / (To - From)) + 1)).

polyline([Point], Colour, Width, Canvas) -> segment(Point, Point, Colour, Width, Canvas);
polyline([From, To], Colour, Width, Canvas) -> segment(From, To, Colour, Width, Canvas);
polyline([From, To | Points], Colour, Width, Canvas) ->
    segment(From, To, Colour, Width, Canvas),
    polyline([To | Points], Colour, Width, Canvas).

%% A square of the line's width at each step of the longer axis.
segment({X0, Y0}, {X1, Y1}, Colour, Width, Canvas) ->
    Steps = max(1, ceil(max(abs(X1 - X0), abs(Y1 - Y0)))),
    lists:foreach(fun(I) ->
                          X = round(X0 + (X1 - X0) * I / Steps),
                          Y = round(Y0 + (Y1 - Y0) * I / Steps),
                          box(X, Y, X + Width - 1, Y + Width - 1, Colour, Canvas)
                  end, lists:seq(0, Steps)).

box(X0, Y0, X1, Y1, Colour, Canvas) ->
    [put(X, Y, Colour, Canvas) || Y <- lists:seq(Y0, Y1), X <- lists:seq(X0, X1)],
    ok.

put(X, Y, {R, G, B}, #canvas{width = Width, height = Height, cells = Cells}) when X >= 0, Y >= 0, X < Width, Y < Height ->
    atomics:put(Cells, Y * Width + X + 1, 16#ffffff - ((R bsl 16) bor (G bsl 8) bor B));
put(_, _, _, _) -> ok.

letters(Text, Left, Top, Canvas) ->
    [box(X, Y, X + ?DOT - 1, Y + ?DOT - 1, {51, 51, 51}, Canvas)
     || {I, Letter} <- lists:enumerate(0, Text), {Row, Bits} <- lists:enumerate(0, glyph(Letter)), Column <- [0, 1, 2],
        Bits band (4 bsr Column) =/= 0, X <- [Left + (4 * I + Column) * ?DOT], Y <- [Top + Row * ?DOT]],
    ok.

%% Five rows of three dots, an octal digit for each row.
glyph(Letter) -> [D - $0 || D <- maps:get(Letter, glyphs(), "75557")].

glyphs() ->
    #{$\s => "00000", $0 => "75557", $1 => "26227", $2 => "71747", $3 => "71717", $4 => "55711", $5 => "74717", $6 => "74757", $7 => "71122", $8 => "75757",
      $9 => "75717", $A => "75755", $B => "65656", $C => "74447", $D => "65556", $E => "74647", $F => "74644", $G => "74557", $H => "55755", $I => "72227",
      $J => "11157", $K => "55655", $L => "44447", $M => "57755", $N => "65555", $O => "75557", $P => "75744", $Q => "75573", $R => "75665", $S => "74717",
      $T => "72222", $U => "55557", $V => "55552", $W => "55775", $X => "55255", $Y => "55222", $Z => "71247", $. => "00002", $- => "00700", $+ => "02720",
      $, => "00024", $: => "02020", $/ => "11244", $( => "24442", $) => "21112", $% => "51245", $= => "07070", $_ => "00007", $* => "05250", $< => "12421",
      $> => "42124", $! => "22202", $? => "71202", $' => "22000", $" => "55000", $# => "57575"}.
