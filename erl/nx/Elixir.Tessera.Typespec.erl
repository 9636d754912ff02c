-module('Elixir.Tessera.Typespec').
-include("tessera_nx_doc.hrl").
?MODULEDOC("Type and shape of a buffer.").
-export(['__struct__'/0, '__struct__'/1, '__info__'/1, tensor/2, to_type/2, to_shape/2]).

-define(FIELDS, #{type => nil, shape => nil}).

-spec '__struct__'() -> map().
'__struct__'() -> '__struct__'([]).

-spec '__struct__'([{atom(), term()}] | map()) -> map().
'__struct__'(Fields) -> tessera_nx_struct:new(?MODULE, ?FIELDS, Fields).

-spec '__info__'(atom()) -> term().
'__info__'(Item) -> tessera_nx_struct:info(?MODULE, ?FIELDS, Item).

?DOC("The type and shape of a tensor:\n\n    Tessera.Typespec.tensor({:f, 32}, {2, 3})").
-spec tensor(tuple(), tuple()) -> map().
tensor(Type, Shape) -> '__struct__'([{type, Type}, {shape, Shape}]).

?DOC("With another type.").
-spec to_type(map(), tuple()) -> map().
to_type(Typespec, Type) -> Typespec#{type := Type}.

?DOC("With another shape.").
-spec to_shape(map(), tuple()) -> map().
to_shape(Typespec, Shape) -> Typespec#{shape := Shape}.
