# Tessera. `make` builds, `make test` tests, `make run` trains a network.
#   V=1              show commands
#   BUILD=asan|tsan  another variant, in build/<variant>/
#   T=name           one test of test-c or test-erl
include mk/sources.mk

BUILD ?= normal
B := build/$(BUILD)
Q := $(if $(V),,@)
MAKEFLAGS += --no-print-directory --no-builtin-rules
.SUFFIXES:

# ---- tools and flags

# What starts a program that was built, for another machine's (test/aarch64/run.sh).
RUNNER ?=
CC ?= cc
ifeq ($(origin CC),default)
CC := cc
endif
ERLC ?= erlc
ELIXIRC ?= elixirc
# Empty where there is no Elixir.
ELIXIR_STAMP := $(if $(shell command -v $(ELIXIRC) 2>/dev/null),build/elixir.stamp)
ERL ?= erl
LLVM_CONFIG ?= llvm-config-19
PKG_CONFIG ?= pkg-config

ifneq ($(BUILD),fuzz) # another compiler, whose warnings are not checked
WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror
endif
CFLAGS ?= -O2 -g
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -Ic_src -Iinclude -fPIC -fvisibility=hidden -ffp-contract=off $(WARNINGS)
# Variant flags come after CFLAGS, so that -O1 of the sanitizers wins. Their reports want lines, and no types: with -g a
# quarter more time.
# Checks of each pointer before its use take a quarter of the time, and a wrong one ends by AddressSanitizer or the processor.
VARIANT_CFLAGS_asan := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow \
  -fno-sanitize-recover=all
VARIANT_CFLAGS_tsan := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
VARIANT_CFLAGS_fuzz := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# Ops in the table that nothing handles: what the compiler would refuse has to be refused by name at run time.
VARIANT_CFLAGS_rows := -O0 -g0 -DTS_TEST_ROWS -Wno-switch
VARIANT_CFLAGS_rows-asan := $(VARIANT_CFLAGS_rows) $(VARIANT_CFLAGS_asan)
VARIANT_CFLAGS := $(VARIANT_CFLAGS_$(BUILD))
# config.mk has the flags of the usual compiler. That of the fuzzers is clang, which refuses STRUCT_CFLAGS.
ALL_CFLAGS = $(BASE_CFLAGS) $(CFLAGS) $(if $(filter fuzz,$(BUILD)),,$(STRUCT_CFLAGS)) $(VARIANT_CFLAGS)

# Says so before a tool does in its own words. Only checks and rules that write nothing can do without.
ifeq ($(filter check-% format,$(MAKECMDGOALS)),)
ifneq ($(shell [ -w . ] && { [ ! -e build ] || [ -w build ]; } && echo yes),yes)
$(error tessera: $(CURDIR) cannot be written, and everything is built inside of it: take a copy that you own)
endif
endif

# Answers of slow tools are kept in build/config.mk. Only goals that need no
# compiler skip it.
ifneq ($(filter-out clean clean-c check-layers check-words check-parameters check-defaults check-tests check-names format test-harness package,$(or $(MAKECMDGOALS),all)),)
include build/config.mk
endif

# GCC clears and copies structs of some words by `rep stos` and `rep movs` on x86, which take 5 ns to start: by plain stores an
# eager call takes 4 % less.
STRUCT_STRATEGY := unrolled_loop:256:noalign,libcall:-1:noalign
STRUCT_FLAGS := -mmemset-strategy=$(STRUCT_STRATEGY) -mmemcpy-strategy=$(STRUCT_STRATEGY)

# Says what is not there before something less clear does.
missing = { echo "tessera: $(1) is missing; $(CURDIR)/setup installs what the build needs" >&2; exit 1; }
build/config.mk: Makefile
	$(Q)mkdir -p build
	$(Q)for tool in $(firstword $(CC)) $(ERL) $(ERLC) $(LLVM_CONFIG); do \
	  command -v "$$tool" >/dev/null || $(call missing,the program $$tool); done
	$(Q)[ "$$($(ERL) -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')" -ge 25 ] || \
	  { echo "tessera: $(ERL) is older than Erlang/OTP 25" >&2; exit 1; }
	$(Q){ echo "LLVM_CFLAGS := -isystem $$($(LLVM_CONFIG) --includedir)"; \
	  echo "LLVM_LIBS := -L$$($(LLVM_CONFIG) --libdir) $$($(LLVM_CONFIG) --link-shared --libs)"; \
	  echo "ERL_CFLAGS := -isystem $$($(ERL) -noshell -eval 'io:format("~s", [code:root_dir() ++ "/usr/include"]), halt().')"; \
	  echo "STRUCT_CFLAGS := $$($(CC) $(STRUCT_FLAGS) -x c -c -o $@.try /dev/null 2>/dev/null && echo '$(STRUCT_FLAGS)'; rm -f $@.try)"; \
	  echo "CHECK_CFLAGS := $$($(PKG_CONFIG) --cflags check 2>/dev/null)"; \
	  echo "CHECK_LIBS := $$($(PKG_CONFIG) --libs check 2>/dev/null)"; \
	  echo "TEST_LDFLAGS := $$(echo 'int main(void) { return 0; }' | $(CC) -fuse-ld=gold -x c -o $@.try - 2>/dev/null && echo -fuse-ld=gold; rm -f $@.try)"; \
	} > $@.tmp
	$(Q)for header in llvm-c/Core.h erl_nif.h sleef.h xxhash.h; do echo "#include <$$header>" | \
	  $(CC) $$(sed -n 's/^\(LLVM\|ERL\)_CFLAGS := //p' $@.tmp) -E -o /dev/null - 2>/dev/null || $(call missing,the header $$header); done
	$(Q)mv $@.tmp $@

ifneq ($(filter test test-c asan tsan,$(MAKECMDGOALS)),)
ifeq ($(wildcard build/config.mk)$(CHECK_LIBS),build/config.mk)
$(shell rm -f build/config.mk)
$(error tessera: the tests need Debian's package check: $(CURDIR)/setup installs it)
endif
endif

LIBS = -Wl,--as-needed $(LLVM_LIBS) -lsleef -lm -lpthread -ldl

# ---- C

ifneq ($(filter rows%,$(BUILD)),) # the class of ops that test/rows adds
IR_SRC += test/rows/test_ir.c
KERNEL_SRC += test/rows/test_kernel.c
C_TESTS += test_results
endif
CORE_SRC := $(BASE_SRC) $(TENSOR_SRC) $(IR_SRC) $(STABLEHLO_SRC) $(PASS_SRC) $(SHARD_SRC) $(JIT_SRC) $(KERNEL_SRC) $(EXEC_SRC) $(GROUP_SRC) \
            $(DEVICE_SRC) $(PJRT_SRC) $(FRONT_SRC)
CORE_OBJ := $(CORE_SRC:%.c=$(B)/%.o)
BUILTIN_OBJ := $(BUILTIN_SRC:%.c=$(B)/%.o)
NIF_OBJ := $(NIF_SRC:%.c=$(B)/%.o)
TOOL_OBJ := $(TOOL_SRC:%.c=$(B)/%.o)
PLUGIN_OBJ := $(PLUGIN_SRC:%.c=$(B)/%.o)
TEST_OBJ := $(C_TESTS:%=$(B)/test/c/%.o)
TEST_SUPPORT_OBJ := $(TEST_SUPPORT_SRC:%.c=$(B)/%.o)

CORE := $(B)/libtessera_core.a
TEST_SUPPORT := $(if $(TEST_SUPPORT_SRC),$(B)/libtest_support.a)
# Where the application is put together: ebin/ and priv/ of a sanitizer's variant are its own.
APP := $(if $(filter-out normal,$(BUILD)),build/$(BUILD)/app,.)
NIF := $(if $(NIF_SRC),$(APP)/priv/tessera_nif.so)
TOOL := $(if $(TOOL_SRC),$(B)/tessera-opt)
# With a lesser instruction set these would be the tests without the model.
AMX_MODEL_BIN := $(if $(TESSERA_C_ISA)$(filter-out x86_64,$(shell uname -m)),,$(AMX_MODEL_TESTS:%=$(B)/%_model))
TEST_BIN := $(C_TESTS:%=$(B)/%) $(AMX_MODEL_BIN)
PLUGIN := $(B)/pjrt_tessera.so

.PHONY: all core tool nif mpi erl elixir no-elixir native dependency test test-all check test-c test-rows test-rows-erl test-erl asan tsan lint analyze check-layers check-cycles check-words check-parameters check-defaults check-tests check-names format run run-mpi bench bench-random bench-exports bench-models bench-accelerator accelerator-programs accuracy fuzz fuzz-run
.PHONY: test-erl-build test-erl-nodes test-erl-others test-erl-run test-build test-computing test-waiting asan-build asan-c asan-erl async-app
.PHONY: plugin
.PHONY: test-docs test-fuzz clean clean-c test-harness test-golden test-mpi test-hosts test-slurm test-rebar3 test-mix test-xla test-stablehlo example doc plugins
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# The carrier over MPI is a library of its own, only where Open MPI's headers are.
MPI_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags ompi-c 2>/dev/null))
MPI_LIBS := $(shell $(PKG_CONFIG) --libs ompi-c 2>/dev/null)
MPI := $(if $(MPI_LIBS),$(APP)/priv/tessera_mpi.so)

all: core nif mpi tool plugin erl $(if $(ELIXIR_STAMP),,no-elixir)
# For rebar3 (rebar.config): C, and Erlang where make has built it before, for the release of OTP that is there now.
dependency: nif erl/term/tessera_types.hrl
	$(Q)[ ! -d ebin ] || { $(ERL) -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().' >build/otp.tmp && \
	  { cmp -s build/otp.tmp build/otp || { rm -f build/erl.stamp build/elixir.stamp && mv build/otp.tmp build/otp; }; } && $(MAKE) erl; }
# For Mix (mix.exs), which compiles Erlang and Elixir itself.
native: nif mpi erl/term/tessera_types.hrl
core: $(CORE)
nif: $(NIF) $(APP)/priv/tessera_plugin
mpi: $(MPI)
tool: $(TOOL)
plugin: $(PLUGIN)

$(JIT_SRC:%.c=$(B)/%.o) $(BUILTIN_OBJ): EXTRA_CFLAGS = $(LLVM_CFLAGS)
$(NIF_OBJ): EXTRA_CFLAGS = $(ERL_CFLAGS) -fno-plt
# Two words that were just written one by one wait when they are read as one vector: 12 % of a digest's time.
$(filter %/nif_digest_walk.o %/nif_digest_map.o,$(NIF_OBJ)): EXTRA_CFLAGS += -fno-tree-slp-vectorize
# -O3 vectorizes the loops of these files, over partitions, rows and columns; -O2 computes one element at a time. The variants of
# tests keep their own lower levels, which this flag would override: each of scan's files takes ten seconds to compile with -O3.
SCAN_SRC := $(wildcard c_src/kernel/scan/scan_*.c)
ifeq ($(BUILD),normal)
VECTORIZE := -O3
endif
$(B)/c_src/group/collective_reduce.o $(SCAN_SRC:%.c=$(B)/%.o) $(B)/c_src/kernel/scatter.o $(B)/c_src/kernel/scatter_update.o: EXTRA_CFLAGS += $(VECTORIZE)
# A choice between two floats is made without a branch only where no one asks which of them raised an exception.
$(B)/c_src/kernel/gemm/gemm_widen.o $(B)/c_src/kernel/gemm/gemm_widen_avx2.o: EXTRA_CFLAGS += $(VECTORIZE) -fno-trapping-math
$(TEST_OBJ) $(TEST_SUPPORT_OBJ): EXTRA_CFLAGS = $(CHECK_CFLAGS) $(LLVM_CFLAGS)

# Makefile is a prerequisite so that a change of flags rebuilds.
$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC   $<")
	$(Q)$(CC) $(ALL_CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

# Product kernels, compiled by our own JIT (c_src/jit/session/builtin.h). LLVM keeps memory until the process ends.
# What comes after jit/ has no part in them.
$(B)/builtin_main: $(BUILTIN_OBJ) $(filter-out $(patsubst %.c,$(B)/%.o,$(KERNEL_SRC) $(EXEC_SRC) $(GROUP_SRC) $(DEVICE_SRC) $(PJRT_SRC) $(FRONT_SRC)),$(CORE_OBJ))
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

# The table does not depend on sanitizers, under which LLVM takes several times as long: these variants copy the table of
# the usual build where no source is newer.
USUAL_TABLE := build/normal/builtin_table.c
USUAL_TABLE_IS_NEW = [ -f $(USUAL_TABLE) ] && [ -z "$$(find c_src include Makefile mk/sources.mk -type f -newer $(USUAL_TABLE))" ]
$(B)/builtin_table.c: $(B)/builtin_main
	$(if $(V),,@echo "  GEN  $@")
	$(Q)if $(if $(filter asan tsan,$(BUILD)),$(USUAL_TABLE_IS_NEW),false); then cp $(USUAL_TABLE) $@.tmp; \
	  else ASAN_OPTIONS=detect_leaks=0 $(RUNNER) $< > $@.tmp; fi && mv $@.tmp $@

$(B)/builtin_table.o: $(B)/builtin_table.c
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The list of members is a prerequisite too: a file that leaves it must leave the archive.
$(CORE): $(CORE_OBJ) $(B)/builtin_table.o mk/sources.mk
	$(if $(V),,@echo "  AR   $@")
	$(Q)rm -f $@ && ar rcs $@ $(CORE_OBJ) $(B)/builtin_table.o

# By their build ids kernels on disk and ranks of a cluster are told from those of other builds: not all compilers ask for one.
SHARED_FLAGS := -Wl,-z,nodelete -Wl,--build-id=sha1

$(NIF): $(NIF_OBJ) $(CORE)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -shared $(SHARED_FLAGS) -o $@.tmp $(NIF_OBJ) $(CORE) $(LIBS) && mv $@.tmp $@

# The process of a plugin of PJRT (c_src/pjrt/remote.h). It is beside the library, and beside the programs of the tests.
SERVER_OBJ := $(SERVER_SRC:%.c=$(B)/%.o)
$(B)/tessera_plugin: $(SERVER_OBJ) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed -lm -lpthread -ldl
$(APP)/priv/tessera_plugin: $(B)/tessera_plugin
	@mkdir -p $(@D)
	$(Q)cp $< $@.tmp && mv $@.tmp $@
-include $(SERVER_OBJ:.o=.d)

# The same with the asynchronous device of the tests, for DEVICE=async.
ASYNC_APP := build/async/$(BUILD)/tessera
ASYNC_OBJ := $(B)/test/c/async_device.o $(B)/test/c/async_platform.o
$(B)/test/c/async_platform.o: EXTRA_CFLAGS = $(LLVM_CFLAGS)
$(ASYNC_APP)/priv/tessera_nif.so: $(NIF_OBJ) $(ASYNC_OBJ) $(CORE)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -shared $(SHARED_FLAGS) -o $@.tmp $(NIF_OBJ) $(ASYNC_OBJ) $(CORE) $(LIBS) && mv $@.tmp $@

COMM_OBJ := $(COMM_SRC:%.c=$(B)/%.o)
$(COMM_OBJ): EXTRA_CFLAGS = $(MPI_CFLAGS)
$(APP)/priv/tessera_mpi.so: $(COMM_OBJ)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -shared $(SHARED_FLAGS) -o $@.tmp $^ $(MPI_LIBS) -lpthread && mv $@.tmp $@

$(TOOL): $(TOOL_OBJ) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(TOOL_OBJ) $(CORE) $(LIBS)

# For JAX (docs/jax.md). Its process has an LLVM of its own, so no symbol of ours may be seen, nor theirs be taken.
$(PLUGIN): $(PLUGIN_OBJ) $(CORE) c_src/plugin/exports.map
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -shared $(SHARED_FLAGS) -Wl,-Bsymbolic -Wl,--version-script=c_src/plugin/exports.map -o $@.tmp $(PLUGIN_OBJ) $(CORE) $(LIBS) && mv $@.tmp $@

$(TEST_SUPPORT): $(TEST_SUPPORT_OBJ) mk/sources.mk
	$(Q)rm -f $@ && ar rcs $@ $(TEST_SUPPORT_OBJ)

# By gold where it is: 80 programs hold the core and its debug information, and gold takes a quarter of the time of the usual linker.
$(C_TESTS:%=$(B)/%): $(B)/%: $(B)/test/c/%.o $(TEST_SUPPORT) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $< $(TEST_SUPPORT) $(CORE) $(CHECK_LIBS) $(LIBS)

# The same tests, where C functions compute the tiles of AMX (test/c/amx_model.h). These objects take the place of the core's.
AMX_MODEL_OBJ := $(AMX_SRC:%.c=$(B)/amx_model/%.o) $(B)/test/c/amx_model.o
$(B)/amx_model/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC   $< with a model of AMX")
	$(Q)$(CC) $(ALL_CFLAGS) -DTS_AMX_MODEL -Itest/c -MMD -MP -c -o $@ $<
$(B)/test/c/amx_model.o: EXTRA_CFLAGS = -mfma -mavx2
$(AMX_MODEL_TESTS:%=$(B)/%_model): $(B)/%_model: $(B)/test/c/%.o $(AMX_MODEL_OBJ) $(TEST_SUPPORT) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $< $(AMX_MODEL_OBJ) $(TEST_SUPPORT) $(CORE) $(CHECK_LIBS) $(LIBS)

# Plugins of PJRT for tests: one that works, and some that clients refuse.
WRONG_PJRT := SYMBOL NOTHING TINY MAJOR OLD SHORT NOERRORS BEGINS HANGS
PJRT_PLUGINS := $(B)/pjrt_test.so $(WRONG_PJRT:%=$(B)/pjrt_%.so)
$(B)/pjrt_test.so: $(B)/test/pjrt/plugin.o $(B)/test/pjrt/tasks.o $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -shared $(SHARED_FLAGS) -o $@.tmp $^ $(LIBS) && mv $@.tmp $@
# A tracer of the Erlang tests.
$(B)/time_slices.so: test/erl/time_slices.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ERL_CFLAGS) -shared -o $@.tmp $< && mv $@.tmp $@
$(B)/pjrt_%.so: test/pjrt/wrong.c c_src/pjrt/abi.h
	$(Q)$(CC) $(ALL_CFLAGS) -shared -DWRONG=$* -o $@ $<

$(B)/test_platform $(B)/test_pjrt $(B)/test_pjrt_late $(B)/test_pjrt_share $(B)/test_pjrt_split: | $(PJRT_PLUGINS) $(B)/tessera_plugin
$(B)/test_plugin: | $(PLUGIN)
-include $(B)/test/pjrt/plugin.d $(B)/test/pjrt/tasks.d
-include $(PLUGIN_OBJ:.o=.d)
-include $(COMM_OBJ:.o=.d) $(B)/test/mpi/exchanges.d $(B)/test/mpi/graphs.d $(B)/test/mpi/bells.d $(B)/test/mpi/relay.d
-include $(CORE_OBJ:.o=.d) $(BUILTIN_OBJ:.o=.d) $(NIF_OBJ:.o=.d) $(TOOL_OBJ:.o=.d) $(TEST_OBJ:.o=.d) $(TEST_SUPPORT_OBJ:.o=.d)

# ---- Erlang

# The layers in their order (docs/architecture.md): a behaviour is compiled before the modules that implement it.
ERL_LAYERS := term device search trace ops mesh grad api picture io cluster nx app
ERL_SRC := $(foreach layer,$(ERL_LAYERS),$(wildcard erl/$(layer)/*.erl))
ERL_SRC += $(filter-out $(ERL_SRC),$(wildcard erl/*/*.erl))
ERL_TYPES := erl/term/tessera_types.hrl
ERL_HRL := $(sort $(wildcard erl/*/*.hrl include/*.hrl) $(ERL_TYPES))
ERLC_FLAGS := +debug_info -I include
APP_SRC := $(wildcard erl/tessera.app.src)
erl_module_list = $(subst $() ,$(comma),$(patsubst %,'%',$(basename $(notdir $(ERL_SRC)))))
comma := ,

erl: $(if $(ERL_SRC),build/erl.stamp build/shell-docs.stamp) elixir $(if $(APP_SRC),ebin/tessera.app)

$(ERL_TYPES): c_src/tensor/dtype.def mk/types.awk
	$(Q)awk -f mk/types.awk $< > $@

# Sources without a .beam: ebin/ was removed, or comes from another version.
ERL_MISSING := $(strip $(foreach m,$(ERL_SRC),$(if $(wildcard ebin/$(basename $(notdir $m)).beam),,$m)))
ERL_CHANGED = $(filter $(if $(filter-out %.erl missing-beams,$?),%,$? $(ERL_MISSING)),$(ERL_SRC))

# One erlc for all that changed: starting it costs more than compiling a module.
build/erl.stamp: $(ERL_SRC) $(ERL_HRL) Makefile $(if $(ERL_MISSING),missing-beams)
	@mkdir -p ebin build
	$(if $(V),,@echo "  ERLC $(words $(ERL_CHANGED)) modules")
	$(Q)$(ERLC) $(ERLC_FLAGS) -Werror -pa ebin -o ebin $(ERL_CHANGED)
	@touch $@
.PHONY: missing-beams
missing-beams: ;

# What the shell's h prints. A .beam file that a build did not touch keeps its documentation.
PUBLIC_SRC := $(wildcard $(PUBLIC_SRC))
PUBLIC_BEAM := $(patsubst %.erl,ebin/%.beam,$(notdir $(PUBLIC_SRC)))
$(PUBLIC_BEAM): build/erl.stamp ;
build/shell-docs.stamp: $(PUBLIC_BEAM) mk/shell-docs.escript
	$(if $(V),,@echo "  DOCS $(PUBLIC_SRC)")
	$(Q)mk/shell-docs.escript $(PUBLIC_SRC) ebin
	@touch $@

# Elixir's compiler writes protocols' implementations, too, so its modules are listed from ebin/.
ebin/tessera.app: $(APP_SRC) $(ERL_SRC) $(ELIXIR_STAMP)
	@mkdir -p ebin
	$(Q)sed "s/{modules, *\[\]}/{modules, [$(erl_module_list)$(if $(ELIXIR_STAMP),$$(for beam in ebin/Elixir.*.beam; do \
	  printf ",'%s'" "$$(basename "$$beam" .beam)"; done))]}/" $< > $@

# ---- Elixir: lib/, over the modules of erl/nx/, where there is an Elixir (docs/elixir.md)

ELIXIR_SRC := $(sort $(wildcard lib/*.ex lib/*/*.ex lib/*/*/*.ex))
elixir: $(ELIXIR_STAMP)
# All at once: that takes a second or two. The compiler would find the modules of the last build in ebin/. It wants a locale with UTF-8.
build/elixir.stamp: $(ELIXIR_SRC) Makefile $(if $(wildcard ebin/Elixir.Tessera.Mesh.beam),,missing-beams) | build/erl.stamp
	$(if $(V),,@echo "  ELIXIRC $(words $(ELIXIR_SRC)) files")
	$(Q)rm -f ebin/Elixir.*.beam
	$(Q)LC_ALL=C.UTF-8 $(ELIXIRC) --warnings-as-errors -pa ebin -o ebin $(ELIXIR_SRC)
	@touch $@
no-elixir:
	@echo "tessera: there is no Elixir here ($(ELIXIRC)), so lib/ is left out, which is for Nx; all of the Erlang API is built"

# $(call erl_compile,FOLDERS,NAME[,FILES]): compiles FOLDER/*.erl of each into build/NAME/, but for these files. What is
# as new as its sources is not written: another make may be running it.
define erl_compile
	@mkdir -p build/$(2)
	$(Q)echo $(filter-out $(3),$(wildcard $(addsuffix /*.erl,$(1)))) | cmp -s - build/$(2)/sources && \
	  [ -z "$$(find $(1) include build/erl.stamp Makefile -newer build/$(2)/sources)" ] || { rm -f build/$(2)/sources && \
	  $(ERLC) $(ERLC_FLAGS) -Werror -pa ebin -o build/$(2) $(filter-out $(3),$(wildcard $(addsuffix /*.erl,$(1)))) && \
	  echo $(filter-out $(3),$(wildcard $(addsuffix /*.erl,$(1)))) >build/$(2)/sources; }
endef

include mk/precompiled.mk

# ---- tests
#   make check      before each commit: lints, and the quick tests
#   make test       everything a user's machine should pass
#   make test-all   before a release: with all that .ci/run has no time for

# What tests compile is kept here, not in the user's cache.
test-harness test-c test-golden test-mpi test-rows test-rows-erl test-erl test-erl-nodes test-erl-others test-rebar3 test-mix test-docs test-xla test-pjrt test-cuda test-jax fuzz-run: export TESSERA_CACHE_DIR ?= $(CURDIR)/build/test-cache

# Where a VM ends in an error, as some tests want it, its dump does not stay beside the sources.
test-harness test-c test-golden test-mpi test-rows test-rows-erl test-erl test-erl-nodes test-erl-others test-rebar3 test-mix test-docs test-xla: export ERL_CRASH_DUMP ?= $(CURDIR)/build/erl_crash.dump

# What a make runs beside the first of its goals, even where make is not told to build in parallel.
BESIDE = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j2)

# Everything is built first. Then what computes, which uses all CPUs by itself, runs beside what waits for processes and
# cables; each of both one after the other.
test:
	$(Q)$(MAKE) test-harness
	$(Q)$(MAKE) test-build
	$(Q)$(MAKE) $(BESIDE) test-computing test-waiting

# The asynchronous device is C code, which is the same on both Debians, so of the two halves (test/c/testing.h) only the
# first, TESSERA_HALF=0, runs the tests on it. What waits has the higher priority: it needs little of the CPUs, and soon.
TEST_ASYNC = $(if $(filter 1,$(TESSERA_HALF)),,yes)
test-computing:
	$(Q)nice -n 5 $(MAKE) test-c
	$(Q)nice -n 5 $(MAKE) test-golden
	$(Q)$(MAKE) test-erl-others
	$(if $(TEST_ASYNC),$(Q)$(MAKE) test-erl DEVICE=async T="$(ASYNC_MODULES)",@echo "Erlang tests on the asynchronous device: left out; the other half runs them")
	$(Q)$(MAKE) test-rebar3
	$(Q)$(MAKE) test-mix

test-waiting:
	$(Q)$(MAKE) test-mpi
	$(Q)$(MAKE) test-erl-nodes

# With all that .ci/run has no time for; docs/tests.md says why each can wait.
test-all:
	$(Q)$(MAKE) lint analyze
	$(Q)$(MAKE) test
	$(Q)$(MAKE) test-rows
	$(Q)TESSERA_TIMED=yes $(MAKE) test-erl T="$(TIMED_MODULES)"
	$(Q)TESSERA_TIMED=yes TESSERA_RANDOM_COUNT=500 $(MAKE) test-mpi
	$(Q)$(MAKE) test-slurm
	$(Q)$(MAKE) test-docs
	$(Q)$(MAKE) test-packages ALL=yes
	$(Q)TESSERA_EVERY_ISA=yes TESSERA_EVERY_CASE=yes $(MAKE) test-c
	$(Q)TESSERA_RANDOM_SEED=100000 TESSERA_RANDOM_COUNT=1500 $(MAKE) test-c T="test_compiled test_shard test_round_trip test_round_trip_mesh"
	$(Q)TESSERA_EVERY_CASE=yes $(MAKE) asan ALL=yes
	$(Q)$(MAKE) tsan ALL=yes
	$(Q)$(MAKE) fuzz

# What has changed since BASE, by clang-tidy with its analyzer; of the tests, those that take seconds.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || echo HEAD)
CHANGED = $(shell git diff --name-only --diff-filter=d $(BASE) -- 'c_src/*.c'; git ls-files --others --exclude-standard -- 'c_src/*.c')
check: check-layers check-cycles check-words check-parameters check-defaults check-tests check-names
	$(Q)$(if $(strip $(CHANGED)),ANALYZE=yes,TIDY=no) LINT_CFLAGS="$(LLVM_CFLAGS) $(ERL_CFLAGS) $(MPI_CFLAGS)" mk/lint.sh $(CHANGED)
	$(Q)$(MAKE) all check-erl-layers
	$(Q)$(MAKE) test-c T="$(CHECK_C)"
	$(Q)$(MAKE) test-golden
	$(Q)$(MAKE) test-erl T="$(CHECK_ERL)"

# What runs the next ones.
test-harness:
	@test/harness/run.sh

test-c: $(if $(T),$(T:%=$(B)/%),$(TEST_BIN))
	@BUILD=$(BUILD) RUNNER="$(RUNNER)" mk/run-c-tests.sh $^

# UPDATE=1 rewrites the expected outputs. The sanitizers' shadow memory clashes with some random addresses.
WITHOUT_ASLR = $(if $(filter %asan tsan,$(BUILD)),$(shell setarch -R true 2>/dev/null && echo setarch -R))
test-golden: $(TOOL)
	@BUILD=$(BUILD) $(if $(TESSERA_C_ISA),TESSERA_ISA="$(TESSERA_C_ISA)") $(WITHOUT_ASLR) test/golden/run.sh
	@BUILD=$(BUILD) $(if $(TESSERA_C_ISA),TESSERA_ISA="$(TESSERA_C_ISA)") $(WITHOUT_ASLR) test/golden/tool.sh

# The carrier over MPI, and random programs on ranks, by mpirun.
MPI_TESTS := $(if $(MPI),$(B)/mpi_exchanges $(B)/mpi_graphs)
MPI_BELLS := $(if $(MPI),$(B)/mpi_bells)
$(B)/test/mpi/graphs.o: EXTRA_CFLAGS = -Itest/c
$(MPI_TESTS): $(B)/mpi_%: $(B)/test/mpi/%.o $(TEST_SUPPORT) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $< $(TEST_SUPPORT) $(CORE) $(CHECK_LIBS) $(LIBS)

$(B)/test/mpi/bells.o: EXTRA_CFLAGS = $(MPI_CFLAGS)
$(MPI_BELLS): $(B)/test/mpi/bells.o $(B)/c_src/comm/bells.o
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(MPI_LIBS) -lpthread

test-mpi: $(MPI) $(MPI_TESTS) $(MPI_BELLS)
	@test/mpi/run.sh $(if $(MPI),$(B) $(MPI))
	$(Q)$(MAKE) test-hosts

# A slow cable between hosts.
$(B)/mpi_relay: $(B)/test/mpi/relay.o
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $<

test-hosts: all $(B)/mpi_relay
	$(call erl_compile,test/mpi,test-mpi)
	@ERL=$(ERL) test/mpi/hosts.sh $(B)/mpi_relay

# What make test consists of.
test-build: test-erl-build $(TEST_BIN) $(MPI_TESTS) $(MPI_BELLS) $(B)/mpi_relay $(if $(TEST_ASYNC),async-app)
	$(call erl_compile,test/mpi,test-mpi)

test-slurm: all
	$(call erl_compile,test/mpi,test-mpi)
	@ERL=$(ERL) test/mpi/slurm.sh

# A table with ops that no layer knows, and with a class of ops that all know, in a build of its own.
ROWS := rows$(if $(filter asan,$(BUILD)),-asan)
ROWS_TESTS := test_results test_random test_compiled test_pass
test-rows:
	$(Q)$(MAKE) BUILD=$(ROWS) tool
	@BUILD=$(ROWS) test/rows/run.sh build/$(ROWS)/tessera-opt '$(CC) $(BASE_CFLAGS)'
	$(Q)$(MAKE) BUILD=$(ROWS) test-c T="$(ROWS_TESTS)"
	$(Q)$(MAKE) BUILD=$(ROWS) test-rows-erl

test-rows-erl: all
	$(call erl_compile,test/rows,test-rows)
	$(Q)rm -rf $(APP)/ebin && cp -r ebin $(APP)/ebin
	$(Q)$(ERL_ENV) $(ERL) -noshell -pa $(APP)/ebin build/test-rows -eval \
	  'case eunit:test(tessera_results_tests) of ok -> halt(0); error -> halt(1) end.'

# As a dependency, in a fresh project.
test-rebar3:
	@test/rebar3/run.sh

# As a dependency of a Mix application.
test-mix: all
	@test/mix/run.sh

# The commands of the documentation.
test-docs: all
	@test/docs/run.sh

EUNIT_MODULES := $(basename $(notdir $(wildcard test/erl/*_tests.erl)))
EUNIT_RUN = $(filter-out $(LEFT_OUT),$(if $(T),$(filter $(T),$(EUNIT_MODULES)),$(EUNIT_MODULES)))
# What cannot be compiled without PropEr: Debian's erlang-proper-dev, or another that ERL_LIBS says. Asked once.
LEFT_OUT = $(eval LEFT_OUT := $$(if $$(shell $$(ERL) -noshell -eval '[io:put_chars("yes") || is_list(code:lib_dir(proper))], \
  halt().'),,tessera_props_tests))$(LEFT_OUT)

# The runtime system itself is not instrumented, so the sanitizer's library comes first by force. What the
# runtime system allocates and keeps is not a leak of ours.
ERL_ENV_asan = TESSERA_SANITIZER=asan LD_PRELOAD=$(shell $(CC) -print-file-name=libasan.so) \
  ASAN_OPTIONS=detect_leaks=0:use_sigaltstack=0:abort_on_error=1:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
ERL_ENV_rows-asan = $(ERL_ENV_asan)
ERL_ENV = $(ERL_ENV_$(BUILD))

# A node that a test ends has not passed. PART is the part of the suite that this make runs, if it runs one.
EUNIT_PASSED = build/test-erl/passed-$(BUILD)$(DEVICE)$(PART)
EUNIT_BEGUN = build/test-erl/begun-$(BUILD)$(DEVICE)$(PART)
EUNIT_EVAL = case tessera_eunit:run("Erlang tests$(PART:%= of %)", [$(subst $() ,$(comma),$(strip $(EUNIT_RUN)))]) of \
  true -> ok = file:write_file("$(EUNIT_PASSED)", []), halt(0); false -> halt(1) end.

# Plugins for tests: the example of docs/plugins.md, one of the first version, and some that are refused.
WRONG_PLUGINS := SYMBOL NOTHING VERSION UNNAMED LIES TWICE TAKEN NORUN TARGET MINUS NONE BEYOND NOWHERE LATIN LONG STRAY VARIABLE
PLUGINS := build/plugin/example.so build/plugin/version1.so $(WRONG_PLUGINS:%=build/plugin/%.so)
plugins: $(PLUGINS)
build/plugin/example.so build/plugin/version1.so: build/plugin/%.so: test/plugin/%.c include/tessera_plugin.h
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -O2 -g -Wall -Wextra -Werror -Iinclude -fPIC -shared -fvisibility=hidden -o $@ $<
build/plugin/%.so: test/plugin/wrong.c include/tessera_plugin.h
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -O2 -Wall -Wextra -Werror -Wno-unused -Iinclude -fPIC -shared -fvisibility=hidden -DWRONG=$* -o $@ $<

# Those that make test runs on the asynchronous device.
ASYNC_MODULES := tessera_device_tests tessera_control_tests tessera_jit_tests tessera_mesh_tests tessera_nx_compiler_tests tessera_shard_map_tests tessera_small_tests tessera_tensor_tests
# DEVICE=async runs the tests on the asynchronous device of the tests, as the default client.
ifeq ($(DEVICE),async)
TESTED := $(ASYNC_APP)
TESTED_FLAGS := -config test/erl/async
else
TESTED := $(APP)
# DEVICE=pjrt does so on the first device of a plugin, of which PJRT_PLUGIN is the file.
TESTED_FLAGS := $(if $(filter pjrt,$(DEVICE)),-config test/erl/pjrt)
endif
PJRT_PLUGIN ?= $(CURDIR)/$(B)/pjrt_test.so
PJRT_ENV = TESSERA_TEST_PJRT="$(CURDIR)/$(B)/pjrt_test.so" TESSERA_TEST_TIME_SLICES="$(CURDIR)/$(B)/time_slices" $(if $(filter pjrt,$(DEVICE)),TESSERA_PJRT_PLUGIN="$$(realpath "$(PJRT_PLUGIN)")")
async-app: all $(ASYNC_APP)/priv/tessera_nif.so
	$(Q)rm -rf $(ASYNC_APP)/ebin && cp -r ebin $(ASYNC_APP)/ebin && ln -sfn "$(CURDIR)/examples" $(ASYNC_APP)/examples
	$(Q)cp $(B)/tessera_plugin $(ASYNC_APP)/priv
	$(if $(MPI),$(Q)cp $(MPI) $(ASYNC_APP)/priv)

# What the Erlang tests consist of.
test-erl-build: all plugins $(PJRT_PLUGINS) $(B)/time_slices.so
	$(if $(LEFT_OUT),$(Q)echo "Erlang tests: no PropEr here: left out: $(LEFT_OUT)"; [ -z "$$TESSERA_CI" ])
	$(call erl_compile,test/erl,test-erl,$(LEFT_OUT:%=test/erl/%.erl))
	$(if $(filter-out .,$(APP)),$(Q)rm -rf $(APP)/ebin && cp -r ebin $(APP)/ebin && ln -sfn "$(CURDIR)/examples" $(APP)/examples)

# Modules whose tests start clusters and other nodes, and wait for them: the whole suite runs them beside the others, in a VM of their own.
NODES_MODULES := $(filter tessera_cluster_%,$(EUNIT_MODULES)) tessera_events_tests tessera_example_tests tessera_proxy_tests tessera_remote_tests
test-erl: test-erl-build $(if $(filter async,$(DEVICE)),async-app)
	$(if $(filter-out $(EUNIT_MODULES),$(T)),$(error tessera: test/erl has no $(filter-out $(EUNIT_MODULES),$(T))))
	$(Q)$(MAKE) $(if $(T),test-erl-run,$(BESIDE) test-erl-nodes test-erl-others)

test-erl-nodes:
	$(Q)$(MAKE) test-erl-run PART=nodes T="$(NODES_MODULES)"
test-erl-others:
	$(Q)$(MAKE) test-erl-run T="$(filter-out $(NODES_MODULES),$(EUNIT_MODULES))"
test-erl-run:
	$(Q)rm -f $(EUNIT_PASSED) && touch $(EUNIT_BEGUN)
	$(Q)$(PJRT_ENV) $(ERL_ENV) $(ERL) -noshell -pa $(TESTED)/ebin build/test-erl $(TESTED_FLAGS) -eval '$(EUNIT_EVAL)' && test -f $(EUNIT_PASSED)
	$(Q)[ -z "$$(find . -maxdepth 1 -name erl_crash.dump -newer $(EUNIT_BEGUN))" ] || \
	  { echo "Erlang tests: a VM has left its erl_crash.dump beside the sources" >&2; exit 1; }

# Modules that judge times on the clock where TESSERA_TIMED is set. With a sanitizer ranks take many times as long to report.
TIMED_MODULES := tessera_cluster_fault_tests tessera_proxy_tests tessera_remote_tests
ASAN_LEFT_OUT := tessera_cluster_fault_tests

# Fewer random programs than without it: each takes many times as long. Of the Erlang tests, those of the NIFs, as the
# other modules reach no C code that these and the C tests do not; with ALL, nearly all, and the rows,
# whose variant has code of its own in the tests only. Erlang's VM keeps one CPU busy, beside the C tests.
asan:
	@echo "Erlang tests with AddressSanitizer: left out, as they $(if $(ALL),take many times as long: $(ASAN_LEFT_OUT),are not of the NIFs (make test-all): $(filter-out $(NIF_MODULES),$(EUNIT_MODULES)))"
	$(Q)$(MAKE) BUILD=asan asan-build
	$(Q)$(MAKE) BUILD=asan $(BESIDE) asan-c asan-erl
	$(if $(ALL),$(Q)$(MAKE) BUILD=asan test-rows)

asan-build: test-erl-build $(TEST_BIN)

asan-c:
	$(Q)TESSERA_RANDOM_COUNT=$${TESSERA_RANDOM_COUNT:-100} $(MAKE) test-c
	$(Q)$(MAKE) test-golden
	$(Q)$(MAKE) test-fuzz

asan-erl:
	$(Q)$(MAKE) test-erl T="$(if $(ALL),$(filter-out $(ASAN_LEFT_OUT),$(EUNIT_MODULES)),$(NIF_MODULES))"

tsan:
	@echo "C tests with ThreadSanitizer: left out, as threads share the same data there: lesser instruction sets"
	$(Q)$(MAKE) BUILD=tsan test-c T="$(or $(T),$(if $(ALL),$(TSAN_TESTS),$(TSAN_FEW)))"
	$(if $(ALL),$(Q)$(MAKE) BUILD=tsan test-golden)

# ---- programs

run: all
	$(call erl_compile,examples,examples)
	$(Q)$(ERL) -noshell -pa ebin build/examples -s digits main -s init stop

# On four ranks, which mpirun starts; HOSTS, LISTEN, RANKS and THREADS: examples/cluster_digits.erl.
run-mpi: all
	$(if $(MPI),,$(Q)echo "tessera: no Open MPI here: $(CURDIR)/setup --mpi installs it" >&2; exit 1)
	$(call erl_compile,examples,examples)
	$(Q)$(ERL) -noshell -pa ebin build/examples -s cluster_digits main -s init stop

# Another of examples/: make example E=mandelbrot
example: all
	$(if $(and $(E),$(wildcard examples/$(E).erl)),,$(error tessera: make example E=NAME, of $(basename $(notdir $(wildcard examples/*.erl)))))
	$(call erl_compile,examples,examples)
	$(Q)$(ERL) -noshell -pa ebin build/examples -s $(E) main -s init stop

export JSON ONLY BUDGET PEERS
bench: all $(if $(MPI_LIBS),build/bench/peer_mpi)
	$(call erl_compile,bench,bench)
	$(Q)$(ERL) -noshell -pa ebin build/bench -s tessera_bench main -s init stop

# Drawn workloads, and their results compared with the peers': make bench-random SEED=1 COUNT=50 PEERS=python3
bench-random: all
	$(call erl_compile,bench,bench)
	$(Q)SEED="$(SEED)" COUNT="$(COUNT)" ELEMENTS="$(ELEMENTS)" AT="$(AT)" $(ERL) -noshell -pa ebin build/bench -s tessera_random_bench main -s init stop

# Programs that JAX exports, beside XLA on the same text: make bench-exports PEERS=python3 [ONLY=name,name]
bench-exports: all
	$(call erl_compile,bench,bench)
	$(Q)$(if $(PEERS),$(PEERS),python3) bench/exports.py $(subst $(comma), ,$(ONLY))

# Whole models, beside XLA, torch, ONNX Runtime and OpenVINO: make bench-models PEERS=python3 [MODELS=name,name] [TURNS=5] [SECONDS=1]
bench-models: all
	$(call erl_compile,bench,bench)
	$(Q)$(if $(PEERS),$(PEERS),python3) bench/models/run.py $(if $(TURNS),--turns $(TURNS)) $(if $(SECONDS),--seconds $(SECONDS)) $(subst $(comma), ,$(MODELS))

# On the device of a PJRT plugin, PJRT_PLUGIN=FILE; bench/peer_accelerator.py is JAX.
bench-accelerator: all
	$(call erl_compile,bench,bench)
	$(Q)TESSERA_PJRT_PLUGIN="$$(realpath "$(PJRT_PLUGIN)")" $(ERL) -noshell -pa ebin build/bench -s tessera_accelerator main -s init stop

# What XLA for GPUs makes of the same programs and of JAX's, without a GPU: make accelerator-programs PEERS=python3 [ONLY=name,name]
accelerator-programs: all
	$(call erl_compile,bench,bench)
	$(Q)mkdir -p build/bench/programs
	$(Q)$(ERL) -noshell -pa ebin build/bench -run tessera_accelerator write build/bench/programs -s init stop
	$(Q)$(if $(PEERS),$(PEERS),python3) bench/accelerator_programs.py $(TOOL) build/bench/programs $(subst $(comma), ,$(ONLY))

build/bench/peer_mpi: bench/peer_mpi.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(MPI_CFLAGS) -o $@ $< $(MPI_LIBS)

# Largest errors of the unary functions, ARGS="[stride [function ...]]": test/c/accuracy.c.
$(B)/accuracy: $(B)/test/c/accuracy.o $(TEST_SUPPORT) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(TEST_SUPPORT) $(CORE) $(LIBS)

accuracy: $(B)/accuracy
	$(Q)$< $(ARGS)

# Random and recorded programs run by XLA too, of the jax that $(PEERS) has: test/xla/run.py.
XLA_SEED ?= 1
XLA_COUNT ?= 100
XLA_OBJ := $(B)/test/xla/cases.o $(B)/test/xla/ops.o
$(B)/xla_cases: $(XLA_OBJ) $(TEST_SUPPORT) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(XLA_OBJ) $(TEST_SUPPORT) $(CORE) $(LIBS)

$(XLA_OBJ): EXTRA_CFLAGS = -Itest/c
-include $(AMX_MODEL_OBJ:.o=.d)
-include $(XLA_OBJ:.o=.d)

.PHONY: xla-cases test-pjrt test-cuda test-jax
xla-cases: all $(B)/xla_cases
	$(call erl_compile,test/erl test/xla,test-erl)
	$(Q)rm -rf $(B)/xla && mkdir -p $(B)/xla/recorded $(B)/xla/cases
	$(Q)$(B)/xla_cases ops $(B)/xla/cases
	$(Q)$(B)/xla_cases random $(B)/xla/cases $(XLA_SEED) $(XLA_COUNT)
	$(Q)$(ERL) -noshell -pa ebin build/test-erl -eval \
	  'xla_recorded:write("$(B)/xla/recorded"), halt().'
	$(Q)$(B)/xla_cases recorded $(B)/xla/cases $(B)/xla/recorded/*.ts

test-xla: xla-cases
	$(Q)JAX_PLATFORMS=cpu $(or $(PEERS),python3) test/xla/run.py $(B)/xla/cases

# StableHLO's own programs: STABLEHLO is a copy of its repository. WORDS: those whose files' names contain one.
test-stablehlo:
	$(Q)test/stablehlo/judge.escript "$(STABLEHLO)" $(WORDS)

# The same programs on the first device of a plugin, of which PJRT_PLUGIN is the file. $(PEERS) needs ml_dtypes and numpy.
PJRT_CASES_OBJ := $(B)/test/pjrt/cases.o
$(PJRT_CASES_OBJ): EXTRA_CFLAGS = -Itest/c
$(B)/pjrt_cases: $(PJRT_CASES_OBJ) $(TEST_SUPPORT) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(PJRT_CASES_OBJ) $(TEST_SUPPORT) $(CORE) $(LIBS)
-include $(PJRT_CASES_OBJ:.o=.d)

test-pjrt: export FOR_PLUGIN = 1
test-pjrt: xla-cases $(B)/pjrt_cases
	$(Q)test/pjrt/run.sh $(B) "$$(realpath "$(PJRT_PLUGIN)")" $(or $(PEERS),python3)

# One command for a machine with an NVIDIA GPU: the programs above, tests and timings on the plugin of CUDA, which is found.
test-cuda: all $(B)/test_platform
	$(Q)ERL="$(ERL)" MAKE="$(MAKE)" test/pjrt/cuda.sh $(B) $(or $(PEERS),python3)

# JAX's own tests on our plugin, beside XLA's CPU: JAX is a checkout of its repository (docs/jax.md).
JAX_FILES ?=
test-jax: $(PLUGIN)
	$(Q)$(or $(PEERS),python3) test/jax/run.py $(PLUGIN) "$(JAX)" $(B)/jax $(JAX_FILES)

# The corpora and changed ones, with the objects of any build: a seed of the day, which a failure prints.
FUZZ_RUNS ?= 2000
FUZZ_SEED ?= $(shell date +%Y%m%d)
REPLAYS := $(FUZZERS:fuzz_%=$(B)/replay_%)
.PRECIOUS: $(FUZZERS:%=$(B)/test/fuzz/%.o)
$(REPLAYS): $(B)/replay_%: $(B)/test/fuzz/replay.o $(B)/test/fuzz/fuzz_%.o $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

asan-build: $(REPLAYS)
-include $(B)/test/fuzz/replay.d $(FUZZERS:%=$(B)/test/fuzz/%.d)

# The files that the fuzzer $(1) begins with: those of StableHLO are recorded programs of other tests.
corpus = $$(find test/fuzz/corpus/fuzz_$(1) $$([ $(1) != stablehlo ] || echo test/stablehlo/*.mlir test/stablehlo/generic/*) -type f 2>/dev/null | sort)

test-fuzz: $(REPLAYS)
	@for f in $(FUZZERS:fuzz_%=%); do $(WITHOUT_ASLR) $(B)/replay_$$f $(FUZZ_SEED) $(FUZZ_RUNS) $(B)/found_$$f $(call corpus,$$f) || \
	  { echo "fuzz_$$f fails, seed $(FUZZ_SEED); the input: $(B)/found_$$f"; echo "fuzz: 0 passed, 1 failed"; exit 1; }; done
	@echo "fuzz: $(words $(FUZZERS)) passed, 0 failed"

# Each fuzzer for FUZZ_SECONDS, from its corpus.
FUZZ_SECONDS ?= 60
FUZZ_CC ?= $(firstword $(shell command -v clang-19 clang 2>/dev/null) clang)
fuzz:
	$(Q)$(MAKE) BUILD=fuzz CC=$(FUZZ_CC) fuzz-run

fuzz-run: $(FUZZERS:%=$(B)/%)
	$(Q)for f in $(FUZZERS:fuzz_%=%); do mkdir -p $(B)/corpus/fuzz_$$f && { [ -z "$(call corpus,$$f)" ] || cp $(call corpus,$$f) $(B)/corpus/fuzz_$$f; } && \
	  $(B)/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -artifact_prefix=$(B)/fuzz_$$f- $(B)/corpus/fuzz_$$f || exit 1; done

$(FUZZERS:%=$(B)/%): $(B)/%: $(B)/test/fuzz/%.o $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $< $(CORE) $(LIBS)

# The site: pages, reference and search, in build/doc/index.html. A link that leads nowhere is an error, and EDoc's warnings are errors.
doc: doc_files = $(subst $() ,$(comma),$(PUBLIC_SRC:%="%"))
doc: edoc_options = [{dir,"build/edoc"},{includes,["include"]},{preprocess,true},{title,"Tessera"}]
doc: erl
	$(Q)rm -rf build/doc build/edoc && mkdir -p build/edoc
	$(Q)$(ERL) -noshell -eval 'edoc:files([$(doc_files)], $(edoc_options)), halt().' 2>&1 | tee build/doc.log
	@test ! -s build/doc.log && test -s build/edoc/tessera.html
	$(Q)mk/site.escript build/doc $(PUBLIC_BEAM) $(wildcard ebin/Elixir.*.beam)

# ---- checks of the sources

lint: check-layers check-cycles check-words check-parameters check-defaults check-tests check-names
	$(Q)LINT_CFLAGS="$(LLVM_CFLAGS) $(ERL_CFLAGS) $(MPI_CFLAGS)" mk/lint.sh $(FILES)
	$(Q)$(MAKE) check-erl-layers
	$(call erl_compile,bench,bench)
	$(call erl_compile,examples,examples)
	$(Q)mk/lint-erl.sh

# clang-tidy with its analyzer, which follows paths: 99 % of its time.
analyze:
	$(Q)ANALYZE=yes LINT_CFLAGS="$(LLVM_CFLAGS) $(ERL_CFLAGS) $(MPI_CFLAGS)" mk/lint.sh $(FILES)

check-layers:
	$(Q)mk/check-layers.sh

check-erl-layers: erl
	$(Q)mk/check-erl-layers.escript

check-cycles: $(CORE)
	$(Q)mk/check-cycles.sh $(B)

check-words:
	$(Q)mk/check-words.sh

check-parameters:
	$(Q)mk/check-parameters.sh

check-defaults:
	$(Q)mk/check-defaults.sh

check-tests:
	$(Q)mk/check-tests.sh

check-names:
	$(Q)mk/check-names.sh

format:
	$(Q)FORMAT=fix mk/lint.sh

clean-c:
	$(Q)mk/native.sh clean

clean: clean-c
	$(Q)rm -rf ebin $(ERL_TYPES)
