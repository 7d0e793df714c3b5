"""What the kernel counts on a TCP connection: the bytes that a protocol really costs."""

import socket
import struct
from typing import Any

__all__ = ["wire_bytes"]

HEADERS = 52
"""Bytes of an IPv4 header and a TCP header with time stamps, in front of every segment."""

_COUNTS = struct.Struct("<QQII")  # bytes acknowledged, bytes received, segments out, segments in
_OFFSET = 120  # in Linux's struct tcp_info


def wire_bytes(connection: Any) -> int | None:
    """What has crossed this socket so far, both ways, TLS, TCP and IP included; None where the
    kernel does not tell.

    >>> server = socket.create_server(("127.0.0.1", 0))
    >>> client = socket.create_connection(server.getsockname())
    >>> accepted, _ = server.accept()
    >>> client.sendall(b"x" * 1000)
    >>> len(accepted.recv(2000)), wire_bytes(accepted) >= 1000 + HEADERS
    (1000, True)
    >>> _ = [end.close() for end in (server, client, accepted)]
    """
    option = getattr(socket, "TCP_INFO", None)
    if option is None:
        return None
    info = connection.getsockopt(socket.IPPROTO_TCP, option, 256)
    if len(info) < _OFFSET + _COUNTS.size:
        return None
    acknowledged, received, segments_out, segments_in = _COUNTS.unpack_from(info, _OFFSET)
    return int(acknowledged + received + HEADERS * (segments_out + segments_in))
