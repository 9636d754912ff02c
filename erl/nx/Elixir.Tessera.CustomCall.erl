-module('Elixir.Tessera.CustomCall').
-include("tessera_nx_doc.hrl").
?MODULEDOC("The protocol by which a block of Nx becomes a native call of a plugin (include/tessera_plugin.h, docs/plugins.md).\n"
     "\n"
     "While a function is compiled, `call/4` is asked for each `Nx.block/4` whose struct has an implementation:\n"
     "\n"
     "    defimpl Tessera.CustomCall, for: MyApp.Scale do\n"
     "      def call(%{factor: factor}, %{type: {:f, 32}}, [_input], %{platform: :host}),\n"
     "        do: {:ok, %Tessera.CustomCall.Spec{call_target_name: \"scale\", attributes: [{\"factor\", \"#{factor}\"}]}}\n"
     "\n"
     "      def call(_, _, _, _), do: :skip\n"
     "    end\n"
     "\n"
     "Its arguments are the struct, the template of the output, a list with the templates of the inputs, and the client. After\n"
     "`:skip` the block's default runs. An implementation for a struct of Nx itself, such as `Nx.Block.LinAlg.QR`, comes before\n"
     "Tessera's own native code. The plugin is loaded by `:tessera.load_plugin(path)`.").
-export([call/4, impl_for/1, 'impl_for!'/1, '__protocol__'/1, '__info__'/1]).

-define(MISSING, '$tessera_missing_implementations').

-callback call(Struct :: term(), Out :: term(), Args :: [term()], Client :: map()) -> skip | {ok, map()}.

?DOC("`:skip`, or `{:ok, %Tessera.CustomCall.Spec{}}`.").
-spec call(map(), term(), [term()], map()) -> skip | {ok, map()}.
call(Struct, Out, Args, Client) -> ('impl_for!'(Struct)):call(Struct, Out, Args, Client).

?DOC("The module that implements the protocol for a struct, or for any; `nil` without one.").
-spec impl_for(term()) -> module() | nil.
impl_for(#{'__struct__' := Module}) when is_atom(Module) -> first([Module, 'Elixir.Any']);
impl_for(_) -> first(['Elixir.Any']).

first([]) -> nil;
first([For | Others]) ->
    Module = implementation(For),
    case erlang:function_exported(Module, '__impl__', 1) orelse is_loadable(Module) of
        true -> Module;
        false -> first(Others)
    end.

%% As Elixir's `Module.concat/2' names it. A longer name than an atom can have is of no module.
implementation(For) ->
    Name = case atom_to_list(For) of
               "Elixir." ++ Short -> Short;
               Whole -> Whole
           end,
    list_to_atom(lists:sublist(atom_to_list(?MODULE) ++ "." ++ Name, 255)).

%% The search for a module that does not exist reads every folder of the code path, and a program may have many blocks: what
%% was not found is searched again a second later.
is_loadable(Module) ->
    Now = erlang:monotonic_time(second),
    Missing = case get(?MISSING) of
                  {Now, Known} -> Known;
                  _ -> #{}
              end,
    case is_map_key(Module, Missing) of
        true -> false;
        false ->
            case code:ensure_loaded(Module) of
                {module, Module} -> erlang:function_exported(Module, '__impl__', 1);
                {error, _} ->
                    put(?MISSING, {Now, Missing#{Module => true}}),
                    false
            end
    end.


?DOC("The module that implements the protocol for a struct. Raises without one.").
-spec 'impl_for!'(term()) -> module().
'impl_for!'(Struct) ->
    case impl_for(Struct) of
        nil -> error('Elixir.Protocol.UndefinedError':exception([{protocol, ?MODULE}, {value, Struct}]));
        Module -> Module
    end.

?INTERNAL.
-spec '__protocol__'(atom()) -> term().
'__protocol__'(module) -> ?MODULE;
'__protocol__'(functions) -> [{call, 4}];
'__protocol__'('consolidated?') -> false;
'__protocol__'(impls) -> not_consolidated.

?INTERNAL.
-spec '__info__'(atom()) -> term().
'__info__'(Item) -> tessera_nx_struct:info(?MODULE, #{}, Item).
