%% @private Files of saved tensors: a file from each rank, with the bytes of its tensors, and the index. The driver, or else rank 0, writes
%% the index when all ranks have written their files. A file is written under a name of its own, and then renamed, so a file under its name
%% is whole.
%%
%%     file of a rank: safetensors, with the number of the save in its metadata
%%     index:          JSON, as other programs write it for safetensors of several files, with a term (index()) and its CRC-32
%%
%% So Python reads the tensors. A part of a tensor has the name of the tensor and its slice: "w[0:4,8:16]". Files of the version before
%% are loaded, too:
%%
%%     file of a rank: "tessera tensors 1\n", the number of the save (16 bytes), then the tensors' bytes
%%     index:          "tessera index 1\n", CRC-32 of the rest, and a term (index())
%%
%% Checksums find damage, not forgery.
-module(tessera_cluster_files).
-include("tessera.hrl").
-export([absolute/2, write/2, read/2, overlap/4, write_index/4, read_index/1, endian/0, name/3, check/2, remove/2, remove_own/3, sweep/3]).
-export_type([index/0, piece/0, source/0, box/0]).

-define(TENSORS, "tessera tensors 1\n").
-define(INDEX, "tessera index 1\n").
-define(SAFETENSORS, "{\"__metadata__\":{\"tessera.save\":\"").
-define(JSON_INDEX, "{\"metadata\":{\"tessera.version\":\"").

%% Where the bytes of a tensor are: the number of the file, from 0.
-type piece() :: {File :: non_neg_integer(), Offset :: non_neg_integer(), Size :: non_neg_integer(), Crc :: non_neg_integer()}.
%% `parts' has a piece for each leaf of each partition, or a number; `mesh' the sizes of its axes; `leaves' their types and cuts.
-type index() :: #{save := binary(), endian := little | big, files := pos_integer(), signature := tessera_tree:signature(),
                   mesh := none | [pos_integer()], leaves := [{tessera:type(), tessera:shape(), tessera_sharding:cuts()}],
                   parts := [[piece() | {number, term()}]]}.
%% A saved tensor, and where it begins in the whole one.
-type source() :: {file:filename_all(), piece(), Start :: [non_neg_integer()], tessera:shape()}.

%% A tensor to be read: its part of a saved one, and the saved parts that overlap it.
-type box() :: {tessera:type(), Start :: [non_neg_integer()], tessera:shape(), [source()]}.

%% The path that a function of that name was given.
-spec absolute(save | load, term()) -> file:filename_all().
absolute(Function, Path) ->
    try filename:absname(Path)
    catch error:_ -> refuse(invalid_argument, "~s: expected the name of a file, got ~0tP", [Function, Path, 20])
    end.

%% The file of a rank, or another file of a save.
-spec name(file:name_all(), binary(), non_neg_integer()) -> file:filename_all().
name(Path, Save, File) -> unicode:characters_to_list([Path, $., binary:encode_hex(binary:part(Save, 0, 4)), $., integer_to_list(File)]).

%% ---- on a rank

%% Writes the tensors of this rank with their names; their offsets, sizes and checksums.
-spec write(Rank :: non_neg_integer(), {file:name_all(), binary(), [{binary(), tessera:tensor()}]}) -> [piece()].
write(Rank, {Path, Save, Named}) ->
    {Header, Placed} = tessera_io_safetensors:layout(Named, [{<<"tessera.save">>, binary:encode_hex(Save)}]),
    Contents = [{I, At, binary(Tensor)} || {I, Tensor, At} <- Placed],
    ok = whole(name(Path, Save, Rank), [Header | [Bytes || {_, _, Bytes} <- Contents]]),
    Pieces = [{I, {Rank, byte_size(Header) + At, byte_size(Bytes), erlang:crc32(Bytes)}} || {I, At, Bytes} <- Contents],
    [Piece || {_, Piece} <- lists:sort(Pieces)].

%% With the padding of small types.
binary(#tessera{ref = Ref}) ->
    case tessera_remote:read(Ref, -1) of
        {error, Error} -> tessera_cluster_error:raise(Error);
        Bytes -> Bytes
    end.

%% Reads the boxes from saved tensors.
-spec read(Rank :: non_neg_integer(), {binary(), [box()]}) -> [tessera:tensor()].
read(_, {Save, Boxes}) -> [box(Save, Box) || Box <- Boxes].

box(Save, {Type, Start, Shape, [{_, _, Start, Shape} = Same]}) -> tensor(Save, Type, Same);
box(Save, {Type, Start, Shape, Sources}) ->
    lists:foldl(fun(Source, Box) -> filled(Box, Start, Source, tensor(Save, Type, Source)) end,
                tessera:broadcast(tessera:tensor(0, Type), Shape), Sources).

filled(#tessera{shape = Shape} = Box, Start, {_, _, Begin, _}, #tessera{shape = Saved} = Tensor) ->
    Overlap = overlap(Start, Shape, Begin, Saved),
    Piece = tessera:slice(Tensor, [First - From || {{First, _}, From} <- lists:zip(Overlap, Begin)], [Length || {_, Length} <- Overlap]),
    tessera:put_slice(Box, [First - From || {{First, _}, From} <- lists:zip(Overlap, Start)], Piece).

%% The intersection of two boxes: start and length in each dim; a length is below 1 where they are disjoint.
-spec overlap([non_neg_integer()], tessera:shape(), [non_neg_integer()], tessera:shape()) -> [{non_neg_integer(), integer()}].
overlap(StartA, ShapeA, StartB, ShapeB) ->
    [{max(A, B), min(A + SizeA, B + SizeB) - max(A, B)}
     || {A, SizeA, {B, SizeB}} <- lists:zip3(StartA, tuple_to_list(ShapeA), lists:zip(StartB, tuple_to_list(ShapeB)))].

tensor(Save, Type, {Path, {File, Offset, Size, Crc}, _, Shape}) ->
    Name = name(Path, Save, File),
    Bytes = contents(Name, Save, Offset, Size),
    erlang:crc32(Bytes) =:= Crc orelse damaged(Name, "its bytes from ~b to ~b have another checksum", [Offset, Offset + Size]),
    case tessera_nif:from_binary(Bytes, Type, Shape, false, {host, 0}) of
        #tessera{} = Tensor -> Tensor;
        {pressure, Tensor} -> tessera_memory:relieved(Tensor);
        {error, Error} -> tessera_cluster_error:raise(Error)
    end.

contents(Name, Save, Offset, Size) ->
    Device = done(Name, file:open(Name, [read, raw, binary])),
    try file:pread(Device, [{0, 8 + length(?SAFETENSORS) + 32}, {Offset, Size}]) of
        {ok, [Begin, Bytes]} ->
            Number = number(Begin, Offset),
            Number =/= none orelse damaged(Name, "it is no file of tensors of this version", []),
            Number =:= Save orelse damaged(Name, "it belongs to another save", []),
            case Bytes of
                eof when Size =:= 0 -> <<>>;
                _ when is_binary(Bytes), byte_size(Bytes) =:= Size -> Bytes;
                _ -> damaged(Name, "it ends before byte ~b", [Offset + Size])
            end;
        {error, Reason} -> failed(Name, Reason)
    after file:close(Device)
    end.

%% The number of the save that a file belongs to, by its beginning. A tensor at Offset is behind the header.
number(<<?TENSORS, Save:16/binary, _/binary>>, _) -> Save;
number(<<Length:64/little, ?SAFETENSORS, Hex:32/binary>>, Offset) when 8 + Length =< Offset ->
    try binary:decode_hex(Hex)
    catch error:_ -> none
    end;
number(_, _) -> none.

%% ---- the index

%% The index has the file of each tensor. For a tensor that is saved in parts it has the whole type and shape.
-spec write_index(file:name_all(), index(), [{binary(), File :: non_neg_integer()}], [{binary(), tessera:type(), tessera:shape()}]) -> ok.
write_index(Path, #{save := Save} = Index, Files, Tensors) ->
    Term = term_to_binary(Index),
    Wholes = [{Name, {object, [{<<"dtype">>, Code}, {<<"shape">>, Sizes}]}}
              || {Name, Type, Shape} <- Tensors, {Code, Sizes} <- [tessera_io_safetensors:stored_as(Type, Shape)]],
    Meta = [{<<"tessera.version">>, <<"2">>}, {<<"tessera.crc">>, integer_to_binary(erlang:crc32(Term))}, {<<"tessera.index">>, base64:encode(Term)},
            {<<"tessera.tensors">>, {object, Wholes}}],
    Where = [{Name, unicode:characters_to_binary(filename:basename(name(Path, Save, File)))} || {Name, File} <- Files],
    whole(Path, [tessera_json:encode({object, [{<<"metadata">>, {object, Meta}}, {<<"weight_map">>, {object, Where}}]})]).

-spec read_index(file:name_all()) -> index().
read_index(Path) ->
    case done(Path, file:read_file(Path)) of
        <<?INDEX, Crc:32, Term/binary>> ->
            erlang:crc32(Term) =:= Crc orelse damaged(Path, "it has another checksum", []),
            checked(Path, tessera_cluster_wire:decode(Term));
        <<?JSON_INDEX, "2\"", _/binary>> = Text -> checked(Path, decoded(Path, tessera_json:decode(Text)));
        <<"tessera index ", _/binary>> -> other_version(Path);
        <<?JSON_INDEX, _/binary>> -> other_version(Path);
        _ -> damaged(Path, "it is no index of saved tensors", [])
    end.

-spec other_version(file:name_all()) -> no_return().
other_version(Path) -> refuse(failed_precondition, "~ts was saved by another version of Tessera", [Path]).

decoded(Path, {ok, {object, [{<<"metadata">>, {object, [_, {<<"tessera.crc">>, Crc}, {<<"tessera.index">>, Encoded} | _]}} | _]}}) when is_binary(Encoded) ->
    Term = try base64:decode(Encoded)
           catch error:_ -> <<>>
           end,
    Crc =:= integer_to_binary(erlang:crc32(Term)) orelse damaged(Path, "it has another checksum", []),
    tessera_cluster_wire:decode(Term);
decoded(Path, _) -> damaged(Path, "it is no index of saved tensors", []).

checked(Path, error) ->
    refuse(failed_precondition, "~ts has an atom that this node does not know: load the modules that use it first", [Path]);
checked(Path, {ok, #{save := _, files := _, signature := _, mesh := _, leaves := _, parts := _, endian := Endian} = Index}) ->
    Endian =:= endian() orelse refuse(failed_precondition, "~ts was saved on machines of another byte order", [Path]),
    Index;
checked(Path, _) -> damaged(Path, "it has no index of this version", []).

%% The byte order of this machine.
-spec endian() -> little | big.
endian() ->
    case <<1:16/native>> of
        <<1:16/little>> -> little;
        _ -> big
    end.

%% Removes the files of an earlier save. A file that cannot be removed stays; this is no error.
-spec remove(file:name_all(), #{save := binary(), files := pos_integer(), _ => _}) -> ok.
remove(Path, #{save := Save, files := Files}) ->
    _ = [file:delete(name(Path, Save, File)) || File <- lists:seq(0, Files - 1)],
    ok.

%% Removes the file that a rank has written.
-spec remove_own(file:name_all(), binary(), non_neg_integer()) -> ok.
remove_own(Path, Save, Rank) ->
    _ = file:delete(name(Path, Save, Rank)),
    ok.

%% The file of this rank is still there, before the index is written: another save to the same place might have removed it.
-spec check(Rank :: non_neg_integer(), {file:name_all(), binary()}) -> ok.
check(Rank, {Path, Save}) ->
    Name = name(Path, Save, Rank),
    filelib:is_regular(Name) orelse
        refuse(failed_precondition, "~ts is not there any more: another save to the same place has ended meanwhile", [Name]),
    ok.

%% Removes the files of interrupted saves to the same place: files of ranks that no index names, and incomplete files. Save is the index's save, with
%% `Files' files. Files that are younger stay, because a later save may still write them, and files that Tessera has not written.
-spec sweep(file:name_all(), binary(), pos_integer()) -> ok.
sweep(Path, Save, Files) ->
    Folder = filename:dirname(Path),
    Began = lists:min([time(name(Path, Save, File)) || File <- lists:seq(0, Files - 1)]),
    Own = filename:basename(name(Path, Save, 0), ".0"),
    Names = case file:list_dir(Folder) of {ok, All} -> All; {error, _} -> [] end,
    _ = [file:delete(File) || Name <- Names, {left, Begins} <- [kind(Name, text_of(filename:basename(Path)), Own)], File <- [filename:join(Folder, Name)],
                              time(File) =< Began, begins(File, Begins)],
    ok.

text_of(Name) -> unicode:characters_to_list(Name).

%% Texts of a file with that name, and their places, if an interrupted save may have left it: "BASE.SAVE.RANK", "BASE.SAVE.RANK.NUMBER.tmp" or
%% "BASE.NUMBER.tmp".
kind(Name, Base, Own) ->
    Rest = case string:prefix(Name, Base ++ ".") of nomatch -> ""; After -> After end,
    IsOwn = lists:prefix(Own ++ ".", Name) andalso not lists:suffix(".tmp", Name),
    case {IsOwn, re:run(Rest, "^[0-9A-F]{8}\\.[0-9]+(\\.[0-9]+\\.tmp)?$"), re:run(Rest, "^[0-9]+\\.tmp$")} of
        {true, _, _} -> other;
        {false, {match, _}, _} -> {left, [{0, <<?TENSORS>>}, {8, <<?SAFETENSORS>>}]};
        {false, nomatch, {match, _}} -> {left, [{0, <<?INDEX>>}, {0, <<?JSON_INDEX>>}]};
        _ -> other
    end.

%% When it was changed; a file that is gone was changed last of all.
time(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, Info} -> element(6, Info);
        {error, _} -> infinity
    end.

%% Whether the file, as far as it was written, has one of the texts at the text's place.
begins(File, Texts) ->
    case file:open(File, [read, raw, binary]) of
        {ok, Device} ->
            Has = lists:any(fun({At, Text}) -> has(Device, At, Text) end, Texts),
            ok = file:close(Device),
            Has;
        {error, _} -> false
    end.

has(Device, At, Text) ->
    case file:pread(Device, At, byte_size(Text)) of
        {ok, Read} -> binary:longest_common_prefix([Read, Text]) =:= byte_size(Read);
        eof -> At =:= 0 orelse file:pread(Device, 0, At) =:= eof;
        {error, _} -> false
    end.

%% ---- files

%% Writes a file under a name of its own, to the disk, and renames it.
whole(Name, Chunks) ->
    case tessera_io_file:replace(Name, Chunks) of
        ok -> ok;
        {error, Reason} -> failed(Name, Reason)
    end.

done(_, {ok, Result}) -> Result;
done(Name, {error, Reason}) -> failed(Name, Reason).

-spec failed(file:name_all(), term()) -> no_return().
failed(Name, Reason) ->
    Code = case Reason of
               enospc -> resource_exhausted;
               edquot -> resource_exhausted;
               efbig -> resource_exhausted;
               _ -> failed_precondition
           end,
    refuse(Code, "~ts: ~ts", [Name, file:format_error(Reason)]).

-spec damaged(file:name_all(), io:format(), [term()]) -> no_return().
damaged(Name, Format, Values) -> refuse(data_loss, "~ts is damaged: " ++ Format, [Name | Values]).

-spec refuse(atom(), io:format(), [term()]) -> no_return().
refuse(Code, Format, Values) -> tessera_cluster_error:raise(tessera_cluster_error:new(Code, Format, Values)).
