#!/usr/bin/env escript
%% Does what a page says that leads through programs, as a reader would: in a folder that has the checkout beside it.
%%
%%   test/docs/tutorial.escript docs/tutorial-erlang.md...
%%
%% - A block whose first line is a comment with a name (`%% src/my_app.erl', `# mix.exs') is that file, in the current folder.
%% - A block ```sh is commands, and leaves its current folder to the next block.
%% - A block ```text after it is what they print; "…" stands for any text of a line, alone for any lines.
%% - Sessions (```erlang with 1>) are run by tessera_doc_tests.
%%
%% Some commands are left out, or others stand in for them: instead/1 says which and why. Pages for Elixir need NX_LIBS, a folder with
%% compiled applications nx, complex and telemetry, which stand in for Hex.
-mode(compile).

main(Pages) ->
    ok = io:setopts([{encoding, unicode}]),
    {ok, Here} = file:get_cwd(),
    Root = filename:dirname(filename:dirname(filename:dirname(filename:absname(escript:script_name(), Here)))),
    Counts = [page(filename:absname(Page, Here), Root) || Page <- Pages],
    io:format("Tutorials: ~b passed, 0 failed~n", [lists:sum(Counts)]).

page(Page, Root) ->
    Name = filename:basename(Page),
    Nx = os:getenv("NX_LIBS", ""),
    {ok, Text} = file:read_file(Page),
    Blocks = blocks(string:split(unicode:characters_to_list(Text), "\n", all), 1),
    Blocks =/= [] orelse fail("~ts has no blocks", [Name]),
    case Nx =:= "" andalso lists:any(fun({Kind, _, _}) -> Kind =:= "ex" end, Blocks) of
        true ->
            io:format("  left out: ~ts (needs Nx: set NX_LIBS)~n", [Name]),
            0;
        false ->
            Work = string:trim(os:cmd("mktemp -d")),
            try
                ok = file:make_symlink(Root, filename:join(Work, "tessera")),
                {_, Count} = walk(Blocks, Work, {Name, Work, Root, Nx}, 0),
                io:format("  ran: ~ts, ~b blocks~n", [Name, Count]),
                Count
            after
                file:del_dir_r(Work)
            end
    end.

%% {Kind, Line, Lines} of each.
blocks([], _) -> [];
blocks(["```" ++ Kind | Lines], N) when Kind =/= [] ->
    {Block, [_ | Rest]} = lists:splitwith(fun(Line) -> Line =/= "```" end, Lines),
    [{Kind, N, Block} | blocks(Rest, N + length(Block) + 2)];
blocks([_ | Lines], N) -> blocks(Lines, N + 1).

walk([], Folder, _, Count) -> {Folder, Count};
walk([{"sh", N, Lines} | Blocks], Folder, Context, Count) ->
    {Printed, Next} = commands(joined(Lines), Folder, Context, N),
    case Blocks of
        [{"text", _, _} | Rest] when Printed =:= none -> walk(Rest, Next, Context, Count);
        [{"text", _, Expected} | Rest] ->
            is_like(Expected, Printed) orelse
                fail("~ts:~b prints~n~ts~nand not~n~ts~nfirst line that differs: ~ts",
                     [element(1, Context), N, Printed, lists:join("\n", Expected), different(Expected, string:lexemes(Printed, "\n"))]),
            walk(Rest, Next, Context, Count + 2);
        _ -> walk(Blocks, Next, Context, Count + 1)
    end;
walk([{"erlang", _, _} | Blocks], Folder, Context, Count) -> walk(Blocks, Folder, Context, Count);
walk([{Kind, N, Lines} | Blocks], Folder, Context, Count) ->
    First = case Lines of ["#!" ++ _, Second | _] -> Second; [Line | _] -> Line end,
    case re:run(First, "^(?:%%|#) ([A-Za-z0-9_./-]+)$", [{capture, all_but_first, list}]) of
        {match, [Name]} ->
            File = filename:join(Folder, Name),
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, unicode:characters_to_binary([[here(Row, Context), "\n"] || Row <- Lines])),
            walk(Blocks, Folder, Context, Count + 1);
        nomatch when Kind =:= "text"; Kind =:= "conf" -> walk(Blocks, Folder, Context, Count);
        nomatch -> fail("~ts:~b: the first line of this block names no file: ~ts", [element(1, Context), N, First])
    end.

%% Nx of this machine in place of Hex's.
here(Line, {_, _, _, Nx}) ->
    Local = lists:join(", ", ["{:" ++ App ++ ", path: \"" ++ filename:join(Nx, App) ++ "\", compile: \"true\"}" || App <- ["nx", "complex", "telemetry"]]),
    re:replace(Line, "\\{:nx, \"[^\"]*\"\\}", Local, [{return, list}, unicode]).

joined([Line, Next | Lines]) ->
    case lists:reverse(Line) of
        "\\" ++ Start -> joined([lists:reverse(Start) ++ Next | Lines]);
        _ -> [Line | joined([Next | Lines])]
    end;
joined(Lines) -> Lines.

%% What the commands print, `none' where all of them are left out, and the folder that is then the current one.
commands(Commands, Folder, Context, N) ->
    case [Instead || Command <- Commands, Instead <- [given(Command, Context)], Instead =/= none] of
        [] -> {none, Folder};
        Run -> run(Run, Folder, Context, N)
    end.

run(Run, Folder, {Name, Work, Root, _}, N) ->
    Script = filename:join(Work, ".commands"),
    ok = file:write_file(Script, unicode:characters_to_binary([[Line, "\n"] || Line <- ["set -e", "cd '" ++ Folder ++ "'" | Run] ++ ["pwd >'" ++ Script ++ ".pwd'"]])),
    Environment = [{Variable, false} || Variable <- ["MIX_ENV", "ERL_LIBS", "ERL_FLAGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"]] ++
        [{"HOME", Work}, {"MIX_HOME", Work}, {"HEX_OFFLINE", "1"}, {"PATH", os:getenv("PATH") ++ ":" ++ filename:join(Root, ".tools")},
         %% One build of Tessera serves the projects of a page.
         {"MIX_BUILD_PATH", filename:join(Work, ".mix")}],
    Port = open_port({spawn_executable, os:find_executable("bash")},
                     [{args, [Script]}, {env, Environment}, exit_status, stderr_to_stdout, binary, in]),
    {Status, Printed} = read(Port, []),
    Status =:= 0 orelse fail("~ts:~b: ~ts~nends with status ~b:~n~ts", [Name, N, lists:join("\n", Run), Status, Printed]),
    {ok, Next} = file:read_file(Script ++ ".pwd"),
    case string:find(Printed, "for two hosts: left out: ") of
        nomatch -> {Printed, string:trim(unicode:characters_to_list(Next))};
        Why ->
            io:format("  left out: a command ~ts", [Why]),
            {none, Folder}
    end.

given(Command, {_, _, Root, _}) ->
    case instead(Command) of
        {left_out, Why} ->
            io:format("  left out: ~ts (~ts)~n", [Command, Why]),
            none;
        on_two_hosts -> [Root, "/test/docs/two-hosts.sh 'cd '\"$PWD\"'; ", string:replace(Command, "'", "'\\''", all), "'"];
        Text -> Text
    end.

instead("git clone " ++ _) -> {left_out, "the checkout is there"};
instead("(cd tessera && ./setup" ++ _) -> {left_out, "the checkout is built"};
instead("mix local." ++ _) -> {left_out, "needs Hex"};
instead("sbatch " ++ _) -> {left_out, "needs Slurm: make test-slurm runs the script"};
instead("kubectl " ++ _) -> {left_out, "needs Kubernetes"};
instead("docker " ++ _) -> {left_out, "needs Docker"};
instead(Command) ->
    case {string:find(Command, "host-a"), os:cmd("id -u; command -v ip && command -v mpirun")} of
        {nomatch, _} -> Command;
        {_, "0\n" ++ Programs} -> two_hosts(string:lexemes(Programs, "\n"));
        _ -> {left_out, "needs root, for two hosts that are network namespaces"}
    end.

two_hosts([_, _]) -> on_two_hosts;
two_hosts(_) -> {left_out, "needs Open MPI and the program ip (./setup --mpi)"}.

read(Port, Printed) ->
    receive
        {Port, {data, Bytes}} -> read(Port, [Bytes | Printed]);
        {Port, {exit_status, Status}} -> {Status, unicode:characters_to_list(iolist_to_binary(lists:reverse(Printed)))}
    end.

is_like(Expected, Printed) ->
    Pattern = unicode:characters_to_binary(["^", [pattern(Line) || Line <- Expected], "$"]),
    re:run(string:trim(Printed) ++ "\n", Pattern, [unicode, {capture, none}]) =:= match.

%% For a log of which only the end is kept.
different(["…" | _], _) -> "after a line that stands for any lines";
different([Line | Expected], [Text | Printed]) ->
    case is_like([Line], Text) of
        true -> different(Expected, Printed);
        false -> Text
    end;
different(_, [Text | _]) -> Text;
different(_, []) -> "a line is missing".

pattern("…") -> "(?:.*\\n)*";
pattern(Line) ->
    Escaped = re:replace(Line, "[][\\\\.^$|()?*+{}]", "\\\\&", [global, unicode, {return, list}]),
    [string:replace(Escaped, "…", ".*", all), "\\n"].

fail(Format, Values) ->
    io:format(Format ++ "~nTutorials: 0 passed, 1 failed~n", Values),
    halt(1).
