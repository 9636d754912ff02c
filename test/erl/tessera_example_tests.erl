%% Programs in examples/: the spectrogram; a network of flax; the examples that start clusters, and the script for Slurm with fake programs of
%% Slurm in its path: these need Open MPI.
-module(tessera_example_tests).
-include_lib("eunit/include/eunit.hrl").

examples_test_() ->
    case {os:find_executable("mpirun"), os:getenv("TESSERA_CI")} of
        {false, Ci} when Ci =:= false; Ci =:= "" ->
            io:format(user, "the examples of clusters are not tested: no mpirun here (./setup --mpi)~n", []),
            [];
        _ -> {setup, fun compiled/0, fun removed/1, fun(Folder) -> tests(Folder) end}
    end.

spectrogram_test_() ->
    {setup, fun compiled/0, fun removed/1,
     [{timeout, 60, fun drawn/0}, {timeout, 60, fun pitch_of_the_whistle/0}, {timeout, 60, fun strokes_of_the_bell/0}]}.

%% A row for each band of frequencies, and under them the time.
drawn() ->
    {Printed, ok} = tessera_doc_tests:capture(fun spectrogram:main/0),
    [Head, "" | Lines] = string:split(string:trim(Printed, trailing, "\n"), "\n", all),
    ?assertMatch({match, _}, re:run(Head, "^74 windows of 512 samples, 257 frequencies up to 4000 Hz")),
    Rows = [Row || Line <- Lines, [_, Row] <- [string:split(Line, "Hz |")]],
    ?assertEqual([74], lists:usort([length(Row) || Row <- Rows])),
    ?assertEqual(32, length(Rows)),
    ?assert(lists:member($@, lists:append(Rows))).

%% Before the bell, the loudest frequency of each window is the chirp's in the window's middle.
pitch_of_the_whistle() ->
    Loudest = tessera:to_list(tessera:argmax(spectrogram:spectrum(spectrogram:signal()), #{axis => 1})),
    [begin
         Middle = (Window * 320 + 256) / 8000,
         ?assert(abs(Bin * 8000 / 512 - (300 + 1000 * Middle)) < 2 * 8000 / 512)
     end || {Window, Bin} <- lists:zip(lists:seq(0, 12), lists:sublist(Loudest, 13))].

%% The highest partial, of 2790 Hz, is heard right after a stroke and not before.
strokes_of_the_bell() ->
    Levels = tessera:to_list(tessera:flatten(tessera:slice(spectrogram:spectrum(spectrogram:signal()), [0, round(2790 * 512 / 8000)], [74, 1]))),
    [?assert(lists:nth(Window - 2, Levels) < -50 andalso lists:nth(Window + 2, Levels) > -30)
     || Seconds <- [0.6, 1.8], Window <- [round(Seconds * 8000 / 320)]].

flax_digits_test_() ->
    {setup, fun compiled/0, fun removed/1, [{timeout, 60, fun answers_of_xla/0}, {timeout, 60, fun learns_more/0}]}.

%% The network that flax trained gives XLA's answers, for batches of any size.
answers_of_xla() ->
    {Printed, ok} = tessera_doc_tests:capture(fun flax_digits:main/0),
    ?assertMatch({match, _}, re:run(Printed, "2[78][0-9] of 297 digits that it has not seen are right")),
    {Digits, Answers} = flax_digits:answers(),
    Network = flax_digits:network(),
    [begin
         Part = fun(T, Width) -> tessera:slice(T, [0, 0], [N, Width]) end,
         Differences = tessera:abs(tessera:subtract(Network(Part(Digits, 64)), Part(Answers, 10))),
         ?assert(tessera:to_number(tessera:reduce_max(Differences)) < 1.0e-5)
     end || N <- [1, 2, 16]].

%% The network that PyTorch trained gives PyTorch's answers, for batches of any size.
torch_digits_test_() ->
    {setup, fun compiled/0, fun removed/1, {timeout, 60, fun answers_of_torch/0}}.

answers_of_torch() ->
    {Printed, ok} = tessera_doc_tests:capture(fun torch_digits:main/0),
    ?assertMatch({match, _}, re:run(Printed, "2[78][0-9] of 297 digits that it has not seen are right")),
    {Digits, Answers} = torch_digits:answers(),
    Network = torch_digits:network(),
    One = tessera:subtract(Network(tessera:slice(Digits, [3, 0], [1, 64])), tessera:slice(Answers, [3, 0], [1, 10])),
    ?assert(tessera:to_number(tessera:reduce_max(tessera:abs(One))) < 1.0e-5).

%% Its gradient is that of differences.
learns_more() ->
    {Digits, _} = flax_digits:answers(),
    X = tessera:slice(Digits, [0, 0], [1, 64]),
    Network = flax_digits:network(),
    First = fun(Y) -> tessera:log(tessera:sum(tessera:slice(Network(Y), [0, 0], [1, 2]))) end,
    Gradient = tessera:to_number(tessera:sum((tessera:grad(First))(X))),
    At = fun(Step) -> tessera:to_number(First(tessera:add(X, Step))) end,
    Difference = (At(0.05) - At(-0.05)) / 0.1,
    ?assert(abs(Gradient - Difference) < 0.02 * abs(Difference) + 1.0e-4).

tests(Folder) ->
    [{lists:concat([Name]), {timeout, 300, fun() -> says(Name, Texts) end}}
     || {Name, Texts} <- [{cluster_digits, ["rank 3: process ", "\nepoch 60/60 ", "  loss ", "\ntest accuracy 9"]},
                          {cluster_product, ["one rank: ", "the limit is 25165824", "four ranks: done", "the product is right"]}]]
        ++ [{"cluster_spmd", {timeout, 300, fun() -> spmd(Folder) end}}]
        ++ [{"a rank killed in training", {timeout, 300, fun resumed/0}}]
        ++ [{"the script for Slurm", {timeout, 300, fun() -> slurm(Folder) end}}].

%% On processes that mpirun starts, and on one without it: the same parameters.
spmd(Folder) ->
    [Alone | Others] = [begin
                            {0, Printed} = tessera_cluster_joined_tests:program(Ranks, Folder, ["-s", "cluster_spmd", "main"]),
                            {match, [Last]} = re:run(Printed, "test accuracy 9[0-9.]+ %, parameters [0-9]+", [{capture, first, binary}]),
                            [?assertMatch({match, _}, re:run(Printed, io_lib:format("rank ~b of ~b: process ", [Rank, max(1, Ranks)])))
                             || Rank <- lists:seq(0, Ranks - 1)],
                            Last
                        end || Ranks <- [0, 2, 4]],
    ?assertEqual([Alone], lists:usort(Others)).

%% With the rank's end and without it the parameters are the same.
resumed() ->
    Plain = says(cluster_resume, ["epoch 6  loss "]),
    ?assertEqual(nomatch, string:find(Plain, "going on")),
    true = os:putenv("KILL", "2"),
    try says(cluster_resume, ["ending rank 2", "going on after epoch 1", "epoch 6  loss "]) of
        Resumed -> ?assertEqual(string:find(Plain, "test accuracy"), string:find(Resumed, "test accuracy"))
    after
        os:unsetenv("KILL")
    end.

%% In a folder where ranks also find the modules.
compiled() ->
    {ok, _} = application:ensure_all_started(tessera),
    Folder = string:trim(os:cmd("mktemp -d")),
    [{ok, _} = compile:file(File, [{outdir, Folder}, {i, filename:join(root(), "include")}, debug_info])
     || File <- filelib:wildcard(filename:join([root(), "examples", "*.erl"]))],
    true = code:add_patha(Folder),
    Folder.

removed(Folder) ->
    true = code:del_path(Folder),
    ok = file:del_dir_r(Folder).

root() -> filename:absname(filename:join(filename:dirname(code:which(tessera)), "..")).

says(Name, Texts) ->
    {Printed, ok} = tessera_doc_tests:capture(fun Name:main/0),
    [?assertNotEqual({nomatch, Text, Printed}, {string:find(Printed, Text), Text, Printed}) || Text <- Texts],
    Printed.

%% Scripts for a program of the user's: on one node, whose name is not needed; on two, whose names and addresses become options. A program that was
%% not compiled, or that fails, ends the job with an error.
slurm(Folder) ->
    Bin = filename:join(Folder, "bin"),
    ok = filelib:ensure_dir(filename:join(Bin, "x")),
    executable(Bin, "scontrol", "test \"$1 $2\" = 'show hostnames' && echo $3 | tr , '\\n'\n"),
    executable(Bin, "getent", "test \"$1\" = ahostsv4 && printf '127.0.1.1 STREAM a\\n10.0.0.7 STREAM a\\n'\n"),
    executable(Bin, "srun", "echo \"srun $*\"\n"),
    Own = filename:join(Folder, "own_program.erl"),
    ok = file:write_file(Own, "-module(own_program).\n-export([main/1]).\nmain(#{ranks := 5}) -> error(too_many);\n"
                              "main(Options) -> {ok, _} = tessera_cluster_options:check(Options), io:format(\"~0p~n\", [Options]).\n"),
    {ok, _} = compile:file(Own, [{outdir, Folder}]),
    Run = fun(Script, Program, Nodes, Tasks) ->
                  Environment = lists:join(" ", [["PATH=", Bin, ":$PATH"], "SLURM_CPUS_PER_TASK=3", ["SLURM_JOB_NODELIST=", Nodes],
                                                 ["SLURM_NTASKS=", Tasks], ["SLURM_SUBMIT_DIR=", tessera_test:quoted(root())]]),
                  string:trim(os:cmd(lists:flatten(["env ", Environment, " bash ", tessera_test:quoted(filename:join([root(), "examples", Script])), " ",
                                                    Program, " ", Folder, " 2>&1; echo status $?"])))
          end,
    Term = fun(Printed) ->
                   [Line, "status 0"] = string:split(Printed, "\n"),
                   {ok, Tokens, _} = erl_scan:string(Line ++ "."),
                   {ok, Parsed} = erl_parse:parse_term(Tokens),
                   Parsed
           end,
    ?assertEqual(#{ranks => 4, threads => 3}, Term(Run("cluster.slurm", "own_program", "a", "4"))),
    ?assertEqual(#{ranks => 4, threads => 3, hosts => [{"a", 2}, {"b", 2}], listen => {10, 0, 0, 7}}, Term(Run("cluster.slurm", "own_program", "a,b", "4"))),
    ?assertMatch({match, _}, re:run(Run("cluster.slurm", "own_program", "a", "5"), "too_many(.*\n)*status 1$")),
    ?assertMatch({match, _}, re:run(Run("joined.slurm", "own_program", "a,b", "4"),
                                    "^srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=3 [^ ]*erl \\+S 3 -noshell -pa ebin -pa [^ ]+ -s own_program main -s init stop\n"
                                    "status 0$")),
    [?assertMatch({match, _}, re:run(Run(Script, "no_program", "a", "4"), "^no [^ ]+/no_program.beam: compile it first .*\nstatus 1$"))
     || Script <- ["cluster.slurm", "joined.slurm"]].

executable(Folder, Name, Lines) ->
    Path = filename:join(Folder, Name),
    ok = file:write_file(Path, ["#!/bin/sh\n", Lines]),
    ok = file:change_mode(Path, 8#700).
