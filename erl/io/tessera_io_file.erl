%% @private Files of tensors: reading without a copy, writing as a whole, and errors. Functions throw {io, Code, Text}. The public
%% functions of tessera_io raise that error with their name and the name of the file.
-module(tessera_io_file).
-include("tessera.hrl").
-export([path/1, map/1, read/1, write/2, replace/2, tensor/3, bytes/1, fail/3]).
-export_type([entry/0]).

-define(PIECE, 1048576).      % bytes of one write

%% A tensor of a file: its name, type and shape, and a function that makes the tensor.
-type entry() :: {Name :: binary(), tessera:type(), tessera:shape(), fun(() -> tessera:tensor())}.

-spec fail(atom(), io:format(), [term()]) -> no_return().
fail(Code, Format, Values) -> throw({io, Code, unicode:characters_to_binary(io_lib:format(Format, Values))}).

-spec path(term()) -> binary().
path(Path) ->
    try filename:absname(Path) of
        Name when is_binary(Name) -> Name;
        Name -> unicode:characters_to_binary(Name, unicode, file:native_name_encoding())
    catch error:_ -> fail(invalid_argument, "expected the name of a file, got ~ts", [tessera_error:show(Path)])
    end.

%% The contents of a file. The kernel reads a page of them when the page is used.
-spec map(binary()) -> binary().
map(Path) ->
    case tessera_nif:map_file(Path) of
        {error, Cause} -> refused(Cause);
        Contents -> Contents
    end.

%% A copy of the contents, in tensor memory.
-spec read(binary()) -> binary().
read(Path) ->
    Make = fun() -> tessera_nif:read_file(Path) end,
    tessera_memory:result(Make(), Make, fun refused/1).

-spec refused(map()) -> no_return().
refused(#{code := Code, message := Text}) -> fail(Code, "~ts", [Text]).

-spec failed(term()) -> no_return().
failed(Reason) ->
    Code = case Reason of
               enoent -> unavailable;
               enospc -> resource_exhausted;
               enomem -> resource_exhausted;
               _ -> failed_precondition
           end,
    fail(Code, "~ts", [file:format_error(Reason)]).

%% Writes a file of these chunks. Another program sees the whole old file or the whole new file.
-spec write(binary(), [iodata()]) -> ok.
write(Path, Chunks) ->
    case replace(Path, Chunks) of
        ok -> ok;
        {error, Reason} -> failed(Reason)
    end.

%% The same, with the reason of a failure. The file "PATH.NUMBER.tmp", which becomes the new one, may be left by a process that is killed.
-spec replace(file:name_all(), [iodata()]) -> ok | {error, file:posix() | badarg | system_limit | terminated}.
replace(Path, Chunks) ->
    Suffix = "." ++ integer_to_list(rand:uniform(1 bsl 62)) ++ ".tmp",
    Temporary = if is_binary(Path) -> <<Path/binary, (list_to_binary(Suffix))/binary>>;
                   true -> lists:flatten([Path, Suffix])
                end,
    case file:open(Temporary, [write, exclusive, raw, binary]) of
        {ok, Device} ->
            Written = try written(Device, Chunks)
                      after file:close(Device)
                      end,
            renamed(Written, Temporary, Path);
        Error -> Error
    end.

renamed(ok, Temporary, Path) -> renamed(file:rename(Temporary, Path), Temporary);
renamed(Error, Temporary, _) -> renamed(Error, Temporary).

renamed(ok, _) -> ok;
renamed(Error, Temporary) ->
    _ = file:delete(Temporary),
    Error.

%% In pieces: on ext4 of Linux 6.18 one write of 64 MB takes five times as long as 64 writes of 1 MB.
written(Device, [<<Piece:?PIECE/binary, Rest/binary>> | Chunks]) when Rest =/= <<>> -> written(Device, [Piece, Rest | Chunks]);
written(Device, [Chunk | Chunks]) ->
    case file:write(Device, Chunk) of
        ok -> written(Device, Chunks);
        Error -> Error
    end;
written(Device, []) -> file:datasync(Device).

%% The tensor of these bytes. The tensor keeps the bytes where they are aligned, and has a copy where they are not.
-spec tensor(binary(), tessera:type(), tessera:shape()) -> tessera:tensor().
tensor(Bytes, Type, Shape) -> tessera_memory:made(load, [], fun() -> tessera_nif:from_binary(Bytes, Type, Shape, false) end).

%% The bytes of a tensor.
-spec bytes(tessera:tensor()) -> binary().
bytes(Tensor) -> tessera:to_binary(Tensor).
