"""A path that all addresses of the study share, such as ``/teach/`` on a host with other pages."""

from collections.abc import MutableMapping
from typing import Any

from ital_study.server._security import Application, Receive, Send, refuse

ANYWHERE = ("/health",)  # what the machine itself asks for, without the proxy


class Prefix:
    """Serves the application under a path. The proxy passes the path unchanged."""

    def __init__(self, app: Application, prefix: str, address: str) -> None:
        self.app, self.prefix, self.address = app, prefix, address

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or path in ANYWHERE:
            await self.app(scope, receive, send)
        elif path.startswith(f"{self.prefix}/"):
            await self.app({**scope, "root_path": self.prefix}, receive, send)
        elif path == self.prefix:  # relative addresses need the slash
            query = scope.get("query_string", b"")
            location = f"{self.prefix}/".encode() + (b"?" + query if query else b"")
            await send(
                {"type": "http.response.start", "status": 308, "headers": [(b"location", location)]}
            )
            await send({"type": "http.response.body", "body": b""})
        else:
            sentence = (
                f"The study is at {self.address}/. If you see this there, the proxy removes {self.prefix} from the "
                "path: it must pass the path unchanged."
            )
            await refuse(send, path, 404, "not_found", sentence)
