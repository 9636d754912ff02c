%% @private ZIP archives, as NumPy's .npz needs them: entries that are stored or deflated, of any size (ZIP64), found by the central
%% directory. OTP's own module reads whole archives into memory, and knows no ZIP64 before OTP 27.
-module(tessera_io_zip).
-export([entries/1, contents/2, first/3, archive/1]).
-export_type([entry/0]).

-type entry() :: #{name := binary(), method := stored | deflated, packed := non_neg_integer(), size := non_neg_integer(),
                   crc := non_neg_integer(), at := non_neg_integer()}.
-define(LOCAL, "PK\3\4").
-define(CENTRAL, "PK\1\2").
-define(END, "PK\5\6").
-define(END64, "PK\6\6").
-define(LOCATOR64, "PK\6\7").
-define(ALL32, 16#ffffffff).
-define(MOST, 1000000).
%% Deflate makes at most 1032 bytes of one.
-define(RATIO, 1040).
%% Contents of an entry begin at a multiple of this number of bytes, so that they can be used in the mapped file.
-define(ALIGNMENT, 64).

%% ---- reading

%% The files of an archive.
-spec entries(binary()) -> [entry()].
entries(Archive) ->
    {Count, Size, Offset} = directory(Archive),
    Count =< ?MOST orelse bad("it says that it has ~b files", [Count]),
    entries(part(Archive, Offset, Size), Count, []).

entries(_, 0, Entries) -> lists:reverse(Entries);
entries(<<?CENTRAL, _:32, Flags:16/little, Method:16/little, _:32, Crc:32/little, Packed:32/little, Size:32/little, NameLength:16/little,
          ExtraLength:16/little, CommentLength:16/little, _:64, At:32/little, Name:NameLength/binary, Extra:ExtraLength/binary,
          _:CommentLength/binary, Rest/binary>>, Count, Entries) ->
    Flags band 1 =:= 0 orelse tessera_io_file:fail(unimplemented, "~ts is encrypted", [Name]),
    [RealSize, RealPacked, RealAt] = widened([Size, Packed, At], wide(Extra), Name),
    Entry = #{name => Name, method => method(Method, Name), packed => RealPacked, size => RealSize, crc => Crc, at => RealAt},
    entries(Rest, Count - 1, [plausible(Entry) | Entries]);
entries(_, Count, _) -> bad("its directory ends before the last ~b files", [Count]).

method(0, _) -> stored;
method(8, _) -> deflated;
method(Other, Name) -> tessera_io_file:fail(unimplemented, "~ts is packed by method ~b", [Name, Other]).

plausible(#{method := stored, packed := Size, size := Size} = Entry) -> Entry;
plausible(#{method := deflated, packed := Packed, size := Size} = Entry) when Size =< ?RATIO * (Packed + 16) -> Entry;
plausible(#{name := Name, packed := Packed, size := Size}) -> bad("~ts has ~b bytes, and says that they are ~b", [Name, Packed, Size]).

%% A size of 32 ones stands for a size of 64 bits in the extra field. The extra field has the order of the list.
widened([?ALL32 | Rest], <<Wide:64/little, More/binary>>, Name) -> [Wide | widened(Rest, More, Name)];
widened([?ALL32 | _], _, Name) -> bad("a size of ~ts is missing", [Name]);
widened([Size | Rest], Wide, Name) -> [Size | widened(Rest, Wide, Name)];
widened([], _, _) -> [].

wide(<<1:16/little, Length:16/little, Wide:Length/binary, _/binary>>) -> Wide;
wide(<<_:16, Length:16/little, _:Length/binary, Rest/binary>>) -> wide(Rest);
wide(_) -> <<>>.

%% Number of files, size and place of the central directory. The end record is the last thing but a comment of up to 64 KB.
directory(Archive) ->
    Tail = min(byte_size(Archive), 65535 + 22),
    From = byte_size(Archive) - Tail,
    case lists:reverse(binary:matches(binary:part(Archive, From, Tail), <<?END>>)) of
        [{At, _} | _] -> directory(Archive, From + At);
        [] -> bad("it has no end of a ZIP archive", [])
    end.

directory(Archive, At) ->
    case part(Archive, At, 22) of
        <<?END, _:32, _:16, Count:16/little, Size:32/little, Offset:32/little, _:16>>
          when Count =/= 16#ffff, Size =/= ?ALL32, Offset =/= ?ALL32 -> {Count, Size, Offset};
        _ -> directory64(Archive, At - 20)
    end.

directory64(Archive, At) when At >= 0 ->
    case part(Archive, At, 20) of
        <<?LOCATOR64, _:32, End:64/little, _:32>> ->
            case part(Archive, End, 56) of
                <<?END64, _:64, _:32, _:64, _:64, Count:64/little, Size:64/little, Offset:64/little>> -> {Count, Size, Offset};
                _ -> bad("its end record is damaged", [])
            end;
        _ -> bad("its end record is damaged", [])
    end;
directory64(_, _) -> bad("its end record is damaged", []).

part(Archive, At, Size) when At + Size =< byte_size(Archive) -> binary:part(Archive, At, Size);
part(Archive, At, Size) -> bad("it ends after ~b bytes, and refers to ~b at ~b", [byte_size(Archive), Size, At]).

packed(Archive, #{at := At, packed := Packed, name := Name}) ->
    case part(Archive, At, 30) of
        <<?LOCAL, _:22/binary, NameLength:16/little, ExtraLength:16/little>> -> part(Archive, At + 30 + NameLength + ExtraLength, Packed);
        _ -> bad("~ts does not begin where the directory says", [Name])
    end.

%% The contents of a file: a part of the archive, unless they are deflated.
-spec contents(binary(), entry()) -> binary().
contents(Archive, #{method := stored} = Entry) -> packed(Archive, Entry);
contents(Archive, #{method := deflated, size := Size, crc := Crc, name := Name} = Entry) ->
    Contents = iolist_to_binary(inflated(packed(Archive, Entry), Size, Name)),
    byte_size(Contents) =:= Size andalso erlang:crc32(Contents) =:= Crc orelse bad("the contents of ~ts are damaged", [Name]),
    Contents.

%% At least the first Bytes bytes of a file, or the whole file if it is shorter.
-spec first(binary(), entry(), non_neg_integer()) -> binary().
first(Archive, #{method := stored} = Entry, _) -> packed(Archive, Entry);
first(Archive, #{method := deflated, name := Name, size := Size} = Entry, Bytes) ->
    iolist_to_binary(inflated(packed(Archive, Entry), min(Size, Bytes), Name)).

%% At least Enough bytes, or all, and not many more: so a hostile file takes no more memory than its header says.
inflated(Packed, Enough, Name) ->
    Stream = zlib:open(),
    try
        ok = zlib:inflateInit(Stream, -15),
        inflated(Stream, zlib:safeInflate(Stream, Packed), [], 0, Enough)
    catch error:_ -> bad("the contents of ~ts are damaged", [Name])
    after zlib:close(Stream)
    end.

inflated(Stream, {continue, Part}, Parts, Size, Enough) ->
    case Size + iolist_size(Part) of
        Now when Now > Enough -> lists:reverse(Parts, [Part]);
        Now -> inflated(Stream, zlib:safeInflate(Stream, []), [Part | Parts], Now, Enough)
    end;
inflated(_, {finished, Part}, Parts, _, _) -> lists:reverse(Parts, [Part]).

-spec bad(io:format(), [term()]) -> no_return().
bad(Format, Values) -> tessera_io_file:fail(data_loss, Format, Values).

%% ---- writing

%% The chunks of an archive with these files. The files are stored, not deflated.
-spec archive([{Name :: binary(), [iodata()]}]) -> [iodata()].
archive(Files) ->
    {Chunks, {Directory, End}} = lists:mapfoldl(fun stored/2, {[], 0}, Files),
    Central = iolist_to_binary(lists:reverse(Directory)),
    lists:append(Chunks) ++ [Central, ending(length(Files), byte_size(Central), End)].

stored({Name, Chunks}, {Directory, At}) ->
    Size = iolist_size(Chunks),
    Crc = lists:foldl(fun(Chunk, Crc) -> erlang:crc32(Crc, Chunk) end, erlang:crc32(<<>>), Chunks),
    Wide = if Size >= ?ALL32 -> <<1:16/little, 16:16/little, Size:64/little, Size:64/little>>;
              true -> <<>>
           end,
    Pad = -(At + 30 + byte_size(Name) + byte_size(Wide) + 4) band (?ALIGNMENT - 1),
    Extra = <<Wide/binary, 16#d935:16/little, Pad:16/little, 0:Pad/unit:8>>,
    Local = <<?LOCAL, (common(Size, Crc, Name))/binary, (byte_size(Extra)):16/little, Name/binary, Extra/binary>>,
    More = << <<V:64/little>> || V <- [Size, Size], Size >= ?ALL32 >>,
    Wide2 = case <<More/binary, << <<At:64/little>> || _ <- [x], At >= ?ALL32 >>/binary>> of
                <<>> -> <<>>;
                Values -> <<1:16/little, (byte_size(Values)):16/little, Values/binary>>
            end,
    Entry = <<?CENTRAL, 45:16/little, (common(Size, Crc, Name))/binary, (byte_size(Wide2)):16/little, 0:16, 0:16, 0:16, 0:32,
              (min(At, ?ALL32)):32/little, Name/binary, Wide2/binary>>,
    {[Local | Chunks], {[Entry | Directory], At + byte_size(Local) + Size}}.

%% Version, flags (names in UTF-8), method, time (1980-01-01), checksum, sizes, and the length of the name.
common(Size, Crc, Name) ->
    Short = min(Size, ?ALL32),
    <<45:16/little, 16#800:16/little, 0:16, 0:16, 33:16/little, Crc:32/little, Short:32/little, Short:32/little, (byte_size(Name)):16/little>>.

ending(Count, Size, At) ->
    Wide = Count >= 16#ffff orelse Size >= ?ALL32 orelse At >= ?ALL32,
    [[<<?END64, 44:64/little, 45:16/little, 45:16/little, 0:32, 0:32, Count:64/little, Count:64/little, Size:64/little, At:64/little,
        ?LOCATOR64, 0:32, (At + Size):64/little, 1:32/little>> || Wide],
     <<?END, 0:32, (min(Count, 16#ffff)):16/little, (min(Count, 16#ffff)):16/little, (min(Size, ?ALL32)):32/little,
       (min(At, ?ALL32)):32/little, 0:16>>].
