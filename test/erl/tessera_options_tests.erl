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
    [{Name, [X]} || Name <- [average, nan_sum, nan_product, nan_max, nan_min, nan_mean, nan_variance, nan_standard_deviation, nan_median,
                             nan_argmax, nan_argmin, cov, corrcoef, diff, nonzero, argwhere, nan_to_num, trace]] ++
    [{tri, [2]}, {meshgrid, [[U, U]]}, {is_close, [X, X]}, {all_close, [X, X]}, {repeat, [X, 2]}, {roll, [X, 1]}, {searchsorted, [U, U]},
     {digitize, [U, U]}, {nan_quantile, [X, 0.5]}, {histogram, [U, 2]}, {bincount, [I]}, {interp, [U, U, U]},
     {cross, [tessera:iota({3}), tessera:iota({3})]}] ++
    [{top_k, [X, 1]}, {quantile, [X, 0.5]}, {reduce, [X, 0, F]}, {window_reduce, [X, 0, {1, 2}, F]},
     {conv, [tessera:iota({1, 3, 1}, f32), tessera:iota({2, 1, 1}, f32)]},
     {jit, [F]}, {compile, [F, [X, X]]}, {shard_jit, [F, #{shape => {1}}]}, {shard_map, [F, #{shape => {1}}, [#{}, #{}], #{}]},
     {open_client, [options_client]}, {profile, [F, [X, X]]}, {format, [X]}, {print, [X]}] ++
    [{Name, [X]} || Name <- [new_axis, axis_size, transpose, reverse, squeeze]] ++ [{Name, [[X, X]]} || Name <- [concatenate, stack]] ++
    [{iota, [{2, 3}]}, {iota, [{2, 3}, u8]}, {split, [X, [1, 1]]}, {broadcast, [X, {2, 2, 2}]}, {dot, [X, X]},
     {quantize, [X]}];
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
            %% the error names the called function
            ?assertMatch([{_, Name, _, _} | _], Trace),
            Text
    end.

%% The modules that compute the operations have the same types of options as the documented functions.
inner_types_test() ->
    Public = option_types(tessera),
    Inner = option_types(tessera_options),
    ?assertNotEqual(#{}, Inner),
    ?assertEqual(Inner, maps:with(maps:keys(Inner), Public)).

%% No function of these modules takes a map of any keys as its options.
inner_specs_test_() ->
    [{atom_to_list(Module), ?_assertEqual([], [{F, Args} || {attribute, _, spec, {F, Specs}} <- code(Module), Spec <- Specs,
                                                            Args <- [arguments(Spec)], Args =/= [], F =/= {options, 4},
                                                            {type, _, map, any} <- [lists:last(Args)]])}
     || Path <- filelib:wildcard(filename:join([filename:dirname(code:which(tessera)), "..", "erl", "ops", "*.erl"])),
        Module <- [list_to_atom(filename:basename(Path, ".erl"))]].

option_types(Module) ->
    maps:from_list([{Name, erl_parse:map_anno(fun(_) -> 0 end, Type)}
                    || {attribute, _, type, {Name, Type, []}} <- code(Module), lists:suffix("_options", atom_to_list(Name))]).

%% ---- axes: a map of options, or the axes alone

axes_test_() ->
    X = tessera:iota({1, 2, 3}),
    Y = tessera:iota({1, 3, 2}),
    [{lists:flatten(io_lib:format("~s ~0p", [Name, Options])),
      ?_assertEqual(contents(apply(tessera, Name, Args ++ [Axes])), contents(apply(tessera, Name, Args ++ [Options])))}
     || {Name, Args, Axes, All} <- [{iota, [{2, 3}, u8], 1, [#{axis => 1}, #{axis => -1}, #{axes => [1]}]},
                                    {iota, [{2, 3}], s32, [#{}, #{type => s32}, #{axis => all}]},
                                    {concatenate, [[X, X]], 1, [#{axis => 1}, #{axis => [-2]}, #{axes => 1}]},
                                    {concatenate, [[X, X]], 0, [#{}]},
                                    {stack, [[X, X]], -1, [#{axis => 3}]}, {stack, [[X, X]], 0, [#{}]},
                                    {split, [X, [1, 2]], 2, [#{axis => -1}]}, {split, [X, [1]], 0, [#{}]},
                                    {new_axis, [X], 3, [#{axis => -1}]}, {new_axis, [X], 0, [#{}]},
                                    {axis_size, [X], 2, [#{axis => -1}, #{axes => [2]}]},
                                    {transpose, [X], [1, 0, 2], [#{axes => [-2, 0, 2]}]}, {transpose, [X], [2, 1, 0], [#{}]},
                                    {reverse, [X], [1, 2], [#{axes => [-1, 1]}]}, {reverse, [X], 2, [#{axis => 2}]}, {reverse, [X], all, [#{}]},
                                    {squeeze, [X], 0, [#{axis => 0}, #{axes => [-3]}, #{}]},
                                    {broadcast, [X, {1, 2, 3, 4}], [0, 1, 2], [#{axes => [0, 1, 2]}]},
                                    {broadcast, [X, {2, 1, 2, 3}], [1, 2, 3], [#{}]}],
        Options <- All] ++
    [?_assertEqual(contents(tessera:dot(X, [2], [0], Y, [1], [0])), contents(tessera:dot(X, Y, Options)))
     || Options <- [#{axes => {[2], [1]}, batch_axes => {[0], [0]}}, #{axis => {2, 1}, batch_axes => {0, 0}}, #{batch_axes => {0, 0}}]] ++
    [?_assertEqual(contents(tessera:dot(A, B)), contents(tessera:dot(A, B, #{})))
     || {A, B} <- [{X, Y}, {tessera:iota({3}), tessera:iota({3})}, {X, tessera:iota({3})}, {tessera:iota({3}), tessera:iota({3, 2})}, {X, 3}]].

contents(Results) when is_list(Results) -> [contents(T) || T <- Results];
contents(Size) when is_integer(Size) -> Size;
contents(T) -> {tessera:type(T), tessera:shape(T), tessera:to_binary(T)}.

wrong_axes_test_() ->
    X = tessera:iota({2, 3}),
    [?_test(tessera_test:raises(invalid_argument, Words, F))
     || {Words, F} <- [{"concatenate(s32[2,3]): no axis 2 in a tensor of rank 2", fun() -> tessera:concatenate([X], #{axis => 2}) end},
                       {"concatenate(s32[2,3]): expected one axis, got [0,1]", fun() -> tessera:concatenate([X], #{axis => [0, 1]}) end},
                       {"stack(s32[2,3]): axis and axes are the same option", fun() -> tessera:stack([X], #{axis => 0, axes => 0}) end},
                       {"an axis is there twice", fun() -> tessera:transpose(X, #{axes => [0, 0]}) end},
                       {"axis_size(s32[2,3]): no axis none", fun() -> tessera:axis_size(X, #{}) end},
                       {"dot(s32[2,3], s32[2,3]): axes is [0], expected {AxesOfA, AxesOfB}", fun() -> tessera:dot(X, X, #{axes => [0]}) end}]].

%% ---- indices and counts

%% Functions that make indices of a tensor of the shape {N}, or of a number N. The last index is N - 1.
counting() ->
    First = fun({Value, _}) -> Value end,
    [{iota, fun(X) -> tessera:iota(tessera:shape(X)) end},
     {iota_of_options, fun(X) -> tessera:iota(tessera:shape(X), #{axis => 0}) end},
     {argmax, fun tessera:argmax/1}, {argmax_along, fun(X) -> tessera:argmax(X, #{axis => 0}) end}, {argmin, fun tessera:argmin/1},
     {argsort, fun tessera:argsort/1}, {top_k, fun(X) -> element(2, tessera:top_k(X, 1)) end},
     {categorical, fun(X) -> First(tessera_random:categorical(tessera_random:key(1), tessera:as_type(X, f32))) end},
     {choice, fun(X) -> First(tessera_random:choice(tessera_random:key(1), tessera:size(X))) end}].

%% The type of a function's result for a tensor of N elements. The function is traced and not run.
type_of(F, N) ->
    _ = tessera:to_text(fun(X) -> T = F(X), put(?MODULE, tessera:type(T)), T end, [tessera:template(u8, {N})]),
    erase(?MODULE).

index_type_test_() ->
    [{atom_to_list(Name), ?_assertEqual({[s32, s32], s64}, {[type_of(F, N) || N <- [3, 1 bsl 31]], type_of(F, (1 bsl 31) + 1)})}
     || {Name, F} <- counting()] ++
    [{"at once", ?_assertEqual(s32, tessera:type(F(tessera:tensor([3, 1, 2], u8))))} || {_, F} <- counting()] ++
    [?_assertEqual(s32, tessera:type(T))
     || T <- [tessera:matrix_rank(tessera:eye(3)), tessera:matrix_rank(tessera:eye(3, f64)),
              element(1, tessera_random:permutation(tessera_random:key(1), 4))]] ++
    %% more than 2^31 columns, as many singular values as rows
    [?_assertEqual(s32, type_of(fun(_) -> tessera:matrix_rank(tessera:zeros({2, 3})) end, 1))].

given_type_test_() ->
    X = tessera:zeros({300}),
    Functions = [{iota, fun(Type) -> tessera:iota({300}, Type) end}, {iota, fun(Type) -> tessera:iota({300}, #{type => Type}) end},
                 {iota, fun(Type) -> tessera:iota({300}, Type, #{axis => 0}) end}] ++
                [{Name, fun(Type) -> tessera:Name(X, #{type => Type}) end} || Name <- [argmax, argmin, argsort]] ++
                [{top_k, fun(Type) -> element(2, tessera:top_k(X, 3, #{type => Type})) end}],
    [{atom_to_list(Name), fun() ->
                                  [?assertEqual(Type, tessera:type(F(Type))) || Type <- [s16, u16, s32, s64, u64]],
                                  tessera_test:raises(out_of_range, "the index 299 does not fit in u8", fun() -> F(u8) end)
                          end} || {Name, F} <- Functions] ++
    [?_test(tessera_test:raises(out_of_range, "the index 2147483648 does not fit in s32", fun() -> tessera:iota({(1 bsl 31) + 1}, s32) end))].

%% Above 2^31 elements the largest are found by sorting, in the order of top_k/2: a NaN first, the first of equals first.
top_k_of_sorted_test() ->
    X = tessera:tensor([2.0, nan, 7.0, 2.0, 7.0, infinity, -0.0, 0.0, nan]),
    {Values, Indices} = tessera:top_k(X, 9),
    Order = tessera:argsort(X, #{descending => true}),
    ?assertEqual(tessera:to_list(Indices), tessera:to_list(Order)),
    ?assertEqual(tessera:to_binary(Values), tessera:to_binary(tessera:take(X, Order))).

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
