%% The disk cache of kernels in every bad state: a kernel that cannot be read is
%% compiled, and no state makes a program fail or changes its results. Each case runs
%% in a VM of its own.
-module(tessera_disk_cache_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_test, [quoted/1]).
-export([work/0]).

%% ---- other VMs

%% {results of the programs, kernels compiled, kernels loaded}
work() ->
    Fs = [fun(X) -> tessera:tanh(tessera:add(X, 1.0)) end, fun(X) -> tessera:sum(tessera:multiply(X, X)) end,
          fun(X) -> tessera:cumulative_sum(tessera:exp(X)) end, fun(X) -> tessera:dot(X, X) end,
          fun(X) -> tessera:as_type(tessera:sigmoid(X), f16) end],
    Results = [tessera:to_list((tessera:jit(F))(tessera:linspace(0, 1, 100))) || F <- Fs],
    #{jit := #{compiled := Compiled, loaded := Loaded}} = tessera:memory(),
    {erlang:phash2(Results), Compiled, Loaded}.

start(Dir) -> start(Dir, "/bin/sh", "").

%% Shell runs a script: Setup, then the VM, then a look for files that were begun and left.
start(Dir, Shell, Setup) -> start(Dir, Shell, Setup, "! ls " ++ quoted(Dir) ++ " 2>/dev/null | grep tmp-").

start(Dir, Shell, Setup, Check) ->
    Eval = io_lib:format("io:format(\"~~w.~~n\", [~s:work()]), halt(0).", [?MODULE]),
    Script = filename:join(tessera_test:temporary("script"), "run"),
    ok = file:write_file(Script,
                         [Setup, "\n", quoted(filename:join([code:root_dir(), "bin", "erl"])), " -noinput ", tessera_test:shell_paths(), " -eval ",
                          quoted(lists:flatten(Eval)), " || exit 1\n", Check, "\n"]),
    open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "exec " ++ Shell ++ " " ++ quoted(Script)]}, exit_status, binary,
                                              stderr_to_stdout, {env, [{"TESSERA_CACHE_DIR", Dir}]}]).

run(Dir) -> element(1, tessera_test:answer(start(Dir))).

%% A private folder, filled by one VM; its results and how many kernels they need.
filled() ->
    Dir = tessera_test:temporary("cache"),
    ok = file:change_mode(Dir, 8#700),
    {Results, Compiled, 0} = run(Dir),
    ?assert(Compiled > 3),
    {Dir, Results, Compiled}.

files(Dir) -> [F || F <- filelib:wildcard(filename:join(Dir, "*")), filelib:is_regular(F)].

%% ---- the cases

warm_test_() ->
    {timeout, 120, fun() ->
        {Dir, Results, Count} = filled(),
        ?assertEqual({Results, 0, Count}, run(Dir))
    end}.

%% Every kind of damage, in files of a filled cache, all kinds in turn among the files; each time all is compiled again and
%% written again.
corrupt_test_() ->
    {timeout, 300, fun() ->
        {Dir, Results, Count} = filled(),
        Intact = [{F, element(2, file:read_file(F))} || F <- files(Dir)],
        Damages = [fun(_) -> <<>> end, fun(B) -> binary:part(B, 0, byte_size(B) - 1) end, fun(B) -> <<B/binary, 0>> end,
                   fun(B) -> flip(B, byte_size(B) div 2) end, fun(B) -> flip(B, 0) end, fun(B) -> flip(B, 20) end,
                   fun(B) -> binary:copy(<<255>>, byte_size(B)) end],
        [begin
             [ok = file:write_file(F, (lists:nth((I + Turn) rem length(Damages) + 1, Damages))(Bytes)) || {I, {F, Bytes}} <- lists:zip(lists:seq(1, length(Intact)), Intact)],
             ?assertEqual({Results, Count, 0}, run(Dir))
         end || Turn <- [0, length(Damages) div 2]],
        %% Whole files under each other's names.
        {Names, Contents} = lists:unzip(Intact),
        [ok = file:write_file(F, B) || {F, B} <- lists:zip(Names, tl(Contents) ++ [hd(Contents)])],
        ?assertEqual({Results, Count, 0}, run(Dir)),
        %% Entries that are no files.
        [begin ok = file:delete(F), ok = file:make_symlink("/dev/zero", F) end || F <- Names],
        ?assertEqual({Results, Count, 0}, run(Dir)),
        [begin ok = file:delete(F), ok = file:make_dir(F) end || F <- Names],
        ?assertEqual({Results, Count, 0}, run(Dir))
    end}.

flip(Bytes, At) ->
    <<Before:At/binary, Byte, After/binary>> = Bytes,
    <<Before/binary, (Byte bxor 255), After/binary>>.

%% Folders that are not ours alone, or none at all.
unusable_test_() ->
    {timeout, 120, fun() ->
        {Filled, Results, Count} = filled(),
        Parent = tessera_test:temporary("unusable"),
        File = filename:join(Parent, "file"),
        ok = file:write_file(File, <<>>),
        Link = filename:join(Parent, "link"),
        ok = file:make_symlink(Filled, Link),
        Open = filename:join(Parent, "open"),
        ok = file:make_dir(Open),
        ok = file:change_mode(Open, 8#777),
        [begin
             {Answer, Text} = tessera_test:answer(start(Dir)),
             ?assertEqual({Dir, {Results, Count, 0}}, {Dir, Answer}),
             ?assertEqual({1, Text}, {length(binary:matches(Text, <<"no disk cache">>)), Text})
         end || Dir <- [File, Link, Open, filename:join(File, "below"), "/proc/nothing"]],
        ?assertEqual([], files(Open))
    end}.

%% On a file system of its own, with hardly any room or read-only. Needs the right to mount, in its own mount namespace.
mounted_test_() ->
    case string:trim(os:cmd("unshare -m mount -t tmpfs none /mnt 2>&1 && echo yes")) of
        "yes" -> {timeout, 120, fun mounted/0};
        Why -> fun() -> io:format(user, "tessera_disk_cache_tests: skipped, no mounts: ~s~n", [Why]) end
    end.

mounted() ->
    {Dir, Results, Count} = filled(),
    In = fun(Size, Then) ->
        Setup = ["set -e; mount -t tmpfs -o mode=0700,size=", Size, " none ", quoted(Dir), "; ", Then, "; set +e"],
        element(1, tessera_test:answer(start(Dir, "unshare -m /bin/sh", Setup)))
    end,
    ?assertEqual({Results, Count, 0}, In("8k", "true")),
    ?assertEqual({Results, Count, 0}, In("8k", "dd if=/dev/zero of=" ++ quoted(Dir) ++ "/full bs=8k count=1 2>/dev/null")),
    ?assertEqual({Results, Count, 0}, In("1m,nr_inodes=2", "true")),
    ?assertEqual({Results, Count, 0}, In("1m", "mount -o remount,ro " ++ quoted(Dir))),
    ?assertEqual({Results, 0, Count}, run(Dir)).

%% Eight VMs at once on an empty cache, then on a filled one.
shared_test_() ->
    {timeout, 240, fun() ->
        {Other, Results, Count} = filled(),
        Dir = tessera_test:temporary("shared"),
        ok = file:change_mode(Dir, 8#700),
        %% Each one's files are seen when all have ended.
        Cold = [start(Dir, "/bin/sh", "", "true") || _ <- lists:seq(1, 8)],
        [begin
             {{R, Compiled, Loaded}, _} = tessera_test:answer(Port),
             ?assertEqual({Results, Count}, {R, Compiled + Loaded})
         end || Port <- Cold],
        ?assertEqual([], [F || "tmp-" ++ _ = F <- [filename:basename(F) || F <- files(Dir)]]),
        NamesIn = fun(Folder) -> lists:sort([filename:basename(F) || F <- files(Folder)]) end,
        %% Kernels that are compiled in the background may or may not be written when a VM halts.
        ?assert(length([N || N <- NamesIn(Dir), lists:member(N, NamesIn(Other))]) >= Count),
        Warm = [start(Dir) || _ <- lists:seq(1, 8)],
        [?assertEqual({Results, 0, Count}, element(1, tessera_test:answer(Port))) || Port <- Warm]
    end}.
