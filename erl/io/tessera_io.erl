%% @doc Files of tensors. {@link load/1} and {@link save/2} choose the format by the contents of the file, or by the ending of its name:
%%
%% <dl>
%% <dt>`.safetensors'</dt><dd>any container; of files that other programs wrote, a map of tensors by name</dd>
%% <dt>`.npy'</dt><dd>NumPy's array: a tensor</dd>
%% <dt>`.npz'</dt><dd>NumPy's archive: a map of tensors by name; a container is flattened</dd>
%% <dt>`.gguf'</dt><dd>llama.cpp's models, to be loaded only: a map of tensors by name, quantised ones as f32</dd>
%% </dl>
%%
%% A container is what `jit' takes: tensors in maps, tuples and lists, with numbers, atoms and binaries beside them. A safetensors file
%% that Tessera has saved gives the same container again. Python sees its tensors by the path to each:
%% `#{dense => #{kernel => T}}' has "dense.kernel".
%%
%% Files are mapped: a file of 1 GB is open at once, and a tensor takes memory when it is used. So a file must not be changed while
%% its tensors are in use. The functions here replace a file as a whole, which leaves tensors of the old one as they are. A file that
%% another program cuts short reads as zeros from there on, and a warning is logged. With `#{map => false}' tensors are copies.
%%
%% Errors: `unavailable' for a missing file, `data_loss' for a damaged one, `unimplemented' for a type that tensors or the
%% format lack, `failed_precondition' for a file that may not be read or written.
-module(tessera_io).
-include("tessera.hrl").
-export([load/1, load/2, info/1, save/2, save/3, read_csv/1, read_csv/2]).
-export_type([format/0, load_options/0, save_options/0, csv_options/0, info/0]).

-type format() :: safetensors | npy | npz | gguf.
-type load_options() :: #{format => format(), names => [binary() | string() | atom()], map => boolean(), atoms => existing | new, quantized => widen | keep}.
-type save_options() :: #{format => safetensors | npy | npz, metadata => #{atom() | binary() | string() => atom() | binary() | string()}}.
-type csv_options() :: tessera_io_csv:options().
%% `tensors' has types and shapes by name; `metadata' the file's own description.
-type info() :: #{format := format(), tensors := #{binary() => {tessera:type(), tessera:shape()}}, metadata := #{binary() => term()}}.

%% @equiv load(Path, #{})
-spec load(file:name_all()) -> term().
load(Path) -> load(Path, #{}).

%% @doc The contents of a file.
%%
%% <dl>
%% <dt>`names => [Name]'</dt><dd>only these tensors, as a map by name</dd>
%% <dt>`map => false'</dt><dd>reads a copy into tensor memory; by default a file is mapped</dd>
%% <dt>`atoms => new'</dt><dd>the file may make new atoms, which are never freed; by default they are an error</dd>
%% <dt>`quantized => keep'</dt><dd>makes quantised weights of the matrices of a GGUF file that are Q4_0, Q4_1, Q8_0 or Q4_K: `dot(X, Weight)' is
%% X times the transposed matrix ({@link tessera:quantize/2})</dd>
%% <dt>`format => Format'</dt><dd>where neither contents nor name tell it</dd>
%% </dl>
%% ```
%% 1> Path = filename:join(os:getenv("TMPDIR", "/tmp"), "tessera_io_example.safetensors").
%% 2> tessera_io:save(Path, #{weights => {tessera:tensor([1, 2]), 0.5}}).
%% ok
%% 3> #{weights := {T, 0.5}} = tessera_io:load(Path), tessera:to_list(T).
%% [1,2]
%% 4> #{<<"weights.0">> := T1} = tessera_io:load(Path, #{names => ["weights.0"]}), file:delete(Path), tessera:to_list(T1).
%% [1,2]
%% '''
-spec load(file:name_all(), load_options()) -> term().
load(Path, Options) ->
    named(load, [Path, Options], Path,
          fun() ->
                  ok = known(Options, #{format => format, names => names, map => boolean, atoms => [existing, new], quantized => [widen, keep]}),
                  {Format, Entries, Meta} = opened(Path, Options),
                  container(Format, Entries, Meta, Options)
          end).

container(Format, Entries, Meta, #{names := Names}) ->
    Wanted = [text(Name) || Name <- Names],
    Chosen = [case lists:keyfind(Name, 1, Entries) of
                  false -> tessera_io_file:fail(invalid_argument, "it has no tensor ~ts", [Name]);
                  Entry -> Entry
              end || Name <- Wanted],
    Kept = case Format of
               safetensors -> [Pair || {<<"tessera.types">>, _} = Pair <- Meta];
               _ -> []
           end,
    tessera_io_container:unflatten(Chosen, Kept, existing);
container(npy, [{_, _, _, Make}], _, _) -> Make();
container(safetensors, Entries, Meta, Options) -> tessera_io_container:unflatten(Entries, Meta, maps:get(atoms, Options, existing));
container(_, Entries, _, _) -> maps:from_list([{Name, Make()} || {Name, _, _, Make} <- Entries]).

%% @doc The types, shapes and metadata of a file, without its contents.
%% ```
%% 1> Path = filename:join(os:getenv("TMPDIR", "/tmp"), "tessera_io_example.npy").
%% 2> tessera_io:save(Path, tessera:iota({2, 3}, f32)).
%% ok
%% 3> tessera_io:info(Path).
%% #{format => npy,metadata => #{},tensors => #{<<"tensor">> => {f32,{2,3}}}}
%% 4> file:delete(Path).
%% ok
%% '''
-spec info(file:name_all()) -> info().
info(Path) ->
    named(info, [Path], Path,
          fun() ->
                  {Format, Entries, Meta} = opened(Path, #{}),
                  #{format => Format, metadata => maps:from_list(Meta), tensors => maps:from_list([{N, {T, S}} || {N, T, S, _} <- Entries])}
          end).

opened(Path, Options) ->
    Name = tessera_io_file:path(Path),
    Contents = case maps:get(map, Options, true) of
                   true -> tessera_io_file:map(Name);
                   false -> tessera_io_file:read(Name)
               end,
    Format = case Options of
                 #{format := Given} -> Given;
                 #{} -> format(Contents, Name)
             end,
    {Entries, Meta} = decoded(Format, Contents, maps:get(quantized, Options, widen)),
    {Format, Entries, Meta}.

format(<<"\x93NUMPY", _/binary>>, _) -> npy;
format(<<"PK", _/binary>>, _) -> npz;
format(<<"GGUF", _/binary>>, _) -> gguf;
format(<<_:64, ${, _/binary>>, _) -> safetensors;
format(_, Name) -> ending(Name).

ending(Name) ->
    case string:lowercase(filename:extension(Name)) of
        <<".safetensors">> -> safetensors;
        <<".npy">> -> npy;
        <<".npz">> -> npz;
        <<".gguf">> -> gguf;
        Other -> tessera_io_file:fail(invalid_argument, "neither contents nor the ending ~tp tell a format: #{format => ...} does", [Other])
    end.

decoded(safetensors, Contents, _) -> tessera_io_safetensors:decode(Contents);
decoded(gguf, Contents, Quantized) -> tessera_io_gguf:decode(Contents, Quantized);
decoded(npy, Contents, _) ->
    {Type, Shape, Make} = tessera_io_npy:decode(Contents),
    {[{<<"tensor">>, Type, Shape, Make}], []};
decoded(npz, Contents, _) -> {[array(Contents, Entry) || #{name := Name} = Entry <- tessera_io_zip:entries(Contents), not is_folder(Name)], []}.

is_folder(<<>>) -> tessera_io_file:fail(data_loss, "an array has no name", []);
is_folder(Name) -> binary:last(Name) =:= $/.

%% An array of an archive. Deflated arrays are read when they are used.
array(Archive, #{name := File, size := Size} = Entry) ->
    #{type := Type, shape := Shape} = head(Archive, Entry, min(Size, 128)),
    Name = case filename:extension(File) of
               <<".npy">> -> filename:rootname(File);
               _ -> File
           end,
    {Name, Type, Shape, fun() ->
                                {_, _, Make} = tessera_io_npy:decode(tessera_io_zip:contents(Archive, Entry)),
                                Make()
                        end}.

head(Archive, #{name := Name, size := Size} = Entry, Bytes) ->
    case tessera_io_npy:header(tessera_io_zip:first(Archive, Entry, Bytes)) of
        {ok, Header} -> Header;
        {more, More} when More =< Size, More > Bytes -> head(Archive, Entry, More);
        {more, _} -> tessera_io_file:fail(data_loss, "~ts ends within its header", [Name])
    end.

%% @equiv save(Path, Container, #{})
-spec save(file:name_all(), term()) -> ok.
save(Path, Container) -> save(Path, Container, #{}).

%% @doc Saves a container, in the format that the ending of the name says, or the option `format'. A reader sees the old file or the new
%% one, and no part of either. `metadata' are texts that a safetensors file keeps beside the tensors.
-spec save(file:name_all(), term(), save_options()) -> ok.
save(Path, Container, Options) ->
    named(save, [Path, Container, Options], Path,
          fun() ->
                  ok = known(Options, #{format => [safetensors, npy, npz], metadata => map}),
                  Name = tessera_io_file:path(Path),
                  Format = case Options of
                               #{format := Given} -> Given;
                               #{} -> ending(Name)
                           end,
                  tessera_io_file:write(Name, encoded(Format, Container, Options))
          end).

encoded(npy, #tessera{ref = Ref} = Tensor, _) when is_reference(Ref) -> tessera_io_npy:encode(Tensor);
encoded(npy, Other, _) -> tessera_io_file:fail(invalid_argument, "an npy file has one tensor, got ~ts", [tessera_error:show(Other)]);
encoded(npz, Container, _) ->
    tessera_io_zip:archive([{<<Name/binary, ".npy">>, tessera_io_npy:encode(Tensor)} || {Name, Tensor} <- tessera_io_container:names(Container)]);
encoded(safetensors, Container, Options) ->
    {Tensors, Meta} = tessera_io_container:flatten(Container),
    Own = [{text(Key), text(Value)} || {Key, Value} <- maps:to_list(maps:get(metadata, Options, #{}))],
    tessera_io_safetensors:encode(Tensors, Meta ++ Own);
encoded(gguf, _, _) -> tessera_io_file:fail(unimplemented, "GGUF files can be loaded only", []).

%% @equiv read_csv(Path, #{})
-spec read_csv(file:name_all()) -> {[binary()], tessera:tensor()}.
read_csv(Path) -> read_csv(Path, #{}).

%% @doc The numbers of a file of comma-separated values: the names of its columns, and a row for each line.
%%
%% <dl>
%% <dt>`header => false'</dt><dd>the first line has numbers, too</dd>
%% <dt>`separator => $;'</dt><dd>another character between cells</dd>
%% <dt>`columns => [Name]'</dt><dd>only these, in this order</dd>
%% <dt>`type => Type'</dt><dd>of the numbers: f32 by default</dd>
%% <dt>`missing => Number'</dt><dd>for empty cells: a number, or `nan'; by default they are an error</dd>
%% </dl>
%% ```
%% 1> Path = filename:join(os:getenv("TMPDIR", "/tmp"), "tessera_io_example.csv").
%% 2> file:write_file(Path, "x,y\n1,2.5\n3,4\n").
%% ok
%% 3> {Names, T} = tessera_io:read_csv(Path), file:delete(Path), {Names, tessera:to_list(T)}.
%% {[<<"x">>,<<"y">>],[[1.0,2.5],[3.0,4.0]]}
%% '''
-spec read_csv(file:name_all(), csv_options()) -> {[binary()], tessera:tensor()}.
read_csv(Path, Options) ->
    named(read_csv, [Path, Options], Path,
          fun() ->
                  ok = known(Options, #{separator => byte, header => boolean, columns => names, type => type, missing => missing}),
                  tessera_io_csv:decode(tessera_io_file:map(tessera_io_file:path(Path)), Options)
          end).

%% ---- options and errors

known(Options, Known) when is_map(Options) ->
    lists:foreach(fun({Key, Value}) ->
                          case Known of
                              #{Key := Kind} -> is(Kind, Value) orelse wrong("the option ~0tp cannot be ~ts", [Key, tessera_error:show(Value)]);
                              #{} -> wrong("there is no option ~ts, the options are ~0tp", [tessera_error:show(Key), lists:sort(maps:keys(Known))])
                          end
                  end, maps:to_list(Options));
known(Options, _) -> wrong("expected a map of options, got ~ts", [tessera_error:show(Options)]).

is(Values, Value) when is_list(Values) -> lists:member(Value, Values);
is(format, Value) -> lists:member(Value, [safetensors, npy, npz, gguf]);
is(boolean, Value) -> is_boolean(Value);
is(byte, Value) -> is_integer(Value) andalso Value > 0 andalso Value < 128 andalso not lists:member(Value, "\n\r\"");
is(type, Value) -> tessera_type:is_type(Value);
is(missing, Value) -> is_number(Value) orelse Value =:= nan orelse Value =:= error;
is(names, Value) -> tessera_type:is_proper(Value) andalso lists:all(fun is_text/1, Value);
is(map, Value) -> is_map(Value) andalso lists:all(fun({K, V}) -> is_text(K) andalso is_text(V) end, maps:to_list(Value)).

is_text(Text) when is_atom(Text); is_binary(Text) -> true;
is_text(Text) -> io_lib:printable_unicode_list(Text).

text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Text) -> unicode:characters_to_binary(Text).

-spec wrong(io:format(), [term()]) -> no_return().
wrong(Format, Values) -> throw({io, none, unicode:characters_to_binary(io_lib:format(Format, Values))}).

%% Raises the terms that the other modules throw as errors of this function, with the name of the file.
named(Function, Args, Path, F) ->
    try F()
    catch throw:{io, none, Text} -> tessera_error:raise(Function, Args, #{code => invalid_argument, message => Text});
          throw:{io, Code, Text} ->
            Shown = try unicode:characters_to_binary(Path)
                    catch error:_ -> <<"?">>
                    end,
            Where = case is_binary(Shown) of
                        true -> <<Shown/binary, ": ", Text/binary>>;
                        false -> Text
                    end,
            tessera_error:raise(Function, Args, #{code => Code, message => Where})
    end.
