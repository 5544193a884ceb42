package trace

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file of a trace that can be read.
type File struct {
	Name string // for messages
	Open func() (io.ReadCloser, error)
}

// Stdin is the path that stands for the standard input.
const Stdin = "-"

// Files finds the files that paths name. A path may be a pattern such as data/*.jsonl.gz, whose files come in the order
// of their names, and is then to fit at least one; or -, the standard input, which can be read once.
func Files(paths []string, stdin io.Reader) ([]File, error) {
	var all []File
	for _, path := range paths {
		if path == Stdin {
			all = append(all, Of("stdin", stdin))
			continue
		}
		names := []string{path}
		if _, err := os.Stat(path); err != nil {
			found, globErr := filepath.Glob(path)
			switch {
			case globErr != nil:
				return nil, fmt.Errorf("%s: %w", path, globErr)
			case len(found) == 0 && strings.ContainsAny(path, "*?["):
				return nil, fmt.Errorf("%s: no file fits this pattern", path)
			case len(found) > 0:
				names = slices.Sorted(slices.Values(found))
			}
		}
		for _, name := range names {
			all = append(all, File{name, func() (io.ReadCloser, error) { return os.Open(name) }})
		}
	}
	return all, nil
}

// Of makes a file of what is read once.
func Of(name string, in io.Reader) File {
	return File{name, func() (io.ReadCloser, error) { return io.NopCloser(in), nil }}
}

// ReadAll hands out the rows of all files, one file after the other, and finishes.
func (r *Reader) ReadAll(files []File, each func(*Row) error) error {
	for _, file := range files {
		if err := r.readFile(file, each); err != nil {
			return err
		}
	}
	return r.Finish()
}

func (r *Reader) readFile(file File, each func(*Row) error) error {
	in, err := file.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	return r.Read(file.Name, in, each)
}
