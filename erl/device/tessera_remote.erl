%% @private Tensors of other nodes, and of ranks of a cluster. A handle of another node is only a name: each use here reads the
%% tensor from its node, as long as a process there keeps it. A handle of this node is read by its platform (tessera_platform).
%%
%% Calls of the native library refuse such handles, so operands are inspected only after a refusal.
-module(tessera_remote).
-include("tessera.hrl").
-export([is_remote/1, is_elsewhere/1, local/1, answer/2, read/2, fetch/1, result/4, result/5, deallocate/1, device/1, to_device/2]).

%% Of another node, or of a rank.
-spec is_remote(term()) -> boolean().
is_remote(#tessera{ref = Ref}) -> is_reference(Ref) andalso (node(Ref) =/= node() orelse tessera_nif:is_proxy(Ref));
is_remote(_) -> false.

%% The same, or on a device whose memory the host cannot read.
-spec is_elsewhere(term()) -> boolean().
is_elsewhere(#tessera{ref = Ref} = Tensor) -> is_remote(Tensor) orelse (is_reference(Ref) andalso tessera_nif:is_elsewhere(Ref));
is_elsewhere(_) -> false.

%% The operand, or a copy of the tensor that the host can read.
-spec local(Operand) -> Operand | tessera_type:tensor() | tessera_nif:error().
local(Operand) ->
    case is_elsewhere(Operand) of
        true -> fetch(Operand);
        false -> Operand
    end.

%% Answers the callback of a run, as tessera_nif:run_answer/2. A run of the host gets copies of results that the host cannot read.
-spec answer(reference(), [tessera_type:operand()]) -> term().
answer(Run, Results) ->
    case tessera_nif:run_answer(Run, Results) of
        {error, #{code := elsewhere}} -> answer_copies(Run, [local(Result) || Result <- Results]);
        Other -> tessera_run:awaited(Other)
    end.

answer_copies(Run, Copies) ->
    case [Error || {error, _} = Error <- Copies] of
        [] -> tessera_run:awaited(tessera_nif:run_answer(Run, Copies));
        [Error | _] ->
            ok = tessera_nif:run_abandon(Run),
            Error
    end.

%% The first bytes of a tensor, wherever it is; all bytes if the number of elements is
%% negative.
-spec read(reference(), integer()) -> binary() | tessera_nif:error().
read(Ref, Elements) when is_reference(Ref), node(Ref) =/= node() ->
    moved(node(Ref), host, fun() -> ask(Ref, read, [Ref, Elements]) end);
read(Ref, Elements) ->
    case tessera_platform:read(Ref, Elements) of
        {transfer, Get} -> moved(device(Ref), host, Get);
        Bytes -> Bytes
    end.

%% The result of Move, which moves a tensor's bytes, with its events.
moved(From, To, Move) -> tessera_events:span(transfer, #{from => From, to => To, caller => self()}, Move, fun bytes_of/1).

bytes_of({error, Cause}) -> {failed, Cause};
bytes_of({pressure, Moved}) -> bytes_of(Moved);
bytes_of(Bytes) when is_bitstring(Bytes) -> {#{bytes => byte_size(Bytes)}, #{}};
bytes_of(#tessera{type = Type, shape = Shape}) ->
    {#{bytes => tessera_type:elements(Shape) * max(8, tessera_type:bits(Type)) div 8}, #{}};
bytes_of(_) -> {#{}, #{}}.

%% The tensor in host memory, with a handle of this node.
-spec fetch(tessera_type:tensor()) -> tessera_type:tensor() | tessera_nif:error().
fetch(#tessera{ref = Ref, type = Type, shape = Shape}) ->
    case read(Ref, -1) of
        Binary when is_binary(Binary) ->
            Make = fun() -> tessera_nif:from_binary(Binary, Type, Shape, false, {host, 0}) end,
            tessera_memory:result(Make(), Make, fun(Cause) -> {error, Cause} end);
        Error -> Error
    end.

%% The result of Call on the operands. First is the result of a call that was made already; if that is an error and
%% there are operands of other nodes, they are fetched and Call is called.
-spec result(term(), [Operand], fun(([Operand]) -> term()), fun((map()) -> no_return())) -> term().
result(First, Operands, Call, Fail) -> result(First, Operands, fun fetch/1, Call, Fail).

%% The same with another way to fetch them.
-spec result(term(), [Operand], fun((tessera_type:tensor()) -> tessera_type:tensor() | tessera_nif:error()),
             fun(([Operand]) -> term()), fun((map()) -> no_return())) -> term().
result(First, Operands, Fetch, Call, Fail) ->
    tessera_memory:result(First, fun() -> Call(Operands) end,
                          fun(Cause) -> again(Cause, Operands, Fetch, Call, Fail) end).

again(Cause, Operands, Fetch, Call, Fail) ->
    Is = to_fetch(Cause),
    case tessera_type:is_proper(Operands) andalso lists:any(Is, Operands) of
        false -> Fail(Cause);
        true ->
            Here = [here(Operand, Is, Fetch, Fail) || Operand <- Operands],
            Again = fun() -> Call(Here) end,
            tessera_memory:result(Again(), Again, Fail)
    end.

%% The host reads constants of programs, and arguments of its own programs. Devices of this node read all others.
to_fetch(#{code := elsewhere}) -> fun is_elsewhere/1;
to_fetch(_) -> fun is_remote/1.

here(Operand, Is, Fetch, Fail) ->
    case Is(Operand) of
        false -> Operand;
        true ->
            case Fetch(Operand) of
                {error, Cause} -> Fail(Cause);
                Here -> Here
            end
    end.

-spec deallocate(reference()) -> ok | deallocated | tessera_nif:error().
deallocate(Ref) when is_reference(Ref), node(Ref) =/= node() -> ask(Ref, deallocate, [Ref]);
deallocate(Ref) -> tessera_platform:deallocate(Ref).

%% The client and number of the tensor's device, or the cluster and rank.
-spec device(reference()) -> {atom() | pid(), non_neg_integer()} | tessera_nif:error().
device(Ref) -> tessera_platform:device(Ref).

%% The tensor on a device of this node.
-spec to_device(tessera_type:tensor(), tessera_type:device()) -> tessera_type:tensor() | {pressure, tessera_type:tensor()} | tessera_nif:error().
to_device(Tensor, Device) ->
    case tessera_events:is_watched() of
        false -> move(Tensor, Device);
        true -> moved(place(Tensor), Device, fun() -> move(Tensor, Device) end)
    end.

place(#tessera{ref = Ref}) when is_reference(Ref), node(Ref) =/= node() -> node(Ref);
place(#tessera{ref = Ref}) -> device(Ref).

move(#tessera{ref = Ref} = Tensor, Device) ->
    case tessera_run:awaited(tessera_nif:to_device(Ref, Device, false)) of
        Moved when is_reference(Moved) -> Tensor#tessera{ref = Moved};
        {pressure, Moved} -> {pressure, Tensor#tessera{ref = Moved}};
        Refusal -> fetched_to(Device, Tensor, Refusal)
    end.

fetched_to(Device, Tensor, Refusal) ->
    case is_remote(Tensor) andalso fetch(Tensor) of
        false -> Refusal;
        #tessera{} = Here -> move(Here, Device);
        Error -> Error
    end.

%% Calls this module on the tensor's node.
ask(Ref, Function, Args) ->
    Node = node(Ref),
    try erpc:call(Node, ?MODULE, Function, Args) of
        {error, #{code := invalid_argument}} -> failed("the node ~s has the tensor no more: no process there kept it", [Node]);
        Answer -> Answer
    catch
        error:{erpc, Reason} -> failed("the tensor is on the node ~s, which does not answer: ~0p", [Node, Reason]);
        error:{exception, undef, _} -> failed("the tensor is on the node ~s, which has no Tessera now", [Node]);
        _:Reason -> failed("the tensor is on the node ~s, where reading it failed: ~0P", [Node, Reason, 10])
    end.

failed(Format, Values) ->
    {error, #{code => unavailable, message => unicode:characters_to_binary(io_lib:format(Format, Values))}}.
