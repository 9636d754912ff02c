%% @private Circles of processes that wait for one another, found in a graph of processes. An edge leads from a process that waits for a program to the
%% maker of the program. Another edge leads from a maker that waits for a message, while the maker traces a function, to each process that the maker has started or
%% monitors: the maker may await that process. The graph is read from the VM when a process has waited for a while. Before, nothing is stored.
-module(tessera_waits).
-export([circle/2]).
-export_type([waits/0, circle/0]).

-define(TRIES, 3).

%% By the process that waits for a program, its maker.
-type waits() :: #{pid() => pid()}.
%% The makers of a circle, each with the place where the maker waits. The caller waits for the program of the first maker. Each maker waits for a process that
%% waits for the program of the next maker. The last maker waits for the caller.
-type circle() :: [{pid(), term()}].

%% A circle through the caller, which waits for a program of this maker. Returns [] if there is no circle. Waits() returns all waiting processes.
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

%% The part of a circle from a maker, which waits at this place, back to the caller.
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

%% The maker waits for a program of another maker.
awaited(Maker, Other, Waits, Seen) ->
    case not lists:member(Other, Seen) andalso first([Other], Waits, Seen) of
        [_ | _] = Rest -> [{Maker, waits} | Rest];
        _ -> []
    end.

%% This maker may wait for some of the processes that wait for programs: the makers of these programs. Returns `found' if one of these processes is the
%% caller. Many processes may wait for one program, so processes that wait for a maker in Seen are skipped.
others(Maker, Waits, Seen) ->
    case lists:member(Maker, above(self())) of
        true -> found;
        false -> lists:usort([Other || {Process, Other} <- maps:to_list(Waits), not lists:member(Other, Seen), lists:member(Maker, above(Process))])
    end.

%% The stack of a process that waits for a message and traces a function; `none' of any other process. A waiting process runs for a moment when another
%% process calls process_info/2 with the same pid, so a running process is asked again.
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

%% The processes that have started this process, and the processes that monitor this process. A task of Elixir is started by a supervisor, and names its caller.
above(Process) ->
    case process_info(Process, [dictionary, monitored_by]) of
        [{_, Dictionary}, {_, Monitoring}] ->
            Named = [Caller || {Key, Callers} <- Dictionary, Key =:= '$callers' orelse Key =:= '$ancestors', is_list(Callers), Caller <- Callers],
            parents(Process, Named ++ Monitoring);
        undefined -> []
    end.

parents(Process, Above) ->
    case process_info(Process, parent) of
        {parent, Parent} when is_pid(Parent), node(Parent) =:= node() -> parents(Parent, [Parent | Above]);
        _ -> Above
    end.
