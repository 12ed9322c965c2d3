"""A login names the user: OpenID Connect, or the proxy that docs/how-to/dashboard.md shows."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, HttpCredentials, Page, expect

from bench.support.served_dashboard import ARGUMENTS, Served, serve
from tests.dashboard.conftest import Filled
from tests.support import paths, servers
from tests.support.browsing import READY_MS, WIDE, keep, settle
from tests.support.dask_cluster import self_signed
from tests.support.openid_provider import Provider, new_key, provider
from tests.support.waiting import comes_true

GUIDE = paths.ROOT / "docs" / "how-to" / "dashboard.md"
USERS = {
    "eve": {"preferred_username": "eve"},
    "demo": {"preferred_username": "demo"},
    "root": {"preferred_username": "root"},
    "nameless": {"email": "eve@example.org"},
}
"""What the provider tells of each; only one claim is gone by."""
EVES, DEMOS = "tree/9", "ndr/4711"
"""A job of each of two users."""
HOST = "almanac.example.org"
"""What the guide calls the machine; the browser finds it on loopback."""
PASSWORD = "long enough"
NOBODY = "you are not logged in"


def shown(page: Page, url: str, job: str) -> bool:
    page.goto(f"{url}/jobs?job={job}")
    expect(page.get_by_role("heading", name="Jobs", exact=True, level=1)).to_be_visible()
    settle(page)
    return page.get_by_text("There is no job").count() == 0


def anonymous(page: Page, url: str) -> None:
    """The page of a job shows nothing but that nobody is logged in."""
    page.goto(f"{url}/jobs?job={EVES}")
    expect(page.get_by_text(NOBODY)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_count(0)


# --- OpenID Connect -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def issuer() -> Iterator[Provider]:
    with provider(USERS) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(filled: Filled, issuer: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Pages that go by a login's claim, with the secrets where the guide says that they are looked for."""
    folder = tmp_path_factory.mktemp("guarded")
    told = folder / ".streamlit" / "secrets.toml"
    told.parent.mkdir()
    told.write_text(issuer.secrets_toml("http://127.0.0.1:{port}/oauth2callback"))
    told.chmod(0o600)
    settings = {
        **servers.variables(filled.address),
        "ALMANAC_DASHBOARD_ONLY_USER": "login:preferred_username",
        "ALMANAC_DASHBOARD_OPERATORS": "root",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    with serve(settings, folder) as running:
        yield running


@pytest.fixture
def person(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.set_default_timeout(READY_MS)
    yield page
    context.close()


def log_in(page: Page, served: Served, issuer: Provider, user: str) -> None:
    page.goto(f"{served.url}/jobs")
    expect(page.get_by_text(NOBODY)).to_be_visible()
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{issuer.url}/**")
    page.get_by_role("link", name=user, exact=True).click()
    page.wait_for_url(f"{served.url}/**")
    settle(page)


def test_users_see_their_own_jobs_until_they_log_out(person: Page, guarded: Served, issuer: Provider) -> None:
    log_in(person, guarded, issuer, "eve")
    assert [shown(person, guarded.url, job) for job in (DEMOS, EVES)] == [False, True]
    expect(person.get_by_text("Logged in as eve.")).to_be_visible()
    person.get_by_role("button", name="Log out").click()
    expect(person.get_by_text(NOBODY)).to_be_visible()
    cookies = person.context.cookies
    assert comes_true(lambda: "_streamlit_user" not in {each.get("name") for each in cookies()})
    anonymous(person, guarded.url)
    assert not issuer.refused
    log_in(person, guarded, issuer, "nameless")  # without the claim
    expect(person.get_by_text("your login has no user name")).to_be_visible()
    expect(person.get_by_role("heading", level=1)).to_have_count(0)
    expect(person.get_by_role("button", name="Log out")).to_be_visible()


def test_a_forged_login_is_none_operators_see_all(person: Page, guarded: Served, issuer: Provider) -> None:
    issuer.signs = new_key()
    try:
        log_in(person, guarded, issuer, "root")
    finally:
        issuer.signs = issuer.published
    anonymous(person, guarded.url)
    log_in(person, guarded, issuer, "root")
    assert shown(person, guarded.url, DEMOS)
    assert shown(person, guarded.url, EVES)


def test_a_cookie_that_the_server_did_not_sign_is_none(person: Page, guarded: Served) -> None:
    claims = {"preferred_username": "root", "is_logged_in": True, "origin": guarded.url}
    made_up = b64encode(json.dumps(claims).encode()).decode()
    person.context.add_cookies([{"name": "_streamlit_user", "value": made_up, "url": guarded.url}])
    anonymous(person, guarded.url)
    keep(person, "login-asked")


# --- the reverse proxy of the guide ---------------------------------------------------------------------


@contextmanager
def nginx(folder: Path, upstream: str) -> Iterator[int]:
    """The guide's proxy before a server, for eve and demo; its port. Only files and ports are put in."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        reason = "no nginx on this machine: apt-get install nginx"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    (folder / "users").write_text("".join(f"{user}:{{PLAIN}}{PASSWORD}\n" for user in ("eve", "demo")))
    certificate, key = self_signed(folder)
    server = re.search(r"```nginx\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert server is not None
    text = server[1]
    for told, put in {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/ssl/almanac.pem": str(certificate),
        "/etc/ssl/almanac.key": str(key),
        "/etc/nginx/almanac.users": f"{folder}/users",
        "http://127.0.0.1:8501": upstream,
    }.items():
        assert text.count(told) == 1, told
        text = text.replace(told, put)
    head = f"daemon off;\npid {folder}/pid;\nerror_log {folder}/log;\nevents {{}}\n"
    head += "user root;\n" if os.geteuid() == 0 else ""
    head += f"http {{\naccess_log off;\nclient_body_temp_path {folder}/body;\n"
    head += f"proxy_temp_path {folder}/proxy;\n"
    (folder / "nginx.conf").write_text(f"{head}{text}}}\n")

    def answers() -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", port)) == 0

    process = subprocess.Popen([program, "-p", folder, "-e", folder / "log", "-c", folder / "nginx.conf"])
    try:
        assert comes_true(answers, unless=lambda: process.poll() is not None)
        yield port
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def echo(processes: None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(dict(self.headers.items())).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def asked(port: int, user: str | None, **headers: str) -> tuple[int, dict[str, str]]:
    """The status of an answer through the proxy, and what a server behind it was told."""
    if user is not None:
        headers["Authorization"] = f"Basic {b64encode(f'{user}:{PASSWORD}'.encode()).decode()}"
    connection = HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())
    connection.request("GET", "/", headers={"Host": HOST, **headers})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    told = json.loads(body) if answer.status == HTTPStatus.OK else {}
    return answer.status, {name.lower(): value for name, value in told.items()}


def test_the_guides_proxy_names_the_user_whatever_the_browser_sent(echo: str, tmp_path: Path) -> None:
    with nginx(tmp_path, echo) as port:
        status, told = asked(port, "eve", **{"X-Forwarded-User": "root"})
        assert (status, told["x-forwarded-user"], told["host"]) == (HTTPStatus.OK, "eve", HOST)
        assert [asked(port, user)[0] for user in (None, "mallory")] == [HTTPStatus.UNAUTHORIZED] * 2


def test_pages_behind_the_guides_proxy_show_each_user_their_own_jobs(
    browser: Browser, filled: Filled, tmp_path: Path
) -> None:
    here = [*ARGUMENTS, f"--host-resolver-rules=MAP {HOST} 127.0.0.1"]
    launched = browser.browser_type.launch(executable_path=shutil.which("chromium"), args=here)
    proxied = {"ALMANAC_DASHBOARD_ONLY_USER": "header:X-Forwarded-User", "ALMANAC_ALLOWED_HOSTS": HOST}
    settings = {**servers.variables(filled.address), **proxied}
    with serve(settings, tmp_path) as behind, nginx(tmp_path, behind.url) as port:
        for user, seen in (("eve", {EVES}), ("demo", {DEMOS})):
            context = launched.new_context(
                viewport=WIDE,
                ignore_https_errors=True,
                http_credentials=HttpCredentials(username=user, password=PASSWORD),
            )
            page, url = context.new_page(), f"https://{HOST}:{port}"
            assert {job for job in (EVES, DEMOS) if shown(page, url, job)} == seen
            context.close()
    launched.close()
