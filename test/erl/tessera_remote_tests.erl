%% Tensors and compiled functions on other nodes.
-module(tessera_remote_tests).
-include_lib("eunit/include/eunit.hrl").
-export([make/1, keep/1, use/1, collect/0, compiled/0, add/2, nx_compiled/0, nx_tensor/1]).

remote_test_() -> {timeout, 120, fun() -> tessera_peers:with(2, fun check/1) end}.

check([A, B]) ->
    true = tessera_peers:call(A, net_kernel, connect_node, [tessera_peers:node_of(B)]),
    [read(A, B), operands(A, B), traced(A, B), functions(A, B), nx(A, B), gone(A, B), deallocated(A, B), lost(A, B)].

%% ---- calls on peers

%% A tensor that a process of this node keeps, and that process.
make(Numbers) ->
    Tensor = tessera:tensor(Numbers, f32),
    {Tensor, spawn(?MODULE, keep, [Tensor])}.

keep(Tensor) ->
    receive stop -> tessera:type(Tensor)
    end.

use(F) ->
    try F()
    catch error:Reason -> Reason
    end.

add(X, Y) -> tessera:add(tessera:multiply(X, 2.0), Y).

compiled() -> tessera:compile(fun ?MODULE:add/2, [tessera:template(f32, {3}), tessera:template(f32, {3})]).

made(Peer, Numbers) ->
    {Tensor, _} = tessera_peers:call(Peer, ?MODULE, make, [Numbers]),
    Tensor.

on(Peer, F) -> tessera_peers:call(Peer, ?MODULE, use, [F]).

%% ---- tensors of another node

read(A, B) ->
    T = made(A, [1, 2, 3]),
    ?assertEqual([1.0, 2.0, 3.0], on(B, fun() -> tessera:to_list(T) end)),
    ?assertEqual(<<1.0:32/float-native, 2.0:32/float-native, 3.0:32/float-native>>, on(B, fun() -> tessera:to_binary(T) end)),
    ?assertEqual("f32[3]\n[1.0, 2.0, 3.0]", lists:flatten(on(B, fun() -> tessera:format(T) end))),
    Scalar = made(A, 7),
    ?assertEqual(7.0, on(B, fun() -> tessera:to_number(Scalar) end)).

operands(A, B) ->
    T = made(A, [1, 2, 3]),
    ?assertEqual([2.0, 4.0, 6.0], on(B, fun() -> tessera:to_list(tessera:add(T, T)) end)),
    ?assertEqual([2.0, 3.0, 4.0], on(B, fun() -> tessera:to_list((tessera:jit(fun(X) -> tessera:add(X, 1.0) end))(T)) end)),
    %% other errors are not hidden
    ?assertMatch({invalid_argument, <<"add", _/binary>>}, on(B, fun() -> tessera:add(T, tessera:tensor([1, 2])) end)).

%% Tensors that a function holds, in ops, as results, and in regions; another value, no other program.
traced(A, B) ->
    Double = fun(T) -> fun(X) -> {tessera:multiply(X, T), T} end end,
    Values = fun(F) -> fun() ->
                               {X, Y} = (tessera:jit(F))(tessera:tensor([1.0, 1.0, 2.0])),
                               {tessera:to_list(X), tessera:to_list(Y), maps:get(programs, tessera:memory())}
                       end
             end,
    {[1.0, 2.0, 6.0], [1.0, 2.0, 3.0], Programs} = on(B, Values(Double(made(A, [1, 2, 3])))),
    ?assertEqual({[4.0, 5.0, 12.0], [4.0, 5.0, 6.0], Programs}, on(B, Values(Double(made(A, [4, 5, 6]))))),
    Flag = made(A, 1),
    T = made(A, [1, 2, 3]),
    Branch = fun(X) -> tessera:'cond'(tessera:greater(Flag, 0), fun() -> T end, fun() -> X end) end,
    ?assertEqual([1.0, 2.0, 3.0], on(B, fun() -> tessera:to_list((tessera:jit(Branch))(tessera:zeros({3}))) end)),
    Loop = fun(X) -> tessera:while(X, fun(Y) -> tessera:less(tessera:sum(Y), tessera:sum(T)) end,
                                   fun(Y) -> tessera:add(Y, T) end) end,
    ?assertEqual([1.0, 2.0, 3.0], on(B, fun() -> tessera:to_list((tessera:jit(Loop))(tessera:zeros({3}))) end)).

%% A function that another node compiled is compiled once here, and other entries of the cache stay.
functions(A, B) ->
    F = tessera_peers:call(A, ?MODULE, compiled, []),
    Run = fun() ->
                  One = tessera:tensor([1.0, 1.0, 1.0]),
                  {tessera:to_list(F(One, One)), maps:get(programs, tessera:memory())}
          end,
    {Result, Programs} = on(B, Run),
    ?assertEqual([3.0, 3.0, 3.0], Result),
    ?assert(Programs > 1),
    ?assertEqual({Result, Programs}, on(B, Run)),
    ?assertEqual(Result, element(1, on(A, Run))).

%% The same for the defn compiler and the backend.
nx(A, B) ->
    F = tessera_peers:call(A, ?MODULE, nx_compiled, []),
    T = #{data := Data} = tessera_peers:call(A, ?MODULE, nx_tensor, [[1.0, 2.0]]),
    Buffer = maps:get(buffer, Data),
    Run = fun() ->
                  [#{data := #{buffer := Result}}] = F([[fun() -> T end]]),
                  {tessera_nx_buffer:read(Result), maps:get(programs, tessera:memory())}
          end,
    {Result, Programs} = on(B, Run),
    ?assertEqual(floats([11.0, 22.0]), Result),
    ?assertEqual({Result, Programs}, on(B, Run)),
    Eager = fun() ->
                    #{data := #{buffer := #{client_name := host} = Sum}} = tessera_nx_eager:binary(add, T, T, T),
                    tessera_nx_buffer:read(Sum)
            end,
    ?assertEqual(floats([2.0, 4.0]), on(B, Eager)),
    ?assertEqual(floats([1.0, 2.0]), on(B, fun() -> tessera_nx_buffer:read(Buffer) end)),
    %% to this node, where it is not yet though client and device have the same names
    Moved = fun() ->
                    #{data := #{buffer := #{ref := Ref} = Here}} =
                        tessera_nx_backend:backend_transfer(T, 'Elixir.Tessera.Backend', []),
                    {node(Ref), tessera_nx_buffer:read(Here), tessera_nx_buffer:'deleted?'(Buffer)}
            end,
    ?assertEqual({tessera_peers:node_of(B), floats([1.0, 2.0]), true}, on(B, Moved)),
    ?assertMatch(#{message := <<"read was called on deleted or donated buffer">>}, on(B, Run)).

nx_tensor(Numbers) ->
    T = nx_template(length(Numbers), #{}),
    Made = tessera_nx_eager:from_binary(T, floats(Numbers), false, []),
    _ = spawn(fun() -> receive Stop -> {Stop, Made} end end),
    Made.

%% A function that adds a tensor of its environment.
nx_compiled() ->
    Node = fun(Op, Args) ->
                   nx_template(2, #{'__struct__' => 'Elixir.Nx.Defn.Expr', id => make_ref(), op => Op, args => Args})
           end,
    Held = nx_template(2, #{'__struct__' => 'Elixir.Nx.BinaryBackend', state => floats([10.0, 20.0])}),
    tessera_nx_compiler:compile({?MODULE, nx}, [Node(parameter, [0])],
                                   fun([X]) -> Node(add, [X, Node(tensor, [Held])]) end, []).

nx_template(Size, Data) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => Data, type => {f, 32}, shape => {Size}, names => [nil],
      vectorized_axes => [], 'donatable?' => false}.

floats(Numbers) -> << <<X:32/float-native>> || X <- Numbers >>.

%% The owner keeps a tensor only as long as one of its processes has it. A process of the owner that passed the tensor on has it until it
%% collects garbage.
gone(A, B) ->
    {T, Keeper} = tessera_peers:call(A, ?MODULE, make, [[1, 2, 3]]),
    true = tessera_peers:call(A, erlang, exit, [Keeper, kill]),
    Gone = fun() -> tessera:add(T, 1.0) end,
    tessera_test:until(fun() ->
                               ok = tessera_peers:call(A, ?MODULE, collect, []),
                               is_error(on(B, Gone))
                       end),
    ?assertMatch({unavailable, <<"add: the node ", _/binary>>}, on(B, Gone)).

collect() -> lists:foreach(fun erlang:garbage_collect/1, processes()).

is_error({Code, Message}) -> is_atom(Code) andalso is_binary(Message);
is_error(_) -> false.

deallocated(A, B) ->
    T = made(A, [1, 2, 3]),
    ?assertEqual(ok, on(B, fun() -> tessera:deallocate(T) end)),
    ?assertEqual(already_deallocated, on(A, fun() -> tessera:deallocate(T) end)),
    ?assertMatch({failed_precondition, _}, on(B, fun() -> tessera:add(T, 1.0) end)).

%% A node that dies while its tensor is wanted.
lost(A, B) ->
    T = made(A, [1, 2, 3]),
    ok = tessera_peers:stop(A),
    {Microseconds, Error} = timer:tc(fun() -> on(B, fun() -> tessera:add(T, 1.0) end) end),
    ?assertMatch({unavailable, _}, Error),
    ?assert(not tessera_test:is_timed() orelse Microseconds < 20000000),
    F = fun() -> tessera:add(T, 1.0) end,
    ?assertMatch({unavailable, _}, on(B, F)).
