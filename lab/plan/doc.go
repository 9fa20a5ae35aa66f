// Package plan is gymctl plan: it plans task graphs, recorded or generated, with list schedulers and whale optimisation
// searches. It also trains the plan generator that the search worl-rtgs uses, and contains trained weights of it.
package plan
