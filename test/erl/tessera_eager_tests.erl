%% Eager ops: many processes find their programs in the cache, and the memory of
%% their results is freed in time.
-module(tessera_eager_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").

ref(#tessera{ref = Ref}) -> Ref.

%% ---- the short way

like_test() -> tessera_eunit:on_host(fun like_here/0).

like_here() ->
    A = tessera:tensor([1.0, 2.0, 3.0]),
    B = tessera:tensor([10.0, 20.0, 30.0]),
    ok = tessera:clear_cache(),
    ok = tessera_memory:make_room(), % a NIF may ask for it first
    ?assertEqual(false, tessera_nif:op_like(add, ref(A), ref(B))), % not compiled yet
    _ = tessera:add(A, B),
    Sum = tessera_nif:op_like(add, ref(A), ref(B)),
    ?assertEqual([11.0, 22.0, 33.0], tessera:to_list(A#tessera{ref = Sum})),
    %% a first operand that is broadcast, or of another type than the result
    Scalar = tessera:tensor(1.0),
    ?assertEqual([2.0, 3.0, 4.0], tessera:to_list(tessera:add(Scalar, A))),
    ?assertEqual(false, tessera_nif:op_like(add, ref(Scalar), ref(A))),
    ?assertEqual([2.0, 3.0, 4.0], tessera:to_list(tessera:add(A, Scalar))),
    ?assertEqual([2.0, 3.0, 4.0], tessera:to_list(A#tessera{ref = tessera_nif:op_like(add, ref(A), ref(Scalar))})),
    _ = tessera:equal(A, B),
    ?assertEqual(false, tessera_nif:op_like(equal, ref(A), ref(B))),
    %% with attributes, or no op
    _ = tessera:sum(A),
    [?assertEqual(false, tessera_nif:op_like(Name, ref(A))) || Name <- [reduce_sum, reshape, nonsense, while, 5]],
    %% wrong operands
    ?assertEqual(false, tessera_nif:op_like(add, ref(A))),
    [?assertEqual(false, tessera_nif:op_like(add, ref(A), Other)) || Other <- [1.0, A, [ref(A)], make_ref(), <<>>, []]],
    [?assertEqual(false, tessera_nif:op_like(add, Other, ref(A))) || Other <- [1.0, A, [ref(A)], make_ref(), <<>>, []]],
    _ = tessera:negate(A),
    ?assertEqual([-1.0, -2.0, -3.0], tessera:to_list(A#tessera{ref = tessera_nif:op_like(negate, ref(A))})),
    ?assertEqual(false, tessera_nif:op_like(negate, [ref(A)])),
    ?assertEqual(false, tessera_nif:op_like(negate, ref(A), ref(B))),
    ok = tessera:deallocate(B),
    ?assertEqual(false, tessera_nif:op_like(add, ref(A), ref(B))).

%% The backend of Nx without Nx: tensors are maps in Nx's form.
nx(Type, Shape, Tensor) -> nx(Type, Shape, Tensor, {host, 0}).

nx(Type, Shape, Tensor, Place) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => tessera_nx_tensor:data(Tensor, Place), type => Type, shape => Shape,
      names => [nil || _ <- tuple_to_list(Shape)], vectorized_axes => []}.

numbers(#{data := #{buffer := Buffer}}) -> [X || <<X:32/float-native>> <= tessera_nx_buffer:read(Buffer)].

backend_test() ->
    A = nx({f, 32}, {3}, tessera:tensor([1.0, 4.0, 9.0])),
    B = nx({f, 32}, {}, tessera:tensor(2.0)),
    Out = A#{data := undefined, names := [x]},
    ok = tessera:clear_cache(),
    %% The first call compiles, the second takes the short way; they make the same.
    Twice = fun(F) ->
                    First = F(),
                    #{data := #{buffer := FirstBuffer}} = First,
                    #{data := #{buffer := SecondBuffer}} = Second = F(),
                    ?assertNotEqual(maps:get(ref, FirstBuffer), maps:get(ref, SecondBuffer)),
                    ?assertEqual(FirstBuffer#{ref := nil}, SecondBuffer#{ref := nil}),
                    ?assertEqual(maps:remove(data, First), maps:remove(data, Second)),
                    ?assertEqual(numbers(First), numbers(Second)),
                    First
            end,
    Sum = Twice(fun() -> tessera_nx_eager:binary(add, Out, A, B) end),
    ?assertEqual([3.0, 6.0, 11.0], numbers(Sum)),
    ?assertEqual([x], maps:get(names, Sum)),
    ?assertEqual([3.0, 6.0, 11.0], numbers(Twice(fun() -> tessera_nx_eager:binary(add, Out, B, A) end))),
    ?assertEqual([1.0, 2.0, 3.0], numbers(Twice(fun() -> tessera_nx_eager:unary(sqrt, Out, A) end))),
    Wide = Out#{type := {f, 64}},
    #{data := #{buffer := Buffer}} = tessera_nx_eager:binary(add, Wide, A, A),
    ?assertEqual(<<2.0/float-native, 8.0/float-native, 18.0/float-native>>, tessera_nx_buffer:read(Buffer)).

%% A result is on the device of the first operand, and counts in its account.
backend_place_test() ->
    Place = {eager_tests, 1},
    A = nx({f, 32}, {1000}, tessera:full({1000}, 1.0, f32), Place),
    Client = tessera_test:client(eager_tests),
    Held = fun() -> maps:get(per_device, tessera_nx_client:get_memory_statistics(Client)) end,
    ?assertEqual(#{0 => 0, 1 => 4000}, Held()),
    Sums = [tessera_nx_eager:binary(add, A, A, A) || _ <- [1, 2, 3]],
    [?assertMatch(#{client_name := eager_tests, device_id := 1}, Buffer) || #{data := #{buffer := Buffer}} <- Sums],
    ?assertEqual(#{0 => 0, 1 => 16000}, Held()),
    [ok = tessera_nx_backend:backend_deallocate(Sum) || Sum <- [A | Sums]],
    ?assertEqual(#{0 => 0, 1 => 0}, Held()).

%% Near the memory limit garbage is collected, and the error is the same on either path.
backend_limit_test() -> tessera_eunit:on_host(fun backend_limit_here/0).

backend_limit_here() ->
    #{live := Live, limit := Limit} = tessera:memory(),
    Add = fun(X) -> tessera_nx_eager:binary(add, X, X, X) end,
    A = nx({f, 32}, {2500}, tessera:full({2500}, 1.0, f32)),
    _ = Add(A),
    ok = tessera:set_memory_limit(Live + 1000000),
    try
        Keep = fun() -> exit({kept, length([Add(A) || _ <- lists:seq(1, 2000)])}) end,
        {Pid, Monitor} = spawn_monitor(Keep),
        receive
            {'DOWN', Monitor, process, Pid, Reason} ->
                {#{'__struct__' := 'Elixir.RuntimeError', message := Message}, _} = Reason,
                ?assertNotEqual(nomatch, string:find(Message, "limit"))
        end,
        %% garbage is collected when the limit is met
        lists:foreach(fun(_) -> Add(A) end, lists:seq(1, 2000))
    after
        tessera:set_memory_limit(Limit)
    end.

%% ---- programs

%% More programs than a thread keeps, and more than the cache holds.
many_programs_test_() ->
    {timeout, 120, fun() ->
        Check = fun(N) -> ?assertEqual(N, tessera:to_number(tessera:sum(tessera:add(tessera:zeros({N}, s32), 1)))) end,
        [Check(N) || _ <- [1, 2, 3], N <- lists:seq(1, 300)],
        [Check(N) || N <- lists:seq(1, 900) ++ [1, 300, 900]]
    end}.

%% Programs are dropped while others run them.
cleared_test_() ->
    {timeout, 60, fun() ->
        Self = self(),
        Shapes = lists:seq(1, 20),
        Work = fun Again() ->
                       [begin
                            X = tessera:full({N}, N, f32),
                            ?assertEqual([2.0 * N || _ <- lists:seq(1, N)], tessera:to_list(tessera:add(X, X)))
                        end || N <- Shapes],
                       receive {Self, stop} -> ok after 0 -> Again() end
               end,
        Workers = [spawn_monitor(Work) || _ <- lists:seq(1, 4)],
        [begin timer:sleep(5), ok = tessera:clear_cache() end || _ <- lists:seq(1, 50)],
        [Pid ! {Self, stop} || {Pid, _} <- Workers],
        [receive {'DOWN', M, process, _, Reason} -> ?assertEqual(normal, Reason) end || {_, M} <- Workers]
    end}.

%% ---- turns

%% A process that makes and drops tensors, and never waits, leaves few in memory: its scheduler turns end before.
%% Returns the peak of live bytes, less the bytes before.
left_behind() ->
    A = tessera:full({1000}, 1.0, f32),
    _ = tessera:add(A, A),
    #{live := Before} = tessera:memory(),
    ok = tessera:reset_peak_memory(),
    add(A, 20000),
    #{peak := Peak} = tessera:memory(),
    Peak - Before.

add(_, 0) -> ok;
add(A, N) ->
    _ = tessera_nif:op(undefined, add, [A, A], []),
    add(A, N - 1).

turns_test() ->
    erlang:garbage_collect(),
    timer:sleep(10),
    {Pid, Monitor} = spawn_monitor(fun() -> exit({left, left_behind()}) end),
    receive {'DOWN', Monitor, process, Pid, {left, Bytes}} -> ?assert(Bytes < 3000000) end.
