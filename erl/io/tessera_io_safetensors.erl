%% @private The safetensors format: eight bytes with the length of a header, the header in JSON, and the tensors' bytes, little-endian.
%% Checked as its authors' reader checks it: parts follow each other without a gap, and each has the size of its type and shape.
-module(tessera_io_safetensors).
-include("tessera.hrl").
-export([decode/1, encode/2, layout/2, stored_as/2]).

%% The authors' reader has the same limit.
-define(MOST, 100000000).

%% The tensors by name, in the order of their places, and the metadata.
-spec decode(binary()) -> {[tessera_io_file:entry()], [{binary(), binary()}]}.
decode(<<Length:64/little, Rest/binary>>) when Length =< byte_size(Rest), Length =< ?MOST ->
    <<Header:Length/binary, Data/binary>> = Rest,
    case tessera_json:decode(Header) of
        {ok, {object, Pairs}} ->
            {Meta, Tensors} = lists:partition(fun({Name, _}) -> Name =:= <<"__metadata__">> end, Pairs),
            Found = lists:sort(fun({_, _, _, A}, {_, _, _, B}) -> A =< B end, [place(Tensor) || Tensor <- Tensors]),
            ok = unique([Name || {Name, _} <- Pairs]),
            byte_size(Data) =:= lists:foldl(fun follows/2, 0, Found) orelse bad("there are bytes after the last tensor, or too few", []),
            {[entry(Data, Place) || Place <- Found], metadata(Meta)};
        _ -> bad("its header is no JSON object", [])
    end;
decode(<<Length:64/little, Rest/binary>>) -> bad("it says that its header has ~b bytes, and it has ~b", [Length, byte_size(Rest)]);
decode(File) -> bad("it has ~b bytes", [byte_size(File)]).

unique(Names) ->
    case Names -- lists:usort(Names) of
        [] -> ok;
        [Twice | _] -> bad("it has two tensors ~ts", [Twice])
    end.

metadata([]) -> [];
metadata([{_, {object, Pairs}}]) ->
    lists:all(fun({_, Value}) -> is_binary(Value) end, Pairs) orelse bad("a value of its metadata is no text", []),
    Pairs;
metadata(_) -> bad("its metadata is no JSON object", []).

place({Name, {object, Pairs}}) ->
    case maps:from_list(Pairs) of
        #{<<"dtype">> := Code, <<"shape">> := Sizes, <<"data_offsets">> := [From, To]}
          when is_binary(Code), is_list(Sizes), is_integer(From), is_integer(To), 0 =< From, From =< To ->
            lists:all(fun(Size) -> is_integer(Size) andalso Size >= 0 end, Sizes) orelse bad("the shape of ~ts is none", [Name]),
            {Name, type(Code, Name), list_to_tuple(Sizes), {From, To}};
        _ -> bad("~ts is not described by dtype, shape and data_offsets", [Name])
    end;
place({Name, _}) -> bad("~ts is not described by an object", [Name]).

follows({Name, Type, Shape, {From, To}}, Before) ->
    From =:= Before orelse bad("~ts begins at byte ~b, and what is before it ends at ~b", [Name, From, Before]),
    To - From =:= tessera_type:bits(Type) div 8 * tessera_type:elements(Shape) orelse
        bad("~ts has ~b bytes, which is not the size of ~s", [Name, To - From, tessera_type:format(Type, Shape)]),
    To.

entry(Data, {Name, Type, Shape, {From, To}}) ->
    {Name, Type, Shape, fun() -> tessera_io_file:tensor(binary:part(Data, From, To - From), Type, Shape) end}.

type(Code, Name) ->
    case lists:keyfind(Code, 2, types()) of
        {Type, _} -> Type;
        false -> tessera_io_file:fail(unimplemented, "~ts has the type ~ts, which no tensor has", [Name, Code])
    end.

types() ->
    [{u8, <<"U8">>}, {u8, <<"BOOL">>}, {s8, <<"I8">>}, {s16, <<"I16">>}, {s32, <<"I32">>}, {s64, <<"I64">>}, {u16, <<"U16">>},
     {u32, <<"U32">>}, {u64, <<"U64">>}, {f8, <<"F8_E5M2">>}, {f8_e4m3fn, <<"F8_E4M3">>}, {f16, <<"F16">>}, {bf16, <<"BF16">>},
     {f32, <<"F32">>}, {f64, <<"F64">>}, {c64, <<"C64">>}].

-spec bad(io:format(), [term()]) -> no_return().
bad(Format, Values) -> tessera_io_file:fail(data_loss, Format, Values).

%% ---- writing

%% The chunks of a file. Its tensors have types of the format (tessera_io_container:narrow/1).
-spec encode([{binary(), tessera:tensor()}], [{binary(), binary()}]) -> [iodata()].
encode(Tensors, Meta) ->
    _ = [lists:keymember(Type, 1, types()) orelse tessera_io_file:fail(unimplemented, "safetensors has no type ~s, which ~ts has", [Type, Name])
         || {Name, #tessera{type = Type}} <- Tensors],
    {Header, Placed} = layout(Tensors, Meta),
    byte_size(Header) - 8 =< ?MOST orelse tessera_io_file:fail(out_of_range, "its header would have ~b bytes", [byte_size(Header) - 8]),
    [Header | [tessera_io_file:bytes(Tensor) || {_, Tensor, _} <- Placed]].

%% The beginning of a file, up to the tensors' bytes, and the tensors in the order of their bytes. Each has its number in the given list, from 1, and
%% the place of its bytes, from 0. Tensors of larger types come first, as the authors' writer puts them, so all are aligned.
-spec layout([{binary(), tessera:tensor()}], [{binary(), binary()}]) -> {binary(), [{pos_integer(), tessera:tensor(), non_neg_integer()}]}.
layout(Tensors, Meta) ->
    Sorted = lists:sort([{-tessera_type:bytes(Type), Name, I, Tensor} || {I, {Name, #tessera{type = Type} = Tensor}} <- lists:enumerate(Tensors)]),
    {Described, _} = lists:mapfoldl(fun described/2, 0, Sorted),
    {Pairs, Placed} = lists:unzip(Described),
    Object = [{<<"__metadata__">>, {object, Meta}} || Meta =/= []] ++ Pairs,
    Text = iolist_to_binary(tessera_json:encode({object, Object})),
    Header = <<Text/binary, (binary:copy(<<" ">>, -byte_size(Text) band 7))/binary>>,
    {<<(byte_size(Header)):64/little, Header/binary>>, Placed}.

described({_, Name, I, #tessera{type = Type, shape = Shape} = Tensor}, At) ->
    End = At + tessera_type:bytes(Type) * tessera_type:elements(Shape),
    {Code, Sizes} = stored_as(Type, Shape),
    {{{Name, {object, [{<<"dtype">>, Code}, {<<"shape">>, Sizes}, {<<"data_offsets">>, [At, End]}]}}, {I, Tensor, At}}, End}.

%% The type and the sizes that a file gives for a tensor. The format has no c128, which becomes pairs of f64, and no integers of
%% few bits, which become bytes.
-spec stored_as(tessera:type(), tessera:shape()) -> {binary(), [non_neg_integer()]}.
stored_as(c128, Shape) -> {<<"F64">>, tuple_to_list(Shape) ++ [2]};
stored_as(Type, Shape) when Type =:= s2; Type =:= s4 -> {<<"I8">>, tuple_to_list(Shape)};
stored_as(Type, Shape) when Type =:= u2; Type =:= u4 -> {<<"U8">>, tuple_to_list(Shape)};
stored_as(Type, Shape) -> {element(2, lists:keyfind(Type, 1, types())), tuple_to_list(Shape)}.
