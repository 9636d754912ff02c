%% @private Warnings of the native library, passed on to logger.
-module(tessera_log).
-behaviour(gen_server).
-export([start_link/0, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

init([]) ->
    ok = tessera_nif:set_log_process(self()),
    {ok, []}.

handle_call(_, _From, State) -> {reply, ok, State}.

handle_cast(_, State) -> {noreply, State}.

handle_info({tessera_log, Text}, State) ->
    logger:warning("tessera: ~ts", [Text]),
    {noreply, State};
handle_info(_, State) -> {noreply, State}.
