"""Reading of YAML within limits, with every scalar as text.

YAML turns ``no`` into false, ``0010`` into eight and ``12:30`` into a number of base 60, which would damage
the names of hosts; so scalars are not interpreted, and an empty one is ``""``. Anchors, aliases and tags are
rejected, since a few lines of aliases can expand to more values than fit in memory. The document is built
from the events of the library's parser, without recursion.
"""

from __future__ import annotations

from typing import Any

import yaml

from ingest.reading.json_text import MAX_DEPTH
from ingest.reading.source import SourceFile
from registry.errors import InputError

MAX_YAML_BYTES = 1 << 25
"""Largest document, 32 MiB."""

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def load_yaml(file: SourceFile, *, limit: int = MAX_YAML_BYTES) -> Any:
    """Return the YAML document of a file.

    Parameters
    ----------
    file : SourceFile
        File to read.
    limit : int
        Largest number of bytes.

    Returns
    -------
    str, list or dict
        The document; keys are text. `ingest.reading.json_text.Spot` gives typed access.

    Raises
    ------
    InputError
        Invalid YAML, truncated within brackets or quotes, larger than the limit, deeper than
        `ingest.reading.json_text.MAX_DEPTH`, a repeated key in one mapping or one that is no scalar, an
        anchor, an alias, a tag, no document or several.
    """
    if len(file.data) > limit:
        raise InputError(f"more than {limit} bytes of YAML", path=file.path)
    builder = _Builder(file.path)
    text = file.text()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = f"invalid or truncated YAML: {error.problem or error.context}"
        line = min(mark.line, text.rstrip("\n").count("\n")) + 1 if mark else None
        raise InputError(reason, path=file.path, line=line) from error
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise InputError(f"invalid YAML: {reason}", path=file.path) from error
    if builder.documents != 1:
        raise InputError(f"{builder.documents} YAML documents, not one", path=file.path)
    return builder.value


class _Builder:
    """The document built from the events so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.value: Any = ""
        self.documents = 0
        self._open: list[list[Any] | dict[str, Any]] = []
        self._keys: list[str | None] = []

    def take(self, event: yaml.Event) -> None:
        """Add one event of the parser to the document."""
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
        elif isinstance(event, yaml.AliasEvent):
            raise self._error("aliases are not allowed", event)
        elif isinstance(event, yaml.ScalarEvent):
            self._check(event)
            self._put(event.value, event)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._check(event)
            inside: list[Any] | dict[str, Any] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            self._put(inside, event)
            self._open.append(inside)
            self._keys.append(None)
            if len(self._open) > MAX_DEPTH:
                raise self._error(f"nested deeper than {MAX_DEPTH}", event)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self._open.pop()
            self._keys.pop()

    def _put(self, value: Any, event: yaml.Event) -> None:
        """Put a value into the innermost open list or object."""
        if not self._open:
            self.value = value
            return
        above = self._open[-1]
        if isinstance(above, list):
            above.append(value)
        elif (key := self._keys[-1]) is not None:
            above[key] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise self._error("a key is not text", event)
        elif value in above:
            raise self._error(f"the key {value!r} is repeated", event)
        else:
            self._keys[-1] = value

    def _check(self, event: Any) -> None:
        if event.anchor is not None or event.tag not in (None, "!"):
            raise self._error("anchors and tags are not allowed", event)

    def _error(self, reason: str, event: yaml.Event) -> InputError:
        return InputError(
            reason, path=self.path, line=event.start_mark.line + 1 if event.start_mark else None
        )
