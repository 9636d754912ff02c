%% @private Runs of programs in this process. While a plugin computes, or other ranks do, the process waits for a message and the
%% run holds no scheduler.
-module(tessera_run).
-export([run/4, group/4, op/2, compile/2, awaited/1]).

-spec run(reference(), [tessera_type:operand()], non_neg_integer(), non_neg_integer()) -> term().
run(Executable, Args, Threads, Donated) -> awaited(tessera_nif:run(Executable, Args, Threads, Donated)).

-spec group(reference(), [[tessera_type:operand()]], non_neg_integer(), non_neg_integer()) -> term().
group(Executable, Lists, Threads, Donated) -> awaited(tessera_nif:run_group(Executable, Lists, Threads, Donated)).

-spec compile(tessera_nif:builder(), [atom() | {client, atom()}]) -> tessera_nif:executable() | tessera_nif:error().
compile(Builder, Options) -> awaited(tessera_nif:compile(Builder, Options)).

%% The result of an eager op on these operands, from the return value of tessera_nif:op/4. A device runs it as a
%% program.
-spec op(term(), [tessera_type:operand()]) -> term().
op({pressure, {Step, _} = Unfinished}, Operands) when Step =:= waiting; Step =:= program -> op(Unfinished, Operands); % the run tells again
op({waiting, _} = Waiting, Operands) -> op(awaited(Waiting), Operands);
op({program, Executable}, Operands) ->
    case run(Executable, Operands, 0, 0) of
        [Result] -> Result;
        {pressure, [Result]} -> {pressure, Result};
        Results -> Results
    end;
op(Result, _) -> Result.

%% The result of a function of tessera_nif that returned this: while it is {waiting, _}, a device works, or other ranks.
-spec awaited(term()) -> term().
awaited({waiting, Run}) ->
    receive
        {ready, Run} -> awaited(tessera_nif:run_resume(Run))
    end;
awaited(Result) -> Result.
