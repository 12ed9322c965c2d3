"""Reading of XML without document types, entities and other files."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ingest.reading.source import SourceFile
from registry.errors import InputError


def load_xml(file: SourceFile) -> Element:
    """Return the outermost element of a file.

    Raises
    ------
    InputError
        Invalid or truncated XML, another encoding than the text has, a document type or entities.
    """
    file.text()
    try:
        root: Element = fromstring(file.data, forbid_dtd=True)
    except ParseError as error:
        reason = f"invalid or truncated XML: {error}"
        raise InputError(reason, path=file.path, line=error.position[0]) from error
    except DefusedXmlException as error:
        raise InputError("document types and entities are not allowed", path=file.path) from error
    except (ValueError, LookupError) as error:
        raise InputError(f"unreadable XML: {error}", path=file.path) from error
    return root
