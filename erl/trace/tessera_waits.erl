%% @private Circles of processes that wait for one another. A process that waits for a program waits for the process that makes it. A maker that waits for a
%% message while it traces a function is taken to wait for processes that it has started or monitors, as tasks that it awaits. So the edges of the graph
%% are where they are needed: nothing is noted of a process until one has waited for a while and asks.
-module(tessera_waits).
-export([circle/2]).
-export_type([waits/0, circle/0]).

-define(TRIES, 3).

%% By the process that waits for a program, its maker.
-type waits() :: #{pid() => pid()}.
%% Makers, each with the place where it waits. The first one makes the program for which the caller waits; each waits for a process that waits for the program
%% of the next one, and the last one for the caller.
-type circle() :: [{pid(), term()}].

%% A circle through the caller, which waits for a program of this maker; [] where there is none. `Waits' gives all that wait.
-spec circle(pid(), fun(() -> waits())) -> circle().
circle(Maker, Waits) ->
    case place(Maker) of
        none -> [];
        Place ->
            case lists:member(Maker, above(self())) of
                true -> [{Maker, Place}];
                false ->
                    All = Waits(),
                    from(Maker, Place, All#{self() => Maker}, [])
            end
    end.

%% From a maker that waits at that place back to the caller.
from(Maker, Place, Waits, Seen) ->
    Before = [Maker | Seen],
    case others(Maker, Waits, Before) of
        found -> [{Maker, Place}];
        Next ->
            case first(Next, Waits, Before) of
                [] -> [];
                Rest -> [{Maker, Place} | Rest]
            end
    end.

first([], _, _) -> [];
first([Maker | Makers], Waits, Seen) ->
    Found = case Waits of
                #{Maker := Other} -> awaited(Maker, Other, Waits, [Maker | Seen]);
                #{} -> placed(Maker, place(Maker), Waits, Seen)
            end,
    case Found of
        [] -> first(Makers, Waits, [Maker | Seen]);
        _ -> Found
    end.

placed(_, none, _, _) -> [];
placed(Maker, Place, Waits, Seen) -> from(Maker, Place, Waits, Seen).

%% A maker may wait for a program itself.
awaited(Maker, Other, Waits, Seen) ->
    case not lists:member(Other, Seen) andalso first([Other], Waits, Seen) of
        [_ | _] = Rest -> [{Maker, waits} | Rest];
        _ -> []
    end.

%% The makers for whose programs processes wait for which this maker may wait; found, if the caller is one of these processes. Many may wait for one program:
%% those of makers that were seen are not looked at.
others(Maker, Waits, Seen) ->
    case lists:member(Maker, above(self())) of
        true -> found;
        false -> lists:usort([Other || {Process, Other} <- maps:to_list(Waits), not lists:member(Other, Seen), lists:member(Maker, above(Process))])
    end.

%% Where a process waits for a message while it traces a function; none, where it does something else. One that waits runs for a moment when another process
%% asks the same: it is asked again.
place(Process) -> place(Process, ?TRIES).

place(Process, Tries) ->
    case node(Process) =:= node() andalso process_info(Process, [status, dictionary, current_stacktrace]) of
        [{status, waiting}, {_, Dictionary}, {_, Stack}] ->
            case tessera_trace:is_tracing(Dictionary) andalso [] =:= [await || {tessera_cache, await, _, _} <- Stack] of
                true -> Stack;
                false -> none
            end;
        [_, _, _] when Tries > 1 ->
            timer:sleep(1),
            place(Process, Tries - 1);
        _ -> none
    end.

%% The processes that have started one, and those that monitor it. Elixir's tasks name their callers: a supervisor has started them.
above(Process) ->
    case process_info(Process, [dictionary, monitored_by]) of
        [{_, Dictionary}, {_, Monitoring}] ->
            Named = [Caller || {Key, Callers} <- Dictionary, Key =:= '$callers' orelse Key =:= '$ancestors', is_list(Callers), Caller <- Callers],
            parents(Process, Named ++ Monitoring);
        undefined -> []
    end.

parents(Process, Above) ->
    case erlang:system_info(otp_release) >= "25" andalso process_info(Process, parent) of
        {parent, Parent} when is_pid(Parent), node(Parent) =:= node() -> parents(Parent, [Parent | Above]);
        _ -> Above
    end.
