%% @private
%% Environment: `cache_dir' (a path, or `none'), `disk_cache_bytes',
%% `max_kernels', `max_programs', `memory_limit' (bytes),
%% `small_pages' (`auto', `never' or `always').
-module(tessera_app).
-behaviour(application).
-export([start/2, stop/1]).

start(_Type, _Args) ->
    try configure() of
        ok ->
            _ = spawn(fun load_modules/0),
            tessera_sup:start_link()
    catch error:{unavailable, _} = Reason -> {error, Reason}
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
    case lists:any(fun(Key) -> application:get_env(tessera, Key) =/= undefined end,
                   [cache_dir, disk_cache_bytes, max_kernels]) of
        true ->
            ok = tessera_nif:jit_configure(cache_dir(application:get_env(tessera, cache_dir, undefined)),
                                           application:get_env(tessera, disk_cache_bytes, 0),
                                           application:get_env(tessera, max_kernels, 0));
        false -> ok
    end,
    ok = small_pages(application:get_env(tessera, small_pages, auto)),
    case application:get_env(tessera, memory_limit) of
        {ok, Bytes} -> tessera:set_memory_limit(Bytes);
        undefined -> ok
    end.

small_pages(When) -> tessera_trace:check(small_pages, [When], tessera_nif:set_small_pages(When)).

cache_dir(undefined) -> undefined;
cache_dir(none) -> <<>>;
cache_dir(Path) -> unicode:characters_to_binary(Path, unicode, file:native_name_encoding()).
