"""Errors of a PostgreSQL server, as errors that a person can act on."""

from ...core.errors import StoreBusy, StoreClash, StoreCorrupt, StoreError, StoreFull, StoreMoved, StoreReadOnly, StoreUnreachable
from ...core.files import hidden_password
from .schema import MOVED

NOTHING_STORED = "nothing of this write was stored"


def is_lost(error: BaseException | None,  # error that psycopg raised; None: none
            ) -> bool:
    "Return whether a connection broke, or the server says that it is stopping or starting."
    import psycopg
    from psycopg_pool import PoolClosed, PoolTimeout
    return isinstance(error, psycopg.OperationalError) and not isinstance(error, PoolClosed | PoolTimeout) and (
        error.sqlstate is None or error.sqlstate.startswith("57P"))


def moved_error(place: str,  # address of the instance that was asked, without a password
                said: str,   # message that names the instance to which the namespace went
                ) -> StoreMoved:
    "Return the error of a namespace that went to another instance."
    return StoreMoved(f"The namespace is no longer in {place!r}: {said}.",
                      f"Open the store again, and it is found there; {NOTHING_STORED}.")


def explain_server_error(error: Exception,  # error that psycopg raised
                         place: str,        # address of the store, without a password
                         ) -> StoreError:
    "Return our error for one of psycopg's, by its SQLSTATE."
    import psycopg
    from psycopg import errors
    from psycopg_pool import PoolClosed, PoolTimeout
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, PoolClosed):
        return StoreError(f"The store {place!r} is closed.", "Open it again.")
    if isinstance(error, PoolTimeout):
        return StoreUnreachable(f"No connection to {place!r} came about.",
                                "Is the server up? If so, let fewer threads use the store at once.")
    if getattr(error, "sqlstate", None) == MOVED:
        return moved_error(place, said)
    if isinstance(error, errors.QueryCanceled):
        return StoreBusy(f"The server of {place!r} ended a statement that took too long ({said}).",
                         f"Raise statement_timeout of the role or the database, or ask for less; {NOTHING_STORED}.")
    if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected | errors.SerializationFailure):
        return StoreBusy(f"The store {place!r} is being written by another process.",
                         f"Try again, or raise the setting busy_timeout_s; {NOTHING_STORED}.")
    if isinstance(error, errors.IntegrityError):
        return StoreClash(f"The store {place!r} refused contradictory rows.", "Nothing was stored.")
    if isinstance(error, errors.DiskFull | errors.OutOfMemory):
        return StoreFull(f"The server of {place!r} has no room left.", f"Free some space there, then try again; {NOTHING_STORED}.")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StoreReadOnly(f"The store {place!r} is read-only.", "Connect to the primary server, or open the store to read it.")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(f"The role of {place!r} has not the rights for that ({said}).",
                          "Let the owner give it them, before its first use too: rlm db init postgresql://OWNER@HOST/DATABASE --role ROLE")
    if isinstance(error, errors.UndefinedObject):
        return StoreError(f"The server of {place!r} does not know that ({said}).", "Make it first: docs/postgresql.md has the statements.")
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.UndefinedFunction):
        return StoreCorrupt(f"The store {place!r} lacks a part of its tables ({said}).", "Restore a backup of the database.")
    if isinstance(error, errors.DataError):
        return StoreError(f"The store {place!r} can't hold such a value ({said}).", "PostgreSQL takes no NUL character in a text.")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreError(f"The connection to {place!r} failed ({said}).", "Is the server up? A write that was under way was not "
                          "acknowledged: read before you repeat it. The next call connects again.")
    return StoreError(f"The store {place!r} could not do that ({said}).", "See the message of PostgreSQL.")


def connection_error(error: Exception,  # error that psycopg raised when it connected
                     url: str,          # address of the store
                     ) -> StoreError:
    "Return our error for a connection that could not be made."
    found = explain_server_error(error, hidden_password(url))
    if getattr(error, "sqlstate", None) == "42501":  # a connection was made, and the role may not do what comes first
        return found
    answers = "FATAL" in str(error)
    right = "Are role, password and database right?" if answers else "Is the server up, and is the address right?"
    found.hint = f"{right} Nothing was done."
    return found
