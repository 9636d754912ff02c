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

%% From the reason with which a process of the cluster ended.
-spec lost(term()) -> #{code := atom(), message := binary()}.
lost({shutdown, {lost, #{code := _, message := _} = Error}}) -> Error;
lost(_) -> new(unavailable, "the cluster was stopped, or is not one", []).

-spec raise(#{code := atom(), message := binary(), _ => _}) -> no_return().
raise(#{code := Code, message := Message}) -> error({Code, Message}).
