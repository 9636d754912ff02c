%% @private Errors that users see. All are `error' exceptions with the reason
%% {Code, Message} and an error info, which the shell and logger print in full.
-module(tessera_error).
-include("tessera.hrl").
-export([raise/3, raise/5, show/1, format_error/2]).

%% As many tensors are named in a message.
-define(MAX_OPERANDS, 4).
%% As much of a list or tuple is shown.
-define(MAX_ITEMS, 10).

%% The operation's name, its arguments, and what the core said.
-spec raise(atom(), [term()], #{code := atom(), message := binary(), _ => _}) -> no_return().
raise(Name, Args, #{code := Code, message := Text} = Cause) ->
    Message = named(Name, Text),
    Info = {error_info, #{module => ?MODULE, cause => Cause#{message := Message}}},
    erlang:raise(error, {Code, Message}, [{tessera, Name, called(Name, Args), [Info]} | callers()]).

%% The arguments, where they are those of a function of the API, else its arity.
called(Name, Args) ->
    case [Arity || {Function, Arity} <- tessera:module_info(exports), Function =:= Name] of
        [_ | _] = Arities ->
            case lists:member(length(Args), Arities) of
                true -> Args;
                false -> hd(Arities)
            end;
        [] -> Args
    end.

%% Says first which function it is about, unless the message does: "name: ...", "name(...) ...".
named(Name, Text) ->
    case re:run(Text, "^[a-z][a-z0-9_]*[:(,]", [{capture, none}]) of
        match -> Text;
        nomatch -> <<(atom_to_binary(Name, utf8))/binary, ": ", Text/binary>>
    end.

%% The same with a message made here.
-spec raise(atom(), [term()], atom(), io:format(), [term()]) -> no_return().
raise(Name, Args, Code, Format, Values) ->
    Message = unicode:characters_to_binary(io_lib:format(Format, Values)),
    raise(Name, Args, #{code => Code, message => with_operands(atom_to_binary(Name, utf8), Message, Args)}).

%% "name: ..." becomes "name(f32[2,3]): ..." where there are tensors among the arguments.
with_operands(Name, Message, Args) ->
    Length = byte_size(Name),
    case {Message, operands(Args)} of
        {<<Name:Length/binary, ":", Rest/binary>>, [_ | _] = Operands} ->
            unicode:characters_to_binary([Name, $(, lists:join(", ", Operands), "):", Rest]);
        _ -> Message
    end.

%% Types and shapes of the tensors among the arguments, or in the list that is the first of them.
operands([[_ | _] = First | _]) -> operands_of(First, ?MAX_OPERANDS);
operands(Args) -> operands_of(Args, ?MAX_OPERANDS).

operands_of([#tessera{type = Type, shape = Shape} | Rest], Left) when is_atom(Type), is_tuple(Shape) ->
    case Left > 0 andalso lists:all(fun erlang:is_integer/1, tuple_to_list(Shape)) of
        true -> [tessera_type:format(Type, Shape) | operands_of(Rest, Left - 1)];
        false -> ["..."]
    end;
operands_of([_ | Rest], Left) -> operands_of(Rest, Left);
operands_of(_, _) -> []. % also where a list ends in something else

%% A term as people write it, tensors by type and shape, cut where it is long.
-spec show(term()) -> iolist().
show(#tessera{ref = undefined, type = Type, shape = Shape} = T) -> show_tensor("a template ", Type, Shape, T);
show(#tessera{type = Type, shape = Shape} = T) -> show_tensor("", Type, Shape, T);
show([_ | _] = Terms) ->
    case tessera_type:is_proper(Terms) andalso not io_lib:printable_unicode_list(Terms) of
        true -> [$[, show_items(Terms), $]];
        false -> io_lib:format("~0tP", [Terms, 2 * ?MAX_ITEMS])
    end;
show(Tuple) when is_tuple(Tuple) -> [${, show_items(tuple_to_list(Tuple)), $}];
show(Term) -> io_lib:format("~0tP", [Term, 2 * ?MAX_ITEMS]).

show_items(Terms) when length(Terms) > ?MAX_ITEMS -> [show_items(lists:sublist(Terms, ?MAX_ITEMS)), ",..."];
show_items(Terms) -> lists:join($,, [show(Term) || Term <- Terms]).

show_tensor(What, Type, Shape, Tensor) ->
    case is_atom(Type) andalso is_tuple(Shape) andalso lists:all(fun erlang:is_integer/1, tuple_to_list(Shape)) of
        true -> [What, tessera_type:format(Type, Shape)];
        false -> io_lib:format("~0P", [Tensor, ?MAX_ITEMS])
    end.

%% Who called us, without our own modules.
callers() ->
    {current_stacktrace, Trace} = process_info(self(), current_stacktrace),
    lists:dropwhile(fun({Module, _, _, _}) -> is_ours(Module) end, Trace).

is_ours(Module) ->
    lists:member(Module, [erlang, lists, tessera, tessera_error, tessera_trace, tessera_ops, tessera_control, tessera_jit,
                          tessera_grad, tessera_grad_rules, tessera_memory, tessera_remote, tessera_cache, tessera_print, tessera_tree]).

%% Called by erl_error when such an exception is printed.
-spec format_error(term(), erlang:stacktrace()) -> #{general := string(), reason := string()}.
format_error(_Reason, [{_, _, _, Location} | _]) ->
    #{cause := #{code := Code, message := Message}} = proplists:get_value(error_info, Location),
    #{general => unicode:characters_to_list(Message), reason => code_text(Code)}.

code_text(invalid_argument) -> "invalid argument";
code_text(out_of_range) -> "out of range";
code_text(resource_exhausted) -> "resource exhausted";
code_text(failed_precondition) -> "failed precondition";
code_text(unimplemented) -> "not implemented";
code_text(cancelled) -> "cancelled";
code_text(data_loss) -> "data loss";
code_text(unavailable) -> "unavailable";
code_text(internal) -> "internal error of Tessera".
