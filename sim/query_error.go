package sim

// QueryError is the error with which a streaming query ends, as Spark tells it.
type QueryError struct {
	Class   string // of the exception that was thrown first
	Message string // its message
	// Chain holds the classes of the exceptions around it from the outside in, itself last; Conditions are Spark's error
	// conditions of those that have one.
	Chain, Conditions []string
}

// Error is the exception as a log shows it.
func (e *QueryError) Error() string { return e.Class + ": " + e.Message }

// Condition is the innermost error condition, or else the class.
func (e *QueryError) Condition() string {
	if n := len(e.Conditions); n > 0 {
		return e.Conditions[n-1]
	}
	return e.Class
}
