%% @private Tensors as text for people.
-module(tessera_print).
-include("tessera.hrl").
-export([format/1]).

%% Limit for the elements that are shown.
-define(SHOWN, 64).

-spec format(tessera_type:tensor()) -> iolist().
format(#tessera{ref = Ref, type = Type, shape = Shape}) when not is_reference(Ref) ->
    [tessera_type:format(Type, Shape), " (traced)"];
format(#tessera{ref = Ref, type = Type, shape = Shape} = Tensor) ->
    case tessera_remote:read(Ref, ?SHOWN) of
        Bytes when is_binary(Bytes) -> [tessera_type:format(Type, Shape), separator(Shape), content(Bytes, Tensor)];
        {error, #{message := Message}} -> [tessera_type:format(Type, Shape), " (", Message, ")"]
    end.

separator({}) -> " ";
separator(_) -> "\n".

content(Bytes, #tessera{type = Type, shape = Shape}) ->
    Shown = tessera_bits:first(?SHOWN, Shape),
    Numbers = case tessera_nif:from_binary(Bytes, Type, {Shown}, true, {host, 0}) of
                  #tessera{ref = Copy} -> tessera_nif:to_list(Copy);
                  {pressure, #tessera{ref = Copy}} -> tessera_nif:to_list(Copy)
              end,
    {Text, _} = level(tuple_to_list(Shape), [number(Type, N) || N <- Numbers], 0),
    Text.

%% Consumes the list of elements; where that ends, printing stops.
level([], [Text | Rest], _Indent) -> {Text, Rest};
level([Size], Texts, Indent) ->
    {Row, Rest} = lists:split(min(Size, length(Texts)), Texts),
    {[spaces(Indent), $[, lists:join(", ", Row ++ ellipsis(Size, Row)), $]], Rest};
level([Size | Dims], Texts, Indent) ->
    {Parts, Rest} = parts(Size, Dims, Texts, Indent + 2, []),
    Dots = [[spaces(Indent + 2), Dot] || Dot <- ellipsis(Size, Parts)],
    {[spaces(Indent), "[\n", lists:join(",\n", Parts ++ Dots), "\n", spaces(Indent), $]], Rest}.

parts(0, _, Texts, _, Parts) -> {lists:reverse(Parts), Texts};
parts(_, _, [], _, Parts) -> {lists:reverse(Parts), []};
parts(N, Dims, Texts, Indent, Parts) ->
    {Part, Rest} = level(Dims, Texts, Indent),
    parts(N - 1, Dims, Rest, Indent, [Part | Parts]).

ellipsis(Size, Shown) when length(Shown) < Size -> ["..."];
ellipsis(_, _) -> [].

spaces(N) -> lists:duplicate(N, $\s).

number(Type, {complex, Re, Im}) ->
    Part = tessera_type:part(Type),
    [number(Part, Re), sign(Im), number(Part, magnitude(Im)), $i];
number(_, N) when is_atom(N) -> atom_to_list(N);
number(_, N) when is_integer(N) -> integer_to_list(N);
number(f64, N) -> io_lib:format("~p", [N]);
number(Type, N) -> shortest(N, Type, 1).

%% The sign of the imaginary part, also of -0.0, and the part without it.
sign(neg_infinity) -> $-;
sign(Im) when is_float(Im) ->
    <<Sign:1, _/bits>> = <<Im/float>>,
    case Sign of
        0 -> $+;
        1 -> $-
    end;
sign(_) -> $+.

magnitude(neg_infinity) -> infinity;
magnitude(Im) when is_float(Im) -> abs(Im) + 0.0;
magnitude(Im) -> Im.

%% The fewest digits that read back as the same element.
shortest(N, Type, Digits) ->
    Text = io_lib:format("~." ++ integer_to_list(Digits + 1) ++ "g", [N]),
    case Digits >= max_digits(Type) orelse round_trips(N, Text, Type) of
        true -> io_lib:format("~p", [list_to_float(lists:flatten(Text))]);
        false -> shortest(N, Type, Digits + 1)
    end.

max_digits(f32) -> 8;
max_digits(_) -> 4.

round_trips(N, Text, f32) ->
    <<Before:32>> = <<N:32/float>>,
    case <<(list_to_float(lists:flatten(Text))):32/float>> of
        <<Before:32>> -> true;
        _ -> false
    end;
round_trips(_, _, _) -> false.
