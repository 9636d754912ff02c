%% @private Compiling functions: what tessera:jit, compile, explain and to_text do.
%%
%% A program is cached by the function, with its environment, and the types of
%% the arguments. Tensors of the environment count by type and shape only: they
%% are passed as hidden arguments, so that a new value needs no new program.
-module(tessera_jit).
-include("tessera.hrl").
-export([with_arity/2, in_program/2, jit/2, compile/3, explain/2, info/2, text/4, run_text/2]).

-define(MAX_ARITY, 12).
-define(NO_OPTIONS, #{threads => 0, donate => [], fuse => true, simplify => true, device => undefined, precision => undefined}).

%% A function as jit/2 returns it; immutable.
-record(jit, {function    :: function(),
              id          :: binary(),             % digest of code, environment and options
              environment :: [tessera_type:tensor()],   % the distinct tensors of the environment
              versions    :: tessera_digest:versions(),   % of modules whose functions it finds by name
              threads     :: non_neg_integer(),
              donate      :: [non_neg_integer()],
              compile     :: [no_fusion | no_simplify],
              device      :: tessera_type:device() | undefined,
              precision   :: atom()}).             % of products; undefined: the client's

%% A cache entry.
-record(program, {executable :: tessera_nif:executable(),
                  result     :: tessera_tree:signature(),
                  hidden     :: [pos_integer()],   % which tensors of the environment follow the arguments
                  donated    :: non_neg_integer()}).

%% ---- jit

-spec jit(function(), map()) -> function().
jit(F, Options) ->
    Jit = new(jit, F, Options),
    {arity, Arity} = erlang:fun_info(F, arity),
    with_arity(Arity, fun(Args) -> call(Jit, Args) end).

%% F of the argument: in the program that is traced, else as a program of its own.
-spec in_program(fun((Argument) -> Result), Argument) -> Result.
in_program(F, Argument) ->
    case tessera_trace:is_tracing() of
        true -> F(Argument);
        false -> (jit(F, #{}))(Argument)
    end.

%% A function of the given arity that passes its arguments as a list.
with_arity(0, C) -> fun() -> C([]) end;
with_arity(1, C) -> fun(A1) -> C([A1]) end;
with_arity(2, C) -> fun(A1, A2) -> C([A1, A2]) end;
with_arity(3, C) -> fun(A1, A2, A3) -> C([A1, A2, A3]) end;
with_arity(4, C) -> fun(A1, A2, A3, A4) -> C([A1, A2, A3, A4]) end;
with_arity(5, C) -> fun(A1, A2, A3, A4, A5) -> C([A1, A2, A3, A4, A5]) end;
with_arity(6, C) -> fun(A1, A2, A3, A4, A5, A6) -> C([A1, A2, A3, A4, A5, A6]) end;
with_arity(7, C) -> fun(A1, A2, A3, A4, A5, A6, A7) -> C([A1, A2, A3, A4, A5, A6, A7]) end;
with_arity(8, C) -> fun(A1, A2, A3, A4, A5, A6, A7, A8) -> C([A1, A2, A3, A4, A5, A6, A7, A8]) end;
with_arity(9, C) -> fun(A1, A2, A3, A4, A5, A6, A7, A8, A9) -> C([A1, A2, A3, A4, A5, A6, A7, A8, A9]) end;
with_arity(10, C) -> fun(A1, A2, A3, A4, A5, A6, A7, A8, A9, A10) -> C([A1, A2, A3, A4, A5, A6, A7, A8, A9, A10]) end;
with_arity(11, C) ->
    fun(A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11) -> C([A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11]) end;
with_arity(?MAX_ARITY, C) ->
    fun(A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12) ->
            C([A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12])
    end;
with_arity(Arity, _) ->
    tessera_error:raise(jit, [Arity], invalid_argument, "jit: a function of ~b arguments, expected at most ~b",
                        [Arity, ?MAX_ARITY]).

new(Name, F, Options) when is_function(F), is_map(Options) ->
    case maps:keys(maps:without(maps:keys(?NO_OPTIONS), Options)) of
        [] -> ok;
        Unknown -> bad_options(Name, F, Options, "unknown options ~0p, expected some of ~0p",
                               [Unknown, lists:sort(maps:keys(?NO_OPTIONS))])
    end,
    #{threads := Threads, donate := Donate, fuse := Fuse, simplify := Simplify, device := Device, precision := Precision} =
        maps:merge(?NO_OPTIONS, Options),
    is_integer(Threads) andalso Threads >= 0 orelse bad_options(Name, F, Options, "threads is ~0p", [Threads]),
    tessera_type:is_proper(Donate) andalso lists:all(fun(I) -> is_integer(I) andalso I > 0 end, Donate) orelse
        bad_options(Name, F, Options, "donate is ~0p, expected positions of arguments from 1", [Donate]),
    is_boolean(Fuse) andalso is_boolean(Simplify) orelse
        bad_options(Name, F, Options, "fuse is ~0p and simplify is ~0p, expected true or false", [Fuse, Simplify]),
    is_device(Device) orelse
        bad_options(Name, F, Options, "device is ~0p, expected {Client, Number}", [Device]),
    tessera_client:is_precision(Precision) orelse
        bad_options(Name, F, Options, "precision is ~0p, expected default, high or highest", [Precision]),
    Compile = [no_fusion || not Fuse] ++ [no_simplify || not Simplify],
    {Digest, Environment, Versions} = tessera_error:check(Name, [F], tessera_digest:with_code(F)),
    #jit{function = F, id = erlang:md5([Digest, term_to_binary({Compile, Donate, Device, Precision})]), environment = Environment,
         versions = Versions, threads = Threads, donate = Donate, compile = Compile, device = Device, precision = Precision};
new(Name, F, Options) when is_function(F) ->
    bad_options(Name, F, Options, "expected a map of options, got ~ts", [tessera_error:show(Options)]);
new(Name, F, Options) ->
    bad_options(Name, F, Options, "expected a function, got ~ts", [tessera_error:show(F)]).

is_device(undefined) -> true;
is_device({Client, Number}) -> is_atom(Client) andalso is_integer(Number) andalso Number >= 0;
is_device(_) -> false.

bad_options(Name, F, Options, Format, Values) ->
    tessera_error:raise(Name, [F, Options], invalid_argument, "~s: " ++ Format, [Name | Values]).

%% ---- calls

-spec call(#jit{}, [term()]) -> term().
call(#jit{function = F} = Jit, Args) ->
    case tessera_trace:is_tracing() of
        true -> tessera_trace:call(jit, F, Args);
        false ->
            case run_known(Jit, Args) of
                {pressure, Result} ->
                    ok = tessera_memory:make_room(),
                    Result;
                crowded ->
                    ok = tessera_memory:make_room(),
                    run_found(Jit, Args);
                false -> run_found(Jit, Args);
                Result -> Result
            end
    end.

%% By the short way, which the thread that called the function last with arguments of these types has. It knows no containers of arguments, no donated or hidden
%% arguments, no events and no errors, and returns false for them.
run_known(#jit{donate = [], environment = [], device = undefined, id = Id, versions = Versions, threads = Threads}, Args) ->
    case tessera_events:runs_are_watched() orelse tessera_places:is_recording() of
        false -> tessera_nif:run_known(current(Id, Versions), Args, Threads);
        true -> false
    end;
run_known(_, _) -> false.

know(#jit{donate = [], environment = [], device = undefined, id = Id, versions = Versions},
     #program{result = Result, executable = Executable}, Args) ->
    case form(Result) of
        none -> ok;
        Form -> tessera_nif:known_add(current(Id, Versions), Args, Executable, Form)
    end;
know(_, _, _) -> ok.

%% What the native library makes by itself of the results.
form([_ | _]) -> leaf;
form({Kind, [_ | _] = Signatures}) when Kind =:= tuple; Kind =:= list ->
    case lists:all(fun erlang:is_list/1, Signatures) of
        true -> Kind;
        false -> none
    end;
form(_) -> none.

run_found(Jit, Args) ->
    {Signature, Leaves} = tessera_tree:flatten(Args),
    Program = program(Jit, Signature, Args),
    Result = run(Jit, placed(Jit, Program, Signature), Signature, Args, Leaves),
    ok = know(Jit, Program, Args),
    Result.

run(Jit, Program, Signature, Args, Leaves) ->
    case run(Jit, Program, Leaves) of
        stale -> tessera_cache:run_current(fun(Current) -> run(Jit, Current, Leaves) end,
                                           fun() -> program(Jit, Signature, Args) end);
        Result -> Result
    end.

program(#jit{id = Id, versions = Versions} = Jit, Signature, Args) ->
    Key = key(current(Id, Versions), tessera_tree:key(Signature)),
    case tessera_cache:find(Key) of
        {ok, Program} -> Program;
        error -> tessera_cache:make(Key, fun() -> make(Jit, Signature, Args) end, fun tessera_digest:weigh/1)
    end.

%% The fewer terms a key has, the faster it is found; no key of another module is a list.
key(Id, {list, Signatures}) -> [Id | Signatures];
key(Id, Digest) -> [Id | Digest].

%% As tessera_digest:current/2, in a third of the time where there is one module. What module_info/1 calls raises an error where the module is not loaded.
current(Id, []) -> Id;
current(Id, [{Module, Version}] = Versions) ->
    try erlang:get_module_info(Module, md5) of
        Version -> Id;
        _ -> tessera_digest:current(Id, Versions)
    catch error:badarg -> tessera_digest:current(Id, Versions)
    end;
current(Id, Versions) -> tessera_digest:current(Id, Versions).

%% The program, which a profile may have to compile again to know the lines of its ops.
placed(Jit, #program{executable = Executable} = Program, Signature) ->
    _ = tessera_places:is_recording() andalso tessera_places:later(Executable, fun() -> element(1, compiled(Jit, Signature, [])) end),
    Program.

compiled(#jit{function = F, compile = Options, device = Device, precision = Precision} = Jit, Signature, Args) ->
    {Traced, Result, Hidden} = trace(Jit, Signature),
    {tessera_error:check(jit, Args, tessera_run:compile(Traced, for(Device, Precision) ++ Options, F)), Result, Hidden}.

make(#jit{device = Device} = Jit, Signature, Args) ->
    {Compiled, Result, Hidden} = compiled(Jit, Signature, Args),
    Executable = tessera_error:check(jit, Args, on_device(Compiled, Device)),
    #program{executable = Executable, result = Result, hidden = Hidden, donated = donated(Jit, Args)}.

%% The options of the compiler for a device's client.
for({Client, _}, Precision) -> [{client, Client} | tessera_client:asked(Client, Precision)];
for(undefined, undefined) -> [];
for(undefined, Precision) -> tessera_client:asked(tessera_nif:default_client(), Precision).

on_device(Executable, undefined) -> Executable;
on_device(Executable, Device) -> tessera_nif:on_device(Executable, Device).

trace(#jit{function = F, environment = Environment}, Signature) ->
    tessera_trace:trace(fun(Params) -> tessera_trace:call(jit, F, tessera_tree:unflatten(Signature, Params)) end,
                        tessera_tree:types(Signature), Environment).

%% The leaves of donated arguments, as bits.
donated(#jit{donate = []}, _Args) -> 0;
donated(#jit{donate = Donate}, Args) ->
    {_, _, Bits} = lists:foldl(
        fun(Arg, {Position, First, Bits}) ->
                {_, Leaves} = tessera_tree:flatten(Arg),
                Count = length(Leaves),
                Own = case lists:member(Position, Donate) of
                          true -> ((1 bsl Count) - 1) bsl First;
                          false -> 0
                      end,
                {Position + 1, First + Count, Bits bor Own}
        end, {1, 0, 0}, Args),
    Bits.

run(#jit{threads = Threads, environment = Environment},
    #program{executable = Executable, result = Result, hidden = Hidden, donated = Donated}, Leaves) ->
    Args = case Hidden of
               [] -> Leaves;
               _ -> Leaves ++ [lists:nth(Index, Environment) || Index <- Hidden]
           end,
    case tessera_run:run(Executable, Args, Threads, Donated) of
        Results when is_list(Results) -> tessera_tree:unflatten(Result, Results);
        stale -> stale;
        Other ->
            Results = tessera_remote:result(Other, Args, fun(Here) -> tessera_run:run(Executable, Here, Threads, Donated) end,
                                            fun(Cause) -> tessera_error:raise(jit, Args, Cause) end),
            tessera_tree:unflatten(Result, Results)
    end.

%% ---- ahead of time

%% A function that takes arguments of these types and no others.
-spec compile(function(), [term()], map()) -> function().
compile(F, Templates, Options) ->
    Jit = new(compile, F, Options),
    {arity, Arity} = erlang:fun_info(F, arity),
    check_arguments(compile, F, Templates),
    {Signature, _} = tessera_tree:flatten(Templates),
    Program = program(Jit, Signature, Templates),
    with_arity(Arity, fun(Args) -> call_compiled(Jit, Program, Signature, Args) end).

%% A list of as many as the function takes.
check_arguments(Name, F, Args) when is_function(F) ->
    tessera_type:is_proper(Args) andalso is_function(F, length(Args)) orelse
        tessera_error:raise(Name, [F, Args], invalid_argument,
                            "~s: expected a list of ~b arguments or templates, got ~ts",
                            [Name, element(2, erlang:fun_info(F, arity)), tessera_error:show(Args)]);
check_arguments(Name, F, Args) ->
    tessera_error:raise(Name, [F, Args], invalid_argument, "~s: expected a function, got ~ts",
                        [Name, tessera_error:show(F)]).

call_compiled(#jit{function = F} = Jit, Program, Signature, Args) ->
    {Actual, Leaves} = tessera_tree:flatten(Args),
    accepts(Signature, Actual) orelse
        tessera_error:raise(compile, Args, invalid_argument, "the function was compiled for (~ts), called with (~ts)",
                            [format_signature(Signature), format_signature(Actual)]),
    case tessera_trace:is_tracing() of
        true -> tessera_trace:call(jit, F, Args);
        false ->
            run(Jit, placed(Jit, Program, Signature), Signature, Args, Leaves)
    end.

%% A number is accepted in place of a scalar.
accepts(Same, Same) -> true;
accepts([_ | {}], {number, _}) -> true;
accepts({number, _}, {number, _}) -> true;
accepts({number, Type}, [Type | {}]) -> true;
accepts({map, Keys, As}, {map, Keys, Bs}) -> accept_all(As, Bs);
accepts({Kind, As}, {Kind, Bs}) when is_list(As), is_list(Bs) -> accept_all(As, Bs);
accepts(_, _) -> false.

accept_all([A | As], [B | Bs]) -> accepts(A, B) andalso accept_all(As, Bs);
accept_all([], []) -> true;
accept_all(_, _) -> false.

%% The arguments as the caller wrote them, with types in place of tensors and numbers.
format_signature({list, Arguments}) -> format_all(Arguments, fun format_part/1).

format_part([Type | Shape]) -> tessera_type:format(Type, Shape);
format_part({number, Type}) -> tessera_type:format(Type, {});
format_part({list, Parts}) -> ["[", format_all(Parts, fun format_part/1), "]"];
format_part({tuple, Parts}) -> ["{", format_all(Parts, fun format_part/1), "}"];
format_part({map, Keys, Parts}) ->
    ["#{", format_all(lists:zip(Keys, Parts), fun({Key, Part}) -> [tessera_error:show(Key), " => ", format_part(Part)] end), "}"];
format_part({static, Term}) -> tessera_error:show(Term).

format_all(Parts, Format) -> lists:join(", ", [Format(Part) || Part <- Parts]).

%% ---- inspection

-spec explain(function(), [term()]) -> binary().
explain(F, Args) ->
    #program{executable = Executable} = program_of(explain, F, Args),
    tessera_error:check(explain, [F], tessera_nif:explain(Executable)).

%% Numbers about the program: steps, kernels, bytes, estimated cost.
-spec info(function(), [term()]) -> map().
info(F, Args) ->
    #program{executable = Executable} = program_of(info, F, Args),
    tessera_error:check(info, [F], tessera_nif:executable_info(Executable)).

%% The program of a function made by jit or compile, or of a plain function on
%% these arguments.
program_of(Name, F, Args) ->
    case made_by_us(F) of
        {#jit{}, #program{} = Program} -> Program;
        {#jit{} = Jit, none} -> program_for(Name, Jit, Args);
        none -> program_for(Name, new(jit, F, #{}), Args)
    end.

program_for(Name, #jit{function = F} = Jit, Args) ->
    check_arguments(Name, F, Args),
    {Signature, _} = tessera_tree:flatten(Args),
    program(Jit, Signature, Args).

%% The record is in the environment of a function in the environment of the
%% returned one.
made_by_us(F) when is_function(F) ->
    case erlang:fun_info(F, module) of
        {module, ?MODULE} ->
            {env, [Inner]} = erlang:fun_info(F, env),
            {env, Records} = erlang:fun_info(Inner, env),
            {lists:keyfind(jit, 1, tuples(Records)), keyfind(program, tuples(Records))};
        _ -> none
    end;
made_by_us(_) -> none.

tuples(Terms) -> [T || T <- Terms, is_tuple(T)].

keyfind(Tag, Records) ->
    case lists:keyfind(Tag, 1, Records) of
        false -> none;
        Record -> Record
    end.

%% The traced program, before any pass. Of functions that are traced in another way, Other has it; else none.
-spec text(function(), [term()], tessera | stablehlo, fun((function(), [term()]) -> tessera_nif:builder() | none)) -> binary().
text(F, Args, Form, Other) ->
    Print = case Form of
                tessera -> fun tessera_nif:graph_text/1;
                stablehlo -> fun tessera_nif:graph_stablehlo/1;
                _ -> tessera_error:raise(to_text, [F, Args, Form], invalid_argument,
                                         "to_text: expected tessera or stablehlo, got ~ts", [tessera_error:show(Form)])
            end,
    check_arguments(to_text, F, Args),
    tessera_error:check(to_text, [F, Args], Print(traced(F, Args, Other))).

traced(F, Args, Other) ->
    case Other(F, Args) of
        none ->
            Jit = case made_by_us(F) of
                      {#jit{} = Ours, _} -> Ours;
                      none -> new(jit, F, #{})
                  end,
            {Signature, _} = tessera_tree:flatten(Args),
            {Program, _, _} = trace(Jit, Signature),
            Program;
        Program -> Program
    end.

%% Parses, compiles and runs; programs in text are cached like traced ones.
-spec run_text(binary(), [tessera_type:tensor()]) -> [tessera_type:tensor()].
run_text(Text, Args) when is_binary(Text) ->
    Fail = fun(Cause) -> tessera_error:raise(run_text, [Text, Args], Cause) end,
    Find = fun() -> tessera_cache:fetch({text, erlang:md5(Text)}, fun() -> compile_text(Text, Args) end) end,
    Run = fun(Here) ->
                  tessera_cache:run_current(fun(Executable) -> tessera_run:run(Executable, Here, 0, 0) end, Find)
          end,
    tessera_remote:result(Run(Args), Args, Run, Fail);
run_text(Text, Args) ->
    tessera_error:raise(run_text, [Text, Args], invalid_argument, "run_text: expected a binary, got ~ts",
                        [tessera_error:show(Text)]).

compile_text(Text, Args) ->
    Parsed = tessera_error:check(run_text, [Text, Args], tessera_nif:parse(Text)),
    tessera_error:check(run_text, [Text, Args], tessera_run:compile(Parsed, [])).
