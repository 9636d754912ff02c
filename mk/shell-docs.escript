#!/usr/bin/env escript
%% Puts the documentation of public modules into their .beam files, as the chunk "Docs" of EEP-48, which h/1,2,3 of the
%% Erlang shell and of IEx read. EDoc makes the chunk from the comments of the source.
%%
%%   mk/shell-docs.escript SOURCE.erl... EBIN...
%%
%% A folder that lacks a module is skipped, so a hook may name every folder that a build tool may use. A .beam file that
%% has the chunk is left as it is: the compiler writes a new file, without the chunk, when the source changes.
-mode(compile).

main(Args) ->
    {Sources, Folders} = lists:partition(fun(Arg) -> filename:extension(Arg) =:= ".erl" end, Args),
    Work = [{Source, Beams} || Source <- Sources, (Beams = undocumented(Source, Folders)) =/= []],
    case Work =:= [] orelse code:ensure_loaded(edoc_layout_chunks) of
        {error, _} -> io:format("tessera: no EDoc here (Debian's erlang-edoc), so h(tessera) will have no documentation~n");
        _ -> lists:foreach(fun document/1, Work)
    end.

undocumented(Source, Folders) ->
    Beams = [filename:join(Folder, filename:basename(Source, ".erl") ++ ".beam") || Folder <- Folders],
    [Beam || Beam <- Beams, filelib:is_regular(Beam), not is_documented(Beam)].

is_documented(Beam) ->
    {ok, {_, [{"Docs", Chunk}]}} = beam_lib:chunks(Beam, ["Docs"], [allow_missing_chunks]),
    Chunk =/= missing_chunk.

document({Source, Beams}) ->
    Chunk = chunk(Source),
    lists:foreach(fun(Beam) -> add(Beam, Chunk) end, Beams).

chunk(Source) ->
    Root = root(filename:dirname(Source)),
    Options = [{includes, [filename:join(Root, "include")]}, {preprocess, true}],
    {_, Doc, Entries} = edoc:get_doc(Source, edoc_lib:get_doc_env(Options), [return_entries | Options]),
    edoc:layout(Doc, [{layout, edoc_layout_chunks}, {entries, Entries}, {source, Source} | Options]).

%% The folder above, with erl/ and include/.
root(Dir) ->
    case filename:basename(Dir) of
        "erl" -> filename:dirname(Dir);
        _ -> root(filename:dirname(Dir))
    end.

%% The new file appears at once: a running VM may read it.
add(Beam, Chunk) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Beam),
    {ok, Bytes} = beam_lib:build_module(Chunks ++ [{"Docs", Chunk}]),
    ok = file:write_file(Beam ++ ".tmp", Bytes),
    ok = file:rename(Beam ++ ".tmp", Beam).
