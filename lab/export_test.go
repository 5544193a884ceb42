package lab

// ReplayClosed are options under which strategies are replayed even under causes that they cannot be open to.
func ReplayClosed(o Options) Options {
	o.runClosed = true
	return o
}
