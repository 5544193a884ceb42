// Package baseline keeps what is known of a scenario's run: the exact numbers that lab check holds the next run against,
// the fates of its events, and fingerprints of all that they depend on, so that a number that moves comes with a reason.
// A baseline is a file of its own beside the project's code; only lab check --update writes one.
package baseline

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Schema names the version of the file format.
const Schema = "deduplab/baseline/1"

// Baseline is one file.
type Baseline struct {
	Schema   string   `json:"schema"`
	Scenario string   `json:"scenario"`
	Versions Versions `json:"versions"`
	Seed     uint64   `json:"seed"`
	// Sections has fingerprints of the scenario's sections without what is the default.
	Sections map[string]string `json:"sections"`
	// Stream is a fingerprint of the rows themselves, and Events the number of logical events.
	Stream     string     `json:"stream"`
	Events     uint64     `json:"events"`
	Strategies []Strategy `json:"strategies"`
	// Checksum is of everything else: without it an edit by hand would pass for a measurement.
	Checksum string `json:"checksum"`
}

// Versions of what the numbers depend on beside the scenario. They explain, and are not compared by themselves.
type Versions struct {
	Generator int `json:"generator"` // gen.Version
	Rules     int `json:"rules"`     // strategies.RulesVersion
	Measuring int `json:"measuring"` // lab.Version
}

// Strategy is what is known of one strategy.
type Strategy struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Params    map[string]string `json:"params"`
	Refused   string            `json:"refused,omitempty"`
	Changelog string            `json:"changelog"` // as the planner declares it
	Class     string            `json:"class,omitempty"`
	// Verdicts are by requirement, Same by cause: in how many replays of how many the final table was the same.
	Verdicts map[string]string `json:"verdicts"`
	Same     map[string]string `json:"same"`
	// Metrics has those that are not 0, by name. Unknown names those that are not known, or all that begin with the name
	// and a point: after, spark.numRowsRemoved.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	Unknown string             `json:"unknown,omitempty"`
	// Fates has the first events that have another fate than to be kept, at most Listed, by fate.
	Fates map[string]string `json:"fates,omitempty"`
	// Ranges are digests of the fates in as many equal ranges of events.
	Ranges string `json:"ranges,omitempty"`
}

// Listed is the number of events whose fate is kept one by one, Ranges that of the ranges of events.
const (
	Listed = 100
	Ranges = 64
)

// checksum is of all but the checksum.
func (b *Baseline) checksum() string {
	bare := *b
	bare.Checksum = ""
	text, err := json.Marshal(bare)
	if err != nil {
		panic(err) // it has nothing that could not be written
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

// Edited reports whether the baseline is not what was written.
func (b *Baseline) Edited() bool { return b.Checksum != b.checksum() }

// Write writes the baseline with its checksum.
func (b *Baseline) Write(w io.Writer) error {
	b.Checksum = b.checksum()
	text, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Read reads a baseline. The file is its name in messages.
func Read(file string, src []byte) (*Baseline, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(src, &head); err != nil {
		return nil, fmt.Errorf("%s: not a baseline: %s", file, place(src, err))
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("%s: not a baseline: its schema is %q, not %q", file, head.Schema, Schema)
	}
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	b := &Baseline{}
	if err := d.Decode(b); err != nil {
		return nil, fmt.Errorf("%s: not a baseline: %s", file, place(src, err))
	}
	for _, s := range b.Strategies {
		if _, err := s.listed(); err != nil {
			return nil, fmt.Errorf("%s: not a baseline: %s: %w", file, s.ID, err)
		}
	}
	return b, nil
}

// place adds the line to an error of encoding/json where it knows one.
func place(src []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(src)) {
		return err.Error()
	}
	return fmt.Sprintf("line %d: %v", 1+bytes.Count(src[:offset], []byte("\n")), err)
}

// AddFates takes the fate of every event in its order, of n in all.
func (s *Strategy) AddFates(n uint64, fateOf func(event uint64) string) {
	s.Fates = map[string]string{}
	digests := make([]string, 0, Ranges)
	listed := 0
	for i := range uint64(Ranges) {
		digest := sha256.New()
		for event := rangeStart(n, i); event < rangeStart(n, i+1); event++ {
			fate := fateOf(event)
			_, _ = io.WriteString(digest, fate+"\n") // a hash takes everything
			if fate != Kept && listed < Listed {
				listed++
				s.Fates[fate] = strings.TrimSpace(s.Fates[fate] + " " + strconv.FormatUint(event, 10))
			}
		}
		digests = append(digests, fmt.Sprintf("%x", digest.Sum(nil)[:4]))
	}
	s.Ranges = strings.Join(digests, " ")
}

// Kept is the fate of an event that is in the result as it should be.
const Kept = "kept"

// rangeStart is the first event of the i-th range of n events.
func rangeStart(n, i uint64) uint64 { return n/Ranges*i + min(n%Ranges, i) }

// listed are the fates of the events that are kept one by one.
func (s *Strategy) listed() (map[uint64]string, error) {
	out := map[uint64]string{}
	for fate, events := range s.Fates {
		for text := range strings.FieldsSeq(events) {
			event, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%q is not the number of an event", text)
			}
			out[event] = fate
		}
	}
	return out, nil
}

// strategy returns the strategy with an id, or nil.
func (b *Baseline) strategy(id string) *Strategy {
	if i := slices.IndexFunc(b.Strategies, func(s Strategy) bool { return s.ID == id }); i >= 0 {
		return &b.Strategies[i]
	}
	return nil
}
