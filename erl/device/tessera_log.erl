%% @private Warnings of the native library, passed on to logger, and events for telemetry.
-module(tessera_log).
-behaviour(gen_server).
-export([start_link/0, init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([event/3]).

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

%% An event of Tessera, if Elixir's library telemetry is loaded.
-spec event(atom(), map(), map()) -> ok.
event(Name, Measurements, Metadata) ->
    case erlang:function_exported(telemetry, execute, 3) of
        true -> telemetry:execute([tessera, Name], Measurements, Metadata);
        false -> ok
    end.
