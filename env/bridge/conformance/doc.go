// Package conformance holds a server against the protocol of package wire, whoever wrote the server and in whatever
// language. It speaks to it in raw frames, so that it sees what a client library would hide.
//
// From a test:
//
//	conformance.Run(t, conformance.Target{URL: "ws://127.0.0.1:8765", Env: "InvalidAction-v1"})
//
// or from the command line, where the package's own test plays that part:
//
//	go test ./env/bridge/conformance -run Conformance -args -url ws://127.0.0.1:8765 -env InvalidAction-v1
//
// Each claim is a subtest with connections of its own, and every wait is bounded. What a server does not offer (a
// feature it does not grant, a limit too large to reach) is skipped and says so. The suite knows nothing of what
// environments mean; it needs one with discrete actions whose episodes end under random play.
package conformance
