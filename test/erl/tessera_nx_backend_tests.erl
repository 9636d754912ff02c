%% The backend without Nx: the devices of results of several operands, and refused calls.
-module(tessera_nx_backend_tests).
-include_lib("eunit/include/eunit.hrl").

out(Shape) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => nil, type => {s, 32}, shape => Shape,
      names => lists:duplicate(tuple_size(Shape), nil), vectorized_axes => [], 'donatable?' => false}.

at(Client, Device) -> tessera_nx_eager:from_binary(out({1}), <<7:32/native>>, false, [{client, Client}, {device_id, Device}]).

op(Op, Out, Args) -> tessera_nx_eager:op(Op, Out, Args).

constant(Out, Number) -> tessera_nx_eager:source(constant, Out, [Number], []).

place(#{data := #{buffer := #{client_name := Client, device_id := Device}}}) -> {Client, Device}.

stacked(Tensors) -> place(op(stack, out({length(Tensors), 1}), [Tensors, 0])).

%% The last place that was chosen on purpose, else the last one.
place_test_() ->
    Clients = [{host, [{platform, host}, {device_count, 2}]},
               {other, [{platform, host}]},
               {alone, [{platform, host}, {device_count, 2}, {automatic_transfers, false}]}],
    {setup,
     fun() ->
             {ok, _} = application:ensure_all_started(tessera),     % which reads the settings of a file
             Before = application:get_env(tessera, clients),
             ok = application:set_env(tessera, clients, Clients),
             Before
     end,
     fun(undefined) -> application:unset_env(tessera, clients);
        ({ok, Before}) -> application:set_env(tessera, clients, Before)
     end,
     [?_assertEqual(Expected, stacked([at(Client, Device) || {Client, Device} <- Places]))
      || {Expected, Places} <- [{{host, 0}, [{host, 0}]},
                                {{other, 0}, [{host, 0}, {other, 0}]},
                                {{host, 0}, [{other, 0}, {host, 0}]},
                                {{host, 1}, [{host, 1}, {host, 0}]},
                                {{alone, 0}, [{alone, 0}, {host, 0}]},
                                {{alone, 1}, [{alone, 0}, {alone, 1}]},
                                {{alone, 0}, [{alone, 1}, {host, 0}, {alone, 0}, {other, 0}]}]]}.

%% Wrong options of a sharded function, found before anything is traced.
sharded_test() ->
    Mesh = #{'__struct__' => 'Elixir.Nx.Mesh', name => <<"mesh">>, shape => {1}},
    Run = fun(Given, Options) ->
                  tessera_nx_compiler:shard_jit(fun(X) -> X end, Given, [out({1})], fun([X]) -> X end, [[]], Options)
          end,
    ?assertError(#{message := <<"input_shardings are required for sharding", _/binary>>}, Run(Mesh, [])),
    ?assertError(#{message := <<"expected 1 input sharding configuration(s), got 0">>}, Run(Mesh, [{input_shardings, []}])),
    ?assertError(#{message := <<"expected input sharding to be a map, got: ", _/binary>>}, Run(Mesh, [{input_shardings, [7]}])),
    ?assertError(#{message := <<"the mesh has the shape {0}, expected sizes of at least 1">>},
                 Run(Mesh#{shape := {0}}, [{input_shardings, [#{}]}])).

complex_test() ->
    Number = #{'__struct__' => 'Elixir.Complex', re => 1, im => neg_infinity},
    Made = constant((out({}))#{type := {c, 64}}, Number),
    ?assertEqual(<<1.0:32/float-native, 16#ff800000:32/native>>, bytes(Made)),
    Z = constant((out({}))#{type := {c, 64}}, #{'__struct__' => 'Elixir.Complex', re => 3, im => -4}),
    Complex = (out({}))#{type := {c, 64}, data := maps:get(data, Z)},
    ?assertEqual(<<5.0:32/float-native>>, bytes(tessera_nx_eager:unary(abs, (out({}))#{type := {f, 32}}, Complex))),
    ?assertEqual(<<3.0:32/float-native>>, bytes(op(real, (out({}))#{type := {f, 32}}, [Complex]))),
    ?assertEqual(<<-4.0:32/float-native>>, bytes(op(imag, (out({}))#{type := {f, 32}}, [Complex]))),
    ?assertEqual(<<3.0:32/float-native, 4.0:32/float-native>>, bytes(op(conjugate, Complex, [Complex]))),
    ?assertEqual(<<-7.0:32/float-native, -24.0:32/float-native>>, bytes(tessera_nx_eager:binary(multiply, Complex, Complex, Complex))),
    Spread = constant((out({2}))#{type := {c, 128}}, 3),
    ?assertEqual(<<3.0:64/float-native, 0.0:64/float-native, 3.0:64/float-native, 0.0:64/float-native>>, bytes(Spread)).

bytes(Tensor) -> tessera_nx_backend:to_binary(Tensor, 100).

%% Numbers and the starts of slices are values of ops that run at once: others need no other program.
values_test() ->
    Source = tessera_nx_eager:from_binary(out({4, 2}), << <<I:32/native>> || I <- lists:seq(0, 7) >>, false, []),
    Each = fun(N) ->
                   ?assertEqual(<<N:32/native>>, bytes(constant(out({}), N))),
                   ?assertEqual(<<N:32/native, N:32/native>>, bytes(constant(out({2}), N))),
                   First = 2 * max(0, min(N, 3)),
                   ?assertEqual(<<First:32/native, (First + 1):32/native>>,
                                bytes(op(slice, out({1, 2}), [Source, [N, 0], [1, 2], [1, 1]]))),
                   ?assertEqual(<<First:32/native>>, bytes(op(slice, out({1, 1}), [Source, [N, 0], [1, 2], [1, 2]])))
           end,
    Each(0),
    #{programs := Programs} = tessera:memory(),
    lists:foreach(Each, lists:seq(-3, 40)),
    ?assertMatch(#{programs := Programs}, tessera:memory()).

%% As in a program, a number that the type does not hold wraps or is rounded.
constant_test() ->
    Of = fun(Type, N) -> bytes(constant((out({}))#{type := Type}, N)) end,
    ?assertEqual(<<44>>, Of({s, 8}, 300)),
    ?assertEqual(<<255>>, Of({u, 8}, -1)),
    ?assertEqual(<<200>>, Of({s, 8}, 200)),
    ?assertEqual(<<16#7F800000:32/native>>, Of({f, 32}, 1.0e300)),
    ?assertEqual(<<16#3F80:16/native>>, Of({bf, 16}, 1.00390625)),
    ?assertEqual(<<16#FF800000:32/native>>, Of({f, 32}, neg_infinity)),
    ?assertEqual(<<1.0e30:64/float-native>>, Of({f, 64}, 1.0e30)).
