"""List passages of README and docs whose numbers are not measured: definitions, versions, papers."""

from __future__ import annotations

GIVEN: dict[str, tuple[str, ...]] = {}
