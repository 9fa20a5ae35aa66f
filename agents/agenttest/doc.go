// Package agenttest is the contract of package agents as a test suite, and the training loop that tests of agents
// share. An agent runs the suite from its own tests:
//
//	func TestContract(t *testing.T) {
//		agenttest.Run(t, agenttest.Suite[*Agent]{Name: "mine", New: builder(busy()), Policy: policy(busy())})
//	}
//
// The suite checks what every learner must do: give the same bytes for any number of workers, resume as if never
// interrupted, and report documented metrics. Whether an agent learns anything is for its own tests, which play the
// problems of package env/control through a Loop. Only tests import this package.
package agenttest
