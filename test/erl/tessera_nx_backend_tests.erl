%% The backend without Nx: where results of several operands are, and what is refused.
-module(tessera_nx_backend_tests).
-include_lib("eunit/include/eunit.hrl").

-define(BACKEND, 'Elixir.Tessera.Backend').

out(Shape) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => nil, type => {s, 32}, shape => Shape,
      names => lists:duplicate(tuple_size(Shape), nil), vectorized_axes => [], 'donatable?' => false}.

at(Client, Device) -> ?BACKEND:from_binary(out({1}), <<7:32/native>>, [{client, Client}, {device_id, Device}]).

place(#{data := #{buffer := #{client_name := Client, device_id := Device}}}) -> {Client, Device}.

stacked(Tensors) -> place(?BACKEND:stack(out({length(Tensors), 1}), Tensors, 0)).

%% The last place that was chosen on purpose, else the last one.
place_test_() ->
    Clients = [{host, [{platform, host}, {device_count, 2}]},
               {other, [{platform, host}]},
               {alone, [{platform, host}, {device_count, 2}, {automatic_transfers, false}]}],
    {setup,
     fun() ->
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

%% A sharded function that is given an argument to donate is refused for that, else because there is no mesh.
sharded_test() ->
    Run = fun(Donatable) ->
                  Var = (out({1}))#{'donatable?' := Donatable},
                  'Elixir.Tessera':'__shard_jit__'(fun(X) -> X end, #{}, [Var], fun([X]) -> X end, [[]], [])
          end,
    ?assertError(#{message := <<"buffer donation is not currently supported with sharded execution">>}, Run(true)),
    ?assertError(#{message := <<"Tessera does not have sharding yet">>}, Run(false)).

complex_test() ->
    ?assertError(#{message := <<"Tessera does not have the type c64 yet">>},
                 ?BACKEND:constant(out({}), #{'__struct__' => 'Elixir.Complex', re => 1, im => 2}, [])).
