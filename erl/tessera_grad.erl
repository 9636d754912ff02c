-module(tessera_grad).
-export([grad/1, value_and_grad/1]).
grad(F) -> F.
value_and_grad(F) -> F.
