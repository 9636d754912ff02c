%% @private Collecting garbage for tensors. The collector does not know how much
%% memory a handle stands for, so it is asked when there is reason to.
-module(tessera_memory).
-include("tessera.hrl").
-export([made/3, result/3, relieved/1]).

-define(TIMEOUT, 5000).

%% The tensor that Make makes, for the function of the API called Name with Args.
-spec made(atom(), [term()], fun(() -> term())) -> tessera:tensor().
made(Name, Args, Make) ->
    case Make() of
        #tessera{} = T -> T;
        Other -> result(Other, Make, fun(Cause) -> tessera_error:raise(Name, Args, Cause) end)
    end.

%% What a function that makes tensors returned; `Again' repeats the call.
-spec result(term(), fun(() -> term()), fun((map()) -> no_return())) -> term().
result({pressure, Made}, _Again, _Fail) ->
    relieved(Made);
result({error, #{code := resource_exhausted}}, Again, Fail) ->
    collect_self(),
    case Again() of
        {error, #{code := resource_exhausted}} ->
            collect_others(),
            finally(Again(), Fail);
        Other ->
            finally(Other, Fail)
    end;
result({error, Cause}, _Again, Fail) ->
    Fail(Cause);
result(Made, _Again, _Fail) ->
    Made.

%% The caller is collected, since what it made came with {pressure, Made}.
-spec relieved(Made) -> Made.
relieved(Made) ->
    collect_self(),
    Made.

finally({error, Cause}, Fail) -> Fail(Cause);
finally({pressure, Made}, _Fail) -> Made;
finally(Made, _Fail) -> Made.

%% Destructors run when the process is scheduled out.
collect_self() ->
    true = garbage_collect(),
    erlang:yield(),
    tessera_nif:collected().

%% Any process may hold tensors that nobody needs any more. One collects at a
%% time, in a process of its own, which late answers find gone.
collect_others() ->
    Collect = fun() -> global:trans({?MODULE, self()}, fun collect_all/0, [node()]) end,
    {Pid, Monitor} = spawn_monitor(Collect),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    collect_self().

collect_all() ->
    Asked = [{Pid, ask(Pid)} || Pid <- processes(), Pid =/= self()],
    Deadline = erlang:monotonic_time(millisecond) + ?TIMEOUT,
    lists:foreach(fun({_, Tag}) -> await(Tag, Deadline) end, Asked),
    timer:sleep(1).

ask(Pid) ->
    Tag = make_ref(),
    async = garbage_collect(Pid, [{async, Tag}]),
    Tag.

%% A process that runs native code answers late; it is not waited for beyond the deadline.
await(Tag, Deadline) ->
    receive
        {garbage_collect, Tag, _} -> ok
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> ok
    end.
