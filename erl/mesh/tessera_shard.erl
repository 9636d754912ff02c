%% @private What tessera:shard_jit and tessera:shard_map do. For shard_jit a function is traced on whole tensors and its program is
%% split over the partitions of a mesh; for shard_map it is traced on parts (tessera_shard_map). One executable runs on all
%% partitions.
%%
%% A program is cached by the function, with its environment, the options (mesh, shardings, client), and the types of one
%% partition's arguments. Tensors of the environment are hidden arguments, as in tessera_jit; each partition gets the whole.
-module(tessera_shard).
-include("tessera.hrl").
-export([jit/3, map/5, results/2, whole/2, explain/2, interpret/2, leaf_cuts/4]).

-define(NO_OPTIONS, #{input_shardings => undefined, output_shardings => undefined, threads => 0, donate => [], client => default,
                      fuse => true, simplify => true, precision => undefined}).
%% Options of shard_map. `check': a result that varies where it is replicated is an error.
-define(NO_MAP_OPTIONS, (maps:without([input_shardings, output_shardings], ?NO_OPTIONS))#{check => true}).

%% A function as jit/3 or map/5 returns it; immutable.
-record(shard, {name        :: shard_jit | shard_map,
                function    :: function(),
                arity       :: arity(),
                id          :: binary(),             % digest of code, environment and options
                environment :: [tessera_type:tensor()],   % the distinct tensors of the environment
                versions    :: tessera_digest:versions(),   % of modules whose functions it finds by name
                mesh        :: tessera_sharding:checked(),
                inputs      :: [term()],             % one for each argument
                outputs     :: term(),
                threads     :: non_neg_integer(),
                donate      :: [pos_integer()],
                client      :: atom() | pid(),           % a cluster may be one
                compile     :: [no_fusion | no_simplify],
                precision   :: atom(),               % of products; undefined: the client's
                check       :: boolean()}).          % of shard_map

%% A cache entry.
-record(split, {program    :: tessera_platform:program(),
                result     :: tessera_tree:signature(),
                cuts       :: [tessera_sharding:cuts()], % of the results
                hidden     :: [pos_integer()],       % which tensors of the environment follow the arguments
                donated    :: non_neg_integer()}).   % arguments of each partition, bit I for the I-th leaf from 0

%% ---- functions of shard_jit and shard_map

-spec jit(function(), tessera_sharding:mesh(), map()) -> fun(([[term()]]) -> [term()]).
jit(F, Mesh, Options) ->
    Args = [F, Mesh, Options],
    returned(new(shard_jit, Args, F, Mesh, tessera_ops:options(shard_jit, Args, Options, ?NO_OPTIONS))).

-spec map(function(), tessera_sharding:mesh(), [term()], term(), map()) -> fun(([[term()]]) -> [term()]).
map(F, Mesh, Inputs, Outputs, Options) ->
    Args = [F, Mesh, Inputs, Outputs, Options],
    All = tessera_ops:options(shard_map, Args, Options, ?NO_MAP_OPTIONS),
    returned(new(shard_map, Args, F, Mesh, All#{input_shardings => Inputs, output_shardings => Outputs})).

returned(Shard) -> fun(Lists) -> call(Shard, Lists) end.

new(Name, Args, F, Mesh, #{client := default} = All) -> new(Name, Args, F, Mesh, All#{client := tessera_nif:default_client()});
new(Name, Args, F, Mesh, #{client := Client, threads := Threads, donate := Donate} = All) when is_function(F) ->
    Checked = tessera_sharding:check(Name, Args, Mesh),
    {arity, Arity} = erlang:fun_info(F, arity),
    Inputs = inputs(Name, Args, maps:get(input_shardings, All), Arity),
    is_integer(Threads) andalso Threads >= 0 orelse raise(Name, Args, "threads is ~0p", [Threads]),
    is_donate(Donate, Arity) orelse
        raise(Name, Args, "donate is ~0p, expected positions of arguments from 1 to ~b", [Donate, Arity]),
    Check = maps:get(check, All, true),
    is_boolean(Check) orelse raise(Name, Args, "check is ~0p, expected true or false", [Check]),
    Passes = passes(Name, Args, All),
    Precision = maps:get(precision, All),
    tessera_client:is_precision(Precision) orelse
        raise(Name, Args, "precision is ~0p, expected default, high or highest", [Precision]),
    ok = tessera_sharding:check_client(Name, Args, Checked, Client),
    {Digest, Environment, Versions} = tessera_error:check(Name, [F], tessera_digest:with_code(F)),
    Key = {?MODULE, Name, Checked, maps:remove(threads, All)},
    #shard{name = Name, function = F, arity = Arity, id = erlang:md5([Digest, term_to_binary(Key)]),
           environment = Environment, versions = Versions, mesh = Checked, inputs = Inputs, outputs = maps:get(output_shardings, All),
           threads = Threads, donate = Donate, client = Client, compile = Passes, precision = Precision, check = Check};
new(Name, Args, F, _, _) -> raise(Name, Args, "expected a function, got ~ts", [tessera_error:show(F)]).

inputs(Name, Args, undefined, _) ->
    raise(Name, Args, "input_shardings are required: a list with a sharding for each argument", []);
inputs(Name, Args, Shardings, Arity) ->
    tessera_type:is_proper(Shardings) orelse
        raise(Name, Args, "input_shardings is ~ts, expected a list with a sharding for each argument",
              [tessera_error:show(Shardings)]),
    length(Shardings) =:= Arity orelse
        raise(Name, Args, "expected ~b input sharding configuration~s, got ~b", [Arity, plural(Arity), length(Shardings)]),
    Shardings.

plural(1) -> "";
plural(_) -> "s".

is_donate(Donate, Arity) ->
    tessera_type:is_proper(Donate) andalso lists:all(fun(I) -> is_integer(I) andalso I > 0 andalso I =< Arity end, Donate).

passes(Name, Args, #{fuse := Fuse, simplify := Simplify}) ->
    is_boolean(Fuse) andalso is_boolean(Simplify) orelse
        raise(Name, Args, "fuse is ~0p and simplify is ~0p, expected true or false", [Fuse, Simplify]),
    [no_fusion || not Fuse] ++ [no_simplify || not Simplify].

-spec raise(atom(), [term()], io:format(), [term()]) -> no_return().
raise(Name, Args, Format, Values) ->
    tessera_error:raise(Name, Args, invalid_argument, atom_to_list(Name) ++ ": " ++ Format, Values).

%% ---- calls

-spec call(#shard{}, [[term()]]) -> [term()].
call(#shard{name = Name} = Shard, Lists) ->
    tessera_trace:is_tracing() andalso
        tessera_error:raise(Name, [], failed_precondition,
                            "~s: a function over a mesh cannot be called while another function is traced; trace the "
                            "function that it was made from", [Name]),
    tessera_platform:turn(Shard#shard.client, fun() -> title(Shard) end, fun() ->
        {Signature, Leaves} = flatten(Shard, Lists),
        run(Shard, placed(Shard, split(Shard, Signature, Lists), Signature), Signature, Lists, Leaves)
    end).

%% For errors of ranks that call different functions.
title(#shard{name = Name, function = F}) ->
    [{_, Module}, {_, Function}, {_, Arity}] = [erlang:fun_info(F, Item) || Item <- [module, name, arity]],
    io_lib:format("~s of ~ts:~ts/~b", [Name, Module, Function, Arity]).

%% The signature of the arguments, common to all partitions, and the leaves of each.
flatten(#shard{name = Name, mesh = Mesh, client = Client} = Shard, Lists) ->
    All = tessera_sharding:count(Mesh),
    Count = tessera_platform:own(Client, All),
    tessera_type:is_proper(Lists) andalso length(Lists) =:= Count orelse
        raise(Name, [], "got ~ts, expected ~b argument lists, one for each partition~s of ~ts",
              [count(Lists), Count, [" of this rank" || Count =/= All], tessera_sharding:format(Mesh)]),
    {Signature, First} = flatten_one(Shard, 0, hd(Lists)),
    {Signature, [First | flatten_rest(Shard, Signature, hd(Lists), 1, tl(Lists))]}.

count(Lists) ->
    case tessera_type:is_proper(Lists) of
        true -> [integer_to_list(length(Lists)), " argument list", plural(length(Lists))];
        false -> tessera_error:show(Lists)
    end.

flatten_one(#shard{name = Name, arity = Arity}, Partition, Args) ->
    tessera_type:is_proper(Args) andalso length(Args) =:= Arity orelse
        raise(Name, [], "partition ~b has the arguments ~ts, expected a list of ~b",
              [Partition, tessera_error:show(Args), Arity]),
    tessera_tree:flatten(Args).

flatten_rest(Shard, Signature, First, Partition, [Args | Lists]) ->
    Leaves = case flatten_one(Shard, Partition, Args) of
                 {Signature, Same} -> Same;
                 {Other, Like} ->
                     ok = accept(Shard#shard.name, Signature, Other, Partition, {First, Args}),
                     Like
             end,
    [Leaves | flatten_rest(Shard, Signature, First, Partition + 1, Lists)];
flatten_rest(_, _, _, _, []) -> [].

%% A number may stand for a scalar of its type, and the other way round.
accept(Name, {list, Wanted}, {list, Given}, Partition, {First, Args}) ->
    case [I || {I, {A, B}} <- lists:zip(lists:seq(1, length(Args)), lists:zip(Wanted, Given)), not is_like(A, B)] of
        [] -> ok;
        [I | _] -> raise(Name, [], "argument ~b of partition ~b is ~ts, in partition 0 it is ~ts",
                         [I, Partition, tessera_error:show(lists:nth(I, Args)), tessera_error:show(lists:nth(I, First))])
    end.

is_like(Same, Same) -> true;
is_like(A, B) -> tessera_tree:structure(A) =:= tessera_tree:structure(B) andalso tessera_tree:types(A) =:= tessera_tree:types(B).

split(#shard{id = Id, versions = Versions} = Shard, Signature, Lists) ->
    Key = {tessera_digest:current(Id, Versions), tessera_tree:key(Signature)},
    case tessera_cache:find(Key) of
        {ok, Split} -> Split;
        error -> tessera_cache:make(Key, fun() -> make(Shard, Signature, hd(Lists)) end, fun tessera_digest:weigh/1)
    end.

%% The program, which a profile may have to compile again to know the lines of its ops. Until then the profile keeps no arguments.
placed(#shard{client = Client} = Shard, #split{program = Program} = Split, Signature) ->
    _ = tessera_places:is_recording() andalso
        begin
            {Key, Here} = tessera_platform:profiled(Client, Program),
            tessera_places:later(Key, fun() -> compiled(Shard, Here, Signature) end)
        end,
    Split.

compiled(#shard{name = Name} = Shard, Client, Signature) ->
    {Traced, _, _} = trace(Shard, Signature, []),
    {Part, _, _} = part(Shard, Traced, []),
    tessera_error:check(Name, [], tessera_run:compile(Part, [{client, Client} | compiler(Shard, Client)])).

%% The options of the compiler on a client.
compiler(#shard{compile = Passes, precision = Precision}, Client) -> tessera_client:asked(Client, Precision) ++ Passes.

run(Shard, Split, Signature, Lists, Leaves) ->
    case run(Shard, Split, Leaves) of
        stale -> tessera_cache:run_current(fun(Current) -> run(Shard, Current, Leaves) end,
                                           fun() -> split(Shard, Signature, Lists) end);
        Results -> Results
    end.

run(#shard{name = Name, threads = Threads, environment = Environment, client = Client},
    #split{program = Program, result = Result, hidden = Hidden, donated = Donated}, Leaves) ->
    Args = with_hidden(Leaves, [lists:nth(Index, Environment) || Index <- Hidden]),
    case tessera_error:check(Name, [Leaves], tessera_platform:run(Client, Program, Args, Threads, Donated)) of
        stale -> stale;
        Results -> containers(Result, Results)
    end.

with_hidden(Leaves, []) -> Leaves;
with_hidden(Leaves, Hidden) -> [Own ++ Hidden || Own <- Leaves].

containers(Result, Lists) -> [tessera_tree:unflatten(Result, List) || List <- Lists].

%% ---- programs

make(#shard{name = Name, client = Client} = Shard, Signature, Args) ->
    {Traced, Result, Hidden} = trace(Shard, Signature, Args),
    {Part, Cuts, _} = part(Shard, Traced, Args),
    Program = tessera_error:check(Name, [Args], tessera_platform:compile(Client, Part, compiler(Shard, Client), part_types(Shard, Result, Cuts))),
    #split{program = Program, result = Result, cuts = Cuts, hidden = Hidden, donated = donated(Shard, Args)}.

%% The program of one partition, the cuts of its results, and its collectives as text.
part(#shard{name = shard_jit}, Traced, Args) ->
    {Part, _, Cuts, Report} = tessera_error:check(shard_jit, [Args], tessera_nif:partition(Traced)),
    {Part, Cuts, Report};
part(#shard{name = shard_map}, Traced, Args) ->
    tessera_error:check(shard_map, [Args], tessera_nif:combine(Traced)).

%% The types of one partition's results. Of shard_map the signature has them.
part_types(#shard{name = shard_jit, mesh = Mesh}, Result, Cuts) ->
    [{Type, tessera_sharding:part(tessera_sharding:sizes(Mesh), Own, Shape)} || {{Type, Shape}, Own} <- lists:zip(tessera_tree:types(Result), Cuts)];
part_types(#shard{name = shard_map}, Result, _) -> tessera_tree:types(Result).

%% The program with the mesh and the shardings of its arguments and results: on whole tensors, or on parts. Args are the
%% arguments of one partition.
trace(#shard{name = shard_map, function = F, environment = Environment, mesh = Mesh, check = Check} = Shard, Signature, _) ->
    Types = tessera_tree:types(Signature),
    Cuts = fun(Result) -> leaf_cuts(on(Shard), result, Shard#shard.outputs, Result) end,
    Body = fun(Params) ->
                   tessera_shard_map:trace(Mesh, input_cuts(Shard, Signature), Cuts, Check,
                                           fun() -> tessera_trace:call(shard_map, F, tessera_tree:unflatten(Signature, Params)) end)
           end,
    tessera_trace:trace(Body, Types, Environment);
trace(#shard{function = F, environment = Environment, mesh = Mesh} = Shard, Signature, Args) ->
    Sizes = tessera_sharding:sizes(Mesh),
    Types = tessera_tree:types(Signature),
    Inputs = input_cuts(Shard, Signature),
    Whole = [{Type, tessera_sharding:whole(Sizes, Cuts, Shape)} || {{Type, Shape}, Cuts} <- lists:zip(Types, Inputs)],
    Call = fun(Params) ->
                   ok = tessera_error:check(shard_jit, [Args], tessera_nif:set_mesh(tessera_trace:current(), Sizes, tessera_sharding:names(Mesh))),
                   tessera_constraint:on_mesh(Mesh, fun() ->
                       tessera_trace:call(shard_jit, F, tessera_tree:unflatten(Signature, Params))
                   end)
           end,
    {Traced, Result, Hidden} = tessera_trace:trace(Call, Whole, Environment),
    Outputs = output_cuts(Shard, Result),
    ok = tessera_error:check(shard_jit, [Args], tessera_nif:set_shardings(Traced, Inputs, Outputs)),
    {Traced, Result, Hidden}.

%% The cuts of all leaves of the arguments.
input_cuts(#shard{inputs = Inputs} = Shard, {list, Signatures}) ->
    lists:append([leaf_cuts(on(Shard), {argument, I}, Sharding, Signature)
                  || {I, Sharding, Signature} <- lists:zip3(lists:seq(1, length(Inputs)), Inputs, Signatures)]).

%% The cuts of the results. Where the axes of a dim do not divide its size, their longest prefix that divides it is used.
output_cuts(#shard{outputs = undefined}, _) -> [];
output_cuts(#shard{outputs = Outputs, mesh = Mesh} = Shard, Result) ->
    [case Cuts of
         undefined -> undefined;
         _ -> tessera_sharding:even(tessera_sharding:sizes(Mesh), Cuts, Shape)
     end || {Cuts, {_, Shape}} <- lists:zip(leaf_cuts(on(Shard), result, Outputs, Result), tessera_tree:types(Result))].

on(#shard{name = Name, mesh = Mesh}) -> {Name, Mesh}.

%% The cuts of a container's leaves, for the API function and the mesh. The sharding is one for all leaves, or has the container's
%% form.
-spec leaf_cuts({atom(), tessera_sharding:checked()}, {argument, pos_integer()} | result, term(), tessera_tree:signature()) ->
          [tessera_sharding:cuts() | undefined].
leaf_cuts(_, result, undefined, Signature) -> [undefined || _ <- tessera_tree:types(Signature)];
leaf_cuts(On, Place, Sharding, Signature) ->
    case tessera_sharding:is_sharding(Sharding) of
        true -> [cuts(On, Place, Sharding, Shape) || {_, Shape} <- tessera_tree:types(Signature)];
        false -> container_cuts(On, Place, Sharding, Signature)
    end.

container_cuts(On, Place, Shardings, {list, Signatures}) when is_list(Shardings) ->
    all_cuts(On, Place, Shardings, Shardings, Signatures);
container_cuts(On, Place, Shardings, {tuple, Signatures}) when is_tuple(Shardings) ->
    all_cuts(On, Place, Shardings, tuple_to_list(Shardings), Signatures);
container_cuts(On, Place, Shardings, {map, Keys, Signatures}) when is_map(Shardings) ->
    {Same, Values} = lists:unzip(lists:sort(maps:to_list(Shardings))),
    Same =:= Keys orelse no_form(On, Place, Shardings, {map, Keys, Signatures}),
    all_cuts(On, Place, Shardings, Values, Signatures);
container_cuts(_, _, _, {static, _}) -> [];
container_cuts(On, Place, Sharding, Signature) when is_map(Sharding) ->   % a wrong sharding of one tensor says what is wrong
    [cuts(On, Place, Sharding, Shape) || {_, Shape} <- tessera_tree:types(Signature)];
container_cuts(On, Place, Shardings, Signature) -> no_form(On, Place, Shardings, Signature).

all_cuts(On, Place, Shardings, Items, Signatures) ->
    tessera_type:is_proper(Items) andalso length(Items) =:= length(Signatures) orelse
        no_form(On, Place, Shardings, {list, Signatures}),
    lists:append([leaf_cuts(On, Place, Item, Signature) || {Item, Signature} <- lists:zip(Items, Signatures)]).

-spec no_form({atom(), tessera_sharding:checked()}, term(), term(), tessera_tree:signature()) -> no_return().
no_form({Name, _}, Place, Shardings, Signature) ->
    raise(Name, [], "the sharding of ~ts is ~ts, expected one such as #{0 => [0]}, or a container of the form of ~ts",
          [place(Place), tessera_error:show(Shardings), form(Signature)]).

form({list, Signatures}) -> [$[, lists:join($,, [form(S) || S <- Signatures]), $]];
form({tuple, Signatures}) -> [${, lists:join($,, [form(S) || S <- Signatures]), $}];
form({map, Keys, Signatures}) ->
    ["#{", lists:join($,, [[io_lib:format("~0tP", [Key, 10]), " => ", form(S)] || {Key, S} <- lists:zip(Keys, Signatures)]), $}];
form({static, Term}) -> tessera_error:show(Term);
form(Leaf) ->
    [{Type, Shape}] = tessera_tree:types(Leaf),
    tessera_type:format(Type, Shape).

place({argument, I}) -> ["argument ", integer_to_list(I)];
place(result) -> "the result".

cuts({Name, Mesh}, Place, Sharding, Shape) ->
    try tessera_sharding:cuts(Name, [], Mesh, Sharding, tuple_size(Shape))
    catch error:{invalid_argument, <<_:9/binary, ": ", Text/binary>>} -> raise(Name, [], "~ts: ~ts", [place(Place), Text])
    end.

%% The leaves of donated arguments, as bits.
donated(#shard{donate = Donate}, Args) ->
    {_, _, Bits} = lists:foldl(
        fun(Arg, {Position, First, Bits}) ->
                {_, Leaves} = tessera_tree:flatten(Arg),
                Next = First + length(Leaves),
                Own = case lists:member(Position, Donate) of
                          true -> (1 bsl Next) - (1 bsl First);
                          false -> 0
                      end,
                {Position + 1, Next, Bits bor Own}
        end, {1, 0, 0}, Args),
    Bits.

%% ---- inspection

%% The record of a function that jit/3 or map/5 returned.
made_by_us(F) when is_function(F, 1) ->
    case erlang:fun_info(F, module) of
        {module, ?MODULE} ->
            {env, Terms} = erlang:fun_info(F, env),
            lists:keyfind(shard, 1, [Term || Term <- Terms, is_tuple(Term)]);
        _ -> false
    end;
made_by_us(_) -> false.

%% The shardings of its results for these argument lists or templates, in a container of the result's form.
-spec results(function(), [[term()]]) -> term().
results(F, Lists) ->
    case made_by_us(F) of
        false -> tessera_error:raise(results, [F, Lists], invalid_argument, "results: expected a function of shard_jit or shard_map, got ~ts",
                                     [tessera_error:show(F)]);
        Shard ->
            {Signature, _} = flatten(Shard, Lists),
            #split{result = Result, cuts = Cuts} = split(Shard, Signature, Lists),
            tessera_tree:unflatten(Result, [tessera_sharding:sharding(Own) || Own <- Cuts])
    end.

%% The traced program of such a function, before any pass, with its mesh and shardings; none for other functions.
-spec whole(function(), [term()]) -> tessera_nif:builder() | none.
whole(F, Args) ->
    case made_by_us(F) of
        false -> none;
        Shard ->
            {Signature, _} = flatten(Shard, hd(Args)),
            {Whole, _, _} = trace(Shard, Signature, hd(hd(Args))),
            Whole
    end.

%% Text: the collectives, the cuts of each value, and the steps of one partition; none for other functions.
-spec explain(function(), [term()]) -> binary() | none.
explain(F, Args) ->
    case made_by_us(F) of
        false -> none;
        Shard -> explain_split(Shard, Args)
    end.

explain_split(#shard{mesh = Mesh, client = Client} = Shard, [Lists] = Args) ->
    Check = fun(Result) -> tessera_error:check(explain, Args, Result) end,
    {Signature, _} = flatten(Shard, Lists),
    {Traced, _, _} = trace(Shard, Signature, hd(Lists)),
    {Part, _, Report} = part(Shard, Traced, hd(Lists)),
    #split{program = Program} = split(Shard, Signature, Lists),
    unicode:characters_to_binary([tessera_sharding:format(Mesh), io_lib:format(" of client ~0p~n", [Client]), Report, $\n,
                                  Check(tessera_nif:graph_text(Part)), $\n,
                                  Check(tessera_platform:explain(Client, Program))]);
explain_split(#shard{name = Name}, Args) -> raise(Name, Args, "explain: expected the list of the argument lists of all partitions", []).

%% Calls the function by the interpreter of partitions; for tests.
-spec interpret(function(), [[term()]]) -> [term()].
interpret(F, Lists) ->
    #shard{client = Client, environment = Environment} = Shard = made_by_us(F),
    {Signature, Leaves} = flatten(Shard, Lists),
    {Traced, Result, Hidden} = trace(Shard, Signature, hd(Lists)),
    {Part, _, _} = part(Shard, Traced, hd(Lists)),
    Args = with_hidden(Leaves, [lists:nth(Index, Environment) || Index <- Hidden]),
    Here = [[tessera_remote:local(Arg) || Arg <- List] || List <- Args],
    containers(Result, tessera_error:check(Shard#shard.name, [Lists], tessera_nif:interpret(Part, Here, Client))).
