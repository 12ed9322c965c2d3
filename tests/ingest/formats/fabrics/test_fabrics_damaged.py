"""Every format of fabrics that names its devices: damaged real files and random text, and only InputError."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ingest.catalog import FORMATS
from ingest.options import Options
from registry.errors import InputError
from tests.support.inputs import file, read


class Sample(NamedTuple):
    """A format and files that make one source."""

    format: str
    names: tuple[str, ...]


SAMPLES = (
    Sample("slurm-topology", ("formats/topology.conf",)),
    Sample("slurm-topology", ("formats/topology_block.conf",)),
    Sample("slurm-show-topology", ("slurm/scontrol_show_topology.txt",)),
    Sample("slurm-topology-yaml", ("formats/topology.yaml",)),
    Sample("topograph-labels", ("formats/k8s_nodes.json",)),
    Sample("topograph-model", ("formats/topograph_model.yaml",)),
    Sample("ibtopo", ("formats/llnl.topo",)),
    Sample("lldp", ("lldp/node1.json", "lldp/leaf1.json")),
    Sample("lldp", ("lldp/node1.json0", "lldp/leaf1.json0")),
    Sample("slingshot", ("formats/slingshot_fabric_template.json.gz",)),
    Sample("slingshot", ("formats/slingshot_stt_show_fabric.txt.gz",)),
    Sample("opareport", ("formats/opareport_topology.xml.gz",)),
    Sample("netloc", ("netloc/eth-nodes.ndat", "netloc/eth-phy-paths.ndat")),
    Sample("cray", ("formats/xtprocadmin.txt", "public/sample.xtdb2proc.gz")),
    Sample("bluegene-p", ("formats/bgp_coords.txt",)),
    Sample("myrinet-pm", ("formats/myrinet_pm.conf",)),
    Sample("graphml", ("graphs/leaves.graphml",)),
    Sample("node-link", ("graphs/leaves.json",)),
)
OPTIONS = Options()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.names[0]}")
def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(sample: Sample) -> None:
    parser = FORMATS.find(sample.format).parser()
    contents = [read(name) for name in sample.names]
    plain = parser.parse([file(c, n) for c, n in zip(contents, sample.names, strict=True)], OPTIONS)
    turned = [b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n") for content in contents]
    again = parser.parse([file(c, n) for c, n in zip(turned, sample.names, strict=True)], OPTIONS)
    assert plain.fabric is not None
    assert again.fabric is not None
    assert again.fabric.names == plain.fabric.names
    assert again.fabric.links.capacity.tolist() == plain.fabric.links.capacity.tolist()
    assert again.warnings == plain.warnings


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.names[0]}")
def test_a_nul_byte_or_another_encoding_is_named_with_its_line(sample: Sample) -> None:
    parser = FORMATS.find(sample.format).parser()
    for wrong, reason in ((b"\0", "binary"), (b"\xff", "not UTF-8")):
        contents = [read(name) for name in sample.names]
        lines = contents[-1].split(b"\n")
        lines[len(lines) // 2] += wrong
        contents[-1] = b"\n".join(lines)
        with pytest.raises(InputError, match=reason) as caught:
            parser.parse([file(c, n) for c, n in zip(contents, sample.names, strict=True)], OPTIONS)
        assert caught.value.line == len(lines) // 2 + 1
        assert caught.value.path == sample.names[-1]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.names[0]}")
def test_every_direction_of_a_link_has_one_back_and_names_are_sorted(sample: Sample) -> None:
    parser = FORMATS.find(sample.format).parser()
    parsed = parser.parse([file(read(name), name) for name in sample.names], OPTIONS)
    fabric = parsed.fabric
    assert fabric is not None
    assert list(fabric.names) == sorted(fabric.names)
    links = fabric.links
    there = sorted(
        zip(links.source, links.target, links.source_port, links.target_port, links.capacity, strict=True)
    )
    back = sorted(
        zip(links.target, links.source, links.target_port, links.source_port, links.capacity, strict=True)
    )
    assert there == back
    assert parsed.assumed is None or parsed.assumed.shape == links.source.shape
    if parsed.assumed is not None:
        marked = set(zip(links.source[parsed.assumed], links.target[parsed.assumed], strict=True))
        assert {(target, source) for source, target in marked} == marked
