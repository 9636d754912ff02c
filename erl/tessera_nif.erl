%% @private The native library. Functions return their result, or {pressure, Made} when the caller
%% should collect garbage, or {error, Map}; the bodies in c_src/nif/ have the signatures. Only other
%% modules of the application call these.
-module(tessera_nif).
-export([from_binary/4, from_binary/5, from_list/2, from_list/3, to_binary/2, to_list/1, deallocate/1,
         device/1, to_device/3, address/1, from_address/3, share/2, from_shared/3, file_read/2, file_write/3, client_open/4, client_devices/1, clients/0,
         memory/0, memory/1, client_memory/1, reset_client_peak/1, set_limit/1, set_limit/2, reset_peak/0, trim/0, collected/1,
         op/4, op_like/2, op_like/3, eager_clear/0,
         builder_new/1, param/3, value/2, region_open/3, region_enter/2, region_leave/1, region_finish/2,
         control/5, callback/4, custom_call/4, load_plugin/1, inline_region/4, ops/3, finish/2, local_view/1,
         local_sharding/5, coordinates/1, varying/2, vary/3, has_collective/2, combine/1, signature/1, digest/2, digest_more/2, expression_read/2,
         expression_program/3, expression_pack/3, expression_unpack/1, graph_text/1, describe/1, graph_stablehlo/1, parse/1,
         set_mesh/3, set_shardings/3, partition/1, cut/4, join/4, interpret/3,
         compile/2, on_device/2, run/4, run_answer/2, run_abandon/1, run_group/4, run_resume/1,
         run_rank/5, run_refuse/3, place/4, place_is_full/1, place_collected/1, proxy/3, is_proxy/1, proxy_info/1, proxy_take/1,
         rank_open/3, rank_isa/0, rank_build/0, rank_moved/0, rank_close/1, rank_exit/1, executable_info/1, executable_kernels/1, explain/1,
         jit_stats/0, jit_configure/2, set_log_process/1, cpu_count/0,
         inject_fatal/1, fail_allocation/1, live_blocks/0]).
-export_type([builder/0, executable/0, error/0]).
-on_load(load/0).

%% The version of the table of functions and of the resources; TS_NIF_ABI in
%% nif_main.c.
-ifndef(ABI).
-define(ABI, 17).
-endif.

-type builder() :: reference().
-type executable() :: reference().
-type error() :: {error, #{code := atom(), message := binary()}}.

load() ->
    Path = tessera_library:path(),
    case erlang:load_nif(Path, ?ABI) of
        ok -> ok;
        {error, {Why, Text}} -> refuse(erlang:module_loaded(?MODULE), Why, tessera_library:explain(Path, Text))
    end.

%% A new version is refused, and the loaded one stays. On a first load the module stays without a library,
%% since the reason of a failed on_load is lost: its functions then raise it.
refuse(true, Why, Text) -> {error, {Why, unicode:characters_to_list(Text)}};
refuse(false, _Why, Text) -> persistent_term:put(?MODULE, Text).

why() -> {unavailable, persistent_term:get(?MODULE, <<"Tessera's library was not loaded">>)}.

-define(STUB, erlang:nif_error(why())).

from_binary(_Binary, _Type, _Shape, _MustCopy) -> ?STUB.
from_binary(_Binary, _Type, _Shape, _MustCopy, _Device) -> ?STUB.
from_list(_List, _Type) -> ?STUB.
from_list(_List, _Type, _Device) -> ?STUB.
to_binary(_Ref, _MaxElements) -> ?STUB.
to_list(_Ref) -> ?STUB.
deallocate(_Ref) -> ?STUB.
device(_Ref) -> ?STUB.
to_device(_Ref, _Device, _Copy) -> ?STUB.
address(_Ref) -> ?STUB.
from_address(_Address, _Type, _Shape) -> ?STUB.
share(_Ref, _Permissions) -> ?STUB.
from_shared(_Name, _Type, _Shape) -> ?STUB.
file_read(_Path, _Layout) -> ?STUB.
file_write(_Path, _Layout, _Contents) -> ?STUB.
client_open(_Name, _Devices, _MemoryLimit, _Threads) -> ?STUB.
client_devices(_Name) -> ?STUB.
clients() -> ?STUB.
memory() -> ?STUB.
memory(_Client) -> ?STUB.
client_memory(_Client) -> ?STUB.
reset_client_peak(_Client) -> ?STUB.
set_limit(_Bytes) -> ?STUB.
set_limit(_Client, _Bytes) -> ?STUB.
reset_peak() -> ?STUB.
trim() -> ?STUB.
collected(_Type) -> ?STUB.
op(_Builder, _Name, _Operands, _Attrs) -> ?STUB.
op_like(_Name, _Ref) -> ?STUB.
op_like(_Name, _RefA, _RefB) -> ?STUB.
eager_clear() -> ?STUB.
builder_new(_Refs) -> ?STUB.
param(_Builder, _Type, _Shape) -> ?STUB.
value(_Builder, _Operand) -> ?STUB.
region_open(_Builder, _Params, _Like) -> ?STUB.
region_enter(_Builder, _Region) -> ?STUB.
region_leave(_Builder) -> ?STUB.
region_finish(_Builder, _Results) -> ?STUB.
control(_Builder, _Op, _Region1, _Region2, _Operands) -> ?STUB.
callback(_Builder, _Index, _Types, _Operands) -> ?STUB.
custom_call(_Builder, _Text, _Types, _Operands) -> ?STUB.
load_plugin(_Path) -> ?STUB.
inline_region(_Builder, _Region, _Operands, _Sought) -> ?STUB.
ops(_Builder, _FirstId, _LastId) -> ?STUB.
finish(_Builder, _Results) -> ?STUB.
local_view(_Builder) -> ?STUB.
local_sharding(_Builder, _Side, _Index, _Axes, _Dims) -> ?STUB.
coordinates(_Builder) -> ?STUB.
varying(_Builder, _Values) -> ?STUB.
vary(_Builder, _Value, _Axes) -> ?STUB.
has_collective(_Builder, _Region) -> ?STUB.
combine(_Builder) -> ?STUB.
signature(_Containers) -> ?STUB.
digest(_Term, _Mode) -> ?STUB.
digest_more(_Unfinished, _Codes) -> ?STUB.
expression_read(_Nodes, _Scoped) -> ?STUB.
expression_program(_Expression, _Rules, _Regions) -> ?STUB.
expression_pack(_Expression, _Rules, _Regions) -> ?STUB.
expression_unpack(_Packed) -> ?STUB.
graph_text(_Builder) -> ?STUB.
describe(_Builder) -> ?STUB.
graph_stablehlo(_Builder) -> ?STUB.
parse(_Text) -> ?STUB.
set_mesh(_Builder, _Sizes, _Names) -> ?STUB.
set_shardings(_Builder, _Params, _Results) -> ?STUB.
partition(_Builder) -> ?STUB.
cut(_Ref, _Sizes, _Cuts, _Client) -> ?STUB.
join(_Refs, _Sizes, _Cuts, _Device) -> ?STUB.
interpret(_Builder, _Lists, _Client) -> ?STUB.
compile(_Builder, _Options) -> ?STUB.
on_device(_Executable, _Device) -> ?STUB.
run(_Executable, _Arguments, _Threads, _Donated) -> ?STUB.
run_answer(_Run, _Results) -> ?STUB.
run_abandon(_Run) -> ?STUB.
run_group(_Executable, _Arguments, _Threads, _Donated) -> ?STUB.
run_resume(_Run) -> ?STUB.
run_rank(_Executable, _Arguments, _Threads, _Donated, _Run) -> ?STUB.
run_refuse(_Run, _Code, _Text) -> ?STUB.
place(_Owner, _Rank, _About, _Enough) -> ?STUB.
place_is_full(_Place) -> ?STUB.
place_collected(_Place) -> ?STUB.
proxy(_Place, _Id, _Bytes) -> ?STUB.
is_proxy(_Term) -> ?STUB.
proxy_info(_Ref) -> ?STUB.
proxy_take(_Ref) -> ?STUB.
rank_open(_Path, _Milliseconds, _Version) -> ?STUB.
rank_isa() -> ?STUB.
rank_build() -> ?STUB.
rank_moved() -> ?STUB.
rank_close(_Milliseconds) -> ?STUB.
rank_exit(_Status) -> ?STUB.
executable_info(_Executable) -> ?STUB.
executable_kernels(_Executable) -> ?STUB.
explain(_Executable) -> ?STUB.
jit_stats() -> ?STUB.
jit_configure(_Dir, _DiskBytes) -> ?STUB.
set_log_process(_Pid) -> ?STUB.
cpu_count() -> ?STUB.
inject_fatal(_Count) -> ?STUB.
fail_allocation(_N) -> ?STUB.
live_blocks() -> ?STUB.
