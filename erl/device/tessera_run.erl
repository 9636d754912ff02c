%% @private Runs of programs in this process. While a plugin computes, or other ranks do, the process waits for a message and the
%% run holds no scheduler.
-module(tessera_run).
-export([run/4, group/4, awaited/1]).

-spec run(reference(), [tessera:operand()], non_neg_integer(), non_neg_integer()) -> term().
run(Executable, Args, Threads, Donated) -> awaited(tessera_nif:run(Executable, Args, Threads, Donated)).

-spec group(reference(), [[tessera:operand()]], non_neg_integer(), non_neg_integer()) -> term().
group(Executable, Lists, Threads, Donated) -> awaited(tessera_nif:run_group(Executable, Lists, Threads, Donated)).

%% Of what tessera_nif:run/4, run_group/4, run_answer/2 and run_resume/1 return.
-spec awaited(term()) -> term().
awaited({waiting, Run}) ->
    receive
        {ready, Run} -> awaited(tessera_nif:run_resume(Run))
    end;
awaited(Result) -> Result.
