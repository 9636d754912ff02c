%% @private Errors of clusters, as the native library's: a code and a message.
-module(tessera_cluster_error).
-export([new/3, too_large/2, lost/1, raise/1]).

-spec new(atom(), io:format(), [term()]) -> #{code := atom(), message := binary()}.
new(Code, Format, Values) -> #{code => Code, message => unicode:characters_to_binary(io_lib:format(Format, Values))}.

%% Of a message that is not sent, from tessera_cluster_blocks:pack/3.
-spec too_large(iodata(), {message | term, pos_integer(), pos_integer()}) -> #{code := atom(), message := binary()}.
too_large(What, {message, Bytes, Limit}) ->
    new(resource_exhausted, "~ts has ~b bytes, and a message has at most ~b: the option max_message", [What, Bytes, Limit]);
too_large(What, {term, Bytes, Limit}) ->
    new(resource_exhausted, "~ts has ~b bytes besides its tensors and binaries, and a message has at most ~b of these: pass tensors or "
        "binaries, and not in a fun", [What, Bytes, Limit]).

%% The error in the exit reason of a process of the cluster.
-spec lost(term()) -> #{code := atom(), message := binary()}.
lost({shutdown, {lost, #{code := _, message := _} = Error}}) -> Error;
lost(_) -> new(unavailable, "the cluster was stopped, or is not one", []).

%% Raises with an error info, like all of Tessera's errors (tessera_error), and without the frames of Tessera's own modules. The first frame of the
%% trace is the function that the user has called, or the nearest one on the stack.
-spec raise(#{code := atom(), message := binary(), _ => _}) -> no_return().
raise(#{code := Code, message := Message} = Cause) ->
    {current_stacktrace, Trace} = process_info(self(), current_stacktrace),
    {Own, Callers} = lists:splitwith(fun({Module, _, _, _}) -> is_ours(Module) end, Trace),
    {Module, Function, Arity, _} = lists:last([{?MODULE, raise, 1, []} | Own]),
    erlang:raise(error, {Code, Message}, [{Module, Function, Arity, [{error_info, #{module => tessera_error, cause => Cause}}]} | Callers]).

is_ours(Module) ->
    tessera_error:is_ours(Module) orelse case application:get_key(tessera, modules) of
                                             {ok, Modules} -> lists:member(Module, Modules);
                                             undefined -> false
                                         end.
