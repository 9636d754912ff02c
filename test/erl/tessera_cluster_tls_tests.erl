%% Encrypted connections of clusters: the certificate, sockets with the right and with wrong sides, and clusters over them.
-module(tessera_cluster_tls_tests).
-include_lib("eunit/include/eunit.hrl").
-import(tessera_cluster_tests, [launchers/0, started/2, pids/1, stop/2, signal/2, gone/1, busy/1, fake/3, ranks/2, listening/1]).
-import(tessera_test, [in_folder/1, until/1]).
-export([log/2]).

-define(WITHIN, 240000).

%% ---- the certificate and the files

%% Keys with leading zeros are rare: many are made.
certificate_test() ->
    Made = [tessera_cluster_tls:certificate() || _ <- lists:seq(1, 300)],
    [begin
         ?assert(public_key:pkix_is_self_signed(Certificate)),
         Decoded = public_key:pkix_decode_cert(Certificate, otp),
         ?assertEqual(Certificate, public_key:pkix_encode('OTPCertificate', Decoded, otp)),
         Key = public_key:der_decode('ECPrivateKey', PrivateKey),
         ?assert(public_key:pkix_verify(Certificate, {{'ECPoint', element(5, Key)}, {namedCurve, {1, 2, 840, 10045, 3, 1, 7}}}))
     end || {Certificate, PrivateKey} <- Made],
    ?assertEqual(300, length(lists:usort(Made))).

files_test_() ->
    in_folder(fun(Folder) ->
                      File = filename:join(Folder, "key"),
                      [begin
                           {Credentials, Files} = tessera_cluster_tls:new(File, Tls),
                           [ok = file:write_file(Name, Contents) || {Name, Contents} <- Files],
                           ?assertEqual({ok, Credentials}, tessera_cluster_tls:read(File)),
                           ok = tessera_cluster_tls:remove(File),
                           ?assertMatch({error, _}, tessera_cluster_tls:read(File)),
                           ?assertEqual({ok, []}, file:list_dir(Folder))
                       end || Tls <- [false, true]],
                      ok = file:write_file(File, <<1:248>>),
                      ?assertEqual({error, "the file " ++ File ++ " has no key"}, text(tessera_cluster_tls:read(File)))
              end).

text({error, Text}) -> {error, unicode:characters_to_list(Text)}.

%% As the driver makes one and as a rank reads it; its certificate and private key.
identity(Folder, Name) ->
    ok = tessera_cluster_tls:available(),
    File = filename:join([Folder, Name, "key"]),
    ok = filelib:ensure_dir(File),
    {_, Files} = tessera_cluster_tls:new(File, true),
    [ok = file:write_file(Each, Contents) || {Each, Contents} <- Files],
    {ok, {_, Identity}} = tessera_cluster_tls:read(File),
    [{_, Certificate, _}, {_, PrivateKey, _}] = public_key:pem_decode(element(2, lists:last(Files))),
    {Identity, Certificate, PrivateKey}.

%% ---- sockets

%% The results of both sides, which run at once.
both(Server, Client) ->
    {ok, Listen} = tessera_cluster_socket:listen({127, 0, 0, 1}, 8),
    Port = tessera_cluster_socket:port(Listen),
    Self = self(),
    {Accepting, Monitor} = spawn_monitor(fun() ->
                                                 {ok, Socket} = tessera_cluster_socket:accept(Listen, ?WITHIN),
                                                 Self ! {self(), Server(Socket)}
                                         end),
    {ok, Socket} = tessera_cluster_socket:connect({127, 0, 0, 1}, Port, ?WITHIN),
    Got = Client(Socket),
    Result = receive
                 {Accepting, Theirs} -> {Theirs, Got};
                 {'DOWN', Monitor, process, Accepting, Reason} -> error(Reason)
             end,
    _ = demonitor(Monitor, [flush]),
    ok = tessera_cluster_socket:close(Listen),
    Result.

secured(Role, Identity, Then) ->
    fun(Socket) ->
            case tessera_cluster_socket:secure(Socket, Role, Identity, ?WITHIN) of
                {ok, Secured} -> Then(Secured);
                {error, _} -> refused
            end
    end.

sockets_test_() ->
    {timeout, 120, in_folder(fun(Folder) -> [sockets(Identity) || Identity <- [none, element(1, identity(Folder, "own"))]] end)}.

%% The same over TCP and TLS: frames, the limits of their sizes, silence, the end.
sockets(Identity) ->
    Sizes = [0, 1, 4000, 1048580],
    Serve = fun(Socket) ->
                    {error, timeout} = tessera_cluster_socket:read(Socket, 10),
                    ok = tessera_cluster_socket:authenticated(Socket),
                    ok = tessera_cluster_socket:write(Socket, <<"go">>),
                    [begin
                         {ok, Frame} = tessera_cluster_socket:read(Socket, ?WITHIN),
                         ok = tessera_cluster_socket:write(Socket, [Frame, <<"!">>])
                     end || _ <- Sizes],
                    Read = tessera_cluster_socket:read(Socket, ?WITHIN),
                    ok = tessera_cluster_socket:close(Socket),
                    Read
            end,
    Ask = fun(Socket) ->
                  {ok, <<"go">>} = tessera_cluster_socket:read(Socket, ?WITHIN),
                  {ok, {{127, 0, 0, 1}, _}} = tessera_cluster_socket:peername(Socket),
                  {ok, {{127, 0, 0, 1}, _}} = tessera_cluster_socket:sockname(Socket),
                  ok = tessera_cluster_socket:authenticated(Socket),
                  Echoed = [begin
                                ok = tessera_cluster_socket:write(Socket, binary:copy(<<7>>, Size)),
                                ok = tessera_cluster_socket:next(Socket),
                                event(Socket)
                            end || Size <- lists:droplast(Sizes)],
                  ?assertEqual([{frame, <<(binary:copy(<<7>>, Size))/binary, "!">>} || Size <- lists:droplast(Sizes)], Echoed),
                  ok = tessera_cluster_socket:write(Socket, binary:copy(<<7>>, lists:last(Sizes))),
                  ok = tessera_cluster_socket:next(Socket),
                  Oversized = event(Socket),
                  ok = tessera_cluster_socket:close(Socket),
                  Oversized
          end,
    ?assertEqual({{error, closed}, {error, emsgsize}}, both(secured(server, Identity, Serve), secured(client, Identity, Ask))),
    Write = fun(Socket) -> tessera_cluster_socket:write(Socket, binary:copy(<<7>>, 4097)), tessera_cluster_socket:read(Socket, ?WITHIN) end,
    ?assertMatch({{error, emsgsize}, {error, closed}},
                 both(secured(server, Identity, fun(Socket) ->
                                                        Read = tessera_cluster_socket:read(Socket, ?WITHIN),
                                                        ok = tessera_cluster_socket:close(Socket),
                                                        Read
                                                end), secured(client, Identity, Write))).

streams_test_() ->
    {timeout, 120, in_folder(fun(Folder) -> [streams(Identity) || Identity <- [none, element(1, identity(Folder, "own"))]] end)}.

%% A reader that is asked for a stream gets all frames in their order and then the end; while it takes none, the VM holds only some for it.
streams(Identity) ->
    Frames = [<<I:32>> || I <- lists:seq(1, 300)],
    Write = fun(Socket) ->
                    _ = [ok = tessera_cluster_socket:write(Socket, Frame) || Frame <- Frames],
                    ok = tessera_cluster_socket:close(Socket)
            end,
    Read = fun({_, Inner} = Socket) ->
                   ok = tessera_cluster_socket:stream(Socket),
                   receive Passive when element(1, Passive) =:= tcp_passive; element(1, Passive) =:= ssl_passive -> self() ! Passive end,
                   {messages, Waiting} = process_info(self(), messages),
                   {length([Message || Message <- Waiting, element(2, Message) =:= Inner]), events(Socket)}
           end,
    {ok, {Waited, Events}} = both(secured(server, Identity, Write), secured(client, Identity, Read)),
    ?assert(Waited < 100),
    ?assertEqual([{frame, Frame} || Frame <- Frames] ++ [closed], Events).

events(Socket) ->
    case event(Socket) of
        none -> events(Socket);
        {frame, _} = Frame -> [Frame | events(Socket)];
        Last -> [Last]
    end.

event({_, Inner} = Socket) ->
    receive Message when element(2, Message) =:= Inner -> tessera_cluster_socket:event(Message, Socket)
    after ?WITHIN -> error(no_event)
    end.

%% Who has not the certificate and its key is refused, on either side; nothing is in the log.
wrong_sides_test_() -> {timeout, 120, in_folder(fun wrong_sides/1)}.

wrong_sides(Folder) ->
    {Own, Certificate, PrivateKey} = identity(Folder, "own"),
    {Other, OtherCertificate, OtherKey} = identity(Folder, "other"),
    Read = fun(Socket) -> tessera_cluster_socket:read(Socket, ?WITHIN) end,
    Server = secured(server, Own, fun(Socket) -> tessera_cluster_socket:write(Socket, <<"secret">>), Read(Socket) end),
    Client = fun(Options) ->
                     fun({tcp, Socket}) ->
                             case ssl:connect(Socket, [{log_level, none}, {verify, verify_none}, {server_name_indication, disable} | Options], ?WITHIN) of
                                 {ok, Secured} -> Read({tls, Secured});
                                 {error, _} -> refused
                             end
                     end
             end,
    Key = fun(Bytes) -> {key, {'ECPrivateKey', Bytes}} end,
    Strangers = [{"another identity", secured(client, Other, Read)},
                 {"no certificate", Client([{versions, ['tlsv1.3']}])},
                 {"another certificate", Client([{versions, ['tlsv1.3']}, {cert, OtherCertificate}, Key(OtherKey)])},
                 {"the certificate without its key", Client([{versions, ['tlsv1.3']}, {cert, Certificate}, Key(OtherKey)])},
                 {"the certificate in a chain", Client([{versions, ['tlsv1.3']}, {cert, [OtherCertificate, Certificate]}, Key(OtherKey)])},
                 {"an older version", Client([{versions, ['tlsv1.2']}, {cert, Certificate}, Key(PrivateKey)])},
                 {"no TLS", fun({tcp, Raw} = Socket) ->
                                    ok = inet:setopts(Raw, [{packet, raw}]),
                                    _ = tessera_cluster_socket:write(Socket, <<"tessera cluster 1\n", 0:256>>),
                                    read_all(Socket)
                            end}],
    [begin
         {Theirs, Got} = both(Server, Stranger),
         ?assertEqual({Name, refused}, {Name, Theirs}),
         ?assertNotMatch({_, {ok, _}}, {Name, Got})
     end || {Name, Stranger} <- Strangers],
    Impostor = fun(Options) ->
                       fun({tcp, Socket}) ->
                               case ssl:handshake(Socket, [{log_level, none}, {versions, ['tlsv1.3']} | Options], ?WITHIN) of
                                   {ok, Secured} -> Read({tls, Secured});
                                   {error, _} -> refused
                               end
                       end
               end,
    [?assertMatch({_, _, refused}, {Name, Theirs, Got})
     || {Name, Options} <- [{"another certificate", [{cert, OtherCertificate}, Key(OtherKey)]},
                            {"the certificate without its key", [{cert, Certificate}, Key(OtherKey)]},
                            {"the certificate in a chain", [{cert, [OtherCertificate, Certificate]}, Key(OtherKey)]}],
        {Theirs, Got} <- [both(Impostor(Options), secured(client, Own, Read))]],
    ?assertMatch({{ok, <<"plain">>}, {ok, <<"secret">>}},
                 both(Server, secured(client, Own, fun(Socket) -> ok = tessera_cluster_socket:write(Socket, <<"plain">>), Read(Socket) end))).

%% All that comes until the end: an alert, in plain.
read_all(Socket) ->
    case tessera_cluster_socket:read(Socket, ?WITHIN) of
        {ok, Bytes} ->
            ?assertEqual(nomatch, binary:match(Bytes, <<"secret">>)),
            read_all(Socket);
        {error, _} = End -> End
    end.

%% ---- clusters

cluster_test_() ->
    [{lists:concat([Name, " by ", case Launcher of none -> "itself"; _ -> Launcher end]), {timeout, 200, fun() -> Test(Launcher) end}}
     || Launcher <- launchers(), {Name, Test} <- [{"calls", fun calls/1}, {"killed rank", fun killed/1}, {"stopped rank", fun stopped/1}]].

%% Calls of an encrypted cluster have the same results, to the bit, as of an unencrypted one.
calls(Launcher) ->
    [Results, Results] = [begin
                              {Cluster, Pids} = started(Launcher, #{ranks => 3, threads => 1, tls => Tls, max_message => 1 bsl 25}),
                              ?assertMatch(#{tls := Tls}, tessera_cluster:info(Cluster)),
                              Given = [large(Cluster), sharded(Launcher, Cluster)],
                              ?assertMatch(#{restarts := 0}, tessera_cluster:info(Cluster)),
                              stop(Cluster, Pids),
                              Given
                          end || Tls <- [false, true]].

%% Many frames at once, both ways.
large(Cluster) ->
    Bytes = binary:copy(<<"0123456789abcdef">>, 1 bsl 19),
    Args = [{Rank, Bytes, tessera:divide(tessera:iota({1000003}), float(Rank))} || Rank <- [1, 2, 3]],
    [begin
         ?assertEqual(Bytes, Echo),
         {N, tessera:to_binary(X)}
     end || {N, Echo, X} <- tessera_cluster:map(Cluster, fun(_, {N, Sent, X}) -> {N, Sent, tessera:tanh(X)} end, Args)].

sharded(none, _) -> none;
sharded(_, Cluster) ->
    F = tessera:shard_jit(fun(X, W) -> tessera:sum(tessera:tanh(tessera:dot(X, W))) end, #{shape => {3}},
                          #{client => Cluster, input_shardings => [#{0 => [0]}, #{}]}),
    W = tessera:reshape(tessera:divide(tessera:iota({3500}), 999.0), {50, 70}),
    [tessera:to_binary(Y) || Y <- F([[tessera:reshape(tessera:divide(tessera:iota({2000}), By), {40, 50}), W] || By <- [77.0, 55.0, 33.0]])].

killed(Launcher) ->
    {Cluster, [_, Second] = Pids} = started(Launcher, #{tls => true}),
    {Caller, Monitor} = busy(Cluster),
    signal("KILL", Second),
    receive {'DOWN', Monitor, process, Caller, {{unavailable, Text}, _}} ->
            ?assertMatch({match, _}, re:run(Text, "^rank 1 on [^ ]+: its connection was closed"))
    end,
    ?assertEqual([ok, ok], tessera_cluster:call(Cluster, noop)),
    gone(Pids),
    ?assertMatch(#{restarts := 1}, tessera_cluster:info(Cluster)),
    stop(Cluster, pids(Cluster)).

%% It takes nothing while much is on its way to it.
stopped(Launcher) ->
    ok = tessera_cluster_tls:available(),
    Before = connections(),
    {Cluster, _} = started(Launcher, #{tls => true, deadline => 3000, restarts => {10, 600}}),
    Pids = stopped(Cluster, binary:copy(<<7>>, 1 bsl 25), 10),
    ?assertEqual([ok, ok], tessera_cluster:call(Cluster, noop)),
    gone(Pids),
    stop(Cluster, pids(Cluster)),
    %% The processes of ssl that wrote to the lost rank have ended.
    until(fun() -> connections() -- Before =:= [] end).

%% The pids of all ranks. One rank is stopped. On a busy machine the stopped rank may be lost before this call begins, and the call reaches new ranks.
stopped(Cluster, Bytes, Left) when Left > 0 ->
    [First, _] = Pids = pids(Cluster),
    signal("STOP", First),
    try tessera_cluster:map(Cluster, fun(_, Sent) -> byte_size(Sent) end, [Bytes, Bytes]) of
        [_, _] -> stopped(Cluster, Bytes, Left - 1)
    catch error:{unavailable, Text} ->
            ?assertMatch({match, _}, re:run(Text, "^rank 0 on [^ ]+: (nothing was heard of it|it took nothing) for 3000 ms")),
            Pids
    end.

%% Processes of ssl, one for each connection.
connections() -> [Pid || {_, Pid, _, _} <- supervisor:which_children(tls_connection_sup)].

%% ---- strangers

strangers_test_() -> {timeout, 120, in_folder(fun strangers/1)}.

%% Each is refused, counted and logged once; the start is not disturbed.
strangers(Folder) ->
    ok = tessera_cluster_tls:available(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}, level => warning}),
    try
        Waits = fake(Folder, "waits", ["echo \"$@\" >", Folder, "/args.new && mv ", Folder, "/args.new ", Folder, "/args\n",
                                       "while [ ! -e ", Folder, "/go ]; do sleep 0.05; done\n", ranks(2, "")]),
        Self = self(),
        Starter = spawn_link(fun() ->
                                     {Cluster, Pids} = started(Waits, #{directory => Folder, tls => true}),
                                     Self ! {self(), tessera_cluster:call(Cluster, noop)},
                                     stop(Cluster, Pids)
                             end),
        {Port, KeyFile} = listening(Folder),
        {ok, {Key, Identity}} = tessera_cluster_tls:read(KeyFile),
        {Other, _, _} = identity(Folder, "other"),
        Hello = fun(With) ->
                        fun(Socket) ->
                                {ok, Greeting} = tessera_cluster_socket:read(Socket, ?WITHIN),
                                {ok, Nonce} = tessera_cluster_wire:read_greeting(Greeting),
                                tessera_cluster_socket:write(Socket, tessera_cluster_wire:hello(With, Nonce, <<0:256>>, #{rank => 0}))
                        end
                end,
        Ticket = tessera_cluster_wire:ticket(Key),
        [stranger(Port, First, With, Then)
         || {First, With, Then} <- [{<<>>, none, fun(_) -> ok end},                                                      % a port scan
                             {<<>>, none, fun({tcp, Raw}) -> gen_tcp:send(Raw, <<"GET / HTTP/1.0\r\n\r\n">>) end},
                             {<<>>, Identity, fun(_) -> ok end},
                             {Ticket, none, fun(Socket) -> tessera_cluster_socket:write(Socket, tessera_cluster_wire:hello(Key, <<0:256>>, <<0:256>>, #{})) end},
                             {Ticket, Other, fun(_) -> ok end},
                             {Ticket, Identity, Hello(tessera_cluster_wire:key())},                                         % and not the key of the proofs
                             {Ticket, Identity, fun(Socket) -> tessera_cluster_socket:write(Socket, <<0:40000>>) end}]],
        Texts = [receive {logged, Text} -> Text after ?WITHIN -> error(not_logged) end || _ <- lists:seq(1, 7)],
        [?assertMatch({match, _}, re:run(Text, "^tessera_cluster: refused a connection from {ok,{{127,0,0,1},[0-9]+}}: ")) || Text <- Texts],
        ?assertEqual(2, length([Text || Text <- Texts, string:find(Text, "its TLS handshake failed") =/= nomatch])),
        ok = file:write_file(Folder ++ "/go", <<>>),
        receive {Starter, Results} -> ?assertEqual([ok, ok], Results) after ?WITHIN -> error(no_start) end,
        receive {logged, More} -> error({logged, More}) after 0 -> ok end,
        ?assertEqual({error, enoent}, file:read_file_info(filename:dirname(KeyFile)))
    after ok = logger:remove_handler(?MODULE)
    end.

%% As a handler of the log.
log(#{msg := {Format, Values}}, #{config := #{to := To}}) when is_list(Values) ->
    To ! {logged, unicode:characters_to_list(io_lib:format(Format, Values))},
    ok;
log(_, _) -> ok.

stranger(Port, First, Identity, Then) ->
    {ok, Socket} = tessera_cluster_socket:connect({127, 0, 0, 1}, Port, ?WITHIN),
    _ = [tessera_cluster_socket:write(Socket, First) || First =/= <<>>],
    case tessera_cluster_socket:secure(Socket, client, Identity, ?WITHIN) of
        {ok, Secured} ->
            _ = Then(Secured),
            _ = [gen_tcp:shutdown(Raw, write) || {tcp, Raw} <- [Secured]],
            ?assertMatch({error, _}, ended(Secured)),
            ok = tessera_cluster_socket:close(Secured);
        {error, _} -> ok
    end.

ended(Socket) ->
    case tessera_cluster_socket:read(Socket, ?WITHIN) of
        {ok, _} -> ended(Socket);
        Error -> Error
    end.

%% ---- an OTP without ssl

without_ssl_test_() -> {timeout, 120, fun without_ssl/0}.

%% On this node, in a VM of its own; and on a rank.
without_ssl() ->
    Said = os:cmd(["erl -noshell -noinput ", tessera_test:shell_paths(), " -eval 'true = code:del_path(ssl), {ok, _} = application:ensure_all_started(tessera), "
                   "{error, {unavailable, Text}} = tessera_cluster:start_link(#{ranks => 1, mpirun => none, tls => true}), "
                   "io:put_chars(Text), halt().'"]),
    ?assertEqual("encrypted connections need Erlang's applications ssl and public_key, of Debian's packages erlang-ssl and erlang-public-key; "
                 "not here: erlang-ssl; set the option tls to false where the network is trusted", Said),
    {ok, _} = application:ensure_all_started(tessera),
    {error, {unavailable, Text}} = tessera_cluster:start_link(#{ranks => 1, mpirun => none, tls => true,
                                                                env => [{"ERL_AFLAGS", "-eval code:del_path(ssl)"}]}),
    ?assertMatch({match, _}, re:run(Text, "^rank 0 on [^ ]+ ended with status 1 before all ranks were ready: .*"
                                    "rank 0: encrypted connections need Erlang's applications ssl .* not here: erlang-ssl")).

default_test() ->
    Tls = fun(Options) ->
                  {ok, #{tls := Value}} = tessera_cluster_options:check(Options#{ranks => 2}),
                  Value
          end,
    Hosts = #{hosts => ["a"], listen => {10, 0, 0, 1}},
    ?assertEqual([false, true, true, false], [Tls(#{}), Tls(#{tls => true}), Tls(Hosts), Tls(Hosts#{tls => false})]),
    ?assertMatch({error, {invalid_argument, <<"tessera_cluster: the option tls: expected true or false, got yes">>}},
                 tessera_cluster_options:check(#{ranks => 2, tls => yes})).
