%% @private The lowering of Nx's operations to ops of the core. One table serves traced
%% programs and eager ops: with a program the ops are added to it, with
%% `undefined' they run at once.
%%
%% Arguments are as in the nodes of Nx.Defn.Expr, with values of the core in
%% the place of tensors; see Nx.Backend for their meaning.
-module(tessera_nx_ops).
-include("tessera.hrl").
-export([apply/4, op/4, results/4, constant/3, conform/3]).
-export_type([program/0, form/0]).

-type program() :: tessera_nif:builder() | undefined.
-type form() :: {tessera:type(), tessera:shape()}.   % what Nx says of the result

-spec apply(program(), atom(), form(), [term()]) -> tessera:tensor().
apply(P, Op, Form, Args) -> conform(P, Form, lower(kind(Op), P, Op, Form, Args)).

%% ---- calling the core

-define(IS_COMPLEX(Type), (Type =:= c64 orelse Type =:= c128)).

-spec op(program(), atom(), [tessera:operand()], term()) -> tessera:tensor().
op(P, Name, Operands, Attrs) -> apply_op(P, Name, Operands, Attrs).

%% The results of an op that has several.
-spec results(program(), atom(), [tessera:operand()], term()) -> [tessera:tensor()].
results(P, Name, Operands, Attrs) -> apply_op(P, Name, Operands, Attrs).

apply_op(P, Name, Operands, Attrs) ->
    case tessera_nif:op(P, Name, Operands, Attrs) of
        #tessera{} = Value -> Value;
        {placed, Value} -> Value;       % tessera_places:node/2 follows
        Other ->
            Again = fun(Given) -> tessera_run:op(tessera_nif:op(P, Name, Given, Attrs), Given) end,
            tessera_remote:result(tessera_run:op(Other, Operands), Operands, Again,
                                  fun(Cause) -> tessera_nx_error:from_core(Name, Cause) end)
    end.

%% Fourier transforms along axes, the last one first, that give complex numbers of a type, or their real parts.
fourier(Op, P, Type, #tessera{type = Own} = A, Attrs) ->
    Operand = case ?IS_COMPLEX(Own) of
                  true -> cast(P, A, Type);
                  false -> cast(P, A, tessera_type:part(Type))
              end,
    lists:foldr(fun(Each, Acc) -> op(P, Op, [Acc], Each) end, Operand, Attrs).

-spec cast(program(), tessera:tensor(), tessera:type()) -> tessera:tensor().
cast(_, #tessera{type = Type} = Value, Type) -> Value;
cast(P, Value, Type) -> op(P, convert, [Value], Type).

reshape(_, #tessera{shape = Shape} = Value, Shape) -> Value;
reshape(P, Value, Shape) -> op(P, reshape, [Value], Shape).

%% A number, or one of the atoms nan, infinity, neg_infinity, in every element. Eager ops take the number as an operand: as a
%% constant it would need a program for each number.
-spec constant(program(), form(), number() | atom() | map() | {complex, number() | atom(), number() | atom()}) ->
    tessera:tensor().
constant(P, Form, #{'__struct__' := 'Elixir.Complex', re := Re, im := Im}) ->
    constant(P, Form, {complex, whole(Re), whole(Im)});
constant(undefined, {Type, {}}, Number) ->
    Fitting = fit(Type, Number),
    Make = fun() -> tessera_nif:from_list(Fitting, Type) end,
    tessera_memory:result(Make(), Make, fun(Cause) -> tessera_nx_error:from_core(constant, Cause) end);
constant(undefined, {Type, Shape}, Number) ->
    op(undefined, broadcast, [constant(undefined, {Type, {}}, Number)], {Shape, []});
constant(P, {Type, Shape}, Number) -> op(P, constant, [], {Type, Shape, fit(Type, Number)}).

%% The core refuses numbers out of a type's range: here integers wrap, as they do in a binary, and floats are clamped.
fit(Type, N) when is_integer(N) ->
    case tessera_type:is_inexact_type(Type) of
        true when N >= -(1 bsl 63), N < 1 bsl 64 -> N;
        true -> float(N);
        false -> wrap(tessera_type:range(Type), N)
    end;
fit(Type, Number) when is_float(Number); is_atom(Number) ->
    case tessera_type:is_inexact_type(Type) of
        true -> Number;
        false -> saturate(tessera_type:range(Type), Number)
    end;
fit(_, {complex, _, _} = Number) -> Number.

%% An integer that the core reads, or a float.
whole(N) when is_integer(N) -> float(N);
whole(N) -> N.

wrap({Least, Largest}, N) when N >= Least, N =< Largest -> N;
wrap({Least, Largest}, N) ->
    Size = Largest - Least + 1,
    Least + ((N - Least) band (Size - 1)).

saturate(_, nan) -> 0;
saturate({_, Largest}, infinity) -> Largest;
saturate({Least, _}, neg_infinity) -> Least;
saturate({Least, Largest}, Number) -> max(Least, min(Largest, trunc(Number))).

%% Checks the result against the shape that Nx declared: a difference is a fault of Nx or of Tessera.
-spec conform(program(), form(), tessera:tensor()) -> tessera:tensor().
conform(_, {Type, Shape}, #tessera{type = Type, shape = Shape} = Value) -> Value;
conform(P, {Type, Shape} = Form, #tessera{shape = Own} = Value) ->
    case tessera_type:elements(Own) =:= tessera_type:elements(Shape) of
        true -> cast(P, reshape(P, Value, Shape), Type);
        false when Own =:= {} -> cast(P, op(P, broadcast, [Value], {Shape, []}), Type);
        false -> wrong_shape(Form, Value)
    end.

wrong_shape({Type, Shape}, #tessera{type = Own, shape = OwnShape}) ->
    tessera_nx_error:runtime("internal bug! Nx expected a tensor ~ts, Tessera made ~ts",
                             [tessera_type:format(Type, Shape), tessera_type:format(Own, OwnShape)]).

%% ---- the table

%% How an operation is lowered: a name below, or the core's name of it.
kind(exp) -> unary; kind(expm1) -> unary; kind(log) -> unary; kind(log1p) -> unary; kind(sigmoid) -> unary;
kind(cos) -> unary; kind(sin) -> unary; kind(tan) -> unary; kind(cosh) -> unary; kind(sinh) -> unary;
kind(tanh) -> unary; kind(acos) -> unary; kind(asin) -> unary; kind(atan) -> unary; kind(acosh) -> unary;
kind(asinh) -> unary; kind(atanh) -> unary; kind(sqrt) -> unary; kind(rsqrt) -> unary; kind(cbrt) -> unary;
kind(erf) -> unary; kind(erfc) -> unary; kind(erf_inv) -> unary; kind(abs) -> unary; kind(negate) -> unary;
kind(sign) -> unary; kind(ceil) -> unary; kind(floor) -> unary; kind(round) -> unary; kind(bitwise_not) -> unary;
kind(count_leading_zeros) -> unary; kind(population_count) -> unary;
kind(is_nan) -> plain; kind(is_infinity) -> plain;
kind(add) -> binary; kind(subtract) -> binary; kind(multiply) -> binary; kind(remainder) -> binary;
kind(pow) -> binary; kind(divide) -> binary; kind(atan2) -> binary; kind(min) -> binary; kind(max) -> binary;
kind(quotient) -> in_out_type; kind(bitwise_and) -> in_out_type; kind(bitwise_or) -> in_out_type;
kind(bitwise_xor) -> in_out_type; kind(left_shift) -> in_out_type; kind(right_shift) -> in_out_type;
kind(equal) -> plain; kind(not_equal) -> plain; kind(greater) -> plain; kind(less) -> plain;
kind(greater_equal) -> plain; kind(less_equal) -> plain; kind(logical_and) -> plain; kind(logical_or) -> plain;
kind(logical_xor) -> plain;
kind(as_type) -> as_type;
kind(squeeze) -> reshape;
kind(argmax) -> arg; kind(argmin) -> arg;
kind(sum) -> {reduce, reduce_sum};
kind(product) -> {reduce, reduce_product};
kind(reduce_max) -> {reduce, reduce_max};
kind(reduce_min) -> {reduce, reduce_min};
kind(all) -> {test, reduce_all};
kind(any) -> {test, reduce_any};
kind(Op) -> Op.

%% ---- elementwise

lower(unary, P, abs, {Type, _}, [#tessera{type = Own} = A]) when ?IS_COMPLEX(Own) -> cast(P, op(P, abs, [A], []), Type);
lower(binary, P, atan2, {Type, _}, [Y, X]) when ?IS_COMPLEX(Type) ->
    tessera_complex:atan2(ops(P), cast(P, Y, Type), cast(P, X, Type));
lower(unary, P, Op, {Type, _}, [A]) -> op(P, Op, [cast(P, A, Type)], []);
lower(plain, P, Op, _, Operands) -> op(P, Op, Operands, []);
lower(in_out_type, P, Op, {Type, _}, [A, B]) -> op(P, Op, [cast(P, A, Type), cast(P, B, Type)], []);
lower(binary, P, Op, {Type, _}, [#tessera{type = Type} = A, #tessera{type = Type} = B]) -> op(P, Op, [A, B], []);
lower(binary, P, Op, {Type, _}, [A, B]) ->
    Common = tessera_type:merge(tessera_type:merge(A#tessera.type, B#tessera.type), Type),
    op(P, Op, [cast(P, A, Common), cast(P, B, Common)], []);
lower(as_type, P, _, {Type, _}, [A]) -> cast(P, A, Type);
lower(Part, P, _, {Type, _}, [#tessera{type = Own} = A]) when (Part =:= real orelse Part =:= imag) andalso ?IS_COMPLEX(Own) ->
    cast(P, op(P, Part, [A], []), Type);
lower(real, P, _, {Type, _}, [A]) -> cast(P, A, Type);
lower(imag, P, _, Form, [_]) -> constant(P, Form, 0);
lower(conjugate, P, _, {Type, _}, [A]) ->
    Z = cast(P, A, Type),
    op(P, complex, [op(P, real, [Z], []), op(P, negate, [op(P, imag, [Z], [])], [])], []);
lower(bitcast, P, _, {Type, _}, [A]) -> op(P, bitcast, [A], Type);
lower(select, P, _, {Type, Shape}, [Predicate, A, B]) ->
    op(P, select, [fill(P, Predicate, Shape), cast(P, A, Type), cast(P, B, Type)], []);
lower(clip, P, _, {Type, _}, Operands) -> op(P, clamp, [cast(P, A, Type) || A <- Operands], []);

%% ---- sources

lower(eye, P, _, Form, []) -> op(P, eye, [], Form);
lower(iota, P, _, {Type, Shape}, [nil]) -> op(P, iota, [], {Type, Shape, -1});
lower(iota, P, _, {Type, Shape}, [Axis]) -> op(P, iota, [], {Type, Shape, Axis});
lower(constant, P, _, Form, [Number]) -> constant(P, Form, Number);

%% ---- shape

lower(reshape, P, _, {_, Shape}, [A | _]) -> reshape(P, A, Shape);
lower(broadcast, P, _, _, [A, Shape, Axes]) -> op(P, broadcast, [A], {Shape, Axes});
lower(transpose, P, _, _, [A, Axes]) -> op(P, transpose, [A], Axes);
lower(reverse, P, _, _, [A, Axes]) -> op(P, reverse, [A], Axes);
lower(pad, P, _, {Type, _}, [A, Value, Config]) ->
    op(P, pad, [cast(P, A, Type), cast(P, Value, Type)], lists:unzip3(Config));
lower(concatenate, P, _, {Type, _}, [Parts, Axis]) -> join(P, [cast(P, Part, Type) || Part <- Parts], Axis);
lower(stack, P, _, {Type, _}, [Parts, Axis]) ->
    join(P, [new_axis(P, cast(P, Part, Type), Axis) || Part <- Parts], Axis);

%% ---- indexing

lower(slice, P, _, _, [A, Starts, Lengths, Strides]) -> slice(P, A, Starts, Lengths, Strides);
lower(put_slice, P, _, {Type, _}, [A, Starts, Part]) ->
    op(P, put_slice, [cast(P, A, Type), cast(P, Part, Type) | Starts], []);
lower(gather, P, _, _, [A, Indices, Options]) ->
    tessera_indices:gather(ops(P), A, Indices, proplists:get_value(axes, Options));
lower(Update, P, _, {Type, _}, [A, Indices, Updates, Options]) when Update =:= indexed_add; Update =:= indexed_put ->
    tessera_indices:update(ops(P), Update, cast(P, A, Type), Indices, cast(P, Updates, Type),
                           proplists:get_value(axes, Options));
lower(take, P, _, _, [A, Indices, Axis]) -> op(P, take, [A, Indices], Axis);
lower(take_along_axis, P, _, _, [A, Indices, Axis]) -> op(P, take_along_axis, [A, Indices], Axis);

%% ---- reductions

lower({reduce, Name}, P, _, {Type, _}, [A, Options]) -> op(P, Name, [cast(P, A, Type)], axes(A, Options));
lower({test, Name}, P, _, _, [A, Options]) -> op(P, Name, [A], axes(A, Options));
lower(arg, P, Op, {Type, _}, [A, Options]) ->
    Axis = case proplists:get_value(axis, Options) of
               nil -> -1;
               undefined -> -1;
               N -> N
           end,
    op(P, Op, [A], {Axis, proplists:get_value(tie_break, Options) =:= high, Type});
lower(reduce, P, _, {Type, _}, [A, Initial, Options, Region]) ->
    op(P, reduce, [cast(P, A, Type), cast(P, Initial, Type)], {axes(A, Options), Region});
lower(Cumulative, P, _, {Type, _}, [A, Axis, Reverse])
  when Cumulative =:= cumulative_sum; Cumulative =:= cumulative_product;
       Cumulative =:= cumulative_min; Cumulative =:= cumulative_max ->
    op(P, Cumulative, [cast(P, A, Type)], {Axis, Reverse});
lower(sort, P, _, {Type, _}, [A, Options]) ->
    {Axis, Descending} = order(Options),
    op(P, sort, [cast(P, A, Type)], {Axis, Descending});
lower(Op, P, _, {Type, _}, [A, Options]) when Op =:= fft; Op =:= ifft ->
    {length, Length} = lists:keyfind(length, 1, Options),
    {axis, Axis} = lists:keyfind(axis, 1, Options),
    fourier(Op, P, Type, A, [{Axis, Length}]);
lower(fft2, P, _, {Type, _}, [A, Lengths, Axes]) -> fourier(fft, P, Type, A, lists:zip(Axes, Lengths));
lower(ifft2, P, _, {Type, _}, [A, Lengths, Axes]) -> fourier(ifft, P, Type, A, lists:zip(Axes, Lengths));
lower(rfft, P, _, {Type, _}, [A, Length, Axis]) -> fourier(rfft, P, Type, A, [{Axis, Length}]);
lower(irfft, P, _, {Type, _}, [A, Length, Axis]) ->
    Complex = tessera_type:merge(Type, c64),
    cast(P, fourier(irfft, P, Complex, cast(P, A, Complex), [{Axis, Length}]), Type);
lower(argsort, P, _, {Type, _}, [A, Options]) ->
    {Axis, Descending} = order(Options),
    op(P, argsort, [A], {Axis, Descending, index_type(Type)});

%% ---- windows

lower(Window, P, _, {Type, _}, [A, Sizes, Options])
  when Window =:= window_sum; Window =:= window_product; Window =:= window_max; Window =:= window_min ->
    op(P, Window, [cast(P, A, Type)], window(A, Sizes, Options));
lower(Scatter, P, _, _, [A, Source, Initial, Sizes, Options])
  when Scatter =:= window_scatter_max; Scatter =:= window_scatter_min ->
    op(P, Scatter, [A, Source, Initial], window(A, Sizes, Options));
lower(window_unfold, P, _, {Type, _}, [A, Initial, Sizes, Options]) ->
    tessera_windows:unfold(ops(P), cast(P, A, Type), cast(P, Initial, Type), window(A, Sizes, Options));
lower(window_reduce, P, _, {Type, _}, [A, Initial, Sizes, Options, Region]) ->
    Unfolded = lower(window_unfold, P, window_unfold, {Type, {}}, [A, Initial, Sizes, Options]),
    op(P, reduce, [Unfolded, cast(P, Initial, Type)], {[0], Region});

%% ---- contraction

lower(dot, P, _, {Type, _}, [A, ContractA, BatchA, B, ContractB, BatchB]) ->
    op(P, dot_general, [cast(P, A, Type), cast(P, B, Type)], {ContractA, BatchA, ContractB, BatchB});
lower(conv, P, _, {Type, _}, [A, Kernel, Options]) ->
    Get = fun(Key) -> proplists:get_value(Key, Options) end,
    tessera_conv:lower(ops(P), cast(P, A, Type), cast(P, Kernel, Type),
                       #{strides => Get(strides), padding => Get(padding), input_dilation => Get(input_dilation),
                         kernel_dilation => Get(kernel_dilation), feature_groups => Get(feature_group_size),
                         batch_groups => Get(batch_group_size), input => Get(input_permutation),
                         kernel => Get(kernel_permutation), output => Get(output_permutation)});

%% ---- linear algebra

lower(cholesky, P, _, {Type, _}, [A]) -> op(P, cholesky, [cast(P, A, Type)], []);
lower(determinant, P, _, {Type, _}, [A]) -> op(P, determinant, [cast(P, A, Type)], []);
lower(solve, P, _, {Type, _}, [A, B]) -> op(P, solve, [cast(P, A, Type), right_side(P, A, cast(P, B, Type), true)], []);
lower(triangular_solve, P, _, {Type, _}, [A, B, Options]) ->
    Left = proplists:get_value(left_side, Options, true),
    Transform = proplists:get_value(transform_a, Options),
    Matrix = case Transform of
                 conjugate when ?IS_COMPLEX(Type) -> lower(conjugate, P, conjugate, {Type, {}}, [A]);
                 _ -> cast(P, A, Type)
             end,
    op(P, triangular_solve, [Matrix, right_side(P, A, cast(P, B, Type), Left)],
       {Left, proplists:get_value(lower, Options, true), Transform =:= transpose, false});

lower(_, _, Op, _, _) -> tessera_nx_error:no_op(Op).

%% ---- helpers

axes(#tessera{shape = Shape}, Options) ->
    case proplists:get_value(axes, Options) of
        Axes when is_list(Axes) -> Axes;
        _ -> tessera_type:dims(tuple_size(Shape))
    end.

%% Sorting is always stable, so the option is ignored.
order(Options) -> {proplists:get_value(axis, Options), proplists:get_value(direction, Options) =:= desc}.

%% Nx takes any type for positions.
index_type(Type) ->
    case tessera_type:is_float_type(Type) of
        true -> s64;
        false -> Type
    end.

%% Broadcasts the operand where the operands' common shape is not the result's.
fill(_, #tessera{shape = Shape} = Value, Shape) -> Value;
fill(P, #tessera{shape = Own} = Value, Shape) ->
    Lead = tuple_size(Shape) - tuple_size(Own),
    op(P, broadcast, [Value], {Shape, [Lead + I || I <- tessera_type:dims(tuple_size(Own))]}).

window(#tessera{shape = Shape}, Sizes, Options) ->
    Ones = [1 || _ <- tuple_to_list(Shape)],
    Get = fun(Key) -> proplists:get_value(Key, Options, Ones) end,
    tessera_windows:attributes(tuple_to_list(Sizes), Get(strides), Get(padding), Get(window_dilations)).

join(_, [Part], _) -> Part;
join(P, Parts, Axis) -> op(P, concatenate, Parts, Axis).

new_axis(P, #tessera{shape = Shape} = Value, Axis) ->
    {Before, After} = lists:split(Axis, tuple_to_list(Shape)),
    reshape(P, Value, list_to_tuple(Before ++ [1 | After])).

%% A batch of vectors becomes matrices of one column or row.
right_side(P, #tessera{shape = Matrices}, #tessera{shape = Shape} = B, Left) when tuple_size(Shape) < tuple_size(Matrices) ->
    new_axis(P, B, tuple_size(Shape) - case Left of true -> 0; false -> 1 end);
right_side(_, _, B, _) -> B.

%% Ops of the core in the program.
ops(P) -> fun(Name, Operands, Attrs) -> op(P, Name, Operands, Attrs) end.

%% Starts are clamped; a stride steps within the window. Eager ops take the starts as operands.
slice(P, #tessera{shape = Shape} = A, Starts, Lengths, Strides) ->
    case P =/= undefined andalso lists:all(fun erlang:is_integer/1, Starts) of
        true -> static_slice(P, A, lists:zipwith3(fun clamp_start/3, Starts, tuple_to_list(Shape), Lengths),
                             Lengths, Strides);
        false ->
            Window = op(P, dynamic_slice, [A | Starts], list_to_tuple(Lengths)),
            case lists:all(fun(Stride) -> Stride =:= 1 end, Strides) of
                true -> Window;
                false -> static_slice(P, Window, [0 || _ <- Lengths], Lengths, Strides)
            end
    end.

clamp_start(Start, Dim, Length) -> max(0, min(Start, Dim - Length)).

static_slice(P, A, Starts, Lengths, Strides) ->
    op(P, slice, [A], {Starts, lists:zipwith(fun erlang:'+'/2, Starts, Lengths), Strides}).
