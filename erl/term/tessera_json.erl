%% @private JSON (RFC 8259) as headers of files and traces need it. OTP has a module for it only from 27 on. Strings are binaries in UTF-8, and an
%% object is a list of pairs in the order of the text, so that a name that comes twice is seen.
-module(tessera_json).
-export([decode/1, encode/1]).
-export_type([value/0]).

-type value() :: null | boolean() | number() | binary() | [value()] | {object, [{binary(), value()}]}.
%% Most levels of nesting in a text.
-define(DEPTH, 200).

%% The value of a whole text; `error' without one.
-spec decode(binary()) -> {ok, value()} | error.
decode(Text) ->
    try value(space(Text), ?DEPTH) of
        {Value, Rest} ->
            case space(Rest) of
                <<>> -> {ok, Value};
                _ -> error
            end
    catch throw:bad -> error
    end.

space(<<C, Rest/binary>>) when C =:= $\s; C =:= $\t; C =:= $\n; C =:= $\r -> space(Rest);
space(Text) -> Text.

value(_, 0) -> throw(bad);
value(<<"null", Rest/binary>>, _) -> {null, Rest};
value(<<"true", Rest/binary>>, _) -> {true, Rest};
value(<<"false", Rest/binary>>, _) -> {false, Rest};
value(<<$", Rest/binary>>, _) -> string(Rest, []);
value(<<$[, Rest/binary>>, Depth) -> array(space(Rest), Depth - 1);
value(<<${, Rest/binary>>, Depth) -> object(space(Rest), Depth - 1);
value(Text, _) -> number(Text).

array(<<$], Rest/binary>>, _) -> {[], Rest};
array(Text, Depth) -> items(Text, Depth, []).

items(Text, Depth, Items) ->
    {Item, Rest} = value(Text, Depth),
    case space(Rest) of
        <<$,, More/binary>> -> items(space(More), Depth, [Item | Items]);
        <<$], More/binary>> -> {lists:reverse(Items, [Item]), More};
        _ -> throw(bad)
    end.

object(<<$}, Rest/binary>>, _) -> {{object, []}, Rest};
object(Text, Depth) -> pairs(Text, Depth, []).

pairs(Text, Depth, Pairs) ->
    {Key, Rest} = key(Text),
    {Value, Rest1} = value(space(Rest), Depth),
    case space(Rest1) of
        <<$,, More/binary>> -> pairs(space(More), Depth, [{Key, Value} | Pairs]);
        <<$}, More/binary>> -> {{object, lists:reverse(Pairs, [{Key, Value}])}, More};
        _ -> throw(bad)
    end.

key(<<$", Text/binary>>) ->
    {Key, Rest} = string(Text, []),
    case space(Rest) of
        <<$:, More/binary>> -> {Key, More};
        _ -> throw(bad)
    end;
key(_) -> throw(bad).

%% Runs of plain characters are parts of the text.
string(Text, Parts) ->
    Length = plain(Text, 0),
    <<Plain:Length/binary, Rest/binary>> = Text,
    case Rest of
        <<$", More/binary>> -> {utf8(iolist_to_binary(lists:reverse(Parts, [Plain]))), More};
        <<$\\, More/binary>> ->
            {Character, More1} = escaped(More),
            string(More1, [Character, Plain | Parts]);
        _ -> throw(bad)
    end.

plain(Text, At) ->
    case Text of
        <<_:At/binary, C, _/binary>> when C >= $\s, C =/= $", C =/= $\\ -> plain(Text, At + 1);
        _ -> At
    end.

utf8(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        Bytes -> Bytes;
        _ -> throw(bad)
    end.

escaped(<<$u, Rest/binary>>) ->
    case hex(Rest) of
        {High, <<"\\u", More/binary>>} when High >= 16#D800, High < 16#DC00 ->
            {Low, More1} = hex(More),
            Low >= 16#DC00 andalso Low < 16#E000 orelse throw(bad),
            {<<(16#10000 + (High - 16#D800) * 16#400 + Low - 16#DC00)/utf8>>, More1};
        {Code, _} when Code >= 16#D800, Code < 16#E000 -> throw(bad);
        {Code, More} -> {<<Code/utf8>>, More}
    end;
escaped(<<C, Rest/binary>>) ->
    case lists:keyfind(C, 1, [{$", $"}, {$\\, $\\}, {$/, $/}, {$b, $\b}, {$f, $\f}, {$n, $\n}, {$r, $\r}, {$t, $\t}]) of
        {_, Character} -> {<<Character>>, Rest};
        false -> throw(bad)
    end;
escaped(<<>>) -> throw(bad).

hex(<<Digits:4/binary, Rest/binary>>) ->
    try {binary_to_integer(Digits, 16), Rest}
    catch error:badarg -> throw(bad)
    end;
hex(_) -> throw(bad).

number(Text) ->
    case re:run(Text, "^-?(?:0|[1-9][0-9]{0,400})(\\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?", [{capture, all, binary}]) of
        {match, [All]} -> {binary_to_integer(All), rest(Text, All)};
        {match, [All, Fraction]} -> {float(All, All, Fraction, <<>>), rest(Text, All)};
        {match, [All, Fraction, Exponent]} -> {float(All, All, Fraction, Exponent), rest(Text, All)};
        nomatch -> throw(bad)
    end.

rest(Text, Part) -> binary:part(Text, byte_size(Part), byte_size(Text) - byte_size(Part)).

%% Erlang's floats have a fraction in their text.
float(_, All, <<>>, Exponent) ->
    Whole = binary:part(All, 0, byte_size(All) - byte_size(Exponent)),
    to_float(<<Whole/binary, ".0", Exponent/binary>>);
float(_, All, _, _) -> to_float(All).

to_float(Text) ->
    try binary_to_float(Text)
    catch error:badarg -> throw(bad)
    end.

%% ---- writing

-spec encode(value()) -> iolist().
encode(Atom) when is_atom(Atom) -> [atom_to_binary(Atom)];
encode(N) when is_integer(N) -> [integer_to_binary(N)];
encode(N) when is_float(N) -> io_lib:format("~w", [N]);
encode(Text) when is_binary(Text) -> [$", quoted(Text), $"];
encode({object, Pairs}) -> [${, lists:join($,, [[encode(Key), $:, encode(Value)] || {Key, Value} <- Pairs]), $}];
encode(Items) -> [$[, lists:join($,, [encode(Item) || Item <- Items]), $]].

quoted(Text) -> << <<(escape(C))/binary>> || <<C>> <= Text >>.

escape($") -> <<"\\\"">>;
escape($\\) -> <<"\\\\">>;
escape(C) when C < $\s -> iolist_to_binary(io_lib:format("\\u~4.16.0b", [C]));
escape(C) -> <<C>>.
