%% Files of tensors. test/io/make.py says how the files there were made, by NumPy and the packages safetensors and gguf.
-module(tessera_io_tests).
-include_lib("eunit/include/eunit.hrl").

data(Name) -> filename:join(["test", "io", Name]).

in(F) -> (tessera_test:in_folder(F))().

%% {Name, Shape, Crc}
expected(Name) ->
    {ok, Terms} = file:consult(data(Name)),
    Terms.

same(Terms, Tensors) ->
    ?assertEqual(lists:sort([Name || {Name, _, _} <- Terms]), lists:sort(maps:keys(Tensors))),
    [?assertEqual({Name, Shape, Crc}, {Name, tessera:shape(T), erlang:crc32(tessera:to_binary(T))})
     || {Name, Shape, Crc} <- Terms, T <- [maps:get(Name, Tensors)]].

%% ---- files of other programs

npz_test() ->
    [same(expected("arrays.txt"), tessera_io:load(data(Name), Options))
     || Name <- ["stored.npz", "deflated.npz"], Options <- [#{}, #{map => false}]],
    #{<<"2_1">> := T} = Some = tessera_io:load(data("deflated.npz"), #{names => ['2_1']}),
    ?assertEqual({s16, 1}, {tessera:type(T), map_size(Some)}),
    #{format := npz, tensors := Infos} = tessera_io:info(data("deflated.npz")),
    ?assertMatch(#{<<"12_4">> := {c128, {3, 1, 2}}, <<"13_0">> := {u8, {}}}, Infos).

npy_test() -> ?assertEqual([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], tessera:to_list(tessera_io:load(data("fortran.npy")))).

safetensors_test() ->
    Tensors = tessera_io:load(data("packages.safetensors")),
    same(expected("safetensors.txt"), Tensors),
    ?assertEqual({[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0, 4.0], f8_e4m3fn},
                 {tessera:to_list(maps:get(<<"bf16">>, Tensors)), tessera:to_list(maps:get(<<"f8">>, Tensors)),
                  tessera:type(maps:get(<<"f8_e4m3fn">>, Tensors))}),
    ?assertMatch(#{metadata := #{<<"who">> := <<"a \"name\" é\n"/utf8>>}}, tessera_io:info(data("packages.safetensors"))).

gguf_test() ->
    same(expected("gguf.txt"), tessera_io:load(data("blocks.gguf"))),
    ?assertMatch(#{metadata := #{<<"test.count">> := 7, <<"test.names">> := [<<"a">>, <<"bé"/utf8>>], <<"test.number">> := 1.5}},
                 tessera_io:info(data("blocks.gguf"))).

%% A weight that is kept has the numbers of the widened matrix, bit for bit, with the axes exchanged.
gguf_kept_test() ->
    Wide = tessera_io:load(data("blocks.gguf")),
    Kept = tessera_io:load(data("blocks.gguf"), #{quantized => keep}),
    Names = [<<"Q4_0">>, <<"Q4_1">>, <<"Q8_0">>, <<"Q4_K">>],
    [?assertEqual(tessera:to_binary(tessera:transpose(maps:get(Name, Wide))), tessera:to_binary(tessera:dequantize(maps:get(Name, Kept))))
     || Name <- Names],
    same([{Name, tessera:shape(T), erlang:crc32(tessera:to_binary(T))} || {Name, T} <- maps:to_list(maps:without(Names, Wide))], maps:without(Names, Kept)),
    #{<<"Q8_0">> := Q} = tessera_io:load(data("blocks.gguf"), #{quantized => keep, names => ["Q8_0"]}),
    X = tessera:iota({3, 64}, f32),
    ?assertEqual(tessera:to_binary(tessera:dot(X, tessera:transpose(maps:get(<<"Q8_0">>, Wide)))), tessera:to_binary(tessera:dot(X, Q))),
    ?assertError({invalid_argument, _}, tessera_io:load(data("blocks.gguf"), #{quantized => true})).

%% ---- what we write

%% Any container, with tensors of all types.
container_test() ->
    in(fun(Folder) ->
               Types = [s2, s4, s8, s16, s32, s64, u2, u4, u8, u16, u32, u64, f8, f8_e4m3fn, f16, bf16, f32, f64, c64, c128],
               Container = #{types => [{Type, tessera:iota({2, 1}, Type)} || Type <- Types],
                             a => tessera:tensor([1, 2]), <<"a">> => tessera:tensor(3), "a" => {}, 7 => [#{}, []],
                             {k, 1} => {1, -2.5, {complex, 1, 2.0}, nan, <<255, 0>>, <<"é\"\n"/utf8>>, 'an atom', 1 bsl 70, 1.0e-300},
                             large => tessera:iota({500, 300}, f64)},
               Path = filename:join(Folder, "c.safetensors"),
               ok = tessera_io:save(Path, Container, #{metadata => #{by => "us"}}),
               [?assertEqual(plain(Container), plain(tessera_io:load(Path, Options))) || Options <- [#{}, #{map => false}]],
               #{tensors := Infos, metadata := #{<<"by">> := <<"us">>}} = tessera_io:info(Path),
               ?assertMatch(#{<<"types.0.1">> := {s8, {2, 1}}, <<"types.19.1">> := {f64, {2, 1, 2}}, <<"a">> := {s32, {2}}, <<"a~2">> := {s32, {}}}, Infos),
               #{<<"types.19.1">> := Wide} = tessera_io:load(Path, #{names => ["types.19.1"]}),
               ?assertEqual(c128, tessera:type(Wide)),
               %% it replaces itself, though its tensors are mapped
               Large = maps:get(large, tessera_io:load(Path)),
               ok = tessera_io:save(Path, #{large => Large}),
               ?assertEqual(plain(#{large => Large}), plain(tessera_io:load(Path))),
               {ok, Left} = file:list_dir(Folder),
               ?assertEqual(["c.safetensors"], Left)
       end).

plain(Container) ->
    {Signature, Leaves} = tessera_tree:flatten(Container),
    {Signature, [case tessera:is_tensor(Leaf) of
                     true -> {tessera:type(Leaf), tessera:shape(Leaf), tessera:to_binary(Leaf)};
                     false -> Leaf
                 end || Leaf <- Leaves]}.

%% Atoms that this node does not have.
atoms_test() ->
    in(fun(Folder) ->
               Path = filename:join(Folder, "c.safetensors"),
               New = list_to_binary("an_atom_of_the_file_" ++ integer_to_list(erlang:unique_integer([positive]))),
               ok = tessera_io:save(Path, #{<<"x">> => tessera:tensor(1)}),
               {ok, Bytes} = file:read_file(Path),
               Header = binary:replace(Bytes, <<"{\\\"text\\\":\\\"x\\\"}">>, <<"{\\\"atom\\\":\\\"", New/binary, "\\\"}">>),
               <<Size:64/little, _/binary>> = Bytes,
               Longer = Size + byte_size(Header) - byte_size(Bytes),
               ok = file:write_file(Path, <<Longer:64/little, (binary:part(Header, 8, byte_size(Header) - 8))/binary>>),
               tessera_test:raises(failed_precondition, "atoms => new", fun() -> tessera_io:load(Path) end),
               ?assertError(badarg, binary_to_existing_atom(New)),
               [{Atom, _}] = maps:to_list(tessera_io:load(Path, #{atoms => new})),
               ?assertEqual(New, atom_to_binary(Atom))
       end).

npz_and_npy_test() ->
    in(fun(Folder) ->
               Path = filename:join(Folder, "c.npz"),
               Tensors = #{<<"a.0">> => tessera:iota({3, 5}, f32), <<"a.1">> => tessera:tensor(7), <<"b">> => tessera:iota({0, 2}, c64)},
               ok = tessera_io:save(Path, #{a => [maps:get(<<"a.0">>, Tensors), maps:get(<<"a.1">>, Tensors)], b => maps:get(<<"b">>, Tensors)}),
               ?assertEqual(plain(Tensors), plain(tessera_io:load(Path))),
               {ok, Files} = zip:unzip(Path, [memory]),
               ?assertEqual(["a.0.npy", "a.1.npy", "b.npy"], lists:sort([Name || {Name, _} <- Files])),
               One = filename:join(Folder, "one.npy"),
               ok = tessera_io:save(One, maps:get(<<"a.0">>, Tensors)),
               ?assertEqual(plain(maps:get(<<"a.0">>, Tensors)), plain(tessera_io:load(One))),
               ?assertEqual(lists:keyfind("a.0.npy", 1, Files), {"a.0.npy", element(2, file:read_file(One))}),
               tessera_test:raises(unimplemented, "bf16", fun() -> tessera_io:save(One, tessera:iota({2}, bf16)) end),
               tessera_test:raises(invalid_argument, "one tensor", fun() -> tessera_io:save(One, Tensors) end)
       end).

%% ---- mapped files, which are tensors of the host

on_host(Test) -> tessera_eunit:on_host(fun() -> in(Test) end).

%% A tensor takes memory when it is used, and a replaced file keeps its old contents.
mapped_test() ->
    on_host(fun(Folder) ->
               Path = filename:join(Folder, "large.npy"),
               ok = tessera_io:save(Path, tessera:full({3000000}, 1, f64)),
               Before = tessera_test:resident(),
               T = tessera_io:load(Path),
               ?assert(tessera_test:resident() - Before < 12000000),
               ok = tessera_io:save(Path, tessera:full({3000000}, 2, f64)),
               ?assertEqual({3.0e6, 6.0e6}, {tessera:to_number(tessera:sum(T)), tessera:to_number(tessera:sum(tessera_io:load(Path)))})
       end).

%% A copy has the contents of the file when it was read, though the file is changed in place. It counts as tensor memory.
copied_test() ->
    on_host(fun(Folder) ->
               Path = filename:join(Folder, "large.npy"),
               Count = 5000000,      % read by several threads
               ok = tessera_io:save(Path, tessera:iota({Count}, f64)),
               T = tessera_io:load(Path, #{map => false}),
               ok = file:write_file(Path, binary:copy(<<0>>, filelib:file_size(Path))),
               ?assertEqual(tessera:to_binary(tessera:iota({Count}, f64)), tessera:to_binary(T)),
               Limit = maps:get(limit, tessera:memory()),
               ok = tessera:set_memory_limit(8 * Count - 1),
               try tessera_test:raises(resource_exhausted, "large.npy", fun() -> tessera_io:load(Path, #{map => false, format => npy}) end)
               after tessera:set_memory_limit(Limit)
               end
       end).

%% Another program cuts a file short: on a scheduler, and on threads of the library.
cut_test() ->
    on_host(fun(Folder) ->
               Path = filename:join(Folder, "cut.npy"),
               Whole = tessera:full({3000000}, 1, f64),
               Cut = fun() ->
                             {ok, File} = file:open(Path, [read, write, raw]),
                             {ok, _} = file:position(File, 128 + 8 * 1000000),
                             ok = file:truncate(File),
                             ok = file:close(File)
                     end,
               ok = tessera_io:save(Path, Whole),
               T = tessera_io:load(Path),
               Cut(),
               Sum = tessera:to_number(tessera:sum(T)),
               ?assertEqual(1.0e6, Sum),
               ok = tessera_io:save(Path, Whole),
               Bytes = tessera:to_binary(tessera_io:load(Path)),
               Cut(),
               ?assertEqual(1.0e6, lists:sum([X || <<X:64/float-native>> <= Bytes])),
               %% another mapping is not concerned
               ok = tessera_io:save(Path, Whole),
               ?assertEqual(3.0e6, tessera:to_number(tessera:sum(tessera_io:load(Path))))
       end).

%% ---- hostile files

%% Files that are cut anywhere, and files with a byte that is another one: tensors, or an error of ours.
damage_test_() ->
    {timeout, 120, fun() -> [damaged(Name) || Name <- ["deflated.npz", "fortran.npy", "packages.safetensors", "blocks.gguf"]] end}.

damaged(Name) ->
    {ok, Bytes} = file:read_file(data(Name)),
    Size = byte_size(Bytes),
    Own = plain(tessera_io:load(data(Name), #{map => false})),
    in(fun(Folder) ->
               Path = filename:join(Folder, Name),
               Try = fun(Damaged) ->
                             ok = file:write_file(Path, Damaged),
                             try tessera_io:load(Path, #{map => false}) of
                                 Tensors -> {tensors, plain(Tensors) =:= Own}
                             catch error:{Code, Text} when is_binary(Text) -> Code
                             end
                     end,
               Step = max(1, Size div 80), % a GGUF file ends in bytes without a meaning
               Cut = [Try(binary:part(Bytes, 0, Length)) || Length <- tessera_test:shared(lists:seq(0, Size - 1, Step))],
               ?assertEqual([], lists:usort(Cut) -- [data_loss, invalid_argument, {tensors, true}]),
               Header = min(Size, 6000),
               [begin
                    <<Start:At/binary, Byte, Rest/binary>> = Bytes,
                    Try(<<Start/binary, (Byte bxor Flip), Rest/binary>>)
                end || At <- tessera_test:shared(lists:seq(0, Header - 1, max(1, Header div 150))), Flip <- [1, 16#80]]
       end).

%% Headers that say more than there is, or that lie about sizes and places.
lies_test() ->
    in(fun(Folder) ->
               Path = filename:join(Folder, "lie.safetensors"),
               Say = fun(Header, Data) -> ok = file:write_file(Path, [<<(iolist_size(Header)):64/little>>, Header, Data]) end,
               Refused = fun(Words) -> tessera_test:raises(data_loss, Words, fun() -> tessera_io:load(Path) end) end,
               ok = file:write_file(Path, <<-1:64, "{}">>), Refused("header"),
               Say("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", <<0:32>>), Refused("not the size"),
               Say("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", <<0:64>>), Refused("begins at byte 4"),
               Say("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", <<0:64>>), Refused("after the last"),
               Say("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", <<0:64>>),
               Refused("two tensors a"),
               Say("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", <<0:32>>), Refused("shape"),
               Say("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4294967296],\"data_offsets\":[0,4]}}", <<0:32>>), Refused("not the size"),
               Say(lists:duplicate(100000, $[), <<>>), Refused("JSON"),
               Say("{\"a\":{\"dtype\":\"F9\",\"shape\":[1],\"data_offsets\":[0,4]}}", <<0:32>>),
               tessera_test:raises(unimplemented, "F9", fun() -> tessera_io:load(Path) end),
               %% an archive with a wrong size of its file, much too large
               {ok, Zip} = file:read_file(data("deflated.npz")),
               [{At, _} | _] = binary:matches(Zip, <<"PK", 1, 2>>),
               Large = filename:join(Folder, "large.npz"),
               <<Start:(At + 24)/binary, _:32, Rest/binary>> = Zip,
               ok = file:write_file(Large, <<Start/binary, 16#7fffffff:32/little, Rest/binary>>),
               tessera_test:raises(data_loss, "says that they are", fun() -> tessera_io:load(Large) end),
               %% and one whose first file's name is taken for an extra field
               Nameless = filename:join(Folder, "nameless.npz"),
               <<Front:(At + 28)/binary, Name:16/little, Extra:16/little, Back/binary>> = Zip,
               ok = file:write_file(Nameless, <<Front/binary, 0:16, (Name + Extra):16/little, Back/binary>>),
               tessera_test:raises(data_loss, "nameless.npz: an array has no name", fun() -> tessera_io:load(Nameless) end),
               %% rows that end within a block, of a matrix with whole blocks
               Odd = filename:join(Folder, "odd.gguf"),
               Head = <<"GGUF", 3:32/little, 1:64/little, 0:64, 1:64/little, "w", 2:32/little, 16:64/little, 4:64/little, 8:32/little, 0:64>>,
               ok = file:write_file(Odd, [Head, binary:copy(<<0>>, (32 - byte_size(Head) rem 32) rem 32), binary:copy(<<0>>, 68)]),
               [tessera_test:raises(data_loss, "odd.gguf: w has rows of 16 elements, in blocks of 32", fun() -> tessera_io:load(Odd, #{quantized => How}) end)
                || How <- [keep, widen]]
       end).

errors_test() ->
    in(fun(Folder) ->
               Missing = filename:join(Folder, "none.npy"),
               tessera_test:raises(unavailable, "none.npy", fun() -> tessera_io:load(Missing) end),
               tessera_test:raises(failed_precondition, "directory", fun() -> tessera_io:load(Folder) end),
               [tessera_test:raises(failed_precondition, "regular", fun() -> tessera_io:load("/dev/null", #{format => npy, map => Map}) end) || Map <- [true, false]],
               tessera_test:raises(unavailable, "none.npy", fun() -> tessera_io:load(Missing, #{map => false}) end),
               tessera_test:raises(failed_precondition, "directory", fun() -> tessera_io:load(Folder, #{map => false}) end),
               tessera_test:raises(invalid_argument, "name of a file", fun() -> tessera_io:load({}) end),
               tessera_test:raises(invalid_argument, "mapp", fun() -> tessera_io:load(Missing, #{mapp => true}) end),
               tessera_test:raises(invalid_argument, "option map", fun() -> tessera_io:load(Missing, #{map => yes}) end),
               tessera_test:raises(invalid_argument, "ending", fun() -> tessera_io:save(filename:join(Folder, "a.txt"), tessera:tensor(1)) end),
               tessera_test:raises(unavailable, "", fun() -> tessera_io:save(filename:join([Folder, "no", "a.npy"]), tessera:tensor(1)) end),
               tessera_test:raises(invalid_argument, "cannot be saved", fun() -> tessera_io:save(filename:join(Folder, "a.safetensors"), self()) end),
               tessera_test:raises(invalid_argument, "no contents",
                                   fun() -> tessera_io:save(filename:join(Folder, "a.safetensors"), tessera:template(f32, {2})) end),
               tessera_test:raises(invalid_argument, "no tensor x", fun() -> tessera_io:load(data("stored.npz"), #{names => [x]}) end),
               ?assertEqual({ok, []}, file:list_dir(Folder))
       end).

%% ---- CSV

csv_test() ->
    in(fun(Folder) ->
               Path = filename:join(Folder, "a.csv"),
               Read = fun(Text, Options) ->
                              ok = file:write_file(Path, Text),
                              {Names, T} = tessera_io:read_csv(Path, Options),
                              {Names, tessera:type(T), tessera:to_list(T)}
                      end,
               ?assertEqual({[<<"x">>, <<"y">>], f32, [[1.0, -2.5], [300.0, nan]]}, Read("x,y\r\n1,-2.5\r\n3e2,NaN\r\n", #{})),
               ?assertEqual({[<<"0">>, <<"1">>], s64, [[1, 2], [3, 9]]}, Read("1;2\n3;\n\n", #{header => false, separator => $;, type => s64, missing => 9})),
               ?assertEqual({[<<"b, c">>], f64, [[0.5], [1.0], [infinity]]}, Read("\xef\xbb\xbfa,\"b, c\"\n\"1\",.5\n2,1.\n\"x\ny\",+inf", #{columns => ["b, c"], type => f64})),
               ?assertEqual({[<<"a">>, <<"b">>], f32, []}, Read("a,b\n", #{})),
               ?assertEqual({[<<"a">>, <<"b">>], s64, [[1, 2], [-3, 9007199254740993]]}, Read("a,b\n1, 2\n\t-3 , 9007199254740993\n", #{type => s64})),
               ?assertEqual({[<<"a">>], f64, [[2.0], [0.5], [-300.0]]}, Read("a\n 2\n .5\n -3E2\n", #{type => f64})),
               Refused = fun(Words, Text, Options) -> tessera_test:raises(invalid_argument, Words, fun() -> Read(Text, Options) end) end,
               Refused("line 3: it has 1 cells", "a,b\n1,2\n3\n", #{}),
               Refused("line 2: x is no number", "a\nx\n", #{}),
               Refused("empty cell", "a,b\n1,\n", #{}),
               Refused("no column c", "a,b\n1,2\n", #{columns => ["c"]}),
               Refused("no end", "a\n\"1\n", #{}),
               Refused("beyond the range", "a\n1e999\n", #{})
       end).
