%% Calls of the API for tessera_misuse_tests. Each of thousands of errors reads the code of the traced function's module, to find a line. So this module is
%% small.
-module(tessera_test_call).
-export([of_api/2]).

of_api(Name, Args) -> fun() -> apply(tessera, Name, Args) end.
