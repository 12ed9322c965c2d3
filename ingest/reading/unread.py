"""What a file is that no parser recognises, and what to do about it: one line for its error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ingest.reading.source import DIAGNOSTIC, UTF_16, SourceFile
from registry.errors import shorten

MOST_LINES = 30
"""Most lines of a file that may be nothing but a tool's error."""
LONGEST = 500
"""Characters of such a line that are looked at."""
QUOTED = 80
"""Most characters of a line that a reason quotes."""

_BINARIES = (
    (b"PK\x03\x04", "a zip archive: unpack it, or use tar"),
    (b"BZh", "compressed with bzip2: unpack it, or use gzip or xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it, or use gzip or xz"),
    (b"%PDF", "a PDF document: give the text that the tool printed"),
    (b"\x89HDF", "an HDF5 file: convert it to CSV or .npz"),
    (b"PAR1", "a Parquet file: convert it to CSV"),
    (b"SQLite format 3", "an SQLite database: for Nsight's, there is no reader"),
)
_TEXTS = (
    (
        r"<system\s[^>]{0,99}version=",
        "a topology of NCCL (NCCL_TOPO_DUMP_FILE): the devices in one node, not the network. Give "
        "`lstopo --of xml` for the layout of a host, and the log of NCCL_DEBUG=INFO for rings and trees",
    ),
    (
        r'"(?:workload_graph|ctrl_?[dD]eps|data_?[dD]eps)"\s*:'
        r'|"(?:node_?)?type"\s*:\s*"(?:COMM_(?:COLL|SEND|RECV)|COMP|MEM_(?:LOAD|STORE)|METADATA)_NODE"',
        "a Chakra trace as JSON: give PyTorch's execution traces of which it was made "
        "(ExecutionTraceObserver, one file per rank)",
    ),
    (
        r'"traceEvents"\s*:',
        "a trace of PyTorch's profiler (Kineto, Chrome's format): give execution traces "
        "(ExecutionTraceObserver, one file per rank)",
    ),
    (
        r'\A\s*(?:\{\s*"(?:ports|systems)"\s*:\s*)?\[\s*\{[\s\S]{0,9999}"(?:system(?:ID|_name|_guid))"\s*:',
        "UFM's list of ports or systems, without the cables: give /ufmRest/resources/links",
    ),
    (
        r'"NetworkNodes"\s*:',
        "AWS's topology of instances: let topograph make a topology.conf of it, and give that",
    ),
    (
        r"\A\s*<(?:!doctype|!DOCTYPE|html|HTML)\b",
        "an HTML page, often a server's error or login page: open it in a browser, and fetch the data again",
    ),
    (
        r"^NodeName=\S+ ",
        "Slurm's list of nodes (`scontrol show nodes`), which has no network: give `scontrol show topology` "
        "or a scan",
    ),
    (
        r"^CA '\S+'",
        "ibstat's report of one host's adapters, without cables: give `ibnetdiscover`",
    ),
    (
        r"\A\s*GPU0\s+GPU1\b",
        "nvidia-smi's topology of one node: give `lstopo --of xml` for the layout of a host",
    ),
)
_ERROR = re.compile(
    r"(?:\S+: ){0,4}(?:\w+ )?(?:error|fatal|panic|failed|usage)\b.*"
    r"|(?:\S+: ){0,4}(?:failed|unable|cannot|can't|could not|couldn't) .*"
    r"|.*(?:command not found|permission denied|no such file or directory|not permitted|not found)\W*"
    r"|.*(?:connection (?:refused|timed out|closed.*)|verification failed|a password is required)\W*"
    r"|.*\[(?:warn|err|error|crit)\S*\] .*"
    r"|error from server.*|the connection to the server .*|traceback \(most recent call last\):",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"\s*(?:#|%|//|;).*")
_ROW = re.compile(r"\d+(?:[_+]\d+)?(?:\.\w+)?\|")


def explain(file: SourceFile) -> str:
    """Return what a file is and what to do about it; empty if that is unknown."""
    if file.is_utf_16():
        return UTF_16
    for begins, text in _BINARIES:
        if file.data.startswith(begins):
            return f"the file is {text}"
    lines = [line for line in file.head().splitlines() if line.strip()]
    return next(_explanations(lines, "\n".join(lines)), "")


def _explanations(lines: list[str], text: str) -> Iterator[str]:
    """Yield what the lines with content may be, the most certain first."""
    if all(_COMMENT.fullmatch(line) for line in lines):
        yield "the file has only comments: nothing to read"
    begins = lines[0].strip()[:LONGEST]
    if len(lines) <= MOST_LINES and (_ERROR.fullmatch(begins) or DIAGNOSTIC.fullmatch(begins)):
        yield (
            f"the file has only a command's error, {shorten(begins, QUOTED)!r}: "
            "run the command again, and see that it succeeds"
        )
    first = next((line for line in lines if not _COMMENT.fullmatch(line)), "")
    names = set(re.findall(r"\w+", first.lower()))
    if "jobid" in names and names & {"state", "st", "nodelist", "jobname"}:
        yield (
            "jobs of sacct or squeue with another character than `|` between columns: "
            "use sacct -P without --delimiter, or squeue -o '%i|%j|%T|%N|%C'"
        )
    if _ROW.match(first):
        yield "rows of sacct or squeue without the names of their columns: leave out -n (--noheader)"
    for pattern, about in _TEXTS:
        if re.search(pattern, text, re.MULTILINE):
            yield f"the file is {about}"
