#!/usr/bin/env escript
%% Makes the site of the documentation: the pages, and the reference of the public modules from their chunks "Docs", Erlang's and Elixir's,
%% with a search. Says which links lead nowhere, and then ends with status 1.
%%
%%   mk/site.escript FOLDER MODULE.beam...
-mode(compile).
-include_lib("kernel/include/eep48.hrl").

main([Folder | Beams]) ->
    Here = filename:dirname(escript:script_name()),
    {ok, markdown, Code} = compile:file(filename:join([Here, "site", "markdown.erl"]), [binary]),
    {module, markdown} = code:load_binary(markdown, "markdown", Code),
    ok = filelib:ensure_dir(filename:join(Folder, "x")),
    Pages = [page(File) || File <- ["README.md", "CONTRIBUTING.md", "CHANGELOG.md" | filelib:wildcard("docs/*.md")] ++ ["bench/RESULTS.md", "bench/HISTORY.md"]],
    Modules = [Module || Beam <- Beams, Module <- [module(Beam)], Module =/= none],
    Erlang = [M || #{language := erlang} = M <- Modules],
    Elixir = [M || #{language := elixir} = M <- Modules],
    Elixir =/= [] orelse io:format("  no modules of Elixir: there is no Elixir here, or it is too old~n"),
    All = Pages ++ Erlang ++ Elixir,
    Start = named(["index", "tutorial-erlang", "tutorial-elixir", "tutorial-cluster", "tour"], Pages),
    Menu = menu([{"Start", Start}, {"Pages", Pages -- Start},
                 {"Erlang", Erlang}, {"Elixir", Elixir}]),
    [ok = write(Folder, Name ++ ".html", layout(Page, Menu)) || #{name := Name} = Page <- All],
    ok = write(Folder, "index.js", ["const pages = [\n", lists:join(",\n", lists:append([entries(Page) || Page <- All])), "\n];\n"]),
    [{ok, _} = file:copy(filename:join([Here, "site", File]), filename:join(Folder, File)) || File <- ["search.js", "style.css"]],
    case lists:append([broken(Page, All) || Page <- All]) of
        [] -> io:format("  ~ts/index.html: ~b pages, ~b modules~n", [Folder, length(Pages), length(Modules)]);
        Broken ->
            [io:format("~ts: the link ~ts leads nowhere~n", [Source, Target]) || {Source, Target} <- Broken],
            halt(1)
    end.

named(Names, Pages) -> [Page || Name <- Names, #{name := Own} = Page <- Pages, Own =:= Name].

write(Folder, Name, Text) -> file:write_file(filename:join(Folder, Name), unicode:characters_to_binary(Text)).

%% ---- pages

page(File) ->
    {ok, Text} = file:read_file(File),
    put(targets, []),
    {Html, Headings} = markdown:html(Text, fun(Target) -> address(File, Target) end),
    [{_, _, Title, _} | _] = Headings,
    #{name => name(File), title => Title, source => File, html => Html, anchors => [A || {_, A, _, _} <- Headings],
      index => [{T, A, X} || {_, A, T, X} <- Headings], targets => erase(targets)}.

name("README.md") -> "index";
name("bench/RESULTS.md") -> "results";
name(File) -> string:lowercase(filename:basename(File, ".md")).

%% The address of a link's target: a page of the site, or as it is. Other files of the repository have no page.
address(_, "http" ++ _ = Target) -> Target;
address(File, Target) ->
    {Path, Anchor} = case string:split(Target, "#") of [P, A] -> {P, "#" ++ A}; [P] -> {P, ""} end,
    Full = case Path of "" -> File; _ -> flat(filename:join(filename:dirname(File), Path)) end,
    put(targets, [{Full, string:trim(Anchor, leading, "#"), Target} | get(targets)]),
    case filename:extension(Full) of
        ".md" -> name(Full) ++ ".html" ++ Anchor;
        _ -> "#"
    end.

%% docs/../README.md is README.md.
flat(Path) -> filename:join(lists:reverse(lists:foldl(fun("..", [_ | Up]) -> Up; (".", Up) -> Up; (Part, Up) -> [Part | Up] end, [], filename:split(Path)))).

broken(#{source := Source, targets := Targets}, All) ->
    Anchors = maps:from_list([{Own, A} || #{source := Own, anchors := A} <- All]),
    [{Source, Target} || {File, Anchor, Target} <- Targets, not leads(File, Anchor, Anchors)].

leads(File, "", Anchors) -> is_map_key(File, Anchors) orelse filelib:is_file(File);
leads(File, Anchor, Anchors) -> lists:member(Anchor, maps:get(File, Anchors, [])).

%% ---- modules

module(Beam) ->
    case beam_lib:chunks(Beam, ["Docs"], [allow_missing_chunks]) of
        {ok, {_, [{"Docs", missing_chunk}]}} -> none;
        {ok, {Module, [{"Docs", Chunk}]}} -> module(Module, binary_to_term(Chunk))
    end.

module(Module, #docs_v1{beam_language = Language, module_doc = #{<<"en">> := Doc}, docs = Docs}) ->
    Name = string:replace(atom_to_list(Module), "Elixir.", ""),
    Own = lists:flatten(Name),
    put(targets, []),
    put(module, Own),
    Entries = lists:sort([Entry || Entry <- Docs, is_public(Entry)]),
    Types = [html(Language, Entry) || {{type, _, _}, _, _, _, _} = Entry <- Entries],
    Functions = [html(Language, Entry) || {{Kind, _, _}, _, _, _, _} = Entry <- Entries, Kind =/= type],
    {Intro, Plain} = doc(Language, Doc),
    #{name => Own, title => Own, language => Language, source => Own,
      html => ["<h1>", Own, "</h1>\n", Intro, [["<h2 id=\"types\">Types</h2>\n", [H || {H, _} <- Types]] || Types =/= []],
               "<h2 id=\"functions\">Functions</h2>\n", [H || {H, _} <- Functions]],
      anchors => ["types", "functions" | [A || {_, {_, A, _}} <- Types ++ Functions]],
      index => [{Own, "", Plain} | [I || {_, I} <- Types ++ Functions]], targets => erase(targets)};
module(_, _) -> none.

is_public({{Kind, _, _}, _, _, Doc, _}) -> lists:member(Kind, [function, macro, callback, type, opaque]) andalso is_map(Doc).

html(Language, {{Kind, Name, Arity}, _, Signature, Doc, Meta}) ->
    Title = lists:flatten(io_lib:format("~ts/~b", [Name, Arity])),
    Anchor = case Kind of type -> "type-" ++ atom_to_list(Name); _ -> Title end,
    {Html, Plain} = case Doc of
                        #{<<"en">> := Text} -> doc(Language, Text);
                        #{} -> {"", ""}
                    end,
    Heading = case {Language, Signature} of {elixir, [_ | _]} -> lists:join(" ", Signature); _ -> Title end,
    Spec = [["<pre class=\"spec\">", markdown:escape(unicode:characters_to_list(spec(Form))), "</pre>\n"] || Form <- maps:get(signature, Meta, []), Language =:= erlang],
    {["<section><h3 id=\"", Anchor, "\"><a href=\"#", Anchor, "\">", markdown:escape(unicode:characters_to_list(Heading)), "</a></h3>\n", Spec, Html, "</section>\n"],
     {get(module) ++ ":" ++ Title, Anchor, Plain}}.

spec(Form) ->
    try erl_pp:attribute(Form, [{linewidth, 110}, {encoding, utf8}])
    catch _:_ -> ""
    end.

doc(elixir, Text) ->
    {Html, _} = markdown:html(Text, fun(Target) -> elixir_link(Target) end),
    {Html, unicode:characters_to_list(Text)};
doc(erlang, Terms) -> {terms(Terms), lists:flatten(plain(Terms))}.

elixir_link("http" ++ _ = Target) -> Target;
elixir_link(Target) ->
    put(targets, [{Target, "", Target} | get(targets)]),
    Target.

%% EDoc's terms.
terms(Text) when is_binary(Text) -> markdown:escape(unicode:characters_to_list(Text));
terms({a, Attributes, Content}) ->
    case reference(unicode:characters_to_list(proplists:get_value(href, Attributes, <<>>)), proplists:get_value(rel, Attributes)) of
        none -> terms(Content);
        Address -> ["<a href=\"", markdown:escape(Address), "\">", terms(Content), "</a>"]
    end;
terms({pre, _, Content}) -> ["<pre><code>", terms(Content), "</code></pre>\n"];
terms({Tag, _, Content}) -> ["<", atom_to_list(Tag), ">", terms(Content), "</", atom_to_list(Tag), ">"];
terms(List) when is_list(List) -> [terms(Term) || Term <- List].

plain(Text) when is_binary(Text) -> unicode:characters_to_list(Text);
plain({_, _, Content}) -> [plain(Content), " "];
plain(List) -> [plain(Term) || Term <- List].

%% "tessera:tessera_mesh#shard/3" with the kind of what it names; modules of Erlang have no page here.
reference("http" ++ _ = Address, _) -> Address;
reference(Target, Rel) ->
    Kind = filename:basename(case Rel of undefined -> ""; _ -> unicode:characters_to_list(Rel) end),
    {Module, Anchor} = case string:split(lists:last(string:split(Target, ":")), "#") of
                           ["", A] -> {get(module), A};
                           [M, A] -> {M, A};
                           [M] -> {M, ""}
                       end,
    Name = case {Kind, Anchor} of {_, ""} -> ""; {"seetype", "type-" ++ _} -> Anchor; {"seetype", _} -> "type-" ++ hd(string:split(Anchor, "/")); _ -> Anchor end,
    case lists:prefix("tessera", Module) of
        true ->
            put(targets, [{Module, Name, Target} | get(targets)]),
            Module ++ ".html" ++ case Name of "" -> ""; _ -> "#" ++ Name end;
        false -> none
    end.

%% ---- layout

menu(Groups) ->
    fun(Current) ->
            [["<h4>", Title, "</h4><ul>", [["<li", [" class=\"here\"" || Name =:= Current], "><a href=\"", Name, ".html\">", short(Name, Page), "</a></li>\n"]
                                           || #{name := Name} = Page <- Pages], "</ul>\n"] || {Title, Pages} <- Groups, Pages =/= []]
    end.

short("index", _) -> "Tessera";
short(Name, #{language := _}) -> Name;
short(_, #{title := Title}) -> markdown:escape(Title).

layout(#{name := Name, title := Title, html := Html}, Menu) ->
    ["<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>", markdown:escape(Title),
     "</title><link rel=\"stylesheet\" href=\"style.css\"><script src=\"index.js\" defer></script><script src=\"search.js\" defer></script></head>\n<body>\n"
     "<nav><a class=\"name\" href=\"index.html\">Tessera</a><input id=\"query\" type=\"search\" placeholder=\"Search\" aria-label=\"Search\" autocomplete=\"off\">\n", Menu(Name),
     "</nav>\n<main><div id=\"found\" hidden></div>\n<article>\n", Html, "</article></main>\n</body></html>\n"].

%% ---- search

entries(#{name := Name, title := Page, index := Index}) ->
    [["[", lists:join(",", [json(Title), json(case Title of Page -> ""; _ -> Page end), json(Name ++ ".html" ++ [["#", Anchor] || Anchor =/= ""]),
                            json(string:slice(string:lowercase(Text), 0, 3000))]), "]"]
     || {Title, Anchor, Text} <- Index].

json(Text) -> [$", [case C of $" -> "\\\""; $\\ -> "\\\\"; $< -> "\\u003c"; _ when C < 32 -> " "; _ -> C end || C <- lists:flatten(Text)], $"].
