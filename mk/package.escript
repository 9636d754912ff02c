#!/usr/bin/env escript
%% Makes the package for Hex from what tessera.app.src says (files, licenses, links), with the code of Hex that is inside of
%% rebar3. `mix hex.build` and `rebar3 hex build` make the same of mix.exs and tessera.app.src, where Hex's plugins are.
%%
%%   mk/package.escript files          prints the files of the package, one a line
%%   mk/package.escript build FOLDER   writes FOLDER/tessera-VERSION.tar, and says its checksum
%%   mk/package.escript unpack TAR FOLDER
-mode(compile).

main(["files"]) -> [io:format("~ts~n", [File]) || File <- files()];
main(["build", Folder]) -> build(Folder);
main(["unpack", Tar, Folder]) -> unpack(Tar, Folder);
main(_) ->
    io:format(standard_error, "usage: mk/package.escript files | build FOLDER | unpack TAR FOLDER~n", []),
    halt(2).

properties() ->
    {ok, [{application, tessera, Properties}]} = file:consult("erl/tessera.app.src"),
    Properties.

property(Key) -> proplists:get_value(Key, properties()).

%% Of a folder every file below it. A listed file that is not there is left out by Hex as well; checksum.exs is optional.
files() ->
    Excluded = [element(2, re:compile(Pattern)) || Pattern <- property(exclude_patterns)],
    lists:usort([File || Entry <- property(files), File <- below(Entry), [] =:= [x || Re <- Excluded, re:run(File, Re) =/= nomatch]]).

below(Path) ->
    case {filelib:is_dir(Path), filelib:is_regular(Path)} of
        {true, _} -> filelib:fold_files(Path, "", true, fun(File, Files) -> [File | Files] end, []);
        {false, true} -> [Path];
        {false, false} when Path =:= "checksum.exs" ->
            io:format(standard_error, "tessera: there is no checksum.exs: this package compiles everywhere (docs/packages.md)~n", []),
            [];
        {false, false} -> fail("~ts is not there, but tessera.app.src lists it", [Path])
    end.

fail(Format, Arguments) ->
    io:format(standard_error, "tessera: " ++ Format ++ "~n", Arguments),
    halt(1).

metadata(Files) ->
    #{<<"name">> => <<"tessera">>,
      <<"app">> => <<"tessera">>,
      <<"version">> => binary(property(vsn)),
      <<"description">> => binary(property(description)),
      <<"licenses">> => [binary(License) || License <- property(licenses)],
      <<"links">> => maps:from_list([{binary(Name), binary(Link)} || {Name, Link} <- property(links)]),
      <<"build_tools">> => [binary(Tool) || Tool <- property(build_tools)],
      <<"elixir">> => <<"~> 1.14">>,
      <<"requirements">> => #{},
      <<"files">> => [binary(File) || File <- Files]}.

binary(Text) -> unicode:characters_to_binary(Text).

build(Folder) ->
    load_hex(),
    case property(links) of
        [{_, Link} | _] ->
            string:find(Link, ".invalid/") =:= nomatch orelse
                io:format(standard_error, "tessera: the link in erl/tessera.app.src is a placeholder, ~ts: do not publish this~n", [Link])
    end,
    Files = files(),
    case r3_hex_tarball:create(metadata(Files), [{File, File} || File <- Files]) of
        {ok, #{tarball := Tarball, outer_checksum := Sum}} ->
            Name = filename:join(Folder, "tessera-" ++ property(vsn) ++ ".tar"),
            ok = filelib:ensure_dir(Name),
            ok = file:write_file(Name, Tarball),
            io:format("  ~ts: ~b files, ~b bytes, SHA-256 ~ts~n",
                      [Name, length(Files), byte_size(Tarball), [io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= Sum]]);
        {error, Reason} -> fail("Hex refuses the package: ~ts", [r3_hex_tarball:format_error(Reason)])
    end.

unpack(Tar, Folder) ->
    load_hex(),
    {ok, Tarball} = file:read_file(Tar),
    case r3_hex_tarball:unpack(Tarball, Folder) of
        {ok, #{metadata := Metadata}} -> io:format("~tp.~n", [maps:without([<<"files">>], Metadata)]);
        {error, Reason} -> fail("~ts: ~ts", [Tar, r3_hex_tarball:format_error(Reason)])
    end.

%% rebar3 is an archive in a file that begins with a line for the shell.
load_hex() ->
    Found = [File || File <- [os:find_executable("rebar3"), ".tools/rebar3"], File =/= false, filelib:is_regular(File)],
    Found =/= [] orelse fail("there is no rebar3 here, which has Hex's code: ./setup puts one into .tools/", []),
    {ok, Sections} = escript:extract(hd(Found), []),
    {archive, Archive} = lists:keyfind(archive, 1, Sections),
    {ok, Beams} = zip:foldl(fun(Name, _, Bytes, Beams) ->
                                case filename:basename(Name, ".beam") of
                                    "r3_" ++ _ = Module -> [{list_to_atom(Module), Name, Bytes()} | Beams];
                                    _ -> Beams
                                end
                            end, [], {"rebar3", Archive}),
    [{module, Module} = code:load_binary(Module, Name, Bytes) || {Module, Name, Bytes} <- Beams],
    ok.
