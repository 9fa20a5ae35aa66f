// Package conformance checks a server against the protocol of package wire, in whatever language the server is written.
// It sends raw frames, so that it sees what a client library would hide.
//
// From the command line:
//
//	gymctl serve --check ws://127.0.0.1:8765
//
// From a program, Check reports each claim of the protocol as it is decided:
//
//	err := conformance.Check(ctx, conformance.Target{URL: "ws://127.0.0.1:8765", Env: "InvalidAction-v1"}, func(v conformance.Verdict) {
//		fmt.Println(v.Claim, v.Err)
//	})
//
// From a test, Run makes each claim a subtest:
//
//	conformance.Run(t, conformance.Target{URL: "ws://127.0.0.1:8765", Env: "InvalidAction-v1"})
//
// Each claim has connections of its own, and every wait is bounded. A claim is skipped, with the reason, if the server
// does not offer what it needs: a feature that was not granted, or a limit too large to reach. The suite knows nothing
// about what environments mean. It needs one with discrete actions whose episodes end under random play.
//
// The suite fills the server with sessions for a moment, so it disturbs other clients.
package conformance
