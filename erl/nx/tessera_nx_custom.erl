%% @private Blocks that are calls of plugins, by the user's implementations of Tessera.CustomCall.
-module(tessera_nx_custom).
-include("tessera.hrl").
-include("tessera_nx.hrl").
-export([lower/6]).

-define(PROTOCOL, 'Elixir.Tessera.CustomCall').
-define(SPEC, 'Elixir.Tessera.CustomCall.Spec').

%% The values of a block's results, or `skip'. Out is the default's expression, Inputs the nodes, Values their values in the
%% program. Client is the name of the client of the compilation, `undefined' for the default one.
-spec lower(term(), term(), [map()], [tessera:tensor()], tessera_nif:builder(), atom()) -> [tessera:tensor()] | skip.
lower(#{'__struct__' := _} = Struct, Out, Inputs, Values, Program, Client) ->
    case implementation(Struct) of
        nil -> skip;
        Module -> answer(Module:call(Struct, Out, Inputs, client(Client)), Out, Values, Program)
    end;
lower(_, _, _, _, _, _) -> skip.

%% The protocol is Elixir's: it is missing when Erlang's tests lower an expression.
implementation(Struct) ->
    case whereis(elixir_sup) of
        undefined -> nil;
        _ -> ?PROTOCOL:impl_for(Struct)
    end.

client(undefined) -> client(tessera_nx_client:default_name());
client(Name) -> tessera_nx_client:'fetch!'(Name).

answer(skip, _, _, _) -> skip;
answer({ok, #{'__struct__' := ?SPEC, call_target_name := Target, attributes := Attributes, operand_element_types := Types}},
       Out, Values, Program) ->
    Forms = [tessera_nx_tensor:form(Leaf) || Leaf <- tessera_nx_expr:leaves(Out)],
    Text = unicode:characters_to_binary(tessera_plugin:text(Target, attributes(Attributes))),
    tessera_nx_error:check(custom_call, tessera_nif:custom_call(Program, Text, Forms, converted(Types, Values, Program)));
answer(Other, _, _, _) ->
    tessera_nx_error:argument("Tessera.CustomCall.call/4 must return :skip or {:ok, %Tessera.CustomCall.Spec{}}, got: ~ts",
                              [tessera_nx_error:inspect(Other)]).

converted(default, Values, _) -> Values;
converted(Types, Values, Program) when is_list(Types), length(Types) =:= length(Values) ->
    [convert(Program, Value, tessera_nx_tensor:core_type(Type)) || {Type, Value} <- lists:zip(Types, Values)];
converted(Types, Values, _) when is_list(Types) ->
    tessera_nx_error:argument("Tessera.CustomCall.Spec operand_element_types must be a list of length ~b (one per block input), "
                              "got length ~b", [length(Values), length(Types)]);
converted(Other, _, _) ->
    tessera_nx_error:argument("Tessera.CustomCall.Spec operand_element_types must be :default or a list of Nx types, got: ~ts",
                              [tessera_nx_error:inspect(Other)]).

convert(_, #tessera{type = Type} = Value, Type) -> Value;
convert(Program, Value, Type) -> tessera_nx_ops:op(Program, convert, [Value], Type).

attributes(List) when is_list(List) ->
    [case Pair of
         {Name, Value} when is_binary(Name); is_atom(Name) -> {Name, value(Value)};
         _ -> no_attributes(List)
     end || Pair <- List];
attributes(Other) -> no_attributes(Other).

-spec no_attributes(term()) -> no_return().
no_attributes(Other) ->
    tessera_nx_error:argument("Tessera.CustomCall.Spec attributes must be a list of {name, value} pairs, got: ~ts",
                              [tessera_nx_error:inspect(Other)]).

%% MLIR's text of an attribute. A string that is none stays a string.
value(Text) when is_binary(Text) ->
    Patterns = [{"^\"([^\"]*)\"$", fun(T) -> T end},
                {"^(true|false)$", fun(T) -> binary_to_atom(T, utf8) end},
                {"^([+-]?[0-9]+)(?: *: *[su]?i[0-9]+| *: *index)?$", fun binary_to_integer/1},
                {"^([+-]?[0-9]+(?:\\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)(?: *: *[a-z0-9]+)?$", fun float/1},
                {"^(?:array<i64: *|\\[)([-+0-9, ]*)[>\\]]$", fun integers/1}],
    matched(Text, Patterns);
value(Other) -> Other.

matched(Text, [{Pattern, Read} | Patterns]) ->
    case re:run(Text, Pattern, [{capture, all_but_first, binary}]) of
        {match, [Part]} -> Read(Part);
        nomatch -> matched(Text, Patterns)
    end;
matched(Text, []) -> Text.

float(Text) ->
    {Number, _} = 'Elixir.Float':parse(Text),
    Number.

integers(Text) -> [binary_to_integer(Part) || Part <- re:split(Text, "[ ,]+"), Part =/= <<>>].
