package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile writes a file anew, or leaves what is there as it is.
func replaceFile(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	temp, err := writeBeside(path, mode, fill)
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(temp, path), removeLeft(temp))
}

// writeBeside writes what is to become a file under another name in the same folder, and returns that name.
func writeBeside(path string, mode fs.FileMode, fill func(io.Writer) error) (temp string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		pathError.Path = path
	}
	if err != nil {
		return "", err
	}
	if err := errors.Join(fill(f), f.Chmod(mode), f.Close()); err != nil {
		return "", errors.Join(err, removeLeft(f.Name()))
	}
	return f.Name(), nil
}

// removeLeft removes a file if it is still there.
func removeLeft(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
