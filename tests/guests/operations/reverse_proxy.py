"""A reverse proxy on loopback that serves another server under a path, as nginx does."""
import contextlib
import socket
import threading

import httpx2 as httpx
import uvicorn
from patience import SECONDS
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

OWN = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}  # of each connection


@contextlib.contextmanager
def proxied(upstream, prefix, strip=True, headers=()):
    """The URL of the proxy. It sends `headers` too, and removes the prefix from the path if `strip`."""

    async def forward(request):
        path = request.scope["raw_path"].decode()
        if not path.startswith(f"{prefix}/"):
            return PlainTextResponse("not below the prefix", 404)
        query = f"?{request.url.query}" if request.url.query else ""
        client = httpx.AsyncClient(base_url=upstream, timeout=60, trust_env=False)
        reply = await client.send(client.build_request(
            request.method, (path[len(prefix):] if strip else path) + query, content=await request.body(),
            headers=[*(one for one in request.headers.items() if one[0] not in OWN), *headers]), stream=True)
        response = StreamingResponse(reply.aiter_raw(), reply.status_code, background=BackgroundTask(client.aclose))
        response.raw_headers = [(name.lower(), value) for name, value in reply.headers.raw
                                if name.lower().decode() not in OWN]
        return response

    listening = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST", "DELETE", "OPTIONS"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", proxy_headers=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        listening.close()
