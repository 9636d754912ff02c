%% @private Tessera.shard_jit: options and shardings of Nx, and the calls.
%%
%% Nx passes the variables with the shapes of the first partition's arguments. The function is traced on whole tensors, whose
%% shapes are those times the sizes of the mesh axes that cut them; its program is split over the partitions and cached by the
%% function, the variables, the mesh, the shardings and the client, or kept in a file: there it is the partitions' program as
%% text. Vectorized axes are leading dims; a sharding names them.
-module(tessera_nx_shard).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([jit/6, to_mlir/4, mesh/1, cuts/3, core/1, client/1, without_client_for_meshes/1, check_devices/2, data/3]).

-record(shard, {mesh   :: tessera_sharding:checked(),
                inputs :: [tessera_sharding:cuts()],     % of the variables' leaves
                outputs :: term(),
                client :: atom() | pid(),           % a cluster may be one
                precision :: atom()}).               % of products; undefined: the client's

%% The options that do not change the program.
-record(how, {cache     :: boolean() | binary(),     % a file
              debug     :: boolean(),
              execution :: term()}).                 % true: each run emits an event

%% A cache entry.
-record(split, {program :: tessera_platform:program() | undefined,   % undefined in a file
                text = <<>> :: binary(),             % there, of the program of one partition
                sources    :: [tessera_nx_plan:source()],
                outputs    :: term(),                % container of templates with the shapes of parts
                donated    :: non_neg_integer(),     % of each partition's arguments, as they are in `sources'
                times      :: {integer(), integer()},                     % microseconds of tracing and of compiling
                kernels    :: {non_neg_integer(), non_neg_integer()}}).   % compiled, found

%% ---- entry points

-spec jit(term(), map(), [term()], fun(([term()]) -> term()), [[fun(() -> map())]], [{atom(), term()}]) -> [term()].
jit(Key, Mesh, Vars, Fun, Lists, Options) ->
    Shard = new(Mesh, Vars, Options),
    How = how(Options),
    ok = check_devices(Shard#shard.mesh, Shard#shard.client),
    in_turn(Shard#shard.client, Key, fun() ->
        ok = check_count(Shard, Lists),
        Args = arguments(Vars, Lists),
        tessera_cache:run_current(fun(Split) -> timed(Shard, How, Key, fun() -> run(Shard, Split, Args) end) end,
                                  fun() -> placed(split(Shard, How, Key, Vars, Fun), Shard, Key, Vars, Fun) end)
    end).

%% The program, which a profile compiles again, node by node, to know the lines of its ops.
placed(#split{program = Program} = Split, #shard{client = Client} = Shard, Key, Vars, Fun) ->
    _ = tessera_places:is_recording() andalso tessera_nx_lines:is_possible() andalso
        begin
            {Id, Here} = tessera_platform:profiled(Client, Program),
            tessera_places:later(Id, fun() -> compiled_again(Shard, Here, Key, Vars, Fun) end)
        end,
    Split.

compiled_again(#shard{precision = Precision} = Shard, Client, Key, Vars, Fun) ->
    Large = enlarged(Shard, Vars),
    {Traced, Places} = tessera_nx_lines:watch(Key, fun() -> tessera_nx_compiler:trace(Fun, Large) end),
    tessera_places:with_nodes(Places,
                              fun() ->
                                      {Program, _} = whole(Shard, Large, Traced, true),
                                      {Part, _, _, _} = check(tessera_nif:partition(Program)),
                                      check(tessera_run:compile(Part, [{client, Client} | tessera_client:asked(Client, Precision)]))
                              end).

in_turn(Client, Key, Call) -> core(fun() -> tessera_platform:turn(Client, fun() -> title(Key) end, Call) end).

%% For errors of ranks that call different functions.
title(Key) when is_function(Key) ->
    [{_, Module}, {_, Name}, {_, Arity}] = [erlang:fun_info(Key, Item) || Item <- [module, name, arity]],
    io_lib:format("shard_jit of ~ts:~ts/~b", [Module, Name, Arity]);
title(_) -> "shard_jit".

%% The program on whole tensors as StableHLO, with `sdy' attributes.
-spec to_mlir(map(), [term()], fun(([term()]) -> term()), [{atom(), term()}]) -> map().
to_mlir(Mesh, Vars, Fun, Options) ->
    Shard = new(Mesh, Vars, Options),
    Large = enlarged(Shard, Vars),
    Traced = tessera_nx_compiler:trace(Fun, Large),
    {Program, Sources} = whole(Shard, Large, Traced, false),
    #{mlir_module => check(tessera_nif:graph_stablehlo(Program)), used_inputs => [I || {arg, I} <- Sources],
      output_container => Traced}.

%% ---- options

new(Mesh, Vars, Options) ->
    Get = fun(Name, Default) -> proplists:get_value(Name, Options, Default) end,
    Shardings = Get(input_shardings, nil),
    is_list(Shardings) orelse
        tessera_nx_error:argument("input_shardings are required for sharding in Tessera, see Tessera.shard_jit/3 for more "
                                  "information", []),
    length(Shardings) =:= length(Vars) orelse
        tessera_nx_error:argument("expected ~b input sharding configuration(s), got ~b", [length(Vars), length(Shardings)]),
    Checked = mesh(Mesh),
    Inputs = lists:append([leaf_cuts(Checked, Sharding, Var) || {Sharding, Var} <- lists:zip(Shardings, Vars)]),
    Client = client(Options),
    #shard{mesh = Checked, inputs = Inputs, outputs = Get(output_shardings, nil), client = Client,
           precision = tessera_nx_compiler:precision(Client, Get(precision, undefined))}.

%% tessera_nx_compiler has checked these options.
how(Options) ->
    Get = fun(Name, Default) -> proplists:get_value(Name, Options, Default) end,
    Cache = case Get(cache, true) of
                nil -> false;
                Given -> Given
            end,
    #how{cache = Cache, debug = Get(debug, false) =:= true, execution = tessera_nx_compiler:executes(Options)}.

%% The name of the client, or the cluster.
-spec client([{atom(), term()}]) -> atom() | pid().
client(Options) ->
    case for_meshes(Options) of
        none ->
            {Client, _} = tessera_nx_client:place(lists:keydelete(device_id, 1, Options)),
            Client;
        Client -> Client
    end.

%% The options without a client that runs functions over meshes only, of which only this module knows.
-spec without_client_for_meshes([{atom(), term()}]) -> [{atom(), term()}].
without_client_for_meshes(Options) ->
    case for_meshes(Options) of
        none -> Options;
        _ -> lists:keydelete(client, 1, Options)
    end.

for_meshes(Options) ->
    Client = proplists:get_value(client, Options, nil),
    case Client =/= nil andalso tessera_nx_client:is_for_meshes(Client) of
        true -> Client;
        false -> none
    end.

%% A client that has as many devices as the mesh has partitions.
-spec check_devices(tessera_sharding:checked(), atom() | pid()) -> ok.
check_devices(Mesh, Client) ->
    Count = tessera_sharding:count(Mesh),
    case core(fun() -> tessera_platform:room(Client, Count) end) of
        ok -> ok;
        {refused, Format, Values} -> tessera_nx_error:argument(Format, Values);
        {devices, Open} ->
            #{device_count := Configured} = tessera_nx_client:'fetch!'(Client),
            tessera_nx_error:argument("~ts has ~b partitions, client ~ts has ~b device(s). :device_count in the client's configuration, or "
                                      "host_devices in that of :tessera, says how many it has",
                                      [tessera_sharding:format(Mesh), Count, tessera_nx_error:inspect(Client), max(Configured, Open)])
    end.

%% A %Nx.Mesh{}; any map with a shape will do.
-spec mesh(term()) -> tessera_sharding:checked().
mesh(#{shape := Shape} = Mesh) ->
    Name = case Mesh of
               #{name := Given} when Given =/= nil -> Given;
               _ -> <<"mesh">>
           end,
    core(fun() -> tessera_sharding:check(shard_jit, [], #{name => Name, shape => Shape}) end);
mesh(Other) -> tessera_nx_error:expected("a mesh", Other).

%% The core's errors as exceptions of Elixir, without its name of the function.
-spec core(fun(() -> Result)) -> Result.
core(F) ->
    try F()
    catch error:{Code, Text} when is_atom(Code), is_binary(Text) ->
        Message = re:replace(Text, "^[a-z_]+(\\([^)]*\\))?: ", "", [{return, binary}, unicode]),
        case Code of
            invalid_argument -> tessera_nx_error:argument("~ts", [Message]);
            _ -> tessera_nx_error:runtime("~ts", [Message])
        end
    end.

%% ---- shardings

%% The cuts of a container's leaves. A container may have one sharding for all of them, a list with one for each, or a
%% container of its own form.
leaf_cuts(Mesh, Sharding, #{'__struct__' := ?TENSOR} = Leaf) -> [cuts(Mesh, Sharding, Leaf)];
leaf_cuts(Mesh, Sharding, Container) ->
    Leaves = tessera_nx_tensor:flatten(Container),
    case tessera_sharding:is_sharding(Sharding) of
        true -> [cuts(Mesh, Sharding, Leaf) || Leaf <- Leaves];
        false when is_list(Sharding), length(Sharding) =:= length(Leaves) ->
            [cuts(Mesh, One, Leaf) || {One, Leaf} <- lists:zip(Sharding, Leaves)];
        false -> parallel_cuts(Mesh, Sharding, Container)
    end.

parallel_cuts(Mesh, Shardings, Container)
  when is_tuple(Shardings), is_tuple(Container), tuple_size(Shardings) =:= tuple_size(Container) ->
    lists:append(lists:zipwith(fun(Sharding, Item) -> leaf_cuts(Mesh, Sharding, Item) end,
                               tuple_to_list(Shardings), tuple_to_list(Container)));
parallel_cuts(Mesh, #{'__struct__' := Name} = Shardings, #{'__struct__' := Name} = Container) ->
    lists:append(lists:zipwith(fun(Sharding, Item) -> leaf_cuts(Mesh, Sharding, Item) end, items(Shardings), items(Container)));
parallel_cuts(Mesh, Shardings, Container)
  when is_map(Shardings), is_map(Container), not is_map_key('__struct__', Shardings), not is_map_key('__struct__', Container) ->
    lists:sort(maps:keys(Shardings)) =:= lists:sort(maps:keys(Container)) orelse no_form(Shardings),
    lists:append([leaf_cuts(Mesh, maps:get(Key, Shardings), Item) || {Key, Item} <- lists:sort(maps:to_list(Container))]);
parallel_cuts(_, Shardings, _) -> no_form(Shardings).

%% The leaves of a struct's container, in the struct's order.
items(Struct) -> lists:reverse('Elixir.Nx.Container':reduce(Struct, [], fun(Item, Items) -> [Item | Items] end)).

-spec no_form(term()) -> no_return().
no_form(Shardings) ->
    tessera_nx_error:expected("a sharding such as %{0 => [0]}, a list with one for each tensor of the container, or a container "
                              "of the same form", Shardings).

%% The cuts of one tensor, with vectorized axes as leading dims. `nil' is that of a result that follows from the program.
-spec cuts(tessera_sharding:checked(), term(), map()) -> tessera_sharding:cuts().
cuts(Mesh, Sharding, Leaf) when is_map(Sharding), not is_map_key('__struct__', Sharding) ->
    Dims = [{dim(Leaf, Name), Name, Axes} || {Name, Axes} <- maps:to_list(Sharding)],
    _ = lists:foldl(fun once/2, [], Dims),
    Cuts = [{Axis, Dim} || {Dim, _, Axes} <- lists:sort(Dims), Axis <- axes(Axes)],
    ok = check_axes([Axis || {Axis, _} <- Cuts], length(tessera_sharding:sizes(Mesh)), []),
    Cuts;
cuts(_, Other, _) -> tessera_nx_error:expected("input sharding to be a map", Other).

once({Dim, Name, _}, Seen) ->
    lists:member(Dim, Seen) andalso
        tessera_nx_error:argument("tensor dimension ~ts (index ~b) was specified multiple times",
                                  [tessera_nx_error:inspect(Name), Dim]),
    [Dim | Seen].

%% The axis of Nx: a vectorized one by its name, another one by its number or name.
dim(#{vectorized_axes := Vectorized} = Leaf, Name) ->
    case position(Name, Vectorized, 0) of
        none -> length(Vectorized) + 'Elixir.Nx':axis_index(Leaf, Name);
        Position -> Position
    end;
dim(_, Name) -> tessera_nx_error:expected("a dimension of a number to be in no sharding", Name).

position(_, [], _) -> none;
position(Name, [{Name, _} | _], I) -> I;
position(Name, [_ | Axes], I) -> position(Name, Axes, I + 1).

axes(Axes) ->
    tessera_type:is_proper(Axes) orelse tessera_nx_error:expected("a list of mesh axes", Axes),
    Axes.

check_axes([Axis | Axes], Count, Used) ->
    is_integer(Axis) andalso Axis >= 0 andalso Axis < Count orelse
        tessera_nx_error:argument("axis ~ts is not valid for mesh with ~b axes", [tessera_nx_error:inspect(Axis), Count]),
    lists:member(Axis, Used) andalso
        tessera_nx_error:argument("axis ~b was used twice in the same input sharding", [Axis]),
    check_axes(Axes, Count, [Axis | Used]);
check_axes([], _, _) -> ok.

%% A leaf whose dims are multiplied, or divided, by Change.
resized(#{vectorized_axes := Vectorized} = Leaf, Change) ->
    {Outer, Inner} = lists:split(length(Vectorized), tuple_to_list(Change(tessera_nx_tensor:shape(Leaf)))),
    Leaf#{shape := list_to_tuple(Inner), vectorized_axes := [{Name, D} || {{Name, _}, D} <- lists:zip(Vectorized, Outer)]}.

enlarged(#shard{mesh = Mesh, inputs = Inputs}, Vars) ->
    Sizes = tessera_sharding:sizes(Mesh),
    {Whole, []} = lists:mapfoldl(
        fun(Var, Left) ->
                Leaves = tessera_nx_tensor:flatten(Var),
                {Own, Rest} = lists:split(length(Leaves), Left),
                Large = [resized(Leaf, fun(Shape) -> tessera_sharding:whole(Sizes, Cuts, Shape) end)
                         || {Leaf, Cuts} <- lists:zip(Leaves, Own)],
                {tessera_nx_tensor:rebuild(Var, Large), Rest}
        end, Inputs, Vars),
    Whole.

%% ---- arguments

check_count(#shard{mesh = Mesh, client = Client}, Lists) ->
    Count = tessera_platform:own(Client, tessera_sharding:count(Mesh)),
    length(Lists) =:= Count orelse
        tessera_nx_error:runtime("Got ~b argument lists, expected ~b (num_replicas=1, num_partitions=~b)",
                                 [length(Lists), Count, Count]),
    ok.

%% A tuple of functions that give the leaves, for each partition. Only leaves that the program uses are asked for.
arguments(Vars, Lists) ->
    Numbers = lists:append([[I || _ <- tessera_nx_tensor:flatten(Var)] || {I, Var} <- lists:zip(lists:seq(0, length(Vars) - 1), Vars)]),
    Leaves = lists:append([tessera_nx_tensor:flatten(Var) || Var <- Vars]),
    Wanted = [{I, tessera_nx_tensor:form(Leaf), maps:get(vectorized_axes, Leaf, [])} || {I, Leaf} <- lists:zip(Numbers, Leaves)],
    [partition(Partition, Wanted, List) || {Partition, List} <- lists:zip(lists:seq(0, length(Lists) - 1), Lists)].

partition(Partition, Wanted, List) ->
    length(List) =:= length(Wanted) orelse
        tessera_nx_error:argument("the arguments of partition ~b have ~b tensors, those of partition 0 have ~b",
                                  [Partition, length(List), length(Wanted)]),
    list_to_tuple([fun() -> argument(Partition, Want, Give()) end || {Want, Give} <- lists:zip(Wanted, List)]).

argument(Partition, {I, Form, Vectorized}, Tensor) ->
    Value = tessera_nx_tensor:anywhere(Tensor),
    tessera_nx_tensor:form(Tensor) =:= Form andalso maps:get(vectorized_axes, Tensor, []) =:= Vectorized orelse
        tessera_nx_error:argument("argument ~b of partition ~b is ~ts, in partition 0 it is ~ts",
                                  [I, Partition, format(tessera_nx_tensor:form(Tensor)), format(Form)]),
    Value.

format({Type, Shape}) -> tessera_type:format(Type, Shape).

%% ---- programs

split(Shard, #how{cache = Path, debug = Debug} = How, Key, Vars, Fun) when is_binary(Path) ->
    Tell = fun(Format, Values) -> Debug =/= true orelse tessera_nx_compiler:debug(Format, Values), ok end,
    Make = fun() ->
                   {Part, Split} = make(Shard, Vars, Fun),
                   pack(Part, told(miss, How, Key, Split))
           end,
    tessera_nx_disk:fetch(Path, keys(Shard, Key, Vars), Tell, fun(Packed) -> unpack(Shard, Packed) end, Make);
split(Shard, #how{cache = false} = How, Key, Vars, Fun) ->
    {_, Split} = make(Shard, Vars, Fun),
    told(miss, How, Key, Split);
split(Shard, #how{cache = true} = How, Key, Vars, Fun) ->
    CacheKey = {nx_shard, tessera_nx_compiler:key(Key, Vars), erlang:md5(term_to_binary(Shard))},
    case tessera_cache:find(CacheKey) of
        {ok, {_, Split}} -> told(hit, How, Key, Split);
        error -> split_once(CacheKey, Shard, How, Key, Vars, Fun)
    end.

%% One of several callers makes the program.
split_once(CacheKey, Shard, How, Key, Vars, Fun) ->
    Self = make_ref(),
    Make = fun() ->
                   {_, Split} = make(Shard, Vars, Fun),
                   {Self, Split}
           end,
    case tessera_cache:make(CacheKey, Make, fun tessera_digest:weigh/1) of
        {Self, Split} -> told(miss, How, Key, Split);
        {_, Split} -> told(hit, How, Key, Split)
    end.

told(HitOrMiss, #how{debug = Debug}, Key, #split{times = Times, kernels = Kernels} = Split) ->
    ok = tessera_nx_compiler:report(HitOrMiss, Key, Times, Kernels, Debug),
    Split.

%% The program of one partition, as a cache entry.
make(Shard, Vars, Fun) ->
    Large = enlarged(Shard, Vars),
    {Eval, Traced} = timer:tc(fun() -> tessera_nx_compiler:trace(Fun, Large) end),
    {Compile, {Part, Split}} = timer:tc(fun() -> partitioned(Shard, Vars, Large, Traced) end),
    {Part, Split#split{times = {Eval, Compile}}}.

partitioned(#shard{mesh = Mesh, client = Client, precision = Precision} = Shard, Vars, Large, Traced) ->
    {Program, Sources} = whole(Shard, Large, Traced, true),
    {Part, _, Cuts, _} = check(tessera_nif:partition(Program)),
    Roots = tessera_nx_tensor:flatten(Traced),
    Parts = [part(Mesh, Root, Own) || {Root, Own} <- lists:zip(Roots, Cuts)],
    Own = check(tessera_platform:compile(Client, Part, tessera_client:passed(Precision), [tessera_nx_tensor:form(Leaf) || Leaf <- Parts])),
    Leaves = lists:append([tessera_nx_tensor:flatten(Var) || Var <- Vars]),
    Used = [case Source of
                {arg, I} -> I;
                _ -> held
            end || Source <- Sources],
    {Part, #split{program = Own, sources = Sources, outputs = tessera_nx_tensor:rebuild(Traced, Parts),
                  donated = tessera_nx_compiler:donated(Leaves, Used, Parts), times = {0, 0}, kernels = tessera_platform:kernels(Client, Own)}}.

%% The finished program on whole tensors, with its mesh and shardings; the sources of its parameters.
whole(#shard{mesh = Mesh, inputs = Inputs, client = Given} = Shard, Large, Traced, Holds) ->
    Forms = [tessera_nx_tensor:form(Leaf) || Var <- Large, Leaf <- tessera_nx_tensor:flatten(Var)],
    Client = case tessera_platform:has(Given, ops) of
                 true -> Given;
                 false -> undefined      % blocks are lowered for the default client
             end,
    {Program, Sources} = tessera_nx_plan:whole(tessera_nx_tensor:flatten(Traced), Forms, Client, Holds),
    ok = check(tessera_nif:set_mesh(Program, tessera_sharding:sizes(Mesh), tessera_sharding:names(Mesh))),
    Params = [case Source of
                  {arg, I} -> lists:nth(I + 1, Inputs);
                  _ -> []
              end || Source <- Sources],
    ok = check(tessera_nif:set_shardings(Program, Params, output_cuts(Shard, Traced))),
    {Program, Sources}.

%% ---- in a file

%% The keys that the file must have. A cluster that is started again is another process.
keys(#shard{mesh = Mesh, inputs = Inputs, outputs = Outputs, client = Client, precision = Precision}, Key, Vars) ->
    #{precision => Precision, args => tessera_nx_compiler:var_keys(Vars), mesh => tessera_sharding:plain(Mesh), input_shardings => Inputs,
      output_shardings => Outputs, client => tessera_platform:key(Client), function => tessera_nx_disk:version(Key), vsn => tessera:version()}.

pack(Part, #split{sources = Sources} = Split) ->
    Split#split{program = undefined, text = check(tessera_nif:graph_text(Part)),
                sources = [tessera_nx_plan:pack_source(Source) || Source <- Sources]}.

%% The executable is made once from a text.
unpack(#shard{client = Client, precision = Precision}, #split{text = Text, sources = Sources, outputs = Outputs} = Split) ->
    Types = [tessera_nx_tensor:form(Own) || Own <- tessera_nx_tensor:flatten(Outputs)],
    Own = tessera_cache:fetch({nx_shard_text, Client, Precision, erlang:md5(Text)},
                              fun() -> check(tessera_platform:compile(Client, check(tessera_nif:parse(Text)), tessera_client:passed(Precision), Types)) end),
    Split#split{program = Own, sources = [tessera_nx_plan:unpack_source(Source) || Source <- Sources]}.

%% Where a cut does not divide, the longest prefix of whole axes does.
output_cuts(#shard{outputs = nil}, _) -> [];
output_cuts(#shard{mesh = Mesh, outputs = Outputs}, Traced) ->
    [tessera_sharding:even(tessera_sharding:sizes(Mesh), Cuts, tessera_nx_tensor:shape(Root))
     || {Cuts, Root} <- lists:zip(leaf_cuts(Mesh, Outputs, Traced), tessera_nx_tensor:flatten(Traced))].

part(Mesh, Root, Cuts) ->
    Template = tessera_nx_tensor:template(resized(Root, fun(Shape) -> tessera_sharding:part(tessera_sharding:sizes(Mesh), Cuts, Shape) end)),
    case Template of
        #{'donatable?' := _} -> Template#{'donatable?' => false};
        _ -> Template
    end.

check(Result) -> tessera_nx_error:check(compile, Result).

%% ---- calls

timed(Shard, #how{debug = true} = How, Key, Run) ->
    {Time, Result} = timer:tc(fun() -> timed(Shard, How#how{debug = false}, Key, Run) end),
    tessera_nx_compiler:debug("Tessera execution on ~b devices in ~.1fms", [tessera_sharding:count(Shard#shard.mesh), Time / 1000]),
    Result;
timed(#shard{mesh = Mesh, client = Client}, #how{execution = true}, Key, Run) ->
    tessera_nx_compiler:ran(Key, #{client => Client, device_id => 0, partitions => tessera_sharding:count(Mesh)}, Run);
timed(_, _, _, Run) -> Run().

run(Shard, Split, Args) ->
    case execute(Shard, Split, Args) of
        stale -> stale;
        Lists -> [results(Split, Shard, Results) || Results <- lists:zip(lists:seq(0, length(Lists) - 1), Lists)]
    end.

%% A tensor stays where it is, until the platform copies it.
execute(#shard{client = Client}, #split{program = Own, sources = Sources, donated = Donated}, Args) ->
    Given = [[given(Source, Leaves) || Source <- Sources] || Leaves <- Args],
    tessera_nx_error:check(run, core(fun() -> tessera_platform:run(Client, Own, Given, 0, Donated) end)).

given({arg, I}, Leaves) -> (element(I + 1, Leaves))();
given({held, Tensor}, _) -> Tensor.

results(#split{outputs = Outputs}, #shard{client = Client}, {Partition, Results}) ->
    Leaves = [Template#{data := data(Result, Client, Partition)}
              || {Template, Result} <- lists:zip(tessera_nx_tensor:flatten(Outputs), Results)],
    tessera_nx_tensor:rebuild(Outputs, Leaves).

%% The field `data' of a part. Results of a cluster stay on its ranks, and are read where they are used.
-spec data(tessera:tensor(), atom() | pid(), non_neg_integer()) -> map().
data(Part, Client, Partition) ->
    Home = tessera_platform:home(Client, Partition),
    case tessera_platform:has(Client, handles) of
        true -> tessera_nx_tensor:data(Part, Home);
        false -> tessera_nx_tensor:on_rank(Part, Home)
    end.
