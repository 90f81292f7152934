/* Values on the object that the addon exports. */
#include <stddef.h>
#include <stdint.h>
#define NAPI_VERSION 5
#include <node_api.h>

/* Found by the dynamic linker where it exists, else null: nothing is linked. */
#define WEAK __attribute__((weak))

void set_number(napi_env env, napi_value object, const char *name, double number);
void set_string(napi_env env, napi_value object, const char *name, const char *text, size_t length);
/* data: what the function receives in its call, see napi_get_cb_info. */
void set_function(napi_env env, napi_value object, const char *name, napi_callback function,
                  void *data);
