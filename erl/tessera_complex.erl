%% @private Functions of complex numbers and their parts. The API in tessera.erl documents them.
-module(tessera_complex).
-export([complex/2, real/1, imag/1, conjugate/1, phase/1]).

-spec complex(tessera:operand(), tessera:operand()) -> tessera:tensor().
complex(Re, Im) ->
    Types = [tessera_ops:type_of(tessera_ops:operand(complex, X)) || X <- [Re, Im]],
    lists:any(fun tessera_type:is_complex_type/1, Types) andalso
        tessera_error:raise(complex, [Re, Im], invalid_argument, "complex: expected real parts, got ~s and ~s",
                            Types),
    Part = case lists:member(f64, Types) of
               true -> f64;
               false -> f32
           end,
    tessera_trace:op(complex, [tessera_ops:as_type(complex, Re, Part), tessera_ops:as_type(complex, Im, Part)], []).

-spec real(tessera:operand()) -> tessera:tensor().
real(X) ->
    Type = tessera_ops:type_of(tessera_ops:operand(real, X)),
    case tessera_type:is_complex_type(Type) of
        true -> tessera_trace:op(real, [X], []);
        false -> tessera_ops:as_type(real, X, tessera_type:to_float(Type))
    end.

-spec imag(tessera:operand()) -> tessera:tensor().
imag(X) ->
    Type = tessera_ops:type_of(tessera_ops:operand(imag, X)),
    case tessera_type:is_complex_type(Type) of
        true -> tessera_trace:op(imag, [X], []);
        false ->
            %% An op on X itself, which checks that it is a tensor with contents.
            Part = case Type of
                       f64 -> f64;
                       _ -> f32
                   end,
            Joined = tessera_trace:op(imag, complex, [tessera_ops:as_type(imag, X, Part), tessera_ops:as_type(imag, 0, Part)], []),
            tessera_ops:as_type(imag, tessera_trace:op(imag, [Joined], []), tessera_type:to_float(Type))
    end.

-spec conjugate(tessera:operand()) -> tessera:tensor().
conjugate(X) ->
    Type = tessera_ops:type_of(tessera_ops:operand(conjugate, X)),
    case tessera_type:is_complex_type(Type) of
        true ->
            Re = tessera_trace:op(conjugate, real, [X], []),
            Im = tessera_trace:op(conjugate, imag, [X], []),
            tessera_trace:op(conjugate, complex, [Re, tessera_trace:op(conjugate, negate, [Im], [])], []);
        false -> tessera_ops:as_type(conjugate, X, tessera_type:to_float(Type))
    end.

-spec phase(tessera:operand()) -> tessera:tensor().
phase(X) -> tessera_trace:op(phase, atan2, [imag(X), real(X)], []).
