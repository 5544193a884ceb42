package suite_test

import (
	"testing"

	"deduplab/strategies"
	"deduplab/suite"
)

// Every strategy of the lab stands the suite, but for what is known of the engine.
func TestStrategies(t *testing.T) {
	required := map[strategies.ParamKind]string{
		strategies.Duration: "5s", strategies.Int: "2", strategies.Order: "price asc", strategies.Column: "created_at",
		strategies.Columns: "key", strategies.OptionalDuration: "5s",
	}
	cache := map[suite.Law]string{
		suite.Restart: "a Rank loses its cache, and with it rows whose TTL a checkpoint would extend",
	}
	except := map[string]map[suite.Law]string{
		"nontime": cache, "nontime-to-changelog": cache,
		"rowtime-asc": {suite.Restart: "the watermark that comes again releases a row that came at its very moment"},
	}
	jobs := map[string]strategies.Job{"latest-wins-aggregate": {Sink: strategies.Upsert}} // others refuse it
	for _, name := range strategies.Names() {
		s, _ := strategies.Lookup(name)
		params := map[string]string{}
		for _, p := range s.Params {
			switch {
			case p.Name == "ttl":
				params[p.Name] = "10s"
			case p.Default == "" && p.Kind == strategies.Enum:
				params[p.Name] = p.Values[0]
			case p.Default == "":
				params[p.Name] = required[p.Kind]
			}
		}
		t.Run(name, func(t *testing.T) {
			suite.Run(t, suite.Case{Strategy: name, Params: params, Job: jobs[name], Except: except[name]})
		})
	}
}

func TestRegisterFaults(t *testing.T) {
	plan := func(strategies.Args, strategies.Job) strategies.Plan { return strategies.Plan{} }
	for want, s := range map[string]*strategies.Strategy{
		`strategies: "Mine" is not a name of lower-case letters, digits and -`: {Name: "Mine"},
		"strategies: ptf is registered already":                                {Name: "ptf"},
		"strategies: mine must say what it does (About), and when it loses or leaks data (Loses)": {Name: "mine",
			Plan: plan},
		"strategies: mine has no Plan": {Name: "mine", About: "x", Loses: "y"},
	} {
		if err := strategies.Register(s); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, ok := strategies.Lookup("mine"); ok {
		t.Error("a faulty strategy is registered")
	}
}
