%% @private The functions that Elixir expects of a module that defines a struct.
-module(tessera_nx_struct).
-export([new/3, info/3]).

%% A struct with these fields; missing ones have defaults.
-spec new(module(), map(), [{atom(), term()}] | map()) -> map().
new(Module, Defaults, Fields) ->
    Given = maps:from_list([Field || Field <- to_list(Fields)]),
    case maps:keys(maps:without(maps:keys(Defaults), Given)) of
        [] -> maps:merge(Defaults#{'__struct__' => Module}, Given);
        [Key | _] -> error({badkey, Key})
    end.

to_list(Map) when is_map(Map) -> maps:to_list(Map);
to_list(List) -> List.

%% What '__info__'/1 returns in modules that Elixir has compiled. Any other item raises function_clause, as there.
-spec info(module(), map(), atom()) -> term().
info(Module, _, module) -> Module;
info(_, Defaults, struct) when map_size(Defaults) =:= 0 -> nil;
info(_, Defaults, struct) ->
    [#{field => Field, default => Default, required => false} || {Field, Default} <- lists:sort(maps:to_list(Defaults))];
info(Module, _, functions) ->
    lists:sort([F || {Name, _} = F <- Module:module_info(exports), not lists:member(Name, [module_info, behaviour_info, '__info__'])]);
info(_, _, macros) -> [];
info(_, _, deprecated) -> [];
%% It changes when what other modules may use of this one changes.
info(Module, Defaults, exports_md5) ->
    Exports = [info(Module, Defaults, Item) || Item <- [functions, macros, deprecated, struct]],
    erlang:md5(term_to_binary(Exports, [deterministic]));
info(Module, _, Item) when Item =:= attributes; Item =:= compile; Item =:= md5 -> Module:module_info(Item).
