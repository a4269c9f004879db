"""Masks secrets before anything is written: values of variables by name, and known shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from becausal.domain.condition import secret_mask
from becausal.domain.recording import Output, Raised, Recording, TestReport

_SHORTEST = 6
_NAMES = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:^|_)PWD$|(?:^|_)PW$|(?:^|_)PAT$|(?:^|_)AUTH$"
    r"|APIKEY|(?:^|_)KEY(?:$|_)|(?:^|_)DSN$|COOKIE",
    re.IGNORECASE,
)
_INNOCENT = re.compile(
    r"PWD|OLDPWD|TOKENIZERS_PARALLELISM|.*_(?:FILE|PATH|DIR|FOLDER)", re.IGNORECASE
)
_SHAPES = (
    (
        "private key",
        rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}-----|\Z)",
    ),
    ("github token", rb"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})"),
    ("gitlab token", rb"\bglpat-[A-Za-z0-9_-]{16,}"),
    ("api key", rb"\bsk-[A-Za-z0-9_-]{16,}"),
    ("slack token", rb"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("aws key", rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("google key", rb"\bAIza[A-Za-z0-9_-]{35}"),
    ("json web token", rb"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"),
    ("url password", rb"(?<=://)[^\s/:@'\"]{0,256}:[^\s/@'\"]{1,256}(?=@)"),
)


def looks_secret(name: str) -> bool:
    """Whether a variable of this name holds what must not be shown."""
    return bool(_NAMES.search(name)) and not _INNOCENT.fullmatch(name)


class Redactor:
    """Replaces secrets by `[secret:NAME]`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        names: dict[bytes, str] = {}
        for name in sorted(environment):
            value = environment[name].strip()
            if looks_secret(name) and len(value) >= _SHORTEST:
                for form in (value, value.encode("unicode_escape").decode()):
                    names.setdefault(form.encode("utf-8", "surrogateescape"), name)
        self._names = names
        longest = sorted(names, key=len, reverse=True)
        self._values = re.compile(b"|".join(map(re.escape, longest))) if longest else None
        self._shapes = re.compile(
            b"|".join(b"(?P<s%d>%s)" % (place, shape) for place, (_, shape) in enumerate(_SHAPES))
        )

    def redact(self, data: bytes) -> bytes:
        """The same bytes with secrets masked."""
        if self._values is not None:
            data = self._values.sub(lambda m: secret_mask(self._names[m[0]]).encode(), data)
        return self._shapes.sub(_mask_shape, data)

    def redact_text(self, text: str) -> str:
        return self.redact(text.encode("utf-8", "surrogateescape")).decode(
            "utf-8", "surrogateescape"
        )

    def redact_output(self, output: Output) -> Output:
        """Both ends; what was cut where they parted may still be half a secret, and goes too."""
        head, tail = self.redact(output.head), self.redact(output.tail)
        if output.dropped:
            head, tail = self._without_cut_end(head), self._without_cut_start(tail)
        return Output(head=head, tail=tail, dropped=output.dropped)

    def redact_recording(self, recording: Recording) -> Recording:
        """Everything in a recording that a program could have put a secret into."""
        raised = recording.raised
        return msgspec.structs.replace(
            recording,
            stdout=self.redact_output(recording.stdout),
            stderr=self.redact_output(recording.stderr),
            tests=tuple(self._test(test) for test in recording.tests),
            raised=None if raised is None else self._raised(raised),
            notes=tuple(self.redact_text(note) for note in recording.notes),
        )

    def _test(self, test: TestReport) -> TestReport:
        if not test.text and test.raised is None:
            return test
        raised = None if test.raised is None else self._raised(test.raised)
        return msgspec.structs.replace(test, text=self.redact_text(test.text), raised=raised)

    def _raised(self, raised: Raised) -> Raised:
        cause = None if raised.cause is None else self._raised(raised.cause)
        return msgspec.structs.replace(
            raised, message=self.redact_text(raised.message), cause=cause
        )

    def _without_cut_end(self, head: bytes) -> bytes:
        for value, name in self._names.items():
            for size in range(min(len(value) - 1, len(head)), 2, -1):
                if head.endswith(value[:size]):
                    return head[:-size] + secret_mask(name).encode()
        return head

    def _without_cut_start(self, tail: bytes) -> bytes:
        for value, name in self._names.items():
            for size in range(min(len(value) - 1, len(tail)), 2, -1):
                if tail.startswith(value[-size:]):
                    return secret_mask(name).encode() + tail[size:]
        return tail


def _mask_shape(match: re.Match[bytes]) -> bytes:
    name = _SHAPES[int((match.lastgroup or "s0")[1:])][0]
    return secret_mask(name).encode()
