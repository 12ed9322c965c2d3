"""Validate objects of Kubernetes against the published schemas of their projects."""

from __future__ import annotations

import json
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]  # has no types

from tests.support import paths

__all__ = ["ValidationError", "validated"]
FOLDER = paths.DATA / "kubernetes"


def strict(schema: Any) -> Any:
    """Return a schema that allows no unknown fields, as `kubectl` does by default."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: strict(value) for key, value in schema.items()}
    return {**found, "additionalProperties": False} if "properties" in found else found


def validated(text: str, schema: str) -> list[dict[str, Any]]:
    """Return the objects of a YAML text, each of which fits a schema; their names are RFC 1123."""
    published = json.loads((FOLDER / f"{schema}.json").read_text())
    published["properties"]["metadata"] = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"pattern": r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}},
    }
    validator = Draft202012Validator(strict(published))
    objects = list(yaml.safe_load_all(text))
    for one in objects:
        validator.validate(one)
    return objects
