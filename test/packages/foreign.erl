%% Beside a library with an LLVM of its own (foreign.c), programs are compiled and give their results; that library keeps its
%% functions.
-module(foreign).
-export([where/0, run/1]).

where() -> erlang:nif_error(not_loaded).

%% Library: its path, without the ending.
run(Library) ->
    ok = erlang:load_nif(Library, []),
    here = where(),
    %% asin is a function of SLEEF, the program is new to LLVM
    F = tessera:jit(fun(X) -> tessera:add(tessera:asin(X), tessera:multiply(X, 1.25)) end),
    [Zero, Large] = tessera:to_list(F(tessera:tensor([0.0, 1.0], f32))),
    true = Zero == 0.0 andalso abs(Large - (math:pi() / 2 + 1.25)) < 1.0e-6,
    here = where(),
    %% with the other library at its end, too
    io:format("ran").
