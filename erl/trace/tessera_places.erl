%% @private Which line of the user's code each op of a traced program comes from, for profiles. While places are recorded, each op gets the line that is
%% nearest on the stack (`set/2'). A program that was compiled before is traced again after the profile (`later/2').
-module(tessera_places).
-export([recording/2, is_recording/0, start/1, set/2, as_of/3, in_function/2, with_nodes/2, start_nodes/1, node/2, later/2, keep/1, kept/1, lines/2]).
-export_type([line/0, key/0, kept/0]).

%% A line of the user's code, or one of another language that a program of StableHLO names: the function there, or the name of the op, and the file.
-type line() :: tessera_tails:line() | {stablehlo, Name :: binary(), File :: string() | undefined, Line :: non_neg_integer()}.
%% A program: an executable of this node, or what another VM calls it.
-type key() :: tessera_nif:executable() | {program, binary()} | none | undefined.
%% What compiles a program again, for a caller that should not hold the user's function itself: `none' if it is too large.
-type kept() :: reference() | none.

%% In the process dictionary while places are recorded: #recording{}.
-define(RECORDING, '$tessera_places').
%% There while the ops of gradients are made: the place of the op that they are made for.
-define(AS_OF, '$tessera_places_as_of').
%% There while an expression of Nx becomes a program: the places of its nodes.
-define(NODES, '$tessera_places_nodes').
%% The functions that are traced, the innermost first.
-define(FUNCTIONS, '$tessera_places_functions').
-define(MOST_LATER, 256).
-define(MOST_KEPT, 1048576).     % bytes

%% Frames of `modules' are not the user's. `later' are programs without places, and how to compile each of them again.
-record(recording, {modules :: #{module() => true}, later = #{} :: #{key() => fun(() -> tessera_nif:executable())}}).

%% Calls F while places are recorded. Then programs that have run without places get these, as long as they are the same when they are traced again. Programs
%% of other VMs are compiled on this node; these come with the result.
-spec recording([module()], fun(() -> Result)) -> {Result, #{key() => tessera_nif:executable()}}.
recording(Modules, F) ->
    Outer = put(?RECORDING, #recording{modules = maps:from_keys(Modules, true)}),
    Deep = tessera_stack:deepen(),       % an op may be made by several functions of Tessera
    try
        Result = F(),
        #recording{later = Later} = recorded(),
        {Result, maps:from_list(lists:append([again(Key, Again) || {Key, Again} <- maps:to_list(Later)]))}
    after
        ok = tessera_stack:restore(Deep),
        restore(?RECORDING, inherited(Outer, recorded()))
    end.

%% Nothing, if F has erased the process dictionary.
recorded() ->
    case get(?RECORDING) of
        undefined -> #recording{modules = #{}};
        #recording{} = Recording -> Recording
    end.

%% Another profile is around this one: it compiles the programs of other VMs for itself.
inherited(undefined, _) -> undefined;
inherited(#recording{later = Own} = Outer, #recording{later = Inner}) ->
    Outer#recording{later = maps:merge(maps:filter(fun(Key, _) -> not is_reference(Key) end, Inner), Own)}.

restore(Key, undefined) -> erase(Key);
restore(Key, Value) -> put(Key, Value).

again(Key, Again) ->
    try Again() of
        Compiled when is_reference(Key) ->
            _ = tessera_nif:places_lend(Key, Compiled),
            [];
        Compiled -> [{Key, Compiled}]
    catch _:_ -> []       % the function cannot be traced any more, or not outside of its call: its lines are not known
    end.

-spec is_recording() -> boolean().
is_recording() -> get(?RECORDING) =/= undefined.

%% Of a new program.
-spec start(tessera_nif:builder()) -> ok | tessera_nif:error().
start(Program) ->
    case get(?RECORDING) of
        undefined -> ok;
        _ -> tessera_nif:places_record(Program)
    end.

%% The ops that were added since the last call have the line of the user's code that is nearest on the stack.
-spec set(tessera_nif:builder(), atom()) -> ok | tessera_nif:error().
set(Program, User) ->
    case {get(?AS_OF), get(?RECORDING)} of
        {undefined, undefined} -> ok;
        {undefined, #recording{modules = Modules}} -> tessera_nif:places_set(Program, encoded(nearest(Modules), User));
        {Place, _} -> tessera_nif:places_set(Program, Place)
    end.

encoded(unknown, _) -> 0;
encoded(Place, User) -> term_to_binary({Place, User}).

%% Calls F, whose ops have the place of the op that made the value.
-spec as_of(tessera_nif:builder(), tessera_type:tensor(), fun(() -> Result)) -> Result.
as_of(Program, Value, F) ->
    case get(?RECORDING) of
        undefined -> F();
        _ -> with_entry(?AS_OF, tessera_nif:places_of(Program, Value), F)
    end.

%% Calls F. In programs that F makes of expressions, nodes have these places.
-spec with_nodes(#{reference() => tessera_tails:place()}, fun(() -> Result)) -> Result.
with_nodes(Places, F) -> with_entry(?NODES, Places, F).

%% A new program of an expression.
-spec start_nodes(tessera_nif:builder()) -> ok | tessera_nif:error().
start_nodes(Program) ->
    case get(?NODES) of
        undefined -> ok;
        _ -> tessera_nif:places_record(Program)
    end.

%% The ops that were added since the last call are of this node.
-spec node(tessera_nif:builder(), term()) -> ok | tessera_nif:error().
node(Program, Id) ->
    case get(?NODES) of
        undefined -> ok;
        #{Id := Place} -> tessera_nif:places_set(Program, term_to_binary(Place));
        _ -> tessera_nif:places_set(Program, 0)
    end.

%% Calls the user's function.
-spec in_function(function(), [term()]) -> term().
in_function(F, Args) ->
    case get(?RECORDING) of
        undefined -> apply(F, Args);
        _ -> with_entry(?FUNCTIONS, [F | functions()], fun() -> apply(F, Args) end)
    end.

functions() ->
    case get(?FUNCTIONS) of
        undefined -> [];
        Functions -> Functions
    end.

with_entry(Key, Value, F) ->
    Outer = put(Key, Value),
    try F()
    after restore(Key, Outer)
    end.

%% A program that runs, and how to compile it again.
-spec later(key(), fun(() -> tessera_nif:executable())) -> ok.
later(Key, Again) ->
    case get(?RECORDING) of
        #recording{later = Later} = Recording when not is_map_key(Key, Later), map_size(Later) < ?MOST_LATER ->
            _ = is_unknown(Key) andalso put(?RECORDING, Recording#recording{later = Later#{Key => Again}}),
            ok;
        _ -> ok
    end.

is_unknown(Executable) when is_reference(Executable) -> tessera_nif:places_known(Executable) =:= false;
is_unknown({program, _}) -> true;
is_unknown(_) -> false.

%% A copy of the term, until the reference is collected.
-spec keep(term()) -> kept().
keep(Term) ->
    case tessera_digest:weigh(Term) of
        Bytes when is_integer(Bytes), Bytes =< ?MOST_KEPT ->
            case tessera_nif:keep(Term) of
                {error, _} -> none;
                Kept -> Kept
            end;
        _ -> none
    end.

%% The term, on the node that keeps it.
-spec kept(kept()) -> [term()].
kept(none) -> [];
kept(Kept) -> tessera_nif:kept(Kept).

%% The lines of noted ops, in the encodings of set/2 and node/2, and of the locations of StableHLO (stablehlo/location/location_place.c).
-spec lines([binary()], [module()]) -> #{binary() => line()}.
lines(Encoded, Modules) ->
    Different = lists:usort(Encoded),
    Noted = [{Line, binary_to_term(Line)} || <<131, _/binary>> = Line <- Different],
    Lines = tessera_tails:lines([Place || {_, Place} <- Noted], maps:from_keys(Modules, true)),
    maps:from_list([{Line, map_get(Place, Lines)} || {Line, Place} <- Noted] ++ [{Line, located(Line)} || <<0, _/binary>> = Line <- Different]).

located(<<0, At:32/native, Size:32/native, File:Size/binary, Name/binary>>) when Size > 0 -> {stablehlo, binary(Name), text(File), At};
located(<<0, _:32, 0:32, Name/binary>>) -> {stablehlo, binary(Name), undefined, 0}.

binary(Bytes) -> unicode:characters_to_binary(text(Bytes)).

%% Names of foreign programs need not be UTF-8, and a terminal should not take them for commands.
text(Bytes) ->
    Text = case unicode:characters_to_list(Bytes) of
               Known when is_list(Known) -> Known;
               _ -> binary_to_list(Bytes)
           end,
    [C || C <- Text, C >= $\s, C < 127 orelse C > 159].

%% ---- the stack

%% The nearest frame of the user's code; or the function that has ended with the call and has no frame. Tessera calls functions of its own in the same way:
%% below such a call there are its callers.
nearest(Modules) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    nearest(Stack, functions(), fun(Module) -> is_map_key(Module, Modules) end).

nearest(Stack, Functions, IsHidden) ->
    case tessera_stack:nearest(Stack, IsHidden) of
        {traced, Callers} -> traced(Callers, Functions, IsHidden);
        {frame, _} = Frame -> Frame;
        none -> unknown
    end.

traced(Callers, [Function | Outer], IsHidden) ->
    case tessera_tails:is_hidden(Function, IsHidden) of
        true -> nearest(Callers, Outer, IsHidden);
        false -> last_of(tessera_tails:without_environment(tessera_source:fun_id(Function)))
    end;
traced(Callers, [], IsHidden) -> nearest(Callers, [], IsHidden).

last_of(none) -> unknown;
last_of(FunId) -> {last, FunId}.
