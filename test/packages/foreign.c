/* A NIF library that has an LLVM of its own, as another package may: it shows functions under LLVM's and SLEEF's names
 * to all libraries that are loaded after it. A library that takes one of them for its own ends here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <erl_nif.h>
#include <stdio.h>
#include <stdlib.h>

static void taken(const char *name) {
  fprintf(stderr, "foreign: %s was called in the wrong library\n", name);
  _Exit(7);
}

#define FOREIGN(name) \
  void name(void);    \
  void name(void) { taken(#name); }

FOREIGN(LLVMContextCreate)
FOREIGN(LLVMModuleCreateWithNameInContext)
FOREIGN(LLVMParseCommandLineOptions)
FOREIGN(LLVMInitializeX86Target)
FOREIGN(LLVMInitializeX86TargetInfo)
FOREIGN(LLVMInitializeAArch64Target)
FOREIGN(LLVMInitializeAArch64TargetInfo)
FOREIGN(LLVMCreateTargetMachine)
FOREIGN(LLVMTargetMachineEmitToMemoryBuffer)
/* With SLEEF=shared the library has none of its own. */
#ifndef WITHOUT_SLEEF
FOREIGN(Sleef_finz_asinf8_u10avx2)
FOREIGN(Sleef_finz_asinf16_u10avx512f)
FOREIGN(Sleef_cinz_asinf4_u10sse4)
FOREIGN(Sleef_finz_asinf4_u10advsimd)
#endif
/* llvm::LLVMContext::LLVMContext(), in C++'s spelling. */
FOREIGN(_ZN4llvm11LLVMContextC1Ev)
FOREIGN(_ZN4llvm11LLVMContextC2Ev)

static ERL_NIF_TERM where(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  (void)argc, (void)argv;
  void *found = dlsym(RTLD_DEFAULT, "LLVMContextCreate");
  return enif_make_atom(env, found == (void *)LLVMContextCreate ? "here" : "elsewhere");
}

/* The VM shows a library's names to that library alone; this one shows them to all. */
static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info) {
  (void)env, (void)data, (void)info;
  Dl_info own;
  return dladdr((void *)LLVMContextCreate, &own) && dlopen(own.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) ? 0 : 1;
}

static ErlNifFunc functions[] = {{"where", 0, where, 0}};
ERL_NIF_INIT(foreign, functions, load, NULL, NULL, NULL)
