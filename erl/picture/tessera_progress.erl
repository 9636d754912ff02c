%% @doc Progress of long loops, with an estimate of the time left: one line that changes on a terminal, a line for each tenth in a file.
%%
%% ```
%% P0 = tessera_progress:new(60, #{label => "epoch"}),
%% P1 = tessera_progress:step(P0, ["loss ", Loss]),
%% ...
%% tessera_progress:done(P60).
%% '''
-module(tessera_progress).
-export([new/1, new/2, step/1, step/2, done/1, text/1]).
-export_type([progress/0, progress_options/0]).

-record(progress, {total :: pos_integer(), count = 0 :: non_neg_integer(), label :: unicode:chardata(), begun :: integer(), printed :: integer() | none,
                   note = "" :: unicode:chardata(), terminal :: boolean(), clock :: fun(() -> integer())}).

-opaque progress() :: #progress{}.
%% `label' is in front. `clock' gives milliseconds, and `terminal' says whether the line may change; both have defaults of this system.
-type progress_options() :: #{label => unicode:chardata(), clock => fun(() -> integer()), terminal => boolean()}.

-define(BAR, 24).
-define(EACH_MS, 100).

%% @equiv new(Total, #{})
-spec new(pos_integer()) -> progress().
new(Total) -> new(Total, #{}).

%% @doc A loop begins now, with this number of steps.
-spec new(pos_integer(), progress_options()) -> progress().
new(Total, Options) when is_integer(Total), Total > 0 ->
    #{label := Label, clock := Clock, terminal := Terminal} =
        tessera_picture:options(new, Options, #{label => "", clock => fun() -> erlang:monotonic_time(millisecond) end, terminal => tessera_picture:columns() =/= none}),
    #progress{total = Total, label = Label, begun = Clock(), printed = none, terminal = Terminal, clock = Clock};
new(Total, _) -> tessera_picture:fail("new: expected a positive number of steps, got ~ts", [tessera_error:show(Total)]).

%% @equiv step(Progress, "")
-spec step(progress()) -> progress().
step(Progress) -> step(Progress, "").

%% @doc A step is done. Prints at most ten times in a second.
-spec step(progress(), unicode:chardata()) -> progress().
step(#progress{count = Count} = Before, Note) ->
    Progress = Before#progress{count = Count + 1, note = Note},
    case is_due(Progress) of
        true ->
            print(Progress),
            Progress#progress{printed = (Progress#progress.clock)()};
        false -> Progress
    end.

is_due(#progress{terminal = true, printed = none}) -> true;
is_due(#progress{terminal = true, printed = At, clock = Clock, count = Count, total = Total}) -> Count =:= Total orelse Clock() - At >= ?EACH_MS;
is_due(#progress{terminal = false, count = Count, total = Total}) -> Count * 10 div Total > (Count - 1) * 10 div Total.

print(#progress{terminal = true} = Progress) -> io:format("\r\e[K~ts", [text(Progress)]);
print(Progress) -> io:format("~ts~n", [text(Progress)]).

%% @doc The loop is over: the line stays as it is.
-spec done(progress()) -> ok.
done(#progress{terminal = true} = Progress) ->
    print(Progress),
    io:nl();
done(#progress{count = Count, total = Total} = Progress) -> Count =:= Total orelse print(Progress), ok.

%% @doc The line.
-spec text(progress()) -> unicode:chardata().
text(#progress{total = Total, count = Count, label = Label, begun = Begun, note = Note, clock = Clock}) ->
    Share = min(1.0, Count / Total),
    Spent = Clock() - Begun,
    Left = case Count of
               0 -> "";
               _ when Count >= Total -> [" in ", time(Spent)];
               _ -> [", ", time(round(Spent * (Total - Count) / Count)), " left"]
           end,
    Bar = tessera_picture:bar(round(8 * ?BAR * Share)),
    [[[Label, $\s] || Label =/= ""], io_lib:format("~b/~b ", [Count, Total]), string:pad(Bar, ?BAR, trailing, $·), io_lib:format(" ~3b %", [trunc(100 * Share)]), Left,
     [["  ", Note] || Note =/= ""]].

time(Ms) when Ms < 10000 -> io_lib:format("~.1f s", [Ms / 1000]);
time(Ms) when Ms < 3600000 -> io_lib:format("~b:~2..0b", [Ms div 60000, Ms div 1000 rem 60]);
time(Ms) -> io_lib:format("~b:~2..0b:~2..0b", [Ms div 3600000, Ms div 60000 rem 60, Ms div 1000 rem 60]).
