%% @private The main process of a rank. It connects to the driver, proves that it has the key, and answers requests until the connection
%% ends; then the VM ends. docs/distribution.md has the protocol.
-module(tessera_rank).
-export([main/1, run/1, version/0, version_number/0]).
-export_type([options/0]).

%% Milliseconds for each step of the handshake.
-define(HANDSHAKE, 10000).
%% Milliseconds for the last text to reach the standard output.
-define(WRITTEN, 2000).
%% Milliseconds until a rank whose connection was closed before the greeting connects again.
-define(AGAIN, 200).
-define(IS_CLOSED(Reason), (Reason =:= closed orelse Reason =:= econnreset orelse Reason =:= epipe)).
%% Successful runs are reported to the driver in groups of this size, while others wait.
-define(TOLD, 4).

%% `address' and `port' are the driver's; `timeout' is in milliseconds, until the rank has introduced itself to the driver; the driver has all later
%% deadlines; `work' is the module that executes requests; `leave' ends the rank with a status.
-type options() :: #{address := inet:ip_address(), port := inet:port_number(), key_file := file:filename_all(), rank := non_neg_integer(),
                     ranks := pos_integer(), timeout := pos_integer(), watchdog => pid(), work := module(), leave := fun((non_neg_integer()) -> no_return())}.

-record(state, {options  :: options(),
                socket   :: tessera_cluster_socket:socket(),
                writer   :: pid(),
                reader   :: tessera_cluster_reader:reader(),
                limit    :: pos_integer(),                % bytes of a message
                patience :: pos_integer(),                % milliseconds without a frame after which the rank leaves
                tree     :: tessera_cluster_tree:tree(),
                configuring = none :: none | pid(),       % the process that starts MPI and the application
                leader = none :: none | pid(),            % tessera_rank_leader, where ranks are connected to this one
                below = #{} :: #{non_neg_integer() => pid()},   % their writers
                workers = #{} :: #{pos_integer() => pid()},
                requests = #{} :: #{pid() => request()},
                lanes = #{} :: #{non_neg_integer() => pid()},      % the worker of each lane's last request
                finished = [] :: [pos_integer()]}).                % runs that ended well, of which the driver was not told

%% The request that a worker executes. `needed': how many of its results the driver has not freed. `state': a request without a lane is plain; a run is
%% waiting, begun when its worker says so, or cancelled while it was waiting.
-record(request, {id      :: pos_integer(),
                  head    :: tessera_cluster_wire:head(),
                  needed  :: non_neg_integer(),
                  state   :: plain | waiting | begun | cancelled}).
-type request() :: #request{}.

%% The version of Tessera, and a digest of the modules that must be the same on the driver and all ranks.
-spec version() -> {binary(), binary()}.
version() ->
    _ = application:load(tessera),
    {ok, Vsn} = application:get_key(tessera, vsn),
    Digests = [Module:module_info(md5) || Module <- [?MODULE, tessera_rank_work, tessera_rank_values, tessera_cluster_wire,
                                                       tessera_cluster_reader, tessera_cluster_blocks, tessera_nif]],
    {list_to_binary(Vsn), binary:encode_hex(crypto:hash(md5, Digests))}.

%% A number of 62 bits for MPI: with it ranks check that they have the same version and architecture.
-spec version_number() -> non_neg_integer().
version_number() ->
    {Architecture, _} = tessera_nif:rank_isa(),
    <<Number:62, _/bits>> = erlang:md5(term_to_binary({version(), Architecture})),
    Number.

%% The program of a rank's VM, started with -run. Its arguments are the driver's address and port, the path of the key file, and the milliseconds for the start.
-spec main([string()]) -> no_return().
main([Address, Port, KeyFile, Timeout]) ->
    {ok, Ip} = inet:parse_address(Address),
    {Rank, Ranks} = numbers(),
    ok = tessera_rank_values:new(),   % which belong to this process
    ok = tessera_rank_signals:install(fun leave/1),
    run(#{address => Ip, port => list_to_integer(Port), key_file => KeyFile, rank => Rank, ranks => Ranks,
          timeout => list_to_integer(Timeout), work => tessera_rank_work, leave => fun leave/1}).

%% Runs a rank in the calling process. The rank ends by `leave': with status 0 when the driver has ended it, else with 1.
-spec run(options()) -> no_return().
run(#{timeout := Timeout, leave := Leave, rank := Rank} = Options) ->
    process_flag(trap_exit, true),
    ok = tessera_cluster_process:label({?MODULE, Rank}),
    Watchdog = watchdog(Timeout, Leave),
    try start(Options#{watchdog => Watchdog}) of
        {ok, State} ->
            ok = tessera_cluster_socket:stream(State#state.socket),
            loop(State);
        {error, What} -> fail(Options, "~ts", [What])
    catch Class:Reason:Trace -> fail(Options, "~0tp", [{Class, Reason, Trace}])
    end.

%% Prints the error, which mpirun or the launcher passes on to the driver, and ends the rank.
-spec fail(options(), io:format(), [term()]) -> no_return().
fail(#{leave := Leave} = Options, Format, Values) ->
    ok = say(Options, Format, Values),
    Leave(1).

%% Waits until the standard output has the text. From OTP 26 on it has when io:format/2 returns; before, the text may still be on its way to a port of file
%% descriptors, or wait there.
written(Until) ->
    Waiting = [Port || Port <- erlang:ports(), {name, [Digit, $/ | _]} <- [erlang:port_info(Port, name)], Digit >= $0, Digit =< $9,
                       erlang:port_info(Port, queue_size) =/= {queue_size, 0}],
    case Waiting =/= [] andalso erlang:monotonic_time(millisecond) < Until of
        true ->
            timer:sleep(5),
            written(Until);
        false -> ok
    end.

%% A text before the end of this process.
say(#{rank := Rank}, Format, Values) ->
    ok = io:format("rank ~0p: " ++ Format ++ "~n", [Rank | Values]),
    written(erlang:monotonic_time(millisecond) + ?WRITTEN).

%% Ends the process without running destructors of libraries: MPI's would wait for ranks that are lost.
-spec leave(non_neg_integer()) -> no_return().
leave(Status) ->
    _ = [tessera_cluster_leftovers:left(Mark) || Mark <- [tessera_rank_work:shared()], Mark =/= none],
    _ = [tessera_nif:rank_exit(Status) || tessera_nif:is_open()],
    erlang:halt(Status, [{flush, false}]). % only if the NIF's library is not loaded

%% Ends the rank when it has not introduced itself within Timeout milliseconds.
watchdog(Timeout, Leave) ->
    Rank = self(),
    spawn(fun() ->
                  Monitor = monitor(process, Rank),
                  receive
                      introduced -> ok;
                      {'DOWN', Monitor, process, _, _} -> ok
                  after Timeout ->
                          exit(Rank, kill),
                          Leave(1)
                  end
          end).

%% ---- the start

start(#{key_file := KeyFile, address := Address, port := Port} = Options) ->
    Hello = hello(Options), % first, as it loads the NIF's library, and the handshake has a time limit
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

%% Connects to the driver or a leader and does the rank's part of the handshake. Returns the socket and the other side's configuration. Where many strangers
%% come, this rank may lose its place before its ticket was read: then it comes again.
join(Credentials, Hello, Where, #{watchdog := Watchdog} = Options) ->
    case connected(Credentials, Where) of
        {ok, Socket, Driver} -> introduce(Credentials, Driver, Hello, Socket, Watchdog);
        {error, again} ->
            timer:sleep(?AGAIN),   % the watchdog ends this
            join(Credentials, Hello, Where, Options);
        Error -> Error
    end.

%% The other side's nonce, from its greeting.
connected({Key, Identity}, {Ip, Port}) ->
    case tessera_cluster_socket:connect(Ip, Port, ?HANDSHAKE) of
        {ok, Socket} ->
            _ = tessera_cluster_socket:write(Socket, tessera_cluster_wire:ticket(Key)),
            case tessera_cluster_socket:secure(Socket, client, Identity, ?HANDSHAKE) of
                {ok, Secured} -> greeted(Secured);
                {error, Reason} when ?IS_CLOSED(Reason) -> {error, again};
                {error, Reason} -> {error, io_lib:format("the TLS handshake with ~s:~b failed: ~0tP", [inet:ntoa(Ip), Port, Reason, 20])}
            end;
        {error, Reason} -> {error, io_lib:format("cannot connect to ~s:~b: ~s", [inet:ntoa(Ip), Port, inet:format_error(Reason)])}
    end.

greeted(Socket) ->
    case tessera_cluster_socket:read(Socket, ?HANDSHAKE) of
        {ok, Frame} ->
            case tessera_cluster_wire:read_greeting(Frame) of
                {ok, Driver} -> {ok, Socket, Driver};
                error -> {error, "the driver has another version of Tessera"}
            end;
        {error, Reason} when ?IS_CLOSED(Reason) -> {error, again};
        {error, Reason} -> no_driver(Reason)
    end.

%% For a rank below a leader the driver sends the configuration when the leader listens, so this may take longer than a handshake. The driver closes the
%% connection when it waits no longer, and the system does when the driver's host is gone.
introduce({Key, _}, Driver, Hello, Socket, Watchdog) ->
    Own = tessera_cluster_wire:nonce(),
    _ = tessera_cluster_socket:write(Socket, tessera_cluster_wire:hello(Key, Driver, Own, Hello)),
    Watchdog ! introduced,
    case tessera_cluster_socket:read(Socket, infinity) of
        {ok, Frame} ->
            case tessera_cluster_wire:read_config(Key, Driver, Own, Frame) of
                {ok, Config} -> {ok, Socket, Config};
                error -> {error, "who answered is not the driver"}
            end;
        {error, Reason} -> no_driver(Reason)
    end.

no_driver(Reason) -> {error, io_lib:format("the driver does not answer: ~0p", [Reason])}.

%% The application is started later, with the driver's settings.
hello(#{rank := Rank, ranks := Size}) ->
    ok = opened(tessera_nif:open()),
    {ok, Host} = inet:gethostname(),
    #{rank => Rank, size => Size, host => list_to_binary(Host), os_pid => list_to_binary(os:getpid()), version => version(),
      otp_release => list_to_binary(erlang:system_info(otp_release)), cpu => element(1, tessera_nif:rank_isa()), build => tessera_nif:rank_build(),
      mpi => filelib:is_regular(tessera_rank_work:mpi())}.

opened(ok) -> ok;
opened({error, Reason}) -> error(Reason).

%% This rank's number and the count of ranks, from the environment: of a cluster without mpirun, of Open MPI, or of Slurm.
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

%% The work's configuration (MPI) may take long: another process does it. The driver has to get beats meanwhile, MPI waits for the ranks below this one, and
%% this process sees when the driver is gone.
configure(#{deadline := Deadline, max_message := Limit, tree := {Count, Tree}} = Config, Credentials, Address, Socket, #{work := Work} = Options) ->
    _ = tessera_cluster_socket:authenticated(Socket),
    Writer = tessera_cluster_socket:start_writer(Socket, max(1, Deadline div 6), 2 * Deadline),
    State = #state{options = Options, socket = Socket, writer = Writer, reader = tessera_cluster_reader:new(Limit, true), limit = Limit, patience = 2 * Deadline,
                   tree = tessera_cluster_tree:new(Count, Tree)},
    Leads = lead(Credentials, Address, Deadline, State),
    {ok, Leads#state{configuring = spawn_link(fun() -> exit({configured, Work:configure(maps:merge(Config, maps:with([rank, ranks], Options)))}) end)}}.

configured({configured, {ok, Info}}, State) -> send({ready, Info}, State);
configured({configured, {error, #{code := Code, message := Text}}}, #state{options = Options, writer = Writer} = State) ->
    _ = send({failed, Code, Text}, State),
    tessera_cluster_socket:flush(Writer),
    fail(Options, "~ts", [Text]);
configured(Reason, State) -> configured({configured, {error, tessera_cluster_error:new(internal, "its start ended: ~0tP", [Reason, 20])}}, State).

lead(Credentials, Address, Deadline, #state{options = #{rank := Rank}, tree = Tree, writer = Writer} = State) ->
    case tessera_cluster_tree:children(Rank, Tree) of
        [] -> State;
        Children ->
            {ok, Leader, Port} = tessera_rank_leader:start_link(#{credentials => Credentials, address => Address, deadline => Deadline, rank => Rank, tree => Tree,
                                                                  children => Children, writer => Writer}),
            send({listening, Port}, State#state{leader = Leader})
    end.

%% ---- requests

loop(#state{patience = Patience} = State) -> wait(State, erlang:monotonic_time(millisecond) + Patience).

%% Handles messages until the next frame has come. Without a frame by Until, the rank leaves.
wait(#state{socket = Socket} = State, Until) ->
    receive
        {below, Rank, Writer} -> wait(State#state{below = (State#state.below)#{Rank => Writer}}, Until);
        {lost_below, Rank, Text} -> wait(send({lost_below, Rank, Text}, State), Until);
        {'EXIT', Pid, Reason} -> wait(ended(Pid, Reason, State), Until);
        {begun, Worker} -> wait(begun(Worker, State), Until);
        {system, From, Request} ->
            Continue = fun(Now) -> wait(Now, Until) end,
            tessera_cluster_process:system({From, Request}, self(), State, {Continue, fun(Whole) -> Whole end});
        Message ->
            case tessera_cluster_socket:event(Message, Socket) of
                {frame, Frame} -> loop(received(Frame, State));
                closed -> disconnected(0, State);
                {error, _} -> disconnected(1, State);
                none -> wait(State, Until)
            end
    after max(0, Until - erlang:monotonic_time(millisecond)) -> silent(State, Until, erlang:monotonic_time(millisecond))
    end.

%% A timeout that is late means that this process was stopped or had no CPU. Frames may have arrived that were not read yet, and the driver may have been
%% stopped as well, so the rank waits once more.
silent(#state{patience = Patience} = State, Until, Now) when Now - Until > Patience div 4 -> wait(State, Now + Patience);
silent(#state{patience = Patience, options = Options} = State, _, _) ->
    ok = say(Options, "nothing was heard of the driver for ~b ms", [Patience]),
    disconnected(1, State).

%% Ends the rank, and the daemon of Open MPI on this host. A daemon that is cut off from mpirun, as this rank is from the driver, would wait for
%% it for ever. It is the parent of this process and belongs to this job alone.
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

%% The pid of the daemon: the parent of the script that runs this process. On mpirun's own host there is no daemon: that parent is mpirun, which the
%% launcher ends.
daemon() ->
    case parent(os:getpid()) of
        {ok, Script} ->
            case parent(Script) of
                {ok, Parent} -> is_daemon(file:read_file("/proc/" ++ Parent ++ "/comm"), Parent);
                none -> none
            end;
        none -> none
    end.

parent(Pid) ->
    case file:read_file("/proc/" ++ Pid ++ "/stat") of
        {ok, Text} -> {ok, binary_to_list(lists:nth(2, string:lexemes(lists:last(binary:split(Text, <<") ">>, [global])), " ")))};
        {error, _} -> none
    end.

is_daemon({ok, Name}, Pid) when Name =:= <<"orted\n">>; Name =:= <<"prted\n">> -> {ok, Pid};
is_daemon(_, _) -> none.

leave(Status, #state{options = #{leave := Leave}}) -> Leave(Status).

%% A frame for a rank below this one is passed on: to the next leader with its address, to the rank itself without it.
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
            State
    end.

framed(Frame, #state{reader = Reader} = State) ->
    case tessera_cluster_reader:read(Frame, Reader) of
        {message, Text, [], Next} -> message(Text, [], State#state{reader = Next});
        {message, Text, Blocks, Next} -> without_garbage(message(Text, Blocks, State#state{reader = Next}));
        {error, What} -> fail(State#state.options, "the driver sent ~s", [What]);
        {_, Next} -> State#state{reader = Next}
    end.

%% This process keeps no binaries of a large message as garbage: it might not collect them for long.
without_garbage(State) ->
    true = garbage_collect(),
    State.

message(Text, Blocks, #state{workers = Workers, configuring = Configuring, options = #{work := Work} = Options} = State) ->
    case tessera_cluster_wire:decode_message(Text) of
        {ok, {request, Id, Head, Body}} -> request(Id, Head, {Body, Blocks}, State);
        {ok, {bundle, Messages}} -> lists:foldl(fun(Message, Now) -> message(Message, [], Now) end, State, Messages);
        {ok, {cancel, Id}} when is_map_key(Id, Workers) -> cancelled(maps:get(Id, Workers), State);
        {ok, {cancel, _}} -> State;
        {ok, {free, Ids}} -> released(Ids, State);
        {ok, leave} ->
            _ = [ok = Work:finish() || Configuring =:= none],   % MPI would wait for its start
            leave(0, State);
        _ -> fail(Options, "the driver sent a malformed message", [])
    end.

%% Starts a worker for the request. The worker gives its reply to the writer itself: on the way through this process a large one would be copied.
%% Uses of values are counted here, so they are counted in the order of arriving requests.
request(Id, Head, Body, #state{options = #{work := Work}, writer = Writer, limit = Limit, workers = Workers, requests = Requests} = State) ->
    {First, Count} = maps:get(makes, Head, {1, 0}),
    ok = tessera_rank_values:expect(First, Count, Id),
    ok = tessera_rank_values:retain(maps:get(uses, Head, [])),
    {Before, Lanes} = lane(Head, State),
    Turn = {Before, self()},
    Worker = spawn_link(fun() ->
                                case answer(Work, Head, Turn, Body) of
                                    finished -> exit(finished);
                                    {Values, Reply} ->
                                        Message = tessera_cluster_wire:encode(reply(Id, Values, Reply, Limit)),
                                        exit({replied, tessera_cluster_socket:send(Writer, Message)})
                                end
                        end),
    Request = #request{id = Id, head = Head, needed = Count, state = case Head of #{lane := _} -> waiting; #{} -> plain end},
    State#state{workers = Workers#{Id => Worker}, requests = Requests#{Worker => Request}, lanes = in_lane(Head, Worker, Lanes)}.

lane(#{lane := Lane}, #state{lanes = Lanes}) -> {maps:get(Lane, Lanes, none), Lanes};
lane(_, #state{lanes = Lanes}) -> {none, Lanes}.

in_lane(#{lane := Lane}, Worker, Lanes) -> Lanes#{Lane => Worker};
in_lane(_, _, Lanes) -> Lanes.

answer(Work, Head, Turn, {Text, Blocks}) ->
    case tessera_cluster_wire:decode(Text) of
        {ok, Request} -> Work:handle(tessera_cluster_blocks:unpack(Request, list_to_tuple(Blocks), fun(Block) -> Block end), Head, Turn);
        error -> {[], {error, invalid_argument, <<"the request is malformed">>}}
    end.

%% In the worker. An oversized reply becomes an error, and the values that the worker has made for it are freed.
reply(Id, Values, Reply, Limit) ->
    case tessera_cluster_blocks:pack(Reply, tessera_cluster_wire:extra({reply, Values}), Limit) of
        {ok, Body} -> {reply, Id, Values, Body};
        {error, Why} ->
            ok = tessera_rank_values:drop_added(self()),
            #{code := Code, message := Text} = tessera_cluster_error:too_large("the result", Why),
            {reply, Id, [], tessera_cluster_blocks:packed({error, Code, Text})}
    end.

%% The worker of a run that waits gets a message, and tells the other ranks that this one does not begin. Another worker is killed: the end of its
%% process ends a run that has begun.
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

%% Ends uses of values. When all results of an unfinished run were freed, the driver is told: it may cancel the run.
released(Ids, State) -> lists:foldl(fun released_of/2, State, tessera_rank_values:release(Ids)).

released_of(Id, #state{workers = Workers, requests = Requests} = State) ->
    case Workers of
        #{Id := Worker} ->
            #request{needed = Needed, state = Stage} = Request = maps:get(Worker, Requests),
            _ = [send({unneeded, Id}, State) || Needed =:= 1, Stage =/= plain],
            State#state{requests = Requests#{Worker := Request#request{needed = Needed - 1}}};
        #{} -> State
    end.

%% A process that is linked to this one has ended. The reply of a killed worker is an error; the driver drops it if it has cancelled the request.
ended(Writer, _, #state{writer = Writer} = State) -> disconnected(0, State);
ended(Pid, Reason, #state{configuring = Pid} = State) -> configured(Reason, State#state{configuring = none});
ended(Leader, Reason, #state{leader = Leader, options = Options}) -> fail(Options, "~0tP", [Reason, 20]);
ended(Pid, Reason, #state{workers = Workers, requests = Requests, lanes = Lanes} = State) ->
    case maps:take(Pid, Requests) of
        {#request{id = Id, head = Head}, Rest} ->
            _ = [tessera_rank_values:drop_added(Pid) || Reason =/= {replied, ok}, Reason =/= finished],
            Left = State#state{workers = maps:remove(Id, Workers), requests = Rest, lanes = without(Head, Pid, Lanes)},
            Replied = tell(replied(Reason, Id, Head, Left)),
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
replied(finished, Id, _, #state{finished = Finished} = State) -> State#state{finished = [Id | Finished]};
replied({tessera_rank_lost, Text}, _, Head, State) ->   % the driver ends the job, and starts a new one
    ok = fail_values(Head, {unavailable, Text}),
    send({failed, unavailable, Text}, State);
replied(Reason, Id, Head, State) ->
    Text = text("the request ended: ~0tP", [Reason, 20]),
    ok = fail_values(Head, {internal, Text}),
    send({reply, Id, [], tessera_cluster_blocks:packed({error, internal, Text})}, State).

%% The driver hears of runs that ended well by several at once while others wait here: it has sent enough of them.
tell(#state{finished = Finished, lanes = Lanes} = State) when length(Finished) >= ?TOLD; Finished =/= [], Lanes =:= #{} ->
    send({finished, Finished}, State#state{finished = []});
tell(State) -> State.

fail_values(Head, Cause) ->
    {First, Count} = maps:get(makes, Head, {1, 0}),
    tessera_rank_values:fail(lists:seq(First, First + Count - 1), Cause).

text(Format, Values) -> unicode:characters_to_binary(io_lib:format(Format, Values)).

send(Message, #state{writer = Writer} = State) ->
    ok = tessera_cluster_socket:send(Writer, tessera_cluster_wire:encode(Message)),
    State.
