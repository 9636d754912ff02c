%% @private Warnings about traced functions: places where Erlang itself inspects a tensor, so that a
%% branch does not depend on its value (tessera_flow says how that is found). Each function is
%% checked once for each form of its arguments, in the background, by a process whose time and memory
%% are bounded; no call waits for it. Each finding is logged once. The application's setting
%% `trace_warnings' switches it off.
-module(tessera_check).
-behaviour(gen_server).
-include("tessera.hrl").
-export([start_link/0, request/2, findings/2, lines/2, format/1, flush/0, forget/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(SEEN, ?MODULE).      % the functions that were checked and the warnings that were given, by hash
-define(MAX_SEEN, 20000).
-define(MAX_WAITING, 200).
-define(KEEP_SOURCE, 5000).  % ms: the funs of one module are usually checked together
-define(SECONDS, 5).         % of a search; the setting `trace_seconds', of tests, is another bound
-define(MAX_WORDS, 16 * 1024 * 1024).

-type job() :: {tessera_source:fun_id(), [tessera_kind:kind()]}.
%% Compiled code has no lines for errors.
-type result() :: tessera_flow:result() | #{findings := [tessera_flow:finding()]} | not_searched() | none.
-type not_searched() :: {none, module(), string()}.
-type worker() :: {pid(), reference()} | none.
-record(state, {worker = none :: worker()}).

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Requests a check of a traced function with these arguments. Never raises, never waits.
-spec request(function(), [term()]) -> ok.
request(F, Args) ->
    try
        is_wanted(F) andalso is_new({tessera_source:key(F), [form(Arg) || Arg <- Args]}) andalso
            gen_server:cast(?MODULE, {look, job(F, Args)}),
        ok
    catch _:_ -> ok
    end.

%% Tessera's own functions need no check. Without the application there is no table, and no function
%% is checked.
is_wanted(F) ->
    {module, Module} = erlang:fun_info(F, module),
    application:get_env(tessera, trace_warnings, true) =:= true andalso not tessera_error:is_ours(Module).

%% By hash: a term whose hash collides is not checked.
is_new(Term) -> ets:insert_new(?SEEN, {erlang:phash2(Term, 1 bsl 32)}).

%% The outermost form of an argument only, since this is computed whenever a function is
%% traced.
form(#tessera{}) -> tensor;
form(Number) when is_number(Number) -> number;
form(Atom) when is_atom(Atom) -> Atom;
form(Tuple) when is_tuple(Tuple) -> {tuple, tuple_size(Tuple)};
form(List) when is_list(List) -> list;
form(Map) when is_map(Map) -> map;
form(_) -> other.

-spec job(function(), [term()]) -> job().
job(F, Args) -> {tessera_source:fun_id(F), [tessera_kind:of_term(Arg) || Arg <- Args]}.

%% The warnings for a function, computed now.
-spec findings(function(), [term()]) -> [tessera_flow:finding()].
findings(F, Args) ->
    case now(F, Args) of
        #{findings := Findings} -> Findings;
        _ -> []
    end.

%% The kinds in arithmetic and `if's of a function, by line; none if its code is not available.
-spec lines(function(), [term()]) -> tessera_flow:lines() | none.
lines(F, Args) ->
    case now(F, Args) of
        #{lines := Lines} -> Lines;
        _ -> none
    end.

now(F, Args) ->
    Job = try job(F, Args)
          catch _:_ -> {none, []}
          end,
    {Result, Worker} = ask(Job, none),
    stop(Worker),
    Result.

%% Waits until all requested checks are complete.
-spec flush() -> ok.
flush() -> gen_server:call(?MODULE, flush, infinity).

%% Forgets which functions were searched and which warnings were given, for tests.
-spec forget() -> ok.
forget() ->
    true = ets:delete_all_objects(?SEEN),
    ok.

%% ---- the server

init([]) ->
    _ = process_flag(trap_exit, true), % so that it gives what it has found when the node is stopped
    _ = process_flag(priority, low),
    ?SEEN = ets:new(?SEEN, [named_table, public, {write_concurrency, true}]),
    {ok, #state{}}.

handle_call(flush, _From, State) -> {reply, ok, State, ?KEEP_SOURCE}.

handle_cast({look, Job}, State) ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    case Waiting > ?MAX_WAITING of
        true -> {noreply, State, ?KEEP_SOURCE};
        false -> {noreply, look(Job, State), ?KEEP_SOURCE}
    end.

handle_info(timeout, #state{worker = Worker}) ->
    stop(Worker),
    {noreply, #state{}, hibernate};
handle_info(_, State) -> {noreply, State, ?KEEP_SOURCE}.

%% Completes the requests from before the end.
terminate(_, State) ->
    receive {'$gen_cast', {look, Job}} -> terminate(stop, look(Job, State))
    after 0 -> ok
    end.

look(Job, State) ->
    case ets:info(?SEEN, size) > ?MAX_SEEN of
        true -> ets:delete_all_objects(?SEEN);
        false -> true
    end,
    {Result, Worker} = ask(Job, State#state.worker),
    _ = case Result of
            #{findings := Findings} -> [warn(Finding) || Finding <- Findings, is_new(Finding)];
            {none, Module, _} -> [warn(Result) || is_new({not_searched, Module})];
            none -> []
        end,
    State#state{worker = Worker}.

warn(Finding) -> logger:warning("~ts", [format(Finding)]).

%% ---- one function

%% Analyses a function in a process that is killed when it takes too much time or memory. The process keeps the
%% module's code for the next request.
-spec ask(job(), worker()) -> {result(), worker()}.
ask({none, _}, Worker) -> {none, Worker};
ask(Job, none) -> ask(Job, start());
ask(Job, {Pid, Monitor} = Worker) ->
    Pid ! {look, Job},
    receive
        {looked, Pid, Result} -> {Result, Worker};
        {'DOWN', Monitor, _, _, _} -> {none, none}
    after application:get_env(tessera, trace_seconds, ?SECONDS) * 1000 ->
        stop(Worker),
        {none, none}
    end.

start() ->
    Asker = self(),
    spawn_opt(fun() -> work(Asker, monitor(process, Asker), {none, none}) end,
              [monitor, {priority, low}, {max_heap_size, #{size => ?MAX_WORDS, kill => true, error_logger => false}}]).

stop(none) -> ok;
stop({Pid, Monitor}) ->
    exit(Pid, kill),
    true = demonitor(Monitor, [flush]),
    receive {looked, Pid, _} -> ok
    after 0 -> ok
    end.

work(Asker, Monitor, Kept) ->
    receive
        {look, {Id, Kinds}} ->
            {_, Source} = Known = source(Id, Kept),
            Asker ! {looked, self(), result(Id, Kinds, Source)},
            work(Asker, Monitor, Known);
        {'DOWN', Monitor, _, _, _} -> ok
    end.

source(Id, {Version, _} = Kept) ->
    case tessera_source:version(Id) of
        Version when Version =/= none -> Kept;
        Other -> {Other, tessera_source:load(Id)}
    end.

result(Id, Kinds, #{} = Source) ->
    try {tessera_source:target(Id, Source), Source} of
        {none, _} -> none;
        {{beam, Function, Held}, #{beam := Code}} -> #{findings => tessera_flow_beam:analyse(Code, Function, Kinds ++ Held)};
        {Target, #{code := Code}} -> tessera_flow:analyse(Code, Target, Kinds)
    catch _:_ -> none
    end;
result(_, _, Without) -> Without.

%% ---- texts of warnings

-spec format(tessera_flow:finding() | not_searched()) -> iolist().
format({none, Module, Why}) ->
    io_lib:format("tessera: the functions of the module ~0tp are not searched for comparisons that do not see a tensor's value, since ~ts. "
                  "Load it from its .beam file, or take care that none of them compares a tensor as a term of Erlang: docs/tracing.md.", [Module, Why]);
format({Place, Why, Expr, Ours}) ->
    ["tessera: ", place(Place), Expr, reason(Why), " Write ", instead(Why, Ours),
     ", or compile the module with the parse transform tessera_transform: docs/tracing.md."].

place({compiled, {"", _}, Name}) -> ["in ", Name, ", "];
place({compiled, {File, Line}, Name}) -> [File, ", in ", Name, " from line ", integer_to_list(Line), " on: "];
place({"", _}) -> "in an interpreted function, ";
place({File, Line}) -> [File, $:, integer_to_list(Line), ": "].

reason(comparison) -> " compares a tensor as a term of Erlang: it gives the same for every value.";
reason(pattern) -> " as a pattern is never equal to a tensor: the clause is never taken, whatever the value.";
reason(truth) -> " is a tensor, which as a guard is never true: the clause is never taken, whatever the value.";
reason(guard) -> " is arithmetic on a tensor, which fails in a guard: the clause is never taken, whatever the value.".

instead(truth, _) -> "tessera:'cond'/3 or tessera:select/3";
instead(_, none) -> "tessera:'cond'/3 or tessera:select/3";
instead(comparison, Ours) when Ours =:= max; Ours =:= min -> ["tessera:", atom_to_list(Ours), "/2"];
instead(_, Ours) ->
    Arity = case erlang:function_exported(tessera, Ours, 2) of
                true -> "/2";
                false -> "/1"
            end,
    ["tessera:", atom_to_list(Ours), Arity, " with tessera:'cond'/3 or tessera:select/3"].
