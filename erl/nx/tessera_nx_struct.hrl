%% What Elixir asks of a module that defines a struct, whose fields with their defaults are ?FIELDS.
-export(['__struct__'/0, '__struct__'/1, '__info__'/1]).

?INTERNAL.
-spec '__struct__'() -> map().
'__struct__'() -> '__struct__'([]).

?INTERNAL.
-spec '__struct__'([{atom(), term()}] | map()) -> map().
'__struct__'(Fields) -> tessera_nx_struct:new(?MODULE, ?FIELDS, Fields).

?INTERNAL.
-spec '__info__'(atom()) -> term().
'__info__'(Item) -> tessera_nx_struct:info(?MODULE, ?FIELDS, Item).
