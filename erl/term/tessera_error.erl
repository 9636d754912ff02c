%% @private Errors that users see. All are `error' exceptions with the reason {Code, Message} and an error info: the
%% shell and logger print it in full.
-module(tessera_error).
-include("tessera.hrl").
-export([check/3, raise/3, raise/4, raise/5, located/3, again/3, stack/1, within/3, show/1, is_ours/1, is_gone/1, format_error/2]).

%% Limit for the tensors that are named in a message.
-define(MAX_OPERANDS, 4).
%% Limit for the items of a list or tuple that are shown.
-define(MAX_ITEMS, 10).

%% The most arguments that a function of the API has.
-define(MAX_ARITY, 6).
%% The module of the API: the first frame of an error names it.
-define(API, tessera).

%% The result of a call for the API function Name, whose error is raised.
-spec check(atom(), [term()], Result | {error, #{code := atom(), message := binary(), _ => _}}) -> Result.
check(Name, Args, {error, Cause}) -> raise(Name, Args, Cause);
check(_Name, _Args, Result) -> Result.

%% Raises the core's error of an operation with these arguments.
-spec raise(atom(), [term()], #{code := atom(), message := binary(), _ => _}) -> no_return().
raise(Name, Args, Cause) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    raise(Name, Args, Cause#{stack => Stack}, lists:dropwhile(fun({Module, _, _, _}) -> is_ours(Module) end, Stack)).

%% The whole stack where an error of ours was raised, of which its stacktrace has the user's part; none if the message has a line, or will have none.
-spec stack(erlang:stacktrace()) -> erlang:stacktrace().
stack([{_, _, _, Location} | _]) ->
    #{cause := Cause} = proplists:get_value(error_info, Location, #{cause => #{}}),
    maps:get(stack, Cause, []).

%% The same instead of another error, with its stacktrace.
-spec raise(atom(), [term()], #{code := atom(), message := binary(), _ => _}, erlang:stacktrace()) -> no_return().
raise(Name, Args, #{code := Code, message := Text} = Cause, Trace) ->
    Message = named(Name, Text),
    Info = {error_info, #{module => ?MODULE, cause => Cause#{message := Message}}},
    erlang:raise(error, {Code, Message}, [{?API, Name, called(Name, Args), [Info]} | Trace]).

%% The arguments, if a function of the API has them and they can be sent with the reason of an exit; else its arity.
called(Name, Args) ->
    Arity = arity(length(Args), [Arity || Arity <- lists:seq(0, ?MAX_ARITY), erlang:function_exported(?API, Name, Arity)]),
    case Arity =:= length(Args) andalso tessera_digest:is_small(Args) of
        true -> Args;
        false -> Arity
    end.

arity(Given, Arities) ->
    case Arities =:= [] orelse lists:member(Given, Arities) of
        true -> Given;
        false -> hd(Arities)
    end.

%% Prepends the function's name, unless the message begins with it: "name: ...", "name(...)
%% ...".
named(Name, Text) ->
    case re:run(Text, "^[a-z][a-z0-9_]*[:(,]", [{capture, none}]) of
        match -> Text;
        nomatch -> <<(atom_to_binary(Name, utf8))/binary, ": ", Text/binary>>
    end.

%% Raises an error with a message of its own.
-spec raise(atom(), [term()], atom(), io:format(), [term()]) -> no_return().
raise(Name, Args, Code, Format, Values) ->
    Message = unicode:characters_to_binary(text(Format, Values)),
    raise(Name, Args, #{code => Code, message => with_operands(atom_to_binary(Name, utf8), Message, Args)}).

%% Raises an error of ours again, whose message ends with a line of the user's code.
-spec located(iodata(), {atom(), binary()}, erlang:stacktrace()) -> no_return().
located(Place, {Code, Text}, Trace) -> again([], {Code, unicode:characters_to_binary([Text, Place])}, Trace).

%% Raises an error of ours again. The stack is kept in its `error_info', where an outer function may find a line of the user's code.
-spec again(erlang:stacktrace(), {atom(), binary()}, erlang:stacktrace()) -> no_return().
again(Stack, {Code, Message}, [{Module, Name, Args, [{error_info, #{cause := Cause} = Info}]} | Trace]) ->
    erlang:raise(error, {Code, Message}, [{Module, Name, Args, [{error_info, Info#{cause := Cause#{message := Message, stack => Stack}}}]} | Trace]).

%% Runs a function of the API that calls others: their errors are errors of this function, with its name and arguments.
-spec within(atom(), [term()], fun(() -> Result)) -> Result.
within(Name, Args, F) ->
    try F()
    catch error:{Code, Message} = Reason:Trace when is_atom(Code), is_binary(Message) ->
            case Trace of
                [{?API, Name, Called, _} | _] when Called =:= Args; Called =:= length(Args) -> erlang:raise(error, Reason, Trace);
                [{?API, Inner, _, _} | Callers] ->
                    raise(Name, Args, #{code => Code, message => of_caller(Name, Args, Inner, Message), stack => stack(Trace)}, Callers);
                _ -> erlang:raise(error, Reason, Trace)
            end
    end.

of_caller(Name, _, Name, Message) -> Message;
of_caller(Name, Args, Inner, Message) ->
    Own = atom_to_binary(Name),
    case string:prefix(Message, [atom_to_list(Inner), ": "]) of
        nomatch -> <<Own/binary, ": ", Message/binary>>;
        Why -> with_operands(Own, <<Own/binary, ": ", Why/binary>>, Args)
    end.

%% A term may be larger than any text, so it is shown as an outline.
text(Format, Values) -> io_lib:build_text([outlined(Item) || Item <- io_lib:scan_format(Format, Values)]).

outlined(#{control_char := Kind, args := Terms} = Item) when Kind =:= $p; Kind =:= $w ->
    Item#{args := [tessera_digest:outline(Term) || Term <- Terms]};
outlined(Item) -> Item.

%% "name: ..." becomes "name(f32[2,3]): ..." if there are tensors among the arguments.
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

%% A term in Erlang's syntax, with tensors by type and shape; a long one is truncated.
-spec show(term()) -> iolist().
show(Term) -> show_part(tessera_digest:outline(Term)).

show_part(#tessera{ref = undefined, type = Type, shape = Shape} = T) -> show_tensor("a template ", Type, Shape, T);
show_part(#tessera{type = Type, shape = Shape} = T) -> show_tensor("", Type, Shape, T);
show_part([_ | _] = Terms) ->
    case tessera_type:is_proper(Terms) andalso not io_lib:printable_unicode_list(Terms) of
        true -> [$[, show_items(Terms), $]];
        false -> io_lib:format("~0tP", [Terms, 2 * ?MAX_ITEMS])
    end;
show_part(Tuple) when is_tuple(Tuple) -> [${, show_items(tuple_to_list(Tuple)), $}];
show_part(Term) -> io_lib:format("~0tP", [Term, 2 * ?MAX_ITEMS]).

show_items(Terms) when length(Terms) > ?MAX_ITEMS -> [show_items(lists:sublist(Terms, ?MAX_ITEMS)), ",..."];
show_items(Terms) -> lists:join($,, [show_part(Term) || Term <- Terms]).

show_tensor(What, Type, Shape, Tensor) ->
    case is_atom(Type) andalso is_tuple(Shape) andalso lists:all(fun erlang:is_integer/1, tuple_to_list(Shape)) of
        true -> [What, tessera_type:format(Type, Shape)];
        false -> io_lib:format("~0P", [Tensor, ?MAX_ITEMS])
    end.

%% Whether the error is that a tensor was deallocated or donated.
-spec is_gone(#{code := atom(), message := binary(), _ => _}) -> boolean().
is_gone(#{code := Code, message := Message}) ->
    Code =:= failed_precondition andalso string:find(Message, "deallocated or donated") =/= nomatch.

%% Modules whose frames are hidden from users.
-spec is_ours(module()) -> boolean().
is_ours(Module) ->
    lists:member(Module, [erlang, lists, tessera, tessera_error, tessera_trace, tessera_operand, tessera_ops, tessera_elementwise,
                          tessera_array, tessera_control, tessera_shapes, tessera_einsum, tessera_floats, tessera_statistics,
                          tessera_jit, tessera_grad, tessera_grad_rules, tessera_memory, tessera_remote, tessera_cache,
                          tessera_print, tessera_tree, tessera_operators, tessera_check, tessera_source, tessera_flow, tessera_flow_beam,
                          tessera_flow_calls, tessera_kind, tessera_traced_error, tessera_mesh, tessera_shard]).

%% Called by erl_error when such an exception is printed.
%% Binaries: Elixir takes nothing else.
-spec format_error(term(), erlang:stacktrace()) -> #{general := binary(), reason := binary()}.
format_error(_Reason, [{_, _, _, Location} | _]) ->
    #{cause := #{code := Code, message := Message}} = proplists:get_value(error_info, Location),
    #{general => Message, reason => code_text(Code)}.

code_text(invalid_argument) -> <<"invalid argument">>;
code_text(out_of_range) -> <<"out of range">>;
code_text(resource_exhausted) -> <<"resource exhausted">>;
code_text(failed_precondition) -> <<"failed precondition">>;
code_text(unimplemented) -> <<"not implemented">>;
code_text(cancelled) -> <<"cancelled">>;
code_text(data_loss) -> <<"data loss">>;
code_text(unavailable) -> <<"unavailable">>;
code_text(elsewhere) -> <<"elsewhere">>;
code_text(internal) -> <<"internal error of Tessera">>.
