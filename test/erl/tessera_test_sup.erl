%% A supervisor with the given flags and children, for tests.
-module(tessera_test_sup).
-behaviour(supervisor).
-export([init/1]).

init(Given) -> {ok, Given}.
