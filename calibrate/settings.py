"""Read settings from environment variables, once for the app and once for the CLI."""

from __future__ import annotations

import getpass
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from calibrate.errors import BadInput
from calibrate.urls import scrub
from calibrate.webhook import check_url

DEFAULT_STORE = "sqlite:///touchstone.db"
DEFAULT_CONCURRENCY = 16
DEFAULT_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class Settings:
    """`store` is an SQLAlchemy URL; `user` names who labels, chooses and releases, and `is_login` says whether that is
    the login name: a name given by TOUCHSTONE_USER is nobody's word but that of whoever set it."""

    store: str
    user: str
    is_login: bool = False


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read TOUCHSTONE_STORE and TOUCHSTONE_USER, each with a working default. Raises BadInput for a blank name."""
    login = _login_name()
    user = " ".join((environment.get("TOUCHSTONE_USER") or login or "somebody").split())
    if not user:
        raise BadInput("TOUCHSTONE_USER is blank: it names who labels, chooses and releases; give a name or unset it")
    return Settings(store=environment.get("TOUCHSTONE_STORE") or DEFAULT_STORE, user=user, is_login=user == login)


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """A chat endpoint.

    `url` is the base URL without its last slash ("" for none), `key` its secret ("" for none; never shown),
    `concurrency` the most requests in flight at once, `timeout` the seconds that one attempt may take.
    """

    url: str
    model: str
    key: str = field(repr=False)
    concurrency: int
    timeout: float


def chat(environment: Mapping[str, str] | None = None) -> ChatSettings:
    """Read TOUCHSTONE_CHAT_URL, _MODEL, _KEY, _CONCURRENCY and _TIMEOUT.

    URL and key fall back to OPENAI_BASE_URL and OPENAI_API_KEY. Raises BadInput for an impossible value.
    """
    variables = os.environ if environment is None else environment
    name = "TOUCHSTONE_CHAT_URL" if variables.get("TOUCHSTONE_CHAT_URL") else "OPENAI_BASE_URL"
    return ChatSettings(
        url=_base_url(name, variables.get(name, "").strip()),
        model=variables.get("TOUCHSTONE_CHAT_MODEL", "").strip(),
        key=(variables.get("TOUCHSTONE_CHAT_KEY") or variables.get("OPENAI_API_KEY") or "").strip(),
        concurrency=int(
            _read_number(variables, "TOUCHSTONE_CHAT_CONCURRENCY", DEFAULT_CONCURRENCY, 1, 1024, whole=True)
        ),
        timeout=_read_number(variables, "TOUCHSTONE_CHAT_TIMEOUT", DEFAULT_TIMEOUT, 0.1, 3600),
    )


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """A team's own scorer: its address ("" for none), its token, the most requests at once, the seconds for one."""

    url: str = ""
    token: str = field(default="", repr=False)
    concurrency: int = 8
    timeout: float = 60.0


def http_scorer(environment: Mapping[str, str] | None = None) -> HttpSettings:
    """Read TOUCHSTONE_HTTP_URL, _TOKEN, _CONCURRENCY and _TIMEOUT. Raises BadInput for an impossible value."""
    variables, usual = os.environ if environment is None else environment, HttpSettings()
    token = variables.get("TOUCHSTONE_HTTP_TOKEN", "").strip()
    if not token.isascii() or not token.isprintable():
        raise BadInput("TOUCHSTONE_HTTP_TOKEN must be plain ASCII without line breaks: it is sent as an HTTP header")
    most = _read_number(variables, "TOUCHSTONE_HTTP_CONCURRENCY", usual.concurrency, 1, 256, whole=True)
    return HttpSettings(
        _base_url(
            "TOUCHSTONE_HTTP_URL",
            variables.get("TOUCHSTONE_HTTP_URL", "").strip(),
            "TOUCHSTONE_HTTP_TOKEN",
            "http://localhost:9000/score",
        ),
        token,
        int(most),
        _read_number(variables, "TOUCHSTONE_HTTP_TIMEOUT", usual.timeout, 0.1, 3600),
    )


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """Where models compute: `device` is auto, cpu, cuda or mps. `is_half`: in half precision, which needs a GPU."""

    device: str = "auto"
    is_half: bool = False


def devices(environment: Mapping[str, str] | None = None) -> DeviceSettings:
    """Read TOUCHSTONE_DEVICE and TOUCHSTONE_PRECISION. Raises BadInput for a wrong value, and for half on the cpu."""
    variables = os.environ if environment is None else environment
    device = _read_choice(variables, "TOUCHSTONE_DEVICE", ("auto", "cpu", "cuda", "mps"))
    precision = _read_choice(variables, "TOUCHSTONE_PRECISION", ("full", "half"))
    if device == "cpu" and precision == "half":
        raise BadInput(
            "TOUCHSTONE_PRECISION is 'half', which needs a GPU, and TOUCHSTONE_DEVICE is 'cpu'; unset one of them"
        )
    return DeviceSettings(device, precision == "half")


Inference = Literal["torch", "onnx", "onnx-int8"]
"""What classifiers run on: torch, or ONNX Runtime with weights in float32 or in 8-bit integers."""


def inference(environment: Mapping[str, str] | None = None) -> Inference:
    """Read TOUCHSTONE_INFERENCE. Raises BadInput for another value than torch, onnx or onnx-int8."""
    variables = os.environ if environment is None else environment
    choices: tuple[Inference, ...] = get_args(Inference)
    text = _read_choice(variables, "TOUCHSTONE_INFERENCE", choices)
    return next(choice for choice in choices if choice == text)


def runs_here(environment: Mapping[str, str] | None = None) -> bool:
    """Read TOUCHSTONE_RUNS: whether a page starts a process for a run, or leaves it to a pool of workers.

    Raises BadInput for another value than here or workers.
    """
    return (
        _read_choice(os.environ if environment is None else environment, "TOUCHSTONE_RUNS", ("here", "workers"))
        == "here"
    )


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """What happens with a release.

    `approval`: a second person must approve it. `git` is the repository (or a file in one) that it is committed to,
    `sign` the file of the key that signs it ("none": it is not signed), and `webhook` the URL that is notified; "" for
    none. A webhook's URL is a secret.
    """

    approval: bool = False
    git: str = ""
    sign: str = ""
    webhook: str = field(default="", repr=False)


def releases(environment: Mapping[str, str] | None = None) -> ReleaseSettings:
    """Read TOUCHSTONE_APPROVAL, TOUCHSTONE_SIGN_KEY, TOUCHSTONE_RELEASE_GIT and TOUCHSTONE_RELEASE_WEBHOOK.

    Raises BadInput for an impossible value: a misspelt setting must not switch off the second person's approval.
    """
    variables = os.environ if environment is None else environment
    answer = variables.get("TOUCHSTONE_APPROVAL", "").strip().lower()
    if answer not in ("", "0", "1", "true", "false", "yes", "no", "on", "off"):
        raise BadInput(f"TOUCHSTONE_APPROVAL cannot be {answer[:40]!r}; it is 1 (a second person approves) or 0")
    webhook = variables.get("TOUCHSTONE_RELEASE_WEBHOOK", "").strip()
    return ReleaseSettings(
        approval=answer in ("1", "true", "yes", "on"),
        git=variables.get("TOUCHSTONE_RELEASE_GIT", "").strip(),
        sign=variables.get("TOUCHSTONE_SIGN_KEY", "").strip(),
        webhook=check_url(webhook, "TOUCHSTONE_RELEASE_WEBHOOK") if webhook else "",
    )


def files_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """Read TOUCHSTONE_FILES_DIR, the only folder in which pages read and write files of this machine; None for none.

    Raises BadInput where it is no folder.
    """
    variables = os.environ if environment is None else environment
    name = variables.get("TOUCHSTONE_FILES_DIR", "").strip()
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise BadInput(f"TOUCHSTONE_FILES_DIR is {name[:200]!r}, which is no folder; make it, or unset it")
    return folder.resolve()


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """How traces come in.

    `redact` names what is replaced before anything is stored, separated by commas ("" for nothing). A trace with more
    than `characters` of text or more `sources` than that is rejected. `tool_results`: what tools returned to the model
    counts as sources where traces are read from spans.
    """

    redact: str = ""
    characters: int = 4_000_000
    sources: int = 5_000
    tool_results: bool = False


@dataclass(frozen=True, slots=True)
class ReceiveSettings:
    """What a receiver of spans asks of its clients ("" for no token), and how many bytes may wait to be imported."""

    token: str = field(default="", repr=False)
    backlog: int = 1_000_000_000


def receiving(environment: Mapping[str, str] | None = None) -> ReceiveSettings:
    """Read TOUCHSTONE_RECEIVE_TOKEN and TOUCHSTONE_RECEIVE_BACKLOG_MB. Raises BadInput for an impossible value."""
    variables = os.environ if environment is None else environment
    token = variables.get("TOUCHSTONE_RECEIVE_TOKEN", "").strip()
    if not token.isascii() or not token.isprintable():
        raise BadInput("TOUCHSTONE_RECEIVE_TOKEN must be plain ASCII without line breaks: it is sent as an HTTP header")
    usual = ReceiveSettings().backlog / 1e6
    megabytes = _read_number(
        variables, "TOUCHSTONE_RECEIVE_BACKLOG_MB", usual, 0.001, 1e6, kind="a number of megabytes"
    )
    return ReceiveSettings(token, round(megabytes * 1e6))


def imports(environment: Mapping[str, str] | None = None) -> ImportSettings:
    """Read TOUCHSTONE_REDACT, TOUCHSTONE_MAX_TRACE_MB, TOUCHSTONE_MAX_SOURCES and TOUCHSTONE_TOOL_RESULTS.

    Raises BadInput for an impossible number.
    """
    variables = os.environ if environment is None else environment
    usual = ImportSettings()
    megabytes = _read_number(
        variables, "TOUCHSTONE_MAX_TRACE_MB", usual.characters / 1e6, 0.001, 16, kind="a number of megabytes"
    )
    sources = _read_number(variables, "TOUCHSTONE_MAX_SOURCES", usual.sources, 1, 1e6, whole=True)
    tool_results = variables.get("TOUCHSTONE_TOOL_RESULTS", "").strip().lower() in ("1", "true", "yes")
    redact = variables.get("TOUCHSTONE_REDACT", "").strip()
    return ImportSettings(redact, round(megabytes * 1e6), int(sources), tool_results)


@dataclass(frozen=True, slots=True)
class IdentitySettings:
    """How people who come by the network are known.

    `header` (lower case, "" for none) names a person where it comes from an address in `proxies`; `claim` is what names
    them where they sign in; `roles` is the path of the team file, "" for none.
    """

    header: str = ""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    claim: str = "email"
    roles: str = ""

    def trusts(self, peer: str) -> bool:
        """Whether a request from this address may name a person by the header."""
        try:
            address = ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped in network for network in self.proxies)


def identity(environment: Mapping[str, str] | None = None) -> IdentitySettings:
    """Read TOUCHSTONE_USER_HEADER, _TRUSTED_PROXIES, _USER_CLAIM and _ROLES.

    Raises BadInput for an address that is none, and for a header without proxies: anybody could send it.
    """
    variables = os.environ if environment is None else environment
    header = variables.get("TOUCHSTONE_USER_HEADER", "").strip().lower()
    proxies: list[IPv4Network | IPv6Network] = []
    for text in re.split(r"[\s,]+", variables.get("TOUCHSTONE_TRUSTED_PROXIES", "").strip()):
        try:
            proxies += [ip_network(text)] if text else []
        except ValueError:
            raise BadInput(
                f"TOUCHSTONE_TRUSTED_PROXIES cannot hold {text[:60]!r}; it lists addresses and networks, like "
                "127.0.0.1 or 10.0.0.0/8"
            ) from None
    if header and not proxies:
        raise BadInput(
            "TOUCHSTONE_USER_HEADER needs TOUCHSTONE_TRUSTED_PROXIES, the addresses that may send it: anybody else "
            "could name themselves"
        )
    if header and not re.fullmatch(r"[a-z0-9-]+", header):
        raise BadInput(f"TOUCHSTONE_USER_HEADER cannot be {header[:60]!r}; a header is called like X-Forwarded-User")
    claim = variables.get("TOUCHSTONE_USER_CLAIM", "").strip() or "email"
    return IdentitySettings(header, tuple(proxies), claim, variables.get("TOUCHSTONE_ROLES", "").strip())


def hide_secrets(text: str, words: Iterable[str] = ()) -> str:
    """Take the secrets of the environment, and those of URLs among these words, out of a text that somebody will read.

    The last defence, for messages of other libraries: our own show no secret in the first place.
    """
    ours = {name: value for name, value in os.environ.items() if name.startswith(("TOUCHSTONE_", "OPENAI_"))}
    whole = [value for name, value in ours.items() if name.endswith(("_KEY", "_TOKEN", "_WEBHOOK"))]
    return scrub(text, [*words, *ours.values()], whole)


def _base_url(name: str, url: str, key: str = "TOUCHSTONE_CHAT_KEY", example: str = "http://localhost:8080/v1") -> str:
    """Check an endpoint's URL. It is shown in messages, so it may hold nothing secret; an error does not repeat it."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(f"{name} is no http or https address of an endpoint; one looks like {example}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise BadInput(f"{name} holds more than host and path; a key belongs in {key}")
    return url.rstrip("/")


def _read_choice(variables: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """Read one of a few words; the first where it is not set."""
    text = variables.get(name, "").strip().lower() or choices[0]
    if text not in choices:
        raise BadInput(f"{name} cannot be {text[:40]!r}; it is {', '.join(choices[:-1])} or {choices[-1]}")
    return text


def _read_number(
    variables: Mapping[str, str],
    name: str,
    default: float,
    low: float,
    high: float,
    *,
    whole: bool = False,
    kind: str = "a number of seconds",
) -> float:
    text = variables.get(name, "").strip()
    try:
        value = float(text) if text else float(default)
    except ValueError:
        value = math.nan
    if not low <= value <= high or (whole and not value.is_integer()):
        kind = "a whole number" if whole else kind
        raise BadInput(f"{name} cannot be {text[:40]!r}; it is {kind} from {low:g} to {high:g}")
    return value


def _login_name() -> str | None:
    """Read the name of this process's user from the system, not from the environment, which anybody may set."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # no login name in a bare container
        return None
    except ImportError:  # Windows
        return getpass.getuser()
