%% Principal components of handwritten digits, by singular values: how much of the variance each component has, and the
%% digits in the plane of the first two.
%%
%%   make example E=pca
-module(pca).
-export([main/0]).

-define(SHOWN, 8).
-define(WIDTH, 72).
-define(HEIGHT, 24).

main() ->
    {ok, _} = application:ensure_all_started(tessera),
    {Pixels, Labels} = lists:unzip(digits()),
    X = tessera:tensor(Pixels, f32),
    Fit = tessera:jit(fun fit/1),
    {Micros, {Shares, Points}} = timer:tc(fun() -> Fit(X) end),
    io:format("~b digits of ~b pixels, first call ~.1f ms~n~n", [length(Pixels), length(hd(Pixels)), Micros / 1000]),
    _ = lists:foldl(fun({N, Share}, Sum) ->
                            io:format("component ~b  ~5.1f %  ~5.1f % together~n", [N, 100 * Share, 100 * (Sum + Share)]),
                            Sum + Share
                    end, 0.0, lists:zip(lists:seq(1, ?SHOWN), lists:sublist(tessera:to_list(Shares), ?SHOWN))),
    draw(lists:zip(tessera:to_list(Points), Labels)).

%% The share of each component in the variance, and the points in the first two components.
fit(X) ->
    Centred = tessera:subtract(X, tessera:mean(X, #{axes => [0], keep_axes => true})),
    {U, S, _} = tessera:svd(Centred),
    Variances = tessera:multiply(S, S),
    {N, _} = tessera:shape(U),
    Plane = tessera:multiply(tessera:slice(U, [0, 0], [N, 2]), tessera:slice(S, [0], [2])),
    {tessera:divide(Variances, tessera:sum(Variances)), Plane}.

%% Each place of the terminal shows the last digit that falls on it.
draw(Points) ->
    {Xs, Ys} = lists:unzip([{X, Y} || {[X, Y], _} <- Points]),
    Places = maps:from_list([{{place(Y, Ys, ?HEIGHT), place(X, Xs, ?WIDTH)}, $0 + Label} || {[X, Y], Label} <- Points]),
    io:format("~n"),
    [io:format("~s~n", [[maps:get({Row, Column}, Places, $\s) || Column <- lists:seq(0, ?WIDTH)]])
     || Row <- lists:seq(0, ?HEIGHT)],
    ok.

place(X, All, Size) ->
    {Least, Most} = {lists:min(All), lists:max(All)},
    round((X - Least) / (Most - Least) * Size).

digits() ->
    {ok, Packed} = file:read_file(filename:join([filename:dirname(code:which(tessera)), "..", "examples", "data", "digits.csv.gz"])),
    [begin
         Numbers = [binary_to_integer(string:trim(Field)) || Field <- binary:split(Line, <<",">>, [global])],
         {lists:droplast(Numbers), lists:last(Numbers)}
     end || Line <- binary:split(zlib:gunzip(Packed), <<"\n">>, [global, trim_all])].
