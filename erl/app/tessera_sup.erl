%% @private
-module(tessera_sup).
-behaviour(supervisor).
-export([start_link/0, init/1]).

start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

init([]) ->
    Workers = [#{id => tessera_events, start => {tessera_events, start_link, []}},
               #{id => tessera_stack, start => {tessera_stack, start_link, []}},
               #{id => tessera_log, start => {tessera_log, start_link, []}},
               #{id => tessera_turns, start => {tessera_turns, start_link, []}},
               #{id => tessera_check, start => {tessera_check, start_link, []}},
               #{id => tessera_cache, start => {tessera_cache, start_link, []}},
               #{id => tessera_nx_lock, start => {tessera_nx_lock, start_link, []}}],
    {ok, {#{strategy => one_for_one}, Workers}}.
