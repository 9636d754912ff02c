%% A node with Tessera as a service: answers GET /health and GET /metrics, and starts a program of yours. The images and the unit of
%% systemd in this folder run it; docs/deployment.md explains them.
%%
%%   TESSERA_PORT   the port, 9464 by default; TESSERA_ADDRESS: the address, 127.0.0.1 by default
%%   TESSERA_START  a module, whose start() is called when Tessera runs, and returns
-module(service).
-export([start/0]).

-define(DEADLINE, 5000).

%% The VM ends with a reason where anything of this fails: who has started it sees that, and starts it again. The process that
%% accepts connections owns the socket.
start() ->
    Caller = self(),
    Pid = spawn(fun() ->
        try
            Socket = run(),
            Caller ! self(),
            accept(Socket)
        catch Class:Reason:Stack ->
            io:format(standard_error, "service: ~ts~n", [text({Class, Reason, Stack})]),
            halt(1)
        end
    end),
    receive Pid -> ok end.

run() ->
    {ok, _} = application:ensure_all_started(tessera),
    ok = tessera_metrics:start(),
    {ok, Address} = inet:parse_address(os:getenv("TESSERA_ADDRESS", "127.0.0.1")),
    Port = list_to_integer(os:getenv("TESSERA_PORT", "9464")),
    {ok, Socket} = gen_tcp:listen(Port, [binary, {ip, Address}, {active, false}, {packet, http_bin}, {reuseaddr, true}, {backlog, 64},
                                         {send_timeout, ?DEADLINE}]),
    case os:getenv("TESSERA_START", "") of
        "" -> ok;
        Module -> (list_to_atom(Module)):start()
    end,
    io:format("service: version ~ts of Tessera answers on port ~b, with ~b CPUs and ~b MB of tensors~n",
              [tessera:version(), Port, tessera_nif:cpu_count(), maps:get(limit, tessera:memory()) bsr 20]),
    Socket.

accept(Socket) ->
    case gen_tcp:accept(Socket) of
        {ok, Connection} ->
            Pid = spawn(fun() -> receive go -> serve(Connection) after ?DEADLINE -> ok end end),
            ok = gen_tcp:controlling_process(Connection, Pid),
            Pid ! go;
        {error, _} -> timer:sleep(100) % too many files are open
    end,
    accept(Socket).

serve(Connection) ->
    Answer = case gen_tcp:recv(Connection, 0, ?DEADLINE) of
                 {ok, {http_request, 'GET', {abs_path, Path}, _}} ->
                     ok = skip_headers(Connection),
                     answer(Path);
                 {ok, {http_request, _, _, _}} -> {405, "GET only\n"};
                 _ -> none
             end,
    Answer =:= none orelse gen_tcp:send(Connection, response(Answer)),
    gen_tcp:close(Connection).

skip_headers(Connection) ->
    case gen_tcp:recv(Connection, 0, ?DEADLINE) of
        {ok, http_eoh} -> ok;
        {ok, {http_header, _, _, _, _}} -> skip_headers(Connection)
    end.

answer(<<"/health">>) ->
    case health() of
        ok -> {200, "ok\n"};
        {error, Text} -> {503, [Text, "\n"]}
    end;
answer(<<"/metrics">>) -> {200, tessera_metrics:text()};
answer(_) -> {404, "there is /health and /metrics\n"}.

response({Status, Body}) ->
    Bytes = iolist_to_binary(Body),
    [io_lib:format("HTTP/1.1 ~b ~s\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: ~b\r\nConnection: close\r\n\r\n",
                   [Status, case Status of 200 -> "OK"; _ -> "Not OK" end, byte_size(Bytes)]), Bytes].

%% A program is compiled, or found, and run: that needs a kernel, memory and threads.
health() ->
    {Pid, Monitor} = spawn_monitor(fun() ->
        exit({sum, tessera:to_number((tessera:jit(fun(X) -> tessera:sum(tessera:multiply(X, X)) end))(tessera:tensor([1, 2, 3])))})
    end),
    receive
        {'DOWN', Monitor, process, Pid, {sum, 14}} -> ok;
        {'DOWN', Monitor, process, Pid, Reason} -> {error, text(Reason)}
    after ?DEADLINE ->
        exit(Pid, kill),
        {error, io_lib:format("no result within ~b ms", [?DEADLINE])}
    end.

text(Reason) -> unicode:characters_to_binary(io_lib:format("~0tp", [Reason])).
