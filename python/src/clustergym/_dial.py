"""Opens a connection: name, proxy, TCP, TLS and the upgrade to WebSocket, all within one deadline.

websocket-client makes the upgrade. Everything that waits is done here: a time limit for each read would not end the wait
for a server that sends a byte now and then.
"""

from __future__ import annotations

import base64
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import websocket

from .errors import ClusterGymError, ConnectionLost, ProtocolError, RemoteError, ReplyTimeout, Unauthorized

__all__ = ["Lost", "dial_socket", "loopback", "normalize_url"]

SUBPROTOCOL = "gbp.v1.msgpack"
_MOST_HEAD = 1 << 16  # bytes of a proxy's answer


class Lost(Exception):
    """The connection broke without a close frame: the session may be resumed."""


def normalize_url(url: str) -> str:
    """The WebSocket address of url, which may be ``host:port``, ``http(s)://…`` or ``ws(s)://…``.

    Raises:
        ValueError: it has another scheme, no host, or carries a user, password or query.
    """
    full = url if "://" in url else "ws://" + url
    parts = urlsplit(full)
    if parts.username or parts.password or parts.query:
        raise ValueError("url: a token belongs into token=, not into the address")
    scheme = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}.get(parts.scheme)
    if scheme is None:
        raise ValueError(f"url {url!r}: scheme {parts.scheme!r}, want ws, wss, http or https")
    if not parts.hostname:
        raise ValueError(f"url {url!r}: no host")
    path = parts.path if parts.path not in ("", "/") else "/v1/ws"
    return f"{scheme}://{parts.netloc}{path}"


def loopback(host: str) -> bool:
    """Whether host names this machine's loopback interface."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _proxy(host: str, port: int, secure: bool) -> str | None:
    """The proxy for a server, from ``http_proxy``, ``https_proxy`` and ``no_proxy``. Loopback never has one."""
    if loopback(host):
        return None
    proxies: dict[str, str] = getproxies_environment()
    found = proxies.get("https" if secure else "http")
    if not found or proxy_bypass_environment(f"{host}:{port}", proxies):
        return None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return found
    for entry in (proxies.get("no") or "").split(","):
        try:
            if address in ipaddress.ip_network(entry.strip(), strict=False):
                return None
        except ValueError:
            continue  # a name
    return found


class _Timed:
    """A socket whose reads and writes all end at one deadline."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self.sock, self.deadline = sock, deadline

    def _left(self) -> socket.socket:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.sock.settimeout(left)
        return self.sock

    def recv(self, n: int) -> bytes:
        return self._left().recv(n)

    def send(self, data: bytes) -> int:
        return self._left().send(data)

    def fileno(self) -> int:
        return self.sock.fileno()

    def settimeout(self, seconds: float | None) -> None:
        pass  # the deadline stands

    def gettimeout(self) -> float:
        return max(0.001, self.deadline - time.monotonic())

    def shutdown(self, how: int) -> None:
        self.sock.shutdown(how)

    def close(self) -> None:
        self.sock.close()


def _addresses(host: str, port: int, deadline: float) -> list[Any]:
    """The addresses of a host. Names are looked up by a thread, because the system's resolver knows no deadline."""

    def look() -> list[Any]:
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, socket.IPPROTO_TCP)

    try:
        ipaddress.ip_address(host)
        return look()
    except ValueError:
        pass  # a name
    found: list[Any] = []

    def run(look: Callable[[], list[Any]] = look) -> None:
        try:
            found.append(look())
        except BaseException as e:
            found.append(e)

    thread = threading.Thread(target=run, name="clustergym-resolve", daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    if not found:
        raise TimeoutError(f"the name {host} was not resolved in time")
    if isinstance(found[0], BaseException):
        raise found[0]
    addresses: list[Any] = found[0]
    return addresses


def _connect(host: str, port: int, deadline: float) -> socket.socket:
    """A TCP connection to the first address that takes one."""
    addresses = _addresses(host, port, deadline)
    last: OSError = OSError(f"{host} has no address")
    for i, (family, kind, proto, _, address) in enumerate(addresses):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        sock = socket.socket(family, kind, proto)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.settimeout(left / (len(addresses) - i))  # an address that is dead leaves time for the others
            sock.connect(address)
            return sock
        except OSError as e:
            sock.close()
            last = e
        except BaseException:
            sock.close()
            raise
    raise last


def _tunnel(sock: socket.socket, proxy: str, host: str, port: int, deadline: float) -> None:
    """Asks an HTTP proxy for a connection to host."""
    parts = urlsplit(proxy)
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if parts.username:
        both = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        head += f"Proxy-Authorization: Basic {base64.b64encode(both.encode()).decode()}\r\n"
    timed = _Timed(sock, deadline)
    rest = (head + "\r\n").encode()
    while rest:
        rest = rest[timed.send(rest) :]
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        byte = timed.recv(1)  # no more, because what follows is the server's
        if not byte or len(answer) > _MOST_HEAD:
            raise Lost("the proxy closed the connection or sent no answer to CONNECT")
        answer += byte
    status = answer.split(b"\r\n", 1)[0]
    if status.split()[1:2] != [b"200"]:
        raise Lost(f"the proxy answered CONNECT with {status[:100].decode('latin-1')!r}")


def dial_socket(
    url: str,
    token: str | None,
    deadline: float,
    context: ssl.SSLContext | None,
    headers: dict[str, str] | None,
) -> socket.socket:
    """A connected socket on which WebSocket frames may follow. ``transport.dial`` documents arguments and errors."""
    parts = urlsplit(url)
    secure = parts.scheme == "wss"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    begun = time.monotonic()
    sock: socket.socket | None = None
    try:
        proxy = _proxy(host, port, secure)
        if proxy is None:
            sock = _connect(host, port, deadline)
        else:
            via = urlsplit(proxy if "://" in proxy else "http://" + proxy)
            if via.scheme != "http":
                raise Lost(f"the proxy for {host} is of kind {via.scheme!r}, want http")
            sock = _connect(via.hostname or "", via.port or 80, deadline)
            _tunnel(sock, proxy if "://" in proxy else "http://" + proxy, host, port, deadline)
        if secure:
            sock.settimeout(max(0.001, deadline - time.monotonic()))
            sock = (context or ssl.create_default_context()).wrap_socket(sock, server_hostname=host)
        _upgrade(url, sock, token, deadline, headers)
    except (ClusterGymError, Lost):
        _close(sock)
        raise
    except (websocket.WebSocketTimeoutException, TimeoutError) as e:
        _close(sock)
        seconds = max(0.0, deadline - begun)
        raise ReplyTimeout(f"connect: {url} did not answer within {seconds:.3g} s", "connect", seconds) from e
    except ssl.SSLError as e:
        _close(sock)
        raise ConnectionLost(f"connect: {url}: TLS: {e}", reason=str(e)) from e
    except (OSError, websocket.WebSocketException) as e:
        _close(sock)
        if type(e) is websocket.WebSocketException:
            raise ProtocolError(f"{url} is no server that speaks {SUBPROTOCOL}: {e}") from e
        raise Lost(f"{url}: {e}") from e
    except BaseException:
        _close(sock)
        raise
    return sock


def _close(sock: socket.socket | None) -> None:
    if sock is not None:
        sock.close()


def _upgrade(url: str, sock: socket.socket, token: str | None, deadline: float, headers: dict[str, str] | None) -> None:
    """Turns an HTTP connection into a WebSocket."""
    more = [f"{name}: {value}" for name, value in (headers or {}).items()]
    if token:
        more.append(f"Authorization: Bearer {token}")
    if any(c in line for line in more for c in "\r\n\0"):
        raise ValueError("token or headers: a line break, want one line of text")
    try:
        websocket.create_connection(
            url,
            socket=_Timed(sock, deadline),
            header=more,
            subprotocols=[SUBPROTOCOL],
            suppress_origin=True,
            redirect_limit=0,
            enable_multithread=False,
        )
    except websocket.WebSocketBadStatusException as e:
        if e.status_code == 401:
            raise Unauthorized("unauthorized", f"{url} refused the token (HTTP 401)", op="connect") from None
        raise RemoteError(
            "capacity" if e.status_code == 503 else "bad_request",
            f"{url} answered HTTP {e.status_code} to the upgrade",
            retry=e.status_code in (502, 503, 504),
            op="connect",
        ) from None
    except (ValueError, IndexError) as e:  # not a status line
        raise ProtocolError(f"{url} is no server that speaks {SUBPROTOCOL}: {e}") from None
