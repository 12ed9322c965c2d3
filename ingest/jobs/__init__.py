"""What schedulers know about jobs: one file a format."""
