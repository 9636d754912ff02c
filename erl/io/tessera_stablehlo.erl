%% @doc Programs of other compilers' front ends: a module of StableHLO as text or as bytecode, such as `jax.export' writes, becomes a function. It is
%% called, jitted, differentiated and cut over a mesh like any other.
%% ```
%% 1> Text = <<"func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {\n"
%% 1>          "  %0 = stablehlo.multiply %x, %y : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}">>.
%% 2> F = tessera_stablehlo:function(Text).
%% 3> [Z] = F([tessera:tensor([1.0, 2.0]), tessera:tensor([3.0, 4.0])]), tessera:to_list(Z).
%% [3.0,8.0]
%% 4> G = tessera:grad(fun(X) -> [Y] = F([X, X]), tessera:sum(Y) end), tessera:to_list(G(tessera:tensor([1.0, 2.0]))).
%% [2.0,4.0]
%% '''
%% The page docs/stablehlo.md lists the ops.
-module(tessera_stablehlo).
-include("tessera.hrl").
-export([function/1, load/1]).
-export([program/1, result_types/2, inline/3]).
-export_type([program/0]).

-type type_and_shape() :: {tessera:type(), tessera:shape()}.
-opaque program() :: tessera_nif:builder() | {symbolic, binary()}.

%% @doc The function that the module's `@main' is, of a list of arguments, with a list of results. It belongs to this node.
%% A program may have symbols for sizes, as of `jax.export.symbolic_shape'. Then a call with new shapes makes a program, and later calls with
%% equal shapes use it. The text of an error names line and column, or the byte, and the op: `invalid_argument' for a wrong program, `unimplemented' for a part that
%% Tessera cannot do.
-spec function(binary()) -> fun(([tessera:operand()]) -> [tessera:tensor()]).
function(Text) ->
    Program = program(Text),
    fun(Arguments) -> call(Program, Arguments) end.

%% @doc The same for a file.
-spec load(file:name_all()) -> fun(([tessera:operand()]) -> [tessera:tensor()]).
load(Path) ->
    try tessera_io_file:map(tessera_io_file:path(Path)) of
        Text -> function(Text)
    catch throw:{io, Code, Message} ->
            tessera_error:raise(stablehlo, [], #{code => Code, message => Message})
    end.

%% @private The program of a module, for other front ends.
-spec program(binary()) -> program().
program(Text) ->
    case tessera_error:check(stablehlo, [], tessera_nif:read_stablehlo(Text)) of
        symbolic -> {symbolic, Text};
        Program -> Program
    end.

%% @private The types of the results for arguments of the given types.
-spec result_types(program(), [type_and_shape()]) -> [type_and_shape()].
result_types(Program, Types) ->
    {_, {list, Results}, _} = tessera_trace:trace(fun(Values) -> inlined(Program, Values) end, Types, []),
    [{Type, Shape} || [Type | Shape] <- Results].

%% @private Puts the program into the one that is built. Its arguments are the given values.
-spec inline(tessera_nif:builder(), program(), [tessera:tensor()]) -> [tessera:tensor()].
inline(Builder, Program, Values) ->
    tessera_error:check(stablehlo, Values, tessera_nif:inline_program(Builder, sized(Program, Values), Values)).

call(Program, Arguments) ->
    tessera_type:is_proper(Arguments) orelse
        tessera_error:raise(stablehlo, [], invalid_argument, "stablehlo: expected a list of arguments, got ~ts", [tessera_error:show(Arguments)]),
    Tensors = [tessera_operand:tensor(stablehlo, Argument) || Argument <- Arguments],
    tessera_jit:in_program(fun(Values) -> inlined(Program, Values) end, Tensors).

inlined(Program, Tensors) ->
    inline(tessera_trace:current(), Program, [tessera_trace:value(stablehlo, Tensor) || Tensor <- Tensors]).

%% The program for the shapes of the arguments.
sized({symbolic, Text}, Tensors) ->
    Types = [{tessera_operand:type_of(Tensor), tessera_operand:shape_of(Tensor)} || Tensor <- Tensors],
    tessera_error:check(stablehlo, Tensors, tessera_nif:read_stablehlo(Text, Types));
sized(Program, _) -> Program.
