%% Serves a network that was trained in PyTorch. Its program is a file of StableHLO, for a batch of any size, and its weights are a file of
%% safetensors: torch_digits.py made both. No Python is needed here.
%%
%%   make example E=torch_digits
-module(torch_digits).
-export([main/0, network/0, answers/0]).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    Network = network(),
    {Known, Expected} = answers(),
    Worst = tessera:to_number(tessera:reduce_max(tessera:abs(tessera:subtract(Network(Known), Expected)))),
    io:format("the largest difference from PyTorch's answers: ~.2e~n", [Worst]),
    Worst < 1.0e-5 orelse error({other_answers, Worst}),
    {_, Unseen} = lists:split(1500, digits()),
    {Pixels, Labels} = lists:unzip(Unseen),
    Guessed = tessera:to_list(tessera:argmax(Network(tessera:tensor(Pixels, f32)), #{axis => 1})),
    Right = length([same || {Label, Label} <- lists:zip(Labels, Guessed)]),
    io:format("~b of ~b digits that it has not seen are right~n", [Right, length(Unseen)]).

%% The arguments of the program are the weights, in the order of their names, and the digits.
network() ->
    F = tessera_stablehlo:load(data("torch_digits.vhlo")),
    Weights = [Weight || {_, Weight} <- lists:sort(maps:to_list(tessera_io:load(data("torch_digits.safetensors"))))],
    fun(Digits) ->
            [Probabilities] = F(Weights ++ [Digits]),
            Probabilities
    end.

%% Some digits, and what PyTorch answered.
answers() ->
    #{<<"digits">> := Digits, <<"answers">> := Answers} = tessera_io:load(data("torch_digits_answers.safetensors")),
    {Digits, Answers}.

digits() ->
    {ok, Zipped} = file:read_file(data("digits.csv.gz")),
    [begin
         {Pixels, [Label]} = lists:split(64, [binary_to_integer(N) || N <- binary:split(string:trim(Line), <<",">>, [global])]),
         {Pixels, Label}
     end || Line <- binary:split(zlib:gunzip(Zipped), <<"\n">>, [global, trim_all])].

data(Name) -> filename:join([filename:dirname(code:which(tessera)), "..", "examples", "data", Name]).
