%% @private Names of the arguments and results of a module of StableHLO. JAX writes where a leaf is in its container, in the syntax of Python:
%% `weights['conv'].kernel', `result[0]'.
-module(tessera_stablehlo_names).
-export([signature/1, names/1, arguments/2, results/2]).
-export_type([names/0, leaf/0, key/0]).

-type key() :: binary() | non_neg_integer().
-type leaf() :: #{name := binary() | undefined, path := [key()], type := tessera_type:type(), shape := tuple()}.
-opaque names() :: {[{binary(), [key()]}], [[key()]] | list}.

%% ---- what a module says

-spec signature({[Leaf], [Leaf]}) -> #{inputs := [leaf()], outputs := [leaf()]} when
      Leaf :: {binary() | undefined, tessera_type:type(), tuple()}.
signature({Inputs, Outputs}) ->
    #{inputs => [leaf(Input, fun path/1) || Input <- Inputs], outputs => [leaf(Output, fun result_path/1) || Output <- Outputs]}.

leaf({Name, Type, Shape}, Path) ->
    #{name => Name, path => case Name of undefined -> []; _ -> Path(Name) end, type => Type,
      shape => list_to_tuple([case Size of -1 -> any; _ -> Size end || Size <- tuple_to_list(Shape)])}.

%% For arguments/2 and results/2. All arguments need names. Results without names, or with conflicting ones, become a list.
-spec names(#{inputs := [leaf()], outputs := [leaf()]}) -> {ok, names()} | {nameless, non_neg_integer()}.
names(#{inputs := Inputs, outputs := Outputs}) ->
    case [I || {I, #{name := undefined}} <- lists:zip(lists:seq(0, length(Inputs) - 1), Inputs)] of
        [] -> {ok, {[{Name, Path} || #{name := Name, path := Path} <- Inputs], result_paths(Outputs)}};
        [I | _] -> {nameless, I}
    end.

result_paths(Outputs) ->
    Paths = [Path || #{path := Path} <- Outputs],
    Named = [Name || #{name := Name} <- Outputs, Name =/= undefined],
    try length(Named) =:= length(Outputs) andalso container([{Path, leaf} || Path <- Paths]) of
        false -> list;
        _ -> Paths
    catch throw:no_container -> list
    end.

%% ---- paths

%% A name that is no path is one key.
path(Name) ->
    {Root, Rest} = word(Name),
    try [Root | keys(Rest)]
    catch throw:no_path -> [Name]
    end.

%% The word before the keys is JAX's own; older versions wrote none.
result_path(<<"result">>) -> [];
result_path(<<"result", C, _/binary>> = Name) when C =:= $[; C =:= $. -> tl(path(Name));
result_path(Name) ->
    case path(Name) of
        [<<>> | Keys] -> Keys;
        Path -> Path
    end.

word(Text) ->
    case binary:match(Text, [<<"[">>, <<".">>]) of
        {At, 1} -> split_binary(Text, At);
        nomatch -> {Text, <<>>}
    end.

keys(<<>>) -> [];
keys(<<$., Rest/binary>>) ->
    {Key, After} = word(Rest),
    [Key | keys(After)];
keys(<<"[<flat index ", Rest/binary>>) ->
    case string:to_integer(Rest) of
        {Index, <<">]", After/binary>>} when is_integer(Index), Index >= 0 -> [Index | keys(After)];
        _ -> throw(no_path)
    end;
keys(<<$[, Quote, Rest/binary>>) when Quote =:= $'; Quote =:= $" ->
    case quoted(Rest, Quote, []) of
        {Key, <<$], After/binary>>} -> [Key | keys(After)];
        _ -> throw(no_path)
    end;
keys(<<$[, Rest/binary>>) ->
    Size = bracketed(Rest, 0, 0),
    <<Key:Size/binary, $], After/binary>> = Rest,
    [number_or_text(Key) | keys(After)];
keys(_) -> throw(no_path).

number_or_text(Key) ->
    case string:to_integer(Key) of
        {Number, <<>>} when is_integer(Number), Number >= 0 -> Number;
        _ -> Key
    end.

%% Up to the quote, with the characters that a backslash stands for.
quoted(<<Quote, Rest/binary>>, Quote, Done) -> {unicode:characters_to_binary(lists:reverse(Done)), Rest};
quoted(<<$\\, $x, Hex:2/binary, Rest/binary>>, Quote, Done) -> quoted(Rest, Quote, [code(Hex) | Done]);
quoted(<<$\\, $u, Hex:4/binary, Rest/binary>>, Quote, Done) -> quoted(Rest, Quote, [code(Hex) | Done]);
quoted(<<$\\, $U, Hex:8/binary, Rest/binary>>, Quote, Done) -> quoted(Rest, Quote, [code(Hex) | Done]);
quoted(<<$\\, C, Rest/binary>>, Quote, Done) ->
    quoted(Rest, Quote, [case C of $n -> $\n; $t -> $\t; $r -> $\r; _ -> C end | Done]);
quoted(<<C/utf8, Rest/binary>>, Quote, Done) -> quoted(Rest, Quote, [C | Done]);
quoted(_, _, _) -> throw(no_path).

code(Hex) ->
    try binary_to_integer(Hex, 16) of
        Code when Code >= 0, Code < 16#D800; Code > 16#DFFF, Code =< 16#10FFFF -> Code;
        _ -> throw(no_path)
    catch error:badarg -> throw(no_path)
    end.

%% The bytes of a key, such as the tuple ('a', 1), up to its bracket.
bracketed(Text, At, Open) ->
    case Text of
        <<_:At/binary, $], _/binary>> when Open =:= 0 -> At;
        <<_:At/binary, C, _/binary>> when C =:= $]; C =:= $); C =:= $} -> bracketed(Text, At + 1, Open - 1);
        <<_:At/binary, C, _/binary>> when C =:= $[; C =:= $(; C =:= ${ -> bracketed(Text, At + 1, Open + 1);
        <<_:At/binary, Quote, Rest/binary>> when Quote =:= $'; Quote =:= $" ->
            {_, After} = quoted(Rest, Quote, []),
            bracketed(Text, byte_size(Text) - byte_size(After), Open);
        <<_:At/binary, _, _/binary>> -> bracketed(Text, At + 1, Open);
        _ -> throw(no_path)
    end.

%% ---- containers

%% The arguments of the program in their order, from a map or a keyword list of them. The keys of maps are texts or atoms.
-spec arguments(names(), term()) -> {ok, [term()]} | {missing, binary()}.
arguments({Inputs, _}, Given) -> arguments(Inputs, Given, []).

arguments([{Name, Path} | Inputs], Given, Found) ->
    case find(Name, Path, Given) of
        {ok, Value} -> arguments(Inputs, Given, [Value | Found]);
        error -> {missing, Name}
    end;
arguments([], _, Found) -> {ok, lists:reverse(Found)}.

%% By its whole name, or by its path.
find(Name, Path, Given) ->
    case Given of
        #{Name := Value} -> {ok, Value};
        _ -> walk(Path, Given)
    end.

walk([Key | Path], Container) ->
    case step(Key, Container) of
        {ok, Value} -> walk(Path, Value);
        error -> error
    end;
walk([], Value) -> {ok, Value}.

step(Key, Map) when is_map(Map), is_map_key(Key, Map) -> {ok, map_get(Key, Map)};
step(Key, Map) when is_map(Map), is_binary(Key) -> with_atom(Key, fun(Atom) -> maps:find(Atom, Map) end);
step(Index, Tuple) when is_integer(Index), is_tuple(Tuple), Index < tuple_size(Tuple) -> {ok, element(Index + 1, Tuple)};
step(Index, List) when is_integer(Index), is_list(List) ->
    case tessera_type:is_proper(List) andalso Index < length(List) of
        true -> {ok, lists:nth(Index + 1, List)};
        false -> error
    end;
step(Key, List) when is_binary(Key), is_list(List) ->
    case in_keywords(Key, List) of
        {ok, _} = Found -> Found;
        error -> with_atom(Key, fun(Atom) -> in_keywords(Atom, List) end)
    end;
step(_, _) -> error.

in_keywords(Key, List) ->
    case tessera_type:is_proper(List) andalso lists:keyfind(Key, 1, List) of
        {_, Value} -> {ok, Value};
        _ -> error
    end.

%% A key is text of the module, which must make no new atoms.
with_atom(Key, Find) ->
    try binary_to_existing_atom(Key) of
        Atom -> Find(Atom)
    catch error:_ -> error
    end.

%% The results as a container: numbered parts are tuples, named ones maps.
-spec results(names(), [Leaf]) -> Leaf | tuple() | map() | [Leaf].
results({_, list}, Leaves) -> Leaves;
results({_, Paths}, Leaves) -> container(lists:zip(Paths, Leaves)).

container([{[], Leaf}]) -> Leaf;
container([]) -> {};
container(All) ->
    Groups = lists:foldr(fun({[Key | Path], Leaf}, Groups) -> maps:update_with(Key, fun(Old) -> [{Path, Leaf} | Old] end, [{Path, Leaf}], Groups);
                            ({[], _}, _) -> throw(no_container)
                         end, #{}, All),
    Keys = lists:sort(maps:keys(Groups)),
    case Keys =:= lists:seq(0, length(Keys) - 1) of
        true -> list_to_tuple([container(map_get(Key, Groups)) || Key <- Keys]);
        false -> maps:map(fun(_, Group) -> container(Group) end, Groups)
    end.
