%% @private Fourier transforms, and their gradients. The API in tessera.erl documents them.
-module(tessera_fft).
-include("tessera.hrl").
-export([fft/2, ifft/2, rfft/2, irfft/2, fft2/2, ifft2/2, fftn/2, ifftn/2]).
-export([share/4]).

-type attrs() :: {non_neg_integer(), pos_integer()}. % axis, length

%% A length is an attribute of 32 bits.
-define(MAX_LENGTH, 16#7fffffff).

%% ---- along one axis

-spec fft(tessera_type:operand(), tessera_options:fft_options()) -> tessera_type:tensor().
fft(Operand, Options) -> along_axis(fft, Operand, Options, fun(Size) -> Size end).

-spec ifft(tessera_type:operand(), tessera_options:fft_options()) -> tessera_type:tensor().
ifft(Operand, Options) -> along_axis(ifft, Operand, Options, fun(Size) -> Size end).

-spec rfft(tessera_type:operand(), tessera_options:fft_options()) -> tessera_type:tensor().
rfft(Operand, Options) ->
    #tessera{type = Type} = Tensor = tessera_operand:tensor(rfft, Operand),
    tessera_type:is_complex_type(Type) andalso
        tessera_error:raise(rfft, [Operand, Options], invalid_argument,
                            "rfft: expected real numbers, got ~s; fft/2 takes complex ones", [Type]),
    along_axis(rfft, Tensor, Options, fun(Size) -> Size end).

-spec irfft(tessera_type:operand(), tessera_options:fft_options()) -> tessera_type:tensor().
irfft(Operand, Options) -> along_axis(irfft, Operand, Options, fun(Size) -> 2 * (Size - 1) end).

along_axis(Name, Operand, Options, Default) ->
    Args = [Operand, Options],
    #{axis := Axis0, length := Length} = tessera_ops:options(Name, Args, Options, #{axis => -1, length => default}),
    #tessera{shape = Shape} = Tensor = tessera_operand:tensor(Name, Operand),
    Axis = tessera_ops:axis_option(Name, Args, Axis0, tuple_size(Shape)),
    Size = element(Axis + 1, Shape),
    transform(Name, Name, Tensor, {Axis, points(Name, Args, Length, Size, Default(Size))}).

transform(Name, Op, Tensor, Attrs) -> tessera_trace:op(Name, Op, [Tensor], Attrs).

%% The length, from the option or the axis.
points(Name, Args, default, Size, Default) ->
    Default >= 1 orelse
        tessera_error:raise(Name, Args, invalid_argument,
                            "~s: an axis of size ~b has no length to transform, expected the option length", [Name, Size]),
    Default;
points(_, _, power_of_two, Size, _) -> power_of_two(Size, 1);
points(_, _, Length, _, _) when is_integer(Length), Length >= 1, Length =< ?MAX_LENGTH -> Length;
points(Name, Args, Length, _, _) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: length is ~ts, expected an integer from 1 to ~b or power_of_two",
                        [Name, tessera_error:show(Length), ?MAX_LENGTH]).

power_of_two(Size, Power) when Power >= Size -> Power;
power_of_two(Size, Power) -> power_of_two(Size, 2 * Power).

%% ---- along several axes: one after the other, the last one first, as it may be real

-spec fft2(tessera_type:operand(), tessera_options:fftn_options()) -> tessera_type:tensor().
fft2(Operand, Options) -> along_axes(fft2, fft, Operand, Options, [-2, -1]).

-spec ifft2(tessera_type:operand(), tessera_options:fftn_options()) -> tessera_type:tensor().
ifft2(Operand, Options) -> along_axes(ifft2, ifft, Operand, Options, [-2, -1]).

-spec fftn(tessera_type:operand(), tessera_options:fftn_options()) -> tessera_type:tensor().
fftn(Operand, Options) -> along_axes(fftn, fft, Operand, Options, all).

-spec ifftn(tessera_type:operand(), tessera_options:fftn_options()) -> tessera_type:tensor().
ifftn(Operand, Options) -> along_axes(ifftn, ifft, Operand, Options, all).

along_axes(Name, Op, Operand, Options, Default) ->
    Args = [Operand, Options],
    #{axes := Axes0, lengths := Lengths0} =
        tessera_ops:options(Name, Args, Options, #{axes => Default, lengths => default}),
    #tessera{shape = Shape} = Tensor = tessera_operand:tensor(Name, Operand),
    Axes = tessera_type:axes(Name, Args, Axes0, tuple_size(Shape)),
    Lengths = lengths(Name, Args, Lengths0, length(Axes)),
    is_list(Default) andalso length(Axes) =/= length(Default) andalso
        tessera_error:raise(Name, Args, invalid_argument, "~s: expected ~b axes, got ~ts",
                            [Name, length(Default), tessera_error:show(Axes0)]),
    Attrs = [{Axis, points(Name, Args, Length, element(Axis + 1, Shape), element(Axis + 1, Shape))}
             || {Axis, Length} <- lists:zip(Axes, Lengths)],
    lists:foldr(fun(Each, Acc) -> transform(Name, Op, Acc, Each) end, Tensor, Attrs).

lengths(_, _, default, Count) -> lists:duplicate(Count, default);
lengths(_, _, Lengths, Count) when is_list(Lengths), length(Lengths) =:= Count -> Lengths;
lengths(Name, Args, Lengths, Count) ->
    tessera_error:raise(Name, Args, invalid_argument, "~s: lengths are ~ts, expected a list of ~b",
                        [Name, tessera_error:show(Lengths), Count]).

%% ---- gradients

%% Transforms are symmetric matrices, so their transposes are transforms again; an axis that was truncated is padded, and the other way
%% round.
-spec share(atom(), tessera_type:tensor(), attrs(), tessera_type:tensor()) -> tessera_type:tensor().
share(Op, X, {Axis, _} = Attrs, C) when Op =:= fft; Op =:= ifft -> like(X, Axis, transform(grad, Op, C, Attrs));
%% The half of the spectrum that a real transform leaves out has no gradient.
share(rfft, X, {Axis, _} = Attrs, C) -> like(X, Axis, transform(grad, fft, C, Attrs));
%% An element of the half also stands for its conjugate, unless it has none.
share(irfft, X, {Axis, Length} = Attrs, C) ->
    #tessera{type = Type, shape = Shape} = Half = tessera_trace:op(grad, rfft, [C], Attrs),
    Weights = [weight(K, Length) / Length || K <- lists:seq(0, Length div 2)],
    Row = list_to_tuple([case D of Axis -> element(D + 1, Shape); _ -> 1 end || D <- tessera_type:dims(tuple_size(Shape))]),
    W = tessera_ops:reshape(tessera_array:tensor(Weights, tessera_type:part(Type)), Row),
    Conjugate = tessera_complex:complex(tessera_elementwise:multiply(tessera_complex:real(Half), W),
                                tessera_elementwise:negate(tessera_elementwise:multiply(tessera_complex:imag(Half), W))),
    like(X, Axis, Conjugate).

weight(0, _) -> 1;
weight(K, Length) when 2 * K =:= Length -> 1;
weight(_, _) -> 2.

%% The gradient with X's size along the axis, and X's type.
like(#tessera{type = Type, shape = Shape}, Axis, #tessera{shape = Own} = G) ->
    Size = element(Axis + 1, Shape),
    Real = case tessera_type:is_complex_type(Type) of
               true -> G;
               false -> tessera_complex:real(G)
           end,
    case element(Axis + 1, Own) of
        Size -> Real;
        More when More > Size ->
            Dims = tuple_to_list(Shape),
            tessera_trace:op(grad, slice, [Real], {[0 || _ <- Dims], Dims, [1 || _ <- Dims]});
        Fewer ->
            Zeros = tessera_array:full(setelement(Axis + 1, Shape, Size - Fewer), 0, Real#tessera.type),
            tessera_trace:op(grad, concatenate, [Real, Zeros], Axis)
    end.
