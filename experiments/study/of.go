package study

// Parts makes the parts of a study from settings of type S and the plan that they are of. Figures, Claims and Notes may be nil.
type Parts[S any] struct {
	Cells   func(*S, Plan) ([]Cell, error)
	Tables  func(*S, Plan) []Table
	Figures func(*S, Plan) []Figure
	Claims  func(*S, Plan) []Claim
	Notes   func(*S, Plan) []string
}

// Of returns s with the parts that settings make. planned returns the settings of a plan; if it fails, Cells reports that, and
// the other parts are made from the zero value of S.
func Of[S any](s Study, planned func(Plan) (S, error), parts Parts[S]) Study {
	valid := func(p Plan) *S {
		own, err := planned(p)
		if err != nil {
			own = *new(S)
		}
		return &own
	}
	s.Cells = func(p Plan) ([]Cell, error) {
		own, err := planned(p)
		if err != nil {
			return nil, err
		}
		return parts.Cells(&own, p)
	}
	s.Tables = func(p Plan) []Table { return parts.Tables(valid(p), p) }
	if parts.Figures != nil {
		s.Figures = func(p Plan) []Figure { return parts.Figures(valid(p), p) }
	}
	if parts.Claims != nil {
		s.Claims = func(p Plan) []Claim { return parts.Claims(valid(p), p) }
	}
	if parts.Notes != nil {
		s.Notes = func(p Plan) []string { return parts.Notes(valid(p), p) }
	}
	return s
}
