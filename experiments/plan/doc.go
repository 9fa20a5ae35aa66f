// Package plan is gymctl plan: it plans task graphs, recorded or generated, with list schedulers and with WORL-RTGS, and
// holds the trained generator that WORL-RTGS uses.
package plan
