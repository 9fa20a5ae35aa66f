package mirror

import "time"

// Time returns when the clock of the facts shows d.
func (m *Mirror) Time(d time.Duration) time.Time { return m.zero.Add(d) }
