#include "values.h"

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
