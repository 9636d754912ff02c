%% @private A cluster without a driver: this VM is one rank of a job of MPI, and runs its own partitions of each program. One process
%% for each VM. All ranks make the same calls in the same order, so a call has the same number on all of them, and runs carry this
%% number. A process that calls takes a *turn*, one at a time. A turn that ends without a run ends that run on the other ranks, with
%% the error; so no rank waits for this one.
-module(tessera_cluster_joined).
-behaviour(gen_server).
-export([start_link/1, is_joined/0, find/1, joined/0, introduce/3, turn/3, again/1, room/2, program/2, executable/1, step/2, run/4, put/2, place/2, cause/2, leave/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([joined/0, program/0]).

%% Milliseconds that a run has to end by itself when its caller has died, or the node ends.
-define(CANCEL, 1000).
%% Milliseconds for finalizing MPI, beyond the time that other ranks have to leave.
-define(FINISH, 1000).

%% Bytes of a text in a header (group/carrier.h).
-define(TEXT, 87).

%% What any process may know: how to reach the process, and who this is.
-type joined() :: #{server := pid(), name := atom(), rank := non_neg_integer(), ranks := pos_integer(), devices := pos_integer()}.
-record(program, {executable :: tessera_nif:executable(), number :: non_neg_integer()}).
-opaque program() :: #program{}.

-record(state, {options      :: map(),
                rank         :: non_neg_integer(),
                ranks        :: pos_integer(),
                mpi          :: binary() | none,          % its version; none: this VM is the only rank
                number = 1   :: pos_integer(),            % of the turn that is taken, or the next one
                turn = none  :: none | turn(),
                waiting = queue:new() :: queue:queue({gen_server:from(), binary()}),
                infos = []   :: [map()],
                left = false :: boolean(),
                failed = none :: none | map()}).          % the error that has ended the job for this rank

%% The owner of the turn: a process that prepares a run, the name of its call, and the process that does the run.
-type turn() :: {Caller :: pid(), Monitor :: reference(), Name :: binary(), prepares | used | run()}.
-type run() :: {runs, Worker :: pid(), reference(), gen_server:from()}.

%% ---- what calls of other modules use

%% Options are checked, and include MPI's facts: `rank', `ranks', `mpi'.
-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(#{name := undefined} = Options) -> gen_server:start_link(?MODULE, Options, []);
start_link(#{name := Name} = Options) -> gen_server:start_link({local, Name}, ?MODULE, Options, []).

%% Whether the process is there.
-spec is_joined() -> boolean().
is_joined() -> persistent_term:get(?MODULE, none) =/= none.

%% None for another client.
-spec find(term()) -> joined() | none.
find(Client) ->
    case persistent_term:get(?MODULE, none) of
        #{server := Client} = Joined -> Joined;
        #{name := Client} = Joined when Client =/= undefined -> Joined;
        _ -> none
    end.

%% The cluster that this node has joined.
-spec joined() -> joined() | none.
joined() -> persistent_term:get(?MODULE, none).

%% Stores the facts that all ranks have sent; from now on the process is a client with `Devices' devices.
-spec introduce(pid(), [map()], pos_integer()) -> ok.
introduce(Server, Infos, Devices) -> gen_server:call(Server, {introduce, Infos, Devices}, infinity).

%% Calls F, which prepares one run and calls run/4, in a turn of the calling process. Before it prepares another one it calls again/1. The
%% name is for errors. A process that has the turn is refused another one.
-spec turn(joined(), fun(() -> iodata()), fun(() -> Result)) -> Result.
turn(#{server := Server}, Name, F) ->
    ok = answered(Server, {turn, short(unicode:characters_to_binary(Name()))}),
    try F()
    catch Class:Reason:Trace ->
            {Code, Text} = cause(Class, Reason),
            _ = answered(Server, {refuse, Code, short(Text)}),
            erlang:raise(Class, Reason, Trace)
    after
        _ = answered(Server, done)
    end.

%% As much of a text as headers have, in whole characters.
short(Text) when byte_size(Text) =< ?TEXT -> Text;
short(Text) ->
    case unicode:characters_to_binary(binary:part(Text, 0, ?TEXT)) of
        {_, Whole, _} -> Whole;
        Whole -> Whole
    end.

%% The turn of the calling process has another run, if there was one.
-spec again(joined()) -> ok.
again(#{server := Server}) -> answered(Server, again).

%% The error that other ranks get for an exception.
-spec cause(atom(), term()) -> {atom(), binary()}.
cause(error, {Code, Text}) when is_atom(Code), is_binary(Text) -> {Code, Text};
cause(error, #{'__struct__' := 'Elixir.ArgumentError', message := Text}) when is_binary(Text) -> {invalid_argument, Text};
cause(error, #{'__exception__' := true, message := Text}) when is_binary(Text) -> {internal, Text};
cause(Class, Reason) -> {internal, unicode:characters_to_binary(io_lib:format("~0tP", [{Class, Reason}, 20]))}.

%% Sends a request to the rank's server. An error in the reply is raised, and so is a server that is gone.
answered(Server, Request) ->
    try gen_server:call(Server, Request, infinity) of
        {error, Error} -> tessera_cluster_error:raise(Error);
        Reply -> Reply
    catch exit:_ -> tessera_cluster_error:raise(gone())
    end.

gone() -> tessera_cluster_error:new(unavailable, "this rank has left the cluster", []).

%% Whether the ranks can have that many partitions.
-spec room(joined(), pos_integer()) -> tessera_platform:room().
room(#{ranks := Ranks, devices := Devices}, Partitions) -> tessera_cluster_run:room_of(Ranks, Devices, Partitions).

%% Compiles a partitioned program for this rank. All ranks must have programs of the same text.
-spec program(tessera_nif:builder(), [atom() | {precision, atom()}]) -> program() | tessera_nif:error().
program(Part, Options) ->
    case tessera_nif:describe(Part) of
        {error, _} = Error -> Error;
        {_, Hash} ->
            <<Number:64, _/bits>> = erlang:md5([Hash, term_to_binary(Options)]),
            compiled(tessera_run:compile(Part, [{client, host} | Options]), max(1, Number))
    end.

compiled({error, _} = Error, _) -> Error;
compiled(Executable, Number) -> #program{executable = Executable, number = Number}.

-spec executable(program()) -> tessera_nif:executable().
executable(#program{executable = Executable}) -> Executable.

%% The program as a step of a call: only ranks that run it as the same step run it together.
-spec step(program(), term()) -> program().
step(#program{number = Number} = Program, Step) ->
    <<Other:64, _/bits>> = erlang:md5(term_to_binary({Number, Step})),
    Program#program{number = max(1, Other)}.

%% Runs the partitions of this rank; in a turn. Their results, in lists as the arguments. All ranks get the same error, so all
%% collect garbage and begin again where one of them had no memory.
-spec run(joined(), program(), [[tessera:operand()]], {non_neg_integer(), non_neg_integer()}) -> [[tessera:tensor()]] | {error, map()}.
run(#{server := Server, ranks := Ranks} = Joined, #program{executable = Executable, number = Number}, Lists, {Threads, Donated}) ->
    Here = [[here(Operand) || Operand <- List] || List <- Lists],
    Measures = tessera_run:events_of_run(Ranks),
    Run = fun() -> noted(Joined, {length(Lists), Executable}, answered_run(Server, {run, {Executable, Here, Threads, Donated, Measures}, Number})) end,
    Again = fun() ->
                    ok = again(Joined),
                    Run()
            end,
    case Run() of
        {error, #{code := resource_exhausted}} = First -> tessera_memory:result(First, Again, fun(Cause) -> {error, Cause} end);
        {pressure, Results} -> tessera_memory:relieved(Results);
        Results -> Results
    end.

%% The result of a run. One that was measured is noted, unless it failed.
noted(#{server := Server, name := Name}, {Partitions, Executable}, {measured, Measures, Result}) ->
    Client = case Name of undefined -> Server; _ -> Name end,
    ok = case Result of
             {error, _} -> ok;
             _ -> tessera_run:note(Client, {Partitions, Measures}, Executable)
         end,
    Result;
noted(_, _, Result) -> Result.

answered_run(Server, Request) ->
    try gen_server:call(Server, Request, infinity)
    catch exit:_ -> {error, gone()}
    end.

%% A tensor of another node is read from there.
here(Operand) ->
    case tessera_remote:is_elsewhere(Operand) of
        true -> fetched(tessera_remote:fetch(Operand));
        false -> Operand
    end.

fetched({error, Error}) -> tessera_cluster_error:raise(Error);
fetched(Tensor) -> Tensor.

%% From the parts of all partitions this rank's, on its devices.
-spec put(joined(), [tessera:tensor()]) -> [tessera:tensor()].
put(#{rank := Rank, ranks := Ranks}, Parts) ->
    Each = length(Parts) div Ranks,
    Own = lists:sublist(Parts, Rank * Each + 1, Each),
    [place(Part, Device) || {Device, Part} <- lists:zip(lists:seq(0, Each - 1), Own)].

%% A tensor on the device of the I-th partition of this rank, from 0.
-spec place(tessera:tensor(), non_neg_integer()) -> tessera:tensor().
place(Tensor, I) -> tessera:to_device(here(Tensor), {host, I}).

%% Leaves when the calls before have ended; waits until all ranks leave, and finalizes MPI.
-spec leave(pid() | atom()) -> ok | {error, map()}.
leave(Cluster) ->
    try gen_server:call(Cluster, leave, infinity)
    catch exit:_ -> {error, gone()}
    end.

%% ---- the process

init(#{rank := Rank, ranks := Ranks, mpi := Mpi} = Options) ->
    process_flag(trap_exit, true),
    ok = tessera_cluster_process:label({?MODULE, Rank}),
    {ok, #state{options = Options, rank = Rank, ranks = Ranks, mpi = Mpi}}.

handle_call({introduce, Infos, Devices}, _, #state{options = #{name := Name}, rank = Rank, ranks = Ranks} = State) ->
    ok = persistent_term:put(?MODULE, #{server => self(), name => Name, rank => Rank, ranks => Ranks, devices => Devices}),
    ok = tessera_cluster_names:set(Name),
    ok = tessera_cluster_names:up(Name),
    {reply, ok, State#state{infos = Infos}};
handle_call({turn, _}, _, #state{left = true} = State) -> {reply, {error, gone()}, State};
handle_call({turn, _}, _, #state{failed = #{} = Error} = State) -> {reply, {error, Error}, State};
handle_call({turn, Name}, {Caller, _}, #state{turn = {Caller, _, Other, _}} = State) -> {reply, {error, nested(Name, Other)}, State};
handle_call({turn, Name}, From, #state{turn = none} = State) -> {noreply, taken(From, Name, State)};
handle_call({turn, Name}, From, #state{waiting = Waiting} = State) -> {noreply, State#state{waiting = queue:in({From, Name}, Waiting)}};
handle_call({run, Call, Program}, {Caller, _} = From, #state{turn = {Caller, Monitor, Name, prepares}} = State) ->
    {Worker, Own} = start_worker(Call, Program, Name, State),
    {noreply, State#state{turn = {Caller, Monitor, Name, {runs, Worker, Own, From}}}};
handle_call({refuse, Code, Text}, {Caller, _}, #state{turn = {Caller, _, _, prepares}} = State) -> {reply, ok, refused(Code, Text, State)};
handle_call(again, {Caller, _}, #state{turn = {Caller, Monitor, Name, used}} = State) ->
    {reply, ok, State#state{turn = {Caller, Monitor, Name, prepares}}};
handle_call(done, {Caller, _}, #state{turn = {Caller, Monitor, _, _}} = State) ->
    true = demonitor(Monitor, [flush]),
    {reply, ok, next(refused(internal, <<"the call ended without a run">>, State))};
handle_call(leave, _, #state{left = true} = State) -> {reply, {error, gone()}, State};
handle_call(leave, {Caller, _}, #state{turn = {Caller, _, Other, _}} = State) -> {reply, {error, nested(<<"leave">>, Other)}, State};
handle_call(leave, From, #state{turn = none} = State) -> {noreply, leaving(From, State)};
handle_call(leave, From, #state{waiting = Waiting} = State) -> {noreply, State#state{waiting = queue:in({From, leave}, Waiting)}};
handle_call(info, _, State) -> {reply, info(State), State};
handle_call(options, _, #state{options = Options} = State) -> {reply, Options, State};
handle_call(connections, _, State) ->
    {reply, {error, tessera_cluster_error:new(unimplemented, "this node has joined the cluster as one of its ranks, and is not its driver", [])}, State};
handle_call(_, _, State) -> {reply, ok, State}.   % of a turn that the end of the job has taken

handle_cast(_, State) -> {noreply, State}.

handle_info({ran, Worker, Result}, #state{turn = {_, _, _, {runs, Worker, Monitor, _}}} = State) ->
    true = demonitor(Monitor, [flush]),
    {noreply, ended(Result, State)};
handle_info({'DOWN', Monitor, process, Caller, _}, #state{turn = {Caller, Monitor, _, Stage}} = State) -> caller_died(Stage, State);
handle_info({'DOWN', Monitor, process, Worker, Reason}, #state{turn = {_, _, _, {runs, Worker, Monitor, _}}} = State) ->
    {noreply, ended({error, tessera_cluster_error:new(internal, "the run ended: ~0tP", [Reason, 20])}, State)};
handle_info({kill, Worker}, State) ->
    exit(Worker, kill),
    {noreply, State};
handle_info(_, State) -> {noreply, State}.

terminate(_, State) ->
    _ = persistent_term:erase(?MODULE),
    Idle = stopped(State),
    case Idle of
        #state{left = false, turn = none} -> close(announced(Idle));
        _ -> ok
    end.

%% The run that is going on has some time to end.
stopped(#state{waiting = Waiting} = State) ->
    _ = [gen_server:reply(From, {error, gone()}) || {From, _} <- queue:to_list(Waiting)],
    without_run(State#state{waiting = queue:new()}).

without_run(#state{turn = {_, _, _, {runs, Worker, Monitor, _}}} = State) ->
    receive {'DOWN', Monitor, process, Worker, _} -> State#state{turn = none, number = State#state.number + 1}
    after ?CANCEL -> State
    end;
without_run(#state{turn = {_, _, _, prepares}} = State) -> State#state{turn = none};
without_run(State) -> State#state{turn = none}.

%% ---- turns

taken({Caller, _} = From, Name, State) ->
    gen_server:reply(From, ok),
    State#state{turn = {Caller, monitor(process, Caller), Name, prepares}}.

%% It would wait for itself.
nested(Name, Other) ->
    tessera_cluster_error:new(failed_precondition, "~ts: called within another call of the cluster, ~ts", [Name, Other]).

%% The turn is free; the next one gets it.
next(#state{waiting = Waiting, failed = Failed} = State) ->
    case queue:out(Waiting) of
        {empty, _} -> State#state{turn = none};
        {{value, {From, leave}}, Rest} -> leaving(From, State#state{turn = none, waiting = Rest});
        {{value, {From, Name}}, Rest} when Failed =:= none -> taken(From, Name, State#state{waiting = Rest});
        {{value, {From, _}}, Rest} ->
            gen_server:reply(From, {error, Failed}),
            next(State#state{waiting = Rest})
    end.

%% The run of this turn ends on the other ranks, unless it has begun here. To them `unavailable' means that this rank is gone.
refused(unavailable, Text, State) -> refused(failed_precondition, Text, State);
refused(Code, Text, #state{turn = {Caller, Monitor, Name, prepares}} = State) ->
    ok = refuse(Code, Text, State),
    State#state{number = State#state.number + 1, turn = {Caller, Monitor, Name, used}};
refused(_, _, State) -> State.

refuse(_, _, #state{mpi = none}) -> ok;
refuse(Code, Text, #state{number = Number}) ->
    _ = tessera_nif:run_refuse(Number, Code, Text),
    ok.

%% A run that does not see in time that its caller has died is ended with its process.
caller_died({runs, Worker, _, _}, State) ->
    Worker ! cancel,
    _ = erlang:send_after(?CANCEL, self(), {kill, Worker}),
    {noreply, State};
caller_died(_, State) -> {noreply, next(refused(cancelled, <<"the calling process has ended">>, State))}.

%% After a run.
ended({measured, Measures, Result}, State) -> ended(Result, fun(Reply) -> {measured, Measures, Reply} end, State);
ended(Result, State) -> ended(Result, fun(Reply) -> Reply end, State).

ended(Result, Wrap, #state{turn = {Caller, Own, Name, {runs, _, _, From}}, infos = Infos, number = Number} = State) ->
    Reply = with_host(Infos, Result),
    gen_server:reply(From, Wrap(Reply)),
    over(State#state{turn = {Caller, Own, Name, used}, number = Number + 1, failed = lost(Reply, State)}).

%% No rank comes back.
lost({error, #{code := unavailable} = Error}, #state{failed = none, mpi = Mpi}) when Mpi =/= none -> Error;
lost(_, #state{failed = Failed}) -> Failed.

%% Unless its caller is there to say so, the turn is done.
over(#state{turn = {Caller, Monitor, _, used}} = State) ->
    case is_process_alive(Caller) of
        true -> State;
        false ->
            true = demonitor(Monitor, [flush]),
            next(State)
    end.

%% ---- runs

start_worker(Call, Program, Name, #state{options = Options, number = Number, mpi = Mpi, infos = Infos}) ->
    Server = self(),
    Timeout = maps:get(case Infos of [] -> start_timeout; _ -> call_timeout end, Options),   % the first run is a part of joining
    Run = {Number, Program, Name, case Timeout of infinity -> 0; _ -> Timeout end},
    spawn_monitor(fun() -> Server ! {ran, self(), measured(Call, fun() -> finished(begun(Mpi, Call, Run)) end)} end).

%% The run of a profiled caller has a profile of its own.
measured({_, _, _, _, none}, Work) -> Work();
measured({_, _, _, _, Events}, Work) ->
    {Profile, _} = tessera_nif:profile_start(Events),
    Result = Work(),
    {measured, tessera_nif:profile_stop(Profile), Result}.

begun(none, {Executable, Lists, Threads, Donated, _}, _) -> current(tessera_nif:run_group(Executable, Lists, Threads, Donated));
begun(_, {Executable, Lists, Threads, Donated, _}, Run) ->
    case tessera_nif:run_rank(Executable, Lists, Threads, Donated, Run) of
        {waiting, Begun} -> tessera_nif:run_resume(Begun);
        Failed -> current(Failed)
    end.

%% A program of an earlier load of the library, whose ranks are lost with it.
current(stale) -> {error, tessera_cluster_error:new(failed_precondition, "the program was made before the library was loaded again", [])};
current(Result) -> Result.

finished({waiting, Run}) ->
    receive
        {ready, Run} -> finished(tessera_nif:run_resume(Run));
        cancel -> {error, tessera_cluster_error:new(cancelled, "the calling process has ended", [])}
    end;
finished({profiled, _, Result}) -> finished(Result);
finished(Result) -> Result.

%% An error of another rank, or of a lost one, begins with the rank.
with_host(Infos, {error, #{message := Text} = Error} = Result) ->
    case re:run(Text, "^rank ([0-9]+)(.*)$", [{capture, all_but_first, binary}, dotall]) of
        {match, [Rank, Rest]} -> {error, Error#{message := <<"rank ", Rank/binary, (host(binary_to_integer(Rank), Infos))/binary, Rest/binary>>}};
        nomatch -> Result
    end;
with_host(_, Result) -> Result.

host(Rank, Infos) ->
    case [Host || #{rank := R, host := Host} <- Infos, R =:= Rank] of
        [Host | _] -> <<" on ", Host/binary>>;
        [] -> <<>>
    end.

%% ---- leaving

%% Other ranks that call a program instead get an error that says so.
leaving(From, State) ->
    Left = announced(State),
    _ = spawn(fun() -> gen_server:reply(From, close(Left)) end),
    stopped(Left#state{left = true}).

announced(#state{failed = none} = State) ->
    ok = refuse(unavailable, <<"it has left the cluster">>, State),
    State#state{number = State#state.number + 1};
announced(State) -> State.

close(#state{mpi = none}) -> ok;
close(#state{options = #{call_timeout := Timeout}, failed = Failed, infos = Infos}) ->
    case tessera_nif:rank_close(case Timeout of infinity -> 1 bsl 40; _ -> Timeout + ?FINISH end) of
        {error, _} when Failed =/= none -> {error, Failed};
        Result -> with_host(Infos, Result)
    end.

info(#state{rank = Rank, mpi = Mpi, infos = Infos, left = Left, failed = Failed}) ->
    {Sent, Received} = tessera_nif:rank_moved(),
    #{mpi_sent_bytes => Sent, mpi_received_bytes => Received, state => if Left -> left; Failed =/= none -> down; true -> up end, rank => Rank, ranks => Infos, mpi => Mpi,
      last_error => case Failed of none -> none; #{code := Code, message := Message} -> {Code, Message} end}.
