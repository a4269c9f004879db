"""Secrets are masked wherever a program may have put them."""

from __future__ import annotations

import time

import pytest

from becausal.domain.recording import Output, Raised, Recording
from becausal.domain.recording import TestReport as Report
from becausal.lab.redaction import Redactor, looks_secret


@pytest.mark.parametrize(
    "name",
    ["GITHUB_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "API_KEY", "MY_PAT", "SENTRY_DSN"],
)
def test_secret_names_are_known(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "PATH", "KEYBOARD", "SSH_AUTH_SOCK", "PATTERN"])
def test_ordinary_names_are_not_secret(name: str) -> None:
    assert not looks_secret(name)


def test_values_of_secret_variables_are_masked_by_name() -> None:
    redactor = Redactor({"API_KEY": "abcdef", "LONG_TOKEN": "abcdefghij", "HOME": "/home/me"})
    assert redactor.redact(b"x abcdefghij y abcdef /home/me") == (
        b"x [secret:LONG_TOKEN] y [secret:API_KEY] /home/me"
    )


def test_short_values_are_left_alone() -> None:
    assert Redactor({"API_KEY": "12345"}).redact(b"12345") == b"12345"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b"ghp_" + b"a1B2" * 9, b""),
        (b"sk-proj-" + b"a1B2" * 9, b""),
        (b"AKIA" + b"ABCD" * 4, b""),
        (b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_DEF-1", b""),
        (b"postgres://user:hunter2@host/db", b"postgres://@host/db"),
        (b"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n", b"\n"),
        (b"-----BEGIN PRIVATE KEY-----\nMIIE cut off", b""),
    ],
)
def test_known_shapes_are_masked(text: bytes, kept: bytes) -> None:
    import re

    masked = Redactor({}).redact(b"<" + text + b">") if kept else Redactor({}).redact(text)
    assert b"[secret:" in masked
    assert re.sub(rb"\[secret:[a-z ]+\]", b"", masked).strip(b"<>") == kept


def test_half_a_secret_where_output_was_cut_is_masked() -> None:
    redactor = Redactor({"TOKEN": "0123456789"})
    output = redactor.redact_output(Output(head=b"begin 01234", tail=b"56789 end", dropped=7))
    assert (output.head, output.tail) == (b"begin [secret:TOKEN]", b"[secret:TOKEN] end")


def test_every_text_of_a_recording_is_masked() -> None:
    secret = "hush-hush-123"
    raised = Raised(kind="E", message=secret, cause=Raised(kind="F", message=secret))
    recording = Recording(
        stdout=Output(head=secret.encode()),
        stderr=Output(head=secret.encode()),
        tests=(Report(id="t", outcome="failed", text=secret, raised=raised),),
        raised=raised,
        notes=(secret,),
    )
    assert secret not in repr(Redactor({"A_TOKEN": secret}).redact_recording(recording))


def test_a_megabyte_is_masked_quickly() -> None:
    redactor = Redactor({f"TOKEN_{n}": f"secret-value-{n:03}" for n in range(20)})
    data = b"eyJ -----BEGIN http://a:b/c sk- some ordinary log line of a test run\n" * 15_000
    start = time.process_time()
    redactor.redact(data)
    assert time.process_time() - start < 3
