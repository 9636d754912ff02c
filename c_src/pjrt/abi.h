/* The binary interface of PJRT plugins: our own declarations, for version 0.81 and later, as far as the client
 * (docs/accelerators.md lists the plugins that they were checked against) and our own plugin (docs/jax.md) use it.
 * Constants and layouts only; no state.
 *
 * A plugin exports `GetPjrtApi`, which returns a table. Each function of it takes one block: its size, a list of
 * extensions (NULL here), and the fields of that function. A plugin refuses blocks smaller than its own and takes
 * larger ones: so all blocks here end with zero bytes as spare room. */
#ifndef TS_PJRT_ABI_H
#define TS_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PJ_MAJOR = 0, PJ_LEAST_MINOR = 81 };

/* Objects of the plugin. */
typedef struct pj_error pj_error;
typedef struct pj_event pj_event;
typedef struct pj_handle pj_handle; /* a client */
typedef struct pj_device pj_device;
typedef struct pj_description pj_description; /* of a device */
typedef struct pj_executable pj_executable;
typedef struct pj_loaded pj_loaded; /* an executable on the devices of a client */
typedef struct pj_buffer pj_buffer;
typedef struct pj_saved pj_saved;       /* the owner of the bytes of a saved executable */
typedef struct pj_space pj_space;       /* a memory of a device */
typedef struct pj_topology pj_topology; /* devices without a client */

/* The places of functions in the table, and their names for messages. */
#define PJ_FUNCTIONS(F)                                              \
  F(0, ERROR_DESTROY, "PJRT_Error_Destroy")                          \
  F(1, ERROR_MESSAGE, "PJRT_Error_Message")                          \
  F(2, ERROR_CODE, "PJRT_Error_GetCode")                             \
  F(3, INITIALIZE, "PJRT_Plugin_Initialize")                         \
  F(5, EVENT_DESTROY, "PJRT_Event_Destroy")                          \
  F(6, EVENT_IS_READY, "PJRT_Event_IsReady")                         \
  F(7, EVENT_ERROR, "PJRT_Event_Error")                              \
  F(8, EVENT_AWAIT, "PJRT_Event_Await")                              \
  F(9, EVENT_ON_READY, "PJRT_Event_OnReady")                         \
  F(10, CLIENT_CREATE, "PJRT_Client_Create")                         \
  F(11, CLIENT_DESTROY, "PJRT_Client_Destroy")                       \
  F(12, CLIENT_NAME, "PJRT_Client_PlatformName")                     \
  F(14, CLIENT_VERSION, "PJRT_Client_PlatformVersion")               \
  F(16, CLIENT_DEVICES, "PJRT_Client_AddressableDevices")            \
  F(20, COMPILE, "PJRT_Client_Compile")                              \
  F(22, FROM_HOST, "PJRT_Client_BufferFromHostBuffer")               \
  F(26, DESCRIPTION_KIND, "PJRT_DeviceDescription_Kind")             \
  F(29, DEVICE_DESCRIPTION, "PJRT_Device_GetDescription")            \
  F(34, DEVICE_MEMORY, "PJRT_Device_MemoryStats")                    \
  F(40, EXECUTABLE_DESTROY, "PJRT_Executable_Destroy")               \
  F(44, EXECUTABLE_OUTPUTS, "PJRT_Executable_NumOutputs")            \
  F(49, EXECUTABLE_SERIALIZE, "PJRT_Executable_Serialize")           \
  F(50, LOADED_DESTROY, "PJRT_LoadedExecutable_Destroy")             \
  F(51, LOADED_EXECUTABLE, "PJRT_LoadedExecutable_GetExecutable")    \
  F(55, EXECUTE, "PJRT_LoadedExecutable_Execute")                    \
  F(56, LOAD, "PJRT_Executable_DeserializeAndLoad")                  \
  F(58, BUFFER_DESTROY, "PJRT_Buffer_Destroy")                       \
  F(63, BUFFER_LAYOUT, "PJRT_Buffer_GetMemoryLayout")                \
  F(64, BUFFER_SIZE, "PJRT_Buffer_OnDeviceSizeInBytes")              \
  F(69, BUFFER_TO_DEVICE, "PJRT_Buffer_CopyToDevice")                \
  F(70, BUFFER_TO_HOST, "PJRT_Buffer_ToHostBuffer")                  \
  F(71, BUFFER_IS_ON_CPU, "PJRT_Buffer_IsOnCpu")                     \
  F(72, BUFFER_READY, "PJRT_Buffer_ReadyEvent")                      \
  F(74, BUFFER_HOLD, "PJRT_Buffer_IncreaseExternalReferenceCount")   \
  F(75, BUFFER_LET_GO, "PJRT_Buffer_DecreaseExternalReferenceCount") \
  F(76, BUFFER_ADDRESS, "PJRT_Buffer_OpaqueDeviceMemoryDataPointer") \
  F(90, EXECUTABLE_TYPES, "PJRT_Executable_OutputElementTypes")      \
  F(91, EXECUTABLE_DIMS, "PJRT_Executable_OutputDimensions")         \
  F(93, BUFFER_VIEW, "PJRT_Client_CreateViewOfDeviceBuffer")

typedef enum pj_function {
#define PJ_FUNCTION(place, id, name) PJ_##id = (place),
  PJ_FUNCTIONS(PJ_FUNCTION)
#undef PJ_FUNCTION
      PJ_TABLE = 94 /* as many functions a table must have */
} pj_function;

typedef struct pj_version {
  size_t size;
  void *extensions;
  int major, minor;
} pj_version;

typedef struct pj_api {
  size_t size; /* in bytes, with the functions */
  void *extensions;
  pj_version version;
  void (*functions[])(void);
} pj_api;

_Static_assert(offsetof(pj_api, functions) == 40, "the table of a plugin begins with 40 bytes");

typedef const pj_api *(*pj_get_api)(void);

/* A list of extensions begins with one: more functions than the table has. */
enum { PJ_SHARDINGS = 19 };
typedef struct pj_extension {
  size_t size;
  int kind;
  const struct pj_extension *next;
} pj_extension;

/* Codes of errors. */
enum {
  PJ_CANCELLED = 1,
  PJ_UNKNOWN = 2,
  PJ_INVALID_ARGUMENT = 3,
  PJ_DEADLINE_EXCEEDED = 4,
  PJ_NOT_FOUND = 5,
  PJ_ALREADY_EXISTS = 6,
  PJ_PERMISSION_DENIED = 7,
  PJ_RESOURCE_EXHAUSTED = 8,
  PJ_FAILED_PRECONDITION = 9,
  PJ_ABORTED = 10,
  PJ_OUT_OF_RANGE = 11,
  PJ_UNIMPLEMENTED = 12,
  PJ_INTERNAL = 13,
  PJ_UNAVAILABLE = 14,
  PJ_DATA_LOSS = 15
};

/* Types of elements. */
enum {
  PJ_PRED = 1,
  PJ_S8 = 2,
  PJ_S16 = 3,
  PJ_S32 = 4,
  PJ_S64 = 5,
  PJ_U8 = 6,
  PJ_U16 = 7,
  PJ_U32 = 8,
  PJ_U64 = 9,
  PJ_F16 = 10,
  PJ_F32 = 11,
  PJ_F64 = 12,
  PJ_BF16 = 13,
  PJ_C64 = 14,
  PJ_C128 = 15,
  PJ_F8E5M2 = 16,
  PJ_F8E4M3FN = 17,
  PJ_S4 = 21,
  PJ_U4 = 22,
  PJ_S2 = 24,
  PJ_U2 = 25
};

/* An option of a client. They are an array, so a plugin counts on this size. */
enum { PJ_STRING = 0, PJ_INT64 = 1, PJ_INT64S = 2, PJ_FLOAT = 3, PJ_BOOL = 4 };
typedef struct pj_named {
  size_t size;
  void *extensions;
  const char *name;
  size_t name_size;
  int kind;
  union {
    const char *string;
    int64_t integer;
    const int64_t *integers;
    float number;
    bool boolean;
  };
  size_t value_size; /* of a string or a list; 1 for others */
} pj_named;

_Static_assert(sizeof(pj_named) == 56, "an option has 56 bytes");

enum { PJ_ROOM = 64 };

typedef struct pj_program {
  size_t size;
  void *extensions;
  const char *code;
  size_t code_size;
  const char *format; /* "mlir" */
  size_t format_size;
  char room[PJ_ROOM];
} pj_program;

typedef struct pj_execute_options {
  size_t size;
  void *extensions;
  void *send, *receive;
  size_t send_count, receive_count;
  int launch;
  const int64_t *kept; /* arguments whose memory stays theirs */
  size_t kept_count;
  char room[2 * PJ_ROOM];
} pj_execute_options;

/* How elements lie in memory: the list of dims, the fastest one first, or the bytes from one index to the next. */
enum { PJ_ORDER = 0, PJ_STRIDES = 1 };
typedef struct pj_layout {
  size_t size;
  void *extensions;
  union {
    struct {
      size_t size;
      void *extensions;
      const int64_t *minor_to_major;
      size_t rank;
      const int64_t *tiles;
      const size_t *tile_ranks;
      size_t tile_count;
    } order;
    struct {
      size_t size;
      void *extensions;
      const int64_t *bytes;
      size_t rank;
    } strides;
  };
  int kind;
  char room[PJ_ROOM];
} pj_layout;

/* How long the host's data may be read: during the call, until the transfer has ended, or as long as the buffer lives,
 * read only or not. */
enum { PJ_DURING_CALL = 0, PJ_UNTIL_TRANSFERRED = 1, PJ_SHARED = 2, PJ_SHARED_MUTABLE = 3 };

typedef struct pj_args {
  size_t size;
  void *extensions;
  union {
    struct {
      const pj_error *error;
      const char *text; /* out */
      size_t text_size; /* out */
    } message;
    struct {
      const pj_error *error;
      int code; /* out */
    } code;
    struct {
      pj_event *event;
      bool is_ready; /* out */
    } event;
    struct {
      pj_event *event;
      void (*call)(pj_error *error, void *arg); /* owns the error */
      void *arg;
    } on_ready;
    struct {
      const pj_named *options;
      size_t option_count;
      void *exchange[4];
      pj_handle *client; /* out */
    } create;
    struct {
      pj_handle *client;
      const char *text; /* out */
      size_t text_size; /* out */
    } client;
    struct {
      pj_handle *client;
      pj_device *const *devices; /* out */
      size_t count;              /* out */
    } devices;
    struct {
      pj_device *device;
      pj_description *description; /* out */
    } device;
    struct {
      pj_description *description;
      const char *text; /* out */
      size_t text_size; /* out */
    } kind;
    struct {
      pj_device *device;
      int64_t bytes_in_use; /* out, like the other fields; `given` is true for a number that the plugin knows */
      struct {
        int64_t number;
        bool given;
      } peak, allocations, largest, limit, others[6];
    } memory;
    struct {
      pj_handle *client;
      const pj_program *program;
      const char *options; /* never empty: plugins end the process then */
      size_t options_size;
      pj_loaded *loaded; /* out */
    } compile;
    struct {
      pj_handle *client;
      const char *bytes;
      size_t byte_count;
      pj_loaded *loaded;   /* out */
      const char *options; /* NULL: the saved options */
      size_t options_size;
    } load;
    struct {
      pj_loaded *loaded;
      pj_executable *executable; /* out */
    } loaded;
    struct {
      pj_executable *executable;
      size_t count; /* out */
    } outputs;
    struct {
      pj_executable *executable;
      const int *types; /* out */
      size_t count;     /* out */
    } types;
    struct {
      pj_executable *executable;
      size_t count;
      const int64_t *dims; /* out: of all outputs, one after the other */
      const size_t *ranks; /* out */
    } dims;
    struct {
      pj_executable *executable;
      const char *bytes;           /* out */
      size_t byte_count;           /* out */
      pj_saved *saved;             /* out */
      void (*destroy)(pj_saved *); /* out */
    } save;
    struct {
      pj_loaded *loaded;
      pj_execute_options *options;
      pj_buffer *const *const *args; /* of each device */
      size_t device_count, arg_count;
      pj_buffer **const *results; /* out, in the caller's arrays */
      pj_event **complete;        /* out, in the caller's array */
      pj_device *device;
    } execute;
    struct {
      pj_handle *client;
      const void *data;
      int type;
      const int64_t *dims;
      size_t rank;
      const int64_t *strides;
      size_t stride_count;
      int semantics;
      pj_device *device;
      pj_space *memory;
      pj_layout *layout;
      pj_event *read;    /* out: the data is not read any more */
      pj_buffer *buffer; /* out */
    } from_host;
    struct {
      pj_buffer *buffer;
      pj_layout *layout;
      void *to;
      size_t to_size;
      pj_event *event; /* out */
    } to_host;
    struct {
      pj_buffer *buffer;
      pj_device *device;
      pj_buffer *copy; /* out */
    } to_device;
    struct {
      pj_buffer *buffer;
      pj_event *event; /* out */
    } ready;
    void *object; /* of functions that destroy */
    /* What only plugins answer. */
    struct {
      const pj_named *named; /* out */
      size_t count;          /* out */
    } attributes;
    struct {
      void *object;
      const char *text; /* out */
      size_t text_size; /* out */
    } text;
    struct {
      void *object;
      int number; /* out */
    } number;
    struct {
      void *object;
      bool yes; /* out */
    } flag;
    struct {
      void *object;
      int64_t count; /* out */
    } count;
    struct {
      void *object;
      const void *items; /* out */
      size_t count;      /* out */
    } list;
    struct {
      void *object;
      size_t count;          /* out */
      const pj_named *named; /* out */
    } properties;
    struct {
      void *object;
      void *pointer; /* out */
    } pointer;
    struct {
      pj_handle *client;
      int number;
      pj_device *device; /* out */
    } look_up;
    struct {
      pj_handle *client;
      int replicas, partitions;
      size_t room;
      int *devices; /* out, in the caller's array */
    } assignment;
    struct {
      pj_executable *executable;
      size_t count;             /* out */
      const char *const *kinds; /* out */
      const size_t *kind_sizes; /* out */
    } kinds;
    struct {
      pj_executable *executable;
      pj_program *program; /* in and out */
    } optimized;
    struct {
      pj_executable *executable;
      size_t count;                /* out */
      const char *const *messages; /* out: of an OpShardingProto each; NULL: not known */
      const size_t *sizes;         /* out */
    } shardings;
    struct {
      pj_executable *executable;
      int64_t bytes[12]; /* out: of code, arguments, results, aliases, temporaries; of the host; the peak, the total */
    } needs;
    struct {
      pj_buffer *buffer;
      pj_layout layout; /* out */
    } layout;
    struct {
      pj_buffer *buffer;
      pj_space *space;
      pj_buffer *copy; /* out */
    } to_space;
    struct {
      pj_handle *client;
      void *data;
      const int64_t *dims;
      size_t rank;
      int type;
      pj_layout *layout;
      pj_device *device;
      void (*release)(void *data, void *arg);
      void *arg;
      intptr_t stream;
      pj_buffer *buffer; /* out */
      pj_space *space;
    } view;
    struct {
      pj_buffer *buffer;
      void *to;
      int64_t offset, bytes;
      pj_event *event; /* out */
    } raw;
    struct {
      const char *name;
      size_t name_size;
      const pj_named *options;
      size_t option_count;
      pj_topology *topology; /* out */
    } topology;
    struct {
      pj_topology *topology;
      const pj_program *program;
      const char *options;
      size_t options_size;
      pj_handle *client;
      pj_executable *executable; /* out */
    } compile_for;
    char room[6 * PJ_ROOM];
  };
} pj_args;

#define PJ_ARGS(...) ((pj_args){.size = sizeof(pj_args), __VA_ARGS__})

#endif
