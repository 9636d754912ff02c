%% Serves a network that was trained in PyTorch, as flax_digits.erl serves one of flax: only the files differ, which torch_digits.py made.
%%
%%   make example E=torch_digits
-module(torch_digits).
-export([main/0, network/0, answers/0]).

main() -> flax_digits:main("torch_digits", "PyTorch's").

network() -> flax_digits:network("torch_digits").

answers() -> flax_digits:answers("torch_digits").
