package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// findFiles lists files, each once: those that the arguments name, and those that are wanted of the folders that they
// name. A folder without one is an error that says what it lacks.
func findFiles(args []string, lacks string, wanted func(path string) (bool, error)) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	for _, arg := range args {
		found := false
		err := filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if path != arg {
				if ok, err := wanted(path); !ok || err != nil {
					return err
				}
			}
			found = true
			if !seen[path] {
				seen[path] = true
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("%s: %s", arg, lacks)
		}
	}
	return files, nil
}
