%% Making tensors, reading them, and printing.
-module(tessera_tensor_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-import(tessera_test, [raises/2, raises/3]).

-define(INTEGERS, [s8, s16, s32, s64, u8, u16, u32, u64]).
-define(FLOATS, [f16, bf16, f32, f64]).

numbers_test() ->
    ?assertMatch(#tessera{type = s32, shape = {}}, tessera:tensor(5)),
    ?assertMatch(#tessera{type = f32, shape = {}}, tessera:tensor(5.0)),
    ?assertMatch(#tessera{type = s64, shape = {2}}, tessera:tensor([1, 1 bsl 40])),
    ?assertMatch(#tessera{type = u64, shape = {}}, tessera:tensor(1 bsl 63)),
    ?assertMatch(#tessera{type = f32, shape = {2, 1}}, tessera:tensor([[1], [2.5]])),
    ?assertMatch(#tessera{type = f32, shape = {0}}, tessera:tensor([])),
    ?assertMatch(#tessera{type = f32, shape = {2, 0}}, tessera:tensor([[], []])).

round_trip_test_() ->
    [?_assertEqual(List, tessera:to_list(tessera:tensor(List, Type)))
     || {Type, List} <- [{T, [[1, 2, 3], [4, 5, 127]]} || T <- ?INTEGERS] ++
                        [{T, [[1.0, -2.5], [nan, infinity], [neg_infinity, 0.0]]} || T <- ?FLOATS] ++
                        [{s8, [-128, 127]}, {u8, [0, 255]}, {s64, [-(1 bsl 63), (1 bsl 63) - 1]},
                         {u64, [0, (1 bsl 64) - 1]}, {f64, 0.1}, {s32, []}, {u8, [[[7]]]}]].

binary_test() ->
    Binary = << <<N:32/float-native>> || N <- lists:seq(1, 6) >>,
    T = tessera:from_binary(Binary, f32, {2, 3}),
    ?assertEqual([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], tessera:to_list(T)),
    ?assertEqual(Binary, tessera:to_binary(T)),
    ?assertEqual(24, tessera:byte_size(T)).

%% A large binary is kept, not copied: the view has its address.
zero_copy_test() ->
    Binary = crypto_free_random(1 bsl 20),
    Before = maps:get(live, tessera:memory()),
    T = tessera:from_binary(Binary, u8, {1 bsl 20}),
    ?assertEqual(Before, maps:get(live, tessera:memory())),
    ?assertEqual(Binary, tessera:to_binary(T)).

%% Neither misaligned bytes nor a small part of something large are wrapped.
copied_in_test() ->
    Large = crypto_free_random(1 bsl 20),
    <<_:8, Misaligned:65536/binary, _/binary>> = Large,
    <<_:64/binary, Small:65536/binary, _/binary>> = Large,
    <<_:8, Half:(1 bsl 19)/binary, _/binary>> = Large,
    [begin
         Before = maps:get(allocations, tessera:memory()),
         T = tessera:from_binary(Part, Type, {byte_size(Part) div 4}),
         ?assertEqual(Before + 1, maps:get(allocations, tessera:memory())),
         ?assertEqual(Part, tessera:to_binary(T))
     end || {Part, Type} <- [{Misaligned, s32}, {Small, s32}, {Half, f32}]].

%% Appending to a binary may move it; a tensor made of it does not change.
appended_binary_test() ->
    Binary = lists:foldl(fun(N, B) -> <<B/binary, N:64>> end, <<>>, lists:seq(1, 1000)),
    T = tessera:from_binary(Binary, u8, {8000}),
    Longer = lists:foldl(fun(N, B) -> <<B/binary, N:64>> end, Binary, lists:seq(1, 10000)),
    ?assertEqual(88000, byte_size(Longer)),
    ?assertEqual(Binary, tessera:to_binary(T)).

crypto_free_random(Size) -> << <<(rand:uniform(256) - 1)>> || _ <- lists:seq(1, Size) >>.

large_lists_test() ->
    List = lists:seq(1, 100000),
    ?assertEqual(List, tessera:to_list(tessera:tensor(List))).

view_outlives_tensor_test() ->
    T = tessera:add(tessera:iota({1000}), 1),
    View = tessera:to_binary(T),
    ok = tessera:deallocate(T),
    ?assertEqual(already_deallocated, tessera:deallocate(T)),
    _ = [tessera:add(tessera:iota({1000}), N) || N <- lists:seq(1, 10)],
    ?assertEqual(lists:seq(1, 1000), [N || <<N:32/native>> <= View]),
    raises(failed_precondition, fun() -> tessera:to_list(T) end),
    raises(failed_precondition, fun() -> tessera:add(T, 1) end),
    ?assertMatch(#tessera{}, T).

misuse_test_() ->
    [?_test(raises(Code, Words, F)) || {Code, Words, F} <-
        [{invalid_argument, "ragged: the list at [1] has 1 elements, the one at [0] has 2",
          fun() -> tessera:tensor([[1, 2], [3]]) end},
         {invalid_argument, "ragged: the list at [2] has 3 elements, the one at [0] has 2",
          fun() -> tessera:tensor([[1, 2], [3, 4], [5, 6, 7]]) end},
         {invalid_argument, "ragged: the list at [1,1] has 1 elements, the one at [0,0] has 2",
          fun() -> tessera:tensor([[[1, 2], [3, 4]], [[5, 6], [7]]]) end},
         {invalid_argument, "the list at [1] has 0 elements, the one at [0] has 1", fun() -> tessera:tensor([[1], []], f32) end},
         {invalid_argument, "the list at [1] has 1 elements, the one at [0] has 0", fun() -> tessera:tensor([[], [1]]) end},
         {invalid_argument, "ragged: there is a list at [1] and a number at [0]", fun() -> tessera:tensor([1, [2]]) end},
         {invalid_argument, "ragged: there is a list at [1,1] and a number at [0,0]",
          fun() -> tessera:tensor([[1, 2], [3, [4]]]) end},
         {invalid_argument, "at [1]: expected a number, got foo", fun() -> tessera:tensor([1, foo]) end},
         {invalid_argument, "at [1,0]: expected a number, got foo", fun() -> tessera:tensor([[1, 2], [foo, 4]]) end},
         {invalid_argument, "at [1]: expected a list of numbers, got foo", fun() -> tessera:tensor([[1, 2], foo]) end},
         {invalid_argument, "ragged: there is a number at [1] and a list at [0]", fun() -> tessera:tensor([[1], 2]) end},
         {invalid_argument, "expected a proper list, got [1|2]", fun() -> tessera:tensor([1 | 2]) end},
         {invalid_argument, "at [1]: expected a proper list, got [3|4]", fun() -> tessera:tensor([[1, 2], [3 | 4]]) end},
         {invalid_argument, "at [1]: expected a number, got 18446744073709551616, an integer of more than 64 bits",
          fun() -> tessera:tensor([1, 1 bsl 64]) end},
         {invalid_argument, "operand 2: expected a tensor or a number, got 18446744073709551616, an integer of more than "
          "64 bits", fun() -> tessera:add(1, 1 bsl 64) end},
         {invalid_argument, "type", fun() -> tessera:tensor([1], f31) end},
         {invalid_argument, "type", fun() -> tessera:tensor([1], c65) end},
         {invalid_argument, "{complex, 1, 2} is complex and f32 has real numbers only",
          fun() -> tessera:tensor([{complex, 1, 2}], f32) end},
         {invalid_argument, "expected a number, got {complex,1,foo}", fun() -> tessera:tensor([{complex, 1, foo}]) end},
         {out_of_range, "256", fun() -> tessera:tensor([256], u8) end},
         {out_of_range, "-129", fun() -> tessera:tensor([-129], s8) end},
         {invalid_argument, "bytes", fun() -> tessera:from_binary(<<1, 2, 3>>, s16, {2}) end},
         {invalid_argument, "binary", fun() -> tessera:from_binary(foo, s16, {2}) end},
         {invalid_argument, "binary", fun() -> tessera:from_binary(<<1:3>>, u8, {1}) end},
         {invalid_argument, "shape", fun() -> tessera:from_binary(<<>>, u8, {-1}) end},
         {invalid_argument, "shape", fun() -> tessera:from_binary(<<>>, u8, [1]) end},
         {invalid_argument, "tensor", fun() -> tessera:to_list(<<1, 2>>) end},
         {invalid_argument, "tensor", fun() -> tessera:to_binary(make_ref()) end},
         {invalid_argument, "tensor", fun() -> tessera:to_list(#tessera{ref = make_ref(), type = f32, shape = {}}) end},
         {failed_precondition, "contents", fun() -> tessera:to_list(tessera:template(f32, {})) end},
         {invalid_argument, "one element", fun() -> tessera:to_number(tessera:iota({2})) end},
         {resource_exhausted, "limit", fun() -> tessera:zeros({1 bsl 30, 1 bsl 30}) end},
         {resource_exhausted, "full: s8[1152921504606846976]", fun() -> tessera:full({1 bsl 60}, 1, s8) end},
         {resource_exhausted, "linspace: f64[36028797018963968]", fun() -> tessera:linspace(0, 1, 1 bsl 55) end},
         {resource_exhausted, "4398046511104 bytes (4096.0 GiB)", fun() -> tessera:zeros({1 bsl 40}) end},
         {out_of_range, "", fun() -> tessera:zeros({1 bsl 31, 1 bsl 31}) end},
         {resource_exhausted, "limit", fun() -> tessera:zeros({1 bsl 40}) end},
         {invalid_argument, "64", fun() -> tessera:zeros(list_to_tuple(lists:duplicate(65, 1))) end}]].

%% Lists of tensors are a job of stack/1, and the message says so, for any other items in the list.
tensors_in_list_test_() ->
    A = tessera:tensor([1.0, 2.0]),
    [?_test(raises(invalid_argument, At ++ ": expected a number, got a tensor; tessera:stack/1 makes one tensor of several",
                   fun() -> Make(List) end))
     || {At, List} <- [{"at [0]", [A, A]}, {"at [0]", [A]}, {"at [1]", [1, A]}, {"at [1]", [[1, 2], A]}, {"at [0,1]", [[1, A]]}],
        Make <- [fun tessera:tensor/1, fun(L) -> tessera:tensor(L, f32) end]] ++
    [?_test(raises(invalid_argument, "tessera:stack/1",
                   fun() -> (tessera:jit(fun(X) -> tessera:tensor([X, 1]) end))(1) end)),
     ?_assertEqual([[1.0, 2.0], [1.0, 2.0]], tessera:to_list(tessera:stack([A, A])))].

%% Every term that is no operand is refused, by every kind of op.
other_terms_test_() ->
    [?_test(raises(invalid_argument, fun() -> Op(Term) end))
     || Term <- [foo, <<1>>, make_ref(), self(), [1], {tessera, 1, f32, {}}, {tessera, make_ref(), f32, {}}, #{}, {},
                 fun() -> ok end, {tessera, [make_ref() | 0], f32, {}}, {tessera, undefined, f32, {}}],
        Op <- [fun tessera:exp/1, fun(T) -> tessera:add(1, T) end, fun(T) -> tessera:concatenate([tessera:tensor([1]), T]) end,
               fun(T) -> tessera:dot(tessera:iota({2}), T) end]].

print_test_() ->
    [?_assertEqual(Text, lists:flatten(io_lib:format("~s", [tessera:format(T)])))
     || {Text, T} <- [{"s32[] 5", tessera:tensor(5)},
                      {"f32[3]\n[0.1, nan, 1.0e10]", tessera:tensor([0.1, nan, 1.0e10])},
                      {"f32[0]\n[]", tessera:tensor([])},
                      {"u8[1,2]\n[\n  [1, 2]\n]", tessera:tensor([[1, 2]], u8)},
                      {"bf16[1]\n[0.33398]", tessera:tensor([1 / 3], bf16)}]].

long_print_test() ->
    Text = lists:flatten(io_lib:format("~s", [tessera:format(tessera:iota({1000, 10}))])),
    ?assert(length(Text) < 1000),
    ?assertNotEqual(nomatch, string:find(Text, "...")).

%% A copy of many bytes is made on a dirty scheduler: they lie where no tensor can.
long_copies_test_() ->
    {timeout, 60, fun() ->
        <<_, Bytes/binary>> = binary:copy(<<1>>, (64 bsl 20) + 1),
        Before = erlang:system_flag(scheduler_wall_time, true),
        try
            Start = dirty_time(),
            Tensor = tessera:from_binary(Bytes, f32, {16 bsl 20}),
            ?assert(dirty_time() > Start),
            ?assertEqual({16 bsl 20}, tessera:shape(Tensor)),
            ?assertEqual(Bytes, tessera:to_binary(Tensor))
        after erlang:system_flag(scheduler_wall_time, Before) end
    end}.

%% The work of the dirty schedulers.
dirty_time() ->
    First = erlang:system_info(schedulers) + 1,
    Last = erlang:system_info(schedulers) + erlang:system_info(dirty_cpu_schedulers),
    lists:sum([Active || {Id, Active, _} <- erlang:statistics(scheduler_wall_time_all), Id >= First, Id =< Last]).

%% From OTP 26 on the VM's compiled code loads eight bytes where a match wants six, from in front of the binary: there must be memory.
front_test() -> tessera_eunit:on_host(fun front_here/0).

front_here() ->
    Kept = [tessera:full({4096 * Pages}, 7, u8) || Pages <- [64, 256, 511, 512, 1024, 2560, 16384]],
    {Name, Bytes} = tessera_nif:share((hd(Kept))#tessera.ref, 8#600),
    Shared = tessera_nif:from_shared(Name, u8, {Bytes}, {host, 0}),
    {Address, _, host} = tessera_nif:address(Shared#tessera.ref),
    Pointed = tessera_nif:from_address(Address, u8, {Bytes}, {host, 0}),
    [?assertEqual({16#070707070707, 16#07070707070707}, front(tessera:to_binary(T))) || T <- [Shared, Pointed | Kept]].

front(<<A:48, B:56, _/binary>>) -> {A, B}.

%% ---- aligned text

shown(T, Options) -> unicode:characters_to_list(tessera:format(T, Options)).

aligned_test() ->
    ?assertEqual("f32[2,2]\n[[   1.00,   -2.50],\n [1000.00,     nan]]", shown(tessera:tensor([[1.0, -2.5], [1000.0, nan]]), #{precision => 2})),
    ?assertEqual("s32[3]\n[ 1, 20, -3]", shown(tessera:tensor([1, 20, -3]), #{})),
    ?assertEqual("f32[] 1.5", shown(tessera:tensor(1.5), #{precision => 1})),
    ?assertEqual("f32[0,2]\n[]", shown(tessera:zeros({0, 2}), #{})),
    ?assertEqual("f32[2,0]\n[[],\n []]", shown(tessera:zeros({2, 0}), #{})),
    ?assertEqual("u8[1,2,1]\n[[[1],\n  [2]]]", shown(tessera:tensor([[[1], [2]]], u8), #{})),
    %% blocks of a third axis are apart
    ?assertEqual("u8[2,1,2]\n[[[1, 2]],\n\n [[3, 4]]]", shown(tessera:tensor([[[1, 2]], [[3, 4]]], u8), #{})),
    ?assertEqual("c64[2]\n[  1.0+2.0i, -1.0-20.0i]", shown(tessera:tensor([{complex, 1, 2}, {complex, -1, -20}], c64), #{precision => 1})),
    %% numbers of very different sizes have exponents
    ?assertEqual("f64[2]\n[1.0e-12, 2.5e+03]", shown(tessera:tensor([1.0e-12, 2.5e3], f64), #{precision => 1})).

broken_lines_test() ->
    Text = shown(tessera:iota({2, 30}), #{columns => 40}),
    [_ | Lines] = string:split(Text, "\n", all),
    ?assert(length(Lines) > 4),
    [?assert(length(Line) =< 40) || Line <- Lines],
    ?assertEqual(lists:seq(0, 59), [list_to_integer(N) || N <- string:lexemes(lists:append(Lines), "[], ")]),
    %% a line holds at least one number
    ?assertEqual("s32[2]\n[100,\n 200]", shown(tessera:tensor([100, 200]), #{columns => 1})).

%% The ends of each axis, with the same elements as in the tensor.
cut_test() ->
    ?assertEqual("s32[9]\n[0, 1, ..., 7, 8]", shown(tessera:iota({9}), #{threshold => 8, edge => 2})),
    ?assertEqual("s32[9]\n[0, 1, 2, 3, 4, 5, 6, 7, 8]", shown(tessera:iota({9}), #{threshold => 9, edge => 2})),
    ?assertEqual("s32[2,5]\n[[0, ..., 4],\n [5, ..., 9]]", shown(tessera:iota({2, 5}), #{threshold => 0, edge => 1})),
    ?assertEqual("s32[5,2]\n[[0, 1],\n ...,\n [8, 9]]", shown(tessera:iota({5, 2}), #{threshold => 0, edge => 1})),
    ?assert(length(shown(tessera:iota({1000, 1000}), #{})) < 400).

refused_format_test() ->
    X = tessera:tensor([1.0]),
    [tessera_test:raises(invalid_argument, Words, fun() -> tessera:format(X, Options) end)
     || {Words, Options} <- [{"precision is -1, expected a number from 0 to 20", #{precision => -1}}, {"edge is 0", #{edge => 0}}, {"columns is a", #{columns => a}},
                             {"expected a map of options", []}]].
