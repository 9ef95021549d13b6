"""How many connections and namespaces a server may have open, so that it stays within the files that its process may open.

A process may open a limited number of files, on many systems 1,024 and on some 256. A caller's connection is a file,
and a connection to the store is two. All namespaces share the store's connections, one a thread; what a namespace has
for itself is its index, which for a large one is a file too.
"""

CONNECTIONS = 512  # callers connected at a time, at most; one more is answered with 503
THREADS = 40  # requests that are worked on at a time: the default size of anyio's thread pool
OTHER_FILES = 64  # files beside connections and store: the process's streams and log, the tokens, the model, callers that are turned away
FILES_PER_THREAD = 2  # the thread's connection to the store, and the write-ahead log beside it
FILES_PER_NAMESPACE = 4  # at most: the index of vectors, its successor, and while that is built a connection to the store
MAX_NAMESPACES = 500  # namespaces that stay open, whatever the limit of files: their indexes are in memory


def file_limit() -> int | None:
    "Return how many files this process may open; None: any number, or the system does not say."
    try:
        import resource
    except ImportError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def connection_limit(files: int | None,  # files that the process may open; None: any number
                     ) -> int:
    "Return how many callers may be connected at a time, from 8 to `CONNECTIONS`, so that the store can open what all their requests need."
    if files is None:
        return CONNECTIONS
    free, request = files - OTHER_FILES, FILES_PER_THREAD + FILES_PER_NAMESPACE
    fits = free // (1 + request)  # callers, each with a thread and a namespace of its own
    return max(8, min(CONNECTIONS, fits if fits < THREADS else free - THREADS * request))


def namespace_limit(files: int | None,  # files that the process may open; None: any number
                    ) -> int:
    "Return how many namespaces may stay open: never fewer than requests are worked on at a time, so that one of them is always idle."
    if files is None:
        return MAX_NAMESPACES
    connections = connection_limit(files)
    free = files - connections - FILES_PER_THREAD * THREADS - OTHER_FILES
    return max(min(THREADS, connections), min(MAX_NAMESPACES, free // FILES_PER_NAMESPACE))
