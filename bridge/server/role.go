package server

import (
	"strings"

	"clustergym/bridge/handle"
)

// Factory makes environments by id. It must be safe for concurrent use.
type Factory = handle.Factory

// Listing describes one kind of environment that a Factory makes.
type Listing = handle.Listing

// Made holds what a Factory has made.
type Made = handle.Made

// Budgeted is a Factory that reserves what its environments take in the server's budget.
type Budgeted = handle.Budgeted

// Caller is an environment that answers more methods of `call` than those about tasks.
type Caller = handle.Caller

// Role is what the holder of a token may do. Roles are bits that add up.
type Role uint8

// The roles.
const (
	RoleRead  Role = 1 << iota // metrics
	RoleEnv                    // sessions
	RoleAdmin                  // everything, also foreign snapshots and draining
)

// String returns the name used in token files. Several names are joined by "+".
func (r Role) String() string {
	var names []string
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

var roleNames = [...]string{"read", "env", "admin"}

// RoleNamed returns the role called name, and whether there is one.
func RoleNamed(name string) (Role, bool) {
	for i, n := range roleNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// features are the abilities on which client and server have agreed in the handshake.
type features uint8

const (
	featAsync features = 1 << iota // send, recv
	featResume
	featSnapshot // snapshot, restore
	featRender
	featShm      // observations in shared memory
	featSchedule // simulate, decide
)

var featureNames = [...]string{"async", "resume", "snapshot", "render", "shm", "schedule"}
