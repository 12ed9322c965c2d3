# The dashboard, or any other `almanac` command, as a container without root.
FROM python:3.11.13-slim-bookworm
WORKDIR /opt/almanac
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY registry registry
COPY ingest ingest
COPY mapping mapping
COPY dashboard dashboard
COPY almanac almanac
RUN pip install --no-cache-dir --constraint constraints.txt '.[dashboard,login,serve]' \
    && useradd --create-home --uid 10001 almanac \
    && install --directory --mode 700 --owner almanac /home/almanac/data
USER almanac
WORKDIR /home/almanac
EXPOSE 8501
ENTRYPOINT ["almanac"]
CMD ["dashboard", "--address", "0.0.0.0", "--port", "8501", "--no-browser"]
