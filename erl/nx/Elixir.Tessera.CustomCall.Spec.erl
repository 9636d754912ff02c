-module('Elixir.Tessera.CustomCall.Spec').
-include("tessera_nx_doc.hrl").
?MODULEDOC("What `Tessera.CustomCall.call/4` answers: the field `call_target_name` is the name of a plugin's target, `attributes` a\n"
     "list of names with values, and `operand_element_types` a list of the types to which inputs are converted first, or\n"
     "`:default`. A value is an integer, a float, a boolean or a list of integers, or a text of MLIR for one of these, such as\n"
     "`\"42 : i64\"`, `\"[1, 2]\"`, or a string between quotation marks.").

-define(FIELDS, #{call_target_name => nil, attributes => [], operand_element_types => default}).
-include("tessera_nx_struct.hrl").
