"""A path that all addresses of the study share, such as ``/teach/`` on a host with other pages."""

from collections.abc import MutableMapping
from typing import Any

from ital_study.server._guard import Application, Receive, Send, refuse

ANYWHERE = ("/health",)  # what the machine itself asks for, without the proxy


class Prefix:
    """Serves the application under a path. The proxy passes the path unchanged."""

    def __init__(self, app: Application, prefix: str, address: str) -> None:
        self.app = app
        self.prefix = prefix
        self.address = address

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or path in ANYWHERE:
            await self.app(scope, receive, send)
            return
        if path == self.prefix:  # relative addresses need the slash
            await self._redirect(scope, send)
            return
        if not path.startswith(f"{self.prefix}/"):
            sentence = (
                f"The study is at {self.address}/. If you see this there, the proxy removes "
                f"{self.prefix} from the path: it must pass the path unchanged."
            )
            await refuse(send, path, 404, "not_found", sentence)
            return
        await self.app({**scope, "root_path": self.prefix}, receive, send)

    async def _redirect(self, scope: MutableMapping[str, Any], send: Send) -> None:
        """Lead to the path with its slash; keep the query, because it says who comes."""
        location = f"{self.prefix}/".encode()
        query = scope.get("query_string", b"")
        if query:
            location += b"?" + query
        headers = [(b"location", location)]
        await send({"type": "http.response.start", "status": 308, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
