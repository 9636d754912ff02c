%% Every function of the API with every argument replaced by invalid terms: each
%% call must raise an error of Tessera that names the function, both eager and
%% traced. A new function of the API must be added to calls/0 or
%% to others/0.
-module(tessera_misuse_tests).
-include_lib("eunit/include/eunit.hrl").
-include("tessera.hrl").
-export([calls/0, misuse/3]).

%% {Function, [{Kind, Argument}]}: calls that work; the kinds are defined by bad/1.
calls() ->
    X = {operand, tessera:tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])},
    I = {integers, tessera:tensor([[1, 2, 3], [4, 5, 6]])},
    I2 = {integers, tessera:tensor([[1, 2], [0, 0]])},
    V = {operand, tessera:tensor([1, 2])},
    [S, V2] = [{tensor, tessera:tensor(L)} || L <- [[[4.0, 1.0], [1.0, 3.0]], [1.0, 2.0]]],
    F2 = {function2, fun tessera:add/2},
    unary_calls(X, I) ++ binary_calls(X, I) ++
    [{tensor, [{data, [1, 2]}]}, {tensor, [{data, [1, 2]}, {type, f32}]},
     {from_binary, [{binary, <<1, 2, 3, 4>>}, {type, u8}, {shape, {2, 2}}]},
     {iota, [{shape, {2}}]}, {iota, [{shape, {2}}, {type, s32}]}, {iota, [{shape, {2}}, {type, s32}, {axis, 0}]},
     {full, [{shape, {2}}, {operand, 1}]}, {full, [{shape, {2}}, {operand, 1}, {type, u8}]},
     {zeros, [{shape, {2}}]}, {zeros, [{shape, {2}}, {type, u8}]}, {ones, [{shape, {2}}]},
     {ones, [{shape, {2}}, {type, u8}]}, {eye, [{size_or_shape, 2}]}, {eye, [{size_or_shape, {2, 3}}, {type, u8}]},
     {linspace, [{number, 0}, {number, 1}, {count, 3}]}, {linspace, [{number, 0}, {number, 1}, {count, 3}, {float,
     f32}]},
     {one_hot, [I, {count, 3}]}, {one_hot, [I, {count, 3}, {type, u8}]},
     {to_binary, [{tensor, element(2, X)}]}, {to_list, [{tensor, element(2, X)}]},
     {to_number, [{tensor, tessera:tensor(1)}]}, {byte_size, [{sized, element(2, X)}]},
     {format, [{record, element(2, X)}]}, {format, [{record, element(2, X)}, {{options, [{precision, count}]}, #{}}]}, {deallocate, [{tensor, tessera:tensor([1])}]},
     {axis_size, [{tensor, element(2, X)}, {axis, 0}]},
     {select, [X, X, X]}, {clip, [X, {operand, 0}, {operand, 1}]}, {as_type, [X, {type, s8}]}, {bitcast, [X, {type32,
     s32}]},
     {reshape, [X, {new_shape, {3, 2}}]}, {flatten, [X]}, {squeeze, [X]}, {squeeze, [{operand, tessera:tensor([[1]])},
     {axes, [0]}]},
     {new_axis, [X, {axis, 0}]}, {broadcast, [X, {shape, {2, 2, 3}}]}, {broadcast, [X, {shape, {2, 2, 3}}, {axes, [1,
     2]}]},
     {transpose, [X]}, {transpose, [X, {axes, [1, 0]}]}, {reverse, [X]}, {reverse, [X, {axes, [0]}]},
     {slice, [X, {starts, [0, 0]}, {sizes, [1, 2]}]}, {slice, [X, {starts, [0, 0]}, {sizes, [1, 2]}, {strides, [1,
     1]}]},
     {at, [X, {starts, [1]}]}, {put_slice, [X, {starts, [0, 1]}, {operand, tessera:tensor([[9.0]])}]},
     {pad, [X, {operand, 0}, {padding, [{1, 1, 0}, {0, -1, 2}]}]},
     {concatenate, [{tensors, [element(2, X), element(2, X)]}]}, {concatenate, [{tensors, [element(2, X)]}, {axis, 0}]},
     {stack, [{tensors, [element(2, X), element(2, X)]}]}, {stack, [{tensors, [element(2, X)]}, {axis, 0}]},
     {split, [X, {parts, [1, 1]}]}, {split, [X, {parts, [1, 2]}, {axis, 1}]},
     {take, [X, I]}, {take, [X, I, {{options, [{axis, axis}]}, #{}}]},
     {take_along_axis, [X, I]}, {take_along_axis, [X, I, {{options, [{axis, axis}]}, #{}}]},
     {quantize, [X]}, {quantize, [X, {{options, [{axis, axis}, {bits, count}, {group, any}, {form, any}, {scales, any}]}, #{bits => 4}}]},
     {gather, [X, I2]}, {gather, [X, I2, {{options, [{axes, axes}]}, #{}}]}] ++
    [{Name, [X, I2, {operand, tessera:tensor([8.0, 9.0])} | Options]}
     || Name <- [indexed_add, indexed_put], Options <- [[], [{{options, [{axes, axes}]}, #{}}]]] ++
    [{Name, [X | Options]} || Name <- [sum, product, reduce_max, reduce_min, all, any, mean, logsumexp],
                              Options <- [[], [{{options, [{axes, axes}, {keep_axes, boolean}]},
                                                #{keep_axes => true}}]]] ++
    [{Name, [X | Options]} || Name <- [variance, standard_deviation],
                              Options <- [[], [{{options, [{axes, axes}, {keep_axes, boolean}, {ddof, number}]},
                                                #{ddof => 1}}]]] ++
    [{Name, [X | Options]} || Name <- [softmax, log_softmax], Options <- [[], [{{options, [{axes, axes}]}, #{}}]]] ++
    [{Name, [X | Options]} || Name <- [argmax, argmin],
                              Options <- [[], [{{options, [{axis, axis}, {keep_axis, boolean}, {tie_break, any},
                                                       {type, integer_type}]}, #{}}]]] ++
    [{Name, [X | Options]} || Name <- [cumulative_sum, cumulative_product, cumulative_min, cumulative_max],
                              Options <- [[], [{{options, [{axis, axis}, {reverse, boolean}]}, #{}}]]] ++
    window_calls(X, F2) ++ named_calls(X, I, V) ++
    [{Name, [X | Options]} || Name <- [fft, ifft, rfft, irfft],
                              Options <- [[], [{{options, [{axis, axis}, {length, count}]}, #{}}]]] ++
    [{Name, [X | Options]} || Name <- [fft2, ifft2, fftn, ifftn],
                              Options <- [[], [{{options, [{axes, axes}, {lengths, any}]}, #{}}]]] ++
    [{Name, [X | Options]} || {Name, More} <- [{sort, []}, {argsort, [{type, integer_type}]}],
                              Options <- [[], [{{options, [{axis, axis}, {descending, boolean} | More]}, #{}}]]] ++
    [{Name, [X | Options]} || Name <- [median, mode],
                              Options <- [[], [{{options, [{axes, axes}, {keep_axes, boolean}]}, #{}}]]] ++
    [{top_k, [X, {count, 1} | Options]} || Options <- [[], [{{options, [{axis, axis}, {type, integer_type}]}, #{}}]]] ++
    [{quantile, [X, {fractions, 0.5} | Options]}
     || Options <- [[], [{{options, [{axes, axes}, {keep_axes, boolean}, {method, any}]}, #{}}]]] ++
    [{unique, [X | Options]} || Options <- [[], [{{options, [{size, count}, {fill, number}]}, #{size => 6}}]]] ++
    [{reduce, [X, {operand, 0}, F2]},
     {reduce, [X, {operand, 0}, F2, {{options, [{axes, axes}, {keep_axes, boolean}]}, #{}}]},
     {dot, [X, {operand, tessera:iota({3, 2})}]},
     {dot, [X, {operand, tessera:iota({3, 2})}, {{options, [{axes, any}, {batch_axes, any}]}, #{axes => {1, 0}}}]},
     {dot, [X, {axes, [0]}, V, {axes, [0]}]},
     {dot, [X, {axes, [1]}, {axes, [0]}, X, {axes, [1]}, {axes, [0]}]}, {outer, [V, V]},
     {cholesky, [S]}, {solve, [S, V2]}, {inverse, [S]}, {determinant, [S]}, {lu, [S]}, {eigh, [S]}, {eigh, [S, S]}, {eig, [S]}, {schur, [S]}, {pinv, [S]}, {lstsq, [S, V2]},
     {matrix_power, [S, {power, 3}]}, {matrix_rank, [S]}, {norm, [{operand, tessera:iota({2, 3})}]},
     {norm, [{operand, tessera:iota({2, 3})}, {{options, [{axes, axes}, {keep_axes, boolean}, {order, order}]}, #{}}]},
     {qr, [S]}, {svd, [S]}, {qr, [S, {{options, [{full, boolean}]}, #{}}]}, {svd, [S, {{options, [{full, boolean}]}, #{}}]},
     {triangular_solve, [S, V2]},
     {triangular_solve, [S, V2, {{options, [{lower, boolean}, {left_side, boolean}, {transpose, boolean},
                                            {unit_diagonal, boolean}]}, #{lower => false}}]},
     {stop_grad, [X]},
     {while, [{operand, 0}, {function1, fun(N) -> tessera:less(N, 3) end}, {function1, fun(N) -> tessera:add(N,
     1) end}]},
     {'cond', [{operand, 1}, {function0, fun() -> 1 end}, {function0, fun() -> 2 end}]}].

%% Functions that NumPy has, too.
named_calls(X, I, V) ->
    Reduction = {options, [{axes, axes}, {keep_axes, boolean}]},
    Spread = {options, [{axes, axes}, {keep_axes, boolean}, {ddof, number}]},
    Arg = {options, [{axis, axis}, {keep_axis, boolean}, {tie_break, any}, {type, integer_type}]},
    Close = {options, [{rtol, number}, {atol, number}, {equal_nan, boolean}]},
    Found = {options, [{size, count}, {fill, number}]},
    Three = {operand, tessera:tensor([1.0, 2.0, 3.0])},
    Square = {operand, tessera:tensor([[4.0, 1.0], [1.0, 3.0]])},
    Either = fun(Name, Args, Options) -> [{Name, Args}, {Name, Args ++ [Options]}] end,
    [{arange, [{number, 3}]}, {arange, [{number, 1}, {number, 3}]}, {arange, [{number, 1}, {number, 3}, {number, 1}]},
     {arange, [{number, 1}, {number, 3}, {number, 1}, {type, f32}]}] ++
    Either(tri, [{count, 2}], {{options, [{columns, count}, {offset, power}, {type, type}]}, #{}}) ++
    Either(meshgrid, [{lines, [element(2, V), element(2, V)]}], {{options, [{indexing, any}]}, #{}}) ++
    [{Name, [X]} || Name <- [log2, log10, is_finite]] ++ [{hypot, [X, X]}] ++
    lists:append([Either(Name, [X, X], {Close, #{}}) || Name <- [is_close, all_close]]) ++
    Either(nan_to_num, [X], {{options, [{nan, number}, {infinity, number}, {neg_infinity, number}]}, #{}}) ++
    [{tile, [X, {counts, [2, 1]}]}] ++ Either(repeat, [X, {counts, 2}], {{options, [{axis, axis}]}, #{}}) ++
    Either(roll, [X, {power, 1}], {{options, [{axes, axes}]}, #{}}) ++
    [{swap_axes, [X, {axis, 0}, {axis, 1}]}, {move_axis, [X, {axis, 0}, {axis, 1}]}] ++
    [{Name, [X | More]} || Name <- [diag, tril, triu], More <- [[], [{power, 1}]]] ++
    [{nonzero, [X, {Found, #{size => 2}}]}, {argwhere, [X, {Found, #{size => 2}}]}] ++
    Either(searchsorted, [Three, X], {{options, [{side, any}, {type, integer_type}]}, #{}}) ++
    Either(digitize, [X, Three], {{options, [{right, boolean}]}, #{}}) ++
    Either(average, [X], {{options, [{axes, axes}, {keep_axes, boolean}, {weights, weights}]}, #{}}) ++
    lists:append([Either(Name, [X], {Reduction, #{}}) || Name <- [nan_sum, nan_product, nan_max, nan_min, nan_mean, nan_median]]) ++
    lists:append([Either(Name, [X], {Spread, #{}}) || Name <- [nan_variance, nan_standard_deviation]]) ++
    lists:append([Either(Name, [X], {Arg, #{}}) || Name <- [nan_argmax, nan_argmin]]) ++
    Either(nan_quantile, [X, {fraction, 0.5}], {Reduction, #{}}) ++
    Either(cov, [X], {{options, [{ddof, number}, {rows, boolean}]}, #{}}) ++ Either(corrcoef, [X], {{options, [{rows, boolean}]}, #{}}) ++
    Either(diff, [X], {{options, [{axis, axis}, {order, power}]}, #{}}) ++
    Either(histogram, [X, {bins, 2}], {{options, [{range, any}, {weights, weights}, {density, boolean}]}, #{}}) ++
    [{bincount, [I, {{options, [{length, count}, {weights, weights}]}, #{length => 3}}]}] ++
    Either(interp, [X, Three, Three], {{options, [{left, number}, {right, number}]}, #{}}) ++
    [{matmul, [X, Three]}, {kron, [X, X]}, {einsum, [{text, "ij->ji"}, {tensors, [element(2, X)]}]}] ++
    Either(cross, [Three, Three], {{options, [{axis, axis}]}, #{}}) ++
    Either(trace, [X], {{options, [{axes, axes}, {offset, power}]}, #{}}) ++ [{slogdet, [Square]}].

window_calls(X, F2) ->
    W = {window, {1, 2}},
    Moved = [{strides, window}, {padding, window_padding}],
    Options = {{options, [{dilation, window} | Moved]}, #{padding => same}},
    [{Name, [X, W | More]} || Name <- [window_sum, window_product, window_max, window_min, window_mean],
                              More <- [[], [Options]]] ++
    [{window_reduce, [X, {operand, 0}, W, F2 | More]} || More <- [[], [Options]]] ++
    [{Name, [X, {operand, tessera:tensor([[8.0, 9.0], [7.0, 6.0]])}, {operand, 0}, W | More]}
     || Name <- [window_scatter_max, window_scatter_min], More <- [[], [{{options, Moved}, #{}}]]] ++
    [{conv, [{operand, tessera:iota({2, 4, 5, 3})}, {operand, tessera:iota({2, 2, 3, 4}, f32)} | More]}
     || More <- [[], [{{options, [{strides, window}, {padding, window_padding}, {input_dilation, window},
                                  {kernel_dilation, window}, {feature_groups, window}, {batch_groups, window},
                                  {layout, any}]}, #{padding => same}}]]].

unary_calls(X, I) ->
    [{Name, [X]} || Name <- [exp, expm1, log, log1p, sigmoid, cos, sin, tan, cosh, sinh, tanh, acos, asin, atan, acosh,
                             asinh, atanh, sqrt, rsqrt, cbrt, erf, erfc, erf_inv, abs, negate, sign, ceil, floor, round,
                             is_nan, is_infinity, logical_not, relu, real, imag, conjugate, phase]] ++
    [{Name, [I]} || Name <- [bitwise_not, count_leading_zeros, population_count]].

binary_calls(X, I) ->
    [{Name, [X, X]} || Name <- [add, subtract, multiply, divide, remainder, pow, atan2, complex, min, max, equal, not_equal,
                                greater, less, greater_equal, less_equal, logical_and, logical_or, logical_xor]] ++
    [{Name, [I, I]} || Name <- [quotient, bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift]].

%% Their sizes depend on contents: {@link named_calls/3} has them with a size.
by_contents() -> [{dequantize, 1}, {dequantize, 2}, {nonzero, 1}, {argwhere, 1}, {bincount, 1}].

%% Functions that take any term or read a type and a shape alone, or that tests of faults, clients, plugins or the local view look at.
others() ->
    [tensor, template, type, shape, rank, size, zeros_like, ones_like, full_like, is_tensor, print, jit, shard_jit, compile, grad, value_and_grad, explain, profile, to_text,
     run_text, memory, reset_peak_memory, set_memory_limit, trim, clear_cache, version,
     clients, platforms, open_client, devices, device, to_device, load_plugin, custom_call,
     shard_map, all_reduce, all_gather, reduce_scatter, all_to_all, permute, shift, broadcast_from, barrier, vary, axis_index,
     axis_size, sharding_constraint].

is_complete_test() ->
    Named = [{Name, length(Args)} || {Name, Args} <- calls()],
    Missing = [F || {Name, _} = F <- tessera:module_info(exports),
                    not lists:member(F, Named ++ by_contents()), not lists:member(Name, others() ++ [module_info])],
    ?assertEqual([], Missing).

calls_work_test_() ->
    {Lapack, Others} = lists:partition(fun({Name, _}) -> lists:member(Name, [eig, schur]) end, calls()),
    [{atom_to_list(Name), fun() -> apply(tessera, Name, [Arg || {_, Arg} <- Args]) end} || {Name, Args} <- Others ++ tessera_test:with_lapack("calls of eig and schur", Lapack)].

%% ---- invalid arguments

terms() ->
    <<_:8, Sub/binary>> = binary:copy(<<7>>, 200),
    Tensor = tessera:tensor([1.0]),
    [foo, <<1, 2>>, Sub, <<1:3>>, "text", [1 | 2], [Tensor], self(), make_ref(), fun() -> 1 end, #{}, {}, {1, 2},
    1 bsl 80,
     {tessera, make_ref(), f32, {}}, {tessera, 1, f32, {}}, {tessera, [Tensor#tessera.ref | 0], f32, {}},
     {tessera, [make_ref() | 0], f32, {}}, {tessera, undefined, f32, {}}, {tessera, make_ref(), foo, 5}, {tessera,
     Tensor#tessera.ref}, {tessera, make_ref(), f32, {foo}}, {tessera, make_ref(), "f32", {1.5}}].

bad(operand) -> terms();
bad(integers) -> [tessera:tensor([1.5]), 1.5 | terms()];
bad(tensor) -> [1, 1.5 | terms()];
bad(sized) -> [{tessera, undefined, foo, 5} | [T || T <- terms(), not is_record(T, tessera), not is_number(T)]];
bad(record) -> [T || T <- terms(), not is_record(T, tessera)];
bad(data) -> [foo, <<1, 2>>, [1 | 2], [[1], 2], [[1], [2, 3]], [1, foo], self(), make_ref(), #{}, {}, {1, 2}, 1 bsl 80,
              lists:foldl(fun(_, L) -> [L] end, [], lists:seq(1, 80))];
bad(binary) -> [<<1, 2, 3>>, <<1:3>>, foo, [1], 1, self(), #{}, {}];
bad(number) -> [foo, <<>>, [1], self(), {}, #{}];
bad(fractions) -> [foo, nan, <<>>, 17, -0.5, [2], [0.5 | 0], [[0.5]], self(), {}, #{}, tessera:tensor([1])];
bad(count) -> [-1, -5, 1.5, foo, [], {}, 1 bsl 70];
bad(type) -> [f31, "f32", <<"f32">>, 5, {f, 32}, undefined, c65, [], self()];
bad(float) -> bad(type) ++ [];
bad(type32) -> [s8, f64 | bad(type)];
bad(integer_type) -> bad(type);
bad(shape) -> [[1], 5, foo, <<>>, self(), {-1}, {1.5}, {foo}, {1 bsl 70}, {1 bsl 62, 1 bsl 62}, {1 bsl 60},
               list_to_tuple(lists:duplicate(65, 1)), list_to_tuple(lists:duplicate(1000, 2)), #{}];
%% One size may be -1.
bad(new_shape) -> bad(shape) -- [{-1}];
bad(size_or_shape) -> [-1, 1 bsl 40, 1 bsl 70, 1.5, {-1} | bad(shape) -- [5]];
bad(axis) -> [5, -5, 1 bsl 40, 1 bsl 70, 1.0, foo, [], {0}, self(), #{bogus => 1}];
bad(axes) -> [[5], [-5], [0, 0], [1 bsl 70], [1.0], [foo], [0 | 1], foo, {0}, <<0>>, #{bogus => 1}, self()];
bad(starts) -> [foo, 1, [foo], [1.5, 1.5], [<<>>, <<>>], [0, 0, 0], [0 | 0], {0, 0}, #{}, [self(), 0]];
bad(sizes) -> [[-1, 1], [9, 9], [1], [1, 1, 1], [1.5, 1], [foo, 1], [1 | 1], foo, 1, {1, 1}, [1 bsl 70, 1], [1 bsl 62,
    1]];
bad(strides) -> [[0, 1], [-1, 1], [1], [1, 1, 1], [1.5, 1], [foo, 1], [1 | 1], foo, 1, [1 bsl 70, 1]];
bad(padding) -> [foo, [], [{0, 0, 0}], [{0, 0}, {0, 0}], [{0, 0, -1}, {0, 0, 0}], [{foo, 0, 0}, {0, 0, 0}],
                 [{1.5, 0, 0}, {0, 0, 0}], [{-9, 0, 0}, {0, 0, 0}], [{1 bsl 62, 1 bsl 62, 0}, {0, 0, 0}],
                 [{0, 0, 1 bsl 62}, {0, 0, 1 bsl 62}], [{0, 0, 0} | {0, 0, 0}], {0, 0, 0}];
bad(window) -> [0, -1, 1.5, foo, [0, 1], {1, 2, 3}, {1}, {1, foo}, [1 | 1], {1, -1}, 1 bsl 70, {1 bsl 70, 1}, <<1>>, #{}];
bad(window_padding) -> [foo, 1, [], [{0, 0}], [{0, 0}, {0, 0}, {0, 0}], [{0, 0}, 1], [{0, foo}, {0, 0}], [{0, 0} | {0, 0}],
                        [{-9, 0}, {0, 0}], [{1 bsl 62, 1 bsl 62}, {0, 0}], [{1 bsl 70, 0}, {0, 0}], {0, 0}];
bad(counts) -> [-1, 1.5, foo, [-1], [1.5], [foo], [1 | 1], {1}, #{}, <<1>>, self()];
bad(lines) -> [foo, [foo], [1 | 2], [tessera:iota({2, 2})], [self()], 5];
bad(fraction) -> [foo, nan, 17, -0.5, [0.5], self(), {}, #{}];
bad(bins) -> [0, -1, 1.5, foo, [1], [foo, 1], [1 | 2], [[1, 2]], {}, self(), tessera:iota({2, 2})];
bad(weights) -> [foo, self(), {}, [1], tessera:iota({9})];
bad(text) -> [foo, 17, "i", "ijk", "ij->k", "ij->ii", "i1", "..i", "->->", [foo], [[$i] | $j], <<255>>, self()];
bad(tensors) -> [foo, [], [foo], [1 | 2], {1, 2}, [tessera:iota({2}), tessera:iota({2, 2})], [self()], [<<1>>, <<2>>]];
bad(parts) -> [foo, [1], [9], [-1, 3], [3, -1], [1.5, 0.5], [1 | 1], [foo, 2], {1, 1}, 2];
bad(function0) -> [foo, fun() -> foo end, fun(_) -> 1 end, fun() -> self() end, 1, self()];
bad(function1) -> [foo, fun() -> 1 end, fun(_) -> foo end, fun(_, _) -> 1 end, 1, self()];
bad(function2) -> [foo, fun() -> 1 end, fun(_, _) -> foo end, fun(_, _) -> tessera:iota({3}) end, 1, self()];
bad(boolean) -> [foo, 1, [], "true"];
bad(any) -> [foo, 17, [], <<>>];
bad(power) -> [1.5, foo, [], <<>>, self()];
bad(order) -> [foo, [], <<>>, #{}, self()];
bad({options, Options}) ->
    [foo, [], 5, #{bogus => 1}, #{"axis" => 1} | [#{Name => Value} || {Name, Kind} <- Options, Value <- bad(Kind)]].

misuse_test_() ->
    [{lists:flatten(io_lib:format("~s/~b, argument ~b", [Name, length(Args), N])),
      fun() -> misuse(Name, Args, N) end}
     || {Name, Args, N} <- tessera_test:shared([{Name, Args, N} || {Name, Args} <- calls(), N <- lists:seq(1, length(Args))])].

misuse(Name, Args, N) ->
    {Before, [{Kind, _} | After]} = lists:split(N - 1, Args),
    Calls = [[A || {_, A} <- Before] ++ [Bad | [A || {_, A} <- After]] || Bad <- bad(Kind)],
    ?assertEqual([], [{How, lists:nth(N, Call), Wrong}
                      || Call <- Calls, {How, F} <- ways(Name, Call), Wrong <- [outcome(Name, F)],
                         Wrong =/= refused, not passed_through(lists:nth(N, Call), Wrong)]).

%% ---- forged records

%% Records that look like tensors, with all kinds of handles, types and shapes, replace each argument, also in a list
%% and in a container: every function returns a value or an error of Tessera. Each place gets every twelfth record, from
%% another one on: all of them everywhere take minutes.
-define(EVERY, 12).
forged() ->
    #tessera{ref = Live} = tessera:tensor([1.0, 2.0]),
    [{tessera, Ref, Type, Shape}
     || Ref <- [Live, make_ref(), undefined, 1, self(), [make_ref() | 0], [foo | bar], []],
        Type <- [f32, u8, foo, 5, "f32", []],
        Shape <- [{2}, {}, {foo}, {1.5}, {-1}, {1 bsl 80}, {0, 1 bsl 70}, [2], 5, foo, #{}, {[]}]].

forged_test_() ->
    {timeout, 120, fun() ->
        Functions = calls() ++ more_calls(),
        Places = [{Name, Args, N, Form} || {Name, Args} <- Functions, N <- lists:seq(1, length(Args)), Form <- [1, 2, 3]],
        Records = lists:enumerate(forged()),
        Wrong = lists:append([forged_calls(Place, [Record || {J, Record} <- Records, (I + J) rem ?EVERY =:= 0])
                              || {I, Place} <- tessera_test:shared(lists:enumerate(Places))]),
        ?assertEqual({0, []}, {length(Wrong), lists:sublist(Wrong, 5)})
    end}.

%% The calls of others/0 with tensors.
more_calls() ->
    X = {operand, tessera:tensor([1.0, 2.0])},
    F = {function1, fun(A) -> tessera:sum(tessera:exp(A)) end},
    [{tensor, [X]}, {tensor, [X, {type, f32}]}, {type, [X]}, {shape, [X]}, {rank, [X]}, {size, [X]}, {is_tensor, [X]},
     {template, [{type, f32}, {shape, {2}}]}, {set_memory_limit, [{number, 1 bsl 40}]}, {explain, [F, {tensors, []}]},
     {to_text, [F, {tensors, []}]}, {run_text, [{binary, <<"">>}, {tensors, []}]}, {compile, [F, {tensors, []}]},
     {jit, [F]}, {grad, [F]}, {jit, [F, {{options, []}, #{}}]}] ++
    [{{Maker, tessera:Maker(element(2, F))}, [X]} || Maker <- [jit, grad, value_and_grad]].

forged_calls({Name, Args, N, Form}, Records) ->
    {Before, [_ | After]} = lists:split(N - 1, [A || {_, A} <- Args]),
    [{Name, N, Record, Wrong}
     || Record <- Records, Wrong <- [forged_outcome(Name, Before ++ [in_form(Form, Record) | After])], Wrong =/= ok].

in_form(1, Record) -> Record;
in_form(2, Record) -> [Record];
in_form(3, Record) -> {1, Record}.

forged_outcome(Name, Call) ->
    try called(Name, Call) of
        _ -> ok
    catch
        error:{Code, Message} when is_atom(Code), is_binary(Message) -> ok;
        Class:Reason:Trace -> {Class, Reason, lists:sublist(Trace, 3)}
    end.

called({_, F}, Call) -> apply(F, Call);
called(Name, Call) -> apply(tessera, Name, Call).

%% What looks like a tensor may come back as it is from an op that has nothing to do.
passed_through(#tessera{} = Term, Outcome) -> Outcome =:= {value, Term};
passed_through(_, _) -> false.

ways(Name, Call) ->
    F = tessera_test_call:of_api(Name, Call),
    [{at_once, F}, {traced, fun() -> (tessera:jit(F))() end}].

outcome(Name, F) ->
    try F() of
        Value -> {value, Value}
    catch
        error:Reason:Trace ->
            case is_ours(Name, Reason, Trace) of
                true -> refused;
                false -> {error, Reason, lists:sublist(Trace, 3)}
            end;
        Class:Reason -> {Class, Reason}
    end.

is_ours(Name, {Code, Message} = Reason, [{tessera, _, _, _} | _] = Trace) when is_binary(Message) ->
    #{general := _, reason := _} = tessera_error:format_error(Reason, Trace),
    Named = re:run(Message, ["^(", lists:join($|, [atom_to_list(N) || N <- names(Name)]), ")[:(,]"], [{capture, none}]),
    Named =:= match andalso
        is_binary(unicode:characters_to_binary(erl_error:format_exception(error, Reason, Trace))) andalso
        lists:member(Code, [invalid_argument, out_of_range, unimplemented, failed_precondition, resource_exhausted]);
is_ours(_, _, _) -> false.

%% A wrong argument of the traced program is an error of jit's; an error of a condition has its own name.
names(while) -> [while, jit, less];
names(Name) -> [Name, jit].
