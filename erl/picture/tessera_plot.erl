%% @doc Pictures of numbers: lines, bars, points, histograms and images, as text for a terminal, as PNG and as SVG.
%%
%% ```
%% 1> Plot = tessera_plot:bar([3, 1, 2], #{labels => ["one", "two", "three"]}).
%% 2> io:put_chars(tessera_plot:text(Plot, #{width => 24})).
%%   one ████████████████ 3
%%   two █████▍ 1
%% three ██████████▋ 2
%% '''
%%
%% Numbers are a tensor of rank 1 or a list. A tensor of rank 2, or a list of lists, is several series. Numbers that are not finite are left out.
%% {@link show/1} prints a plot in the shell, {@link save/2} writes a file.
-module(tessera_plot).
-export([line/1, line/2, bar/1, bar/2, scatter/2, scatter/3, histogram/1, histogram/2, image/1, image/2]).
-export([text/1, text/2, svg/1, svg/2, png/1, png/2, show/1, save/2, save/3]).
-export_type([plot/0, numbers/0, plot_options/0, bar_options/0, line_options/0, histogram_options/0, size/0, text_options/0]).

-type numbers() :: tessera:tensor() | [number() | atom() | numbers()].
%% Made by `line/2' and the others.
-type plot() :: tessera_plot_scene:plot().
-type plot_options() :: #{title => unicode:chardata()}.
%% `x' are the places of the numbers along the axis, by default 0, 1, 2, ...
-type line_options() :: #{title => unicode:chardata(), x => numbers() | undefined}.
%% `labels' are the names of the bars.
-type bar_options() :: #{title => unicode:chardata(), labels => [unicode:chardata()] | undefined}.
-type histogram_options() :: #{title => unicode:chardata(), bins => pos_integer()}.
%% In pixels.
-type size() :: #{width => pos_integer(), height => pos_integer()}.
%% In characters. `colours' sets whether escape sequences colour the text.
-type text_options() :: tessera_plot_text:options().

-define(MOST_BINS, 1000).
%% Larger numbers are drawn as this one, so that differences are finite.
-define(LARGEST, 1.0e300).

%% ---- plots

%% @equiv line(Ys, #{})
-spec line(numbers()) -> plot().
line(Ys) -> line(Ys, #{}).

%% @doc Lines through numbers.
-spec line(numbers(), line_options()) -> plot().
line(Ys, Options) ->
    #{x := X} = All = options(line, Options, #{x => undefined}),
    Series = series(line, Ys),
    Xs = case X of
             undefined -> lists:seq(0, lists:max([0 | [length(One) || One <- Series]]) - 1);
             _ -> one(line, X)
         end,
    made(line, All, [joined(line, Xs, One) || One <- Series]).

%% @equiv scatter(Xs, Ys, #{})
-spec scatter(numbers(), numbers()) -> plot().
scatter(Xs, Ys) -> scatter(Xs, Ys, #{}).

%% @doc Points.
-spec scatter(numbers(), numbers(), plot_options()) -> plot().
scatter(Xs, Ys, Options) ->
    All = options(scatter, Options, #{}),
    made(scatter, All, [joined(scatter, one(scatter, Xs), One) || One <- series(scatter, Ys)]).

%% @equiv bar(Values, #{})
-spec bar(numbers()) -> plot().
bar(Values) -> bar(Values, #{}).

%% @doc A bar for each number.
-spec bar(numbers(), bar_options()) -> plot().
bar(Values, Options) ->
    #{labels := Labels} = All = options(bar, Options, #{labels => undefined}),
    Numbers = one(bar, Values),
    Names = case Labels of
                undefined -> [integer_to_list(I) || I <- lists:seq(0, length(Numbers) - 1)];
                _ when is_list(Labels), length(Labels) =:= length(Numbers) -> Labels;
                _ -> tessera_picture:fail("bar: ~b labels are needed, got ~ts", [length(Numbers), tessera_error:show(Labels)])
            end,
    Plot = made(bar, All, [joined(bar, lists:seq(0, length(Numbers) - 1), Numbers)]),
    Plot#{labels := [characters(bar, Name) || Name <- Names]}.

%% @equiv histogram(Values, #{})
-spec histogram(numbers()) -> plot().
histogram(Values) -> histogram(Values, #{}).

%% @doc How many numbers are in each of some ranges of equal width.
-spec histogram(numbers(), histogram_options()) -> plot().
histogram(Values, Options) ->
    #{bins := Bins} = All = options(histogram, Options, #{bins => 10}),
    is_integer(Bins) andalso Bins >= 1 andalso Bins =< ?MOST_BINS orelse
        tessera_picture:fail("histogram: bins is ~ts, expected a number from 1 to ~b", [tessera_error:show(Bins), ?MOST_BINS]),
    Numbers = [N || N <- one(histogram, Values), N =/= gap],
    Numbers =/= [] orelse tessera_picture:fail("histogram: there are no finite numbers", []),
    {Low, High} = tessera_plot_scene:range(Numbers),
    Width = (High - Low) / Bins,
    Counts = lists:foldl(fun(N, Sums) -> maps:update_with(min(Bins - 1, trunc((N - Low) / Width)), fun(Sum) -> Sum + 1 end, 1, Sums) end, #{}, Numbers),
    Plot = made(histogram, All, [[{Low + (I + 0.5) * Width, maps:get(I, Counts, 0)} || I <- lists:seq(0, Bins - 1)]]),
    Plot#{labels := [tessera_plot_scene:number(Low + I * Width, Width) || I <- lists:seq(0, Bins)]}.

%% @equiv image(Pixels, #{})
-spec image(tessera:tensor()) -> plot().
image(Pixels) -> image(Pixels, #{}).

%% @doc An image: a tensor of rows and columns, which is shown in grey from its least to its largest number; or of rows, columns and
%% three colours, floats from 0 to 1 or integers from 0 to 255.
-spec image(tessera:tensor(), plot_options()) -> plot().
image(Pixels, Options) ->
    All = options(image, Options, #{}),
    Shape = case tessera:is_tensor(Pixels) of
                true -> tessera:shape(Pixels);
                false -> tessera_picture:fail("image: expected a tensor, got ~ts", [tessera_error:show(Pixels)])
            end,
    Rows = case Shape of
               {H, W} when H > 0, W > 0 -> grey([[finite(image, N) || N <- Row] || Row <- tessera:to_list(Pixels)]);
               {H, W, 3} when H > 0, W > 0 ->
                   Scale = case tessera_type:is_float_type(tessera:type(Pixels)) of true -> 255; false -> 1 end,
                   [[colour([finite(image, N) || N <- Pixel], Scale) || Pixel <- Row] || Row <- tessera:to_list(Pixels)];
               _ -> tessera_picture:fail("image: the shape is ~ts, expected {rows, columns} or {rows, columns, 3}", [tessera_error:show(Shape)])
           end,
    (made(image, All, []))#{pixels := Rows}.

grey(Rows) ->
    {Low, High} = tessera_plot_scene:range([N || Row <- Rows, N <- Row, N =/= gap]),
    [[case N of gap -> {0, 0, 0}; _ -> G = byte(255 * (N - Low) / (High - Low)), {G, G, G} end || N <- Row] || Row <- Rows].

colour(Pixel, Scale) -> list_to_tuple([case N of gap -> 0; _ -> byte(N * Scale) end || N <- Pixel]).

byte(N) -> max(0, min(255, round(N))).

made(Kind, #{title := Title}, Series) ->
    Kind =:= image orelse lists:any(fun(Points) -> lists:any(fun(P) -> P =/= gap end, Points) end, Series) orelse
        tessera_picture:fail("~s: there are no finite numbers", [Kind]),
    #{kind => Kind, title => characters(Kind, Title), series => Series, labels => [], pixels => []}.

joined(_, Xs, Ys) when length(Xs) =:= length(Ys) ->
    [case X =:= gap orelse Y =:= gap of true -> gap; false -> {X, Y} end || {X, Y} <- lists:zip(Xs, Ys)];
joined(Name, Xs, Ys) -> tessera_picture:fail("~s: ~b places for ~b numbers", [Name, length(Xs), length(Ys)]).

%% ---- numbers

series(Name, Numbers) ->
    case listed(Name, Numbers) of
        [First | _] = Lists when is_list(First) -> [plain(Name, One) || One <- Lists];
        One -> [plain(Name, One)]
    end.

one(Name, Numbers) -> plain(Name, listed(Name, Numbers)).

listed(Name, Numbers) ->
    case tessera:is_tensor(Numbers) of
        true -> tessera:to_list(Numbers);
        false when is_list(Numbers) -> [case is_number(N) orelse is_atom(N) of true -> N; false -> listed(Name, N) end || N <- Numbers];
        false -> tessera_picture:fail("~s: expected a tensor or a list of numbers, got ~ts", [Name, tessera_error:show(Numbers)])
    end.

plain(Name, Numbers) when is_list(Numbers) -> [finite(Name, N) || N <- Numbers];
plain(Name, Number) -> [finite(Name, Number)].

finite(_, N) when is_number(N), abs(N) =< ?LARGEST -> N;
finite(_, N) when is_number(N) -> case N > 0 of true -> ?LARGEST; false -> -?LARGEST end;
finite(_, N) when N =:= nan; N =:= infinity; N =:= neg_infinity -> gap;
finite(Name, N) -> tessera_picture:fail("~s: expected numbers, got ~ts", [Name, tessera_error:show(N)]).

%% ---- what becomes of them

%% @equiv text(Plot, #{})
-spec text(plot()) -> unicode:chardata().
text(Plot) -> text(Plot, #{}).

%% @doc Lines of text, with a newline after each: dots of Braille for lines and points, blocks for bars and images.
-spec text(plot(), text_options()) -> unicode:chardata().
text(Plot, Options) ->
    #{width := Width, height := Height} = All =
        tessera_picture:options(text, Options, #{width => 72, height => 18, colours => false}),
    ok = within(text, width, Width, 16, 1000),
    ok = within(text, height, Height, 4, 1000),
    is_boolean(map_get(colours, All)) orelse tessera_picture:fail("text: colours is ~ts, expected true or false", [tessera_error:show(map_get(colours, All))]),
    tessera_plot_text:draw(checked(text, Plot), All).

%% @equiv svg(Plot, #{})
-spec svg(plot()) -> binary().
svg(Plot) -> svg(Plot, #{}).

%% @doc An SVG picture.
-spec svg(plot(), size()) -> binary().
svg(Plot, Options) ->
    {Width, Height} = size(svg, Plot, Options),
    tessera_plot_svg:draw(tessera_plot_scene:new(Plot, Width, Height), Width, Height).

%% @equiv png(Plot, #{})
-spec png(plot()) -> binary().
png(Plot) -> png(Plot, #{}).

%% @doc A PNG picture. Texts are in capital letters.
-spec png(plot(), size()) -> binary().
png(Plot, Options) ->
    {Width, Height} = size(png, Plot, Options),
    tessera_plot_png:encode(tessera_plot_raster:draw(tessera_plot_scene:new(Plot, Width, Height), Width, Height)).

%% @doc Prints the plot: as a picture where the terminal says that it shows pictures, else as text. The variable `TERM' says so for
%% kitty (`xterm-kitty') and for terminals with sixel (`foot', `mlterm', names with `sixel'), `TESSERA_PICTURES' for others: `kitty', `sixel' or `text'.
-spec show(plot()) -> ok.
show(Plot) ->
    _ = checked(show, Plot),
    case tessera_plot_terminal:kind() of
        text -> io:put_chars(text(Plot));
        {text, Width} -> io:put_chars(text(Plot, #{width => max(16, min(100, Width - 1)), colours => true}));
        Kind ->
            Raster = tessera_plot_raster:draw(tessera_plot_scene:new(Plot, 640, 360), 640, 360),
            io:put_chars(tessera_plot_terminal:encode(Kind, Raster))
    end.

%% @equiv save(Path, Plot, #{})
-spec save(file:name_all(), plot()) -> ok.
save(Path, Plot) -> save(Path, Plot, #{}).

%% @doc Writes a file: `.png', `.svg', or text.
-spec save(file:name_all(), plot(), size()) -> ok.
save(Path, Plot, Options) ->
    Bytes = case string:lowercase(unicode:characters_to_list(filename:extension(Path))) of
                ".png" -> png(Plot, Options);
                ".svg" -> svg(Plot, Options);
                ".txt" -> unicode:characters_to_binary(text(Plot, Options));
                Other -> tessera_picture:fail("save: the ending is ~ts, expected .png, .svg or .txt", [tessera_error:show(Other)])
            end,
    case file:write_file(Path, Bytes) of
        ok -> ok;
        {error, Reason} -> tessera_picture:fail("save: ~ts: ~ts", [Path, file:format_error(Reason)])
    end.

%% ---- checks

size(Name, Plot, Options) ->
    _ = checked(Name, Plot),
    #{width := Width, height := Height} = tessera_picture:options(Name, Options, #{width => 640, height => 400}),
    ok = within(Name, width, Width, 100, 8192),
    ok = within(Name, height, Height, 80, 8192),
    {Width, Height}.

within(_, _, N, Low, High) when is_integer(N), N >= Low, N =< High -> ok;
within(Name, Option, N, Low, High) -> tessera_picture:fail("~s: ~s is ~ts, expected a number from ~b to ~b", [Name, Option, tessera_error:show(N), Low, High]).

checked(_, #{kind := _, series := _, labels := _, pixels := _, title := _} = Plot) -> Plot;
checked(Name, Other) -> tessera_picture:fail("~s: expected a plot, got ~ts", [Name, tessera_error:show(Other)]).

options(Name, Options, Defaults) -> tessera_picture:options(Name, Options, Defaults#{title => ""}).

characters(Name, Text) ->
    case try unicode:characters_to_list(Text) catch error:badarg -> none end of
        Characters when is_list(Characters) -> [C || C <- Characters, C >= $\s];
        _ -> tessera_picture:fail("~s: ~ts is no text", [Name, tessera_error:show(Text)])
    end.
