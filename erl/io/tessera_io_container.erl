%% @private Containers as named tensors and a description in JSON, for the metadata of a safetensors file. A name is the path to the
%% tensor, so a program in another language finds it: `#{dense => #{kernel => T}}' has "dense.kernel".
%%
%%     "name"                         a tensor
%%     {"map": [[KEY, ITEM], ...]}    {"tuple": [ITEM, ...]}    {"list": [ITEM, ...]}
%%     {"integer": "7"}  {"float": "1.5"}  {"complex": [ITEM, ITEM]}  {"atom": "x"}  {"text": "x"}  {"bytes": "eA=="}
%%
%% A tensor of a type that the format lacks is stored as another one, and `types' says so: c128 as pairs of f64, and integers
%% of 2 and 4 bits as bytes.
-module(tessera_io_container).
-include("tessera.hrl").
-include("../term/tessera_number.hrl").
-export([flatten/1, unflatten/3, names/1, narrow/1, widen/2]).

%% Keys of the metadata. Files that other programs wrote have neither key.
-define(CONTAINER, <<"tessera.container">>).
-define(TYPES, <<"tessera.types">>).

%% ---- names

%% The named tensors of a container, and its metadata.
-spec flatten(term()) -> {[{binary(), tessera:tensor()}], [{binary(), binary()}]}.
flatten(Container) ->
    {Item, {Named, _}} = item(Container, [], {[], #{}}),
    {Stored, Types} = lists:mapfoldr(fun narrowed/2, [], Named),
    Meta = [{?CONTAINER, iolist_to_binary(tessera_json:encode(Item))}],
    {lists:reverse(Stored), Meta ++ [{?TYPES, iolist_to_binary(tessera_json:encode({object, Types}))} || Types =/= []]}.

narrowed({Name, Tensor}, Types) ->
    case narrow(Tensor) of
        Tensor -> {{Name, Tensor}, Types};
        Stored -> {{Name, Stored}, [{Name, atom_to_binary(Tensor#tessera.type)} | Types]}
    end.

%% The named tensors alone, for formats that keep nothing else.
-spec names(term()) -> [{binary(), tessera:tensor()}].
names(Container) ->
    {_, {Named, _}} = item(Container, [], {[], #{}}),
    lists:reverse(Named).

item(#tessera{ref = Ref} = Tensor, Path, {Named, Used}) when is_reference(Ref) ->
    Name = free(text(lists:reverse(Path)), Used, 1),
    {Name, {[{Name, Tensor} | Named], Used#{Name => []}}};
item(#tessera{} = Tensor, _, _) ->
    tessera_io_file:fail(invalid_argument, "~ts has no contents to be saved", [tessera_error:show(Tensor)]);
item({complex, Re, Im} = N, _, State) when ?IS_COMPLEX_NUMBER(N) -> {{object, [{<<"complex">>, [plain(Re), plain(Im)]}]}, State};
item(Tuple, Path, State) when is_tuple(Tuple) -> items(<<"tuple">>, tuple_to_list(Tuple), Path, State);
item(List, Path, State) when is_list(List) ->
    tessera_type:is_proper(List) orelse
        tessera_io_file:fail(invalid_argument, "an improper list cannot be saved: ~ts", [tessera_error:show(List)]),
    items(<<"list">>, List, Path, State);
item(Map, Path, State) when is_map(Map) ->
    {Pairs, After} = lists:mapfoldl(fun({Key, Value}, Now) ->
                                            {Item, Next} = item(Value, [key(Key) | Path], Now),
                                            {[constant(Key), Item], Next}
                                    end, State, lists:sort(maps:to_list(Map))),
    {{object, [{<<"map">>, Pairs}]}, After};
item(Other, _, State) -> {plain(Other), State}.

items(Kind, Terms, Path, State) ->
    Numbered = lists:zip(lists:seq(0, length(Terms) - 1), Terms),
    {Items, After} = lists:mapfoldl(fun({I, Term}, Now) -> item(Term, [integer_to_binary(I) | Path], Now) end, State, Numbered),
    {{object, [{Kind, Items}]}, After}.

text([]) -> <<"tensor">>;
text(Path) -> iolist_to_binary(lists:join($., Path)).

%% Two keys may have the same text: an atom and a binary.
free(Name, Used, N) ->
    Try = case N of
              1 -> Name;
              _ -> <<Name/binary, $~, (integer_to_binary(N))/binary>>
          end,
    case Used of
        #{Try := _} -> free(Name, Used, N + 1);
        #{} when Try =:= <<"__metadata__">> -> free(Name, Used, N + 1);
        #{} -> Try
    end.

key(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
key(N) when is_integer(N) -> integer_to_binary(N);
key(Text) when is_binary(Text) ->
    case is_utf8(Text) of
        true -> Text;
        false -> base64:encode(Text)
    end;
key(Other) -> unicode:characters_to_binary(io_lib:format("~0tp", [Other])).

is_utf8(Text) -> unicode:characters_to_binary(Text) =:= Text.

%% The description of a key. A key has no tensors.
constant(Key) ->
    {Item, {Named, _}} = item(Key, [], {[], #{}}),
    Named =:= [] orelse tessera_io_file:fail(invalid_argument, "a key of a map has a tensor, which cannot be saved", []),
    Item.

plain(N) when is_integer(N) -> {object, [{<<"integer">>, integer_to_binary(N)}]};
plain(N) when is_float(N) -> {object, [{<<"float">>, iolist_to_binary(io_lib:format("~w", [N]))}]};
plain(Atom) when is_atom(Atom) -> {object, [{<<"atom">>, atom_to_binary(Atom)}]};
plain(Bytes) when is_binary(Bytes) ->
    case is_utf8(Bytes) of
        true -> {object, [{<<"text">>, Bytes}]};
        false -> {object, [{<<"bytes">>, base64:encode(Bytes)}]}
    end;
plain(Other) -> tessera_io_file:fail(invalid_argument, "~ts cannot be saved", [tessera_error:show(Other)]).

%% ---- containers

%% The container that the metadata describes; without a description a map of the tensors by their names. Atoms: `existing', or
%% `new' where the file may make atoms.
-spec unflatten([tessera_io_file:entry()], [{binary(), binary()}], existing | new) -> term().
unflatten(Entries, Meta, Atoms) ->
    Types = types(proplists:get_value(?TYPES, Meta, <<"{}">>)),
    Tensors = maps:from_list([{Name, widened(Make, maps:get(Name, Types, none))} || {Name, _, _, Make} <- Entries]),
    case proplists:get_value(?CONTAINER, Meta) of
        undefined -> Tensors;
        Text ->
            case tessera_json:decode(Text) of
                {ok, Item} -> term(Item, Tensors, Atoms);
                error -> bad()
            end
    end.

types(Text) ->
    case tessera_json:decode(Text) of
        {ok, {object, Pairs}} -> maps:from_list(Pairs);
        _ -> bad()
    end.

widened(Make, none) -> Make();
widened(Make, Type) -> widen(Make(), Type).

term(Name, Tensors, _) when is_binary(Name) ->
    case Tensors of
        #{Name := Tensor} -> Tensor;
        #{} -> tessera_io_file:fail(data_loss, "it has no tensor ~ts, which its container has", [Name])
    end;
term({object, [{Kind, Value}]}, Tensors, Atoms) -> term(Kind, Value, Tensors, Atoms);
term(_, _, _) -> bad().

term(<<"map">>, Pairs, Tensors, Atoms) when is_list(Pairs) ->
    maps:from_list([case Pair of
                        [Key, Value] -> {term(Key, #{}, Atoms), term(Value, Tensors, Atoms)};
                        _ -> bad()
                    end || Pair <- Pairs]);
term(<<"tuple">>, Items, Tensors, Atoms) when is_list(Items) -> list_to_tuple([term(Item, Tensors, Atoms) || Item <- Items]);
term(<<"list">>, Items, Tensors, Atoms) when is_list(Items) -> [term(Item, Tensors, Atoms) || Item <- Items];
term(<<"complex">>, [Re, Im], _, Atoms) -> {complex, term(Re, #{}, Atoms), term(Im, #{}, Atoms)};
term(Kind, Text, _, Atoms) when is_binary(Text) ->
    try constant(Kind, Text, Atoms)
    catch error:_ -> bad()
    end;
term(_, _, _, _) -> bad().

constant(<<"integer">>, Text, _) -> binary_to_integer(Text);
constant(<<"float">>, Text, _) -> binary_to_float(Text);
constant(<<"text">>, Text, _) -> Text;
constant(<<"bytes">>, Text, _) -> base64:decode(Text);
constant(<<"atom">>, Text, new) -> binary_to_atom(Text);
constant(<<"atom">>, Text, existing) ->
    try binary_to_existing_atom(Text)
    catch error:badarg ->
            tessera_io_file:fail(failed_precondition, "it has the atom ~ts, which this node does not know: load the modules that use it, or allow "
                                 "the file new atoms by #{atoms => new}", [Text])
    end.

-spec bad() -> no_return().
bad() -> tessera_io_file:fail(data_loss, "the description of its container is damaged", []).

%% ---- types that files lack

%% The same numbers in a type that the format has.
-spec narrow(tessera:tensor()) -> tessera:tensor().
narrow(#tessera{type = c128, shape = Shape} = Tensor) ->
    tessera_io_file:tensor(tessera_io_file:bytes(Tensor), f64, list_to_tuple(tuple_to_list(Shape) ++ [2]));
narrow(#tessera{type = Type} = Tensor) when Type =:= s2; Type =:= s4 -> tessera:as_type(Tensor, s8);
narrow(#tessera{type = Type} = Tensor) when Type =:= u2; Type =:= u4 -> tessera:as_type(Tensor, u8);
narrow(Tensor) -> Tensor.

-spec widen(tessera:tensor(), binary()) -> tessera:tensor().
widen(#tessera{type = f64, shape = Shape} = Pairs, <<"c128">>) when tuple_size(Shape) > 0, element(tuple_size(Shape), Shape) =:= 2 ->
    Sizes = lists:droplast(tuple_to_list(Shape)),
    tessera_io_file:tensor(tessera_io_file:bytes(Pairs), c128, list_to_tuple(Sizes));
widen(#tessera{type = s8} = Bytes, <<"s2">>) -> tessera:as_type(Bytes, s2);
widen(#tessera{type = s8} = Bytes, <<"s4">>) -> tessera:as_type(Bytes, s4);
widen(#tessera{type = u8} = Bytes, <<"u2">>) -> tessera:as_type(Bytes, u2);
widen(#tessera{type = u8} = Bytes, <<"u4">>) -> tessera:as_type(Bytes, u4);
widen(_, _) -> bad().
