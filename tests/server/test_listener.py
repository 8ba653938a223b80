"""The socket's place, its modes, and who may connect."""

import asyncio
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.core.errors import ConfigError
from agentd.interfaces.acp.listener import SocketPlace, inherited_socket, peer_uid


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o177, 0o777])
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_modes_are_exact_whatever_the_umask(short_path, umask):
    place = short_path / "home" / "s.sock"
    place.parent.mkdir()
    place.parent.chmod(0o755)
    with SocketPlace(place).bound():
        assert mode(place) == 0o600
        assert mode(place.parent) == 0o700
    assert not place.exists()


def test_a_missing_folder_is_made_private(short_path):
    place = short_path / "a" / "s.sock"
    with SocketPlace(place).bound():
        assert mode(place.parent) == 0o700


def test_a_stale_socket_is_replaced(short_path):
    place = short_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    with SocketPlace(place).bound() as listening, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
        with listening.accept()[0] as accepted:
            accepted.sendall(b"here")
            assert client.recv(4) == b"here"


def test_a_file_in_the_sockets_place_is_left_alone(short_path):
    place = short_path / "s.sock"
    place.write_text("precious")
    with pytest.raises(ConfigError, match="no socket"), SocketPlace(place).bound():
        pass
    assert place.read_text() == "precious"


def test_a_folder_shared_with_others_is_refused(short_path):
    folder = short_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    with pytest.raises(ConfigError, match="shared"), SocketPlace(folder / "s.sock").bound():
        pass
    assert mode(folder) == 0o1777


def test_a_successors_socket_is_not_removed(short_path):
    place = short_path / "s.sock"
    with SocketPlace(place).bound():
        place.rename(short_path / "old.sock")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(place))
    assert place.exists()


async def test_a_path_longer_than_an_address_is_served(open_house, short_path):
    folder = short_path / ("d" * 120)
    place = folder / "agentd.sock"
    assert len(str(place)) > 107
    async with open_house(path=place) as house:
        assert mode(place) == 0o600
        handle = os.open(folder, os.O_PATH)
        try:
            client = await house.client(f"/proc/self/fd/{handle}/agentd.sock")
        finally:
            os.close(handle)
        await client.hello()
    assert not place.exists()


async def test_a_socket_handed_over_is_served_and_not_removed(open_house, short_path):
    place = short_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(place))
        sock.listen()
        async with open_house(path=sock) as house:
            client = await house.client(str(place))
            await client.hello()
        assert place.exists()


def test_without_systemd_there_is_no_inherited_socket():
    assert inherited_socket({}) is None
    assert inherited_socket({"LISTEN_PID": "1", "LISTEN_FDS": "1"}) is None


def test_the_named_socket_is_inherited_and_its_variables_are_removed(short_path):
    script = """
import os, socket, sys
from agentd.interfaces.acp.listener import inherited_socket
path = sys.argv[1]
socks = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for name, sock in zip("ab", socks):
    sock.bind(f"{path}/{name}")
    sock.listen()
handles = [os.dup2(sock.fileno(), 50 + n) for n, sock in enumerate(socks)]
for n, handle in enumerate(handles):
    os.dup2(handle, 3 + n)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="2", LISTEN_FDNAMES="other:agentd")
found = inherited_socket(os.environ)
print(found.getsockname(), [k for k in os.environ if k.startswith("LISTEN")])
os._exit(0 if not sys.stdout.flush() else 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(short_path)], capture_output=True, text=True, timeout=30
    )
    assert done.stdout.strip() == f"{short_path}/b []", done.stderr


def test_the_kernel_names_the_user_at_the_other_end():
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        assert peer_uid(left) == os.getuid()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_another_user_is_turned_away_without_a_word_even_with_open_modes(house):
    house.path.parent.chmod(0o711)
    house.path.chmod(0o666)
    script = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
        "s.connect(sys.argv[1]); print(s.recv(9999))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(house.path), stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    assert told == b"b''\n"
    assert house.server.connections == 0
