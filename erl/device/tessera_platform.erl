%% @private The table of platforms: the operations of the places where programs run and tensors are. docs/devices.md describes the table. Each client and
%% each tensor has one platform. Callers use this module, and never ask for the kind of platform.
%%
%% - tessera_platform_node: clients of this node's library, of the host and of plugins. Its functions call the table in C (device/platform.h).
%% - tessera_cluster_driver: clusters that this node drives. Tensors are proxies, and programs are compiled by the ranks.
%% - tessera_cluster_member: the cluster in which this node is a rank.
%%
%% The platforms of clusters are in a later folder. The node registers them before its first cluster begins. Until then each client belongs to
%% tessera_platform_node.
-module(tessera_platform).
-export([register/1, is_taken/1, has/2, key/1, room/2, own/2, turn/3, home/2]).
-export([compile/4, profiled/2, kernels/2, explain/2, run/5, measured/3]).
-export([distribute/5, read/2, device/1, deallocate/1, clear/0]).
-export_type([client/0, flag/0, program/0, room/0, measured/0]).

-define(NODE, tessera_platform_node).

-type client() :: atom() | pid().   % a cluster may be given by its process
%% `ops': eager ops and functions without a mesh run there. `handles': the platform's tensors are handles of this node's library, and
%% tessera_cluster:map/2 calls its function in this VM.
-type flag() :: ops | handles.
-type program() :: term().          % each platform has its own
-type tensors() :: [tessera_type:tensor()].
%% Whether a client has room for a number of partitions. `devices': a client of this node has only this number. `refused': a cluster's reason.
-type room() :: ok | {devices, non_neg_integer()} | {refused, io:format(), [term()]}.

%% Measures of noted runs, by rank. A program comes with the position of its first note, from 1, and with the rank's number of partitions. The program, its
%% events, and the number of events without room are as tessera_nif:profile_stop/1 returns them. `clock': how many nanoseconds the clock of the events is ahead
%% of that of this VM's events (tessera_run:clock/0), and the greatest error.
-type measured() :: [#{rank := non_neg_integer(), host := binary(), clock := {Ahead :: integer(), Error :: non_neg_integer()} | unknown,
                       programs := [{Note :: pos_integer(), Partitions :: pos_integer(), Program :: tuple(), {Events :: binary(), LeftOut :: non_neg_integer()}}]}].

%% ---- of registered platforms: all other clients belong to tessera_platform_node

%% Whether the client belongs to this platform. The name of an ended cluster does, until a client takes the name.
-callback is_client(client()) -> boolean().
%% Whether this platform uses the name. Then clients of other platforms cannot have the name.
-callback is_taken(atom()) -> boolean().
%% Whether the handle of a tensor belongs to this platform. Handles of the library belong to none.
-callback is_tensor(reference()) -> boolean().
%% The bytes of the first elements, or of all elements if the number is negative. `transfer': a function that transfers these bytes.
-callback read(reference(), integer()) -> bitstring() | {transfer, fun(() -> bitstring() | tessera_nif:error())} | tessera_nif:error().
-callback device(reference()) -> {client(), non_neg_integer()} | tessera_nif:error().
-callback deallocate(reference()) -> ok | deallocated | tessera_nif:error().
%% Drops the compiled programs that other VMs keep for this node.
-callback clear() -> ok.
%% Waits for the runs that the platform has noted by tessera_run:note/3, in the order of the list.
%% At most so many events in all. `all': of a joined cluster, each rank calls this and learns what all have measured.
-callback measured(client(), [term()], {Events :: non_neg_integer(), own | all}) -> measured().
-optional_callbacks([is_client/1, is_taken/1, is_tensor/1, read/2, device/1, deallocate/1, clear/0, measured/3]).

%% ---- clients

-callback flags() -> [flag()].
%% The client's name in the keys of files of programs. Files outlive processes.
-callback key(client()) -> atom().
-callback room(client(), pos_integer()) -> room().
%% The number of the caller's partitions: the caller gives their arguments and gets their results.
-callback own(client(), non_neg_integer()) -> non_neg_integer().
%% Calls the function when the process has the turn. The function prepares one run. Errors have the name.
-callback turn(client(), fun(() -> iodata()), fun(() -> Result)) -> Result.
%% The device of a result: the client and the number, for the caller's N-th partition from 0.
-callback home(client(), non_neg_integer()) -> {client(), non_neg_integer()}.

%% ---- partitioned programs

%% With the options of compilation, and the types and shapes of one partition's results.
-callback compile(client(), tessera_nif:builder(), [atom() | {precision, atom()}], [{tessera_type:type(), tessera_type:shape()}]) -> program() | tessera_nif:error().
%% By what profiles know the program, and the client of this node that compiles it to the same steps.
-callback profiled(client(), program()) -> {Key :: term(), client()}.
%% The numbers of kernels that were compiled, and found in a cache. Both are 0 where other VMs compile.
-callback kernels(program()) -> {non_neg_integer(), non_neg_integer()}.
%% The steps as text. The text is empty where other VMs have the steps.
-callback explain(program()) -> iodata() | tessera_nif:error().
%% Runs a program: with a list of arguments for each partition, the number of threads, and the donated arguments as bits. Arguments may be on any
%% platform. `stale': the program belongs to an earlier load of the library.
-callback run(client(), program(), [[tessera_type:operand()]], non_neg_integer(), non_neg_integer()) -> [tensors()] | stale | tessera_nif:error().

%% ---- memory

%% The parts of a tensor in host memory, on the device or rank of each partition. The function makes the parts in host memory, for a platform that
%% cannot cut the tensor by itself.
-callback distribute(client(), reference(), [pos_integer()], [{non_neg_integer(), non_neg_integer()}], fun(() -> tensors())) -> tensors() | tessera_nif:error().

%% ---- the platform of a client or tensor

%% Adds platforms, which are asked in this order.
-spec register([module()]) -> ok.
register(Platforms) -> persistent_term:put(?MODULE, Platforms).

platforms() -> persistent_term:get(?MODULE, []).

of_client(host) -> ?NODE;
of_client(Client) -> first(Client, platforms()).

first(Client, [Platform | Rest]) ->
    case Platform:is_client(Client) of
        true -> Platform;
        false -> first(Client, Rest)
    end;
first(Client, []) when is_pid(Client) ->
    tessera_error:raise(cluster, [Client], unavailable, "the cluster was stopped, or is not one", []);
first(_, []) -> ?NODE.

%% Each function asks the library first, because the library refuses the handles of other platforms at once. Then a read of the library's own tensor
%% costs nothing more.
of_refused(Ref, Refusal, Ask) ->
    case [Platform || Platform <- platforms(), Platform:is_tensor(Ref)] of
        [Platform | _] -> Ask(Platform);
        [] -> Refusal
    end.

%% ---- clients

-spec is_taken(atom()) -> boolean().
is_taken(Name) -> lists:any(fun(Platform) -> Platform:is_taken(Name) end, platforms()).

-spec has(client(), flag()) -> boolean().
has(Client, Flag) -> lists:member(Flag, (of_client(Client)):flags()).

-spec key(client()) -> atom().
key(Client) -> (of_client(Client)):key(Client).

-spec room(client(), pos_integer()) -> room().
room(Client, Partitions) -> (of_client(Client)):room(Client, Partitions).

-spec own(client(), non_neg_integer()) -> non_neg_integer().
own(Client, Partitions) -> (of_client(Client)):own(Client, Partitions).

-spec turn(client(), fun(() -> iodata()), fun(() -> Result)) -> Result.
turn(Client, Name, F) -> (of_client(Client)):turn(Client, Name, F).

-spec home(client(), non_neg_integer()) -> {client(), non_neg_integer()}.
home(Client, N) -> (of_client(Client)):home(Client, N).

%% ---- programs

-spec compile(client(), tessera_nif:builder(), [atom() | {precision, atom()}], [{tessera_type:type(), tessera_type:shape()}]) -> program() | tessera_nif:error().
compile(Client, Part, Options, Types) -> (of_client(Client)):compile(Client, Part, Options, Types).

-spec profiled(client(), program()) -> {Key :: term(), client()}.
profiled(Client, Program) -> (of_client(Client)):profiled(Client, Program).

-spec kernels(client(), program()) -> {non_neg_integer(), non_neg_integer()}.
kernels(Client, Program) -> (of_client(Client)):kernels(Program).

-spec explain(client(), program()) -> iodata() | tessera_nif:error().
explain(Client, Program) -> (of_client(Client)):explain(Program).

-spec run(client(), program(), [[tessera_type:operand()]], non_neg_integer(), non_neg_integer()) -> [tensors()] | stale | tessera_nif:error().
run(Client, Program, Lists, Threads, Donated) -> (of_client(Client)):run(Client, Program, Lists, Threads, Donated).

-spec measured(client(), [term()], {non_neg_integer(), own | all}) -> measured().
measured(Client, Runs, What) -> (of_client(Client)):measured(Client, Runs, What).

%% ---- memory

-spec distribute(client(), reference(), [pos_integer()], [{non_neg_integer(), non_neg_integer()}], fun(() -> tensors())) -> tensors() | tessera_nif:error().
distribute(Client, Ref, Sizes, Cuts, Pieces) -> (of_client(Client)):distribute(Client, Ref, Sizes, Cuts, Pieces).

-spec read(reference(), integer()) -> bitstring() | {transfer, fun(() -> bitstring() | tessera_nif:error())} | tessera_nif:error().
read(Ref, Elements) ->
    case tessera_nif:to_binary(Ref, Elements) of
        {error, _} = Refusal -> of_refused(Ref, Refusal, fun(Platform) -> Platform:read(Ref, Elements) end);
        {waiting, _} = Waiting -> {transfer, fun() -> tessera_run:awaited(Waiting) end};
        Bytes -> Bytes
    end.

-spec device(reference()) -> {client(), non_neg_integer()} | tessera_nif:error().
device(Ref) ->
    case tessera_nif:device(Ref) of
        {error, _} = Refusal -> of_refused(Ref, Refusal, fun(Platform) -> Platform:device(Ref) end);
        Device -> Device
    end.

-spec deallocate(reference()) -> ok | deallocated | tessera_nif:error().
deallocate(Ref) ->
    case tessera_nif:deallocate(Ref) of
        {error, _} = Refusal -> of_refused(Ref, Refusal, fun(Platform) -> Platform:deallocate(Ref) end);
        Done -> Done
    end.

-spec clear() -> ok.
clear() -> lists:foreach(fun(Platform) -> Platform:clear() end, platforms()).
