%% @private The lines of the user's code in the rows of profiles. They come from executables of this node (tessera_places).
-module(tessera_profile_lines).
-export([add/3, finder/3]).

%% A program as tessera_nif:profile_stop/1 returns it: {Number, Runs, Ns, Longest, Bytes, Pieces, Rows}. A row with lines has one element more.
-type program() :: tuple().
%% Adds the lines to a program of a rank, by the key of its note.
-type finder() :: fun((tessera_places:key(), program()) -> program()).

%% Adds the lines of each row of a profile that has ended.
-spec add([program()], reference(), [module()]) -> [program()].
add(Programs, Profile, Modules) ->
    Encoded = tessera_error:check(profile, [], tessera_nif:profile_lines(Profile)),
    Lines = tessera_places:lines(lists:append(lists:append(Encoded)), Modules),
    [with(Program, Own, Lines) || {Program, Own} <- lists:zip(Programs, Encoded)].

with(Program, Encoded, Lines) ->
    With = fun(Row, Own) -> erlang:append_element(Row, lists:uniq([map_get(Code, Lines) || Code <- Own])) end,
    setelement(7, Program, lists:zipwith(With, element(7, Program), Encoded)).

%% The steps of a rank have the lines of the same program on this node. `Keys' has the programs of all ranks, and `Compiled' those that this node has
%% compiled only for that. Their lines are sought here at once, because that reads the code of modules.
-spec finder([tessera_places:key()], #{tessera_places:key() => tessera_nif:executable()}, [module()]) -> finder().
finder(Keys, Compiled, Modules) ->
    Known = maps:from_list([{Key, Rows} || Key <- lists:usort(Keys), {_, _} = Rows <- [rows(maps:get(Key, Compiled, Key))]]),
    Lines = tessera_places:lines(lists:append([lists:append(Encoded) || {_, Encoded} <- maps:values(Known)]), Modules),
    fun(Key, Program) -> like(maps:get(Key, Known, unknown), Program, Lines) end.

rows(Executable) ->
    try tessera_nif:profile_rows(Executable) of
        {error, _} -> unknown;
        {Own, Encoded} -> {steps(Own), Encoded}
    catch error:_ -> unknown       % this node has not compiled the program
    end.

%% Another instruction set may give other steps.
like({Steps, Encoded}, Program, Lines) ->
    case Steps =:= steps(Program) of
        true -> with(Program, Encoded, Lines);
        false -> Program
    end;
like(unknown, Program, _) -> Program.

%% Depth, launch, kind, op, ops and type.
steps(Program) -> [lists:sublist(tuple_to_list(Row), 6) || Row <- element(7, Program)].
