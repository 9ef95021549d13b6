"""Tokens: who may call the server, for which namespace, and what for.

A namespace is a hard partition, and the server keeps it so: a token opens one namespace and no other. The right
`metrics` is apart, because the figures of a server are about all of its namespaces.

A token is 32 random bytes, and only its SHA-256 is kept. (A password needs salt and a slow hash, since people choose
passwords that can be guessed; 256 random bits can't be.) The first letters of the hash are the token's public name,
which identifies it in lists, in the provenance of what it wrote, and for revoking it.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm.core.errors import InvalidInput, NotFound, RlmError, SettingsError
from rlm.core.files import read_path
from rlm.core.text import valid_label

RIGHTS = ("read", "write", "metrics")  # write lets read as well


@dataclass(frozen=True, slots=True)
class Token:
    "What the server knows of a token: its hash, its namespace and its rights."

    digest: str  # SHA-256 of the token, in hexadecimal
    namespace: str  # the partition it opens
    rights: tuple[str, ...]  # one or more of `RIGHTS`

    @property
    def id(self) -> str:
        "Return its public name, the first eight letters of its hash."
        return self.digest[:8]

    def may(self,
            right: str,  # one of `RIGHTS`
            ) -> bool:
        "Whether it has a right."
        return right in self.rights or (right == "read" and "write" in self.rights)

    def line(self) -> str:
        "Return the line of the token file that says it."
        return f"{self.digest}\t{self.namespace}\t{','.join(self.rights)}\n"


def read_rights(words: Sequence[str],  # names of rights, as a person gave them
                ) -> tuple[str, ...]:
    "Return the rights in the order of `RIGHTS`. Raises `InvalidInput` for an unknown one, and for none at all."
    if not words or set(words) - set(RIGHTS):
        raise InvalidInput(f"The rights are {', '.join(words) or 'none'}.", f"Give some of {', '.join(RIGHTS)}.")
    return tuple(r for r in RIGHTS if r in words)


def read_tokens(text: str,  # contents of a token file
                name: str,  # name of that file, for messages
                ) -> Iterator[Token]:
    "Yield a token a line; empty lines and lines that begin with # are passed over. Raises `SettingsError` for a line that is none."
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            try:
                digest, namespace, rights = line.split("\t")
                if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
                    raise ValueError("no SHA-256")
                yield Token(digest, valid_label(namespace, "namespace"), read_rights(rights.split(",")))
            except (ValueError, RlmError):
                raise SettingsError(f"Line {number} of the token file {name!r} is no token.", "Write the file with `rlm tokens add` and "
                                    "`rlm tokens revoke` only.") from None


def hash_secret(secret: str,  # a token, as its owner has it
                ) -> str:
    "Return the SHA-256 of a token, in hexadecimal."
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def write_tokens(path: Path,  # place of a token file
                 mode: int,   # `os.O_APPEND`, or `os.O_TRUNC`
                 text: str,   # lines to write
                 ) -> None:
    "Write to a token file that only its owner can read. Raises `SettingsError`."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as e:
        raise SettingsError(f"The token file {str(path)!r} can't be written ({e.strerror}).", "Check its folder.") from None


class TokenFile:
    """The tokens in a file, which is read again when it has changed.

    A line that can't be read shuts out everybody: a server that goes on with the rest would leave open what somebody
    meant to shut. Notes of people in the file, which begin with #, stay as they are."""

    def __init__(self,
                 path: Path,  # need not exist
                 ) -> None:
        self.path = read_path(path)
        self._seen: tuple[int, ...] | None = None
        self._tokens: tuple[Token, ...] = ()

    def tokens(self) -> tuple[Token, ...]:
        "Return all tokens of the file as it is now. Raises `SettingsError`."
        try:
            found = self.path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen != self._seen:
                self._tokens = tuple(read_tokens(self.path.read_text(encoding="utf-8"), str(self.path)))
                self._seen = seen
        except FileNotFoundError:
            self._tokens, self._seen = (), None
        except (OSError, UnicodeDecodeError) as e:
            raise SettingsError(f"The token file {str(self.path)!r} can't be read ({e}).", "Check the path and its permissions.") from None
        return self._tokens

    def holder(self,
               secret: str,  # token that a caller showed
               ) -> Token | None:
        "Return what is known of a token, or None. It is compared with all of them, in full, so that the time this takes tells nothing."
        digest, found = hash_secret(secret), None
        for token in self.tokens():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def add(self,
            namespace: str,                      # partition that the token opens
            rights: Sequence[str] = ("write",),  # one or more of `RIGHTS`
            ) -> tuple[str, Token]:
        "Make a token; returns the token itself, which is shown this once, and what is kept of it. Raises `InvalidInput`, `SettingsError`."
        self.tokens()
        secret = f"rlm_{secrets.token_urlsafe(32)}"
        made = Token(hash_secret(secret), valid_label(namespace, "namespace"), read_rights(rights))
        unfinished = self._text()[-1:] not in ("", "\n")  # the last line has no end
        write_tokens(self.path, os.O_APPEND, "\n" * unfinished + made.line())
        return secret, made

    def revoke(self,
               id: str,  # public name of a token
               ) -> Token:
        "Take a token back: it is refused from the next request on. Raises `NotFound`."
        gone = [t for t in self.tokens() if t.id == id]
        if not gone:
            raise NotFound(f"There is no token {id!r} in {str(self.path)!r}.", "See them with: rlm tokens list")
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        write_tokens(part, os.O_TRUNC, "".join(line for line in self._text().splitlines(keepends=True) if not line.startswith(id)))
        os.replace(part, self.path)
        return gone[0]

    def _text(self) -> str:
        "Return the contents of the file, which was found readable; empty if it is not there."
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""
