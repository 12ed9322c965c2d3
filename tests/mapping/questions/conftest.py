"""A registry with running jobs."""

from __future__ import annotations

import pytest

from registry.registry import Registry
from tests.support.running_jobs import save_running_jobs


@pytest.fixture
def running(registry: Registry) -> Registry:
    save_running_jobs(registry)
    return registry
