%% @private The option `cache: path': a function's program in a file of the
%% caller's choice. A path belongs to one function: the file names its arguments and options, and the version of the
%% function's module.
%%
%% The file (c_src/base/file.h) has a header with the hash of the content's layout, its size and a checksum. Then come the
%% head and the body, each in Erlang's external format:
%%
%%     head: {Atoms, [{Module, Version}]}: the atoms in the body, and the modules of its functions and structs
%%     body: {Keys, Value}
%%
%% A file that does not fit is discarded with a line in the log, and made anew. It may hold functions, so it is trusted
%% like code: it has to belong to this user, and no other may write to it.
-module(tessera_nx_disk).
-export([fetch/5, version/1]).

%% A file names some hundred atoms. The VM has room for a million, and never forgets one.
-define(MAX_ATOMS, 20000).
%% The modules whose records are in files.
-define(WRITERS, [?MODULE, tessera_nx_compiler, tessera_nx_plan, tessera_nx_shard, tessera_nx_tensor, tessera_program]).

%% The result of Read for the value in the file, if the file was written for the same keys; else for the value of Make, which is
%% then written to the file. Values must be terms that other nodes understand.
-spec fetch(file:filename_all(), #{atom() => term()}, fun((string(), [term()]) -> ok),
            fun((Value) -> Result), fun(() -> Value)) -> Result.
fetch(Path, Keys, Debug, Read, Make) ->
    case find(Path, Keys, Debug, Read) of
        {ok, Result} ->
            ok = tell(Path, 1, 0),
            Result;
        none ->
            ok = tell(Path, 0, 1),
            Value = Make(),
            write(Path, {Keys, Value}),
            Read(Value)
    end.

tell(Path, Hits, Misses) -> tessera_events:execute([tessera, disk_cache], #{hits => Hits, misses => Misses}, #{cache => programs, path => Path}).

%% The module of a function and its version: another one may have another program.
-spec version(term()) -> {module(), term()} | none.
version(F) when is_function(F) ->
    {module, Module} = erlang:fun_info(F, module),
    {Module, tessera_digest:version(Module)};
version(_) -> none.

%% ---- reading

find(Path, Keys, Debug, Read) ->
    case tessera_nif:file_read(path(Path), layout()) of
        undefined ->
            Debug("Tessera disk cache not found at ~ts", [inspect(Path)]),
            none;
        {error, #{message := Why}} -> discard(Path, "~ts", [Why]);
        Contents -> decode(Path, Contents, Keys, Debug, Read)
    end.

decode(Path, Contents, Keys, Debug, Read) ->
    case decoded(Contents) of
        {ok, {Keys, Value}} -> read(Path, Value, Debug, Read);
        {ok, {Others, _}} when is_map(Others) -> mismatch(Keys, Others);
        {ok, _} -> discard(Path, "it is damaged", []);
        {changed, Module} -> discard(Path, "the module ~ts is another one or gone", [inspect(Module)]);
        error -> discard(Path, "it is damaged", [])
    end.

%% The library may refuse the program in it.
read(Path, Value, Debug, Read) ->
    try Read(Value) of
        Result ->
            Debug("Tessera disk cache found at ~ts", [inspect(Path)]),
            {ok, Result}
    catch error:Reason -> discard(Path, "it cannot be used: ~ts", [why(Reason)])
    end.

why(#{message := Message}) when is_binary(Message) -> Message;
why(Reason) -> inspect(Reason).

%% Only atoms of the head's list are made; then modules are loaded, so that the functions in the body are there.
decoded(<<Size:32, Head:Size/binary, Body/binary>>) ->
    case term(Head) of
        {ok, {Atoms, Modules}} when is_list(Atoms), length(Atoms) =< ?MAX_ATOMS, is_list(Modules) ->
            decoded(Atoms, Modules, Body);
        _ -> error
    end;
decoded(_) -> error.

decoded(Atoms, Modules, Body) ->
    try [binary_to_atom(Atom, utf8) || Atom <- Atoms] of
        _ -> first_changed(Modules, Body)
    catch error:_ -> error
    end.

first_changed([{Name, Version} | Modules], Body) ->
    try binary_to_existing_atom(Name, utf8) of
        Module ->
            case loaded_version(Module) of
                Version -> first_changed(Modules, Body);
                _ -> {changed, Module}
            end
    catch error:_ -> error
    end;
first_changed([], Body) -> term(Body);
first_changed(_, _) -> error.

%% Compressed terms are not written, and not read: a small one may be one of any size.
term(<<131, 80, _/binary>>) -> error;
term(Bytes) ->
    try {ok, binary_to_term(Bytes, [safe])}
    catch error:_ -> error
    end.

loaded_version(Module) ->
    _ = code:ensure_loaded(Module),
    tessera_digest:version(Module).

discard(Path, Format, Values) ->
    warn("Discarding Tessera disk cache at ~ts because " ++ Format, [inspect(Path) | Values]).

mismatch(Expected, Found) ->
    Different = [Key || {Key, Value} <- maps:to_list(Found), maps:find(Key, Expected) =/= {ok, Value}],
    warn("Tessera disk cache does not match configuration.\n\nExpected: ~ts\n\nFound: ~ts\n",
         [inspect(maps:with(Different, Expected)), inspect(maps:with(Different, Found))]).

warn(Format, Values) ->
    logger:warning("~ts", [unicode:characters_to_binary(io_lib:format(Format, Values))]),
    none.

%% ---- writing

write(Path, Body) ->
    tessera_digest:weigh(Body) =/= infinity orelse
        failed(Path, "the callbacks or containers of the function take more than 16 MB there, where nothing in them is shared", []),
    Names = names(Body, #{}),
    map_size(Names) =< ?MAX_ATOMS orelse
        failed(Path, "the callbacks or containers of the function have more than ~b atoms", [?MAX_ATOMS]),
    Head = term_to_binary({[atom_to_binary(Atom, utf8) || Atom <- maps:keys(Names)],
                           [{atom_to_binary(Module, utf8), loaded_version(Module)} || {Module, module} <- maps:to_list(Names)]}),
    Contents = iolist_to_binary([<<(byte_size(Head)):32>>, Head, term_to_binary(Body)]),
    case filelib:ensure_dir(Path) of
        ok -> written(Path, tessera_nif:file_write(path(Path), layout(), Contents));
        {error, Reason} -> failed(Path, "~ts", [file:format_error(Reason)])
    end.

written(_, ok) -> ok;
written(Path, {error, #{message := Message}}) -> failed(Path, "~ts", [Message]).

-spec failed(file:filename_all(), string(), [term()]) -> no_return().
failed(Path, Format, Values) ->
    tessera_nx_error:runtime("could not write the Tessera disk cache ~ts: " ++ Format, [inspect(Path) | Values]).

%% The atoms of a term, those that are the module of a function or struct as `module'.
names(Atom, Names) when is_atom(Atom), is_map_key(Atom, Names) -> Names;
names(Atom, Names) when is_atom(Atom) -> Names#{Atom => atom};
names([Item | Rest], Names) -> names(Rest, names(Item, Names));
names(Tuple, Names) when is_tuple(Tuple) -> names(tuple_to_list(Tuple), Names);
names(#{'__struct__' := Module} = Struct, Names) when is_atom(Module) ->
    names(maps:to_list(Struct), Names#{Module => module});
names(Map, Names) when is_map(Map) -> names(maps:to_list(Map), Names);
names(F, Names) when is_function(F) ->
    [Module, Name, Creator, Environment] = [element(2, erlang:fun_info(F, Item)) || Item <- [module, name, pid, env]],
    names([Name, Creator | Environment], Names#{Module => module});
names(Local, Names) when is_pid(Local); is_reference(Local); is_port(Local) -> names(node(Local), Names);
names(_, Names) -> Names.

%% ---- layout

%% Terms of other versions of these modules may have another form, or mean something else.
layout() -> erlang:md5([[atom_to_binary(Module, utf8), Module:module_info(md5)] || Module <- ?WRITERS]).

path(Path) when is_binary(Path) -> Path;
path(Path) -> unicode:characters_to_binary(Path).

inspect(Term) -> tessera_nx_error:inspect(Term).
