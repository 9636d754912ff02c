%% Meshes, shardings, tensors in parts and joined, pictures.
-module(tessera_mesh_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

-define(raises(Part, Expr), ?assertError({invalid_argument, _}, has(Part, fun() -> Expr end))).

has(Part, F) ->
    try F()
    catch error:{Code, Text} ->
        binary:match(Text, list_to_binary(Part)) =/= nomatch orelse error({another_text, Text}),
        error({Code, Text})
    end.

start() ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera:open_client(parts, #{device_count => 12}).

mesh_test_() ->
    {setup, fun start/0, fun(_) -> ok end,
     [{timeout, 120, Check} || Check <- [fun check_parts/0, fun check_round_trips/0, fun check_errors/0, fun check_shared/0,
                                         fun check_memory/0, fun check_pictures/0, fun check_deallocated/0]]}.

parts(Tensor, Mesh, Sharding) -> tessera_mesh:shard(Tensor, Mesh, Sharding, parts).

check_parts() ->
    Mesh = #{shape => {2, 2}, axes => [rows, <<"columns">>]},
    T = tessera:iota({2, 4}),
    Lists = fun(Sharding) -> [tessera:to_list(P) || P <- parts(T, Mesh, Sharding)] end,
    ?assertEqual([[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]], Lists(#{0 => [0], 1 => [1]})),
    ?assertEqual([[[0, 1]], [[4, 5]], [[2, 3]], [[6, 7]]], Lists(#{-2 => [columns], -1 => [<<"rows">>]})),
    ?assertEqual([[[0], [4]], [[1], [5]], [[2], [6]], [[3], [7]]], Lists(#{1 => [0, 1]})),
    ?assertEqual([[[0], [4]], [[2], [6]], [[1], [5]], [[3], [7]]], Lists(#{1 => [1, 0]})),
    ?assertEqual(lists:duplicate(4, [[0, 1, 2, 3], [4, 5, 6, 7]]), Lists(#{})),
    ?assertEqual([{parts, I} || I <- lists:seq(0, 3)], [tessera:device(P) || P <- parts(T, Mesh, #{0 => [rows]})]).

%% Every way to cut tensors of rank 0 to 3 by meshes; all types once.
check_round_trips() ->
    [begin
         Mesh = #{shape => Shape},
         Axes = lists:seq(0, tuple_size(Shape) - 1),
         [?assertEqual(tessera:to_binary(T), tessera:to_binary(tessera_mesh:gather(parts(T, Mesh, S), Mesh, S)))
          || {Rank, T} <- tensors(Type), S <- shardings(Rank, Axes)]
     end || {Type, Shape} <- [{Type, {2}} || Type <- types()] ++ [{f32, Shape} || Shape <- [{1}, {3}, {2, 2}, {2, 1, 3}, {2, 3, 2}]]].

types() -> [s2, s4, s8, s16, s32, s64, u2, u4, u8, u16, u32, u64, f8, f8_e4m3fn, f16, bf16, f32, f64, c64, c128].

tensors(Type) ->
    [{tuple_size(Shape), tessera:as_type(tessera:remainder(tessera:iota(Shape), 3), Type)}
     || Shape <- [{}, {12}, {12, 24}, {12, 0}, {12, 1, 12}, {3, 12, 12}], Shape =/= {3, 12, 12} orelse Type =:= f64].

%% Shardings that cut dims of 12 or 24 only.
shardings(0, _) -> [#{}];
shardings(Rank, Axes) ->
    [#{}] ++ [#{0 => [Axis]} || Axis <- Axes, Rank < 3] ++ [#{(Rank - 1) => lists:reverse(Axes)}] ++
    [#{0 => [hd(Axes)], (Rank - 1) => tl(Axes)} || length(Axes) > 1, Rank > 1, Rank < 3].

check_errors() ->
    T = tessera:iota({4, 6}),
    M = #{shape => {2, 2}},
    [?raises(Text, parts(T, Mesh, #{}))
     || {Text, Mesh} <- [{"expected a mesh such as", 2}, {"expected a mesh such as", #{name => <<"m">>}},
                         {"expected a tuple of 1 to 8 sizes", #{shape => {}}}, {"expected a tuple", #{shape => [2]}},
                         {"expected sizes of at least 1", #{shape => {2, 0}}}, {"of at least 1", #{shape => {a}}},
                         {"more than 32768 partitions", #{shape => {256, 129}}}, {"got also [size]", #{shape => {2}, size => 1}},
                         {"client parts has 12 devices", #{shape => {13}}}, {"name of a mesh or axis", #{shape => {2}, name => 1}},
                         {"expected the names of 1 axes", #{shape => {2}, axes => []}},
                         {"two axes of the mesh have one name", #{shape => {2, 2}, axes => [a, <<"a">>]}}]],
    [?raises(Text, parts(T, M, Sharding))
     || {Text, Sharding} <- [{"expected a sharding such as", [0]}, {"cuts dim 2 of a tensor of rank 2", #{2 => [0]}},
                             {"cuts dim -3 of", #{-3 => [0]}}, {"cuts dim batch of", #{batch => [0]}},
                             {"expected a list of mesh axes", #{0 => 1}}, {"expected a list", #{0 => [0 | 1]}},
                             {"axis 2 is not valid for mesh with 2 axes", #{0 => [2]}},
                             {"axis -1 is not valid", #{0 => [-1]}}, {"the mesh has no axis rows", #{0 => [rows]}},
                             {"axis 0 was used twice in the same sharding", #{0 => [0], 1 => [0]}},
                             {"axis 1 was used twice", #{0 => [1, 1]}}, {"dim 0 occurs twice", #{0 => [0], -2 => [1]}},
                             {"expected its number or its name", #{0 => [1.5]}}]],
    ?raises("dim 1 of s32[4,6] cannot be cut into 4 equal parts", parts(T, M, #{1 => [0, 1]})),
    ?raises("no client none is open", tessera_mesh:shard(T, M, #{}, none)),
    ?raises("client is 1, expected an atom", tessera_mesh:shard(T, M, #{}, 1)),
    ?raises("expected a tensor, got 7", parts(7, M, #{})),
    ?raises("one for each partition of mesh mesh {2,2}, got", tessera_mesh:gather([T], M, #{})),
    ?raises("expected a list of 4 parts", tessera_mesh:gather(T, M, #{})),
    ?raises("part 2 is s32[4], part 0 is s32[4,6]", tessera_mesh:gather([T, T, tessera:iota({4}), T], M, #{})),
    ?raises("part 1 is f32[4,6]", tessera_mesh:gather([T, tessera:as_type(T, f32), T, T], M, #{0 => [1]})),
    ?raises("equal parts", tessera_mesh:draw({3}, M, #{0 => [0]})),
    ?raises("expected a mesh", tessera_mesh:draw({3}, none, #{})),
    ?assertEqual(4, tessera_mesh:partitions(M)).

check_deallocated() ->
    T = tessera:iota({4}),
    tessera:deallocate(T),
    ?assertError({failed_precondition, _}, parts(T, #{shape => {2}}, #{0 => [0]})),
    ?assertError({failed_precondition, _}, tessera_mesh:gather([T, T], #{shape => {2}}, #{0 => [0]})).

%% Replicas share memory.
check_shared() ->
    T = tessera:to_device(tessera:zeros({1024, 1024}), {parts, 0}),
    #{live := Before} = tessera:memory(),
    Parts = parts(T, #{shape => {8}}, #{}),
    Rows = parts(T, #{shape => {2, 4}}, #{0 => [0]}),
    #{live := After} = tessera:memory(),
    ?assert(After - Before < 4 bsl 20 + 1 bsl 16),
    ?assertEqual(16, length(Parts ++ Rows)).

%% Collected parts are freed.
check_memory() ->
    Blocks = tessera_test:blocks(),
    {Pid, Monitor} = spawn_monitor(fun() -> cut_and_join(5000, tessera:iota({64, 64})) end),
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end,
    tessera_test:until_freed(fun() ->
                                     #{devices := Devices} = tessera:memory(parts),
                                     lists:sum(maps:values(maps:without([0], Devices))) =:= 0
                                         andalso tessera_nif:live_blocks() =< Blocks + 50
                             end).

cut_and_join(0, _) -> ok;
cut_and_join(N, T) ->
    Mesh = #{shape => {2, 2}},
    Joined = tessera_mesh:gather(parts(T, Mesh, #{0 => [0], 1 => [1]}), Mesh, #{0 => [0], 1 => [1]}),
    cut_and_join(N - 1, Joined).

check_pictures() ->
    Draw = fun(Shape, Mesh, Sharding) -> lists:flatten(tessera_mesh:draw(Shape, #{shape => Mesh}, Sharding)) end,
    ?assertEqual("       0..2   3..5\n"
                 "     +------+------+\n"
                 "0..1 |    0 |    2 |\n"
                 "     +------+------+\n"
                 "2..3 |    1 |    3 |\n"
                 "     +------+------+\n", Draw({4, 6}, {2, 2}, #{0 => [1], 1 => [0]})),
    ?assertEqual(" +---------+\n | 0 1 2 3 |\n +---------+\n", Draw({}, {4}, #{})),
    ?assertEqual("     0     1\n +-----+-----+\n | 0 2 | 1 3 |\n +-----+-----+\n", Draw(tessera:iota({2}), {2, 2}, #{0 => [1]})),
    ?assertEqual(2, length(string:split(Draw({2, 4, 4}, {2, 2}, #{0 => [0]}), "[1]"))),
    ?assertEqual("   none\n +------+\n |    0 |\n +------+\n", Draw({0}, {1}, #{0 => [0]})).
