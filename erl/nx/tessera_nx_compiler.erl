%% @private The callbacks of Nx.Defn.Compiler: options, cache, calls.
%%
%% There are two cache keys. A plan is found by the function with its environment, the arguments'
%% types, shapes, names, vectorized axes and donation, and the relevant options: a hit saves the
%% tracing. The key has the digest of a function's environment, whose terms may be shared
%% (tessera_digest). A function that is traced anew finds its executable by its packed program (tessera_program). The
%% tensors of the environment are hidden arguments of this program, so a changed value compiles nothing.
-module(tessera_nx_compiler).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([compile/4, jit/5, shard_jit/6, partitions_options/1, to_backend/1, is_cached/2, ask_mlir/2, to_mlir/3, key/2, var_keys/1, trace/2, donated/3]).
-export([report/5, debug/2, ran/3, executes/1, precision/2]).

-define(ASK, '$tessera_is_cached').
-define(ASK_MLIR, '$tessera_to_mlir').

%% A cache entry.
-record(compiled, {plan    :: term(),             % a tessera_nx_plan:plan(), or a packed one
                   versions = [] :: tessera_digest:versions(),   % of its callbacks
                   outputs :: term(),             % container of tensors without their memory
                   donated :: non_neg_integer(),  % which of the plan's arguments
                   eval    :: integer(),          % microseconds of tracing and of compiling
                   compile :: integer(),
                   kernels :: {non_neg_integer(), non_neg_integer()}}).   % compiled, reused

-record(options, {cache, hooks, debug, client, device, lazy, precision, execution}).

%% ---- entry points

-spec jit(term(), [term()], fun(([term()]) -> term()), [[fun(() -> map())]], [{atom(), term()}]) -> [term()].
jit(Key, Vars, Fun, [Args], Options) ->
    Checked = options(Options),
    ask_cache(lists:keyfind(?ASK, 1, Options), Key, Vars, Checked),
    run(Key, placed(compiled(Key, Vars, Fun, Checked), fun() -> [{Key, Vars, Fun, Checked}] end), Args, Checked).

-spec compile(term(), [term()], fun(([term()]) -> term()), [{atom(), term()}]) ->
          fun(([[fun(() -> map())]]) -> [term()]).
compile(Key, Vars, Fun, Options) ->
    Checked = options(Options),
    answer_mlir(lists:keyfind(?ASK_MLIR, 1, Options), Vars, Fun, Options),
    Compiled = compiled(Key, Vars, Fun, Checked),
    Told = told(Key, Checked),
    Kept = kept({Key, Vars, Fun, Checked}),
    fun([Args]) -> run(Told, placed(Compiled, fun() -> tessera_places:kept(Kept) end), Args, Checked) end.

%% For profiles. A process that holds the function itself would end when the code of its module is purged.
kept(Function) ->
    case tessera_nx_lines:is_possible() of
        true -> tessera_places:keep(Function);
        false -> none
    end.

-spec shard_jit(term(), map(), [term()], fun(([term()]) -> term()), [[fun(() -> map())]], [{atom(), term()}]) -> [term()].
shard_jit(Key, Mesh, Vars, Fun, Lists, Options) ->
    _ = options(tessera_nx_shard:without_client_for_meshes(lists:keydelete(input_shardings, 1, Options))),
    case lists:keyfind(?ASK_MLIR, 1, Options) of
        {_, Tag} -> throw({Tag, tessera_nx_shard:to_mlir(Mesh, Vars, Fun, Options)});
        false -> tessera_nx_shard:jit(Key, Mesh, Vars, Fun, Lists, Options)
    end.

%% The options of each device of the client.
-spec partitions_options([{atom(), term()}]) -> [[{atom(), term()}]].
partitions_options(Options) ->
    {Client, _} = tessera_nx_client:place(Options),
    #{device_count := Count} = tessera_nx_client:'fetch!'(Client),
    [lists:keystore(device_id, 1, Options, {device_id, Device}) || Device <- tessera_type:dims(Count)].

-spec to_backend([{atom(), term()}]) -> {module(), [{atom(), term()}]}.
to_backend(Options) ->
    {Client, Device} = tessera_nx_client:place(Options),
    {?BACKEND, [{client, Client}, {device_id, Device}]}.

%% A compiled function may be sent to other nodes: it holds the original function only if runs emit
%% events.
told(Key, #options{execution = true}) -> Key;
told(_, _) -> undefined.

%% ---- options

options(List) ->
    Get = fun(Name, Default) ->
                  case lists:keyfind(Name, 1, List) of
                      {_, Value} -> Value;
                      false -> Default
                  end
          end,
    {Client, Device} = tessera_nx_client:place(List),
    Options = #options{cache = cache(Get(cache, true)), hooks = given(Get(hooks, #{})),
                       debug = Get(debug, false) =:= true,
                       client = Client, device = Device, lazy = Get(lazy_transfers, opt_in),
                       precision = precision(Client, Get(precision, undefined)),
                       execution = executes(List)},
    lists:member(Options#options.lazy, [always, never, opt_in]) orelse
        tessera_nx_error:argument(":lazy_transfers must be either :always or :never, got: ~ts",
                                  [tessera_nx_error:inspect(Options#options.lazy)]),
    case lists:keyfind(input_shardings, 1, List) of
        {_, [_ | _]} ->
            tessera_nx_error:argument("input sharding configuration provided but no device mesh was provided", []);
        _ -> Options
    end.

%% Of products, where a client has several: undefined is the client's own.
-spec precision(atom() | pid(), term()) -> undefined | default | high | highest.
precision(_, undefined) -> undefined;
precision(Client, Precision) ->
    tessera_client:is_precision(Precision) orelse
        tessera_nx_error:argument("expected precision configuration to be one of :default, :high, or :highest, got: ~ts",
                                  [tessera_nx_error:inspect(Precision)]),
    tessera_client:precision(Client, Precision).

%% Whether each run emits an event.
-spec executes([{atom(), term()}]) -> term().
executes(Options) ->
    case lists:keyfind(execution_telemetry, 1, Options) of
        {_, Given} -> Given;
        false -> application:get_env(tessera, execution_telemetry, false)
    end.

cache(Cache) when is_boolean(Cache); is_binary(Cache); Cache =:= nil -> Cache;
cache(Other) -> tessera_nx_error:expected(":cache to be true, false or a path", Other).

%% A hook that is nil is none.
given(Hooks) when map_size(Hooks) =:= 0 -> Hooks;
given(Hooks) -> maps:filter(fun is_given/2, Hooks).

is_given(_, F) when is_function(F, 1) -> true;
is_given(_, nil) -> false;
is_given(Name, Other) ->
    tessera_nx_error:expected(["the hook ", tessera_nx_error:inspect(Name), " to be a function of arity 1"], Other).

%% ---- the cache

compiled(Key, Vars, Fun, #options{cache = Path, debug = Debug} = Options) when is_binary(Path) ->
    Tell = fun(Format, Values) -> Debug =/= true orelse debug(Format, Values), ok end,
    Keys = maps:from_list(lists:zip([args, client, device, hooks, lazy_transfers, function, vsn],
                                    tuple_to_list(variant(Vars, Options)) ++ [tessera_nx_disk:version(Key), tessera:version()])),
    tessera_nx_disk:fetch(Path, Keys, Tell,
                          fun(#compiled{plan = Plan} = Packed) -> Packed#compiled{plan = tessera_nx_plan:unpack(Plan)} end,
                          fun() ->
                                  Made = compiled(Key, Vars, Fun, Options#options{cache = true}),
                                  Made#compiled{plan = tessera_nx_plan:pack(Made#compiled.plan)}
                          end);
compiled(Key, Vars, Fun, #options{cache = Off} = Options) when Off =:= false; Off =:= nil ->
    reported(miss, Key, make(Vars, Fun, Options), Options);
compiled(Key, Vars, Fun, Options) -> compiled_for(cache_key(Key, Vars, Options), Key, Vars, Fun, Options).

%% A program with callbacks of an earlier version of their module is made again, with the new version's.
compiled_for(CacheKey, Key, Vars, Fun, Options) ->
    case tessera_cache:find(CacheKey) of
        {ok, {_, #compiled{versions = Versions} = Compiled}} ->
            case tessera_digest:current(CacheKey, Versions) of
                CacheKey -> reported(hit, Key, Compiled, Options);
                Newer -> compiled_for(Newer, Key, Vars, Fun, Options)
            end;
        error -> compiled_once(CacheKey, Key, Vars, Fun, Options)
    end.

compiled_once(CacheKey, Key, Vars, Fun, Options) ->
    Self = make_ref(),
    case once(CacheKey, fun() -> {Self, make(Vars, Fun, Options)} end) of
        {Self, Compiled} ->
            check_recompilation(Key, Vars, Compiled),
            reported(miss, Key, Compiled, Options);
        {_, Compiled} -> reported(hit, Key, Compiled, Options)
    end.

%% The cache refuses a process that would wait for itself.
once(CacheKey, Make) ->
    try tessera_cache:make(CacheKey, Make, fun weigh/1)
    catch error:{failed_precondition, Text} when is_binary(Text) -> tessera_nx_error:runtime("~ts", [Text])
    end.

%% The size of the copy that a table would hold: the program and the tensors of the
%% function's environment.
weigh({_, #compiled{plan = Plan} = Compiled}) ->
    case tessera_digest:weigh(Compiled) of
        infinity -> infinity;
        Bytes -> Bytes + tessera_nx_plan:held_bytes(Plan)
    end.

%% Containers count with their keys, which the function may read.
cache_key(Key, Vars, #options{device = Device, hooks = Hooks, lazy = Lazy} = Options) ->
    {nx, function_key(Key), signature(Vars), target(Options), Device, maps:keys(Hooks), Lazy}.

target(#options{client = Client, precision = undefined}) -> Client;
target(#options{client = Client, precision = Precision}) -> {Client, Precision}.

%% The part of a key for a function and its arguments.
-spec key(term(), [term()]) -> term().
key(Key, Vars) -> {function_key(Key), signature(Vars)}.

%% A function without environment is its own key, with the version of its module if it is named only.
function_key(F) when is_function(F) ->
    case erlang:fun_info(F, env) of
        {env, []} -> named_key(F, erlang:fun_info(F, type));
        _ -> digest(tessera_digest:of_function(F))
    end;
function_key(Other) -> digest(tessera_digest:of_term(Other)).

named_key(F, {type, local}) -> F;
named_key(F, {type, external}) ->
    {module, Module} = erlang:fun_info(F, module),
    {F, tessera_digest:version(Module)}.

digest(Result) -> tessera_nx_error:check(compile, Result).

%% A few bytes, since these keys are copied and hashed several times.
signature(Vars) ->
    case tessera_nif:signature(Vars) of
        undefined -> digest(tessera_digest:of_term([var_key(Var) || Var <- Vars]));
        Signature -> Signature
    end.

%% The other parts of the key, in terms that are also valid on other nodes.
variant(Vars, #options{device = Device, hooks = Hooks, lazy = Lazy} = Options) ->
    {var_keys(Vars), target(Options), Device, maps:keys(Hooks), Lazy}.

%% The properties of the arguments that a program depends on, in terms that are also valid on other nodes.
-spec var_keys([term()]) -> [term()].
var_keys(Vars) -> [var_key(Var) || Var <- Vars].

var_key(#{'__struct__' := ?TENSOR} = Leaf) -> leaf_key(Leaf);
var_key(Var) -> tessera_nx_tensor:rebuild(Var, [leaf_key(Leaf) || Leaf <- tessera_nx_tensor:flatten(Var)]).

leaf_key(#{type := Type, shape := Shape, names := Names, vectorized_axes := Axes} = Leaf) ->
    {Type, Shape, Names, Axes, tessera_nx_tensor:is_donatable(Leaf)}.

%% Whether a call with these arguments would be a cache hit: calls with an option that makes the call stop at
%% the lookup.
-spec is_cached(fun((Options) -> term()), Options) -> boolean() when Options :: [{atom(), term()}].
is_cached(Call, Options) ->
    Tag = make_ref(),
    try
        _ = Call([{?ASK, Tag} | Options]),
        false
    catch throw:{Tag, Answer} -> Answer
    end.

ask_cache(false, _, _, _) -> ok;
ask_cache({_, Tag}, Key, Vars, Options) ->
    _ = tessera_cache:fetch(cache_key(Key, Vars, Options), fun() -> throw({Tag, false}) end),
    throw({Tag, true}).

%% ---- StableHLO

%% The module of a function that Nx compiles: calls with an option that makes the compiler stop at that
%% point.
-spec ask_mlir(fun((Options) -> term()), Options) -> map() when Options :: [{atom(), term()}].
ask_mlir(Call, Options) ->
    Tag = make_ref(),
    try Call([{?ASK_MLIR, Tag} | Options]) of
        _ -> tessera_nx_error:runtime("the function was not compiled by Tessera", [])
    catch throw:{Tag, Answer} -> Answer
    end.

answer_mlir(false, _, _, _) -> ok;
answer_mlir({_, Tag}, Vars, Fun, Options) -> throw({Tag, to_mlir(Vars, Fun, Options)}).

-spec to_mlir([term()], fun(([term()]) -> term()), [{atom(), term()}]) -> map().
to_mlir(Vars, Fun, Options) ->
    #options{hooks = Hooks, client = Client} = options(Options),
    Traced = trace(Fun, Vars),
    Leaves = lists:append([tessera_nx_tensor:flatten(Var) || Var <- Vars]),
    {Text, Used} = tessera_nx_plan:stablehlo(tessera_nx_tensor:flatten(Traced),
                                             [tessera_nx_tensor:form(Leaf) || Leaf <- Leaves], maps:keys(Hooks), Client),
    #{mlir_module => Text, used_inputs => Used, output_container => Traced}.

%% ---- tracing and compiling

make(Vars, Fun, #options{cache = Cache, hooks = Hooks, client = Client, device = Device, precision = Precision}) ->
    Leaves = lists:append([tessera_nx_tensor:flatten(Var) || Var <- Vars]),
    {EvalTime, Traced} = timer:tc(fun() -> trace(Fun, Vars) end),
    Roots = tessera_nx_tensor:flatten(Traced),
    {CompileTime, {Plan, Used}} =
        timer:tc(fun() ->
                         tessera_nx_plan:build(Roots, Leaves, #{handled => maps:keys(Hooks), is_cached => Cache =:= true,
                                                                device => {Client, Device}, precision => Precision})
                 end),
    Outputs = tessera_nx_tensor:rebuild(Traced, [output(Root, {Client, Device}) || Root <- Roots]),
    #compiled{plan = Plan, versions = tessera_nx_plan:versions(Plan), outputs = Outputs, donated = donated(Leaves, Used, Roots), eval = EvalTime,
              compile = CompileTime, kernels = tessera_program:kernels([tessera_nx_plan:code(Plan)])}.

%% The program, which a profile compiles again, node by node, to know the lines of its ops.
placed(#compiled{plan = Plan} = Compiled, Function) ->
    _ = tessera_places:is_recording() andalso tessera_nx_lines:is_possible() andalso
        tessera_places:later(tessera_program:executable(tessera_nx_plan:code(Plan)), fun() -> compiled_again(Function()) end),
    Compiled.

compiled_again([{Key, Vars, Fun, #options{hooks = Hooks, client = Client, precision = Precision}}]) ->
    {Traced, Places} = tessera_nx_lines:watch(Key, fun() -> trace(Fun, Vars) end),
    Leaves = lists:append([tessera_nx_tensor:flatten(Var) || Var <- Vars]),
    What = #{handled => maps:keys(Hooks), client => Client, precision => Precision},
    tessera_places:with_nodes(Places, fun() -> tessera_nx_plan:compile(tessera_nx_tensor:flatten(Traced), Leaves, What) end).

-spec trace(fun(([term()]) -> term()), [term()]) -> term().
%% Traced on one scheduler, so that the nodes' references are in order of creation; see tessera_nx_lower.
trace(Fun, Vars) ->
    Old = bind_scheduler(erlang:system_info(scheduler_id)),
    try tessera_trace:tracing(fun() -> Fun(Vars) end)
    after bind_scheduler(Old)
    end.

%% The flag is not documented.
-dialyzer({nowarn_function, bind_scheduler/1}).
bind_scheduler(Id) ->
    try process_flag(scheduler, Id)
    catch error:badarg -> 0
    end.

output(Root, Place) ->
    {Type, Shape} = tessera_nx_tensor:form(Root),
    T = maps:without(['donatable?'], Root),
    Data = tessera_nx_tensor:data(#tessera{ref = undefined, type = Type, shape = Shape}, Place),
    case Root of
        #{'donatable?' := _} -> T#{data := Data, 'donatable?' => false};
        _ -> T#{data := Data}
    end.

%% Each donated leaf needs a result of its own with the same type and shape.
-spec donated([map()], [non_neg_integer() | held], [map()]) -> non_neg_integer().
donated(Leaves, Used, Roots) ->
    case lists:any(fun tessera_nx_tensor:is_donatable/1, Leaves) of
        true -> donations(Leaves, Used, Roots);
        false -> 0
    end.

donations(Leaves, Used, Roots) ->
    Forms = [tessera_nx_tensor:form(Root) || Root <- Roots],
    {Bits, _} = lists:foldl(fun({I, Leaf}, Acc) -> donate(tessera_nx_tensor:is_donatable(Leaf), I, Leaf, Used, Acc) end,
                            {0, Forms}, lists:zip(tessera_type:dims(length(Leaves)), Leaves)),
    Bits.

donate(false, _, _, _, Acc) -> Acc;
donate(true, I, Leaf, Used, {Bits, Forms}) ->
    Position = position(I, Used, 0),
    Position =/= none orelse
        tessera_nx_error:argument("argument marked for donation is not used by the computation; "
                                  "only used inputs can be donated", []),
    Form = tessera_nx_tensor:form(Leaf),
    lists:member(Form, Forms) orelse
        tessera_nx_error:argument("input marked for donation has no output with matching shape ~ts and type ~ts; "
                                  "cannot alias this argument",
                                  [tessera_nx_error:inspect(tessera_nx_tensor:shape(Leaf)),
                                   tessera_nx_error:inspect(maps:get(type, Leaf))]),
    {Bits bor (1 bsl Position), lists:delete(Form, Forms)}.

position(_, [], _) -> none;
position(I, [I | _], N) -> N;
position(I, [_ | Rest], N) -> position(I, Rest, N + 1).

%% ---- reports of compilations

reported(HitOrMiss, Key, #compiled{eval = Eval, compile = Compile, kernels = Kernels} = Compiled, #options{debug = Debug}) ->
    ok = report(HitOrMiss, Key, {Eval, Compile}, Kernels, Debug),
    Compiled.

%% Reports a compilation: microseconds of tracing and of compiling, and the numbers of kernels that were compiled and that were
%% found in a cache.
-spec report(hit | miss, term(), {integer(), integer()}, {non_neg_integer(), non_neg_integer()}, boolean()) -> ok.
report(hit, _, _, _, false) -> ok;
report(hit, Key, _, _, true) -> log_compiled(Key, hit, {0, 0});
report(miss, Key, {Eval, Compile}, Kernels, Debug) ->
    Debug =/= true orelse log_compiled(Key, miss, {Eval, Compile}),
    tell_compilation(Key, Eval, Compile, Kernels).

log_compiled(Key, HitOrMiss, {Eval, Compile}) ->
    debug("Tessera defn evaluation ~ts cache ~s in ~sms", [tessera_nx_error:inspect(Key), HitOrMiss, ms(Eval)]),
    debug("Tessera compilation ~ts cache ~s in ~sms", [tessera_nx_error:inspect(Key), HitOrMiss, ms(Compile)]).

ms(Microseconds) -> io_lib:format("~.1f", [Microseconds / 1000]).

%% A line for the option `debug'.
-spec debug(io:format(), [term()]) -> ok.
debug(Format, Values) ->
    logger:debug("~ts", [unicode:characters_to_binary(io_lib:format(Format, Values))]).

tell_compilation(Key, Eval, Compile, {Compiled, Reused}) ->
    tessera_events:execute([tessera, compilation], #{eval_time => Eval, compile_time => Compile, total_time => Eval + Compile,
                                         kernels_compiled => Compiled, kernels_reused => Reused}, #{key => Key}).

%% ---- functions that are compiled again and again

%% Warns once when a function has been compiled with many different values in its
%% environment.
check_recompilation(Key, Vars, #compiled{outputs = Outputs}) ->
    case application:get_env(tessera, check_recompilation, infinity) of
        Threshold when is_integer(Threshold) ->
            Types = [tessera_nx_tensor:form(T) || T <- tessera_nx_tensor:flatten(Outputs)],
            Count = tessera_nx_locked:count({digest(tessera_digest:form(Key)), [var_key(Var) || Var <- Vars], Types}),
            Count =:= Threshold andalso warn_of_recompilation(Key, Count),
            ok;
        _ -> ok
    end.

warn_of_recompilation(Key, Count) ->
    Text = io_lib:format("Tessera has compiled ~ts ~b times with the same input shapes. This typically means that tensor "
                         "values are captured inside a closure passed to defn, jit, or value_and_grad. Each distinct value "
                         "makes the function be traced again, and, where it is a scalar, a program be made. "
                         "Pass changing tensors as explicit function arguments instead.",
                         [tessera_nx_error:inspect(Key), Count]),
    logger:warning("~ts", [unicode:characters_to_binary(Text)]).

%% ---- calls

run(Key, Compiled, Args, #options{debug = true, device = Device} = Options) ->
    {Time, Result} = timer:tc(fun() -> run(Key, Compiled, Args, Options#options{debug = false}) end),
    debug("Tessera device ~b lock in 0.0ms", [Device]),
    debug("Tessera execution on device ~b in ~sms", [Device, ms(Time)]),
    Result;
run(Key, Compiled, Args, #options{execution = true, client = Client, device = Device} = Options) ->
    ran(Key, #{client => Client, device_id => Device}, fun() -> execute(Compiled, Args, Options) end);
run(_, Compiled, Args, Options) -> execute(Compiled, Args, Options).

%% The result of Run, and an event with its duration and that metadata.
-spec ran(term(), map(), fun(() -> Result)) -> Result.
ran(Key, Metadata, Run) ->
    Start = erlang:monotonic_time(),
    Result = Run(),
    ok = tessera_events:execute([tessera, execution], #{duration => erlang:monotonic_time() - Start}, Metadata#{key => Key}),
    Result.

execute(#compiled{plan = Plan, outputs = Outputs, donated = Donated}, Args, #options{hooks = Hooks} = Options) ->
    Leaves = list_to_tuple(Args),
    Arg = fun(I) -> argument((element(I + 1, Leaves))(), Options) end,
    Results = tessera_nx_plan:run(Plan, Arg, Donated, Hooks),
    [fill(Outputs, Results)].

argument(#{data := #{'__struct__' := ?BACKEND, buffer := #{client_name := Client, device_id := Device}}} = T,
         #options{client = Client, device = Device}) -> tessera_nx_tensor:argument(T, Client);
argument(#{data := #{'__struct__' := ?BACKEND, buffer := #{ref := Ref} = Buffer}} = T,
         #options{client = Client, device = Device}) when node(Ref) =:= node() ->
    ok = tessera_nx_client:check_transfer(Buffer, {Client, Device}),
    tessera_nx_tensor:argument(T, Client);
argument(T, #options{client = Client}) -> tessera_nx_tensor:argument(T, Client).

fill(#{'__struct__' := ?TENSOR} = T, [Value]) -> tessera_nx_tensor:with_value(T, Value);
fill(Outputs, Values) ->
    Leaves = lists:zipwith(fun tessera_nx_tensor:with_value/2, tessera_nx_tensor:flatten(Outputs), Values),
    tessera_nx_tensor:rebuild(Outputs, Leaves).
