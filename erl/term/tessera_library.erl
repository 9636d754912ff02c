%% @private The path of the native library and, if it cannot be loaded, the reason and a remedy.
-module(tessera_library).
-export([path/0, explain/2]).

%% Without the ending, for erlang:load_nif/2.
path() -> filename:join(priv_dir(), "tessera_nif").

priv_dir() ->
    Ours = filename:join(filename:dirname(filename:dirname(filename:absname(code:which(?MODULE)))), "priv"),
    %% The application's directory may be another one of the same name, as in a code path without
    %% versions.
    Folders = [Dir || Dir <- [code:priv_dir(tessera)], is_list(Dir)] ++ [Ours]
        ++ [beside(Archive) || Archive <- [archive(Ours)], Archive =/= none],
    case [Dir || Dir <- Folders, filelib:is_regular(filename:join(Dir, "tessera_nif.so"))] of
        [Dir | _] -> Dir;
        [] -> Ours
    end.

%% No library can be loaded from inside an escript.
beside(Archive) -> filename:join(filename:dirname(Archive), "priv").

%% Text is the runtime system's, of load_nif or of the dynamic loader.
-spec explain(file:filename(), iodata()) -> binary().
explain(Path, Text) ->
    File = Path ++ ".so",
    Said = unicode:characters_to_list(Text),
    Why = case filelib:is_regular(File) of
              true -> reason(File, Said, [Reason || {Words, Reason} <- reasons(), says(Said, Words)]);
              false -> absent(File, archive(filename:dirname(File)))
          end,
    unicode:characters_to_binary(["Tessera's library cannot be loaded: ", Why]).

says(Text, Words) -> lists:all(fun(Word) -> string:find(Text, Word) =/= nomatch end, Words).

absent(File, none) ->
    [File, " is not there. `make` in Tessera's folder builds it"];
absent(_File, Archive) ->
    [Archive, " is an escript or archive, out of which no library can be loaded: put tessera_nif.so into ", beside(Archive)].

%% The archive file that contains Dir.
archive(Dir) ->
    case {filelib:is_regular(Dir), filename:dirname(Dir)} of
        {true, _} -> Dir;
        {false, Dir} -> none;
        {false, Above} -> archive(Above)
    end.

reason(File, Said, []) -> [File, ": ", Said];
reason(File, Said, [Reason | _]) -> [File, " ", Reason, " (", Said, ")"].

%% The texts of the reasons; the numbers are the results of load() in
%% nif_main.c.
reasons() ->
    [{["Library load-call unsuccessful (1)"],
      "is of another version of Tessera than tessera_nif.beam: build both together"},
     {["Library upgrade-call unsuccessful"],
      "is not the one that runs in this node, which stays, with its tensors and threads, until the node is restarted"},
     {["Library version", "compatible"],
      "was built for a newer Erlang/OTP than this one, which is " ++ erlang:system_info(otp_release)
      ++ ": build it with the one that runs it"},
     {["cannot open shared object file"],
      "needs a library that this machine lacks: Debian's packages are libllvm19 and libsleef3"},
     {["version `", "' not found"],
      "was built on a newer system than this one: build it here"},
     {["failed to map segment"],
      "could not be mapped: there is no address space left, or its file system is mounted noexec"}]
    ++ [{[Words], "is damaged, or was built for another kind of machine: build it here"}
        || Words <- ["invalid ELF header", "file too short", "wrong ELF class", "ELF file data encoding"]].
