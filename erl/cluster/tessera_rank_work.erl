%% @private Executes the driver's requests on a rank. Each request has a worker, a process that calls handle/3. Tensors and compiled programs are values
%% in tessera_rank_values.
-module(tessera_rank_work).
-include("tessera.hrl").
-export([configure/1, handle/3, finish/0, mpi/0, shared/0]).

%% Milliseconds that MPI has to finalize.
-define(FINISH, 1000).

%% Applies the driver's configuration; returns the rank's devices, threads, CPUs and versions.
-spec configure(map()) -> {ok, map()} | {error, map()}.
configure(#{devices := Devices, threads := Threads} = Config) ->
    Mpi = start_mpi(Config),
    ok = application:set_env(tessera, host_devices, Devices),
    _ = [application:set_env(tessera, memory_limit, Limit) || #{memory_limit := Limit} <- [Config], is_integer(Limit)],
    case application:ensure_all_started(tessera) of
        {ok, _} ->
            case tessera_client:open(host, #{device_count => Devices, threads => Threads}) of
                ok -> with_mpi(Mpi, Config, info(Config));
                {error, Error} -> {error, Error}
            end;
        {error, Reason} -> failed("the application does not start: ~0tP", [Reason, 20])
    end.

info(#{devices := Devices, threads := Threads}) ->
    #{devices => Devices, threads => Threads, cpus => tessera_nif:cpu_count(), mpi => none}.

failed(Format, Values) -> {error, tessera_cluster_error:new(failed_precondition, Format, Values)}.

%% Starts MPI in a process of its own, as it takes as long as starting the application. Only under mpirun, and where Tessera was built with MPI.
start_mpi(#{deadline := Deadline}) ->
    Path = mpi(),
    case os:getenv("OMPI_COMM_WORLD_SIZE") =/= false andalso filelib:is_regular(Path) andalso entered(shared()) of
        ok ->
            Self = self(),
            Ref = make_ref(),
            _ = spawn(fun() -> Self ! {Ref, tessera_nif:rank_open(unicode:characters_to_binary(Path), Deadline,
                                                                tessera_rank:version_number())} end),
            Ref;
        false -> none;
        {error, Why} -> {error, tessera_cluster_error:new(failed_precondition, "no memory that ranks of this host can share: ~ts", [Why])}
    end.

entered(none) -> ok;
entered(Mark) -> tessera_cluster_leftovers:enter(Mark).

%% The library of MPI: it exists if Tessera was built with MPI.
-spec mpi() -> file:filename_all().
mpi() -> filename:join(filename:dirname(tessera_library:path()), "tessera_mpi.so").

%% The mark of this start, if MPI shares memory in a folder with that name.
-spec shared() -> tessera_cluster_leftovers:mark() | none.
shared() ->
    {Variable, _} = tessera_cluster_leftovers:variable(""),
    case {os:getenv(Variable), os:getenv("OMPI_MCA_osc_sm_backing_directory")} of
        {[_ | _] = Mark, [_ | _] = Folder} ->
            case tessera_cluster_leftovers:folder(tessera_cluster_leftovers:shared_memory(), Mark) of
                Folder -> Mark;
                _ -> none
            end;
        _ -> none
    end.

with_mpi({error, Error}, _, _) -> {error, Error};
with_mpi(none, _, Info) -> {ok, Info#{isa => isa()}};
with_mpi(Ref, #{rank := Rank, ranks := Ranks}, Info) ->
    receive
        {Ref, {Rank, Ranks, Version}} ->
            _ = [tessera_cluster_leftovers:unname(Mark) || Mark <- [shared()], Mark =/= none],   % all ranks have agreed on a version over MPI
            {ok, Info#{mpi => Version, isa => isa()}};
        {Ref, {error, Error}} -> {error, Error};
        {Ref, {Other, Count, Version}} ->
            failed("~ts says that this is rank ~b of ~b: is it the library of the mpirun that started it?", [Version, Other, Count])
    end.

%% The instruction set of this rank's compiler: with MPI the least of all ranks.
isa() -> element(2, tessera_nif:rank_isa()).

-type reply() :: {ok, term()} | {error, Code :: atom(), Text :: binary()}.

%% Executes a request, with blocks in the places of large binaries. Returns the values that were made for the reply, with their sizes in bytes, and the
%% reply; an error of the user's program is also a reply. A run that ended well has no reply. Turn has the worker that has to end before a run begins,
%% or none, and the rank's main process.
-spec handle(term(), tessera_cluster_wire:head(), {none | pid(), pid()}) -> {[{pos_integer(), non_neg_integer()}], reply()} | finished.
handle({run, Program, Run, Options}, Head, Turn) ->
    Results = results(Head),
    case noted(attempt(fun() -> run({Program, Run, Options}, Head, Turn) end), Results) of
        {ok, ok} -> finished;
        Error -> {[], Error}
    end;
handle({put, Values}, Head, _) ->
    Results = results(Head),
    {[], noted(attempt(fun() -> [made(Value) || Value <- Values] end), Results)};
handle({program, Source, Options}, Head, _) ->
    [Id] = results(Head),
    {[], case tessera_rank_values:is_pending(Id) of
             true -> noted(attempt(fun() -> [compiled(tessera_cluster_blocks:binary(Source), Options)] end), [Id]);
             false -> {ok, ok}   % this rank has compiled it already for the others of its host
         end};
handle({apply, Fun, Args, Blocks}, _, _) ->
    case attempt(fun() -> apply(term(Fun), with_values(term(Args), Blocks)) end) of
        {ok, Result} ->
            {Reply, Values} = for_driver(Result),
            {Values, {ok, Reply}};
        Error -> {[], Error}
    end;
handle(Request, _, _) -> {[], attempt(fun() -> request(Request) end)}.

results(#{makes := {First, Count}}) -> lists:seq(First, First + Count - 1).

%% Sets the values of a request's results. Without a result for each, or with an error, all of them fail.
noted({ok, Results}, Ids) when length(Results) =:= length(Ids) ->
    lists:foreach(fun({Id, Result}) -> tessera_rank_values:set(Id, Result) end, lists:zip(Ids, Results)),
    {ok, ok};
noted({ok, Results}, Ids) ->
    noted({error, internal, text("~b results, expected ~b", [length(Results), length(Ids)])}, Ids);
noted({error, Code, Text} = Error, Ids) ->
    ok = tessera_rank_values:fail(Ids, {Code, Text}),
    Error.

attempt(F) ->
    try done(F())
    catch
        exit:({tessera_rank_lost, _} = Lost) -> exit(Lost);   % no program can run in this job any more
        error:{Code, Message} when is_atom(Code), is_binary(Message) -> {error, Code, Message};
        Class:Reason:Trace -> {error, internal, text("~0tP", [{Class, Reason, Trace}, 30])}
    end.

done({error, #{code := Code, message := Text}}) -> {error, Code, Text};
done(Result) -> {ok, Result}.

text(Format, Values) -> unicode:characters_to_binary(io_lib:format(Format, Values)).

request(noop) -> ok;
request(memory) ->
    #{live := Live, peak := Peak} = tessera_nif:memory(),
    {Sent, Received} = tessera_nif:rank_moved(),
    #{memory => #{vm => erlang:memory(total), live => Live, peak => Peak}, mpi_sent_bytes => Sent, mpi_received_bytes => Received};
request(clear_cache) -> tessera:clear_cache();
request({measured, Groups, Events}) ->
    [{Note, tessera_cluster_measures:merged(measures_of(Ids), Events div length(Groups))} || {Note, Ids} <- Groups];
request(clock) -> tessera_run:clock();
request({read, Id, Elements}) -> contents(tessera_rank_values:await(Id), Elements);
request(Other) -> {error, tessera_cluster_error:new(unimplemented, "no such request: ~0tP", [Other, 10])}.

contents(#tessera{ref = Ref}, Elements) -> raised(tessera_nif:to_binary(Ref, Elements)).

raised({error, #{code := Code, message := Message}}) -> error({Code, Message});
raised(Result) -> Result.

%% A block becomes the tensor, unless that needs memory of its own.
made({_, _, {error, Error}, _}) -> tessera_cluster_error:raise(Error);
made({Type, Shape, Bytes, Device}) when is_binary(Bytes) ->
    tessera_memory:made(put, [], fun() -> tessera_nif:from_binary(Bytes, Type, Shape, true, {host, Device}) end);
made({Type, Shape, Block, Device}) ->
    case tessera_nif:block_tensor(Block, Type, Shape, {host, Device}) of
        Bytes when is_binary(Bytes) -> made({Type, Shape, Bytes, Device});
        Made -> tessera_memory:made(put, [], fun() -> Made end)
    end.

compiled(Source, Options) -> raised(tessera_run:compile(raised(program(Source)), [{client, host} | Options])).

%% No program text begins with a zero byte.
program(<<0, _/binary>> = Packed) -> tessera_nif:expression_unpack(Packed);
program(Text) -> tessera_nif:parse(Text).

%% ---- terms of functions with tensors in them

term(Encoded) -> binary_to_term(tessera_cluster_blocks:binary(Encoded)).

%% Replaces the stand-ins in arguments by tensors, and by blocks as binaries.
with_values(Term, Blocks) ->
    Replaced = tessera_cluster_terms:replace(fun(What, Type, Shape) -> with_value(What, Type, Shape, Blocks) end, Term),
    tessera_cluster_blocks:unpack(Replaced, Blocks, fun tessera_cluster_blocks:binary/1).

with_value({value, Id}, _, _, _) -> tessera_rank_values:await(Id);
with_value({bytes, Bytes}, Type, Shape, Blocks) -> made({Type, Shape, tessera_cluster_blocks:block(Bytes, Blocks), 0}).

%% Adds the tensors in a result to the values of this rank. In the reply each has a stand-in with its position, from 1, in the list of values.
for_driver(Term) ->
    {Reply, {_, Values}} = tessera_cluster_terms:fold(fun for_driver/2, {0, []}, Term),
    {Reply, lists:reverse(Values)}.

for_driver(#tessera{ref = Ref} = Tensor, {Count, Values}) when is_reference(Ref) ->
    Value = {tessera_rank_values:add(Tensor), tessera:byte_size(Tensor)},
    {tessera_cluster_terms:stand_in(Count + 1, Tensor), {Count + 1, [Value | Values]}};
for_driver(Other, Acc) -> {Other, Acc}.

%% ---- runs

%% The results of this rank's partitions, one after the other. If this rank cannot begin, it tells the others, which would wait for it.
run({Program, Run, #{threads := Threads} = Options} = What, Head, {Before, Main}) ->
    try
        ok = after_worker(Before),
        {tessera_rank_values:await(Program), operands(What, Head)}
    of {Executable, {Lists, Donated}} ->
            Measure = measure(Options),
            Begun = tessera_nif:run_rank(Executable, Lists, Threads, Donated, Run),
            Main ! {begun, self()},   % from now on the end of this process ends the run on all ranks
            lists:append(resumed(Begun)) ++ [{length(Lists), Measures} || Measures <- measures(Measure)]
    catch error:Reason ->
            {Code, Text} = cause(Reason),
            _ = tessera_nif:run_refuse(Run, Code, Text),
            error({Code, Text})
    end.

%% The profile of a run of a profiled process. It ends with this process, also when the run fails.
measure(#{measures := Events}) when is_integer(Events) -> tessera_nif:profile_start(Events);
measure(_) -> none.

measures({Profile, _}) -> [tessera_nif:profile_stop(Profile)];
measures(_) -> [].

%% Runs that failed are left out.
measures_of(Ids) ->
    lists:append([try [tessera_rank_values:await(Id)]
                  catch error:{Code, _} when Code =/= cancelled -> []
                  end || Id <- Ids]).

cause({Code, Text} = Cause) when is_atom(Code), is_binary(Text) -> Cause;
cause(Other) -> {internal, text("~0tP", [Other, 30])}.

after_worker(none) -> ok;
after_worker(Worker) ->
    Monitor = monitor(process, Worker),
    receive
        {'DOWN', Monitor, process, _, _} -> ok;
        cancel -> error({cancelled, <<"the run was cancelled">>})
    end.

%% The operands of each partition, and the bits of the donated ones. A value that another request uses as well is not donated.
operands({_, _, #{lists := Lists, values := Values, donated := Donated}}, Head) ->
    New = list_to_tuple([made(Value) || Value <- Values]),
    Operands = [[operand(Operand, New) || Operand <- List] || List <- Lists],
    Shared = [Id || Id <- maps:get(takes, Head, []), tessera_rank_values:count(Id) > 1],
    {Operands, lists:foldl(fun(List, Bits) -> Bits band bnot bits(List, Shared) end, Donated, Lists)}.

operand({id, Id}, _) -> tessera_rank_values:await(Id);
operand({new, Index}, New) -> element(Index, New);
operand(Number, _) -> Number.

%% The bits of the positions that have these values.
bits(List, Ids) ->
    lists:sum([1 bsl Position || {Position, {id, Id}} <- lists:zip(lists:seq(0, length(List) - 1), List), lists:member(Id, Ids)]).

%% A run that was just begun.
resumed({waiting, Run}) -> finished(tessera_nif:run_resume(Run));
resumed(Failed) -> finished(Failed).

%% While other ranks compute, this process waits and holds no thread. When memory is short, garbage is collected, but the run is not repeated: the
%% other ranks have seen it begin.
finished({waiting, Run}) ->
    receive
        {ready, Run} -> finished(tessera_nif:run_resume(Run));
        cancel -> error({cancelled, <<"the run was cancelled">>})
    end;
finished({error, #{code := unavailable, message := Text}}) -> exit({tessera_rank_lost, Text});
finished({profiled, _, Result}) -> finished(Result);
finished({pressure, Lists}) -> tessera_memory:relieved(Lists);
finished(Result) -> raised(Result).

%% Finalizes MPI, if it was started. If it takes too long the rank ends without that.
-spec finish() -> ok.
finish() ->
    _ = [tessera_cluster_leftovers:name(Mark) || Mark <- [shared()], Mark =/= none],
    _ = tessera_nif:rank_close(?FINISH),
    ok.
