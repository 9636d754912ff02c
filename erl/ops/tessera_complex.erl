%% @private Functions of complex numbers and their parts. The API in tessera.erl documents them.
-module(tessera_complex).
-export([complex/2, real/1, imag/1, conjugate/1, phase/1, atan2/2, atan2/3]).

-spec complex(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
complex(Re, Im) ->
    Types = [tessera_operand:type_of(tessera_operand:operand(complex, X)) || X <- [Re, Im]],
    lists:any(fun tessera_type:is_complex_type/1, Types) andalso
        tessera_error:raise(complex, [Re, Im], invalid_argument, "complex: expected real parts, got ~s and ~s",
                            Types),
    Part = case lists:member(f64, Types) of
               true -> f64;
               false -> f32
           end,
    tessera_trace:op(complex, [tessera_ops:as_type(complex, Re, Part), tessera_ops:as_type(complex, Im, Part)], []).

-spec real(tessera_type:operand()) -> tessera_type:tensor().
real(X) -> real(real, X).

%% The real part, or a real operand itself, as a float; for the API function Name.
real(Name, X) ->
    Type = tessera_operand:type_of(tessera_operand:operand(Name, X)),
    case tessera_type:is_complex_type(Type) of
        true -> tessera_trace:op(Name, real, [X], []);
        false -> tessera_ops:as_type(Name, X, tessera_type:to_float(Type))
    end.

-spec imag(tessera_type:operand()) -> tessera_type:tensor().
imag(X) -> imag(imag, X).

imag(Name, X) ->
    Type = tessera_operand:type_of(tessera_operand:operand(Name, X)),
    case tessera_type:is_complex_type(Type) of
        true -> tessera_trace:op(Name, imag, [X], []);
        false ->
            %% An op on X itself, which checks that it is a tensor with contents.
            Part = case Type of
                       f64 -> f64;
                       _ -> f32
                   end,
            Parts = [tessera_ops:as_type(Name, X, Part), tessera_ops:as_type(Name, 0, Part)],
            Joined = tessera_trace:op(Name, complex, Parts, []),
            tessera_ops:as_type(Name, tessera_trace:op(Name, imag, [Joined], []), tessera_type:to_float(Type))
    end.

-spec conjugate(tessera_type:operand()) -> tessera_type:tensor().
conjugate(X) ->
    Type = tessera_operand:type_of(tessera_operand:operand(conjugate, X)),
    case tessera_type:is_complex_type(Type) of
        true ->
            Re = tessera_trace:op(conjugate, real, [X], []),
            Im = tessera_trace:op(conjugate, imag, [X], []),
            tessera_trace:op(conjugate, complex, [Re, tessera_trace:op(conjugate, negate, [Im], [])], []);
        false -> tessera_ops:as_type(conjugate, X, tessera_type:to_float(Type))
    end.

-spec phase(tessera_type:operand()) -> tessera_type:tensor().
phase(X) -> tessera_trace:op(phase, atan2, [imag(phase, X), real(phase, X)], []).

-spec atan2(tessera_type:operand(), tessera_type:operand()) -> tessera_type:tensor().
atan2(Y, X) ->
    [TypeY, TypeX] = Types = [tessera_operand:type_of(tessera_operand:operand(atan2, Z)) || Z <- [Y, X]],
    case lists:any(fun tessera_type:is_complex_type/1, Types) of
        true ->
            Common = tessera_type:merge(TypeY, TypeX),
            [Top, Bottom] = [tessera_ops:as_type(atan2, Z, Common) || Z <- [Y, X]],
            Angle = atan2(fun(Op, Args, Attrs) -> tessera_trace:op(atan2, Op, Args, Attrs) end, Top, Bottom),
            %% The branch of real numbers has their values, not their derivatives: the imaginary parts change the result, too.
            tessera_trace:made_by(atan2, Angle, [Top, Bottom]);
        false -> tessera_trace:op(atan2, [Y, X], [])
    end.

%% atan2 of complex numbers of one type: -i log((X + iY) / sqrt(X^2 + Y^2)), as in StableHLO; where
%% both are real, atan2 of the real parts. Ops(Op, Operands, Attributes) adds an op.
-spec atan2(fun((atom(), [tessera_type:operand()], term()) -> tessera_type:tensor()), tessera_type:tensor(), tessera_type:tensor()) ->
          tessera_type:tensor().
atan2(Ops, Y, X) ->
    Op = fun(Name, Operands) -> Ops(Name, Operands, []) end,
    [Yr, Yi, Xr, Xi] = [Op(Part, [Z]) || Z <- [Y, X], Part <- [real, imag]],
    Sum = Op(complex, [Op(subtract, [Xr, Yi]), Op(add, [Xi, Yr])]),
    Norm = Op(sqrt, [Op(add, [Op(multiply, [X, X]), Op(multiply, [Y, Y])])]),
    Log = Op(log, [Op(divide, [Sum, Norm])]),
    IsReal = Op(logical_and, [Op(equal, [Yi, 0.0]), Op(equal, [Xi, 0.0])]),
    Op(complex, [Op(select, [IsReal, Op(atan2, [Yr, Xr]), Op(imag, [Log])]),
                 Op(select, [IsReal, Yi, Op(negate, [Op(real, [Log])])])]).
