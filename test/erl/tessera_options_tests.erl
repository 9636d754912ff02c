%% Options: the type of each function's options names the keys that the function knows, and an unknown key raises an error that
%% names it and lists these keys.
-module(tessera_options_tests).
-include_lib("eunit/include/eunit.hrl").

%% {Function, Arguments before the options}, for each function that takes options. Calls with an unknown option do nothing.
calls(tessera) ->
    X = tessera:tensor([[1.0, 2.0], [3.0, 4.0]]),
    I = tessera:tensor([[0, 1], [1, 0]]),
    U = tessera:tensor([1.0, 2.0]),
    F = fun tessera:add/2,
    [{Name, [X]} || Name <- [sum, product, reduce_max, reduce_min, all, any, mean, median, mode, logsumexp, variance,
                             standard_deviation, argmax, argmin, sort, argsort, unique, cumulative_sum, cumulative_product,
                             cumulative_min, cumulative_max, softmax, log_softmax, qr, svd, norm, fft, ifft, rfft, irfft, fft2,
                             ifft2, fftn, ifftn]] ++
    [{Name, [X, I]} || Name <- [take, take_along_axis, gather, triangular_solve]] ++
    [{Name, [X, I, U]} || Name <- [indexed_add, indexed_put]] ++
    [{Name, [X, {1, 2}]} || Name <- [window_sum, window_product, window_max, window_min, window_mean]] ++
    [{Name, [X, tessera:tensor([[1.0], [2.0]]), 0, {1, 2}]} || Name <- [window_scatter_max, window_scatter_min]] ++
    [{top_k, [X, 1]}, {quantile, [X, 0.5]}, {reduce, [X, 0, F]}, {window_reduce, [X, 0, {1, 2}, F]},
     {conv, [tessera:iota({1, 3, 1}, f32), tessera:iota({2, 1, 1}, f32)]},
     {jit, [F]}, {compile, [F, [X, X]]}, {shard_jit, [F, #{shape => {1}}]}, {shard_map, [F, #{shape => {1}}, [#{}, #{}], #{}]},
     {open_client, [options_client]}];
calls(tessera_random) ->
    Key = tessera_random:key(1),
    [{Name, [Key]} || Name <- [bits, uniform, uniform_split, normal, normal_split, gumbel, gumbel_split]] ++
    [{Name, [Key, 0.5]} || Name <- [exponential, pareto, rayleigh, chi_square, student_t, bernoulli, poisson, geometric]] ++
    [{Name, [Key, 1, 2]} || Name <- [uniform, uniform_split, normal, normal_split, truncated_normal, log_normal, laplace, logistic,
                                     cauchy, weibull, gamma, beta, randint, randint_split]] ++
    [{binomial, [Key, 3, 0.5]}, {dirichlet, [Key, tessera:tensor([1.0, 2.0])]}, {categorical, [Key, tessera:tensor([1.0, 2.0])]}] ++
    [{Name, [Key, tessera:tensor([0.0, 0.0]), tessera:eye(2)]} || Name <- [multivariate_normal, multivariate_normal_split]] ++
    [{Name, [Key, 3]} || Name <- [permutation, choice]] ++ [{shuffle, [Key, tessera:iota({3})]}];
calls(tessera_io) ->
    [{load, ["none"]}, {save, ["none.npy", tessera:iota({3})]}, {read_csv, ["none"]}];
calls(tessera_cluster) ->
    [{start_link, []}, {join, []}, {child_spec, []}].

modules() -> [tessera, tessera_random, tessera_io, tessera_cluster].

%% A function whose last argument is called Options, and one whose options have a type, is in the table.
is_complete_test_() ->
    [{atom_to_list(Module),
      fun() ->
              Code = code(Module),
              Called = [{Name, length(Args) + 1} || {Name, Args} <- calls(Module)],
              Taking = [F || {function, _, Name, Arity, Clauses} <- Code, F <- [{Name, Arity}],
                             lists:member(F, Module:module_info(exports)), not is_private(Module, F),
                             takes_options(Clauses) orelse is_list(keys(Module, F))],
              ?assertEqual([], Taking -- Called),
              ?assertEqual([], [F || F <- Called, not is_list(keys(Module, F))])
      end} || Module <- modules()].

is_private(tessera_cluster, F) -> lists:member(F, [{options, 1}]);
is_private(_, _) -> false.

takes_options(Clauses) ->
    lists:any(fun({clause, _, [_ | _] = Args, _, _}) -> is_options(lists:last(Args)); (_) -> false end, Clauses).

is_options({var, _, 'Options'}) -> true;
is_options(_) -> false.

unknown_test_() ->
    [{lists:flatten(io_lib:format("~s:~s/~b", [Module, Name, length(Args) + 1])),
      fun() -> check(Module, Name, Args) end}
     || Module <- modules(), {Name, Args} <- calls(Module), Name =/= child_spec].

check(Module, Name, Args) ->
    Known = keys(Module, {Name, length(Args) + 1}),
    Text = refusal(Module, Name, Args ++ [#{misspelt => 1}]),
    ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, "misspelt")}),
    ?assertNotEqual({Text, Known, nomatch}, {Text, Known, string:find(Text, io_lib:format("~0p", [lists:sort(Known)]))}).

refusal(tessera_cluster, Name, Args) ->
    {error, {invalid_argument, Text}} = apply(tessera_cluster, Name, Args),
    Text;
refusal(Module, Name, Args) ->
    try apply(Module, Name, Args) of
        Value -> error({returned, Value})
    catch error:{invalid_argument, Text}:Trace ->
            %% the error is that of the function that was called
            ?assertMatch([{_, Name, _, _} | _], Trace),
            Text
    end.

%% ---- the keys of the map that is the type of a function's last argument; none unless it is a map of named options

keys(Module, {Name, Arity} = F) ->
    Code = code(Module),
    case [Spec || {attribute, _, spec, {Function, [Spec | _]}} <- Code, Function =:= F orelse Function =:= {Module, Name, Arity}] of
        [Spec] -> keys_of(Module, Code, lists:last([none | arguments(Spec)]));
        [] -> none
    end.

arguments({type, _, bounded_fun, [Fun, _]}) -> arguments(Fun);
arguments({type, _, 'fun', [{type, _, product, Args}, _]}) -> Args.

keys_of(Module, Code, {user_type, _, Name, []}) ->
    [Type] = [Type || {attribute, _, type, {Own, Type, []}} <- Code, Own =:= Name],
    keys_of(Module, Code, Type);
keys_of(Module, _, {remote_type, _, [{atom, _, Other}, {atom, _, Name}, []]}) when Other =/= Module ->
    case lists:prefix("tessera_io", atom_to_list(Other)) of
        true -> keys_of(Other, code(Other), {user_type, 0, Name, []});
        false -> none
    end;
keys_of(Module, Code, {type, _, union, Types}) ->
    lists:last([none | [Keys || Type <- Types, Keys <- [keys_of(Module, Code, Type)], is_list(Keys)]]);
keys_of(_, _, {type, _, map, [_ | _] = Fields}) ->
    case [Key || {type, _, _, [{atom, _, Key}, _]} <- Fields] of
        Keys when length(Keys) =:= length(Fields) -> lists:sort(Keys);
        _ -> none
    end;
keys_of(_, _, _) -> none.

code(Module) ->
    case get({?MODULE, Module}) of
        undefined ->
            {ok, {Module, [{abstract_code, {_, Code}}]}} = beam_lib:chunks(code:which(Module), [abstract_code]),
            put({?MODULE, Module}, Code),
            Code;
        Code -> Code
    end.
