%% @private Errors of clusters, as the native library's: a code and a message.
-module(tessera_cluster_error).
-export([new/3, lost/1, raise/1]).

-spec new(atom(), io:format(), [term()]) -> #{code := atom(), message := binary()}.
new(Code, Format, Values) -> #{code => Code, message => unicode:characters_to_binary(io_lib:format(Format, Values))}.

%% From the reason with which a process of the cluster ended.
-spec lost(term()) -> #{code := atom(), message := binary()}.
lost({shutdown, {lost, #{code := _, message := _} = Error}}) -> Error;
lost(_) -> new(unavailable, "the cluster was stopped, or is not one", []).

-spec raise(#{code := atom(), message := binary(), _ => _}) -> no_return().
raise(#{code := Code, message := Message}) -> error({Code, Message}).
