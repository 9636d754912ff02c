%% @private
%% Environment: `clients' (as docs/devices.md and docs/elixir.md say), `host_devices', `cache_dir' (a path, or `none'), `disk_cache_bytes',
%% `max_programs', `max_key_bytes', `memory_limit' (bytes), `trace_warnings' (`true' or `false').
-module(tessera_app).
-behaviour(application).
-export([start/2, stop/1]).

%% start/2 returns an invalid setting, or a library that cannot be loaded, as the reason of its error.
start(_Type, _Args) ->
    try configure() of
        ok -> tessera_sup:start_link()
    catch error:{Code, Message} when is_atom(Code), is_binary(Message) -> {error, {Code, Message}}
    end.

stop(_State) -> ok.

configure() ->
    _ = tessera_nif:cpu_count(), % so that an application without its library does not start
    Numbers = maps:from_list([{Key, number(Key)} || Key <- [disk_cache_bytes, max_programs, max_key_bytes, memory_limit]]),
    ok = configure_jit(cache_dir(application:get_env(tessera, cache_dir, undefined)), Numbers),
    ok = tessera_client:configure(),
    ok = trace_warnings(application:get_env(tessera, trace_warnings, true)),
    case Numbers of
        #{memory_limit := undefined} -> ok;
        #{memory_limit := Bytes} -> tessera:set_memory_limit(Bytes)
    end.

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

%% Read whenever a function is traced.
trace_warnings(Given) when is_boolean(Given) -> ok;
trace_warnings(Other) -> expected(trace_warnings, "true or false", Other).

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
