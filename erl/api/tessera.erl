%% @doc Tensors and compiled functions of them.
%%
%% A tensor is an immutable array of numbers of one {@type type()}. Functions
%% take tensors and plain numbers alike. Shapes broadcast as in NumPy: aligned
%% at the last axis, a size of 1 stretches. Types merge as in Nx: floats win over
%% integers. The atoms `nan', `infinity' and `neg_infinity' stand for
%% the floats that Erlang does not have, in both directions. `{complex, Re, Im}' is a complex number, also in both
%% directions; it makes the other operands complex, and complex types win over floats.
%%
%% A plain number takes the type of the tensor it meets: adding 1 keeps `u8', and
%% adding 1.5 to integers gives `f32'. An integer that an integer type cannot hold
%% widens it to the next type that can, so that 300 makes `u8' to `u16' and -1
%% makes it to `s16'; this holds for every function that takes tensors and numbers.
%% Plain numbers alone make `s32', `s64' or `u64' as they need, or `f32'. Where
%% no type has room, and where the type is given, as in {@link tensor/2} and
%% {@link full/3}, an integer out of its range is refused, and so is a float in an
%% integer type. Floats round to their type. Beyond its range they become an infinity, or NaN in `f8_e4m3fn', which has
%% no infinity.
%%
%% Arithmetic of integers wraps. An unsigned 64-bit integer that meets a signed one
%% is read as `s64', so that values from 2^63 on become negative. {@link mean/2},
%% {@link variance/2}, {@link softmax/2} and their kin are computed in `f64' for
%% integers and in `f32' for `f16' and `bf16', so that their sums neither wrap nor overflow.
%%
%% Called on tensors, an op runs at once. {@link jit/1} makes one compiled program of a whole function. While it is
%% traced its arguments are stand-ins without contents, and the same functions work on them. Arguments and results are
%% tensors, numbers, and tuples, lists and maps of them. A program is compiled once for each combination of types and
%% shapes; a tensor that the function holds in its environment is an argument like any other, so that it may have
%% another value in the next call without anything being compiled again.
%%
%% == Options and axes ==
%%
%% Options are a map, the last argument of a function: `sum(X, #{axes => [0, 1]})'. Each function has a type of options, such as
%% {@type reduce_options()}, so that Dialyzer finds a misspelt option. At run time an unknown option is an error. The error lists the
%% known options.
%%
%% Axes count from 0, negative ones from the end. Every function takes them as the options `axis' (one) or `axes' (several).
%% The two names are one option, and so are `keep_axis' and `keep_axes'. The functions of this list
%% also take the axes alone, as a short cut for the map. The list has the short cut behind the colon:
%% <ul>
%% <li>`iota(Shape, Type, #{axis => 1})', `iota(Shape, #{type => Type, axis => 1})': `iota(Shape, Type, 1)'</li>
%% <li>`concatenate(Tensors, #{axis => 1})': `concatenate(Tensors, 1)'</li>
%% <li>`stack(Tensors, #{axis => 1})': `stack(Tensors, 1)'</li>
%% <li>`split(X, Sizes, #{axis => 1})': `split(X, Sizes, 1)'</li>
%% <li>`new_axis(X, #{axis => 1})': `new_axis(X, 1)'</li>
%% <li>`axis_size(X, #{axis => 1})': `axis_size(X, 1)'</li>
%% <li>`transpose(X, #{axes => [1, 0]})': `transpose(X, [1, 0])'</li>
%% <li>`reverse(X, #{axes => [0]})': `reverse(X, [0])'</li>
%% <li>`squeeze(X, #{axes => [0]})': `squeeze(X, [0])'</li>
%% <li>`broadcast(X, Shape, #{axes => [0]})': `broadcast(X, Shape, [0])'</li>
%% <li>`dot(A, B, #{axes => {[2], [1]}, batch_axes => {[0], [0]}})': `dot(A, [2], [0], B, [1], [0])'</li>
%% </ul>
%% All other functions take the map only, as `take(X, Indices, #{axis => 1})' and `sort(X, #{axis => 1})' do.
%%
%% == Types of results ==
%%
%% Without a type, new values are `f32' ({@link zeros/1}, {@link ones/1}, {@link eye/1}, {@link linspace/3}). Truths are `u8'
%% ({@link equal/2}, {@link all/1}, {@link one_hot/2}).
%%
%% Indices and counts are `s32'. They are `s64' if an index of the shape is 2^31 or more, which `s32' does not hold. This is true of {@link iota/1},
%% {@link argmax/1}, {@link argmin/1}, {@link argsort/1}, {@link top_k/2}, {@link matrix_rank/1}, {@link axis_index/1}, and of
%% {@link tessera_random} the functions `categorical', `permutation' and `choice' of a number. A function with the option `type' gives
%% the indices that type, and raises an error if the type does not hold the last index. Indices as arguments may have any integer type.
%% {@link count_leading_zeros/1} and {@link population_count/1} are elementwise and keep the type of their operand. Under Nx the rules of Nx hold.
%%
%% Where to look:
%% <ul>
%% <li>making tensors and reading them: {@link tensor/2}, {@link iota/3}, {@link full/3}, {@link from_binary/3};
%% {@link to_list/1}, {@link to_binary/1}, {@link print/1}, {@link shape/1}, {@link type/1}</li>
%% <li>elementwise: {@link add/2}, {@link multiply/2}, {@link exp/1}, {@link less/2}, {@link select/3},
%% {@link as_type/2} and their kin</li>
%% <li>shapes and parts: {@link reshape/2}, {@link transpose/2}, {@link broadcast/2}, {@link concatenate/2},
%% {@link slice/3}, {@link at/2}, {@link put_slice/3}, {@link take/3}, {@link gather/3},
%% {@link indexed_add/4}, {@link indexed_put/4}</li>
%% <li>over axes: {@link sum/2}, {@link mean/2}, {@link argmax/2}, {@link cumulative_sum/2}, {@link softmax/2},
%% {@link reduce/4}; over windows: {@link window_max/3}, {@link window_mean/3} and their kin; products: {@link dot/2}, {@link conv/3}</li>
%% <li>linear algebra: {@link solve/2}, {@link inverse/1}, {@link determinant/1}, {@link cholesky/1}, {@link lu/1},
%% {@link qr/2}, {@link eigh/1}, {@link eig/1}, {@link schur/1}, {@link svd/2}, {@link pinv/1}, {@link lstsq/2}, {@link matrix_power/2}, {@link matrix_rank/1},
%% {@link norm/2},
%% {@link triangular_solve/3}</li>
%% <li>Fourier transforms: {@link fft/2}, {@link ifft/2}, {@link rfft/2}, {@link irfft/2}, {@link fft2/2}, {@link fftn/2}</li>
%% <li>order: {@link sort/2}, {@link argsort/2}, {@link top_k/2}, {@link median/2}, {@link quantile/3}, {@link mode/2},
%% {@link unique/1}</li>
%% <li>random numbers: the module {@link tessera_random}</li>
%% <li>functions: {@link jit/2}, {@link shard_jit/3}, {@link compile/3}, {@link grad/1}, {@link while/3}, {@link 'cond'/3};
%% looking at them: {@link explain/2}, {@link profile/2}, {@link to_text/3}</li>
%% <li>the runtime: {@link memory/0}, {@link set_memory_limit/1}, {@link clear_cache/0}</li>
%% </ul>
%%
%% == What a traced function may do ==
%%
%% {@link jit/1}, {@link compile/2}, {@link grad/1}, {@link while/3}, {@link 'cond'/3} and {@link reduce/3} trace their functions.
%% The function is called once, with traced values instead of its tensors and numbers, and the ops on these values are recorded.
%% <ul>
%% <li>Types, shapes, sizes, options and the forms of tuples, lists and maps are known while it is traced. Any Erlang code
%% may use them.</li>
%% <li>The contents of a traced value are not known. A number among the arguments is also a traced value: a number that has to be
%% known, as in `lists:seq(1, N)', comes from a shape or from the function's environment.</li>
%% <li>Erlang's arithmetic on a traced value is an error that names the right function. A comparison is not: Erlang compares
%% any terms, and a traced value is a tuple, so that `if X > 0 -> ...' always takes the same branch. Use {@link 'cond'/3},
%% {@link select/3} or {@link while/3}. Where a function's code shows such a comparison a warning names the line; the
%% application's setting `trace_warnings' (`false') switches that off.</li>
%% <li>Side effects happen when the function is traced, once for each combination of types and shapes.</li>
%% <li>Modules that are compiled with the parse transform {@link tessera_transform} may use `+', `>', `if' and `case' on tensors.
%% </li>
%% </ul>
%% The page `docs/tracing.md' says more.
%%
%% == Errors ==
%%
%% Misuse raises `error({Code, Message})' with a message that names the op, shapes
%% and types. The codes are `invalid_argument', `out_of_range',
%% `resource_exhausted', `failed_precondition', `unavailable', `elsewhere', `unimplemented', `cancelled',
%% `data_loss' and `internal'.
%% ```
%% 1> F = tessera:jit(fun(X, W) -> tessera:sum(tessera:tanh(tessera:dot(X, W))) end).
%% 2> tessera:to_number(F(tessera:iota({2, 3}, f32), tessera:zeros({3, 2}, f32))).
%% 0.0
%% '''
-module(tessera).
-include("tessera.hrl").
-compile({no_auto_import, [abs/1, byte_size/1, ceil/1, floor/1, max/2, min/2, round/1, size/1]}).

%% tensors
-export([tensor/1, tensor/2, from_binary/3, template/2, iota/1, iota/2, iota/3, full/2, full/3, zeros/1, zeros/2,
         ones/1, ones/2, eye/1, eye/2, linspace/3, linspace/4, one_hot/2, one_hot/3,
         arange/1, arange/2, arange/3, arange/4, zeros_like/1, zeros_like/2, ones_like/1, ones_like/2, full_like/2, full_like/3,
         tri/1, tri/2, meshgrid/1, meshgrid/2,
         to_binary/1, to_list/1, to_number/1, type/1, shape/1, rank/1, size/1, axis_size/2, byte_size/1, is_tensor/1,
         format/1, format/2, print/1, print/2, deallocate/1]).
%% elementwise
-export([exp/1, expm1/1, log/1, log1p/1, sigmoid/1, cos/1, sin/1, tan/1, cosh/1, sinh/1, tanh/1, acos/1, asin/1,
         atan/1, acosh/1, asinh/1, atanh/1, sqrt/1, rsqrt/1, cbrt/1, erf/1, erfc/1, erf_inv/1, abs/1, negate/1,
         sign/1, ceil/1, floor/1, round/1, bitwise_not/1, count_leading_zeros/1, population_count/1, is_nan/1,
         is_infinity/1, complex/2, real/1, imag/1, conjugate/1, phase/1,
         logical_not/1, relu/1,
         add/2, subtract/2, multiply/2, divide/2, quotient/2, remainder/2, pow/2, atan2/2, min/2, max/2,
         bitwise_and/2, bitwise_or/2, bitwise_xor/2, left_shift/2, right_shift/2, equal/2, not_equal/2, greater/2,
         less/2, greater_equal/2, less_equal/2, logical_and/2, logical_or/2, logical_xor/2,
         select/3, clip/3, as_type/2, bitcast/2,
         log2/1, log10/1, hypot/2, is_finite/1, is_close/2, is_close/3, all_close/2, all_close/3, nan_to_num/1, nan_to_num/2]).
%% shapes and indices
-export([reshape/2, flatten/1, squeeze/1, squeeze/2, new_axis/2, broadcast/2, broadcast/3, transpose/1, transpose/2,
         reverse/1, reverse/2, slice/3, slice/4, at/2, put_slice/3, pad/3, concatenate/1, concatenate/2,
         stack/1, stack/2, split/2, split/3, take/2, take/3, take_along_axis/2, take_along_axis/3,
         gather/2, gather/3, indexed_add/3, indexed_add/4, indexed_put/3, indexed_put/4,
         tile/2, repeat/2, repeat/3, roll/2, roll/3, swap_axes/3, move_axis/3, diag/1, diag/2, tril/1, tril/2, triu/1, triu/2]).
%% order
-export([sort/1, sort/2, argsort/1, argsort/2, top_k/2, top_k/3, median/1, median/2, quantile/2, quantile/3,
         mode/1, mode/2, unique/1, unique/2, nonzero/1, nonzero/2, argwhere/1, argwhere/2, searchsorted/2, searchsorted/3,
         digitize/2, digitize/3]).
%% statistics
-export([average/1, average/2, nan_sum/1, nan_sum/2, nan_product/1, nan_product/2, nan_max/1, nan_max/2, nan_min/1, nan_min/2,
         nan_mean/1, nan_mean/2, nan_variance/1, nan_variance/2, nan_standard_deviation/1, nan_standard_deviation/2, nan_median/1,
         nan_median/2, nan_quantile/2, nan_quantile/3, nan_argmax/1, nan_argmax/2, nan_argmin/1, nan_argmin/2, cov/1, cov/2,
         corrcoef/1, corrcoef/2, diff/1, diff/2, histogram/2, histogram/3, bincount/1, bincount/2, interp/3, interp/4]).
%% windows
-export([conv/2, conv/3]).
-export([window_sum/2, window_sum/3, window_product/2, window_product/3, window_max/2, window_max/3, window_min/2,
         window_min/3, window_mean/2, window_mean/3, window_reduce/4, window_reduce/5, window_scatter_max/4,
         window_scatter_max/5, window_scatter_min/4, window_scatter_min/5]).
%% reductions and contraction
-export([sum/1, sum/2, product/1, product/2, reduce_max/1, reduce_max/2, reduce_min/1, reduce_min/2,
         all/1, all/2, any/1, any/2, mean/1, mean/2, variance/1, variance/2, standard_deviation/1,
         standard_deviation/2, argmax/1, argmax/2, argmin/1, argmin/2, reduce/3, reduce/4,
         cumulative_sum/1, cumulative_sum/2, cumulative_product/1, cumulative_product/2, cumulative_min/1,
         cumulative_min/2, cumulative_max/1, cumulative_max/2, logsumexp/1, logsumexp/2, softmax/1, softmax/2,
         quantize/1, quantize/2, dequantize/1, dequantize/2,
         log_softmax/1, log_softmax/2, dot/2, dot/3, dot/4, dot/6, outer/2,
         matmul/2, einsum/2, kron/2, cross/2, cross/3]).
%% linear algebra
-export([cholesky/1, triangular_solve/2, triangular_solve/3, solve/2, inverse/1, determinant/1, lu/1, qr/1, qr/2, eigh/1, eigh/2, eig/1, schur/1, svd/1,
         svd/2, pinv/1, lstsq/2, matrix_power/2, matrix_rank/1, norm/1, norm/2, trace/1, trace/2, slogdet/1]).
%% Fourier transforms
-export([fft/1, fft/2, ifft/1, ifft/2, rfft/1, rfft/2, irfft/1, irfft/2, fft2/1, fft2/2, ifft2/1, ifft2/2, fftn/1, fftn/2,
         ifftn/1, ifftn/2]).
%% functions
-export([jit/1, jit/2, shard_jit/3, compile/2, compile/3, while/3, 'cond'/3, grad/1, value_and_grad/1, stop_grad/1,
         explain/1, explain/2, profile/2, profile/3, to_text/2, to_text/3, run_text/2, load_plugin/1, custom_call/3, custom_call/4]).
%% the runtime
-export([sharding_constraint/2, shard_map/4, shard_map/5, all_reduce/3, all_gather/3, reduce_scatter/3, all_to_all/4, permute/3, shift/3,
         broadcast_from/3, barrier/2, vary/2, axis_index/1, axis_size/1]).
-export([clients/0, platforms/0, open_client/2, devices/0, devices/1, device/1, to_device/2, memory/1, set_memory_limit/2]).
-export([memory/0, reset_peak_memory/0, set_memory_limit/1, trim/0, clear_cache/0, version/0]).
%% Old names of functions of tessera_mesh, for one release.
-deprecated([{sharding_constraint, 2, "use tessera_mesh:sharding_constraint/2"}, {all_reduce, 3, "use tessera_mesh:all_reduce/3"},
             {all_gather, 3, "use tessera_mesh:all_gather/3"}, {reduce_scatter, 3, "use tessera_mesh:reduce_scatter/3"},
             {all_to_all, 4, "use tessera_mesh:all_to_all/4"}, {permute, 3, "use tessera_mesh:permute/3"},
             {shift, 3, "use tessera_mesh:shift/3"}, {broadcast_from, 3, "use tessera_mesh:broadcast_from/3"},
             {barrier, 2, "use tessera_mesh:barrier/2"}, {vary, 2, "use tessera_mesh:vary/2"},
             {axis_index, 1, "use tessera_mesh:axis_index/1"}, {axis_size, 1, "use tessera_mesh:axis_size/1"}]).
-export_type([tensor/0, operand/0, real/0, type/0, shape/0, axis/0, axes/0, window/0, padding/0, device/0]).
-export_type([quantized/0, quantize_options/0, iota_options/0, dot_options/0, axis_options/0, axes_options/0, reduce_options/0, variance_options/0, quantile_options/0, arg_options/0, sort_options/0, argsort_options/0, top_k_options/0, unique_options/0, tri_options/0, meshgrid_options/0, close_options/0, nan_to_num_options/0, nonzero_options/0, searchsorted_options/0,
              digitize_options/0, average_options/0, cov_options/0, corrcoef_options/0, diff_options/0, histogram_options/0, bincount_options/0,
              interp_options/0, trace_options/0, cumulative_options/0, conv_options/0, window_options/0, window_scatter_options/0, triangular_solve_options/0, factor_options/0, norm_options/0, fft_options/0, fftn_options/0, jit_options/0, shard_jit_options/0, shard_map_options/0, client_options/0, profile_options/0, format_options/0]).

-type device() :: tessera_type:device().
%% A device of a client, such as `{host, 0}'.
-type type() :: tessera_type:type().
%% The type of elements: signed and unsigned integers (`s2', `s4', `s8', `s16', `s32', `s64', `u2', `u4', `u8', `u16', `u32', `u64'),
%% floats (`f8', `f8_e4m3fn', `f16', `bf16', `f32', `f64') and complex numbers (`c64', `c128'), with their bits. f8 has 5 bits of
%% exponent and 2 of mantissa; f8_e4m3fn has 4 and 3, no infinity, and numbers up to 448. Integers of 2 and 4 bits take a
%% byte each in memory and are packed in binaries. An element of `c64' is two f32, its real part and its imaginary part;
%% one of `c128' is two f64.
-type shape() :: tessera_type:shape().
%% The size of each axis: `{}' for a single number, `{2, 3}' for two rows of three.
-type tensor() :: tessera_type:tensor().
%% An immutable array of numbers. The fields of the record are private.
-type real() :: tessera_type:real().
%% A plain number, or a float that Erlang cannot write: `nan', `infinity' or `neg_infinity'.
-type operand() :: tessera_type:operand().
%% An argument of an operation: a tensor, a plain number, or a complex number of its real part and its imaginary part.
-type axis() :: integer() | [integer()].
%% One axis; also a list of one.
-type axes() :: all | integer() | [integer()].
%% An axis, different axes, or all of them.
-type window() :: pos_integer() | tuple() | [pos_integer()].
%% A window's size along each axis: a tuple or a list, or a number for all.
-type axis_options() :: #{axis => axis(), axes => axis()}.
%% One axis.
-type iota_options() :: #{type => type(), axis => all | axis(), axes => all | axis()}.
%% Of {@link iota/2}.
-type dot_options() :: #{axes => {axes(), axes()}, axis => {axes(), axes()}, batch_axes => {axes(), axes()}}.
%% Of {@link dot/3}.
-type quantized() :: tessera_quantize:quantized().
%% A weight of {@link quantize/2}: a map, which may stand where containers may.
-type quantize_options() :: #{bits => 4 | 8, group => pos_integer(), form => scale | zero | minimum, axis => axis(), axes => axis(),
                              scales => f32 | bf16 | f16}.
%% Of {@link quantize/2}.
-type axes_options() :: #{axes => axes(), axis => axes()}.
%% Several axes.
-type reduce_options() :: #{axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean()}.
%% Of functions that reduce axes to one element, such as {@link sum/2}.
-type variance_options() :: #{axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean(), ddof => number()}.
%% Of {@link variance/2} and {@link standard_deviation/2}.
-type quantile_options() :: #{axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean(),
                              method => linear | lower | higher | nearest | midpoint}.
%% Of {@link quantile/3}.
-type arg_options() :: #{axis => all | axis(), axes => all | axis(), keep_axis => boolean(), keep_axes => boolean(),
                         tie_break => low | high, type => type()}.
%% Of {@link argmax/2} and {@link argmin/2}.
-type sort_options() :: #{axis => axis(), axes => axis(), descending => boolean()}.
%% Of {@link sort/2}.
-type argsort_options() :: #{axis => axis(), axes => axis(), descending => boolean(), type => type()}.
%% Of {@link argsort/2}.
-type top_k_options() :: #{axis => axis(), axes => axis(), type => type()}.
%% Of {@link top_k/3}.
-type unique_options() :: #{size => all | non_neg_integer(), fill => largest | operand()}.
%% Of {@link unique/2}.
-type tri_options() :: #{columns => rows | non_neg_integer(), offset => integer(), type => type()}.
%% Of {@link tri/2}.
-type meshgrid_options() :: #{indexing => xy | ij}.
%% Of {@link meshgrid/2}.
-type close_options() :: #{rtol => number(), atol => number(), equal_nan => boolean()}.
%% Of {@link is_close/3} and {@link all_close/3}.
-type nan_to_num_options() :: #{nan => number(), infinity => largest | number(), neg_infinity => smallest | number()}.
%% Of {@link nan_to_num/2}.
-type nonzero_options() :: #{size => all | non_neg_integer(), fill => integer()}.
%% Of {@link nonzero/2} and {@link argwhere/2}.
-type searchsorted_options() :: #{side => left | right, type => type()}.
%% Of {@link searchsorted/3}.
-type digitize_options() :: #{right => boolean()}.
%% Of {@link digitize/3}.
-type average_options() :: #{axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean(), weights => none | operand()}.
%% Of {@link average/2}.
-type cov_options() :: #{ddof => number(), rows => boolean()}.
%% Of {@link cov/2}.
-type corrcoef_options() :: #{rows => boolean()}.
%% Of {@link corrcoef/2}.
-type diff_options() :: #{axis => axis(), axes => axis(), order => non_neg_integer()}.
%% Of {@link diff/2}.
-type histogram_options() :: #{range => all | {number(), number()}, weights => none | tensor(), density => boolean()}.
%% Of {@link histogram/3}.
-type bincount_options() :: #{length => non_neg_integer(), weights => none | tensor()}.
%% Of {@link bincount/2}.
-type interp_options() :: #{left => first | number() | {complex, number(), number()}, right => last | number() | {complex, number(), number()}}.
%% Of {@link interp/4}.
-type trace_options() :: #{axes => axes(), axis => axes(), offset => integer()}.
%% Of {@link trace/2}.
-type cumulative_options() :: #{axis => axis(), axes => axis(), reverse => boolean()}.
%% Of {@link cumulative_sum/2} and its kin.
-type padding() :: valid | same | [{integer(), integer()}].
%% The padding before and after each axis.
-type conv_options() :: #{strides => window(), padding => padding(), input_dilation => window(), kernel_dilation => window(),
                          feature_groups => pos_integer(), batch_groups => pos_integer(),
                          layout => channels_last | channels_first | {[non_neg_integer()], [non_neg_integer()], [non_neg_integer()]}}.
%% Of {@link conv/3}.
-type window_options() :: #{strides => window(), padding => padding(), dilation => window()}.
%% Of {@link window_sum/3} and its kin.
-type window_scatter_options() :: #{strides => window(), padding => padding()}.
%% Of {@link window_scatter_max/5} and {@link window_scatter_min/5}.
-type triangular_solve_options() :: #{lower => boolean(), left_side => boolean(), transpose => boolean() | conjugate,
                                      unit_diagonal => boolean()}.
%% Of {@link triangular_solve/3}.
-type factor_options() :: #{full => boolean()}.
%% Of {@link qr/2} and {@link svd/2}.
-type norm_options() :: #{order => number() | infinity | neg_infinity | spectral | nuclear,
                          axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean()}.
%% Of {@link norm/2}.
-type fft_options() :: #{axis => axis(), axes => axis(), length => pos_integer() | power_of_two}.
%% Of {@link fft/2} and its kin along one axis.
-type fftn_options() :: #{axes => axes(), axis => axes(), lengths => [pos_integer() | power_of_two]}.
%% Of {@link fftn/2} and its kin along several axes.
-type jit_options() :: #{threads => non_neg_integer(), donate => [pos_integer()], fuse => boolean(), simplify => boolean(),
                         device => device(), precision => default | high | highest}.
%% Of {@link jit/2} and {@link compile/3}.
-type shard_jit_options() :: #{input_shardings => [term()], output_shardings => term(), client => atom() | pid(),
                               threads => non_neg_integer(), donate => [pos_integer()], fuse => boolean(), simplify => boolean(),
                               precision => default | high | highest}.
%% Of {@link shard_jit/3}.
-type shard_map_options() :: #{client => atom() | pid(), threads => non_neg_integer(), donate => [pos_integer()],
                               fuse => boolean(), simplify => boolean(), check => boolean(), precision => default | high | highest}.
%% Of {@link shard_map/5}.
-type format_options() :: #{precision => non_neg_integer(), threshold => non_neg_integer(), edge => pos_integer(), columns => pos_integer()}.
%% Of {@link format/2} and {@link print/2}.
-type profile_options() :: #{events => non_neg_integer(), speed => boolean(), ranks => own | all}.
%% Of {@link profile/3}.
-type client_options() :: #{device_count => pos_integer(), memory_limit => non_neg_integer(), platform => atom(), threads => non_neg_integer(),
                            plugin_path => file:filename_all(), plugin_options => #{atom() => term()} | [{atom(), term()}], device_type => atom() | string() | binary(),
                            memory_fraction => number(), preallocate => boolean(),
                            isolated => boolean(), open_timeout => non_neg_integer(), timeout => non_neg_integer(), compile_timeout => non_neg_integer(),
                            precision => default | high | highest}.
%% Of {@link open_client/2}.

%% ---- tensors

%% @doc A tensor of a number or of nested lists of numbers. Integers make an s32 tensor, or s64 or u64 if s32 is too
%% small. A float in the list makes it f32, and a complex number c64.
%% ```
%% 1> tessera:shape(tessera:tensor([[1, 2, 3], [4, 5, 6]])).
%% {2,3}
%% 2> tessera:type(tessera:tensor(1.5)).
%% f32
%% '''
-spec tensor(tensor() | operand() | [term()]) -> tensor().
tensor(Data) -> tessera_array:tensor(Data).

%% @doc A tensor of the given type, of a number, of nested lists of numbers, or of a binary. Raises for an integer
%% that is out of the type's range, and for a float if the type is an integer type. A tensor is converted as by {@link
%% as_type/2}. A binary has the elements in native byte order and makes a tensor of one axis. For types of fewer than 8
%% bits it is a bitstring: elements follow each other, the first one in the high bits.
%% ```
%% 1> tessera:to_list(tessera:tensor([1, 2.5, nan], f16)).
%% [1.0,2.5,nan]
%% 2> tessera:to_list(tessera:tensor(<<1, 2, 255>>, s8)).
%% [1,2,-1]
%% '''
-spec tensor(tensor() | operand() | [term()] | bitstring(), type()) -> tensor().
tensor(Data, Type) -> tessera_array:tensor(Data, Type).

%% @doc A tensor of the elements in a binary, in row-major order and native byte order. A large binary is not copied:
%% the tensor refers to it. Elements of fewer than 8 bits are packed in a bitstring, the first one in the high bits; these are
%% copied.
%% ```
%% 1> tessera:to_list(tessera:from_binary(<<1, 2, 3, 4>>, u8, {2, 2})).
%% [[1,2],[3,4]]
%% 2> tessera:to_list(tessera:from_binary(<<1:4, -1:4, 7:4>>, s4, {3})).
%% [1,-1,7]
%% '''
-spec from_binary(bitstring(), type(), shape()) -> tensor().
from_binary(Binary, Type, Shape) -> tessera_array:from_binary(Binary, Type, Shape).

%% @doc A type and a shape without contents, instead of an argument of {@link compile/2}, {@link to_text/2} or {@link
%% explain/2}.
-spec template(type(), shape()) -> tensor().
template(Type, Shape) ->
    tessera_type:is_type(Type) orelse
        tessera_error:raise(template, [Type, Shape], invalid_argument, "template: expected a type such as f32, got ~ts",
                            [tessera_error:show(Type)]),
    _ = tessera_type:shape(template, [Type, Shape], Shape),
    #tessera{type = Type, shape = Shape}.

%% @doc The row-major index of each element: s32, or s64 where s32 does not hold the last one.
%% ```
%% 1> tessera:to_list(tessera:iota({2, 3})).
%% [[0,1,2],[3,4,5]]
%% '''
-spec iota(shape()) -> tensor().
iota(Shape) -> tessera_array:iota(Shape).

%% @doc The row-major index of each element, in the given type. Raises if an index is out of the type's range. Instead of the type,
%% options: `type', as {@link iota/1} has it unless given; `axis', along which elements are counted, `all' unless given.
%% ```
%% 1> tessera:to_list(tessera:iota({2, 3}, #{axis => 1})).
%% [[0,1,2],[0,1,2]]
%% '''
-spec iota(shape(), type() | iota_options()) -> tensor().
iota(Shape, Options) -> tessera_array:iota(Shape, Options).

%% @doc The index of each element along one axis, in the given type; for `all' its row-major index. `#{axis => Axis}' or the axis alone.
%% ```
%% 1> tessera:to_list(tessera:iota({2, 3}, s32, 1)).
%% [[0,1,2],[0,1,2]]
%% '''
-spec iota(shape(), type(), all | integer() | #{axis => all | axis(), axes => all | axis()}) -> tensor().
iota(Shape, Type, Options) -> tessera_array:iota(Shape, Type, Options).

%% @doc A tensor with the number in every element. Its type is s32, s64 or u64 for an integer, and f32 for a float.
-spec full(shape(), operand()) -> tensor().
full(Shape, Number) -> tessera_array:full(Shape, Number).

%% @doc A tensor of the given type with the number in every element.
%% ```
%% 1> tessera:to_list(tessera:full({2, 2}, 7, u8)).
%% [[7,7],[7,7]]
%% '''
-spec full(shape(), operand(), type()) -> tensor().
full(Shape, Number, Type) -> tessera_array:full(Shape, Number, Type).

%% @doc A tensor of zeros, of type f32.
-spec zeros(shape()) -> tensor().
zeros(Shape) -> tessera_array:zeros(Shape).

%% @doc A tensor of zeros, of the given type.
-spec zeros(shape(), type()) -> tensor().
zeros(Shape, Type) -> tessera_array:zeros(Shape, Type).

%% @doc A tensor of ones, of type f32.
-spec ones(shape()) -> tensor().
ones(Shape) -> tessera_array:ones(Shape).

%% @doc A tensor of ones, of the given type.
-spec ones(shape(), type()) -> tensor().
ones(Shape, Type) -> tessera_array:ones(Shape, Type).

%% @doc Ones where the last two indices are equal, and zeros elsewhere, of type f32. Takes the size of a square
%% matrix, or a shape.
-spec eye(non_neg_integer() | shape()) -> tensor().
eye(Size) -> tessera_array:eye(Size).

%% @doc Ones where the last two indices are equal, and zeros elsewhere, of the given type. Takes the size of a square
%% matrix, or a shape.
%% ```
%% 1> tessera:to_list(tessera:eye(2, s32)).
%% [[1,0],[0,1]]
%% '''
-spec eye(non_neg_integer() | shape(), type()) -> tensor().
eye(Size, Type) -> tessera_array:eye(Size, Type).

%% @doc Numbers at equal distances, from the first argument to the second, both included: f32. A count of 1 gives the
%% first.
%% ```
%% 1> tessera:to_list(tessera:linspace(0, 1, 5)).
%% [0.0,0.25,0.5,0.75,1.0]
%% '''
-spec linspace(number(), number(), pos_integer()) -> tensor().
linspace(From, To, Count) -> linspace(From, To, Count, f32).

%% @doc Numbers at equal distances, from the first argument to the second, both included, of the given float type.
-spec linspace(number(), number(), pos_integer(), type()) -> tensor().
linspace(From, To, Count, Type) -> tessera_ops:linspace(From, To, Count, Type).

%% @doc The numbers 0, 1, ... before Stop.
%% ```
%% 1> tessera:to_list(tessera:arange(4)).
%% [0,1,2,3]
%% '''
-spec arange(number()) -> tensor().
arange(Stop) -> arange(0, Stop).

%% @doc The numbers Start, Start + 1, ... before Stop.
-spec arange(number(), number()) -> tensor().
arange(Start, Stop) -> arange(Start, Stop, 1).

%% @doc The numbers Start, Start + Step, ... before Stop; with a negative Step those above it. Integers make s32, s64 or u64 as they need, and floats f32.
%% {@link linspace/3} has a count in the place of a step.
%% ```
%% 1> tessera:to_list(tessera:arange(1.0, 2, 0.25)).
%% [1.0,1.25,1.5,1.75]
%% 2> tessera:to_list(tessera:arange(3, -3, -2)).
%% [3,1,-1]
%% '''
-spec arange(number(), number(), number()) -> tensor().
arange(Start, Stop, Step) -> tessera_error:within(arange, [Start, Stop, Step], fun() -> tessera_shapes:arange(Start, Stop, Step, default) end).

%% @doc The numbers Start, Start + Step, ... before Stop, in the given type. Raises if a number is out of its range.
%% ```
%% 1> tessera:to_list(tessera:arange(0, 3, 1, f64)).
%% [0.0,1.0,2.0]
%% '''
-spec arange(number(), number(), number(), type()) -> tensor().
arange(Start, Stop, Step, Type) -> tessera_error:within(arange, [Start, Stop, Step, Type], fun() -> tessera_shapes:arange(Start, Stop, Step, Type) end).

%% @doc Zeros with the shape and the type of X.
%% ```
%% 1> tessera:to_list(tessera:zeros_like(tessera:tensor([1.5, 2.5]))).
%% [0.0,0.0]
%% '''
-spec zeros_like(operand()) -> tensor().
zeros_like(X) -> tessera_error:within(zeros_like, [X], fun() -> tessera_shapes:full_like(X, 0, same) end).

%% @doc Zeros with the shape of X, of the given type.
-spec zeros_like(operand(), type()) -> tensor().
zeros_like(X, Type) -> tessera_error:within(zeros_like, [X, Type], fun() -> tessera_shapes:full_like(X, 0, Type) end).

%% @doc Ones with the shape and the type of X.
%% ```
%% 1> tessera:to_list(tessera:ones_like(tessera:iota({2, 2}))).
%% [[1,1],[1,1]]
%% '''
-spec ones_like(operand()) -> tensor().
ones_like(X) -> tessera_error:within(ones_like, [X], fun() -> tessera_shapes:full_like(X, 1, same) end).

%% @doc Ones with the shape of X, of the given type.
-spec ones_like(operand(), type()) -> tensor().
ones_like(X, Type) -> tessera_error:within(ones_like, [X, Type], fun() -> tessera_shapes:full_like(X, 1, Type) end).

%% @doc A number in each place of the shape of X, in the type of X.
%% ```
%% 1> tessera:to_list(tessera:full_like(tessera:iota({3}), 7)).
%% [7,7,7]
%% '''
-spec full_like(operand(), operand()) -> tensor().
full_like(X, Number) -> tessera_error:within(full_like, [X, Number], fun() -> tessera_shapes:full_like(X, Number, same) end).

%% @doc A number in each place of the shape of X, in the given type.
-spec full_like(operand(), operand(), type()) -> tensor().
full_like(X, Number, Type) -> tessera_error:within(full_like, [X, Number, Type], fun() -> tessera_shapes:full_like(X, Number, Type) end).

%% @doc A square matrix with ones on the diagonal and below it, of type f32.
%% ```
%% 1> tessera:to_list(tessera:tri(2)).
%% [[1.0,0.0],[1.0,1.0]]
%% '''
-spec tri(non_neg_integer()) -> tensor().
tri(Size) -> tri(Size, #{}).

%% @doc A matrix with ones on a diagonal and below it. Options: `columns', as many as rows unless given; `offset', how far the diagonal is
%% to the right, 0 unless given; `type', f32 unless given.
%% ```
%% 1> tessera:to_list(tessera:tri(2, #{columns => 3, offset => 1, type => u8})).
%% [[1,1,0],[1,1,1]]
%% '''
-spec tri(non_neg_integer(), tri_options()) -> tensor().
tri(Rows, Options) -> tessera_error:within(tri, [Rows, Options], fun() -> tessera_shapes:tri(Rows, Options) end).

%% @doc The coordinates of the points of a grid: for each vector a tensor of the grid's shape. As in NumPy the first vector runs along
%% the columns, the second along the rows.
%% ```
%% 1> [X, Y] = tessera:meshgrid([tessera:arange(3), tessera:arange(2)]).
%% 2> {tessera:to_list(X), tessera:to_list(Y)}.
%% {[[0,1,2],[0,1,2]],[[0,0,0],[1,1,1]]}
%% '''
-spec meshgrid([operand()]) -> [tensor()].
meshgrid(Lines) -> meshgrid(Lines, #{}).

%% @doc The coordinates of the points of a grid. Options: `indexing', `xy' as {@link meshgrid/1} does unless given, or `ij': the N-th vector runs
%% along the N-th axis.
-spec meshgrid([operand()], meshgrid_options()) -> [tensor()].
meshgrid(Lines, Options) -> tessera_error:within(meshgrid, [Lines, Options], fun() -> tessera_shapes:meshgrid(Lines, Options) end).

%% @doc For each index, a row of Size elements with a one at the index and zeros elsewhere: u8. An index out of range
%% gives a row of zeros.
%% ```
%% 1> tessera:to_list(tessera:one_hot(tessera:tensor([2, 0]), 3)).
%% [[0,0,1],[1,0,0]]
%% '''
-spec one_hot(tensor(), pos_integer()) -> tensor().
one_hot(Indices, Size) -> one_hot(Indices, Size, u8).

%% @doc For each index, a row of Size elements with a one at the index and zeros elsewhere, of the given type. An
%% index out of range gives a row of zeros.
-spec one_hot(tensor(), pos_integer(), type()) -> tensor().
one_hot(Indices, Size, Type) -> tessera_ops:one_hot(Indices, Size, Type).

%% @doc The elements as a binary, in row-major order and native byte order. The binary is a view that keeps the
%% tensor's memory. Elements of fewer than 8 bits are packed in a bitstring, the first one in the high bits.
%% ```
%% 1> tessera:to_binary(tessera:tensor([1, 2, 3], u8)).
%% <<1,2,3>>
%% '''
%% This is the way to store a tensor or to send it to a program of another kind. A tensor itself is a handle of its node's run:
%% `term_to_binary/1' of it, or of a term with it inside, has no elements, and they cannot be read after a restart.
%% ```
%% 2> T = tessera:tensor([[1.0, 2.0]]), Stored = term_to_binary({tessera:type(T), tessera:shape(T), tessera:to_binary(T)}), ok.
%% ok
%% 3> {Type, Shape, Bytes} = binary_to_term(Stored), tessera:to_list(tessera:from_binary(Bytes, Type, Shape)).
%% [[1.0,2.0]]
%% '''
-spec to_binary(tensor()) -> bitstring().
to_binary(Tensor) -> tessera_array:to_binary(Tensor).

%% @doc The elements as nested lists, or a number for a tensor of rank 0.
%% ```
%% 1> tessera:to_list(tessera:tensor([[1.0, infinity], [2.0, 3.0]])).
%% [[1.0,infinity],[2.0,3.0]]
%% '''
-spec to_list(tensor()) -> operand() | [term()].
to_list(Tensor) -> tessera_array:to_list(Tensor).

%% @doc The only element of a tensor, as a number.
%% ```
%% 1> tessera:to_number(tessera:sum(tessera:tensor([1, 2, 3]))).
%% 6
%% '''
-spec to_number(tensor()) -> number() | nan | infinity | neg_infinity.
to_number(Tensor) -> tessera_array:to_number(Tensor).

%% @doc The type of the elements, such as `f32'.
%% ```
%% 1> tessera:type(tessera:add(tessera:tensor([1], u8), 1.5)).
%% f32
%% '''
-spec type(operand()) -> type().
type(Operand) -> tessera_array:type(Operand).

%% @doc The shape: a tuple with the size of each axis.
-spec shape(operand()) -> shape().
shape(Operand) -> tessera_array:shape(Operand).

%% @doc The number of axes.
-spec rank(operand()) -> non_neg_integer().
rank(Operand) -> tessera_array:rank(Operand).

%% @doc The number of elements.
%% ```
%% 1> tessera:size(tessera:zeros({2, 3})).
%% 6
%% '''
-spec size(operand()) -> non_neg_integer().
size(Operand) -> tessera_array:size(Operand).

%% @doc The size of one axis: `#{axis => Axis}' or the axis alone.
-spec axis_size(tensor(), integer() | axis_options()) -> non_neg_integer().
axis_size(Tensor, Options) -> tessera_ops:axis_size(Tensor, Options).

%% @doc The size of all elements in memory, in bytes.
-spec byte_size(operand()) -> non_neg_integer().
byte_size(Operand) -> tessera_array:byte_size(Operand).

%% @doc Whether the term is a tensor or a template. A plain number is neither.
-spec is_tensor(term()) -> boolean().
is_tensor(Term) -> tessera_array:is_tensor(Term).

%% @doc The type, the shape and the first elements of a tensor, as text.
%% ```
%% 1> io:format("~s", [tessera:format(tessera:tensor([[1, 2], [3, 4]]))]).
%% s32[2,2]
%% [
%%   [1, 2],
%%   [3, 4]
%% ]
%% '''
-spec format(tensor()) -> iolist().
format(#tessera{} = Tensor) -> tessera_print:format(tessera_operand:operand(format, Tensor));
format(Other) -> tessera_array:no_tensor(format, Other).

%% @doc The type, the shape and the elements of a tensor, as text in aligned columns. Options: `precision', the digits behind the point (4);
%% `threshold', the largest number of elements that are all shown (1000); `edge', how many first and last elements of each axis are shown of a
%% larger tensor (3); `columns', the width of a line (80).
%%
%% ```
%% 1> io:format("~ts~n", [tessera:format(tessera:divide(tessera:iota({20, 7}, f32), 4), #{threshold => 20, edge => 2, precision => 2})]).
%% f32[20,7]
%% [[ 0.00,  0.25, ...,  1.25,  1.50],
%%  [ 1.75,  2.00, ...,  3.00,  3.25],
%%  ...,
%%  [31.50, 31.75, ..., 32.75, 33.00],
%%  [33.25, 33.50, ..., 34.50, 34.75]]
%% '''
-spec format(tensor(), format_options()) -> iolist().
format(Tensor, Options) -> tessera_table:format(format, Tensor, Options).

%% @doc Prints the type, the shape and the first elements of a tensor, and returns the tensor.
-spec print(Tensor) -> Tensor when Tensor :: tensor().
print(Tensor) ->
    io:format("~ts~n", [format(Tensor)]),
    Tensor.

%% @doc Prints a tensor with the options of {@link format/2}, and returns the tensor.
-spec print(Tensor, format_options()) -> Tensor when Tensor :: tensor().
print(Tensor, Options) ->
    io:format("~ts~n", [tessera_table:format(print, Tensor, Options)]),
    Tensor.

%% @doc Frees the tensor's memory now, before the garbage collector does. Binaries from {@link to_binary/1} stay
%% valid. Returns `already_deallocated' if the memory was freed before.
-spec deallocate(tensor()) -> ok | already_deallocated.
deallocate(#tessera{ref = Ref} = Tensor) when Ref =/= undefined ->
    case tessera_error:check(deallocate, [Tensor], tessera_remote:deallocate(Ref)) of
        ok -> ok;
        deallocated -> already_deallocated
    end;
deallocate(Other) -> tessera_array:no_tensor(deallocate, Other).


%% ---- elementwise, one operand. Math functions give floats: f32 for integers.

%% @doc e to the power of X.
%% ```
%% 1> tessera:to_list(tessera:exp(tessera:tensor([0.0, 1.0]))).
%% [1.0,2.7182817459106445]
%% '''
-spec exp(operand()) -> tensor().
exp(X) -> tessera_elementwise:exp(X).

%% @doc exp(X) - 1, accurate near 0.
-spec expm1(operand()) -> tensor().
expm1(X) -> tessera_elementwise:expm1(X).

%% @doc The natural logarithm of X.
-spec log(operand()) -> tensor().
log(X) -> tessera_elementwise:log(X).

%% @doc log(1 + X), accurate near 0.
-spec log1p(operand()) -> tensor().
log1p(X) -> tessera_elementwise:log1p(X).

%% @doc 1 / (1 + exp(-X)).
%% ```
%% 1> tessera:to_number(tessera:sigmoid(0.0)).
%% 0.5
%% '''
-spec sigmoid(operand()) -> tensor().
sigmoid(X) -> tessera_elementwise:sigmoid(X).

%% @doc The cosine of X.
-spec cos(operand()) -> tensor().
cos(X) -> tessera_elementwise:cos(X).

%% @doc The sine of X.
-spec sin(operand()) -> tensor().
sin(X) -> tessera_elementwise:sin(X).

%% @doc The tangent of X.
-spec tan(operand()) -> tensor().
tan(X) -> tessera_elementwise:tan(X).

%% @doc The hyperbolic cosine of X.
-spec cosh(operand()) -> tensor().
cosh(X) -> tessera_elementwise:cosh(X).

%% @doc The hyperbolic sine of X.
-spec sinh(operand()) -> tensor().
sinh(X) -> tessera_elementwise:sinh(X).

%% @doc The hyperbolic tangent of X.
-spec tanh(operand()) -> tensor().
tanh(X) -> tessera_elementwise:tanh(X).

%% @doc The inverse cosine of X.
-spec acos(operand()) -> tensor().
acos(X) -> tessera_elementwise:acos(X).

%% @doc The inverse sine of X.
-spec asin(operand()) -> tensor().
asin(X) -> tessera_elementwise:asin(X).

%% @doc The inverse tangent of X.
-spec atan(operand()) -> tensor().
atan(X) -> tessera_elementwise:atan(X).

%% @doc The inverse hyperbolic cosine of X.
-spec acosh(operand()) -> tensor().
acosh(X) -> tessera_elementwise:acosh(X).

%% @doc The inverse hyperbolic sine of X.
-spec asinh(operand()) -> tensor().
asinh(X) -> tessera_elementwise:asinh(X).

%% @doc The inverse hyperbolic tangent of X.
-spec atanh(operand()) -> tensor().
atanh(X) -> tessera_elementwise:atanh(X).

%% @doc The square root of X; NaN for negative numbers.
%% ```
%% 1> tessera:to_list(tessera:sqrt(tessera:tensor([4, 9]))).
%% [2.0,3.0]
%% '''
-spec sqrt(operand()) -> tensor().
sqrt(X) -> tessera_elementwise:sqrt(X).

%% @doc 1 / sqrt(X).
-spec rsqrt(operand()) -> tensor().
rsqrt(X) -> tessera_elementwise:rsqrt(X).

%% @doc The cube root of X; of a complex number the root whose angle is a third of X's.
-spec cbrt(operand()) -> tensor().
cbrt(X) -> tessera_elementwise:cbrt(X).

%% @doc The error function of X.
-spec erf(operand()) -> tensor().
erf(X) -> tessera_elementwise:erf(X).

%% @doc 1 - erf(X), accurate for large X.
-spec erfc(operand()) -> tensor().
erfc(X) -> tessera_elementwise:erfc(X).

%% @doc The inverse of the error function of X.
-spec erf_inv(operand()) -> tensor().
erf_inv(X) -> tessera_elementwise:erf_inv(X).

%% @doc The absolute value of X. For the smallest integer of a signed type it wraps to the same integer. Of complex
%% numbers the modulus, in the type of their parts.
%% ```
%% 1> tessera:to_list(tessera:abs(tessera:tensor([-2, 3]))).
%% [2,3]
%% '''
-spec abs(operand()) -> tensor().
abs(X) -> tessera_elementwise:abs(X).

%% @doc -X. Unsigned integers wrap.
%% ```
%% 1> tessera:to_list(tessera:negate(tessera:tensor([-2, 3]))).
%% [2,-3]
%% '''
-spec negate(operand()) -> tensor().
negate(X) -> tessera_elementwise:negate(X).

%% @doc The sign of X: -1, 0 or 1. NaN gives NaN. Of a complex number X / |X|, and 0 of 0; a part that is infinite gives NaN, as in
%% StableHLO.
%% ```
%% 1> tessera:to_list(tessera:sign(tessera:tensor([-0.5, 0.0, 7.0]))).
%% [-1.0,0.0,1.0]
%% '''
-spec sign(operand()) -> tensor().
sign(X) -> tessera_elementwise:sign(X).

%% @doc X rounded up to an integer, in the same type.
-spec ceil(operand()) -> tensor().
ceil(X) -> tessera_elementwise:ceil(X).

%% @doc X rounded down to an integer, in the same type.
-spec floor(operand()) -> tensor().
floor(X) -> tessera_elementwise:floor(X).

%% @doc X rounded to the nearest integer, in the same type. Halves are rounded away from zero.
%% ```
%% 1> tessera:to_list(tessera:round(tessera:tensor([0.5, 1.5, -2.4]))).
%% [1.0,2.0,-2.0]
%% '''
-spec round(operand()) -> tensor().
round(X) -> tessera_elementwise:round(X).

%% @doc X with every bit inverted. Takes integers.
%% ```
%% 1> tessera:to_list(tessera:bitwise_not(tessera:tensor([0, 1], u8))).
%% [255,254]
%% '''
-spec bitwise_not(operand()) -> tensor().
bitwise_not(X) -> tessera_elementwise:bitwise_not(X).

%% @doc The number of zero bits above the highest one bit. Takes integers.
%% ```
%% 1> tessera:to_list(tessera:count_leading_zeros(tessera:tensor([1, 255], u8))).
%% [7,0]
%% '''
-spec count_leading_zeros(operand()) -> tensor().
count_leading_zeros(X) -> tessera_elementwise:count_leading_zeros(X).

%% @doc The number of one bits. Takes integers.
%% ```
%% 1> tessera:to_list(tessera:population_count(tessera:tensor([7, 8]))).
%% [3,1]
%% '''
-spec population_count(operand()) -> tensor().
population_count(X) -> tessera_elementwise:population_count(X).

%% @doc 1 where an element is NaN, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:is_nan(tessera:tensor([nan, 1.0]))).
%% [1,0]
%% '''
-spec is_nan(operand()) -> tensor().
is_nan(X) -> tessera_elementwise:is_nan(X).

%% @doc 1 where an element is infinite, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:is_infinity(tessera:tensor([neg_infinity, 1.0]))).
%% [1,0]
%% '''
-spec is_infinity(operand()) -> tensor().
is_infinity(X) -> tessera_elementwise:is_infinity(X).

%% ---- elementwise, two operands. Shapes broadcast, types merge.

%% @doc A + B. Integers wrap.
%% ```
%% 1> tessera:to_list(tessera:add(tessera:tensor([[1, 2], [3, 4]]), tessera:tensor([10, 20]))).
%% [[11,22],[13,24]]
%% '''
-spec add(operand(), operand()) -> tensor().
add(A, B) -> tessera_elementwise:add(A, B).

%% @doc A - B. Integers wrap.
%% ```
%% 1> tessera:to_list(tessera:subtract(10, tessera:tensor([1, 2]))).
%% [9,8]
%% '''
-spec subtract(operand(), operand()) -> tensor().
subtract(A, B) -> tessera_elementwise:subtract(A, B).

%% @doc A * B. Integers wrap.
%% ```
%% 1> tessera:to_list(tessera:multiply(tessera:tensor([1, 2]), 1.5)).
%% [1.5,3.0]
%% '''
-spec multiply(operand(), operand()) -> tensor().
multiply(A, B) -> tessera_elementwise:multiply(A, B).

%% @doc A / B, in a float type. Division by zero gives an infinity, or NaN for 0 / 0.
%% ```
%% 1> tessera:to_list(tessera:divide(tessera:tensor([1, 2]), 2)).
%% [0.5,1.0]
%% '''
-spec divide(operand(), operand()) -> tensor().
divide(A, B) -> tessera_elementwise:divide(A, B).

%% @doc The integer quotient of A and B, truncated. Where B is 0, all bits of the result are one: -1, or the largest
%% number of an unsigned type. The smallest integer divided by -1 wraps to itself.
%% ```
%% 1> tessera:to_list(tessera:quotient(tessera:tensor([7, -7]), 2)).
%% [3,-3]
%% '''
-spec quotient(operand(), operand()) -> tensor().
quotient(A, B) -> tessera_elementwise:quotient(A, B).

%% @doc The remainder of A divided by B, with the sign of A. Where B is 0, it is A for integers and NaN for floats.
%% ```
%% 1> tessera:to_list(tessera:remainder(tessera:tensor([7, -7]), 3)).
%% [1,-1]
%% '''
-spec remainder(operand(), operand()) -> tensor().
remainder(A, B) -> tessera_elementwise:remainder(A, B).

%% @doc A to the power of B. Powers of integers wrap. For integers, a negative integer as B raises. A tensor B may have
%% negative elements: the power is then truncated to an integer. It is 1 or -1 for a base of 1 or -1, and 0 for all
%% other bases, including 0.
%% ```
%% 1> tessera:to_list(tessera:pow(tessera:tensor([2, 3]), 2)).
%% [4,9]
%% '''
-spec pow(operand(), operand()) -> tensor().
pow(A, B) -> tessera_ops:pow(A, B).

%% @doc The angle of the point with the coordinates x = B and y = A, from -pi to pi.
-spec atan2(operand(), operand()) -> tensor().
atan2(A, B) -> tessera_complex:atan2(A, B).

%% @doc The smaller of A and B; NaN if either is NaN.
%% ```
%% 1> tessera:to_list(tessera:min(tessera:tensor([1, 5]), 3)).
%% [1,3]
%% '''
-spec min(operand(), operand()) -> tensor().
min(A, B) -> tessera_elementwise:min(A, B).

%% @doc The larger of A and B; NaN if either is NaN.
%% ```
%% 1> tessera:to_list(tessera:max(tessera:tensor([1, 5]), 3)).
%% [3,5]
%% '''
-spec max(operand(), operand()) -> tensor().
max(A, B) -> tessera_elementwise:max(A, B).

%% @doc The bits set in both A and B. Takes integers.
%% ```
%% 1> tessera:to_list(tessera:bitwise_and(tessera:tensor([6, 5]), 3)).
%% [2,1]
%% '''
-spec bitwise_and(operand(), operand()) -> tensor().
bitwise_and(A, B) -> tessera_elementwise:bitwise_and(A, B).

%% @doc The bits set in A, in B or in both. Takes integers.
%% ```
%% 1> tessera:to_list(tessera:bitwise_or(tessera:tensor([6, 5]), 3)).
%% [7,7]
%% '''
-spec bitwise_or(operand(), operand()) -> tensor().
bitwise_or(A, B) -> tessera_elementwise:bitwise_or(A, B).

%% @doc The bits set in exactly one of A and B. Takes integers.
%% ```
%% 1> tessera:to_list(tessera:bitwise_xor(tessera:tensor([6, 5]), 3)).
%% [5,6]
%% '''
-spec bitwise_xor(operand(), operand()) -> tensor().
bitwise_xor(A, B) -> tessera_elementwise:bitwise_xor(A, B).

%% @doc A shifted to the left by B bits; 0 where B is negative or not less than the number of bits. Takes integers.
%% ```
%% 1> tessera:to_list(tessera:left_shift(tessera:tensor([1, 3]), 2)).
%% [4,12]
%% '''
-spec left_shift(operand(), operand()) -> tensor().
left_shift(A, B) -> tessera_elementwise:left_shift(A, B).

%% @doc A shifted to the right by B bits. A signed type keeps its sign. Where B is negative or not less than the
%% number of bits, the result is 0, or -1 for negative A. Takes integers.
%% ```
%% 1> tessera:to_list(tessera:right_shift(tessera:tensor([-8, 9]), 1)).
%% [-4,4]
%% '''
-spec right_shift(operand(), operand()) -> tensor().
right_shift(A, B) -> tessera_elementwise:right_shift(A, B).

%% @doc 1 where A equals B, else 0: u8. NaN equals no number.
%% ```
%% 1> tessera:to_list(tessera:equal(tessera:tensor([1, 2]), 2)).
%% [0,1]
%% '''
-spec equal(operand(), operand()) -> tensor().
equal(A, B) -> tessera_elementwise:equal(A, B).

%% @doc 1 where A differs from B, else 0: u8. NaN differs from every number.
%% ```
%% 1> tessera:to_list(tessera:not_equal(tessera:tensor([1, 2]), 2)).
%% [1,0]
%% '''
-spec not_equal(operand(), operand()) -> tensor().
not_equal(A, B) -> tessera_elementwise:not_equal(A, B).

%% @doc 1 where A > B, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:greater(tessera:tensor([1, 2, 3]), 2)).
%% [0,0,1]
%% '''
-spec greater(operand(), operand()) -> tensor().
greater(A, B) -> tessera_elementwise:greater(A, B).

%% @doc 1 where A is less than B, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:less(tessera:tensor([1, 2, 3]), 2)).
%% [1,0,0]
%% '''
-spec less(operand(), operand()) -> tensor().
less(A, B) -> tessera_elementwise:less(A, B).

%% @doc 1 where A >= B, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:greater_equal(tessera:tensor([1, 2, 3]), 2)).
%% [0,1,1]
%% '''
-spec greater_equal(operand(), operand()) -> tensor().
greater_equal(A, B) -> tessera_elementwise:greater_equal(A, B).

%% @doc 1 where A is less than or equal to B, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:less_equal(tessera:tensor([1, 2, 3]), 2)).
%% [1,1,0]
%% '''
-spec less_equal(operand(), operand()) -> tensor().
less_equal(A, B) -> tessera_elementwise:less_equal(A, B).

%% @doc 1 where neither A nor B is 0, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:logical_and(tessera:tensor([0, 1, 2]), 1)).
%% [0,1,1]
%% '''
-spec logical_and(operand(), operand()) -> tensor().
logical_and(A, B) -> tessera_elementwise:logical_and(A, B).

%% @doc 1 where A or B is not 0, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:logical_or(tessera:tensor([0, 1, 2]), 0)).
%% [0,1,1]
%% '''
-spec logical_or(operand(), operand()) -> tensor().
logical_or(A, B) -> tessera_elementwise:logical_or(A, B).

%% @doc 1 where exactly one of A and B is not 0, else 0: u8.
%% ```
%% 1> tessera:to_list(tessera:logical_xor(tessera:tensor([0, 1, 2]), 1)).
%% [1,0,0]
%% '''
-spec logical_xor(operand(), operand()) -> tensor().
logical_xor(A, B) -> tessera_elementwise:logical_xor(A, B).

%% @doc 1 where X is 0, else 0: u8.
-spec logical_not(operand()) -> tensor().
logical_not(X) -> tessera_elementwise:logical_not(X).

%% @doc The larger of X and 0. The gradient at 0 is 0.
-spec relu(operand()) -> tensor().
relu(X) -> tessera_elementwise:relu(X).

%% @doc A where the predicate is not 0, else B. All three broadcast to one shape.
%% ```
%% 1> tessera:to_list(tessera:select(tessera:tensor([1, 0]), 5, tessera:tensor([7, 8]))).
%% [5,8]
%% '''
-spec select(operand(), operand(), operand()) -> tensor().
select(Predicate, A, B) -> tessera_elementwise:select(Predicate, A, B).

%% @doc X limited to the range from Low to High. NaN stays NaN.
%% ```
%% 1> tessera:to_list(tessera:clip(tessera:tensor([-1, 5, 20]), 0, 10)).
%% [0,5,10]
%% '''
-spec clip(operand(), operand(), operand()) -> tensor().
clip(X, Low, High) -> tessera_elementwise:clip(X, Low, High).

%% @doc X converted to another type. Floats become integers by truncation, limited to the type's range, and NaN
%% becomes 0. Integers wrap. Of complex numbers a real type takes the real part; real numbers become complex with the
%% imaginary part 0.
%% ```
%% 1> tessera:to_list(tessera:as_type(tessera:tensor([1.9, -300.0]), s8)).
%% [1,-128]
%% '''
-spec as_type(operand(), type()) -> tensor().
as_type(X, Type) -> tessera_ops:as_type(X, Type).

%% @doc Complex numbers of their real and imaginary parts: c128 if a part is f64, otherwise c64. The shapes broadcast.
%% Raises for a part that is complex.
%% ```
%% 1> tessera:to_list(tessera:complex(tessera:tensor([1.0, 2.0]), -1)).
%% [{complex,1.0,-1.0},{complex,2.0,-1.0}]
%% '''
-spec complex(operand(), operand()) -> tensor().
complex(Re, Im) -> tessera_complex:complex(Re, Im).

%% @doc The real part of X: f32 for c64, f64 for c128. Of floats X itself, of integers X as f32.
%% ```
%% 1> tessera:to_list(tessera:real(tessera:tensor([{complex, 3, 4}, 5]))).
%% [3.0,5.0]
%% '''
-spec real(operand()) -> tensor().
real(X) -> tessera_complex:real(X).

%% @doc The imaginary part of X: f32 for c64, f64 for c128. Of real numbers zeros, in their own type for floats and in
%% f32 for integers.
%% ```
%% 1> tessera:to_list(tessera:imag(tessera:tensor([{complex, 3, 4}, 5]))).
%% [4.0,0.0]
%% '''
-spec imag(operand()) -> tensor().
imag(X) -> tessera_complex:imag(X).

%% @doc X with the sign of its imaginary part changed. Of floats X itself, of integers X as f32.
%% ```
%% 1> tessera:to_list(tessera:conjugate(tessera:tensor([{complex, 3, 4}]))).
%% [{complex,3.0,-4.0}]
%% '''
-spec conjugate(operand()) -> tensor().
conjugate(X) -> tessera_complex:conjugate(X).

%% @doc The angle of X in the complex plane, from -pi to pi: f32 for c64, f64 for c128. Real numbers give 0, or pi if
%% negative.
%% ```
%% 1> tessera:to_list(tessera:phase(tessera:tensor([{complex, 2, 2}, {complex, -1, 0}]))).
%% [0.7853981852531433,3.1415927410125732]
%% '''
-spec phase(operand()) -> tensor().
phase(X) -> tessera_complex:phase(X).

%% @doc The bits of X, read as another type of the same width.
-spec bitcast(tensor(), type()) -> tensor().
bitcast(X, Type) -> tessera_elementwise:bitcast(X, Type).

%% @doc The logarithm with base 2. It is exact for powers of two.
%% ```
%% 1> tessera:to_list(tessera:log2(tessera:tensor([8, 0.5]))).
%% [3.0,-1.0]
%% '''
-spec log2(operand()) -> tensor().
log2(X) -> tessera_error:within(log2, [X], fun() -> tessera_floats:log2(X) end).

%% @doc The logarithm with base 10. It is exact for 1, 10, 100, ... 10^22.
%% ```
%% 1> tessera:to_list(tessera:log10(tessera:tensor([1000, 1]))).
%% [3.0,0.0]
%% '''
-spec log10(operand()) -> tensor().
log10(X) -> tessera_error:within(log10, [X], fun() -> tessera_floats:log10(X) end).

%% @doc The square root of A * A + B * B, whose squares do not overflow. Infinite where one of both is.
%% ```
%% 1> tessera:to_number(tessera:hypot(3, tessera:tensor(4.0))).
%% 5.0
%% '''
-spec hypot(operand(), operand()) -> tensor().
hypot(A, B) -> tessera_error:within(hypot, [A, B], fun() -> tessera_floats:hypot(A, B) end).

%% @doc 1 where an element is neither infinite nor NaN, and 0 elsewhere.
%% ```
%% 1> tessera:to_list(tessera:is_finite(tessera:tensor([1.0, nan, infinity]))).
%% [1,0,0]
%% '''
-spec is_finite(operand()) -> tensor().
is_finite(X) -> tessera_error:within(is_finite, [X], fun() -> tessera_floats:is_finite(X) end).

%% @doc 1 where |A - B| is at most 1.0e-8 + 1.0e-5 |B|, and 0 elsewhere.
%% ```
%% 1> tessera:to_list(tessera:is_close(tessera:tensor([1.0, 2.0]), tessera:tensor([1.000001, 2.1]))).
%% [1,0]
%% '''
-spec is_close(operand(), operand()) -> tensor().
is_close(A, B) -> is_close(A, B, #{}).

%% @doc 1 where |A - B| is at most atol + rtol |B|, and 0 elsewhere. Options: `rtol', 1.0e-5 unless given; `atol', 1.0e-8 unless given; `equal_nan', `true'
%% if NaN is close to NaN. An infinity is close to itself only. Differences are taken in f64.
-spec is_close(operand(), operand(), close_options()) -> tensor().
is_close(A, B, Options) -> tessera_error:within(is_close, [A, B, Options], fun() -> tessera_floats:is_close(A, B, Options) end).

%% @doc 1 if all elements of A and B are close as {@link is_close/2} has it, else 0.
%% ```
%% 1> tessera:to_number(tessera:all_close(tessera:tensor([1.0, 2.0]), tessera:tensor([1.0, 2.0000001]))).
%% 1
%% '''
-spec all_close(operand(), operand()) -> tensor().
all_close(A, B) -> all_close(A, B, #{}).

%% @doc 1 if all elements of A and B are close, else 0. Options as of {@link is_close/3}.
-spec all_close(operand(), operand(), close_options()) -> tensor().
all_close(A, B, Options) -> tessera_error:within(all_close, [A, B, Options], fun() -> tessera_floats:all_close(A, B, Options) end).

%% @doc X with 0 in the place of NaN, and the ends of the type's range in the place of infinities.
%% ```
%% 1> tessera:to_list(tessera:nan_to_num(tessera:tensor([nan, infinity, 1.0], f16))).
%% [0.0,65504.0,1.0]
%% '''
-spec nan_to_num(operand()) -> tensor().
nan_to_num(X) -> nan_to_num(X, #{}).

%% @doc X with numbers in the place of NaN and infinities. Options: `nan', 0 unless given; `infinity' and `neg_infinity', the ends of the
%% type's range unless given.
%% ```
%% 1> tessera:to_list(tessera:nan_to_num(tessera:tensor([nan, infinity]), #{nan => -1, infinity => 9})).
%% [-1.0,9.0]
%% '''
-spec nan_to_num(operand(), nan_to_num_options()) -> tensor().
nan_to_num(X, Options) -> tessera_error:within(nan_to_num, [X, Options], fun() -> tessera_floats:nan_to_num(X, Options) end).

%% ---- shapes and indices

%% @doc The elements of X, in row-major order, in another shape of the same size. One size may be -1: it follows from the
%% other sizes.
%% ```
%% 1> tessera:to_list(tessera:reshape(tessera:iota({4}), {2, 2})).
%% [[0,1],[2,3]]
%% 2> tessera:shape(tessera:reshape(tessera:iota({2, 3}), {-1, 2})).
%% {3,2}
%% '''
-spec reshape(operand(), tuple()) -> tensor().
reshape(X, Shape) -> tessera_ops:reshape(X, Shape).

%% @doc The elements of X, in row-major order, in one axis.
-spec flatten(operand()) -> tensor().
flatten(X) -> tessera_ops:flatten(X).

%% @doc X without its axes of size 1.
-spec squeeze(operand()) -> tensor().
squeeze(X) -> tessera_ops:squeeze(X, all).

%% @doc X without these axes, which must have size 1: `#{axes => Axes}' or the axes alone. `all' removes every axis of size 1.
-spec squeeze(operand(), axes() | axes_options()) -> tensor().
squeeze(X, Options) -> tessera_ops:squeeze(X, Options).

%% @doc X with a new axis of size 1 at this position: `#{axis => Axis}', the first unless given, or the axis alone.
%% ```
%% 1> tessera:shape(tessera:new_axis(tessera:iota({3}), -1)).
%% {3,1}
%% '''
-spec new_axis(operand(), integer() | axis_options()) -> tensor().
new_axis(X, Options) -> tessera_ops:new_axis(X, Options).

%% @doc X repeated to a shape. Axes are aligned at the last one, and axes of size 1 are repeated.
%% ```
%% 1> tessera:to_list(tessera:broadcast(tessera:iota({2}), {2, 2})).
%% [[0,1],[0,1]]
%% '''
-spec broadcast(operand(), shape()) -> tensor().
broadcast(X, Shape) -> tessera_ops:broadcast_to(X, Shape).

%% @doc X repeated to a shape. The list, `#{axes => List}' or the list alone, has the axis of the result for each axis of X, by
%% default the last ones.
%% ```
%% 1> tessera:to_list(tessera:broadcast(tessera:iota({2}), {2, 2}, [0])).
%% [[0,0],[1,1]]
%% '''
-spec broadcast(operand(), shape(), axes() | axes_options()) -> tensor().
broadcast(X, Shape, Options) -> tessera_ops:broadcast(X, Shape, Options).

%% @doc X with its axes in reverse order.
%% ```
%% 1> tessera:to_list(tessera:transpose(tessera:iota({2, 2}))).
%% [[0,2],[1,3]]
%% '''
-spec transpose(operand()) -> tensor().
transpose(X) -> tessera_ops:transpose(X, reverse).

%% @doc X with its axes in another order, `#{axes => List}' or the list alone: axis I of the result is the axis of X at position I of
%% the list.
%% ```
%% 1> tessera:shape(tessera:transpose(tessera:iota({2, 3, 4}), #{axes => [1, 0, 2]})).
%% {3,2,4}
%% '''
-spec transpose(operand(), axes() | axes_options()) -> tensor().
transpose(X, Options) -> tessera_ops:transpose(X, Options).

%% @doc X with its elements in reverse order along all axes.
-spec reverse(operand()) -> tensor().
reverse(X) -> tessera_ops:reverse(X, all).

%% @doc X with its elements in reverse order along these axes: `#{axes => Axes}', all unless given, or the axes alone.
-spec reverse(operand(), axes() | axes_options()) -> tensor().
reverse(X, Options) -> tessera_ops:reverse(X, Options).

%% @doc The part of a tensor that begins at Starts and has these lengths along its axes. Starts that are integers must
%% be in range. Starts that are tensors are moved so that the part fits.
%% ```
%% 1> tessera:to_list(tessera:slice(tessera:iota({3, 3}), [1, 0], [2, 2])).
%% [[3,4],[6,7]]
%% '''
-spec slice(tensor(), [operand()], [non_neg_integer()]) -> tensor().
slice(Tensor, Starts, Lengths) -> tessera_ops:slice(Tensor, Starts, Lengths, ones).

%% @doc Every Stride-th element, along each axis, of the part of a tensor that begins at Starts. Lengths are lengths of
%% the part before striding.
-spec slice(tensor(), [operand()], [non_neg_integer()], [pos_integer()]) -> tensor().
slice(Tensor, Starts, Lengths, Strides) -> tessera_ops:slice(Tensor, Starts, Lengths, Strides).

%% @doc The part of a tensor that an index for each of its first axes names, as Python's brackets do. An index is one of:
%% <ul>
%% <li>an integer, from the end where it is negative, or a tensor of rank 0: that element; the result does not have the axis</li>
%% <li>`{From, To}', `{From, To, Step}': the elements from From to before To. Negative ones count from the end, `all' in the place of one
%% stands for the end of the axis, and what lies outside of the axis is left out. With a negative Step the elements are in reverse
%% order</li>
%% <li>`all': the whole axis</li>
%% <li>`new_axis': an axis of size 1 more</li>
%% <li>\'...': whole axes in the place of all that have no index; the last axes have it unless it is written</li>
%% </ul>
%% ```
%% 1> X = tessera:iota({2, 3}).
%% 2> tessera:to_list(tessera:at(X, [-1])).
%% [3,4,5]
%% 3> tessera:to_list(tessera:at(X, [all, {1, all}])).
%% [[1,2],[4,5]]
%% 4> tessera:to_list(tessera:at(X, ['...', {all, all, -2}, new_axis])).
%% [[[2],[0]],[[5],[3]]]
%% '''
-spec at(tensor(), [operand() | all | new_axis | '...' | {From, To} | {From, To, integer()}]) -> tensor()
              when From :: all | integer(), To :: all | integer().
at(Tensor, Indices) -> tessera_error:within(at, [Tensor, Indices], fun() -> tessera_shapes:at(Tensor, Indices) end).

%% @doc X side by side as often as a count says, for each axis. Of fewer counts than axes the last axes have them; a number is that of the
%% last axis; of more, X has new axes in front.
%% ```
%% 1> tessera:to_list(tessera:tile(tessera:tensor([1, 2]), [2, 2])).
%% [[1,2,1,2],[1,2,1,2]]
%% '''
-spec tile(operand(), non_neg_integer() | [non_neg_integer()]) -> tensor().
tile(X, Counts) -> tessera_error:within(tile, [X, Counts], fun() -> tessera_shapes:tile(X, Counts) end).

%% @doc Each element as often as the count says, all in one axis. Counts are a number, or a list with one for each element.
%% ```
%% 1> tessera:to_list(tessera:repeat(tessera:tensor([1, 2, 3]), [2, 0, 1])).
%% [1,1,3]
%% '''
-spec repeat(operand(), non_neg_integer() | [non_neg_integer()]) -> tensor().
repeat(X, Counts) -> repeat(X, Counts, #{}).

%% @doc Each index of an axis as often as the count says. Options: `axis'; without it all elements are in one axis.
%% ```
%% 1> tessera:to_list(tessera:repeat(tessera:iota({2, 2}), 2, #{axis => 1})).
%% [[0,0,1,1],[2,2,3,3]]
%% '''
-spec repeat(operand(), non_neg_integer() | [non_neg_integer()], axis_options()) -> tensor().
repeat(X, Counts, Options) -> tessera_error:within(repeat, [X, Counts, Options], fun() -> tessera_shapes:repeat(X, Counts, Options) end).

%% @doc All elements in row-major order moved on by Shift; those that leave the end come back at the beginning.
%% ```
%% 1> tessera:to_list(tessera:roll(tessera:arange(4), 1)).
%% [3,0,1,2]
%% '''
-spec roll(operand(), integer()) -> tensor().
roll(X, Shift) -> roll(X, Shift, #{}).

%% @doc The elements moved on along axes; elements beyond one end come back at the other. Options: `axes', one or a list. Shifts are a number, or
%% a list with one for each axis. {@link shift/3} moves parts between the devices of a mesh.
%% ```
%% 1> tessera:to_list(tessera:roll(tessera:iota({2, 3}), -1, #{axes => 1})).
%% [[1,2,0],[4,5,3]]
%% '''
-spec roll(operand(), integer() | [integer()], axes_options()) -> tensor().
roll(X, Shifts, Options) -> tessera_error:within(roll, [X, Shifts, Options], fun() -> tessera_shapes:roll(X, Shifts, Options) end).

%% @doc X with two axes exchanged.
%% ```
%% 1> tessera:shape(tessera:swap_axes(tessera:iota({2, 3, 4}), 0, -1)).
%% {4,3,2}
%% '''
-spec swap_axes(operand(), integer(), integer()) -> tensor().
swap_axes(X, A, B) -> tessera_error:within(swap_axes, [X, A, B], fun() -> tessera_shapes:swap_axes(X, A, B) end).

%% @doc X with an axis moved to another place, or several; the other axes keep their order.
%% ```
%% 1> tessera:shape(tessera:move_axis(tessera:iota({2, 3, 4}), 0, -1)).
%% {3,4,2}
%% '''
-spec move_axis(operand(), integer() | [integer()], integer() | [integer()]) -> tensor().
move_axis(X, From, To) -> tessera_error:within(move_axis, [X, From, To], fun() -> tessera_shapes:move_axis(X, From, To) end).

%% @doc Of a vector the square matrix with that diagonal; of a matrix its diagonal.
%% ```
%% 1> tessera:to_list(tessera:diag(tessera:tensor([1, 2]))).
%% [[1,0],[0,2]]
%% 2> tessera:to_list(tessera:diag(tessera:iota({2, 3}))).
%% [0,4]
%% '''
-spec diag(operand()) -> tensor().
diag(X) -> diag(X, 0).

%% @doc Another diagonal of a matrix, or the matrix with a vector there: by so many columns to the right, or to the left if Offset is
%% negative.
%% ```
%% 1> tessera:to_list(tessera:diag(tessera:iota({2, 3}), 1)).
%% [1,5]
%% '''
-spec diag(operand(), integer()) -> tensor().
diag(X, Offset) -> tessera_error:within(diag, [X, Offset], fun() -> tessera_shapes:diag(X, Offset) end).

%% @doc X with zeros above the diagonal of its last two axes.
%% ```
%% 1> tessera:to_list(tessera:tril(tessera:ones({2, 2}, s32))).
%% [[1,0],[1,1]]
%% '''
-spec tril(operand()) -> tensor().
tril(X) -> tril(X, 0).

%% @doc X with zeros above another diagonal of its last two axes, by so many columns to the right.
-spec tril(operand(), integer()) -> tensor().
tril(X, Offset) -> tessera_error:within(tril, [X, Offset], fun() -> tessera_shapes:triangle(tril, X, Offset) end).

%% @doc X with zeros below the diagonal of its last two axes.
%% ```
%% 1> tessera:to_list(tessera:triu(tessera:ones({2, 2}, s32))).
%% [[1,1],[0,1]]
%% '''
-spec triu(operand()) -> tensor().
triu(X) -> triu(X, 0).

%% @doc X with zeros below another diagonal of its last two axes, by so many columns to the right.
-spec triu(operand(), integer()) -> tensor().
triu(X, Offset) -> tessera_error:within(triu, [X, Offset], fun() -> tessera_shapes:triangle(triu, X, Offset) end).

%% @doc The tensor with the part that begins at Starts replaced by Slice. Starts are moved so that the part fits.
%% ```
%% 1> tessera:to_list(tessera:put_slice(tessera:iota({4}), [1], tessera:tensor([8, 9]))).
%% [0,8,9,3]
%% '''
-spec put_slice(tensor(), [operand()], operand()) -> tensor().
put_slice(Tensor, Starts, Slice) -> tessera_ops:put_slice(Tensor, Starts, Slice).

%% @doc The tensor with Value added before, after and between its elements: `{Low, High, Interior}' for each axis.
%% Negative Low and High remove elements.
%% ```
%% 1> tessera:to_list(tessera:pad(tessera:iota({3}), 9, [{1, -1, 1}])).
%% [9,0,9,1,9]
%% '''
-spec pad(tensor(), operand(), [{integer(), integer(), non_neg_integer()}]) -> tensor().
pad(Tensor, Value, Config) -> tessera_ops:pad(Tensor, Value, Config).

%% @doc The tensors one after another along the first axis.
-spec concatenate([tensor()]) -> tensor().
concatenate(Tensors) -> tessera_ops:concatenate(Tensors, 0).

%% @doc The tensors one after another along an axis: `#{axis => Axis}', the first unless given, or the axis alone.
%% ```
%% 1> tessera:to_list(tessera:concatenate([tessera:eye(2, s32), tessera:eye(2, s32)], #{axis => 1})).
%% [[1,0,1,0],[0,1,0,1]]
%% 2> tessera:to_list(tessera:concatenate([tessera:eye(2, s32), tessera:eye(2, s32)], 1)).
%% [[1,0,1,0],[0,1,0,1]]
%% '''
-spec concatenate([tensor()], integer() | axis_options()) -> tensor().
concatenate(Tensors, Options) -> tessera_ops:concatenate(Tensors, Options).

%% @doc Tensors of one shape, along a new first axis.
-spec stack([operand()]) -> tensor().
stack(Tensors) -> tessera_ops:stack(Tensors, 0).

%% @doc Tensors of one shape, along a new axis at a position: `#{axis => Axis}', the first unless given, or the axis alone.
-spec stack([operand()], integer() | axis_options()) -> tensor().
stack(Tensors, Options) -> tessera_ops:stack(Tensors, Options).

%% @doc The parts of a tensor that have these sizes along the first axis.
-spec split(tensor(), [non_neg_integer()]) -> [tensor()].
split(Tensor, Sizes) -> tessera_ops:split(Tensor, Sizes, 0).

%% @doc The parts of a tensor that have these sizes along an axis: `#{axis => Axis}', the first unless given, or the axis alone.
%% ```
%% 1> [tessera:to_list(Part) || Part <- tessera:split(tessera:iota({2, 3}), [2, 1], #{axis => 1})].
%% [[[0,1],[3,4]],[[2],[5]]]
%% '''
-spec split(tensor(), [non_neg_integer()], integer() | axis_options()) -> [tensor()].
split(Tensor, Sizes, Options) -> tessera_ops:split(Tensor, Sizes, Options).

%% @doc The slices of a tensor at these indices of the first axis. Indices out of range are moved to the nearest valid
%% one.
-spec take(tensor(), operand()) -> tensor().
take(Tensor, Indices) -> take(Tensor, Indices, #{}).

%% @doc The slices of a tensor at these indices of one axis. The axes of the indices replace this axis. Indices out of
%% range are moved to the nearest valid one. Options: `axis', by default the first.
%% ```
%% 1> tessera:to_list(tessera:take(tessera:iota({3, 2}), tessera:tensor([2, 0]))).
%% [[4,5],[0,1]]
%% '''
-spec take(tensor(), operand(), axis_options()) -> tensor().
take(Tensor, Indices, Options) -> tessera_ops:take(Tensor, Indices, Options).

%% @doc For each element of Indices, the element of the tensor at that index along the first axis, and at the same
%% position along the others. Indices out of range are moved to the nearest valid one.
-spec take_along_axis(tensor(), tensor()) -> tensor().
take_along_axis(Tensor, Indices) -> take_along_axis(Tensor, Indices, #{}).

%% @doc For each element of Indices, the element of the tensor at that index along one axis, and at the same position
%% along the others. Indices out of range are moved to the nearest valid one. Options: `axis', by default the first.
%% ```
%% 1> tessera:to_list(tessera:take_along_axis(tessera:iota({2, 2}), tessera:tensor([[1], [0]]), #{axis => 1})).
%% [[1],[2]]
%% '''
-spec take_along_axis(tensor(), tensor(), axis_options()) -> tensor().
take_along_axis(Tensor, Indices, Options) -> tessera_ops:take_along_axis(Tensor, Indices, Options).

%% @doc The elements or slices of a tensor at index vectors: the last axis of `Indices'. Each vector indexes the first
%% axes of the tensor. Indices out of range are moved to the nearest valid one.
%% ```
%% 1> tessera:to_list(tessera:gather(tessera:iota({2, 3}), tessera:tensor([[1, 2], [0, 0]]))).
%% [5,0]
%% '''
-spec gather(tensor(), tensor()) -> tensor().
gather(Tensor, Indices) -> gather(Tensor, Indices, #{}).

%% @doc The elements or slices of a tensor at index vectors: the last axis of `Indices'. The result has the other axes
%% of `Indices', then those axes of the tensor that are not indexed. Indices out of range are moved to the nearest valid
%% one. Options: `axes', the indexed axes in increasing order, by default the first ones.
%% ```
%% 1> tessera:to_list(tessera:gather(tessera:iota({2, 3}), tessera:tensor([[2], [0]]), #{axes => [1]})).
%% [[2,5],[0,3]]
%% '''
-spec gather(tensor(), tensor(), axes_options()) -> tensor().
gather(Tensor, Indices, Options) -> tessera_indices:gather(Tensor, Indices, Options).

%% @doc The target with updates added at index vectors: the last axis of `Indices'. Each vector indexes the first axes
%% of the target. Updates at equal indices are all added, in order. Updates at indices out of range are dropped.
%% ```
%% 1> Target = tessera:zeros({4}, s32).
%% 2> tessera:to_list(tessera:indexed_add(Target, tessera:tensor([[1], [3], [1], [9]]), tessera:tensor([10, 20, 30, 40]))).
%% [0,40,0,20]
%% '''
-spec indexed_add(operand(), tensor(), operand()) -> tensor().
indexed_add(Target, Indices, Updates) -> indexed_add(Target, Indices, Updates, #{}).

%% @doc The target with updates added at index vectors: the last axis of `Indices'. Updates have the other axes of
%% `Indices', then those axes of the target that are not indexed. Updates at equal indices are all added, in order, and
%% each sum is rounded to the type. Updates at indices out of range are dropped. Options: `axes', the indexed axes in
%% increasing order, by default the first ones.
%% ```
%% 1> Target = tessera:zeros({2, 3}, s32).
%% 2> tessera:to_list(tessera:indexed_add(Target, tessera:tensor([[2], [2]]), tessera:tensor([[1, 2], [3, 4]]), #{axes => [1]})).
%% [[0,0,4],[0,0,6]]
%% '''
-spec indexed_add(operand(), tensor(), operand(), axes_options()) -> tensor().
indexed_add(Target, Indices, Updates, Options) ->
    tessera_indices:indexed(indexed_add, Target, Indices, Updates, Options).

%% @doc The target with the elements at index vectors, the last axis of `Indices', replaced by updates. Each vector
%% indexes the first axes of the target. Of updates at equal indices the last one stays. Updates at indices out of range
%% are dropped.
%% ```
%% 1> Target = tessera:iota({4}).
%% 2> tessera:to_list(tessera:indexed_put(Target, tessera:tensor([[1], [3], [1]]), tessera:tensor([10, 20, 30]))).
%% [0,30,2,20]
%% '''
-spec indexed_put(operand(), tensor(), operand()) -> tensor().
indexed_put(Target, Indices, Updates) -> indexed_put(Target, Indices, Updates, #{}).

%% @doc The target with the elements at index vectors, the last axis of `Indices', replaced by updates. Updates have the
%% other axes of `Indices', then those axes of the target that are not indexed. Of updates at equal indices the last one
%% stays. Updates at indices out of range are dropped. Options: `axes', the indexed axes in increasing order, by default
%% the first ones.
%% ```
%% 1> Target = tessera:zeros({2, 2}, s32).
%% 2> tessera:to_list(tessera:indexed_put(Target, tessera:tensor([[1]]), tessera:tensor([[5, 6]]), #{axes => [1]})).
%% [[0,5],[0,6]]
%% '''
-spec indexed_put(operand(), tensor(), operand(), axes_options()) -> tensor().
indexed_put(Target, Indices, Updates, Options) ->
    tessera_indices:indexed(indexed_put, Target, Indices, Updates, Options).

%% ---- order

%% @doc The elements in ascending order, along the first axis. NaN is the last.
%% ```
%% 1> tessera:to_list(tessera:sort(tessera:tensor([2.0, nan, -1.0]))).
%% [-1.0,2.0,nan]
%% '''
-spec sort(tensor()) -> tensor().
sort(Tensor) -> sort(Tensor, #{}).

%% @doc The elements in order along an axis. Options: `axis', the first unless given; `descending' (`true' or `false').
%% Equal elements stay in their order, in both directions; -0.0 equals 0.0. NaN is the last, and the first when descending.
%% ```
%% 1> tessera:to_list(tessera:sort(tessera:tensor([[3, 1, 2], [4, 6, 5]]), #{axis => 1, descending => true})).
%% [[3,2,1],[6,5,4]]
%% '''
-spec sort(tensor(), sort_options()) -> tensor().
sort(Tensor, Options) -> tessera_order:sort(Tensor, Options).

%% @doc Where the elements of the sorted tensor stand in this one, along the first axis: s32. Equal elements keep their
%% order.
%% ```
%% 1> tessera:to_list(tessera:argsort(tessera:tensor([30, 10, 20, 10]))).
%% [1,3,2,0]
%% '''
-spec argsort(tensor()) -> tensor().
argsort(Tensor) -> argsort(Tensor, #{}).

%% @doc Where the elements of the sorted tensor stand in this one, along an axis. Options: `axis', the first unless given;
%% `descending' (`true' or `false'); `type', an integer type that must hold the last index, by default `s32', or `s64' if need be. The order is
%% the order of {@link sort/2}; {@link take_along_axis/3} puts other tensors into it.
%% ```
%% 1> X = tessera:tensor([[3, 1, 2], [4, 6, 5]]).
%% 2> Order = tessera:argsort(X, #{axis => 1}), tessera:to_list(Order).
%% [[1,2,0],[0,2,1]]
%% 3> tessera:to_list(tessera:take_along_axis(X, Order, #{axis => 1})).
%% [[1,2,3],[4,5,6]]
%% '''
-spec argsort(tensor(), argsort_options()) -> tensor().
argsort(Tensor, Options) -> tessera_order:argsort(Tensor, Options).

%% @doc The `K' largest elements along the last axis, in descending order, and their indices: s32. NaN is the largest;
%% equal elements keep their order.
%% ```
%% 1> {Values, Indices} = tessera:top_k(tessera:tensor([10, 40, 20, 30]), 2).
%% 2> {tessera:to_list(Values), tessera:to_list(Indices)}.
%% {[40,30],[1,3]}
%% '''
-spec top_k(tensor(), non_neg_integer()) -> {tensor(), tensor()}.
top_k(Tensor, K) -> top_k(Tensor, K, #{}).

%% @doc The `K' largest elements along an axis, in descending order, and their indices. Options: `axis', the last unless given;
%% `type', the type of the indices, by default `s32', or `s64' if the last index needs it. NaN is the largest; equal elements
%% keep their order.
%% ```
%% 1> {Values, _} = tessera:top_k(tessera:tensor([[1, 6], [3, 4], [5, 2]]), 2, #{axis => 0}).
%% 2> tessera:to_list(Values).
%% [[5,6],[3,4]]
%% '''
-spec top_k(tensor(), non_neg_integer(), top_k_options()) -> {tensor(), tensor()}.
top_k(Tensor, K, Options) -> tessera_order:top_k(Tensor, K, Options).

%% @doc The median of all elements; NaN if there is one.
%% ```
%% 1> tessera:to_number(tessera:median(tessera:tensor([4, 1, 3, 2]))).
%% 2.5
%% '''
-spec median(operand()) -> tensor().
median(X) -> median(X, #{}).

%% @doc The median over axes: the element in the middle, or the mean of the two. Options: `axes', one or a list, all of them
%% unless given; `keep_axes', `true' to keep them with size 1. Of integers it is `f32'. NaN where there is one, and where
%% there are no elements.
%% ```
%% 1> tessera:to_list(tessera:median(tessera:tensor([[1, 9, 2], [8, 3, 4]]), #{axes => [1]})).
%% [2.0,4.0]
%% '''
-spec median(operand(), reduce_options()) -> tensor().
median(X, Options) -> tessera_order:median(X, Options).

%% @doc The quantiles of all elements at fractions from 0 to 1, interpolated linearly.
%% ```
%% 1> tessera:to_list(tessera:quantile(tessera:iota({5}), [0, 0.25, 1])).
%% [0.0,1.0,4.0]
%% '''
-spec quantile(operand(), number() | [number()] | tensor()) -> tensor().
quantile(X, Fractions) -> quantile(X, Fractions, #{}).

%% @doc The quantiles over axes at fractions from 0 to 1. Options: `axes', one or a list, all of them unless given;
%% `keep_axes', `true' to keep them with size 1; `method', how a value between two elements is made: `linear' unless given,
%% `lower', `higher', `nearest' or `midpoint'. One fraction gives one value for the axes; of a list or a tensor of
%% fractions the results are along a new first axis. The type is a float's, but `lower', `higher' and `nearest' keep the
%% operand's. NaN where there is one, and where there are no elements; where the result would be of integers, no elements raise an error.
%% ```
%% 1> X = tessera:tensor([[1, 2, 3, 4], [5, 6, 7, 8]]).
%% 2> tessera:to_list(tessera:quantile(X, 0.5, #{axes => [1], method => lower})).
%% [2,6]
%% '''
-spec quantile(operand(), number() | [number()] | tensor(), quantile_options()) -> tensor().
quantile(X, Fractions, Options) -> tessera_order:quantile(X, Fractions, Options).

%% @doc The most frequent element; of several the smallest. No elements raise an error.
%% ```
%% 1> tessera:to_number(tessera:mode(tessera:tensor([2, 3, 1, 3, 2]))).
%% 2
%% '''
-spec mode(operand()) -> tensor().
mode(X) -> mode(X, #{}).

%% @doc The most frequent element, over axes; of several the smallest. Options: `axes', one or a list, all of them unless
%% given; `keep_axes', `true' to keep them with size 1. All NaNs count as equal. Empty axes raise an error, unless the result
%% is also empty.
%% ```
%% 1> tessera:to_list(tessera:mode(tessera:tensor([[1, 2, 2], [3, 3, 1]]), #{axes => [1]})).
%% [2,3]
%% '''
-spec mode(operand(), reduce_options()) -> tensor().
mode(X, Options) -> tessera_order:mode(X, Options).

%% @doc The different elements, in ascending order. How many there are depends on the contents, so that a traced function
%% cannot call it: {@link unique/2} takes their number. All NaNs are one.
%% ```
%% 1> tessera:to_list(tessera:unique(tessera:tensor([[3, 1], [3, 2]]))).
%% [1,2,3]
%% '''
-spec unique(tensor()) -> tensor().
unique(Tensor) -> unique(Tensor, #{}).

%% @doc The different elements, in ascending order. Options: `size', the number of elements of the result (with it the
%% function works in traced functions); of more different ones the smallest are there, for less the largest is repeated;
%% `fill', a number that stands in the place of the repeated ones.
%% ```
%% 1> tessera:to_list(tessera:unique(tessera:tensor([3, 1, 3]), #{size => 4, fill => -1})).
%% [1,3,-1,-1]
%% '''
-spec unique(tensor(), unique_options()) -> tensor().
unique(Tensor, Options) -> tessera_order:unique(Tensor, Options).

%% @doc The indices of all elements that are not 0, in row-major order: a vector for each axis. How many there are depends on the contents,
%% so that a traced function cannot call it: {@link nonzero/2} takes their number.
%% ```
%% 1> [tessera:to_list(I) || I <- tessera:nonzero(tessera:tensor([[0, 5], [7, 0]]))].
%% [[0,1],[1,0]]
%% '''
-spec nonzero(operand()) -> [tensor()].
nonzero(X) -> nonzero(X, #{}).

%% @doc The indices of the elements that are not 0. Options: `size', how many elements are found, the first ones of more, which makes it work
%% in traced functions; `fill', the index that stands where there are less, 0 unless given.
-spec nonzero(operand(), nonzero_options()) -> [tensor()].
nonzero(X, Options) -> tessera_error:within(nonzero, [X, Options], fun() -> tessera_statistics:nonzero(X, Options) end).

%% @doc The indices of all elements that are not 0, a row for each element; {@link nonzero/1} has them as vectors.
%% ```
%% 1> tessera:to_list(tessera:argwhere(tessera:tensor([[0, 5], [7, 0]]))).
%% [[0,1],[1,0]]
%% '''
-spec argwhere(operand()) -> tensor().
argwhere(X) -> argwhere(X, #{}).

%% @doc The indices of the elements that are not 0, a row for each element. Options as of {@link nonzero/2}.
%% ```
%% 1> tessera:to_list(tessera:argwhere(tessera:tensor([0, 5, 7]), #{size => 3, fill => -1})).
%% [[1],[2],[-1]]
%% '''
-spec argwhere(operand(), nonzero_options()) -> tensor().
argwhere(X, Options) -> tessera_error:within(argwhere, [X, Options], fun() -> tessera_statistics:argwhere(X, Options) end).

%% @doc Where each value belongs in a vector in ascending order: before elements that are equal to it.
%% ```
%% 1> tessera:to_list(tessera:searchsorted(tessera:tensor([1, 3, 3, 5]), tessera:tensor([3, 4, 9]))).
%% [1,3,4]
%% '''
-spec searchsorted(operand(), operand()) -> tensor().
searchsorted(Sorted, Values) -> searchsorted(Sorted, Values, #{}).

%% @doc Where each value belongs in a vector in ascending order. Options: `side', `left' of equal elements unless given, or `right'; `type', that of
%% the results. NaN belongs at the end.
%% ```
%% 1> tessera:to_number(tessera:searchsorted(tessera:tensor([1, 3, 3, 5]), 3, #{side => right})).
%% 3
%% '''
-spec searchsorted(operand(), operand(), searchsorted_options()) -> tensor().
searchsorted(Sorted, Values, Options) -> tessera_error:within(searchsorted, [Sorted, Values, Options], fun() -> tessera_statistics:searchsorted(Sorted, Values, Options) end).

%% @doc The number of the bin of each element, of bins between edges in ascending order: 0 before the first edge. A bin has its left edge.
%% ```
%% 1> tessera:to_list(tessera:digitize(tessera:tensor([0.5, 1.0, 9.0]), tessera:tensor([1.0, 2.0]))).
%% [0,1,2]
%% '''
-spec digitize(operand(), operand()) -> tensor().
digitize(X, Edges) -> digitize(X, Edges, #{}).

%% @doc The number of the bin of each element. Options: `right', `true' if a bin has its right edge.
%% ```
%% 1> tessera:to_list(tessera:digitize(tessera:tensor([0.5, 1.0, 9.0]), tessera:tensor([1.0, 2.0]), #{right => true})).
%% [0,0,2]
%% '''
-spec digitize(operand(), operand(), digitize_options()) -> tensor().
digitize(X, Edges, Options) -> tessera_error:within(digitize, [X, Edges, Options], fun() -> tessera_statistics:digitize(X, Edges, Options) end).

%% ---- statistics

%% @doc The mean of all elements.
-spec average(operand()) -> tensor().
average(X) -> average(X, #{}).

%% @doc The mean over axes. Options: `axes', one or a list, all of them unless given; `keep_axes', `true' to keep them with size 1; `weights', one for
%% each element, or for each index of one axis.
%% ```
%% 1> tessera:to_number(tessera:average(tessera:tensor([1, 2]), #{weights => tessera:tensor([3, 1])})).
%% 1.25
%% '''
-spec average(operand(), average_options()) -> tensor().
average(X, Options) -> tessera_error:within(average, [X, Options], fun() -> tessera_statistics:average(X, Options) end).

%% @doc The sum of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_sum(tessera:tensor([1.0, nan, 4.0]))).
%% 5.0
%% '''
-spec nan_sum(operand()) -> tensor().
nan_sum(X) -> nan_sum(X, #{}).

%% @doc The sum of the elements over axes, NaN left out. Options: `axes', one or a list, all of them
%% unless given; `keep_axes', `true' to keep them with size 1.
-spec nan_sum(operand(), reduce_options()) -> tensor().
nan_sum(X, Options) -> tessera_error:within(nan_sum, [X, Options], fun() -> tessera_statistics:nan_reduce(nan_sum, X, Options) end).

%% @doc The product of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_product(tessera:tensor([1.0, nan, 4.0]))).
%% 4.0
%% '''
-spec nan_product(operand()) -> tensor().
nan_product(X) -> nan_product(X, #{}).

%% @doc The product of the elements over axes, NaN left out. Options: `axes', one or a list, all of them
%% unless given; `keep_axes', `true' to keep them with size 1.
-spec nan_product(operand(), reduce_options()) -> tensor().
nan_product(X, Options) -> tessera_error:within(nan_product, [X, Options], fun() -> tessera_statistics:nan_reduce(nan_product, X, Options) end).

%% @doc The largest of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_max(tessera:tensor([1.0, nan, 4.0]))).
%% 4.0
%% '''
-spec nan_max(operand()) -> tensor().
nan_max(X) -> nan_max(X, #{}).

%% @doc The largest of the elements over axes, NaN left out. NaN where all are NaN. Options: `axes', one or a list,
%% all of them unless given; `keep_axes', `true' to keep them with size 1.
-spec nan_max(operand(), reduce_options()) -> tensor().
nan_max(X, Options) -> tessera_error:within(nan_max, [X, Options], fun() -> tessera_statistics:nan_reduce(nan_max, X, Options) end).

%% @doc The smallest of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_min(tessera:tensor([1.0, nan, 4.0]))).
%% 1.0
%% '''
-spec nan_min(operand()) -> tensor().
nan_min(X) -> nan_min(X, #{}).

%% @doc The smallest of the elements over axes, NaN left out. NaN where all are NaN. Options: `axes', one or a list,
%% all of them unless given; `keep_axes', `true' to keep them with size 1.
-spec nan_min(operand(), reduce_options()) -> tensor().
nan_min(X, Options) -> tessera_error:within(nan_min, [X, Options], fun() -> tessera_statistics:nan_reduce(nan_min, X, Options) end).

%% @doc The mean of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_mean(tessera:tensor([1.0, nan, 4.0]))).
%% 2.5
%% '''
-spec nan_mean(operand()) -> tensor().
nan_mean(X) -> nan_mean(X, #{}).

%% @doc The mean of the elements over axes, NaN left out. Options: `axes', one or a list, all of them
%% unless given; `keep_axes', `true' to keep them with size 1.
-spec nan_mean(operand(), reduce_options()) -> tensor().
nan_mean(X, Options) -> tessera_error:within(nan_mean, [X, Options], fun() -> tessera_statistics:nan_mean(X, Options) end).

%% @doc The variance of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_variance(tessera:tensor([1.0, nan, 4.0]))).
%% 2.25
%% '''
-spec nan_variance(operand()) -> tensor().
nan_variance(X) -> nan_variance(X, #{}).

%% @doc The variance of the elements over axes, NaN left out. Options: `axes', one or a list,
%% all of them unless given; `keep_axes', `true' to keep them with size 1; `ddof', what is subtracted from the count, 0 unless given.
-spec nan_variance(operand(), variance_options()) -> tensor().
nan_variance(X, Options) -> tessera_error:within(nan_variance, [X, Options], fun() -> tessera_statistics:nan_variance(X, Options) end).

%% @doc The standard deviation of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_standard_deviation(tessera:tensor([1.0, nan, 4.0]))).
%% 1.5
%% '''
-spec nan_standard_deviation(operand()) -> tensor().
nan_standard_deviation(X) -> nan_standard_deviation(X, #{}).

%% @doc The standard deviation of the elements over axes, NaN left out. Options: `axes', one or a list,
%% all of them unless given; `keep_axes', `true' to keep them with size 1; `ddof', what is subtracted from the count, 0 unless given.
-spec nan_standard_deviation(operand(), variance_options()) -> tensor().
nan_standard_deviation(X, Options) -> tessera_error:within(nan_standard_deviation, [X, Options], fun() -> tessera_statistics:nan_standard_deviation(X, Options) end).

%% @doc The median of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_median(tessera:tensor([1.0, nan, 4.0]))).
%% 2.5
%% '''
-spec nan_median(operand()) -> tensor().
nan_median(X) -> nan_median(X, #{}).

%% @doc The median of the elements over axes, NaN left out. Options: `axes', one or a list, all of them
%% unless given; `keep_axes', `true' to keep them with size 1.
-spec nan_median(operand(), reduce_options()) -> tensor().
nan_median(X, Options) -> tessera_error:within(nan_median, [X, Options], fun() -> tessera_statistics:nan_median(X, Options) end).

%% @doc The quantile of all elements at a fraction from 0 to 1, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_quantile(tessera:tensor([1.0, nan, 4.0]), 0.25)).
%% 1.75
%% '''
-spec nan_quantile(operand(), number()) -> tensor().
nan_quantile(X, Fraction) -> nan_quantile(X, Fraction, #{}).

%% @doc The quantile of the elements over axes at a fraction from 0 to 1, NaN left out. Options: `axes', one or a list, all of them
%% unless given; `keep_axes', `true' to keep them with size 1.
-spec nan_quantile(operand(), number(), reduce_options()) -> tensor().
nan_quantile(X, Fraction, Options) -> tessera_error:within(nan_quantile, [X, Fraction, Options], fun() -> tessera_statistics:nan_quantile(X, Fraction, Options) end).

%% @doc The index of the largest of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_argmax(tessera:tensor([1.0, nan, 4.0]))).
%% 2
%% '''
-spec nan_argmax(operand()) -> tensor().
nan_argmax(X) -> nan_argmax(X, #{}).

%% @doc The index of the largest of the elements over axes, NaN left out. Options as of
%% {@link argmax/2}. The first index where all are NaN.
-spec nan_argmax(operand(), arg_options()) -> tensor().
nan_argmax(X, Options) -> tessera_error:within(nan_argmax, [X, Options], fun() -> tessera_statistics:nan_arg(nan_argmax, X, Options) end).

%% @doc The index of the smallest of all elements, NaN left out.
%% ```
%% 1> tessera:to_number(tessera:nan_argmin(tessera:tensor([1.0, nan, 4.0]))).
%% 0
%% '''
-spec nan_argmin(operand()) -> tensor().
nan_argmin(X) -> nan_argmin(X, #{}).

%% @doc The index of the smallest of the elements over axes, NaN left out. Options as of
%% {@link argmin/2}. The first index where all are NaN.
-spec nan_argmin(operand(), arg_options()) -> tensor().
nan_argmin(X, Options) -> tessera_error:within(nan_argmin, [X, Options], fun() -> tessera_statistics:nan_arg(nan_argmin, X, Options) end).

%% @doc The covariances of the rows of a matrix, whose columns are observations; of a vector its variance. The divisor is one less than the
%% number of observations.
%% ```
%% 1> tessera:to_list(tessera:cov(tessera:tensor([[1, 2, 3], [6, 4, 2]]))).
%% [[1.0,-2.0],[-2.0,4.0]]
%% '''
-spec cov(operand()) -> tensor().
cov(X) -> cov(X, #{}).

%% @doc Covariances. Options: `ddof', what is subtracted from the number of observations, 1 unless given; `rows', `false' if the variables are columns.
-spec cov(operand(), cov_options()) -> tensor().
cov(X, Options) -> tessera_error:within(cov, [X, Options], fun() -> tessera_statistics:cov(X, Options) end).

%% @doc The correlation coefficients of the rows of a matrix, whose columns are observations.
%% ```
%% 1> tessera:to_list(tessera:corrcoef(tessera:tensor([[1, 2, 3], [6, 4, 2]]))).
%% [[1.0,-1.0],[-1.0,1.0]]
%% '''
-spec corrcoef(operand()) -> tensor().
corrcoef(X) -> corrcoef(X, #{}).

%% @doc Correlation coefficients. Options: `rows', `false' if the variables are columns.
-spec corrcoef(operand(), corrcoef_options()) -> tensor().
corrcoef(X, Options) -> tessera_error:within(corrcoef, [X, Options], fun() -> tessera_statistics:corrcoef(X, Options) end).

%% @doc The differences of neighbours along the last axis.
%% ```
%% 1> tessera:to_list(tessera:diff(tessera:tensor([1, 4, 9]))).
%% [3,5]
%% '''
-spec diff(operand()) -> tensor().
diff(X) -> diff(X, #{}).

%% @doc The differences of neighbours along an axis. Options: `axis', the last one unless given; `order', how often they are taken, 1 unless
%% given.
%% ```
%% 1> tessera:to_list(tessera:diff(tessera:tensor([1, 4, 9]), #{order => 2})).
%% [2]
%% '''
-spec diff(operand(), diff_options()) -> tensor().
diff(X, Options) -> tessera_error:within(diff, [X, Options], fun() -> tessera_statistics:diff(X, Options) end).

%% @doc {Counts, Edges}: how many elements are in each bin. Bins are their number, for bins of equal width from the smallest element to the
%% largest, or their edges in ascending order. A bin has its left edge, and the last one its right edge, too.
%% ```
%% 1> {Counts, Edges} = tessera:histogram(tessera:tensor([1, 2, 2, 5]), 2).
%% 2> {tessera:to_list(Counts), tessera:to_list(Edges)}.
%% {[3,1],[1.0,3.0,5.0]}
%% '''
-spec histogram(operand(), pos_integer() | [number()] | tensor()) -> {tensor(), tensor()}.
histogram(X, Bins) -> histogram(X, Bins, #{}).

%% @doc {Counts, Edges}. Options: `range', {Low, High} in the place of the smallest element and the largest; what is outside is not counted;
%% `weights', a tensor like X whose elements are added in the place of counting; `density', `true' to divide so that the integral is 1.
-spec histogram(operand(), pos_integer() | [number()] | tensor(), histogram_options()) -> {tensor(), tensor()}.
histogram(X, Bins, Options) -> tessera_error:within(histogram, [X, Bins, Options], fun() -> tessera_statistics:histogram(X, Bins, Options) end).

%% @doc How often each of the integers 0, 1, ... is there, up to the largest. Its length depends on the contents, so that a traced function
%% cannot call it: {@link bincount/2} takes the length. Negative ones are not counted.
%% ```
%% 1> tessera:to_list(tessera:bincount(tessera:tensor([1, 3, 1]))).
%% [0,2,0,1]
%% '''
-spec bincount(operand()) -> tensor().
bincount(X) -> bincount(X, #{}).

%% @doc How often each of the integers 0, 1, ... is there. Options: `length', how many integers; others are not counted; `weights', a tensor like X
%% whose elements are added in the place of counting.
%% ```
%% 1> tessera:to_list(tessera:bincount(tessera:tensor([1, 3, 1]), #{length => 3})).
%% [0,2,0]
%% '''
-spec bincount(operand(), bincount_options()) -> tensor().
bincount(X, Options) -> tessera_error:within(bincount, [X, Options], fun() -> tessera_statistics:bincount(X, Options) end).

%% @doc The heights at X of the line through points, whose places are in ascending order. Before the first point and after the last one the
%% line is level. Heights may be complex, places not.
%% ```
%% 1> tessera:to_list(tessera:interp(tessera:tensor([0.5, 3.0]), tessera:tensor([0, 1]), tessera:tensor([10, 20]))).
%% [15.0,20.0]
%% '''
-spec interp(operand(), operand(), operand()) -> tensor().
interp(X, Places, Heights) -> interp(X, Places, Heights, #{}).

%% @doc The heights at X of the line through points. Options: `left', the number before the first point; `right', the number after the
%% last one; without them the line is level there.
-spec interp(operand(), operand(), operand(), interp_options()) -> tensor().
interp(X, Places, Heights, Options) -> tessera_error:within(interp, [X, Places, Heights, Options], fun() -> tessera_statistics:interp(X, Places, Heights, Options) end).

%% ---- reductions

%% @doc The sum of all elements, 0 without any. Integers of less than 32 bits are computed as s32 or u32, and u64 as s64;
%% results that are out of range wrap.
-spec sum(operand()) -> tensor().
sum(X) -> tessera_ops:reduce(sum, X, #{}).

%% @doc The sum over axes, 0 of no elements. Options: `axes', one axis or a list, by default all; `keep_axes', `true' to keep these axes
%% with size 1. Integers of less than 32 bits are computed as s32 or u32, and u64 as s64; results that are out of
%% range wrap.
%% ```
%% 1> tessera:to_list(tessera:sum(tessera:iota({2, 3}), #{axes => [1]})).
%% [3,12]
%% '''
-spec sum(operand(), reduce_options()) -> tensor().
sum(X, Options) -> tessera_ops:reduce(sum, X, Options).

%% @doc The product of all elements, 1 without any. Integers of less than 32 bits are computed as s32 or u32, and u64 as s64;
%% results that are out of range wrap.
-spec product(operand()) -> tensor().
product(X) -> tessera_ops:reduce(product, X, #{}).

%% @doc The product over axes, 1 of no elements. Options: `axes', one axis or a list, by default all; `keep_axes', `true' to keep these
%% axes with size 1. Integers of less than 32 bits are computed as s32 or u32, and u64 as s64; results that are out of
%% range wrap.
-spec product(operand(), reduce_options()) -> tensor().
product(X, Options) -> tessera_ops:reduce(product, X, Options).

%% @doc The largest element; NaN if any element is NaN. Of no elements it is what {@link max/2} leaves unchanged: `neg_infinity', or
%% the smallest integer of the type. NumPy raises an error there.
-spec reduce_max(operand()) -> tensor().
reduce_max(X) -> tessera_ops:reduce(reduce_max, X, #{}).

%% @doc The largest element over axes; NaN if any of them is NaN. Options: `axes', one axis or a list, by default all;
%% `keep_axes', `true' to keep these axes with size 1. Of no elements it is as {@link reduce_max/1} says.
-spec reduce_max(operand(), reduce_options()) -> tensor().
reduce_max(X, Options) -> tessera_ops:reduce(reduce_max, X, Options).

%% @doc The smallest element; NaN if any element is NaN. Of no elements it is what {@link min/2} leaves unchanged: `infinity', or
%% the largest integer of the type. NumPy raises an error there.
-spec reduce_min(operand()) -> tensor().
reduce_min(X) -> tessera_ops:reduce(reduce_min, X, #{}).

%% @doc The smallest element over axes; NaN if any of them is NaN. Options: `axes', one axis or a list, by default
%% all; `keep_axes', `true' to keep these axes with size 1. Of no elements it is as {@link reduce_min/1} says.
-spec reduce_min(operand(), reduce_options()) -> tensor().
reduce_min(X, Options) -> tessera_ops:reduce(reduce_min, X, Options).

%% @doc 1 if no element is 0, as where there is none, else 0: u8.
-spec all(operand()) -> tensor().
all(X) -> tessera_ops:reduce(all, X, #{}).

%% @doc 1 where no element over the axes is 0, as where there is none, else 0: u8. Options: `axes', one axis or a list, by default all;
%% `keep_axes', `true' to keep these axes with size 1.
-spec all(operand(), reduce_options()) -> tensor().
all(X, Options) -> tessera_ops:reduce(all, X, Options).

%% @doc 1 if an element is not 0, else, as where there is none, 0: u8.
-spec any(operand()) -> tensor().
any(X) -> tessera_ops:reduce(any, X, #{}).

%% @doc 1 where an element over the axes is not 0, else, as where there is none, 0: u8. Options: `axes', one axis or a list, by default all;
%% `keep_axes', `true' to keep these axes with size 1.
-spec any(operand(), reduce_options()) -> tensor().
any(X, Options) -> tessera_ops:reduce(any, X, Options).

%% @doc The mean of all elements, in a float type; NaN without any.
%% ```
%% 1> tessera:to_number(tessera:mean(tessera:tensor([1, 2, 3, 4]))).
%% 2.5
%% '''
-spec mean(operand()) -> tensor().
mean(X) -> tessera_ops:mean(X, #{}).

%% @doc The mean over axes, in a float type. Options: `axes', one axis or a list, by default all; `keep_axes', `true'
%% to keep these axes with size 1. Of no elements it is NaN.
-spec mean(operand(), reduce_options()) -> tensor().
mean(X, Options) -> tessera_ops:mean(X, Options).

%% @doc The variance of all elements, in a float type. For complex numbers it is the mean of |X - mean|^2, a real number, as in
%% NumPy.
-spec variance(operand()) -> tensor().
variance(X) -> tessera_ops:variance(X, #{}).

%% @doc The variance over axes, in a float type. Options: `axes', one axis or a list, by default all; `keep_axes',
%% `true' to keep these axes with size 1. `ddof' is subtracted from the count in the divisor; where nothing is left,
%% the result is NaN or an infinity. For complex numbers it is the mean of |X - mean|^2, a real number, as in NumPy; `Nx.variance' does
%% not take the absolute value.
%% ```
%% 1> tessera:to_number(tessera:variance(tessera:tensor([1, 2, 3]), #{ddof => 1})).
%% 1.0
%% '''
-spec variance(operand(), variance_options()) -> tensor().
variance(X, Options) -> tessera_ops:variance(X, Options).

%% @doc The standard deviation of all elements, in a float type.
-spec standard_deviation(operand()) -> tensor().
standard_deviation(X) -> standard_deviation(X, #{}).

%% @doc The standard deviation over axes, in a float type. {@link variance/2} lists the options.
-spec standard_deviation(operand(), variance_options()) -> tensor().
standard_deviation(X, Options) -> tessera_ops:standard_deviation(X, Options).

%% @doc The row-major index of the largest element, of equal ones the first: s32. NaN counts as the largest. No elements raise an
%% error, as in NumPy.
-spec argmax(operand()) -> tensor().
argmax(X) -> tessera_ops:arg(argmax, X, #{}).

%% @doc The index of the largest element along an axis. NaN counts as the largest. Options: `axis', by default `all',
%% for the row-major index; `keep_axis'; `tie_break', `low' or `high', for the first or last of equal elements;
%% `type', which must hold the last index, by default `s32', or `s64' if need be. An empty axis raises an error, unless the result is also empty.
%% ```
%% 1> tessera:to_list(tessera:argmax(tessera:tensor([[1, 5, 5], [7, 2, 3]]), #{axis => 1, tie_break => high})).
%% [2,0]
%% '''
-spec argmax(operand(), arg_options()) -> tensor().
argmax(X, Options) -> tessera_ops:arg(argmax, X, Options).

%% @doc The row-major index of the smallest element, of equal ones the first: s32. NaN counts as the smallest. No elements raise an
%% error, as in NumPy.
-spec argmin(operand()) -> tensor().
argmin(X) -> tessera_ops:arg(argmin, X, #{}).

%% @doc The index of the smallest element along an axis. NaN counts as the smallest. {@link argmax/2} lists the
%% options.
-spec argmin(operand(), arg_options()) -> tensor().
argmin(X, Options) -> tessera_ops:arg(argmin, X, Options).

%% @doc Folds all elements, in row-major order, starting with Initial: `F(Element, Accumulator)' returns the next
%% accumulator.
-spec reduce(tensor(), operand(), fun((tensor(), tensor()) -> operand())) -> tensor().
reduce(X, Initial, F) -> reduce(X, Initial, F, #{}).

%% @doc Folds the elements over axes, in row-major order, starting with Initial: `F(Element, Accumulator)' returns the
%% next accumulator. Options: `axes', one axis or a list, by default all; `keep_axes', `true' to keep these axes with
%% size 1.
%% ```
%% 1> tessera:to_list(tessera:reduce(tessera:tensor([[1, 2], [3, 4]]), 10, fun tessera:add/2, #{axes => [0]})).
%% [14,16]
%% '''
-spec reduce(tensor(), operand(), fun((tensor(), tensor()) -> operand()), reduce_options()) -> tensor().
reduce(X, Initial, F, Options) -> tessera_ops:fold(X, Initial, F, Options).

%% @doc For each element, the sum of it and all elements before it along the first axis. Integers of less than 32 bits
%% are computed as s32 or u32; results that are out of range wrap.
-spec cumulative_sum(operand()) -> tensor().
cumulative_sum(X) -> cumulative_sum(X, #{}).

%% @doc For each element, the sum of it and all elements before it along an axis. Integers of less than 32 bits are
%% computed as s32 or u32; results that are out of range wrap. Options: `axis', by default the first; `reverse',
%% `true' to begin at the end.
%% ```
%% 1> tessera:to_list(tessera:cumulative_sum(tessera:tensor([1, 2, 3]), #{reverse => true})).
%% [6,5,3]
%% '''
-spec cumulative_sum(operand(), cumulative_options()) -> tensor().
cumulative_sum(X, Options) -> tessera_ops:cumulative(cumulative_sum, X, Options).

%% @doc For each element, the product of it and all elements before it along the first axis. Integers of less than 32
%% bits are computed as s32 or u32; results that are out of range wrap.
-spec cumulative_product(operand()) -> tensor().
cumulative_product(X) -> cumulative_product(X, #{}).

%% @doc For each element, the product of it and all elements before it along an axis. Integers of less than 32 bits
%% are computed as s32 or u32; results that are out of range wrap. {@link cumulative_sum/2} lists the options.
-spec cumulative_product(operand(), cumulative_options()) -> tensor().
cumulative_product(X, Options) -> tessera_ops:cumulative(cumulative_product, X, Options).

%% @doc For each element, the smallest of it and all elements before it along the first axis.
-spec cumulative_min(operand()) -> tensor().
cumulative_min(X) -> cumulative_min(X, #{}).

%% @doc For each element, the smallest of it and all elements before it along an axis. {@link cumulative_sum/2} lists
%% the options. Of equal elements the first has the gradient.
-spec cumulative_min(operand(), cumulative_options()) -> tensor().
cumulative_min(X, Options) -> tessera_ops:cumulative(cumulative_min, X, Options).

%% @doc For each element, the largest of it and all elements before it along the first axis.
-spec cumulative_max(operand()) -> tensor().
cumulative_max(X) -> cumulative_max(X, #{}).

%% @doc For each element, the largest of it and all elements before it along an axis. {@link cumulative_sum/2} lists
%% the options. Of equal elements the first has the gradient.
-spec cumulative_max(operand(), cumulative_options()) -> tensor().
cumulative_max(X, Options) -> tessera_ops:cumulative(cumulative_max, X, Options).

%% @doc The convolution by a kernel that slides by one element, without padding.
-spec conv(operand(), operand()) -> tensor().
conv(X, Kernel) -> conv(X, Kernel, #{}).

%% @doc The convolution of a batch, as in neural networks: for each position of the kernel, the sum of the products of its
%% elements and the elements of `X' under it. `X' has the axes batch, spatial ones, channels; the kernel the spatial ones,
%% channels, features; the result batch, the spatial ones, features. Integers are taken as f32; f16 and bf16 are computed in f32.
%% The products are added in the order of the kernel's places, then of channels.
%%
%% Options:
%% <ul>
%% <li>`strides', `input_dilation', `kernel_dilation': a number for each spatial axis, or one for all, 1 unless given</li>
%% <li>`padding': `valid' (none; unless given), `same', or `{Low, High}' for each spatial axis, which may be negative</li>
%% <li>`feature_groups': into how many groups channels and features are cut; a feature sees its group's channels. With as
%% many groups as channels it is depthwise.</li>
%% <li>`batch_groups': into how many groups the batch and the features are cut; a feature sees its group of the batch</li>
%% <li>`layout': `channels_last' (unless given), `channels_first' (then the kernel has features, channels, spatial axes), or
%% `{Input, Kernel, Output}', lists of the axes that are batch, channels and the spatial ones in `X' and the result, and
%% features, channels and the spatial ones in the kernel</li>
%% </ul>
%% ```
%% 1> X = tessera:iota({1, 3, 3, 1}, f32).
%% 2> Kernel = tessera:ones({2, 2, 1, 1}).
%% 3> tessera:to_list(tessera:flatten(tessera:conv(X, Kernel))).
%% [8.0,12.0,20.0,24.0]
%% 4> tessera:shape(tessera:conv(X, Kernel, #{padding => same, strides => 2})).
%% {1,2,2,1}
%% '''
-spec conv(operand(), operand(), conv_options()) -> tensor().
conv(X, Kernel, Options) -> tessera_conv:conv(X, Kernel, Options).

%% @doc The sums over windows that slide by one element, without padding.
-spec window_sum(operand(), window()) -> tensor().
window_sum(X, Window) -> window_sum(X, Window, #{}).

%% @doc The sums over windows. `Window' has the window's size along each axis, or one for all.
%%
%% Options: `strides', the distance of a window from the previous one; `dilation', how far its elements are from each other:
%% a number for each axis, or one for all, 1 unless given. `padding': `valid' (none; unless given), `same' (so that there
%% are as many windows as strides fit into the axis), or `{Low, High}' for each axis, which may be negative. Positions
%% outside of the tensor take no part. The type is the type of {@link sum/2}, but u64 stays; the elements of a window are
%% added in their order, f16 and bf16 in f32.
%% ```
%% 1> tessera:to_list(tessera:window_sum(tessera:tensor([1, 2, 3, 4]), {2}, #{strides => 2})).
%% [3,7]
%% 2> tessera:to_list(tessera:window_sum(tessera:tensor([1, 2, 3, 4]), {3}, #{padding => same})).
%% [3,6,9,7]
%% '''
-spec window_sum(operand(), window(), window_options()) -> tensor().
window_sum(X, Window, Options) -> tessera_windows:fold(window_sum, X, Window, Options).

%% @doc The products over windows that slide by one element, without padding.
-spec window_product(operand(), window()) -> tensor().
window_product(X, Window) -> window_product(X, Window, #{}).

%% @doc The products over windows. Options and type as for {@link window_sum/3}.
-spec window_product(operand(), window(), window_options()) -> tensor().
window_product(X, Window, Options) -> tessera_windows:fold(window_product, X, Window, Options).

%% @doc The largest elements of windows that slide by one element, without padding.
-spec window_max(operand(), window()) -> tensor().
window_max(X, Window) -> window_max(X, Window, #{}).

%% @doc The largest elements of windows; NaN where a window has one. Options as for {@link window_sum/3}. Of equal elements
%% the last has the gradient. A window that has no element gives the type's lowest value.
%% ```
%% 1> X = tessera:tensor([[1, 5, 2, 0], [3, 4, 7, 6]]).
%% 2> tessera:to_list(tessera:window_max(X, {2, 2}, #{strides => 2})).
%% [[5,7]]
%% '''
-spec window_max(operand(), window(), window_options()) -> tensor().
window_max(X, Window, Options) -> tessera_windows:fold(window_max, X, Window, Options).

%% @doc The smallest elements of windows that slide by one element, without padding.
-spec window_min(operand(), window()) -> tensor().
window_min(X, Window) -> window_min(X, Window, #{}).

%% @doc The smallest elements of windows, otherwise as {@link window_max/3}.
-spec window_min(operand(), window(), window_options()) -> tensor().
window_min(X, Window, Options) -> tessera_windows:fold(window_min, X, Window, Options).

%% @doc The means over windows that slide by one element, without padding.
-spec window_mean(operand(), window()) -> tensor().
window_mean(X, Window) -> window_mean(X, Window, #{}).

%% @doc The sums over windows, divided by the number of a window's places, also where some are outside of the tensor.
%% Options as for {@link window_sum/3}.
%% ```
%% 1> tessera:to_list(tessera:window_mean(tessera:tensor([1, 2, 3, 4]), {2})).
%% [1.5,2.5,3.5]
%% '''
-spec window_mean(operand(), window(), window_options()) -> tensor().
window_mean(X, Window, Options) -> tessera_windows:mean(X, Window, Options).

%% @doc Folds windows that slide by one element, without padding, by a function of an element and the result so far.
-spec window_reduce(tensor(), operand(), window(), fun((tensor(), tensor()) -> operand())) -> tensor().
window_reduce(X, Initial, Window, F) -> window_reduce(X, Initial, Window, F, #{}).

%% @doc Folds windows from the left, beginning with the initial value, by a function of an element and the result so far, as
%% {@link reduce/4} does. Options as for {@link window_sum/3}; outside of the tensor is the initial value. It takes as much
%% memory as all windows have elements: {@link window_sum/3} and its kin do not.
%% ```
%% 1> F = fun(X, Acc) -> tessera:add(tessera:multiply(Acc, 10), X) end.
%% 2> tessera:to_list(tessera:window_reduce(tessera:tensor([1, 2, 3]), 0, {2}, F)).
%% [12,23]
%% '''
-spec window_reduce(tensor(), operand(), window(), fun((tensor(), tensor()) -> operand()), window_options()) -> tensor().
window_reduce(X, Initial, Window, F, Options) -> tessera_windows:reduce(X, Initial, Window, F, Options).

%% @doc {@link window_scatter_max/5} for windows that slide by one element, without padding.
-spec window_scatter_max(operand(), operand(), operand(), window()) -> tensor().
window_scatter_max(X, Source, Initial, Window) -> window_scatter_max(X, Source, Initial, Window, #{}).

%% @doc A tensor of the shape of `X', filled with the initial value. Each element of the source is added at the position of the
%% largest element of its window of `X', the last of equals. Options: `strides' and `padding', as for {@link window_sum/3}; the
%% source has an element for each window.
%% ```
%% 1> X = tessera:tensor([1, 5, 2, 7]).
%% 2> tessera:to_list(tessera:window_scatter_max(X, tessera:tensor([10, 20]), 0, {2}, #{strides => 2})).
%% [0,10,0,20]
%% '''
-spec window_scatter_max(operand(), operand(), operand(), window(), window_scatter_options()) -> tensor().
window_scatter_max(X, Source, Initial, Window, Options) ->
    tessera_windows:scatter(window_scatter_max, X, Source, Initial, Window, Options).

%% @doc {@link window_scatter_min/5} for windows that slide by one element, without padding.
-spec window_scatter_min(operand(), operand(), operand(), window()) -> tensor().
window_scatter_min(X, Source, Initial, Window) -> window_scatter_min(X, Source, Initial, Window, #{}).

%% @doc A tensor of the shape of `X', filled with the initial value. Each element of the source is added at the position of the
%% smallest element of its window of `X', the last of equals. Options as for {@link window_scatter_max/5}.
-spec window_scatter_min(operand(), operand(), operand(), window(), window_scatter_options()) -> tensor().
window_scatter_min(X, Source, Initial, Window, Options) ->
    tessera_windows:scatter(window_scatter_min, X, Source, Initial, Window, Options).

%% @doc The logarithm of the sum of the exponentials of all elements, computed without overflow. Without elements it is
%% `neg_infinity'.
-spec logsumexp(operand()) -> tensor().
logsumexp(X) -> tessera_ops:logsumexp(X, #{}).

%% @doc The logarithm of the sum of the exponentials over axes, computed without overflow. Options: `axes', one axis
%% or a list, by default all; `keep_axes', `true' to keep these axes with size 1. Of no elements it is `neg_infinity'.
-spec logsumexp(operand(), reduce_options()) -> tensor().
logsumexp(X, Options) -> tessera_ops:logsumexp(X, Options).

%% @doc The exponentials of X divided by their sum along the last axis.
%% ```
%% 1> tessera:to_list(tessera:softmax(tessera:tensor([0, 0]))).
%% [0.5,0.5]
%% '''
-spec softmax(operand()) -> tensor().
softmax(X) -> tessera_ops:softmax(X, #{}).

%% @doc The exponentials of X divided by their sum over axes. Options: `axes', one axis or a list, by default the last
%% axis.
-spec softmax(operand(), axes_options()) -> tensor().
softmax(X, Options) -> tessera_ops:softmax(X, Options).

%% @doc The logarithm of {@link softmax/1}, along the last axis, computed without overflow.
-spec log_softmax(operand()) -> tensor().
log_softmax(X) -> tessera_ops:log_softmax(X, #{}).

%% @doc The logarithm of {@link softmax/2} over axes, computed without overflow. Options: `axes', one axis or a list,
%% by default the last axis.
-spec log_softmax(operand(), axes_options()) -> tensor().
log_softmax(X, Options) -> tessera_ops:log_softmax(X, Options).

%% @equiv quantize(W, #{})
-spec quantize(tensor()) -> quantized().
quantize(W) -> tessera_quantize:quantize(W, #{}).

%% @doc The matrix W as a quantised weight: numbers of few bits, with a scale for each group of neighbouring numbers of a column. It is
%% multiplied with by {@link dot/2}, which unpacks it in registers, and is a map: an argument and a result of compiled functions, saved
%% by {@link tessera_io:save/2}. Options:
%%
%% <dl>
%% <dt>`bits'</dt><dd>8, or 4</dd>
%% <dt>`group'</dt><dd>the numbers that share a scale, a multiple of 8; by default 32</dd>
%% <dt>`form'</dt><dd>of a weight with the number q: `scale', (q - 2^(bits - 1)) s; `zero', (q - z) s; `minimum', q s - m</dd>
%% <dt>`axis'</dt><dd>the axis that products sum over: 0, or 1 for a matrix whose rows are the columns of the weight</dd>
%% <dt>`scales'</dt><dd>their type: f32, bf16 or f16</dd>
%% </dl>
%% A weight beyond the range of its form and scales becomes the last one that they have there; so does an infinite one. A group with a NaN is
%% NaN.
%% ```
%% 1> W = tessera:tensor([[1.0, -4.0], [0.5, 2.0], [-0.25, 8.0]]).
%% 2> Q = tessera:quantize(W, #{bits => 4, scales => f16}).
%% 3> tessera:to_list(tessera:dequantize(Q)).
%% [[1.0,-4.0],[0.5,2.0],[-0.25,8.0]]
%% 4> tessera:to_list(tessera:dot(tessera:tensor([1.0, 2.0, 4.0]), Q)).
%% [1.0,32.0]
%% '''
-spec quantize(tensor(), quantize_options()) -> quantized().
quantize(W, Options) -> tessera_quantize:quantize(W, Options).

%% @equiv dequantize(Q, f32)
-spec dequantize(quantized()) -> tensor().
dequantize(Q) -> tessera_quantize:dequantize(Q, f32).

%% @doc The matrix that a quantised weight stands for, in a type of floats. `dot(X, Q)' has the bits of `dot(X, dequantize(Q, Type))' for
%% an X of f32, bf16 or f16.
-spec dequantize(quantized(), type()) -> tensor().
dequantize(Q, Type) -> tessera_quantize:dequantize(Q, Type).

%% @doc The product of vectors and matrices: the sum of products over the last axis of A and the last but one axis of
%% B (the only axis, if B is a vector). B may be a weight of {@link quantize/2}.
%% ```
%% 1> tessera:to_list(tessera:dot(tessera:tensor([[1, 2], [3, 4]]), tessera:tensor([1, 1]))).
%% [3,7]
%% '''
-spec dot(operand(), operand() | quantized()) -> tensor().
dot(A, #{quantized := _} = Weight) -> tessera_quantize:dot(A, Weight);
dot(A, B) -> tessera_ops:dot(A, B).

%% @doc The sum of products of A and B over pairs of axes, for each index of the batch axes. Options: `axes', `{AxesOfA, AxesOfB}', by
%% default the axes of {@link dot/2} among the axes outside the batch; `batch_axes', `{AxesOfA, AxesOfB}', none unless given. The result
%% has the batch axes, then the other axes of A, then of B.
%% ```
%% 1> A = tessera:iota({2, 1, 2}).
%% 2> tessera:to_list(tessera:dot(A, A, #{axes => {[2], [2]}, batch_axes => {[0], [0]}})).
%% [[[1]],[[13]]]
%% 3> tessera:shape(tessera:dot(tessera:ones({5, 2, 3}), tessera:ones({5, 3, 4}), #{batch_axes => {0, 0}})).
%% {5,2,4}
%% '''
-spec dot(operand(), operand(), dot_options()) -> tensor().
dot(A, B, Options) -> tessera_ops:dot(A, B, Options).

%% @doc The sum of products of A and B over pairs of axes, from AxesA and AxesB: a short cut for {@link dot/3}. The result has the
%% other axes of A, then of B.
-spec dot(tensor(), axes(), tensor(), axes()) -> tensor().
dot(A, AxesA, B, AxesB) -> tessera_ops:dot(A, AxesA, B, AxesB).

%% @doc The sum of products of A and B over pairs of axes, for each index of the batch axes: `dot(A, AxesA, BatchA, B,
%% AxesB, BatchB)', a short cut for {@link dot/3}. The result has the batch axes, then the other axes of A, then of B.
%% ```
%% 1> A = tessera:iota({2, 1, 2}).
%% 2> tessera:to_list(tessera:dot(A, [2], [0], A, [2], [0])).
%% [[[1]],[[13]]]
%% '''
-spec dot(tensor(), axes(), axes(), tensor(), axes(), axes()) -> tensor().
dot(A, AxesA, BatchA, B, AxesB, BatchB) -> tessera_ops:dot(A, AxesA, BatchA, B, AxesB, BatchB).

%% @doc The matrix product as NumPy has it: of the last two axes, for each index of the axes before them, which stretch as those of an
%% addition. A vector is a row on the left and a column on the right. {@link dot/2} has the axes of both operands in its result.
%% ```
%% 1> tessera:shape(tessera:matmul(tessera:ones({5, 1, 2, 3}), tessera:ones({4, 3, 2}))).
%% {5,4,2,2}
%% '''
-spec matmul(operand(), operand()) -> tensor().
matmul(A, B) -> tessera_error:within(matmul, [A, B], fun() -> tessera_einsum:matmul(A, B) end).

%% @doc A product of tensors, written with a letter for each axis (A. Einstein's convention, as NumPy writes it). The letters before `->'
%% are the axes of the operands, the letters after it the axes of the result. Axes with one letter have one index. Axes that are not in the result are
%% summed. Without `->' the result has the letters that stand once, in alphabetic order. `...' stands for any axes. Products of several
%% operands are done in the order with the fewest multiplications.
%% ```
%% 1> A = tessera:tensor([[1, 2], [3, 4]]).
%% 2> tessera:to_list(tessera:einsum("ij,jk->ik", [A, A])).
%% [[7,10],[15,22]]
%% 3> tessera:to_number(tessera:einsum("ii", [A])).
%% 5
%% 4> tessera:to_list(tessera:einsum("...j->...", [A])).
%% [3,7]
%% '''
-spec einsum(iodata(), [operand()]) -> tensor().
einsum(Text, Operands) -> tessera_error:within(einsum, [Text, Operands], fun() -> tessera_einsum:einsum(Text, Operands) end).

%% @doc The product of L. Kronecker: B times each element of A, side by side.
%% ```
%% 1> tessera:to_list(tessera:kron(tessera:tensor([1, 10]), tessera:tensor([1, 2, 3]))).
%% [1,2,3,10,20,30]
%% '''
-spec kron(operand(), operand()) -> tensor().
kron(A, B) -> tessera_error:within(kron, [A, B], fun() -> tessera_einsum:kron(A, B) end).

%% @doc The cross product of vectors of three elements in the last axis.
%% ```
%% 1> tessera:to_list(tessera:cross(tessera:tensor([1, 0, 0]), tessera:tensor([0, 1, 0]))).
%% [0,0,1]
%% '''
-spec cross(operand(), operand()) -> tensor().
cross(A, B) -> cross(A, B, #{}).

%% @doc The cross product of vectors of three elements. Options: `axis', the last one of both operands unless given.
-spec cross(operand(), operand(), axis_options()) -> tensor().
cross(A, B, Options) -> tessera_error:within(cross, [A, B, Options], fun() -> tessera_einsum:cross(A, B, Options) end).

%% @doc The products of every element of A with every element of B, as a matrix.
-spec outer(operand(), operand()) -> tensor().
outer(A, B) -> tessera_ops:outer(A, B).

%% ---- linear algebra

%% @doc The lower triangular `L' of positive semidefinite matrices `A = L L\'' in the last two axes; zeros are above. Of `A' the
%% lower triangle is read. The factor of a matrix that is not positive semidefinite is NaN on and below its diagonal; others of the
%% batch are not touched by it. Integers give `f32'; `f16' and `bf16' are computed in `f32'. Of complex matrices `L\'' is the
%% adjoint, and of the diagonal of `A' the real parts are read. The gradient is symmetric, as the matrices are.
%% ```
%% 1> tessera:to_list(tessera:cholesky(tessera:tensor([[4, 12], [12, 37]]))).
%% [[2.0,0.0],[6.0,1.0]]
%% '''
-spec cholesky(tensor()) -> tensor().
cholesky(A) -> tessera_linalg:cholesky(A).

%% @doc The `X' of `A X = B' for lower triangular matrices `A', as {@link triangular_solve/3} without options.
%% ```
%% 1> tessera:to_list(tessera:triangular_solve(tessera:tensor([[2, 0], [4, 8]]), tessera:tensor([2, 12]))).
%% [1.0,1.0]
%% '''
-spec triangular_solve(tensor(), tensor()) -> tensor().
triangular_solve(A, B) -> triangular_solve(A, B, #{}).

%% @doc The `X' of `A X = B' for triangular matrices `A' in the last two axes. `B' has as many rows, or is a vector; axes before are broadcast.
%% Options, true or false: `lower' (true), whether `A' is lower triangular: the other triangle is not read; `left_side' (true), else the `X' of `X A =
%% B'; `transpose' (false), for the transpose of `A', or `conjugate' for its adjoint; `unit_diagonal' (false), to take ones for the diagonal, and not
%% read it. A zero on the diagonal gives infinities and NaNs. Integers give `f32'; `f16' and `bf16' are computed in `f32'.
%% ```
%% 1> U = tessera:tensor([[2, 4], [0, 8]]).
%% 2> tessera:to_list(tessera:triangular_solve(U, tessera:tensor([[6], [8]]), #{lower => false})).
%% [[1.0],[1.0]]
%% 3> tessera:to_list(tessera:triangular_solve(U, tessera:tensor([2, 12]), #{lower => false, left_side => false})).
%% [1.0,1.0]
%% '''
-spec triangular_solve(tensor(), tensor(), triangular_solve_options()) -> tensor().
triangular_solve(A, B, Options) -> tessera_linalg:triangular_solve(A, B, Options).

%% @doc The `X' of `A X = B' for square matrices `A' in the last two axes. `B' has as many rows, or is a vector; axes before
%% are broadcast. By LU factors with partial pivoting: a singular matrix gives infinities and NaNs. Integers give `f32'; `f16'
%% and `bf16' are computed in `f32'.
%% ```
%% 1> tessera:to_list(tessera:solve(tessera:tensor([[0, 2], [1, 1]]), tessera:tensor([4, 3]))).
%% [1.0,2.0]
%% '''
-spec solve(tensor(), tensor()) -> tensor().
solve(A, B) -> tessera_linalg:solve(A, B).

%% @doc The inverses of square matrices in the last two axes; of singular ones infinities and NaNs. To multiply by an
%% inverse, {@link solve/2} takes less time and is more exact.
%% ```
%% 1> tessera:to_list(tessera:inverse(tessera:tensor([[0, 2], [1, 0]]))).
%% [[0.0,1.0],[0.5,0.0]]
%% '''
-spec inverse(tensor()) -> tensor().
inverse(A) -> tessera_linalg:inverse(A).

%% @doc The determinants of square matrices in the last two axes. The gradient is the matrix of cofactors, also of singular matrices;
%% these take longer from four rows on. So is the gradient of that gradient; the next ones of a matrix of four rows and more need a
%% matrix that is not singular.
%% ```
%% 1> tessera:to_list(tessera:determinant(tessera:tensor([[0, 2], [1, 1]]))).
%% -2.0
%% '''
-spec determinant(tensor()) -> tensor().
determinant(A) -> tessera_linalg:determinant(A).

%% @doc `{P, L, U}' of square matrices `A = P L U' in the last two axes: `P' has a one in each row and column, `L' is lower
%% triangular with ones on its diagonal, `U' upper triangular. Rows are exchanged for the first element of largest size in a
%% column. Of a singular matrix `U' has a zero on its diagonal. Integers give `f32'; `f16' and `bf16' are computed in `f32'.
%% To solve a system, {@link solve/2} takes less time.
%% ```
%% 1> {P, L, U} = tessera:lu(tessera:tensor([[1, 2], [4, 4]])).
%% 2> [tessera:to_list(T) || T <- [P, L, U]].
%% [[[0.0,1.0],[1.0,0.0]],[[1.0,0.0],[0.25,1.0]],[[4.0,4.0],[0.0,1.0]]]
%% '''
-spec lu(tensor()) -> {tensor(), tensor(), tensor()}.
lu(A) -> tessera_linalg:lu(A).

%% @doc `{Q, R}' of matrices `A = Q R', as {@link qr/2} without options.
%% ```
%% 1> {Q, R} = tessera:qr(tessera:tensor([[3, 1], [4, 3]])).
%% 2> {tessera:shape(Q), tessera:shape(R)}.
%% {{2,2},{2,2}}
%% '''
-spec qr(tensor()) -> {tensor(), tensor()}.
qr(A) -> qr(A, #{}).

%% @doc `{Q, R}' of matrices `A = Q R' in the last two axes: the columns of `Q' are orthonormal, `R' is upper triangular. Of m x n
%% matrices `Q' has k = min(m, n) columns and `R' k rows; with the option `full => true' m. By Householder reflections: one makes an
%% element of the diagonal of `R' positive. A column that the reflections before have left with nothing below the diagonal is not
%% reflected and keeps its sign there; so does the last one unless m is greater than n. NaN or infinity in a matrix makes its results
%% NaN. Integers give `f32'; `f16' and `bf16' are computed in `f32'. For complex matrices the diagonal of `R' has the phases of
%% Householder's reflections, and only functions that do not depend on these phases have gradients. There is no gradient with `full =>
%% true' if m is greater than n.
%% ```
%% 1> {Q, R} = tessera:qr(tessera:tensor([[3, 1], [4, 3], [0, 2]]), #{full => true}).
%% 2> {tessera:shape(Q), tessera:shape(R)}.
%% {{3,3},{3,2}}
%% '''
-spec qr(tensor(), factor_options()) -> {tensor(), tensor()}.
qr(A, Options) -> tessera_linalg:qr(A, Options).

%% @doc `{Values, Vectors}' of symmetric matrices in the last two axes. Only the lower triangle is read. The eigenvalues are in
%% descending order of size, and the eigenvectors are the columns of a matrix; their elements of largest size are positive. NaN or
%% infinity in this triangle makes the results NaN. Integers give `f32'; `f16' and `bf16' are computed in `f32'. Of complex Hermitian
%% matrices the real parts of the diagonal are read, and the eigenvalues are complex numbers without imaginary parts. The gradient
%% is symmetric; it is not finite where two eigenvalues are equal and the function depends on their vectors. With complex vectors
%% the gradient is right for functions that do not depend on their phases.
%% ```
%% 1> {Values, Vectors} = tessera:eigh(tessera:tensor([[1, 0], [0, -3]])).
%% 2> [tessera:to_list(T) || T <- [Values, Vectors]].
%% [[-3.0,1.0],[[0.0,1.0],[1.0,0.0]]]
%% '''
-spec eigh(tensor()) -> {tensor(), tensor()}.
eigh(A) -> tessera_linalg:eigh(A).

%% @doc `{Values, Vectors}' of pairs of symmetric or Hermitian matrices, A v = w B v. B is positive definite; where it is not, the results are
%% NaN. Only the lower triangles are read, and of a complex diagonal the real parts. The values are in descending order of size, and
%% the columns v of the vectors have v' B v = 1.
%% ```
%% 1> {Values, _} = tessera:eigh(tessera:tensor([[2.0, 0.0], [0.0, 3.0]]), tessera:tensor([[1.0, 0.0], [0.0, 4.0]])).
%% 2> tessera:to_list(Values).
%% [2.0,0.75]
%% '''
-spec eigh(tensor(), tensor()) -> {tensor(), tensor()}.
eigh(A, B) -> tessera_error:within(eigh, [A, B], fun() -> tessera_eigen:eigh(A, B) end).

%% @doc `{Values, Vectors}' of any square matrices in the last two axes, complex numbers: A v = w v for each column v of the vectors, which have
%% length 1. LAPACK computes them, in an order of its own: the library of the package `libopenblas0', or the one that the environment variable
%% `TESSERA_LAPACK' names. Without it the call is an error, as on a device that is not the host. A matrix that is not finite has NaN as its
%% results. There is no gradient. Of symmetric matrices {@link eigh/1} is faster, and needs no library.
%% ```
%% 1> {Values, _} = tessera:eig(tessera:tensor([[0.0, -1.0], [1.0, 0.0]])).
%% 2> tessera:to_list(Values).
%% [{complex,0.0,1.0},{complex,0.0,-1.0}]
%% '''
-spec eig(tensor()) -> {tensor(), tensor()}.
eig(A) -> tessera_error:within(eig, [A], fun() -> tessera_eigen:eig(A) end).

%% @doc `{T, Z}', the Schur forms of square matrices in the last two axes: A = Z T Z' with orthogonal or unitary Z and upper triangular T. Of real
%% matrices T is real, and has 2 by 2 blocks on its diagonal for pairs of complex eigenvalues. LAPACK computes them, as for {@link eig/1}.
%% ```
%% 1> {T, _} = tessera:schur(tessera:tensor([[2.0, 0.0], [1.0, 3.0]])).
%% 2> tessera:to_list(tessera:round(tessera:trace(T))).
%% 5.0
%% '''
-spec schur(tensor()) -> {tensor(), tensor()}.
schur(A) -> tessera_error:within(schur, [A], fun() -> tessera_eigen:schur(A) end).

%% @doc `{U, S, Vt}' of matrices `A = U S Vt', as {@link svd/2} without options.
%% ```
%% 1> {_, S, _} = tessera:svd(tessera:tensor([[0, 2], [-1, 0], [0, 0]])).
%% 2> tessera:to_list(S).
%% [2.0,1.0]
%% '''
-spec svd(tensor()) -> {tensor(), tensor(), tensor()}.
svd(A) -> svd(A, #{}).

%% @doc `{U, S, Vt}' of matrices `A = U S Vt' in the last two axes: the columns of `U' and the rows of `Vt' are orthonormal, `S' has the
%% singular values in descending order. Of m x n matrices there are k = min(m, n) of each; with the option `full => true' `U' has m
%% columns and `Vt' n rows. The element of largest size of each row of `Vt' is positive. NaN or infinity in a matrix makes its results
%% NaN. Integers give `f32'; `f16' and `bf16' are computed in `f32'. Of complex matrices `S' is real. The gradient is not finite where a
%% function depends on vectors whose singular values are equal, or 0 if m and n differ; it does not exist for vectors that only `full'
%% adds. Of complex matrices it is right for functions that do not depend on the phases of singular vectors.
%% ```
%% 1> {U, S, Vt} = tessera:svd(tessera:tensor([[0, 2], [-1, 0], [0, 0]]), #{full => true}).
%% 2> {tessera:shape(U), tessera:to_list(S), tessera:shape(Vt)}.
%% {{3,3},[2.0,1.0],{2,2}}
%% '''
-spec svd(tensor(), factor_options()) -> {tensor(), tensor(), tensor()}.
svd(A, Options) -> tessera_linalg:svd(A, Options).

%% @doc The pseudoinverses (Moore, Penrose) of matrices in the last two axes. Singular values count as 0 up to max(m, n) times the
%% largest one times the epsilon of the computing type. This epsilon is 2^-52 for `f64' and `c128', and 2^-23 for all others.
%% Floats of 16 and 8 bits are computed in `f32' and rounded once. The gradient holds for changes that keep the rank.
%% ```
%% 1> tessera:to_list(tessera:pinv(tessera:tensor([[2, 0], [0, 0], [0, 0]]))).
%% [[0.5,0.0,0.0],[0.0,0.0,0.0]]
%% '''
-spec pinv(tensor()) -> tensor().
pinv(A) -> tessera_linalg:pinv(A).

%% @doc The `X' of least norm among all `X' that make the norm of `A X - B' least, for m x n matrices `A' of any rank in the last two axes.
%% `B' has m rows, or is a vector of m numbers. The axes before the last two are the axes of `A'. It is computed from singular values;
%% small ones count as 0 as in {@link pinv/1}. The gradient with respect to `A' holds for changes that keep the rank.
%% ```
%% 1> tessera:to_list(tessera:lstsq(tessera:tensor([[0], [2]]), tessera:tensor([1, 4]))).
%% [2.0]
%% '''
-spec lstsq(tensor(), tensor()) -> tensor().
lstsq(A, B) -> tessera_linalg:lstsq(A, B).

%% @doc Square matrices in the last two axes to the power of an integer N: a product of N matrices, the identity for 0, and a
%% product of the inverses for a negative N.
%% ```
%% 1> tessera:to_list(tessera:matrix_power(tessera:tensor([[1, 1], [0, 1]]), 5)).
%% [[1,5],[0,1]]
%% '''
-spec matrix_power(tensor(), integer()) -> tensor().
matrix_power(A, N) -> tessera_linalg:matrix_power(A, N).

%% @doc The ranks of matrices in the last two axes, as `s32': the number of singular values that do not count as 0 by
%% the tolerance of {@link pinv/1}.
%% ```
%% 1> tessera:to_list(tessera:matrix_rank(tessera:tensor([[1, 2], [2, 4]]))).
%% 1
%% '''
-spec matrix_rank(tensor()) -> tensor().
matrix_rank(A) -> tessera_linalg:matrix_rank(A).

%% @doc The square root of the sum of all squares, as {@link norm/2} without options.
%% ```
%% 1> tessera:to_list(tessera:norm(tessera:tensor([3, 4]))).
%% 5.0
%% '''
-spec norm(tensor()) -> tensor().
norm(Tensor) -> norm(Tensor, #{}).

%% @doc Norms. Options: `order' (2), a number P for the P-th root of the sum of sizes to the power of P; 0 for how many are not 0;
%% `infinity' or `neg_infinity' for the largest or smallest size; `spectral' or `nuclear' for the largest singular value of
%% matrices, or the sum of all. `axes', the axes of a norm (all; always the last two for matrices); `keep_axes' (false), whether
%% these axes stay, with size 1. Of no number the norm is 0, but of a negative order, `neg_infinity' among them, it is infinity,
%% the limit of the norms of ever larger numbers.
%% ```
%% 1> A = tessera:tensor([[3, -4], [0, 5]]).
%% 2> tessera:to_list(tessera:norm(A, #{axes => [1], order => 1})).
%% [7.0,5.0]
%% '''
-spec norm(tensor(), norm_options()) -> tensor().
norm(Tensor, Options) -> tessera_linalg:norm(Tensor, Options).

%% @doc The sum of the diagonal of the last two axes.
%% ```
%% 1> tessera:to_number(tessera:trace(tessera:tensor([[1, 2], [3, 4]]))).
%% 5
%% '''
-spec trace(operand()) -> tensor().
trace(A) -> trace(A, #{}).

%% @doc The sum of a diagonal. Options: `axes', the two of the matrix, the last two unless given; `offset', by how many columns to the right the
%% diagonal is, 0 unless given.
%% ```
%% 1> tessera:to_number(tessera:trace(tessera:tensor([[1, 2], [3, 4]]), #{offset => 1})).
%% 2
%% '''
-spec trace(operand(), trace_options()) -> tensor().
trace(A, Options) -> tessera_error:within(trace, [A, Options], fun() -> tessera_einsum:trace(A, Options) end).

%% @doc {Sign, Log}: the sign of the determinant, and the logarithm of its size, which may be beyond the range of floats. Of complex matrices
%% the sign is a number on the unit circle.
%% ```
%% 1> {Sign, Log} = tessera:slogdet(tessera:multiply(tessera:eye(500), -10)).
%% 2> {tessera:to_number(Sign), round(tessera:to_number(Log))}.
%% {1.0,1151}
%% '''
-spec slogdet(operand()) -> {tensor(), tensor()}.
slogdet(A) -> tessera_error:within(slogdet, [A], fun() -> tessera_einsum:slogdet(A) end).

%% ---- Fourier transforms

%% @doc The discrete Fourier transform along the last axis, as {@link fft/2} without options.
%% ```
%% 1> tessera:to_list(tessera:fft(tessera:tensor([1, 1, 0, 0]))).
%% [{complex,2.0,0.0},{complex,1.0,-1.0},{complex,0.0,0.0},{complex,1.0,1.0}]
%% '''
-spec fft(operand()) -> tensor().
fft(X) -> fft(X, #{}).

%% @doc The discrete Fourier transform of lines of `N' numbers: element `K' of the result is the sum of `X[I] * exp(-2 pi i I K / N)'.
%% Options: `axis' (-1), the axis of the lines; `length', their `N', by default the axis's size: an integer, or `power_of_two' for
%% the first power of two that is not less than that. Shorter lines are padded with zeros at the end, longer ones are cut. The
%% result is `c64', or `c128' for `f64' and `c128'; the axis has size `N'.
%%
%% Any length takes time in proportion to `N * log(N)', least where its prime factors are at most 13. The error is within `3 * log2(N)'
%% units of precision of each line, measured by the root of the sum of squares. A line with a NaN or an infinity gives NaNs and
%% infinities, other lines do not change. Raises for a length below 1 or above 2147483647, and for one whose constants do not fit
%% into memory (67,108,864 points).
%% ```
%% 1> tessera:to_list(tessera:fft(tessera:tensor([[1, 2], [3, 4]]), #{axis => 0})).
%% [[{complex,4.0,0.0},{complex,6.0,0.0}],[{complex,-2.0,0.0},{complex,-2.0,0.0}]]
%% 2> tessera:shape(tessera:fft(tessera:ones({3}), #{length => power_of_two})).
%% {4}
%% '''
-spec fft(operand(), fft_options()) -> tensor().
fft(X, Options) -> tessera_fft:fft(X, Options).

%% @doc The inverse of {@link fft/1} along the last axis, as {@link ifft/2} without options.
%% ```
%% 1> tessera:to_list(tessera:real(tessera:ifft(tessera:tensor([4, 0])))).
%% [2.0,2.0]
%% '''
-spec ifft(operand()) -> tensor().
ifft(X) -> ifft(X, #{}).

%% @doc The inverse discrete Fourier transform: element `K' of a line of `N' numbers is the sum of `X[I] * exp(2 pi i I K / N)',
%% divided by `N'. Options, types and errors are as for {@link fft/2}.
%% ```
%% 1> tessera:to_list(tessera:real(tessera:ifft(tessera:tensor([[2], [0]]), #{axis => 0}))).
%% [[1.0],[1.0]]
%% '''
-spec ifft(operand(), fft_options()) -> tensor().
ifft(X, Options) -> tessera_fft:ifft(X, Options).

%% @doc The Fourier transform of real numbers along the last axis, as {@link rfft/2} without options.
%% ```
%% 1> tessera:to_list(tessera:rfft(tessera:tensor([1, 1, 0, 0]))).
%% [{complex,2.0,0.0},{complex,1.0,-1.0},{complex,0.0,0.0}]
%% '''
-spec rfft(operand()) -> tensor().
rfft(X) -> rfft(X, #{}).

%% @doc The first `N div 2 + 1' elements of the Fourier transform of lines of `N' real numbers: the others are their conjugates. It
%% takes half of the time of {@link fft/2}. Options are as for {@link fft/2}. Raises for complex numbers.
%% ```
%% 1> tessera:shape(tessera:rfft(tessera:ones({2, 10}))).
%% {2,6}
%% 2> tessera:to_list(tessera:rfft(tessera:tensor([1, 2, 3]), #{length => 2})).
%% [{complex,3.0,0.0},{complex,-1.0,0.0}]
%% '''
-spec rfft(operand(), fft_options()) -> tensor().
rfft(X, Options) -> tessera_fft:rfft(X, Options).

%% @doc The inverse of {@link rfft/1} along the last axis, as {@link irfft/2} without options.
%% ```
%% 1> tessera:to_list(tessera:irfft(tessera:tensor([4, 0, 0]))).
%% [1.0,1.0,1.0,1.0]
%% '''
-spec irfft(operand()) -> tensor().
irfft(X) -> irfft(X, #{}).

%% @doc The `N' real numbers whose Fourier transform begins with a line of X. Options: `axis' (-1); `length', the `N', by default
%% `2 * (Size - 1)' for an axis of `Size' elements: an odd `N' must be given. `N div 2 + 1' elements of each line are used; missing
%% elements are zeros. The imaginary part of the first element is taken for 0; for an even `N' also the last element's. The result
%% is `f32', or `f64' for `f64' and `c128'.
%% ```
%% 1> tessera:to_list(tessera:irfft(tessera:tensor([3, 0]), #{length => 3})).
%% [1.0,1.0,1.0]
%% '''
-spec irfft(operand(), fft_options()) -> tensor().
irfft(X, Options) -> tessera_fft:irfft(X, Options).

%% @doc The Fourier transform along the last two axes, as {@link fft2/2} without options.
%% ```
%% 1> tessera:to_list(tessera:fft2(tessera:tensor([[1, 2], [3, 4]]))).
%% [[{complex,10.0,0.0},{complex,-2.0,0.0}],[{complex,-4.0,0.0},{complex,0.0,0.0}]]
%% '''
-spec fft2(operand()) -> tensor().
fft2(X) -> fft2(X, #{}).

%% @doc The Fourier transform along two axes, the second one first. Options: `axes' ([-2, -1]); `lengths', a list of two, in the
%% order of the axes, each as the `length' of {@link fft/2}.
%% ```
%% 1> tessera:shape(tessera:fft2(tessera:ones({5, 6, 7}), #{axes => [0, 2], lengths => [4, 8]})).
%% {4,6,8}
%% '''
-spec fft2(operand(), fftn_options()) -> tensor().
fft2(X, Options) -> tessera_fft:fft2(X, Options).

%% @doc The inverse of {@link fft2/1}, as {@link ifft2/2} without options.
%% ```
%% 1> tessera:to_list(tessera:real(tessera:ifft2(tessera:tensor([[4, 0], [0, 0]])))).
%% [[1.0,1.0],[1.0,1.0]]
%% '''
-spec ifft2(operand()) -> tensor().
ifft2(X) -> ifft2(X, #{}).

%% @doc The inverse Fourier transform along two axes. Options are as for {@link fft2/2}.
%% ```
%% 1> tessera:shape(tessera:ifft2(tessera:ones({5, 6}), #{axes => [1, 0]})).
%% {5,6}
%% '''
-spec ifft2(operand(), fftn_options()) -> tensor().
ifft2(X, Options) -> tessera_fft:ifft2(X, Options).

%% @doc The Fourier transform along all axes, as {@link fftn/2} without options.
%% ```
%% 1> tessera:to_list(tessera:fftn(tessera:tensor([[[1, 2]], [[3, 4]]]))).
%% [[[{complex,10.0,0.0},{complex,-2.0,0.0}]],[[{complex,-4.0,0.0},{complex,0.0,0.0}]]]
%% '''
-spec fftn(operand()) -> tensor().
fftn(X) -> fftn(X, #{}).

%% @doc The Fourier transform along some axes, the last one first. Options: `axes', an axis or a list of different ones, by default
%% `all'; `lengths', a list in the order of the axes, each as the `length' of {@link fft/2}.
%% ```
%% 1> tessera:shape(tessera:fftn(tessera:ones({5, 6, 7}), #{axes => [0, 1]})).
%% {5,6,7}
%% '''
-spec fftn(operand(), fftn_options()) -> tensor().
fftn(X, Options) -> tessera_fft:fftn(X, Options).

%% @doc The inverse of {@link fftn/1}, as {@link ifftn/2} without options.
%% ```
%% 1> tessera:to_list(tessera:ifftn(tessera:fftn(tessera:tensor([[1, 2]])))).
%% [[{complex,1.0,0.0},{complex,2.0,0.0}]]
%% '''
-spec ifftn(operand()) -> tensor().
ifftn(X) -> ifftn(X, #{}).

%% @doc The inverse Fourier transform along some axes. Options are as for {@link fftn/2}.
%% ```
%% 1> tessera:shape(tessera:ifftn(tessera:ones({2, 3}), #{axes => 1, lengths => [4]})).
%% {2,4}
%% '''
-spec ifftn(operand(), fftn_options()) -> tensor().
ifftn(X, Options) -> tessera_fft:ifftn(X, Options).

%% ---- functions

%% @doc A function of the same arity that runs compiled. It is traced and compiled at its first call with arguments of
%% these types and shapes. A function given by its name, such as `fun my_module:f/1', is the newest version at each call.
%% ```
%% 1> F = tessera:jit(fun(#{a := A, b := B}) -> {tessera:add(A, B), [tessera:multiply(A, B)]} end).
%% 2> {Sum, [Product]} = F(#{a => tessera:tensor([1, 2]), b => 3}).
%% 3> {tessera:to_list(Sum), tessera:to_list(Product)}.
%% {[4,5],[3,6]}
%% '''
-spec jit(Function) -> Function when Function :: function().
jit(F) -> jit(F, #{}).

%% @doc A function of the same arity that runs compiled. It is traced and compiled at its first call with arguments of
%% these types and shapes. Options: `threads', the largest number of threads for a call (0: all CPUs); `donate', a list of
%% positions of arguments, from 1: a call may use their memory for its results, and deallocates them (a tensor of another
%% node or of a cluster's rank is read, and stays); a call that fails deallocates the arguments that the call has
%% overwritten; `fuse' and `simplify', `false' to turn these passes off; `device', where it runs and its results are (otherwise
%% where its first tensor is, see {@link to_device/2}); `precision' of products and convolutions on the client of a plugin,
%% `default', `high' or `highest', in place of the client's own. The host always computes them with all digits.
-spec jit(Function, jit_options()) -> Function when Function :: function().
jit(F, Options) -> tessera_jit:jit(F, Options).

%% @doc A function that runs compiled on all devices of a mesh. F is written for whole tensors. The function that is returned
%% takes one list of argument lists, one for each partition, with that partition's parts of the arguments; it returns a list of
%% results, one for each partition: their tensors are parts on that partition's device. {@link tessera_mesh} describes meshes,
%% partitions and shardings, and cuts tensors into parts. Types and shapes of the parts are the same in all partitions. A shape
%% of F's argument is a part's shape times the sizes of the axes that cut it.
%%
%% Options: `input_shardings', a list with one sharding for each argument (needed): a container has one for all its tensors, or
%% a container of shardings of the same form; `output_shardings', the same for the result (otherwise they follow from the
%% program): a sharding that does not cut a dim evenly is shortened to the longest prefix of its axes that does; `client',
%% whose device I runs partition I (`host'); `donate', `threads', `fuse' and `simplify' as in {@link jit/2}.
%%
%% A tensor that F holds is on every device as a whole. Replicas of an argument should be equal; that is not checked. Sums over a cut
%% dim add in another order than on one device; only the mesh decides the order.
%% ```
%% 1> tessera:open_client(two_devices, #{device_count => 2}).
%% ok
%% 2> F = tessera:shard_jit(fun(X, W) -> {tessera:multiply(X, W), tessera:sum(X)} end, #{shape => {2}},
%% 2>                       #{input_shardings => [#{0 => [0]}, #{}], client => two_devices}).
%% 3> [{Y0, _}, {Y1, Sum}] = F([[tessera:tensor([1, 2]), 10], [tessera:tensor([3, 4]), 10]]).
%% 4> {tessera:to_list(Y0), tessera:to_list(Y1), tessera:to_number(Sum)}.
%% {[10,20],[30,40],10}
%% 5> tessera:device(Y1).
%% {two_devices,1}
%% '''
-spec shard_jit(function(), tessera_mesh:mesh(), shard_jit_options()) -> fun(([[term()]]) -> [term()]).
shard_jit(F, Mesh, Options) -> tessera_shard:jit(F, Mesh, Options).

%% @doc Compiles a function now, for arguments like these: a list of tensors, templates and containers of them. The
%% compiled function accepts only arguments of these types and shapes.
%% ```
%% 1> F = tessera:compile(fun tessera:add/2, [tessera:template(f32, {2}), tessera:template(f32, {})]).
%% 2> tessera:to_list(F(tessera:tensor([1.0, 2.0]), 0.5)).
%% [1.5,2.5]
%% '''
-spec compile(Function, [term()]) -> Function when Function :: function().
compile(F, Templates) -> compile(F, Templates, #{}).

%% @doc Compiles a function now, for arguments like these: a list of tensors, templates and containers of them. The
%% compiled function accepts only arguments of these types and shapes. {@link jit/2} lists the options.
-spec compile(Function, [term()], jit_options()) -> Function when Function :: function().
compile(F, Templates, Options) -> tessera_jit:compile(F, Templates, Options).

%% @doc Calls Body on the carried values, again and again, while Condition returns something other than 0, and returns
%% the last values. Their types and shapes must not change.
%% ```
%% 1> {_, P} = tessera:while({0, 1}, fun({I, _}) -> tessera:less(I, 5) end,
%% 1>                        fun({I, P}) -> {tessera:add(I, 1), tessera:multiply(P, 2)} end).
%% 2> tessera:to_number(P).
%% 32
%% '''
-spec while(Carried, fun((Carried) -> operand()), fun((Carried) -> Carried)) -> Carried.
while(Initial, Condition, Body) -> tessera_control:while(Initial, Condition, Body).

%% @doc The result of True if the predicate is not 0, else the result of False. Only one of them runs. Both return terms
%% of the same form, whose types merge and whose shapes broadcast.
%% ```
%% 1> F = tessera:jit(fun(X) -> tessera:'cond'(tessera:greater(X, 0), fun() -> X end, fun() -> 0 end) end).
%% 2> [tessera:to_number(F(N)) || N <- [-2, 3]].
%% [0,3]
%% '''
-spec 'cond'(operand(), fun(() -> Result), fun(() -> Result)) -> Result.
'cond'(Predicate, True, False) -> tessera_control:'cond'(Predicate, True, False).

%% @doc A function that returns the gradient of F with respect to its first argument. F returns one float. docs/gradients.md lists its value
%% where there is no derivative.
%% ```
%% 1> G = tessera:grad(fun(X) -> tessera:sum(tessera:pow(X, 2)) end).
%% 2> tessera:to_list(G(tessera:tensor([1.0, 3.0]))).
%% [2.0,6.0]
%% '''
-spec grad(function()) -> function().
grad(F) -> tessera_grad:grad(F).

%% @doc A function that returns the value of F and its gradient with respect to the first argument: `{Value,
%% Gradient}'. The gradient has the form of that argument. Integers in it have the gradient 0.
-spec value_and_grad(function()) -> function().
value_and_grad(F) -> tessera_grad:value_and_grad(F).

%% @doc X, treated as a constant by gradients.
-spec stop_grad(operand()) -> tensor().
stop_grad(X) -> tessera_trace:stop_grad(X).

%% @doc The steps, kernels, costs and memory of a function from {@link compile/2}, as text.
-spec explain(function()) -> binary().
explain(F) -> explain(F, []).

%% @doc The steps, kernels, costs and memory of a function for these arguments or templates, as text.
-spec explain(function(), [term()]) -> binary().
explain(F, Args) ->
    case tessera_shard:explain(F, Args) of
        none -> tessera_jit:explain(F, Args);
        Text -> Text
    end.

%% @doc Calls a function with these arguments, and measures how long each step takes. Returns its result, and a profile. {@link tessera_profile:table/1} prints the
%% profile; {@link tessera_profile:chrome_trace/1} and {@link tessera_profile:flame_graph/1} write it for a viewer. The runs of compiled programs and the
%% operations that run at once are measured in the run itself, step by step, if the calling process makes them on the host.
%%
%% ```
%% 1> F = fun(X) -> tessera:sum(tessera:exp(X)) end.
%% 2> {Sum, #{runs := Runs}} = tessera:profile(F, [tessera:tensor([0.0, 0.0])]).
%% 3> {tessera:to_number(Sum), Runs}.
%% {2.0,2}
%% '''
-spec profile(fun((...) -> Result), [term()]) -> {Result, tessera_profile:profile()}.
profile(F, Args) -> profile(F, Args, #{}).

%% @doc Measures a call like {@link profile/2}, with options: `events', how many times of steps are kept one by one for the trace (100,000; at most a million),
%% and `speed', whether the speed of this machine is measured for comparison, once in a VM (`true'). `ranks' is for a cluster that this node has joined: `own'
%% measures this rank alone; with `all' all ranks call it, and each profile has all ranks.
-spec profile(fun((...) -> Result), [term()], profile_options()) -> {Result, tessera_profile:profile()}.
profile(F, Args, Options) -> tessera_profile:run(F, Args, Options).

%% @doc The graph of a function for these arguments or templates, as text that {@link run_text/2} reads.
-spec to_text(function(), [term()]) -> binary().
to_text(F, Args) -> to_text(F, Args, tessera).

%% @doc The graph of a function for these arguments or templates, as text: in the form `tessera', which {@link
%% run_text/2} reads, or as a `stablehlo' module for other compilers.
-spec to_text(function(), [term()], tessera | stablehlo) -> binary().
to_text(F, Args, Form) -> tessera_jit:text(F, Args, Form, fun tessera_shard:whole/2).

%% @doc Compiles and runs a program from its text, on these tensors. Returns the list of its results.
%% ```
%% 1> Text = tessera:to_text(fun(X) -> tessera:add(X, X) end, [tessera:template(s32, {2})]).
%% 2> [Y] = tessera:run_text(Text, [tessera:tensor([1, 2])]).
%% 3> tessera:to_list(Y).
%% [2,4]
%% '''
-spec run_text(binary(), [tensor()]) -> [tensor()].
run_text(Text, Args) -> tessera_jit:run_text(Text, Args).

%% ---- functions of parts

%% @doc The old name of {@link tessera_mesh:sharding_constraint/2}, for one release.
-spec sharding_constraint(Term, tessera_mesh:sharding()) -> Term.
sharding_constraint(Term, Sharding) -> tessera_mesh:sharding_constraint(Term, Sharding).

%% @doc A function of the parts of tensors: {@link shard_map/5} without options.
-spec shard_map(function(), tessera_mesh:mesh(), [term()], term()) -> fun(([[term()]]) -> [term()]).
shard_map(F, Mesh, InShardings, OutShardings) -> shard_map(F, Mesh, InShardings, OutShardings, #{}).

%% @doc A function of the parts of tensors on a mesh of devices (see {@link tessera_mesh}). F is the program of one
%% partition: its tensors are parts, and {@link all_reduce/3}, {@link all_gather/3} and the other collectives name the mesh
%% axes over which partitions work together. The returned function takes a list with the arguments of each partition and
%% returns a list with the results of each. All partitions run at the same time.
%%
%% There is a sharding for each argument, and one for the result; `#{}' is replicated. For a container it is the sharding
%% of all its tensors, or a container of shardings. Shardings define how parts make up whole tensors, and over which axes
%% a value may differ between partitions. Gradients by {@link grad/1} are summed over the other axes. A result that
%% differs where its sharding is replicated is an error.
%%
%% Options: `client', whose device I has partition I; `threads'; `donate', as for {@link jit/2}; `check', `false' to allow
%% results that differ where they are replicated.
%% ```
%% 1> tessera:open_client(two, #{device_count => 2}).
%% ok
%% 2> Mean = fun(X) -> tessera_mesh:all_reduce(tessera:mean(X), mean, rows) end.
%% 3> F = tessera:shard_map(Mean, #{shape => {2}, axes => [rows]}, [#{0 => [rows]}], #{}, #{client => two}).
%% 4> [tessera:to_number(R) || R <- F([[tessera:tensor([1.0, 2.0])], [tessera:tensor([3.0, 6.0])]])].
%% [3.0,3.0]
%% '''
-spec shard_map(function(), tessera_mesh:mesh(), [term()], term(), shard_map_options()) -> fun(([[term()]]) -> [term()]).
shard_map(F, Mesh, InShardings, OutShardings, Options) ->
    tessera_shard:map(F, Mesh, InShardings, OutShardings, Options).

%% @doc The old name of {@link tessera_mesh:all_reduce/3}, for one release.
-spec all_reduce(Term, sum | mean | product | min | max | 'and' | 'or', tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
all_reduce(Term, Operation, Axis) -> tessera_mesh:all_reduce(Term, Operation, Axis).

%% @doc The old name of {@link tessera_mesh:all_gather/3}, for one release.
-spec all_gather(Term, integer(), tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
all_gather(Term, Dim, Axis) -> tessera_mesh:all_gather(Term, Dim, Axis).

%% @doc The old name of {@link tessera_mesh:reduce_scatter/3}, for one release.
-spec reduce_scatter(Term, integer(), tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
reduce_scatter(Term, Dim, Axis) -> tessera_mesh:reduce_scatter(Term, Dim, Axis).

%% @doc The old name of {@link tessera_mesh:all_to_all/4}, for one release.
-spec all_to_all(Term, integer(), integer(), tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
all_to_all(Term, Split, Concat, Axis) -> tessera_mesh:all_to_all(Term, Split, Concat, Axis).

%% @doc The old name of {@link tessera_mesh:permute/3}, for one release.
-spec permute(Term, [{non_neg_integer(), non_neg_integer()}], tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
permute(Term, Pairs, Axis) -> tessera_mesh:permute(Term, Pairs, Axis).

%% @doc The old name of {@link tessera_mesh:shift/3}, for one release.
-spec shift(Term, integer(), tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
shift(Term, By, Axis) -> tessera_mesh:shift(Term, By, Axis).

%% @doc The old name of {@link tessera_mesh:broadcast_from/3}, for one release.
-spec broadcast_from(Term, non_neg_integer(), tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
broadcast_from(Term, Root, Axis) -> tessera_mesh:broadcast_from(Term, Root, Axis).

%% @doc The old name of {@link tessera_mesh:barrier/2}, for one release.
-spec barrier(Term, tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
barrier(Term, Axis) -> tessera_mesh:barrier(Term, Axis).

%% @doc The old name of {@link tessera_mesh:vary/2}, for one release.
-spec vary(Term, tessera_mesh:axis() | [tessera_mesh:axis()]) -> Term.
vary(Term, Axis) -> tessera_mesh:vary(Term, Axis).

%% @doc The old name of {@link tessera_mesh:axis_index/1}, for one release.
-spec axis_index(tessera_mesh:axis() | [tessera_mesh:axis()]) -> tensor().
axis_index(Axis) -> tessera_mesh:axis_index(Axis).

%% @doc The old name of {@link tessera_mesh:axis_size/1}, for one release.
-spec axis_size(tessera_mesh:axis() | [tessera_mesh:axis()]) -> pos_integer().
axis_size(Axis) -> tessera_mesh:axis_size(Axis).

%% ---- plugins

%% @doc Loads a shared object with native calls (include/tessera_plugin.h, docs/plugins.md), and returns the names of its
%% targets. A plugin that is loaded already is not loaded again; it stays until the VM ends. Raises with the file's name if
%% there is none, if it is no plugin or one of another version, and if another plugin has a target of the same name. The
%% plugin is native code: a fault in it is a fault of the VM.
-spec load_plugin(file:name_all()) -> [binary()].
load_plugin(Path) -> tessera_plugin:load(Path).

%% @doc The results of a target of a loaded plugin for these operands. The results are templates, {@link template/2}: one
%% gives a tensor, a list of them a list of tensors. Works at once and in traced functions, and has no gradient.
-spec custom_call(atom() | binary() | string(), [operand()], Results) -> Results when Results :: tensor() | [tensor()].
custom_call(Target, Operands, Results) -> custom_call(Target, Operands, Results, #{}).

%% @doc The results of a target of a loaded plugin for these operands and attributes: a map of integers, floats, booleans,
%% binaries, atoms and lists of integers by names. The results are templates, {@link template/2}: one gives a tensor, a list of
%% them a list of tensors. Works at once and in traced functions, and has no gradient. The plugin may refuse types, shapes and
%% attributes when the call is compiled.
-spec custom_call(atom() | binary() | string(), [operand()], Results, map()) -> Results when Results :: tensor() | [tensor()].
custom_call(Target, Operands, Results, Attributes) -> tessera_plugin:call(Target, Operands, Results, Attributes).

%% ---- the runtime

%% @doc Figures of tensor memory, in bytes: `live', in use; `peak', the most that was in use; `pooled', kept for
%% reuse; `limit'; `held', the tensors and binaries of Erlang processes. `allocations' counts allocations, and
%% `programs' the compiled programs in the cache. `jit' has the numbers of kernels that were `compiled', `loaded' from
%% disk, `reused', and more.
-spec memory() -> #{live | peak | pooled | limit | held | allocations := integer(), jit := #{atom() => integer()},
                    programs := non_neg_integer()}.
memory() ->
    (tessera_nif:memory())#{jit => tessera_nif:jit_stats(), programs => tessera_cache:size()}.

%% @doc Sets `peak' of {@link memory/0} to the memory that is in use now.
-spec reset_peak_memory() -> ok.
reset_peak_memory() -> tessera_nif:reset_peak().

%% @doc Limits tensor memory, in use and pooled together, to this number of bytes. An allocation beyond the limit
%% first collects the garbage of all processes, and raises `resource_exhausted' if that is not enough.
-spec set_memory_limit(non_neg_integer()) -> ok.
set_memory_limit(Bytes) -> tessera_error:check(set_memory_limit, [Bytes], tessera_nif:set_limit(Bytes)).

%% @doc The clients that are open, with the number of their devices. There is always `host'. The setting `clients' of the
%% application opens others when it starts, as {@link open_client/2} does.
%% ```
%% 1> #{host := Count} = tessera:clients().
%% 2> Count > 0.
%% true
%% '''
-spec clients() -> #{atom() => pos_integer()}.
clients() -> maps:from_list([{Name, Count} || {Name, _, Count} <- tessera_nif:clients()]).

%% @doc The platforms that the library has or finds a plugin for, with the number of devices that a client of each has without the option
%% `device_count'.
%% ```
%% 1> maps:is_key(host, tessera:platforms()).
%% true
%% '''
-spec platforms() -> #{host := pos_integer(), atom() => non_neg_integer()}.
platforms() -> tessera_client:platforms().

%% @doc Opens a client: a named group of devices that are shares of this machine. Options: `device_count' (as the setting
%% `host_devices' or the environment variable `TESSERA_HOST_DEVICES' say, or 1), at most 64; `memory_limit', in bytes: the client's tensors then have
%% memory of their own, while clients without a limit share the memory of `host'; `threads', the largest number of threads for a call (0: all CPUs);
%% `platform', one of {@link platforms/0} (`host'), or `pjrt' for the devices of a plugin, whose file the option `plugin_path' names, or `cuda', `rocm', `tpu' for a plugin that is found (docs/accelerators.md). Without `device_count', a client of another platform has all devices of that platform. For an open
%% client it adds devices and sets the given options. Clients stay open, and there are at most 256.
%% ```
%% 1> tessera:open_client(small, #{device_count => 2, memory_limit => 1 bsl 20}).
%% ok
%% 2> tessera:devices(small).
%% [{small,0},{small,1}]
%% '''
-spec open_client(atom(), client_options()) -> ok.
open_client(Name, Options) when is_map(Options) ->
    tessera_error:check(open_client, [Name, Options], tessera_client:open(Name, Options));
open_client(Name, Other) ->
    tessera_error:raise(open_client, [Name, Other], invalid_argument, "open_client: expected a map of options, got ~ts",
                        [tessera_error:show(Other)]).

%% @doc The devices of all clients, first of `host'.
-spec devices() -> [device()].
devices() -> [{Name, Id} || {Name, _, Count} <- tessera_nif:clients(), Id <- tessera_type:dims(Count)].

%% @doc The devices of a client.
-spec devices(atom()) -> [device()].
devices(Client) ->
    case clients() of
        #{Client := Count} -> [{Client, Id} || Id <- tessera_type:dims(Count)];
        _ -> tessera_error:raise(devices, [Client], invalid_argument, "devices: no client ~ts is open",
                                 [tessera_error:show(Client)])
    end.

%% @doc The device that a tensor is on.
%% ```
%% 1> tessera:device(tessera:tensor([1, 2])).
%% {host,0}
%% '''
-spec device(tensor()) -> device().
device(#tessera{ref = Ref} = Tensor) when is_reference(Ref) ->
    tessera_error:check(device, [Tensor], tessera_remote:device(Ref));
device(Other) -> tessera_array:no_tensor(device, Other).

%% @doc The tensor on a device. It is the same tensor if it is there already; on another device of its client it shares the
%% memory; else it is a copy. Operations compute on the device of their first tensor. Functions of {@link jit/2} compute on
%% the device of the option `device', or else of their first tensor; the results are on that device as well.
%% ```
%% 1> tessera:open_client(small, #{device_count => 2}).
%% ok
%% 2> T = tessera:to_device(tessera:tensor([1, 2]), {small, 1}).
%% 3> tessera:device(tessera:add(T, 1)).
%% {small,1}
%% '''
-spec to_device(tensor(), device()) -> tensor().
to_device(#tessera{ref = Ref} = Tensor, Device) when is_reference(Ref) ->
    tessera_memory:made(to_device, [Tensor, Device], fun() -> tessera_remote:to_device(Tensor, Device) end);
to_device(Other, _) -> tessera_array:no_tensor(to_device, Other).

%% @doc Figures of a client's memory, in bytes, as in {@link memory/0}: of its own memory, or of the memory of `host' if it has
%% no limit of its own. `held' are the tensors on its devices; `peak_held' is the most there were, and `devices' and
%% `device_peaks' have both for each device.
%%
%% `memory(processes)' lists the processes that have made the tensors that are in memory now, those with the most bytes first. A process may have
%% passed its tensors on, and have ended. `tensors' and `bytes' are exact for tensors of 64 KB and more; of smaller ones they are estimates, which
%% are right on average: `estimated' is that part of `bytes'. `largest' is the largest tensor of 64 KB and more, `oldest_ms' the age of the oldest.
-spec memory(processes | atom()) -> #{live | peak | pooled | limit | held | peak_held | allocations := integer(),
                                      devices | device_peaks := #{non_neg_integer() => integer()}} |
                                    [#{pid := pid() | undefined, name := atom(), is_alive := boolean(),
                                       tensors | bytes | estimated | largest | oldest_ms := non_neg_integer()}].
memory(processes) -> tessera_memory:by_process();
memory(Client) ->
    {Held, Peak, Devices} = tessera_error:check(memory, [Client], tessera_nif:client_memory(Client)),
    {Now, Most} = tessera_client:by_device(Devices),
    (tessera_nif:memory(Client))#{held => Held, peak_held => Peak, devices => Now, device_peaks => Most}.

%% @doc Limits the memory of a client, in use and pooled together, to this number of bytes. A client that shared the memory of
%% `host' has memory of its own from now on.
-spec set_memory_limit(atom(), non_neg_integer()) -> ok.
set_memory_limit(Client, Bytes) ->
    tessera_error:check(set_memory_limit, [Client, Bytes], tessera_nif:set_limit(Client, Bytes)).

%% @doc Returns pooled memory to the system.
-spec trim() -> ok.
trim() -> tessera_nif:trim().

%% @doc Forgets all compiled programs (of functions, of texts and of eager ops), and all lowered rules of Nx's expressions;
%% also on the ranks of this node's clusters ({@link tessera_cluster:clear_cache/1} clears the ranks' own caches as well).
%% Programs that run or that a function of {@link compile/2} holds live on. Kernels stay in memory and on disk, so programs
%% that are compiled anew find them.
-spec clear_cache() -> ok.
clear_cache() ->
    ok = tessera_nif:eager_clear(),
    ok = tessera_platform:clear(),
    tessera_cache:clear().

%% @doc The version of Tessera, such as `"0.1.0"'.
-spec version() -> string().
version() ->
    _ = application:load(tessera),
    {ok, Version} = application:get_key(tessera, vsn),
    Version.
