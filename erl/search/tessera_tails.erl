%% @private The lines of calls that are not on the stack: a function that ends with a call gives its frame to the called one. The code of the function says
%% which call that was. Functions do not raise.
-module(tessera_tails).
-export([modules/0, is_hidden/2, lines/2, of_end/2, without_environment/1]).
-export_type([line/0, place/0]).

-type line() :: tessera_stack:line().
%% Where an op of Tessera's function User was called: on the line of a frame, or by the last call of a function.
-type place() :: {{frame, line()} | {last, tessera_source:fun_id()}, User :: atom()}.
%% A call: of a function of a module, or of something that the code does not tell.
-type call() :: {{module(), atom(), arity()} | other, erl_anno:line()}.

-define(MOST_CALLS, 64).      % functions that are looked at for one line
%% As the last expression of a function these do not end it with a call: calls inside of them have the function's frame below them, or belong to another
%% function.
-define(VALUES, [atom, integer, float, char, string, nil, var, cons, tuple, map, record, record_field, record_index, bin, op, lc, bc, mc, 'catch', 'try',
                 maybe_match, 'fun', named_fun]).
%% In the process dictionary while lines are sought: the code of the modules that were read.
-define(SOURCES, '$tessera_tails').

%% The line of each place. Calls to `modules' make ops: they are Tessera's.
-spec lines([place()], #{module() => true}) -> #{place() => line()}.
lines(Places, Modules) ->
    _ = put(?SOURCES, #{}),
    try maps:from_list([{Place, line_of(Place, Modules)} || Place <- Places])
    after erase(?SOURCES)
    end.

%% The line of the last call of the function: a call to Tessera.
-spec of_end(function(), atom()) -> line() | unknown.
of_end(F, User) ->
    case without_environment(tessera_source:fun_id(F)) of
        none -> unknown;
        FunId ->
            Place = {{last, FunId}, User},
            map_get(Place, lines([Place], maps:from_keys(modules(), true)))
    end.

%% The shell's functions have no lines.
-spec without_environment(tessera_source:fun_id()) -> tessera_source:fun_id().
without_environment({interpreted, _, _}) -> none;
without_environment(none) -> none;
without_environment(FunId) -> setelement(6, FunId, []).

%% Modules whose calls are not the user's.
-spec modules() -> [module()].
modules() ->
    Nx = [Module || {Module, _} <- code:all_loaded(), lists:prefix("Elixir.Nx", atom_to_list(Module))],
    [tessera, tessera_run, tessera_trace, tessera_jit, tessera_remote, tessera_memory, tessera_profile, erl_eval, timer, lists, maps] ++
        modules(tessera) ++ modules(elixir) ++ Nx.

modules(Application) ->
    case application:get_key(Application, modules) of
        {ok, Modules} -> Modules;
        undefined -> []
    end.

%% Whether a function is not the user's. Functions that the shell interprets are the user's.
-spec is_hidden(function(), fun((module()) -> boolean())) -> boolean().
is_hidden(F, IsHidden) ->
    {module, Module} = erlang:fun_info(F, module),
    Module =/= erl_eval andalso IsHidden(Module).

line_of({{last, {_, Module, _, Name, Arity, _} = FunId}, User}, Modules) ->
    try of_function(FunId, User, Modules)
    catch _:_ -> {Module, Name, Arity, undefined, 0}       % of a module without abstract code
    end;
line_of({{frame, Line}, User}, Modules) ->
    try of_call(Line, User, Modules)
    catch _:_ -> Line
    end.

%% The line of the last call of the function: a call to Tessera. If several calls may have been the last, the function's own line.
of_function({_, Module, _, Name, Arity, _} = FunId, User, Modules) ->
    Source = source(FunId),
    {File, Clauses} = clauses(tessera_source:target(FunId, Source), Source),
    Start = {Module, Name, Arity, File, first_line(Clauses)},
    chosen(reached([{Start, last_calls(Clauses, Source)}], Modules), User, Start).

%% If the only function that the line calls is not Tessera's, that function made the op by its last call.
of_call({Module, _, _, _, At} = Line, User, Modules) ->
    FunId = external(Module, none, 0),
    Begin = begin_of(Line, source(FunId)),
    Calls = maps:get(At, calls(FunId), []),
    case lists:usort([Called || {Called, _} <- Calls]) of
        _ when At < Begin -> setelement(5, Line, Begin);       % a macro of Elixir has written the call, without a line
        [{Other, _, _}] when not is_map_key(Other, Modules) -> chosen(reached([{Line, Calls}], Modules), User, Line);
        _ -> Line
    end.

%% The first line of the function, if the function is in the same file; else 0.
begin_of({_, Name, Arity, File, _}, #{code := #{functions := Functions}}) ->
    case Functions of
        #{{Name, Arity} := {Own, Clauses}} when Own =:= File -> first_line(Clauses);
        _ -> 0
    end.

external(Module, Name, Arity) -> {external, Module, erlang:get_module_info(Module, md5), Name, Arity, []}.

%% The abstract code of a module, and its calls by their lines; raises an error if there is none. This is noted as well.
source(FunId) -> kept(tessera_source:version(FunId), fun() -> tessera_source:written(FunId) end).

calls(FunId) ->
    #{forms := Forms} = Source = source(FunId),
    kept({calls, tessera_source:version(FunId)}, fun() -> maps:groups_from_list(fun({_, At}) -> At end, all_calls(Forms, Source)) end).

kept(Key, Make) ->
    case get(?SOURCES) of
        #{Key := Known} -> #{} = Known;
        Sources ->
            Known = Make(),
            _ = put(?SOURCES, Sources#{Key => Known}),
            #{} = Known
    end.

%% The calls to Tessera that the functions may end with: their names and lines. `unknown': also with a call that the code does not tell, which may be such a
%% call or lead to one.
reached(Calls, Modules) -> reached(Calls, Modules, #{}, []).

reached([{From, [{{'Elixir.Nx.Defn', jit_apply, _}, _} | Calls]} | Rest], Modules, Seen, Found) ->       % of defn, where nothing traces it
    reached([{From, Calls} | Rest], Modules, Seen, Found);
reached([{From, [{{Module, Name, _}, Line} | Calls]} | Rest], Modules, Seen, Found) when is_map_key(Module, Modules) ->
    reached([{From, Calls} | Rest], Modules, Seen, [{Name, setelement(5, From, Line)} | Found]);
reached([{From, [{{_, _, _} = Called, _} | Calls]} | Rest], Modules, Seen, Found) when not is_map_key(Called, Seen), map_size(Seen) < ?MOST_CALLS ->
    reached([ends(Called), {From, Calls} | Rest], Modules, Seen#{Called => true}, Found);
reached([{From, [{Called, _} | Calls]} | Rest], Modules, Seen, Found) when is_map_key(Called, Seen) -> reached([{From, Calls} | Rest], Modules, Seen, Found);
reached([{_, [_ | _]} | _], _, _, _) -> unknown;
reached([{_, []} | Rest], Modules, Seen, Found) -> reached(Rest, Modules, Seen, Found);
reached([], _, _, Found) -> Found.

%% Native code of the VM calls no other function, except for apply. Its module may be large and is not read.
ends({erlang, apply, _}) -> {unknown, [{other, 0}]};
ends({Module, Name, Arity}) ->
    case erlang:is_builtin(Module, Name, Arity) of
        true -> {unknown, []};
        false -> written_ends({Module, Name, Arity})
    end.

written_ends({Module, Name, Arity}) ->
    try
        Source = source(external(Module, Name, Arity)),
        {File, Clauses} = clauses({function, {Name, Arity}}, Source),
        {{Module, Name, Arity, File, first_line(Clauses)}, last_calls(Clauses, Source)}
    catch _:_ -> {unknown, [{other, 0}]}
    end.

chosen(unknown, _, Start) -> Start;
chosen(Found, User, Start) ->
    Named = [Line || {Name, Line} <- Found, Name =:= User],
    case {lists:usort(Named), lists:usort([Line || {_, Line} <- Found])} of
        {[Line], _} -> Line;
        {[], [Line]} -> Line;
        _ -> Start
    end.

clauses({function, Function}, #{code := #{functions := Functions}}) -> map_get(Function, Functions);
clauses({clauses, File, Clauses, _}, _) -> {File, Clauses}.

first_line([Clause | _]) -> line(Clause).

line(Form) -> erl_anno:line(element(2, Form)).

%% ---- the calls of abstract code

-spec last_calls([tuple()], tessera_source:source()) -> [call()].
last_calls(Clauses, Source) -> lists:append([last_call(lists:last(Body), Source) || {clause, _, _, _, Body} <- Clauses]).

last_call({call, _, _, _} = Call, Source) -> [called(Call, Source)];
last_call({match, _, _, Value}, Source) -> last_call(Value, Source);
last_call({block, _, Body}, Source) -> last_call(lists:last(Body), Source);
last_call({'case', _, _, Clauses}, Source) -> last_calls(Clauses, Source);
last_call({'if', _, Clauses}, Source) -> last_calls(Clauses, Source);
last_call({'receive', _, Clauses}, Source) -> last_calls(Clauses, Source);
last_call({'receive', _, Clauses, _, After}, Source) -> last_calls(Clauses, Source) ++ last_call(lists:last(After), Source);
last_call({'try', _, _, Of, Clauses, []}, Source) -> last_calls(Of ++ Clauses, Source);
last_call({'maybe', _, Body}, Source) -> last_call(lists:last(Body), Source);
last_call({'maybe', _, Body, {'else', _, Clauses}}, Source) -> last_call(lists:last(Body), Source) ++ last_calls(Clauses, Source);
last_call({op, _, Lazy, _, Right}, Source) when Lazy =:= 'andalso'; Lazy =:= 'orelse' -> last_call(Right, Source);
last_call(Form, _) ->
    case lists:member(element(1, Form), ?VALUES) of
        true -> [];
        false -> [{other, line(Form)}]
    end.

called({call, _, {remote, _, {atom, _, Module}, {atom, _, Name}}, Args} = Call, _) -> {{Module, Name, length(Args)}, line(Call)};
called({call, _, {atom, _, Name}, Args} = Call, #{module := Module, code := #{functions := Functions, imports := Imports}}) ->
    Function = {Name, length(Args)},
    case Imports of
        #{Function := Other} when not is_map_key(Function, Functions) -> {{Other, Name, length(Args)}, line(Call)};
        _ when not is_map_key(Function, Functions) -> {{of_erlang(Function, Module), Name, length(Args)}, line(Call)};
        _ -> {{Module, Name, length(Args)}, line(Call)}
    end;
called(Call, _) -> {other, line(Call)}.

of_erlang({Name, Arity}, Module) ->
    case erl_internal:bif(Name, Arity) of
        true -> erlang;
        false -> Module
    end.

all_calls({call, _, _, Args} = Call, Source) -> [called(Call, Source) | all_calls(Args, Source)];
all_calls(Tuple, Source) when is_tuple(Tuple) -> all_calls(tuple_to_list(Tuple), Source);
all_calls([Head | Tail], Source) -> all_calls(Head, Source) ++ all_calls(Tail, Source);
all_calls(_, _) -> [].
