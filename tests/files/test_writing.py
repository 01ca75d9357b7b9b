"""What is written appears whole or not at all, and a file that was there stays the file that it was."""

import errno
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from ptxtools.files import writing as files
from ptxtools.files.writing import write_whole
from ptxtools.launch.errors import SpecError
from ptxtools.launch.output import save_array


def put(path, data):
    write_whole(str(path), lambda file: file.write(data))


def full(file):
    """A writer that fails half way."""
    file.write(b"half of it")
    file.flush()
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(b"former content, longer than the new one")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- new files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_obeys_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        put(tmp_path / "new", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~mask and names(tmp_path) == ["new"]


def test_a_name_as_long_as_names_can_be(tmp_path):
    put(tmp_path / ("n" * 255), b"x")
    assert names(tmp_path) == ["n" * 255]


def test_a_failure_leaves_nothing_behind(tmp_path):
    with pytest.raises(OSError, match="No space left"):
        write_whole(str(tmp_path / "new"), full)
    assert names(tmp_path) == []


def test_a_folder_that_takes_no_new_files(tmp_path, old, monkeypatch):
    """Said of the folder: the file itself may be writable. (Stubbed: nothing is read-only for root.)"""
    monkeypatch.chdir(tmp_path)

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.os, "open", refuse)
    for path in ("new", str(old)):
        with pytest.raises(OSError, match=r"cannot create a file in the folder '.*': Permission denied") as caught:
            put(path, b"x")
        assert caught.value.filename == path
    assert old.read_bytes().startswith(b"former")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OSError, match="cannot create a file"):
            put(tmp_path / "new", b"x")
    finally:
        tmp_path.chmod(0o700)


def test_a_file_that_may_not_be_written(old, monkeypatch):
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError):
        put(old, b"x")
    assert old.read_bytes().startswith(b"former")


# --- files that are there ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o664])
def test_the_mode_stays(old, mode):
    old.chmod(mode)
    put(old, b"new")
    assert old.read_bytes() == b"new" and stat.S_IMODE(old.stat().st_mode) == mode


def test_a_file_is_replaced_and_never_seen_half_written(old):
    with old.open("rb") as reader:
        put(old, b"new")
        assert reader.read().startswith(b"former") and old.read_bytes() == b"new"


def test_a_failure_leaves_the_former_content(tmp_path, old):
    with pytest.raises(OSError, match="No space left"):
        write_whole(str(old), full)
    assert old.read_bytes().startswith(b"former") and names(tmp_path) == ["old"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owner_and_group_stay(old):
    os.chown(old, 12345, 23456)
    put(old, b"new")
    assert (old.stat().st_uid, old.stat().st_gid) == (12345, 23456) and old.read_bytes() == b"new"


def test_an_owner_that_the_user_may_not_give(tmp_path, old, monkeypatch):
    """Then the file itself is written, so that it keeps what it has."""

    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(files.os, "fchmod", refuse)
    inode = old.stat().st_ino
    put(old, b"new")
    assert old.read_bytes() == b"new" and old.stat().st_ino == inode and names(tmp_path) == ["old"]


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
def test_extended_attributes_stay(old):
    try:
        os.setxattr(old, "user.origin", b"nvcc 12.8")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    put(old, b"new")
    assert os.getxattr(old, "user.origin") == b"nvcc 12.8" and old.read_bytes() == b"new"


def test_hard_links_stay_linked(tmp_path, old):
    os.link(old, tmp_path / "other")
    put(old, b"new")
    assert (tmp_path / "other").read_bytes() == b"new" and old.samefile(tmp_path / "other")
    assert names(tmp_path) == ["old", "other"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_while_a_linked_file_is_written_puts_it_back(tmp_path, old, error):
    os.link(old, tmp_path / "other")

    def fail(file):
        file.write(b"half of it")
        file.flush()
        raise error

    with pytest.raises(type(error)):
        write_whole(str(old), fail)
    assert old.read_bytes().startswith(b"former content") and old.samefile(tmp_path / "other")
    assert names(tmp_path) == ["old", "other"]


def test_where_even_that_fails_the_former_content_is_named(tmp_path, old, monkeypatch):
    os.link(old, tmp_path / "other")
    plain = open
    opened = []

    def worn_out(path, mode="r", *more, **also):
        opened.append(mode)
        if opened.count("r+b") > 1:
            raise OSError(errno.EIO, "Input/output error")
        return plain(path, mode, *more, **also)

    monkeypatch.setattr("builtins.open", worn_out)
    with pytest.raises(OSError, match=r"Input/output error; its previous content is in '(.*)'") as caught:
        write_whole(str(old), full)
    monkeypatch.undo()
    (backup,) = (path for path in tmp_path.iterdir() if path.name.startswith("."))
    assert str(backup) in caught.value.strerror and backup.read_bytes().startswith(b"former content, longer")


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EXDEV])
def test_a_file_that_is_mounted_by_itself_is_written_in_place(tmp_path, old, monkeypatch, code):
    def busy(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "replace", busy)
    put(old, b"new")
    assert old.read_bytes() == b"new" and names(tmp_path) == ["old"]


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("absolute", [False, True])
def test_a_symbolic_link_is_followed(tmp_path, old, absolute):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link").symlink_to(old if absolute else "../old")
    (tmp_path / "again").symlink_to("inner/link")
    put(tmp_path / "again", b"new")
    assert old.read_bytes() == b"new" and not old.is_symlink()
    assert (tmp_path / "again").is_symlink() and (inner / "link").is_symlink() and names(inner) == ["link"]


def test_a_link_to_nothing_makes_its_target(tmp_path):
    (tmp_path / "link").symlink_to("target")
    put(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"new" and (tmp_path / "link").is_symlink()


def test_links_that_go_round(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        put(tmp_path / "a", b"x")


# --- no regular files -------------------------------------------------------------------------------------------------


def test_null_and_folders(tmp_path):
    put("/dev/null", b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(IsADirectoryError):
        put(tmp_path, b"x")


def test_a_named_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    put(path, b"through")
    reader.join()
    assert found == [b"through"] and stat.S_ISFIFO(path.stat().st_mode)


WRITES = (
    "import sys; from ptxtools.files.writing import write_whole; write_whole(sys.argv[1], lambda f: f.write(b'new'))"
)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_name(tmp_path, name):
    """A file behind it goes on where it is: what stands there before is not lost."""
    if not os.path.exists(name):
        pytest.skip(f"there is no {name}")
    command = [sys.executable, "-c", WRITES, name]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"new"
    with (tmp_path / "out").open("wb") as file:
        file.write(b"before, ")
        file.flush()
        subprocess.run(command, stdout=file, check=True)
    assert (tmp_path / "out").read_bytes() == b"before, new"
    assert names(tmp_path) == ["out"]


# --- arrays -----------------------------------------------------------------------------------------------------------


def test_an_array_goes_through_a_link_and_a_pipe(tmp_path, old):
    (tmp_path / "link").symlink_to("old")
    save_array(str(tmp_path / "link"), np.arange(5))
    assert np.load(old).tolist() == [0, 1, 2, 3, 4] and (tmp_path / "link").is_symlink()
    code = "import numpy as np; from ptxtools.launch.output import save_array; save_array('/dev/stdout', np.arange(5))"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert piped == old.read_bytes()


def test_an_array_that_cannot_be_saved(tmp_path):
    with pytest.raises(SpecError, match=r"x\.npy: cannot be written: No such file or directory"):
        save_array(str(tmp_path / "none" / "x.npy"), np.arange(5))
