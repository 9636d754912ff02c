%% @private Names for the devices that tensors of Nx are on: what Tessera.Client does, and where tensors and programs are placed.
-module(tessera_nx_client).
-export([default_name/0, 'fetch!'/1, get_supported_platforms/0,
         get_memory_statistics/1, reset_peak_memory/1, place/1, device/2, check_transfer/2, is_for_meshes/1]).

-include("tessera_nx.hrl").

%% Platforms of EXLA, which a library without them does not take for a mistake.
-define(KNOWN, [cuda, rocm, tpu, pjrt_plugin]).

-define(DEFAULT, [{host, [{platform, host}]}]).

-spec default_name() -> atom().
default_name() ->
    case application:get_env(tessera, default_client) of
        {ok, Name} -> Name;
        undefined ->
            Clients = clients(),
            Preferred = application:get_env(tessera, preferred_clients, [Name || {Name, _} <- Clients]),
            case [Name || Name <- Preferred, tessera_client:is_available(Name, preferred(Name, Clients))] of
                [Name | _] -> Name;
                [] ->
                    tessera_nx_error:runtime("could not find default client for Tessera. The configured Tessera "
                                             "clients are: ~ts", [tessera_nx_error:inspect(Clients)])
            end
    end.

clients() -> application:get_env(tessera, clients, ?DEFAULT).

preferred(Name, Clients) ->
    case lists:keyfind(Name, 1, Clients) of
        {_, Options} -> Options;
        false -> tessera_nx_error:runtime("unknown client ~ts given as :preferred_clients",
                                          [tessera_nx_error:inspect(Name)])
    end.

platform(Options) ->
    case proplists:get_value(platform, Options) of
        undefined -> host;
        nil -> host;
        Platform -> Platform
    end.

-spec 'fetch!'(atom()) -> map().
'fetch!'(Name) when is_atom(Name) ->
    Options = options(Name),
    Platform = platform(Options),
    {Count, Default} = devices(Name, Options),
    #{'__struct__' => ?CLIENT, ref => Name, platform => Platform, name => Name, device_count => Count, default_device_id => Default,
      automatic_transfers => proplists:get_value(automatic_transfers, Options, Platform =:= host)};
'fetch!'(Name) -> unknown(Name).

%% The options of a client whose platform is available.
options(Name) ->
    case lists:keyfind(Name, 1, clients()) of
        {_, Options} ->
            tessera_client:is_available(Name, Options) orelse refuse(Name, platform(Options)),
            Options;
        false -> unknown(Name)
    end.

%% Whether the term is a client whose platform runs functions over a mesh only.
-spec is_for_meshes(term()) -> boolean().
is_for_meshes(Client) -> (is_atom(Client) orelse is_pid(Client)) andalso not tessera_platform:has(Client, ops).

-spec unknown(term()) -> no_return().
unknown(Name) ->
    is_for_meshes(Name) andalso
        tessera_nx_error:argument("~ts is a cluster, which only Tessera.shard_jit/3 takes as a client", [tessera_nx_error:inspect(Name)]),
    tessera_nx_error:argument("could not find Tessera client named ~ts, the clients specified in your config "
                              "files are: ~ts",
                              [tessera_nx_error:inspect(Name),
                               tessera_nx_error:inspect([Known || {Known, _} <- clients()])]).

%% An exit, as in EXLA, whose clients are processes.
refuse(Name, Platform) ->
    lists:member(Platform, ?KNOWN) orelse is_map_key(Platform, tessera_client:platforms()) orelse
        tessera_nx_error:argument("unknown Tessera platform: ~ts", [tessera_nx_error:inspect(Platform)]),
    Known = io_lib:format("platform ~ts of client ~ts is not available, the platforms of Tessera are: ~ts",
                          [tessera_nx_error:inspect(Term) || Term <- [Platform, Name, maps:keys(tessera_client:platforms())]]),
    Message = [Known | [["; ", tessera_plugins:missing(Platform)] || Platform =/= pjrt_plugin, tessera_plugins:is_plugin(Platform)]],
    Error = #{'__struct__' => 'Elixir.RuntimeError', '__exception__' => true,
              message => unicode:characters_to_binary(Message)},
    exit({{Error, []}, {?CLIENT, 'fetch!', [Name]}}).

%% The number of devices, and the default one.
devices(Name, Options) ->
    Count = failing(fun() -> tessera_client:count(Name, Options) end),
    case proplists:get_value(default_device_id, Options, 0) of
        Default when is_integer(Default), Default >= 0, Default < Count -> {Count, Default};
        _ -> tessera_nx_error:argument(":default_device_id must be a number between 0 and ~b", [Count - 1])
    end.

%% Client and device that options ask for.
-spec place([{atom(), term()}]) -> {atom(), non_neg_integer()}.
place(Options) ->
    Name = case lists:keyfind(client, 1, Options) of
               {_, Given} when Given =/= nil -> Given;
               _ -> default_name()
           end,
    {Count, Default} = devices(Name, options(Name)),
    case lists:keyfind(device_id, 1, Options) of
        {_, Device} when Device =/= nil -> check_device(Name, Device, Count);
        _ -> opened(Name, Default, Count)
    end.

%% The configuration may have changed since the application started.
opened(host, 0, _) -> {host, 0};
opened(Name, Device, Count) ->
    ok = open(Name, Count),
    {Name, Device}.

open(Name, Count) -> failing(fun() -> tessera_client:ensure(Name, Count - 1) end).

%% An error of the core as an exception of Elixir.
failing(Call) ->
    try Call()
    catch error:{Code, Message} when is_binary(Message) -> tessera_nx_error:from_core(client, #{code => Code, message => Message})
    end.

check_device(Name, Device, Count) when is_integer(Device), Device >= 0, Device < Count -> opened(Name, Device, Count);
check_device(Name, Device, Count) ->
    tessera_nx_error:argument("device_id ~ts of client ~ts is not there, it has ~ts. :device_count in the client's "
                              "configuration, or host_devices in that of :tessera, says how many it has",
                              [tessera_nx_error:inspect(Device), tessera_nx_error:inspect(Name), counted(Count)]).

counted(1) -> "1 device";
counted(Count) -> [integer_to_list(Count), " devices"].

%% A device of a client: the client's name, and the device.
-spec device(map(), non_neg_integer()) -> {atom(), non_neg_integer()}.
device(#{'__struct__' := ?CLIENT, name := Name, device_count := Count}, Device) -> check_device(Name, Device, Count);
device(Other, _) -> no_client(Other).

-spec no_client(term()) -> no_return().
no_client(Other) -> tessera_nx_error:expected("a Tessera.Client, as fetch!/1 gives it", Other).

%% Refuses a tensor as an argument of a function of another client or device, where its client asks for that.
-spec check_transfer(map(), {atom(), non_neg_integer()}) -> ok.
check_transfer(#{client_name := Name} = Buffer, To) ->
    tessera_platform:has(Name, ops) andalso check_client(Buffer, To),
    ok.

check_client(#{client_name := Name, device_id := Device}, {To, ToDevice}) ->
    case 'fetch!'(Name) of
        #{automatic_transfers := false, platform := Platform} ->
            #{platform := ToPlatform} = 'fetch!'(To),
            #{default_device_id := DefaultDevice, platform := DefaultPlatform} = 'fetch!'(Default = default_name()),
            tessera_nx_error:argument(
                "Tessera computation (defn) is allocated on client ~ts #~b (~ts) but one of the input tensors are "
                "allocated on ~ts #~b (~ts).\n\n"
                "Tensors of that client are not transferred automatically, as its configuration has "
                "automatic_transfers: false. Transfer them by Nx.backend_transfer/2, or ensure your tensors are allocated "
                "on the same client-device pair as your numerical definitions (defn). The default client-device is "
                "~ts #~b (~ts)\n",
                [To, ToDevice, ToPlatform, Name, Device, Platform, Default, DefaultDevice, DefaultPlatform]);
        _ -> ok
    end.

-spec get_supported_platforms() -> #{host := pos_integer(), atom() => non_neg_integer()}.
get_supported_platforms() -> failing(fun tessera_client:platforms/0).

-spec get_memory_statistics(map()) -> #{allocated := integer(), peak := integer(), per_device := map(), peak_per_device := map()}.
get_memory_statistics(#{'__struct__' := ?CLIENT, name := Name, device_count := Count}) ->
    ok = open(Name, Count),
    {Held, Peak, Devices} = tessera_nif:client_memory(Name),
    {Now, Most} = tessera_client:by_device(Devices),
    #{allocated => Held, peak => Peak, per_device => Now, peak_per_device => Most};
get_memory_statistics(Other) -> no_client(Other).

-spec reset_peak_memory(map()) -> ok.
reset_peak_memory(#{'__struct__' := ?CLIENT, name := Name, device_count := Count}) ->
    ok = open(Name, Count),
    tessera_nif:reset_client_peak(Name);
reset_peak_memory(Other) -> no_client(Other).
