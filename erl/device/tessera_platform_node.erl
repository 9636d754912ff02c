%% @private Clients of this node's library as a platform of Erlang's table: the host's clients, and the clients of plugins. The library chooses between
%% these by its own table, device/platform.h.
-module(tessera_platform_node).
-behaviour(tessera_platform).
-export([flags/0, key/1, room/2, own/2, turn/3, home/2, compile/4, profiled/2, kernels/1, explain/1, run/5, distribute/5]).

flags() -> [ops, handles].
key(Client) -> Client.

%% Opens as many devices as the client's settings allow.
room(Client, Partitions) ->
    ok = tessera_client:ensure_configured(Client, Partitions),
    case tessera_nif:client_devices(Client) of
        Devices when Devices >= Partitions -> ok;
        Devices -> {devices, Devices}
    end.

own(_, Partitions) -> Partitions.
turn(_, _, F) -> F().
home(Client, N) -> {Client, N}.

compile(Client, Part, Options, _) -> tessera_run:compile(Part, [{client, Client} | Options]).

profiled(Client, Executable) -> {Executable, Client}.

kernels(Executable) ->
    {All, New} = tessera_nif:executable_kernels(Executable),
    {New, max(0, All - New)}.

explain(Executable) -> tessera_nif:explain(Executable).

%% Tensors that the client's devices cannot read are copied after the library has refused them.
run(_, Executable, Lists, Threads, Donated) ->
    case tessera_run:group(Executable, Lists, Threads, Donated) of
        [_ | _] = Results -> Results;
        stale -> stale;
        Other ->
            Again = fun(Here) -> tessera_run:group(Executable, rows(Here, length(hd(Lists))), Threads, Donated) end,
            tried(fun(Fail) -> tessera_remote:result(Other, lists:append(Lists), Again, Fail) end)
    end.

%% The result of Work, or the error that Work passes to its function.
tried(Work) ->
    Own = make_ref(),
    try Work(fun(Cause) -> throw({Own, Cause}) end)
    catch throw:{Own, Cause} -> {error, Cause}
    end.

rows([], _) -> [];
rows(All, Length) ->
    {Row, Rest} = lists:split(Length, All),
    [Row | rows(Rest, Length)].

%% The library cuts tensors for clients of the host. The host cannot write to the devices of others.
distribute(Client, Ref, Sizes, Cuts, Pieces) ->
    case tessera_nif:client_waits(Client) of
        false ->
            Cut = fun() -> tessera_nif:cut(Ref, Sizes, Cuts, Client) end,
            tried(fun(Fail) -> tessera_memory:result(Cut(), Cut, Fail) end);
        true ->
            Moves = [fun() -> tessera_remote:to_device(Part, {Client, Device}) end || {Device, Part} <- lists:enumerate(0, Pieces())],
            tried(fun(Fail) -> [tessera_memory:result(Move(), Move, Fail) || Move <- Moves] end)
    end.
