// Package client plays environments that run in another process: those of gymctl serve, or of any server of the
// protocol of package wire. It is the public Go API of the bridge.
//
// Dial begins a session. Open gives one environment, which implements env.Env; OpenVec gives many, which are stepped
// together in one round trip:
//
//	c, err := client.Dial(ctx, client.Config{URL: "ws://127.0.0.1:8765"})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	e, err := c.Open(ctx, "JobSelect-v1", map[string]any{"window": 64}) // *client.Env, an env.Env
//	if err != nil {
//		return err
//	}
//	ts := env.NewTimeStep(e.Spec())
//	err = e.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts)
//	for err == nil && !ts.Kind.Last() {
//		err = e.Step(ctx, policy(ts), ts)
//	}
//
// docs/guides/go-client.md has a whole program and says how another module imports this package.
//
// An Env keeps the contract of package env exactly: equal episodes give the same bytes as in the server's process.
//
// # Lost connections
//
// If the connection is lost, the client resumes the session while the server keeps it: it sends the unanswered
// requests again under their old ids, and the server does none of them twice. Each step happens exactly once, and the
// caller notices only the time it takes. If the session cannot be resumed, every call returns ErrLost.
//
// Silence is no loss, because the server may be busy: the client tries another connection and keeps the silent one
// until the session has moved. Every call ends with its context or after Config.Timeout, whatever else comes.
//
// # Cancelled calls
//
// A call that is cancelled, or that times out, before its request was sent has no effect. If the request was sent, its
// reply is kept: repeating the same call returns that reply, a reset discards it, and any other call returns
// ErrPending. So the state after an error is always known.
package client
