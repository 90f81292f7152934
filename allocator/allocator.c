/*
 * Asks the malloc of this process what it holds, and tells it to give back what it does not need.
 *
 * Every allocator is asked by its own functions, declared weak: the dynamic linker finds those of
 * whichever is loaded and leaves the others null.
 */
#include "addon.h"

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
typedef _Bool (*mi_visitor)(const void *heap, const mi_heap_area_t *area, void *block, size_t size,
                            void *sum);
WEAK void *mi_heap_get_default(void);
WEAK _Bool mi_heap_visit_blocks(const void *heap, _Bool visit_blocks, mi_visitor visitor,
                                void *sum);
WEAK void mi_collect(_Bool force);

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
  set_number(env, books, "allocatedBytes",
             (double)tcmalloc_number("generic.current_allocated_bytes"));
  set_number(env, books, "residentBytes",
             (double)(tcmalloc_number("generic.heap_size") -
                      tcmalloc_number("tcmalloc.pageheap_unmapped_bytes")));
  set_number(env, books, "freePagesBytes", (double)tcmalloc_number("tcmalloc.pageheap_free_bytes"));
}

struct mimalloc_sum {
  double committed, used;
};

static _Bool mimalloc_area(const void *heap, const mi_heap_area_t *area, void *block, size_t size,
                           void *sum) {
  (void)heap, (void)block, (void)size;
  ((struct mimalloc_sum *)sum)->committed += (double)area->committed;
  ((struct mimalloc_sum *)sum)->used += (double)area->used * (double)area->block_size;
  return 1;
}

/* Of the heap of the calling thread only: mimalloc has one for each, and lets nobody look into
 * another's. */
static void mimalloc_books(napi_env env, napi_value books) {
  struct mimalloc_sum sum = {0, 0};
  mi_heap_visit_blocks(mi_heap_get_default(), 0, mimalloc_area, &sum);
  set_number(env, books, "allocatedBytes", sum.used);
  set_number(env, books, "activeBytes", sum.committed);
}

/*
 * The books of every arena as XML: one walk through the free chunks, under the lock of each arena
 * in turn. mallinfo2() walks as far, and knows neither one arena from another nor how large the
 * free chunks are.
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
 * books(): what the allocator says of itself, see index.js; `allocator` is "unknown" where it
 * cannot be asked, as musl's.
 */
static napi_value books(napi_env env, napi_callback_info call) {
  (void)call;
  napi_value result;
  if (napi_create_object(env, &result) != napi_ok) return NULL;
  const char *name = "unknown";
  if (mallctl) name = "jemalloc", jemalloc_books(env, result);
  else if (MallocExtension_GetNumericProperty) name = "tcmalloc", tcmalloc_books(env, result);
  else if (mi_heap_visit_blocks && mi_heap_get_default)
    name = "mimalloc", mimalloc_books(env, result);
  else if (malloc_info && open_memstream && fclose && free)
    name = "glibc", glibc_books(env, result);
  set_string(env, result, "allocator", name, NAPI_AUTO_LENGTH);
  return result;
}

/* trim(): gives free memory back to the system; false where the allocator has no such call. Blocks
 * meanwhile. */
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

void export_allocator(napi_env env, napi_value exports) {
  set_function(env, exports, "books", books, NULL);
  set_function(env, exports, "trim", trim, NULL);
}
