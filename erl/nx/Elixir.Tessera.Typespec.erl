-module('Elixir.Tessera.Typespec').
-include("tessera_nx_doc.hrl").
?MODULEDOC("The type and shape of a `Tessera.DeviceBuffer`.").
-export([tensor/2, to_type/2, to_shape/2]).

-define(FIELDS, #{type => nil, shape => nil}).
-include("tessera_nx_struct.hrl").

?DOC("The type and shape of a tensor:\n\n    Tessera.Typespec.tensor({:f, 32}, {2, 3})").
-spec tensor(tuple(), tuple()) -> map().
tensor(Type, Shape) -> '__struct__'([{type, Type}, {shape, Shape}]).

?DOC("The typespec with another type.").
-spec to_type(map(), tuple()) -> map().
to_type(Typespec, Type) -> Typespec#{type := Type}.

?DOC("The typespec with another shape.").
-spec to_shape(map(), tuple()) -> map().
to_shape(Typespec, Shape) -> Typespec#{shape := Shape}.
