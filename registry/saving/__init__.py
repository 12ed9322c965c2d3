"""One call's harvest, saved; every run and its age."""
