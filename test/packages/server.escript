#!/usr/bin/env escript
%% Serves the files of a folder on a loopback port over HTTP, and writes the port into a file. Ends with its standard input.
%%   test/packages/server.escript FOLDER PORT-FILE
-mode(compile).

main([Folder, PortFile]) ->
    {ok, Socket} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {active, false}, {packet, http_bin}, {reuseaddr, true}]),
    {ok, Port} = inet:port(Socket),
    ok = file:write_file(PortFile ++ ".tmp", integer_to_list(Port)),
    ok = file:rename(PortFile ++ ".tmp", PortFile),
    spawn_link(fun() -> accept(Socket, Folder) end),
    wait().

wait() ->
    case io:get_line("") of
        eof -> halt(0);
        _ -> wait()
    end.

accept(Socket, Folder) ->
    {ok, Connection} = gen_tcp:accept(Socket),
    {ok, {http_request, 'GET', {abs_path, Path}, _}} = gen_tcp:recv(Connection, 0),
    headers(Connection),
    answer(Connection, file:read_file(filename:join(Folder, filename:basename(Path)))),
    ok = gen_tcp:close(Connection),
    accept(Socket, Folder).

headers(Connection) ->
    case gen_tcp:recv(Connection, 0) of
        {ok, http_eoh} -> ok;
        {ok, _} -> headers(Connection)
    end.

answer(Connection, {ok, Bytes}) ->
    ok = gen_tcp:send(Connection, [io_lib:format("HTTP/1.1 200 OK\r\nContent-Length: ~b\r\nConnection: close\r\n\r\n", [byte_size(Bytes)]), Bytes]);
answer(Connection, {error, _}) ->
    ok = gen_tcp:send(Connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").
