%% @private The options of a cluster: checked, with defaults.
-module(tessera_cluster_options).
-export([check/1, check_crypto/0, expected/1, printed/1]).

-define(DEFAULTS, #{hosts => [], devices => 1, threads => undefined, mpirun => "mpirun", mca => [], env => [],
                    memory_limit => undefined, deadline => 10000, start_timeout => 60000, listen => {127, 0, 0, 1},
                    max_message => 1 bsl 32, tree => {64, 32}, restarts => {3, 60}, name => undefined, directory => undefined,
                    tls => undefined}).

-spec check(map() | [{atom(), term()}]) -> {ok, map()} | {error, {atom(), binary()}}.
check(Options) when is_list(Options) ->
    try maps:from_list(Options) of
        Map -> check(Map)
    catch error:badarg -> refused("expected a map or a list of pairs, got ~0tP", [Options, 20])
    end;
check(Options) when is_map(Options) ->
    All = maps:merge(?DEFAULTS, Options),
    %% an unknown option may be the misspelt name of a missing one
    case {[Name || Name <- lists:sort(maps:keys(Options)), expected(Name) =:= unknown], Options} of
        {[Unknown | _], _} -> refused("unknown option ~0tp, the options are ~0tp", [Unknown, lists:sort([ranks | maps:keys(?DEFAULTS)])]);
        {[], #{ranks := _}} ->
            case [Pair || {Name, Value} = Pair <- lists:sort(maps:to_list(All)), is_wrong(Name, Value)] of
                [] -> checked(All, maps:is_key(listen, Options));
                [{Name, Value} | _] -> wrong(Name, Value)
            end;
        {[], _} -> refused("the option ranks is missing", [])
    end;
check(Other) -> refused("expected a map or a list of pairs, got ~0tP", [Other, 20]).

checked(#{hosts := [_ | _], listen := Address} = All, IsGiven) ->
    case {is_loopback(Address), IsGiven, All} of
        {true, true, _} ->
            refused("the option listen: ~s is an address of this host alone, and ranks on other hosts (the option hosts) cannot reach it: it has to be an "
                    "address of this host on a network that they share", [inet:ntoa(Address)]);
        {true, false, _} -> refused("the option hosts needs listen, an address of this host that the ranks on other hosts can reach", []);
        {false, _, #{mpirun := none}} -> refused("the option hosts needs mpirun, which is none", []);
        {false, _, _} -> checked(All)
    end;
checked(All, _) -> checked(All).

is_loopback({127, _, _, _}) -> true;
is_loopback({0, 0, 0, 0, 0, 16#FFFF, High, _}) -> High bsr 8 =:= 127;   % the same as an address of IPv6
is_loopback(Address) -> Address =:= {0, 0, 0, 0, 0, 0, 0, 1}.

checked(#{hosts := Hosts, tls := undefined} = All) -> checked(All#{tls := Hosts =/= []});   % loopback needs none
checked(#{ranks := Ranks, threads := undefined} = All) -> checked(All#{threads := default_threads(Ranks, All)});
checked(All) ->
    case check_crypto() of
        ok -> {ok, All};
        Error -> Error
    end.

%% The application may be a package of its own. Each rank looks for its own.
-spec check_crypto() -> ok | {error, {failed_precondition, binary()}}.
check_crypto() ->
    case code:ensure_loaded(crypto) of
        {module, _} -> ok;
        {error, Reason} ->
            Format = "tessera_cluster: a cluster needs the application crypto of Erlang/OTP, which this node cannot load: ~0p. In Debian it is the package "
                     "erlang-crypto",
            {error, {failed_precondition, unicode:characters_to_binary(io_lib:format(Format, [Reason]))}}
    end.

%% The CPUs of this host shared out, as if the hosts were alike.
default_threads(Ranks, #{hosts := Hosts}) ->
    OnHost = (Ranks + max(1, length(Hosts)) - 1) div max(1, length(Hosts)),
    max(1, tessera_nif:cpu_count() div OnHost).

is_wrong(Name, Value) ->
    {_, Is} = expected(Name),
    not Is(Value).

wrong(Name, Value) ->
    {What, _} = expected(Name),
    refused("the option ~s: expected ~s, got ~0tP", [Name, What, Value, 20]).

refused(Format, Values) ->
    {error, {invalid_argument, unicode:characters_to_binary(io_lib:format("tessera_cluster: " ++ Format, Values))}}.

%% As they may be printed: without the values of the user's variables.
-spec printed(map()) -> map().
printed(#{env := Env} = Options) -> Options#{env := [{Name, '_'} || {Name, _} <- Env]};
printed(Options) -> Options.

%% The expected value of an option.
-spec expected(atom()) -> {string(), fun((term()) -> boolean())} | unknown.
expected(ranks) -> {"a number from 1 to 4096", fun(N) -> is_integer(N) andalso N >= 1 andalso N =< 4096 end};
expected(devices) -> {"a number from 1 to 64", fun(N) -> is_integer(N) andalso N >= 1 andalso N =< 64 end};
expected(threads) -> {"a number from 1 on", fun(N) -> N =:= undefined orelse is_integer(N) andalso N >= 1 end};
expected(memory_limit) -> {"a number of bytes", fun(N) -> N =:= undefined orelse is_integer(N) andalso N >= 1 end};
expected(max_message) -> {"a number of bytes from 65536 on", fun(N) -> is_integer(N) andalso N >= 65536 end};
expected(deadline) -> {"milliseconds from 100 on", fun(N) -> is_integer(N) andalso N >= 100 end};
expected(start_timeout) -> {"milliseconds from 100 on", fun(N) -> is_integer(N) andalso N >= 100 end};
expected(mpirun) -> {"the name or path of mpirun, or none", fun(M) -> M =:= none orelse is_text(M) end};
expected(hosts) -> {"a list of names or of {Name, Slots}", fun(L) -> is_list_of(fun is_host/1, L) end};
expected(mca) -> {"a list of {Name, Value} of texts", fun(L) -> is_list_of(fun is_pair/1, L) end};
expected(env) -> {"a list of {Name, Value} of texts, names without =", fun(L) -> is_list_of(fun is_variable/1, L) end};
expected(listen) -> {"one address as {127,0,0,1}", fun is_address/1};
expected(tree) -> {"{Direct, Radix}, numbers from 1 and from 2 on", fun is_tree/1};
expected(restarts) -> {"{Count, Seconds}", fun is_restarts/1};
expected(name) -> {"an atom other than host and nil", fun(N) -> is_atom(N) andalso N =/= host andalso N =/= nil end};
expected(directory) -> {"a path", fun(D) -> D =:= undefined orelse is_text(D) end};
expected(tls) -> {"true or false", fun(T) -> T =:= undefined orelse is_boolean(T) end};
expected(_) -> unknown.

is_restarts({Count, Seconds}) -> is_integer(Count) andalso Count >= 0 andalso is_integer(Seconds) andalso Seconds >= 1;
is_restarts(_) -> false.

is_tree({Direct, Radix}) -> is_integer(Direct) andalso Direct >= 1 andalso is_integer(Radix) andalso Radix >= 2;
is_tree(_) -> false.

is_host({Name, Slots}) -> is_text(Name) andalso is_integer(Slots) andalso Slots >= 1;
is_host(Name) -> is_text(Name).

%% Ranks cannot connect to the address for all networks.
is_address(Address) -> inet:is_ip_address(Address) andalso Address =/= {0, 0, 0, 0} andalso Address =/= {0, 0, 0, 0, 0, 0, 0, 0}.

is_variable({Name, Value}) ->
    is_text(Name) andalso lists:all(fun(C) -> C =/= $= end, unicode:characters_to_list(Name))
        andalso (Value =:= "" orelse Value =:= <<>> orelse is_text(Value));
is_variable(_) -> false.

is_pair({Name, Value}) -> is_text(Name) andalso is_text(Value);
is_pair(_) -> false.

is_list_of(Is, [Item | Rest]) -> Is(Item) andalso is_list_of(Is, Rest);
is_list_of(_, Rest) -> Rest =:= [].

%% A zero byte would end the text for the system.
is_text([_ | _] = Text) -> io_lib:char_list(Text) andalso not lists:member(0, Text);
is_text(<<_, _/binary>> = Text) -> binary:match(Text, <<0>>) =:= nomatch andalso is_list(unicode:characters_to_list(Text));
is_text(_) -> false.
