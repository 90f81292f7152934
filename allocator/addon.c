/*
 * The addon's entry. Node-API version 3 only: stable over all Node versions. Nothing is linked, not
 * even a libc, so that one binary serves glibc and musl.
 */
#include "addon.h"

/* SHA-256 of the sources, so that a test can tell whether the binaries are of this text. */
#ifndef SOURCE_SHA256
#error "build with build.sh"
#endif

void set_number(napi_env env, napi_value object, const char *name, double number) {
  napi_value value;
  if (napi_create_double(env, number, &value) == napi_ok)
    napi_set_named_property(env, object, name, value);
}

void set_string(napi_env env, napi_value object, const char *name, const char *text,
                size_t length) {
  napi_value value;
  if (napi_create_string_utf8(env, text, length, &value) == napi_ok)
    napi_set_named_property(env, object, name, value);
}

void set_function(napi_env env, napi_value object, const char *name, napi_callback function,
                  void *data) {
  napi_value value;
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, function, data, &value) == napi_ok)
    napi_set_named_property(env, object, name, value);
}

/* Called once for each isolate that loads the addon, and again for each further process.dlopen. */
NAPI_MODULE_INIT() {
  set_string(env, exports, "sourceSha256", SOURCE_SHA256, NAPI_AUTO_LENGTH);
  export_allocator(env, exports);
  export_gc_hooks(env, exports);
  return exports;
}
