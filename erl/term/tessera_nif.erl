%% @private The native library. Functions return their result, or {pressure, Made} when the caller
%% should collect garbage, or crowded when it should do so first and call again, or {error, Map}; the bodies in c_src/nif/ have the signatures. Only other
%% modules of the application call these.
-module(tessera_nif).
-export([open/0, is_open/0, refused/0]).
-export([from_binary/4, from_binary/5, from_list/2, from_list/3, to_binary/2, to_list/1, deallocate/1,
         device/1, to_device/3, address/1, from_address/4, share/2, share/3, from_shared/4, file_read/2, file_write/3, map_file/1, read_file/1, is_elsewhere/1,
         client_open/6, client_close/1, client_waits/1, client_devices/1, clients/0, default_client/0, default_client/1, platforms/0, platform_devices/1,
         memory/0, memory/1, client_memory/1, reset_client_peak/1, set_limit/1, set_limit/2, reset_peak/0, trim/0, collected/1, let_in/1,
         op/4, op_like/2, op_like/3, eager_clear/0,
         builder_new/1, param/3, value/2, region_open/3, region_enter/2, region_leave/1, region_finish/2,
         control/5, callback/4, custom_call/4, load_plugin/1, inline_region/4, inline_program/3, ops/3, finish/2, local_view/1,
         local_sharding/5, coordinates/1, varying/2, vary/3, has_collective/2, combine/1, signature/1, digest/2, digest_more/2, expression_read/2,
         expression_program/3, expression_pack/3, expression_unpack/1, graph_text/1, describe/1, graph_stablehlo/1, parse/1,
         read_stablehlo/1, read_stablehlo/2, stablehlo_leaves/1, stablehlo_shardings/1, set_mesh/3, set_shardings/3, partition/1, cut/4, join/4, interpret/3,
         compile/2, on_device/2, run/4, run_known/3, known_add/4, known_clear/0, run_answer/2, run_abandon/1, run_group/4, run_resume/1,
         run_rank/5, run_refuse/3, block/2, block_append/2, block_binary/1, block_tensor/4, place/4, place_is_full/1, place_collected/1, proxy/3, is_proxy/1, proxy_info/1, proxy_take/1,
         rank_open/3, rank_isa/0, rank_build/0, rank_moved/0, rank_close/1, rank_exit/1, executable_info/1, executable_kernels/1, explain/1,
         makers/0, profile_start/1, profile_stop/1, profile_lines/1, profile_rows/1, places_record/1, places_set/2, places_of/2, places_known/1,
         places_lend/2, keep/1, kept/1, jit_stats/0, jit_configure/2, set_log_process/1, cpu_count/0,
         inject_fatal/1, fail_allocation/1, live_blocks/0]).
-export_type([builder/0, executable/0, error/0]).
-on_load(load/0).

%% The version of the table of functions and of the resources; TS_NIF_ABI in
%% nif_main.c.
-ifndef(ABI).
-define(ABI, 27).
-endif.

%% Keys of persistent terms: that this version of the module has its library, and why it cannot have it.
-define(IS_OPEN, {?MODULE, open}).
-define(REFUSED, {?MODULE, refused}).

-type builder() :: reference().
-type executable() :: reference().
-type error() :: {error, #{code := atom(), message := binary()}}.

%% Of the module that starts the application: starts it, or does without it what its start does; opens the library.
-callback first_use() -> ok | {error, {atom(), binary()}}.

%% A new version that replaces one with a library takes the library at once, or is refused. A first one waits for the first
%% call of a function, which starts the application, and so reads its settings: open/0 cannot be called before.
load() ->
    _ = persistent_term:erase(?REFUSED),
    case erlang:module_loaded(?MODULE) andalso is_open() of
        true ->
            case load_library() of
                ok -> ok;
                {error, {Why, Text}} -> {error, {Why, unicode:characters_to_list(Text)}}
            end;
        false ->
            _ = persistent_term:erase(?IS_OPEN),
            ok
    end.

-spec is_open() -> boolean().
is_open() -> persistent_term:get(?IS_OPEN, false).

%% Loads the library, unless this was done. A library that cannot be loaded is not tried again.
-spec open() -> ok | {error, {atom(), binary()}}.
open() ->
    case {is_open(), refused()} of
        {true, _} -> ok;
        {false, none} -> opened(load_library());
        {false, Reason} -> {error, Reason}
    end.

opened(ok) -> persistent_term:put(?IS_OPEN, true);
opened({error, {reload, _}}) -> ok; % another process was faster
opened({error, {environment, Text}}) -> refused({invalid_argument, Text});
opened({error, {_, Text}}) -> refused({unavailable, Text}).

refused(Reason) ->
    ok = persistent_term:put(?REFUSED, Reason),
    {error, Reason}.

load_library() ->
    Path = tessera_library:path(),
    case erlang:load_nif(Path, {?ABI, self()}) of
        ok -> ok;
        {error, {Why, Text}} ->
            receive
                {tessera_refused, Refused} -> {error, {environment, Refused}}
            after 0 -> {error, {Why, tessera_library:explain(Path, Text)}}
            end
    end.

%% Why the library cannot be loaded, if that was tried.
-spec refused() -> none | {atom(), binary()}.
refused() -> persistent_term:get(?REFUSED, none).

%% The first call of a function of the library.
first(Name, Args) ->
    case (starter()):first_use() of
        ok -> apply(?MODULE, Name, Args);
        {error, Reason} -> erlang:nif_error(Reason)
    end.

%% The application's module, by its file, or by name where there is no such file. Before the first call nothing was started that could have
%% registered it.
starter() ->
    _ = application:load(tessera),
    case application:get_key(tessera, mod) of
        {ok, {Module, _}} -> Module;
        _ -> tessera_app
    end.

-define(FIRST(Args), first(?FUNCTION_NAME, Args)).

from_binary(Binary, Type, Shape, MustCopy) -> ?FIRST([Binary, Type, Shape, MustCopy]).
from_binary(Binary, Type, Shape, MustCopy, Device) -> ?FIRST([Binary, Type, Shape, MustCopy, Device]).
from_list(List, Type) -> ?FIRST([List, Type]).
from_list(List, Type, Device) -> ?FIRST([List, Type, Device]).
to_binary(Ref, MaxElements) -> ?FIRST([Ref, MaxElements]).
to_list(Ref) -> ?FIRST([Ref]).
deallocate(Ref) -> ?FIRST([Ref]).
device(Ref) -> ?FIRST([Ref]).
to_device(Ref, Device, Copy) -> ?FIRST([Ref, Device, Copy]).
address(Ref) -> ?FIRST([Ref]).
from_address(Address, Type, Shape, Device) -> ?FIRST([Address, Type, Shape, Device]).
share(Ref, Permissions) -> ?FIRST([Ref, Permissions]).
share(Ref, Permissions, Contents) -> ?FIRST([Ref, Permissions, Contents]).
from_shared(Name, Type, Shape, Device) -> ?FIRST([Name, Type, Shape, Device]).
file_read(Path, Layout) -> ?FIRST([Path, Layout]).
file_write(Path, Layout, Contents) -> ?FIRST([Path, Layout, Contents]).
map_file(Path) -> ?FIRST([Path]).
read_file(Path) -> ?FIRST([Path]).
client_open(Name, Devices, MemoryLimit, Threads, Platform, Settings) -> ?FIRST([Name, Devices, MemoryLimit, Threads, Platform, Settings]).
client_close(Name) -> ?FIRST([Name]).
client_waits(Name) -> ?FIRST([Name]).
default_client() -> ?FIRST([]).
default_client(Name) -> ?FIRST([Name]).
platforms() -> ?FIRST([]).
platform_devices(Platform) -> ?FIRST([Platform]).
is_elsewhere(Ref) -> ?FIRST([Ref]).
client_devices(Name) -> ?FIRST([Name]).
clients() -> ?FIRST([]).
memory() -> ?FIRST([]).
memory(Client) -> ?FIRST([Client]).
client_memory(Client) -> ?FIRST([Client]).
reset_client_peak(Client) -> ?FIRST([Client]).
set_limit(Bytes) -> ?FIRST([Bytes]).
set_limit(Client, Bytes) -> ?FIRST([Client, Bytes]).
reset_peak() -> ?FIRST([]).
trim() -> ?FIRST([]).
collected(Type) -> ?FIRST([Type]).
let_in(Pid) -> ?FIRST([Pid]).
op(Builder, Name, Operands, Attrs) -> ?FIRST([Builder, Name, Operands, Attrs]).
op_like(Name, Ref) -> ?FIRST([Name, Ref]).
op_like(Name, RefA, RefB) -> ?FIRST([Name, RefA, RefB]).
eager_clear() -> ?FIRST([]).
builder_new(Refs) -> ?FIRST([Refs]).
param(Builder, Type, Shape) -> ?FIRST([Builder, Type, Shape]).
value(Builder, Operand) -> ?FIRST([Builder, Operand]).
region_open(Builder, Params, Like) -> ?FIRST([Builder, Params, Like]).
region_enter(Builder, Region) -> ?FIRST([Builder, Region]).
region_leave(Builder) -> ?FIRST([Builder]).
region_finish(Builder, Results) -> ?FIRST([Builder, Results]).
control(Builder, Op, Region1, Region2, Operands) -> ?FIRST([Builder, Op, Region1, Region2, Operands]).
callback(Builder, Index, Types, Operands) -> ?FIRST([Builder, Index, Types, Operands]).
custom_call(Builder, Text, Types, Operands) -> ?FIRST([Builder, Text, Types, Operands]).
load_plugin(Path) -> ?FIRST([Path]).
inline_program(Builder, Program, Operands) -> ?FIRST([Builder, Program, Operands]).
inline_region(Builder, Region, Operands, Sought) -> ?FIRST([Builder, Region, Operands, Sought]).
ops(Builder, FirstId, LastId) -> ?FIRST([Builder, FirstId, LastId]).
finish(Builder, Results) -> ?FIRST([Builder, Results]).
local_view(Builder) -> ?FIRST([Builder]).
local_sharding(Builder, Side, Index, Axes, Dims) -> ?FIRST([Builder, Side, Index, Axes, Dims]).
coordinates(Builder) -> ?FIRST([Builder]).
varying(Builder, Values) -> ?FIRST([Builder, Values]).
vary(Builder, Value, Axes) -> ?FIRST([Builder, Value, Axes]).
has_collective(Builder, Region) -> ?FIRST([Builder, Region]).
combine(Builder) -> ?FIRST([Builder]).
signature(Containers) -> ?FIRST([Containers]).
digest(Term, Mode) -> ?FIRST([Term, Mode]).
digest_more(Unfinished, Codes) -> ?FIRST([Unfinished, Codes]).
expression_read(Nodes, Scoped) -> ?FIRST([Nodes, Scoped]).
expression_program(Expression, Rules, Regions) -> ?FIRST([Expression, Rules, Regions]).
expression_pack(Expression, Rules, Regions) -> ?FIRST([Expression, Rules, Regions]).
expression_unpack(Packed) -> ?FIRST([Packed]).
graph_text(Builder) -> ?FIRST([Builder]).
describe(Builder) -> ?FIRST([Builder]).
graph_stablehlo(Builder) -> ?FIRST([Builder]).
parse(Text) -> ?FIRST([Text]).
read_stablehlo(Text) -> ?FIRST([Text]).
read_stablehlo(Text, TypesOrPartitions) -> ?FIRST([Text, TypesOrPartitions]).
stablehlo_leaves(Text) -> ?FIRST([Text]).
stablehlo_shardings(Text) -> ?FIRST([Text]).
set_mesh(Builder, Sizes, Names) -> ?FIRST([Builder, Sizes, Names]).
set_shardings(Builder, Params, Results) -> ?FIRST([Builder, Params, Results]).
partition(Builder) -> ?FIRST([Builder]).
cut(Ref, Sizes, Cuts, Client) -> ?FIRST([Ref, Sizes, Cuts, Client]).
join(Refs, Sizes, Cuts, Device) -> ?FIRST([Refs, Sizes, Cuts, Device]).
interpret(Builder, Lists, Client) -> ?FIRST([Builder, Lists, Client]).
compile(Builder, Options) -> ?FIRST([Builder, Options]).
on_device(Executable, Device) -> ?FIRST([Executable, Device]).
run(Executable, Arguments, Threads, Donated) -> ?FIRST([Executable, Arguments, Threads, Donated]).
run_known(Id, Arguments, Threads) -> ?FIRST([Id, Arguments, Threads]).
known_add(Id, Arguments, Executable, Form) -> ?FIRST([Id, Arguments, Executable, Form]).
known_clear() -> ?FIRST([]).
run_answer(Run, Results) -> ?FIRST([Run, Results]).
run_abandon(Run) -> ?FIRST([Run]).
run_group(Executable, Arguments, Threads, Donated) -> ?FIRST([Executable, Arguments, Threads, Donated]).
run_resume(Run) -> ?FIRST([Run]).
run_rank(Executable, Arguments, Threads, Donated, Run) -> ?FIRST([Executable, Arguments, Threads, Donated, Run]).
run_refuse(Run, Code, Text) -> ?FIRST([Run, Code, Text]).
block(Bytes, Pooled) -> ?FIRST([Bytes, Pooled]).
block_append(Block, Bytes) -> ?FIRST([Block, Bytes]).
block_binary(Block) -> ?FIRST([Block]).
block_tensor(Block, Type, Shape, Device) -> ?FIRST([Block, Type, Shape, Device]).
place(Owner, Rank, About, Enough) -> ?FIRST([Owner, Rank, About, Enough]).
place_is_full(Place) -> ?FIRST([Place]).
place_collected(Place) -> ?FIRST([Place]).
proxy(Place, Id, Bytes) -> ?FIRST([Place, Id, Bytes]).
is_proxy(Term) -> ?FIRST([Term]).
proxy_info(Ref) -> ?FIRST([Ref]).
proxy_take(Ref) -> ?FIRST([Ref]).
rank_open(Path, Milliseconds, Version) -> ?FIRST([Path, Milliseconds, Version]).
rank_isa() -> ?FIRST([]).
rank_build() -> ?FIRST([]).
rank_moved() -> ?FIRST([]).
rank_close(Milliseconds) -> ?FIRST([Milliseconds]).
rank_exit(Status) -> ?FIRST([Status]).
executable_info(Executable) -> ?FIRST([Executable]).
executable_kernels(Executable) -> ?FIRST([Executable]).
explain(Executable) -> ?FIRST([Executable]).
makers() -> ?FIRST([]).
profile_start(MostEvents) -> ?FIRST([MostEvents]).
profile_stop(Profile) -> ?FIRST([Profile]).
profile_lines(Profile) -> ?FIRST([Profile]).
profile_rows(Executable) -> ?FIRST([Executable]).
places_record(Builder) -> ?FIRST([Builder]).
places_set(Builder, Line) -> ?FIRST([Builder, Line]).
places_of(Builder, Traced) -> ?FIRST([Builder, Traced]).
places_known(Executable) -> ?FIRST([Executable]).
places_lend(Executable, From) -> ?FIRST([Executable, From]).
keep(Term) -> ?FIRST([Term]).
kept(Kept) -> ?FIRST([Kept]).
jit_stats() -> ?FIRST([]).
jit_configure(Dir, DiskBytes) -> ?FIRST([Dir, DiskBytes]).
set_log_process(Pid) -> ?FIRST([Pid]).
cpu_count() -> ?FIRST([]).
inject_fatal(Count) -> ?FIRST([Count]).
fail_allocation(N) -> ?FIRST([N]).
live_blocks() -> ?FIRST([]).
