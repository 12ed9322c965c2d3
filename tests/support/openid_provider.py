"""A small OpenID provider on loopback, as RFC 6749, RFC 7636 and OpenID Connect Core 1.0 ask of one.

Whoever is picked on its page is logged in. A code is given out for the client's secret, once, and to the one
who asked for it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT, SECRET = "almanac", secrets.token_urlsafe(24)
KEY_NAME = "only"
TOKEN_SECONDS = 300
SUPPORTED = {
    "response_types": "code",
    "subject_types": "public",
    "id_token_signing_alg_values": "RS256",
    "token_endpoint_auth_methods": "client_secret_basic",
    "code_challenge_methods": "S256",
}


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(kw_only=True)
class Provider:
    """What a test can set and read."""

    claims: Mapping[str, Mapping[str, Any]]
    """Claims of each user, by the name chosen on the page."""
    published: rsa.RSAPrivateKey = field(default_factory=new_key)
    signs: rsa.RSAPrivateKey = field(init=False)
    """Signs the logins; the published key is another one where a test puts one here."""
    url: str = ""
    refused: list[str] = field(default_factory=list)
    """Why requests of the client were refused."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.signs = self.published

    def secrets_toml(self, redirect_uri: str) -> str:
        """Return the dashboard's ``.streamlit/secrets.toml`` for this provider."""
        settings = {"redirect_uri": redirect_uri, "cookie_secret": secrets.token_urlsafe(32)}
        settings |= {"client_id": CLIENT, "client_secret": SECRET}
        settings["server_metadata_url"] = f"{self.url}/.well-known/openid-configuration"
        return "[auth]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())

    def metadata(self) -> dict[str, Any]:
        found = {"issuer": self.url, "jwks_uri": f"{self.url}/keys", "token_endpoint": f"{self.url}/token"}
        found |= {
            "authorization_endpoint": f"{self.url}/authorize",
            "end_session_endpoint": f"{self.url}/logout",
        }
        return found | {f"{name}_supported": [value] for name, value in SUPPORTED.items()}

    def keys(self) -> dict[str, Any]:
        numbers = self.published.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_NAME}
        return {"keys": [{**key, "n": _number(numbers.n), "e": _number(numbers.e)}]}

    def choices(self, asked: Mapping[str, str]) -> str:
        """Return the page on which a user is chosen; each link returns with its own code."""
        rows = []
        for user in self.claims:
            code = secrets.token_urlsafe(16)
            self.codes[code] = {**asked, "user": user}
            query = urlencode({"code": code, "state": asked["state"]})
            address = html.escape(f"{asked['redirect_uri']}?{query}")
            rows.append(f'<p><a href="{address}">{html.escape(user)}</a></p>')
        return f"<!doctype html><title>Who are you?</title>{''.join(rows)}"

    def token(self, form: Mapping[str, str], authorization: str) -> dict[str, Any] | None:
        """Return the answer to a code, or None if it is refused."""
        asked = self.codes.pop(form.get("code", ""), {})
        why = _fault(asked, form, authorization)
        if why:
            self.refused.append(why)
            return None
        now = int(time.time())
        claims: dict[str, Any] = {"iss": self.url, "aud": CLIENT, "sub": asked["user"]}
        claims |= {"nonce": asked["nonce"], "iat": now, "exp": now + TOKEN_SECONDS}
        return {
            "access_token": secrets.token_urlsafe(16),
            "token_type": "Bearer",
            "expires_in": TOKEN_SECONDS,
            "id_token": _signed({**claims, **self.claims[asked["user"]]}, self.signs),
        }


@contextmanager
def provider(claims: Mapping[str, Mapping[str, Any]]) -> Iterator[Provider]:
    """Run a provider that answers on a free port."""
    found = Provider(claims=claims)

    class Handler(_Handler):
        of = found

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    of: Provider

    def do_GET(self) -> None:
        path, given = urlsplit(self.path).path, _single(urlsplit(self.path).query)
        if path == "/.well-known/openid-configuration":
            self._json(self.of.metadata())
        elif path == "/keys":
            self._json(self.of.keys())
        elif path == "/authorize" and self._asks_well(given):
            self._send(200, "text/html; charset=utf-8", self.of.choices(given).encode())
        elif path == "/logout":
            self.send_response(302)
            self.send_header("Location", given["post_logout_redirect_uri"])
            self.end_headers()
        else:
            self._send(400, "text/plain", b"no")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        answer = self.of.token(_single(body.decode()), self.headers.get("Authorization", ""))
        if answer is None:
            self._json({"error": "invalid_grant"}, 400)
        else:
            self._json(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""

    def _asks_well(self, given: Mapping[str, str]) -> bool:
        needed = ("redirect_uri", "state", "nonce", "code_challenge")
        asked = (given.get("client_id"), given.get("response_type"), given.get("code_challenge_method"))
        right = asked == (CLIENT, "code", "S256") and "openid" in given.get("scope", "").split()
        return right and all(given.get(name) for name in needed)

    def _json(self, value: object, status: int = 200) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _fault(asked: Mapping[str, str], form: Mapping[str, str], authorization: str) -> str:
    """Return why a code is refused, or an empty text if it is accepted."""
    if not asked:
        return "the code is not known, or was used before"
    if authorization != "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode():
        return "the client's secret is wrong"
    if form.get("grant_type") != "authorization_code" or form.get("redirect_uri") != asked["redirect_uri"]:
        return "the code is handed in for something else"
    proof = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    return "" if _encoded(proof) == asked["code_challenge"] else "another one asked for the code"


def _single(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _signed(claims: Mapping[str, Any], key: rsa.RSAPrivateKey) -> str:
    """Return a JSON web token signed by RS256 (RFC 7515, RFC 7518)."""
    parts = ({"alg": "RS256", "typ": "JWT", "kid": KEY_NAME}, claims)
    text = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
    return f"{text}.{_encoded(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
