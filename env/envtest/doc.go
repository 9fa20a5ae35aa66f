// Package envtest is the contract of package env as a test suite. Any environment runs it, from its own tests:
//
//	func TestContract(t *testing.T) {
//		envtest.Run(t, func() env.Env { return mine.New() }, envtest.NoAllocs())
//	}
//
// The suite drives the environment through its exported methods only, decides by errors.Is and by the bits of
// time steps, and needs several instances, at most four of them open at once. So it also holds for an
// environment at the other end of a wire. It says nothing about whether the problem makes sense: known answers
// and hand-worked cases belong to the environment's own tests.
package envtest
