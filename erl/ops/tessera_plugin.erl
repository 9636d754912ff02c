%% @private Calls of plugins' targets (include/tessera_plugin.h) and their text for the core: the target's name, then
%% attributes in parentheses.
-module(tessera_plugin).
-include("tessera.hrl").
-export([load/1, call/4, text/2]).

-type target() :: atom() | binary() | string().
-type attributes() :: #{atom() | binary() => term()}.
-export_type([target/0, attributes/0]).

-spec load(file:name_all()) -> [binary()].
load(Path) ->
    Full = try filename:absname(Path) of
               Name when is_binary(Name) -> Name;
               Name -> unicode:characters_to_binary(Name, unicode, file:native_name_encoding())
           catch error:_ -> none
           end,
    is_binary(Full) orelse
        tessera_error:raise(load_plugin, [Path], invalid_argument, "load_plugin: expected a file's name, got ~ts",
                            [tessera_error:show(Path)]),
    tessera_error:check(load_plugin, [Path], tessera_nif:load_plugin(Full)).

-spec call(target(), [tessera_type:operand()], Results, attributes()) -> Results when Results :: tessera_type:tensor() | [tessera_type:tensor()].
call(Target, Operands, Results, Attributes) ->
    Args = [Target, Operands, Results, Attributes],
    tessera_type:is_proper(Operands) orelse bad(Args, "a list of operands", Operands),
    Text = iolist_to_binary(text(Target, Attributes)),
    Types = [form(Args, R) || R <- results(Results)],
    Tensors = [tessera_operand:tensor(custom_call, Operand) || Operand <- Operands],
    Made = tessera_jit:in_program(fun(Ts) -> trace(Text, Types, Ts) end, Tensors),
    case is_list(Results) of
        true -> Made;
        false -> hd(Made)
    end.

trace(Text, Types, Tensors) ->
    Values = [tessera_trace:value(custom_call, T) || T <- Tensors],
    tessera_trace:placed(custom_call, tessera_error:check(custom_call, Tensors, tessera_nif:custom_call(tessera_trace:current(), Text, Types, Values))).

results(#tessera{} = One) -> [One];
results([_ | _] = Several) ->
    tessera_type:is_proper(Several) orelse bad([Several], "a list of templates as results", Several),
    Several;
results(Other) -> bad([Other], "a template, or a list of them, as results", Other).

form(_, #tessera{type = Type, shape = Shape}) -> {Type, Shape};
form(Args, Other) -> bad(Args, "templates (tessera:template/2) as results", Other).

-spec bad([term()], string(), term()) -> no_return().
bad(Args, Expected, Got) ->
    tessera_error:raise(custom_call, Args, invalid_argument, "custom_call: expected ~s, got ~ts", [Expected, tessera_error:show(Got)]).

%% ---- the text of a call

-spec text(target(), attributes() | [{atom() | binary(), term()}]) -> iolist().
text(Target, Attributes) when is_map(Attributes) -> text(Target, lists:sort(maps:to_list(Attributes)));
text(Target, []) -> name("a target's name", Target);
text(Target, [_ | _] = Attributes) ->
    tessera_type:is_proper(Attributes) orelse bad([], "a map of attributes, or a list of them", Attributes),
    Fields = [case A of
                  {Name, Value} -> [name("an attribute's name", Name), " = ", value(Value)];
                  _ -> bad([], "attributes with names", A)
              end || A <- Attributes],
    [name("a target's name", Target), "(", lists:join(", ", Fields), ")"];
text(_, Other) -> bad([], "a map of attributes", Other).

name(What, Given) ->
    Name = case Given of
               _ when is_atom(Given) -> atom_to_binary(Given, utf8);
               _ -> try iolist_to_binary(Given) catch error:_ -> <<>> end
           end,
    case re:run(Name, "^[A-Za-z_][A-Za-z0-9_.]*$", [{capture, none}, dollar_endonly]) of
        match -> Name;
        nomatch -> bad([], What ++ " of letters, digits, _ and .", Given)
    end.

value(true) -> "true";
value(false) -> "false";
value(N) when is_integer(N), N >= -(1 bsl 63), N < 1 bsl 63 -> integer_to_binary(N);
value(F) when is_float(F) -> io_lib:format("~w", [F]);
value(infinity) -> "inf";
value(neg_infinity) -> "-inf";
value(nan) -> "nan";
value([]) -> "[]";
value(Atom) when is_atom(Atom) -> quoted(atom_to_binary(Atom, utf8));
value(Binary) when is_binary(Binary) ->
    is_list(unicode:characters_to_list(Binary)) orelse bad([], "an attribute's text in UTF-8", Binary),
    quoted(Binary);
value([First | _] = List) when is_integer(First) ->
    tessera_type:is_proper(List) orelse no_value(List),
    lists:all(fun(N) -> is_integer(N) andalso N >= -(1 bsl 63) andalso N < 1 bsl 63 end, List) orelse no_value(List),
    ["[", lists:join(", ", [integer_to_binary(N) || N <- List]), "]"];
value(Other) -> no_value(Other).

%% The text stands in one line between quotation marks, and so does the program's.
quoted(Text) ->
    case re:run(Text, "[\"'\\x00-\\x1f]", [{capture, none}]) of
        nomatch -> ["'", Text, "'"];
        match -> bad([], "an attribute's text without quotation marks and control characters", Text)
    end.

-spec no_value(term()) -> no_return().
no_value(Other) ->
    bad([], "an attribute that is an integer of 64 bits, a float, true, false, a binary, or a list of integers", Other).
