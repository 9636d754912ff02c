%% The Markdown of the pages and of Elixir's documentation as HTML: headings, paragraphs, lists, tables, code, quotes, links, emphasis.
-module(markdown).
-export([html/2, anchor/1, escape/1]).

%% HTML, and {Level, Anchor, Title, Text} of each heading, for the index. Link(Target) is the address in the site.
-spec html(binary(), fun((string()) -> string())) -> {iolist(), [{pos_integer(), string(), string(), string()}]}.
html(Text, Link) ->
    put(headings, []),
    put(link, Link),
    Html = blocks(string:split(unicode:characters_to_list(Text), "\n", all)),
    {Html, lists:reverse(erase(headings))}.

blocks([]) -> [];
blocks(["```" ++ Kind | Lines]) ->
    {Code, Rest} = lists:splitwith(fun(L) -> L =/= "```" end, Lines),
    text(Code),
    ["<pre><code", [[" class=\"", Kind, "\""] || Kind =/= ""], ">", escape(lists:join("\n", Code)), "</code></pre>\n" | blocks(tail(Rest))];
blocks(["    " ++ _ | _] = Lines) ->
    {Code, Rest} = lists:splitwith(fun(L) -> L =:= "" orelse lists:prefix("    ", L) end, Lines),
    Plain = string:trim(lists:append(lists:join("\n", [lists:nthtail(min(4, length(L)), L) || L <- Code])), trailing),
    ["<pre><code>", escape(Plain), "</code></pre>\n" | blocks(Rest)];
blocks(["#" ++ _ = Line | Lines]) ->
    {Marks, Title} = lists:splitwith(fun(C) -> C =:= $# end, Line),
    [heading(length(Marks), string:trim(Title)) | blocks(Lines)];
blocks(["|" ++ _ | _] = Lines) ->
    {Rows, Rest} = lists:splitwith(fun(L) -> lists:prefix("|", L) end, Lines),
    [table(Rows) | blocks(Rest)];
blocks(["> " ++ _ | _] = Lines) ->
    {Quote, Rest} = lists:splitwith(fun(L) -> lists:prefix(">", L) end, Lines),
    ["<blockquote>", blocks([string:trim(tl(L), leading) || L <- Quote]), "</blockquote>\n" | blocks(Rest)];
blocks([Line | Lines] = All) ->
    case {string:trim(Line), item(Line)} of
        {"", _} -> blocks(Lines);
        {_, {Tag, _, _}} ->
            {Items, Rest} = items(All, Tag, []),
            ["<", Tag, ">\n", [["<li>", I, "</li>\n"] || I <- Items], "</", Tag, ">\n" | blocks(Rest)];
        _ ->
            {Html, Rest} = paragraph(All),
            ["<p>", Html, "</p>\n" | blocks(Rest)]
    end.

paragraph([Line | Lines]) ->
    {Part, Rest} = lists:splitwith(fun(L) -> not ends(L) end, Lines),
    Words = lists:append(lists:join(" ", [string:trim(L) || L <- [Line | Part]])),
    text([Words]),
    {inline(Words), Rest}.

tail([]) -> [];
tail([_ | Rest]) -> Rest.

%% Where a paragraph ends.
ends(Line) -> string:trim(Line) =:= "" orelse lists:any(fun(P) -> lists:prefix(P, Line) end, ["```", "|", "# ", "## ", "### ", "> "]) orelse item(Line) =/= none.

item(Line) ->
    case re:run(Line, "^( ?)(?:([-*])|[0-9]+\\.) +(.*)$", [unicode, {capture, all_but_first, list}]) of
        {match, [_, "", Text]} -> {"ol", Text, 3};
        {match, [_, _, Text]} -> {"ul", Text, 2};
        nomatch -> none
    end.

%% Indented lines below an item belong to the item.
items([Line | Lines], Tag, Done) ->
    case item(Line) of
        {Tag, Text, Indent} ->
            {Own, Rest} = own(Lines, Indent, []),
            {Html, Others} = paragraph([Text | Own]),
            items(Rest, Tag, [[Html, blocks(Others)] | Done]);
        _ -> {lists:reverse(Done), [Line | Lines]}
    end;
items([], _, Done) -> {lists:reverse(Done), []}.

own(["", Next | Lines], Indent, Own) ->
    case lists:prefix("  ", Next) of
        true -> own([Next | Lines], Indent, ["" | Own]);
        false -> {lists:reverse(Own), ["", Next | Lines]}
    end;
own([Line | Lines] = All, Indent, Own) ->
    case lists:prefix("  ", Line) orelse not ends(Line) of
        true -> own(Lines, Indent, [case lists:prefix("  ", Line) of true -> lists:nthtail(min(Indent, spaces(Line)), Line); false -> Line end | Own]);
        false -> {lists:reverse(Own), All}
    end;
own([], _, Own) -> {lists:reverse(Own), []}.

spaces(Line) -> length(lists:takewhile(fun(C) -> C =:= $\s end, Line)).

heading(Level, Title) ->
    Plain = plain(Title),
    Known = [A || {_, A, _, _} <- get(headings)],
    Anchor = free(anchor(Plain), Known, 0),
    put(headings, [{Level, Anchor, Plain, ""} | get(headings)]),
    N = integer_to_list(Level),
    ["<h", N, " id=\"", Anchor, "\"><a href=\"#", Anchor, "\">", inline(Title), "</a></h", N, ">\n"].

free(Anchor, Known, N) ->
    Name = case N of 0 -> Anchor; _ -> Anchor ++ "-" ++ integer_to_list(N) end,
    case lists:member(Name, Known) of true -> free(Anchor, Known, N + 1); false -> Name end.

%% The anchor that the usual services make of a heading.
anchor(Title) ->
    Kept = re:replace(string:lowercase(Title), "[^\\p{L}\\p{N} _-]", "", [global, unicode, ucp, {return, list}]),
    [case C of $\s -> $-; _ -> C end || C <- Kept].

%% Text for the search, below the last heading.
text(Lines) ->
    case get(headings) of
        [{Level, Anchor, Title, Text} | Others] -> put(headings, [{Level, Anchor, Title, Text ++ [$\s | plain(lists:append(lists:join(" ", Lines)))]} | Others]);
        [] -> ok
    end.

plain(Text) -> re:replace(re:replace(Text, "\\[([^]]*)\\]\\([^)]*\\)", "\\1", [global, unicode, {return, list}]), "[`*]", "", [global, unicode, {return, list}]).

table([Head, _ | Rows]) ->
    text(Rows),
    ["<table><thead><tr>", [["<th>", inline(C), "</th>"] || C <- cells(Head)], "</tr></thead><tbody>\n",
     [["<tr>", [["<td>", inline(C), "</td>"] || C <- cells(Row)], "</tr>\n"] || Row <- Rows], "</tbody></table>\n"];
table(Rows) -> [["<p>", inline(Row), "</p>\n"] || Row <- Rows].

%% A bar inside of code is written with a backslash.
cells(Row) -> [string:trim(C) || C <- cut(string:trim(string:trim(Row), both, "|"), [])].

cut("\\|" ++ Rest, Cell) -> cut(Rest, [$| | Cell]);
cut("|" ++ Rest, Cell) -> [lists:reverse(Cell) | cut(Rest, [])];
cut([C | Rest], Cell) -> cut(Rest, [C | Cell]);
cut([], Cell) -> [lists:reverse(Cell)].

%% ---- inside of a paragraph

inline([]) -> [];
inline("`" ++ Rest) ->
    case string:split(Rest, "`") of
        [Code, After] -> ["<code>", escape(Code), "</code>" | inline(After)];
        _ -> ["`" | inline(Rest)]
    end;
inline("**" ++ Rest) -> marked("**", "strong", Rest);
inline("*" ++ [C | _] = [_ | Rest]) when C =/= $\s -> marked("*", "em", Rest);
inline("![" ++ Rest) ->
    case re:run(Rest, "^([^]]*)\\]\\(([^)]*)\\)(.*)$", [unicode, dotall, {capture, all_but_first, list}]) of
        {match, [Alt, Target, After]} -> ["<img src=\"", escape((get(link))(Target)), "\" alt=\"", escape(Alt), "\">" | inline(After)];
        nomatch -> ["![" | inline(Rest)]
    end;
inline("[" ++ Rest) ->
    case re:run(Rest, "^((?:[^]`]|`[^`]*`)*)\\]\\(([^)]*)\\)(.*)$", [unicode, dotall, {capture, all_but_first, list}]) of
        {match, [Title, Target, After]} -> ["<a href=\"", escape((get(link))(Target)), "\">", inline(Title), "</a>" | inline(After)];
        nomatch -> ["[" | inline(Rest)]
    end;
inline([C | Rest]) -> [escape([C]) | inline(Rest)].

marked(Mark, Tag, Rest) ->
    case string:split(Rest, Mark) of
        [Text, After] when Text =/= "" -> ["<", Tag, ">", inline(Text), "</", Tag, ">" | inline(After)];
        _ -> [Mark | inline(Rest)]
    end.

escape(Text) -> [case C of $< -> "&lt;"; $> -> "&gt;"; $& -> "&amp;"; $" -> "&quot;"; _ -> C end || C <- lists:flatten(Text)].
