%% @private
%% Environment: `clients' (as docs/devices.md and docs/elixir.md say), `host_devices', `cache_dir' (a path, or `none'), `disk_cache_bytes',
%% `max_programs', `max_key_bytes', `memory_limit' (bytes), `trace_warnings' and `metrics' (`true' or `false').
-module(tessera_app).
-behaviour(application).
-behaviour(tessera_nif).
-export([start/2, stop/1, first_use/0]).

%% What the first traced function calls, and its search.
-define(FIRST, [tessera_trace, tessera_tree, tessera_digest, tessera_jit, tessera_operand, tessera_places, tessera_remote, tessera_elementwise,
                tessera_error, tessera_source, tessera_kind, tessera_flow, tessera_flow_calls, tessera_operators]).

%% start/2 returns an invalid setting, or a library that cannot be loaded, as the reason of its error.
start(_Type, _Args) ->
    try configure() of
        ok -> loading(counting(tessera_sup:start_link()))
    catch error:{Code, Message} when is_atom(Code), is_binary(Message) -> {error, {Code, Message}}
    end.

counting({ok, _} = Started) ->
    _ = application:get_env(tessera, metrics, false) andalso tessera_metrics:start(),
    Started;
counting(Failed) -> Failed.

%% The first traced function does not wait for the modules, unless it is called at once. A module that cannot be loaded is reported when it is called.
loading({ok, _} = Started) ->
    _ = spawn_opt(fun() -> catch code:ensure_modules_loaded(?FIRST) end, [{priority, low}]),
    Started;
loading(Failed) -> Failed.

stop(_State) -> ok.

%% Starts the application, since a function of the library is called for the first time: by then the settings have to be
%% read. Where the application cannot be started, because there is no .app file or the node is stopping, the settings are
%% applied without it.
first_use() ->
    try {_ = application:load(tessera), settings(), tessera_nif:refused()} of % raises what a start would also log
        {_, _, none} -> opened_by(started());
        {_, _, Reason} -> {error, Reason}
    catch error:{Code, Message} when is_atom(Code), is_binary(Message) -> {error, {Code, Message}}
    end.

%% The module may have been loaded anew while the application was running.
opened_by(ok) -> tessera_nif:open();
opened_by(Error) -> Error.

started() ->
    try is_stopping() orelse application:ensure_all_started(tessera) of
        true -> configure();
        {ok, _} -> ok;
        {error, {tessera, {{Code, Message}, _}}} when is_atom(Code), is_binary(Message) -> {error, {Code, Message}};
        {error, {tessera, {"no such file or directory", _}}} -> configure();
        {error, Reason} ->
            Text = io_lib:format("the application tessera does not start: ~0tP", [Reason, 20]),
            {error, {unavailable, unicode:characters_to_binary(Text)}}
    catch exit:_ -> configure()
    end.

is_stopping() ->
    {Status, _} = init:get_status(),
    Status =:= stopping.

configure() ->
    {Dir, Numbers} = settings(),
    ok = opened(tessera_nif:open()),
    ok = configure_jit(Dir, Numbers),
    ok = tessera_client:configure(),
    case Numbers of
        #{memory_limit := undefined} -> ok;
        #{memory_limit := Bytes} -> tessera:set_memory_limit(Bytes)
    end.

opened(ok) -> ok;
opened({error, Reason}) -> error(Reason).

%% Checks all settings, without the library.
settings() ->
    Numbers = maps:from_list([{Key, number(Key)} || Key <- [disk_cache_bytes, max_programs, max_key_bytes, memory_limit]]),
    Dir = cache_dir(application:get_env(tessera, cache_dir, undefined)),
    ok = tessera_client:check(),
    ok = truth(trace_warnings, application:get_env(tessera, trace_warnings, true)), % read whenever a function is traced
    ok = truth(metrics, application:get_env(tessera, metrics, false)),
    {Dir, Numbers}.

%% A setting without a value is left unchanged.
configure_jit(undefined, #{disk_cache_bytes := undefined}) -> ok;
configure_jit(Dir, #{disk_cache_bytes := Bytes}) -> tessera_nif:jit_configure(Dir, or_default(Bytes)).

or_default(undefined) -> 0;
or_default(Number) -> Number.

number(Key) ->
    case application:get_env(tessera, Key, undefined) of
        undefined -> undefined;
        Number when is_integer(Number), Number >= 0, Number < 1 bsl 63 -> Number;
        Other -> expected(Key, "a number that is not negative", Other)
    end.

truth(_, Given) when is_boolean(Given) -> ok;
truth(Setting, Other) -> expected(Setting, "true or false", Other).

cache_dir(undefined) -> undefined;
cache_dir(none) -> <<>>;
cache_dir(Path) ->
    try unicode:characters_to_binary(Path, unicode, file:native_name_encoding()) of
        Name when is_binary(Name) -> Name;
        _ -> expected(cache_dir, "a path or none", Path)
    catch error:badarg -> expected(cache_dir, "a path or none", Path)
    end.

-spec expected(atom(), string(), term()) -> no_return().
expected(Key, What, Given) ->
    Text = io_lib:format("the setting ~s of the application: expected ~s, got ~tp", [Key, What, Given]),
    error({invalid_argument, unicode:characters_to_binary(Text)}).
