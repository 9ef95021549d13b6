"""Tokens: who may call the server, for which namespaces, what for, and until when.

A namespace is a hard partition, and the server keeps it so: a token opens the namespaces that it names and no other. The
right `metrics` is apart, because the figures of a server are about all of its namespaces; `admin` has all rights, and alone
it may erase for good.

A token is 32 random bytes, and only its SHA-256 is kept. (A password needs salt and a slow hash, since people choose
passwords that can be guessed; 256 random bits can't be.) The first letters of the hash are the token's public name, which
identifies it in lists, in the provenance of what it wrote, and for revoking it.

A line of the file is hash, namespace, rights and, as a JSON object, what else is known: label, further namespaces, when the
token was made and when it expires. Lines of earlier versions end after the rights.
"""

import hashlib
import json
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rlm.core.clock import Clock, SystemClock, from_iso, parse_time, to_iso
from rlm.core.errors import InvalidInput, NotFound, RlmError, SettingsError, StoreBusy
from rlm.core.files import file_lock, read_path, replace_file, replacing
from rlm.core.text import valid_label

RIGHTS = ("read", "write", "metrics", "admin")  # write lets read as well, admin lets everything
USES_EVERY = timedelta(minutes=1)  # time between two writes of when tokens were last used
PATIENCE_S = 5.0  # seconds for which such a write waits for another process's
UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}  # of a lifetime such as 90d
GUEST = "guest"  # in place of the hash, for a caller without a token

log = logging.getLogger("rlm.serve")


@dataclass(frozen=True, slots=True)
class Token:
    "What the server knows of a token: its hash, its namespaces, its rights, and when it ends."

    digest: str  # SHA-256 of the token, in hexadecimal
    namespace: str  # the partition it opens, unless a request names one of `others`
    rights: tuple[str, ...]  # one or more of `RIGHTS`
    label: str = ""  # name that a person gave it
    others: tuple[str, ...] = ()  # further partitions it opens
    created: datetime | None = None  # None: made by an earlier version, which kept no dates
    expires: datetime | None = None  # None: never

    @property
    def id(self) -> str:
        "Return its public name, the first eight letters of its hash."
        return self.digest[:8]

    @property
    def is_guest(self) -> bool:
        "Return whether it stands for a caller without a token, where none is needed."
        return self.digest == GUEST

    @property
    def namespaces(self) -> tuple[str, ...]:
        "Return all partitions that it opens."
        return (self.namespace, *self.others)

    def may(self,
            right: str,  # one of `RIGHTS`
            ) -> bool:
        "Return whether it has a right."
        return right in self.rights or "admin" in self.rights or (right == "read" and "write" in self.rights)

    def valid_at(self,
                 moment: datetime,  # the present
                 ) -> bool:
        "Return whether it has not expired."
        return self.expires is None or moment < self.expires

    def within(self,
               namespace: str,  # one of `namespaces`
               ) -> "Token":
        "Return the token as it is used in one of its namespaces."
        return replace(self, namespace=namespace, others=tuple(n for n in self.namespaces if n != namespace))

    def details(self) -> dict[str, Any]:
        "Return what stands after the rights, without what is not known."
        found: dict[str, Any] = {"label": self.label, "namespaces": list(self.others)}
        found |= {"created": self.created and to_iso(self.created), "expires": self.expires and to_iso(self.expires)}
        return {name: value for name, value in found.items() if value}

    def line(self) -> str:
        "Return the line of the token file that says it."
        details = self.details()
        more = f"\t{json.dumps(details, ensure_ascii=False)}" if details else ""
        return f"{self.digest}\t{self.namespace}\t{','.join(self.rights)}{more}\n"


def _read_rights(words: Sequence[str]) -> tuple[str, ...]:
    "Return the rights in the order of `RIGHTS`. Raises `InvalidInput` for an unknown one, and for none at all."
    if not words or set(words) - set(RIGHTS):
        raise InvalidInput(f"The rights are {', '.join(words) or 'none'}.", f"Give some of {', '.join(RIGHTS)}.")
    return tuple(r for r in RIGHTS if r in words)


def read_lifetime(text: str,  # such as 90d, 12h or 30m
                  ) -> timedelta:
    "Return a span of time. Raises `InvalidInput`."
    unit = UNITS.get(text.strip()[-1:])
    try:
        if unit is not None and (number := int(text.strip()[:-1])) > 0:
            return number * unit
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(f"The span of time {text!r} can't be read.", "Write weeks like 2w, days like 90d, hours like 12h, minutes like 30m.")


def read_expiry(text: str,      # a date, a time, or a span of time from now
                now: datetime,  # the present
                ) -> datetime:
    "Return the moment at which a token ends. Raises `InvalidInput`, also when it is past."
    try:
        found = now + read_lifetime(text) if text.strip()[-1:] in UNITS else parse_time(text, "expiry")
    except InvalidInput:
        raise InvalidInput(f"The expiry {text!r} can't be read.",
                           "Write a span of time like 2w, 90d, 12h or 30m, or a date like 2027-01-31.") from None
    except OverflowError:
        raise InvalidInput(f"The expiry {text!r} is too far away.", "Leave it out for a token that never expires.") from None
    if found <= now:
        raise InvalidInput(f"The expiry {text!r} is past.", "Give a moment to come, or a span of time such as 90d.")
    return found


def _read_token(line: str) -> Token:
    "Return the token of a line. Raises `ValueError`, `KeyError` or `RlmError` for a line that is none."
    digest, namespace, rights, *more = line.split("\t")
    if len(digest) != 64 or set(digest) - set("0123456789abcdef") or len(more) > 1:
        raise ValueError("no SHA-256")
    given: dict[str, Any] = json.loads(more[0]) if more else {}
    label, others = str(given.pop("label", "")), tuple(valid_label(n, "namespace") for n in given.pop("namespaces", ()))
    created, expires = (parse_time(given.pop(name), name) if name in given else None for name in ("created", "expires"))
    if given:
        raise ValueError("unknown details")
    return Token(digest, valid_label(namespace, "namespace"), _read_rights(rights.split(",")), label, others, created, expires)


def _read_tokens(text: str, name: str) -> Iterator[Token]:
    "Yield a token a line; empty lines and lines that begin with # are passed over. Raises `SettingsError` for a line that is none."
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            try:
                yield _read_token(line)
            except (ValueError, TypeError, AttributeError, RlmError):
                raise SettingsError(f"Line {number} of the token file {name!r} is no token.", "Write the file with `rlm tokens add` and "
                                    "`rlm tokens revoke` only.") from None


def hash_secret(secret: str,  # a token, as its owner has it
                ) -> str:
    "Return the SHA-256 of a token, in hexadecimal."
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class TokenFile:
    """The tokens in a file, which is read again when it has changed.

    A line that can't be read shuts out every caller, and so does a file that others may read or change: with the rest of the
    file, a server might serve a token that was meant to be revoked. Comments in the file, which begin with #, stay."""

    def __init__(self,
                 path: Path,                  # need not exist
                 clock: Clock | None = None,  # None: the machine's
                 ) -> None:
        self.path, self.clock = read_path(path), clock or SystemClock()
        self._seen: tuple[int, ...] | None = None
        self._tokens: tuple[Token, ...] = ()
        self._by_digest: dict[str, Token] = {}
        self._existed = False

    def tokens(self) -> tuple[Token, ...]:
        "Return all tokens of the file as it is now, expired ones too. Raises `SettingsError`."
        try:
            found = self.path.stat()
            self._existed = True
            seen = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
            if seen != self._seen:
                tokens = tuple(_read_tokens(self.path.read_text(encoding="utf-8-sig"), str(self.path)))
                if os.name == "posix" and stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
                    raise SettingsError(f"The token file {str(self.path)!r} may be read or changed by others (mode "
                                        f"{stat.S_IMODE(found.st_mode):04o}).", f"Keep it to yourself: chmod 600 '{self.path}'")
                self._by_digest, self._tokens, self._seen = {t.digest: t for t in tokens}, tokens, seen  # last, as threads share it
        except FileNotFoundError:
            self._by_digest, self._tokens, self._seen = {}, (), None
        except (OSError, UnicodeDecodeError) as e:
            raise SettingsError(f"The token file {str(self.path)!r} can't be read ({e}).", "Check the path and its permissions.") from None
        return self._tokens

    def required(self) -> bool:
        "Return whether callers need a token: there is a file, or there was one. From then on it stays so. Raises `SettingsError`."
        self.tokens()
        return self._existed

    def holder(self,
               secret: str,  # token that a caller showed
               guest: Token | None = None,  # answer where no token is needed
               ) -> Token | None:
        """Return what is known of a token; None: it is not known, or has expired. Raises `SettingsError`.

        It is looked up by its SHA-256, of which a caller can choose no letter: the time this takes tells nothing of a token."""
        self.tokens()
        if guest is not None and not self._existed:
            return guest
        found = self._by_digest.get(hash_secret(secret))
        return found if found is not None and found.valid_at(self.clock.now()) else None

    def add(self,
            namespace: str | Sequence[str],      # partitions that the token opens, the usual one first
            rights: Sequence[str] = ("write",),  # one or more of `RIGHTS`
            *,
            label: str = "",                     # name that a person gave it
            expires: datetime | None = None,     # moment at which it ends; None: never
            ) -> tuple[str, Token]:
        "Make a token; returns the token itself, which is shown this once, and what is kept of it. Raises `InvalidInput`, `SettingsError`."
        names = [valid_label(n, "namespace") for n in ([namespace] if isinstance(namespace, str) else namespace)]
        if not names:
            raise InvalidInput("A token opens one namespace or more.", "Name one.")
        first, *others = dict.fromkeys(names)
        secret, made = _new_token(Token("", first, _read_rights(rights), label and valid_label(label, "label"), tuple(others),
                                       self.clock.now(), expires))
        self.tokens()  # a file that is no token file is not touched
        with file_lock(self.path):
            self.tokens()
            self._write([*self._lines(), made.line()])
        return secret, made

    def rotate(self,
               id: str,                         # public name of a token
               grace: timedelta = timedelta(),  # time for which the old one still works
               ) -> tuple[str, Token]:
        "Make a token that replaces another one: same label, namespaces, rights and expiry. Returns what `add` does. Raises `NotFound`."
        self._token(id)
        with file_lock(self.path):
            old, now = self._token(id), self.clock.now()
            if not old.valid_at(now):
                raise InvalidInput(f"The token {id!r} has expired.", "Make another one with: rlm tokens add")
            ends = now + grace if old.expires is None else min(now + grace, old.expires)
            secret, made = _new_token(replace(old, created=now))
            kept = [replace(old, expires=ends).line()] if ends > now else []
            self._write([*(x for line in self._lines() for x in (kept if line.startswith(old.digest) else [line])), made.line()])
        return secret, made

    def revoke(self,
               id: str,  # public name of a token
               ) -> Token:
        "Take a token back: it is refused from the next request on. Raises `NotFound`."
        self._token(id)
        with file_lock(self.path):
            gone = self._token(id)
            self._write([line for line in self._lines() if not line.startswith(gone.digest)])
        return gone

    def _token(self, id: str) -> Token:
        found = next((t for t in self.tokens() if t.id == id), None)
        if found is None:
            raise NotFound(f"There is no token {id!r} in {str(self.path)!r}.", "See them with: rlm tokens list")
        return found

    def _lines(self) -> list[str]:
        "Return the lines of the file, which was found readable, each with its end; none if it is not there."
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        return [f"{line}\n" for line in text.removesuffix("\n").split("\n")] if text else []

    def _write(self, lines: Sequence[str]) -> None:
        "Replace the file as a whole, so that only its owner can read it. Raises `StoreError`."
        with replacing(self.path) as part:
            part.write_text("".join(lines), encoding="utf-8", newline="\n")


def _new_token(token: Token) -> tuple[str, Token]:
    "Return a fresh token, and what is kept of it."
    secret = f"rlm_{secrets.token_urlsafe(32)}"
    return secret, replace(token, digest=hash_secret(secret))


class TokenUses:
    """When each token was last used, in the file `.used` beside the token file.

    A server writes it at most once a minute, in a thread of its own, and when it stops; several servers may share it."""

    def __init__(self,
                 tokens_path: Path,           # place of the token file
                 clock: Clock | None = None,  # None: the machine's
                 ) -> None:
        self.path, self.clock = tokens_path.with_name(f"{tokens_path.name}.used"), clock or SystemClock()
        self._uses: dict[str, datetime] = {}
        self._saved: datetime | None = None
        self._lock = threading.Lock()  # held while the file is written

    def read(self) -> dict[str, datetime]:
        "Return when each token was last used, by its public name, as the file has it."
        try:
            lines = (line.split("\t") for line in self.path.read_text(encoding="utf-8").splitlines())
            return {id: from_iso(at) for id, at in lines}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as e:
            raise SettingsError(f"The file {str(self.path)!r} can't be read ({e}).",
                                "Delete it: it says when tokens were last used.") from None

    def note(self, token: Token) -> None:
        "Note that a token is used now. A thread writes it once a minute: neither a file nor a lock on it keeps a request waiting."
        now = self.clock.now()
        self._uses[token.id] = now
        if self._saved is None or now - self._saved >= USES_EVERY:
            self._saved = now
            threading.Thread(target=self.save, name="rlm-token-uses", daemon=True).start()

    def save(self,
             patience_s: float = PATIENCE_S,  # seconds to wait for another process that writes the file
             ) -> None:
        "Write what was noted. What can't be written now stays noted, and is said in the log: no request fails for it."
        with self._lock:
            if not (uses := dict(self._uses)):
                return
            try:
                self._write(uses, patience_s)
            except (RlmError, OSError) as e:
                log.warning("When tokens were last used was not stored: %s", e)
                return
            for id, at in uses.items():
                if self._uses.get(id) == at:  # else it was used again meanwhile
                    del self._uses[id]

    def _write(self, uses: Mapping[str, datetime], patience_s: float) -> None:
        "Add uses to those in the file. Raises `StoreError`, `SettingsError`."
        until = time.monotonic() + patience_s
        while True:
            with file_lock(self.path, wait=False) as mine:
                if mine:
                    found = self.read()
                    found |= {id: max(at, found.get(id, at)) for id, at in uses.items()}
                    replace_file(self.path, [f"{id}\t{to_iso(at)}" for id, at in sorted(found.items())])
                    return
            if time.monotonic() > until:
                raise StoreBusy(f"The file {str(self.path)!r} is locked by another process.", "It is tried again in a minute.")
            time.sleep(0.05)
