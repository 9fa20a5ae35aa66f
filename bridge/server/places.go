package server

import (
	"clustergym/bridge/wire"
)

const (
	maxStrangers = 256  // places for strangers, or as many as there may be sessions, ...
	mostPlaces   = 1024 // ... at most this many, ...
	fewestPlaces = 16   // ... and at least this many, even if the process may open few files
)

const crowded = "too many connections that have not said hello: connect again in a while, with a token in the header " +
	"if there is one"

// placesFor returns how many places there are for strangers, and as many for clients that have shown a token. files is
// the number of files that the process may open. An eighth is left for files other than connections.
func placesFor(sessions, files int) int {
	left := (files - files/8 - sessions) / 2
	return max(min(max(maxStrangers, sessions), mostPlaces, left), fewestPlaces)
}

// Expel implements door.Guest: it shuts the connection because its place is needed.
func (c *conn) Expel() bool {
	c.expelled.Store(true)
	select {
	case <-c.quit:
		return false
	default:
	}
	_ = c.shut(wire.CloseCapacity, crowded)
	return true
}
