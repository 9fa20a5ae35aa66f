// Package server serves environments to many clients over one listener, by the protocol of package wire, which
// docs/reference/wire.md describes.
//
// A client has one websocket and one session. A session has handles; each is a set of environments that step together
// (env/vec). To read the code it helps to know:
//
//   - Each connection (conn.go) has a goroutine that reads and one that watches: the watcher sends pings, ends idle
//     connections and sends close frames. Requests go to the lane of their handle (lane.go), a goroutine that executes
//     them in order and writes the replies itself. The reading goroutine executes a request itself if its lane is idle
//     and the lane's previous request was short, which saves waking a thread. If that request turns out to be long,
//     another goroutine takes over the reading (reader.go).
//   - If a client does not read, writing a reply blocks its lane. A lane queues only a few requests, and refusing the
//     next one blocks the reader. So a client can make the server hold only a bounded amount.
//   - A session (session.go) outlives its connection if the client asked for that: its lanes go on, their last replies
//     are kept (kept.go), and a new connection takes the session over.
//   - A request that takes too long is answered by the watchdog of its lane. A running environment cannot be
//     interrupted, so its call is abandoned: the late result is dropped, and the handle is unusable until the call
//     returns.
//
// This package is about connections, sessions and the order of messages. Package handle is about what an operation does
// to environments.
package server
