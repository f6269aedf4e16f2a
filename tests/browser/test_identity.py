"""Two people at two browsers, who sign in at a provider that runs here: a labeller, and somebody who approves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from calibrate.workflow.releasing import approval
from db import open_store
from db.releases import ReleaseRequest
from tests import oidc
from tests.browser.conftest import LONG, App, free_port, serve, settled, until
from tests.db.make import trace
from tests.workflow.making import NOW, draw, fill, save

pytestmark = pytest.mark.browser

PEOPLE = {
    "lea": {"email": "lea@example.com", "email_verified": True, "groups": ["annotators"]},
    "cal": {"email": "cal@example.com", "email_verified": True, "groups": ["calibrators"]},
    "ada": {"email": "ada@example.com", "email_verified": True, "groups": []},
    "eve": {"email": "ada@example.com", "email_verified": False},
    "new": {"email": "new@example.com"},
}
BAR_OF_A_LABELLER = ["This week", "Traces", "Label"]
TEAM = """
[labeller]
groups = ["annotators"]
[calibrator]
groups = ["calibrators"]
[approver]
users = ["Ada@example.com", "cal@example.com"]
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("identity")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    fill(store, *draw(60))
    save(store, "manual:0.55")
    (folder / "team.toml").write_text(TEAM)
    port = free_port()
    with oidc.serving(PEOPLE) as provider:
        (folder / "secrets.toml").write_text(
            f'[auth]\nredirect_uri = "http://localhost:{port}/oauth2callback"\ncookie_secret = "{"x" * 40}"\n'
            f'client_id = "{oidc.CLIENT}"\nclient_secret = "s"\n'
            f'server_metadata_url = "{provider.url}/.well-known/openid-configuration"\n'
        )
        server, _ = serve(
            store.url, folder / "server.log", "--secrets.files", str(folder / "secrets.toml"), port=port,
            TOUCHSTONE_APPROVAL="1", TOUCHSTONE_ROLES=str(folder / "team.toml"), NO_PROXY="*",
        )  # fmt: skip
        app = App(f"http://localhost:{port}", store)
        app.fill([trace(number) for number in range(3)], sample="w")
        yield app
        server.terminate()
        server.wait(timeout=20)
    store.close()


@pytest.fixture
def enter(own: App, browser: Any) -> Iterator[Any]:
    """Opens a browser in which this person has signed in."""
    contexts = []

    def sign_in(login: str, address: str = "/") -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        contexts.append(context)
        context.set_default_timeout(LONG)
        page = context.new_page()
        page.goto(own.url + address)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name=login).click()
        page.wait_for_url(f"{own.url}/**")
        settled(page)
        return page

    yield sign_in
    for context in contexts:
        context.close()


def test_nothing_is_shown_to_whoever_has_not_signed_in_or_has_no_role(own: App, browser: Any, enter: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(LONG)
    page.goto(f"{own.url}/release?user=cal@example.com")
    page.get_by_role("button", name="Sign in").wait_for()
    assert page.get_by_text("Release").count() == 0
    page.close()
    enter("new").get_by_text("You have no role in this workbench yet").wait_for()
    enter("eve").get_by_text("has not verified your e-mail address").wait_for()


def test_a_labeller_and_an_approver_at_once(own: App, enter: Any) -> None:
    lea, cal, ada = enter("lea"), enter("cal"), enter("ada")
    # A labeller has no way to Release, not by its address and not as somebody else.
    lea.locator(".ts-who", has_text="lea@example.com").wait_for()
    for address in ("/release", "/detect?user=cal@example.com", "/tune?user=ada@example.com"):
        lea.goto(own.url + address)
        lea.get_by_text("This page is not open to your role").wait_for()
        assert lea.get_by_text("You are lea@example.com, labeller").count() == 1
    bar = lea.get_by_role("navigation", name="Pages").get_by_role("link")
    until(lea, lambda: bar.all_inner_texts() == BAR_OF_A_LABELLER)
    # She labels under her own name, whatever the address says.
    lea.goto(f"{own.url}/label?user=cal@example.com")
    lea.get_by_text("answer 0", exact=True).first.wait_for()
    settled(lea)
    lea.keyboard.press("a")
    lea.get_by_text("answer 1", exact=True).first.wait_for()
    lea.locator(".touchstone-surface .state[data-waiting='0']").wait_for()
    assert "lea@example.com" in own.store.labels.labellers()
    assert not {"cal@example.com", "tester"} & set(own.store.labels.labellers())
    # What one proposes, that one cannot approve; another can.
    approval.propose(own.store, ReleaseRequest(note="first", by="cal@example.com", reason="a test"), now=NOW)
    cal.goto(f"{own.url}/release?user=ada@example.com")
    cal.get_by_text("It is yours").wait_for()
    assert cal.get_by_role("button", name=re.compile("Approve and release")).is_disabled()
    ada.goto(f"{own.url}/release")
    settled(ada)
    ada.get_by_role("button", name=re.compile("Approve and release")).click()
    ada.get_by_text("v1 is released").wait_for()
    ada.goto(f"{own.url}/audit")
    ada.get_by_role("heading", name="Who did what").wait_for()
    log = {(entry.who, entry.how, entry.verb) for entry in own.store.audit.entries()}
    assert {("ada@example.com", "oidc", "proposal approved"), ("ada@example.com", "oidc", "released")} <= log
    assert ("lea@example.com", "oidc", "refused") in log
