# `make precompiled`: Tessera for machines without a compiler and without LLVM (docs/packages.md). Into build/precompiled/:
#   tessera-nif-<version of NIFs>-<target>-<version>.tar.gz  what priv/ holds; Mix and rebar3 fetch it (mk/native.escript)
#   tessera-<version>-<target>.tar.gz                        the whole application, for ERL_LIBS
#   checksum.exs                                             of the first, for the package
# LLVM, SLEEF, zlib, zstd and C++'s library are linked statically. Of them only what the kernels need is kept.
#   SLEEF_SOURCE=FOLDER  SLEEF's sources; without it Debian's source package (mk/sleef.sh)
#   SLEEF=shared         no static SLEEF: the machine that runs needs libsleef3
PRECOMPILED := build/precompiled
SLEEF ?= static
SLEEF_SOURCE ?=
PRE := $(B)/precompiled-$(SLEEF)
STRIP ?= strip
HOST_CC ?= cc
TARGET_MACHINE = $(eval TARGET_MACHINE := $$(shell $$(CC) -dumpmachine | sed 's/-.*//'))$(TARGET_MACHINE)
TARGET = $(TARGET_MACHINE)-linux-gnu
VERSION = $(eval VERSION := $$(shell sed -n 's/.*{vsn, *"\([^"]*\)"}.*/\1/p' $$(APP_SRC)))$(VERSION)
hash := \#
NIF_VERSION = $(eval NIF_VERSION := $$(shell echo '$(hash)include <erl_nif.h>' | $$(CC) $$(ERL_CFLAGS) -E -dM - | \
  awk '$$$$2 == "ERL_NIF_MAJOR_VERSION" { major = $$$$3 } $$$$2 == "ERL_NIF_MINOR_VERSION" { minor = $$$$3 } END { print major "." minor }'))$(NIF_VERSION)
ARTEFACT = tessera-nif-$(NIF_VERSION)-$(TARGET)-$(VERSION).tar.gz
LLVM_LIBDIR = $(shell $(LLVM_CONFIG) --libdir)
LLVM_PARTS = core analysis target mc $(if $(filter aarch64,$(TARGET_MACHINE)),aarch64codegen,x86codegen)
LLVM_STATIC = -L$(LLVM_LIBDIR) $(shell $(LLVM_CONFIG) --link-static --libs $(LLVM_PARTS))

SLEEF_STATIC := $(if $(filter static,$(SLEEF)),$(PRE)/libsleef.a)
SLEEF_LIBS = $(or $(SLEEF_STATIC),-lsleef)

$(PRE)/libsleef.a: mk/sleef.sh
	@mkdir -p $(@D)
	$(if $(V),,@echo "  SLEEF $@")
	$(Q)CC="$(CC)" HOST_CC="$(HOST_CC)" mk/sleef.sh $@ $(TARGET_MACHINE) $(SLEEF_SOURCE)

$(PRE)/llvm_exit.o: c_src/jit/session/llvm_exit.c c_src/jit/session/llvm_exit.h Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LLVM_CFLAGS) -DTS_LLVM_STATIC -c -o $@ $<

# The static libraries that setup --precompiled installs. STATIC_PREFIX=-BFOLDER/ says where a cross compiler finds C++'s.
STATIC_PREFIX ?=
find_static = [ "$$($(CC) $(STATIC_PREFIX) -print-file-name=$(1))" != $(1) ] || \
  { echo "tessera: the static library $(1) is missing; $(CURDIR)/setup --precompiled installs it" >&2; exit 1; }
STATIC_LIBS := libstdc++.a libz.a libzstd.a

# CORE's llvm_exit.o stays in its archive: the names are there already.
$(PRE)/priv/tessera_nif.so: $(NIF_OBJ) $(PRE)/llvm_exit.o $(CORE) $(SLEEF_STATIC) mk/exports.map mk/precompiled.mk
	@mkdir -p $(@D)
	$(Q)$(foreach library,$(STATIC_LIBS),$(call find_static,$(library)); )
	$(if $(V),,@echo "  LINK $@")
	$(Q)$(CC) $(STATIC_PREFIX) $(ALL_CFLAGS) -shared $(SHARED_FLAGS) -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,--version-script=mk/exports.map \
	  -Wl,--wrap=__cxa_atexit -Wl,-z,relro -static-libgcc -o $@.tmp $(NIF_OBJ) $(PRE)/llvm_exit.o $(CORE) $(LLVM_STATIC) $(SLEEF_LIBS) \
	  -Wl,-Bstatic -lstdc++ -lz -lzstd -Wl,-Bdynamic -lm -lpthread -ldl
	$(Q)$(STRIP) $@.tmp && mv $@.tmp $@

$(PRE)/priv/tessera_plugin: $(B)/tessera_plugin
	@mkdir -p $(@D)
	$(Q)$(STRIP) -o $@ $<

$(PRE)/priv/tessera_mpi.so: $(APP)/priv/tessera_mpi.so
	@mkdir -p $(@D)
	$(Q)$(STRIP) -o $@ $<

# The licenses of what is inside want to be beside it.
STATIC_PACKAGES := llvm-19-dev libsleef-dev libzstd-dev zlib1g-dev libxxhash-dev libgcc-s1
$(PRE)/priv/LICENSES: LICENSE mk/precompiled.mk
	@mkdir -p $(@D)
	$(Q){ echo "Tessera:"; cat LICENSE; for package in $(STATIC_PACKAGES); do printf '\n%s\n\nInside of tessera_nif.so, from Debian'"'"'s %s:\n' \
	  "$$(printf '%072d' 0 | tr 0 -)" $$package; cat /usr/share/doc/$$package/copyright; done; } >$@.tmp && mv $@.tmp $@

# The same files make the same archive.
GZIP_LEVEL ?= 9
ARCHIVE = tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(or $(SOURCE_DATE_EPOCH),0) --mode=u+rwX,go+rX,go-w

.PHONY: precompiled package test-packages
precompiled: $(PRE)/priv/tessera_nif.so $(PRE)/priv/tessera_plugin $(PRE)/priv/LICENSES $(if $(MPI),$(PRE)/priv/tessera_mpi.so) erl
	$(Q)mkdir -p $(PRECOMPILED) && find $(PRECOMPILED) -name '*.tar.gz' ! -name '*-$(VERSION)[.-]*' -delete
	$(Q)$(ARCHIVE) -C $(PRE)/priv -c . | gzip -n$(GZIP_LEVEL) >$(PRECOMPILED)/$(ARTEFACT).tmp && mv $(PRECOMPILED)/$(ARTEFACT).tmp $(PRECOMPILED)/$(ARTEFACT)
	$(Q)rm -rf $(PRE)/app && mkdir -p $(PRE)/app/tessera-$(VERSION)
	$(Q)cp -r ebin include $(PRE)/priv LICENSE README.md CHANGELOG.md $(PRE)/app/tessera-$(VERSION)/
	$(Q)$(ARCHIVE) -C $(PRE)/app -c tessera-$(VERSION) | gzip -n$(GZIP_LEVEL) >$(PRECOMPILED)/tessera-$(VERSION)-$(TARGET).tar.gz
	$(Q)mk/native.escript checksums $(PRECOMPILED)
	$(Q)ls -l $(PRECOMPILED) | awk 'NR > 1 { print "  $(PRECOMPILED)/" $$NF ": " $$5 " bytes" }'

# The package for Hex, build/tessera-<version>.tar: tessera.app.src says what is in it.
package:
	$(Q)mk/package.escript build build

# ALL=yes also projects of Mix, a root with erlang-base only, and the steps of the image.
test-packages:
	$(Q)$(MAKE) precompiled GZIP_LEVEL=1 $(if $(SLEEF_SOURCE),,SLEEF=shared)
	@test/packages/run.sh $(if $(ALL),all)
	@test/deploy/run.sh
	$(if $(ALL),@test/packages/run.sh root && test/deploy/run.sh root)
