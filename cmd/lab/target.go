package main

import (
	"context"
	"strings"

	"deduplab/lab"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/sink/postgres"
)

// openTarget opens the tables that strategies write to, where job.table says; nil: in memory.
func openTarget(ctx context.Context, s *scenarios.Scenario, folder *stateFolder) func(lab.TargetSpec) (sim.Target, error) {
	switch s.Job.TableKind() {
	case "memory":
		return nil
	case "pebble":
		return func(lab.TargetSpec) (sim.Target, error) {
			path, err := folder.next()
			if err != nil {
				return nil, err
			}
			return pebble.OpenTarget(path)
		}
	}
	return func(spec lab.TargetSpec) (sim.Target, error) {
		return postgres.Open(ctx, s.Job.Table, postgres.Table{
			Name:    strings.ReplaceAll("deduplab_"+s.Name+"_"+spec.Strategy, "-", "_"),
			Records: spec.Records, UniqueKey: spec.UniqueKey, NullSafe: spec.NullSafe,
		})
	}
}
