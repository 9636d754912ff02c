%% @private The functions of tessera_cluster on a rank that has joined: every rank calls them with the data of its own partitions. A
%% call is one turn of tessera_cluster_joined, with one or more *steps*. In a step each rank sends its progress to the others. So an
%% error of one is raised on all, and ranks that call different functions, or the same function on different data, learn the difference
%% by name.
-module(tessera_cluster_spmd).
-include("tessera.hrl").
-export([noop/1, map/3, put/2, save/4, load/3, measured/2]).

%% Bytes of the first message of a step from each rank: the size of the rank's term, and its beginning.
-define(FIRST, 1024).
%% Codes of errors that all ranks know.
-define(CODES, [invalid_argument, out_of_range, resource_exhausted, failed_precondition, unimplemented, cancelled, data_loss, internal]).

-type joined() :: tessera_cluster_joined:joined().
-type outcome() :: {ok, term()} | {failed, atom(), term(), erlang:stacktrace()}.
%% The same as other ranks are told it.
-type told() :: {ok, term()} | {error, atom(), binary()}.

%% Returns when all ranks have called it.
-spec noop(joined()) -> ok.
noop(Joined) ->
    turn(Joined, fun() -> "noop" end, fun() ->
        _ = tell(Joined, noop, {ok, []}),
        ok
    end).

turn(Joined, Name, F) -> tessera_cluster_joined:turn(Joined, Name, F).

%% ---- functions

%% The function is called in the turn, so others learn it when its process is killed; it cannot call the cluster itself.
-spec map(joined(), function(), none | [term()]) -> [term()].
map(#{rank := Rank} = Joined, F, Args) ->
    [{_, Module}, {_, Name}, {_, Arity}] = [erlang:fun_info(F, Item) || Item <- [module, name, arity]],
    turn(Joined, fun() -> io_lib:format("map of ~ts:~ts/~b", [Module, Name, Arity]) end, fun() ->
        Outcome = outcome(fun() -> apply(F, [Rank | argument(Args)]) end),
        All = tell(Joined, {map, Module, Name, Arity}, told(Outcome, fun(_) -> [] end)),
        [own(Joined, Outcome, All)]
    end).

argument(none) -> [];
argument([_] = Args) -> Args;
argument(Args) -> refuse("map: got ~b arguments, expected one, for this rank", [length(Args)]).

%% ---- tensors

%% No other rank takes part.
-spec put(joined(), [Container]) -> [Container].
put(#{devices := Devices}, Parts) ->
    length(Parts) > 0 andalso length(Parts) =< Devices orelse
        refuse("put: got ~b lists, and this rank has ~b devices: one list for each of its partitions, at most one for each device",
               [length(Parts), Devices]),
    placed(Parts).

%% Part I on device I.
placed(Parts) -> [placed(Part, I) || {I, Part} <- lists:zip(lists:seq(0, length(Parts) - 1), Parts)].

placed(Part, I) ->
    {Signature, Leaves} = tessera_tree:flatten(Part),
    tessera_tree:unflatten(Signature, [case Leaf of
                                           #tessera{} -> tessera_cluster_joined:place(Leaf, I);
                                           Number -> Number
                                       end || Leaf <- Leaves]).

%% ---- saving

%% All ranks know the leaves of all partitions, so each finds out which tensors it writes. Rank 0 writes the index when all have told that
%% they have written, and the others wait for that.
-spec save(joined(), file:name_all(), [term()], none | {tessera_mesh:mesh(), term()}) -> ok.
save(#{rank := Rank, ranks := Ranks} = Joined, Given, Parts, Layout) ->
    turn(Joined, fun() -> ["save ", path(Given)] end, fun() ->
        Path = tessera_cluster_files:absolute(save, Given),
        {Plan, Leaves, Save, Kinds} = planned(Joined, Path, outcome(fun() -> tessera_cluster_save:plan(Parts, Layout, Ranks) end)),
        Keyed = tessera_cluster_save:keyed(Plan, Kinds, 0),
        Shares = tessera_cluster_save:shared_out(Ranks, Keyed),
        Own = maps:from_list(lists:append(tessera_cluster_save:keyed(Plan, Leaves, Rank * length(Leaves)))),
        Tensors = [{tessera_cluster_save:name(Plan, Key), maps:get(Key, Own)} || {Key, _} <- lists:nth(Rank + 1, Shares)],
        Pieces = written(Joined, {Path, Save}, outcome(fun() -> tessera_cluster_files:write(Rank, {Path, Save, Tensors}) end)),
        Index = outcome(fun() -> Rank =/= 0 orelse finished({Path, Save}, Plan, Keyed, lists:zip(Shares, Pieces)) end),
        _ = own(Joined, Index, tell(Joined, {save, index}, told(Index, fun(_) -> [] end))),
        ok
    end).

finished(Where, Plan, Keyed, Written) ->
    ok = tessera_cluster_files:check(0, Where),
    tessera_cluster_save:finish(Where, Plan, Keyed, Written).

%% The plan and the leaves of this rank's partitions, the number of the save, and the leaves of all partitions: numbers, and `tensor'.
planned(#{rank := Rank} = Joined, Path, Outcome) ->
    Number = case Rank of 0 -> crypto:strong_rand_bytes(16); _ -> <<>> end,
    All = tell(Joined, {save, plan}, told(Outcome, fun({#{signature := Signature, sizes := Sizes, cuts := Cuts}, Leaves}) ->
        {[{path, Path}, {partitions, length(Leaves)}, {form, digest(Signature)}, {mesh, Sizes}, {shardings, digest(Cuts)}],
         Number, [[kind(Leaf) || Leaf <- List] || List <- Leaves]}
    end)),
    {Plan, Leaves} = own(Joined, Outcome, All),
    ok = same(save, [What || {ok, {What, _, _}} <- All]),
    [{_, Save, _} | _] = Told = [Said || {ok, Said} <- All],
    {Plan, Leaves, Save, lists:append([Kinds || {_, _, Kinds} <- Told])}.

kind(#tessera{}) -> tensor;
kind(Number) -> Number.

digest(Term) -> erlang:md5(term_to_binary(Term, [deterministic])).

%% The pieces of each rank. A rank removes its file only if it was told that another has failed, because then all ranks are told. If it
%% hears nothing, rank 0 may have heard that all have written, and the file is a part of the save; rank 0 knows whether the index exists.
written(#{rank := Rank, ranks := Ranks} = Joined, {Path, Save}, Outcome) ->
    All = try tell(Joined, {save, write}, told(Outcome, fun(Pieces) -> Pieces end))
          catch Class:Reason:Trace ->
                  _ = [tessera_cluster_files:remove(Path, #{save => Save, files => Ranks}) || Rank =:= 0],
                  erlang:raise(Class, Reason, Trace)
          end,
    _ = [tessera_cluster_files:remove_own(Path, Save, Rank) || {error, _, _} <- All],
    _ = own(Joined, Outcome, All),
    [Pieces || {ok, Pieces} <- All].

%% ---- loading

%% Each rank reads the index, and what its partitions need.
-spec load(joined(), file:name_all(), none | tessera_mesh:mesh()) -> [term()].
load(Joined, Given, Mesh) ->
    turn(Joined, fun() -> ["load ", path(Given)] end, fun() ->
        Path = tessera_cluster_files:absolute(load, Given),
        Outcome = outcome(fun() -> loaded(Joined, Path, Mesh) end),
        All = tell(Joined, load, told(Outcome, fun({Save, Sizes, _}) -> [{path, Path}, {save, Save}, {mesh, Sizes}] end)),
        {_, _, Parts} = own(Joined, Outcome, All),
        ok = same(load, [What || {ok, What} <- All]),
        Parts
    end).

loaded(#{rank := Rank, ranks := Ranks} = Joined, Path, Mesh) ->
    {#{signature := Signature, save := Save} = Index, Sizes, Count} = tessera_cluster_save:opened(Path, Mesh),
    ok = tessera_cluster_save:fits(tessera_cluster_joined:room(Joined, Count)),
    Each = Count div Ranks,
    Boxes = tessera_cluster_save:boxes(Path, Index, Sizes, lists:seq(Rank * Each, (Rank + 1) * Each - 1)),
    Plan = tessera_cluster_save:boxes_of(Boxes),
    Tensors = maps:from_list(lists:zip(Plan, tessera_cluster_files:read(Rank, {Save, Plan}))),
    {Save, Sizes, placed([tessera_cluster_save:container(Signature, List, Tensors) || List <- Boxes])}.

%% ---- profiles

%% Exchanges for the clocks. The first ones compile.
-define(EXCHANGES, 10).

%% What all ranks have measured, with the clocks as this rank sees them.
-spec measured(joined(), map()) -> tessera_platform:measured().
measured(#{rank := Rank} = Joined, Own) ->
    turn(Joined, fun() -> "profile" end, fun() ->
        Times = [exchanged(Joined, N) || N <- lists:seq(1, ?EXCHANGES)],
        All = tell(Joined, profile, {Times, Own}),
        {Ahead, Error} = maps:get(clock, Own),
        [case Measured of
             #{rank := Rank} -> Measured;
             _ ->
                 {More, Apart} = tessera_cluster_measures:apart(Times, Others),
                 Measured#{clock => {Ahead + More, Error + Apart}}
         end || {Others, Measured} <- All]
    end).

exchanged(Joined, N) ->
    Begun = tessera_run:clock(),
    _ = tell(Joined, {profile, N}, []),
    {Begun, tessera_run:clock()}.

%% ---- outcomes

-spec outcome(fun(() -> term())) -> outcome().
outcome(F) ->
    try {ok, F()}
    catch Class:Reason:Trace -> {failed, Class, Reason, Trace}
    end.

%% To other ranks `unavailable' means that this one is gone.
-spec told(outcome(), fun((term()) -> term())) -> told().
told({ok, Value}, What) -> {ok, What(Value)};
told({failed, Class, Reason, _}, _) ->
    {Code, Text} = tessera_cluster_joined:cause(Class, Reason),
    case lists:member(Code, ?CODES) of
        true -> {error, Code, Text};
        false when Code =:= unavailable -> {error, failed_precondition, Text};
        false -> {error, internal, <<(atom_to_binary(Code))/binary, ": ", Text/binary>>}
    end.

%% The value of this rank. Raises its own error unchanged; else the first error of another rank, with its number.
own(_, {failed, Class, Reason, Trace}, _) -> erlang:raise(Class, Reason, Trace);
own(#{server := Server, ranks := Ranks}, {ok, Value}, All) ->
    case [{Rank, Code, Text} || {Rank, {error, Code, Text}} <- lists:zip(lists:seq(0, Ranks - 1), All)] of
        [] -> Value;
        [{Rank, Code, Text} | _] ->
            #{ranks := Infos} = tessera_cluster_state:ask(Server, info),
            #{host := Host} = lists:nth(Rank + 1, Infos),
            raise(Code, "rank ~b on ~ts: ~ts", [Rank, Host, Text])
    end.

%% Lists of {Name, Value} of all ranks.
same(Function, [First | Others]) ->
    Differences = [{Rank, Name, A, B} || {Rank, Other} <- lists:zip(lists:seq(1, length(Others)), Others),
                                         {{Name, A}, {Name, B}} <- lists:zip(First, Other), A =/= B],
    case Differences of
        [] -> ok;
        [{Rank, Name, A, B} | _] ->
            raise(failed_precondition, "~s: ranks 0 and ~b differ: ~ts", [Function, Rank, difference(Name, A, B)])
    end.

difference(path, A, B) -> io_lib:format("the paths are ~ts and ~ts", [path(A), path(B)]);
difference(partitions, A, B) -> io_lib:format("they have ~b and ~b containers", [A, B]);
difference(form, _, _) -> "their containers differ in form, types or shapes";
difference(mesh, A, B) -> io_lib:format("the sizes of the mesh are ~0p and ~0p", [A, B]);
difference(shardings, _, _) -> "the shardings";
difference(save, _, _) -> "they found different saves".

path(Path) ->
    try unicode:characters_to_binary(filename:flatten(Path)) of
        Text when is_binary(Text) -> Text;
        _ -> io_lib:format("~0tp", [Path])
    catch error:_ -> io_lib:format("~0tp", [Path])
    end.

-spec refuse(io:format(), [term()]) -> no_return().
refuse(Format, Values) -> raise(invalid_argument, Format, Values).

-spec raise(atom(), io:format(), [term()]) -> no_return().
raise(Code, Format, Values) -> tessera_cluster_error:raise(tessera_cluster_error:new(Code, Format, Values)).

%% ---- steps

%% The terms of all ranks at this step of their calls, by rank. The first message has a fixed size: it contains the size of the rank's
%% term, and often all of the term; if not, a second message has the size of the largest term.
-spec tell(joined(), term(), term()) -> [term()].
tell(#{ranks := 1}, _, Own) -> [Own];
tell(#{ranks := Ranks} = Joined, Step, Own) ->
    Packed = term_to_binary(Own),
    Beginning = binary:part(Packed, 0, min(?FIRST - 8, byte_size(Packed))),
    First = split(?FIRST, gathered(Joined, {Step, first}, ?FIRST, <<(byte_size(Packed)):64, Beginning/binary>>)),
    case lists:max([Size || <<Size:64, _/binary>> <- First]) of
        Fits when Fits =< ?FIRST - 8 -> [said(Size, Bytes) || <<Size:64, Bytes/binary>> <- First];
        Largest ->
            Size = power_of_two(Largest, 2 * ?FIRST),
            All = split(Size, gathered(Joined, {Step, second}, Size, Packed)),
            Ranks = length(All),
            [said(Own1, Bytes) || {<<Own1:64, _/binary>>, Bytes} <- lists:zip(First, All)]
    end.

said(Size, Bytes) -> binary_to_term(binary:part(Bytes, 0, Size), [safe]).

split(_, <<>>) -> [];
split(Size, Bytes) ->
    <<Own:Size/binary, Rest/binary>> = Bytes,
    [Own | split(Size, Rest)].

%% Few sizes, as each is a program.
power_of_two(Least, Size) when Size >= Least -> Size;
power_of_two(Least, Size) -> power_of_two(Least, 2 * Size).

%% The bytes of all ranks, one after the other; `Size' bytes of each.
gathered(#{ranks := Ranks} = Joined, Step, Size, Own) ->
    ok = tessera_cluster_joined:again(Joined),
    Padded = <<Own/binary, 0:((Size - byte_size(Own)) * 8)>>,
    Program = tessera_cluster_joined:step(program(Ranks, Size), Step),
    case tessera_cluster_joined:run(Joined, Program, [[tessera:from_binary(Padded, u8, {Size})]], {1, 0}) of
        [[All]] -> tessera:to_binary(All);
        {error, Error} -> tessera_cluster_error:raise(Error)
    end.

program(Ranks, Size) ->
    case tessera_cache:fetch({?MODULE, Ranks, Size}, fun() -> compiled(Ranks, Size) end) of
        {error, Error} -> tessera_cluster_error:raise(Error);
        Program -> Program
    end.

compiled(Ranks, Size) ->
    Text = io_lib:format("graph @main mesh [~b] partitioned (%0: u8[~b] sharded [[0]]) -> (u8[~b] sharded [[]]) {~n"
                         "  %1 = all_gather %0 {axes = [0], dim = 0} : u8[~b]~n  return %1~n}~n", [Ranks, Size, Ranks * Size, Ranks * Size]),
    case tessera_nif:parse(iolist_to_binary(Text)) of
        {error, _} = Error -> Error;
        Part -> tessera_cluster_joined:program(Part, [])
    end.
