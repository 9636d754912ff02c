%% @private Plans: a traced expression as one program, and the functions of Elixir that
%% it calls back. A run returns to the calling process for a callback; the process
%% answers and resumes the run. No thread waits meanwhile, and a callback may itself
%% use Tessera.
-module(tessera_nx_plan).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-include("tessera_nx_lower.hrl").
-export([build/3, compile/3, whole/4, text/3, stablehlo/4, run/4, code/1, versions/1, held_bytes/1, pack/1, unpack/1,
         pack_source/1, unpack_source/1]).
-export_type([plan/0, source/0]).

%% The source of a parameter's value: the leaf of an argument, or a tensor in the function's
%% environment. In a packed plan the tensor is its type, shape and bytes.
-type source() :: {arg, non_neg_integer()} | {held, tessera:tensor() | {tessera:type(), tessera:shape(), binary()}}.

-type spec() :: {fn, function()} | {named, atom(), function() | nil}.
-type call() :: {io_call, spec(), Template :: term()}
              | {runtime_call, function(), Options :: term(), Template :: term(), ResultTemplate :: term()}.

-record(plan, {code :: tessera_program:code(), args :: [source()], calls = {} :: tuple()}).
-opaque plan() :: #plan{}.

%% ---- building

%% Builds a plan. Roots are the results; Leaves are the arguments'. Handled are the names of
%% hooks, the device is where it will run. Also returns the used leaves, each at the position of
%% its value among the plan's inputs.
-spec build([map()], [map()], #{handled := [atom()], is_cached := boolean(), device := tessera:device(), precision := atom()}) ->
          {plan(), [non_neg_integer() | held]}.
build(Roots, Leaves, #{handled := Handled, is_cached := IsCached, device := {Client, _} = Device, precision := Precision}) ->
    Compiler = tessera_client:compiler(Client, Precision),
    Plan = case tessera_nx_plain:read(Roots, Handled, Client) of
               undefined ->
                   build_scoped(Roots, [tessera_nx_tensor:form(Leaf) || Leaf <- Leaves],
                                #st{handled = Handled, client = Client}, {Compiler, IsCached});
               {Expression, Sources} ->
                   Code = tessera_program:new(tessera_nx_plain:describe(Expression),
                                              fun() -> tessera_nx_plain:program(Expression) end, Compiler, IsCached),
                   #plan{code = check(Code), args = [source(Source) || Source <- Sources]}
           end,
    {on_device(Plan, Device), used(Plan#plan.args)}.

%% The plan, to be run on a device.
on_device(#plan{code = Code, args = Args} = Plan, Device) ->
    Plan#plan{code = check(tessera_program:on_device(Code, Device)), args = [placed(Arg, Device) || Arg <- Args]}.

placed({held, Tensor}, Device) -> {held, tessera_nx_tensor:placed(Tensor, Device)};
placed(Arg, _) -> Arg.

source(Position) when is_integer(Position) -> {arg, Position};
source(Tensor) -> {held, tessera_nx_tensor:value(Tensor)}.

build_scoped(Roots, Args, Options, {Compiler, IsCached}) ->
    {Values, #st{program = Program, calls = Calls} = St} = lower(Roots, Args, [], Options),
    _ = check(tessera_nif:finish(Program, Values)),
    #plan{code = check(tessera_program:new(Program, Compiler, IsCached)), args = inputs(St),
          calls = list_to_tuple(lists:reverse(Calls))}.

%% The same program, lowered node by node as tessera_places:with_nodes/2 needs it: its executable only.
-spec compile([map()], [map()], #{handled := [atom()], client := atom(), precision := atom()}) -> tessera_nif:executable().
compile(Roots, Leaves, #{handled := Handled, client := Client, precision := Precision}) ->
    {Values, #st{program = Program}} = lower(Roots, [tessera_nx_tensor:form(Leaf) || Leaf <- Leaves], [], #st{handled = Handled, client = Client}),
    _ = check(tessera_nif:finish(Program, Values)),
    check(tessera_run:compile(Program, tessera_client:compiler(Client, Precision))).

%% The finished program of the whole expression, and the sources of its parameters. Tensors that the function holds are
%% parameters or, unless Holds, literals. Nothing may call back.
-spec whole([map()], [tessera_nx_ops:form()], atom(), boolean()) -> {tessera_nif:builder(), [source()]}.
whole(Roots, Args, Client, Holds) ->
    {Values, #st{program = Program, calls = Calls} = St} = lower(Roots, Args, [], #st{client = Client, holds = Holds}),
    Calls =:= [] orelse tessera_nx_error:argument("outfeed is not supported for sharded execution yet: the function calls Elixir "
                                                  "(io_call, hook, runtime_call)", []),
    _ = check(tessera_nif:finish(Program, Values)),
    {Program, inputs(St)}.

used(Sources) -> [case Source of
                      {arg, I} -> I;
                      _ -> held
                  end || Source <- Sources].

lower(Roots, Args, First, #st{handled = Handled} = Options) ->
    Params = maps:from_list([{I, #input{name = {arg, I}, form = Form}}
                             || {I, Form} <- lists:zip(tessera_type:dims(length(Args)), Args)]),
    Program = check(tessera_nif:builder_new([])),
    ok = tessera_places:start_nodes(Program),
    St = Options#st{program = Program, effects = tessera_nx_expr:effects(Roots, Handled)},
    tessera_nx_lower:scope(Roots, Params, #{}, tessera_nx_lower:take([maps:get(I, Params) || I <- First], St)).

inputs(#st{inputs = Names}) -> lists:reverse(Names).

check(Result) -> tessera_nx_error:check(compile, Result).

%% ---- as text

%% The plan as one StableHLO module, and the arguments that it takes, in order. Tensors in the function's environment
%% are literals. A program numbers its parameters in order of use, so that order is determined first.
-spec stablehlo([map()], [tessera_nx_ops:form()], [atom()], atom()) -> {binary(), [non_neg_integer()]}.
stablehlo(Roots, Args, Handled, Client) ->
    %% StableHLO has no factorizations but Cholesky's.
    Options = #st{handled = Handled, client = Client, holds = false, factors = false},
    {_, Used} = one_program(Roots, Args, [], Options),
    {Program, Sorted} = one_program(Roots, Args, lists:sort(Used), Options),
    {check(tessera_nif:graph_stablehlo(Program)), Sorted}.

%% The same as Tessera's own text.
-spec text([map()], [tessera_nx_ops:form()], [atom()]) -> {binary(), [non_neg_integer()]}.
text(Roots, Args, Handled) ->
    {Program, Used} = one_program(Roots, Args, [], #st{handled = Handled, holds = false}),
    {check(tessera_nif:graph_text(Program)), Used}.

%% First are the arguments that become parameters before others.
one_program(Roots, Args, First, Options) ->
    {Values, #st{program = Program, calls = Calls} = St} = lower(Roots, Args, First, Options),
    Calls =:= [] orelse
        tessera_nx_error:argument("a function that calls Elixir (io_call, hook, runtime_call) has no StableHLO", []),
    _ = check(tessera_nif:finish(Program, Values)),
    {Program, [I || {arg, I} <- inputs(St)]}.

%% ---- running

%% Arg gives the tensor of an argument's leaf, Hooks the functions for named io_calls. Donated: a set of
%% positions among the arguments that the plan uses.
-spec run(plan(), fun((non_neg_integer()) -> tessera:tensor()), non_neg_integer(), #{atom() => function()}) ->
          [tessera:tensor()].
run(#plan{code = Code, args = Args, calls = Calls}, Arg, Donated, Hooks) ->
    case execute(Code, [given(A, Arg) || A <- Args], Donated) of
        Results when is_list(Results) -> Results;
        Asked -> answer(Asked, Calls, Hooks)
    end.

given({arg, I}, Arg) -> Arg(I);
given({held, Tensor}, _) -> tessera_nx_tensor:local(Tensor).

execute(Code, Args, Donated) ->
    case tessera_program:run(Code, Args, Donated) of
        Results when is_list(Results) -> Results;
        Other -> tessera_memory:result(Other, fun() -> tessera_program:run(Code, Args, Donated) end, fun run_failed/1)
    end.

-spec run_failed(map()) -> no_return().
run_failed(Cause) -> tessera_nx_error:from_core(run, Cause).

%% An exception in a callback is raised in the caller, and the run's memory is released at once. A run that fails
%% later is not repeated, since callbacks have been called.
answer({callback, Run, Index, Operands}, Calls, Hooks) ->
    Results = try call(element(Index + 1, Calls), Operands, Hooks)
              catch Class:Reason:Trace ->
                  ok = tessera_nif:run_abandon(Run),
                  erlang:raise(Class, Reason, Trace)
              end,
    answer(tessera_remote:answer(Run, Results), Calls, Hooks);
answer({error, Cause}, _, _) -> run_failed(Cause);
answer({pressure, Results}, _, _) -> tessera_memory:relieved(Results);
answer(Results, _, _) -> Results.

-spec call(call(), [binary()], #{atom() => function()}) -> [tessera:operand()].
call({io_call, Spec, Template}, Operands, Hooks) ->
    _ = callback(handler(Spec, Hooks), [container(Template, Operands)]),
    [1];
call({runtime_call, Fun, Options, Template, ResultTemplate}, Operands, _) ->
    Result = callback(Fun, [container(Template, Operands), Options]),
    tessera_nx_tensor:compatible(Result, ResultTemplate) orelse
        tessera_nx_error:runtime("expected the runtime_call function to match the given output template ~ts, got: ~ts",
                                 [tessera_nx_error:inspect(ResultTemplate), tessera_nx_error:inspect(Result)]),
    [result_value(Leaf) || Leaf <- tessera_nx_tensor:flatten(Result)].

%% A function that is none: the one reason is that its code was purged.
callback(F, Args) ->
    try apply(F, Args)
    catch error:{badfun, F} when is_function(F) ->
        {module, Module} = erlang:fun_info(F, module),
        tessera_nx_error:runtime("the callback ~ts cannot be called, because its code is gone: another version of the module ~ts was loaded, "
                                 "and the old one purged. Compile the function again", [tessera_nx_error:inspect(F), tessera_nx_error:inspect(Module)])
    end.

handler({fn, F}, _) -> F;
handler({named, Name, Default}, Hooks) ->
    case Hooks of
        #{Name := F} -> F;
        _ -> Default
    end.

%% Callbacks get tensors in the VM's own memory.
container(Template, Operands) ->
    Leaves = [T#{data := #{'__struct__' => ?BINARY, state => contents(T, Binary)}}
              || {T, Binary} <- lists:zip(tessera_nx_tensor:flatten(Template), Operands)],
    tessera_nx_tensor:rebuild(Template, Leaves).

contents(T, Binary) ->
    {Type, Shape} = tessera_nx_tensor:form(T),
    tessera_bits:trim(Binary, Type, tessera_type:elements(Shape)).

result_value(Number) when is_number(Number) -> Number;
result_value(Tensor) -> tessera_nx_tensor:value(Tensor).

%% ---- plans as terms

-spec code(plan()) -> tessera_program:code().
code(#plan{code = Code}) -> Code.

%% The modules of the callbacks, without which they cannot be called.
-spec versions(plan()) -> tessera_digest:versions().
versions(#plan{calls = {}}) -> [];
versions(#plan{calls = Calls}) -> check(tessera_digest:versions(Calls)).

%% The bytes of the tensors in the function's environment.
-spec held_bytes(plan()) -> non_neg_integer().
held_bytes(#plan{args = Args}) ->
    lists:sum([tessera_type:bytes(Type) * tessera_type:elements(Shape)
               || {held, #tessera{type = Type, shape = Shape}} <- Args]).

%% The plan as a term that is valid elsewhere, with the bytes of the tensors in the function's
%% environment.
-spec pack(plan()) -> term().
pack(#plan{code = Code, args = Args} = Plan) ->
    Plan#plan{code = tessera_program:portable(Code), args = [pack_source(Arg) || Arg <- Args]}.

-spec pack_source(source()) -> source().
pack_source({held, #tessera{ref = Ref, type = Type, shape = Shape}}) ->
    {held, {Type, Shape, check(tessera_run:awaited(tessera_nif:to_binary(Ref, -1)))}};
pack_source(Arg) -> Arg.

-spec unpack(term()) -> plan().
unpack(#plan{code = Code, args = Args} = Plan) ->
    Plan#plan{code = check(tessera_program:ready(Code)), args = [unpack_source(Arg) || Arg <- Args]}.

-spec unpack_source(source()) -> source().
unpack_source({held, {Type, Shape, Binary}}) ->
    Make = fun() -> tessera_nif:from_binary(Binary, Type, Shape, true, {host, 0}) end,
    {held, tessera_memory:result(Make(), Make, fun(Cause) -> tessera_nx_error:from_core(compile, Cause) end)};
unpack_source(Arg) -> Arg.
