%% @private Clients and their devices, by configuration. A device is {Client, Number}; docs/devices.md describes both.
-module(tessera_client).
-include("tessera.hrl").
-export([check/0, configure/0, ensure_configured/2, open/2, is_client/1, ensure/2, host_devices/0, platforms/0, is_available/2, count/2, compiler/2, precision/2, is_precision/1, asked/2, passed/1, device/2, bind/2, to_device/3,
         by_device/1]).

-define(OPTIONS, [platform, device_count, memory_limit, threads, default_device_id, automatic_transfers]).
%% Options of a client that is opened by a call.
-define(CALL_OPTIONS, [device_count, memory_limit, platform, threads]).
%% More options of clients of plugins (tessera_plugins).
-define(PLUGIN_OPTIONS, [compile_timeout, device_type, isolated, memory_fraction, open_timeout, plugin_options, plugin_path, precision, preallocate, timeout]).
%% Options of EXLA's clients without a meaning here.
-define(IGNORED, [preallocate, memory_fraction]).
%% TS_MAX_DEVICES of c_src/device/client.h.
-define(MAX_DEVICES, 64).

%% Checks the settings of clients, without the library.
-spec check() -> ok.
check() ->
    Clients = application:get_env(tessera, clients, []),
    tessera_type:is_proper(Clients) orelse
        wrong("clients", "a list of clients with their options", Clients),
    _ = [check(Client) || Client <- Clients],
    _ = host_devices(),
    ok.

%% Clients of other platforms, and their options, may be another library's.
check({Name, Options} = Client) when is_atom(Name) ->
    tessera_type:is_proper(Options) andalso lists:all(fun is_option/1, Options) orelse
        wrong("clients", "a name with a list of options", Client),
    _ = [check(Name, Option) || is_of_host(Options), Option <- Options],
    ok;
check(Other) -> wrong("clients", "a name with a list of options", Other).

is_option({Key, _}) -> is_atom(Key);
is_option(_) -> false.

check(_, {Key, nil}) when Key =/= device_count -> ok;
check(Name, {device_count, Count}) ->
    is_integer(Count) andalso Count >= 1 andalso Count =< ?MAX_DEVICES orelse
        wrong(option(Name, device_count), io_lib:format("1 to ~b devices", [?MAX_DEVICES]), Count);
check(Name, {Key, Number}) when Key =:= memory_limit; Key =:= threads; Key =:= default_device_id ->
    is_integer(Number) andalso Number >= 0 andalso Number < 1 bsl 63 orelse
        wrong(option(Name, Key), "a number that is not negative", Number);
check(Name, {Key, Value}) ->
    lists:member(Key, ?OPTIONS ++ ?IGNORED) orelse
        wrong(option(Name, Key), io_lib:format("an option of ~0p", [?OPTIONS]), {Key, Value}).

option(Name, Key) -> io_lib:format("clients: ~ts, ~ts", [Name, Key]).

-spec wrong(iodata(), iodata(), term()) -> no_return().
wrong(Setting, What, Given) ->
    Text = io_lib:format("the setting ~ts of the application: expected ~ts, got ~0tP", [Setting, What, Given, 20]),
    error({invalid_argument, unicode:characters_to_binary(Text)}).

%% Opens the host's clients in the application's environment; others may be for another library.
-spec configure() -> ok.
configure() ->
    Hosts = [{Name, Options} || {Name, Options} <- configured(), is_of_host(Options)],
    lists:foreach(fun({Name, Options}) -> open_configured(Name, Options, 1) end, Hosts),
    lists:keymember(host, 1, Hosts) orelse open_configured(host, [], 1),
    default(application:get_env(tessera, default_client, host)).

%% The client of tensors and programs without a given device: `host', or a client of another platform. Where Nx allocates is
%% decided by Nx's own functions, also among clients of the host.
default(Name) ->
    Options = proplists:get_value(Name, configured(), []),
    case is_of_host(Options) orelse not is_known(proplists:get_value(platform, Options), Options) of
        true -> tessera_nif:default_client(host); % also where the platform is another library's
        false ->
            ok = open_configured(Name, Options, 1),
            tessera_nif:default_client(Name)
    end.

%% Where a plugin's file or device is missing, the first use of Nx names it.
is_known(Platform, Options) ->
    case tessera_plugins:is_plugin(Platform) of
        true -> tessera_plugins:is_available(Platform, Options);
        false -> not is_tuple(tessera_nif:platform_devices(Platform))
    end.

configured() ->
    case application:get_env(tessera, clients, []) of
        Clients when is_list(Clients) -> [Client || {Name, Options} = Client <- Clients, is_atom(Name), is_list(Options)];
        _ -> []
    end.

is_of_host(Options) -> lists:member(proplists:get_value(platform, Options, host), [host, nil, undefined]).

open_configured(Name, Options, Least) ->
    Keys = [platform, memory_limit, threads | options_of(proplists:get_value(platform, Options, host), ?PLUGIN_OPTIONS)],
    Given = maps:filter(fun(_, Value) -> Value =/= nil end, maps:with(Keys, proplists:to_map(Options))),
    ok = checked(open(Name, maps:merge(Given, counted(Name, Options, Least)))).

%% How many devices a plugin has is known when a client of it is open.
counted(Name, Options, Least) ->
    case tessera_plugins:is_plugin(proplists:get_value(platform, Options)) andalso proplists:get_value(device_count, Options) =:= undefined of
        true -> maps:from_list([{device_count, Least} || Least > 1]);
        false -> #{device_count => max(Least, count(Name, Options))}
    end.

options_of(Platform, Options) -> [Option || Option <- Options, tessera_plugins:is_plugin(Platform)].

checked({error, #{code := Code, message := Message}}) -> error({Code, Message});
checked(Result) -> Result.

%% The number of devices of a client with these options. Without `device_count', a client of another platform has all
%% devices of the platform.
-spec count(atom(), [{atom(), term()}]) -> pos_integer().
count(Name, Options) ->
    case proplists:get_value(device_count, Options) of
        undefined ->
            case is_of_host(Options) of
                true -> host_devices();
                false -> count_of(Name, proplists:get_value(platform, Options), Options)
            end;
        Count -> Count
    end.

count_of(Name, Platform, Options) ->
    case {tessera_nif:client_devices(Name), tessera_plugins:is_plugin(Platform)} of
        {0, true} ->
            ok = open_configured(Name, Options, 1),
            tessera_nif:client_devices(Name);
        {0, false} -> found(Name, Platform, devices_of(Platform));
        {Count, _} -> Count
    end.

found(Name, Platform, 0) -> error({unavailable, unicode:characters_to_binary(io_lib:format("client ~ts: the platform ~ts has no device here", [Name, Platform]))});
found(_, _, Count) -> Count.

devices_of(Platform) -> min(?MAX_DEVICES, length(checked(tessera_nif:platform_devices(Platform)))).

%% The platforms of the library, and those whose plugin and device are found, with the number of devices that a client of each has
%% without the option `device_count'. The platform pjrt has none by itself: a client names the plugin.
-spec platforms() -> #{host := pos_integer(), atom() => non_neg_integer()}.
platforms() ->
    Own = [{Platform, Count} || Platform <- tessera_nif:platforms() -- [host], Count <- [devices_of(Platform)], Count > 0],
    (maps:from_list(Own ++ [{Platform, tessera_plugins:devices(Platform)} || Platform <- tessera_plugins:platforms()]))#{host => host_devices()}.

%% Whether the client is open, or its platform is one of the library and has a device.
-spec is_available(atom(), [{atom(), term()}]) -> boolean().
is_available(Name, Options) ->
    is_of_host(Options) orelse tessera_nif:client_devices(Name) > 0 orelse has_device(proplists:get_value(platform, Options), Options).

has_device(Platform, Options) ->
    case tessera_plugins:is_plugin(Platform) of
        true -> tessera_plugins:is_available(Platform, Options);
        false -> lists:member(Platform, tessera_nif:platforms()) andalso devices_of(Platform) > 0
    end.

%% The number of devices of a client that has no device_count of its own.
-spec host_devices() -> pos_integer().
host_devices() ->
    case application:get_env(tessera, host_devices) of
        {ok, Count} -> counted(Count);
        undefined ->
            case os:getenv("TESSERA_HOST_DEVICES", "") of
                "" -> 1;
                Text ->
                    case string:to_integer(Text) of
                        {Count, []} -> counted(Count);
                        _ -> no_count(Text)
                    end
            end
    end.

counted(Count) when is_integer(Count), Count > 0, Count =< ?MAX_DEVICES -> Count;
counted(Other) -> no_count(Other).

-spec no_count(term()) -> no_return().
no_count(Other) ->
    Text = io_lib:format("host_devices or TESSERA_HOST_DEVICES: expected a number of devices from 1 to ~b, got ~0tP", [?MAX_DEVICES, Other, 20]),
    error({invalid_argument, unicode:characters_to_binary(Text)}).

%% Opens a client, of the host unless there is another platform. For an open one of the host, adds devices and changes the given
%% options.
-spec open(atom(), map()) -> ok | tessera_nif:error().
open(Name, Options) ->
    Known = lists:sort(?CALL_OPTIONS ++ ?PLUGIN_OPTIONS),
    Foreign = ?PLUGIN_OPTIONS -- options_of(maps:get(platform, Options, host), ?PLUGIN_OPTIONS),
    case lists:sort(maps:keys(Options)) -- (Known -- Foreign) of
        [] ->
            case tessera_platform:is_taken(Name) of
                true -> refused(failed_precondition, "~0tp is the name of a cluster", [Name]);
                false -> open_plugin(Name, tessera_plugins:options(Options))
            end;
        [Unknown | _] ->
            case lists:member(Unknown, Foreign) of
                true -> wrong_option("the option ~ts is of clients of plugins", [Unknown]);
                false -> wrong_option("unknown option ~0tp of a client, the options are ~0tp", [Unknown, Known])
            end
    end.

wrong_option(Format, Values) -> refused(invalid_argument, Format, Values).

refused(Code, Format, Values) ->
    {error, #{code => Code, message => unicode:characters_to_binary(io_lib:format(Format, Values))}}.

open_plugin(Name, {error, Code, Text}) -> refused(Code, "client ~ts: ~ts", [Name, Text]);
open_plugin(Name, {ok, Options}) -> open_here(Name, Options, settings(Options)).

open_here(_, _, {error, _} = Error) -> Error;
open_here(Name, Options, Settings) ->
    Platform = maps:get(platform, Options, host),
    Count = case {Options, is_of_host([{platform, Platform}])} of
                {#{device_count := Given}, _} -> Given;
                {_, true} -> host_devices();
                {_, false} -> undefined      % as many as there are
            end,
    tessera_run:awaited(tessera_nif:client_open(Name, Count, maps:get(memory_limit, Options, undefined), maps:get(threads, Options, undefined),
                                                platform(Platform), Settings)).

%% The options that the plugin gets, by their names.
settings(#{platform := pjrt} = Options) ->
    Own = maps:get(plugin_options, Options, #{}),
    case is_map(Own) orelse tessera_type:is_proper(Own) andalso lists:all(fun is_option/1, Own) of
        true ->
            Shared = maps:with(?PLUGIN_OPTIONS -- [plugin_options, device_type], Options),
            settings(lists:sort(maps:to_list(maps:merge(maps:from_list(pairs(Own)), Shared))), []);
        false -> wrong_option("plugin_options: expected a map or a list of options with their values, got ~0tP", [Own, 20])
    end;
settings(_) -> [].

pairs(Own) when is_map(Own) -> maps:to_list(Own);
pairs(Own) -> Own.

settings([], Read) -> lists:reverse(Read);
settings([{Key, Value} | Rest], Read) when is_atom(Key) ->
    Name = atom_to_binary(Key),
    case setting(Key, Value) of
        error -> wrong_option("the option ~ts of a plugin: expected a number, a boolean or a text, got ~0tP", [Name, Value, 20]);
        Setting -> settings(Rest, [{Name, Setting} | Read])
    end;
settings([{Key, _} | _], _) -> wrong_option("plugin_options: expected an atom as the name of an option, got ~0tP", [Key, 20]).

setting(memory_fraction, Value) when is_integer(Value) -> float(Value);
setting(_, Value) when is_boolean(Value); is_number(Value); is_binary(Value) -> Value;
setting(_, Value) when is_atom(Value) -> atom_to_binary(Value);
setting(_, Value) when is_list(Value) ->
    case io_lib:char_list(Value) of
        true -> unicode:characters_to_binary(Value);
        false -> error
    end;
setting(_, _) -> error.

platform(nil) -> host;
platform(Name) -> Name.

%% Whether a client has the name: an open client, or one that is opened at its first use.
-spec is_client(atom()) -> boolean().
is_client(Name) -> Name =:= host orelse tessera_nif:client_devices(Name) > 0 orelse lists:keymember(Name, 1, configured()).

%% Opens the client, as it is configured, unless it is open with that device.
-spec ensure(atom(), non_neg_integer()) -> ok.
ensure(Name, Device) ->
    case tessera_nif:client_devices(Name) of
        Count when Count > Device -> ok;
        _ -> open_configured(Name, proplists:get_value(Name, configured(), []), Device + 1)
    end.

%% Opens devices of the client up to this count, if its settings give it as many by now: they may have changed since they were
%% read.
-spec ensure_configured(atom(), pos_integer()) -> ok.
ensure_configured(Name, Count) ->
    Options = proplists:get_value(Name, configured(), []),
    Known = Name =:= host orelse lists:keymember(Name, 1, configured()),
    case Known andalso count(Name, Options) of
        Configured when is_integer(Configured), Configured >= Count -> ensure(Name, Count - 1);
        _ -> ok
    end.

%% The result of Call, which uses a device; if the device is not there, its client is opened first.
-spec device({atom(), non_neg_integer()}, fun(() -> Result)) -> Result.
device({Name, Device}, Call) when is_atom(Name), is_integer(Device) ->
    case Call() of
        {error, #{code := invalid_argument}} = Error ->
            case tessera_nif:client_devices(Name) of
                Count when Count > Device -> Error;
                _ ->
                    ok = ensure(Name, Device),
                    Call()
            end;
        Result -> Result
    end;
device(_, Call) -> Call().

%% The options of a compilation for a client. All clients of the host run programs that are compiled for one of them.
-type precision() :: undefined | default | high | highest.

-spec compiler(atom(), precision()) -> [{client | precision, atom()}].
compiler(Client, Precision) -> passed(Precision) ++ compiler(Client).

%% The compiler's option for a precision.
-spec passed(precision()) -> [{precision, atom()}].
passed(undefined) -> [];
passed(Precision) -> [{precision, Precision}].

%% What is asked for products on a client: undefined for one whose numbers do not depend on it.
-spec precision(atom() | pid(), precision()) -> precision().
precision(_, undefined) -> undefined;
precision(Cluster, _) when is_pid(Cluster) -> undefined;     % its ranks are hosts
precision(Client, Precision) ->
    case tessera_nif:client_waits(Client) of
        true -> Precision;
        false -> undefined
    end.

%% Whether it is a precision that may be asked for.
-spec is_precision(term()) -> boolean().
is_precision(Precision) -> lists:member(Precision, [undefined, default, high, highest]).

%% The option of the compiler for a client.
-spec asked(atom() | pid(), precision()) -> [{precision, atom()}].
asked(Client, Precision) -> passed(precision(Client, Precision)).

compiler(Client) ->
    case {tessera_nif:client_waits(Client), tessera_nif:default_client()} of
        {true, _} -> [{client, Client}];
        {false, host} -> [];
        {false, _} -> [{client, host}]
    end.

%% The executable bound to a device.
-spec bind(tessera_nif:executable(), tessera_type:device() | undefined) -> tessera_nif:executable() | tessera_nif:error().
bind(Executable, undefined) -> Executable;
bind(Executable, Device) -> device(Device, fun() -> tessera_nif:on_device(Executable, Device) end).

%% The handle of the tensor on a device, or of a copy.
-spec to_device(reference(), tessera_type:device(), boolean()) -> reference() | {pressure, reference()} | tessera_nif:error().
to_device(Ref, Device, Copy) -> device(Device, fun() -> tessera_nif:to_device(Ref, Device, Copy) end).

%% By device, what tessera_nif:client_memory/1 lists: the bytes that each holds, and the most that it held.
-spec by_device([{non_neg_integer(), integer(), integer()}]) -> {#{non_neg_integer() => integer()}, #{non_neg_integer() => integer()}}.
by_device(List) ->
    {maps:from_list([{Device, Held} || {Device, Held, _} <- List]), maps:from_list([{Device, Peak} || {Device, _, Peak} <- List])}.
