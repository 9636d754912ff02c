/* Compiles a source to an object: emission, verification, LLVM's code generator. No IR passes run: they cost as much as
 * they save (measured in bench/RESULTS.md). Each kernel has an LLVM context of its own. */
#include "base/log.h"
#include "jit/emit/emit.h"
#include "jit/session/jit_internal.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct ts_compiler {
  const ts_target *target;
  LLVMTargetMachineRef machine;
  LLVMTargetDataRef layout;
};

#if defined(__x86_64__)
/* Disables default parts of the code generator that do not improve our kernels: their loops come out the same
 * (bench/RESULTS.md has the cost). The emitters already use units that the addressing modes of x86 scale. LLVM ends the
 * process over an unknown option: these exist in every LLVM 19. */
static void set_options(void) {
  static const char *const options[] = {
      "tessera",
      "-disable-lsr",
      "-disable-cgp",
      "-disable-constant-hoisting",
      "-disable-early-ifcvt",
      "-x86-machine-combiner=false",
      "-x86-cmov-converter=false",
      "-disable-x86-domain-reassignment",
      "-x86-disable-avoid-SFB",
      "-enable-shrink-wrap=false",
  };
  LLVMParseCommandLineOptions(sizeof(options) / sizeof(options[0]), options, "");
}
#endif

static void initialize_llvm(void) {
#if defined(__x86_64__)
  set_options();
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
#else
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
#endif
}

void ts_compiler_set_fatal_handler(void (*handler)(const char *reason)) { LLVMInstallFatalErrorHandler(handler); }

ts_status ts_compiler_create(const ts_target *target, ts_compiler **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialize_llvm);
  *out = NULL;
  LLVMTargetRef llvm_target;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(target->triple, &llvm_target, &message)) {
    ts_status status = ts_error(TS_INTERNAL, "LLVM: %s", message);
    LLVMDisposeMessage(message);
    return status;
  }
  ts_compiler *compiler;
  TS_TRY(TS_NEW(&compiler));
  compiler->target = target;
  compiler->machine = LLVMCreateTargetMachine(llvm_target, target->triple, target->cpu, target->features,
                                              LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
  if (!compiler->machine) {
    ts_free(compiler);
    return ts_error(TS_INTERNAL, "LLVM has no code generator for %s", target->cpu);
  }
  compiler->layout = LLVMCreateTargetDataLayout(compiler->machine);
  *out = compiler;
  return TS_SUCCESS;
}

void ts_compiler_destroy(ts_compiler *compiler) {
  LLVMDisposeTargetData(compiler->layout);
  LLVMDisposeTargetMachine(compiler->machine);
  ts_free(compiler);
}

/* ---- LLVM's diagnostics ---- */

typedef struct complaint {
  char text[400]; /* of the first error; empty: none */
} complaint;

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context) {
  complaint *c = context;
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || c->text[0]) return;
  char *description = LLVMGetDiagInfoDescription(info);
  snprintf(c->text, sizeof(c->text), "%s", description && description[0] ? description : "unknown error");
  LLVMDisposeMessage(description);
}

static ts_status complained(const complaint *c, const char *name) {
  return c->text[0] ? ts_error(TS_INTERNAL, "LLVM, in kernel %s: %s", name, c->text) : TS_SUCCESS;
}

/* ---- attributes ---- */

static void add_attribute(LLVMContextRef context, LLVMValueRef function, const char *key, const char *value) {
  LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

/* Full-width vectors must be legal and preferred: by default LLVM splits 512-bit ones. */
static void set_attributes(ts_emit *e, LLVMValueRef function) {
  const ts_target *target = e->target;
  unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(e->context, nounwind, 0));
  add_attribute(e->context, function, "target-cpu", target->cpu);
  if (target->features[0]) add_attribute(e->context, function, "target-features", target->features);
  add_attribute(e->context, function, "frame-pointer", "none");
  if (target->arch != TS_ARCH_X86_64) return;
  char bits[16];
  snprintf(bits, sizeof(bits), "%d", target->lanes * 32);
  add_attribute(e->context, function, "prefer-vector-width", bits);
  add_attribute(e->context, function, "min-legal-vector-width", bits);
}

/* ---- one kernel ---- */

static void dump(const char *what, const char *name, const char *text, size_t length) {
  fprintf(stderr, "; %s of %s\n%.*s\n", what, name, (int)length, text);
}

static void dump_module(LLVMModuleRef module, const char *name) {
  char *text = LLVMPrintModuleToString(module);
  dump("LLVM", name, text, strlen(text));
  LLVMDisposeMessage(text);
}

/* Code generation consumes the module, so the listing is made from a copy. */
static void dump_assembly(ts_compiler *compiler, LLVMModuleRef module, const char *name) {
  LLVMModuleRef copy = LLVMCloneModule(module);
  LLVMMemoryBufferRef buffer;
  char *message = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(compiler->machine, copy, LLVMAssemblyFile, &message, &buffer)) {
    LLVMDisposeMessage(message);
  } else {
    dump("assembly", name, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
  }
  LLVMDisposeModule(copy);
}

/* Always on: it takes a fiftieth of the time of code generation, which crashes on invalid IR. */
static ts_status verify(ts_emit *e, const char *name) {
  char *message = NULL;
  ts_status status = TS_SUCCESS;
  if (LLVMVerifyModule(e->module, LLVMReturnStatusAction, &message)) {
    status = ts_error(TS_INTERNAL, "the emitter made invalid code for kernel %s: %.400s", name, message);
  }
  LLVMDisposeMessage(message);
  return status;
}

static ts_status emit_module(ts_emit *e, const ts_kernel_source *source, const char *name) {
  TS_TRY(source->emit(e, name, source->description));
  LLVMValueRef entry = LLVMGetNamedFunction(e->module, name);
  if (!entry || LLVMIsDeclaration(entry)) {
    return ts_error(TS_INTERNAL, "the emitter of kernel %s made no function of that name", name);
  }
  for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
    if (!LLVMIsDeclaration(f)) set_attributes(e, f);
  }
  return verify(e, name);
}

static ts_status copy_object(LLVMMemoryBufferRef buffer, ts_object *out) {
  size_t size = LLVMGetBufferSize(buffer);
  TS_TRY(ts_alloc(size, &out->data));
  memcpy(out->data, LLVMGetBufferStart(buffer), size);
  out->size = size;
  return TS_SUCCESS;
}

static ts_status generate(ts_compiler *compiler, ts_emit *e, const complaint *c, const char *name, ts_object *out) {
  if (ts_dump_enabled("llvm")) dump_module(e->module, name);
  if (ts_dump_enabled("asm")) dump_assembly(compiler, e->module, name);
  LLVMMemoryBufferRef buffer;
  char *message = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(compiler->machine, e->module, LLVMObjectFile, &message, &buffer)) {
    ts_status status = ts_error(TS_INTERNAL, "LLVM, in kernel %s: %s", name, message);
    LLVMDisposeMessage(message);
    return status;
  }
  ts_status status = complained(c, name);
  if (!status) status = copy_object(buffer, out);
  LLVMDisposeMemoryBuffer(buffer);
  return status;
}

ts_status ts_compiler_run(ts_compiler *compiler, const ts_kernel_source *source, const char *name, ts_object *out) {
  *out = (ts_object){0};
  if (ts_dump_enabled("kernels")) dump("text", name, source->text, source->length);
  complaint c = {{0}};
  const ts_target *target = compiler->target;
  ts_emit e = {.context = LLVMContextCreate(), .target = target, .lanes = target->lanes};
  LLVMContextSetDiagnosticHandler(e.context, on_diagnostic, &c);
  e.module = LLVMModuleCreateWithNameInContext(name, e.context);
  LLVMSetTarget(e.module, target->triple);
  LLVMSetModuleDataLayout(e.module, compiler->layout);
  e.b = LLVMCreateBuilderInContext(e.context);

  ts_status status = emit_module(&e, source, name);
  if (!status) status = generate(compiler, &e, &c, name, out);

  LLVMDisposeBuilder(e.b);
  LLVMDisposeModule(e.module);
  LLVMContextDispose(e.context);
  return status;
}
