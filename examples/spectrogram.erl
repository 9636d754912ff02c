%% A spectrogram, drawn in the terminal: a whistle whose pitch rises (a chirp), and a bell that is struck twice. The signal is
%% cut into windows that overlap. Each window is multiplied by a bell-shaped curve (Hann's) and transformed by rfft.
%%
%%   make example E=spectrogram
-module(spectrogram).
-export([main/0, signal/0, spectrum/1]).

-define(RATE, 8000).   % samples in a second
-define(SECONDS, 3).
-define(WINDOW, 512).  % samples
-define(STEP, 320).
-define(ROWS, 32).     % of the picture, from 0 Hz to the highest frequency
-define(SHADES, " .:-=+*#%@").
-define(FLOOR, -60).   % decibels below the loudest place: the lightest shade

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    Signal = signal(),
    Spectrum = tessera:jit(fun spectrum/1),
    {Micros, Levels} = timer:tc(fun() -> Spectrum(Signal) end),
    {Again, _} = timer:tc(fun() -> Spectrum(Signal) end),
    {Windows, Frequencies} = tessera:shape(Levels),
    io:format("~b windows of ~b samples, ~b frequencies up to ~b Hz: first call ~.1f ms, then ~.2f ms~n~n",
              [Windows, ?WINDOW, Frequencies, ?RATE div 2, Micros / 1000, Again / 1000]),
    draw(tessera:to_list(picture(Levels))).

%% ---- the signal

signal() ->
    Time = tessera:divide(tessera:iota({?RATE * ?SECONDS}, f32), ?RATE),
    tessera:add(chirp(Time), tessera:add(bell(Time, 0.6), bell(Time, 1.8))).

%% From 300 Hz to 3300 Hz: the phase is the integral of the frequency.
chirp(Time) ->
    Slope = (3300 - 300) / ?SECONDS,
    Turns = tessera:multiply(Time, tessera:add(300, tessera:multiply(Time, Slope / 2))),
    tessera:sin(tessera:multiply(Turns, 2 * math:pi())).

%% Partials that are no multiples of one another, like a bell's; the higher ones fade sooner.
bell(Time, Struck) ->
    Since = tessera:subtract(Time, Struck),
    Partials = [partial(Since, 620 * Ratio, Loudness) || {Ratio, Loudness} <- [{1.0, 1.0}, {2.0, 0.7}, {2.4, 0.6}, {3.0, 0.4}, {4.5, 0.3}]],
    Sum = lists:foldl(fun tessera:add/2, hd(Partials), tl(Partials)),
    tessera:select(tessera:greater_equal(Since, 0), Sum, 0).

partial(Since, Frequency, Loudness) ->
    Fading = tessera:exp(tessera:multiply(tessera:max(Since, 0), -Frequency / 300)),
    tessera:multiply(tessera:multiply(Fading, Loudness), tessera:sin(tessera:multiply(Since, 2 * math:pi() * Frequency))).

%% ---- its spectrum

%% Decibels below the loudest place, of each window and frequency.
spectrum(Signal) ->
    {Samples} = tessera:shape(Signal),
    Count = (Samples - ?WINDOW) div ?STEP + 1,
    Starts = tessera:multiply(tessera:reshape(tessera:iota({Count}, s64), {Count, 1}), ?STEP),
    Windows = tessera:take(Signal, tessera:add(Starts, tessera:iota({?WINDOW}, s64))),
    Sizes = tessera:abs(tessera:rfft(tessera:multiply(Windows, hann()))),
    Loudness = tessera:divide(tessera:max(Sizes, 1.0e-6), tessera:reduce_max(Sizes)),
    tessera:multiply(tessera:log(Loudness), 20 / math:log(10)).

hann() ->
    Angle = tessera:multiply(tessera:iota({?WINDOW}, f32), 2 * math:pi() / ?WINDOW),
    tessera:multiply(tessera:subtract(1, tessera:cos(Angle)), 0.5).

%% ---- the picture

%% A row for each band of frequencies, the highest first: the loudest of each band, as a shade.
picture(Levels) ->
    {Windows, Frequencies} = tessera:shape(Levels),
    Band = (Frequencies - 1) div ?ROWS,
    Bands = tessera:reshape(tessera:slice(Levels, [0, 0], [Windows, Band * ?ROWS]), {Windows, ?ROWS, Band}),
    Loudest = tessera:transpose(tessera:reduce_max(Bands, #{axes => [2]}), [1, 0]),
    Shade = tessera:multiply(tessera:subtract(1, tessera:divide(Loudest, ?FLOOR)), length(?SHADES)),
    Last = length(?SHADES) - 1,
    tessera:as_type(tessera:reverse(tessera:min(tessera:max(Shade, 0), Last), [0]), s32).

draw(Rows) ->
    Height = ?RATE div 2 / ?ROWS,
    [io:format("~5w Hz |~s~n", [round((?ROWS - I) * Height), [lists:nth(Shade + 1, ?SHADES) || Shade <- Row]])
     || {I, Row} <- lists:zip(lists:seq(0, ?ROWS - 1), Rows)],
    io:format("         +~s~n          0 s~*s~n", [lists:duplicate(length(hd(Rows)), $-), length(hd(Rows)) - 3, io_lib:format("~b s", [?SECONDS])]).
