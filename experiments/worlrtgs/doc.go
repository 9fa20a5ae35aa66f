// Package worlrtgs reproduces WORL-RTGS: task graphs planned by whale optimisation with a learned generator. README.md says
// which part is whose.
package worlrtgs
