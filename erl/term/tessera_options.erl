%% @private The types of options of operations, for the modules that compute them; tessera.erl has the same types with their documentation, and a test
%% compares both.
-module(tessera_options).
-export_type([axis_options/0, iota_options/0, dot_options/0, quantize_options/0, axes_options/0, reduce_options/0, variance_options/0,
              quantile_options/0, arg_options/0, sort_options/0, argsort_options/0, top_k_options/0, unique_options/0, tri_options/0,
              meshgrid_options/0, close_options/0, nan_to_num_options/0, nonzero_options/0, searchsorted_options/0, digitize_options/0,
              average_options/0, cov_options/0, corrcoef_options/0, diff_options/0, histogram_options/0, bincount_options/0, interp_options/0,
              trace_options/0, cumulative_options/0, conv_options/0, window_options/0, window_scatter_options/0, triangular_solve_options/0,
              factor_options/0, norm_options/0, fft_options/0, fftn_options/0]).

-type tensor() :: tessera_type:tensor().
-type operand() :: tessera_type:operand().
-type type() :: tessera_type:type().
-type axis() :: integer() | [integer()].
-type axes() :: tessera_type:axes().
-type window() :: tessera_type:window().
-type padding() :: valid | same | [{integer(), integer()}].

-type axis_options() :: #{axis => axis(), axes => axis()}.
-type iota_options() :: #{type => type(), axis => all | axis(), axes => all | axis()}.
-type dot_options() :: #{axes => {axes(), axes()}, axis => {axes(), axes()}, batch_axes => {axes(), axes()}}.
-type quantize_options() :: #{bits => 4 | 8, group => pos_integer(), form => scale | zero | minimum, axis => axis(), axes => axis(),
                              scales => f32 | bf16 | f16}.
-type axes_options() :: #{axes => axes(), axis => axes()}.
-type reduce_options() :: #{axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean()}.
-type variance_options() :: #{axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean(), ddof => number()}.
-type quantile_options() :: #{axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean(),
                              method => linear | lower | higher | nearest | midpoint}.
-type arg_options() :: #{axis => all | axis(), axes => all | axis(), keep_axis => boolean(), keep_axes => boolean(),
                         tie_break => low | high, type => type()}.
-type sort_options() :: #{axis => axis(), axes => axis(), descending => boolean()}.
-type argsort_options() :: #{axis => axis(), axes => axis(), descending => boolean(), type => type()}.
-type top_k_options() :: #{axis => axis(), axes => axis(), type => type()}.
-type unique_options() :: #{size => all | non_neg_integer(), fill => largest | operand()}.
-type tri_options() :: #{columns => rows | non_neg_integer(), offset => integer(), type => type()}.
-type meshgrid_options() :: #{indexing => xy | ij}.
-type close_options() :: #{rtol => number(), atol => number(), equal_nan => boolean()}.
-type nan_to_num_options() :: #{nan => number(), infinity => largest | number(), neg_infinity => smallest | number()}.
-type nonzero_options() :: #{size => all | non_neg_integer(), fill => integer()}.
-type searchsorted_options() :: #{side => left | right, type => type()}.
-type digitize_options() :: #{right => boolean()}.
-type average_options() :: #{axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean(), weights => none | operand()}.
-type cov_options() :: #{ddof => number(), rows => boolean()}.
-type corrcoef_options() :: #{rows => boolean()}.
-type diff_options() :: #{axis => axis(), axes => axis(), order => non_neg_integer()}.
-type histogram_options() :: #{range => all | {number(), number()}, weights => none | tensor(), density => boolean()}.
-type bincount_options() :: #{length => non_neg_integer(), weights => none | tensor()}.
-type interp_options() :: #{left => first | number() | {complex, number(), number()}, right => last | number() | {complex, number(), number()}}.
-type trace_options() :: #{axes => axes(), axis => axes(), offset => integer()}.
-type cumulative_options() :: #{axis => axis(), axes => axis(), reverse => boolean()}.
-type conv_options() :: #{strides => window(), padding => padding(), input_dilation => window(), kernel_dilation => window(),
                          feature_groups => pos_integer(), batch_groups => pos_integer(),
                          layout => channels_last | channels_first | {[non_neg_integer()], [non_neg_integer()], [non_neg_integer()]}}.
-type window_options() :: #{strides => window(), padding => padding(), dilation => window()}.
-type window_scatter_options() :: #{strides => window(), padding => padding()}.
-type triangular_solve_options() :: #{lower => boolean(), left_side => boolean(), transpose => boolean() | conjugate,
                                      unit_diagonal => boolean()}.
-type factor_options() :: #{full => boolean()}.
-type norm_options() :: #{order => number() | infinity | neg_infinity | spectral | nuclear,
                          axes => axes(), axis => axes(), keep_axes => boolean(), keep_axis => boolean()}.
-type fft_options() :: #{axis => axis(), axes => axis(), length => pos_integer() | power_of_two}.
-type fftn_options() :: #{axes => axes(), axis => axes(), lengths => [pos_integer() | power_of_two]}.
