#!/usr/bin/env python3
"""Derives radio-frames.csv.gz from the sample data of the PyPI package `traffic` 2.13.

    pip download --no-deps traffic==2.13
    python3 radio-frames.py traffic-2.13-py3-none-any.whl

Rows stay in order and cells stay as they are written in the source, timestamps with all their digits. The output is
the same bytes on every run (with one version of zlib).
"""

import gzip
import json
import sys
import zipfile
from pathlib import Path

SOURCE = "traffic/data/samples/rs1090/full_flight_short.jsonl"
COLUMNS = ["timestamp", "frame", "df", "icao24"]
TARGET = Path(__file__).with_name("radio-frames.csv.gz")


def main(wheel: str, target: Path = TARGET) -> None:
    lines = [",".join(COLUMNS)]
    for line in zipfile.ZipFile(wheel).read(SOURCE).decode().splitlines():
        row = json.loads(line, parse_float=str, parse_int=str)  # numbers keep their digits
        lines.append(",".join(row[column] for column in COLUMNS))
    text = "\n".join(lines) + "\n"
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{target.name}: {len(lines) - 1} rows, {target.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], *map(Path, sys.argv[2:]))
