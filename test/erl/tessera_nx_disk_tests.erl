%% Files of the option `cache: path'. A file that is damaged, of another layout or of changed code is made anew, and other kinds of
%% files at its path do no harm. This module makes expressions as maps, as Nx does.
-module(tessera_nx_disk_tests).
-include_lib("eunit/include/eunit.hrl").
-export([log/2, twice/2]).

%% ---- functions

tensor(Type, Shape, Data) ->
    #{'__struct__' => 'Elixir.Nx.Tensor', data => Data, type => Type, shape => Shape,
      names => lists:duplicate(tuple_size(Shape), nil), vectorized_axes => [], 'donatable?' => false}.

node(Op, Args) ->
    tensor({f, 32}, {4}, #{'__struct__' => 'Elixir.Nx.Defn.Expr', id => make_ref(), op => Op, args => Args, context => root}).

floats(Numbers) ->
    tensor({f, 32}, {length(Numbers)}, #{'__struct__' => 'Elixir.Nx.BinaryBackend',
                                         state => << <<X:32/float-native>> || X <- Numbers >>}).

%% A function that holds a tensor.
adding(Held) -> fun(X) -> node(add, [X, node(tensor, [Held])]) end.

%% A function that calls F on its argument.
calling(F) -> fun(X) -> node(add, [node(io_call, [X, {fn, F}, X, make_ref()]), X]) end.

twice(Op, X) -> node(Op, [X, X]).

call(F, Path) -> call(F, Path, []).

call(F, Path, Options) ->
    [#{data := Data}] = tessera_nx_compiler:jit(F, [node(parameter, [0])], fun([X]) -> F(X) end,
                                                   [[fun() -> floats([1, 2, 3, 4]) end]],
                                                   [{hooks, #{}}, {cache, list_to_binary(Path)} | Options]),
    [X || <<X:32/float-native>> <= tessera_nx_buffer:read(maps:get(buffer, Data))].

%% ---- the folder and the log

%% Calls F with the path of a file that does not exist.
with_path(F) ->
    {ok, _} = application:ensure_all_started(tessera),
    Folder = filename:join("/tmp", lists:concat(["tessera-disk-", os:getpid(), "-", erlang:unique_integer([positive])])),
    ok = file:make_dir(Folder),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => warning}),
    try F(filename:join(Folder, "f.cache"))
    after
        ok = logger:remove_handler(?MODULE),
        ok = file:del_dir_r(Folder)
    end.

log(#{msg := {_, [Text]}}, #{config := Pid}) -> Pid ! {log, unicode:characters_to_list(Text)};
log(_, _) -> ok.

told() ->
    receive {log, Text} -> [Text | told()]
    after 0 -> []
    end.

%% The log of a call whose result is right.
logs(Call, Expected) ->
    _ = told(),
    ?assertEqual(Expected, Call()),
    told().

-define(assertDiscarded(Why, Told),
        (fun() ->
                 [DiscardedText] = Told,
                 ?assertMatch("Discarding Tessera disk cache at " ++ _, DiscardedText),
                 ?assertNotEqual({nomatch, DiscardedText}, {string:find(DiscardedText, Why), DiscardedText})
         end)()).

%% The file's header is followed by its contents.
contents(Path) ->
    {ok, <<"TESSERA", _, Layout:16/binary, _/binary>>} = file:read_file(Path),
    {Layout, tessera_nif:file_read(list_to_binary(Path), Layout)}.

%% ---- damage

%% Each damaged file is discarded and replaced: the next call finds a good one.
damage_test_() -> {timeout, 60, fun() -> with_path(fun damage/1) end}.

damage(Path) ->
    F = adding(floats([10, 20, 30, 40])),
    Call = fun() -> call(F, Path) end,
    Expected = [11.0, 22.0, 33.0, 44.0],
    ?assertEqual([], logs(Call, Expected)),
    {ok, Whole} = file:read_file(Path),
    ?assertEqual([], logs(Call, Expected)),
    [begin
         ok = file:write_file(Path, Damaged),
         ?assertMatch(["Discarding " ++ _], logs(Call, Expected)),
         ?assertEqual({ok, Whole}, file:read_file(Path))
     end || Damaged <- tessera_test:shared(flipped(Whole) ++ cut(Whole) ++ swapped(Whole))],
    ?assertEqual([], logs(Call, Expected)).

%% One bit of each byte of the header and of every third later byte; test_file.c has all.
flipped(Whole) ->
    [begin
         <<Before:At/binary, Byte, After/binary>> = Whole,
         <<Before/binary, (Byte bxor (1 bsl (At rem 8))), After/binary>>
     end || At <- lists:seq(0, 47) ++ lists:seq(48, byte_size(Whole) - 1, 3)].

cut(Whole) ->
    [<<>>, <<Whole/binary, 0>>, <<Whole/binary, Whole/binary>>]
        ++ [binary:part(Whole, 0, Size) || Size <- lists:seq(1, byte_size(Whole) - 1, 91)].

%% Two of its words that differ.
swapped(Whole) ->
    Words = byte_size(Whole) div 8,
    [<<A/binary, Y/binary, B/binary, X/binary, C/binary>>
     || I <- lists:seq(0, Words - 2, 5), J <- [(I * 7 + 3) rem Words], J > I,
        <<A:(I * 8)/binary, X:8/binary, Rest/binary>> <- [Whole],
        <<B:((J - I - 1) * 8)/binary, Y:8/binary, C/binary>> <- [Rest], X =/= Y].

%% What cannot be read in a file whose checksum is right.
wrong_contents_test() ->
    with_path(fun(Path) ->
        F = adding(floats([10, 20, 30, 40])),
        Call = fun() -> call(F, Path) end,
        Expected = [11.0, 22.0, 33.0, 44.0],
        _ = Call(),
        {Layout, <<Size:32, Head:Size/binary, Body/binary>>} = contents(Path),
        {Keys, Value} = binary_to_term(Body),
        Put = fun(Contents) -> ok = tessera_nif:file_write(list_to_binary(Path), Layout, Contents) end,
        Unknown = <<"no_atom_of_this_name_", (integer_to_binary(erlang:unique_integer([positive])))/binary>>,
        Atom = <<131, 119, (byte_size(Unknown)), Unknown/binary>>,
        Bomb = term_to_binary(binary:copy(<<0>>, 100000000), [{compressed, 9}]),
        Bare = term_to_binary({[], []}),
        With = fun(H, B) -> <<(byte_size(H)):32, H/binary, B/binary>> end,
        [begin
             Put(Contents),
             ok = tessera:clear_cache(),
             ?assertDiscarded(Why, logs(Call, Expected)),
             ?assertEqual([], logs(Call, Expected))
         end || {Why, Contents} <- [{"it is damaged", Contents}
                                    || Contents <- [<<>>, <<0>>, <<-1:32>>, With(Head, <<>>), With(Bare, <<131, 255>>),
                                                    With(Bare, Atom), With(Atom, Body), With(Bare, Bomb), With(Bomb, Body),
                                                    With(term_to_binary({x, []}), Body), With(term_to_binary({[a], []}), Body),
                                                    With(term_to_binary({[], x}), Body), With(term_to_binary({[], [x]}), Body),
                                                    With(term_to_binary({[<<"x">> || _ <- lists:seq(1, 20001)], []}), Body),
                                                    With(Head, term_to_binary(Value)), With(Head, term_to_binary({x, Value}))]]
                           ++ [{"it cannot be used", With(Head, term_to_binary({Keys, Other}))}
                               || Other <- [x, setelement(2, Value, x), changed(Value)]]],
        ?assertError(badarg, binary_to_existing_atom(Unknown)),
        %% a header of another layout
        ok = tessera_nif:file_write(list_to_binary(Path), <<0:128>>, <<>>),
        ?assertDiscarded("it is for another Tessera version", logs(Call, Expected))
    end).

%% The packed program in a term begins with a mark; the core refuses another one.
changed(<<0, "TSXPR", Rest/binary>>) -> <<0, "TSXPR?", Rest/binary>>;
changed(Tuple) when is_tuple(Tuple) -> list_to_tuple([changed(Item) || Item <- tuple_to_list(Tuple)]);
changed(Other) -> Other.

%% ---- code

%% Loads a module: its f/1 applies Op, and its fun/0 returns a function that sends Op to the process.
load(Op) ->
    Text = "-module(tessera_nx_disk_loaded). -export([f/1, back/1]). f(X) -> tessera_nx_disk_tests:twice(" ++ atom_to_list(Op)
        ++ ", X). back(Pid) -> fun(_) -> Pid ! " ++ atom_to_list(Op) ++ " end.",
    {ok, Module, Code} = compile:forms(forms(Text)),
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, "", Code),
    Module.

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {Forms, []} = lists:foldl(fun({dot, _} = Dot, {Done, Form}) ->
                                      {ok, Parsed} = erl_parse:parse_form(lists:reverse([Dot | Form])),
                                      {[Parsed | Done], []};
                                 (Token, {Done, Form}) -> {Done, [Token | Form]}
                              end, {[], []}, Tokens),
    lists:reverse(Forms).

%% The program of a function is not kept over another version of its module.
changed_function_test() ->
    with_path(fun(Path) ->
        Module = load(add),
        Call = fun() -> call(fun Module:f/1, Path) end,
        ?assertEqual([], logs(Call, [2.0, 4.0, 6.0, 8.0])),
        _ = load(multiply),
        ?assertMatch(["Tessera disk cache does not match" ++ _], logs(Call, [1.0, 4.0, 9.0, 16.0])),
        ?assertEqual([], logs(Call, [1.0, 4.0, 9.0, 16.0]))
    end).

%% A callback of another version of its module is not called, nor one of a module that is gone. The caller is of another
%% module, whose version stays.
changed_callback_test() ->
    with_path(fun(Path) ->
        Module = load(add),
        F = fun(X) -> (calling(Module:back(whereis(?MODULE))))(X) end,
        true = register(?MODULE, self()),
        Answers = fun(Told) ->
                          Told = logs(fun() -> call(F, Path) end, [2.0, 4.0, 6.0, 8.0]),
                          receive Op when is_atom(Op) -> Op after 0 -> none end
                  end,
        try
            ?assertEqual(add, Answers([])),
            ?assertEqual(add, Answers([])),
            ok = tessera:clear_cache(),
            _ = load(multiply),
            _ = code:purge(Module),
            Told = logs(fun() -> call(F, Path) end, [2.0, 4.0, 6.0, 8.0]),
            ?assertDiscarded("tessera_nx_disk_loaded is another one or gone", Told),
            ?assertEqual(multiply, receive Op when is_atom(Op) -> Op after 0 -> none end),
            ?assertEqual(multiply, Answers([])),
            true = code:delete(Module),
            _ = code:purge(Module),
            ok = tessera:clear_cache(),
            _ = told(),
            ?assertError(undef, call(F, Path)),
            ?assertDiscarded("tessera_nx_disk_loaded is another one or gone", told())
        after unregister(?MODULE)
        end
    end).

%% ---- other things at the file's path

places_test_() -> {timeout, 30, fun() -> with_path(fun places/1) end}.

places(Path) ->
    Call = fun() -> call(adding(floats([10, 20, 30, 40])), Path) end,
    Expected = [11.0, 22.0, 33.0, 44.0],
    Victim = Path ++ ".victim",
    ok = file:write_file(Victim, "mine"),
    [begin
         _ = file:delete(Path),
         _ = Put(),
         ?assertDiscarded(Why, logs(Call, Expected)),
         ?assertMatch({ok, <<"TESSERA", _/binary>>}, file:read_file(Path)),
         ?assertEqual([], logs(Call, Expected))
     end || {Why, Put} <- [{"it is a symbolic link", fun() -> ok = file:make_symlink(Victim, Path) end},
                           {"it is a symbolic link", fun() -> ok = file:make_symlink("/dev/full", Path) end},
                           {"it is no regular file", fun() -> "" = os:cmd("mkfifo " ++ Path) end},
                           {"other users may write to it", fun() -> _ = Call(), ok = file:change_mode(Path, 8#666) end}]],
    ?assertEqual({ok, <<"mine">>}, file:read_file(Victim)),
    ?assertEqual({ok, ["f.cache", "f.cache.victim"]}, sorted(file:list_dir(filename:dirname(Path)))),
    ok = file:delete(Path),
    ok = file:make_dir(Path),
    ?assertError(#{message := <<"could not write the Tessera disk cache", _/binary>>}, Call()),
    ?assertError(#{message := <<"could not write the Tessera disk cache", _/binary>>}, call(fun(X) -> X end, "/proc/none/x")).

sorted({ok, Names}) -> {ok, lists:sort(Names)}.

nif_arguments_test() ->
    {ok, _} = application:ensure_all_started(tessera),
    [?assertMatch({error, #{code := invalid_argument}}, tessera_nif:file_read(Path, Layout))
     || {Path, Layout} <- [{<<"/tmp/a", 0, "b">>, <<0:128>>}, {<<>>, <<0:128>>}, {x, <<0:128>>}, {<<"/tmp/x">>, <<0:120>>},
                           {<<"/tmp/x">>, x}, {binary:copy(<<"x">>, 5000), <<0:128>>}]],
    ?assertMatch({error, #{code := invalid_argument}}, tessera_nif:file_write(<<"/tmp/x">>, <<0:128>>, x)),
    ?assertEqual(undefined, tessera_nif:file_read(<<"/tmp/no such file">>, <<0:128>>)).
