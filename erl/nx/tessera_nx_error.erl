%% @private Exceptions of Elixir, raised from Erlang.
-module(tessera_nx_error).
-include("tessera_nx.hrl").
-export([argument/2, runtime/2, expected/2, no_op/1, no_type/1, from_core/2, check/2, inspect/1]).

-spec argument(io:format(), [term()]) -> no_return().
argument(Format, Values) -> raise('Elixir.ArgumentError', Format, Values).

-spec runtime(io:format(), [term()]) -> no_return().
runtime(Format, Values) -> raise('Elixir.RuntimeError', Format, Values).

%% An argument has another form than What says.
-spec expected(iodata(), term()) -> no_return().
expected(What, Given) -> argument("expected ~ts, got: ~ts", [What, inspect(Given)]).

%% The core does not support an operation of Nx.
-spec no_op(atom()) -> no_return().
no_op(Op) -> argument("Tessera does not have the op ~ts yet", [inspect(Op)]).

%% The core does not support an element type.
-spec no_type(term()) -> no_return().
no_type({f8_e4m3fn, _}) -> argument("Tessera does not have the type f8_e4m3fn yet", []);
no_type({Kind, Bits}) when is_atom(Kind), is_integer(Bits) ->
    argument("Tessera does not have the type ~ts~b yet", [Kind, Bits]);
no_type(Other) -> expected("a type such as {:f, 32}", Other).

%% The core's error about an operation.
-spec from_core(atom(), #{code := atom(), message := binary(), _ => _}) -> no_return().
from_core(Op, #{code := Code, message := Message}) when Code =:= invalid_argument; Code =:= unimplemented;
                                                        Code =:= out_of_range ->
    argument("~ts", [named(Op, Message)]);
from_core(Op, #{message := Message} = Cause) ->
    case tessera_error:is_gone(Cause) of
        true -> runtime("~ts was called on deleted or donated buffer", [Op]);
        false -> runtime("~ts", [named(Op, Message)])
    end.

%% The core's result, or its error as an exception.
-spec check(atom(), Result | tessera_nif:error()) -> Result.
check(Op, {error, Cause}) -> from_core(Op, Cause);
check(_, Result) -> Result.

%% The core names the op in a message, but not if it is about a whole program.
named(Op, Message) ->
    case string:prefix(Message, atom_to_list(Op)) of
        nomatch -> [atom_to_binary(Op), ": ", Message];
        _ -> Message
    end.

raise(Exception, Format, Values) ->
    Message = unicode:characters_to_binary(io_lib:format(Format, Values)),
    error(#{'__struct__' => Exception, '__exception__' => true, message => Message}).

%% Formatted by Elixir, if it is loaded. Tensors have a short form of their own.
-spec inspect(term()) -> iodata().
inspect(Term) ->
    case erlang:function_exported('Elixir.Kernel', inspect, 1) orelse code:ensure_loaded('Elixir.Kernel') of
        {error, _} -> io_lib:format("~p", [tessera_digest:outline(Term)]);
        _ when is_map_key('__struct__', Term), map_get('__struct__', Term) =:= ?TENSOR -> 'Elixir.Kernel':inspect(Term);
        _ -> 'Elixir.Kernel':inspect(tessera_digest:outline(Term))
    end.
