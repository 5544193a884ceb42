#!/usr/bin/env python3
"""Derives earthquakes.jsonl.gz from the npm package `vega-datasets` 3.2.1.

    npm pack vega-datasets@3.2.1
    python3 earthquakes.py vega-datasets-3.2.1.tgz

One row for each id: a network that locates a quake gives it an id of its own, and the feed lists them all. Rows stay in
the order of the feed. The output is the same bytes on every run (with one version of zlib).
"""

import gzip
import json
import sys
import tarfile
from pathlib import Path

SOURCE = "package/data/earthquakes.json"
TARGET = Path(__file__).with_name("earthquakes.jsonl.gz")


def main(package: str, target: Path = TARGET) -> None:
    rows = []
    for quake in json.load(tarfile.open(package).extractfile(SOURCE))["features"]:
        properties = quake["properties"]
        ids, networks = (properties[name].strip(",").split(",") for name in ("ids", "sources"))
        for own, network in zip(ids, networks, strict=True):
            rows.append({
                "id": own, "quake": quake["id"], "network": network, "time": properties["time"],
                "updated": properties["updated"], "mag": properties["mag"], "place": properties["place"],
            })
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{target.name}: {len(rows)} rows, {target.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], *map(Path, sys.argv[2:]))
