%% The programs that test/nx/record.exs recorded, as texts with their arguments'
%% bytes, for test/xla/cases.c.
-module(xla_recorded).
-export([write/1]).

%% Writes NAME.ts and NAME.args into a folder and prints the omitted ones.
-spec write(file:filename()) -> ok.
write(Folder) ->
    Groups = tessera_nx_replay_tests:programs(),
    Results = [write(Folder, Group, N, Program)
               || {Group, Programs} <- Groups,
                  {N, Program} <- lists:zip(lists:seq(1, length(Programs)), Programs)],
    io:format("recorded programs: ~b written, ~b left out: they call Elixir~n",
              [length([ok || ok <- Results]), length([left_out || left_out <- Results])]).

write(Folder, Group, N, Program) ->
    {Roots, Vars, Inputs, Hooks} = tessera_nx_replay_tests:expression(Program),
    Forms = [tessera_nx_tensor:form(Leaf) || Var <- Vars, Leaf <- tessera_nx_tensor:flatten(Var)],
    try tessera_nx_plan:text(Roots, Forms, Hooks) of
        {Text, Used} ->
            Name = filename:join(Folder, io_lib:format("~s-~3..0b", [Group, N])),
            ok = file:write_file([Name, ".ts"], Text),
            ok = file:write_file([Name, ".args"], [lists:nth(I + 1, Inputs) || I <- Used])
    catch error:#{'__struct__' := 'Elixir.ArgumentError', message := <<"a function that calls Elixir", _/binary>>} ->
            left_out
    end.
