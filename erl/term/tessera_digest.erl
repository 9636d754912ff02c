%% @private Digests of terms, in 128 bits: equal terms have the same
%% digest and others another one, in this VM and while it lives.
%%
%% A term may share its parts, as expressions do: in memory it is small, but a copy
%% without sharing would not fit into any memory. Comparing, hashing or sending a term,
%% or inserting it into a table, loses the sharing. A digest keeps it, so keys contain
%% digests of users' functions and terms.
-module(tessera_digest).
-export([of_term/1, of_function/1, weigh/1, is_small/1, outline/1, with_tensors/1, with_code/1, form/1]).
-export([version/1, versions/1, are_current/1, current/2]).
-export_type([digest/0, versions/0]).

%% 16 MB: copying a larger value out of a table takes as long as making it
%% again.
-define(MAX_WORDS, (16 * 1024 * 1024 div 8)).
%% Limit for terms that are printed or sent as they are: 1 MB.
-define(MAX_SHOWN_WORDS, (1024 * 1024 div 8)).
-define(OUTLINE_DEPTH, 4).
-define(OUTLINE_ITEMS, 8).

-type digest() :: <<_:128>>.
%% Modules, and their versions when something was made of their code.
-type versions() :: [{module(), Version :: term()}].

-spec of_term(term()) -> digest() | tessera_nif:error().
of_term(Term) -> first(walk(Term, plain)).

%% The same for a function; faster, since one walk is enough if it holds no other functions.
-spec of_function(function()) -> digest() | tessera_nif:error().
of_function(F) -> first(walk(code(F), plain)).

%% The size in bytes of a copy of the term without sharing, with its binaries; `infinity' if a table should not hold it.
-spec weigh(term()) -> non_neg_integer() | infinity.
weigh(Term) ->
    case walk(Term, plain) of
        {_, Words, Bytes, _, _} when Words =< ?MAX_WORDS -> Words * 8 + Bytes;
        _ -> infinity
    end.

%% The term itself, or the outer parts of a term that is too large to print. Functions are printed without their
%% environments.
-spec outline(term()) -> term().
outline(Term) ->
    case is_small(Term) of
        true -> Term;
        false -> cut(Term, ?OUTLINE_DEPTH)
    end.

%% True when the term can be printed, or sent with the reason of an exit: both take as long as a copy.
-spec is_small(term()) -> boolean().
is_small(Term) when is_atom(Term); is_number(Term); is_binary(Term) -> true;
is_small(Term) ->
    case walk(Term, plain) of
        {_, Words, _, _, _} -> Words =< ?MAX_SHOWN_WORDS;
        {error, _} -> false
    end.

cut(Term, 0) when is_tuple(Term), Term =/= {}; is_map(Term), map_size(Term) > 0; is_list(Term), Term =/= [] -> '...';
cut(Tuple, Depth) when is_tuple(Tuple) -> list_to_tuple(cut_list(tuple_to_list(Tuple), Depth, ?OUTLINE_ITEMS));
cut(List, Depth) when is_list(List) -> cut_list(List, Depth, ?OUTLINE_ITEMS);
cut(Map, Depth) when is_map(Map) -> cut_map(maps:next(maps:iterator(Map)), Depth, ?OUTLINE_ITEMS);
cut(Other, _) -> Other.

cut_list([_ | _], _, 0) -> ['...'];
cut_list([Item | Rest], Depth, Left) -> [cut(Item, Depth - 1) | cut_list(Rest, Depth, Left - 1)];
cut_list([], _, _) -> [];
cut_list(Tail, Depth, _) -> cut(Tail, Depth - 1).

%% A map without all fields of the struct is not that struct.
cut_map(none, _, _) -> #{};
cut_map(_, _, 0) -> #{'...' => '...'};
cut_map({'__struct__', _, Iterator}, Depth, Left) -> cut_map(maps:next(Iterator), Depth, Left);
cut_map({Key, Value, Iterator}, Depth, Left) ->
    (cut_map(maps:next(Iterator), Depth, Left - 1))#{cut(Key, Depth - 1) => cut(Value, Depth - 1)}.

%% The digest of a function; tensors count by type, shape and identity; and those tensors, each once.
-spec with_tensors(function()) -> {digest(), [tessera_type:tensor()]} | tessera_nif:error().
with_tensors(F) ->
    case walk(code(F), tensors) of
        {Digest, _, _, Tensors, _} -> {Digest, Tensors};
        {error, _} = Error -> Error
    end.

%% The same, with the modules of functions that it finds by their names: a new version of such a module has another function, while
%% the code of others stays.
-spec with_code(function()) -> {digest(), [tessera_type:tensor()], versions()} | tessera_nif:error().
with_code(F) ->
    case walk(code(F), tensors) of
        {Digest, _, _, Tensors, Functions} -> {Digest, Tensors, versions_of([G || G <- [F | Functions], is_named(G)])};
        {error, _} = Error -> Error
    end.

is_named(F) -> erlang:fun_info(F, type) =:= {type, external}.

%% The modules of all functions in a term.
-spec versions(term()) -> versions() | tessera_nif:error().
versions(Term) ->
    case walk(Term, plain) of
        {_, _, _, _, Functions} -> versions_of(Functions);
        {error, _} = Error -> Error
    end.

versions_of(Functions) ->
    Modules = lists:usort([element(2, erlang:fun_info(F, module)) || F <- Functions]),
    [{Module, version(Module)} || Module <- Modules].

%% True when all modules have these versions. Each takes 20 ns.
-spec are_current(versions()) -> boolean().
are_current([{Module, Version} | Rest]) ->
    try Module:module_info(md5) of
        Version -> are_current(Rest);
        _ -> false
    catch error:undef -> Version =:= none andalso are_current(Rest)
    end;
are_current([]) -> true.

%% The part of a key for a function: another one when one of the modules has another version than it had.
-spec current(Id, versions()) -> Id | nonempty_improper_list(Id, versions()).
current(Id, Versions) ->
    case are_current(Versions) of
        true -> Id;
        false -> [Id | [{Module, version(Module)} || {Module, _} <- Versions]]
    end.

%% The digest of a function or another term; Nx tensors count by type and shape.
-spec form(term()) -> digest() | tessera_nif:error().
form(Term) -> first(walk(Term, forms)).

first({Digest, _, _, _, _}) -> Digest;
first({error, _} = Error) -> Error.

walk(Term, Mode) -> go_on(tessera_nif:digest(Term, Mode), [], []).

%% Only Erlang can read the environment of a function, so the native walk returns the functions that it
%% finds, until there are no more.
go_on({more, Unfinished, Functions, New}, Tensors, Found) ->
    go_on(tessera_nif:digest_more(Unfinished, [code(F) || F <- Functions]), [New | Tensors], [Functions | Found]);
go_on({Digest, Words, Bytes, New}, Tensors, Found) ->
    {Digest, Words, Bytes, lists:append(lists:reverse(Tensors, [New])), lists:append(Found)};
go_on({error, _} = Error, _, _) -> Error.

%% The identity of a function: its code and its environment. A new version of a module has new
%% functions.
code(F) ->
    {module, Module} = erlang:fun_info(F, module),
    {arity, Arity} = erlang:fun_info(F, arity),
    case erlang:fun_info(F, type) of
        {type, local} ->
            [{_, Index}, {_, Unique}, {_, Environment}] = [erlang:fun_info(F, Item) || Item <- [new_index, new_uniq, env]],
            [Module, Index, Unique, Arity | Environment];
        {type, external} ->
            {name, Name} = erlang:fun_info(F, name),
            [Module, Name, Arity | version(Module)]
    end.

%% Distinguishes the loaded version of a module from earlier ones. Loads a module that exists but is not loaded.
-spec version(module()) -> term().
version(Module) ->
    case erlang:module_loaded(Module) orelse code:ensure_loaded(Module) =:= {module, Module} of
        true -> Module:module_info(md5);
        false -> none
    end.
