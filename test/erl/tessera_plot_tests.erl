%% Pictures are the recorded ones in test/pictures/ (UPDATE=1 records them again: look at them then). PNG is compared by its pixels, which
%% are decoded here, since versions of zlib differ in the bytes.
-module(tessera_plot_tests).
-include_lib("eunit/include/eunit.hrl").

plots() ->
    [{"line", tessera_plot:line([[0, 3, 1, nan, 4, 2], tessera:tensor([5, 4, 3, 2, 1, 0])], #{title => "Two <lines>", x => [0, 1, 2, 3, 4, 10]})},
     {"bar", tessera_plot:bar([3, 1.5, 0, 2], #{labels => ["one", <<"two">>, "none", "ünlaut"]})},
     {"scatter", tessera_plot:scatter(tessera:tensor([0.0, 0.5, 1.0, 1.5]), [1.0e7, -2.0e7, infinity, 0])},
     {"histogram", tessera_plot:histogram(tessera:tensor([0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 8]), #{bins => 4, title => "counts"})},
     {"image", tessera_plot:image(tessera:reshape(tessera:iota({48}, f32), {6, 8}))},
     {"colours", tessera_plot:image(tessera:tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]]))}].

recorded_test_() -> [{Name, fun() -> compare(Name, Plot) end} || {Name, Plot} <- plots()].

compare(Name, Plot) ->
    ok = recorded(Name ++ ".txt", unicode:characters_to_binary(tessera_plot:text(Plot, #{width => 60, height => 12}))),
    ok = recorded(Name ++ ".ansi", unicode:characters_to_binary(tessera_plot:text(Plot, #{width => 60, height => 12, colours => true}))),
    Small = #{width => 320, height => 200},
    %% The PNG inside of an image's SVG is compared as such.
    lists:member(Name, ["image", "colours"]) orelse recorded(Name ++ ".svg", tessera_plot:svg(Plot, Small)),
    ok = recorded(Name ++ ".png", tessera_plot:png(Plot, Small)).

recorded(Name, Bytes) ->
    File = filename:join([filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))), "..", "pictures", Name]),
    case os:getenv("UPDATE") of
        "1" -> file:write_file(File, Bytes);
        _ ->
            {ok, Expected} = file:read_file(File),
            ?assertEqual({Name, pixels(Expected)}, {Name, pixels(Bytes)}),
            ok
    end.

%% The pixels of a PNG, whose checksums are checked; other files as they are.
pixels(<<137, "PNG\r\n", 26, "\n", Chunks/binary>>) ->
    [{<<"IHDR">>, <<Width:32, Height:32, 8, 2, 0, 0, 0>>}, {<<"IDAT">>, Data}, {<<"IEND">>, <<>>}] = chunks(Chunks),
    Size = 3 * Width,
    Rows = [Row || <<0, Row:Size/binary>> <= zlib:uncompress(Data)],
    ?assertEqual(Height, length(Rows)),
    {Width, Height, Rows};
pixels(Bytes) -> Bytes.

chunks(<<>>) -> [];
chunks(<<Size:32, Type:4/binary, Data:Size/binary, Check:32, Rest/binary>>) ->
    ?assertEqual(erlang:crc32([Type, Data]), Check),
    [{Type, Data} | chunks(Rest)].

%% Pixels are where the numbers say: a bar of half the height ends in the middle.
pixels_test() ->
    {200, 100, Rows} = pixels(tessera_plot:png(tessera_plot:bar([2, 1]), #{width => 200, height => 100})),
    At = fun(X, Y) -> binary:part(lists:nth(Y + 1, Rows), 3 * X, 3) end,
    {Bar, White} = {<<31, 101, 163>>, <<255, 255, 255>>},
    %% The plot is from 64 to 184 and from 28 to 68.
    ?assertEqual([Bar, Bar, White, Bar], [At(94, 30), At(94, 66), At(154, 46), At(154, 50)]).

svg_of_image_test() ->
    Svg = tessera_plot:svg(proplists:get_value("colours", plots())),
    {match, [Png]} = re:run(Svg, "base64,([^\"]*)\"", [{capture, all_but_first, binary}]),
    ?assertEqual({2, 2, [<<255, 0, 0, 0, 255, 0>>, <<0, 0, 255, 255, 255, 255>>]}, pixels(base64:decode(Png))).

%% An SVG is XML with any texts.
xml_test() ->
    case code:ensure_loaded(xmerl_scan) of
        {module, _} ->
            Svg = tessera_plot:svg(tessera_plot:bar([1], #{labels => ["<&\">"], title => "a < b & c"})),
            {_, []} = apply(xmerl_scan, string, [unicode:characters_to_list(Svg), [{quiet, true}]]);
        {error, _} -> ok
    end.

%% ---- terminals

kitty_test() ->
    Raster = {3, 2, binary:copy(<<1, 2, 3>>, 6)},
    <<"\e_Ga=T,f=100,m=0;", Rest/binary>> = iolist_to_binary(tessera_plot_terminal:encode(kitty, Raster)),
    [Text, _] = binary:split(Rest, <<"\e\\">>),
    ?assertMatch({3, 2, _}, pixels(base64:decode(Text))),
    %% Long ones are in pieces.
    Noise = << <<(erlang:phash2(I) band 255)>> || I <- lists:seq(1, 3 * 10000) >>,
    Pieces = re:split(iolist_to_binary(tessera_plot_terminal:encode(kitty, {100, 100, Noise})), "\e_G[^;]*;|\e\\\\\n?", [trim]),
    ?assertEqual({100, 100, [binary:part(Noise, 300 * Y, 300) || Y <- lists:seq(0, 99)]}, pixels(base64:decode(iolist_to_binary(Pieces)))).

%% The picture of the sequence is the raster again, with colours of six steps.
sixel_test() ->
    Pixels = [<<255, 0, 0>>, <<255, 255, 255>>, <<0, 0, 51>>, <<255, 0, 0>>, <<0, 0, 0>>, <<255, 255, 255>>, <<102, 102, 102>>, <<255, 0, 0>>],
    Sequence = unicode:characters_to_list(iolist_to_binary(tessera_plot_terminal:encode(sixel, {1, 8, iolist_to_binary(Pixels)}))),
    {match, [Body]} = re:run(Sequence, "^\eP0;1q\"1;1;1;8(?:#[0-9]+;2;[0-9]+;[0-9]+;[0-9]+)+(#.*)\e\\\\\n$", [{capture, all_but_first, list}]),
    [First, Second, ""] = string:split(Body, "-", all),
    Colours = fun(Band, Count) ->
                      Bits = [{list_to_integer(C), D - 63} || Part <- string:split(Band, "$", all),
                                                             {match, [C, [D]]} <- [re:run(Part, "^#([0-9]+)!1(.)$", [{capture, all_but_first, list}])]],
                      [hd([C || {C, Mask} <- Bits, Mask band (1 bsl I) =/= 0]) || I <- lists:seq(0, Count - 1)]
              end,
    ?assertEqual([180, 215, 1, 180, 0, 215], Colours(First, 6)),
    ?assertEqual([86, 180], Colours(Second, 2)).

kind_test_() ->
    [?_assertEqual(Kind, tessera_plot_terminal:kind(Variable, Term, Columns))
     || {Kind, Variable, Term, Columns} <- [{text, "", "xterm-kitty", none}, {kitty, "", "xterm-kitty", {ok, 80}}, {sixel, "", "foot", {ok, 80}},
                                            {sixel, "", "yaft-sixel", {ok, 80}}, {{text, 80}, "", "xterm", {ok, 80}}, {{text, 80}, "text", "foot", {ok, 80}},
                                            {kitty, "kitty", "dumb", none}, {sixel, "sixel", "dumb", none}]].

show_test() ->
    {Printed, ok} = tessera_doc_tests:capture(fun() -> tessera_plot:show(tessera_plot:bar([1, 2])) end),
    ?assertNotEqual(nomatch, string:find(Printed, "█")).

files_test_() ->
    tessera_test:in_folder(fun(Folder) ->
                                   Plot = tessera_plot:line([1, 2]),
                                   [ok = tessera_plot:save(filename:join(Folder, Name), Plot) || Name <- ["a.png", "a.SVG", "a.txt"]],
                                   {ok, Bytes} = file:read_file(filename:join(Folder, "a.png")),
                                   ?assertMatch({640, 400, _}, pixels(Bytes)),
                                   ?assertError({invalid_argument, <<"save: the ending is ", _/binary>>}, tessera_plot:save("a.gif", Plot)),
                                   ?assertError({invalid_argument, <<"save: /", _/binary>>}, tessera_plot:save("/none/a.png", Plot))
                           end).

%% ---- refused and odd arguments

refused_test_() ->
    [{binary_to_list(Text), ?_assertError({invalid_argument, Text}, Call())}
     || {Text, Call} <- [{<<"line: expected a tensor or a list of numbers, got hello">>, fun() -> tessera_plot:line(hello) end},
                         {<<"line: there are no finite numbers">>, fun() -> tessera_plot:line([nan, infinity]) end},
                         {<<"line: there are no finite numbers">>, fun() -> tessera_plot:line([]) end},
                         {<<"line: expected numbers, got abc">>, fun() -> tessera_plot:line([1, abc]) end},
                         {<<"line: unknown options [y], expected some of [title,x]">>, fun() -> tessera_plot:line([1], #{y => 1}) end},
                         {<<"line: expected a map of options, got []">>, fun() -> tessera_plot:line([1], []) end},
                         {<<"scatter: 1 places for 2 numbers">>, fun() -> tessera_plot:scatter([1], [1, 2]) end},
                         {<<"bar: 2 labels are needed, got [\"a\"]">>, fun() -> tessera_plot:bar([1, 2], #{labels => ["a"]}) end},
                         {<<"bar: 7 is no text">>, fun() -> tessera_plot:bar([1], #{labels => [7]}) end},
                         {<<"histogram: bins is 0, expected a number from 1 to 1000">>, fun() -> tessera_plot:histogram([1], #{bins => 0}) end},
                         {<<"image: the shape is {3}, expected {rows, columns} or {rows, columns, 3}">>, fun() -> tessera_plot:image(tessera:iota({3})) end},
                         {<<"text: width is 3, expected a number from 16 to 1000">>, fun() -> tessera_plot:text(tessera_plot:line([1]), #{width => 3}) end},
                         {<<"text: colours is 1, expected true or false">>, fun() -> tessera_plot:text(tessera_plot:line([1]), #{colours => 1}) end},
                         {<<"png: height is 1000000, expected a number from 80 to 8192">>, fun() -> tessera_plot:png(tessera_plot:line([1]), #{height => 1000000}) end},
                         {<<"svg: expected a plot, got 1">>, fun() -> tessera_plot:svg(1) end}]].

%% One number, equal ones, large and small ones: all give pictures.
odd_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Numbers])),
      fun() ->
              [begin
                   true = is_binary(unicode:characters_to_binary(tessera_plot:text(Plot))),
                   true = is_binary(tessera_plot:svg(Plot)),
                   {100, 80, _} = pixels(tessera_plot:png(Plot, #{width => 100, height => 80}))
               end || Plot <- [tessera_plot:line(Numbers), tessera_plot:scatter(Numbers, Numbers), tessera_plot:bar(Numbers), tessera_plot:histogram(Numbers)]]
      end} || Numbers <- [[0], [5, 5, 5], [-1.0e-300, 1.0e-300], [1.7e308, -1.7e308], [1 bsl 900, 1], [1.0e15, 1.0e15 + 1], [-0.0, 0.0], [nan, 3], [-3, -7]]].

%% ---- progress

%% Lines of a file, by a clock of its own.
progress_test() ->
    Clock = counters:new(1, []),
    Options = #{label => "epoch", terminal => false, clock => fun() -> counters:get(Clock, 1) end},
    {Printed, ok} = tessera_doc_tests:capture(
                      fun() ->
                              Steps = fun(I, P) ->
                                              counters:add(Clock, 1, 30000),
                                              tessera_progress:step(P, ["loss ", integer_to_list(I)])
                                      end,
                              tessera_progress:done(lists:foldl(Steps, tessera_progress:new(4, Options), lists:seq(1, 4)))
                      end),
    ?assertEqual("epoch 1/4 ██████··················  25 %, 1:30 left  loss 1\n"
                 "epoch 2/4 ████████████············  50 %, 1:00 left  loss 2\n"
                 "epoch 3/4 ██████████████████······  75 %, 0:30 left  loss 3\n"
                 "epoch 4/4 ████████████████████████ 100 % in 2:00  loss 4\n", Printed).

%% On a terminal the line changes, at most ten times in a second.
terminal_test() ->
    Clock = counters:new(1, []),
    Options = #{terminal => true, clock => fun() -> counters:get(Clock, 1) end},
    {Printed, ok} = tessera_doc_tests:capture(
                      fun() ->
                              Steps = fun(_, P) -> counters:add(Clock, 1, 10), tessera_progress:step(P) end,
                              tessera_progress:done(lists:foldl(Steps, tessera_progress:new(100, Options), lists:seq(1, 100)))
                      end),
    Lines = string:split(Printed, "\r\e[K", all),
    ?assert(length(Lines) >= 10 andalso length(Lines) =< 14),
    ?assertNotEqual(nomatch, string:find(lists:last(Lines), "100/100")).

progress_text_test_() ->
    Text = fun(Total, Count, Ms) ->
                   Clock = counters:new(1, []),
                   P = tessera_progress:new(Total, #{terminal => false, clock => fun() -> counters:get(Clock, 1) end}),
                   counters:put(Clock, 1, Ms),
                   {_, Done} = tessera_doc_tests:capture(fun() -> lists:foldl(fun(_, Q) -> tessera_progress:step(Q) end, P, lists:seq(1, Count)) end),
                   unicode:characters_to_list(tessera_progress:text(Done))
           end,
    [?_assertEqual("0/3 ························   0 %", Text(3, 0, 5)),
     ?_assertEqual("1/3 ████████················  33 %, 2.0 s left", Text(3, 1, 1000)),
     ?_assertEqual("1/2 ████████████············  50 %, 2:46:40 left", Text(2, 1, 10000000)),
     ?_assertError({invalid_argument, <<"new: expected a positive number of steps, got 0">>}, tessera_progress:new(0)),
     ?_assertError({invalid_argument, <<"new: unknown options [lable]", _/binary>>}, tessera_progress:new(1, #{lable => "x"}))].
