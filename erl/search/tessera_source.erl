%% @private The code of functions: abstract code of modules that were compiled with debug_info, and of interpreted funs,
%% such as the shell's; of other modules the code of the .beam file. Functions do not raise.
-module(tessera_source).
-export([key/1, fun_id/1, version/1, load/1, written/1, target/2]).
-export_type([fun_id/0, source/0]).

%% Identifies the function of a fun, with the kind of its environment; for an interpreted fun, code and
%% environment.
-type fun_id() :: {named | external, module(), binary(), atom(), arity(), [tessera_kind:kind()]}
                | {interpreted, [tuple()], #{atom() => tessera_kind:kind()}} | none.
-type source() :: #{forms := [tuple()], module := module(), code := tessera_flow:code()}
                | #{beam := tessera_flow_beam:code()} | {none, module(), string()}.

-define(MAX_BYTES, 8 * 1024 * 1024).

%% ---- which function it is

%% Equal for functions with the same code.
-spec key(function()) -> term().
key(F) ->
    case erlang:fun_info(F, module) of
        {module, erl_eval} ->
            case fun_data(F) of
                {_, _, Clauses} -> Clauses;
                none -> F
            end;
        {module, Module} -> key(F, Module, erlang:fun_info(F, type))
    end.

key(F, Module, {type, external}) -> {F, is_loaded(Module) andalso erlang:get_module_info(Module, md5)};
key(F, Module, {type, local}) ->
    {Module, erlang:fun_info(F, new_index), erlang:fun_info(F, new_uniq)}.

fun_data(F) ->
    try erl_eval:fun_data(F) of
        {fun_data, Bindings, Clauses} -> {interpreted, Bindings, Clauses};
        {named_fun_data, Bindings, _Name, Clauses} -> {interpreted, Bindings, Clauses};
        false -> none
    catch _:_ -> none
    end.

%% The environment of an interpreted function consists of kinds.
-spec fun_id(function()) -> fun_id().
fun_id(F) ->
    [{_, Type}, {_, Module}, {_, Name}, {_, Arity}] =
        [erlang:fun_info(F, Item) || Item <- [type, module, name, arity]],
    case {Type, is_loaded(Module)} of
        {_, false} -> none;
        {external, true} -> {external, Module, erlang:get_module_info(Module, md5), Name, Arity, []};
        {local, true} when Module =:= erl_eval -> interpreted(F);
        {local, true} ->
            {env, Held} = erlang:fun_info(F, env),
            {named, Module, erlang:get_module_info(Module, md5), Name, Arity, [tessera_kind:of_term(Term) || Term <- Held]}
    end.

%% Loads the module now, as the call would.
is_loaded(Module) -> erlang:module_loaded(Module) orelse element(1, code:ensure_loaded(Module)) =:= module.

interpreted(F) ->
    case fun_data(F) of
        {interpreted, Bindings, Clauses} -> {interpreted, Clauses, kinds(Bindings)};
        none -> none
    end.

kinds(Bindings) ->
    maps:from_list([{Name, tessera_kind:of_term(Value)} || {Name, Value} <- erl_eval:bindings(Bindings)]).

%% ---- the code of a module

%% The module and version of a fun's code.
-spec version(fun_id()) -> term().
version({_, Module, Md5, _, _, _}) -> {Module, Md5};
version(_) -> none.

%% The source of the loaded version of the module, or why there is none.
-spec load(fun_id()) -> source().
load({interpreted, _, _}) -> #{forms => [], module => none, code => code([])};
load({_, Module, Md5, _, _, _}) ->
    case object_code(Module, Md5) of
        {ok, Beam} ->
            case abstract(Module, Beam) of
                none -> disassembled(Module, Beam);
                Source -> Source
            end;
        {error, Why} -> {none, Module, Why}
    end.

%% The source if there is abstract code.
-spec written(fun_id()) -> source() | none.
written({_, Module, Md5, _, _, _}) ->
    case object_code(Module, Md5) of
        {ok, Beam} -> abstract(Module, Beam);
        {error, _} -> none
    end.

abstract(Module, Beam) ->
    try
        {ok, {Module, [{debug_info, {debug_info_v1, Backend, Info}}]}} = beam_lib:chunks(Beam, [debug_info]),
        {ok, Forms} = Backend:debug_info(erlang_v1, Module, Info, []),
        #{forms => Forms, module => Module, code => code(Forms)}
    catch _:_ -> none
    end.

disassembled(Module, Beam) ->
    try #{beam => tessera_flow_beam:code(Beam)}
    catch _:_ -> {none, Module, "its code cannot be read"}
    end.

%% Where it was loaded from, or else where it would be.
object_code(Module, Md5) ->
    Files = [filename:rootname(Loaded, ".beam") ++ ".beam" || {file, [_ | _] = Loaded} <- [code:is_loaded(Module)]] ++ [{Module, in_path}],
    first([beam(File, Md5) || File <- Files]).

beam({Module, in_path}, Md5) ->
    case code:get_object_code(Module) of
        {Module, Beam, _} -> same(Beam, Md5);
        error -> {error, "it was not loaded from a file"}
    end;
beam(File, Md5) ->
    case erl_prim_loader:get_file(File) of
        {ok, Beam, _} -> same(Beam, Md5);
        error -> {error, "it was not loaded from a file"}
    end.

same(Beam, _) when byte_size(Beam) > ?MAX_BYTES -> {error, "its file is too large"};
same(Beam, Md5) ->
    case beam_lib:md5(Beam) of
        {ok, {_, Md5}} -> {ok, Beam};
        _ -> {error, "its file is not what was loaded"}
    end.

first([{ok, Beam} | _]) -> {ok, Beam};
first([Error]) -> Error;
first([_ | Results]) -> first(Results).

-spec code([tuple()]) -> tessera_flow:code().
code(Forms) ->
    {_, Functions} = lists:foldl(fun add_function/2, {"", #{}}, Forms),
    #{functions => Functions,
      records => maps:from_list([{Name, [field(F) || F <- Fields]} || {attribute, _, record, {Name, Fields}} <- Forms]),
      imports => maps:from_list([{Function, Module} || {attribute, _, import, {Module, Functions1}} <- Forms,
                                                       Function <- Functions1])}.

add_function({attribute, _, file, {File, _}}, {_, Functions}) -> {File, Functions};
add_function({function, _, Name, Arity, Clauses}, {File, Functions}) ->
    {File, Functions#{{Name, Arity} => {File, Clauses}}};
add_function(_, Acc) -> Acc.

field({typed_record_field, Field, _}) -> field(Field);
field({record_field, _, {atom, _, Name}}) -> Name;
field({record_field, _, {atom, _, Name}, _}) -> Name.

%% ---- one function of it

%% The form of the function for tessera_flow.
-spec target(fun_id(), source()) -> tessera_flow:target() | {beam, {atom(), arity()}, [tessera_kind:kind()]} | none.
target({named, _, _, Name, Arity, Held}, #{beam := _}) -> {beam, {Name, Arity + length(Held)}, Held};
target({external, _, _, Name, Arity, _}, #{beam := _}) -> {beam, {Name, Arity}, []};
target({interpreted, Clauses, Env}, _) -> {clauses, "", Clauses, Env};
target({external, _, _, Name, Arity, _}, #{code := #{functions := Functions}}) -> known({Name, Arity}, Functions);
target({named, _, _, Name, Arity, Held}, #{code := #{functions := Functions}} = Source) ->
    case parts(atom_to_list(Name)) of
        {function, Function} -> known({Function, Arity}, Functions);
        {inside, Outer, Own} -> holding(Held, inside(Outer, Own, Name, Arity, Functions, Source));
        none -> known({Name, Arity}, Functions)
    end.

%% A fun does not say which of its variables has which value, so all have the joined kind: `static' if no value is or has a
%% tensor, else `any'. Literals are in the code and have no tensors.
holding(Held, {clauses, File, Clauses, _}) ->
    Kind = case lists:all(fun tessera_kind:is_plain/1, Held) of
               true -> static;
               false -> any
           end,
    {clauses, File, Clauses, tessera_flow:holding(Kind)};
holding(_, none) -> none.

known(Function, Functions) when is_map_key(Function, Functions) -> {function, Function};
known(_, _) -> none.

%% "-fun.f/1-", "-f/1-fun-0-", "-f/1-Name/2-0-"
parts(Name) ->
    case {match(Name, "^-fun\\.(.+)/[0-9]+-$"), match(Name, "^-(.+)/([0-9]+)-fun-[0-9]+-$"),
          match(Name, "^-(.+)/([0-9]+)-([^/]+)/[0-9]+-[0-9]+-$")} of
        {[Function], _, _} -> {function, list_to_atom(Function)};
        {_, [Outer, Arity], _} -> {inside, {list_to_atom(Outer), list_to_integer(Arity)}, anonymous};
        {_, _, [Outer, Arity, Own]} -> {inside, {list_to_atom(Outer), list_to_integer(Arity)}, list_to_atom(Own)};
        _ -> none
    end.

match(Name, Pattern) ->
    case re:run(Name, Pattern, [{capture, all_but_first, list}, unicode]) of
        {match, Parts} -> Parts;
        nomatch -> nomatch
    end.

%% The fun expressions of a function that the fun may be. If there are several, the compiler decides.
inside(Outer, Own, Name, Arity, Functions, Source) ->
    case Functions of
        #{Outer := {File, Clauses}} ->
            case [Fun || Fun <- funs(Clauses), is_like(Fun, Own, Arity)] of
                [] -> none;
                [Fun] -> as_target(File, Fun);
                Several -> chosen([Fun || Fun <- Several, at(Fun) =:= location(Outer, Name, Source)], File)
            end;
        _ -> none
    end.

chosen([Fun], File) -> as_target(File, Fun);
chosen(_, _) -> none.

as_target(File, {'fun', _, {clauses, Clauses}}) -> {clauses, File, Clauses, #{}};
as_target(File, {named_fun, _, _, Clauses}) -> {clauses, File, Clauses, #{}}.

is_like({'fun', _, {clauses, Clauses}}, anonymous, Arity) -> arity(Clauses) =:= Arity;
is_like({named_fun, _, Own, Clauses}, Own, Arity) -> arity(Clauses) =:= Arity;
is_like(_, _, _) -> false.

arity([{clause, _, Patterns, _, _} | _]) -> length(Patterns).

at(Fun) -> erl_anno:location(element(2, Fun)).

funs({'fun', _, {clauses, Clauses}} = Fun) -> [Fun | funs(Clauses)];
funs({named_fun, _, _, Clauses} = Fun) -> [Fun | funs(Clauses)];
funs(Tuple) when is_tuple(Tuple) -> funs(tuple_to_list(Tuple));
funs([Head | Tail]) -> funs(Head) ++ funs(Tail);
funs(_) -> [].

%% The location of the fun with that name. The compiler chooses the names, so it compiles that one function.
location(Outer, Name, #{forms := Forms}) ->
    try
        {ok, _, Core} = compile:noenv_forms([alone(Outer, Form) || Form <- Forms, is_needed(Form)],
                                            [to_core0, binary, export_all, nowarn_export_all]),
        [Function] = [Function || {Var, Function} <- cerl:module_defs(Core), cerl:var_name(Var) =:= Outer],
        hd(locations(Name, Function))
    catch _:_ -> none
    end.

is_needed({attribute, _, Name, _}) -> lists:member(Name, [module, record, import, file, compile]);
is_needed({function, _, _, _, _}) -> true;
is_needed(_) -> false.

%% Replaces the other functions by stubs.
alone({Name, Arity}, {function, _, Name, Arity, _} = Function) -> Function;
alone(_, {function, Anno, Name, Arity, _}) ->
    Args = [{var, Anno, '_'} || _ <- lists:seq(1, Arity)],
    {function, Anno, Name, Arity, [{clause, Anno, Args, [], [{atom, Anno, stub}]}]};
alone(_, {attribute, Anno, compile, Options}) ->
    {attribute, Anno, compile, [Option || {no_auto_import, _} = Option <- lists:flatten([Options])]};
alone(_, Form) -> Form.

%% Core functions have the name and the location among their annotations.
locations(Name, [{id, {_, _, Name}} | Annotations]) -> [Location || Location <- Annotations, is_location(Location)];
locations(Name, [Head | Tail]) -> locations(Name, Head) ++ locations(Name, Tail);
locations(Name, Tuple) when is_tuple(Tuple) -> locations(Name, tuple_to_list(Tuple));
locations(Name, Map) when is_map(Map) -> locations(Name, maps:values(Map));
locations(_, _) -> [].

is_location({Line, Column}) -> is_integer(Line) andalso is_integer(Column);
is_location(Line) -> is_integer(Line).
