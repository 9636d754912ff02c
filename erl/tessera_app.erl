%% @private
%% Environment: `cache_dir' (a path, or `none'), `disk_cache_bytes',
%% `max_kernels', `max_programs', `memory_limit' (bytes),
%% `small_pages' (`auto', `never' or `always').
-module(tessera_app).
-behaviour(application).
-export([start/2, stop/1]).

%% A setting that makes no sense, or a library that does not load, is the reason why the application does not start.
start(_Type, _Args) ->
    try configure() of
        ok ->
            _ = spawn(fun load_modules/0),
            tessera_sup:start_link()
    catch error:{Code, Message} when is_atom(Code), is_binary(Message) -> {error, {Code, Message}}
    end.

stop(_State) -> ok.

%% Where the VM loads modules when they are first called, 0.5 to 2 ms each: so that the first program does not wait for
%% a dozen of them. Those for Nx only where there is Nx.
load_modules() ->
    {ok, Modules} = application:get_key(tessera, modules),
    Nx = lists:keymember(nx, 1, application:loaded_applications()),
    code:ensure_modules_loaded([Module || Module <- Modules, Nx orelse not is_for_nx(Module)]).

is_for_nx(Module) ->
    case atom_to_list(Module) of
        "Elixir." ++ _ -> true;
        "tessera_nx_" ++ _ -> true;
        _ -> false
    end.

configure() ->
    _ = tessera_nif:cpu_count(), % so that an application without its library does not start
    Numbers = maps:from_list([{Key, number(Key)} || Key <- [disk_cache_bytes, max_kernels, max_programs, max_key_bytes,
                                                            memory_limit]]),
    ok = configure_jit(cache_dir(application:get_env(tessera, cache_dir, undefined)), Numbers),
    ok = small_pages(application:get_env(tessera, small_pages, auto)),
    case Numbers of
        #{memory_limit := undefined} -> ok;
        #{memory_limit := Bytes} -> tessera:set_memory_limit(Bytes)
    end.

%% What nobody has set stays as it is.
configure_jit(undefined, #{disk_cache_bytes := undefined, max_kernels := undefined}) -> ok;
configure_jit(Dir, #{disk_cache_bytes := Bytes, max_kernels := Kernels}) ->
    tessera_nif:jit_configure(Dir, or_default(Bytes), or_default(Kernels)).

or_default(undefined) -> 0;
or_default(Number) -> Number.

number(Key) ->
    case application:get_env(tessera, Key, undefined) of
        undefined -> undefined;
        Number when is_integer(Number), Number >= 0, Number < 1 bsl 63 -> Number;
        Other -> expected(Key, "a number that is not negative", Other)
    end.

small_pages(When) -> tessera_trace:check(small_pages, [When], tessera_nif:set_small_pages(When)).

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
