%% @private Tensors as aligned text, by the options of tessera:format/2 and print/2.
-module(tessera_table).
-include("tessera.hrl").
-export([format/3]).

-define(OPTIONS, #{precision => 4, threshold => 1000, edge => 3, columns => 80}).

-record(layout, {columns :: pos_integer(), width :: non_neg_integer(), cut :: #{non_neg_integer() => true}, edge :: pos_integer()}).

%% For the function Name of tessera.
-spec format(format | print, tessera:tensor(), map()) -> iolist().
format(Name, #tessera{} = Given, Options) ->
    #tessera{ref = Ref, type = Type, shape = Shape} = Tensor = tessera_operand:operand(Name, Given),
    Checked = checked(Name, Tensor, Options),
    Title = tessera_type:format(Type, Shape),
    case is_reference(Ref) of
        false -> [Title, " (traced)"];
        true -> [Title, case Shape of {} -> " "; _ -> "\n" end, content(Tensor, Checked)]
    end;
format(Name, Other, _) -> tessera_array:no_tensor(Name, Other).

checked(Function, Tensor, Options) ->
    All = tessera_ops:options(Function, [Tensor, Options], Options, ?OPTIONS),
    _ = [is_integer(Value) andalso Value >= Least andalso Value =< Most orelse
             tessera_error:raise(Function, [Tensor, Options], invalid_argument, "~s: ~s is ~ts, expected a number from ~b to ~b",
                                 [Function, Name, tessera_error:show(Value), Least, Most])
         || {Name, Least, Most} <- [{precision, 0, 20}, {threshold, 0, 1000000}, {edge, 1, 1000}, {columns, 1, 100000}], Value <- [maps:get(Name, All)]],
    All.

%% A large tensor is shown by the first and last elements of each axis.
content(#tessera{shape = Shape} = Tensor, #{threshold := Threshold, edge := Edge} = Options) ->
    Cut = case tessera:size(Tensor) > Threshold of
              true -> [Axis || {Axis, Size} <- lists:enumerate(0, tuple_to_list(Shape)), Size > 2 * Edge];
              false -> []
          end,
    Shown = lists:foldl(fun(Axis, T) -> ends(T, Axis, Edge) end, Tensor, lists:sort(fun(A, B) -> element(A + 1, Shape) >= element(B + 1, Shape) end, Cut)),
    #tessera{shape = ShownShape, type = Type} = Shown,
    Texts = texts(Type, tessera:to_list(tessera:flatten(Shown)), Options),
    Layout = #layout{columns = maps:get(columns, Options), width = lists:max([0 | [length(Text) || Text <- Texts]]), cut = maps:from_keys(Cut, true), edge = Edge},
    {Text, []} = level(tuple_to_list(ShownShape), 0, Texts, Layout),
    Text.

ends(#tessera{shape = Shape} = T, Axis, Edge) ->
    Size = element(Axis + 1, Shape),
    tessera:take(T, tessera:tensor(lists:seq(0, Edge - 1) ++ lists:seq(Size - Edge, Size - 1), s64), #{axis => Axis}).

%% ---- numbers

texts(Type, Numbers, #{precision := Precision}) ->
    case tessera_type:is_complex_type(Type) of
        true ->
            Form = form([Part || {complex, Re, Im} <- Numbers, Part <- [Re, Im]], Precision),
            [complex(Number, Form) || Number <- Numbers];
        false ->
            Form = form(Numbers, Precision),
            [number(Number, Form) || Number <- Numbers]
    end.

%% Decimals where the numbers have about the same size, else with exponents.
form(Numbers, Precision) ->
    Sizes = [abs(N) || N <- Numbers, is_float(N), N /= 0],
    case Sizes =/= [] andalso (lists:max(Sizes) >= 1.0e8 orelse lists:min(Sizes) < 1.0e-4 orelse lists:max(Sizes) / lists:min(Sizes) > 1.0e6) of
        true -> [{scientific, Precision}];
        false -> [{decimals, Precision}]
    end.

number(N, _) when is_integer(N) -> integer_to_list(N);
number(N, Form) when is_float(N) -> float_to_list(N, Form);
number(N, _) when is_atom(N) -> atom_to_list(N).

complex({complex, Re, Im}, Form) ->
    case number(Im, Form) of
        [$- | _] = Negative -> number(Re, Form) ++ Negative ++ "i";
        "neg_infinity" -> number(Re, Form) ++ "-infinityi";
        Text -> number(Re, Form) ++ "+" ++ Text ++ "i"
    end.

%% ---- rows: aligned, and broken at the width

level([], _, [Text | Rest], _) -> {Text, Rest};
level([Size], Axis, Texts, Layout) ->
    {Row, Rest} = lists:split(Size, Texts),
    {[$[, lines([string:pad(Text, Layout#layout.width, leading) || Text <- Row], Axis, Layout), $]], Rest};
level([Size | Dims], Axis, Texts, Layout) ->
    {Parts, Rest} = lists:mapfoldl(fun(_, Left) -> level(Dims, Axis + 1, Left, Layout) end, Texts, lists:seq(1, Size)),
    Gap = [$,, lists:duplicate(max(1, length(Dims)), $\n), spaces(Axis + 1)],
    {[$[, lists:join(Gap, with_dots(Parts, "...", Axis, Layout)), $]], Rest}.

with_dots(Parts, Dots, Axis, #layout{cut = Cut, edge = Edge}) when is_map_key(Axis, Cut) ->
    {First, Last} = lists:split(Edge, Parts),
    First ++ [Dots | Last];
with_dots(Parts, _, _, _) -> Parts.

%% The brackets before and after take a column for each axis.
lines(Row, Axis, #layout{columns = Columns} = Layout) ->
    All = with_dots(Row, "...", Axis, Layout),
    fill(All, Axis + 1, Columns - Axis - 1, Axis + 1, []).

fill([], _, _, _, Acc) -> lists:reverse(Acc);
fill([Text | Rest], At, Columns, Indent, []) -> fill(Rest, At + string:length(Text), Columns, Indent, [Text]);
fill([Text | Rest], At, Columns, Indent, Acc) ->
    Length = string:length(Text),
    case At + 2 + Length > Columns of
        true -> fill(Rest, Indent + Length, Columns, Indent, [[",\n", spaces(Indent), Text] | Acc]);
        false -> fill(Rest, At + 2 + Length, Columns, Indent, [[", ", Text] | Acc])
    end.

spaces(N) -> lists:duplicate(N, $\s).
