/*
 * The addon's entry. Node-API version 5 at most: stable over all Node versions. Nothing is linked,
 * not even a libc, so that one binary serves glibc and musl.
 */
#include "values.h"

/* SHA-256 of the sources, so that a test can tell whether the binaries are of this text. */
#ifndef SOURCE_SHA256
#error "build with build.sh"
#endif

/* allocator.c */
void export_allocator(napi_env env, napi_value exports);
/* gc-hooks.c */
void export_gc_hooks(napi_env env, napi_value exports);

/* Called once for each isolate that loads the addon, and again for each further process.dlopen. */
NAPI_MODULE_INIT() {
  set_string(env, exports, "sourceSha256", SOURCE_SHA256, NAPI_AUTO_LENGTH);
  export_allocator(env, exports);
  export_gc_hooks(env, exports);
  return exports;
}
