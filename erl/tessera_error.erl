%% @private Errors that users see. All are `error' exceptions with the reason
%% {Code, Message} and an error info, which the shell and logger print in full.
-module(tessera_error).
-export([raise/3, raise/5, format_error/2]).

%% The operation's name, its arguments, and what the core said.
-spec raise(atom(), [term()], #{code := atom(), message := binary(), _ => _}) -> no_return().
raise(Name, Args, #{code := Code, message := Text} = Cause) ->
    Message = named(Name, Text),
    Info = {error_info, #{module => ?MODULE, cause => Cause#{message := Message}}},
    erlang:raise(error, {Code, Message}, [{tessera, Name, Args, [Info]} | callers()]).

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
    raise(Name, Args, #{code => Code, message => Message}).

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
