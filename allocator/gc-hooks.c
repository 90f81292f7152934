/*
 * Counts the GCs of an isolate in V8's own callbacks. No JavaScript runs for a GC: it costs no
 * performance entry, no task and no turn of the event loop.
 *
 * V8's functions are C++. They are declared here under their exported names, weak like those of the
 * allocators. Such a name contains the types of all arguments. If a later V8 changes one, the name
 * no longer exists, and the agent observes GCs by PerformanceObserver instead.
 *
 * V8 runs these callbacks on the isolate's own thread, before and after a GC. They neither allocate
 * nor run JavaScript. After a major GC they read V8's statistics of the heap spaces, as the
 * GCProfiler of Node.js does.
 */
#include "values.h"

typedef void (*gc_callback)(void *isolate, int kind, int flags, void *counter);

/* V8, <v8-isolate.h>. */
WEAK void *current_isolate(void) __asm__("_ZN2v87Isolate10GetCurrentEv");
WEAK void add_prologue(void *isolate, gc_callback callback, void *counter, int kinds) __asm__(
    "_ZN2v87Isolate21AddGCPrologueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_S2_");
WEAK void add_epilogue(void *isolate, gc_callback callback, void *counter, int kinds) __asm__(
    "_ZN2v87Isolate21AddGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_S2_");
WEAK void remove_prologue(void *isolate, gc_callback callback, void *counter) __asm__(
    "_ZN2v87Isolate24RemoveGCPrologueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_");
WEAK void remove_epilogue(void *isolate, gc_callback callback, void *counter) __asm__(
    "_ZN2v87Isolate24RemoveGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_");
WEAK _Bool get_heap_space_statistics(void *isolate, size_t *statistics, size_t space) __asm__(
    "_ZN2v87Isolate22GetHeapSpaceStatisticsEPNS_19HeapSpaceStatisticsEm");
/* libuv, <uv.h>: nanoseconds, by the same clock as the times of a PerformanceEntry. */
WEAK uint64_t uv_hrtime(void);
/* POSIX <stdlib.h>. */
WEAK void *calloc(size_t count, size_t size);
WEAK void free(void *memory);

/* Each kind of GC is a bit. All bits, to include kinds of a later V8. */
#define ALL_KINDS 0x7fffffff
#define KIND_BITS 31
#define MARK_COMPACT 4

/* Upper bounds of the buckets, in seconds: GC_PAUSE_BOUNDS_SECONDS of agent/protocol/frame.js. */
static const double BOUNDS[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                0.1,    0.25,  0.5,    1,     2,    5};
#define BUCKETS (sizeof BOUNDS / sizeof *BOUNDS + 1)
/* A row counts one kind with one set of flags. V8 14 has 5 kinds and 7 flags; few combinations
 * occur. */
#define MOST_ROWS 32
#define ROW_LENGTH (5 + BUCKETS)
#define HEADER_LENGTH 4
#define TAKEN_LENGTH (HEADER_LENGTH + MOST_ROWS * ROW_LENGTH)

/* HeapSpaceStatistics of <v8-statistics.h> has five words; the third is the used bytes. A later V8
 * may have more. */
#define SPACE_USED 2
#define SPACE_STATISTICS_WORDS 32

struct row {
  int kind, flags;
  double count, sum_seconds, longest_seconds;
  double buckets[BUCKETS];
};

/* The counts of one isolate, for one caller. */
struct counter {
  /* Held by V8's callbacks, and by each function that JavaScript may still call. */
  int references;
  /* NULL once the counter is stopped. */
  void *isolate;
  /* Start of the running GC by the bit of its kind, else 0. A GC of one kind may run within a GC of
   * another kind. */
  uint64_t began_at[KIND_BITS];
  /* Spaces whose used bytes make up the live heap, as bits; 0: the live heap is not read. */
  uint32_t live_spaces;
  double majors, live_bytes, live_majors;
  size_t rows_used;
  struct row rows[MOST_ROWS];
};

static double live_bytes(const struct counter *counter) {
  size_t statistics[SPACE_STATISTICS_WORDS];
  double bytes = 0;
  for (uint32_t space = 0; counter->live_spaces >> space; space++) {
    if (!(counter->live_spaces >> space & 1)) continue;
    statistics[SPACE_USED] = 0;
    if (get_heap_space_statistics(counter->isolate, statistics, space))
      bytes += (double)statistics[SPACE_USED];
    if (space == 31) break;
  }
  return bytes;
}

static struct row *find_row(struct counter *counter, int kind, int flags) {
  size_t i = 0;
  for (; i < counter->rows_used; i++)
    if (counter->rows[i].kind == kind && counter->rows[i].flags == flags) return &counter->rows[i];
  if (i == MOST_ROWS) return &counter->rows[MOST_ROWS - 1];
  counter->rows_used++;
  counter->rows[i].kind = kind;
  counter->rows[i].flags = flags;
  return &counter->rows[i];
}

static void on_prologue(void *isolate, int kind, int flags, void *data) {
  (void)isolate, (void)flags;
  if (kind > 0) ((struct counter *)data)->began_at[__builtin_ctz((unsigned)kind)] = uv_hrtime();
}

static void on_epilogue(void *isolate, int kind, int flags, void *data) {
  (void)isolate;
  struct counter *counter = data;
  if (kind <= 0) return;
  uint64_t *began_at = &counter->began_at[__builtin_ctz((unsigned)kind)];
  /* Node.js does not count a GC without a prologue either. */
  if (!*began_at) return;
  double seconds = (double)(uv_hrtime() - *began_at) / 1e9;
  *began_at = 0;
  struct row *row = find_row(counter, kind, flags);
  size_t bucket = 0;
  while (bucket < BUCKETS - 1 && seconds > BOUNDS[bucket]) bucket++;
  row->buckets[bucket]++;
  row->count++;
  row->sum_seconds += seconds;
  if (seconds > row->longest_seconds) row->longest_seconds = seconds;
  if (kind != MARK_COMPACT) return;
  counter->majors++;
  if (counter->live_spaces) {
    counter->live_bytes = live_bytes(counter);
    counter->live_majors = counter->majors;
  }
}

static void release(struct counter *counter) {
  if (--counter->references == 0) free(counter);
}

/* V8 collected one of the counter's functions. */
static void on_collected(napi_env env, void *counter, void *hint) {
  (void)env, (void)hint;
  release(counter);
}

/* Runs when the isolate is about to end, or on `stop`. */
static void stop_counting(void *data) {
  struct counter *counter = data;
  remove_prologue(counter->isolate, on_prologue, counter);
  remove_epilogue(counter->isolate, on_epilogue, counter);
  counter->isolate = NULL;
  release(counter);
}

/* Finds the counter of the called function, and reads its argument if `argument` is not NULL. */
static struct counter *find_counter(napi_env env, napi_callback_info call, napi_value *argument) {
  size_t count = argument ? 1 : 0;
  void *counter = NULL;
  return napi_get_cb_info(env, call, &count, argument, NULL, &counter) == napi_ok ? counter : NULL;
}

/* take(out): moves the counts since the last call into a Float64Array, see index.js. */
static napi_value take(napi_env env, napi_callback_info call) {
  napi_value argument;
  struct counter *counter = find_counter(env, call, &argument);
  napi_typedarray_type type;
  size_t length;
  void *memory;
  if (!counter ||
      napi_get_typedarray_info(env, argument, &type, &length, &memory, NULL, NULL) != napi_ok ||
      type != napi_float64_array || length < TAKEN_LENGTH)
    return NULL;
  double *out = memory;
  *out++ = (double)counter->rows_used;
  *out++ = counter->majors;
  *out++ = counter->live_bytes;
  *out++ = counter->live_majors;
  for (size_t i = 0; i < counter->rows_used; i++) {
    struct row *row = &counter->rows[i];
    *out++ = row->kind;
    *out++ = row->flags;
    *out++ = row->count;
    *out++ = row->sum_seconds;
    *out++ = row->longest_seconds;
    row->count = row->sum_seconds = row->longest_seconds = 0;
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
      *out++ = row->buckets[bucket];
      row->buckets[bucket] = 0;
    }
  }
  return NULL;
}

/* readLiveHeap(spaces): reads the live heap after each major GC from now on. Returns the used bytes
 * of these spaces. */
static napi_value read_live_heap(napi_env env, napi_callback_info call) {
  napi_value argument, result;
  struct counter *counter = find_counter(env, call, &argument);
  uint32_t spaces;
  if (!counter || !counter->isolate || napi_get_value_uint32(env, argument, &spaces) != napi_ok)
    return NULL;
  counter->live_spaces = spaces;
  return napi_create_double(env, live_bytes(counter), &result) == napi_ok ? result : NULL;
}

/* stop(): ends the counting for good. */
static napi_value stop(napi_env env, napi_callback_info call) {
  struct counter *counter = find_counter(env, call, NULL);
  if (counter && counter->isolate) {
    napi_remove_env_cleanup_hook(env, stop_counting, counter);
    stop_counting(counter);
  }
  return NULL;
}

/* Exports a function that holds the counter. */
static void set_reader(napi_env env, napi_value object, const char *name, napi_callback function,
                       struct counter *counter) {
  napi_value value;
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, function, counter, &value) != napi_ok ||
      napi_add_finalizer(env, value, counter, on_collected, NULL, NULL) != napi_ok)
    return;
  counter->references++;
  napi_set_named_property(env, object, name, value);
}

/* countGcs(): starts to count in this isolate. Returns undefined if V8 lacks a function. */
static napi_value count_gcs(napi_env env, napi_callback_info call) {
  (void)call;
  if (!current_isolate || !add_prologue || !add_epilogue || !remove_prologue || !remove_epilogue ||
      !get_heap_space_statistics || !uv_hrtime || !calloc || !free)
    return NULL;
  napi_value result;
  void *isolate = current_isolate();
  if (!isolate || napi_create_object(env, &result) != napi_ok) return NULL;
  struct counter *counter = calloc(1, sizeof *counter);
  if (!counter) return NULL;
  if (napi_add_env_cleanup_hook(env, stop_counting, counter) != napi_ok) {
    free(counter);
    return NULL;
  }
  counter->references = 1;
  counter->isolate = isolate;
  set_number(env, result, "takenLength", TAKEN_LENGTH);
  set_reader(env, result, "take", take, counter);
  set_reader(env, result, "readLiveHeap", read_live_heap, counter);
  set_reader(env, result, "stop", stop, counter);
  add_prologue(isolate, on_prologue, counter, ALL_KINDS);
  add_epilogue(isolate, on_epilogue, counter, ALL_KINDS);
  return result;
}

void export_gc_hooks(napi_env env, napi_value exports) {
  set_function(env, exports, "countGcs", count_gcs, NULL);
}
