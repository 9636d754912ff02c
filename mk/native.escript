#!/usr/bin/env escript
%% The precompiled native library in place of one that is compiled here, as elixir_make and cc_precompiler do it, without these
%% packages and for rebar3 as well. mk/native.sh calls it. See docs/packages.md.
%%
%%   mk/native.escript fetch              puts the library for this machine into priv/. Status 3: compile it instead
%%   mk/native.escript checksums FOLDER   writes FOLDER/checksum.exs of the libraries in there
%%
%%   TESSERA_BUILD=1            compile
%%   TESSERA_PRECOMPILED_URL    where the library is: a folder, or a URL (http, https, file), to which its name is appended, or in
%%                              which @{artefact_filename} stands for it; default: the releases of the link in tessera.app.src
%%   ELIXIR_MAKE_CACHE_DIR      where what was downloaded is kept; default: tessera in the user's folder of caches
%%   TARGET_ARCH, TARGET_OS, TARGET_ABI   of another machine than this one, as Nerves sets them
-mode(compile).

-define(COMPILE, 3).
-define(STAMP, "priv/tessera_nif.fetched").
-define(LIBRARY, "priv/tessera_nif.so").

main(["fetch"]) ->
    try halt(fetch())
    catch throw:{failed, Text} ->
        say("~ts", [Text]),
        halt(1)
    end;
main(["checksums", Folder]) ->
    Files = lists:sort(filelib:wildcard("tessera-nif-*.tar.gz", Folder)),
    Lines = [io_lib:format("  \"~ts\" => \"sha256:~ts\",~n", [File, sha256(filename:join(Folder, File))]) || File <- Files],
    ok = file:write_file(filename:join(Folder, "checksum.exs"), ["%{\n", Lines, "}\n"]);
main(_) ->
    io:format(standard_error, "usage: mk/native.escript fetch | checksums FOLDER~n", []),
    halt(2).

say(Format, Arguments) -> io:format(standard_error, "tessera: " ++ Format ++ "~n", Arguments).

fail(Format, Arguments) -> throw({failed, io_lib:format(Format, Arguments)}).

%% ---- what is fetched

fetch() ->
    case wanted() of
        compile -> compile();
        {Name, Sum} -> fetch(Name, Sum)
    end.

%% make would take a fetched library for one that it has made.
compile() ->
    case filelib:is_regular(?STAMP) of
        true -> [_ = file:delete(File) || File <- [?LIBRARY, "priv/tessera_mpi.so", "priv/tessera_plugin", ?STAMP]];
        false -> ok
    end,
    ?COMPILE.

wanted() ->
    case {os:getenv("TESSERA_BUILD", ""), checksums()} of
        {Build, _} when Build =:= "1"; Build =:= "true" -> compile;
        {_, none} -> compile; % a checkout
        {_, Sums} -> wanted(target(), Sums)
    end.

wanted(Target, Sums) ->
    Fitting = [{Minor, Name, Sum} || {Name, Sum} <- Sums, Minor <- minor(Name, Target)],
    case lists:reverse(lists:sort(Fitting)) of
        [{_, Name, Sum} | _] -> {Name, Sum};
        [] ->
            say("no precompiled library for ~ts and version ~ts of NIFs is in checksum.exs: compiling it",
                [Target, erlang:system_info(nif_version)]),
            compile
    end.

%% A list, with the minor version of NIFs if the library is for the target and for this release of OTP.
minor(Name, Target) ->
    [Major, Newest] = version(erlang:system_info(nif_version)),
    Pattern = ["^tessera-nif-([0-9]+\\.[0-9]+)-\\Q", Target, "\\E-\\Q", application_version(), "\\E\\.tar\\.gz$"],
    case re:run(Name, Pattern, [{capture, all_but_first, list}]) of
        {match, [Version]} -> [Minor || [Of, Minor] <- [version(Version)], Of =:= Major, Minor =< Newest];
        nomatch -> []
    end.

version(Text) -> [list_to_integer(Part) || Part <- string:lexemes(Text, ".")].

%% "x86_64-pc-linux-gnu" and its kin.
target() ->
    Parts = string:lexemes(erlang:system_info(system_architecture), "-"),
    Own = [{"TARGET_ARCH", hd(Parts)}, {"TARGET_OS", "linux"}, {"TARGET_ABI", lists:last(Parts)}],
    lists:flatten(lists:join("-", [os:getenv(Name, Value) || {Name, Value} <- Own])).

checksums() ->
    case file:read_file("checksum.exs") of
        {ok, Text} ->
            {match, Pairs} = matches(Text),
            [{Name, Sum} || [Name, Sum] <- Pairs];
        {error, enoent} -> none;
        {error, Reason} -> fail("checksum.exs cannot be read: ~ts", [file:format_error(Reason)])
    end.

matches(Text) ->
    case re:run(Text, "\"([^\"]+)\" *=> *\"sha256:([0-9a-f]{64})\"", [global, {capture, all_but_first, list}]) of
        nomatch -> {match, []};
        Match -> Match
    end.

properties() ->
    {ok, [{application, tessera, Properties}]} = file:consult("erl/tessera.app.src"),
    Properties.

application_version() -> proplists:get_value(vsn, properties()).

%% ---- from where

fetch(Name, Sum) ->
    Wanted = list_to_binary([Name, " ", Sum, "\n"]),
    case {filelib:is_regular(?LIBRARY), file:read_file(?STAMP)} of
        {true, {ok, Wanted}} -> 0;
        _ ->
            File = located(Name, Sum),
            check(File, Sum),
            unpack(File),
            ok = file:write_file(?STAMP, Wanted),
            0
    end.

%% A file on this machine.
located(Name, Sum) ->
    Url = place(Name),
    case uri_string:parse(Url) of
        #{scheme := "file", path := Path} -> there(uri_string:percent_decode(Path));
        #{scheme := Scheme} when Scheme =:= "http"; Scheme =:= "https" -> cached(Name, Sum, Url);
        #{scheme := Scheme} -> fail("TESSERA_PRECOMPILED_URL: there is no ~ts:, but folders, file:, http: and https:", [Scheme]);
        _ -> there(Url)
    end.

there(Path) ->
    case filelib:is_regular(Path) of
        true -> Path;
        false -> fail("the precompiled library ~ts is not there~n~ts", [Path, remedies()])
    end.

place(Name) ->
    Place = os:getenv("TESSERA_PRECOMPILED_URL", default_place()),
    case string:find(Place, "@{artefact_filename}") of
        nomatch -> string:trim(Place, trailing, "/") ++ "/" ++ Name;
        _ -> lists:flatten(string:replace(Place, "@{artefact_filename}", Name, all))
    end.

%% As the services have it on which the sources of most packages are.
default_place() ->
    [{_, Link} | _] = proplists:get_value(links, properties()),
    Link ++ "/releases/download/v" ++ application_version().

remedies() ->
    "  TESSERA_PRECOMPILED_URL=FOLDER or =URL says where it is; TESSERA_BUILD=1 compiles it here, with what ./setup installs".

%% ---- download

cached(Name, Sum, Url) ->
    File = filename:join(cache_folder(), Name),
    case filelib:is_regular(File) andalso sha256(File) of
        Sum -> ok;
        _ ->
            say("downloading ~ts", [Url]),
            ok = filelib:ensure_dir(File),
            New = File ++ "." ++ os:getpid(),
            download(Url, New),
            check(New, Sum),
            ok = file:rename(New, File)
    end,
    File.

cache_folder() -> os:getenv("ELIXIR_MAKE_CACHE_DIR", filename:basedir(user_cache, "tessera")).

%% By the first that is here. curl and wget know proxies and certificates by themselves.
download(Url, File) ->
    Ways = [{fun() -> os:find_executable("curl") =/= false end,
             fun() -> program("curl", ["--fail", "--silent", "--show-error", "--location", "--retry", "2", "--output", File, Url]) end},
            {fun() -> os:find_executable("wget") =/= false end,
             fun() -> program("wget", ["--no-verbose", "--tries=3", "--output-document=" ++ File, Url]) end},
            {fun() -> lists:all(fun is_there/1, [inets, ssl, public_key]) end, fun() -> by_httpc(Url, File) end}],
    case [Way || {IsHere, Way} <- Ways, IsHere()] of
        [] ->
            fail("~ts cannot be downloaded: there is no curl and no wget here, and this Erlang has no inets and ssl~n~ts",
                 [Url, remedies()]);
        [Way | _] ->
            case Way() of
                ok -> ok;
                {error, Text} ->
                    _ = file:delete(File),
                    fail("~ts cannot be downloaded: ~ts~n~ts", [Url, string:trim(Text), remedies()])
            end
    end.

is_there(Application) -> is_list(code:lib_dir(Application)).

program(Name, Arguments) ->
    Port = open_port({spawn_executable, os:find_executable(Name)}, [{args, Arguments}, exit_status, stderr_to_stdout, binary]),
    case output(Port, []) of
        {0, _} -> ok;
        {Status, Text} -> {error, io_lib:format("~ts (~ts ends with ~b)", [string:trim(Text), Name, Status])}
    end.

output(Port, Read) ->
    receive
        {Port, {data, Bytes}} -> output(Port, [Read, Bytes]);
        {Port, {exit_status, Status}} -> {Status, unicode:characters_to_binary(Read)}
    end.

by_httpc(Url, File) ->
    [{ok, _} = application:ensure_all_started(Application) || Application <- [inets, ssl]],
    [proxy(Option, Name) || {Option, Name} <- [{proxy, "http_proxy"}, {https_proxy, "https_proxy"}]],
    try httpc:request(get, {Url, []}, [{autoredirect, true}, {connect_timeout, 30000} | certificates(Url)], [{body_format, binary}]) of
        {ok, {{_, 200, _}, _, Body}} -> file:write_file(File, Body);
        {ok, {{_, Status, Text}, _, _}} -> {error, io_lib:format("~b ~ts", [Status, Text])};
        {error, Reason} -> {error, io_lib:format("~tp", [Reason])}
    catch error:Reason -> {error, io_lib:format("~tp", [Reason])}
    end.

certificates("https:" ++ _) ->
    [{ssl, [{verify, verify_peer}, {cacerts, public_key:cacerts_get()}, {depth, 4},
            {customize_hostname_check, [{match_fun, public_key:pkix_verify_hostname_match_fun(https)}]}]}];
certificates(_) -> [].

proxy(Option, Name) ->
    case uri_string:parse(os:getenv(Name, os:getenv(string:uppercase(Name), ""))) of
        #{host := Host} = Parts -> httpc:set_options([{Option, {{Host, maps:get(port, Parts, 80)}, ["localhost", "127.0.0.1"]}}]);
        _ -> ok
    end.

%% ---- check and unpack

check(File, Sum) ->
    case sha256(File) of
        Sum -> ok;
        Other -> fail("~ts has SHA-256 ~ts, where checksum.exs says ~ts: it was not unpacked~n~ts", [File, Other, Sum, remedies()])
    end.

%% erlang-base of Debian has no crypto.
sha256(File) ->
    case is_there(crypto) of
        true ->
            {ok, Bytes} = file:read_file(File),
            lists:flatten([io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= crypto:hash(sha256, Bytes)]);
        false ->
            os:find_executable("sha256sum") =/= false orelse fail("there is no sha256sum here, and this Erlang has no crypto", []),
            Port = open_port({spawn_executable, os:find_executable("sha256sum")}, [{args, ["--", File]}, exit_status, binary]),
            {0, Text} = output(Port, []),
            [Sum | _] = string:lexemes(unicode:characters_to_list(Text), " \\"),
            Sum
    end.

%% Beside priv/ first: what is read while it is written is whole.
unpack(File) ->
    New = "priv.new",
    _ = file:del_dir_r(New),
    ok = file:make_dir(New),
    case erl_tar:extract(File, [compressed, {cwd, New}]) of
        ok -> ok;
        {error, Reason} -> fail("~ts cannot be unpacked: ~ts", [File, erl_tar:format_error(Reason)])
    end,
    filelib:is_regular(filename:join(New, "tessera_nif.so")) orelse fail("~ts has no tessera_nif.so", [File]),
    {ok, Names} = file:list_dir(New),
    ok = filelib:ensure_dir(?LIBRARY),
    [ok = file:rename(filename:join(New, Name), filename:join("priv", Name)) || Name <- Names],
    file:del_dir(New).
