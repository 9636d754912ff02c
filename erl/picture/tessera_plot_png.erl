%% @private
%% Pixels as PNG (ISO/IEC 15948): eight bits of red, green and blue, no filters.
-module(tessera_plot_png).
-export([encode/1]).

-spec encode({pos_integer(), pos_integer(), binary()}) -> binary().
encode({Width, Height, Pixels}) ->
    Row = 3 * Width,
    Lines = [[0, binary:part(Pixels, Y * Row, Row)] || Y <- lists:seq(0, Height - 1)],
    iolist_to_binary([<<137, "PNG\r\n", 26, "\n">>, chunk(<<"IHDR">>, <<Width:32, Height:32, 8, 2, 0, 0, 0>>),
                      chunk(<<"IDAT">>, zlib:compress(Lines)), chunk(<<"IEND">>, <<>>)]).

chunk(Type, Data) -> [<<(byte_size(Data)):32>>, Type, Data, <<(erlang:crc32([Type, Data])):32>>].
