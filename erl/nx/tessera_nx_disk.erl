%% @private The option `cache: path': a function's program in a file of the
%% caller's choice. The file says for what arguments and options it is, not for
%% which function: a path belongs to one function. It is read as Erlang's
%% external format and may hold functions, so it is trusted like code.
-module(tessera_nx_disk).
-export([fetch/4]).

-define(MAGIC, "TESSERA").
-define(VERSION, 1).

%% The value from the file, if the file was written for the same keys; else the value that Make makes,
%% which is written to the file. Values must be terms that other nodes understand.
-spec fetch(file:filename_all(), #{atom() => term()}, fun((string(), [term()]) -> ok),
            fun(() -> Value)) -> {found | made, Value}.
fetch(Path, Keys, Debug, Make) ->
    case read(Path, Keys, Debug) of
        {ok, Value} -> {found, Value};
        none ->
            Value = Make(),
            tessera_digest:weigh({Keys, Value}) =/= infinity orelse too_large(Path),
            write(Path, term_to_binary({Keys, Value})),
            {made, Value}
    end.

read(Path, Keys, Debug) ->
    case file:read_file(Path) of
        {ok, <<?MAGIC, ?VERSION, Body/binary>>} -> decode(Path, Body, Keys, Debug);
        {ok, <<?MAGIC, _/binary>>} -> discard(Path, "it is for another Tessera version");
        {ok, _} -> discard(Path, "it is none");
        {error, _} ->
            Debug("Tessera disk cache not found at ~ts", [inspect(Path)]),
            none
    end.

decode(Path, Body, Keys, Debug) ->
    try binary_to_term(Body) of
        {Keys, Value} ->
            Debug("Tessera disk cache found at ~ts", [inspect(Path)]),
            {ok, Value};
        {Others, _} when is_map(Others) -> mismatch(Keys, Others)
    catch error:_ -> discard(Path, "it is damaged")
    end.

discard(Path, Why) -> warn("Discarding Tessera disk cache at ~ts because ~s", [inspect(Path), Why]).

mismatch(Expected, Found) ->
    Different = [Key || {Key, Value} <- maps:to_list(Found), maps:find(Key, Expected) =/= {ok, Value}],
    warn("Tessera disk cache does not match configuration.\n\nExpected: ~ts\n\nFound: ~ts\n",
         [inspect(maps:with(Different, Expected)), inspect(maps:with(Different, Found))]).

warn(Format, Values) ->
    logger:warning("~ts", [unicode:characters_to_binary(io_lib:format(Format, Values))]),
    none.

-spec too_large(file:filename_all()) -> no_return().
too_large(Path) ->
    tessera_nx_error:runtime("could not write the Tessera disk cache ~ts: the callbacks or containers of the function "
                             "take more than 16 MB there, where nothing in them is shared", [inspect(Path)]).

%% Under another name first, so that no one reads half a file.
write(Path, Body) ->
    Temporary = unicode:characters_to_list([Path, ".", integer_to_list(erlang:unique_integer([positive])), ".",
                                            os:getpid()]),
    Done = maybe_all([fun() -> filelib:ensure_dir(Path) end,
                      fun() -> file:write_file(Temporary, [<<?MAGIC, ?VERSION>>, Body]) end,
                      fun() -> file:rename(Temporary, Path) end]),
    _ = Done =:= ok orelse file:delete(Temporary),
    Done =:= ok orelse
        tessera_nx_error:runtime("could not write the Tessera disk cache ~ts: ~ts",
                                 [inspect(Path), file:format_error(element(2, Done))]).

maybe_all([]) -> ok;
maybe_all([F | Rest]) ->
    case F() of
        ok -> maybe_all(Rest);
        Error -> Error
    end.

inspect(Term) -> tessera_nx_error:inspect(Term).
