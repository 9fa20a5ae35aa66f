// Package client plays environments at the other end of a wire, by the protocol of package wire.
//
//	c, err := client.Dial(ctx, client.Config{URL: "ws://127.0.0.1:8765"})
//	e, err := c.Open(ctx, "JobSelect-v1", nil)                                        // an env.Env
//	v, err := c.OpenVec(ctx, "JobSelect-v1", nil, 64, client.VecConfig{Autoreset: client.SameStep})
//
// An Env keeps the contract of package env to the bit: the same episodes give the same bytes as the environment
// does at home. A Vec steps many in one round trip and fills an env.Batch.
//
// A connection that is lost is taken up again while the server keeps the session: requests without an answer are
// sent once more under their old numbers, which the server answers without doing them twice. So a step happens
// exactly once, and a caller notices nothing but the time it takes.
//
// A call that its caller gives up (a cancelled context, a timeout) has either not been sent, and then nothing has
// happened, or it is on its way. In that case its reply is kept: the same call made again gets it, a reset drops
// it, and any other call is ErrPending. So what an error leaves behind is always known.
package client
