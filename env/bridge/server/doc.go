// Package server serves environments to many clients over one listener, by the protocol of package wire
// (docs/wire.md is its description).
//
// A client has one websocket and one session; a session has handles, each a set of environments that step together
// (env/vec). What helps to read the code:
//
//   - A connection (conn.go) has a goroutine that reads and one that watches: it sends pings, ends what is idle and
//     says farewell. Requests go to the lane of their handle (lane.go), a goroutine that executes them in order and
//     writes the replies itself. One that is known to be brief, for a lane that has nothing to do, is executed by
//     whoever read it, which saves waking a thread; if it lasts, another goroutine takes over the reading (reader.go).
//   - Where a client does not read, the write of a reply blocks its lane; a lane takes only so many requests, and the
//     refusal of the next one blocks the reader. So what a client can make the server hold is bounded.
//   - A session (session.go) outlives its connection where the client asked for it: its lanes go on, their last
//     replies are kept (kept.go), and a new connection takes the session over.
//   - A request that takes too long is answered by the watchdog of its lane. Environments cannot be interrupted by
//     force: the call is left behind, its late result dropped, and the handle unusable until it has come back.
//
// Messages and their order are this part of the package; what an operation does to environments is handle.go's and
// its neighbours'.
package server
