%% Prints a digest of the bits that functions of SLEEF, emitted code and products give, so that two libraries can be compared.
-module(bits).
-export([main/0]).

main() ->
    {F32, Next} = tessera_random:uniform(tessera_random:key(7), -3, 3, {4099}),
    {Some, _} = tessera_random:uniform(Next, -1, 1, {1031}),
    F64 = tessera:divide(tessera:as_type(Some, f64), 1.0123456789),
    Unary = [acos, acosh, asin, asinh, atan, atanh, cbrt, cos, cosh, erf, erfc, exp, expm1, log, log1p, sigmoid, sin, sinh, sqrt, tan, tanh],
    Results = [(tessera:jit(fun(Y) -> tessera:Name(Y) end))(X) || Name <- Unary, X <- [F32, F64]]
        ++ [(tessera:jit(fun(Y) -> tessera:Name(Y, tessera:multiply(Y, Y)) end))(X) || Name <- [atan2, pow, remainder], X <- [F32, F64]]
        ++ [(tessera:jit(fun product/1))(X)
            || X <- [F32, F64]],
    [io:format("~2.16.0b", [Byte]) || <<Byte>> <= erlang:md5([tessera:to_binary(Result) || Result <- Results])].

product(X) ->
    M = tessera:reshape(tessera:slice(X, [0], [1024]), {32, 32}),
    tessera:dot(M, tessera:transpose(M)).
