"""Settings of the property tests here."""

from hypothesis import HealthCheck, settings

# No deadline: the first call of a kernel compiles it. Derandomised: a run of the suite is repeatable. Fewer
# examples than by default, of which drawing alone takes 10 ms each; most are of six vertices or fewer anyway.
settings.register_profile(
    "mapping",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mapping")
