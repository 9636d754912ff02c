%% @private A cache: one caller makes a value while the others wait; with name and contract of EXLA's. Values are kept
%% with the compiled programs, and are bounded with them. Counters are in a table with the name that EXLA's would have: programs clear it.
-module(tessera_nx_locked).
-export([run/2, count/1, new/0]).

-define(MAX_COUNTERS, 10000).
-define(TABLE, 'Elixir.Tessera.Defn.LockedCache').

%% {Extra, Value} from Make on a miss, {nil, Value} on a hit.
-spec run(term(), fun(() -> {Extra, Value})) -> {Extra | nil, Value}.
run(Key, Make) ->
    Self = make_ref(),
    Value = tessera_cache:fetch({locked, digest(Key)},
                                fun() ->
                                        {Extra, Made} = Make(),
                                        put(Self, Extra),
                                        Made
                                end, fun tessera_digest:weigh/1),
    case erase(Self) of
        undefined -> {nil, Value};
        Extra -> {Extra, Value}
    end.

%% How often this was called with the key.
-spec count(term()) -> pos_integer().
count(Key) ->
    _ = ets:info(?TABLE, size) > ?MAX_COUNTERS andalso ets:delete_all_objects(?TABLE),
    Counter = {counter, digest(Key)},
    ets:update_counter(?TABLE, Counter, {2, 1}, {Counter, 0}).

%% Tables copy a key and lose the sharing inside, so they hold its digest.
digest(Key) -> tessera_nx_error:check(cache, tessera_digest:of_term(Key)).

%% The table of counters; the server of locks owns it.
-spec new() -> ok.
new() ->
    ?TABLE = ets:new(?TABLE, [named_table, public, {write_concurrency, true}]),
    ok.
