%% @private Signals of the system to a rank. mpirun and the launcher end ranks by SIGTERM. It ends the rank at once: a VM that stops as usual ends the
%% workers first, and their requests would be answered as if they had failed.
-module(tessera_rank_signals).
-behaviour(gen_event).
-export([install/1]).
-export([init/1, handle_event/2, handle_call/2]).

%% Leave ends the rank with a status.
-spec install(fun((non_neg_integer()) -> no_return())) -> ok.
install(Leave) -> ok = gen_event:add_handler(erl_signal_server, ?MODULE, Leave).

%% The usual handler comes after this one.
init(Leave) -> {ok, Leave}.

handle_event(sigterm, Leave) -> Leave(1);
handle_event(_, Leave) -> {ok, Leave}.

handle_call(_, Leave) -> {ok, error, Leave}.
