// Package envtest is the contract of package env as a test suite. An environment runs it from its own tests:
//
//	func TestContract(t *testing.T) {
//		envtest.Run(t, func() env.Env { return mine.New() }, envtest.NoAllocs())
//	}
//
// The suite uses only the environment's exported methods, and compares errors with errors.Is and time steps bit by
// bit. It opens several instances, at most four at once. It therefore also works on an environment at the other end of
// a wire. It does not check whether the problem makes sense: known answers and hand-worked cases belong to the
// environment's own tests.
package envtest
