/*
 * Reads the statistics of this process's malloc, and makes it return free memory to the system.
 *
 * Each allocator has functions of its own. They are declared weak: the dynamic linker resolves
 * those of the loaded allocator and leaves the others null.
 */
#include "values.h"

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

static void jemalloc_statistics(napi_env env, napi_value statistics) {
  /* A new epoch refreshes jemalloc's statistics. */
  uint64_t epoch = 1;
  mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
  set_number(env, statistics, "allocatedBytes", (double)jemalloc_number("stats.allocated"));
  set_number(env, statistics, "activeBytes", (double)jemalloc_number("stats.active"));
  set_number(env, statistics, "residentBytes", (double)jemalloc_number("stats.resident"));
  set_number(env, statistics, "metadataBytes", (double)jemalloc_number("stats.metadata"));
}

static size_t tcmalloc_number(const char *name) {
  size_t value = 0;
  return MallocExtension_GetNumericProperty(name, &value) ? value : 0;
}

static void tcmalloc_statistics(napi_env env, napi_value statistics) {
  set_number(env, statistics, "allocatedBytes",
             (double)tcmalloc_number("generic.current_allocated_bytes"));
  set_number(env, statistics, "residentBytes",
             (double)(tcmalloc_number("generic.heap_size") -
                      tcmalloc_number("tcmalloc.pageheap_unmapped_bytes")));
  set_number(env, statistics, "freePagesBytes",
             (double)tcmalloc_number("tcmalloc.pageheap_free_bytes"));
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

/* Covers the heap of the calling thread only: mimalloc has a heap for each thread, and no function
 * that reads the heap of another. */
static void mimalloc_statistics(napi_env env, napi_value statistics) {
  struct mimalloc_sum sum = {0, 0};
  mi_heap_visit_blocks(mi_heap_get_default(), 0, mimalloc_area, &sum);
  set_number(env, statistics, "allocatedBytes", sum.used);
  set_number(env, statistics, "activeBytes", sum.committed);
}

/*
 * Statistics of every arena as XML: one walk through the free chunks, under the lock of each arena
 * in turn. mallinfo2() walks as far, but reports neither arenas nor sizes of free chunks.
 */
static void glibc_statistics(napi_env env, napi_value statistics) {
  char *text = NULL;
  size_t length = 0;
  void *stream = open_memstream(&text, &length);
  if (!stream) return;
  int failed = malloc_info(0, stream);
  fclose(stream);
  if (!failed && text) set_string(env, statistics, "mallocInfo", text, length);
  free(text);
}

/*
 * readStatistics(): the allocator's own statistics, see index.js. `allocator` is "unknown" if it
 * has none, like musl's.
 */
static napi_value read_statistics(napi_env env, napi_callback_info call) {
  (void)call;
  napi_value result;
  if (napi_create_object(env, &result) != napi_ok) return NULL;
  const char *name = "unknown";
  if (mallctl) name = "jemalloc", jemalloc_statistics(env, result);
  else if (MallocExtension_GetNumericProperty) name = "tcmalloc", tcmalloc_statistics(env, result);
  else if (mi_heap_visit_blocks && mi_heap_get_default)
    name = "mimalloc", mimalloc_statistics(env, result);
  else if (malloc_info && open_memstream && fclose && free)
    name = "glibc", glibc_statistics(env, result);
  set_string(env, result, "allocator", name, NAPI_AUTO_LENGTH);
  return result;
}

/* trim(): returns free memory to the system, and blocks until then. Returns false if the allocator
 * has no such function. */
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
  set_function(env, exports, "readStatistics", read_statistics, NULL);
  set_function(env, exports, "trim", trim, NULL);
}
