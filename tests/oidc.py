"""A provider to sign in with, for tests: discovery, a form, codes with PKCE, signed tokens. One process, one thread."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "touchstone"


class Provider:
    """Knows `people`, by login: the claims of each. Whoever knows a login is that person."""

    def __init__(self, people: Mapping[str, Mapping[str, Any]]) -> None:
        self.people = people
        self.key = RSAKey.generate_key(2048, parameters={"kid": "test", "use": "sig", "alg": "RS256"})
        self.codes: dict[str, dict[str, str]] = {}
        self.url = ""

    def token(self, claims: Mapping[str, Any], nonce: str) -> str:
        now = int(time.time())
        standard = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 3600, "nonce": nonce}
        return jwt.encode({"alg": "RS256", "kid": "test"}, {**standard, **claims}, self.key)

    def get(self, path: str, query: Mapping[str, str]) -> tuple[int, str, str]:
        """Status, kind, and body or place to go to."""
        if path == "/.well-known/openid-configuration":
            return 200, "application/json", json.dumps({
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            })  # fmt: skip
        if path == "/keys":
            return 200, "application/json", json.dumps({"keys": [self.key.as_dict(private=False)]})
        if path == "/authorize" and "login" not in query:
            links = (f'<a href="/authorize?{urlencode({**query, "login": one})}">{one}</a>' for one in self.people)
            return 200, "text/html", " ".join(links)
        if path == "/authorize":
            code = secrets.token_urlsafe(16)
            self.codes[code] = dict(query)
            return 302, "text/html", f"{query['redirect_uri']}?code={code}&state={quote(query['state'])}"
        return 404, "text/plain", "no such page"

    def post(self, form: Mapping[str, str]) -> tuple[int, str]:
        asked = self.codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge:
            return 400, json.dumps({"error": "invalid_grant"})
        person = {"sub": asked["login"], **self.people[asked["login"]]}
        token = self.token(person, asked.get("nonce", ""))
        return 200, json.dumps({"access_token": "x", "token_type": "Bearer", "expires_in": 3600, "id_token": token})


@contextmanager
def serving(people: Mapping[str, Mapping[str, Any]]) -> Iterator[Provider]:
    provider = Provider(people)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            status, kind, body = provider.get(parts.path, query)
            self.answer(status, kind, body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, answer = provider.post({name: values[0] for name, values in parse_qs(body).items()})
            self.answer(status, "application/json", answer)

        def answer(self, status: int, kind: str, body: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status == 302:
                self.send_header("Location", body)
                body = ""
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield provider
    server.shutdown()
    server.server_close()
