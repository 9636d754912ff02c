%% @private Comma-separated numbers (RFC 4180), by rows.
-module(tessera_io_csv).
-export([decode/2]).
-export_type([options/0]).

-type options() :: #{separator => char(), header => boolean(), columns => [binary() | string()], type => tessera:type(),
                     missing => number() | nan | error}.

%% The names of the columns, and the numbers, a row for each line. Without a header there are names by number: "0", "1".
-spec decode(binary(), options()) -> {[binary()], tessera:tensor()}.
decode(Text, Options) ->
    Separator = maps:get(separator, Options, $,),
    {Names, Lines, From} = header(bom(Text), Separator, maps:get(header, Options, true)),
    Chosen = chosen(Names, maps:get(columns, Options, all)),
    Rows = rows(Lines, From, #{separator => Separator, chosen => Chosen, missing => maps:get(missing, Options, error)}, []),
    Width = case {Chosen, Rows} of
                {all, [First | _]} -> length(First);
                {all, []} when is_list(Names) -> length(Names);
                {all, []} -> 0;
                {Places, _} -> length(Places)
            end,
    Shown = case {Names, Chosen} of
                {none, _} -> [integer_to_binary(I) || I <- lists:seq(0, Width - 1)];
                {_, all} -> Names;
                {_, Wanted} -> [lists:nth(P, Names) || P <- Wanted]
            end,
    Type = maps:get(type, Options, f32),
    {Shown, case Rows of
                [] -> tessera:full({0, Width}, 0, Type);
                _ -> tessera:tensor(Rows, Type)
            end}.

bom(<<16#ef, 16#bb, 16#bf, Text/binary>>) -> Text;
bom(Text) -> Text.

header(Text, _, false) -> {none, Text, 1};
header(Text, Separator, true) ->
    case line(Text, Separator, 1) of
        {Cells, Rest, Next} -> {Cells, Rest, Next};
        none -> {[], <<>>, 1}
    end.

chosen(_, all) -> all;
chosen(none, _) -> tessera_io_file:fail(invalid_argument, "columns are chosen by name, and the option header is false", []);
chosen(Names, Columns) ->
    Numbered = lists:zip(Names, lists:seq(1, length(Names))),
    [case lists:keyfind(unicode:characters_to_binary(Column), 1, Numbered) of
         {_, Place} -> Place;
         false -> tessera_io_file:fail(invalid_argument, "it has no column ~ts; it has ~ts", [Column, lists:join(", ", lists:sublist(Names, 20))])
     end || Column <- Columns].

rows(Text, Line, #{separator := Separator} = How, Rows) ->
    case line(Text, Separator, Line) of
        none -> lists:reverse(Rows);
        {[<<>>], Rest, Next} -> rows(Rest, Next, How, Rows); % an empty line
        {Cells, Rest, Next} ->
            Row = row(Cells, Line, How),
            case Rows of
                [Before | _] when length(Before) =/= length(Row) ->
                    bad(Line, "it has ~b cells, and the one before has ~b", [length(Row), length(Before)]);
                _ -> rows(Rest, Next, How, [Row | Rows])
            end
    end.

row(Cells, Line, #{chosen := all} = How) -> [number(Cell, Line, How) || Cell <- Cells];
row(Cells, Line, #{chosen := Places} = How) ->
    Tuple = list_to_tuple(Cells),
    [case Place =< tuple_size(Tuple) of
         true -> number(element(Place, Tuple), Line, How);
         false -> bad(Line, "it has ~b cells, and column ~b is wanted", [tuple_size(Tuple), Place])
     end || Place <- Places].

number(Cell, Line, How) ->
    try binary_to_integer(Cell)
    catch error:badarg ->
            try binary_to_float(Cell)
            catch error:badarg -> other(string:lowercase(string:trim(Cell)), Line, How)
            end
    end.

other(<<>>, Line, #{missing := error}) -> bad(Line, "it has an empty cell; #{missing => nan} gives it a number", []);
other(<<>>, _, #{missing := Number}) -> Number;
other(<<"nan">>, _, _) -> nan;
other(<<"+", Text/binary>>, Line, How) -> other(Text, Line, How);
other(Text, _, _) when Text =:= <<"inf">>; Text =:= <<"infinity">> -> infinity;
other(Text, _, _) when Text =:= <<"-inf">>; Text =:= <<"-infinity">> -> neg_infinity;
other(<<"true">>, _, _) -> 1;
other(<<"false">>, _, _) -> 0;
other(Text, Line, _) ->
    case re:run(Text, "^(-?)([0-9]*)(?:\\.([0-9]*))?(e[+-]?[0-9]{1,4})?$", [{capture, all_but_first, binary}]) of
        {match, [Sign, Whole]} when Whole =/= <<>> -> binary_to_integer(<<Sign/binary, Whole/binary>>);
        {match, [Sign, Whole | [_ | _] = More]} -> decimal(Sign, Whole, More, Text, Line);
        _ -> bad(Line, "~ts is no number", [shown(Text)])
    end.

%% Erlang's floats have digits on both sides of the point.
decimal(Sign, Whole, More, Text, Line) ->
    {Fraction, Exponent} = case More of
                               [F] -> {F, <<>>};
                               [F, E] -> {F, E}
                           end,
    Digits = fun(<<>>) -> <<"0">>; (D) -> D end,
    (Whole =:= <<>> andalso Fraction =:= <<>>) andalso bad(Line, "~ts is no number", [shown(Text)]),
    try binary_to_float(<<Sign/binary, (Digits(Whole))/binary, ".", (Digits(Fraction))/binary, Exponent/binary>>)
    catch error:badarg -> bad(Line, "~ts is beyond the range of numbers", [shown(Text)])
    end.

shown(Text) when byte_size(Text) > 40 -> [binary:part(Text, 0, 40), "..."];
shown(Text) -> Text.

-spec bad(pos_integer(), io:format(), [term()]) -> no_return().
bad(Line, Format, Values) -> tessera_io_file:fail(invalid_argument, "line ~b: " ++ Format, [Line | Values]).

%% ---- lines

%% The cells of the next line, the rest, and its number; a quoted cell may have several lines.
line(<<>>, _, _) -> none;
line(Text, Separator, Line) ->
    Length = line_length(Text),
    <<Whole:Length/binary, Rest/binary>> = Text,
    case binary:match(Whole, <<$">>) of
        nomatch -> {binary:split(without_return(Whole), <<Separator>>, [global]), after_line(Rest), Line + 1};
        _ -> quoted(Text, Separator, Line, Line, [])
    end.

line_length(Text) ->
    case binary:match(Text, <<"\n">>) of
        {Place, _} -> Place;
        nomatch -> byte_size(Text)
    end.

without_return(Line) when Line =/= <<>> ->
    case binary:last(Line) of
        $\r -> binary:part(Line, 0, byte_size(Line) - 1);
        _ -> Line
    end;
without_return(Line) -> Line.

after_line(<<"\n", Rest/binary>>) -> Rest;
after_line(Rest) -> Rest.

quoted(<<$", Text/binary>>, Separator, First, Line, Cells) ->
    {Cell, Rest} = inside(Text, First, []),
    Now = Line + length(binary:matches(Cell, <<"\n">>)),
    next(Cell, Rest, Separator, First, Now, Cells);
quoted(Text, Separator, First, Line, Cells) ->
    {Cell, Rest} = case binary:match(Text, [<<Separator>>, <<"\n">>]) of
                       {Place, _} -> {binary:part(Text, 0, Place), binary:part(Text, Place, byte_size(Text) - Place)};
                       nomatch -> {Text, <<>>}
                   end,
    next(without_return(Cell), Rest, Separator, First, Line, Cells).

next(Cell, <<Separator, Rest/binary>>, Separator, First, Line, Cells) -> quoted(Rest, Separator, First, Line, [Cell | Cells]);
next(Cell, <<"\r\n", Rest/binary>>, _, _, Line, Cells) -> {lists:reverse(Cells, [Cell]), Rest, Line + 1};
next(Cell, <<"\n", Rest/binary>>, _, _, Line, Cells) -> {lists:reverse(Cells, [Cell]), Rest, Line + 1};
next(Cell, <<>>, _, _, Line, Cells) -> {lists:reverse(Cells, [Cell]), <<>>, Line + 1};
next(_, _, _, First, _, _) -> bad(First, "a quoted cell goes on after its quote", []).

inside(Text, First, Parts) ->
    case binary:split(Text, <<$">>) of
        [Part, <<$", Rest/binary>>] -> inside(Rest, First, [<<Part/binary, $">> | Parts]);
        [Part, Rest] -> {iolist_to_binary(lists:reverse(Parts, [Part])), Rest};
        [_] -> bad(First, "a quoted cell has no end", [])
    end.
