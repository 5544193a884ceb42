package scenarios

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"deduplab/stream"
)

// files are the scenarios that the lab ships, and the one that a user starts from.
//
//go:embed *.yaml starter/starter.yaml
var files embed.FS

// Starter is the name of the preset that shows what a scenario can hold.
const Starter = "starter"

// Preset is a scenario to start from. Those whose workload is a trace are none, because they need their file.
type Preset struct {
	Name  string
	About string // one sentence
	Text  string // the scenario, with its comments
}

// Presets lists the presets, the starter first, then in alphabetical order.
func Presets() ([]Preset, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Preset
	for _, file := range append([]string{"starter/starter.yaml"}, names...) {
		text, err := files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), "\n  trace: ") {
			continue
		}
		s, err := Load(file, text, nil)
		if err != nil {
			return nil, err
		}
		about, _, _ := strings.Cut(s.About, ". ")
		name := strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".yaml")
		all = append(all, Preset{name, strings.TrimSuffix(about, "."), schemaLine.ReplaceAllString(string(text), "")})
	}
	return all, nil
}

// FindPreset finds a preset by its name.
func FindPreset(name string) (Preset, error) {
	all, err := Presets()
	if err != nil {
		return Preset{}, err
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("there is no preset %q%s", name, stream.DidYouMean(name, names))
}

// schemaLine is the line for editors that says where the schema is; the place holds for the files of the lab.
var schemaLine = regexp.MustCompile(`^# yaml-language-server: .*\n`)

// nameLine is the line with the name of a scenario.
var nameLine = regexp.MustCompile(`(?m)^scenario: .*$`)

// Named is the text of the preset as a scenario with a name of its own.
func (p Preset) Named(name string) (string, error) {
	if _, err := slug(name); err != nil {
		return "", err
	}
	return nameLine.ReplaceAllLiteralString(p.Text, "scenario: "+name), nil
}
