%% Messages of clusters: texts, blocks and frames, memory of large ones, and oversized ones.
-module(tessera_cluster_wire_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [until/1, until_freed/1]).

-define(PART, 1048576).
%% A binary of at least this number of bytes is a block.
-define(LARGE, 65536).

%% ---- terms and blocks

%% Large binaries leave a term, wherever they are; keys of maps and the environment of a fun remain in it.
blocks_test() ->
    [A, B] = [binary:copy(<<I>>, ?LARGE + I) || I <- [1, 2]],
    Small = binary:copy(<<3>>, ?LARGE - 1),
    [begin
         {Sent, Blocks} = tessera_cluster_blocks:extract(Term),
         ?assertEqual(lists:sort(Expected), lists:sort(Blocks)), % the order of a map is any
         ?assert(erlang:external_size(Sent) < 2 * ?LARGE),
         ?assertEqual(Term, tessera_cluster_blocks:unpack(Sent, list_to_tuple(Blocks), fun(Block) -> Block end))
     end || {Term, Expected} <- [{A, [A]}, {[A, {B, Small}], [A, B]}, {#{a => [B | A]}, [B, A]}, {[A, A], [A, A]}, {[], []}, {Small, []},
                                 {#{Small => 1}, []}, {{ok, [1, 2.0, a, self()], #{}}, []}, {[#{b => B, a => A}, <<1:7>>], [A, B]}]],
    {_, []} = tessera_cluster_blocks:extract(fun() -> A end).

%% The sender counts before it encodes: an oversized message takes no time, and no memory.
limit_test() ->
    Large = binary:copy(<<0>>, 1 bsl 26),
    Term = lists:duplicate(70, Large),
    ?assertMatch({error, {message, Bytes, 4000000000}} when Bytes > 70 bsl 26 andalso Bytes < 70 bsl 26 + 10000,
                 tessera_cluster_blocks:pack(Term, 64, 4000000000)),
    {ok, Body} = tessera_cluster_blocks:pack(Term, 64, infinity),
    ?assertEqual({true, 70 bsl 26}, {tessera_cluster_blocks:has_blocks(Body), tessera_cluster_blocks:bytes(Body) band bnot 16#ffff}),
    %% the rest of the term has a limit of its own, and is not encoded to reach it
    Fun = fun() -> Term end,
    ?assertMatch({error, {term, Bytes, 16#7fffffff}} when Bytes > 70 bsl 26, tessera_cluster_blocks:pack(Fun, 0, infinity)),
    ?assertMatch({error, {term, _, _}}, tessera_cluster_blocks:to_binary(Fun)),
    ?assertMatch({error, {message, 20, 19}}, tessera_cluster_blocks:pack([], 18, 19)),
    ?assertMatch({ok, _}, tessera_cluster_blocks:pack([], 18, 20)).

%% ---- frames

%% Messages of about the size of a part come out whole, with beats between the parts.
frames_test() ->
    [begin
         {ok, Body} = tessera_cluster_blocks:pack(Term, 0, infinity),
         Frames = frames(tessera_cluster_wire:encode({request, 7, #{lane => 1}, Body})),
         ?assert(lists:all(fun(Frame) -> byte_size(Frame) =< ?PART + 1 end, Frames)),
         {Text, Blocks} = read_all(lists:append([[<<0>>, Frame] || Frame <- Frames]), tessera_cluster_reader:new(40000000, Pooled)),
         {ok, {request, 7, #{lane := 1}, Encoded}} = tessera_cluster_wire:decode_message(Text),
         {ok, Sent} = tessera_cluster_wire:decode(Encoded),
         ?assertEqual(Term, tessera_cluster_blocks:unpack(Sent, list_to_tuple(Blocks), fun tessera_cluster_blocks:binary/1))
     end || Pooled <- [true, false],
            Term <- [{free, []}, lists:seq(1, 300000)]
                ++ [rand:bytes(Size) || Size <- [1, ?LARGE, ?PART - 1, ?PART, ?PART + 1, 2 * ?PART, 3000000]]
                ++ [[rand:bytes(1500000), {a, rand:bytes(70000)}, lists:seq(1, 300000), rand:bytes(2000000)]]].

frames(Encoded) -> [iolist_to_binary(Frame) || Frame <- tessera_cluster_wire:frames(Encoded)].

read_all([Frame | Frames], Reader) ->
    case tessera_cluster_reader:read(Frame, Reader) of
        {message, Text, Blocks, _} when Frames =:= [] -> {Text, Blocks};
        {_, Next} -> read_all(Frames, Next)
    end.

%% A bundle has its messages in their order; one message is not wrapped. Truncated or overlong bundles are refused.
bundle_test() ->
    Messages = [{request, 7, #{lane => 1}, tessera_cluster_blocks:packed(body)}, {free, [1, 2]}, {cancel, 3}],
    Encoded = [tessera_cluster_wire:encode(Message) || Message <- Messages],
    {Bundle, []} = read_all(frames(tessera_cluster_wire:bundle(Encoded)), tessera_cluster_reader:new(1000, false)),
    {ok, {bundle, Parts}} = tessera_cluster_wire:decode_message(Bundle),
    ?assertMatch([{ok, {request, 7, #{lane := 1}, _}}, {ok, {free, [1, 2]}}, {ok, {cancel, 3}}],
                 [tessera_cluster_wire:decode_message(Part) || Part <- Parts]),
    ?assertEqual(hd(Encoded), tessera_cluster_wire:bundle([hd(Encoded)])),
    [?assertEqual(error, tessera_cluster_wire:decode_message(Malformed))
     || Malformed <- [binary:part(Bundle, 0, byte_size(Bundle) - 1), <<Bundle/binary, 0>>, <<3, 0, 0, 0, 9, 1>>]].

%% Frames that a peer may not send.
malformed_test() ->
    New = tessera_cluster_reader:new(1000, false),
    Whole = fun(Limit) -> tessera_cluster_reader:read(<<2, 1, 2, 3>>, tessera_cluster_reader:new(Limit, false)) end,
    ?assertMatch({message, <<1, 2, 3>>, [], _}, Whole(3)),
    ?assertMatch({error, <<"a message of more than 2 bytes">>}, Whole(2)),
    {more, Part} = tessera_cluster_reader:read(<<1, 1, 2>>, tessera_cluster_reader:new(3, false)),
    ?assertMatch({error, <<"a message of more than 3 bytes">>}, tessera_cluster_reader:read(<<1, 3, 4>>, Part)),
    %% the sizes of blocks count when they are announced, and before there is memory for them
    ?assertMatch({error, <<"a message of more than 1000 bytes">>}, tessera_cluster_reader:read(<<2, 4, 1:32, (1 bsl 50):64, 0>>, New)),
    {more, Block} = tessera_cluster_reader:read(<<2, 4, 2:32, 3:64, 1:64, 0>>, New),
    {more, Second} = tessera_cluster_reader:read(<<5, 1, 2, 3>>, Block),
    ?assertMatch({message, <<0>>, [_, _], _}, tessera_cluster_reader:read(<<5, 4>>, Second)),
    [?assertEqual({error, <<"a malformed frame">>}, tessera_cluster_reader:read(Frame, Reader))
     || {Frame, Reader} <- [{Frame, New} || Frame <- [<<>>, <<3>>, <<0, 1>>, <<255, 0>>, <<5, 1>>, <<2, 4, 0:32>>, <<2, 4, 1:32, 0:64>>, <<2, 4, 2:32, 1:64>>]]
                ++ [{Frame, Block} || Frame <- [<<5>>, <<5, 1, 2, 3, 4>>, <<1, 1>>, <<2, 1>>, <<5:32>>]]].

%% ---- blocks of memory

%% A block is taken once, when it is full; as a tensor without a copy, where its memory is the pool's.
memory_test() ->
    {ok, _} = application:ensure_all_started(tessera),
    Bytes = rand:bytes(8 * 100000),
    Filled = fun(Pooled) ->
                     Block = tessera_nif:block(byte_size(Bytes), Pooled),
                     [ok = tessera_nif:block_append(Block, binary:part(Bytes, At, 100000)) || At <- lists:seq(0, 700000, 100000)],
                     Block
             end,
    [?assertEqual(Bytes, tessera_nif:block_binary(Filled(Pooled))) || Pooled <- [true, false]],
    Block = Filled(true),
    #{live := Before} = tessera_nif:memory(),
    Tensor = tessera_nif:block_tensor(Block, f64, {1000, 100}, {host, 0}),
    #{live := After} = tessera_nif:memory(),
    ?assert(After - Before < 10000),
    ?assertEqual(Bytes, tessera:to_binary(case Tensor of {pressure, T} -> T; T -> T end)),
    Refused = fun(Code, Result) -> ?assertMatch({error, #{code := C}} when C =:= Code, Result) end,
    [Refused(failed_precondition, Result) || Result <- [tessera_nif:block_binary(Block), tessera_nif:block_append(Block, <<1>>),
                                                        tessera_nif:block_tensor(Block, u8, {1}, {host, 0}),
                                                        tessera_nif:block_binary(tessera_nif:block(1, true))]],
    [Refused(invalid_argument, Result) || Result <- [tessera_nif:block(0, true), tessera_nif:block(-1, false), tessera_nif:block(a, true),
                                                     tessera_nif:block_append(tessera_nif:block(1, true), <<1, 2>>),
                                                     tessera_nif:block_append(Filled(true), a), tessera_nif:block_binary(make_ref()),
                                                     tessera_nif:block_tensor(Filled(true), u8, {1}, {host, 0}),
                                                     tessera_nif:block_tensor(Filled(true), f64, {100000}, {host, 99})]],
    %% a refused one can still be taken; of packed elements there is a binary
    Other = Filled(true),
    {error, _} = tessera_nif:block_tensor(Other, u8, {1}, {host, 0}),
    ?assertEqual(Bytes, tessera_nif:block_tensor(Other, u4, {1600000}, {host, 0})),
    Refused(resource_exhausted, tessera_nif:block(1 bsl 60, true)).

%% ---- clusters

cluster_test_() ->
    [{Name, {timeout, 120, fun() -> with(Options, Test) end}}
     || {Name, Options, Test} <- [{"a small limit", #{max_message => 1 bsl 20}, fun small_limit/1},
                                  {"a small limit in a tree", #{max_message => 1 bsl 20, tree => {1, 2}}, fun small_limit/1},
                                  {"the default limit", #{}, fun default_limit/1},
                                  {"several blocks", #{}, fun several/1}, {"several blocks in a tree", #{tree => {1, 2}}, fun several/1},
                                  {"memory of a put", #{}, fun memory_of_put/1},
                                  {"a memory limit", #{memory_limit => 12000000}, fun memory_limit/1}]].

%% A run is refused before any rank has begun it, and its donated arguments remain.
run_test_() ->
    [{"a run by " ++ Launcher, {timeout, 120, fun() -> with(#{max_message => 1 bsl 20, mpirun => Launcher}, fun run/1) end}}
     || Launcher <- tessera_cluster_tests:launchers(), Launcher =/= none].

run(Cluster) ->
    F = tessera:shard_map(fun(X, Y) -> tessera:add(X, tessera_mesh:all_reduce(tessera:sum(Y), sum, 0)) end, #{shape => {2}}, [#{0 => [0]}, #{0 => [0]}],
                          #{0 => [0]}, #{client => Cluster, donate => [1]}),
    Call = fun(X, Bytes) -> F([[Own, tessera:broadcast(1.0, {Bytes div 4})] || Own <- X]) end,
    X = lists:append(tessera_cluster:put(Cluster, [[tessera:tensor([P])] || P <- [1.0, 2.0]])),
    ?assertError({resource_exhausted, <<_/binary>>}, Call(X, 1200000)),
    try Call(X, 1200000) catch error:{resource_exhausted, Text} ->
            ?assertMatch({match, _}, re:run(Text, "what this call sends to rank 0 has 12[0-9]{5} bytes, and a message has at most 1048576: the option max_message"))
    end,
    ?assertEqual([[1.0], [2.0]], [tessera:to_list(Own) || Own <- X]),
    ?assertEqual([[400001.0], [400002.0]], [tessera:to_list(Own) || Own <- Call(X, 800000)]),
    ?assertMatch(#{restarts := 0, state := up}, tessera_cluster:info(Cluster)).

with(Options, Test) ->
    {ok, _} = application:ensure_all_started(tessera),
    {ok, Cluster} = tessera_cluster:start_link(maps:merge(#{ranks => 2, threads => 1, mpirun => none, restarts => {0, 1}}, Options)),
    try Test(Cluster)
    after tessera_cluster:stop(Cluster)
    end.

%% The sender refuses an oversized message, with both sizes; the values on the ranks remain, and the next call works.
small_limit(Cluster) ->
    Kept = tessera_cluster:put(Cluster, [[tessera:tensor([P])] || P <- [0, 1]]),
    Values = fun() -> tessera_cluster:map(Cluster, fun(_) -> ets:info(tessera_rank_values, size) end) end,
    Before = Values(),
    Most = tessera:broadcast(tessera:tensor(7, u8), {1040000}),
    Over = tessera:broadcast(tessera:tensor(7, u8), {1100000}),
    Bytes = tessera:to_binary(Over),
    Refused = fun(Who, Call) ->
                      try Call() of
                          Result -> error({not_refused, Who, Result})
                      catch error:{resource_exhausted, Text} ->
                              {match, [Size]} = re:run(Text, ["^(?:[a-z_]*: )?", Who, " has ([0-9]+) bytes, and a message has at most 1048576: the option max_message$"],
                                                       [{capture, all_but_first, list}]),
                              ?assert(list_to_integer(Size) >= 1100000 andalso list_to_integer(Size) < 1101000)
                      end,
                      ?assertEqual([ok, ok], tessera_cluster:call(Cluster, noop))
              end,
    Sent = "what this call sends to rank 1",
    Got = "rank 1 on [^ ]+: the result",
    Refused(Sent, fun() -> tessera_cluster:put(Cluster, [[Most], [Over]]) end),
    Refused(Sent, fun() -> tessera_cluster:map(Cluster, fun(_, _) -> put_aside() end, [Most, Over]) end),
    Refused(Sent, fun() -> tessera_cluster:map(Cluster, fun(_, _) -> put_aside() end, [Most, #{a => [Bytes]}]) end),
    Refused(Got, fun() -> tessera_cluster:map(Cluster, fun(Rank) -> binary:copy(<<1>>, Rank * 1100000) end) end),
    Refused(Got, fun() -> tessera_cluster:map(Cluster, fun(Rank) -> {tessera:iota({10}), lists:duplicate(Rank * 550000, 1)} end) end),
    [_, Large] = tessera_cluster:map(Cluster, fun(Rank) -> tessera:broadcast(tessera:tensor(7, u8), {1 + Rank * 1100000}) end),
    Refused(Got, fun() -> tessera:to_binary(Large) end),
    Refused(Got, fun() -> tessera_cluster:put(Cluster, [[Large], [Most]]) end),   % which reads it
    ?assertEqual([none, none], tessera_cluster:map(Cluster, fun(_) -> persistent_term:get(?MODULE, none) end)),
    tessera:deallocate(Large),
    [[Placed], _] = tessera_cluster:put(Cluster, [[Most], [Most]]),
    ?assertEqual(1040000, byte_size(tessera:to_binary(Placed))),
    ?assertEqual([[0], [1]], [tessera:to_list(Own) || [Own] <- Kept]),
    ?assertMatch(#{restarts := 0, state := up}, tessera_cluster:info(Cluster)),
    %% nothing is left of the tensors in results that were not sent
    [tessera:deallocate(T) || T <- [Placed]],
    until_freed(fun() -> lists:all(fun({Now, Then}) -> Now =< Then end, lists:zip(Values(), Before)) end).

%% A rank that calls this was sent what should have been refused before any rank was sent anything.
put_aside() -> persistent_term:put(?MODULE, called).

%% By size alone: one binary of 64 MB, many times.
default_limit(Cluster) ->
    Large = binary:copy(<<7>>, 1 bsl 26),
    Many = lists:duplicate(70, Large),
    Tensors = list_to_tuple([tessera:from_binary(Large, u8, {1 bsl 26}) || _ <- Many]),
    Refused = fun(Call) ->
                      ?assertError({resource_exhausted, _}, Call()),
                      try Call() catch error:{resource_exhausted, Text} ->
                              ?assertMatch({match, _}, re:run(Text, " has 4697[0-9]{6} bytes, and a message has at most 4294967296: the option max_message$"))
                      end
              end,
    Refused(fun() -> tessera_cluster:map(Cluster, fun(_, _) -> ok end, [none, Many]) end),
    Refused(fun() -> tessera_cluster:map(Cluster, fun(_, _) -> ok end, [none, Tensors]) end),
    Refused(fun() -> tessera_cluster:put(Cluster, [[Tensors], [Tensors]]) end),
    Refused(fun() -> tessera_cluster:map(Cluster, fun(_) -> lists:duplicate(70, binary:copy(<<7>>, 1 bsl 26)) end) end),
    %% a fun that holds it is not sent in blocks
    ?assertError({resource_exhausted, <<"the function has ", _/binary>>}, tessera_cluster:map(Cluster, fun(_) -> length(Many) end)),
    ?assertMatch(#{restarts := 0, state := up}, tessera_cluster:info(Cluster)).

%% Blocks of several frames, of one message and of several that come at once, both ways.
several(Cluster) ->
    [A, B, C] = [rand:bytes(Size) || Size <- [2500000, 70000, ?PART]],
    Tensor = tessera:from_binary(A, u16, {1250000}),
    Check = fun() ->
        ?assertEqual([{0, B, 2500000}, {1, B, 2500000}],
                     tessera_cluster:map(Cluster, fun(Rank, [T, #{b := Own}]) -> {Rank, Own, byte_size(tessera:to_binary(T))} end,
                                         lists:duplicate(2, [Tensor, #{b => B}]))),
        ?assertEqual([[A, C], [A, C]], tessera_cluster:map(Cluster, fun(_, {_, X, Y}) -> [X, Y] end, lists:duplicate(2, {Tensor, A, C}))),
        [[X, Y], _] = tessera_cluster:put(Cluster, [[Tensor, tessera:from_binary(C, f32, {512, 512})], [Tensor, Tensor]]),
        ?assertEqual({A, C}, {tessera:to_binary(X), tessera:to_binary(Y)}),
        ?assertEqual([{f32, {512, 512}}, {f32, {512, 512}}],
                     tessera_cluster:map(Cluster, fun(_, T) -> {tessera:type(T), tessera:shape(T)} end, [Y, Y]))
    end,
    Workers = [spawn_monitor(Check) || _ <- [1, 2, 3]],
    [receive {'DOWN', Monitor, process, Worker, Reason} -> ?assertEqual(normal, Reason) end || {Worker, Monitor} <- Workers],
    %% packed elements, and functions and lists that are larger than a frame
    Nibbles = tessera:from_binary(A, u4, {5000000}),
    [[Packed], _] = tessera_cluster:put(Cluster, [[Nibbles], [Nibbles]]),
    ?assertEqual(A, tessera:to_binary(Packed)),
    ?assertEqual([byte_size(A), byte_size(A) + 1], tessera_cluster:map(Cluster, fun(Rank) -> byte_size(A) + Rank end)),
    List = lists:seq(1, 600000),
    ?assertEqual([List, List], tessera_cluster:map(Cluster, fun(_, L) -> L end, [List, List])).

%% Of a tensor of 64 MB the rank has its memory and little else, while it comes and after; the driver's processes keep nothing of it.
memory_of_put(Cluster) ->
    Size = 1 bsl 26,
    #{links := Links, queue := Queue} = tessera_cluster_state:connections(Cluster),
    Own = [Queue | tuple_to_list(Links)] ++ [Writer || Link <- tuple_to_list(Links), {links, Linked} <- [process_info(Link, links)], Writer <- Linked, is_pid(Writer)],
    Binaries = fun() -> lists:sum([Bytes || Process <- Own, {binary, Held} <- [process_info(Process, binary)], {_, Bytes, _} <- Held]) end,
    Vm = fun() -> tessera_cluster:map(Cluster, fun(_) -> erlang:memory(binary) end) end,
    Before = Vm(),
    Tensor = tessera:broadcast(tessera:tensor(7, u8), {Size}),
    [[Placed], _] = tessera_cluster:put(Cluster, [[Tensor], [Tensor]]),
    [{Live, Peak} | _] = [{L, P} || #{memory := #{live := L, peak := P}} <- maps:get(ranks, tessera_cluster:info(Cluster))],
    ?assert(Live >= Size andalso Peak < Size + Size div 4),
    until(fun() -> lists:all(fun({Now, Then}) -> Now < Then + Size div 4 end, lists:zip(Vm(), Before)) end),
    until(fun() -> Binaries() < Size div 4 end),
    ?assertEqual(Size, byte_size(tessera:to_binary(Placed))),
    until(fun() -> Binaries() < Size div 4 end),
    until(fun() -> lists:all(fun({Now, Then}) -> Now < Then + Size div 4 end, lists:zip(Vm(), Before)) end).

%% A rank without memory for its arguments reports that, and takes them when it has room again.
memory_limit(Cluster) ->
    Tensor = tessera:broadcast(tessera:tensor(7, u8), {8000000}),
    [[First], [_]] = tessera_cluster:put(Cluster, [[Tensor], [tessera:tensor(1)]]),
    ?assertError({resource_exhausted, <<"rank 0 on ", _/binary>>}, tessera_cluster:put(Cluster, [[Tensor], [tessera:tensor(1)]])),
    ?assertEqual(ok, tessera:deallocate(First)),
    [[Second], [_]] = tessera_cluster:put(Cluster, [[Tensor], [tessera:tensor(1)]]),
    ?assertEqual(8000000, byte_size(tessera:to_binary(Second))),
    %% a binary is no tensor, and has no such limit
    ?assertEqual([9000000, 9000000], tessera_cluster:map(Cluster, fun(_, B) -> byte_size(B) end, lists:duplicate(2, binary:copy(<<1>>, 9000000)))).
