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

%% The answers of '__info__'/1.
-spec info(module(), map(), atom()) -> term().
info(Module, _, module) -> Module;
info(_, Defaults, struct) when map_size(Defaults) =:= 0 -> nil;
info(_, Defaults, struct) ->
    [#{field => Field, default => Default, required => false} || {Field, Default} <- lists:sort(maps:to_list(Defaults))];
info(Module, _, functions) ->
    [F || {Name, _} = F <- Module:module_info(exports), not lists:member(Name, [module_info, '__info__'])];
info(_, _, macros) -> [];
info(Module, _, attributes) -> Module:module_info(attributes);
info(Module, _, compile) -> Module:module_info(compile);
info(Module, _, md5) -> Module:module_info(md5);
info(_, _, _) -> nil.
