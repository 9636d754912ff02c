%% @private Processes of clusters that are no gen_servers, because they wait for ports or sockets. With this module these processes answer messages of OTP's
%% `sys'. All processes of clusters have labels, which OTP shows from release 27 on.
-module(tessera_cluster_process).
-export([start_link/2, label/1, system/4]).
-export([system_continue/3, system_terminate/4, system_code_change/4, system_get_state/1, system_replace_state/2, format_status/2]).

%% The state of such a process while the process answers. `continue' continues the loop with a state; `printed' removes secrets from a state.
-record(waits, {state    :: term(),
                continue :: fun((term()) -> term()),
                printed  :: fun((term()) -> term())}).

-spec start_link(term(), fun(() -> term())) -> pid().
start_link(Label, F) ->
    proc_lib:spawn_link(fun() ->
                                ok = label(Label),
                                F()
                        end).

%% Sets the label of the calling process.
-spec label(term()) -> ok.
label(Label) ->
    Module = proc_lib,
    _ = [Module:set_label(Label) || erlang:function_exported(Module, set_label, 1)],
    ok.

%% Handles a message {system, From, Request}, then calls Continue with the state, which the request may have replaced. Does not return. Parent is the process
%% whose exit signal reaches the caller as a message. Printed returns the part of the state that may be printed.
-spec system({term(), term()}, pid(), State, {fun((State) -> term()), fun((State) -> term())}) -> no_return().
system({From, Request}, Parent, State, {Continue, Printed}) ->
    sys:handle_system_msg(Request, From, Parent, ?MODULE, [], #waits{state = State, continue = Continue, printed = Printed}).

%% ---- called by sys

-spec system_continue(pid(), term(), #waits{}) -> term().
system_continue(_, _, #waits{state = State, continue = Continue}) -> Continue(State).

%% The process ends as it ends when the parent has ended.
-spec system_terminate(term(), pid(), term(), #waits{}) -> term().
system_terminate(Reason, Parent, _, #waits{state = State, continue = Continue}) ->
    self() ! {'EXIT', Parent, Reason},
    Continue(State).

-spec system_code_change(#waits{}, module(), term(), term()) -> {ok, #waits{}}.
system_code_change(Waits, _, _, _) -> {ok, Waits}.

-spec system_get_state(#waits{}) -> {ok, term()}.
system_get_state(#waits{state = State}) -> {ok, State}.

-spec system_replace_state(fun((term()) -> term()), #waits{}) -> {ok, term(), #waits{}}.
system_replace_state(Replace, #waits{state = State} = Waits) ->
    New = Replace(State),
    {ok, New, Waits#waits{state = New}}.

-spec format_status(term(), [term()]) -> term().
format_status(_, [_, _, _, _, #waits{state = State, printed = Printed}]) -> Printed(State).
