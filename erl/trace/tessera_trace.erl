%% @private The program that the calling process is tracing, if any, and ops: an op is added to that program, or else
%% runs at once. While a function is traced its operands are values {tessera, [Program | Id], Type, Shape}.
-module(tessera_trace).
-include("tessera.hrl").
-export([op/3, op/4, results/3, results/4, current/0, is_tracing/0, is_tracing/1, tracing/1, trace/3, value/2, in_region/4, close_region/2, call/3,
         check_readable/2, stop_grad/1, is_stopped/1, with_entry/3]).
-export([placed/2, made_by/3, ruled/3, op_for_gradients/1, inline/2]).
-compile({inline, [apply_op/4]}).   % each eager op comes there

%% In the process dictionary while a function is traced: the program, the tensors of the function's environment, tensors of
%% other nodes with their local copies, and the values that gradients pass in a special way: not at all, or by the rule of
%% another op on given operands.
-define(KEY, '$tessera_program').
-define(ENVIRONMENT, '$tessera_environment').
-define(STAND_INS, '$tessera_stand_ins').
-define(PASSED, '$tessera_passed').
%% There while Nx traces a function.
-define(NX, '$tessera_nx_traces').

-type passed() :: stopped | {atom(), [tessera_type:tensor()]}.

%% Applies an op of the core. Errors name the op as Name; operands are tensors and numbers.
-spec op(atom(), [tessera_type:operand()], term()) -> tessera_type:tensor().
op(Name, Operands, Attrs) -> apply_op(Name, Name, Operands, Attrs).

%% The same for an op whose API function has another name.
-spec op(atom(), atom(), [tessera_type:operand()], term()) -> tessera_type:tensor().
op(User, Name, Operands, Attrs) -> apply_op(User, Name, Operands, Attrs).

%% The results of an op that has several.
-spec results(atom(), [tessera_type:operand()], term()) -> [tessera_type:tensor()].
results(Name, Operands, Attrs) -> results(Name, Name, Operands, Attrs).

-spec results(atom(), atom(), [tessera_type:operand()], term()) -> [tessera_type:tensor()].
results(User, Name, Operands, Attrs) -> apply_op(User, Name, Operands, Attrs).

%% A tensor, or a list of them.
apply_op(User, Name, Operands, Attrs) ->
    case tessera_nif:op(get(?KEY), Name, Operands, Attrs) of
        #tessera{} = Tensor -> Tensor;
        Other -> op_result(User, Name, Operands, Attrs, Other)
    end.

%% The result of an op for which tessera_nif:op/4 returned no tensor.
op_result(User, _Name, _Operands, _Attrs, {placed, Result}) -> placed(User, Result);
op_result(User, Name, Operands, Attrs, Other) ->
    tessera_remote:result(tessera_run:op(Other, Operands), Operands, fun stand_in/1,
                          fun(Here) -> here_op(User, Name, Here, Attrs) end,
                          fun(Cause) -> tessera_error:raise(User, Operands, renamed(User, Name, Cause)) end).

here_op(User, Name, Operands, Attrs) ->
    case tessera_run:op(tessera_nif:op(get(?KEY), Name, Operands, Attrs), Operands) of
        {placed, Result} -> placed(User, Result);
        Result -> Result
    end.

%% The ops that were just added by the function of the API come from this line of the user's code, if anyone asks for lines.
-spec placed(atom(), Result) -> Result.
placed(User, Result) ->
    ok = tessera_places:set(get(?KEY), User),
    Result.

%% Replaces the op's name in the core's message, "name(...) ..." or "name: ...", by that of the
%% called API function.
renamed(Name, Name, Cause) -> Cause;
renamed(User, Name, #{message := Message} = Cause) ->
    Length = byte_size(atom_to_binary(Name, utf8)),
    case Message of
        <<Core:Length/binary, After, _/binary>> when After =:= $(; After =:= $:; After =:= $, ->
            case Core =:= atom_to_binary(Name, utf8) of
                true -> Cause#{message := <<(atom_to_binary(User, utf8))/binary, (binary:part(Message, Length,
                                            byte_size(Message) - Length))/binary>>};
                false -> Cause
            end;
        _ -> Cause
    end.

%% Calls F while the entry Key of the process dictionary is Value. Afterwards the entry is what it was before.
-spec with_entry(term(), term(), fun(() -> Result)) -> Result.
with_entry(Key, Value, F) ->
    Outer = put(Key, Value),
    try F()
    after
        case Outer of
            undefined -> erase(Key);
            _ -> put(Key, Outer)
        end
    end.

-spec current() -> tessera_nif:builder() | undefined.
current() -> get(?KEY).

-spec is_tracing() -> boolean().
is_tracing() -> get(?KEY) =/= undefined.

%% Whether the process with that dictionary is tracing a function.
-spec is_tracing([{term(), term()}]) -> boolean().
is_tracing(Dictionary) -> lists:keymember(?KEY, 1, Dictionary) orelse lists:keymember(?NX, 1, Dictionary).

%% Calls F, which traces a function of Nx.
-spec tracing(fun(() -> Result)) -> Result.
tracing(F) -> with_entry(?NX, true, F).

%% Calls F with a new current program: with parameters of the given types, then the tensors of F's
%% environment, which the program may make hidden arguments. Returns the finished program, the signature
%% of F's result and the indices (from 1) of the hidden arguments among the environment's tensors.
-spec trace(fun(([tessera_type:tensor()]) -> term()), [{tessera_type:type(), tessera_type:shape()}], [tessera_type:tensor()]) ->
          {tessera_nif:builder(), tessera_tree:signature(), [pos_integer()]}.
trace(F, Types, Environment) -> tessera_run:timed(trace, fun() -> traced(F, Types, Environment) end).

traced(F, Types, Environment) ->
    Here = [near(Tensor) || Tensor <- Environment],
    StandIns = maps:from_list([{Ref, Tensor} || {#tessera{ref = Ref}, Tensor} <- lists:zip(Environment, Here)]),
    Program = tessera_error:check(jit, [], tessera_nif:builder_new([Ref || #tessera{ref = Ref} <- Here])),
    ok = tessera_places:start(Program),
    Outer = [{Key, put(Key, Value)} || {Key, Value} <- [{?KEY, Program}, {?ENVIRONMENT, Environment},
                                                        {?STAND_INS, StandIns}, {?PASSED, #{}}]],
    try
        Params = [tessera_error:check(jit, [], tessera_nif:param(Program, Type, Shape)) || {Type, Shape} <- Types],
        {_, Leaves} = Flat = tessera_tree:flatten(F(Params)),
        Hidden = tessera_error:check(jit, [], tessera_nif:finish(Program, [here(Leaf) || Leaf <- Leaves])),
        {Program, result_signature(Flat), Hidden}
    after
        [restore(Key, Value) || {Key, Value} <- Outer]
    end.

%% Calls a user's function that is traced, for the API function Name: jit, grad, while, cond or reduce.
-spec call(atom(), function(), [term()]) -> term().
call(Name, F, Args) ->
    ok = tessera_check:request(F, Args),
    try tessera_places:in_function(F, Args)
    catch error:Reason:Trace -> tessera_traced_error:raise(Name, F, Args, Reason, Trace)
    end.

restore(Key, undefined) -> erase(Key);
restore(Key, Value) -> put(Key, Value).

%% Numbers in a function's result become tensors.
result_signature({Signature, _}) -> numbers_to_tensors(Signature).

numbers_to_tensors({number, Type}) -> [Type | {}];
numbers_to_tensors({static, _} = Static) -> Static;
numbers_to_tensors({map, Keys, Signatures}) -> {map, Keys, [numbers_to_tensors(S) || S <- Signatures]};
numbers_to_tensors({Kind, Signatures}) when is_list(Signatures) -> {Kind, [numbers_to_tensors(S) || S <- Signatures]};
numbers_to_tensors(Leaf) -> Leaf.

%% An operand of the function Name as a value of the current region.
-spec value(atom(), tessera_type:operand()) -> tessera_type:tensor().
value(Name, Operand) -> tessera_error:check(Name, [Operand], tessera_nif:value(get(?KEY), here(Operand))).

%% A tensor of another node becomes one of this node.
near(Tensor) ->
    case tessera_remote:is_remote(Tensor) of
        true -> tessera_error:check(fetch, [Tensor], stand_in(Tensor));
        false -> Tensor
    end.

%% The same with a tensor that the host cannot read; other operands stay.
here(Operand) ->
    case tessera_remote:is_elsewhere(Operand) of
        true -> tessera_error:check(fetch, [Operand], stand_in(Operand));
        false -> Operand
    end.

%% The local copy of a tensor of another node: always the same one if the traced function holds the tensor, so
%% that it is recognized as a hidden argument.
stand_in(#tessera{ref = Ref} = Tensor) ->
    case get(?STAND_INS) of
        #{Ref := Here} -> Here;
        _ -> tessera_remote:fetch(Tensor)
    end.

%% Opens a region, calls F with its parameters, and closes it by Close; also if F raises.
-spec in_region([{tessera_type:type(), tessera_type:shape()}], Region | undefined, fun(([tessera_type:tensor()]) -> Made),
                fun((tessera_nif:builder(), Made) -> ok | tessera_nif:error())) -> {Region, Made}
              when Region :: non_neg_integer().
in_region(Types, Like, F, Close) ->
    Program = get(?KEY),
    {Region, Params} = tessera_error:check(region, [], tessera_nif:region_open(Program, Types, Like)),
    Made = try F(Params)
           catch Class:Reason:Trace ->
               _ = tessera_nif:region_leave(Program),
               erlang:raise(Class, Reason, Trace)
           end,
    ok = tessera_error:check(region, [], Close(Program, Made)),
    {Region, Made}.

%% Closes a region with these results.
-spec close_region(tessera_nif:builder(), [tessera_type:operand()]) -> ok | tessera_nif:error().
close_region(Program, Results) -> tessera_nif:region_finish(Program, [here(Result) || Result <- Results]).

%% A tensor in the environment of a traced function is an argument of the program: its contents must not
%% be read during tracing, since the next call may have another value.
-spec check_readable(atom(), tessera_type:tensor()) -> ok.
check_readable(Name, #tessera{ref = Ref} = Tensor) ->
    case get(?KEY) =/= undefined andalso lists:keymember(Ref, #tessera.ref, get(?ENVIRONMENT)) of
        false -> ok;
        true -> tessera_error:raise(Name, [Tensor], failed_precondition,
                                    "~s: a tensor of the function's environment cannot be read while it is traced", [Name])
    end.

%% The operand as a new value that gradients do not pass.
-spec stop_grad(tessera_type:operand()) -> tessera_type:operand().
stop_grad(Operand) ->
    case is_tracing() of
        false -> tessera_operand:tensor(stop_grad, Operand);
        true ->
            Own = value(stop_grad, Operand),
            passed(op(stop_grad, reshape, [Own], tessera_operand:shape_of(Operand)), stopped)
    end.

-spec passed(tessera_type:tensor(), passed()) -> tessera_type:tensor().
passed(#tessera{ref = [_ | Id]} = Value, How) ->
    put(?PASSED, (get(?PASSED))#{Id => How}),
    Value.

-spec is_stopped(tessera_type:tensor()) -> boolean().
is_stopped(#tessera{ref = [_ | Id]}) -> maps:get(Id, get(?PASSED), none) =:= stopped.

%% The value, whose gradient follows the rule of that name for these operands (tessera_grad_rules), instead of the rules of the ops
%% that compute it. Without a gradient it is the value itself.
-spec made_by(atom(), tessera_type:tensor(), [tessera_type:tensor()]) -> tessera_type:tensor().
made_by(Name, Value, Operands) ->
    case is_tracing() of
        false -> Value;
        true ->
            [#tessera{shape = Shape} = Own | Own1] = [value(Name, T) || T <- [Value | Operands]],
            passed(op(Name, reshape, [Own], Shape), {Name, Own1})
    end.

%% The same for the result of one op that has just been applied, for these operands of the API function Name: no value is added.
-spec ruled(atom(), tessera_type:tensor(), [tessera_type:operand()]) -> tessera_type:tensor().
ruled(Name, Value, Operands) ->
    case is_tracing() of
        false -> Value;
        true -> passed(Value, {Name, [value(Name, Operand) || Operand <- Operands]})
    end.

%% An op as gradients see it.
-spec op_for_gradients(Op) -> Op when Op :: {atom(), [tessera_type:tensor()], [tessera_type:tensor()], term()}.
op_for_gradients({_, _, [#tessera{ref = [_ | Id]} | _] = Results, _} = Op) ->
    case get(?PASSED) of
        #{Id := {Name, Operands}} -> {Name, Operands, Results, []};
        _ -> Op
    end.

%% The results of a copy of a region's ops on these arguments. Gradients pass its values like the copied ones.
-spec inline(non_neg_integer(), [tessera_type:tensor()]) -> [tessera_type:tensor()].
inline(Region, Arguments) ->
    All = maps:to_list(get(?PASSED)),
    Operands = [Operand || {_, {_, Operands}} <- All, Operand <- Operands],
    Sought = lists:usort([Id || {Id, _} <- All] ++ [Id || #tessera{ref = [_ | Id]} <- Operands]),
    {Results, Copies} = tessera_error:check(grad, [], tessera_nif:inline_region(get(?KEY), Region, Arguments, Sought)),
    Copied = maps:from_list([{Id, Copy} || {Id, #tessera{} = Copy} <- lists:zip(Sought, Copies)]),
    _ = [passed(map_get(Id, Copied), copied(How, Copied)) || {Id, How} <- All, is_map_key(Id, Copied)],
    Results.

copied(stopped, _) -> stopped;
copied({Name, Operands}, Copied) -> {Name, [map_get(Id, Copied) || #tessera{ref = [_ | Id]} <- Operands]}.
