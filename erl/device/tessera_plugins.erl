%% @private Plugins of PJRT by the platforms' names of EXLA: cuda, rocm, tpu, pjrt_plugin. Finds a plugin's file and its devices without loading the plugin,
%% because a plugin without its device may end the process or wait for ever. docs/accelerators.md says what to install.
-module(tessera_plugins).
-export([is_plugin/1, platforms/0, devices/1, find/1, is_available/2, options/1, missing/1]).

-define(PLATFORMS, [cuda, rocm, tpu]).

-type platform() :: cuda | rocm | tpu.

%% Whether a client of the platform is a plugin's.
-spec is_plugin(term()) -> boolean().
is_plugin(Platform) -> lists:member(Platform, [pjrt, pjrt_plugin | ?PLATFORMS]).

%% The platforms whose plugin and device are here.
-spec platforms() -> [platform()].
platforms() -> [Platform || Platform <- ?PLATFORMS, is_installed(Platform)].

is_installed(Platform) -> devices(Platform) > 0 andalso find(Platform) =/= none.

%% How many devices the system has for the platform's plugin, as their files say.
-spec devices(platform()) -> non_neg_integer().
devices(Platform) -> length([File || Pattern <- device_files(Platform), File <- filelib:wildcard(Pattern)]).

%% The last of cuda is of Windows' subsystem for Linux, and has all of its GPUs.
device_files(cuda) -> ["/dev/nvidia[0-9]*", "/dev/dxg"];
device_files(rocm) -> ["/sys/class/kfd/kfd/topology/nodes/*/mem_banks/0"];
device_files(tpu) -> ["/dev/accel[0-9]*", "/dev/vfio/[0-9]*"].

%% Whether a client with the options may be opened. If the options name a file, its plugin has the error.
-spec is_available(atom(), [{atom(), term()}]) -> boolean().
is_available(Platform, Options) ->
    not lists:member(Platform, ?PLATFORMS) orelse given(proplists:get_value(plugin_path, Options)) orelse is_installed(Platform).

given(Path) -> Path =/= undefined andalso Path =/= nil.

%% Replaces the platform by pjrt, and adds the plugin's file and the default options.
-spec options(map()) -> {ok, map()} | {error, atom(), iodata()}.
options(#{platform := pjrt_plugin} = Options) ->
    case Options of
        #{plugin_path := _} -> {ok, maps:without([device_type], Options#{platform := pjrt})};
        _ -> {error, invalid_argument, "a client of the platform pjrt_plugin needs the option plugin_path, with the file of a plugin"}
    end;
options(#{platform := Platform} = Options) when Platform =:= cuda; Platform =:= rocm; Platform =:= tpu ->
    case maps:is_key(plugin_path, Options) orelse is_installed(Platform) of
        true ->
            Path = maps:get(plugin_path, Options, find(Platform)),
            {ok, maps:without([device_type], maps:merge(defaults(Platform), Options#{platform := pjrt, plugin_path => Path}))};
        false -> {error, unavailable, missing(Platform)}
    end;
options(Options) -> {ok, Options}.

%% As EXLA's.
defaults(tpu) -> #{};
defaults(_) -> #{memory_fraction => 0.9, preallocate => true}.

%% An error that names the missing piece and the way to install it.
-spec missing(platform()) -> iodata().
missing(Platform) ->
    #{device := Device, install := Install} = about(Platform),
    case find(Platform) of
        none ->
            io_lib:format("there is no plugin for ~ts: ~ts; or give its file as plugin_path or as the environment variable ~ts. Searched: ~ts",
                          [Platform, Install, hd(variables(Platform)), lists:join(", ", folders())]);
        Path -> io_lib:format("there is the plugin ~ts, and no ~ts: ~ts is not there", [Path, Device, lists:join(" or ", device_files(Platform))])
    end.

about(cuda) ->
    #{device => "NVIDIA GPU with its driver", install => "`pip install \"jax[cuda13]\"` installs it with the libraries of CUDA",
      files => ["jax_plugins/xla_cuda[0-9]*/xla_cuda_plugin.so", "xla_cuda_plugin.so", "pjrt_c_api_gpu_plugin.so"], variables => ["TESSERA_CUDA_PLUGIN"]};
about(rocm) ->
    #{device => "AMD GPU with its driver", install => "`pip install \"jax[rocm7-local]\"` installs it, beside ROCm",
      files => ["jax_plugins/xla_rocm[0-9]*/xla_rocm_plugin.so", "xla_rocm_plugin.so"], variables => ["TESSERA_ROCM_PLUGIN"]};
about(tpu) ->
    #{device => "TPU", install => "`pip install libtpu` installs it", files => ["libtpu/libtpu.so", "libtpu.so"], variables => ["TESSERA_TPU_PLUGIN", "TPU_LIBRARY_PATH"]}.

variables(Platform) -> maps:get(variables, about(Platform)).

%% The file of the plugin, or none: the file that the environment names, or the last version in the first folder with a plugin.
-spec find(platform()) -> file:filename() | none.
find(Platform) ->
    #{files := Files, variables := Variables} = about(Platform),
    Named = [Path || Variable <- Variables, Path <- [os:getenv(Variable, "")], Path =/= ""],
    Found = [lists:last(lists:sort(Paths)) || Folder <- folders(), File <- Files, [_ | _] = Paths <- [filelib:wildcard(filename:join(Folder, File))]],
    case Named ++ Found of
        [Path | _] -> Path;
        [] -> none
    end.

%% Packages of Python, the active environment's first, and libraries of the system.
folders() ->
    Environments = [Folder || Variable <- ["VIRTUAL_ENV", "CONDA_PREFIX"], Folder <- [os:getenv(Variable, "")], Folder =/= ""],
    Homes = [filename:join(Home, ".local") || Home <- [os:getenv("HOME", "")], Home =/= ""],
    Python = [Folder || Root <- Environments ++ Homes ++ ["/usr/local", "/usr", "/opt/venv"], Kind <- ["site-packages", "dist-packages"],
                        Version <- ["python3.*", "python3"], Folder <- filelib:wildcard(filename:join([Root, "lib", Version, Kind]))],
    Python ++ ["/usr/local/lib", "/usr/lib", filename:join("/usr/lib", triple())].

triple() -> re:replace(erlang:system_info(system_architecture), "-(pc|unknown)-", "-", [{return, list}]).
