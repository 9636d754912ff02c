-module('Elixir.Tessera.Backend').
-include("tessera_nx_doc.hrl").
?MODULEDOC("Tensors of Nx in the memory of Tessera.\n"
     "\n"
     "    Nx.global_default_backend(Tessera.Backend)\n"
     "    Nx.tensor([1, 2, 3], backend: {Tessera.Backend, client: :host})\n"
     "\n"
     "Each operation runs at once, with the kernels that compiled functions use. The options are `:client` and `:device_id`.").
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([init/1, constant/3, from_binary/3, eye/2, iota/3, backend_copy/3, backend_transfer/3, backend_deallocate/1,
         to_binary/2, to_batched/3, inspect/2, from_pointer/5, to_pointer/2, block/4, reduce/5, dot/7]).
-export([exp/2, expm1/2, log/2, log1p/2, sigmoid/2, cos/2, sin/2, tan/2, cosh/2, sinh/2, tanh/2, acos/2, asin/2,
         atan/2, acosh/2, asinh/2, atanh/2, sqrt/2, rsqrt/2, cbrt/2, erf/2, erfc/2, erf_inv/2, abs/2,
         bitwise_not/2, ceil/2, conjugate/2, floor/2, negate/2, round/2, sign/2, count_leading_zeros/2,
         population_count/2, real/2, imag/2, is_nan/2, is_infinity/2, as_type/2, bitcast/2, reshape/2]).
-export([add/3, subtract/3, multiply/3, pow/3, remainder/3, divide/3, atan2/3, min/3, max/3, quotient/3,
         bitwise_and/3, bitwise_or/3, bitwise_xor/3, left_shift/3, right_shift/3, equal/3, not_equal/3, greater/3,
         less/3, greater_equal/3, less_equal/3, logical_and/3, logical_or/3, logical_xor/3, squeeze/3,
         transpose/3, reverse/3, all/3, any/3, sum/3, product/3, reduce_max/3, reduce_min/3, argmax/3, argmin/3,
         concatenate/3, stack/3, sort/3, argsort/3, fft/3, ifft/3]).
-export([broadcast/4, pad/4, clip/4, select/4, put_slice/4, gather/4, conv/4, window_sum/4, window_product/4,
         window_max/4, window_min/4, triangular_solve/4]).
-export([slice/5, indexed_add/5, indexed_put/5]).
-export([window_reduce/6, window_scatter_max/6, window_scatter_min/6]).

-define(FIELDS, #{buffer => nil}).
-include("tessera_nx_struct.hrl").

%% ---- one op each

-define(OP1(Op), Op(Out, A) -> tessera_nx_eager:op(Op, Out, [A])).
-define(OP2(Op), Op(Out, A, B) -> tessera_nx_eager:op(Op, Out, [A, B])).
-define(OP3(Op), Op(Out, A, B, C) -> tessera_nx_eager:op(Op, Out, [A, B, C])).
-define(OP4(Op), Op(Out, A, B, C, D) -> tessera_nx_eager:op(Op, Out, [A, B, C, D])).
-define(OP5(Op), Op(Out, A, B, C, D, E) -> tessera_nx_eager:op(Op, Out, [A, B, C, D, E])).

%% If operands and result have the same type and shape, a shorter path is taken.
-define(UNARY(Op), Op(Out, A) -> tessera_nx_eager:unary(Op, Out, A)).
-define(BINARY(Op), Op(Out, A, B) -> tessera_nx_eager:binary(Op, Out, A, B)).

?UNARY(exp). ?UNARY(expm1). ?UNARY(log). ?UNARY(log1p). ?UNARY(sigmoid). ?UNARY(cos). ?UNARY(sin). ?UNARY(tan).
?UNARY(cosh). ?UNARY(sinh). ?UNARY(tanh). ?UNARY(acos). ?UNARY(asin). ?UNARY(atan). ?UNARY(acosh). ?UNARY(asinh).
?UNARY(atanh). ?UNARY(sqrt). ?UNARY(rsqrt). ?UNARY(cbrt). ?UNARY(erf). ?UNARY(erfc). ?UNARY(erf_inv). ?UNARY(abs).
?UNARY(bitwise_not). ?UNARY(ceil). ?UNARY(floor). ?UNARY(negate). ?UNARY(round). ?UNARY(sign).
?UNARY(count_leading_zeros). ?UNARY(population_count).

?OP1(conjugate). ?OP1(real). ?OP1(imag). ?OP1(is_nan). ?OP1(is_infinity). ?OP1(as_type). ?OP1(bitcast). ?OP1(reshape).

?BINARY(add). ?BINARY(subtract). ?BINARY(multiply). ?BINARY(pow). ?BINARY(remainder). ?BINARY(divide). ?BINARY(atan2).
?BINARY(min). ?BINARY(max). ?BINARY(quotient). ?BINARY(bitwise_and). ?BINARY(bitwise_or). ?BINARY(bitwise_xor).
?BINARY(left_shift). ?BINARY(right_shift).

?OP2(equal). ?OP2(not_equal). ?OP2(greater). ?OP2(less). ?OP2(greater_equal). ?OP2(less_equal). ?OP2(logical_and).
?OP2(logical_or). ?OP2(logical_xor). ?OP2(squeeze). ?OP2(transpose). ?OP2(reverse). ?OP2(all). ?OP2(any). ?OP2(sum).
?OP2(product). ?OP2(reduce_max). ?OP2(reduce_min). ?OP2(argmax). ?OP2(argmin). ?OP2(concatenate). ?OP2(stack).
?OP2(sort). ?OP2(argsort). ?OP2(fft). ?OP2(ifft).

?OP3(broadcast). ?OP3(pad). ?OP3(clip). ?OP3(select). ?OP3(put_slice). ?OP3(gather). ?OP3(conv). ?OP3(window_sum).
?OP3(window_product). ?OP3(window_max). ?OP3(window_min). ?OP3(triangular_solve).

?OP4(slice). ?OP4(indexed_add). ?OP4(indexed_put).

?OP5(window_scatter_max). ?OP5(window_scatter_min).

dot(Out, A, ContractA, BatchA, B, ContractB, BatchB) ->
    tessera_nx_eager:op(dot, Out, [A, ContractA, BatchA, B, ContractB, BatchB]).

%% ---- functions of the user are compiled

%% Nx's evaluator computes the function, which cannot be traced.
reduce(Out, A, Initial, Options, Fun) ->
    case erlang:fun_info(Fun, module) of
        {module, 'Elixir.Nx.Defn.Evaluator'} -> tessera_nx_eager:fold(Out, A, Initial, Options, Fun);
        _ -> reduce_traced(Out, A, Initial, Options, Fun)
    end.

reduce_traced(Out, A, Initial, Options, Fun) ->
    Template = tessera_nx_tensor:template(Out),
    tessera_nx_eager:jit(fun(T, I) -> 'Elixir.Nx.Defn.Expr':reduce(Template, T, I, Options, Fun) end, [A, Initial],
                         [A, Initial]).

%% The windows' elements are along an axis, which is folded.
window_reduce(#{shape := Shape} = Out, A, Initial, Sizes, Options, Fun) ->
    Places = lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Sizes)),
    Form = Out#{shape := list_to_tuple([Places | tuple_to_list(Shape)]), names := [nil | maps:get(names, Out)]},
    reduce(Out, tessera_nx_eager:op(window_unfold, Form, [A, Initial, Sizes, Options]), Initial, [{axes, [0]}], Fun).

block(Struct, _Out, Args, Fun) ->
    {Tensors, Options} = lists:splitwith(fun is_map/1, Args),
    tessera_nx_eager:jit(fun(T) -> 'Elixir.Nx.Defn.Expr':block(Struct, nil, tuple_to_list(T) ++ Options, Fun) end,
                         [list_to_tuple(Tensors)], Tensors).

%% ---- creation

init(Options) -> 'Elixir.Keyword':'validate!'(Options, [client, device_id]).

constant(Out, Number, Options) -> tessera_nx_eager:source(constant, Out, [Number], Options).

eye(Out, Options) -> tessera_nx_eager:source(eye, Out, [], Options).

iota(Out, Axis, Options) -> tessera_nx_eager:source(iota, Out, [Axis], Options).

from_binary(Out, Binary, Options) -> tessera_nx_eager:from_binary(Out, Binary, false, Options).

%% ---- transfer

%% A copy to the tensor's own device is also a copy.
backend_copy(Tensor, ?MODULE, Options) ->
    tessera_nx_eager:copy(Tensor, Options);
backend_copy(Tensor, Backend, Options) -> Backend:from_binary(Tensor, read(Tensor), Options).

backend_transfer(#{data := #{buffer := Buffer}} = Tensor, Backend, Options) ->
    case Backend =:= ?MODULE andalso tessera_nx_eager:is_at(Buffer, Options) of
        true -> Tensor;
        false ->
            try backend_copy(Tensor, Backend, Options)
            after ?BUFFER:deallocate(Buffer)
            end
    end.

backend_deallocate(#{data := #{buffer := Buffer}}) -> ?BUFFER:deallocate(Buffer).

read(#{data := #{buffer := Buffer}}) -> ?BUFFER:read(Buffer).

to_binary(#{data := #{buffer := Buffer}}, Limit) -> ?BUFFER:read_elements(Buffer, Limit).

to_batched(Out, Tensor, Options) -> tessera_nx_eager:to_batched(Out, Tensor, Options).

%% ---- pointers

to_pointer(#{data := #{buffer := Buffer}}, Options) -> tessera_nx_pointer:of_buffer(Buffer, Options).

from_pointer(Pointer, Type, Shape, Place, Options) -> tessera_nx_pointer:tensor(Pointer, Type, Shape, Place, Options).

%% ---- printing

inspect(#{data := #{buffer := Buffer}} = Tensor, #{limit := Limit} = Options) ->
    Text = case ?BUFFER:'deleted?'(Buffer) of
               true -> deallocated(Tensor);
               false ->
                   Elements = tessera_type:elements(tessera_nx_tensor:shape(Tensor)),
                   Shown = case Limit of
                               infinity -> Elements;
                               _ -> min(Limit + 1, Elements)
                           end,
                   'Elixir.Nx.Backend':inspect(Tensor, to_binary(Tensor, Shown), Options)
           end,
    case application:get_env(tessera, add_backend_on_inspect, true) of
        true -> signed(Buffer, Text);
        false -> Text
    end.

deallocated(#{'donatable?' := true}) -> <<"Deallocated due to buffer donation">>;
deallocated(_) -> <<"Deallocated">>.

client(Cluster) when is_pid(Cluster) -> pid_to_list(Cluster);
client(Name) -> Name.

%% Adds the tensor's device on a line of its own.
signed(#{client_name := Client, device_id := Device, ref := Ref}, Text) ->
    "#Ref<" ++ Name = ref_to_list(Ref),
    Line = unicode:characters_to_binary(io_lib:format("Tessera.Backend<~ts:~b, ~s", [client(Client), Device, Name])),
    'Elixir.Inspect.Algebra':concat([Line, 'Elixir.Inspect.Algebra':line(), Text]).
