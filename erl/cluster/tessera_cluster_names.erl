%% @private The names of clusters: each cluster is a client by its name. A name belongs to a process and is free again when that process has ended in
%% any way: nothing has to be removed then. A cluster that was up once keeps its name known. So calls by it are told that it has ended, also while a
%% supervisor starts it again, and not that the client is unknown.
-module(tessera_cluster_names).
-export([take/1, set/1, up/1, release/1, check/1, is_name/1, is_live/1, pid/1]).

%% Terms that are replaced are pids, whose replacement costs the VM nothing.
-define(KEY(Name), {tessera_cluster, Name}).
-define(WAS_UP(Name), {tessera_cluster, was_up, Name}).

%% Registers the calling process.
-spec take(atom()) -> ok | {error, map()}.
take(undefined) -> ok;
take(Name) ->
    case check(Name) of
        ok ->
            try register(Name, self()) of
                true -> set(Name)
            catch error:badarg -> taken(Name)
            end;
        Error -> Error
    end.

taken(Name) -> {error, tessera_cluster_error:new(failed_precondition, "the name ~0tp is taken", [Name])}.

%% Whether a cluster may have the name.
-spec check(atom()) -> ok | {error, map()}.
check(Name) ->
    case Name =/= undefined andalso tessera_client:is_client(Name) of
        true -> {error, tessera_cluster_error:new(failed_precondition, "the name ~0tp is that of a client", [Name])};
        false -> ok
    end.

%% The calling process (registered) becomes the cluster with that name.
-spec set(atom()) -> ok.
set(undefined) -> ok;
set(Name) -> persistent_term:put(?KEY(Name), self()).

%% The cluster has been up.
-spec up(atom()) -> ok.
up(undefined) -> ok;
up(Name) -> persistent_term:put(?WAS_UP(Name), true).

%% Frees the name of the calling process before that ends.
-spec release(atom()) -> ok.
release(undefined) -> ok;
release(Name) ->
    _ = [unregister(Name) || whereis(Name) =:= self()],
    _ = [persistent_term:erase(?KEY(Name)) || persistent_term:get(?KEY(Name), none) =:= self(), not was_up(Name)],
    ok.

%% Whether the name belongs to a cluster, even an ended one, and not to a client.
-spec is_name(atom()) -> boolean().
is_name(Name) ->
    case persistent_term:get(?KEY(Name), none) of
        none -> false;
        Pid -> is_process_alive(Pid) orelse was_up(Name) andalso not tessera_client:is_client(Name)
    end.

-spec is_live(atom()) -> boolean().
is_live(Name) -> pid(Name) =/= none.

%% The process of the cluster, if it lives.
-spec pid(atom()) -> pid() | none.
pid(Name) ->
    case persistent_term:get(?KEY(Name), none) of
        none -> none;
        Pid -> case is_process_alive(Pid) of true -> Pid; false -> none end
    end.

was_up(Name) -> persistent_term:get(?WAS_UP(Name), false).
