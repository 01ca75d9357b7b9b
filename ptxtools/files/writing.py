"""Write files whole or not at all, changing nothing of an existing file but its content.

- A symbolic link is followed: its target gets the content, and the link stays.
- A new file gets the mode that the umask, or the folder's default ACL, gives.
- An existing file keeps its mode, owner, group, extended attributes and ACL: a new file gets all of these first and is
  renamed over it.
- Where a new file could not be identical in these, the file is written in place: a file with several hard links, with
  an owner or group that the user may not set, or a mount point. Its previous content is kept in a file beside it until
  the write succeeds, and restored if it fails.
- Anything but a regular file (a device, a pipe, `/dev/stdout`) is written to directly.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import IO

Writer = Callable[[IO[bytes]], object]

#: Links followed before they count as a loop, as in Linux.
_MOST_LINKS = 40
#: The error of renaming over a mount point.
_NOT_REPLACEABLE = frozenset({errno.EBUSY, errno.EXDEV})
#: Attributes set by the system, which users may not copy.
_SYSTEM_ATTRIBUTES = ("security.", "trusted.")


class _InPlace(Exception):  # noqa: N818 - a decision
    """This file cannot be replaced by a new one."""


def write_whole(path: str, write: Writer) -> None:
    """Write a file with `write`, which gets an open binary file; the file is written whole or not at all.

    Raises OSError; its `strerror` gives the reason, and names the object if it is not the file itself.
    """
    target, descriptor = _resolved(path)
    if descriptor is not None:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            write(file)
        return
    try:
        there = os.stat(target)
    except FileNotFoundError:
        _replace(target, None, write)
        return
    if not stat.S_ISREG(there.st_mode):
        with open(target, "wb") as file:
            write(file)
        return
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    try:
        if there.st_nlink > 1:
            raise _InPlace
        _replace(target, there, write)
    except _InPlace:
        _write_in_place(target, write)


def reason(error: OSError | ValueError) -> str:
    """The message of an error, without number and file name."""
    return getattr(error, "strerror", None) or str(error)


def _resolved(path: str) -> tuple[str, int | None]:
    """The path after following symbolic links, or the open file of this process that it names, as /dev/stdout does."""
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(path)
        descriptors = ("/dev/fd", "/proc/self/fd", f"/proc/{os.getpid()}/fd")
        if name.isdecimal() and (folder in descriptors or os.path.realpath(folder) in descriptors):
            return path, int(name)
        try:
            path = os.path.join(folder, os.readlink(path))
        except OSError:  # not a link
            return path, None
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _replace(path: str, there: os.stat_result | None, write: Writer) -> None:
    """Rename a new file over `path`, with the attributes of `there`. Raises _InPlace if they cannot be set."""
    temporary, handle = _new_beside(path, 0o666 if there is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if there is not None:
                _make_alike(handle, path, there)
            write(file)
        try:
            os.replace(temporary, path)
        except OSError as error:
            if there is not None and error.errno in _NOT_REPLACEABLE:
                raise _InPlace from None
            raise
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _new_beside(path: str, mode: int) -> tuple[str, int]:
    """Create a file in the folder of `path`, with an unrelated name, since the name of `path` may have the maximum
    length."""
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".ptxtools-{os.getpid()}-{os.urandom(6).hex()}.tmp")
    try:
        return temporary, os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            what = f"cannot create a file in the folder '{folder or '.'}': {error.strerror}"
            raise OSError(error.errno, what, path) from None
        raise


def _make_alike(handle: int, path: str, there: os.stat_result) -> None:
    """Give an open file the owner, group, mode and extended attributes of another. Raises _InPlace if that fails."""
    try:
        own = os.fstat(handle)
        if (own.st_uid, own.st_gid) != (there.st_uid, there.st_gid):
            os.fchown(handle, there.st_uid, there.st_gid)
        os.fchmod(handle, stat.S_IMODE(there.st_mode))
        if hasattr(os, "listxattr"):
            _copy_attributes(handle, path)
    except OSError:
        raise _InPlace from None


def _copy_attributes(handle: int, path: str) -> None:
    """Copy extended attributes, including ACLs; attributes from the folder's default ACL that the other lacks are
    removed."""
    try:
        wanted = [name for name in os.listxattr(path) if not name.startswith(_SYSTEM_ATTRIBUTES)]
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return
        raise
    for name in os.listxattr(handle):
        if name not in wanted and not name.startswith(_SYSTEM_ATTRIBUTES):
            os.removexattr(handle, name)
    for name in wanted:
        os.setxattr(handle, name, os.getxattr(path, name))


def _write_in_place(path: str, write: Writer) -> None:
    """Write into the file itself; its previous content is kept in a file beside it, and restored on failure."""
    with open(path, "rb") as file:
        former = file.read()
    backup, handle = _new_beside(path, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(former)
    except BaseException:
        os.unlink(backup)
        raise
    try:
        with open(path, "r+b") as file:
            write(file)
            file.truncate()
    except BaseException:
        _put_back(path, former, backup)
        raise
    os.unlink(backup)


def _put_back(path: str, former: bytes, backup: str) -> None:
    try:
        with open(path, "r+b") as file:
            file.write(former)
            file.truncate()
    except OSError as error:
        what = f"{error.strerror}; its previous content is in '{backup}'"
        raise OSError(error.errno, what, path) from None
    os.unlink(backup)
