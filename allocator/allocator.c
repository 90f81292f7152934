/*
 * Asks the malloc of this process what it holds, and tells it to give back what it does not need.
 *
 * Every allocator is asked by its own functions, declared weak: the dynamic linker finds those of whichever is loaded and
 * leaves the others null. Nothing is linked, not even a libc, so that one binary serves glibc and musl.
 * Node-API version 1 only: stable over all Node versions.
 */
#include <stddef.h>
#include <stdint.h>
#define NAPI_VERSION 1
#include <node_api.h>

/* SHA-256 of this file, so that a test can tell whether the binaries are of this text. */
#ifndef SOURCE_SHA256
#error "build with build.sh"
#endif

#define WEAK __attribute__((weak))

/* glibc, <malloc.h>. */
WEAK int malloc_info(int options, void *stream);
WEAK int malloc_trim(size_t pad);
/* POSIX <stdio.h>, <stdlib.h>. */
WEAK void *open_memstream(char **text, size_t *length);
WEAK int fclose(void *stream);
WEAK void free(void *memory);

/* jemalloc, <jemalloc/jemalloc.h>. */
WEAK int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length);

/* gperftools, <gperftools/malloc_extension_c.h>. */
WEAK int MallocExtension_GetNumericProperty(const char *property, size_t *value);
WEAK void MallocExtension_ReleaseFreeMemory(void);

/* mimalloc, <mimalloc.h>. */
typedef struct {
  void *blocks;
  size_t reserved, committed, used, block_size;
} mi_heap_area_t;
typedef _Bool (*mi_visitor)(const void *heap, const mi_heap_area_t *area, void *block, size_t size, void *sum);
WEAK void *mi_heap_get_default(void);
WEAK _Bool mi_heap_visit_blocks(const void *heap, _Bool visit_blocks, mi_visitor visitor, void *sum);
WEAK void mi_collect(_Bool force);

static void set_number(napi_env env, napi_value object, const char *name, double number) {
  napi_value value;
  if (napi_create_double(env, number, &value) == napi_ok) napi_set_named_property(env, object, name, value);
}

static void set_string(napi_env env, napi_value object, const char *name, const char *text, size_t length) {
  napi_value value;
  if (napi_create_string_utf8(env, text, length, &value) == napi_ok) napi_set_named_property(env, object, name, value);
}

static size_t jemalloc_number(const char *name) {
  size_t value = 0, length = sizeof value;
  return mallctl(name, &value, &length, NULL, 0) == 0 ? value : 0;
}

static void jemalloc_books(napi_env env, napi_value books) {
  /* The statistics are those of the last epoch: begin a new one. */
  uint64_t epoch = 1;
  mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
  set_number(env, books, "allocatedBytes", (double)jemalloc_number("stats.allocated"));
  set_number(env, books, "activeBytes", (double)jemalloc_number("stats.active"));
  set_number(env, books, "residentBytes", (double)jemalloc_number("stats.resident"));
  set_number(env, books, "metadataBytes", (double)jemalloc_number("stats.metadata"));
}

static size_t tcmalloc_number(const char *name) {
  size_t value = 0;
  return MallocExtension_GetNumericProperty(name, &value) ? value : 0;
}

static void tcmalloc_books(napi_env env, napi_value books) {
  set_number(env, books, "allocatedBytes", (double)tcmalloc_number("generic.current_allocated_bytes"));
  set_number(env, books, "residentBytes",
             (double)(tcmalloc_number("generic.heap_size") - tcmalloc_number("tcmalloc.pageheap_unmapped_bytes")));
  set_number(env, books, "freePagesBytes", (double)tcmalloc_number("tcmalloc.pageheap_free_bytes"));
}

struct mimalloc_sum {
  double committed, used;
};

static _Bool mimalloc_area(const void *heap, const mi_heap_area_t *area, void *block, size_t size, void *sum) {
  (void)heap, (void)block, (void)size;
  ((struct mimalloc_sum *)sum)->committed += (double)area->committed;
  ((struct mimalloc_sum *)sum)->used += (double)area->used * (double)area->block_size;
  return 1;
}

/* Of the heap of the calling thread only: mimalloc has one for each, and lets nobody look into another's. */
static void mimalloc_books(napi_env env, napi_value books) {
  struct mimalloc_sum sum = {0, 0};
  mi_heap_visit_blocks(mi_heap_get_default(), 0, mimalloc_area, &sum);
  set_number(env, books, "allocatedBytes", sum.used);
  set_number(env, books, "activeBytes", sum.committed);
}

/*
 * The books of every arena as XML: one walk through the free chunks, under the lock of each arena in turn. mallinfo2() walks
 * as far, and knows neither one arena from another nor how large the free chunks are.
 */
static void glibc_books(napi_env env, napi_value books) {
  char *text = NULL;
  size_t length = 0;
  void *stream = open_memstream(&text, &length);
  if (!stream) return;
  int failed = malloc_info(0, stream);
  fclose(stream);
  if (!failed && text) set_string(env, books, "mallocInfo", text, length);
  free(text);
}

/*
 * books(): what the allocator says of itself, see index.js; `allocator` is "unknown" where it cannot be asked, as musl's.
 */
static napi_value books(napi_env env, napi_callback_info call) {
  (void)call;
  napi_value result;
  if (napi_create_object(env, &result) != napi_ok) return NULL;
  const char *name = "unknown";
  if (mallctl) name = "jemalloc", jemalloc_books(env, result);
  else if (MallocExtension_GetNumericProperty) name = "tcmalloc", tcmalloc_books(env, result);
  else if (mi_heap_visit_blocks && mi_heap_get_default) name = "mimalloc", mimalloc_books(env, result);
  else if (malloc_info && open_memstream && fclose && free) name = "glibc", glibc_books(env, result);
  set_string(env, result, "allocator", name, NAPI_AUTO_LENGTH);
  return result;
}

/* trim(): gives free memory back to the system; false where the allocator has no such call. Blocks meanwhile. */
static napi_value trim(napi_env env, napi_callback_info call) {
  (void)call;
  _Bool done = 1;
  /* 4096 is MALLCTL_ARENAS_ALL. */
  if (mallctl) done = mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0;
  else if (MallocExtension_ReleaseFreeMemory) MallocExtension_ReleaseFreeMemory();
  else if (mi_collect) mi_collect(1);
  else if (malloc_trim) malloc_trim(0);
  else done = 0;
  napi_value result;
  return napi_get_boolean(env, done, &result) == napi_ok ? result : NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  set_string(env, exports, "sourceSha256", SOURCE_SHA256, NAPI_AUTO_LENGTH);
  if (napi_create_function(env, "books", NAPI_AUTO_LENGTH, books, NULL, &function) == napi_ok)
    napi_set_named_property(env, exports, "books", function);
  if (napi_create_function(env, "trim", NAPI_AUTO_LENGTH, trim, NULL, &function) == napi_ok)
    napi_set_named_property(env, exports, "trim", function);
  return exports;
}
