%% Serves a network that was trained in flax. Its program is a file of StableHLO, for a batch of any size, and its weights are a file of
%% safetensors: flax_digits.py made both. No Python is needed here. Many processes ask the network, each with batches of its own size.
%%
%%   make example E=flax_digits
-module(flax_digits).
-export([main/0, network/0, answers/0]).
-export([main/2, network/1, answers/1]). % of another network of digits (torch_digits.erl)

main() -> main("flax_digits", "XLA's").

main(Name, Whose) ->
    {ok, _} = application:ensure_all_started(tessera),
    Network = network(Name),
    {Known, Expected} = answers(Name),
    Worst = tessera:to_number(tessera:reduce_max(tessera:abs(tessera:subtract(Network(Known), Expected)))),
    io:format("the largest difference from ~s answers: ~.2e~n", [Whose, Worst]),
    Worst < 1.0e-5 orelse error({other_answers, Worst}),
    {_, Unseen} = lists:split(1500, digits()),
    {Time, Right} = timer:tc(fun() -> lists:sum(ask_in_parallel(Network, parts(Unseen, 1))) end),
    io:format("~b of ~b digits that it has not seen are right, in ~b ms~n", [Right, length(Unseen), Time div 1000]).

%% The arguments of the program are the weights, in the order of their names, and the digits.
network() -> network("flax_digits").

network(Name) ->
    F = tessera_stablehlo:load(data(Name ++ ".vhlo")),
    Weights = [Weight || {_, Weight} <- lists:sort(maps:to_list(tessera_io:load(data(Name ++ ".safetensors"))))],
    fun(Digits) ->
            [Probabilities] = F(Weights ++ [Digits]),
            Probabilities
    end.

%% Some digits, and the answers to them where the network was trained.
answers() -> answers("flax_digits").

answers(Name) ->
    #{<<"digits">> := Digits, <<"answers">> := Answers} = tessera_io:load(data(Name ++ "_answers.safetensors")),
    {Digits, Answers}.

ask_in_parallel(Network, Parts) ->
    Self = self(),
    Askers = [spawn_link(fun() -> Self ! {self(), right(Network, Part)} end) || Part <- Parts],
    [receive {Asker, Right} -> Right end || Asker <- Askers].

right(Network, Part) ->
    {Pixels, Labels} = lists:unzip(Part),
    Guessed = tessera:argmax(Network(tessera:tensor(Pixels, f32)), #{axis => 1}),
    length([same || {Label, Label} <- lists:zip(Labels, tessera:to_list(Guessed))]).

%% Batches of 1, 2, 3, ... digits.
parts([], _) -> [];
parts(Digits, Size) ->
    {Part, Rest} = lists:split(min(Size, length(Digits)), Digits),
    [Part | parts(Rest, Size + 1)].

digits() ->
    {ok, Zipped} = file:read_file(data("digits.csv.gz")),
    [begin
         {Pixels, [Label]} = lists:split(64, [binary_to_integer(N) || N <- binary:split(string:trim(Line), <<",">>, [global])]),
         {Pixels, Label}
     end || Line <- binary:split(zlib:gunzip(Zipped), <<"\n">>, [global, trim_all])].

data(Name) -> filename:join([filename:dirname(code:which(tessera)), "..", "examples", "data", Name]).
