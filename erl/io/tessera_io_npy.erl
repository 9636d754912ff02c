%% @private NumPy's .npy (its format 1.0 to 3.0). NumPy has no bf16 and no f8; a file of them by the package ml_dtypes says no type.
-module(tessera_io_npy).
-include("tessera.hrl").
-export([header/1, decode/1, encode/1]).

-define(MAGIC, "\x93NUMPY").
%% The longest header that is read, in bytes.
-define(MOST, 65536).

-type header() :: #{type := tessera:type(), swap := boolean(), fortran := boolean(), shape := tessera:shape(), offset := pos_integer()}.

%% The header of a file, from its first bytes; or how many bytes the header takes, if these are too few.
-spec header(binary()) -> {ok, header()} | {more, pos_integer()}.
header(<<?MAGIC, 1, _, Length:16/little, Rest/binary>>) -> header(10, Length, Rest);
header(<<?MAGIC, V, _, Length:32/little, Rest/binary>>) when V =:= 2; V =:= 3 -> header(12, Length, Rest);
header(<<?MAGIC, V, _:5/binary, _/binary>>) -> tessera_io_file:fail(data_loss, "version ~b of the npy format is not known", [V]);
header(Bytes) when byte_size(Bytes) < 13 -> {more, 13};
header(_) -> tessera_io_file:fail(data_loss, "it does not begin as an npy file", []).

header(_, Length, _) when Length > ?MOST -> tessera_io_file:fail(data_loss, "a header of ~b bytes is too long", [Length]);
header(Before, Length, Rest) when byte_size(Rest) < Length -> {more, Before + Length};
header(Before, Length, Rest) ->
    Text = binary:part(Rest, 0, Length),
    case literal(Text) of
        {dict, Pairs} -> {ok, (checked(Text, maps:from_list(Pairs)))#{offset => Before + Length}};
        _ -> wrong(Text)
    end.

checked(Text, #{<<"descr">> := Descr, <<"fortran_order">> := Fortran, <<"shape">> := {tuple, Sizes}})
  when is_boolean(Fortran) ->
    lists:all(fun(Size) -> is_integer(Size) andalso Size >= 0 end, Sizes) orelse wrong(Text),
    {Type, Swap} = type(Descr),
    #{type => Type, swap => Swap, fortran => Fortran, shape => list_to_tuple(Sizes)};
checked(Text, _) -> wrong(Text).

-spec wrong(binary()) -> no_return().
wrong(Text) -> tessera_io_file:fail(data_loss, "its header is no description of an array: ~tp", [binary:part(Text, 0, min(80, byte_size(Text)))]).

type(<<Order, Code/binary>> = Descr) when Order =:= $<; Order =:= $>; Order =:= $|; Order =:= $= ->
    case lists:keyfind(Code, 2, types()) of
        {Type, _} -> {Type, Order =:= foreign()};
        false -> no_type(Descr)
    end;
type(Descr) -> no_type(Descr).

-spec no_type(term()) -> no_return().
no_type(<<_, "V", _/binary>> = Descr) ->
    tessera_io_file:fail(unimplemented, "NumPy's ~ts says no type: bf16 and f8 are kept by safetensors", [Descr]);
no_type(Descr) when is_binary(Descr) -> tessera_io_file:fail(unimplemented, "arrays of NumPy's type ~ts cannot be tensors", [Descr]);
no_type(_) -> tessera_io_file:fail(unimplemented, "arrays of records cannot be tensors", []).

types() ->
    [{u8, <<"u1">>}, {u8, <<"b1">>}, {s8, <<"i1">>}, {s16, <<"i2">>}, {s32, <<"i4">>}, {s64, <<"i8">>}, {u16, <<"u2">>}, {u32, <<"u4">>},
     {u64, <<"u8">>}, {f16, <<"f2">>}, {f32, <<"f4">>}, {f64, <<"f8">>}, {c64, <<"c8">>}, {c128, <<"c16">>}].

foreign() ->
    case <<1:16/native>> of
        <<1:16/little>> -> $>;
        _ -> $<
    end.

%% ---- the header: a literal of Python, with strings, integers, booleans, tuples, lists and dicts

literal(Text) ->
    try value(tokens(Text)) of
        {Value, []} -> Value;
        _ -> error
    catch throw:bad -> error
    end.

tokens(Text) ->
    {match, Found} = re:run(<<Text/binary, " ">>, "'[^'\\\\]*'|\"[^\"\\\\]*\"|[0-9]{1,19}L?|True|False|None|[{}()\\[\\]:,]|\\s+|.",
                            [global, {capture, first, binary}, dotall]),
    [Token || [<<C, _/binary>> = Token] <- Found, not lists:member(C, " \n\t\r")].

value([<<"{">> | Rest]) -> pairs(Rest, []);
value([<<"(">> | Rest]) -> items(Rest, <<")">>, tuple, []);
value([<<"[">> | Rest]) -> items(Rest, <<"]">>, list, []);
value([<<"True">> | Rest]) -> {true, Rest};
value([<<"False">> | Rest]) -> {false, Rest};
value([<<"None">> | Rest]) -> {none, Rest};
value([<<Quote, Text/binary>> | Rest]) when Quote =:= $'; Quote =:= $" -> {binary:part(Text, 0, max(0, byte_size(Text) - 1)), Rest};
value([<<C, _/binary>> = Digits | Rest]) when C >= $0, C =< $9 -> {binary_to_integer(string:trim(Digits, trailing, "L")), Rest};
value(_) -> throw(bad).

items([Close | Rest], Close, Kind, Items) -> {{Kind, lists:reverse(Items)}, Rest};
items(Tokens, Close, Kind, Items) ->
    case value(Tokens) of
        {Item, [<<",">> | Rest]} -> items(Rest, Close, Kind, [Item | Items]);
        {Item, [Close | _] = Rest} -> items(Rest, Close, Kind, [Item | Items]);
        _ -> throw(bad)
    end.

pairs([<<"}">> | Rest], Pairs) -> {{dict, lists:reverse(Pairs)}, Rest};
pairs(Tokens, Pairs) ->
    case value(Tokens) of
        {Key, [<<":">> | Rest]} ->
            case value(Rest) of
                {Value, [<<",">> | More]} -> pairs(More, [{Key, Value} | Pairs]);
                {Value, [<<"}">> | _] = More} -> pairs(More, [{Key, Value} | Pairs]);
                _ -> throw(bad)
            end;
        _ -> throw(bad)
    end.

%% ---- contents

%% The type and the shape of a whole file, and a function that makes its tensor.
-spec decode(binary()) -> {tessera:type(), tessera:shape(), fun(() -> tessera:tensor())}.
decode(File) ->
    case header(File) of
        {ok, #{type := Type, shape := Shape, offset := Offset} = Header} ->
            Size = tessera_type:bits(Type) div 8 * tessera_type:elements(Shape),
            byte_size(File) - Offset >= Size orelse
                tessera_io_file:fail(data_loss, "it ends after ~b bytes, and ~s takes ~b after a header of ~b",
                                     [byte_size(File), tessera_type:format(Type, Shape), Size, Offset]),
            {Type, Shape, fun() -> make(binary:part(File, Offset, Size), Header) end};
        {more, Needed} -> tessera_io_file:fail(data_loss, "it ends after ~b bytes, and its header takes ~b", [byte_size(File), Needed])
    end.

make(Bytes, #{swap := true, type := Type} = Header) -> make(swapped(Bytes, Type), Header#{swap := false});
make(Bytes, #{fortran := true, type := Type, shape := Shape}) when tuple_size(Shape) > 1 ->
    tessera:transpose(tessera_io_file:tensor(Bytes, Type, list_to_tuple(lists:reverse(tuple_to_list(Shape)))));
make(Bytes, #{type := Type, shape := Shape}) -> tessera_io_file:tensor(Bytes, Type, Shape).

%% The numbers in the other byte order; a complex number is two of them.
swapped(Bytes, Type) ->
    Size = case Type of
               c64 -> 4;
               c128 -> 8;
               _ -> tessera_type:bits(Type) div 8
           end,
    Rows = tessera_io_file:tensor(Bytes, u8, {byte_size(Bytes) div Size, Size}),
    tessera_io_file:bytes(tessera:reverse(Rows, [1])).

-spec encode(tessera:tensor()) -> [iodata()].
encode(#tessera{type = Type, shape = Shape} = Tensor) ->
    {_, Code} = case lists:keyfind(Type, 1, types()) of
                    false ->
                        tessera_io_file:fail(unimplemented, "NumPy has no type ~s: convert the tensor with tessera:as_type/2, or save safetensors",
                                             [Type]);
                    Found -> Found
                end,
    Order = case {tessera_type:bits(Type), foreign()} of
                {8, _} -> $|;
                {_, $>} -> $<;
                _ -> $>
            end,
    Sizes = [[integer_to_list(Size), $,] || Size <- tuple_to_list(Shape)],
    Text = iolist_to_binary(["{'descr': '", Order, Code, "', 'fortran_order': False, 'shape': (", lists:join($\s, Sizes), "), }"]),
    %% The numbers begin at a multiple of 64 bytes.
    Pad = -(10 + byte_size(Text) + 1) band 63,
    Length = byte_size(Text) + Pad + 1,
    [<<?MAGIC, 1, 0, Length:16/little, Text/binary, (binary:copy(<<" ">>, Pad))/binary, "\n">>, tessera_io_file:bytes(Tensor)].
