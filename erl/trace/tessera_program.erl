%% @private Compiled programs as terms that may be sent to other nodes: besides
%% the executable, which is of this node, they contain the program's text or
%% packed form. Another node compiles that, once for each fingerprint, and keeps
%% the executable in its cache.
-module(tessera_program).
-export([new/3, new/4, executable/1, on_device/2, run/3, portable/1, ready/1, kernels/1]).
-export_type([code/0]).

-type option() :: no_fusion | no_simplify | {client | precision, atom()}.

-record(code, {executable  :: tessera_nif:executable() | undefined,
               fingerprint :: {[option()], <<_:128>>},  % the options and the hash of the source
               source      :: binary(),
               options     :: [option()],
               device      :: tessera_type:device() | undefined, % where it runs; undefined: where its arguments are
               is_new = false :: boolean()}).       % compiled by the caller that made this term
-opaque code() :: #code{}.

%% Compiles a finished program. With the cache, finds an equal program that was compiled before.
-spec new(tessera_nif:builder(), [option()], boolean()) -> code() | tessera_nif:error().
new(Builder, Options, IsCached) ->
    case tessera_nif:describe(Builder) of
        {error, _} = Error -> Error;
        Described -> new(Described, fun() -> Builder end, Options, IsCached)
    end.

%% The same before the program is made: the key is its packed form and that one's hash.
-spec new({binary(), <<_:128>>}, fun(() -> tessera_nif:builder()), [option()], boolean()) -> code() | tessera_nif:error().
new({Source, Hash}, Program, Options, IsCached) ->
    Code = #code{fingerprint = {Options, Hash}, source = Source, options = Options},
    Self = make_ref(),
    Make = fun() ->
                   Builder = Program(),
                   put(Self, true),
                   tessera_run:compile(Builder, Options)
           end,
    Made = case IsCached of
               true -> fetch(Code, Make);
               false -> Make()
           end,
    with_executable(Code#code{is_new = erase(Self) =:= true}, Made).

with_executable(_, {error, _} = Error) -> Error;
with_executable(#code{device = Device} = Code, Executable) ->
    case tessera_client:bind(Executable, Device) of
        {error, _} = Error -> Error;
        Bound -> Code#code{executable = Bound}
    end.

%% On this node; undefined for a program of another node that has not run here.
-spec executable(code()) -> tessera_nif:executable() | undefined.
executable(#code{executable = Executable}) -> Executable.

%% The program bound to a device.
-spec on_device(code(), tessera_type:device()) -> code() | tessera_nif:error().
on_device(#code{executable = Executable} = Code, Device) -> with_executable(Code#code{device = Device}, Executable).

%% Errors are not cached.
fetch(#code{fingerprint = Fingerprint}, Make) ->
    Tag = make_ref(),
    try
        tessera_cache:fetch({program, Fingerprint},
                            fun() ->
                                    case Make() of
                                        {error, _} = Error -> throw({Tag, Error});
                                        Executable -> Executable
                                    end
                            end)
    catch throw:{Tag, Error} -> Error
    end.

%% Runs the program on this node. If its executable belongs to another node, an earlier run of the node or an earlier
%% load of the library, it is compiled from its source, once.
-spec run(code(), [tessera_type:operand()], non_neg_integer()) -> term().
run(#code{executable = Executable} = Code, Args, Donated) when Executable =/= undefined ->
    case tessera_run:run(Executable, Args, 0, Donated) of
        stale -> run(portable(Code), Args, Donated);
        Result -> Result
    end;
run(Code, Args, Donated) ->
    case ready(Code) of
        {error, _} = Error -> Error;
        #code{executable = Executable} ->
            case tessera_run:run(Executable, Args, 0, Donated) of
                stale ->
                    ok = tessera_cache:clear(),
                    run(Code, Args, Donated);
                Result -> Result
            end
    end.

%% The executable in this node's cache.
here(#code{source = Source, options = Options} = Code) ->
    fetch(Code, fun() ->
                        case program(Source) of
                            {error, _} = Error -> Error;
                            Builder -> tessera_run:compile(Builder, Options)
                        end
                end).

%% No program text begins with a zero byte.
program(<<0, _/binary>> = Packed) -> tessera_nif:expression_unpack(Packed);
program(Text) -> tessera_nif:parse(Text).

%% The term without the parts that are valid on this node only.
-spec portable(code()) -> code().
portable(Code) -> Code#code{executable = undefined, is_new = false}.

%% The same with an executable of this node.
-spec ready(code()) -> code() | tessera_nif:error().
ready(Code) -> with_executable(Code, here(Code)).

%% The numbers of kernels of newly compiled programs that were compiled and that were found in a cache.
-spec kernels([code()]) -> {non_neg_integer(), non_neg_integer()}.
kernels(Codes) ->
    lists:foldl(fun(#code{executable = Executable} = Code, {Compiled, Reused}) ->
                        {All, New} = tessera_nif:executable_kernels(Executable),
                        Own = case Code#code.is_new of
                                  true -> New;
                                  false -> 0
                              end,
                        {Compiled + Own, Reused + max(0, All - Own)}
                end, {0, 0}, Codes).
