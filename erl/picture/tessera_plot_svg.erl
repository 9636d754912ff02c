%% @private
%% Shapes as SVG.
-module(tessera_plot_svg).
-export([draw/3]).

-spec draw([tessera_plot_scene:shape()], pos_integer(), pos_integer()) -> binary().
draw(Shapes, Width, Height) ->
    unicode:characters_to_binary(
      [io_lib:format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"~b\" height=\"~b\" viewBox=\"0 0 ~b ~b\" font-family=\"sans-serif\" font-size=\"12\">~n"
                     "<rect width=\"~b\" height=\"~b\" fill=\"#ffffff\"/>~n", [Width, Height, Width, Height, Width, Height]),
       [shape(Shape) || Shape <- Shapes], "</svg>\n"]).

shape({polyline, Points, Series}) ->
    io_lib:format("<polyline points=\"~s\" fill=\"none\" stroke=\"~s\" stroke-width=\"~s\"/>~n",
                  [lists:join(" ", [io_lib:format("~.2f,~.2f", [X, Y]) || {X, Y} <- Points]), colour(Series),
                   case Series of grid -> "1"; _ -> "2" end]);
shape({box, {X0, Y0}, {X1, Y1}, Series}) ->
    io_lib:format("<rect x=\"~.2f\" y=\"~.2f\" width=\"~.2f\" height=\"~.2f\" fill=\"~s\"/>~n", [X0, Y0, X1 - X0, Y1 - Y0, colour(Series)]);
shape({dot, {X, Y}, Series}) -> io_lib:format("<circle cx=\"~.2f\" cy=\"~.2f\" r=\"3\" fill=\"~s\"/>~n", [X, Y, colour(Series)]);
shape({label, {X, Y}, Anchor, Text}) ->
    io_lib:format("<text x=\"~.2f\" y=\"~.2f\" text-anchor=\"~s\" fill=\"#333333\">~ts</text>~n",
                  [X, Y, case Anchor of left -> "start"; middle -> "middle"; right -> "end" end, tessera_xml:escape(Text)]);
shape({pixels, {X0, Y0}, {X1, Y1}, Rows}) ->
    Png = tessera_plot_png:encode({length(hd(Rows)), length(Rows), << <<R, G, B>> || Row <- Rows, {R, G, B} <- Row >>}),
    io_lib:format("<image x=\"~.2f\" y=\"~.2f\" width=\"~.2f\" height=\"~.2f\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,~s\"/>~n",
                  [X0, Y0, X1 - X0, Y1 - Y0, base64:encode(Png)]).

colour(Series) ->
    {R, G, B} = tessera_plot_raster:colour(Series),
    io_lib:format("#~2.16.0b~2.16.0b~2.16.0b", [R, G, B]).
