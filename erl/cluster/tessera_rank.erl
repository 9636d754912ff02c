%% @private The rank's side of a cluster: a small node that connects to the driver, proves that it has the key, and answers requests
%% until the connection ends. docs/distribution.md has the protocol.
-module(tessera_rank).
-export([main/1, run/1, version/0, version_number/0]).
-export_type([options/0]).

%% Milliseconds for each step of the handshake.
-define(HANDSHAKE, 10000).

%% Where the driver is and what proves it; who this is; the module that does the requests; what ends the rank.
-type options() :: #{address := inet:ip_address(), port := inet:port_number(), key_file := file:filename_all(), rank := non_neg_integer(),
                     ranks := pos_integer(), timeout := pos_integer(), work := module(), leave := fun((non_neg_integer()) -> no_return())}.

-record(state, {options  :: options(),
                socket   :: tessera_cluster_socket:socket(),
                writer   :: pid(),
                reader   :: tessera_cluster_wire:reader(),
                patience :: pos_integer(),                % milliseconds without a frame after which the rank leaves
                tree     :: tessera_cluster_tree:tree(),
                leader = none :: none | pid(),            % the process that has the ranks below this one
                below = #{} :: #{non_neg_integer() => pid()},   % their writers
                workers = #{} :: #{pos_integer() => pid()},
                requests = #{} :: #{pid() => request()},
                lanes = #{} :: #{non_neg_integer() => pid()}}).    % the last worker of each

%% What a worker works for. `needed': results that are; a run is cancelled by a message until it has begun.
-record(request, {id      :: pos_integer(),
                  head    :: tessera_cluster_wire:head(),
                  needed  :: non_neg_integer(),
                  state   :: plain | waiting | begun | cancelled}).
-type request() :: #request{}.

%% What must be equal on the driver and all ranks.
-spec version() -> {binary(), binary()}.
version() ->
    _ = application:load(tessera),
    {ok, Vsn} = application:get_key(tessera, vsn),
    Digests = [Module:module_info(md5) || Module <- [?MODULE, tessera_rank_work, tessera_rank_values, tessera_cluster_wire, tessera_nif]],
    {list_to_binary(Vsn), binary:encode_hex(crypto:hash(md5, Digests))}.

%% The same as a number for MPI, with the kind of CPU.
-spec version_number() -> non_neg_integer().
version_number() ->
    {Architecture, _} = tessera_nif:rank_isa(),
    <<Number:62, _/bits>> = erlang:md5(term_to_binary({version(), Architecture})),
    Number.

%% Started with -run: the driver's address and port, the file with the key, and milliseconds for the start.
-spec main([string()]) -> no_return().
main([Address, Port, KeyFile, Timeout]) ->
    {ok, Ip} = inet:parse_address(Address),
    {Rank, Ranks} = numbers(),
    run(#{address => Ip, port => list_to_integer(Port), key_file => KeyFile, rank => Rank, ranks => Ranks,
          timeout => list_to_integer(Timeout), work => tessera_rank_work, leave => fun leave/1}).

%% The calling process is the rank.
-spec run(options()) -> no_return().
run(#{timeout := Timeout, leave := Leave} = Options) ->
    process_flag(trap_exit, true),
    Watchdog = watchdog(Timeout, Leave),
    try start(Options) of
        {ok, State} ->
            Watchdog ! started,
            loop(State);
        {error, What} -> fail(Options, "~ts", [What])
    catch Class:Reason:Trace -> fail(Options, "~0tp", [{Class, Reason, Trace}])
    end.

%% mpirun passes this on to the driver.
-spec fail(options(), io:format(), [term()]) -> no_return().
fail(#{leave := Leave} = Options, Format, Values) ->
    ok = say(Options, Format, Values),
    timer:sleep(50), % the text is on its way to another process
    Leave(1).

say(#{rank := Rank}, Format, Values) -> io:format("rank ~0p: " ++ Format ++ "~n", [Rank | Values]).

%% Destructors of libraries do not run: one that waits for another rank would never return.
-spec leave(non_neg_integer()) -> no_return().
leave(Status) ->
    _ = [tessera_nif:rank_exit(Status) || erlang:module_loaded(tessera_nif)],
    erlang:halt(Status, [{flush, false}]). % its library was not loaded

watchdog(Timeout, Leave) ->
    Rank = self(),
    spawn(fun() ->
                  Monitor = monitor(process, Rank),
                  receive
                      started -> ok;
                      {'DOWN', Monitor, process, _, _} -> ok
                  after Timeout ->
                          exit(Rank, kill),
                          Leave(1)
                  end
          end).

%% ---- the start

start(#{key_file := KeyFile, address := Address, port := Port} = Options) ->
    Hello = hello(Options), % takes time, which the handshake has not
    case credentials(KeyFile) of
        {ok, Credentials} -> joined(join(Credentials, Hello, {Address, Port}, Options), Credentials, Hello, Options);
        Error -> Error
    end.

credentials(KeyFile) ->
    case tessera_cluster_tls:read(KeyFile) of
        {ok, {_, none}} = Plain -> Plain;
        {ok, _} = Encrypted ->
            case tessera_cluster_tls:available() of
                ok -> Encrypted;
                {error, Needed} -> {error, io_lib:format("encrypted connections need ~ts", [Needed])}
            end;
        Error -> Error
    end.

%% A rank below a leader learns from the driver where its leader listens.
joined({ok, Socket, #{parent := {_, Address, Port}} = Config}, Credentials, Hello, Options) ->
    {ok, {Own, _}} = tessera_cluster_socket:sockname(Socket),
    ok = tessera_cluster_socket:close(Socket),
    case join(Credentials, Hello, {Address, Port}, Options) of
        {ok, Up, _} -> configure(Config, Credentials, Own, Up, Options);
        Error -> Error
    end;
joined({ok, Socket, Config}, Credentials, _, Options) ->
    {ok, {Own, _}} = tessera_cluster_socket:sockname(Socket),
    configure(Config, Credentials, Own, Socket, Options);
joined(Error, _, _, _) -> Error.

%% The connection, and what the other side, which has proved that it knows the key, says.
join({Key, Identity}, Hello, {Ip, Port}, #{timeout := Timeout}) ->
    case tessera_cluster_socket:connect(Ip, Port, ?HANDSHAKE) of
        {ok, Socket} ->
            case tessera_cluster_socket:secure(Socket, client, Identity, ?HANDSHAKE) of
                {ok, Secured} -> handshake(Key, Hello, Secured, Timeout);
                {error, Reason} -> {error, io_lib:format("the TLS handshake with ~s:~b failed: ~0tP", [inet:ntoa(Ip), Port, Reason, 20])}
            end;
        {error, Reason} -> {error, io_lib:format("cannot connect to ~s:~b: ~s", [inet:ntoa(Ip), Port, inet:format_error(Reason)])}
    end.

handshake(Key, Hello, Socket, Timeout) ->
    case tessera_cluster_socket:read(Socket, ?HANDSHAKE) of
        {ok, Frame} ->
            case tessera_cluster_wire:read_greeting(Frame) of
                {ok, Driver} -> introduce(Key, Driver, Hello, Socket, Timeout);
                error -> {error, "the driver has another version of Tessera"}
            end;
        {error, Reason} -> no_driver(Reason)
    end.

%% The configuration comes when the leader of this rank listens.
introduce(Key, Driver, Hello, Socket, Timeout) ->
    Own = tessera_cluster_wire:nonce(),
    _ = tessera_cluster_socket:write(Socket, tessera_cluster_wire:hello(Key, Driver, Own, Hello)),
    case tessera_cluster_socket:read(Socket, Timeout) of
        {ok, Frame} ->
            case tessera_cluster_wire:read_config(Key, Driver, Own, Frame) of
                {ok, Config} -> {ok, Socket, Config};
                error -> {error, "who answered is not the driver"}
            end;
        {error, Reason} -> no_driver(Reason)
    end.

no_driver(Reason) -> {error, io_lib:format("the driver does not answer: ~0p", [Reason])}.

hello(#{rank := Rank, ranks := Size}) ->
    {ok, Host} = inet:gethostname(),
    #{rank => Rank, size => Size, host => list_to_binary(Host), os_pid => list_to_binary(os:getpid()), version => version(),
      otp_release => list_to_binary(erlang:system_info(otp_release)), cpu => element(1, tessera_nif:rank_isa())}.

%% The rank and how many there are, as the launcher says.
numbers() -> numbers([{"TESSERA_RANK", "TESSERA_RANKS"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                      {"SLURM_PROCID", "SLURM_NTASKS"}]).

numbers([{Rank, Size} | Rest]) ->
    case {number(Rank), number(Size)} of
        {R, S} when is_integer(R), is_integer(S) -> {R, S};
        _ -> numbers(Rest)
    end;
numbers([]) -> {0, 1}.

number(Name) ->
    case string:to_integer(os:getenv(Name, "")) of
        {Number, ""} when is_integer(Number) -> Number;
        _ -> none
    end.

%% Beats begin before what takes time; so do the ranks below this one.
configure(#{deadline := Deadline, max_message := Limit, tree := {Count, Tree}} = Config, Credentials, Address, Socket, #{work := Work} = Options) ->
    _ = tessera_cluster_socket:authenticated(Socket),
    Writer = tessera_cluster_socket:start_writer(Socket, max(1, Deadline div 6), 2 * Deadline),
    State = #state{options = Options, socket = Socket, writer = Writer, reader = tessera_cluster_wire:new(Limit), patience = 2 * Deadline,
                   tree = tessera_cluster_tree:new(Count, Tree)},
    Leads = lead(Credentials, Address, Deadline, State),
    case Work:configure(maps:merge(Config, maps:with([rank, ranks], Options))) of
        {ok, Info} -> {ok, send({ready, Info}, Leads)};
        {error, #{code := Code, message := Text}} ->
            _ = send({failed, Code, Text}, State),
            tessera_cluster_socket:flush(Writer),
            {error, Text}
    end.

lead(Credentials, Address, Deadline, #state{options = #{rank := Rank}, tree = Tree, writer = Writer} = State) ->
    case tessera_cluster_tree:children(Rank, Tree) of
        [] -> State;
        Children ->
            {ok, Leader, Port} = tessera_rank_leader:start_link(#{credentials => Credentials, address => Address, deadline => Deadline, rank => Rank, tree => Tree,
                                                                  children => Children, writer => Writer}),
            send({listening, Port}, State#state{leader = Leader})
    end.

%% ---- requests

loop(#state{socket = Socket, patience = Patience} = State) ->
    ok = tessera_cluster_socket:next(Socket),
    wait(State, erlang:monotonic_time(millisecond) + Patience).

%% Until the next frame.
wait(#state{socket = Socket} = State, Until) ->
    receive
        {below, Rank, Writer} -> wait(State#state{below = (State#state.below)#{Rank => Writer}}, Until);
        {lost_below, Rank, Text} -> wait(send({lost_below, Rank, Text}, State), Until);
        {'EXIT', Pid, Reason} -> wait(ended(Pid, Reason, State), Until);
        {begun, Worker} -> wait(begun(Worker, State), Until);
        Message ->
            case tessera_cluster_socket:event(Message, Socket) of
                {frame, Frame} -> received(Frame, State);
                closed -> disconnected(0, State);
                {error, _} -> disconnected(1, State);
                none -> wait(State, Until)
            end
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
            ok = say(State#state.options, "nothing was heard of the driver for ~b ms", [State#state.patience]),
            disconnected(1, State)
    end.

%% The job is over for this rank. MPI's daemon of this host may be cut off from mpirun as well, and would wait for it. It is the
%% parent and belongs to this job alone.
-spec disconnected(0 | 1, #state{}) -> no_return().
disconnected(Status, State) ->
    ok = end_daemon("TERM"),
    ok = end_daemon("KILL"),
    leave(Status, State).

end_daemon(Signal) ->
    case daemon() of
        {ok, Pid} ->
            _ = os:cmd("kill -" ++ Signal ++ " " ++ Pid),
            timer:sleep(300);
        none -> ok
    end.

%% On mpirun's own host the parent is mpirun, which the driver ends.
daemon() ->
    {ok, Text} = file:read_file("/proc/" ++ os:getpid() ++ "/stat"),
    [_, Parent | _] = string:lexemes(lists:last(binary:split(Text, <<") ">>, [global])), " "),
    case file:read_file("/proc/" ++ binary_to_list(Parent) ++ "/comm") of
        {ok, Name} when Name =:= <<"orted\n">>; Name =:= <<"prted\n">> -> {ok, binary_to_list(Parent)};
        _ -> none
    end.

leave(Status, #state{options = #{leave := Leave}}) -> Leave(Status).

%% A frame for a rank below this one is passed on as it is to the next leader, or as its own to that rank.
received(Frame, #state{options = #{rank := Own}, tree = Tree, below = Below} = State) ->
    case tessera_cluster_wire:address(Frame) of
        own -> framed(Frame, State);
        {all, Inner} ->
            _ = [tessera_cluster_socket:pass(Writer, Frame) || Writer <- maps:values(Below)],
            framed(Inner, State);
        {rank, Rank, Inner} ->
            case tessera_cluster_tree:towards(Own, Rank, Tree) of
                Rank when is_map_key(Rank, Below) -> tessera_cluster_socket:pass(maps:get(Rank, Below), Inner);
                Child when is_map_key(Child, Below) -> tessera_cluster_socket:pass(maps:get(Child, Below), Frame);
                _ -> ok % it has not joined, or is lost
            end,
            loop(State)
    end.

framed(Frame, #state{reader = Reader} = State) ->
    case tessera_cluster_wire:read(Frame, Reader) of
        {message, Message, Next} -> message(tessera_cluster_wire:decode_message(Message), State#state{reader = Next});
        {error, What} -> fail(State#state.options, "the driver sent ~s", [What]);
        {_, Next} -> loop(State#state{reader = Next})
    end.

message({ok, {request, Id, Head, Body}}, State) -> loop(request(Id, Head, Body, State));
message({ok, {cancel, Id}}, #state{workers = Workers} = State) ->
    case Workers of
        #{Id := Worker} -> loop(cancelled(Worker, State));
        #{} -> loop(State)
    end;
message({ok, {free, Ids}}, State) -> loop(released(Ids, State));
message({ok, leave}, #state{options = #{work := Work}} = State) ->
    ok = Work:finish(),
    leave(0, State);
message(_, #state{options = Options}) -> fail(Options, "the driver sent a malformed message", []).

%% The worker sends its reply itself, so that a large one is not copied; the writer keeps the order. Values are counted here, in the
%% order of requests.
request(Id, Head, Body, #state{options = #{work := Work}, writer = Writer, workers = Workers, requests = Requests} = State) ->
    {First, Count} = maps:get(makes, Head, {1, 0}),
    ok = tessera_rank_values:expect(First, Count, Id),
    ok = tessera_rank_values:retain(maps:get(uses, Head, [])),
    {Before, Lanes} = lane(Head, State),
    Turn = {Before, self()},
    Worker = spawn_link(fun() ->
                                {Values, Reply} = answer(Work, Head, Turn, Body),
                                exit({replied, tessera_cluster_socket:send(Writer, tessera_cluster_wire:encode({reply, Id, Values, Reply}))})
                        end),
    Request = #request{id = Id, head = Head, needed = Count, state = case Head of #{lane := _} -> waiting; #{} -> plain end},
    State#state{workers = Workers#{Id => Worker}, requests = Requests#{Worker => Request}, lanes = in_lane(Head, Worker, Lanes)}.

lane(#{lane := Lane}, #state{lanes = Lanes}) -> {maps:get(Lane, Lanes, none), Lanes};
lane(_, #state{lanes = Lanes}) -> {none, Lanes}.

in_lane(#{lane := Lane}, Worker, Lanes) -> Lanes#{Lane => Worker};
in_lane(_, _, Lanes) -> Lanes.

answer(Work, Head, Turn, Body) ->
    case tessera_cluster_wire:decode(Body) of
        {ok, Request} -> Work:handle(Request, Head, Turn);
        error -> {[], term_to_iovec({error, invalid_argument, <<"the request is malformed">>})}
    end.

%% A run that has not begun tells the other ranks that it will not. One that has is ended with its process.
cancelled(Worker, #state{requests = Requests} = State) ->
    case maps:get(Worker, Requests) of
        #request{state = waiting} = Request ->
            Worker ! cancel,
            State#state{requests = Requests#{Worker := Request#request{state = cancelled}}};
        #request{state = cancelled} -> State;
        _ ->
            exit(Worker, kill),
            State
    end.

begun(Worker, #state{requests = Requests} = State) ->
    case Requests of
        #{Worker := #request{state = cancelled}} ->
            exit(Worker, kill),
            State;
        #{Worker := Request} -> State#state{requests = Requests#{Worker := Request#request{state = begun}}};
        #{} -> State
    end.

%% The driver learns when none of a request's results is needed here.
released(Ids, State) -> lists:foldl(fun released_of/2, State, tessera_rank_values:release(Ids)).

released_of(Id, #state{workers = Workers, requests = Requests} = State) ->
    case Workers of
        #{Id := Worker} ->
            #request{needed = Needed, state = Stage} = Request = maps:get(Worker, Requests),
            _ = [send({unneeded, Id}, State) || Needed =:= 1, Stage =/= plain],
            State#state{requests = Requests#{Worker := Request#request{needed = Needed - 1}}};
        #{} -> State
    end.

%% A worker that was cancelled has sent nothing, and its request has no caller any more.
ended(Writer, _, #state{writer = Writer} = State) -> disconnected(0, State);
ended(Leader, Reason, #state{leader = Leader, options = Options}) -> fail(Options, "~0tP", [Reason, 20]);
ended(Pid, Reason, #state{workers = Workers, requests = Requests, lanes = Lanes} = State) ->
    case maps:take(Pid, Requests) of
        {#request{id = Id, head = Head}, Rest} ->
            Left = State#state{workers = maps:remove(Id, Workers), requests = Rest, lanes = without(Head, Pid, Lanes)},
            Replied = replied(Reason, Id, Head, Left),
            released(maps:get(uses, Head, []) ++ maps:get(takes, Head, []), Replied);
        error -> State
    end.

without(#{lane := Lane}, Pid, Lanes) ->
    case Lanes of
        #{Lane := Pid} -> maps:remove(Lane, Lanes);
        #{} -> Lanes
    end;
without(_, _, Lanes) -> Lanes.

replied({replied, ok}, _, _, State) -> State;
replied({tessera_rank_lost, Text}, _, Head, State) ->   % the driver ends the job, and starts a new one
    ok = fail_values(Head, {unavailable, Text}),
    send({failed, unavailable, Text}, State);
replied(Reason, Id, Head, State) ->
    Text = text("the request ended: ~0tP", [Reason, 20]),
    ok = fail_values(Head, {internal, Text}),
    send({reply, Id, [], term_to_iovec({error, internal, Text})}, State).

fail_values(Head, Cause) ->
    {First, Count} = maps:get(makes, Head, {1, 0}),
    tessera_rank_values:fail(lists:seq(First, First + Count - 1), Cause).

text(Format, Values) -> unicode:characters_to_binary(io_lib:format(Format, Values)).

send(Message, #state{writer = Writer} = State) ->
    ok = tessera_cluster_socket:send(Writer, tessera_cluster_wire:encode(Message)),
    State.
