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
ERL ?= erl
LLVM_CONFIG ?= llvm-config-19
PKG_CONFIG ?= pkg-config

ifneq ($(BUILD),fuzz) # another compiler, whose warnings nobody looks at
WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror
endif
CFLAGS ?= -O2 -g
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -Ic_src -Iinclude -fPIC -fvisibility=hidden -ffp-contract=off $(WARNINGS)
# Variant flags come after CFLAGS, so that -O1 of the sanitizers wins.
VARIANT_CFLAGS_asan := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
VARIANT_CFLAGS_tsan := -O1 -fno-omit-frame-pointer -fsanitize=thread
VARIANT_CFLAGS_fuzz := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
VARIANT_CFLAGS := $(VARIANT_CFLAGS_$(BUILD))
ALL_CFLAGS = $(BASE_CFLAGS) $(CFLAGS) $(VARIANT_CFLAGS)

# Answers of slow tools are kept in build/config.mk. Only goals that need no
# compiler skip it.
ifneq ($(filter-out clean clean-c check-layers format,$(or $(MAKECMDGOALS),all)),)
include build/config.mk
endif

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
	  echo "CHECK_CFLAGS := $$($(PKG_CONFIG) --cflags check 2>/dev/null)"; \
	  echo "CHECK_LIBS := $$($(PKG_CONFIG) --libs check 2>/dev/null)"; \
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

CORE_SRC := $(BASE_SRC) $(TENSOR_SRC) $(IR_SRC) $(PASS_SRC) $(JIT_SRC) $(KERNEL_SRC) $(EXEC_SRC)
CORE_OBJ := $(CORE_SRC:%.c=$(B)/%.o)
BUILTIN_OBJ := $(BUILTIN_SRC:%.c=$(B)/%.o)
NIF_OBJ := $(NIF_SRC:%.c=$(B)/%.o)
TOOL_OBJ := $(TOOL_SRC:%.c=$(B)/%.o)
TEST_OBJ := $(C_TESTS:%=$(B)/test/c/%.o)
TEST_SUPPORT_OBJ := $(TEST_SUPPORT_SRC:%.c=$(B)/%.o)

CORE := $(B)/libtessera_core.a
TEST_SUPPORT := $(if $(TEST_SUPPORT_SRC),$(B)/libtest_support.a)
# Where the application is put together: ebin/ and priv/ of a sanitizer's variant are its own.
APP := $(if $(filter-out normal,$(BUILD)),build/$(BUILD)/app,.)
NIF := $(if $(NIF_SRC),$(APP)/priv/tessera_nif.so)
TOOL := $(if $(TOOL_SRC),$(B)/tessera-opt)
TEST_BIN := $(C_TESTS:%=$(B)/%)

.PHONY: all core tool nif erl dependency test test-c test-erl asan tsan lint check-layers format run bench accuracy fuzz fuzz-run
.PHONY: clean clean-c test-golden test-rebar3 test-mix test-xla example doc
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

all: core nif tool erl
# For rebar3 (rebar.config): C, and Erlang where make has built it before, for the release of OTP that is there now.
dependency: nif
	$(Q)[ ! -d ebin ] || { $(ERL) -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().' >build/otp.tmp && \
	  { cmp -s build/otp.tmp build/otp || { rm -f build/erl.stamp && mv build/otp.tmp build/otp; }; } && $(MAKE) erl; }
core: $(CORE)
nif: $(NIF)
tool: $(TOOL)

$(JIT_SRC:%.c=$(B)/%.o) $(BUILTIN_OBJ): EXTRA_CFLAGS = $(LLVM_CFLAGS)
$(NIF_OBJ): EXTRA_CFLAGS = $(ERL_CFLAGS) -fno-plt
$(TEST_OBJ) $(TEST_SUPPORT_OBJ): EXTRA_CFLAGS = $(CHECK_CFLAGS) $(LLVM_CFLAGS)

# Makefile is a prerequisite so that a change of flags rebuilds.
$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC   $<")
	$(Q)$(CC) $(ALL_CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

# Product kernels, compiled by our own JIT (c_src/jit/builtin.h). LLVM keeps memory until the process ends.
# What comes after jit/ has no part in them.
$(B)/builtin_main: $(BUILTIN_OBJ) $(filter-out $(KERNEL_SRC:%.c=$(B)/%.o) $(EXEC_SRC:%.c=$(B)/%.o),$(CORE_OBJ))
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

$(B)/builtin_table.c: $(B)/builtin_main
	$(if $(V),,@echo "  GEN  $@")
	$(Q)ASAN_OPTIONS=detect_leaks=0 $(RUNNER) $< > $@

$(B)/builtin_table.o: $(B)/builtin_table.c
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The list of members is a prerequisite too: a file that leaves it must leave the archive.
$(CORE): $(CORE_OBJ) $(B)/builtin_table.o mk/sources.mk
	$(if $(V),,@echo "  AR   $@")
	$(Q)rm -f $@ && ar rcs $@ $(CORE_OBJ) $(B)/builtin_table.o

$(NIF): $(NIF_OBJ) $(CORE)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,-z,nodelete -o $@.tmp $(NIF_OBJ) $(CORE) $(LIBS) && mv $@.tmp $@

$(TOOL): $(TOOL_OBJ) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(TOOL_OBJ) $(CORE) $(LIBS)

$(TEST_SUPPORT): $(TEST_SUPPORT_OBJ) mk/sources.mk
	$(Q)rm -f $@ && ar rcs $@ $(TEST_SUPPORT_OBJ)

$(TEST_BIN): $(B)/%: $(B)/test/c/%.o $(TEST_SUPPORT) $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(TEST_SUPPORT) $(CORE) $(CHECK_LIBS) $(LIBS)

-include $(CORE_OBJ:.o=.d) $(BUILTIN_OBJ:.o=.d) $(NIF_OBJ:.o=.d) $(TOOL_OBJ:.o=.d) $(TEST_OBJ:.o=.d) $(TEST_SUPPORT_OBJ:.o=.d)

# ---- Erlang

ERL_SRC := $(wildcard erl/*.erl erl/nx/*.erl)
ERL_HRL := $(wildcard erl/*.hrl erl/nx/*.hrl include/*.hrl)
ERLC_FLAGS := +debug_info -I include -I erl
APP_SRC := $(wildcard erl/tessera.app.src)
erl_module_list = $(subst $() ,$(comma),$(patsubst %,'%',$(basename $(notdir $(ERL_SRC)))))
comma := ,

erl: $(if $(ERL_SRC),build/erl.stamp) $(if $(APP_SRC),ebin/tessera.app)

# One erlc for all that changed: starting it costs more than compiling a module.
build/erl.stamp: $(ERL_SRC) $(ERL_HRL) Makefile
	@mkdir -p ebin build
	$(if $(V),,@echo "  ERLC $(words $(if $(filter-out %.erl,$?),$(ERL_SRC),$?)) modules")
	$(Q)$(ERLC) $(ERLC_FLAGS) -Werror -pa ebin -o ebin $(if $(filter-out %.erl,$?),$(ERL_SRC),$?)
	@touch $@

ebin/tessera.app: $(APP_SRC) $(ERL_SRC)
	@mkdir -p ebin
	$(Q)sed "s/{modules, *\[\]}/{modules, [$(erl_module_list)]}/" $< > $@

# $(call erl_compile,FOLDERS,NAME): compiles FOLDER/*.erl of each into build/NAME/.
define erl_compile
	@mkdir -p build/$(2)
	$(Q)$(ERLC) $(ERLC_FLAGS) -Werror -pa ebin -o build/$(2) $(wildcard $(addsuffix /*.erl,$(1)))
endef

# ---- tests

# One after the other, even where make is told to build in parallel: they use all CPUs by themselves.
test:
	$(Q)$(MAKE) test-c
	$(Q)$(MAKE) test-golden
	$(Q)$(MAKE) test-erl
	$(Q)$(MAKE) test-rebar3
	$(Q)$(MAKE) test-mix

test-c: $(if $(T),$(T:%=$(B)/%),$(TEST_BIN))
	@BUILD=$(BUILD) RUNNER="$(RUNNER)" mk/run-c-tests.sh $^

# UPDATE=1 rewrites the expected outputs.
test-golden: $(TOOL)
	@BUILD=$(BUILD) test/golden/run.sh
	@BUILD=$(BUILD) test/golden/tool.sh

# As a dependency, in a fresh project.
test-rebar3:
	@test/rebar3/run.sh

# As a dependency of a Mix application.
test-mix: all
	@test/mix/run.sh

EUNIT_MODULES := $(basename $(notdir $(wildcard test/erl/*_tests.erl)))
ERL_SUITES := $(basename $(notdir $(wildcard test/erl/*_SUITE.erl)))
EUNIT_RUN = $(if $(T),$(filter $(T),$(EUNIT_MODULES)),$(EUNIT_MODULES))
SUITES_RUN = $(if $(T),$(filter $(T),$(ERL_SUITES)),$(ERL_SUITES))

# The runtime system itself is not instrumented, so the sanitizer's library comes first by force. What the
# runtime system allocates and keeps is not a leak of ours.
ERL_ENV_asan = TESSERA_SANITIZER=asan LD_PRELOAD=$(shell $(CC) -print-file-name=libasan.so) \
  ASAN_OPTIONS=detect_leaks=0:use_sigaltstack=0:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
ERL_ENV = $(ERL_ENV_$(BUILD))

# A node that a test ends has not passed.
EUNIT_PASSED := build/test-erl/passed
EUNIT_EVAL = case tessera_eunit:run([$(subst $() ,$(comma),$(strip $(EUNIT_RUN)))]) of \
  true -> ok = file:write_file("$(EUNIT_PASSED)", []), halt(0); false -> halt(1) end.

test-erl: all
	$(if $(filter-out $(EUNIT_MODULES) $(ERL_SUITES),$(T)),$(error tessera: test/erl has no $(filter-out $(EUNIT_MODULES) $(ERL_SUITES),$(T))))
	$(if $(wildcard test/erl/*.erl),$(call erl_compile,test/erl,test-erl))
	$(if $(filter-out .,$(APP)),$(Q)rm -rf $(APP)/ebin && cp -r ebin $(APP)/ebin)
	$(Q)[ -z "$(strip $(EUNIT_RUN))" ] || { rm -f $(EUNIT_PASSED); \
	  $(ERL_ENV) $(ERL) -noshell -pa $(APP)/ebin build/test-erl -eval '$(EUNIT_EVAL)' && test -f $(EUNIT_PASSED); }
	$(if $(SUITES_RUN),$(Q)mkdir -p build/ct && $(ERL_ENV) ct_run -noshell -pa $(APP)/ebin build/test-erl -dir build/test-erl \
	  -suite $(SUITES_RUN) -no_auto_compile -logdir build/ct)

asan:
	$(Q)$(MAKE) BUILD=asan test-c
	$(Q)$(MAKE) BUILD=asan test-erl

tsan:
	$(Q)$(MAKE) BUILD=tsan test-c T="$(or $(T),$(TSAN_TESTS))"

# ---- programs

run: all
	$(call erl_compile,examples,examples)
	$(Q)$(ERL) -noshell -pa ebin build/examples -s digits main -s init stop

# Another of examples/: make example E=mandelbrot
example: all
	$(if $(and $(E),$(wildcard examples/$(E).erl)),,$(error tessera: make example E=NAME, of $(basename $(notdir $(wildcard examples/*.erl)))))
	$(call erl_compile,examples,examples)
	$(Q)$(ERL) -noshell -pa ebin build/examples -s $(E) main -s init stop

export JSON ONLY BUDGET PEERS
bench: all
	$(call erl_compile,bench,bench)
	$(Q)$(ERL) -noshell -pa ebin build/bench -s tessera_bench main -s init stop

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
-include $(XLA_OBJ:.o=.d)

test-xla: all $(B)/xla_cases
	$(call erl_compile,test/erl test/xla,test-erl)
	$(Q)rm -rf $(B)/xla && mkdir -p $(B)/xla/recorded $(B)/xla/cases
	$(Q)$(B)/xla_cases ops $(B)/xla/cases
	$(Q)$(B)/xla_cases random $(B)/xla/cases $(XLA_SEED) $(XLA_COUNT)
	$(Q)$(ERL) -noshell -pa ebin build/test-erl -eval \
	  'xla_recorded:write("$(B)/xla/recorded"), halt().'
	$(Q)$(B)/xla_cases recorded $(B)/xla/cases $(B)/xla/recorded/*.ts
	$(Q)JAX_PLATFORMS=cpu $(or $(PEERS),python3) test/xla/run.py $(B)/xla/cases

# Each fuzzer for FUZZ_SECONDS, from the corpus in test/fuzz/corpus/<name>/.
FUZZ_SECONDS ?= 60
FUZZ_CC ?= $(firstword $(shell command -v clang-19 clang 2>/dev/null) clang)
fuzz:
	$(Q)$(MAKE) BUILD=fuzz CC=$(FUZZ_CC) fuzz-run

fuzz-run: $(FUZZERS:%=$(B)/%)
	$(Q)for f in $(FUZZERS); do mkdir -p $(B)/corpus/$$f; \
	  $(B)/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -artifact_prefix=$(B)/$$f- \
	    $(B)/corpus/$$f $$(ls -d test/fuzz/corpus/$$f 2>/dev/null) || exit 1; done

$(FUZZERS:%=$(B)/%): $(B)/%: $(B)/test/fuzz/%.o $(CORE)
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $< $(CORE) $(LIBS)

# The API's reference, in build/doc/index.html. EDoc's warnings are errors.
doc: edoc_options = [{dir,"build/doc"},{includes,["include","erl"]},{preprocess,true},{title,"Tessera"}]
doc:
	$(Q)rm -rf build/doc && mkdir -p build/doc
	$(Q)$(ERL) -noshell -eval 'edoc:files(["erl/tessera.erl"], $(edoc_options)), halt().' 2>&1 | tee build/doc.log
	@test ! -s build/doc.log && test -s build/doc/tessera.html && echo "  build/doc/index.html"

# ---- checks of the sources

lint: check-layers
	$(Q)LINT_CFLAGS="$(LLVM_CFLAGS) $(ERL_CFLAGS)" mk/lint.sh $(FILES)
	$(Q)$(MAKE) erl
	$(Q)mk/lint-erl.sh

check-layers:
	$(Q)mk/check-layers.sh

format:
	$(Q)FORMAT=fix mk/lint.sh

clean-c:
	$(Q)rm -rf build priv/tessera_nif.so

clean: clean-c
	$(Q)rm -rf ebin
