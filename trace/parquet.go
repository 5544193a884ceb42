package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"

	"deduplab/stream"
)

// parquetMagic begins and ends a Parquet file.
var parquetMagic = []byte("PAR1")

const (
	maxFooter = 64 << 20
	maxChunk  = 1 << 30 // a column of a row group, unpacked

	maxRowsPerByte = 4096 // of a row group; more cannot have times of their own
)

// readParquet reads the columns of a Parquet file that are asked for. What is not a file on disk is put into one, since
// a Parquet file is read from its end. Lists and maps cannot be read.
func (r *Reader) readParquet(in io.Reader, buffered *bufio.Reader) (err error) {
	f, ok := in.(*os.File)
	if ok {
		info, err := f.Stat()
		ok = err == nil && info.Mode().IsRegular()
	}
	if !ok {
		if f, err = os.CreateTemp("", "deduplab-*.parquet"); err != nil {
			return err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		if _, err := io.Copy(f, buffered); err != nil {
			return r.broken(err)
		}
	}
	row := int64(0)
	defer func() { // the library takes files for sound
		if p := recover(); p != nil {
			err = fmt.Errorf("%s:%d: the Parquet file is damaged: %v", r.file, row, p)
		}
	}()
	file, err := openParquet(f)
	if err != nil {
		return r.broken(err)
	}
	for _, group := range file.RowGroups() {
		if n := group.NumRows(); n < 0 || n > maxRowsPerByte*file.Size() {
			return fmt.Errorf("%s: the Parquet file is damaged: %d rows in %d bytes", r.file, n, file.Size())
		}
	}
	columns, err := r.parquetColumns(file)
	if err != nil {
		return err
	}
	for _, group := range file.RowGroups() {
		if err := r.readGroup(group, columns, &row); err != nil {
			return err
		}
	}
	return nil
}

func openParquet(f *os.File) (*parquet.File, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	var end [8]byte
	if _, err := f.ReadAt(end[:], max(size-8, 0)); err != nil || string(end[4:]) != string(parquetMagic) {
		return nil, errors.New("the Parquet file is cut off: it does not end as one does")
	}
	if footer := int64(binary.LittleEndian.Uint32(end[:])); footer > min(size-12, maxFooter) {
		return nil, fmt.Errorf("the Parquet file is damaged: a footer of %d bytes", footer)
	}
	return parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.ReadBufferSize(1<<18))
}

// parquetColumns finds the columns that are asked for, and where their values go.
func (r *Reader) parquetColumns(file *parquet.File) ([]*parquetColumn, error) {
	wanted := func(name string) bool {
		return r.spec.All || slices.ContainsFunc(r.spec.Roles, func(role Role) bool { return role.Column == name })
	}
	var names, readable []string
	var leaves []parquet.LeafColumn
	for _, path := range file.Schema().Columns() {
		name := strings.Join(path, ".")
		names = append(names, name)
		leaf, ok := file.Schema().Lookup(path...)
		switch {
		case !ok || !wanted(name):
		case leaf.MaxRepetitionLevel == 0:
			readable, leaves = append(readable, name), append(leaves, leaf)
		case !r.spec.All:
			return nil, fmt.Errorf("%s: column %q is a list, which cannot be read", r.file, name)
		}
	}
	there := func(role int) bool { return slices.Contains(readable, r.spec.Roles[role].Column) }
	if faults := r.missing(r.file, names, there); len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if len(readable) > MaxColumns {
		return nil, fmt.Errorf("%s: %d columns; there can be %d", r.file, len(readable), MaxColumns)
	}
	for _, group := range file.Metadata().RowGroups {
		for _, leaf := range leaves {
			chunk := &group.Columns[leaf.ColumnIndex].MetaData
			if size := chunk.TotalUncompressedSize; size > maxChunk {
				return nil, fmt.Errorf("%s: a row group holds %d bytes of one column; there can be %d", r.file, size, maxChunk)
			}
			if chunk.Codec == format.Lz4Raw { // https://github.com/parquet-go/parquet-go/issues/608
				return nil, fmt.Errorf("%s: compressed with LZ4, which cannot be read; Snappy, gzip, zstd and Brotli can", r.file)
			}
		}
	}
	places, err := r.places(readable)
	if err != nil {
		return nil, err
	}
	var columns []*parquetColumn
	for i, leaf := range leaves {
		columns = append(columns, &parquetColumn{place: places[i], index: leaf.ColumnIndex,
			full: byte(leaf.MaxDefinitionLevel), set: setterOf(leaf.Node.Type())})
	}
	return columns, nil
}

// readGroup reads the rows of a row group.
func (r *Reader) readGroup(group parquet.RowGroup, columns []*parquetColumn, row *int64) error {
	for _, c := range columns {
		c.open(group)
		defer c.close()
	}
	for range group.NumRows() {
		*row++
		for _, c := range columns {
			if err := c.next(&r.values[c.place]); err != nil {
				return r.brokenAt(*row, err)
			}
		}
		if err := r.add(*row); err != nil {
			return err
		}
	}
	return nil
}

// parquetColumn reads the values of one column, row group by row group.
type parquetColumn struct {
	place int
	index int
	full  byte // definition level of what is not NULL
	set   setter
	pages parquet.Pages
	page  parquet.Page

	levels []byte // definition levels by row of the page; none where nothing is optional
	rows   int    // of the page
	row    int    // the next one
	cell   int    // number of the next value; NULLs have none
	cells
}

// cells are the values of a page: numbers in a dictionary, or those of one type.
type cells struct {
	dictionary parquet.Dictionary
	kind       encoding.Kind
	int32s     []int32 // with a dictionary, the numbers in it
	int64s     []int64
	int96s     []deprecated.Int96
	floats     []float32
	doubles    []float64
	bytes      []byte
	offsets    []uint32 // in bytes
	size       int      // in bytes, where all have one
}

func (c *parquetColumn) open(group parquet.RowGroup) {
	c.pages, c.rows, c.row = group.ColumnChunks()[c.index].Pages(), 0, 0
}

func (c *parquetColumn) close() {
	parquet.Release(c.page)
	c.page = nil
	_ = c.pages.Close() // it was only read
}

// next reads the next value. Its text is valid until the next.
func (c *parquetColumn) next(to *value) error {
	for c.row == c.rows {
		if err := c.nextPage(); err != nil {
			return err
		}
	}
	row := c.row
	c.row++
	if to.kind = isNull; len(c.levels) > 0 && c.levels[row] != c.full {
		return nil
	}
	c.set(to, &c.cells, c.cell)
	c.cell++
	return nil
}

func (c *parquetColumn) nextPage() (err error) {
	parquet.Release(c.page)
	if c.page, err = c.pages.ReadPage(); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	c.levels, c.rows, c.row, c.cell = c.page.DefinitionLevels(), int(c.page.NumValues()), 0, 0
	c.cells = cellsOf(c.page)
	return nil
}

func cellsOf(page parquet.Page) cells {
	data := page.Data()
	c := cells{dictionary: page.Dictionary(), kind: data.Kind()}
	switch c.kind {
	case encoding.Boolean:
		c.bytes = data.Boolean()
	case encoding.Int32:
		c.int32s = data.Int32()
	case encoding.Int64:
		c.int64s = data.Int64()
	case encoding.Int96:
		c.int96s = data.Int96()
	case encoding.Float:
		c.floats = data.Float()
	case encoding.Double:
		c.doubles = data.Double()
	case encoding.ByteArray:
		c.bytes, c.offsets = data.ByteArray()
	case encoding.FixedLenByteArray:
		c.bytes, c.size = data.FixedLenByteArray()
	}
	return c
}

// at is a value by its number.
func (c *cells) at(i int) parquet.Value {
	if c.dictionary != nil {
		return c.dictionary.Index(c.int32s[i])
	}
	switch c.kind {
	case encoding.Boolean:
		return parquet.BooleanValue(c.bytes[i/8]>>(i%8)&1 == 1)
	case encoding.Int32:
		return parquet.Int32Value(c.int32s[i])
	case encoding.Int64:
		return parquet.Int64Value(c.int64s[i])
	case encoding.Int96:
		return parquet.Int96Value(c.int96s[i])
	case encoding.Float:
		return parquet.FloatValue(c.floats[i])
	case encoding.Double:
		return parquet.DoubleValue(c.doubles[i])
	case encoding.ByteArray:
		return parquet.ByteArrayValue(c.bytes[c.offsets[i]:c.offsets[i+1]])
	}
	return parquet.FixedLenByteArrayValue(c.bytes[i*c.size : (i+1)*c.size])
}

// int64 is at for whole numbers of 64 bits, text for bytes.
func (c *cells) int64(i int) int64 {
	if c.dictionary == nil {
		return c.int64s[i]
	}
	return c.at(i).Int64()
}

func (c *cells) text(i int) []byte {
	if c.dictionary == nil {
		return c.bytes[c.offsets[i]:c.offsets[i+1]]
	}
	return c.at(i).ByteArray()
}

// setter sets a value to that of a cell; an empty text is NULL.
type setter func(to *value, from *cells, i int)

func setterOf(t parquet.Type) setter {
	if logical := t.LogicalType(); logical != nil {
		switch logical := logical.Value.(type) {
		case *format.TimestampType:
			if logical.Unit.Value != nil && t.Kind() == parquet.Int64 {
				return timestampSetter(logical.Unit.Value.Duration())
			}
		case *format.DateType:
			return func(to *value, c *cells, i int) {
				to.kind, to.at = isMoment, Moment{int64(c.at(i).Int32()) * 86400, 0, absolute}
			}
		case *format.DecimalType:
			return textSetter(func(v parquet.Value) []byte { return decimalText(v, int(logical.Scale)) })
		case *format.UUIDType:
			return textSetter(func(v parquet.Value) []byte { return uuidText(v.ByteArray()) })
		case *format.IntType:
			if !logical.IsSigned && t.Kind() == parquet.Int64 {
				return textSetter(func(v parquet.Value) []byte { return strconv.AppendUint(nil, v.Uint64(), 10) })
			}
			if !logical.IsSigned {
				return func(to *value, c *cells, i int) { to.kind, to.n = isWhole, int64(c.at(i).Uint32()) }
			}
		}
	}
	switch t.Kind() {
	case parquet.Int32:
		return func(to *value, c *cells, i int) { to.kind, to.n = isWhole, int64(c.at(i).Int32()) }
	case parquet.Int64:
		return func(to *value, c *cells, i int) { to.kind, to.n = isWhole, c.int64(i) }
	case parquet.Int96:
		return func(to *value, c *cells, i int) { to.kind, to.at = isMoment, int96Moment(c.at(i).Int96()) }
	case parquet.Float:
		return textSetter(func(v parquet.Value) []byte { return strconv.AppendFloat(nil, float64(v.Float()), 'f', -1, 32) })
	case parquet.Double:
		return textSetter(func(v parquet.Value) []byte { return strconv.AppendFloat(nil, v.Double(), 'f', -1, 64) })
	case parquet.ByteArray:
		return func(to *value, c *cells, i int) {
			if s := c.text(i); len(s) > 0 {
				to.kind, to.text = isText, s
			}
		}
	}
	return textSetter(func(v parquet.Value) []byte { return []byte(v.String()) })
}

func textSetter(text func(parquet.Value) []byte) setter {
	return func(to *value, c *cells, i int) {
		if s := text(c.at(i)); len(s) > 0 {
			to.kind, to.text = isText, s
		}
	}
}

// timestampSetter reads timestamps of a unit. Those without a time zone are taken for UTC.
func timestampSetter(unit time.Duration) setter {
	perSecond := int64(time.Second / unit)
	return func(to *value, c *cells, i int) {
		n := c.int64(i)
		seconds, rest := n/perSecond, n%perSecond
		if rest < 0 {
			seconds, rest = seconds-1, rest+perSecond
		}
		to.kind, to.at = isMoment, Moment{seconds, int32(rest * int64(unit)), absolute}
	}
}

// int96Moment reads a timestamp as Impala and older Sparks write it: nanoseconds of the day, and the Julian day.
func int96Moment(v deprecated.Int96) Moment {
	const epoch, perDay = 2440588, 86400
	ofDay := uint64(v[1])<<32 | uint64(v[0])
	return Moment{(int64(v[2])-epoch)*perDay + int64(ofDay/1e9), int32(ofDay % 1e9), absolute}
}

// decimalText writes a decimal with its point.
func decimalText(v parquet.Value, scale int) []byte {
	switch v.Kind() {
	case parquet.Int32:
		return []byte(stream.FormatDecimal(int64(v.Int32()), scale))
	case parquet.Int64:
		return []byte(stream.FormatDecimal(v.Int64(), scale))
	}
	bytes := v.ByteArray() // two's complement, the highest byte first
	n := new(big.Int).SetBytes(bytes)
	if len(bytes) > 0 && bytes[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
	}
	text := new(big.Int).Abs(n).String()
	text = strings.Repeat("0", max(0, scale+1-len(text))) + text
	if scale > 0 {
		text = text[:len(text)-scale] + "." + text[len(text)-scale:]
	}
	if n.Sign() < 0 {
		text = "-" + text
	}
	return []byte(text)
}

// uuidText writes a UUID with its hyphens.
func uuidText(b []byte) []byte {
	return fmt.Appendf(nil, "%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
