%% Tensors whose memory others see, by address and by name.
-module(tessera_pointer_tests).
-device(host). % the functions of the native library for the host
-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").
-include("tessera.hrl").

-define(HOST, {host, 0}).

tensor(Numbers) ->
    {ok, _} = application:ensure_all_started(tessera),
    tessera:tensor(Numbers, s32).

file(Name) -> filename:join("/dev/shm", Name).

address_test() ->
    #tessera{ref = Ref} = T = tensor(lists:seq(1, 1000)),
    {Address, 4000, host} = tessera_nif:address(Ref),
    View = tessera_nif:from_address(Address, s32, {10, 100}, ?HOST),
    ?assertEqual(tessera:to_list(tessera:reshape(T, {10, 100})), tessera:to_list(View)),
    %% foreign memory is never written
    Add = tessera:jit(fun(X) -> tessera:add(X, 1) end, #{donate => [1]}),
    ?assertEqual(lists:seq(2, 1001), tessera:to_list(tessera:flatten(Add(View)))),
    ?assertEqual(lists:seq(1, 1000), tessera:to_list(T)),
    ?assertMatch({error, #{code := failed_precondition}}, tessera_nif:address(View#tessera.ref)).

no_address_test() ->
    #tessera{ref = Ref} = T = tensor([1, 2, 3]),
    {Address, 12, host} = tessera_nif:address(Ref),
    [?assertMatch({error, #{code := invalid_argument}}, tessera_nif:from_address(Wrong, s32, {3}, ?HOST))
     || Wrong <- [0, 4096, Address + 1, -1, 1 bsl 64, (1 bsl 64) - 8, x]],
    [?assertMatch({error, #{code := _}}, tessera_nif:from_address(Address, Type, Shape, ?HOST))
     || {Type, Shape} <- [{s33, {3}}, {s32, {-1}}, {s32, {1 bsl 62}}, {s32, {1 bsl 50}}, {s32, x}]],
    ?assertMatch({error, _}, tessera_nif:address(make_ref())),
    ?assertEqual([1, 2, 3], tessera:to_list(T)).

%% Memory of this process without permission to read, alone and within a range whose ends can be read. Other threads change
%% mappings: only mappings that were equal before and after count.
unreadable_test() ->
    _ = tensor([1]),
    Before = maps(),
    Asked = [{Range, [tessera_nif:from_address(Address, u8, {1}, ?HOST) || Address <- [First, End - 1]]} || {First, End, $-} = Range <- Before]
        ++ [{Ranges, [tessera_nif:from_address(First, u8, {End - First}, ?HOST)]}
            || {{First, E1, $r}, {E1, E2, $-}, {E2, End, $r}} = Ranges <- threes(Before)],
    After = maps(),
    Closed = [{Range, Answers} || {Range, Answers} <- Asked, lists:member(Range, After ++ threes(After))],
    ?assertMatch([_ | _], Closed),
    [?assertMatch({error, #{message := <<"the ", _/binary>>}}, Answer) || {_, Answers} <- Closed, Answer <- Answers].

%% Where each range of memory begins and ends, and whether it can be read.
maps() ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    [{binary_to_integer(First, 16), binary_to_integer(End, 16), Readable}
     || Line <- binary:split(Maps, <<"\n">>, [global]), Line =/= <<>>,
        [Range, <<Readable, _/binary>> | _] <- [binary:split(Line, <<" ">>, [global])],
        [First, End] <- [binary:split(Range, <<"-">>)]].

threes([A, B, C | Rest]) -> [{A, B, C} | threes([B, C | Rest])];
threes(_) -> [].

share_test() ->
    #tessera{ref = Ref} = T = tensor([1, 2, 3]),
    {Name, 12} = tessera_nif:share(Ref, 8#600),
    ?assertEqual({Name, 12}, tessera_nif:share(Ref, 8#600)),
    A = tessera_nif:from_shared(Name, s32, {3}, ?HOST),
    B = tessera_nif:from_shared(Name, s32, {3}, ?HOST),
    ?assertEqual([1, 2, 3], tessera:to_list(A)),
    {ok, Bytes} = file:read_file(file(Name)),
    ?assertEqual(tessera:to_binary(T), Bytes),
    ok = file:write_file(file(Name), <<1:32/native, 99:32/native, 3:32/native>>, [read]),
    ?assertEqual([[1, 99, 3], [1, 99, 3], [1, 2, 3]], [tessera:to_list(X) || X <- [A, B, T]]).

%% Each name has its own permissions, independent of the tensor's other names; all are removed with it.
permissions_test() ->
    {Pid, Monitor} = spawn_monitor(
        fun() ->
                #tessera{ref = Ref} = T = tensor([1, 2, 3]),
                Shared = [{Mode, tessera_nif:share(Ref, Mode)} || Mode <- [8#400, 8#600, 8#640, 8#400]],
                Modes = [begin
                             {ok, #file_info{mode = Found}} = file:read_file_info(file(Name)),
                             ?assertEqual([1, 2, 3], tessera:to_list(tessera_nif:from_shared(Name, s32, {3}, ?HOST))),
                             {Mode, Found band 8#7777}
                         end || {Mode, {Name, 12}} <- Shared],
                ?assertEqual([1, 2, 3], tessera:to_list(T)),
                exit({Modes, [Name || {_, {Name, _}} <- Shared]})
        end),
    {Modes, [First, Second, Third, Fourth]} = receive {'DOWN', Monitor, process, Pid, Told} -> Told end,
    ?assertEqual([{Mode, Mode} || Mode <- [8#400, 8#600, 8#640, 8#400]], Modes),
    ?assertEqual(First, Fourth),
    ?assertEqual(3, length(lists:usort([First, Second, Third]))),
    [gone(file(Name)) || Name <- [First, Second, Third]].

no_share_test() ->
    #tessera{ref = Ref} = T = tensor([1, 2, 3]),
    [?assertMatch({error, #{code := invalid_argument}}, tessera_nif:share(Ref, Wrong)) || Wrong <- [-1, 8#10000, x]],
    {Name, 12} = tessera_nif:share(Ref, 8#400),
    [?assertMatch({error, #{code := _}}, tessera_nif:from_shared(Wrong, s32, {3}, ?HOST))
     || Wrong <- [<<"none">>, <<>>, <<"../shm/", Name/binary>>, <<Name/binary, 0>>, <<Name/binary, 0, "x">>, <<0>>, <<".">>, binary:copy(<<"x">>, 100), x]],
    ?assertMatch({error, #{message := <<"shared memory ", _/binary>>}}, tessera_nif:from_shared(Name, s32, {4}, ?HOST)),
    ?assertEqual([1, 2, 3], tessera:to_list(T)),
    ?assertMatch({error, _}, tessera_nif:share((tessera:zeros({0}))#tessera.ref, 8#400)).

%% A name is removed with its tensor, and all names with the process.
names_test_() -> {timeout, 60, fun names/0}.

names() ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit(tessera_nif:share((tensor([1]))#tessera.ref, 8#400)) end),
    Name = receive {'DOWN', Monitor, process, Pid, {Shared, 4}} -> Shared end,
    gone(file(Name)),
    Command = "erl -noshell " ++ tessera_test:shell_paths() ++ " -eval 'application:ensure_all_started(tessera), "
        "T = {tessera, R, _, _} = tessera:tensor([1, 2]), {N, _} = tessera_nif:share(R, 384), "
        "true = filelib:is_file(filename:join(\"/dev/shm\", N)), io:put_chars(N), tessera:to_list(T), halt(0).'",
    <<"tessera-ipc-", _/binary>> = Other = list_to_binary(os:cmd(Command)),
    gone(file(Other)).

gone(File) -> tessera_test:until_freed(fun() -> not filelib:is_file(File) end).

%% Concurrent callers get the same name.
concurrent_test() ->
    #tessera{ref = Ref} = T = tensor([1, 2, 3]),
    Self = self(),
    [spawn_link(fun() -> Self ! {shared, tessera_nif:share(Ref, 8#400)} end) || _ <- lists:seq(1, 20)],
    Names = lists:usort([receive {shared, Shared} -> Shared end || _ <- lists:seq(1, 20)]),
    ?assertMatch([{_, 12}], Names),
    ?assertEqual([1, 2, 3], tessera:to_list(T)).
