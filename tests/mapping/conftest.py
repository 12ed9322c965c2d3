"""Settings of the property tests here."""

from hypothesis import HealthCheck, settings

# No deadline: the first call of a kernel compiles it. Derandomised: a run of the suite is repeatable.
settings.register_profile(
    "mapping", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mapping")
