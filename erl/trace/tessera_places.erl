%% @private Which line of the user's code each op of a traced program comes from, for profiles. While places are recorded, each op gets the line that is
%% nearest on the stack (`set/2'). A program that was compiled before is traced again after the profile (`later/2').
-module(tessera_places).
-export([recording/2, is_recording/0, start/1, set/2, as_of/3, in_function/2, later/2, lines/2]).

%% In the process dictionary while places are recorded: #recording{}.
-define(RECORDING, '$tessera_places').
%% There while the ops of gradients are made: the place of the op that they are made for.
-define(AS_OF, '$tessera_places_as_of').
%% The functions that are traced, the innermost first.
-define(FUNCTIONS, '$tessera_places_functions').
-define(MOST_LATER, 256).

%% Frames of `modules' are not the user's. `later' are programs without places, and how to compile each of them again.
-record(recording, {modules :: #{module() => true}, later = #{} :: #{reference() => fun(() -> reference())}}).

%% Calls F while places are recorded. Then programs that have run without places get these, as long as they are the same when they are traced again.
-spec recording([module()], fun(() -> Result)) -> Result.
recording(Modules, F) ->
    Outer = put(?RECORDING, #recording{modules = maps:from_keys(Modules, true)}),
    Deep = tessera_stack:deepen(),       % an op may be made by several functions of Tessera
    try
        Result = F(),
        #recording{later = Later} = get(?RECORDING),
        _ = [lend(Executable, Again) || {Executable, Again} <- maps:to_list(Later)],
        Result
    after
        ok = tessera_stack:restore(Deep),
        restore(?RECORDING, Outer)
    end.

restore(Key, undefined) -> erase(Key);
restore(Key, Value) -> put(Key, Value).

lend(Executable, Again) ->
    try tessera_nif:places_lend(Executable, Again())
    catch _:_ -> false       % the function cannot be traced any more, or not outside of its call: its lines are not known
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
-spec later(tessera_nif:executable(), fun(() -> tessera_nif:executable())) -> ok.
later(Executable, Again) ->
    case get(?RECORDING) of
        #recording{later = Later} = Recording when not is_map_key(Executable, Later), map_size(Later) < ?MOST_LATER ->
            _ = tessera_nif:places_known(Executable) =:= false andalso put(?RECORDING, Recording#recording{later = Later#{Executable => Again}}),
            ok;
        _ -> ok
    end.

%% The lines of what set/2 has noted.
-spec lines([binary()], [module()]) -> #{binary() => tessera_tails:line()}.
lines(Encoded, Modules) ->
    Noted = [{Line, binary_to_term(Line)} || Line <- lists:usort(Encoded)],
    Lines = tessera_tails:lines([Place || {_, Place} <- Noted], maps:from_keys(Modules, true)),
    maps:from_list([{Line, map_get(Place, Lines)} || {Line, Place} <- Noted]).

%% ---- the stack

%% The nearest frame of the user's code; or the function that has ended with the call, which has none. Tessera calls functions of its own in the same way:
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
