%% @private The output of the ranks of a cluster, and of mpirun, in the log of this node. A launcher starts this process and gives it lines; it ends
%% after the launcher. Lines of one source that come together are one event, at the level `notice': a report of an error has many lines. Ranks may
%% print more than a log can take, so there is a limit: surplus lines are left out, and the log says how many.
-module(tessera_cluster_log).
-include_lib("kernel/include/logger.hrl").
-export([start/0, line/3]).
-export_type([source/0]).

%% Milliseconds that lines wait for others, and how many lines an event has at most.
-define(TOGETHER, 50).
-define(EVENT, 200).
%% Lines and bytes that may come at once; and the share of these that may come again in each second.
-define(LINES, 1000).
-define(BYTES, 1000000).
-define(AGAIN, 0.1).
%% Milliseconds until the log reports omitted lines.
-define(TELL, 1000).

%% A rank; or the program that starts them, by its name.
-type source() :: non_neg_integer() | iodata().

-record(state, {launcher :: reference(),           % the monitor of who has started it
                source = none :: none | source(),
                lines = [] :: [binary()],            % of that source, which are not in the log yet, the last one first
                due = 0 :: integer(),                % when they have to be, in milliseconds
                left = {?LINES, ?BYTES} :: {number(), number()},
                at :: integer(),                     % when that was counted, in milliseconds
                dropped = {0, 0} :: {non_neg_integer(), non_neg_integer()}}).

-spec start() -> pid().
start() ->
    Launcher = self(),
    spawn(fun() ->
                  ok = tessera_cluster_process:label(?MODULE),
                  wait(#state{launcher = monitor(process, Launcher), at = now_ms()})
          end).

-spec line(pid(), source(), binary()) -> ok.
line(Log, Source, Line) ->
    Log ! {line, Source, Line},
    ok.

now_ms() -> erlang:monotonic_time(millisecond).

wait(#state{launcher = Launcher} = State) ->
    receive
        {line, Source, Line} -> wait(taken(Source, Line, State));
        {'DOWN', Launcher, process, _, _} -> told(written(rest(State)));
        {system, From, Request} -> tessera_cluster_process:system({From, Request}, self(), State, {fun wait/1, fun(Whole) -> Whole end})
    after timeout(State) -> wait(due(State))
    end.

timeout(#state{lines = [_ | _], due = Due}) -> max(0, Due - now_ms());
timeout(#state{dropped = {0, 0}}) -> infinity;
timeout(_) -> ?TELL.

due(#state{lines = [_ | _]} = State) -> written(State);
due(State) -> told(State).

%% Lines that came before the launcher ended.
rest(State) ->
    receive {line, Source, Line} -> rest(taken(Source, Line, State))
    after 0 -> State
    end.

taken(Source, Line, State) ->
    #state{left = {Lines, Bytes}, dropped = {More, Size}} = Now = refilled(State),
    case has_room(Line, Now) of
        true -> noted(Source, Line, Now#state{left = {Lines - 1, Bytes - byte_size(Line)}});
        false -> Now#state{dropped = {More + 1, Size + byte_size(Line)}}
    end.

%% When lines were left out, the next ones come when there is room for some: else each of them would be told of alone.
has_room(Line, #state{left = {Lines, Bytes}, dropped = {0, 0}}) -> Lines >= 1 andalso Bytes >= byte_size(Line);
has_room(_, #state{left = {Lines, Bytes}}) -> Lines >= ?AGAIN * ?LINES andalso Bytes >= ?AGAIN * ?BYTES.

refilled(#state{left = {Lines, Bytes}, at = At} = State) ->
    Now = now_ms(),
    Share = ?AGAIN * (Now - At) / 1000,
    State#state{left = {min(?LINES, Lines + Share * ?LINES), min(?BYTES, Bytes + Share * ?BYTES)}, at = Now}.

noted(Source, Line, #state{dropped = Dropped} = State) when Dropped =/= {0, 0} -> noted(Source, Line, told(written(State)));
noted(Source, Line, #state{source = Source, lines = Lines} = State) when Lines =/= [], length(Lines) < ?EVENT ->
    State#state{lines = [Line | Lines]};
noted(Source, Line, State) -> (written(State))#state{source = Source, lines = [Line], due = now_ms() + ?TOGETHER}.

written(#state{lines = []} = State) -> State;
written(#state{source = Source, lines = Lines} = State) ->
    ?LOG_NOTICE("~ts: ~ts", [name(Source), lists:join("\n", [text(Line) || Line <- lists:reverse(Lines)])], #{source => Source}),
    State#state{lines = []}.

told(#state{dropped = {0, 0}} = State) -> State;
told(#state{dropped = {Lines, Bytes}} = State) ->
    ?LOG_NOTICE("tessera_cluster: ~b lines of ranks (~b bytes) are left out here", [Lines, Bytes]),
    State#state{dropped = {0, 0}}.

name(Rank) when is_integer(Rank) -> ["rank ", integer_to_list(Rank)];
name(Name) -> Name.

%% Bytes that are not UTF-8 are taken as Latin-1.
text(Line) ->
    case unicode:characters_to_binary(Line) of
        Text when is_binary(Text) -> Text;
        _ -> unicode:characters_to_binary(Line, latin1)
    end.
